"""mlx-lm's own attention, rotary embedding and MLP; its other layers are MLX's."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import SimpleNamespace
from typing import Any

from mlx_lm.models import base, qwen3, rope_utils

ARRAYS = "mlx"
NOTES: Mapping[str, str] = {}

Put = Callable[[Any], Any]
Call = Callable[[], Any]


def use(threads: int) -> None:
    """MLX has no such setting."""


def _swiglu(a: SimpleNamespace, put: Put) -> Call:
    x, layer = put(a.x), qwen3.MLP(a.dims, a.hidden_dims)
    projections = {"gate_proj": a.w_gate, "up_proj": a.w_up, "down_proj": a.w_down}
    layer.load_weights([(f"{name}.weight", put(weight)) for name, weight in projections.items()])
    return lambda: layer(x)


def _rope(a: SimpleNamespace, put: Put) -> Call:
    x, rope = put(a.x), rope_utils.initialize_rope(a.dims, a.base, a.traditional, None, a.max_positions)
    return lambda: rope(x.swapaxes(1, 2), offset=a.offset).swapaxes(1, 2)


def _attention(a: SimpleNamespace, put: Put) -> Call:
    query, key, value = put(a.query), put(a.key), put(a.value)
    scale = query.shape[-1] ** -0.5
    return lambda: base.scaled_dot_product_attention(query, key, value, cache=None, scale=scale, mask=a.mask)


CONTENDERS: Mapping[str, Callable[[SimpleNamespace, Put], Call]] = {
    "swiglu": _swiglu,
    "rope": _rope,
    "flash_attention": _attention,
    "decode_attention": _attention,
}
