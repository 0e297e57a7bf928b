"""Masks that are misread, or lie elsewhere, and the causal mask as an array: see `spec/faults/attention*.py`."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from inferspec.spec.attention import CausalMask, ScaledDotProductAttention
from inferspec.spec.changes.attention import CAUSAL_MASK, CORE, TILE, prompt_of_grouped_heads, reshapes, swapped_groups
from inferspec.spec.contract import Arguments, Change, Operation
from inferspec.spec.mistakes import first_of, honest
from inferspec.spec.numerics import round_to

# Masks.


def full_mask(a: Arguments) -> tuple[int, ...]:
    return (*a.query.shape[:-1], a.key.shape[-2])


def remade(change: Callable[[Arguments], dict[str, Any]]) -> Change:
    """Another mask is made of the one given before anything is checked."""

    def guard_mask(self: Operation, a: Arguments) -> None:
        CORE.guard_mask(Arguments(**{**vars(a), **change(a)}))

    return {"guard_mask": guard_mask, **reshapes(change)}


def cuts(cut: Callable[[np.ndarray, int, int], np.ndarray]) -> Change:
    """An array mask is cut, `cut(mask, length, keys)`, before anything is checked."""

    def change(a: Arguments) -> dict[str, Any]:
        length, keys = full_mask(a)[-2:]
        return {"mask": cut(a.mask, length, keys)} if isinstance(a.mask, np.ndarray) and a.mask.ndim > 1 else {}

    return remade(change)


def repeated_as_keys(a: Arguments) -> dict[str, Any]:
    """A mask of as many heads as the keys have is repeated for those of queries, as the keys are."""
    query_heads, heads = a.query.shape[-3], a.key.shape[-3]
    several = isinstance(a.mask, np.ndarray) and a.mask.ndim > 2 and a.mask.shape[-3] == heads > 1
    return {"mask": np.repeat(a.mask, query_heads // heads, axis=-3)} if several else {}


def first_keys(mask: np.ndarray, length: int, keys: int) -> np.ndarray:
    return mask[..., :keys]


def last_rows(mask: np.ndarray, length: int, keys: int) -> np.ndarray:
    return mask[..., max(mask.shape[-2] - length, 0) :, :]


def remasks(change: Callable[[np.ndarray, Arguments], np.ndarray]) -> Change:
    """What an array mask adds to the logits is `change` of what it should add."""

    def bias(self: ScaledDotProductAttention, a: Arguments) -> np.ndarray:
        right = CORE.bias(a)
        return change(right, a) if isinstance(a.mask, np.ndarray) else right

    return {"bias": bias}


def with_axes_alone(bias: np.ndarray, a: Arguments) -> np.ndarray:
    """What has no axes is no mask."""
    return bias if a.mask.ndim else np.zeros(())


def takes_axes(bias: np.ndarray, a: Arguments) -> np.ndarray:
    """The last axis of a mask is looked at, whether it has one or not."""
    if a.mask.ndim == 0:
        raise IndexError("axis -1 is out of bounds for an array of 0 dimensions")
    return bias


def spreads(change: Callable[[np.ndarray, Arguments], np.ndarray]) -> Change:
    """The same, for a change of the mask that is broadcast already."""
    return remasks(lambda bias, a: change(np.broadcast_to(bias, full_mask(a)), a))


def columns_in_16_bits(bits: type[np.signedinteger[Any]] | type[np.unsignedinteger[Any]]) -> Change:
    """The place of a key is kept in 16 bits where the mask is looked up."""

    def change(bias: np.ndarray, a: Arguments) -> np.ndarray:
        columns = np.arange(bias.shape[-1]).astype(bits).astype(np.int64)
        return bias[..., np.clip(columns, 0, None)]

    return spreads(change)


def part_block_by_its_first_row(bias: np.ndarray, a: Arguments) -> np.ndarray:
    """Queries past whole blocks of 8 skip the tiles of 64 keys that the first of them does not see, where there are both."""
    rows, keys = bias.shape[-2:]
    found, whole = bias.copy(), rows // 8 * 8
    for start in range(0, keys if 8 <= whole < rows and keys > 64 else 0, 64):
        tile = found[..., whole:, start : start + 64]
        tile[np.broadcast_to(np.isneginf(tile[..., :1, :]).all(axis=-1, keepdims=True), tile.shape)] = -np.inf
    return found


def mask_of_first_row(bias: np.ndarray, a: Arguments) -> np.ndarray:
    return bias[:1] if bias.ndim > 3 else bias


def mask_batch_in_heads(bias: np.ndarray, a: Arguments) -> np.ndarray:
    return bias.swapaxes(-3, -4).reshape(bias.shape) if bias.ndim > 3 else bias


def mask_heads_swapped(bias: np.ndarray, a: Arguments) -> np.ndarray:
    return np.take(bias, swapped_groups(a.query.shape[-3], a.key.shape[-3]), axis=-3)


def mask_of_first_of_packed_group(bias: np.ndarray, a: Arguments) -> np.ndarray:
    """Heads in groups of eight and more share a tile of a prompt, and the mask of the first."""
    if not prompt_of_grouped_heads(a):
        return bias
    group = a.query.shape[-3] // a.key.shape[-3]
    return np.take(bias, np.arange(a.query.shape[-3]) // group * group, axis=-3)


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


def rows_of_packed_groups(self: ScaledDotProductAttention, a: Arguments) -> np.ndarray:
    """Rows of a group of eight heads and more lie in one tile token by token, and the causal mask takes them for rows head by head."""
    bias = ScaledDotProductAttention.bias(self, a)
    if not (isinstance(a.mask, str) and prompt_of_grouped_heads(a)):
        return bias
    heads, length = a.query.shape[-3:-1]
    group = heads // a.key.shape[-3]
    return bias[(np.arange(length) * group + np.arange(heads)[:, None] % group) % length]


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
