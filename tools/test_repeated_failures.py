"""What was told of a failure is not found out again, and changes no verdict."""

from __future__ import annotations

import pytest

from inferspec.conformance import suite
from inferspec.conformance.calls import Call, Observation
from inferspec.conformance.judging.repeated_failures import FEWER, THOROUGH, Repeats
from inferspec.conformance.judging.trial import Nonconformance, Trial
from inferspec.conformance.subject import LocalSubject
from inferspec.conformance.suite import Profile, all_tests
from inferspec.conformance.tapes import TRIES
from inferspec.spec import contract, rope

RAISES = "raises: KeyError: 'layer {}' (at mine.py:7)"
PROFILE = Profile(thinned=0.2)


def failure(number: int = 0, text: str = RAISES) -> Nonconformance:
    return Nonconformance(text.format(number))


def test_an_error_of_the_same_line_and_words_is_known():
    repeats = Repeats()
    repeats.tell("silu", failure(1), ["fault"])
    assert repeats.told("silu", failure(2)) == ["fault"]
    assert repeats.told("softmax", failure(1)) is None
    assert repeats.told("silu", failure(1, RAISES.replace("7", "8"))) is None
    assert repeats.told("silu", failure(1, "out[0] = 1, oracle 2")) is None


def test_wrong_numbers_are_never_known():
    repeats = Repeats()
    repeats.tell("silu", failure(text="out[0] = 1, oracle 2"), [])
    assert repeats.told("silu", failure(text="out[0] = 1, oracle 2")) is None


def test_the_first_failures_of_an_operation_are_made_as_small_as_can_be():
    repeats = Repeats()
    assert [repeats.tries("silu", TRIES) for _ in range(THOROUGH + 1)] == [TRIES] * THOROUGH + [FEWER]
    assert repeats.tries("softmax", TRIES) == TRIES


def test_a_dictionary_that_explains_nothing_is_not_searched_for_ever():
    repeats = Repeats()
    for _ in range(THOROUGH):
        assert repeats.worth_searching("RoPE")
        repeats.searched("RoPE", [])
    assert not repeats.worth_searching("RoPE")
    likely = repeats.likely("ROPE-07", "RoPE", rope.CONTRACT.faults)
    assert likely
    assert {fault.kills.id for fault in likely} == {"ROPE-07"}


@pytest.mark.parametrize("fault", ["rope-turns-backwards", "rope-offset-plus-one"])
def test_verdicts_are_the_same_whatever_was_told_before(fault):
    kit = contract("rope")
    wrong = next(one for one in kit.faults if one.name == fault)
    tests = [test for test in all_tests() if test.file == "test_rope.py" and test.share > 0.2][:12]

    def found(repeats: Repeats | None) -> list[tuple[str, bool]]:
        trials = [Trial(LocalSubject({"RoPE": kit.faulty(wrong)}), test.requirement) for test in tests]
        for test, trial in zip(tests, trials, strict=True):
            test.run(trial, PROFILE, repeats)
        return [(trial.outcome.state, fault in trial.outcome.diagnosis) for trial in trials]

    assert found(Repeats()) == found(None)


def test_an_error_is_made_smaller_once(monkeypatch):
    class Raises(rope.RoPE):
        def evaluate(self, a, precision):
            raise RuntimeError("no")

    shrunk = []
    monkeypatch.setattr(suite, "shrink", lambda run, tape, tries: shrunk.append(tape))
    tests = [test for test in all_tests() if test.file == "test_rope.py" and test.inputs][:5]
    repeats, texts = Repeats(), []
    for test in tests:
        trial = Trial(LocalSubject({"RoPE": Raises}), test.requirement)
        test.run(trial, PROFILE, repeats)
        texts.append((trial.outcome.state, trial.outcome.message.partition(" (at")[0]))
    assert len(shrunk) == 1
    assert set(texts) == {("failed", "raises: RuntimeError: no")}


def test_what_another_step_was_rightly_refused_for_is_not_what_a_failure_is_known_by():
    trial = Trial(LocalSubject({}), next(test.requirement for test in all_tests() if test.file == "test_scheduler.py"))
    call = Call("Scheduler", {"steps": (("add_stranger", {}), ("schedule", {}))})
    seen = Observation(message="step 1: ValueError: no room; step 2: KeyError: 7")
    repeats = Repeats()
    repeats.tell("Scheduler", trial.objection(call, seen, 2, "nobody runs", False), ["fault"])
    assert repeats.told("Scheduler", trial.objection(call, seen, 2, "nobody runs", False)) == ["fault"]
    seen = Observation(message="step 1: ValueError: no room")
    failure = trial.objection(call, seen, 2, "nobody runs", False)
    repeats.tell("Scheduler", failure, ["another"])
    assert repeats.told("Scheduler", failure) is None
    assert "no room" not in str(failure)
