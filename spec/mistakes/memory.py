"""Mistakes of what is kept from call to call, and of what is done to the caller's own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from inferspec.spec.contract import Arguments, Change, Operation
from inferspec.spec.mistakes.steps import honest, replacing
from inferspec.spec.numerics import f64, is_float, round_to


def mutates(argument: str, factor: float = 0.5) -> Change:
    """One argument is scaled in place after the result is known."""

    def respond(self: Operation, a: Arguments) -> Any:
        result = np.array(honest(self, a))
        value = getattr(a, argument)
        if isinstance(value, np.ndarray) and value.flags.writeable:
            value[...] = (value * factor).astype(value.dtype) if is_float(value.dtype) else value * 0
        return result

    return {"respond": respond}


def remembers(*arguments: str) -> Change:
    """A cache keyed by shapes alone keeps the first values of some arguments and uses them for every later call."""

    def respond(self: Operation, a: Arguments) -> Any:
        key = tuple((k, np.shape(v)) for k, v in vars(a).items() if isinstance(v, np.ndarray) and k not in arguments)
        kept = _memory(self).setdefault(key, {name: getattr(a, name) for name in arguments})
        return honest(self, Arguments(**{**vars(a), **kept}))

    return {"respond": respond}


def remembers_by(argument: str, key: Callable[[Any], Any]) -> Change:
    """A cache keyed by less than one argument uses the first that had a key for every later one that has it."""

    def respond(self: Operation, a: Arguments) -> Any:
        value = getattr(a, argument)
        return honest(self, Arguments(**{**vars(a), argument: _memory(self).setdefault(key(value), value)}))

    return {"respond": respond}


def first_of(operation: Operation, key: Any, value: Any) -> Any:
    """What a cache that outlives every call was first given under a key."""
    return _memory(operation).setdefault(key, value)


def of_what_was_made_last(*arguments: str) -> Change:
    """What constructors put into one place for all: an object that is used again has these arguments of the one made last."""

    def respond(self: Operation, a: Arguments) -> Any:
        # Each object is an operation of its own, which is first called when it is made.
        if "made" not in vars(self):
            vars(self)["made"] = True
            _memory(self)["last"] = {name: getattr(a, name) for name in arguments}
        return honest(self, Arguments(**{**vars(a), **_memory(self)["last"]}))

    return {"goes_on": True, "respond": respond}


def remembers_by_identity(argument: str) -> Change:
    """A cache keyed by the identity of one argument, which it does not keep alive, serves whatever is there next."""

    def replaced(self: Operation, a: Arguments, value: np.ndarray) -> np.ndarray:
        kept: np.ndarray = _memory(self).setdefault((id(value), value.shape), value.copy())
        return kept

    return replacing(argument, replaced)


def remembers_by_object(*arguments: str) -> Change:
    """What was made of an array is kept beside it, and serves as long as the same array comes, whatever was written into it."""

    def respond(self: Operation, a: Arguments) -> Any:
        kept = _memory(self).setdefault("made", {})
        for name in arguments:
            array = getattr(a, name)
            if kept.get(name, (None,))[0] is not array:
                kept[name] = array, array.copy()
        return honest(self, Arguments(**{**vars(a), **{name: kept[name][1] for name in arguments}}))

    return {"respond": respond}


def reuses_its_buffer() -> Change:
    """Every result of a shape comes back in the same array, which the next call overwrites."""

    def respond(self: Operation, a: Arguments) -> Any:
        result = honest(self, a)
        buffer = _memory(self).setdefault(result.shape, result)
        buffer[...] = result
        return buffer

    return {"respond": respond}


def sized_by_the_first(batches: bool = False) -> Change:
    """What the first call makes room for serves every later one: rows past as many as that had are never written; or batches."""

    def respond(self: Operation, a: Arguments) -> Any:
        result = honest(self, a)
        rows = result if batches else result.reshape(-1, *result.shape[-1:])
        written = np.zeros_like(rows)
        most = _memory(self).setdefault("rows", len(rows))
        written[:most] = rows[:most]
        return written.reshape(result.shape)

    return {"respond": respond}


def drifts() -> Change:
    """A counter that should be local makes every repeated call a little larger."""

    def respond(self: Operation, a: Arguments) -> Any:
        calls = _memory(self).setdefault("calls", 0)
        _memory(self)["calls"] = calls + 1
        result = honest(self, a)
        return round_to(f64(result) * (1 + calls), result.dtype.name)

    return {"respond": respond}


def _memory(operation: Operation) -> dict[Any, Any]:
    # On the class: a subject builds a new object for each call, and a module-level cache outlives them all.
    return type(operation).__dict__.get("memory") or _remember(type(operation))


def _remember(operation: type[Operation]) -> dict[Any, Any]:
    operation.memory = {"fresh": True}  # type: ignore[attr-defined]
    return operation.memory  # type: ignore[attr-defined]


def clears_in_steps(argument: str) -> Change:
    """When a story is over, an argument of its steps holds zeros."""

    def respond(self: Operation, a: Arguments) -> Any:
        result = honest(self, a)
        for _, given in a.steps:
            if argument in given:
                given[argument][...] = 0
        return result

    return {"respond": respond}
