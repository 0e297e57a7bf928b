"""The budgets of the metrics hold for clocks of any unit."""

from __future__ import annotations

import numpy as np
import pytest

from inferspec.spec.contract import Arguments
from inferspec.spec.metrics import AggregateMetrics, RequestMetrics
from inferspec.spec.numerics import Precision

UNITS = (1e3, 1e6, 1e9, 60.0)
"""Milliseconds and so on, and parts of a minute: what a second counts in them."""


def long_wait(seed: int) -> Arguments:
    """A request that waited for seconds and then had its tokens in milliseconds: little is left of what was rounded."""
    random = np.random.default_rng(seed)
    arrival = float(random.uniform(-10, 10))
    times = arrival + random.uniform(0.5, 5) + np.cumsum(random.uniform(0, 0.05, random.integers(2, 6)))
    return Arguments(arrival=arrival, token_times=times.tolist())


def in_units(a: Arguments, units: float) -> np.ndarray:
    return (np.array(a.token_times) - a.arrival) * units / units


@pytest.mark.parametrize("units", UNITS)
def test_gaps_and_their_mean_are_right_whatever_the_clock_counts(units):
    for seed in range(2000):
        a = long_wait(seed)
        right, elapsed = RequestMetrics().evaluate(a, Precision.FLOAT32), in_units(a, units)
        gaps = np.diff(elapsed)
        assert (np.abs(gaps - right["itl"].value) <= right["itl"].budget).all()
        for mean in (gaps.sum() / len(gaps), (elapsed[-1] - elapsed[0]) / len(gaps)):
            assert abs(mean - right["tpot"].value) <= right["tpot"].budget


@pytest.mark.parametrize("units", UNITS)
def test_rates_are_right_whatever_the_clock_counts(units):
    for seed in range(2000):
        a = long_wait(seed)
        many = Arguments(arrivals=[a.arrival], token_times=[a.token_times], prompt_tokens=[97], cached_tokens=[0])
        right, span = AggregateMetrics().evaluate(many, Precision.FLOAT32), in_units(a, units)[-1]
        for part, count in (("output_rate", len(a.token_times)), ("prefill_rate", 97)):
            assert abs(count / span - right[part].value) <= right[part].budget
