"""What goes wrong in attention with masks: arrays, the causal rule, hidden keys, and rows that see nothing."""

from __future__ import annotations

import numpy as np

from inferspec.spec import attention as spec
from inferspec.spec.changes import attention, attention_weights
from inferspec.spec.changes import attention_masks as changes
from inferspec.spec.contract import Fault
from inferspec.spec.faults.attention_sources import ENGINEER, FLASH_ATTENTION, MLX, MLX_LM, TINY_LLM
from inferspec.spec.mistakes import paths_lack_a_feature
from inferspec.spec.numerics import f64

ARRAYS: tuple[Fault, ...] = (
    Fault(
        "sdpa-columns-in-int16",
        "a key's column in the mask is kept in int16",
        spec.ATTN_22,
        changes.columns_in_16_bits(np.int16),
        MLX + "issues/3360",
    ),
    Fault(
        "sdpa-columns-in-uint16",
        "a key's column in the mask is kept in uint16",
        spec.ATTN_22,
        changes.columns_in_16_bits(np.uint16),
        MLX + "issues/3360",
    ),
    Fault(
        "sdpa-splits-capped",
        "keys past 32 splits of 1024 are never read",
        spec.ATTN_22,
        attention_weights.softmax_by(attention_weights.splits_capped),
        MLX + "issues/4022",
    ),
    Fault(
        "sdpa-mask-ignored",
        "array masks are ignored",
        spec.ATTN_04,
        changes.remasks(lambda bias, a: np.zeros(())),
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
        changes.spreads(changes.mask_of_first_row),
        ENGINEER,
    ),
    Fault(
        "sdpa-mask-of-first-prompt",
        "every prompt of a batch, of common heads, gets the mask of the first",
        spec.ATTN_04,
        changes.spreads(attention_weights.mask_of_first_prompt),
        ENGINEER,
    ),
    Fault(
        "sdpa-mask-first-head",
        "every head gets the mask of head 0",
        spec.ATTN_04,
        changes.spreads(lambda bias, a: bias[..., :1, :, :]),
        ENGINEER,
    ),
    Fault(
        "sdpa-mask-first-query",
        "every query gets the mask of query 0",
        spec.ATTN_04,
        changes.spreads(lambda bias, a: bias[..., :1, :]),
        ENGINEER,
    ),
    Fault(
        "sdpa-mask-transposed",
        "a square mask is read transposed",
        spec.ATTN_04,
        changes.spreads(changes.mask_transposed),
        ENGINEER,
    ),
    Fault(
        "sdpa-mask-group-order",
        "under grouped heads the mask's heads are taken in the order (member, group)",
        spec.ATTN_04,
        changes.spreads(changes.mask_heads_swapped),
        MLX_LM + "commit/a790972f",
    ),
    Fault(
        "sdpa-mask-batch-in-heads",
        "the mask's batch axis is folded in with its heads",
        spec.ATTN_04,
        changes.spreads(changes.mask_batch_in_heads),
        TINY_LLM + "commit/ae06a7f",
    ),
    Fault(
        "sdpa-mask-read-unbroadcast",
        "a mask of fewer or singleton dims is read with the strides of a full one",
        spec.ATTN_04,
        changes.remasks(lambda bias, a: np.resize(bias, changes.full_mask(a))),
        MLX + "commit/005e7efa6",
    ),
    Fault(
        "sdpa-mask-low-rank-ignored",
        "a mask of fewer than two dims is ignored",
        spec.ATTN_04,
        changes.remasks(lambda bias, a: bias if bias.ndim > 1 else np.zeros(())),
        MLX + "commit/005e7efa6",
    ),
    Fault(
        "sdpa-mask-of-no-axes-ignored",
        "a mask of no axes is ignored: where it hides every key, all are seen",
        spec.ATTN_07,
        changes.remasks(changes.with_axes_alone),
        MLX + "commit/005e7efa6",
    ),
    Fault(
        "sdpa-mask-of-no-axes-refused",
        "a mask of no axes ends in an error that nobody meant",
        spec.ATTN_04,
        changes.remasks(changes.takes_axes),
        TINY_LLM,
    ),
    Fault(
        "sdpa-mask-vector-as-column",
        "a 1-D mask is laid along the queries when L = S",
        spec.ATTN_04,
        changes.remasks(changes.vector_as_column),
        ENGINEER,
    ),
    Fault(
        "sdpa-mask-made-bool",
        "finite numbers in an additive mask are dropped",
        spec.ATTN_04,
        changes.remasks(lambda bias, a: np.where(np.isfinite(bias), 0.0, bias)),
        ENGINEER,
    ),
    Fault(
        "sdpa-mask-not-in-base-2",
        "log2(e) is folded into the scale for exp2, but not into the mask",
        spec.ATTN_04,
        changes.remasks(lambda bias, a: bias * np.log(2.0)),
        ENGINEER,
    ),
)


FAULTS: tuple[Fault, ...] = (
    Fault(
        "sdpa-mask-of-part-block-by-its-first-row",
        "queries past whole blocks of 8 skip the tiles of 64 keys that the mask hides from the first of them",
        spec.ATTN_06,
        changes.spreads(changes.part_block_by_its_first_row),
        "the kind of https://github.com/ggml-org/llama.cpp/pull/29220",
    ),
    Fault(
        "sdpa-causal-wide-heads-one-future",
        "in heads of 96 dims and more queries past the 128th see one future key",
        spec.ATTN_05,
        {"bias": changes.wide_heads_one_future},
        ENGINEER,
    ),
    *paths_lack_a_feature(
        "sdpa-common-chunks",
        "in chunks of grouped heads of 128 dims after a long context",
        spec.ATTN_05,
        attention.in_common_heads(attention.chunk_after_context),
        ENGINEER,
        argument="query",
    ),
    *paths_lack_a_feature(
        "sdpa-common-masked-prompts",
        "in prompts of grouped heads of 128 dims with a mask",
        spec.ATTN_06,
        attention.in_common_heads(attention.masked_prompt),
        ENGINEER,
        argument="query",
    ),
    Fault(
        "sdpa-causal-half-prompts-in-fours",
        "in prompts of half precision from 64 tokens on, four queries in a row see what the last of them sees",
        spec.ATTN_05,
        {"bias": changes.half_prompts_in_fours},
        "https://github.com/pytorch/pytorch/issues/195910",
    ),
    Fault(
        "sdpa-causal-1024-rows",
        "the causal mask has 1024 rows, which come again for the queries past them",
        spec.ATTN_05,
        {"visible": lambda self, length, keys: changes.CORE.visible(length, keys)[np.arange(length) % 1024]},
        ENGINEER,
    ),
    Fault("sdpa-causal-not-itself", "each query misses its own key", spec.ATTN_05, changes.NOT_ITSELF, ENGINEER),
    Fault(
        "sdpa-causal-top-left-where-longer",
        "the causal mask is aligned top-left where L > S",
        spec.ATTN_05,
        changes.TOP_LEFT_WHERE_LONGER,
        MLX + "issues/2835",
    ),
    Fault(
        "sdpa-causal-never-empty",
        "where L > S the first queries see key 0",
        spec.ATTN_07,
        changes.NEVER_EMPTY,
        ENGINEER,
    ),
    Fault(
        "sdpa-causal-square-only", "nothing is hidden where L and S differ", spec.ATTN_05, changes.SQUARE_ONLY, ENGINEER
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
        changes.spreads(changes.mask_of_first_256_rows),
        "https://github.com/pytorch/pytorch/issues/162588",
    ),
    Fault(
        "sdpa-causal-array-twice",
        "causality is applied again to an array mask that has it: the last row of a part tile is left without keys",
        spec.ATTN_06,
        changes.spreads(changes.causal_array_applied_twice),
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
        {"bool_mask": lambda self, mask: attention.CORE.bool_mask(~mask)},
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
                np.isneginf(bias), 0.0, attention.CORE.logits(q, k, scale, bias, dtype)
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
        changes.hides_with(-1e4),
        ENGINEER,
    ),
    Fault(
        "sdpa-hides-with-minus-100",
        "keys are hidden by adding -100",
        spec.ATTN_08,
        changes.hides_with(-100.0),
        ENGINEER,
    ),
)
