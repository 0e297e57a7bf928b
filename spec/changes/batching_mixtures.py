"""What goes wrong in a batch where two things come together: many slots and an idle one, large heads and a slot that is used again, views
and a request that left: see `spec/faults/batching_mixtures.py`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from inferspec.spec.batching import BatchingKVCache, Raw, Story
from inferspec.spec.changes.batching import after, remembers_left, values_of_former, with_stale
from inferspec.spec.contract import Arguments, Change
from inferspec.spec.mistakes import honest, misread

LONG = 16
"""Tokens from which what is added or appended is taken for a prompt."""

Where = Callable[[str, np.ndarray, bool, bool], bool]
"""Whether a step is on some path: its method, the array that it is given, whether there was an update, and whether a request left."""

Part = Callable[[np.ndarray], np.ndarray]
"""A view of keys or values of some slots, tokens and features, H×L×D of one slot or with slots before these."""


# views on a path


def misreads(part: str, where: Where) -> Change:
    """On one path the key, or the value, is read as if it were contiguous."""

    def respond(self: BatchingKVCache, a: Arguments) -> Any:
        steps, updated, left = [], False, False
        for method, given in a.steps:
            if part in given and where(method, given[part], updated, left):
                given = {**given, part: misread(given[part])}
            steps.append((method, given))
            updated |= method == "update_and_fetch"
            left |= method == "remove"
        return honest(self, Arguments(**{**vars(a), "steps": tuple(steps)}))

    return {"respond": respond}


def in_chunks(method: str, x: np.ndarray, updated: bool, left: bool) -> bool:
    return method == "update_and_fetch" and x.shape[2] >= 8


def of_many_slots(method: str, x: np.ndarray, updated: bool, left: bool) -> bool:
    return method == "update_and_fetch" and len(x) > 8


def of_wide_heads(method: str, x: np.ndarray, updated: bool, left: bool) -> bool:
    return x.shape[3] >= 64


def once_one_left(method: str, x: np.ndarray, updated: bool, left: bool) -> bool:
    return left and method == "update_and_fetch"


def who_joins(method: str, x: np.ndarray, updated: bool, left: bool) -> bool:
    return updated and method == "add"


# idle slots, and former requests


def idle_see(first: int) -> Change:
    """Idle slots from one on see the last column."""

    def change(story: Story, keys: np.ndarray, values: np.ndarray, mask: np.ndarray) -> None:
        for slot, row in enumerate(story.batch.rows):
            if row is None and slot >= first:
                mask[slot, ..., -1:] = True

    return after(change)


def features_past_64(x: np.ndarray) -> np.ndarray:
    return x[..., 64:]


def heads_past_8(x: np.ndarray) -> np.ndarray:
    return x[..., 8:, :, :]


def idle_are_given(part: Part, first: int = 0) -> Change:
    """Of what idle slots from one on are given, some part is in their rows."""

    def fetched(self: BatchingKVCache, story: Story, key: np.ndarray, value: np.ndarray, mask_length: int) -> Raw:
        keys, values, mask = BatchingKVCache.fetched(self, story, key, value, mask_length)
        length = min(key.shape[2], keys.shape[2])
        for slot, row in enumerate(story.batch.rows):
            if row is None and slot >= first and length:
                for x, given in ((keys, key), (values, value)):
                    part(x[slot, :, -length:])[...] = part(given[slot, :, -length:])
        return keys, values, mask

    return {"fetched": fetched}


def once_full(self: BatchingKVCache, story: Story, key: np.ndarray, value: np.ndarray, mask_length: int) -> Raw:
    """Where all of four slots and more have been taken at a time, what is given is not looked at any more."""
    rows = story.batch.rows
    story.batch.was_full = getattr(story.batch, "was_full", False) or (
        len(rows) > 3 and all(row is not None for row in rows)
    )
    if not story.batch.was_full:
        return BatchingKVCache.fetched(self, story, key, value, mask_length)
    change: Any = idle_are_given(lambda x: x)["fetched"]
    raw: Raw = change(self, story, key, value, mask_length)
    return raw


def former_in_padding(part: Part, first: int = 0) -> Change:
    """Some part of what a former request left is in the padding of its slot, if that is one from `first` on."""

    def fetched(self: BatchingKVCache, story: Story, key: np.ndarray, value: np.ndarray, mask_length: int) -> Raw:
        keys, values, mask = BatchingKVCache.fetched(self, story, key, value, mask_length)
        for slot, former in getattr(story, "left", {}).items():
            own = story.batch.rows[slot]
            if own is None or slot < first:
                continue
            padding = keys.shape[2] - own[0].shape[1]
            length = min(padding, former[0].shape[1])
            for x, old in zip((keys, values), former, strict=True):
                part(x[slot, :, padding - length : padding])[...] = part(old[:, :length])
        return keys, values, mask

    return {"leave": remembers_left, "fetched": fetched}


def _features_of_former(self: BatchingKVCache, story: Story, slot: int, key: Any, value: Any, stale: int) -> None:
    former, value = getattr(story, "left", {}).get(slot), np.array(value)
    if former is not None:
        length = min(former[1].shape[1], value.shape[2])
        value[0, :, :length, 64:] = former[1][:, :length, 64:]
    BatchingKVCache.enter(self, story, slot, key, value, stale)


FEATURES_OF_FORMER: Change = {"leave": remembers_left, "enter": _features_of_former}
"""Values past the 64th feature are not written over in a slot that is used again."""


def _past_8_of_former(self: BatchingKVCache, story: Story, slot: int, key: Any, value: Any, stale: int) -> None:
    enter = values_of_former if slot >= 7 else BatchingKVCache.enter
    enter(self, story, slot, key, value, stale)


SLOTS_OF_FORMER: Change = {"leave": remembers_left, "enter": _past_8_of_former}
"""Values of a slot past the seventh that is used again are those of the request before."""


# requests that join


def stale_where(joins: Callable[[Story, np.ndarray], bool]) -> Change:
    """On one path the buffer of a cache is taken, rewound tokens and all."""

    def enter(self: BatchingKVCache, story: Story, slot: int, key: Any, value: Any, stale: int) -> None:
        take = with_stale if joins(story, key) else BatchingKVCache.enter
        take(self, story, slot, key, value, stale)

    def store(self: BatchingKVCache, story: Story, key: np.ndarray, value: np.ndarray) -> None:
        BatchingKVCache.store(self, story, key, value)
        story.batch.at_work = True

    return {"enter": enter, "store": store}


def at_work(story: Story, key: np.ndarray) -> bool:
    return hasattr(story.batch, "at_work")


def long_prompt(story: Story, key: np.ndarray) -> bool:
    return key.shape[2] >= 32


# other numbers of queries


def last_for_others(holds: Callable[[BatchingKVCache, Story], bool]) -> Change:
    """On one path all queries are masked as the last one, where there are others than new tokens."""

    def fetched(self: BatchingKVCache, story: Story, key: np.ndarray, value: np.ndarray, mask_length: int) -> Raw:
        keys, values, mask = BatchingKVCache.fetched(self, story, key, value, mask_length)
        if mask_length != key.shape[2] and holds(self, story):
            mask[...] = mask[:, :, -1:]
        return keys, values, mask

    return {"leave": remembers_left, "fetched": fetched}


# dtypes, arguments


def in_float32(name: str, holds: Callable[[np.ndarray], bool]) -> Change:
    """Parts of a name come back in float32 where they are of some size."""

    def respond(self: BatchingKVCache, a: Arguments) -> Any:
        result = honest(self, a)
        return {part: x.astype(np.float32) if part.endswith(name) and holds(x) else x for part, x in result.items()}

    return {"respond": respond}


def _prompt_by_reference(self: BatchingKVCache, story: Story, slot: int, key: Any, value: Any, stale: int) -> None:
    if key.shape[2] >= LONG:
        story.batch.rows[slot] = key[0], value[0]
    else:
        BatchingKVCache.enter(self, story, slot, key, value, stale)


LONG_BY_REFERENCE: Change = {"enter": _prompt_by_reference}
"""A prompt that is long enough for a buffer becomes the buffer."""


def clears(holds: Callable[[np.ndarray], bool]) -> Change:
    """The memory of some keys is taken over, and is used for something else."""

    def respond(self: BatchingKVCache, a: Arguments) -> Any:
        result = honest(self, a)
        for method, given in a.steps:
            if method == "update_and_fetch" and holds(given["key"]):
                given["key"][...] = 0
        return result

    return {"respond": respond}
