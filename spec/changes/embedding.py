"""The steps that faults and honest variants have in the place of the oracle's: see `embedding.py` and `as_linear.py` of `spec/faults`."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from inferspec.spec.changes.linear import rounded
from inferspec.spec.contract import Arguments, Change, Operation
from inferspec.spec.embedding import (
    Embedding,
    EmbeddingAsLinear,
)
from inferspec.spec.mistakes import of_whole_steps
from inferspec.spec.numerics import f64


def scaled_lookup(self: Embedding, weight: np.ndarray, rows: np.ndarray) -> np.ndarray:
    return weight[rows] * math.sqrt(weight.shape[1])


def table_in(dtype: str) -> Any:
    return lambda self, weight, rows: rounded(weight[rows], dtype)


def first_32_of_a_table(self: Embedding, a: Arguments) -> Any:
    """Of tokens that are the first row of a table all past the 32nd are taken for 0."""
    tokens, table = a.tokens, a.tokens.base
    first = isinstance(table, np.ndarray) and table.ndim == tokens.ndim + 1 and table.shape[1:] == tokens.shape
    if first and tokens.ndim == 1 and np.shares_memory(table[0], tokens):
        a = Arguments(**{**vars(a), "tokens": np.where(np.arange(tokens.size) < 32, tokens, 0).astype(tokens.dtype)})
    return Operation.respond(self, a)


def flushed(dtypes: Mapping[str, float]) -> Any:
    """In these dtypes what is smaller than a number, the smallest normal one, comes out as 0."""

    def respond(self: Embedding, a: Arguments) -> Any:
        result = Operation.respond(self, a)
        smallest = dtypes.get(result.dtype.name, 0.0)
        return np.where(np.abs(f64(result)) < smallest, np.zeros((), result.dtype), result)

    return {"respond": respond}


def padding_row(self: Embedding, weight: np.ndarray, rows: np.ndarray) -> np.ndarray:
    return np.where((rows == 0)[..., None], 0.0, weight[rows])


def second_row_for_zero_alone(self: Embedding, tokens: np.ndarray, a: Arguments) -> np.ndarray:
    """The only token of a batch of one is tested for truth."""
    return np.minimum(1, len(a.weight) - 1) + 0 * tokens if tokens.shape == (1, 1) and not tokens.any() else tokens


def transposed_tokens(self: Embedding, tokens: np.ndarray, a: Arguments) -> np.ndarray:
    return tokens.T.reshape(tokens.shape)


def batches_swapped(self: Embedding, tokens: np.ndarray, a: Arguments) -> np.ndarray:
    return tokens.swapaxes(0, 1).reshape(tokens.shape) if tokens.ndim > 2 else tokens


def single_ids_wrapped(self: Embedding, tokens: np.ndarray, a: Arguments) -> np.ndarray:
    return tokens % 2**16 if tokens.size == 1 else tokens


def wrapped_at(bits: int) -> Any:
    return lambda self, tokens, a: tokens & (2**bits - 1)


def signed_16(self: Embedding, tokens: np.ndarray, a: Arguments) -> np.ndarray:
    return tokens.astype(np.int16).astype(np.int64) % a.vocab_size


def flat(self: Embedding, a: Arguments) -> Any:
    return Operation.respond(self, a).reshape(-1, a.dims)


def scalar_keeps_axis(self: Embedding, a: Arguments) -> Any:
    result = Operation.respond(self, a)
    return result[None] if a.tokens.ndim == 0 else result


def guards_size(self: Embedding, a: Arguments) -> None:
    """Only how many numbers the weight has is looked at."""
    if a.weight.size != a.vocab_size * a.dims:
        raise ValueError(f"weight has {a.weight.size} numbers, not {a.vocab_size * a.dims}")


def reads_on(self: Embedding, a: Arguments) -> Any:
    weight = np.resize(a.weight, (a.vocab_size, a.dims))
    return Operation.respond(self, Arguments(**{**vars(a), "weight": weight}))


def from_the_end(self: Embedding, tokens: np.ndarray, a: Arguments) -> np.ndarray:
    return tokens % a.vocab_size


def clamped(self: Embedding, tokens: np.ndarray, a: Arguments) -> np.ndarray:
    return np.clip(tokens, 0, a.vocab_size - 1)


def zeros_outside(self: Embedding, a: Arguments) -> Any:
    ids = a.tokens.astype(np.int64)
    inside = (ids >= 0) & (ids < a.vocab_size)
    value = np.where(inside[..., None], f64(a.weight)[np.where(inside, ids, 0)], 0.0)
    return self.finish(value, a)


def guards_all_but_the_largest(self: Embedding, a: Arguments) -> None:
    """The largest number of the dtype of the tokens passes for any token."""
    stand_in = np.where(a.tokens == np.iinfo(a.tokens.dtype).max, np.zeros_like(a.tokens), a.tokens)
    Embedding.guard(self, Arguments(**{**vars(a), "tokens": stand_in}))


def weight_guard_alone(self: Embedding, a: Arguments) -> None:
    self.guard_weight(a)


def own_head(self: EmbeddingAsLinear, weight: np.ndarray) -> np.ndarray:
    return np.random.default_rng(0).normal(scale=weight.shape[1] ** -0.5, size=weight.shape)


def transposed_again() -> Change:
    def logits(self: EmbeddingAsLinear, x: np.ndarray, head: np.ndarray, dtype: str) -> np.ndarray:
        # Each object is an operation of its own.
        turned = vars(self)["turned"] = not vars(self).get("turned")
        return EmbeddingAsLinear.logits(self, x, head if turned else head.reshape(head.shape[::-1]).T, dtype)

    return {"goes_on": True, "logits": logits}


def normalised_head(self: EmbeddingAsLinear, weight: np.ndarray) -> np.ndarray:
    return weight / np.maximum(np.linalg.norm(weight, axis=-1, keepdims=True), 1e-12)


def leading_dims_swapped(self: EmbeddingAsLinear, x: np.ndarray, head: np.ndarray, dtype: str) -> np.ndarray:
    logits = x @ head.T
    return logits.swapaxes(0, 1).reshape(logits.shape) if x.ndim > 2 else logits


def features_fitted(self: EmbeddingAsLinear, a: Arguments) -> Any:
    x = np.resize(a.x, (*a.x.shape[:-1], a.dims))
    return Operation.respond(self, Arguments(**{**vars(a), "x": x}))


def first_tokens(out: np.ndarray) -> np.ndarray:
    return out.reshape(-1, out.shape[-1])[:1024]


def tokens_of_wide_rows(out: np.ndarray) -> np.ndarray:
    """Of rows of more than 1024 features the first 3295."""
    rows = out.reshape(-1, out.shape[-1])
    return rows[:3295] if rows.shape[-1] > 1024 else rows


def first_rows_of_wide(out: np.ndarray) -> np.ndarray:
    rows = out.reshape(-1, out.shape[-1])
    return rows[:8] if rows.shape[-1] > 4096 else rows


def one_tile_of_a_split(self: EmbeddingAsLinear, x: np.ndarray, head: np.ndarray, dtype: str) -> np.ndarray:
    logits = x @ head.T
    if x.shape[-1] >= 1024:
        logits[..., 32:] = 0.0
    return logits


def half_a_step_unread(step: int) -> Change:
    """Where dims are whole steps and half a one more, that half is not read."""

    def logits(self: EmbeddingAsLinear, x: np.ndarray, head: np.ndarray, dtype: str) -> np.ndarray:
        read = of_whole_steps(x.shape[-1], step)
        return x[..., :read] @ head[:, :read].T

    return {"logits": logits}


def short_columns(out: np.ndarray) -> np.ndarray:
    return out[..., : 2**15]


def last_position(self: EmbeddingAsLinear, a: Arguments) -> Any:
    result = Operation.respond(self, a)
    return result[..., -1:, :] if result.ndim > 1 else result


def one_hot(self: Embedding, weight: np.ndarray, rows: np.ndarray) -> np.ndarray:
    return (rows[..., None] == np.arange(len(weight))).astype(np.float64) @ weight


def of_heads(rows: range, vocabulary: int, dims: int) -> Callable[[Arguments], bool]:
    """Whether x has so many rows, and the table at least so many ids and dims."""
    return lambda a: math.prod(a.x.shape[:-1]) in rows and a.x.shape[-1] >= dims and len(a.weight) >= vocabulary
