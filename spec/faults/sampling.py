"""Mistakes in filters and samplers, and other honest ways to compute them."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np

from inferspec.spec import sampling as spec
from inferspec.spec.contract import Arguments, Change, Fault, Operation, Variant
from inferspec.spec.faults.linear import COURSE_GAP, FLASHINFER, MLX, TIRED, rounded
from inferspec.spec.mistakes import (
    first_row_for_all,
    ignores_strides,
    leaves_unwritten,
    mutates,
    promotes,
    remembers,
    unguarded,
)
from inferspec.spec.numerics import Precision, f64, largest, numpy_dtype, round_to
from inferspec.spec.sampling import Filtering, FilterLogits, Sampler, placed, running

MLX_LM = "https://github.com/ml-explore/mlx-lm"
VLLM = "https://github.com/vllm-project/vllm"
VLLM_METAL = "https://github.com/vllm-project/vllm-metal"
COURSE_REPO = "https://github.com/skyzh/tiny-llm"
FACTS = "FACTS.md: what goes wrong in real code written from the course's texts"

Mask = np.ndarray


def running_in(dtype: str, values: np.ndarray) -> np.ndarray:
    """Running sums along rows, in an accumulator of the dtype."""
    with np.errstate(over="ignore", invalid="ignore"):
        return f64(np.add.accumulate(values.astype(numpy_dtype(dtype)), axis=-1))


def in_order(values: np.ndarray, order: np.ndarray) -> np.ndarray:
    return np.take_along_axis(values, order, -1)


# top-k


def _one_further(self: FilterLogits, z: np.ndarray, order: np.ndarray, a: Arguments) -> Mask:
    """The partition is right up to place k, and the k-th is mistaken for the one after it."""
    ranks, k = placed(np.broadcast_to(np.arange(z.shape[-1]), z.shape), order), self.limit(a)
    return (ranks < k - 1) | (ranks == min(k, z.shape[-1] - 1)) if k < z.shape[-1] else ranks < k


def _ranks_for_ids(self: FilterLogits, z: np.ndarray, order: np.ndarray, a: Arguments) -> Mask:
    return order < self.limit(a)


def _smallest(self: FilterLogits, z: np.ndarray, order: np.ndarray, a: Arguments) -> Mask:
    return FilterLogits.top_k(self, z, order[:, ::-1], a)


def _by_value(self: Any, z: np.ndarray, order: np.ndarray, a: Arguments) -> Mask:
    return z >= in_order(z, order)[:, self.limit(a) - 1, None]


def _above_the_next(self: FilterLogits, z: np.ndarray, order: np.ndarray, a: Arguments) -> Mask:
    k = self.limit(a)
    return np.ones_like(z, bool) if k == z.shape[-1] else z > in_order(z, order)[:, k, None]


def _last_of_equals(self: Any, z: np.ndarray) -> np.ndarray:
    return np.argsort(z, axis=-1, kind="stable")[:, ::-1]


def _minus_zero_below_zero(self: Any, z: np.ndarray) -> np.ndarray:
    """The order of bits: of two zeros the one without a sign comes first."""
    return np.lexsort((np.signbit(z), -z), axis=-1)


def _at_most_half(self: FilterLogits, a: Arguments) -> int:
    """A buffer of fixed size for the candidates."""
    return min(FilterLogits.limit(self, a), 16)


def _at_most(most: int) -> Change:
    return {"limit": lambda self, a: min(Filtering.limit(self, a), most) if a.top_k else Filtering.limit(self, a)}


def _nucleus_of_256(self: Filtering, a: Arguments) -> int:
    return Filtering.limit(self, a) if a.top_p == 1 else min(Filtering.limit(self, a), 256)


def _ignored_from_32(self: Filtering, a: Arguments) -> int:
    return a.logits.shape[-1] if a.top_k is not None and a.top_k >= 32 else Filtering.limit(self, a)


def _limit_wraps(self: FilterLogits, a: Arguments) -> int:
    size = a.logits.shape[-1]
    return FilterLogits.limit(self, a) if a.top_k is None or a.top_k < size else max(a.top_k % size, 1)


def _zero_is_one(self: FilterLogits, a: Arguments) -> int:
    return 1 if a.top_k == 0 else FilterLogits.limit(self, a)


def _negative_from_the_end(self: FilterLogits, a: Arguments) -> int:
    size = a.logits.shape[-1]
    return max(size + a.top_k, 1) if a.top_k is not None and a.top_k < 0 else FilterLogits.limit(self, a)


def _first_threshold(self: FilterLogits, z: np.ndarray, order: np.ndarray, a: Arguments) -> Mask:
    return z >= in_order(z, order)[:1, self.limit(a) - 1, None]


# top-p


def _top_p_by(keep: Callable[[np.ndarray, np.ndarray, np.ndarray, Arguments], Mask]) -> Change:
    """top-p with a rule of its own: weights in order (their sum 1), kept entries in order, order -> mask in order."""

    def top_p(self: Any, x: np.ndarray, order: np.ndarray, kept: Mask, a: Arguments) -> Mask:
        weights = in_order(self.weights(x, kept), order)
        weights = weights / weights.sum(-1, keepdims=True)
        return kept & placed(keep(weights, in_order(kept, order), in_order(x, order), a), order)

    return {"top_p": top_p}


def _without_the_crossing(p: np.ndarray, kept: Mask, x: np.ndarray, a: Arguments) -> Mask:
    inside = (running(p)[:, 1:] <= a.top_p) | (a.top_p == 1)
    inside[:, 0] = True
    return inside


def _sums_of_logarithms(p: np.ndarray, kept: Mask, x: np.ndarray, a: Arguments) -> Mask:
    with np.errstate(divide="ignore"):
        return np.cumsum(np.log(p), axis=-1) < a.top_p


def _one_more(p: np.ndarray, kept: Mask, x: np.ndarray, a: Arguments) -> Mask:
    before = running(p)[:, :-1]
    return np.concatenate([before[:, :1], before[:, :-1]], axis=-1) < a.top_p


def _share_of_the_top(p: np.ndarray, kept: Mask, x: np.ndarray, a: Arguments) -> Mask:
    return (p >= (1 - a.top_p) * p[:, :1]) | (a.top_p == 1)


def _from_the_rear(p: np.ndarray, kept: Mask, x: np.ndarray, a: Arguments) -> Mask:
    return (running(p[:, ::-1])[:, :-1] < a.top_p)[:, ::-1] | (a.top_p == 1)


def _ascending_in(dtype: str | None) -> Callable[..., Mask]:
    """Cumulative sums from the least likely id on, kept where they pass 1 - p in the dtype."""

    def keep(p: np.ndarray, kept: Mask, x: np.ndarray, a: Arguments) -> Mask:
        name = dtype or a.logits.dtype.name
        sums = running_in(name, p[:, ::-1])[:, ::-1]
        return (sums > rounded(np.asarray(1 - a.top_p), name)) | (a.top_p == 1)

    return keep


def _ties_of_the_last(p: np.ndarray, kept: Mask, x: np.ndarray, a: Arguments) -> Mask:
    count = (running(p)[:, :-1] < a.top_p).sum(-1, keepdims=True)
    return (x >= np.take_along_axis(x, count - 1, -1)) | (a.top_p == 1)


def _below_a_percent_off(self: FilterLogits, x: np.ndarray, order: np.ndarray, kept: Mask, a: Arguments) -> Mask:
    return kept if a.top_p < 1e-2 else FilterLogits.top_p(self, x, order, kept, a)


def _by_id(self: FilterLogits, x: np.ndarray, order: np.ndarray, kept: Mask, a: Arguments) -> Mask:
    ids = np.broadcast_to(np.arange(x.shape[-1]), x.shape)
    return FilterLogits.top_p(self, x, ids, kept, a)


def _of_the_whole_mass(self: Any, x: np.ndarray, order: np.ndarray, kept: Mask, a: Arguments) -> Mask:
    return kept & type(self).__mro__[-3].top_p(self, x, order, np.ones_like(kept), a)  # type: ignore[attr-defined]


def _either_filter(self: FilterLogits, x: np.ndarray, order: np.ndarray, kept: Mask, a: Arguments) -> Mask:
    return kept if a.top_k else FilterLogits.top_p(self, x, order, kept, a)


def _sums_in(dtype: str | None) -> Change:
    def before(self: Any, weights: np.ndarray, order: np.ndarray, a: Arguments) -> np.ndarray:
        name = dtype or a.logits.dtype.name
        ordered = in_order(weights, order)
        sums = running_in(name, rounded(ordered / ordered.sum(-1, keepdims=True), name))
        return placed(np.concatenate([np.zeros((len(sums), 1)), sums[:, :-1]], -1), order)

    return {"before": before}


def _no_shortcut(self: FilterLogits, x: np.ndarray, order: np.ndarray, kept: Mask, a: Arguments) -> Mask:
    """top_p of 1 is compared like any other, and rounding drops the tail."""
    before = in_order(_sums_in("float16")["before"](self, self.weights(x, kept), order, a), order)
    return kept & placed(before < a.top_p, order)


def _batch_sums(self: FilterLogits, weights: np.ndarray, order: np.ndarray, a: Arguments) -> np.ndarray:
    """The running sum goes on from row to row."""
    share = in_order(weights / weights.sum(-1, keepdims=True), order)
    sums = np.concatenate([[0.0], np.cumsum(share)[:-1]]).reshape(share.shape)
    return placed(sums, order)


def _without_shift(self: Any, x: np.ndarray, kept: Mask) -> np.ndarray:
    """exp of the logits as they are, in float32."""
    with np.errstate(over="ignore", invalid="ignore"):
        weights = f64(np.exp(np.where(kept, x, -np.inf).astype(np.float32)))
        return np.where(np.isfinite(weights), weights, np.nan)


def _hidden_as_zero(self: Any, x: np.ndarray, kept: Mask) -> np.ndarray:
    """-inf is replaced, so that nothing becomes NaN, by a number that is not low at all."""
    return spec.weights_of(np.where(kept, np.where(np.isinf(x), 0.0, x), -np.inf))


def _slice_of_hidden(self: FilterLogits, x: np.ndarray, kept: Mask) -> np.ndarray:
    """A thread whose entries are all -inf computes -inf - -inf."""
    weights = FilterLogits.weights(self, x, kept)
    empty = np.isinf(x[:, : x.shape[-1] // 4 * 4].reshape(len(x), -1, 4)).all(-1).any(-1)
    return np.where(empty[:, None], np.nan, weights)


# results of the filter


def _lowest_number(self: FilterLogits, logits: np.ndarray, kept: Mask) -> np.ndarray:
    return np.where(kept, logits, -largest("float16"))


def _logarithms(self: FilterLogits, logits: np.ndarray, kept: Mask) -> np.ndarray:
    with np.errstate(all="ignore"):
        rows = np.where(kept, logits, -np.inf)
        return (
            rows
            - rows.max(-1, keepdims=True)
            - np.log(np.exp(rows - rows.max(-1, keepdims=True)).sum(-1, keepdims=True))
        )


def _through_bfloat16(self: FilterLogits, logits: np.ndarray, kept: Mask) -> np.ndarray:
    return np.where(kept, rounded(logits, "bfloat16"), -np.inf)


def _one_broken_for_all(self: Any, a: Arguments) -> tuple[np.ndarray, np.ndarray]:
    """A maximum over the batch: one NaN makes every row NaN."""
    z, sound = type(self).__mro__[-3].rows(self, a)  # type: ignore[attr-defined]
    return (z, sound) if sound.all() else (np.zeros_like(z), np.zeros_like(sound))


def _nothing_of_a_broken_row(self: FilterLogits, a: Arguments) -> Any:
    result = np.array(Operation.respond(self, a))
    _, sound = self.rows(a)
    result[~sound.reshape(a.logits.shape[:-1])] = np.nan
    return result


def _wide_batches_unfiltered(self: FilterLogits, a: Arguments) -> Any:
    """A path for vocabularies of several blocks has candidates for eight rows."""
    result, size = Operation.respond(self, a), a.logits.shape[-1]
    return a.logits if size > 4096 and a.logits.size // size > 8 else result


def _squeezed(self: FilterLogits, a: Arguments) -> Any:
    result = Operation.respond(self, a)
    return result[0] if result.ndim > 1 and len(result) == 1 else result


def _in_place(self: FilterLogits, a: Arguments) -> Any:
    result = Operation.respond(self, a)
    if a.logits.flags.writeable:
        a.logits[...] = result
    return result


def _stale_survivors(self: FilterLogits, a: Arguments) -> Any:
    """A scratch mask is not cleared: what did not survive earlier does not survive now."""
    memory = vars(type(self)).get("scratch", {})
    result = np.array(Operation.respond(self, a))
    earlier = memory.get(result.shape)
    type(self).scratch = {**memory, result.shape: result == -np.inf}  # type: ignore[attr-defined]
    return np.where(earlier, -np.inf, result).astype(result.dtype) if earlier is not None else result


_FILTERS = (
    Fault(
        "top-k-one-further",
        "the place of the k-th largest goes to the one after it: a partition at k in place of k - 1",
        spec.SAMP_01,
        {"top_k": _one_further},
        f"{MLX_LM}/commit/caee03c0",
    ),
    Fault(
        "top-k-ranks-for-ids",
        "ids from a sort are taken for ranks: entry i survives when the i-th of the order has a low id",
        spec.SAMP_01,
        {"top_k": _ranks_for_ids},
        FACTS,
    ),
    Fault("top-k-smallest", "the smallest k survive", spec.SAMP_01, {"top_k": _smallest}, TIRED),
    Fault(
        "top-k-one-more",
        "k + 1 survive",
        spec.SAMP_01,
        {"limit": lambda self, a: FilterLogits.limit(self, a) + 1},
        TIRED,
    ),
    Fault(
        "top-k-candidate-buffer",
        "no more than 16 can survive, the size of a buffer",
        spec.SAMP_01,
        {"limit": _at_most_half},
        "PROPERTIES X2",
    ),
    Fault("top-k-at-most-1024", "no more than 1024 can survive", spec.SAMP_01, _at_most(1024), "PROPERTIES X2"),
    Fault("top-k-at-most-64", "no more than 64 can survive", spec.SAMP_01, _at_most(64), "PROPERTIES X2"),
    Fault(
        "top-k-ignored-from-32",
        "a limit of 32 or more filters nothing",
        spec.SAMP_01,
        {"limit": _ignored_from_32},
        "PROPERTIES X2",
    ),
    Fault(
        "filter-lowest-number",
        "what is filtered out gets a low number in place of -inf",
        spec.SAMP_01,
        {"filtered": _lowest_number},
        TIRED,
    ),
    Fault(
        "top-k-all-equals",
        "all logits equal to the k-th survive",
        spec.SAMP_02,
        {"top_k": _by_value},
        f"{VLLM}/pull/50979",
    ),
    Fault(
        "top-k-no-equals",
        "none of the logits equal to the one after the k-th survives",
        spec.SAMP_02,
        {"top_k": _above_the_next},
        f"{VLLM}/pull/50979",
    ),
    Fault(
        "top-k-last-of-equals",
        "of equal logits those of the highest ids survive: an ascending sort, turned round",
        spec.SAMP_02,
        {"order": _last_of_equals},
        TIRED,
    ),
    Fault(
        "top-k-minus-zero-below-zero",
        "a radix sort of the bits has -0 below 0, so that of equal zeros those with a sign go first",
        spec.SAMP_02,
        {"order": _minus_zero_below_zero},
        "the keys of radix sorts",
    ),
    Fault(
        "top-k-wraps",
        "a limit past the vocabulary starts again from 1",
        spec.SAMP_03,
        {"limit": _limit_wraps},
        "PROPERTIES SA3",
    ),
    Fault("top-k-zero-is-one", "a limit of 0 leaves one id", spec.SAMP_03, {"limit": _zero_is_one}, "PROPERTIES SA3"),
    Fault(
        "top-p-one-drops-the-tail",
        "a top_p of 1 is compared with rounded sums, which drops the tail",
        spec.SAMP_03,
        {"top_p": _no_shortcut},
        "PROPERTIES SA2",
    ),
    Fault(
        "top-k-minus-one-drops-one",
        "a limit of -1 counts from the end",
        spec.SAMP_04,
        {"limit": _negative_from_the_end},
        "PROPERTIES SA3",
    ),
    Fault(
        "top-p-without-the-crossing",
        "the id that reaches p does not survive",
        spec.SAMP_05,
        _top_p_by(_without_the_crossing),
        "FACTS.md: the course's text does not say whether it stays",
    ),
    Fault(
        "top-p-sums-logarithms",
        "logarithms of probabilities are summed, so that nothing is filtered",
        spec.SAMP_05,
        _top_p_by(_sums_of_logarithms),
        f"{COURSE_REPO}/commit/13295fc",
    ),
    Fault("top-p-one-more", "one id too many survives", spec.SAMP_05, _top_p_by(_one_more), TIRED),
    Fault("top-p-unsorted", "probabilities are summed in the order of ids", spec.SAMP_05, {"top_p": _by_id}, TIRED),
    Fault(
        "top-p-from-the-rear",
        "the least likely ids that hold p survive",
        spec.SAMP_05,
        _top_p_by(_from_the_rear),
        TIRED,
    ),
    Fault(
        "top-p-as-min-p",
        "ids survive by their share of the largest probability",
        spec.SAMP_05,
        _top_p_by(_share_of_the_top),
        TIRED,
    ),
    Fault(
        "top-p-empty",
        "sums are compared with 1 - p in the dtype of the logits, where it rounds to 1 and nothing survives",
        spec.SAMP_06,
        _top_p_by(_ascending_in(None)),
        f"{MLX_LM}/pull/1912",
    ),
    Fault(
        "top-p-small-is-off",
        "a top_p below one per cent is taken for no filter",
        spec.SAMP_06,
        {"top_p": _below_a_percent_off},
        TIRED,
    ),
    Fault(
        "top-p-all-equals",
        "all ids as likely as the last survivor survive",
        spec.SAMP_07,
        _top_p_by(_ties_of_the_last),
        f"{FLASHINFER}/pull/3774",
    ),
    Fault(
        "top-p-last-of-equals",
        "of equally likely ids the highest survive",
        spec.SAMP_07,
        {"order": _last_of_equals},
        TIRED,
    ),
    Fault(
        "top-p-of-the-whole",
        "top_p counts the probability that top_k took away",
        spec.SAMP_08,
        {"top_p": _of_the_whole_mass},
        "PROPERTIES SA4",
    ),
    Fault("top-p-or-top-k", "with a top_k, top_p is ignored", spec.SAMP_08, {"top_p": _either_filter}, TIRED),
    Fault(
        "top-p-sums-in-dtype",
        "probabilities are summed in the dtype of the logits",
        spec.SAMP_09,
        _sums_in(None),
        f"{MLX_LM}/pull/1912",
    ),
    Fault(
        "top-p-sums-in-float16",
        "probabilities are summed in float16",
        spec.SAMP_09,
        _sums_in("float16"),
        "PROPERTIES X5",
    ),
    Fault(
        "filter-gives-logarithms",
        "survivors come back as logarithms of probabilities",
        spec.SAMP_10,
        {"filtered": _logarithms},
        TIRED,
    ),
    Fault(
        "filter-through-bfloat16",
        "survivors have passed through bfloat16",
        spec.SAMP_10,
        {"filtered": _through_bfloat16},
        TIRED,
    ),
    Fault(
        "top-p-without-shift",
        "exp of the logits as they are overflows",
        spec.SAMP_11,
        {"weights": _without_shift},
        f"{MLX}/commit/d935276de",
    ),
    Fault(
        "top-p-empty-slice",
        "four hidden ids in a row give -inf - -inf, and the sums become NaN",
        spec.SAMP_11,
        {"weights": _slice_of_hidden},
        f"{FLASHINFER}/commit/1b9ba2541",
    ),
    Fault(
        "top-p-hidden-as-zero",
        "-inf is replaced by 0 before the softmax",
        spec.SAMP_11,
        {"weights": _hidden_as_zero},
        TIRED,
    ),
    Fault(
        "filter-first-row-for-all",
        "the first row of the batch serves all",
        spec.SAMP_12,
        first_row_for_all("logits"),
        TIRED,
    ),
    Fault(
        "filter-rows-past-256",
        "rows past 256 are not written",
        spec.SAMP_12,
        leaves_unwritten(lambda out: out[..., :256, :] if out.ndim > 1 else out),
        "PROPERTIES X2",
    ),
    Fault(
        "filter-wide-batches-unfiltered",
        "more than eight rows of more than 4096 ids come back as they are",
        spec.SAMP_12,
        {"respond": _wide_batches_unfiltered},
        "PROPERTIES X2",
    ),
    Fault(
        "top-k-first-threshold",
        "the k-th largest logit of the first row cuts all rows",
        spec.SAMP_12,
        {"top_k": _first_threshold},
        f"{MLX_LM}/commit/7661de1f",
    ),
    Fault(
        "top-p-sums-the-batch",
        "the running sum goes on from row to row",
        spec.SAMP_12,
        {"before": _batch_sums},
        f"{MLX_LM}/commit/2922cb4f",
    ),
    Fault(
        "filter-one-broken-for-all",
        "one row without a distribution leaves the batch unfiltered",
        spec.SAMP_13,
        {"rows": _one_broken_for_all},
        "PROPERTIES SA8",
    ),
    Fault(
        "filter-broken-row-nan",
        "a row without a distribution comes back full of NaN",
        spec.SAMP_14,
        {"respond": _nothing_of_a_broken_row},
        f"{FLASHINFER}/commit/1b9ba2541",
    ),
    Fault(
        "filter-strides",
        "logits are read as if they were contiguous",
        spec.SAMP_15,
        ignores_strides("logits"),
        "PROPERTIES SA3",
    ),
    Fault("filter-promotes", "the result comes back in float32", spec.SAMP_16, promotes(), COURSE_GAP),
    Fault(
        "filter-squeezes",
        "a batch of one loses its axis",
        spec.SAMP_16,
        {"respond": _squeezed},
        f"{MLX_LM}/commit/2922cb4f",
    ),
    Fault("filter-in-place", "-inf is written into the caller's logits", spec.SAMP_17, {"respond": _in_place}, FACTS),
    Fault(
        "filter-stale-scratch",
        "what an earlier call filtered out stays filtered out",
        spec.SAMP_18,
        {"respond": _stale_survivors},
        f"{FLASHINFER}/commit/6ba8058bd",
    ),
    Fault(
        "filter-remembers",
        "a result cached by shape serves other logits",
        spec.SAMP_18,
        remembers("logits"),
        f"{FLASHINFER}/commit/82784bb11",
    ),
    Fault(
        "filter-any-top-p",
        "any top_p is compared as it is",
        spec.SAMP_19,
        unguarded("guard_top_p"),
        "PROPERTIES X9",
    ),
    Fault(
        "filter-any-limit",
        "a limit below -1 counts from the end",
        spec.SAMP_20,
        {"guard_top_k": lambda self, a: None, "limit": _negative_from_the_end},
        "PROPERTIES X9",
    ),
)


# the sampler


def _last_of_equal_greedy(self: Sampler, z: np.ndarray, kept: Mask, a: Arguments) -> np.ndarray:
    return z.shape[-1] - 1 - np.argmax(np.where(kept, z, -np.inf)[:, ::-1], axis=-1)


def _greedy_in(dtype: str) -> Any:
    def greedy(self: Sampler, z: np.ndarray, kept: Mask, a: Arguments) -> np.ndarray:
        with np.errstate(over="ignore"):
            return Sampler.greedy(self, f64(round_to(z, dtype)), kept, a)

    return greedy


def _or_one(self: Sampler, a: Arguments) -> Any:
    return Sampler.respond(self, Arguments(**{**vars(a), "temperature": a.temperature or 1.0}))


def _tiny_for_zero(self: Sampler, a: Arguments) -> Any:
    if a.temperature == 0 and a.uniform is not None:
        a = Arguments(**{**vars(a), "temperature": 1e-6})
    return Sampler.respond(self, a)


def _by_probability(self: Sampler, weights: np.ndarray, uniform: np.ndarray, a: Arguments) -> np.ndarray:
    order = self.order(weights)
    place = Sampler.ids(self, in_order(weights, order), uniform, a)
    return np.take_along_axis(order, place[:, None], -1)[:, 0]


def _next_id(self: Sampler, weights: np.ndarray, uniform: np.ndarray, a: Arguments) -> np.ndarray:
    return np.minimum(Sampler.ids(self, weights, uniform, a) + 1, weights.shape[-1] - 1)


def _from_zero_up(self: Sampler, weights: np.ndarray, uniform: np.ndarray, a: Arguments) -> np.ndarray:
    """The first id whose cdf reaches the uniform number, which every id does for 0."""
    cdf = np.cumsum(weights, axis=-1)
    return np.argmax(cdf >= uniform[:, None] * cdf[:, -1:], axis=-1)


def _counted(clamp: bool) -> Callable[..., np.ndarray]:
    """The number of ids whose cdf, in float16, is no larger than the uniform number: all of them close to 1."""

    def ids(self: Sampler, weights: np.ndarray, uniform: np.ndarray, a: Arguments) -> np.ndarray:
        cdf = running_in("float16", rounded(weights / weights.sum(-1, keepdims=True) * (1 - 2.0**-9), "float16"))
        found = (cdf <= uniform[:, None]).sum(-1)
        if (uniform > 2.0**-12).all() and (uniform < 1 - 2.0**-8).all():
            return Sampler.ids(self, weights, uniform, a)
        return np.minimum(found, weights.shape[-1] - 1) if clamp else found

    return ids


def _never_past(self: Sampler, weights: np.ndarray, uniform: np.ndarray, a: Arguments) -> np.ndarray:
    """Where rounding leaves no cdf above the uniform number, argmax of nothing is id 0."""
    with np.errstate(invalid="ignore"):
        cdf = running_in(
            "float32", (weights / weights.sum(-1, keepdims=True)).astype(np.float32) * np.float32(1 - 2.0**-23)
        )
    return np.argmax(cdf > uniform[:, None], axis=-1)


def _of_the_largest(self: Sampler, weights: np.ndarray, uniform: np.ndarray, a: Arguments) -> np.ndarray:
    """The uniform number is compared with sums of weights whose largest is 1."""
    cdf = np.cumsum(weights, axis=-1)
    return np.argmax((cdf > uniform[:, None]) & (weights > 0), axis=-1)


def _unfiltered(self: Sampler, z: np.ndarray, x: np.ndarray, a: Arguments) -> Mask:
    return z > -np.inf


def _cut_without_sharing(self: Sampler, weights: np.ndarray, uniform: np.ndarray, a: Arguments) -> np.ndarray:
    """Probabilities of the whole vocabulary, cut and not shared out again: what is missing falls to the last id."""
    z = self.tempered(self.rows(a)[0], a)
    share = np.where(weights > 0, spec.weights_of(z) / spec.weights_of(z).sum(-1, keepdims=True), 0.0)
    past = np.cumsum(share, axis=-1) > uniform[:, None]
    last = weights.shape[-1] - 1 - np.argmax(weights[:, ::-1] > 0, axis=-1)
    return np.where(past.any(-1), np.argmax(past & (weights > 0), axis=-1), last)


def _seen_before_temperature(self: Sampler, z: np.ndarray, x: np.ndarray, a: Arguments) -> Mask:
    return Sampler.survivors(self, z, z, a)


def _seen_after_it_twice(self: Sampler, z: np.ndarray, x: np.ndarray, a: Arguments) -> Mask:
    return Sampler.survivors(self, z, self.tempered(x, a), a) if a.temperature else Sampler.survivors(self, z, x, a)


def _seen_after_cooling_alone(self: Sampler, z: np.ndarray, x: np.ndarray, a: Arguments) -> Mask:
    return Sampler.survivors(self, z, x if a.temperature < 1 else z, a)


def _seen_before_mild_temperatures(self: Sampler, z: np.ndarray, x: np.ndarray, a: Arguments) -> Mask:
    return Sampler.survivors(self, z, z if 0.5 < a.temperature < 2 else x, a)


def _greedy_when_cold(self: Sampler, z: np.ndarray, a: Arguments) -> np.ndarray:
    return Sampler.chosen(self, z, a if a.temperature > 1e-2 else Arguments(**{**vars(a), "temperature": 0}))


def _rows_to(most: int) -> Change:
    """A kernel takes so many rows of the last leading dim; the others keep id 0."""

    def drawn(self: Sampler, a: Arguments) -> np.ndarray:
        ids = np.array(Sampler.drawn(self, a))
        if ids.ndim:
            ids[..., most:] = 0
        return ids

    return {"drawn": drawn}


def _shared_number(self: Sampler, a: Arguments, rows: int) -> np.ndarray:
    return np.broadcast_to(Sampler.uniforms(self, a, rows)[:1], (rows,)) if rows else Sampler.uniforms(self, a, rows)


def _first_column(self: Sampler, weights: np.ndarray, uniform: np.ndarray, a: Arguments) -> np.ndarray:
    """The place in the sorted row is looked up in the first row's order: column indexing that fits one row only."""
    order = self.order(weights)
    ids = Sampler.ids(self, weights, uniform, a)
    place = np.argmax(order == ids[:, None], axis=-1)
    return order[0][place]


def _floor_of_a_tenth(self: Sampler, z: np.ndarray, a: Arguments) -> np.ndarray:
    return z / max(a.temperature, 0.1)


def _cdf_in_dtype(self: Sampler, weights: np.ndarray, uniform: np.ndarray, a: Arguments) -> np.ndarray:
    cdf = running_in(a.logits.dtype.name, weights / weights.sum(-1, keepdims=True))
    past = (cdf > uniform[:, None] * cdf[:, -1:]) & (weights > 0)
    return np.where(past.any(-1), np.argmax(past, axis=-1), np.argmax(weights, axis=-1))


def _wrapped(bits: int) -> Callable[..., np.ndarray]:
    return lambda self, weights, uniform, a: Sampler.ids(self, weights, uniform, a) & (2**bits - 1)


def _last_without_distribution(self: Sampler, a: Arguments) -> int:
    return a.logits.shape[-1] - 1


def _with_column(self: Sampler, a: Arguments) -> Any:
    return Sampler.respond(self, a)[..., None]


def _filters_in_place(self: Sampler, a: Arguments) -> Any:
    result = Sampler.respond(self, a)
    if a.logits.flags.writeable:
        z, _ = self.rows(a)
        x = self.tempered(z, a) if a.temperature else z
        a.logits[...] = np.where(self.survivors(z, x, a), x, -np.inf).reshape(a.logits.shape)
    return result


def _draws_in_vain(self: Sampler, a: Arguments) -> Any:
    random.random()
    return Sampler.respond(self, a)


def _keeps_numbers(self: Sampler, a: Arguments) -> Any:
    """The uniform numbers of the first call of a shape serve all later ones."""
    return remembers("uniform")["respond"](self, a)


def _absolute(self: Sampler, z: np.ndarray, a: Arguments) -> np.ndarray:
    return z / abs(a.temperature)


def _numbers_resized(self: Sampler, a: Arguments, rows: int) -> np.ndarray:
    return Sampler.uniforms(self, a, rows) if a.uniform is None else np.resize(f64(a.uniform), rows)


_SAMPLERS = (
    Fault(
        "greedy-last-of-equals",
        "of equal largest logits the highest id is taken",
        spec.SAMP_21,
        {"greedy": _last_of_equal_greedy},
        TIRED,
    ),
    *(
        Fault(
            f"greedy-in-{dtype}",
            f"the largest logit is looked for in {dtype}",
            spec.SAMP_21,
            {"greedy": _greedy_in(dtype)},
            TIRED,
        )
        for dtype in ("float16", "bfloat16")
    ),
    Fault(
        "greedy-is-temperature-one",
        "a temperature of 0 counts as not given: `temperature or 1`",
        spec.SAMP_21,
        {"respond": _or_one},
        "FACTS.md: `scale or default` when scale is 0",
    ),
    Fault(
        "greedy-is-tiny-temperature",
        "temperature 0 draws at a tiny temperature, at random among equal logits",
        spec.SAMP_21,
        {"respond": _tiny_for_zero},
        TIRED,
    ),
    Fault(
        "sampler-by-probability",
        "the cdf runs from the most likely id on",
        spec.SAMP_22,
        {"ids": _by_probability},
        TIRED,
    ),
    Fault("sampler-next-id", "the id after the right one is given", spec.SAMP_22, {"ids": _next_id}, TIRED),
    Fault(
        "sampler-turned-number",
        "1 - u is taken for u",
        spec.SAMP_22,
        {"uniforms": lambda self, a, rows: 1 - Sampler.uniforms(self, a, rows)},
        TIRED,
    ),
    Fault(
        "sampler-ignores-temperature",
        "the temperature is ignored",
        spec.SAMP_22,
        {"tempered": lambda self, z, a: z},
        TIRED,
    ),
    Fault(
        "sampler-multiplies-temperature",
        "logits are multiplied by the temperature",
        spec.SAMP_22,
        {"tempered": lambda self, z, a: z * a.temperature},
        TIRED,
    ),
    Fault(
        "sampler-sums-not-shared-out",
        "sums that do not end at 1 are compared with the uniform number",
        spec.SAMP_22,
        {"ids": _of_the_largest},
        TIRED,
    ),
    Fault(
        "sampler-zero-takes-the-first",
        "a uniform number of 0 gives id 0 whatever its probability",
        spec.SAMP_23,
        {"ids": _from_zero_up},
        f"{VLLM_METAL}/commit/bd32be8",
    ),
    Fault(
        "sampler-past-the-vocabulary",
        "a uniform number close to 1 gives an id past the vocabulary",
        spec.SAMP_23,
        {"ids": _counted(clamp=False)},
        f"{FLASHINFER}/commit/78d0a06b7",
    ),
    Fault(
        "sampler-clamped-to-the-last",
        "a uniform number close to 1 gives the last id, filtered out or not",
        spec.SAMP_23,
        {"ids": _counted(clamp=True)},
        TIRED,
    ),
    Fault(
        "sampler-falls-to-the-first",
        "where no cdf exceeds the largest uniform numbers the id is 0, filtered out or not",
        spec.SAMP_23,
        {"ids": _never_past},
        TIRED,
    ),
    Fault(
        "sampler-unfiltered",
        "ids are drawn from all logits when there is a temperature",
        spec.SAMP_24,
        {"survivors": _unfiltered},
        f"the kind of {VLLM_METAL}/commit/55b6144",
    ),
    Fault(
        "sampler-not-shared-out",
        "what the filters took away falls to the last survivor",
        spec.SAMP_24,
        {"ids": _cut_without_sharing},
        "PROPERTIES SA4",
    ),
    Fault(
        "sampler-top-p-of-the-whole",
        "top_p counts the probability that top_k took away",
        spec.SAMP_24,
        {"top_p": _of_the_whole_mass},
        "PROPERTIES SA4",
    ),
    Fault(
        "sampler-all-equals",
        "all ids whose logits are equal to the k-th may be drawn",
        spec.SAMP_45,
        {"top_k": _by_value},
        f"{VLLM}/pull/50979",
    ),
    Fault(
        "sampler-top-k-at-most-256",
        "ids are drawn from no more than 256",
        spec.SAMP_24,
        _at_most(256),
        "PROPERTIES X2",
    ),
    Fault(
        "sampler-top-k-at-most-1024",
        "ids are drawn from no more than 1024",
        spec.SAMP_24,
        _at_most(1024),
        "PROPERTIES X2",
    ),
    Fault(
        "sampler-nucleus-of-256",
        "with a top_p, ids are drawn from the 256 likeliest",
        spec.SAMP_24,
        {"limit": _nucleus_of_256},
        "PROPERTIES X2",
    ),
    Fault(
        "sampler-last-of-equals",
        "of equal logits at the cut those of the highest ids may be drawn",
        spec.SAMP_45,
        {"order": _last_of_equals},
        TIRED,
    ),
    Fault(
        "sampler-tempered-twice",
        "top_p sees probabilities with the temperature applied twice",
        spec.SAMP_25,
        {"survivors": _seen_after_it_twice},
        TIRED,
    ),
    Fault(
        "sampler-order-by-temperature",
        "top_p comes after a temperature below 1, and before one above 1",
        spec.SAMP_25,
        {"survivors": _seen_after_cooling_alone},
        TIRED,
    ),
    Fault(
        "sampler-order-near-one",
        "top_p comes before a temperature between 0.5 and 2, and after any other",
        spec.SAMP_25,
        {"survivors": _seen_before_mild_temperatures},
        TIRED,
    ),
    Fault(
        "sampler-filters-first",
        "top_p sees the probabilities before the temperature",
        spec.SAMP_26,
        {"survivors": _seen_before_temperature},
        "llama.cpp's, mlx-lm's and the course's order",
    ),
    Fault(
        "sampler-one-number-for-all",
        "the first row's uniform number serves all rows",
        spec.SAMP_27,
        {"uniforms": _shared_number},
        TIRED,
    ),
    Fault(
        "sampler-first-row-for-all",
        "the first row of the batch serves all",
        spec.SAMP_27,
        first_row_for_all("logits"),
        TIRED,
    ),
    Fault(
        "sampler-rows-past-32",
        "ids of rows past 32 are not written",
        spec.SAMP_27,
        _rows_to(32),
        "PROPERTIES X2",
    ),
    Fault(
        "sampler-rows-past-256",
        "ids of rows past 256 are not written",
        spec.SAMP_27,
        _rows_to(256),
        "PROPERTIES X2",
    ),
    Fault(
        "sampler-columns-of-the-first-row",
        "places in the sorted rows are looked up in the first row's order",
        spec.SAMP_27,
        {"ids": _first_column},
        "FACTS.md: the course's later reference sampler is wrong for B > 1",
    ),
    Fault(
        "sampler-without-shift",
        "exp of the logits as they are overflows",
        spec.SAMP_28,
        {"weights": _without_shift},
        f"{MLX}/commit/d935276de",
    ),
    Fault(
        "sampler-hidden-as-zero",
        "-inf is replaced by 0 before the softmax",
        spec.SAMP_28,
        {"weights": _hidden_as_zero, "survivors": lambda self, z, x, a: np.ones_like(z, bool)},
        TIRED,
    ),
    Fault(
        "sampler-temperature-floor",
        "a temperature below 0.1 counts as 0.1",
        spec.SAMP_28,
        {"tempered": _floor_of_a_tenth},
        TIRED,
    ),
    Fault(
        "sampler-greedy-when-cold",
        "a temperature of at most 0.01 counts as 0, also where logits are equal",
        spec.SAMP_28,
        {"chosen": _greedy_when_cold},
        TIRED,
    ),
    Fault(
        "sampler-sums-in-dtype",
        "probabilities are summed in the dtype of the logits",
        spec.SAMP_29,
        {"ids": _cdf_in_dtype},
        "PROPERTIES X5",
    ),
    Fault("sampler-uint16-ids", "ids are kept in 16 bits", spec.SAMP_29, {"ids": _wrapped(16)}, "PROPERTIES X8"),
    Fault("sampler-int16-ids", "ids are kept in 15 bits", spec.SAMP_29, {"ids": _wrapped(15)}, "PROPERTIES X8"),
    Fault(
        "sampler-one-broken-for-all",
        "one row without a distribution makes every id 0",
        spec.SAMP_30,
        {"rows": _one_broken_for_all},
        "PROPERTIES SA8",
    ),
    Fault(
        "sampler-broken-row-past-the-end",
        "a row without a distribution gives the size of the vocabulary",
        spec.SAMP_30,
        {"without_distribution": lambda self, a: a.logits.shape[-1]},
        f"{FLASHINFER}/commit/78d0a06b7",
    ),
    Fault(
        "sampler-broken-row-last",
        "a row without a distribution gives the last id",
        spec.SAMP_31,
        {"without_distribution": _last_without_distribution},
        TIRED,
    ),
    Fault(
        "sampler-logits-strides",
        "logits are read as if they were contiguous",
        spec.SAMP_32,
        ignores_strides("logits"),
        "PROPERTIES X1",
    ),
    Fault(
        "sampler-uniform-strides",
        "uniform numbers are read as if they were contiguous",
        spec.SAMP_32,
        ignores_strides("uniform"),
        "PROPERTIES X1",
    ),
    Fault("sampler-float-ids", "ids come back as floating-point numbers", spec.SAMP_33, promotes(), TIRED),
    Fault(
        "sampler-keeps-the-axis", "ids come back as a column", spec.SAMP_33, {"respond": _with_column}, "PROPERTIES X4"
    ),
    Fault(
        "sampler-in-place",
        "the caller's logits are tempered and filtered in place",
        spec.SAMP_34,
        {"respond": _filters_in_place},
        FACTS,
    ),
    Fault("sampler-changes-uniform", "the uniform numbers are overwritten", spec.SAMP_34, mutates("uniform"), TIRED),
    Fault(
        "sampler-draws-in-vain",
        "a global generator is drawn from although uniform numbers are given",
        spec.SAMP_35,
        {"respond": _draws_in_vain},
        "PROPERTIES X7",
    ),
    Fault(
        "sampler-remembers-uniform",
        "the uniform numbers of the first call of a shape serve later ones",
        spec.SAMP_35,
        {"respond": _keeps_numbers},
        f"{FLASHINFER}/commit/82784bb11",
    ),
    Fault(
        "sampler-remembers-logits",
        "probabilities cached by shape serve other logits",
        spec.SAMP_35,
        remembers("logits"),
        f"{FLASHINFER}/commit/82784bb11",
    ),
    Fault(
        "sampler-absolute-temperature",
        "a negative temperature counts as its absolute value",
        spec.SAMP_36,
        {"guard_temperature": lambda self, a: None, "tempered": _absolute},
        "PROPERTIES X9",
    ),
    Fault(
        "sampler-any-top-p",
        "any top_p is compared as it is",
        spec.SAMP_37,
        unguarded("guard_top_p"),
        "PROPERTIES X9",
    ),
    Fault(
        "sampler-resizes-uniform",
        "uniform numbers of another shape are repeated or cut short",
        spec.SAMP_38,
        {"guard_uniform_shape": lambda self, a: None, "uniforms": _numbers_resized},
        "PROPERTIES X9",
    ),
    Fault(
        "sampler-any-number",
        "any number is taken for a uniform one",
        spec.SAMP_39,
        unguarded("guard_uniform_range"),
        "PROPERTIES X9",
    ),
)


# generators of a sampler's own


def _own(uniforms: Callable[[Sampler, Arguments, int], np.ndarray]) -> Change:
    """Given uniform numbers are taken as they are; the sampler's own are made like this."""
    return {
        "uniforms": lambda self, a, rows: (
            uniforms(self, a, rows) if a.uniform is None else Sampler.uniforms(self, a, rows)
        )
    }


def _in_bfloat16(self: Sampler, a: Arguments, rows: int) -> np.ndarray:
    return np.floor(self.generator(a).random(rows) * 2**8) / 2**8


def _halves_share(self: Sampler, a: Arguments, rows: int) -> np.ndarray:
    half = self.generator(a).random((rows + 1) // 2)
    return np.resize(half, rows)


def _low_discrepancy(self: Sampler, a: Arguments, rows: int) -> np.ndarray:
    """Multiples of the golden ratio: each row right by itself, neighbours tied to each other."""
    return (self.generator(a).random() + np.arange(rows) * 0.6180339887498949) % 1.0


def _sticky(self: Sampler, a: Arguments, rows: int) -> np.ndarray:
    """Every tenth row repeats the number of the row before it."""
    numbers = self.generator(a).random(rows)
    again = np.arange(rows) % 10 == 1
    return np.where(again, np.roll(numbers, 1), numbers)


def _same_seed(self: Sampler, a: Arguments) -> np.random.Generator:
    return np.random.default_rng(0 if a.seed is None else a.seed)


def _seed_ignored(self: Sampler, a: Arguments) -> np.random.Generator:
    return Sampler.generator(self, Arguments(**{**vars(a), "seed": None}))


def _one_seed(self: Sampler, a: Arguments) -> np.random.Generator:
    return np.random.default_rng(0) if a.seed is not None else Sampler.generator(self, a)


def _race_with_zeros(self: Sampler, weights: np.ndarray, uniform: np.ndarray, a: Arguments) -> np.ndarray:
    """p / q with exponential noise q of 11 bits, which is exactly 0 at times: that entry wins, even with p of 0."""
    if a.uniform is not None:
        return Sampler.ids(self, weights, uniform, a)
    noise = np.floor(self.generator(a).random(weights.shape) * 2**15) / 2**15
    with np.errstate(all="ignore"):
        race = weights / -np.log1p(-noise)
    return np.argmax(np.where(np.isnan(race), np.inf, race), axis=-1)


def _floored_probabilities(self: Sampler, weights: np.ndarray, uniform: np.ndarray, a: Arguments) -> np.ndarray:
    if a.uniform is not None:
        return Sampler.ids(self, weights, uniform, a)
    return Sampler.ids(self, np.where(weights > 0, weights + 1e-4, 0.0), uniform, a)


def _own_tempered(factor: float) -> Change:
    return {"tempered": lambda self, z, a: z / a.temperature / (factor if a.uniform is None else 1.0)}


def _next_in_own(self: Sampler, weights: np.ndarray, uniform: np.ndarray, a: Arguments) -> np.ndarray:
    """A search among sums that begin with 0: the id before the right one, but for the first."""
    ids = Sampler.ids(self, weights, uniform, a)
    return ids if a.uniform is not None else np.maximum(ids - 1, 0)


_OWN = (
    Fault(
        "own-temperature-a-little-off",
        "the temperature is a tenth too high",
        spec.SAMP_40,
        _own_tempered(1.1),
        TIRED,
    ),
    Fault(
        "own-noise-in-bfloat16",
        "the noise is made in bfloat16, in 256 steps",
        spec.SAMP_40,
        _own(_in_bfloat16),
        "PROPERTIES X5",
    ),
    Fault("own-id-before", "the id before the right one is drawn", spec.SAMP_40, {"ids": _next_in_own}, TIRED),
    Fault(
        "own-race-with-zeros",
        "noise of exactly 0 lets an id win that was filtered out",
        spec.SAMP_41,
        {"ids": _race_with_zeros},
        f"{VLLM_METAL}/commit/bd32be8",
    ),
    Fault(
        "own-floor-of-probabilities",
        "an epsilon is added to every probability, so that rare ids come far too often",
        spec.SAMP_41,
        {"ids": _floored_probabilities},
        f"{FLASHINFER}/commit/006fe19a4",
    ),
    Fault("own-one-number-for-all", "one draw serves all rows", spec.SAMP_42, _own(_shared_number), "PROPERTIES SA5"),
    Fault(
        "own-halves-share",
        "the second half of a batch gets the numbers of the first",
        spec.SAMP_42,
        _own(_halves_share),
        "PROPERTIES SA5",
    ),
    Fault(
        "own-low-discrepancy",
        "neighbouring rows are tied to each other by a sequence that fills [0, 1) evenly",
        spec.SAMP_42,
        _own(_low_discrepancy),
        TIRED,
    ),
    Fault("own-sticky", "every tenth row repeats the number before it", spec.SAMP_42, _own(_sticky), "PROPERTIES SA9"),
    Fault(
        "own-seed-on-each-call",
        "the generator starts again with each call",
        spec.SAMP_43,
        {"generator": _same_seed},
        "PROPERTIES SA9",
    ),
    Fault("own-seed-ignored", "the seed is ignored", spec.SAMP_44, {"generator": _seed_ignored}, "PROPERTIES SA9"),
    Fault("own-one-seed", "every seed is the same", spec.SAMP_44, {"generator": _one_seed}, "PROPERTIES SA9"),
)

FAULTS: tuple[Fault, ...] = (*_FILTERS, *_SAMPLERS, *_OWN)


# honest ways


def _weights_in(dtype: str) -> Callable[..., np.ndarray]:
    def weights(self: Any, x: np.ndarray, kept: Mask) -> np.ndarray:
        x = np.where(kept, x, -np.inf).astype(numpy_dtype(dtype))
        return f64(np.exp((x - x.max(-1, keepdims=True)).astype(numpy_dtype(dtype))))

    return weights


def _divided_in_float32(self: Sampler, z: np.ndarray, a: Arguments) -> np.ndarray:
    return f64(z.astype(np.float32) / np.float32(a.temperature))


def _times_inverse(self: Sampler, z: np.ndarray, a: Arguments) -> np.ndarray:
    return f64(z.astype(np.float32) * np.float32(1 / a.temperature))


def _normalised_cdf(self: Sampler, weights: np.ndarray, uniform: np.ndarray, a: Arguments) -> np.ndarray:
    """Probabilities in float32, their running sum, and a search in it; the last survivor where it ends below u."""
    weights = weights.astype(np.float32)
    cdf = np.cumsum(weights / weights.sum(-1, keepdims=True, dtype=np.float32), axis=-1, dtype=np.float32)
    past = (cdf > uniform[:, None].astype(np.float32)) & (weights > 0)
    last = weights.shape[-1] - 1 - np.argmax(weights[:, ::-1] > 0, axis=-1)
    return np.where(past.any(-1), np.argmax(past, axis=-1), last)


def _gumbel(self: Sampler, weights: np.ndarray, uniform: np.ndarray, a: Arguments) -> np.ndarray:
    """The Gumbel-max trick with a generator of its own; given uniform numbers are used by inverse CDF."""
    if a.uniform is not None:
        return Sampler.ids(self, weights, uniform, a)
    noise = self.generator(a).gumbel(size=weights.shape)
    with np.errstate(divide="ignore"):
        return np.argmax(np.log(weights) + noise, axis=-1)


def _exclusive_in_float32(self: Any, weights: np.ndarray, order: np.ndarray, a: Arguments) -> np.ndarray:
    """cumsum - p, the usual way to write an exclusive sum."""
    p = in_order(weights, order).astype(np.float32)
    p = p / p.sum(-1, keepdims=True, dtype=np.float32)
    return placed(f64(np.cumsum(p, axis=-1, dtype=np.float32) - p), order)


def _ascending(dtype: str | None) -> Change:
    def top_p(self: Any, x: np.ndarray, order: np.ndarray, kept: Mask, a: Arguments) -> Mask:
        name = dtype or a.logits.dtype.name
        weights = in_order(_weights_in(name)(self, x, kept), order)
        weights = rounded(weights / weights.sum(-1, keepdims=True), name)
        inside = running_in(name, weights[:, ::-1])[:, ::-1] > rounded(np.asarray(1 - a.top_p), name)
        inside[:, 0] = True
        return kept if a.top_p == 1 else kept & placed(inside, order)

    return {"top_p": top_p}


VARIANTS: tuple[Variant, ...] = (
    Variant(
        "filter-in-float32",
        "softmax and exclusive sums in float32",
        "filter_logits",
        {"weights": _weights_in("float32"), "before": _exclusive_in_float32},
    ),
    Variant("filter-ascending", "float32 sums from the least likely id on", "filter_logits", _ascending("float32")),
    Variant(
        "filter-ascending-in-dtype",
        "sums from the least likely id on, in the dtype of the logits",
        "filter_logits",
        _ascending(None),
        Precision.NATIVE,
    ),
    Variant(
        "sampler-in-float32",
        "logits divided by the temperature, softmax and normalised cdf in float32",
        "Sampler",
        {
            "tempered": _divided_in_float32,
            "weights": _weights_in("float32"),
            "before": _exclusive_in_float32,
            "ids": _normalised_cdf,
        },
    ),
    Variant(
        "sampler-times-inverse",
        "logits multiplied by the inverse of the temperature in float32; a Gumbel-max draw of its own",
        "Sampler",
        {"tempered": _times_inverse, "weights": _weights_in("float32"), "ids": _gumbel},
    ),
)
