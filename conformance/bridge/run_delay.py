"""How long a process was ready to run and had no core: a busy machine makes nobody hang, nor the compiler that one started."""

from __future__ import annotations

import contextlib
import time
from pathlib import Path

OFTEN = 1.0
"""Seconds after which a look counts as old: calls are many, and few take so long."""

PAUSE = 0.25
"""Seconds from look to look while an answer is waited for: what a compiler lost is told as long as it lives, and several may
come and go."""


class Delays:
    """What a process loses to others, as far as the system tells (Linux does)."""

    def __init__(self, process: int) -> None:
        self._process = process
        self._before: dict[str, int] = {}
        self._looked = -OFTEN

    def look(self) -> None:
        """Begin to count, or not long before now."""
        if time.monotonic() - self._looked >= OFTEN:
            self.lost()

    def lost(self) -> float:
        """Seconds since the last look for which the thread that lost most was ready and did not run, of the process or of one
        that it started."""
        now, before = _waited(self._process), self._before
        self._before, self._looked = now, time.monotonic()
        return max((now[thread] - before.get(thread, 0) for thread in now), default=0) / 1e9


def _waited(process: int) -> dict[str, int]:
    """Nanoseconds that each thread has waited for a core; none where nothing is told."""
    found: dict[str, int] = {}
    family = [str(process)]
    while family:
        with contextlib.suppress(OSError, ValueError, IndexError):
            for thread in Path("/proc", family.pop(), "task").iterdir():
                found[thread.name] = int((thread / "schedstat").read_text(encoding="ascii").split()[1])
                family += (thread / "children").read_text(encoding="ascii").split()
    return found
