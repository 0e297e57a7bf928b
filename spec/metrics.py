"""Latency of generation: TTFT, TPOT, ITL and E2EL of one request, their means over many, and token rates.

Times are seconds on one clock, of any zero, as floats or integers; token_times holds the time of every emitted token, in order. Tokens that
came together (a chunk of a speculative step, say) have the same time.

    TTFT  time to first token: the first token's time less the arrival
    ITL   inter-token latencies: the n - 1 gaps between tokens
    TPOT  time per output token after the first: (E2EL - TTFT) / (n - 1)
    E2EL  end-to-end latency: the last token's time less the arrival

A request without a token has none of them (None, and an empty ITL); one of a single token has no TPOT and an empty ITL.
None is an empty array here.

Source: the JAX post, part 2, and the papers on serving that it follows; PROPERTIES ME1 to ME6.
"""

from __future__ import annotations

import numpy as np

from inferspec.spec.contract import (
    Answer,
    Answers,
    Arguments,
    Aspect,
    Contract,
    Level,
    Operation,
    Requirement,
    Signature,
)
from inferspec.spec.numerics import Precision, operations, unit_roundoff

POST = "the JAX post, part 2"

_U = unit_roundoff("float64")
_NONE = Answer(np.zeros(0), np.zeros(0))


def _checked(arrival: float, token_times: list[float]) -> None:
    times = np.array([arrival, *token_times], np.float64)
    if not np.isfinite(times).all():
        raise ValueError(f"times are {times.tolist()}, not all of them finite")
    if (np.diff(times) < 0).any():
        raise ValueError(f"times are {times.tolist()}, not in order")


class RequestMetrics(Operation):
    """TTFT, TPOT, ITL and E2EL of one request."""

    signature = Signature.parse("request_metrics(arrival, token_times)")
    parts = ("ttft", "tpot", "itl", "e2el")

    def guard(self, a: Arguments) -> None:
        self.guard_times(a)

    def guard_times(self, a: Arguments) -> None:
        _checked(a.arrival, a.token_times)

    def elapsed(self, a: Arguments) -> np.ndarray:
        """Seconds from the arrival to each token."""
        return np.array(a.token_times, np.float64) - a.arrival

    def ttft(self, elapsed: np.ndarray) -> float | None:
        return float(elapsed[0]) if len(elapsed) else None

    def e2el(self, elapsed: np.ndarray) -> float | None:
        return float(elapsed[-1]) if len(elapsed) else None

    def itl(self, a: Arguments, elapsed: np.ndarray) -> np.ndarray:
        return np.diff(np.array(a.token_times, np.float64))

    def tpot(self, elapsed: np.ndarray, itl: np.ndarray) -> float | None:
        n = len(elapsed)
        return float((elapsed[-1] - elapsed[0]) / (n - 1)) if n > 1 else None

    def evaluate(self, a: Arguments, precision: Precision) -> Answers:
        """Budgets, with u the unit roundoff of float64, in which every clock counts, and t the elapsed times:

        TTFT, E2EL: a subtraction, a product and a quotient where the clock counts other units: 3u·t.
        ITL: the same of times, or of elapsed times that were rounded so themselves: 3u·(t_i + t_{i-1} + gap).
        TPOT: E2EL - TTFT of such ones is off by 3u·(E2EL + TTFT), as a sum of n - 1 gaps by (n - 1)u of it; then a
        division, and the units: (3u·(E2EL + TTFT) + (n + 4)u·(E2EL - TTFT)) / (n - 1).
        """
        elapsed = self.elapsed(a)
        gaps = np.diff(np.array(a.token_times, np.float64)) if len(elapsed) else np.zeros(0)
        itl = self.itl(a, elapsed)
        t, n = np.abs(elapsed), len(elapsed)
        budgets: dict[str, np.ndarray] = {}
        if n:
            budgets |= {"ttft": 3 * _U * t[0], "e2el": 3 * _U * t[-1]}
        if n > 1:
            decode = np.abs(gaps).sum()
            budgets["tpot"] = (3 * _U * (t[-1] + t[0]) + operations(_U, n + 4) * decode) / (n - 1)
        spread = 3 * _U * (t[1:] + t[:-1] + np.abs(gaps)) if n > 1 else np.zeros(0)
        values = {"ttft": self.ttft(elapsed), "tpot": self.tpot(elapsed, itl), "e2el": self.e2el(elapsed)}
        answers = {name: _answer(value, budgets.get(name, 0.0)) for name, value in values.items()}
        answers["itl"] = Answer(itl, spread if spread.shape == itl.shape else np.zeros(itl.shape))
        return {part: answers[part] for part in self.parts}

    def result_dtype(self, a: Arguments) -> str:
        return "float64"


class AggregateMetrics(Operation):
    """Means over requests, and tokens per second. A request without a token counts nowhere.

    arrivals, token_times, prompt_tokens, cached_tokens: one entry for each request; cached_tokens are those of the
    prompt that were not computed, since a prefix of it was cached.
    """

    signature = Signature.parse("aggregate_metrics(arrivals, token_times, prompt_tokens, cached_tokens)")
    parts = ("ttft", "tpot", "itl", "e2el", "output_rate", "prefill_rate")

    def guard(self, a: Arguments) -> None:
        self.guard_lengths(a)
        for arrival, token_times in zip(a.arrivals, a.token_times, strict=True):
            _checked(arrival, token_times)
        self.guard_counts(a)

    def guard_lengths(self, a: Arguments) -> None:
        lengths = {len(x) for x in (a.arrivals, a.token_times, a.prompt_tokens, a.cached_tokens)}
        if len(lengths) > 1:
            raise ValueError(f"lists of {sorted(lengths)} requests")

    def guard_counts(self, a: Arguments) -> None:
        for prompt, cached in zip(a.prompt_tokens, a.cached_tokens, strict=True):
            if not 0 <= cached <= prompt:
                raise ValueError(f"{cached} cached tokens of a prompt of {prompt}")

    def served(self, a: Arguments) -> list[int]:
        """The requests that count."""
        return [i for i, times in enumerate(a.token_times) if times]

    def of_each(self, a: Arguments, served: list[int]) -> list[Answers]:
        one = RequestMetrics()
        return [
            one.evaluate(Arguments(arrival=a.arrivals[i], token_times=a.token_times[i]), Precision.FLOAT32)
            for i in served
        ]

    def mean_of_requests(self, each: list[Answers], part: str) -> Answer:
        return _mean([answers[part] for answers in each])

    def mean_of_gaps(self, each: list[Answers]) -> Answer:
        return _mean([answers["itl"] for answers in each])

    def span(self, a: Arguments, served: list[int]) -> float:
        """Seconds from the first arrival to the last token."""
        return max(a.token_times[i][-1] for i in served) - min(a.arrivals[i] for i in served)

    def emitted(self, a: Arguments, served: list[int]) -> int:
        return sum(len(a.token_times[i]) for i in served)

    def computed(self, a: Arguments, served: list[int]) -> int:
        return sum(a.prompt_tokens[i] - a.cached_tokens[i] for i in served)

    def evaluate(self, a: Arguments, precision: Precision) -> Answers:
        """Budgets: a mean of m values adds m + 1 roundings to the mean of theirs; a rate has the three
        roundings of a span and a division."""
        served = self.served(a)
        each = self.of_each(a, served)
        answers = {part: self.mean_of_requests(each, part) for part in ("ttft", "tpot", "e2el")}
        answers["itl"] = self.mean_of_gaps(each)
        span = self.span(a, served) if served else 0.0
        for part, count in (("output_rate", self.emitted), ("prefill_rate", self.computed)):
            rate = count(a, served) / span if span > 0 else None
            answers[part] = _answer(rate, 0.0 if rate is None else operations(_U, 4) * rate)
        return {part: answers[part] for part in self.parts}

    def result_dtype(self, a: Arguments) -> str:
        return "float64"


def _answer(value: float | None, budget: float | np.ndarray) -> Answer:
    return _NONE if value is None else Answer(np.array(value), np.array(budget, np.float64))


def _mean(parts: list[Answer]) -> Answer:
    values = np.concatenate([np.zeros(0), *(np.atleast_1d(part.value) for part in parts)])
    if not values.size:
        return _NONE
    budgets = np.concatenate([np.zeros(0), *(np.atleast_1d(part.budget) for part in parts)])
    rounded = operations(_U, values.size + 1) * np.abs(values).mean()
    return Answer(np.array(values.mean()), np.array(budgets.mean() + rounded))


def _one(id: str, text: str, aspect: Aspect = Aspect.VALUE, source: str = "", level: Level = Level.MUST) -> Requirement:
    return Requirement(id, text, "request_metrics", level, aspect, source or POST)


def _many(id: str, text: str, aspect: Aspect = Aspect.VALUE, source: str = "") -> Requirement:
    return Requirement(id, text, "aggregate_metrics", aspect=aspect, source=source or POST)


METR_01 = _one("METR-01", "TTFT is the time of the first token less the arrival", source="PROPERTIES ME3")
METR_02 = _one("METR-02", "E2EL is the time of the last token less the arrival")
METR_03 = _one(
    "METR-03",
    "ITL are the n - 1 gaps between n tokens, in order, none of them the time to the first",
    source="https://github.com/vllm-project/vllm/issues/7242; PROPERTIES ME1",
)
METR_04 = _one(
    "METR-04",
    "TPOT is (E2EL - TTFT) / (n - 1): the mean gap, and not the time to the first token",
    source="PROPERTIES ME1",
)
METR_05 = _one(
    "METR-05",
    "tokens that come together each count: gaps of 0 are gaps, and TPOT does not depend on how tokens are grouped",
    source="https://github.com/vllm-project/vllm/pull/24015; PROPERTIES ME2",
)
METR_06 = _one("METR-06", "one token has a TTFT, an equal E2EL, no TPOT and no gap", source="PROPERTIES ME1, decisions")
METR_07 = _one("METR-07", "a request without a token has no metric and no gap", source="PROPERTIES ME1")
METR_08 = _one(
    "METR-08",
    "the clock's zero does not matter: 0 and times before it are times, and differences of times past 1.7e9 seconds are "
    "exact to float64",
    source="PROPERTIES X5",
)
METR_09 = _one("METR-09", "TTFT + sum(ITL) = E2EL, and TTFT + (n - 1) · TPOT = E2EL", source="PROPERTIES ME1")
METR_10 = _one(
    "METR-10",
    "a request's metrics are its own: repeated, they are the same bit for bit, whatever other requests did, refused ones "
    "too",
    source="PROPERTIES ME5, X7",
)
METR_11 = _one("METR-11", "token times that decrease are refused", Aspect.GUARD, "PROPERTIES X9", Level.SHOULD)
METR_12 = _one("METR-12", "a token before the arrival is refused", Aspect.GUARD, "PROPERTIES X9", Level.SHOULD)
METR_13 = _one("METR-13", "times that are not finite are refused", Aspect.GUARD, "PROPERTIES X9", Level.SHOULD)
METR_14 = _one(
    "METR-14",
    "times may be integers: they give what the same times in floats do, fractions too",
    source="PROPERTIES X4",
)
METR_15 = _one("METR-15", "the caller's list of times is left as it was", source="PROPERTIES X6")
METR_21 = _many("METR-21", "mean TTFT and E2EL weigh every request alike", source="PROPERTIES ME4")
METR_22 = _many(
    "METR-22",
    "mean TPOT weighs every request of two tokens or more alike, however many it has",
    source="PROPERTIES ME4",
)
METR_23 = _many("METR-23", "mean ITL weighs every gap of every request alike", source="PROPERTIES ME4")
METR_24 = _many(
    "METR-24",
    "output_rate is emitted tokens per second from the first arrival to the last token, and no prompt counts in it, "
    "however many requests there are",
    source="PROPERTIES ME6",
)
METR_25 = _many(
    "METR-25",
    "prefill_rate counts, over the same seconds, the prompt tokens that were computed: those that were cached are not among "
    "them, and where all were the rate is 0",
    source="https://github.com/GeeeekExplorer/nano-vllm/commit/8d63a98; PROPERTIES ME6",
)
METR_26 = _many(
    "METR-26",
    "a request without a token counts nowhere, and where none has one there is no metric",
    source="PROPERTIES ME1",
)
METR_27 = _many(
    "METR-27",
    "where no time passes there is no rate, None and not infinite, and where any passes there is one",
    source="PROPERTIES X9",
)
METR_28 = _many(
    "METR-28",
    "lists of different lengths, times out of order or not finite, negative counts and more cached than prompt tokens are refused, "
    "whichever request has them",
    Aspect.GUARD,
    "PROPERTIES X9",
)


METR_29 = _many("METR-29", "the caller's lists are left as they were", source="PROPERTIES X6")
METR_30 = _many(
    "METR-30",
    "the result is that of the requests given: repeated, it is the same bit for bit, whatever was asked before, "
    "refused or not",
    source="PROPERTIES ME5, X7",
)
METR_31 = _many(
    "METR-31",
    "times of many requests may be integers: they give what the same times in floats do, fractions too",
    source="PROPERTIES X4",
)


CONTRACT = Contract(
    component="metrics",
    title="latency and throughput of generation",
    version=1,
    operations=(RequestMetrics, AggregateMetrics),
    envelope={
        "clocks": ("zero", "monotonic", "epoch", "ahead"),
        "tokens": 2000,
    },
    requirements=tuple(value for value in list(globals().values()) if isinstance(value, Requirement)),
)
