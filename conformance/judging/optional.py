"""What a subject may refuse, and does: it is asked for nothing of it, as if it had declared so."""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Mapping, Set

from inferspec.conformance.calls import Call
from inferspec.conformance.subject import Description, Subject, SubjectDied
from inferspec.spec import contracts
from inferspec.spec.contract import Contract


def leave_out_refused(subject: Subject, description: Description, without: Set[str] = frozenset()) -> None:
    """Take out of the envelope what is optional (`OPTIONAL` of a component's inputs), not declared, and refused.

    What is taken and then wrong stays in. without: operations to leave alone, since their plainest call already fails.
    """
    for contract in contracts():
        for name, key, choice, call in optional_choices(contract):
            declared = description.envelope.get(contract.component, {})
            if name in description.offers and name not in without and key not in declared and _refuses(subject, call):
                choices = contract.envelope[key]
                assert isinstance(choices, tuple)
                left = [one for one in choices if one != choice]
                description.envelope = {**description.envelope, contract.component: {**declared, key: left}}
                refused = description.refused.get(contract.component, {})
                description.refused = {**description.refused, contract.component: {**refused, key: left}}


def optional_choices(contract: Contract) -> Iterator[tuple[str, str, object, Call]]:
    """Operation, key, the choice that may be refused, and a call that asks for it and for nothing else that is rare."""
    inputs = importlib.import_module(f"inferspec.conformance.inputs.{contract.component}")
    optional: Mapping[str, Mapping[str, tuple[object, Call]]] = getattr(inputs, "OPTIONAL", {})
    for name, choices in optional.items():
        for key, (choice, call) in choices.items():
            yield name, key, choice, call


def _refuses(subject: Subject, call: Call) -> bool:
    """Whether a call, or a step of its story, ends in an error."""
    try:
        seen = subject.call(call)
    except SubjectDied:
        return False
    return bool(seen.raised) or any(name.endswith("refused") for name in seen.results)
