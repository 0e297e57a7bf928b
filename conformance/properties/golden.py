"""Does an implementation give the stored answers, which float64 PyTorch and the spec's oracle agreed on? The suites of goldens share
what they ask.

Features of goldens lie in the contract's envelope; those outside the subject's are left out.
"""

from __future__ import annotations

from collections.abc import Mapping

from inferspec import golden
from inferspec.conformance.calls import Call
from inferspec.conformance.envelope import OutsideEnvelope, narrow
from inferspec.conformance.judging.trial import Nonconformance, Trial
from inferspec.golden import GoldenError
from inferspec.spec.contract import Answer
from inferspec.spec.numerics import Precision


def by_id(subject: Trial) -> Trial:
    """The subject, if it draws as the goldens were drawn."""
    narrow(subject.envelope, {"draws_by": ["id"]})
    return subject


def of_the_lowest(subject: Trial) -> Trial:
    """The subject, if of equal ids it leaves those that the goldens have."""
    narrow(subject.envelope, {"ties": ["lowest ids"]})
    return subject


def gives_the_goldens(subject: Trial) -> None:
    """Every golden of the requirement inside the subject's envelope, each an example of its own."""
    about = subject.requirement.id
    stored = golden.cases(subject.contract.component, requirement=about)
    if not stored:
        raise GoldenError(f"{about} has a golden test and no golden: add a recipe, or remove the test")
    inside = [one for one in stored if not one.beyond(subject.envelope)]
    if not inside:
        raise OutsideEnvelope(f"every golden of {about} has something that is not claimed: {_beyond(subject, stored)}")
    # A waived failure ends the test: those come last.
    inside.sort(key=lambda one: bool(subject.waiver and subject.waiver.covers(one.features)))
    for number, one in enumerate(inside):
        if number:
            subject.begin()
        _gives(subject, one)


def _gives(subject: Trial, one: golden.Golden) -> None:
    call = Call(one.operation, one.arguments, one.features, seed=one.seed)
    answer = subject.answer(call, Precision.FLOAT32)
    oracle = answer if isinstance(answer, Mapping) else {"": answer}
    budgets = {part: each.budget for part, each in oracle.items()}
    if not one.equals({part: each.value for part, each in oracle.items()}, budgets):
        raise GoldenError(f"golden {one.id} is no longer the oracle's answer: run `inferspec golden check`")
    got = subject.answered(call).results
    if missing := [part for part in one.answers if part not in got]:
        raise Nonconformance(f"{missing[0]} is missing; it came with {', '.join(got)}", call)
    for part in (p for p in one.answers if not subject.operation.leaves_aside(p, subject.requirement.id)):
        expected = one.answers[part]
        subject.compare(call, got[part], Answer(expected, budgets[part]), part=part)


def _beyond(subject: Trial, stored: list[golden.Golden]) -> str:
    return ", ".join(sorted({feature for one in stored for feature in one.beyond(subject.envelope)}))
