"""Mistakes in metrics, and other honest ways to compute them."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from inferspec.spec.contract import Answer, Answers, Arguments, Change, Fault, Operation, Variant
from inferspec.spec.faults.linear import TIRED
from inferspec.spec.metrics import (
    METR_01,
    METR_02,
    METR_03,
    METR_04,
    METR_05,
    METR_06,
    METR_07,
    METR_08,
    METR_09,
    METR_10,
    METR_11,
    METR_12,
    METR_13,
    METR_14,
    METR_15,
    METR_21,
    METR_22,
    METR_23,
    METR_24,
    METR_25,
    METR_26,
    METR_27,
    METR_28,
    METR_29,
    AggregateMetrics,
    RequestMetrics,
    _checked,
)

VLLM = "https://github.com/vllm-project/vllm"
SGLANG = "https://github.com/sgl-project/sglang"


def _times(a: Arguments) -> np.ndarray:
    return np.array(a.token_times, np.float64)


def _with_arguments(change: Any) -> Change:
    """The metrics of other arguments than those given."""

    def respond(self: Operation, a: Arguments) -> Any:
        return Operation.respond(self, Arguments(**{**vars(a), **change(a)}))

    return {"respond": respond}


def _part(name: str, function: Any) -> Change:
    """One part of the result, replaced by a function of the arguments and the right value."""

    def respond(self: Operation, a: Arguments) -> Any:
        result = Operation.respond(self, a)
        return {**result, name: np.asarray(function(a, result), np.float64)}

    return {"respond": respond}


def _role_chunk(a: Arguments) -> dict[str, Any]:
    """The stream's first chunk, which holds no token, counts as the first."""
    times = list(a.token_times)
    if len(times) > 1:
        times[0] = a.arrival + 0.1 * (times[0] - a.arrival)
    return {"token_times": times}


def _steps_alone(self: RequestMetrics, a: Arguments, elapsed: np.ndarray) -> np.ndarray:
    return np.diff(np.unique(_times(a)))


def _per_step(self: RequestMetrics, elapsed: np.ndarray, itl: np.ndarray) -> float | None:
    steps = len(np.unique(elapsed))
    return float((elapsed[-1] - elapsed[0]) / (steps - 1)) if steps > 1 else None


def _in_float32(a: Arguments) -> dict[str, Any]:
    with np.errstate(over="ignore"):
        return {
            "arrival": float(np.float32(a.arrival)),
            "token_times": [float(np.float32(time)) for time in a.token_times],
        }


def _in_microseconds(a: Arguments) -> dict[str, Any]:
    return {"arrival": round(a.arrival, 6), "token_times": [round(time, 6) for time in a.token_times]}


def _clock_of_the_first(self: RequestMetrics, a: Arguments) -> Any:
    """The first request's arrival serves all that come later."""
    kept = type(self).__dict__.get("arrival")
    if kept is None or kept > min(a.token_times, default=math.inf):
        type(self).arrival = kept = a.arrival  # type: ignore[attr-defined]
    return Operation.respond(self, Arguments(arrival=kept, token_times=a.token_times))


def _all_gaps_so_far(self: RequestMetrics, a: Arguments) -> Any:
    """Gaps are kept in a list that is made once, as a default argument is."""
    result = Operation.respond(self, a)
    kept = type(self).__dict__.get("gaps")
    if kept is None:
        type(self).gaps = kept = []  # type: ignore[attr-defined]
    kept.extend(result["itl"].tolist())
    return {**result, "itl": np.array(kept)}


def _not_finite_alone(self: RequestMetrics, a: Arguments) -> None:
    if not np.isfinite([a.arrival, *a.token_times]).all():
        raise ValueError("not finite")


def _arrival_unchecked(self: RequestMetrics, a: Arguments) -> None:
    _not_finite_alone(self, a)
    if (np.diff(_times(a)) < 0).any():
        raise ValueError("not in order")


def _order_alone(self: RequestMetrics, a: Arguments) -> None:
    if (np.diff([a.arrival, *a.token_times]) < 0).any():
        raise ValueError("not in order")


def _weighted(self: AggregateMetrics, each: list[Answers], part: str) -> Answer:
    """Every request weighs as much as it has gaps, where they have a mean at all."""
    weights = [answers["itl"].value.size if part == "tpot" else 1 for answers in each]
    values = [answers[part].value for answers in each]
    known = [(float(value), weight) for value, weight in zip(values, weights, strict=True) if value.size and weight]
    total = sum(weight for _, weight in known)
    if not total:
        return Answer(np.zeros(0), np.zeros(0))
    return Answer(np.array(sum(value * weight for value, weight in known) / total), np.zeros(()))


def _by_tokens(self: AggregateMetrics, each: list[Answers], part: str) -> Answer:
    if part == "tpot":
        return AggregateMetrics.mean_of_requests(self, each, part)
    values = [float(answers[part].value) for answers in each]
    weights = [1 + answers["itl"].value.size for answers in each]
    total = sum(weights)
    if not total:
        return Answer(np.zeros(0), np.zeros(0))
    return Answer(np.array(sum(v * w for v, w in zip(values, weights, strict=True)) / total), np.zeros(()))


def _median(self: AggregateMetrics, each: list[Answers], part: str) -> Answer:
    values = [float(answers[part].value) for answers in each if answers[part].value.size]
    return Answer(np.array(np.median(values)) if values else np.zeros(0), np.zeros(() if values else 0))


def _zero_for_none(self: AggregateMetrics, each: list[Answers], part: str) -> Answer:
    values = [float(answers[part].value) if answers[part].value.size else 0.0 for answers in each]
    return Answer(np.array(np.mean(values)) if values else np.zeros(0), np.zeros(() if values else 0))


def _mean_of_means(self: AggregateMetrics, each: list[Answers]) -> Answer:
    means = [float(answers["itl"].value.mean()) for answers in each if answers["itl"].value.size]
    return Answer(np.array(np.mean(means)) if means else np.zeros(0), np.zeros(() if means else 0))


def _with_first_gaps(self: AggregateMetrics, each: list[Answers]) -> Answer:
    gaps = [np.append(answers["itl"].value, answers["ttft"].value) for answers in each]
    flat = np.concatenate([np.zeros(0), *gaps])
    return Answer(np.array(flat.mean()) if flat.size else np.zeros(0), np.zeros(() if flat.size else 0))


def _busy_time(self: AggregateMetrics, a: Arguments, served: list[int]) -> float:
    """Latencies added up, as if requests came one after the other."""
    return sum(a.token_times[i][-1] - a.arrivals[i] for i in served)


def _of_the_first(self: AggregateMetrics, a: Arguments, served: list[int]) -> float:
    """The first request in the list is taken for the one that came first, and the last for the one that ended last."""
    return abs(a.token_times[served[-1]][-1] - a.arrivals[served[0]])


def _decode_time(self: AggregateMetrics, a: Arguments, served: list[int]) -> float:
    return max(a.token_times[i][-1] for i in served) - min(a.token_times[i][0] for i in served)


def _everyone(self: AggregateMetrics, a: Arguments, served: list[int]) -> int:
    return sum(p - c for p, c in zip(a.prompt_tokens, a.cached_tokens, strict=True))


def _span_of_everyone(self: AggregateMetrics, a: Arguments, served: list[int]) -> float:
    return max(a.token_times[i][-1] for i in served) - min(a.arrivals)


def _no_reuse_below_a_page(self: AggregateMetrics, a: Arguments, served: list[int]) -> int:
    return sum(a.prompt_tokens[i] - a.cached_tokens[i] // 16 * 16 for i in served)


def _infinite_rates(self: AggregateMetrics, a: Arguments) -> Any:
    result = Operation.respond(self, a)
    served = self.served(a)
    if not served or self.span(a, served) > 0:
        return result
    return {**result, "output_rate": np.array(np.inf), "prefill_rate": np.array(np.inf)}


def _zero_rates(self: AggregateMetrics, a: Arguments) -> Any:
    result = Operation.respond(self, a)
    return {k: np.array(0.0) if k.endswith("rate") and not v.size else v for k, v in result.items()}


def _zipped(self: AggregateMetrics, a: Arguments) -> Any:
    """The shortest list decides."""
    n = min(len(x) for x in (a.arrivals, a.token_times, a.prompt_tokens, a.cached_tokens))
    return Operation.respond(self, Arguments(**{name: value[:n] for name, value in vars(a).items()}))


def _unchecked_order(self: AggregateMetrics, a: Arguments) -> None:
    self.guard_lengths(a)
    self.guard_counts(a)


def _no_time_at_0(a: Arguments) -> dict[str, Any]:
    """An arrival of 0.0 is taken for none, and the first token's time stands in."""
    return {"arrival": a.arrival or next(iter(a.token_times), 0.0)}


def _no_negative_time(self: RequestMetrics, a: Arguments) -> None:
    self.guard_times(a)
    if a.arrival < 0:
        raise ValueError(f"arrival is {a.arrival}")


def _whole_tpot(self: RequestMetrics, a: Arguments) -> Any:
    """TPOT in the type of the times."""
    result = Operation.respond(self, a)
    if isinstance(a.arrival, int) and result["tpot"].size:
        return {**result, "tpot": np.floor(result["tpot"])}
    return result


def _floats_alone(self: RequestMetrics, a: Arguments) -> None:
    self.guard_times(a)
    if not all(isinstance(time, float) for time in (a.arrival, *a.token_times)):
        raise TypeError("a time is no float")


def _takes_the_list(self: RequestMetrics, a: Arguments) -> Any:
    """Times are popped from the caller's list one by one."""
    result = Operation.respond(self, a)
    a.token_times.clear()
    return result


def _arrival_before_times(self: RequestMetrics, a: Arguments) -> Any:
    result = Operation.respond(self, a)
    a.token_times.insert(0, a.arrival)
    return result


def _of_the_first_128(self: AggregateMetrics, a: Arguments) -> list[int]:
    return AggregateMetrics.served(self, a)[:128]


def _no_rate_of_0(self: AggregateMetrics, a: Arguments) -> Any:
    result = Operation.respond(self, a)
    nothing = result["prefill_rate"].size and not result["prefill_rate"]
    return {**result, "prefill_rate": np.zeros(0)} if nothing else result


def _one_computed(self: AggregateMetrics, a: Arguments, served: list[int]) -> int:
    return sum(max(a.prompt_tokens[i] - a.cached_tokens[i], 1) for i in served)


def _no_short_span(self: AggregateMetrics, a: Arguments, served: list[int]) -> float:
    span = AggregateMetrics.span(self, a, served)
    return span if span > 1e-6 else 0.0


def _a_nanosecond(self: AggregateMetrics, a: Arguments, served: list[int]) -> float:
    span = AggregateMetrics.span(self, a, served)
    return max(span, 1e-9) if span else 0.0


def _never_unnoticed(self: AggregateMetrics, a: Arguments) -> None:
    """What is not finite is in no order, and passes every comparison."""
    self.guard_lengths(a)
    self.guard_counts(a)
    for arrival, token_times in zip(a.arrivals, a.token_times, strict=True):
        if (np.diff([arrival, *token_times]) < 0).any():
            raise ValueError("times out of order")


def _sorts_arrivals(self: AggregateMetrics, a: Arguments) -> Any:
    """The first arrival is looked for by sorting in place."""
    result = Operation.respond(self, a)
    a.arrivals.sort()
    return result


def _ends_alone(self: AggregateMetrics, a: Arguments) -> None:
    """Of a request's times the first and the last are looked at."""
    ends = Arguments(**{**a.__dict__, "token_times": [times[:1] + times[-1:] for times in a.token_times]})
    AggregateMetrics.guard(self, ends)


def _first_alone(self: AggregateMetrics, a: Arguments) -> None:
    """The first request is looked at, and taken for all."""
    self.guard_lengths(a)
    if a.arrivals:
        _checked(a.arrivals[0], a.token_times[0])
        if not 0 <= a.cached_tokens[0] <= a.prompt_tokens[0]:
            raise ValueError("more cached than prompt tokens")


def _more_cached_alone(self: AggregateMetrics, a: Arguments) -> None:
    for prompt, cached in zip(a.prompt_tokens, a.cached_tokens, strict=True):
        if cached > prompt:
            raise ValueError("more cached than prompt tokens")


def _counts_of_served_alone(self: AggregateMetrics, a: Arguments) -> None:
    served = self.served(a)
    counts = {name: [getattr(a, name)[i] for i in served] for name in ("prompt_tokens", "cached_tokens")}
    AggregateMetrics.guard_counts(self, Arguments(**counts))


FAULTS: tuple[Fault, ...] = (
    Fault(
        "metrics-ttft-second",
        "TTFT is the time of the second token",
        METR_01,
        {"ttft": lambda self, t: float(t[min(1, len(t) - 1)]) if len(t) else None},
        TIRED,
    ),
    Fault(
        "metrics-ttft-at-role-chunk",
        "TTFT is stamped at a first chunk that holds no token",
        METR_01,
        _with_arguments(_role_chunk),
        f"{VLLM}/issues/15106",
    ),
    Fault(
        "metrics-ttft-absolute",
        "TTFT is a time on the clock",
        METR_01,
        _part("ttft", lambda a, r: a.token_times[:1] or []),
        TIRED,
    ),
    Fault(
        "metrics-milliseconds",
        "TTFT is in milliseconds",
        METR_01,
        _part("ttft", lambda a, r: r["ttft"] * 1000.0),
        "the JAX post, part 2, which prints milliseconds",
    ),
    Fault(
        "metrics-e2el-from-first",
        "E2EL is counted from the first token",
        METR_02,
        {"e2el": lambda self, t: float(t[-1] - t[0]) if len(t) else None},
        TIRED,
    ),
    Fault(
        "metrics-e2el-last-but-one",
        "the last token is missing in E2EL",
        METR_02,
        {"e2el": lambda self, t: float(t[max(len(t) - 2, 0)]) if len(t) else None},
        TIRED,
    ),
    Fault(
        "metrics-ttft-in-itl",
        "the time to the first token is the first gap",
        METR_03,
        {"itl": lambda self, a, t: np.diff([a.arrival, *a.token_times])},
        f"{VLLM}/issues/7242",
    ),
    Fault(
        "metrics-itl-elapsed",
        "ITL are times since the first token",
        METR_03,
        {"itl": lambda self, a, t: t[1:] - t[:1]},
        TIRED,
    ),
    Fault(
        "metrics-itl-sorted", "ITL are sorted", METR_03, {"itl": lambda self, a, t: np.sort(np.diff(_times(a)))}, TIRED
    ),
    Fault(
        "metrics-itl-of-the-last-1024",
        "gaps are kept in a ring of 1024",
        METR_03,
        {"itl": lambda self, a, t: np.diff(_times(a))[-1024:]},
        "PROPERTIES ME1",
    ),
    Fault(
        "metrics-tpot-by-n",
        "TPOT divides by n",
        METR_04,
        {"tpot": lambda self, t, g: float((t[-1] - t[0]) / len(t)) if len(t) > 1 else None},
        "https://github.com/lmstudio-ai/mlx-engine/commit/a385fb5",
    ),
    Fault(
        "metrics-tpot-with-ttft",
        "TPOT counts the time to the first token",
        METR_04,
        {"tpot": lambda self, t, g: float(t[-1] / (len(t) - 1)) if len(t) > 1 else None},
        "https://github.com/lmstudio-ai/mlx-engine/commit/a385fb5",
    ),
    Fault(
        "metrics-tpot-median",
        "TPOT is the median gap",
        METR_04,
        {"tpot": lambda self, t, g: float(np.median(g)) if len(g) else None},
        TIRED,
    ),
    Fault(
        "metrics-tpot-requested-length",
        "TPOT divides by the length that was asked for",
        METR_04,
        {"tpot": lambda self, t, g: float((t[-1] - t[0]) / 63) if len(t) > 1 else None},
        f"{SGLANG}/issues/10746",
    ),
    Fault(
        "metrics-tpot-by-position",
        "TPOT divides by prompt and output together",
        METR_04,
        {"tpot": lambda self, t, g: float((t[-1] - t[0]) / (len(t) + 15)) if len(t) > 1 else None},
        "https://github.com/mirage-project/mirage/issues/382",
    ),
    Fault(
        "metrics-tpot-per-step",
        "TPOT is the mean time of a step, however many tokens it gives",
        METR_05,
        {"tpot": _per_step},
        f"{VLLM}/pull/24015",
    ),
    Fault("metrics-itl-per-step", "gaps of 0 are left out", METR_05, {"itl": _steps_alone}, f"{VLLM}/pull/24015"),
    Fault(
        "metrics-one-token-tpot-zero",
        "the TPOT of one token is 0",
        METR_06,
        {"tpot": lambda self, t, g: RequestMetrics.tpot(self, t, g) if len(t) > 1 else (0.0 if len(t) else None)},
        TIRED,
    ),
    Fault(
        "metrics-one-token-tpot-ttft",
        "the TPOT of one token is its TTFT",
        METR_06,
        {"tpot": lambda self, t, g: RequestMetrics.tpot(self, t, g) if len(t) > 1 else self.ttft(t)},
        TIRED,
    ),
    Fault(
        "metrics-instant-token-lost",
        "a TTFT of 0 is taken for none",
        METR_06,
        {"ttft": lambda self, t: (float(t[0]) or None) if len(t) else None},
        "FACTS.md: scale or default when scale is 0",
    ),
    Fault(
        "metrics-no-token-zero",
        "a request without a token has latencies of 0",
        METR_07,
        {
            "ttft": lambda self, t: float(t[0]) if len(t) else 0.0,
            "e2el": lambda self, t: float(t[-1]) if len(t) else 0.0,
        },
        TIRED,
    ),
    Fault(
        "metrics-no-token-fails",
        "a request without a token raises an error",
        METR_07,
        {"ttft": lambda self, t: float(t[0])},
        "the JAX post, part 2: token_times[0]",
    ),
    Fault("metrics-float32-times", "times are kept in float32", METR_08, _with_arguments(_in_float32), "PROPERTIES X5"),
    Fault(
        "metrics-microseconds",
        "times are rounded to microseconds",
        METR_08,
        _with_arguments(_in_microseconds),
        "the JAX post, part 2: datetime counts microseconds",
    ),
    Fault(
        "metrics-no-arrival-at-0", "an arrival at 0.0 is taken for none", METR_08, _with_arguments(_no_time_at_0), TIRED
    ),
    Fault(
        "metrics-no-negative-time", "a negative time is refused", METR_08, {"guard": _no_negative_time}, "PROPERTIES X5"
    ),
    Fault(
        "metrics-last-gap-lost",
        "the last gap is not recorded",
        METR_09,
        {"itl": lambda self, a, t: np.diff(_times(a))[:-1]},
        "PROPERTIES ME1",
    ),
    Fault(
        "metrics-tpot-rounded",
        "TPOT is rounded to microseconds, as it is printed",
        METR_09,
        {"tpot": lambda self, t, g: None if len(t) < 2 else round(RequestMetrics.tpot(self, t, g) or 0.0, 6)},
        TIRED,
    ),
    Fault(
        "metrics-arrival-of-the-first",
        "the arrival of another request is used",
        METR_10,
        {"respond": _clock_of_the_first},
        "https://github.com/exo-explore/exo/commit/6ee673147",
    ),
    Fault(
        "metrics-gaps-pile-up",
        "gaps of earlier requests are among them",
        METR_10,
        {"respond": _all_gaps_so_far},
        "https://github.com/exo-explore/exo/commit/6ee673147",
    ),
    Fault(
        "metrics-sorts-times",
        "times out of order are sorted",
        METR_11,
        {"guard": _not_finite_alone, **_with_arguments(lambda a: {"token_times": sorted(a.token_times)})},
        TIRED,
    ),
    Fault(
        "metrics-negative-gaps", "times out of order give negative gaps", METR_11, {"guard": _not_finite_alone}, TIRED
    ),
    Fault(
        "metrics-before-arrival",
        "a token before the arrival has a negative TTFT",
        METR_12,
        {"guard": _arrival_unchecked},
        "PROPERTIES X9",
    ),
    Fault(
        "metrics-arrival-clamped",
        "a token before the arrival has a TTFT of 0",
        METR_12,
        {"guard": _arrival_unchecked, "ttft": lambda self, t: max(float(t[0]), 0.0) if len(t) else None},
        TIRED,
    ),
    Fault("metrics-nan", "times that are NaN are taken", METR_13, {"guard": _order_alone}, "PROPERTIES X9"),
    Fault(
        "metrics-whole-tpot",
        "TPOT of integer times is cut to an integer",
        METR_14,
        {"respond": _whole_tpot},
        "PROPERTIES X4",
    ),
    Fault("metrics-floats-alone", "integer times are refused", METR_14, {"guard": _floats_alone}, "PROPERTIES X4"),
    Fault(
        "metrics-takes-the-list",
        "the caller's list of times is emptied",
        METR_15,
        {"respond": _takes_the_list},
        "PROPERTIES X6",
    ),
    Fault(
        "metrics-arrival-into-the-list",
        "the arrival is put in front of the caller's list of times",
        METR_15,
        {"respond": _arrival_before_times},
        "PROPERTIES X6",
    ),
    Fault(
        "metrics-mean-by-tokens",
        "requests weigh as much as they have tokens",
        METR_21,
        {"mean_of_requests": _by_tokens},
        "PROPERTIES ME4",
    ),
    Fault("metrics-median-of-requests", "medians are given for means", METR_21, {"mean_of_requests": _median}, TIRED),
    Fault(
        "metrics-tpot-by-gaps",
        "mean TPOT weighs every gap alike",
        METR_22,
        {"mean_of_requests": _weighted},
        "PROPERTIES ME4",
    ),
    Fault(
        "metrics-one-token-counts",
        "requests of one token count with a TPOT of 0",
        METR_22,
        {"mean_of_requests": _zero_for_none},
        TIRED,
    ),
    Fault(
        "metrics-itl-of-means",
        "mean ITL is the mean of the requests' means",
        METR_23,
        {"mean_of_gaps": _mean_of_means},
        "PROPERTIES ME4",
    ),
    Fault(
        "metrics-itl-with-ttft",
        "times to the first token are among the gaps",
        METR_23,
        {"mean_of_gaps": _with_first_gaps},
        f"{VLLM}/issues/7242",
    ),
    Fault("metrics-busy-time", "rates divide by the sum of latencies", METR_24, {"span": _busy_time}, TIRED),
    Fault(
        "metrics-list-order",
        "rates divide by the time from the first to the last request in the list",
        METR_24,
        {"span": _of_the_first},
        TIRED,
    ),
    Fault(
        "metrics-decode-time",
        "rates divide by the time from the first token on",
        METR_24,
        {"span": _decode_time},
        "the kind of lmstudio-ai/mlx-engine a385fb5, the other way round",
    ),
    Fault(
        "metrics-prompt-in-output",
        "the prompt counts in the output rate",
        METR_24,
        {"emitted": lambda self, a, s: AggregateMetrics.emitted(self, a, s) + sum(a.prompt_tokens[i] for i in s)},
        "PROPERTIES ME6",
    ),
    Fault(
        "metrics-first-token-not-emitted",
        "the output rate leaves out first tokens",
        METR_24,
        {"emitted": lambda self, a, s: AggregateMetrics.emitted(self, a, s) - len(s)},
        TIRED,
    ),
    Fault(
        "metrics-first-128-requests",
        "requests past the 128th do not count",
        METR_24,
        {"served": _of_the_first_128},
        "PROPERTIES ME6",
    ),
    Fault(
        "metrics-no-rate-of-0",
        "where nothing is computed there is no prefill rate",
        METR_25,
        {"respond": _no_rate_of_0},
        "PROPERTIES ME6",
    ),
    Fault(
        "metrics-one-computed",
        "a prompt that is cached in full counts as one token",
        METR_25,
        {"computed": _one_computed},
        "PROPERTIES ME6",
    ),
    Fault(
        "metrics-cached-computed",
        "the prefill rate counts cached tokens",
        METR_25,
        {"computed": lambda self, a, s: sum(a.prompt_tokens[i] for i in s)},
        "https://github.com/GeeeekExplorer/nano-vllm/commit/8d63a98",
    ),
    Fault(
        "metrics-output-in-prefill",
        "the prefill rate counts emitted tokens too",
        METR_25,
        {"computed": lambda self, a, s: AggregateMetrics.computed(self, a, s) + self.emitted(a, s)},
        "https://github.com/GeeeekExplorer/nano-vllm/commit/8d63a98",
    ),
    Fault(
        "metrics-cached-in-pages",
        "cached tokens count in whole pages of 16",
        METR_25,
        {"computed": _no_reuse_below_a_page},
        TIRED,
    ),
    Fault(
        "metrics-unserved-computed",
        "prompts of requests without a token count",
        METR_26,
        {"computed": _everyone},
        TIRED,
    ),
    Fault(
        "metrics-unserved-in-span",
        "the arrival of a request without a token begins the span",
        METR_26,
        {"span": _span_of_everyone},
        TIRED,
    ),
    Fault(
        "metrics-infinite-rate",
        "the rate is infinite where no time passes",
        METR_27,
        {"respond": _infinite_rates},
        TIRED,
    ),
    Fault("metrics-zero-rate", "the rate is 0 where no time passes", METR_27, {"respond": _zero_rates}, TIRED),
    Fault(
        "metrics-no-short-span",
        "a microsecond is taken for no time",
        METR_27,
        {"span": _no_short_span},
        "PROPERTIES X9",
    ),
    Fault(
        "metrics-span-clamped",
        "rates divide by a nanosecond at least",
        METR_27,
        {"span": _a_nanosecond},
        "PROPERTIES X9",
    ),
    Fault(
        "metrics-first-alone",
        "the first request is checked, and no other",
        METR_28,
        {"guard": _first_alone},
        "PROPERTIES X9",
    ),
    Fault(
        "metrics-ends-alone",
        "of a request's times the first and the last are checked, and none between them",
        METR_28,
        {"guard": _ends_alone},
        TIRED,
    ),
    Fault(
        "metrics-negative-counts",
        "negative counts are taken",
        METR_28,
        {"guard_counts": _more_cached_alone},
        "PROPERTIES X9",
    ),
    Fault(
        "metrics-shortest-list",
        "lists of different lengths are cut to the shortest",
        METR_28,
        {"guard": lambda self, a: None, "respond": _zipped},
        "zip without strict",
    ),
    Fault(
        "metrics-any-counts",
        "cached tokens are not compared with the prompt",
        METR_28,
        {"guard_counts": lambda self, a: None},
        "PROPERTIES X9",
    ),
    Fault(
        "metrics-unserved-counts-unchecked",
        "counts of a request without a token are not looked at",
        METR_28,
        {"guard_counts": _counts_of_served_alone},
        "PROPERTIES X9",
    ),
    Fault(
        "metrics-never-unnoticed",
        "of many requests times that are not finite are taken",
        METR_28,
        {"guard": _never_unnoticed},
        "PROPERTIES X9",
    ),
    Fault(
        "metrics-sorts-arrivals",
        "the caller's list of arrivals is sorted",
        METR_29,
        {"respond": _sorts_arrivals},
        TIRED,
    ),
    Fault("metrics-any-order", "times are not looked at", METR_28, {"guard": _unchecked_order}, "PROPERTIES X9"),
)


# honest ways


def _gaps_of_elapsed(self: RequestMetrics, a: Arguments, elapsed: np.ndarray) -> np.ndarray:
    return np.diff(elapsed)


def _mean_gap(self: RequestMetrics, elapsed: np.ndarray, itl: np.ndarray) -> float | None:
    return float(sum(itl.tolist())) / len(itl) if len(itl) else None


def _through_milliseconds(self: RequestMetrics, a: Arguments) -> np.ndarray:
    return (_times(a) - a.arrival) * 1000.0 / 1000.0


def _running_mean(self: AggregateMetrics, each: list[Answers], part: str) -> Answer:
    right, mean, count = AggregateMetrics.mean_of_requests(self, each, part), 0.0, 0
    for value in (float(answers[part].value) for answers in each if answers[part].value.size):
        count += 1
        mean += (value - mean) / count
    return Answer(np.array(mean), right.budget) if count else right


VARIANTS: tuple[Variant, ...] = (
    Variant("metrics-relative", "gaps of times since the arrival", "request_metrics", {"itl": _gaps_of_elapsed}),
    Variant("metrics-mean-gap", "TPOT as the mean of the gaps", "request_metrics", {"tpot": _mean_gap}),
    Variant(
        "metrics-of-milliseconds",
        "a clock that counts milliseconds",
        "request_metrics",
        {"elapsed": _through_milliseconds},
    ),
    Variant(
        "metrics-running-mean",
        "means that are updated request by request",
        "aggregate_metrics",
        {"mean_of_requests": _running_mean},
    ),
)
