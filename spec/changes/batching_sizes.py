"""Batches of sizes that kernels have paths of their own for, and the buffers that they lie in: see `spec/faults/batching.py`."""

from __future__ import annotations

from typing import Any

import numpy as np

from inferspec.spec.batching import BatchingKVCache, Raw, Story
from inferspec.spec.changes.batching import rows_of
from inferspec.spec.changes.kv_cache import infinities_clamped as of_one_cache
from inferspec.spec.contract import Arguments, Change, Operation
from inferspec.spec.numerics import f64

# sizes


def past(size: int, change: Any) -> Change:
    """What is done to the tokens of a request that has more than so many."""

    def fetched(self: BatchingKVCache, story: Story, key: np.ndarray, value: np.ndarray, mask_length: int) -> Raw:
        keys, values, mask = BatchingKVCache.fetched(self, story, key, value, mask_length)
        for slot, row in rows_of(story):
            if row[0].shape[1] > size:
                change(keys[slot], values[slot], mask[slot], row[0].shape[1])
        return keys, values, mask

    return {"fetched": fetched}


def forgets_old(keys: np.ndarray, values: np.ndarray, mask: np.ndarray, length: int) -> None:
    mask[..., : mask.shape[-1] - 256] = False


def zeros_past(keys: np.ndarray, values: np.ndarray, mask: np.ndarray, length: int) -> None:
    values[:, values.shape[1] - length] = 0


def tile_hidden(story: Story, keys: np.ndarray, values: np.ndarray, mask: np.ndarray) -> None:
    """A request that begins a whole tile of 32 after another one loses the tile that it shares."""
    for slot, row in rows_of(story):
        padding = mask.shape[-1] - row[0].shape[1]
        if padding >= 32:
            mask[slot, ..., : min(-(-padding // 32) * 32, mask.shape[-1] - 1)] = False


def steps_of_the_batch(self: BatchingKVCache, story: Story, key: np.ndarray) -> None:
    """Columns of the batch are compared with max_len, which go on though requests leave."""
    story.columns = max(getattr(story, "columns", 0), self.width(story)) + key.shape[2]
    if story.columns > story.a.max_len:
        raise ValueError(f"{story.columns} columns of {story.a.max_len}")


def value_cut_to_key(story: Story, keys: np.ndarray, values: np.ndarray, mask: np.ndarray) -> Raw:
    fitted = np.zeros((*values.shape[:3], keys.shape[3]), values.dtype)
    shared = min(keys.shape[3], values.shape[3])
    fitted[..., :shared] = values[..., :shared]
    return keys, fitted, mask


# many, wide and long


def features_past_64(story: Story, keys: np.ndarray, values: np.ndarray, mask: np.ndarray) -> None:
    keys[..., 64:] = values[..., 64:] = 0


def features_past_512(story: Story, keys: np.ndarray, values: np.ndarray, mask: np.ndarray) -> None:
    keys[..., 512:] = values[..., 512:] = 0


def infinities_clamped(story: Story, keys: np.ndarray, values: np.ndarray, mask: np.ndarray) -> None:
    of_one_cache(keys, values)


def heads_past_8(story: Story, keys: np.ndarray, values: np.ndarray, mask: np.ndarray) -> None:
    keys[:, 8:] = values[:, 8:] = 0


def slots_past_8(story: Story, keys: np.ndarray, values: np.ndarray, mask: np.ndarray) -> None:
    mask[8:] = False


def keys_cut_to_value(story: Story, keys: np.ndarray, values: np.ndarray, mask: np.ndarray) -> Raw:
    return keys[..., : values.shape[3]], values, mask


def drifts(story: Story, keys: np.ndarray, values: np.ndarray, mask: np.ndarray) -> None:
    """From the 17th update on the first token is hidden."""
    story.updates = getattr(story, "updates", 0) + 1
    if story.updates > 16:
        for slot, row in rows_of(story):
            mask[slot, ..., mask.shape[-1] - row[0].shape[1]] = False


def cut_to_256(self: BatchingKVCache, story: Story, key: np.ndarray, value: np.ndarray) -> None:
    """Room is made for 256 tokens at a time: what a longer step has past them is zeros."""
    BatchingKVCache.store(self, story, key, value)
    for _, row in rows_of(story):
        for x in row:
            x[:, x.shape[1] - max(key.shape[2] - 256, 0) :] = 0


def live_offsets(self: BatchingKVCache, story: Story, step: int) -> dict[str, Any]:
    return {"offsets": self.offsets_of(story)}


def doubly_taken(self: BatchingKVCache, story: Story, slot: int) -> None:
    """A refused request is counted as an owner of its slot."""
    try:
        BatchingKVCache.check_idle(self, story, slot)
    except ValueError:
        story.owners = {**getattr(story, "owners", {}), slot: 2}
        raise


def leaves_in_turn(self: BatchingKVCache, story: Story, slot: int) -> None:
    if getattr(story, "owners", {}).pop(slot, 1) == 1:
        BatchingKVCache.leave(self, story, slot)


def counts_anew(self: BatchingKVCache, story: Story, slot: int, key: Any, value: Any, stale: int) -> None:
    """The room of a slot that was used before is counted from the prompt's end."""
    BatchingKVCache.enter(self, story, slot, key, value, stale)
    if slot in getattr(story, "left", {}):
        story.prompts = {**getattr(story, "prompts", {}), slot: key.shape[2]}


def room_past_prompts(self: BatchingKVCache, story: Story, key: np.ndarray) -> None:
    prompts = getattr(story, "prompts", {})
    if any(row[0].shape[1] - prompts.get(slot, 0) + key.shape[2] > story.a.max_len for slot, row in rows_of(story)):
        raise ValueError("full")


def features_past_128(story: Story, keys: np.ndarray, values: np.ndarray, mask: np.ndarray) -> None:
    keys[..., 128:] = values[..., 128:] = 0


def heads_past_64(story: Story, keys: np.ndarray, values: np.ndarray, mask: np.ndarray) -> None:
    keys[:, 64:] = values[:, 64:] = 0


def longest_of_32(story: Story, keys: np.ndarray, values: np.ndarray, mask: np.ndarray) -> None:
    """Slots past the 32nd are not asked how long their requests are, and lose what others have not."""
    lengths = [0 if row is None else row[0].shape[1] for row in story.batch.rows]
    mask[32:, ..., : mask.shape[-1] - max(lengths[:32])] = False


def past_16_bits(keys: np.ndarray, values: np.ndarray, mask: np.ndarray, length: int) -> None:
    mask[..., : mask.shape[-1] - 32767] = False


def positions_in_half(self: BatchingKVCache, queries: int, length: int) -> np.ndarray:
    last = np.arange(queries)[:, None] + length - queries
    return np.asarray(np.arange(length).astype(np.float16) <= last.astype(np.float16))


def counted_from_the_end(self: BatchingKVCache, queries: int, length: int) -> np.ndarray:
    """What is visible is a slice, whose end below 0 counts from the end."""
    visible = np.zeros((queries, length), bool)
    for query in range(queries):
        visible[query, : length - queries + query + 1] = True
    return visible


# buffers


def room_for_256_more(self: BatchingKVCache, story: Story, slot: int, key: Any, value: Any, stale: int) -> None:
    """A buffer has 256 columns more than the longest prompt so far; end: the columns that were written."""
    BatchingKVCache.enter(self, story, slot, key, value, stale)
    if key.shape[2] > getattr(story, "end", 0) or not hasattr(story, "room"):
        story.end, story.room = key.shape[2], key.shape[2] + 256


def first_past_the_buffer_lost(self: BatchingKVCache, story: Story, key: np.ndarray, value: np.ndarray) -> None:
    """Whether a step fits is told wrong by one: a token right past the end of the buffer is written nowhere."""
    BatchingKVCache.store(self, story, key, value)
    if not (rows := rows_of(story)):
        return
    story.end += key.shape[2]
    for _, row in rows:
        for x in row:
            x[:, x.shape[1] - (story.end == story.room + 1) :] = 0
    if story.end > story.room:
        story.room = story.end + 256


def old_end_in_a_new_buffer(self: BatchingKVCache, story: Story, key: np.ndarray, value: np.ndarray) -> None:
    """Requests move to the front of a new buffer, and the tokens of the step that needs it go where the end was."""
    before = self.width(story)
    BatchingKVCache.store(self, story, key, value)
    if not (rows := rows_of(story)):
        return
    lost = min(story.end - before, key.shape[2])
    story.end += key.shape[2]
    if story.end > story.room:
        for _, row in rows:
            for x in row:
                x[:, x.shape[1] - lost :] = 0
        story.end = self.width(story)
        story.room = story.end + 256


def whole_buffers(self: BatchingKVCache, story: Story, key: np.ndarray, value: np.ndarray, mask_length: int) -> Raw:
    """Where nothing is padded the buffers themselves are returned."""
    result = BatchingKVCache.fetched(self, story, key, value, mask_length)
    if len({None if row is None else row[0].shape[1] for row in story.batch.rows}) == 1:
        story.buffers = result[:2]
    return result


def clears_buffers(self: BatchingKVCache, story: Story, slot: int) -> None:
    BatchingKVCache.leave(self, story, slot)
    for x in getattr(story, "buffers", ()):
        x[slot] = 0


# usual sizes, and many of them


def last_of_common_features(story: Story, keys: np.ndarray, values: np.ndarray, mask: np.ndarray) -> None:
    """A kernel for eight heads of 64 or 128 features, in half precision."""
    if keys.shape[1] == 8 and keys.shape[3] in (64, 128) and keys.dtype.itemsize == 2:
        keys[..., -1] = 0


def ring_of_1024(story: Story, keys: np.ndarray, values: np.ndarray, mask: np.ndarray) -> None:
    mask[..., : max(mask.shape[-1] - 1024, 0)] = False


def slots_past_64(story: Story, keys: np.ndarray, values: np.ndarray, mask: np.ndarray) -> None:
    mask[64:] = False


def float32_past_256(self: BatchingKVCache, a: Arguments) -> Any:
    """A buffer that has grown is of float32."""
    result = Operation.respond(self, a)
    return {
        part: x.astype(np.float32) if part.endswith(("keys", "values")) and x.shape[2] > 256 else x
        for part, x in result.items()
    }


def mask_in_workspace(story: Story, keys: np.ndarray, values: np.ndarray, mask: np.ndarray) -> Raw:
    """Masks of a shape lie in one workspace."""
    if not hasattr(story, "masks"):
        story.masks = {}
    workspace = story.masks.setdefault(mask.shape, mask.copy())
    workspace[...] = mask
    return keys, values, workspace


def zeros_not_counted(self: BatchingKVCache, story: Story) -> list[int]:
    """Tokens whose key, that of the first head, is all zeros are not counted."""
    return [0 if row is None else int((f64(row[0][0]) != 0).any(axis=-1).sum()) for row in story.batch.rows]


def eight_offsets(self: BatchingKVCache, story: Story) -> list[int]:
    offsets = BatchingKVCache.offsets_of(self, story)
    return offsets[:8] + [0] * len(offsets[8:])


def room_of_eight(self: BatchingKVCache, story: Story, key: np.ndarray) -> None:
    if any(row[0].shape[1] + key.shape[2] > story.a.max_len for slot, row in rows_of(story) if slot < 8):
        raise ValueError("no room")
