"""What a rewind leaves: see `spec/faults/kv_cache_rewinds.py`."""

from __future__ import annotations

import numpy as np

from inferspec.spec.changes.kv_cache import STEP, hold
from inferspec.spec.kv_cache import Cache, KVCache, Story
from inferspec.spec.numerics import f64


def hidden_length(self: KVCache, cache: Cache) -> int:
    hidden = getattr(cache, "shown", None)
    return KVCache.length(self, cache) if hidden is None else hidden


def hides(self: KVCache, cache: Cache, n: int) -> None:
    cache.shown = self.length(cache) - n


def shows_again(self: KVCache, cache: Cache, key: np.ndarray, value: np.ndarray) -> None:
    KVCache.store(self, cache, key, value)
    cache.shown = None


def eight_rewinds(self: KVCache, cache: Cache, n: int) -> None:
    """The places to go back to are in a ring of eight."""
    cache.rewinds = getattr(cache, "rewinds", 0) + 1
    KVCache.drop(self, cache, n if cache.rewinds <= 8 else 0)


def rewinds_to_whole_steps(self: KVCache, cache: Cache, n: int) -> None:
    """A rewind to the end of a step gives back the buffers behind it, and with them the last token."""
    KVCache.drop(self, cache, n)
    if n and self.length(cache) and not self.length(cache) % STEP:
        hold(cache, [np.concatenate([x[:, :, :-1], x[:, :, -1:] * 0], axis=2) for x in (cache.keys, cache.values)])


def drops_keys(self: KVCache, cache: Cache, n: int) -> None:
    """Values stay, and the first of them are handed out for the keys that are there."""
    values = cache.values
    KVCache.drop(self, cache, n)
    if cache.values is not None:
        cache.stale = values


def stale_values(self: KVCache, cache: Cache, key: np.ndarray, value: np.ndarray) -> None:
    stale = getattr(cache, "stale", None)
    if stale is not None:
        cache.values, cache.stale = stale, None
    KVCache.store(self, cache, key, value)
    cache.values = cache.values[:, :, : cache.keys.shape[2]]


def drops_first(self: KVCache, cache: Cache, n: int) -> None:
    if cache.keys is not None:
        hold(cache, (cache.keys[:, :, n:], cache.values[:, :, n:]))


def keeps_n(self: KVCache, cache: Cache, n: int) -> None:
    if cache.keys is not None:
        hold(cache, (cache.keys[:, :, :n], cache.values[:, :, :n]))


def one_short(self: KVCache, cache: Cache, n: int) -> None:
    KVCache.drop(self, cache, max(n - 1, 0))


def remembers_tail(self: KVCache, cache: Cache, n: int) -> None:
    if cache.keys is not None:
        left = self.length(cache) - n
        cache.tail = cache.keys[:, :, left:], cache.values[:, :, left:]
    KVCache.drop(self, cache, n)


def masked_write(self: KVCache, cache: Cache, key: np.ndarray, value: np.ndarray) -> None:
    """old · (1 - mask) + new · mask: 0 · NaN is NaN."""
    mixed = []
    for new, old in zip((key, value), getattr(cache, "tail", (key, value)), strict=True):
        under = np.zeros(new.shape, new.dtype)
        length = min(new.shape[2], old.shape[2])
        under[:, :, :length] = old[:, :, :length]
        mixed.append(np.where(np.isnan(f64(under)), under, new))
    KVCache.store(self, cache, *mixed)
    cache.tail = key[:, :, :0], value[:, :, :0]


def minus_zero(self: KVCache, cache: Cache, n: int) -> None:
    """[:-0] is empty."""
    if cache.keys is not None:
        hold(cache, (cache.keys[:, :, :-n], cache.values[:, :, :-n]))


def never_to_zero(self: KVCache, cache: Cache, n: int) -> None:
    if n < self.length(cache):
        KVCache.drop(self, cache, n)


def clamped(self: KVCache, cache: Cache, n: int) -> None:
    KVCache.drop(self, cache, min(max(n, 0), self.length(cache)))


def only_too_far(self: KVCache, cache: Cache, n: int) -> None:
    if n > self.length(cache):
        raise ValueError("too far")


def checks_the_total(self: KVCache, story: Story, n: int) -> None:
    """A rewind too far leaves the cache empty, one backwards drops a token."""
    if not 0 <= n <= self.length(story.cache):
        KVCache.drop(self, story.cache, min(abs(n), self.length(story.cache)))
        raise ValueError("too late")
    KVCache.drop(self, story.cache, n)


def of_32_bits(self: KVCache, cache: Cache, n: int) -> None:
    KVCache.check_rewind(self, cache, n % 2**32 if n >= 2**32 else n)


def drops_of_32_bits(self: KVCache, cache: Cache, n: int) -> None:
    KVCache.drop(self, cache, n % 2**32)


def third_in_a_row(self: KVCache, cache: Cache, n: int) -> None:
    """Of rewinds in a row all but the first two drop a token less."""
    cache.in_a_row = vars(cache).get("in_a_row", 0) + (n > 0)
    KVCache.drop(self, cache, n - (n > 0 and cache.in_a_row > 2))


def ends_the_row(self: KVCache, cache: Cache, key: np.ndarray, value: np.ndarray) -> None:
    KVCache.store(self, cache, key, value)
    cache.in_a_row = 0
