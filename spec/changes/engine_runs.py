"""The steps that faults have in the place of the oracle's: see `spec/faults/engine_runs.py`."""

from __future__ import annotations

import numpy as np

from inferspec.spec.contract import Arguments
from inferspec.spec.engine import Engine
from inferspec.spec.engine_model import Request, State


def notes_a_run(self: Engine, m: State) -> dict[int, list[int]]:
    m.runs = True
    try:
        return Engine.run(self, m)
    finally:
        m.runs = False


def _runs(m: State) -> bool:
    return bool(vars(m).get("runs"))


def without_who_asks_for_none(self: Engine, m: State) -> dict[int, list[int]]:
    return {name: ids for name, ids in Engine.run(self, m).items() if m.requests[name].limit}


def output_lost_in_a_run(self: Engine, m: State, r: Request) -> None:
    Engine.preempt(self, m, r)
    if _runs(m):
        r.tokens = list(r.prompt)


def unchecked_in_a_run(self: Engine, m: State, r: Request, n: int, logits: np.ndarray, guesses: list[int]) -> None:
    """The guesses have the largest logits."""
    if _runs(m) and guesses:
        logits = logits.copy()
        for row, guess in zip(logits[self.sampled_from(n) :], guesses, strict=False):
            row[guess] = row.max() + 1
    Engine.settle(self, m, r, n, logits, guesses)


def endless_in_a_run(self: Engine, m: State, r: Request, n: int, logits: np.ndarray, guesses: list[int]) -> None:
    eos = r.eos
    r.eos = () if _runs(m) and guesses else eos
    Engine.settle(self, m, r, n, logits, guesses)
    r.eos = eos


def keeps_no_logits_in_a_run(self: Engine, m: State, r: Request, token: int, row: np.ndarray) -> None:
    Engine.emit(self, m, r, token, r.logits if _runs(m) and r.out else row)


def by_arrival_in_a_run(self: Engine, m: State) -> None:
    if _runs(m):
        m.waiting.sort(key=lambda r: r.id)
    Engine.admit(self, m)


def all_in_a_run(self: Engine, m: State) -> None:
    a = m.a
    m.a = Arguments(**{**vars(a), "max_requests": len(m.requests)}) if _runs(m) else a
    Engine.admit(self, m)
    m.a = a


def publishes_in_steps_alone(self: Engine, m: State, r: Request) -> None:
    if not _runs(m):
        Engine.publish(self, m, r)


def starts_over(self: Engine, m: State) -> dict[int, list[int]]:
    try:
        return Engine.run(self, m)
    except Exception:
        for r in list(m.running):
            self.preempt(m, r)
        for r in m.waiting:
            r.tokens, r.out, r.times = list(r.prompt), [], []
        raise


def cancels_the_preempted(self: Engine, m: State) -> dict[int, list[int]]:
    try:
        return Engine.run(self, m)
    except Exception:
        for r in [r for r in m.waiting if r.out]:
            self.cancel(m, r.id)
        raise
