"""No mistake stumbles: on input that it is not about it gives a result, so that it is rejected for what it is about."""

from __future__ import annotations

import traceback
import warnings
from collections.abc import Iterator

import numpy as np
import pytest

from inferspec.conformance.calls import Call
from inferspec.conformance.suite import Profile, all_tests
from inferspec.spec import contract
from inferspec.spec.contract import Arguments, Aspect, Contract, Fault, Operation
from inferspec.tools.drawn_inputs import drawn

PLAIN = (
    "linear",
    "attention",
    "flash_attention",
    "paged_attention",
    "rope",
    "rms_norm",
    "mlp",
    "embedding",
    "quantization",
    "sampling",
)
"""Components whose calls are no stories: in a story a step that raises is an answer."""

MEANT = {
    "mha-self-attention": "what it reads for the key need not have the mask's length",
}
"""Mistakes that are about an error, although nothing in them raises one."""


def small_calls(kit: Contract) -> Iterator[Call]:
    """The first call that is small of each test that asks for an answer."""
    tests = [test for test in all_tests() if test.requirement in kit.requirements]
    for test in tests:
        if test.requirement.aspect is not Aspect.GUARD:
            whole = test.examples(Profile())
            calls = drawn(test, Profile(thinned=max(3, round(0.04 * whole)) / whole))
            yield from [call for call in calls if sum(np.size(x) for x in call.leaves().values()) < 3000][:1]


def stumble(operation: type[Operation], a: Arguments) -> str:
    """Where an operation raises, unless it says so itself with `raise`; "" where it does not."""
    try:
        operation().respond(a)
    except Exception as error:
        place = traceback.extract_tb(error.__traceback__)[-1]
        said = (place.line or "").startswith("raise")
        return "" if said else f"{type(error).__name__}: {error} ({place.name}, line {place.lineno})"
    return ""


def has_memory(fault: Fault) -> bool:
    """What it remembers of calls of other shapes, it cannot use."""
    return "remembers" in fault.name


@pytest.mark.parametrize("component", PLAIN)
def test_no_mistake_stumbles_over_what_it_is_not_about(component):
    kit = contract(component)
    right = {op.signature.operation: op for op in kit.operations}
    calls = [(call, right[call.operation]().bind(call.arguments)) for call in small_calls(kit)]
    assert calls
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        valid = [(call, a) for call, a in calls if not _refused(right[call.operation], a)]
        for fault in kit.faults:
            if fault.name not in MEANT and not has_memory(fault):
                faulty = kit.faulty(fault)
                for call, a in valid:
                    found = stumble(faulty, a) if call.operation == fault.kills.name else ""
                    assert not found, f"{fault.name} stumbles over {call}: {found}"


def _refused(operation: type[Operation], a: Arguments) -> bool:
    try:
        operation().respond(a)
    except (ValueError, TypeError):
        return True
    return False
