"""What filters keep, and what they return: see `spec/faults/sampling_filters.py`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from inferspec.spec.changes.linear import rounded
from inferspec.spec.changes.sampling import in_order, last_of_equals, log_probabilities, running_in, with_logits
from inferspec.spec.contract import Arguments, Change, Operation
from inferspec.spec.mistakes import first_of
from inferspec.spec.numerics import f64, largest, round_to
from inferspec.spec.sampling import Filtering, FilterLogits, placed, running

Mask = np.ndarray


def without_the_rest(self: Any, a: Arguments) -> Any:
    """Blocks of 1024 are read, and what is left of the vocabulary is not."""
    size = a.logits.shape[-1]
    return with_logits(
        self, a, np.where(np.arange(size) < size // 1024 * 1024, a.logits, -np.inf).astype(a.logits.dtype)
    )


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


def keeps_what_it_refused() -> Change:
    """A limit is put down before it is looked at, and serves the next call as well."""

    def guard_top_p(self: FilterLogits, a: Arguments) -> None:
        if not 0 < a.top_p <= 1:
            first_of(self, "refused", [])[:] = [True]
        FilterLogits.guard_top_p(self, a)

    def top_p(self: FilterLogits, x: np.ndarray, order: np.ndarray, kept: Mask, a: Arguments) -> Mask:
        refused = first_of(self, "refused", [])
        right = FilterLogits.top_p(self, x, order, kept, a)
        return kept if refused and refused.pop() else right

    return {"guard_top_p": guard_top_p, "top_p": top_p}


# top-k


def one_further(self: FilterLogits, z: np.ndarray, order: np.ndarray, a: Arguments) -> Mask:
    """The partition is right up to place k, and the k-th is mistaken for the one after it."""
    ranks, k = placed(np.broadcast_to(np.arange(z.shape[-1]), z.shape), order), self.limit(a)
    return (ranks < k - 1) | (ranks == min(k, z.shape[-1] - 1)) if k < z.shape[-1] else ranks < k


def ranks_for_ids(self: FilterLogits, z: np.ndarray, order: np.ndarray, a: Arguments) -> Mask:
    return order < self.limit(a)


def smallest(self: FilterLogits, z: np.ndarray, order: np.ndarray, a: Arguments) -> Mask:
    return FilterLogits.top_k(self, z, order[:, ::-1], a)


def above_the_next(self: FilterLogits, z: np.ndarray, order: np.ndarray, a: Arguments) -> Mask:
    k = self.limit(a)
    return np.ones_like(z, bool) if k == z.shape[-1] else z > in_order(z, order)[:, k, None]


def above_in_a_byte(self: FilterLogits, z: np.ndarray, order: np.ndarray, a: Arguments) -> Mask:
    """How many logits lie above those that are equal to the k-th is counted in a byte."""
    last = in_order(z, order)[:, self.limit(a) - 1, None]
    left = self.limit(a) - (z > last).sum(axis=-1, keepdims=True, dtype=np.uint8).astype(int)
    return (z > last) | ((z == last) & (np.cumsum(z == last, axis=-1) <= left))


def minus_zero_below_zero(self: Any, z: np.ndarray) -> np.ndarray:
    """The order of bits: of two zeros the one without a sign comes first."""
    return np.lexsort((np.signbit(z), -z), axis=-1)


def at_most_half(self: FilterLogits, a: Arguments) -> int:
    """A buffer of fixed size for the candidates."""
    return min(FilterLogits.limit(self, a), 16)


def nucleus_of_2048(self: Filtering, a: Arguments) -> int:
    return Filtering.limit(self, a) if a.top_p == 1 else min(Filtering.limit(self, a), 2048)


def ignored_from_32(self: Filtering, a: Arguments) -> int:
    return a.logits.shape[-1] if a.top_k is not None and a.top_k >= 32 else Filtering.limit(self, a)


def bucket_of_4096(self: Filtering, z: np.ndarray, order: np.ndarray, a: Arguments) -> Mask:
    """The k-th largest is looked for among the first 4096 of those that share the upper eight bits of a float16 with it."""
    kept, k = Filtering.top_k(self, z, order, a), self.limit(a)
    with np.errstate(over="ignore"):
        bits = z.astype(np.float16).view(np.uint16).astype(int)
    buckets = np.where(bits & 0x8000, ~bits & 0xFFFF, bits | 0x8000) >> 8
    for row, bucket, left in zip(z, buckets, kept, strict=True):
        last = bucket[left].min()
        held = np.flatnonzero(bucket == last)
        if k < len(row) and len(held) > 4096:
            candidates = held[:4096]
            best = candidates[np.argsort(-row[candidates], kind="stable")]
            left[:] = bucket > last
            left[best[: k - left.sum()]] = True
    return kept


def of_log_probabilities(self: Filtering, z: np.ndarray, order: np.ndarray, a: Arguments) -> Mask:
    return Filtering.top_k(self, z, Filtering.order(self, log_probabilities(z, a)), a)


def in_buckets(self: Filtering, z: np.ndarray, order: np.ndarray, a: Arguments) -> Mask:
    """More than 32 are looked for in buckets between -10 and 10; what lies outside falls into the first or the last, unsorted."""
    if self.limit(a) > 32:
        order = Filtering.order(self, np.clip(z, -10, 10))
    return Filtering.top_k(self, z, order, a)


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


def without_the_crossing(p: np.ndarray, kept: Mask, x: np.ndarray, a: Arguments) -> Mask:
    inside = (running(p)[:, 1:] <= a.top_p) | (a.top_p == 1)
    inside[:, 0] = True
    return inside


def at_least_a_thousandth(p: np.ndarray, kept: Mask, x: np.ndarray, a: Arguments) -> Mask:
    return running(p)[:, :-1] < max(a.top_p, 0.001)


def up_to_the_first_that_reaches(p: np.ndarray, kept: Mask, x: np.ndarray, a: Arguments) -> Mask:
    """Where rounding leaves no sum that reaches p, argmax of nothing is 0."""
    last = np.argmax(running_in("float32", rounded(p, "float32")) >= a.top_p, axis=-1)
    return (np.arange(p.shape[-1]) <= last[:, None]) | (a.top_p == 1)


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


def none_of_the_smallest(self: FilterLogits, x: np.ndarray, order: np.ndarray, kept: Mask, a: Arguments) -> Mask:
    left = Filtering.top_p(self, x, order, kept, a)
    weights = self.weights(x, kept)
    lost = a.top_p < weights.max(axis=-1, keepdims=True) / weights.sum(axis=-1, keepdims=True) / 1000
    return left & ~lost


def by_id(self: FilterLogits, x: np.ndarray, order: np.ndarray, kept: Mask, a: Arguments) -> Mask:
    ids = np.broadcast_to(np.arange(x.shape[-1]), x.shape)
    return FilterLogits.top_p(self, x, ids, kept, a)


def either_filter(self: FilterLogits, x: np.ndarray, order: np.ndarray, kept: Mask, a: Arguments) -> Mask:
    return kept if a.top_k else FilterLogits.top_p(self, x, order, kept, a)


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


def differences_in_dtype(self: Filtering, x: np.ndarray, order: np.ndarray, kept: Mask, a: Arguments) -> Mask:
    """What each logit lies below the largest is rounded to the dtype of the logits."""
    below = x - np.where(kept, x, -np.inf).max(axis=-1, keepdims=True)
    return Filtering.top_p(self, rounded(below, a.logits.dtype.name), order, kept, a)


def batch_sums(self: FilterLogits, weights: np.ndarray, order: np.ndarray, a: Arguments) -> np.ndarray:
    """The running sum goes on from row to row."""
    share = in_order(weights / weights.sum(-1, keepdims=True), order)
    sums = np.concatenate([[0.0], np.cumsum(share)])[: share.size].reshape(share.shape)
    return placed(sums, order)


def taken_for_shares(self: Any, weights: np.ndarray, order: np.ndarray, a: Arguments) -> np.ndarray:
    """The sums are not divided by that of all."""
    return placed(running(in_order(weights, order))[:, :-1], order)


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


def top_p_through_float16(self: Filtering, x: np.ndarray, order: np.ndarray, kept: Mask, a: Arguments) -> np.ndarray:
    """What top-p sees of bfloat16 has passed through float16, the nearest of whose numbers stand for those past its range."""
    if a.logits.dtype.name == "bfloat16":
        x = f64(round_to(np.clip(x, -largest("float16"), largest("float16")), "float16"))
    return Filtering.top_p(self, x, order, kept, a)


def flushed(self: Any, logits: np.ndarray, kept: np.ndarray) -> np.ndarray:
    return np.where(kept, np.where(np.abs(logits) < 2.0**-14, 0.0, logits), -np.inf)


def shares_of_all_equal(self: Filtering, x: np.ndarray, order: np.ndarray, kept: Mask, a: Arguments) -> Mask:
    """The probability that top_k left is that of all that are equal to the k-th."""
    if a.top_p == 1:
        return kept
    equal = x >= np.where(kept, x, np.inf).min(axis=-1, keepdims=True)
    return kept & (self.before(self.weights(x, equal), order, a) < a.top_p)


def equals_beside_broken(self: Filtering, z: np.ndarray, x: np.ndarray, a: Arguments) -> Mask:
    """Where a row of the batch has no distribution the rows are sorted by another function, which turns equal ones round."""
    if self.rows(a)[1].all():
        return Filtering.survivors(self, z, x, a)
    order = last_of_equals(self, z)
    return self.top_p(x, order, self.top_k(z, order, a), a)


def equals_beside_all(self: Filtering, x: np.ndarray, order: np.ndarray, kept: Mask, a: Arguments) -> Mask:
    """Where top_k leaves the whole vocabulary all survive that are as likely as the last."""
    left = Filtering.top_p(self, x, order, kept, a)
    if a.top_k is None or a.top_k < x.shape[-1]:
        return left
    return x >= np.where(left, x, np.inf).min(axis=-1, keepdims=True)


def limit_of_the_first(self: Filtering, a: Arguments) -> int:
    """How many are left is found out for the first vocabulary."""
    first = vars(self).setdefault("first_limit", Filtering.limit(self, a))
    return min(first, a.logits.shape[-1])
