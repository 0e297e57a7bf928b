"""Judges what was observed of a scheduler: which sentences of its contract a history breaks, and at which step.

The device is the ghost of each slot: what the model last computed into it. Whatever a chunk builds on must be there. The
rest is bookkeeping of the requests: what is computed of each, who waits in which order, who runs. Nothing here presumes
one schedule: it follows what the scheduler did.
"""

from __future__ import annotations

import itertools
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, NamedTuple

import numpy as np

from inferspec.spec.block_manager import blocks_of
from inferspec.spec.contract import Arguments
from inferspec.spec.ends import DROPPED, KEPT, ended
from inferspec.spec.serving import FINISHED, PREEMPTED, RUNNING, STATES, WAITING, Memory, Slots, Work, alone, values_of


class Check(StrEnum):
    """What a complaint is about."""

    OUTPUT = "outputs are those of each request alone"
    STOP = "a request ends where it must"
    COVER = "chunks go on where the last one ended"
    TOKENS = "chunks have the request's own tokens"
    SAMPLES = "the chunk that reaches the end samples, and no other"
    GHOST = "what a chunk builds on is in its blocks"
    BLOCKS = "chunks have room in distinct blocks of the pool"
    APART = "no chunk writes where another request reads"
    BUDGET = "max_prefill_tokens"
    MOST = "max_requests"
    ONCE = "one chunk a request"
    KIND = "decodes and prefills"
    ALL = "nobody who generates is left out of a step with decodes"
    STALL = "all who generate advance in every step"
    ORDER = "admission in order"
    VICTIM = "who is preempted"
    NAMED = "who is told to be preempted"
    NEEDLESS = "preemption for want of blocks"
    IDLE = "somebody runs"
    PROGRESS = "every request finishes"
    OVER = "nothing is done for those who do not run"
    TOLD = "what update returns"
    STATE = "the states"
    FREE = "blocks come back"
    WORK = "no budget is left idle"
    CALLER = "the caller's tokens"
    RAISED = "nothing raises"
    GONE = "who is finished can be cancelled"
    HITS = "what was computed is not computed again"


SHOULD = (Check.STALL, Check.WORK, Check.GONE, Check.HITS)
MUST = tuple(check for check in Check if check not in SHOULD)


class Complaint(NamedTuple):
    """What a check has against a history: at which step, and what is wrong there."""

    check: Check
    step: int
    text: str


class Chunk(NamedTuple):
    """A chunk as it was told. blocks: by the order in which they were first seen."""

    request: int
    start: int
    samples: bool
    decode: bool
    tokens: list[int]
    blocks: list[int]

    @property
    def end(self) -> int:
        return self.start + len(self.tokens)


@dataclass
class Known:
    """A request that was added. order: the smaller goes first; ends: what becomes of an id of eos; ids: what comes out of it
    alone."""

    tokens: list[int]
    max_tokens: int
    eos: tuple[int, ...]
    order: tuple[int, int]
    ends: str = DROPPED
    state: int = WAITING
    output: list[int] = field(default_factory=list)
    next: int | None = None
    """Where its next chunk begins; None before the first one that was computed since it was admitted."""
    generating: bool = False
    blocks: list[int] = field(default_factory=list)
    ids: list[int] = field(default_factory=list)
    samples: int = 0
    """Of how many ids the last finishes it, whether it comes out or not."""
    before: int | None = None
    """What it was before a step admitted it, until that step is updated."""
    values: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        ids = alone(self.tokens, self.max_tokens)
        self.ids, self.samples = ended(ids, self.eos, self.ends), len(ended(ids, self.eos, KEPT))
        self.values = values_of([*self.tokens, *self.ids])

    @property
    def sequence(self) -> list[int]:
        return self.tokens + self.output

    @property
    def waits(self) -> bool:
        return self.state in (WAITING, PREEMPTED)

    def lose(self) -> None:
        """It has no blocks any more."""
        self.next, self.generating, self.blocks = None, False, []


Found = Iterator[tuple[Check, str]]


def complaints(a: Arguments, parts: Mapping[str, np.ndarray]) -> list[Complaint]:
    """What is wrong with a history, in the order of its steps."""
    return list(_Judge(a, parts).judged())


class _Judge:
    def __init__(self, a: Arguments, parts: Mapping[str, np.ndarray]) -> None:
        self.a, self.parts = a, parts
        self.known: dict[int, Known] = {}
        self.outputs: dict[int, list[int]] = {}
        """As they were last shown."""
        self.memory = Memory(a.block_size)
        self.found: Slots = {}
        """What the chunks of the step find in their slots."""
        self.chunks: list[Chunk] | None = None
        """Of the step that is to be computed."""
        self.open = False
        """Whether a step was scheduled and not updated: blocks of cancelled requests may be kept as long."""
        self.free = a.num_blocks
        self.arrivals = 0
        self.empty = False
        """Whether the last step was empty."""
        self.computed: dict[tuple[int, ...], set[int]] = defaultdict(set)
        """What sequences begin with, up to the end of a block, that steps computed which were updated; and the blocks."""
        self.newcomers: dict[int, int] = {}
        """Who came since the last step, and how many of its tokens those who ran then had computed in their blocks."""

    def judged(self) -> Iterator[Complaint]:
        for number, (method, given) in enumerate(self.a.steps, 1):
            for check, text in self._judged(str(number), number, method, given):
                yield Complaint(check, number, text)

    def _judged(self, name: str, number: int, method: str, given: Mapping[str, Any]) -> Found:
        if method == "finish":
            yield from self._finish(number)
            return
        if not self._has(name, "absent"):
            yield from getattr(self, f"_{method}")(name, number, **given)
        yield from self._shown(name)

    # steps

    def _add(self, name: str, number: int, **given: Any) -> Found:
        if self._has(name, "refused"):
            if self._admissible(given):
                yield Check.RAISED, "the request is refused"
            return
        self.arrivals += 1
        order = -given["priority"], self.arrivals
        tokens = list(given["tokens"])
        self.known[number] = known = Known(tokens, given["max_tokens"], given["eos"], order, self.a.ends)
        self.newcomers[number] = self._held(known, self._of_those_who_run())

    def _admissible(self, given: Mapping[str, Any]) -> bool:
        slots = len(given["tokens"]) + given["max_tokens"] - 1
        return bool(given["tokens"]) and given["max_tokens"] > 0 and slots <= self.a.num_blocks * self.a.block_size

    def _add_mended(self, name: str, number: int, request: int, **mended: Any) -> Found:
        yield from self._add(name, number, **{**self.a.steps[request - 1][1], **mended})

    def _add_again(self, name: str, number: int, request: int) -> Found:
        yield from ()

    def _cancel_stranger(self, name: str, number: int) -> Found:
        yield from ()

    def _overwrite(self, name: str, number: int, request: int) -> Found:
        yield from ()

    def _pass_by(self, name: str, number: int, times: int) -> Found:
        self.arrivals += times
        if self._has(name, "refused"):
            yield Check.RAISED, "a request that comes and goes is refused"

    def _meanwhile(self, name: str, number: int, **request: Any) -> Found:
        yield from ()

    def _update_wrongly(self, name: str, number: int, how: str, request: int | None = None) -> Found:
        yield from ()

    def _cancel(self, name: str, number: int, request: int) -> Found:
        known = self.known.get(request)
        if self._has(name, "refused"):
            if known is not None and known.state == FINISHED:
                yield Check.GONE, "a request that is finished cannot be cancelled"
            else:
                yield Check.RAISED, "a request cannot be cancelled"
        if known is not None:
            known.state = FINISHED
            known.lose()

    def _fail(self, name: str, number: int) -> Found:
        self.memory.spoil(_work(self.chunks or ()))
        self.chunks = None
        yield from ()

    def _step(self, name: str, number: int) -> Found:
        yield from self._schedule(name, number)
        if self._has(name, "chunks"):
            yield from self._update(name, number)

    def _finish(self, number: int) -> Found:
        steps = int(self._read(str(number), "steps"))
        for k in range(1, steps + 1):
            for check, text in self._judged(f"{number}.{k}", number, "step", {}):
                yield check, f"in its step {k} {text}"
        if left := [n for n, known in self.known.items() if known.state != FINISHED]:
            yield Check.PROGRESS, f"after {steps} steps request {left[0]} is not finished, and nothing comes any more"

    # schedule

    def _schedule(self, name: str, number: int) -> Found:
        self.chunks = None
        if not self._has(name, "chunks"):
            if any(known.state != FINISHED for known in self.known.values()):
                yield Check.RAISED, "schedule raises"
            return
        self.open = True
        self.chunks = chunks = _chunks(self._list(name, "chunks"))
        preempted = self._list(name, "preempted") if self._has(name, "preempted") else []
        before = {n: known.state for n, known in self.known.items()}
        yield from self._judge_idle(chunks, preempted)
        yield from self._judge_named(preempted)
        yield from self._judge_preempted(chunks, preempted)
        yield from self._judge_hits(chunks, preempted)
        self.newcomers = {}
        for request in preempted:
            if request in self.known:
                self.known[request].lose()
        yield from self._judge_stalls(chunks, preempted, before)
        # Who was admitted for a void step may have others by now.
        held = {n: k.blocks for n, k in self.known.items() if k.state == RUNNING and k.before is None}
        held |= {chunk.request: self._kept(chunk) for chunk in chunks}
        self.found = self._found(chunks)
        for chunk in chunks:
            known = self.known.get(chunk.request)
            if known is None or before[chunk.request] == FINISHED:
                yield Check.OVER, f"there is a chunk of request {chunk.request}, which is finished or not known"
            else:
                yield from self._judge_chunk(chunk, known, held)
        yield from self._judge_step(chunks)
        yield from self._judge_states(name, chunks, preempted, before)
        yield from self._judge_lost(name, self._without_a_place(preempted, before))
        yield from self._judge_admission(preempted, before)
        yield from self._judge_work(name, chunks, preempted)

    def _judge_idle(self, chunks: Sequence[Chunk], preempted: Sequence[int]) -> Found:
        """Somebody must have work, unless it takes a step to make room for it."""
        unfinished = [n for n, known in self.known.items() if known.state != FINISHED]
        empty = bool(unfinished) and not chunks
        if empty and not any(self.known[n].state == RUNNING for n in unfinished):
            yield Check.IDLE, f"the step is empty, nobody runs, and request {unfinished[0]} waits"
        elif empty and (self.empty or not preempted):
            yield Check.IDLE, f"the step is empty, and request {unfinished[0]} is not finished"
        self.empty = empty

    def _judge_preempted(self, chunks: Sequence[Chunk], preempted: Sequence[int]) -> Found:
        served = [self.known[c.request] for c in chunks if c.request in self.known]
        taking = [known for known in served if known.waits or self._wanted(known)]
        running = [known for n, known in self.known.items() if known.state == RUNNING and n not in preempted]
        for request in preempted:
            victim = self.known.get(request)
            if victim is None or victim.state == FINISHED:
                yield Check.OVER, f"request {request} is preempted, which is finished or not known"
            elif [known for known in running if known.order > victim.order] and not [
                known for known in taking if known.order < victim.order
            ]:
                yield (
                    Check.VICTIM,
                    f"request {request} is preempted, nobody before it takes a block, and one behind it runs",
                )
        yield from self._judge_need(served, preempted)

    def _judge_named(self, preempted: Sequence[int]) -> Found:
        """Nobody is named twice, nor who had no blocks to lose: who waits, and could not have been admitted in this step
        before, whatever the others who are named gave up for it."""
        if twice := [request for request, count in Counter(preempted).items() if count > 1]:
            yield Check.NAMED, f"request {twice[0]} is told to be preempted {preempted.count(twice[0])} times"
        running = {n: known for n, known in self.known.items() if known.state == RUNNING}
        stay = [known for n, known in running.items() if n not in preempted]
        given = {block for n, known in running.items() if n in preempted for block in known.blocks}
        for request in preempted:
            known = self.known.get(request)
            if known is None or not known.waits:
                continue
            needed = self._unshared(known, list(running.values()))
            if len(stay) >= self.a.max_requests or needed > self._unused() + len(given):
                yield Check.NAMED, f"request {request} is told to be preempted, and it waited, with no room for it"

    def _unshared(self, known: Known, running: Sequence[Known]) -> int:
        """How many blocks a request needs at least, besides those that others may have in common with it."""
        common = [_alike(known.sequence, one.sequence) for one in running]
        return blocks_of(len(known.sequence), self.a.block_size) - max(common, default=0) // self.a.block_size

    def _judge_hits(self, chunks: Sequence[Chunk], preempted: Sequence[int]) -> Found:
        """Who begins does so behind what is cached of it: where nobody runs, so that nobody has taken blocks for what comes
        now, and where it came since the last step, of what those have in their blocks who run before it and after."""
        if not self.a.prefix_caching:
            return
        idle = not any(known.state == RUNNING for known in self.known.values())
        blocks = self._of_those_who_run(preempted)
        for chunk in chunks:
            if (known := self.known.get(chunk.request)) is not None:
                in_use = min(self.newcomers.get(chunk.request, 0), self._held(known, blocks))
                there = self._held(known) if idle else in_use
                if chunk.start < there:
                    yield (
                        Check.HITS,
                        f"the chunk of request {chunk.request} begins at {chunk.start}, and {there} tokens were computed",
                    )

    def _of_those_who_run(self, but: Sequence[int] = ()) -> set[int]:
        """Blocks of those who run, but for some, and whom no step admitted that may be void."""
        running = [k for n, k in self.known.items() if k.state == RUNNING and k.before is None and n not in but]
        return {block for known in running for block in known.blocks}

    def _held(self, known: Known, among: set[int] | None = None) -> int:
        """How many tokens of a request, in whole blocks short of its last one, were computed and lie where they were put.

        among: these blocks alone, and what is in no other: of two that are alike the cache may know either.
        """
        ends = range(self.a.block_size, len(known.sequence), self.a.block_size)
        return max(itertools.takewhile(lambda end: self._lies_where_it_was_put(known, end, among), ends), default=0)

    def _lies_where_it_was_put(self, known: Known, end: int, among: set[int] | None) -> bool:
        """Whether a block that was computed up to this end of it holds what it did."""
        blocks = self.computed.get(tuple(known.sequence[:end]), set())
        if among is not None and (len(blocks) > 1 or not blocks <= among):
            return False
        return any(self._lies_in(block, known, end) for block in blocks)

    def _lies_in(self, block: int, known: Known, end: int) -> bool:
        size, slots = self.a.block_size, self.memory.slots
        return [slots.get((block, k)) for k in range(size)] == known.values[end - size : end]

    def _judge_need(self, served: Sequence[Known], preempted: Sequence[int]) -> Found:
        """Blocks must have been short: of those who ran, whatever was admitted and preempted in one step."""
        wanted = [self._wanted(known) for known in self.known.values() if known.state == RUNNING]
        victims = [n for n in preempted if n in self.known and self.known[n].state == RUNNING]
        if victims and not any(known.waits for known in served) and sum(wanted) <= self._unused():
            yield Check.NEEDLESS, f"request {victims[0]} is preempted while {self._unused()} blocks are free"

    def _wanted(self, known: Known) -> int:
        """How many blocks more a running request may need in a step."""
        return max(0, blocks_of(len(known.sequence), self.a.block_size) - len(known.blocks))

    def _unused(self) -> int:
        used = {block for known in self.known.values() if known.state == RUNNING for block in known.blocks}
        return min(self.free, self.a.num_blocks - len(used))

    def _judge_stalls(self, chunks: Sequence[Chunk], preempted: Sequence[int], before: Mapping[int, int]) -> Found:
        served = {chunk.request for chunk in chunks}
        left = [
            n
            for n, known in self.known.items()
            if before[n] == RUNNING and known.generating and n not in served and n not in preempted
        ]
        if left:
            yield Check.STALL, f"request {left[0]} generates, and has no token in this step"
        if left and any(chunk.decode for chunk in chunks):
            yield Check.ALL, f"request {left[0]} generates, and others are decoded without it"

    def _judge_chunk(self, chunk: Chunk, known: Known, held: Mapping[int, Sequence[int]]) -> Found:
        """A chunk by itself. A request that was admitted for it may begin anywhere behind what its blocks hold.

        held: the blocks of all requests that run.
        """
        yield from self._judge_tokens(chunk, known)
        yield from self._judge_kind(chunk, known)
        yield from self._judge_blocks(chunk, known, held)
        known.blocks = chunk.blocks

    def _judge_tokens(self, chunk: Chunk, known: Known) -> Found:
        """A chunk goes on where the one before ended, with the tokens of its request."""
        about, sequence = f"the chunk of request {chunk.request}", known.sequence
        if not chunk.tokens:
            yield Check.COVER, f"{about} is empty"
        if known.next is not None and chunk.start != known.next:
            yield Check.COVER, f"{about} begins at {chunk.start}, and the one before ended at {known.next}"
        elif not 0 <= chunk.start < len(sequence) or chunk.end > len(sequence):
            yield Check.COVER, f"{about} is {chunk.start} … {chunk.end} of {len(sequence)} tokens"
        if chunk.tokens != sequence[max(chunk.start, 0) : chunk.end]:
            yield Check.TOKENS, f"{about} has {chunk.tokens} at {chunk.start} of {sequence}"
        if chunk.samples != (chunk.end >= len(sequence)):
            yield Check.SAMPLES, f"{about} ends at {chunk.end} of {len(sequence)}, and samples is {chunk.samples}"

    def _judge_kind(self, chunk: Chunk, known: Known) -> Found:
        """A decode is of one token, of who generates. Who was preempted and is hit but for its last id may be said to."""
        early = chunk.decode and not known.generating and not known.output
        single = len(chunk.tokens) == 1 and chunk.samples
        if early or (chunk.decode and not single) or (known.generating and not chunk.decode):
            kind = "decode" if chunk.decode else "prefill"
            yield Check.KIND, f"the chunk of request {chunk.request}, of {len(chunk.tokens)} tokens, is a {kind}"

    def _judge_blocks(self, chunk: Chunk, known: Known, held: Mapping[int, Sequence[int]]) -> Found:
        """The blocks of a chunk hold what stands before it, and no other has those that it writes into."""
        about, ids, size = f"the chunk of request {chunk.request}", chunk.blocks, self.a.block_size
        outside = any(not 0 <= i < self.a.num_blocks for i in ids)
        if len(ids) < blocks_of(chunk.end, size) or len(set(ids)) < len(ids) or outside:
            yield Check.BLOCKS, f"{about} ends at {chunk.end}, and its blocks are {ids}"
        elif lost := [p for p in range(chunk.start) if not self._holds(known, ids, p)]:
            yield Check.GHOST, f"{about} begins at {chunk.start}, and position {lost[0]} is not in its blocks"
        written = set(ids[max(chunk.start, 0) // size : blocks_of(chunk.end, size)])
        for n, blocks in held.items():
            shared = [b for b in blocks if n != chunk.request and b in written and not self._may_have_left(n, b)]
            if shared:
                yield Check.APART, f"{about} writes into block {min(shared)}, which another running request has"
                return

    def _may_have_left(self, request: int, block: int) -> bool:
        """Whether a copy of a block lies elsewhere, that its request may have been given since its last chunk. If it was not, its
        next chunk finds what is written over."""
        known = self.known.get(request)
        if known is None or known.next is None or any(chunk.request == request for chunk in self.chunks or ()):
            return False
        end = (known.blocks.index(block) + 1) * self.a.block_size
        copies = self.computed.get(tuple(known.sequence[:end]), set()) - {block}
        return end <= known.next and any(self._lies_in(copy, known, end) for copy in copies)

    def _kept(self, chunk: Chunk) -> list[int]:
        """The blocks of a chunk that no other may write into: where chunks are computed together, those that it only
        builds on may be another's of this step, and `_holds` sees what they hold then."""
        return chunk.blocks[max(chunk.start, 0) // self.a.block_size :] if self.a.together else chunk.blocks

    def _found(self, chunks: Sequence[Chunk]) -> Slots:
        """What stands in the slots when the chunks of a step read them."""
        if not self.a.together:
            return self.memory.slots
        return self.memory.slots | self.memory.written(_work(chunks), together=True)[0]

    def _holds(self, known: Known, blocks: Sequence[int], position: int) -> bool:
        value = self.found.get(self.memory.place(blocks, position))
        return position < len(known.values) and value == known.values[position]

    def _judge_step(self, chunks: Sequence[Chunk]) -> Found:
        """All chunks together."""
        prompts = sum(len(chunk.tokens) for chunk in chunks if not chunk.decode)
        if prompts > self.a.max_prefill_tokens:
            yield (
                Check.BUDGET,
                f"the prefills have {prompts} tokens, and max_prefill_tokens is {self.a.max_prefill_tokens}",
            )
        counts = Counter(chunk.request for chunk in chunks)
        if twice := [request for request, count in counts.items() if count > 1]:
            yield Check.ONCE, f"request {twice[0]} has {counts[twice[0]]} chunks"
        if len(counts) > self.a.max_requests:
            yield Check.MOST, f"{len(counts)} requests have chunks, and max_requests is {self.a.max_requests}"
        if shared := _in_two(chunks, self.a.block_size):
            yield Check.APART, f"two chunks write into block {shared[0]}"

    def _judge_states(
        self, name: str, chunks: Sequence[Chunk], preempted: Sequence[int], before: Mapping[int, int]
    ) -> Found:
        """States between schedule and update; the known ones follow them."""
        served = {chunk.request for chunk in chunks}
        for (number, known), state in zip(self.known.items(), self._list(name, "between"), strict=True):
            expected = before[number]
            if number in served and number in preempted and state != RUNNING:
                yield Check.OVER, f"request {number} is preempted, and has a chunk in the same step"
            if number in served and before[number] != FINISHED:
                expected = RUNNING
            elif number in preempted:
                expected = PREEMPTED
            admitted = expected in (WAITING, PREEMPTED) and state == RUNNING
            if expected == RUNNING and number not in served and state == known.before:
                # The step that admitted it was void, and that it was admitted too.
                expected = state
                known.lose()
            if state != expected and not admitted:
                yield Check.STATE, f"request {number} is {_named(state)} after schedule, not {STATES[expected]}"
            known.state = RUNNING if admitted else expected
            if before[number] != RUNNING and known.state == RUNNING:
                known.before = before[number]
        running = sum(known.state == RUNNING for known in self.known.values())
        if running > self.a.max_requests:
            yield Check.MOST, f"{running} requests run, and max_requests is {self.a.max_requests}"

    def _without_a_place(self, preempted: Sequence[int], before: Mapping[int, int]) -> list[int]:
        """Those who were preempted, but for who gave the last place to one of a higher priority that was admitted."""
        running = [(n, known) for n, known in self.known.items() if known.state == RUNNING]
        if len(running) < self.a.max_requests:
            return list(preempted)
        came = [known.order[0] for n, known in running if before[n] != RUNNING]
        behind = [n for n in preempted if n in self.known and any(own < self.known[n].order[0] for own in came)]
        # A place for each, and no more.
        return [n for n in preempted if n not in behind[: len(came)]]

    def _judge_lost(self, name: str, preempted: Sequence[int]) -> Found:
        """Not so much was given up that even the longest victim could have gone on, and a block more for each that runs."""
        running = [known for known in self.known.values() if known.state == RUNNING]
        free = self.a.num_blocks - len({block for known in running for block in known.blocks})
        if not self._has(name, "finished"):
            free = min(free, int(self._read(name, "free")))
        lengths = [len(self.known[n].sequence) for n in preempted if n in self.known and self.known[n].waits]
        most = blocks_of(max(lengths, default=0), self.a.block_size)
        if most and most + len(running) <= free:
            yield Check.NEEDLESS, f"a request that takes {most} blocks is preempted, and {free} stay free"

    def _judge_admission(self, preempted: Sequence[int], before: Mapping[int, int]) -> Found:
        """Whoever was admitted had nobody before it who still waits."""
        admitted = [n for n, k in self.known.items() if k.state == RUNNING and (before[n] != RUNNING or n in preempted)]
        left = sorted((k.order, n) for n, k in self.known.items() if k.waits)
        for number in admitted:
            if left and left[0][0] < self.known[number].order:
                yield Check.ORDER, f"request {number} is admitted, and request {left[0][1]}, which is before it, waits"

    def _judge_work(self, name: str, chunks: Sequence[Chunk], preempted: Sequence[int]) -> Found:
        """Budget that is left while there is what it could be used for."""
        left = self.a.max_prefill_tokens - sum(len(chunk.tokens) for chunk in chunks if not chunk.decode)
        if left <= 0 or preempted:
            return
        ends = {chunk.request: chunk.end for chunk in chunks}
        for number, known in self.known.items():
            if known.state == RUNNING and not known.generating and ends.get(number, 0) < len(known.sequence):
                yield Check.WORK, f"{left} tokens more could be computed of the prompt of request {number}"
                return
        waiting = sorted((known.order, n) for n, known in self.known.items() if known.waits)
        running = sum(known.state == RUNNING for known in self.known.values())
        # What the step's own update gave back was not free when it was scheduled.
        if waiting and running < self.a.max_requests and not self._has(name, "finished"):
            head = waiting[0][1]
            needed = blocks_of(len(self.known[head].sequence), self.a.block_size) - self._hit_in_use(self.known[head])
            if needed <= min(self._unused(), int(self._read(name, "free"))):
                yield Check.WORK, f"{left} tokens and {needed} blocks are left for request {head}, and it waits"

    def _hit_in_use(self, known: Known) -> int:
        """How many blocks who waits is sure to hit that are in use: those that two who run have, a third can have too."""
        running = [one for one in self.known.values() if one.state == RUNNING and one.before is None]
        most = (len(known.sequence) - 1) // self.a.block_size if self.a.prefix_caching else 0
        common = (min(_alike(known.sequence, one.sequence) // self.a.block_size, most) for one in running)
        places = Counter(
            place for one, n in zip(running, common, strict=True) for place in enumerate(one.blocks[:n], 1)
        )
        return max((count for (count, _), owners in places.items() if owners > 1), default=0)

    # update

    def _update(self, name: str, number: int) -> Found:
        self.open = False
        chunks, self.chunks = self.chunks or [], None
        served = {chunk.request for chunk in chunks}
        for number, one in self.known.items():
            if one.before is not None and number not in served:
                one.blocks = []
            one.before = None
        self.memory.compute(_work(chunks), self.a.together)
        if self._has(name, "refused"):
            yield Check.RAISED, "update raises"
            return
        finished = []
        for chunk in chunks:
            known = self.known.get(chunk.request)
            if known is None or known.state == FINISHED:
                continue
            known.next = chunk.end
            size = self.a.block_size
            ends = range((max(chunk.start, 0) // size + 1) * size, chunk.end + 1, size)
            for end in ends:
                self.computed[tuple(known.sequence[:end])].update(chunk.blocks[end // size - 1 : end // size])
            if not chunk.samples:
                continue
            known.generating = True
            count = len(known.output) + 1
            if count == known.samples:
                known.state = FINISHED
                finished.append(chunk.request)
            known.output = known.ids[:count]
        told = self._list(name, "finished") if self._has(name, "finished") else []
        if told != sorted(finished):
            yield Check.TOLD, f"update returns {told} as finished, and it finishes {sorted(finished)}"
        for request in finished:
            self.known[request].lose()

    # what any step shows

    def _shown(self, name: str) -> Found:
        states = self._list(name, "states")
        for (number, known), state in zip(self.known.items(), states, strict=True):
            if self._has(name, f"output {number}"):
                self.outputs[number] = self._list(name, f"output {number}")
            if (shown := self.outputs.get(number, [])) != known.output:
                yield self._judge_output(number, known, shown)
            if state != known.state:
                check = Check.STOP if FINISHED in (state, known.state) else Check.STATE
                yield check, f"request {number} is {_named(state)}, not {STATES[known.state]}"
        if self._has(name, "changed"):
            yield Check.CALLER, f"the tokens of request {self._list(name, 'changed')[0]} are not what they were"
        self.free = int(self._read(name, "free"))
        if not self.open:
            yield from self._judge_free()

    def _judge_output(self, number: int, known: Known, shown: list[int]) -> tuple[Check, str]:
        both = min(len(shown), len(known.output))
        at_the_end = known.state == FINISHED and shown[:both] == known.output[:both]
        told = f"the output of request {number} is {shown}, and {known.output} is right"
        return Check.STOP if at_the_end else Check.OUTPUT, told

    def _judge_free(self) -> Found:
        """Only running requests have blocks, and no more than they can need to their end."""
        size = self.a.block_size
        most = sum(blocks_of(len(k.tokens) + k.max_tokens, size) for k in self.known.values() if k.state == RUNNING)
        if self.free < self.a.num_blocks - most:
            yield (
                Check.FREE,
                f"{self.free} of {self.a.num_blocks} blocks are free, and those who run need {most} at most",
            )
        elif self.free > self.a.num_blocks:
            yield Check.FREE, f"{self.free} of {self.a.num_blocks} blocks are free"

    # reading

    def _list(self, name: str, part: str) -> list[int]:
        return [int(x) for x in self._read(name, part)]

    def _read(self, name: str, part: str) -> Any:
        return self.parts[f"{name} {part}"]

    def _has(self, name: str, part: str) -> bool:
        return f"{name} {part}" in self.parts


def _chunks(told: Sequence[int]) -> list[Chunk]:
    chunks, at = [], 0
    while at < len(told):
        request, start, samples, decode, count = told[at : at + 5]
        tokens = list(told[at + 5 : at + 5 + count])
        at += 5 + count
        blocks = list(told[at + 1 : at + 1 + told[at]])
        at += 1 + told[at]
        chunks.append(Chunk(request, start, bool(samples), bool(decode), tokens, blocks))
    return chunks


def _work(chunks: Sequence[Chunk]) -> Work:
    return [(chunk.blocks, chunk.start, chunk.tokens) for chunk in chunks]


def _alike(one: Sequence[int], other: Sequence[int]) -> int:
    """How many first numbers two lists have in common."""
    unlike = (i for i, pair in enumerate(zip(one, other, strict=False)) if pair[0] != pair[1])
    return next(unlike, min(len(one), len(other)))


def _in_two(chunks: Sequence[Chunk], size: int) -> list[int]:
    """Blocks that two chunks write into."""
    counts = Counter(b for c in chunks for b in set(c.blocks[max(c.start, 0) // size : blocks_of(c.end, size)]))
    return [block for block, count in counts.items() if count > 1]


def _named(state: int) -> str:
    return STATES[state] if 0 <= state < len(STATES) else "in no state of the contract"
