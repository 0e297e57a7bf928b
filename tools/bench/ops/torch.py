"""PyTorch. It has no products with packed weights on a CPU: it takes them dense, restored once, in the dtype of the case."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F

from inferspec.spec.quantization import restored

ARRAYS = "torch"
NOTES: Mapping[str, str] = {
    "quantized_matmul": "dense",
    "quantized_head": "dense",
    "quantized_embedding": "dense",
    "paged_attention": "gathers the pages",
}

Put = Callable[[Any], Any]
Call = Callable[[], Any]


def use(threads: int) -> None:
    """Use so many threads, and keep no graph."""
    torch.set_num_threads(threads)
    torch.set_grad_enabled(False)


def _linear(a: SimpleNamespace, put: Put) -> Call:
    x, weight = put(a.x), put(a.weight)
    return lambda: F.linear(x, weight)


def _swiglu(a: SimpleNamespace, put: Put) -> Call:
    x, gate, up, down = put(a.x), put(a.w_gate), put(a.w_up), put(a.w_down)
    return lambda: F.linear(F.silu(F.linear(x, gate)) * F.linear(x, up), down)


def _rms_norm(a: SimpleNamespace, put: Put) -> Call:
    x, weight = put(a.x), put(a.weight)
    return lambda: F.rms_norm(x, (a.dims,), weight, a.eps)


def _softmax(a: SimpleNamespace, put: Put) -> Call:
    x = put(a.x)
    return lambda: F.softmax(x, dim=a.axis)


def _dense(a: SimpleNamespace) -> np.ndarray:
    """The weights of the packed ones, restored for the first copy alone."""
    if not hasattr(a, "dense"):
        parts = {"packed": a.packed, "scales": a.scales, "biases": a.biases}
        a.dense = restored(parts, a.group_size, a.bits).astype(a.scales.dtype)
    return a.dense


def _dense_matmul(a: SimpleNamespace, put: Put) -> Call:
    x, weight = put(a.x), put(_dense(a))
    return lambda: F.linear(x, weight)


def _embedding(a: SimpleNamespace, put: Put) -> Call:
    tokens, weight = put(a.tokens).long(), put(a.weight)
    return lambda: F.embedding(tokens, weight)


def _dense_embedding(a: SimpleNamespace, put: Put) -> Call:
    tokens, weight = put(a.tokens).long(), put(_dense(a))
    return lambda: F.embedding(tokens, weight)


def _attention(a: SimpleNamespace, put: Put) -> Call:
    """Queries and keys are as many, or the query is one: torch's causal mask, aligned top-left, is the same."""
    query, key, value = put(a.query), put(a.key), put(a.value)
    causal = a.mask == "causal"
    return lambda: F.scaled_dot_product_attention(query, key, value, is_causal=causal, enable_gqa=True)


def _paged_attention(a: SimpleNamespace, put: Put) -> Call:
    """All contexts of a case are of one length, so that no mask is needed."""
    query, keys, values, table = put(a.query), put(a.key_pages), put(a.value_pages), put(a.block_table).long()
    length = int(a.context_lens[0])

    def gathered(pool: torch.Tensor) -> torch.Tensor:
        return pool[table].transpose(1, 2).flatten(2, 3)[:, :, :length]

    return lambda: F.scaled_dot_product_attention(query, gathered(keys), gathered(values), enable_gqa=True)


CONTENDERS: Mapping[str, Callable[[SimpleNamespace, Put], Call]] = {
    "linear": _linear,
    "swiglu": _swiglu,
    "rms_norm": _rms_norm,
    "softmax": _softmax,
    "quantized_matmul": _dense_matmul,
    "quantized_head": _dense_matmul,
    "embedding": _embedding,
    "quantized_embedding": _dense_embedding,
    "flash_attention": _attention,
    "decode_attention": _attention,
    "paged_attention": _paged_attention,
}
