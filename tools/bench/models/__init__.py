"""How each library runs a whole model: one module per library, and what its process does with it.

A module has `load(source, variant, threads, positions)`, which returns an object with `ids(prompt, count)`, an iterator of
greedy ids, each of which is there when it comes out, and `logits(tokens, split)`, L×V float32: the first `split` tokens in
one pass and the others one by one, through a cache, so that the kernels of prefill and of decode are both seen.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from inferspec.impl.metrics import RequestTimer

WARM_PROMPT, WARM_IDS = 8, 3
NO_CACHE, AS_STORED = "no cache", "weights as stored"
"""Variants: without a key/value cache; without rearranging weights for instructions of the processor (llama.cpp)."""


class Model(Protocol):
    """A model of some library."""

    def ids(self, prompt: Sequence[int], count: int) -> Iterable[int]: ...

    def logits(self, tokens: Sequence[int], split: int) -> np.ndarray: ...


@dataclass(frozen=True)
class Run:
    """Seconds of a token of the prompt, up to the first id, and of each id after it; and the ids."""

    prefill: float
    decode: float
    ids: tuple[int, ...]


_LOADED: dict[str, Any] = {}
"""The models that this process holds: name of the contender -> model."""


def load(name: str, place: str, source: Path, variant: str, threads: int, positions: int) -> None:
    """Load a contender."""
    module = import_module(f"inferspec.tools.bench.models.{place}")
    _LOADED[name] = module.load(source, variant, threads, positions)


def logits(name: str, tokens: Sequence[int], split: int, columns: np.ndarray) -> np.ndarray:
    """The logits of a contender in some columns."""
    return _LOADED[name].logits(tokens, split)[:, columns]


def warmed(name: str, prompt: Sequence[int], count: int) -> float:
    """Run shortly, and return about how many seconds a run of that prompt and so many ids will take."""
    run(name, prompt[:WARM_PROMPT], WARM_IDS)
    short = run(name, prompt[:WARM_PROMPT], WARM_IDS)
    return short.prefill * len(prompt) + short.decode * count


def run(name: str, prompt: Sequence[int], count: int, clock: Callable[[], float] = time.perf_counter) -> Run:
    """Run a contender once."""
    return timed(_LOADED[name], prompt, count, clock)


def timed(model: Model, prompt: Sequence[int], count: int, clock: Callable[[], float] = time.perf_counter) -> Run:
    """Let a model answer a prompt, by a clock."""
    timer, ids = RequestTimer(clock), []
    for token in model.ids(prompt, count):
        timer.token()
        ids.append(int(token))
    found = timer.metrics()
    if found.ttft is None or found.tpot is None or len(ids) != count:
        raise ValueError(f"it gave {len(ids)} ids in place of {count}")
    return Run(found.ttft / len(prompt), found.tpot, tuple(ids))
