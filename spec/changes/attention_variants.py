"""Honest ways. Those of attention compute in float32 from the exact inputs, as an implementation would."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from inferspec.spec.attention import ScaledDotProductAttention
from inferspec.spec.changes.attention_masks import full_mask
from inferspec.spec.changes.attention_weights import normalised, rounded, summed
from inferspec.spec.contract import Arguments, Change, Operation
from inferspec.spec.numerics import f64, largest, round_to


def single(x: Any) -> Any:
    return np.asarray(x, np.float32)


def nothing(q: np.ndarray, v: np.ndarray) -> np.ndarray:
    """Zeros, as many as queries and features of a value: those may be other than features of a query."""
    return np.zeros((*q.shape[:-1], v.shape[-1]), np.float32)


def divided(weighted: np.ndarray, total: np.ndarray) -> np.ndarray:
    """weighted / total, zeros where nothing is seen."""
    return np.divide(weighted, total, out=np.zeros_like(weighted), where=total != 0)


def finite(top: np.ndarray) -> np.ndarray:
    return np.where(np.isfinite(top), top, single(0))


def computed(
    formula: Callable[[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray], np.ndarray],
) -> Change:
    """The whole formula in float32: `formula(q, k, v, scale, bias)`, the bias broadcast to the logits."""

    def attended(
        self: Operation, q: np.ndarray, k: np.ndarray, v: np.ndarray, scale: float, bias: np.ndarray, dtype: str
    ) -> np.ndarray:
        full = np.broadcast_to(single(bias), (*q.shape[:-1], k.shape[-2]))
        with np.errstate(all="ignore"):
            return f64(formula(single(q), single(k), single(v), single(scale), full))

    return {"attended": attended}


def partial(
    q: np.ndarray, k: np.ndarray, v: np.ndarray, scale: np.ndarray, bias: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Weighted values, their total and the largest logit of a part of the keys."""
    logits = q @ k.swapaxes(-1, -2) * scale + bias
    top = logits.max(axis=-1, keepdims=True, initial=-np.inf)
    weights = np.exp(logits - finite(top))
    return weights @ v, weights.sum(axis=-1, keepdims=True), top


def online_sums(q: Any, k: Any, v: Any, scale: Any, bias: Any, tile: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Weighted values, their total and the largest logit: what was summed is rescaled when a tile of keys has a larger one."""
    logits = q @ k.swapaxes(-1, -2) * scale + bias
    weighted, total = nothing(q, v), np.zeros_like(q[..., :1])
    top = np.full_like(total, -np.inf)
    for start in range(0, k.shape[-2], tile):
        part = slice(start, start + tile)
        new = np.maximum(top, logits[..., part].max(axis=-1, keepdims=True))
        shift = finite(new)
        rescale, weights = np.exp(top - shift), np.exp(logits[..., part] - shift)
        weighted = weighted * rescale + weights @ v[..., part, :]
        total, top = total * rescale + weights.sum(axis=-1, keepdims=True), new
    return weighted, total, top


def online(tile: int) -> Change:
    """Online softmax over tiles of keys (Milakov and Gimelshein 2018; Dao 2022)."""

    def formula(q: Any, k: Any, v: Any, scale: Any, bias: Any) -> np.ndarray:
        weighted, total, _ = online_sums(q, k, v, scale, bias, tile)
        return divided(weighted, total)

    return computed(formula)


def split_and_merged(q: Any, k: Any, v: Any, scale: Any, bias: Any) -> np.ndarray:
    """Three splits of the keys, each normalised by itself, merged by their log-sum-exp."""
    outputs, sums = [], []
    for part in np.array_split(np.arange(k.shape[-2]), 3):
        weighted, total, top = partial(q, k[..., part, :], v[..., part, :], scale, bias[..., part])
        outputs.append(divided(weighted, total))
        sums.append(np.where(total != 0, finite(top) + np.log(total), single(-np.inf)))
    lse = np.stack(sums)
    shares = np.exp(lse - finite(lse.max(axis=0)))
    return divided((shares * np.stack(outputs)).sum(axis=0), shares.sum(axis=0))


def reversed_order(q: Any, k: Any, v: Any, scale: Any, bias: Any) -> np.ndarray:
    """Every sum from its last term to its first, the softmax's strictly one after the other."""
    logits = q[..., ::-1] @ k[..., ::-1, ::-1].swapaxes(-1, -2) * scale + bias[..., ::-1]
    weights = np.exp(logits - finite(logits.max(axis=-1, keepdims=True, initial=-np.inf)))
    total = np.cumsum(weights, axis=-1)[..., -1:] if weights.shape[-1] else np.zeros_like(q[..., :1])
    return divided(weights, total) @ v[..., ::-1, :]


def query_scaled_first(q: Any, k: Any, v: Any, scale: Any, bias: Any) -> np.ndarray:
    weighted, total, _ = partial(q * scale, k, v, single(1), bias)
    return divided(weighted, total)


def base_two(q: Any, k: Any, v: Any, scale: Any, bias: Any) -> np.ndarray:
    log2e = single(np.log2(np.e))
    logits = q * (scale * log2e) @ k.swapaxes(-1, -2) + bias * log2e
    weights = np.exp2(logits - finite(logits.max(axis=-1, keepdims=True, initial=-np.inf)))
    return divided(weights @ v, weights.sum(axis=-1, keepdims=True))


def lowest_for_inf(q: Any, k: Any, v: Any, scale: Any, bias: Any) -> np.ndarray:
    lowest = single(-largest("float32"))
    logits = np.where(np.isneginf(bias), lowest, q @ k.swapaxes(-1, -2) * scale + bias)
    weights = np.exp(logits - logits.max(axis=-1, keepdims=True, initial=lowest))
    seen = ~np.isneginf(bias).all(axis=-1, keepdims=True)
    return np.where(seen, divided(weights, weights.sum(axis=-1, keepdims=True)) @ v, single(0))


def heads_broadcast(self: ScaledDotProductAttention, a: Arguments) -> np.ndarray:
    """Keys and values broadcast against query heads in groups, never repeated."""
    *leading, query_heads, length, dim = a.query.shape
    heads, keys = a.key.shape[-3:-1]
    groups = (*leading, heads, query_heads // heads)
    q = single(a.query).reshape(*groups, length, dim)
    bias = np.broadcast_to(single(self.bias(a)), full_mask(a)).reshape(*groups, length, keys)
    with np.errstate(all="ignore"):
        logits = np.einsum("...grld,...gsd->...grls", q, single(a.key)) * single(self.scale(a)) + bias
        weights = np.exp(logits - finite(logits.max(axis=-1, keepdims=True, initial=-np.inf)))
        mixed = np.einsum("...grls,...gsd->...grld", weights, single(a.value))
        return self.finish(f64(divided(mixed, weights.sum(axis=-1, keepdims=True))).reshape(a.query.shape), a)


def native_logits(
    self: Operation, q: np.ndarray, k: np.ndarray, scale: float, bias: np.ndarray, dtype: str
) -> np.ndarray:
    """Scale, scaled query, product and sum each rounded to the dtype."""
    scaled = rounded(q * rounded(np.asarray(scale), dtype), dtype)
    return rounded(rounded(scaled @ k.swapaxes(-1, -2), dtype) + bias, dtype)


def native_weights(self: Operation, logits: np.ndarray, dtype: str) -> np.ndarray:
    """Difference, exponential, total and quotient each rounded to the dtype."""
    top = logits.max(axis=-1, keepdims=True, initial=-np.inf)
    weights = rounded(np.exp(rounded(logits - np.where(np.isfinite(top), top, 0.0), dtype)), dtype)
    return rounded(normalised(weights, rounded(summed(weights), dtype)), dtype)


NATIVE_STEPS: Change = {"logits": native_logits, "weights": native_weights}


def projected_in_float32(self: Operation, a: Arguments, name: str) -> np.ndarray:
    weight = {"query": a.wq, "key": a.wk, "value": a.wv}[name]
    return rounded(single(getattr(a, name)) @ single(weight).T, a.query.dtype.name)


def output_in_float32(self: Operation, x: np.ndarray, a: Arguments) -> np.ndarray:
    return f64(single(round_to(x, a.query.dtype.name)) @ single(a.wo).T)


def projected_together(self: Operation, a: Arguments, name: str) -> np.ndarray:
    fused = np.concatenate([single(a.wq), single(a.wk), single(a.wv)])
    place = ("query", "key", "value").index(name)
    return f64(np.split(single(getattr(a, name)) @ fused.T, 3, axis=-1)[place])


def output_by_head(self: Operation, x: np.ndarray, a: Arguments) -> np.ndarray:
    parts = zip(np.split(single(x), a.num_heads, axis=-1), np.split(single(a.wo), a.num_heads, axis=-1), strict=True)
    return f64(sum((part @ weight.T for part, weight in parts), single(0)))
