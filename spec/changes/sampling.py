"""The steps that faults and honest variants have in the place of the oracle's: see `spec/faults/sampling*.py`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from inferspec.spec import sampling as spec
from inferspec.spec.changes.linear import rounded
from inferspec.spec.contract import Arguments, Change, Operation
from inferspec.spec.mistakes import misread
from inferspec.spec.numerics import f64, numpy_dtype, round_to
from inferspec.spec.sampling import Filtering, Sampler, placed, running

Mask = np.ndarray


def running_in(dtype: str, values: np.ndarray) -> np.ndarray:
    """Running sums along rows, in an accumulator of the dtype."""
    with np.errstate(over="ignore", invalid="ignore"):
        return f64(np.add.accumulate(values.astype(numpy_dtype(dtype)), axis=-1))


def in_order(values: np.ndarray, order: np.ndarray) -> np.ndarray:
    return np.take_along_axis(values, order, -1)


def wide(change: Change, more_than: int = 8192) -> Change:
    """A path for large vocabularies alone has the mistake."""

    def only(step: str, wrong: Callable[..., Any]) -> Callable[..., Any]:
        def either(self: Any, first: Any, *given: Any) -> Any:
            if (first.logits if isinstance(first, Arguments) else first).shape[-1] > more_than:
                return wrong(self, first, *given)
            _, right, *_ = (kind for kind in type(self).__mro__ if step in vars(kind))
            return getattr(right, step)(self, first, *given)

        return either

    return {step: only(step, wrong) for step, wrong in change.items()}


def with_logits(self: Any, a: Arguments, logits: np.ndarray) -> Any:
    """What the operation gives for other logits."""
    kind: Any = Sampler if isinstance(self, Sampler) else Operation
    return kind.respond(self, Arguments(**{**vars(a), "logits": logits}))


def without_the_last(self: Any, a: Arguments) -> Any:
    size = a.logits.shape[-1]
    return with_logits(self, a, np.where(np.arange(size) < size - 1, a.logits, -np.inf).astype(a.logits.dtype))


def wide_strides(self: Any, a: Arguments) -> Any:
    return with_logits(self, a, misread(a.logits))


def eight_of_each_block(self: Any, z: np.ndarray, order: np.ndarray, a: Arguments) -> Mask:
    """The candidates are the eight largest of each block of 1024."""
    candidates = np.zeros(z.shape, bool)
    for start in range(0, z.shape[-1], 1024):
        block = z[:, start : start + 1024]
        np.put_along_axis(candidates[:, start : start + 1024], Filtering.order(self, block)[:, :8], True, -1)
    return Filtering.top_k(self, z, order, a) & candidates


# which ids are left, to a filter or to a sampler


def by_value(self: Any, z: np.ndarray, order: np.ndarray, a: Arguments) -> Mask:
    return z >= in_order(z, order)[:, self.limit(a) - 1, None]


def last_of_equals(self: Any, z: np.ndarray) -> np.ndarray:
    return np.argsort(z, axis=-1, kind="stable")[:, ::-1]


def of_the_first(size: int) -> Any:
    """Probabilities of so many ids, and of no others."""

    def weights(self: Sampler, x: np.ndarray, kept: Mask) -> np.ndarray:
        return Sampler.weights(self, x, kept & (np.arange(kept.shape[-1]) < size))

    return weights


def greedy_of_all(self: Sampler, z: np.ndarray, kept: Mask, a: Arguments) -> np.ndarray:
    """The largest logit, whatever filters would leave."""
    return np.argmax(z, axis=-1)


def at_most(most: int) -> Change:
    return {"limit": lambda self, a: min(Filtering.limit(self, a), most) if a.top_k else Filtering.limit(self, a)}


def first_of_the_negative(self: Filtering, z: np.ndarray, order: np.ndarray, a: Arguments) -> Mask:
    kept = Filtering.top_k(self, z, order, a)
    if a.top_k and a.top_k > 128:
        lost = z.max(axis=-1, keepdims=True) < 0
        kept = np.where(lost, np.arange(z.shape[-1]) == 0, kept)
    return kept


def nucleus_of_256(self: Filtering, a: Arguments) -> int:
    return Filtering.limit(self, a) if a.top_p == 1 else min(Filtering.limit(self, a), 256)


def top_p_by(keep: Callable[[np.ndarray, np.ndarray, np.ndarray, Arguments], Mask]) -> Change:
    """top-p with a rule of its own: weights in order (their sum 1), kept entries in order, order -> mask in order."""

    def top_p(self: Any, x: np.ndarray, order: np.ndarray, kept: Mask, a: Arguments) -> Mask:
        weights = in_order(self.weights(x, kept), order)
        weights = weights / weights.sum(-1, keepdims=True)
        return kept & placed(keep(weights, in_order(kept, order), in_order(x, order), a), order)

    return {"top_p": top_p}


def up_to_p(p: np.ndarray, kept: Mask, x: np.ndarray, a: Arguments) -> Mask:
    """An id survives where no more than p lies before it: one more where p is reached exactly."""
    return running(p)[:, :-1] <= a.top_p


def of_the_whole_mass(self: Any, x: np.ndarray, order: np.ndarray, kept: Mask, a: Arguments) -> Mask:
    return kept & type(self).__mro__[-3].top_p(self, x, order, np.ones_like(kept), a)  # type: ignore[attr-defined]


def not_beside_all(self: Any, x: np.ndarray, order: np.ndarray, kept: Mask, a: Arguments) -> Mask:
    ends = a.top_k is not None and a.top_k >= a.logits.shape[-1]
    return kept if ends else Filtering.top_p(self, x, order, kept, a)


def not_beside(top_k: int) -> Change:
    """A top_k of that number ends the filters."""

    def top_p(self: Any, x: np.ndarray, order: np.ndarray, kept: Mask, a: Arguments) -> Mask:
        return kept if a.top_k == top_k else Filtering.top_p(self, x, order, kept, a)

    return {"top_p": top_p}


def log_probabilities(z: np.ndarray, a: Arguments) -> np.ndarray:
    """Logits less the logarithm of the sum of their exponentials, in their dtype, which may leave neighbours equal."""
    top = z.max(axis=-1, keepdims=True)
    total = top + np.log(np.exp(z - top).sum(axis=-1, keepdims=True))
    with np.errstate(over="ignore"):
        return f64(round_to(z - total, a.logits.dtype.name))


def without_millionths(self: Any, x: np.ndarray, order: np.ndarray, kept: Mask, a: Arguments) -> Mask:
    """Ids of less than a millionth of the probability are not looked at, but for the first."""
    weights = self.weights(x, kept)
    likely = (weights >= 1e-6 * weights.sum(-1, keepdims=True)) | (np.arange(x.shape[-1]) == order[:, :1])
    left = Filtering.top_p(self, x, order, kept, a)
    return left if a.top_p == 1 else left & likely


def shares_of_both_in(dtype: str | None) -> Change:
    """Where there is a top_k too, top_p sees probabilities in a dtype, that of the logits for None."""

    def before(self: Filtering, weights: np.ndarray, order: np.ndarray, a: Arguments) -> np.ndarray:
        kind: Any = shares_in(dtype)["before"] if a.top_k else Filtering.before
        return np.asarray(kind(self, weights, order, a))

    return {"before": before}


def past_32(step: Callable[..., Mask]) -> Change:
    """`top_p` in the place of the right one where top_k leaves more than a group of threads holds, one each."""

    def top_p(self: Any, x: np.ndarray, order: np.ndarray, kept: Mask, a: Arguments) -> Mask:
        if (a.top_k or 0) > 32:
            return step(self, x, order, kept, a)
        return np.asarray(Filtering.top_p(self, x, order, kept, a))

    return {"top_p": top_p}


def of_more_than_32(a: Arguments) -> bool:
    """Whether top_k leaves more than a group of threads holds, one each."""
    return bool(32 < (a.top_k or 0) < a.logits.shape[-1])


def wide_rows_past_64() -> Change:
    """Of more than 1024 ids, rows past 64 are left as the first one."""

    def survivors(self: Any, z: np.ndarray, x: np.ndarray, a: Arguments) -> Mask:
        kept = np.array(Filtering.survivors(self, z, x, a))
        if z.shape[-1] > 1024:
            kept[64:] = kept[:1]
        return kept

    return {"survivors": survivors}


def rows_past_128(of_dozens: bool = False) -> Change:
    """Rows past 128 are left as the first one: all of them, or where top_k leaves dozens."""

    def survivors(self: Any, z: np.ndarray, x: np.ndarray, a: Arguments) -> Mask:
        kept = np.array(Filtering.survivors(self, z, x, a))
        if of_more_than_32(a) if of_dozens else a.top_p < 1:
            kept[128:] = kept[:1]
        return kept

    return {"survivors": survivors}


def tempered_and_of_the_whole_past_32(self: Any, x: np.ndarray, order: np.ndarray, kept: Mask, a: Arguments) -> Mask:
    if a.temperature in (0, 1):
        return np.asarray(Filtering.top_p(self, x, order, kept, a))
    return past_32(of_the_whole_mass)["top_p"](self, x, order, kept, a)


def shares_in(dtype: str | None) -> Change:
    """Probabilities in a dtype, that of the logits for None; their sums are exact."""

    def before(self: Filtering, weights: np.ndarray, order: np.ndarray, a: Arguments) -> np.ndarray:
        share = f64(round_to(weights / weights.sum(-1, keepdims=True), dtype or a.logits.dtype.name))
        return placed(running(in_order(share, order))[:, :-1], order)

    return {"before": before}


def without_shift(self: Any, x: np.ndarray, kept: Mask) -> np.ndarray:
    """exp of the logits as they are, in float32."""
    with np.errstate(over="ignore", invalid="ignore"):
        weights = f64(np.exp(np.where(kept, x, -np.inf).astype(np.float32)))
        return np.where(np.isfinite(weights), weights, np.nan)


def by_float32_logarithm(self: Any, x: np.ndarray, kept: Mask) -> np.ndarray:
    """exp(x - log of the sum of exp(x)): far from zero float32 has no room for what the sum adds to the largest logit."""
    with np.errstate(over="ignore", invalid="ignore"):
        x = np.where(kept, x, -np.inf)
        top = x.max(axis=-1, keepdims=True)
        return np.exp(x - rounded(top + np.log(np.exp(x - top).sum(axis=-1, keepdims=True)), "float32"))


def hidden_as_zero(self: Any, x: np.ndarray, kept: Mask) -> np.ndarray:
    """-inf is replaced, so that nothing becomes NaN, by a number that is not low at all."""
    return spec.weights_of(np.where(kept, np.where(np.isinf(x), 0.0, x), -np.inf))


def shifted_by_the_batch(self: Any, x: np.ndarray, kept: Mask) -> np.ndarray:
    """What is subtracted from the logits of a row, in float32, is the largest of all rows."""
    own = np.where(kept, x, -np.inf)
    return spec.weights_of(f64((own - own.max(initial=-np.inf)).astype(np.float32)) if own.size else own)


def one_broken_for_all(self: Any, a: Arguments) -> tuple[np.ndarray, np.ndarray]:
    """A maximum over the batch: one NaN makes every row NaN."""
    z, sound = type(self).__mro__[-3].rows(self, a)  # type: ignore[attr-defined]
    return (z, sound) if sound.all() else (np.zeros_like(z), np.zeros_like(sound))


# the sampler


def last_of_equal_greedy(self: Sampler, z: np.ndarray, kept: Mask, a: Arguments) -> np.ndarray:
    return z.shape[-1] - 1 - np.argmax(np.where(kept, z, -np.inf)[:, ::-1], axis=-1)


def bfloat16_minus_zero_below_zero(self: Sampler, z: np.ndarray, kept: Mask, a: Arguments) -> np.ndarray:
    if a.logits.dtype.name == "bfloat16":
        z = np.where((z == 0) & np.signbit(z), -np.finfo(np.float64).tiny, z)
    return Sampler.greedy(self, z, kept, a)


def greedy_in(dtype: str) -> Any:
    def greedy(self: Sampler, z: np.ndarray, kept: Mask, a: Arguments) -> np.ndarray:
        with np.errstate(over="ignore"):
            return Sampler.greedy(self, f64(round_to(z, dtype)), kept, a)

    return greedy


def greedy_of_log_probabilities(self: Sampler, z: np.ndarray, kept: Mask, a: Arguments) -> np.ndarray:
    return Sampler.greedy(self, log_probabilities(z, a), kept, a)


def or_one(self: Sampler, a: Arguments) -> Any:
    return Sampler.respond(self, Arguments(**{**vars(a), "temperature": a.temperature or 1.0}))


def tiny_for_zero(self: Sampler, a: Arguments) -> Any:
    if a.temperature == 0 and a.uniform is not None:
        a = Arguments(**{**vars(a), "temperature": 1e-6})
    return Sampler.respond(self, a)


def by_probability(self: Sampler, weights: np.ndarray, uniform: np.ndarray, a: Arguments) -> np.ndarray:
    order = self.order(weights)
    place = Sampler.ids(self, in_order(weights, order), uniform, a)
    return np.take_along_axis(order, place[:, None], -1)[:, 0]


def next_id(self: Sampler, weights: np.ndarray, uniform: np.ndarray, a: Arguments) -> np.ndarray:
    return np.minimum(Sampler.ids(self, weights, uniform, a) + 1, weights.shape[-1] - 1)


def from_zero_up(self: Sampler, weights: np.ndarray, uniform: np.ndarray, a: Arguments) -> np.ndarray:
    """The first id whose cdf reaches the uniform number, which every id does for 0."""
    cdf = np.cumsum(weights, axis=-1)
    return np.argmax(cdf >= uniform[:, None] * cdf[:, -1:], axis=-1)


def counted(clamp: bool) -> Callable[..., np.ndarray]:
    """The number of ids whose cdf is no larger than the uniform number: all of them, where float32 sums stay below it."""

    def ids(self: Sampler, weights: np.ndarray, uniform: np.ndarray, a: Arguments) -> np.ndarray:
        cdf = running_in("float32", rounded(weights / weights.sum(-1, keepdims=True), "float32"))
        found = (cdf <= uniform[:, None]).sum(-1)
        return np.minimum(found, weights.shape[-1] - 1) if clamp else found

    return ids


def counted_among_filtered(self: Sampler, weights: np.ndarray, uniform: np.ndarray, a: Arguments) -> np.ndarray:
    """Where float32 sums stay below the uniform number, the last id that the filters leave: without any, that of the vocabulary."""
    if a.top_k in (None, 0, -1) and a.top_p == 1:
        return counted(clamp=True)(self, weights, uniform, a)
    return Sampler.ids(self, weights, uniform, a)


def never_past(self: Sampler, weights: np.ndarray, uniform: np.ndarray, a: Arguments) -> np.ndarray:
    """Where rounding leaves no cdf above the uniform number, argmax of nothing is id 0."""
    with np.errstate(invalid="ignore"):
        cdf = running_in(
            "float32", (weights / weights.sum(-1, keepdims=True)).astype(np.float32) * np.float32(1 - 2.0**-23)
        )
    return np.argmax(cdf > uniform[:, None], axis=-1)


def of_the_largest(self: Sampler, weights: np.ndarray, uniform: np.ndarray, a: Arguments) -> np.ndarray:
    """The uniform number is compared with sums of weights whose largest is 1."""
    cdf = np.cumsum(weights, axis=-1)
    return np.argmax((cdf > uniform[:, None]) & (weights > 0), axis=-1)


def unfiltered(self: Sampler, z: np.ndarray, x: np.ndarray, a: Arguments) -> Mask:
    return z > -np.inf


def cut_without_sharing(self: Sampler, weights: np.ndarray, uniform: np.ndarray, a: Arguments) -> np.ndarray:
    """Probabilities of the whole vocabulary, cut and not shared out again: what is missing falls to the last id."""
    z = self.tempered(self.rows(a)[0], a)
    share = np.where(weights > 0, spec.weights_of(z) / spec.weights_of(z).sum(-1, keepdims=True), 0.0)
    past = np.cumsum(share, axis=-1) > uniform[:, None]
    last = weights.shape[-1] - 1 - np.argmax(weights[:, ::-1] > 0, axis=-1)
    return np.where(past.any(-1), np.argmax(past & (weights > 0), axis=-1), last)


def seen_before_temperature(self: Sampler, z: np.ndarray, x: np.ndarray, a: Arguments) -> Mask:
    return Sampler.survivors(self, z, z, a)


def seen_after_it_twice(self: Sampler, z: np.ndarray, x: np.ndarray, a: Arguments) -> Mask:
    return Sampler.survivors(self, z, self.tempered(x, a), a) if a.temperature else Sampler.survivors(self, z, x, a)


def tempered_twice_with_top_p(self: Sampler, z: np.ndarray, a: Arguments) -> np.ndarray:
    return z / a.temperature ** (2 if a.top_p < 1 else 1)


def past_a_huge_limit(self: Sampler, a: Arguments) -> Any:
    """Where one id alone is left, and the limit is past the vocabulary, rejection sampling gives what lay in memory."""
    ids = np.array(Sampler.respond(self, a))
    huge = a.top_k is not None and a.top_k > a.logits.shape[-1] and a.temperature > 0
    return np.where(huge & ((a.logits > -np.inf).sum(axis=-1) == 1), 1061800448, ids).astype(ids.dtype)


def seen_after_cooling_alone(self: Sampler, z: np.ndarray, x: np.ndarray, a: Arguments) -> Mask:
    return Sampler.survivors(self, z, x if a.temperature < 1 else z, a)


def seen_before_mild_temperatures(self: Sampler, z: np.ndarray, x: np.ndarray, a: Arguments) -> Mask:
    return Sampler.survivors(self, z, z if 0.5 < a.temperature < 2 else x, a)


def _rows(a: Arguments) -> int:
    return int(np.prod(a.logits.shape[:-1]))


def all_of_a_lone_row(self: Sampler, z: np.ndarray, x: np.ndarray, a: Arguments) -> Mask:
    """A path for one row forgets top_p where there is a temperature."""
    forgotten = _rows(a) == 1 and a.temperature not in (0, 1)
    return Sampler.survivors(self, z, x, Arguments(**{**vars(a), "top_p": 1.0}) if forgotten else a)


def nucleus_of_the_first_row(self: Sampler, z: np.ndarray, x: np.ndarray, a: Arguments) -> Mask:
    """Where there is a temperature, what top_p leaves of the first row is left of all."""
    kept = Sampler.survivors(self, z, x, a)
    return kept if a.temperature in (0, 1) else np.broadcast_to(kept[:1], kept.shape)


def seen_before_temperature_alone(self: Sampler, z: np.ndarray, x: np.ndarray, a: Arguments) -> Mask:
    return Sampler.survivors(self, z, z if _rows(a) == 1 else x, a)


def tempered_to_two_decimals(self: Sampler, z: np.ndarray, a: Arguments) -> np.ndarray:
    return z / max(round(a.temperature, 2), 0.01)


def greedy_when_cold(self: Sampler, z: np.ndarray, a: Arguments) -> np.ndarray:
    return Sampler.chosen(self, z, a if a.temperature >= 1e-5 else Arguments(**{**vars(a), "temperature": 0}))


def last_of_equals_in_rows(self: Sampler, z: np.ndarray, kept: Mask, a: Arguments) -> np.ndarray:
    """Of equal logits in several blocks of 1024 that of the last block is taken."""
    best = z == z.max(axis=-1, keepdims=True)
    blocks = np.arange(z.shape[-1]) // 1024
    last = np.where(best, blocks, -1).max(axis=-1, keepdims=True)
    return np.argmax(best & (blocks == last), axis=-1)


def lowest_thread_of_equals(self: Sampler, z: np.ndarray, kept: Mask, a: Arguments) -> np.ndarray:
    """Of equal logits that of the lowest of 256 threads is taken, each of which goes over every 256th id."""
    best = z == z.max(axis=-1, keepdims=True)
    threads = np.arange(z.shape[-1]) % 256
    lowest = np.where(best, threads, 256).min(axis=-1, keepdims=True)
    return np.argmax(best & (threads == lowest), axis=-1)


def part_beside_padding_lost(self: Sampler, z: np.ndarray, kept: Mask, a: Arguments) -> np.ndarray:
    """Each of 8 parts of a vocabulary that is padded with zeros to whole blocks of 64 names one id: that of a zero, which is
    not counted then, where all logits of the part are negative."""
    rows, size = z.shape
    part = -(-size // 64) * 8
    padded = np.concatenate([z, np.zeros((rows, 8 * part - size))], axis=-1).reshape(rows, 8, part)
    ids = padded.argmax(axis=-1) + np.arange(8) * part
    named = np.where(ids < size, padded.max(axis=-1), -np.inf)
    return np.minimum(np.take_along_axis(ids, named.argmax(axis=-1)[:, None], -1)[:, 0], size - 1)


def coarse_number(self: Sampler, a: Arguments, rows: int) -> np.ndarray:
    return np.floor(Sampler.uniforms(self, a, rows) * 2**16) / 2**16


def weights_in_float16(self: Sampler, x: np.ndarray, kept: Mask) -> np.ndarray:
    return f64(round_to(Filtering.weights(self, x, kept), "float16"))


def rows_to(most: int) -> Change:
    """A kernel takes so many rows of the last leading dim; the others keep id 0."""

    def drawn(self: Sampler, a: Arguments) -> np.ndarray:
        ids = np.array(Sampler.drawn(self, a))
        if ids.ndim:
            ids[..., most:] = 0
        return ids

    return {"drawn": drawn}


def floor_of_a_hundredth(self: Sampler, z: np.ndarray, a: Arguments) -> np.ndarray:
    return z / max(a.temperature, 1e-2)


def ceiling(self: Sampler, z: np.ndarray, a: Arguments) -> np.ndarray:
    return z / min(a.temperature, 1e4)


def cdf_in_dtype(self: Sampler, weights: np.ndarray, uniform: np.ndarray, a: Arguments) -> np.ndarray:
    cdf = running_in(a.logits.dtype.name, weights / weights.sum(-1, keepdims=True))
    past = (cdf > uniform[:, None] * cdf[:, -1:]) & (weights > 0)
    return np.where(past.any(-1), np.argmax(past, axis=-1), np.argmax(weights, axis=-1))


def wrapped(bits: int) -> Callable[..., np.ndarray]:
    return lambda self, weights, uniform, a: Sampler.ids(self, weights, uniform, a) & (2**bits - 1)


def floor_where_filtered(self: Sampler, z: np.ndarray, a: Arguments) -> np.ndarray:
    """The path with a filter keeps the temperature from 0 by a hundredth."""
    return z / (max(a.temperature, 0.01) if a.top_k or a.top_p < 1 else a.temperature)


# honest ways


def weights_in(dtype: str) -> Callable[..., np.ndarray]:
    def weights(self: Any, x: np.ndarray, kept: Mask) -> np.ndarray:
        x = np.where(kept, x, -np.inf).astype(numpy_dtype(dtype))
        return f64(np.exp((x - x.max(-1, keepdims=True)).astype(numpy_dtype(dtype))))

    return weights


def sorted_for_any_limit(self: Sampler, a: Arguments) -> str:
    return spec.ways_of(self.draws_by(), a)[-1]


def places_for_ids(self: Sampler, order: np.ndarray, weights: np.ndarray, a: Arguments) -> np.ndarray:
    return self.ids(in_order(weights, order), self.uniforms(a, len(order)), a)


def likeliest_last(self: Sampler, order: np.ndarray, weights: np.ndarray, a: Arguments) -> np.ndarray:
    return Sampler.sorted_ids(self, order[:, ::-1], weights, a)


def reversed_order(self: Sampler, order: np.ndarray, weights: np.ndarray, a: Arguments) -> np.ndarray:
    """The reverse of the order in which the filters look at ids: of equal ones the highest comes first."""
    return Sampler.sorted_ids(self, self.order(self.rows(a)[0])[:, ::-1], weights, a)


def order_of_the_probabilities(self: Sampler, order: np.ndarray, weights: np.ndarray, a: Arguments) -> np.ndarray:
    """Meta's sample_top_p sorts what the softmax gives."""
    return Sampler.sorted_ids(self, np.argsort(-weights, axis=-1, kind="stable"), weights, a)


def order_of_the_first_row(self: Sampler, order: np.ndarray, weights: np.ndarray, a: Arguments) -> np.ndarray:
    return Sampler.sorted_ids(self, np.broadcast_to(order[:1], order.shape), weights, a)


def weights_by_id(self: Sampler, order: np.ndarray, weights: np.ndarray, a: Arguments) -> np.ndarray:
    """The cdf is of the ids as they are numbered, and its places are taken for those in the order."""
    return in_order(order, self.ids(weights, self.uniforms(a, len(order)), a)[:, None])[:, 0]


def divided_in_float32(self: Sampler, z: np.ndarray, a: Arguments) -> np.ndarray:
    return f64(z.astype(np.float32) / np.float32(a.temperature))


def times_inverse(self: Sampler, z: np.ndarray, a: Arguments) -> np.ndarray:
    return f64(z.astype(np.float32) * np.float32(1 / a.temperature))


def normalised_cdf(self: Sampler, weights: np.ndarray, uniform: np.ndarray, a: Arguments) -> np.ndarray:
    """Probabilities in float32, their running sum, and a search in it; the last survivor where it ends below u."""
    weights = weights.astype(np.float32)
    cdf = np.cumsum(weights / weights.sum(-1, keepdims=True, dtype=np.float32), axis=-1, dtype=np.float32)
    past = (cdf > uniform[:, None].astype(np.float32)) & (weights > 0)
    last = weights.shape[-1] - 1 - np.argmax(weights[:, ::-1] > 0, axis=-1)
    return np.where(past.any(-1), np.argmax(past, axis=-1), last)


def gumbel(self: Sampler, weights: np.ndarray, uniform: np.ndarray, a: Arguments) -> np.ndarray:
    """The Gumbel-max trick with a generator of its own; given uniform numbers are used by inverse CDF."""
    if a.uniform is not None:
        return Sampler.ids(self, weights, uniform, a)
    noise = self.generator(a).gumbel(size=weights.shape)
    with np.errstate(divide="ignore"):
        return np.argmax(np.log(weights) + noise, axis=-1)


def exclusive_in_float32(self: Any, weights: np.ndarray, order: np.ndarray, a: Arguments) -> np.ndarray:
    """cumsum - p, the usual way to write an exclusive sum."""
    p = in_order(weights, order).astype(np.float32)
    p /= p.sum(-1, keepdims=True, dtype=np.float32)
    return placed(f64(np.cumsum(p, axis=-1, dtype=np.float32) - p), order)


def ascending(dtype: str | None) -> Change:
    def top_p(self: Any, x: np.ndarray, order: np.ndarray, kept: Mask, a: Arguments) -> Mask:
        name = dtype or a.logits.dtype.name
        weights = in_order(weights_in(name)(self, x, kept), order)
        weights = rounded(weights / weights.sum(-1, keepdims=True), name)
        inside = running_in(name, weights[:, ::-1])[:, ::-1] > rounded(np.asarray(1 - a.top_p), name)
        inside[:, 0] = True
        return kept if a.top_p == 1 else kept & placed(inside, order)

    return {"top_p": top_p}


def only_choice_lost(self: Sampler, z: np.ndarray, kept: np.ndarray, a: Arguments) -> np.ndarray:
    """A row with one id that is not hidden gives the first."""
    return np.where((z > -np.inf).sum(axis=-1) > 1, Sampler.greedy(self, z, kept, a), 0)


def saturated_greedy(self: Sampler, z: np.ndarray, kept: np.ndarray, a: Arguments) -> np.ndarray:
    """Logits past the range of float16 are its ends."""
    return Sampler.greedy(self, np.where(np.isinf(z), z, np.clip(z, -65504.0, 65504.0)), kept, a)
