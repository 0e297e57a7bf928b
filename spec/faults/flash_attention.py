"""What goes wrong in flash attention, and the honest ways to compute it.

Tiles are where this contract goes beyond plain attention, so most of these are wrong only from a second tile on. A tile
is as large as it is in real kernels: 8 (SIMD-group matrices), 16, 32, 64 or 128 keys.
"""

from __future__ import annotations

import numpy as np

from inferspec.spec import flash_attention as spec
from inferspec.spec.changes import flash_attention as changes
from inferspec.spec.changes import tiles
from inferspec.spec.changes.attention import (
    CORE,
    batch_of_grouped_tokens,
    chunk_after_context,
    drafts_unmasked,
    heads_by,
    heads_tiled,
    in_common_heads,
    masked_prompt,
    masked_prompt_of_common_heads,
    merges_heads_swapped,
    of_split_keys,
    rereads,
    reshapes,
    unwritten_past,
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
)
from inferspec.spec.changes.attention_variants import (
    NATIVE_STEPS,
    base_two,
    computed,
    heads_broadcast,
    lowest_for_inf,
    online,
    query_scaled_first,
    reversed_order,
    split_and_merged,
)
from inferspec.spec.changes.attention_weights import (
    NAN_HIDES,
    NAN_ROW_IS_EMPTY,
    NAN_TO_ZERO,
    empty_rows,
    first_key,
    half_products_saturate,
    hidden_in_maximum,
    logits_summed_in_dtype,
    mask_of_first_prompt,
    maximum_rounded_alone,
    room_times_scale,
    starts_at,
    total_summed_in_dtype,
    values_summed_in_dtype,
    weights_by,
)
from inferspec.spec.changes.tiles import walking
from inferspec.spec.contract import Fault, Variant
from inferspec.spec.faults import flash_attention_arrays, flash_attention_tiles
from inferspec.spec.faults.attention_sources import ENGINEER, FLASH_ATTENTION, FLASHINFER, MLX, TINY_LLM
from inferspec.spec.mistakes import (
    hides_nan,
    only_where,
    paths_lack_a_feature,
    paths_misread,
    read_as_of,
)
from inferspec.spec.numerics import Precision

FAULTS = (
    Fault(
        "flash-not-normalised",
        "the values are not divided by the running sum at the end",
        spec.FLASH_01,
        {"weights": changes.unnormalised},
        ENGINEER,
    ),
    Fault(
        "flash-exp2-without-log2e",
        "exp2 is taken of logits that were not multiplied by log2(e)",
        spec.FLASH_01,
        {"weights": changes.base_two_without_log2e},
        ENGINEER,
    ),
    Fault("flash-value-is-key", "the keys are read as the values", spec.FLASH_01, rereads(value="key"), ENGINEER),
    Fault(
        "flash-room-of-a-tile-times-scale",
        "room of a tile of keys is hidden by -inf before the scale: NaN in half precision where that is negative",
        spec.FLASH_02,
        {"logits": room_times_scale},
        "MLX 0.32.4 and cuDNN 9 on CUDA, float16, head dims 8 to 72",
    ),
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
        "real code written from the seeds",
    ),
    Fault(
        "flash-scale-of-padded-dim",
        "the default scale is that of the head dim rounded up to a multiple of 64",
        spec.FLASH_02,
        {"scale": changes.scale_of_padded_dim},
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
        {"key_heads": changes.group_shifted_down},
        ENGINEER,
    ),
    Fault(
        "flash-group-shifted-up",
        "a group has as many query heads as the power of two above its ratio",
        spec.FLASH_03,
        {"key_heads": changes.group_shifted_up},
        ENGINEER,
    ),
    Fault(
        "flash-groups-of-eight",
        "a tile of eight query heads shares one key head, whatever the ratio",
        spec.FLASH_03,
        {"key_heads": changes.groups_of_eight},
        ENGINEER,
    ),
    Fault(
        "flash-group-members-unwritten",
        "query heads of a group past a power of two are never written",
        spec.FLASH_03,
        {"finish": changes.odd_members_unwritten},
        ENGINEER,
    ),
    Fault(
        "flash-groups-to-16",
        "query heads past the 16th of a group are never written",
        spec.FLASH_03,
        unwritten_past(16),
        "https://github.com/vllm-project/vllm/pull/23424",
    ),
    Fault(
        "flash-head-tiles-of-16",
        "of a single query a tile of sixteen heads reads the key head of its first, where a group is larger than a tile",
        spec.FLASH_03,
        reshapes(changes.tiles_of_sixteen),
        "https://github.com/FlashML-org/FreeToken/pull/177",
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
        "flash-batch-of-grouped-tokens",
        "tokens of grouped heads over 1024 keys and more all read those of the first batch row",
        spec.FLASH_12,
        reshapes(batch_of_grouped_tokens),
        ENGINEER,
    ),
    *paths_misread(
        "flash-splits",
        "of a few queries over 512 keys and more",
        spec.FLASH_13,
        of_split_keys,
        {"key": -2, "value": -2, "mask": None},
    ),
    *paths_misread(
        "flash-prompts", "of prompts of common heads", spec.FLASH_13, masked_prompt_of_common_heads, {"mask": None}
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
        "flash-groups-to-8-in-prompts",
        "of prompts query heads past the 8th of a group are never written",
        spec.FLASH_03,
        only_where(lambda a: a.query.shape[-2] >= 16, unwritten_past(8)),
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
        {"attended": changes.walk_in_dtype},
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
        {"weights": changes.exponentials_in_half},
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
        "flash-maximum-rounded-alone",
        "logits are scaled by a fused multiply-add that subtracts a maximum which was rounded: exp overflows",
        spec.FLASH_10,
        {"weights": maximum_rounded_alone},
        "https://github.com/ROCm/aotriton/issues/54",
    ),
    Fault(
        "flash-products-saturate",
        "of float16 heads of 64 and 128 features products of queries and keys end at 65504 before they are scaled",
        spec.FLASH_10,
        {"logits": half_products_saturate},
        ENGINEER,
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
        "flash-float32-mask-bits",
        "what a float32 mask holds is read as numbers of the dtype of query",
        spec.FLASH_26,
        read_as_of("query", "mask"),
        "kernels of one dtype for all their buffers",
    ),
    Fault(
        "flash-nan-becomes-zero",
        "NaN in the result is replaced by 0",
        spec.FLASH_25,
        NAN_TO_ZERO,
        "IEEE 754, section 6.2",
    ),
    *(
        Fault(
            f"flash-{name}-nan-hidden-in-{part}",
            f"{where} what is no number in {part} is taken for 0",
            spec.FLASH_25,
            hides_nan(part, holds),
            "IEEE 754, section 6.2",
        )
        for name, where, holds in (
            ("many-queries", "of more than 16 queries", lambda a: a.query.shape[-2] > 16),
            ("many-keys", "of more than 128 keys", lambda a: a.key.shape[-2] > 128),
        )
        for part in ("query", "key", "value")
    ),
    Fault(
        "flash-nan-row-is-empty",
        "a row whose weights do not sum to more than 0 is taken for one that sees no key",
        spec.FLASH_25,
        NAN_ROW_IS_EMPTY,
        "PyTorch's flash attention on the CPU",
    ),
    Fault(
        "flash-nan-tile-forgotten",
        "the running maximum begins anew after a tile with a NaN, whose sums are left out",
        spec.FLASH_25,
        walking(top=tiles.top_after_nan, factor=tiles.nothing_of_nan, add=tiles.after_nan),
        ENGINEER,
    ),
    Fault(
        "flash-nan-is-no-logit",
        "a NaN among the logits is taken for a hidden key",
        spec.FLASH_25,
        NAN_HIDES,
        "IEEE 754, section 6.2",
    ),
    *flash_attention_arrays.FAULTS,
    *flash_attention_tiles.FAULTS,
)


FLASH = "flash_attention"

VARIANTS = (
    *(
        Variant(f"flash-online-{tile}", f"online softmax in tiles of {tile} keys", FLASH, online(tile))
        for tile in (1, 8, 32, 64, 128)
    ),
    Variant("flash-two-pass", "one pass for the sum, another for the values", FLASH, computed(changes.two_pass)),
    Variant("flash-splits-merged", "three splits, merged by their log-sum-exp", FLASH, computed(split_and_merged)),
    Variant("flash-splits-by-stride", "eight groups take every eighth key", FLASH, computed(changes.splits_by_stride)),
    Variant(
        "flash-tiles-reversed", "from the last tile to the first, in base 2", FLASH, computed(changes.tiles_reversed)
    ),
    Variant(
        "flash-lazily-rescaled", "rescaled only when the maximum rises by 8", FLASH, computed(changes.lazily_rescaled)
    ),
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
        {"attended": changes.rounded_weights},
        Precision.NATIVE,
    ),
    Variant("flash-native-steps", "every intermediate in the dtype", FLASH, NATIVE_STEPS, Precision.NATIVE),
)
