"""Whether arrays stand for something: inside `mx.grad`, `mx.vmap` and `mx.compile` they are only traced."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

import mlx.core as mx


def traced(arrays: Iterable[mx.array]) -> bool:
    """Whether any of the arrays depends on an argument of a function that MLX is transforming just now.

    Such arrays have values in `mx.grad` and could be read, but what comes of them would be taken for a constant.
    MLX runs the function behind `mx.compile` anew for tracers alone: for other arrays of a known shape it does not.
    """
    with _compiling():
        return any(_runs_anew(array) for array in arrays)


@contextmanager
def _compiling() -> Iterator[None]:
    """Have `mx.compile` do its work, also where `mx.disable_compile` or MLX_DISABLE_COMPILE turned it off."""
    if not _runs_anew(mx.zeros(1)):
        yield
        return
    mx.enable_compile()
    try:
        yield
    finally:
        mx.disable_compile()


def _runs_anew(array: mx.array) -> bool:
    runs = 0

    def count(x: mx.array) -> mx.array:
        nonlocal runs
        runs += 1
        return x

    compiled = mx.compile(count)
    one = array.reshape(-1)[:1]
    compiled(one)
    compiled(one)
    return runs > 1
