"""What a state holds, and what restoring it changes: see `spec/faults/kv_cache.py`."""

from __future__ import annotations

from typing import Any

import numpy as np

from inferspec.spec.changes.kv_cache import hold, joined
from inferspec.spec.contract import Arguments, Change
from inferspec.spec.kv_cache import Cache, KVCache, StaticKVCache


def offset_lost(self: KVCache, cache: Cache, state: Any) -> None:
    hold(cache, [x if x is None else x[:, :, :0] for x in state])


def with_tail(self: KVCache, cache: Cache) -> Any:
    tail = getattr(cache, "tail", None)
    return (cache.keys, cache.values) if tail is None else (joined(cache.keys, tail[0]), joined(cache.values, tail[1]))


def forgets_tail(self: KVCache, cache: Cache, key: np.ndarray, value: np.ndarray) -> None:
    cache.tail = None
    KVCache.store(self, cache, key, value)


def no_empty_state(self: KVCache, cache: Cache, state: Any) -> None:
    if state[0] is None:
        raise ValueError("no keys in the state")
    hold(cache, state)


def hands_out_buffers(self: KVCache, cache: Cache) -> Any:
    return getattr(cache, "buffers", None), cache.keys, cache.values


def takes_buffers(self: KVCache, cache: Cache, state: Any) -> None:
    cache.buffers, cache.keys, cache.values = state


def live_state(self: KVCache, cache: Cache) -> Any:
    return cache


def copies_live(self: KVCache, cache: Cache, state: Any) -> None:
    hold(cache, (state.keys, state.values))


def restores_behind(self: KVCache, cache: Cache, state: Any) -> None:
    if cache.keys is None or state[0] is None:
        hold(cache, state if cache.keys is None else (cache.keys, cache.values))
    else:
        hold(cache, [joined(old, new) for old, new in zip((cache.keys, cache.values), state, strict=True)])


def restores_under(self: KVCache, cache: Cache, state: Any) -> None:
    """The restored tokens overwrite the first ones; the longer of the two lengths stays."""
    if cache.keys is not None and state[0] is not None:
        length = state[0].shape[2]
        state = [joined(new, old[:, :, length:]) for old, new in zip((cache.keys, cache.values), state, strict=True)]
    hold(cache, state)


def of_the_class(self: KVCache, a: Arguments) -> Cache:
    memory = type(self).__dict__.get("shared")
    if memory is None:
        memory = Cache(keys=None, values=None, room=getattr(a, "max_len", 0))
        type(self).shared = memory  # type: ignore[attr-defined]
    return memory


def room_on_the_class(self: KVCache, a: Arguments) -> Cache:
    """The size is written to the class."""
    type(self).room = a.max_len  # type: ignore[attr-defined]
    return Cache(keys=None, values=None, room=a.max_len)


def the_class_s_room(self: StaticKVCache, cache: Cache, key: np.ndarray) -> None:
    StaticKVCache.check_room(self, Cache(**{**vars(cache), "room": type(self).room}), key)  # type: ignore[attr-defined]


def empties_before_it_refuses(self: StaticKVCache, cache: Cache, larger: Cache) -> None:
    """What the cache holds is dropped before the state is looked at."""
    kept = vars(cache).copy()
    cache.keys = cache.values = None
    StaticKVCache.check_state(self, cache, larger)
    vars(cache).update(kept)


def cut_to_its_room(self: StaticKVCache, cache: Cache, larger: Cache) -> None:
    """Of a state that does not fit the first tokens are taken."""
    larger.keys, larger.values = larger.keys[:, :, : cache.room], larger.values[:, :, : cache.room]


def counts_the_last_append() -> Change:
    """Room is asked for the last append of a state alone."""

    def store(self: KVCache, cache: Cache, key: np.ndarray, value: np.ndarray) -> None:
        KVCache.store(self, cache, key, value)
        cache.last = key.shape[2]

    def check_state(self: StaticKVCache, cache: Cache, larger: Cache) -> None:
        if larger.last > cache.room:
            raise ValueError(f"a state of {larger.last} tokens and room for {cache.room}")

    return {"store": store, "check_state": check_state}


def first_of_the_class(self: KVCache, a: Arguments) -> Cache:
    """A fresh cache begins with what the first one of its class holds."""
    first = of_the_class(self, a)
    if not hasattr(first, "used"):
        first.used = True
        return first
    return Cache(keys=first.keys, values=first.values, room=getattr(a, "max_len", 0))
