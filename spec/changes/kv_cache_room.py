"""How many tokens a preallocated cache has room for, and an append past that: see `spec/faults/kv_cache_room.py`."""

from __future__ import annotations

from typing import Any

import numpy as np

from inferspec.spec import kv_cache as spec
from inferspec.spec.changes.kv_cache import STEP, each, hold, joined
from inferspec.spec.contract import Change
from inferspec.spec.kv_cache import Cache, KVCache, Story

Pair = tuple[np.ndarray, np.ndarray]


def whole_buffer(self: KVCache, cache: Cache) -> Pair:
    padded = []
    for x in (cache.keys, cache.values):
        more = np.zeros((*x.shape[:2], max(cache.room - x.shape[2], 0), x.shape[3]), x.dtype)
        padded.append(joined(x, more))
    return padded[0], padded[1]


def room_in_steps(self: KVCache, cache: Cache) -> Pair:
    """What is handed out ends at a multiple of 8 slots."""
    length = min(-(-self.length(cache) // 8) * 8, cache.room)
    keys, values = whole_buffer(self, cache)
    return keys[:, :, :length], values[:, :, :length]


def last_slot_unused(self: Any, cache: Cache, key: np.ndarray) -> None:
    if key.shape[2] and self.length(cache) + key.shape[2] >= cache.room:
        raise ValueError("full")


def room_used_up(self: Any, cache: Cache, key: np.ndarray) -> None:
    """Rewound slots are not free again."""
    cache.used = getattr(cache, "used", self.length(cache)) + key.shape[2]
    if cache.used > cache.room:
        raise ValueError("full")


def last_tokens_overwritten(self: Any, cache: Cache, key: np.ndarray, value: np.ndarray) -> None:
    """The write begins early enough to fit, as jax.lax.dynamic_update_slice has it."""
    start = max(min(self.length(cache), cache.room - key.shape[2]), 0)
    each(lambda old, new: new.copy() if old is None else joined(old[:, :, :start], new), cache, key, value)


def ring(self: Any, cache: Cache, key: np.ndarray, value: np.ndarray) -> None:
    KVCache.store(self, cache, key, value)
    over = max(self.length(cache) - cache.room, 0)
    hold(cache, (cache.keys[:, :, over:], cache.values[:, :, over:]))


def cut_short(self: Any, cache: Cache, key: np.ndarray, value: np.ndarray) -> None:
    left = cache.room - self.length(cache)
    KVCache.store(self, cache, key[:, :, :left], value[:, :, :left])


def fills_then_refuses(self: Any, story: Story, key: np.ndarray, value: np.ndarray) -> Any:
    left = story.cache.room - self.length(story.cache)
    result = KVCache.update_and_fetch(self, story, key[:, :, :left], value[:, :, :left])
    if key.shape[2] > left:
        raise ValueError("full")
    return result


def dead_once_full(self: Any, cache: Cache, key: np.ndarray) -> None:
    if getattr(cache, "dead", False) or self.length(cache) + key.shape[2] > cache.room:
        cache.dead = True
        raise ValueError("full")


any_room: Change = {"check_room": lambda self, cache, key: None}


def room_before_restore(self: Any, cache: Cache, key: np.ndarray) -> None:
    """Tokens that were restored are not counted."""
    if not hasattr(cache, "restored"):
        spec.StaticKVCache.check_room(self, cache, key)


def room_of_rewound(self: Any, cache: Cache, key: np.ndarray) -> None:
    """Slots that were rewound are free for ever after, though others took their place."""
    if self.length(cache) + key.shape[2] > cache.room + getattr(cache, "rewound", 0):
        raise ValueError("full")


def counts_rewound(self: KVCache, cache: Cache, n: int) -> None:
    KVCache.drop(self, cache, n)
    cache.rewound = getattr(cache, "rewound", 0) + n


def room_rounded_up(self: KVCache, cache: Cache, key: np.ndarray) -> None:
    """Past one step the buffer has whole ones, and room is that of the buffer."""
    room = -(-cache.room // STEP) * STEP if cache.room > STEP else cache.room
    if self.length(cache) + key.shape[2] > room:
        raise ValueError("full")


def one_past_the_end(self: KVCache, cache: Cache, key: np.ndarray) -> None:
    """Before a token alone it is asked whether the end is past the room, and not whether it is there."""
    if self.length(cache) + key.shape[2] > cache.room + (key.shape[2] == 1):
        raise ValueError("full")


def marks_refused_append(self: KVCache, story: Story, key: np.ndarray, value: np.ndarray) -> Any:
    try:
        return KVCache.update_and_fetch(self, story, key, value)
    except ValueError:
        story.cache.refused = True
        raise


def short_once_refused(self: KVCache, cache: Cache, n: int) -> None:
    """A chunk that was refused is the first to be dropped by a rewind."""
    KVCache.drop(self, cache, max(n - 1, 0) if getattr(cache, "refused", False) else n)
    cache.refused = False
