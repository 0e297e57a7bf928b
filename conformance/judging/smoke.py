"""The smoke stage: one plain call of every offered operation, before any test, to see whether the adapter can be used at all."""

from __future__ import annotations

import re
from typing import Any

from inferspec.conformance.bridge.arrays import KINDS
from inferspec.conformance.bridge.drivers import driver_of
from inferspec.conformance.bridge.hosted_subject import HostedSubject
from inferspec.conformance.bridge.layouts.packages import UNFILLED
from inferspec.conformance.bridge.signatures import AdapterError
from inferspec.conformance.calls import Call, Observation
from inferspec.conformance.envelope import meet
from inferspec.conformance.inputs import plain_call
from inferspec.conformance.judging.unclaimed import claimed_call
from inferspec.conformance.subject import Description, SubjectDied
from inferspec.conformance.trust.isolation import AsksTheKit
from inferspec.spec import located
from inferspec.spec.contract import STORY, Unreadable

_CALL_ERRORS = re.compile(
    r"unexpected keyword|required (positional|keyword-only)|positional argument|incompatible function arguments|takes \d+"
    r"|is not callable|neither takes \w+ nor has|multiple values for argument"
)

UNREADABLE = f"{Unreadable.__name__}: "
"""What stands before what the kit says of a result that it cannot read."""

_AT = " (at "
"""What stands before the subject's own line in the text of an error (`executor`)."""


def smoke_test(subject: HostedSubject, description: Description) -> dict[str, tuple[str, str]]:
    """Call every offered operation plainly; return operation -> (state, message) of those that stub, crash or hang at it.

    What a package of a layout has not written yet, and what does not fit and is of no component that is asked for, is absent from then
    on. AdapterError, for all misfits at once, where the adapter is at fault.
    """
    found: dict[str, tuple[str, str]] = {}
    unfit: list[str] = []
    for operation in description.offers:
        try:
            found |= _smoke_of(operation, subject, description)
        except AdapterError as misfit:
            if subject.components and located(operation)[0].component not in subject.components:
                description.absent[operation] = str(misfit)
            else:
                unfit.append(str(misfit))
    if unfit:
        raise AdapterError("; and ".join(unfit))
    for operation in description.absent:
        description.offers.pop(operation, None)
    for operation in description.offers:
        description.shown[operation] = _with_what_it_uses(operation, description)
    return found


def _with_what_it_uses(operation: str, description: Description) -> dict[str, Any]:
    """What is left of an operation's envelope by its own objects and by those of the same contract that it is used with: a block
    table is of caches that can be rewound, or cannot."""
    contract, used = located(operation)
    left = dict(description.narrowed(operation))
    for other in (one.name for one in used.beside if one.name in description.offers):
        if located(other)[0] is contract:
            own = description.narrowed(other)
            left |= {key: meet(left.get(key, kept), kept) for key, kept in own.items()}
    return left


def _smoke_of(operation: str, subject: HostedSubject, description: Description) -> dict[str, tuple[str, str]]:
    """What is wrong with an operation that cannot even be called plainly; AdapterError where that is the adapter's fault."""
    call = plain_call(operation)
    try:
        seen, shown = subject.call(call), subject.shown(operation)
    except SubjectDied as death:
        return {operation: (death.state, f"{death} (the plainest call)")}
    description.shown[operation] = shown["narrowed"]
    if (seen.stub or seen.unwritten or UNFILLED.search(f"{seen.raised}: {seen.message}")) and subject.layout:
        # What is only begun, or needs what is not built here, is not claimed.
        why = f"{operation} returns None" if seen.stub and not seen.raised else seen.message.partition(_AT)[0]
        description.absent[operation] = why or f"{operation} raises NotImplementedError"
    elif shown["lacking"]:
        # What it is made for first of all it must have.
        why = f"what the subject makes has no {', '.join(shown['lacking'])}"
        if operation == located(operation)[1].signature.name and not subject.layout:
            raise AdapterError(f"{description.spec}: {operation}: {why}")
        description.absent[operation] = why
    elif seen.stub or seen.unwritten:
        # The plainest call may lie outside of the envelope, where NotImplementedError is right.
        claimed = _seen_within(operation, subject, description) or seen
        # That a step was refused is a result too.
        answered = bool(claimed.results) and not claimed.unwritten
        return {} if answered else {operation: ("overclaimed", _pretended(operation, claimed))}
    elif not subject.layout and not seen.results and not seen.raised:
        raise AdapterError(
            f"{description.spec}: {operation} returned a {seen.message} for {description.arrays} arrays; it must return"
            f" {_promised(operation)} of the kind it is given (ARRAYS takes {', '.join(KINDS)})"
        )
    elif not subject.layout and UNREADABLE in (told := f"{seen.raised}: {seen.message}"):
        why = told.partition(UNREADABLE)[2].partition("; step ")[0]
        raise AdapterError(f"{description.spec}: {operation} cannot be used as the contract does: {why}")
    elif not subject.layout and seen.raised:
        _blame_adapter(subject, description, call, f"{seen.raised}: {seen.message}")
    return {}


def _seen_within(operation: str, subject: HostedSubject, description: Description) -> Observation | None:
    """What comes of a call within its envelope; None where nothing is claimed, or the subject dies of it."""
    call = claimed_call(operation, description)
    try:
        return subject.call(call) if call else None
    except SubjectDied:
        return None


def _pretended(operation: str, seen: Observation) -> str:
    """What to say of an operation whose plainest call is not answered: it may be a stub, or lack what just this one asks for."""
    if seen.stub and not seen.raised:
        return f"{operation} is a stub: it returns None; leave out what is not there"
    contract = located(operation)[0]
    told = f"{seen.raised}: {seen.message}" if seen.raised else seen.message
    return (
        f"{operation} does not answer its plainest call ({told}); leave it out if it is a stub, or say what it takes in"
        f' ENVELOPE["{contract.component}"], whose keys are {", ".join(contract.envelope)}'
    )


def _promised(operation: str) -> str:
    """What an operation must return, in words."""
    parts = located(operation)[1].parts
    if not parts:
        return "one array"
    return "arrays" if parts == STORY else f"a tuple ({', '.join(parts)}), or a dict with these names, of arrays"


def _blame_adapter(subject: HostedSubject, description: Description, call: Call, error: str) -> None:
    """Raise AdapterError when the error is the adapter's and not the implementation's."""
    if _CALL_ERRORS.search(error):
        raise AdapterError(
            f"{description.spec}: {call.operation} cannot be called as the contract does: {error}; what it must take is in what"
            " `inferspec init` writes"
        )
    if error.startswith("AttributeError: ") and _AT not in error:
        # Raised where no line of the subject's is: it is the kit that looks for the attribute.
        raise AdapterError(
            f"{description.spec}: {call.operation} lacks what the contract reads ({error.partition(': ')[2]}); what it must have is"
            " in what `inferspec init` writes"
        )
    if error.startswith(f"{AsksTheKit.__name__}: "):
        # With arrays of no kind would it be answered.
        return
    for kind in KINDS:
        if kind == description.arrays:
            continue
        other = HostedSubject(
            description.spec, subject.replacements, arrays=kind, metal=subject.metal, components=subject.components
        )
        try:
            seen = other.call(call)
        except (AdapterError, SubjectDied):
            continue
        finally:
            other.close()
        if seen.results:
            raise AdapterError(
                f"{description.spec}: {call.operation} fails on {description.arrays} arrays ({error}) and works on"
                f' {kind} arrays; declare ARRAYS = "{kind}"'
            )
    driven = driver_of(located(call.operation)[0].component, call.operation)
    if driven and error.startswith("TypeError: ") and _AT not in error:
        # What the kit does with what it gave, such as to take ids out of it.
        raise AdapterError(
            f"{description.spec}: {call.operation} cannot be used as the contract does: {error.partition(': ')[2]}"
        )
