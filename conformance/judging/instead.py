"""What a subject takes or does in another way than the usual, where either is right: it is asked for that, as if it had declared so."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator, Mapping, Sequence, Set

import numpy as np

from inferspec.conformance.calls import Call
from inferspec.conformance.envelope import Envelope, envelope_of
from inferspec.conformance.subject import Description, Subject, SubjectDied
from inferspec.spec import contracts
from inferspec.spec.contract import Contract

Told = Mapping[str, np.ndarray]
"""What came of a call, by name (`Observation.results`)."""

Answers = Mapping[str, Sequence[tuple[Call, Callable[[Told], bool]]]]
"""way, the usual one first -> calls, each with what tells of its results whether they come in that way. Empty where no call of the
envelope can tell."""

Ways = Callable[[Envelope], Answers]


def give_what_is_taken(subject: Subject, description: Description, without: Set[str] = frozenset()) -> None:
    """Where it is not the usual way in which a subject answers (`INSTEAD` of a component's inputs), but another: leave that alone in
    the envelope.

    without: operations to leave alone, since their plainest call already fails.
    """
    for contract in contracts():
        declared = description.envelope.get(contract.component, {})
        for name, key, ways in _instead(contract):
            if name in description.offers and name not in without and key not in declared:
                calls = ways(envelope_of(contract, declared, description.narrowed(name)))
                answered = (way for way, asked in calls.items() if all(_is_right(subject, *one) for one in asked))
                way = next(answered, None)
                if way not in (None, next(iter(calls), None)):
                    description.leave(contract, {key: [way]})


def _instead(contract: Contract) -> Iterator[tuple[str, str, Ways]]:
    inputs = importlib.import_module(f"inferspec.conformance.inputs.{contract.component}")
    ways: Mapping[str, Mapping[str, Ways]] = getattr(inputs, "INSTEAD", {})
    for name, keys in ways.items():
        for key, make in keys.items():
            yield name, key, make


def _is_right(subject: Subject, call: Call, right: Callable[[Told], bool]) -> bool:
    """Whether a call is answered, and rightly."""
    try:
        seen = subject.call(call)
    except SubjectDied:
        return False
    return not seen.raised and right(seen.results)
