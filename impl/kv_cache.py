"""Key/value caches of one attention layer, in MLX.

Shapes: B batch, H key/value heads, L new tokens, S cached tokens, D_k and D_v head dims of keys and values.

Both caches write into a buffer with room for tokens to come. MLX's arrays are values: a snapshot or an earlier result
that still refers to the buffer makes the next write copy it, and without one the write is in place. No array that a
caller can reach is ever assigned into here, because `array[...] = x` changes every reference to that array object.

Every append schedules the write of the one before it (`mx.async_eval`), so that neither the graph nor what it holds
grows with the number of appends, and the caller does not wait. Its own write stays lazy: by the time it runs, a loop
that fetches again has let go of the result before, which would else cost a copy of the buffer.

A kernel outside of MLX writes tokens itself: `reserve` hands it the buffers, `commit` counts what it wrote. Arrays that
were given out before see nothing of that: where one reaches beyond the offset (after a rewind), the buffers are copied.

Source: the tiny-llm course, week 2 day 1; steps of 256 as in mlx-lm's cache.
"""

from __future__ import annotations

from collections.abc import Sequence

import mlx.core as mx

from inferspec.impl.arguments import integer, whole
from inferspec.impl.kernels.cpu.stored import Stored

Shape = tuple[int, ...]
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
        self._seen = 0  # how many tokens of the buffers an array that was given out may see
        self._stored: Stored | None = None

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
        self._stored = None
        if self._keys is not None and self._values is not None:
            mx.async_eval(self._keys, self._values)
        self._keys = _written(self._keys, key, self._offset, capacity)
        self._values = _written(self._values, value, self._offset, capacity)
        self._offset = end
        self._seen = max(self._seen, end)
        return self._keys[:, :, :end], self._values[:, :, :end]

    def reserve(self, key: Shape, value: Shape, dtype: mx.Dtype) -> Stored:
        """Return the buffers of keys and values, B×H×capacity×D, for a kernel that writes L tokens from `offset` on.

        key: B, H, L, D_k; value: B, H, L, D_v, as the tokens would have. Nobody else sees what is written there, and
        `commit` makes it count. Refuses as `update_and_fetch` does, and changes nothing then.
        """
        self._check_shapes(key, value, dtype, dtype)
        keys, values = self._keys, self._values
        capacity = self._capacity(self._offset + key[2])
        if keys is None or values is None or keys.shape[2] < capacity or self._seen > self._offset:
            keys, values = (
                _moved(x, shape, self._offset, capacity, dtype) for x, shape in ((keys, key), (values, value))
            )
            self._stored, self._seen = None, 0
        if self._stored is None:
            self._stored = Stored(keys, values)
            self._keys, self._values = keys, values
        return self._stored

    def commit(self, length: int) -> None:
        """Count the tokens that were written into what `reserve` returned."""
        self._offset += length

    def rewind(self, n: int) -> None:
        """Drop the last n tokens; what is appended next takes their place.

        ValueError when n is negative or more than are cached, TypeError when it is no integer: nothing is dropped.
        """
        count = integer("n", n)
        if not 0 <= count <= self._offset:
            raise ValueError(f"n is {count}; it takes 0 … {self._offset}, the number of cached tokens")
        self._offset -= count

    @property
    def state(self) -> State:
        """All that is cached, for `restore`; later appends to this cache do not show in it."""
        if self._keys is None or self._values is None:
            return ()
        self._seen = max(self._seen, self._offset)
        return self._keys[:, :, : self._offset], self._values[:, :, : self._offset]

    def restore(self, state: Sequence[mx.array]) -> None:
        """Become what the cache was that `state` was taken from; what was cached here is dropped.

        ValueError when the state holds anything but a fitting pair of keys and values, or more than there is room for.
        """
        other = type(self).__new__(type(self))
        other.__dict__.update(self.__dict__, _keys=None, _values=None, _offset=0, _seen=0, _stored=None)
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
        self._check_shapes(key.shape, value.shape, key.dtype, value.dtype)

    def _check_shapes(self, key: Shape, value: Shape, key_dtype: mx.Dtype, value_dtype: mx.Dtype) -> None:
        if key[:3] != value[:3]:
            raise ValueError(f"key is {key} and value {value}; they take the same B×H×L")
        held = (("key", key, key_dtype, self._keys), ("value", value, value_dtype, self._values))
        for name, shape, dtype, cached in held:
            if cached is None:
                continue
            if dtype != cached.dtype:
                raise TypeError(f"{name} is {dtype}; this cache holds {cached.dtype}")
            if (*shape[:2], shape[3]) != (*cached.shape[:2], cached.shape[3]):
                batch, heads, _, dim = cached.shape
                raise ValueError(f"{name} is {shape}; this cache takes {batch}×{heads}×L×{dim}")


class StaticKVCache(KVCache):
    """Keys and values of at most `max_len` tokens, in a buffer of that size from the first append on."""

    def __init__(self, max_len: int) -> None:
        """max_len: ValueError below 1, TypeError when it is no integer."""
        super().__init__()
        self.max_len = whole("max_len", max_len, 1)

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


def _moved(buffer: mx.array | None, new: Shape, start: int, capacity: int, dtype: mx.Dtype) -> mx.array:
    """A buffer of its own with room for `capacity` tokens and the first `start` ones of the one before."""
    batch, heads, _, dim = new
    moved = mx.zeros((batch, heads, capacity, dim), dtype)
    if buffer is not None and start:
        moved = mx.slice_update(moved, buffer[:, :, :start], mx.array([0]), axes=[2])
    mx.eval(moved)
    return moved
