"""Calls of the quantiser, of dequantisation, and of products with quantised weights."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from inferspec.conformance.calls import Call
from inferspec.conformance.envelope import OutsideEnvelope
from inferspec.conformance.inputs.embedding import LARGE, with_borders
from inferspec.conformance.inputs.linear import with_rows
from inferspec.conformance.strategies import EDGES, MODEL_WIDTHS, ODD_TILES, Calls, Pick, among, any_of, in_reach
from inferspec.spec.numerics import f64, largest, round_to
from inferspec.spec.quantization import GROUP_SIZES, restored

QUANTIZE, DEQUANTIZE, MATMUL = "quantize", "dequantize", "quantized_matmul"
LINEAR, LOOKUP, HEAD = "QuantizedLinear", "QuantizedEmbedding", "QuantizedEmbedding.as_linear"

_parts = {
    "packed": np.full((2, 4), 0x76543210, np.uint32),
    "scales": np.ones((2, 1), np.float32),
    "biases": np.zeros((2, 1), np.float32),
    "group_size": 32,
    "bits": 4,
}
EXAMPLES = {
    QUANTIZE: Call(QUANTIZE, {"w": np.arange(64, dtype=np.float32).reshape(2, 32), "group_size": 32, "bits": 4}),
    DEQUANTIZE: Call(DEQUANTIZE, _parts),
    MATMUL: Call(MATMUL, {"x": np.ones((1, 32), np.float32), **_parts}),
    LINEAR: Call(LINEAR, {**_parts, "x": np.ones((1, 32), np.float32)}),
    LOOKUP: Call(LOOKUP, {**_parts, "tokens": np.array([1, 0], np.int32)}),
    HEAD: Call(HEAD, {**_parts, "x": np.ones((1, 32), np.float32)}),
}


def calls(build: Callable[..., Any]) -> Calls:
    """Make a function of a `Pick` the inputs of tests; of who has none of the group sizes that are asked for, others are."""
    return Calls(build, yielding=["group_sizes"])


Sizes = Callable[[Pick, int], tuple[int, int, int]]
"""Draws rows of x, rows of weights, and groups to a row, for a group size."""


def fitting(pick: Pick, size: int, *groups: int) -> int:
    """Any of the numbers of groups that the envelope's features allow."""
    return pick.one_of(*([n for n in groups if n * size <= pick.envelope["features"]] or [1]))


def small(pick: Pick, size: int) -> tuple[int, int, int]:
    """A few rows and groups."""
    return pick.size(1, 4), pick.size(2, 9), fitting(pick, size, 2, 1, 3, 5)


def several_groups(pick: Pick, size: int) -> tuple[int, int, int]:
    """A few rows, of several groups where the envelope has room."""
    return pick.size(1, 4), pick.size(2, 9), fitting(pick, size, 2, 3, 5)


def moderate(pick: Pick, size: int) -> tuple[int, int, int]:
    """A matrix of more rows and features than the smallest tiles have."""
    return 1, pick.one_of(40, 66), fitting(pick, size, 256 // size, 512 // size)


small_or_moderate = any_of(small, moderate)
"""A few rows and groups, or as many as kernels have another path for."""


def one_row(pick: Pick, size: int) -> tuple[int, int, int]:
    """A single row of x, which products of a vector and a matrix serve."""
    _, outputs, groups = small(pick, size)
    return 1, outputs, groups


def one_row_of_weights(pick: Pick, size: int) -> tuple[int, int, int]:
    """A single row of weights."""
    return pick.size(1, 4), 1, fitting(pick, size, 2, 1, 3, 5)


def square(pick: Pick, size: int) -> tuple[int, int, int]:
    """As many rows of weights as features, so that the weights fit both ways round."""
    groups = fitting(pick, size, 1, 2, 3) if size < 128 else 1
    return pick.size(1, 4), groups * size, groups


def beside_tiles(pick: Pick, size: int) -> tuple[int, int, int]:
    """Rows, outputs or groups beside the tiles of kernels, the others small; many rows and outputs at once, too."""
    edge, few, other = pick.one_of(*EDGES, 10, 96, 99, 130), pick.size(1, 9), pick.one_of(1, 2, 3, 4, 7)
    groups = fitting(pick, size, 1, 2, 3, 4, 5, 7, 8, 9, 13, 16, 17, 31, 32, 33, 65)
    return pick.one_of(
        (few, edge, fitting(pick, size, 1, 2, 3)),
        (edge, few, fitting(pick, size, 1, 2, 3)),
        (other, few, groups),
        (few, other, groups),
        (edge, pick.one_of(33, 65, 99, 130), 1),
        (1, pick.one_of(4, 33, 32, 96), fitting(pick, size, 32, 16, 8)),
        (pick.one_of(1, 2, 7), pick.one_of(1024, 1023, 1025, 2048), fitting(pick, size, 1, 3)),
    )


def whole_tiles(pick: Pick, size: int) -> tuple[int, int, int]:
    """Rows and outputs that fill their tiles, for which kernels have a path of its own."""
    return pick.one_of(32, 64, 128), pick.one_of(64, 32, 128), fitting(pick, size, 1, 2)


def beside_odd_tiles(pick: Pick, size: int) -> tuple[int, int, int]:
    """Rows and outputs, both of them beside tiles that are no powers of two."""
    return pick.one_of(*ODD_TILES), pick.one_of(*ODD_TILES), fitting(pick, size, 1, 2)


def one_row_past_tiles(pick: Pick, size: int) -> tuple[int, int, int]:
    """One row more than tiles have, of a few outputs and groups."""
    return pick.one_of(65, 129), pick.size(4, 9), fitting(pick, size, 1, 2)


def past_a_tile(pick: Pick, size: int) -> tuple[int, int, int]:
    """More rows and outputs than a tile has, of few groups."""
    return pick.one_of(33, 40, 66), pick.one_of(40, 33, 66), fitting(pick, size, 1, 2, 3)


def several_tiles(pick: Pick, size: int) -> tuple[int, int, int]:
    """Several rows, outputs and features, more than a tile of most kernels each way."""
    return pick.one_of(8, 33, 9), pick.one_of(128, 130, 160), fitting(pick, size, 128 // size + 1, max(128 // size, 1))


def one_row_of_thousands(pick: Pick, size: int) -> tuple[int, int, int]:
    """A single row of x, of a thousand features and more, for a few outputs or for part of a tile."""
    if pick.features["transpose"]:
        return 1, pick.one_of(4, 7, 33, 96), fitting(pick, size, 1024 // size, 4096 // size)
    return 1, pick.one_of(1024, 2048, 1025), fitting(pick, size, 1, 3)


def a_few_rows_of_thousands(pick: Pick, size: int) -> tuple[int, int, int]:
    """The same for a few rows: where their sums are split between groups of threads, each begins far from the last."""
    return pick.one_of(2, 4, 3), *one_row_of_thousands(pick, size)[1:]


PACKED = {
    "bits": [4, 8],
    "group_sizes": [64, 128],
    "leading_dims": [(1,)],
    "transpose": [True],
}
"""How most models are packed: kernels are written for it first, and for each number of rows another one."""


def a_token(pick: Pick, size: int) -> tuple[int, int, int]:
    """A row, for whole tiles of outputs and of features, or for part of one more."""
    return 1, pick.one_of(512, 520, 1024), fitting(pick, size, 512 // size, 1024 // size)


def a_few_tokens(pick: Pick, size: int) -> tuple[int, int, int]:
    """Rows as they are verified together."""
    return pick.one_of(2, 3, 5, 8), pick.one_of(64, 66, 128), fitting(pick, size, 512 // size, 1024 // size)


def a_prompt(pick: Pick, size: int) -> tuple[int, int, int]:
    """Rows for whole tiles, or for part of one more."""
    return pick.one_of(32, 64, 33, 100), pick.one_of(64, 96, 66), fitting(pick, size, 256 // size, 512 // size)


of_models = any_of(a_few_tokens, a_token, a_prompt)
"""A token, a few or a prompt, for layers as wide as kernels have paths of their own for."""


def a_long_prompt(pick: Pick, size: int) -> tuple[int, int, int]:
    """Many rows, outputs and features at once: whole tiles, or part of one more."""
    return *pick.one_of((128, 128), (130, 132)), fitting(pick, size, 512 // size)


def a_table(pick: Pick, size: int) -> tuple[int, int, int]:
    """A prompt's tokens, of a vocabulary of more rows than a tile has."""
    return pick.one_of(1, 33), pick.one_of(1000, 1030), fitting(pick, size, 256 // size, 512 // size)


def many_tiles_each_way(pick: Pick, size: int) -> tuple[int, int, int]:
    """A prompt of several tiles of rows, for a layer of as many of outputs."""
    return pick.one_of(260, 257), pick.one_of(300, 260), fitting(pick, size, 256 // size, 128 // size)


def squares(pick: Pick, size: int) -> tuple[int, int, int]:
    """A few rows, or as many as are decoded together, of layers that are as wide as those of a model both ways."""
    return pick.one_of(4, 17, 2), pick.one_of(1030, 1024), fitting(pick, size, 1024 // size)


def wide_both_ways(pick: Pick, size: int) -> tuple[int, int, int]:
    """A token, as many as are decoded together, or a prompt, for layers that are wide both ways, as most of a model are."""
    rows, outputs, features = pick.one_of((1, 1030, 2304), (16, 130, 1024), (64, 130, 1280), (40, 520, 512))
    return rows, outputs, fitting(pick, size, features // size)


def a_prompt_over_thousands(pick: Pick, size: int) -> tuple[int, int, int]:
    """A prompt, and more rows of weights than a thousand."""
    return pick.one_of(33, 66), pick.one_of(1030, 1100), fitting(pick, size, 256 // size)


def hundreds_of_rows_and_columns(pick: Pick, size: int) -> tuple[int, int, int]:
    """Matrices of hundreds of rows, of some groups each."""
    return 1, pick.one_of(520, 600), fitting(pick, size, 1024 // size, 640 // size)


def wide_layers(pick: Pick, size: int) -> tuple[int, int, int]:
    """Layers as wide as those of models, of many features or of many outputs, for one row or for a prompt."""
    few = max(min(3, pick.envelope["features"] // size), 1)
    return pick.one_of(1, 33), *pick.one_of((66, fitting(pick, size, 4224 // size, 640 // size)), (1030, few))


def of_model_widths(pick: Pick, size: int) -> tuple[int, int, int]:
    """A row, a few or many, of as many features as models are wide whose widths are no powers of two."""
    return pick.one_of(1, 33, 4), pick.size(2, 5), fitting(pick, size, *(width // size for width in MODEL_WIDTHS))


def hundreds_of_groups(pick: Pick, size: int) -> tuple[int, int, int]:
    """A few rows of more groups than a byte counts, where groups are not too large for that."""
    return 1, pick.size(1, 3), fitting(pick, size, 264, 512, 256)


def tokens_of_sequences(pick: Pick, size: int) -> tuple[int, int, int]:
    """As many rows as sequences that are decoded together, for layers as wide as kernels have paths of their own for."""
    return pick.one_of(3, 12, 24), pick.one_of(512, 520), fitting(pick, size, 512 // size)


def hundreds_of_rows(pick: Pick, size: int) -> tuple[int, int, int]:
    """More rows of x than 512, for more outputs than a tile has."""
    return pick.one_of(520, 600), pick.one_of(66, 64), fitting(pick, size, 128 // size)


def thousands_of_columns(pick: Pick, size: int) -> tuple[int, int, int]:
    """A few rows of more columns than 1024, 2048 or 4096, and of more groups than 32, 64 or 100."""
    return 1, pick.size(1, 3), fitting(pick, size, 4352 // size, 8192 // size, 2304 // size, 6144 // size)


def of_thousands(pick: Pick, size: int) -> tuple[int, int, int]:
    """A row, a few or many, of more than 16 groups or for more than 512 outputs, which are no whole tiles."""
    wide, wider = (fitting(pick, size, features // size) for features in (2304, 4352))
    return pick.one_of(1, 3, 33), *pick.one_of((5, wide), (520, 1), (3, wider), (1030, 1))


def many_outputs(pick: Pick, size: int) -> tuple[int, int, int]:
    """More rows of weights than a 16-bit number holds."""
    sizes = (32769, 32840, 65537) if size == 32 else (32769, 32840)
    return pick.one_of(33, 1, 3), pick.upto("vocabulary", *sizes), 1


def many_rows(pick: Pick, size: int) -> tuple[int, int, int]:
    """More rows of x than a 16-bit number holds."""
    rows = pick.one_of(65537, 65600) if size < 128 else 32769
    return rows, pick.size(1, 3), 1


def long_sums(pick: Pick, size: int) -> tuple[int, int, int]:
    """Thousands of features, of a few rows as in decoding or of many as in a prompt: as many as most models have, or as the
    largest, more than a group of threads has room for."""
    most = pick.envelope["features"] // size or 1
    wide = min(most, 8192 // size)
    return pick.one_of(1, 33, 2), pick.size(2, 3), pick.one_of(wide, wide * 3 // 4 or 1, most, wide // 2 or 1)


def many_tokens(pick: Pick, size: int) -> tuple[int, int, int]:
    """Prompts of a thousand tokens and more."""
    return pick.one_of(1025, 2049, 5000), pick.size(2, 9), 1


def wide_batches(pick: Pick, size: int) -> tuple[int, int, int]:
    """A few rows of x and of weights, and more features than a grid of small tiles holds."""
    return pick.one_of(2, 1, 3), pick.size(2, 3), fitting(pick, size, 4352 // size, 8192 // size)


def few_of_a_stack(pick: Pick, size: int) -> tuple[int, int, int]:
    """A few of everything, or more rows, outputs or features than a tile has."""
    rows, outputs, groups = pick.size(1, 4), pick.size(2, 9), fitting(pick, size, 2, 1, 3)
    return pick.one_of(
        (rows, outputs, groups), (33, outputs, 1), (rows, 66, 1), (rows, outputs, fitting(pick, size, 1056 // size, 9))
    )


def a_cache(pick: Pick, size: int) -> tuple[int, int, int]:
    """A token, a draft or a prompt beside the hundreds of keys of a cache, whose features are those of a head."""
    return pick.one_of(1, 5, 33), pick.one_of(300, 1030), fitting(pick, size, 128 // size)


def an_expert(pick: Pick, size: int) -> tuple[int, int, int]:
    """A token, a few or a prompt for experts as wide as those of models."""
    return pick.one_of(1, 3, 40), pick.one_of(64, 130), fitting(pick, size, 512 // size, 1024 // size)


# weights and parts

STACKS = ((2,), (3,), (2, 3), (1,), (9,))
"""Leading dims of stacked weights."""


def spread(pick: Pick, rows: tuple[int, ...], groups: int, size: int, dtype: str) -> np.ndarray:
    """Weights of a few units, each group with a spread and a middle of its own: most around 0, some far from it."""
    each = (*rows, groups, 1)
    width = 10.0 ** pick.random.uniform(-2.0, 1.0, each)
    middle = width * pick.random.choice([0.0, 0.0, 1.0, -1.0, 3.0, -3.0, 20.0, -20.0], each)
    values = pick.random.normal(size=(*rows, groups, size)) * width + middle
    return values.reshape(*rows, groups * size)


def trained(pick: Pick, rows: tuple[int, ...], groups: int, size: int, dtype: str) -> np.ndarray:
    """Normal weights of one amplitude, with a few outliers."""
    values = pick.random.normal(size=(*rows, groups * size)) * pick.one_of(1.0, 0.02, 1e-3)
    return np.where(pick.random.random(values.shape) < 0.01, 8.0 * values, values)


def even(pick: Pick, rows: tuple[int, ...], groups: int, size: int, dtype: str) -> np.ndarray:
    """Weights that fill their range, which lies evenly about 0: where 0 is farthest from a code."""
    values = pick.random.uniform(-1.0, 1.0, (*rows, groups, size))
    values[..., 0], values[..., -1] = 1.0, -1.0
    return values.reshape(*rows, groups * size) * pick.one_of(1.0, 0.3)


def constant(pick: Pick, rows: tuple[int, ...], groups: int, size: int, dtype: str) -> np.ndarray:
    """Each group of one value: zeros, ordinary, tiny and large ones of both signs."""
    top = largest(dtype)
    kinds = [0.0, 1.0, -1.0, 0.1, 3.0, -7.3, 1e-3, 1e3, top, -top, top / 3]
    value = pick.random.choice(kinds, (*rows, groups, 1))
    return np.broadcast_to(value, (*rows, groups, size)).reshape(*rows, groups * size)


def extreme(pick: Pick, rows: tuple[int, ...], groups: int, size: int, dtype: str) -> np.ndarray:
    """Groups whose range is near the largest of the dtype, and tiny ones, beside each other."""
    # The range of float32 weights must be a float32 number too.
    top = largest(dtype) * (0.98 if dtype == "float16" else 0.49)
    low = 1e-3 if dtype == "float16" else 1e-6
    amplitude = pick.random.choice([top, top, low, 1.0], (*rows, groups, 1))
    values = pick.random.uniform(-1.0, 1.0, (*rows, groups, size))
    values[..., 1], values[..., -2] = 1.0, -1.0
    return (values * amplitude).reshape(*rows, groups * size)


def tiny(pick: Pick, rows: tuple[int, ...], groups: int, size: int, dtype: str) -> np.ndarray:
    """Groups of both signs that are nearly 0, whose reciprocals some dtypes do not hold, beside ordinary ones."""
    amplitude = pick.random.choice([1e-30, 1e-12, 1e-7, 1.0], (*rows, groups, 1))
    return (pick.random.uniform(-1.0, 1.0, (*rows, groups, size)) * amplitude).reshape(*rows, groups * size)


@calls
def quantize_calls(
    pick: Pick,
    sizes: Sizes = small,
    values: tuple[Callable[..., np.ndarray], ...] = (spread, trained, even),
    stacks: Sequence[tuple[int, ...]] = STACKS,
) -> Call:
    """Weights to quantise, of the kinds asked for; of some of these leading dims where they are stacked."""
    dtype, bits, size, stacked = pick("dtypes"), pick("bits"), pick("group_sizes"), pick("stacked")
    _, rows, groups = sizes(pick, size)
    lead = pick.one_of(*stacks) if stacked else ()
    w = round_to(pick.one_of(*values)(pick, (*lead, rows), groups, size, dtype), dtype)
    return pick.call(QUANTIZE, w=w, group_size=size, bits=bits)


def _grids(pick: Pick) -> list[tuple[int, int]]:
    """Every number of bits with every group size."""
    return [(bits, size) for bits in pick.envelope["bits"] for size in pick.envelope["group_sizes"]]


@calls
def on_two_grids(pick: Pick) -> tuple[Call, Call]:
    """Two calls on the same weights, which fit the groups of both."""
    call = quantize_calls.build(pick, sizes=lambda pick, size: (1, pick.size(2, 5), max(GROUP_SIZES) // size))
    own = call.arguments["bits"], call.arguments["group_size"]
    others = [grid for grid in _grids(pick) if grid != own]
    if not others:
        raise OutsideEnvelope(f"bits {own[0]} in groups of {own[1]} is the only grid")
    bits, size = pick.one_of(*others)
    return call, call.having(bits=bits, group_size=size)


@calls
def of_two_grids(pick: Pick) -> tuple[Call, Call]:
    """Two calls on the same parts, whose shapes are those of either grid: of as many words to a group."""
    grids = _grids(pick)
    pairs = [(one, other) for one in grids for other in grids if one != other and math.prod(one) == math.prod(other)]
    if not pairs:
        raise OutsideEnvelope(f"no two of the grids {grids} have parts of one shape")
    (bits, size), (other_bits, other_size) = pick.one_of(*pairs)
    dtype = pick("dtypes")
    pick.features |= {"bits": bits, "group_sizes": size, "stacked": False}
    call = pick.call(DEQUANTIZE, **parts(pick, (pick.size(2, 9),), pick.one_of(2, 1, 3), dtype, size, bits))
    return call, call.having(bits=other_bits, group_size=other_size)


def parts(pick: Pick, rows: tuple[int, ...], groups: int, dtype: str, size: int, bits: int) -> dict[str, Any]:
    """Any codes, with scales and biases of both signs: as a quantiser makes them, or independent of each other."""
    levels, grid = 2**bits - 1, (*rows, groups)
    words = groups * size * bits // 32
    packed = pick.random.integers(0, 2**32, (*rows, words), dtype=np.uint32)
    # A scale of 0 is that of a group of one value.
    signs = pick.random.choice([-1.0, 1.0, 0.0], grid, p=[0.48, 0.48, 0.04])
    scales = pick.random.uniform(0.4, 1.6, grid) * signs / levels
    centred = -scales * levels * pick.random.uniform(0.3, 0.7, grid)
    biases = pick.one_of(centred, pick.random.normal(size=grid))
    return {
        "packed": packed,
        "scales": round_to(scales, dtype),
        "biases": round_to(biases, dtype),
        "group_size": size,
        "bits": bits,
    }


def whole(pick: Pick, rows: tuple[int, ...], groups: int, dtype: str, size: int, bits: int) -> dict[str, Any]:
    """The exact lane: scales and biases are whole numbers, and so are the weights, of at most 8 bits in every dtype."""
    asked, grid = parts(pick, rows, groups, dtype, size, bits), (*rows, groups)
    scales = pick.random.choice([-1.0, 1.0] if bits == 8 else [-4.0, -2.0, -1.0, 1.0, 2.0, 4.0], grid)
    # The middle code is near 0, so that no sum on the way leaves the exact range either.
    biases = -scales * 2 ** (bits - 1) + pick.random.integers(-60, 60, grid) * (bits != 8)
    return {**asked, "scales": round_to(scales, dtype), "biases": round_to(biases, dtype)}


def weights_of(asked: dict[str, Any]) -> np.ndarray:
    """The weights that parts stand for, in float64."""
    return restored(asked, asked["group_size"], asked["bits"])


@calls
def dequantize_calls(pick: Pick, sizes: Sizes = small, exact: bool = False) -> Call:
    """Parts to restore; leading dims where they are stacked."""
    dtype, bits, size, stacked = pick("dtypes"), pick("bits"), pick("group_sizes"), pick("stacked")
    _, rows, groups = sizes(pick, size)
    lead = pick.one_of(*STACKS) if stacked else ()
    return pick.call(DEQUANTIZE, **(whole if exact else parts)(pick, (*lead, rows), groups, dtype, size, bits))


@calls
def tall_parts(pick: Pick) -> Call:
    """Parts in float16 whose products of code and scale pass its range, while the weights that they stand for keep it: those
    of a group from -45000 to 45000."""
    call = dequantize_calls.build(pick)
    return call.having(**tall(pick, call.arguments))


def tall(pick: Pick, asked: Mapping[str, Any]) -> dict[str, np.ndarray]:
    """Scales of 90000 over all codes, of either sign, and the biases that make up for them."""
    levels, shape = 2 ** asked["bits"] - 1, asked["scales"].shape
    scales = pick.random.choice([-1.0, 1.0], shape) * pick.random.uniform(8e4, 9e4, shape) / levels
    biases = -scales * levels * pick.random.uniform(0.45, 0.5, shape)
    return {"scales": round_to(scales, "float16"), "biases": round_to(biases, "float16")}


@calls
def tall_products(pick: Pick, operation: str = MATMUL) -> Call:
    """A product with `tall_parts`, of an x so small that the sums keep the range of float16."""
    call = product_calls.build(pick, operation=operation, amplitude=(1e-3,))
    return call.having(**tall(pick, call.arguments))


@calls
def tall_lookups(pick: Pick) -> Call:
    """A lookup in `tall_parts`."""
    call = lookup_calls.build(pick)
    return call.having(**tall(pick, call.arguments))


@calls
def whole_dequantize(pick: Pick, sizes: Sizes = small) -> tuple[Call, np.ndarray]:
    """The exact lane: (call, the exact result)."""
    call = dequantize_calls.build(pick, sizes=sizes, exact=True)
    return call, weights_of(call.arguments)


@calls
def every_code(pick: Pick) -> tuple[Call, np.ndarray]:
    """The exact lane: (call, the exact result). Every code at every place of a word, each with scale 1 and bias 0."""
    dtype, bits, size = pick("dtypes"), pick("bits"), pick("group_sizes")
    pick.features["stacked"] = False
    each, levels = 32 // bits, 2**bits
    # Row c has code c at the first place, c + 1 at the next …: all levels at every place, once.
    codes = (np.arange(levels)[:, None] + np.arange(size)[None, :]) % levels
    codes = codes[pick.random.permutation(levels)]
    words = np.zeros((levels, size // each), np.uint64)
    for place in range(each):
        words += codes[:, place::each].astype(np.uint64) * np.uint64(levels**place)
    one = np.ones((levels, 1))
    grid = {"scales": round_to(one, dtype), "biases": round_to(0 * one, dtype)}
    call = pick.call(DEQUANTIZE, packed=words.astype(np.uint32), **grid, group_size=size, bits=bits)
    return call, codes.astype(np.float64)


# products


def _described(pick: Pick, operation: str) -> tuple[str, int, int, tuple[int, ...]]:
    """dtype, bits, group size and leading dims."""
    if operation == MATMUL:
        pick("transpose")
        pick.features.setdefault("stacked", False)
    return pick("dtypes"), pick("bits"), pick("group_sizes"), tuple(pick("leading_dims"))


def _asked(pick: Pick, operation: str, dtype: str, outputs: int) -> dict[str, Any]:
    """The arguments that only one of the operations has."""
    if operation == MATMUL:
        return {"transpose": pick.features["transpose"]}
    if operation == LINEAR:
        return {"bias": pick.normal(outputs, dtype=dtype) if pick("bias") else None}
    return {}


@calls
def product_calls(
    pick: Pick,
    operation: str = MATMUL,
    sizes: Sizes = small,
    amplitude: tuple[float, ...] = (1.0, 1e-2, 3e6),
    positive: bool = False,
) -> Call:
    """A product of normal data with any weights; the last of the leading dims is the number of rows."""
    dtype, bits, size, lead = _described(pick, operation)
    rows, outputs, groups = sizes(pick, size)
    asked = parts(pick, (outputs,), groups, dtype, size, bits)
    summed = groups * size if pick.features.get("transpose", True) else outputs
    loud = in_reach(pick.one_of(*amplitude), dtype, 30.0)
    x = pick.normal(*with_rows(lead, rows), summed, dtype=dtype, amplitude=loud / math.sqrt(summed))
    if positive:
        x, asked["scales"], asked["biases"] = (np.abs(part) for part in (x, asked["scales"], asked["biases"]))
    return pick.call(operation, x=x, **asked, **_asked(pick, operation, dtype, outputs))


@calls
def reading_products(pick: Pick, operation: str = MATMUL, sizes: Sizes = small) -> tuple[Call, np.ndarray]:
    """The exact lane: (call, the exact result). Each row of x asks for one feature of every output, with either sign."""
    dtype, bits, size, lead = _described(pick, operation)
    rows, outputs, groups = sizes(pick, size)
    asked = whole(pick, (outputs,), groups, dtype, size, bits)
    table = weights_of(asked).T if pick.features.get("transpose", True) else weights_of(asked)
    feature = pick.random.integers(0, len(table), with_rows(lead, rows))
    sign = pick.random.choice([-1.0, 1.0], feature.shape)
    x = round_to((np.arange(len(table)) == feature[..., None]) * sign[..., None], dtype)
    more = _asked(pick, operation, dtype, outputs)
    expected = table[feature] * sign[..., None]
    if more.get("bias") is not None:
        # Halves of an even number: added, the sum of at most 256 stays exact.
        more["bias"] = round_to(pick.random.integers(-60, 60, outputs), dtype)
        expected = f64(round_to(expected + f64(more["bias"]), dtype))
    return pick.call(operation, x=x, **asked, **more), expected


@calls
def shaded_products(pick: Pick, sizes: Sizes = small) -> tuple[Call, np.ndarray]:
    """The exact lane: (call, the exact result). As `reading_products`, and beside the one feature that is asked for
    lie large numbers, which meet weights of zero: who rounds neighbours of x together loses the small one."""
    call, _ = reading_products.build(pick, sizes=sizes)
    asked, bits = dict(call.arguments), call.arguments["bits"]
    turned, words = call.arguments["transpose"], call.arguments["packed"].view(np.uint8)
    codes = words if bits == 8 else np.stack([words & 15, words >> 4], axis=-1).reshape(len(words), -1)
    shaded = pick.random.random(asked["x"].shape[-1]) < 0.5
    codes = np.where(shaded if turned else shaded[:, None], 0, codes).astype(np.uint8)
    packed = codes if bits == 8 else codes[:, ::2] | codes[:, 1::2] << 4
    asked["packed"] = np.ascontiguousarray(packed).view(np.uint32)
    asked["biases"] = np.zeros_like(asked["biases"])
    dtype = pick.features["dtypes"]
    asking = f64(asked["x"]) * 2.0**-10
    powers = pick.random.integers(12, 16 if dtype == "float16" else 41, asking.shape)
    large = pick.random.choice([-1.0, 1.0], asking.shape) * 2.0**powers
    asked["x"] = round_to(np.where(shaded, large, asking), dtype)
    table = weights_of(asked).T if turned else weights_of(asked)
    return call.having(**asked), np.where(shaded, 0.0, asking) @ table


@calls
def stacked_products(pick: Pick, alike: bool = False, sizes: Sizes = few_of_a_stack, many: bool = False) -> Call:
    """A product whose parts have leading dims of their own, broadcast with those of x. alike: x has the very same. many: they
    are dozens."""
    pick("stacked")
    dtype, bits, size, _ = _described(pick, MATMUL)
    same = ((2,), (2,)), ((3, 2), (3, 2)), ((9,), (9,))
    other = ((2, 3), (2, 1)), ((2, 3), (3,)), ((2, 1), (2, 4)), ((), (3,)), ((3,), (1,))
    dozens = ((33,), (33,)), ((2, 17), (2, 17))
    lead, own = pick.one_of(*(dozens if many else same if alike else same + other))
    rows, outputs, groups = sizes(pick, size)
    asked = parts(pick, (*own, outputs), groups, dtype, size, bits)
    summed = groups * size if pick.features["transpose"] else outputs
    x = pick.normal(*lead, rows, summed, dtype=dtype, amplitude=1 / math.sqrt(summed))
    return pick.call(MATMUL, x=x, **asked, transpose=pick.features["transpose"])


@calls
def shared_heads(pick: Pick) -> Call:
    """What a quantised key-value cache asks for: heads of x in groups, the parts of each group a stride-0 axis."""
    call = stacked_products.build(pick)
    repeats, heads = pick.one_of(2, 3), pick.one_of(2, 3)
    arguments = dict(call.arguments)
    rows = arguments["packed"].shape[-2]
    for part in ("packed", "scales", "biases"):
        one = np.resize(arguments[part], (heads, 1, rows, arguments[part].shape[-1]))
        arguments[part] = np.repeat(one, repeats, axis=1)
    summed = arguments["x"].shape[-1]
    arguments["x"] = pick.normal(
        heads, repeats, pick.size(1, 3), summed, dtype=pick.features["dtypes"], amplitude=1 / math.sqrt(summed)
    )
    return call.having(**arguments)


@calls
def lookup_calls(pick: Pick, sizes: Sizes = small, borders: bool = False) -> Call:
    """Any tokens; the last of the leading dims is the length. borders: all ids beside the ends of narrow integers."""
    dtype, bits, size, lead = pick("dtypes"), pick("bits"), pick("group_sizes"), tuple(pick("leading_dims"))
    many, vocabulary, groups = sizes(pick, size)
    tokens = pick.random.integers(0, vocabulary, with_rows(lead, max(pick.one_of(3, 1, 2, 5, 7), many)))
    if borders:
        tokens = with_borders(pick, np.asarray(tokens), vocabulary)
    tokens = np.asarray(tokens).astype(pick("token_dtypes"))
    return pick.call(LOOKUP, **parts(pick, (vocabulary,), groups, dtype, size, bits), tokens=tokens)


def looked_up(call: Call, dtype: str) -> Call:
    """As many rows of the table of a head as x has, looked up by ids of that dtype."""
    table = {name: call.arguments[name] for name in ("packed", "scales", "biases", "group_size", "bits")}
    tokens = np.resize(np.arange(len(call.arguments["packed"])), call.arguments["x"].shape[:-1])
    return Call(LOOKUP, {**table, "tokens": tokens.astype(dtype)}, call.features)


def large_table(pick: Pick, size: int) -> tuple[int, int, int]:
    """A vocabulary past the ends of narrow integers, one group to a row."""
    return 1, pick.upto("vocabulary", *LARGE), 1


def past_16_bits(pick: Pick, size: int) -> tuple[int, int, int]:
    """A vocabulary past the largest 16-bit number, one group to a row."""
    return 1, pick.upto("vocabulary", 65540, 65543), 1


BATCHES = [(2,), (2, 3), (2, 1, 3), (9, 2)]

FEW_OR_MANY = any_of(small_or_moderate, past_a_tile)

LAYER = {key: choices for key, choices in PACKED.items() if key != "transpose"}
"""As most are packed: what a layer, a head or a table has of it, and what a matrix has."""

TOKEN = {**LAYER, "leading_dims": [(1,), ()]}
"""A token, as one of a batch or by itself."""

READ = ("x", "packed", "scales")
"""What a product reads element by element."""

SINGLE = {"dtypes": ["bfloat16"], "leading_dims": [(), (1,)]}
"""A single row or token, as in decoding."""

NOTHING = among([{"bits": 0}, {"group_size": 0}, {"bits": -4}, {"group_size": -32}])
"""Grids that divide by 0 or are counted backwards, where nothing looks at them."""

ORDINARY = {
    QUANTIZE: quantize_calls,
    DEQUANTIZE: dequantize_calls,
    MATMUL: product_calls,
    LINEAR: product_calls(operation=LINEAR),
    LOOKUP: lookup_calls,
    HEAD: product_calls(operation=HEAD),
}
"""The widest calls of each operation."""
