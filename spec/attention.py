"""Scaled dot-product attention, its causal mask, and multi-head attention.

Shapes: query N..×H_q×L×D, key and value N..×H×S×D, mask broadcastable to N..×H_q×L×S, result N..×H_q×L×D. Query
head h reads key/value head h // (H_q / H). Masks: None, "causal" (query i sees keys j <= i + S - L), bool (True is
visible) or additive in the query's dtype, where -inf and the dtype's lowest number both hide a key. There may be more
queries than keys, unless `"more_queries": [False]` in the envelope says otherwise. The weights of multi-head attention are
wq, wk and wv (num_heads·D)×hidden_size and wo hidden_size×(num_heads·D), for a D that need not be hidden_size / num_heads.

Sources: Vaswani et al. 2017, section 3.2; Ainslie et al. 2023 (grouped heads); the tiny-llm course, week 1 days 1, 3.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from inferspec.spec.contract import Answer, Arguments, Aspect, Contract, Level, Operation, Requirement, Signature
from inferspec.spec.linear import known_places
from inferspec.spec.numerics import (
    Precision,
    arithmetic_unit,
    dot,
    f64,
    largest,
    library,
    operations,
    rounding,
    unit_roundoff,
    weights_growth,
)

COURSE_ATTENTION = "tiny-llm course, week 1 day 1"
COURSE_GQA = "tiny-llm course, week 1 day 3"
DECISIONS = "PROPERTIES, decisions"


class ScaledDotProductAttention(Operation):
    """softmax(query · keyᵀ · scale + mask) · value, with grouped heads; a row that sees no key is zeros."""

    signature = Signature.parse("scaled_dot_product_attention(query, key, value, scale=None, mask=None)")
    narrows: ClassVar = {"scale": ("scales", ("default",)), "mask": ("masks", ("none",))}
    required_narrows: ClassVar = {"scale": ("scales", ("given",))}
    turned = ("query", "key", "value")

    def guard(self, a: Arguments) -> None:
        self.guard_leading(a)
        self.guard_heads(a)
        self.guard_lengths(a)
        self.guard_mask(a)

    def guard_leading(self, a: Arguments) -> None:
        for name in ("query", "key", "value"):
            x = getattr(a, name)
            if x.ndim < 3 or x.shape[:-3] != a.query.shape[:-3]:
                raise ValueError(f"{name} is {x.shape}, with query {a.query.shape}: not N..×heads×length×D alike")

    def guard_heads(self, a: Arguments) -> None:
        query_heads, heads = a.query.shape[-3], a.key.shape[-3]
        if heads == 0 or query_heads % heads:
            raise ValueError(f"query has {query_heads} heads, not a multiple of the {heads} of key")

    def guard_lengths(self, a: Arguments) -> None:
        if a.query.shape[-1] != a.key.shape[-1]:
            raise ValueError(f"query has head dim {a.query.shape[-1]}, key has {a.key.shape[-1]}")
        if a.key.shape[:-1] != a.value.shape[:-1]:
            raise ValueError(f"key is {a.key.shape}, value is {a.value.shape}")

    def guard_mask(self, a: Arguments) -> None:
        if a.mask is None:
            return
        if isinstance(a.mask, str):
            if a.mask != "causal":
                raise ValueError(f"mask is {a.mask!r}; the only name is 'causal'")
            return
        full = (*a.query.shape[:-1], a.key.shape[-2])
        if np.broadcast_shapes(a.mask.shape, full) != full:
            raise ValueError(f"mask is {a.mask.shape}, not broadcastable to {full}")

    # The steps, in the order of the formula.

    def key_heads(self, x: np.ndarray, query_heads: int) -> np.ndarray:
        """Give every query head its key head."""
        return np.repeat(x, query_heads // x.shape[-3], axis=-3)

    def value_heads(self, x: np.ndarray, query_heads: int) -> np.ndarray:
        """Give every query head its value head."""
        return self.key_heads(x, query_heads)

    def scale(self, a: Arguments) -> float:
        return a.query.shape[-1] ** -0.5 if a.scale is None else float(a.scale)

    def visible(self, length: int, keys: int) -> np.ndarray:
        """The causal rule, L×S: query i sees the keys j <= i + S - L."""
        return np.arange(keys) <= np.arange(length)[:, None] + keys - length

    def named_mask(self, name: str, length: int, keys: int) -> np.ndarray:
        return np.where(self.visible(length, keys), 0.0, -np.inf)

    def bool_mask(self, mask: np.ndarray) -> np.ndarray:
        return np.where(mask, 0.0, -np.inf)

    def additive_mask(self, mask: np.ndarray) -> np.ndarray:
        return np.where(f64(mask) <= -largest(mask.dtype.name), -np.inf, f64(mask))

    def bias(self, a: Arguments) -> np.ndarray:
        """What is added to the logits, broadcastable to N..×H_q×L×S; -inf hides a key."""
        if a.mask is None:
            return np.zeros(())
        if isinstance(a.mask, str):
            return self.named_mask(a.mask, a.query.shape[-2], a.key.shape[-2])
        return self.bool_mask(a.mask) if a.mask.dtype == bool else self.additive_mask(a.mask)

    def logits(self, q: np.ndarray, k: np.ndarray, scale: float, bias: np.ndarray, dtype: str) -> np.ndarray:
        return q @ k.swapaxes(-1, -2) * scale + bias

    def weights(self, logits: np.ndarray, dtype: str) -> np.ndarray:
        """Softmax over the keys; a row of -inf has no weight at all."""
        top = logits.max(axis=-1, keepdims=True, initial=-np.inf)
        weights = np.exp(logits - np.where(np.isfinite(top), top, 0.0))
        total = weights.sum(axis=-1, keepdims=True)
        return np.divide(weights, total, out=np.zeros_like(weights), where=total != 0)

    def combine(self, weights: np.ndarray, v: np.ndarray, dtype: str) -> np.ndarray:
        return weights @ v

    def rescaling(self, logits: np.ndarray, unit: float) -> np.ndarray:
        """Relative error that taking the keys in parts adds to the weights of a row, N..×H_q×L×1; none, taken whole."""
        return np.zeros(())

    def attended(
        self, q: np.ndarray, k: np.ndarray, v: np.ndarray, scale: float, bias: np.ndarray, dtype: str
    ) -> np.ndarray:
        """The whole formula on heads that are matched already."""
        return self.combine(self.weights(self.logits(q, k, scale, bias, dtype), dtype), v, dtype)

    def evaluate(self, a: Arguments, precision: Precision) -> Answer:
        heads = a.query.shape[-3]
        q, k, v = f64(a.query), self.key_heads(f64(a.key), heads), self.value_heads(f64(a.value), heads)
        return self.attend(q, k, v, self.scale(a), self.bias(a), a.query.dtype.name, precision)

    def attend(
        self,
        q: np.ndarray,
        k: np.ndarray,
        v: np.ndarray,
        scale: float,
        bias: np.ndarray,
        dtype: str,
        precision: Precision,
        input_error: tuple[np.ndarray, np.ndarray, np.ndarray] | None = None,
    ) -> Answer:
        """Attention on heads that are matched already; `input_error` bounds how far q, k and v may be off, if they may.

        Budget. u is the unit of the class, a that of float32, in which every class accumulates. Three roundings of
        the class lie between the inputs and a logit (scale, scaled query, product), one more adds the mask, and one
        subtracts the row's largest logit m:
            ds = (|q||k|ᵀ·|scale|)((D+1)a + 3u) + (|mask| + |logit| + |logit - m|)u + input errors
        The weights then grow by weights_growth(ds), and two library calls, S sums and 3u for storing them:
            dp = p (growth + 16a + (S+1)a + 3u);   budget = dp|v| + (S+1)a·p|v| + p·dv + rounding of the result.
        What underflows costs the floor of the class: times |k| where it is a scaled query, times |v| where it is a
        visible key's weight, twice (exponential and quotient); and a float32 product of weight and value, S times.
        """
        a, u = unit_roundoff("float32"), arithmetic_unit(precision, dtype)
        floor = rounding(np.zeros(()), dtype if precision is Precision.NATIVE else "float32")
        keys, dim = k.shape[-2], q.shape[-1]
        with np.errstate(all="ignore"):
            logits = self.logits(q, k, scale, bias, dtype)
            weights = self.weights(logits, dtype)
            # What replaces the whole formula is asked for its value; the formula itself is not computed twice.
            replaced = type(self).attended is not ScaledDotProductAttention.attended
            value = self.attended(q, k, v, scale, bias, dtype) if replaced else self.combine(weights, v, dtype)

            seen = weights > 0
            size_k, size_v = np.abs(k).swapaxes(-1, -2), np.abs(v)
            magnitude = np.abs(q) @ size_k * abs(scale)
            carried = floor * (size_k.sum(axis=-2, keepdims=True) + max(1.0, abs(scale)))
            if input_error:
                dq, dk, dv = input_error
                carried = carried + (dq @ size_k + (np.abs(q) + dq) @ dk.swapaxes(-1, -2)) * abs(scale)
            below = logits.max(axis=-1, keepdims=True, initial=-np.inf) - logits
            rounded = np.where(np.isfinite(bias), np.abs(bias), 0.0) + np.abs(logits) + below
            logit_error = dot(magnitude, dim, a) + operations(u, 3) * magnitude + rounded * u + carried
            growth = weights_growth(weights, np.where(seen, logit_error, 0.0))
            relative = growth + library(a, 2) + (keys + 1) * a + operations(u, 3) + self.rescaling(logits, a)
            budget = (weights * relative) @ size_v + dot(weights @ size_v, keys, a)
            if input_error:
                budget, size_v = budget + (weights * (1 + relative)) @ dv, size_v + dv
            budget = budget + 2 * floor * (seen @ size_v) + keys * rounding(np.zeros(()), "float32")
            budget = budget + rounding(np.abs(value) + budget, dtype)
        return Answer(value, known_places(value, budget))

    def result_dtype(self, a: Arguments) -> str:
        return a.query.dtype.name


class CausalMask(Operation):
    """The additive causal mask, L×S: 0 where query i sees key j (j <= i + S - L), -inf elsewhere.

    The dtype's lowest number is taken for -inf as well.
    """

    signature = Signature.parse("causal_mask(L, S, dtype)")

    def guard(self, a: Arguments) -> None:
        if a.L < 0 or a.S < 0:
            raise ValueError(f"L and S are lengths, not {a.L} and {a.S}")

    def visible(self, length: int, keys: int) -> np.ndarray:
        return ScaledDotProductAttention.visible(ScaledDotProductAttention(), length, keys)

    def hidden(self, dtype: str) -> float:
        """What stands at a hidden key."""
        return -np.inf

    def evaluate(self, a: Arguments, precision: Precision) -> Answer:
        value = np.where(self.visible(a.L, a.S), 0.0, self.hidden(a.dtype))
        return Answer(value, np.zeros_like(value))

    def result_dtype(self, a: Arguments) -> str:
        return a.dtype


class MultiHeadAttention(Operation):
    """Project query, key and value, attend head by head, project back.

    Shapes: query N..×L×E, key and value N..×S×E, wq, wk and wv (H·D)×E, wo E×(H·D), mask as for attention. The head
    dim D is rows of wq / num_heads, which need not be hidden_size / num_heads.
    """

    signature = Signature.parse(
        "MultiHeadAttention(hidden_size, num_heads, wq, wk, wv, wo)(query, key, value, mask=None)"
    )
    implied = frozenset({"hidden_size"})
    narrows: ClassVar = {"mask": ("masks", ("none",))}
    core = ScaledDotProductAttention()

    def guard(self, a: Arguments) -> None:
        rows = a.wq.shape[0]
        if a.num_heads < 1 or rows % a.num_heads:
            raise ValueError(f"wq has {rows} rows, not a multiple of {a.num_heads} heads")
        for name in ("wq", "wk", "wv"):
            if getattr(a, name).shape != (rows, a.hidden_size):
                raise ValueError(f"{name} is {getattr(a, name).shape}, not {(rows, a.hidden_size)}")
        if a.wo.shape != (a.hidden_size, rows):
            raise ValueError(f"wo is {a.wo.shape}, not {(a.hidden_size, rows)}")
        for name in ("query", "key", "value"):
            if getattr(a, name).shape[-1] != a.hidden_size:
                raise ValueError(f"{name} has {getattr(a, name).shape[-1]} features, not {a.hidden_size}")

    def head_dim(self, a: Arguments) -> int:
        return a.wq.shape[0] // a.num_heads

    def projected(self, a: Arguments, name: str) -> np.ndarray:
        """N..×L×(H·D)."""
        x, weight = {"query": (a.query, a.wq), "key": (a.key, a.wk), "value": (a.value, a.wv)}[name]
        return f64(x) @ f64(weight).T

    def projected_magnitude(self, a: Arguments, name: str) -> np.ndarray:
        x, weight = {"query": (a.query, a.wq), "key": (a.key, a.wk), "value": (a.value, a.wv)}[name]
        return np.abs(f64(x)) @ np.abs(f64(weight)).T

    def split(self, x: np.ndarray, heads: int) -> np.ndarray:
        """N..×L×(H·D) -> N..×H×L×D."""
        return x.reshape(*x.shape[:-1], heads, x.shape[-1] // heads).swapaxes(-2, -3)

    def merge(self, x: np.ndarray) -> np.ndarray:
        """N..×H×L×D -> N..×L×(H·D)."""
        x = x.swapaxes(-2, -3)
        return x.reshape(*x.shape[:-2], x.shape[-2] * x.shape[-1])

    def output(self, x: np.ndarray, a: Arguments) -> np.ndarray:
        return x @ f64(a.wo).T

    def evaluate(self, a: Arguments, precision: Precision) -> Answer:
        """Budget: each projection is a dot product rounded to the dtype, its error carried through the attention and
        then through |wo|, a dot product again."""
        dtype, unit = a.query.dtype.name, unit_roundoff("float32")
        parts, errors = [], []
        for name in ("query", "key", "value"):
            x = self.projected(a, name)
            error = dot(self.projected_magnitude(a, name), a.query.shape[-1], unit)
            error = error + rounding(np.abs(x) + error, dtype)
            parts.append(self.split(x, a.num_heads))
            errors.append(self.split(error, a.num_heads))
        attended = self.core.attend(
            parts[0],
            parts[1],
            parts[2],
            scale=self.scale(a),
            bias=self.core.bias(self.masked(a)),
            dtype=dtype,
            precision=precision,
            input_error=(errors[0], errors[1], errors[2]),
        )
        merged, carried = self.merge(attended.value), self.merge(attended.budget)
        value, wo = self.output(merged, a), np.abs(f64(a.wo)).T
        budget = (carried @ wo) + dot((np.abs(merged) + carried) @ wo, merged.shape[-1], unit)
        return Answer(value, budget + rounding(np.abs(value) + budget, dtype))

    def scale(self, a: Arguments) -> float:
        return self.head_dim(a) ** -0.5

    def masked(self, a: Arguments) -> Arguments:
        """The arguments as the mask rules of attention read them."""
        return a

    def result_dtype(self, a: Arguments) -> str:
        return a.query.dtype.name


def _sdpa(
    id: str, text: str, level: Level = Level.MUST, aspect: Aspect = Aspect.VALUE, source: str = ""
) -> Requirement:
    return Requirement(id, text, "scaled_dot_product_attention", level, aspect, source or COURSE_GQA)


ATTN_01 = _sdpa(
    "ATTN-01", "the result is softmax(query · keyᵀ · scale) · value, softmax over the keys", source=COURSE_ATTENTION
)
ATTN_02 = _sdpa(
    "ATTN-02",
    "scale is D^-0.5 by default, and any number given is used as it is, 0 and negatives too",
    source=f"{COURSE_ATTENTION}; PROPERTIES SD6",
)
ATTN_03 = _sdpa("ATTN-03", "query head h reads key and value head h // (H_q / H)")
ATTN_04 = _sdpa(
    "ATTN-04",
    "an array mask of any shape that broadcasts to N..×H_q×L×S acts on the scaled logits of its own batch, head and row",
)
ATTN_05 = _sdpa(
    "ATTN-05",
    "the causal mask is aligned bottom-right: query i sees exactly the keys j <= i + S - L",
    source=f"{COURSE_GQA}; PROPERTIES CM3",
)
ATTN_06 = _sdpa(
    "ATTN-06",
    'bool, additive -inf and additive lowest-number masks and "causal" agree on rows that see a key',
    source=f"{DECISIONS}; PROPERTIES SD2",
)
ATTN_07 = _sdpa(
    "ATTN-07",
    "a row that sees no key is zeros, whatever the encoding of the mask",
    Level.SHOULD,
    source=f"{DECISIONS}; PROPERTIES SD3",
)
ATTN_08 = _sdpa(
    "ATTN-08",
    "what lies at hidden keys and values, if finite, and rows that see no key change nothing elsewhere",
    source="pytorch#101967; PROPERTIES SD4, CM4",
)
ATTN_09 = _sdpa(
    "ATTN-09",
    "logits and softmax are computed in float32 (class `native` may round them to the input's dtype)",
    source=DECISIONS,
)
ATTN_10 = _sdpa(
    "ATTN-10",
    "logits of any size that is finite in the arithmetic of the class are safe: adding a constant to a row changes nothing, and results stay among the visible values",
    source="flashinfer 82784bb11, d7f2c6464; PROPERTIES SD7",
)
ATTN_11 = _sdpa(
    "ATTN-11",
    "no queries or an empty batch give an empty result, and no keys give zeros",
    Level.SHOULD,
    source="flash-attention 03cd0651, 484b9813; PROPERTIES SD5",
)
ATTN_12 = _sdpa(
    "ATTN-12",
    "leading dims are independent: a batch is the stack of its rows, for any leading dims",
    source="PROPERTIES X3",
)
ATTN_13 = _sdpa(
    "ATTN-13",
    "an argument given as a strided view gives the same result as its copy",
    source="mlx 62f297b51, 005e7efa6; PROPERTIES X1",
)
ATTN_14 = _sdpa("ATTN-14", "the result has the query's shape and dtype", aspect=Aspect.DTYPE, source="PROPERTIES X4")
ATTN_15 = _sdpa("ATTN-15", "no argument is changed", source="PROPERTIES X6")
ATTN_16 = _sdpa(
    "ATTN-16",
    "a call depends on its arguments alone: repeated, it is the same bit for bit, whatever ran in between",
    source="flashinfer 82784bb11; PROPERTIES X7, X11",
)
ATTN_17 = _sdpa(
    "ATTN-17",
    "an unknown mask name, an unbroadcastable mask, head counts that do not divide, differing head dims and fewer or more values than keys are refused; values of another head dim are refused or right",
    aspect=Aspect.GUARD,
    source="PROPERTIES X9",
)
ATTN_18 = _sdpa(
    "ATTN-18",
    "every size is right, also just beside the tile and path thresholds of kernels (32, 64, 1024 keys)",
    source="mlx#4022; PROPERTIES X2, FA1",
)
ATTN_19 = _sdpa(
    "ATTN-19", "causal attention of the last L queries equals the last L rows of the whole", source="PROPERTIES CM2"
)
ATTN_20 = _sdpa(
    "ATTN-20",
    "a NaN is not hidden: one in a query makes its row NaN, one in a key every row that sees it, one in a value its feature of them",
    Level.SHOULD,
    source="IEEE 754, section 6.2; PROPERTIES X3",
)
ATTN_21 = _sdpa(
    "ATTN-21",
    "an additive mask in float32 beside a query in half precision is refused, or read for its numbers",
    Level.SHOULD,
    Aspect.GUARD,
    source="PROPERTIES X9",
)
ATTN_22 = _sdpa("ATTN-22", "tens of thousands of keys are all told apart", source="mlx#3360; PROPERTIES X8")


def _mask(
    id: str, text: str, level: Level = Level.MUST, aspect: Aspect = Aspect.VALUE, source: str = ""
) -> Requirement:
    return Requirement(id, text, "causal_mask", level, aspect, source or COURSE_GQA)


CMASK_01 = _mask("CMASK-01", "entry (i, j) is 0 where j <= i + S - L and hides the key elsewhere, also where L > S")
CMASK_02 = _mask(
    "CMASK-02", "a hidden entry is -inf or the dtype's lowest number in every dtype, never NaN", source="PROPERTIES CM6"
)
CMASK_03 = _mask("CMASK-03", "the mask is L×S, in the dtype asked for, also where L or S is 0", aspect=Aspect.DTYPE)
CMASK_04 = _mask(
    "CMASK-04",
    "a call depends on its arguments alone, also where the caller has written into what an earlier call gave",
    source="PROPERTIES X6, X7",
)
CMASK_05 = _mask("CMASK-05", "negative lengths are refused", Level.SHOULD, Aspect.GUARD, source="PROPERTIES X9")


def _mha(id: str, text: str, level: Level = Level.MUST, aspect: Aspect = Aspect.VALUE, source: str = "") -> Requirement:
    return Requirement(id, text, "MultiHeadAttention", level, aspect, source or COURSE_ATTENTION)


MHA_01 = _mha(
    "MHA-01",
    "the result is attention of the projected query, key and value, projected by wo; each weight used once and in its place",
)
MHA_02 = _mha(
    "MHA-02", "head h of a projection is its features h·D … (h+1)·D - 1, and the heads are merged back in that order"
)
MHA_03 = _mha(
    "MHA-03",
    "the head dim is the rows of wq over num_heads, also where that is not hidden_size / num_heads",
    source="vllm-metal bbacf63",
)
MHA_04 = _mha(
    "MHA-04", "masks mean what they mean in attention: None, causal, bool and additive, with L and S different"
)
MHA_05 = _mha("MHA-05", "a batch is the stack of its rows", source="PROPERTIES X3")
MHA_06 = _mha("MHA-06", "an argument given as a strided view gives the same result as its copy", source="PROPERTIES X1")
MHA_07 = _mha("MHA-07", "the result has the query's shape and dtype", aspect=Aspect.DTYPE, source="PROPERTIES X4")
MHA_08 = _mha("MHA-08", "no argument is changed", source="PROPERTIES X6")
MHA_09 = _mha("MHA-09", "a call depends on its arguments alone", source="PROPERTIES X7, X11")
MHA_10 = _mha(
    "MHA-10",
    "weights whose shapes do not fit hidden_size and num_heads are refused",
    aspect=Aspect.GUARD,
    source="PROPERTIES X9",
)
MHA_11 = _mha("MHA-11", "no queries or an empty batch give an empty result", Level.SHOULD, source="PROPERTIES SD5")


CONTRACT = Contract(
    component="attention",
    title="scaled dot-product attention, causal mask, multi-head attention",
    version=1,
    operations=(ScaledDotProductAttention, CausalMask, MultiHeadAttention),
    envelope={
        "dtypes": ("float32", "float16", "bfloat16"),
        "head_dims": (1, 2, 3, 4, 8, 16, 32, 40, 64, 72, 80, 96, 112, 128, 192, 256),
        "ratios": (1, 2, 3, 4, 5, 6, 7, 8, 12, 16, 24, 32, 71),
        "leading_dims": ((), (1,), (2,), (2, 3), (5,), (9,)),
        "masks": ("none", "causal", "bool", "-inf", "lowest", "additive"),
        "scales": ("default", "given"),
        "scale_signs": ("positive", "any"),
        "free_head_dim": (False, True),
        "odd_hidden_size": (False, True),
        "other_lengths": (True, False),
        "more_queries": (True, False),
        "keys": 2**16 + 2**6,
    },
    layouts=("", "BLHD"),
    requirements=tuple(value for value in list(globals().values()) if isinstance(value, Requirement)),
)
