"""Figures of repeated measurements, on numbers whose answer is known."""

from __future__ import annotations

import numpy as np
import pytest

from inferspec.tools.bench import statistics
from inferspec.tools.bench.scaling.fit import power_law, student
from inferspec.tools.bench.statistics import Ratio, Spread, change, noise, speedup


def times(seconds, rounds=20, spread=0.05, seed=0):
    """Seconds that scatter by so much around a value."""
    return dict(enumerate(seconds * np.exp(spread * np.random.default_rng(seed).standard_normal(rounds))))


def test_a_spread_is_median_and_quartiles():
    assert Spread.of([4.0, 1.0, 2.0, 3.0, 100.0]) == Spread(3.0, 2.0, 4.0)


def test_a_speedup_is_how_many_times_as_fast_the_first_is():
    found = speedup(dict.fromkeys(range(8), 1.0), dict.fromkeys(range(8), 4.0))
    assert found == Ratio(4.0, 4.0, 4.0, 8)


@pytest.mark.parametrize("seed", range(20))
def test_a_contender_against_itself_keeps_1_within_its_interval_or_close_to_it(seed):
    found = speedup(times(1, seed=seed), times(1, seed=seed + 100))
    near = noise(found)
    assert not found.apart_from_one(near)
    assert near < 1.1


def test_intervals_of_a_contender_against_itself_leave_1_out_no_more_often_than_they_may():
    outside = sum(speedup(times(1, seed=k), times(1, seed=k + 1000)).apart_from_one() for k in range(200))
    assert outside <= 20


def test_what_slows_a_whole_round_changes_no_ratio():
    drift = np.linspace(1, 10, 20)
    slow = {k: x * drift[k] for k, x in times(2, spread=0.001).items()}
    fast = {k: x * drift[k] for k, x in times(1, spread=0.001, seed=1).items()}
    found = speedup(fast, slow)
    assert found.low > 1.99
    assert found.high < 2.01


def test_only_rounds_that_both_took_part_in_count():
    assert speedup({0: 1.0, 5: 2.0}, {5: 4.0, 9: 100.0}) == Ratio(2.0, None, None, 1)
    assert speedup({0: 1.0}, {1: 1.0}) is None


def test_noise_is_how_far_the_interval_reaches_from_1():
    assert noise(Ratio(1.0, 0.8, 1.1, 9)) == 1.25
    assert noise(Ratio(1.0, None, None, 1)) is None
    assert noise(None) is None


def test_a_change_is_of_ratios_so_that_a_slower_machine_counts_for_nothing():
    before = times(1), times(3, seed=1)
    after = times(10, seed=2), times(30, seed=3)
    found = change(before, after)
    assert not found.apart_from_one(1.1)
    slower = change(before, (times(20, seed=2), times(30, seed=3)))
    assert slower.low > 1.8
    assert slower.high < 2.2


def test_a_resample_of_one_seed_is_always_the_same():
    assert speedup(times(1), times(2, seed=1)) == speedup(times(1), times(2, seed=1))
    assert statistics.RESAMPLES >= 1000


@pytest.mark.parametrize("exponent", [-1.0, 0.0, 0.5, 2.0])
def test_the_interval_of_an_exponent_holds_it_as_often_as_it_says(exponent):
    random, x = np.random.default_rng(0), np.repeat([1.0, 2, 4, 8, 16, 32], 3)
    laws = [power_law(x, 7 * x**exponent * np.exp(0.02 * random.standard_normal(x.size))) for _ in range(400)]
    assert 370 <= sum(law.low < exponent < law.high for law in laws) <= 390
    assert all(law.high - law.low < 0.1 and abs(law.exponent - exponent) < 0.1 for law in laws)


def test_growth_is_told_in_words():
    x = [1.0, 2, 4, 8, 16]
    assert power_law(x, [a * b for a, b in zip(x, (1, 1.01, 0.99, 1.01, 1), strict=True)]).words == "linearly"
    assert power_law(x, [1, 1.01, 0.99, 1.01, 1]).words == "not at all"
    assert power_law(x, [a**1.5 for a in x]).words == "as x^1.50"
    assert power_law(x[:3], [1, 9, 2]).words == "cannot be told from these sizes"
    assert power_law([1, 2], [1, 2]).words == "about as x^1.00"


def test_one_size_alone_has_no_law():
    assert power_law([2, 2, 2], [1, 2, 3]) is None
    assert power_law([1, 2], [0, 0]) is None


@pytest.mark.parametrize(
    ("free", "quantile"), [(1, 12.706), (2, 4.303), (3, 3.182), (5, 2.571), (10, 2.228), (30, 2.042)]
)
def test_quantiles_of_student_are_those_of_the_tables(free, quantile):
    assert round(100 * student(free) / quantile) == 100
