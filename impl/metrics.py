"""Latency and throughput of generation, in plain Python: TTFT, TPOT, ITL, E2EL and token rates.

All times are seconds on one clock, of any zero. Tokens that came together have the same time.

Source: the JAX post, part 2; vLLM's and its benchmark's definitions of the same names.
"""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple


class RequestMetrics(NamedTuple):
    """Seconds. A request without a token has none of them, one of a single token no `tpot`.

    ttft: arrival to first token; tpot: mean time of the tokens after the first; itl: the gaps between tokens; e2el:
    arrival to last token, so that ttft + sum(itl) = e2el.
    """

    ttft: float | None
    tpot: float | None
    itl: list[float]
    e2el: float | None


class AggregateMetrics(NamedTuple):
    """Means over requests in seconds, and tokens per second; None where there is nothing to take the mean of.

    ttft, e2el: over requests; tpot: over requests of two tokens or more; itl: over all gaps. output_rate: emitted
    tokens, prefill_rate: computed prompt tokens, both from the first arrival to the last token.
    """

    ttft: float | None
    tpot: float | None
    itl: float | None
    e2el: float | None
    output_rate: float | None
    prefill_rate: float | None


def request_metrics(arrival: float, token_times: Iterable[float]) -> RequestMetrics:
    """Return the latencies of one request from its arrival and the times of its tokens.

    ValueError when a time is not finite or lies before the one before it, the arrival first of all.
    """
    times = [float(x) for x in token_times]
    for before, now in zip([arrival, *times], [*times, math.inf], strict=True):
        if not math.isfinite(before):
            raise ValueError(f"a time is {before}; it takes finite seconds")
        if now < before:
            raise ValueError(f"a token at {now} comes after one (or the arrival) at {before}; times take their order")
    if not times:
        return RequestMetrics(None, None, [], None)
    gaps = [now - before for before, now in itertools.pairwise(times)]
    tpot = (times[-1] - times[0]) / len(gaps) if gaps else None
    return RequestMetrics(times[0] - arrival, tpot, gaps, times[-1] - arrival)


def aggregate_metrics(
    arrivals: Sequence[float],
    token_times: Sequence[Sequence[float]],
    prompt_tokens: Sequence[int],
    cached_tokens: Sequence[int],
) -> AggregateMetrics:
    """Return means and rates of several requests on one clock; those without a token count nowhere.

    prompt_tokens: length of each prompt; cached_tokens: how many of it were not computed, since they were cached.
    ValueError as for `request_metrics`, for lists of different lengths, and unless 0 <= cached <= prompt.
    """
    lengths = [len(x) for x in (arrivals, token_times, prompt_tokens, cached_tokens)]
    if len(set(lengths)) > 1:
        raise ValueError(f"arrivals, token_times, prompt_tokens and cached_tokens are of {lengths} requests")
    each: list[RequestMetrics] = []
    first, last, computed = math.inf, -math.inf, 0
    for arrival, times, prompt, cached in zip(arrivals, token_times, prompt_tokens, cached_tokens, strict=True):
        if not 0 <= cached <= prompt:
            raise ValueError(f"cached_tokens is {cached}; of a prompt of {prompt} it takes 0 … {prompt}")
        one = request_metrics(arrival, times)
        if one.ttft is not None:
            each.append(one)
            first, last, computed = min(first, arrival), max(last, times[-1]), computed + prompt - cached
    tokens = sum(1 + len(one.itl) for one in each)
    span = last - first
    return AggregateMetrics(
        ttft=_mean(one.ttft for one in each),
        tpot=_mean(one.tpot for one in each),
        itl=_mean(gap for one in each for gap in one.itl),
        e2el=_mean(one.e2el for one in each),
        output_rate=tokens / span if span > 0 else None,
        prefill_rate=computed / span if span > 0 else None,
    )


class RequestTimer:
    """Stamps one request's arrival when it is made, and each token as it is emitted.

    clock: gives seconds that never decrease. A test hands in its own.
    """

    def __init__(self, clock: Callable[[], float] = time.perf_counter) -> None:
        self._clock = clock
        self.arrival = clock()
        self.token_times: list[float] = []

    def token(self) -> None:
        """A token was emitted just now; call it for nothing else, since TTFT is the time of the first call."""
        self.token_times.append(self._clock())

    def metrics(self) -> RequestMetrics:
        """Return the latencies so far."""
        return request_metrics(self.arrival, self.token_times)


def _mean(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return math.fsum(known) / len(known) if known else None
