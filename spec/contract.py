"""What a contract is made of: requirements, operations (oracle and budget), faults and honest variants.

An `Operation` is the obviously right float64 version of one name of a component. Its steps are small methods, so
that a `Fault` (one realistic mistake) or a `Variant` (another honest way) is the operation with a few steps
replaced. Everything here takes and returns NumPy arrays; bfloat16 comes from ml_dtypes.
"""

from __future__ import annotations

import ast
import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import cached_property
from importlib import import_module
from types import SimpleNamespace
from typing import Any, ClassVar

import numpy as np

from inferspec.spec.numerics import Precision, round_to


class Level(StrEnum):
    """How binding a requirement is (RFC 2119).

    What comes out, its dtype and what is kept of it is a MUST, but where implementations that are used as they are differ: on a row
    of plain attention that sees no key, for one, and so on attention without keys. A refusal is

    * a MUST where its lack corrupts values without a word and the host knows better: shapes, dtypes, sizes, sets of tensors,
      Python's own numbers and lists (ids that a request brings, drafts that are looked up one by one), pages, pools, top_p,
      tensors without a place;
    * a SHOULD where it takes a look at the numbers in an array, which on a GPU is a wait for all that came before (ids of a
      lookup or of a model); where the bad input shows in what comes out (times that run backwards give negative times, which
      a mean over requests then hides: there it is a MUST); and where nobody suffers but who made the mistake.

    One sentence has one level in all contracts, or a reason for each (`spec/test_contracts.py`).
    """

    MUST = "MUST"
    SHOULD = "SHOULD"


class Aspect(StrEnum):
    """What a requirement is about; a certificate reports the aspects apart."""

    VALUE = "value"
    DTYPE = "dtype"
    ROUNDING = "rounding"
    GUARD = "guard"


@dataclass(frozen=True, slots=True)
class Requirement:
    """One sentence of a contract. `name` is the operation that it is about; ids are never reused."""

    id: str
    text: str
    name: str
    level: Level = Level.MUST
    aspect: Aspect = Aspect.VALUE
    source: str = ""


@dataclass(frozen=True, slots=True)
class Signature:
    """How an operation is spelt: `Name(init…)(call…)`, `Name(init…).method(call…)`, `Name.method(call…)` or `name(call…)`.

    Parameters map to their defaults; REQUIRED stands for none.
    """

    name: str
    call: Mapping[str, Any]
    init: Mapping[str, Any] | None = None
    method: str = ""

    @classmethod
    def parse(cls, text: str) -> Signature:
        """Read a signature as contracts write it, ``RoPE(dims, base=10000)(x, offset=None)``; ValueError for any other text."""
        match ast.parse(text, mode="eval").body:
            case ast.Call(func=ast.Name(id=name)) as call:
                return cls(name, _parameters(call))
            case ast.Call(func=ast.Call(func=ast.Name(id=name)) as init) as call:
                return cls(name, _parameters(call), _parameters(init))
            case ast.Call(func=ast.Attribute(value=ast.Call(func=ast.Name(id=name)) as init, attr=method)) as call:
                return cls(name, _parameters(call), _parameters(init), method)
            case ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr=method)) as call:
                return cls(name, _parameters(call), None, method)
        raise ValueError(f"not a signature: {text}")

    @property
    def parameters(self) -> dict[str, Any]:
        """Every parameter, constructor first, with its default or REQUIRED."""
        return {**(self.init or {}), **self.call}

    @property
    def operation(self) -> str:
        """The name of the operation: ``RoPE``, ``Embedding.as_linear``."""
        return f"{self.name}.{self.method}" if self.method else self.name


class _Required:
    def __repr__(self) -> str:
        return "REQUIRED"


REQUIRED = _Required()


def _parameters(call: ast.Call) -> dict[str, Any]:
    required = {arg.id: REQUIRED for arg in call.args if isinstance(arg, ast.Name)}
    optional = {kw.arg: ast.literal_eval(kw.value) for kw in call.keywords if kw.arg}
    return {**required, **optional}


Arguments = SimpleNamespace
"""The arguments of one call, constructor and call alike, by name: ``a.x``, ``a.offset``."""


@dataclass(frozen=True, slots=True)
class Answer:
    """The float64 value of a call and, elementwise, the largest error of an honest implementation on this input."""

    value: np.ndarray
    budget: np.ndarray


Answers = Mapping[str, Answer]
"""The answers of a call that returns several arrays at once, by the name of the part."""


class Unreadable(TypeError):
    """What a subject gives is nothing that the contract knows: a mistake of its adapter, and no refusal."""


STORY = ("…",)
"""`Operation.parts` of a story: which parts there are depends on its steps; they read ``3 keys``, ``4 refused``."""


@dataclass(frozen=True, slots=True)
class Beside:
    """An operation that the driver of another uses, and what becomes of the other one where a subject lacks it.

    By default the other one is broken without it. borrowed: it is of another component, without it the other one is not
    claimed, and what is declared there counts here too. modelled: the contract's own model stands in. narrows: it is one
    of several of which there must be one, and without it this is left (envelope key, values).
    """

    name: str
    borrowed: bool = False
    modelled: bool = False
    narrows: tuple[str, tuple[Any, ...]] | None = None


class Operation:
    """One name of a contract: what a call must refuse, what it must return, and how far it may be off.

    Called with the contract's arguments by keyword it behaves as a subject would: it refuses bad input, computes in
    float64 and rounds once to the promised dtype.
    """

    signature: ClassVar[Signature]
    claimed: Mapping[str, Any] = {}
    """What the subject that is judged claims, by envelope key: of several right ways the oracle then goes the subject's."""
    plain: ClassVar[str] = ""
    """Another spelling that a subject may offer: one plain function that takes every parameter (``rope(x, …)``)."""
    plain_narrows: ClassVar[Mapping[str, tuple[Any, ...]]] = {}
    """envelope key -> what a plain function is asked for unless its adapter's ENVELOPE says otherwise."""
    implied: ClassVar[frozenset[str]] = frozenset()
    """Parameters that a subject's signature may leave out, because other arguments tell them."""
    narrows: ClassVar[Mapping[str, tuple[str, tuple[Any, ...]]]] = {}
    """parameter -> (envelope key, what is left of it) when a subject's signature does not take the parameter."""
    unsaid: ClassVar[frozenset[str]] = frozenset()
    """Envelope keys of which such a subject may do another choice, always: its adapter's ENVELOPE then names that one alone."""
    loaded: ClassVar[Mapping[str, tuple[str, ...]]] = {}
    """parameter -> where the objects of a class keep it, whose constructor does not take it: layers that are filled from a
    checkpoint after they are made."""
    required_narrows: ClassVar[Mapping[str, tuple[str, tuple[Any, ...]]]] = {}
    """parameter -> (envelope key, what is left of it) when a subject cannot be called without the parameter."""
    insisted: ClassVar[Mapping[str, Any]] = {}
    """parameter -> what such a subject is given where the contract would leave it out; by default what the contract has there."""
    parts: ClassVar[tuple[str, ...]] = ()
    """Names of the arrays that a call returns together, in order; none where it returns one array."""
    texts: ClassVar[frozenset[str]] = frozenset()
    """Parts that are the code points of a text, which a failure then shows."""
    is_id: ClassVar[bool] = False
    """Whether a Python integer may come back in the place of an array without axes."""
    methods: ClassVar[tuple[str, ...]] = ()
    """What an object must have to offer the operation, where a driver uses it in more ways than one call."""
    takes: ClassVar[Mapping[str, tuple[str, ...]]] = {}
    """method -> what a driver hands it, in this order. A subject's own must take so many, of whatever names."""
    optional_methods: ClassVar[Mapping[str, tuple[str, tuple[Any, ...]]]] = {}
    """method -> (envelope key, what is left of it) when a subject's object lacks the method."""
    only_read: ClassVar[frozenset[str]] = frozenset()
    """Those of the optional methods that are read and not called."""
    optional_parameters: ClassVar[Mapping[tuple[str, str], tuple[str, tuple[Any, ...]]]] = {}
    """(method, parameter) -> (envelope key, what is left of it) when the method of a subject's class does not take it."""
    optional_options: ClassVar[Mapping[str, tuple[str, tuple[Any, ...]]]] = {}
    """parameter of what a driver builds -> (envelope key, what is asked for) when the subject's does not take it, unless its
    adapter's ENVELOPE says otherwise: a cache that is always off needs no switch either."""
    unless_declared: ClassVar[Mapping[str, tuple[Any, ...]]] = {}
    """envelope key -> what any subject is asked for unless its adapter's ENVELOPE says otherwise: what is right without it, and
    rarely there."""
    goes_on: ClassVar[bool] = False
    """Whether what is built goes on from call to call: the oracle too is then built anew for each object."""
    turned: ClassVar[tuple[str, ...]] = ()
    """Arguments whose second and third axis from the end change places in a subject's other layout, and so do the result's."""
    beside: ClassVar[tuple[Beside, ...]] = ()
    """Other operations that the driver uses."""
    either: ClassVar[Mapping[str, tuple[str, ...]]] = {}
    """argument that says which of two answers is meant, and envelope key by which an adapter declares it -> ids of the
    requirements that are about that. Tests of others take either answer, so that who declares nothing has no more red sentences
    than these."""
    asides: ClassVar[Mapping[str, str]] = {}
    """name of a part -> id of the requirement that alone is about it: tests of others leave it alone, so that one mistake
    does not make every sentence red."""

    @classmethod
    def leaves_aside(cls, part: str, requirement: str) -> bool:
        """Whether a part, "NAME" or "STEP NAME" of a story, is the matter of another requirement than this, and no other's."""
        return cls.asides.get(part.rpartition(" ")[2], requirement) != requirement

    @classmethod
    def borrowed(cls) -> tuple[str, ...]:
        """The operations of other components that the driver uses."""
        return tuple(other.name for other in cls.beside if other.borrowed)

    def __call__(self, **arguments: Any) -> Any:
        a = self.bind(arguments)
        self.guard(a)
        return self.respond(a)

    def bind(self, arguments: Mapping[str, Any]) -> Arguments:
        """Fill in defaults; TypeError for a missing or unknown argument."""
        defaults = self.signature.parameters
        if unknown := set(arguments) - set(defaults):
            raise TypeError(f"{self.signature.operation} takes no argument {', '.join(sorted(unknown))}")
        bound = {**defaults, **arguments}
        if missing := [name for name, value in bound.items() if value is REQUIRED]:
            raise TypeError(f"{self.signature.operation} misses {', '.join(missing)}")
        return Arguments(**bound)

    def guard(self, a: Arguments) -> None:
        """Raise ValueError or TypeError where the contract refuses the arguments."""

    def evaluate(self, a: Arguments, precision: Precision) -> Any:
        """Return the Answer (or, for an operation with parts, the Answers): value and budget for the precision class."""
        raise NotImplementedError

    def result_dtype(self, a: Arguments) -> str:
        """The dtype that the contract promises for the result."""
        raise NotImplementedError

    def part_dtype(self, part: str, a: Arguments) -> str:
        """The dtype that the contract promises for one part of the result."""
        return self.result_dtype(a)

    def respond(self, a: Arguments) -> Any:
        """The result of a call whose arguments passed the guard: an array, or a dict of parts."""
        answer = self.evaluate(a, Precision.FLOAT32)
        if self.parts:
            return {part: round_to(one.value, self.part_dtype(part, a)) for part, one in answer.items()}
        return self.finish(answer.value, a)

    def finish(self, value: np.ndarray, a: Arguments) -> Any:
        """Round the float64 value once, to the promised dtype."""
        return round_to(value, self.result_dtype(a))


Change = Mapping[str, Any]
"""Steps of an operation, by name, with what replaces them; or what else the class of it says, such as `goes_on`."""


def changed(operation: type[Operation], name: str, change: Change) -> type[Operation]:
    """Return the operation with some steps replaced; AttributeError when it has no such step."""
    for step in change:
        if not hasattr(operation, step):
            raise AttributeError(f"{name}: {operation.__name__} has no step {step!r}")
    return type(name, (operation,), dict(change))


@dataclass(frozen=True, slots=True)
class Fault:
    """An operation with one mistake that a real person made or would make.

    text: what the failure looks like, in words; kills: the requirement whose test must reject it; change: the steps
    that are wrong; source: where it was seen; envelope: what an adapter that has it declares; forms: the same mistake in
    kernels of other sizes, say of another tile, which a diagnosis looks for as well.
    """

    name: str
    text: str
    kills: Requirement
    change: Change
    source: str = ""
    envelope: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)
    forms: tuple[Change, ...] = ()

    def in_every_form(self) -> list[Fault]:
        """The mistake as it is, and in its other forms."""
        return [self, *(replace(self, change=form, forms=()) for form in self.forms)]


@dataclass(frozen=True, slots=True)
class Variant:
    """Another honest way to compute an operation; every test must accept it, in its precision class.

    unmet: ids of requirements of level SHOULD that it does not meet; envelope: what an adapter of it declares.
    """

    name: str
    text: str
    operation: str
    change: Change
    precision: Precision = Precision.FLOAT32
    unmet: tuple[str, ...] = ()
    envelope: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)


@dataclass(frozen=True)
class Contract:
    """Everything that is promised of one component.

    version: raised whenever an oracle's answer changes, so that goldens are agreed anew.
    envelope: key -> the choices (a tuple) or the largest value (an int) that tests draw from by default.
    layouts: the orders of axes that an adapter may declare (LAYOUT); "" is the contract's own.
    """

    component: str
    title: str
    version: int
    operations: tuple[type[Operation], ...]
    envelope: Mapping[str, tuple[Any, ...] | int]
    requirements: tuple[Requirement, ...]
    layouts: tuple[str, ...] = ("",)
    alone: Mapping[tuple[str, Any], Mapping[str, tuple[Any, ...]]] = field(default_factory=dict)
    """(key, choice) -> what is left of other keys where a key has that choice alone."""

    @cached_property
    def faults(self) -> tuple[Fault, ...]:
        """The fault dictionary of the component (`spec/faults/<component>.py`)."""
        return import_module(f"inferspec.spec.faults.{self.component}").FAULTS

    @cached_property
    def variants(self) -> tuple[Variant, ...]:
        """The honest variants of the component, from the same module."""
        return import_module(f"inferspec.spec.faults.{self.component}").VARIANTS

    def operation(self, name: str) -> type[Operation]:
        """Return the operation of that name; KeyError when the component has none."""
        return {op.signature.operation: op for op in self.operations}[name]

    def faulty(self, fault: Fault) -> type[Operation]:
        """Return the operation that the fault is about, with the mistake in it."""
        return changed(self.operation(fault.kills.name), fault.name, fault.change)

    def variant(self, variant: Variant) -> type[Operation]:
        """Return the operation computed the variant's way."""
        return changed(self.operation(variant.operation), variant.name, variant.change)


def requirements_digest(requirements: tuple[Requirement, ...]) -> str:
    """Return a sha256 over the sentences and their levels, the identity of what a certificate certifies."""
    rows = [[r.id, r.text, r.name, r.level, r.aspect] for r in sorted(requirements, key=lambda r: r.id)]
    return hashlib.sha256(json.dumps(rows).encode()).hexdigest()
