"""What goes wrong in attention, its causal mask and multi-head attention, and the honest ways to compute them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from inferspec.spec import attention as spec
from inferspec.spec.attention import CausalMask, MultiHeadAttention, ScaledDotProductAttention
from inferspec.spec.contract import Arguments, Change, Fault, Operation, Variant, changed
from inferspec.spec.mistakes import (
    bfloat16_through_float16,
    drifts,
    first_row_for_all,
    ignores_strides,
    leaves_unwritten,
    mutates,
    only_where,
    promotes,
    remembers,
    remembers_by_identity,
)
from inferspec.spec.numerics import Precision, f64, largest, round_to

MLX = "https://github.com/ml-explore/mlx/"
MLX_LM = "https://github.com/ml-explore/mlx-lm/"
TINY_LLM = "https://github.com/skyzh/tiny-llm/"
FLASHINFER = "https://github.com/flashinfer-ai/flashinfer/"
FLASH_ATTENTION = "https://github.com/Dao-AILab/flash-attention/"
ENGINEER = "tired engineer"

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
    base = view
    while isinstance(base.base, np.ndarray):
        base = base.base
    flat = base.ravel(order="K")
    start = (view.__array_interface__["data"][0] - base.__array_interface__["data"][0]) // view.itemsize
    steps = [stride // other.itemsize for stride in other.strides]
    place = sum((i * step for i, step in zip(np.indices(view.shape), steps, strict=True)), np.zeros(view.shape, int))
    return flat[(start + place) % max(flat.size, 1)]


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
    if a.mask == "causal" and a.query.shape[-1] >= 96:
        i, j = np.indices(bias.shape[-2:])
        bias = np.where((i >= 128) & (j == i + bias.shape[-1] - bias.shape[-2] + 1), 0.0, bias)
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


def first_16_bits(out: np.ndarray) -> np.ndarray:
    """What of all heads of all rows a number of 16 bits counts."""
    return out.reshape(-1, *out.shape[-2:])[: 2**16 - 1]


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


def empty_rows(logits: np.ndarray) -> np.ndarray:
    return np.all(np.isneginf(logits), axis=-1, keepdims=True)


def over_queries(self: Operation, logits: np.ndarray, dtype: str) -> np.ndarray:
    return CORE.weights(logits.swapaxes(-1, -2), dtype).swapaxes(-1, -2)


def with_sink(self: Operation, logits: np.ndarray, dtype: str) -> np.ndarray:
    extended = np.concatenate([logits, np.zeros((*logits.shape[:-1], 1))], axis=-1)
    return CORE.weights(extended, dtype)[..., :-1]


def first_key(weights: np.ndarray, logits: np.ndarray) -> np.ndarray:
    return np.where(empty_rows(logits), np.arange(logits.shape[-1]) == 0, weights)


def stops_at_empty_row(weights: np.ndarray, logits: np.ndarray) -> np.ndarray:
    return np.where(np.logical_or.accumulate(empty_rows(logits), axis=-2), 0.0, weights)


def empty_row_spreads(weights: np.ndarray, logits: np.ndarray) -> np.ndarray:
    return np.where(empty_rows(logits).any(axis=-2, keepdims=True), np.nan, weights)


def fast_exponentials(self: Operation, logits: np.ndarray, dtype: str) -> np.ndarray:
    top = logits.max(axis=-1, keepdims=True, initial=-np.inf)
    below = np.maximum(logits - np.where(np.isfinite(top), top, 0.0), -256.0)
    weights = np.where(np.isneginf(logits), 0.0, (1 + below / 256) ** 256)
    return normalised(weights, summed(weights))


def largest_of_head(self: Operation, logits: np.ndarray, dtype: str) -> np.ndarray:
    return softmax(logits, logits.max(axis=(-1, -2), keepdims=True, initial=-np.inf))


def starts_at(number: float) -> Change:
    """The running maximum starts at a finite number."""
    return {
        "weights": lambda self, logits, dtype: softmax(logits, logits.max(axis=-1, keepdims=True, initial=number)),
    }


def mask_after_softmax(self: Operation, q: Any, k: Any, v: Any, scale: float, bias: Any, dtype: str) -> np.ndarray:
    hidden = np.isneginf(bias)
    weights = CORE.weights(CORE.logits(q, k, scale, np.where(hidden, 0.0, bias), dtype), dtype)
    return np.where(hidden, 0.0, weights) @ v


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


SDPA_FAULTS = (
    Fault(
        "sdpa-softmax-over-queries",
        "the softmax runs over the queries",
        spec.ATTN_01,
        {"weights": over_queries},
        ENGINEER,
    ),
    Fault(
        "sdpa-not-normalised",
        "the weights are not divided by their sum",
        spec.ATTN_01,
        {"weights": lambda self, logits, dtype: exponentials(logits)},
        ENGINEER,
    ),
    Fault(
        "sdpa-sink-left-in",
        "a constant logit 0 (attention sink) takes its share of every row",
        spec.ATTN_01,
        {"weights": with_sink},
        "softmax-off-by-one and attention sinks",
    ),
    Fault("sdpa-value-is-key", "the keys are read as the values", spec.ATTN_01, rereads(value="key"), ENGINEER),
    Fault(
        "sdpa-scale-missing",
        "the default scale is not applied",
        spec.ATTN_02,
        {"scale": lambda self, a: 1.0 if a.scale is None else float(a.scale)},
        ENGINEER,
    ),
    Fault(
        "sdpa-scale-of-dim",
        "the default scale is 1/D",
        spec.ATTN_02,
        {"scale": lambda self, a: 1 / a.query.shape[-1] if a.scale is None else float(a.scale)},
        ENGINEER,
    ),
    Fault(
        "sdpa-scale-multiplied",
        "the logits are multiplied by the root of D",
        spec.ATTN_02,
        {"scale": lambda self, a: a.query.shape[-1] ** 0.5 if a.scale is None else float(a.scale)},
        ENGINEER,
    ),
    Fault(
        "sdpa-scale-ignored",
        "a scale that is given is ignored",
        spec.ATTN_02,
        {"scale": lambda self, a: a.query.shape[-1] ** -0.5},
        ENGINEER,
    ),
    Fault(
        "sdpa-scale-zero-is-default",
        "scale 0 is taken for none (`scale or default`)",
        spec.ATTN_02,
        {"scale": lambda self, a: float(a.scale or a.query.shape[-1] ** -0.5)},
        "FACTS: real code written from the seeds",
    ),
    Fault(
        "sdpa-scale-sign-dropped",
        "a negative scale loses its sign",
        spec.ATTN_02,
        {"scale": lambda self, a: abs(CORE.scale(a))},
        ENGINEER,
    ),
    Fault(
        "sdpa-scale-twice",
        "the scale is applied to the query and to the logits",
        spec.ATTN_02,
        {"scale": lambda self, a: CORE.scale(a) ** 2},
        ENGINEER,
    ),
    Fault(
        "sdpa-heads-tiled",
        "query head h reads key/value head h % H",
        spec.ATTN_03,
        {"key_heads": heads_tiled},
        ENGINEER,
    ),
    Fault(
        "sdpa-value-heads-tiled",
        "query head h reads value head h % H and the right key head",
        spec.ATTN_03,
        {"value_heads": heads_tiled},
        ENGINEER,
    ),
    Fault(
        "sdpa-first-head-for-all",
        "every query head reads key/value head 0",
        spec.ATTN_03,
        {"key_heads": first_head},
        ENGINEER,
    ),
    Fault(
        "sdpa-first-value-head-for-all",
        "every query head reads value head 0",
        spec.ATTN_03,
        {"value_heads": first_head},
        ENGINEER,
    ),
    Fault(
        "sdpa-groups-reversed",
        "the key/value heads are matched in reverse order",
        spec.ATTN_03,
        {"key_heads": groups_reversed},
        ENGINEER,
    ),
    Fault(
        "sdpa-heads-merged-swapped",
        "the result's heads come back in the order (member, group)",
        spec.ATTN_03,
        {"finish": merges_heads_swapped},
        ENGINEER,
    ),
    Fault(
        "sdpa-mask-ignored",
        "array masks are ignored",
        spec.ATTN_04,
        remasks(lambda bias, a: np.zeros(())),
        TINY_LLM + "commit/55e7b0c",
    ),
    Fault(
        "sdpa-mask-before-scaling",
        "the mask is added before the logits are scaled",
        spec.ATTN_04,
        {"logits": lambda self, q, k, scale, bias, dtype: (q @ k.swapaxes(-1, -2) + bias) * scale},
        ENGINEER,
    ),
    Fault(
        "sdpa-mask-first-batch-row",
        "every batch row gets the mask of row 0",
        spec.ATTN_04,
        spreads(mask_of_first_row),
        ENGINEER,
    ),
    Fault(
        "sdpa-mask-first-head",
        "every head gets the mask of head 0",
        spec.ATTN_04,
        spreads(lambda bias, a: bias[..., :1, :, :]),
        ENGINEER,
    ),
    Fault(
        "sdpa-mask-first-query",
        "every query gets the mask of query 0",
        spec.ATTN_04,
        spreads(lambda bias, a: bias[..., :1, :]),
        ENGINEER,
    ),
    Fault("sdpa-mask-transposed", "a square mask is read transposed", spec.ATTN_04, spreads(mask_transposed), ENGINEER),
    Fault(
        "sdpa-mask-group-order",
        "under grouped heads the mask's heads are taken in the order (member, group)",
        spec.ATTN_04,
        spreads(mask_heads_swapped),
        MLX_LM + "commit/a790972f",
    ),
    Fault(
        "sdpa-mask-batch-in-heads",
        "the mask's batch axis is folded in with its heads",
        spec.ATTN_04,
        spreads(mask_batch_in_heads),
        TINY_LLM + "commit/ae06a7f",
    ),
    Fault(
        "sdpa-mask-read-unbroadcast",
        "a mask of fewer or singleton dims is read with the strides of a full one",
        spec.ATTN_04,
        remasks(lambda bias, a: np.resize(bias, full_mask(a))),
        MLX + "commit/005e7efa6",
    ),
    Fault(
        "sdpa-mask-low-rank-ignored",
        "a mask of fewer than two dims is ignored",
        spec.ATTN_04,
        remasks(lambda bias, a: bias if bias.ndim > 1 else np.zeros(())),
        MLX + "commit/005e7efa6",
    ),
    Fault(
        "sdpa-mask-vector-as-column",
        "a 1-D mask is laid along the queries when L = S",
        spec.ATTN_04,
        remasks(vector_as_column),
        ENGINEER,
    ),
    Fault(
        "sdpa-mask-made-bool",
        "finite numbers in an additive mask are dropped",
        spec.ATTN_04,
        remasks(lambda bias, a: np.where(np.isfinite(bias), 0.0, bias)),
        ENGINEER,
    ),
    Fault(
        "sdpa-mask-not-in-base-2",
        "log2(e) is folded into the scale for exp2, but not into the mask",
        spec.ATTN_04,
        remasks(lambda bias, a: bias * np.log(2.0)),
        ENGINEER,
    ),
    Fault(
        "sdpa-causal-top-left",
        "the causal mask is aligned top-left",
        spec.ATTN_05,
        TOP_LEFT,
        TINY_LLM + "commit/0c1ae4b",
    ),
    Fault("sdpa-causal-one-future", "each query sees one future key", spec.ATTN_05, ONE_FUTURE, ENGINEER),
    Fault(
        "sdpa-causal-second-half-one-future",
        "queries past the 256th see one future key",
        spec.ATTN_05,
        PAST_256_ONE_FUTURE,
        ENGINEER,
    ),
    Fault(
        "sdpa-heads-in-16-bits",
        "of all heads of all rows those past the 65535th are not written",
        spec.ATTN_12,
        leaves_unwritten(first_16_bits),
        "https://github.com/pytorch/pytorch/issues/142228",
    ),
    Fault(
        "sdpa-key-heads-modulo-sixteen",
        "key and value heads are counted modulo 16",
        spec.ATTN_03,
        reshapes(lambda a: {name: key_heads_modulo(16, getattr(a, name)) for name in ("key", "value")}),
        ENGINEER,
    ),
    Fault(
        "sdpa-values-through-float16",
        "bfloat16 values pass through float16",
        spec.ATTN_01,
        bfloat16_through_float16("value"),
        ENGINEER,
    ),
    Fault(
        "sdpa-several-queries-split-from-the-top",
        "where a few queries share many keys, the causal mask is aligned top-left",
        spec.ATTN_18,
        SPLIT_FROM_THE_TOP,
        ENGINEER,
    ),
    Fault(
        "sdpa-split-for-first-row",
        "from 1024 keys on, a single query reads those of the first batch row",
        spec.ATTN_18,
        {"attended": split_for_first_row},
        ENGINEER,
    ),
    Fault(
        "sdpa-1024-queries",
        "queries past the 1024th are never written",
        spec.ATTN_18,
        leaves_unwritten(lambda out: out[..., :1024, :]),
        ENGINEER,
    ),
    Fault(
        "sdpa-causal-wide-heads-one-future",
        "in heads of 96 dims and more queries past the 128th see one future key",
        spec.ATTN_05,
        {"bias": wide_heads_one_future},
        ENGINEER,
    ),
    Fault("sdpa-causal-not-itself", "each query misses its own key", spec.ATTN_05, NOT_ITSELF, ENGINEER),
    Fault(
        "sdpa-causal-top-left-where-longer",
        "the causal mask is aligned top-left where L > S",
        spec.ATTN_05,
        TOP_LEFT_WHERE_LONGER,
        MLX + "issues/2835",
    ),
    Fault("sdpa-causal-never-empty", "where L > S the first queries see key 0", spec.ATTN_07, NEVER_EMPTY, ENGINEER),
    Fault("sdpa-causal-square-only", "nothing is hidden where L and S differ", spec.ATTN_05, SQUARE_ONLY, ENGINEER),
    Fault(
        "sdpa-causal-ignored",
        '"causal" hides nothing',
        spec.ATTN_05,
        {"named_mask": lambda self, name, length, keys: np.zeros(())},
        MLX_LM + "commit/a9e1e82c",
    ),
    Fault(
        "sdpa-mask-after-softmax",
        "hidden weights are zeroed after the softmax, and the rest not normalised again",
        spec.ATTN_05,
        {"attended": mask_after_softmax},
        ENGINEER,
    ),
    Fault(
        "sdpa-bool-added",
        "a bool mask is added as 0 and 1",
        spec.ATTN_06,
        {"bool_mask": lambda self, mask: f64(mask)},
        MLX_LM + "commit/1dc5de4f",
    ),
    Fault(
        "sdpa-bool-inverted",
        "True in a bool mask hides the key",
        spec.ATTN_06,
        {"bool_mask": lambda self, mask: CORE.bool_mask(~mask)},
        "torch.nn.MultiheadAttention masks the other way round",
    ),
    Fault(
        "sdpa-bool-times-inf",
        "a bool mask is turned into (1 - mask) · -inf, NaN at every visible key",
        spec.ATTN_06,
        {"bool_mask": lambda self, mask: np.where(mask, np.nan, -np.inf)},
        ENGINEER,
    ),
    Fault(
        "sdpa-bool-multiplied",
        "a bool mask is multiplied with the logits: hidden keys have logit 0",
        spec.ATTN_06,
        {
            "logits": lambda self, q, k, scale, bias, dtype: np.where(
                np.isneginf(bias), 0.0, CORE.logits(q, k, scale, bias, dtype)
            )
        },
        ENGINEER,
    ),
    Fault(
        "sdpa-hidden-in-denominator",
        "hidden keys count as exp(0) in the denominator",
        spec.ATTN_06,
        {"attended": hidden_in_denominator},
        ENGINEER,
    ),
    Fault(
        "sdpa-inf-times-scale",
        "-inf in a mask is multiplied by the scale, NaN where that is 0 or negative",
        spec.ATTN_06,
        {
            "logits": lambda self, q, k, scale, bias, dtype: (
                q @ k.swapaxes(-1, -2) * scale + np.where(np.isneginf(bias), bias * scale, bias)
            )
        },
        ENGINEER,
    ),
    Fault(
        "sdpa-empty-row-mean",
        "a row that sees no key is the mean of the values",
        spec.ATTN_07,
        weights_by(lambda weights, logits: np.where(empty_rows(logits), 1 / max(logits.shape[-1], 1), weights)),
        MLX + "commit/e1840853c",
    ),
    Fault(
        "sdpa-empty-row-nan",
        "a row that sees no key is NaN",
        spec.ATTN_07,
        weights_by(lambda weights, logits: np.where(empty_rows(logits), np.nan, weights)),
        MLX + "commit/711a64580",
    ),
    Fault(
        "sdpa-empty-row-first-value",
        "a row that sees no key is the first value",
        spec.ATTN_07,
        weights_by(first_key),
        ENGINEER,
    ),
    Fault(
        "sdpa-lowest-row-mean",
        "a row hidden by the dtype's lowest number still attends",
        spec.ATTN_07,
        {"additive_mask": lambda self, mask: f64(mask)},
        "FACTS: torch 2.13 and MLX",
    ),
    Fault(
        "sdpa-empty-row-spreads",
        "a row that sees no key makes its whole head NaN",
        spec.ATTN_08,
        weights_by(empty_row_spreads),
        FLASH_ATTENTION + "commit/26d7d92f",
    ),
    Fault(
        "sdpa-empty-row-stops",
        "the rows after one that sees no key are zeros",
        spec.ATTN_08,
        weights_by(stops_at_empty_row),
        TINY_LLM + "commit/6817831",
    ),
    Fault(
        "sdpa-hidden-weight-epsilon",
        "an epsilon is added to every weight, the hidden ones too",
        spec.ATTN_08,
        weights_by(lambda weights, logits: weights + 1e-6),
        ENGINEER,
    ),
    Fault(
        "sdpa-hidden-in-maximum",
        "hidden logits count in the row's maximum, so that visible weights underflow",
        spec.ATTN_08,
        {"attended": hidden_in_maximum},
        ENGINEER,
    ),
    Fault(
        "sdpa-hides-with-minus-10000",
        "keys are hidden by adding -1e4, which large logits outweigh",
        spec.ATTN_08,
        hides_with(-1e4),
        ENGINEER,
    ),
    Fault("sdpa-hides-with-minus-100", "keys are hidden by adding -100", spec.ATTN_08, hides_with(-100.0), ENGINEER),
    Fault(
        "sdpa-logits-bfloat16",
        "the logits are rounded to bfloat16",
        spec.ATTN_09,
        softmax_by(lambda logits: rounded(logits, "bfloat16")),
        ENGINEER,
    ),
    Fault(
        "sdpa-logits-in-dtype",
        "the logits are rounded to the input's dtype",
        spec.ATTN_09,
        {"weights": lambda self, logits, dtype: CORE.weights(rounded(logits, dtype), dtype)},
        "DESIGN.md, section 5",
    ),
    Fault(
        "sdpa-query-in-dtype",
        "the scaled query is rounded to the input's dtype",
        spec.ATTN_09,
        {"logits": lambda self, q, k, scale, bias, dtype: rounded(q * scale, dtype) @ k.swapaxes(-1, -2) + bias},
        "DESIGN.md, section 5",
    ),
    Fault(
        "sdpa-logits-summed-in-dtype",
        "the logits are accumulated in the input's dtype",
        spec.ATTN_09,
        {"logits": logits_summed_in_dtype},
        ENGINEER,
    ),
    Fault(
        "sdpa-values-summed-in-dtype",
        "the weighted values are accumulated in the input's dtype",
        spec.ATTN_09,
        {"combine": values_summed_in_dtype},
        ENGINEER,
    ),
    Fault(
        "sdpa-total-summed-in-dtype",
        "the sum of the weights is accumulated in the input's dtype",
        spec.ATTN_09,
        {"weights": total_summed_in_dtype},
        ENGINEER,
    ),
    Fault(
        "sdpa-fast-exponential",
        "exp(x) is taken as (1 + x/256)^256",
        spec.ATTN_09,
        {"weights": fast_exponentials},
        "fast-math approximations",
    ),
    Fault(
        "sdpa-weights-8-bit",
        "the weights are rounded to 8 bits",
        spec.ATTN_09,
        weights_by(lambda weights, logits: np.rint(weights * 255) / 255),
        ENGINEER,
    ),
    Fault(
        "sdpa-no-maximum",
        "the row's largest logit is not subtracted: exp overflows",
        spec.ATTN_10,
        {"weights": lambda self, logits, dtype: softmax(logits, np.zeros(()))},
        ENGINEER,
    ),
    Fault(
        "sdpa-maximum-of-head",
        "one maximum serves all rows of a head: rows far below it are lost",
        spec.ATTN_10,
        {"weights": largest_of_head},
        ENGINEER,
    ),
    Fault(
        "sdpa-maximum-from-sentinel",
        "the running maximum starts at -5e4: rows below it are zeros",
        spec.ATTN_10,
        starts_at(-5e4),
        FLASHINFER + "commit/d7f2c6464",
    ),
    Fault(
        "sdpa-maximum-from-zero",
        "the running maximum starts at 0: rows far below it are zeros",
        spec.ATTN_10,
        starts_at(0.0),
        ENGINEER,
    ),
    Fault(
        "sdpa-logits-clipped",
        "logits are clipped to ±80",
        spec.ATTN_10,
        softmax_by(lambda logits: np.where(np.isneginf(logits), logits, np.clip(logits, -80.0, 80.0))),
        ENGINEER,
    ),
    Fault(
        "sdpa-soft-cap-left-in",
        "logits pass through 50 · tanh(x / 50)",
        spec.ATTN_10,
        softmax_by(lambda logits: np.where(np.isneginf(logits), logits, 50.0 * np.tanh(logits / 50.0))),
        "Gemma 2's logit cap",
    ),
    Fault(
        "sdpa-nan-becomes-zero",
        "NaN in the result is replaced by 0",
        spec.ATTN_20,
        NAN_TO_ZERO,
        "IEEE 754, section 6.2",
    ),
    Fault(
        "sdpa-nan-row-is-empty",
        "a row whose weights do not sum to more than 0 is taken for one that sees no key",
        spec.ATTN_20,
        NAN_ROW_IS_EMPTY,
        "PyTorch's flash attention on the CPU",
    ),
    Fault(
        "sdpa-nan-is-no-logit",
        "a NaN among the logits is taken for a hidden key",
        spec.ATTN_20,
        NAN_HIDES,
        "IEEE 754, section 6.2",
    ),
    Fault(
        "sdpa-no-keys-nan",
        "no keys give NaN",
        spec.ATTN_11,
        fails_if(lambda q, k: k.shape[-2] == 0, np.nan),
        FLASH_ATTENTION + "commit/26d7d92f",
    ),
    Fault(
        "sdpa-no-keys-crash",
        "no keys raise an exception",
        spec.ATTN_11,
        fails_if(lambda q, k: k.shape[-2] == 0),
        FLASH_ATTENTION + "commit/03cd0651",
    ),
    Fault(
        "sdpa-no-queries-crash",
        "no queries raise an exception",
        spec.ATTN_11,
        fails_if(lambda q, k: q.shape[-2] == 0),
        FLASH_ATTENTION + "commit/484b9813",
    ),
    Fault(
        "sdpa-no-batch-crash",
        "an empty batch raises an exception",
        spec.ATTN_11,
        fails_if(lambda q, k: 0 in q.shape[:-3]),
        FLASH_ATTENTION + "commit/484b9813",
    ),
    Fault(
        "sdpa-keys-of-first-row",
        "every batch row reads the keys of row 0",
        spec.ATTN_12,
        first_row_for_all("key"),
        ENGINEER,
    ),
    Fault(
        "sdpa-values-of-first-row",
        "every batch row reads the values of row 0",
        spec.ATTN_12,
        first_row_for_all("value"),
        ENGINEER,
    ),
    Fault(
        "sdpa-inner-batch-ignored",
        "only the outermost leading dim moves the key pointer",
        spec.ATTN_12,
        reshapes(inner_batch_ignored),
        ENGINEER,
    ),
    Fault(
        "sdpa-leading-dims-swapped",
        "two leading dims of value are walked in the wrong order",
        spec.ATTN_12,
        reshapes(leading_dims_swapped),
        ENGINEER,
    ),
    Fault(
        "sdpa-batch-stride-of-query",
        "the batch stride of key is computed from the query's heads",
        spec.ATTN_12,
        reshapes(batch_stride_of_query),
        ENGINEER,
    ),
    Fault(
        "sdpa-query-strides", "query is read as if it were contiguous", spec.ATTN_13, ignores_strides("query"), ENGINEER
    ),
    Fault("sdpa-key-strides", "key is read as if it were contiguous", spec.ATTN_13, ignores_strides("key"), ENGINEER),
    Fault(
        "sdpa-value-strides", "value is read as if it were contiguous", spec.ATTN_13, ignores_strides("value"), ENGINEER
    ),
    Fault(
        "sdpa-mask-strides",
        "mask is read as if it were contiguous",
        spec.ATTN_13,
        ignores_strides("mask"),
        MLX + "commit/005e7efa6",
    ),
    Fault(
        "sdpa-value-with-key-strides",
        "value is read with the strides of key",
        spec.ATTN_13,
        reshapes(lambda a: {"value": read_with_strides_of(a.value, a.key)}),
        MLX + "commit/62f297b51",
    ),
    Fault(
        "sdpa-float32-result",
        "the result is float32 whatever the query's dtype",
        spec.ATTN_14,
        promotes(),
        "FACTS: the course's half-precision attention",
    ),
    Fault(
        "sdpa-float16-result",
        "the result is float16 whatever the query's dtype",
        spec.ATTN_14,
        promotes("float16"),
        ENGINEER,
    ),
    Fault(
        "sdpa-batch-added",
        "a query without leading dims comes back with a batch dim",
        spec.ATTN_14,
        {"finish": adds_batch},
        ENGINEER,
    ),
    Fault("sdpa-squeezed", "dims of size 1 are gone from the result", spec.ATTN_14, {"finish": squeezes}, ENGINEER),
    Fault(
        "sdpa-query-scaled-in-place", "the caller's query is scaled in place", spec.ATTN_15, mutates("query"), ENGINEER
    ),
    Fault("sdpa-key-changed", "the caller's key is changed", spec.ATTN_15, mutates("key"), ENGINEER),
    Fault("sdpa-mask-changed", "the caller's mask is changed", spec.ATTN_15, mutates("mask"), ENGINEER),
    Fault(
        "sdpa-scale-remembered",
        "the scale of the first call with these shapes is used for all",
        spec.ATTN_16,
        remembers("scale"),
        FLASHINFER + "commit/82784bb11",
    ),
    Fault(
        "sdpa-mask-remembered-by-identity",
        "what a mask was made into is kept by its id, which another mask has when the first one is gone",
        spec.ATTN_16,
        remembers_by_identity("mask"),
        ENGINEER,
    ),
    Fault(
        "sdpa-mask-remembered",
        "the mask of the first call with these shapes is used for all",
        spec.ATTN_16,
        remembers("mask"),
        FLASHINFER + "commit/82784bb11",
    ),
    Fault(
        "sdpa-key-remembered",
        "the key heads of the first call with these shapes, repeated once, are used for all",
        spec.ATTN_16,
        remembers("key"),
        ENGINEER,
    ),
    Fault(
        "sdpa-value-remembered-under-a-mask",
        "the value of the first masked call with these shapes is used for all masked ones",
        spec.ATTN_16,
        only_where(lambda a: a.mask is not None, remembers("value")),
        ENGINEER,
    ),
    Fault("sdpa-drifting", "every repeated call is larger", spec.ATTN_16, drifts(), ENGINEER),
    Fault(
        "sdpa-unknown-mask-is-none",
        "an unknown mask name hides nothing",
        spec.ATTN_17,
        {
            "guard_mask": guards_arrays_only,
            "named_mask": lambda self, name, length, keys: (
                CORE.named_mask(name, length, keys) if name == "causal" else np.zeros(())
            ),
        },
        "FACTS: real code written from the seeds",
    ),
    Fault(
        "sdpa-unknown-mask-is-causal",
        "any mask name means causal",
        spec.ATTN_17,
        {"guard_mask": guards_arrays_only},
        ENGINEER,
    ),
    Fault(
        "sdpa-mask-cropped",
        "a mask that does not broadcast is cropped or repeated",
        spec.ATTN_17,
        {
            "guard_mask": guards_names_only,
            **reshapes(lambda a: {"mask": wrapped(a.mask, full_mask(a)) if isinstance(a.mask, np.ndarray) else a.mask}),
        },
        ENGINEER,
    ),
    Fault(
        "sdpa-heads-floor-divided",
        "head counts that do not divide are rounded down",
        spec.ATTN_17,
        {"guard_heads": lambda self, a: None, "key_heads": heads_floor_divided},
        ENGINEER,
    ),
    Fault(
        "sdpa-dims-cropped",
        "of differing head dims or lengths the smaller is taken",
        spec.ATTN_17,
        {"guard_lengths": lambda self, a: None, **reshapes(cropped_dims)},
        ENGINEER,
    ),
    Fault(
        "sdpa-tail-keys-dropped",
        "keys past a multiple of 32 are dropped",
        spec.ATTN_18,
        softmax_by(tail_keys_dropped),
        TINY_LLM + "commit/657c0b3",
    ),
    Fault(
        "sdpa-tail-padding-counted",
        "the last tile is filled up with keys of logit 0",
        spec.ATTN_18,
        {"weights": tail_padding_counted},
        FLASHINFER + "commit/16cb9e493",
    ),
    Fault(
        "sdpa-last-of-full-tile-dropped",
        "the last key is dropped when S is a multiple of 32",
        spec.ATTN_18,
        softmax_by(last_of_full_tile_dropped),
        ENGINEER,
    ),
    Fault(
        "sdpa-never-rescaled",
        "earlier tiles of keys are not rescaled when the maximum grows",
        spec.ATTN_18,
        {"weights": never_rescaled},
        ENGINEER,
    ),
    Fault(
        "sdpa-halves-not-rescaled",
        "from 1024 keys on, a single query's two halves are merged without their maxima",
        spec.ATTN_18,
        {"weights": halves_not_rescaled},
        MLX + "issues/4022",
    ),
    Fault(
        "sdpa-tail-queries-unwritten",
        "queries past a multiple of 32 are never written",
        spec.ATTN_18,
        leaves_unwritten(without_tail_queries),
        TINY_LLM + "commit/657c0b3",
    ),
    Fault(
        "sdpa-tail-dims-dropped",
        "head dims past a multiple of 64 do not enter the logits",
        spec.ATTN_18,
        reshapes(tail_dims_dropped),
        ENGINEER,
    ),
    Fault(
        "sdpa-decode-first-key",
        "a single causal query sees key 0 only",
        spec.ATTN_19,
        DECODE_FIRST_KEY,
        TINY_LLM + "commit/0c1ae4b",
    ),
    Fault(
        "sdpa-decode-not-last",
        "a single causal query sees all but the last key",
        spec.ATTN_19,
        DECODE_NOT_LAST,
        ENGINEER,
    ),
    Fault(
        "sdpa-causal-whole-chunks",
        "the offset of a chunk of queries is rounded down to whole chunks",
        spec.ATTN_19,
        WHOLE_CHUNKS,
        ENGINEER,
    ),
)

CMASK_FAULTS = (
    Fault("cmask-top-left", "the mask is aligned top-left", spec.CMASK_01, TOP_LEFT, TINY_LLM + "commit/0c1ae4b"),
    Fault("cmask-buffer-of-1024", "all is visible past 1024 queries or keys", spec.CMASK_01, BUFFER_OF_1024, ENGINEER),
    Fault("cmask-buffer-of-4096", "all is visible past 4096 keys", spec.CMASK_01, BUFFER_OF_4096, ENGINEER),
    Fault("cmask-one-future", "each query sees one future key", spec.CMASK_01, ONE_FUTURE, ENGINEER),
    Fault("cmask-not-itself", "each query misses its own key", spec.CMASK_01, NOT_ITSELF, ENGINEER),
    Fault(
        "cmask-top-left-where-longer",
        "the mask is aligned top-left where L > S",
        spec.CMASK_01,
        TOP_LEFT_WHERE_LONGER,
        MLX + "issues/2835",
    ),
    Fault(
        "cmask-wrapped", "where L > S negative counts of visible keys wrap around", spec.CMASK_01, sees(wraps), ENGINEER
    ),
    Fault("cmask-transposed", "the mask is the transpose: the past is hidden", spec.CMASK_01, TRANSPOSED, ENGINEER),
    Fault(
        "cmask-ones",
        "the mask holds 1 where a key is visible and 0 elsewhere",
        spec.CMASK_01,
        mask_valued(lambda visible: visible * 1.0),
        MLX_LM + "commit/1dc5de4f",
    ),
    Fault(
        "cmask-minus-10000", "hidden entries are -1e4", spec.CMASK_02, {"hidden": lambda self, dtype: -1e4}, ENGINEER
    ),
    Fault("cmask-minus-1e9", "hidden entries are -1e9", spec.CMASK_02, {"hidden": lambda self, dtype: -1e9}, ENGINEER),
    Fault(
        "cmask-lowest-float16",
        "hidden entries are float16's lowest number in every dtype",
        spec.CMASK_02,
        {"hidden": lambda self, dtype: -largest("float16")},
        ENGINEER,
    ),
    Fault(
        "cmask-nan",
        "the mask is (1 - visible) · -inf, NaN at every visible key",
        spec.CMASK_02,
        mask_valued(lambda visible: np.where(visible, np.nan, -np.inf)),
        ENGINEER,
    ),
    Fault("cmask-float32", "the mask is float32 whatever was asked for", spec.CMASK_03, promotes(), ENGINEER),
    Fault("cmask-s-by-l", "the mask is S×L", spec.CMASK_03, mask_shaped(lambda value: value.T), ENGINEER),
    Fault(
        "cmask-four-dims", "the mask is 1×1×L×S", spec.CMASK_03, mask_shaped(lambda value: value[None, None]), ENGINEER
    ),
    Fault(
        "cmask-never-empty",
        "a mask without rows or columns gets one",
        spec.CMASK_03,
        reshapes(lambda a: {"L": max(a.L, 1), "S": max(a.S, 1)}),
        ENGINEER,
    ),
    Fault(
        "cmask-sliced-from-larger",
        "a smaller mask is the upper left corner of a larger one made earlier",
        spec.CMASK_04,
        {"respond": sliced_from_larger},
        ENGINEER,
    ),
    Fault("cmask-keys-remembered", "the S of the first call is used for all", spec.CMASK_04, remembers("S"), ENGINEER),
    Fault(
        "cmask-negative-is-empty",
        "negative lengths count as 0",
        spec.CMASK_05,
        lengths_by(lambda length: max(length, 0)),
        ENGINEER,
    ),
    Fault("cmask-negative-is-positive", "negative lengths lose their sign", spec.CMASK_05, lengths_by(abs), ENGINEER),
)

MHA_FAULTS = (
    Fault("mha-value-by-wk", "wk projects the value too", spec.MHA_01, rereads(wv="wk"), ENGINEER),
    Fault("mha-key-by-wv", "wv projects the key too", spec.MHA_01, rereads(wk="wv"), ENGINEER),
    Fault("mha-wq-wk-swapped", "wq and wk are swapped", spec.MHA_01, rereads(wq="wk", wk="wq"), ENGINEER),
    Fault("mha-wo-not-applied", "wo is not applied", spec.MHA_01, {"output": output_not_applied}, ENGINEER),
    Fault(
        "mha-wo-not-transposed",
        "a square wo is not transposed",
        spec.MHA_01,
        {"output": output_not_transposed},
        ENGINEER,
    ),
    Fault(
        "mha-value-is-key", "the value is projected from the key argument", spec.MHA_01, rereads(value="key"), ENGINEER
    ),
    Fault(
        "mha-self-attention",
        "key and value are projected from the query argument",
        spec.MHA_01,
        rereads(key="query", value="query"),
        ENGINEER,
    ),
    Fault("mha-scale-missing", "the logits are not scaled", spec.MHA_01, {"scale": lambda self, a: 1.0}, ENGINEER),
    Fault(
        "mha-scale-of-hidden-size",
        "the scale is hidden_size^-0.5",
        spec.MHA_01,
        {"scale": lambda self, a: a.hidden_size**-0.5},
        ENGINEER,
    ),
    Fault(
        "mha-split-interleaved",
        "heads are split as D×H: every H-th feature is one head's",
        spec.MHA_02,
        {"split": split_interleaved},
        ENGINEER,
    ),
    Fault(
        "mha-split-without-swap",
        "heads are split off by a reshape that mixes positions and heads",
        spec.MHA_02,
        {"split": split_without_swap},
        ENGINEER,
    ),
    Fault(
        "mha-merged-without-swap",
        "heads are merged by a reshape that mixes positions and heads",
        spec.MHA_02,
        {"merge": merged_without_swap},
        ENGINEER,
    ),
    Fault(
        "mha-heads-past-eight-missing",
        "heads past the eighth are not attended",
        spec.MHA_02,
        {"merge": merged_up_to_eight},
        ENGINEER,
    ),
    Fault(
        "mha-values-through-float16",
        "bfloat16 values pass through float16",
        spec.MHA_01,
        bfloat16_through_float16("value"),
        ENGINEER,
    ),
    Fault(
        "mha-causal-past-256",
        "queries past the 256th of a prompt see one future key",
        spec.MHA_04,
        attending(PAST_256_ONE_FUTURE),
        ENGINEER,
    ),
    Fault("mha-merged-interleaved", "heads are merged as D×H", spec.MHA_02, {"merge": merged_interleaved}, ENGINEER),
    Fault(
        "mha-scale-of-hidden-head-dim",
        "the scale is (hidden_size / num_heads)^-0.5",
        spec.MHA_03,
        {"scale": lambda self, a: (a.hidden_size / a.num_heads) ** -0.5},
        "vllm-metal bbacf63",
    ),
    Fault(
        "mha-head-dim-of-hidden-size",
        "rows of the projections past hidden_size are dropped",
        spec.MHA_03,
        reshapes(rows_of_hidden_size),
        "vllm-metal bbacf63",
    ),
    Fault("mha-mask-dropped", "the mask is not passed on", spec.MHA_04, remasked_heads(lambda a: None), ENGINEER),
    Fault(
        "mha-mask-square-only",
        "the mask is dropped where L and S differ",
        spec.MHA_04,
        remasked_heads(lambda a: a.mask if a.query.shape[-2] == a.key.shape[-2] else None),
        ENGINEER,
    ),
    Fault(
        "mha-mask-first-head",
        "every head gets the mask of head 0",
        spec.MHA_04,
        remasked_heads(mask_of_first_head),
        ENGINEER,
    ),
    Fault(
        "mha-causal-top-left",
        "the causal mask is aligned top-left",
        spec.MHA_04,
        attending(TOP_LEFT),
        TINY_LLM + "commit/0c1ae4b",
    ),
    Fault(
        "mha-bool-added",
        "a bool mask is added as 0 and 1",
        spec.MHA_04,
        attending({"bool_mask": lambda self, mask: f64(mask)}),
        MLX_LM + "commit/1dc5de4f",
    ),
    Fault(
        "mha-mask-before-scaling",
        "the mask is added before the logits are scaled",
        spec.MHA_04,
        attending({"logits": lambda self, q, k, scale, bias, dtype: (q @ k.swapaxes(-1, -2) + bias) * scale}),
        ENGINEER,
    ),
    Fault(
        "mha-keys-of-first-row",
        "every batch row reads the keys of row 0",
        spec.MHA_05,
        first_row_for_all("key"),
        ENGINEER,
    ),
    Fault(
        "mha-values-of-first-row",
        "every batch row reads the values of row 0",
        spec.MHA_05,
        first_row_for_all("value"),
        ENGINEER,
    ),
    Fault(
        "mha-keys-of-next-row",
        "each batch row reads the keys of its neighbour",
        spec.MHA_05,
        reshapes(next_row),
        ENGINEER,
    ),
    *(
        Fault(
            f"mha-{name}-strides",
            f"{name} is read as if it were contiguous",
            spec.MHA_06,
            ignores_strides(name),
            ENGINEER,
        )
        for name in ("query", "key", "value", "wq", "wk", "wv", "wo")
    ),
    Fault("mha-float32-result", "the result is float32 whatever the query's dtype", spec.MHA_07, promotes(), ENGINEER),
    Fault("mha-squeezed", "dims of size 1 are gone from the result", spec.MHA_07, {"finish": squeezes}, ENGINEER),
    Fault("mha-query-changed", "the caller's query is changed", spec.MHA_08, mutates("query"), ENGINEER),
    Fault(
        "mha-wq-scaled-in-place",
        "the scale is folded into the caller's wq at every call",
        spec.MHA_08,
        mutates("wq"),
        ENGINEER,
    ),
    Fault(
        "mha-mask-remembered",
        "the mask of the first call with these shapes is used for all",
        spec.MHA_09,
        remembers("mask"),
        FLASHINFER + "commit/82784bb11",
    ),
    Fault(
        "mha-mask-remembered-by-identity",
        "what a mask was made into is kept by its id, which another mask has when the first one is gone",
        spec.MHA_09,
        remembers_by_identity("mask"),
        ENGINEER,
    ),
    Fault(
        "mha-key-remembered",
        "the projected key of the first call with these shapes is used for all",
        spec.MHA_09,
        remembers("key"),
        ENGINEER,
    ),
    Fault(
        "mha-weights-remembered",
        "the weights of queries, joined with those of keys and values, are kept by their shapes",
        spec.MHA_09,
        remembers("wq"),
        ENGINEER,
    ),
    Fault(
        "mha-causal-query-remembered",
        "the projected query of the first causal call with these shapes is used for all causal ones",
        spec.MHA_09,
        only_where(lambda a: isinstance(a.mask, str), remembers("query")),
        ENGINEER,
    ),
    Fault(
        "mha-causal-query-changed",
        "the causal path scales the caller's query in place",
        spec.MHA_08,
        only_where(lambda a: isinstance(a.mask, str), mutates("query")),
        ENGINEER,
    ),
    Fault(
        "mha-causal-strides",
        "the causal path reads wq as if it were contiguous",
        spec.MHA_06,
        only_where(lambda a: isinstance(a.mask, str), ignores_strides("wq")),
        ENGINEER,
    ),
    Fault("mha-drifting", "every repeated call is larger", spec.MHA_09, drifts(), ENGINEER),
    Fault(
        "mha-weights-fitted",
        "weights that do not fit are cropped or filled up with zeros",
        spec.MHA_10,
        {"guard": guards_heads_only, **reshapes(features_fitted)},
        ENGINEER,
    ),
    Fault(
        "mha-whole-heads-only",
        "rows of the weights past the last whole head are dropped",
        spec.MHA_10,
        {"guard": guards_all_but_heads, **reshapes(whole_heads_only)},
        ENGINEER,
    ),
)

FAULTS = SDPA_FAULTS + CMASK_FAULTS + MHA_FAULTS


# Honest ways. Those of attention compute in float32 from the exact inputs, as an implementation would.


def single(x: Any) -> Any:
    return np.asarray(x, np.float32)


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
        weighted, total = np.zeros_like(q), np.zeros_like(q[..., :1])
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


SDPA = "scaled_dot_product_attention"

VARIANTS = (
    *(
        Variant(f"sdpa-online-{tile}", f"online softmax in tiles of {tile} keys", SDPA, online(tile))
        for tile in (1, 3, 32)
    ),
    Variant(
        "sdpa-split-and-merged", "keys in three splits, merged by their log-sum-exp", SDPA, computed(split_and_merged)
    ),
    Variant("sdpa-reversed-order", "float32 with every sum in reverse order", SDPA, computed(reversed_order)),
    Variant("sdpa-query-scaled-first", "the query is scaled before the product", SDPA, computed(query_scaled_first)),
    Variant("sdpa-base-two", "exp2, with log2(e) folded into scale and mask", SDPA, computed(base_two)),
    Variant(
        "sdpa-lowest-for-inf", "hidden logits are the lowest number, empty rows zeroed", SDPA, computed(lowest_for_inf)
    ),
    Variant(
        "sdpa-heads-broadcast",
        "keys and values broadcast over groups of query heads",
        SDPA,
        {"respond": heads_broadcast},
    ),
    Variant(
        "sdpa-weights-rounded",
        "the weights are rounded to the dtype before they meet the values",
        SDPA,
        {"weights": lambda self, logits, dtype: rounded(CORE.weights(logits, dtype), dtype)},
        Precision.NATIVE,
    ),
    Variant(
        "sdpa-native-logits",
        "logits in the dtype, softmax in float32",
        SDPA,
        {"logits": native_logits},
        Precision.NATIVE,
    ),
    Variant("sdpa-native-steps", "every intermediate in the dtype", SDPA, NATIVE_STEPS, Precision.NATIVE),
    Variant(
        "cmask-lowest",
        "hidden entries are the dtype's lowest number",
        "causal_mask",
        {"hidden": lambda self, dtype: -largest(dtype)},
    ),
    Variant(
        "cmask-triangle",
        "the mask is made as a triangle",
        "causal_mask",
        mask_valued(lambda visible: np.triu(np.full(visible.shape, -np.inf), visible.shape[1] - visible.shape[0] + 1)),
    ),
    Variant(
        "mha-rounded-stages",
        "float32, rounded to the dtype after every projection and the attention",
        "MultiHeadAttention",
        {"projected": projected_in_float32, "output": output_in_float32, **attending(computed(query_scaled_first))},
    ),
    Variant(
        "mha-fused-projections",
        "one product with the stacked weights, nothing rounded before the result",
        "MultiHeadAttention",
        {"projected": projected_together, **attending(computed(query_scaled_first))},
    ),
    Variant(
        "mha-output-by-head",
        "each head is projected by its part of wo, and the results added",
        "MultiHeadAttention",
        {"output": output_by_head},
    ),
    Variant(
        "mha-native-steps",
        "every intermediate in the dtype",
        "MultiHeadAttention",
        {"projected": projected_in_float32, "output": output_in_float32, **attending(NATIVE_STEPS)},
        Precision.NATIVE,
    ),
)
