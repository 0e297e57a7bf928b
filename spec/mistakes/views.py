"""Mistakes in reading an argument that is a view: strides, buffers, what lies behind the end of an axis."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from inferspec.spec.contract import Arguments, Change, Operation
from inferspec.spec.mistakes.steps import honest, replacing
from inferspec.spec.numerics import f64, is_float


def misread(view: np.ndarray) -> np.ndarray:
    """Return what a kernel sees that ignores the strides of `view`: its buffer, read on from the first element."""
    flat, start = _buffer(view)
    return flat[(start + np.arange(view.size)) % max(flat.size, 1)].reshape(view.shape)


def walked(view: np.ndarray, steps: Sequence[int]) -> np.ndarray:
    """Return what a kernel sees that walks the buffer of `view` with other steps, in elements, along its axes."""
    flat, start = _buffer(view)
    places = start + sum((at * step for at, step in zip(np.indices(view.shape), steps, strict=True)), np.zeros((), int))
    return flat[places % max(flat.size, 1)]


def beyond(view: np.ndarray, axis: int, multiple: int) -> np.ndarray:
    """Return what lies in the buffer of `view` where its axis would go on to a multiple of so many entries; 0 past the buffer."""
    flat, start = _buffer(view)
    axis %= view.ndim
    size = view.shape[axis]
    shape = [-size % multiple if i == axis else n for i, n in enumerate(view.shape)]
    at = np.indices(shape)
    at[axis] += size
    places = start + sum(at[i] * (stride // view.itemsize) for i, stride in enumerate(view.strides))
    inside = (places >= 0) & (places < flat.size)
    return np.where(inside, flat[np.where(inside, places, 0)], np.zeros((), view.dtype))


def _buffer(view: np.ndarray) -> tuple[np.ndarray, int]:
    """The elements of the memory that `view` shows a part of, and the place of its first one."""
    base = view
    while isinstance(base.base, np.ndarray):
        base = base.base
    flat = base.ravel(order="K").view(view.dtype)  # bfloat16 may lie in a buffer of uint16
    return flat, (view.__array_interface__["data"][0] - base.__array_interface__["data"][0]) // view.itemsize


def read_as_of(first: str, *arguments: str) -> Change:
    """What some arguments hold is read as numbers of the dtype of another one."""

    def read(value: Any, dtype: np.dtype[Any]) -> Any:
        if not isinstance(value, np.ndarray) or not is_float(value.dtype) or value.dtype.itemsize <= dtype.itemsize:
            return value
        return np.frombuffer(np.ascontiguousarray(value).tobytes(), dtype)[: value.size].reshape(value.shape)

    def respond(self: Operation, a: Arguments) -> Any:
        dtype = getattr(a, first).dtype
        return honest(self, Arguments(**{**vars(a), **{name: read(getattr(a, name), dtype) for name in arguments}}))

    return {"respond": respond}


def ignores_strides(argument: str) -> Change:
    """One argument is read as if it were contiguous."""
    return replacing(argument, lambda self, a, value: misread(value))


def takes_all_that_lies_behind(*arguments: str) -> Change:
    """What lies without a gap at the beginning of a longer array is taken with the rest of it, which does not fit the shape."""

    def respond(self: Operation, a: Arguments) -> Any:
        for name in arguments:
            x = getattr(a, name)
            flat, start = _buffer(x)
            if x.flags.c_contiguous and x.size and start == 0 and flat.size > x.size:
                raise ValueError(f"{name} holds {flat.size} numbers, not {x.size}")
        return honest(self, a)

    return {"respond": respond}


def reads_16_bytes_at_once(*arguments: str) -> Change:
    """What does not begin at a multiple of 16 bytes is read from the multiple before it."""

    def read(value: np.ndarray) -> np.ndarray:
        too_far = value.__array_interface__["data"][0] % 16 // value.itemsize
        flat, start = _buffer(value)
        if not (value.flags.c_contiguous and value.size and 0 < too_far <= start):
            return value
        return flat[start - too_far :][: value.size].reshape(value.shape)

    def respond(self: Operation, a: Arguments) -> Any:
        return honest(self, Arguments(**{**vars(a), **{name: read(getattr(a, name)) for name in arguments}}))

    return {"respond": respond}


def steps_of_16_bits(argument: str, holds: Callable[[Arguments], bool] = lambda a: True) -> Change:
    """How far the rows of one argument lie apart is kept in 16 bits, in calls of which `holds` is true."""

    def read(self: Operation, a: Arguments, value: np.ndarray) -> np.ndarray:
        steps = [stride // value.itemsize for stride in value.strides]
        if value.ndim < 2 or value.shape[-2] < 2 or abs(steps[-2]) < 2**16 or not holds(a):
            return value
        steps[-2] %= 2**16
        return walked(value, steps)

    return replacing(argument, read)


def rows_in_order_of_memory(argument: str) -> Change:
    """Rows of one argument that lie backwards are read in the order in which they lie."""

    def read(self: Operation, a: Arguments, value: np.ndarray) -> np.ndarray:
        backwards = tuple(axis for axis, stride in enumerate(value.strides[:-1]) if stride < 0)
        return np.flip(value, backwards)

    return replacing(argument, read)


def copies_the_first_view(*arguments: str) -> Change:
    """Where some arguments lie in memory in different ways, the first that is no contiguous array is copied, and the others are
    taken for contiguous ones."""

    def respond(self: Operation, a: Arguments) -> Any:
        views = {name: x for name in arguments if not (x := getattr(a, name)).flags.c_contiguous}
        ways = {(*np.argsort(x.strides), x.strides[-1] == x.itemsize) for x in views.values()}
        others = list(views)[1:] if len(ways) > 1 else []
        return honest(self, Arguments(**{**vars(a), **{name: misread(views[name]) for name in others}}))

    return {"respond": respond}


def once_where_repeated(argument: str) -> Change:
    """Of batches of one argument that are one batch repeated without a copy, the first result is written alone."""

    def respond(self: Operation, a: Arguments) -> Any:
        x, result = getattr(a, argument), honest(self, a)
        if x.ndim > 2 and len(x) > 1 and x.strides[0] == 0:
            result = result.copy()
            result[1:] = 0
        return result

    return {"respond": respond}


def one_stride_for_batches(argument: str) -> Change:
    """All leading dims of one argument are walked as one, with the stride of the innermost."""

    def read(self: Operation, a: Arguments, value: np.ndarray) -> np.ndarray:
        if value.ndim < 4:
            return value
        *_, batch, row, entry = (stride // value.itemsize for stride in value.strides)
        leading = [batch * math.prod(value.shape[axis + 1 : -2]) for axis in range(value.ndim - 2)]
        return walked(value, [*leading, row, entry])

    return replacing(argument, read)


def reads_on(argument: str, axis: int = -1, multiple: int = 32) -> Change:
    """An axis of one argument is read on to a whole tile, and what lies there is multiplied by zeros, which NaN survives."""

    def spoilt(self: Operation, a: Arguments, value: np.ndarray) -> np.ndarray:
        if not value.size:
            return value
        lines = np.isnan(f64(beyond(value, axis, multiple))).any(axis, keepdims=True)
        return np.where(lines, np.full((), np.nan, value.dtype), value) if lines.any() else value

    return replacing(argument, spoilt)


def hides_nan(argument: str, holds: Callable[[Arguments], bool]) -> Change:
    """Of calls of which `holds` is true what is no number in one argument is taken for 0."""

    def without(self: Operation, a: Arguments, value: np.ndarray) -> np.ndarray:
        return np.where(np.isnan(value), np.zeros((), value.dtype), value) if holds(a) else value

    return replacing(argument, without)


def ignores_strides_in_steps(argument: str, holds: Callable[[np.ndarray], bool] = lambda x: True) -> Change:
    """An argument of a story's steps, where `holds` is true of it, is read as if it were contiguous."""

    def respond(self: Operation, a: Arguments) -> Any:
        steps = tuple(
            (method, {name: misread(x) if name == argument and holds(x) else x for name, x in given.items()})
            for method, given in a.steps
        )
        return honest(self, Arguments(**{**vars(a), "steps": steps}))

    return {"respond": respond}
