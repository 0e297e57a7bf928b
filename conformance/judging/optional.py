"""What a subject may refuse, and does: it is asked for nothing of it, as if it had declared so."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator, Mapping, Set
from typing import Any

import numpy as np

from inferspec.conformance.calls import Call
from inferspec.conformance.envelope import Envelope, OutsideEnvelope, envelope_of
from inferspec.conformance.inputs import plain_call
from inferspec.conformance.subject import Description, Subject, SubjectDied
from inferspec.spec import contracts
from inferspec.spec.contract import Contract
from inferspec.spec.numerics import numpy_dtype

Asked = Call | Callable[[Envelope], Call]
"""A call that asks for a choice that may be refused and for nothing else that is rare, or what makes it of an envelope."""

CLAIMED = {"block_size": "block_sizes", "page_size": "page_sizes", "prefix_caching": "prefix_caching"}
"""Arguments of stories that have a key of the envelope to themselves."""


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
            refused = {choice for choice, call in calls.items() if _refuses(subject, call, envelope)}
            if refused and len(calls) < len(choices) and _refuses_more(subject, name, calls, envelope):
                continue
            left = {key: [choice for choice in choices if choice not in refused]}
            # Who refuses every choice refuses something else.
            if refused and left[key]:
                description.leave(contract, left)


def optional_choices(contract: Contract) -> Iterator[tuple[str, str, Mapping[Any, Asked]]]:
    """Operation, key, and the choices of it that may be refused, each with what asks for it."""
    inputs = importlib.import_module(f"inferspec.conformance.inputs.{contract.component}")
    optional: Mapping[str, Mapping[str, Mapping[Any, Asked]]] = getattr(inputs, "OPTIONAL", {})
    for name, keys in optional.items():
        for key, calls in keys.items():
            yield name, key, calls


def _refuses_more(subject: Subject, name: str, calls: Mapping[Any, Asked], envelope: Envelope) -> bool:
    """Whether the plainest call is refused as well, so that refusals tell nothing of a choice. What is made of the envelope asks
    for nothing else anyway."""
    fixed = all(isinstance(call, Call) for call in calls.values())
    return fixed and _refuses(subject, plain_call(name), envelope)


def _made(asked: Asked, envelope: Envelope) -> Call:
    call = asked if isinstance(asked, Call) else asked(envelope)
    # What was drawn has features, and is of the envelope already.
    return call if call.features else _within(call, envelope)


def _within(call: Call, envelope: Envelope) -> Call:
    """A plain call as the envelope has it: one that is outside of it may be refused for that alone."""
    for argument, key in CLAIMED.items():
        choices = envelope.get(key, ())
        if "steps" in call.arguments and choices and call.arguments.get(argument, choices[0]) not in choices:
            call = call.having(**{argument: choices[0]})
    dtypes = envelope.get("dtypes", ("float32",))
    return call if "float32" in dtypes else call.having(**_in_dtype(dict(call.arguments), dtypes[0]))


def _in_dtype(value: Any, dtype: str) -> Any:
    """Nested arguments with all their numbers of float32 in another dtype."""
    if isinstance(value, np.ndarray):
        return value.astype(numpy_dtype(dtype)) if value.dtype == np.float32 else value
    if isinstance(value, Mapping):
        return {name: _in_dtype(one, dtype) for name, one in value.items()}
    if isinstance(value, tuple):
        return tuple(_in_dtype(one, dtype) for one in value)
    return dtype if value == "float32" else value


def _refuses(subject: Subject, asked: Asked, envelope: Envelope) -> bool:
    """Whether a call, or a step of its story, ends in an error; what the envelope has no call for is not refused."""
    try:
        seen = subject.call(_made(asked, envelope))
    except (OutsideEnvelope, SubjectDied):
        return False
    return bool(seen.raised) or any(name.endswith("refused") for name in seen.results)
