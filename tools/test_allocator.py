"""Freed memory is kept where the allocator can be told to, and asking does no harm elsewhere."""

from __future__ import annotations

import ctypes
import platform
import resource

import numpy as np

from inferspec.conformance.bridge.allocator import keep_freed_memory

BYTES, TOGETHER, TIMES = 8 << 20, 6, 20
"""glibc keeps by itself twice as much as the largest array that it met, and no more."""


def faults_of(work) -> int:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    work()
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before


def test_memory_is_kept_where_the_library_is_glibc():
    kept, is_glibc = keep_freed_memory(), platform.libc_ver()[0] == "glibc"
    assert kept == is_glibc
    if not kept:
        return

    def use():
        for _ in range(TIMES):
            assert [np.ones(BYTES // 8) for _ in range(TOGETHER)]

    use()
    assert faults_of(use) < TOGETHER * BYTES // resource.getpagesize(), "arrays take new pages every time"


def test_a_library_without_mallopt_is_left_alone(monkeypatch):
    monkeypatch.setattr(ctypes, "CDLL", lambda name: object())
    assert not keep_freed_memory()
