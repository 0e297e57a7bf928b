"""How the system's scheduler treats the threads of a run: suites and subjects wake each other a million times."""

from __future__ import annotations

import contextlib
import os


def let_woken_threads_wait() -> bool:
    """Have a thread that is woken leave the core to the one that woke it; False where the system cannot be told so (Linux can).

    MLX wakes the thread of a stream at each operation: to change places every time takes a tenth of a run.
    """
    if not hasattr(os, "SCHED_BATCH"):
        return False
    with contextlib.suppress(OSError):
        os.sched_setscheduler(0, os.SCHED_BATCH, os.sched_param(0))
        return True
    return False
