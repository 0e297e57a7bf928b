"""Stories of engines for the suites: requests that are to be refused, among others that are not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from inferspec.conformance.calls import Call
from inferspec.conformance.inputs.engine_models import model
from inferspec.conformance.inputs.engine_script import WHOLE, Script, calls, told
from inferspec.conformance.strategies import Pick


def _bad(script: Script, bad: Callable[[Script], dict[str, Any]]) -> int:
    """Requests, one that is to be refused among them; its number."""
    script.requests(0, 2, (3, 2))
    script.pages = sum(script.need(len(tokens), limit) for tokens, limit in script.asked.values()) + 4
    number = script.do("add", **bad(script))
    script.requests(1, 1, (3, 2))
    script.pages += sum(script.need(len(tokens), limit) for tokens, limit in script.asked.values())
    if callable(script.steps[number - 1][1]["tokens"]):
        script.steps[number - 1][1]["tokens"] = script.steps[number - 1][1]["tokens"]()
    return number


@told(*WHOLE)
def empty_prompts(script: Script) -> int:
    """A story in which a request without tokens is added, and the number of that step."""
    return _bad(script, lambda s: {"tokens": (), "max_tokens": s.pick.count("zero_max_tokens", 3, 0, 1)})


@told(*WHOLE)
def negative_limits(script: Script) -> int:
    """A story in which fewer than no ids are asked for."""
    return _bad(script, lambda s: {"tokens": s.ids(3), "max_tokens": s.pick.one_of(-1, -5)})


@told(*WHOLE)
def strange_ids(script: Script) -> int:
    """A story in which a prompt has an id outside the vocabulary."""

    def bad(s: Script) -> dict[str, Any]:
        token = s.pick.one_of(s.vocabulary, -1, s.vocabulary + 7, -s.vocabulary)
        place = s.pick.size(0, 3)
        return {
            "tokens": (*s.ids(place), token, *s.ids(3 - place)),
            "max_tokens": s.pick.count("zero_max_tokens", 3, 3, 0),
        }

    return _bad(script, bad)


@told(*WHOLE, pages=["told"])
def too_large(script: Script) -> int:
    """A story in which a request asks for a token more than all pages together could hold, or for many more."""

    def bad(s: Script) -> dict[str, Any]:
        limit = s.pick.one_of(1, 3, 6)
        more = s.pick.one_of(2, 2, 30)
        return {"tokens": lambda: s.ids(max(s.pages * s.size - limit + more, 1)), "max_tokens": limit}

    return _bad(script, bad)


@told("outputs")
def strangers(script: Script) -> int:
    """A story in which the engine is asked about an id that no request has, while one waits."""
    script.requests(0, 2, (2, 3))
    script.add(script.prompt(script.pick.size(1, 6), 3), 3)
    methods = ("cancel", "output", "finished", "metrics")
    method = script.pick.one_of(*methods[True not in script.pick.envelope["cancelling"] :])
    # As an index from the end it would be the last request's.
    return script.do("strange", method=method, name=script.pick.one_of(10**6, -1))


@calls
def other_vocabularies(pick: Pick) -> Call:
    """A draft that knows other ids."""
    script = Script(pick)
    script.add(script.prompt(3, 2), 2)
    other = next(
        m for m in (model(script.kind, i, 1, 1) for i in range(3)) if m["config"]["vocab_size"] != script.vocabulary
    )
    script.draft = other
    return script.call()
