"""The kit's own implementation, on the path that the process's environment makes it take."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import SimpleNamespace
from typing import Any

from inferspec.impl.attention import scaled_dot_product_attention
from inferspec.impl.embedding import Embedding
from inferspec.impl.flash_attention import flash_attention
from inferspec.impl.linear import linear, softmax
from inferspec.impl.mlp import SwiGLU
from inferspec.impl.paged_attention import paged_attention
from inferspec.impl.quantization import QuantizedEmbedding, QuantizedLinear
from inferspec.impl.rms_norm import RMSNorm
from inferspec.impl.rope import RoPE

ARRAYS = "mlx"
NOTES: Mapping[str, str] = {}

Put = Callable[[Any], Any]
Call = Callable[[], Any]


def use(threads: int) -> None:
    """The process's environment says it (INFERSPEC_THREADS)."""


def _linear(a: SimpleNamespace, put: Put) -> Call:
    x, weight = put(a.x), put(a.weight)
    return lambda: linear(x, weight)


def _swiglu(a: SimpleNamespace, put: Put) -> Call:
    x, layer = put(a.x), SwiGLU(a.dims, a.hidden_dims, put(a.w_gate), put(a.w_up), put(a.w_down))
    return lambda: layer(x)


def _rms_norm(a: SimpleNamespace, put: Put) -> Call:
    x, norm = put(a.x), RMSNorm(a.dims, put(a.weight), a.eps)
    return lambda: norm(x)


def _softmax(a: SimpleNamespace, put: Put) -> Call:
    x = put(a.x)
    return lambda: softmax(x, a.axis)


def _rope(a: SimpleNamespace, put: Put) -> Call:
    x, rope = put(a.x), RoPE(a.dims, a.max_positions, a.base, a.traditional)
    return lambda: rope(x, a.offset)


def _quantized_matmul(a: SimpleNamespace, put: Put) -> Call:
    # The layer, as a model has it: what can be done once is done when it is made.
    x, layer = put(a.x), QuantizedLinear(put(a.packed), put(a.scales), put(a.biases), a.group_size, a.bits)
    return lambda: layer(x)


def _table(a: SimpleNamespace, put: Put) -> QuantizedEmbedding:
    return QuantizedEmbedding(put(a.packed), put(a.scales), put(a.biases), a.group_size, a.bits)


def _quantized_head(a: SimpleNamespace, put: Put) -> Call:
    x, table = put(a.x), _table(a, put)
    return lambda: table.as_linear(x)


def _embedding(a: SimpleNamespace, put: Put) -> Call:
    tokens, table = put(a.tokens), Embedding(a.vocab_size, a.dims, put(a.weight))
    return lambda: table(tokens)


def _quantized_embedding(a: SimpleNamespace, put: Put) -> Call:
    tokens, table = put(a.tokens), _table(a, put)
    return lambda: table(tokens)


def _flash_attention(a: SimpleNamespace, put: Put) -> Call:
    query, key, value = put(a.query), put(a.key), put(a.value)
    return lambda: flash_attention(query, key, value, mask=a.mask)


def _decode_attention(a: SimpleNamespace, put: Put) -> Call:
    query, key, value = put(a.query), put(a.key), put(a.value)
    return lambda: scaled_dot_product_attention(query, key, value, mask=a.mask)


def _paged_attention(a: SimpleNamespace, put: Put) -> Call:
    query, keys, values = put(a.query), put(a.key_pages), put(a.value_pages)
    table, lens = put(a.block_table), put(a.context_lens)
    return lambda: paged_attention(query, keys, values, table, lens, page_size=a.page_size, mask=a.mask)


CONTENDERS: Mapping[str, Callable[[SimpleNamespace, Put], Call]] = {
    "linear": _linear,
    "swiglu": _swiglu,
    "rms_norm": _rms_norm,
    "softmax": _softmax,
    "rope": _rope,
    "quantized_matmul": _quantized_matmul,
    "quantized_head": _quantized_head,
    "embedding": _embedding,
    "quantized_embedding": _quantized_embedding,
    "flash_attention": _flash_attention,
    "decode_attention": _decode_attention,
    "paged_attention": _paged_attention,
}
