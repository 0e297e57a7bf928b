"""What the contract of attention cannot see: that keys and values are never repeated for their query heads."""

from __future__ import annotations

import gc
from collections.abc import Callable

import mlx.core as mx
import pytest

from inferspec.impl.attention import scaled_dot_product_attention

RATIO = 8


def peak_bytes(compute: Callable[[], mx.array]) -> int:
    """Memory that a computation needs at once, beyond what was there before."""
    # What others left behind is not let go meanwhile.
    gc.collect()
    mx.synchronize()
    before = mx.get_active_memory()
    mx.reset_peak_memory()
    mx.eval(compute())
    return mx.get_peak_memory() - before


@pytest.mark.parametrize("dtype", [mx.float32, mx.bfloat16], ids=["float32", "bfloat16"])
def test_decode_never_repeats_keys_and_values(dtype: mx.Dtype) -> None:
    heads, keys, dim = 2, 4096, 64
    query = mx.random.normal((1, heads * RATIO, 1, dim)).astype(dtype)
    key, value = (mx.random.normal((1, heads, keys, dim)).astype(dtype) for _ in range(2))
    mx.eval(query, key, value)
    repeated_bytes = RATIO * (key.nbytes + value.nbytes)

    grouped = peak_bytes(lambda: scaled_dot_product_attention(query, key, value))
    repeating = peak_bytes(
        lambda: scaled_dot_product_attention(query, mx.repeat(key, RATIO, axis=1), mx.repeat(value, RATIO, axis=1))
    )

    assert repeating >= repeated_bytes, "the measurement does not see repeated keys and values"
    # One float32 copy of half-precision keys and values is allowed: twice their bytes, a quarter of repeating them.
    assert grouped < repeated_bytes / 2
