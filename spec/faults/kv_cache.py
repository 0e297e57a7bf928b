"""Mistakes in key/value caches, and other honest ways to keep tokens.

Nearly all of them can be made in both kinds of cache, and are: the preallocated cache's carry the prefix `static-`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from inferspec.spec import kv_cache as spec
from inferspec.spec.contract import Arguments, Change, Fault, Operation, Requirement, Variant
from inferspec.spec.faults.linear import TIRED
from inferspec.spec.kv_cache import Cache, KVCache, Story
from inferspec.spec.mistakes import misread
from inferspec.spec.numerics import f64, round_to

MLX_LM = "https://github.com/ml-explore/mlx-lm"
LOGICAL_OFFSET = f"{MLX_LM}/commit/eb98ff72"
STEP = 256
ROOM = 2500
"""Tokens of a buffer that is larger than any story but the longest."""

Pair = tuple[np.ndarray, np.ndarray]


def _set(cache: Cache, pair: Any) -> None:
    cache.keys, cache.values = pair


def _each(function: Any, cache: Cache, key: np.ndarray, value: np.ndarray) -> None:
    """Replace keys and values by the function of what is cached (None at first) and what is new."""
    _set(cache, [function(old, new) for old, new in ((cache.keys, key), (cache.values, value))])


def _joining(function: Any) -> Change:
    """`store` by a function of what is cached and what is new, where something is cached."""

    def store(self: KVCache, cache: Cache, key: np.ndarray, value: np.ndarray) -> None:
        _each(lambda old, new: new.copy() if old is None else function(old, new), cache, key, value)

    return {"store": store}


def _joined(*chunks: np.ndarray) -> np.ndarray:
    return np.concatenate(chunks, axis=2)


# appends


def _decode_position(old: np.ndarray, new: np.ndarray) -> np.ndarray:
    """The position moves on by one whatever was appended, so that a chunk is overwritten from its second token on."""
    return _joined(old[:, :, : max(1, old.shape[2] - new.shape[2] + 1)], new) if new.shape[2] else old


def _one_step_of_growth(self: KVCache, cache: Cache, key: np.ndarray, value: np.ndarray) -> None:
    KVCache.store(self, cache, key[:, :, :STEP], value[:, :, :STEP])


def _whole_steps_kept(old: np.ndarray, new: np.ndarray) -> np.ndarray:
    grows = -(-(old.shape[2] + new.shape[2]) // STEP) > -(-old.shape[2] // STEP)
    kept = old.shape[2] // STEP * STEP if grows and old.shape[2] > STEP else old.shape[2]
    return _joined(old[:, :, :kept], new)


def _long_chunk_anew(self: KVCache, cache: Cache, key: np.ndarray, value: np.ndarray) -> None:
    if key.shape[2] > 1:
        _set(cache, (key.copy(), value.copy()))
    else:
        KVCache.store(self, cache, key, value)


def _no_empty_chunk(self: KVCache, key: np.ndarray, value: np.ndarray) -> None:
    KVCache.check_pair(self, key, value)
    if not key.shape[2]:
        raise ValueError("nothing to append")


def _first_row(self: KVCache, cache: Cache) -> Pair:
    return tuple(np.repeat(x[:1], len(x), axis=0) for x in (cache.keys, cache.values))  # type: ignore[return-value]


def _axes_exchanged(self: KVCache, cache: Cache) -> Pair:
    return tuple(x.swapaxes(0, 1).reshape(x.shape) for x in (cache.keys, cache.values))


def _fitted(x: np.ndarray, dim: int) -> np.ndarray:
    """x with its head dim cut short or filled with zeros."""
    filled = np.zeros((*x.shape[:3], dim), x.dtype)
    shared = min(dim, x.shape[3])
    filled[..., :shared] = x[..., :shared]
    return filled


def _stored_in(dtype: str) -> Change:
    def store(self: KVCache, cache: Cache, key: np.ndarray, value: np.ndarray) -> None:
        narrow = (round_to(f64(round_to(f64(x), dtype)), x.dtype.name) for x in (key, value))
        KVCache.store(self, cache, *narrow)

    return {"store": store}


def _losing(lost: Callable[[np.ndarray, np.ndarray], None]) -> Change:
    """`fetched`, with some of keys and values gone. lost: sets those to 0."""

    def fetched(self: KVCache, cache: Cache) -> Pair:
        keys, values = KVCache.fetched(self, cache)
        lost(keys, values)
        return keys, values

    return {"fetched": fetched}


def _heads_past_8(keys: np.ndarray, values: np.ndarray) -> None:
    keys[:, 8:] = values[:, 8:] = 0


def _rows_past_4(keys: np.ndarray, values: np.ndarray) -> None:
    keys[4:] = values[4:] = 0


def _features_past_64(keys: np.ndarray, values: np.ndarray) -> None:
    keys[..., 64:] = values[..., 64:] = 0


def _value_dim_for_keys(self: KVCache, cache: Cache) -> Pair:
    keys, values = KVCache.fetched(self, cache)
    return keys[..., : values.shape[3]], values


def _last_4096(self: KVCache, cache: Cache) -> Pair:
    keys, values = KVCache.fetched(self, cache)
    return keys[:, :, -4096:], values[:, :, -4096:]


def _signed_16_bits(keys: np.ndarray, values: np.ndarray) -> None:
    """A position of 16 bits with a sign: past 32767 it is below 0, and what is written there is not read."""
    keys[:, :, 1 << 15 :] = values[:, :, 1 << 15 :] = 0


def _lost_after_16(self: KVCache, cache: Cache, key: np.ndarray, value: np.ndarray) -> None:
    """The 17th append finds a queue of 16 writes full, and the oldest is gone."""
    KVCache.store(self, cache, key, value)
    cache.writes = getattr(cache, "writes", 0) + 1
    if cache.writes == 17:
        _set(cache, [np.concatenate([x[:, :, :1] * 0, x[:, :, 1:]], axis=2) for x in (cache.keys, cache.values)])


# offset


def _capacity(self: KVCache, story: Story) -> int:
    grown = -(-self.length(story.cache) // STEP) * STEP
    return int(getattr(story.cache, "room", grown))


def _ever_appended(self: KVCache, cache: Cache, key: np.ndarray, value: np.ndarray) -> None:
    cache.ever = getattr(cache, "ever", self.length(cache)) + key.shape[2]
    KVCache.store(self, cache, key, value)


def _chunks_counted(self: KVCache, cache: Cache, key: np.ndarray, value: np.ndarray) -> None:
    cache.ever = getattr(cache, "ever", 0) + 1
    KVCache.store(self, cache, key, value)


def _prompt_first(self: KVCache, story: Story) -> int:
    """The offset is one too small from the second append on, as if decoding began inside the prompt."""
    length = self.length(story.cache)
    return length - (len(story.given) > 1 and length > 0)


# arguments and results


def _changes(name: str) -> Change:
    def respond(self: KVCache, a: Arguments) -> Any:
        result = Operation.respond(self, a)
        for _, given in a.steps:
            if name in given:
                given[name][...] = 0
        return result

    return {"respond": respond}


def _strides_of(name: str) -> Change:
    def respond(self: KVCache, a: Arguments) -> Any:
        steps = tuple(
            (method, {k: misread(x) if k == name else x for k, x in given.items()}) for method, given in a.steps
        )
        return Operation.respond(self, Arguments(**{**vars(a), "steps": steps}))

    return {"respond": respond}


def _first_by_reference(self: KVCache, cache: Cache, key: np.ndarray, value: np.ndarray) -> None:
    if cache.keys is None:
        _set(cache, (key, value))
    else:
        KVCache.store(self, cache, key, value)


def _last_by_reference(self: KVCache, cache: Cache, key: np.ndarray, value: np.ndarray) -> None:
    """The last chunk is written only when the next one comes."""
    late = getattr(cache, "late", None)
    if late is not None and cache.keys is not None and cache.keys.shape[2] >= late[0].shape[2]:
        length = cache.keys.shape[2] - late[0].shape[2]
        _set(
            cache, [_joined(old[:, :, :length], new) for old, new in zip((cache.keys, cache.values), late, strict=True)]
        )
    KVCache.store(self, cache, key, value)
    cache.late = key, value


def _forgets_late(self: KVCache, cache: Cache, n: int) -> None:
    cache.late = None
    KVCache.drop(self, cache, n)


def _in_buffers(self: KVCache, cache: Cache, key: np.ndarray, value: np.ndarray) -> None:
    """Tokens are written into a buffer in place; `keys` and `values` are views of it."""
    start, end = self.length(cache), self.length(cache) + key.shape[2]
    held = getattr(cache, "buffers", None)
    if held is None or held[0].shape[2] < end or (cache.keys is not None and cache.keys.base is not held[0]):
        cache.buffers = [np.zeros((*x.shape[:2], max(ROOM, 3 * end), x.shape[3]), x.dtype) for x in (key, value)]
        for buffer, old in zip(cache.buffers, (cache.keys, cache.values), strict=True):
            if old is not None:
                buffer[:, :, :start] = old
    for buffer, new in zip(cache.buffers, (key, value), strict=True):
        buffer[:, :, start:end] = new
    _set(cache, [buffer[:, :, :end] for buffer in cache.buffers])


def _views(self: KVCache, cache: Cache) -> Pair:
    return cache.keys, cache.values


def _newest_last(self: KVCache, cache: Cache, key: np.ndarray, value: np.ndarray) -> None:
    """Tokens lie at the end of a buffer and move up in place to make room."""
    KVCache.store(self, cache, key, value)
    length = self.length(cache)
    if not hasattr(cache, "moving") or cache.moving[0].shape[2] < length:
        room = max(ROOM, 3 * length)
        cache.moving = [np.zeros((*x.shape[:2], room, x.shape[3]), x.dtype) for x in (key, value)]
    start = cache.moving[0].shape[2] - length
    for buffer, x in zip(cache.moving, (cache.keys, cache.values), strict=True):
        buffer[:, :, start:] = x
    _set(cache, [buffer[:, :, start:] for buffer in cache.moving])


def _promoting(where: Callable[[int, np.ndarray, Arguments], bool]) -> Change:
    """Keys and values of some steps come back in float32."""

    def respond(self: KVCache, a: Arguments) -> Any:
        result = Operation.respond(self, a)
        return {
            part: x.astype(np.float32) if x.ndim == 4 and where(int(part.split()[0]), x, a) else x
            for part, x in result.items()
        }

    return {"respond": respond}


# rewinds


def _hidden_length(self: KVCache, cache: Cache) -> int:
    hidden = getattr(cache, "shown", None)
    return KVCache.length(self, cache) if hidden is None else hidden


def _hides(self: KVCache, cache: Cache, n: int) -> None:
    cache.shown = self.length(cache) - n


def _shows_again(self: KVCache, cache: Cache, key: np.ndarray, value: np.ndarray) -> None:
    KVCache.store(self, cache, key, value)
    cache.shown = None


def _drops_keys(self: KVCache, cache: Cache, n: int) -> None:
    """Values stay, and the first of them are handed out for the keys that are there."""
    values = cache.values
    KVCache.drop(self, cache, n)
    if cache.values is not None:
        cache.stale = values


def _stale_values(self: KVCache, cache: Cache, key: np.ndarray, value: np.ndarray) -> None:
    stale = getattr(cache, "stale", None)
    if stale is not None:
        cache.values, cache.stale = stale, None
    KVCache.store(self, cache, key, value)
    cache.values = cache.values[:, :, : cache.keys.shape[2]]


def _drops_first(self: KVCache, cache: Cache, n: int) -> None:
    if cache.keys is not None:
        _set(cache, (cache.keys[:, :, n:], cache.values[:, :, n:]))


def _keeps_n(self: KVCache, cache: Cache, n: int) -> None:
    if cache.keys is not None:
        _set(cache, (cache.keys[:, :, :n], cache.values[:, :, :n]))


def _one_short(self: KVCache, cache: Cache, n: int) -> None:
    KVCache.drop(self, cache, max(n - 1, 0))


def _remembers_tail(self: KVCache, cache: Cache, n: int) -> None:
    if cache.keys is not None:
        left = self.length(cache) - n
        cache.tail = cache.keys[:, :, left:], cache.values[:, :, left:]
    KVCache.drop(self, cache, n)


def _masked_write(self: KVCache, cache: Cache, key: np.ndarray, value: np.ndarray) -> None:
    """old · (1 - mask) + new · mask: 0 · NaN is NaN."""
    mixed = []
    for new, old in zip((key, value), getattr(cache, "tail", (key, value)), strict=True):
        under = np.zeros(new.shape, new.dtype)
        length = min(new.shape[2], old.shape[2])
        under[:, :, :length] = old[:, :, :length]
        mixed.append(np.where(np.isnan(f64(under)), under, new))
    KVCache.store(self, cache, *mixed)
    cache.tail = key[:, :, :0], value[:, :, :0]


def _minus_zero(self: KVCache, cache: Cache, n: int) -> None:
    """[:-0] is empty."""
    if cache.keys is not None:
        _set(cache, (cache.keys[:, :, :-n], cache.values[:, :, :-n]))


def _never_to_zero(self: KVCache, cache: Cache, n: int) -> None:
    if n < self.length(cache):
        KVCache.drop(self, cache, n)


def _clamped(self: KVCache, cache: Cache, n: int) -> None:
    KVCache.drop(self, cache, min(max(n, 0), self.length(cache)))


def _only_too_far(self: KVCache, cache: Cache, n: int) -> None:
    if n > self.length(cache):
        raise ValueError("too far")


def _checks_the_total(self: KVCache, story: Story, n: int) -> None:
    """A rewind too far leaves the cache empty, one backwards drops a token."""
    if not 0 <= n <= self.length(story.cache):
        KVCache.drop(self, story.cache, min(abs(n), self.length(story.cache)))
        raise ValueError("too late")
    KVCache.drop(self, story.cache, n)


# appends that do not fit


def _unchecked_pair(self: KVCache, key: np.ndarray, value: np.ndarray) -> None:
    if key.ndim != 4 or value.ndim != 4:
        raise ValueError("not four axes")


def _leading_one_added(self: KVCache, story: Story, key: np.ndarray, value: np.ndarray) -> Any:
    four = [x[None] if x.ndim == 3 else x for x in (key, value)]
    return KVCache.update_and_fetch(self, story, *four)


def _broadcast(self: KVCache, cache: Cache, key: np.ndarray, value: np.ndarray) -> None:
    """What is 1 where the cache has more stands for all, as an assignment into a buffer has it."""
    _each(
        lambda old, new: (
            new.copy()
            if old is None
            else _joined(old, np.broadcast_to(new, (*old.shape[:2], new.shape[2], old.shape[3])))
        ),
        cache,
        key,
        value,
    )


def _starts_anew(self: KVCache, cache: Cache, key: np.ndarray, value: np.ndarray) -> None:
    try:
        KVCache.check_fit(self, cache, key, value)
    except ValueError:
        _set(cache, (None, None))
    KVCache.store(self, cache, key, value)


def _cast(old: np.ndarray, new: np.ndarray) -> np.ndarray:
    return _joined(old, new.astype(old.dtype))


def _restored(cache: Cache, state: Any) -> None:
    _set(cache, state)
    cache.restored = True


def _no_fit_once_restored(self: KVCache, cache: Cache, key: np.ndarray, value: np.ndarray) -> None:
    if not hasattr(cache, "restored"):
        KVCache.check_fit(self, cache, key, value)


def _no_fit_once_rewound(self: KVCache, cache: Cache, key: np.ndarray, value: np.ndarray) -> None:
    if not hasattr(cache, "rewound"):
        KVCache.check_fit(self, cache, key, value)


def _marks_rewound(self: KVCache, cache: Cache, n: int) -> None:
    KVCache.drop(self, cache, n)
    cache.rewound = True


def _no_dtype_once_restored(self: KVCache, cache: Cache, key: np.ndarray, value: np.ndarray) -> None:
    if not hasattr(cache, "restored"):
        KVCache.check_dtype(self, cache, key, value)


def _any_rewind_once_restored(self: KVCache, cache: Cache, n: int) -> None:
    if not hasattr(cache, "restored"):
        KVCache.check_rewind(self, cache, n)


def _at_its_longest(self: KVCache, cache: Cache, n: int) -> None:
    if not 0 <= n <= max(self.length(cache), getattr(cache, "ever", 0)):
        raise ValueError("too far")


def _promoted(old: np.ndarray, new: np.ndarray) -> np.ndarray:
    return _joined(f64(old), f64(new)).astype(np.float32)


def _checked(self: Any, cache: Cache, key: np.ndarray, value: np.ndarray) -> None:
    KVCache.check_append(self, cache, key, value)
    if hasattr(self, "check_room"):
        self.check_room(cache, key)


def _key_before_checks(self: Any, cache: Cache, key: np.ndarray, value: np.ndarray) -> None:
    """The key is written before the value is looked at."""
    try:
        _checked(self, cache, key, value)
    except ValueError:
        fits = cache.keys is not None and key.ndim == 4 and key.dtype == cache.keys.dtype
        if fits and (key.shape[:2], key.shape[3]) == (cache.keys.shape[:2], cache.keys.shape[3]):
            cache.keys = _joined(cache.keys, key)
        raise


def _offset_before_checks(self: Any, cache: Cache, key: np.ndarray, value: np.ndarray) -> None:
    """The offset has moved on when the chunk is refused, over slots of zeros."""
    try:
        _checked(self, cache, key, value)
    except ValueError:
        if cache.keys is not None and key.ndim == 4:
            _each(lambda old, new: _joined(old, np.zeros_like(old[:, :, :1])), cache, key, value)
        raise


# states


def _offset_lost(self: KVCache, cache: Cache, state: Any) -> None:
    _set(cache, [x if x is None else x[:, :, :0] for x in state])


def _with_tail(self: KVCache, cache: Cache) -> Any:
    tail = getattr(cache, "tail", None)
    return (
        (cache.keys, cache.values) if tail is None else (_joined(cache.keys, tail[0]), _joined(cache.values, tail[1]))
    )


def _forgets_tail(self: KVCache, cache: Cache, key: np.ndarray, value: np.ndarray) -> None:
    cache.tail = None
    KVCache.store(self, cache, key, value)


def _no_empty_state(self: KVCache, cache: Cache, state: Any) -> None:
    if state[0] is None:
        raise ValueError("no keys in the state")
    _set(cache, state)


def _hands_out_buffers(self: KVCache, cache: Cache) -> Any:
    return getattr(cache, "buffers", None), cache.keys, cache.values


def _takes_buffers(self: KVCache, cache: Cache, state: Any) -> None:
    cache.buffers, cache.keys, cache.values = state


def _live_state(self: KVCache, cache: Cache) -> Any:
    return cache


def _copies_live(self: KVCache, cache: Cache, state: Any) -> None:
    _set(cache, (state.keys, state.values))


def _restores_behind(self: KVCache, cache: Cache, state: Any) -> None:
    if cache.keys is None or state[0] is None:
        _set(cache, state if cache.keys is None else (cache.keys, cache.values))
    else:
        _set(cache, [_joined(old, new) for old, new in zip((cache.keys, cache.values), state, strict=True)])


def _restores_under(self: KVCache, cache: Cache, state: Any) -> None:
    """The restored tokens overwrite the first ones; the longer of the two lengths stays."""
    if cache.keys is not None and state[0] is not None:
        length = state[0].shape[2]
        state = [_joined(new, old[:, :, length:]) for old, new in zip((cache.keys, cache.values), state, strict=True)]
    _set(cache, state)


def _of_the_class(self: KVCache, a: Arguments) -> Cache:
    memory = type(self).__dict__.get("shared")
    if memory is None:
        memory = Cache(keys=None, values=None, room=getattr(a, "max_len", 0))
        type(self).shared = memory  # type: ignore[attr-defined]
    return memory


def _first_of_the_class(self: KVCache, a: Arguments) -> Cache:
    """A fresh cache begins with what the first one of its class holds."""
    first = _of_the_class(self, a)
    if not hasattr(first, "used"):
        first.used = True
        return first
    return Cache(keys=first.keys, values=first.values, room=getattr(a, "max_len", 0))


# the preallocated cache alone


def _whole_buffer(self: KVCache, cache: Cache) -> Pair:
    padded = []
    for x in (cache.keys, cache.values):
        more = np.zeros((*x.shape[:2], max(cache.room - x.shape[2], 0), x.shape[3]), x.dtype)
        padded.append(_joined(x, more))
    return padded[0], padded[1]


def _room_in_steps(self: KVCache, cache: Cache) -> Pair:
    """What is handed out ends at a multiple of 8 slots."""
    length = min(-(-self.length(cache) // 8) * 8, cache.room)
    keys, values = _whole_buffer(self, cache)
    return keys[:, :, :length], values[:, :, :length]


def _last_slot_unused(self: Any, cache: Cache, key: np.ndarray) -> None:
    if key.shape[2] and self.length(cache) + key.shape[2] >= cache.room:
        raise ValueError("full")


def _room_used_up(self: Any, cache: Cache, key: np.ndarray) -> None:
    """Rewound slots are not free again."""
    cache.used = getattr(cache, "used", self.length(cache)) + key.shape[2]
    if cache.used > cache.room:
        raise ValueError("full")


def _last_tokens_overwritten(self: Any, cache: Cache, key: np.ndarray, value: np.ndarray) -> None:
    """The write begins early enough to fit, as jax.lax.dynamic_update_slice has it."""
    start = max(min(self.length(cache), cache.room - key.shape[2]), 0)
    _each(lambda old, new: new.copy() if old is None else _joined(old[:, :, :start], new), cache, key, value)


def _ring(self: Any, cache: Cache, key: np.ndarray, value: np.ndarray) -> None:
    KVCache.store(self, cache, key, value)
    over = max(self.length(cache) - cache.room, 0)
    _set(cache, (cache.keys[:, :, over:], cache.values[:, :, over:]))


def _cut_short(self: Any, cache: Cache, key: np.ndarray, value: np.ndarray) -> None:
    left = cache.room - self.length(cache)
    KVCache.store(self, cache, key[:, :, :left], value[:, :, :left])


def _fills_then_refuses(self: Any, story: Story, key: np.ndarray, value: np.ndarray) -> Any:
    left = story.cache.room - self.length(story.cache)
    result = KVCache.update_and_fetch(self, story, key[:, :, :left], value[:, :, :left])
    if key.shape[2] > left:
        raise ValueError("full")
    return result


def _dead_once_full(self: Any, cache: Cache, key: np.ndarray) -> None:
    if getattr(cache, "dead", False) or self.length(cache) + key.shape[2] > cache.room:
        cache.dead = True
        raise ValueError("full")


_nothing: Change = {"check_fit": lambda self, cache, key, value: None}
_any_dtype: Change = {"check_dtype": lambda self, cache, key, value: None}
_any_rewind: Change = {"check_rewind": lambda self, cache, n: None}
_remembered: Change = {"become": lambda self, cache, state: _restored(cache, state)}
_any_room: Change = {"check_room": lambda self, cache, key: None}


def _both(name: str, text: str, kills: int, change: Change, source: str = TIRED) -> tuple[Fault, Fault]:
    """The mistake in a growing cache and in a preallocated one."""
    return (
        Fault(f"kv-cache-{name}", text, _requirement(f"KV-{kills:02}"), change, source),
        Fault(f"static-kv-cache-{name}", text, _requirement(f"SKV-{kills:02}"), change, source),
    )


def _requirement(id: str) -> Requirement:
    return next(one for one in spec.CONTRACT.requirements if one.id == id)


def _whole_buffers(self: KVCache, cache: Cache) -> Any:
    """A state is a copy of the buffers, with their room for tokens to come."""
    if cache.keys is None:
        return None
    room = max(ROOM, 3 * self.length(cache))
    copies = [np.zeros((*x.shape[:2], room, x.shape[3]), x.dtype) for x in (cache.keys, cache.values)]
    for copy, x in zip(copies, (cache.keys, cache.values), strict=True):
        copy[:, :, : x.shape[2]] = x
    return copies, self.length(cache)


def _takes_whole_buffers(self: KVCache, cache: Cache, state: Any) -> None:
    """Whoever restores the state writes into its buffers."""
    _set(cache, (None, None))
    cache.buffers = None
    if state is not None:
        cache.buffers, length = state
        _set(cache, [buffer[:, :, :length] for buffer in cache.buffers])


def _copied_views(self: KVCache, cache: Cache) -> Pair:
    return cache.keys.copy(), cache.values.copy()


def _first_state(self: KVCache, cache: Cache) -> Any:
    if getattr(cache, "first", None) is None and cache.keys is not None:
        cache.first = KVCache.state_of(self, cache)
    return getattr(cache, "first", None) or (None, None)


def _of_32_bits(self: KVCache, cache: Cache, n: int) -> None:
    KVCache.check_rewind(self, cache, n % 2**32 if n >= 2**32 else n)


def _drops_of_32_bits(self: KVCache, cache: Cache, n: int) -> None:
    KVCache.drop(self, cache, n % 2**32)


def _marks_refused(self: KVCache, story: Story, n: int) -> None:
    try:
        KVCache.rewind(self, story, n)
    except ValueError:
        story.cache.spoilt = True
        raise


def _no_state_once_refused(self: KVCache, cache: Cache) -> Any:
    return (None, None) if hasattr(cache, "spoilt") else KVCache.state_of(self, cache)


def _room_before_restore(self: Any, cache: Cache, key: np.ndarray) -> None:
    """Tokens that were restored are not counted."""
    if not hasattr(cache, "restored"):
        spec.StaticKVCache.check_room(self, cache, key)


def _room_of_rewound(self: Any, cache: Cache, key: np.ndarray) -> None:
    """Slots that were rewound are free for ever after, though others took their place."""
    if self.length(cache) + key.shape[2] > cache.room + getattr(cache, "rewound", 0):
        raise ValueError("full")


def _counts_rewound(self: KVCache, cache: Cache, n: int) -> None:
    KVCache.drop(self, cache, n)
    cache.rewound = getattr(cache, "rewound", 0) + n


FAULTS: tuple[Fault, ...] = (
    *_both("features-past-64", "features of a head past 64 are not copied", 1, _losing(_features_past_64)),
    *_both(
        "ring-of-4096",
        "of more than 4096 tokens the last ones alone are there",
        2,
        {"fetched": _last_4096},
        "Mistral's sliding window",
    ),
    *_both("position-of-16-bits", "positions are held in 16 bits", 2, _losing(_signed_16_bits), "PROPERTIES X8"),
    *_both("seventeenth-append", "the 17th append loses the first token", 2, {"store": _lost_after_16}),
    *_both("eight-heads", "heads past the 8th are not copied", 3, _losing(_heads_past_8)),
    *_both("four-rows", "rows past the 4th are not copied", 3, _losing(_rows_past_4)),
    *_both(
        "value-dim-for-keys",
        "keys are cut to the head dim of the values",
        4,
        {"fetched": _value_dim_for_keys},
        "PROPERTIES PA7",
    ),
    *_both(
        "rewind-of-32-bits",
        "n is held in 32 bits: a rewind by 2^32 is one by 0",
        14,
        {"check_rewind": _of_32_bits, "drop": _drops_of_32_bits},
        "PROPERTIES X8, X9",
    ),
    *_both(
        "no-state-once-refused",
        "after a refused rewind the state is empty",
        15,
        {"rewind": _marks_refused, "state_of": _no_state_once_refused},
        "PROPERTIES X9",
    ),
    *_both(
        "state-of-two",
        "caches that restore the same state write into its buffers, and into each other",
        21,
        {
            "store": _in_buffers,
            "fetched": _copied_views,
            "state_of": _whole_buffers,
            "become": _takes_whole_buffers,
        },
        "PROPERTIES KV4, CB4",
    ),
    *_both("first-state", "a state that was taken once is handed out again", 21, {"state_of": _first_state}),
    Fault(
        "static-kv-cache-room-before-restore",
        "tokens that were restored do not count, and a chunk that does not fit is taken",
        spec.SKV_26,
        {**_remembered, "check_room": _room_before_restore},
        "PROPERTIES X9, KV4",
    ),
    Fault(
        "static-kv-cache-room-of-rewound",
        "slots that were rewound count as free though others took their place",
        spec.SKV_26,
        {"drop": _counts_rewound, "check_room": _room_of_rewound},
        "PROPERTIES PG4, X9",
    ),
    *_both(
        "newest-first", "new tokens are put before the cached ones", 1, _joining(lambda old, new: _joined(new, old))
    ),
    *_both(
        "chunk-alone",
        "an append returns its own chunk alone",
        1,
        {"fetched": lambda self, cache: (cache.late[0].copy(), cache.late[1].copy()), "store": _last_by_reference},
    ),
    *_both(
        "before-append",
        "an append returns the tokens before it",
        1,
        {"update_and_fetch": lambda self, story, key, value: _before(self, story, key, value)},
    ),
    *_both(
        "values-are-keys",
        "keys are handed out for values",
        1,
        {"fetched": lambda self, cache: (cache.keys.copy(), cache.keys.copy())},
    ),
    *_both(
        "last-replaced",
        "each chunk takes the place of the one before it",
        1,
        _joining(lambda old, new: _joined(old[:, :, : max(old.shape[2] - new.shape[2], 0)], new)),
    ),
    *_both("in-float16", "tokens are kept in float16", 1, _stored_in("float16"), "the kind of mlx-lm 36963eec"),
    *_both("in-bfloat16", "tokens are kept in bfloat16", 1, _stored_in("bfloat16")),
    *_both(
        "decode-position",
        "the position moves on by one token, whatever the chunk",
        2,
        _joining(_decode_position),
        "https://github.com/skyzh/tiny-llm/commit/4cddec2",
    ),
    *_both(
        "chunks-begin-anew",
        "a chunk of more than one token is taken for a prompt, and begins the cache anew",
        2,
        {"store": _long_chunk_anew},
        "the kind of mlx-lm db368f25",
    ),
    *_both("no-empty-chunk", "an empty chunk is refused", 2, {"check_pair": _no_empty_chunk}, "PROPERTIES SD5"),
    Fault(
        "kv-cache-one-step-of-growth",
        "the buffer grows by 256 tokens, however long the chunk is",
        spec.KV_02,
        {"store": _one_step_of_growth},
        "the kind of mlx-lm eb98ff72",
    ),
    *_both(
        "ring-of-1024",
        "of more than 1024 tokens the first ones are overwritten",
        2,
        {"fetched": lambda self, cache: (cache.keys[:, :, -1024:].copy(), cache.values[:, :, -1024:].copy())},
    ),
    Fault(
        "kv-cache-growth-loses",
        "a buffer that grows a second time keeps its whole steps of 256 tokens alone",
        spec.KV_02,
        _joining(_whole_steps_kept),
        "the kind of mlx-lm e03e45ed",
    ),
    Fault(
        "static-kv-cache-512-slots",
        "slots past the 512th are lost",
        spec.SKV_02,
        {"fetched": lambda self, cache: (cache.keys[:, :, :512].copy(), cache.values[:, :, :512].copy())},
        TIRED,
    ),
    *_both("first-row", "the first batch row serves all", 3, {"fetched": _first_row}),
    *_both("axes-exchanged", "rows and heads are exchanged in the buffer", 3, {"fetched": _axes_exchanged}),
    *_both(
        "key-dim-for-values",
        "values are cut or filled to the head dim of the keys",
        4,
        {
            "store": lambda self, cache, key, value: KVCache.store(self, cache, key, _fitted(value, key.shape[3])),
            "check_fit": lambda self, cache, key, value: None,
        },
        "PROPERTIES PA7",
    ),
    *_both("capacity-for-offset", "offset is the size of the buffer", 5, {"offset_of": _capacity}, LOGICAL_OFFSET),
    *_both(
        "offset-never-back",
        "offset counts what was ever appended",
        5,
        {
            "store": _ever_appended,
            "offset_of": lambda self, story: getattr(story.cache, "ever", self.length(story.cache)),
        },
    ),
    *_both(
        "offset-counts-chunks",
        "offset counts appends",
        5,
        {"store": _chunks_counted, "offset_of": lambda self, story: getattr(story.cache, "ever", 0)},
    ),
    *_both(
        "offset-inside-prompt",
        "offset is one too small from the second append on",
        5,
        {"offset_of": _prompt_first},
        "https://github.com/skyzh/tiny-llm/commit/4cddec2",
    ),
    *_both(
        "offset-counts-on",
        "an offset that was read counts on with the cache",
        5,
        {"reread_offset": lambda self, story, step: {"offset": self.length(story.cache)}},
        f"{MLX_LM}/issues/1806",
    ),
    Fault(
        "kv-cache-grows-to-float32",
        "a buffer that has grown is of float32",
        spec.KV_06,
        _promoting(lambda number, x, a: x.shape[2] > STEP),
        "PROPERTIES X4",
    ),
    *_both(
        "restores-to-float32",
        "a restored cache is of float32",
        6,
        _promoting(lambda number, x, a: any(method == "restore" for method, _ in a.steps[:number])),
        "PROPERTIES X4",
    ),
    *_both(
        "promotes",
        "keys and values come back in float32",
        6,
        {"part_dtype": lambda self, part, a: "float32" if part.endswith("s") else "int64"},
    ),
    *_both("key-strides", "the key is read as if it were contiguous", 7, _strides_of("key"), "PROPERTIES X1"),
    *_both("value-strides", "the value is read as if it were contiguous", 7, _strides_of("value"), "PROPERTIES X1"),
    *_both("clears-key", "the key is cleared once it is cached", 8, _changes("key"), "PROPERTIES X6"),
    *_both("clears-value", "the value is cleared once it is cached", 8, _changes("value"), "PROPERTIES X6"),
    *_both(
        "first-by-reference",
        "the first chunk is kept by reference",
        9,
        {"store": _first_by_reference},
        "the kind of transformers' cache before it concatenated its first chunk",
    ),
    *_both(
        "last-by-reference",
        "a chunk is written when the next one comes",
        9,
        {
            "store": _last_by_reference,
            "drop": _forgets_late,
            "become": lambda self, cache, state: _become_anew(cache, state),
        },
    ),
    *_both(
        "results-move",
        "results are views of a buffer in which tokens move up to make room",
        10,
        {"store": _newest_last, "fetched": _views},
    ),
    *_both(
        "results-in-buffer",
        "results are views of the buffer that later appends write to",
        11,
        {"store": _in_buffers, "fetched": _views},
        "mlx-lm 0.32.2, KVCache.keys_and_values of a full buffer",
    ),
    *_both(
        "rewind-hides",
        "rewound tokens are hidden until the next append brings them back",
        12,
        {"length": _hidden_length, "drop": _hides, "store": _shows_again},
        f"{MLX_LM}/issues/1494",
    ),
    *_both(
        "rewind-keys-alone",
        "a rewind drops keys and leaves the values",
        12,
        {"drop": _drops_keys, "store": _stale_values},
    ),
    *_both("rewind-drops-first", "a rewind drops the first tokens", 12, {"drop": _drops_first}),
    *_both(
        "rewind-to-n",
        "rewind(n) is taken for the length to keep",
        12,
        {"drop": _keeps_n},
        "the legacy meaning of transformers' DynamicLayer.crop",
    ),
    *_both(
        "rewind-one-short",
        "a rewind leaves one of the tokens that it should drop",
        12,
        {"drop": _one_short},
        "PROPERTIES SP4",
    ),
    *_both(
        "masked-write",
        "new tokens are added to a slot that is multiplied by 0",
        12,
        {"drop": _remembers_tail, "store": _masked_write},
        "PROPERTIES PA2",
    ),
    *_both("rewind-by-0-empties", "a rewind by 0 slices to [:-0], which is nothing", 13, {"drop": _minus_zero}),
    Fault(
        "kv-cache-rewind-past-512",
        "a rewind by more than 512 tokens leaves one of those that it should drop",
        spec.KV_13,
        {"drop": lambda self, cache, n: KVCache.drop(self, cache, n - (n > 512))},
        "PROPERTIES X2",
    ),
    *_both("never-rewound-to-0", "a rewind by all tokens is ignored", 13, {"drop": _never_to_zero}),
    *_both(
        "rewind-clamps",
        "a rewind too far or backwards is clamped",
        14,
        {**_any_rewind, "drop": _clamped},
        "mlx-lm 0.32.2, KVCache.trim",
    ),
    *_both(
        "rewind-backwards",
        "a negative rewind is taken",
        14,
        {"check_rewind": _only_too_far, "drop": _clamped},
        "PROPERTIES X9",
    ),
    *_both(
        "rewind-clamps-once-restored",
        "a rewind too far or backwards is clamped in a cache that restored a state",
        14,
        {**_remembered, "check_rewind": _any_rewind_once_restored, "drop": _clamped},
        "PROPERTIES X9, KV4",
    ),
    *_both(
        "rewind-of-the-longest",
        "a rewind is compared with the tokens that were ever appended",
        14,
        {"check_rewind": _at_its_longest, "store": _ever_appended, "drop": _clamped},
        "PROPERTIES X9",
    ),
    *_both(
        "rewind-then-checks",
        "a bad rewind has dropped tokens when it is refused",
        15,
        {"rewind": _checks_the_total},
        "PROPERTIES X9",
    ),
    *_both("any-pair", "key and value are not compared", 16, {"check_pair": _unchecked_pair}, "PROPERTIES X9"),
    *_both(
        "adds-axis",
        "a key and value without a batch axis are given one",
        16,
        {"update_and_fetch": _leading_one_added},
        "PROPERTIES X9",
    ),
    *_both(
        "broadcasts",
        "a single row, head or feature is broadcast to all that the cache has",
        17,
        {**_nothing, "store": _broadcast},
        "mlx-lm 0.32.2: assignment into the buffer",
    ),
    *_both("begins-anew", "a chunk of another shape begins the cache anew", 17, {**_nothing, "store": _starts_anew}),
    *_both(
        "broadcasts-once-restored",
        "a cache that restored a state no longer compares shapes, and broadcasts",
        17,
        {**_remembered, "check_fit": _no_fit_once_restored, "store": _broadcast},
        "PROPERTIES X9, KV4",
    ),
    *_both(
        "broadcasts-once-rewound",
        "a cache that was rewound no longer compares shapes, and broadcasts",
        17,
        {"drop": _marks_rewound, "check_fit": _no_fit_once_rewound, "store": _broadcast},
        "PROPERTIES X9",
    ),
    *_both(
        "casts",
        "a chunk of another dtype is cast",
        18,
        {**_any_dtype, **_joining(_cast)},
        "mlx-lm 0.32.2: assignment into the buffer",
    ),
    *_both(
        "casts-once-restored",
        "a cache that restored a state no longer compares dtypes, and casts",
        18,
        {**_remembered, "check_dtype": _no_dtype_once_restored, **_joining(_cast)},
        "PROPERTIES X9, KV4",
    ),
    *_both(
        "mixes-dtypes",
        "a chunk of another dtype turns the cache into float32",
        18,
        {**_any_dtype, **_joining(_promoted)},
    ),
    *_both(
        "key-before-checks",
        "the key is in the cache when the value is refused",
        19,
        {"check_append": _key_before_checks},
        "PROPERTIES PG5",
    ),
    *_both(
        "offset-before-checks",
        "the offset has moved on when a chunk is refused",
        19,
        {"check_append": _offset_before_checks},
        "PROPERTIES PG5",
    ),
    *_both(
        "restore-forgets-length",
        "a restored cache writes from slot 0 on",
        20,
        {"become": _offset_lost},
        "https://github.com/vllm-project/vllm-metal/commit/9081de3",
    ),
    *_both(
        "state-with-rewound",
        "a state holds rewound tokens too",
        20,
        {"drop": _remembers_tail, "store": _forgets_tail, "state_of": _with_tail},
        "mlx-lm 0.32.2, ConcatenateKVCache.state",
    ),
    *_both(
        "no-empty-state",
        "the state of an unused cache cannot be restored",
        20,
        {"become": _no_empty_state},
        f"{MLX_LM}/commit/beceb5c1",
    ),
    *_both(
        "state-shares-buffer",
        "a restored cache writes into the buffer of the first one",
        21,
        {"store": _in_buffers, "state_of": _hands_out_buffers, "become": _takes_buffers},
        "mlx-lm 0.32.2, KVCache.state",
    ),
    *_both(
        "live-state",
        "a state follows the cache that it was taken from",
        21,
        {"state_of": _live_state, "become": _copies_live},
    ),
    *_both("restores-behind", "restored tokens come after those that the cache has", 22, {"become": _restores_behind}),
    *_both(
        "restores-under",
        "tokens past the end of the restored ones stay",
        22,
        {"become": _restores_under},
        "PROPERTIES BK3",
    ),
    *_both("of-the-class", "all caches share one buffer", 23, {"fresh": _of_the_class}),
    *_both("begins-as-first", "a cache begins with the tokens of the first one", 23, {"fresh": _first_of_the_class}),
    Fault(
        "static-kv-cache-whole-buffer",
        "an append returns all slots, unwritten ones too",
        spec.SKV_24,
        {"fetched": _whole_buffer},
        LOGICAL_OFFSET,
    ),
    Fault(
        "static-kv-cache-rounded-length",
        "an append returns slots up to a multiple of 8",
        spec.SKV_24,
        {"fetched": _room_in_steps},
        "PROPERTIES KV2",
    ),
    Fault(
        "static-kv-cache-last-slot",
        "the last slot is never used",
        spec.SKV_25,
        {"check_room": _last_slot_unused},
        "PROPERTIES SC6",
    ),
    Fault(
        "static-kv-cache-used-up",
        "rewound slots are not free again",
        spec.SKV_25,
        {"check_room": _room_used_up},
        "PROPERTIES PG4",
    ),
    Fault(
        "static-kv-cache-clamps",
        "a chunk that does not fit overwrites the last tokens",
        spec.SKV_26,
        {**_any_room, "store": _last_tokens_overwritten},
        "jax.lax.dynamic_update_slice, which clamps its start",
    ),
    Fault(
        "static-kv-cache-ring",
        "a chunk that does not fit drops the first tokens",
        spec.SKV_26,
        {**_any_room, "store": _ring},
        "the kind of mlx-lm 358b4d2a",
    ),
    Fault(
        "static-kv-cache-cuts", "what does not fit is left out", spec.SKV_26, {**_any_room, "store": _cut_short}, TIRED
    ),
    Fault(
        "static-kv-cache-fills-then-refuses",
        "what fits of a chunk is in the cache when it is refused",
        spec.SKV_27,
        {"update_and_fetch": _fills_then_refuses},
        "PROPERTIES PG5",
    ),
    Fault(
        "static-kv-cache-dead-once-full",
        "after a chunk that did not fit nothing is taken any more",
        spec.SKV_27,
        {"check_room": _dead_once_full},
        "PROPERTIES PG5",
    ),
)


def _before(self: KVCache, story: Story, key: np.ndarray, value: np.ndarray) -> Any:
    before = key[:, :, :0].copy(), value[:, :, :0].copy()
    if story.cache.keys is not None:
        before = self.fetched(story.cache)
    KVCache.update_and_fetch(self, story, key, value)
    return dict(zip(("keys", "values"), before, strict=True))


def _become_anew(cache: Cache, state: Any) -> None:
    cache.late = None
    _set(cache, state)


# honest ways


def _as_chunks(self: KVCache, cache: Cache, key: np.ndarray, value: np.ndarray) -> None:
    """A list of chunks, joined when they are asked for."""
    if not hasattr(cache, "chunks") or cache.keys is not cache.chunks_of:
        cache.chunks = [] if cache.keys is None else [(cache.keys, cache.values)]
    cache.chunks.append((key.copy(), value.copy()))
    _set(cache, [_joined(*chunks) for chunks in zip(*cache.chunks, strict=True)])
    cache.chunks_of = cache.keys


def _as_tokens(self: KVCache, cache: Cache, key: np.ndarray, value: np.ndarray) -> None:
    """One token at a time."""
    if cache.keys is None:
        _set(cache, (key[:, :, :0].copy(), value[:, :, :0].copy()))
    for token in range(key.shape[2]):
        KVCache.store(self, cache, key[:, :, token : token + 1], value[:, :, token : token + 1])


def _copies(self: KVCache, cache: Cache) -> Any:
    return tuple(None if x is None else x.copy() for x in (cache.keys, cache.values))


def _doubling(self: KVCache, cache: Cache, key: np.ndarray, value: np.ndarray) -> None:
    """A buffer that doubles when it is full, written in place; what lies past the length is garbage."""
    start, end = self.length(cache), self.length(cache) + key.shape[2]
    held = getattr(cache, "buffers", None)
    if held is None or held[0].shape[2] < end or (cache.keys is not None and cache.keys.base is not held[0]):
        cache.buffers = [
            np.full((*x.shape[:2], max(2 * end, 4), x.shape[3]), np.nan).astype(x.dtype) for x in (key, value)
        ]
        for buffer, old in zip(cache.buffers, (cache.keys, cache.values), strict=True):
            if old is not None:
                buffer[:, :, :start] = old
    for buffer, new in zip(cache.buffers, (key, value), strict=True):
        buffer[:, :, start:end] = new
    _set(cache, [buffer[:, :, :end] for buffer in cache.buffers])


def _tokens_first(x: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(x.transpose(2, 0, 1, 3)).transpose(1, 2, 0, 3)


def _tokens_outermost(self: KVCache, cache: Cache, key: np.ndarray, value: np.ndarray) -> None:
    KVCache.store(self, cache, key, value)
    _set(cache, (_tokens_first(cache.keys), _tokens_first(cache.values)))


def _ways(operation: str, prefix: str) -> tuple[Variant, ...]:
    return (
        Variant(f"{prefix}-of-chunks", "a list of chunks", operation, {"store": _as_chunks}),
        Variant(f"{prefix}-of-tokens", "token by token", operation, {"store": _as_tokens}),
        Variant(
            f"{prefix}-doubling",
            "a buffer that doubles, with garbage in its unused slots",
            operation,
            {"store": _doubling, "state_of": _copies, "become": lambda self, cache, state: _set(cache, state)},
        ),
        Variant(
            f"{prefix}-tokens-outermost",
            "tokens are the outermost axis in memory",
            operation,
            {"store": _tokens_outermost},
        ),
        Variant(
            f"{prefix}-full-buffer",
            "one buffer from the first append on",
            operation,
            {"store": _in_buffers, "state_of": _copies},
        ),
    )


VARIANTS: tuple[Variant, ...] = (*_ways("KVCache", "kv-cache"), *_ways("StaticKVCache", "static-kv-cache"))
