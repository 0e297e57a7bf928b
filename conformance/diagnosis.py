"""Looks a wrong result up in the dictionary of faults: which mistake would have done exactly this?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from inferspec.conformance.calls import Call, History, Observation
from inferspec.conformance.subject import LocalSubject
from inferspec.spec.contract import Aspect, Contract, Fault, Operation, Requirement
from inferspec.spec.numerics import EXPLAINED, UNDECIDED, Precision, f64, is_float, rounding, within

EXAMPLES = 8
"""Failing examples that a diagnosis looks at: the smallest, and the largest, which tell most faults apart."""


LARGE = 10**6
"""Numbers beyond which two examples are replayed, on the faults alone that the failing requirement is meant to reject: a
call of tens of thousands of keys takes a fault a second."""


REPLAYED = 10**7
"""Numbers in the calls of a failing example beyond which it is not replayed: a model of a hundred million parameters
would take every fault of its dictionary seconds."""


def explain(contract: Contract, requirement: Requirement, failures: Sequence[History]) -> list[Fault]:
    """Return the faults of the requirement's operation that explain every failing example.

    A fault explains a failure when it does what was seen, within the error of its own arithmetic (that of float32, or
    else that of the input's dtype), and is itself wrong there. Those that the failing requirement is meant to reject
    come first.
    """
    failures = sorted((failure for failure in failures if failure and _size(failure) <= REPLAYED), key=_size)
    telling = [*failures[:1], *failures[1 - EXAMPLES :]]
    if not telling:
        return []
    candidates = [fault for fault in contract.faults if fault.kills.name == requirement.name]
    if _size(telling[0]) > LARGE:
        candidates = [fault for fault in candidates if fault.kills.id == requirement.id]
        telling = telling[:2]
    for precision in Precision:
        judge = _Judge(contract, requirement, precision)
        if found := [fault for fault in candidates if judge.explains(fault, telling)]:
            return sorted(found, key=lambda fault: fault.kills.id != requirement.id)
    return []


def _size(history: History) -> int:
    return sum(array.size for call, _ in history for array in call.leaves().values())


class _Judge:
    """Compares what a fault does with what was seen."""

    def __init__(self, contract: Contract, requirement: Requirement, precision: Precision) -> None:
        self.contract, self.requirement, self.precision = contract, requirement, precision
        self.operations = {op.signature.operation: op for op in contract.operations}
        self.oracle = LocalSubject(self.operations)

    def explains(self, fault: Fault, failures: Sequence[History]) -> bool:
        faulty = {**self.operations, fault.kills.name: self.contract.faulty(fault)}
        subject = LocalSubject(faulty)
        return all(self._replays(subject, faulty, history) for history in failures)

    def _replays(self, subject: LocalSubject, faulty: Mapping[str, type[Operation]], history: History) -> bool:
        """Whether the fault does all that was seen in an example, and something of it that the oracle does not."""
        subject.reset()
        self.oracle.reset()
        wrong = False
        for call, seen in history:
            watch = "random state" in seen.changed
            replayed = subject.call(call, watch=watch)
            if not self._alike(seen, replayed):
                return False
            right = self.oracle.call(call, watch=watch)
            if not self._alike(right, replayed):
                # What comes of input that a guard should have kept out says nothing; other numbers are to be explained.
                if self.requirement.aspect is not Aspect.GUARD and not self._same(call, seen, replayed, faulty):
                    return False
                wrong = True
                continue
            for part in replayed.results:
                off = self._explained(call, part, seen, replayed, right, faulty[call.operation])
                if off is None:
                    return False
                wrong = wrong or off
        return wrong

    def _same(
        self, call: Call, seen: Observation, replayed: Observation, faulty: Mapping[str, type[Operation]]
    ) -> bool:
        """Whether the fault gives the numbers that were seen."""
        return all(
            within(
                _distance(seen.results[part], value), self._tolerance(call, part, value, faulty[call.operation])
            ).all()
            for part, value in replayed.results.items()
        )

    def _explained(
        self,
        call: Call,
        part: str,
        seen: Observation,
        replayed: Observation,
        right: Observation,
        faulty: type[Operation],
    ) -> bool | None:
        """Whether one array of the fault is wrong, and None where it is not what was seen."""
        faulted, correct = replayed.results[part], right.results[part]
        left, off = _distance(seen.results[part], faulted), _distance(correct, faulted)
        if self.requirement.aspect is Aspect.ROUNDING:
            # The last bit is what this is about; few elements may hang on how the statistics were summed.
            return None if np.mean(left > 0) > UNDECIDED else bool((off > 0).any())
        if not within(left, self._tolerance(call, part, faulted, faulty)).all():
            return None
        budget = self._budget(call, part, correct, self.operations[call.operation])
        # In the exact lane the budget can be wide; there a fault that is right to the last bit still explains.
        exactly = not left.any() and bool((off > rounding(f64(correct), "bfloat16")).any())
        if not exactly and within(off, budget).all():
            return False
        return None if np.max(left) > EXPLAINED * np.max(off) else True

    def _alike(self, first: Observation, second: Observation) -> bool:
        """Whether two observations differ in no more than their numbers."""
        if bool(first.raised) != bool(second.raised) or set(first.changed) != set(second.changed):
            return False
        ours, theirs = first.results, second.results
        if ours.keys() != theirs.keys():
            return False
        same_dtype = self.requirement.aspect is not Aspect.DTYPE or all(
            ours[part].dtype == theirs[part].dtype for part in ours
        )
        return same_dtype and all(ours[part].shape == theirs[part].shape for part in ours)

    def _tolerance(self, call: Call, part: str, value: np.ndarray, operation: type[Operation]) -> np.ndarray:
        """The budget of the operation, mistake and all, and one rounding of its result; none where that is infinite."""
        once = rounding(f64(value), value.dtype.name) if is_float(value.dtype) else np.zeros(value.shape)
        return np.where(np.isfinite(f64(value)), self._budget(call, part, value, operation) + once, 0.0)

    def _budget(self, call: Call, part: str, value: np.ndarray, operation: type[Operation]) -> np.ndarray:
        reference = operation()
        try:
            answer = reference.evaluate(reference.bind(call.arguments), self.precision)
            budget = (answer[part] if reference.parts else answer).budget
        except Exception:  # a fault that accepts bad input need not be able to bound its error there
            return np.zeros(value.shape)
        # The bound of a mistaken formula need not be positive: its size is what counts.
        return np.nan_to_num(np.abs(budget), posinf=0.0) if budget.shape == value.shape else np.zeros(value.shape)


def _distance(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """|first - second| elementwise; 0 where both are NaN or the same infinity, inf where only one is."""
    x, y = f64(first), f64(second)
    with np.errstate(invalid="ignore"):
        distance = np.abs(x - y)
    return np.where((x == y) | (np.isnan(x) & np.isnan(y)), 0.0, np.nan_to_num(distance, nan=np.inf, posinf=np.inf))
