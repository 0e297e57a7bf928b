"""The steps that faults have in the place of the oracle's: see `spec/faults/engine_many.py`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from inferspec.spec.changes.engine_guesses import burst
from inferspec.spec.contract import Change
from inferspec.spec.engine import Engine
from inferspec.spec.engine_model import Request, State
from inferspec.spec.transformer import Memory

Settle = Callable[[Engine, State, Request, int, np.ndarray, list[int], int], None]

EIGHT = 8
"""Requests, or guesses of one, that a buffer was made for."""


def by_place(settle: Settle) -> Change:
    """A step in which what is taken of a row depends on its place among the rows."""

    def step(self: Engine, m: State) -> list[tuple[int, int]]:
        m.emitted = []
        self.admit(m)
        rows = [(r, n, self.feed(m, r, n, guesses), guesses) for r, n, guesses in self.plan(m)]
        for place, (r, n, logits, guesses) in enumerate(rows):
            settle(self, m, r, n, logits, guesses, place)
        return list(m.emitted)

    return {"step": step}


# many requests


def unchecked(self: Engine, m: State, r: Request, n: int, logits: np.ndarray, guesses: list[int], place: int) -> None:
    """Guesses of rows past the eighth count as right."""
    if place >= EIGHT and guesses:
        logits = logits.copy()
        logits[np.arange(n - 1, n - 1 + len(guesses)), guesses] = np.inf
    Engine.settle(self, m, r, n, logits, guesses)


def row_of_the_first_guess(
    self: Engine, m: State, r: Request, n: int, logits: np.ndarray, guesses: list[int], place: int
) -> None:
    """Of rows past the eighth each guess is verified by the first row of logits."""
    past = place >= EIGHT and guesses
    Engine.settle(self, m, r, n, np.repeat(logits[:1], len(logits), 0) if past else logits, guesses)


def endless(self: Engine, m: State, r: Request, n: int, logits: np.ndarray, guesses: list[int], place: int) -> None:
    """Ends of rows past the eighth are not looked at."""
    eos = r.eos
    r.eos = () if place >= EIGHT else eos
    Engine.settle(self, m, r, n, logits, guesses)
    r.eos = eos


def logits_of_the_eighth(
    self: Engine, m: State, r: Request, n: int, logits: np.ndarray, guesses: list[int], place: int
) -> None:
    """Logits are kept of eight rows; those past them read the last of these."""
    Engine.settle(self, m, r, n, logits, guesses)
    if place < EIGHT:
        m.last_logits = r.logits
    else:
        r.logits = m.last_logits


def other_sums_of_many(
    self: Engine, m: State, model: Any, tokens: Any, memory: Memory, guessing: bool = False
) -> np.ndarray:
    """Products of more rows than four are another kernel's, which sums in another order."""
    return Engine.called(self, m, model, tokens, memory, guessing) * (1 + (len(m.running) > 4) * 2.0**-20)


def counts_the_preempted(self: Engine, m: State) -> None:
    m.preempted = 0
    Engine.admit(self, m)


def three_preempted(self: Engine, m: State, r: Request) -> None:
    """What was generated is kept of three that are preempted in a step."""
    Engine.preempt(self, m, r)
    m.preempted += 1
    if m.preempted > 3:
        r.tokens = list(r.prompt)


def last_moved_up(self: Engine, m: State, name: int) -> None:
    """Where one of more than eight leaves, the last takes its row, and the table in it."""
    r, running = self.known(m, name), list(m.running)
    table = list(r.table)
    Engine.cancel(self, m, name)
    if len(running) > EIGHT and r in running[:-1]:
        m.moved = running[-1], table


def table_of_who_left(self: Engine, m: State, r: Request) -> list[int]:
    mover, table = m.__dict__.get("moved", (None, []))
    if mover is not r or len(table) > len(r.table):
        return list(r.table)
    return [*table, *r.table[len(table) :]]


def rows_past_eight_keep_pages(self: Engine, m: State, name: int) -> None:
    """Of a row past the eighth nothing is given back when its request is cancelled."""
    r = self.known(m, name)
    if r in m.running[EIGHT:]:
        r.cancelled = r.finished = True
        m.running.remove(r)
    else:
        Engine.cancel(self, m, name)


def last_ids_lost_past_eight(self: Engine, m: State, r: Request, n: int, guesses: list[int]) -> np.ndarray:
    """A call that fails takes the last token of the rows past the eighth."""
    try:
        return Engine.feed(self, m, r, n, guesses)
    except Exception:
        for other in m.running[EIGHT:]:
            if other.out:
                other.tokens = other.tokens[:-1]
        raise


def six_prompts_counted(self: Engine, m: State) -> list[tuple[Request, int, list[int]]]:
    """The budget counts the tokens of six prompts."""
    left, rows, counted = m.a.max_prefill_tokens, [], 0
    for r in list(m.running):
        if r not in m.running:
            continue
        n = self.share_of(m, r, left)
        if not self.decodes(r) and counted < 6:
            left, counted = left - n, counted + 1
        guessed = self.most_guesses(m, r, n)
        if n and self.make_room(m, r, r.computed + n + guessed):
            rows.append((r, n, self.guesses(m, r, guessed)))
    return [row for row in rows if row[0] in m.running]


# many pages, and ids


def counts_the_taken(self: Engine, m: State) -> list[tuple[int, int]]:
    m.taken = 0
    return Engine.step(self, m)


def sixteen_forgotten(self: Engine, m: State, page: int) -> None:
    """Of the pages that a step takes what sixteen held is forgotten; the others are hit as if they held it still."""
    m.taken = m.__dict__.get("taken", 0) + 1
    if m.taken <= 16:
        Engine.forget(self, m, page)
    else:
        m.content.pop(page, None)


def pages_of_sixteen_ids(self: Engine, m: State, r: Request) -> None:
    """Of an output the pages of sixteen ids are known: those of ids past them are cached as the ones of sixteen ids before."""
    for index in range(self.written(m, r)):
        key, place = self.key(m, r.tokens, index), index
        if (index + 1) * m.a.page_size > len(r.prompt) + 16:
            place -= 16 // m.a.page_size
        page = r.table[place]
        if key not in m.cached:
            m.cached[key] = page
            m.content.setdefault(page, key)


def forgets_all_of_a_page(self: Engine, m: State, page: int) -> None:
    m.content.pop(page, None)
    for key in [key for key, held in m.cached.items() if held == page]:
        del m.cached[key]


# many guesses


def eight_at_most(self: Engine, m: State, r: Request, n: int) -> int:
    return min(EIGHT, Engine.most_guesses(self, m, r, n))


def _eight_given(self: Engine, m: State, r: Request, chosen: list[int], right: int, rows: np.ndarray) -> None:
    """A step gives eight ids of a request; those past them come out as the last of these."""
    for place in range(right + 1):
        if not r.finished:
            self.emit(m, r, chosen[min(place, EIGHT - 1)], rows[place])


EIGHT_GIVEN = burst(_eight_given)
