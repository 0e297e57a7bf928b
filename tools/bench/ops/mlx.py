"""MLX as it ships: ``mx.fast``, ``mx.quantized_matmul`` and ``mlx.nn``, called as mlx-lm's models call them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import SimpleNamespace
from typing import Any

import mlx.core as mx
from mlx import nn

ARRAYS = "mlx"
NOTES: Mapping[str, str] = {"paged_attention": "gathers the pages"}

Put = Callable[[Any], Any]
Call = Callable[[], Any]


def use(threads: int) -> None:
    """MLX has no such setting."""


def _linear(a: SimpleNamespace, put: Put) -> Call:
    x, weight = put(a.x), put(a.weight)
    return lambda: x @ weight.T


def _swiglu(a: SimpleNamespace, put: Put) -> Call:
    x, gate, up, down = put(a.x), put(a.w_gate), put(a.w_up), put(a.w_down)
    return lambda: (nn.silu(x @ gate.T) * (x @ up.T)) @ down.T


def _rms_norm(a: SimpleNamespace, put: Put) -> Call:
    x, weight = put(a.x), put(a.weight)
    return lambda: mx.fast.rms_norm(x, weight, a.eps)


def _softmax(a: SimpleNamespace, put: Put) -> Call:
    x = put(a.x)
    return lambda: mx.softmax(x, axis=a.axis, precise=True)


def _rope(a: SimpleNamespace, put: Put) -> Call:
    x, settings = put(a.x), {"traditional": a.traditional, "base": float(a.base), "scale": 1.0, "offset": a.offset}
    return lambda: mx.fast.rope(x.swapaxes(1, 2), a.dims, **settings).swapaxes(1, 2)


def _quantized_matmul(a: SimpleNamespace, put: Put) -> Call:
    x, packed, scales, biases = put(a.x), put(a.packed), put(a.scales), put(a.biases)
    group, bits = a.group_size, a.bits
    return lambda: mx.quantized_matmul(x, packed, scales, biases, transpose=True, group_size=group, bits=bits)


def _quantized_embedding(a: SimpleNamespace, put: Put) -> Call:
    tokens, packed, scales, biases = put(a.tokens), put(a.packed), put(a.scales), put(a.biases)
    group, bits = a.group_size, a.bits
    return lambda: mx.dequantize(packed[tokens], scales[tokens], biases[tokens], group_size=group, bits=bits)


def _embedding(a: SimpleNamespace, put: Put) -> Call:
    tokens, weight = put(a.tokens), put(a.weight)
    return lambda: weight[tokens]


def _attention(a: SimpleNamespace, put: Put) -> Call:
    query, key, value = put(a.query), put(a.key), put(a.value)
    scale = query.shape[-1] ** -0.5
    return lambda: mx.fast.scaled_dot_product_attention(query, key, value, scale=scale, mask=a.mask)


def _paged_attention(a: SimpleNamespace, put: Put) -> Call:
    """All contexts of a case are of one length, so that no mask is needed."""
    query, keys, values, table = put(a.query), put(a.key_pages), put(a.value_pages), put(a.block_table)
    scale, length = query.shape[-1] ** -0.5, int(a.context_lens[0])

    def gathered(pool: mx.array) -> mx.array:
        return pool[table].swapaxes(1, 2).flatten(2, 3)[:, :, :length]

    return lambda: mx.fast.scaled_dot_product_attention(query, gathered(keys), gathered(values), scale=scale)


CONTENDERS: Mapping[str, Callable[[SimpleNamespace, Put], Call]] = {
    "linear": _linear,
    "swiglu": _swiglu,
    "rms_norm": _rms_norm,
    "softmax": _softmax,
    "rope": _rope,
    "quantized_matmul": _quantized_matmul,
    "quantized_head": _quantized_matmul,
    "embedding": _embedding,
    "quantized_embedding": _quantized_embedding,
    "flash_attention": _attention,
    "decode_attention": _attention,
    "paged_attention": _paged_attention,
}
