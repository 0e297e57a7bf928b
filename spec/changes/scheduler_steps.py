"""The steps that faults and honest variants have in the place of the oracle's: see `spec/faults/scheduler_steps.py`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from inferspec.spec.block_manager import blocks_of
from inferspec.spec.contract import Change
from inferspec.spec.scheduler import Chunk, Entry, Scheduler, Serving, Step
from inferspec.spec.serving import Request


def budget_with_that_of_victims(self: Scheduler, s: Serving) -> Step:
    """Who gives way had a token of the step, it is thought, which prompts may have now."""
    preempted: list[Request] = []
    decodes = self.decodes(s, preempted)
    if self.may_admit(s, preempted):
        self.admit(s)
    s.budget += len(preempted)
    s.step = Step(prefills=self.prefills(s), decodes=decodes, preempted=preempted)
    s.budget -= len(preempted)
    return s.step


def budget_each(self: Scheduler, s: Serving, entry: Entry, budget: int) -> int:
    return min(s.budget, len(entry.tokens) - entry.computed)


def budget_of_the_new(self: Scheduler, s: Serving) -> list[Chunk]:
    """Chunks that go on are not counted: the budget is that of the requests that begin."""
    chunks, budget = [], s.budget
    for entry in self.running(s):
        if entry.decoding:
            continue
        begun = entry.computed > entry.table.num_cached_tokens
        count = self.count(s, entry, s.budget if begun else budget)
        if count:
            chunks.append(self.chunk(s, entry, count))
            budget -= 0 if begun else count
    return chunks


def budget_of_the_prompts(self: Scheduler, s: Serving) -> list[Chunk]:
    """What a request had generated before it was preempted is computed beside the budget."""
    chunks, budget = [], s.budget
    for entry in self.running(s):
        count = 0 if entry.decoding else self.count(s, entry, budget)
        if count:
            chunks.append(self.chunk(s, entry, count))
            budget -= min(count, max(0, len(entry.request.tokens) - entry.computed))
    return chunks


def budget_below_zero(self: Scheduler, s: Serving) -> list[Chunk]:
    """What is left beside the single tokens is a number without a sign, and looked at only where there are more of them."""
    budget = s.budget
    left = budget - sum(entry.decoding for entry in self.running(s))
    s.budget = budget if left >= 0 else left % 2**64
    chunks = Scheduler.prefills(self, s)
    s.budget = budget
    return chunks


def eight_prompts(self: Scheduler, s: Serving) -> list[Chunk]:
    """A step has chunks of eight prompts at most."""
    return Scheduler.prefills(self, s)[:8]


def whole_if_begun(self: Scheduler, s: Serving, entry: Entry, budget: int) -> int:
    """A prompt is computed whole as long as any budget is left."""
    return len(entry.tokens) - entry.computed if budget > 0 else 0


def one_request_more(self: Scheduler, s: Serving) -> bool:
    return len(self.running(s)) <= s.max_requests


def more_have_left(self: Scheduler, s: Serving, entry: Entry) -> None:
    """Who is cancelled when it was preempted is counted as one that leaves, once more."""
    s.left = getattr(s, "left", 0) + (entry.request.state == "PREEMPTED")
    Scheduler.close(self, s, entry)


def counted_as_running(self: Scheduler, s: Serving) -> bool:
    return len(self.running(s)) - getattr(s, "left", 0) < s.max_requests


def counted_as_waiting(self: Scheduler, s: Serving) -> None:
    """The queue is thought to be empty when as many have left it as came."""
    if len(self.waiting(s)) > getattr(s, "left", 0):
        Scheduler.admit(self, s)


def generating_alone_count(self: Scheduler, s: Serving) -> bool:
    return sum(entry.decoding for entry in self.running(s)) < s.max_requests


def ends_at_its_own_preemption() -> Change:
    """Those who generate take their turns as they were admitted, up to one that is preempted for itself."""

    def allocate(self: Scheduler, s: Serving, entry: Entry) -> None:
        Scheduler.allocate(self, s, entry)
        s.admitted = entry.since = getattr(s, "admitted", 0) + 1

    def decodes(self: Scheduler, s: Serving, preempted: list[Request]) -> list[Chunk]:
        chunks: list[Chunk] = []
        for entry in sorted((one for one in self.running(s) if one.decoding), key=lambda one: one.since):
            victim = None
            while entry.table is not None and not self.makes_room(s, entry):
                victim = self.victim(s, entry)
                preempted.append(victim.request)
                self.preempt(s, victim)
                chunks = [chunk for chunk in chunks if chunk.request is not preempted[-1]]
            if victim is entry:
                break
            if entry.table is not None:
                chunks.append(self.chunk(s, entry, 1))
        return chunks

    return {"allocate": allocate, "decodes": decodes}


def sixteen_at_most(self: Scheduler, s: Serving, preempted: list[Request]) -> list[Chunk]:
    """The buffers of a step have so many rows."""
    return Scheduler.decodes(self, s, preempted)[:16]


def block_by_block(self: Scheduler, s: Serving) -> list[Chunk]:
    """A prompt's part of a step is handed out a block at a time, as chunks of their own."""
    chunks: list[Chunk] = []
    size = s.manager.block_size
    for chunk in Scheduler.prefills(self, s):
        for at in range(0, len(chunk.tokens), size):
            part = chunk.tokens[at : at + size]
            last = at + size >= len(chunk.tokens)
            chunks.append(
                Chunk(
                    request=chunk.request,
                    start=chunk.start + at,
                    tokens=part,
                    block_ids=chunk.block_ids,
                    samples=chunk.samples and last,
                )
            )
    return chunks


def twice_where_it_ends(self: Scheduler, s: Serving) -> Step:
    """A prompt of which this step computes the last chunk is decoded in the same step."""
    step = Scheduler.schedule(self, s)
    for chunk in step.prefills:
        if chunk.samples and len(chunk.tokens) > 1:
            again = Chunk(**vars(chunk))
            again.start, again.tokens = chunk.start + len(chunk.tokens) - 1, chunk.tokens[-1:]
            step.decodes.append(again)
            return step
    return step


def all_prefills(self: Scheduler, s: Serving) -> Step:
    """One list of chunks, whatever they are."""
    step = Scheduler.schedule(self, s)
    step.prefills, step.decodes = [*step.prefills, *step.decodes], []
    return step


def single_tokens_are_decodes(self: Scheduler, s: Serving) -> Step:
    """What is one token and gives an id is a decode, that of a prompt too."""
    step = Scheduler.schedule(self, s)
    last = [chunk for chunk in step.prefills if chunk.samples and len(chunk.tokens) == 1]
    step.prefills = [chunk for chunk in step.prefills if chunk not in last]
    step.decodes = [*step.decodes, *last]
    return step


def still_decoding(self: Scheduler, s: Serving, victim: Entry) -> None:
    """A request that was preempted goes on a token at a time, as a decode."""
    decoding = victim.decoding
    Scheduler.preempt(self, s, victim)
    victim.decoding = decoding


def skips_after_a_victim(self: Scheduler, s: Serving, preempted: list[Request]) -> list[Chunk]:
    """The place in the list is not mended when somebody leaves it: the next one is left out."""
    chunks = []
    entries = [entry for entry in self.running(s) if entry.decoding]
    skip = False
    for entry in entries:
        if skip:
            skip = False
            continue
        while entry.table is not None and not self.makes_room(s, entry):
            victim = self.victim(s, entry)
            preempted.append(victim.request)
            self.preempt(s, victim)
            skip = True
        if entry.table is not None:
            chunks.append(self.chunk(s, entry, 1))
    return chunks


def decodes_in_the_budget(self: Scheduler, s: Serving, preempted: list[Request]) -> list[Chunk]:
    """No more requests are decoded than the prefill budget has tokens."""
    return Scheduler.decodes(self, s, preempted)[: s.budget]


def admits_or_decodes(self: Scheduler, s: Serving) -> Step:
    """A step that admits somebody decodes for nobody."""
    before = len(self.running(s))
    self.admit(s)
    preempted: list[Request] = []
    decodes = [] if len(self.running(s)) > before else self.decodes(s, preempted)
    s.step = Step(prefills=self.prefills(s), decodes=decodes, preempted=preempted)
    return s.step


def pending_of_decodes(self: Scheduler, s: Serving) -> int:
    """Who generates is counted, and whose prompt is not computed yet is not."""
    return sum(len(entry.tokens) - entry.computed for entry in self.running(s) if entry.decoding)


def hits_in_the_budget(self: Scheduler, s: Serving) -> list[Chunk]:
    """What is cached of a prompt is charged to the budget."""
    chunks, budget = [], s.budget
    for entry in self.running(s):
        if entry.decoding:
            continue
        first = entry.computed == entry.table.num_cached_tokens
        count = self.count(s, entry, budget)
        if count:
            chunks.append(self.chunk(s, entry, count))
            budget -= count + (entry.computed if first else 0)
        if budget <= 0:
            break
    return chunks


def keeps_one_back(self: Scheduler, s: Serving, entry: Entry) -> None:
    """A request is admitted only where a block is left beside its own, if anybody runs."""
    if self.running(s) and blocks_of(len(entry.tokens), s.manager.block_size) >= s.manager.num_free:
        raise ValueError("one block is kept back")
    Scheduler.allocate(self, s, entry)


def decodes_before_prompts(self: Scheduler, s: Serving, preempted: list[Request]) -> list[Chunk]:
    """Those who run are gone through up to one that still computes its prompt."""
    chunks = Scheduler.decodes(self, s, preempted)
    first = next((entry for entry in self.running(s) if not entry.decoding), None)
    before = [entry.request for entry in self.running(s) if first is None or entry.order < first.order]
    return [chunk for chunk in chunks if chunk.request in before]


def room_for_the_whole(self: Scheduler, s: Serving, entry: Entry) -> None:
    """A request is admitted only where there is room for all its tokens, cached or not."""
    if blocks_of(len(entry.tokens), s.manager.block_size) > s.manager.num_free:
        raise ValueError("no room for the whole of it")
    Scheduler.allocate(self, s, entry)


def keeps_a_part_back(part: float) -> Any:
    """A request is admitted only where so large a part of the pool is free, if anybody runs."""

    def allocate(self: Scheduler, s: Serving, entry: Entry) -> None:
        if self.running(s) and s.manager.num_free < part * s.manager.num_blocks:
            raise ValueError("the rest is kept back")
        Scheduler.allocate(self, s, entry)

    return allocate


def reserves_to_the_limit(self: Scheduler, s: Serving, entry: Entry) -> None:
    """A request is admitted only where there are blocks for all that it and those who run may come to have."""
    size = s.manager.block_size
    owed = sum(blocks_of(self.slots(one.request), size) - len(one.table.block_ids) for one in self.running(s))
    if self.running(s) and blocks_of(self.slots(entry.request), size) + owed > s.manager.num_free:
        raise ValueError("it might need more than there is")
    Scheduler.allocate(self, s, entry)


def one_length_at_a_time(self: Scheduler, s: Serving, preempted: list[Request]) -> list[Chunk]:
    """A batch has requests of one length: those of other lengths wait again."""
    generating = [entry for entry in self.running(s) if entry.decoding]
    for entry in generating[1:]:
        if len(entry.tokens) != len(generating[0].tokens):
            preempted.append(entry.request)
            self.preempt(s, entry)
    return Scheduler.decodes(self, s, preempted)


def output_one_by_one(self: Scheduler, s: Serving, entry: Entry, budget: int) -> int:
    """What lies behind the prompt is computed a token a step, by a request too that computes it again."""
    return min(budget, 1) if entry.computed >= len(entry.request.tokens) else Scheduler.count(self, s, entry, budget)


def ends_of_the_prompt(self: Scheduler, s: Serving, request: Request) -> None:
    """What ends a request is looked up by its prompt: the last request's ids are those of all that have it."""
    Scheduler.add(self, s, request)
    for entry in s.entries:
        if list(entry.request.tokens) == list(request.tokens):
            entry.eos = request.eos


def by_the_prompt(self: Scheduler, entry: Entry, token: int) -> bool:
    return token in entry.eos


def room_not_looked_at(self: Scheduler, s: Serving, step: Step, tokens: Sequence[int | None]) -> list[Request]:
    s.room = None
    return Scheduler.update(self, s, step, tokens)


def room_when_the_first_left(self: Scheduler, s: Serving, entry: Entry) -> None:
    Scheduler.close(self, s, entry)
    if s.__dict__.get("room") is None:
        s.room = s.manager.num_free


def allocates_by_that_room(self: Scheduler, s: Serving, entry: Entry) -> None:
    """How much room there is was noted when the first request of a step ended, before others did."""
    room = s.__dict__.get("room")
    if self.running(s) and room is not None and blocks_of(len(entry.tokens), s.manager.block_size) > room:
        raise ValueError("no room")
    Scheduler.allocate(self, s, entry)
