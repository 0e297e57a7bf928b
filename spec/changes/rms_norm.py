"""The steps that faults and honest variants have in the place of the oracle's: see `spec/faults/rms_norm.py`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from inferspec.spec import rms_norm as contract
from inferspec.spec.contract import Arguments, Operation
from inferspec.spec.mistakes import (
    misread,
    of_whole_steps,
)
from inferspec.spec.numerics import f64, round_to

RMSNorm = contract.RMSNorm


def _narrow(x: np.ndarray, dtype: str) -> np.ndarray:
    with np.errstate(over="ignore"):
        return f64(round_to(x, dtype))


def heads_of_tokens(a: Arguments) -> bool:
    """Whether x is B×L×H×D, of several tokens of heads as models normalise them."""
    return bool(a.x.ndim == 4 and a.x.shape[1] > 1 and a.x.shape[-1] in (64, 128))


def statistics(wrong: Callable[[np.ndarray, Arguments], np.ndarray]) -> dict[str, Callable[..., Any]]:
    """The mean square, N..×1, from x and the arguments."""
    return {"statistics": lambda self, x, a: wrong(x, a)}


def mean_square(x: np.ndarray) -> np.ndarray:
    return np.mean(x * x, axis=-1, keepdims=True)


def half_a_step_left_out(x: np.ndarray, a: Arguments) -> np.ndarray:
    """The sum of squares ends with the last whole step of 1024, where half a one more follows; it is divided by all features."""
    read = of_whole_steps(x.shape[-1], 1024)
    return (x[..., :read] ** 2).sum(axis=-1, keepdims=True) / max(x.shape[-1], 1)


def first_axis(x: np.ndarray, a: Arguments) -> np.ndarray:
    return np.mean(x * x, axis=0 if x.ndim > 1 else -1, keepdims=True)


def layer_norm(self: RMSNorm, x: np.ndarray, a: Arguments) -> np.ndarray:
    return RMSNorm.normalised(self, x - x.mean(axis=-1, keepdims=True), a)


def in_input_dtype(x: np.ndarray, a: Arguments) -> np.ndarray:
    return _narrow(np.mean(_narrow(x * x, a.x.dtype.name), axis=-1, keepdims=True), a.x.dtype.name)


def summed_in(dtype: str) -> Callable[[np.ndarray, Arguments], np.ndarray]:
    """The squares are added one after the other in the dtype."""

    def statistics(x: np.ndarray, a: Arguments) -> np.ndarray:
        total = np.zeros((*x.shape[:-1], 1))
        for channel in range(x.shape[-1]):
            total = _narrow(total + x[..., channel : channel + 1] ** 2, dtype)
        return total / x.shape[-1]

    return statistics


def squares_saturate(x: np.ndarray, a: Arguments) -> np.ndarray:
    return np.mean(np.minimum(x * x, 65504.0), axis=-1, keepdims=True)


def max_scaled_unguarded(self: RMSNorm, x: np.ndarray, a: Arguments) -> np.ndarray:
    top = np.abs(x).max(axis=-1, keepdims=True, initial=0.0)
    scaled = x / top
    return scaled / np.sqrt(mean_square(scaled) + self.eps(a) / (top * top))


def nan_left_out(self: RMSNorm, x: np.ndarray, a: Arguments) -> np.ndarray:
    """A NaN counts as 0, and comes out as it: what padding is taken for."""
    return RMSNorm.normalised(self, np.where(np.isnan(x), 0.0, x), a)


def nan_of_its_place(self: RMSNorm, x: np.ndarray, a: Arguments) -> np.ndarray:
    """A NaN is not summed, as where a maximum guards the sum, and shows in its own place alone."""
    return np.where(np.isnan(x), x, nan_left_out(self, x, a))


def any_nan(x: np.ndarray, a: Arguments) -> np.ndarray:
    return mean_square(x) + 0.0 * x.sum()


def any_nan_of_heads(x: np.ndarray, a: Arguments) -> np.ndarray:
    return any_nan(x, a) if x.shape[-1] >= 64 else mean_square(x)


def any_nan_of_long_rows(x: np.ndarray, a: Arguments) -> np.ndarray:
    return any_nan(x, a) if x.shape[-1] >= 512 else mean_square(x)


def nan_of_its_place_in_long_rows(self: RMSNorm, x: np.ndarray, a: Arguments) -> np.ndarray:
    normalised = nan_of_its_place if x.shape[-1] >= 512 else RMSNorm.normalised
    return normalised(self, x, a)


def nan_of_its_place_in_middle_rows(self: RMSNorm, x: np.ndarray, a: Arguments) -> np.ndarray:
    normalised = nan_of_its_place if 128 < x.shape[-1] < 512 else RMSNorm.normalised
    return normalised(self, x, a)


def product_in_float32_from(features: int) -> Callable[..., np.ndarray]:
    """In rows of so many features and more the quotient is not rounded before the weight multiplies it."""

    def finish(self: RMSNorm, value: np.ndarray, a: Arguments) -> np.ndarray:
        honest = Operation.finish if a.x.shape[-1] >= features else RMSNorm.finish
        return honest(self, value, a)

    return finish


def batches_of_no_rows(a: Arguments) -> bool:
    """Whether there are batches, and no row in them."""
    return a.x.ndim > 2 and bool(len(a.x)) and not a.x.size


def no_rows_fold(self: RMSNorm, a: Arguments) -> Any:
    result = Operation.respond(self, a)
    return result.reshape(-1, a.x.shape[-1]) if batches_of_no_rows(a) else result


def first_rows(x: np.ndarray, a: Arguments) -> np.ndarray:
    rows = mean_square(x)
    return np.broadcast_to(rows.reshape(-1)[:1], rows.shape) if rows.size else rows


def neighbours(x: np.ndarray, a: Arguments) -> np.ndarray:
    """Two rows share one group of threads where a row needs all of it."""
    rows = mean_square(x)
    if not 256 <= x.shape[-1] <= 512:
        return rows
    flat = rows.reshape(-1)
    return flat[np.arange(flat.size) // 2 * 2].reshape(rows.shape)


def whole_warps(x: np.ndarray, a: Arguments) -> np.ndarray:
    size = x.shape[-1]
    return (x[..., : size // 32 * 32 or size] ** 2).sum(axis=-1, keepdims=True) / size


def runs_over(self: contract.RMSNorm, x: np.ndarray, a: Arguments) -> np.ndarray:
    """The first channel of a row is what the row before it has in its last place."""
    normalised = contract.RMSNorm.normalised(self, x, a)
    if x.shape[-1] % 2 == 0 or a.x.dtype.itemsize > 2 or x.ndim < 2:
        return normalised
    rows = normalised.reshape(-1, x.shape[-1]).copy()
    rows[1:, 0] = rows[:-1, -1]
    return rows.reshape(x.shape)


def last_block_lost_in_long_prompts(x: np.ndarray, a: Arguments) -> np.ndarray:
    """Of 512 rows and more of 5120 features and more the last block of 1024 is not added up."""
    size = x.shape[-1]
    lost = 1024 if size >= 5120 and x[..., 0].size >= 512 else 0
    return (x[..., : size - lost] ** 2).sum(axis=-1, keepdims=True) / size


def contiguous_second_pass(self: RMSNorm, x: np.ndarray, a: Arguments) -> np.ndarray:
    return f64(misread(a.x)) / self.root(self.statistics(x, a), self.eps(a))


def narrow_inverse(self: RMSNorm, x: np.ndarray, a: Arguments) -> np.ndarray:
    return x * _narrow(1 / self.root(self.statistics(x, a), self.eps(a)), a.x.dtype.name)


def weight_first(self: RMSNorm, value: np.ndarray, a: Arguments) -> np.ndarray:
    x, dtype = f64(a.x), a.x.dtype.name
    with np.errstate(all="ignore"):
        return round_to(_narrow(x * self.gain(a), dtype) / self.root(self.statistics(x, a), self.eps(a)), dtype)


def weight_in_statistics(self: RMSNorm, x: np.ndarray, a: Arguments) -> np.ndarray:
    return x / self.root(self.statistics(x * self.gain(a), a), self.eps(a))


def cycled_gain(self: RMSNorm, a: Arguments) -> np.ndarray:
    return np.resize(f64(a.weight), a.x.shape[-1])


def gain(wrong: Callable[[np.ndarray], np.ndarray]) -> dict[str, Callable[..., Any]]:
    """What the channels are multiplied by, from the weight."""
    return {"gain": lambda self, a: wrong(f64(a.weight))}


def eps(wrong: Callable[[Arguments], float]) -> dict[str, Callable[..., Any]]:
    return {"eps": lambda self, a: wrong(a)}


def _f32(x: np.ndarray) -> np.ndarray:
    return np.asarray(x, np.float32)


def pairwise(x: np.ndarray, a: Arguments) -> np.ndarray:
    squares = _f32(x) * _f32(x)
    while squares.shape[-1] > 1:
        if squares.shape[-1] % 2:
            squares = np.concatenate([squares, np.zeros_like(squares[..., :1])], axis=-1)
        squares = squares[..., ::2] + squares[..., 1::2]
    return squares / np.float32(x.shape[-1])


def in_order(x: np.ndarray, a: Arguments) -> np.ndarray:
    return np.add.accumulate(_f32(x) * _f32(x), axis=-1, dtype=np.float32)[..., -1:] / np.float32(x.shape[-1])


def blocked_means(block: int) -> Callable[[np.ndarray, Arguments], np.ndarray]:
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


def inverse_root(self: RMSNorm, x: np.ndarray, a: Arguments) -> np.ndarray:
    mean = _f32(self.statistics(x, a))
    return _f32(x) * (np.float32(1) / np.sqrt(mean + np.float32(a.eps)))


def quotient(self: RMSNorm, x: np.ndarray, a: Arguments) -> np.ndarray:
    return _f32(x) / np.sqrt(_f32(self.statistics(x, a)) + np.float32(a.eps))


def power(self: RMSNorm, x: np.ndarray, a: Arguments) -> np.ndarray:
    return _f32(x) * np.power(_f32(self.statistics(x, a)) + np.float32(a.eps), np.float32(-0.5))


def two_pass(self: RMSNorm, x: np.ndarray, a: Arguments) -> np.ndarray:
    """Scaled by a power of two near the largest value of the row first, so that no square leaves the range."""
    top = np.abs(x).max(axis=-1, keepdims=True, initial=0.0)
    scale = np.exp2(np.floor(np.log2(np.where(top > 0, top, 1.0))))
    scaled = _f32(x / scale)
    mean = np.mean(scaled * scaled, axis=-1, keepdims=True, dtype=np.float32)
    return scaled / np.sqrt(mean + _f32(a.eps / (scale * scale)))
