"""Looks a wrong result up in the dictionary of faults: which mistake would have done exactly this?"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from inferspec.conformance.calls import Call, History, Observation
from inferspec.conformance.subject import LocalSubject
from inferspec.spec.contract import Aspect, Contract, Fault, Operation, Requirement
from inferspec.spec.numerics import Precision, f64, rounding, within

EXAMPLES = 8
"""Failing examples that a diagnosis looks at: the smallest and the first ones found."""


def explain(contract: Contract, requirement: Requirement, failures: Sequence[History]) -> list[Fault]:
    """Return the faults of the requirement's operation that explain every failing example.

    Those that the failing requirement is meant to reject come first.
    """
    telling = [failure for failure in [*failures[-1:], *failures[: EXAMPLES - 1]] if failure]
    if not telling:
        return []
    candidates = [fault for fault in contract.faults if fault.kills.name == requirement.name]
    found = [fault for fault in candidates if _explains(contract, fault, requirement, telling)]
    return sorted(found, key=lambda fault: fault.kills.id != requirement.id)


def _explains(contract: Contract, fault: Fault, requirement: Requirement, failures: Sequence[History]) -> bool:
    faulty = contract.faulty(fault)
    operations = {op.signature.operation: op for op in contract.operations}
    subject = LocalSubject({**operations, fault.kills.name: faulty})
    return all(_replays(subject, faulty, requirement, history) for history in failures)


def _replays(subject: LocalSubject, faulty: type[Operation], requirement: Requirement, history: History) -> bool:
    subject.reset()
    for call, seen in history:
        watch = "random state" in seen.changed
        if not _same(call, seen, subject.call(call, watch=watch), faulty, requirement):
            return False
    return True


def _same(call: Call, seen: Observation, replayed: Observation, faulty: type[Operation], requirement: Requirement) -> bool:
    if bool(seen.raised) != bool(replayed.raised) or set(seen.changed) != set(replayed.changed):
        return False
    if seen.value is None or replayed.value is None:
        return seen.value is replayed.value
    if seen.value.shape != replayed.value.shape:
        return False
    if requirement.aspect is Aspect.DTYPE and seen.value.dtype != replayed.value.dtype:
        return False
    first, second = f64(seen.value), f64(replayed.value)
    if call.operation != faulty.signature.operation:
        return True
    with np.errstate(invalid="ignore"):
        error = np.where((first == second) | (np.isnan(first) & np.isnan(second)), 0.0, np.abs(first - second))
    return bool(within(np.nan_to_num(error, nan=np.inf), _tolerance(call, second, replayed, faulty)).all())


def _tolerance(call: Call, value: np.ndarray, replayed: Observation, faulty: type[Operation]) -> np.ndarray:
    """The budget of the faulty computation, and one rounding of its result."""
    assert replayed.value is not None
    dtype = replayed.value.dtype.name
    once = rounding(value, dtype) if dtype in ("float32", "float16", "bfloat16") else np.zeros_like(value)
    operation = faulty()
    try:
        budget = operation.evaluate(operation.bind(call.arguments), Precision.NATIVE).budget
    except Exception:  # a fault that accepts bad input need not be able to bound its error there
        return np.nan_to_num(once)
    # The bound of a mistaken formula need not be positive: its size is what counts.
    return np.nan_to_num(np.abs(budget) + once) if budget.shape == value.shape else np.nan_to_num(once)
