"""The key/value cache of a batch of requests, in MLX.

Shapes: B slots, H key/value heads, L new tokens, S tokens of the longest request, D_k and D_v head dims.

All slots share one buffer and one end: every request grows by the same L tokens a step, so requests that are aligned at
the end stay so, and a step is one write. The n tokens of a slot are the n columns before the end; what lies left of them,
and the rows of idle slots, is zeros.

Source: the tiny-llm course, week 2 day 6.
"""

from __future__ import annotations

from typing import Protocol

import mlx.core as mx

from inferspec.impl.arguments import integer, whole
from inferspec.impl.kv_cache import KVCache, State

Buffers = tuple[mx.array, mx.array]
"""Keys B×H×C×D_k and values B×H×C×D_v, C the columns that there is room for."""


class Cache(Protocol):
    """What a request brings with it: the cache of its prompt."""

    @property
    def state(self) -> State:
        """(keys, values), 1×H×n×D each, or nothing when there are none."""
        ...


class BatchingKVCache:
    """Keys and values of up to `max_requests` requests of at most `max_len` tokens each.

    The buffer has room for STEP steps more than its longest request needs; when they are used up, the requests move to
    the front of a new one.
    """

    STEP = 256

    def __init__(self, max_requests: int, max_len: int) -> None:
        """ValueError for a number below 1, TypeError for what is no integer."""
        self.max_requests, self.max_len = whole("max_requests", max_requests, 1), whole("max_len", max_len, 1)
        self._lengths: list[int | None] = [None] * self.max_requests
        self._buffers: Buffers | None = None
        self._end = 0

    @staticmethod
    def make_cache() -> KVCache:
        """An empty cache, to be filled with a prompt and added."""
        return KVCache()

    @property
    def offsets(self) -> list[int]:
        """How many tokens each slot holds, 0 for an idle one: the positions of the next tokens."""
        return [length or 0 for length in self._lengths]

    def add(self, cache: Cache, slot: int) -> None:
        """Have a request take an idle slot, with the tokens of its cache (`state`: keys and values), which is not changed.

        ValueError for a slot that is taken or not one of 0 … B-1, for a cache of more than one row, of more than
        max_len tokens, or whose shape is not that of the other requests; TypeError for another dtype than theirs and
        for what is no cache. A refused call changes nothing.
        """
        slot = self._slot(slot)
        if self._lengths[slot] is not None:
            raise ValueError(f"slot is {slot}, which is taken; it takes an idle one: {self._idle()}")
        state = getattr(cache, "state", None)
        if not isinstance(state, tuple | list) or len(state) not in (0, 2):
            raise TypeError(f"cache is a {type(cache).__name__}; it takes one whose state is keys and values")
        if not state or not state[0].shape[2]:
            self._lengths[slot] = 0
            return
        key, value = state
        self._check(key, value, rows=1, whose="cache's ")
        length = key.shape[2]
        if length > self.max_len:
            raise ValueError(f"cache has {length} tokens; this batch takes {self.max_len}")
        buffers = self._buffers
        if buffers is None or length > self._end:
            buffers, self._end = self._moved((key, value), length, length + self.STEP), length
        at = mx.array([slot, self._end - length])
        self._buffers = _written(buffers, (key, value), at, [0, 2])
        self._lengths[slot] = length

    def remove(self, slot: int) -> None:
        """Have the request leave its slot, which is idle then. ValueError for an idle slot, or one not of 0 … B-1."""
        slot = self._slot(slot)
        if self._lengths[slot] is None:
            raise ValueError(f"slot is {slot}, which is idle")
        self._lengths[slot] = None
        if all(length is None for length in self._lengths):
            self._buffers, self._end = None, 0
        elif self._buffers is not None:
            # Attention multiplies what is hidden by 0, so NaN must not stay.
            keys, values = self._buffers
            nothing = mx.zeros((1, *keys.shape[1:]), keys.dtype), mx.zeros((1, *values.shape[1:]), values.dtype)
            self._buffers = _written(self._buffers, nothing, mx.array([slot]), [0])

    def update_and_fetch(
        self, key: mx.array, value: mx.array, mask_length: int | None = None
    ) -> tuple[mx.array, mx.array, mx.array]:
        """Append L tokens to every request; return keys B×H×S×D_k, values B×H×S×D_v and mask B×1×M×S.

        key: B×H×L×D_k, value: B×H×L×D_v; rows of idle slots may hold anything. mask_length: M, the number of queries,
        those of the last M tokens; L by default. Row b of the results ends with the n tokens of its request, and its
        bool mask shows query i the tokens j <= i + n - M; an idle slot sees nothing. What is hidden is 0 or a token of
        the same request. The results keep their values whatever comes later.

        ValueError when key and value do not fit each other, the number of slots or the requests, or when a request
        would have more than max_len tokens; TypeError for another dtype than theirs. A refused call changes nothing.
        """
        self._check(key, value, rows=self.max_requests)
        queries = key.shape[2] if mask_length is None else integer("mask_length", mask_length)
        if queries < 1:
            raise ValueError(f"mask_length is {queries}; it takes 1 or more")
        if not self._active():
            return key[:, :, :0], value[:, :, :0], self._mask(queries, 0)
        longest = self._longest() + key.shape[2]
        if longest > self.max_len:
            raise ValueError(f"{key.shape[2]} more tokens make {longest} of a request; this batch takes {self.max_len}")

        end, buffers = self._end + key.shape[2], self._buffers
        if buffers is None or end > buffers[0].shape[2]:
            end = longest
            buffers = self._moved((key, value), end - key.shape[2], end + self.STEP)
        mx.async_eval(*buffers)
        self._buffers = _written(buffers, self._without_idle(key, value), mx.array([end - key.shape[2]]), [2])
        self._end = end
        self._lengths = [None if length is None else length + key.shape[2] for length in self._lengths]
        keys, values = (x[:, :, end - longest : end] for x in self._buffers)
        return keys, values, self._mask(queries, longest)

    def _mask(self, queries: int, columns: int) -> mx.array:
        """B×1×M×S, bool: an idle slot has no tokens to see."""
        column = mx.arange(columns)
        own = column >= columns - mx.array(self.offsets)[:, None, None, None]
        return own & (column <= mx.arange(queries)[:, None] + (columns - queries))

    def _without_idle(self, key: mx.array, value: mx.array) -> Buffers:
        if self._active() == self.max_requests:
            return key, value
        active = mx.array([length is not None for length in self._lengths])[:, None, None, None]
        return mx.where(active, key, 0).astype(key.dtype), mx.where(active, value, 0).astype(value.dtype)

    def _moved(self, like: Buffers, end: int, columns: int) -> Buffers:
        """New buffers of so many columns in which the requests end at `end`, of the heads, dims and dtype of `like`."""
        longest = self._longest()
        moved = tuple(mx.zeros((self.max_requests, x.shape[1], columns, x.shape[3]), x.dtype) for x in like)
        if self._buffers is None or not longest:
            return moved  # type: ignore[return-value]
        old = tuple(x[:, :, self._end - longest : self._end] for x in self._buffers)
        return _written(moved, old, mx.array([end - longest]), [2])  # type: ignore[arg-type]

    def _active(self) -> int:
        return sum(length is not None for length in self._lengths)

    def _longest(self) -> int:
        return max(self.offsets)

    def _idle(self) -> list[int]:
        return [slot for slot, length in enumerate(self._lengths) if length is None]

    def _slot(self, slot: int) -> int:
        number = integer("slot", slot)
        if not 0 <= number < self.max_requests:
            raise ValueError(f"slot is {number}; it takes 0 … {self.max_requests - 1}")
        return number

    def _check(self, key: mx.array, value: mx.array, rows: int, whose: str = "") -> None:
        for name, x in (("key", key), ("value", value)):
            if not isinstance(x, mx.array):
                raise TypeError(f"{whose}{name} is a {type(x).__name__}; it takes an MLX array")
            if x.ndim != 4 or x.shape[0] != rows:
                raise ValueError(f"{whose}{name} is {x.shape}; it takes {rows}×H×L×D")
        if key.shape[:3] != value.shape[:3]:
            raise ValueError(f"{whose}key is {key.shape} and value {value.shape}; they take the same B×H×L")
        for name, x, held in zip(("key", "value"), (key, value), self._buffers or (), strict=False):
            if x.dtype != held.dtype:
                raise TypeError(f"{whose}{name} is {x.dtype}; this batch holds {held.dtype}")
            if (x.shape[1], x.shape[3]) != (held.shape[1], held.shape[3]):
                raise ValueError(
                    f"{whose}{name} is {x.shape}; this batch takes {rows}×{held.shape[1]}×L×{held.shape[3]}"
                )


def _written(buffers: Buffers, new: Buffers, at: mx.array, axes: list[int]) -> Buffers:
    keys, values = (mx.slice_update(buffer, x, at, axes=axes) for buffer, x in zip(buffers, new, strict=True))
    return keys, values
