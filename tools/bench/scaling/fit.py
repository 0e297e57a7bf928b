"""Power laws through measurements: the exponent with which something grows, and its confidence interval."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

from inferspec.tools.bench.statistics import CONFIDENCE

KNOWN = {0.0: "not at all", 0.5: "with the square root", 1.0: "linearly", 2.0: "with the square"}


@dataclass(frozen=True)
class Fit:
    """y = factor · x^exponent. low, high: of the exponent, None where too few sizes leave no doubt to estimate.

    last: the exponent between the last two sizes: a sum of a constant and a power grows faster and faster.
    """

    exponent: float
    low: float | None
    high: float | None
    factor: float
    last: float

    @property
    def words(self) -> str:
        """How it grows."""
        if self.low is None or self.high is None:
            return f"about as x^{self.exponent:.2f}"
        near = [text for power, text in KNOWN.items() if self.low <= power <= self.high]
        if len(near) > 1:
            return "cannot be told from these sizes"
        return near[0] if near else f"as x^{self.exponent:.2f}"


def power_law(x: Sequence[float], y: Sequence[float]) -> Fit | None:
    """Least squares of log y on log x, with Student's interval of the slope; None with fewer than two sizes.

    x, y: positive, one of each for every measurement. Source: Draper and Smith 1998, section 1.4.
    """
    kept = [(a, b) for a, b in zip(x, y, strict=True) if a > 0 and b > 0]
    sizes = sorted({a for a, _ in kept})
    if len(sizes) < 2:
        return None
    u, v = (np.log(np.array(part, float)) for part in zip(*kept, strict=True))
    spread = float(((u - u.mean()) ** 2).sum())
    slope = float(((u - u.mean()) * (v - v.mean())).sum()) / spread
    start = float(v.mean() - slope * u.mean())
    low = high = None
    if (free := len(u) - 2) > 0:
        residual = float(((v - start - slope * u) ** 2).sum())
        reach = student(free) * math.sqrt(residual / free / spread)
        low, high = slope - reach, slope + reach
    return Fit(slope, low, high, math.exp(start), _last(kept, sizes))


def _last(kept: Sequence[tuple[float, float]], sizes: Sequence[float]) -> float:
    """The slope between the medians of the last two sizes."""
    ends = [float(np.median([b for a, b in kept if a == size])) for size in sizes[-2:]]
    return math.log(ends[1] / ends[0]) / math.log(sizes[-1] / sizes[-2])


def student(free: int, confidence: float = CONFIDENCE) -> float:
    """The quantile of Student's distribution that bounds so much of it on both sides.

    Exact for one and two degrees of freedom, else Abramowitz and Stegun 1964, 26.7.5.
    """
    tail = (1 + confidence) / 2
    if free == 1:
        return math.tan(math.pi * (tail - 0.5))
    if free == 2:
        return (2 * tail - 1) * math.sqrt(2 / (4 * tail * (1 - tail)))
    z = NormalDist().inv_cdf(tail)
    terms = (
        z,
        (z**3 + z) / 4,
        (5 * z**5 + 16 * z**3 + 3 * z) / 96,
        (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384,
        (79 * z**9 + 776 * z**7 + 1482 * z**5 - 1920 * z**3 - 945 * z) / 92160,
    )
    return sum(term / free**power for power, term in enumerate(terms))
