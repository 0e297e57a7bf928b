"""What engines lose when a request is cancelled, refused or preempted, or a step fails: see `spec/faults/engine_leavers.py`."""

from __future__ import annotations

from bisect import insort
from collections.abc import Callable, Sequence
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


def still_known(self: Engine, m: State) -> list[tuple[int, int]]:
    """What the cache knew before a step that fails it knows again, of pages too that the step took and keeps."""
    known = dict(m.cached)
    try:
        return Engine.step(self, m)
    except Exception:
        m.cached |= known
        raise


def victims_back(self: Engine, m: State) -> list[tuple[int, int]]:
    """Whom a step preempted that fails, and not the first that does, runs on in its pages, which are free."""
    had = {r.id: (list(r.table), r.computed) for r in m.running}
    try:
        return Engine.step(self, m)
    except Exception:
        m.failures = vars(m).get("failures", 0) + 1
        for r in [r for r in m.waiting if r.id in had and m.failures > 1]:
            m.waiting.remove(r)
            r.table, r.computed = had[r.id]
            insort(m.running, r, key=self.order)
        raise


def counts_out_the_preempted(self: Engine, m: State, name: int) -> None:
    """Who is cancelled when it waits with ids is no longer counted, and was not since it gave way, where there is a draft."""
    r = self.known(m, name)
    m.gone = vars(m).get("gone", 0) + (r in m.waiting and bool(r.out) and m.a.draft is not None)
    Engine.cancel(self, m, name)


def unfinished_by_a_count(self: Engine, m: State) -> bool:
    return len(m.waiting) + len(m.running) > vars(m).get("gone", 0)


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


def counted_out_when_preempted(self: Engine, m: State, r: Request) -> None:
    """Who gives way is counted out then, and again when it ends."""
    one_fewer(self, m)
    Engine.preempt(self, m, r)


def noted_as_resumed(self: Engine, m: State, r: Request, hits: list[int]) -> None:
    r.resumed = bool(r.out)
    Engine.start(self, m, r, hits)


def counts_without_the_resumed(self: Engine, m: State) -> None:
    """Of those that run only who has not been preempted is counted."""
    most = m.a.max_requests
    m.a.max_requests += sum(r.__dict__.get("resumed", False) for r in m.running)
    try:
        Engine.admit(self, m)
    finally:
        m.a.max_requests = most


def rows_stay(*kept: str) -> Change:
    """What is kept by row stays where it is when a request is cancelled, and those behind it move up."""

    def cancel(self: Engine, m: State, name: int) -> None:
        rows = [[getattr(r, one) for one in kept] for r in m.running]
        Engine.cancel(self, m, name)
        for r, row in zip(m.running, rows, strict=False):
            for one, value in zip(kept, row, strict=True):
                setattr(r, one, value)

    return {"cancel": cancel}


def admissions_undone(hits: Callable[[Engine, State, Request], None]) -> Change:
    """When a step fails those that it admitted wait again; `hits` is done to what they share with others."""

    def start(self: Engine, m: State, r: Request, found: list[int]) -> None:
        Engine.start(self, m, r, found)
        r.found, r.begun = found, m.begun

    def step(self: Engine, m: State) -> list[tuple[int, int]]:
        m.begun = m.__dict__.get("begun", 0) + 1
        try:
            return Engine.step(self, m)
        except Exception:
            for r in [r for r in m.running if r.begun == m.begun]:
                m.running.remove(r)
                hits(self, m, r)
                self.release(m, r)
                self.queue(m, r)
            raise

    return {"start": start, "step": step}


def hits_kept(self: Engine, m: State, r: Request) -> None:
    """Only pages that were taken are given back."""
    r.table = r.table[len(r.found) :]


def hits_left_twice(self: Engine, m: State, r: Request) -> None:
    for page in r.found:
        m.owners[page] = max(m.owners[page] - 1, 1)


def spoilt(self: Engine, m: State) -> None:
    for r in m.running:
        r.spoilt = True


def pages_of_the_spoilt_kept(self: Engine, m: State, name: int) -> None:
    """Who was in a step that failed is taken for one that has no pages."""
    r = self.known(m, name)
    if r in m.running and r.__dict__.get("spoilt"):
        r.table = []
    Engine.cancel(self, m, name)


def logits_left_with_the_pages(self: Engine, m: State, r: Request) -> None:
    Engine.preempt(self, m, r)
    r.logits = None


def noted_as_preempted(self: Engine, m: State, r: Request) -> None:
    r.ahead = True
    Engine.preempt(self, m, r)


def the_preempted_first(self: Engine, r: Request) -> Any:
    """Who is preempted waits before all others."""
    return not r.__dict__.get("ahead"), *Engine.order(self, r)


def counts_the_refused(
    self: Engine, m: State, tokens: list[int], max_tokens: int, priority: int, eos: Sequence[int]
) -> int:
    try:
        return Engine.add(self, m, tokens, max_tokens, priority, eos)
    except ValueError:
        one_fewer(self, m)
        raise


def arrives_with_its_hits(self: Engine, m: State, r: Request, hits: list[int]) -> None:
    """The time of who is hit begins when it is admitted, as if it had waited for nothing."""
    Engine.start(self, m, r, hits)
    if hits and not r.times:
        r.arrival = m.clock()
