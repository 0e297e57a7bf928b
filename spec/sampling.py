"""Sampling: top-k and top-p filters of logits, and the draw of one id from each row.

Shapes: logits N..×V, uniform N.., ids N... A row's ids are ordered by logit, the largest first, equal ones by lowest id;
top-k keeps the first k of that order, and top-p, after it, the shortest beginning whose share of the probability that
top-k left is at least p. A temperature above 0 divides the logits before that; temperature 0 takes the first id.

An id is drawn by inverse CDF: with cdf(i) the surviving probability of the ids up to i, in ascending order of ids, the
smallest id whose cdf exceeds the row's uniform number. So every draw can be replayed and no generator is hidden. Who has
sorted the ids for the filters may draw from them as they then stand, the likeliest first or last: that is seen, or declared as
`draws_by: ["order"]` or `["rising"]`, and `["order if filtered"]`, `["order if top_k"]` or `["order if top_p"]` of who sorts only for
a filter, or only for one of them (`rising` likewise). A subject whose objects take no `uniform` draws by a generator of its own; then its draws are judged
by statistics.

Which of equal ids come first is left to chance by the sorts and selections of most libraries, and many keep all that are equal to
the k-th: who does either says `ties: ["any"]`, and is asked which ids are likelier than others, and for enough of them. At
temperature 0 it may then give any of the likeliest where there is a filter.

A row has no distribution when it has a NaN, or nothing above -inf; +inf is not specified.

Source: the tiny-llm course, week 1 day 7; Holtzman et al. 2020 (top-p), Fan et al. 2018 (top-k).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from operator import index
from typing import Any, ClassVar

import numpy as np

from inferspec.spec.contract import Answer, Arguments, Contract, Operation, Signature
from inferspec.spec.numerics import (
    Precision,
    arithmetic_unit,
    f64,
    is_float,
    library,
    operations,
    rounding,
)
from inferspec.spec.sampling_sentences import SENTENCES

ORDERS = ("temperature-first", "filters-first")
"""What top-p sees: probabilities after the temperature (vLLM, SGLang, transformers; what we ask for), or before it
(llama.cpp, mlx-lm, the course). Top-k does not care."""

DRAWS_BY = (
    "id",
    "order",
    "rising",
    "order if filtered",
    "rising if filtered",
    "order if top_k",
    "rising if top_k",
    "order if top_p",
    "rising if top_p",
)
"""What the cdf of a draw goes through: ids as they are numbered, or as their logits are ordered, the largest first or last; or
so only where there is a filter, a top_k or a top_p, that has sorted them."""

TIES = ("lowest ids", "any")
"""Which of equal ids survive where not all do."""

BY_ORDER = {"draws_by": ("order",)}
"""What an adapter declares that draws from sorted ids."""

ANY_OF_EQUALS = {"ties": ("any",)}
"""What an adapter declares that leaves to chance which of equal ids survive."""


class Filtering(Operation):
    """What filtering and sampling share. Steps work on rows: R×V in float64, every row with a distribution."""

    narrows: ClassVar = {"top_k": ("top_k", (False,)), "top_p": ("top_p", (False,))}

    def guard(self, a: Arguments) -> None:
        self.guard_logits(a)
        self.guard_top_k(a)
        self.guard_top_p(a)

    def guard_logits(self, a: Arguments) -> None:
        if not is_float(a.logits.dtype):
            raise TypeError(f"logits are {a.logits.dtype.name}; they take a floating-point array")
        if a.logits.ndim < 1 or not a.logits.shape[-1]:
            raise ValueError(f"logits are {a.logits.shape}; they take N..×V with at least one id")

    def guard_top_k(self, a: Arguments) -> None:
        if a.top_k is not None and index(a.top_k) < -1:
            raise ValueError(f"top_k is {a.top_k}; it takes a positive integer, or None, 0 or -1 for no limit")

    def guard_top_p(self, a: Arguments) -> None:
        if not 0 < a.top_p <= 1:
            raise ValueError(f"top_p is {a.top_p}; it takes a number above 0 and up to 1")

    def rows(self, a: Arguments) -> tuple[np.ndarray, np.ndarray]:
        """The logits as rows, and which rows have a distribution; the others are replaced by zeros."""
        z = f64(a.logits).reshape(-1, a.logits.shape[-1])
        sound = ~np.isnan(z).any(axis=-1) & (z > -np.inf).any(axis=-1)
        return np.where(sound[:, None], z, 0.0), sound

    def order(self, z: np.ndarray) -> np.ndarray:
        """The ids of each row, largest logit first, equal ones by lowest id."""
        return np.argsort(-z, axis=-1, kind="stable")

    def limit(self, a: Arguments) -> int:
        """How many entries top-k leaves."""
        size = a.logits.shape[-1]
        return size if a.top_k in (None, 0, -1) else min(a.top_k, size)

    def top_k(self, z: np.ndarray, order: np.ndarray, a: Arguments) -> np.ndarray:
        """Which entries are among the first of the order."""
        return placed(np.broadcast_to(np.arange(z.shape[-1]) < self.limit(a), z.shape), order)

    def weights(self, x: np.ndarray, kept: np.ndarray) -> np.ndarray:
        """Probabilities of the kept entries, up to a factor: the largest has weight 1."""
        return weights_of(np.where(kept, x, -np.inf))

    def before(self, weights: np.ndarray, order: np.ndarray, a: Arguments) -> np.ndarray:
        """What share of the mass lies before each entry in the order."""
        sums = running(np.take_along_axis(weights, order, -1))[:, :-1]
        with np.errstate(invalid="ignore"):
            return placed(sums, order) / weights.sum(-1, keepdims=True)

    def top_p(self, x: np.ndarray, order: np.ndarray, kept: np.ndarray, a: Arguments) -> np.ndarray:
        """Which of the kept entries top-p leaves: those before which less than p of the mass lies."""
        if a.top_p == 1:
            return kept
        return kept & (self.before(self.weights(x, kept), order, a) < a.top_p)

    def survivors(self, z: np.ndarray, x: np.ndarray, a: Arguments) -> np.ndarray:
        """Which entries survive both filters. z: the logits; x: those that top-p sees."""
        order = self.order(z)
        return self.top_p(x, order, self.top_k(z, order, a), a)


def placed(values: np.ndarray, order: np.ndarray) -> np.ndarray:
    """What stands in the order of ids, by id."""
    by_id = np.empty_like(values)
    np.put_along_axis(by_id, order, values, -1)
    return by_id


def running(weights: np.ndarray) -> np.ndarray:
    """Sums of the first 0, 1, … all weights of each row."""
    return np.concatenate([np.zeros((len(weights), 1)), np.cumsum(weights, axis=-1)], axis=-1)


def weights_of(x: np.ndarray) -> np.ndarray:
    """Probabilities up to a factor: exp(x - max)."""
    with np.errstate(invalid="ignore"):
        return np.exp(x - x.max(axis=-1, keepdims=True))


@dataclass(frozen=True, slots=True)
class _Bounds:
    """Between what an honest implementation's sums of probabilities may lie, in arithmetic of unit roundoff a.

    Weights: exp(x - max) with d = max - x. Tempering, subtracting and normalising logarithms are at most four roundings
    of d and one of log V; the exponential and a quotient are two library calls; dividing by a temperature that is no
    power of two, or multiplying by its inverse, rounds both logits three times. What is tiny may be flushed to zero.

    Shares: with a mass P before a border and S after it, P/(P + S) rises with P and falls with S, so that bounds on the
    weights bound it. A sum of n numbers in any order errs by n·a of it, once in the sum and once in the total; adding a
    zero is exact, so n counts the weights above zero. Four roundings more: quotient, threshold, 1 - threshold, product.
    """

    low: np.ndarray
    high: np.ndarray
    tiny: np.ndarray
    unit: float

    @classmethod
    def of(cls, x: np.ndarray, unit: float, dtype: str, roundings: np.ndarray) -> _Bounds:
        """Bounds on the weights of rows of logits. roundings: what a rounding of a unit would be absolutely, where the
        logits were divided."""
        distance = x.max(axis=-1, keepdims=True) - x
        with np.errstate(invalid="ignore"):
            error = operations(unit, 4) * distance + operations(unit, 1) * math.log(x.shape[-1]) + library(unit, 2)
            error = np.minimum(error + np.where(distance > 0, 3 * unit * roundings, 0.0), 300.0)
        tiny = np.where(np.isinf(distance), 0.0, rounding(np.zeros(()), dtype))
        weights = np.exp(-distance)
        return cls(np.maximum(weights * np.exp(-error) - tiny, 0.0), weights * np.exp(error) + tiny, tiny, unit)

    def shares(self, surely: np.ndarray, perhaps: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Bounds of the share of mass before each border (V + 1 of them) of the columns as they stand.

        surely, perhaps: which entries are surely part of the mass, and which may be.
        """
        low, high = running(np.where(surely, self.low, 0.0)), running(np.where(perhaps, self.high, 0.0))
        after_low, after_high = low[:, -1:] - low, high[:, -1:] - high
        with np.errstate(invalid="ignore"):
            least, most = low / (low + after_high), high / (high + after_low)
        count = (perhaps & (self.high > 2 * self.tiny)).sum(axis=-1, keepdims=True)
        slack = np.where(count > 1, (2 * count + 4) * self.unit, 0.0)
        return np.nan_to_num(least) - slack, np.nan_to_num(most, nan=1.0) + slack

    def along(self, order: np.ndarray) -> _Bounds:
        """The same with the columns in another order."""
        low, high, tiny = (np.take_along_axis(weights, order, -1) for weights in (self.low, self.high, self.tiny))
        return _Bounds(low, high, tiny, self.unit)

    def apart(self) -> np.ndarray:
        """Between which neighbours of sorted columns, V - 1 of them, no rounding makes equal weights."""
        return (self.low[:, 1:] > self.high[:, :-1]) | (self.low[:, :-1] > self.high[:, 1:])


def _undecided(bounds: _Bounds, order: np.ndarray, kept: np.ndarray, top_p: float) -> np.ndarray:
    """The kept entries for which rounding decides whether top-p leaves them. The first one is always left."""
    if top_p == 1:
        return np.zeros_like(kept)
    inside = np.take_along_axis(kept, order, -1)
    least, most = (share[:, :-1] for share in bounds.along(order).shares(inside, inside))
    return placed(inside & (least < top_p) & (most >= top_p) & (np.arange(kept.shape[-1]) > 0), order)


class FilterLogits(Filtering):
    """The logits, with -inf for what does not survive."""

    signature = Signature.parse("filter_logits(logits, top_k=None, top_p=1.0)")

    def evaluate(self, a: Arguments, precision: Precision) -> Answer:
        """Budget: none for what the filters decide, everything where rounding decides (see `_Bounds`)."""
        z, sound = self.rows(a)
        kept = self.survivors(z, z, a) | ~sound[:, None]
        value = self.filtered(f64(a.logits).reshape(z.shape), kept)
        open_ = self.undecided(z, a, precision) & sound[:, None]
        return Answer(value.reshape(a.logits.shape), np.where(open_, np.inf, 0.0).reshape(a.logits.shape))

    def filtered(self, logits: np.ndarray, kept: np.ndarray) -> np.ndarray:
        return np.where(kept, logits, -np.inf)

    def undecided(self, z: np.ndarray, a: Arguments, precision: Precision) -> np.ndarray:
        """The entries for which rounding decides whether they survive."""
        order, dtype = Filtering.order(self, z), a.logits.dtype.name
        kept = Filtering.top_k(self, z, order, a)
        inside = np.where(kept, z, -np.inf)
        bounds = _Bounds.of(inside, arithmetic_unit(precision, dtype), _arithmetic(precision, dtype), np.zeros(()))
        return _undecided(bounds, order, kept, a.top_p)

    def result_dtype(self, a: Arguments) -> str:
        return a.logits.dtype.name


class Sampler(Filtering):
    """One id from each row. `uniform` left out: drawn by a generator of the subject's own, from `seed` if it has one. Who takes
    `uniform` and need not be given it says `generators: ["given", "own"]` if there is such a generator behind it."""

    signature = Signature.parse("Sampler(temperature=0, top_k=None, top_p=1.0, seed=None)(logits, uniform=None)")
    narrows: ClassVar = {
        **Filtering.narrows,
        "temperature": ("temperatures", ("one",)),
        "uniform": ("generators", ("own",)),
        "seed": ("seeded", (False,)),
    }
    required_narrows: ClassVar = {"uniform": ("generators", ("given",))}
    unless_declared: ClassVar = {"generators": ("given",), "draws_by": DRAWS_BY[:1]}
    goes_on: ClassVar = True
    is_id: ClassVar = True

    def guard(self, a: Arguments) -> None:
        super().guard(a)
        self.guard_temperature(a)
        if a.uniform is not None:
            self.guard_uniform_shape(a)
            self.guard_uniform_range(a)

    def guard_temperature(self, a: Arguments) -> None:
        if not (a.temperature >= 0 and math.isfinite(a.temperature)):
            raise ValueError(f"temperature is {a.temperature}; it takes a finite number from 0 on")

    def guard_uniform_shape(self, a: Arguments) -> None:
        if a.uniform.shape != a.logits.shape[:-1]:
            raise ValueError(f"uniform is {a.uniform.shape}; it takes one number for each row, {a.logits.shape[:-1]}")

    def guard_uniform_range(self, a: Arguments) -> None:
        if not ((f64(a.uniform) >= 0) & (f64(a.uniform) < 1)).all():
            raise ValueError("uniform has numbers outside [0, 1)")

    def respond(self, a: Arguments) -> Any:
        return self.finish(self.drawn(a), a)

    def drawn(self, a: Arguments) -> np.ndarray:
        """The ids, one for each row."""
        z, sound = self.rows(a)
        return np.where(sound, self.chosen(z, a), self.without_distribution(a)).reshape(a.logits.shape[:-1])

    def chosen(self, z: np.ndarray, a: Arguments) -> np.ndarray:
        if a.temperature == 0:
            return self.greedy(z, self.survivors(z, z, a), a)
        once = _once(z)
        x = self.tempered(once, a)
        weights = np.broadcast_to(self.weights(x, self.survivors(once, x, a)), z.shape)
        way = self.way(a)
        if way == "id":
            return self.ids(weights, self.uniforms(a, len(z)), a)
        order = self.order(once) if way == "order" else rising(once)
        return self.sorted_ids(np.broadcast_to(order, z.shape), weights, a)

    def without_distribution(self, a: Arguments) -> int:
        """The id of a row without a distribution."""
        return 0

    def greedy(self, z: np.ndarray, kept: np.ndarray, a: Arguments) -> np.ndarray:
        return np.argmax(np.where(kept, z, -np.inf), axis=-1)

    def tempered(self, z: np.ndarray, a: Arguments) -> np.ndarray:
        return z / a.temperature

    def draws_by(self) -> str:
        """One of DRAWS_BY: the first that the subject claims."""
        claimed: Sequence[str] = self.claimed.get("draws_by", DRAWS_BY)
        return claimed[0]

    def way(self, a: Arguments) -> str:
        """In which order a draw goes through the ids: id, order or rising."""
        return ways_of(self.draws_by(), a)[0]

    def leaves_any_of_equals(self) -> bool:
        """Whether of equal ids not only the lowest may survive."""
        return "lowest ids" not in self.claimed.get("ties", TIES)

    def ids(self, weights: np.ndarray, uniform: np.ndarray, a: Arguments) -> np.ndarray:
        """The smallest id whose cdf exceeds the uniform number; the last likely one where rounding leaves none."""
        cdf = np.cumsum(weights, axis=-1)
        past = (cdf > uniform[:, None] * cdf[:, -1:]) & (weights > 0)
        last = weights.shape[-1] - 1 - np.argmax(weights[:, ::-1] > 0, axis=-1)
        return np.where(past.any(axis=-1), np.argmax(past, axis=-1), last)

    def sorted_ids(self, order: np.ndarray, weights: np.ndarray, a: Arguments) -> np.ndarray:
        """The first id in the order of the logits whose cdf, in that order, exceeds the uniform number."""
        places = self.ids(np.take_along_axis(weights, order, -1), self.uniforms(a, len(order)), a)
        return np.take_along_axis(order, places[:, None], -1)[:, 0]

    def uniforms(self, a: Arguments, rows: int) -> np.ndarray:
        return self.generator(a).random(rows) if a.uniform is None else f64(a.uniform).reshape(-1)

    def generator(self, a: Arguments) -> np.random.Generator:
        """The generator of a subject that has its own: from the seed, which each object begins with, or one stream for all."""
        if a.seed is not None:
            return vars(self).setdefault("seeded", np.random.default_rng(a.seed))
        # On the class: a subject builds a new object for each call, and its stream goes on.
        if "stream" not in vars(type(self)):
            type(self).stream = np.random.default_rng(0)  # type: ignore[attr-defined]
        return type(self).stream  # type: ignore[attr-defined]

    def evaluate(self, a: Arguments, precision: Precision) -> Answer:
        """Budget: how far the ids that `allowed` accepts lie from the exact one, which is 0 where there is only one."""
        allowed = self.allowed(a, precision)
        value = f64(np.argmax(allowed, axis=-1) if a.uniform is None and a.temperature else self.respond(a))
        sound = self.rows(a)[1].reshape(value.shape)
        value = np.where(sound, value, self.without_distribution(a))
        distance = np.abs(np.arange(allowed.shape[-1]) - value[..., None])
        return Answer(value, np.where(allowed & sound[..., None], distance, 0.0).max(axis=-1, initial=0.0))

    def allowed(
        self, a: Arguments, precision: Precision, order: str = ORDERS[0], draws_by: str | None = None
    ) -> np.ndarray:
        """Which ids an honest implementation may give: N..×V; more than one where rounding decides, or the generator.

        order: one of ORDERS. draws_by: one of DRAWS_BY, None for that of the subject.
        """
        z, sound = self.rows(a)
        if a.temperature == 0:
            right = self._largest(z, a)
        else:
            ways = ways_of(draws_by or self.draws_by(), a)
            right = np.logical_or.reduce([self._of_the_seen(_once(z), a, precision, order, way) for way in ways])
        return (right | ~sound[:, None]).reshape(a.logits.shape)

    def _largest(self, z: np.ndarray, a: Arguments) -> np.ndarray:
        """The first id of each row, or any that is as likely, where it is left to chance which of these a filter leaves."""
        if self.leaves_any_of_equals() and (self.limit(a) < z.shape[-1] or a.top_p < 1):
            return z == z.max(axis=-1, keepdims=True)
        return np.arange(z.shape[-1]) == Filtering.order(self, z)[:, :1]

    def _of_the_seen(self, z: np.ndarray, a: Arguments, precision: Precision, order: str, draws_by: str) -> np.ndarray:
        """Nothing can come of what every row hides, which of a large vocabulary may be nearly all."""
        seen = np.flatnonzero((z > -np.inf).any(axis=0))
        found = self._within_rounding(z[:, seen], a, precision, order, draws_by)
        right = np.zeros((len(found), z.shape[-1]), bool)
        right[:, seen] = found
        return right

    def _within_rounding(
        self, z: np.ndarray, a: Arguments, precision: Precision, order: str, draws_by: str
    ) -> np.ndarray:
        dtype = a.logits.dtype.name
        unit, arithmetic = arithmetic_unit(precision, dtype), _arithmetic(precision, dtype)
        exact = math.frexp(a.temperature)[0] == 0.5
        ids, top = Filtering.order(self, z), z.max(axis=-1, keepdims=True)
        kept = Filtering.top_k(self, z, ids, a)
        with np.errstate(invalid="ignore"):
            magnitude = np.zeros(()) if exact else (np.abs(z) + np.abs(top)) / a.temperature
        x, roundings = (z / a.temperature, magnitude) if order == ORDERS[0] else (z, np.zeros(()))

        def left(kept: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            filtering = _Bounds.of(np.where(kept, x, -np.inf), unit, arithmetic, roundings)
            open_ = _undecided(filtering, ids, kept, a.top_p)
            perhaps = (Filtering.top_p(self, x, ids, kept, a) | open_) & (z > -np.inf)
            return perhaps, perhaps & ~open_

        perhaps, surely = left(kept)
        if self.leaves_any_of_equals():
            # Who keeps all that are equal to the k-th has more for top_p to share out.
            more = left(z >= np.where(kept, z, np.inf).min(axis=-1, keepdims=True))[0]
            perhaps, surely = _whichever(z, perhaps | more, surely)
        if a.uniform is None:
            return perhaps
        bounds = _Bounds.of(np.where(perhaps, z / a.temperature, -np.inf), unit, arithmetic, magnitude)
        if draws_by == "id":
            before, upto = bounds.shares(surely, perhaps)
            least, most = before[:, :-1], upto[:, 1:]
        else:
            along = ids if draws_by == "order" else rising(z)
            inside = (np.take_along_axis(kept, along, -1) for kept in (surely, perhaps))
            bounds = bounds.along(along)
            before, upto = bounds.shares(*inside)
            least, most = before[:, :-1], upto[:, 1:]
            # The reverse of a sort has equal ones the highest first, a sort of its own the lowest; who sorts probabilities
            # has equal ones where logits are not, as at a high temperature.
            least, most = _in_any_order(bounds.apart(), least, most)
            least, most = placed(least, along), placed(most, along)
        uniform = f64(a.uniform).reshape(-1, 1)
        return perhaps & (uniform >= least) & (uniform < most)

    def probabilities(self, a: Arguments) -> np.ndarray:
        """The probability of each id of each row, R×V, at a temperature above 0."""
        z, _ = self.rows(a)
        x = self.tempered(z, a)
        weights = self.weights(x, self.survivors(z, x, a))
        return weights / weights.sum(axis=-1, keepdims=True)

    def result_dtype(self, a: Arguments) -> str:
        return "int32"


def ways_of(draws_by: str, a: Arguments) -> tuple[str, ...]:
    """In which of the orders id, order and rising an honest subject may go through the ids of a call: in two where a limit that
    filters nothing is given, which may be taken for a filter."""
    way, _, when = draws_by.partition(" if ")
    top_k, top_p = when != "top_p" and a.top_k is not None, when != "top_k" and a.top_p < 1
    if not when or top_p or (top_k and 0 < a.top_k < a.logits.shape[-1]):
        return (way,)
    return ("id", way) if top_k else ("id",)


def _whichever(z: np.ndarray, perhaps: np.ndarray, surely: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Which entries may survive and which surely do, where it is left to chance which of equal ones do."""
    last = np.where(perhaps, z, np.inf).min(axis=-1, keepdims=True)
    first_out = np.where(surely, -np.inf, z).max(axis=-1, keepdims=True)
    return perhaps | (z == last), surely & (z > first_out)


def _in_any_order(apart: np.ndarray, least: np.ndarray, most: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """What entries of sorted rows begin and end at, where of those that nothing sets apart any may come first, and any last."""
    places = np.broadcast_to(np.arange(least.shape[-1]), least.shape)
    begins = np.concatenate([np.ones((len(least), 1), bool), apart], axis=-1)
    ends = np.roll(begins, -1, axis=-1)
    first = np.maximum.accumulate(np.where(begins, places, 0), axis=-1)
    last = np.minimum.accumulate(np.where(ends, places, places.shape[-1])[:, ::-1], axis=-1)[:, ::-1]
    return np.take_along_axis(least, first, -1), np.take_along_axis(most, last, -1)


def rising(z: np.ndarray) -> np.ndarray:
    """The ids of each row by logit, the smallest first."""
    return np.argsort(z, axis=-1, kind="stable")


def _once(z: np.ndarray) -> np.ndarray:
    """One row where all are alike, as they are when draws are counted."""
    return z[:1] if len(z) > 1 and (z == z[0]).all() else z


def _arithmetic(precision: Precision, dtype: str) -> str:
    return "float32" if precision is Precision.FLOAT32 else dtype


CONTRACT = Contract(
    component="sampling",
    title="top-k and top-p filters and the draw of ids",
    version=1,
    operations=(FilterLogits, Sampler),
    envelope={
        "dtypes": ("float32", "float16", "bfloat16"),
        "uniform_dtypes": ("float32", "float16", "bfloat16"),
        "leading_dims": ((), (1,), (2,), (2, 3), (2, 1, 3), (9, 2)),
        "top_k": (True, False),
        "top_p": (True, False),
        "both_filters": (True, False),
        "temperatures": ("greedy", "one", "power of two", "other"),
        "generators": ("given", "own"),
        "draws_by": DRAWS_BY,
        "ties": TIES,
        "empty": (True, False),
        "seeded": (True, False),
        "without_distribution": (True, False),
        "vocabulary": 262144,
        "draws": 100_000,
    },
    requirements=SENTENCES,
)
