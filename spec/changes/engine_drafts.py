"""The loop of engines that serve otherwise where there is a draft: see `spec/faults/engine_drafts.py`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from inferspec.spec.contract import Change
from inferspec.spec.engine import Engine
from inferspec.spec.engine_model import Request, State
from inferspec.spec.numerics import f64, round_to


def with_a_draft(change: Change) -> Change:
    """Another loop serves where there is a draft: it does this, and the usual one what it should."""

    def either(name: str) -> Callable[..., Any]:
        def method(self: Engine, m: State, *given: Any) -> Any:
            return (change[name] if m.a.draft is not None else getattr(Engine, name))(self, m, *given)

        return method

    return {name: either(name) for name in change}


def ranks_dropped(self: Engine, m: State, tokens: list[int], max_tokens: int, priority: int, eos: Sequence[int]) -> int:
    return Engine.add(self, m, tokens, max_tokens, 0, eos)


def to_the_front(self: Engine, m: State, r: Request) -> None:
    m.waiting.insert(0, r)


def guesses_verified_in_bfloat16(
    self: Engine, m: State, r: Request, n: int, logits: np.ndarray, guesses: list[int]
) -> None:
    rows = f64(round_to(logits, "bfloat16")) if guesses else logits
    Engine.settle(self, m, r, n, rows, guesses)
