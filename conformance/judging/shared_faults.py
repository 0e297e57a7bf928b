"""Faults of another operation that are possible in this one too, since they are in a step that both share: dequantisation and a
quantised product, say, read codes by the same step."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from dataclasses import replace

from inferspec.spec import contracts, located
from inferspec.spec.contract import Fault, Operation, Requirement

OWN = frozenset(vars(Operation))
"""Steps that every operation has for itself."""


@functools.cache
def kindred(operation: str) -> tuple[Fault, ...]:
    """The faults of other operations, of the same component or of a class above or below it, whose wrong steps are this one's too."""
    return tuple(fault for name in _relatives(operation) for fault in _faults_of(name) if _fits(fault, operation))


def transplanted(fault: Fault, requirement: Requirement) -> Fault:
    """The same mistake in the operation that a requirement is about."""
    return fault if fault.kills.name == requirement.name else replace(fault, kills=requirement)


def _relatives(operation: str) -> Iterator[str]:
    """Operations that may share steps with it."""
    component, own = located(operation)
    for contract in contracts():
        for other in contract.operations:
            same = contract.component == component.component
            if other is not own and (same or issubclass(other, own) or issubclass(own, other)):
                yield other.signature.operation


def _faults_of(operation: str) -> list[Fault]:
    return [fault for fault in located(operation)[0].faults if fault.kills.name == operation]


def _fits(fault: Fault, operation: str) -> bool:
    own, other = located(operation)[1], located(fault.kills.name)[1]
    return all(
        step not in OWN and hasattr(own, step) and getattr(own, step) is getattr(other, step) for step in fault.change
    )
