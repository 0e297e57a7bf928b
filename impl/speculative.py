"""Speculative decoding in MLX: a small model drafts, the large one verifies a run of drafts at once, and nothing is lost.

Source: Leviathan et al. 2023 and Chen et al. 2023 (speculative sampling); mlx-lm's `speculative_generate_step`.
"""

from __future__ import annotations

import itertools
import operator
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import mlx.core as mx

from inferspec.impl.arguments import whole
from inferspec.impl.generation import PREFILL, Model, as_prompt
from inferspec.impl.sampling import Sampler, draw, weigh

__all__ = ["probabilities", "speculative_generate", "verify"]

BELOW_ONE = 1 - 2.0**-24
"""The largest float32 below 1: uniform numbers of a finer dtype are held to it."""


def verify(
    draft_tokens: Sequence[int] | mx.array,
    draft_probs: mx.array,
    target_probs: mx.array,
    uniform: Sequence[float] | mx.array,
) -> list[int]:
    """Return the ids that come of k drafted ones: those that are kept, and one more, 1 … k + 1 ids.

    draft_tokens: k ids. draft_probs: k×V, what each was drawn from. target_probs: (k+1)×V, what it should have been drawn
    from, and the row after the last. uniform: k + 1 numbers in [0, 1).

    Draft i, the id t, is kept while uniform[i] · draft_probs[i, t] < target_probs[i, t]. At the first that is not, one id
    is drawn from what the target has more than the draft, max(target_probs[i] - draft_probs[i], 0), and if that is
    nothing from target_probs[i]; if all are kept, from target_probs[k]. The draw is by inverse CDF with uniform[k].

    All in float32. ValueError for shapes that do not fit, ids outside the vocabulary, rows that are no probabilities and
    uniform numbers outside [0, 1), TypeError for ids that are no integers; each names the argument.
    """
    drafted = _drafted(draft_tokens)
    _check_shapes(len(drafted), draft_probs, target_probs)
    size = target_probs.shape[-1]
    if outside := [token for token in drafted if not 0 <= token < size]:
        raise ValueError(f"draft_tokens hold {outside[0]}; they take ids of a vocabulary of {size}")
    _check_rows("draft_probs", draft_probs)
    _check_rows("target_probs", target_probs)
    uniform = _checked_uniform(uniform, len(drafted) + 1)
    q, p = draft_probs.astype(mx.float32), target_probs.astype(mx.float32)
    count, last = _listed(mx.stack(_settled(mx.array(drafted, mx.int64), q, p, uniform)))
    return [*drafted[:count], last]


def speculative_generate(
    target: Model,
    draft: Model,
    tokens: Sequence[int] | mx.array,
    *,
    max_tokens: int,
    num_draft_tokens: int = 4,
    eos: Iterable[int] = (),
    temperature: float = 0.0,
    top_k: int | None = None,
    top_p: float = 1.0,
    uniforms: Iterable[float] | None = None,
) -> Iterator[int]:
    """Return an iterator of at most `max_tokens` ids that the target goes on with after `tokens`.

    In each round the draft proposes up to `num_draft_tokens` ids, no more than can come out, and one call of the target
    says which of them stay. Ids, ends and limits are as in `generate`; at temperature 0 the ids are the same as its own
    whatever the draft, above 0 they are distributed as the target's (`verify`), both models filtered alike.

    target, draft: models of one vocabulary, the layers of whose caches have `rewind(n)`. uniforms: numbers in [0, 1), for
    temperatures above 0; a round takes one for each id that is drafted, then one for each to verify, then one for its
    last id.

    ValueError or TypeError, before a model is called, for a bad prompt, number, or cache; ValueError when the
    vocabularies differ and when uniforms run out or are outside [0, 1), at the round that meets it.
    """
    prompt = as_prompt(tokens)
    limit, most = whole("max_tokens", max_tokens, 0), whole("num_draft_tokens", num_draft_tokens, 0)
    ends = frozenset(operator.index(token) for token in eos)
    Sampler(temperature, top_k, top_p)
    choose: _Greedy = _Greedy()
    if temperature > 0:
        if uniforms is None:
            raise ValueError(
                f"uniforms are None; a temperature of {temperature} takes an iterator of numbers in [0, 1)"
            )
        choose = _Sampled(_numbers(uniforms), temperature, top_k, top_p)
    models = _Feeder.of("target", target), _Feeder.of("draft", draft)
    return _until(_rounds(*models, _listed(prompt), limit, most, choose), ends)


def probabilities(logits: mx.array, temperature: float, top_k: int | None = None, top_p: float = 1.0) -> mx.array:
    """Return the float32 probabilities N..×V that ids are drawn with, by a temperature above 0, then both filters.

    A row without a distribution (a NaN, or nothing above -inf) has NaN.
    """
    weights = weigh(logits, temperature, top_k, top_p)
    return weights / weights.sum(axis=-1, keepdims=True)


def _until(rounds: Iterator[list[int]], ends: frozenset[int]) -> Iterator[int]:
    for token in itertools.chain.from_iterable(rounds):
        if token in ends:
            return
        yield token


def _rounds(
    target: _Feeder, draft: _Feeder, sequence: list[int], limit: int, most: int, choose: _Greedy
) -> Iterator[list[int]]:
    """The ids of each round. After it both caches hold nothing but ids that stay, all but the last one at most."""
    end = len(sequence) + limit
    while len(sequence) < end:
        count = min(most, end - len(sequence) - 1)
        drafts, rows = choose.drafts(draft, sequence, count) if count else ([], [])
        logits = target.logits(sequence, drafts)
        if rows and rows[0].shape[-1] != logits.shape[-1]:
            raise ValueError(f"draft has a vocabulary of {rows[0].shape[-1]}; that of target is {logits.shape[-1]}")
        ids = choose.verified(drafts, rows, logits)
        sequence = sequence + ids
        target.rewind_to(len(sequence) - 1)
        draft.rewind_to(len(sequence) - 1)
        yield ids


@dataclass
class _Feeder:
    """A model at work on one sequence, and how much of it its cache holds."""

    model: Model
    cache: Sequence[Any]
    fed: int = 0

    @classmethod
    def of(cls, name: str, model: Model) -> _Feeder:
        cache = model.make_cache()
        if not all(callable(getattr(layer, "rewind", None)) for layer in cache):
            raise ValueError(f"{name} has a cache that cannot be rewound; speculative decoding takes back rejected ids")
        return cls(model, cache)

    def logits(self, sequence: list[int], drafts: Sequence[mx.array] = ()) -> mx.array:
        """Feed what the cache lacks of the sequence, then the drafts; return the logits after the sequence and after
        each draft: (k+1)×V."""
        while len(sequence) - self.fed > PREFILL:
            self._feed(sequence[self.fed : self.fed + PREFILL])
        if not self.fed and hasattr(self.model, "prefill"):
            self._feed(sequence[:-1])
        # An array of a list is there at once: only drafts are to be waited for.
        ids = mx.array([sequence[self.fed :]], mx.int64)
        if drafts:
            ids = mx.concatenate([ids, *(token[None] for token in drafts)], axis=1)
        self.fed += ids.size
        return self.model(ids, self.cache)[0, -1 - len(drafts) :]

    def _feed(self, tokens: Sequence[int]) -> None:
        """Feed tokens whose logits nobody wants; a model that computes at once has a call of its own for that."""
        if tokens:
            getattr(self.model, "prefill", self.model)(mx.array(list(tokens), mx.int64)[None], self.cache)
            mx.eval([layer.state for layer in self.cache])
            self.fed += len(tokens)

    def after(self, token: mx.array) -> mx.array:
        """Feed one more id; return the logits V after it."""
        self.fed += 1
        return self.model(token[None], self.cache)[0, -1]

    def rewind_to(self, length: int) -> None:
        if self.fed > length:
            for layer in self.cache:
                layer.rewind(self.fed - length)
            self.fed = length


class _Greedy:
    """The largest logit, the lowest id of equal ones."""

    def drafts(self, draft: _Feeder, sequence: list[int], count: int) -> tuple[list[mx.array], list[mx.array]]:
        """So many ids of the draft, arrays of one id that wait to be computed, and what each was chosen by."""
        drafts: list[mx.array] = []
        rows: list[mx.array] = []
        for _ in range(count):
            row = draft.after(drafts[-1]) if drafts else draft.logits(sequence)[-1]
            token, chosen_by = self.pick(row)
            rows.append(chosen_by)
            drafts.append(token.astype(mx.int64)[None])
        return drafts, rows

    def pick(self, row: mx.array) -> tuple[mx.array, mx.array]:
        """An id, and what it is chosen by: logits, or probabilities."""
        return mx.argmax(row), row

    def verified(self, drafts: list[mx.array], rows: list[mx.array], logits: mx.array) -> list[int]:
        """The ids of the round. logits: (k+1)×V of the target."""
        ids = _listed(mx.concatenate([mx.argmax(logits, axis=-1).astype(mx.int64), *drafts]))
        right, drafted = ids[: len(logits)], ids[len(logits) :]
        agreed = itertools.takewhile(lambda pair: pair[0] == pair[1], zip(drafted, right, strict=False))
        return right[: sum(1 for _ in agreed) + 1]


class _Sampled(_Greedy):
    """Ids drawn from filtered probabilities, the drafted ones verified."""

    def __init__(self, numbers: Iterator[float], temperature: float, top_k: int | None, top_p: float) -> None:
        self._numbers, self._filters = numbers, (temperature, top_k, top_p)

    def pick(self, row: mx.array) -> tuple[mx.array, mx.array]:
        chances = probabilities(row, *self._filters)
        return draw(chances, mx.array(next(self._numbers))), chances

    def verified(self, drafts: list[mx.array], rows: list[mx.array], logits: mx.array) -> list[int]:
        p = probabilities(logits, *self._filters)
        q = mx.stack(rows) if rows else mx.zeros((0, p.shape[-1]))
        drafted = mx.concatenate(drafts) if drafts else mx.array([], mx.int64)
        uniform = mx.array([next(self._numbers) for _ in range(len(drafts) + 1)], mx.float32)
        settled = _settled(drafted, q, p, uniform)
        # All that is asked of a round is computed at once: each wait for the device costs more than a small round.
        *ids, count, last, bad_draft, bad_target = _listed(
            mx.concatenate([drafted, mx.stack([*settled, mx.isnan(q).any(), mx.isnan(p).any()])])
        )
        if bad_draft or bad_target:
            raise ValueError(
                f"{'draft' if bad_draft else 'target'} gave logits without a distribution: a NaN, or nothing above -inf"
            )
        return [*ids[:count], last]


def _numbers(uniforms: Iterable[float]) -> Iterator[float]:
    for number in uniforms:
        if not 0 <= number < 1:
            raise ValueError(f"uniforms hold {number}; they take numbers from 0 to below 1")
        yield min(float(number), BELOW_ONE)
    raise ValueError("uniforms have run out; each drafted and each verified id takes one")


def _settled(drafted: mx.array, q: mx.array, p: mx.array, uniform: mx.array) -> list[mx.array]:
    """How many drafts are kept, up to the first that is not, and the id after them; nothing is computed yet.

    drafted: k ids; q: k×V, p: (k+1)×V and uniform: k + 1 numbers, float32.
    """
    ids = drafted[:, None]
    drawn, wanted = (mx.take_along_axis(rows[: ids.size], ids, axis=-1)[:, 0] for rows in (q, p))
    count = mx.cumprod((uniform[:-1] * drawn < wanted).astype(mx.int64)).sum()
    # After the last draft the target has all of its row more than the draft, which has none.
    none = mx.zeros((1, p.shape[-1]))
    row = p[count]
    rest = mx.maximum(row - mx.concatenate([q, none])[count], 0)
    return [count.astype(mx.int64), draw(mx.where((rest > 0).any(), rest, row), uniform[-1]).astype(mx.int64)]


def _drafted(tokens: Sequence[int] | mx.array) -> list[int]:
    if isinstance(tokens, mx.array):
        if tokens.ndim != 1:
            raise ValueError(f"draft_tokens are {tokens.shape}; they take one axis")
        if tokens.size and not mx.issubdtype(tokens.dtype, mx.integer):
            raise TypeError(f"draft_tokens are {tokens.dtype}; they take integers")
        return _listed(tokens)
    return [operator.index(token) for token in tokens]


def _listed(ids: mx.array) -> list[int]:
    """Numbers of one axis as Python's integers."""
    numbers: Any = ids.tolist()
    return [int(number) for number in numbers]


def _check_shapes(count: int, draft_probs: mx.array, target_probs: mx.array) -> None:
    if target_probs.ndim != 2 or target_probs.shape[0] != count + 1 or not target_probs.shape[1]:
        raise ValueError(f"target_probs are {target_probs.shape}; {count} draft_tokens take {count + 1}×V")
    wanted = (count, target_probs.shape[1])
    if draft_probs.shape != wanted:
        raise ValueError(
            f"draft_probs are {draft_probs.shape}; {count} draft_tokens take {wanted}, as target_probs have"
        )


def _check_rows(name: str, rows: mx.array) -> None:
    if not mx.issubdtype(rows.dtype, mx.floating):
        raise TypeError(f"{name} are {rows.dtype}; they take a floating-point array")
    if not rows.size:
        return
    wide = rows.astype(mx.float32)
    # A sum of V numbers in any order, here and where they were normalised, and one rounding of each to their dtype.
    slack = mx.finfo(rows.dtype).eps + (rows.shape[-1] + 2) * mx.finfo(mx.float32).eps
    # Both are looked at at once: to wait for one takes longer than to compute it.
    looks = [(wide >= 0).all(), (mx.abs(wide.sum(axis=-1) - 1) <= slack).all()]
    positive, normalised = _listed(mx.stack(looks))
    if not positive:
        raise ValueError(f"{name} hold a number that is negative or NaN; they take probabilities")
    if not normalised:
        raise ValueError(f"{name} have a row that does not sum to one; they take probabilities")


def _checked_uniform(uniform: Sequence[float] | mx.array, count: int) -> mx.array:
    if not isinstance(uniform, mx.array):
        # A number just below 1 is 1 in float32.
        uniform = mx.array(
            [BELOW_ONE if BELOW_ONE < number < 1 else number for number in map(float, uniform)], mx.float32
        )
    if uniform.shape != (count,):
        raise ValueError(f"uniform is {uniform.shape}; {count - 1} draft_tokens take {count} numbers")
    if not bool(((uniform >= 0) & (uniform < 1)).all()):
        raise ValueError("uniform has numbers outside [0, 1); it takes numbers from 0 to below 1")
    return uniform.astype(mx.float32)
