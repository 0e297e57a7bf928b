"""Figures of repeated measurements: spread, ratios with confidence intervals, and the noise of a run."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

RESAMPLES = 2000
CONFIDENCE = 0.95

Times = Mapping[int, float]
"""Seconds by the number of the round in which they were measured."""


@dataclass(frozen=True)
class Spread:
    """Median and quartiles of several measurements."""

    median: float
    low: float
    high: float

    @classmethod
    def of(cls, values: Sequence[float]) -> Spread:
        """Of at least one value."""
        low, median, high = np.percentile(values, [25, 50, 75])
        return cls(float(median), float(low), float(high))


@dataclass(frozen=True)
class Ratio:
    """How many times as fast one contender is as another, with the ends of its interval.

    The ends are None where fewer than two rounds have both. rounds: how many have.
    """

    value: float
    low: float | None
    high: float | None
    rounds: int

    @property
    def settled(self) -> bool:
        """Whether there is an interval."""
        return self.low is not None

    def apart_from_one(self, noise: float = 1.0) -> bool:
        """Whether the whole interval lies beyond a band of that factor around 1."""
        return self.low is not None and self.high is not None and (self.low > noise or self.high < 1 / noise)


def speedup(times: Times, others: Times, seed: int = 0) -> Ratio | None:
    """How many times as fast `times` are as `others`; None where no round has both.

    In each round the two met the same machine, so what is looked at is the ratio in each round: its median, and the
    percentiles of the medians of resampled rounds (paired bootstrap; Efron and Tibshirani 1993, chapter 13). Of n
    rounds that interval is at most their range, which holds the median but for a chance of 2^(1-n): few rounds say little.
    """
    logs = _log_ratios(times, others)
    if not logs.size:
        return None
    low, high = _interval(_resampled(logs, seed)) if logs.size > 1 else (None, None)
    return Ratio(math.exp(float(np.median(logs))), low, high, logs.size)


def change(before: tuple[Times, Times], after: tuple[Times, Times], seed: int = 0) -> Ratio | None:
    """How many times as much time a contender takes after as before, each by its reference in its own run.

    Each pair: seconds of the contender and of the reference. The two runs are resampled apart.
    """
    old, new = (_log_ratios(reference, times) for times, reference in (before, after))
    if not old.size or not new.size:
        return None
    value = math.exp(float(np.median(new) - np.median(old)))
    rounds = min(old.size, new.size)
    if rounds < 2:
        return Ratio(value, None, None, rounds)
    low, high = _interval(_resampled(new, seed) - _resampled(old, seed + 1))
    return Ratio(value, low, high, rounds)


def noise(again: Ratio | None) -> float | None:
    """The factor by which a run errs: how far from 1 the interval of a contender against itself reaches."""
    if again is None or again.low is None or again.high is None:
        return None
    return max(again.high, 1 / again.low, 1.0)


def _log_ratios(times: Times, others: Times) -> np.ndarray:
    """log(other / own) of every round that has both."""
    common = sorted(set(times) & set(others))
    return np.array([math.log(others[k] / times[k]) for k in common])


def _resampled(logs: np.ndarray, seed: int) -> np.ndarray:
    """Medians of RESAMPLES draws with replacement."""
    drawn = np.random.default_rng(seed).integers(0, logs.size, (RESAMPLES, logs.size))
    return np.median(logs[drawn], axis=1)


def _interval(medians: np.ndarray) -> tuple[float, float]:
    outside = (1 - CONFIDENCE) / 2
    low, high = np.exp(np.quantile(medians, [outside, 1 - outside]))
    return float(low), float(high)
