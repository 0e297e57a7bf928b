"""Mistakes that any component can make, each as the steps of an operation that are wrong.

They are what `Fault.change` takes; a component's contract says which requirement must catch them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from inferspec.spec.contract import Arguments, Change, Fault, Operation, Requirement
from inferspec.spec.numerics import f64, is_float, largest, numpy_dtype, round_to

Respond = Callable[[Operation, Arguments], Any]


def honest(self: Operation, a: Arguments, step: str = "respond") -> Any:
    """What the operation itself gives that another step of that name is put in the place of."""
    kinds = (kind for kind in type(self).__mro__ if issubclass(kind, Operation) and step in vars(kind))
    _, original, *_ = kinds
    return getattr(original, step)(self, a)


def promotes(dtype: str = "float32") -> Change:
    """The result comes back in another dtype than promised."""
    return {"result_dtype": lambda self, a: dtype}


def promotes_where(holds: Callable[[Arguments], bool]) -> Change:
    """On one path, of calls of which `holds` is true, the result comes back in float32."""
    return only_where(holds, promotes())


def unguarded(check: str = "guard") -> Change:
    """Nothing is refused."""
    return {check: lambda self, *a: None}


def misread(view: np.ndarray) -> np.ndarray:
    """Return what a kernel sees that ignores the strides of `view`: its buffer, read on from the first element."""
    base = view
    while isinstance(base.base, np.ndarray):
        base = base.base
    flat = base.ravel(order="K").view(view.dtype)  # bfloat16 may lie in a buffer of uint16
    start = (view.__array_interface__["data"][0] - base.__array_interface__["data"][0]) // view.itemsize
    return flat[(start + np.arange(view.size)) % max(flat.size, 1)].reshape(view.shape)


def _replacing(argument: str, replace: Callable[[Operation, Arguments, Any], Any]) -> Change:
    def respond(self: Operation, a: Arguments) -> Any:
        value = getattr(a, argument)
        if isinstance(value, np.ndarray):
            a = Arguments(**{**vars(a), argument: replace(self, a, value)})
        return honest(self, a)

    return {"respond": respond}


def ignores_strides(argument: str) -> Change:
    """One argument is read as if it were contiguous."""
    return _replacing(argument, lambda self, a, value: misread(value))


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


def remembers_by_identity(argument: str) -> Change:
    """A cache keyed by the identity of one argument, which it does not keep alive, serves whatever is there next."""

    def replaced(self: Operation, a: Arguments, value: np.ndarray) -> np.ndarray:
        kept: np.ndarray = _memory(self).setdefault((id(value), value.shape), value.copy())
        return kept

    return _replacing(argument, replaced)


def reuses_its_buffer() -> Change:
    """Every result of a shape comes back in the same array, which the next call overwrites."""

    def respond(self: Operation, a: Arguments) -> Any:
        result = honest(self, a)
        buffer = _memory(self).setdefault(result.shape, result)
        buffer[...] = result
        return buffer

    return {"respond": respond}


def only_where(holds: Callable[[Arguments], bool], change: Change) -> Change:
    """One path alone has the mistake, in steps that take the arguments: calls of which `holds` is true."""

    def only(step: str, wrong: Respond) -> Respond:
        return lambda self, a: wrong(self, a) if holds(a) else honest(self, a, step)

    return {step: only(step, wrong) for step, wrong in change.items()}


def of_one_row(argument: str) -> Callable[[Arguments], bool]:
    """Whether an argument is a single row."""
    return lambda a: getattr(a, argument).shape[-1:] == (getattr(a, argument).size,)


def of_one_half_row(argument: str) -> Callable[[Arguments], bool]:
    """Whether an argument is a single row of bfloat16."""
    one_row = of_one_row(argument)
    return lambda a: getattr(a, argument).dtype.name == "bfloat16" and one_row(a)


def lacks_a_feature(holds: Callable[[Arguments], bool]) -> Change:
    """One path, of calls of which `holds` is true, never writes the last feature of its result."""
    return only_where(holds, leaves_unwritten(lambda out: out[..., :-1]))


def paths_lack_a_feature(
    name: str,
    where: str,
    requirement: Requirement,
    holds: Callable[[Arguments], bool],
    source: str,
    argument: str = "x",
) -> tuple[Fault, ...]:
    """A path in half precision, and another one in float32, of calls of which `holds` is true, never writes the last feature
    of its result. where: the path, in words; argument: whose dtype is that of the path."""

    def in_bytes(size: int) -> Callable[[Arguments], bool]:
        return lambda a: getattr(a, argument).dtype.itemsize == size and holds(a)

    return tuple(
        Fault(
            f"{name}-lack-a-feature{suffix}",
            f"{where} the last feature is not written, in {precision}",
            requirement,
            lacks_a_feature(in_bytes(size)),
            source,
        )
        for size, precision, suffix in ((2, "half precision", ""), (4, "float32", "-in-float32"))
    )


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


def leaves_unwritten(keep: Callable[[np.ndarray], np.ndarray]) -> Change:
    """Some elements of the output are never written; `keep` gives the view of it that is."""

    def respond(self: Operation, a: Arguments) -> Any:
        result = honest(self, a)
        written = np.zeros(result.shape, result.dtype)
        keep(written)[...] = keep(result)
        return written

    return {"respond": respond}


def counts_rows_in_16_bits() -> Change:
    """Rows past the 65535th are never written: as many as an axis of a grid has."""
    return leaves_unwritten(lambda result: result.reshape(-1, *result.shape[-1:])[: 2**16 - 1])


def first_row_for_all(argument: str) -> Change:
    """The first entry of the leading axis of one argument serves every batch row."""

    def first(self: Operation, a: Arguments, value: np.ndarray) -> np.ndarray:
        return np.broadcast_to(value[:1], value.shape) if value.ndim > 1 and len(value) else value

    return _replacing(argument, first)


def wraps_batches(argument: str, rows: int = 8) -> Change:
    """Entries of the leading axis of one argument are counted modulo `rows`: as many as a kernel was tried with."""
    return _replacing(argument, lambda self, a, value: value[np.arange(len(value)) % rows] if value.ndim > 2 else value)


def rounds(argument: str, dtype: str = "bfloat16") -> Change:
    """One argument passes through a narrower dtype on its way in, and is of its own dtype again."""
    return _replacing(argument, lambda self, a, value: round_to(f64(round_to(f64(value), dtype)), value.dtype.name))


def bfloat16_through_float16(argument: str) -> Change:
    """One argument passes through float16 where it is bfloat16, as on a GPU that has no bfloat16."""

    def replaced(self: Operation, a: Arguments, value: np.ndarray) -> np.ndarray:
        if value.dtype.name != "bfloat16":
            return value
        with np.errstate(over="ignore"):
            return round_to(f64(round_to(f64(value), "float16")), "bfloat16")

    return _replacing(argument, replaced)


def saturates(result: np.ndarray, dtype: str) -> np.ndarray:
    """Return the values with those past the dtype's range replaced by its largest number."""
    return np.clip(result, -largest(dtype), largest(dtype)).astype(numpy_dtype(dtype))


def clears_in_steps(argument: str) -> Change:
    """When a story is over, an argument of its steps holds zeros."""

    def respond(self: Operation, a: Arguments) -> Any:
        result = honest(self, a)
        for _, given in a.steps:
            if argument in given:
                given[argument][...] = 0
        return result

    return {"respond": respond}


def ignores_strides_in_steps(argument: str) -> Change:
    """An argument of a story's steps is read as if it were contiguous."""

    def respond(self: Operation, a: Arguments) -> Any:
        steps = tuple(
            (method, {name: misread(x) if name == argument else x for name, x in given.items()})
            for method, given in a.steps
        )
        return honest(self, Arguments(**{**vars(a), "steps": steps}))

    return {"respond": respond}
