"""Prefill first: a step computes prompts as long as there are any, and only then a token of each running sequence."""

from __future__ import annotations

import heapq
from collections.abc import Sequence as Ids
from dataclasses import dataclass
from enum import Enum
from typing import Any

from inferspec.conformance.subjects.nano_vllm.block_manager import BlockManager, BlockTable


class SequenceStatus(Enum):
    """Where a sequence is in its life."""

    WAITING = "waiting"
    RUNNING = "running"
    PREEMPTED = "preempted"
    FINISHED = "finished"


class Sequence:
    """A request on its way. num_computed: how many of its tokens are in its blocks; prefilling: no id has come since it
    was last admitted."""

    def __init__(self, request: Any, arrival: int) -> None:
        self.request = request
        self.token_ids = list(request.tokens)
        self.priority_key = (-request.priority, arrival)
        self.block_table: BlockTable | None = None
        self.num_computed = 0
        self.prefilling = True
        self.status = SequenceStatus.WAITING

    @property
    def status(self) -> SequenceStatus:
        return SequenceStatus(self.request.state)

    @status.setter
    def status(self, status: SequenceStatus) -> None:
        self.request.state = status

    def __lt__(self, other: Sequence) -> bool:
        """Whether it goes first."""
        return self.priority_key < other.priority_key

    def reset_for_recompute(self) -> None:
        """It has no block any more; what it generated is computed again as if it were a part of its prompt."""
        self.block_table, self.num_computed, self.prefilling = None, 0, True
        self.status = SequenceStatus.PREEMPTED


@dataclass(frozen=True, eq=False)
class Scheduled:
    """Tokens of a sequence that a step computes, from position `start` on."""

    request: Any
    start: int
    tokens: tuple[int, ...]
    block_ids: tuple[int, ...]
    samples: bool


@dataclass(frozen=True, eq=False)
class SchedulerOutputs:
    """What a step computes, and who lost its blocks for it."""

    prefills: tuple[Scheduled, ...]
    decodes: tuple[Scheduled, ...]
    preempted: tuple[Any, ...]


class Scheduler:
    """Takes waiting sequences by priority, and preempts one of a lower priority for them where blocks are short."""

    def __init__(self, block_manager: BlockManager, max_requests: int, max_prefill_tokens: int) -> None:
        if max_requests < 1 or max_prefill_tokens < 1:
            raise ValueError(
                f"max_requests is {max_requests} and max_prefill_tokens {max_prefill_tokens}; neither may be below 1"
            )
        self.block_manager = block_manager
        self.max_requests, self.max_prefill_tokens = max_requests, max_prefill_tokens
        self.sequences: dict[int, Sequence] = {}
        """All that are not finished, by the identity of their request."""
        self.waiting: list[Sequence] = []
        """A heap; sequences that were cancelled lie in it until they are the first."""
        self.running: list[Sequence] = []
        self.outputs: SchedulerOutputs | None = None
        self.arrivals = 0

    def add(self, request: Any) -> None:
        """A request waits. One that all blocks together would not hold is refused: it would wait for ever."""
        if request.state is not None or id(request) in self.sequences:
            raise ValueError("the request was added before")
        if not len(request.tokens) or request.max_tokens < 1:
            raise ValueError(
                f"{len(request.tokens)} tokens and max_tokens {request.max_tokens}; neither may be below 1"
            )
        self.check_fits(request)
        sequence = self.sequences[id(request)] = Sequence(request, self.arrivals)
        self.arrivals += 1
        heapq.heappush(self.waiting, sequence)

    def cancel(self, request: Any) -> None:
        """A request ends as it is."""
        sequence = self.sequences.get(id(request))
        if sequence is not None:
            self.finish(sequence)
        elif request.state is None:
            raise ValueError("the request was never added")

    def schedule(self) -> SchedulerOutputs:
        """What the next step computes. What an earlier one, never updated, should have computed is scheduled again."""
        preempted: list[Sequence] = []
        self.admit(preempted)
        prefills = self.prefills()
        decodes = [] if prefills else self.decodes(preempted)
        lost = tuple(sequence.request for sequence in preempted)
        self.outputs = SchedulerOutputs(tuple(prefills), tuple(decodes), lost)
        return self.outputs

    def update(self, outputs: SchedulerOutputs, tokens: Ids[int | None]) -> list[Any]:
        """What came of the step: an id for each of its chunks that samples. Returns the requests that are finished."""
        scheduled = outputs.prefills + outputs.decodes
        if outputs is not self.outputs or len(tokens) != len(scheduled):
            raise ValueError(f"{len(tokens)} tokens of a step with {len(scheduled)} chunks, or not of the last step")
        if any(one.samples == (token is None) for one, token in zip(scheduled, tokens, strict=True)):
            raise ValueError("an id is missing where a chunk samples, or given where it does not")
        self.outputs, finished = None, []
        for one, token in zip(scheduled, tokens, strict=True):
            sequence = self.sequences.get(id(one.request))
            if sequence is not None and self.advance(sequence, one, token):
                finished.append(one.request)
        return finished

    def check_fits(self, request: Any) -> None:
        slots = self.block_manager.num_blocks * self.block_manager.block_size
        if len(request.tokens) + request.max_tokens - 1 > slots:
            raise ValueError(f"{len(request.tokens)} and {request.max_tokens} tokens; the blocks have {slots} slots")

    def admit(self, preempted: list[Sequence]) -> None:
        """Waiting sequences run, the first in order first, while there are blocks and something is left of the budget."""
        while (sequence := self.next_waiting()) and sequence not in preempted:
            if len(self.running) == self.max_requests or self.num_pending() >= self.max_prefill_tokens:
                return
            if not self.can_allocate(sequence):
                behind = self.preemptible(sequence)
                if not behind or not self.suffices(behind, sequence):
                    return
                self.preempt(max(behind), preempted)
                continue
            sequence.status = SequenceStatus.RUNNING
            self.running.append(heapq.heappop(self.waiting))

    def preemptible(self, sequence: Sequence) -> list[Sequence]:
        """Those that have to make room for a waiting sequence."""
        return [other for other in self.running if other.request.priority < sequence.request.priority]

    def suffices(self, behind: list[Sequence], sequence: Sequence) -> bool:
        """Whether a waiting sequence has room when all of those have gone; what it might share is not counted."""
        size = self.block_manager.block_size
        staying = {block for other in self.running if other not in behind for block in _blocks(other)}
        leaving = {block for other in behind for block in _blocks(other)} - staying
        return self.block_manager.num_free + len(leaving) >= -(-len(sequence.token_ids) // size)

    def next_waiting(self) -> Sequence | None:
        while self.waiting and self.waiting[0].status is SequenceStatus.FINISHED:
            heapq.heappop(self.waiting)
        return self.waiting[0] if self.waiting else None

    def num_pending(self) -> int:
        """How many tokens of running sequences are to be computed before they generate."""
        return sum(len(one.token_ids) - one.num_computed for one in self.running if one.prefilling)

    def can_allocate(self, sequence: Sequence) -> bool:
        """Allocates blocks for all tokens of a sequence, if there are enough."""
        try:
            sequence.block_table = self.block_manager.allocate(sequence.token_ids)
        except ValueError:  # as any block manager says it
            return False
        sequence.num_computed = sequence.block_table.num_cached_tokens
        return True

    def prefills(self) -> list[Scheduled]:
        scheduled, budget = [], self.max_prefill_tokens
        for sequence in sorted(self.running):
            left = len(sequence.token_ids) - sequence.num_computed
            if sequence.prefilling and budget:
                scheduled.append(self.chunk(sequence, min(left, budget)))
                budget -= len(scheduled[-1].tokens)
        return scheduled

    def decodes(self, preempted: list[Sequence]) -> list[Scheduled]:
        """A token of each; who is last gives its blocks to those before it."""
        scheduled = []
        for sequence in sorted(self.running):
            while sequence.block_table and not self.can_append(sequence, sequence.block_table):
                self.preempt(max(self.running), preempted)
            if sequence.block_table:
                scheduled.append(self.chunk(sequence, 1))
        return scheduled

    def can_append(self, sequence: Sequence, table: BlockTable) -> bool:
        """Appends the newest token of a sequence, if there is room."""
        try:
            self.block_manager.append(table, sequence.token_ids[table.num_tokens :])
        except ValueError:  # as any block manager says it
            return False
        return True

    def chunk(self, sequence: Sequence, num_tokens: int) -> Scheduled:
        start, end = sequence.num_computed, sequence.num_computed + num_tokens
        assert sequence.block_table
        return Scheduled(
            sequence.request,
            start,
            tuple(sequence.token_ids[start:end]),
            tuple(sequence.block_table.block_ids),
            end == len(sequence.token_ids),
        )

    def preempt(self, sequence: Sequence, preempted: list[Sequence]) -> None:
        """A running sequence gives its blocks back and waits, in its old place."""
        self.release(sequence)
        sequence.reset_for_recompute()
        heapq.heappush(self.waiting, sequence)
        preempted.append(sequence)

    def advance(self, sequence: Sequence, one: Scheduled, token: int | None) -> bool:
        """A chunk is computed, and an id may have come of it; whether the sequence is finished."""
        assert sequence.block_table
        sequence.num_computed = one.start + len(one.tokens)
        self.block_manager.mark_computed(sequence.block_table, sequence.num_computed)
        if token is None:
            return False
        sequence.prefilling = False
        sequence.token_ids.append(token)
        sequence.request.output.append(token)
        done = token in sequence.request.eos or len(sequence.request.output) >= sequence.request.max_tokens
        if done:
            self.finish(sequence)
        return done

    def finish(self, sequence: Sequence) -> None:
        if sequence in self.running:
            self.release(sequence)
        sequence.status = SequenceStatus.FINISHED
        del self.sequences[id(sequence.request)]

    def release(self, sequence: Sequence) -> None:
        self.running.remove(sequence)
        if sequence.block_table:
            self.block_manager.free(sequence.block_table)


def _blocks(sequence: Sequence) -> list[int]:
    return list(sequence.block_table.block_ids) if sequence.block_table else []
