"""The steps that faults and honest variants have in the place of the oracle's: see `spec/faults/metrics.py`."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np

from inferspec.spec.contract import Arguments, Change, Operation
from inferspec.spec.metrics import RequestMetrics


def times(a: Arguments) -> np.ndarray:
    return np.array(a.token_times, np.float64)


def with_arguments(change: Any) -> Change:
    """The metrics of other arguments than those given."""

    def respond(self: Operation, a: Arguments) -> Any:
        return Operation.respond(self, Arguments(**{**vars(a), **change(a)}))

    return {"respond": respond}


def part(name: str, function: Any) -> Change:
    """One part of the result, replaced by a function of the arguments and the right value."""

    def respond(self: Operation, a: Arguments) -> Any:
        result = Operation.respond(self, a)
        return {**result, name: np.asarray(function(a, result), np.float64)}

    return {"respond": respond}


def role_chunk(a: Arguments) -> dict[str, Any]:
    """The stream's first chunk, which holds no token, counts as the first."""
    times = list(a.token_times)
    if len(times) > 1:
        times[0] = a.arrival + 0.1 * (times[0] - a.arrival)
    return {"token_times": times}


def steps_alone(self: RequestMetrics, a: Arguments, elapsed: np.ndarray) -> np.ndarray:
    return np.diff(np.unique(times(a)))


def per_step(self: RequestMetrics, elapsed: np.ndarray, itl: np.ndarray) -> float | None:
    steps = len(np.unique(elapsed))
    return float((elapsed[-1] - elapsed[0]) / (steps - 1)) if steps > 1 else None


def in_float32(a: Arguments) -> dict[str, Any]:
    with np.errstate(over="ignore"):
        return {
            "arrival": float(np.float32(a.arrival)),
            "token_times": [float(np.float32(time)) for time in a.token_times],
        }


def in_microseconds(a: Arguments) -> dict[str, Any]:
    return {"arrival": round(a.arrival, 6), "token_times": [round(time, 6) for time in a.token_times]}


def clock_of_the_first(self: RequestMetrics, a: Arguments) -> Any:
    """The first request's arrival serves all that come later."""
    kept = type(self).__dict__.get("arrival")
    if kept is None or kept > min(a.token_times, default=math.inf):
        type(self).arrival = kept = a.arrival  # type: ignore[attr-defined]
    return Operation.respond(self, Arguments(arrival=kept, token_times=a.token_times))


def all_gaps_so_far(self: RequestMetrics, a: Arguments) -> Any:
    """Gaps are kept in a list that is made once, as a default argument is."""
    result = Operation.respond(self, a)
    kept = type(self).__dict__.get("gaps")
    if kept is None:
        type(self).gaps = kept = []  # type: ignore[attr-defined]
    kept.extend(result["itl"].tolist())
    return {**result, "itl": np.array(kept)}


def not_finite_alone(self: RequestMetrics, a: Arguments) -> None:
    if not np.isfinite([a.arrival, *a.token_times]).all():
        raise ValueError("not finite")


def arrival_unchecked(self: RequestMetrics, a: Arguments) -> None:
    not_finite_alone(self, a)
    if (np.diff(times(a)) < 0).any():
        raise ValueError("not in order")


def order_alone(self: RequestMetrics, a: Arguments) -> None:
    if (np.diff([a.arrival, *a.token_times]) < 0).any():
        raise ValueError("not in order")


def ends_finite(self: RequestMetrics, a: Arguments) -> None:
    """The arrival and the ends are looked at; a NaN between them is in order, since nothing is less than it."""
    order_alone(self, a)
    if not np.isfinite([a.arrival, *a.token_times[:1], *a.token_times[-1:]]).all():
        raise ValueError("not finite")


def no_time_at_0(a: Arguments) -> dict[str, Any]:
    """An arrival of 0.0 is taken for none, and the first token's time stands in."""
    return {"arrival": a.arrival or next(iter(a.token_times), 0.0)}


def no_negative_time(self: RequestMetrics, a: Arguments) -> None:
    self.guard_times(a)
    if a.arrival < 0:
        raise ValueError(f"arrival is {a.arrival}")


def whole_tpot(self: RequestMetrics, a: Arguments) -> Any:
    """TPOT in the type of the times."""
    result = Operation.respond(self, a)
    if isinstance(a.arrival, int) and result["tpot"].size:
        return {**result, "tpot": np.floor(result["tpot"])}
    return result


def floats_alone(self: RequestMetrics, a: Arguments) -> None:
    self.guard_times(a)
    if not all(isinstance(time, float) for time in (a.arrival, *a.token_times)):
        raise TypeError("a time is no float")


def takes_the_list(self: RequestMetrics, a: Arguments) -> Any:
    """Times are popped from the caller's list one by one."""
    result = Operation.respond(self, a)
    a.token_times.clear()
    return result


def arrival_before_times(self: RequestMetrics, a: Arguments) -> Any:
    result = Operation.respond(self, a)
    a.token_times.insert(0, a.arrival)
    return result


def keeps_gaps(self: RequestMetrics, a: Arguments) -> None:
    """Gaps are noted token by token, before the next is looked at, and forgotten at the end of a request."""
    kept = type(self).__dict__.get("gaps", [])
    for before, now in itertools.pairwise(a.token_times):
        if now < before:
            type(self).gaps = kept  # type: ignore[attr-defined]
        kept = [*kept, now - before]
    self.guard_times(a)


def with_kept_gaps(self: RequestMetrics, a: Arguments) -> Any:
    result = Operation.respond(self, a)
    kept = type(self).__dict__.get("gaps", [])
    type(self).gaps = []  # type: ignore[attr-defined]
    return {**result, "itl": np.array([*kept, *result["itl"]])}


def one_list_for_all(self: RequestMetrics, a: Arguments) -> Any:
    result = Operation.respond(self, a)
    if "gaps" not in type(self).__dict__:
        type(self).gaps = []  # type: ignore[attr-defined]
    gaps = type(self).gaps  # type: ignore[attr-defined]
    gaps[:] = result["itl"].tolist()
    return {**result, "itl": gaps}


def jitter_allowed(self: RequestMetrics, a: Arguments) -> None:
    not_finite_alone(self, a)
    line = np.array([a.arrival, *a.token_times])
    if (np.diff(line[:2]) < 0).any() or (np.diff(line) < -1e-3).any():
        raise ValueError("not in order")


def arrival_jitter(self: RequestMetrics, a: Arguments) -> None:
    arrival_unchecked(self, a)
    if a.token_times and a.token_times[0] < a.arrival - 1e-3:
        raise ValueError("before the arrival")


def more_than(count: int) -> Any:
    """Times are looked at where there are more than so many; one that lies before the arrival always is."""

    def guard(self: RequestMetrics, a: Arguments) -> None:
        if len(a.token_times) > count or any(time < a.arrival for time in a.token_times):
            self.guard_times(a)

    return guard


def type_of_the_arrival(a: Arguments) -> dict[str, Any]:
    return {"token_times": [type(a.arrival)(time) for time in a.token_times]}


def type_of_the_first(a: Arguments) -> dict[str, Any]:
    return {"token_times": [type(a.token_times[0])(time) for time in a.token_times]}


def keeps_gaps_before_the_end_of_time(self: RequestMetrics, a: Arguments) -> None:
    """Gaps are noted token by token, up to a time that is not finite."""
    kept: list[float] = []
    for before, now in itertools.pairwise(a.token_times):
        if not math.isfinite(now):
            type(self).gaps = kept  # type: ignore[attr-defined]
            break
        kept.append(now - before)
    self.guard_times(a)


def arrival_in_the_list_while_checked(self: RequestMetrics, a: Arguments) -> None:
    """The arrival is put in front of the caller's list, and taken out again where all was well."""
    times = list(a.token_times)
    a.token_times.insert(0, a.arrival)
    self.guard_times(Arguments(arrival=a.arrival, token_times=times))
    a.token_times.pop(0)


# honest ways


def gaps_of_elapsed(self: RequestMetrics, a: Arguments, elapsed: np.ndarray) -> np.ndarray:
    return np.diff(elapsed)


def mean_gap(self: RequestMetrics, elapsed: np.ndarray, itl: np.ndarray) -> float | None:
    return float(sum(itl.tolist())) / len(itl) if len(itl) else None


def through_milliseconds(self: RequestMetrics, a: Arguments) -> np.ndarray:
    return (times(a) - a.arrival) * 1000.0 / 1000.0
