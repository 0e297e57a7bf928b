"""What goes wrong in root mean square norms, and other honest ways to compute them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from inferspec.spec import rms_norm as contract
from inferspec.spec.contract import Arguments, Fault, Operation, Variant
from inferspec.spec.mistakes import (
    bfloat16_through_float16,
    counts_rows_in_16_bits,
    drifts,
    ignores_strides,
    leaves_unwritten,
    misread,
    mutates,
    promotes,
    remembers,
    rounds,
    wraps_batches,
)
from inferspec.spec.numerics import f64, round_to

RMSNorm = contract.RMSNorm
TIRED = "tired engineer"
TINY_LLM = "course code written from the text"


def _narrow(x: np.ndarray, dtype: str) -> np.ndarray:
    with np.errstate(over="ignore"):
        return f64(round_to(x, dtype))


def _statistics(wrong: Callable[[np.ndarray, Arguments], np.ndarray]) -> dict[str, Callable[..., Any]]:
    """The mean square, N..×1, from x and the arguments."""
    return {"statistics": lambda self, x, a: wrong(x, a)}


def _mean_square(x: np.ndarray) -> np.ndarray:
    return np.mean(x * x, axis=-1, keepdims=True)


def _first_axis(x: np.ndarray, a: Arguments) -> np.ndarray:
    return np.mean(x * x, axis=0 if x.ndim > 1 else -1, keepdims=True)


def _layer_norm(self: RMSNorm, x: np.ndarray, a: Arguments) -> np.ndarray:
    return RMSNorm.normalised(self, x - x.mean(axis=-1, keepdims=True), a)


def _in_input_dtype(x: np.ndarray, a: Arguments) -> np.ndarray:
    return _narrow(np.mean(_narrow(x * x, a.x.dtype.name), axis=-1, keepdims=True), a.x.dtype.name)


def _summed_in(dtype: str) -> Callable[[np.ndarray, Arguments], np.ndarray]:
    """The squares are added one after the other in the dtype."""

    def statistics(x: np.ndarray, a: Arguments) -> np.ndarray:
        total = np.zeros((*x.shape[:-1], 1))
        for channel in range(x.shape[-1]):
            total = _narrow(total + x[..., channel : channel + 1] ** 2, dtype)
        return total / x.shape[-1]

    return statistics


def _squares_saturate(x: np.ndarray, a: Arguments) -> np.ndarray:
    return np.mean(np.minimum(x * x, 65504.0), axis=-1, keepdims=True)


def _max_scaled_unguarded(self: RMSNorm, x: np.ndarray, a: Arguments) -> np.ndarray:
    top = np.abs(x).max(axis=-1, keepdims=True, initial=0.0)
    scaled = x / top
    return scaled / np.sqrt(_mean_square(scaled) + self.eps(a) / (top * top))


def _any_nan(x: np.ndarray, a: Arguments) -> np.ndarray:
    return _mean_square(x) + 0.0 * x.sum()


def _first_rows(x: np.ndarray, a: Arguments) -> np.ndarray:
    rows = _mean_square(x)
    return np.broadcast_to(rows.reshape(-1)[:1], rows.shape) if rows.size else rows


def _neighbours(x: np.ndarray, a: Arguments) -> np.ndarray:
    """Two rows share one group of threads where a row needs all of it."""
    rows = _mean_square(x)
    if not 256 <= x.shape[-1] <= 512:
        return rows
    flat = rows.reshape(-1)
    return flat[np.arange(flat.size) // 2 * 2].reshape(rows.shape)


def _whole_warps(x: np.ndarray, a: Arguments) -> np.ndarray:
    size = x.shape[-1]
    return (x[..., : size // 32 * 32 or size] ** 2).sum(axis=-1, keepdims=True) / size


def _contiguous_second_pass(self: RMSNorm, x: np.ndarray, a: Arguments) -> np.ndarray:
    return f64(misread(a.x)) / self.root(self.statistics(x, a), self.eps(a))


def _narrow_inverse(self: RMSNorm, x: np.ndarray, a: Arguments) -> np.ndarray:
    return x * _narrow(1 / self.root(self.statistics(x, a), self.eps(a)), a.x.dtype.name)


def _weight_first(self: RMSNorm, value: np.ndarray, a: Arguments) -> np.ndarray:
    x, dtype = f64(a.x), a.x.dtype.name
    with np.errstate(all="ignore"):
        return round_to(_narrow(x * self.gain(a), dtype) / self.root(self.statistics(x, a), self.eps(a)), dtype)


def _weight_in_statistics(self: RMSNorm, x: np.ndarray, a: Arguments) -> np.ndarray:
    return x / self.root(self.statistics(x * self.gain(a), a), self.eps(a))


def _cycled_gain(self: RMSNorm, a: Arguments) -> np.ndarray:
    return np.resize(f64(a.weight), a.x.shape[-1])


def _gain(wrong: Callable[[np.ndarray], np.ndarray]) -> dict[str, Callable[..., Any]]:
    """What the channels are multiplied by, from the weight."""
    return {"gain": lambda self, a: wrong(f64(a.weight))}


def _eps(wrong: Callable[[Arguments], float]) -> dict[str, Callable[..., Any]]:
    return {"eps": lambda self, a: wrong(a)}


FAULTS: tuple[Fault, ...] = (
    Fault("rms-mean-over-everything", "the mean runs over all axes", contract.RMS_01, _statistics(lambda x, a: np.full((*x.shape[:-1], 1), np.mean(x * x))), TINY_LLM),
    Fault("rms-wrong-axis", "the mean runs over the first axis", contract.RMS_01, _statistics(_first_axis), TIRED),
    Fault("rms-layer-norm", "the mean is subtracted, as in LayerNorm", contract.RMS_01, {"normalised": _layer_norm}, TIRED),
    Fault("rms-sum-for-mean", "the sum of squares is not divided by D", contract.RMS_01, _statistics(lambda x, a: (x * x).sum(axis=-1, keepdims=True)), TIRED),
    Fault("rms-unbiased", "the sum of squares is divided by D - 1", contract.RMS_01, _statistics(lambda x, a: (x * x).sum(axis=-1, keepdims=True) / max(x.shape[-1] - 1, 1)), TIRED),
    Fault("rms-no-root", "x is divided by the mean square, without the root", contract.RMS_01, {"root": lambda self, mean_square, eps: mean_square + eps}, TIRED),
    Fault("rms-mean-magnitude", "x is divided by the mean of |x|", contract.RMS_01, _statistics(lambda x, a: np.abs(x).mean(axis=-1, keepdims=True) ** 2), TIRED),
    Fault("rms-largest", "x is divided by the largest |x|", contract.RMS_01, _statistics(lambda x, a: np.abs(x).max(axis=-1, keepdims=True, initial=0.0) ** 2), TIRED),
    Fault("rms-eps-outside", "eps is added to the root, not inside it", contract.RMS_02, {"root": lambda self, mean_square, eps: np.sqrt(mean_square) + eps}, TINY_LLM),
    Fault("rms-eps-ignored", "eps is ignored", contract.RMS_02, _eps(lambda a: 0.0), TIRED),
    Fault("rms-eps-hard-wired", "eps is always 1e-5", contract.RMS_02, _eps(lambda a: 1e-5), TINY_LLM),
    Fault("rms-eps-hard-wired-small", "eps is always 1e-6", contract.RMS_02, _eps(lambda a: 1e-6), TIRED),
    Fault("rms-eps-lower-bound", "eps bounds the mean square from below instead of being added", contract.RMS_02, {"root": lambda self, mean_square, eps: np.sqrt(np.maximum(mean_square, eps))}, TIRED),
    Fault("rms-eps-in-sum", "eps is added before the sum is divided by D", contract.RMS_02, {"normalised": lambda self, x, a: x / self.root(self.statistics(x, a), self.eps(a) / x.shape[-1])}, TIRED),
    Fault("rms-eps-squared", "the square of eps is added", contract.RMS_02, {"root": lambda self, mean_square, eps: np.sqrt(mean_square + eps * eps)}, TIRED),
    Fault("rms-eps-in-half", "eps is rounded to float16", contract.RMS_02, _eps(lambda a: float(np.float16(a.eps))), TIRED),
    Fault("rms-one-plus-weight", "channels are multiplied by 1 + weight, as Gemma does", contract.RMS_03, _gain(lambda weight: 1 + weight), "https://github.com/linkedin/Liger-Kernel/commit/a8e433b5"),
    Fault("rms-weight-ignored", "the weight is ignored", contract.RMS_03, _gain(np.ones_like), TIRED),
    Fault("rms-weight-shifted", "channels get their neighbour's weight", contract.RMS_03, _gain(lambda weight: np.roll(weight, 1)), TIRED),
    Fault("rms-first-weight", "the first weight serves all channels", contract.RMS_03, _gain(lambda weight: np.full_like(weight, weight[0])), TIRED),
    Fault("rms-zero-weight-is-missing", "a weight of 0 is taken for none", contract.RMS_03, _gain(lambda weight: np.where(weight == 0, 1.0, weight)), TIRED),
    Fault("rms-weight-magnitude", "the sign of the weight is lost", contract.RMS_03, _gain(np.abs), TIRED),
    Fault("rms-weight-in-statistics", "the mean square is that of x · weight", contract.RMS_03, {"normalised": _weight_in_statistics}, TIRED),
    Fault("rms-statistics-in-input-dtype", "squares and mean are in the dtype of x: float16 overflows at |x| = 256", contract.RMS_04, _statistics(_in_input_dtype), TINY_LLM),
    Fault("rms-summed-in-bfloat16", "the squares are added up in bfloat16", contract.RMS_04, _statistics(_summed_in("bfloat16")), TIRED),
    Fault("rms-summed-in-float16", "the squares are added up in float16", contract.RMS_04, _statistics(_summed_in("float16")), TIRED),
    Fault("rms-squares-saturate", "squares saturate at the largest float16", contract.RMS_04, _statistics(_squares_saturate), TIRED),
    Fault("rms-small-squares-lost", "squares below the smallest float16 count as 0", contract.RMS_04, _statistics(lambda x, a: np.mean(np.where(x * x < 2.0**-24, 0.0, x * x), axis=-1, keepdims=True)), TIRED),
    Fault("rms-eps-floored", "an eps below 1e-6 is raised to it", contract.RMS_05, _eps(lambda a: max(float(a.eps), 1e-6)), TIRED),
    Fault("rms-bfloat16-through-float16", "bfloat16 passes through float16 before it is normalised", contract.RMS_04, bfloat16_through_float16("x"), TIRED),
    Fault("rms-large-rows-clipped", "x is clipped to ±100 before it is normalised", contract.RMS_05, {"normalised": lambda self, x, a: RMSNorm.normalised(self, np.clip(x, -100, 100), a)}, TIRED),
    Fault("rms-product-in-float32", "the product with the weight is in float32, then rounded once", contract.RMS_06, {"finish": Operation.finish}, "https://github.com/vllm-project/vllm/issues/42325"),
    Fault("rms-weight-first", "x is multiplied by the weight before it is normalised", contract.RMS_06, {"finish": _weight_first}, TIRED),
    Fault("rms-inverse-root-rounded", "the inverse root is rounded to the dtype of x", contract.RMS_06, {"normalised": _narrow_inverse}, TIRED),
    Fault("rms-zero-row-nan", "the row is scaled by its largest value first: 0 / 0 for a row of zeros", contract.RMS_07, {"normalised": _max_scaled_unguarded}, TIRED),
    Fault("rms-zero-row-ones", "a row of zeros comes out as the weight", contract.RMS_07, {"normalised": lambda self, x, a: np.where(_mean_square(x) == 0, 1.0, RMSNorm.normalised(self, x, a))}, TIRED),
    Fault("rms-first-row-statistics", "the first row's mean square serves all rows", contract.RMS_08, _statistics(_first_rows), TIRED),
    Fault("rms-nan-spreads", "a NaN in one row reaches the others", contract.RMS_08, _statistics(_any_nan), TIRED),
    Fault("rms-largest-of-batch", "the mean square is the largest of the batch", contract.RMS_08, _statistics(lambda x, a: np.full((*x.shape[:-1], 1), _mean_square(x).max(initial=0.0))), TIRED),
    Fault("rms-sum-stops-at-256", "squares after the 256th are not counted", contract.RMS_09, _statistics(lambda x, a: (x[..., :256] ** 2).sum(axis=-1, keepdims=True) / x.shape[-1]), TIRED),
    Fault("rms-mid-size-pairs", "rows of 256 to 512 share the statistics of a pair", contract.RMS_09, _statistics(_neighbours), "https://github.com/ml-explore/mlx/commit/a5a684db5"),
    Fault("rms-whole-warps", "squares after the last multiple of 32 are not counted", contract.RMS_09, _statistics(_whole_warps), TIRED),
    Fault("rms-batches-modulo-eight", "batch rows are counted modulo 8", contract.RMS_08, wraps_batches("x"), TIRED),
    Fault("rms-rows-in-16-bits", "rows past the 65535th are never written", contract.RMS_09, counts_rows_in_16_bits(), "PROPERTIES X8"),
    Fault("rms-tail-unwritten", "channels after the 1024th are never written", contract.RMS_09, leaves_unwritten(lambda result: result[..., :1024]), TIRED),
    Fault("rms-ignores-strides", "x is read as if it were contiguous", contract.RMS_10, ignores_strides("x"), "https://github.com/vllm-project/vllm/pull/22701"),
    Fault("rms-second-pass-ignores-strides", "statistics come from the right elements, scaled values from the wrong ones", contract.RMS_10, {"normalised": _contiguous_second_pass}, "https://github.com/ModelTC/LightLLM/issues/1467"),
    Fault("rms-weight-strides", "weight is read as if it were contiguous", contract.RMS_10, ignores_strides("weight"), TIRED),
    Fault("rms-promotes", "the result is float32", contract.RMS_11, promotes(), "https://github.com/ml-explore/mlx-lm/commit/cff7273a"),
    Fault("rms-changes-x", "x is scaled in place", contract.RMS_12, mutates("x"), TIRED),
    Fault("rms-changes-weight", "weight is scaled in place", contract.RMS_12, mutates("weight"), TIRED),
    Fault("rms-remembers-eps", "the first eps is kept", contract.RMS_13, remembers("eps"), TIRED),
    Fault("rms-remembers-weight", "the first weight is kept", contract.RMS_13, remembers("weight"), TIRED),
    Fault("rms-remembers-result", "results are kept without x in their key", contract.RMS_13, remembers("x"), TIRED),
    Fault("rms-drifts", "a running mean outlives the call", contract.RMS_13, drifts(), TIRED),
    Fault("rms-weight-length", "a weight of another length is taken", contract.RMS_14, {"guard_weight": lambda self, a: None, "gain": _cycled_gain}, "https://github.com/ml-explore/mlx/commit/76f275b4d"),
    Fault("rms-features-unchecked", "an x of another width is taken", contract.RMS_14, {"guard_features": lambda self, a: None, "gain": _cycled_gain}, TIRED),
    Fault("rms-weight-in-bfloat16", "the weight passes through bfloat16", contract.RMS_03, rounds("weight"), TIRED),
)  # fmt: skip


def _f32(x: np.ndarray) -> np.ndarray:
    return np.asarray(x, np.float32)


def _pairwise(x: np.ndarray, a: Arguments) -> np.ndarray:
    squares = _f32(x) * _f32(x)
    while squares.shape[-1] > 1:
        if squares.shape[-1] % 2:
            squares = np.concatenate([squares, np.zeros_like(squares[..., :1])], axis=-1)
        squares = squares[..., ::2] + squares[..., 1::2]
    return squares / np.float32(x.shape[-1])


def _in_order(x: np.ndarray, a: Arguments) -> np.ndarray:
    return np.add.accumulate(_f32(x) * _f32(x), axis=-1, dtype=np.float32)[..., -1:] / np.float32(x.shape[-1])


def _blocked_means(block: int) -> Callable[[np.ndarray, Arguments], np.ndarray]:
    """The mean is carried along and corrected block by block, as Welford does."""

    def statistics(x: np.ndarray, a: Arguments) -> np.ndarray:
        squares = _f32(x) * _f32(x)
        mean = np.zeros((*x.shape[:-1], 1), np.float32)
        for begin in range(0, x.shape[-1], block):
            part = squares[..., begin : begin + block]
            share = np.float32(part.shape[-1]) / np.float32(begin + part.shape[-1])
            mean = mean + (part.mean(axis=-1, keepdims=True, dtype=np.float32) - mean) * share
        return mean

    return statistics


def _inverse_root(self: RMSNorm, x: np.ndarray, a: Arguments) -> np.ndarray:
    mean = _f32(self.statistics(x, a))
    return _f32(x) * (np.float32(1) / np.sqrt(mean + np.float32(a.eps)))


def _quotient(self: RMSNorm, x: np.ndarray, a: Arguments) -> np.ndarray:
    return _f32(x) / np.sqrt(_f32(self.statistics(x, a)) + np.float32(a.eps))


def _power(self: RMSNorm, x: np.ndarray, a: Arguments) -> np.ndarray:
    return _f32(x) * np.power(_f32(self.statistics(x, a)) + np.float32(a.eps), np.float32(-0.5))


def _two_pass(self: RMSNorm, x: np.ndarray, a: Arguments) -> np.ndarray:
    """Scaled by a power of two near the largest value of the row first, so that no square leaves the range."""
    top = np.abs(x).max(axis=-1, keepdims=True, initial=0.0)
    scale = np.exp2(np.floor(np.log2(np.where(top > 0, top, 1.0))))
    scaled = _f32(x / scale)
    mean = np.mean(scaled * scaled, axis=-1, keepdims=True, dtype=np.float32)
    return scaled / np.sqrt(mean + _f32(a.eps / (scale * scale)))


VARIANTS: tuple[Variant, ...] = (
    Variant("rms-pairwise", "float32 squares added in pairs, divided by the root", "RMSNorm", {**_statistics(_pairwise), "normalised": _quotient}),
    Variant("rms-in-order", "float32 squares added one after the other, times the inverse root", "RMSNorm", {**_statistics(_in_order), "normalised": _inverse_root}),
    Variant("rms-blocked-32", "running mean of float32 squares, 32 at a time", "RMSNorm", {**_statistics(_blocked_means(32)), "normalised": _inverse_root}),
    Variant("rms-blocked-4", "running mean of float32 squares, 4 at a time, times the power -1/2", "RMSNorm", {**_statistics(_blocked_means(4)), "normalised": _power}),
    Variant("rms-two-pass", "rows scaled by a power of two first", "RMSNorm", {"normalised": _two_pass}),
)  # fmt: skip
