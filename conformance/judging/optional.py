"""What a subject may refuse, and does: it is asked for nothing of it, as if it had declared so."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator, Mapping, Set
from typing import Any

from inferspec.conformance.calls import Call
from inferspec.conformance.envelope import Envelope, envelope_of
from inferspec.conformance.subject import Description, Subject, SubjectDied
from inferspec.spec import contracts
from inferspec.spec.contract import Contract

Asked = Call | Callable[[Envelope], Call]
"""A call that asks for a choice that may be refused and for nothing else that is rare, or what makes it of an envelope."""


def leave_out_refused(subject: Subject, description: Description, without: Set[str] = frozenset()) -> None:
    """Take out of the envelope what is optional (`OPTIONAL` of a component's inputs), not declared, and refused.

    What is taken and then wrong stays in. without: operations to leave alone, since their plainest call already fails.
    """
    for contract in contracts():
        for name, key, calls in optional_choices(contract):
            declared = description.envelope.get(contract.component, {})
            if name not in description.offers or name in without or key in declared:
                continue
            choices = contract.envelope[key]
            assert isinstance(choices, tuple)
            envelope = envelope_of(contract, declared, description.narrowed(name))
            refused = {choice for choice, call in calls.items() if _refuses(subject, _made(call, envelope))}
            left = {key: [choice for choice in choices if choice not in refused]}
            if refused:
                description.envelope = {**description.envelope, contract.component: {**declared, **left}}
                seen = description.refused.get(contract.component, {})
                description.refused = {**description.refused, contract.component: {**seen, **left}}


def optional_choices(contract: Contract) -> Iterator[tuple[str, str, Mapping[Any, Asked]]]:
    """Operation, key, and the choices of it that may be refused, each with what asks for it."""
    inputs = importlib.import_module(f"inferspec.conformance.inputs.{contract.component}")
    optional: Mapping[str, Mapping[str, Mapping[Any, Asked]]] = getattr(inputs, "OPTIONAL", {})
    for name, keys in optional.items():
        for key, calls in keys.items():
            yield name, key, calls


def _made(asked: Asked, envelope: Envelope) -> Call:
    return asked if isinstance(asked, Call) else asked(envelope)


def _refuses(subject: Subject, call: Call) -> bool:
    """Whether a call, or a step of its story, ends in an error."""
    try:
        seen = subject.call(call)
    except SubjectDied:
        return False
    return bool(seen.raised) or any(name.endswith("refused") for name in seen.results)
