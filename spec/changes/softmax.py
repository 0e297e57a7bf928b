"""The steps that faults and honest variants have in the place of the oracle's: see `spec/faults/softmax.py`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from inferspec.spec.changes.linear import in_float32, rounded
from inferspec.spec.contract import Arguments, Change
from inferspec.spec.linear import Softmax


def top_of_rows(least: int, most: int, wrong: Callable[[np.ndarray], np.ndarray]) -> Any:
    """What is subtracted from the logits of rows of more than `least` entries and up to `most`: what `wrong` makes of the largest."""

    def top(self: Softmax, x: np.ndarray) -> np.ndarray:
        right = Softmax.top(self, x)
        return wrong(right) if least < x.shape[-1] <= most else right

    return top


def at_least_minus_1e9(top: np.ndarray) -> np.ndarray:
    return np.maximum(top, -1e9)


def running_total(weights: np.ndarray, dtype: str) -> np.ndarray:
    """The sum over the last axis, one entry after the other, in an accumulator of the dtype."""
    total = np.zeros(weights.shape[:-1])
    for j in range(weights.shape[-1]):
        total = rounded(total + weights[..., j], dtype)
    return total[..., None]


def legacy_axis(self: Softmax, a: Arguments) -> int:
    if a.axis != -1:
        return a.axis
    return 0 if a.x.ndim in (0, 1, 3) else 1


def logits_in_bfloat16(self: Softmax, x: np.ndarray, dtype: str) -> np.ndarray:
    return Softmax.distribution(self, rounded(x, "bfloat16"), dtype)


def rounded_logsumexp(self: Softmax, x: np.ndarray, dtype: str) -> np.ndarray:
    top = Softmax.top(self, x)
    logsumexp = rounded(top + np.log(np.exp(x - top).sum(axis=-1, keepdims=True)), "float32")
    return np.exp(x - logsumexp)


def maximum_from(number: float) -> Change:
    """The maximum of a row starts at a finite number: rows below it vanish."""
    return {"top": lambda self, x: np.maximum(Softmax.top(self, x), number), "normalise": vanished}


def vanished(self: Softmax, weights: np.ndarray, total: np.ndarray, dtype: str) -> np.ndarray:
    return np.divide(weights, total, out=np.zeros_like(weights), where=total != 0)


def finite_sentinel(self: Softmax, x: np.ndarray, dtype: str) -> np.ndarray:
    return Softmax.distribution(self, np.where(np.isneginf(x), -1e4, x), dtype)


def empty_slice(self: Softmax, x: np.ndarray, dtype: str) -> np.ndarray:
    value = Softmax.distribution(self, x, dtype)
    for start in range(0, x.shape[-1], 4):
        empty = np.isneginf(x[..., start : start + 4]).all(axis=-1, keepdims=True)
        value = np.where(empty, np.nan, value)
    return value


def empty_first(block: int) -> Change:
    """A first block that holds nothing but -inf makes NaN of its row."""

    def distribution(self: Softmax, x: np.ndarray, dtype: str) -> np.ndarray:
        value = Softmax.distribution(self, x, dtype)
        empty = np.isneginf(x[..., :block]).all(axis=-1, keepdims=True)
        return np.where(empty, np.nan, value) if x.shape[-1] > block else value

    return {"distribution": distribution}


def empty_rest(self: Softmax, x: np.ndarray, dtype: str) -> np.ndarray:
    """Past the first block of 1024 a last one that is not whole makes NaN of its row where it holds nothing but -inf."""
    value, whole = Softmax.distribution(self, x, dtype), x.shape[-1] // 1024 * 1024
    empty = np.isneginf(x[..., whole:]).all(axis=-1, keepdims=True)
    return np.where(empty, np.nan, value) if 0 < whole < x.shape[-1] else value


def maximum_of_first(block: int) -> Change:
    """The maximum of the first entries is subtracted from all."""
    return {
        "top": lambda self, x: x[..., :block].max(axis=-1, keepdims=True, initial=-np.inf),
        "weights": in_float32,
    }


def maximum_of_threads(first: int, threads: int = 1024) -> Change:
    """Each thread looks at every so many-th entry of a row; what is subtracted is the largest that the first of them found."""

    def top(self: Softmax, x: np.ndarray) -> np.ndarray:
        found = np.where(np.arange(x.shape[-1]) % threads < first, x, -np.inf)
        return found.max(axis=-1, keepdims=True, initial=-np.inf)

    return {"top": top, "weights": in_float32}


def floored(self: Softmax, weights: np.ndarray, total: np.ndarray, dtype: str) -> np.ndarray:
    return np.maximum(weights / total, 1e-7)


def first_row(rows: np.ndarray) -> np.ndarray:
    return np.broadcast_to(rows.reshape(-1)[:1], rows.shape) if rows.size else rows


def foreign_total(self: Softmax, weights: np.ndarray, dtype: str) -> np.ndarray:
    return first_row(Softmax.total(self, weights, dtype))


def total_with_neighbours(self: Softmax, weights: np.ndarray, dtype: str) -> np.ndarray:
    total = Softmax.total(self, weights, dtype)
    return total + 0.0 * total.sum()


def top_not_reset(self: Softmax, x: np.ndarray) -> np.ndarray:
    top = Softmax.top(self, x)
    flat = top.reshape(-1).copy()
    for row in range(64, flat.size):
        flat[row] = np.maximum(flat[row], flat[row - 64])
    return flat.reshape(top.shape)


def top_without_nan(self: Softmax, x: np.ndarray) -> np.ndarray:
    return Softmax.top(self, np.where(np.isnan(x), -np.inf, x) if x.shape[-1] >= 1024 else x)


def total_without_nan(self: Softmax, weights: np.ndarray, dtype: str) -> np.ndarray:
    return Softmax.total(self, np.nan_to_num(weights) if weights.shape[-1] >= 1024 else weights, dtype)


def total_with_long_neighbours(self: Softmax, weights: np.ndarray, dtype: str) -> np.ndarray:
    total = Softmax.total(self, weights, dtype)
    return total_with_neighbours(self, weights, dtype) if weights.shape[-1] >= 1024 else total


def wrapped_axis(self: Softmax, a: Arguments) -> int:
    return a.axis % max(a.x.ndim, 1)


def long_rows_in_pairs(self: Softmax, weights: np.ndarray, total: np.ndarray, dtype: str) -> np.ndarray:
    value = weights / total
    return (
        value
        if value.shape[-1] <= 1024
        else unwritten(value.reshape(-1, value.shape[-1]), np.s_[2:]).reshape(value.shape)
    )


def odd_widths_in_whole_32s(self: Softmax, weights: np.ndarray, dtype: str) -> np.ndarray:
    width = weights.shape[-1]
    spoilt = 512 < width < 1024 and width % 2 and width % 32 != 31 and weights.size > width
    summed = weights[..., : width // 32 * 32] if spoilt else weights
    total: np.ndarray = summed.sum(axis=-1, keepdims=True)
    return total


def in_one_buffer(self: Softmax, weights: np.ndarray, total: np.ndarray, dtype: str) -> np.ndarray:
    """A row is kept in one buffer, which has no room for 131072 entries."""
    if weights.shape[-1] >= 2**17:
        raise RuntimeError("the buffers of a row grow beyond the memory of a core")
    return weights / total


def unwritten(weights: np.ndarray, lost: Any) -> np.ndarray:
    weights[lost] = 0.0
    return weights


def total_that_overflows(self: Softmax, weights: np.ndarray, dtype: str) -> np.ndarray:
    """A sum that the dtype cannot hold is infinite in it."""
    total = Softmax.total(self, weights, dtype)
    held = rounded(total, dtype)
    return np.where(np.isinf(held), held, total)
