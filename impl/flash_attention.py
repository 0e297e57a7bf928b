"""Flash attention: our own kernels where there is Metal; elsewhere it is attention, which has a kernel for the CPU.

Sources: Milakov and Gimelshein 2018 (online softmax); Dao et al. 2022 (FlashAttention); the tiny-llm course, week 2 day 4.
"""

from __future__ import annotations

import mlx.core as mx

from inferspec.impl.attention import check_inputs, check_mask, scaled_dot_product_attention
from inferspec.impl.kernels import flash as kernel
from inferspec.impl.kernels import metal
from inferspec.impl.kernels.attention import takes


def flash_attention(
    query: mx.array,
    key: mx.array,
    value: mx.array,
    *,
    scale: float | None = None,
    mask: mx.array | str | None = None,
) -> mx.array:
    """Return softmax(query · keyᵀ · scale + mask) · value.

    query: N..×H_q×L×D; key and value: N..×H×S×D, H_q a multiple of H: query head h reads key head h // (H_q / H).
    scale: what the logits are multiplied by, D^-0.5 by default.
    mask: None; "causal" (query i sees the keys j <= i + S - L); or an array that broadcasts to N..×H_q×L×S, either bool
    (True is visible) or floating-point and added to the scaled logits (-inf or the dtype's lowest number hides a key).

    The result is N..×H_q×L×D in the query's dtype; a row that sees no key is zeros. ValueError for shapes that do not
    fit and for an unknown mask name; TypeError for wrong dtypes.
    """
    check_inputs(query, key, value)
    check_mask(mask, (*query.shape[:-1], key.shape[-2]))
    if metal.runs(query, key, value) and takes(query):
        return kernel.launch(query, key, value, query.shape[-1] ** -0.5 if scale is None else scale, mask)
    return scaled_dot_product_attention(query, key, value, scale=scale, mask=mask)
