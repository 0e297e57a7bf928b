"""Linear layer, SiLU and softmax: the three steps from which every other layer is built.

Shapes: x N..×I, weight O×I, bias O, result N..×O, for any leading dims N (none too); silu and softmax keep the shape
of x. All arrays of a call share one dtype, which is that of the result.

Sources: the tiny-llm course, week 1 days 1 and 4; Elfwing et al. 2018 (SiLU).
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from inferspec.spec.contract import Answer, Arguments, Aspect, Contract, Level, Operation, Requirement, Signature
from inferspec.spec.numerics import (
    Precision,
    arithmetic_unit,
    dot,
    f64,
    library,
    operations,
    rounding,
    unit_roundoff,
    weights_growth,
)

COURSE_LINEAR = "tiny-llm course, week 1 day 1"
COURSE_SILU = "tiny-llm course, week 1 day 4"

SILU_TROUGH = -1.2784645427610738
"""Where silu is smallest: it falls before and rises after."""


def known_places(value: np.ndarray, budget: np.ndarray) -> np.ndarray:
    """The budget where the value is finite, none elsewhere: NaN and infinities belong exactly where they are."""
    return np.where(np.isfinite(value), budget, 0.0)


def product_roundings(precision: Precision, biased: bool = False) -> int:
    """How often a product may be rounded to the dtype: once, before a bias is added too, class `native` twice more."""
    return 1 + biased + (2 if precision is Precision.NATIVE else 0)


def product_budget(
    magnitude: np.ndarray,
    product: np.ndarray,
    value: np.ndarray,
    terms: int,
    roundings: int,
    dtype: str,
    carried: np.ndarray | float = 0.0,
) -> np.ndarray:
    """Bound on a product summed in float32 and rounded to the dtype.

    magnitude: the product of absolute values (with |bias|); value: product + bias; carried: the error that the
    factors bring. budget = carried + (terms+1)a·magnitude + (roundings-1) roundings of the product + one of the value.
    """
    error = carried + dot(magnitude, terms, unit_roundoff("float32"))
    error = error + (roundings - 1) * rounding(np.abs(product) + error, dtype)
    return known_places(value, error + rounding(np.abs(value) + error, dtype))


class Linear(Operation):
    """x · weightᵀ + bias over the last axis; no bias when it is None."""

    signature = Signature.parse("linear(x, weight, bias=None)")
    narrows: ClassVar = {"bias": ("bias", (False,))}

    def guard(self, a: Arguments) -> None:
        if a.x.ndim < 1:
            raise ValueError("x has no axis to sum over")
        if a.weight.ndim != 2 or a.weight.shape[1] != a.x.shape[-1]:
            raise ValueError(f"weight is {a.weight.shape}, not O×{a.x.shape[-1]}")
        if a.bias is not None and a.bias.shape != a.weight.shape[:1]:
            raise ValueError(f"bias is {a.bias.shape}, not {a.weight.shape[:1]}")

    def product(self, x: np.ndarray, weight: np.ndarray, dtype: str) -> np.ndarray:
        return x @ weight.T

    def add(self, product: np.ndarray, bias: np.ndarray, dtype: str) -> np.ndarray:
        return product + bias

    def evaluate(self, a: Arguments, precision: Precision) -> Answer:
        """Budget: `product_budget` of I products, and of one more term and rounding for the bias."""
        x, weight, dtype = f64(a.x), f64(a.weight), self.result_dtype(a)
        with np.errstate(all="ignore"):
            product = value = self.product(x, weight, dtype)
            magnitude = np.abs(x) @ np.abs(weight).T
            if a.bias is not None:
                value = self.add(product, f64(a.bias), dtype)
                magnitude = magnitude + np.abs(f64(a.bias))
            biased = a.bias is not None
            roundings = product_roundings(precision, biased)
            budget = product_budget(magnitude, product, value, x.shape[-1] + biased, roundings, dtype)
        return Answer(value, budget)

    def result_dtype(self, a: Arguments) -> str:
        return a.x.dtype.name


class Silu(Operation):
    """x · sigmoid(x), elementwise. What -inf gives is left open: 0 by its limit, NaN by the formula."""

    signature = Signature.parse("silu(x)")

    def sigmoid(self, x: np.ndarray, dtype: str) -> np.ndarray:
        small = np.exp(-np.abs(x))
        return np.where(x < 0, small, 1.0) / (1.0 + small)

    def activate(self, x: np.ndarray, dtype: str) -> np.ndarray:
        return x * self.sigmoid(x, dtype)

    def evaluate(self, a: Arguments, precision: Precision) -> Answer:
        x, dtype = f64(a.x), self.result_dtype(a)
        with np.errstate(all="ignore"):
            value = self.activate(x, dtype)
            budget = self.budget(x, value, dtype, precision)
        return Answer(value, known_places(value, budget))

    def budget(self, x: np.ndarray, value: np.ndarray, dtype: str, precision: Precision) -> np.ndarray:
        """Relative to the value, also where it is tiny.

        sigmoid(x) = 1 / (1 + exp(-x)): one library call; three roundings of the class (exp, sum, quotient). Through
        exp2 the exponent x·log2(e) has two roundings of float32, 2a|x|, which the quotient damps by 1 - sigmoid(x):
            error = |value|(8a + 2a|x|·sigmoid(-x) + 3u) + underflow;   budget = error + rounding of the result.
        A sigmoid below the floor of the class may be 0: it costs |x|·floor, or the value. In float32 and bfloat16 that is
        where exp(-x) overflows; in float16 it overflows long before, at x = -11, and that is not excused.
        """
        a, u = unit_roundoff("float32"), arithmetic_unit(precision, dtype)
        complement = Silu.sigmoid(self, -x, dtype)
        relative = library(a) + operations(a, 2) * np.abs(x) * complement + operations(u, 3)
        floor = rounding(np.zeros(()), dtype if precision is Precision.NATIVE else "float32")
        error = np.abs(value) * relative + np.minimum(np.abs(x) * floor, np.abs(value))
        return error + rounding(np.abs(value) + error, dtype)

    def carried(self, x: np.ndarray, error: np.ndarray) -> np.ndarray:
        """How far silu may move when x is off by at most `error`: silu falls to its trough and rises after it, so the
        farthest value lies at an end of the interval or in the trough. At most 1.1·error, far less for negative x."""
        low, high = x - error, x + error
        at = self.activate(x, "float64")
        ends = (low, high, np.clip(SILU_TROUGH, low, high))
        return np.max([np.abs(self.activate(end, "float64") - at) for end in ends], axis=0)

    def result_dtype(self, a: Arguments) -> str:
        return a.x.dtype.name


class Softmax(Operation):
    """exp(x) over its sum along one axis. What a row of -inf alone, or one with +inf, gives is left open."""

    signature = Signature.parse("softmax(x, axis=-1)")
    narrows: ClassVar = {"axis": ("axes", (-1,))}

    def guard(self, a: Arguments) -> None:
        if not -a.x.ndim <= a.axis < a.x.ndim:
            raise ValueError(f"axis is {a.axis}, but x has {a.x.ndim} axes")

    def axis(self, a: Arguments) -> int:
        return a.axis

    # The steps work on the last axis.

    def top(self, x: np.ndarray) -> np.ndarray:
        """What is subtracted before the exponential."""
        return x.max(axis=-1, keepdims=True, initial=-np.inf)

    def weights(self, x: np.ndarray, top: np.ndarray, dtype: str) -> np.ndarray:
        return np.exp(x - top)

    def total(self, weights: np.ndarray, dtype: str) -> np.ndarray:
        return weights.sum(axis=-1, keepdims=True)

    def normalise(self, weights: np.ndarray, total: np.ndarray, dtype: str) -> np.ndarray:
        return weights / total

    def distribution(self, x: np.ndarray, dtype: str) -> np.ndarray:
        """Softmax over the last axis."""
        weights = self.weights(x, self.top(x), dtype)
        return self.normalise(weights, self.total(weights, dtype), dtype)

    def evaluate(self, a: Arguments, precision: Precision) -> Answer:
        dtype, axis = self.result_dtype(a), self.axis(a)
        x = np.moveaxis(f64(a.x), axis, -1)
        with np.errstate(all="ignore"):
            value = self.distribution(x, dtype)
            budget = known_places(value, self.budget(x, value, dtype, precision))
        return Answer(np.moveaxis(value, -1, axis), np.moveaxis(budget, -1, axis))

    def budget(self, x: np.ndarray, value: np.ndarray, dtype: str, precision: Precision) -> np.ndarray:
        """Budget over the last axis; n entries, u the unit of the class, a that of float32, in which all classes sum.

        The distance d = max - x is rounded once in the class; through exp2 its product with log2(e) has two more
        roundings, of float32: ds = d(u + 2a), and weights_growth(ds) covers both the weight and the sum. Library
        calls: exp, the quotient, and one for each time that a one-pass kernel meets a new maximum and rescales. The sum
        costs (n+1)a, storing weight, sum and quotient 3u. An underflowing weight costs its floor, in the sum n of them
        (the sum is at least 1). An entry of -inf is 0 exactly.
        """
        a, u = unit_roundoff("float32"), arithmetic_unit(precision, dtype)
        n = x.shape[-1]
        distance = x.max(axis=-1, keepdims=True, initial=-np.inf) - x
        # The bound holds for true probabilities; those of a mistaken step would not add up to 1 and blow it up.
        true = Softmax().distribution(x, "float64")
        growth = weights_growth(true, distance * (operations(u, 1) + operations(a, 2)))
        running = np.maximum.accumulate(x, axis=-1)
        rescaled = (running[..., 1:] > running[..., :-1]).sum(axis=-1, keepdims=True)
        floor = rounding(np.zeros(()), dtype if precision is Precision.NATIVE else "float32")
        steps = library(a, 2) + library(a) * rescaled + operations(a, n + 1) + operations(u, 3) + n * floor
        error = value * ((1 + growth) * (1 + steps) - 1) + floor
        return np.where(np.isneginf(x) & (value == 0), 0.0, error + rounding(value + error, dtype))

    def result_dtype(self, a: Arguments) -> str:
        return a.x.dtype.name


def _linear(
    id: str, text: str, level: Level = Level.MUST, aspect: Aspect = Aspect.VALUE, source: str = ""
) -> Requirement:
    return Requirement(id, text, "linear", level, aspect, source or COURSE_LINEAR)


LIN_01 = _linear("LIN-01", "the result is x · weightᵀ + bias, summed over the last axis of x")
LIN_02 = _linear("LIN-02", "the bias is added exactly once to every row, and None adds nothing")
LIN_03 = _linear(
    "LIN-03", "sums are accumulated in float32 in every dtype, also over thousands of features", source="PROPERTIES X5"
)
LIN_04 = _linear(
    "LIN-04", "a batch is the stack of its rows, for any leading dims, none and zero rows too", source="PROPERTIES X3"
)
LIN_05 = _linear(
    "LIN-05",
    "x, weight and bias may each be a strided view: the result is that of their copies",
    source="PROPERTIES X1",
)
LIN_06 = _linear(
    "LIN-06",
    "every number of rows, features and outputs is right, also just beside tile sizes (8, 32, 64), and every output is written",
    source="mlx#665, mlx#4250; PROPERTIES X2, X10",
)
LIN_07 = _linear("LIN-07", "the result is N..×O in the dtype of x", aspect=Aspect.DTYPE, source="PROPERTIES X4")
LIN_08 = _linear("LIN-08", "no argument is changed", source="PROPERTIES X6")
LIN_09 = _linear(
    "LIN-09",
    "a call depends on its arguments alone: repeated, it is the same bit for bit, whatever ran in between",
    source="PROPERTIES X7, X11",
)
LIN_10 = _linear(
    "LIN-10",
    "a weight that is not O×I and a bias of another length than O are refused; one of length 1, which broadcasts, is left open",
    aspect=Aspect.GUARD,
    source="PROPERTIES X9",
)
LIN_11 = _linear(
    "LIN-11",
    "a NaN or infinity in a row of x stays in that row of the result",
    source="PROPERTIES X3, judging",
)
LIN_12 = _linear(
    "LIN-12",
    "a NaN or infinity in a row of weight shows in that output of every row, and in no other",
    source="PROPERTIES QZ7, judging",
)
LIN_13 = _linear(
    "LIN-13",
    "a weight or bias in float32 beside an x in half precision is refused, or read for its numbers",
    Level.SHOULD,
    Aspect.GUARD,
    source="PROPERTIES X9",
)


def _silu(
    id: str, text: str, level: Level = Level.MUST, aspect: Aspect = Aspect.VALUE, source: str = ""
) -> Requirement:
    return Requirement(id, text, "silu", level, aspect, source or COURSE_SILU)


SILU_01 = _silu(
    "SILU-01",
    "the result is x · sigmoid(x), accurate relative to itself on [-20, 20] in every dtype, also where it is tiny",
    source="skyzh/tiny-llm db71f15; PROPERTIES ML2",
)
SILU_02 = _silu(
    "SILU-02",
    "a finite x of any size is safe: x where it is large, 0 where it is large and negative, never NaN",
    source="PROPERTIES ML2, X5",
)
SILU_03 = _silu("SILU-03", "silu(x) - silu(-x) is x", source="PROPERTIES ML2")
SILU_04 = _silu("SILU-04", "NaN gives NaN in its own place alone, and +inf gives +inf", source="PROPERTIES, judging")
SILU_05 = _silu(
    "SILU-05",
    "the result has the shape and dtype of x, for any shape, scalar and empty too",
    aspect=Aspect.DTYPE,
    source="PROPERTIES X4",
)
SILU_06 = _silu("SILU-06", "x may be a strided view: the result is that of its copy", source="PROPERTIES X1")
SILU_07 = _silu("SILU-07", "the argument is not changed", source="PROPERTIES X6")
SILU_08 = _silu(
    "SILU-08",
    "a call depends on its argument alone: repeated, it is the same bit for bit, whatever ran in between",
    source="PROPERTIES X7, X11",
)
SILU_09 = _silu(
    "SILU-09",
    "every size is right, also just beside vector and block widths, and every element is written",
    source="PROPERTIES X2, X10",
)


def _softmax(
    id: str, text: str, level: Level = Level.MUST, aspect: Aspect = Aspect.VALUE, source: str = ""
) -> Requirement:
    return Requirement(id, text, "softmax", level, aspect, source or COURSE_LINEAR)


SMAX_01 = _softmax("SMAX-01", "the result is exp(x) over its sum along the axis")
SMAX_02 = _softmax(
    "SMAX-02", "the axis is the one asked for, counted from the front or, negative, from the back; the last by default"
)
SMAX_03 = _softmax(
    "SMAX-03",
    "logits of any finite size are safe: adding a constant to a row changes nothing, and nothing overflows",
    source="mlx d935276de, flashinfer d7f2c6464; PROPERTIES SD7, SA8",
)
SMAX_04 = _softmax(
    "SMAX-04",
    "an entry of -inf gets exactly 0, and the finite entries of its row are right",
    source="flashinfer 1b9ba2541; PROPERTIES SA8",
)
SMAX_05 = _softmax(
    "SMAX-05", "sums are accumulated in float32 in every dtype, also over thousands of entries", source="PROPERTIES X5"
)
SMAX_06 = _softmax(
    "SMAX-06",
    "rows are independent: each has its own maximum and sum, and a NaN fills its row and no other",
    source="PROPERTIES X3, SA5",
)
SMAX_07 = _softmax("SMAX-07", "the result has the shape and dtype of x", aspect=Aspect.DTYPE, source="PROPERTIES X4")
SMAX_08 = _softmax("SMAX-08", "x may be a strided view: the result is that of its copy", source="PROPERTIES X1")
SMAX_09 = _softmax("SMAX-09", "the argument is not changed", source="PROPERTIES X6")
SMAX_10 = _softmax(
    "SMAX-10",
    "a call depends on its arguments alone: repeated, it is the same bit for bit, whatever ran in between",
    source="PROPERTIES X7, X11",
)
SMAX_11 = _softmax(
    "SMAX-11", "an axis that x does not have is refused", Level.SHOULD, Aspect.GUARD, source="PROPERTIES X9"
)
SMAX_12 = _softmax(
    "SMAX-12",
    "every length of a row is right, also just beside vector and block widths (4, 32, 1024), and every element is written",
    source="PROPERTIES X2, X10",
)


CONTRACT = Contract(
    component="linear",
    title="linear layer, SiLU, softmax",
    version=1,
    operations=(Linear, Silu, Softmax),
    envelope={
        "dtypes": ("float32", "float16", "bfloat16"),
        "bias": (False, True),
        "axes": (-1, 0, 1, -2, 2, -3),
        "leading_dims": ((), (1,), (2,), (2, 3), (2, 1, 3), (9, 2)),
        "features": 2**18,
    },
    requirements=tuple(value for value in list(globals().values()) if isinstance(value, Requirement)),
)
