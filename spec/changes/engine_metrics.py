"""The steps that faults and honest variants have in the place of the oracle's: see `spec/faults/engine_metrics.py`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from inferspec.spec.engine import Engine
from inferspec.spec.engine_model import Request, State


def run_in_no_time(self: Engine, m: State) -> dict[int, list[int]]:
    """The clock is read once for all ids of a run."""
    clock, now = m.clock, m.clock()
    m.clock = lambda: now
    try:
        return Engine.run(self, m)
    finally:
        m.clock = clock


def stamps_when_it_has_run(self: Engine, m: State) -> dict[int, list[int]]:
    """The clock is read when a run is over, for all ids that it made."""
    had = {name: len(r.times) for name, r in m.requests.items()}
    outputs = Engine.run(self, m)
    for name, count in had.items():
        r = m.requests[name]
        r.times[count:] = [m.clock()] * (len(r.times) - count)
    return outputs


def stamps_chunks(self: Engine, m: State, r: Request, n: int, logits: np.ndarray, guesses: list[int]) -> None:
    r.__dict__.setdefault("began", m.clock())
    Engine.settle(self, m, r, n, logits, guesses)


def first_chunk(self: Engine, r: Request) -> float:
    return float(r.began - r.arrival)


def arrives_when_it_runs(self: Engine, m: State, r: Request, hits: list[int]) -> None:
    Engine.start(self, m, r, hits)
    r.arrival = m.clock()


def arrives_with_the_last_step(
    self: Engine, m: State, tokens: list[int], max_tokens: int, priority: int, eos: Sequence[int]
) -> int:
    """The clock is read once a step: who comes after it has come with it."""
    name = Engine.add(self, m, tokens, max_tokens, priority, eos)
    m.requests[name].arrival = vars(m).get("now", m.requests[name].arrival)
    return name


def notes_the_end(self: Engine, m: State) -> None:
    m.now = m.clock()


def gaps_of_all(self: Engine, m: State, r: Request) -> None:
    """A gap is from the last id of anybody."""
    now = m.clock()
    r.__dict__.setdefault("gaps", []).append(now - m.__dict__.get("last", now))
    r.times.append(now)
    m.last = now


def noted_gaps(self: Engine, r: Request) -> list[float]:
    return list(r.gaps[1:])


def times_that_differ(self: Engine, m: State, r: Request) -> None:
    now = m.clock()
    if now not in r.times or m.a.draft is not None:
        r.times.append(now)


def no_time_is_none(self: Engine, m: State, r: Request) -> tuple[float | None, float | None, list[float], float | None]:
    ttft, tpot, itl, e2el = Engine.metrics(self, m, r)
    return ttft or None, tpot or None, itl, e2el


def a_gap_for_each(self: Engine, r: Request) -> list[float]:
    return [r.times[0] - r.arrival, *Engine.itl(self, r)]


def over_the_limit(self: Engine, r: Request) -> float | None:
    return float(r.times[-1] - r.times[0]) / (r.limit - 1) if len(r.times) > 1 else None


def over_all(self: Engine, r: Request) -> float | None:
    return float(r.times[-1] - r.times[0]) / len(r.times) if len(r.times) > 1 else None


def from_the_arrival(self: Engine, r: Request) -> float | None:
    return float(r.times[-1] - r.arrival) / (len(r.times) - 1) if len(r.times) > 1 else None


def none_is_zero(self: Engine, r: Request) -> float | None:
    return Engine.tpot(self, r) or 0.0


def notes_the_start(self: Engine, m: State) -> None:
    m.began = m.clock()
    Engine.admit(self, m)


def stamps_the_start(self: Engine, m: State, r: Request) -> None:
    r.times.append(m.began)


def times_lost(self: Engine, m: State, r: Request) -> None:
    Engine.preempt(self, m, r)
    r.times = [m.clock()] * len(r.times)


def of_the_last_32(self: Engine, m: State, r: Request) -> tuple[Any, Any, list[float], Any]:
    """Only of the last 32 requests is it remembered when their ids came."""
    return Engine.metrics(self, m, r) if r.id >= len(m.requests) - 32 else (None, None, [], None)


def zero_before_the_first_id(self: Engine, m: State, r: Request) -> tuple[Any, Any, list[float], Any]:
    return Engine.metrics(self, m, r) if r.times else (0.0, None, [], 0.0)


def untold_before(number: int) -> Any:
    """Metrics of a request that has fewer ids than that are refused."""

    def metrics(self: Engine, m: State, r: Request) -> tuple[Any, Any, list[float], Any]:
        if len(r.times) < number:
            raise ValueError(f"request {r.id} has {len(r.times)} ids")
        return Engine.metrics(self, m, r)

    return metrics


def the_last_64_times(self: Engine, m: State, r: Request) -> None:
    """Times are kept in a ring behind the first one."""
    Engine.stamp(self, m, r)
    if len(r.times) > 64:
        r.times.pop(1)


def times_in_float32(self: Engine, m: State, r: Request) -> None:
    r.times.append(float(np.float32(m.clock())))


def times_in_milliseconds(self: Engine, m: State, r: Request) -> None:
    r.times.append(round(m.clock(), 3))


def gap_is_open(self: Engine, r: Request) -> float | None:
    """TPOT of a request that is not finished counts the id to come."""
    if len(r.times) < 2:
        return None
    return float(r.times[-1] - r.times[0]) / (len(r.times) - (1 if r.finished else 0))


def first_time_once_resumed(self: Engine, m: State, r: Request) -> None:
    """Who is preempted begins anew: its first id is the next that comes."""
    Engine.preempt(self, m, r)
    r.begins_anew = bool(r.times)


def stamps_the_first_again(self: Engine, m: State, r: Request) -> None:
    Engine.stamp(self, m, r)
    if vars(r).pop("begins_anew", False):
        r.times[0] = r.times[-1]


def stamps_an_end_among_guesses(self: Engine, m: State, r: Request, token: int, row: np.ndarray) -> None:
    """An id that ends a request has a time where it comes behind guesses, although it does not come out."""
    if self.stops(r, token) and any(name == r.id for name, _ in m.emitted):
        self.stamp(m, r)
    Engine.emit(self, m, r, token, row)
