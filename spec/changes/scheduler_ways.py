"""Honest ways to schedule: see `spec/faults/scheduler.py`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from inferspec.spec.block_manager import blocks_of
from inferspec.spec.scheduler import Chunk, Entry, Scheduler, Serving, Step
from inferspec.spec.serving import Request


def places_by_priority(self: Scheduler, s: Serving) -> Step:
    """Where nobody may run besides, the last in order leaves its place to one of a higher priority, if that has room and
    begins in this step."""
    running, waiting = self.running(s), self.waiting(s)
    if len(running) < s.max_requests or not waiting or waiting[0].order[0] >= running[-1].order[0]:
        return Scheduler.schedule(self, s)
    if blocks_of(len(waiting[0].tokens), s.manager.block_size) > s.manager.num_free:
        return Scheduler.schedule(self, s)
    if sum(len(one.tokens) - one.computed for one in running if one.order < waiting[0].order) >= s.budget:
        return Scheduler.schedule(self, s)
    preempted = [running[-1].request]
    self.preempt(s, running[-1])
    self.allocate(s, waiting[0])
    waiting[0].request.state = "RUNNING"
    decodes = self.decodes(s, preempted)
    s.step = Step(prefills=self.prefills(s), decodes=decodes, preempted=preempted)
    return s.step


def prefills_alone(self: Scheduler, s: Serving) -> Step:
    """Prompts first; what generates waits for a step without any."""
    self.admit(s)
    preempted: list[Request] = []
    prefills = self.prefills(s)
    decodes = [] if prefills else self.decodes(s, preempted)
    s.step = Step(prefills=prefills, decodes=decodes, preempted=preempted)
    return s.step


def decodes_alone(self: Scheduler, s: Serving) -> Step:
    """Who generates goes on to its end; then prompts."""
    preempted: list[Request] = []
    decodes = self.decodes(s, preempted)
    if not decodes and not preempted:
        self.admit(s)
    s.step = Step(prefills=[] if decodes else self.prefills(s), decodes=decodes, preempted=preempted)
    return s.step


def whole_where_it_fits(self: Scheduler, s: Serving, entry: Entry, budget: int) -> int:
    """A prompt that fits into a budget waits for a step that has room for it."""
    left = int(len(entry.tokens) - entry.computed)
    return left if left <= budget else budget if left > s.budget else 0


def latest_behind(self: Scheduler, s: Serving, entry: Entry) -> Entry:
    """Of those behind, the one that came last gives way, whatever its priority."""
    behind = [other for other in self.running(s) if other.order > entry.order]
    return max(behind, key=lambda other: other.order[1], default=entry)


def next_behind(self: Scheduler, s: Serving, entry: Entry) -> Entry:
    return next((other for other in self.running(s) if other.order > entry.order), entry)


def one_a_step(self: Scheduler, s: Serving) -> None:
    waiting = self.waiting(s)
    if waiting and self.has_place(s) and self.pending(s) < s.budget:
        try:
            self.allocate(s, waiting[0])
        except ValueError:
            return
        waiting[0].request.state = "RUNNING"


def always_admits(self: Scheduler, s: Serving, preempted: list[Request]) -> bool:
    return True


def _in_the_end(entry: Entry) -> int:
    """How many slots a request takes in the end, by the scheduler's own list: the caller's may have changed."""
    return len(entry.tokens) - len(entry.request.output) + int(entry.request.max_tokens) - 1


def reserves(self: Scheduler, s: Serving, entry: Entry) -> None:
    """A request is admitted only where it can be finished: nobody is ever preempted."""
    size = s.manager.block_size
    promised = sum(blocks_of(_in_the_end(other), size) for other in self.running(s))
    if promised + blocks_of(_in_the_end(entry), size) > s.manager.num_blocks:
        raise ValueError("it could not be finished")
    Scheduler.allocate(self, s, entry)


def decodes_count(self: Scheduler, s: Serving) -> list[Chunk]:
    """The budget is of all tokens of a step, decodes too, where there are any."""
    decoding = sum(entry.decoding for entry in self.running(s))
    return Scheduler.prefills(self, Serving(**{**vars(s), "budget": max(s.budget - decoding, not decoding)}))


def shortest_prompts(self: Scheduler, s: Serving) -> list[Chunk]:
    """The budget goes to the prompts of which the least is left."""
    chunks, budget = [], s.budget
    for entry in sorted(self.running(s), key=lambda entry: len(entry.tokens) - entry.computed):
        count = 0 if entry.decoding else self.count(s, entry, budget)
        if count:
            chunks.append(self.chunk(s, entry, count))
            budget -= count
    return chunks


def first_chunk_alone(self: Scheduler, s: Serving, entry: Entry) -> None:
    """Blocks for the first chunk are enough to begin."""
    entry.table = s.manager.allocate(entry.tokens[: s.budget])
    entry.computed = entry.table.num_cached_tokens


def room_for_chunks(self: Scheduler, s: Serving) -> Step:
    """Blocks are taken chunk by chunk, of those behind if need be; then others are admitted."""
    preempted: list[Request] = []
    decodes = self.decodes(s, preempted)
    served = [chunk.request for chunk in decodes]
    prefills, budget = [], s.budget
    for entry in [entry for entry in self.running(s) if not entry.decoding]:
        count = self.count(s, entry, budget)
        while count and entry.table is not None and not _grows(s, entry, entry.computed + count):
            victim = self.running(s)[-1]
            if victim.request in served:
                count = 0
            else:
                preempted.append(victim.request)
                self.preempt(s, victim)
        if count and entry.table is not None:
            prefills.append(self.chunk(s, entry, count))
            budget -= count
    before = self.running(s)
    if not preempted:
        self.admit(s)
    for entry in [entry for entry in self.running(s) if entry not in before]:
        count = self.count(s, entry, min(budget, entry.table.num_tokens - entry.computed))
        if count:
            prefills.append(self.chunk(s, entry, count))
            budget -= count
    s.step = Step(prefills=prefills, decodes=decodes, preempted=preempted)
    return s.step


def _grows(s: Serving, entry: Entry, end: int) -> bool:
    missing = entry.tokens[entry.table.num_tokens : end]
    try:
        if missing:
            s.manager.append(entry.table, missing)
    except ValueError:
        return False
    return True


class _OwnBlocks:
    """A free list and nothing else: what a scheduler with memory of its own may have."""

    def __init__(self, manager: Any) -> None:
        self.num_blocks, self.block_size = manager.num_blocks, manager.block_size
        self.free_ids = list(range(manager.num_blocks))

    @property
    def num_free(self) -> int:
        return len(self.free_ids)

    def allocate(self, tokens: Sequence[int]) -> Any:
        table = Serving(block_ids=[], num_tokens=0, num_cached_tokens=0)
        self.append(table, tokens)
        return table

    def append(self, table: Any, tokens: Sequence[int]) -> None:
        more = blocks_of(table.num_tokens + len(tokens), self.block_size) - len(table.block_ids)
        if more > len(self.free_ids):
            raise ValueError("no block")
        table.block_ids = table.block_ids + [self.free_ids.pop() for _ in range(more)]
        table.num_tokens += len(tokens)

    def mark_computed(self, table: Any, n: int) -> None:
        """Nothing is cached."""

    def free(self, table: Any) -> None:
        self.free_ids += table.block_ids


def own_memory(self: Scheduler, manager: Any, max_requests: int, max_prefill_tokens: int) -> Serving:
    return Scheduler.fresh(self, _OwnBlocks(manager), max_requests, max_prefill_tokens)


def kept_while_computed(self: Scheduler, s: Serving, request: Request) -> None:
    """Blocks of a cancelled request are given back when the step that writes into them is over."""
    entry = self.entry(s, request)
    flying = s.step is not None and request in [c.request for c in (*s.step.prefills, *s.step.decodes)]
    if entry is None or not flying:
        Scheduler.cancel(self, s, request)
        return
    s.entries.remove(entry)
    request.state = "FINISHED"
    s.__dict__.setdefault("doomed", []).append(entry)


def _frees_the_doomed(self: Scheduler, s: Serving) -> None:
    for entry in s.__dict__.pop("doomed", []):
        self.release(s, entry)


def updates_then_frees(self: Scheduler, s: Serving, step: Step, tokens: Sequence[int | None]) -> list[Request]:
    finished = Scheduler.update(self, s, step, tokens)
    _frees_the_doomed(self, s)
    return finished


def frees_then_schedules(self: Scheduler, s: Serving) -> Step:
    _frees_the_doomed(self, s)
    return Scheduler.schedule(self, s)


def rolls_back(self: Scheduler, s: Serving) -> Step:
    """Who was admitted for a step that is void waits as before, or is admitted anew."""
    if s.step is not None:
        for entry, state in s.admitted:
            if entry in s.entries and entry.table is not None:
                self.preempt(s, entry)
                entry.request.state = state
    waiting = [(entry, entry.request.state) for entry in self.waiting(s)]
    step = Scheduler.schedule(self, s)
    s.admitted = [(entry, state) for entry, state in waiting if entry.table is not None]
    return step


def fills_one_step(self: Scheduler, s: Serving) -> Step:
    """Every step is the same object, filled anew."""
    step = Scheduler.schedule(self, s)
    s.one = getattr(s, "one", step)
    vars(s.one).update(vars(step))
    s.step = s.one
    return s.step


def raises_when_idle(self: Scheduler, s: Serving) -> Step:
    if not s.entries:
        raise ValueError("nothing to do")
    return Scheduler.schedule(self, s)


def slot_of_the_last(self: Scheduler, request: Request) -> int:
    """The last id has a slot too."""
    return len(request.tokens) + request.max_tokens
