"""What goes wrong in attention, its causal mask and multi-head attention, and the honest ways to compute them."""

from __future__ import annotations

import numpy as np

from inferspec.spec import attention as spec
from inferspec.spec.changes import attention as changes
from inferspec.spec.changes import attention_masks as masks
from inferspec.spec.changes import attention_variants as variants
from inferspec.spec.changes import attention_weights
from inferspec.spec.changes import multi_head_attention as heads
from inferspec.spec.contract import Fault, Variant
from inferspec.spec.faults import (
    attention_arrays,
    attention_masks,
    attention_numbers,
    causal_mask,
    multi_head_attention,
)
from inferspec.spec.faults.attention_sources import ENGINEER, TINY_LLM
from inferspec.spec.mistakes import bfloat16_through_float16, counts_axis_in_16_bits, leaves_unwritten, only_where
from inferspec.spec.numerics import Precision, largest

SDPA_FAULTS = (
    Fault(
        "sdpa-softmax-over-queries",
        "the softmax runs over the queries",
        spec.ATTN_01,
        {"weights": attention_weights.over_queries},
        ENGINEER,
    ),
    Fault(
        "sdpa-not-normalised",
        "the weights are not divided by their sum",
        spec.ATTN_01,
        {"weights": lambda self, logits, dtype: attention_weights.exponentials(logits)},
        ENGINEER,
    ),
    Fault(
        "sdpa-sink-left-in",
        "a constant logit 0 (attention sink) takes its share of every row",
        spec.ATTN_01,
        {"weights": attention_weights.with_sink},
        "softmax-off-by-one and attention sinks",
    ),
    Fault(
        "sdpa-keys-of-zeros-are-padding",
        "keys whose features sum up to 0 are taken for padding and hidden",
        spec.ATTN_01,
        {"logits": attention_weights.keys_of_nothing_hidden},
        "https://github.com/Kyubyong/transformer/issues/33",
    ),
    Fault(
        "sdpa-queries-of-zeros-are-padding",
        "queries whose features sum up to 0 are taken for padding and give zeros",
        spec.ATTN_01,
        {"logits": attention_weights.queries_of_nothing_blind},
        "https://github.com/kang205/SASRec/issues/14",
    ),
    Fault(
        "sdpa-key-scaled-in-place-is-the-value",
        "where key and value are one array, the values are multiplied by the scale as the keys are",
        spec.ATTN_01,
        only_where(lambda a: a.key is a.value, {"respond": changes.values_scaled}),
        "the kind of https://github.com/jax-ml/jax/issues/24023",
    ),
    Fault("sdpa-value-is-key", "the keys are read as the values", spec.ATTN_01, changes.rereads(value="key"), ENGINEER),
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
        "sdpa-whole-scale-is-default",
        "a scale that is a whole number, and no float, is taken for none",
        spec.ATTN_02,
        {"scale": attention_weights.whole_is_the_default},
        ENGINEER,
    ),
    Fault(
        "sdpa-scale-zero-is-default",
        "scale 0 is taken for none (`scale or default`)",
        spec.ATTN_02,
        {"scale": lambda self, a: float(a.scale or a.query.shape[-1] ** -0.5)},
        "real code written from the seeds",
    ),
    Fault(
        "sdpa-scale-sign-dropped",
        "a negative scale loses its sign",
        spec.ATTN_02,
        {"scale": lambda self, a: abs(changes.CORE.scale(a))},
        ENGINEER,
    ),
    Fault(
        "sdpa-room-of-a-tile-times-scale",
        "room of a tile of keys is hidden by -inf before the scale: NaN in half precision where that is negative",
        spec.ATTN_02,
        {"logits": attention_weights.room_times_scale},
        "MLX 0.32.4 and cuDNN 9 on CUDA, float16, head dims 8 to 72",
    ),
    Fault(
        "sdpa-scale-twice",
        "the scale is applied to the query and to the logits",
        spec.ATTN_02,
        {"scale": lambda self, a: changes.CORE.scale(a) ** 2},
        ENGINEER,
    ),
    Fault(
        "sdpa-heads-tiled",
        "query head h reads key/value head h % H",
        spec.ATTN_03,
        {"key_heads": changes.heads_tiled},
        ENGINEER,
    ),
    Fault(
        "sdpa-value-heads-tiled",
        "query head h reads value head h % H and the right key head",
        spec.ATTN_03,
        {"value_heads": changes.heads_tiled},
        ENGINEER,
    ),
    Fault(
        "sdpa-first-head-for-all",
        "every query head reads key/value head 0",
        spec.ATTN_03,
        {"key_heads": changes.first_head},
        ENGINEER,
    ),
    Fault(
        "sdpa-first-value-head-for-all",
        "every query head reads value head 0",
        spec.ATTN_03,
        {"value_heads": changes.first_head},
        ENGINEER,
    ),
    Fault(
        "sdpa-groups-reversed",
        "the key/value heads are matched in reverse order",
        spec.ATTN_03,
        {"key_heads": changes.groups_reversed},
        ENGINEER,
    ),
    Fault(
        "sdpa-groups-to-16",
        "query heads past the 16th of a group are never written",
        spec.ATTN_03,
        changes.unwritten_past(16),
        "https://github.com/vllm-project/vllm/pull/23424",
    ),
    Fault(
        "sdpa-heads-merged-swapped",
        "the result's heads come back in the order (member, group)",
        spec.ATTN_03,
        {"finish": changes.merges_heads_swapped},
        ENGINEER,
    ),
    *attention_masks.ARRAYS,
    Fault(
        "sdpa-drafts-unmasked",
        "of two to eight queries of heads in groups of four and more, after 256 keys and more, each sees the whole context",
        spec.ATTN_05,
        changes.reshapes(changes.drafts_unmasked),
        ENGINEER,
    ),
    Fault(
        "sdpa-batch-of-grouped-tokens",
        "tokens of grouped heads over 1024 keys and more all read those of the first batch row",
        spec.ATTN_12,
        changes.reshapes(changes.batch_of_grouped_tokens),
        ENGINEER,
    ),
    Fault(
        "sdpa-causal-top-left",
        "the causal mask is aligned top-left",
        spec.ATTN_05,
        masks.TOP_LEFT,
        TINY_LLM + "commit/0c1ae4b",
    ),
    Fault("sdpa-causal-one-future", "each query sees one future key", spec.ATTN_05, masks.ONE_FUTURE, ENGINEER),
    Fault(
        "sdpa-causal-second-half-one-future",
        "queries past the 256th see one future key",
        spec.ATTN_05,
        masks.PAST_256_ONE_FUTURE,
        ENGINEER,
    ),
    Fault(
        "sdpa-heads-in-16-bits",
        "of all heads of all rows those past the 65535th are not written",
        spec.ATTN_12,
        leaves_unwritten(masks.first_16_bits),
        "https://github.com/pytorch/pytorch/issues/142228",
    ),
    Fault(
        "sdpa-heads-of-prompts-in-16-bits",
        "of 9 queries and more, heads of all rows past the 65535th are not written",
        spec.ATTN_12,
        only_where(lambda a: a.query.shape[-2] >= 9, leaves_unwritten(masks.first_16_bits)),
        "https://github.com/pytorch/pytorch/issues/142228",
    ),
    Fault(
        "sdpa-batch-rows-in-16-bits",
        "batch rows past the 65535th are not written",
        spec.ATTN_12,
        counts_axis_in_16_bits(-4),
        "https://github.com/pytorch/pytorch/issues/146704",
    ),
    Fault(
        "sdpa-heads-of-a-row-in-16-bits",
        "of the heads of a batch row those past the 65535th are not written",
        spec.ATTN_12,
        counts_axis_in_16_bits(-3),
        "https://github.com/pytorch/pytorch/issues/142228",
    ),
    Fault(
        "sdpa-key-heads-modulo-sixteen",
        "key and value heads are counted modulo 16",
        spec.ATTN_03,
        changes.reshapes(lambda a: {name: masks.key_heads_modulo(16, getattr(a, name)) for name in ("key", "value")}),
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
        "sdpa-one-partial-result-for-a-group",
        "over a long context the query heads of a group, one token of a common head, all get what one of them summed",
        spec.ATTN_18,
        changes.one_partial_result_for_a_group("key", lambda a: int(a.key.shape[-2])),
        "https://github.com/ml-explore/mlx/issues/4022",
    ),
    Fault(
        "sdpa-several-queries-split-from-the-top",
        "where a few queries share many keys, the causal mask is aligned top-left",
        spec.ATTN_18,
        masks.SPLIT_FROM_THE_TOP,
        ENGINEER,
    ),
    Fault(
        "sdpa-split-for-first-row",
        "from 1024 keys on, a single query reads those of the first batch row",
        spec.ATTN_18,
        {"attended": masks.split_for_first_row},
        ENGINEER,
    ),
    Fault(
        "sdpa-1024-queries",
        "queries past the 1024th are never written",
        spec.ATTN_18,
        leaves_unwritten(lambda out: out[..., :1024, :]),
        ENGINEER,
    ),
    *attention_masks.FAULTS,
    *attention_numbers.FAULTS,
)


FAULTS = SDPA_FAULTS + attention_arrays.FAULTS + causal_mask.FAULTS + multi_head_attention.FAULTS


SDPA = "scaled_dot_product_attention"

VARIANTS = (
    *(
        Variant(f"sdpa-online-{tile}", f"online softmax in tiles of {tile} keys", SDPA, variants.online(tile))
        for tile in (1, 3, 32)
    ),
    Variant(
        "sdpa-split-and-merged",
        "keys in three splits, merged by their log-sum-exp",
        SDPA,
        variants.computed(variants.split_and_merged),
    ),
    Variant(
        "sdpa-reversed-order",
        "float32 with every sum in reverse order",
        SDPA,
        variants.computed(variants.reversed_order),
    ),
    Variant(
        "sdpa-query-scaled-first",
        "the query is scaled before the product",
        SDPA,
        variants.computed(variants.query_scaled_first),
    ),
    Variant(
        "sdpa-base-two", "exp2, with log2(e) folded into scale and mask", SDPA, variants.computed(variants.base_two)
    ),
    Variant(
        "sdpa-lowest-for-inf",
        "hidden logits are the lowest number, empty rows zeroed",
        SDPA,
        variants.computed(variants.lowest_for_inf),
    ),
    Variant(
        "sdpa-hides-with-minus-1e9",
        "hidden keys get -1e9 added, which no logit of a model comes near; a row that sees none is the mean",
        SDPA,
        masks.hides_with(-1e9),
        unmet=("ATTN-07",),
    ),
    Variant(
        "sdpa-heads-broadcast",
        "keys and values broadcast over groups of query heads",
        SDPA,
        {"respond": variants.heads_broadcast},
    ),
    Variant(
        "sdpa-weights-rounded",
        "the weights are rounded to the dtype before they meet the values",
        SDPA,
        {"weights": lambda self, logits, dtype: attention_weights.rounded(changes.CORE.weights(logits, dtype), dtype)},
        Precision.NATIVE,
    ),
    Variant(
        "sdpa-native-logits",
        "logits in the dtype, softmax in float32",
        SDPA,
        {"logits": variants.native_logits},
        Precision.NATIVE,
    ),
    Variant("sdpa-native-steps", "every intermediate in the dtype", SDPA, variants.NATIVE_STEPS, Precision.NATIVE),
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
        masks.mask_valued(
            lambda visible: np.triu(np.full(visible.shape, -np.inf), visible.shape[1] - visible.shape[0] + 1)
        ),
    ),
    Variant(
        "mha-rounded-stages",
        "float32, rounded to the dtype after every projection and the attention",
        "MultiHeadAttention",
        {
            "projected": variants.projected_in_float32,
            "output": variants.output_in_float32,
            **heads.attending(variants.computed(variants.query_scaled_first)),
        },
    ),
    Variant(
        "mha-fused-projections",
        "one product with the stacked weights, nothing rounded before the result",
        "MultiHeadAttention",
        {"projected": variants.projected_together, **heads.attending(variants.computed(variants.query_scaled_first))},
    ),
    Variant(
        "mha-output-by-head",
        "each head is projected by its part of wo, and the results added",
        "MultiHeadAttention",
        {"output": variants.output_by_head},
    ),
    Variant(
        "mha-native-steps",
        "every intermediate in the dtype",
        "MultiHeadAttention",
        {
            "projected": variants.projected_in_float32,
            "output": variants.output_in_float32,
            **heads.attending(variants.NATIVE_STEPS),
        },
        Precision.NATIVE,
    ),
)
