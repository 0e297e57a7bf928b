"""mlx-lm's caches that rotate: a window of the last tokens, judged while all that is asked for fits into it.

What is red (mlx-lm 0.32.2) has no upstream issue, and so no waiver. BATCH-21, and BATCH-05, BATCH-06 or BATCH-08 where
a drawn story comes to it: once BatchRotatingKVCache has gone round, several tokens at once cost a visible one.
make_mask takes the place in the ring for the number of tokens (which update_and_fetch puts right only afterwards) and
hides the first visible token of a padded row, or the keys come back one short; its own BatchGenerator only ever asks
for one token then. BATCH-29, KV-17 and the SHOULDs BATCH-31, KV-16, KV-18: as in `mlx_lm`. KV-09 and KV-11 (SHOULD): a
first prompt of several tokens is kept as it is given, and returned as it is kept. BATCH-19 (SHOULD): make_mask knows no
other queries than those of the new tokens.
"""

from __future__ import annotations

import mlx.core as mx
from mlx_lm.models import cache

from inferspec.conformance.subjects import mlx_lm

NAME = "mlx_lm_rotating"
VERSION = mlx_lm.VERSION
ARRAYS = "mlx"
# Where a cache is full the oldest token goes: neither is refused. A full one cannot be trimmed, so it is no StaticKVCache.
ENVELOPE = {"batching": {"limited": [False]}, "kv_cache": {"tokens": 600}}
WINDOW = 640


class KVCache(mlx_lm.KVCache):
    """RotatingKVCache, in a window that holds the tokens of the envelope."""

    def __init__(self, window: int = WINDOW) -> None:
        self.cache = cache.RotatingKVCache(window)


class BatchingKVCache(mlx_lm.BatchingKVCache):
    """BatchRotatingKVCache with a window of `max_len`. Once it has gone round, the newest token is in the middle."""

    def __init__(self, max_requests: int, max_len: int) -> None:
        super().__init__(max_requests, max_len)
        self.window = max_len

    def make_cache(self) -> KVCache:
        return KVCache(self.window)

    def updated(self, key: mx.array, value: mx.array, mask_length: int) -> tuple[mx.array, ...]:
        if mask_length != key.shape[2]:
            raise ValueError(f"mask_length is {mask_length} for {key.shape[2]} tokens; it takes as many")
        visible = self.batch.make_mask(mask_length)
        keys, values = self.batch.update_and_fetch(key, value)
        turn = -self.batch._idx if self.batch.rotated else 0
        return mx.roll(keys, turn, 2), mx.roll(values, turn, 2), mx.roll(visible, turn, 3)
