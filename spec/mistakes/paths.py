"""Paths of kernels, by the calls that take them, and the mistakes that each may have alone."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from inferspec.spec.contract import Arguments, Change, Fault, Requirement
from inferspec.spec.mistakes.memory import mutates, remembers, reuses_its_buffer
from inferspec.spec.mistakes.steps import only_where, promotes
from inferspec.spec.mistakes.unwritten import leaves_unwritten, tiles_past_two_unwritten
from inferspec.spec.mistakes.views import ignores_strides, reads_on

TIMES_ZERO = "https://github.com/uxlfoundation/oneDNN/issues/5717"


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


def in_bytes(size: int, holds: Callable[[Arguments], bool], argument: str = "x") -> Callable[[Arguments], bool]:
    """Whether a call of which `holds` is true is in a dtype of so many bytes, that of an argument."""
    return lambda a: getattr(a, argument).dtype.itemsize == size and holds(a)


def in_half(holds: Callable[[Arguments], bool], argument: str = "x") -> Callable[[Arguments], bool]:
    """Whether a call of which `holds` is true is in half precision."""
    return in_bytes(2, holds, argument)


def of_many_rows(argument: str = "x", fewest: int = 32) -> Callable[[Arguments], bool]:
    """Whether an argument has so many rows as the tiles of products have."""
    return lambda a: math.prod(getattr(a, argument).shape[:-1]) >= fewest


def in_long_halves(x: np.ndarray) -> bool:
    """Whether keys or values are of half precision, and of as many tokens as a tile has."""
    return bool(x.dtype.itemsize == 2 and x.shape[-2] >= 16)


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
