"""What is wrong in another thread than the one in which an object was made, or a function loaded."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np

from inferspec.spec.contract import Arguments, Change, Operation
from inferspec.spec.mistakes import honest
from inferspec.spec.rope import RoPE
from inferspec.spec.sampling import Sampler


def _begin(self: Operation) -> None:
    vars(self)["home"] = threading.get_ident()


def _abroad(self: Operation) -> bool:
    return bool(vars(self)["home"] != threading.get_ident())


def _refuse(self: Operation) -> None:
    if _abroad(self):
        raise RuntimeError("There is no Stream(gpu, 1) in current thread.")


def bound_to_its_thread() -> Change:
    """What was not computed when it was made is bound to a stream of that thread, and there is none of its number in another."""
    return binding("respond")


def binding(step: str) -> Change:
    """The same, of what one step needs."""

    def bound(self: Operation, *given: Any) -> Any:
        _refuse(self)
        return honest(self, *given, step=step)

    return {"goes_on": True, "__init__": _begin, step: bound}


def tables_of_its_thread() -> Change:
    """The tables of RoPE are in storage of the thread that made the object, which is empty in another."""

    def coefficients(self: RoPE, *given: Any) -> tuple[np.ndarray, np.ndarray]:
        cos, sin = honest(self, *given, step="coefficients")
        return (np.zeros_like(cos), np.zeros_like(sin)) if _abroad(self) else (cos, sin)

    return {"goes_on": True, "__init__": _begin, "coefficients": coefficients}


def begins_anew_with_each_call() -> Change:
    """A compiled draw keeps the state of the generator of the thread that compiled it; others begin where that was each time."""

    def generator(self: Sampler, a: Arguments) -> np.random.Generator:
        return np.random.default_rng(0) if _abroad(self) else Sampler.generator(self, a)

    return {"__init__": _begin, "generator": generator}
