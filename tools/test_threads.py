"""Threads that are woken wait where the system can be told so, in a subject's process too."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from inferspec.conformance.subject import HostedSubject

BATCHES = hasattr(os, "SCHED_BATCH")
ASK = """
import os
from inferspec.conformance.threads import let_woken_threads_wait
print(let_woken_threads_wait(), hasattr(os, "SCHED_BATCH") and os.sched_getscheduler(0) == os.SCHED_BATCH)
"""


@pytest.fixture(scope="module")
def answer() -> list[str]:
    """What a process is told that asks, and whether it is so: systems differ, and sandboxes may refuse."""
    return subprocess.run([sys.executable, "-c", ASK], capture_output=True, text=True, check=True).stdout.split()


def test_what_a_process_is_told_is_so(answer):
    told, so = answer
    assert told == so


@pytest.mark.skipif(not BATCHES, reason="there is no such policy here")
def test_a_subject_is_treated_alike(answer):
    subject = HostedSubject("impl")
    try:
        assert subject.description.offers  # which starts it
        assert subject._process is not None
        assert str(os.sched_getscheduler(subject._process.pid) == os.SCHED_BATCH) == answer[0]
    finally:
        subject.close()
