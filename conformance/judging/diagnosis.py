"""Looks a wrong result up in the dictionary of faults: which mistake would have done exactly this?"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from inferspec.conformance.calls import Call, History, Observation
from inferspec.conformance.envelope import Envelope
from inferspec.conformance.judging.refusals import REFUSALS
from inferspec.conformance.judging.shared_faults import transplanted
from inferspec.conformance.subject import LocalSubject
from inferspec.spec.contract import Answer, Aspect, Contract, Fault, Operation, Requirement
from inferspec.spec.numerics import EXPLAINED, UNDECIDED, Precision, f64, is_float, rounding, within

EXAMPLES = 8
"""Failing examples that a diagnosis looks at: the smallest, and the largest, which tell most faults apart."""


LARGE = 10**6
"""Numbers beyond which two examples are replayed, on the faults alone that the failing requirement is meant to reject: a
call of tens of thousands of keys takes a fault a second."""


REPLAYED = 10**7
"""Numbers in the calls of a failing example beyond which it is not replayed: a model of a hundred million parameters
would take every fault of its dictionary seconds."""


def explain(
    contract: Contract,
    requirement: Requirement,
    failures: Sequence[History],
    among: Sequence[Fault] | None = None,
    envelope: Envelope | None = None,
    patience: float = math.inf,
) -> list[Fault]:
    """Return the faults of the requirement's operation, or of those in `among`, that explain every failing example.
    envelope: that of the subject, which may declare one of several right ways; patience: seconds of this process after which
    no further fault is tried.

    A fault explains a failure when it does what was seen, in one of its forms, within the error of its own arithmetic (that
    of float32, or else that of the input's dtype), and is itself wrong there. Those that the failing requirement is meant to
    reject come first.
    """
    failures = sorted((failure for failure in failures if failure and _size(failure) <= REPLAYED), key=_size)
    telling = [*failures[:1], *failures[1 - EXAMPLES :]]
    if not telling:
        return []
    faults, claimed = among, envelope or {}
    if faults is None:
        faults = [fault for fault in contract.faults if fault.kills.name == requirement.name]
    candidates = [transplanted(fault, requirement) for fault in faults if _may_be(fault, claimed)]
    if _size(telling[0]) > LARGE:
        candidates = [fault for fault in candidates if fault.kills.id == requirement.id]
        telling = telling[:2]
    replays = _Replays(contract, requirement, telling, claimed)
    judges = {precision: _Judge(contract, requirement, precision, claimed) for precision in Precision}
    found: dict[Precision, list[Fault]] = {precision: [] for precision in Precision}
    until = time.process_time() + patience
    for fault in candidates:
        if time.process_time() > until:
            break
        for form in fault.in_every_form():
            for precision in _explains(form, replays, judges):
                found[precision].append(form)
    first = next((faults for faults in found.values() if faults), [])
    # One form is enough for a fault to be named.
    named: dict[str, Fault] = {}
    for fault in first:
        named.setdefault(fault.name, fault)
    return sorted(named.values(), key=lambda fault: fault.kills.id != requirement.id)


def _may_be(fault: Fault, claimed: Envelope) -> bool:
    """Whether the subject declares what one with that fault does."""
    return all(claimed.get(key) == choices for key, choices in fault.envelope.items())


def can_be_replayed(failures: Sequence[History]) -> bool:
    """Whether a failing example is small enough for all faults to be tried on it."""
    return any(failure and _size(failure) <= LARGE for failure in failures)


def _size(history: History) -> int:
    return sum(array.size for call, _ in history for array in call.leaves().values())


class _Replays:
    """The failing examples again, call by call: on a fault, and on the oracle, whose answers are kept."""

    def __init__(
        self, contract: Contract, requirement: Requirement, failures: Sequence[History], claimed: Envelope
    ) -> None:
        self.contract, self.requirement, self.failures = contract, requirement, failures
        self.declared = {contract.component: claimed}
        self.operations = {op.signature.operation: op for op in contract.operations}
        self._right: dict[int, list[Observation]] = {}

    def right(self, number: int) -> list[Observation]:
        """What the oracle does in an example."""
        if number not in self._right:
            oracle = LocalSubject(self.operations, envelope=self.declared)
            self._right[number] = [oracle.call(call, watch=_watched(seen)) for call, seen in self.failures[number]]
        return self._right[number]

    def faulted(self, fault: Fault) -> Iterator[list[Observation] | None]:
        """What a fault does in each example; None where it differs from what was seen in more than numbers."""
        faulty = {**self.operations, fault.kills.name: self.contract.faulty(fault)}
        subject = LocalSubject(faulty, envelope=self.declared)
        for history in self.failures:
            subject.reset()
            done: list[Observation] = []
            for call, seen in history:
                # What a mistake overflows is its own affair.
                with np.errstate(all="ignore"):
                    done.append(subject.call(call, watch=_watched(seen)))
                # A mistake of another operation may ask for an argument that there is none of here.
                if done[-1].raised == "AttributeError" or not _alike(call, seen, done[-1], self.requirement):
                    yield None
                    return
            yield done


def _explains(fault: Fault, replays: _Replays, judges: Mapping[Precision, _Judge]) -> list[Precision]:
    """With the errors of which arithmetic a fault explains every failing example."""
    left = list(judges)
    for number, replayed in enumerate(replays.faulted(fault)):
        if replayed is None:
            return []
        history, right = replays.failures[number], replays.right(number)
        left = [precision for precision in left if judges[precision].accepts(fault, history, replayed, right)]
        if not left:
            return []
    return left


def _watched(seen: Observation) -> bool:
    return "random state" in seen.changed


def _ended(seen: Observation) -> str:
    """How a call ended. A mistake that stumbles over an input it is not about, with a ValueError of NumPy's say, is no
    explanation for a crash."""
    return "refused" if seen.raised in REFUSALS else "raised" if seen.raised else ""


def _changed(call: Call, seen: Observation) -> set[str]:
    """What a call changed, but for the arguments of steps that the story itself overwrites."""
    # A request has the number of the step that added it.
    steps = [given for step, given in call.arguments.get("steps", ()) if step == "overwrite"]
    own = [f"steps.{given.get('step', given.get('request')) - 1}." for given in steps]
    return {name for name in seen.changed if not name.startswith(tuple(own))}


def _alike(call: Call, first: Observation, second: Observation, requirement: Requirement) -> bool:
    """Whether two observations of a call differ in no more than their numbers."""
    if _ended(first) != _ended(second) or _changed(call, first) != _changed(call, second):
        return False
    ours, theirs = first.results, second.results
    if ours.keys() != theirs.keys():
        return False
    same_dtype = requirement.aspect is not Aspect.DTYPE or all(ours[part].dtype == theirs[part].dtype for part in ours)
    return same_dtype and all(ours[part].shape == theirs[part].shape for part in ours)


class _Judge:
    """Compares what a fault does with what was seen, within the errors of one arithmetic."""

    def __init__(self, contract: Contract, requirement: Requirement, precision: Precision, claimed: Envelope) -> None:
        self.contract, self.requirement, self.precision, self.claimed = contract, requirement, precision, claimed
        self.operations = {op.signature.operation: op for op in contract.operations}
        self._budgets: dict[int, tuple[np.ndarray, np.ndarray]] = {}
        """Of the oracle's answers, by their identity."""
        self._evaluated: dict[tuple[int, type[Operation]], dict[str, Answer]] = {}
        """What the oracle and the fault that is tried make of each call, with their budgets."""

    def accepts(
        self, fault: Fault, history: History, replayed: Sequence[Observation], right: Sequence[Observation]
    ) -> bool:
        """Whether the fault does all that was seen in an example, and something of it that the oracle does not."""
        faulty = {**self.operations, fault.kills.name: self.contract.faulty(fault)}
        own = set(self.operations.values())
        self._evaluated = {key: answers for key, answers in self._evaluated.items() if key[1] in own}
        # The budgets of the fault's own answers come last: they take most of the time, and most faults do something else.
        wrong, near = False, []
        for (call, seen), done, correct in zip(history, replayed, right, strict=True):
            if not _alike(call, correct, done, self.requirement):
                # What comes of input that a guard should have kept out says nothing; other numbers are to be explained.
                if self.requirement.aspect is not Aspect.GUARD and not self._same(call, seen, done, faulty):
                    return False
                wrong = True
                continue
            given, wanted = seen.results, correct.results
            for part, faulted in self._about(done, faulty[call.operation]).items():
                left, off = _distance(given[part], faulted), self._off(call, part, given[part], faulted, wanted[part])
                if off is None:
                    return False
                wrong = wrong or off
                near.append((left, call, part, faulted, self._right_budget(call, part, wanted[part])))
        if self.requirement.aspect is Aspect.ROUNDING:
            return wrong
        return wrong and all(
            within(left, self._tolerance(call, part, faulted, faulty[call.operation], least)).all()
            for left, call, part, faulted, least in near
        )

    def _same(
        self, call: Call, seen: Observation, replayed: Observation, faulty: Mapping[str, type[Operation]]
    ) -> bool:
        """Whether the fault gives the numbers that were seen."""
        given = seen.results
        return all(
            within(_distance(given[part], value), self._tolerance(call, part, value, faulty[call.operation])).all()
            for part, value in self._about(replayed, faulty[call.operation]).items()
        )

    def _about(self, seen: Observation, operation: type[Operation]) -> dict[str, np.ndarray]:
        """The arrays that the requirement is about."""
        own = self.requirement.id
        return {part: x for part, x in seen.results.items() if not operation.leaves_aside(part, own)}

    def _off(self, call: Call, part: str, seen: np.ndarray, faulted: np.ndarray, correct: np.ndarray) -> bool | None:
        """Whether one array of the fault is wrong, and None where it is far from what was seen."""
        left, off = _distance(seen, faulted), _distance(correct, faulted)
        if self.requirement.aspect is Aspect.ROUNDING:
            # The last bit is what this is about; few elements may hang on how the statistics were summed.
            return None if np.mean(left > 0) > UNDECIDED else bool((off > 0).any())
        # In the exact lane the budget can be wide; there a fault that is right to the last bit still explains.
        exactly = not left.any() and bool((off > rounding(f64(correct), "bfloat16")).any())
        if not exactly and within(off, self._right_budget(call, part, correct)).all():
            return False
        return None if np.max(left) > EXPLAINED * np.max(off) else True

    def _right_budget(self, call: Call, part: str, value: np.ndarray) -> np.ndarray:
        """The budget of an answer of the oracle, which every fault is held against."""
        if id(value) not in self._budgets:
            self._budgets[id(value)] = value, self._budget(call, part, value, self.operations[call.operation])
        return self._budgets[id(value)][1]

    def _tolerance(
        self, call: Call, part: str, value: np.ndarray, operation: type[Operation], unbounded: np.ndarray | float = 0.0
    ) -> np.ndarray:
        """The budget of the operation, mistake and all, and one rounding of its result; none where that is infinite.
        unbounded: what it is where the mistake has none."""
        once = rounding(f64(value), value.dtype.name) if is_float(value.dtype) else np.zeros(value.shape)
        budget = self._budget(call, part, value, operation)
        if not budget.any() and np.shape(unbounded) == value.shape:
            budget = np.asarray(unbounded)
        return np.where(np.isfinite(f64(value)), budget + once, 0.0)

    def _budget(self, call: Call, part: str, value: np.ndarray, operation: type[Operation]) -> np.ndarray:
        answer = self._answers(call, operation).get(part)
        if answer is None or answer.budget.shape != value.shape:
            return np.zeros(value.shape)
        # The bound of a mistaken formula need not be positive: its size is what counts.
        return np.nan_to_num(np.abs(answer.budget), posinf=0.0)

    def _answers(self, call: Call, operation: type[Operation]) -> dict[str, Answer]:
        """All that an operation answers, worked out once: a long story has thousands of parts."""
        key = id(call), operation
        if key not in self._evaluated:
            reference = operation()
            reference.claimed = self.claimed
            try:
                answer = reference.evaluate(reference.bind(call.arguments), self.precision)
                self._evaluated[key] = dict(answer) if reference.parts else {"": answer}
            except Exception:  # a fault that accepts bad input need not be able to bound its error there
                self._evaluated[key] = {}
        return self._evaluated[key]


def _distance(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """|first - second| elementwise; 0 where both are NaN or the same infinity, inf where only one is."""
    x, y = f64(first), f64(second)
    with np.errstate(invalid="ignore"):
        distance = np.abs(x - y)
    return np.where((x == y) | (np.isnan(x) & np.isnan(y)), 0.0, np.nan_to_num(distance, nan=np.inf, posinf=np.inf))
