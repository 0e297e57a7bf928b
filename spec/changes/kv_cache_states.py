"""What a state holds, and what restoring it changes: see `spec/faults/kv_cache_states.py`."""

from __future__ import annotations

from typing import Any

import numpy as np

from inferspec.spec.changes.kv_cache import ROOM, hold, joined
from inferspec.spec.contract import Arguments, Change
from inferspec.spec.kv_cache import Cache, KVCache, StaticKVCache, Story
from inferspec.spec.numerics import f64

Pair = tuple[np.ndarray, np.ndarray]


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


def live_once_merged(self: KVCache, cache: Cache) -> Any:
    """The chunks of more than sixteen appends are merged in a list of the cache's own, and that is the state."""
    return cache if vars(cache).get("chunks", 0) > 16 else KVCache.state_of(self, cache)


def copies_live_or_not(self: KVCache, cache: Cache, state: Any) -> None:
    hold(cache, (state.keys, state.values) if isinstance(state, Cache) else state)


def begins_where_it_ended(self: KVCache, cache: Cache, n: int) -> None:
    """A ring that is emptied goes on from where it is."""
    KVCache.drop(self, cache, n)
    if n and not self.length(cache):
        cache.begins = n


def fills_from_slot_0(self: KVCache, cache: Cache, state: Any) -> None:
    """A state that fills the ring is copied from its first slot on, and is read from where the ring begins."""
    KVCache.become(self, cache, state)
    if self.length(cache) == vars(cache)["room"]:
        hold(cache, [np.roll(x, -vars(cache).get("begins", 0), axis=2) for x in (cache.keys, cache.values)])


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


def _restored(cache: Cache, state: Any) -> None:
    hold(cache, state)
    cache.restored = True


remembered: Change = {"become": lambda self, cache, state: _restored(cache, state)}


def whole_buffers(self: KVCache, cache: Cache) -> Any:
    """A state is a copy of the buffers, with their room for tokens to come."""
    if cache.keys is None:
        return None
    room = max(ROOM, 3 * self.length(cache))
    copies = [np.zeros((*x.shape[:2], room, x.shape[3]), x.dtype) for x in (cache.keys, cache.values)]
    for copy, x in zip(copies, (cache.keys, cache.values), strict=True):
        copy[:, :, : x.shape[2]] = x
    return copies, self.length(cache)


def takes_whole_buffers(self: KVCache, cache: Cache, state: Any) -> None:
    """Whoever restores the state writes into its buffers."""
    hold(cache, (None, None))
    cache.buffers = None
    if state is not None:
        cache.buffers, length = state
        hold(cache, [buffer[:, :, :length] for buffer in cache.buffers])


def copied_views(self: KVCache, cache: Cache) -> Pair:
    return cache.keys.copy(), cache.values.copy()


def first_state(self: KVCache, cache: Cache) -> Any:
    if getattr(cache, "first", None) is None and cache.keys is not None:
        cache.first = KVCache.state_of(self, cache)
    return getattr(cache, "first", None) or (None, None)


FULL_AT = (256, 512)
"""Tokens at which a buffer that grows in steps of 256 is full."""


def full_buffers(self: KVCache, cache: Cache) -> Any:
    """Of a buffer that is just full no part is cut out: it is handed out itself."""
    state = KVCache.state_of(self, cache)
    room = getattr(cache, "room", None) or 0
    full = self.length(cache) in (*FULL_AT, room) and cache.keys is not None
    cache.handed = tuple(x.copy() for x in state) if full else None
    return cache.handed or state


def into_what_was_handed_out(self: KVCache, cache: Cache, key: np.ndarray, value: np.ndarray) -> None:
    start, handed = self.length(cache), getattr(cache, "handed", None)
    KVCache.store(self, cache, key, value)
    if handed is None or self.length(cache) > handed[0].shape[2]:
        cache.handed = None
        return
    for x, new in zip(handed, (key, value), strict=True):
        x[:, :, start : self.length(cache)] = new


def takes_the_full(self: KVCache, cache: Cache, state: Any) -> None:
    """A cache in use that restores as many tokens as it has room for takes their arrays for its buffers."""
    used = cache.keys is not None
    KVCache.become(self, cache, state)
    cache.handed = state if used and self.length(cache) == vars(cache).get("room") else None


def into_own_buffers(self: KVCache, cache: Cache, state: Any) -> None:
    """What is restored is written into the buffers that there are, and so is what comes after it."""
    own = cache.keys
    KVCache.become(self, cache, state)
    if own is not None and cache.keys is not None:
        cache.buffers, cache.restored = own.dtype, cache.keys.dtype
        hold(cache, [f64(x).astype(own.dtype) for x in (cache.keys, cache.values)])


def dtype_of_the_restored(self: KVCache, cache: Cache, key: np.ndarray, value: np.ndarray) -> None:
    taken = getattr(cache, "restored", None)
    if taken is None:
        KVCache.check_dtype(self, cache, key, value)
    elif (key.dtype, value.dtype) != (taken, taken):
        raise ValueError(f"{key.dtype.name} and {value.dtype.name} after {taken.name}")


def cast_to_buffers(self: KVCache, cache: Cache, key: np.ndarray, value: np.ndarray) -> None:
    with np.errstate(over="ignore"):
        pair = [f64(x).astype(getattr(cache, "buffers", x.dtype)) for x in (key, value)]
    KVCache.store(self, cache, *pair)


own_buffers: Change = {"become": into_own_buffers, "check_dtype": dtype_of_the_restored, "store": cast_to_buffers}


def row_for_all(self: KVCache, cache: Cache, state: Any) -> None:
    """What is restored is assigned into the buffers that there are."""
    own = cache.keys
    KVCache.become(self, cache, state)
    if own is not None and cache.keys is not None and len(cache.keys) == 1:
        hold(cache, [x.repeat(len(own), axis=0) for x in (cache.keys, cache.values)])


def keeps_its_kind(self: KVCache, cache: Cache, state: Any) -> None:
    """The kind of tokens is that of the first ones, whatever is restored."""
    if cache.keys is not None and not hasattr(cache, "first"):
        cache.first = cache.keys, cache.values
    KVCache.become(self, cache, state)


def fits_the_first(self: KVCache, cache: Cache, key: np.ndarray, value: np.ndarray) -> None:
    kept = getattr(cache, "first", (cache.keys, cache.values))
    KVCache.check_fit(self, Cache(keys=kept[0], values=kept[1]), key, value)


kind_of_the_first: Change = {"become": keeps_its_kind, "check_fit": fits_the_first}


def remembers_the_restored(self: KVCache, cache: Cache, state: Any) -> None:
    """A state that is restored is kept, for whoever asks for it."""
    KVCache.become(self, cache, state)
    cache.restored = self.length(cache), state


def restored_as_many(self: KVCache, cache: Cache) -> Any:
    length, state = vars(cache).get("restored", (None, None))
    return state if length == self.length(cache) else KVCache.state_of(self, cache)


def state_of_as_many(self: KVCache, cache: Cache) -> Any:
    """The state that was taken last, where it has as many tokens as there are now."""
    if getattr(cache, "taken", (None,))[0] != self.length(cache):
        cache.taken = self.length(cache), KVCache.state_of(self, cache)
    return cache.taken[1]


def marks_refused(self: KVCache, story: Story, n: int) -> None:
    try:
        KVCache.rewind(self, story, n)
    except ValueError:
        story.cache.spoilt = True
        raise


def no_state_once_refused(self: KVCache, cache: Cache) -> Any:
    return (None, None) if hasattr(cache, "spoilt") else KVCache.state_of(self, cache)


def one_state_for_all(self: KVCache, cache: Cache) -> Any:
    """The same list whenever it is asked for, with what is cached now."""
    state = getattr(cache, "state", None)
    if state is None:
        state = cache.state = [None, None]
    state[:] = cache.keys, cache.values
    return state


def in_blocks(size: int) -> Change:
    """A state is put together of blocks, which are kept once they are full, whatever is rewound."""

    def state_of(self: KVCache, cache: Cache) -> Any:
        if cache.keys is None:
            return KVCache.state_of(self, cache)
        blocks, full = vars(cache).setdefault("blocks", []), self.length(cache) // size
        for at in range(len(blocks), full):
            blocks.append([x[:, :, at * size : (at + 1) * size] for x in (cache.keys, cache.values)])
        rest = [x[:, :, full * size :] for x in (cache.keys, cache.values)]
        return tuple(joined(*parts) for parts in zip(*blocks[:full], rest, strict=True))

    return {"state_of": state_of}


def counts_rewinds(self: KVCache, cache: Cache, n: int) -> None:
    KVCache.drop(self, cache, n)
    cache.rewinds = vars(cache).get("rewinds", 0) + 1


def state_until_rewound(self: KVCache, cache: Cache) -> Any:
    """As many tokens as before are the same ones, unless the cache was rewound since."""
    now = self.length(cache), vars(cache).get("rewinds", 0)
    if vars(cache).get("taken", (None,))[0] != now:
        cache.taken = now, KVCache.state_of(self, cache)
    return cache.taken[1]


def with_its_depth(self: KVCache, cache: Cache) -> Any:
    return *KVCache.state_of(self, cache), vars(cache).get("depth", 0)


def two_deep(self: KVCache, cache: Cache, state: Any) -> None:
    """A state is a chain of what was appended since the one before it, and no more than two are followed."""
    *pair, depth = state
    KVCache.become(self, cache, pair)
    cache.depth = depth + 1
    if depth == 2 and self.length(cache) > 1:
        self.drop(cache, 1)


def of_its_own_size(
    self: StaticKVCache, story: Story, max_len: int, key: np.ndarray, value: np.ndarray, begun: int
) -> None:
    """A state is a buffer, and is copied into one of as many slots alone."""
    if max_len != story.cache.room:
        raise ValueError(f"a state of {max_len} slots, not {story.cache.room}")
    StaticKVCache.restore_larger(self, story, max_len, key, value, begun)


def with_the_room_of_the_state(
    self: StaticKVCache, story: Story, max_len: int, key: np.ndarray, value: np.ndarray, begun: int
) -> None:
    """The buffer of the state takes the place of the cache's own."""
    StaticKVCache.restore_larger(self, story, max_len, key, value, begun)
    story.cache.room = max_len


def with_the_larger_room(
    self: StaticKVCache, story: Story, max_len: int, key: np.ndarray, value: np.ndarray, begun: int
) -> None:
    StaticKVCache.restore_larger(self, story, max_len, key, value, begun)
    story.cache.room = max(story.cache.room, max_len)
