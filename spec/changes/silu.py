"""The steps that faults and honest variants have in the place of the oracle's: see `spec/faults/silu.py`."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from inferspec.spec.changes.linear import rounded, whole_blocks
from inferspec.spec.contract import Change
from inferspec.spec.linear import Silu


def whole_blocks_of_whole_steps(out: np.ndarray) -> np.ndarray:
    """What is written of blocks of two steps; a path of its own serves rows that are no whole steps."""
    wide = out.ndim and out.shape[-1] > 512 and out.shape[-1] % 256 == 0
    return whole_blocks(512)(out) if wide else out


def in_vectors(sigmoid: Callable[[Silu, np.ndarray, str], np.ndarray]) -> Change:
    """Rows of 64 elements and more have this sigmoid; what is shorter has the right one."""

    def chosen(self: Silu, x: np.ndarray, dtype: str) -> np.ndarray:
        return (sigmoid if x.shape[-1:] >= (64,) else Silu.sigmoid)(self, x, dtype)

    return {"sigmoid": chosen}


def scalar_is_sigmoid(self: Silu, x: np.ndarray, dtype: str) -> np.ndarray:
    return Silu.activate(self, x, dtype) if x.ndim else self.sigmoid(x, dtype)


def loses_nan_in_vectors(self: Silu, x: np.ndarray, dtype: str) -> np.ndarray:
    return (loses_nan if x.shape[-1:] >= (64,) else Silu.activate)(self, x, dtype)


def one_minus(self: Silu, x: np.ndarray, dtype: str) -> np.ndarray:
    positive = rounded(Silu.sigmoid(self, np.abs(x), dtype), dtype)
    return np.where(x < 0, 1 - positive, positive)


def through_tanh(self: Silu, x: np.ndarray, dtype: str) -> np.ndarray:
    return 0.5 * (1 + rounded(np.tanh(x / 2), "float32"))


def through_float16(self: Silu, x: np.ndarray, dtype: str) -> np.ndarray:
    return Silu.activate(self, rounded(x, "float16"), dtype)


def tiny_to_zero(self: Silu, x: np.ndarray, dtype: str) -> np.ndarray:
    return np.where(np.abs(x) < 1e-6, 0.0, Silu.activate(self, x, dtype))


def overflowing(self: Silu, x: np.ndarray, dtype: str) -> np.ndarray:
    power = rounded(np.exp(x), "float32")
    return power / (1 + power)


def exponential_in_dtype(self: Silu, x: np.ndarray, dtype: str) -> np.ndarray:
    return 1 / (1 + rounded(np.exp(-x), dtype))


def clipped_exponent(self: Silu, x: np.ndarray, dtype: str) -> np.ndarray:
    return Silu.sigmoid(self, np.clip(x, -16, 16), dtype)


def tanh_gelu(self: Silu, x: np.ndarray, dtype: str) -> np.ndarray:
    return 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))


def complement(self: Silu, x: np.ndarray, dtype: str) -> np.ndarray:
    return x - x * Silu.sigmoid(self, -x, dtype)


def loses_nan(self: Silu, x: np.ndarray, dtype: str) -> np.ndarray:
    return np.where(np.isnan(x), 0.0, Silu.activate(self, x, dtype))


def spreads(self: Silu, x: np.ndarray, dtype: str) -> np.ndarray:
    return Silu.activate(self, x, dtype) + 0.0 * x.sum()


def nan_at_zero(self: Silu, x: np.ndarray, dtype: str) -> np.ndarray:
    return np.where(x == 0, np.nan, Silu.activate(self, x, dtype))
