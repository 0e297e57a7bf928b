"""For the tests of MSL's library: kernels written in one test, run, and their buffers compared."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from .library import Library
from .runtime import Mode, Outcome, Schedule

HEAD = "#include <metal_stdlib>\nusing namespace metal;\n"


def launch(
    source: str,
    buffers: Mapping[str, np.ndarray],
    threads: int,
    *,
    threadgroup: int = 256,
    mode: Mode = Mode.FAST,
    schedule: Schedule | None = None,
) -> Outcome:
    """Runs the kernel ``k`` of ``source``, one thread for each of ``threads``. Its output buffers are changed in place."""
    kernel = Library(HEAD + source, name="snippet.metal").kernel("k")
    return kernel(
        buffers,
        threads=(threads, 1, 1),
        threadgroup=(min(threads, threadgroup), 1, 1),
        mode=mode,
        schedule=schedule,
    )


def same_bits(found: np.ndarray, expected: np.ndarray) -> None:
    """Asserts that two arrays are equal to the bit, where any NaN is as good as another."""
    assert found.dtype == expected.dtype
    integer = np.dtype(f"u{found.dtype.itemsize}")
    differ = found.view(integer) != expected.view(integer)
    if found.dtype.kind in "fV":
        differ &= ~(np.isnan(found.astype(np.float32)) & np.isnan(expected.astype(np.float32)))
    where = np.argwhere(differ)[:5]
    assert not differ.any(), (
        f"{differ.sum()} differ, the first at {where.tolist()}: {found[differ][:5]} not {expected[differ][:5]}"
    )
