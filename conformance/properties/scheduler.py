"""Sentences about one subject and the history of one story of a scheduler; the suites of schedulers share them."""

from __future__ import annotations

from inferspec.conformance.calls import Call
from inferspec.conformance.judging.trial import Nonconformance, Trial
from inferspec.spec.scheduling_histories import Check, complaints


def keeps(subject: Trial, call: Call, *checks: Check) -> None:
    """The story's history has nothing against these checks, and nothing raises."""
    seen = subject.answered(call)

    def judge(meant: Call) -> None:
        for complaint in complaints(subject.promised(meant), seen.results):
            if complaint.check in (*checks, Check.RAISED):
                refusal = complaint.check is Check.RAISED
                raise subject.objection(call, seen, complaint.step, complaint.text, refusal)

    subject.judged(call, judge)


def keeps_beyond(subject: Trial, call: Call, easier: Call, *checks: Check) -> None:
    """The story has nothing against these checks that an easier one does not have too."""
    try:
        keeps(subject, call, *checks)
    except Nonconformance:
        wrong = {one.check for one in complaints(subject.promised(easier), subject.answered(easier).results)}
        if Check.RAISED not in wrong:
            keeps(subject, call, *(check for check in checks if check not in wrong))
