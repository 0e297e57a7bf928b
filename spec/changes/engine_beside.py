"""The steps that faults and honest variants have in the place of the oracle's: see `spec/faults/engine_beside.py`."""

from __future__ import annotations

from typing import Any

import numpy as np

from inferspec.spec.contract import Arguments, Change
from inferspec.spec.engine import Engine
from inferspec.spec.engine_model import Request, State
from inferspec.spec.transformer import Memory


def beside(self: Engine, a: Arguments, clock: Any) -> State:
    """An engine that knows those that were made for the same story before it, and is known to them."""
    m = Engine.fresh(self, a, clock)
    others = self.__dict__.setdefault("others", [])
    if others and others[0].a.steps is not a.steps:
        others = self.__dict__["others"] = []
    others.append(m)
    m.others = others
    return m


def _twins(m: State, r: Request) -> list[Request]:
    """The requests of other engines that have the id of this one."""
    return [other.requests[r.id] for other in m.others if other is not m and r.id in other.requests]


def of_all(name: str) -> Change:
    """What a request is given is that of all engines' requests of its id: of the one that came last."""

    def add(self: Engine, m: State, tokens: list[int], limit: int, priority: int, eos: Any) -> int:
        number = Engine.add(self, m, tokens, limit, priority, eos)
        for twin in _twins(m, m.requests[number]):
            setattr(twin, name, getattr(m.requests[number], name))
        for other in m.others:
            other.waiting.sort(key=self.order)
        return number

    return {"fresh": beside, "add": add}


def stamps_all(self: Engine, m: State, r: Request) -> None:
    Engine.stamp(self, m, r)
    for twin in _twins(m, r):
        twin.times.append(r.times[-1])


def logits_for_all(self: Engine, m: State, r: Request, token: int, row: np.ndarray) -> None:
    Engine.emit(self, m, r, token, row)
    for twin in _twins(m, r):
        twin.logits = row


def draft_for_all(self: Engine, m: State, r: Request, count: int) -> list[int]:
    found = Engine.guesses(self, m, r, count)
    for twin in _twins(m, r):
        twin.draft = r.draft
    return found


def draft_taken_for_its_own(self: Engine, m: State, r: Request) -> tuple[Memory, list[int]]:
    """As much of the draft's memory as the request has tokens is taken for that of these."""
    memory, known = r.draft
    r.draft = memory, list(r.tokens[: len(known)])
    return Engine.rewound(self, m, r)


def on_the_class(limit: str) -> Change:
    """A limit is written to the class, and read there in every step."""

    def fresh(self: Engine, a: Arguments, clock: Any) -> State:
        setattr(type(self), limit, getattr(a, limit))
        return Engine.fresh(self, a, clock)

    def step(self: Engine, m: State) -> list[tuple[int, int]]:
        m.a = Arguments(**{**vars(m.a), limit: getattr(type(self), limit)})
        return Engine.step(self, m)

    return {"fresh": fresh, "step": step}


def without_prefix_caching(self: Engine, a: Arguments, clock: Any) -> State:
    if a.prefix_caching:
        raise NotImplementedError("prefix_caching")
    return Engine.fresh(self, a, clock)
