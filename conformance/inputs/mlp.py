"""Calls of the gated MLP."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from inferspec.conformance.calls import Call
from inferspec.conformance.inputs.linear import towering_products, with_rows
from inferspec.conformance.strategies import EDGES, ODD_TILES, ONE_SHORT, Pick, any_of, calls
from inferspec.spec.numerics import round_to

WEIGHTS = ("w_gate", "w_up", "w_down")

_eye = np.eye(3, dtype=np.float32)
EXAMPLES = {
    "SwiGLU": Call(
        "SwiGLU",
        {"dims": 3, "hidden_dims": 3, "x": np.ones((2, 3), np.float32)} | dict.fromkeys(WEIGHTS, _eye),
    ),
}

Sizes = Callable[[Pick], tuple[int, int, int]]
"""Draws rows, dims and hidden dims."""


def small(pick: Pick) -> tuple[int, int, int]:
    """A few rows, dims and hidden dims; dims and hidden dims differ."""
    dims = pick.size(2, 7)
    return pick.size(1, 5), dims, pick.one_of(*(n for n in range(2, 13) if n != dims))


def moderate(pick: Pick) -> tuple[int, int, int]:
    """A row, a few or many, of more dims and hidden dims than the smallest tiles have."""
    return pick.one_of(1, 3, 33), pick.upto("features", 64, 70), pick.upto("features", 66, 130)


small_or_moderate = any_of(small, moderate)
"""A few of everything, or as many as kernels have another path for."""


def few_of_many(pick: Pick) -> tuple[int, int, int]:
    """A few of everything, or a few dims and more hidden dims than a vector has."""
    rows, dims, hidden = small(pick)
    return rows, dims, pick.one_of(hidden, pick.upto("features", 66))


def one_row(pick: Pick) -> tuple[int, int, int]:
    """A single row, as a token of a request that generates."""
    _, dims, hidden = small_or_moderate(pick)
    return 1, dims, hidden


def square(pick: Pick) -> tuple[int, int, int]:
    """As many hidden dims as dims, so that every weight fits every place, both ways round."""
    few = pick.size(2, 9)
    dims = pick.one_of(few, few, pick.upto("features", 64), pick.upto("features", 33))
    return pick.size(1, 5), dims, dims


def many_rows(pick: Pick) -> tuple[int, int, int]:
    """Numbers of rows beside those for which kernels change their path."""
    dims = pick.size(2, 5)
    return pick.one_of(3, 1, 2, 5, 8, 9, 31, 33, 65, 66, 130, 257, 513), dims, dims + pick.size(1, 4)


def very_many_rows(pick: Pick) -> tuple[int, int, int]:
    """More rows than 16 bits count, of few dims and hidden dims."""
    return pick.one_of(65537, 66000), 2, 3


def one_short_of_tiles(pick: Pick) -> tuple[int, int, int]:
    """Rows one short of whole tiles, of few dims and hidden dims."""
    dims = pick.size(2, 5)
    return pick.one_of(*ONE_SHORT), dims, dims + pick.size(1, 4)


def rows_of_whole_tiles(pick: Pick) -> tuple[int, int, int]:
    """Rows of whole tiles, or more than a thousand, of few dims and hidden dims."""
    dims = pick.size(2, 5)
    return pick.one_of(128, 512, 1030, 256, 2050), dims, dims + pick.size(1, 4)


def beside_tiles(pick: Pick) -> tuple[int, int, int]:
    """Dims or hidden dims beside the tiles of kernels, the other one small, or both moderate; or dims as models have."""
    size, other = pick.upto("features", *EDGES), pick.upto("features", 3, 2, 9, 33)
    many = min(size, 130)
    wide = pick.upto("features", 1030, 2049)
    return pick.size(1, 4), *pick.one_of((other, size), (size, other), (many, 66), (130, many), (wide, 5))


def beside_odd_tiles(pick: Pick) -> tuple[int, int, int]:
    """Rows, dims and hidden dims, all of them beside tiles that are no powers of two."""
    return pick.one_of(*ODD_TILES), pick.upto("features", *ODD_TILES), pick.upto("features", *ODD_TILES)


def ragged_tiles(pick: Pick) -> tuple[int, int, int]:
    """Rows that products of matrices serve, and few dims and hidden dims, which are no whole vectors."""
    return pick.one_of(66, 33, 130), pick.upto("features", 5, 3, 9, 17), pick.upto("features", 19, 33, 7)


def of_models(pick: Pick) -> tuple[int, int, int]:
    """A token, a few, or a prompt, of more dims and hidden dims than a tile has."""
    return pick.one_of(1, 32, 5), pick.upto("features", 128, 64, 130), pick.upto("features", 256, 512, 384, 260)


def wide_layers(pick: Pick) -> tuple[int, int, int]:
    """A few rows or a block of them, of hundreds of dims and of hidden dims at once, whole tiles or part of one more."""
    dims, hidden = pick.one_of((512, 513), (513, 512), (512, 1024))
    return pick.one_of(3, 33), pick.upto("features", dims), pick.upto("features", hidden)


def many_tiles_each_way(pick: Pick) -> tuple[int, int, int]:
    """A prompt of several tiles of rows, and as many of dims."""
    return pick.one_of(260, 257), pick.upto("features", 300, 260), pick.upto("features", 130, 260)


def squares(pick: Pick) -> tuple[int, int, int]:
    """A few rows of as many dims and hidden dims as small models have."""
    return pick.one_of(4, 9, 2), pick.upto("features", 1024, 1030), pick.upto("features", 1030, 1024)


def wide_both_ways(pick: Pick) -> tuple[int, int, int]:
    """A token, as many as are decoded together, or a prompt, of hundreds of dims and of hidden dims."""
    rows, *features = pick.one_of((1, 512, 1024), (16, 512, 520), (64, 256, 512))
    return rows, *(pick.upto("features", size) for size in features)


def of_many_hidden(pick: Pick) -> tuple[int, int, int]:
    """A row, a few or many, of few dims and as many hidden dims as models have, which are no whole tiles."""
    return pick.one_of(1, 4, 33), pick.size(5, 9), pick.upto("features", 520, 1030, 2050)


def of_thousands_of_dims(pick: Pick) -> tuple[int, int, int]:
    """A row, or a few, of as many dims as the large models have and of few hidden dims."""
    return pick.one_of(1, 3), pick.upto("features", 4096, 5120, 8192), pick.size(5, 9)


def of_thousands_of_hidden(pick: Pick) -> tuple[int, int, int]:
    """A row, or a few, of few dims and of as many hidden dims as the large models have."""
    return pick.one_of(1, 3), pick.size(5, 9), pick.upto("features", 14336, 12289, 16384)


@calls
def swiglu_calls(pick: Pick, sizes: Sizes = small, amplitude: tuple[float, ...] = (1.0, 0.1, 1.5)) -> Call:
    """A gated MLP on normal data, gates of a few units and both signs."""
    dtype, lead = pick("dtypes"), tuple(pick("leading_dims"))
    rows, *features = sizes(pick)
    dims, hidden = (min(size, pick.envelope["features"]) for size in features)
    x = pick.normal(*with_rows(lead, rows), dims, dtype=dtype, amplitude=pick.one_of(*amplitude))
    return pick.call("SwiGLU", dims=dims, hidden_dims=hidden, **weights(pick, dims, hidden, dtype), x=x)


def weights(pick: Pick, dims: int, hidden: int, dtype: str) -> dict[str, np.ndarray]:
    """Three weights that keep the intermediates near 1."""
    return {
        "w_gate": pick.normal(hidden, dims, dtype=dtype, amplitude=2.0 / math.sqrt(dims)),
        "w_up": pick.normal(hidden, dims, dtype=dtype, amplitude=1.2 / math.sqrt(dims)),
        "w_down": pick.normal(dims, hidden, dtype=dtype, amplitude=1.2 / math.sqrt(hidden)),
    }


@calls
def tail_calls(pick: Pick) -> Call:
    """Gates from -20 to -7, where silu is tiny, with an up projection that makes up for it; nothing cancels.

    The first feature of x is 1 and alone decides the gate, the second one decides up.
    """
    dtype, lead = pick("dtypes"), tuple(pick("leading_dims"))
    dims, random = pick.size(2, 5), pick.random
    hidden = pick.one_of(pick.size(1, 6), pick.upto("features", 66))
    gate = pick.one_of(-9.0, -7.0, -12.0, -16.0, -19.0)
    x, w_gate, w_up = np.zeros((*lead, dims)), np.zeros((hidden, dims)), np.zeros((hidden, dims))
    x[..., 0], x[..., 1] = 1.0, random.uniform(0.5, 2.0, lead)
    w_gate[:, 0] = gate + random.uniform(-0.5, 0.5, hidden)
    w_up[:, 1] = random.uniform(0.5, 1.0, hidden) * min(-1.0 / gate * math.exp(-gate), 2e4)
    w_down = random.uniform(0.5, 1.0, (dims, hidden))
    arrays = {"w_gate": w_gate, "w_up": w_up, "w_down": w_down, "x": x}
    return pick.call("SwiGLU", dims=dims, hidden_dims=hidden, **{k: round_to(v, dtype) for k, v in arrays.items()})


@calls
def long_sums(pick: Pick) -> Call:
    """Thousands of hidden features, all of their products positive, of a row or of many as in a prompt."""
    dtype, lead = pick("dtypes"), with_rows(tuple(pick("leading_dims")), pick.one_of(1, 33, 2))
    hidden, random = pick.upto("features", 1024, 2049, 4096, 11008), pick.random
    made = {
        "w_gate": random.uniform(0.5, 1.0, (hidden, 2)),
        "w_up": random.uniform(0.5, 1.0, (hidden, 2)),
        "w_down": random.uniform(0.5, 1.5, (2, hidden)) / math.sqrt(hidden),
        "x": random.uniform(0.5, 1.5, (*lead, 2)),
    }
    return pick.call("SwiGLU", dims=2, hidden_dims=hidden, **{k: round_to(v, dtype) for k, v in made.items()})


@calls
def towering_sums(pick: Pick) -> Call:
    """Results that fit the dtype, of partial sums that pass float16's range on their way; each step is exact in every dtype.

    Every gate and up is 32, where silu is its argument.
    """
    dtype, lead = pick("dtypes"), tuple(pick("leading_dims"))
    row, signs, _ = towering_products(pick, 32.0)
    wide = np.zeros((row.size, len(signs)))
    wide[:, 0] = 8.0
    made = {"w_gate": wide, "w_up": wide, "w_down": signs * row, "x": np.full((*lead, len(signs)), 4.0)}
    made = {name: round_to(value, dtype) for name, value in made.items()}
    return pick.call("SwiGLU", dims=len(signs), hidden_dims=row.size, **made)


ORDINARY = {"SwiGLU": swiglu_calls}
"""The widest calls of each operation."""
