"""What the contract of the caches cannot see: memory stays bounded though no result is ever evaluated, and nothing is copied that need not be."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mlx.core as mx
import pytest

from inferspec.impl.kv_cache import KVCache, StaticKVCache

APPENDS = 1000
HEADS, DIM = 2, 32
TOKEN_BYTES = 2 * HEADS * DIM * 4
"""Keys and values of one token in float32."""

SOURCE_BYTES = 256 * 1024
"""What a chunk is computed from: a lazy graph that is never evaluated keeps it."""


class Lazy:
    """The control: a cache that only builds its graph."""

    def __init__(self) -> None:
        self.pair: tuple[mx.array, mx.array] | None = None

    def update_and_fetch(self, key: mx.array, value: mx.array) -> tuple[mx.array, mx.array]:
        self.pair = (
            (key, value)
            if self.pair is None
            else (mx.concatenate([self.pair[0], key], axis=2), mx.concatenate([self.pair[1], value], axis=2))
        )
        return self.pair


def chunk(number: int, length: int = 1) -> tuple[mx.array, mx.array]:
    """A lazy key and value that hold on to `SOURCE_BYTES` until they are evaluated."""
    source = mx.full((SOURCE_BYTES // 4,), float(number))
    mx.eval(source)
    return tuple(mx.broadcast_to(source.mean() + i, (1, HEADS, length, DIM)) for i in range(2))  # type: ignore[return-value]


def most_bytes(make: Callable[[], Any], appends: int, evaluate: bool = False) -> int:
    """The most memory held while so many tokens are appended one by one, beyond what was held before."""
    mx.synchronize()
    mx.clear_cache()
    before = mx.get_active_memory()
    mx.reset_peak_memory()
    cache = make()
    for number in range(appends):
        result = cache.update_and_fetch(*chunk(number))
        if evaluate:
            mx.eval(result)
    mx.synchronize()
    return mx.get_peak_memory() - before


@pytest.mark.parametrize("make", [KVCache, lambda: StaticKVCache(APPENDS)], ids=["growing", "static"])
def test_a_thousand_appends_hold_a_bounded_graph(make: Callable[[], Any]) -> None:
    cached = -(-APPENDS // 256) * 256 * TOKEN_BYTES
    # The CPU runs some ten tasks behind, each with a source and, where it cannot write in place yet, a copy.
    bound = 16 * (cached + SOURCE_BYTES)

    assert most_bytes(Lazy, APPENDS) >= APPENDS * SOURCE_BYTES, "the measurement does not see an unbounded graph"
    assert most_bytes(make, APPENDS) < bound < APPENDS * SOURCE_BYTES / 8


def test_memory_does_not_grow_with_the_number_of_appends() -> None:
    """At one length of the buffer: appends and rewinds in turns, 4 times as many of them."""

    class InTurns(StaticKVCache):
        def update_and_fetch(self, key: mx.array, value: mx.array) -> tuple[mx.array, mx.array]:
            if self.offset == self.max_len:
                self.rewind(self.max_len)
            return super().update_and_fetch(key, value)

    few, many = (most_bytes(lambda: InTurns(64), n, evaluate=True) for n in (APPENDS // 4, APPENDS))
    assert many <= few * 1.1 + SOURCE_BYTES


@pytest.mark.parametrize("make", [KVCache, lambda: StaticKVCache(4096)], ids=["growing", "static"])
def test_decoding_writes_in_place(make: Callable[[], Any]) -> None:
    """No copy of the buffer is made for a token, though the loop still holds the result before."""
    cache = make()
    prompt = mx.ones((1, HEADS, 4000, DIM))
    result = cache.update_and_fetch(prompt, prompt)
    mx.eval(result)
    token = mx.ones((1, HEADS, 1, DIM))
    result = cache.update_and_fetch(token, token)
    mx.eval(result)
    mx.synchronize()
    before = mx.get_active_memory()
    mx.reset_peak_memory()
    for _ in range(50):
        result = cache.update_and_fetch(token, token)
        mx.eval(result[0].sum() + result[1].sum())
    assert mx.get_peak_memory() - before < 4000 * TOKEN_BYTES / 10


def test_a_full_buffer_that_was_handed_out_is_not_written_to() -> None:
    """Where mlx-lm's cache hands out the buffer itself."""
    cache = KVCache()
    ones = mx.ones((1, 1, KVCache.STEP, 4))
    full, _ = cache.update_and_fetch(ones, ones)
    cache.rewind(1)
    cache.update_and_fetch(2 * ones[:, :, :1], ones[:, :, :1])
    assert full[0, 0, -1, 0].item() == 1


def test_refusals_say_what_they_got_and_what_they_take() -> None:
    cache = StaticKVCache(4)
    pair = mx.ones((1, 2, 3, 4)), mx.ones((1, 2, 3, 5))
    cache.update_and_fetch(*pair)
    with pytest.raises(ValueError, match="3 tokens after 3 make 6; this cache takes 4"):
        cache.update_and_fetch(*pair)
    with pytest.raises(ValueError, match=r"n is 4; it takes 0 … 3"):
        cache.rewind(4)
    with pytest.raises(ValueError, match=r"value is \(1, 2, 1, 4\); this cache takes 1×2×L×5"):
        cache.update_and_fetch(pair[0][:, :, :1], pair[0][:, :, :1])
    with pytest.raises(TypeError, match=r"value is mlx\.core\.float16; this cache holds mlx\.core\.float32"):
        cache.update_and_fetch(pair[0][:, :, :1], pair[1][:, :, :1].astype(mx.float16))
    with pytest.raises(TypeError, match="key is a list"):
        cache.update_and_fetch([1.0], pair[1])  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="state holds 1 arrays"):
        cache.restore(pair[:1])
    with pytest.raises(ValueError, match="max_len is 0"):
        StaticKVCache(0)
    assert cache.offset == 3


def test_a_state_that_does_not_fit_leaves_the_cache_as_it_was() -> None:
    large, small = StaticKVCache(8), StaticKVCache(4)
    eight, one = mx.ones((1, 1, 8, 2)), mx.zeros((1, 1, 1, 2))
    large.update_and_fetch(eight, eight)
    small.update_and_fetch(one, one)
    with pytest.raises(ValueError, match="this cache takes 4"):
        small.restore(large.state)
    assert small.offset == 1
    assert small.update_and_fetch(one, one)[0].tolist() == [[[[0, 0], [0, 0]]]]


def test_states_fit_both_kinds() -> None:
    growing, static = KVCache(), StaticKVCache(300)
    pair = mx.random.normal((1, 2, 260, 4)), mx.random.normal((1, 2, 260, 5))
    growing.update_and_fetch(*pair)
    static.restore(growing.state)
    assert mx.array_equal(static.state[1], pair[1])
    assert static.offset == 260
