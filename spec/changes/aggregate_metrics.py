"""The steps that faults and honest variants have in the place of the oracle's: see `spec/faults/aggregate_metrics.py`."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from inferspec.spec.contract import Answer, Answers, Arguments, Operation
from inferspec.spec.metrics import AggregateMetrics, RequestMetrics, _checked


def more_cached(self: AggregateMetrics, a: Arguments) -> None:
    """As many counts of cached tokens are looked at as there are requests."""
    AggregateMetrics.guard(self, Arguments(**{**vars(a), "cached_tokens": a.cached_tokens[: len(a.arrivals)]}))


def weighted(self: AggregateMetrics, each: list[Answers], part: str) -> Answer:
    """Every request weighs as much as it has gaps, where they have a mean at all."""
    weights = [answers["itl"].value.size if part == "tpot" else 1 for answers in each]
    values = [answers[part].value for answers in each]
    known = [(float(value), weight) for value, weight in zip(values, weights, strict=True) if value.size and weight]
    total = sum(weight for _, weight in known)
    if not total:
        return Answer(np.zeros(0), np.zeros(0))
    return Answer(np.array(sum(value * weight for value, weight in known) / total), np.zeros(()))


def by_tokens(self: AggregateMetrics, each: list[Answers], part: str) -> Answer:
    if part == "tpot":
        return AggregateMetrics.mean_of_requests(self, each, part)
    values = [float(answers[part].value) for answers in each]
    weights = [1 + answers["itl"].value.size for answers in each]
    total = sum(weights)
    if not total:
        return Answer(np.zeros(0), np.zeros(0))
    return Answer(np.array(sum(v * w for v, w in zip(values, weights, strict=True)) / total), np.zeros(()))


def median(self: AggregateMetrics, each: list[Answers], part: str) -> Answer:
    values = [float(answers[part].value) for answers in each if answers[part].value.size]
    return Answer(np.array(np.median(values)) if values else np.zeros(0), np.zeros(() if values else 0))


def zero_for_none(self: AggregateMetrics, each: list[Answers], part: str) -> Answer:
    values = [float(answers[part].value) if answers[part].value.size else 0.0 for answers in each]
    return Answer(np.array(np.mean(values)) if values else np.zeros(0), np.zeros(() if values else 0))


def last_thousand(self: AggregateMetrics, a: Arguments) -> list[int]:
    """A window of a thousand requests is kept."""
    return AggregateMetrics.served(self, a)[-1000:]


def mean_of_means(self: AggregateMetrics, each: list[Answers]) -> Answer:
    means = [float(answers["itl"].value.mean()) for answers in each if answers["itl"].value.size]
    return Answer(np.array(np.mean(means)) if means else np.zeros(0), np.zeros(() if means else 0))


def with_first_gaps(self: AggregateMetrics, each: list[Answers]) -> Answer:
    gaps = [np.append(answers["itl"].value, answers["ttft"].value) for answers in each]
    flat = np.concatenate([np.zeros(0), *gaps])
    return Answer(np.array(flat.mean()) if flat.size else np.zeros(0), np.zeros(() if flat.size else 0))


def busy_time(self: AggregateMetrics, a: Arguments, served: list[int]) -> float:
    """Latencies added up, as if requests came one after the other."""
    return sum(a.token_times[i][-1] - a.arrivals[i] for i in served)


def of_the_first(self: AggregateMetrics, a: Arguments, served: list[int]) -> float:
    """The first request in the list is taken for the one that came first, and the last for the one that ended last."""
    return abs(a.token_times[served[-1]][-1] - a.arrivals[served[0]])


def decode_time(self: AggregateMetrics, a: Arguments, served: list[int]) -> float:
    return max(a.token_times[i][-1] for i in served) - min(a.token_times[i][0] for i in served)


def everyone(self: AggregateMetrics, a: Arguments, served: list[int]) -> int:
    return sum(p - c for p, c in zip(a.prompt_tokens, a.cached_tokens, strict=True))


def span_of_everyone(self: AggregateMetrics, a: Arguments, served: list[int]) -> float:
    return max(a.token_times[i][-1] for i in served) - min(a.arrivals)


def no_reuse_below_a_page(self: AggregateMetrics, a: Arguments, served: list[int]) -> int:
    return sum(a.prompt_tokens[i] - a.cached_tokens[i] // 16 * 16 for i in served)


def infinite_rates(self: AggregateMetrics, a: Arguments) -> Any:
    result = Operation.respond(self, a)
    served = self.served(a)
    if not served or self.span(a, served) > 0:
        return result
    return {**result, "output_rate": np.array(np.inf), "prefill_rate": np.array(np.inf)}


def zero_rates(self: AggregateMetrics, a: Arguments) -> Any:
    result = Operation.respond(self, a)
    return {k: np.array(0.0) if k.endswith("rate") and not v.size else v for k, v in result.items()}


def zipped(self: AggregateMetrics, a: Arguments) -> Any:
    """The shortest list decides."""
    n = min(len(x) for x in (a.arrivals, a.token_times, a.prompt_tokens, a.cached_tokens))
    return Operation.respond(self, Arguments(**{name: value[:n] for name, value in vars(a).items()}))


def unchecked_order(self: AggregateMetrics, a: Arguments) -> None:
    self.guard_lengths(a)
    self.guard_counts(a)


def of_the_first_128(self: AggregateMetrics, a: Arguments) -> list[int]:
    return AggregateMetrics.served(self, a)[:128]


def no_rate_of_0(self: AggregateMetrics, a: Arguments) -> Any:
    result = Operation.respond(self, a)
    nothing = result["prefill_rate"].size and not result["prefill_rate"]
    return {**result, "prefill_rate": np.zeros(0)} if nothing else result


def one_computed(self: AggregateMetrics, a: Arguments, served: list[int]) -> int:
    return sum(max(a.prompt_tokens[i] - a.cached_tokens[i], 1) for i in served)


def no_short_span(self: AggregateMetrics, a: Arguments, served: list[int]) -> float:
    span = AggregateMetrics.span(self, a, served)
    return span if span > 1e-6 else 0.0


def a_nanosecond(self: AggregateMetrics, a: Arguments, served: list[int]) -> float:
    span = AggregateMetrics.span(self, a, served)
    return max(span, 1e-9) if span else 0.0


def never_unnoticed(self: AggregateMetrics, a: Arguments) -> None:
    """What is not finite is in no order, and passes every comparison."""
    self.guard_lengths(a)
    self.guard_counts(a)
    for arrival, token_times in zip(a.arrivals, a.token_times, strict=True):
        if (np.diff([arrival, *token_times]) < 0).any():
            raise ValueError("times out of order")


def sorts_arrivals(self: AggregateMetrics, a: Arguments) -> Any:
    """The first arrival is looked for by sorting in place."""
    result = Operation.respond(self, a)
    a.arrivals.sort()
    return result


def ends_alone(self: AggregateMetrics, a: Arguments) -> None:
    """Of a request's times the first and the last are looked at."""
    ends = Arguments(**{**a.__dict__, "token_times": [times[:1] + times[-1:] for times in a.token_times]})
    AggregateMetrics.guard(self, ends)


def first_alone(self: AggregateMetrics, a: Arguments) -> None:
    """The first request is looked at, and taken for all."""
    self.guard_lengths(a)
    if a.arrivals:
        _checked(a.arrivals[0], a.token_times[0])
        if not 0 <= a.cached_tokens[0] <= a.prompt_tokens[0]:
            raise ValueError("more cached than prompt tokens")


def more_cached_alone(self: AggregateMetrics, a: Arguments) -> None:
    for prompt, cached in zip(a.prompt_tokens, a.cached_tokens, strict=True):
        if cached > prompt:
            raise ValueError("more cached than prompt tokens")


def of_prompts_alone(self: AggregateMetrics, a: Arguments) -> None:
    pairs = [pair for pair in zip(a.prompt_tokens, a.cached_tokens, strict=True) if pair[0]]
    counts = {"prompt_tokens": [prompt for prompt, _ in pairs], "cached_tokens": [cached for _, cached in pairs]}
    AggregateMetrics.guard_counts(self, Arguments(**counts))


def counts_of_served_alone(self: AggregateMetrics, a: Arguments) -> None:
    served = self.served(a)
    counts = {name: [getattr(a, name)[i] for i in served] for name in ("prompt_tokens", "cached_tokens")}
    AggregateMetrics.guard_counts(self, Arguments(**counts))


def tpot_of_the_first_100(self: AggregateMetrics, each: list[Answers], part: str) -> Answer:
    return AggregateMetrics.mean_of_requests(self, each[:100] if part == "tpot" else each, part)


def gaps_in_a_ring(self: AggregateMetrics, each: list[Answers]) -> Answer:
    right = AggregateMetrics.mean_of_gaps(self, each)
    flat = np.concatenate([np.zeros(0), *(answers["itl"].value for answers in each)])
    return Answer(np.array(flat[-10_000:].mean()), right.budget) if flat.size else right


def bits_of_a_count(bits: int) -> Any:
    def computed(self: AggregateMetrics, a: Arguments, served: list[int]) -> int:
        return sum((a.prompt_tokens[i] & (2**bits - 1)) - (a.cached_tokens[i] & (2**bits - 1)) for i in served)

    return computed


def until_first_tokens(self: AggregateMetrics, a: Arguments) -> Any:
    result = Operation.respond(self, a)
    if not result["prefill_rate"].size:
        return result
    served = self.served(a)
    span = max(a.token_times[i][0] for i in served) - min(a.arrivals[i] for i in served)
    rate = np.array(self.computed(a, served) / span) if span > 0 else np.zeros(0)
    return {**result, "prefill_rate": rate}


def no_end_at_0(self: AggregateMetrics, a: Arguments, served: list[int]) -> float:
    """As `end = max(end, time) if end else time` has it."""
    end: float | None = None
    for i in served:
        end = max(end, a.token_times[i][-1]) if end else a.token_times[i][-1]
    return (end or 0.0) - min(a.arrivals[i] for i in served)


def served_alone(self: AggregateMetrics, a: Arguments) -> None:
    self.guard_lengths(a)
    self.guard_counts(a)
    for i in self.served(a):
        _checked(a.arrivals[i], a.token_times[i])


def drops_the_unserved(self: AggregateMetrics, a: Arguments) -> Any:
    result = Operation.respond(self, a)
    a.token_times[:] = [times for times in a.token_times if times]
    return result


def keeps_requests(self: AggregateMetrics, a: Arguments) -> None:
    """Tokens are counted request by request, up to the one that is refused."""
    self.guard_lengths(a)
    self.guard_counts(a)
    kept = type(self).__dict__.get("kept", 0)
    for arrival, token_times in zip(a.arrivals, a.token_times, strict=True):
        type(self).kept = kept  # type: ignore[attr-defined]
        _checked(arrival, token_times)
        kept += len(token_times)
    type(self).kept = kept - sum(map(len, a.token_times))  # type: ignore[attr-defined]


def with_kept_requests(self: AggregateMetrics, a: Arguments) -> Any:
    result = Operation.respond(self, a)
    kept, count = type(self).__dict__.get("kept", 0), sum(map(len, a.token_times))
    type(self).kept = 0  # type: ignore[attr-defined]
    if not result["output_rate"].size:
        return result
    return {**result, "output_rate": result["output_rate"] * (count + kept) / count}


def since_the_first_of_all(self: AggregateMetrics, a: Arguments, served: list[int]) -> float:
    first = min([type(self).__dict__.get("first", math.inf), *(a.arrivals[i] for i in served)])
    type(self).first = first  # type: ignore[attr-defined]
    return max(a.token_times[i][-1] for i in served) - first


def whole_rates(self: AggregateMetrics, a: Arguments) -> Any:
    result = Operation.respond(self, a)
    if not all(isinstance(arrival, int) for arrival in a.arrivals):
        return result
    return {part: np.floor(value) if part.endswith("rate") else value for part, value in result.items()}


def arrivals_in_floats(self: AggregateMetrics, a: Arguments) -> None:
    AggregateMetrics.guard(self, a)
    if not all(isinstance(arrival, float) for arrival in a.arrivals):
        raise TypeError("an arrival is no float")


def ends_like_arrivals(self: AggregateMetrics, a: Arguments, served: list[int]) -> float:
    """The ends are put into an array made like that of the arrivals, as `np.empty_like` has it."""
    arrivals = np.array([a.arrivals[i] for i in served])
    ends = np.empty_like(arrivals)
    ends[:] = [a.token_times[i][-1] for i in served]
    return float(ends.max() - arrivals.min())


def counts_tokens_before_prompts(self: AggregateMetrics, a: Arguments) -> None:
    """Tokens are counted before the counts of prompts are looked at."""
    self.guard_lengths(a)
    for arrival, token_times in zip(a.arrivals, a.token_times, strict=True):
        _checked(arrival, token_times)
    kept = type(self).__dict__.get("kept", 0)
    type(self).kept = kept + sum(map(len, a.token_times))  # type: ignore[attr-defined]
    self.guard_counts(a)
    type(self).kept = kept  # type: ignore[attr-defined]


def each_checked_by(check: Any) -> Any:
    """Every request is looked at by a check of its own."""

    def guard(self: AggregateMetrics, a: Arguments) -> None:
        self.guard_lengths(a)
        for arrival, token_times in zip(a.arrivals, a.token_times, strict=True):
            check(RequestMetrics(), Arguments(arrival=arrival, token_times=token_times))
        self.guard_counts(a)

    return guard


def unchecked_without(name: str) -> Any:
    """Where a list is empty, or holds nothing but empty ones, there is nothing to look at."""

    def guard(self: AggregateMetrics, a: Arguments) -> None:
        if any(x != [] for x in getattr(a, name)):
            AggregateMetrics.guard(self, a)

    return guard


def none_without_arrivals(self: AggregateMetrics, a: Arguments) -> list[int]:
    return AggregateMetrics.served(self, a) if a.arrivals else []


def arrivals_taken_while_checked(self: AggregateMetrics, a: Arguments) -> None:
    """Arrivals are popped from the caller's list, and put back where all was well."""
    arrivals = list(a.arrivals)
    a.arrivals.clear()
    AggregateMetrics.guard(self, Arguments(**{**vars(a), "arrivals": arrivals}))
    a.arrivals.extend(arrivals)


def alike_once(self: AggregateMetrics, a: Arguments, served: list[int]) -> int:
    """Requests are kept in a set."""
    return sum(
        len(times) for _, times, _ in {(a.arrivals[i], (*a.token_times[i],), a.prompt_tokens[i]) for i in served}
    )


def running_mean(self: AggregateMetrics, each: list[Answers], part: str) -> Answer:
    right, mean, count = AggregateMetrics.mean_of_requests(self, each, part), 0.0, 0
    for value in (float(answers[part].value) for answers in each if answers[part].value.size):
        count += 1
        mean += (value - mean) / count
    return Answer(np.array(mean), right.budget) if count else right
