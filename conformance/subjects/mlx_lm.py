"""mlx-lm: the attention, mask, rotary embedding, norm and MLP that its models are built of."""

from __future__ import annotations

from functools import partial
from importlib.metadata import version
from typing import Any

import mlx.core as mx
from mlx import nn
from mlx_lm.models import base, qwen3, rope_utils

from inferspec.conformance.subjects.mlx_core import in_four_dims, positions

NAME = "mlx_lm"
VERSION = version("mlx-lm")
ARRAYS = "mlx"
WAIVERS = "mlx_lm.toml"
PRECISION = {"attention": "native", "rope": "native", "mlp": "native"}


def scaled_dot_product_attention(
    query: mx.array, key: mx.array, value: mx.array, *, scale: float | None = None, mask: Any = None
) -> mx.array:
    return in_four_dims(partial(base.scaled_dot_product_attention, cache=None), query, key, value, scale, mask)


def causal_mask(L: int, S: int, dtype: mx.Dtype) -> mx.array:
    visible = base.create_causal_mask(L, S - L)
    return mx.where(visible, mx.array(0, dtype), mx.array(-mx.inf, dtype))


class RoPE:
    def __init__(self, dims: int, max_positions: int, base: float = 10000, traditional: bool = False) -> None:
        self.rope = rope_utils.initialize_rope(dims, base, traditional, None, max_positions)

    def __call__(self, x: mx.array, offset: Any = None) -> mx.array:
        return self.rope(x.swapaxes(1, 2), offset=positions(offset, x)).swapaxes(1, 2)


class RMSNorm:
    def __init__(self, dims: int, weight: mx.array, eps: float = 1e-5) -> None:
        self.layer = nn.RMSNorm(dims, eps)
        self.layer.load_weights([("weight", weight)])

    def __call__(self, x: mx.array) -> mx.array:
        return self.layer(x)


class SwiGLU:
    def __init__(self, dims: int, hidden_dims: int, w_gate: mx.array, w_up: mx.array, w_down: mx.array) -> None:
        self.layer = qwen3.MLP(dims, hidden_dims)
        projections = {"gate_proj": w_gate, "up_proj": w_up, "down_proj": w_down}
        self.layer.load_weights([(f"{name}.weight", weight) for name, weight in projections.items()])

    def __call__(self, x: mx.array) -> mx.array:
        return self.layer(x)
