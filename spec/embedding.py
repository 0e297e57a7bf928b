"""Token embedding and its use as the output head of tied models.

Shapes: weight V×E, tokens any shape T.. of integer ids, result T..×E; as_linear: x N..×E, result N..×V.

Source: the tiny-llm course, week 1 day 5; Press and Wolf 2017 (tied weights).
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from inferspec.spec.contract import Answer, Arguments, Aspect, Contract, Level, Operation, Requirement, Signature
from inferspec.spec.linear import product_budget, product_roundings
from inferspec.spec.numerics import Precision, f64

COURSE = "tiny-llm course, week 1 day 5"


def _guard_weight(a: Arguments) -> None:
    if a.weight.shape != (a.vocab_size, a.dims):
        raise ValueError(f"weight is {a.weight.shape}, not {(a.vocab_size, a.dims)}")


class Embedding(Operation):
    """weight[tokens], bit for bit."""

    signature = Signature.parse("Embedding(vocab_size, dims, weight)(tokens)")
    plain = "embedding"
    implied = frozenset({"vocab_size", "dims"})
    loaded: ClassVar = {"weight": ("weight", "embedding", "embeddings")}
    narrows: ClassVar = {"vocab_size": ("sized", (False,)), "dims": ("sized", (False,))}

    def guard(self, a: Arguments) -> None:
        self.guard_weight(a)
        self.guard_tokens(a)

    def guard_weight(self, a: Arguments) -> None:
        _guard_weight(a)

    def guard_tokens(self, a: Arguments) -> None:
        ids = a.tokens.astype(np.int64)
        if ids.size and not 0 <= ids.min() <= ids.max() < a.vocab_size:
            raise ValueError(f"tokens range from {ids.min()} to {ids.max()}, not within 0 … {a.vocab_size - 1}")

    def rows(self, tokens: np.ndarray, a: Arguments) -> np.ndarray:
        """Which row of the weight each token reads."""
        return tokens

    def lookup(self, weight: np.ndarray, rows: np.ndarray) -> np.ndarray:
        return weight[rows]

    def evaluate(self, a: Arguments, precision: Precision) -> Answer:
        """Budget: none, nothing is computed."""
        value = self.lookup(f64(a.weight), self.rows(a.tokens.astype(np.int64), a))
        return Answer(value, np.zeros_like(value))

    def result_dtype(self, a: Arguments) -> str:
        return a.weight.dtype.name


class EmbeddingAsLinear(Operation):
    """x · weightᵀ: the logits of a model whose head is its embedding."""

    signature = Signature.parse("Embedding(vocab_size, dims, weight).as_linear(x)")
    plain = "as_linear"
    implied = frozenset({"vocab_size", "dims"})
    loaded: ClassVar = {"weight": ("weight", "embedding", "embeddings")}

    def guard(self, a: Arguments) -> None:
        self.guard_weight(a)
        self.guard_features(a)

    def guard_weight(self, a: Arguments) -> None:
        _guard_weight(a)

    def guard_features(self, a: Arguments) -> None:
        if a.x.ndim < 1 or a.x.shape[-1] != a.dims:
            raise ValueError(f"x is {a.x.shape}, its last axis is not {a.dims}")

    def head(self, weight: np.ndarray) -> np.ndarray:
        """The matrix of the head: the embedding itself."""
        return weight

    def logits(self, x: np.ndarray, head: np.ndarray, dtype: str) -> np.ndarray:
        return x @ head.T

    def evaluate(self, a: Arguments, precision: Precision) -> Answer:
        """Budget: `product_budget`, that of a linear layer without bias."""
        x, weight, dtype = f64(a.x), f64(a.weight), self.result_dtype(a)
        with np.errstate(all="ignore"):
            value = self.logits(x, self.head(weight), dtype)
            magnitude = np.abs(x) @ np.abs(weight).T
            budget = product_budget(magnitude, value, value, x.shape[-1], product_roundings(precision), dtype)
        return Answer(value, budget)

    def result_dtype(self, a: Arguments) -> str:
        return a.x.dtype.name


def _lookup(
    id: str, text: str, level: Level = Level.MUST, aspect: Aspect = Aspect.VALUE, source: str = ""
) -> Requirement:
    return Requirement(id, text, "Embedding", level, aspect, source or COURSE)


def _head(
    id: str, text: str, level: Level = Level.MUST, aspect: Aspect = Aspect.VALUE, source: str = ""
) -> Requirement:
    return Requirement(id, text, "Embedding.as_linear", level, aspect, source or COURSE)


EMB_01 = _lookup("EMB-01", "each token gives its row of the weight, bit for bit", source="PROPERTIES EM2")
EMB_02 = _lookup(
    "EMB-02",
    "every id from 0 to vocab_size - 1 reads its own row, past 255, 32767 and 65535 too, whether tokens are int32, int64 or uint32",
    source="PROPERTIES X8, EM2",
)
EMB_03 = _lookup(
    "EMB-03",
    "tokens of any shape are right, scalar and empty too, each in its place: a batch is the stack of its rows",
    source="PROPERTIES X3, EM2",
)
EMB_04 = _lookup(
    "EMB-04",
    "weight and tokens may each be a strided view, a transposed weight too: the result is that of their copies",
    source="mlx b925592fb; PROPERTIES X1, EM2",
)
EMB_05 = _lookup(
    "EMB-05", "the result is T..×dims in the dtype of the weight", aspect=Aspect.DTYPE, source="PROPERTIES X4"
)
EMB_06 = _lookup("EMB-06", "no argument is changed", source="PROPERTIES X6")
EMB_07 = _lookup(
    "EMB-07",
    "a call depends on its arguments alone: repeated, it is the same bit for bit, whatever ran in between",
    source="PROPERTIES X7, X11",
)
EMB_08 = _lookup(
    "EMB-08", "a weight that is not vocab_size×dims is refused", aspect=Aspect.GUARD, source="PROPERTIES X9, EM4"
)
EMB_09 = _lookup(
    "EMB-09", "ids outside 0 … vocab_size - 1 are refused", Level.SHOULD, Aspect.GUARD, source="PROPERTIES X9"
)
EMB_10 = _head("EMB-10", "as_linear is x · weightᵀ, with no hidden scale", source="mlx-lm c27c94a0; PROPERTIES EM1")
EMB_11 = _head(
    "EMB-11", "as_linear uses the very weight that tokens are looked up in", source="mlx-lm e92138cb; PROPERTIES EM3"
)
EMB_12 = _head("EMB-12", "as_linear accumulates in float32 in every dtype", source="PROPERTIES X5")
EMB_13 = _head("EMB-13", "as_linear of a batch is the stack of its rows, for any leading dims", source="PROPERTIES X3")
EMB_14 = _head(
    "EMB-14",
    "weight and x of as_linear may each be a strided view: the result is that of their copies",
    source="PROPERTIES X1",
)
EMB_15 = _head(
    "EMB-15", "the result of as_linear is N..×vocab_size in the dtype of x", aspect=Aspect.DTYPE, source="PROPERTIES X4"
)
EMB_16 = _head("EMB-16", "as_linear changes no argument", source="PROPERTIES X6")
EMB_17 = _head(
    "EMB-17",
    "as_linear depends on its arguments alone: repeated, it is the same bit for bit, whatever ran in between",
    source="PROPERTIES X7, X11",
)
EMB_18 = _head(
    "EMB-18", "an x of as_linear whose last axis is not dims is refused", aspect=Aspect.GUARD, source="PROPERTIES X9"
)
EMB_19 = _head(
    "EMB-19",
    "as_linear writes every logit of every vocabulary, just beside tile sizes and past 32768 and 65536 entries too",
    source="mlx c9e8ee6b6; PROPERTIES X8, X10, QZ6",
)
EMB_20 = _head(
    "EMB-20",
    "a NaN or infinity in a row of the weight shows in its logit of as_linear in every row of x, and in no other",
    source="PROPERTIES QZ7, judging",
)
EMB_21 = _head(
    "EMB-21",
    "a weight in float32 beside an x of as_linear in half precision is refused, or read for its numbers",
    Level.SHOULD,
    Aspect.GUARD,
    source="PROPERTIES X9",
)


CONTRACT = Contract(
    component="embedding",
    title="token embedding and tied output head",
    version=1,
    operations=(Embedding, EmbeddingAsLinear),
    envelope={
        "dtypes": ("float32", "float16", "bfloat16"),
        "token_dtypes": ("int32", "int64", "uint32"),
        "leading_dims": ((), (1,), (2,), (2, 3), (2, 1, 3), (9, 2)),
        "sized": (True, False),
        "features": 2**13,
        "vocabulary": 262144,
    },
    requirements=tuple(value for value in list(globals().values()) if isinstance(value, Requirement)),
)
