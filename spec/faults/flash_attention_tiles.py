"""Mistakes of tiles: what is lost or counted twice at their ends, and what goes from one to the next."""

from __future__ import annotations

import numpy as np

from inferspec.spec import flash_attention as spec
from inferspec.spec.changes import attention_masks, tiles
from inferspec.spec.changes import flash_attention as changes
from inferspec.spec.changes.attention import one_partial_result_for_a_group
from inferspec.spec.changes.attention_masks import LAST_KEY_OF_A_TILE_BUT_ONE, remasks, sees, split_for_first_row
from inferspec.spec.changes.attention_paths import columns_in_16_bits
from inferspec.spec.changes.attention_weights import (
    ends_of_tiles_dropped,
    halves_not_rescaled,
    last_part_hidden,
    part_hidden_in_between,
    part_without_keys,
    softmax_by,
    splits_capped,
    tiles_by_the_first_head,
    tiles_by_the_first_heads,
    weights_by,
)
from inferspec.spec.changes.tiles import Kernel, walking
from inferspec.spec.contract import Fault
from inferspec.spec.faults.attention_paths import of_paths
from inferspec.spec.faults.attention_sources import ENGINEER, FLASHINFER, MLX, TINY_LLM
from inferspec.spec.mistakes import (
    last_past_tiles_unwritten,
    leaves_unwritten,
)

FAULTS: tuple[Fault, ...] = (
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
        "flash-one-partial-result-for-a-group",
        "over a long context the query heads of a group, one token of a common head, all get what one of them summed",
        spec.FLASH_18,
        one_partial_result_for_a_group("key", lambda a: int(a.key.shape[-2])),
        "https://github.com/ml-explore/mlx/issues/4022",
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
        "flash-full-last-tile-of-80-dropped",
        "the last tile is dropped when S is a multiple of 80",
        spec.FLASH_18,
        walking(80, tiles=tiles.one_tile_less),
        ENGINEER,
    ),
    Fault(
        "flash-key-past-tiles-of-112-dropped",
        "a key that is one more than tiles of 112 is never read",
        spec.FLASH_18,
        walking(112, tiles=tiles.all_but_one_past),
        ENGINEER,
    ),
    Fault(
        "flash-causal-one-short-of-tiles",
        "of tiles of 32 keys that lack one, the causal mask hides the last key",
        spec.FLASH_18,
        LAST_KEY_OF_A_TILE_BUT_ONE,
        ENGINEER,
    ),
    Fault(
        "flash-query-past-blocks-of-48",
        "a query that is one more than blocks of 48 is never written",
        spec.FLASH_18,
        last_past_tiles_unwritten(48, 1, -2),
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
        {"finish": changes.last_block_shifted},
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
        {"key_heads": changes.one_part_of_large_heads},
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
        changes.features_from(lambda dim: dim // 32 * 32, "query"),
        ENGINEER,
    ),
    Fault(
        "flash-query-dims-past-128",
        "features past 128 do not enter the logits",
        spec.FLASH_19,
        changes.features_from(lambda dim: min(dim, 128), "query"),
        ENGINEER,
    ),
    Fault(
        "flash-value-dims-past-64",
        "features of the result past the last multiple of 64 are zeros",
        spec.FLASH_19,
        changes.features_from(lambda dim: dim // 64 * 64, "value"),
        ENGINEER,
    ),
    Fault(
        "flash-tail-lanes-included",
        "the SIMD group's lanes past the head dim read on into the next row",
        spec.FLASH_19,
        {"respond": changes.reads_on},
        MLX + "commit/aca758463",
    ),
    Fault(
        "flash-values-by-lane",
        "features past a multiple of 32 repeat the first ones: each lane holds D // 32",
        spec.FLASH_19,
        {"finish": changes.values_by_lane},
        ENGINEER,
    ),
    *(
        Fault(
            f"flash-never-rescaled-{tile}",
            f"earlier tiles of keys, of {tile} say, are not rescaled when the maximum grows",
            spec.FLASH_20,
            walking(tile, add=tiles.sums_kept),
            ENGINEER,
            forms=tiles.in_other_tiles(tile, add=tiles.sums_kept) if tile == 32 else (),
        )
        for tile in (8, 32, 128)
    ),
    Fault(
        "flash-values-not-rescaled",
        "the running sum of the weights is rescaled, the running values are not",
        spec.FLASH_20,
        walking(add=tiles.values_kept),
        ENGINEER,
        forms=tiles.in_other_tiles(32, add=tiles.values_kept),
    ),
    Fault(
        "flash-total-not-rescaled",
        "the running values are rescaled, the running sum of the weights is not",
        spec.FLASH_20,
        walking(add=tiles.total_kept),
        ENGINEER,
        forms=tiles.in_other_tiles(32, add=tiles.total_kept),
    ),
    Fault(
        "flash-factor-of-first-row",
        "every row's values are rescaled by the factor of the first one",
        spec.FLASH_20,
        walking(16, add=tiles.factor_of_first_row),
        ENGINEER,
        forms=tiles.in_other_tiles(16, add=tiles.factor_of_first_row),
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
        forms=tiles.in_other_tiles(32, add=tiles.factor_after_adding),
    ),
    Fault(
        "flash-factor-inverted",
        "earlier sums are multiplied by exp(new - old)",
        spec.FLASH_20,
        walking(64, factor=tiles.factor_inverted),
        ENGINEER,
        forms=tiles.in_other_tiles(64, factor=tiles.factor_inverted),
    ),
    Fault(
        "flash-factor-in-base-two",
        "the factor of earlier sums is exp2 of a difference in base e",
        spec.FLASH_20,
        walking(factor=tiles.factor_in_base_two),
        ENGINEER,
        forms=tiles.in_other_tiles(32, factor=tiles.factor_in_base_two),
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
        forms=tiles.in_other_tiles(32, add=tiles.each_tile_normalised),
    ),
    Fault(
        "flash-values-stored-not-added",
        "only the last tile's values are kept",
        spec.FLASH_20,
        walking(add=tiles.first_tile_assigned_late),
        ENGINEER,
        forms=tiles.in_other_tiles(32, add=tiles.first_tile_assigned_late),
    ),
    Fault(
        "flash-hidden-tile-first-nan",
        "where no key has been seen yet exp(-inf - -inf) makes the row NaN",
        spec.FLASH_21,
        walking(factor=tiles.factor_unguarded, weights=tiles.weights_unguarded),
        "the course's flash attention",
        forms=tiles.in_other_tiles(32, factor=tiles.factor_unguarded, weights=tiles.weights_unguarded),
    ),
    Fault(
        "flash-tiles-by-the-first-head",
        "a tile of 32 keys that the first head does not see is skipped by all heads",
        spec.FLASH_21,
        softmax_by(tiles_by_the_first_head),
        ENGINEER,
    ),
    Fault(
        "flash-tiles-by-the-first-heads",
        "a tile of 32 keys that the first two of more heads do not see is skipped by all",
        spec.FLASH_21,
        softmax_by(tiles_by_the_first_heads),
        ENGINEER,
    ),
    Fault(
        "flash-part-hidden-in-between",
        "of 512 keys and more, a part of 32 that is hidden between visible ones makes the row NaN when parts are merged",
        spec.FLASH_21,
        weights_by(part_hidden_in_between),
        ENGINEER,
    ),
    Fault(
        "flash-last-part-hidden",
        "of two to eight queries over 256 keys and more, those that see nothing of the last part of 128 are NaN when parts are merged",
        spec.FLASH_05,
        weights_by(last_part_hidden),
        "https://github.com/ROCm/aiter/pull/4711",
    ),
    Fault(
        "flash-part-without-keys",
        "of four queries and fewer over 256 keys and more an odd number of tiles of 32 leaves a part without keys, whose 0 / 0 "
        "comes through",
        spec.FLASH_18,
        weights_by(part_without_keys),
        "https://pypi.org/project/mlx-mfa, RC-B of 2.61.0",
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
            changes.blocks_unwritten(rows),
            TINY_LLM + "commit/657c0b3",
        )
        for rows in (8, 32)
    ),
    Fault(
        "flash-empty-causal-block-unwritten",
        "a causal block of 8 rows that sees no key returns before it writes",
        spec.FLASH_23,
        {"finish": changes.skipped_rows_unwritten},
        TINY_LLM + "commit/6817831",
    ),
    Fault(
        "flash-packed-rows-unwritten",
        "of a group's rows (heads times L) those past a multiple of 8 are never written",
        spec.FLASH_23,
        {"finish": changes.packed_rows_unwritten},
        ENGINEER,
    ),
    Fault(
        "flash-ends-of-large-tiles-dropped",
        "from 3000 keys on they are taken 2048 at a time, and the last of each part but the last is never read",
        spec.FLASH_18,
        softmax_by(ends_of_tiles_dropped(2048, 3000)),
        ENGINEER,
    ),
    Fault(
        "flash-columns-in-int16",
        "a key's column in the mask is kept in int16",
        spec.FLASH_24,
        attention_masks.columns_in_16_bits(np.int16),
        MLX + "issues/3360",
    ),
    Fault(
        "flash-columns-in-uint16",
        "a key's column in the mask is kept in uint16",
        spec.FLASH_24,
        attention_masks.columns_in_16_bits(np.uint16),
        MLX + "issues/3360",
    ),
    Fault(
        "flash-splits-capped",
        "keys past 32 splits of 1024 are never read",
        spec.FLASH_24,
        softmax_by(splits_capped),
        MLX + "issues/4022",
    ),
    Fault(
        "flash-mask-columns-in-16-bits",
        "blocks of queries count the mask's columns in 16 bits with a sign, and begin again",
        spec.FLASH_24,
        remasks(columns_in_16_bits),
        MLX + "issues/3360",
    ),
    *of_paths(
        "flash",
        {
            "heads": spec.FLASH_03,
            "mask": spec.FLASH_04,
            "causal": spec.FLASH_05,
            "batch": spec.FLASH_12,
            "strides": spec.FLASH_13,
            "sizes": spec.FLASH_18,
            "values": spec.FLASH_17,
            "range": spec.FLASH_10,
            "empty": spec.FLASH_07,
            "nan": spec.FLASH_25,
        },
    ),
)
