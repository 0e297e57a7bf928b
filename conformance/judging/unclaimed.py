"""Both sides of a claim: a call within a subject's envelope, and what it leaves out and nevertheless does right."""

from __future__ import annotations

import importlib
import random
from collections.abc import Iterator, Mapping, Set
from typing import Any

from inferspec.conformance.calls import Call
from inferspec.conformance.envelope import Envelope, OutsideEnvelope, envelope_of, left_beside
from inferspec.conformance.judging.trial import Nonconformance, Trial
from inferspec.conformance.strategies import Calls, Pick
from inferspec.conformance.subject import Description, Subject, SubjectDied
from inferspec.conformance.tapes import LENGTH
from inferspec.spec import contracts, located
from inferspec.spec.contract import Contract

TRIES = 4
"""Calls that must all be right, and one of them of the choice, before it is reported."""


def unclaimed(subject: Subject, description: Description, without: Set[str] = frozenset()) -> dict[str, list[str]]:
    """Return operation -> the choices outside its envelope that work: ``{"RoPE": ["offsets: slices"]}``.

    without: operations to leave alone, since their plainest call already fails.
    """
    found: dict[str, list[str]] = {}
    for contract in contracts():
        ordinary = _ordinary(contract)
        for name in (op.signature.operation for op in contract.operations):
            if name in description.offers and name not in without:
                working = list(_working(subject, description, contract, name, ordinary[name]))
                found |= {name: working} if working else {}
    return found


def claimed_call(name: str, description: Description) -> Call | None:
    """An ordinary call of an operation within its envelope, None where nothing that is ordinary is claimed."""
    contract, _ = located(name)
    ordinary, claimed = _ordinary(contract)[name], _claimed(description, contract, name)
    try:
        return ordinary.build(Pick(random.Random(0).randbytes(LENGTH), ordinary.narrowed(claimed)))
    except OutsideEnvelope:
        return None


def _ordinary(contract: Contract) -> dict[str, Calls]:
    found: dict[str, Calls] = importlib.import_module(f"inferspec.conformance.inputs.{contract.component}").ORDINARY
    return found


def _claimed(description: Description, contract: Contract, name: str) -> Envelope:
    declared = description.envelope.get(contract.component, {})
    return envelope_of(contract, declared, description.narrowed(name))


def _working(
    subject: Subject, description: Description, contract: Contract, name: str, ordinary: Calls
) -> Iterator[str]:
    claimed = _claimed(description, contract, name)
    # Of a parameter that is not there, no other choice can be given.
    lacking = {key for key, _ in contract.operation(name).optional_options.values()}.intersection(
        description.narrowed(name)
    )
    for key, choices in contract.envelope.items():
        if isinstance(choices, int) or key in lacking:
            continue
        for choice in (c for c in choices if c not in claimed[key]):
            envelope = left_beside(contract, {**claimed, key: (choice,)})
            if _works(subject, contract, name, ordinary, envelope, key):
                yield f"{key}: {choice}"


def _works(
    subject: Subject, contract: Contract, name: str, ordinary: Calls, envelope: Mapping[str, Any], key: str
) -> bool:
    requirement = next(r for r in contract.requirements if r.name == name)
    tapes = random.Random(0)
    used = False
    for _ in range(TRIES):
        trial = Trial(subject, requirement)
        try:
            call = ordinary.build(Pick(tapes.randbytes(LENGTH), ordinary.narrowed(envelope)))
            trial.begin()
            trial.agrees(call)
        except (Nonconformance, OutsideEnvelope, SubjectDied):
            return False
        used = used or call.features.get(key) in envelope[key]
    return used
