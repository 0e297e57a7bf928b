"""The steps that faults and honest variants have in the place of the oracle's: see `spec/faults/kv_cache.py`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from inferspec.spec.contract import Arguments, Change, Operation
from inferspec.spec.kv_cache import Cache, KVCache, Story
from inferspec.spec.numerics import f64, largest, round_to

Pair = tuple[np.ndarray, np.ndarray]

STEP = 256

ROOM = 2500
"""Tokens of a buffer that is larger than any story but the longest."""


def hold(cache: Cache, pair: Any) -> None:
    cache.keys, cache.values = pair


def each(function: Any, cache: Cache, key: np.ndarray, value: np.ndarray) -> None:
    """Replace keys and values by the function of what is cached (None at first) and what is new."""
    hold(cache, [function(old, new) for old, new in ((cache.keys, key), (cache.values, value))])


def joining(function: Any) -> Change:
    """`store` by a function of what is cached and what is new, where something is cached."""

    def store(self: KVCache, cache: Cache, key: np.ndarray, value: np.ndarray) -> None:
        each(lambda old, new: new.copy() if old is None else function(old, new), cache, key, value)

    return {"store": store}


def joined(*chunks: np.ndarray) -> np.ndarray:
    return np.concatenate(chunks, axis=2)


# appends


def decode_position(old: np.ndarray, new: np.ndarray) -> np.ndarray:
    """The position moves on by one whatever was appended, so that a chunk is overwritten from its second token on."""
    return joined(old[:, :, : max(1, old.shape[2] - new.shape[2] + 1)], new) if new.shape[2] else old


def one_step_of_growth(self: KVCache, cache: Cache, key: np.ndarray, value: np.ndarray) -> None:
    KVCache.store(self, cache, key[:, :, :STEP], value[:, :, :STEP])


def whole_steps_kept(old: np.ndarray, new: np.ndarray) -> np.ndarray:
    grows = -(-(old.shape[2] + new.shape[2]) // STEP) > -(-old.shape[2] // STEP)
    kept = old.shape[2] // STEP * STEP if grows and old.shape[2] > STEP else old.shape[2]
    return joined(old[:, :, :kept], new)


def long_chunk_anew(self: KVCache, cache: Cache, key: np.ndarray, value: np.ndarray) -> None:
    if key.shape[2] > 1:
        hold(cache, (key.copy(), value.copy()))
    else:
        KVCache.store(self, cache, key, value)


def no_empty_chunk(self: KVCache, key: np.ndarray, value: np.ndarray) -> None:
    KVCache.check_pair(self, key, value)
    if not key.shape[2]:
        raise ValueError("nothing to append")


def first_row(self: KVCache, cache: Cache) -> Pair:
    return tuple(np.repeat(x[:1], len(x), axis=0) for x in (cache.keys, cache.values))  # type: ignore[return-value]


def axes_exchanged(self: KVCache, cache: Cache) -> Pair:
    return tuple(x.swapaxes(0, 1).reshape(x.shape) for x in (cache.keys, cache.values))


def fitted(x: np.ndarray, dim: int) -> np.ndarray:
    """x with its head dim cut short or filled with zeros."""
    filled = np.zeros((*x.shape[:3], dim), x.dtype)
    shared = min(dim, x.shape[3])
    filled[..., :shared] = x[..., :shared]
    return filled


def stored_in(dtype: str) -> Change:
    def store(self: KVCache, cache: Cache, key: np.ndarray, value: np.ndarray) -> None:
        narrow = (round_to(f64(round_to(f64(x), dtype)), x.dtype.name) for x in (key, value))
        KVCache.store(self, cache, *narrow)

    return {"store": store}


def losing(lost: Callable[[np.ndarray, np.ndarray], None]) -> Change:
    """`fetched`, with some of keys and values gone. lost: sets those to 0."""

    def fetched(self: KVCache, cache: Cache) -> Pair:
        keys, values = KVCache.fetched(self, cache)
        lost(keys, values)
        return keys, values

    return {"fetched": fetched}


def heads_past_8(keys: np.ndarray, values: np.ndarray) -> None:
    keys[:, 8:] = values[:, 8:] = 0


def rows_past_4(keys: np.ndarray, values: np.ndarray) -> None:
    keys[4:] = values[4:] = 0


def rows_past_whole_tiles(keys: np.ndarray, values: np.ndarray) -> None:
    """A kernel that takes 32 rows at a time, and pads more than one tile of them with zeros."""
    if len(keys) > 32:
        left = len(keys) // 32 * 32
        keys[left:] = values[left:] = 0


def features_past_64(keys: np.ndarray, values: np.ndarray) -> None:
    keys[..., 64:] = values[..., 64:] = 0


def features_past_512(keys: np.ndarray, values: np.ndarray) -> None:
    keys[..., 512:] = values[..., 512:] = 0


def heads_past_64(keys: np.ndarray, values: np.ndarray) -> None:
    keys[:, 64:] = values[:, 64:] = 0


def infinities_clamped(keys: np.ndarray, values: np.ndarray) -> None:
    for x in (keys, values):
        most = largest(x.dtype.name)
        x[...] = np.where(np.isinf(f64(x)), np.sign(f64(x)) * most, f64(x)).astype(x.dtype)


def last_of_common_features(keys: np.ndarray, values: np.ndarray) -> None:
    """A kernel for eight heads of 64 or 128 features, in half precision."""
    if keys.shape[1] == 8 and keys.shape[3] in (64, 128) and keys.dtype.itemsize == 2:
        keys[..., -1] = 0


def past_whole_eights(keys: np.ndarray, values: np.ndarray) -> None:
    if keys.shape[3] > 8:
        keys[..., keys.shape[3] // 8 * 8 :] = 0


def value_dim_for_keys(self: KVCache, cache: Cache) -> Pair:
    keys, values = KVCache.fetched(self, cache)
    return keys[..., : values.shape[3]], values


def last_4096(self: KVCache, cache: Cache) -> Pair:
    keys, values = KVCache.fetched(self, cache)
    return keys[:, :, -4096:], values[:, :, -4096:]


def signed_16_bits(keys: np.ndarray, values: np.ndarray) -> None:
    """A position of 16 bits with a sign: past 32767 it is below 0, and what is written there is not read."""
    keys[:, :, 1 << 15 :] = values[:, :, 1 << 15 :] = 0


def lost_after_16(self: KVCache, cache: Cache, key: np.ndarray, value: np.ndarray) -> None:
    """The 17th append finds a queue of 16 writes full, and the oldest is gone."""
    KVCache.store(self, cache, key, value)
    cache.writes = getattr(cache, "writes", 0) + 1
    if cache.writes == 17:
        hold(cache, [np.concatenate([x[:, :, :1] * 0, x[:, :, 1:]], axis=2) for x in (cache.keys, cache.values)])


def lost_past_1024(self: KVCache, cache: Cache, key: np.ndarray, value: np.ndarray) -> None:
    """What makes a buffer of 1024 tokens grow is lost when it is one token."""
    lost = self.length(cache) == 1024 and key.shape[2] == 1
    KVCache.store(self, cache, *((key * 0, value * 0) if lost else (key, value)))


# offset


def capacity(self: KVCache, story: Story) -> int:
    grown = -(-self.length(story.cache) // STEP) * STEP
    return int(getattr(story.cache, "room", grown))


def _other_than_zeros(cache: Cache) -> int:
    """The tokens whose key, that of the first row and head, is not all zeros."""
    return 0 if cache.keys is None or not cache.keys.size else int((f64(cache.keys[0, 0]) != 0).any(axis=-1).sum())


def in_sixteen_bits(self: KVCache, story: Story) -> int:
    return int(np.int64(self.length(story.cache)).astype(np.int16))


def zeros_not_counted(self: KVCache, story: Story) -> int:
    return _other_than_zeros(story.cache)


def behind_the_last_but_zeros(self: KVCache, cache: Cache, key: np.ndarray, value: np.ndarray) -> None:
    """A chunk is written behind as many tokens as have keys that are not zeros."""
    if cache.keys is not None:
        used = _other_than_zeros(cache)
        hold(cache, (cache.keys[:, :, :used], cache.values[:, :, :used]))
    KVCache.store(self, cache, key, value)


def ever_appended(self: KVCache, cache: Cache, key: np.ndarray, value: np.ndarray) -> None:
    cache.ever = getattr(cache, "ever", self.length(cache)) + key.shape[2]
    KVCache.store(self, cache, key, value)


def chunks_counted(self: KVCache, cache: Cache, key: np.ndarray, value: np.ndarray) -> None:
    cache.ever = getattr(cache, "ever", 0) + 1
    KVCache.store(self, cache, key, value)


def prompt_first(self: KVCache, story: Story) -> int:
    """The offset is one too small from the second append on, as if decoding began inside the prompt."""
    length = self.length(story.cache)
    return length - (len(story.given) > 1 and length > 0)


# arguments and results


def first_by_reference(self: KVCache, cache: Cache, key: np.ndarray, value: np.ndarray) -> None:
    if cache.keys is None:
        hold(cache, (key, value))
    else:
        KVCache.store(self, cache, key, value)


def last_by_reference(self: KVCache, cache: Cache, key: np.ndarray, value: np.ndarray) -> None:
    """The last chunk is written only when the next one comes."""
    late = getattr(cache, "late", None)
    if late is not None and cache.keys is not None and cache.keys.shape[2] >= late[0].shape[2]:
        length = cache.keys.shape[2] - late[0].shape[2]
        hold(
            cache, [joined(old[:, :, :length], new) for old, new in zip((cache.keys, cache.values), late, strict=True)]
        )
    KVCache.store(self, cache, key, value)
    cache.late = key, value


def later_by_reference(self: KVCache, cache: Cache, key: np.ndarray, value: np.ndarray) -> None:
    """From the sixth append on a chunk waits in a list to be joined with the next one."""
    last_by_reference(self, cache, key, value)
    cache.writes = getattr(cache, "writes", 0) + 1
    if cache.writes < 6:
        cache.late = None


def anew_by_reference(self: KVCache, cache: Cache, key: np.ndarray, value: np.ndarray) -> None:
    """What comes when all was rewound takes the place of what was there."""
    if cache.keys is not None and not cache.keys.shape[2]:
        hold(cache, (key, value))
    else:
        KVCache.store(self, cache, key, value)


def forgets_late(self: KVCache, cache: Cache, n: int) -> None:
    cache.late = None
    KVCache.drop(self, cache, n)


def in_buffers(
    self: KVCache,
    cache: Cache,
    key: np.ndarray,
    value: np.ndarray,
    least: int = ROOM,
    times: int = 3,
    fill: float = 0.0,
) -> None:
    """Tokens are written into a buffer in place; `keys` and `values` are views of it. A new one has room for `least`
    tokens, or `times` as many as there are, and holds `fill`."""
    start, end = self.length(cache), self.length(cache) + key.shape[2]
    held = getattr(cache, "buffers", None)
    if held is None or held[0].shape[2] < end or (cache.keys is not None and cache.keys.base is not held[0]):
        shapes = [(*x.shape[:2], max(least, times * end), x.shape[3]) for x in (key, value)]
        cache.buffers = [np.full(shape, fill).astype(key.dtype) for shape in shapes]
        for buffer, old in zip(cache.buffers, (cache.keys, cache.values), strict=True):
            if old is not None:
                buffer[:, :, :start] = old
    for buffer, new in zip(cache.buffers, (key, value), strict=True):
        buffer[:, :, start:end] = new
    hold(cache, [buffer[:, :, :end] for buffer in cache.buffers])


def in_workspace(self: KVCache, cache: Cache) -> Pair:
    """What is returned lies in a workspace, one for each shape, that all caches have in common."""
    space = vars(type(self)).get("space")
    if space is None:
        space = type(self).space = {}  # type: ignore[attr-defined]
    for part, x in enumerate((cache.keys, cache.values)):
        space.setdefault((part, x.shape, x.dtype.name), x.copy())[...] = x
    keys, values = (space[part, x.shape, x.dtype.name] for part, x in enumerate((cache.keys, cache.values)))
    return keys, values


def views(self: KVCache, cache: Cache) -> Pair:
    return cache.keys, cache.values


def newest_last(self: KVCache, cache: Cache, key: np.ndarray, value: np.ndarray) -> None:
    """Tokens lie at the end of a buffer and move up in place to make room."""
    KVCache.store(self, cache, key, value)
    length = self.length(cache)
    if not hasattr(cache, "moving") or cache.moving[0].shape[2] < length:
        room = max(ROOM, 3 * length)
        cache.moving = [np.zeros((*x.shape[:2], room, x.shape[3]), x.dtype) for x in (key, value)]
    start = cache.moving[0].shape[2] - length
    for buffer, x in zip(cache.moving, (cache.keys, cache.values), strict=True):
        buffer[:, :, start:] = x
    hold(cache, [buffer[:, :, start:] for buffer in cache.moving])


def promoting(where: Callable[[int, np.ndarray, Arguments], bool]) -> Change:
    """Keys and values of some steps come back in float32."""

    def respond(self: KVCache, a: Arguments) -> Any:
        result = Operation.respond(self, a)
        return {
            part: x.astype(np.float32) if x.ndim == 4 and where(int(part.split()[0]), x, a) else x
            for part, x in result.items()
        }

    return {"respond": respond}


nothing: Change = {"check_fit": lambda self, cache, key, value: None}

any_dtype: Change = {"check_dtype": lambda self, cache, key, value: None}

any_rewind: Change = {"check_rewind": lambda self, cache, n: None}


def cast_to_the_first(self: KVCache, cache: Cache, key: np.ndarray, value: np.ndarray) -> None:
    """A buffer has the dtype of the first tokens of all, and casts others into it."""
    first = vars(cache).setdefault("first_dtypes", (key.dtype, value.dtype))
    with np.errstate(over="ignore"):
        pair = [f64(x).astype(dtype) for x, dtype in zip((key, value), first, strict=True)]
    KVCache.store(self, cache, *pair)


def behind_an_empty_buffer(self: KVCache, cache: Cache, key: np.ndarray, value: np.ndarray) -> None:
    """What is concatenated with no tokens of a wider dtype is of that dtype."""
    if cache.keys is not None and not cache.keys.shape[2]:
        pairs = ((key, cache.keys), (value, cache.values))
        key, value = (x.astype(np.promote_types(x.dtype, empty.dtype)) for x, empty in pairs)
    KVCache.store(self, cache, key, value)


def of_one_dtype(self: KVCache, cache: Cache, key: np.ndarray, value: np.ndarray) -> None:
    for x, cached in ((key, cache.keys), (value, cache.values)):
        if cached is not None and x.dtype != cached.dtype:
            raise ValueError(f"{x.dtype.name} in a cache of {cached.dtype.name}")


def before(self: KVCache, story: Story, key: np.ndarray, value: np.ndarray) -> Any:
    before = key[:, :, :0].copy(), value[:, :, :0].copy()
    if story.cache.keys is not None:
        before = self.fetched(story.cache)
    KVCache.update_and_fetch(self, story, key, value)
    return dict(zip(("keys", "values"), before, strict=True))


def become_anew(cache: Cache, state: Any) -> None:
    cache.late = None
    hold(cache, state)


# honest ways


def as_chunks(self: KVCache, cache: Cache, key: np.ndarray, value: np.ndarray) -> None:
    """A list of chunks, joined when they are asked for."""
    if not hasattr(cache, "chunks") or cache.keys is not cache.chunks_of:
        cache.chunks = [] if cache.keys is None else [(cache.keys, cache.values)]
    cache.chunks.append((key.copy(), value.copy()))
    hold(cache, [joined(*chunks) for chunks in zip(*cache.chunks, strict=True)])
    cache.chunks_of = cache.keys


def as_tokens(self: KVCache, cache: Cache, key: np.ndarray, value: np.ndarray) -> None:
    """One token at a time."""
    if cache.keys is None:
        hold(cache, (key[:, :, :0].copy(), value[:, :, :0].copy()))
    for token in range(key.shape[2]):
        KVCache.store(self, cache, key[:, :, token : token + 1], value[:, :, token : token + 1])


def copies(self: KVCache, cache: Cache) -> Any:
    return tuple(None if x is None else x.copy() for x in (cache.keys, cache.values))


def doubling(self: KVCache, cache: Cache, key: np.ndarray, value: np.ndarray) -> None:
    """A buffer that doubles when it is full, written in place; what lies past the length is garbage."""
    in_buffers(self, cache, key, value, least=4, times=2, fill=np.nan)


def _tokens_first(x: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(x.transpose(2, 0, 1, 3)).transpose(1, 2, 0, 3)


def tokens_outermost(self: KVCache, cache: Cache, key: np.ndarray, value: np.ndarray) -> None:
    KVCache.store(self, cache, key, value)
    hold(cache, (_tokens_first(cache.keys), _tokens_first(cache.values)))
