"""What a subject takes in another way than the usual, without a word where it does not: it is given that, as if it had declared so."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator, Mapping, Set
from typing import Any

from inferspec.conformance.calls import Call
from inferspec.conformance.envelope import Envelope, envelope_of
from inferspec.conformance.subject import Description, Subject, SubjectDied
from inferspec.spec import contracts
from inferspec.spec.contract import Contract

Ways = Callable[[Envelope], Mapping[str, Call]]
"""Makes, of an envelope, a plain call, under "", and one for each way, the usual one first, which asks for something more."""


def give_what_is_taken(subject: Subject, description: Description, without: Set[str] = frozenset()) -> None:
    """Take the first way out of the envelope but for that in which what is asked for (`INSTEAD` of a component's inputs) makes a
    difference, where it makes none in the usual way.

    without: operations to leave alone, since their plainest call already fails.
    """
    for contract in contracts():
        declared = description.envelope.get(contract.component, {})
        for name, key, ways in _instead(contract):
            if name in description.offers and name not in without and key not in declared:
                calls = dict(ways(envelope_of(contract, declared, description.narrowed(name))))
                plain = _answer(subject, calls.pop(""))
                taken = next((way for way, call in calls.items() if _answer(subject, call) not in (plain, None)), None)
                if taken not in (None, next(iter(calls))):
                    description.leave(contract.component, {key: [taken]})


def _instead(contract: Contract) -> Iterator[tuple[str, str, Ways]]:
    inputs = importlib.import_module(f"inferspec.conformance.inputs.{contract.component}")
    ways: Mapping[str, Mapping[str, Ways]] = getattr(inputs, "INSTEAD", {})
    for name, keys in ways.items():
        for key, make in keys.items():
            yield name, key, make


def _answer(subject: Subject, call: Call) -> dict[str, Any] | None:
    """What comes of a call, None where it ends in an error."""
    try:
        seen = subject.call(call)
    except SubjectDied:
        return None
    return None if seen.raised else {name: value.tolist() for name, value in seen.results.items()}
