"""The steps that faults and honest variants have in the place of the oracle's: see `spec/faults/scheduler.py`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from inferspec.spec.ends import DROPPED, KEPT
from inferspec.spec.scheduler import Chunk, Entry, Scheduler, Serving, Step
from inferspec.spec.serving import Request


def unchecked(self: Scheduler, *rest: Any) -> None:
    """Nothing is refused."""


def same_step_without_ids(self: Scheduler, s: Serving, step: Step) -> None:
    """The last step may be handed back again if no id came of it."""
    came = any(chunk.samples for chunk in (*step.prefills, *step.decodes))
    if step is not s.step and (came or step is not getattr(s, "last", None)):
        raise ValueError("not the last step")
    s.last = step


def room_before_ids(self: Scheduler, s: Serving, entry: Entry) -> bool:
    """Blocks are asked for with zeros in the place of ids that are not known yet, and never told these."""
    return _room_for(self, s, entry, [0] * (len(entry.tokens) - entry.table.num_tokens))


def first_id_again(self: Scheduler, s: Serving, entry: Entry) -> bool:
    """Of the output as many ids are appended as are missing: its first ones."""
    ids = entry.request.output[: len(entry.tokens) - entry.table.num_tokens]
    return _room_for(self, s, entry, ids)


def _room_for(self: Scheduler, s: Serving, entry: Entry, ids: Sequence[int]) -> bool:
    known, entry.tokens = entry.tokens, [*entry.tokens[: entry.table.num_tokens], *ids]
    try:
        return Scheduler.makes_room(self, s, entry)
    finally:
        entry.tokens = known


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


def untold_as_another_gave_way(self: Scheduler, s: Serving, step: Step, tokens: Sequence[int | None]) -> list[Request]:
    """Who ends in a step that another one gave way for is not told."""
    finished = Scheduler.update(self, s, step, tokens)
    return [] if step.preempted else finished


def cancelled_told(self: Scheduler, s: Serving, step: Step, tokens: Sequence[int | None]) -> list[Request]:
    """Whoever is not known any more was finished: a request that was cancelled meanwhile is told too."""
    gone = [chunk.request for chunk in (*step.prefills, *step.decodes) if self.entry(s, chunk.request) is None]
    return [*Scheduler.update(self, s, step, tokens), *gone]


def cancelled_told_while_others_wait(
    self: Scheduler, s: Serving, step: Step, tokens: Sequence[int | None]
) -> list[Request]:
    """Who was cancelled meanwhile, and had ids by then, is told where more than one waits."""
    gone = [chunk.request for chunk in step.decodes if self.entry(s, chunk.request) is None]
    told = Scheduler.update(self, s, step, tokens)
    return [*told, *gone] if len(self.waiting(s)) > 1 else told


def ids_of_128_rows(self: Scheduler, s: Serving, step: Step, tokens: Sequence[int | None]) -> list[Request]:
    """The buffers of a step have 128 rows, which are used again from the first on."""
    ids = [None if token is None else tokens[row % 128] for row, token in enumerate(tokens)]
    whole = [old if new is None else new for old, new in zip(tokens, ids, strict=True)]
    return Scheduler.update(self, s, step, whole)


def eight_ends(self: Scheduler, entry: Entry, token: int) -> bool:
    return token in entry.request.eos[:8]


def ends_in_16_bits(self: Scheduler, entry: Entry, token: int) -> bool:
    return token % 2**16 in [id % 2**16 for id in entry.request.eos]


def at_most_256_ids(self: Scheduler, entry: Entry, token: int) -> bool:
    return Scheduler.done(self, entry, token) or len(entry.request.output) + 1 >= 256


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
