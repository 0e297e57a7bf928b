"""Flash attention: scaled dot-product attention that goes through the keys tile by tile and never holds a row of logits.

Its answer is that of `spec.attention`; beyond it, this contract is about what tiles can get wrong. Shapes: query
N..×H_q×L×D, key and value N..×H×S×D, mask broadcastable to N..×H_q×L×S, result N..×H_q×L×D.

Sources: Milakov and Gimelshein 2018 (online softmax); Dao et al. 2022 and Dao 2023 (FlashAttention, FlashAttention-2);
the tiny-llm course, week 2 day 4.
"""

from __future__ import annotations

import math
from bisect import bisect_left

import numpy as np

from inferspec.spec.attention import ScaledDotProductAttention
from inferspec.spec.contract import Aspect, Contract, Level, Requirement, Signature
from inferspec.spec.numerics import library, operations

COURSE = "tiny-llm course, week 2 day 4"
DECISIONS = "PROPERTIES, decisions"

ROWS_TOGETHER = 32
"""Rows from which NumPy is faster on all of them at once than a search in one after the other."""


class FlashAttention(ScaledDotProductAttention):
    """softmax(query · keyᵀ · scale + mask) · value, with grouped heads; a row that sees no key is zeros."""

    signature = Signature.parse("flash_attention(query, key, value, scale=None, mask=None)")

    def rescaling(self, logits: np.ndarray, unit: float) -> np.ndarray:
        """Wherever the running maximum rises from m to m', all that was added up is multiplied by exp(m - m'): a library
        call, a product for the sum and one for the values. Merging parts of the keys takes two factors more. The
        roundings of the exponents need no term of their own: they add up to that of logit - m, which the budget has.
        """
        rises = longest_rise(np.stack([logits, logits[..., ::-1]])).max(axis=0)
        return (rises + 2) * (library(unit) + operations(unit, 2))


def longest_rise(logits: np.ndarray) -> np.ndarray:
    """How often a running maximum can rise from one finite number to another in a walk over the keys, or over any part
    of them, in tiles of any size: as often as their longest rising subsequence is long, …×1 (found by patience sorting).
    """
    rows = logits.reshape(math.prod(logits.shape[:-1]), logits.shape[-1])
    if len(rows) < ROWS_TOGETHER:
        longest = np.array([_longest_rise_of_row(row.tolist()) for row in rows], np.int64)
    else:
        longest = _longest_rise_of_rows(rows)
    return longest.reshape(*logits.shape[:-1], 1)


def _longest_rise_of_row(row: list[float]) -> int:
    ends: list[float] = []
    for logit in row:
        place = bisect_left(ends, logit)
        if place == len(ends):
            ends.append(logit)
        else:
            ends[place] = logit
    return sum(map(math.isfinite, ends))


def _longest_rise_of_rows(rows: np.ndarray) -> np.ndarray:
    ends, each, longest = np.full(rows.T.shape, np.inf), np.arange(len(rows)), 0
    for logit in rows.T.copy():
        place = np.count_nonzero(ends[:longest] < logit, axis=0)
        ends[place, each] = logit
        longest = max(longest, int(place.max(initial=-1)) + 1)
    return np.isfinite(ends).sum(axis=0)


def _flash(
    id: str, text: str, level: Level = Level.MUST, aspect: Aspect = Aspect.VALUE, source: str = ""
) -> Requirement:
    return Requirement(id, text, "flash_attention", level, aspect, source or COURSE)


FLASH_01 = _flash("FLASH-01", "the result is softmax(query · keyᵀ · scale) · value, softmax over the keys")
FLASH_02 = _flash("FLASH-02", "scale is D^-0.5 by default, and any number given is used as it is, 0 and negatives too")
FLASH_03 = _flash(
    "FLASH-03",
    "query head h reads key and value head h // (H_q / H), for ratios that are no power of two as well",
    source="PROPERTIES SD1",
)
FLASH_04 = _flash(
    "FLASH-04",
    "an array mask of any shape that broadcasts to N..×H_q×L×S acts on the scaled logits of its own batch, head, row "
    "and key, in every tile",
    source="mlx 005e7efa6, 47d2505ea",
)
FLASH_05 = _flash(
    "FLASH-05",
    "the causal mask is aligned bottom-right whatever tiles it cuts: query i sees exactly the keys j <= i + S - L",
    source=f"{DECISIONS}; PROPERTIES CM3",
)
FLASH_06 = _flash(
    "FLASH-06",
    'bool, additive -inf and additive lowest-number masks and "causal" agree on rows that see a key',
    source=f"{DECISIONS}; PROPERTIES SD2",
)
FLASH_07 = _flash(
    "FLASH-07",
    "a row that sees no key is zeros, whatever the encoding of the mask, also where L > S and in tiles that other "
    "rows share",
    source=f"{DECISIONS}; PROPERTIES SD3",
)
FLASH_08 = _flash(
    "FLASH-08",
    "what lies at hidden keys and values, if finite, and rows that see no key change nothing elsewhere",
    source="PROPERTIES SD4, CM4",
)
FLASH_09 = _flash(
    "FLASH-09",
    "logits, softmax and all running sums are in float32 (class `native` may round logits and weights to the input's "
    "dtype)",
    source=DECISIONS,
)
FLASH_10 = _flash(
    "FLASH-10",
    "logits of any size that is finite in the arithmetic of the class are safe: no running maximum starts, and no key "
    "is hidden, at a finite number",
    source="flashinfer d7f2c6464; PROPERTIES SD7, FA3",
)
FLASH_11 = _flash(
    "FLASH-11",
    "no queries or an empty batch give an empty result, and no keys give zeros",
    Level.SHOULD,
    source="flash-attention 03cd0651, 484b9813; PROPERTIES SD5",
)
FLASH_12 = _flash(
    "FLASH-12",
    "leading dims are independent: a batch is the stack of its rows, for any leading dims",
    source="PROPERTIES X3",
)
FLASH_13 = _flash(
    "FLASH-13",
    "an argument given as a strided view gives the same result as its copy",
    source="mlx 62f297b51; PROPERTIES X1",
)
FLASH_14 = _flash("FLASH-14", "the result has the query's shape and dtype", aspect=Aspect.DTYPE, source="PROPERTIES X4")
FLASH_15 = _flash("FLASH-15", "no argument is changed", source="PROPERTIES X6")
FLASH_16 = _flash(
    "FLASH-16",
    "a call depends on its arguments alone: repeated, it is the same bit for bit, whatever ran in between",
    source="tiny-llm 657c0b3; PROPERTIES X7, X11",
)
FLASH_17 = _flash(
    "FLASH-17",
    "an unknown mask name, an unbroadcastable mask, head counts that do not divide, differing head dims and fewer or more values than keys are refused; values of another head dim are refused or right",
    aspect=Aspect.GUARD,
    source="PROPERTIES X9",
)
FLASH_18 = _flash(
    "FLASH-18",
    "every number of queries and keys is right, also one below, at and one above a multiple of a tile (8, 16, 32, 64, "
    "128)",
    source="tiny-llm 657c0b3; PROPERTIES X2, FA1, FA2",
)
FLASH_19 = _flash(
    "FLASH-19",
    "every feature of a head enters its logits and its result, also past the last multiple of 32, 64 and 128",
    source="PROPERTIES FA1",
)
FLASH_20 = _flash(
    "FLASH-20",
    "the largest logit of a row may come in any tile: what was summed before it is rescaled, numerator and denominator "
    "alike",
    source="Milakov and Gimelshein 2018; PROPERTIES FA3",
)
FLASH_21 = _flash(
    "FLASH-21",
    "whole tiles of hidden keys, first, last or in between, change nothing",
    source="the course's flash attention; PROPERTIES FA3, FA4",
)
FLASH_22 = _flash(
    "FLASH-22", "causal attention of the last L queries equals the last L rows of the whole", source="PROPERTIES CM2"
)
FLASH_23 = _flash(
    "FLASH-23",
    "every element of the result is written, whatever tiles are skipped or partly filled",
    source="tiny-llm 6817831; PROPERTIES X10",
)
FLASH_24 = _flash(
    "FLASH-24", "tens of thousands of keys are all told apart", source="mlx#3360; mlx#4022; PROPERTIES X8"
)
FLASH_25 = _flash(
    "FLASH-25",
    "a NaN is not hidden: one in a query makes its row NaN, one in a key every row that sees it, one in a value its feature of them",
    Level.SHOULD,
    source="IEEE 754, section 6.2; PROPERTIES X3",
)
FLASH_26 = _flash(
    "FLASH-26",
    "an additive mask in float32 beside a query in half precision is refused, or read for its numbers",
    Level.SHOULD,
    Aspect.GUARD,
    source="PROPERTIES X9",
)


CONTRACT = Contract(
    component="flash_attention",
    title="flash attention",
    version=1,
    operations=(FlashAttention,),
    envelope={
        "dtypes": ("float32", "float16", "bfloat16"),
        "head_dims": (32, 40, 64, 72, 80, 96, 112, 128, 192, 256),
        "ratios": (1, 2, 3, 4, 5, 6, 7, 8, 12, 16, 24, 32, 71),
        "leading_dims": ((), (1,), (2,), (2, 3), (3,), (9,)),
        "masks": ("none", "causal", "bool", "-inf", "lowest", "additive"),
        "scales": ("default", "given"),
        "scale_signs": ("positive", "any"),
        "more_queries": (True, False),
        "keys": 2**16 + 2**6,
    },
    layouts=("", "BLHD"),
    requirements=tuple(value for value in list(globals().values()) if isinstance(value, Requirement)),
)
