"""Where tokens lie in a batch, and which of them masks hide: see `spec/faults/batching.py`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from inferspec.spec.batching import BatchingKVCache, Story
from inferspec.spec.changes.batching import rows_of

# alignment and masks


def padding_visible(story: Story, keys: np.ndarray, values: np.ndarray, mask: np.ndarray) -> None:
    for slot, row in rows_of(story):
        mask[slot, ..., : mask.shape[-1] - row[0].shape[1]] = True


def padding_at_the_end(empties: bool) -> Callable[..., None]:
    """What is masked is what would be padding if requests were aligned at the start; or is emptied as well."""

    def mask_out(story: Story, keys: np.ndarray, values: np.ndarray, mask: np.ndarray) -> None:
        queries, width = mask.shape[-2:]
        causal = np.arange(width) <= np.arange(queries)[:, None] + width - queries
        for slot, row in rows_of(story):
            length = row[0].shape[1]
            mask[slot] = causal & (np.arange(width) < length)
            if empties:
                keys[slot, :, length:], values[slot, :, length:] = 0.0, 0.0

    return mask_out


def slot_0_stays(self: BatchingKVCache, story: Story, slot: int) -> None:
    if slot:
        BatchingKVCache.leave(self, story, slot)


def one_column_of_padding(story: Story, keys: np.ndarray, values: np.ndarray, mask: np.ndarray) -> None:
    for slot, row in rows_of(story):
        padding = mask.shape[-1] - row[0].shape[1]
        mask[slot, ..., max(padding - 1, 0) : padding] = True


def first_hidden(story: Story, keys: np.ndarray, values: np.ndarray, mask: np.ndarray) -> None:
    for slot, row in rows_of(story):
        padding = mask.shape[-1] - row[0].shape[1]
        mask[slot, ..., padding : padding + (padding > 0)] = False


def padding_of_the_first(story: Story, keys: np.ndarray, values: np.ndarray, mask: np.ndarray) -> None:
    rows = rows_of(story)
    for slot, _ in rows:
        mask[slot] = mask[rows[0][0]]


def top_left(self: BatchingKVCache, queries: int, length: int) -> np.ndarray:
    return np.arange(length) <= np.arange(queries)[:, None]


def all_visible(self: BatchingKVCache, queries: int, length: int) -> np.ndarray:
    return np.ones((queries, length), bool)


def strictly_before(self: BatchingKVCache, queries: int, length: int) -> np.ndarray:
    before = BatchingKVCache.visible(self, queries, length)
    return before & ~np.eye(queries, length, length - queries, dtype=bool) if queries > 1 else before


def window_of_queries(self: BatchingKVCache, queries: int, length: int) -> np.ndarray:
    """Queries of a chunk see the chunk alone."""
    causal = BatchingKVCache.visible(self, queries, length)
    return causal & (np.arange(length) >= length - queries) if queries > 1 else causal


def no_mask_for_equal_lengths(story: Story, keys: np.ndarray, values: np.ndarray, mask: np.ndarray) -> None:
    rows = rows_of(story)
    if len({row[0].shape[1] for _, row in rows}) == 1:
        mask[[slot for slot, _ in rows]] = True


def idle_causal(self: BatchingKVCache, story: Story, slot: int, keys: Any, values: Any, mask: Any, *_: Any) -> None:
    mask[slot, 0] = self.visible(mask.shape[2], mask.shape[3])


def idle_own_token(
    self: BatchingKVCache, story: Story, slot: int, keys: Any, values: Any, mask: Any, key: Any, value: Any
) -> None:
    """An idle slot sees the tokens that it was given, as if it were a request without a past."""
    length = min(key.shape[2], keys.shape[2])
    if length:
        keys[slot, :, -length:], values[slot, :, -length:] = key[slot, :, -length:], value[slot, :, -length:]
        mask[slot, 0, :, -length:] = self.visible(mask.shape[2], length)


def left_slots_stay(self: BatchingKVCache, story: Story, slot: int, keys: Any, values: Any, mask: Any, *_: Any) -> None:
    """The mask of a slot that is left goes on as it was."""
    row = getattr(story, "left", {}).get(slot)
    if row is not None:
        length = min(row[0].shape[1], mask.shape[3])
        mask[slot, 0, :, mask.shape[3] - length :] = self.visible(mask.shape[2], length)


# what is hidden


def idle_as_given(
    self: BatchingKVCache, story: Story, slot: int, keys: Any, values: Any, mask: Any, key: Any, value: Any
) -> None:
    length = min(key.shape[2], keys.shape[2])
    if length:
        keys[slot, :, -length:], values[slot, :, -length:] = key[slot, :, -length:], value[slot, :, -length:]


def idle_as_given_in_chunks(
    self: BatchingKVCache, story: Story, slot: int, keys: Any, values: Any, mask: Any, key: Any, value: Any
) -> None:
    if key.shape[2] > 8:
        idle_as_given(self, story, slot, keys, values, mask, key, value)


def nan_padding(self: BatchingKVCache, shape: tuple[int, ...], dtype: np.dtype[Any]) -> np.ndarray:
    return np.full(shape, np.nan).astype(dtype)


def multiplied(story: Story, keys: np.ndarray, values: np.ndarray, mask: np.ndarray) -> None:
    """Former tokens are cleared by a product with 0."""
    for slot, row in getattr(story, "left", {}).items():
        if story.batch.rows[slot] is None and keys.shape[2]:
            keys[slot, :, -1], values[slot, :, -1] = (x[:, -1] * np.zeros((), x.dtype) for x in row)
