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
from inferspec.spec.faults import attention_arrays, multi_head_attention
from inferspec.spec.faults.attention_sources import ENGINEER, FLASH_ATTENTION, FLASHINFER, MLX, MLX_LM, TINY_LLM
from inferspec.spec.mistakes import (
    bfloat16_through_float16,
    counts_axis_in_16_bits,
    hides_nan,
    leaves_unwritten,
    paths_lack_a_feature,
    promotes,
    read_as_of,
    remembers,
)
from inferspec.spec.numerics import Precision, f64, largest

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
    Fault(
        "sdpa-mask-ignored",
        "array masks are ignored",
        spec.ATTN_04,
        masks.remasks(lambda bias, a: np.zeros(())),
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
        masks.spreads(masks.mask_of_first_row),
        ENGINEER,
    ),
    Fault(
        "sdpa-mask-of-first-prompt",
        "every prompt of a batch, of common heads, gets the mask of the first",
        spec.ATTN_04,
        masks.spreads(attention_weights.mask_of_first_prompt),
        ENGINEER,
    ),
    Fault(
        "sdpa-mask-first-head",
        "every head gets the mask of head 0",
        spec.ATTN_04,
        masks.spreads(lambda bias, a: bias[..., :1, :, :]),
        ENGINEER,
    ),
    Fault(
        "sdpa-mask-first-query",
        "every query gets the mask of query 0",
        spec.ATTN_04,
        masks.spreads(lambda bias, a: bias[..., :1, :]),
        ENGINEER,
    ),
    Fault(
        "sdpa-mask-transposed",
        "a square mask is read transposed",
        spec.ATTN_04,
        masks.spreads(masks.mask_transposed),
        ENGINEER,
    ),
    Fault(
        "sdpa-mask-group-order",
        "under grouped heads the mask's heads are taken in the order (member, group)",
        spec.ATTN_04,
        masks.spreads(masks.mask_heads_swapped),
        MLX_LM + "commit/a790972f",
    ),
    Fault(
        "sdpa-mask-batch-in-heads",
        "the mask's batch axis is folded in with its heads",
        spec.ATTN_04,
        masks.spreads(masks.mask_batch_in_heads),
        TINY_LLM + "commit/ae06a7f",
    ),
    Fault(
        "sdpa-mask-read-unbroadcast",
        "a mask of fewer or singleton dims is read with the strides of a full one",
        spec.ATTN_04,
        masks.remasks(lambda bias, a: np.resize(bias, masks.full_mask(a))),
        MLX + "commit/005e7efa6",
    ),
    Fault(
        "sdpa-mask-low-rank-ignored",
        "a mask of fewer than two dims is ignored",
        spec.ATTN_04,
        masks.remasks(lambda bias, a: bias if bias.ndim > 1 else np.zeros(())),
        MLX + "commit/005e7efa6",
    ),
    Fault(
        "sdpa-mask-of-no-axes-refused",
        "a mask of no axes ends in an error that nobody meant",
        spec.ATTN_04,
        masks.remasks(masks.takes_axes),
        TINY_LLM,
    ),
    Fault(
        "sdpa-mask-vector-as-column",
        "a 1-D mask is laid along the queries when L = S",
        spec.ATTN_04,
        masks.remasks(masks.vector_as_column),
        ENGINEER,
    ),
    Fault(
        "sdpa-mask-made-bool",
        "finite numbers in an additive mask are dropped",
        spec.ATTN_04,
        masks.remasks(lambda bias, a: np.where(np.isfinite(bias), 0.0, bias)),
        ENGINEER,
    ),
    Fault(
        "sdpa-mask-not-in-base-2",
        "log2(e) is folded into the scale for exp2, but not into the mask",
        spec.ATTN_04,
        masks.remasks(lambda bias, a: bias * np.log(2.0)),
        ENGINEER,
    ),
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
    Fault(
        "sdpa-causal-wide-heads-one-future",
        "in heads of 96 dims and more queries past the 128th see one future key",
        spec.ATTN_05,
        {"bias": masks.wide_heads_one_future},
        ENGINEER,
    ),
    *paths_lack_a_feature(
        "sdpa-common-chunks",
        "in chunks of grouped heads of 128 dims after a long context",
        spec.ATTN_05,
        changes.in_common_heads(changes.chunk_after_context),
        ENGINEER,
        argument="query",
    ),
    *paths_lack_a_feature(
        "sdpa-common-masked-prompts",
        "in prompts of grouped heads of 128 dims with a mask",
        spec.ATTN_06,
        changes.in_common_heads(changes.masked_prompt),
        ENGINEER,
        argument="query",
    ),
    Fault(
        "sdpa-causal-half-prompts-in-fours",
        "in prompts of half precision from 64 tokens on, four queries in a row see what the last of them sees",
        spec.ATTN_05,
        {"bias": masks.half_prompts_in_fours},
        "https://github.com/pytorch/pytorch/issues/195910",
    ),
    Fault("sdpa-causal-not-itself", "each query misses its own key", spec.ATTN_05, masks.NOT_ITSELF, ENGINEER),
    Fault(
        "sdpa-causal-top-left-where-longer",
        "the causal mask is aligned top-left where L > S",
        spec.ATTN_05,
        masks.TOP_LEFT_WHERE_LONGER,
        MLX + "issues/2835",
    ),
    Fault(
        "sdpa-causal-never-empty",
        "where L > S the first queries see key 0",
        spec.ATTN_07,
        masks.NEVER_EMPTY,
        ENGINEER,
    ),
    Fault(
        "sdpa-causal-square-only", "nothing is hidden where L and S differ", spec.ATTN_05, masks.SQUARE_ONLY, ENGINEER
    ),
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
        {"attended": attention_weights.mask_after_softmax},
        ENGINEER,
    ),
    Fault(
        "sdpa-mask-of-first-256-rows",
        "where there are more than 256 queries and keys, rows of an array mask past the 256th are the first ones again",
        spec.ATTN_06,
        masks.spreads(masks.mask_of_first_256_rows),
        "https://github.com/pytorch/pytorch/issues/162588",
    ),
    Fault(
        "sdpa-causal-array-twice",
        "causality is applied again to an array mask that has it: the last row of a part tile is left without keys",
        spec.ATTN_06,
        masks.spreads(masks.causal_array_applied_twice),
        "https://github.com/huggingface/candle/pull/3625",
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
        {"bool_mask": lambda self, mask: changes.CORE.bool_mask(~mask)},
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
                np.isneginf(bias), 0.0, changes.CORE.logits(q, k, scale, bias, dtype)
            )
        },
        ENGINEER,
    ),
    Fault(
        "sdpa-hidden-in-denominator",
        "hidden keys count as exp(0) in the denominator",
        spec.ATTN_06,
        {"attended": attention_weights.hidden_in_denominator},
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
        attention_weights.weights_by(
            lambda weights, logits: np.where(
                attention_weights.empty_rows(logits), 1 / max(logits.shape[-1], 1), weights
            )
        ),
        MLX + "commit/e1840853c",
    ),
    Fault(
        "sdpa-empty-row-nan",
        "a row that sees no key is NaN",
        spec.ATTN_07,
        attention_weights.weights_by(
            lambda weights, logits: np.where(attention_weights.empty_rows(logits), np.nan, weights)
        ),
        MLX + "commit/711a64580",
    ),
    Fault(
        "sdpa-empty-row-first-value",
        "a row that sees no key is the first value",
        spec.ATTN_07,
        attention_weights.weights_by(attention_weights.first_key),
        ENGINEER,
    ),
    Fault(
        "sdpa-lowest-row-mean",
        "a row hidden by the dtype's lowest number still attends",
        spec.ATTN_07,
        {"additive_mask": lambda self, mask: f64(mask)},
        "torch 2.13 and MLX",
    ),
    Fault(
        "sdpa-empty-row-spreads",
        "a row that sees no key makes its whole head NaN",
        spec.ATTN_08,
        attention_weights.weights_by(attention_weights.empty_row_spreads),
        FLASH_ATTENTION + "commit/26d7d92f",
    ),
    Fault(
        "sdpa-part-hidden-in-between",
        "of 512 keys and more, a part of 32 that is hidden between visible ones makes the row NaN when parts are merged",
        spec.ATTN_08,
        attention_weights.weights_by(attention_weights.part_hidden_in_between),
        ENGINEER,
    ),
    Fault(
        "sdpa-last-part-hidden",
        "of two to eight queries over 256 keys and more, those that see nothing of the last part of 128 are NaN when parts are merged",
        spec.ATTN_18,
        attention_weights.weights_by(attention_weights.last_part_hidden),
        "https://github.com/ROCm/aiter/pull/4711",
    ),
    Fault(
        "sdpa-part-without-keys",
        "of four queries and fewer over 256 keys and more an odd number of tiles of 32 leaves a part without keys, whose 0 / 0 "
        "comes through",
        spec.ATTN_18,
        attention_weights.weights_by(attention_weights.part_without_keys),
        "https://pypi.org/project/mlx-mfa, RC-B of 2.61.0",
    ),
    Fault(
        "sdpa-empty-row-stops",
        "the rows after one that sees no key are zeros",
        spec.ATTN_08,
        attention_weights.weights_by(attention_weights.stops_at_empty_row),
        TINY_LLM + "commit/6817831",
    ),
    Fault(
        "sdpa-hidden-weight-epsilon",
        "an epsilon is added to every weight, the hidden ones too",
        spec.ATTN_08,
        attention_weights.weights_by(lambda weights, logits: weights + 1e-6),
        ENGINEER,
    ),
    Fault(
        "sdpa-hidden-in-maximum",
        "hidden logits count in the row's maximum, so that visible weights underflow",
        spec.ATTN_08,
        {"attended": attention_weights.hidden_in_maximum},
        ENGINEER,
    ),
    Fault(
        "sdpa-hides-with-minus-10000",
        "keys are hidden by adding -1e4, which large logits outweigh",
        spec.ATTN_08,
        masks.hides_with(-1e4),
        ENGINEER,
    ),
    Fault(
        "sdpa-hides-with-minus-100",
        "keys are hidden by adding -100",
        spec.ATTN_08,
        masks.hides_with(-100.0),
        ENGINEER,
    ),
    Fault(
        "sdpa-logits-bfloat16",
        "the logits are rounded to bfloat16",
        spec.ATTN_09,
        attention_weights.softmax_by(lambda logits: attention_weights.rounded(logits, "bfloat16")),
        ENGINEER,
    ),
    Fault(
        "sdpa-logits-in-dtype",
        "the logits are rounded to the input's dtype",
        spec.ATTN_09,
        {"weights": lambda self, logits, dtype: changes.CORE.weights(attention_weights.rounded(logits, dtype), dtype)},
        "PROPERTIES, judging",
    ),
    Fault(
        "sdpa-query-in-dtype",
        "the scaled query is rounded to the input's dtype",
        spec.ATTN_09,
        {
            "logits": lambda self, q, k, scale, bias, dtype: (
                attention_weights.rounded(q * scale, dtype) @ k.swapaxes(-1, -2) + bias
            )
        },
        "PROPERTIES, judging",
    ),
    Fault(
        "sdpa-logits-summed-in-dtype",
        "the logits are accumulated in the input's dtype",
        spec.ATTN_09,
        {"logits": attention_weights.logits_summed_in_dtype},
        ENGINEER,
    ),
    Fault(
        "sdpa-values-summed-in-dtype",
        "the weighted values are accumulated in the input's dtype",
        spec.ATTN_09,
        {"combine": attention_weights.values_summed_in_dtype},
        ENGINEER,
    ),
    Fault(
        "sdpa-total-summed-in-dtype",
        "the sum of the weights is accumulated in the input's dtype",
        spec.ATTN_09,
        {"weights": attention_weights.total_summed_in_dtype},
        ENGINEER,
    ),
    Fault(
        "sdpa-fast-exponential",
        "exp(x) is taken as (1 + x/256)^256",
        spec.ATTN_09,
        {"weights": attention_weights.fast_exponentials},
        "fast-math approximations",
    ),
    Fault(
        "sdpa-weights-8-bit",
        "the weights are rounded to 8 bits",
        spec.ATTN_09,
        attention_weights.weights_by(lambda weights, logits: np.rint(weights * 255) / 255),
        ENGINEER,
    ),
    Fault(
        "sdpa-no-maximum",
        "the row's largest logit is not subtracted: exp overflows",
        spec.ATTN_10,
        {"weights": lambda self, logits, dtype: attention_weights.softmax(logits, np.zeros(()))},
        ENGINEER,
    ),
    Fault(
        "sdpa-maximum-of-head",
        "one maximum serves all rows of a head: rows far below it are lost",
        spec.ATTN_10,
        {"weights": attention_weights.largest_of_head},
        ENGINEER,
    ),
    Fault(
        "sdpa-maximum-from-sentinel",
        "the running maximum starts at -5e4: rows below it are zeros",
        spec.ATTN_10,
        attention_weights.starts_at(-5e4),
        FLASHINFER + "commit/d7f2c6464",
    ),
    Fault(
        "sdpa-products-saturate",
        "of float16 heads of 64 and 128 features products of queries and keys end at 65504 before they are scaled",
        spec.ATTN_10,
        {"logits": attention_weights.half_products_saturate},
        ENGINEER,
    ),
    Fault(
        "sdpa-maximum-from-zero",
        "the running maximum starts at 0: rows far below it are zeros",
        spec.ATTN_10,
        attention_weights.starts_at(0.0),
        ENGINEER,
    ),
    Fault(
        "sdpa-maximum-rounded-alone",
        "logits are scaled by a fused multiply-add that subtracts a maximum which was rounded: exp overflows",
        spec.ATTN_10,
        {"weights": attention_weights.maximum_rounded_alone},
        "https://github.com/ROCm/aotriton/issues/54",
    ),
    Fault(
        "sdpa-logits-clipped",
        "logits are clipped to ±80",
        spec.ATTN_10,
        attention_weights.softmax_by(
            lambda logits: np.where(np.isneginf(logits), logits, np.clip(logits, -80.0, 80.0))
        ),
        ENGINEER,
    ),
    Fault(
        "sdpa-soft-cap-left-in",
        "logits pass through 50 · tanh(x / 50)",
        spec.ATTN_10,
        attention_weights.softmax_by(
            lambda logits: np.where(np.isneginf(logits), logits, 50.0 * np.tanh(logits / 50.0))
        ),
        "Gemma 2's logit cap",
    ),
    Fault(
        "sdpa-float32-mask-bits",
        "what a float32 mask holds is read as numbers of the dtype of query",
        spec.ATTN_21,
        read_as_of("query", "mask"),
        "kernels of one dtype for all their buffers",
    ),
    Fault(
        "sdpa-nan-becomes-zero",
        "NaN in the result is replaced by 0",
        spec.ATTN_20,
        attention_weights.NAN_TO_ZERO,
        "IEEE 754, section 6.2",
    ),
    *(
        Fault(
            f"sdpa-{name}-nan-hidden-in-{part}",
            f"{where} what is no number in {part} is taken for 0",
            spec.ATTN_20,
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
        "sdpa-nan-row-is-empty",
        "a row whose weights do not sum to more than 0 is taken for one that sees no key",
        spec.ATTN_20,
        attention_weights.NAN_ROW_IS_EMPTY,
        "PyTorch's flash attention on the CPU",
    ),
    Fault(
        "sdpa-nan-is-no-logit",
        "a NaN among the logits is taken for a hidden key",
        spec.ATTN_20,
        attention_weights.NAN_HIDES,
        "IEEE 754, section 6.2",
    ),
)


CMASK_FAULTS = (
    Fault("cmask-top-left", "the mask is aligned top-left", spec.CMASK_01, masks.TOP_LEFT, TINY_LLM + "commit/0c1ae4b"),
    Fault(
        "cmask-buffer-of-1024",
        "all is visible past 1024 queries or keys",
        spec.CMASK_01,
        masks.BUFFER_OF_1024,
        ENGINEER,
    ),
    Fault("cmask-buffer-of-4096", "all is visible past 4096 keys", spec.CMASK_01, masks.BUFFER_OF_4096, ENGINEER),
    Fault("cmask-one-future", "each query sees one future key", spec.CMASK_01, masks.ONE_FUTURE, ENGINEER),
    Fault("cmask-not-itself", "each query misses its own key", spec.CMASK_01, masks.NOT_ITSELF, ENGINEER),
    Fault(
        "cmask-top-left-where-longer",
        "the mask is aligned top-left where L > S",
        spec.CMASK_01,
        masks.TOP_LEFT_WHERE_LONGER,
        MLX + "issues/2835",
    ),
    Fault(
        "cmask-wrapped",
        "where L > S negative counts of visible keys wrap around",
        spec.CMASK_01,
        masks.sees(masks.wraps),
        ENGINEER,
    ),
    Fault(
        "cmask-transposed", "the mask is the transpose: the past is hidden", spec.CMASK_01, masks.TRANSPOSED, ENGINEER
    ),
    Fault(
        "cmask-ones",
        "the mask holds 1 where a key is visible and 0 elsewhere",
        spec.CMASK_01,
        masks.mask_valued(lambda visible: visible * 1.0),
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
        masks.mask_valued(lambda visible: np.where(visible, np.nan, -np.inf)),
        ENGINEER,
    ),
    Fault("cmask-float32", "the mask is float32 whatever was asked for", spec.CMASK_03, promotes(), ENGINEER),
    Fault("cmask-s-by-l", "the mask is S×L", spec.CMASK_03, masks.mask_shaped(lambda value: value.T), ENGINEER),
    Fault(
        "cmask-four-dims",
        "the mask is 1×1×L×S",
        spec.CMASK_03,
        masks.mask_shaped(lambda value: value[None, None]),
        ENGINEER,
    ),
    Fault(
        "cmask-never-empty",
        "a mask without rows or columns gets one",
        spec.CMASK_03,
        changes.reshapes(lambda a: {"L": max(a.L, 1), "S": max(a.S, 1)}),
        ENGINEER,
    ),
    Fault(
        "cmask-sliced-from-larger",
        "a smaller mask is the upper left corner of a larger one made earlier",
        spec.CMASK_04,
        {"respond": masks.sliced_from_larger},
        ENGINEER,
    ),
    Fault(
        "cmask-handed-out-again",
        "a mask is made once and handed out again: what the last caller wrote into it is still there",
        spec.CMASK_04,
        {"respond": masks.mask_handed_out_again},
        "functools.cache over what makes an array",
    ),
    Fault("cmask-keys-remembered", "the S of the first call is used for all", spec.CMASK_04, remembers("S"), ENGINEER),
    Fault(
        "cmask-negative-is-empty",
        "negative lengths count as 0",
        spec.CMASK_05,
        masks.lengths_by(lambda length: max(length, 0)),
        ENGINEER,
    ),
    Fault(
        "cmask-negative-is-positive",
        "negative lengths lose their sign",
        spec.CMASK_05,
        masks.lengths_by(abs),
        ENGINEER,
    ),
)


FAULTS = SDPA_FAULTS + attention_arrays.FAULTS + CMASK_FAULTS + multi_head_attention.FAULTS


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
