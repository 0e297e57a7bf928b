"""The statistical checks of samplers: how seldom they blame an honest generator, and what they detect."""

from __future__ import annotations

import math

import numpy as np
import pytest

from inferspec.conformance import test_sampling_generators as suite
from inferspec.conformance.calls import Call
from inferspec.conformance.inputs.sampling_generators import DRAWS, RARE_DRAWS
from inferspec.conformance.judging.trial import Nonconformance, Trial
from inferspec.conformance.subject import LocalSubject
from inferspec.conformance.suite import Profile, all_tests
from inferspec.spec import contract
from inferspec.spec.numerics import (
    FALSE_ALARM,
    STATISTICAL_CHECKS,
    most_draws,
    relative_entropy_limit,
    sure_to_come,
)

ALARM = FALSE_ALARM / STATISTICAL_CHECKS

DETECTED = {8: 0.039, 12: 0.041, 20: 0.045}
"""Ids of a distribution -> the distance in total variation that DRAWS draws detect with 99 % probability or more."""


def distributions(cells: int) -> list[np.ndarray]:
    """Flat, ordinary and steep ones."""
    return [
        np.exp(-steepness * np.arange(cells)) / np.exp(-steepness * np.arange(cells)).sum()
        for steepness in (0, 0.1, 0.4)
    ]


def moved(chances: np.ndarray, distance: float) -> np.ndarray:
    """A distribution at that distance in total variation, as hard to tell as any: about one half of the probability
    grows by one factor and the other shrinks by one, so that no id stands out."""
    order = np.argsort(-chances)
    up = np.zeros(len(chances), bool)
    for place in order:
        up[place] = chances[up].sum() + chances[place] <= 0.5
    return np.where(up, chances * (1 + distance / chances[up].sum()), chances * (1 - distance / chances[~up].sum()))


def entropies(chances: np.ndarray, truth: np.ndarray, repetitions: int) -> np.ndarray:
    """Relative entropies of as many counts of DRAWS draws from `truth` against `chances`."""
    observed = np.random.default_rng(0).multinomial(DRAWS, truth, repetitions) / DRAWS
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(observed > 0, observed * np.log(observed / chances), 0.0).sum(axis=-1)


@pytest.mark.parametrize("cells", DETECTED)
def test_a_distribution_that_far_off_is_detected(cells):
    limit = relative_entropy_limit(DRAWS, cells, ALARM)
    for chances in distributions(cells):
        truth = moved(chances, DETECTED[cells])
        found = np.mean(entropies(chances, truth, 2000) > limit)
        assert found >= 0.995, (cells, found)


@pytest.mark.parametrize("alarm", [0.05, 0.003])
@pytest.mark.parametrize("cells", [2, 8, 20])
def test_an_honest_generator_passes_the_limit_no_more_often_than_stated(cells, alarm):
    limit = relative_entropy_limit(DRAWS, cells, alarm)
    for chances in distributions(cells):
        assert np.mean(entropies(chances, chances, 10000) > limit) <= alarm


def test_the_limit_is_where_the_bound_is():
    y = DRAWS * relative_entropy_limit(DRAWS, 12, ALARM)
    assert y > 11
    assert -y + 11 * (1 + math.log(y / 11)) <= math.log(ALARM)
    assert relative_entropy_limit(DRAWS, 12, ALARM) < relative_entropy_limit(DRAWS, 20, ALARM)
    assert relative_entropy_limit(DRAWS, 12, ALARM) < relative_entropy_limit(DRAWS, 12, ALARM / 10)


@pytest.mark.parametrize(("draws", "probability"), [(100, 1e-3), (1000, 0.01), (RARE_DRAWS, 2e-5)])
@pytest.mark.parametrize("alarm", [0.01, 1e-4])
def test_rare_events_come_more_often_no_more_often_than_stated(draws, probability, alarm):
    most = most_draws(draws, probability, alarm)
    terms = [math.lgamma(draws + 1) - math.lgamma(c + 1) - math.lgamma(draws - c + 1) for c in range(most + 1)]
    within = sum(
        math.exp(t + c * math.log(probability) + (draws - c) * math.log1p(-probability)) for c, t in enumerate(terms)
    )
    assert 1 - within <= alarm


def test_an_id_of_probability_1e_7_may_come_a_few_times_and_an_impossible_one_never():
    rare, impossible = (most_draws(RARE_DRAWS, chance, ALARM) for chance in (1e-7, 1e-16))
    assert (rare, impossible) == (3, 0)


def test_all_that_is_sure_to_come_fails_to_come_no_more_often_than_stated():
    chances, alarm = np.array([0.5, 0.2, 0.01, 0.004, 0.286]), 1e-3
    sure = sure_to_come(1000, chances, alarm)
    assert sure.tolist() == [True, True, True, False, True]
    assert ((1 - chances[sure]) ** 1000).sum() <= alarm


def test_a_run_makes_no_more_statistical_checks_than_share_the_false_alarms(monkeypatch):
    checks = []
    monkeypatch.setattr(suite, "relative_entropy_limit", lambda *a: checks.append(a) or relative_entropy_limit(*a))
    monkeypatch.setattr(suite, "most_draws", lambda *a: checks.append(a) or most_draws(*a))
    monkeypatch.setattr(suite, "sure_to_come", lambda *a: checks.append(a) or sure_to_come(*a))
    subject = LocalSubject({op.signature.operation: op for op in contract("sampling").operations})
    for test in all_tests():
        if test.requirement in contract("sampling").requirements and not test.inputs and "golden" not in test.name:
            trial = Trial(subject, test.requirement)
            test.run(trial, Profile("nightly"))
            assert trial.outcome.state == "passed", trial.outcome.message
    assert 0 < len(checks) <= STATISTICAL_CHECKS
    assert {alarm for *_, alarm in checks} == {ALARM}


def test_frequencies_that_are_off_are_told_by_their_distance():
    with pytest.raises(Nonconformance, match=r"the ids are not drawn by their probabilities: .* 0\.25 off"):
        suite.as_expected(Call("Sampler", {}), np.array([0, 0, 0, 1] * 1000), np.array([0.5, 0.5]), "ids")
