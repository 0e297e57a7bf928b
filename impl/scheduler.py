"""Which requests a serving engine works on in each step: continuous batching, chunked prefill, preemption.

A request waits until there are blocks for all its tokens; those before it in order go first. It computes its prompt in
chunks, so many tokens a step as the budget has left, and then a token a step. When a running request needs a block and
none is free, the running request that is last in order gives its blocks back and later computes its prompt and what it
had generated again. Order is priority (the larger first), then arrival.

The scheduler knows no model: `schedule` says what to compute and where to, `update` takes the ids that came of it.

Sources: the nano-vLLM post, parts 2, 3 and 5; Yu et al. 2022 (Orca); Agrawal et al. 2023 (Sarathi); Kwon et al. 2023,
section 4.5 (recomputation).
"""

from __future__ import annotations

import bisect
import heapq
import itertools
import operator
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Protocol

from inferspec.impl.arguments import integer, whole

PILE = 64
"""Cancelled requests that may lie among the waiting ones, besides as many as wait."""


class State(Enum):
    """Where a request is. PREEMPTED waits too, with the output it has."""

    WAITING = "waiting"
    RUNNING = "running"
    PREEMPTED = "preempted"
    FINISHED = "finished"


@dataclass(eq=False)
class Request:
    """What to generate; any object with these attributes will do.

    tokens: the prompt's ids; max_tokens: how many to generate at most; priority: the larger goes first; eos: ids that
    end the request and do not come out. The scheduler sets `state`, and `output`, the ids generated so far.
    """

    tokens: Sequence[int]
    max_tokens: int
    priority: int = 0
    eos: Collection[int] = ()
    state: State | None = None
    output: list[int] = field(default_factory=list)


@dataclass(eq=False, slots=True)
class Chunk:
    """Tokens of one request to compute in a step: those at the positions start, start + 1, …

    block_ids: the request's blocks in order, those of the tokens before `start` too; position p belongs into
    block_ids[p // block_size], slot p % block_size. samples: the chunk reaches the end of what the request has, so that
    an id follows. lookahead: how many positions past the chunk the blocks have room for besides, for speculation.
    """

    request: Any
    start: int
    tokens: tuple[int, ...]
    block_ids: tuple[int, ...]
    samples: bool
    lookahead: int = 0


@dataclass(frozen=True, eq=False)
class Step:
    """One forward pass: chunks of prompts, single tokens of requests that generate, and who lost their blocks before it."""

    prefills: tuple[Chunk, ...]
    decodes: tuple[Chunk, ...]
    preempted: tuple[Any, ...]

    @property
    def chunks(self) -> tuple[Chunk, ...]:
        """All that is to be computed: the prefills, then the decodes."""
        return self.prefills + self.decodes


class Blocks(Protocol):
    """What the scheduler needs of a block manager; `reserve` only with a lookahead."""

    num_blocks: int
    block_size: int

    def allocate(self, tokens: list[int]) -> Any: ...
    def append(self, table: Any, tokens: list[int]) -> None: ...
    def reserve(self, table: Any, n: int) -> None: ...
    def mark_computed(self, table: Any, n: int) -> None: ...
    def free(self, table: Any) -> None: ...


class _Entry:
    """A request that is not finished.

    tokens: prompt and output; computed: how many of them are in its blocks; decoding: it has generated since it was
    admitted, so that a step of it is one token; block_ids: the table's, as many as were needed so far.
    """

    __slots__ = ("block_ids", "computed", "decoding", "key", "request", "table", "tokens")

    def __init__(self, request: Any, tokens: list[int], key: tuple[int, int]) -> None:
        self.request, self.tokens, self.key = request, tokens, key
        self.table: Any = None
        self.block_ids: tuple[int, ...] = ()
        self.computed = 0
        self.decoding = False


class Scheduler:
    """At most max_requests run at a time, and at most max_prefill_tokens of their prompts are computed in a step.

    lookahead: how many more tokens a decode is to have room for, where blocks are free; for speculative decoding.
    """

    def __init__(
        self, block_manager: Blocks, max_requests: int, max_prefill_tokens: int, *, lookahead: int = 0
    ) -> None:
        self.block_manager = block_manager
        self.max_requests = whole("max_requests", max_requests, 1)
        self.max_prefill_tokens = whole("max_prefill_tokens", max_prefill_tokens, 1)
        self.lookahead = whole("lookahead", lookahead, 0)
        self._arrivals = itertools.count()
        self._entries: dict[int, _Entry] = {}
        """All that are not finished, by the identity of their request."""
        self._waiting: list[tuple[tuple[int, int], _Entry]] = []
        """A heap; it may hold entries that were cancelled meanwhile."""
        self._running: list[_Entry] = []
        """In order."""
        self._step: Step | None = None
        self.prompt_tokens = self.cached_tokens = self.preemptions = 0
        """Of admitted requests, and how many of those were cached; what a preempted request finds again is no hit."""

    @property
    def num_running(self) -> int:
        """How many requests own blocks."""
        return len(self._running)

    @property
    def num_waiting(self) -> int:
        """How many requests wait, preempted ones among them."""
        return len(self._entries) - len(self._running)

    @property
    def has_unfinished(self) -> bool:
        """Whether any request waits or runs."""
        return bool(self._entries)

    def add(self, request: Any) -> None:
        """Take a request; it waits.

        ValueError for an empty prompt, max_tokens below 1, a request that was added before, and one that all blocks
        together could not hold to its end (the last id it generates needs no room).
        """
        if request.state is not None or id(request) in self._entries:
            raise ValueError("request was added before; it takes a new one")
        tokens = [operator.index(token) for token in request.tokens]
        if not tokens:
            raise ValueError("request.tokens is empty; it takes one id or more")
        limit = whole("request.max_tokens", request.max_tokens, 1)
        room = self.block_manager.num_blocks * self.block_manager.block_size
        if len(tokens) + limit - 1 > room:
            raise ValueError(
                f"request has a prompt of {len(tokens)} ids and max_tokens {limit}; all blocks together hold {room} tokens"
            )
        entry = _Entry(request, tokens, (-integer("request.priority", request.priority), next(self._arrivals)))
        self._entries[id(request)] = entry
        self._wait(entry, State.WAITING)

    def schedule(self) -> Step:
        """Say what to compute now. A step before it that `update` never saw is void: its work is handed out again.

        The step is empty when nothing is unfinished, and when blocks that others hold leave no room for anybody.
        """
        preempted: list[Any] = []
        decodes = self._decodes(preempted)
        if not preempted:
            self._admit()
        self._step = Step(self._prefills(), decodes, tuple(preempted))
        return self._step

    def update(self, step: Step, tokens: Sequence[int | Sequence[int] | None]) -> list[Any]:
        """Take what came of the last step and return the requests that it finished.

        tokens: for each of `step.chunks` None when it does not sample, else the id that follows it; or, with a
        lookahead, the ids, one to 1 + chunk.lookahead of them. Those of a request that was cancelled are dropped.
        ValueError for another step than the last, and for tokens that do not fit it: nothing is changed.
        """
        if step is not self._step:
            raise ValueError("step is not the last one scheduled, or was updated before")
        if len(tokens) != len(step.chunks):
            raise ValueError(f"tokens has {len(tokens)} entries; the step has {len(step.chunks)} chunks")
        taken = [_ids(chunk, new) for chunk, new in zip(step.chunks, tokens, strict=True)]
        self._step = None
        finished = []
        for chunk, ids in zip(step.chunks, taken, strict=True):
            entry = self._entries.get(id(chunk.request))
            if entry is not None and self._advance(entry, chunk, ids):
                self._finish(entry)
                finished.append(chunk.request)
        return finished

    def cancel(self, request: Any) -> None:
        """Finish a request as it is and give its blocks back; one that is finished stays so. ValueError if never added."""
        entry = self._entries.get(id(request))
        if entry is not None:
            self._finish(entry)
        elif request.state is None:
            raise ValueError("request was never added")

    def _decodes(self, preempted: list[Any]) -> tuple[Chunk, ...]:
        """A token of each running request that generates, the first in order first, whom the last make room for."""
        chunks = []
        for entry in list(self._running):
            if not entry.decoding:
                continue
            while entry.table is not None and not self._has_room(entry):
                preempted.append(self._preempt().request)
            if entry.table is not None:
                chunks.append(self._chunk(entry, 1, self._looked_ahead(entry)))
        return tuple(chunks)

    def _has_room(self, entry: _Entry) -> bool:
        try:
            self._append(entry, len(entry.tokens))
        except ValueError:
            return False
        return True

    def _append(self, entry: _Entry, end: int) -> None:
        """Have the entry's table take its tokens before `end`."""
        had = entry.table.num_tokens
        if had < end:
            self.block_manager.append(entry.table, entry.tokens[had:end])

    def _looked_ahead(self, entry: _Entry) -> int:
        """How many tokens past the next there is room for: what is left to generate, the lookahead, or none."""
        if not self.lookahead:
            return 0
        left = entry.request.max_tokens - len(entry.request.output) - 1
        wanted = min(self.lookahead, left)
        if wanted:
            try:
                self.block_manager.reserve(entry.table, wanted)
            except ValueError:
                return 0
        return wanted

    def _admit(self) -> None:
        """Have waiting requests run, in order, while there is room for them and budget for a token of theirs."""
        pending = sum(len(entry.tokens) - entry.computed for entry in self._running if not entry.decoding)
        while self._waiting and len(self._running) < self.max_requests and pending < self.max_prefill_tokens:
            entry = self._waiting[0][1]
            if entry.request.state is not State.FINISHED:
                try:
                    entry.table = self.block_manager.allocate(entry.tokens)
                except ValueError:
                    return
                entry.computed = entry.table.num_cached_tokens
                if entry.request.state is State.WAITING:
                    self.prompt_tokens += len(entry.tokens)
                    self.cached_tokens += entry.computed
                entry.request.state = State.RUNNING
                bisect.insort(self._running, entry, key=lambda running: running.key)
                pending += len(entry.tokens) - entry.computed
            heapq.heappop(self._waiting)

    def _prefills(self) -> tuple[Chunk, ...]:
        """What of the running requests' prompts the budget has room for, in order."""
        chunks, budget = [], self.max_prefill_tokens
        for entry in self._running:
            count = 0 if entry.decoding else min(budget, len(entry.tokens) - entry.computed)
            if count:
                chunks.append(self._chunk(entry, count))
                budget -= count
        return tuple(chunks)

    def _chunk(self, entry: _Entry, count: int, lookahead: int = 0) -> Chunk:
        end = entry.computed + count
        tokens = tuple(entry.tokens[entry.computed : end])
        # A table only gets more blocks, but where one of them is computed.
        if len(entry.block_ids) * self.block_manager.block_size < end + lookahead:
            entry.block_ids = tuple(entry.table.block_ids)
        return Chunk(entry.request, entry.computed, tokens, entry.block_ids, end == len(entry.tokens), lookahead)

    def _advance(self, entry: _Entry, chunk: Chunk, ids: list[int]) -> bool:
        """Take what came of a chunk; return whether that finishes the request."""
        done = False
        for token in ids:
            done = token in entry.request.eos
            if not done:
                entry.tokens.append(token)
                entry.request.output.append(token)
                done = len(entry.request.output) == entry.request.max_tokens
            if done:
                break
        # Of several ids all but the last were computed with the chunk.
        size, before = self.block_manager.block_size, entry.computed
        entry.computed = min(chunk.start + len(chunk.tokens) + max(0, len(ids) - 1), len(entry.tokens))
        entry.decoding = chunk.samples
        if len(ids) > 1:
            self._append(entry, entry.computed)
        self.block_manager.mark_computed(entry.table, entry.computed)
        if before // size < entry.computed // size:
            # A manager may have given the table a copy of what was computed.
            entry.block_ids = ()
        return done

    def _preempt(self) -> _Entry:
        """Take the blocks of the running request that is last in order."""
        entry = self._running.pop()
        self.preemptions += 1
        self.block_manager.free(entry.table)
        entry.table, entry.block_ids, entry.computed, entry.decoding = None, (), 0, False
        self._wait(entry, State.PREEMPTED)
        return entry

    def _wait(self, entry: _Entry, state: State) -> None:
        entry.request.state = state
        heapq.heappush(self._waiting, (entry.key, entry))

    def _finish(self, entry: _Entry) -> None:
        del self._entries[id(entry.request)]
        if entry.table is not None:
            self._running.remove(entry)
            self.block_manager.free(entry.table)
            entry.table = None
        entry.request.state = State.FINISHED
        # Those that were cancelled while they waited are not let pile up behind one that has no room.
        if len(self._waiting) > 2 * self.num_waiting + PILE:
            self._waiting = [item for item in self._waiting if item[1].request.state is not State.FINISHED]
            heapq.heapify(self._waiting)


def _ids(chunk: Chunk, new: int | Sequence[int] | None) -> list[int]:
    """The ids that follow a chunk, or an error."""
    if not chunk.samples:
        if new is not None:
            raise ValueError(f"tokens has {new!r} for a chunk that does not sample; it takes None")
        return []
    if new is None:
        raise ValueError("tokens has None for a chunk that samples; it takes an id")
    if isinstance(new, int):
        return [new]
    ids = [operator.index(token) for token in new] if isinstance(new, Sequence) else [operator.index(new)]
    if not 1 <= len(ids) <= 1 + chunk.lookahead:
        raise ValueError(f"tokens has {len(ids)} ids for a chunk; it takes 1 to {1 + chunk.lookahead}")
    return ids
