"""What the suites ask: the calls with which their examples begin, without a subject that answers them."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from typing import Any

from inferspec.conformance.calls import Call
from inferspec.conformance.judging.trial import Trial, Waived
from inferspec.conformance.subject import LocalSubject
from inferspec.conformance.suite import Profile, Test, all_tests
from inferspec.spec import COMPONENTS, contract, contracts
from inferspec.spec.contract import Contract

OPERATIONS = [(c, op.signature.operation) for c in COMPONENTS for op in contract(c).operations]


class Recorder(Trial):
    """Remembers the first call of every example, and ends the example there: neither subject nor oracle computes."""

    def __init__(self, test: Test) -> None:
        operations = {op.signature.operation: op for op in contracted(test).operations}
        super().__init__(LocalSubject(operations), test.requirement)
        self.calls: list[Call] = []

    def observe(self, call: Call, *rest: Any, **more: Any) -> Any:
        self.calls.append(call)
        raise Waived

    answer = observe


def contracted(test: Test) -> Contract:
    """The contract that a test's requirement is of."""
    return next(kit for kit in contracts() if test.requirement in kit.requirements)


def drawn(test: Test, profile: Profile) -> list[Call]:
    """The calls with which the examples of a test begin."""
    recorder = Recorder(test)
    test.run(recorder, profile)
    assert recorder.outcome.state in ("passed", "outside_envelope"), (test.id, recorder.outcome.message)
    return recorder.calls


@functools.cache
def standard(test: str) -> tuple[Call, ...]:
    """What the test of an id asks in the standard profile."""
    return tuple(drawn(next(one for one in all_tests() if one.id == test), Profile()))


@functools.cache
def made(component: str) -> tuple[Call, ...]:
    """What the suites of a component ask in the standard profile."""
    tests = [test for test in all_tests() if test.requirement in contract(component).requirements]
    return tuple(call for test in tests for call in standard(test.id))


def calls_of(component: str, operation: str) -> list[Call]:
    """What those suites ask of one operation."""
    return [call for call in made(component) if call.operation == operation]


def asked(of: str) -> Iterator[Call]:
    """What is asked of a requirement or an operation in the standard profile; by the tests of few examples first."""
    tests = [test for test in all_tests() if of in (test.requirement.id, test.requirement.name)]
    for test in sorted(tests, key=lambda test: (test.examples(Profile()), test.id)):
        yield from standard(test.id)


def reached(calls: Sequence[Call], feature: str) -> set[object]:
    """The values that a feature has among the calls."""
    return {call.features[feature] for call in calls if feature in call.features}


def argument_of(path: str) -> str:
    """What an array is called: ``x``, or ``key`` in any step of a story; "" for one of many in a dict."""
    first, *rest = path.split(".")
    return rest[-1] if rest and first == "steps" else "" if rest else path
