"""Key/value caches of one attention layer, in MLX.

Shapes: B batch, H key/value heads, L new tokens, S cached tokens, D_k and D_v head dims of keys and values.

Both caches write into a buffer with room for tokens to come. MLX's arrays are values: a snapshot or an earlier result
that still refers to the buffer makes the next write copy it, and without one the write is in place. No array that a
caller can reach is ever assigned into here, because `array[...] = x` changes every reference to that array object.

Every append schedules the write of the one before it (`mx.async_eval`), so that neither the graph nor what it holds
grows with the number of appends, and the caller does not wait. Its own write stays lazy: by the time it runs, a loop
that fetches again has let go of the result before, which would else cost a copy of the buffer.

Source: the tiny-llm course, week 2 day 1; steps of 256 as in mlx-lm's cache.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence

import mlx.core as mx

State = tuple[mx.array, ...]
"""What a cache holds: (keys, values), B×H×S×D each, or nothing when no token was ever appended."""


class KVCache:
    """Keys and values of all tokens so far, of any number.

    The buffer grows by the multiple of `STEP` tokens that a chunk needs: it is copied once for each `STEP` tokens,
    while attention reads all of it for each token.
    """

    STEP = 256

    def __init__(self) -> None:
        self._keys: mx.array | None = None
        self._values: mx.array | None = None
        self._offset = 0

    @property
    def offset(self) -> int:
        """How many tokens are cached."""
        return self._offset

    def update_and_fetch(self, key: mx.array, value: mx.array) -> tuple[mx.array, mx.array]:
        """Append L tokens and return the keys B×H×S×D_k and values B×H×S×D_v of all S cached ones.

        key: B×H×L×D_k, value: B×H×L×D_v, L may be 0. The results keep their values whatever comes later. ValueError
        when the two do not fit each other or what is cached (B, H, D_k, D_v, also after a rewind to 0) or when there
        is no room; TypeError for another dtype than before, or for what is not an array. A refused call changes
        nothing.
        """
        self._check(key, value)
        end = self._offset + key.shape[2]
        capacity = self._capacity(end)
        if self._keys is not None and self._values is not None:
            mx.async_eval(self._keys, self._values)
        self._keys = _written(self._keys, key, self._offset, capacity)
        self._values = _written(self._values, value, self._offset, capacity)
        self._offset = end
        return self._keys[:, :, :end], self._values[:, :, :end]

    def rewind(self, n: int) -> None:
        """Drop the last n tokens; what is appended next takes their place.

        ValueError when n is negative or more than are cached, TypeError when it is no integer: nothing is dropped.
        """
        count = _integer("n", n)
        if not 0 <= count <= self._offset:
            raise ValueError(f"n is {count}; it takes 0 … {self._offset}, the number of cached tokens")
        self._offset -= count

    @property
    def state(self) -> State:
        """All that is cached, for `restore`; later appends to this cache do not show in it."""
        if self._keys is None or self._values is None:
            return ()
        return self._keys[:, :, : self._offset], self._values[:, :, : self._offset]

    def restore(self, state: Sequence[mx.array]) -> None:
        """Become what the cache was that `state` was taken from; what was cached here is dropped.

        ValueError when the state holds anything but a fitting pair of keys and values, or more than there is room for.
        """
        other = type(self).__new__(type(self))
        other.__dict__.update(self.__dict__, _keys=None, _values=None, _offset=0)
        if state:
            if len(state) != 2:
                raise ValueError(f"state holds {len(state)} arrays; it takes keys and values")
            other.update_and_fetch(*state)
        self.__dict__.update(other.__dict__)

    def _capacity(self, tokens: int) -> int:
        """The number of tokens that the buffer is to have room for, once it holds so many; it never shrinks."""
        now = 0 if self._keys is None else self._keys.shape[2]
        return max(now, -(-tokens // self.STEP) * self.STEP)

    def _check(self, key: mx.array, value: mx.array) -> None:
        for name, x in (("key", key), ("value", value)):
            if not isinstance(x, mx.array):
                raise TypeError(f"{name} is a {type(x).__name__}; it takes an MLX array")
            if x.ndim != 4:
                raise ValueError(f"{name} is {x.shape}; it takes B×H×L×D")
        if key.shape[:3] != value.shape[:3]:
            raise ValueError(f"key is {key.shape} and value {value.shape}; they take the same B×H×L")
        for name, x, cached in (("key", key, self._keys), ("value", value, self._values)):
            if cached is None:
                continue
            if x.dtype != cached.dtype:
                raise TypeError(f"{name} is {x.dtype}; this cache holds {cached.dtype}")
            if (*x.shape[:2], x.shape[3]) != (*cached.shape[:2], cached.shape[3]):
                batch, heads, _, dim = cached.shape
                raise ValueError(f"{name} is {x.shape}; this cache takes {batch}×{heads}×L×{dim}")


class StaticKVCache(KVCache):
    """Keys and values of at most `max_len` tokens, in a buffer of that size from the first append on."""

    def __init__(self, max_len: int) -> None:
        """max_len: ValueError below 1, TypeError when it is no integer."""
        super().__init__()
        self.max_len = _integer("max_len", max_len)
        if self.max_len < 1:
            raise ValueError(f"max_len is {max_len}; it takes a positive number of tokens")

    def _capacity(self, tokens: int) -> int:
        if tokens > self.max_len:
            raise ValueError(
                f"{tokens - self._offset} tokens after {self._offset} make {tokens}; this cache takes {self.max_len}"
            )
        return self.max_len


def _written(buffer: mx.array | None, new: mx.array, start: int, capacity: int) -> mx.array:
    """The buffer with room for `capacity` tokens, and the new ones at `start`."""
    batch, heads, length, dim = new.shape
    if buffer is None:
        buffer = mx.zeros((batch, heads, capacity, dim), new.dtype)
    elif buffer.shape[2] < capacity:
        more = mx.zeros((batch, heads, capacity - start, dim), new.dtype)
        buffer = mx.concatenate([buffer[:, :, :start], more], axis=2)
    return mx.slice_update(buffer, new, mx.array([start]), axes=[2]) if length else buffer


def _integer(name: str, value: object) -> int:
    try:
        return operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        raise TypeError(f"{name} is {value!r}; it takes an integer") from None
