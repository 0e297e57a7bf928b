"""Timelines of requests for the suites: on clocks of any zero, with tokens that come alone or several at once."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from inferspec.conformance.calls import Call
from inferspec.conformance.strategies import Pick, calls

REQUEST, AGGREGATE = "request_metrics", "aggregate_metrics"

EXAMPLES = {
    REQUEST: Call(REQUEST, {"arrival": 1.0, "token_times": [2.0, 2.5, 3.5]}),
    AGGREGATE: Call(
        AGGREGATE, {"arrivals": [1.0], "token_times": [[2.0, 2.5, 3.5]], "prompt_tokens": [4], "cached_tokens": [1]}
    ),
}
"""The plainest call of each operation."""

ZEROS = {"zero": 0.0, "monotonic": 86_400.0, "epoch": 1.7e9, "ahead": -8.0}
"""Where clocks count from, in seconds before now: the request's, the machine's start, 1970, a time that is to come."""

Count = Callable[[Pick], int]


def some(pick: Pick) -> int:
    return pick.one_of(2, 3, 4, 5, 7, 12)


def any_number(pick: Pick) -> int:
    """From one to many: what a request without a token gives is a matter of its own."""
    return pick.one_of(2, 1, 3, 5, 60, pick.envelope["tokens"])


def a_few(pick: Pick) -> int:
    """For requests by the hundred, more than an example has choices for."""
    return int(pick.random.integers(1, 9))


def few(pick: Pick) -> int:
    return pick.one_of(2, 1, 5)


def few_or_none(pick: Pick) -> int:
    return pick.one_of(2, 0, 1, 5)


def many(pick: Pick) -> int:
    return int(pick.envelope["tokens"])


def timeline(pick: Pick, start: float, count: int, grouped: bool, wait: int | None = None) -> tuple[float, list[float]]:
    """(arrival, token times): a wait for the first token that is unlike the gaps, and gaps that are unlike each other.

    Some arrive at the very time that clocks count from: 0.0 is a time. Some wait once for anything from a microsecond to
    days. grouped: tokens come in chunks of one to four; wait: the token that comes minutes or days after what is before it.
    """
    arrival = start + pick.random.uniform(0.0, 10.0) * (pick.random.random() < 0.75)
    gaps = 10.0 ** pick.random.uniform(-3, -0.5, count)
    if grouped:
        gaps = gaps * (pick.random.random(count) < 0.5)
    if count:
        gaps[0] = pick.random.uniform(0.5, 3.0)
    if count and pick.random.random() < 0.25:
        gaps[pick.random.integers(0, count)] = 10.0 ** pick.random.uniform(-6, 5.5)
    if wait is not None:
        gaps[wait] = 10.0 ** pick.random.uniform(2, 5.5)
    return arrival, [float(time) for time in arrival + np.cumsum(gaps)]


@calls
def timelines(pick: Pick, count: Count = some, grouped: bool = False, wait: int | None = None) -> Call:
    """One request."""
    arrival, times = timeline(pick, ZEROS[pick("clocks")], count(pick), grouped, wait)
    return pick.call(REQUEST, arrival=arrival, token_times=times)


def whole_seconds(call: Call) -> Call:
    """The call with all its times rounded down to integers."""
    return call.having(
        **{name: _whole(x) for name, x in call.arguments.items() if name in ("arrival", "arrivals", "token_times")}
    )


def _whole(x: Any) -> Any:
    return [_whole(item) for item in x] if isinstance(x, list) else math.floor(x)


def partly_whole(call: Call, which: str) -> Call:
    """The call with an integer for its arrival, for that and the first time, for the last one, or for all but the arrival."""
    arrival, times = call.arguments["arrival"], call.arguments["token_times"]
    if which == "tokens":
        return call.having(token_times=[math.ceil(time) for time in times])
    if which == "last":
        return call.having(token_times=[*times[:-1], math.ceil(times[-1])])
    first = math.floor(times[0]) if which == "first" else times[0]
    return call.having(arrival=math.floor(arrival), token_times=[first, *times[1:]])


def partly_whole_of_many(call: Call, which: str) -> Call:
    """The call with integers for arrivals, for times of tokens, or for all times of its first request."""
    arrivals, lines = call.arguments["arrivals"], call.arguments["token_times"]
    match which:
        case "arrivals":
            return call.having(arrivals=[math.floor(arrival) for arrival in arrivals])
        case "tokens":
            return call.having(token_times=[[math.ceil(time) for time in line] for line in lines])
    first = [math.floor(arrivals[0]), *arrivals[1:]], [[math.ceil(time) for time in lines[0]], *lines[1:]]
    return call.having(arrivals=first[0], token_times=first[1])


def _prompt(pick: Pick) -> int:
    """Of any length, as far as counting goes: those of a workload may add up to more than 32 bits hold."""
    if pick.random.random() < 0.75:
        return int(pick.random.integers(1, 3000))
    return int(10.0 ** pick.random.uniform(0, 10))


def _cached(pick: Pick, prompt: int) -> int:
    """All of a prompt, all but its last token, or any part of it."""
    kind = pick.random.random()
    return prompt if kind < 0.2 else prompt - 1 if kind < 0.4 else int(pick.random.integers(0, prompt))


@calls
def workloads(
    pick: Pick, count: Count = any_number, requests: tuple[int, ...] = (2, 3, 5, 1), reuse: bool = True
) -> Call:
    """Requests that overlap in time, of very different lengths, some with a part of the prompt cached, or all of it.

    reuse: whether prompts may be cached at all.
    """
    start = ZEROS[pick("clocks")]
    grouped = pick.one_of(False, True)
    lines = [timeline(pick, start, count(pick), grouped) for _ in range(pick.one_of(*requests))]
    if pick.features["clocks"] == "ahead" and pick.random.random() < 0.5:
        # The clock counts from the last token.
        end = max((times[-1] for _, times in lines if times), default=0.0)
        lines = [(arrival - end, [time - end for time in times]) for arrival, times in lines]
    prompts = [_prompt(pick) for _ in lines]
    cached = [_cached(pick, prompt) if reuse else 0 for prompt in prompts]
    return pick.call(
        AGGREGATE,
        arrivals=[arrival for arrival, _ in lines],
        token_times=[times for _, times in lines],
        prompt_tokens=prompts,
        cached_tokens=cached,
    )


ORDINARY = {REQUEST: timelines(count=any_number), AGGREGATE: workloads}
"""The widest calls of each operation."""
