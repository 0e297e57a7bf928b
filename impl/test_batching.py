"""What the contract of the batch cannot see: memory stays bounded, steps are written in place, and errors say what is wrong."""

from __future__ import annotations

import mlx.core as mx
import pytest

from inferspec.impl.attention import scaled_dot_product_attention
from inferspec.impl.batching import BatchingKVCache
from inferspec.impl.kv_cache import KVCache

SLOTS, HEADS, DIM = 4, 2, 32
STEPS = 1000
SOURCE_BYTES = 256 * 1024
"""What a step is computed from: a lazy graph that is never evaluated keeps it."""
STEP_BYTES = 2 * SLOTS * HEADS * DIM * 4
"""Keys and values of one token of all slots in float32."""


def filled(length: int) -> KVCache:
    """The cache of a request of so many tokens."""
    cache = BatchingKVCache.make_cache()
    pair = mx.random.normal((2, 1, HEADS, length, DIM))
    cache.update_and_fetch(pair[0], pair[1])
    return cache


def batch_of(*lengths: int, max_len: int = 5000) -> BatchingKVCache:
    """A batch with a request of each of these lengths, and idle slots after them."""
    batch = BatchingKVCache(SLOTS, max_len)
    for slot, length in enumerate(lengths):
        batch.add(filled(length), slot)
    return batch


def token(number: int = 0) -> tuple[mx.array, mx.array]:
    """A lazy key and value of all slots that hold on to `SOURCE_BYTES` until they are evaluated."""
    source = mx.full((SOURCE_BYTES // 4,), float(number))
    mx.eval(source)
    key, value = (mx.broadcast_to(source.mean() + i, (SLOTS, HEADS, 1, DIM)) for i in range(2))
    return key, value


def test_a_thousand_steps_hold_a_bounded_graph() -> None:
    batch = batch_of(5, 9)
    mx.synchronize()
    mx.clear_cache()
    before = mx.get_active_memory()
    mx.reset_peak_memory()
    for number in range(STEPS):
        batch.update_and_fetch(*token(number))
    mx.synchronize()
    held = mx.get_peak_memory() - before
    # The CPU runs some ten tasks behind, each with a source and, where it cannot write in place yet, a copy.
    assert held < 16 * (2 * STEPS * STEP_BYTES + SOURCE_BYTES)
    assert held < STEPS * SOURCE_BYTES / 4


def test_a_step_is_written_in_place() -> None:
    batch = batch_of(4000, 3000)
    key, value = (mx.ones((SLOTS, HEADS, 1, DIM)) for _ in range(2))
    keys, values, mask = batch.update_and_fetch(key, value)
    mx.eval(keys, values, mask)
    mx.synchronize()
    before = mx.get_active_memory()
    mx.reset_peak_memory()
    for _ in range(50):
        keys, values, mask = batch.update_and_fetch(key, value)
        mx.eval(keys.sum() + values.sum(), mask)
    assert mx.get_peak_memory() - before < 4000 * STEP_BYTES / 10


def test_the_buffer_follows_the_requests_that_are_there() -> None:
    """However many requests it has served, a batch needs room for its longest one."""
    batch = batch_of(3)
    key, value = (mx.ones((SLOTS, HEADS, 100, DIM)) for _ in range(2))
    for number in range(20):
        slot, other = number % 2, (number + 1) % 2
        batch.update_and_fetch(key, value)
        batch.add(filled(3), other)
        batch.remove(slot)
        keys, _, _ = batch.update_and_fetch(key[:, :, :1], value[:, :, :1])
        assert keys.shape[2] == 4
    assert batch.offsets == [4, 0, 0, 0]


@pytest.mark.parametrize("length", [1, 3])
def test_attention_over_a_batch_is_that_of_each_request(length: int) -> None:
    """Through the kit's own attention, with NaN where idle slots are; every query asks for a request's first token."""
    prompts = (40, 1, 7)
    caches = [filled(n) for n in prompts]
    batch = BatchingKVCache(SLOTS, 99)
    for slot, cache in enumerate(caches):
        batch.add(cache, slot)
    # The logits of other tokens are so far below that their weights are 0, exactly.
    asked = [1000 * mx.sign(cache.state[0][:, :, :1]) for cache in caches]
    query = mx.concatenate([*asked, mx.ones((1, HEADS, 1, DIM))])
    query = mx.broadcast_to(mx.repeat(query, 2, axis=1), (SLOTS, 2 * HEADS, length, DIM))
    key, value = 0.1 * mx.random.normal((2, SLOTS, HEADS, length, DIM))
    poison = mx.where(mx.arange(SLOTS)[:, None, None, None] == 3, mx.nan, 0.0)
    keys, values, mask = batch.update_and_fetch(key + poison, value + poison)
    together = scaled_dot_product_attention(query, keys, values, mask=mask)
    for slot, cache in enumerate(caches):
        one = slice(slot, slot + 1)
        first = mx.repeat(cache.state[1][:, :, :1], 2, axis=1)
        alone = scaled_dot_product_attention(query[one], *cache.update_and_fetch(key[one], value[one]), mask="causal")
        assert mx.array_equal(together[one], alone)
        assert mx.array_equal(together[one], mx.broadcast_to(first, alone.shape))
    assert not together[3].any().item()


def test_refusals_say_what_they_got_and_what_they_take() -> None:
    batch = batch_of(3, max_len=4)
    pair = mx.ones((SLOTS, HEADS, 2, DIM)), mx.ones((SLOTS, HEADS, 2, DIM))
    with pytest.raises(ValueError, match="2 more tokens make 5 of a request; this batch takes 4"):
        batch.update_and_fetch(*pair)
    with pytest.raises(ValueError, match=r"slot is 0, which is taken; it takes an idle one: \[1, 2, 3\]"):
        batch.add(filled(1), 0)
    with pytest.raises(ValueError, match="slot is 2, which is idle"):
        batch.remove(2)
    with pytest.raises(ValueError, match="slot is 4; it takes 0 … 3"):
        batch.add(filled(1), 4)
    with pytest.raises(TypeError, match=r"slot is 1\.0; it takes an integer"):
        batch.remove(1.0)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="cache has 5 tokens; this batch takes 4"):
        batch.add(filled(5), 1)
    with pytest.raises(TypeError, match="cache is a list; it takes one whose state is keys and values"):
        batch.add([1, 2], 1)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"key is \(1, 2, 2, 32\); it takes 4×H×L×D"):
        batch.update_and_fetch(*(x[:1] for x in pair))
    with pytest.raises(ValueError, match=r"value is \(4, 2, 1, 31\); this batch takes 4×2×L×32"):
        batch.update_and_fetch(pair[0][:, :, :1], pair[1][:, :, :1, 1:])
    with pytest.raises(TypeError, match=r"key is mlx\.core\.float16; this batch holds mlx\.core\.float32"):
        batch.update_and_fetch(*(x.astype(mx.float16) for x in pair))
    with pytest.raises(ValueError, match="mask_length is 0; it takes 1 or more"):
        batch.update_and_fetch(*(x[:, :, :1] for x in pair), 0)
    with pytest.raises(ValueError, match="max_requests is 0; it takes 1 or more"):
        BatchingKVCache(0, 4)
    assert batch.offsets == [3, 0, 0, 0]
