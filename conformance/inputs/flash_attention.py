"""Calls of flash attention: those of attention, with lengths, masks and data that tell tiles apart."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from inferspec.conformance.calls import Call
from inferspec.conformance.inputs.attention import (
    COMMON,
    attention_calls,
    padded_batches,
    plain_scale,
    routed_attention,
    to_eight,
)
from inferspec.conformance.inputs.attention_lengths import taken
from inferspec.conformance.inputs.attention_masks import encoded
from inferspec.conformance.strategies import Pick
from inferspec.spec.numerics import UNDERFLOW_GAP, f64, numpy_dtype

FLASH = "flash_attention"
TILES = (8, 16, 32, 64, 128)
"""Queries or keys that a real kernel takes at once."""

WALKS = ("rising", "falling", "peak", "valley", "late", "steps")
"""How the logits of a row go along the keys."""

_ones = np.ones((2, 2, 32), np.float32)
EXAMPLES = {FLASH: Call(FLASH, {"query": _ones, "key": _ones, "value": _ones, "scale": _ones.shape[-1] ** -0.5})}

PRODUCTS = 1_500_000
"""Products query · key that an example makes at most (an emulated GPU makes some 60 million a second)."""

flash_calls = attention_calls(operation=FLASH, most_heads=3)
routed_flash = routed_attention(operation=FLASH, most_heads=2)
padded_flash = padded_batches(operation=FLASH)


def beside(pick: Pick, largest: int = 128) -> int:
    """A length just below, at or just above a multiple of a tile."""
    tile = pick.one_of(*(tile for tile in TILES if tile <= largest))
    return tile * pick.size(1, max(min(largest // tile, 3), 1)) + pick.one_of(-1, 0, 1)


def across_tiles(pick: Pick) -> tuple[int, int]:
    """L and S, one or both of them beside a multiple of a tile."""
    kind = pick.one_of("keys", "queries", "both", "square")
    if kind == "keys":
        return pick.size(1, 5), beside(pick)
    if kind == "queries":
        return beside(pick), pick.size(1, 9)
    length = beside(pick, 64)
    return (length, length) if kind == "square" else (length, beside(pick, 64))


def several_tiles(pick: Pick) -> tuple[int, int]:
    """Few queries, and more than a tile of keys whatever its size is."""
    return pick.size(1, 4), pick.one_of(9, 17, 33, 40, 65, 97, 129, 150, 257, 300)


def more_than_a_tile(pick: Pick) -> tuple[int, int]:
    """A token, or some, over more keys than a tile has."""
    return pick.one_of(3, 1, 9, 33), pick.one_of(65, 129, 100, 300)


def one_or_several(pick: Pick) -> tuple[int, int]:
    """A single query, or a few, over a few keys."""
    return pick.one_of(1, 1, 1, pick.size(2, 9)), pick.size(1, 20)


def blocks_of_queries(pick: Pick) -> tuple[int, int]:
    """More than a block of queries and more than a tile of keys, in every relation."""
    length, keys = pick.one_of(9, 33, 40, 65, 70), pick.one_of(9, 33, 40, 65, 70, 100)
    return (keys, keys) if pick.one_of(False, False, True) else (length, keys)


def causal_blocks(pick: Pick) -> tuple[int, int]:
    """Blocks of queries whose causal diagonal enters, crosses or leaves a tile of keys anywhere."""
    length = pick.one_of(2, 7, 8, 9, 31, 32, 33, 40, 64, 65, 70)
    before = pick.one_of(pick.size(0, 70), 0, 1, 8, 31, 32, 33, -pick.size(1, 40))
    return length, max(length + before, 1)


def large_causal_blocks(pick: Pick) -> tuple[int, int]:
    """The same for blocks and tiles of 128; for single heads, as it is dear."""
    length = pick.one_of(127, 128, 129, 140, 200, 257, 300)
    return length, length + pick.one_of(0, 0, 0, 1, -1, pick.size(0, 130), 127, 128, -pick.size(1, 100))


def longer_than_keys(pick: Pick) -> tuple[int, int]:
    """Fewer keys than queries, by some or by whole blocks."""
    length = pick.one_of(9, 2, 33, 40, 65, 70, 130)
    return length, pick.size(1, length - 1)


def short_chunks(pick: Pick) -> tuple[int, int]:
    """A chunk of a prompt after many tiles of keys."""
    length = pick.one_of(32, 33)
    return length, length + 200


def beside_splits(pick: Pick) -> tuple[int, int]:
    """Few queries over so many keys that kernels share them out: beside the numbers from which they do."""
    return pick.one_of(1, 1, 1, 2), pick.upto("keys", 257, 512, 1023, 1024, 1025, 2047, 2048, 2049)


def past_splits(pick: Pick) -> tuple[int, int]:
    """Few queries over more keys than one part of them holds."""
    return pick.one_of(1, 2), pick.upto("keys", 1025, 640, 2049)


def blocks_over_many_keys(pick: Pick) -> tuple[int, int]:
    """Queries of a block over more keys than 15 bits count."""
    return pick.one_of(9, 17), pick.upto("keys", 2**15 + 1000)


@to_eight
def tiled_calls(pick: Pick, shapes: Any = across_tiles, amplitude: tuple[float, ...] = (1.0,)) -> Call:
    """Attention on lengths that tell tiles apart, within PRODUCTS."""
    return flash_calls.build(pick, shapes=lambda pick: fewer(pick, shapes(pick)), amplitude=amplitude, most_heads=2)


@to_eight
def routed_tiles(pick: Pick, shapes: Any = across_tiles) -> tuple[Call, np.ndarray]:
    """The exact lane on lengths that tell tiles apart, within PRODUCTS."""
    return routed_flash.build(pick, shapes=lambda pick: fewer(pick, shapes(pick)))


def fewer(pick: Pick, lengths: tuple[int, int]) -> tuple[int, int]:
    """The lengths, with fewer queries where two key heads of them would pass PRODUCTS."""
    length, keys = lengths
    rows = 2 * pick.features.get("ratios", 1) * math.prod(pick.features.get("leading_dims", ()))
    most = PRODUCTS // (rows * keys * pick.features.get("head_dims", 256))
    return min(length, max(most, 1)), keys


@to_eight
def walked_calls(pick: Pick) -> Call:
    """Attention whose logits rise, fall or jump along the keys, by some units or by many.

    The last feature of the queries is 1/scale, and that of the keys what is added to the logits.
    """
    call = tiled_calls.build(pick, shapes=several_tiles)
    query, key = call.arguments["query"].copy(), call.arguments["key"].copy()
    keys, dim = key.shape[-2:]
    size = pick.one_of(2.0, 4.0, 12.0, 60.0)
    added = trend(pick, keys) * size
    query[..., -1] = math.sqrt(dim)
    key[..., -1] = added.astype(np.float32).astype(key.dtype)
    if pick.one_of(False, True):
        # Every other row goes the other way: rows of a block then need factors of their own.
        query[..., 1::2, -1] *= -1
    return call.having(query=query, key=key, scale=plain_scale(pick, dim))


def trend(pick: Pick, keys: int) -> np.ndarray:
    """-1 … 1 along the keys."""
    walk, line = pick.one_of(*WALKS), np.linspace(-1.0, 1.0, keys)
    if walk == "rising":
        return line
    if walk == "falling":
        return -line
    if walk == "peak":
        return 1 - 2 * np.abs(line)
    if walk == "valley":
        return 2 * np.abs(line) - 1
    if walk == "late":
        return np.where(np.arange(keys) < keys - 1, -1.0, 1.0)
    tile = pick.one_of(*TILES)
    return pick.random.uniform(-1, 1, -(-keys // tile)).repeat(tile)[:keys]


@to_eight
def hidden_tiles(pick: Pick) -> Call:
    """Attention whose mask hides whole tiles, from all rows or from some: the first ones, the last, some in between, all
    but one. Every row sees a key."""
    call = tiled_calls.build(pick, shapes=lambda pick: (pick.one_of(1, 3, 8, 17), pick.one_of(40, 65, 100, 129, 150)))
    full = (*call.arguments["query"].shape[:-1], call.arguments["key"].shape[-2])
    keys, tile = full[-1], pick.one_of(*(tile for tile in TILES if tile < full[-1]))
    tiles = -(-keys // tile)
    one = pick.random.integers(0, tiles)
    hidden = {
        "first": np.arange(tiles) < max(one, 1),
        "last": np.arange(tiles) > min(one, tiles - 2),
        "between": np.arange(tiles) == min(max(one, 1), max(tiles - 2, 1)),
        "others": np.arange(tiles) != one,
    }[pick.one_of("first", "last", "between", "others")]
    visible = ~hidden.repeat(tile)[:keys]
    seen = pick.random.random((full[-2], keys)) < pick.one_of(2.0, 0.3)
    seen[np.arange(full[-2]), pick.random.choice(np.flatnonzero(visible), full[-2])] = True
    rows = visible & seen
    if pick.one_of(True, False):
        rows = rows | (np.arange(full[-2]) % 2 == 1)[:, None]
    return call.having(mask=encoded(rows, call.features["masks"], call.features["dtypes"]))


@to_eight
def emptied_rows(pick: Pick, shapes: Any = across_tiles) -> Call:
    """Attention under a mask that hides every key from some rows, single ones or whole blocks of them, or from all; it may
    be a column, L×1."""
    call = tiled_calls.build(pick, shapes=shapes)
    length, keys = call.arguments["query"].shape[-2], call.arguments["key"].shape[-2]
    visible = pick.random.random((length, keys)) < 0.6
    visible[np.arange(length), pick.random.integers(0, keys, length)] = True
    block = pick.one_of(1, 1, 8, 32)
    empty = (np.arange(length) // block) % 2 == pick.one_of(0, 1)
    if pick.one_of(False, False, False, True):
        empty = np.ones(length, bool)
    visible = ~empty[:, None] if pick.one_of(False, False, False, True) else visible & ~empty[:, None]
    return call.having(mask=encoded(visible, call.features["masks"], call.features["dtypes"]))


@to_eight
def full_dim_calls(pick: Pick) -> tuple[Call, np.ndarray]:
    """The exact lane of head dims: (call, the exact result), with every feature of its own in the result.

    Each query asks for a key by one feature anywhere in the head, the last ones more often.
    """
    dtype, dim, ratio = pick("dtypes"), pick("head_dims"), pick("ratios")
    lead = tuple(pick("leading_dims"))
    pick.features["masks"], scale = "none", plain_scale(pick, dim)
    heads, keys, length = pick.size(1, 2), pick.size(2, 9), pick.size(1, 9)
    length, keys = taken(pick, (length, keys))
    random = pick.random
    # The last 16 features first: past a multiple of 64, 32 or 16 there are no more.
    order = np.concatenate([dim - 1 - random.permutation(16), random.permutation(dim - 16)])
    codes = np.array([random.permutation(order[: max(keys, 16)])[:keys] for _ in range(math.prod(lead) * heads)])
    codes = codes.reshape(*lead, heads, keys)
    wanted = random.integers(0, keys, (*lead, heads * ratio, length))
    level = 2.0 ** math.ceil(math.log2(UNDERFLOW_GAP * math.sqrt(dim)))
    asked = np.take_along_axis(np.repeat(codes, ratio, axis=-2), wanted, axis=-1)
    key = (np.arange(dim) == codes[..., None]).astype(np.float32)
    query = (np.arange(dim) == asked[..., None]).astype(np.float32) * np.float32(level)
    value = pick.integers(-120, 120, (*lead, heads, keys, dim), dtype)
    expected = np.take_along_axis(np.repeat(f64(value), ratio, axis=-3), wanted[..., None], axis=-2)
    kind = numpy_dtype(dtype)
    return pick.call(FLASH, query=query.astype(kind), key=key.astype(kind), value=value, scale=scale), expected


FEW_ROWS = [(), (1,), (2,)]
COMMON_HEADS = {**COMMON, "most_heads": 1, "ratios": [4]}
"""What most models have, small enough for an emulated GPU."""
BATCHES_OF_PROMPTS = padded_flash(
    masks=["bool", "-inf", "lowest", "additive"],
    leading_dims=[(2,), (3,)],
    head_dims=[64, 128, 32, 80],
    ratios=[2, 4, 1, 3],
)

ORDINARY = {FLASH: flash_calls}
"""The widest calls of the operation."""
