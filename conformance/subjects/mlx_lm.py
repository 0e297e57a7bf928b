"""mlx-lm: the building blocks of its models, and its quantized-cache attention's dense sibling."""

from __future__ import annotations

from importlib.metadata import version
from typing import Any

import mlx.core as mx
from mlx import nn
from mlx_lm.models import base, qwen3, rope_utils

NAME = "mlx_lm"
VERSION = version("mlx-lm")
ARRAYS = "mlx"
#WAIVERS = "mlx_lm.toml"
PRECISION = {"attention": "native", "rope": "native", "mlp": "native"}


def scaled_dot_product_attention(
    query: mx.array, key: mx.array, value: mx.array, *, scale: float | None = None, mask: Any = None
) -> mx.array:
    four = [x.reshape(-1, *x.shape[-3:]) for x in (query, key, value)]
    if isinstance(mask, mx.array):
        mask = mx.broadcast_to(mask, (*query.shape[:-1], key.shape[-2])).reshape(-1, *query.shape[-3:-1], key.shape[-2])
    scale = query.shape[-1] ** -0.5 if scale is None else scale
    return base.scaled_dot_product_attention(*four, cache=None, scale=scale, mask=mask).reshape(query.shape)


def causal_mask(L: int, S: int, dtype: mx.Dtype) -> mx.array:
    visible = base.create_causal_mask(L, S - L)
    return mx.where(visible, mx.array(0, dtype), mx.array(-mx.inf, dtype))


class RoPE:
    def __init__(self, dims: int, max_positions: int, base: float = 10000, traditional: bool = False) -> None:
        self.rope = rope_utils.initialize_rope(dims, base, traditional, None, max_positions)

    def __call__(self, x: mx.array, offset: Any = None) -> mx.array:
        starts = [o.start for o in offset] if isinstance(offset, list) else getattr(offset, "start", offset) or 0
        start = mx.array(starts) if isinstance(starts, list) else starts
        return self.rope(x.swapaxes(1, 2), offset=start).swapaxes(1, 2)


class RMSNorm:
    def __init__(self, dims: int, weight: mx.array, eps: float = 1e-5) -> None:
        self.layer = nn.RMSNorm(dims, eps)
        self.layer.update({"weight": weight})

    def __call__(self, x: mx.array) -> mx.array:
        return self.layer(x)


class SwiGLU:
    def __init__(self, dims: int, hidden_dims: int, w_gate: mx.array, w_up: mx.array, w_down: mx.array) -> None:
        self.layer = qwen3.MLP(dims, hidden_dims)
        projections = {"gate_proj": w_gate, "up_proj": w_up, "down_proj": w_down}
        self.layer.update({name: {"weight": weight} for name, weight in projections.items()})

    def __call__(self, x: mx.array) -> mx.array:
        return self.layer(x)
