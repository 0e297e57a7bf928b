"""Appends that do not fit, and what they change before they are refused: see `spec/faults/kv_cache_refusals.py`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from inferspec.spec.changes.kv_cache import each, fitted, hold, joined
from inferspec.spec.contract import Change
from inferspec.spec.kv_cache import Cache, KVCache, StaticKVCache, Story
from inferspec.spec.numerics import f64


def unchecked_pair(self: KVCache, key: np.ndarray, value: np.ndarray) -> None:
    if key.ndim != 4 or value.ndim != 4:
        raise ValueError("not four axes")


def leading_one_added(self: KVCache, story: Story, key: np.ndarray, value: np.ndarray) -> Any:
    four = [x[None] if x.ndim == 3 else x for x in (key, value)]
    return KVCache.update_and_fetch(self, story, *four)


def broadcast(self: KVCache, cache: Cache, key: np.ndarray, value: np.ndarray) -> None:
    """What is 1 where the cache has more stands for all, as an assignment into a buffer has it."""
    each(
        lambda old, new: (
            new.copy()
            if old is None
            else joined(old, np.broadcast_to(new, (*old.shape[:2], new.shape[2], old.shape[3])))
        ),
        cache,
        key,
        value,
    )


def starts_anew(self: KVCache, cache: Cache, key: np.ndarray, value: np.ndarray) -> None:
    try:
        KVCache.check_fit(self, cache, key, value)
    except ValueError:
        hold(cache, (None, None))
    KVCache.store(self, cache, key, value)


def as_many_rows_of_heads(self: KVCache, cache: Cache, key: np.ndarray, value: np.ndarray) -> None:
    """Rows and heads are compared as the one axis that they are in the buffer."""
    for x, cached in ((key, cache.keys), (value, cache.values)):
        if cached is not None and (x.shape[0] * x.shape[1], x.shape[3]) != (
            cached.shape[0] * cached.shape[1],
            cached.shape[3],
        ):
            raise ValueError("another shape")


def reshapes_rows_of_heads(self: KVCache, cache: Cache, key: np.ndarray, value: np.ndarray) -> None:
    if cache.keys is not None:
        key, value = (x.reshape(*cache.keys.shape[:2], *x.shape[2:]) for x in (key, value))
    KVCache.store(self, cache, key, value)


def features_in_all(self: KVCache, cache: Cache, key: np.ndarray, value: np.ndarray) -> None:
    """A buffer that has keys beside values is as wide as both."""
    if cache.keys is not None and (key.shape[:2], key.shape[3] + value.shape[3]) != (
        cache.keys.shape[:2],
        cache.keys.shape[3] + cache.values.shape[3],
    ):
        raise ValueError("another shape")


def keys_beside_values(self: KVCache, cache: Cache, key: np.ndarray, value: np.ndarray) -> None:
    if cache.keys is not None:
        key, value = np.split(np.concatenate([key, value], axis=3), [cache.keys.shape[3]], axis=3)
    KVCache.store(self, cache, key, value)


def cast(old: np.ndarray, new: np.ndarray) -> np.ndarray:
    return joined(old, new.astype(old.dtype))


def no_fit_once_restored(self: KVCache, cache: Cache, key: np.ndarray, value: np.ndarray) -> None:
    if not hasattr(cache, "restored"):
        KVCache.check_fit(self, cache, key, value)


def no_fit_once_rewound(self: KVCache, cache: Cache, key: np.ndarray, value: np.ndarray) -> None:
    if not hasattr(cache, "rewound"):
        KVCache.check_fit(self, cache, key, value)


def one_feature_of_values(self: KVCache, cache: Cache, key: np.ndarray, value: np.ndarray) -> None:
    """Values of one feature are not compared: an assignment into the buffer has them stand for all."""
    KVCache.check_fit(
        self, cache, key, value if value.shape[3] > 1 or cache.values is None else _alike(value, cache.values)
    )


def features_that_fit_in(self: KVCache, cache: Cache, key: np.ndarray, value: np.ndarray) -> None:
    """A chunk may have fewer features than the buffer has room for."""
    if cache.keys is not None:
        key, value = (
            _alike(x, cached) if x.shape[3] < cached.shape[3] else x
            for x, cached in ((key, cache.keys), (value, cache.values))
        )
    KVCache.check_fit(self, cache, key, value)


def _alike(x: np.ndarray, cached: np.ndarray) -> np.ndarray:
    return np.zeros((*x.shape[:3], cached.shape[3]), x.dtype)


def written_over_zeros(self: KVCache, cache: Cache, key: np.ndarray, value: np.ndarray) -> None:
    def padded(x: np.ndarray, cached: np.ndarray | None) -> np.ndarray:
        return x if cached is None else fitted(x, cached.shape[3])

    KVCache.store(self, cache, padded(key, cache.keys), padded(value, cache.values))


def marks_rewound(self: KVCache, cache: Cache, n: int) -> None:
    KVCache.drop(self, cache, n)
    cache.rewound = True


def no_dtype_once_restored(self: KVCache, cache: Cache, key: np.ndarray, value: np.ndarray) -> None:
    if not hasattr(cache, "restored"):
        KVCache.check_dtype(self, cache, key, value)


def any_rewind_once_restored(self: KVCache, cache: Cache, n: int) -> None:
    if not hasattr(cache, "restored"):
        KVCache.check_rewind(self, cache, n)


def at_its_longest(self: KVCache, cache: Cache, n: int) -> None:
    if not 0 <= n <= max(self.length(cache), getattr(cache, "ever", 0)):
        raise ValueError("too far")


def promoted(old: np.ndarray, new: np.ndarray) -> np.ndarray:
    return joined(f64(old), f64(new)).astype(np.float32)


def _checked(self: Any, cache: Cache, key: np.ndarray, value: np.ndarray) -> None:
    KVCache.check_append(self, cache, key, value)
    if hasattr(self, "check_room"):
        self.check_room(cache, key)


def key_before_checks(self: Any, cache: Cache, key: np.ndarray, value: np.ndarray) -> None:
    """The key is written before the value is looked at."""
    try:
        _checked(self, cache, key, value)
    except ValueError:
        fits = cache.keys is not None and key.ndim == 4 and key.dtype == cache.keys.dtype
        if fits and (key.shape[:2], key.shape[3]) == (cache.keys.shape[:2], cache.keys.shape[3]):
            cache.keys = joined(cache.keys, key)
        raise


def counts_chunks(self: Any, cache: Cache, key: np.ndarray, value: np.ndarray) -> None:
    KVCache.store(self, cache, key, value)
    cache.chunks = vars(cache).get("chunks", 0) + 1


def key_before_later_checks(self: Any, cache: Cache, key: np.ndarray, value: np.ndarray) -> None:
    """Chunks are joined when there are some; what does not fit is found out then."""
    (key_before_checks if vars(cache).get("chunks", 0) >= 3 else _checked)(self, cache, key, value)


def marks_empty_chunks(self: Any, cache: Cache, key: np.ndarray, value: np.ndarray) -> None:
    KVCache.store(self, cache, key, value)
    cache.behind_nothing, cache.fits = not key.shape[2], (cache.keys, cache.values)


def kind_of_the_refused(self: KVCache, cache: Cache, key: np.ndarray, value: np.ndarray) -> None:
    """Behind an empty chunk the kind is that of what is appended, before it is looked at."""
    keys, values = vars(cache).get("fits", (None, None))
    try:
        KVCache.check_fit(self, Cache(keys=keys, values=values), key, value)
    except ValueError:
        if cache.behind_nothing:
            cache.fits = key, value
        raise


def offset_before_checks(self: Any, cache: Cache, key: np.ndarray, value: np.ndarray) -> None:
    """The offset has moved on when the chunk is refused, over slots of zeros."""
    try:
        _checked(self, cache, key, value)
    except ValueError:
        if cache.keys is not None and key.ndim == 4:
            each(lambda old, new: joined(old, np.zeros_like(old[:, :, :1])), cache, key, value)
        raise


def _marks(check: Callable[..., None]) -> Callable[..., None]:
    """A check that a cache remembers where it refuses."""

    def checked(self: Any, cache: Cache, *given: Any) -> None:
        try:
            check(self, cache, *given)
        except ValueError:
            cache.refused = True
            raise

    return checked


def _takes_back(self: Any, cache: Cache, state: Any) -> None:
    refused = vars(cache).pop("refused", False)
    KVCache.become(self, cache, state)
    if refused and self.length(cache):
        KVCache.drop(self, cache, 1)


def taken_back(name: str, check: Callable[..., None]) -> Change:
    """A step that is refused has begun; where a state is restored a token is taken back for it."""
    return {name: _marks(check), "become": _takes_back}


append_taken_back = taken_back("check_append", _checked)
rewind_taken_back = taken_back("check_rewind", KVCache.check_rewind)
room_taken_back = taken_back("check_room", StaticKVCache.check_room)
