"""How each library runs each operation: one module per library, and what its process does with it.

A module has ARRAYS, the kind of its arrays, and CONTENDERS: operation -> a function of the arguments (NumPy) and of `put`, which
makes an array of that kind, that returns the call to be timed. NOTES says what is not quite the operation itself.
"""

from __future__ import annotations

import gc
import itertools
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from types import SimpleNamespace
from typing import Any

import numpy as np

from inferspec.conformance.bridge.arrays import Arrays, arrays
from inferspec.tools.bench.cases import Case

MOST_COPIES = 192
TARGET_SECONDS = 0.01
"""Of a measurement: a shorter call is repeated so often."""

_WARM_SECONDS = 0.05


@dataclass(frozen=True)
class Prepared:
    """A contender that is ready. output: what it returned, None when it failed; error: why, "" for one that has no such
    operation; calls: how many make a measurement; cost: seconds of one."""

    output: np.ndarray | None
    error: str = ""
    note: str = ""
    calls: int = 1
    cost: float = 0.0


_READY: dict[str, Callable[[], Any]] = {}
"""Contenders of the case that this process has prepared: name -> the next call."""


def prepare(case: Case, seed: int, contenders: Mapping[str, str], footprint: int, threads: int) -> dict[str, Prepared]:
    """Make the contenders of a case ready, and call each.

    contenders: name -> module. footprint: calls go through copies of the arguments in turn, of so many bytes together, so
    that what they read is not in the cache, as the weights of a model's layers are not; 0 for one copy.
    """
    for name in contenders:
        _READY.pop(name, None)
    arguments = SimpleNamespace(**case.arguments(seed))
    return {name: _prepared(name, place, case.op, arguments, footprint, threads) for name, place in contenders.items()}


def sample(name: str, calls: int) -> float:
    """Seconds of a call, the mean of so many on end."""
    call = _READY[name]
    gc.disable()
    begun = time.perf_counter()
    for _ in range(calls):
        call()
    taken = time.perf_counter() - begun
    gc.enable()
    return taken / calls


def release() -> None:
    """Forget the contenders of the last case."""
    _READY.clear()
    gc.collect()


def _prepared(name: str, place: str, op: str, arguments: SimpleNamespace, footprint: int, threads: int) -> Prepared:
    try:
        module = import_module(f"inferspec.tools.bench.ops.{place}")
        make = module.CONTENDERS.get(op)
        if make is None:
            return Prepared(None)
        module.use(threads)
        kind = arrays(module.ARRAYS)
        module.use(threads)  # the kind of torch's arrays sets one of its own
        copies = _copies(make, arguments, kind, footprint)
        output = kind.to_numpy(kind.ready(copies[0]()))
    except Exception as error:
        return Prepared(None, " ".join(f"{type(error).__name__}: {error}".split()))
    turns = itertools.cycle(copies)
    _READY[name] = lambda: kind.ready(next(turns)())
    each = _seconds(_READY[name])
    calls = max(1, round(TARGET_SECONDS / each))
    return Prepared(output, "", module.NOTES.get(op, ""), calls, calls * each)


def _copies(
    make: Callable[..., Callable[[], Any]], arguments: SimpleNamespace, kind: Arrays, footprint: int
) -> list[Callable[[], Any]]:
    """The call on as many copies of its arrays as the footprint asks for."""
    total = 0

    def put(x: np.ndarray) -> Any:
        nonlocal total
        total += x.nbytes
        return kind.ready(kind.from_numpy(x))

    copies = [make(arguments, put)]
    while total < footprint and len(copies) < MOST_COPIES:
        copies.append(make(arguments, put))
    return copies


def _seconds(call: Callable[[], Any]) -> float:
    """About how long a call takes, after one that does not count."""
    call()
    taken: list[float] = []
    while sum(taken) < _WARM_SECONDS and len(taken) < MOST_COPIES:
        begun = time.perf_counter()
        call()
        taken.append(time.perf_counter() - begun)
    return float(np.median(taken))
