"""Root mean square norm.

Shapes: x N..×D, weight D, result N..×D. Every row of D features is divided by the root of its mean square plus eps and
multiplied by the weight, channel by channel. The order of roundings is part of the contract: statistics and quotient
in float32, rounded to the dtype of x, then multiplied by the weight in that dtype.

Sources: Zhang and Sennrich 2019, section 3; Llama's reference code for the order of roundings; the tiny-llm course,
week 1 day 4.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from inferspec.spec.contract import Answer, Arguments, Aspect, Contract, Level, Operation, Requirement, Signature
from inferspec.spec.linear import known_places
from inferspec.spec.numerics import Precision, dot, f64, library, operations, round_to, rounding, unit_roundoff

COURSE_RMS_NORM = "tiny-llm course, week 1 day 4"
DECISIONS = "PROPERTIES, decisions"


class RMSNorm(Operation):
    """x / sqrt(mean(x²) + eps) · weight, over the last axis."""

    signature = Signature.parse("RMSNorm(dims, weight, eps=1e-5)(x)")
    plain = "rms_norm"
    implied = frozenset({"dims"})
    loaded: ClassVar = {"weight": ("weight", "scale", "gamma", "g")}
    narrows: ClassVar = {"eps": ("eps", (1e-5,))}
    unsaid = frozenset({"eps"})

    def guard(self, a: Arguments) -> None:
        self.guard_weight(a)
        self.guard_features(a)

    def guard_weight(self, a: Arguments) -> None:
        if a.weight.shape != (a.dims,):
            raise ValueError(f"weight is {a.weight.shape}, not {(a.dims,)}")

    def guard_features(self, a: Arguments) -> None:
        if a.x.ndim == 0 or a.x.shape[-1] != a.dims:
            raise ValueError(f"x is {a.x.shape}, its last dim is not dims = {a.dims}")

    # The steps, in the order of the formula.

    def statistics(self, x: np.ndarray, a: Arguments) -> np.ndarray:
        """The mean square of each row, N..×1."""
        return np.mean(x * x, axis=-1, keepdims=True)

    def eps(self, a: Arguments) -> float:
        return float(a.eps)

    def root(self, mean_square: np.ndarray, eps: float) -> np.ndarray:
        return np.sqrt(mean_square + eps)

    def normalised(self, x: np.ndarray, a: Arguments) -> np.ndarray:
        return x / self.root(self.statistics(x, a), self.eps(a))

    def gain(self, a: Arguments) -> np.ndarray:
        """What each channel is multiplied by."""
        return f64(a.weight)

    def scaled(self, normalised: np.ndarray, gain: np.ndarray, a: Arguments) -> np.ndarray:
        return normalised * gain

    def evaluate(self, a: Arguments, precision: Precision) -> Answer:
        """Budget. The statistics of both classes are in float32; d is the error of the quotient (statistics_error).

        The quotient is rounded to the dtype and so is its product with the weight:
            dn = |n| d + rounding of n;   budget = dn |weight| + rounding of the result.
        Class `native` also rounds the inverse root to the dtype before it multiplies x.
        """
        dtype = a.x.dtype.name
        with np.errstate(all="ignore"):
            x, gain = f64(a.x), self.gain(a)
            normalised = self.normalised(x, a)
            value = self.scaled(normalised, gain, a)
            error = np.abs(normalised) * self.statistics_error(x, a)
            if precision is Precision.NATIVE:
                error = error + rounding(1 / self.root(self.statistics(x, a), self.eps(a)), dtype) * np.abs(x)
            error = error + rounding(np.abs(normalised) + error, dtype)
            budget = error * np.abs(gain)
            budget = budget + rounding(np.abs(value) + budget, dtype)
        return Answer(value, known_places(value, budget))

    def statistics_error(self, x: np.ndarray, a: Arguments) -> np.ndarray:
        """Bound on the relative error of the float32 quotient, N..×1.

        The mean of D squares is a dot product, then eps is rounded and added, and squares may underflow:
            r = (D + 1)a + 2a + underflow / (mean + eps).
        The inverse root halves r, since (1 - r)^(-1/2) - 1 <= r/2 + r² for r <= 1/2, and is one or two library calls
        (a root and a quotient); the product with x is one more rounding: d = r/2 + r² + 16a + a.
        """
        unit = unit_roundoff("float32")
        mean = self.statistics(x, a)
        underflow = rounding(np.zeros(()), "float32") / (mean + self.eps(a))
        r = np.minimum(dot(np.ones(()), x.shape[-1], unit) + operations(unit, 2) + underflow, 0.5)
        return r / 2 + r * r + library(unit, 2) + operations(unit, 1)

    def finish(self, value: np.ndarray, a: Arguments) -> np.ndarray:
        """Round in the contract's order: first the quotient, then its product with the weight."""
        with np.errstate(all="ignore"):
            quotient = f64(round_to(self.normalised(f64(a.x), a), a.x.dtype.name))
            return round_to(self.scaled(quotient, self.gain(a), a), self.result_dtype(a))

    def exact_rounding(self, a: Arguments) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """What the order of roundings leaves no doubt about: values in the dtype, `decided` and `telling`.

        An honest float32 quotient lies in [n(1 - d), n(1 + d)]. Where both ends round to one number of the dtype,
        the answer is decided: that number times the weight, rounded once (the product is exact in float64). Of
        those, `telling` marks the elements where multiplying by the weight in float32 and rounding once gives another
        number, wherever in the interval the quotient is. In float32 the interval is wider than an ulp: nothing is
        decided.
        """
        dtype = a.x.dtype.name
        with np.errstate(all="ignore"):
            x, gain = f64(a.x), f64(a.weight)
            n, d = self.normalised(x, a), self.statistics_error(x, a)
            ends = n * (1 - d), n * (1 + d)
            low, high = (f64(round_to(end, dtype)) for end in ends)
            values = round_to(low * gain, dtype)
            decided = (low == high) & np.isfinite(values.astype(np.float64)) & (dtype != "float32")
            late = [round_to(end * gain * slack, dtype) for end in ends for slack in self._product_slack()]
        telling = decided & np.logical_and.reduce([other == late[0] for other in late]) & (late[0] != values)
        return values, decided, telling

    def _product_slack(self) -> tuple[float, float]:
        unit = unit_roundoff("float32")
        return 1 - unit, 1 + unit

    def result_dtype(self, a: Arguments) -> str:
        return a.x.dtype.name


def _rms(id: str, text: str, level: Level = Level.MUST, aspect: Aspect = Aspect.VALUE, source: str = "") -> Requirement:
    return Requirement(id, text, "RMSNorm", level, aspect, source or COURSE_RMS_NORM)


RMS_01 = _rms(
    "RMS-01", "the result is x / sqrt(mean(x²) + eps) · weight, the mean over the last axis alone, for any leading dims"
)
RMS_02 = _rms(
    "RMS-02",
    "eps is added to the mean square, inside the root, as it was given, also where it is larger than the mean square",
)
RMS_03 = _rms(
    "RMS-03",
    "each channel is multiplied by its own weight as it is: 1 gives unit mean square, 0 gives 0",
    source="Liger-Kernel a8e433b5; PROPERTIES RN1",
)
RMS_04 = _rms(
    "RMS-04",
    "statistics are in float32: half-precision rows of values from 1e-4 to 6e4 and rows of 4096 and more neither overflow nor lose accuracy",
    source="PROPERTIES RN1, X5",
)
RMS_05 = _rms(
    "RMS-05", "with an eps that does not count, scaling x by 1e-3 to 1e3 changes nothing", source="PROPERTIES RN1"
)
RMS_06 = _rms(
    "RMS-06",
    "the quotient is rounded to the dtype of x, then multiplied by the weight in that dtype, bit for bit",
    aspect=Aspect.ROUNDING,
    source=f"vllm#42325; {DECISIONS}; PROPERTIES RN2",
)
RMS_07 = _rms("RMS-07", "a row of zeros gives zeros, never NaN")
RMS_08 = _rms(
    "RMS-08",
    "rows are independent: a batch is the stack of its rows for any leading dims, and NaN stays in its row",
    source="PROPERTIES X3",
)
RMS_09 = _rms(
    "RMS-09",
    "every size is right, no row among them, and every element written, also just beside the brackets of kernels (32, 64, 256, 512, 1024)",
    source="mlx a5a684db5; PROPERTIES X2, X10",
)
RMS_10 = _rms(
    "RMS-10",
    "x or weight given as a strided view gives the same result as its copy",
    source="vllm#22701; PROPERTIES X1",
)
RMS_11 = _rms(
    "RMS-11", "the result has the shape and dtype of x", aspect=Aspect.DTYPE, source="mlx-lm cff7273a; PROPERTIES X4"
)
RMS_12 = _rms("RMS-12", "neither x nor weight is changed", source="PROPERTIES X6")
RMS_13 = _rms(
    "RMS-13",
    "a call depends on its arguments alone: repeated, it is the same bit for bit, whatever other eps or weight was used in between",
    source="PROPERTIES X7, X11",
)
RMS_14 = _rms(
    "RMS-14",
    "a weight whose length is not dims and an x whose last dim is not dims are refused; one of a single channel, which broadcasts, is left open",
    aspect=Aspect.GUARD,
    source="mlx 76f275b4d; PROPERTIES X9",
)
RMS_15 = _rms(
    "RMS-15",
    "a weight in float32 beside an x in half precision is refused, or read for its numbers",
    Level.SHOULD,
    Aspect.GUARD,
    source="PROPERTIES X9",
)
RMS_16 = _rms(
    "RMS-16",
    "a NaN is not hidden: its whole row is NaN",
    Level.SHOULD,
    source="IEEE 754, section 6.2; PROPERTIES X3",
)


CONTRACT = Contract(
    component="rms_norm",
    title="root mean square norm",
    version=1,
    operations=(RMSNorm,),
    envelope={
        "dtypes": ("float32", "float16", "bfloat16"),
        "leading_dims": ((), (1,), (2,), (2, 3), (33,), (2, 1, 3), (130,), (9, 2)),
        "eps": (1e-5, 1e-6, 1e-12, 1e-3, 0.5),
        "features": 2**14,
    },
    requirements=tuple(value for value in list(globals().values()) if isinstance(value, Requirement)),
)
