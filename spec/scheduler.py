"""Which requests a serving engine works on in each step: continuous batching, chunked prefill, preemption.

    Scheduler(block_manager, max_requests, max_prefill_tokens)
    .add(request)                a request with `tokens`, `max_tokens`, `priority` (the larger first) and `eos` waits
    .schedule() -> step          what to compute now: `prefills` and `decodes` (chunks), and who was `preempted` for it
    .update(step, tokens)        what came of it: for each chunk, prefills first, the id that follows it where it samples,
                                 else None; returns the requests that this finishes
    .cancel(request)             the request is finished as it is

A chunk shows `request`, `start`, `tokens` (those at the positions start, start + 1, …), `block_ids` (position p belongs into
block_ids[p // block_size], slot p % block_size) and `samples`: it reaches the end of what the request has, so that an id
follows. The scheduler sets `state` (WAITING, RUNNING, PREEMPTED, FINISHED: an enumeration's members or words) and
`output` of a request; before, they are None and an empty list. A step that was never updated is void: the model
raised. Whom it admitted may wait again, as before it, and be admitted anew with other blocks. Where an engine ends when
its model raises, so that every step is updated, `void_steps: [False]` in the envelope says so.

A request computes its prompt in chunks, those of a step together of no more than max_prefill_tokens tokens, and then a
token a step. At most max_requests run. One that needs a block when there is none takes that of another one behind it in order
(priority, then arrival), which is preempted: it has no block any more and later computes prompt and output again.
The chunks of a step may be computed in any order, apart from each other, so that none builds on what another computes. Where
an engine computes them together, layer by layer, it finds in a layer what all of them wrote: a scheduler that counts on
that, so that a prompt hits what another one of its step has yet to compute (vLLM's), says `chunks: ["together"]`.
The id of eos that ends a request does not come into its output; where it is the last of it, as vLLM and nano-vLLM have it, the
envelope says so: `ends: ["kept"]` (`spec/ends.py`).
The last id of a request is never computed and needs no slot. Who wants one for it all the same, so that it refuses a request
whose tokens and ids together are more than there are slots, is given pools that have it (`last_id_takes_slot: [True]`).
A scheduler may have memory of its own in the place of the block manager, of `num_blocks` blocks of `block_size` tokens.

A call is a story: `steps` of one scheduler. A request has the number of the step that added it. The story gives:

    3 chunks        [request, start, samples, whether it is a decode, n, n tokens, m, m block ids] of every chunk
    3 preempted     requests that were preempted for it
    3 between       the states of all requests between schedule and update
    3 finished      requests that the update returned
    3 states        the states of all requests, in the order in which they were added: 0 waiting … 3 finished
    3 output 1      the output of a request, where it changed
    3 free          num_free of the block manager
    3 refused       the step raised
    3 absent        there was nothing to do it with, and it was left out
    3 changed       requests whose tokens are not what they were

Block ids are told in the order in which they were first seen. Steps beside the methods: `step`, schedule and update;
`fail`, the model computes the step in part, leaves anything in its slots, and raises; `update_wrongly(how, request)`;
`add_again`; `add_mended`, a request that was refused asks for something else, and is added;
`cancel_stranger`, a request that was never added; `overwrite`, the caller puts other tokens, and one more, into the list of a
request's tokens; `pass_by`, requests that are added, cancelled and forgotten;
`meanwhile`, another scheduler with blocks of its own, perhaps of another size, and larger limits is given a request and takes a step; `finish`, steps until every
request is finished, told as 3.1, 3.2, …

Left open: whether `schedule` raises or gives an empty step when every request is finished, when the other attributes of a
request are read, and whether lists that were given out are the scheduler's own.

What must hold is judged on the history of observations (`spec/scheduling_histories.py`): a step may have fewer
chunks or smaller ones, prefills before decodes or after, blocks early or late, another victim.

Source: the nano-vLLM post, parts 2, 3 and 5; Yu et al. 2022 (Orca); Agrawal et al. 2023 (Sarathi); Kwon et al. 2023 (vLLM),
section 4.5; PROPERTIES CB1 to CB5, SC1 to SC6.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from types import SimpleNamespace
from typing import Any, ClassVar

import numpy as np

from inferspec.spec.contract import (
    STORY,
    Answer,
    Answers,
    Arguments,
    Aspect,
    Beside,
    Contract,
    Level,
    Operation,
    Requirement,
    Signature,
)
from inferspec.spec.ends import DROPPED, ENDS, left_of
from inferspec.spec.numerics import Precision, f64
from inferspec.spec.serving import ModelManager, Request, Story

POST = "nano-vLLM post, parts 2, 3 and 5"

Serving = SimpleNamespace
"""The model: `manager`, `max_requests`, `budget`, `arrivals` (how many requests came), `entries` (requests that are not
finished), `step` (the last one scheduled, None once it was updated), `ends` (what becomes of ids that end a request)."""

Entry = SimpleNamespace
"""A request that is not finished: `request`, `tokens` (prompt and output), `order` (the smaller goes first), `table` (None
while it waits), `computed` (tokens in its blocks), `decoding` (it has generated since it was admitted)."""

Chunk = SimpleNamespace
Step = SimpleNamespace


class Scheduler(Operation):
    """The plainest scheduler that keeps the contract. What it does is counted, so every budget is 0."""

    signature = Signature.parse(
        "Scheduler(num_blocks, block_size, prefix_caching, max_requests, max_prefill_tokens, steps, together=False,"
        " ends='dropped')"
    )
    parts = STORY
    either: ClassVar = {"ends": ("SCHED-02",)}
    methods: ClassVar[tuple[str, ...]] = ("add", "schedule", "update")
    takes: ClassVar = {"add": ("request",), "schedule": (), "update": ("step", "tokens"), "cancel": ("request",)}
    optional_methods: ClassVar = {"cancel": ("cancelling", (False,))}
    beside: ClassVar[tuple[Beside, ...]] = (Beside("BlockManager", modelled=True),)

    def evaluate(self, a: Arguments, precision: Precision) -> Answers:
        sizes = {"num_blocks": a.num_blocks, "block_size": a.block_size}
        managers = partial(ModelManager, **sizes, prefix_caching=a.prefix_caching)
        told = Story(partial(Offered, self, ends=a.ends), managers, a).told(a.steps)
        numbers = {part: f64(value) for part, value in told.items() if not isinstance(value, str)}
        return {part: Answer(value, np.zeros(value.shape)) for part, value in numbers.items()}

    def part_dtype(self, part: str, a: Arguments) -> str:
        return "int64"

    def guard(self, a: Arguments) -> None:
        if a.max_requests < 1 or a.max_prefill_tokens < 1:
            raise ValueError(f"{a.max_requests} requests, {a.max_prefill_tokens} tokens")

    def fresh(self, manager: Any, max_requests: int, max_prefill_tokens: int) -> Serving:
        return Serving(
            manager=manager, max_requests=max_requests, budget=max_prefill_tokens, arrivals=0, entries=[], step=None
        )

    # requests

    def add(self, s: Serving, request: Request) -> None:
        self.check_new(s, request)
        self.check_prompt(request)
        self.check_limit(request)
        self.check_fits(s, request)
        s.arrivals += 1
        entry = Entry(request=request, tokens=list(request.tokens), table=None, computed=0, decoding=False)
        entry.order = self.order(s, request)
        s.entries.append(entry)
        request.state = "WAITING"

    def order(self, s: Serving, request: Request) -> tuple[int, int]:
        return -request.priority, s.arrivals

    def check_new(self, s: Serving, request: Request) -> None:
        if request.state is not None:
            raise ValueError("added before")

    def check_prompt(self, request: Request) -> None:
        if not request.tokens:
            raise ValueError("an empty prompt")

    def check_limit(self, request: Request) -> None:
        if request.max_tokens < 1:
            raise ValueError(f"max_tokens is {request.max_tokens}")

    def check_fits(self, s: Serving, request: Request) -> None:
        if self.slots(request) > s.manager.num_blocks * s.manager.block_size:
            raise ValueError("longer than all blocks together")

    def slots(self, request: Request) -> int:
        """How many slots a request takes in the end: the last id needs none."""
        return len(request.tokens) + request.max_tokens - 1

    def cancel(self, s: Serving, request: Request) -> None:
        entry = self.entry(s, request)
        if entry is not None:
            self.close(s, entry)
        else:
            self.check_known(request)

    def check_known(self, request: Request) -> None:
        if request.state is None:
            raise ValueError("never added")

    def entry(self, s: Serving, request: Request) -> Entry | None:
        return next((entry for entry in s.entries if entry.request is request), None)

    def running(self, s: Serving) -> list[Entry]:
        return sorted((entry for entry in s.entries if entry.table is not None), key=lambda entry: entry.order)

    def waiting(self, s: Serving) -> list[Entry]:
        return sorted((entry for entry in s.entries if entry.table is None), key=lambda entry: entry.order)

    # a step

    def schedule(self, s: Serving) -> Step:
        preempted: list[Request] = []
        decodes = self.decodes(s, preempted)
        if self.may_admit(s, preempted):
            self.admit(s)
        s.step = Step(prefills=self.prefills(s), decodes=decodes, preempted=preempted)
        return s.step

    def may_admit(self, s: Serving, preempted: list[Request]) -> bool:
        return not preempted

    def decodes(self, s: Serving, preempted: list[Request]) -> list[Chunk]:
        """A token of each running request that generates."""
        chunks = []
        for entry in [entry for entry in self.running(s) if entry.decoding]:
            while entry.table is not None and not self.makes_room(s, entry):
                victim = self.victim(s, entry)
                preempted.append(victim.request)
                self.preempt(s, victim)
            if entry.table is not None:
                chunks.append(self.chunk(s, entry, 1))
        return chunks

    def makes_room(self, s: Serving, entry: Entry) -> bool:
        """Whether the entry's blocks hold all its tokens, with one more block if need be."""
        missing = entry.tokens[entry.table.num_tokens :]
        try:
            if missing:
                s.manager.append(entry.table, missing)
        except ValueError:
            return False
        return True

    def victim(self, s: Serving, entry: Entry) -> Entry:
        """Who gives its blocks to an entry that needs one: the last in order, itself perhaps."""
        return self.running(s)[-1]

    def preempt(self, s: Serving, victim: Entry) -> None:
        self.release(s, victim)
        victim.table, victim.computed, victim.decoding = None, 0, False
        victim.request.state = "PREEMPTED"

    def admit(self, s: Serving) -> None:
        """Have waiting requests run, in order, as long as there is room for all their tokens and budget for one."""
        for entry in self.waiting(s):
            if not self.has_place(s) or self.pending(s) >= s.budget:
                return
            try:
                self.allocate(s, entry)
            except ValueError:
                return
            entry.request.state = "RUNNING"

    def has_place(self, s: Serving) -> bool:
        return len(self.running(s)) < s.max_requests

    def pending(self, s: Serving) -> int:
        """How many tokens of prompts are still to be computed."""
        return sum(len(entry.tokens) - entry.computed for entry in self.running(s) if not entry.decoding)

    def allocate(self, s: Serving, entry: Entry) -> None:
        entry.table = s.manager.allocate(list(entry.tokens))
        entry.computed = entry.table.num_cached_tokens

    def prefills(self, s: Serving) -> list[Chunk]:
        """What of the running requests' prompts the budget has room for, in order."""
        chunks, budget = [], s.budget
        for entry in self.running(s):
            count = 0 if entry.decoding else self.count(s, entry, budget)
            if count:
                chunks.append(self.chunk(s, entry, count))
                budget -= count
        return chunks

    def count(self, s: Serving, entry: Entry, budget: int) -> int:
        """How many tokens of a prompt go into a step, of which so many are left."""
        return min(budget, len(entry.tokens) - entry.computed)

    def chunk(self, s: Serving, entry: Entry, count: int) -> Chunk:
        start, end = self.start(entry), self.start(entry) + count
        return Chunk(
            request=entry.request,
            start=start,
            tokens=entry.tokens[start:end],
            block_ids=entry.table.block_ids,
            samples=self.samples(entry, end),
        )

    def start(self, entry: Entry) -> int:
        return int(entry.computed)

    def samples(self, entry: Entry, end: int) -> bool:
        return end == len(entry.tokens)

    # what came of it

    def update(self, s: Serving, step: Step, tokens: Sequence[int | None]) -> list[Request]:
        chunks = [*step.prefills, *step.decodes]
        self.check_step(s, step)
        self.check_number(chunks, tokens)
        self.check_ids(chunks, tokens)
        s.step = None
        finished = []
        for chunk, token in zip(chunks, tokens, strict=False):
            entry = self.entry(s, chunk.request)
            if entry is not None and self.advance(s, entry, chunk, token):
                finished.append(entry.request)
        return finished

    def check_step(self, s: Serving, step: Step) -> None:
        if step is not s.step:
            raise ValueError("not the last step")

    def check_number(self, chunks: list[Chunk], tokens: Sequence[int | None]) -> None:
        if len(chunks) != len(tokens):
            raise ValueError(f"{len(tokens)} tokens for {len(chunks)} chunks")

    def check_ids(self, chunks: list[Chunk], tokens: Sequence[int | None]) -> None:
        for chunk, token in zip(chunks, tokens, strict=False):
            self.check_sampled(chunk, token)
            self.check_unsampled(chunk, token)

    def check_sampled(self, chunk: Chunk, token: int | None) -> None:
        if chunk.samples and token is None:
            raise ValueError("no id for a chunk that samples")

    def check_unsampled(self, chunk: Chunk, token: int | None) -> None:
        if not chunk.samples and token is not None:
            raise ValueError("an id for a chunk that does not sample")

    def advance(self, s: Serving, entry: Entry, chunk: Chunk, token: int | None) -> bool:
        """Take what came of a chunk; return whether it finishes the request."""
        self.take(s, entry, chunk)
        if token is None:
            return False
        entry.decoding = True
        done = self.done(entry, token)
        for out in left_of(token, s.ends) if self.ends(entry, token) else [token]:
            self.generate(entry, out)
        if done:
            self.close(s, entry)
        return done

    def take(self, s: Serving, entry: Entry, chunk: Chunk) -> None:
        """The chunk's tokens are computed."""
        entry.computed = chunk.start + len(chunk.tokens)
        self.mark(s, entry)

    def mark(self, s: Serving, entry: Entry) -> None:
        s.manager.mark_computed(entry.table, entry.computed)

    def ends(self, entry: Entry, token: int) -> bool:
        return token in entry.request.eos

    def done(self, entry: Entry, token: int) -> bool:
        return self.ends(entry, token) or len(entry.request.output) + 1 == entry.request.max_tokens

    def generate(self, entry: Entry, token: int) -> None:
        entry.tokens.append(token)
        entry.request.output.append(token)

    def close(self, s: Serving, entry: Entry) -> None:
        s.entries.remove(entry)
        if entry.table is not None:
            self.release(s, entry)
        entry.request.state = "FINISHED"

    def release(self, s: Serving, entry: Entry) -> None:
        s.manager.free(entry.table)


class Offered:
    """The operation in the shape in which schedulers are offered."""

    def __init__(
        self, operation: Scheduler, manager: Any, max_requests: int, max_prefill_tokens: int, ends: str = DROPPED
    ) -> None:
        self._do = operation
        self._state = operation.fresh(manager, max_requests, max_prefill_tokens)
        self._state.ends = ends

    def add(self, request: Request) -> None:
        self._do.add(self._state, request)

    def schedule(self) -> Step:
        return self._do.schedule(self._state)

    def update(self, step: Step, tokens: Sequence[int | None]) -> list[Request]:
        return self._do.update(self._state, step, tokens)

    def cancel(self, request: Request) -> None:
        self._do.cancel(self._state, request)


def _requirement(
    number: int, text: str, source: str, aspect: Aspect = Aspect.VALUE, level: Level = Level.MUST
) -> Requirement:
    return Requirement(f"SCHED-{number:02}", text, "Scheduler", level, aspect, source)


VLLM = "https://github.com/vllm-project/vllm"
METAL = "https://github.com/vllm-project/vllm-metal/commit"
NANO = "https://github.com/GeeeekExplorer/nano-vllm/commit"
COURSE = "https://github.com/skyzh/tiny-llm/commit"

# what comes out

SCHED_01 = _requirement(
    1,
    "every request generates what it would alone, whatever its mates, their order, the budget and the pool",
    "PROPERTIES CB1",
)
SCHED_02 = _requirement(
    2,
    "a request ends after max_tokens ids, or at the first id of its own eos, which may be its first id: that does not come out, or"
    " is the last of its output where ends are declared to be kept",
    "PROPERTIES CB3",
)
SCHED_03 = _requirement(
    3, "each request is finished once, told by the update that finishes it, and none is lost", "PROPERTIES CB2, CB5"
)

# chunks

SCHED_04 = _requirement(
    4,
    "the chunks of a request follow each other: none is empty, none begins before or after the end of the one before",
    f"{METAL}/dc602da; {NANO}/8d63a98; PROPERTIES CP2",
)
SCHED_05 = _requirement(
    5, "a chunk has the request's own tokens at its positions: of the prompt, then of the output", "PROPERTIES CP2, CB1"
)
SCHED_06 = _requirement(
    6, "a chunk samples just where it reaches the end of what the request has", f"{COURSE}/00dbf5c; PROPERTIES CP3"
)
SCHED_07 = _requirement(
    7,
    "what a chunk builds on was computed into the blocks that it names: by a step that was updated, or by another chunk of its step where chunks are computed together",
    "PROPERTIES PC5, judging",
)
SCHED_08 = _requirement(
    8,
    "a chunk's blocks have room to its end, are blocks of the pool and differ; it writes into none that another running"
    " request has",
    f"{POST}; {VLLM}/pull/7380; PROPERTIES PG1",
)

# a step

SCHED_09 = _requirement(
    9, "the prefills of a step have no more than max_prefill_tokens tokens together", "PROPERTIES SC5"
)
SCHED_10 = _requirement(10, "no more than max_requests run", "PROPERTIES SC5; Orca")
SCHED_11 = _requirement(11, "a request has one chunk in a step at most", "PROPERTIES SC5, CB5")
SCHED_12 = _requirement(
    12,
    "decodes are single tokens of requests that generate, and prefills are of those that do not yet",
    "nano-vLLM post, part 5",
)
SCHED_13 = _requirement(
    13, "a step that decodes does so for every running request that generates", f"{VLLM}/issues/49097; PROPERTIES SC5"
)
SCHED_14 = _requirement(
    14,
    "every running request that generates advances in every step: prompts do not hold it up",
    "Sarathi (Agrawal et al. 2023)",
    level=Level.SHOULD,
)
SCHED_15 = _requirement(
    15,
    "no budget is left unused while a prompt could be computed or a waiting request has room",
    f"{VLLM}/pull/11565; PROPERTIES SC4",
    level=Level.SHOULD,
)

# order

SCHED_16 = _requirement(
    16,
    "of the waiting requests, those of larger priority, an integer of up to 64 bits, are admitted first, whenever they came",
    "PROPERTIES SC3",
)
SCHED_17 = _requirement(
    17,
    "of equal priority, those that came first are admitted first: nobody overtakes, small ones neither",
    "PROPERTIES SC3",
)
SCHED_18 = _requirement(
    18,
    "a preempted request keeps its place by its first arrival",
    f"{VLLM}/issues/41951; PROPERTIES SC3",
)
SCHED_19 = _requirement(
    19,
    "nobody loses its blocks to one behind it in order",
    "PROPERTIES SC3; Kwon et al. 2023, section 4.5",
)
SCHED_20 = _requirement(
    20,
    "a request is preempted only where blocks are short of what the running ones need in this step, or where one of a higher"
    " priority takes its place among max_requests",
    "PROPERTIES SC2",
)

# preemption

SCHED_21 = _requirement(
    21,
    "a preempted request computes prompt and output again, but for what its new blocks hold, and goes on as if it never"
    " was: its output keeps",
    f"{NANO}/82f5ca2; {NANO}/77dd709; PROPERTIES SC1",
)
SCHED_22 = _requirement(
    22,
    "a preempted request has no block, and no chunk in the step that preempts it unless it is admitted anew",
    "https://github.com/neuralmagic/vllm/pull/92; PROPERTIES SC2",
)

# progress

SCHED_23 = _requirement(
    23, "while anybody is unfinished no step is empty, but for one that preempts", f"{COURSE}/00dbf5c; PROPERTIES SC4"
)
SCHED_24 = _requirement(
    24, "every request finishes, in however small a pool it was accepted for", f"{METAL}/1a036e8; PROPERTIES SC4"
)
SCHED_25 = _requirement(
    25,
    "a request that needs every slot of the pool (the last id needs none) completes",
    f"{METAL}/9b27db0; PROPERTIES SC6",
)
SCHED_26 = _requirement(
    26, "a request that needs a slot more than there are is refused by add", "PROPERTIES SC4", Aspect.GUARD
)
SCHED_27 = _requirement(
    27,
    "blocks of requests that are finished or wait are free: all of them when nobody runs",
    f"{COURSE}/05972ff; {POST}; PROPERTIES SC2, PG4",
)

# steps that nothing comes of

SCHED_28 = _requirement(
    28,
    "steps that were never updated are void, however many follow each other: their work is handed out again, nothing of it"
    " twice or not at all",
    f"{COURSE}/00dbf5c; PROPERTIES X9",
)
SCHED_29 = _requirement(
    29,
    "only what a step computed that was updated, or what SCHED-07 lets a chunk build on, is hit by others",
    f"{NANO}/f64d821; PROPERTIES PC5",
)

# cancelling

SCHED_30 = _requirement(
    30,
    "a request can be cancelled until it is finished: it is so at once, with the output that it has, and in no later step",
    "PROPERTIES CB2, CB5",
)
SCHED_31 = _requirement(31, "a cancelled request gives its blocks back", f"{COURSE}/00dbf5c; PROPERTIES SC2, PG4")
SCHED_32 = _requirement(
    32,
    "requests that are cancelled while the model computes stay so: their ids are dropped, and those of others are not",
    "PROPERTIES CB2",
)
SCHED_33 = _requirement(
    33, "a request that is added while the model computes waits for the next step", "PROPERTIES CB2"
)
SCHED_34 = _requirement(34, "cancelling a request that was never added is refused", "PROPERTIES X9", Aspect.GUARD)

# states and misuse

SCHED_35 = _requirement(
    35,
    "a request is WAITING once added, RUNNING from the step that has its first chunk at the latest, PREEMPTED while it waits again,"
    " FINISHED from the update that ends it",
    "the contract's signature",
)
SCHED_36 = _requirement(36, "an empty prompt, or max_tokens below 1, is refused by add", "PROPERTIES X9", Aspect.GUARD)
SCHED_37 = _requirement(
    37,
    "a request that was added before is refused, a finished or a preempted one too",
    "PROPERTIES CB2, X9",
    Aspect.GUARD,
)
SCHED_38 = _requirement(38, "an add or a cancel that is refused changes nothing", "PROPERTIES X9")
SCHED_39 = _requirement(
    39,
    "an update of another step than the last, or of one that was updated, is refused",
    "PROPERTIES CB2, X9",
    Aspect.GUARD,
)
SCHED_40 = _requirement(
    40,
    "an update with more or fewer entries than the step has chunks is refused; those of requests cancelled meanwhile count",
    "PROPERTIES X9",
    Aspect.GUARD,
)
SCHED_41 = _requirement(
    41,
    "an update with no id for a chunk that samples, or with one for a chunk that does not, is refused, unless its request"
    " was cancelled meanwhile",
    "PROPERTIES X9",
    Aspect.GUARD,
)
SCHED_42 = _requirement(42, "an update that is refused changes nothing: the right one can follow", "PROPERTIES X9")
SCHED_43 = _requirement(43, "the caller's tokens are not changed", "PROPERTIES X6")
SCHED_44 = _requirement(44, "schedulers have nothing in common", "PROPERTIES X7")
SCHED_45 = _requirement(
    45, "a scheduler of no requests, or of no tokens, is refused", "PROPERTIES X9", Aspect.GUARD, Level.SHOULD
)
SCHED_46 = _requirement(
    46,
    "what the caller does to the list of a request's tokens once it was added does not show",
    "PROPERTIES X6",
    level=Level.SHOULD,
)
SCHED_47 = _requirement(
    47,
    "a request that is finished can be cancelled, which changes nothing: who cancels cannot know that it just ended",
    "PROPERTIES CB2",
    level=Level.SHOULD,
)
SCHED_48 = _requirement(
    48,
    "whole blocks of a prompt that a step computed are not computed again while their blocks hold them, whoever they were of, and the step"
    " that ended it too",
    "PROPERTIES PC9",
    level=Level.SHOULD,
)
SCHED_49 = _requirement(
    49,
    "a step tells those who lose their blocks for it, each once, and nobody who waited before it and still does",
    "the contract's signature; PROPERTIES SC2",
)


CONTRACT = Contract(
    component="scheduler",
    title="continuous batching, chunked prefill, preemption",
    version=1,
    operations=(Scheduler,),
    envelope={
        "prefix_caching": (True, False),
        "block_sizes": (1, 2, 3, 4, 8, 16, 32),
        "priorities": ("equal", "different"),
        "void_steps": (True, False),
        "cancelling": (True, False),
        "chunks": ("apart", "together"),
        "last_id_takes_slot": (False, True),
        "ends": ENDS,
    },
    requirements=tuple(value for value in list(globals().values()) if isinstance(value, Requirement)),
)
