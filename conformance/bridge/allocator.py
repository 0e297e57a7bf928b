"""The C library's allocator, told to keep what is freed: a run makes and drops arrays by the hundred thousand."""

from __future__ import annotations

import ctypes

TRIM_THRESHOLD, TOP_PAD, MMAP_THRESHOLD = -1, -2, -3
"""Parameters of glibc's mallopt."""

SETTINGS = {TRIM_THRESHOLD: 1 << 30, TOP_PAD: 1 << 26, MMAP_THRESHOLD: 1 << 25}
"""Bytes. The last is the most that glibc takes."""


def keep_freed_memory() -> bool:
    """Have glibc give memory back to the system late, which saves most page faults; False where there is no glibc."""
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    return mallopt is not None and all(mallopt(name, value) for name, value in SETTINGS.items())
