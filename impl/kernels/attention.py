"""What the launchers of the attention kernels share."""

from __future__ import annotations

from dataclasses import dataclass

import mlx.core as mx

from inferspec.impl.kernels.metal import SIMDGROUP, has_matrices, threads

MATRIX = 8
"""Rows and columns of a SIMD-group matrix; fewer queries than that are cheaper one by one."""
KEYS_PER_SIMDGROUP = 64
"""Keys of a decoded row that are worth a SIMD-group of their own."""
ROW_SIMDGROUPS = 8
"""SIMD-groups that share a decoded row, at most, as in attention.metal."""
TILE_SIMDGROUPS = 4
"""SIMD-groups that share tiles of keys, at most."""
LARGEST_DIM = 256
"""Of a head: its queries and results are in registers."""


@dataclass(frozen=True)
class Form:
    """Which form of an attention kernel fits, and its grid."""

    matrix: bool
    dim: int
    """The head dim that the kernel is compiled for."""
    grid: tuple[int, int, int]
    threadgroup: tuple[int, int, int]


def form(query: mx.array, keys: int) -> Form:
    """The form for a query, B×H_q×L×D, and so many keys of each head; no dim is 0."""
    batch, heads, queries, dim = query.shape
    if queries >= MATRIX and has_matrices():
        simdgroups = min(-(-queries // MATRIX), TILE_SIMDGROUPS)
        blocks = -(-queries // (MATRIX * simdgroups))
        return Form(
            True, _multiple(dim, MATRIX), (threads(simdgroups), blocks, batch * heads), (threads(simdgroups), 1, 1)
        )
    simdgroups = min(-(-keys // KEYS_PER_SIMDGROUP), ROW_SIMDGROUPS)
    return Form(
        False, _multiple(dim, SIMDGROUP), (threads(simdgroups), heads * queries, batch), (threads(simdgroups), 1, 1)
    )


def takes(query: mx.array) -> bool:
    """Whether the kernels take heads of that size."""
    return query.shape[-1] <= LARGEST_DIM


def _multiple(dim: int, of: int) -> int:
    return -(-dim // of) * of
