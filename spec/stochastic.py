"""The arithmetic of a whole model: exact in float64, or disturbed as rounding would disturb it.

An operation of a model computes through one of these two, so that its formula is written once. `Exact` adds nothing;
`Disturbed` puts on every result a random error of the size that rounding has there (`numerics`, last section).
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

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

Deviation = Callable[..., np.ndarray | float]

BLOCK = 1 << 13
"""Numbers that are disturbed at once: they, and what is made of them on the way, stay in the cache of a core."""

LARGE = 1 << 20
"""Scores of all heads that are too many to be computed at once."""


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

    def off(self, x: np.ndarray, deviation: Deviation, *made_of: np.ndarray) -> np.ndarray:
        """x, each number of which is off by a random one. deviation: its standard deviation, of blocks of x and of `made_of`."""
        return x

    def by_head(self, step: Callable[..., np.ndarray], *parts: np.ndarray) -> np.ndarray:
        """What `step` makes of queries, keys and values, R×B×H×…, every head of them for itself; it is given an arithmetic too."""
        return step(*parts, m=self)

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
        self.dtype, self.precision, self.native = dtype, precision, precision is Precision.NATIVE
        self.float32 = unit_roundoff("float32")
        self.unit = unit_roundoff(dtype) if self.native else self.float32
        self._tape = _Tape()
        self._exact = 1
        """How many of the first runs are exact."""

    def stored(self, x: np.ndarray) -> np.ndarray:
        def disturb(disturbed: np.ndarray, block: np.ndarray, chances: np.ndarray) -> None:
            disturbed[:] = round_at_random(block, self.dtype, chances)

        return self._disturbed(x, _drawn()[0], disturb)

    def passing(self, x: np.ndarray) -> np.ndarray:
        return self.stored(x) if self.native else self.in_float32(x)

    def computed(self, x: np.ndarray) -> np.ndarray:
        return self.off(x, partial(np.multiply, library_deviation(self.float32)))

    def in_float32(self, x: np.ndarray) -> np.ndarray:
        return self.off(x, partial(np.multiply, rounding_deviation(self.float32)))

    def off(self, x: np.ndarray, deviation: Deviation, *made_of: np.ndarray) -> np.ndarray:
        def disturb(disturbed: np.ndarray, block: np.ndarray, errors: np.ndarray, *more: np.ndarray) -> None:
            np.multiply(deviation(block, *more), errors, out=disturbed, dtype=np.float64)
            disturbed += block

        return self._disturbed(x, _drawn()[1], disturb, *made_of)

    def _disturbed(
        self, x: np.ndarray, numbers: np.ndarray, disturb: Callable[..., None], *made_of: np.ndarray
    ) -> np.ndarray:
        """What `disturb` makes of all runs but the exact one, and of random numbers beside them: it fills block after block."""
        result = np.empty(x.shape)
        result[: self._exact] = x[: self._exact]
        flat, *more = (part[self._exact :].ravel() for part in (x, *made_of))
        disturbed = result[self._exact :].reshape(-1)
        for block, drawn in self._tape.blocks(numbers, x.size, x.size - flat.size):
            disturb(disturbed[block], flat[block], drawn, *(part[block] for part in more))
        return result

    def by_head(self, step: Callable[..., np.ndarray], *parts: np.ndarray) -> np.ndarray:
        """As for all heads at once, with the same random numbers; where these would be hundreds of megabytes, one by one."""
        heads = parts[0].shape[:3]
        if math.prod(heads) * parts[0].shape[-2] * parts[1].shape[-2] < LARGE:
            return step(*parts, m=self)
        found = []
        for number, head in enumerate(np.ndindex(heads)):
            alone = Disturbed(self.dtype, self.precision)
            alone._exact, alone._tape = int(head[0] < self._exact), self._tape.of_one(number, math.prod(heads))
            found.append(step(*(part[head][None, None, None] for part in parts), m=alone))
        self._tape.go_on(alone._tape)
        return np.concatenate(found).reshape(*heads, *found[0].shape[3:])

    def product(self, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        return self._summed(x @ y, x**2 @ y**2, x.shape[-1], self.unit)

    def linear(self, x: np.ndarray, matrix: Matrix) -> np.ndarray:
        value, squares = _rows(x, matrix.value), _rows(x**2, matrix.size**2)
        value = self._summed(value, squares, x.shape[-1], self.unit)
        if matrix.quantised:
            rounding = rounding_deviation(unit_roundoff(self.dtype))
            value = self.off(value, lambda _, squares: rounding * np.sqrt(squares), squares)
        return value if matrix.bias is None else self.passing(value) + matrix.bias

    def _summed(self, value: np.ndarray, squares: np.ndarray, terms: int, unit: float) -> np.ndarray:
        """Sums of so many products, the squares of which sum to `squares`."""
        return self.off(value, lambda value, squares: dot_deviation(squares, value, terms, unit), squares)

    def mean_square(self, x: np.ndarray) -> np.ndarray:
        squares, terms = x**2, x.shape[-1]
        total, fourth = squares.sum(axis=-1, keepdims=True), (squares**2).sum(axis=-1, keepdims=True)
        return self.off(
            total / terms,
            lambda _, fourth, total: dot_deviation(fourth, total, terms, self.float32) / terms,
            fourth,
            total,
        )

    def turns(self, angles: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        angles = self.in_float32(angles)
        deviation = library_deviation(self.float32)
        cos, sin = (self.off(x, lambda _: deviation) for x in (np.cos(angles), np.sin(angles)))
        return self.passing(cos), self.passing(sin)

    def frequencies(self, frequencies: np.ndarray) -> np.ndarray:
        """f = exp(-g) takes one library call; g a product and a quotient, whose errors count g-fold. One error for
        each run: every position and head uses the same f."""
        growth = np.abs(np.log(frequencies))
        relative = library_deviation(self.float32) + 2 * rounding_deviation(self.float32) * growth
        wanted, deviation = (
            np.broadcast_to(x, (self.runs, *frequencies.shape))
            for x in (frequencies, np.where(frequencies == 1.0, 0.0, relative * frequencies))
        )
        return self.off(wanted, lambda _, deviation: deviation, deviation)


class _Tape:
    """Random numbers that are drawn once for all: to draw them takes longer than to compute with them. Past their end they
    begin again."""

    def __init__(self, at: int = 0, number: int = 0, of: int = 1) -> None:
        self._at, self._number, self._of = at, number, of

    def of_one(self, number: int, of: int) -> _Tape:
        """A tape for one of so many equal parts of arrays: it has the numbers that the part gets where all are disturbed at once."""
        return _Tape(self._at, number, of)

    def go_on(self, last: _Tape) -> None:
        """Go on where that of the last part is."""
        self._at = last._at

    def blocks(self, numbers: np.ndarray, size: int, without: int) -> Iterator[tuple[slice, np.ndarray]]:
        """The next so many numbers but for the first ones, in blocks, each with its place among these."""
        start, done = self._at + self._number * size + without, 0
        while done < size - without:
            at = (start + done) % len(numbers)
            block = numbers[at : at + min(BLOCK, size - without - done)]
            yield slice(done, done + len(block)), block
            done += len(block)
        self._at = (self._at + self._of * size) % len(numbers)


@functools.cache
def _drawn() -> tuple[np.ndarray, np.ndarray]:
    """Uniform numbers, and the same moved and scaled. How many is a prime number: layers of one size that read past the end
    go on at other places each time."""
    uniform = np.random.default_rng(0).random(4_000_037, np.float32)
    return uniform, (uniform - np.float32(0.5)) * np.float32(12**0.5)


def _rows(x: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """x · weightᵀ as one product of two matrices, which is faster than a stack of small ones."""
    return (x.reshape(-1, x.shape[-1]) @ weight.T).reshape(*x.shape[:-1], len(weight))
