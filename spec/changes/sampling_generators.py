"""The numbers of a sampler's own generator: see `spec/faults/sampling_generators.py`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from inferspec.spec.changes import sampling_arrays as arrays
from inferspec.spec.contract import Arguments, Change
from inferspec.spec.sampling import Sampler, placed

Mask = np.ndarray


def all_where_tempered(self: Sampler, z: np.ndarray, x: np.ndarray, a: Arguments) -> Mask:
    forgotten = a.uniform is None and a.temperature not in (0, 1)
    return Sampler.survivors(self, z, x, Arguments(**{**vars(a), "top_p": 1.0}) if forgotten else a)


def seeded_blocks(self: Sampler, a: Arguments, rows: int) -> np.ndarray:
    """A seed gives each block of 256 rows the numbers of the first."""
    seeded = a.uniform is None and a.seed is not None
    return np.resize(self.generator(a).random(min(rows, 256)), rows) if seeded else Sampler.uniforms(self, a, rows)


def blocks_of(size: int) -> Change:
    """Each block of so many rows gets the numbers of the first."""
    return own(lambda self, a, rows: np.resize(self.generator(a).random(min(rows, size)), rows))


class Slide:
    """A stream of numbers that goes on by one with each call, however many numbers the call takes."""

    def __init__(self) -> None:
        self.numbers, self.used = np.random.default_rng(0).random(2**18), 0

    def random(self, rows: int) -> np.ndarray:
        self.used += 1
        return np.take(self.numbers, range(self.used, self.used + rows), mode="wrap")


def sliding(self: Sampler, a: Arguments, rows: int) -> np.ndarray:
    if a.seed is not None:
        return Sampler.uniforms(self, a, rows)
    # On the class: a subject builds a new object for each call.
    if "slide" not in vars(type(self)):
        type(self).slide = Slide()  # type: ignore[attr-defined]
    return type(self).slide.random(rows)  # type: ignore[attr-defined]


def seeded_at_one(self: Sampler, z: np.ndarray, a: Arguments) -> np.ndarray:
    return z if a.seed is not None else z / a.temperature


def own(uniforms: Callable[[Sampler, Arguments, int], np.ndarray]) -> Change:
    """Given uniform numbers are taken as they are; the sampler's own are made like this."""
    return {
        "uniforms": lambda self, a, rows: (
            uniforms(self, a, rows) if a.uniform is None else Sampler.uniforms(self, a, rows)
        )
    }


def numbers_to(most: float) -> Change:
    """The numbers of a generator of its own lie between 0 and that one."""
    return own(lambda self, a, rows: self.generator(a).random(rows) * most)


def by_a_bound(self: Sampler, x: np.ndarray, order: np.ndarray, kept: Mask, a: Arguments) -> Mask:
    """Of more than 64 ids those behind one are taken to be as likely as that one, so that no more of them need be summed."""
    right, size = Sampler.top_p(self, x, order, kept, a), x.shape[-1]
    if a.uniform is not None or a.top_p == 1 or size <= 64:
        return right
    weights = np.take_along_axis(self.weights(x, kept), order, -1)
    sums = np.cumsum(weights, axis=-1)
    reached = sums >= a.top_p * (sums + np.arange(size)[::-1] * weights)
    return kept & placed(np.arange(size) <= np.argmax(reached, axis=-1)[:, None], order)


def own_seen_after_heating_alone(self: Sampler, z: np.ndarray, x: np.ndarray, a: Arguments) -> Mask:
    return Sampler.survivors(self, z, x if a.uniform is not None or a.temperature > 1 else z, a)


def own_settings_of_the_latest(self: Sampler, a: Arguments) -> Any:
    return arrays.with_the_latest_settings(self, a) if a.uniform is None else Sampler.respond(self, a)


def in_bfloat16(self: Sampler, a: Arguments, rows: int) -> np.ndarray:
    return np.floor(self.generator(a).random(rows) * 2**8) / 2**8


def halves_share(self: Sampler, a: Arguments, rows: int) -> np.ndarray:
    half = self.generator(a).random((rows + 1) // 2)
    return np.resize(half, rows)


def low_discrepancy(self: Sampler, a: Arguments, rows: int) -> np.ndarray:
    """Multiples of the golden ratio: each row right by itself, neighbours tied to each other."""
    return (self.generator(a).random() + np.arange(rows) * 0.6180339887498949) % 1.0


def seeded_anew(self: Sampler, a: Arguments) -> np.random.Generator:
    """The seed is what each call begins with."""
    return Sampler.generator(self, a) if a.seed is None else np.random.default_rng(a.seed)


def few_share(self: Sampler, a: Arguments, rows: int) -> np.ndarray:
    """A few rows are taken for one."""
    return np.repeat(self.generator(a).random(1), rows) if rows <= 4 else self.generator(a).random(rows)


def strata(self: Sampler, a: Arguments, rows: int) -> np.ndarray:
    """Each row has a part of [0, 1) to itself, whichever."""
    generator = self.generator(a)
    return (generator.random(rows) + generator.permutation(rows)) / max(rows, 1)


def alone_from_the_start(self: Sampler, a: Arguments, rows: int) -> np.ndarray:
    """A call of one row has a generator of its own, which starts with it."""
    return np.random.default_rng(0).random(1) if rows == 1 else self.generator(a).random(rows)


def alone_in_halves(self: Sampler, a: Arguments, rows: int) -> np.ndarray:
    """The numbers of lone rows never come past the middle."""
    return self.generator(a).random(rows) * (0.5 if rows == 1 else 1.0)


def sticky(self: Sampler, a: Arguments, rows: int) -> np.ndarray:
    """Every tenth row repeats the number of the row before it."""
    numbers = self.generator(a).random(rows)
    again = np.arange(rows) % 10 == 1
    return np.where(again, np.roll(numbers, 1), numbers)


def same_seed(self: Sampler, a: Arguments) -> np.random.Generator:
    return np.random.default_rng(0 if a.seed is None else a.seed)


def same_beginning(self: Sampler, a: Arguments) -> np.random.Generator:
    """Every sampler without a seed has the seed 0."""
    return Sampler.generator(self, Arguments(**{**vars(a), "seed": a.seed or 0}))


def stream_of_the_class(self: Sampler, a: Arguments) -> np.random.Generator:
    """A seed begins the one stream of all samplers anew."""
    if a.seed is not None and "seeded" not in vars(self):
        vars(self)["seeded"] = type(self).stream = np.random.default_rng(a.seed)  # type: ignore[attr-defined]
    return Sampler.generator(self, Arguments(**{**vars(a), "seed": None}))


def seed_ignored(self: Sampler, a: Arguments) -> np.random.Generator:
    return Sampler.generator(self, Arguments(**{**vars(a), "seed": None}))


def one_seed(self: Sampler, a: Arguments) -> np.random.Generator:
    return np.random.default_rng(0) if a.seed is not None else Sampler.generator(self, a)


def zero_is_none(self: Sampler, a: Arguments) -> np.random.Generator:
    """`if seed:` was meant to ask whether there is one."""
    return Sampler.generator(self, Arguments(**{**vars(a), "seed": a.seed or None}))


def seed_as(kind: Callable[[int], int]) -> Change:
    """A seed is stored as something that does not hold it."""

    def generator(self: Sampler, a: Arguments) -> np.random.Generator:
        return Sampler.generator(self, Arguments(**{**vars(a), "seed": None if a.seed is None else kind(a.seed)}))

    return {"generator": generator}


def zero_sticks(self: Sampler, a: Arguments, rows: int) -> np.ndarray:
    """A generator of shifts and sums without carry never leaves the state 0."""
    return np.zeros(rows) if a.uniform is None and a.seed == 0 else Sampler.uniforms(self, a, rows)


def race_with_zeros(self: Sampler, weights: np.ndarray, uniform: np.ndarray, a: Arguments) -> np.ndarray:
    """p / q with exponential noise q of 11 bits, which is exactly 0 at times: that entry wins, even with p of 0."""
    if a.uniform is not None:
        return Sampler.ids(self, weights, uniform, a)
    noise = np.floor(self.generator(a).random(weights.shape) * 2**15) / 2**15
    with np.errstate(all="ignore"):
        race = weights / -np.log1p(-noise)
    return np.argmax(np.where(np.isnan(race), np.inf, race), axis=-1)


def floored_probabilities(self: Sampler, weights: np.ndarray, uniform: np.ndarray, a: Arguments) -> np.ndarray:
    if a.uniform is not None:
        return Sampler.ids(self, weights, uniform, a)
    return Sampler.ids(self, np.where(weights > 0, weights + 1e-4, 0.0), uniform, a)


def draws_by_itself(a: Arguments) -> bool:
    """Whether a sampler draws from a generator of its own."""
    return a.uniform is None and a.temperature > 0


def own_limit(most: int) -> Callable[..., int]:
    """No more than so many ids are looked at, where the numbers are the sampler's own."""
    return lambda self, a: min(Sampler.limit(self, a), most) if draws_by_itself(a) else Sampler.limit(self, a)


def own_floor(least: float) -> Callable[..., np.ndarray]:
    return lambda self, z, a: z / (max(a.temperature, least) if a.uniform is None else a.temperature)


def own_ids_wrapped(bits: int) -> Callable[..., np.ndarray]:
    def ids(self: Sampler, weights: np.ndarray, uniform: np.ndarray, a: Arguments) -> np.ndarray:
        found = Sampler.ids(self, weights, uniform, a)
        return found & (2**bits - 1) if a.uniform is None else found

    return ids


def own_tempered(factor: float) -> Change:
    return {"tempered": lambda self, z, a: z / a.temperature / (factor if a.uniform is None else 1.0)}


def without_crossing(self: Sampler, x: np.ndarray, order: np.ndarray, kept: Mask, a: Arguments) -> Mask:
    """cumsum <= p, but for the first: the id that reaches p is lost, where the numbers are the sampler's own."""
    left = Sampler.top_p(self, x, order, kept, a)
    if a.uniform is not None or a.top_p == 1:
        return left
    weights = self.weights(x, kept)
    reached = self.before(weights, order, a) + weights / weights.sum(-1, keepdims=True) >= a.top_p
    return left & (~reached | (np.arange(x.shape[-1]) == order[:, :1]))


def noise_cut(self: Sampler, weights: np.ndarray, uniform: np.ndarray, a: Arguments) -> np.ndarray:
    """Gumbel noise of uniform numbers up to 0.999: none is above 6.9."""
    if a.uniform is not None:
        return Sampler.ids(self, weights, uniform, a)
    with np.errstate(divide="ignore"):
        noise = -np.log(-np.log(self.generator(a).random(weights.shape) * 0.999))
        return np.argmax(np.log(weights) + noise, axis=-1)


def next_in_own(self: Sampler, weights: np.ndarray, uniform: np.ndarray, a: Arguments) -> np.ndarray:
    """A search among sums that begin with 0: the id before the right one, but for the first."""
    ids = Sampler.ids(self, weights, uniform, a)
    return ids if a.uniform is not None else np.maximum(ids - 1, 0)
