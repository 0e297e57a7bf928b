"""Goldens of attention and of multi-head attention."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch
from torch.nn import functional as F

from inferspec.spec import attention as spec
from inferspec.spec.numerics import largest
from inferspec.tools.recipes import Case, Draw


def grouped_attention(
    query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, scale: float | None, mask: Any
) -> torch.Tensor:
    lead, length, keys = query.shape[:-3], query.shape[-2], key.shape[-2]
    visible = _explicit(mask, length, keys)
    if visible is not None:
        visible = visible.expand(*query.shape[:-1], keys).flatten(0, -4) if lead else visible[None]
    q, k, v = (x.reshape(-1, *x.shape[-3:]) for x in (query, key, value))
    out = F.scaled_dot_product_attention(q, k, v, attn_mask=visible, scale=scale, enable_gqa=True)
    return out.reshape(*lead, *out.shape[-3:])


def torch_multi_head(
    hidden_size: int,
    num_heads: int,
    wq: torch.Tensor,
    wk: torch.Tensor,
    wv: torch.Tensor,
    wo: torch.Tensor,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    mask: Any,
) -> torch.Tensor:
    """PyTorch's own multi-head attention, which has heads·D = hidden_size, the sequence first, and True for hidden."""
    bias = _explicit(mask, query.shape[-2], key.shape[-2])
    if bias is not None:
        bias = bias.flatten(0, -3) if bias.ndim > 3 else bias
        bias = ~bias if bias.dtype == torch.bool else bias
    out, _ = F.multi_head_attention_forward(
        query.transpose(0, 1),
        key.transpose(0, 1),
        value.transpose(0, 1),
        hidden_size,
        num_heads,
        in_proj_weight=None,
        in_proj_bias=None,
        bias_k=None,
        bias_v=None,
        add_zero_attn=False,
        dropout_p=0.0,
        out_proj_weight=wo,
        out_proj_bias=None,
        training=False,
        need_weights=False,
        attn_mask=bias,
        use_separate_proj_weight=True,
        q_proj_weight=wq,
        k_proj_weight=wk,
        v_proj_weight=wv,
    )
    return out.transpose(0, 1)


def free_multi_head(
    hidden_size: int,
    num_heads: int,
    wq: torch.Tensor,
    wk: torch.Tensor,
    wv: torch.Tensor,
    wo: torch.Tensor,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    mask: Any,
) -> torch.Tensor:
    """For any head dim, without array masks: each head on its own, with its rows of the weights, its columns of wo."""
    heads = zip(*(w.chunk(num_heads) for w in (wq, wk, wv)), wo.chunk(num_heads, dim=1), strict=True)
    visible = _explicit(mask, query.shape[-2], key.shape[-2])
    total = torch.zeros(())
    for q, k, v, o in heads:
        one = F.scaled_dot_product_attention(
            F.linear(query, q), F.linear(key, k), F.linear(value, v), attn_mask=visible
        )
        total = total + F.linear(one, o)
    return total


def _explicit(mask: Any, length: int, keys: int) -> torch.Tensor | None:
    """The mask as a tensor; causal is aligned bottom-right, which PyTorch's `is_causal` is not."""
    return torch.ones(length, keys, dtype=torch.bool).tril(keys - length) if isinstance(mask, str) else mask


def _mask(draw: Draw, kind: str, shape: tuple[int, ...], dtype: str) -> Any:
    if kind in ("none", "causal"):
        return None if kind == "none" else kind
    if kind == "additive":
        return draw.values(*shape, size=3.0)
    visible = draw.flags(*shape)
    if kind == "bool":
        return visible
    return draw.exactly(np.where(visible, 0.0, -np.inf if kind == "-inf" else -largest(dtype)))


def attention_case(
    name: str,
    requirement: Any,
    seed: int,
    dtype: str,
    lead: tuple[int, ...],
    heads: tuple[int, int],
    lengths: tuple[int, int],
    dim: int,
    scale: float | None = None,
    mask: str = "none",
    mask_shape: tuple[int, ...] = (),
) -> Case:
    """heads: of key and value, and how many query heads share each. lengths: L and S."""
    length, keys = lengths

    def inputs(draw: Draw) -> dict[str, Any]:
        return {
            "query": draw.values(*lead, math.prod(heads), length, dim),
            "key": draw.values(*lead, heads[0], keys, dim),
            "value": draw.values(*lead, heads[0], keys, dim),
            "scale": scale,
            "mask": _mask(draw, mask, mask_shape, dtype),
        }

    features = {
        "dtypes": dtype,
        "head_dims": dim,
        "ratios": heads[1],
        "leading_dims": lead,
        "masks": mask,
        "scales": "default" if scale is None else "given",
        **({"scale_signs": "any"} if scale is not None and scale <= 0 else {}),
        "more_queries": length > keys,
        "keys": keys,
    }
    return Case(name, requirement, seed, features, inputs, grouped_attention)


def _multi_head(
    name: str,
    requirement: Any,
    seed: int,
    dtype: str,
    lengths: tuple[int, int],
    hidden: int,
    heads: int,
    dim: int,
    mask: str = "none",
) -> Case:
    """An array mask has the full shape, batch × heads × L × S."""
    length, keys = lengths
    free = heads * dim != hidden

    def inputs(draw: Draw) -> dict[str, Any]:
        weights = {weight: draw.values(heads * dim, hidden, size=0.6) for weight in ("wq", "wk", "wv")}
        return {
            "hidden_size": hidden,
            "num_heads": heads,
            **weights,
            "wo": draw.values(hidden, heads * dim, size=0.6),
            "query": draw.values(2, length, hidden),
            "key": draw.values(2, keys, hidden),
            "value": draw.values(2, keys, hidden),
            "mask": _mask(draw, mask, (2, heads, length, keys), dtype),
        }

    features = {
        "dtypes": dtype,
        "leading_dims": (2,),
        "masks": mask,
        "free_head_dim": free,
        "other_lengths": length != keys,
        "more_queries": length > keys,
        "keys": keys,
    }
    return Case(name, requirement, seed, features, inputs, free_multi_head if free else torch_multi_head)


CASES = (
    attention_case("plain", spec.ATTN_01, 1, "float32", (2,), (3, 1), (5, 7), 8),
    attention_case("plain-bfloat16", spec.ATTN_01, 2, "bfloat16", (2,), (2, 1), (4, 9), 16),
    attention_case("scale", spec.ATTN_02, 3, "float32", (), (2, 1), (5, 6), 4, scale=-0.7),
    attention_case("scale-zero", spec.ATTN_02, 4, "float32", (1,), (2, 1), (3, 6), 8, scale=0.0),
    attention_case("grouped", spec.ATTN_03, 5, "float16", (1,), (2, 3), (4, 5), 8),
    attention_case("one-key-head", spec.ATTN_03, 6, "bfloat16", (2, 3), (1, 5), (2, 6), 4),
    attention_case("bool-mask", spec.ATTN_04, 7, "float32", (2,), (2, 2), (3, 8), 4, None, "bool", (4, 1, 8)),
    attention_case(
        "additive-mask", spec.ATTN_04, 8, "float16", (2,), (3, 1), (4, 6), 8, None, "additive", (2, 1, 4, 6)
    ),
    attention_case("causal", spec.ATTN_05, 9, "float32", (1,), (2, 2), (4, 7), 8, None, "causal"),
    attention_case("causal-square", spec.ATTN_05, 10, "bfloat16", (2,), (2, 1), (6, 6), 8, None, "causal"),
    attention_case("infinity-mask", spec.ATTN_06, 11, "bfloat16", (1,), (2, 3), (3, 5), 8, None, "-inf", (3, 5)),
    attention_case("lowest-mask", spec.ATTN_06, 12, "float16", (2,), (2, 1), (3, 7), 4, 0.9, "lowest", (2, 3, 7)),
    _multi_head("multi-head", spec.MHA_01, 21, "float32", (4, 6), 12, 3, 4),
    _multi_head("multi-head-bfloat16", spec.MHA_01, 22, "bfloat16", (5, 3), 8, 2, 4),
    _multi_head("multi-head-free-head-dim", spec.MHA_03, 23, "float32", (3, 5), 10, 2, 3),
    _multi_head("multi-head-wide-heads", spec.MHA_03, 26, "bfloat16", (4, 3), 6, 2, 5),
    _multi_head("multi-head-causal", spec.MHA_04, 24, "float16", (3, 6), 8, 4, 2, "causal"),
    _multi_head("multi-head-bool-mask", spec.MHA_04, 25, "float32", (4, 5), 9, 3, 3, "bool"),
    _multi_head("multi-head-additive-mask", spec.MHA_04, 27, "float32", (3, 4), 8, 2, 4, "additive"),
)
