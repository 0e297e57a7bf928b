"""The arithmetic of a whole model: exact in float64, or disturbed as rounding would disturb it.

An operation of a model computes through one of these two, so that its formula is written once. `Exact` adds nothing;
`Disturbed` puts on every result a random error of the size that rounding has there (`numerics`, last section).
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass

import numpy as np

from inferspec.spec.numerics import (
    RUNS,
    Precision,
    dot_deviation,
    library_deviation,
    round_at_random,
    rounding_deviation,
    unit_roundoff,
)


@dataclass(frozen=True)
class Matrix:
    """The weight of a linear layer, O×I in float64.

    size: what each entry is made of in absolute terms, |code · scale| + |bias| for a quantised one, which a kernel may
    sum apart. quantised: whether its entries may have been rounded to the dtype on the way.
    """

    value: np.ndarray
    size: np.ndarray
    quantised: bool = False
    bias: np.ndarray | None = None


class Exact:
    """Float64 and nothing else."""

    runs = 1

    def stored(self, x: np.ndarray) -> np.ndarray:
        """A result that is an activation: rounded to the model's dtype."""
        return x

    def passing(self, x: np.ndarray) -> np.ndarray:
        """A result on the way to one: in float32, or in the model's dtype (class `native`)."""
        return x

    def computed(self, x: np.ndarray) -> np.ndarray:
        """The result of a library function."""
        return x

    def in_float32(self, x: np.ndarray) -> np.ndarray:
        """The result of one operation of float32, whatever the dtype of the model."""
        return x

    def off(self, x: np.ndarray, deviation: np.ndarray | float) -> np.ndarray:
        """A number of that standard deviation."""
        return x

    def product(self, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        """x · y of activations."""
        return x @ y

    def linear(self, x: np.ndarray, matrix: Matrix) -> np.ndarray:
        """x · matrixᵀ + bias."""
        value = _rows(x, matrix.value)
        return value if matrix.bias is None else value + matrix.bias

    def mean_square(self, x: np.ndarray) -> np.ndarray:
        """The mean square of the last axis, which stays as an axis of one."""
        return np.vecdot(x, x)[..., None] / x.shape[-1]

    def frequencies(self, frequencies: np.ndarray) -> np.ndarray:
        """Radians per position of RoPE, runs×pairs."""
        return frequencies[None]

    def turns(self, angles: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Cosine and sine."""
        return np.cos(angles), np.sin(angles)


class Disturbed(Exact):
    """RUNS disturbed runs at once, after one that is exact, along the first axis.

    float32: every operation accumulates in float32 and rounds its result to the dtype. native: intermediate results
    (scores, weights, products) and sums are in the dtype too; norms, softmax and angles stay in float32.
    """

    runs = 1 + RUNS

    def __init__(self, dtype: str, precision: Precision) -> None:
        self.dtype, self.native = dtype, precision is Precision.NATIVE
        self.float32 = unit_roundoff("float32")
        self.unit = unit_roundoff(dtype) if self.native else self.float32
        self._tape = _Tape()

    def stored(self, x: np.ndarray) -> np.ndarray:
        rounded = round_at_random(x, self.dtype, self._tape.chances(x.shape))
        rounded[0] = x[0]
        return rounded

    def passing(self, x: np.ndarray) -> np.ndarray:
        return self.stored(x) if self.native else self.off(x, rounding_deviation(self.float32) * x)

    def computed(self, x: np.ndarray) -> np.ndarray:
        return self.off(x, library_deviation(self.float32) * x)

    def in_float32(self, x: np.ndarray) -> np.ndarray:
        return self.off(x, rounding_deviation(self.float32) * x)

    def off(self, x: np.ndarray, deviation: np.ndarray | float) -> np.ndarray:
        noise = np.multiply(deviation, self._tape.errors(x.shape), dtype=np.float64)
        noise[0] = 0.0
        noise += x
        return noise

    def product(self, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        value = x @ y
        return self.off(value, dot_deviation(x**2 @ y**2, value, x.shape[-1], self.unit))

    def linear(self, x: np.ndarray, matrix: Matrix) -> np.ndarray:
        value, squares = _rows(x, matrix.value), _rows(x**2, matrix.size**2)
        value = self.off(value, dot_deviation(squares, value, x.shape[-1], self.unit))
        if matrix.quantised:
            value = self.off(value, rounding_deviation(unit_roundoff(self.dtype)) * np.sqrt(squares))
        return value if matrix.bias is None else self.passing(value) + matrix.bias

    def mean_square(self, x: np.ndarray) -> np.ndarray:
        squares, terms = x**2, x.shape[-1]
        total, fourth = squares.sum(axis=-1, keepdims=True), (squares**2).sum(axis=-1, keepdims=True)
        return self.off(total / terms, dot_deviation(fourth, total, terms, self.float32) / terms)

    def turns(self, angles: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        angles = self.off(angles, rounding_deviation(self.float32) * angles)
        cos, sin = (self.off(x, library_deviation(self.float32)) for x in (np.cos(angles), np.sin(angles)))
        return self.passing(cos), self.passing(sin)

    def frequencies(self, frequencies: np.ndarray) -> np.ndarray:
        """f = exp(-g) takes one library call; g a product and a quotient, whose errors count g-fold. One error for
        each run: every position and head uses the same f."""
        growth = np.abs(np.log(frequencies))
        relative = library_deviation(self.float32) + 2 * rounding_deviation(self.float32) * growth
        wanted = np.broadcast_to(frequencies, (self.runs, *frequencies.shape))
        return self.off(wanted, np.where(frequencies == 1.0, 0.0, relative * frequencies))


class _Tape:
    """Random numbers that are drawn once for all: to draw them takes longer than to compute with them."""

    def __init__(self) -> None:
        self._at = 0

    def chances(self, shape: tuple[int, ...]) -> np.ndarray:
        """Numbers uniform in [0, 1)."""
        return self._next(_drawn()[0], shape)

    def errors(self, shape: tuple[int, ...]) -> np.ndarray:
        """Uniform numbers of mean 0 and deviation 1: as roundings are."""
        return self._next(_drawn()[1], shape)

    def _next(self, numbers: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
        start, size = self._at, math.prod(shape)
        self._at = (start + size) % len(numbers)
        part = numbers[start : start + size]
        if part.size < size:
            # Past its end the tape begins again.
            part = np.concatenate([part, np.resize(numbers, size - part.size)])
        return part.reshape(shape)


@functools.cache
def _drawn() -> tuple[np.ndarray, np.ndarray]:
    """Uniform numbers, and the same moved and scaled. How many is a prime number: layers of one size that read past the end
    go on at other places each time."""
    uniform = np.random.default_rng(0).random(4_000_037, np.float32)
    return uniform, (uniform - np.float32(0.5)) * np.float32(12**0.5)


def _rows(x: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """x · weightᵀ as one product of two matrices, which is faster than a stack of small ones."""
    return (x.reshape(-1, x.shape[-1]) @ weight.T).reshape(*x.shape[:-1], len(weight))
