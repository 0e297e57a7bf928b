"""Paged attention reads the caches where they lie, and what the contract cannot see: graph and memory stay bounded."""

from __future__ import annotations

import mlx.core as mx
import pytest

from inferspec.impl.attention import scaled_dot_product_attention
from inferspec.impl.paged_attention import paged_attention
from inferspec.impl.paged_kv import PagedKVCache, PagePool, PoolExhausted, block_table

HEADS, DIM = 2, 8


def chunk(length: int) -> tuple[mx.array, mx.array]:
    return mx.random.normal((1, HEADS, length, DIM)), mx.random.normal((1, HEADS, length, DIM))


@pytest.mark.parametrize("page_size", [1, 3, 8])
def test_attention_over_the_pages_is_attention_over_what_is_gathered(page_size: int) -> None:
    pool = PagePool(40, page_size, HEADS, DIM, mx.float32)
    former = PagedKVCache(pool)
    former.append(*(mx.full((1, HEADS, 40 * page_size, DIM), float("nan")) for _ in range(2)))
    former.release()
    caches = [PagedKVCache(pool) for _ in range(3)]
    for length in (page_size, 1, page_size + 1):
        for number, cache in enumerate(caches):
            cache.append(*chunk(length + number))
    caches[1].rewind(2)
    query = mx.random.normal((3, 2 * HEADS, 2, DIM))
    table, lens = block_table(caches)
    paged = paged_attention(query, pool.key_pages, pool.value_pages, table, lens, page_size=page_size)
    for row, cache in enumerate(caches):
        keys, values = cache.gather()
        # The same operations over zeros past the end: masked keys have weight 0, and adding 0 changes nothing.
        width = table.shape[1] * page_size
        tail = mx.zeros((1, HEADS, width - keys.shape[2], DIM))
        inside = mx.arange(width) <= cache.offset - 2 + mx.arange(2)[:, None]
        dense = scaled_dot_product_attention(
            query[row : row + 1], *(mx.concatenate([x, tail], axis=2) for x in (keys, values)), mask=inside
        )
        assert mx.array_equal(paged[row : row + 1], dense)


def test_appends_hold_a_bounded_graph() -> None:
    pool = PagePool(64, 16, HEADS, DIM, mx.float32)
    cache = PagedKVCache(pool)
    mx.eval(pool.key_pages, pool.value_pages)
    mx.synchronize()
    mx.reset_peak_memory()
    before = mx.get_active_memory()
    for _ in range(1000):
        cache.append(*chunk(1))
    mx.synchronize()
    pools = 2 * pool.key_pages.nbytes
    assert mx.get_peak_memory() - before < 4 * pools


def test_caches_of_different_pools_have_no_table() -> None:
    caches = [PagedKVCache(PagePool(2, 4, HEADS, DIM, mx.float32)) for _ in range(2)]
    with pytest.raises(ValueError, match="different pools"):
        block_table(caches)


def test_an_exhausted_pool_says_what_is_missing() -> None:
    cache = PagedKVCache(PagePool(2, 4, HEADS, DIM, mx.float32))
    with pytest.raises(PoolExhausted, match="9 tokens after 0 take 3 more pages; 2 are free"):
        cache.append(*chunk(9))
