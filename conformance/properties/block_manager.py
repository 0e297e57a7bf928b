"""Sentences about one subject and the history of one story of a block manager; its suites share them."""

from __future__ import annotations

from collections.abc import Sequence

from inferspec.conformance.calls import Call
from inferspec.conformance.judging.trial import Trial
from inferspec.conformance.properties.common import all_refused
from inferspec.spec.block_histories import MUST, Check, complaints


def keeps(subject: Trial, call: Call, *checks: Check) -> None:
    """The story's history has nothing against these checks, the order of eviction left out where none is claimed."""
    seen = subject.answered(call)
    unasked = () if call.features["eviction"] == "oldest first" else (Check.ORDER,)
    for complaint in complaints(subject.promised(call), seen.results):
        if complaint.check in checks and complaint.check not in unasked:
            refusal = complaint.check is Check.ADMITS
            text = f"{complaint.text}{_any_order(subject) if complaint.check is Check.ORDER else ''}"
            raise subject.objection(call, seen, complaint.step, text, refusal)


def _any_order(subject: Trial) -> str:
    return f"; if blocks are evicted by another rule than age, declare {subject.declaring('eviction', ['any'])}"


def keeps_after_refusal(subject: Trial, story: tuple[Call, int | Sequence[int]]) -> None:
    """The story is right to its end. Whether the step, or all of several, is refused at all is another requirement's matter."""
    if all_refused(subject, story):
        keeps(subject, story[0], *MUST)
