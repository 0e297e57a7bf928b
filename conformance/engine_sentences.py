"""Sentences about one subject and one story of requests; the suites of engines share them."""

from __future__ import annotations

from inferspec.conformance.calls import Call
from inferspec.conformance.trial import Nonconformance, Trial


def adds(call: Call) -> list[int]:
    """The steps that add a request."""
    return [number for number, (step, _) in enumerate(call.arguments["steps"], 1) if step == "add"]


def runs_no_more_than_may(subject: Trial, call: Call) -> None:
    """No step gives ids of more requests than may run, of those who are not finished by it."""
    at_once, most = int(subject.parts(call)["most at once"]), call.arguments["max_requests"]
    if at_once > most:
        raise Nonconformance(
            f"{at_once} requests generate in one step and are not finished, and at most {most} may run", call
        )


def without_what_is_refused(subject: Trial, call: Call, step: int) -> Call:
    """The story without that step, where it is refused."""
    if f"{step} refused" not in subject.answered(call).results:
        return call
    return call.having(steps=tuple(one for number, one in enumerate(call.arguments["steps"], 1) if number != step))
