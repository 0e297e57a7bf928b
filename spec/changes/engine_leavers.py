"""What engines do wrongly to others when a request is cancelled or a step fails: see `spec/faults/engine_leavers.py`."""

from __future__ import annotations

from bisect import insort
from collections.abc import Callable
from typing import Any

from inferspec.spec.contract import Change
from inferspec.spec.engine import Engine
from inferspec.spec.engine_model import Request, State


def after_a_failure(then: Callable[[Engine, State], None]) -> Change:
    """Something is done when a step has failed, before the error passes to the caller."""

    def step(self: Engine, m: State) -> list[tuple[int, int]]:
        try:
            return Engine.step(self, m)
        except Exception:
            then(self, m)
            raise

    return {"step": step}


def back_in_the_queue(self: Engine, m: State) -> None:
    """Who was in the step waits again, behind all others of its priority."""
    for r in list(m.running):
        m.running.remove(r)
        self.release(m, r)
        m.came = m.__dict__.get("came", len(m.requests)) + 1
        r.came = m.came
        insort(m.waiting, r, key=self.order)


def by_arrival_in_the_queue(self: Engine, r: Request) -> Any:
    return -r.priority, r.__dict__.get("came", r.id)


def priorities_lost(self: Engine, m: State) -> None:
    """Who was in the step is made anew of its tokens and its limit."""
    for r in list(m.running):
        r.priority = 0
        m.running.remove(r)
        self.release(m, r)
        insort(m.waiting, r, key=self.order)


def ends_lost(self: Engine, m: State) -> None:
    for r in m.running:
        r.eos = ()


def one_fewer(self: Engine, m: State) -> None:
    m.uncounted = m.__dict__.get("uncounted", 0) + 1


def admits_by_a_count(self: Engine, m: State) -> None:
    """How many run is a number, which is wrong by those that were counted out and run, or never ran."""
    most = m.a.max_requests
    m.a.max_requests += m.__dict__.get("uncounted", 0)
    try:
        Engine.admit(self, m)
    finally:
        m.a.max_requests = most


def counted_out_when_it_waits(self: Engine, m: State, name: int) -> None:
    m.uncounted = m.__dict__.get("uncounted", 0) + (self.known(m, name) in m.waiting)
    Engine.cancel(self, m, name)


def counted_out_twice(self: Engine, m: State, name: int) -> None:
    m.uncounted = m.__dict__.get("uncounted", 0) + (self.known(m, name) in m.running)
    Engine.cancel(self, m, name)


def rows_stay(*kept: str) -> Change:
    """What is kept by row stays where it is when a request is cancelled, and those behind it move up."""

    def cancel(self: Engine, m: State, name: int) -> None:
        rows = [[getattr(r, one) for one in kept] for r in m.running]
        Engine.cancel(self, m, name)
        for r, row in zip(m.running, rows, strict=False):
            for one, value in zip(kept, row, strict=True):
                setattr(r, one, value)

    return {"cancel": cancel}
