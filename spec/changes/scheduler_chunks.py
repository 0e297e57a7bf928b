"""The steps that faults and honest variants have in the place of the oracle's: see `spec/faults/scheduler_chunks.py`."""

from __future__ import annotations

from collections.abc import Sequence

from inferspec.spec.block_manager import blocks_of
from inferspec.spec.scheduler import Chunk, Entry, Scheduler, Serving, Step
from inferspec.spec.serving import Request

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


def always_for_one_id(self: Scheduler, entry: Entry, end: int) -> bool:
    return bool(entry.request.max_tokens == 1) or Scheduler.samples(self, entry, end)


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


def short_where_others_give_way(self: Scheduler, s: Serving) -> Step:
    """In a step in which one gives way the next block of a prompt that is computed in chunks is not taken yet."""
    step = Scheduler.schedule(self, s)
    for chunk in step.prefills if step.preempted else ():
        if not chunk.samples:
            blocks = blocks_of(chunk.start + len(chunk.tokens), s.manager.block_size)
            chunk.block_ids = list(chunk.block_ids)[: blocks - 1]
    return step


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


def blocks_in_a_byte(self: Scheduler, s: Serving, entry: Entry, count: int) -> Chunk:
    """Block ids of 8 bits."""
    chunk = Scheduler.chunk(self, s, entry, count)
    chunk.block_ids = [block % 256 for block in chunk.block_ids]
    return chunk


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


def gives_up_after_64_chunks(self: Scheduler, s: Serving, entry: Entry, chunk: Chunk, token: int | None) -> bool:
    """A prompt that takes more steps is given up."""
    entry.steps = getattr(entry, "steps", 0) + (token is None)
    if entry.steps <= 64:
        return Scheduler.advance(self, s, entry, chunk, token)
    self.take(s, entry, chunk)
    self.close(s, entry)
    return True


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
