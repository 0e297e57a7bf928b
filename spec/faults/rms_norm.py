"""What goes wrong in root mean square norms, and other honest ways to compute them."""

from __future__ import annotations

import numpy as np

from inferspec.spec import rms_norm as contract
from inferspec.spec.changes import rms_norm as changes
from inferspec.spec.contract import Fault, Operation, Variant
from inferspec.spec.mistakes import (
    bfloat16_through_float16,
    counts_axis_in_16_bits,
    counts_rows,
    counts_rows_in_16_bits,
    drifts,
    ignores_strides,
    leaves_unwritten,
    mutates,
    only_where,
    paths_lack_a_feature,
    promotes,
    remembers,
    rounds,
    swaps_batches,
    wraps_batches,
)

TIRED = "tired engineer"
PERSISTENT = "kernels whose grid is of a fixed size"
TINY_LLM = "course code written from the text"


FAULTS: tuple[Fault, ...] = (
    Fault("rms-mean-over-everything", "the mean runs over all axes", contract.RMS_01, changes.statistics(lambda x, a: np.full((*x.shape[:-1], 1), np.mean(x * x))), TINY_LLM),
    Fault("rms-wrong-axis", "the mean runs over the first axis", contract.RMS_01, changes.statistics(changes.first_axis), TIRED),
    Fault("rms-layer-norm", "the mean is subtracted, as in LayerNorm", contract.RMS_01, {"normalised": changes.layer_norm}, TIRED),
    Fault("rms-sum-for-mean", "the sum of squares is not divided by D", contract.RMS_01, changes.statistics(lambda x, a: (x * x).sum(axis=-1, keepdims=True)), TIRED),
    Fault("rms-unbiased", "the sum of squares is divided by D - 1", contract.RMS_01, changes.statistics(lambda x, a: (x * x).sum(axis=-1, keepdims=True) / max(x.shape[-1] - 1, 1)), TIRED),
    Fault("rms-no-root", "x is divided by the mean square, without the root", contract.RMS_01, {"root": lambda self, mean_square, eps: mean_square + eps}, TIRED),
    Fault("rms-mean-magnitude", "x is divided by the mean of |x|", contract.RMS_01, changes.statistics(lambda x, a: np.abs(x).mean(axis=-1, keepdims=True) ** 2), TIRED),
    Fault("rms-largest", "x is divided by the largest |x|", contract.RMS_01, changes.statistics(lambda x, a: np.abs(x).max(axis=-1, keepdims=True, initial=0.0) ** 2), TIRED),
    Fault("rms-eps-outside", "eps is added to the root, not inside it", contract.RMS_02, {"root": lambda self, mean_square, eps: np.sqrt(mean_square) + eps}, TINY_LLM),
    Fault("rms-eps-ignored", "eps is ignored", contract.RMS_02, changes.eps(lambda a: 0.0), TIRED),
    Fault("rms-eps-hard-wired", "eps is always 1e-5", contract.RMS_02, changes.eps(lambda a: 1e-5), TINY_LLM),
    Fault("rms-eps-hard-wired-small", "eps is always 1e-6", contract.RMS_02, changes.eps(lambda a: 1e-6), TIRED),
    Fault("rms-eps-lower-bound", "eps bounds the mean square from below instead of being added", contract.RMS_02, {"root": lambda self, mean_square, eps: np.sqrt(np.maximum(mean_square, eps))}, TIRED),
    Fault("rms-eps-in-sum", "eps is added before the sum is divided by D", contract.RMS_02, {"normalised": lambda self, x, a: x / self.root(self.statistics(x, a), self.eps(a) / x.shape[-1])}, TIRED),
    Fault("rms-eps-squared", "the square of eps is added", contract.RMS_02, {"root": lambda self, mean_square, eps: np.sqrt(mean_square + eps * eps)}, TIRED),
    Fault("rms-eps-in-half", "eps is rounded to float16", contract.RMS_02, changes.eps(lambda a: float(np.float16(a.eps))), TIRED),
    Fault("rms-one-plus-weight", "channels are multiplied by 1 + weight, as Gemma does", contract.RMS_03, changes.gain(lambda weight: 1 + weight), "https://github.com/linkedin/Liger-Kernel/commit/a8e433b5"),
    Fault("rms-weight-ignored", "the weight is ignored", contract.RMS_03, changes.gain(np.ones_like), TIRED),
    Fault("rms-weight-shifted", "channels get their neighbour's weight", contract.RMS_03, changes.gain(lambda weight: np.roll(weight, 1)), TIRED),
    Fault("rms-first-weight", "the first weight serves all channels", contract.RMS_03, changes.gain(lambda weight: np.full_like(weight, weight[0])), TIRED),
    Fault("rms-zero-weight-is-missing", "a weight of 0 is taken for none", contract.RMS_03, changes.gain(lambda weight: np.where(weight == 0, 1.0, weight)), TIRED),
    Fault("rms-weight-magnitude", "the sign of the weight is lost", contract.RMS_03, changes.gain(np.abs), TIRED),
    Fault("rms-weight-in-statistics", "the mean square is that of x · weight", contract.RMS_03, {"normalised": changes.weight_in_statistics}, TIRED),
    Fault("rms-statistics-in-input-dtype", "squares and mean are in the dtype of x: float16 overflows at |x| = 256", contract.RMS_04, changes.statistics(changes.in_input_dtype), TINY_LLM),
    Fault("rms-summed-in-bfloat16", "the squares are added up in bfloat16", contract.RMS_04, changes.statistics(changes.summed_in("bfloat16")), TIRED),
    Fault("rms-summed-in-float16", "the squares are added up in float16", contract.RMS_04, changes.statistics(changes.summed_in("float16")), TIRED),
    Fault("rms-squares-saturate", "squares saturate at the largest float16", contract.RMS_04, changes.statistics(changes.squares_saturate), TIRED),
    Fault("rms-small-squares-lost", "squares below the smallest float16 count as 0", contract.RMS_04, changes.statistics(lambda x, a: np.mean(np.where(x * x < 2.0**-24, 0.0, x * x), axis=-1, keepdims=True)), TIRED),
    Fault("rms-eps-floored", "an eps below 1e-6 is raised to it", contract.RMS_05, changes.eps(lambda a: max(float(a.eps), 1e-6)), TIRED),
    Fault("rms-bfloat16-through-float16", "bfloat16 passes through float16 before it is normalised", contract.RMS_04, bfloat16_through_float16("x"), TIRED),
    Fault("rms-wide-rows-through-float16", "in rows of 64 features and more bfloat16 passes through float16 before it is normalised", contract.RMS_04, only_where(lambda a: a.x.shape[-1] >= 64, bfloat16_through_float16("x")), TIRED),
    Fault("rms-large-rows-clipped", "x is clipped to ±100 before it is normalised", contract.RMS_05, {"normalised": lambda self, x, a: changes.RMSNorm.normalised(self, np.clip(x, -100, 100), a)}, TIRED),
    Fault("rms-product-in-float32", "the product with the weight is in float32, then rounded once", contract.RMS_06, {"finish": Operation.finish}, "https://github.com/vllm-project/vllm/issues/42325"),
    Fault("rms-wide-product-in-float32", "of 2048 features and more the product with the weight is in float32, then rounded once", contract.RMS_06, {"finish": changes.wide_product_in_float32}, TIRED),
    Fault("rms-weight-first", "x is multiplied by the weight before it is normalised", contract.RMS_06, {"finish": changes.weight_first}, TIRED),
    Fault("rms-inverse-root-rounded", "the inverse root is rounded to the dtype of x", contract.RMS_06, {"normalised": changes.narrow_inverse}, TIRED),
    Fault("rms-zero-row-nan", "the row is scaled by its largest value first: 0 / 0 for a row of zeros", contract.RMS_07, {"normalised": changes.max_scaled_unguarded}, TIRED),
    Fault("rms-zero-row-ones", "a row of zeros comes out as the weight", contract.RMS_07, {"normalised": lambda self, x, a: np.where(changes.mean_square(x) == 0, 1.0, changes.RMSNorm.normalised(self, x, a))}, TIRED),
    Fault("rms-first-row-statistics", "the first row's mean square serves all rows", contract.RMS_08, changes.statistics(changes.first_rows), TIRED),
    Fault("rms-nan-spreads", "a NaN in one row reaches the others", contract.RMS_08, changes.statistics(changes.any_nan), TIRED),
    Fault("rms-nan-spreads-in-heads", "in rows of 64 features and more a NaN in one reaches the others", contract.RMS_08, changes.statistics(changes.any_nan_of_heads), TIRED),
    Fault("rms-largest-of-batch", "the mean square is the largest of the batch", contract.RMS_08, changes.statistics(lambda x, a: np.full((*x.shape[:-1], 1), changes.mean_square(x).max(initial=0.0))), TIRED),
    Fault("rms-sum-stops-at-256", "squares after the 256th are not counted", contract.RMS_09, changes.statistics(lambda x, a: (x[..., :256] ** 2).sum(axis=-1, keepdims=True) / x.shape[-1]), TIRED),
    Fault("rms-mid-size-pairs", "rows of 256 to 512 share the statistics of a pair", contract.RMS_09, changes.statistics(changes.neighbours), "https://github.com/ml-explore/mlx/commit/a5a684db5"),
    Fault("rms-whole-warps", "squares after the last multiple of 32 are not counted", contract.RMS_09, changes.statistics(changes.whole_warps), TIRED),
    Fault("rms-batches-modulo-eight", "batch rows are counted modulo 8", contract.RMS_08, wraps_batches("x"), TIRED),
    Fault("rms-nan-spreads-in-long-rows", "in rows of 512 features and more a NaN in one reaches the others", contract.RMS_08, changes.statistics(changes.any_nan_of_long_rows), TIRED),
    Fault("rms-batches-swapped", "of four axes the first two are exchanged when rows are folded back", contract.RMS_08, swaps_batches(), TIRED),
    Fault("rms-1024-heads", "of rows of 64 features and more those past the 1024th are never written", contract.RMS_09, counts_rows(1024, lambda features: features >= 64), PERSISTENT),
    Fault("rms-256-rows-of-1024", "of rows of 1024 features those past the 256th are never written", contract.RMS_09, counts_rows(256, lambda features: features == 1024), PERSISTENT),
    Fault("rms-rows-in-16-bits", "rows past the 65535th are never written", contract.RMS_09, counts_rows_in_16_bits(), "PROPERTIES X8"),
    Fault("rms-batches-in-16-bits", "of batches of rows those past the 65535th are never written", contract.RMS_09, counts_axis_in_16_bits(-3), "https://github.com/ggml-org/llama.cpp/issues/28175"),
    Fault("rms-long-prompts-of-wide-rows", "of 512 rows and more of 5120 features and more the last 1024 squares of a row are not counted", contract.RMS_09, changes.statistics(changes.last_block_lost_in_long_prompts), "https://github.com/vllm-project/vllm/pull/44692"),
    *paths_lack_a_feature("rms-heads", "of many heads of 128 features", contract.RMS_09, lambda a: a.x.shape[-1] == 128 and a.x.size >= 16 * 128, TIRED),
    *paths_lack_a_feature("rms-tokens-of-models", "of a single row of 1024 features and more", contract.RMS_09, lambda a: a.x.shape[-1] == a.x.size >= 1024, TIRED),
    *paths_lack_a_feature("rms-hidden-4096", "of rows of 4096 features", contract.RMS_09, lambda a: a.x.shape[-1] == 4096, TIRED),
    *paths_lack_a_feature("rms-hidden-5120", "of rows of 5120 features", contract.RMS_09, lambda a: a.x.shape[-1] == 5120, TIRED),
    Fault("rms-tail-unwritten", "channels after the 1024th are never written", contract.RMS_09, leaves_unwritten(lambda result: result[..., :1024]), TIRED),
    Fault("rms-ignores-strides", "x is read as if it were contiguous", contract.RMS_10, ignores_strides("x"), "https://github.com/vllm-project/vllm/pull/22701"),
    Fault("rms-heads-ignore-strides", "rows of 128 features are read as if they were contiguous, as heads of a joint projection are not", contract.RMS_10, only_where(lambda a: a.x.shape[-1] == 128 != a.x.size, ignores_strides("x")), "https://github.com/vllm-project/vllm/pull/22701"),
    Fault("rms-second-pass-ignores-strides", "statistics come from the right elements, scaled values from the wrong ones", contract.RMS_10, {"normalised": changes.contiguous_second_pass}, "https://github.com/ModelTC/LightLLM/issues/1467"),
    Fault("rms-weight-strides", "weight is read as if it were contiguous", contract.RMS_10, ignores_strides("weight"), TIRED),
    Fault("rms-promotes", "the result is float32", contract.RMS_11, promotes(), "https://github.com/ml-explore/mlx-lm/commit/cff7273a"),
    Fault("rms-changes-x", "x is scaled in place", contract.RMS_12, mutates("x"), TIRED),
    Fault("rms-changes-heads", "rows of 128 features are scaled in place", contract.RMS_12, only_where(lambda a: a.x.shape[-1] == 128, mutates("x")), TIRED),
    Fault("rms-changes-long-rows", "rows of 1024 features and more are scaled in place", contract.RMS_12, only_where(lambda a: a.x.shape[-1] >= 1024, mutates("x")), TIRED),
    Fault("rms-changes-weight", "weight is scaled in place", contract.RMS_12, mutates("weight"), TIRED),
    Fault("rms-remembers-eps", "the first eps is kept", contract.RMS_13, remembers("eps"), TIRED),
    Fault("rms-remembers-weight", "the first weight is kept", contract.RMS_13, remembers("weight"), TIRED),
    Fault("rms-remembers-long-weight", "the first weight of 1024 features and more is kept", contract.RMS_13, only_where(lambda a: a.x.shape[-1] >= 1024, remembers("weight")), TIRED),
    Fault("rms-remembers-result", "results are kept without x in their key", contract.RMS_13, remembers("x"), TIRED),
    Fault("rms-drifts", "a running mean outlives the call", contract.RMS_13, drifts(), TIRED),
    Fault("rms-weight-length", "a weight of another length is taken", contract.RMS_14, {"guard_weight": lambda self, a: None, "gain": changes.cycled_gain}, "https://github.com/ml-explore/mlx/commit/76f275b4d"),
    Fault("rms-features-unchecked", "an x of another width is taken", contract.RMS_14, {"guard_features": lambda self, a: None, "gain": changes.cycled_gain}, TIRED),
    Fault("rms-weight-in-bfloat16", "the weight passes through bfloat16", contract.RMS_03, rounds("weight"), TIRED),
)  # fmt: skip


VARIANTS: tuple[Variant, ...] = (
    Variant("rms-pairwise", "float32 squares added in pairs, divided by the root", "RMSNorm", {**changes.statistics(changes.pairwise), "normalised": changes.quotient}),
    Variant("rms-in-order", "float32 squares added one after the other, times the inverse root", "RMSNorm", {**changes.statistics(changes.in_order), "normalised": changes.inverse_root}),
    Variant("rms-blocked-32", "running mean of float32 squares, 32 at a time", "RMSNorm", {**changes.statistics(changes.blocked_means(32)), "normalised": changes.inverse_root}),
    Variant("rms-blocked-4", "running mean of float32 squares, 4 at a time, times the power -1/2", "RMSNorm", {**changes.statistics(changes.blocked_means(4)), "normalised": changes.power}),
    Variant("rms-two-pass", "rows scaled by a power of two first", "RMSNorm", {"normalised": changes.two_pass}),
)  # fmt: skip
