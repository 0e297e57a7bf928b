"""The subject as a suite sees it: something that takes a `Call` and gives an `Observation`."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from inferspec.conformance.bridge.arrays import NumpyArrays
from inferspec.conformance.bridge.binding import Target
from inferspec.conformance.bridge.executor import Executor
from inferspec.conformance.bridge.wire import readable
from inferspec.conformance.calls import Call, Observation
from inferspec.conformance.envelope import declared_elsewhere, meet
from inferspec.spec import contracts
from inferspec.spec.contract import Contract, Operation

Result = tuple[tuple[int, ...], str]
"""Shape and dtype of an array that a call must return."""

DECLARED = ("name", "version", "arrays", "precision", "layout", "waivers")
"""What, beside offers and envelope, a subject may not declare differently when it is loaded again: the certificate says what
it declared at first."""


class SubjectDied(Exception):
    """The subject's process crashed or hung during a call. state: `crashed` or `hung`."""

    def __init__(self, state: str, message: str) -> None:
        super().__init__(message)
        self.state = state


@dataclass
class Description:
    """What is known of a subject before any test: see `host.describe`."""

    spec: str = ""
    name: str = ""
    version: str = ""
    origin: str = ""
    arrays: str = "numpy"
    library: str = ""
    device: str = "cpu"
    kernel_path: str = "none"
    """What ran its kernels (`metal.kernel_path`); known after the smoke stage."""
    offers: dict[str, dict[str, Any]] = field(default_factory=dict)
    shown: dict[str, dict[str, Any]] = field(default_factory=dict)
    """operation -> what is left of its envelope, by what it has made; known after the smoke stage."""
    broken: dict[str, str] = field(default_factory=dict)
    absent: dict[str, str] = field(default_factory=dict)
    """operation -> why it is not claimed, where a layout tells."""
    envelope: dict[str, dict[str, Any]] = field(default_factory=dict)
    seen: dict[str, dict[str, Any]] = field(default_factory=dict)
    """Of the envelope, what is not declared: choices that are left where others may be refused, and are (`optional`), or where
    the subject does otherwise than is usual (`instead`)."""
    precision: dict[str, str] = field(default_factory=dict)
    waivers: str = ""
    layout: str = ""
    """Whose names it has (`layouts`), where it is no adapter."""
    edition: str = ""
    """Of the layout's text, which it was written to."""

    @classmethod
    def told(cls, answer: Mapping[str, Any]) -> Description:
        """What a subject's process tells of it; name and version in one line, or they could be lines of a report."""
        described = cls(**answer)
        for name in ("name", "version", "edition"):
            setattr(described, name, readable(" ".join(getattr(described, name).split())))
        described.broken = {name: readable(why) for name, why in described.broken.items()}
        described.absent = {name: readable(why) for name, why in described.absent.items()}
        return described

    def narrowed(self, operation: str) -> Mapping[str, Any]:
        """What is left of the envelope of an operation that is offered, since parameters or methods are missing."""
        return self.shown.get(operation, self.offers[operation]["narrowed"])

    def leave(self, contract: Contract, left: Mapping[str, Sequence[Any]]) -> None:
        """Go on as if that had been declared, which was seen: no more is left of a component's envelope."""
        component = contract.component
        for of in ("envelope", "seen"):
            known: dict[str, dict[str, Any]] = getattr(self, of)
            setattr(self, of, {**known, component: {**known.get(component, {}), **left}})
        for operation in contract.operations:
            name, usual = operation.signature.operation, operation.unless_declared.keys() & left.keys()
            if usual and name in self.offers:
                self.shown[name] = {key: kept for key, kept in self.narrowed(name).items() if key not in usual}
        for other in contracts():
            for operation in other.operations:
                if (name := operation.signature.operation) in self.offers:
                    self._leave_where_used(name, declared_elsewhere({component: left}, other, operation))

    def _leave_where_used(self, operation: str, left: Mapping[str, tuple[Any, ...]]) -> None:
        """Ask an operation for no more than what it is used with takes."""
        narrowed = self.narrowed(operation)
        less = {key: meet(narrowed.get(key, kept), kept) for key, kept in left.items()}
        self.shown[operation] = {**narrowed, **{key: kept for key, kept in less.items() if kept}}

    def declared(self) -> dict[str, dict[str, Any]]:
        """The envelope without what was only seen."""
        kept = {
            component: {key: left for key, left in keys.items() if key not in self.seen.get(component, {})}
            for component, keys in self.envelope.items()
        }
        return {component: keys for component, keys in kept.items() if keys}

    def differing(self, other: Description) -> str:
        """The first thing that another description declares otherwise, "" where there is none."""
        offers = {name: other.offers.get(name) for name in self.offers}
        pairs = {
            "offers": (self.offers, offers),
            "envelope": (self.declared(), other.declared()),
            **{name: (getattr(self, name), getattr(other, name)) for name in DECLARED},
        }
        # Lists and tuples are alike: a description may have come by way of xdist.
        return next((name for name, (one, two) in pairs.items() if json.dumps(one) != json.dumps(two)), "")


class Subject(Protocol):
    """The implementation under test."""

    @property
    def description(self) -> Description:
        """What it offers and declares."""
        ...

    def call(self, call: Call, results: Sequence[Result] = (), watch: bool = False) -> Observation:
        """Make a call; SubjectDied when the subject does not survive it."""
        ...

    def reset(self) -> None:
        """Begin a new example: objects that calls shared are gone."""
        ...


class ReferenceArrays(NumpyArrays):
    """What operations of the contract speak: NumPy arrays, and dtypes by name."""

    def dtype(self, name: str) -> str:
        return name


class _Own(Target):
    """An operation of the contract as it is called here: by all of its parameters, whatever it is built with."""

    def made(self, arguments: Mapping[str, Any]) -> Any:
        own: Any = self.function
        return type(own)() if self.operation.goes_on else own


class LocalSubject:
    """Operations of the contract (an oracle, a fault, a variant) in the place of a subject, in this process. precision,
    envelope: what it declares, by component."""

    def __init__(
        self,
        operations: Mapping[str, type[Operation]],
        precision: Mapping[str, str] | None = None,
        envelope: Mapping[str, Mapping[str, Any]] | None = None,
    ) -> None:
        self._operations = dict(operations)
        self.description = Description(
            name="local",
            offers={name: {"narrowed": {}, "module": "", "plain": True} for name in self._operations},
            precision=dict(precision or {}),
            envelope={component: dict(declared) for component, declared in (envelope or {}).items()},
        )
        self.reset()

    def reset(self) -> None:
        # A fresh class for each example: what a fault remembers, it remembers on its class.
        kind = ReferenceArrays()
        claimed = {key: value for declared in self.description.envelope.values() for key, value in declared.items()}
        targets = {}
        for name, operation in self._operations.items():
            fresh = type(operation.__name__, (operation,), {"claimed": claimed})
            names = {parameter: parameter for parameter in operation.signature.parameters}
            targets[name] = _Own(operation, fresh(), kind, plain=True, call_names=names)
        self._executor = Executor(targets)

    def call(self, call: Call, results: Sequence[Result] = (), watch: bool = False) -> Observation:
        return self._executor.call(
            call.operation, call.arguments, call.views, call.keep, (), watch, call.elsewhere, call.refilled
        )
