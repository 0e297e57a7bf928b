"""Dtypes, unit roundoffs and the error bounds from which every budget is composed: the only file with a tolerance.

Notation: u is the unit roundoff of a dtype, so that rounding x gives x(1 + e) with |e| <= u; a is the unit roundoff
of the arithmetic (float32 for the class `float32`, the input's dtype for `native`). Source for the bounds:
N. Higham, Accuracy and Stability of Numerical Algorithms, 2nd ed., chapters 2 and 3.
"""

from __future__ import annotations

import math
from enum import StrEnum
from typing import Any

import ml_dtypes
import numpy as np

DTYPES = ("float32", "float16", "bfloat16")

_NUMPY = {
    "float32": np.dtype(np.float32),
    "float16": np.dtype(np.float16),
    "bfloat16": np.dtype(ml_dtypes.bfloat16),
}
_UNIT = {"float64": 2.0**-53, "float32": 2.0**-24, "float16": 2.0**-11, "bfloat16": 2.0**-8}

# What underflow may cost. GPUs flush float32 subnormals (and bfloat16 ones, which are computed as float32) to zero,
# so the floor is the smallest normal number; float16 subnormals are supported everywhere, so it is their spacing.
_FLOOR = {"float64": 2.0**-1022, "float32": 2.0**-126, "float16": 2.0**-24, "bfloat16": 2.0**-126}

# A library function (exp, cos, rsqrt …) is taken to be good to 4 units in the last place of its arithmetic, that is
# 8 unit roundoffs: the bound of the Metal Shading Language specification, table 8.2, for precise math, which libm and
# SLEEF meet with room to spare.
_LIBRARY_ROUNDOFFS = 8

SHARP = 100.0
"""A comparison counts when the rms of the answer is at least this many budgets."""

UNDERFLOW_GAP = 112.0
"""A softmax logit this far below the largest has weight exactly 0 in every dtype: exp(-104) is below the smallest
float32 subnormal, and 8 are left for the rounding of the logits (measured: 64 is not enough, 112 is)."""

FINEST_STEP = 1.5e-7
"""A quantiser need not take a finer step than this: MLX divides by no less than 1e-7, and moving 0 onto a code may make
that up to half larger (mlx/backend/cpu/quantized.cpp: eps)."""

UNDECIDED = 0.02
"""Share of elements whose last bit hangs on how float32 statistics were summed: about n·2^-24 / 2^-11 for rows of
some hundred elements in float16. A diagnosis of a rounding order overlooks so many."""

FALSE_ALARM = 1e-6
"""With what probability all statistical checks of a run together may reject an honest random generator."""

STATISTICAL_CHECKS = 50
"""How many statistical checks a run makes at most; each gets an equal share of FALSE_ALARM."""

EXPLAINED = 0.1
"""A fault explains a wrong result when what it leaves unexplained is at most this share of the deviation."""


MODEL_LOGITS = 1e-5
"""Largest difference of two float32 runs of a trained model, as a share of its largest logit. Two right ones are at most
4.4e-6 apart (transformers and mlx-lm on SmolLM2, 30 layers), and the subtlest of the mistakes that
`inferspec.tools.model_mistakes` makes, an eps ten times too small, shows 3.8e-4."""


def other_precision(dtype: str) -> float:
    """Largest difference, as a share of the largest logit, of a model that computes in a coarser precision than the float32
    one that it is held against: MODEL_LOGITS with every rounding as large as the dtype's. A wrong model is farther away,
    or it cannot be told from rounding."""
    return MODEL_LOGITS * _UNIT[dtype] / _UNIT["float32"]


DECISIVE = 2.0**-10
"""How far uniform numbers keep from what they are compared with, where an answer is one id and no other: float32 sums of
some hundred probabilities err by 2^-17 at most."""


def mass_slack(size: int, dtype: str) -> float:
    """How far from 1 the sum of a row of so many probabilities in a dtype may be.

    Each is rounded once, which is at most u of it: together u. Two sums in float32 in any order, the one that they were
    divided by and the one that is taken to check, err by size·2^-24 each; the quotient by one rounding. What underflows is
    lost: floor for each.
    """
    a = _UNIT["float32"]
    return operations(_UNIT[dtype], 1) + operations(a, 2 * size + 1) + size * _FLOOR[dtype]


class Precision(StrEnum):
    """The class of arithmetic that a budget is computed for."""

    FLOAT32 = "float32"
    NATIVE = "native"


def numpy_dtype(name: str) -> np.dtype[Any]:
    """Return the NumPy dtype of one of DTYPES."""
    return _NUMPY[name]


def is_float(dtype: np.dtype[Any]) -> bool:
    """Whether the dtype is one of the floating-point dtypes here (NumPy does not count bfloat16 as one)."""
    return dtype.name in _UNIT


def unit_roundoff(dtype: str) -> float:
    """Return u, the largest relative error of rounding to the dtype."""
    return _UNIT[dtype]


def arithmetic_unit(precision: Precision, dtype: str) -> float:
    """Return a, the unit roundoff of the arithmetic of a class on inputs of that dtype."""
    return _UNIT["float32"] if precision is Precision.FLOAT32 else _UNIT[dtype]


def largest(dtype: str) -> float:
    """Return the largest finite number of the dtype."""
    return float(ml_dtypes.finfo(_NUMPY[dtype]).max)


def f64(x: Any) -> np.ndarray:
    """Return the array in float64, exactly."""
    return np.asarray(x).astype(np.float64)


def round_to(value: np.ndarray, dtype: str) -> np.ndarray:
    """Return float64 values rounded once to the dtype, which may be an integer one for values that are whole."""
    with np.errstate(over="ignore", invalid="ignore"):
        return np.asarray(value, np.float64).astype(_NUMPY.get(dtype) or np.dtype(dtype))


def rounding(value: np.ndarray, dtype: str) -> np.ndarray:
    """Bound on rounding `value` to the dtype once: u|value|, and the floor where it underflows."""
    return _UNIT[dtype] * np.abs(value) + _FLOOR[dtype]


def dot(magnitude: np.ndarray, terms: int, unit: float) -> np.ndarray:
    """Bound on a sum of `terms` products in any order: n·a·|x||y| with one more for a final scaling (Higham 3.5).

    magnitude: |x|·|y|, the same product of absolute values.
    """
    return (terms + 1) * unit / (1 - min((terms + 1) * unit, 0.5)) * magnitude


def library(unit: float, calls: int = 1) -> float:
    """Relative bound on that many calls of library functions."""
    return _LIBRARY_ROUNDOFFS * calls * unit


def operations(unit: float, count: int) -> float:
    """Relative bound on `count` successive roundings, to first order with the second included."""
    return count * unit * (1 + count * unit)


def weights_growth(probabilities: np.ndarray, logit_error: np.ndarray) -> np.ndarray:
    """Relative bound on softmax weights whose logits are off by at most `logit_error` (last axis).

    With |s' - s| <= d, p'_j / p_j <= exp(d_j) / sum_k p_k exp(-d_k), and by Jensen's inequality
    1 / E[exp(-d)] <= E[exp(d)]: so p'_j <= p_j · exp(d_j) · E_p[exp(d)]; the bound below is no larger. Where the
    errors are small this is d_j + E_p[d] (PROPERTIES, judging).
    """
    growth = np.exp(np.minimum(logit_error, 300.0))
    mean = (probabilities * growth).sum(axis=-1, keepdims=True)
    return growth * mean - 1.0


def relative_entropy_limit(draws: int, cells: int, alarm: float) -> float:
    """Largest relative entropy (nats) of observed frequencies against the true probabilities, but for a chance `alarm`.

    No asymptotics: for n draws from k cells and e > (k-1)/n, P(D >= e) <= exp(-n·e)·(e·n·exp(1)/(k-1))^(k-1), whatever
    the probabilities: D's moments are bounded by those of a gamma distribution of shape k-1 and rate n (R. Agrawal,
    Finite-sample concentration of the multinomial in relative entropy, IEEE Trans. Inf. Theory 66, 2020). With y = n·e
    the bound falls for y > k-1; its crossing is found by bisection.
    """
    free = max(cells - 1, 1)

    def log_bound(y: float) -> float:
        return -y + free * (1 + math.log(y / free))

    low, high = float(free), 2.0 * free
    while log_bound(high) > math.log(alarm):
        high *= 2
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (middle, high) if log_bound(middle) > math.log(alarm) else (low, middle)
    return high / draws


def most_draws(draws: int, probability: float, alarm: float) -> int:
    """How often an event of that probability may happen in so many draws, but for a chance `alarm`.

    P(c or more) <= (n·p)^c / c!, the expected number of sets of c draws that all hit.
    """
    count, bound = 0, 1.0
    while bound > alarm:
        count += 1
        bound *= draws * probability / count
    return count - 1


def sure_to_come(draws: int, probabilities: np.ndarray, alarm: float) -> np.ndarray:
    """Which events, of these probabilities, happen in so many draws, all of them but for a chance `alarm`.

    P(one of k does not) <= the sum of (1-p)^n, each of which is to be less than alarm / k.
    """
    return np.asarray((1 - probabilities) ** draws * len(probabilities) < alarm)


def within(error: np.ndarray, budget: np.ndarray) -> np.ndarray:
    """Whether each error keeps its budget. The budget itself is computed in float64: a part in 2^40 covers that."""
    with np.errstate(over="ignore"):
        return error <= budget * (1 + 2.0**-40)


def is_sharp(value: np.ndarray, budget: np.ndarray) -> bool:
    """Whether the answer is large enough beside its budget for mistakes to show."""
    with np.errstate(over="ignore"):
        return bool(np.mean(value**2) >= SHARP**2 * np.mean(budget**2))


def oracles_agree(first: np.ndarray, second: np.ndarray, magnitude: float) -> bool:
    """Whether two float64 oracles give one answer: all of a computation's roundings against its largest value."""
    return bool(np.all(np.abs(first - second) <= 2.0**-40 * max(magnitude, 1.0)))


def matmul_class(error: float) -> str:
    """Name the precision of a matrix product of 64 terms from its worst error relative to |x||y|.

    float32 sums err by a few times 2^-24, TF32 rounds the inputs to 11 bits, bfloat16 to 8.
    """
    if error <= dot(np.ones(()), 64, _UNIT["float32"]):
        return "float32"
    return "tf32" if error <= 3 * _UNIT["float16"] else "lower"


# Whole models. A worst-case bound through layers says nothing (it doubles with every one of them), while honest
# float32 models agree to a few parts in 10^7. So a model's budget is that of a probabilistic error analysis (N. Higham
# and T. Mary, A new approach to probabilistic rounding error analysis, SIAM J. Sci. Comput. 41, 2019), done by Monte
# Carlo arithmetic (D. S. Parker, 1997): the float64 oracle runs RUNS times with a random error of the right size put
# on the result of every operation, and what that does to the logits is what rounding does to them.

RUNS = 8
"""Disturbed runs from which a model's budget is estimated."""

SAFETY = 16.0
"""Budget of a model in standard deviations of its logits. An estimate from 8 runs may be 2.5 times too small (chance
1e-4, when a single rounding dominates) and 1e7 comparisons reach 5.5 deviations: together 14."""

_UNIFORM = 3.0**-0.5
"""Standard deviation of a number uniform in (-1, 1)."""

_MANTISSA = {"float32": (24, -125), "float16": (11, -13), "bfloat16": (8, -125)}
"""Bits of the mantissa, and the exponent (of `frexp`) of the smallest normal number."""

_EXPONENT = np.int64(0x7FF << 52)
"""The bits of a float64 that hold its exponent: alone they are the largest power of two that it is not below."""


def dot_deviation(squares: np.ndarray, value: np.ndarray, terms: int, unit: float) -> np.ndarray:
    """Standard deviation of the rounding error of a sum of `terms` products, in recursive order.

    Partial sum S_k is rounded with an error uniform in (-a, a)·|S_k|, each product likewise:
        variance = a²/3 · (sum_k S_k² + sum_k p_k²).
    Products of mean m and any signs make S_k a drift k·m with a random walk, E[S_k²] = (k·m)² + k·q with q the mean of
    p²; summed over k that is n·value²/3 + n·squares/2. Blocked and pairwise sums and fused products err less.

    squares: the sum of the squared products.
    """
    variance = (unit * _UNIFORM) ** 2
    total = np.asarray(value**2)
    total *= variance * terms / 3
    total += (variance * (terms / 2 + 1)) * squares
    return np.sqrt(total, out=total)


def library_deviation(unit: float) -> float:
    """Relative standard deviation of a library function whose error is uniform within `library`."""
    return library(unit) * _UNIFORM


def rounding_deviation(unit: float) -> float:
    """Relative standard deviation of one rounding."""
    return unit * _UNIFORM


def round_at_random(x: np.ndarray, dtype: str, uniform: np.ndarray) -> np.ndarray:
    """Round up or down with chances that make the result right on average; what the dtype holds exactly stays.

    uniform: random numbers in (0, 1), one for each element. Source: Parker 1997; Croci et al. 2022 (stochastic
    rounding).
    """
    bits, smallest = _MANTISSA[dtype]
    # frexp and ldexp say the same number by number, and take several times as long.
    power = (x.view(np.int64) & _EXPONENT).view(np.float64)
    spacing = np.clip(power, 2.0 ** (smallest - 1), 2.0**1023) * 2.0 ** (1 - bits)
    steps = x / spacing
    steps += uniform
    return np.floor(steps, out=steps) * spacing


def model_budget(disturbed: np.ndarray, value: np.ndarray, dtype: str) -> np.ndarray:
    """SAFETY times the standard deviation of the logits of one token, or of all where that is larger.

    disturbed: RUNS×…×V logits of the disturbed runs; value: …×V. Logits of one token share their roundings, so the
    deviation is that of the row; one that the runs happened to spare has that of its neighbours.
    """
    squares = ((disturbed - value) ** 2).mean(axis=(0, -1), keepdims=True)[0]
    deviation = np.sqrt(np.maximum(squares, squares.mean() if squares.size else 0.0))
    return np.broadcast_to(SAFETY * deviation + _FLOOR[dtype], value.shape)
