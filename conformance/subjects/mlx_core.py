"""MLX as it ships: ``mx.fast`` and ``mlx.nn``, a few lines of adapter each."""

from __future__ import annotations

import math
from importlib.metadata import version
from typing import Any

import mlx.core as mx
from mlx import nn

from inferspec.conformance.subjects.offsets import start_of

NAME = "mlx_core"
VERSION = version("mlx")
ARRAYS = "mlx"
ENVELOPE = {"attention": {"free_head_dim": [False]}, "quantization": {"dtypes": ["float32"]}}
"""On a CPU, MLX accumulates quantised products in the input's dtype: over 4,096 features in float16 one is 10 % off."""
WAIVERS = "mlx_core.toml"
PRECISION = dict.fromkeys(("linear", "attention", "flash_attention", "rope", "mlp"), "native")
"""On a CPU, MLX's half-precision fallbacks round each step to the input's dtype."""

silu = nn.silu


def linear(x: mx.array, weight: mx.array, bias: mx.array | None = None) -> mx.array:
    return x @ weight.T if bias is None else mx.addmm(bias, x, weight.T)


def softmax(x: mx.array, axis: int = -1) -> mx.array:
    return mx.softmax(x, axis=axis, precise=True)


def scaled_dot_product_attention(
    query: mx.array, key: mx.array, value: mx.array, *, scale: float | None = None, mask: Any = None
) -> mx.array:
    return in_four_dims(mx.fast.scaled_dot_product_attention, query, key, value, scale, mask)


def in_four_dims(
    attend: Any, query: mx.array, key: mx.array, value: mx.array, scale: float | None, mask: Any
) -> mx.array:
    """Call an attention that takes exactly one leading dim and no default scale."""
    rows = math.prod(query.shape[:-3])
    if isinstance(mask, mx.array):
        full = (*query.shape[:-1], key.shape[-2])
        mask = mx.broadcast_to(mask, full).reshape(rows, *full[-3:])
    scale = query.shape[-1] ** -0.5 if scale is None else scale
    four = [x.reshape(rows, *x.shape[-3:]) for x in (query, key, value)]
    return attend(*four, scale=scale, mask=mask).reshape(query.shape)


flash_attention = scaled_dot_product_attention


class MultiHeadAttention:
    """``nn.MultiHeadAttention`` takes one leading dim."""

    def __init__(
        self, hidden_size: int, num_heads: int, wq: mx.array, wk: mx.array, wv: mx.array, wo: mx.array
    ) -> None:
        self.layer: Any = nn.MultiHeadAttention(hidden_size, num_heads, value_dims=wv.shape[0])
        projections = {"query_proj": wq, "key_proj": wk, "value_proj": wv, "out_proj": wo}
        self.layer.load_weights([(f"{name}.weight", weight) for name, weight in projections.items()])

    def __call__(self, query: mx.array, key: mx.array, value: mx.array, mask: Any = None) -> mx.array:
        three = [x.reshape(-1, *x.shape[-2:]) for x in (query, key, value)]
        if isinstance(mask, mx.array):
            full = (*query.shape[:-2], self.layer.num_heads, query.shape[-2], key.shape[-2])
            mask = mx.broadcast_to(mask, full).reshape(-1, *full[-3:])
        return self.layer(*three, mask).reshape(query.shape)


def positions(offset: Any, x: mx.array) -> Any:
    """The offset as ``mx.fast.rope`` takes it: an int, or an array with one start for each batch row."""
    if isinstance(offset, list):
        if len(offset) != x.shape[0]:
            raise ValueError(f"offset has {len(offset)} slices for {x.shape[0]} rows")
        return mx.array([positions(row, x) for row in offset], mx.int32) if offset else 0
    return start_of(offset, x.shape[1])


class RoPE:
    def __init__(self, dims: int, max_positions: int, base: float = 10000, traditional: bool = False) -> None:
        self.dims, self.base, self.traditional = dims, base, traditional

    def __call__(self, x: mx.array, offset: Any = None) -> mx.array:
        start = positions(offset, x)
        options = {"traditional": self.traditional, "base": self.base, "scale": 1.0, "offset": start}
        return mx.fast.rope(x.swapaxes(1, 2), self.dims, **options).swapaxes(1, 2)


class RMSNorm:
    def __init__(self, dims: int, weight: mx.array, eps: float = 1e-5) -> None:
        self.weight, self.eps = weight, eps

    def __call__(self, x: mx.array) -> mx.array:
        return mx.fast.rms_norm(x, self.weight, self.eps)


class SwiGLU:
    def __init__(self, dims: int, hidden_dims: int, w_gate: mx.array, w_up: mx.array, w_down: mx.array) -> None:
        self.gate, self.up = (nn.Linear(dims, hidden_dims, bias=False) for _ in range(2))
        self.down = nn.Linear(hidden_dims, dims, bias=False)
        for layer, weight in ((self.gate, w_gate), (self.up, w_up), (self.down, w_down)):
            layer.load_weights([("weight", weight)])

    def __call__(self, x: mx.array) -> mx.array:
        return self.down(nn.silu(self.gate(x)) * self.up(x))


class Embedding:
    def __init__(self, vocab_size: int, dims: int, weight: mx.array) -> None:
        self.layer = nn.Embedding(vocab_size, dims)
        self.layer.load_weights([("weight", weight)])

    def __call__(self, tokens: mx.array) -> mx.array:
        return self.layer(tokens)

    def as_linear(self, x: mx.array) -> mx.array:
        return self.layer.as_linear(x)


class Sampler:
    """``mx.random.categorical``, with a key of its own when it is given a seed."""

    def __init__(self, temperature: float = 0, seed: int | None = None) -> None:
        self.temperature, self.key = temperature, None if seed is None else mx.random.key(seed)

    def __call__(self, logits: mx.array) -> mx.array:
        if self.temperature == 0:
            return mx.argmax(logits, axis=-1)
        key = None
        if self.key is not None:
            self.key, key = mx.random.split(self.key)
        return mx.random.categorical(logits / self.temperature, key=key)


def quantize(w: mx.array, group_size: int = 128, bits: int = 4) -> tuple[mx.array, ...]:
    return mx.quantize(w, group_size=group_size, bits=bits)


def dequantize(packed: mx.array, scales: mx.array, biases: mx.array, group_size: int = 128, bits: int = 4) -> mx.array:
    return mx.dequantize(packed, scales, biases, group_size=group_size, bits=bits)


def quantized_matmul(
    x: mx.array,
    packed: mx.array,
    scales: mx.array,
    biases: mx.array,
    group_size: int = 128,
    bits: int = 4,
    transpose: bool = True,
) -> mx.array:
    return mx.quantized_matmul(x, packed, scales, biases, transpose=transpose, group_size=group_size, bits=bits)


class QuantizedLinear:
    def __init__(
        self,
        packed: mx.array,
        scales: mx.array,
        biases: mx.array,
        group_size: int = 128,
        bits: int = 4,
        bias: mx.array | None = None,
    ) -> None:
        features, outputs = packed.shape[1] * 32 // bits, packed.shape[0]
        self.layer = nn.QuantizedLinear(features, outputs, bias is not None, group_size, bits)
        weights = {"weight": packed, "scales": scales, "biases": biases}
        self.layer.load_weights(list((weights if bias is None else {**weights, "bias": bias}).items()))

    def __call__(self, x: mx.array) -> mx.array:
        return self.layer(x)


class QuantizedEmbedding:
    def __init__(
        self, packed: mx.array, scales: mx.array, biases: mx.array, group_size: int = 128, bits: int = 4
    ) -> None:
        self.layer = nn.QuantizedEmbedding(packed.shape[0], packed.shape[1] * 32 // bits, group_size, bits)
        self.layer.load_weights([("weight", packed), ("scales", scales), ("biases", biases)])

    def __call__(self, tokens: mx.array) -> mx.array:
        return self.layer(tokens) if tokens.ndim else self.layer(tokens[None])[0]

    def as_linear(self, x: mx.array) -> mx.array:
        return self.layer.as_linear(x)
