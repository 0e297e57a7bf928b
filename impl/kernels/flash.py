"""Launches the flash attention kernels."""

from __future__ import annotations

import mlx.core as mx

from inferspec.impl.kernels.attention import form
from inferspec.impl.kernels.metal import Kernel

NO_MASK, CAUSAL, MASKED = 0, 1, 2
"""mask_kind, as in attention.metal."""

_INPUTS = ["query", "key", "value", "mask", "scale", "mask_kind"]
_vector = Kernel("flash_vector", _INPUTS, headers=["attention"], contiguous=False)
_matrix = Kernel("flash_matrix", _INPUTS, headers=["attention"], contiguous=False)


def launch(query: mx.array, key: mx.array, value: mx.array, scale: float, mask: mx.array | str | None) -> mx.array:
    """Return softmax(query · keyᵀ · scale + mask) · value; the arguments are checked already.

    query: N..×H_q×L×D; key and value: N..×H×S×D; mask: None, "causal", or an array that broadcasts to N..×H_q×L×S.
    Keys, values and masks are read where they are: views of a cache and broadcast masks are not copied.
    """
    if not query.size or not key.size:
        return mx.zeros(query.shape, query.dtype)
    keys = key.shape[-2]
    kind = MASKED if isinstance(mask, mx.array) else CAUSAL if mask else NO_MASK
    # Of 8 elements: smaller ones are in another address space, and the kernel another.
    added = mx.zeros((1, 1, 1, 8), mx.bool_)
    if isinstance(mask, mx.array):
        added = _batched(mx.broadcast_to(_additive(mask), (*query.shape[:-1], keys)))
    batched = [_batched(x) for x in (query, key, value)]
    chosen = form(batched[0], keys)
    attended = (_matrix if chosen.matrix else _vector)(
        [*batched, added, mx.array(scale, mx.float32), kind],
        template=[("T", query.dtype), ("DIM", chosen.dim)],
        grid=chosen.grid,
        threadgroup=chosen.threadgroup,
        shape=batched[0].shape,
        dtype=query.dtype,
    )
    return attended.reshape(query.shape)


def _batched(x: mx.array) -> mx.array:
    """N..×H×L×D as B×H×L×D."""
    return x if x.ndim == 4 else x.reshape(-1, *x.shape[-3:])


def _additive(mask: mx.array) -> mx.array:
    """A mask as the kernels take it: bool, or float32 whose hidden keys have -inf."""
    if mask.dtype == mx.bool_:
        return mask
    return mx.where(mask <= mx.finfo(mask.dtype).min, -mx.inf, mask.astype(mx.float32))
