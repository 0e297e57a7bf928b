"""Rotary position embedding: pairs of features turn by an angle that grows with the token's position.

Shapes: x B×L×H×D, result the same. Of each head the first `dims` features turn and the rest stay. Pair i of dims / 2
turns by position · base^(-2i / dims). The pair is (i, i + dims/2) in the split-half form, which is the default, and
(2i, 2i + 1) in the traditional one. `offset` tells the positions: None (0 … L-1), an int (from there on), a slice
start..stop of length L, or a list of such slices, one for each batch row.

Sources: Su et al. 2021 (RoFormer), section 3.4.2; the tiny-llm course, week 1 day 2 and week 2 day 6.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from inferspec.spec.contract import Answer, Arguments, Aspect, Contract, Level, Operation, Requirement, Signature
from inferspec.spec.numerics import Precision, f64, library, operations, rounding, unit_roundoff

COURSE_ROPE = "tiny-llm course, week 1 day 2"
COURSE_BATCHING = "tiny-llm course, week 2 day 6"
DECISIONS = "PROPERTIES, decisions"

_POW_CALLS = 4
"""A pow is a logarithm, a product and an exponential, whose argument magnifies errors: it counts as four calls."""


class RoPE(Operation):
    """Turn the first `dims` features of each head by their token's position; the others pass through."""

    signature = Signature.parse("RoPE(dims, max_positions, base=10000, traditional=False)(x, offset=None)")
    plain = "rope"
    plain_narrows: ClassVar = {"offsets": ("none", "int")}
    implied = frozenset({"dims", "max_positions"})
    narrows: ClassVar = {
        "base": ("bases", (10000,)),
        "traditional": ("forms", ("split-half",)),
        "offset": ("offsets", ("none",)),
        "dims": ("partial", (False,)),
    }
    unsaid = frozenset({"forms", "bases"})
    turned = ("x",)
    insisted: ClassVar = {"offset": 0}

    def guard(self, a: Arguments) -> None:
        self.guard_dims(a)
        self.guard_offset(a)

    def guard_dims(self, a: Arguments) -> None:
        self.guard_even(a)
        if a.dims > a.x.shape[-1]:
            raise ValueError(f"dims is {a.dims}, more than the {a.x.shape[-1]} features of x")

    def guard_even(self, a: Arguments) -> None:
        if a.dims < 2 or a.dims % 2:
            raise ValueError(f"dims is {a.dims}, not a positive even number")

    def guard_offset(self, a: Arguments) -> None:
        self.guard_rows(a)
        for offset in a.offset if isinstance(a.offset, list) else [a.offset]:
            self.guard_length(offset, a.x.shape[1])
            self.guard_sign(offset)

    def guard_rows(self, a: Arguments) -> None:
        if isinstance(a.offset, list) and len(a.offset) != a.x.shape[0]:
            raise ValueError(f"offset has {len(a.offset)} slices for {a.x.shape[0]} batch rows")

    def guard_length(self, offset: Any, length: int) -> None:
        if isinstance(offset, slice) and (offset.stop - offset.start != length or offset.step not in (None, 1)):
            raise ValueError(f"offset is {offset}, not {length} positions on end")

    def guard_sign(self, offset: Any) -> None:
        start = offset.start if isinstance(offset, slice) else offset
        if start is not None and start < 0:
            raise ValueError(f"offset is {offset}, before position 0")

    # The steps, in the order of the formula.

    def start(self, offset: Any, length: int) -> int:
        """The position of the first of `length` tokens."""
        if offset is None:
            return 0
        return offset.start if isinstance(offset, slice) else offset

    def starts(self, a: Arguments) -> np.ndarray:
        """The position of each batch row's first token, B."""
        batch, length = a.x.shape[:2]
        offsets = a.offset if isinstance(a.offset, list) else [a.offset] * batch
        return np.array([self.start(offset, length) for offset in offsets], dtype=np.int64)

    def positions(self, a: Arguments) -> np.ndarray:
        """B×L."""
        return f64(self.starts(a)[:, None] + np.arange(a.x.shape[1]))

    def exponents(self, dims: int, a: Arguments) -> np.ndarray:
        """2i / dims for each pair i."""
        return np.arange(0, dims, 2) / dims

    def base(self, a: Arguments) -> float:
        return float(a.base)

    def frequencies(self, dims: int, a: Arguments) -> np.ndarray:
        """Radians per position of each pair."""
        return self.base(a) ** -self.exponents(dims, a)

    def angles(self, positions: np.ndarray, frequencies: np.ndarray, a: Arguments) -> np.ndarray:
        """Radians, broadcastable to B×L×H×(dims / 2)."""
        return positions[:, :, None, None] * frequencies

    def coefficients(self, angles: np.ndarray, a: Arguments) -> tuple[np.ndarray, np.ndarray]:
        """Cosine and sine of the angles."""
        return np.cos(angles), np.sin(angles)

    def dims(self, a: Arguments) -> int:
        """How many features turn."""
        return a.dims

    def features(self, dims: int, a: Arguments) -> tuple[np.ndarray, np.ndarray]:
        """Where the first and the second feature of each pair are."""
        if a.traditional:
            return np.arange(0, dims, 2), np.arange(1, dims, 2)
        return np.arange(dims // 2), np.arange(dims // 2, dims)

    def places(self, dims: int, a: Arguments) -> tuple[np.ndarray, np.ndarray]:
        """Where they go."""
        return self.features(dims, a)

    def turn(
        self, first: np.ndarray, second: np.ndarray, cos: np.ndarray, sin: np.ndarray, a: Arguments
    ) -> tuple[np.ndarray, np.ndarray]:
        """The pairs after the rotation."""
        return first * cos - second * sin, first * sin + second * cos

    def kept(self, x: np.ndarray, dims: int) -> np.ndarray:
        """What the result holds before the turned features are written."""
        return x.copy()

    def evaluate(self, a: Arguments, precision: Precision) -> Answer:
        """Budget. a is the unit of float32, in which every class computes positions, frequencies and angles.

        Angle t = position · f. Its relative error is that of f and one product. f = exp(-g) with g = (2i/dims) ln base
        takes a logarithm, a quotient and a product, whose relative error counts g-fold, then an exponential; or it
        is a pow; and perhaps a reciprocal:
            dt = t (33a + 10a·g + a);   pair 0 has f = 1 and t an integer, so dt = 0.
        An angle that is off by dt turns the right pair (y1, y2) once more by dt: y1 moves by at most
        |y2| min(dt, 1) + |y1| min(dt²/2, 2). Cosine and sine are library calls, 8a in absolute terms, and the sum of
        two products is rounded twice (class `native`: coefficients, products and sum in the dtype, three times u, with
        underflow at each). The result is rounded once more. The tail is copied: there the budget is 0. That
        position 0 turns nothing, bit for bit, is a requirement by itself.
        """
        unit, dtype, dims = unit_roundoff("float32"), a.x.dtype.name, self.dims(a)
        x, positions = f64(a.x), self.positions(a)
        with np.errstate(all="ignore"):
            frequencies = self.frequencies(dims, a)
            angles = self.angles(positions, frequencies, a)
            cos, sin = self.coefficients(angles, a)
            first, second = self.features(dims, a)
            turned = self.turn(x[..., first], x[..., second], cos, sin, a)

            angle_error = np.abs(angles) * self._angle_error(frequencies, unit)
            budgets = []
            for near, far, left, right in ((turned[0], turned[1], cos, sin), (turned[1], turned[0], sin, cos)):
                sizes = np.abs(x[..., first]) + np.abs(x[..., second])
                error = np.abs(far) * np.minimum(angle_error, 1.0) + np.abs(near) * np.minimum(angle_error**2 / 2, 2.0)
                error = error + library(unit) * sizes
                products = np.abs(x[..., first] * left) + np.abs(x[..., second] * right) + angle_error * sizes
                if precision is Precision.FLOAT32:
                    error = error + operations(unit, 2) * products
                else:
                    underflow = rounding(np.zeros(()), dtype)
                    error = error + operations(unit_roundoff(dtype), 3) * products + underflow * (sizes + 3)
                budgets.append(error + rounding(np.abs(near) + error, dtype))

        value, budget = self.kept(x, dims), np.zeros_like(x)
        for place, part, error in zip(self.places(dims, a), turned, budgets, strict=True):
            value[..., place], budget[..., place] = part, error
        return Answer(value, budget)

    def _angle_error(self, frequencies: np.ndarray, unit: float) -> np.ndarray:
        growth = np.abs(np.log(frequencies))
        relative = library(unit, _POW_CALLS) + operations(unit, 2) + (library(unit) + operations(unit, 2)) * growth
        return np.where(frequencies == 1.0, 0.0, relative)

    def result_dtype(self, a: Arguments) -> str:
        return a.x.dtype.name


def _rope(
    id: str, text: str, level: Level = Level.MUST, aspect: Aspect = Aspect.VALUE, source: str = ""
) -> Requirement:
    return Requirement(id, text, "RoPE", level, aspect, source or COURSE_ROPE)


ROPE_01 = _rope(
    "ROPE-01",
    "in the split-half form, the default, features i and i + dims/2 of the token at position p become (a cos t - b sin t, a sin t + b cos t) with t = p · base^(-2i/dims)",
)
ROPE_02 = _rope(
    "ROPE-02",
    "in the traditional form features 2i and 2i + 1 are the pair, and the turned pair goes back to where it was",
)
ROPE_03 = _rope(
    "ROPE-03",
    "with an int offset token t is at position offset + t, for one token and for many; None is 0",
    source="PROPERTIES RO1",
)
ROPE_04 = _rope("ROPE-04", "a slice is the int of its start", source="PROPERTIES RO1")
ROPE_05 = _rope(
    "ROPE-05",
    "with a list of slices each batch row has the positions of its own slice: for one token too, in any order, with duplicates and zeros",
    source=f"{COURSE_BATCHING}; PROPERTIES RO5",
)
ROPE_06 = _rope("ROPE-06", "the base given is used as it is", source="PROPERTIES RO8")
ROPE_07 = _rope(
    "ROPE-07",
    "positions, frequencies and angles are computed in float32 at least, whatever the dtype of x: right at every position up to 2^17",
    source="mlx f46877bc0; PROPERTIES RO3",
)
ROPE_08 = _rope("ROPE-08", "position 0 changes nothing, bit for bit", source="PROPERTIES RO2")
ROPE_09 = _rope(
    "ROPE-09",
    "turning by m and then by n is turning by m + n, norms are kept, and the product of a query at m and a key at n depends on m - n alone",
    source="Su et al. 2021, section 3.2; PROPERTIES RO2",
)
ROPE_10 = _rope(
    "ROPE-10",
    "the traditional form is the split-half form of the features in the order 0, 2, 4 … 1, 3, 5 …, put back in order",
    source="PROPERTIES RO4",
)
ROPE_11 = _rope(
    "ROPE-11",
    "heads and batch rows are independent: the result for one depends neither on how many there are nor on its place among them",
    source="PROPERTIES RO7, X3",
)
ROPE_12 = _rope(
    "ROPE-12",
    "with dims < D the first dims features turn, with the frequencies of dims, and the rest is unchanged bit for bit",
    source="mlx-lm cff94b7f; PROPERTIES RO6",
)
ROPE_13 = _rope(
    "ROPE-13",
    "a position below 0 or of max_positions and more is refused or turned rightly, never clamped, wrapped or read from outside a table",
    source="tiny-llm, measured: its table is read past its end",
)
ROPE_14 = _rope(
    "ROPE-14",
    "a chunk of a sequence at its offset gives those rows of the whole, for every way to cut",
    source="PROPERTIES RO1",
)
ROPE_15 = _rope("ROPE-15", "x given as a strided view gives the same result as its copy", source="PROPERTIES X1")
ROPE_16 = _rope("ROPE-16", "the result has the shape and dtype of x", aspect=Aspect.DTYPE, source="PROPERTIES X4")
ROPE_17 = _rope("ROPE-17", "x is not changed", source="PROPERTIES X6")
ROPE_18 = _rope(
    "ROPE-18",
    "a call depends on its arguments alone: repeated, it is the same bit for bit, whatever other base, offset, dims, form or dtype was used in between",
    source="mlx 874b739f3; PROPERTIES X7, X11",
)
ROPE_19 = _rope("ROPE-19", "odd dims and dims > D are refused", aspect=Aspect.GUARD, source="PROPERTIES RO6, X9")
ROPE_20 = _rope(
    "ROPE-20",
    "a slice that is not L positions on end, as one with a step is not, and a list whose length is not B are refused",
    Level.SHOULD,
    Aspect.GUARD,
    source="PROPERTIES X9",
)
ROPE_21 = _rope(
    "ROPE-21",
    "every size is right, and every element written: no row, no token, one or many, any number of heads, also just beside the multiples of 4 and 32",
    source="PROPERTIES X2, X10",
)
ROPE_22 = _rope(
    "ROPE-22",
    "an object that was made in one thread turns alike in another",
    Level.SHOULD,
    source="https://github.com/Blaizzy/mlx-vlm/pull/1854; PROPERTIES X7",
)


CONTRACT = Contract(
    component="rope",
    title="rotary position embedding",
    version=1,
    operations=(RoPE,),
    envelope={
        "dtypes": ("float32", "float16", "bfloat16"),
        "head_dims": (2, 4, 6, 8, 16, 32, 40, 64, 72, 80, 96, 112, 128, 192, 256),
        "forms": ("split-half", "traditional"),
        "offsets": ("none", "int", "slice", "slices"),
        "bases": (10, 10000, 12345.5, 500000, 1000000, 10000000),
        "partial": (False, True),
        "empty": (True, False),
        "positions": 2**17,
    },
    layouts=("", "BHLD"),
    requirements=tuple(value for value in list(globals().values()) if isinstance(value, Requirement)),
)
