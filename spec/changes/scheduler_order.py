"""The steps that faults and honest variants have in the place of the oracle's: see `spec/faults/scheduler_order.py`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cmp_to_key
from typing import Any

import numpy as np

from inferspec.spec.block_manager import blocks_of
from inferspec.spec.scheduler import Chunk, Entry, Scheduler, Serving, Step
from inferspec.spec.serving import Request

# order


def resumed_with_room_to_grow(self: Scheduler, s: Serving, entry: Entry) -> None:
    """Who was preempted waits for room for a token more, while others run."""
    needed = blocks_of(len(entry.tokens) + 1, s.manager.block_size)
    if entry.request.state == "PREEMPTED" and self.running(s) and needed > s.manager.num_free:
        raise ValueError(f"{needed} blocks of {s.manager.num_free}")
    Scheduler.allocate(self, s, entry)


def smaller_first(self: Scheduler, s: Serving, request: Request) -> tuple[int, int]:
    return request.priority, s.arrivals


def by_arrival(self: Scheduler, s: Serving, request: Request) -> tuple[int, int]:
    return 0, s.arrivals


def levels(self: Scheduler, s: Serving, request: Request) -> tuple[int, int]:
    """Priorities are levels, from -10 to 10."""
    return -max(-10, min(10, request.priority)), s.arrivals


def of_bits(bits: int) -> Any:
    """Priorities of so many bits, with a sign."""

    def order(self: Scheduler, s: Serving, request: Request) -> tuple[int, int]:
        return -((request.priority + 2 ** (bits - 1)) % 2**bits - 2 ** (bits - 1)), s.arrivals

    return order


def negated_in_64_bits(self: Scheduler, s: Serving, request: Request) -> tuple[int, int]:
    """The smallest priority is larger than all others: there is no number for its negative."""
    return (-request.priority + 2**63) % 2**64 - 2**63, s.arrivals


def by_differences(self: Scheduler, s: Serving, request: Request) -> tuple[Any, int]:
    """Which of two priorities is larger is told by their difference, in 64 bits."""

    def difference(one: int, other: int) -> int:
        return (other - one + 2**63) % 2**64 - 2**63

    return cmp_to_key(difference)(request.priority), s.arrivals


def of_float32(self: Scheduler, s: Serving, request: Request) -> tuple[float, int]:
    return -float(np.float32(request.priority)), s.arrivals


def of_float64(self: Scheduler, s: Serving, request: Request) -> tuple[float, int]:
    return -float(request.priority), s.arrivals


def at_most_128(self: Scheduler, entry: Entry, end: int) -> bool:
    """A prompt has no more tokens than a row of the batch."""
    return end == min(len(entry.tokens), 128)


def at_most_1024(self: Scheduler, entry: Entry, end: int) -> bool:
    return end == min(len(entry.tokens), 1024)


def hits_pending(self: Scheduler, s: Serving) -> int:
    """Cached tokens of a prompt count as tokens to be computed."""
    return sum(len(entry.tokens) for entry in self.running(s) if not entry.decoding)


def nobody_beside_sixteen(self: Scheduler, s: Serving) -> None:
    """Where sixteen generate a step has no more rows."""
    if sum(entry.decoding for entry in self.running(s)) < 16:
        Scheduler.admit(self, s)


def one_hit_beside_decodes(self: Scheduler, s: Serving) -> None:
    """Beside tokens of requests that generate, one request is admitted that finds anything cached."""
    generates = any(entry.decoding for entry in self.running(s))
    for entry in self.waiting(s):
        if not self.has_place(s) or self.pending(s) >= s.budget:
            return
        try:
            self.allocate(s, entry)
        except ValueError:
            return
        entry.request.state = "RUNNING"
        if generates and entry.computed:
            return


def whole_prompts_admitted(self: Scheduler, s: Serving) -> None:
    """Of whom a step admits, cached tokens count as tokens to be computed; of whom it finds running, they do not."""
    pending = self.pending(s)
    for entry in self.waiting(s):
        if not self.has_place(s) or pending >= s.budget:
            return
        try:
            self.allocate(s, entry)
        except ValueError:
            return
        entry.request.state = "RUNNING"
        pending += len(entry.tokens)


def arrivals_of_bits(bits: int) -> Any:
    """Requests are numbered in so many bits."""

    def order(self: Scheduler, s: Serving, request: Request) -> tuple[int, int]:
        return -request.priority, s.arrivals % 2**bits

    return order


def rank_and_arrival_in_one(self: Scheduler, s: Serving, request: Request) -> tuple[int, int]:
    """Who came first is told by what is below a thousand."""
    return s.arrivals - 1000 * request.priority, 0


def sign_alone(self: Scheduler, s: Serving, request: Request) -> tuple[int, int]:
    """A priority is thought to be a flag: 1 and 2 are one."""
    return -min(request.priority, 1), s.arrivals


def last_in_first_out(self: Scheduler, s: Serving, request: Request) -> tuple[int, int]:
    return -request.priority, -s.arrivals


def shortest_first(self: Scheduler, s: Serving, request: Request) -> tuple[int, ...]:
    return -request.priority, len(request.tokens), s.arrivals


def cancels_a_twin(self: Scheduler, s: Serving, request: Request) -> None:
    """A request is looked for by what it asks for."""
    alike = [e for e in s.entries if (e.request.tokens, e.request.max_tokens) == (request.tokens, request.max_tokens)]
    Scheduler.cancel(self, s, alike[0].request if alike else request)


def place_gone_with_the_preempted(self: Scheduler, s: Serving, entry: Entry) -> None:
    """A place is kept for who is preempted, and nobody gives it back when it is cancelled."""
    if entry.request.state == "PREEMPTED":
        s.max_requests = max(1, s.max_requests - 1)
    Scheduler.close(self, s, entry)


def rows_of_the_preempted(self: Scheduler, s: Serving) -> bool:
    """Who is preempted keeps its row of the batch until it is its turn again."""
    kept = [entry for entry in self.waiting(s)[1:] if entry.request.state == "PREEMPTED"]
    return len(self.running(s)) + len(kept) < s.max_requests


def place_for_the_preempted(self: Scheduler, s: Serving) -> None:
    """Who was preempted goes on where there are blocks, however many run."""
    for entry in self.waiting(s):
        back = entry.request.state == "PREEMPTED"
        if not (back or self.has_place(s)) or self.pending(s) >= s.budget:
            return
        try:
            self.allocate(s, entry)
        except ValueError:
            return
        entry.request.state = "RUNNING"


def passes_over(passed: Callable[[Entry], bool]) -> Callable[[Scheduler, Serving], None]:
    """Who does not fit is passed over where `passed` says so."""

    def admit(self: Scheduler, s: Serving) -> None:
        for entry in self.waiting(s):
            if not self.has_place(s) or self.pending(s) >= s.budget:
                return
            try:
                self.allocate(s, entry)
            except ValueError:
                if passed(entry):
                    continue
                return
            entry.request.state = "RUNNING"

    return admit


def in_vain_for_eight_steps(entry: Entry) -> bool:
    """Whether it has found no room eight times before."""
    entry.vain = getattr(entry, "vain", 0) + 1
    return entry.vain > 8


def aged(self: Scheduler, s: Serving) -> Step:
    """Who has waited for 32 steps goes before all others."""
    for entry in self.waiting(s):
        entry.waited = getattr(entry, "waited", 0) + 1
        if entry.waited == 32:
            entry.order = (-(2**64), entry.order[1])
    return Scheduler.schedule(self, s)


def hits_overtake(self: Scheduler, s: Serving) -> None:
    """Where one does not fit, those behind it are admitted that find anything cached."""
    stuck = False
    for entry in self.waiting(s):
        if not self.has_place(s) or self.pending(s) >= s.budget:
            return
        try:
            self.allocate(s, entry)
        except ValueError:
            stuck = True
            continue
        if stuck and not entry.computed:
            self.release(s, entry)
            entry.table = None
        else:
            entry.request.state = "RUNNING"


def longest_hit_first(self: Scheduler, s: Serving) -> list[Entry]:
    """Of one priority, the prompt of which most was computed goes first."""

    def hit(entry: Entry) -> int:
        size = s.manager.block_size
        ends = range(size, len(entry.tokens), size)
        return sum(tuple(entry.tokens[:end]) in vars(s).get("known", ()) for end in ends)

    return sorted(Scheduler.waiting(self, s), key=lambda entry: (-entry.request.priority, -hit(entry), entry.order))


def marks_noting(self: Scheduler, s: Serving, entry: Entry) -> None:
    size = s.manager.block_size
    known = vars(s).setdefault("known", set())
    known.update(tuple(entry.tokens[:end]) for end in range(size, entry.computed + 1, size))
    Scheduler.mark(self, s, entry)


def counts_those_who_stay(self: Scheduler, s: Serving, request: Request) -> tuple[int, int]:
    """A request's number is how many there are when it comes."""
    return -request.priority, len(s.entries)


def arrives_again(self: Scheduler, s: Serving, victim: Entry) -> None:
    """A preempted request goes to the end of the queue."""
    Scheduler.preempt(self, s, victim)
    s.arrivals += 1
    victim.order = self.order(s, victim.request)


def arrives_again_when_void(self: Scheduler, s: Serving) -> Step:
    """Who was preempted for a step that is void comes anew with the next one."""
    for request in s.step.preempted if s.step else ():
        if (entry := self.entry(s, request)) and entry.table is None:
            s.arrivals += 1
            entry.order = self.order(s, request)
    return Scheduler.schedule(self, s)


def arrives_again_when_half_computed(self: Scheduler, s: Serving, victim: Entry) -> None:
    """Who is preempted while what it had is computed again goes to the end of the queue."""
    half = bool(victim.request.output) and not victim.decoding
    (arrives_again if half else Scheduler.preempt)(self, s, victim)


def arrives_again_the_second_time(self: Scheduler, s: Serving, victim: Entry) -> None:
    """A request that was preempted before goes to the end of the queue."""
    before = vars(victim).get("preempted", False)
    (arrives_again if before else Scheduler.preempt)(self, s, victim)
    victim.preempted = True


def arrives_again_the_third_time(self: Scheduler, s: Serving, victim: Entry) -> None:
    """A request that was preempted twice before goes to the end of the queue."""
    victim.times = vars(victim).get("times", 0) + 1
    (arrives_again if victim.times > 2 else Scheduler.preempt)(self, s, victim)


def arrives_again_beside(count: int) -> Any:
    """A request that is preempted goes to the end of the queue where so many others go on."""

    def preempt(self: Scheduler, s: Serving, victim: Entry) -> None:
        others = [entry for entry in self.running(s) if entry is not victim]
        (arrives_again if len(others) >= count else Scheduler.preempt)(self, s, victim)

    return preempt


def to_the_front(self: Scheduler, s: Serving, victim: Entry) -> None:
    """A preempted request goes before all that wait, those of larger priority too."""
    Scheduler.preempt(self, s, victim)
    s.arrivals += 1
    victim.order = (-100, -s.arrivals)


def ahead_once_preempted(self: Scheduler, s: Serving, victim: Entry) -> None:
    """That it is not preempted for ever, a preempted request is before all of its priority from there on."""
    Scheduler.preempt(self, s, victim)
    s.arrivals += 1
    victim.order = victim.order[0], -s.arrivals


def preempted_last(self: Scheduler, s: Serving) -> list[Entry]:
    """Those who never ran go before those who were preempted."""
    return sorted(Scheduler.waiting(self, s), key=lambda entry: (entry.request.state == "PREEMPTED", entry.order))


def prompts_first(self: Scheduler, s: Serving, entry: Entry) -> Entry:
    """Who has generated nothing yet gives way first, whatever its priority."""
    running = self.running(s)
    return ([one for one in running if not one.decoding] or running)[-1]


def generating_first(self: Scheduler, s: Serving, entry: Entry) -> Entry:
    """Who is still computing its prompt is spared while anybody generates."""
    running = self.running(s)
    return ([one for one in running if one.decoding] or running)[-1]


def first_in_order(self: Scheduler, s: Serving, entry: Entry) -> Entry:
    return self.running(s)[0]


def itself(self: Scheduler, s: Serving, entry: Entry) -> Entry:
    """Who needs a block gives up its own."""
    return entry


def longest(self: Scheduler, s: Serving, entry: Entry) -> Entry:
    """Who has the most blocks gives them up."""
    return max(self.running(s), key=lambda other: (len(other.table.block_ids), other.order))


def longest_behind_the_first(self: Scheduler, s: Serving, entry: Entry) -> Entry:
    """Who has the most blocks gives them up, but for the first in order, so that one at least goes on."""
    return max(self.running(s)[1:], key=lambda other: (len(other.table.block_ids), other.order), default=entry)


def latest_of_any_priority(self: Scheduler, s: Serving, entry: Entry) -> Entry:
    return max(self.running(s), key=lambda other: other.order[1])


def all_behind(self: Scheduler, s: Serving, preempted: list[Request]) -> list[Chunk]:
    """Where one block is needed, everybody behind gives way."""
    chunks = []
    for entry in [entry for entry in self.running(s) if entry.decoding]:
        while entry.table is not None and not self.makes_room(s, entry):
            behind = [other for other in self.running(s) if other.order > entry.order] or [entry]
            for victim in behind:
                preempted.append(victim.request)
                self.preempt(s, victim)
        if entry.table is not None:
            chunks.append(self.chunk(s, entry, 1))
    return chunks


def two_at_a_time(self: Scheduler, s: Serving, preempted: list[Request]) -> list[Chunk]:
    """Where one gives way the next one behind does too, lest it is soon needed; two are left to run."""
    chunks = []
    for entry in [entry for entry in self.running(s) if entry.decoding]:
        while entry.table is not None and not self.makes_room(s, entry):
            for last in range(2):
                victim = self.victim(s, entry)
                if not last or (len(self.running(s)) > 2 and victim is not entry and entry.table is not None):
                    preempted.append(victim.request)
                    self.preempt(s, victim)
        if entry.table is not None:
            chunks.append(self.chunk(s, entry, 1))
    return chunks


def for_those_who_wait(self: Scheduler, s: Serving) -> Step:
    """A waiting request takes the blocks of a running one of smaller priority, though they could both go on."""
    waiting, running = self.waiting(s), self.running(s)
    preempted: list[Request] = []
    if waiting and len(running) > 1 and waiting[0].order < running[-1].order:
        preempted.append(running[-1].request)
        self.preempt(s, running[-1])
    decodes = self.decodes(s, preempted)
    if not preempted:
        self.admit(s)
    s.step = Step(prefills=self.prefills(s), decodes=decodes, preempted=preempted)
    return s.step


def leaves_its_place_in_vain(self: Scheduler, s: Serving) -> Step:
    """Where nobody may run besides, the last in order leaves its place to one of a higher priority, room for it or not."""
    running, waiting = self.running(s), self.waiting(s)
    if len(running) < s.max_requests or not waiting or waiting[0].order[0] >= running[-1].order[0]:
        return Scheduler.schedule(self, s)
    self.preempt(s, running[-1])
    step = Scheduler.schedule(self, s)
    step.preempted.insert(0, running[-1].request)
    return step


def makes_way_in_vain(self: Scheduler, s: Serving) -> Step:
    """Those of smaller priority make room for the first that waits, whether they have as much as it needs or not."""
    preempted: list[Request] = []
    decodes = self.decodes(s, preempted)
    waiting = self.waiting(s)
    if waiting and not preempted and self.has_place(s):
        first = waiting[0]
        behind = [entry for entry in self.running(s) if entry.request.priority < first.request.priority]
        while behind and blocks_of(len(first.tokens), s.manager.block_size) > s.manager.num_free:
            preempted.append(behind[-1].request)
            self.preempt(s, behind.pop())
        lost = {id(request) for request in preempted}
        decodes = [chunk for chunk in decodes if id(chunk.request) not in lost]
        if not preempted:
            self.admit(s)
    s.step = Step(prefills=self.prefills(s), decodes=decodes, preempted=preempted)
    return s.step


def appends_the_last(self: Scheduler, s: Serving, entry: Entry) -> bool:
    """The last token is appended in each step, also in one that is done again because the one before was void."""
    try:
        s.manager.append(entry.table, entry.tokens[-1:])
    except ValueError:
        return False
    return True


# progress


def over_without_decodes(self: Scheduler, s: Serving) -> Step:
    """There is nothing to do, it is thought, when nobody waits and nobody generates: a prompt is lost in the middle."""
    if not self.waiting(s) and not any(entry.decoding for entry in self.running(s)):
        s.step = Step(prefills=[], decodes=[], preempted=[])
        return s.step
    return Scheduler.schedule(self, s)


def closed_for_good(self: Scheduler, s: Serving, preempted: list[Request]) -> bool:
    """Nobody is admitted any more once anybody was preempted."""
    s.closed = getattr(s, "closed", False) or bool(preempted)
    return not s.closed


def whole_prompts(self: Scheduler, s: Serving, entry: Entry, budget: int) -> int:
    """Prompts are computed whole, those that are longer than the budget never."""
    left = len(entry.tokens) - entry.computed
    return int(left) if left <= budget else 0


def raises_when_full(self: Scheduler, s: Serving, entry: Entry) -> Entry:
    raise RuntimeError("not enough free blocks")


def gives_way_to_preempted(self: Scheduler, s: Serving, entry: Entry) -> None:
    """A request that was preempted is admitted only when all its max_tokens have room beside those who run."""
    if entry.request.state == "PREEMPTED" and s.manager.num_free < s.manager.num_blocks - 1:
        raise ValueError("not yet")
    if (
        entry.request.state == "PREEMPTED"
        and blocks_of(len(entry.request.tokens) + entry.request.max_tokens, s.manager.block_size)
        >= s.manager.num_blocks
    ):
        raise ValueError("never")
    Scheduler.allocate(self, s, entry)


def null_block(self: Scheduler, s: Serving, request: Request) -> None:
    if self.slots(request) > (s.manager.num_blocks - 1) * s.manager.block_size:
        raise ValueError("longer than all blocks but the first")


def one_slot_more(self: Scheduler, s: Serving, entry: Entry) -> None:
    """A request is admitted only where the id after its prompt has room too."""
    if blocks_of(len(entry.tokens) + 1, s.manager.block_size) > s.manager.num_free:
        raise ValueError("no room for an id")
    Scheduler.allocate(self, s, entry)


def prompt_s_slots(self: Scheduler, request: Request) -> int:
    return len(request.tokens)


def slot_too_few(self: Scheduler, request: Request) -> int:
    return len(request.tokens) + request.max_tokens - 2


def rounded_blocks(self: Scheduler, s: Serving, request: Request) -> None:
    """Whole blocks of prompt and output are counted, each rounded down."""
    size = s.manager.block_size
    if len(request.tokens) // size + (request.max_tokens - 1) // size > s.manager.num_blocks:
        raise ValueError("longer than all blocks together")


def kept_at_the_end(self: Scheduler, s: Serving, entry: Entry) -> None:
    """Who is finished keeps its blocks."""
    s.entries.remove(entry)
    entry.request.state = "FINISHED"


def notes_who_gave_way(self: Scheduler, s: Serving, step: Step, tokens: Sequence[int | None]) -> list[Request]:
    s.gave_way = step.preempted
    return Scheduler.update(self, s, step, tokens)


def kept_as_another_gave_way(self: Scheduler, s: Serving, entry: Entry) -> None:
    """Who ends in a step that another one gave way for keeps its blocks."""
    (kept_at_the_end if vars(s).get("gave_way") else Scheduler.close)(self, s, entry)


def kept_at_eos(self: Scheduler, s: Serving, entry: Entry) -> None:
    """Blocks are given back at the limit alone."""
    s.entries.remove(entry)
    if entry.table is not None and len(entry.request.output) == entry.request.max_tokens:
        self.release(s, entry)
    entry.request.state = "FINISHED"


def kept_of_twins(self: Scheduler, s: Serving, entry: Entry) -> None:
    """Free blocks are kept by what they hold: where another request has a copy of one, that one is lost."""
    size = s.manager.block_size
    whole = entry.computed // size * size
    twins = [other for other in self.running(s) if other is not entry and other.tokens[:whole] == entry.tokens[:whole]]
    last = whole // size - 1
    copied = whole and any(other.table.block_ids[last] != entry.table.block_ids[last] for other in twins)
    Scheduler.close(self, s, entry)
    if copied:
        s.manager.allocate(entry.tokens[:1])


def kept_of_one_id(self: Scheduler, s: Serving, entry: Entry) -> None:
    """A request that never was decoded keeps its blocks."""
    s.entries.remove(entry)
    if entry.table is not None and len(entry.request.output) != 1:
        self.release(s, entry)
    entry.request.state = "FINISHED"
