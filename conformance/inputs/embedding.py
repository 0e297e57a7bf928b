"""Calls of the token embedding and of its use as an output head."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from inferspec.conformance.calls import Call
from inferspec.conformance.inputs.linear import towering_products, with_rows
from inferspec.conformance.strategies import EDGES, MODEL_WIDTHS, ODD_TILES, Pick, any_of, calls, in_reach
from inferspec.spec.numerics import f64, round_to

LOOKUP, HEAD = "Embedding", "Embedding.as_linear"

BORDERS = (0, 1, 127, 128, 255, 256, 32767, 32768, 65535, 65536, 65537, 131071, 131072)
"""Ids beside the ends of narrow integers."""

LARGE = (300, 32769, 40000, 65537, 70000, 131073, 151936, 262144)
"""Vocabularies that such ids need."""

_table = {"vocab_size": 3, "dims": 2, "weight": np.ones((3, 2), np.float32)}
EXAMPLES = {
    LOOKUP: Call(LOOKUP, {**_table, "tokens": np.array([0, 2], np.int32)}),
    HEAD: Call(HEAD, {**_table, "x": np.ones((2, 2), np.float32)}),
}

Sizes = Callable[[Pick], tuple[int, int, int]]
"""Draws rows, vocabulary and dims."""


def small(pick: Pick) -> tuple[int, int, int]:
    """A few rows, ids and dims; vocabulary and dims differ."""
    dims = pick.size(2, 9)
    return pick.size(1, 5), pick.one_of(*(n for n in range(3, 13) if n != dims)), dims


def moderate(pick: Pick) -> tuple[int, int, int]:
    """A row, a few or many, of more ids and dims than the smallest tiles have."""
    return pick.one_of(1, 3, 70), pick.upto("vocabulary", 66, 130), pick.upto("features", 64, 130)


small_or_moderate = any_of(small, moderate)
"""A few of everything, or as many as kernels have another path for."""


def one_row(pick: Pick) -> tuple[int, int, int]:
    """A single row of x, as a token of a request that generates."""
    _, vocabulary, dims = small_or_moderate(pick)
    return 1, vocabulary, dims


def square(pick: Pick) -> tuple[int, int, int]:
    """As many ids as dims, so that the table fits both ways round."""
    dims = pick.size(2, 9)
    return pick.size(1, 5), dims, dims


def large(pick: Pick) -> tuple[int, int, int]:
    """A vocabulary past the ends of narrow integers, of few dims."""
    return pick.size(1, 2), pick.upto("vocabulary", *LARGE), pick.size(1, 2)


def beside_tiles(pick: Pick) -> tuple[int, int, int]:
    """Rows, vocabulary or dims beside the tiles of kernels, the others small; or more than a tile of wide rows."""
    size = min(pick.one_of(*EDGES), pick.envelope["vocabulary"], pick.envelope["features"])
    few, other = pick.size(1, 6), pick.one_of(3, 1, 9, 33)
    return pick.one_of(
        (few, size, other),
        (few, other, size),
        (size, few, other),
        (few, size, size),
        (130, other, size),
        (130, 130, other),
        (pick.one_of(1, 33, 70), min(66, pick.envelope["vocabulary"]), pick.upto("features", 1030, 2049)),
    )


def of_thousands(pick: Pick) -> tuple[int, int, int]:
    """A row, a few or many, of thousands of dims or for a vocabulary of thousands, which are no whole tiles."""
    vocabulary, dims = pick.one_of((2050, 9), (7, 1030), (4100, 5), (9, 2050))
    return (
        pick.one_of(1, 3, 33),
        min(vocabulary, pick.envelope["vocabulary"]),
        min(dims, pick.envelope["features"]),
    )


def of_models(pick: Pick) -> tuple[int, int, int]:
    """A token, a few or a prompt, of more dims and ids than a tile has."""
    return pick.one_of(1, 33, 4), pick.upto("vocabulary", 66, 64, 130), pick.upto("features", 256, 512, 1024)


def beside_odd_tiles(pick: Pick) -> tuple[int, int, int]:
    """Rows, vocabulary and dims, all of them beside tiles that are no powers of two."""
    return pick.one_of(*ODD_TILES), pick.upto("vocabulary", *ODD_TILES), pick.upto("features", *ODD_TILES)


def ragged_tiles(pick: Pick) -> tuple[int, int, int]:
    """Rows that products of matrices serve, ids of some tiles, and few features, which are no whole vectors."""
    return pick.one_of(66, 33, 130), pick.upto("vocabulary", 66, 17, 33), pick.upto("features", 5, 3, 1, 33, 9)


def a_token(pick: Pick) -> tuple[int, int, int]:
    """A row, whose logits fill many tiles, or part of one more, some of them as many as a small model has."""
    return 1, pick.upto("vocabulary", 1024, 1000, 2050, 4097), pick.upto("features", 64, 128, 130)


def many_tokens(pick: Pick) -> tuple[int, int, int]:
    """Prompts of a thousand tokens, and more than 16 bits count."""
    return pick.one_of(1025, 2049, 5000, 65537), pick.size(3, 9), pick.size(1, 2)


def wide_rows(pick: Pick) -> tuple[int, int, int]:
    """Rows of as many features as models have, up to thousands."""
    return pick.size(1, 5), pick.size(3, 9), pick.upto("features", 1025, 2049, 4096, 1024, 128, 8192)


def many_tiles_each_way(pick: Pick) -> tuple[int, int, int]:
    """A prompt of several tiles of rows, and as many of ids and of dims."""
    return pick.one_of(260, 257), pick.upto("vocabulary", 300, 260), pick.upto("features", 384, 192)


def squares(pick: Pick) -> tuple[int, int, int]:
    """A few rows, or as many as are decoded together, of as many ids and dims as small models have."""
    return pick.one_of(4, 17, 2), pick.upto("vocabulary", 1030, 1024), pick.upto("features", 1024, 1030)


def wide_both_ways(pick: Pick) -> tuple[int, int, int]:
    """A token, as many as are decoded together, or a prompt, of as many ids and dims as small models have."""
    rows, vocabulary, features = pick.one_of((1, 1030, 2048), (16, 130, 512), (130, 130, 512))
    return rows, pick.upto("vocabulary", vocabulary), pick.upto("features", features)


def a_prompt_of_a_model(pick: Pick) -> tuple[int, int, int]:
    """A prompt of hundreds of tokens, of as many ids, whose rows are those of a small model."""
    return pick.one_of(300, 140), pick.upto("vocabulary", 1000, 300), pick.upto("features", 300, 512)


def of_model_widths(pick: Pick) -> tuple[int, int, int]:
    """Rows as wide as those of models whose widths are no powers of two."""
    return pick.one_of(1, 33, 4), pick.size(3, 9), pick.upto("features", *MODEL_WIDTHS)


def a_long_prompt(pick: Pick) -> tuple[int, int, int]:
    """A prompt of thousands of tokens, of rows wider than a group of threads reaches: many tokens and wide rows at once."""
    return pick.one_of(3300, 3400), pick.size(3, 9), pick.upto("features", 1030, 1028)


def rows_of_prompts(pick: Pick) -> tuple[int, int, int]:
    """Rows of whole tiles, or more than a thousand, of few ids and dims."""
    _, vocabulary, dims = small(pick)
    return pick.one_of(512, 1030, 128, 2050, 256), vocabulary, dims


def past_16_bits(pick: Pick) -> tuple[int, int, int]:
    """More tokens than 16 bits count."""
    return pick.one_of(65537, 66000), pick.size(3, 9), pick.size(1, 2)


def many_rows_wide(pick: Pick) -> tuple[int, int, int]:
    """A prompt of as many rows as a tile has, and a vocabulary of thousands."""
    return pick.one_of(9, 17, 33), pick.upto("vocabulary", 4097, 8193), pick.size(1, 2)


def long_sums(pick: Pick) -> tuple[int, int, int]:
    """Thousands of dims, of a few rows as in decoding or of many as in a prompt."""
    return pick.one_of(1, 33, 2), pick.size(2, 3), pick.upto("features", 1024, 2048, 3001, 4096)


def table(pick: Pick, vocabulary: int, dims: int, dtype: str, amplitude: float) -> dict[str, Any]:
    """The arguments that say which embedding it is."""
    weight = pick.normal(vocabulary, dims, dtype=dtype, amplitude=amplitude)
    return {"vocab_size": vocabulary, "dims": dims, "weight": weight}


def with_borders(pick: Pick, tokens: np.ndarray, vocabulary: int) -> np.ndarray:
    """The tokens, among them all ids beside the ends of narrow integers: sequences as many as before, and longer."""
    asked = [*(token for token in BORDERS if token < vocabulary), vocabulary - 1]
    ids = pick.random.permutation([*asked, *tokens.ravel()])
    batch = tokens.shape[:-1]
    return np.resize(ids, (*batch, -(-len(ids) // math.prod(batch))))


def with_subnormals(x: np.ndarray, seed: int) -> np.ndarray:
    """x with half of its numbers, or so, replaced by subnormal ones of both signs."""
    random, digits = np.random.default_rng(seed), {"float32": 23, "float16": 10, "bfloat16": 7}[x.dtype.name]
    kind = np.uint32 if digits == 23 else np.uint16
    sign = random.integers(0, 2, x.shape) << (8 * x.dtype.itemsize - 1)
    tiny = (random.integers(1, 2**digits, x.shape) | sign).astype(kind).view(x.dtype)
    return np.where(random.random(x.shape) < 0.5, tiny, x)


def of_the_last_id(call: Call) -> Call:
    """The call for one token, the last of the vocabulary."""
    one = of_one_token(call)
    return one.having(tokens=np.full_like(one.arguments["tokens"], call.arguments["vocab_size"] - 1))


def looked_up(call: Call, dtype: str) -> Call:
    """As many rows of the table of a head as x has, looked up by ids of that dtype."""
    table = {name: call.arguments[name] for name in ("vocab_size", "dims", "weight")}
    tokens = np.resize(np.arange(len(call.arguments["weight"])), call.arguments["x"].shape[:-1])
    return Call(LOOKUP, {**table, "tokens": tokens.astype(dtype)}, call.features)


def of_one_token(call: Call) -> Call:
    """The call for the first of its tokens."""
    tokens = call.arguments["tokens"]
    return call.having(tokens=tokens[:1] if tokens.ndim else tokens)


@calls
def lookup_calls(pick: Pick, sizes: Sizes = small, borders: bool = False) -> Call:
    """Any tokens; the last of the leading dims is the length. borders: all ids beside the ends of narrow integers."""
    dtype, lead, rows = pick("dtypes"), tuple(pick("leading_dims")), pick.one_of(3, 1, 2, 5, 7)
    many, vocabulary, dims = sizes(pick)
    tokens = pick.random.integers(0, vocabulary, with_rows(lead, max(rows, many)))
    if borders:
        tokens = with_borders(pick, np.asarray(tokens), vocabulary)
    tokens = np.asarray(tokens).astype(pick("token_dtypes"))
    return pick.call(LOOKUP, **table(pick, vocabulary, dims, dtype, pick.one_of(1.0, 1e-3, 1e3)), tokens=tokens)


@calls
def head_calls(
    pick: Pick, sizes: Sizes = small, amplitude: tuple[float, ...] = (1.0, 1e-2, 3e6), positive: bool = False
) -> Call:
    """The output head on normal data; the last of the leading dims is the number of rows."""
    dtype, lead = pick("dtypes"), tuple(pick("leading_dims"))
    rows, vocabulary, dims = sizes(pick)
    arguments = table(pick, vocabulary, dims, dtype, 1.2 / math.sqrt(dims))
    size = in_reach(pick.one_of(*amplitude), dtype, 30.0)
    x = pick.normal(*with_rows(lead, rows), dims, dtype=dtype, amplitude=size)
    if positive:
        arguments["weight"], x = np.abs(arguments["weight"]), np.abs(x)
    return pick.call(HEAD, **arguments, x=x)


@calls
def towering_heads(pick: Pick) -> tuple[Call, np.ndarray]:
    """The exact lane: (call, the exact result); the logits fit the dtype, the partial sums on the way pass float16's range."""
    dtype, lead = pick("dtypes"), tuple(pick("leading_dims"))
    row, weight, result = towering_products(pick, 2.0**15)
    x = round_to(np.broadcast_to(row, (*lead, row.size)), dtype)
    table = {"vocab_size": len(weight), "dims": row.size, "weight": round_to(weight, dtype)}
    return pick.call(HEAD, **table, x=x), np.broadcast_to(result, (*lead, result.size))


@calls
def reading_heads(pick: Pick, sizes: Sizes = small) -> tuple[Call, np.ndarray]:
    """The exact lane: (call, the exact result). Each row of x asks for one feature of every id, with either sign."""
    dtype, lead = pick("dtypes"), tuple(pick("leading_dims"))
    rows, vocabulary, dims = sizes(pick)
    weight = pick.integers(-120, 120, (vocabulary, dims), dtype)
    feature = pick.random.integers(0, dims, with_rows(lead, rows))
    sign = pick.random.choice([-1.0, 1.0], feature.shape)
    x = ((np.arange(dims) == feature[..., None]) * sign[..., None]).astype(np.float32).astype(weight.dtype)
    expected = f64(weight).T[feature] * sign[..., None]
    return pick.call(HEAD, vocab_size=vocabulary, dims=dims, weight=weight, x=x), expected


ORDINARY = {"Embedding": lookup_calls, "Embedding.as_linear": head_calls}
"""The widest calls of each operation."""
