"""Is a mistake at position 0 the matter of the one requirement that is about it?"""

import numpy as np
import pytest

from inferspec.conformance.judging.trial import Trial
from inferspec.conformance.subject import LocalSubject
from inferspec.conformance.suite import Profile, all_tests
from inferspec.spec import contract
from inferspec.spec.rope import RoPE

KIT = contract("rope")


def failing(operation: type[RoPE]) -> set[str]:
    """The requirements of which a test does not pass."""
    trials = [
        (test, Trial(LocalSubject({"RoPE": operation}), test.requirement))
        for test in all_tests()
        if test.requirement in KIT.requirements
    ]
    for test, trial in trials:
        test.run(trial, Profile("quick", shrink=False, diagnose=False))
    return {test.requirement.id for test, trial in trials if trial.outcome.state != "passed"}


@pytest.mark.parametrize("cosine", [1 - 2.0**-24, 1 - 2.0**-23])
def test_a_cosine_of_0_that_is_a_last_bit_off_turns_position_0_and_fails_nothing_else(cosine):
    class Off(RoPE):
        def coefficients(self, angles, a):
            cos, sin = super().coefficients(angles, a)
            return np.where(angles == 0, cosine, cos), sin

    assert failing(Off) == {"ROPE-08"}


def test_a_factor_that_shows_at_position_0_fails_more_than_that():
    class Scaled(RoPE):
        def coefficients(self, angles, a):
            cos, sin = super().coefficients(angles, a)
            return 1.01 * cos, 1.01 * sin

    assert failing(Scaled) > {"ROPE-08"}
