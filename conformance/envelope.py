"""What tests may draw: the contract's envelope, cut down by what a subject declares and by what its signatures take."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from inferspec.spec import contracts
from inferspec.spec.contract import Contract, Operation

Envelope = Mapping[str, Any]


FLOOR = 64
"""What an adapter may declare as a largest value, at least: with one position a RoPE that turns nothing would be right."""

NARROW = {"num_draft_tokens": 1}
"""The same where honest implementations do with less."""


class OutsideEnvelope(Exception):
    """A test asks for something that the subject does not claim to support."""


def envelope_of(contract: Contract, declared: Mapping[str, Any], narrowed: Mapping[str, Any]) -> dict[str, Any]:
    """Return key -> choices (a tuple) or largest value (an int) for one operation of a component."""
    envelope = dict(contract.envelope)
    for part in (declared, narrowed):
        for key, values in part.items():
            envelope[key] = meet(envelope[key], values)
    return left_beside(contract, envelope)


def left_beside(contract: Contract, envelope: Envelope) -> dict[str, Any]:
    """Return the envelope without what goes with no choice that a key has alone (`Contract.alone`)."""
    left = dict(envelope)
    for (key, choice), others in contract.alone.items():
        if envelope[key] == (choice,):
            left |= {other: meet(left[other], kept) for other, kept in others.items()}
    return left


def declared_elsewhere(
    envelope: Mapping[str, Envelope], contract: Contract, operation: type[Operation]
) -> dict[str, tuple[Any, ...]]:
    """What parts of other components, or the models that an operation serves, take by an adapter's envelope: more is not asked of it
    either."""
    used = {*operation.borrowed(), *(other.name for other in operation.beside if other.narrows)}
    others = [one for one in contracts() if any(op.signature.operation in used for op in one.operations)]
    found: dict[str, tuple[Any, ...]] = {}
    for other in others:
        for key, values in envelope.get(other.component, {}).items():
            if isinstance(contract.envelope.get(key), tuple) and meet(contract.envelope[key], values):
                # Where they have nothing in common the first one's stands.
                found[key] = meet(found.get(key, tuple(values)), values) or found[key]
    return found


def meet(first: Any, second: Any) -> Any:
    """Return what two choices have in common, in the first one's order; for largest values, the smaller."""
    if isinstance(first, int):
        return min(first, second)
    wanted = {_hashable(value) for value in second}
    return tuple(value for value in first if _hashable(value) in wanted)


def floor(key: str) -> int:
    """The fewest that a largest value may be declared as."""
    return NARROW.get(key, FLOOR)


def narrow(envelope: Envelope, asked: Mapping[str, Any]) -> dict[str, Any]:
    """Return the envelope cut down to what a test asks for; OutsideEnvelope when nothing is left of a key.

    A largest value that is asked for as an int is a demand: the subject's must reach it.
    """
    narrowed = dict(envelope)
    for key, values in asked.items():
        if isinstance(envelope[key], int):
            if envelope[key] < values:
                raise OutsideEnvelope(f"{key} only up to {envelope[key]}, the test needs {values}")
            continue
        narrowed[key] = meet(envelope[key], values)
        if not narrowed[key]:
            raise OutsideEnvelope(f"{key} {list(envelope[key])} has none of {list(values)}")
    return narrowed


def _hashable(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value
