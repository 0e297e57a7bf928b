"""The steps that faults and honest variants have in the place of the oracle's: see `spec/faults/sampling*.py`."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np

from inferspec.spec import sampling as spec
from inferspec.spec.changes.linear import rounded
from inferspec.spec.contract import Arguments, Change, Operation
from inferspec.spec.mistakes import misread, remembers
from inferspec.spec.numerics import f64, largest, numpy_dtype, round_to
from inferspec.spec.sampling import Filtering, FilterLogits, Sampler, placed, running

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


def without_the_rest(self: Any, a: Arguments) -> Any:
    """Blocks of 1024 are read, and what is left of the vocabulary is not."""
    size = a.logits.shape[-1]
    return with_logits(
        self, a, np.where(np.arange(size) < size // 1024 * 1024, a.logits, -np.inf).astype(a.logits.dtype)
    )


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


def order_in(dtype: str) -> Change:
    """Logits are compared in another dtype."""

    def order(self: Any, z: np.ndarray) -> np.ndarray:
        with np.errstate(over="ignore"):
            return np.argsort(-f64(round_to(z, dtype)), axis=-1, kind="stable")

    return {"order": order}


def dead_blocks(self: Any, x: np.ndarray, kept: Mask) -> np.ndarray:
    """A block of 1024 hidden ids computes -inf - -inf."""
    blocks = x[:, : x.shape[-1] // 1024 * 1024].reshape(len(x), -1, 1024)
    dead = np.isinf(blocks).all(-1).any(-1)
    return np.where(dead[:, None], np.nan, Filtering.weights(self, x, kept))


# top-k


def one_further(self: FilterLogits, z: np.ndarray, order: np.ndarray, a: Arguments) -> Mask:
    """The partition is right up to place k, and the k-th is mistaken for the one after it."""
    ranks, k = placed(np.broadcast_to(np.arange(z.shape[-1]), z.shape), order), self.limit(a)
    return (ranks < k - 1) | (ranks == min(k, z.shape[-1] - 1)) if k < z.shape[-1] else ranks < k


def ranks_for_ids(self: FilterLogits, z: np.ndarray, order: np.ndarray, a: Arguments) -> Mask:
    return order < self.limit(a)


def smallest(self: FilterLogits, z: np.ndarray, order: np.ndarray, a: Arguments) -> Mask:
    return FilterLogits.top_k(self, z, order[:, ::-1], a)


def by_value(self: Any, z: np.ndarray, order: np.ndarray, a: Arguments) -> Mask:
    return z >= in_order(z, order)[:, self.limit(a) - 1, None]


def above_the_next(self: FilterLogits, z: np.ndarray, order: np.ndarray, a: Arguments) -> Mask:
    k = self.limit(a)
    return np.ones_like(z, bool) if k == z.shape[-1] else z > in_order(z, order)[:, k, None]


def above_in_a_byte(self: FilterLogits, z: np.ndarray, order: np.ndarray, a: Arguments) -> Mask:
    """How many logits lie above those that are equal to the k-th is counted in a byte."""
    last = in_order(z, order)[:, self.limit(a) - 1, None]
    left = self.limit(a) - (z > last).sum(axis=-1, keepdims=True, dtype=np.uint8).astype(int)
    return (z > last) | ((z == last) & (np.cumsum(z == last, axis=-1) <= left))


def last_of_equals(self: Any, z: np.ndarray) -> np.ndarray:
    return np.argsort(z, axis=-1, kind="stable")[:, ::-1]


def greedy_of_all(self: Sampler, z: np.ndarray, kept: Mask, a: Arguments) -> np.ndarray:
    """The largest logit, whatever filters would leave."""
    return np.argmax(z, axis=-1)


def minus_zero_below_zero(self: Any, z: np.ndarray) -> np.ndarray:
    """The order of bits: of two zeros the one without a sign comes first."""
    return np.lexsort((np.signbit(z), -z), axis=-1)


def at_most_half(self: FilterLogits, a: Arguments) -> int:
    """A buffer of fixed size for the candidates."""
    return min(FilterLogits.limit(self, a), 16)


def at_most(most: int) -> Change:
    return {"limit": lambda self, a: min(Filtering.limit(self, a), most) if a.top_k else Filtering.limit(self, a)}


def nucleus_of_2048(self: Filtering, a: Arguments) -> int:
    return Filtering.limit(self, a) if a.top_p == 1 else min(Filtering.limit(self, a), 2048)


def nucleus_of_256(self: Filtering, a: Arguments) -> int:
    return Filtering.limit(self, a) if a.top_p == 1 else min(Filtering.limit(self, a), 256)


def ignored_from_32(self: Filtering, a: Arguments) -> int:
    return a.logits.shape[-1] if a.top_k is not None and a.top_k >= 32 else Filtering.limit(self, a)


def limit_wraps(self: FilterLogits, a: Arguments) -> int:
    size = a.logits.shape[-1]
    return FilterLogits.limit(self, a) if a.top_k is None or a.top_k < size else max(a.top_k % size, 1)


def zero_is_one(self: FilterLogits, a: Arguments) -> int:
    return 1 if a.top_k == 0 else FilterLogits.limit(self, a)


def negative_from_the_end(self: FilterLogits, a: Arguments) -> int:
    size = a.logits.shape[-1]
    return max(size + a.top_k, 1) if a.top_k is not None and a.top_k < 0 else FilterLogits.limit(self, a)


def first_threshold(self: FilterLogits, z: np.ndarray, order: np.ndarray, a: Arguments) -> Mask:
    return z >= in_order(z, order)[:1, self.limit(a) - 1, None]


# top-p


def top_p_by(keep: Callable[[np.ndarray, np.ndarray, np.ndarray, Arguments], Mask]) -> Change:
    """top-p with a rule of its own: weights in order (their sum 1), kept entries in order, order -> mask in order."""

    def top_p(self: Any, x: np.ndarray, order: np.ndarray, kept: Mask, a: Arguments) -> Mask:
        weights = in_order(self.weights(x, kept), order)
        weights = weights / weights.sum(-1, keepdims=True)
        return kept & placed(keep(weights, in_order(kept, order), in_order(x, order), a), order)

    return {"top_p": top_p}


def without_the_crossing(p: np.ndarray, kept: Mask, x: np.ndarray, a: Arguments) -> Mask:
    inside = (running(p)[:, 1:] <= a.top_p) | (a.top_p == 1)
    inside[:, 0] = True
    return inside


def up_to_p(p: np.ndarray, kept: Mask, x: np.ndarray, a: Arguments) -> Mask:
    """An id survives where no more than p lies before it: one more where p is reached exactly."""
    return running(p)[:, :-1] <= a.top_p


def at_least_a_thousandth(p: np.ndarray, kept: Mask, x: np.ndarray, a: Arguments) -> Mask:
    return running(p)[:, :-1] < max(a.top_p, 0.001)


def sums_of_logarithms(p: np.ndarray, kept: Mask, x: np.ndarray, a: Arguments) -> Mask:
    with np.errstate(divide="ignore"):
        return np.cumsum(np.log(p), axis=-1) < a.top_p


def one_more(p: np.ndarray, kept: Mask, x: np.ndarray, a: Arguments) -> Mask:
    before = running(p)[:, :-1]
    return np.concatenate([before[:, :1], before[:, :-1]], axis=-1) < a.top_p


def share_of_the_top(p: np.ndarray, kept: Mask, x: np.ndarray, a: Arguments) -> Mask:
    return (p >= (1 - a.top_p) * p[:, :1]) | (a.top_p == 1)


def from_the_rear(p: np.ndarray, kept: Mask, x: np.ndarray, a: Arguments) -> Mask:
    return (running(p[:, ::-1])[:, :-1] < a.top_p)[:, ::-1] | (a.top_p == 1)


def ascending_in(dtype: str | None) -> Callable[..., Mask]:
    """Cumulative sums from the least likely id on, kept where they pass 1 - p in the dtype."""

    def keep(p: np.ndarray, kept: Mask, x: np.ndarray, a: Arguments) -> Mask:
        name = dtype or a.logits.dtype.name
        sums = running_in(name, p[:, ::-1])[:, ::-1]
        return (sums > rounded(np.asarray(1 - a.top_p), name)) | (a.top_p == 1)

    return keep


def ties_of_the_last(p: np.ndarray, kept: Mask, x: np.ndarray, a: Arguments) -> Mask:
    count = (running(p)[:, :-1] < a.top_p).sum(-1, keepdims=True)
    return (x >= np.take_along_axis(x, count - 1, -1)) | (a.top_p == 1)


def above_the_next_likely(p: np.ndarray, kept: Mask, x: np.ndarray, a: Arguments) -> Mask:
    """What is more likely than the first that is left out; the first id in any case."""
    inside = (running(p)[:, :-1] < a.top_p) | (a.top_p == 1)
    after = np.where(inside, -np.inf, x).max(axis=-1, keepdims=True)
    return inside & ((x > after) | (np.arange(x.shape[-1]) == 0))


def below_a_percent_off(self: FilterLogits, x: np.ndarray, order: np.ndarray, kept: Mask, a: Arguments) -> Mask:
    return kept if a.top_p < 1e-2 else FilterLogits.top_p(self, x, order, kept, a)


def by_id(self: FilterLogits, x: np.ndarray, order: np.ndarray, kept: Mask, a: Arguments) -> Mask:
    ids = np.broadcast_to(np.arange(x.shape[-1]), x.shape)
    return FilterLogits.top_p(self, x, ids, kept, a)


def of_the_whole_mass(self: Any, x: np.ndarray, order: np.ndarray, kept: Mask, a: Arguments) -> Mask:
    return kept & type(self).__mro__[-3].top_p(self, x, order, np.ones_like(kept), a)  # type: ignore[attr-defined]


def either_filter(self: FilterLogits, x: np.ndarray, order: np.ndarray, kept: Mask, a: Arguments) -> Mask:
    return kept if a.top_k else FilterLogits.top_p(self, x, order, kept, a)


def not_beside_all(self: Any, x: np.ndarray, order: np.ndarray, kept: Mask, a: Arguments) -> Mask:
    ends = a.top_k is not None and a.top_k >= a.logits.shape[-1]
    return kept if ends else Filtering.top_p(self, x, order, kept, a)


def past_32(step: Callable[..., Mask]) -> Change:
    """`top_p` in the place of the right one where top_k leaves more than a group of threads holds, one each."""

    def top_p(self: Any, x: np.ndarray, order: np.ndarray, kept: Mask, a: Arguments) -> Mask:
        if (a.top_k or 0) > 32:
            return step(self, x, order, kept, a)
        return np.asarray(Filtering.top_p(self, x, order, kept, a))

    return {"top_p": top_p}


def sums_in(dtype: str | None) -> Change:
    def before(self: Any, weights: np.ndarray, order: np.ndarray, a: Arguments) -> np.ndarray:
        name = dtype or a.logits.dtype.name
        ordered = in_order(weights, order)
        sums = running_in(name, rounded(ordered / ordered.sum(-1, keepdims=True), name))
        return placed(np.concatenate([np.zeros((len(sums), 1)), sums[:, :-1]], -1), order)

    return {"before": before}


def no_shortcut(self: FilterLogits, x: np.ndarray, order: np.ndarray, kept: Mask, a: Arguments) -> Mask:
    """top_p of 1 is compared like any other, and rounding drops the tail."""
    before = in_order(sums_in("float16")["before"](self, self.weights(x, kept), order, a), order)
    return kept & placed(before < a.top_p, order)


def shares_in(dtype: str | None) -> Change:
    """Probabilities in a dtype, that of the logits for None; their sums are exact."""

    def before(self: Filtering, weights: np.ndarray, order: np.ndarray, a: Arguments) -> np.ndarray:
        share = f64(round_to(weights / weights.sum(-1, keepdims=True), dtype or a.logits.dtype.name))
        return placed(running(in_order(share, order))[:, :-1], order)

    return {"before": before}


def differences_in_dtype(self: Filtering, x: np.ndarray, order: np.ndarray, kept: Mask, a: Arguments) -> Mask:
    """What each logit lies below the largest is rounded to the dtype of the logits."""
    below = x - np.where(kept, x, -np.inf).max(axis=-1, keepdims=True)
    return Filtering.top_p(self, rounded(below, a.logits.dtype.name), order, kept, a)


def batch_sums(self: FilterLogits, weights: np.ndarray, order: np.ndarray, a: Arguments) -> np.ndarray:
    """The running sum goes on from row to row."""
    share = in_order(weights / weights.sum(-1, keepdims=True), order)
    sums = np.concatenate([[0.0], np.cumsum(share)])[: share.size].reshape(share.shape)
    return placed(sums, order)


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


def taken_for_shares(self: Any, weights: np.ndarray, order: np.ndarray, a: Arguments) -> np.ndarray:
    """The sums are not divided by that of all."""
    return placed(running(in_order(weights, order))[:, :-1], order)


def hidden_as_zero(self: Any, x: np.ndarray, kept: Mask) -> np.ndarray:
    """-inf is replaced, so that nothing becomes NaN, by a number that is not low at all."""
    return spec.weights_of(np.where(kept, np.where(np.isinf(x), 0.0, x), -np.inf))


def slice_of_hidden(self: FilterLogits, x: np.ndarray, kept: Mask) -> np.ndarray:
    """A thread whose entries are all -inf computes -inf - -inf."""
    weights = FilterLogits.weights(self, x, kept)
    fours = x.shape[-1] // 4
    empty = np.isinf(x[:, : fours * 4].reshape(len(x), fours, 4)).all(-1).any(-1)
    return np.where(empty[:, None], np.nan, weights)


# results of the filter


def lowest_number(self: FilterLogits, logits: np.ndarray, kept: Mask) -> np.ndarray:
    return np.where(kept, logits, -largest("float16"))


def lowest_of_the_dtype(self: FilterLogits, a: Arguments) -> np.ndarray:
    left, dtype = FilterLogits.respond(self, a), a.logits.dtype
    return np.where(np.isneginf(f64(left)), np.asarray(-largest(dtype.name), dtype), left)


def minus_a_billion(self: FilterLogits, logits: np.ndarray, kept: Mask) -> np.ndarray:
    return np.where(kept, logits, -1e9)


def logarithms(self: FilterLogits, logits: np.ndarray, kept: Mask) -> np.ndarray:
    with np.errstate(all="ignore"):
        rows = np.where(kept, logits, -np.inf)
        return (
            rows
            - rows.max(-1, keepdims=True)
            - np.log(np.exp(rows - rows.max(-1, keepdims=True)).sum(-1, keepdims=True))
        )


def through_bfloat16(self: FilterLogits, logits: np.ndarray, kept: Mask) -> np.ndarray:
    return np.where(kept, rounded(logits, "bfloat16"), -np.inf)


def one_broken_for_all(self: Any, a: Arguments) -> tuple[np.ndarray, np.ndarray]:
    """A maximum over the batch: one NaN makes every row NaN."""
    z, sound = type(self).__mro__[-3].rows(self, a)  # type: ignore[attr-defined]
    return (z, sound) if sound.all() else (np.zeros_like(z), np.zeros_like(sound))


def nothing_of_a_broken_row(self: FilterLogits, a: Arguments) -> Any:
    result = np.array(Operation.respond(self, a))
    _, sound = self.rows(a)
    result[~sound.reshape(a.logits.shape[:-1])] = np.nan
    return result


def wide_batches_unfiltered(self: FilterLogits, a: Arguments) -> Any:
    """A path for vocabularies of several blocks has candidates for eight rows."""
    result, size = Operation.respond(self, a), a.logits.shape[-1]
    return a.logits if size > 4096 and a.logits.size // size > 8 else result


def eight_rows(self: FilterLogits, a: Arguments) -> Any:
    """The rows past the eighth come back as they are."""
    result = np.array(Operation.respond(self, a))
    rows = a.logits.reshape(-1, a.logits.shape[-1])
    result.reshape(rows.shape)[8:] = rows[8:]
    return result


def filtered_rows(most: int) -> Change:
    """A grid has so many rows; the others come back as they are."""

    def respond(self: FilterLogits, a: Arguments) -> Any:
        result = np.array(Operation.respond(self, a))
        rows = a.logits.reshape(-1, a.logits.shape[-1])
        result.reshape(rows.shape)[most:] = rows[most:]
        return result

    return {"respond": respond}


def squeezed(self: FilterLogits, a: Arguments) -> Any:
    result = Operation.respond(self, a)
    return result[0] if result.ndim > 1 and len(result) == 1 else result


def in_place(self: FilterLogits, a: Arguments) -> Any:
    result = Operation.respond(self, a)
    if a.logits.flags.writeable:
        a.logits[...] = result
    return result


def stale_survivors(self: FilterLogits, a: Arguments) -> Any:
    """A scratch mask is not cleared: what did not survive earlier does not survive now."""
    memory = vars(type(self)).get("scratch", {})
    result = np.array(Operation.respond(self, a))
    earlier = memory.get(result.shape)
    type(self).scratch = {**memory, result.shape: result == -np.inf}  # type: ignore[attr-defined]
    return np.where(earlier, -np.inf, result).astype(result.dtype) if earlier is not None else result


# the sampler


def last_of_equal_greedy(self: Sampler, z: np.ndarray, kept: Mask, a: Arguments) -> np.ndarray:
    return z.shape[-1] - 1 - np.argmax(np.where(kept, z, -np.inf)[:, ::-1], axis=-1)


def bfloat16_minus_zero_below_zero(self: Sampler, z: np.ndarray, kept: Mask, a: Arguments) -> np.ndarray:
    if a.logits.dtype.name == "bfloat16":
        z = np.where((z == 0) & np.signbit(z), -np.finfo(np.float64).tiny, z)
    return Sampler.greedy(self, z, kept, a)


def counted_from_the_block(self: Sampler, z: np.ndarray, kept: Mask, a: Arguments) -> np.ndarray:
    """Where a row is one number, what is taken for its place is how many rows came before its block of 32768."""
    ids = Sampler.greedy(self, z, kept, a)
    return ids + np.arange(len(ids)) // 2**15 * 2**15 if z.shape[-1] == 1 else ids


def greedy_in(dtype: str) -> Any:
    def greedy(self: Sampler, z: np.ndarray, kept: Mask, a: Arguments) -> np.ndarray:
        with np.errstate(over="ignore"):
            return Sampler.greedy(self, f64(round_to(z, dtype)), kept, a)

    return greedy


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


def all_where_tempered(self: Sampler, z: np.ndarray, x: np.ndarray, a: Arguments) -> Mask:
    forgotten = a.uniform is None and a.temperature not in (0, 1)
    return Sampler.survivors(self, z, x, Arguments(**{**vars(a), "top_p": 1.0}) if forgotten else a)


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


def coarse_number(self: Sampler, a: Arguments, rows: int) -> np.ndarray:
    return np.floor(Sampler.uniforms(self, a, rows) * 2**16) / 2**16


def top_p_through_float16(self: Filtering, x: np.ndarray, order: np.ndarray, kept: Mask, a: Arguments) -> np.ndarray:
    """What top-p sees of bfloat16 has passed through float16, the nearest of whose numbers stand for those past its range."""
    if a.logits.dtype.name == "bfloat16":
        x = f64(round_to(np.clip(x, -largest("float16"), largest("float16")), "float16"))
    return Filtering.top_p(self, x, order, kept, a)


def weights_in_float16(self: Sampler, x: np.ndarray, kept: Mask) -> np.ndarray:
    return f64(round_to(Filtering.weights(self, x, kept), "float16"))


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


def rows_to(most: int) -> Change:
    """A kernel takes so many rows of the last leading dim; the others keep id 0."""

    def drawn(self: Sampler, a: Arguments) -> np.ndarray:
        ids = np.array(Sampler.drawn(self, a))
        if ids.ndim:
            ids[..., most:] = 0
        return ids

    return {"drawn": drawn}


def shared_number(self: Sampler, a: Arguments, rows: int) -> np.ndarray:
    return np.broadcast_to(Sampler.uniforms(self, a, rows)[:1], (rows,)) if rows else Sampler.uniforms(self, a, rows)


def first_column(self: Sampler, weights: np.ndarray, uniform: np.ndarray, a: Arguments) -> np.ndarray:
    """The place in the sorted row is looked up in the first row's order: column indexing that fits one row only."""
    order = self.order(weights)
    ids = Sampler.ids(self, weights, uniform, a)
    place = np.argmax(order == ids[:, None], axis=-1)
    return order[:1].ravel()[place]


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


def last_without_distribution(self: Sampler, a: Arguments) -> int:
    return a.logits.shape[-1] - 1


def before_the_first_of_many(self: Sampler, a: Arguments) -> int:
    """A top-k of 512 rows or more finds nothing in a row with NaN."""
    return -1 if a.top_k and a.logits.size // a.logits.shape[-1] >= 512 else 0


def with_column(self: Sampler, a: Arguments) -> Any:
    return Sampler.respond(self, a)[..., None]


def filters_in_place(self: Sampler, a: Arguments) -> Any:
    result = Sampler.respond(self, a)
    if a.logits.flags.writeable:
        z, _ = self.rows(a)
        x = self.tempered(z, a) if a.temperature else z
        a.logits[...] = np.where(self.survivors(z, x, a), x, -np.inf).reshape(a.logits.shape)
    return result


def draws_in_vain(self: Sampler, a: Arguments) -> Any:
    random.random()
    return Sampler.respond(self, a)


def keeps_numbers(self: Sampler, a: Arguments) -> Any:
    """The uniform numbers of the first call of a shape serve all later ones."""
    return remembers("uniform")["respond"](self, a)


def absolute(self: Sampler, z: np.ndarray, a: Arguments) -> np.ndarray:
    return z / abs(a.temperature)


def below_zero_alone(self: Sampler, a: Arguments) -> None:
    if a.temperature < 0:
        raise ValueError(f"temperature is {a.temperature}")


def numbers_resized(self: Sampler, a: Arguments, rows: int) -> np.ndarray:
    return Sampler.uniforms(self, a, rows) if a.uniform is None else np.resize(f64(a.uniform), rows)


# generators of a sampler's own


def own(uniforms: Callable[[Sampler, Arguments, int], np.ndarray]) -> Change:
    """Given uniform numbers are taken as they are; the sampler's own are made like this."""
    return {
        "uniforms": lambda self, a, rows: (
            uniforms(self, a, rows) if a.uniform is None else Sampler.uniforms(self, a, rows)
        )
    }


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


def floor_where_filtered(self: Sampler, z: np.ndarray, a: Arguments) -> np.ndarray:
    """The path with a filter keeps the temperature from 0 by a hundredth."""
    return z / (max(a.temperature, 0.01) if a.top_k or a.top_p < 1 else a.temperature)


def next_in_own(self: Sampler, weights: np.ndarray, uniform: np.ndarray, a: Arguments) -> np.ndarray:
    """A search among sums that begin with 0: the id before the right one, but for the first."""
    ids = Sampler.ids(self, weights, uniform, a)
    return ids if a.uniform is not None else np.maximum(ids - 1, 0)


# honest ways


def weights_in(dtype: str) -> Callable[..., np.ndarray]:
    def weights(self: Any, x: np.ndarray, kept: Mask) -> np.ndarray:
        x = np.where(kept, x, -np.inf).astype(numpy_dtype(dtype))
        return f64(np.exp((x - x.max(-1, keepdims=True)).astype(numpy_dtype(dtype))))

    return weights


def places_for_ids(self: Sampler, order: np.ndarray, weights: np.ndarray, a: Arguments) -> np.ndarray:
    return self.ids(in_order(weights, order), self.uniforms(a, len(order)), a)


def likeliest_last(self: Sampler, order: np.ndarray, weights: np.ndarray, a: Arguments) -> np.ndarray:
    return Sampler.sorted_ids(self, order[:, ::-1], weights, a)


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
    p = p / p.sum(-1, keepdims=True, dtype=np.float32)
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
