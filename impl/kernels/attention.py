"""What the launchers of the attention kernels share."""

from __future__ import annotations

from dataclasses import dataclass

import mlx.core as mx

from inferspec.impl.kernels.metal import has_matrices, threads

FEW_QUERIES = 8
"""Fewer queries than an 8×8 matrix has rows are cheaper one by one."""
KEYS_PER_SIMDGROUP = 64
"""Keys of a decoded row that are worth a SIMD-group of their own."""
ROW_SIMDGROUPS, TILE_SIMDGROUPS = 8, 4
"""SIMD-groups of a threadgroup, at most, as in attention.metal."""
ROWS_PER_SIMDGROUP = 8
LARGEST_DIM = 256
"""Of a head: its queries and results are in registers."""


@dataclass(frozen=True)
class Form:
    """Which form of an attention kernel fits, and its grid."""

    matrix: bool
    grid: tuple[int, int, int]
    threadgroup: tuple[int, int, int]


def form(batch: int, heads: int, queries: int, keys: int) -> Form:
    """The form for so many queries and keys of each head; the numbers are positive."""
    if queries >= FEW_QUERIES and has_matrices():
        simdgroups = min(-(-queries // ROWS_PER_SIMDGROUP), TILE_SIMDGROUPS)
        blocks = -(-queries // (ROWS_PER_SIMDGROUP * simdgroups))
        return Form(True, (threads(simdgroups), blocks, batch * heads), (threads(simdgroups), 1, 1))
    simdgroups = min(-(-keys // KEYS_PER_SIMDGROUP), ROW_SIMDGROUPS)
    return Form(False, (threads(simdgroups), heads * queries, batch), (threads(simdgroups), 1, 1))


def takes(query: mx.array) -> bool:
    """Whether the kernels take heads of that size."""
    return query.shape[-1] <= LARGEST_DIM


def padded(dim: int) -> int:
    """The head dim that a kernel is compiled for: whole 8×8 matrices."""
    return -(-dim // 8) * 8
