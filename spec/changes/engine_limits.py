"""The steps that faults and honest variants have in the place of the oracle's: see `spec/faults/engine_limits.py`."""

from __future__ import annotations

from typing import Any

import numpy as np

from inferspec.spec.contract import Change
from inferspec.spec.engine import Engine
from inferspec.spec.engine_decoder import forward
from inferspec.spec.engine_model import Request, State


def one_too_many(self: Engine, r: Request) -> int:
    return int(r.limit + 1)


def never_at_once(self: Engine, r: Request) -> bool:
    return False


def ends_with_the_prompt(self: Engine, r: Request, token: int) -> bool:
    return token in r.eos or any(x in r.eos for x in r.prompt)


def first_of_them(self: Engine, r: Request, token: int) -> bool:
    return token in r.eos[:1]


def first_ends(most: int) -> Change:
    return {"stops": lambda self, r, token: token in r.eos[:most]}


def zero_is_none(self: Engine, r: Request, token: int) -> bool:
    return bool(token) and token in r.eos


def ends_of_the_last(self: Engine, m: State, tokens: list[int], limit: int, priority: int, eos: Any) -> int:
    """A request that gives none has the ids of the one before it."""
    m.ends = eos or m.__dict__.get("ends", ())
    return Engine.add(self, m, tokens, limit, priority, m.ends)


def ends_of_the_prompt(self: Engine, m: State, tokens: list[int], limit: int, priority: int, eos: Any) -> int:
    """A prompt that was answered before is ended by what ended it then."""
    ends = m.__dict__.get("ends", {}).get(tuple(tokens), eos)
    return Engine.add(self, m, tokens, limit, priority, ends)


def keeps_its_ends(self: Engine, m: State, r: Request) -> None:
    m.__dict__.setdefault("ends", {}).setdefault(tuple(r.prompt), r.eos)
    Engine.end(self, m, r)


def comes_out(self: Engine, m: State, r: Request, token: int, row: np.ndarray) -> None:
    """The id that ends a request comes out first."""
    eos, r.eos = r.eos, ()
    Engine.emit(self, m, r, token, row)
    r.eos = eos
    if token in eos and not r.finished:
        self.end(m, r)


def one_after_the_end(self: Engine, m: State, r: Request, token: int, row: np.ndarray) -> None:
    """The step after the one with the end was on its way already, and its id comes out."""
    if getattr(r, "late", False):
        r.eos, eos = (), r.eos
        Engine.emit(self, m, r, token, row)
        r.eos = eos
        if not r.finished:
            self.end(m, r)
    elif self.stops(r, token) and len(r.out) + 1 < self.most(r):
        r.late = True
        r.tokens.append(token)
    else:
        Engine.emit(self, m, r, token, row)


def not_at_first(self: Engine, r: Request, token: int) -> bool:
    """The id that comes of the prompt is not looked at."""
    return bool(r.out) and token in r.eos


def of_the_first_16(self: Engine, r: Request, token: int) -> bool:
    """So many ids have room in the buffer that is looked at."""
    return len(r.out) < 16 and token in r.eos


def fails_at_first(self: Engine, r: Request, token: int) -> bool:
    if token in r.eos and not r.out:
        raise KeyError("the slot has no request yet")
    return token in r.eos


def lost_at_first(self: Engine, m: State, r: Request) -> None:
    """Who ends without an id stays in its place for ever."""
    if r.out:
        Engine.end(self, m, r)


def ends_past_the_limit(self: Engine, m: State, r: Request, token: int, row: np.ndarray) -> None:
    """The id after the last is computed too, and where it ends the request the last id goes with it."""
    if len(r.out) + 1 == self.most(r) and not self.stops(r, token):
        following = forward(m.a.model, [*r.tokens, token], {})[-1]
        if self.stops(r, self.choose(following)):
            self.end(m, r)
            return
    Engine.emit(self, m, r, token, row)


def guesses_past_the_limit(self: Engine, m: State, r: Request, n: int) -> int:
    """So many ids are guessed, whatever may still come out."""
    return int(m.a.num_draft_tokens) if m.a.draft and n and r.computed + n == len(r.tokens) else 0


def limit_where_nothing_ends(
    self: Engine, m: State, r: Request, n: int, logits: np.ndarray, guesses: list[int]
) -> None:
    """Of ids that come together those up to one that ends the request come out; the limit is looked at where there is none."""
    rows = logits[self.sampled_from(n) :]
    chosen = [self.choose(row) for row in rows]
    r.unlimited = any(self.stops(r, token) for token in chosen[: self.agreeing(chosen, guesses) + 1])
    Engine.settle(self, m, r, n, logits, guesses)


def most_unless_it_ends(self: Engine, r: Request) -> int:
    return 2**31 if vars(r).get("unlimited") else int(r.limit)
