"""One requirement's test of one subject: makes the calls, compares, and keeps what a certificate and a diagnosis need."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import Any

import numpy as np

from inferspec.conformance.calls import Call, History, Observation, step_told
from inferspec.conformance.envelope import Envelope, OutsideEnvelope, envelope_of
from inferspec.conformance.judging.comparison import Where, described, deviation
from inferspec.conformance.judging.refusals import FEW_UNSIGNED, LACKS, NOT_YET, SIGNED_WORDS, Choices, refuses
from inferspec.conformance.reporting.waivers import Waiver
from inferspec.conformance.subject import Result, Subject, SubjectDied
from inferspec.spec import located
from inferspec.spec.contract import STORY, Answer, Arguments, Operation, Requirement
from inferspec.spec.numerics import DTYPES, Precision, f64, is_sharp, within


class Nonconformance(AssertionError):
    """A requirement is not met. state: `failed`, `overclaimed`, `crashed` or `hung`; call: the call that showed it; native:
    whether it would be met in the looser class of precision; said: the words of the error by which it, or a step of it, was refused."""

    def __init__(
        self, message: str, call: Call | None = None, state: str = "failed", native: bool = False, said: str = ""
    ) -> None:
        super().__init__(message)
        self.call, self.state, self.native, self.said = call, state, native, said


class Refused(Nonconformance):
    """What the envelope includes is refused. said: the words of the error."""

    def __init__(self, message: str, call: Call, said: str) -> None:
        super().__init__(message, call, "overclaimed", said=said)
        self.call: Call = call


@dataclass
class Outcome:
    """What a test found. worst: the largest error as a share of its budget, all budgets of one class: where a result of a subject
    that declares class native is not within that of float32, only those of native ones count."""

    state: str = "passed"
    examples: int = 0
    sharp: int = 0
    worst: float = 0.0
    precision: str = "float32"
    message: str = ""
    call: str = ""
    program: str = ""
    features: dict[str, Any] = field(default_factory=dict)
    seed: int | None = None
    diagnosis: list[str] = field(default_factory=list)
    waived: int = 0
    seconds: float = 0.0


class Waived(Exception):
    """A failure inside a waiver's scope: the example ends, the test goes on."""


class Trial:
    """The `subject` that a test is given."""

    def __init__(
        self,
        subject: Subject,
        requirement: Requirement,
        waiver: Waiver | None = None,
        choices: Choices | None = None,
    ) -> None:
        """choices: what other tests of the subject saw."""
        self.subject, self.requirement, self.waiver = subject, requirement, waiver
        self._choices = Choices() if choices is None else choices
        self.contract, self.operation = located(requirement.name)
        self.outcome = Outcome()
        self.failures: list[History] = []
        self.told: list[tuple[Mapping[str, Any], str]] = []
        """What the test was given in each of them, and what it said."""
        self._history: list[tuple[Call, Observation]] = []
        self.insisted: Sequence[str] = ()
        """The envelope keys of which the test asks for some choices."""
        self.advice = ""
        """What a test has to say where it is refused, in the place of all that an adapter might leave out."""
        self._worst: dict[Precision, float] = {}
        """Class of a budget -> the largest error as a share of it."""
        self._plainest: dict[str, Any] = {}
        """The features of the first example, which has the first of all choices."""
        self._dead: SubjectDied | None = None
        self._dead_call: Call | None = None
        used = [self.contract, *(located(name)[0] for name in self.operation.borrowed())]
        declared = {subject.description.precision.get(one.component, "float32") for one in used}
        self.precision = Precision.NATIVE if "native" in declared else Precision.FLOAT32

    @property
    def envelope(self) -> Envelope:
        """What the subject claims for this requirement's operation."""
        about = self.subject.description
        declared = about.envelope.get(self.contract.component, {})
        return envelope_of(self.contract, declared, about.narrowed(self.requirement.name))

    def asks(self, test: str) -> None:
        """OutsideEnvelope where a layout's text does not ask the requirement, or the test of that name."""
        unasked = self.subject.description.offers[self.requirement.name].get("unasked", {})
        if reason := unasked.get(test) or unasked.get(self.requirement.id):
            raise OutsideEnvelope(reason)

    def begin(self) -> None:
        """Start an example."""
        self._history = []
        self.outcome.examples += 1
        if self._dead is None:
            try:
                self.subject.reset()
            except SubjectDied as death:
                self._dead = death

    def failed(self, failure: Nonconformance, drawn: Mapping[str, Any]) -> None:
        """Keep the example's history, and what it was drawn; Waived when a waiver covers it."""
        features = failure.call.features if failure.call else {}
        if self.waiver and self.waiver.covers(features):
            self.outcome.waived += 1
            raise Waived
        if failure.said and failure.call:
            self._choices.refuse(failure.call, failure.said)
        self.failures.append(tuple(self._history))
        self.told.append((drawn, str(failure)))

    def observe(self, call: Call, watch: bool = False, results: Sequence[Result] = ()) -> Observation:
        """Make a call; Nonconformance when the subject dies of it or only pretends to offer it.

        results: shapes and dtypes of what must come back, for the bridge to poison buffers of that size with NaN.
        """
        if self._dead is None:
            try:
                observation = self.subject.call(call, results, watch)
            except SubjectDied as death:
                self._dead, self._dead_call = death, call
        if self._dead is not None:
            # Not again: every further call would cost a new process, and shrinking makes hundreds.
            raise Nonconformance(str(self._dead), self._dead_call, self._dead.state)
        self._history.append((call, observation))
        if self.outcome.examples == 1:
            self._plainest.update(call.features)
        # What is not implemented is refused, where that is right; to a course it is what is not written yet.
        layout = self.subject.description.layout
        if observation.stub and (layout or not observation.raised):
            raise self._absent(observation, call)
        if layout and observation.unwritten:
            raise self._unwritten(observation, call, observation.unwritten[0])
        return observation

    def _absent(self, seen: Observation, call: Call) -> Nonconformance:
        """A call was not refused, and what it asks for is not there."""
        text = f"raises {seen.raised}: {seen.message}" if seen.raised else "is a stub: it returns None"
        return Nonconformance(f"{call.operation} {text}", call, "overclaimed")

    def _unwritten(self, seen: Observation, call: Call, step: str) -> Nonconformance:
        """A step of a story raised NotImplementedError, and is none that is to be refused."""
        number = int(step.partition(".")[0])
        told = f"step {number}, {step_told(call, number)}"
        if LACKS.search(seen.message):
            text = f"{told}: refuses what its envelope includes ({seen.message}); {self._advice(call, seen.message)}"
        else:
            text = f"{told}: is offered and not there ({seen.message})"
        return Nonconformance(text, call, "overclaimed")

    def objection(self, call: Call, seen: Observation, number: int, text: str, refusal: bool) -> Nonconformance:
        """What is wrong with a step of a story. refusal: that it was refused, which what is not implemented overclaims."""
        if refusal and (steps := [step for step in seen.unwritten if step.partition(".")[0] == str(number)]):
            return self._unwritten(seen, call, steps[0])
        # What was refused in other steps may well have been refused rightly.
        told = _steps_told(seen.message, lambda step: step.partition(".")[0] == str(number))
        text = f"step {number}, {step_told(call, number)}: {text}{_in_brackets(told)}"
        return Nonconformance(text, call, said=_words_of(told) if refusal else "")

    def value(self, call: Call, results: Sequence[Result] = ()) -> np.ndarray:
        """Make a call that must return an array, and return it."""
        value = self.answered(call, results=results).value
        assert value is not None
        return value

    def parts(self, call: Call, results: Sequence[Result] = ()) -> dict[str, np.ndarray]:
        """Make a call that must return several arrays, and return them by name."""
        return self.answered(call, results=results).results

    def answered(self, call: Call, watch: bool = False, results: Sequence[Result] = ()) -> Observation:
        """Make a call that must return what its operation returns, and return what was seen of it."""
        observation = self.observe(call, watch, results)
        if observation.raised:
            error = f"{observation.raised}: {observation.message}"
            if not (observation.stub or refuses(observation)):
                raise Nonconformance(f"raises: {error}", call)
            raise Refused(f"refuses what its envelope includes: {error}", call, observation.message)
        names = self._operation(call).parts
        if observation.value is None and not (names and (observation.parts or not observation.message)):
            what = f"not {', '.join(names)}" if names else "not an array"
            raise Nonconformance(f"returns a {observation.message}, {what}", call)
        if not _steps_told(observation.message):
            self._choices.answer(call)
        return observation

    def advised(self, failure: Nonconformance) -> str:
        """A failure in words, with what can be done where the subject does not mean to support what it refused."""
        more = ""
        if isinstance(failure, Refused):
            more = self._advice(failure.call, failure.said)
        elif failure.said and failure.call and not self.subject.description.layout:
            # A step may be refused by mistake: only what it is about is worth a word.
            more = self._left_out(failure.call, failure.said)
        return f"{failure}; {more}" if more else str(failure)

    def _advice(self, call: Call, said: str = "") -> str:
        """What can be done where a call is refused that is not meant to be supported; said: the words of the error."""
        component = self.contract.component
        if self.subject.description.layout:
            return NOT_YET
        if FEW_UNSIGNED.search(said):
            return SIGNED_WORDS
        if found := self._left_out(call, said):
            return found
        if self.advice:
            return self.advice
        keys = ", ".join(self.contract.envelope)
        return f'if it does not support this, say so in ENVELOPE["{component}"], whose keys are {keys}'

    def _left_out(self, call: Call, said: str) -> str:
        """How an adapter leaves out what a refusal is about; "" where that cannot be told."""
        blamed = self._choices.blamed(call, said, self.envelope, self._plainest, self.insisted)
        if blamed is None:
            return ""
        key, choice = blamed
        offered = self.envelope[key]
        assert isinstance(offered, tuple)
        refused = self._choices.never_answered(call, key)
        never = [one for one in offered if one == choice or repr(one) in refused]
        kept = [one for one in offered if one not in never]
        of = " or ".join(map(repr, never))
        return f"if it does not support {key} of {of}, say so: {self.declaring(key, kept)}"

    def declaring(self, key: str, choices: Sequence[Any]) -> str:
        """The line that declares choices of the envelope, with all else that the subject has declared: it is to be pasted."""
        declared, component = self.subject.description.declared(), self.contract.component
        return f"ENVELOPE = {_plain({**declared, component: {**declared.get(component, {}), key: choices}})}"

    def _declaration(self) -> str:
        """How an adapter says that it is of class native; a package of a layout has none that could."""
        if self.subject.description.layout:
            return ""
        return f': declare PRECISION = {{"{self.contract.component}": "native"}}'

    def answer(self, call: Call, precision: Precision | None = None) -> Any:
        """The oracle's answer to a call: an Answer, or the Answers of an operation with parts."""
        operation = self._operation(call)
        return operation.evaluate(operation.bind(call.arguments), precision or self.precision)

    def agrees(self, call: Call, where: np.ndarray | None = None) -> Any:
        """Make a call and compare every element (or those of `where`) with the oracle; return the subject's value.

        Of an operation with parts every part is compared, and they are returned by name.
        """
        answers, dtype = _by_name(self.answer(call, Precision.FLOAT32)), self._dtypes(call)
        expected = [(one.value.shape, dtype(part)) for part, one in answers.items()]
        seen = self.answered(call, results=[(s, d) for s, d in expected if d in DTYPES])

        def judge(meant: Call) -> None:
            right = answers if meant is call else _by_name(self.answer(meant, Precision.FLOAT32))
            self._compare_all(meant, seen, right, where)

        self.judged(call, judge)
        return seen.results if self._operation(call).parts else seen.value

    def judged(self, call: Call, judge: Callable[[Call], None]) -> None:
        """Judge what was seen of a call, and where it is wrong, whether it is right by another answer (`Operation.either`).

        judge: raises Nonconformance where that is not what the call it is given is to give. What is right by the other answer is
        wrong to the sentences alone that are about it.
        """
        try:
            judge(call)
        except Nonconformance as failure:
            for key, choice in self._otherwise(call):
                try:
                    judge(call.having(**{key: choice}))
                except Nonconformance:
                    continue
                if self.requirement.id not in self._operation(call).either[key]:
                    return
                raise Nonconformance(f"{failure}{self._declaring(key, choice)}", failure.call, failure.state) from None
            raise

    def _otherwise(self, call: Call) -> Iterator[tuple[str, Any]]:
        """What else a call may mean: an argument, and what it is not."""
        operation = self._operation(call)
        for key in operation.either:
            meant = getattr(operation.bind(call.arguments), key)
            choices = self.contract.envelope[key]
            assert isinstance(choices, tuple)
            yield from ((key, choice) for choice in choices if choice != meant)

    def _shapes(self, got: np.ndarray, expected: np.ndarray) -> str:
        """What is wrong with a result of another shape than the expected."""
        if self.operation.parts not in ((), STORY) and not got.shape and expected.shape == (0,):
            return f"the result is {got.item():g}, where there is none: that is None"
        return f"the result has shape {list(got.shape)}, not {list(expected.shape)}"

    def _in_words(self, wrong: str, got: np.ndarray, answer: Answer, name: str, part: str) -> str:
        """What is wrong: of a text the text."""
        return _texts(got, answer.value, name) if part in self.operation.texts else wrong

    def _declaring(self, key: str, choice: Any) -> str:
        """How an adapter says that what came out is meant; a package of a layout has none that could."""
        if self.subject.description.layout:
            return ""
        return f"; if {key} are to be {choice}, declare {self.declaring(key, [choice])}"

    def compare(
        self,
        call: Call,
        got: np.ndarray,
        answer: Answer,
        where: np.ndarray | None = None,
        name: str = "oracle",
        part: str = "",
    ) -> None:
        """Nonconformance unless |got - answer| keeps the budget elementwise; NaN and inf must be where they belong."""
        if got.shape != answer.value.shape:
            wrong = self._shapes(got, answer.value) + _ids(got, answer.value, name)
            raise Nonconformance(self._about(call, part) + self._in_words(wrong, got, answer, name, part), call)
        chosen: Where = ... if where is None else np.broadcast_to(where, got.shape)
        error = deviation(f64(got), answer.value, lambda: self._dtypes(call)(part))
        if within(error[chosen], answer.budget[chosen]).all():
            self._record(error[chosen], answer, chosen, Precision.FLOAT32)
            return
        native = _by_name(self.answer(call, Precision.NATIVE))[part] if name == "oracle" else answer
        fits_native = bool(within(error[chosen], native.budget[chosen]).all())
        if fits_native:
            self.outcome.precision = "native"
            if self.precision is Precision.NATIVE:
                self._record(error[chosen], native, chosen, Precision.NATIVE)
                return
        used = native if self.precision is Precision.NATIVE else answer
        hint = f"; it meets class native{self._declaration()}" if fits_native else ""
        self._record(error[chosen], used, chosen, self.precision)
        wrong = described(got, used, error, chosen, name) + hint
        raise Nonconformance(
            self._about(call, part) + self._in_words(wrong, got, used, name, part), call, native=fits_native
        )

    def expects(self, call: Call, expected: Any, where: np.ndarray | None = None) -> Any:
        """Make a call whose answer (an array, or arrays by the name of the part) is known exactly: tolerance zero.

        expected: the answer, or a function that gives it of the call that is meant, where there are two (`judged`).
        """
        seen = self.answered(call)

        def judge(meant: Call) -> None:
            right = _by_name(expected(meant) if callable(expected) else expected)
            exact = {part: Answer(f64(x), np.zeros(np.shape(x))) for part, x in right.items()}
            self._compare_all(meant, seen, exact, where, name="exact")

        self.judged(call, judge)
        return seen.results if self._operation(call).parts else seen.value

    def _compare_all(
        self,
        call: Call,
        seen: Observation,
        answers: Mapping[str, Answer],
        where: np.ndarray | None,
        name: str = "oracle",
    ) -> None:
        if wrongly := [step for step in seen.unwritten if f"{step} refused" not in answers]:
            raise self._unwritten(seen, call, wrongly[0])
        got = seen.results
        steps = _steps_told(seen.message, lambda step: f"{step} refused" not in answers)
        unforeseen = _in_brackets(steps)
        more = [part for part in got if part not in answers]
        refused = min((part for part in more if part.endswith(" refused")), key=_step, default="")
        said = _words_of(steps) if refused else ""
        for part, answer in answers.items():
            if refused and _step(part) > _step(refused):
                # What comes after a step that did nothing is wrong for that.
                break
            if part not in got:
                text = f"{self._part(call, part)} is missing; it came with {_listed(got)}{unforeseen}"
                raise Nonconformance(text, call, said=said)
            if not self._operation(call).leaves_aside(part, self.requirement.id):
                try:
                    self.compare(call, got[part], answer, where, name, part)
                except Nonconformance as failure:
                    # What is short of a part, or of all, may be so for a step that raised.
                    raise Nonconformance(f"{failure}{unforeseen}", call, native=failure.native, said=said) from None
        if more:
            text = f"{self._part(call, refused or more[0])} should not be there{unforeseen}"
            raise Nonconformance(text, call, said=said)

    def _part(self, call: Call, part: str) -> str:
        """A part of a result in words; of a story, with the step that it came from."""
        number, _, name = part.partition(" ")
        if number.isdecimal() and 0 < int(number) <= len(call.arguments.get("steps", ())):
            return f"step {number}, {step_told(call, int(number))}: {name}"
        return part

    def _about(self, call: Call, part: str) -> str:
        return f"{self._part(call, part)}: " if part else ""

    def _record(self, error: np.ndarray, answer: Answer, where: Where, budgets: Precision) -> None:
        value, budget = answer.value[where], answer.budget[where]
        finite = np.isfinite(value) & np.isfinite(error) & (budget > 0)
        if not finite.any():
            return
        if not finite.all():
            error, value, budget = error[finite], value[finite], budget[finite]
        self._worst[budgets] = max(self._worst.get(budgets, 0.0), float((error / budget).max()))
        self.outcome.worst = self._worst.get(Precision.NATIVE, self._worst.get(Precision.FLOAT32, 0.0))
        self.outcome.sharp += is_sharp(value.ravel(), budget.ravel())

    def _operation(self, call: Call) -> Operation:
        return self.oracle(call.operation)

    def oracle(self, name: str) -> Operation:
        """The contract's own of that name, of this subject's way where there are several."""
        own = self.contract.operation(name)()
        own.claimed = self.envelope
        return own

    def _dtypes(self, call: Call) -> Callable[[str], str]:
        """Part -> the dtype that the contract promises for it."""
        operation = self._operation(call)
        a = operation.bind(call.arguments)
        return lambda part: operation.part_dtype(part, a) if operation.parts else operation.result_dtype(a)

    def promised(self, call: Call) -> Arguments:
        """The call's arguments as the oracle reads them."""
        return self._operation(call).bind(call.arguments)


def _plain(value: Any) -> Any:
    """A declaration as one writes it: lists for tuples."""
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items()}
    return [_plain(item) for item in value] if isinstance(value, tuple | list) else value


def _step(part: str) -> tuple[int, ...]:
    """The number of the step of a story that a part of its result is of: of `3.10 chunks`, 3 and 10."""
    numbers = part.partition(" ")[0].split(".")
    return tuple(map(int, numbers)) if all(number.isdecimal() for number in numbers) else ()


def _steps_told(message: str, which: Callable[[str], bool] = lambda step: True) -> list[str]:
    """What was told of those steps of a story that raised, such as `step 2: ValueError: no room`."""
    steps = [one for one in re.split(r"; (?=step [\d.]+: )", message) if one.startswith("step ")]
    return [one for one in steps if which(one.split()[1].rstrip(":"))]


def _in_brackets(steps: Sequence[str]) -> str:
    return f" ({'; '.join(steps)})" if steps else ""


def _words_of(steps: Sequence[str]) -> str:
    """The error of the first of them."""
    return steps[0].partition(": ")[2] if steps else ""


def _by_name(answer: Any) -> Mapping[str, Any]:
    return answer if isinstance(answer, Mapping) else {"": answer}


_FEW = 16
"""Ids, or names of results, that a line has room for."""


def _listed(got: Mapping[str, np.ndarray]) -> str:
    more = f" and {len(got) - _FEW} more" if len(got) > _FEW else ""
    return f"{', '.join(list(got)[:_FEW])}{more}" if got else "nothing"


def _texts(got: np.ndarray, expected: np.ndarray, name: str) -> str:
    """Two texts, from a little before the character at which they part."""
    texts = ["".join(map(chr, points.astype(np.int64))) for points in (got, expected)]
    parted = next((at for at, pair in enumerate(zip_longest(*texts)) if len(set(pair)) > 1), 0)
    start = max(0, parted - _FEW // 2)
    own, right = (repr(text[start : start + _FEW]) for text in texts)
    return f"{own}, {name} {right}" + (f", from character {start} on" if start else "")


def _ids(got: np.ndarray, expected: np.ndarray, name: str) -> str:
    """A few ids in words, where there are more or fewer of them than there should be; "" of all else."""
    few = got.ndim == expected.ndim == 1 and max(got.size, expected.size) <= _FEW
    if not few or got.dtype.kind not in "iu" or not np.isfinite(expected).all():
        return ""
    return f": {got.tolist()}, {name} {expected.astype(np.int64).tolist()}"
