"""Calls of attention, its causal mask and multi-head attention."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from inferspec.conformance.calls import Call
from inferspec.conformance.envelope import Envelope, OutsideEnvelope
from inferspec.conformance.inputs.attention_lengths import few_over_many, held, lengths, parts_of_batches, taken
from inferspec.conformance.inputs.attention_masks import ENCODINGS, array_mask, encoded
from inferspec.conformance.inputs.attention_multi_head import multi_head_calls
from inferspec.conformance.inputs.linear import resized, with_few
from inferspec.conformance.strategies import Calls, Pick, calls, in_reach
from inferspec.spec.attention import ScaledDotProductAttention
from inferspec.spec.numerics import UNDERFLOW_GAP, Precision, f64, numpy_dtype

SDPA = "scaled_dot_product_attention"

_ones = np.ones((2, 2, 4), np.float32)
EXAMPLES = {
    SDPA: Call(SDPA, {"query": _ones, "key": _ones, "value": _ones, "scale": _ones.shape[-1] ** -0.5}),
    "causal_mask": Call("causal_mask", {"L": 2, "S": 3, "dtype": "float32"}),
    "MultiHeadAttention": Call(
        "MultiHeadAttention",
        {"hidden_size": 4, "num_heads": 2}
        | dict.fromkeys(("wq", "wk", "wv", "wo"), np.eye(4, dtype=np.float32))
        | dict.fromkeys(("query", "key", "value"), np.ones((1, 2, 4), np.float32)),
    ),
}


def _of_two_heads(hidden: int, envelope: Envelope) -> Call:
    """Multi-head attention of so many features, with two heads of a claimed size, together of another."""
    wide = 2 * next((dim for dim in envelope["head_dims"] if 2 * dim != hidden), 3)
    return EXAMPLES["MultiHeadAttention"].having(
        hidden_size=hidden,
        **dict.fromkeys(("wq", "wk", "wv"), np.ones((wide, hidden), np.float32)),
        wo=np.ones((hidden, wide), np.float32),
        **dict.fromkeys(("query", "key", "value"), np.ones((1, 2, hidden), np.float32)),
    )


OPTIONAL = {
    "MultiHeadAttention": {
        "free_head_dim": {True: partial(_of_two_heads, 4)},
        "odd_hidden_size": {True: partial(_of_two_heads, 5)},
    },
}
"""Choices that may be refused, by their key, each with what makes a call of an envelope that asks for it and for nothing else
that is rare."""


def scales(pick: Pick, size: float, dim: int) -> float | None:
    """None, or a scale of any size, below 0 too where the envelope has that: logits of entries of this size stay sharp."""
    factors = (0.5, 2.0, -1.0, 0.0, 9.0 / size**2, -1.5 * dim**0.5 / size**2)
    factor = pick.one_of(*(f for f in factors if f > 0 or "any" in pick.envelope["scale_signs"]))
    given = pick("scales") == "given"
    pick.features["scale_signs"] = "any" if given and factor <= 0 else "positive"
    return factor * dim**-0.5 if given else None


def plain_scale(pick: Pick, dim: int) -> float | None:
    """None, or, where the envelope has no default, the number that it stands for."""
    pick.features["scales"] = "default" if "default" in pick.envelope["scales"] else "given"
    return None if pick.features["scales"] == "default" else dim**-0.5


def to_eight(build: Callable[..., Any]) -> Calls:
    """Calls with up to eight query heads for each key head, if not said otherwise and where a subject takes as few. Heads, groups and
    pages of the sizes that a test asks for, since they are small or usual, are drawn where it takes any of them."""
    return Calls(build, preferred={"ratios": range(1, 9)}, yielding=["head_dims", "page_sizes", "ratios"])


def of_small_heads(build: Callable[..., Any]) -> Calls:
    """The same, of so many heads or pages that those of other sizes than are asked for would be too large."""
    return to_eight(build).strict()


PROJECTED = ("heads", "slice", "room")
"""How queries, keys and values of models lie: as a projection gives them, as some of the heads of a joint one, in a cache."""


@to_eight
def attention_calls(
    pick: Pick,
    relation: str = "any",
    longest: int = 9,
    amplitude: tuple[float, ...] = (1.0, 0.3, 2.0),
    shapes: Any = None,
    mask_rank: int | None = None,
    most_heads: int = 5,
    batches: tuple[int, ...] = (),
    head_counts: tuple[int, ...] = (),
    operation: str = SDPA,
) -> Call:
    """Attention on normal data, with every kind of heads, lengths, masks and scales that the envelope has.

    shapes: makes L and S of a `Pick`, in place of `relation` and `longest`. most_heads: of key and value, or any of the
    head_counts. batches: batch rows, in place of the leading dims that the envelope has.
    """
    dtype, dim, ratio = pick("dtypes"), pick("head_dims"), pick("ratios")
    lead, heads = tuple(pick("leading_dims")), pick.one_of(*head_counts or range(1, most_heads + 1))
    lead = (pick.one_of(*batches),) if batches else lead
    length, keys = taken(pick, held(pick, shapes(pick)) if shapes else lengths(pick, relation, longest))
    size = pick.one_of(*amplitude)
    query = pick.normal(*lead, heads * ratio, length, dim, dtype=dtype, amplitude=size)
    key = pick.normal(*lead, heads, keys, dim, dtype=dtype, amplitude=size)
    # Past the range of float16 where the dtype reaches.
    loud = in_reach(pick.one_of(1.0, 1.0, 0.01, 3e8), dtype, 3000.0)
    value = pick.normal(*lead, heads, keys, dim, dtype=dtype, amplitude=loud)
    kind = pick("masks")
    mask: Any = {"none": None, "causal": "causal"}.get(kind, "")
    if mask == "":
        mask = array_mask(pick, kind, (*query.shape[:-1], keys), dtype, mask_rank)
    scale = scales(pick, size, dim)
    return pick.call(operation, query=query, key=key, value=value, scale=scale, mask=mask)


@to_eight
def routed_attention(
    pick: Pick,
    relation: str = "any",
    shapes: Any = None,
    most_heads: int = 3,
    head_counts: tuple[int, ...] = (),
    operation: str = SDPA,
    of_tiles: bool = False,
) -> tuple[Call, np.ndarray]:
    """The exact lane: (call, the exact result).

    Keys are rows of a permuted identity, another for each head, so the query's entries are the logits: a visible key
    is asked for with logit g, hidden ones tempt with 2g, the rest have 0, and g·scale is at least UNDERFLOW_GAP. The
    answer is one row of whole numbers, in every dtype. The last feature is left free. A row asks for its last visible key half of
    the time. Of more keys than features (`shapes` may make them) some are zeros, and no row asks for them. of_tiles: rows ask
    in turn for keys at the edges of tiles, with no mask.
    """
    dtype, ratio, lead = pick("dtypes"), pick("ratios"), tuple(pick("leading_dims"))
    dims = [d for d in pick.envelope["head_dims"] if d >= 4]
    if not dims:
        raise OutsideEnvelope("head_dims has none of 4 and more")
    dim = pick.one_of(*dims)
    pick.features["head_dims"], scale = dim, plain_scale(pick, dim)
    heads = pick.one_of(*head_counts) if head_counts else pick.size(1, most_heads)
    length, keys = taken(pick, held(pick, shapes(pick)) if shapes else lengths(pick, relation, longest=min(dim - 1, 9)))
    kind = pick("masks")
    query_heads, random = heads * ratio, pick.random
    asked_for = at_edges(random, dim - 1, keys) if of_tiles else askable(random, dim - 1, length, keys)
    visible = _visible(pick, kind, (*lead, query_heads, length, keys), asked_for)
    # Feature `dim` is beyond the last one: the code of a key that no row asks for.
    order = np.full((math.prod(lead) * heads, keys), dim)
    for of_head in order:
        of_head[asked_for] = random.permutation(dim - 1)[: len(asked_for)]
    order = order.reshape(*lead, heads, keys)
    value = pick.integers(-120, 120, (*lead, heads, keys, dim), dtype)
    key = (np.arange(dim) == order[..., None]).astype(np.float32).astype(numpy_dtype(dtype))
    wanted = (in_turn if of_tiles else wanted_keys)(random, visible, asked_for)
    level = 2.0 ** math.ceil(math.log2(UNDERFLOW_GAP * math.sqrt(dim)))
    tempting = ~visible & (random.random(visible.shape) < 0.5)
    logits = level * (np.arange(keys) == wanted[..., None]) + 2 * level * tempting
    of_query_head = np.repeat(order, ratio, axis=-2)[..., None, :]
    query = np.zeros((*lead, query_heads, length, dim + 1))
    np.put_along_axis(query, np.broadcast_to(of_query_head, logits.shape), logits, axis=-1)
    query = query[..., :dim]
    expected = np.take_along_axis(np.repeat(f64(value), ratio, axis=-3), wanted[..., None], axis=-2)
    mask: Any = "causal" if kind == "causal" else None
    if kind in ENCODINGS:
        mask = encoded(visible, kind, dtype)
    query = query.astype(np.float32).astype(numpy_dtype(dtype))
    return pick.call(operation, query=query, key=key, value=value, scale=scale, mask=mask), expected


def askable(random: np.random.Generator, most: int, length: int, keys: int) -> np.ndarray:
    """The keys that rows may ask for, in order: all, or else as many as there are codes: the first and the last one, those
    on the causal diagonal and beside it, and any others."""
    if keys <= most:
        return np.arange(keys)
    diagonal = random.permutation(np.arange(keys - length, keys + 1))[: most // 4]
    telling = np.concatenate([diagonal, diagonal + 1, [0, keys - 1]])
    telling = np.unique(telling[(telling >= 0) & (telling < keys)])
    others = random.permutation(np.setdiff1d(np.arange(keys), telling))
    return np.sort(np.concatenate([telling, others[: most - len(telling)]]))


def at_edges(random: np.random.Generator, most: int, keys: int) -> np.ndarray:
    """The last keys of tiles and the first of the next, in order, and the last of all. Edges of large tiles are those of the small
    ones too that they are made of: of powers of two as many as may be asked for, and some of 960 and 672 keys, which tiles of
    48, 80, 96, 112, 160 and 192 make."""

    def beside(tile: int) -> np.ndarray:
        edges = np.arange(tile, keys, tile)
        return np.concatenate([edges - 1, edges])

    tiles = (2**power for power in range(3, keys.bit_length()))
    even = next((found for tile in tiles if len(found := beside(tile)) < most * 2 // 3), np.arange(0))
    odd = np.setdiff1d(np.concatenate([beside(960), beside(672)]), even)
    return np.unique(np.concatenate([even, random.permutation(odd)[: most - 1 - len(even)], [keys - 1]]))


def in_turn(random: np.random.Generator, visible: np.ndarray, asked_for: np.ndarray) -> np.ndarray:
    """N..×H_q×L: the keys that may be asked for, one after the other."""
    rows = np.arange(math.prod(visible.shape[:-1])) + random.integers(len(asked_for))
    return asked_for[rows % len(asked_for)].reshape(visible.shape[:-1])


def _visible(pick: Pick, kind: str, shape: tuple[int, ...], asked_for: np.ndarray) -> np.ndarray:
    """N..×H_q×L×S; under an array mask every row sees a key that it may ask for."""
    if kind == "causal":
        return np.broadcast_to(ScaledDotProductAttention().visible(shape[-2], shape[-1]), shape)
    if kind == "none":
        return np.ones(shape, bool)
    visible = pick.random.random(shape) < 0.5
    chosen = asked_for[pick.random.integers(0, len(asked_for), shape[:-1])]
    return visible | (np.arange(shape[-1]) == chosen[..., None])


def wanted_keys(random: np.random.Generator, visible: np.ndarray, asked_for: np.ndarray) -> np.ndarray:
    """N..×H_q×L: a visible key for each row (key 0 where there is none), the last one half of the time."""
    visible = visible & np.isin(np.arange(visible.shape[-1]), asked_for)
    score = np.where(visible, random.random(visible.shape), -1.0)
    last = visible.shape[-1] - 1 - np.argmax(visible[..., ::-1], axis=-1)
    return np.where(random.random(last.shape) < 0.5, last, np.argmax(score, axis=-1)) * visible.any(axis=-1)


def reachable(size: float, call: Call, precision: Precision) -> float:
    """The size, or as much of it as keeps logits of class native exact enough in half dtypes (float16 ends at 65504)."""
    if precision is not Precision.NATIVE or call.features["dtypes"] == "float32":
        return size
    scale, dim = call.arguments.get("scale"), call.arguments["query"].shape[-1]
    steep = 1.0 if scale is None else abs(scale) * math.sqrt(dim)
    return min(size, 1e3 / max(steep, 1.0))


def louder(call: Call, positions: np.ndarray, precision: Precision) -> Call:
    """The same call with large finite keys and values at some positions: logits of either sign, 2e4 and more, or as much of
    it as class native has room for. -1e9, which many add to hide a key, still hides them."""
    size = reachable(2e4, call, precision)
    if precision is Precision.NATIVE and call.features["dtypes"] == "float16":
        # Products with them stay finite before they are scaled, too: infinity less infinity would be NaN.
        size = min(size, 3e4 / max(1.0, np.abs(f64(call.arguments["query"]).sum(axis=-1)).max(initial=0.0)))

    def loud(x: np.ndarray) -> np.ndarray:
        return np.where(positions[:, None], size, f64(x)).astype(np.float32).astype(x.dtype)

    return call.having(key=loud(call.arguments["key"]), value=loud(call.arguments["value"]))


def with_rows_of_zeros(call: Call, *parts: str) -> Call:
    """The call with every other row of some arguments, the first among them, all zeros."""
    zeros = {part: call.arguments[part].copy() for part in parts}
    for x in zeros.values():
        x[..., ::2, :] = 0
    return call.having(**zeros)


def with_nan(call: Call, part: str) -> Call:
    """The call with one number of the query, the key or the value NaN, or one in each of two of its rows."""
    return call.having(**{part: with_few(call.arguments[part], np.nan, call.seed or 0)})


def with_nan_in_sight(call: Call, part: str) -> Call:
    """The same under an array mask that hides no key in which there is a NaN."""
    call = with_nan(call, part)
    if part == "query" or call.arguments["mask"].shape[-1] == 1:
        return call
    broken = np.isnan(f64(call.arguments[part])).any(axis=-1)
    mask = call.arguments["mask"].copy()
    mask[..., broken.reshape(-1, broken.shape[-1]).any(axis=0)] = mask.dtype == bool
    return call.having(mask=mask)


def shifted(call: Call, far: float, precision: Precision) -> Call:
    """The last feature, which no key needs, moves all logits of a row by the same: near `far` and -far in turn."""
    query, key = call.arguments["query"].copy(), call.arguments["key"].copy()
    step = 2.0 ** np.round(np.log2(np.sqrt(reachable(abs(far), call, precision) * np.sqrt(query.shape[-1]))))
    rows = np.where(np.arange(query.shape[-2]) % 2, -1.0, 1.0)
    query[..., -1], key[..., -1] = np.sign(far) * rows * step, step
    return call.having(query=query, key=key)


def towering(call: Call, power: int = 25) -> Call:
    """The same call whose queries are 2^power times as loud, and some more: logits of which float32 holds no fractions, of 1e9
    and more by default."""
    query = f64(call.arguments["query"]) * 2.0**power * 1.28125
    return call.having(query=query.astype(np.float32).astype(call.arguments["query"].dtype))


DEPTHS = (25, 85)
"""Powers of two by which queries are louder whose logits are to lie below any number that a maximum may start at."""

SPOILT = ("name", "mask", "heads", "dims", "values")


def of_other_values(call: Call, more: int) -> Call:
    """The call with values of more features than keys have, or of fewer."""
    value = call.arguments["value"]
    wide = np.concatenate([value, -2 * value[..., ::-1], value], axis=-1)
    return call.having(value=wide[..., : max(value.shape[-1] + more, 1)])


def spoilt(call: Call, bad: str) -> Call:
    """The same call with an argument that must be refused, one of SPOILT."""
    query, key, value = (call.arguments[name] for name in ("query", "key", "value"))
    if bad == "name":
        return call.having(mask="sliding")
    if bad == "mask":
        shape = (query.shape[-2] + 1, key.shape[-2] + 2)
        return call.having(mask=np.zeros(shape, np.float32).astype(numpy_dtype(call.features["dtypes"])))
    if bad == "heads":
        return call.having(
            query=query[..., :1, :, :].repeat(3, -3),
            key=key[..., :1, :, :].repeat(2, -3),
            value=value[..., :1, :, :].repeat(2, -3),
        )
    if bad == "dims":
        return call.having(
            key=np.concatenate([key, key[..., :1]], -1), value=np.concatenate([value, value[..., :1]], -1)
        )
    return call.having(value=np.concatenate([value, value[..., :1, :]], -2))


def with_a_value_less(call: Call) -> Call:
    """The call with a value less than keys: a library may leave out the key."""
    return call.having(value=call.arguments["value"][..., 1:, :])


TOO_MANY = ("keys", "rows")
"""What a mask may have more of than there are, in vain."""


def with_larger_mask(call: Call, axis: str) -> Call:
    """The call with a mask, in the encoding that it has, that hides nothing and has more of one of TOO_MANY than there are: a
    library may cut it. There are two queries and two keys at least: one alone is repeated where arrays are added."""
    twice = {name: call.arguments[name].repeat(2, -2) for name in ("query", "key", "value")}
    length, keys = twice["query"].shape[-2], twice["key"].shape[-2]
    shape = (length, keys + 2) if axis == "keys" else (length + 1, keys)
    mask = encoded(np.ones(shape, bool), call.features["masks"], call.features["dtypes"])
    return call.having(**twice, mask=mask)


def with_mask_of_key_heads(call: Call) -> Call:
    """The call with four heads of queries for two of keys, and with a mask, in the encoding that it has, that hides nothing and is
    of as many heads as the keys: a library may repeat it as it repeats them."""
    heads = {"query": 4, "key": 2, "value": 2}
    several = {name: call.arguments[name][..., :1, :, :].repeat(number, -3) for name, number in heads.items()}
    shape = (2, several["query"].shape[-2], several["key"].shape[-2])
    mask = encoded(np.ones(shape, bool), call.features["masks"], call.features["dtypes"])
    return call.having(**several, mask=mask)


COMMON = {"head_dims": [64, 128], "ratios": [4, 8, 1], "leading_dims": [(), (1,)]}
"""What most models have: kernels are written for it first."""

ONE_HEAD = {"most_heads": 1, "head_dims": [32, 40, 64], "ratios": [1, 2], "leading_dims": [(), (1,)]}
"""For dear shapes: one key head."""


@to_eight
def padded_batches(pick: Pick, operation: str = SDPA) -> Call:
    """Prompts of several lengths that are computed together: the mask of each, for all of its heads, hides the padding
    before its beginning, and what comes after each query too where it is B×1×L×S and not B×1×1×S.

    An additive mask that hides nothing has other numbers for each of them.
    """
    call = attention_calls.build(pick, shapes=parts_of_batches, amplitude=(1.0,), most_heads=2, operation=operation)
    query, keys = call.arguments["query"], call.arguments["key"].shape[-2]
    batch, length, causal = query.shape[0], query.shape[-2], pick.one_of(False, True)
    kind, dtype = call.features["masks"], call.features["dtypes"]
    if kind == "additive":
        return call.having(mask=pick.normal(batch, 1, length if causal else 1, keys, dtype=dtype, amplitude=1.5))
    visible = np.arange(keys) >= pick.random.integers(0, keys, (batch, 1, 1, 1))
    if causal:
        visible = visible & ScaledDotProductAttention().visible(length, keys)
    return call.having(mask=encoded(visible, kind, dtype))


@to_eight
def full_masks(pick: Pick, operation: str = SDPA) -> Call:
    """A token or a few over keys that kernels share out, under a mask in which each head of each sequence has rows of its own."""
    call = attention_calls.build(pick, shapes=few_over_many, amplitude=(1.0,), most_heads=2, operation=operation)
    full = (*call.arguments["query"].shape[:-1], call.arguments["key"].shape[-2])
    visible = pick.random.random(full) < 0.5
    visible[..., pick.size(0, full[-1] - 1)] = True
    return call.having(mask=encoded(visible, call.features["masks"], call.features["dtypes"]))


@of_small_heads
def many_rows(pick: Pick, length: int = 1) -> Call:
    """More heads of batch rows than 16 bits count, each of a query and a few keys; or of more queries, and a key."""
    keys = pick.size(2, 3) if length == 1 else 1
    call = attention_calls.build(pick, shapes=lambda pick: (length, keys), most_heads=1)
    rows = -(-65537 // call.arguments["query"].shape[-3])
    return call.having(**{name: resized(call.arguments[name], 0, rows) for name in ("query", "key", "value")})


@of_small_heads
def rows_past_16_bits(pick: Pick, operation: str = SDPA) -> tuple[Call, np.ndarray]:
    """The exact lane: (call, the exact result). More batch rows of one head than 16 bits count, each of a query and a key."""
    call, expected = routed_attention.build(pick, shapes=lambda pick: (1, 1), most_heads=1, operation=operation)
    rows = pick.one_of(65537, 65600)
    grown = {name: resized(call.arguments[name], 0, rows) for name in ("query", "key", "value")}
    return call.having(**grown), resized(expected, 0, rows)


def as_heads(call: Call, expected: np.ndarray) -> tuple[Call, np.ndarray]:
    """The call whose batch rows of one head are the heads of one batch row, and its result."""
    turned = {name: call.arguments[name].swapaxes(0, 1).copy() for name in ("query", "key", "value")}
    return call.having(**turned), expected.swapaxes(0, 1)


@calls
def mask_calls(pick: Pick, empty: bool = False, many: bool = False, chunk: bool = False) -> Call:
    """causal_mask of any lengths. many: of thousands of keys; chunk: of a prompt, or of a part of one after a context."""
    low = 0 if empty else 1
    longer = (33, 65, 130, 257, 300, 1030)
    length = pick.one_of(pick.size(low, 12), pick.size(low, 12), pick.one_of(*longer))
    keys = pick.one_of(pick.size(low, 12), pick.size(low, 12), pick.one_of(*longer))
    if many:
        length, keys = pick.size(2, 12), pick.one_of(4100, 4097, 8200)
    if chunk:
        length = pick.one_of(64, 65, 130)
        keys = length + pick.one_of(200, 0, 257)
    length, keys = taken(pick, (length, keys))
    return pick.call("causal_mask", L=length, S=keys, dtype=pick("dtypes"))


BATCHES_OF_PROMPTS = padded_batches(
    masks=["bool", "-inf", "lowest", "additive"],
    leading_dims=[(2,), (5,)],
    head_dims=[64, 128, 8, 2],
    ratios=[2, 4, 1, 3],
)

ORDINARY = {SDPA: attention_calls, "causal_mask": mask_calls, "MultiHeadAttention": multi_head_calls}
"""The widest calls of each operation."""
