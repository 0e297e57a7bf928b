"""The steps that faults and honest variants have in the place of the oracle's: see `spec/faults/attention*.py`."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from inferspec.spec.attention import CausalMask, MultiHeadAttention, ScaledDotProductAttention
from inferspec.spec.contract import Arguments, Change, Operation, changed
from inferspec.spec.mistakes import first_of, honest, walked
from inferspec.spec.numerics import f64, largest, round_to

TILE = 32
SPLIT = 1024

CORE = ScaledDotProductAttention()
CAUSAL_MASK = CausalMask()
MHA = MultiHeadAttention()


# Arguments that are misread.


def rereads(**sources: str) -> Change:
    """Some arguments are read from the place of others: `rereads(value="key")`."""

    def respond(self: Operation, a: Arguments) -> Any:
        return Operation.respond(self, Arguments(**{**vars(a), **{to: getattr(a, of) for to, of in sources.items()}}))

    return {"respond": respond}


def reshapes(change: Callable[[Arguments], dict[str, Any]]) -> Change:
    """Some arguments are replaced by what `change` makes of them all."""

    def respond(self: Operation, a: Arguments) -> Any:
        return Operation.respond(self, Arguments(**{**vars(a), **change(a)}))

    return {"respond": respond}


def fitted(x: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """Crop each dim to the shape, or fill it up with zeros."""
    x = x[tuple(slice(size) for size in shape)]
    return np.pad(x, [(0, size - have) for size, have in zip(shape, x.shape, strict=True)])


def wrapped(mask: np.ndarray, full: tuple[int, ...]) -> np.ndarray:
    """Crop a mask, or read it over and over, until it broadcasts to the full shape."""
    if mask.size == 0:
        return np.zeros(full, mask.dtype)
    while mask.ndim > len(full):
        mask = mask[0]
    for axis in range(-mask.ndim, 0):
        if mask.shape[axis] not in (1, full[axis]):
            mask = np.take(mask, np.arange(full[axis]) % mask.shape[axis], axis=axis)
    return mask


def read_with_strides_of(view: np.ndarray, other: np.ndarray) -> np.ndarray:
    """Return what a kernel sees that walks the buffer of `view` with the strides of another array."""
    return walked(view, [stride // other.itemsize for stride in other.strides])


def inner_batch_ignored(a: Arguments) -> dict[str, Any]:
    """Only the outermost of several leading dims moves the key pointer."""
    if a.key.ndim < 5:
        return {}
    return {"key": np.broadcast_to(a.key[:, :1], a.key.shape)}


def leading_dims_swapped(a: Arguments) -> dict[str, Any]:
    """The first two leading dims are walked in the other order."""
    if a.value.ndim < 5:
        return {}
    outer, inner, *rest = a.value.shape
    return {"value": a.value.reshape(inner, outer, *rest).swapaxes(0, 1)}


def batch_stride_of_query(a: Arguments) -> dict[str, Any]:
    """A batch row's keys are looked for as many heads on as the query has."""
    heads, keys, dim = a.key.shape[-3:]
    if a.key.size == 0:
        return {}
    every = a.key.reshape(-1, keys, dim)
    rows = np.arange(len(every) // heads)[:, None] * a.query.shape[-3] + np.arange(heads)
    return {"key": every[rows % len(every)].reshape(a.key.shape)}


def cropped_dims(a: Arguments) -> dict[str, Any]:
    dim, keys = min(a.query.shape[-1], a.key.shape[-1]), min(a.key.shape[-2], a.value.shape[-2])
    return {"query": a.query[..., :dim], "key": a.key[..., :keys, :dim], "value": a.value[..., :keys, :]}


def tail_dims_dropped(a: Arguments) -> dict[str, Any]:
    """Head dims past a multiple of 64 never enter the dot product; the scale is still that of all of them."""
    dim = a.query.shape[-1]
    kept = dim // 64 * 64 or dim
    return {"query": np.where(np.arange(dim) < kept, a.query, a.query.dtype.type(0))}


# Heads. Each is `key_heads` or `value_heads`: which key head every query head gets.


def heads_by(index: Callable[[int, int], np.ndarray]) -> Callable[..., np.ndarray]:
    return lambda self, x, query_heads: np.take(x, index(query_heads, x.shape[-3]), axis=-3)


heads_tiled = heads_by(lambda query_heads, heads: np.arange(query_heads) % heads)
first_head = heads_by(lambda query_heads, heads: np.zeros(query_heads, int))
groups_reversed = heads_by(lambda query_heads, heads: heads - 1 - np.arange(query_heads) // (query_heads // heads))


def heads_floor_divided(self: Operation, x: np.ndarray, query_heads: int) -> np.ndarray:
    heads = x.shape[-3]
    if heads == 0:
        return np.zeros((*x.shape[:-3], query_heads, *x.shape[-2:]))
    return np.take(x, np.minimum(np.arange(query_heads) // max(query_heads // heads, 1), heads - 1), axis=-3)


def unwritten_past_sixteen(key: str) -> Change:
    """Query heads past the 16th of a group, whose key heads are those of the argument `key`, are never written."""

    def respond(self: Operation, a: Arguments) -> Any:
        result = np.array(honest(self, a))
        heads = result.shape[-3]
        result[..., np.arange(heads) % (heads // getattr(a, key).shape[-3]) >= 16, :, :] = 0
        return result

    return {"respond": respond}


def in_common_heads(path: Callable[[Arguments], bool], key: str = "key") -> Callable[[Arguments], bool]:
    """Whether a call takes a path of grouped heads of 128 dims. key: the argument whose heads are those
    of keys."""

    def holds(a: Arguments) -> bool:
        grouped = a.query.ndim > 2 and a.query.shape[-3] >= 4 * max(getattr(a, key).shape[-3], 1)
        return grouped and a.query.shape[-1] == 128 and path(a)

    return holds


def chunk_after_context(a: Arguments) -> bool:
    """Whether queries of a block follow a context of hundreds of tokens."""
    return isinstance(a.mask, str) and a.query.shape[-2] >= 32 and a.key.shape[-2] >= a.query.shape[-2] + 200


def of_split_keys(a: Arguments) -> bool:
    """A query or a few over so many keys that kernels share them out."""
    return bool(a.query.shape[-2] <= 8 and a.key.shape[-2] >= 512)


def masked_prompt_of_common_heads(a: Arguments) -> bool:
    """A prompt of common heads under a mask that is an array."""
    return isinstance(a.mask, np.ndarray) and a.query.shape[-2] >= 64 and a.query.shape[-1] in (64, 128)


def batch_of_grouped_tokens(a: Arguments) -> dict[str, Any]:
    """Tokens of several batch rows, of heads in groups of four and more, over 1024 keys and more read those of the first."""
    grouped = a.query.ndim > 3 and a.query.shape[-3] >= 4 * a.key.shape[-3]
    if not (grouped and a.query.shape[-2] == 1 and a.key.shape[-2] >= 1024):
        return {}
    return {name: np.broadcast_to(x[:1], x.shape) for name, x in (("key", a.key), ("value", a.value))}


def of_drafts(query: np.ndarray, key_heads: int, keys: int) -> bool:
    """A few queries of heads in groups of four and more, after a context."""
    return 2 <= query.shape[-2] <= 8 and query.ndim > 2 and query.shape[-3] >= 4 * key_heads and keys >= 256


def drafts_unmasked(a: Arguments) -> dict[str, Any]:
    """The causal mask is left out for a few queries of heads in groups of four and more, after a context."""
    draft = isinstance(a.mask, str) and of_drafts(a.query, a.key.shape[-3] if a.key.ndim > 2 else 1, a.key.shape[-2])
    return {"mask": None} if draft else {}


def of_many_queries(a: Arguments) -> bool:
    """Whether there are so many queries as the tiles of products have rows."""
    return bool(a.query.shape[-2] >= 16)


def broadcast_one_past_a_tile(argument: str) -> Callable[[Arguments], bool]:
    """Whether keys or values that are repeated without a copy are one more than tiles of 32 hold, with an array as mask."""

    def holds(a: Arguments) -> bool:
        repeated, keys = getattr(a, argument), a.key.shape[-2]
        return bool(keys > 32 and keys % 32 == 1 and isinstance(a.mask, np.ndarray) and 0 in repeated.strides)

    return holds


def masked_prompt(a: Arguments) -> bool:
    """Whether a prompt has its mask as an array."""
    return isinstance(a.mask, np.ndarray) and a.query.shape[-2] == a.key.shape[-2] >= 64


def one_partial_result_for_a_group(key: str, longest: Callable[[Arguments], int]) -> Change:
    """The two passes over a long context, for one token and common heads, keep what a group's query heads summed in one
    place. key: the argument whose heads are those of keys; longest: the tokens of the longest context."""

    def respond(self: Operation, a: Arguments) -> Any:
        result = np.array(honest(self, a))
        ratio = a.query.shape[-3] // getattr(a, key).shape[-3]
        if ratio >= 4 and a.query.shape[-2] == 1 and a.query.shape[-1] == 128 and longest(a) >= 1024:
            result = result[..., ::ratio, :, :].repeat(ratio, axis=-3)
        return result

    return {"respond": respond}


def swapped_groups(query_heads: int, heads: int) -> np.ndarray:
    """Head (group, member) of what lies in the order (member, group)."""
    return np.arange(query_heads).reshape(-1, heads).T.ravel()


def merges_heads_swapped(self: Operation, value: np.ndarray, a: Arguments) -> np.ndarray:
    order = swapped_groups(a.query.shape[-3], a.key.shape[-3])
    return Operation.finish(self, np.take(value, order, axis=-3), a)


# Masks.


def full_mask(a: Arguments) -> tuple[int, ...]:
    return (*a.query.shape[:-1], a.key.shape[-2])


def remasks(change: Callable[[np.ndarray, Arguments], np.ndarray]) -> Change:
    """What an array mask adds to the logits is `change` of what it should add."""

    def bias(self: ScaledDotProductAttention, a: Arguments) -> np.ndarray:
        right = CORE.bias(a)
        return change(right, a) if isinstance(a.mask, np.ndarray) else right

    return {"bias": bias}


def takes_axes(bias: np.ndarray, a: Arguments) -> np.ndarray:
    """The last axis of a mask is looked at, whether it has one or not."""
    if a.mask.ndim == 0:
        raise IndexError("axis -1 is out of bounds for an array of 0 dimensions")
    return bias


def spreads(change: Callable[[np.ndarray, Arguments], np.ndarray]) -> Change:
    """The same, for a change of the mask that is broadcast already."""
    return remasks(lambda bias, a: change(np.broadcast_to(bias, full_mask(a)), a))


def mask_of_first_row(bias: np.ndarray, a: Arguments) -> np.ndarray:
    return bias[:1] if bias.ndim > 3 else bias


def mask_batch_in_heads(bias: np.ndarray, a: Arguments) -> np.ndarray:
    return bias.swapaxes(-3, -4).reshape(bias.shape) if bias.ndim > 3 else bias


def mask_heads_swapped(bias: np.ndarray, a: Arguments) -> np.ndarray:
    return np.take(bias, swapped_groups(a.query.shape[-3], a.key.shape[-3]), axis=-3)


def mask_transposed(bias: np.ndarray, a: Arguments) -> np.ndarray:
    return bias.swapaxes(-1, -2) if bias.shape[-1] == bias.shape[-2] else bias


def mask_of_first_256_rows(bias: np.ndarray, a: Arguments) -> np.ndarray:
    """Where there are more than 256 queries and keys, rows of the mask past the 256th are the first ones again."""
    length = bias.shape[-2]
    return bias[..., np.arange(length) % 256, :] if min(length, bias.shape[-1]) > 256 else bias


def causal_array_applied_twice(bias: np.ndarray, a: Arguments) -> np.ndarray:
    """Of an array mask that hides what the causal one does, the last row of a tile that is not full loses its keys."""
    length, keys = bias.shape[-2:]
    if min(length, keys) <= TILE or keys % TILE == 0 or (np.isfinite(bias) != CORE.visible(length, keys)).any():
        return bias
    return np.where((np.arange(length) == length - 1)[:, None], -np.inf, bias)


def vector_as_column(bias: np.ndarray, a: Arguments) -> np.ndarray:
    return bias[:, None] if bias.ndim == 1 and len(bias) == a.query.shape[-2] else bias


def hides_with(number: float) -> Change:
    """Hidden keys get a finite number added to their logits."""

    def bias(self: ScaledDotProductAttention, a: Arguments) -> np.ndarray:
        right = CORE.bias(a)
        return np.where(np.isneginf(right), number, right)

    return {"bias": bias}


def sees(rule: Callable[[np.ndarray, np.ndarray, int, int], np.ndarray]) -> Change:
    """The causal rule is another: `rule(i, j, L, S)`."""

    def visible(self: Operation, length: int, keys: int) -> np.ndarray:
        i, j = np.arange(length)[:, None], np.arange(keys)
        return np.broadcast_to(rule(i, j, length, keys), (length, keys))

    return {"visible": visible}


TOP_LEFT = sees(lambda i, j, length, keys: j <= i)
ONE_FUTURE = sees(lambda i, j, length, keys: j <= i + keys - length + 1)
NOT_ITSELF = sees(lambda i, j, length, keys: j < i + keys - length)
LAST_KEY_OF_A_TILE_BUT_ONE = sees(
    lambda i, j, length, keys: (j <= i + keys - length) & ~((keys % 32 == 31) & (j == keys - 1))
)
TOP_LEFT_WHERE_LONGER = sees(lambda i, j, length, keys: j <= i + max(keys - length, 0))
SQUARE_ONLY = sees(lambda i, j, length, keys: (j <= i) | (length != keys))
NEVER_EMPTY = sees(lambda i, j, length, keys: j <= np.maximum(i + keys - length, 0))
DECODE_FIRST_KEY = sees(lambda i, j, length, keys: j <= i + (keys - length if length > 1 else 0))
DECODE_NOT_LAST = sees(lambda i, j, length, keys: j <= i + keys - length - (length == 1))
WHOLE_CHUNKS = sees(lambda i, j, length, keys: j <= i + (keys - length) // max(length, 1) * length)
TRANSPOSED = sees(lambda i, j, length, keys: i <= j + length - keys)


SPLIT_FROM_THE_TOP = sees(
    lambda i, j, length, keys: j <= i + (0 if 1 < length <= 8 and keys >= 1023 else keys - length)
)
PAST_256_ONE_FUTURE = sees(lambda i, j, length, keys: j <= i + keys - length + (i >= 256))
BUFFER_OF_4096 = sees(lambda i, j, length, keys: (j <= i + keys - length) | (j >= 4096))
BUFFER_OF_1024 = sees(lambda i, j, length, keys: (j <= i + keys - length) | (i >= 1024) | (j >= 1024))


def wide_heads_one_future(self: ScaledDotProductAttention, a: Arguments) -> np.ndarray:
    """Heads of 96 dims and more are walked in shorter blocks: rows past the 128th see one future key."""
    bias = ScaledDotProductAttention.bias(self, a)
    if isinstance(a.mask, str) and a.query.shape[-1] >= 96:
        i, j = np.indices(bias.shape[-2:])
        bias = np.where((i >= 128) & (j == i + bias.shape[-1] - bias.shape[-2] + 1), 0.0, bias)
    return bias


def half_prompts_in_fours(self: ScaledDotProductAttention, a: Arguments) -> np.ndarray:
    """The kernel for prompts of half precision and common head dims ends the causal walk of four queries at the last one's."""
    bias = ScaledDotProductAttention.bias(self, a)
    length, keys = a.query.shape[-2], a.key.shape[-2]
    common = a.query.shape[-1] in (64, 128) and a.query.dtype.itemsize == 2
    if isinstance(a.mask, str) and common and length == keys >= 64:
        i, j = np.indices((length, keys))
        bias = np.where((j > i) & (j <= i - i % 4 + 3), 0.0, bias)
    return bias


def split_for_first_row(
    self: ScaledDotProductAttention,
    q: np.ndarray,
    k: np.ndarray,
    v: np.ndarray,
    scale: float,
    bias: np.ndarray,
    dtype: str,
) -> np.ndarray:
    """From 1024 keys on those of the first batch row are shared out, for all rows."""
    if q.ndim > 3 and q.shape[-2] == 1 and k.shape[-2] >= 1024:
        k, v = (np.broadcast_to(x[:1], x.shape) for x in (k, v))
    return ScaledDotProductAttention.attended(self, q, k, v, scale, bias, dtype)


def dense_by_chance(a: Arguments) -> dict[str, Any]:
    """Of two leading axes of the query, whose strides are as far apart as there are heads of all batch rows, one batch is
    made, with the stride of the outer one: all but the first heads lie outside, where zeros are read."""
    query = a.query
    if query.ndim != 4 or not query.size or 1 in query.shape[:2]:
        return {}
    outer, inner = (abs(stride) for stride in query.strides[:2])
    if not inner or outer != inner * math.prod(query.shape[:2]):
        return {}
    return {"query": np.where(np.arange(len(query))[:, None, None, None] > 0, np.zeros((), query.dtype), query)}


def first_16_bits(out: np.ndarray) -> np.ndarray:
    """What of all heads of all rows a number of 16 bits counts."""
    return out.reshape(math.prod(out.shape[:-2]), *out.shape[-2:])[: 2**16 - 1]


def wraps(i: np.ndarray, j: np.ndarray, length: int, keys: int) -> np.ndarray:
    """The rows are filled by `row[:count]`, where a negative count is taken from the end."""
    count = i + keys - length + 1
    return j < np.where(count < 0, keys + count, count)


def key_heads_modulo(most: int, x: np.ndarray) -> np.ndarray:
    """The heads of keys or values as found by a number of a head that begins anew after `most`."""
    return x[..., np.arange(x.shape[-3]) % most, :, :]


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


# Shapes of the result.


def adds_batch(self: Operation, value: np.ndarray, a: Arguments) -> np.ndarray:
    result = Operation.finish(self, value, a)
    return result if len(a.query.shape) > 3 else result[None]


def squeezes(self: Operation, value: np.ndarray, a: Arguments) -> np.ndarray:
    return np.squeeze(Operation.finish(self, value, a))


# The causal mask as an array.


def sliced_from_larger(self: CausalMask, a: Arguments) -> np.ndarray:
    """One mask is kept, made anew when it is too small; a smaller one is its upper left corner."""
    length, keys = getattr(type(self), "kept", (0, 0))
    if length < a.L or keys < a.S:
        length, keys = max(length, a.L), max(keys, a.S)
        type(self).kept = (length, keys)  # type: ignore[attr-defined]
    kept = np.where(CAUSAL_MASK.visible(length, keys), 0.0, -np.inf)
    return round_to(kept[: a.L, : a.S], a.dtype)


def mask_handed_out_again(self: CausalMask, a: Arguments) -> np.ndarray:
    kept: np.ndarray = first_of(self, (a.L, a.S, a.dtype), honest(self, a))
    return kept


def mask_shaped(change: Callable[[np.ndarray], np.ndarray]) -> Change:
    return {"finish": lambda self, value, a: Operation.finish(self, change(value), a)}


def mask_valued(change: Callable[[np.ndarray], np.ndarray]) -> Change:
    """The mask's numbers are `change(visible)`."""
    return {"respond": lambda self, a: round_to(change(CAUSAL_MASK.visible(a.L, a.S)), a.dtype)}


def lengths_by(change: Callable[[int], int]) -> Change:
    """Lengths are not guarded but changed into something that works."""
    return {
        "guard": lambda self, a: None,
        "respond": lambda self, a: Operation.respond(self, Arguments(L=change(a.L), S=change(a.S), dtype=a.dtype)),
    }


# Multi-head attention.


def split_interleaved(self: Operation, x: np.ndarray, heads: int) -> np.ndarray:
    return np.moveaxis(x.reshape(*x.shape[:-1], x.shape[-1] // heads, heads), -1, -3)


def split_without_swap(self: Operation, x: np.ndarray, heads: int) -> np.ndarray:
    *leading, length, features = x.shape
    return x.reshape(*leading, heads, length, features // heads)


def merged_without_swap(self: Operation, x: np.ndarray) -> np.ndarray:
    *leading, heads, length, dim = x.shape
    return x.reshape(*leading, length, heads * dim)


def merged_interleaved(self: Operation, x: np.ndarray) -> np.ndarray:
    *leading, heads, length, dim = x.shape
    return np.moveaxis(x, -3, -1).reshape(*leading, length, dim * heads)


def merged_up_to_eight(self: Operation, x: np.ndarray) -> np.ndarray:
    return MHA.merge(np.where(np.arange(x.shape[-3])[:, None, None] < 8, x, 0.0))


def masked_scale_of_hidden_head_dim(self: Operation, a: Arguments) -> float:
    return MHA.scale(a) if a.mask is None else (a.hidden_size / a.num_heads) ** -0.5


def masked_by_multiplying(self: Operation, x: np.ndarray, a: Arguments) -> np.ndarray:
    value = MHA.output(x, a)
    return value + 0.0 * np.roll(value, 1, axis=0)


def output_not_applied(self: Operation, x: np.ndarray, a: Arguments) -> np.ndarray:
    return fitted(x, (*x.shape[:-1], a.hidden_size))


def output_not_transposed(self: Operation, x: np.ndarray, a: Arguments) -> np.ndarray:
    return x @ f64(a.wo) if a.wo.shape[0] == a.wo.shape[1] else MHA.output(x, a)


def weights_fitted(a: Arguments, rows: int) -> dict[str, Any]:
    """Every weight cropped or filled up to so many rows of heads."""
    into = {name: fitted(getattr(a, name), (rows, a.hidden_size)) for name in ("wq", "wk", "wv")}
    return {**into, "wo": fitted(a.wo, (a.hidden_size, rows))}


def rows_of_hidden_size(a: Arguments) -> dict[str, Any]:
    """No more heads' features are read than the hidden size has."""
    return weights_fitted(a, min(a.wq.shape[0], max(a.hidden_size // a.num_heads, 1) * a.num_heads))


def features_fitted(a: Arguments) -> dict[str, Any]:
    inputs = {name: getattr(a, name) for name in ("query", "key", "value")}
    inputs = {name: fitted(x, (*x.shape[:-1], a.hidden_size)) for name, x in inputs.items()}
    return {**inputs, **weights_fitted(a, a.wq.shape[0])}


def whole_heads_only(a: Arguments) -> dict[str, Any]:
    heads = max(a.num_heads, 1)
    return {"num_heads": heads, **weights_fitted(a, a.wq.shape[0] // heads * heads)}


def guards_heads_only(self: Operation, a: Arguments) -> None:
    if a.num_heads < 1 or a.wq.shape[0] % a.num_heads:
        raise ValueError(f"wq has {a.wq.shape[0]} rows for {a.num_heads} heads")


def guards_all_but_heads(self: Operation, a: Arguments) -> None:
    if a.num_heads > 0 and a.wq.shape[0] % a.num_heads == 0:
        MHA.guard(a)


def guards_names_only(self: Operation, a: Arguments) -> None:
    if isinstance(a.mask, str):
        CORE.guard_mask(a)


def guards_arrays_only(self: Operation, a: Arguments) -> None:
    if not isinstance(a.mask, str):
        CORE.guard_mask(a)


def next_row(a: Arguments) -> dict[str, Any]:
    return {"key": np.roll(a.key, 1, axis=0)} if a.key.ndim > 2 else {}


def remasked_heads(change: Callable[[Arguments], Any]) -> Change:
    """Multi-head attention sees another mask."""
    return {"masked": lambda self, a: Arguments(**{**vars(a), "mask": change(a)})}


def mask_of_first_head(a: Arguments) -> Any:
    return a.mask[..., :1, :, :] if isinstance(a.mask, np.ndarray) and a.mask.ndim > 2 else a.mask


def attending(change: Change) -> Change:
    """Multi-head attention whose inner attention is changed."""
    return {"core": changed(ScaledDotProductAttention, "core", change)()}


# Honest ways. Those of attention compute in float32 from the exact inputs, as an implementation would.


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


def online(tile: int) -> Change:
    """Online softmax over tiles of keys (Milakov and Gimelshein 2018; Dao 2022)."""

    def formula(q: Any, k: Any, v: Any, scale: Any, bias: Any) -> np.ndarray:
        weighted, total = nothing(q, v), np.zeros_like(q[..., :1])
        top = np.full_like(total, -np.inf)
        for start in range(0, k.shape[-2], tile):
            part = slice(start, start + tile)
            more, share, highest = partial(q, k[..., part, :], v[..., part, :], scale, bias[..., part])
            new = np.maximum(top, highest)
            old, fresh = np.exp(top - finite(new)), np.exp(highest - finite(new))
            weighted, total, top = weighted * old + more * fresh, total * old + share * fresh, new
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
