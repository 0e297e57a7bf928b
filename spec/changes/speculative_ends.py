"""Where the ids end, at an id or at the limit: see `spec/faults/speculative_ends.py`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from inferspec.spec.duet import Player, Request
from inferspec.spec.ends import DROPPED, KEPT
from inferspec.spec.speculative import Run, SpeculativeGenerate

Loop = SpeculativeGenerate


def looks_at_the_last(self: Loop, run: Run) -> Iterator[Any]:
    """Of the ids of a round only the last one can end the ids."""
    while run.out < run.request.max_tokens:
        self.draft(run, self.count(run))
        ids = self.verified(run, self.score(run))
        run.sequence = run.sequence + ids
        self.rewind(run)
        for token in self.shown(run, ids[:-1]):
            run.out += 1
            yield token
        if ids[-1] in run.request.eos:
            return
        if run.out < run.request.max_tokens:
            run.out += 1
            yield ids[-1]


def zero_is_none(self: SpeculativeGenerate, run: Run, token: int) -> bool:
    """if token and …: an id of 0 is taken for none."""
    return bool(token) and SpeculativeGenerate.stops(self, run, token)


def endless_when_drawn(self: SpeculativeGenerate, run: Run, token: int) -> bool:
    """The path for temperatures above 0 has no look at eos."""
    return run.request.temperature == 0 and SpeculativeGenerate.stops(self, run, token)


def emits_the_end(self: Loop, run: Run) -> Iterator[Any]:
    eos, run.request.eos = run.request.eos, ()
    for token in Loop.ids(self, run):
        yield token
        if token in eos:
            return


def drops_the_end(self: Loop, run: Run) -> Iterator[Any]:
    run.request.ends = DROPPED
    return Loop.ids(self, run)


def keeps_the_end_without_drafts(self: Loop, run: Run) -> Iterator[Any]:
    """Where nothing is to be drafted it is another loop, which looks at an id once it came out."""
    if not run.request.num_draft_tokens:
        run.request.ends = KEPT
    return Loop.ids(self, run)


def keeps_a_late_end(self: Loop, run: Run, token: int) -> bool:
    """The first dozen ids are looked at before they come out, and others after that."""
    stops = Loop.stops(self, run, token)
    if run.out >= 12:
        run.request.ends = KEPT
    return stops


def begins_to_count(self: Loop, run: Run, ids: list[int]) -> list[int]:
    vars(run)["looked_at"] = 0
    return Loop.shown(self, run, ids)


def six_looked_at(self: Loop, run: Run, token: int) -> bool:
    """Of the ids of a round only the first six can end the ids."""
    vars(run)["looked_at"] += 1
    return bool(vars(run)["looked_at"] <= 6) and Loop.stops(self, run, token)


def keeps_the_end_of_the_second(self: Loop, players: tuple[Player, Player], request: Request) -> Iterator[Any]:
    """What is known of a request is the target's, and the second comes upon it."""
    target, _ = players
    known = getattr(target, "known", 0)
    target.known = known + 1  # type: ignore[attr-defined]
    return Loop.begin(self, players, replace(request, ends=KEPT if known else request.ends))


def drops_an_end_that_was_drafted(self: Loop, run: Run) -> Iterator[Any]:
    """Of a round's ids the last one comes out, whatever it is; the others are looked at first."""
    while run.out < run.request.max_tokens:
        self.draft(run, self.count(run))
        ids = self.verified(run, self.score(run))
        run.sequence = run.sequence + ids
        self.rewind(run)
        for number, token in enumerate(self.shown(run, ids), 1):
            if self.stops(run, token) and number < len(ids):
                return
            run.out += 1
            yield token
            if self.stops(run, token):
                return


def keeps_the_end_twice(self: Loop, run: Run) -> Iterator[Any]:
    """The loop gives the end, and what comes after the loop gives it again."""
    token = None
    for token in Loop.ids(self, run):
        yield token
    if token in run.request.eos:
        yield token


def keeps_what_was_drafted(self: Loop, run: Run) -> Iterator[Any]:
    """The ids of a round come out together, and then the end is looked for."""
    while run.out < run.request.max_tokens:
        self.draft(run, self.count(run))
        ids = self.shown(run, self.verified(run, self.score(run)))
        run.sequence = run.sequence + ids
        self.rewind(run)
        run.out += len(ids)
        yield from ids
        if any(self.stops(run, token) for token in ids):
            return


def keeps_the_end_past_the_limit(self: Loop, run: Run, ids: list[int]) -> list[int]:
    """The limit is not for the end: where a round has it just past that, it comes out."""
    shown = Loop.shown(self, run, ids)
    return [*shown, *(token for token in ids[len(shown) :][:1] if token in run.request.eos)]


class GoesOn:
    """An iterator of its own that forgets that it has come to its end."""

    def __init__(self, loop: Loop, run: Run) -> None:
        self.eos, run.request.eos = run.request.eos, ()
        self.ids = Loop.ids(loop, run)

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        token = next(self.ids)
        if token in self.eos:
            raise StopIteration
        return token


def drops_the_run(self: Loop, run: Run, ids: list[int]) -> list[int]:
    """A round with an end of sequence in it gives nothing."""
    ends = [token for token in ids if token in run.request.eos]
    return ends[:1] or Loop.shown(self, run, ids)


def first_end_alone(self: Loop, run: Run, token: int) -> bool:
    return token in run.request.eos[:1]


def ends_modulo_2_to_16(self: Loop, run: Run, token: int) -> bool:
    return token % 2**16 in [id % 2**16 for id in run.request.eos]


def first_ends_alone(room: int) -> Any:
    """What is past a buffer of so many is cut off."""

    def stops(self: Loop, run: Run, token: int) -> bool:
        return token in run.request.eos[:room]

    return stops


def overruns(self: Loop, run: Run) -> int:
    return run.request.num_draft_tokens


def whole_rounds(self: Loop, run: Run) -> Iterator[Any]:
    """The limit is looked at between rounds."""
    while run.out < run.request.max_tokens:
        self.draft(run, run.request.num_draft_tokens)
        ids = self.verified(run, self.score(run))
        run.sequence = run.sequence + ids
        self.rewind(run)
        for token in ids:
            if token in run.request.eos:
                return
            run.out += 1
            yield token


def stops_repeating(self: SpeculativeGenerate, run: Run) -> Iterator[Any]:
    came: list[Any] = []
    for token in SpeculativeGenerate.ids(self, run):
        came = [*came, token] if token in came else [token]
        if len(came) > 30:
            return
        yield token


def above_zero(self: SpeculativeGenerate, number: float) -> None:
    if not 0 < number < 1:
        raise ValueError(f"uniforms hold {number}; they take numbers in (0, 1)")


def drops_what_is_past(self: Loop, run: Run) -> Iterator[Any]:
    """A round that would pass the limit gives nothing."""
    while run.out < run.request.max_tokens:
        self.draft(run, run.request.num_draft_tokens)
        ids = self.verified(run, self.score(run))
        run.sequence = run.sequence + ids
        self.rewind(run)
        if run.out + len(ids) > run.request.max_tokens:
            return
        for token in ids:
            if token in run.request.eos:
                return
            run.out += 1
            yield token


def one_for_none(self: Loop, run: Run) -> Iterator[Any]:
    run.request.max_tokens = max(run.request.max_tokens, 1)
    return Loop.ids(self, run)


def of_the_first_64(self: Loop, run: Run, token: int) -> bool:
    """So many ids have room in the buffer that is looked at."""
    return run.out < 64 and Loop.stops(self, run, token)


def round_noted(self: Loop, run: Run, ids: list[int]) -> list[int]:
    shown = Loop.shown(self, run, ids)
    vars(run)["shown"] = shown
    return shown


def first_in_the_list(self: Loop, run: Run, token: int) -> bool:
    """Each end is looked for in the whole round, in the order in which they are listed."""
    found = [end for end in run.request.eos if end in vars(run)["shown"]]
    return token in found[:1]


def last_of_a_round(self: Loop, run: Run, token: int) -> bool:
    """A round is searched from its end."""
    ends = [other for other in vars(run)["shown"] if Loop.stops(self, run, other)]
    return token in ends[-1:]
