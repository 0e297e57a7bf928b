"""The steps that faults and honest variants have in the place of the oracle's: see `spec/faults/engine_order.py`."""

from __future__ import annotations

import heapq
from bisect import insort
from collections.abc import Callable
from typing import Any

import numpy as np

from inferspec.spec.changes.engine_pages import prompt_lost
from inferspec.spec.engine import Engine
from inferspec.spec.engine_model import Request, State, pages_of


def by_arrival(self: Engine, r: Request) -> Any:
    return r.id


def small_ones_overtake(self: Engine, m: State) -> None:
    """Who does not fit is passed over."""
    _admit_who_fits(self, m, lambda r: True)


def small_ones_overtake_the_preempted(self: Engine, m: State) -> None:
    """Who was preempted is passed over where it does not fit."""
    _admit_who_fits(self, m, lambda r: bool(r.out))


def notes_who_gives_way(self: Engine, m: State, r: Request) -> None:
    Engine.preempt(self, m, r)
    r.gave_way = True


def small_ones_overtake_who_gave_way(self: Engine, m: State) -> None:
    """The same, with ids or without."""
    _admit_who_fits(self, m, lambda r: bool(vars(r).get("gave_way")))


def _admit_who_fits(self: Engine, m: State, passed_over: Callable[[Request], bool]) -> None:
    for r in list(m.waiting):
        if len(m.running) == m.a.max_requests:
            return
        hits = self.hits(m, r)
        taken = len([page for page in hits if page in m.free])
        if pages_of(len(r.tokens), m.a.page_size) - len(hits) + taken <= len(m.free):
            m.waiting.remove(r)
            self.start(m, r, hits)
            insort(m.running, r, key=self.order)
        elif not passed_over(r):
            return


def rank_in_a_byte(self: Engine, r: Request) -> Any:
    """Priorities are numbers of eight bits with a sign."""
    return -((r.priority + 128) % 256 - 128), r.id


def rank_in_float32(self: Engine, r: Request) -> Any:
    return -float(np.float32(r.priority)), r.id


def rank_within_32_bits(self: Engine, r: Request) -> Any:
    return -min(max(r.priority, -(2**31)), 2**31 - 1), r.id


def ranks_from_0_to_3(self: Engine, r: Request) -> Any:
    """There are four queues."""
    return -min(max(r.priority, 0), 3), r.id


def rank_and_arrival_in_one(self: Engine, r: Request) -> Any:
    """Who came first is told by what is below a hundred."""
    return r.id - 100 * r.priority


def smaller_first(self: Engine, r: Request) -> Any:
    return r.priority, r.id


def latest_first(self: Engine, r: Request) -> Any:
    return -r.priority, -r.id


def by_text(self: Engine, r: Request) -> Any:
    """Names of requests are texts, and 10 comes before 2."""
    return -r.priority, str(r.id)


def heap_as_it_lies(self: Engine, m: State) -> None:
    """Who waits lies in a heap, and whoever there is room for is taken from its front: only the first of a heap is in order."""
    heap: list[Any] = []
    for r in sorted(m.waiting, key=lambda r: r.id):
        heapq.heappush(heap, (self.order(r), r.id))
    m.waiting = [m.requests[name] for _, name in heap]
    Engine.admit(self, m)
    m.waiting.sort(key=self.order)


def pushed(self: Engine, m: State, r: Request) -> None:
    """Who waits lies in a heap."""
    m.heap = m.__dict__.get("heap", [])
    heapq.heappush(m.heap, (self.order(r), r.id))
    Engine.queue(self, m, r)


def popped(self: Engine, m: State) -> None:
    """Who waits is admitted as the heap gives it."""
    copy = list(m.__dict__.get("heap", []))
    names = [heapq.heappop(copy)[1] for _ in range(len(copy))]
    m.waiting = [m.requests[name] for name in names if m.requests[name] in m.waiting]
    Engine.admit(self, m)
    while m.__dict__.get("heap") and m.requests[m.heap[0][1]] not in m.waiting:
        heapq.heappop(m.heap)


def taken_from_the_heap(self: Engine, m: State, name: int) -> None:
    """Who is cancelled is taken out of the heap's list, which no longer is one."""
    Engine.cancel(self, m, name)
    m.heap = [(order, one) for order, one in m.__dict__.get("heap", []) if one != name]


def counts_arrivals(self: Engine, m: State, r: Request) -> None:
    m.came = m.__dict__.get("came", 0) + 1
    r.came = r.__dict__.get("came", m.came)
    Engine.queue(self, m, r)


def by_count(self: Engine, r: Request) -> Any:
    return -r.priority, r.came


def counts_anew(self: Engine, m: State, r: Request) -> None:
    """Arrivals are counted from 0 again when nobody runs, although some wait."""
    Engine.end(self, m, r)
    m.came = m.came if m.running else 0


def priority_lost(self: Engine, m: State, r: Request) -> None:
    r.priority = 0
    Engine.preempt(self, m, r)


def arrives_again(self: Engine, m: State, r: Request) -> None:
    """Whoever is preempted comes last."""
    r.came = m.came = m.came + 1
    Engine.preempt(self, m, r)


def arrives_again_in_its_prompt(self: Engine, m: State, r: Request) -> None:
    """Whoever is preempted before it has an id comes last."""
    (Engine.preempt if r.out else arrives_again)(self, m, r)


def new_ones_first(self: Engine, r: Request) -> Any:
    """Who has ids already has had a turn."""
    return -r.priority, len(r.out) > 0, r.id


def begins(self: Engine, m: State) -> None:
    m.began = True
    Engine.admit(self, m)


def sorted_once(self: Engine, m: State, r: Request) -> None:
    """The queue is in order when the first step begins; who comes later goes to its end."""
    m.waiting.append(r)
    if not m.__dict__.get("began"):
        m.waiting.sort(key=self.order)


def displaces(self: Engine, m: State) -> None:
    """A waiting request of higher priority takes a running one's place at once, and what that had computed is lost."""
    if m.waiting and len(m.running) >= m.a.max_requests and m.waiting[0].priority > m.running[-1].priority:
        prompt_lost(self, m, m.running[-1])
    Engine.admit(self, m)


def highest_victim(self: Engine, m: State, r: Request) -> Request:
    """The larger number was taken for the smaller priority."""
    return max(m.running, key=lambda x: (x.priority, x.id))


def latest_victim_of_all(self: Engine, m: State, r: Request) -> Request:
    """Who came last gives way, whatever its priority."""
    return max(m.running, key=lambda x: x.id)
