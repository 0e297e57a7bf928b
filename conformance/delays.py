"""How long a process was ready to run and had no core: a busy machine makes nobody hang."""

from __future__ import annotations

import contextlib
import os
import time

OFTEN = 1.0
"""Seconds after which a look counts as old: calls are many, and few take so long."""


class Delays:
    """What a process loses to others, as far as the system tells (Linux does)."""

    def __init__(self, process: int) -> None:
        self._threads = f"/proc/{process}/task"
        self._before: dict[str, int] = {}
        self._looked = -OFTEN

    def look(self) -> None:
        """Begin to count, or not long before now."""
        if time.monotonic() - self._looked >= OFTEN:
            self.lost()

    def lost(self) -> float:
        """Seconds since the last look for which the thread that lost most was ready and did not run."""
        now, before = _waited(self._threads), self._before
        self._before, self._looked = now, time.monotonic()
        return max((now[thread] - before.get(thread, 0) for thread in now), default=0) / 1e9


def _waited(threads: str) -> dict[str, int]:
    """Nanoseconds that each thread has waited for a core; none where nothing is told."""
    found: dict[str, int] = {}
    with contextlib.suppress(OSError, ValueError, IndexError):
        for thread in os.listdir(threads):
            with open(f"{threads}/{thread}/schedstat", encoding="ascii") as file:
                found[thread] = int(file.read().split()[1])
    return found
