"""What the contract of paged attention cannot see: that no more of the pool is gathered than the contexts need."""

from __future__ import annotations

import mlx.core as mx

from inferspec.impl.paged_attention import paged_attention


def test_only_pages_in_use_are_gathered() -> None:
    pages, heads, page_size, dim = 512, 2, 16, 64
    pools = [mx.random.normal((pages, heads, page_size, dim)) for _ in range(2)]
    query, lens = mx.random.normal((2, heads, 1, dim)), mx.array([40, 3])
    table = mx.zeros((2, pages), mx.int32)
    mx.eval(query, lens, table, *pools)

    mx.synchronize()
    before = mx.get_active_memory()
    mx.reset_peak_memory()
    mx.eval(paged_attention(query, *pools, table, lens, page_size=page_size))

    used = pools[0].nbytes * 3 // pages
    # Keys and values of two rows, their copies with zeros past the end and those that attention makes of them.
    assert mx.get_peak_memory() - before < 16 * used
    assert pools[0].nbytes > 64 * used
