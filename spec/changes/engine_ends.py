"""The steps of who keeps the id that ends a request, and does so wrongly: see `spec/faults/engine_ends.py`."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from inferspec.spec.contract import Change
from inferspec.spec.engine import Engine
from inferspec.spec.engine_model import Request, State


def drops(ends: Callable[[Engine, State, Request], bool] = lambda self, m, r: True) -> Change:
    """The id that ends a request does not come out where `ends` is true."""

    def emit(self: Engine, m: State, r: Request, token: int, row: np.ndarray) -> None:
        if self.stops(r, token) and ends(self, m, r):
            self.end(m, r)
        else:
            Engine.emit(self, m, r, token, row)

    return {"emit": emit}


def drops_when_guessed() -> Change:
    """Ids that a row of guesses gives are looked at before they come out, those of other rows after."""

    def settle(self: Engine, m: State, r: Request, n: int, logits: np.ndarray, guesses: list[int]) -> None:
        m.guessed = bool(guesses)
        Engine.settle(self, m, r, n, logits, guesses)

    return {"settle": settle, **drops(lambda self, m, r: m.guessed)}


def keeps_the_end(then: Callable[[State, Request, int], None]) -> Change:
    """Something more is done when the id that ends a request has come out."""

    def emit(self: Engine, m: State, r: Request, token: int, row: np.ndarray) -> None:
        ends = self.stops(r, token)
        Engine.emit(self, m, r, token, row)
        if ends and r.out:
            then(m, r, token)

    return {"emit": emit}


def comes_again(m: State, r: Request, token: int) -> None:
    r.out.append(token)
    m.emitted.append((r.id, token))


def is_not_put_out(m: State, r: Request, token: int) -> None:
    """A step gives the end, and the output is without it."""
    r.out.pop()


def is_not_given(m: State, r: Request, token: int) -> None:
    """The output has the end, and no step gives it: who is finished has left the list of those who are told."""
    m.emitted.pop()


def has_no_time(m: State, r: Request, token: int) -> None:
    r.times.pop()


def keeps_the_logits_before(self: Engine, m: State, r: Request, token: int, row: np.ndarray) -> None:
    """Logits are kept of ids that the request goes on with."""
    last = r.logits
    Engine.emit(self, m, r, token, row)
    if self.stops(r, token) and last is not None:
        r.logits = last


def ends_one_later(self: Engine, r: Request, token: int) -> bool:
    """The last id of the output is looked at before the new one is there."""
    return bool(r.out) and r.out[-1] in r.eos
