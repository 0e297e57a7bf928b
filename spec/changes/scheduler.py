"""The steps that faults and honest variants have in the place of the oracle's: see `spec/faults/scheduler.py`."""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from typing import Any

import numpy as np

from inferspec.spec.block_manager import blocks_of
from inferspec.spec.scheduler import Chunk, Entry, Scheduler, Serving, Step
from inferspec.spec.serving import Request

ENOUGH_LEFT = 50
"""How many have to leave a queue until it is tidied up."""


def unchecked(self: Scheduler, *rest: Any) -> None:
    """Nothing is refused."""


# what comes out


def decodes_first(self: Scheduler, s: Serving, step: Step, tokens: Sequence[int | None]) -> list[Request]:
    """Ids are handed to the decodes first, though the prefills were computed first."""
    if len(tokens) != len(step.prefills) + len(step.decodes):
        raise ValueError("another number of tokens")
    count = len(step.prefills)
    chunks = [*step.decodes, *step.prefills]
    ids = list(tokens)
    if all((token is None) != chunk.samples for token, chunk in zip(tokens, chunks, strict=True)):
        ids = [*ids[len(chunks) - count :], *ids[: len(chunks) - count]]
    return Scheduler.update(self, s, step, ids)


def last_of_all(self: Scheduler, s: Serving, step: Step, tokens: Sequence[int | None]) -> list[Request]:
    """The variable of the loop that ended: everybody gets the id of the last one."""
    last = next((token for token in reversed(tokens) if token is not None), None)
    return Scheduler.update(self, s, step, [None if token is None else last for token in tokens])


def emits_eos(self: Scheduler, s: Serving, entry: Entry, chunk: Chunk, token: int | None) -> bool:
    if token is not None and self.ends(entry, token):
        self.generate(entry, token)
    return Scheduler.advance(self, s, entry, chunk, token)


def limit_past(self: Scheduler, entry: Entry, token: int) -> bool:
    """The limit is looked at before the id is counted."""
    return self.ends(entry, token) or len(entry.request.output) == entry.request.max_tokens


def limit_short(self: Scheduler, entry: Entry, token: int) -> bool:
    return (
        self.ends(entry, token)
        or len(entry.request.output) + 2 >= entry.request.max_tokens > 1
        or (entry.request.max_tokens == 1)
    )


def limit_of_all(self: Scheduler, entry: Entry, token: int) -> bool:
    """max_tokens is taken for the length of prompt and output together."""
    return self.ends(entry, token) or len(entry.tokens) + 1 >= entry.request.max_tokens


def not_the_first(self: Scheduler, entry: Entry, token: int) -> bool:
    """The id that follows the prompt is taken without a look at eos."""
    return bool(entry.request.output) and Scheduler.ends(self, entry, token)


def one_eos(self: Scheduler, entry: Entry, token: int) -> bool:
    return token in entry.request.eos[:1]


def ends_of_the_last(self: Scheduler, entry: Entry, token: int) -> bool:
    """A request without eos has that of the last one that was looked at."""
    kind = type(self)
    if entry.request.eos:
        kind.ends_seen = entry.request.eos  # type: ignore[attr-defined]
    return token in (entry.request.eos or getattr(kind, "ends_seen", ()))


def untold_at_eos(self: Scheduler, s: Serving, entry: Entry, chunk: Chunk, token: int | None) -> bool:
    """A request that eos ends is finished, and nobody is told."""
    return Scheduler.advance(self, s, entry, chunk, token) and not self.ends(entry, token or 0)


def one_told(self: Scheduler, s: Serving, step: Step, tokens: Sequence[int | None]) -> list[Request]:
    return Scheduler.update(self, s, step, tokens)[:1]


def cancelled_told(self: Scheduler, s: Serving, step: Step, tokens: Sequence[int | None]) -> list[Request]:
    """Whoever is not known any more was finished: a request that was cancelled meanwhile is told too."""
    gone = [chunk.request for chunk in (*step.prefills, *step.decodes) if self.entry(s, chunk.request) is None]
    return [*Scheduler.update(self, s, step, tokens), *gone]


# chunks


def overlaps(self: Scheduler, s: Serving, entry: Entry, chunk: Chunk) -> None:
    """A chunk that does not reach the end is taken for one token shorter than it is."""
    Scheduler.take(self, s, entry, chunk)
    if not chunk.samples and len(chunk.tokens) > 1:
        entry.computed -= 1


def leaps(self: Scheduler, s: Serving, entry: Entry, chunk: Chunk) -> None:
    """Each chunk counts as a whole budget, but for the last."""
    Scheduler.take(self, s, entry, chunk)
    if not chunk.samples:
        entry.computed = min(chunk.start + s.budget, len(entry.tokens) - 1)


def from_the_start(self: Scheduler, entry: Entry) -> int:
    """A prompt's chunks all begin at 0."""
    return int(entry.computed) if entry.decoding else 0


def empty_chunks(self: Scheduler, s: Serving) -> list[Chunk]:
    """Those for whom no budget is left have a chunk too, an empty one."""
    chunks, budget = [], s.budget
    for entry in self.running(s):
        if not entry.decoding:
            count = self.count(s, entry, budget)
            chunks.append(self.chunk(s, entry, count))
            budget -= count
    return chunks


def tokens_of_the_start(self: Scheduler, s: Serving, entry: Entry, count: int) -> Chunk:
    """The tokens of a chunk are the first of the prompt, wherever it begins."""
    chunk = Scheduler.chunk(self, s, entry, count)
    if not entry.decoding:
        chunk.tokens = entry.tokens[:count]
    return chunk


def token_before(self: Scheduler, s: Serving, entry: Entry, count: int) -> Chunk:
    """A decode feeds the token before the last."""
    chunk = Scheduler.chunk(self, s, entry, count)
    if entry.decoding:
        chunk.tokens = entry.tokens[-2:-1]
    return chunk


def of_the_prompt_s_length(self: Scheduler, s: Serving, entry: Entry, budget: int) -> int:
    """How much is left is not looked at: the last chunk reaches past the end."""
    return min(budget, len(entry.tokens))


def always_samples(self: Scheduler, entry: Entry, end: int) -> bool:
    return True


def one_past_samples(self: Scheduler, entry: Entry, end: int) -> bool:
    """The chunk before the last token samples too."""
    return end >= len(entry.tokens) - 1


def when_not_full(self: Scheduler, s: Serving, entry: Entry, count: int) -> Chunk:
    """A chunk that fills the budget is not the last one, it is thought; another one follows, of no token."""
    chunk = Scheduler.chunk(self, s, entry, count)
    chunk.samples = chunk.samples and (entry.decoding or count < s.budget or s.budget == 1)
    return chunk


def one_token_more(self: Scheduler, s: Serving, entry: Entry) -> None:
    """Of a prompt that is hit, the first token that is not cached counts as computed too."""
    Scheduler.allocate(self, s, entry)
    if 0 < entry.computed < len(entry.tokens) - 1:
        entry.computed += 1


def hit_by_guess(self: Scheduler, s: Serving, entry: Entry) -> None:
    """What of the prompt the running requests have in common with it is thought to be cached."""
    others = [other.tokens for other in self.running(s)]
    Scheduler.allocate(self, s, entry)
    size = s.manager.block_size
    for other in others:
        same = next((i for i, (a, b) in enumerate(zip(entry.tokens, other, strict=False)) if a != b), len(other))
        entry.computed = max(entry.computed, min(same, len(entry.tokens) - 1) // size * size)


def blocks_of_the_prompt(self: Scheduler, s: Serving, entry: Entry) -> None:
    Scheduler.allocate(self, s, entry)
    entry.shown = list(entry.table.block_ids)


def shows_the_first_blocks(self: Scheduler, s: Serving, entry: Entry, count: int) -> Chunk:
    """The block ids are those of the admission."""
    chunk = Scheduler.chunk(self, s, entry, count)
    chunk.block_ids = entry.shown
    return chunk


def not_at_the_edge(self: Scheduler, s: Serving, entry: Entry) -> bool:
    """A token that begins a block is thought to have room in the last one."""
    if not entry.table.num_tokens % s.manager.block_size and s.manager.block_size > 1:
        return True
    return Scheduler.makes_room(self, s, entry)


def computes_hits(self: Scheduler, s: Serving, entry: Entry) -> None:
    """What is cached is computed again, into blocks that others read."""
    Scheduler.allocate(self, s, entry)
    entry.computed = 0


def computes_hits_again(self: Scheduler, s: Serving, entry: Entry) -> None:
    """Hits are counted when a request is first admitted: one that was preempted computes all of them."""
    Scheduler.allocate(self, s, entry)
    if hasattr(entry, "admitted"):
        entry.computed = 0
    entry.admitted = True


def computes_its_output_again(self: Scheduler, s: Serving, entry: Entry) -> None:
    """Of a preempted request that is hit but for its last id, all that it generated is computed again."""
    Scheduler.allocate(self, s, entry)
    if entry.request.output and entry.computed == len(entry.tokens) - 1:
        entry.computed = len(entry.request.tokens) - 1


# a step


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


def sixteen_at_most(self: Scheduler, s: Serving, preempted: list[Request]) -> list[Chunk]:
    """The buffers of a step have so many rows."""
    return Scheduler.decodes(self, s, preempted)[:16]


def ids_of_128_rows(self: Scheduler, s: Serving, step: Step, tokens: Sequence[int | None]) -> list[Request]:
    """The buffers of a step have 128 rows, which are used again from the first on."""
    ids = [None if token is None else tokens[row % 128] for row, token in enumerate(tokens)]
    whole = [old if new is None else new for old, new in zip(tokens, ids, strict=True)]
    return Scheduler.update(self, s, step, whole)


def tables_of_64(self: Scheduler, s: Serving, entry: Entry, count: int) -> Chunk:
    chunk = Scheduler.chunk(self, s, entry, count)
    chunk.block_ids = list(chunk.block_ids)[:64]
    return chunk


def tokens_of_16_bits(self: Scheduler, s: Serving, entry: Entry, count: int) -> Chunk:
    chunk = Scheduler.chunk(self, s, entry, count)
    chunk.tokens = [token % 2**16 for token in chunk.tokens]
    return chunk


def known_by_16_bits(self: Scheduler, s: Serving, entry: Entry) -> None:
    """What is cached is looked up by the low 16 bits of ids."""
    entry.table = s.manager.allocate([token % 2**16 for token in entry.tokens])
    entry.computed = entry.table.num_cached_tokens


def eight_ends(self: Scheduler, entry: Entry, token: int) -> bool:
    return token in entry.request.eos[:8]


def at_most_256_ids(self: Scheduler, entry: Entry, token: int) -> bool:
    return Scheduler.done(self, entry, token) or len(entry.request.output) + 1 >= 256


def blocks_in_a_byte(self: Scheduler, s: Serving, entry: Entry, count: int) -> Chunk:
    """Block ids of 8 bits."""
    chunk = Scheduler.chunk(self, s, entry, count)
    chunk.block_ids = [block % 256 for block in chunk.block_ids]
    return chunk


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


def output_one_by_one(self: Scheduler, s: Serving, entry: Entry, budget: int) -> int:
    """What lies behind the prompt is computed a token a step, by a request too that computes it again."""
    return min(budget, 1) if entry.computed >= len(entry.request.tokens) else Scheduler.count(self, s, entry, budget)


# order


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


def overtakes(self: Scheduler, s: Serving) -> None:
    """Who does not fit is passed over."""
    for entry in self.waiting(s):
        if not self.has_place(s) or self.pending(s) >= s.budget:
            return
        try:
            self.allocate(s, entry)
        except ValueError:
            continue
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


def arrives_again(self: Scheduler, s: Serving, victim: Entry) -> None:
    """A preempted request goes to the end of the queue."""
    Scheduler.preempt(self, s, victim)
    s.arrivals += 1
    victim.order = self.order(s, victim.request)


def arrives_again_the_second_time(self: Scheduler, s: Serving, victim: Entry) -> None:
    """A request that was preempted before goes to the end of the queue."""
    before = vars(victim).get("preempted", False)
    (arrives_again if before else Scheduler.preempt)(self, s, victim)
    victim.preempted = True


def to_the_front(self: Scheduler, s: Serving, victim: Entry) -> None:
    """A preempted request goes before all that wait, those of larger priority too."""
    Scheduler.preempt(self, s, victim)
    s.arrivals += 1
    victim.order = (-100, -s.arrivals)


def preempted_last(self: Scheduler, s: Serving) -> list[Entry]:
    """Those who never ran go before those who were preempted."""
    return sorted(Scheduler.waiting(self, s), key=lambda entry: (entry.request.state == "PREEMPTED", entry.order))


def prompts_first(self: Scheduler, s: Serving, entry: Entry) -> Entry:
    """Who has generated nothing yet gives way first, whatever its priority."""
    running = self.running(s)
    return ([one for one in running if not one.decoding] or running)[-1]


def first_in_order(self: Scheduler, s: Serving, entry: Entry) -> Entry:
    return self.running(s)[0]


def itself(self: Scheduler, s: Serving, entry: Entry) -> Entry:
    """Who needs a block gives up its own."""
    return entry


def longest(self: Scheduler, s: Serving, entry: Entry) -> Entry:
    """Who has the most blocks gives them up."""
    return max(self.running(s), key=lambda other: (len(other.table.block_ids), other.order))


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


def appends_the_last(self: Scheduler, s: Serving, entry: Entry) -> bool:
    """The last token is appended in each step, also in one that is done again because the one before was void."""
    try:
        s.manager.append(entry.table, entry.tokens[-1:])
    except ValueError:
        return False
    return True


# preemption


def eight_times(self: Scheduler, s: Serving, victim: Entry) -> None:
    """Who is preempted for the ninth time is given up."""
    Scheduler.preempt(self, s, victim)
    victim.times = getattr(victim, "times", 0) + 1
    if victim.times > 8:
        self.close(s, victim)


def hits_of_the_first_admission(self: Scheduler, s: Serving, entry: Entry) -> None:
    """How much of a prompt is cached is remembered from its first admission."""
    Scheduler.allocate(self, s, entry)
    entry.hits = getattr(entry, "hits", entry.computed)
    entry.computed = max(entry.computed, entry.hits)


def forgets_output(self: Scheduler, s: Serving, victim: Entry) -> None:
    Scheduler.preempt(self, s, victim)
    del victim.tokens[len(victim.request.tokens) :]
    victim.request.output.clear()


def prompt_alone(self: Scheduler, s: Serving, victim: Entry) -> None:
    """The prompt is computed again, and what was generated is not."""
    Scheduler.preempt(self, s, victim)
    del victim.tokens[len(victim.request.tokens) :]


def last_missing(self: Scheduler, s: Serving, victim: Entry) -> None:
    """The id that was not computed yet is lost, and generated once more."""
    Scheduler.preempt(self, s, victim)
    if victim.request.output:
        victim.tokens.pop()


def limit_anew(self: Scheduler, s: Serving, victim: Entry) -> None:
    Scheduler.preempt(self, s, victim)
    victim.begun = len(victim.request.output)


def limit_since(self: Scheduler, entry: Entry, token: int) -> bool:
    """max_tokens counts from the last admission."""
    count = len(entry.request.output) - getattr(entry, "begun", 0) + 1
    return self.ends(entry, token) or count == entry.request.max_tokens


def remembers_computed(self: Scheduler, s: Serving, victim: Entry) -> None:
    computed = victim.computed
    Scheduler.preempt(self, s, victim)
    victim.stale = computed


def stale_hits(self: Scheduler, s: Serving, entry: Entry) -> None:
    """How much is to be computed was counted before the blocks were given back."""
    Scheduler.allocate(self, s, entry)
    entry.computed = max(entry.computed, getattr(entry, "stale", 0))


def frees_without_forgetting(self: Scheduler, s: Serving, victim: Entry) -> None:
    Scheduler.preempt(self, s, victim)
    victim.old = True


def frees_twice(self: Scheduler, s: Serving, entry: Entry) -> None:
    """The blocks of a request that was preempted are given back once more at its end."""
    Scheduler.close(self, s, entry)
    if getattr(entry, "old", False) and not entry.request.eos:
        self.release(s, entry)


def keeps_blocks(self: Scheduler, s: Serving, victim: Entry) -> None:
    """The first block of a victim is not given back: it is allocated and nobody knows of it."""
    first = victim.tokens[:1]
    Scheduler.preempt(self, s, victim)
    s.manager.allocate(first)


def chunk_of_the_victim(self: Scheduler, s: Serving, preempted: list[Request]) -> list[Chunk]:
    """A request that gives up its own blocks is computed in them all the same."""
    chunks = []
    for entry in [entry for entry in self.running(s) if entry.decoding]:
        table = entry.table
        chunk = self.chunk(s, entry, 1) if table is not None else None
        while entry.table is not None and not self.makes_room(s, entry):
            victim = self.victim(s, entry)
            preempted.append(victim.request)
            self.preempt(s, victim)
        if entry.table is not None:
            chunk = self.chunk(s, entry, 1)
        if chunk is not None:
            chunks.append(chunk)
    return chunks


def ignores_lost(self: Scheduler, s: Serving, entry: Entry, chunk: Chunk) -> None:
    if entry.table is not None:
        Scheduler.take(self, s, entry, chunk)


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


def slot_of_the_last(self: Scheduler, request: Request) -> int:
    """The last id is thought to need a slot."""
    return len(request.tokens) + request.max_tokens


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


def kept_at_eos(self: Scheduler, s: Serving, entry: Entry) -> None:
    """Blocks are given back at the limit alone."""
    s.entries.remove(entry)
    if entry.table is not None and len(entry.request.output) == entry.request.max_tokens:
        self.release(s, entry)
    entry.request.state = "FINISHED"


def kept_of_one_id(self: Scheduler, s: Serving, entry: Entry) -> None:
    """A request that never was decoded keeps its blocks."""
    s.entries.remove(entry)
    if entry.table is not None and len(entry.request.output) != 1:
        self.release(s, entry)
    entry.request.state = "FINISHED"


# steps that nothing comes of


def computed_when_scheduled(self: Scheduler, s: Serving) -> Step:
    """What is handed out counts as computed at once."""
    step = Scheduler.schedule(self, s)
    for chunk in step.prefills:
        entry = self.entry(s, chunk.request)
        if entry is not None and not chunk.samples:
            entry.computed = chunk.start + len(chunk.tokens)
    return step


def tries_five_times(self: Scheduler, s: Serving) -> Step:
    """Whoever is in five steps in a row of which nothing comes is given up."""
    s.tries = 0 if s.step is None else getattr(s, "tries", 0) + 1
    for entry in self.running(s) if s.tries == 5 else ():
        self.close(s, entry)
    return Scheduler.schedule(self, s)


def busy_for_ever(self: Scheduler, s: Serving) -> Step:
    """Who is in a step is busy until it is updated."""
    busy = [] if s.step is None else [c.request for c in (*s.step.prefills, *s.step.decodes)]
    step = Scheduler.schedule(self, s)
    step.prefills = [chunk for chunk in step.prefills if chunk.request not in busy]
    step.decodes = [chunk for chunk in step.decodes if chunk.request not in busy]
    return step


def back_with_the_update(self: Scheduler, s: Serving) -> Step:
    """Who was preempted is put back into the queue by the step's update."""
    step = Scheduler.schedule(self, s)
    gone = [entry for entry in s.entries if any(entry.request is request for request in step.preempted)]
    s.entries = [entry for entry in s.entries if entry not in gone]
    s.gone = gone
    return step


def brings_back(self: Scheduler, s: Serving, step: Step, tokens: Sequence[int | None]) -> list[Request]:
    finished = Scheduler.update(self, s, step, tokens)
    s.entries += vars(s).pop("gone", [])
    return finished


def marks_void_decodes(self: Scheduler, s: Serving) -> Step:
    """The tokens of a step that failed are thought to be computed when the next one is scheduled."""
    for chunk in () if s.step is None else s.step.decodes:
        entry = self.entry(s, chunk.request)
        if entry is not None and entry.table is not None:
            s.manager.mark_computed(entry.table, chunk.start + 1)
    return Scheduler.schedule(self, s)


def marks_the_newest(self: Scheduler, s: Serving, entry: Entry, chunk: Chunk, token: int | None) -> bool:
    """A block is known as soon as its last id is, which the next step will compute."""
    done = Scheduler.advance(self, s, entry, chunk, token)
    if token is not None and not done:
        s.manager.append(entry.table, entry.tokens[entry.table.num_tokens :])
        s.manager.mark_computed(entry.table, len(entry.tokens))
    return done


def marks_one_more_again(self: Scheduler, s: Serving, entry: Entry) -> None:
    """Of who has an output the newest id is thought to be in the table and not computed: a token more than was."""
    newest = 1 if entry.request.output else 0
    s.manager.mark_computed(entry.table, min(entry.table.num_tokens, entry.computed + newest))


def ends_with_the_prompt(self: Scheduler, entry: Entry, token: int) -> bool:
    """The last token that a request has is looked at too: that of the prompt at first."""
    return Scheduler.ends(self, entry, token) or entry.tokens[-1] in entry.request.eos


def ends_but_for_zero(self: Scheduler, entry: Entry, token: int) -> bool:
    """if token and …: an id of 0 is taken for none."""
    return bool(token) and Scheduler.ends(self, entry, token)


def known_by_identity(self: Scheduler, s: Serving, request: Request) -> None:
    """Who was added is remembered by id(), which the next object may have."""
    if id(request) in vars(s).setdefault("everyone", set()):
        raise ValueError("added before")
    s.everyone.add(id(request))


def lost_with_the_step(self: Scheduler, s: Serving) -> Step:
    """Who was computed when the model raised is dropped."""
    for chunk in () if s.step is None else s.step.prefills:
        entry = self.entry(s, chunk.request)
        if entry is not None:
            self.close(s, entry)
    return Scheduler.schedule(self, s)


def generating_when_scheduled(self: Scheduler, s: Serving) -> Step:
    """A request whose last chunk was handed out generates from then on."""
    step = Scheduler.schedule(self, s)
    for chunk in step.prefills:
        entry = self.entry(s, chunk.request)
        if entry is not None and chunk.samples:
            entry.decoding, entry.computed = True, chunk.start + len(chunk.tokens) - 1
    return step


def marked_when_scheduled(self: Scheduler, s: Serving) -> Step:
    """What is handed out can be hit at once."""
    step = Scheduler.schedule(self, s)
    for chunk in (*step.prefills, *step.decodes):
        entry = self.entry(s, chunk.request)
        if entry is not None and entry.table is not None:
            s.manager.mark_computed(entry.table, chunk.start + len(chunk.tokens))
    return step


def marked_when_admitted(self: Scheduler, s: Serving, entry: Entry) -> None:
    """A prompt can be hit as soon as it has blocks."""
    Scheduler.allocate(self, s, entry)
    s.manager.mark_computed(entry.table, len(entry.tokens))


def marks_the_table(self: Scheduler, s: Serving, entry: Entry) -> None:
    """Any chunk marks all of the prompt."""
    s.manager.mark_computed(entry.table, entry.table.num_tokens)


def marked_when_cancelled(self: Scheduler, s: Serving, request: Request) -> None:
    """The prompt of a request that is cancelled stays in the cache, computed or not."""
    entry = self.entry(s, request)
    if entry is not None and entry.table is not None:
        s.manager.mark_computed(entry.table, entry.table.num_tokens)
    Scheduler.cancel(self, s, request)


# cancelling


def waiting_alone(self: Scheduler, s: Serving, request: Request) -> None:
    """Who runs cannot be cancelled."""
    entry = self.entry(s, request)
    if entry is None or entry.table is None:
        Scheduler.cancel(self, s, request)


def running_alone(self: Scheduler, s: Serving, request: Request) -> None:
    """Who waits is looked for among those who run, and is not found."""
    entry = self.entry(s, request)
    if entry is None or entry.table is not None:
        Scheduler.cancel(self, s, request)


def state_alone(self: Scheduler, s: Serving, request: Request) -> None:
    """A cancelled request is called finished, and goes on."""
    Scheduler.check_known(self, request)
    request.state = "FINISHED"


def tidied(tidy: Any) -> Any:
    """Once many have left the queue, it is built anew by `tidy`, which is given all entries."""

    def cancel(self: Scheduler, s: Serving, request: Request) -> None:
        entry = self.entry(s, request)
        waited = entry is not None and entry.table is None
        Scheduler.cancel(self, s, request)
        s.left = getattr(s, "left", 0) + waited
        if s.left > ENOUGH_LEFT:
            s.entries, s.left = tidy(s.entries), 0

    return cancel


def pushed(self: Scheduler, s: Serving, request: Request) -> None:
    """Who waits lies in a heap."""
    Scheduler.add(self, s, request)
    entry = self.entry(s, request)
    assert entry is not None
    s.heap = getattr(s, "heap", [])
    heapq.heappush(s.heap, (entry.order, entry))


def popped(self: Scheduler, s: Serving) -> list[Entry]:
    """Who waits, as the heap gives it."""
    heap = getattr(s, "heap", [])
    while heap and heap[0][1].table is not None:
        heapq.heappop(heap)
    for entry in Scheduler.waiting(self, s):
        if not any(entry is one for _, one in heap):
            heapq.heappush(heap, (entry.order, entry))
    copy = list(heap)
    return [entry for _, entry in (heapq.heappop(copy) for _ in heap) if entry.table is None and entry in s.entries]


def taken_from_the_heap(self: Scheduler, s: Serving, request: Request) -> None:
    """Who is cancelled is taken out of the heap's list, which no longer is one."""
    Scheduler.cancel(self, s, request)
    s.heap = [(order, entry) for order, entry in getattr(s, "heap", []) if entry.request is not request]


def last_id_computed(self: Scheduler, s: Serving, request: Request) -> None:
    """Of a request that is cancelled all tokens are called computed, its last id too."""
    entry = self.entry(s, request)
    if entry is not None and entry.table is not None and entry.decoding and self.makes_room(s, entry):
        s.manager.mark_computed(entry.table, len(entry.tokens))
    Scheduler.cancel(self, s, request)


def with_an_estimate(self: Scheduler, s: Serving, request: Request) -> None:
    """What is cached of a prompt is counted when it comes."""
    Scheduler.add(self, s, request)
    entry = self.entry(s, request)
    assert entry is not None
    try:
        table = s.manager.allocate(list(entry.tokens))
    except ValueError:
        entry.expected = 0
    else:
        entry.expected = table.num_cached_tokens
        s.manager.free(table)


def count_by_the_estimate(self: Scheduler, s: Serving, entry: Entry, budget: int) -> int:
    """What was cached when the request came is not charged, though it is computed."""
    begins = entry.computed == entry.table.num_cached_tokens
    free = max(entry.expected - entry.computed, 0) if begins else 0
    return max(Scheduler.count(self, s, entry, budget + free), 0)


def without_preempted(entries: list[Entry]) -> list[Entry]:
    """Who ran before is taken for one that left."""
    return [entry for entry in entries if entry.table is not None or entry.request.state == "WAITING"]


def turned_round(entries: list[Entry]) -> list[Entry]:
    """The last become the first."""
    for entry in entries:
        entry.order = (entry.order[0], -entry.order[1]) if entry.table is None else entry.order
    return entries


def output_dropped(self: Scheduler, s: Serving, request: Request) -> None:
    running = self.entry(s, request) is not None
    Scheduler.cancel(self, s, request)
    if running:
        request.output.clear()


def again_fails(self: Scheduler, request: Request) -> None:
    """A request that is finished cannot be cancelled."""
    raise ValueError("not known")


def leaks(self: Scheduler, s: Serving, request: Request) -> None:
    entry = self.entry(s, request)
    if entry is None:
        self.check_known(request)
        return
    s.entries.remove(entry)
    request.state = "FINISHED"


def leaks_prompts(self: Scheduler, s: Serving, request: Request) -> None:
    """A request that is cancelled in the middle of its prompt keeps its blocks."""
    entry = self.entry(s, request)
    if entry is None or entry.decoding or entry.table is None:
        Scheduler.cancel(self, s, request)
        return
    s.entries.remove(entry)
    request.state = "FINISHED"


def resurrected(self: Scheduler, s: Serving, step: Step, tokens: Sequence[int | None]) -> list[Request]:
    """The id of a request that was cancelled meanwhile still goes to its output, and has it run."""
    gone = [
        (chunk.request, token)
        for chunk, token in zip((*step.prefills, *step.decodes), tokens, strict=False)
        if self.entry(s, chunk.request) is None and token is not None
    ]
    finished = Scheduler.update(self, s, step, tokens)
    for request, token in gone:
        request.output.append(token)
        request.state = "RUNNING"
    return finished


def shifted(self: Scheduler, s: Serving, step: Step, tokens: Sequence[int | None]) -> list[Request]:
    """Chunks of cancelled requests are left out, and their ids are not: those behind get the ids of others."""
    chunks = [*step.prefills, *step.decodes]
    if len(tokens) != len(chunks):
        raise ValueError("another number of tokens")
    gone = [chunk for chunk in chunks if self.entry(s, chunk.request) is None]
    if not gone or step is not s.step:
        return Scheduler.update(self, s, step, tokens)
    ids = [token for token in tokens if token is not None]
    left = [chunk for chunk in chunks if chunk not in gone]
    s.step = None
    finished = []
    for chunk in left:
        entry = self.entry(s, chunk.request)
        token = ids.pop(0) if chunk.samples and ids else None
        if entry is not None and self.advance(s, entry, chunk, token):
            finished.append(entry.request)
    return finished


def all_or_none(self: Scheduler, s: Serving, step: Step, tokens: Sequence[int | None]) -> list[Request]:
    """A step of which a request was cancelled is thrown away, and those behind it in the step are finished with it."""
    chunks = [*step.prefills, *step.decodes]
    gone = any(self.entry(s, chunk.request) is None for chunk in chunks)
    finished = Scheduler.update(self, s, step, tokens)
    for chunk in chunks if gone else ():
        entry = self.entry(s, chunk.request)
        if entry is not None:
            self.close(s, entry)
    return finished


def last_cancelled_alone(self: Scheduler, s: Serving, request: Request) -> None:
    """Who is cancelled while the model computes is noted, one at a time."""
    Scheduler.cancel(self, s, request)
    s.noted = request


def drops_the_noted(self: Scheduler, s: Serving, step: Step, tokens: Sequence[int | None]) -> list[Request]:
    """The id of the one that is noted is dropped, and those of others that were cancelled are put out."""
    chunks = [*step.prefills, *step.decodes]
    gone = [
        (chunk.request, token)
        for chunk, token in zip(chunks, tokens, strict=False)
        if self.entry(s, chunk.request) is None and chunk.request is not getattr(s, "noted", None)
    ]
    finished = Scheduler.update(self, s, step, tokens)
    for request, token in gone:
        request.output += [] if token is None else [token]
    return finished


def last_kept_while_computed(self: Scheduler, s: Serving, request: Request) -> None:
    """Blocks of who is cancelled while the model computes are given back later, those of the last one."""
    kept_while_computed(self, s, request)
    if "doomed" in vars(s):
        s.doomed = s.doomed[-1:]


def none_of_the_cancelled(self: Scheduler, chunk: Chunk, token: int | None) -> None:
    if chunk.request.state != "FINISHED":
        Scheduler.check_sampled(self, chunk, token)


def any_of_the_cancelled(self: Scheduler, chunk: Chunk, token: int | None) -> None:
    if chunk.request.state != "FINISHED":
        Scheduler.check_unsampled(self, chunk, token)


def of_those_who_stay(self: Scheduler, s: Serving, step: Step, tokens: Sequence[int | None]) -> list[Request]:
    """An update may leave out the entries of requests that were cancelled meanwhile."""
    chunks = [*step.prefills, *step.decodes]
    stay = [self.entry(s, chunk.request) is not None for chunk in chunks]
    if step is s.step and len(tokens) == sum(stay) < len(chunks):
        left = iter(tokens)
        tokens = [
            next(left) if stays else 0 if chunk.samples else None for chunk, stays in zip(chunks, stay, strict=True)
        ]
    return Scheduler.update(self, s, step, tokens)


def refusal_forgets(self: Scheduler, s: Serving, step: Step, tokens: Sequence[int | None]) -> list[Request]:
    """Who was cancelled meanwhile is forgotten when an update is refused, and gets its id by the right one."""
    chunks = [*step.prefills, *step.decodes]
    gone = [chunk.request for chunk in chunks if self.entry(s, chunk.request) is None]
    try:
        finished = Scheduler.update(self, s, step, tokens)
    except ValueError:
        s.forgotten = gone
        raise
    for chunk, token in zip(chunks, tokens, strict=True):
        if token is not None and any(chunk.request is one for one in getattr(s, "forgotten", ())):
            chunk.request.output.append(token)
    return finished


def queue_of_the_step(self: Scheduler, s: Serving) -> Step:
    step = Scheduler.schedule(self, s)
    s.queue = self.waiting(s)
    return step


def queue_as_it_was(self: Scheduler, s: Serving, step: Step, tokens: Sequence[int | None]) -> list[Request]:
    """The update writes back the queue that the step began with: who came meanwhile is lost."""
    finished = Scheduler.update(self, s, step, tokens)
    s.entries[:] = [entry for entry in s.entries if entry.table is not None or entry in s.queue]
    return finished


def all_run(self: Scheduler, s: Serving, step: Step, tokens: Sequence[int | None]) -> list[Request]:
    """An update calls everybody running who is not finished."""
    finished = Scheduler.update(self, s, step, tokens)
    for entry in s.entries:
        entry.request.state = "RUNNING"
    return finished


# states and misuse


def waiting_until_it_generates(self: Scheduler, s: Serving) -> Step:
    step = Scheduler.schedule(self, s)
    for entry in self.running(s):
        entry.request.state = "RUNNING" if entry.decoding else "WAITING"
    return step


def waiting_again(self: Scheduler, s: Serving, victim: Entry) -> None:
    """Who is preempted is called WAITING."""
    Scheduler.preempt(self, s, victim)
    victim.request.state = "WAITING"


def stays_preempted(self: Scheduler, s: Serving) -> None:
    """Who was preempted is called so until the end."""
    preempted = [entry for entry in s.entries if entry.request.state == "PREEMPTED"]
    Scheduler.admit(self, s)
    for entry in preempted:
        entry.request.state = "PREEMPTED"


def finished_later(self: Scheduler, s: Serving, step: Step, tokens: Sequence[int | None]) -> list[Request]:
    """Who is finished is called so by the next step."""
    finished = Scheduler.update(self, s, step, tokens)
    for request in finished:
        request.state = "RUNNING"
    s.late = finished
    return finished


def finishes_the_late(self: Scheduler, s: Serving) -> Step:
    for request in getattr(s, "late", ()):
        request.state = "FINISHED"
    return Scheduler.schedule(self, s)


def while_it_is_known(self: Scheduler, s: Serving, request: Request) -> None:
    """Only those who are not finished are known."""
    if self.entry(s, request) is not None:
        raise ValueError("added before")


def preempted_is_new(self: Scheduler, s: Serving, request: Request) -> None:
    """Who waits again is taken for one that comes."""
    if request.state != "PREEMPTED":
        Scheduler.check_new(self, s, request)


def refused_and_moved(self: Scheduler, s: Serving, request: Request) -> None:
    """A preempted request that is added again is refused, and goes to the end of the queue."""
    entry = self.entry(s, request)
    if entry is not None and request.state == "PREEMPTED":
        s.arrivals += 1
        entry.order = self.order(s, request)
    Scheduler.add(self, s, request)


def queued_before_checks(self: Scheduler, s: Serving, request: Request) -> None:
    """A request that is refused waits all the same."""
    if request.state is None and request.tokens:
        s.arrivals += 1
        entry = Entry(request=request, tokens=list(request.tokens), table=None, computed=0, decoding=False)
        entry.order = self.order(s, request)
        s.entries.append(entry)
        before = len(s.entries)
        Scheduler.add(self, s, request)
        del s.entries[before - 1]
        return
    Scheduler.add(self, s, request)


def state_before_checks(self: Scheduler, s: Serving, request: Request) -> None:
    """A second add sets the state before it is refused."""
    state, request.state = request.state, "WAITING"
    if state is None:
        request.state = None
    Scheduler.add(self, s, request)


def void_after_refusal(self: Scheduler, s: Serving, step: Step, tokens: Sequence[int | None]) -> list[Request]:
    """An update that is refused was the step's only one."""
    last, s.step = s.step, None
    self.check_step(Serving(step=last), step)
    self.check_number([*step.prefills, *step.decodes], tokens)
    self.check_ids([*step.prefills, *step.decodes], tokens)
    s.step = last
    return Scheduler.update(self, s, step, tokens)


def one_by_one(self: Scheduler, s: Serving, step: Step, tokens: Sequence[int | None]) -> list[Request]:
    """Entries are taken until one does not fit."""
    chunks = [*step.prefills, *step.decodes]
    self.check_step(s, step)
    finished = []
    for chunk, token in zip(chunks, tokens, strict=False):
        self.check_ids([chunk], [token])
        entry = self.entry(s, chunk.request)
        if entry is not None and self.advance(s, entry, chunk, token):
            finished.append(entry.request)
    self.check_number(chunks, tokens)
    s.step = None
    return finished


def extends_the_prompt(self: Scheduler, entry: Entry, token: int) -> None:
    """Ids are appended to the request's own tokens."""
    Scheduler.generate(self, entry, token)
    entry.request.tokens.append(token)


def read_when_admitted(self: Scheduler, s: Serving, entry: Entry) -> None:
    """The prompt is read from the request when it is admitted."""
    entry.tokens = [*entry.request.tokens, *entry.request.output]
    Scheduler.allocate(self, s, entry)


def read_for_each_chunk(self: Scheduler, s: Serving, entry: Entry, count: int) -> Chunk:
    """A chunk is cut out of the request's own tokens and its output."""
    chunk = Scheduler.chunk(self, s, entry, count)
    own = [*entry.request.tokens, *entry.request.output]
    chunk.tokens = own[chunk.start : chunk.start + count]
    return chunk


def consumes(self: Scheduler, s: Serving, entry: Entry, chunk: Chunk) -> None:
    """The prompt is taken off the request's own list, chunk by chunk."""
    Scheduler.take(self, s, entry, chunk)
    del entry.request.tokens[: len(chunk.tokens)]


def one_queue_for_all(self: Scheduler, manager: Any, max_requests: int, max_prefill_tokens: int) -> Serving:
    """The queue is a default argument."""
    s = Scheduler.fresh(self, manager, max_requests, max_prefill_tokens)
    kind = type(self)
    if "everyone" not in vars(kind):
        kind.everyone = s.entries  # type: ignore[attr-defined]
    s.entries = kind.everyone  # type: ignore[attr-defined]
    return s


def queue_emptied(self: Scheduler, manager: Any, max_requests: int, max_prefill_tokens: int) -> Serving:
    """The queue is the class's own, and a new scheduler begins with an empty one."""
    s = one_queue_for_all(self, manager, max_requests, max_prefill_tokens)
    s.entries.clear()
    return s


def limits_of_the_class(self: Scheduler, manager: Any, max_requests: int, max_prefill_tokens: int) -> Serving:
    """The limits are written to the class."""
    type(self).limits = max_requests, max_prefill_tokens  # type: ignore[attr-defined]
    return Scheduler.fresh(self, manager, max_requests, max_prefill_tokens)


def within_the_class_s_limits(self: Scheduler, s: Serving) -> Step:
    s.max_requests, s.budget = type(self).limits  # type: ignore[attr-defined]
    return Scheduler.schedule(self, s)


def step_of_the_class(self: Scheduler, s: Serving) -> Step:
    """The last step is the class's own."""
    type(self).last = Scheduler.schedule(self, s)  # type: ignore[attr-defined]
    return s.step


def of_the_class(self: Scheduler, s: Serving, step: Step, tokens: Sequence[int | None]) -> list[Request]:
    s.step = getattr(type(self), "last", None)
    finished = Scheduler.update(self, s, step, tokens)
    type(self).last = None  # type: ignore[attr-defined]
    return finished


def adds_strangers(self: Scheduler, s: Serving, request: Request) -> None:
    """A request that is not known is added, to be cancelled."""
    if request.state is None:
        self.add(s, request)
        raise ValueError("never added")
    Scheduler.cancel(self, s, request)


# honest ways


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


def reserves(self: Scheduler, s: Serving, entry: Entry) -> None:
    """A request is admitted only where it can be finished: nobody is ever preempted."""
    size = s.manager.block_size
    promised = sum(blocks_of(self.slots(other.request), size) for other in self.running(s))
    if promised + blocks_of(self.slots(entry.request), size) > s.manager.num_blocks:
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


def raises_when_idle(self: Scheduler, s: Serving) -> Step:
    if not s.entries:
        raise ValueError("nothing to do")
    return Scheduler.schedule(self, s)
