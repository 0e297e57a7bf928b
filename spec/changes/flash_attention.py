"""The steps that faults and honest variants have in the place of the oracle's: see `spec/faults/flash_attention*.py`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from inferspec.spec.attention import ScaledDotProductAttention
from inferspec.spec.changes.attention import CORE, heads_by, reshapes
from inferspec.spec.changes.attention_variants import divided, finite, nothing, online_sums, single
from inferspec.spec.changes.attention_weights import empty_rows, exponentials, normalised, rounded, summed
from inferspec.spec.changes.tiles import Kernel
from inferspec.spec.contract import Arguments, Change, Operation
from inferspec.spec.mistakes import (
    honest,
    leaves_unwritten,
)

# Grouped heads


def one_part_of_large_heads(self: ScaledDotProductAttention, x: np.ndarray, query_heads: int) -> np.ndarray:
    x = ScaledDotProductAttention.key_heads(self, x, query_heads)
    return x[..., np.minimum(np.arange(x.shape[-2]), 511), :] if x.shape[-1] >= 128 else x


def _lower_power(ratio: int) -> int:
    return 1 << (ratio.bit_length() - 1)


def _upper_power(ratio: int) -> int:
    return 1 << (ratio - 1).bit_length()


group_shifted_down = heads_by(
    lambda query_heads, heads: np.minimum(np.arange(query_heads) // _lower_power(query_heads // heads), heads - 1)
)
group_shifted_up = heads_by(lambda query_heads, heads: np.arange(query_heads) // _upper_power(query_heads // heads))
groups_of_eight = heads_by(lambda query_heads, heads: np.minimum(np.arange(query_heads) // 8, heads - 1))


def tiles_of_sixteen(a: Arguments) -> dict[str, Any]:
    """Where a single query's groups are larger than a tile of sixteen, a head reads the key head of its tile's first."""
    heads, keys = a.query.shape[-3], a.key.shape[-3]
    if a.query.shape[-2] != 1 or keys == 0 or heads // keys <= 16:
        return {}
    own = np.arange(heads) // 16 * 16 // (heads // keys)
    return {name: np.take(getattr(a, name), own, axis=-3) for name in ("key", "value")}


def rows_of_the_next_head(self: Operation, a: Arguments) -> Any:
    """Of more than 32 keys the parts of a query whose heads lie side by side are written a head dim apart."""
    result = np.array(honest(self, a))
    heads, _, dim = a.query.shape[-3:]
    beside = [stride // a.query.itemsize for stride in a.query.strides[-3:]] == [dim, heads * dim, 1]
    if beside and heads > 1 and a.key.shape[-2] > 32:
        result[..., 1:, :] = np.roll(result, 1, axis=-3)[..., 1:, :]
    return result


def odd_members_unwritten(self: Operation, value: np.ndarray, a: Arguments) -> np.ndarray:
    """A threadgroup takes as many query heads of a group as a power of two allows; the others are never written."""
    heads, ratio = a.key.shape[-3], a.query.shape[-3] // a.key.shape[-3]
    member = np.arange(heads * ratio) % ratio
    return Operation.finish(self, np.where((member < _lower_power(ratio))[:, None, None], value, 0.0), a)


def packed_rows_unwritten(self: Operation, value: np.ndarray, a: Arguments) -> np.ndarray:
    """The rows of a group (its heads times L) fill blocks of 8, and the last block is only there when it is full."""
    if not value.size:
        return Operation.finish(self, value, a)
    group = value.reshape(*value.shape[:-3], a.key.shape[-3], -1, value.shape[-1])
    rows = group.shape[-2]
    kept = np.where((np.arange(rows) < (rows // 8 * 8 or rows))[:, None], group, 0.0)
    return Operation.finish(self, kept.reshape(value.shape), a)


# Masks in tiles


def mask_row_of_block(bias: np.ndarray, a: Arguments) -> np.ndarray:
    """The mask's row is counted from the block of queries, not from the first query."""
    return bias[..., np.arange(bias.shape[-2]) % 32, :]


def mask_column_of_tile(bias: np.ndarray, a: Arguments) -> np.ndarray:
    return bias[..., np.arange(bias.shape[-1]) % 32]


def mask_of_full_tiles(bias: np.ndarray, a: Arguments) -> np.ndarray:
    """The last tile, when it is not full, goes through a path without a mask."""
    keys = bias.shape[-1]
    return np.where(np.arange(keys) < keys // 32 * 32, bias, 0.0)


def lowest_of_float16_past_a_tile(self: ScaledDotProductAttention, mask: np.ndarray) -> np.ndarray:
    bias = ScaledDotProductAttention.additive_mask(self, mask)
    if mask.dtype != np.float16 or not mask.ndim:
        return bias
    return np.where(np.arange(mask.shape[-1]) >= 64, mask.astype(np.float64), bias)


def mask_row_stride(bias: np.ndarray, a: Arguments) -> np.ndarray:
    """Rows of the mask are taken to be as far apart as S rounded up to 8."""
    *lead, length, keys = bias.shape
    flat = bias.reshape(*lead, -1)
    place = np.arange(length)[:, None] * (-(-keys // 8) * 8) + np.arange(keys)
    return flat[..., place % max(flat.shape[-1], 1)]


Rule = Callable[[np.ndarray, np.ndarray, int, int], np.ndarray]


def stops_a_tile_early(tile: int) -> Rule:
    """A block's last tile is (its last visible key) // tile, and the walk ends before it."""

    def rule(i: np.ndarray, j: np.ndarray, length: int, keys: int) -> np.ndarray:
        last = np.minimum(i // tile * tile + tile - 1, length - 1) + keys - length
        return (j <= i + keys - length) & ((j < last // tile * tile) | (last < tile))

    return rule


def stops_at_first_row(tile: int) -> Rule:
    """The walk ends at the tile of the block's first row: later rows lose what lies beyond it."""

    def rule(i: np.ndarray, j: np.ndarray, length: int, keys: int) -> np.ndarray:
        first = i // tile * tile + keys - length
        return (j <= i + keys - length) & (j < (first // tile + 1) * tile)

    return rule


def bound_without_offset(i: np.ndarray, j: np.ndarray, length: int, keys: int) -> np.ndarray:
    """The number of tiles forgets S - L; the mask inside them does not."""
    return (j <= i + keys - length) & (j < (i // 32 + 1) * 32)


def diagonal_tile_unmasked(i: np.ndarray, j: np.ndarray, length: int, keys: int) -> np.ndarray:
    """Only tiles past the block's first visible one are compared; the tile that the diagonal enters is taken whole."""
    first = i // 32 * 32 + keys - length
    return (j <= i + keys - length) | (j // 32 == first // 32)


def last_tile_alone_masked(tile: int) -> Rule:
    """Where S - L is no multiple of a tile the diagonal crosses two of them in a block, and the last alone is masked."""

    def rule(i: np.ndarray, j: np.ndarray, length: int, keys: int) -> np.ndarray:
        last = np.minimum(i // tile * tile + tile - 1, length - 1) + keys - length
        return ((j <= i + keys - length) | (j // tile < last // tile)) & (j <= last)

    return rule


def offset_in_tiles(i: np.ndarray, j: np.ndarray, length: int, keys: int) -> np.ndarray:
    """S - L is rounded down to a multiple of 8."""
    return j <= i + (keys - length) // 8 * 8


# Softmax


def base_two_without_log2e(self: Operation, logits: np.ndarray, dtype: str) -> np.ndarray:
    return CORE.weights(logits * np.log(2.0), dtype)


def unnormalised(self: Operation, logits: np.ndarray, dtype: str) -> np.ndarray:
    return exponentials(logits)


def empty_row_of_block_spreads(weights: np.ndarray, logits: np.ndarray) -> np.ndarray:
    """A row that sees nothing makes the rows of its block of 8 NaN."""
    out = weights.copy()
    for start in range(0, weights.shape[-2], 8):
        block = (..., slice(start, start + 8), slice(None))
        out[block] = np.where(empty_rows(logits[block]).any(axis=-2, keepdims=True), np.nan, weights[block])
    return out


def walk_in_dtype(self: Operation, q: Any, k: Any, v: Any, scale: float, bias: Any, dtype: str) -> np.ndarray:
    """The running values are kept in the input's dtype between tiles of 8 keys."""

    class Rounding(Kernel):
        tile = 8

        def add(self, total: Any, mixed: Any, factor: Any, weights: Any, v: Any) -> tuple[Any, Any]:
            total, mixed = Kernel.add(self, total, mixed, factor, weights, v)
            return total, rounded(mixed, dtype)

    with np.errstate(all="ignore"):
        return Rounding().run(q, k, v, scale, np.broadcast_to(bias, (*q.shape[:-1], k.shape[-2])))


def exponentials_in_half(self: Operation, logits: np.ndarray, dtype: str) -> np.ndarray:
    weights = rounded(exponentials(logits), "float16")
    return normalised(weights, summed(weights))


# Head dims


def features_from(kept: Callable[[int], int], *names: str) -> Change:
    """Features past a bound of the head dim are read as 0 in some arguments."""

    def change(a: Arguments) -> dict[str, Any]:
        dim = a.query.shape[-1]
        inside = np.arange(dim) < (kept(dim) or dim)
        return {name: np.where(inside, getattr(a, name), getattr(a, name).dtype.type(0)) for name in names}

    return reshapes(change)


def dim_rounded_up(a: Arguments) -> dict[str, Any]:
    """The dot product runs on to a multiple of 32, into the first features of the next key."""
    return {"key": _running_on(a.key), "query": _running_on(a.query), "value": _padded(a.value), "scale": _scale(a)}


def _running_on(x: np.ndarray) -> np.ndarray:
    short = -x.shape[-1] % 32
    following = np.concatenate([x[..., 1:, :short], np.zeros_like(x[..., :1, :short])], axis=-2)
    return np.concatenate([x, following], axis=-1)


def _padded(x: np.ndarray) -> np.ndarray:
    return np.concatenate([x, np.zeros_like(x[..., : -x.shape[-1] % 32])], axis=-1)


def _scale(a: Arguments) -> float:
    return CORE.scale(a)


def reads_on(self: Operation, a: Arguments) -> Any:
    wide = Operation.respond(self, Arguments(**{**vars(a), **dim_rounded_up(a)}))
    return wide[..., : a.query.shape[-1]]


def values_by_lane(self: Operation, value: np.ndarray, a: Arguments) -> np.ndarray:
    """Each of 32 lanes holds D // 32 features; those past a multiple of 32 repeat the first ones."""
    dim = value.shape[-1]
    return Operation.finish(self, value[..., np.arange(dim) % (dim // 32 * 32 or dim)], a)


def scale_of_padded_dim(self: ScaledDotProductAttention, a: Arguments) -> float:
    """The default scale is that of the head dim rounded up to a multiple of 64."""
    return (-(-a.query.shape[-1] // 64) * 64) ** -0.5 if a.scale is None else float(a.scale)


# Batches


def batch_of_heads(a: Arguments) -> dict[str, Any]:
    """The batch row is found by dividing the flat head by the wrong number of heads: every key head is a row later."""
    if a.key.ndim < 4 or not a.key.size:
        return {}
    every = a.key.reshape(-1, *a.key.shape[-2:])
    return {"key": np.roll(every, a.key.shape[-3], axis=0).reshape(a.key.shape)}


# Results


def blocks_unwritten(rows: int) -> Change:
    """Queries past the last full block are never written."""
    return leaves_unwritten(lambda result: result[..., : result.shape[-2] // rows * rows or result.shape[-2], :])


def skipped_rows_unwritten(self: Operation, value: np.ndarray, a: Arguments) -> np.ndarray:
    """A causal block of rows that sees no key returns before it writes: what was in the buffer stays."""
    result = np.array(Operation.finish(self, value, a))
    if a.mask == "causal" if isinstance(a.mask, str) else False:
        hidden = a.query.shape[-2] - a.key.shape[-2]
        result[..., : max(hidden, 0) // 8 * 8, :] = np.nan
    return result


def last_block_shifted(self: Operation, value: np.ndarray, a: Arguments) -> np.ndarray:
    """The last block of 8 rows is moved back to be whole, and its rows are written at their old places."""
    length = value.shape[-2]
    if length > 8 and length % 8:
        place = np.arange(length)
        tail = length // 8 * 8
        place[tail:] = np.arange(length - 8, length - 8 + length - tail)
        value = value[..., place, :]
    return Operation.finish(self, value, a)


# Honest ways


def two_pass(q: Any, k: Any, v: Any, scale: Any, bias: Any) -> np.ndarray:
    """One pass over the keys for the maximum and the sum, a second for the values."""
    logits = q @ k.swapaxes(-1, -2) * scale + bias
    top = finite(logits.max(axis=-1, keepdims=True, initial=-np.inf))
    total = np.exp(logits - top).sum(axis=-1, keepdims=True)
    mixed = nothing(q, v)
    for start in range(0, k.shape[-2], 16):
        part = slice(start, start + 16)
        mixed = mixed + divided(np.exp(logits[..., part] - top), total) @ v[..., part, :]
    return mixed


def splits_by_stride(q: Any, k: Any, v: Any, scale: Any, bias: Any) -> np.ndarray:
    """Eight SIMD groups take every eighth key each, one key after the other, and merge what they have."""
    parts = [online_sums(q, k[..., s::8, :], v[..., s::8, :], scale, bias[..., s::8], tile=1) for s in range(8)]
    top = finite(np.max([part[2] for part in parts], axis=0))
    shares = [np.exp(part[2] - top) for part in parts]
    mixed = sum((part[0] * share for part, share in zip(parts, shares, strict=True)), single(0))
    total = sum((part[1] * share for part, share in zip(parts, shares, strict=True)), single(0))
    return divided(mixed, total)


def tiles_reversed(q: Any, k: Any, v: Any, scale: Any, bias: Any) -> np.ndarray:
    """The walk goes from the last tile to the first, in base 2."""
    log2e = single(np.log2(np.e))
    mixed, total = nothing(q, v), np.zeros_like(q[..., :1])
    top = np.full_like(total, -np.inf)
    for end in range(k.shape[-2], 0, -8):
        part = slice(max(end - 8, 0), end)
        logits = (q * (scale * log2e)) @ k[..., part, :].swapaxes(-1, -2) + bias[..., part] * log2e
        new = np.maximum(top, logits.max(axis=-1, keepdims=True))
        weights, factor = np.exp2(logits - finite(new)), np.exp2(top - finite(new))
        mixed, total, top = mixed * factor + weights @ v[..., part, :], total * factor + summed(weights), new
    return divided(mixed, total)


def lazily_rescaled(q: Any, k: Any, v: Any, scale: Any, bias: Any) -> np.ndarray:
    """The sums are rescaled only when the maximum has risen by more than 8 (FlashAttention-4)."""
    mixed, total = nothing(q, v), np.zeros_like(q[..., :1])
    top = np.full_like(total, -np.inf)
    for start in range(0, k.shape[-2], 16):
        part = slice(start, start + 16)
        logits = q @ k[..., part, :].swapaxes(-1, -2) * scale + bias[..., part]
        highest = logits.max(axis=-1, keepdims=True)
        new = np.where(highest > top + 8, highest, top)
        weights, factor = np.exp(logits - finite(new)), np.exp(top - finite(new))
        mixed, total, top = mixed * factor + weights @ v[..., part, :], total * factor + summed(weights), new
    return divided(mixed, total)


def rounded_weights(
    self: Operation, q: np.ndarray, k: np.ndarray, v: np.ndarray, scale: float, bias: np.ndarray, dtype: str
) -> np.ndarray:
    """Tiles of 32 keys in float32, whose weights are rounded to the dtype for the matrix units; their sum is not."""

    class Rounding(Kernel):
        def add(self, total: Any, mixed: Any, factor: Any, weights: Any, v: Any) -> tuple[Any, Any]:
            total = total * factor + weights.sum(axis=-1, keepdims=True)
            return total, mixed * factor + rounded(weights, dtype) @ v

    with np.errstate(all="ignore"):
        return Rounding().run(q, k, v, scale, np.broadcast_to(bias, (*q.shape[:-1], k.shape[-2])))
