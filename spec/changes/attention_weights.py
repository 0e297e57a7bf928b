"""Logits, softmax and sums of values, in one piece or in tiles, and where they are rounded: see `spec/faults/attention*.py`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from inferspec.spec.attention import ScaledDotProductAttention
from inferspec.spec.changes.attention import CORE, SPLIT, TILE
from inferspec.spec.contract import Arguments, Change, Operation
from inferspec.spec.numerics import f64, largest, round_to

# Logits and softmax.


def exponentials(logits: np.ndarray, top: np.ndarray | None = None) -> np.ndarray:
    """exp(logits - top) as float32 has it, overflow and underflow too; top is each row's largest by default."""
    top = logits.max(axis=-1, keepdims=True, initial=-np.inf) if top is None else top
    return f64(np.exp(logits - np.where(np.isfinite(top), top, 0.0)).astype(np.float32))


def normalised(weights: np.ndarray, total: np.ndarray) -> np.ndarray:
    return np.divide(weights, total, out=np.zeros_like(weights), where=total != 0)


def summed(weights: np.ndarray) -> np.ndarray:
    return weights.sum(axis=-1, keepdims=True)


def softmax(logits: np.ndarray, top: np.ndarray | None = None) -> np.ndarray:
    weights = exponentials(logits, top)
    return normalised(weights, summed(weights))


def softmax_by(change: Callable[[np.ndarray], np.ndarray]) -> Change:
    """The logits go through `change` on their way to the softmax."""
    return {"weights": lambda self, logits, dtype: CORE.weights(change(logits), dtype)}


def splits_capped(logits: np.ndarray) -> np.ndarray:
    """A row is split among at most 32 threadgroups of 1024 keys: later keys are never read."""
    return np.where(np.arange(logits.shape[-1]) < 32 * 1024, logits, -np.inf)


def weights_by(change: Callable[[np.ndarray, np.ndarray], np.ndarray]) -> Change:
    """The weights are `change(weights, logits)`."""
    return {"weights": lambda self, logits, dtype: change(CORE.weights(logits, dtype), logits)}


def maximum_rounded_alone(self: ScaledDotProductAttention, logits: np.ndarray, dtype: str) -> np.ndarray:
    """The row's largest logit is rounded to float32, and the logits that it is subtracted from are not."""
    top = f64(logits.max(axis=-1, keepdims=True, initial=-np.inf).astype(np.float32))
    weights = np.exp((logits - np.where(np.isfinite(top), top, 0.0)).astype(np.float32))
    total = weights.sum(axis=-1, keepdims=True)
    return f64(np.divide(weights, total, out=np.zeros_like(weights), where=total != 0))


def empty_rows(logits: np.ndarray) -> np.ndarray:
    return np.all(np.isneginf(logits), axis=-1, keepdims=True)


def hidden_heads_as_before(self: Operation, value: np.ndarray, a: Arguments) -> np.ndarray:
    """Of heads that see no key at all, those past the first keep what the accumulators had of the head before."""
    empty = ~seen_by(self, a).any(axis=(-1, -2))
    again = empty & (np.cumsum(empty, axis=-1) > 1)
    return Operation.finish(self, np.where(again[..., None, None], np.roll(value, 1, axis=-3) + 1, value), a)


def values_cropped(a: Arguments) -> dict[str, Any]:
    """Of values that have another head dim than keys the first features are taken, and zeros where there are not so many."""
    dim = a.key.shape[-1]
    value = np.concatenate([a.value, np.zeros((*a.value.shape[:-1], dim), a.value.dtype)], axis=-1)
    return {"value": value[..., :dim]}


def seen_by(self: Operation, a: Arguments) -> np.ndarray:
    """N..×H_q×L×S: which keys a query sees."""
    bias: np.ndarray = self.bias(a)  # type: ignore[attr-defined]
    return ~np.isneginf(np.broadcast_to(bias, (*a.query.shape[:-1], a.key.shape[-2])))


def over_queries(self: Operation, logits: np.ndarray, dtype: str) -> np.ndarray:
    return CORE.weights(logits.swapaxes(-1, -2), dtype).swapaxes(-1, -2)


def with_sink(self: Operation, logits: np.ndarray, dtype: str) -> np.ndarray:
    extended = np.concatenate([logits, np.zeros((*logits.shape[:-1], 1))], axis=-1)
    return CORE.weights(extended, dtype)[..., :-1]


def first_key(weights: np.ndarray, logits: np.ndarray) -> np.ndarray:
    return np.where(empty_rows(logits), np.arange(logits.shape[-1]) == 0, weights)


def stops_at_empty_row(weights: np.ndarray, logits: np.ndarray) -> np.ndarray:
    return np.where(np.logical_or.accumulate(empty_rows(logits), axis=-2), 0.0, weights)


def tiles_by_the_first_head(logits: np.ndarray) -> np.ndarray:
    """Tiles of 32 keys that no query of the first head sees are skipped by all heads."""
    logits = logits.copy()
    for first in range(0, logits.shape[-1] if logits.ndim > 2 else 0, 32):
        tile = logits[..., first : first + 32]
        unseen = np.isneginf(tile[..., :1, :, :]).all(axis=(-1, -2), keepdims=True)
        tile[...] = np.where(unseen, -np.inf, tile)
    return logits


def tiles_by_the_first_heads(logits: np.ndarray) -> np.ndarray:
    """Of more than two heads, tiles of 32 keys that no query of the first two sees are skipped by all."""
    logits = logits.copy()
    for first in range(0, logits.shape[-1] if logits.ndim > 2 and logits.shape[-3] > 2 else 0, 32):
        tile = logits[..., first : first + 32]
        unseen = np.isneginf(tile[..., :2, :, :]).all(axis=(-1, -2, -3), keepdims=True)
        tile[...] = np.where(unseen, -np.inf, tile)
    return logits


def part_hidden_in_between(weights: np.ndarray, logits: np.ndarray) -> np.ndarray:
    """Of 512 keys and more, shared out in parts of 32: one that is hidden, with visible keys before and after, is 0 / 0."""
    keys = logits.shape[-1]
    if keys < 512:
        return weights
    padded = np.concatenate([logits, np.full((*logits.shape[:-1], -keys % 32), -np.inf)], axis=-1)
    seen = np.isfinite(padded.reshape(*logits.shape[:-1], -1, 32).max(axis=-1))
    before, after = (np.logical_or.accumulate(x, axis=-1) for x in (seen, seen[..., ::-1]))
    lost = (~seen & before & after[..., ::-1]).any(axis=-1, keepdims=True)
    return np.where(lost, np.nan, weights)


def part_without_keys(weights: np.ndarray, logits: np.ndarray) -> np.ndarray:
    """A few queries over 256 keys and more, whose tiles of 32 two parts share out by halves rounded up and one by one: where
    their number is odd a last part has none, and its 0 / 0 comes through."""
    odd = -(-logits.shape[-1] // 32) % 2 == 1
    return np.full_like(weights, np.nan) if logits.shape[-1] >= 256 and logits.shape[-2] <= 4 and odd else weights


def last_part_hidden(weights: np.ndarray, logits: np.ndarray) -> np.ndarray:
    """Two to eight queries over 256 keys and more, shared out in parts of 128: a row to which the last part is hidden gets its 0 / 0."""
    rows, keys = logits.shape[-2:]
    if not 2 <= rows <= 8 or keys < 256:
        return weights
    lost = np.isneginf(logits[..., (keys - 1) // 128 * 128 :]).all(axis=-1, keepdims=True)
    return np.where(lost, np.nan, weights)


def mask_of_first_prompt(bias: np.ndarray, a: Arguments) -> np.ndarray:
    """Prompts of heads of 64 and 128 dims, in groups of four and more, all get the mask of the first."""
    common = a.query.shape[-1] in (64, 128) and a.query.shape[-3] >= 4 * a.key.shape[-3]
    return bias[:1] if bias.ndim > 3 and a.query.shape[-2] >= 64 and common else bias


def empty_row_spreads(weights: np.ndarray, logits: np.ndarray) -> np.ndarray:
    return np.where(empty_rows(logits).any(axis=-2, keepdims=True), np.nan, weights)


def fast_exponentials(self: Operation, logits: np.ndarray, dtype: str) -> np.ndarray:
    top = logits.max(axis=-1, keepdims=True, initial=-np.inf)
    below = np.maximum(logits - np.where(np.isfinite(top), top, 0.0), -256.0)
    weights = np.where(np.isneginf(logits), 0.0, (1 + below / 256) ** 256)
    return normalised(weights, summed(weights))


def largest_of_head(self: Operation, logits: np.ndarray, dtype: str) -> np.ndarray:
    return softmax(logits, logits.max(axis=(-1, -2), keepdims=True, initial=-np.inf))


def half_products_saturate(
    self: Operation, q: np.ndarray, k: np.ndarray, scale: float, bias: np.ndarray, dtype: str
) -> np.ndarray:
    """Of heads of 64 and 128 features products in float16 end at its largest number before they are scaled."""
    logits: np.ndarray = CORE.logits(q, k, scale, bias, dtype)
    if dtype != "float16" or q.shape[-1] not in (64, 128) or not logits.size:
        return logits
    return np.clip(q @ k.swapaxes(-1, -2), -largest(dtype), largest(dtype)) * scale + bias


def starts_at(number: float) -> Change:
    """The running maximum starts at a finite number."""
    return {
        "weights": lambda self, logits, dtype: softmax(logits, logits.max(axis=-1, keepdims=True, initial=number)),
    }


def mask_after_softmax(self: Operation, q: Any, k: Any, v: Any, scale: float, bias: Any, dtype: str) -> np.ndarray:
    hidden = np.isneginf(bias)
    weights = CORE.weights(CORE.logits(q, k, scale, np.where(hidden, 0.0, bias), dtype), dtype)
    return np.where(hidden, 0.0, weights) @ v


def keys_of_nothing_hidden(self: Operation, q: Any, k: Any, scale: float, bias: Any, dtype: str) -> np.ndarray:
    """Keys whose features sum up to 0 are taken for padding."""
    return np.where(k.sum(axis=-1)[..., None, :] == 0, -np.inf, CORE.logits(q, k, scale, bias, dtype))


def queries_of_nothing_blind(self: Operation, q: Any, k: Any, scale: float, bias: Any, dtype: str) -> np.ndarray:
    """Queries whose features sum up to 0 are taken for padding."""
    return np.where(q.sum(axis=-1)[..., None] == 0, -np.inf, CORE.logits(q, k, scale, bias, dtype))


def one_is_the_default(self: Operation, a: Arguments) -> float:
    """A scale of 1 stands for none given, as it does where 1 is the default of a parameter."""
    return a.query.shape[-1] ** -0.5 if a.scale in (None, 1) else float(a.scale)


def whole_is_the_default(self: Operation, a: Arguments) -> float:
    """A scale that is no float is taken for none given."""
    return float(a.scale) if isinstance(a.scale, float) else a.query.shape[-1] ** -0.5


def room_times_scale(self: Operation, q: Any, k: Any, scale: float, bias: Any, dtype: str) -> np.ndarray:
    logits = CORE.logits(q, k, scale, bias, dtype)
    return logits * np.nan if dtype != "float32" and scale < 0 and k.shape[-2] % 64 else logits


def hidden_in_denominator(self: Operation, q: Any, k: Any, v: Any, scale: float, bias: Any, dtype: str) -> np.ndarray:
    logits = CORE.logits(q, k, scale, bias, dtype)
    weights = exponentials(logits)
    return normalised(weights, summed(weights) + np.isneginf(logits).sum(axis=-1, keepdims=True)) @ v


def hidden_in_maximum(self: Operation, q: Any, k: Any, v: Any, scale: float, bias: Any, dtype: str) -> np.ndarray:
    logits = CORE.logits(q, k, scale, bias, dtype)
    unmasked = CORE.logits(q, k, scale, np.zeros(()), dtype)
    return softmax(logits, unmasked.max(axis=-1, keepdims=True, initial=-np.inf)) @ v


def fails_if(empty: Callable[[np.ndarray, np.ndarray], bool], answer: float | None = None) -> Change:
    """Sizes for which the kernel cannot be launched: an exception, or an output filled with one number."""

    def attended(
        self: Operation, q: np.ndarray, k: np.ndarray, v: np.ndarray, scale: float, bias: np.ndarray, dtype: str
    ) -> np.ndarray:
        if not empty(q, k):
            return CORE.attended(q, k, v, scale, bias, dtype)
        if answer is None:
            raise RuntimeError(f"grid of size 0 for query {q.shape}, key {k.shape}")
        return np.full(q.shape, answer)

    return {"attended": attended}


def _nan_to_zero(
    self: Operation, q: np.ndarray, k: np.ndarray, v: np.ndarray, scale: float, bias: np.ndarray, dtype: str
) -> np.ndarray:
    return np.nan_to_num(CORE.attended(q, k, v, scale, bias, dtype), nan=0.0, posinf=np.inf, neginf=-np.inf)


def _empty_where_not_positive(self: Operation, logits: np.ndarray, dtype: str) -> np.ndarray:
    return np.where(summed(exponentials(logits)) > 0, softmax(logits), 0.0)


NAN_TO_ZERO: Change = {"attended": _nan_to_zero}

NAN_ROW_IS_EMPTY: Change = {"weights": _empty_where_not_positive}

NAN_HIDES: Change = {
    "weights": lambda self, logits, dtype: softmax(np.where(np.isnan(logits), -np.inf, logits)),
}


# Rounding.


def rounded(x: np.ndarray, dtype: str) -> np.ndarray:
    return f64(round_to(x, dtype))


def summed_in(terms: np.ndarray, dtype: str) -> np.ndarray:
    """Sum over the first axis, one term after the other, each sum rounded to the dtype."""
    total = np.zeros(terms.shape[1:])
    for term in terms:
        total = rounded(total + rounded(term, dtype), dtype)
    return total


def logits_summed_in_dtype(self: Operation, q: Any, k: Any, scale: float, bias: Any, dtype: str) -> np.ndarray:
    terms = (q[..., d, None] * k[..., None, :, d] for d in range(q.shape[-1]))
    total = np.zeros((*q.shape[:-1], k.shape[-2]))
    for term in terms:
        total = rounded(total + term, dtype)
    return total * scale + bias


def values_summed_in_dtype(self: Operation, weights: np.ndarray, v: np.ndarray, dtype: str) -> np.ndarray:
    total = np.zeros((*weights.shape[:-1], v.shape[-1]))
    for key in range(weights.shape[-1]):
        total = rounded(total + weights[..., key, None] * v[..., None, key, :], dtype)
    return total


def total_summed_in_dtype(self: Operation, logits: np.ndarray, dtype: str) -> np.ndarray:
    weights = exponentials(logits)
    return normalised(weights, summed_in(np.moveaxis(weights, -1, 0), dtype)[..., None])


# Tiles and paths.


def tail_keys_dropped(logits: np.ndarray) -> np.ndarray:
    keys = logits.shape[-1]
    return np.where(np.arange(keys) < (keys // TILE * TILE or keys), logits, -np.inf)


def last_of_full_tile_dropped(logits: np.ndarray) -> np.ndarray:
    keys = logits.shape[-1]
    return np.where((np.arange(keys) == keys - 1) & (keys % TILE == 0), -np.inf, logits)


def last_of_96_keys_dropped(logits: np.ndarray) -> np.ndarray:
    keys = logits.shape[-1]
    return np.where((np.arange(keys) == keys - 1) & (keys % 96 == 0), -np.inf, logits)


def ends_of_tiles_dropped(tile: int, least: int) -> Callable[[np.ndarray], np.ndarray]:
    """From so many keys on tiles are as large, and one key short: the last of each is never read, but the last of all is."""

    def dropped(logits: np.ndarray) -> np.ndarray:
        place = np.arange(logits.shape[-1])
        lost = (place % tile == tile - 1) & (place < len(place) - 1) & (len(place) >= least)
        return np.where(lost, -np.inf, logits)

    return dropped


def tail_padding_counted(self: Operation, logits: np.ndarray, dtype: str) -> np.ndarray:
    keys = logits.shape[-1]
    padded = np.concatenate([logits, np.zeros((*logits.shape[:-1], -keys % TILE))], axis=-1)
    return CORE.weights(padded, dtype)[..., :keys]


def never_rescaled(self: Operation, logits: np.ndarray, dtype: str) -> np.ndarray:
    """Each tile of keys is measured against the largest logit so far, and the earlier tiles are left as they are."""
    keys = logits.shape[-1]
    so_far = np.maximum.accumulate(logits, axis=-1)
    last_of_tile = np.minimum(np.arange(keys) // TILE * TILE + TILE, keys) - 1
    return softmax(logits, np.take(so_far, last_of_tile, axis=-1))


def halves_not_rescaled(self: Operation, logits: np.ndarray, dtype: str) -> np.ndarray:
    """A single query over many keys takes them in two halves, each measured against its own largest logit."""
    length, keys = logits.shape[-2:]
    if length > 1 or keys < SPLIT:
        return CORE.weights(logits, dtype)
    weights = np.concatenate([exponentials(half) for half in np.array_split(logits, 2, axis=-1)], axis=-1)
    return normalised(weights, summed(weights))


def without_tail_queries(result: np.ndarray) -> np.ndarray:
    length = result.shape[-2]
    return result[..., : length // TILE * TILE or length, :]
