"""Mistakes that any component can make, each as the steps of an operation that are wrong.

They are what `Fault.change` takes; a component's contract says which requirement must catch them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from inferspec.spec.contract import Arguments, Change, Fault, Operation, Requirement
from inferspec.spec.numerics import f64, is_float, round_to

Respond = Callable[[Operation, Arguments], Any]

TIMES_ZERO = "https://github.com/uxlfoundation/oneDNN/issues/5717"


def honest(self: Operation, *given: Any, step: str = "respond") -> Any:
    """What the operation itself gives that another step of that name is put in the place of."""
    kinds = (kind for kind in type(self).__mro__ if issubclass(kind, Operation) and step in vars(kind))
    _, original, *_ = kinds
    return getattr(original, step)(self, *given)


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


def _replacing(argument: str, replace: Callable[[Operation, Arguments, Any], Any]) -> Change:
    def respond(self: Operation, a: Arguments) -> Any:
        value = getattr(a, argument)
        if isinstance(value, np.ndarray):
            a = Arguments(**{**vars(a), argument: replace(self, a, value)})
        return honest(self, a)

    return {"respond": respond}


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
    return _replacing(argument, lambda self, a, value: misread(value))


def steps_of_16_bits(argument: str, holds: Callable[[Arguments], bool] = lambda a: True) -> Change:
    """How far the rows of one argument lie apart is kept in 16 bits, in calls of which `holds` is true."""

    def read(self: Operation, a: Arguments, value: np.ndarray) -> np.ndarray:
        steps = [stride // value.itemsize for stride in value.strides]
        if value.ndim < 2 or value.shape[-2] < 2 or abs(steps[-2]) < 2**16 or not holds(a):
            return value
        steps[-2] %= 2**16
        return walked(value, steps)

    return _replacing(argument, read)


def rows_in_order_of_memory(argument: str) -> Change:
    """Rows of one argument that lie backwards are read in the order in which they lie."""

    def read(self: Operation, a: Arguments, value: np.ndarray) -> np.ndarray:
        backwards = tuple(axis for axis, stride in enumerate(value.strides[:-1]) if stride < 0)
        return np.flip(value, backwards)

    return _replacing(argument, read)


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

    return _replacing(argument, read)


def reads_on(argument: str, axis: int = -1, multiple: int = 32) -> Change:
    """An axis of one argument is read on to a whole tile, and what lies there is multiplied by zeros, which NaN survives."""

    def spoilt(self: Operation, a: Arguments, value: np.ndarray) -> np.ndarray:
        if not value.size:
            return value
        lines = np.isnan(f64(beyond(value, axis, multiple))).any(axis, keepdims=True)
        return np.where(lines, np.full((), np.nan, value.dtype), value) if lines.any() else value

    return _replacing(argument, spoilt)


def hides_nan(argument: str, holds: Callable[[Arguments], bool]) -> Change:
    """Of calls of which `holds` is true what is no number in one argument is taken for 0."""

    def without(self: Operation, a: Arguments, value: np.ndarray) -> np.ndarray:
        return np.where(np.isnan(value), np.zeros((), value.dtype), value) if holds(a) else value

    return _replacing(argument, without)


def mutates(argument: str, factor: float = 0.5) -> Change:
    """One argument is scaled in place after the result is known."""

    def respond(self: Operation, a: Arguments) -> Any:
        result = np.array(honest(self, a))
        value = getattr(a, argument)
        if isinstance(value, np.ndarray) and value.flags.writeable:
            value[...] = (value * factor).astype(value.dtype) if is_float(value.dtype) else value * 0
        return result

    return {"respond": respond}


def defaults_to(**defaults: Any) -> Change:
    """Some arguments have other defaults."""
    return {"bind": lambda self, given: Operation.bind(self, {**defaults, **given})}


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

    return _replacing(argument, replaced)


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


def only_where(holds: Callable[[Arguments], bool], change: Change) -> Change:
    """One path alone has the mistake, in steps that take the arguments: calls of which `holds` is true."""

    def only(step: str, wrong: Respond) -> Respond:
        return lambda self, a: wrong(self, a) if holds(a) else honest(self, a, step=step)

    return {step: only(step, wrong) for step, wrong in change.items()}


def beside_room(argument: str, most_bytes: int = 4) -> Callable[[Arguments], bool]:
    """Whether an argument's rows lie side by side, and what holds them, the beginning of a longer axis, does not. most_bytes: of its dtype."""

    def holds(a: Arguments) -> bool:
        x = getattr(a, argument)
        if x.ndim < 3 or x.dtype.itemsize > most_bytes or 1 in x.shape[-3:-1]:
            return False
        rows = x.strides[-1] == x.itemsize and x.strides[-2] == x.shape[-1] * x.itemsize
        return bool(rows and x.strides[-3] > x.shape[-2] * x.strides[-2])

    return holds


def whole_vectors_side_by_side(argument: str, vector: int = 8) -> Callable[[Arguments], bool]:
    """Whether an argument's rows are whole vectors whose elements lie side by side, however the rows lie."""

    def holds(a: Arguments) -> bool:
        x = getattr(a, argument)
        return bool(x.ndim and x.shape[-1] % vector == 0 and x.strides[-1] == x.itemsize)

    return holds


def token_of_heads_in_one_piece(dim: int) -> Callable[[Arguments], bool]:
    """Whether queries are single tokens of heads of so many features, which lie side by side, however the heads lie."""

    def holds(a: Arguments) -> bool:
        return bool(a.query.shape[-2:] == (1, dim) and a.query.strides[-1] == a.query.itemsize)

    return holds


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

    return tuple(
        Fault(
            f"{name}-lack-a-feature{suffix}",
            f"{where} the last feature is not written, in {precision}",
            requirement,
            lacks_a_feature(in_bytes(size, holds, argument)),
            source,
        )
        for size, precision, suffix in ((2, "half precision", ""), (4, "float32", "-in-float32"))
    )


def in_bytes(size: int, holds: Callable[[Arguments], bool], argument: str = "x") -> Callable[[Arguments], bool]:
    """Whether a call of which `holds` is true is in a dtype of so many bytes, that of an argument."""
    return lambda a: getattr(a, argument).dtype.itemsize == size and holds(a)


def in_half(holds: Callable[[Arguments], bool], argument: str = "x") -> Callable[[Arguments], bool]:
    """Whether a call of which `holds` is true is in half precision."""
    return in_bytes(2, holds, argument)


def of_many_rows(argument: str = "x", fewest: int = 32) -> Callable[[Arguments], bool]:
    """Whether an argument has so many rows as the tiles of products have."""
    return lambda a: math.prod(getattr(a, argument).shape[:-1]) >= fewest


def paths_misread(
    name: str, where: str, requirement: Requirement, holds: Callable[[Arguments], bool], axes: Mapping[str, int | None]
) -> tuple[Fault, ...]:
    """A path, of calls of which `holds` is true, reads an argument as if it were contiguous, or past the end of an axis. where:
    the path, in words; axes: argument -> its axis that is summed over, None where none is."""
    faults = []
    for argument, axis in axes.items():
        suffix = argument.replace("_", "-")
        contiguous = only_where(holds, ignores_strides(argument))
        text = f"{where} {argument} is read as if it were contiguous"
        faults.append(Fault(f"{name}-contiguous-{suffix}", text, requirement, contiguous, "tired engineer"))
        if axis is not None:
            text = f"{where} {argument} is read on to a multiple of 32, times zeros: NaN that lies there comes through"
            past = only_where(holds, reads_on(argument, axis))
            faults.append(Fault(f"{name}-read-past-{suffix}", text, requirement, past, TIMES_ZERO))
    return tuple(faults)


def paths_misread_in_each_precision(
    name: str, where: str, requirement: Requirement, holds: Callable[[Arguments], bool], axes: Mapping[str, int | None]
) -> tuple[Fault, ...]:
    """The same of a path in half precision, and of another one in float32: the dtype is that of the first of the arguments."""
    argument = next(iter(axes))
    half, full = in_bytes(2, holds, argument), in_bytes(4, holds, argument)
    return (
        *paths_misread(name, f"{where}, in half precision,", requirement, half, axes),
        *paths_misread(f"{name}-in-float32", f"{where}, in float32,", requirement, full, axes),
    )


def paths_break_promises(
    name: str,
    where: str,
    holds: Callable[[Arguments], bool],
    dtype: Requirement,
    unchanged: Requirement,
    alone: Requirement,
    arguments: Sequence[str],
) -> tuple[Fault, ...]:
    """A path, of calls of which `holds` is true, returns float32, scales an argument in place, goes on with one of an earlier
    call, or returns one buffer again and again. where: the path, in words."""
    mistakes: list[tuple[str, str, Requirement, Change]] = [
        ("promotes", "the result is float32", dtype, promotes()),
        ("one-buffer", "every result of a shape is in one buffer", alone, reuses_its_buffer()),
    ]
    for argument in arguments:
        suffix = argument.replace("_", "-")
        mistakes += [
            (f"changes-{suffix}", f"{argument} is scaled in place", unchanged, mutates(argument)),
            (
                f"remembers-{suffix}",
                f"{argument} is that of the first call of these shapes",
                alone,
                remembers(argument),
            ),
        ]
    return tuple(
        Fault(f"{name}-{suffix}", f"{where} {text}", requirement, only_where(holds, change), "tired engineer")
        for suffix, text, requirement, change in mistakes
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


def refuses_empty(argument: str) -> Respond:
    """An argument without elements ends in an error that nobody meant."""

    def respond(self: Operation, a: Arguments) -> Any:
        if not getattr(a, argument).size:
            raise RuntimeError("cannot reshape an array of size 0 into -1 rows")
        return honest(self, a)

    return respond


def leaves_unwritten(keep: Callable[[np.ndarray], np.ndarray]) -> Change:
    """Some elements of the output are never written; `keep` gives the view of it that is."""

    def respond(self: Operation, a: Arguments) -> Any:
        result = honest(self, a)
        written = np.zeros(result.shape, result.dtype)
        keep(written)[...] = keep(result)
        return written

    return {"respond": respond}


def batch_of_one_up_to(rows: int, past: int) -> Change:
    """Of a batch of one B×L×E with more than `past` rows the first `rows` are written, or all but the last -`rows` of them."""
    return leaves_unwritten(
        lambda out: out[:, :rows] if out.ndim == 3 and len(out) == 1 and out.shape[1] > past else out
    )


def decodes_up_to(most: int = 32) -> Change:
    """Of batches of a token each those past so many are not written: paths of their own serve them, and thousands of them."""
    return leaves_unwritten(lambda out: out[:most] if out.ndim == 3 and out.shape[1] == 1 and len(out) < 1024 else out)


STEPS = (256, 512, 1024, 2048)
"""How many features kernels take at once."""


def of_whole_steps(features: int, step: int) -> int:
    """How many of so many features are taken in whole steps, where they are that and half a step more; else all."""
    return features - step // 2 * (features > step and features % step == step // 2)


def half_a_step_unwritten(step: int) -> Change:
    """Where a row of the result is whole steps and half a one more, that half is never written."""
    return leaves_unwritten(lambda result: result[..., : of_whole_steps(result.shape[-1], step)])


def last_past_tiles_unwritten(tile: int, past: int, axis: int = -1) -> Change:
    """Where an axis of the result, counted from the end, is tiles and `past` entries more, its last one is never written."""

    def written(result: np.ndarray) -> np.ndarray:
        if result.ndim < -axis:
            return result
        entries = np.moveaxis(result, axis, 0)
        return entries[:-1] if len(entries) >= tile and len(entries) % tile == past else entries

    return leaves_unwritten(written)


def tiles_past_two_unwritten(tile: int = 128) -> Change:
    """Of rows and entries of them that are more than two tiles each, what lies past two both ways is never written: groups of
    threads that take a second tile write it elsewhere."""

    def respond(self: Operation, a: Arguments) -> Any:
        result = np.array(honest(self, a))
        if result.ndim > 1 and result.size:
            result.reshape(-1, result.shape[-1])[2 * tile :, 2 * tile :] = 0
        return result

    return {"respond": respond}


def unwritten_where_all_is_wide(
    name: str, requirement: Requirement, of_squares: Callable[[Arguments], bool]
) -> tuple[Fault, ...]:
    """Of products with many tiles both ways, and of those of which `of_squares` is true."""
    return (
        Fault(
            f"{name}-tiles-past-two-each-way",
            "of more than two tiles of 128 rows and of 128 outputs those past two both ways are never written",
            requirement,
            tiles_past_two_unwritten(),
            "https://github.com/sgl-project/sglang/pull/11368",
        ),
        Fault(
            f"{name}-rows-through-squares-lack-a-feature",
            "of two rows and more through layers of 1024 features and 1024 outputs and more the last feature is not written",
            requirement,
            lacks_a_feature(of_squares),
            "tired engineer",
        ),
    )


def counts_rows_in_16_bits() -> Change:
    """Rows past the 65535th are never written: as many as an axis of a grid has."""
    return leaves_unwritten(lambda result: result.reshape(-1, *result.shape[-1:])[: 2**16 - 1])


def counts_axis_in_16_bits(axis: int) -> Change:
    """Of one axis of the result, counted from the end, what comes past the 65535th entry is never written: each axis of a
    grid has its own end."""

    def written(result: np.ndarray) -> np.ndarray:
        return np.moveaxis(result, axis, 0)[: 2**16 - 1] if result.ndim >= -axis else result

    return leaves_unwritten(written)


def counts_rows(most: int, wide: Callable[[int], bool]) -> Change:
    """Of rows of so many features that `wide` is true, those past as many as a grid is launched with are never written."""

    def written(result: np.ndarray) -> np.ndarray:
        return result.reshape(-1, *result.shape[-1:])[:most] if result.ndim and wide(result.shape[-1]) else result

    return leaves_unwritten(written)


def swaps_batches() -> Change:
    """Of four axes and more the first two are exchanged when rows are folded back."""

    def respond(self: Operation, a: Arguments) -> Any:
        result = honest(self, a)
        return result.swapaxes(0, 1).reshape(result.shape) if result.ndim > 3 else result

    return {"respond": respond}


def cut_to_32_bits(argument: str) -> Change:
    """An argument of 64 bits is cut to 32 before it is looked at."""

    def bind(self: Operation, arguments: Mapping[str, Any]) -> Arguments:
        ids = arguments[argument]
        return Operation.bind(self, {**arguments, argument: ids.astype(np.int32) if ids.dtype == np.int64 else ids})

    return {"bind": bind}


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


def clears_in_steps(argument: str) -> Change:
    """When a story is over, an argument of its steps holds zeros."""

    def respond(self: Operation, a: Arguments) -> Any:
        result = honest(self, a)
        for _, given in a.steps:
            if argument in given:
                given[argument][...] = 0
        return result

    return {"respond": respond}


def in_long_halves(x: np.ndarray) -> bool:
    """Whether keys or values are of half precision, and of as many tokens as a tile has."""
    return bool(x.dtype.itemsize == 2 and x.shape[-2] >= 16)


def ignores_strides_in_steps(argument: str, holds: Callable[[np.ndarray], bool] = lambda x: True) -> Change:
    """An argument of a story's steps, where `holds` is true of it, is read as if it were contiguous."""

    def respond(self: Operation, a: Arguments) -> Any:
        steps = tuple(
            (method, {name: misread(x) if name == argument and holds(x) else x for name, x in given.items()})
            for method, given in a.steps
        )
        return honest(self, Arguments(**{**vars(a), "steps": steps}))

    return {"respond": respond}
