"""What the checks of losslessness detect: the enumeration is exact, the count of a long request has a stated power."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from inferspec.conformance import test_sampling_generators, test_speculative
from inferspec.conformance.calls import Call
from inferspec.conformance.inputs.drafting import COUNTED
from inferspec.conformance.judging.trial import Nonconformance, Trial
from inferspec.conformance.subject import LocalSubject
from inferspec.conformance.suite import Profile, all_tests
from inferspec.spec import contract
from inferspec.spec.duet import distribution
from inferspec.spec.lossless import Pair, cells, gone_on, joint
from inferspec.spec.numerics import FALSE_ALARM, STATISTICAL_CHECKS, relative_entropy_limit
from inferspec.spec.speculative import Verify
from inferspec.spec.test_sampling import moved

ALARM = FALSE_ALARM / STATISTICAL_CHECKS

DETECTED = {3: 0.27, 4: 0.27, 5: 0.29}
"""Ids of a distribution -> the distance in total variation that COUNTED draws detect with 99 % probability or more."""

QUARTERS = tuple(Fraction(n, 4) for n in (1, 2, 1, 0)), tuple(Fraction(n, 4) for n in (1, 0, 2, 1))
PAIR = Pair(4, 1, {(): QUARTERS[0]}, {(): QUARTERS[1], **{(token,): QUARTERS[token % 2] for token in range(4)}})


def test_cells_are_all_that_can_happen():
    assert sum(cell.chance for cell in cells(PAIR)) == 1
    assert sum(joint(PAIR).values()) == 1


def test_verification_has_the_joint_distribution_of_the_target_exactly():
    assert likely(emitted(Verify())) == likely(joint(PAIR))


def test_a_draw_from_the_targets_row_has_not():
    wrong = type("Wrong", (Verify,), {"residual": lambda self, q, p: p})
    found, wanted = emitted(wrong()), joint(PAIR)
    # Id 1, which the target cannot give, is drafted in half of all rounds and a quarter of those drawn anew are 0.
    assert found[0, 0] - wanted[0, 0] == Fraction(1, 2) * Fraction(1, 4) * QUARTERS[0][0]


def likely(found: dict[tuple[int, ...], Fraction]) -> dict[tuple[int, ...], Fraction]:
    return {text: chance for text, chance in found.items() if chance}


def emitted(operation: Verify) -> dict[tuple[int, ...], Fraction]:
    """The distribution of what comes out, gone on with by the target."""
    outputs: dict[tuple[int, ...], Fraction] = {}
    for cell in cells(PAIR):
        ids = operation.verified(list(cell.draft_tokens), cell.draft_probs, cell.target_probs, cell.uniform)
        outputs[tuple(ids)] = outputs.get(tuple(ids), Fraction(0)) + cell.chance
    return gone_on(PAIR, outputs)


def test_an_enumeration_runs_every_combination_once():
    seen = []

    def run(numbers):
        first = next(numbers)
        seen.append([first, next(numbers)] if first < 0.5 else [first])
        return [int(first * 2)]

    assert distribution(run, 2, 1, 4).tolist() == [0.5, 0.5, 0.0]
    assert seen == [[first, second] for first in (0.125, 0.375) for second in (0.125, 0.375, 0.625, 0.875)] + [
        [0.625],
        [0.875],
    ]


def test_an_output_of_another_length_is_told_apart():
    assert distribution(lambda numbers: [0] * (1 + int(next(numbers) * 2)), 2, 1, 2).tolist() == [0.5, 0.0, 0.5]


def test_an_enumeration_that_takes_ever_more_numbers_ends():
    with pytest.raises(ValueError, match="more than 4096 runs"):
        distribution(lambda numbers: [int(next(numbers)) for _ in range(20)], 2, 1, 2)


@pytest.mark.parametrize("size", DETECTED)
def test_a_distribution_that_far_off_is_detected(size):
    limit = relative_entropy_limit(COUNTED, size, ALARM)
    for ratio in (1.0, 4.0):
        chances = ratio ** -np.arange(size, dtype=float)
        chances /= chances.sum()
        truth = moved(chances, DETECTED[size])
        observed = np.random.default_rng(0).multinomial(COUNTED, truth, 2000) / COUNTED
        with np.errstate(divide="ignore", invalid="ignore"):
            entropies = np.where(observed > 0, observed * np.log(observed / chances), 0.0).sum(axis=-1)
        assert np.mean(entropies > limit) >= 0.99, (ratio, np.mean(entropies > limit))


def test_frequencies_that_are_off_are_told_by_their_distance():
    with pytest.raises(Nonconformance, match=r"not drawn by the target's probabilities: .* 0\.25 off"):
        test_speculative.as_likely(Call("speculative_generate", {}), [0, 0, 0, 1] * COUNTED, np.array([0.5, 0.5]))


def test_too_few_ids_are_no_proof():
    with pytest.raises(Nonconformance, match=f"3 ids came after one kind of history, not {COUNTED}"):
        test_speculative.as_likely(Call("speculative_generate", {}), [0, 1, 0], np.array([0.5, 0.5]))


def test_the_checks_of_this_component_and_of_sampling_share_the_false_alarms(monkeypatch):
    checks: list[tuple[float, ...]] = []
    for suite, names in (
        (test_sampling_generators, ("relative_entropy_limit", "most_draws", "sure_to_come")),
        (test_speculative, ("relative_entropy_limit",)),
    ):
        for name in names:
            original = getattr(suite, name)
            monkeypatch.setattr(suite, name, lambda *a, original=original: checks.append(a) or original(*a))
    for component in ("sampling", "speculative"):
        subject = LocalSubject({op.signature.operation: op for op in contract(component).operations})
        for test in all_tests():
            if test.requirement in contract(component).requirements and not test.inputs and "golden" not in test.name:
                trial = Trial(subject, test.requirement)
                test.run(trial, Profile())
                assert trial.outcome.state == "passed", trial.outcome.message
    assert 8 < len(checks) <= STATISTICAL_CHECKS, len(checks)
    assert {alarm for *_, alarm in checks} == {ALARM}
