"""Paged attention: our own kernels for Metal and for the CPU; without them the pages in use are gathered for attention.

Sources: Kwon et al. 2023 (PagedAttention), section 4; the tiny-llm course, week 3 day 2.
"""

from __future__ import annotations

from functools import partial

import mlx.core as mx
import numpy as np

from inferspec.impl.attention import scaled_dot_product_attention
from inferspec.impl.kernels import metal
from inferspec.impl.kernels import paged as kernel
from inferspec.impl.kernels.attention import takes
from inferspec.impl.kernels.cpu import attention as cpu


def paged_attention(
    query: mx.array,
    key_pages: mx.array,
    value_pages: mx.array,
    block_table: mx.array,
    context_lens: mx.array,
    *,
    page_size: int,
    scale: float | None = None,
    mask: str | None = "causal",
) -> mx.array:
    """Return the attention of each row's queries over its own tokens, which lie in pages of a pool.

    query: B×H_q×L×D; key_pages and value_pages: P×H×page_size×D, H_q a multiple of H: query head h reads head
    h // (H_q / H). block_table: B×M page ids; context_lens: B, how many tokens each row has; integers of any dtype.
    Token p of row b lies in page block_table[b, p // page_size], slot p % page_size.
    scale: what the logits are multiplied by, D^-0.5 by default.
    mask: "causal" (the queries are the last L tokens: query i sees the tokens p <= i + context_lens[b] - L) or None.

    The result is B×H_q×L×D in the query's dtype; a query that sees no token is zeros. Slots past the end of a context,
    pages of no row and entries of the table past a row's last page may hold anything. ValueError for shapes that do not
    fit, an unknown mask, a context that the table has no room for and a page in use that the pool does not have;
    TypeError for wrong dtypes.
    """
    _check_shapes(query, key_pages, value_pages, block_table, context_lens, page_size)
    if mask is not None and mask != "causal":
        raise ValueError(f"mask is {mask!r}; it takes None or 'causal'")
    table, lens = (np.ascontiguousarray(x, np.int64) for x in (block_table, context_lens))
    longest = _check_contexts(table, lens, len(key_pages), page_size)
    if query.size == 0 or longest == 0:
        return mx.zeros(query.shape, query.dtype)
    factor = query.shape[-1] ** -0.5 if scale is None else float(scale)
    if metal.runs(query, key_pages, value_pages) and takes(query):
        return kernel.launch(query, key_pages, value_pages, block_table, context_lens, factor, mask == "causal")
    gathering = partial(_of_gathered, table=table, lens=lens, longest=longest, scale=factor, mask=mask)
    if cpu.takes(query, key_pages, value_pages):
        return cpu.paged(
            query, key_pages, value_pages, table, lens, scale=factor, causal=mask == "causal", plain=gathering
        )
    return gathering(query, key_pages, value_pages)


def _of_gathered(
    query: mx.array,
    key_pages: mx.array,
    value_pages: mx.array,
    *,
    table: np.ndarray,
    lens: np.ndarray,
    longest: int,
    scale: float,
    mask: str | None,
) -> mx.array:
    """Attention over the pages in use, gathered."""
    page_size = key_pages.shape[2]
    pages = -(-longest // page_size)
    in_use = np.arange(pages) * page_size < lens[:, None]
    ids = mx.array(np.where(in_use, table[:, :pages], 0))
    inside = mx.array(np.arange(pages * page_size) < lens[:, None])
    keys, values = (_gathered(pool, ids, inside) for pool in (key_pages, value_pages))
    return scaled_dot_product_attention(
        query, keys, values, scale=scale, mask=_visible(inside, mx.array(lens), query.shape[2], mask)[:, None]
    )


def _gathered(pool: mx.array, ids: mx.array, inside: mx.array) -> mx.array:
    """B×H×S×D: the tokens of each row in order, zeros past its context: a weight of 0 would not hide NaN."""
    batch, pages = ids.shape
    _, heads, page_size, dim = pool.shape
    tokens = pool[ids].swapaxes(1, 2).reshape(batch, heads, pages * page_size, dim)
    return mx.where(inside[:, None, :, None], tokens, mx.zeros((), pool.dtype))


def _visible(inside: mx.array, lens: mx.array, length: int, mask: str | None) -> mx.array:
    """B×L×S: whether a query sees a token."""
    if mask is None:
        return mx.broadcast_to(inside[:, None], (len(inside), length, inside.shape[1]))
    last = mx.arange(length) + lens[:, None] - length
    return mx.arange(inside.shape[1]) <= last[:, :, None]


def _check_shapes(
    query: mx.array,
    key_pages: mx.array,
    value_pages: mx.array,
    block_table: mx.array,
    context_lens: mx.array,
    page_size: int,
) -> None:
    ranked = (("query", query, 4), ("key_pages", key_pages, 4), ("block_table", block_table, 2))
    for name, x, dims in (*ranked, ("context_lens", context_lens, 1)):
        if x.ndim != dims:
            raise ValueError(f"{name} is {x.shape}; it takes {dims} dims")
    if value_pages.shape != key_pages.shape:
        raise ValueError(f"value_pages is {value_pages.shape}; it takes the shape of key_pages, {key_pages.shape}")
    _, heads, slots, dim = key_pages.shape
    if page_size < 1 or slots != page_size:
        raise ValueError(f"page_size is {page_size}; it takes the slots of a page of key_pages, {slots}")
    if query.shape[3] != dim:
        raise ValueError(f"query is {query.shape}; it takes the head dim of key_pages, {dim}")
    if heads == 0 or query.shape[1] % heads:
        raise ValueError(f"query has {query.shape[1]} heads; it takes a multiple of the {heads} of key_pages")
    for name, x in (("block_table", block_table), ("context_lens", context_lens)):
        if x.shape[0] != query.shape[0]:
            raise ValueError(f"{name} has {x.shape[0]} rows; it takes one for each of query, {query.shape[0]}")
        if not mx.issubdtype(x.dtype, mx.integer):
            raise TypeError(f"{name} has dtype {x.dtype}; it takes an integer dtype")
    for name, x in (("query", query), ("key_pages", key_pages), ("value_pages", value_pages)):
        if not mx.issubdtype(x.dtype, mx.floating):
            raise TypeError(f"{name} has dtype {x.dtype}; it takes a floating-point dtype")


def _check_contexts(block_table: np.ndarray, lens: np.ndarray, pages: int, page_size: int) -> int:
    """Return the longest context, when the table has room for all and the pool has every page in use."""
    if lens.size == 0:
        return 0
    shortest, longest = int(lens.min()), int(lens.max())
    room = block_table.shape[1] * page_size
    if shortest < 0 or longest > room:
        wrong = shortest if shortest < 0 else longest
        raise ValueError(f"context_lens holds {wrong}; it takes lengths of 0 to {room}, what the table has room for")
    in_use = np.arange(block_table.shape[1]) * page_size < lens[:, None]
    missing = np.argwhere(in_use & ((block_table < 0) | (block_table >= pages)))
    if len(missing):
        row, entry = missing[0].tolist()
        raise ValueError(
            f"block_table[{row}, {entry}] is {block_table[row, entry]}; it takes pages of the pool, 0 to {pages - 1}"
        )
    return longest
