"""What goes wrong in flash attention, and the honest ways to compute it.

Tiles are where this contract goes beyond plain attention, so most of these are wrong only from a second tile on. A tile
is as large as it is in real kernels: 8 (SIMD-group matrices), 16, 32, 64 or 128 keys.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from inferspec.spec import flash_attention as spec
from inferspec.spec.attention import ScaledDotProductAttention
from inferspec.spec.contract import Arguments, Change, Fault, Operation, Variant
from inferspec.spec.faults import tiles
from inferspec.spec.faults.attention import (
    CORE,
    NAN_HIDES,
    NAN_ROW_IS_EMPTY,
    NAN_TO_ZERO,
    NATIVE_STEPS,
    PAST_256_ONE_FUTURE,
    base_two,
    computed,
    cropped_dims,
    divided,
    empty_rows,
    exponentials,
    fails_if,
    finite,
    first_key,
    full_mask,
    guards_arrays_only,
    guards_names_only,
    halves_not_rescaled,
    heads_broadcast,
    heads_by,
    heads_floor_divided,
    heads_tiled,
    hidden_in_maximum,
    hides_with,
    inner_batch_ignored,
    logits_summed_in_dtype,
    lowest_for_inf,
    mask_heads_swapped,
    mask_of_first_row,
    merges_heads_swapped,
    normalised,
    online,
    partial,
    query_scaled_first,
    read_with_strides_of,
    remasks,
    rereads,
    reshapes,
    reversed_order,
    rounded,
    sees,
    single,
    split_and_merged,
    split_for_first_row,
    spreads,
    squeezes,
    starts_at,
    summed,
    total_summed_in_dtype,
    values_summed_in_dtype,
    weights_by,
    wide_heads_one_future,
    wrapped,
)
from inferspec.spec.faults.tiles import Kernel, walking
from inferspec.spec.mistakes import (
    drifts,
    first_row_for_all,
    ignores_strides,
    leaves_unwritten,
    mutates,
    promotes,
    remembers,
    remembers_by_identity,
)
from inferspec.spec.numerics import Precision

MLX = "https://github.com/ml-explore/mlx/"
TINY_LLM = "https://github.com/skyzh/tiny-llm/"
FLASHINFER = "https://github.com/flashinfer-ai/flashinfer/"
FLASH_ATTENTION = "https://github.com/Dao-AILab/flash-attention/"
ENGINEER = "tired engineer"


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


def odd_members_unwritten(self: Operation, value: np.ndarray, a: Arguments) -> np.ndarray:
    """A threadgroup takes as many query heads of a group as a power of two allows; the others are never written."""
    heads, ratio = a.key.shape[-3], a.query.shape[-3] // a.key.shape[-3]
    member = np.arange(heads * ratio) % ratio
    return Operation.finish(self, np.where((member < _lower_power(ratio))[:, None, None], value, 0.0), a)


def packed_rows_unwritten(self: Operation, value: np.ndarray, a: Arguments) -> np.ndarray:
    """The rows of a group (its heads times L) fill blocks of 8, and the last block is only there when it is full."""
    heads, group = a.key.shape[-3], value.reshape(*value.shape[:-3], a.key.shape[-3], -1, value.shape[-1])
    rows = group.shape[-2]
    kept = np.where((np.arange(rows) < (rows // 8 * 8 or rows))[:, None], group, 0.0)
    return Operation.finish(self, kept.reshape(value.shape) if heads else value, a)


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
    every = a.key.reshape(-1, *a.key.shape[-2:])
    return {"key": np.roll(every, a.key.shape[-3], axis=0).reshape(a.key.shape)} if a.key.ndim > 3 else {}


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


# Many keys


def columns_in_16_bits(bits: type[np.signedinteger[Any]] | type[np.unsignedinteger[Any]]) -> Change:
    """The place of a key is kept in 16 bits where the mask is looked up."""

    def change(bias: np.ndarray, a: Arguments) -> np.ndarray:
        columns = np.arange(bias.shape[-1]).astype(bits).astype(np.int64)
        return bias[..., np.clip(columns, 0, None)]

    return spreads(change)


def splits_capped(logits: np.ndarray) -> np.ndarray:
    """A row is split among at most 32 threadgroups of 1024 keys: later keys are never read."""
    return np.where(np.arange(logits.shape[-1]) < 32 * 1024, logits, -np.inf)


FAULTS = (
    Fault(
        "flash-not-normalised",
        "the values are not divided by the running sum at the end",
        spec.FLASH_01,
        {"weights": unnormalised},
        ENGINEER,
    ),
    Fault(
        "flash-exp2-without-log2e",
        "exp2 is taken of logits that were not multiplied by log2(e)",
        spec.FLASH_01,
        {"weights": base_two_without_log2e},
        ENGINEER,
    ),
    Fault("flash-value-is-key", "the keys are read as the values", spec.FLASH_01, rereads(value="key"), ENGINEER),
    Fault(
        "flash-scale-twice",
        "the scale is applied to the query and to the logits",
        spec.FLASH_02,
        {"scale": lambda self, a: CORE.scale(a) ** 2},
        ENGINEER,
    ),
    Fault(
        "flash-scale-ignored",
        "a scale that is given is ignored",
        spec.FLASH_02,
        {"scale": lambda self, a: a.query.shape[-1] ** -0.5},
        ENGINEER,
    ),
    Fault(
        "flash-scale-zero-is-default",
        "scale 0 is taken for none (`scale or default`)",
        spec.FLASH_02,
        {"scale": lambda self, a: float(a.scale or a.query.shape[-1] ** -0.5)},
        "FACTS: real code written from the seeds",
    ),
    Fault(
        "flash-scale-of-padded-dim",
        "the default scale is that of the head dim rounded up to a multiple of 64",
        spec.FLASH_02,
        {"scale": scale_of_padded_dim},
        ENGINEER,
    ),
    Fault(
        "flash-heads-tiled",
        "query head h reads key/value head h % H",
        spec.FLASH_03,
        {"key_heads": heads_tiled},
        ENGINEER,
    ),
    Fault(
        "flash-heads-wrap-at-8",
        "key and value heads past the 8th are the first ones again",
        spec.FLASH_03,
        {"key_heads": heads_by(lambda query_heads, heads: np.arange(query_heads) // (query_heads // heads) % 8)},
        ENGINEER,
    ),
    Fault(
        "flash-value-heads-tiled",
        "query head h reads value head h % H and the right key head",
        spec.FLASH_03,
        {"value_heads": heads_tiled},
        ENGINEER,
    ),
    Fault(
        "flash-group-shifted-down",
        "a group has as many query heads as the power of two below its ratio",
        spec.FLASH_03,
        {"key_heads": group_shifted_down},
        ENGINEER,
    ),
    Fault(
        "flash-group-shifted-up",
        "a group has as many query heads as the power of two above its ratio",
        spec.FLASH_03,
        {"key_heads": group_shifted_up},
        ENGINEER,
    ),
    Fault(
        "flash-groups-of-eight",
        "a tile of eight query heads shares one key head, whatever the ratio",
        spec.FLASH_03,
        {"key_heads": groups_of_eight},
        ENGINEER,
    ),
    Fault(
        "flash-group-members-unwritten",
        "query heads of a group past a power of two are never written",
        spec.FLASH_03,
        {"finish": odd_members_unwritten},
        ENGINEER,
    ),
    Fault(
        "flash-heads-merged-swapped",
        "the result's heads come back in the order (member, group)",
        spec.FLASH_03,
        {"finish": merges_heads_swapped},
        ENGINEER,
    ),
    Fault(
        "flash-mask-ignored",
        "array masks are ignored",
        spec.FLASH_04,
        remasks(lambda bias, a: np.zeros(())),
        TINY_LLM + "commit/55e7b0c",
    ),
    Fault(
        "flash-mask-row-of-block",
        "from the second block of queries on the first block's rows of the mask are read",
        spec.FLASH_04,
        spreads(mask_row_of_block),
        ENGINEER,
    ),
    Fault(
        "flash-mask-column-of-tile",
        "from the second tile of keys on the first tile's columns of the mask are read",
        spec.FLASH_04,
        spreads(mask_column_of_tile),
        ENGINEER,
    ),
    Fault(
        "flash-mask-of-full-tiles",
        "in a last tile that is not full the mask is ignored",
        spec.FLASH_04,
        spreads(mask_of_full_tiles),
        ENGINEER,
    ),
    Fault(
        "flash-mask-row-stride",
        "rows of the mask are taken to be a multiple of 8 keys apart",
        spec.FLASH_04,
        spreads(mask_row_stride),
        MLX + "commit/47d2505ea",
    ),
    Fault(
        "flash-mask-read-unbroadcast",
        "a mask of fewer or singleton dims is read with the strides of a full one",
        spec.FLASH_04,
        remasks(lambda bias, a: np.resize(bias, full_mask(a))),
        MLX + "commit/005e7efa6",
    ),
    Fault(
        "flash-mask-not-in-base-two",
        "log2(e) is folded into the scale for exp2, but not into the mask",
        spec.FLASH_04,
        remasks(lambda bias, a: bias * np.log(2.0)),
        ENGINEER,
    ),
    Fault(
        "flash-mask-first-head",
        "every head gets the mask of head 0",
        spec.FLASH_04,
        spreads(lambda bias, a: bias[..., :1, :, :]),
        ENGINEER,
    ),
    Fault(
        "flash-mask-of-first-batch-row",
        "every batch row gets the mask of row 0",
        spec.FLASH_04,
        spreads(mask_of_first_row),
        ENGINEER,
    ),
    Fault(
        "flash-mask-group-order",
        "under grouped heads the mask's heads are taken in the order (member, group)",
        spec.FLASH_04,
        spreads(mask_heads_swapped),
        "https://github.com/ml-explore/mlx-lm/commit/a790972f",
    ),
    Fault(
        "flash-causal-top-left",
        "the causal mask is aligned top-left",
        spec.FLASH_05,
        sees(lambda i, j, length, keys: j <= i),
        TINY_LLM + "commit/0c1ae4b",
    ),
    Fault(
        "flash-causal-second-half-one-future",
        "queries past the 256th see one future key",
        spec.FLASH_05,
        PAST_256_ONE_FUTURE,
        ENGINEER,
    ),
    Fault(
        "flash-causal-wide-heads-one-future",
        "in heads of 96 dims and more queries past the 128th see one future key",
        spec.FLASH_05,
        {"bias": wide_heads_one_future},
        ENGINEER,
    ),
    Fault(
        "flash-causal-one-future",
        "each query sees one future key",
        spec.FLASH_05,
        sees(lambda i, j, length, keys: j <= i + keys - length + 1),
        ENGINEER,
    ),
    *(
        Fault(
            f"flash-causal-stops-a-tile-early-{tile}",
            f"the causal walk ends one tile of {tile} keys too early",
            spec.FLASH_05,
            sees(stops_a_tile_early(tile)),
            ENGINEER,
        )
        for tile in (8, 32, 128)
    ),
    *(
        Fault(
            f"flash-causal-stops-at-first-row-{tile}",
            f"the causal walk ends at the last tile of {tile} keys that the block's first row sees",
            spec.FLASH_05,
            sees(stops_at_first_row(tile)),
            ENGINEER,
        )
        for tile in (8, 32, 128)
    ),
    Fault(
        "flash-causal-bound-without-offset",
        "the number of tiles in the causal walk forgets S - L",
        spec.FLASH_05,
        sees(bound_without_offset),
        ENGINEER,
    ),
    Fault(
        "flash-causal-diagonal-tile-unmasked",
        "the tile that the diagonal enters is taken whole",
        spec.FLASH_05,
        sees(diagonal_tile_unmasked),
        ENGINEER,
    ),
    *(
        Fault(
            f"flash-causal-last-tile-alone-masked-{tile}",
            f"of two tiles of {tile} keys that the diagonal crosses in a block only the last is masked",
            spec.FLASH_05,
            sees(last_tile_alone_masked(tile)),
            ENGINEER,
        )
        for tile in (8, 32, 128)
    ),
    Fault(
        "flash-causal-offset-in-tiles",
        "S - L is rounded down to a multiple of 8",
        spec.FLASH_05,
        sees(offset_in_tiles),
        ENGINEER,
    ),
    Fault(
        "flash-bool-added",
        "a bool mask is added as 0 and 1",
        spec.FLASH_06,
        {"bool_mask": lambda self, mask: mask.astype(np.float64)},
        "https://github.com/ml-explore/mlx-lm/commit/1dc5de4f",
    ),
    Fault(
        "flash-bool-inverted",
        "True in a bool mask hides the key",
        spec.FLASH_06,
        {"bool_mask": lambda self, mask: CORE.bool_mask(~mask)},
        "torch.nn.MultiheadAttention masks the other way round",
    ),
    Fault(
        "flash-inf-times-scale",
        "-inf in a mask is multiplied by the scale, NaN where that is 0 or negative",
        spec.FLASH_06,
        {
            "logits": lambda self, q, k, scale, bias, dtype: (
                q @ k.swapaxes(-1, -2) * scale + np.where(np.isneginf(bias), bias * scale, bias)
            )
        },
        ENGINEER,
    ),
    Fault(
        "flash-empty-row-mean",
        "a row that sees no key is the mean of the values: it is hidden by a finite sentinel",
        spec.FLASH_07,
        weights_by(lambda weights, logits: np.where(empty_rows(logits), 1 / max(logits.shape[-1], 1), weights)),
        MLX + "commit/e1840853c",
    ),
    Fault(
        "flash-empty-causal-blocks-see-a-key",
        "where L > S, whole blocks of 16 queries before the first key see that key: their walk is never empty",
        spec.FLASH_07,
        sees(lambda i, j, length, keys: (j <= i + keys - length) | (j == 0) & (i < (length - keys) // 16 * 16)),
        ENGINEER,
    ),
    Fault(
        "flash-empty-row-nan",
        "a row that sees no key is 0 / 0",
        spec.FLASH_07,
        weights_by(lambda weights, logits: np.where(empty_rows(logits), np.nan, weights)),
        MLX + "commit/711a64580",
    ),
    Fault(
        "flash-empty-row-first-value",
        "a row that sees no key is the first value",
        spec.FLASH_07,
        weights_by(first_key),
        ENGINEER,
    ),
    Fault(
        "flash-lowest-row-mean",
        "a row hidden by the dtype's lowest number still attends",
        spec.FLASH_07,
        {"additive_mask": lambda self, mask: mask.astype(np.float64)},
        "FACTS: torch 2.13 and MLX",
    ),
    Fault(
        "flash-empty-row-spreads",
        "a row that sees no key makes its block of 8 rows NaN",
        spec.FLASH_08,
        weights_by(empty_row_of_block_spreads),
        FLASH_ATTENTION + "commit/26d7d92f",
    ),
    Fault(
        "flash-hidden-in-maximum",
        "the running maximum is taken before keys are hidden, so that visible weights underflow",
        spec.FLASH_08,
        {"attended": hidden_in_maximum},
        ENGINEER,
    ),
    Fault(
        "flash-hides-with-minus-10000",
        "keys are hidden by adding -1e4, which large logits outweigh",
        spec.FLASH_08,
        hides_with(-1e4),
        ENGINEER,
    ),
    Fault(
        "flash-values-summed-in-dtype",
        "the running values are in the input's dtype",
        spec.FLASH_09,
        {"combine": values_summed_in_dtype},
        ENGINEER,
    ),
    Fault(
        "flash-values-rounded-between-tiles",
        "the running values are stored in the input's dtype after each tile",
        spec.FLASH_09,
        {"attended": walk_in_dtype},
        ENGINEER,
    ),
    Fault(
        "flash-total-summed-in-dtype",
        "the running sum of the weights is in the input's dtype",
        spec.FLASH_09,
        {"weights": total_summed_in_dtype},
        ENGINEER,
    ),
    Fault(
        "flash-logits-summed-in-dtype",
        "the logits are accumulated in the input's dtype",
        spec.FLASH_09,
        {"logits": logits_summed_in_dtype},
        ENGINEER,
    ),
    Fault(
        "flash-exponentials-in-half",
        "the weights of float32 inputs pass through float16",
        spec.FLASH_09,
        {"weights": exponentials_in_half},
        ENGINEER,
    ),
    Fault(
        "flash-maximum-from-sentinel",
        "the running maximum starts at -5e4: rows below it are zeros",
        spec.FLASH_10,
        starts_at(-5e4),
        FLASHINFER + "commit/d7f2c6464",
    ),
    Fault(
        "flash-maximum-from-zero",
        "the running maximum starts at 0: rows far below it are zeros",
        spec.FLASH_10,
        starts_at(0.0),
        ENGINEER,
    ),
    Fault(
        "flash-maximum-of-block",
        "all rows of a block share one maximum: rows far below it are lost",
        spec.FLASH_10,
        walking(top=tiles.top_of_block, weights=lambda self, logits, top: np.exp(logits - top).astype(np.float32)),
        ENGINEER,
    ),
    Fault(
        "flash-nan-becomes-zero",
        "NaN in the result is replaced by 0",
        spec.FLASH_25,
        NAN_TO_ZERO,
        "IEEE 754, section 6.2",
    ),
    Fault(
        "flash-nan-row-is-empty",
        "a row whose weights do not sum to more than 0 is taken for one that sees no key",
        spec.FLASH_25,
        NAN_ROW_IS_EMPTY,
        "PyTorch's flash attention on the CPU",
    ),
    Fault(
        "flash-nan-is-no-logit",
        "a NaN among the logits is taken for a hidden key",
        spec.FLASH_25,
        NAN_HIDES,
        "IEEE 754, section 6.2",
    ),
    Fault(
        "flash-no-keys-nan",
        "no keys give NaN",
        spec.FLASH_11,
        fails_if(lambda q, k: k.shape[-2] == 0, np.nan),
        FLASH_ATTENTION + "commit/26d7d92f",
    ),
    Fault(
        "flash-no-keys-crash",
        "no keys raise an exception",
        spec.FLASH_11,
        fails_if(lambda q, k: k.shape[-2] == 0),
        FLASH_ATTENTION + "commit/03cd0651",
    ),
    Fault(
        "flash-no-queries-crash",
        "no queries raise an exception: the grid is empty",
        spec.FLASH_11,
        fails_if(lambda q, k: q.shape[-2] == 0),
        FLASH_ATTENTION + "commit/484b9813",
    ),
    Fault(
        "flash-no-batch-crash",
        "an empty batch raises an exception: the grid is empty",
        spec.FLASH_11,
        fails_if(lambda q, k: 0 in q.shape[:-3]),
        FLASH_ATTENTION + "commit/484b9813",
    ),
    Fault(
        "flash-mask-of-batch-row-modulo-eight",
        "the batch row of a mask is counted modulo 8",
        spec.FLASH_04,
        spreads(lambda bias, a: bias[np.arange(len(bias)) % 8] if bias.ndim > 3 else bias),
        ENGINEER,
    ),
    Fault(
        "flash-keys-of-first-row",
        "every batch row reads the keys of row 0",
        spec.FLASH_12,
        first_row_for_all("key"),
        ENGINEER,
    ),
    Fault(
        "flash-keys-of-row-before",
        "each batch row reads the keys of the row before",
        spec.FLASH_12,
        reshapes(batch_of_heads),
        ENGINEER,
    ),
    Fault(
        "flash-inner-batch-ignored",
        "only the outermost leading dim moves the key pointer",
        spec.FLASH_12,
        reshapes(inner_batch_ignored),
        ENGINEER,
    ),
    *(
        Fault(
            f"flash-{name}-strides",
            f"{name} is read as if it were contiguous",
            spec.FLASH_13,
            ignores_strides(name),
            MLX + "commit/005e7efa6" if name == "mask" else ENGINEER,
        )
        for name in ("query", "key", "value", "mask")
    ),
    Fault(
        "flash-value-with-key-strides",
        "value is read with the strides of key",
        spec.FLASH_13,
        reshapes(lambda a: {"value": read_with_strides_of(a.value, a.key)}),
        MLX + "commit/62f297b51",
    ),
    Fault(
        "flash-float32-result",
        "the result is float32 whatever the query's dtype",
        spec.FLASH_14,
        promotes(),
        "FACTS: the course's half-precision attention",
    ),
    Fault("flash-squeezed", "dims of size 1 are gone from the result", spec.FLASH_14, {"finish": squeezes}, ENGINEER),
    Fault(
        "flash-query-scaled-in-place",
        "the caller's query is scaled in place",
        spec.FLASH_15,
        mutates("query"),
        ENGINEER,
    ),
    Fault("flash-mask-changed", "the caller's mask is changed", spec.FLASH_15, mutates("mask"), ENGINEER),
    Fault(
        "flash-scale-remembered",
        "the scale of the first call with these shapes is compiled into the kernel of all",
        spec.FLASH_16,
        remembers("scale"),
        FLASHINFER + "commit/82784bb11",
    ),
    Fault(
        "flash-mask-remembered-by-identity",
        "what a mask was made into is kept by its id, which another mask has when the first one is gone",
        spec.FLASH_16,
        remembers_by_identity("mask"),
        ENGINEER,
    ),
    Fault(
        "flash-mask-remembered",
        "the mask of the first call with these shapes is used for all",
        spec.FLASH_16,
        remembers("mask"),
        FLASHINFER + "commit/82784bb11",
    ),
    Fault(
        "flash-key-remembered",
        "the key heads of the first call with these shapes, repeated once, are used for all",
        spec.FLASH_16,
        remembers("key"),
        ENGINEER,
    ),
    Fault(
        "flash-value-remembered",
        "the value of the first call with these shapes is used for all",
        spec.FLASH_16,
        remembers("value"),
        ENGINEER,
    ),
    Fault("flash-drifting", "every repeated call is larger", spec.FLASH_16, drifts(), ENGINEER),
    Fault(
        "flash-unknown-mask-is-causal",
        "any mask name means causal",
        spec.FLASH_17,
        {"guard_mask": guards_arrays_only},
        ENGINEER,
    ),
    Fault(
        "flash-mask-cropped",
        "a mask that does not broadcast is cropped or repeated",
        spec.FLASH_17,
        {
            "guard_mask": guards_names_only,
            **reshapes(lambda a: {"mask": wrapped(a.mask, full_mask(a)) if isinstance(a.mask, np.ndarray) else a.mask}),
        },
        ENGINEER,
    ),
    Fault(
        "flash-heads-floor-divided",
        "head counts that do not divide are rounded down",
        spec.FLASH_17,
        {"guard_heads": lambda self, a: None, "key_heads": heads_floor_divided},
        ENGINEER,
    ),
    Fault(
        "flash-dims-cropped",
        "of differing head dims or lengths the smaller is taken",
        spec.FLASH_17,
        {"guard_lengths": lambda self, a: None, **reshapes(cropped_dims)},
        ENGINEER,
    ),
    *(
        Fault(
            f"flash-tail-keys-dropped-{tile}",
            f"keys past a multiple of {tile} are never read",
            spec.FLASH_18,
            walking(tile, tiles=tiles.whole_tiles),
            TINY_LLM + "commit/657c0b3",
        )
        for tile in (8, 128)
    ),
    *(
        Fault(
            f"flash-tail-keys-not-hidden-{tile}",
            f"the last tile is filled up to {tile} with keys of zeros, which take part",
            spec.FLASH_18,
            walking(tile, run=tiles.tail_not_hidden),
            FLASHINFER + "commit/16cb9e493",
        )
        for tile in (16, 64)
    ),
    Fault(
        "flash-tail-repeats-last-key",
        "lanes past the last key are clamped to it, and counted",
        spec.FLASH_18,
        walking(8, run=tiles.tail_repeats_last_key),
        ENGINEER,
    ),
    Fault(
        "flash-full-last-tile-dropped",
        "the last tile is dropped when S is a multiple of 64",
        spec.FLASH_18,
        walking(64, tiles=tiles.one_tile_less),
        ENGINEER,
    ),
    Fault(
        "flash-last-tile-moved-back",
        "the last tile is moved back to be whole, and shared keys count twice",
        spec.FLASH_18,
        walking(32, tiles=tiles.last_tile_moved_back),
        ENGINEER,
    ),
    Fault(
        "flash-last-block-shifted",
        "the last block of queries is moved back, and its rows are written without the shift",
        spec.FLASH_18,
        {"finish": last_block_shifted},
        ENGINEER,
    ),
    Fault(
        "flash-sums-carried-to-next-block",
        "the running sum is not set to zero before the next block of 32 queries",
        spec.FLASH_18,
        walking(32, run=tiles.sums_carried_to_next_block),
        TINY_LLM + "commit/657c0b3",
    ),
    Fault(
        "flash-split-for-first-row",
        "from 1024 keys on, a single query reads those of the first batch row",
        spec.FLASH_18,
        {"attended": split_for_first_row},
        ENGINEER,
    ),
    Fault(
        "flash-1024-queries",
        "queries past the 1024th are never written",
        spec.FLASH_18,
        leaves_unwritten(lambda out: out[..., :1024, :]),
        ENGINEER,
    ),
    Fault(
        "flash-one-part-of-large-heads",
        "with heads of 128 features and more, keys past the first 512 are read as the last of these",
        spec.FLASH_18,
        {"key_heads": one_part_of_large_heads},
        "PROPERTIES X2, FA1",
    ),
    Fault(
        "flash-halves-not-rescaled",
        "from 1024 keys on, a single query's two halves are merged without their maxima",
        spec.FLASH_18,
        {"weights": halves_not_rescaled},
        MLX + "issues/4022",
    ),
    Fault(
        "flash-query-dims-dropped",
        "features past a multiple of 32 do not enter the logits",
        spec.FLASH_19,
        features_from(lambda dim: dim // 32 * 32, "query"),
        ENGINEER,
    ),
    Fault(
        "flash-query-dims-past-128",
        "features past 128 do not enter the logits",
        spec.FLASH_19,
        features_from(lambda dim: min(dim, 128), "query"),
        ENGINEER,
    ),
    Fault(
        "flash-value-dims-past-64",
        "features of the result past the last multiple of 64 are zeros",
        spec.FLASH_19,
        features_from(lambda dim: dim // 64 * 64, "value"),
        ENGINEER,
    ),
    Fault(
        "flash-tail-lanes-included",
        "the SIMD group's lanes past the head dim read on into the next row",
        spec.FLASH_19,
        {"respond": reads_on},
        MLX + "commit/aca758463",
    ),
    Fault(
        "flash-values-by-lane",
        "features past a multiple of 32 repeat the first ones: each lane holds D // 32",
        spec.FLASH_19,
        {"finish": values_by_lane},
        ENGINEER,
    ),
    *(
        Fault(
            f"flash-never-rescaled-{tile}",
            f"earlier tiles of {tile} keys are not rescaled when the maximum grows",
            spec.FLASH_20,
            walking(tile, add=tiles.sums_kept),
            ENGINEER,
        )
        for tile in (8, 32, 128)
    ),
    Fault(
        "flash-values-not-rescaled",
        "the running sum of the weights is rescaled, the running values are not",
        spec.FLASH_20,
        walking(add=tiles.values_kept),
        ENGINEER,
    ),
    Fault(
        "flash-total-not-rescaled",
        "the running values are rescaled, the running sum of the weights is not",
        spec.FLASH_20,
        walking(add=tiles.total_kept),
        ENGINEER,
    ),
    Fault(
        "flash-factor-of-first-row",
        "every row's values are rescaled by the factor of the first one",
        spec.FLASH_20,
        walking(16, add=tiles.factor_of_first_row),
        ENGINEER,
    ),
    Fault(
        "flash-factor-on-first-features",
        "of the features that a lane holds only the first 32 are rescaled",
        spec.FLASH_20,
        walking(16, add=tiles.factor_on_first_features),
        ENGINEER,
    ),
    Fault(
        "flash-factor-after-adding",
        "the newest tile's values are rescaled with the earlier ones",
        spec.FLASH_20,
        walking(add=tiles.factor_after_adding),
        ENGINEER,
    ),
    Fault(
        "flash-factor-inverted",
        "earlier sums are multiplied by exp(new - old)",
        spec.FLASH_20,
        walking(64, factor=tiles.factor_inverted),
        ENGINEER,
    ),
    Fault(
        "flash-factor-in-base-two",
        "the factor of earlier sums is exp2 of a difference in base e",
        spec.FLASH_20,
        walking(factor=tiles.factor_in_base_two),
        ENGINEER,
    ),
    Fault(
        "flash-maximum-of-first-tile",
        "the first tile's maximum serves all: later, larger logits overflow",
        spec.FLASH_20,
        walking(
            top=tiles.top_of_first_tile,
            weights=lambda self, logits, top: np.exp((logits - top).astype(np.float32)).astype(np.float64),
        ),
        ENGINEER,
    ),
    Fault(
        "flash-each-tile-normalised",
        "each tile is normalised by itself, and the means are averaged",
        spec.FLASH_20,
        walking(add=tiles.each_tile_normalised),
        ENGINEER,
    ),
    Fault(
        "flash-values-stored-not-added",
        "only the last tile's values are kept",
        spec.FLASH_20,
        walking(add=tiles.first_tile_assigned_late),
        ENGINEER,
    ),
    Fault(
        "flash-hidden-tile-first-nan",
        "where no key has been seen yet exp(-inf - -inf) makes the row NaN",
        spec.FLASH_21,
        walking(factor=tiles.factor_unguarded, weights=tiles.weights_unguarded),
        "FACTS: the course's flash attention",
    ),
    Fault(
        "flash-hidden-keys-count",
        "hidden keys before the first visible one weigh exp(0), and their sum is not rescaled away",
        spec.FLASH_21,
        walking(
            8,
            weights=tiles.hidden_keys_count,
            factor=lambda self, old, new: np.where(np.isneginf(old), 1.0, Kernel.factor(self, old, new)),
        ),
        ENGINEER,
    ),
    Fault(
        "flash-stops-at-hidden-tile",
        "the walk ends at the first tile that is hidden from all rows of the block",
        spec.FLASH_21,
        walking(16, run=tiles.stops_at_hidden_tile),
        ENGINEER,
    ),
    Fault(
        "flash-tile-after-hidden-skipped",
        "skipping a hidden tile skips the next one as well",
        spec.FLASH_21,
        walking(8, run=tiles.only_tile_after_hidden_skipped),
        ENGINEER,
    ),
    Fault(
        "flash-hidden-tile-resets",
        "a tile without visible keys sets the running maximum back and forgets the sums",
        spec.FLASH_21,
        walking(
            16,
            top=tiles.hidden_tile_resets,
            factor=lambda self, old, new: Kernel.factor(self, old, new) * ~np.isneginf(new),
        ),
        ENGINEER,
    ),
    Fault(
        "flash-decode-first-key",
        "a single causal query sees key 0 only",
        spec.FLASH_22,
        sees(lambda i, j, length, keys: j <= i + (keys - length if length > 1 else 0)),
        TINY_LLM + "commit/0c1ae4b",
    ),
    Fault(
        "flash-decode-not-last",
        "a single causal query sees all but the last key",
        spec.FLASH_22,
        sees(lambda i, j, length, keys: j <= i + keys - length - (length == 1)),
        ENGINEER,
    ),
    *(
        Fault(
            f"flash-tail-queries-unwritten-{rows}",
            f"queries past a multiple of {rows} are never written",
            spec.FLASH_23,
            blocks_unwritten(rows),
            TINY_LLM + "commit/657c0b3",
        )
        for rows in (8, 32)
    ),
    Fault(
        "flash-empty-causal-block-unwritten",
        "a causal block of 8 rows that sees no key returns before it writes",
        spec.FLASH_23,
        {"finish": skipped_rows_unwritten},
        TINY_LLM + "commit/6817831",
    ),
    Fault(
        "flash-packed-rows-unwritten",
        "of a group's rows (heads times L) those past a multiple of 8 are never written",
        spec.FLASH_23,
        {"finish": packed_rows_unwritten},
        ENGINEER,
    ),
    Fault(
        "flash-columns-in-int16",
        "a key's column in the mask is kept in int16",
        spec.FLASH_24,
        columns_in_16_bits(np.int16),
        MLX + "issues/3360",
    ),
    Fault(
        "flash-columns-in-uint16",
        "a key's column in the mask is kept in uint16",
        spec.FLASH_24,
        columns_in_16_bits(np.uint16),
        MLX + "issues/3360",
    ),
    Fault(
        "flash-splits-capped",
        "keys past 32 splits of 1024 are never read",
        spec.FLASH_24,
        {"weights": lambda self, logits, dtype: CORE.weights(splits_capped(logits), dtype)},
        MLX + "issues/4022",
    ),
)


# Honest ways


def two_pass(q: Any, k: Any, v: Any, scale: Any, bias: Any) -> np.ndarray:
    """One pass over the keys for the maximum and the sum, a second for the values."""
    logits = q @ k.swapaxes(-1, -2) * scale + bias
    top = finite(logits.max(axis=-1, keepdims=True, initial=-np.inf))
    total = np.exp(logits - top).sum(axis=-1, keepdims=True)
    mixed = np.zeros_like(q)
    for start in range(0, k.shape[-2], 16):
        part = slice(start, start + 16)
        mixed = mixed + divided(np.exp(logits[..., part] - top), total) @ v[..., part, :]
    return mixed


def splits_by_stride(q: Any, k: Any, v: Any, scale: Any, bias: Any) -> np.ndarray:
    """Eight SIMD groups take every eighth key each, one key after the other, and merge what they have."""
    parts = [_one_by_one(q, k[..., s::8, :], v[..., s::8, :], scale, bias[..., s::8]) for s in range(8)]
    top = finite(np.max([part[2] for part in parts], axis=0))
    shares = [np.exp(part[2] - top) for part in parts]
    mixed = sum((part[0] * share for part, share in zip(parts, shares, strict=True)), single(0))
    total = sum((part[1] * share for part, share in zip(parts, shares, strict=True)), single(0))
    return divided(mixed, total)


def _one_by_one(q: Any, k: Any, v: Any, scale: Any, bias: Any) -> tuple[Any, Any, Any]:
    mixed, total = np.zeros_like(q), np.zeros_like(q[..., :1])
    top = np.full_like(total, -np.inf)
    for key in range(k.shape[-2]):
        one = slice(key, key + 1)
        more, share, highest = partial(q, k[..., one, :], v[..., one, :], scale, bias[..., one])
        new = np.maximum(top, highest)
        old, fresh = np.exp(top - finite(new)), np.exp(highest - finite(new))
        mixed, total, top = mixed * old + more * fresh, total * old + share * fresh, new
    return mixed, total, top


def tiles_reversed(q: Any, k: Any, v: Any, scale: Any, bias: Any) -> np.ndarray:
    """The walk goes from the last tile to the first, in base 2."""
    log2e = single(np.log2(np.e))
    mixed, total = np.zeros_like(q), np.zeros_like(q[..., :1])
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
    mixed, total = np.zeros_like(q), np.zeros_like(q[..., :1])
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


FLASH = "flash_attention"

VARIANTS = (
    *(
        Variant(f"flash-online-{tile}", f"online softmax in tiles of {tile} keys", FLASH, online(tile))
        for tile in (1, 8, 32, 64, 128)
    ),
    Variant("flash-two-pass", "one pass for the sum, another for the values", FLASH, computed(two_pass)),
    Variant("flash-splits-merged", "three splits, merged by their log-sum-exp", FLASH, computed(split_and_merged)),
    Variant("flash-splits-by-stride", "eight groups take every eighth key", FLASH, computed(splits_by_stride)),
    Variant("flash-tiles-reversed", "from the last tile to the first, in base 2", FLASH, computed(tiles_reversed)),
    Variant("flash-lazily-rescaled", "rescaled only when the maximum rises by 8", FLASH, computed(lazily_rescaled)),
    Variant("flash-base-two", "exp2, with log2(e) folded into scale and mask", FLASH, computed(base_two)),
    Variant("flash-query-scaled-first", "the query is scaled when it is loaded", FLASH, computed(query_scaled_first)),
    Variant("flash-reversed-order", "float32 with every sum in reverse order", FLASH, computed(reversed_order)),
    Variant(
        "flash-lowest-for-inf",
        "hidden logits are the lowest number, empty rows zeroed",
        FLASH,
        computed(lowest_for_inf),
    ),
    Variant("flash-heads-broadcast", "keys shared by groups of query heads", FLASH, {"respond": heads_broadcast}),
    Variant(
        "flash-weights-rounded",
        "float32, with the weights rounded to the dtype before they meet the values",
        FLASH,
        {"attended": rounded_weights},
        Precision.NATIVE,
    ),
    Variant("flash-native-steps", "every intermediate in the dtype", FLASH, NATIVE_STEPS, Precision.NATIVE),
)
