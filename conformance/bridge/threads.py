"""Threads of a run: how many compute in a process, and how the system's scheduler treats them."""

from __future__ import annotations

import contextlib
import os
from collections.abc import MutableMapping

NAMES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "VECLIB_MAXIMUM_THREADS")
"""What libraries of linear algebra read when they are loaded."""


def one_thread(environment: MutableMapping[str, str]) -> None:
    """Have a process that starts with the environment compute with one thread, unless the user says otherwise: there is a
    worker with a subject for each core, and further threads would take those of the others."""
    environment.update({name: "1" for name in NAMES if name not in os.environ})


def let_woken_threads_wait() -> bool:
    """Have a thread that is woken leave the core to the one that woke it; False where the system cannot be told so (Linux can).

    Suites and subjects wake each other a million times, and MLX wakes the thread of a stream at each operation: to change
    places every time takes a tenth of a run.
    """
    if not hasattr(os, "SCHED_BATCH"):
        return False
    with contextlib.suppress(OSError):
        os.sched_setscheduler(0, os.SCHED_BATCH, os.sched_param(0))
        return True
    return False
