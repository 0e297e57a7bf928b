"""Workers and subjects have one thread each unless told otherwise, and leave the core to who woke them."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from inferspec.conformance.bridge.hosted_subject import HostedSubject
from inferspec.conformance.bridge.threads import NAMES, one_thread

BATCHES = hasattr(os, "SCHED_BATCH")
ASK = """
import os
from inferspec.conformance.bridge.threads import let_woken_threads_wait
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


def test_a_process_has_one_thread_unless_its_user_says_otherwise(monkeypatch):
    for name in NAMES:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("OMP_NUM_THREADS", "4")
    environment = dict(os.environ)
    one_thread(environment)
    assert environment["OMP_NUM_THREADS"] == "4"
    assert environment["OPENBLAS_NUM_THREADS"] == environment["VECLIB_MAXIMUM_THREADS"] == "1"


FILES = {
    "told.py": "import os\ndef causal_mask(L, S, dtype): raise RuntimeError(f'subject {os.environ[\"OPENBLAS_NUM_THREADS\"]}')",
    "test_mine.py": "import os\ndef test_mine(): raise RuntimeError(f'worker {os.environ[\"OPENBLAS_NUM_THREADS\"]}')",
}


ONE_TEST = "test_the_mask_has_the_lengths_and_dtype_asked_for"


@pytest.mark.parametrize("said", [None, "3"])
def test_a_worker_and_its_subject_have_one_thread_unless_the_user_says_otherwise(
    run_pytest, write, tmp_path, monkeypatch, said
):
    monkeypatch.delenv("OPENBLAS_NUM_THREADS", raising=False)
    if said:
        monkeypatch.setenv("OPENBLAS_NUM_THREADS", said)
    write(tmp_path, FILES)
    suite = "inferspec.conformance.test_attention_masks"
    run = run_pytest(
        tmp_path, "-n", "1", "--impl", "./told.py", "-k", f"mine or {ONE_TEST}", "--pyargs", "test_mine.py", suite
    )
    assert f"worker {said or 1}" in run.text
    assert f"subject {said or 1}" in run.text
