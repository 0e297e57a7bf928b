"""Mistakes in the masks of flash attention: which keys a query sees, by an array, by causality, or none at all."""

from __future__ import annotations

import numpy as np

from inferspec.spec import flash_attention as spec
from inferspec.spec.changes import flash_attention as changes
from inferspec.spec.changes.attention import (
    CORE,
    chunk_after_context,
    drafts_unmasked,
    in_common_heads,
    masked_prompt,
    reshapes,
)
from inferspec.spec.changes.attention_masks import (
    PAST_256_ONE_FUTURE,
    causal_array_applied_twice,
    full_mask,
    half_prompts_in_fours,
    hides_with,
    mask_heads_swapped,
    mask_of_first_256_rows,
    mask_of_first_of_packed_group,
    mask_of_first_row,
    part_block_by_its_first_row,
    remasks,
    rows_of_packed_groups,
    sees,
    spreads,
    takes_axes,
    wide_heads_one_future,
    with_axes_alone,
)
from inferspec.spec.changes.attention_weights import (
    empty_rows,
    first_key,
    hidden_in_maximum,
    mask_of_first_prompt,
    weights_by,
)
from inferspec.spec.contract import Fault
from inferspec.spec.faults.attention_sources import ENGINEER, FLASH_ATTENTION, MLX, TINY_LLM
from inferspec.spec.mistakes import paths_lack_a_feature

FAULTS: tuple[Fault, ...] = (
    Fault(
        "flash-mask-ignored",
        "array masks are ignored",
        spec.FLASH_04,
        remasks(lambda bias, a: np.zeros(())),
        TINY_LLM + "commit/55e7b0c",
    ),
    Fault(
        "flash-mask-of-no-axes-ignored",
        "a mask of no axes is ignored: where it hides every key, all are seen",
        spec.FLASH_07,
        remasks(with_axes_alone),
        MLX + "commit/005e7efa6",
    ),
    Fault(
        "flash-mask-of-no-axes-refused",
        "a mask of no axes ends in an error that nobody meant",
        spec.FLASH_04,
        remasks(takes_axes),
        TINY_LLM,
    ),
    Fault(
        "flash-mask-row-of-block",
        "from the second block of queries on the first block's rows of the mask are read",
        spec.FLASH_04,
        spreads(changes.mask_row_of_block),
        ENGINEER,
    ),
    Fault(
        "flash-mask-column-of-tile",
        "from the second tile of keys on the first tile's columns of the mask are read",
        spec.FLASH_04,
        spreads(changes.mask_column_of_tile),
        ENGINEER,
    ),
    Fault(
        "flash-mask-of-full-tiles",
        "in a last tile that is not full the mask is ignored",
        spec.FLASH_04,
        spreads(changes.mask_of_full_tiles),
        ENGINEER,
    ),
    Fault(
        "flash-mask-of-part-block-by-its-first-row",
        "queries past whole blocks of 8 skip the tiles of 64 keys that the mask hides from the first of them",
        spec.FLASH_06,
        spreads(part_block_by_its_first_row),
        "the kind of https://github.com/ggml-org/llama.cpp/pull/29220",
    ),
    Fault(
        "flash-mask-row-stride",
        "rows of the mask are taken to be a multiple of 8 keys apart",
        spec.FLASH_04,
        spreads(changes.mask_row_stride),
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
        "flash-mask-of-first-prompt",
        "every prompt of a batch, of common heads, gets the mask of the first",
        spec.FLASH_04,
        spreads(mask_of_first_prompt),
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
        "flash-drafts-unmasked",
        "of two to eight queries of heads in groups of four and more, after 256 keys and more, each sees the whole context",
        spec.FLASH_05,
        reshapes(drafts_unmasked),
        ENGINEER,
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
        "flash-causal-rows-of-packed-groups",
        "of prompts of heads in groups of eight and more, which lie in one tile token by token, the causal mask takes the rows for"
        " those of one head after the other",
        spec.FLASH_05,
        {"bias": rows_of_packed_groups},
        ENGINEER,
    ),
    Fault(
        "flash-mask-of-first-of-packed-group",
        "of prompts of heads in groups of eight and more, which share a tile, all heads have the mask of the first",
        spec.FLASH_04,
        spreads(mask_of_first_of_packed_group),
        ENGINEER,
    ),
    *paths_lack_a_feature(
        "flash-common-chunks",
        "in chunks of grouped heads of 128 dims after a long context",
        spec.FLASH_05,
        in_common_heads(chunk_after_context),
        ENGINEER,
        argument="query",
    ),
    *paths_lack_a_feature(
        "flash-common-masked-prompts",
        "in prompts of grouped heads of 128 dims with a mask",
        spec.FLASH_06,
        in_common_heads(masked_prompt),
        ENGINEER,
        argument="query",
    ),
    Fault(
        "flash-causal-half-prompts-in-fours",
        "in prompts of half precision from 64 tokens on, four queries in a row see what the last of them sees",
        spec.FLASH_05,
        {"bias": half_prompts_in_fours},
        "https://github.com/pytorch/pytorch/issues/195910",
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
            sees(changes.stops_a_tile_early(tile)),
            ENGINEER,
        )
        for tile in (8, 32, 128)
    ),
    *(
        Fault(
            f"flash-causal-stops-at-first-row-{tile}",
            f"the causal walk ends at the last tile of {tile} keys that the block's first row sees",
            spec.FLASH_05,
            sees(changes.stops_at_first_row(tile)),
            ENGINEER,
        )
        for tile in (8, 32, 128)
    ),
    Fault(
        "flash-causal-bound-without-offset",
        "the number of tiles in the causal walk forgets S - L",
        spec.FLASH_05,
        sees(changes.bound_without_offset),
        ENGINEER,
    ),
    Fault(
        "flash-causal-diagonal-tile-unmasked",
        "the tile that the diagonal enters is taken whole",
        spec.FLASH_05,
        sees(changes.diagonal_tile_unmasked),
        ENGINEER,
    ),
    *(
        Fault(
            f"flash-causal-last-tile-alone-masked-{tile}",
            f"of two tiles of {tile} keys that the diagonal crosses in a block only the last is masked",
            spec.FLASH_05,
            sees(changes.last_tile_alone_masked(tile)),
            ENGINEER,
        )
        for tile in (8, 32, 128)
    ),
    Fault(
        "flash-causal-offset-in-tiles",
        "S - L is rounded down to a multiple of 8",
        spec.FLASH_05,
        sees(changes.offset_in_tiles),
        ENGINEER,
    ),
    Fault(
        "flash-mask-of-first-256-rows",
        "where there are more than 256 queries and keys, rows of an array mask past the 256th are the first ones again",
        spec.FLASH_06,
        spreads(mask_of_first_256_rows),
        "https://github.com/pytorch/pytorch/issues/162588",
    ),
    Fault(
        "flash-causal-array-twice",
        "causality is applied again to an array mask that has it: the last row of a part tile is left without keys",
        spec.FLASH_06,
        spreads(causal_array_applied_twice),
        "https://github.com/huggingface/candle/pull/3625",
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
        "torch 2.13 and MLX",
    ),
    Fault(
        "flash-lowest-of-float16-past-a-tile",
        "past the first 64 keys the lowest number of float16 is one like any other: it hides no key",
        spec.FLASH_07,
        {"additive_mask": changes.lowest_of_float16_past_a_tile},
        ENGINEER,
    ),
    Fault(
        "flash-empty-row-spreads",
        "a row that sees no key makes its block of 8 rows NaN",
        spec.FLASH_08,
        weights_by(changes.empty_row_of_block_spreads),
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
)
