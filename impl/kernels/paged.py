"""Launches the paged attention kernels."""

from __future__ import annotations

import mlx.core as mx

from inferspec.impl.kernels.attention import form
from inferspec.impl.kernels.metal import Kernel

_INPUTS = ["query", "key_pages", "value_pages", "block_table", "context_lens", "scale", "causal"]
_vector = Kernel("paged_vector", _INPUTS, headers=["attention"])
_matrix = Kernel("paged_matrix", _INPUTS, headers=["attention"])


def launch(
    query: mx.array,
    key_pages: mx.array,
    value_pages: mx.array,
    block_table: mx.array,
    context_lens: mx.array,
    scale: float,
    causal: bool,
) -> mx.array:
    """Return attention of each request's queries over the keys in its pages; the arguments are checked already.

    query: B×H_q×L×D; key_pages and value_pages: P×H×page×D; block_table: B×max_pages; context_lens: B, none negative
    and none beyond the pages of the table. Entries of the table that a context does not reach may hold anything.
    """
    if not query.size or not key_pages.size or not block_table.size:
        return mx.zeros(query.shape, query.dtype)
    chosen = form(query, block_table.shape[1] * key_pages.shape[2])
    return (_matrix if chosen.matrix else _vector)(
        [
            query,
            key_pages,
            value_pages,
            block_table.astype(mx.int32),
            context_lens.astype(mx.int32),
            mx.array(scale, mx.float32),
            causal,
        ],
        template=[("T", query.dtype), ("DIM", chosen.dim)],
        grid=chosen.grid,
        threadgroup=chosen.threadgroup,
        shape=query.shape,
        dtype=query.dtype,
    )
