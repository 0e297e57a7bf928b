"""Stories of engines for the suites: requests that are to be refused, among others that are not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from inferspec.conformance.calls import Call
from inferspec.conformance.inputs.engine_models import model
from inferspec.conformance.inputs.engine_script import PLAIN, WHOLE, Script, calls, told
from inferspec.conformance.strategies import Pick

Bad = Callable[[Script], dict[str, Any]]
"""A request that is to be refused. Its tokens may be a function, to be called when the pages are known."""


def _bad(script: Script, bad: Bad, again: bool = False) -> Any:
    """Requests, one that is to be refused among them; its number. again: it comes several times in a row; their numbers."""
    script.requests(0, 2, (3, 2))
    script.pages = sum(script.need(len(tokens), limit) for tokens, limit in script.asked.values()) + 4
    number = script.do("add", **bad(script))
    numbers = script.tried(again)
    script.requests(1, 1, (3, 2))
    script.pages += sum(script.need(len(tokens), limit) for tokens, limit in script.asked.values())
    if callable(script.steps[number - 1][1]["tokens"]):
        script.steps[number - 1][1]["tokens"] = script.steps[number - 1][1]["tokens"]()
    return numbers


def _without_tokens(script: Script) -> dict[str, Any]:
    return {"tokens": (), "max_tokens": script.pick.count("zero_max_tokens", 3, 0, 1)}


def _below_none(script: Script) -> dict[str, Any]:
    return {"tokens": script.ids(3), "max_tokens": script.pick.one_of(-1, -5)}


def _of_strange_ids(script: Script) -> dict[str, Any]:
    token = script.pick.one_of(script.vocabulary, -1, script.vocabulary + 7, -script.vocabulary)
    place = script.pick.size(0, 3)
    return {
        "tokens": (*script.ids(place), token, *script.ids(3 - place)),
        "max_tokens": script.pick.count("zero_max_tokens", 3, 3, 0),
    }


def _past_all_pages(script: Script) -> dict[str, Any]:
    limit = script.pick.one_of(1, 3, 6)
    more = script.pick.one_of(2, 2, 30)
    return {"tokens": lambda: script.ids(max(script.pages * script.size - limit + more, 1)), "max_tokens": limit}


@told(*WHOLE)
def empty_prompts(script: Script) -> Any:
    """A story in which a request without tokens is added, and the number of that step."""
    return _bad(script, _without_tokens)


@told(*WHOLE)
def negative_limits(script: Script) -> Any:
    """A story in which fewer than no ids are asked for."""
    return _bad(script, _below_none)


@told(*WHOLE)
def strange_ids(script: Script) -> Any:
    """A story in which a prompt has an id outside the vocabulary."""
    return _bad(script, _of_strange_ids)


@told(*WHOLE, pages=["told"])
def too_large(script: Script) -> Any:
    """A story in which a request asks for a token more than all pages together could hold, or for many more."""
    return _bad(script, _past_all_pages)


@told(*WHOLE, pages=["told"])
def too_large_again(script: Script) -> Any:
    """The same, of a request that comes several times in a row, and the numbers of those steps."""
    return _bad(script, _past_all_pages, again=True)


@told(*WHOLE)
def refused_again(script: Script) -> Any:
    """A story in which a request that is to be refused comes several times in a row, and the numbers of those steps."""
    return _bad(script, script.pick.one_of(_below_none, _without_tokens, _of_strange_ids), again=True)


@told("outputs", "ends", **PLAIN)
def refused_before_a_run(script: Script) -> Any:
    """A story in which a request that is to be refused comes before a run, and the number of that step."""
    number = _bad(script, script.pick.one_of(_without_tokens, _below_none))
    script.do("run")
    return number


@told("outputs", outputs=["told"])
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
