"""The steps that faults and honest variants have in the place of the oracle's: see `spec/faults/scheduler.py`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from inferspec.spec.block_manager import blocks_of
from inferspec.spec.ends import DROPPED, KEPT
from inferspec.spec.scheduler import Chunk, Entry, Scheduler, Serving, Step
from inferspec.spec.serving import Request


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


def looks_at_the_output(self: Scheduler, s: Serving, entry: Entry, chunk: Chunk, token: int | None) -> bool:
    """Every id comes out, and then it is looked at."""
    self.take(s, entry, chunk)
    if token is None:
        return False
    entry.decoding = True
    self.generate(entry, token)
    done = self.ends(entry, token) or len(entry.request.output) == entry.request.max_tokens
    if done:
        self.close(s, entry)
    return done


def drops_eos(self: Scheduler, s: Serving, entry: Entry, chunk: Chunk, token: int | None) -> bool:
    s.ends = DROPPED
    return Scheduler.advance(self, s, entry, chunk, token)


def keeps_eos_of_the_resumed(self: Scheduler, s: Serving, entry: Entry, chunk: Chunk, token: int | None) -> bool:
    """Of who computes prompt and output again the id that follows is taken without a look, and looked at afterwards."""
    s.ends = KEPT if entry.request.output and not entry.decoding else DROPPED
    return Scheduler.advance(self, s, entry, chunk, token)


def keeps_a_late_eos(self: Scheduler, s: Serving, entry: Entry, chunk: Chunk, token: int | None) -> bool:
    s.ends = KEPT if len(entry.request.output) >= 8 else DROPPED
    return Scheduler.advance(self, s, entry, chunk, token)


def drops_eos_at_the_limit(self: Scheduler, s: Serving, entry: Entry, chunk: Chunk, token: int | None) -> bool:
    """The limit is looked at first, and then the end is not any more."""
    s.ends = DROPPED if len(entry.request.output) + 1 == entry.request.max_tokens else KEPT
    return Scheduler.advance(self, s, entry, chunk, token)


def drops_eos_after_the_prompt(self: Scheduler, s: Serving, entry: Entry, chunk: Chunk, token: int | None) -> bool:
    """The id that follows the prompt is taken on another way than those of decodes."""
    s.ends = KEPT if entry.request.output else DROPPED
    return Scheduler.advance(self, s, entry, chunk, token)


def ends_one_later(self: Scheduler, entry: Entry, token: int) -> bool:
    """The last id of the output is looked at before the new one is there."""
    return bool(entry.request.output) and entry.request.output[-1] in entry.request.eos


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


def ends_with_repeats(self: Scheduler, entry: Entry, token: int) -> bool:
    """An id that came sixteen times in a row ends a request when it comes again."""
    output = entry.request.output
    return Scheduler.ends(self, entry, token) or (len(output) >= 16 and set(output[-16:]) == {token})


def drops_repeats(self: Scheduler, entry: Entry, token: int) -> None:
    """What comes a third time in a row is computed and not given."""
    before = list(entry.request.output[-2:])
    Scheduler.generate(self, entry, token)
    if before == [token, token]:
        entry.request.output = [*entry.request.output[:-1]]


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


# honest ways


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


def raises_when_idle(self: Scheduler, s: Serving) -> Step:
    if not s.entries:
        raise ValueError("nothing to do")
    return Scheduler.schedule(self, s)
