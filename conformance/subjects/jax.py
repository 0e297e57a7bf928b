"""JAX: ``jax.nn``, ``jax.random``, and the norm and the table of flax. ``pip install jax flax`` first.

XLA compiles each operation anew for each shape, so that a run takes minutes where other libraries take seconds.
"""

from __future__ import annotations

import math
import random
from typing import Any

import jax
import jax.numpy as jnp
from flax import nnx

NAME = "jax"
VERSION = jax.__version__
ARRAYS = "jax"
WAIVERS = "jax.toml"
PRECISION = dict.fromkeys(("linear", "attention", "mlp"), "native")
ENVELOPE = {"sampling": {"without_distribution": [False]}}

silu = jax.nn.silu
softmax = jax.nn.softmax


def linear(x: jax.Array, weight: jax.Array, bias: jax.Array | None = None) -> jax.Array:
    if bias is not None and bias.shape != weight.shape[:1]:
        raise ValueError(f"bias is {bias.shape}, and weight {weight.shape}")
    return x @ weight.T if bias is None else x @ weight.T + bias


def scaled_dot_product_attention(
    query: jax.Array, key: jax.Array, value: jax.Array, scale: float | None = None, mask: Any = None
) -> jax.Array:
    """JAX has B×length×heads×D, as many leading axes as one, and a boolean mask apart from an additive bias."""
    batch, *rows = query.shape[:-3], query.shape[-3], query.shape[-2], key.shape[-2]
    if isinstance(mask, str):
        mask = _named(mask, *rows[1:])
    if mask is not None:
        mask = jnp.broadcast_to(mask, (*batch, *rows)).reshape(math.prod(batch), *rows)
    hides = mask is not None and mask.dtype == bool
    moved = [x.reshape(math.prod(batch), *x.shape[-3:]).swapaxes(1, 2) for x in (query, key, value)]
    found = jax.nn.dot_product_attention(
        *moved, bias=None if hides else mask, mask=mask if hides else None, scale=scale
    )
    return found.swapaxes(1, 2).reshape(*query.shape[:-1], value.shape[-1])


def _named(mask: str, length: int, keys: int) -> jax.Array:
    """JAX's own ``is_causal`` is aligned top-left, so the mask is given explicitly."""
    if mask != "causal":
        raise ValueError(f"mask is {mask!r}; it takes 'causal'")
    return jnp.tril(jnp.ones((length, keys), bool), keys - length)


def causal_mask(L: int, S: int, dtype: Any) -> jax.Array:
    return jnp.where(jnp.tril(jnp.ones((L, S), bool), S - L), 0, -jnp.inf).astype(dtype)


class RMSNorm:
    def __init__(self, dims: int, weight: jax.Array, eps: float = 1e-5) -> None:
        kind = weight.dtype
        self.layer = nnx.RMSNorm(dims, epsilon=eps, dtype=kind, param_dtype=kind, rngs=nnx.Rngs(0))
        self.layer.scale[...] = weight

    def __call__(self, x: jax.Array) -> jax.Array:
        return self.layer(x)


class SwiGLU:
    def __init__(self, dims: int, hidden_dims: int, w_gate: jax.Array, w_up: jax.Array, w_down: jax.Array) -> None:
        for weight, shape in (
            (w_gate, (hidden_dims, dims)),
            (w_up, (hidden_dims, dims)),
            (w_down, (dims, hidden_dims)),
        ):
            if weight.shape != shape:
                raise ValueError(f"a weight is {weight.shape}, not {shape}")
        self.gate, self.up, self.down = w_gate, w_up, w_down

    def __call__(self, x: jax.Array) -> jax.Array:
        return (jax.nn.silu(x @ self.gate.T) * (x @ self.up.T)) @ self.down.T


class Embedding:
    def __init__(self, vocab_size: int, dims: int, weight: jax.Array) -> None:
        if weight.shape != (vocab_size, dims):
            raise ValueError(f"weight is {weight.shape}, not {(vocab_size, dims)}")
        self.layer = nnx.Embed(vocab_size, dims, param_dtype=weight.dtype, rngs=nnx.Rngs(0))
        self.layer.embedding[...] = weight

    def __call__(self, tokens: jax.Array) -> jax.Array:
        return self.layer(tokens)

    def as_linear(self, x: jax.Array) -> jax.Array:
        return self.layer.attend(x)


class Sampler:
    """``jax.random.categorical``, with a key of its own: JAX has no state of all to begin with where there is no seed."""

    def __init__(self, temperature: float = 0, seed: int | None = None) -> None:
        self.temperature = temperature
        self.key = jax.random.key(random.getrandbits(31) if seed is None else seed)

    def __call__(self, logits: jax.Array) -> jax.Array:
        if self.temperature == 0:
            return jnp.argmax(logits, axis=-1)
        self.key, key = jax.random.split(self.key)
        return jax.random.categorical(key, logits / self.temperature)
