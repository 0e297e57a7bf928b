"""The steps that faults and honest variants have in the place of the oracle's: see `spec/faults/verification.py`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from inferspec.spec.contract import Arguments, Operation
from inferspec.spec.numerics import f64, round_to
from inferspec.spec.speculative import Verify

Rows = np.ndarray
Keeps = Callable[[Verify, float, float, float], bool]


# which drafts are kept


def drawn_alike(self: Verify, tokens: list[int], q: Rows, p: Rows, u: Rows) -> int:
    """A draft is kept where the target draws the same id."""
    drawn = [self.draw(row, float(number)) for row, number in zip(p, u, strict=True)]
    return next((i for i, token in enumerate(tokens) if drawn[i] != token), len(tokens))


def counts_all(self: Verify, tokens: list[int], q: Rows, p: Rows, u: Rows) -> int:
    """Every draft that would be kept counts, behind a rejected one too."""
    return sum(self.keeps(u[i], q[i, token], p[i, token]) for i, token in enumerate(tokens))


def compared_with(row: Callable[[int, int], int], number: Callable[[int], int] = lambda i: i) -> Any:
    """Draft i is compared with another row of the target, or by another uniform number."""

    def kept(self: Verify, tokens: list[int], q: Rows, p: Rows, u: Rows) -> int:
        for i, token in enumerate(tokens):
            if not self.keeps(float(u[number(i)]), float(q[i, token]), float(p[row(i, len(tokens)), token])):
                return i
        return len(tokens)

    return kept


def first_eight(self: Verify, tokens: list[int], q: Rows, p: Rows, u: Rows) -> int:
    return Verify.kept(self, tokens[:8], q, p, u)


def first_32(self: Verify, tokens: list[int], q: Rows, p: Rows, u: Rows) -> int:
    return Verify.kept(self, tokens[:32], q, p, u)


def last_unverified(self: Verify, tokens: list[int], q: Rows, p: Rows, u: Rows) -> int:
    count = Verify.kept(self, tokens[:-1], q, p, u)
    return len(tokens) if count == len(tokens) - 1 else count


def one_fewer(self: Verify, tokens: list[int], q: Rows, p: Rows, u: Rows) -> int:
    """A rejection is noticed one step late, and takes the draft before it along."""
    count = Verify.kept(self, tokens, q, p, u)
    return max(count - 1, 0) if count < len(tokens) else count


def first_of_zeros(self: Verify, tokens: list[int], q: Rows, p: Rows, u: Rows) -> int:
    return Verify.kept(self, tokens, q, p, np.where(np.arange(len(u)) > 0, 0.0, u))


def rest_in_bfloat16(self: Verify, q: np.ndarray, p: np.ndarray) -> np.ndarray:
    return f64(round_to(Verify.residual(self, q, p), "bfloat16"))


def sums_in_bfloat16(self: Verify, weights: np.ndarray, uniform: float) -> int:
    cdf = [0.0]
    for weight in weights:
        cdf.append(float(f64(round_to(np.array(cdf[-1] + weight), "bfloat16"))))
    return int(np.argmax((np.array(cdf[1:]) > uniform * cdf[-1]) & (weights > 0)))


def long_sums_in_bfloat16(self: Verify, weights: np.ndarray, uniform: float) -> int:
    return sums_in_bfloat16(self, weights, uniform) if len(weights) > 256 else Verify.draw(self, weights, uniform)


def large_weights_in_bfloat16(self: Verify, weights: np.ndarray, uniform: float) -> int:
    """A path for large vocabularies alone has it: shorter rows are summed in float32."""
    large = len(weights) > 8192
    return Verify.draw(self, f64(round_to(weights, "bfloat16")) if large else weights, uniform)


def in_bfloat16(self: Verify, uniform: float, q: float, p: float) -> bool:
    product = round_to(np.array(uniform), "bfloat16") * round_to(np.array(q), "bfloat16")
    return bool(product < round_to(np.array(p), "bfloat16"))


def in_the_dtype_of_drafts(self: Verify, a: Arguments) -> list[int]:
    target_probs = round_to(f64(a.target_probs), a.draft_probs.dtype.name)
    return Verify.answer(self, Arguments(**{**vars(a), "target_probs": target_probs}))


# the last id


def unnormalised(self: Verify, weights: Rows, uniform: float) -> int:
    past = (np.cumsum(weights) > uniform) & (weights > 0)
    return int(np.argmax(past)) if past.any() else int(np.flatnonzero(weights)[-1])


def zero_draws_the_first(self: Verify, weights: Rows, uniform: float) -> int:
    cdf = np.cumsum(weights)
    return int(np.argmax(cdf >= uniform * cdf[-1]))


def past_float32_sums(self: Verify, weights: Rows, uniform: float) -> int:
    """The number of ids whose cdf is no larger than the uniform number: all of them, where float32 sums stay below it."""
    cdf = np.cumsum((weights / weights.sum()).astype(np.float32), dtype=np.float32)
    return int((cdf <= uniform).sum())


def clamped_to_the_last(self: Verify, weights: Rows, uniform: float) -> int:
    """The last id of the vocabulary where float32 sums stay below the uniform number, whether or not it is possible."""
    return min(past_float32_sums(self, weights, uniform), len(weights) - 1)


def without_the_draft(self: Verify, tokens: list[int], q: Rows, p: Rows, count: int) -> Rows:
    """The target's row, with nothing but the rejected id taken away."""
    if count == len(tokens):
        return p[count]
    return np.where(np.arange(p.shape[1]) == tokens[count], 0.0, p[count]) + 1e-30


def rest_of(row: int) -> Any:
    """What is left is taken from the rows so far behind the rejected draft's."""

    def weights(self: Verify, tokens: list[int], q: Rows, p: Rows, count: int) -> Rows:
        if count == len(tokens):
            return p[count]
        return self.residual(q[min(count + row, len(q) - 1)], p[min(count + row, len(p) - 1)])

    return weights


def bonus_from(row: int) -> Any:
    def weights(self: Verify, tokens: list[int], q: Rows, p: Rows, count: int) -> Rows:
        return p[max(count + row, 0)] if count == len(tokens) else Verify.weights(self, tokens, q, p, count)

    return weights


def bonus_from_a_rest(self: Verify, tokens: list[int], q: Rows, p: Rows, count: int) -> Rows:
    """The last row is corrected by the draft's last one, as if it had been rejected."""
    return self.residual(q[-1], p[count]) if count == len(tokens) > 0 else Verify.weights(self, tokens, q, p, count)


def ids(change: Callable[[Verify, list[int], list[int]], list[int]]) -> Any:
    """What comes out is changed. change: takes the drafts and the ids."""

    def verified(self: Verify, tokens: list[int], q: Rows, p: Rows, u: Rows) -> list[int]:
        return change(self, tokens, Verify.verified(self, tokens, q, p, u))

    return verified


def likeliest(self: Verify, weights: Rows, uniform: float) -> int:
    return int(np.argmax(weights))


def greedy_without_drafts(self: Verify, tokens: list[int], q: Rows, p: Rows, u: Rows) -> list[int]:
    return Verify.verified(self, tokens, q, p, u) if tokens else [int(np.argmax(p[0]))]


# arguments


def no_lists(self: Verify, a: Arguments) -> None:
    if not isinstance(a.draft_tokens, np.ndarray):
        raise TypeError("draft_tokens take an array")
    Verify.guard(self, a)


def strict_sums(self: Verify, name: str, rows: Rows) -> None:
    if (f64(rows).sum(axis=-1) != 1).any():
        raise ValueError(f"{name} have a row that does not sum to one")


def zeroes_the_draft(self: Verify, a: Arguments) -> Any:
    """The rejected draft is zeroed in the caller's rows."""
    ids = Verify.answer(self, a)
    if len(ids) <= len(a.draft_tokens) and a.target_probs.flags.writeable:
        place = len(ids) - 1
        a.target_probs[place, int(a.draft_tokens[place])] = 0
        a.target_probs[place, ids[-1]] = 1
    return self.finish(f64(ids), a)


def clamped(self: Verify, a: Arguments) -> list[int]:
    size = a.target_probs.shape[1]
    tokens = [min(max(int(token), 0), size - 1) for token in a.draft_tokens]
    return self.verified(tokens, f64(a.draft_probs), f64(a.target_probs), f64(a.uniform))


def negative_alone(self: Verify, name: str, rows: Rows) -> None:
    if (f64(rows) < 0).any():
        raise ValueError(f"{name} hold a negative number")


def one_is_taken(self: Verify, a: Arguments) -> None:
    if not ((f64(a.uniform) >= 0) & (f64(a.uniform) <= 1)).all():
        raise ValueError("uniform has numbers outside [0, 1]")


def by_division(self: Verify, uniform: float, q: float, p: float) -> bool:
    with np.errstate(divide="ignore", invalid="ignore"):
        return bool(np.float32(uniform) < np.float32(p) / np.float32(q))


def nothing_impossible(self: Verify, uniform: float, q: float, p: float) -> bool:
    return q > 0 and Verify.keeps(self, uniform, q, p)


def refuses_the_impossible(self: Verify, a: Arguments) -> None:
    Verify.guard(self, a)
    for row, token in zip(f64(a.draft_probs), a.draft_tokens, strict=True):
        if not row[int(token)]:
            raise ValueError(f"id {token} has no probability in its own row")


def by_logarithms(self: Verify, uniform: float, q: float, p: float) -> bool:
    with np.errstate(divide="ignore"):
        log_u, log_q, log_p = np.log(np.array([uniform, q, p], np.float32))
    return bool(p > 0 and (p >= q or log_u < log_p - log_q))


def all_at_once(self: Verify, tokens: list[int], q: Rows, p: Rows, u: Rows) -> int:
    """Every draft is decided, the last one first; what stands before the first that is not kept counts."""
    verdicts = [self.keeps(u[i], q[i, tokens[i]], p[i, tokens[i]]) for i in reversed(range(len(tokens)))][::-1]
    return [*verdicts, False].index(False)


def by_search(self: Verify, weights: Rows, uniform: float) -> int:
    ids = np.flatnonzero(weights)
    share = (weights[ids] / weights.sum()).astype(np.float32)
    place = int(np.searchsorted(np.cumsum(share), np.float32(uniform), side="right"))
    return int(ids[min(place, len(ids) - 1)])


def in_float32(self: Operation, a: Arguments) -> list[int]:
    q, p = (np.asarray(rows, np.float32) for rows in (a.draft_probs, a.target_probs))
    return Verify.verified(self, [int(t) for t in a.draft_tokens], q, p, a.uniform)  # type: ignore[arg-type]


# what is left of a row


def _or_all(rest: Rows, p: Rows) -> Rows:
    rest = f64(np.nan_to_num(rest))
    return rest if rest.any() else p


def rest_by_ratio(self: Verify, q: Rows, p: Rows) -> Rows:
    """p · (1 - q/p) in float32: of nearly equal ones the ratio keeps a digit or two."""
    one, two = q.astype(np.float32), p.astype(np.float32)
    with np.errstate(divide="ignore", invalid="ignore"):
        return _or_all(two * np.maximum(1 - one / two, 0), p)


def rest_in_logarithms(self: Verify, q: Rows, p: Rows) -> Rows:
    """exp(log p + log(1 - exp(log q - log p))) in float32."""
    with np.errstate(divide="ignore", invalid="ignore"):
        one, two = np.log(q.astype(np.float32)), np.log(p.astype(np.float32))
        return _or_all(np.exp(two + np.log(np.maximum(1 - np.exp(one - two), 0))), p)


def draft_rows_where_drafted(self: Verify, a: Arguments) -> None:
    """Nobody looks at the rows of the draft where nothing is drafted."""
    count = len(a.draft_tokens)
    rows = a.draft_probs if count else a.target_probs[:0]
    Verify.guard_counts(self, Arguments(**{**vars(a), "draft_probs": rows}))
