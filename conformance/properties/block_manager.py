"""Sentences about one subject and the history of one story of a block manager; its suites share them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from inferspec.conformance.calls import Call
from inferspec.conformance.judging.trial import Trial
from inferspec.conformance.properties.common import all_refused
from inferspec.spec.block_histories import MUST, Check, complaints

MEANT: Mapping[Check, tuple[str, str, Any]] = {
    Check.ORDER: ("blocks are evicted by another rule than age", "eviction", "any"),
    Check.COMPLETE: ("no prefix is ever cached", "prefix_caching", False),
}
"""What may be meant so, as what is asked: in words, and the envelope key and its choice that say so."""


def keeps(subject: Trial, call: Call, *checks: Check) -> None:
    """The story's history has nothing against these checks, the order of eviction left out where none is claimed."""
    seen = subject.answered(call)
    unasked = () if call.features["eviction"] == "oldest first" else (Check.ORDER,)
    for complaint in complaints(subject.promised(call), seen.results):
        if complaint.check in checks and complaint.check not in unasked:
            refusal = complaint.check is Check.ADMITS
            raise subject.objection(
                call, seen, complaint.step, complaint.text + _otherwise(subject, complaint.check), refusal
            )


def _otherwise(subject: Trial, check: Check) -> str:
    """How to say so, where what is wrong may be meant."""
    if check not in MEANT:
        return ""
    what, key, choice = MEANT[check]
    return f"; if {what}, declare {subject.declaring(key, [choice])}"


def keeps_after_refusal(subject: Trial, story: tuple[Call, int | Sequence[int]]) -> None:
    """The story is right to its end. Whether the step, or all of several, is refused at all is another requirement's matter."""
    if all_refused(subject, story):
        keeps(subject, story[0], *MUST)
