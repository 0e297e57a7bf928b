"""What does not fit, and what it changes before it is refused: see `spec/faults/batching.py`."""

from __future__ import annotations

from typing import Any

import numpy as np

from inferspec.spec.batching import BatchingKVCache, Raw, Story
from inferspec.spec.changes.batching import rows_of


def clamped(self: BatchingKVCache, story: Story, key: np.ndarray, value: np.ndarray) -> None:
    """A request past max_len loses its first tokens."""
    BatchingKVCache.store(self, story, key, value)
    rows = story.batch.rows
    story.batch.rows = [None if row is None else tuple(x[:, -story.a.max_len :] for x in row) for row in rows]


def room_of_the_first(self: BatchingKVCache, story: Story, key: np.ndarray) -> None:
    rows = rows_of(story)
    if rows and rows[0][1][0].shape[1] + key.shape[2] > story.a.max_len:
        raise ValueError("no room")


def room_off_by_one(self: BatchingKVCache, story: Story, key: np.ndarray) -> None:
    if any(row[0].shape[1] + key.shape[2] >= story.a.max_len for _, row in rows_of(story)):
        raise ValueError("no room")


def room_with_idle(self: BatchingKVCache, story: Story, key: np.ndarray) -> None:
    """Slots that are left still count."""
    rows = [*(row for _, row in rows_of(story)), *getattr(story, "left", {}).values()]
    if any(row[0].shape[1] + key.shape[2] > story.a.max_len for row in rows):
        raise ValueError("no room")


def fills_then_refuses(self: BatchingKVCache, story: Story, key: np.ndarray) -> None:
    """Requests are written one by one until one has no room."""
    before = list(story.batch.rows)
    for slot, row in rows_of(story):
        if row[0].shape[1] + key.shape[2] > story.a.max_len:
            raise ValueError("no room")
        story.batch.rows[slot] = tuple(np.concatenate([x, x[:, :1]], axis=1) for x in row)
    story.batch.rows = before


def key_before_value(self: BatchingKVCache, story: Story, key: np.ndarray, value: np.ndarray) -> None:
    """The lengths have moved on when key and value are compared."""
    try:
        BatchingKVCache.check_update(self, story, key, value)
    except ValueError:
        for slot, row in rows_of(story):
            story.batch.rows[slot] = tuple(np.concatenate([x, x[:, -1:]], axis=1) for x in row)
        raise


def frees_then_checks(self: BatchingKVCache, story: Story, slot: int) -> None:
    """The request that has the slot is gone when the other is refused."""
    if story.batch.rows[slot] is not None:
        story.batch.rows[slot] = None
        raise ValueError("taken")


def enters_if_idle(self: BatchingKVCache, story: Story, slot: int, key: Any, value: Any, stale: int) -> None:
    if story.batch.rows[slot] is None:
        BatchingKVCache.enter(self, story, slot, key, value, stale)


def from_the_end(self: BatchingKVCache, story: Story, slot: int) -> None:
    if not -story.a.max_requests <= slot < story.a.max_requests:
        raise ValueError("no such slot")


def enters_clamped(self: BatchingKVCache, story: Story, slot: int, key: Any, value: Any, stale: int) -> None:
    BatchingKVCache.enter(self, story, min(max(slot, 0), story.a.max_requests - 1), key, value, stale)


def leaves_clamped(self: BatchingKVCache, story: Story, slot: int) -> None:
    story.batch.rows[min(max(slot, 0), story.a.max_requests - 1)] = None


def takes_then_checks(self: BatchingKVCache, story: Story, key: np.ndarray) -> None:
    """The slot is taken, by an empty request, when its cache proves too long."""
    if key.shape[2] > story.a.max_len:
        slot = story.batch.rows.index(None)
        story.batch.rows[slot] = key[0, :, :0], np.zeros_like(key[0, :, :0])
        raise ValueError("too long")


def one_row_for_all(
    self: BatchingKVCache, story: Story, key: np.ndarray, value: np.ndarray, mask_length: int
) -> dict[str, Any]:
    if len(key) == len(value) == 1:
        key, value = (np.repeat(x, story.a.max_requests, axis=0) for x in (key, value))
    return BatchingKVCache.update_and_fetch(self, story, key, value, mask_length)


def at_least_rows(self: BatchingKVCache, story: Story, key: np.ndarray) -> None:
    if len(key) < story.a.max_requests:
        raise ValueError("too few rows")


def rows_cut(self: BatchingKVCache, story: Story, key: np.ndarray, value: np.ndarray, mask_length: int) -> Raw:
    rows = story.a.max_requests
    return BatchingKVCache.fetched(self, story, key[:rows], value[:rows], mask_length)


def keys_beside_values(
    self: BatchingKVCache, story: Story, key: np.ndarray, value: np.ndarray, mask_length: int
) -> dict[str, Any]:
    """Keys and values go beside each other into one buffer, which is as wide as both."""
    if key.shape[:-1] == value.shape[:-1]:
        for cached, own in self.requests(story)[:1]:
            if key.shape[-1] + value.shape[-1] == cached.shape[2] + own.shape[2]:
                key, value = np.split(np.concatenate([key, value], axis=-1), [cached.shape[2]], axis=-1)
    return BatchingKVCache.update_and_fetch(self, story, key, value, mask_length)


def broadcasting(
    self: BatchingKVCache, story: Story, key: np.ndarray, value: np.ndarray, mask_length: int
) -> dict[str, Any]:
    """Tokens of a single head or feature are for all heads and features."""
    for held in self.requests(story)[:1]:
        key, value = (
            np.broadcast_to(x, (len(x), own.shape[0], x.shape[-2], own.shape[2]))
            for x, own in zip((key, value), held, strict=True)
        )
    return BatchingKVCache.update_and_fetch(self, story, key, value, mask_length)


def filled_up(
    self: BatchingKVCache, story: Story, key: np.ndarray, value: np.ndarray, mask_length: int
) -> dict[str, Any]:
    """Tokens of fewer features are written over zeros."""
    for held in self.requests(story)[:1]:
        key, value = (
            np.concatenate([x, np.zeros((*x.shape[:-1], max(own.shape[2] - x.shape[-1], 0)), x.dtype)], axis=-1)
            for x, own in zip((key, value), held, strict=True)
        )
    return BatchingKVCache.update_and_fetch(self, story, key, value, mask_length)


def cast(self: BatchingKVCache, old: np.ndarray, new: np.ndarray) -> np.ndarray:
    return np.concatenate([old, new.astype(old.dtype)], axis=1)


def broadcasting_without_prompts(
    self: BatchingKVCache, story: Story, key: np.ndarray, value: np.ndarray, mask_length: int
) -> dict[str, Any]:
    """The shapes of the batch are those of its prompts: where there was none, whatever can be broadcast is taken."""
    update = BatchingKVCache.update_and_fetch if getattr(story, "prompted", False) else broadcasting
    return update(self, story, key, value, mask_length)


def taken_at_first_sight(self: BatchingKVCache, story: Story, step: int, slot: int) -> None:
    """A cache counts as one of the batch's before it is refused."""
    raise ValueError("the cache is in use")


def handed_over_at_first_sight(self: BatchingKVCache, story: Story, step: int, slot: int) -> None:
    """The tokens of a cache are taken out of it before it is refused."""
    key, value = (x[:, :, :0] for x in story.given[step])
    self.add(story, key, value, slot, stale=0)


def counts_then_checks(self: BatchingKVCache, story: Story, slot: int, **given: Any) -> None:
    """The tokens of a prompt are counted before it proves too long."""
    idle = 0 <= slot < story.a.max_requests and story.batch.rows[slot] is None
    story.batch.counted = {slot: given["key"].shape[2]} if idle else {}
    BatchingKVCache.add(self, story, slot=slot, **given)


def as_counted(self: BatchingKVCache, story: Story) -> list[int]:
    offsets = BatchingKVCache.offsets_of(self, story)
    for slot, tokens in vars(story.batch).get("counted", {}).items():
        if story.batch.rows[slot] is None:
            offsets[slot] = tokens
    return offsets


def marks_refused_updates(self: BatchingKVCache, story: Story, key: np.ndarray, value: np.ndarray) -> None:
    try:
        BatchingKVCache.check_update(self, story, key, value)
    except ValueError:
        story.batch.refused = True
        raise


def frees_behind_a_refused_update(self: BatchingKVCache, story: Story, slot: int) -> None:
    """What an update that was refused has left makes the one who has the slot look like no request."""
    try:
        BatchingKVCache.check_idle(self, story, slot)
    except ValueError:
        if vars(story.batch).get("refused"):
            story.batch.rows[slot] = None
        raise


def marks_refused_requests(self: BatchingKVCache, story: Story, slot: int) -> None:
    try:
        BatchingKVCache.check_idle(self, story, slot)
    except ValueError:
        story.batch.refused = True
        raise


def shortens_behind_a_refused_request(self: BatchingKVCache, story: Story, key: np.ndarray) -> None:
    """An update that has no room is taken back, and a token more where a request was refused before."""
    try:
        BatchingKVCache.check_room(self, story, key)
    except ValueError:
        if vars(story.batch).get("refused"):
            for slot, row in rows_of(story):
                story.batch.rows[slot] = tuple(x[:, :-1] for x in row)
        raise


def fit_of_the_first(self: BatchingKVCache, story: Story, key: np.ndarray, value: np.ndarray) -> None:
    """What is appended is compared with the first request, and taken by those before the one that it does not fit."""
    first = rows_of(story)[:1]
    if first and first[0][1][0].shape[1]:
        BatchingKVCache.check_fit(self, story, key, value)
        return
    try:
        BatchingKVCache.check_fit(self, story, key, value)
    except ValueError:
        for slot, row in first if len(key) > 1 else ():
            old = (x[:, :1] if x.shape[1] else np.zeros((x.shape[0], 1, x.shape[2]), x.dtype) for x in row)
            story.batch.rows[slot] = tuple(old)
        raise
