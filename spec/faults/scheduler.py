"""Mistakes in schedulers, and other honest ways to schedule."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from inferspec.spec import scheduler as spec
from inferspec.spec.block_manager import blocks_of
from inferspec.spec.contract import Change, Fault, Requirement, Variant
from inferspec.spec.faults.linear import TIRED
from inferspec.spec.scheduler import Chunk, Entry, Scheduler, Serving, Step
from inferspec.spec.serving import Request

VLLM = "https://github.com/vllm-project/vllm"
METAL = "https://github.com/vllm-project/vllm-metal/commit"
NANO = "https://github.com/GeeeekExplorer/nano-vllm"
COURSE = "https://github.com/skyzh/tiny-llm/commit"
MLX_LM = "https://github.com/ml-explore/mlx-lm/commit"
POST = "nano-vLLM post, parts 2, 3 and 5"


ENOUGH_LEFT = 50
"""How many have to leave a queue until it is tidied up."""


def _unchecked(self: Scheduler, *rest: Any) -> None:
    """Nothing is refused."""


# what comes out


def _decodes_first(self: Scheduler, s: Serving, step: Step, tokens: Sequence[int | None]) -> list[Request]:
    """Ids are handed to the decodes first, though the prefills were computed first."""
    if len(tokens) != len(step.prefills) + len(step.decodes):
        raise ValueError("another number of tokens")
    count = len(step.prefills)
    chunks = [*step.decodes, *step.prefills]
    ids = list(tokens)
    if all((token is None) != chunk.samples for token, chunk in zip(tokens, chunks, strict=True)):
        ids = [*ids[len(chunks) - count :], *ids[: len(chunks) - count]]
    return Scheduler.update(self, s, step, ids)


def _last_of_all(self: Scheduler, s: Serving, step: Step, tokens: Sequence[int | None]) -> list[Request]:
    """The variable of the loop that ended: everybody gets the id of the last one."""
    last = next((token for token in reversed(tokens) if token is not None), None)
    return Scheduler.update(self, s, step, [None if token is None else last for token in tokens])


def _emits_eos(self: Scheduler, s: Serving, entry: Entry, chunk: Chunk, token: int | None) -> bool:
    if token is not None and self.ends(entry, token):
        self.generate(entry, token)
    return Scheduler.advance(self, s, entry, chunk, token)


def _limit_past(self: Scheduler, entry: Entry, token: int) -> bool:
    """The limit is looked at before the id is counted."""
    return self.ends(entry, token) or len(entry.request.output) == entry.request.max_tokens


def _limit_short(self: Scheduler, entry: Entry, token: int) -> bool:
    return (
        self.ends(entry, token)
        or len(entry.request.output) + 2 >= entry.request.max_tokens > 1
        or (entry.request.max_tokens == 1)
    )


def _limit_of_all(self: Scheduler, entry: Entry, token: int) -> bool:
    """max_tokens is taken for the length of prompt and output together."""
    return self.ends(entry, token) or len(entry.tokens) + 1 >= entry.request.max_tokens


def _not_the_first(self: Scheduler, entry: Entry, token: int) -> bool:
    """The id that follows the prompt is taken without a look at eos."""
    return bool(entry.request.output) and Scheduler.ends(self, entry, token)


def _one_eos(self: Scheduler, entry: Entry, token: int) -> bool:
    return token in entry.request.eos[:1]


def _untold_at_eos(self: Scheduler, s: Serving, entry: Entry, chunk: Chunk, token: int | None) -> bool:
    """A request that eos ends is finished, and nobody is told."""
    return Scheduler.advance(self, s, entry, chunk, token) and not self.ends(entry, token or 0)


def _one_told(self: Scheduler, s: Serving, step: Step, tokens: Sequence[int | None]) -> list[Request]:
    return Scheduler.update(self, s, step, tokens)[:1]


def _cancelled_told(self: Scheduler, s: Serving, step: Step, tokens: Sequence[int | None]) -> list[Request]:
    """Whoever is not known any more was finished: a request that was cancelled meanwhile is told too."""
    gone = [chunk.request for chunk in (*step.prefills, *step.decodes) if self.entry(s, chunk.request) is None]
    return [*Scheduler.update(self, s, step, tokens), *gone]


# chunks


def _overlaps(self: Scheduler, s: Serving, entry: Entry, chunk: Chunk) -> None:
    """A chunk that does not reach the end is taken for one token shorter than it is."""
    Scheduler.take(self, s, entry, chunk)
    if not chunk.samples and len(chunk.tokens) > 1:
        entry.computed -= 1


def _leaps(self: Scheduler, s: Serving, entry: Entry, chunk: Chunk) -> None:
    """Each chunk counts as a whole budget, but for the last."""
    Scheduler.take(self, s, entry, chunk)
    if not chunk.samples:
        entry.computed = min(chunk.start + s.budget, len(entry.tokens) - 1)


def _from_the_start(self: Scheduler, entry: Entry) -> int:
    """A prompt's chunks all begin at 0."""
    return int(entry.computed) if entry.decoding else 0


def _empty_chunks(self: Scheduler, s: Serving) -> list[Chunk]:
    """Those for whom no budget is left have a chunk too, an empty one."""
    chunks, budget = [], s.budget
    for entry in self.running(s):
        if not entry.decoding:
            count = self.count(s, entry, budget)
            chunks.append(self.chunk(s, entry, count))
            budget -= count
    return chunks


def _tokens_of_the_start(self: Scheduler, s: Serving, entry: Entry, count: int) -> Chunk:
    """The tokens of a chunk are the first of the prompt, wherever it begins."""
    chunk = Scheduler.chunk(self, s, entry, count)
    if not entry.decoding:
        chunk.tokens = entry.tokens[:count]
    return chunk


def _token_before(self: Scheduler, s: Serving, entry: Entry, count: int) -> Chunk:
    """A decode feeds the token before the last."""
    chunk = Scheduler.chunk(self, s, entry, count)
    if entry.decoding:
        chunk.tokens = entry.tokens[-2:-1]
    return chunk


def _of_the_prompt_s_length(self: Scheduler, s: Serving, entry: Entry, budget: int) -> int:
    """How much is left is not looked at: the last chunk reaches past the end."""
    return min(budget, len(entry.tokens))


def _always_samples(self: Scheduler, entry: Entry, end: int) -> bool:
    return True


def _one_past_samples(self: Scheduler, entry: Entry, end: int) -> bool:
    """The chunk before the last token samples too."""
    return end >= len(entry.tokens) - 1


def _when_not_full(self: Scheduler, s: Serving, entry: Entry, count: int) -> Chunk:
    """A chunk that fills the budget is not the last one, it is thought; another one follows, of no token."""
    chunk = Scheduler.chunk(self, s, entry, count)
    chunk.samples = chunk.samples and (entry.decoding or count < s.budget or s.budget == 1)
    return chunk


def _one_token_more(self: Scheduler, s: Serving, entry: Entry) -> None:
    """Of a prompt that is hit, the first token that is not cached counts as computed too."""
    Scheduler.allocate(self, s, entry)
    if 0 < entry.computed < len(entry.tokens) - 1:
        entry.computed += 1


def _hit_by_guess(self: Scheduler, s: Serving, entry: Entry) -> None:
    """What of the prompt the running requests have in common with it is thought to be cached."""
    others = [other.tokens for other in self.running(s)]
    Scheduler.allocate(self, s, entry)
    size = s.manager.block_size
    for other in others:
        same = next((i for i, (a, b) in enumerate(zip(entry.tokens, other, strict=False)) if a != b), len(other))
        entry.computed = max(entry.computed, min(same, len(entry.tokens) - 1) // size * size)


def _blocks_of_the_prompt(self: Scheduler, s: Serving, entry: Entry) -> None:
    Scheduler.allocate(self, s, entry)
    entry.shown = list(entry.table.block_ids)


def _shows_the_first_blocks(self: Scheduler, s: Serving, entry: Entry, count: int) -> Chunk:
    """The block ids are those of the admission."""
    chunk = Scheduler.chunk(self, s, entry, count)
    chunk.block_ids = entry.shown
    return chunk


def _not_at_the_edge(self: Scheduler, s: Serving, entry: Entry) -> bool:
    """A token that begins a block is thought to have room in the last one."""
    if not entry.table.num_tokens % s.manager.block_size and s.manager.block_size > 1:
        return True
    return Scheduler.makes_room(self, s, entry)


def _computes_hits(self: Scheduler, s: Serving, entry: Entry) -> None:
    """What is cached is computed again, into blocks that others read."""
    Scheduler.allocate(self, s, entry)
    entry.computed = 0


# a step


def _budget_each(self: Scheduler, s: Serving, entry: Entry, budget: int) -> int:
    return min(s.budget, len(entry.tokens) - entry.computed)


def _budget_of_the_new(self: Scheduler, s: Serving) -> list[Chunk]:
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


def _whole_if_begun(self: Scheduler, s: Serving, entry: Entry, budget: int) -> int:
    """A prompt is computed whole as long as any budget is left."""
    return len(entry.tokens) - entry.computed if budget > 0 else 0


def _one_request_more(self: Scheduler, s: Serving) -> bool:
    return len(self.running(s)) <= s.max_requests


def _generating_alone_count(self: Scheduler, s: Serving) -> bool:
    return sum(entry.decoding for entry in self.running(s)) < s.max_requests


def _sixteen_at_most(self: Scheduler, s: Serving, preempted: list[Request]) -> list[Chunk]:
    """The buffers of a step have so many rows."""
    return Scheduler.decodes(self, s, preempted)[:16]


def _blocks_in_a_byte(self: Scheduler, s: Serving, entry: Entry, count: int) -> Chunk:
    """Block ids of 8 bits."""
    chunk = Scheduler.chunk(self, s, entry, count)
    chunk.block_ids = [block % 256 for block in chunk.block_ids]
    return chunk


def _block_by_block(self: Scheduler, s: Serving) -> list[Chunk]:
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


def _twice_where_it_ends(self: Scheduler, s: Serving) -> Step:
    """A prompt of which this step computes the last chunk is decoded in the same step."""
    step = Scheduler.schedule(self, s)
    for chunk in step.prefills:
        if chunk.samples and len(chunk.tokens) > 1:
            again = Chunk(**vars(chunk))
            again.start, again.tokens = chunk.start + len(chunk.tokens) - 1, chunk.tokens[-1:]
            step.decodes.append(again)
            return step
    return step


def _all_prefills(self: Scheduler, s: Serving) -> Step:
    """One list of chunks, whatever they are."""
    step = Scheduler.schedule(self, s)
    step.prefills, step.decodes = [*step.prefills, *step.decodes], []
    return step


def _still_decoding(self: Scheduler, s: Serving, victim: Entry) -> None:
    """A request that was preempted goes on a token at a time, as a decode."""
    decoding = victim.decoding
    Scheduler.preempt(self, s, victim)
    victim.decoding = decoding


def _skips_after_a_victim(self: Scheduler, s: Serving, preempted: list[Request]) -> list[Chunk]:
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


def _decodes_in_the_budget(self: Scheduler, s: Serving, preempted: list[Request]) -> list[Chunk]:
    """No more requests are decoded than the prefill budget has tokens."""
    return Scheduler.decodes(self, s, preempted)[: s.budget]


def _admits_or_decodes(self: Scheduler, s: Serving) -> Step:
    """A step that admits somebody decodes for nobody."""
    before = len(self.running(s))
    self.admit(s)
    preempted: list[Request] = []
    decodes = [] if len(self.running(s)) > before else self.decodes(s, preempted)
    s.step = Step(prefills=self.prefills(s), decodes=decodes, preempted=preempted)
    return s.step


def _pending_of_decodes(self: Scheduler, s: Serving) -> int:
    """Who generates is counted, and whose prompt is not computed yet is not."""
    return sum(len(entry.tokens) - entry.computed for entry in self.running(s) if entry.decoding)


def _hits_in_the_budget(self: Scheduler, s: Serving) -> list[Chunk]:
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


def _keeps_one_back(self: Scheduler, s: Serving, entry: Entry) -> None:
    """A request is admitted only where a block is left beside its own, if anybody runs."""
    if self.running(s) and blocks_of(len(entry.tokens), s.manager.block_size) >= s.manager.num_free:
        raise ValueError("one block is kept back")
    Scheduler.allocate(self, s, entry)


# order


def _smaller_first(self: Scheduler, s: Serving, request: Request) -> tuple[int, int]:
    return request.priority, s.arrivals


def _by_arrival(self: Scheduler, s: Serving, request: Request) -> tuple[int, int]:
    return 0, s.arrivals


def _levels(self: Scheduler, s: Serving, request: Request) -> tuple[int, int]:
    """Priorities are levels, from -10 to 10."""
    return -max(-10, min(10, request.priority)), s.arrivals


def _at_most_128(self: Scheduler, entry: Entry, end: int) -> bool:
    """A prompt has no more tokens than a row of the batch."""
    return end == min(len(entry.tokens), 128)


def _hits_pending(self: Scheduler, s: Serving) -> int:
    """Cached tokens of a prompt count as tokens to be computed."""
    return sum(len(entry.tokens) for entry in self.running(s) if not entry.decoding)


def _sign_alone(self: Scheduler, s: Serving, request: Request) -> tuple[int, int]:
    """A priority is thought to be a flag: 1 and 2 are one."""
    return -min(request.priority, 1), s.arrivals


def _last_in_first_out(self: Scheduler, s: Serving, request: Request) -> tuple[int, int]:
    return -request.priority, -s.arrivals


def _shortest_first(self: Scheduler, s: Serving, request: Request) -> tuple[int, ...]:
    return -request.priority, len(request.tokens), s.arrivals


def _overtakes(self: Scheduler, s: Serving) -> None:
    """Who does not fit is passed over."""
    for entry in self.waiting(s):
        if not self.has_place(s) or self.pending(s) >= s.budget:
            return
        try:
            self.allocate(s, entry)
        except ValueError:
            continue
        entry.request.state = "RUNNING"


def _arrives_again(self: Scheduler, s: Serving, victim: Entry) -> None:
    """A preempted request goes to the end of the queue."""
    Scheduler.preempt(self, s, victim)
    s.arrivals += 1
    victim.order = self.order(s, victim.request)


def _arrives_again_the_second_time(self: Scheduler, s: Serving, victim: Entry) -> None:
    """A request that was preempted before goes to the end of the queue."""
    before = vars(victim).get("preempted", False)
    (_arrives_again if before else Scheduler.preempt)(self, s, victim)
    victim.preempted = True


def _to_the_front(self: Scheduler, s: Serving, victim: Entry) -> None:
    """A preempted request goes before all that wait, those of larger priority too."""
    Scheduler.preempt(self, s, victim)
    s.arrivals += 1
    victim.order = (-100, -s.arrivals)


def _preempted_last(self: Scheduler, s: Serving) -> list[Entry]:
    """Those who never ran go before those who were preempted."""
    return sorted(Scheduler.waiting(self, s), key=lambda entry: (entry.request.state == "PREEMPTED", entry.order))


def _prompts_first(self: Scheduler, s: Serving, entry: Entry) -> Entry:
    """Who has generated nothing yet gives way first, whatever its priority."""
    running = self.running(s)
    return ([one for one in running if not one.decoding] or running)[-1]


def _first_in_order(self: Scheduler, s: Serving, entry: Entry) -> Entry:
    return self.running(s)[0]


def _itself(self: Scheduler, s: Serving, entry: Entry) -> Entry:
    """Who needs a block gives up its own."""
    return entry


def _longest(self: Scheduler, s: Serving, entry: Entry) -> Entry:
    """Who has the most blocks gives them up."""
    return max(self.running(s), key=lambda other: (len(other.table.block_ids), other.order))


def _latest_of_any_priority(self: Scheduler, s: Serving, entry: Entry) -> Entry:
    return max(self.running(s), key=lambda other: other.order[1])


def _all_behind(self: Scheduler, s: Serving, preempted: list[Request]) -> list[Chunk]:
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


def _for_those_who_wait(self: Scheduler, s: Serving) -> Step:
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


# preemption


def _forgets_output(self: Scheduler, s: Serving, victim: Entry) -> None:
    Scheduler.preempt(self, s, victim)
    del victim.tokens[len(victim.request.tokens) :]
    victim.request.output.clear()


def _prompt_alone(self: Scheduler, s: Serving, victim: Entry) -> None:
    """The prompt is computed again, and what was generated is not."""
    Scheduler.preempt(self, s, victim)
    del victim.tokens[len(victim.request.tokens) :]


def _last_missing(self: Scheduler, s: Serving, victim: Entry) -> None:
    """The id that was not computed yet is lost, and generated once more."""
    Scheduler.preempt(self, s, victim)
    if victim.request.output:
        victim.tokens.pop()


def _limit_anew(self: Scheduler, s: Serving, victim: Entry) -> None:
    Scheduler.preempt(self, s, victim)
    victim.begun = len(victim.request.output)


def _limit_since(self: Scheduler, entry: Entry, token: int) -> bool:
    """max_tokens counts from the last admission."""
    count = len(entry.request.output) - getattr(entry, "begun", 0) + 1
    return self.ends(entry, token) or count == entry.request.max_tokens


def _remembers_computed(self: Scheduler, s: Serving, victim: Entry) -> None:
    computed = victim.computed
    Scheduler.preempt(self, s, victim)
    victim.stale = computed


def _stale_hits(self: Scheduler, s: Serving, entry: Entry) -> None:
    """How much is to be computed was counted before the blocks were given back."""
    Scheduler.allocate(self, s, entry)
    entry.computed = max(entry.computed, getattr(entry, "stale", 0))


def _frees_without_forgetting(self: Scheduler, s: Serving, victim: Entry) -> None:
    Scheduler.preempt(self, s, victim)
    victim.old = True


def _frees_twice(self: Scheduler, s: Serving, entry: Entry) -> None:
    """The blocks of a request that was preempted are given back once more at its end."""
    Scheduler.close(self, s, entry)
    if getattr(entry, "old", False) and not entry.request.eos:
        self.release(s, entry)


def _keeps_blocks(self: Scheduler, s: Serving, victim: Entry) -> None:
    """The first block of a victim is not given back: it is allocated and nobody knows of it."""
    first = victim.tokens[:1]
    Scheduler.preempt(self, s, victim)
    s.manager.allocate(first)


def _chunk_of_the_victim(self: Scheduler, s: Serving, preempted: list[Request]) -> list[Chunk]:
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


def _ignores_lost(self: Scheduler, s: Serving, entry: Entry, chunk: Chunk) -> None:
    if entry.table is not None:
        Scheduler.take(self, s, entry, chunk)


# progress


def _over_without_decodes(self: Scheduler, s: Serving) -> Step:
    """There is nothing to do, it is thought, when nobody waits and nobody generates: a prompt is lost in the middle."""
    if not self.waiting(s) and not any(entry.decoding for entry in self.running(s)):
        s.step = Step(prefills=[], decodes=[], preempted=[])
        return s.step
    return Scheduler.schedule(self, s)


def _closed_for_good(self: Scheduler, s: Serving, preempted: list[Request]) -> bool:
    """Nobody is admitted any more once anybody was preempted."""
    s.closed = getattr(s, "closed", False) or bool(preempted)
    return not s.closed


def _whole_prompts(self: Scheduler, s: Serving, entry: Entry, budget: int) -> int:
    """Prompts are computed whole, those that are longer than the budget never."""
    left = len(entry.tokens) - entry.computed
    return int(left) if left <= budget else 0


def _raises_when_full(self: Scheduler, s: Serving, entry: Entry) -> Entry:
    raise RuntimeError("not enough free blocks")


def _needs_a_second(self: Scheduler, s: Serving, entry: Entry) -> Entry:
    """The one that needs the block is never the victim: alone, it waits for ever."""
    others = [other for other in self.running(s) if other is not entry]
    return others[-1] if others else entry


def _gives_way_to_preempted(self: Scheduler, s: Serving, entry: Entry) -> None:
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


def _null_block(self: Scheduler, s: Serving, request: Request) -> None:
    if self.slots(request) > (s.manager.num_blocks - 1) * s.manager.block_size:
        raise ValueError("longer than all blocks but the first")


def _slot_of_the_last(self: Scheduler, request: Request) -> int:
    """The last id is thought to need a slot."""
    return len(request.tokens) + request.max_tokens


def _one_slot_more(self: Scheduler, s: Serving, entry: Entry) -> None:
    """A request is admitted only where the id after its prompt has room too."""
    if blocks_of(len(entry.tokens) + 1, s.manager.block_size) > s.manager.num_free:
        raise ValueError("no room for an id")
    Scheduler.allocate(self, s, entry)


def _prompt_s_slots(self: Scheduler, request: Request) -> int:
    return len(request.tokens)


def _slot_too_few(self: Scheduler, request: Request) -> int:
    return len(request.tokens) + request.max_tokens - 2


def _rounded_blocks(self: Scheduler, s: Serving, request: Request) -> None:
    """Whole blocks of prompt and output are counted, each rounded down."""
    size = s.manager.block_size
    if len(request.tokens) // size + (request.max_tokens - 1) // size > s.manager.num_blocks:
        raise ValueError("longer than all blocks together")


def _kept_at_the_end(self: Scheduler, s: Serving, entry: Entry) -> None:
    """Who is finished keeps its blocks."""
    s.entries.remove(entry)
    entry.request.state = "FINISHED"


def _kept_at_eos(self: Scheduler, s: Serving, entry: Entry) -> None:
    """Blocks are given back at the limit alone."""
    s.entries.remove(entry)
    if entry.table is not None and len(entry.request.output) == entry.request.max_tokens:
        self.release(s, entry)
    entry.request.state = "FINISHED"


def _kept_of_one_id(self: Scheduler, s: Serving, entry: Entry) -> None:
    """A request that never was decoded keeps its blocks."""
    s.entries.remove(entry)
    if entry.table is not None and len(entry.request.output) != 1:
        self.release(s, entry)
    entry.request.state = "FINISHED"


# steps that nothing comes of


def _computed_when_scheduled(self: Scheduler, s: Serving) -> Step:
    """What is handed out counts as computed at once."""
    step = Scheduler.schedule(self, s)
    for chunk in step.prefills:
        entry = self.entry(s, chunk.request)
        if entry is not None and not chunk.samples:
            entry.computed = chunk.start + len(chunk.tokens)
    return step


def _busy_for_ever(self: Scheduler, s: Serving) -> Step:
    """Who is in a step is busy until it is updated."""
    busy = [] if s.step is None else [c.request for c in (*s.step.prefills, *s.step.decodes)]
    step = Scheduler.schedule(self, s)
    step.prefills = [chunk for chunk in step.prefills if chunk.request not in busy]
    step.decodes = [chunk for chunk in step.decodes if chunk.request not in busy]
    return step


def _back_with_the_update(self: Scheduler, s: Serving) -> Step:
    """Who was preempted is put back into the queue by the step's update."""
    step = Scheduler.schedule(self, s)
    gone = [entry for entry in s.entries if any(entry.request is request for request in step.preempted)]
    s.entries = [entry for entry in s.entries if entry not in gone]
    s.gone = gone
    return step


def _brings_back(self: Scheduler, s: Serving, step: Step, tokens: Sequence[int | None]) -> list[Request]:
    finished = Scheduler.update(self, s, step, tokens)
    s.entries += vars(s).pop("gone", [])
    return finished


def _marks_void_decodes(self: Scheduler, s: Serving) -> Step:
    """The tokens of a step that failed are thought to be computed when the next one is scheduled."""
    for chunk in () if s.step is None else s.step.decodes:
        entry = self.entry(s, chunk.request)
        if entry is not None and entry.table is not None:
            s.manager.mark_computed(entry.table, chunk.start + 1)
    return Scheduler.schedule(self, s)


def _marks_the_newest(self: Scheduler, s: Serving, entry: Entry, chunk: Chunk, token: int | None) -> bool:
    """A block is known as soon as its last id is, which the next step will compute."""
    done = Scheduler.advance(self, s, entry, chunk, token)
    if token is not None and not done:
        s.manager.append(entry.table, entry.tokens[entry.table.num_tokens :])
        s.manager.mark_computed(entry.table, len(entry.tokens))
    return done


def _ends_but_for_zero(self: Scheduler, entry: Entry, token: int) -> bool:
    """if token and …: an id of 0 is taken for none."""
    return bool(token) and Scheduler.ends(self, entry, token)


def _known_by_identity(self: Scheduler, s: Serving, request: Request) -> None:
    """Who was added is remembered by id(), which the next object may have."""
    if id(request) in vars(s).setdefault("everyone", set()):
        raise ValueError("added before")
    s.everyone.add(id(request))


def _lost_with_the_step(self: Scheduler, s: Serving) -> Step:
    """Who was computed when the model raised is dropped."""
    for chunk in () if s.step is None else s.step.prefills:
        entry = self.entry(s, chunk.request)
        if entry is not None:
            self.close(s, entry)
    return Scheduler.schedule(self, s)


def _generating_when_scheduled(self: Scheduler, s: Serving) -> Step:
    """A request whose last chunk was handed out generates from then on."""
    step = Scheduler.schedule(self, s)
    for chunk in step.prefills:
        entry = self.entry(s, chunk.request)
        if entry is not None and chunk.samples:
            entry.decoding, entry.computed = True, chunk.start + len(chunk.tokens) - 1
    return step


def _marked_when_scheduled(self: Scheduler, s: Serving) -> Step:
    """What is handed out can be hit at once."""
    step = Scheduler.schedule(self, s)
    for chunk in (*step.prefills, *step.decodes):
        entry = self.entry(s, chunk.request)
        if entry is not None and entry.table is not None:
            s.manager.mark_computed(entry.table, chunk.start + len(chunk.tokens))
    return step


def _marked_when_admitted(self: Scheduler, s: Serving, entry: Entry) -> None:
    """A prompt can be hit as soon as it has blocks."""
    Scheduler.allocate(self, s, entry)
    s.manager.mark_computed(entry.table, len(entry.tokens))


def _marks_the_table(self: Scheduler, s: Serving, entry: Entry) -> None:
    """Any chunk marks all of the prompt."""
    s.manager.mark_computed(entry.table, entry.table.num_tokens)


def _marked_when_cancelled(self: Scheduler, s: Serving, request: Request) -> None:
    """The prompt of a request that is cancelled stays in the cache, computed or not."""
    entry = self.entry(s, request)
    if entry is not None and entry.table is not None:
        s.manager.mark_computed(entry.table, entry.table.num_tokens)
    Scheduler.cancel(self, s, request)


# cancelling


def _waiting_alone(self: Scheduler, s: Serving, request: Request) -> None:
    """Who runs cannot be cancelled."""
    entry = self.entry(s, request)
    if entry is None or entry.table is None:
        Scheduler.cancel(self, s, request)


def _running_alone(self: Scheduler, s: Serving, request: Request) -> None:
    """Who waits is looked for among those who run, and is not found."""
    entry = self.entry(s, request)
    if entry is None or entry.table is not None:
        Scheduler.cancel(self, s, request)


def _state_alone(self: Scheduler, s: Serving, request: Request) -> None:
    """A cancelled request is called finished, and goes on."""
    Scheduler.check_known(self, request)
    request.state = "FINISHED"


def _tidied(tidy: Any) -> Any:
    """Once many have left the queue, it is built anew by `tidy`, which is given all entries."""

    def cancel(self: Scheduler, s: Serving, request: Request) -> None:
        entry = self.entry(s, request)
        waited = entry is not None and entry.table is None
        Scheduler.cancel(self, s, request)
        s.left = getattr(s, "left", 0) + waited
        if s.left > ENOUGH_LEFT:
            s.entries, s.left = tidy(s.entries), 0

    return cancel


def _without_preempted(entries: list[Entry]) -> list[Entry]:
    """Who ran before is taken for one that left."""
    return [entry for entry in entries if entry.table is not None or entry.request.state == "WAITING"]


def _turned_round(entries: list[Entry]) -> list[Entry]:
    """The last become the first."""
    for entry in entries:
        entry.order = (entry.order[0], -entry.order[1]) if entry.table is None else entry.order
    return entries


def _output_dropped(self: Scheduler, s: Serving, request: Request) -> None:
    running = self.entry(s, request) is not None
    Scheduler.cancel(self, s, request)
    if running:
        request.output.clear()


def _again_fails(self: Scheduler, request: Request) -> None:
    """A request that is finished cannot be cancelled."""
    raise ValueError("not known")


def _leaks(self: Scheduler, s: Serving, request: Request) -> None:
    entry = self.entry(s, request)
    if entry is None:
        self.check_known(request)
        return
    s.entries.remove(entry)
    request.state = "FINISHED"


def _leaks_prompts(self: Scheduler, s: Serving, request: Request) -> None:
    """A request that is cancelled in the middle of its prompt keeps its blocks."""
    entry = self.entry(s, request)
    if entry is None or entry.decoding or entry.table is None:
        Scheduler.cancel(self, s, request)
        return
    s.entries.remove(entry)
    request.state = "FINISHED"


def _resurrected(self: Scheduler, s: Serving, step: Step, tokens: Sequence[int | None]) -> list[Request]:
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


def _shifted(self: Scheduler, s: Serving, step: Step, tokens: Sequence[int | None]) -> list[Request]:
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


def _all_or_none(self: Scheduler, s: Serving, step: Step, tokens: Sequence[int | None]) -> list[Request]:
    """A step of which a request was cancelled is thrown away, and those behind it in the step are finished with it."""
    chunks = [*step.prefills, *step.decodes]
    gone = any(self.entry(s, chunk.request) is None for chunk in chunks)
    finished = Scheduler.update(self, s, step, tokens)
    for chunk in chunks if gone else ():
        entry = self.entry(s, chunk.request)
        if entry is not None:
            self.close(s, entry)
    return finished


def _queue_of_the_step(self: Scheduler, s: Serving) -> Step:
    step = Scheduler.schedule(self, s)
    s.queue = self.waiting(s)
    return step


def _queue_as_it_was(self: Scheduler, s: Serving, step: Step, tokens: Sequence[int | None]) -> list[Request]:
    """The update writes back the queue that the step began with: who came meanwhile is lost."""
    finished = Scheduler.update(self, s, step, tokens)
    s.entries[:] = [entry for entry in s.entries if entry.table is not None or entry in s.queue]
    return finished


def _all_run(self: Scheduler, s: Serving, step: Step, tokens: Sequence[int | None]) -> list[Request]:
    """An update calls everybody running who is not finished."""
    finished = Scheduler.update(self, s, step, tokens)
    for entry in s.entries:
        entry.request.state = "RUNNING"
    return finished


# states and misuse


def _waiting_until_it_generates(self: Scheduler, s: Serving) -> Step:
    step = Scheduler.schedule(self, s)
    for entry in self.running(s):
        entry.request.state = "RUNNING" if entry.decoding else "WAITING"
    return step


def _waiting_again(self: Scheduler, s: Serving, victim: Entry) -> None:
    """Who is preempted is called WAITING."""
    Scheduler.preempt(self, s, victim)
    victim.request.state = "WAITING"


def _stays_preempted(self: Scheduler, s: Serving) -> None:
    """Who was preempted is called so until the end."""
    preempted = [entry for entry in s.entries if entry.request.state == "PREEMPTED"]
    Scheduler.admit(self, s)
    for entry in preempted:
        entry.request.state = "PREEMPTED"


def _finished_later(self: Scheduler, s: Serving, step: Step, tokens: Sequence[int | None]) -> list[Request]:
    """Who is finished is called so by the next step."""
    finished = Scheduler.update(self, s, step, tokens)
    for request in finished:
        request.state = "RUNNING"
    s.late = finished
    return finished


def _finishes_the_late(self: Scheduler, s: Serving) -> Step:
    for request in getattr(s, "late", ()):
        request.state = "FINISHED"
    return Scheduler.schedule(self, s)


def _while_it_is_known(self: Scheduler, s: Serving, request: Request) -> None:
    """Only those who are not finished are known."""
    if self.entry(s, request) is not None:
        raise ValueError("added before")


def _queued_before_checks(self: Scheduler, s: Serving, request: Request) -> None:
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


def _state_before_checks(self: Scheduler, s: Serving, request: Request) -> None:
    """A second add sets the state before it is refused."""
    state, request.state = request.state, "WAITING"
    if state is None:
        request.state = None
    Scheduler.add(self, s, request)


def _void_after_refusal(self: Scheduler, s: Serving, step: Step, tokens: Sequence[int | None]) -> list[Request]:
    """An update that is refused was the step's only one."""
    last, s.step = s.step, None
    self.check_step(Serving(step=last), step)
    self.check_number([*step.prefills, *step.decodes], tokens)
    self.check_ids([*step.prefills, *step.decodes], tokens)
    s.step = last
    return Scheduler.update(self, s, step, tokens)


def _one_by_one(self: Scheduler, s: Serving, step: Step, tokens: Sequence[int | None]) -> list[Request]:
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


def _extends_the_prompt(self: Scheduler, entry: Entry, token: int) -> None:
    """Ids are appended to the request's own tokens."""
    Scheduler.generate(self, entry, token)
    entry.request.tokens.append(token)


def _consumes(self: Scheduler, s: Serving, entry: Entry, chunk: Chunk) -> None:
    """The prompt is taken off the request's own list, chunk by chunk."""
    Scheduler.take(self, s, entry, chunk)
    del entry.request.tokens[: len(chunk.tokens)]


def _one_queue_for_all(self: Scheduler, manager: Any, max_requests: int, max_prefill_tokens: int) -> Serving:
    """The queue is a default argument."""
    s = Scheduler.fresh(self, manager, max_requests, max_prefill_tokens)
    kind = type(self)
    if "everyone" not in vars(kind):
        kind.everyone = s.entries  # type: ignore[attr-defined]
    s.entries = kind.everyone  # type: ignore[attr-defined]
    return s


def _adds_strangers(self: Scheduler, s: Serving, request: Request) -> None:
    """A request that is not known is added, to be cancelled."""
    if request.state is None:
        self.add(s, request)
        raise ValueError("never added")
    Scheduler.cancel(self, s, request)


def _fault(name: str, text: str, kills: Requirement, change: Change, source: str) -> Fault:
    return Fault(f"scheduler-{name}", text, kills, change, source)


FAULTS: tuple[Fault, ...] = (
    _fault(
        "ids-of-decodes-first",
        "prefills get the ids of decodes in a step of both",
        spec.SCHED_01,
        {"update": _decodes_first},
        f"{COURSE}/05972ff",
    ),
    _fault(
        "row-of-128",
        "an id follows the 128th token of what a request has, and nothing those behind it",
        spec.SCHED_01,
        {"samples": _at_most_128},
        TIRED,
    ),
    _fault(
        "blocks-in-a-byte",
        "block ids have 8 bits",
        spec.SCHED_01,
        {"chunk": _blocks_in_a_byte},
        TIRED,
    ),
    _fault(
        "last-id-for-all",
        "every request of a step gets the id of the last one",
        spec.SCHED_01,
        {"update": _last_of_all},
        f"{METAL}/d20dd02; {MLX_LM}/d9846d37",
    ),
    _fault(
        "eos-emitted", "the id that ends a request comes out", spec.SCHED_02, {"advance": _emits_eos}, "PROPERTIES CB3"
    ),
    _fault("limit-plus-one", "max_tokens + 1 ids come out", spec.SCHED_02, {"done": _limit_past}, "PROPERTIES CB3"),
    _fault(
        "limit-minus-one", "max_tokens - 1 ids come out", spec.SCHED_02, {"done": _limit_short}, f"{COURSE}/05972ff"
    ),
    _fault(
        "limit-of-both", "max_tokens counts the prompt too", spec.SCHED_02, {"done": _limit_of_all}, "PROPERTIES CB3"
    ),
    _fault(
        "first-id-unseen",
        "eos as the first id does not end a request",
        spec.SCHED_02,
        {"ends": _not_the_first},
        "FACTS.md",
    ),
    _fault("end-of-zero", "the id 0 ends nothing", spec.SCHED_02, {"ends": _ends_but_for_zero}, TIRED),
    _fault("one-eos", "only the first id of eos ends a request", spec.SCHED_02, {"ends": _one_eos}, "PROPERTIES CB3"),
    _fault(
        "untold-at-eos",
        "update does not return a request that eos ends",
        spec.SCHED_03,
        {"advance": _untold_at_eos},
        "PROPERTIES CB2",
    ),
    _fault("one-told", "update returns one request at most", spec.SCHED_03, {"update": _one_told}, "PROPERTIES CB2"),
    _fault(
        "overlapping-chunks",
        "a chunk begins with the last token of the one before",
        spec.SCHED_04,
        {"take": _overlaps},
        "PROPERTIES CP2",
    ),
    _fault(
        "leaping-chunks",
        "a chunk that shared its step begins too late the next time",
        spec.SCHED_04,
        {"take": _leaps},
        f"{MLX_LM}/cd367819",
    ),
    _fault(
        "chunks-from-the-start",
        "every chunk of a prompt begins at 0",
        spec.SCHED_04,
        {"start": _from_the_start},
        f"{METAL}/9081de3",
    ),
    _fault(
        "empty-chunks",
        "requests for which no budget is left have a chunk of no tokens",
        spec.SCHED_04,
        {"prefills": _empty_chunks},
        f"{NANO}/commit/8d63a98",
    ),
    _fault(
        "tokens-of-the-start",
        "every chunk has the first tokens of its prompt",
        spec.SCHED_05,
        {"chunk": _tokens_of_the_start},
        f"{MLX_LM}/cd367819",
    ),
    _fault(
        "token-before",
        "a decode feeds the token before the last",
        spec.SCHED_05,
        {"chunk": _token_before},
        f"{COURSE}/05972ff",
    ),
    _fault(
        "past-the-end",
        "the last chunk is counted from the whole prompt, and never samples",
        spec.SCHED_06,
        {"count": _of_the_prompt_s_length},
        f"{MLX_LM}/cd367819",
    ),
    _fault(
        "samples-always",
        "every chunk of a prompt samples",
        spec.SCHED_06,
        {"samples": _always_samples},
        f"{METAL}/dc602da; PROPERTIES CP3",
    ),
    _fault(
        "samples-one-early",
        "a chunk that ends one token before the prompt samples",
        spec.SCHED_06,
        {"samples": _one_past_samples},
        "PROPERTIES CP3",
    ),
    _fault(
        "full-budget-not-last",
        "a prompt that fills the budget does not sample",
        spec.SCHED_06,
        {"chunk": _when_not_full},
        f"{VLLM}/pull/7380",
    ),
    _fault(
        "one-token-too-cached",
        "a prompt that is hit begins one token too late",
        spec.SCHED_07,
        {"allocate": _one_token_more},
        f"{VLLM}/pull/11186",
    ),
    _fault(
        "hit-by-guess",
        "a prompt begins behind what it has in common with one that runs",
        spec.SCHED_07,
        {"allocate": _hit_by_guess},
        f"{METAL}/eb49908",
    ),
    _fault(
        "blocks-of-the-admission",
        "chunks name the blocks that their request was admitted with",
        spec.SCHED_08,
        {"allocate": _blocks_of_the_prompt, "chunk": _shows_the_first_blocks},
        f"{NANO}/commit/82f5ca2",
    ),
    _fault(
        "no-block-at-the-edge",
        "a token that begins a block has none",
        spec.SCHED_08,
        {"makes_room": _not_at_the_edge},
        f"{VLLM}/pull/7380",
    ),
    _fault(
        "computes-hits",
        "what is cached is computed again, into blocks that others read",
        spec.SCHED_08,
        {"allocate": _computes_hits},
        "PROPERTIES PC8",
    ),
    _fault(
        "budget-each",
        "max_prefill_tokens is for each request",
        spec.SCHED_09,
        {"count": _budget_each},
        "PROPERTIES SC5",
    ),
    _fault(
        "budget-of-the-new",
        "chunks of prompts that were begun are not counted",
        spec.SCHED_09,
        {"prefills": _budget_of_the_new},
        f"{POST}; PROPERTIES SC5",
    ),
    _fault(
        "budget-overrun",
        "a prompt is computed whole while any budget is left",
        spec.SCHED_09,
        {"count": _whole_if_begun},
        f"{NANO}/commit/8d63a98",
    ),
    _fault(
        "one-request-more", "max_requests + 1 run", spec.SCHED_10, {"has_place": _one_request_more}, "PROPERTIES SC5"
    ),
    _fault(
        "prompts-not-counted",
        "requests that do not generate yet do not count as running",
        spec.SCHED_10,
        {"has_place": _generating_alone_count},
        "PROPERTIES SC5",
    ),
    _fault(
        "chunk-a-block",
        "a prompt has a chunk for each block in one step",
        spec.SCHED_11,
        {"prefills": _block_by_block},
        "PROPERTIES SC5",
    ),
    _fault(
        "prefill-and-decode",
        "a prompt's last chunk comes with a decode of the same request",
        spec.SCHED_11,
        {"schedule": _twice_where_it_ends},
        f"{COURSE}/00dbf5c",
    ),
    _fault(
        "all-prefills",
        "requests that generate are among the prefills",
        spec.SCHED_12,
        {"schedule": _all_prefills},
        "nano-vLLM post, part 5",
    ),
    _fault(
        "recomputed-as-decodes",
        "a preempted request computes its prompt again as decodes",
        spec.SCHED_12,
        {"preempt": _still_decoding},
        f"{NANO}/commit/82f5ca2",
    ),
    _fault(
        "skips-after-a-victim",
        "the request behind one that needed a block is left out",
        spec.SCHED_13,
        {"decodes": _skips_after_a_victim},
        f"{VLLM}/issues/49097",
    ),
    _fault(
        "decodes-for-sixteen",
        "a step decodes for sixteen requests at most",
        spec.SCHED_13,
        {"decodes": _sixteen_at_most},
        TIRED,
    ),
    _fault(
        "decodes-in-the-budget",
        "no more requests are decoded than the prefill budget has tokens",
        spec.SCHED_13,
        {"decodes": _decodes_in_the_budget},
        "PROPERTIES SC5",
    ),
    _fault(
        "admits-or-decodes",
        "a step that admits decodes for nobody",
        spec.SCHED_14,
        {"schedule": _admits_or_decodes},
        "Sarathi (Agrawal et al. 2023)",
    ),
    _fault(
        "hits-in-the-budget",
        "cached tokens are charged to the budget",
        spec.SCHED_15,
        {"prefills": _hits_in_the_budget},
        f"{NANO}/commit/77dd709",
    ),
    _fault(
        "admission-counts-decodes",
        "nobody is admitted while as many generate as the budget of prompts has tokens",
        spec.SCHED_15,
        {"pending": _pending_of_decodes},
        TIRED,
    ),
    _fault(
        "hits-pending",
        "nobody is admitted while a prompt has so many tokens, cached or not, as the budget",
        spec.SCHED_15,
        {"pending": _hits_pending},
        "PROPERTIES SC5, PC9",
    ),
    _fault(
        "keeps-one-back",
        "one block is never used for admission",
        spec.SCHED_15,
        {"allocate": _keeps_one_back},
        f"{METAL}/9b27db0",
    ),
    _fault("smaller-first", "smaller priorities go first", spec.SCHED_16, {"order": _smaller_first}, "PROPERTIES SC3"),
    _fault(
        "priority-ignored",
        "requests are admitted by arrival alone",
        spec.SCHED_16,
        {"order": _by_arrival},
        "PROPERTIES SC3",
    ),
    _fault(
        "priority-a-level",
        "priorities above 10 are 10, and below -10 are -10",
        spec.SCHED_16,
        {"order": _levels},
        TIRED,
    ),
    _fault("priority-a-flag", "priorities above 1 are 1", spec.SCHED_16, {"order": _sign_alone}, TIRED),
    _fault(
        "last-in-first-out",
        "the last request goes first",
        spec.SCHED_17,
        {"order": _last_in_first_out},
        "PROPERTIES SC3",
    ),
    _fault(
        "shortest-first", "the shortest prompt goes first", spec.SCHED_17, {"order": _shortest_first}, "PROPERTIES SC3"
    ),
    _fault(
        "overtakes",
        "a request that does not fit is passed over",
        spec.SCHED_17,
        {"admit": _overtakes},
        "PROPERTIES SC3, SC4",
    ),
    _fault(
        "arrives-again",
        "a preempted request goes to the end of the queue",
        spec.SCHED_18,
        {"preempt": _arrives_again},
        f"{VLLM}/issues/41951",
    ),
    _fault(
        "arrives-again-the-second-time",
        "a request that is preempted again goes to the end of the queue",
        spec.SCHED_18,
        {"preempt": _arrives_again_the_second_time},
        f"{VLLM}/issues/41951",
    ),
    _fault(
        "to-the-front",
        "a preempted request goes before those of larger priority",
        spec.SCHED_18,
        {"preempt": _to_the_front},
        f"{POST}; PROPERTIES SC3",
    ),
    _fault(
        "preempted-last",
        "requests that never ran go before those that were preempted",
        spec.SCHED_18,
        {"waiting": _preempted_last},
        f"{VLLM}/issues/41951",
    ),
    _fault(
        "first-gives-way",
        "the request that is first in order is preempted",
        spec.SCHED_19,
        {"victim": _first_in_order},
        "PROPERTIES SC3",
    ),
    _fault(
        "prompts-give-way-first",
        "a request that is still computing its prompt is preempted first, whatever its priority",
        spec.SCHED_19,
        {"victim": _prompts_first},
        "PROPERTIES SC3",
    ),
    _fault(
        "gives-up-itself",
        "the request that needs a block is preempted itself",
        spec.SCHED_19,
        {"victim": _itself},
        "PROPERTIES SC3",
    ),
    _fault(
        "longest-gives-way",
        "the request with the most blocks is preempted",
        spec.SCHED_19,
        {"victim": _longest},
        "PROPERTIES SC3",
    ),
    _fault(
        "latest-gives-way",
        "the latest request is preempted, of larger priority too",
        spec.SCHED_19,
        {"victim": _latest_of_any_priority},
        "PROPERTIES SC3",
    ),
    _fault(
        "all-behind",
        "everybody behind is preempted for one block",
        spec.SCHED_20,
        {"decodes": _all_behind},
        "PROPERTIES SC2",
    ),
    _fault(
        "for-those-who-wait",
        "a running request is preempted for one that waits, with blocks to spare",
        spec.SCHED_20,
        {"schedule": _for_those_who_wait},
        "PROPERTIES SC3",
    ),
    _fault(
        "forgets-output",
        "a preempted request begins anew",
        spec.SCHED_21,
        {"preempt": _forgets_output},
        "PROPERTIES SC1",
    ),
    _fault(
        "prompt-alone",
        "a preempted request computes its prompt again, and not its output",
        spec.SCHED_21,
        {"preempt": _prompt_alone},
        f"{NANO}/commit/82f5ca2",
    ),
    _fault(
        "last-id-again",
        "a preempted request generates its last id once more",
        spec.SCHED_21,
        {"preempt": _last_missing},
        "PROPERTIES SC1",
    ),
    _fault(
        "limit-anew",
        "max_tokens counts from the last admission",
        spec.SCHED_21,
        {"preempt": _limit_anew, "done": _limit_since},
        "PROPERTIES SC1, CB3",
    ),
    _fault(
        "stale-hits",
        "a preempted request goes on where it was, in other blocks",
        spec.SCHED_21,
        {"preempt": _remembers_computed, "allocate": _stale_hits},
        f"{NANO}/commit/77dd709; {NANO}/pull/211",
    ),
    _fault(
        "frees-twice",
        "the end of a preempted request gives its blocks back once more",
        spec.SCHED_21,
        {"preempt": _frees_without_forgetting, "close": _frees_twice},
        "FACTS.md; https://github.com/NVIDIA/TensorRT-LLM/pull/14937",
    ),
    _fault(
        "keeps-a-block",
        "a preempted request keeps a block",
        spec.SCHED_22,
        {"preempt": _keeps_blocks},
        "https://github.com/neuralmagic/vllm/pull/92",
    ),
    _fault(
        "chunk-of-the-victim",
        "a request is computed in the step that preempts it",
        spec.SCHED_22,
        {"decodes": _chunk_of_the_victim, "take": _ignores_lost},
        "PROPERTIES SC2",
    ),
    _fault(
        "prompt-lost-in-the-middle",
        "steps are empty when nobody waits and nobody generates",
        spec.SCHED_23,
        {"schedule": _over_without_decodes},
        f"{COURSE}/00dbf5c",
    ),
    _fault(
        "closed-by-preemption",
        "nobody is admitted after a preemption",
        spec.SCHED_24,
        {"may_admit": _closed_for_good},
        "PROPERTIES SC4",
    ),
    _fault(
        "long-prompts-wait",
        "a prompt longer than the budget is never computed",
        spec.SCHED_23,
        {"count": _whole_prompts},
        f"{NANO}/commit/8d63a98",
    ),
    _fault(
        "raises-when-full",
        "a step raises when no block is free",
        spec.SCHED_24,
        {"victim": _raises_when_full},
        f"{METAL}/1a036e8",
    ),
    _fault(
        "preempted-for-ever",
        "a preempted request waits for more room than it was promised",
        spec.SCHED_24,
        {"allocate": _gives_way_to_preempted},
        f"{POST}; PROPERTIES SC4",
    ),
    _fault(
        "null-block", "the first block is not counted", spec.SCHED_25, {"check_fits": _null_block}, f"{METAL}/9b27db0"
    ),
    _fault(
        "slot-of-the-last",
        "the last id is thought to need a slot",
        spec.SCHED_25,
        {"slots": _slot_of_the_last},
        "PROPERTIES SC6",
    ),
    _fault(
        "admitted-with-a-slot",
        "a prompt that fills the pool is never admitted",
        spec.SCHED_25,
        {"allocate": _one_slot_more},
        "PROPERTIES SC6",
    ),
    _fault(
        "never-fits",
        "a request that can never fit is accepted",
        spec.SCHED_26,
        {"check_fits": _unchecked},
        f"FACTS.md; {POST}",
    ),
    _fault(
        "prompt-fits",
        "only the prompt is looked at",
        spec.SCHED_26,
        {"slots": _prompt_s_slots},
        f"{POST}; PROPERTIES SC4",
    ),
    _fault(
        "one-slot-too-many",
        "a request that needs one slot more than there are is accepted",
        spec.SCHED_26,
        {"slots": _slot_too_few},
        "PROPERTIES SC6",
    ),
    _fault(
        "over-admits",
        "prompt and output are counted in whole blocks",
        spec.SCHED_26,
        {"check_fits": _rounded_blocks},
        f"FACTS.md; {POST}",
    ),
    _fault(
        "kept-at-the-end",
        "finished requests keep their blocks",
        spec.SCHED_27,
        {"close": _kept_at_the_end},
        f"{COURSE}/05972ff",
    ),
    _fault(
        "kept-at-eos",
        "requests that eos ends keep their blocks",
        spec.SCHED_27,
        {"close": _kept_at_eos},
        f"{METAL}/bb14a36",
    ),
    _fault(
        "kept-of-one-id",
        "requests of one id keep their blocks",
        spec.SCHED_27,
        {"close": _kept_of_one_id},
        "PROPERTIES PG4",
    ),
    _fault(
        "computed-when-scheduled",
        "what a void step was to compute is left out",
        spec.SCHED_28,
        {"schedule": _computed_when_scheduled},
        f"{NANO}/commit/f64d821",
    ),
    _fault(
        "busy-for-ever",
        "requests of a void step have to wait for its update",
        spec.SCHED_28,
        {"schedule": _busy_for_ever},
        f"{COURSE}/00dbf5c",
    ),
    _fault(
        "back-with-the-update",
        "who was preempted for a void step is lost with it",
        spec.SCHED_28,
        {"schedule": _back_with_the_update, "update": _brings_back},
        "PROPERTIES X9",
    ),
    _fault(
        "lost-with-the-step",
        "prompts of a void step are dropped",
        spec.SCHED_28,
        {"schedule": _lost_with_the_step},
        f"{COURSE}/00dbf5c",
    ),
    _fault(
        "generating-when-scheduled",
        "of a prompt whose last chunk was void only the last token is computed",
        spec.SCHED_28,
        {"schedule": _generating_when_scheduled},
        "PROPERTIES X9",
    ),
    _fault(
        "newest-id-hit",
        "a block is hit when its last id is known and not computed yet",
        spec.SCHED_29,
        {"advance": _marks_the_newest},
        "PROPERTIES PC5",
    ),
    _fault(
        "void-decodes-hit",
        "ids that a void step was to compute are hit",
        spec.SCHED_29,
        {"schedule": _marks_void_decodes},
        "PROPERTIES PC5",
    ),
    _fault(
        "hit-when-scheduled",
        "what is handed out can be hit before it is computed",
        spec.SCHED_29,
        {"schedule": _marked_when_scheduled},
        f"{NANO}/commit/f64d821",
    ),
    _fault(
        "hit-when-admitted",
        "a prompt can be hit as soon as it has blocks",
        spec.SCHED_29,
        {"allocate": _marked_when_admitted},
        f"{NANO}/commit/f64d821",
    ),
    _fault(
        "hit-at-the-first-chunk",
        "a prompt's first chunk has all of it hit",
        spec.SCHED_29,
        {"mark": _marks_the_table},
        f"{NANO}/commit/f64d821",
    ),
    _fault(
        "hit-when-cancelled",
        "a cancelled prompt is hit, computed or not",
        spec.SCHED_29,
        {"cancel": _marked_when_cancelled},
        f"{VLLM}/issues/49377",
    ),
    _fault(
        "tidied-without-preempted",
        "when many have left the queue, preempted requests are lost with them",
        spec.SCHED_24,
        {"cancel": _tidied(_without_preempted)},
        TIRED,
    ),
    _fault(
        "tidied-out-of-order",
        "when many have left the queue, those who stay are in another order",
        spec.SCHED_17,
        {"cancel": _tidied(_turned_round)},
        TIRED,
    ),
    _fault(
        "running-not-cancelled",
        "a running request cannot be cancelled",
        spec.SCHED_30,
        {"cancel": _waiting_alone},
        "PROPERTIES CB2",
    ),
    _fault(
        "waiting-not-cancelled",
        "a waiting request cannot be cancelled",
        spec.SCHED_30,
        {"cancel": _running_alone},
        "PROPERTIES CB2",
    ),
    _fault(
        "cancelled-goes-on", "a cancelled request goes on", spec.SCHED_30, {"cancel": _state_alone}, "PROPERTIES CB5"
    ),
    _fault(
        "cancelled-without-output",
        "cancelling drops the output",
        spec.SCHED_30,
        {"cancel": _output_dropped},
        "PROPERTIES CB2",
    ),
    _fault(
        "cancelled-twice-raises",
        "cancelling a finished request raises",
        spec.SCHED_30,
        {"check_known": _again_fails},
        "PROPERTIES CB2",
    ),
    _fault(
        "cancelled-keeps-blocks",
        "a cancelled request keeps its blocks",
        spec.SCHED_31,
        {"cancel": _leaks},
        f"{COURSE}/00dbf5c",
    ),
    _fault(
        "cancelled-prompt-keeps-blocks",
        "a request that is cancelled in its prompt keeps its blocks",
        spec.SCHED_31,
        {"cancel": _leaks_prompts},
        f"{METAL}/bb14a36",
    ),
    _fault(
        "resurrected",
        "a request that was cancelled meanwhile gets its id and runs again",
        spec.SCHED_32,
        {"update": _resurrected},
        "PROPERTIES CB5",
    ),
    _fault(
        "shifted-ids",
        "after a cancelled request others get each other's ids",
        spec.SCHED_32,
        {"update": _shifted},
        f"{MLX_LM}/d9846d37",
    ),
    _fault(
        "cancelled-with-the-step",
        "all requests of a step end with one that was cancelled meanwhile",
        spec.SCHED_32,
        {"update": _all_or_none},
        "PROPERTIES CB2",
    ),
    _fault(
        "cancelled-told",
        "update returns a request that was cancelled meanwhile",
        spec.SCHED_32,
        {"update": _cancelled_told},
        "PROPERTIES CB2",
    ),
    _fault(
        "queue-of-the-step",
        "a request that came meanwhile is lost",
        spec.SCHED_33,
        {"schedule": _queue_of_the_step, "update": _queue_as_it_was},
        f"{COURSE}/00dbf5c",
    ),
    _fault(
        "all-run",
        "a request that came meanwhile is called running",
        spec.SCHED_33,
        {"update": _all_run},
        "PROPERTIES CB2",
    ),
    _fault(
        "strangers-cancelled",
        "a request that was never added is cancelled",
        spec.SCHED_34,
        {"check_known": _unchecked},
        "PROPERTIES X9",
    ),
    _fault(
        "waiting-until-it-generates",
        "a request is called waiting while its prompt is computed",
        spec.SCHED_35,
        {"schedule": _waiting_until_it_generates},
        "DESIGN.md, section 3",
    ),
    _fault(
        "waiting-again",
        "a preempted request is called waiting",
        spec.SCHED_35,
        {"preempt": _waiting_again},
        "DESIGN.md, section 3",
    ),
    _fault(
        "stays-preempted",
        "a request that runs again is called preempted",
        spec.SCHED_35,
        {"admit": _stays_preempted},
        "DESIGN.md, section 3",
    ),
    _fault(
        "finished-later",
        "a request is called finished one step late",
        spec.SCHED_35,
        {"update": _finished_later, "schedule": _finishes_the_late},
        "PROPERTIES CB5",
    ),
    _fault(
        "empty-prompts", "an empty prompt is accepted", spec.SCHED_36, {"check_prompt": _unchecked}, "PROPERTIES X9"
    ),
    _fault("any-limit", "max_tokens below 1 is accepted", spec.SCHED_36, {"check_limit": _unchecked}, "PROPERTIES X9"),
    _fault(
        "known-by-identity",
        "a new request is refused where it has the identity of one that is gone",
        spec.SCHED_37,
        {"check_new": _known_by_identity},
        "https://docs.python.org/3/library/functions.html#id",
    ),
    _fault("added-twice", "a request can be added again", spec.SCHED_37, {"check_new": _unchecked}, "PROPERTIES CB2"),
    _fault(
        "finished-added",
        "a finished request can be added again",
        spec.SCHED_37,
        {"check_new": _while_it_is_known},
        "PROPERTIES CB2",
    ),
    _fault(
        "queued-before-checks",
        "a request that is refused waits all the same",
        spec.SCHED_38,
        {"add": _queued_before_checks},
        f"{VLLM}/pull/11565; PROPERTIES X9",
    ),
    _fault(
        "state-before-checks",
        "a request that is refused as known is called waiting",
        spec.SCHED_38,
        {"add": _state_before_checks},
        "PROPERTIES X9",
    ),
    _fault(
        "strangers-added",
        "a refused cancel adds the request",
        spec.SCHED_38,
        {"cancel": _adds_strangers},
        "PROPERTIES X9",
    ),
    _fault(
        "any-step", "an update of another step is accepted", spec.SCHED_39, {"check_step": _unchecked}, "PROPERTIES CB2"
    ),
    _fault(
        "any-number",
        "entries that are missing or too many are not noticed",
        spec.SCHED_40,
        {"check_number": _unchecked},
        TIRED,
    ),
    _fault(
        "none-sampled",
        "None is accepted for a chunk that samples",
        spec.SCHED_41,
        {"check_sampled": _unchecked},
        "PROPERTIES X9",
    ),
    _fault(
        "id-unsampled",
        "an id is accepted for a chunk that does not sample",
        spec.SCHED_41,
        {"check_unsampled": _unchecked},
        "PROPERTIES CP3",
    ),
    _fault(
        "void-after-refusal",
        "after an update that was refused the right one is refused too",
        spec.SCHED_42,
        {"update": _void_after_refusal},
        "PROPERTIES X9",
    ),
    _fault(
        "one-by-one",
        "an update that is refused has been taken in part",
        spec.SCHED_42,
        {"update": _one_by_one},
        "PROPERTIES X9",
    ),
    _fault(
        "extends-the-prompt",
        "the output is appended to the caller's tokens",
        spec.SCHED_43,
        {"generate": _extends_the_prompt},
        "PROPERTIES X6",
    ),
    _fault(
        "consumes-the-prompt",
        "the prompt is taken off the caller's tokens",
        spec.SCHED_43,
        {"take": _consumes},
        f"{COURSE}/00dbf5c",
    ),
    _fault(
        "one-queue-for-all", "schedulers share one queue", spec.SCHED_44, {"fresh": _one_queue_for_all}, "PROPERTIES X7"
    ),
    _fault(
        "no-limits-at-all",
        "a scheduler that may do nothing is made",
        spec.SCHED_45,
        {"guard": _unchecked},
        "PROPERTIES X9",
    ),
)


# honest ways


def _prefills_alone(self: Scheduler, s: Serving) -> Step:
    """Prompts first; what generates waits for a step without any."""
    self.admit(s)
    preempted: list[Request] = []
    prefills = self.prefills(s)
    decodes = [] if prefills else self.decodes(s, preempted)
    s.step = Step(prefills=prefills, decodes=decodes, preempted=preempted)
    return s.step


def _decodes_alone(self: Scheduler, s: Serving) -> Step:
    """Who generates goes on to its end; then prompts."""
    preempted: list[Request] = []
    decodes = self.decodes(s, preempted)
    if not decodes and not preempted:
        self.admit(s)
    s.step = Step(prefills=[] if decodes else self.prefills(s), decodes=decodes, preempted=preempted)
    return s.step


def _whole_where_it_fits(self: Scheduler, s: Serving, entry: Entry, budget: int) -> int:
    """A prompt that fits into a budget waits for a step that has room for it."""
    left = int(len(entry.tokens) - entry.computed)
    return left if left <= budget else budget if left > s.budget else 0


def _latest_behind(self: Scheduler, s: Serving, entry: Entry) -> Entry:
    """Of those behind, the one that came last gives way, whatever its priority."""
    behind = [other for other in self.running(s) if other.order > entry.order]
    return max(behind, key=lambda other: other.order[1], default=entry)


def _next_behind(self: Scheduler, s: Serving, entry: Entry) -> Entry:
    return next((other for other in self.running(s) if other.order > entry.order), entry)


def _one_a_step(self: Scheduler, s: Serving) -> None:
    waiting = self.waiting(s)
    if waiting and self.has_place(s) and self.pending(s) < s.budget:
        try:
            self.allocate(s, waiting[0])
        except ValueError:
            return
        waiting[0].request.state = "RUNNING"


def _always_admits(self: Scheduler, s: Serving, preempted: list[Request]) -> bool:
    return True


def _reserves(self: Scheduler, s: Serving, entry: Entry) -> None:
    """A request is admitted only where it can be finished: nobody is ever preempted."""
    size = s.manager.block_size
    promised = sum(blocks_of(self.slots(other.request), size) for other in self.running(s))
    if promised + blocks_of(self.slots(entry.request), size) > s.manager.num_blocks:
        raise ValueError("it could not be finished")
    Scheduler.allocate(self, s, entry)


def _decodes_count(self: Scheduler, s: Serving) -> list[Chunk]:
    """The budget is of all tokens of a step, decodes too, where there are any."""
    decoding = sum(entry.decoding for entry in self.running(s))
    return Scheduler.prefills(self, Serving(**{**vars(s), "budget": max(s.budget - decoding, not decoding)}))


def _shortest_prompts(self: Scheduler, s: Serving) -> list[Chunk]:
    """The budget goes to the prompts of which the least is left."""
    chunks, budget = [], s.budget
    for entry in sorted(self.running(s), key=lambda entry: len(entry.tokens) - entry.computed):
        count = 0 if entry.decoding else self.count(s, entry, budget)
        if count:
            chunks.append(self.chunk(s, entry, count))
            budget -= count
    return chunks


def _first_chunk_alone(self: Scheduler, s: Serving, entry: Entry) -> None:
    """Blocks for the first chunk are enough to begin."""
    entry.table = s.manager.allocate(entry.tokens[: s.budget])
    entry.computed = entry.table.num_cached_tokens


def _room_for_chunks(self: Scheduler, s: Serving) -> Step:
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


def _own_memory(self: Scheduler, manager: Any, max_requests: int, max_prefill_tokens: int) -> Serving:
    return Scheduler.fresh(self, _OwnBlocks(manager), max_requests, max_prefill_tokens)


def _kept_while_computed(self: Scheduler, s: Serving, request: Request) -> None:
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


def _updates_then_frees(self: Scheduler, s: Serving, step: Step, tokens: Sequence[int | None]) -> list[Request]:
    finished = Scheduler.update(self, s, step, tokens)
    _frees_the_doomed(self, s)
    return finished


def _frees_then_schedules(self: Scheduler, s: Serving) -> Step:
    _frees_the_doomed(self, s)
    return Scheduler.schedule(self, s)


def _rolls_back(self: Scheduler, s: Serving) -> Step:
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


def _raises_when_idle(self: Scheduler, s: Serving) -> Step:
    if not s.entries:
        raise ValueError("nothing to do")
    return Scheduler.schedule(self, s)


def _variant(name: str, text: str, change: Change, *unmet: str) -> Variant:
    return Variant(f"scheduler-{name}", text, "Scheduler", change, unmet=unmet)


VARIANTS: tuple[Variant, ...] = (
    _variant(
        "prefill-first", "steps of prompts alone, then steps of decodes", {"schedule": _prefills_alone}, "SCHED-14"
    ),
    _variant("decode-first", "no prompt while anybody generates", {"schedule": _decodes_alone}, "SCHED-15"),
    _variant(
        "whole-where-it-fits",
        "chunks only of prompts that are longer than a budget",
        {"count": _whole_where_it_fits},
        "SCHED-15",
    ),
    _variant("latest-behind", "of those behind, the latest is preempted", {"victim": _latest_behind}),
    _variant("next-behind", "of those behind, the first in order is preempted", {"victim": _next_behind}),
    _variant("one-a-step", "one admission a step", {"admit": _one_a_step}, "SCHED-15"),
    _variant("admits-after-preempting", "admission in steps that preempt too", {"may_admit": _always_admits}),
    _variant("reserves", "admission only where the end is sure", {"allocate": _reserves}, "SCHED-15"),
    _variant("decodes-count", "decodes are part of the budget", {"prefills": _decodes_count}, "SCHED-15"),
    _variant("shortest-prompts", "the budget goes to the shortest prompts", {"prefills": _shortest_prompts}),
    _variant(
        "chunk-by-chunk",
        "blocks chunk by chunk",
        {"allocate": _first_chunk_alone, "schedule": _room_for_chunks},
        "SCHED-15",
    ),
    _variant("own-memory", "a free list of its own in the place of the block manager", {"fresh": _own_memory}),
    _variant(
        "freed-after-the-step",
        "blocks of requests that were cancelled meanwhile stay until the update",
        {"cancel": _kept_while_computed, "update": _updates_then_frees, "schedule": _frees_then_schedules},
    ),
    _variant("raises-when-idle", "no step when there is nothing to do", {"schedule": _raises_when_idle}),
    _variant("rolls-back", "what a void step admitted waits again", {"schedule": _rolls_back}),
)
