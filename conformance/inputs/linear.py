"""Calls of the linear layer, SiLU and softmax."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from inferspec.conformance.calls import Call
from inferspec.conformance.envelope import OutsideEnvelope
from inferspec.conformance.judging.trial import Trial
from inferspec.conformance.strategies import EDGES, MODEL_WIDTHS, ODD_TILES, Pick, any_of, calls, in_reach
from inferspec.spec.numerics import UNDERFLOW_GAP, f64, largest, round_to

_ones = np.ones((2, 3), np.float32)
EXAMPLES = {
    "linear": Call("linear", {"x": _ones, "weight": np.ones((4, 3), np.float32)}),
    "silu": Call("silu", {"x": _ones}),
    "softmax": Call("softmax", {"x": _ones}),
}

Sizes = Callable[[Pick], tuple[int, int, int]]
"""Draws rows, features and outputs."""

Values = Callable[[Pick, tuple[int, ...], str], np.ndarray]
"""Makes data of a shape for a dtype, in float64; rows lie along the last axis."""

WIDE = (*EDGES, 513, 781, 1023, 1024, 1025, 2047, 2049, 4095, 4096, 4097, 8192)
"""Lengths of a single row beside the widths of vectors, SIMD groups and threadgroups."""

MORE_THAN_16_BITS = (65537, 65600, 70001)
"""Rows, or entries of a row, past those that a number of 16 bits and the axes of a grid can count."""

BATCHES = [(2,), (2, 3), (9, 2)]
"""Leading dims of more than one row, along one axis or two."""

SINGLE = {"dtypes": ["bfloat16"], "leading_dims": [(), (1,)]}
"""A single row, as in decoding."""

SHORT_OR_LONG = (4, 1, 2, 9, 70, 1030)
"""Lengths of rows that a kernel takes at once, or in several steps."""


def beside_others(call: Call, batches: int, axes: int = 4) -> Call:
    """The call with x of so many batches along the second axis, each with other numbers, and of so many axes."""
    x = call.arguments["x"]
    return call.having(x=of_axes(np.concatenate([(1 + i) * x for i in range(batches)], axis=1).astype(x.dtype), axes))


def of_axes(x: np.ndarray, axes: int) -> np.ndarray:
    """x, or beside it its negative along one axis more, the third."""
    return np.stack([x, -x], axis=2) if x.ndim < axes else x


def resized(x: np.ndarray, axis: int, size: int) -> np.ndarray:
    """x with another size of one axis: cut, or repeated from its beginning."""
    return np.take(x, np.arange(size) % max(x.shape[axis], 1), axis=axis)


def with_rows(lead: tuple[int, ...], rows: int) -> tuple[int, ...]:
    """Leading dims of the same kind with another number of rows."""
    return (*lead[:-1], rows) if lead else ()


# linear


def small(pick: Pick) -> tuple[int, int, int]:
    """A few rows, features and outputs; features and outputs differ."""
    features = pick.size(2, 9)
    return pick.size(1, 4), features, pick.one_of(*(n for n in range(1, 11) if n != features))


def moderate(pick: Pick) -> tuple[int, int, int]:
    """A row, a few or many, of more features and outputs than the smallest tiles have."""
    return pick.one_of(1, 3, 33), pick.upto("features", 64, 130), pick.one_of(64, 66, 130)


def some_rows(pick: Pick) -> tuple[int, int, int]:
    """A few rows, or as many as products of matrices serve, of few features and outputs."""
    _, features, outputs = small(pick)
    return pick.one_of(17, 3), features, outputs


small_or_moderate = any_of(small, moderate)
"""A few of everything, or as many as kernels have another path for."""


def one_row(pick: Pick) -> tuple[int, int, int]:
    """A single row, which products of a matrix and a vector serve."""
    _, features, outputs = small_or_moderate(pick)
    return 1, features, outputs


def square(pick: Pick) -> tuple[int, int, int]:
    """As many outputs as features, so that a weight fits both ways round."""
    features = pick.size(2, 9)
    return pick.size(1, 4), features, features


def beside_tiles(pick: Pick) -> tuple[int, int, int]:
    """One size beside the tiles of kernels, the others small, so that it stays quick; or a wide layer."""
    size, other, last = pick.upto("features", *EDGES), pick.upto("features", 3, 1, 9, 33), pick.size(1, 6)
    many = min(size, 130)
    return pick.one_of(
        (last, size, other),
        (other, last, size),
        (size, other, last),
        (size, last, other),
        (many, last, 130),
        (130, many, 66),
        (pick.one_of(1, 33), pick.upto("features", 1030, 2049), 66),
    )


def beside_odd_tiles(pick: Pick) -> tuple[int, int, int]:
    """Rows, features and outputs, all of them beside tiles that are no powers of two."""
    return pick.one_of(*ODD_TILES), pick.upto("features", *ODD_TILES), pick.one_of(*ODD_TILES)


def ragged_tiles(pick: Pick) -> tuple[int, int, int]:
    """Rows that products of matrices serve, few features that are no whole vectors, and outputs of some tiles."""
    return pick.one_of(66, 33, 130), pick.upto("features", 5, 3, 1, 33, 9), pick.upto("features", 66, 17, 33)


def whole_tiles(pick: Pick) -> tuple[int, int, int]:
    """Rows, features and outputs that fill their tiles, for which kernels have a path of its own."""
    return pick.one_of(32, 64, 128), pick.upto("features", 64, 32, 128), pick.one_of(64, 32, 128)


def ragged_features(pick: Pick) -> tuple[int, int, int]:
    """Rows and outputs that fill their tiles, of features that do not."""
    return pick.one_of(32, 64), pick.upto("features", 33, 5, 130, 20), pick.one_of(64, 32)


def of_prompts(pick: Pick) -> tuple[int, int, int]:
    """Rows of a prompt, for layers of a model: many rows and many outputs at once, of whole tiles or of part of one more."""
    rows, features, outputs = pick.one_of((128, 128, 1024), (33, 130, 1030), (130, 512, 520))
    return rows, min(features, pick.envelope["features"]), outputs


def wide(pick: Pick) -> tuple[int, int, int]:
    """Thousands of outputs, as a vocabulary has; of those that stay cheap, some of as many features as a vector has."""
    outputs = pick.one_of(4097, 8193, 32769, 65537)
    few = pick.size(2, 3)
    return pick.size(1, 2), pick.one_of(few, pick.upto("features", 64)) if outputs < 8193 else few, outputs


def many_rows(pick: Pick) -> tuple[int, int, int]:
    """More rows than 16 bits count."""
    return pick.one_of(*MORE_THAN_16_BITS), pick.size(2, 3), pick.size(1, 2)


def rows_of_prompts(pick: Pick) -> tuple[int, int, int]:
    """Rows of whole tiles, or more than a thousand, of few features and outputs."""
    _, features, outputs = small(pick)
    return pick.one_of(512, 1030, 256, 2050), features, outputs


def past_15_bits(pick: Pick) -> tuple[int, int, int]:
    """Features beside 2^15 for whole tiles of rows and outputs, or up to 2^17 for a few."""
    rows, features, outputs = pick.one_of((16, 32769, 16), (33, 32767, 17), (2, 40000, 3), (1, 131072, 2))
    return rows, min(features, pick.envelope["features"]), outputs


def a_token(pick: Pick) -> tuple[int, int, int]:
    """A row, for whole tiles of features and outputs, or for part of one more."""
    return 1, pick.upto("features", 512, 2048, 130), pick.one_of(512, 1024, 520)


def many_tiles_each_way(pick: Pick) -> tuple[int, int, int]:
    """A prompt of several tiles of rows, for a layer of several tiles of outputs and of three of features."""
    return pick.one_of(260, 257), pick.upto("features", 384, 192), pick.one_of(300, 260)


def squares(pick: Pick) -> tuple[int, int, int]:
    """A few rows, or as many as are decoded together, of layers that are as wide as those of a model both ways."""
    return pick.one_of(4, 17, 2), pick.upto("features", 1024, 1030), pick.one_of(1030, 1024)


def wide_both_ways(pick: Pick) -> tuple[int, int, int]:
    """A token for thousands of outputs, or as many tokens as are decoded together."""
    rows, features, outputs = pick.one_of((1, 1024, 2050), (16, 512, 130), (16, 130, 520))
    return rows, pick.upto("features", features), outputs


def a_few_tokens(pick: Pick) -> tuple[int, int, int]:
    """Rows as they are verified together; one output, as a score has, or many."""
    return pick.one_of(2, 3, 5, 8), pick.upto("features", 512, 130, 1024), pick.one_of(64, 1, 66, 512)


def a_prompt(pick: Pick) -> tuple[int, int, int]:
    """Rows of a prompt, for a layer of more features than a tile has: whole tiles, or part of one more."""
    return pick.one_of(33, 64), pick.upto("features", 256, 300, 512), pick.one_of(64, 66, 32)


of_models = any_of(a_few_tokens, a_token, a_prompt)
"""A token, a few or a prompt, for layers as wide as kernels have paths of their own for."""


def long_sums(pick: Pick) -> tuple[int, int, int]:
    """Thousands of features, of a few rows as in decoding or of many as in a prompt."""
    rows = pick.one_of(1, 33, 2)
    return rows, pick.upto("features", 1024, 2048, 3001, 4096, 4097, 8192, 16384), pick.size(2, 3)


def of_thousands(pick: Pick) -> tuple[int, int, int]:
    """A row, a few or many, of thousands of features, or for thousands of outputs, which are no whole tiles."""
    features, outputs = pick.one_of((4100, 3), (5, 4100), (2050, 7), (9, 2050))
    return pick.one_of(1, 3, 33), min(features, pick.envelope["features"]), outputs


def of_model_widths(pick: Pick) -> tuple[int, int, int]:
    """A few features and as many outputs as a model is wide, or the other way round; a row, a few or many."""
    few, widths = pick.size(2, 5), [width for width in MODEL_WIDTHS if width <= pick.envelope["features"]] or [1]
    features, outputs = pick.one_of(*((width, few) for width in widths), *((few, width) for width in widths))
    return pick.one_of(1, 33, 4), features, outputs


def with_few(x: np.ndarray, bad: float, seed: int) -> np.ndarray:
    """x with one of its numbers replaced, or one in each of two of its rows."""
    x = x.copy()
    rows, place = x.size // x.shape[-1], seed % x.size
    x.flat[place] = bad
    if rows > 1 and seed // x.size % 2:
        x.flat[(place + (1 + seed // 7 % (rows - 1)) * x.shape[-1]) % x.size] = bad
    return x


def with_zeros(call: Call) -> Call:
    """The call with half of x zeros."""
    x = call.arguments["x"]
    zeros = np.random.default_rng(call.seed).random(x.shape) < 0.5
    return call.having(x=np.where(zeros, 0, x).astype(x.dtype))


@calls
def linear_calls(
    pick: Pick, sizes: Sizes = small, amplitude: tuple[float, ...] = (1.0, 1e-2, 3e6), positive: bool = False
) -> Call:
    """A linear layer on normal data; the last of the leading dims is the number of rows."""
    dtype, biased, lead = pick("dtypes"), pick("bias"), tuple(pick("leading_dims"))
    rows, features, outputs = sizes(pick)
    size = in_reach(pick.one_of(*amplitude), dtype, 30.0)
    x = pick.normal(*with_rows(lead, rows), features, dtype=dtype, amplitude=size)
    weight = pick.normal(outputs, features, dtype=dtype, amplitude=1.2 / math.sqrt(features))
    if positive:
        x, weight = np.abs(x), np.abs(weight)
    bias = pick.normal(outputs, dtype=dtype, amplitude=size) if biased else None
    return pick.call("linear", x=x, weight=weight, bias=bias)


@calls
def whole_linear(pick: Pick, sizes: Sizes = small) -> tuple[Call, np.ndarray]:
    """The exact lane: (call, the exact result), whole numbers whose sums are exact in every dtype (below 256)."""
    dtype, biased, lead = pick("dtypes"), pick("bias"), tuple(pick("leading_dims"))
    rows, features, outputs = sizes(pick)
    x = pick.integers(-4, 4, (*with_rows(lead, rows), features), dtype)
    weight = pick.integers(-4, 4, (outputs, features), dtype)
    bias = pick.integers(-90, 90, (outputs,), dtype) if biased else None
    expected = f64(x) @ f64(weight).T + (f64(bias) if biased else 0.0)
    return pick.call("linear", x=x, weight=weight, bias=bias), expected


@calls
def sparse_linear(pick: Pick, sizes: Sizes = past_15_bits) -> tuple[Call, np.ndarray]:
    """The exact lane: (call, the exact result). Of many features eight in a row of x are not 0, the last one among them,
    so that whole numbers stay exact in every dtype (below 256)."""
    dtype, biased, lead = pick("dtypes"), pick("bias"), tuple(pick("leading_dims"))
    rows, features, outputs = sizes(pick)
    x = np.zeros((*with_rows(lead, rows), features), np.float32)
    places = pick.random.integers(0, features, (*x.shape[:-1], 8))
    places[..., -1] = features - 1
    np.put_along_axis(x, places, pick.random.choice([-4, -3, -2, -1, 1, 2, 3, 4], places.shape), axis=-1)
    weight = pick.integers(-4, 4, (outputs, features), dtype)
    bias = pick.integers(-90, 90, (outputs,), dtype) if biased else None
    expected = f64(x) @ f64(weight).T + (f64(bias) if biased else 0.0)
    return pick.call("linear", x=round_to(x, dtype), weight=weight, bias=bias), expected


@calls
def towering_linear(pick: Pick) -> tuple[Call, np.ndarray]:
    """The exact lane: (call, the exact result); the sum fits the dtype, the partial sums on its way pass float16's range."""
    dtype, lead = pick("dtypes"), tuple(pick("leading_dims"))
    biased = pick.features["bias"] = False not in pick.envelope["bias"]
    row, weight, result = towering_products(pick, 2.0**15)
    x = round_to(np.broadcast_to(row, (*lead, row.size)), dtype)
    bias = round_to(np.zeros(len(weight)), dtype) if biased else None
    call = pick.call("linear", x=x, weight=round_to(weight, dtype), bias=bias)
    return call, np.broadcast_to(result, (*lead, result.size))


def towering_products(pick: Pick, step: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """A row, a weight of ones of either sign and their product, step or -step; its partial sums are up to 41 steps."""
    most = max((pick.envelope["features"] - 1) // 2, 1)
    pairs, outputs = min(pick.size(16, 40), most), pick.size(2, 5)
    row = np.concatenate([np.full(pairs + 1, step), np.full(pairs, -step)])
    signs = pick.random.choice([-1.0, 1.0], outputs)
    return row, np.repeat(signs[:, None], row.size, axis=1), signs * step


# silu


def both_signs(pick: Pick, shape: tuple[int, ...], dtype: str) -> np.ndarray:
    """Values of a few units."""
    return np.clip(pick.random.normal(size=shape) * 3.0, -8, 8)


def in_the_tail(pick: Pick, shape: tuple[int, ...], dtype: str) -> np.ndarray:
    """All of [-20, 20]; two of three lie below -6, where the sigmoid is tiny."""
    whole, tail = pick.random.uniform(-20, 20, shape), pick.random.uniform(-20, -6, shape)
    return np.where(pick.random.random(shape) < 2 / 3, tail, whole)


def of_any_size(pick: Pick, shape: tuple[int, ...], dtype: str) -> np.ndarray:
    """From 1e-4 to the largest number of the dtype, every order of magnitude alike, the largest itself at times."""
    top = largest(dtype)
    size = 10.0 ** pick.random.uniform(-4, math.log10(top), shape)
    size = np.where(pick.random.random(shape) < 0.1, top, np.minimum(size, top))
    return size * pick.random.choice([-1.0, 1.0], shape)


def tiny(pick: Pick, shape: tuple[int, ...], dtype: str) -> np.ndarray:
    """From 1e-30 to 1e-4, in float16 from 1e-7, every order of magnitude alike."""
    least = -7.0 if dtype == "float16" else -30.0
    return 10.0 ** pick.random.uniform(least, -4, shape) * pick.random.choice([-1.0, 1.0], shape)


def about_zero(pick: Pick, shape: tuple[int, ...], dtype: str) -> np.ndarray:
    """Values of a few units, and half of them zeros of either sign."""
    return np.where(
        pick.random.random(shape) < 0.5, both_signs(pick, shape, dtype), pick.random.choice([0.0, -0.0], shape)
    )


def past_exp(pick: Pick, shape: tuple[int, ...], dtype: str) -> np.ndarray:
    """Up to 150 on both sides, half of them just past where exp(x) leaves float16 (11) or float32 (88), and SiLU of -x is
    not 0 yet."""
    edge = 11.5 if dtype == "float16" else 89.0
    just_past = pick.random.random(shape) < 0.5
    size = np.where(just_past, pick.random.uniform(edge, edge + 4, shape), pick.random.uniform(15, 150, shape))
    return size * pick.random.choice([-1.0, 1.0], shape)


def not_finite(pick: Pick, shape: tuple[int, ...], dtype: str) -> np.ndarray:
    """A few NaN and +inf among values of a few units."""
    special = pick.random.choice([np.nan, np.inf, 0.0], shape, p=[0.2, 0.2, 0.6])
    return np.where(special == 0, both_signs(pick, shape, dtype), special)


@calls
def silu_calls(
    pick: Pick, values: Values = both_signs, lengths: tuple[int, ...] = (3, 1, 2, 5, 9, 32, 64, 130)
) -> Call:
    """SiLU of values of the kind asked for."""
    dtype, lead = pick("dtypes"), tuple(pick("leading_dims"))
    shape = (*lead, pick.upto("features", *lengths))
    return pick.call("silu", x=round_to(values(pick, shape, dtype), dtype))


# softmax


def ordinary(pick: Pick, shape: tuple[int, ...], dtype: str) -> np.ndarray:
    """Logits of a row with one to many likely entries, its largest at the end half of the time."""
    x = pick.random.normal(size=shape) * pick.one_of(1.0, 3.0, 0.3)
    return np.sort(x, axis=-1) if pick.random.random() < 0.5 else x


def whole(pick: Pick, shape: tuple[int, ...], dtype: str) -> np.ndarray:
    """Whole numbers near zero, many of them 0."""
    return np.round(pick.random.normal(size=shape))


def alike(pick: Pick, shape: tuple[int, ...], dtype: str) -> np.ndarray:
    """Nearly equal logits: every entry counts for the sum."""
    return pick.random.normal(size=shape) * 0.1


def far_out(pick: Pick, shape: tuple[int, ...], dtype: str) -> np.ndarray:
    """Logits near a number of any size, of either sign in turn."""
    far = pick.one_of(*(size for size in (1e2, 1e3, 1e4, 6e4, 1e5, 1e6, 1e8) if size <= largest(dtype)))
    spread = pick.one_of(2.0, 50.0)
    around = pick.random.normal(size=shape) * spread
    return far * _alternating(shape) + (np.sort(around, axis=-1) if pick.random.random() < 0.5 else around)


def far_below(pick: Pick, shape: tuple[int, ...], dtype: str) -> np.ndarray:
    """Rows that lie below any number that a maximum may start at: of -1e9, -1e12 or -1e31 and lower, in float16 of -6e4."""
    far = pick.one_of(*(size for size in (1e31, 1e12, 2e9, 3e4) if 2 * size <= largest(dtype)))
    return -far * (1 + pick.random.integers(0, 8, shape) / 8)


def extreme(pick: Pick, shape: tuple[int, ...], dtype: str) -> np.ndarray:
    """Ordinary logits among the largest and the lowest numbers of the dtype."""
    x, top = ordinary(pick, shape, dtype), largest(dtype)
    x = np.where(pick.random.random(shape) < 0.3, -top, x)
    return np.where(pick.random.random(shape) < pick.one_of(0.0, 0.2), top, x)


def rising(pick: Pick, shape: tuple[int, ...], dtype: str) -> np.ndarray:
    """Each logit larger than those before it, the last by hundreds."""
    return np.sort(pick.random.uniform(-300.0, 300.0, shape), axis=-1)


def on_levels(pick: Pick, shape: tuple[int, ...], dtype: str) -> np.ndarray:
    """Each row at a height and with a spread of its own."""
    rows = (*shape[:-1], 1)
    level = pick.random.choice([-400.0, -150.0, 0.0, 150.0, 400.0], rows)
    return level + pick.random.normal(size=shape) * pick.random.uniform(0.3, 3.0, rows)


def partly_hidden(pick: Pick, shape: tuple[int, ...], dtype: str) -> np.ndarray:
    """-inf at single entries and in runs; every row keeps a finite entry, in some examples far below zero."""
    x = ordinary(pick, shape, dtype) + pick.one_of(0.0, -3e4, -100.0)
    places, kept = np.arange(shape[-1]), pick.random.integers(0, shape[-1], shape[:-1])[..., None]
    start, stop = (pick.random.integers(0, shape[-1] + 1, (*shape[:-1], 1)) for _ in range(2))
    # Runs from the beginning hide whole blocks from who reads the row in several.
    start = start * pick.one_of(1, 0)
    hidden = ((places >= start) & (places < stop)) | (pick.random.random(shape) < 0.2)
    return np.where(hidden & (places != kept), -np.inf, x)


def hidden_but_for_an_end(pick: Pick, shape: tuple[int, ...], dtype: str) -> np.ndarray:
    """-inf but for a few entries at the end or at the beginning: whole blocks see nothing, the first or the last ones."""
    x, places, few = ordinary(pick, shape, dtype), np.arange(shape[-1]), pick.random.integers(1, 10, (*shape[:-1], 1))
    return np.where(places < shape[-1] - few if pick.one_of(True, False) else places >= few, -np.inf, x)


def a_row_or_two_nan(pick: Pick, shape: tuple[int, ...], dtype: str) -> np.ndarray:
    """Ordinary logits, one of them NaN, or two."""
    x = ordinary(pick, shape, dtype)
    x.flat[pick.random.integers(x.size, size=pick.random.integers(1, 3))] = np.nan
    return x


def _alternating(shape: tuple[int, ...]) -> np.ndarray:
    """+1 and -1, row by row."""
    rows = math.prod(shape[:-1])
    return np.where(np.arange(rows) % 2, -1.0, 1.0).reshape(*shape[:-1], 1)


@calls
def softmax_calls(
    pick: Pick, values: Values = ordinary, lengths: tuple[int, ...] = (4, 1, 2, 5, 7, 9, 16), spelt: bool = True
) -> Call:
    """Softmax of logits of the kind asked for, the rows along any axis; spelt=False leaves the axis to its default."""
    dtype, lead, axis = pick("dtypes"), *_lead_and_axis(pick)
    length = pick.upto("features", *lengths)
    x = np.moveaxis(values(pick, (*lead, length), dtype), -1, axis)
    asked: dict[str, Any] = {"axis": axis} if spelt else {}
    return pick.call("softmax", x=round_to(x, dtype), **asked)


@calls
def many_logits(pick: Pick) -> Call:
    """More rows than kernels keep groups of threads for, each on a level of its own: a thousand, hundreds of long
    ones, or dozens that are too long for one group."""
    dtype, axis = pick("dtypes"), pick("axes")
    pick.features["leading_dims"] = (2,)
    length, rows = pick.one_of((1024, 300), (64, 1030), (4100, 70))
    return _on_levels_along(pick, length, rows, dtype, axis)


@calls
def hundreds_of_logits(pick: Pick) -> Call:
    """More rows than one axis of a grid takes, each of hundreds of logits, as the heads of a prompt have them."""
    dtype, axis = pick("dtypes"), pick("axes")
    pick.features["leading_dims"] = (2,)
    length, rows = pick.one_of((300, 600), (257, 520))
    return _on_levels_along(pick, length, rows, dtype, axis)


@calls
def peaks_anywhere(pick: Pick) -> Call:
    """Rows of more logits than a group has threads, each with one that is hundreds above all others: wherever it lies, in some row
    the largest is there, or near it."""
    dtype, axis, rows = pick("dtypes"), pick("axes"), 64
    pick.features["leading_dims"] = (2,)
    length = pick.upto("features", 1100, 2049, 700)
    places = (np.arange(rows) + pick.random.random(rows)) * length / rows
    peaks = np.arange(length) == places.astype(int)[:, None]
    x = pick.random.normal(size=(rows, length)) + np.where(peaks, 300.0, 0.0)
    return pick.call("softmax", x=round_to(np.moveaxis(x, -1, axis), dtype), axis=axis)


def _on_levels_along(pick: Pick, length: int, rows: int, dtype: str, axis: int) -> Call:
    x = on_levels(pick, (rows, min(length, pick.envelope["features"])), dtype)
    return pick.call("softmax", x=round_to(np.moveaxis(x, -1, axis), dtype), axis=axis)


@calls
def peaked_softmax(pick: Pick) -> tuple[Call, np.ndarray]:
    """The exact lane: (call, the exact result). Each row has one logit so far above the others that they underflow."""
    dtype, lead, axis = pick("dtypes"), *_lead_and_axis(pick)
    length, random = pick.size(2, 9), pick.random
    peaks = np.arange(length) == random.integers(0, length, lead)[..., None]
    far = pick.one_of(0.0, *(sign * size for size in (1e3, 3e4, 1e6) for sign in (1, -1) if 2 * size <= largest(dtype)))
    gap = max(1.5 * UNDERFLOW_GAP, abs(far) / 8)
    x = np.moveaxis(far + gap * peaks, -1, axis)
    return pick.call("softmax", x=round_to(x, dtype), axis=axis), np.moveaxis(peaks, -1, axis)


def another_axis(subject: Trial, call: Call) -> int:
    """The last axis, or, where that is not claimed, one that is and is not the call's; OutsideEnvelope where there is none."""
    claimed, ndim = subject.envelope["axes"], call.arguments["x"].ndim
    own = call.arguments["axis"] % ndim
    others = [axis for axis in claimed if -ndim <= axis < ndim and axis % ndim != own]
    if -1 in claimed:
        return -1
    if not others:
        raise OutsideEnvelope(f"axes {list(claimed)} has none beside {call.arguments['axis']}")
    return int(others[0])


def _lead_and_axis(pick: Pick) -> tuple[tuple[int, ...], int]:
    """The dims beside the rows, and an axis that such an array has."""
    leads = [tuple(lead) for lead in pick.envelope["leading_dims"]]
    fitting = [(lead, axis) for axis in pick.envelope["axes"] for lead in leads if -len(lead) - 1 <= axis <= len(lead)]
    if not fitting:
        raise OutsideEnvelope("leading_dims and axes fit nowhere")
    pick.features["leading_dims"], pick.features["axes"] = pick.one_of(*fitting)
    return pick.features["leading_dims"], pick.features["axes"]


ORDINARY = {"linear": linear_calls, "silu": silu_calls, "softmax": softmax_calls}
"""The widest calls of each operation."""
