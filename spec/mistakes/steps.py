"""Mistakes of any step, and how a path alone has one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from inferspec.spec.contract import Arguments, Change, Operation

Respond = Callable[[Operation, Arguments], Any]


def honest(self: Operation, *given: Any, step: str = "respond") -> Any:
    """What the operation itself gives that another step of that name is put in the place of."""
    kinds = (kind for kind in type(self).__mro__ if issubclass(kind, Operation) and step in vars(kind))
    _, original, *_ = kinds
    return getattr(original, step)(self, *given)


def replacing(argument: str, replace: Callable[[Operation, Arguments, Any], Any]) -> Change:
    """What `replace` makes of one argument, where it is an array, goes in its place."""

    def respond(self: Operation, a: Arguments) -> Any:
        value = getattr(a, argument)
        if isinstance(value, np.ndarray):
            a = Arguments(**{**vars(a), argument: replace(self, a, value)})
        return honest(self, a)

    return {"respond": respond}


def only_where(holds: Callable[[Arguments], bool], change: Change) -> Change:
    """One path alone has the mistake, in steps that take the arguments: calls of which `holds` is true."""

    def only(step: str, wrong: Respond) -> Respond:
        return lambda self, a: wrong(self, a) if holds(a) else honest(self, a, step=step)

    return {step: only(step, wrong) for step, wrong in change.items()}


def promotes(dtype: str = "float32") -> Change:
    """The result comes back in another dtype than promised."""
    return {"result_dtype": lambda self, a: dtype}


def promotes_where(holds: Callable[[Arguments], bool]) -> Change:
    """On one path, of calls of which `holds` is true, the result comes back in float32."""
    return only_where(holds, promotes())


def unguarded(check: str = "guard") -> Change:
    """Nothing is refused."""
    return {check: lambda self, *a: None}


def defaults_to(**defaults: Any) -> Change:
    """Some arguments have other defaults."""
    return {"bind": lambda self, given: Operation.bind(self, {**defaults, **given})}


def refuses_empty(argument: str) -> Respond:
    """An argument without elements ends in an error that nobody meant."""

    def respond(self: Operation, a: Arguments) -> Any:
        if not getattr(a, argument).size:
            raise RuntimeError("cannot reshape an array of size 0 into -1 rows")
        return honest(self, a)

    return respond
