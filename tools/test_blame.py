"""What one mistake costs: its own requirement, with a sentence that says what is wrong, and none of those beside it."""

from __future__ import annotations

import pytest

from inferspec.conformance.judging.trial import Outcome, Trial
from inferspec.conformance.suite import Profile, all_tests
from inferspec.spec import contract
from inferspec.tools.faults import local_subject

PROFILE = Profile(shrink=False, diagnose=False)


def outcomes(component: str, fault: str, requirement: str = "") -> list[Outcome]:
    """What the tests of a requirement, the fault's own by default, find of a fault."""
    about = contract(component)
    wrong = next(one for one in about.faults if one.name == fault)
    subject = local_subject(about, wrong.kills.name, about.faulty(wrong))
    found = []
    for test in all_tests():
        if test.requirement.id == (requirement or wrong.kills.id):
            trial = Trial(subject, test.requirement)
            test.run(trial, PROFILE)
            found.append(trial.outcome)
    return found


@pytest.mark.parametrize("beside", ["SCHED-25", "SCHED-38", "SCHED-42"])
@pytest.mark.parametrize("fault", ["scheduler-one-request-more", "scheduler-budget-overrun", "scheduler-overtakes"])
def test_a_scheduler_s_mistake_does_not_cost_what_its_refusals_and_full_pools_keep(fault, beside):
    assert {one.state for one in outcomes("scheduler", fault, beside)} == {"passed"}


@pytest.mark.parametrize(
    "fault", [fault for fault in contract("batching").faults if fault.kills.id in ("BATCH-24", "BATCH-27")]
)
def test_a_step_that_is_not_refused_and_shows_nothing_is_told_as_such(fault):
    told = [one.message for one in outcomes("batching", fault.name) if one.state != "passed"]
    assert told
    assert all("is not refused" in message for message in told)
