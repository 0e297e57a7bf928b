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
    heads_by,
    heads_tiled,
    masked_prompt_of_common_heads,
    merges_heads_swapped,
    of_split_keys,
    rereads,
    reshapes,
    unwritten_past,
)
from inferspec.spec.changes.attention_masks import hides_with
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
    half_products_saturate,
    keys_of_nothing_hidden,
    logits_summed_in_dtype,
    maximum_rounded_alone,
    one_is_the_default,
    room_times_scale,
    starts_at,
    total_summed_in_dtype,
    values_summed_in_dtype,
    whole_is_the_default,
)
from inferspec.spec.changes.tiles import walking
from inferspec.spec.contract import Fault, Variant
from inferspec.spec.faults import flash_attention_arrays, flash_attention_masks, flash_attention_tiles
from inferspec.spec.faults.attention_sources import ENGINEER, FLASHINFER
from inferspec.spec.mistakes import (
    hides_nan,
    only_where,
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
    Fault(
        "flash-keys-of-zeros-are-padding",
        "keys whose features sum up to 0 are taken for padding and hidden",
        spec.FLASH_01,
        {"logits": keys_of_nothing_hidden},
        "https://github.com/Kyubyong/transformer/issues/33",
    ),
    Fault(
        "flash-scale-of-one-is-default",
        "a scale of 1 stands for none given",
        spec.FLASH_02,
        {"scale": one_is_the_default},
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
        "flash-whole-scale-is-default",
        "a scale that is a whole number, and no float, is taken for none",
        spec.FLASH_02,
        {"scale": whole_is_the_default},
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
        "flash-groups-to-8-in-prompts",
        "of prompts query heads past the 8th of a group are never written",
        spec.FLASH_03,
        only_where(lambda a: a.query.shape[-2] >= 16, unwritten_past(8)),
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
    *flash_attention_masks.FAULTS,
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
    Variant(
        "flash-hides-with-minus-1e9",
        "hidden keys get -1e9 added, which no logit of a model comes near; a row that sees none is the mean",
        FLASH,
        hides_with(-1e9),
        unmet=("FLASH-07",),
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
