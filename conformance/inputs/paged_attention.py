"""Calls of paged attention: contexts drawn as rows of tokens, then laid into the pages of a pool."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from inferspec.conformance.calls import Call
from inferspec.conformance.envelope import Envelope, OutsideEnvelope
from inferspec.conformance.inputs.attention import (
    COMMON,
    askable,
    of_small_heads,
    plain_scale,
    scales,
    to_eight,
    wanted_keys,
)
from inferspec.conformance.inputs.flash_attention import trend
from inferspec.conformance.inputs.linear import with_few
from inferspec.conformance.strategies import ODD_TILES, Pick, in_reach
from inferspec.spec.attention import ScaledDotProductAttention
from inferspec.spec.numerics import UNDERFLOW_GAP, f64, largest, numpy_dtype

PAGED = "paged_attention"
STALE = {"nan": np.nan, "inf": np.inf, "-inf": -np.inf, "largest": 0.0}
"""What recycled pages may hold; "largest" is the dtype's largest number."""

MORE_PAGES = 9
"""Pages of no row that a pool may have beside those of rows."""

ORDERS = ("scattered", "reversed", "in order", "scattered")
"""How the pages of rows may follow each other in the pool."""

_ones = np.ones((2, 2, 4, 32), np.float32)
EXAMPLES = {
    PAGED: Call(
        PAGED,
        {
            "query": np.ones((1, 2, 1, 32), np.float32),
            "key_pages": _ones,
            "value_pages": _ones,
            "block_table": np.array([[1, 0]], np.int32),
            "context_lens": np.array([5], np.int32),
            "page_size": 4,
            "scale": _ones.shape[-1] ** -0.5,
        },
    )
}


def _of_two_tokens(envelope: Envelope) -> Call:
    """Three queries behind which there are but two tokens, where several are claimed."""
    size, dim, length = (
        envelope["page_sizes"][0],
        envelope["head_dims"][0],
        3 if "several" in envelope["queries"] else 1,
    )
    pages = np.ones((2, 2, size, dim), np.float32)
    query, lens = np.ones((1, 2, length, dim), np.float32), np.array([2], np.int32)
    return EXAMPLES[PAGED].having(
        query=query, key_pages=pages, value_pages=pages, context_lens=lens, page_size=size, scale=dim**-0.5
    )


OPTIONAL = {PAGED: {"more_queries": {True: _of_two_tokens}}}
"""Choices that may be refused, by their key, each with what makes a call of an envelope that asks for it and for nothing else
that is rare."""

Contexts = Callable[[Pick, int, int], int]
"""Makes the length of one row's context of the page size and L."""


def any_context(pick: Pick, page_size: int, length: int) -> int:
    """Within a few pages, its end anywhere or beside the end of a page; no shorter than L."""
    if pick.one_of(False, True):
        return at_page_end(pick, page_size, length)
    return pick.size(length, max(length, min(3 * page_size, 40)))


def at_page_end(pick: Pick, page_size: int, length: int) -> int:
    """One token before the end of a page, at it, or one after it; no shorter than L."""
    first = -(-(length + 1) // page_size)
    pages = first + pick.size(0, max(min(60 // page_size, 5) - 1, 0))
    return page_size * pages + pick.one_of(0, -1, 1)


def long_context(pick: Pick, page_size: int, length: int) -> int:
    """Several pages of most sizes."""
    return max(length, pick.one_of(33, 65, 100, 129, 150, 200, 257))


def past_a_large_page(pick: Pick, page_size: int, length: int) -> int:
    """Into the second or the third page, by a token, by some or by most of it."""
    pages = pick.one_of(1, 2) if page_size < 256 else 1
    return max(length, page_size * pages + pick.one_of(page_size // 4, 1, page_size - 1))


def hundreds_of_tokens(pick: Pick, page_size: int, length: int) -> int:
    """A context of many pages, no shorter than L."""
    return max(length, pick.upto("context", 256, 300, 257))


def whole_blocks(pick: Pick) -> int:
    """Queries for whole blocks, or for part of one more."""
    return pick.one_of(16, 64, 33, 32)


def around_splits(pick: Pick, page_size: int, length: int) -> int:
    """Of rows that stand beside each other: none, a few tokens, whole pages of them, or more than one part that kernels share out."""
    return pick.upto("context", 600, 0, 1024, 17, 0, 520)


def thousands_of_tokens(pick: Pick, page_size: int, length: int) -> int:
    """As a conversation has them."""
    return pick.upto("context", 1024, 2049, 1025, 1500, 2048)


def split_context(pick: Pick, page_size: int, length: int) -> int:
    """So many tokens that kernels share them out: beside the numbers from which they do."""
    return pick.upto("context", 255, 256, 257, 511, 512, 513, 1023, 1024, 1025, 2049)


def beside_odd_tiles(pick: Pick, page_size: int, length: int) -> int:
    """Beside tiles that are no powers of two."""
    return max(length, pick.upto("context", *ODD_TILES))


def past_splits(pick: Pick, page_size: int, length: int) -> int:
    """More tokens than one part of a context that kernels share out."""
    return pick.upto("context", 1025, 640, 2049)


def very_long_context(pick: Pick, page_size: int, length: int) -> int:
    """Past all that a kernel may have room for at once."""
    return pick.upto("context", 4097, 8193, 12_000)


def tens_of_thousands(pick: Pick, page_size: int, length: int) -> int:
    """More tokens than 15 or 16 bits count."""
    return pick.upto("context", 2**15 + 1000, 2**16 + 50)


def short_context(pick: Pick, page_size: int, length: int) -> int:
    """Empty, or shorter than L where that is claimed, or neither."""
    fewest = 0 if True in pick.envelope["more_queries"] else length
    return pick.one_of(0, pick.size(fewest, length), pick.size(fewest, length + page_size))


def mixed_contexts(pick: Pick, page_size: int, length: int) -> int:
    """Of any length; not a choice of its own, so that there may be many rows."""
    return int(pick.random.integers(length, 60))


def within_a_page(pick: Pick, page_size: int, length: int) -> int:
    """Of a row that has just begun; not a choice of its own, so that there may be many rows."""
    return int(pick.random.integers(1, page_size + 1))


def short_beside_long(pick: Pick, page_size: int, length: int) -> int:
    """Rows that have just begun, beside some that have gone on for long."""
    return max(length, pick.upto("context", 1030, 1, 17, 600))


def after_a_prompt(pick: Pick, page_size: int, length: int) -> int:
    """The chunk alone, or after few or many tokens."""
    return length + pick.one_of(0, 900, 1, 257)


def small_chunk(pick: Pick) -> int:
    return pick.size(2, 6)


def a_draft(pick: Pick) -> int:
    """The tokens of a draft, to be verified together."""
    return pick.one_of(5, 2, 8, 3)


def a_draft_or_chunk(pick: Pick) -> int:
    """A draft, or the part of a prompt that fills a block or more."""
    return pick.one_of(5, 33, 8, 17)


def block_of_queries(pick: Pick) -> int:
    """As in a chunk of a prompt, beside a block of a kernel."""
    return pick.one_of(2, 7, 8, 9, 17, 31, 33)


def ragged_chunk(pick: Pick) -> int:
    """Queries that products of matrices serve, and no whole tiles of them."""
    return pick.one_of(17, 33, 19)


def blocks_of_queries(pick: Pick) -> int:
    """More than a block or two of a kernel."""
    return pick.one_of(300, 130, 300)


def _queries(pick: Pick, chunk: Callable[[Pick], int]) -> int:
    """L, as in decoding or in a chunk."""
    return 1 if pick("queries") == "one" else min(chunk(pick), pick.envelope["context"])


def _claimed(pick: Pick, tokens: int, page_size: int, rows: int) -> int:
    """A row's tokens, or as many as the envelope has: of a context, and in all the pages of so many rows."""
    tokens, pages = min(tokens, pick.envelope["context"]), pick.envelope["pages"]
    if rows * -(-tokens // page_size) + MORE_PAGES <= pages:
        return tokens
    own = (pages - MORE_PAGES) // rows
    if not own:
        raise OutsideEnvelope(f"pages only up to {pages}, the test needs {rows + MORE_PAGES}")
    return min(tokens, own * page_size)


@to_eight
def paged_calls(
    pick: Pick,
    contexts: Contexts = any_context,
    chunk: Callable[[Pick], int] = small_chunk,
    amplitude: tuple[float, ...] = (1.0, 0.3, 2.0),
    rows: tuple[int, int] = (1, 4),
    most_heads: int = 2,
    shared: bool = False,
) -> Call:
    """Paged attention on normal data, with every kind of heads, lengths, pages and scales that the envelope has.

    contexts: how long each row's is; chunk: makes L where it is more than 1; rows: fewest and most of a batch; most_heads: of key and value; shared: whether rows have
    their first pages in common, half of those that are full or all.
    """
    dtype, page_size, dim, ratio, heads, batch = _sizes(pick, rows, most_heads)
    length = _queries(pick, chunk)
    lens = [_claimed(pick, contexts(pick, page_size, length), page_size, batch) for _ in range(batch)]
    pick.features["more_queries"] = any(0 < n < length for n in lens)
    size = pick.one_of(*amplitude)
    # Past the range of float16 where the dtype reaches.
    loud = in_reach(pick.one_of(1.0, 1.0, 0.01, 3e8), dtype, 3000.0)
    keys = [pick.normal(heads, n, dim, dtype=dtype, amplitude=size) for n in lens]
    values = [pick.normal(heads, n, dim, dtype=dtype, amplitude=loud) for n in lens]
    query = pick.normal(batch, heads * ratio, length, dim, dtype=dtype, amplitude=size)
    scale = scales(pick, size, dim)
    whole = min(lens) // page_size
    prefix = pick.one_of(whole - whole // 2, whole) if shared else 0
    for more in (keys, values):
        for row in more[1:]:
            row[:, : prefix * page_size] = more[0][:, : prefix * page_size]
    old = [pick.normal(heads, page_size, dim, dtype=dtype, amplitude=a) for a in (size, loud)]
    mask = {"causal": "causal", "none": None}[pick("masks")]
    return laid(pick, query, keys, values, page_size, old, prefix=prefix, scale=scale, mask=mask)


def _sizes(pick: Pick, rows: tuple[int, int], most_heads: int = 2) -> tuple[str, int, int, int, int, int]:
    """Dtype, page size, head dim, ratio, key heads and batch: fewer heads and rows where pages are large."""
    dtype, page_size, dim, ratio = pick("dtypes"), pick("page_sizes"), pick("head_dims"), pick("ratios")
    large = page_size * dim > 4096
    return (
        dtype,
        page_size,
        dim,
        ratio,
        pick.size(1, 1 if large else most_heads),
        pick.size(rows[0], min(rows[1], max(rows[0], 2)) if large else rows[1]),
    )


def laid(
    pick: Pick,
    query: np.ndarray,
    keys: Sequence[np.ndarray],
    values: Sequence[np.ndarray],
    page_size: int,
    old: Sequence[np.ndarray],
    *,
    prefix: int = 0,
    scale: float | None = None,
    mask: str | None = "causal",
    orders: Sequence[str] = ORDERS,
) -> Call:
    """The call whose rows have these tokens, each H×S×D, laid into pages of a pool.

    old: what is left of earlier tokens in every page of keys and of values, H×page_size×D. prefix: how many pages all
    rows share. orders: in which the pages of the pool are taken. Entries of the table past a row's last page name some page
    of the pool.
    """
    lens = np.array([row.shape[1] for row in keys])
    counts = -(-lens // page_size)
    own = counts - prefix
    pages = max(prefix + int(own.sum()) + pick.one_of(1, 0, 2, 4), 1)
    ids = {
        "scattered": pick.random.permutation(pages),
        "reversed": np.arange(pages)[::-1],
        "in order": np.arange(pages),
    }[pick.one_of(*orders)]
    table = pick.random.integers(0, pages, (len(lens), max(int(counts.max(initial=0)) + pick.one_of(1, 0, 2, 3), 1)))
    pools = [np.repeat(x[None], pages, axis=0) for x in old]
    taken = prefix
    for row, count in enumerate(counts):
        table[row, :prefix] = ids[:prefix]
        table[row, prefix:count] = ids[taken : taken + count - prefix]
        # Where another row's length is read with this row's pages, none of them comes twice.
        if len(others := np.setdiff1d(ids, table[row, :count])):
            table[row, count:] = np.resize(pick.random.permutation(others), table.shape[1] - count)
        taken += count - prefix
        for pool, tokens in zip(pools, (keys[row], values[row]), strict=True):
            for number in range(count):
                part = tokens[:, number * page_size : (number + 1) * page_size]
                pool[table[row, number], :, : part.shape[1]] = part
    return pick.call(
        PAGED,
        query=query,
        key_pages=pools[0],
        value_pages=pools[1],
        block_table=table.astype(pick("table_dtypes")),
        context_lens=lens.astype(pick.one_of(*pick.envelope["table_dtypes"])),
        page_size=page_size,
        scale=scale,
        mask=mask,
    )


@to_eight
def routed_pages(
    pick: Pick,
    contexts: Contexts = any_context,
    chunk: Callable[[Pick], int] = small_chunk,
    rows: tuple[int, int] = (1, 4),
    key_heads: int = 0,
    orders: Sequence[str] = ORDERS,
) -> tuple[Call, np.ndarray]:
    """The exact lane: (call, the exact result).

    As in `routed_attention`, a query asks for one token that it sees with a logit of at least UNDERFLOW_GAP, and for
    some that it does not see with twice that. What is left in the pages of earlier tokens answers every query louder
    still, with values of its own. key_heads: how many there are, one or two by default. orders: in which the pages of the pool
    are taken.
    """
    dtype, page_size, dim, ratio, heads, batch = _sizes(pick, rows)
    heads = key_heads or heads
    scale = plain_scale(pick, dim)
    length, random, kind = _queries(pick, chunk), pick.random, numpy_dtype(dtype)
    mask = {"causal": "causal", "none": None}[pick("masks")]
    level = 2.0 ** math.ceil(math.log2(UNDERFLOW_GAP * math.sqrt(dim)))
    keys, values = [], []
    query, expected = np.zeros((2, batch, heads * ratio, length, dim))
    for row in range(batch):
        tokens = _claimed(pick, contexts(pick, page_size, length), page_size, batch)
        value = pick.integers(-120, 120, (heads, tokens, dim), dtype)
        codes = np.full((heads, tokens), dim)
        asked_for = askable(random, dim - 1, length, tokens)
        for of_head in codes:
            of_head[asked_for] = random.permutation(dim - 1)[: len(asked_for)]
        keys.append((np.arange(dim) == codes[..., None]).astype(kind))
        values.append(value)
        if tokens == 0:
            continue
        visible = ScaledDotProductAttention().visible(length, tokens) if mask else np.ones((length, tokens), bool)
        visible = np.broadcast_to(visible, (heads * ratio, length, tokens))
        wanted = wanted_keys(random, visible, asked_for)
        tempting = ~visible & (random.random(visible.shape) < 0.5)
        logits = level * (np.arange(tokens) == wanted[..., None]) + 2 * level * tempting
        place = np.broadcast_to(np.repeat(codes, ratio, axis=0)[:, None], logits.shape)
        asking = np.zeros((heads * ratio, length, dim + 1))
        np.put_along_axis(asking, place, logits, axis=-1)
        query[row] = asking[..., :dim]
        answer = np.take_along_axis(np.repeat(f64(value), ratio, axis=0), wanted[..., None], axis=-2)
        expected[row] = np.where(visible.any(axis=-1, keepdims=True), answer, 0.0)
    old = [np.full((heads, page_size, dim), number).astype(kind) for number in (4.0, 192.0)]
    query = query.astype(np.float32).astype(kind)
    return laid(pick, query, keys, values, page_size, old, scale=scale, mask=mask, orders=orders), expected


@to_eight
def walked_pages(pick: Pick) -> Call:
    """Paged attention whose logits rise, fall or jump along the context, by some units or by many."""
    dtype, page_size, dim, ratio, heads, batch = _sizes(pick, (1, 2))
    scale = plain_scale(pick, dim)
    length = _queries(pick, small_chunk)
    query = pick.normal(batch, heads * ratio, length, dim, dtype=dtype)
    query[..., -1] = math.sqrt(dim)
    keys, values = [], []
    for _ in range(batch):
        tokens = _claimed(pick, long_context(pick, page_size, length), page_size, batch)
        key = pick.normal(heads, tokens, dim, dtype=dtype)
        key[..., -1] = (trend(pick, tokens) * pick.one_of(2.0, 4.0, 12.0, 60.0)).astype(np.float32).astype(key.dtype)
        keys.append(key)
        values.append(pick.normal(heads, tokens, dim, dtype=dtype))
    old = [pick.normal(heads, page_size, dim, dtype=dtype) for _ in range(2)]
    mask = {"causal": "causal", "none": None}[pick("masks")]
    return laid(pick, query, keys, values, page_size, old, scale=scale, mask=mask)


@of_small_heads
def large_pools(pick: Pick) -> Call:
    """Paged attention in a pool with more pages than 16 bits count; rows use first, last and middle ones.

    Pages that lie 2^15 or 2^16 apart, and those of no row, hold other tokens.
    """
    dtype, dim, page_size = pick("dtypes"), pick("head_dims"), pick("page_sizes")
    pages = pick.upto("pages", 2**16 + 50)
    ratio, length = pick("ratios"), _queries(pick, small_chunk)
    mask = {"causal": "causal", "none": None}[pick("masks")]
    scale = plain_scale(pick, dim)
    batch, width = 2, 7
    some = pick.normal(2, 997, 1, page_size, dim, dtype=dtype)
    key_pages, value_pages = (np.resize(x, (pages, 1, page_size, dim)) for x in some)
    parts = ((pages - 40, pages, 3), (pages // 2, pages - 50, 2), (0, pages // 2, 2))
    # A row that names a page twice may be refused.
    rows = [[low + pick.random.permutation(high - low)[:count] for low, high, count in parts] for _ in range(batch)]
    table = np.stack([np.concatenate(row) for row in rows])
    return pick.call(
        PAGED,
        query=pick.normal(batch, ratio, length, dim, dtype=dtype),
        key_pages=key_pages,
        value_pages=value_pages,
        block_table=pick.random.permuted(table, axis=1).astype(pick("table_dtypes")),
        context_lens=np.full(batch, width * page_size).astype(pick.features["table_dtypes"]),
        page_size=page_size,
        scale=scale,
        mask=mask,
    )


# The same call, otherwise laid out.


def with_another_table(call: Call, seed: int) -> Call:
    """The call whose table names other pages of the pool, in no row one of them twice."""
    table, pages = call.arguments["block_table"], len(call.arguments["key_pages"])
    further = np.random.default_rng(seed).integers(1, max(pages, 2))
    return call.having(block_table=((table.astype(np.int64) + further) % pages).astype(table.dtype))


def written(call: Call) -> np.ndarray:
    """P×page_size: which slots hold a token of some row."""
    a, page_size = call.arguments, call.arguments["page_size"]
    slots = np.zeros((a["key_pages"].shape[0], page_size), bool)
    for table, length in zip(a["block_table"], a["context_lens"].tolist(), strict=True):
        positions = np.arange(length)
        slots[table[positions // page_size].astype(np.int64), positions % page_size] = True
    return slots


def with_nan(call: Call, part: str) -> Call:
    """The call with a number of the query NaN, or one of a key or a value that every query of its row sees."""
    a, random = call.arguments, np.random.default_rng(call.seed or 0)
    if part == "query":
        return call.having(query=with_few(a["query"], np.nan, call.seed or 0))
    pages, row = a[part].copy(), random.integers(len(a["query"]))
    position = random.integers(int(a["context_lens"][row]) - a["query"].shape[2] + 1)
    page = int(a["block_table"][row, position // a["page_size"]])
    pages[page, random.integers(pages.shape[1]), position % a["page_size"], random.integers(pages.shape[3])] = np.nan
    return call.having(**{part: pages})


def unused(call: Call) -> np.ndarray:
    """B×M: which entries of the table no token needs."""
    a = call.arguments
    counts = -(-a["context_lens"].astype(np.int64) // a["page_size"])
    return np.arange(a["block_table"].shape[1]) >= counts[:, None]


def poisoned(call: Call, stale: str, pools: Sequence[str] = ("key_pages", "value_pages")) -> Call:
    """The same call with something else in every slot that holds no token, one of STALE."""
    empty = ~written(call)[:, None, :, None]

    def spoilt(pool: np.ndarray) -> np.ndarray:
        number = largest(call.features["dtypes"]) if stale == "largest" else STALE[stale]
        return np.where(empty, np.asarray(number, np.float32).astype(pool.dtype), pool)

    return call.having(**{name: spoilt(call.arguments[name]) for name in pools})


def misdirected(call: Call, entry: int) -> Call:
    """The same call with this in every entry of the table that no token needs, as far as its dtype holds it."""
    table = call.arguments["block_table"]
    wrapped = np.asarray(entry).astype(np.int64).astype(table.dtype)
    return call.having(block_table=np.where(unused(call), wrapped, table))


def renamed(call: Call, pick: np.random.Generator, more: int) -> Call:
    """The same call with every page elsewhere, in a pool of so many more pages."""
    table, pages = call.arguments["block_table"], call.arguments["key_pages"].shape[0]
    names = pick.permutation(pages + more)[:pages]

    def moved(pool: np.ndarray) -> np.ndarray:
        larger = np.repeat(pool[:1], pages + more, axis=0)
        larger[names] = pool
        return larger

    pools = {name: moved(call.arguments[name]) for name in ("key_pages", "value_pages")}
    return call.having(block_table=names[table.astype(np.int64)].astype(table.dtype), **pools)


def same_pages(call: Call, pick: np.random.Generator) -> Call:
    """The same call with the tokens of pages exchanged: others lie where the table leads."""
    order = pick.permutation(call.arguments["key_pages"].shape[0])
    return call.having(**{name: call.arguments[name][order] for name in ("key_pages", "value_pages")})


def narrowed(call: Call, rows: Any) -> Call:
    """The same call with some rows of the batch alone."""
    return call.having(**{name: call.arguments[name][rows] for name in ("query", "block_table", "context_lens")})


def seeing(call: Call) -> np.ndarray:
    """B×1×L×1: which queries see a token."""
    length, lens = call.arguments["query"].shape[2], call.arguments["context_lens"].astype(np.int64)
    last = (
        np.arange(length) + lens[:, None] - length if call.arguments["mask"] else lens[:, None] + np.zeros(length) - 1
    )
    return ((last >= 0) & (lens[:, None] > 0))[:, None, :, None]


SPOILT = (
    "mask",
    "page_size",
    "smaller page_size",
    "heads",
    "value heads",
    "value slots",
    "dims",
    "table rows",
    "fewer table rows",
    "lens rows",
    "fewer lens rows",
    "values",
)


def of_other_values(call: Call, more: int) -> Call:
    """The call with values of more features than keys have, or of fewer."""
    pool = call.arguments["value_pages"]
    wide = np.concatenate([pool, -2 * pool[..., ::-1], pool], axis=-1)
    return call.having(value_pages=wide[..., : max(pool.shape[-1] + more, 1)])


def spoilt(call: Call, bad: str) -> Call:
    """The same call with arguments that do not fit, one of SPOILT."""
    a = call.arguments
    if bad == "mask":
        return call.having(mask="sliding")
    if bad == "page_size":
        return call.having(page_size=a["page_size"] + 1)
    if bad == "smaller page_size":
        return call.having(page_size=a["page_size"] - 1)
    if bad == "value heads":
        return call.having(value_pages=a["value_pages"].repeat(2, axis=1))
    if bad == "value slots":
        return call.having(value_pages=a["value_pages"].repeat(2, axis=2))
    if bad == "heads":
        twice = {name: a[name][:, :1].repeat(2, axis=1) for name in ("key_pages", "value_pages")}
        return call.having(query=a["query"][:, :1].repeat(3, axis=1), **twice)
    if bad == "dims":
        return call.having(query=a["query"][..., :-1])
    if bad == "values":
        return call.having(value_pages=a["value_pages"][:-1])
    name = "block_table" if bad.endswith("table rows") else "context_lens"
    fewer = bad.startswith("fewer")
    return call.having(**{name: a[name][:-1] if fewer else np.concatenate([a[name], a[name][:1]])})


PAGES = {**{key: choices for key, choices in COMMON.items() if key != "leading_dims"}, "page_sizes": [16, 32]}
"""What most servers have."""

SPLIT = {
    "contexts": split_context,
    "queries": ["one"],
    "rows": (1, 2),
    "ratios": [1, 2],
    "head_dims": [32, 40, 64],
    "page_sizes": [1, 8, 16, 24, 32, 64, 128],
}
"""Contexts from which kernels split them, for a token."""

ORDINARY = {PAGED: paged_calls}
"""The widest calls of the operation."""
