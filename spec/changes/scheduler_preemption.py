"""The steps that faults and honest variants have in the place of the oracle's: see `spec/faults/scheduler_preemption.py`."""

from __future__ import annotations

from typing import Any

from inferspec.spec.scheduler import Chunk, Entry, Scheduler, Serving, Step
from inferspec.spec.serving import Request


def eight_times(self: Scheduler, s: Serving, victim: Entry) -> None:
    """Who is preempted for the ninth time is given up."""
    Scheduler.preempt(self, s, victim)
    victim.times = getattr(victim, "times", 0) + 1
    if victim.times > 8:
        self.close(s, victim)


def remembers_half(self: Scheduler, s: Serving, victim: Entry) -> None:
    """How far what it had was computed again is kept when a request is preempted meanwhile."""
    half = victim.computed if victim.request.output and not victim.decoding else 0
    Scheduler.preempt(self, s, victim)
    victim.half = half


def goes_on_from_half(self: Scheduler, s: Serving, entry: Entry) -> None:
    Scheduler.allocate(self, s, entry)
    entry.computed = max(entry.computed, vars(entry).pop("half", 0))


def halves_lost(self: Scheduler, s: Serving, entry: Entry) -> None:
    """What a resumed request has computed again in part is lost where another one leaves."""
    Scheduler.close(self, s, entry)
    for other in s.entries:
        if other.table is not None and other.request.output and not other.decoding:
            other.computed = 0


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


# what is computed again


def never_marks(self: Scheduler, s: Serving, entry: Entry) -> None:
    """Nobody is told what was computed."""


def marks_going_on(self: Scheduler, s: Serving, entry: Entry, chunk: Chunk, token: int | None) -> bool:
    """What a step computed is told when the request goes on."""
    table, computed = entry.table, chunk.start + len(chunk.tokens)
    entry.computed = computed
    if token is None:
        s.manager.mark_computed(table, computed)
        return False
    entry.decoding = True
    done = self.done(entry, token)
    if not self.ends(entry, token):
        self.generate(entry, token)
    if done:
        self.close(s, entry)
    else:
        s.manager.mark_computed(table, computed)
    return done


def marks_prompts_that_went_on(self: Scheduler, s: Serving, entry: Entry) -> None:
    """Prompts are told when their output begins to be computed."""
    if entry.computed > len(entry.request.tokens):
        s.manager.mark_computed(entry.table, entry.computed)


def marks_prompts(self: Scheduler, s: Serving, entry: Entry) -> None:
    """Blocks of the output are not told."""
    s.manager.mark_computed(entry.table, min(entry.computed, len(entry.request.tokens)))


def marks_whole_prompts(self: Scheduler, s: Serving, entry: Entry) -> None:
    """Chunks of a prompt are told with the last of them."""
    if entry.computed == len(entry.tokens):
        Scheduler.mark(self, s, entry)


def notes_what_is_computed(self: Scheduler, s: Serving, entry: Entry) -> None:
    vars(s).setdefault("late", []).append((entry, entry.table, entry.computed))


def marks_after_admission(self: Scheduler, s: Serving) -> Step:
    """What a step computed is told when those who came meanwhile were admitted to the next one."""
    step = Scheduler.schedule(self, s)
    for entry, table, computed in vars(s).pop("late", ()):
        if entry in s.entries and entry.table is table:
            s.manager.mark_computed(table, computed)
    return step


def marks_when_released(self: Scheduler, s: Serving, entry: Entry) -> None:
    Scheduler.mark(self, s, entry)
    Scheduler.release(self, s, entry)


def marks_at_ends_of_blocks(self: Scheduler, s: Serving, entry: Entry) -> None:
    """What is computed is told when it ends with a block, which a chunk may pass by."""
    if entry.computed % s.manager.block_size == 0:
        s.manager.mark_computed(entry.table, entry.computed)


def marks_until_one_ends(self: Scheduler, s: Serving, step: Step, tokens: Any) -> list[Request]:
    """The rest of a step is told of when its requests go on."""
    s.over = False
    return Scheduler.update(self, s, step, tokens)


def notes_an_end(self: Scheduler, s: Serving, entry: Entry) -> None:
    s.over = True
    Scheduler.close(self, s, entry)


def marks_before_an_end(self: Scheduler, s: Serving, entry: Entry) -> None:
    if not vars(s).get("over"):
        Scheduler.mark(self, s, entry)


def marks_once(self: Scheduler, s: Serving, entry: Entry) -> None:
    """What is computed again was told of before."""
    if entry.decoding or not entry.request.output:
        Scheduler.mark(self, s, entry)


def marks_what_is_new(self: Scheduler, s: Serving, entry: Entry) -> None:
    """Blocks are counted that were told of, and the count outlives them."""
    blocks = entry.computed // s.manager.block_size
    if blocks > vars(entry).get("told", 0):
        entry.told = blocks
        Scheduler.mark(self, s, entry)


def marks_all_but_the_last(self: Scheduler, s: Serving, entry: Entry) -> None:
    """The last token is thought to be yet to be computed."""
    s.manager.mark_computed(entry.table, max(0, entry.computed - 1))


# who is told to be preempted


def told_while_they_wait(self: Scheduler, s: Serving) -> Step:
    """Who was preempted is told in every step until it runs again."""
    step = Scheduler.schedule(self, s)
    waiting = [entry.request for entry in self.waiting(s) if entry.request.state == "PREEMPTED"]
    step.preempted += [request for request in waiting if request not in step.preempted]
    return step


def told_in_the_next_step_too(self: Scheduler, s: Serving) -> Step:
    """The list of a step begins with that of the step before."""
    step = Scheduler.schedule(self, s)
    before, s.told = vars(s).get("told", []), list(step.preempted)
    step.preempted += [r for r in before if r.state == "PREEMPTED" and r not in step.preempted]
    return step


def told_with_the_next(self: Scheduler, s: Serving) -> Step:
    """A step that preempts tells all who are preempted, who have been for long too."""
    step = Scheduler.schedule(self, s)
    waiting = [entry.request for entry in self.waiting(s) if entry.request.state == "PREEMPTED"]
    if step.preempted:
        step.preempted += [request for request in waiting if request not in step.preempted]
    return step


def told_twice(self: Scheduler, s: Serving) -> Step:
    """Who is preempted is told by who preempts it, and by the loop around that."""
    step = Scheduler.schedule(self, s)
    step.preempted += step.preempted
    return step
