"""Mistakes in caches of batches, and other honest ways to keep them."""

from __future__ import annotations

from typing import Any

import numpy as np

from inferspec.spec import batching as spec
from inferspec.spec.batching import Batch, BatchingKVCache, Raw, Story
from inferspec.spec.contract import Arguments, Change, Fault, Operation, Variant
from inferspec.spec.mistakes import misread
from inferspec.spec.numerics import f64, largest, round_to

TINY_LLM = "https://github.com/skyzh/tiny-llm/commit"
MLX_LM = "https://github.com/ml-explore/mlx-lm"
VLLM_METAL = "https://github.com/vllm-project/vllm-metal/commit"

Row = tuple[np.ndarray, np.ndarray]


def _nothing(*_: Any) -> None:
    """A check that is missing."""


def _after(change: Any) -> Change:
    """`fetched`, with something done to keys, values and mask."""

    def fetched(self: BatchingKVCache, story: Story, key: np.ndarray, value: np.ndarray, mask_length: int) -> Raw:
        keys, values, mask = BatchingKVCache.fetched(self, story, key, value, mask_length)
        result: Raw = change(story, keys, values, mask) or (keys, values, mask)
        return result

    return {"fetched": fetched}


def _rows(story: Story) -> list[tuple[int, Row]]:
    return [(slot, row) for slot, row in enumerate(story.batch.rows) if row is not None]


# what an update returns


def _first_token_lost(self: BatchingKVCache, story: Story, slot: int, key: Any, value: Any, stale: int) -> None:
    BatchingKVCache.enter(self, story, slot, key[:, :, 1:], value[:, :, 1:], stale)


def _new_first(self: BatchingKVCache, old: np.ndarray, new: np.ndarray) -> np.ndarray:
    return np.concatenate([new, old], axis=1)


def _one_of_many(self: BatchingKVCache, old: np.ndarray, new: np.ndarray) -> np.ndarray:
    return np.concatenate([old, np.repeat(new[:, -1:], new.shape[1], axis=1)], axis=1)


def _first_row_for_all(self: BatchingKVCache, story: Story, key: np.ndarray, value: np.ndarray) -> None:
    active = _rows(story)
    key, value = (np.repeat(x[active[0][0] :][:1], len(x), axis=0) if active else x for x in (key, value))
    BatchingKVCache.store(self, story, key, value)


def _in_order_of_slots(self: BatchingKVCache, story: Story, key: np.ndarray, value: np.ndarray) -> None:
    """The i-th request takes the i-th row, as if the rows of idle slots were left out."""
    order = [slot for slot, _ in _rows(story)]
    packed = [np.array(x) for x in (key, value)]
    for x, own in zip((key, value), packed, strict=True):
        for row, slot in enumerate(order):
            own[slot] = x[row]
    BatchingKVCache.store(self, story, *packed)


def _in_order_of_arrival(self: BatchingKVCache, story: Story, key: np.ndarray, value: np.ndarray) -> None:
    order = [slot for slot in story.arrivals if story.batch.rows[slot] is not None]
    packed = [np.array(x) for x in (key, value)]
    for x, own in zip((key, value), packed, strict=True):
        for slot, row in zip(order, sorted(order), strict=True):
            own[slot] = x[row]
    BatchingKVCache.store(self, story, *packed)


def _remembers_arrival(self: BatchingKVCache, story: Story, slot: int, key: Any, value: Any, stale: int) -> None:
    story.arrivals = [other for other in getattr(story, "arrivals", []) if other != slot] + [slot]
    BatchingKVCache.enter(self, story, slot, key, value, stale)


# alignment and masks


def _left(self: BatchingKVCache, length: int, width: int) -> slice:
    return slice(0, length)


def _padding_visible(story: Story, keys: np.ndarray, values: np.ndarray, mask: np.ndarray) -> None:
    for slot, row in _rows(story):
        mask[slot, ..., : mask.shape[-1] - row[0].shape[1]] = True


def _one_column_of_padding(story: Story, keys: np.ndarray, values: np.ndarray, mask: np.ndarray) -> None:
    for slot, row in _rows(story):
        padding = mask.shape[-1] - row[0].shape[1]
        mask[slot, ..., max(padding - 1, 0) : padding] = True


def _first_hidden(story: Story, keys: np.ndarray, values: np.ndarray, mask: np.ndarray) -> None:
    for slot, row in _rows(story):
        padding = mask.shape[-1] - row[0].shape[1]
        mask[slot, ..., padding : padding + (padding > 0)] = False


def _padding_of_the_first(story: Story, keys: np.ndarray, values: np.ndarray, mask: np.ndarray) -> None:
    rows = _rows(story)
    for slot, _ in rows:
        mask[slot] = mask[rows[0][0]]


def _top_left(self: BatchingKVCache, queries: int, length: int) -> np.ndarray:
    return np.arange(length) <= np.arange(queries)[:, None]


def _all_visible(self: BatchingKVCache, queries: int, length: int) -> np.ndarray:
    return np.ones((queries, length), bool)


def _strictly_before(self: BatchingKVCache, queries: int, length: int) -> np.ndarray:
    before = BatchingKVCache.visible(self, queries, length)
    return before & ~np.eye(queries, length, length - queries, dtype=bool) if queries > 1 else before


def _window_of_queries(self: BatchingKVCache, queries: int, length: int) -> np.ndarray:
    """Queries of a chunk see the chunk alone."""
    causal = BatchingKVCache.visible(self, queries, length)
    return causal & (np.arange(length) >= length - queries) if queries > 1 else causal


def _no_mask_for_equal_lengths(story: Story, keys: np.ndarray, values: np.ndarray, mask: np.ndarray) -> None:
    rows = _rows(story)
    if len({row[0].shape[1] for _, row in rows}) == 1:
        mask[[slot for slot, _ in rows]] = True


def _idle_causal(self: BatchingKVCache, story: Story, slot: int, keys: Any, values: Any, mask: Any, *_: Any) -> None:
    mask[slot, 0] = self.visible(mask.shape[2], mask.shape[3])


def _idle_own_token(
    self: BatchingKVCache, story: Story, slot: int, keys: Any, values: Any, mask: Any, key: Any, value: Any
) -> None:
    """An idle slot sees the tokens that it was given, as if it were a request without a past."""
    length = min(key.shape[2], keys.shape[2])
    if length:
        keys[slot, :, -length:], values[slot, :, -length:] = key[slot, :, -length:], value[slot, :, -length:]
        mask[slot, 0, :, -length:] = self.visible(mask.shape[2], length)


def _left_slots_stay(
    self: BatchingKVCache, story: Story, slot: int, keys: Any, values: Any, mask: Any, *_: Any
) -> None:
    """The mask of a slot that is left goes on as it was."""
    row = getattr(story, "left", {}).get(slot)
    if row is not None:
        length = min(row[0].shape[1], mask.shape[3])
        mask[slot, 0, :, mask.shape[3] - length :] = self.visible(mask.shape[2], length)


def _remembers_left(self: BatchingKVCache, story: Story, slot: int) -> None:
    story.left = {**getattr(story, "left", {}), slot: story.batch.rows[slot]}
    BatchingKVCache.leave(self, story, slot)


# what is hidden


def _idle_as_given(
    self: BatchingKVCache, story: Story, slot: int, keys: Any, values: Any, mask: Any, key: Any, value: Any
) -> None:
    length = min(key.shape[2], keys.shape[2])
    if length:
        keys[slot, :, -length:], values[slot, :, -length:] = key[slot, :, -length:], value[slot, :, -length:]


def _nan_padding(self: BatchingKVCache, shape: tuple[int, ...], dtype: np.dtype[Any]) -> np.ndarray:
    return np.full(shape, np.nan).astype(dtype)


def _stale(where: str) -> Change:
    """What requests left stands in the padding of their slot: of a slot that is used again, or of an idle one."""

    def under(story: Story, keys: np.ndarray, values: np.ndarray, mask: np.ndarray) -> None:
        for slot, row in getattr(story, "left", {}).items():
            own = story.batch.rows[slot]
            if (own is None) != (where == "idle"):
                continue
            padding = keys.shape[2] - (0 if own is None else own[0].shape[1])
            length = min(padding, row[0].shape[1])
            at = slice(padding - length, padding)
            keys[slot, :, at], values[slot, :, at] = (x[:, :length] for x in row)

    return {"leave": _remembers_left, **_after(under)}


def _multiplied(story: Story, keys: np.ndarray, values: np.ndarray, mask: np.ndarray) -> None:
    """Former tokens are cleared by a product with 0."""
    for slot, row in getattr(story, "left", {}).items():
        if story.batch.rows[slot] is None and keys.shape[2]:
            keys[slot, :, -1], values[slot, :, -1] = (x[:, -1] * np.zeros((), x.dtype) for x in row)


# slots that change hands


def _joins_former(self: BatchingKVCache, story: Story, slot: int, key: Any, value: Any, stale: int) -> None:
    BatchingKVCache.enter(self, story, slot, key, value, stale)
    if (former := getattr(story, "left", {}).get(slot)) is not None:
        own = story.batch.rows[slot]
        story.batch.rows[slot] = tuple(np.concatenate(pair, axis=1) for pair in zip(former, own, strict=True))


def _keeps_former_length(self: BatchingKVCache, story: Story, slot: int, key: Any, value: Any, stale: int) -> None:
    """The tokens of a shorter request are written over the first ones of the longer one before."""
    BatchingKVCache.enter(self, story, slot, key, value, stale)
    former = getattr(story, "left", {}).get(slot)
    length = key.shape[2]
    if former is not None and former[0].shape[1] > length:
        own = story.batch.rows[slot]
        story.batch.rows[slot] = tuple(
            np.concatenate([new, old[:, length:]], axis=1) for new, old in zip(own, former, strict=True)
        )


def _values_of_former(self: BatchingKVCache, story: Story, slot: int, key: Any, value: Any, stale: int) -> None:
    former = getattr(story, "left", {}).get(slot)
    value = np.array(value)
    if former is not None:
        length = min(former[1].shape[1], value.shape[2])
        value[0, :, :length] = former[1][:, :length]
    BatchingKVCache.enter(self, story, slot, key, value, stale)


def _compacts(self: BatchingKVCache, story: Story, slot: int) -> None:
    """The last request moves into the slot that is left."""
    rows = story.batch.rows
    last = max(other for other, row in enumerate(rows) if row is not None)
    rows[slot], rows[last] = (rows[last] if last != slot else None), None


def _empties_all(self: BatchingKVCache, story: Story, slot: int) -> None:
    rows = story.batch.rows
    story.batch.rows = [
        None if row is None or other == slot else tuple(x[:, :0] for x in row) for other, row in enumerate(rows)
    ]


def _padding_becomes_tokens(self: BatchingKVCache, story: Story, slot: int, key: Any, value: Any, stale: int) -> None:
    """A shorter request is filled up with zeros to the length of the longest, and counts them."""
    short = max(self.width(story) - key.shape[2], 0)
    key, value = (np.pad(x, ((0, 0), (0, 0), (short, 0), (0, 0))) for x in (key, value))
    BatchingKVCache.enter(self, story, slot, key, value, stale)


def _cut_to_the_others(self: BatchingKVCache, story: Story, slot: int, key: Any, value: Any, stale: int) -> None:
    """A prompt longer than the batch loses its first tokens."""
    width = self.width(story) or key.shape[2]
    short = max(key.shape[2] - width, 0)
    BatchingKVCache.enter(self, story, slot, key[:, :, short:], value[:, :, short:], stale)


def _longer_only_from_now(self: BatchingKVCache, story: Story, slot: int, key: Any, value: Any, stale: int) -> None:
    """A longer prompt makes the others lose the tokens that they had."""
    if key.shape[2] > self.width(story):
        story.batch.rows = [None if row is None else tuple(x * 0 for x in row) for row in story.batch.rows]
    BatchingKVCache.enter(self, story, slot, key, value, stale)


# sizes


def _from(size: int, change: Any) -> Change:
    """What is done to the tokens of a request that has more than so many."""

    def fetched(self: BatchingKVCache, story: Story, key: np.ndarray, value: np.ndarray, mask_length: int) -> Raw:
        keys, values, mask = BatchingKVCache.fetched(self, story, key, value, mask_length)
        for slot, row in _rows(story):
            if row[0].shape[1] > size:
                change(keys[slot], values[slot], mask[slot], row[0].shape[1])
        return keys, values, mask

    return {"fetched": fetched}


def _forgets_old(keys: np.ndarray, values: np.ndarray, mask: np.ndarray, length: int) -> None:
    mask[..., : mask.shape[-1] - 256] = False


def _zeros_past(keys: np.ndarray, values: np.ndarray, mask: np.ndarray, length: int) -> None:
    values[:, values.shape[1] - length] = 0


def _tile_hidden(story: Story, keys: np.ndarray, values: np.ndarray, mask: np.ndarray) -> None:
    """A request that begins a whole tile of 32 after another one loses the tile that it shares."""
    for slot, row in _rows(story):
        padding = mask.shape[-1] - row[0].shape[1]
        if padding >= 32:
            mask[slot, ..., : min(-(-padding // 32) * 32, mask.shape[-1] - 1)] = False


def _steps_of_the_batch(self: BatchingKVCache, story: Story, key: np.ndarray) -> None:
    """Columns of the batch are compared with max_len, which go on though requests leave."""
    story.columns = max(getattr(story, "columns", 0), self.width(story)) + key.shape[2]
    if story.columns > story.a.max_len:
        raise ValueError(f"{story.columns} columns of {story.a.max_len}")


def _value_cut_to_key(story: Story, keys: np.ndarray, values: np.ndarray, mask: np.ndarray) -> Raw:
    fitted = np.zeros((*values.shape[:3], keys.shape[3]), values.dtype)
    shared = min(keys.shape[3], values.shape[3])
    fitted[..., :shared] = values[..., :shared]
    return keys, fitted, mask


# dtypes


def _other_dtype(*names: str, dtype: str = "float32") -> Change:
    def respond(self: BatchingKVCache, a: Arguments) -> Any:
        result = Operation.respond(self, a)
        return {part: round_to(f64(x), dtype) if part.endswith(names) else x for part, x in result.items()}

    return {"respond": respond}


def _stored_in(dtype: str) -> Change:
    def joined(self: BatchingKVCache, old: np.ndarray, new: np.ndarray) -> np.ndarray:
        narrow = round_to(f64(round_to(f64(new), dtype)), new.dtype.name)
        return np.concatenate([old, narrow], axis=1)

    return {"joined": joined}


def _soft_mask(story: Story, keys: np.ndarray, values: np.ndarray, mask: np.ndarray) -> Raw:
    return keys, values, np.where(mask, 0.0, -1e4).astype(np.float32).astype(keys.dtype)


def _bool_as_numbers(story: Story, keys: np.ndarray, values: np.ndarray, mask: np.ndarray) -> Raw:
    return keys, values, mask.astype(keys.dtype)


def _inverted(story: Story, keys: np.ndarray, values: np.ndarray, mask: np.ndarray) -> Raw:
    return keys, values, ~mask


# arguments and results


def _strides_of(name: str) -> Change:
    def respond(self: BatchingKVCache, a: Arguments) -> Any:
        steps = tuple(
            (method, {k: misread(x) if k == name else x for k, x in given.items()}) for method, given in a.steps
        )
        return Operation.respond(self, Arguments(**{**vars(a), "steps": steps}))

    return {"respond": respond}


def _clears_idle(self: BatchingKVCache, a: Arguments) -> Any:
    """The rows of idle slots are zeroed in the caller's own arrays."""
    result = Operation.respond(self, a)
    active: set[int] = set()
    for method, given in a.steps:
        match method:
            case "add":
                active.add(given["slot"])
            case "remove":
                active.discard(given["slot"])
            case "update_and_fetch":
                for slot in set(range(a.max_requests)) - active:
                    given["key"][slot] = given["value"][slot] = 0
    return result


def _clears(name: str) -> Change:
    def respond(self: BatchingKVCache, a: Arguments) -> Any:
        result = Operation.respond(self, a)
        for _, given in a.steps:
            if name in given:
                given[name][...] = 0
        return result

    return {"respond": respond}


def _late(self: BatchingKVCache, story: Story, key: np.ndarray, value: np.ndarray) -> None:
    """The last tokens are kept by reference, and written when the next ones come."""
    late = getattr(story, "late", None)
    if late is not None:
        for slot, row in _rows(story):
            length = late[0].shape[2]
            if slot in late[2] and row[0].shape[1] >= length:
                for own, x in zip(row, late[:2], strict=True):
                    own[:, own.shape[1] - length :] = x[slot]
    BatchingKVCache.store(self, story, key, value)
    story.late = key, value, {slot for slot, _ in _rows(story)}


def _prompt_by_reference(self: BatchingKVCache, story: Story, slot: int, key: Any, value: Any, stale: int) -> None:
    story.batch.rows[slot] = key[0], value[0]


def _one_buffer(self: BatchingKVCache, story: Story, key: np.ndarray, value: np.ndarray, mask_length: int) -> Raw:
    """Every update with as many columns as an earlier one writes into its arrays."""
    made = BatchingKVCache.fetched(self, story, key, value, mask_length)
    buffers = story.__dict__.setdefault("buffers", {})
    own = tuple(
        buffers.setdefault((name, x.shape[:2], x.shape[3]), np.zeros((*x.shape[:2], 1024, x.shape[3]), x.dtype))
        for name, x in zip(("key", "value"), made[:2], strict=True)
    )
    for buffer, x in zip(own, made[:2], strict=True):
        buffer[:, :, 1024 - x.shape[2] :] = x
    keys, values = (buffer[:, :, 1024 - made[0].shape[2] :] for buffer in own)
    return keys, values, made[2]


def _one_mask(self: BatchingKVCache, story: Story, key: np.ndarray, value: np.ndarray, mask_length: int) -> Raw:
    keys, values, mask = BatchingKVCache.fetched(self, story, key, value, mask_length)
    own = story.__dict__.setdefault("mask", np.zeros((len(key), 1, 16, 1024), bool))
    view = own[:, :, : mask.shape[2], 1024 - mask.shape[3] :]
    view[...] = mask
    return keys, values, view


# offsets


def _longest_of_all(self: BatchingKVCache, story: Story) -> list[int]:
    return [0 if row is None else self.width(story) for row in story.batch.rows]


def _columns(self: BatchingKVCache, story: Story) -> list[int]:
    return [self.width(story) for _ in story.batch.rows]


def _of_the_left(self: BatchingKVCache, story: Story) -> list[int]:
    left = getattr(story, "left", {})
    return [
        (left[slot][0].shape[1] if slot in left else 0) if row is None else row[0].shape[1]
        for slot, row in enumerate(story.batch.rows)
    ]


def _packed_offsets(self: BatchingKVCache, story: Story) -> list[int]:
    offsets = [row[0].shape[1] for _, row in _rows(story)]
    return offsets + [0] * (len(story.batch.rows) - len(offsets))


def _last_token_positions(self: BatchingKVCache, story: Story) -> list[int]:
    return [max(n - 1, 0) for n in BatchingKVCache.offsets_of(self, story)]


# refusals


def _clamped(self: BatchingKVCache, story: Story, key: np.ndarray, value: np.ndarray) -> None:
    """A request past max_len loses its first tokens."""
    BatchingKVCache.store(self, story, key, value)
    rows = story.batch.rows
    story.batch.rows = [None if row is None else tuple(x[:, -story.a.max_len :] for x in row) for row in rows]


def _room_of_the_first(self: BatchingKVCache, story: Story, key: np.ndarray) -> None:
    rows = _rows(story)
    if rows and rows[0][1][0].shape[1] + key.shape[2] > story.a.max_len:
        raise ValueError("no room")


def _room_off_by_one(self: BatchingKVCache, story: Story, key: np.ndarray) -> None:
    if any(row[0].shape[1] + key.shape[2] >= story.a.max_len for _, row in _rows(story)):
        raise ValueError("no room")


def _room_with_idle(self: BatchingKVCache, story: Story, key: np.ndarray) -> None:
    """Slots that are left still count."""
    rows = [*(row for _, row in _rows(story)), *getattr(story, "left", {}).values()]
    if any(row[0].shape[1] + key.shape[2] > story.a.max_len for row in rows):
        raise ValueError("no room")


def _fills_then_refuses(self: BatchingKVCache, story: Story, key: np.ndarray) -> None:
    """Requests are written one by one until one has no room."""
    before = list(story.batch.rows)
    for slot, row in _rows(story):
        if row[0].shape[1] + key.shape[2] > story.a.max_len:
            raise ValueError("no room")
        story.batch.rows[slot] = tuple(np.concatenate([x, x[:, :1]], axis=1) for x in row)
    story.batch.rows = before


def _key_before_value(self: BatchingKVCache, story: Story, key: np.ndarray, value: np.ndarray) -> None:
    """The lengths have moved on when key and value are compared."""
    try:
        BatchingKVCache.check_update(self, story, key, value)
    except ValueError:
        for slot, row in _rows(story):
            story.batch.rows[slot] = tuple(np.concatenate([x, x[:, -1:]], axis=1) for x in row)
        raise


def _frees_then_checks(self: BatchingKVCache, story: Story, slot: int) -> None:
    """The request that has the slot is gone when the other is refused."""
    if story.batch.rows[slot] is not None:
        story.batch.rows[slot] = None
        raise ValueError("taken")


def _enters_if_idle(self: BatchingKVCache, story: Story, slot: int, key: Any, value: Any, stale: int) -> None:
    if story.batch.rows[slot] is None:
        BatchingKVCache.enter(self, story, slot, key, value, stale)


def _from_the_end(self: BatchingKVCache, story: Story, slot: int) -> None:
    if not -story.a.max_requests <= slot < story.a.max_requests:
        raise ValueError("no such slot")


def _enters_clamped(self: BatchingKVCache, story: Story, slot: int, key: Any, value: Any, stale: int) -> None:
    BatchingKVCache.enter(self, story, min(max(slot, 0), story.a.max_requests - 1), key, value, stale)


def _leaves_clamped(self: BatchingKVCache, story: Story, slot: int) -> None:
    story.batch.rows[min(max(slot, 0), story.a.max_requests - 1)] = None


def _takes_then_checks(self: BatchingKVCache, story: Story, key: np.ndarray) -> None:
    """The slot is taken, by an empty request, when its cache proves too long."""
    if key.shape[2] > story.a.max_len:
        slot = story.batch.rows.index(None)
        story.batch.rows[slot] = key[0, :, :0], np.zeros_like(key[0, :, :0])
        raise ValueError("too long")


def _one_row_for_all(
    self: BatchingKVCache, story: Story, key: np.ndarray, value: np.ndarray, mask_length: int
) -> dict[str, Any]:
    if len(key) == len(value) == 1:
        key, value = (np.repeat(x, story.a.max_requests, axis=0) for x in (key, value))
    return BatchingKVCache.update_and_fetch(self, story, key, value, mask_length)


def _at_least_rows(self: BatchingKVCache, story: Story, key: np.ndarray) -> None:
    if len(key) < story.a.max_requests:
        raise ValueError("too few rows")


def _rows_cut(self: BatchingKVCache, story: Story, key: np.ndarray, value: np.ndarray, mask_length: int) -> Raw:
    rows = story.a.max_requests
    return BatchingKVCache.fetched(self, story, key[:rows], value[:rows], mask_length)


def _broadcasting(
    self: BatchingKVCache, story: Story, key: np.ndarray, value: np.ndarray, mask_length: int
) -> dict[str, Any]:
    """Tokens of a single head or feature are for all heads and features."""
    for held in self.requests(story)[:1]:
        key, value = (
            np.broadcast_to(x, (len(x), own.shape[0], x.shape[-2], own.shape[2]))
            for x, own in zip((key, value), held, strict=True)
        )
    return BatchingKVCache.update_and_fetch(self, story, key, value, mask_length)


def _cast(self: BatchingKVCache, old: np.ndarray, new: np.ndarray) -> np.ndarray:
    return np.concatenate([old, new.astype(old.dtype)], axis=1)


# what was rewound, and what batches share


def _with_stale(self: BatchingKVCache, story: Story, slot: int, key: Any, value: Any, stale: int) -> None:
    """The buffer of the cache is taken, rewound tokens and all."""
    key, value = (
        np.concatenate([x, np.full((*x.shape[:2], stale, x.shape[3]), np.nan).astype(x.dtype)], axis=2)
        for x in (key, value)
    )
    BatchingKVCache.enter(self, story, slot, key, value, stale)


def _buffer_end(self: BatchingKVCache, story: Story, slot: int, key: Any, value: Any, stale: int) -> None:
    """As many tokens as the cache has, but from the end of its buffer."""
    length = key.shape[2]
    key, value = (
        np.concatenate([x, np.full((*x.shape[:2], stale, x.shape[3]), np.nan).astype(x.dtype)], axis=2)[:, :, -length:]
        if length
        else x
        for x in (key, value)
    )
    BatchingKVCache.enter(self, story, slot, key, value, stale)


def _of_the_class(self: BatchingKVCache, a: Arguments) -> Batch:
    """The list of requests is the class's own: batches of as many slots have it in common."""
    batches = type(self).__dict__.get("batches")
    if batches is None:
        batches = type(self).batches = {}  # type: ignore[attr-defined]
    batch: Batch = batches.setdefault(a.max_requests, BatchingKVCache.fresh(self, a))
    return batch


def _room_in_eights(self: BatchingKVCache, story: Story, key: np.ndarray) -> None:
    room = story.a.max_len // 8 * 8 or story.a.max_len
    if any(row[0].shape[1] + key.shape[2] > room for _, row in _rows(story)):
        raise ValueError("no room")


def _short_values(story: Story, keys: np.ndarray, values: np.ndarray, mask: np.ndarray) -> None:
    """Values of requests shorter than the longest are taken for padding."""
    for slot, row in _rows(story):
        if row[0].shape[1] < keys.shape[2]:
            values[slot] = 0


def _whole_buffer(self: BatchingKVCache, story: Story, key: np.ndarray, value: np.ndarray, mask_length: int) -> Raw:
    """Keys, values and mask are of all max_len columns, tokens first."""
    made = BatchingKVCache.fetched(self, story, key, value, mask_length)
    more = story.a.max_len - made[0].shape[2]
    keys, values = (np.pad(x, ((0, 0), (0, 0), (0, more), (0, 0))) for x in made[:2])
    return keys, values, np.pad(made[2], ((0, 0), (0, 0), (0, 0), (0, more)))


def _queries_of_step(self: BatchingKVCache, story: Story, key: np.ndarray, value: np.ndarray, mask_length: int) -> Raw:
    return BatchingKVCache.fetched(self, story, key, value, key.shape[2])


def _first_queries(self: BatchingKVCache, story: Story, key: np.ndarray, value: np.ndarray, mask_length: int) -> Raw:
    """Rows of the mask are those of the first queries of the step, not of the last."""
    length = key.shape[2]
    keys, values, mask = BatchingKVCache.fetched(self, story, key, value, length)
    rows = np.minimum(np.arange(mask_length), length - 1)
    return keys, values, mask[:, :, rows]


# faults that are about a request without a prompt


def _empty_refused(self: BatchingKVCache, story: Story, key: np.ndarray) -> None:
    BatchingKVCache.check_prompt(self, story, key)
    if not key.shape[2]:
        raise ValueError("an empty cache")


def _empty_is_idle(self: BatchingKVCache, story: Story, slot: int, key: Any, value: Any, stale: int) -> None:
    """A request with nothing cached is taken for no request."""
    if key.shape[2]:
        BatchingKVCache.enter(self, story, slot, key, value, stale)


def _fault(name: str, text: str, kills: Any, change: Change, source: str) -> Fault:
    return Fault(f"batching-{name}", text, kills, change, source)


# a decoder


def _one_for_all(self: BatchingKVCache, story: Story) -> list[int]:
    """The offset of the first request is that of all."""
    lengths = [row[0].shape[1] for _, row in _rows(story)]
    return [0 if row is None else lengths[0] for row in story.batch.rows]


# many, wide and long


def _features_past_64(story: Story, keys: np.ndarray, values: np.ndarray, mask: np.ndarray) -> None:
    keys[..., 64:] = values[..., 64:] = 0


def _heads_past_8(story: Story, keys: np.ndarray, values: np.ndarray, mask: np.ndarray) -> None:
    keys[:, 8:] = values[:, 8:] = 0


def _slots_past_8(story: Story, keys: np.ndarray, values: np.ndarray, mask: np.ndarray) -> None:
    mask[8:] = False


def _keys_cut_to_value(story: Story, keys: np.ndarray, values: np.ndarray, mask: np.ndarray) -> Raw:
    return keys[..., : values.shape[3]], values, mask


def _drifts(story: Story, keys: np.ndarray, values: np.ndarray, mask: np.ndarray) -> None:
    """From the 17th update on the first token is hidden."""
    story.updates = getattr(story, "updates", 0) + 1
    if story.updates > 16:
        for slot, row in _rows(story):
            mask[slot, ..., mask.shape[-1] - row[0].shape[1]] = False


def _cut_to_256(self: BatchingKVCache, story: Story, key: np.ndarray, value: np.ndarray) -> None:
    """Room is made for 256 tokens at a time: what a longer step has past them is zeros."""
    BatchingKVCache.store(self, story, key, value)
    for _, row in _rows(story):
        for x in row:
            x[:, x.shape[1] - max(key.shape[2] - 256, 0) :] = 0


def _live_offsets(self: BatchingKVCache, story: Story, step: int) -> dict[str, Any]:
    return {"offsets": self.offsets_of(story)}


def _doubly_taken(self: BatchingKVCache, story: Story, slot: int) -> None:
    """A refused request is counted as an owner of its slot."""
    try:
        BatchingKVCache.check_idle(self, story, slot)
    except ValueError:
        story.owners = {**getattr(story, "owners", {}), slot: 2}
        raise


def _leaves_in_turn(self: BatchingKVCache, story: Story, slot: int) -> None:
    if getattr(story, "owners", {}).pop(slot, 1) == 1:
        BatchingKVCache.leave(self, story, slot)


def _counts_anew(self: BatchingKVCache, story: Story, slot: int, key: Any, value: Any, stale: int) -> None:
    """The room of a slot that was used before is counted from the prompt's end."""
    BatchingKVCache.enter(self, story, slot, key, value, stale)
    if slot in getattr(story, "left", {}):
        story.prompts = {**getattr(story, "prompts", {}), slot: key.shape[2]}


def _room_past_prompts(self: BatchingKVCache, story: Story, key: np.ndarray) -> None:
    prompts = getattr(story, "prompts", {})
    if any(row[0].shape[1] - prompts.get(slot, 0) + key.shape[2] > story.a.max_len for slot, row in _rows(story)):
        raise ValueError("full")


def _features_past_128(story: Story, keys: np.ndarray, values: np.ndarray, mask: np.ndarray) -> None:
    keys[..., 128:] = values[..., 128:] = 0


def _heads_past_64(story: Story, keys: np.ndarray, values: np.ndarray, mask: np.ndarray) -> None:
    keys[:, 64:] = values[:, 64:] = 0


def _longest_of_32(story: Story, keys: np.ndarray, values: np.ndarray, mask: np.ndarray) -> None:
    """Slots past the 32nd are not asked how long their requests are, and lose what others have not."""
    lengths = [0 if row is None else row[0].shape[1] for row in story.batch.rows]
    mask[32:, ..., : mask.shape[-1] - max(lengths[:32])] = False


def _past_16_bits(keys: np.ndarray, values: np.ndarray, mask: np.ndarray, length: int) -> None:
    mask[..., : mask.shape[-1] - 32767] = False


def _positions_in_half(self: BatchingKVCache, queries: int, length: int) -> np.ndarray:
    last = np.arange(queries)[:, None] + length - queries
    return np.asarray(np.arange(length).astype(np.float16) <= last.astype(np.float16))


def _counted_from_the_end(self: BatchingKVCache, queries: int, length: int) -> np.ndarray:
    """What is visible is a slice, whose end below 0 counts from the end."""
    visible = np.zeros((queries, length), bool)
    for query in range(queries):
        visible[query, : length - queries + query + 1] = True
    return visible


# buffers


def _room_for_256_more(self: BatchingKVCache, story: Story, slot: int, key: Any, value: Any, stale: int) -> None:
    """A buffer has 256 columns more than the longest prompt so far; end: the columns that were written."""
    BatchingKVCache.enter(self, story, slot, key, value, stale)
    if key.shape[2] > getattr(story, "end", 0) or not hasattr(story, "room"):
        story.end, story.room = key.shape[2], key.shape[2] + 256


def _first_past_the_buffer_lost(self: BatchingKVCache, story: Story, key: np.ndarray, value: np.ndarray) -> None:
    """Whether a step fits is told wrong by one: a token right past the end of the buffer is written nowhere."""
    BatchingKVCache.store(self, story, key, value)
    if not (rows := _rows(story)):
        return
    story.end += key.shape[2]
    for _, row in rows:
        for x in row:
            x[:, x.shape[1] - (story.end == story.room + 1) :] = 0
    if story.end > story.room:
        story.room = story.end + 256


def _old_end_in_a_new_buffer(self: BatchingKVCache, story: Story, key: np.ndarray, value: np.ndarray) -> None:
    """Requests move to the front of a new buffer, and the tokens of the step that needs it go where the end was."""
    before = self.width(story)
    BatchingKVCache.store(self, story, key, value)
    if not (rows := _rows(story)):
        return
    lost = min(story.end - before, key.shape[2])
    story.end += key.shape[2]
    if story.end > story.room:
        for _, row in rows:
            for x in row:
                x[:, x.shape[1] - lost :] = 0
        story.end = self.width(story)
        story.room = story.end + 256


def _whole_buffers(self: BatchingKVCache, story: Story, key: np.ndarray, value: np.ndarray, mask_length: int) -> Raw:
    """Where nothing is padded the buffers themselves are returned."""
    result = BatchingKVCache.fetched(self, story, key, value, mask_length)
    if len({None if row is None else row[0].shape[1] for row in story.batch.rows}) == 1:
        story.buffers = result[:2]
    return result


def _clears_buffers(self: BatchingKVCache, story: Story, slot: int) -> None:
    BatchingKVCache.leave(self, story, slot)
    for x in getattr(story, "buffers", ()):
        x[slot] = 0


# requests without a prompt


def _nothing_to_filter(self: BatchingKVCache, story: Story, slot: int) -> None:
    """Rows are taken out of buffers that are only made with the first tokens."""
    if len(rows := _rows(story)) > 1 and not any(row[0].shape[1] for _, row in rows):
        raise ValueError("no buffers")
    BatchingKVCache.leave(self, story, slot)


def _notes_prompts(self: BatchingKVCache, story: Story, slot: int, key: Any, value: Any, stale: int) -> None:
    BatchingKVCache.enter(self, story, slot, key, value, stale)
    story.prompted = getattr(story, "prompted", False) or key.shape[2] > 0


def _broadcasting_without_prompts(
    self: BatchingKVCache, story: Story, key: np.ndarray, value: np.ndarray, mask_length: int
) -> dict[str, Any]:
    """The shapes of the batch are those of its prompts: where there was none, whatever can be broadcast is taken."""
    update = BatchingKVCache.update_and_fetch if getattr(story, "prompted", False) else _broadcasting
    return update(self, story, key, value, mask_length)


def _one_value_head_at_first(
    self: BatchingKVCache, story: Story, key: np.ndarray, value: np.ndarray, mask_length: int
) -> dict[str, Any]:
    """While nothing is cached, a single head of values is for all heads."""
    if value.ndim == 4 and value.shape[1] == 1 and not any(self.offsets_of(story)):
        value = np.repeat(value, key.shape[1], axis=1)
    return BatchingKVCache.update_and_fetch(self, story, key, value, mask_length)


def _single_feature_kept(self: BatchingKVCache, story: Story, key: np.ndarray, value: np.ndarray) -> None:
    """A key of a single feature is cached for all features, and refused when it does not go with its value."""
    try:
        BatchingKVCache.check_update(self, story, key, value)
    except ValueError:
        if key.ndim == 4 and key.shape[3] == 1:
            for slot, row in _rows(story):
                story.batch.rows[slot] = tuple(np.concatenate([x, x[:, :1]], axis=1) for x in row)
        raise


FAULTS: tuple[Fault, ...] = (
    _fault(
        "features-past-128",
        "features of a head past 128 are not copied",
        spec.BATCH_01,
        _after(_features_past_128),
        "PROPERTIES X2",
    ),
    _fault(
        "sixty-four-heads", "heads past the 64th are not copied", spec.BATCH_01, _after(_heads_past_64), "PROPERTIES X2"
    ),
    _fault(
        "longest-of-32",
        "the longest request is looked for in the first 32 slots",
        spec.BATCH_08,
        _after(_longest_of_32),
        "PROPERTIES X2",
    ),
    _fault(
        "none-to-filter",
        "of requests that all have no tokens yet none can leave",
        spec.BATCH_09,
        {"leave": _nothing_to_filter},
        "PROPERTIES BK4",
    ),
    _fault(
        "first-past-the-buffer",
        "the 257th token after a prompt is lost when it comes alone",
        spec.BATCH_10,
        {"enter": _room_for_256_more, "store": _first_past_the_buffer_lost},
        "PROPERTIES KV2",
    ),
    _fault(
        "old-end-in-a-new-buffer",
        "what grows a buffer is written where its end was before the requests moved",
        spec.BATCH_10,
        {"enter": _room_for_256_more, "store": _old_end_in_a_new_buffer},
        "PROPERTIES KV2",
    ),
    _fault(
        "lengths-of-16-bits",
        "tokens past 32767 push the first ones out of sight",
        spec.BATCH_10,
        _from(32767, _past_16_bits),
        "PROPERTIES X8",
    ),
    _fault(
        "positions-in-half",
        "the mask compares positions in float16",
        spec.BATCH_10,
        {"visible": _positions_in_half},
        "PROPERTIES X8",
    ),
    _fault(
        "whole-buffers",
        "where nothing is padded the buffers are returned, which are cleared when requests leave",
        spec.BATCH_17,
        {"fetched": _whole_buffers, "leave": _clears_buffers},
        "PROPERTIES X7",
    ),
    _fault(
        "queries-from-the-end",
        "of more queries than tokens the first ones see all but the last tokens",
        spec.BATCH_19,
        {"visible": _counted_from_the_end},
        "slices whose end is below 0",
    ),
    _fault(
        "single-feature-kept",
        "a key of a single feature has been cached when it is refused",
        spec.BATCH_23,
        {"check_update": _single_feature_kept},
        "PROPERTIES PG5",
    ),
    _fault(
        "broadcasts-without-prompts",
        "a single head or feature is for all, where no request had a prompt",
        spec.BATCH_29,
        {"enter": _notes_prompts, "update_and_fetch": _broadcasting_without_prompts},
        "PROPERTIES X9",
    ),
    _fault(
        "one-value-head-at-first",
        "a single head of values is for all in the first update of a request without a prompt",
        spec.BATCH_29,
        {"update_and_fetch": _one_value_head_at_first},
        "PROPERTIES X9",
    ),
    _fault(
        "features-past-64",
        "features of a head past 64 are not copied",
        spec.BATCH_01,
        _after(_features_past_64),
        "PROPERTIES X2",
    ),
    _fault("eight-heads", "heads past the 8th are not copied", spec.BATCH_01, _after(_heads_past_8), "PROPERTIES X2"),
    _fault(
        "seventeenth-update",
        "from the 17th update on the first token is hidden",
        spec.BATCH_01,
        _after(_drifts),
        "PROPERTIES BK1",
    ),
    _fault("eight-slots", "slots past the 8th see nothing", spec.BATCH_08, _after(_slots_past_8), "PROPERTIES X2"),
    _fault(
        "steps-of-256",
        "what a step has past 256 tokens is zeros",
        spec.BATCH_10,
        {"store": _cut_to_256},
        "PROPERTIES KV2",
    ),
    _fault(
        "value-dim-for-keys",
        "keys are cut to the head dim of the values",
        spec.BATCH_11,
        _after(_keys_cut_to_value),
        "PROPERTIES PA7",
    ),
    _fault(
        "live-offsets",
        "offsets that were read go on with the batch",
        spec.BATCH_18,
        {"reread_offsets": _live_offsets},
        f"{MLX_LM}/issues/1806",
    ),
    _fault(
        "room-of-former",
        "in a slot that was used before the prompt does not count",
        spec.BATCH_22,
        {"leave": _remembers_left, "enter": _counts_anew, "check_room": _room_past_prompts},
        "PROPERTIES BK3, X9",
    ),
    _fault(
        "refused-stays",
        "a request that was refused holds on to the slot: the first removal is without effect",
        spec.BATCH_28,
        {"check_idle": _doubly_taken, "leave": _leaves_in_turn},
        "PROPERTIES PG5",
    ),
    _fault(
        "first-token-lost",
        "the first token of a prompt is lost",
        spec.BATCH_01,
        {"enter": _first_token_lost},
        "PROPERTIES KV1",
    ),
    _fault(
        "newest-first",
        "new tokens come before those that are cached",
        spec.BATCH_01,
        {"joined": _new_first},
        "PROPERTIES KV1",
    ),
    _fault(
        "last-of-step-for-all",
        "the last token of a step stands for all of it",
        spec.BATCH_01,
        {"joined": _one_of_many},
        "PROPERTIES CP1",
    ),
    _fault(
        "first-row-for-all",
        "every request takes the tokens of the first one",
        spec.BATCH_01,
        {"store": _first_row_for_all},
        f"{VLLM_METAL}/d20dd02",
    ),
    _fault(
        "float16-storage", "new tokens are stored in float16", spec.BATCH_01, _stored_in("float16"), "PROPERTIES X4"
    ),
    _fault(
        "aligned-at-the-start",
        "requests are aligned at the start of their rows",
        spec.BATCH_02,
        {"place": _left},
        "PROPERTIES BK1",
    ),
    _fault(
        "padding-visible", "padding is not masked", spec.BATCH_02, _after(_padding_visible), f"{MLX_LM}/issues/1906"
    ),
    _fault(
        "one-column-of-padding",
        "the last column of padding is visible",
        spec.BATCH_02,
        _after(_one_column_of_padding),
        "PROPERTIES BK1",
    ),
    _fault(
        "first-token-masked",
        "padding is masked one column too far",
        spec.BATCH_02,
        _after(_first_hidden),
        "PROPERTIES BK1",
    ),
    _fault(
        "mask-of-the-first",
        "every request has the mask of the first one",
        spec.BATCH_02,
        _after(_padding_of_the_first),
        "PROPERTIES X3",
    ),
    _fault(
        "mask-inverted",
        "the bool mask says what is hidden",
        spec.BATCH_02,
        _after(_inverted),
        "the meaning of torch's key_padding_mask",
    ),
    _fault(
        "soft-mask",
        "hidden keys get -10000 added and stay visible",
        spec.BATCH_02,
        _after(_soft_mask),
        "the mask of early BERT implementations",
    ),
    _fault(
        "bool-as-numbers",
        "the mask is 1 and 0, to be added",
        spec.BATCH_02,
        _after(_bool_as_numbers),
        "FACTS.md: a bool mask is added instead of masking",
    ),
    _fault(
        "top-left",
        "the causal mask is aligned top-left in each request",
        spec.BATCH_03,
        {"visible": _top_left},
        spec.DECISIONS,
    ),
    _fault(
        "not-causal", "queries see the tokens after them", spec.BATCH_03, {"visible": _all_visible}, "PROPERTIES BK1"
    ),
    _fault(
        "not-itself",
        "the queries of a chunk do not see their own token",
        spec.BATCH_03,
        {"visible": _strictly_before},
        "PROPERTIES BK1",
    ),
    _fault(
        "chunk-alone",
        "the queries of a chunk see the chunk alone",
        spec.BATCH_03,
        {"visible": _window_of_queries},
        "PROPERTIES CP1",
    ),
    _fault(
        "no-mask-for-equal-lengths",
        "requests of equal lengths are not masked at all",
        spec.BATCH_03,
        _after(_no_mask_for_equal_lengths),
        "PROPERTIES BK1",
    ),
    _fault(
        "idle-causal", "idle slots have a causal mask", spec.BATCH_04, {"idle": _idle_causal}, f"{TINY_LLM}/4d4a292"
    ),
    _fault(
        "idle-own-token",
        "an idle slot sees what it is given",
        spec.BATCH_04,
        {"idle": _idle_own_token},
        "PROPERTIES BK2",
    ),
    _fault(
        "left-slot-visible",
        "a slot that is left is masked as before",
        spec.BATCH_04,
        {"leave": _remembers_left, "idle": _left_slots_stay},
        "PROPERTIES BK2",
    ),
    _fault(
        "idle-as-given",
        "what an idle slot is given stands in its row",
        spec.BATCH_05,
        {"idle": _idle_as_given},
        "PROPERTIES BK5",
    ),
    _fault(
        "padding-of-nan",
        "padding is memory that was never written",
        spec.BATCH_05,
        {"padding": _nan_padding},
        "PROPERTIES BK5",
    ),
    _fault(
        "stale-padding",
        "a request's padding is the tokens of the one before",
        spec.BATCH_05,
        _stale("taken"),
        "PROPERTIES BK3, BK5",
    ),
    _fault(
        "stale-idle",
        "an idle slot keeps the tokens of the request that left",
        spec.BATCH_05,
        _stale("idle"),
        "PROPERTIES BK5",
    ),
    _fault(
        "cleared-by-product",
        "a slot is cleared by a product with 0",
        spec.BATCH_05,
        {"leave": _remembers_left, **_after(_multiplied)},
        "PROPERTIES PA2",
    ),
    _fault(
        "former-not-cleared",
        "a new request is appended to the one before",
        spec.BATCH_06,
        {"leave": _remembers_left, "enter": _joins_former},
        f"{VLLM_METAL}/b213b8b",
    ),
    _fault(
        "former-length",
        "a shorter request keeps the length of the one before",
        spec.BATCH_06,
        {"leave": _remembers_left, "enter": _keeps_former_length},
        "PROPERTIES BK3",
    ),
    _fault(
        "former-values",
        "a slot's values are those of the request before",
        spec.BATCH_06,
        {"leave": _remembers_left, "enter": _values_of_former},
        f"{TINY_LLM}/05972ff",
    ),
    _fault(
        "values-of-padding",
        "values of requests shorter than the longest are taken for padding",
        spec.BATCH_07,
        _after(_short_values),
        "PROPERTIES BK1",
    ),
    _fault(
        "in-order-of-slots",
        "requests take the first rows, though slots before them are idle",
        spec.BATCH_07,
        {"store": _in_order_of_slots},
        "PROPERTIES CB1",
    ),
    _fault(
        "in-order-of-arrival",
        "requests take the rows in the order in which they came",
        spec.BATCH_07,
        {"enter": _remembers_arrival, "store": _in_order_of_arrival},
        "PROPERTIES CB1",
    ),
    _fault(
        "last-moves-up",
        "the last request moves into a slot that is left",
        spec.BATCH_08,
        {"leave": _compacts},
        "PROPERTIES CB4",
    ),
    _fault(
        "all-leave",
        "a request that leaves takes the tokens of all with it",
        spec.BATCH_08,
        {"leave": _empties_all},
        "PROPERTIES BK3",
    ),
    _fault(
        "filled-up",
        "a shorter prompt is filled up with zeros that count as tokens",
        spec.BATCH_08,
        {"enter": _padding_becomes_tokens},
        "PROPERTIES BK1",
    ),
    _fault(
        "cut-to-the-others",
        "a longer prompt loses its first tokens",
        spec.BATCH_08,
        {"enter": _cut_to_the_others},
        "PROPERTIES BK4",
    ),
    _fault(
        "longer-clears",
        "a longer prompt clears the other requests",
        spec.BATCH_08,
        {"enter": _longer_only_from_now},
        "PROPERTIES BK4",
    ),
    _fault(
        "empty-refused",
        "a request without a prompt is refused",
        spec.BATCH_09,
        {"check_prompt": _empty_refused},
        "PROPERTIES BK4",
    ),
    _fault(
        "empty-is-idle",
        "a request without a prompt is taken for an idle slot",
        spec.BATCH_09,
        {"enter": _empty_is_idle},
        "PROPERTIES BK4, SD5",
    ),
    _fault(
        "ring-of-256",
        "requests see no more than their last 256 tokens",
        spec.BATCH_10,
        _from(256, _forgets_old),
        f"{VLLM_METAL}/ce6bd02",
    ),
    _fault(
        "first-value-past-256",
        "the first value of a request is lost when it grows past 256",
        spec.BATCH_10,
        _from(256, _zeros_past),
        "PROPERTIES KV2",
    ),
    _fault(
        "tile-of-padding",
        "tokens in a tile of 32 that begins with padding are hidden",
        spec.BATCH_10,
        _after(_tile_hidden),
        "FACTS.md: a 32-key tile that is masked",
    ),
    _fault(
        "value-dim-of-key",
        "values have the head dim of the keys",
        spec.BATCH_11,
        _after(_value_cut_to_key),
        "PROPERTIES PA7",
    ),
    _fault(
        "promotes",
        "keys and values come back in float32",
        spec.BATCH_12,
        _other_dtype("keys", "values"),
        "PROPERTIES X4",
    ),
    _fault("values-promoted", "values come back in float32", spec.BATCH_12, _other_dtype("values"), "PROPERTIES X4"),
    _fault(
        "float32-mask",
        "the mask is float32 whatever the keys are",
        spec.BATCH_13,
        _other_dtype("mask"),
        "PROPERTIES X4",
    ),
    _fault(
        "float16-mask",
        "the mask is float16 whatever the keys are",
        spec.BATCH_13,
        _other_dtype("mask", dtype="float16"),
        "PROPERTIES X4",
    ),
    _fault(
        "key-strides", "the key is read as if it were contiguous", spec.BATCH_14, _strides_of("key"), "PROPERTIES X1"
    ),
    _fault(
        "value-strides",
        "the value is read as if it were contiguous",
        spec.BATCH_14,
        _strides_of("value"),
        "PROPERTIES X1",
    ),
    _fault("clears-key", "the key is cleared once it is cached", spec.BATCH_15, _clears("key"), "PROPERTIES X6"),
    _fault(
        "clears-idle",
        "rows of idle slots are zeroed in the caller's arrays",
        spec.BATCH_15,
        {"respond": _clears_idle},
        "PROPERTIES X6",
    ),
    _fault(
        "last-by-reference",
        "tokens are written when the next ones come",
        spec.BATCH_16,
        {"store": _late},
        "PROPERTIES X6",
    ),
    _fault(
        "prompt-by-reference",
        "the tokens of a prompt are kept by reference",
        spec.BATCH_16,
        {"enter": _prompt_by_reference},
        "PROPERTIES X6",
    ),
    _fault(
        "results-in-buffer",
        "every update writes into the arrays of the one before",
        spec.BATCH_17,
        {"fetched": _one_buffer},
        "PROPERTIES X7",
    ),
    _fault(
        "mask-in-buffer",
        "every update writes into the mask of the one before",
        spec.BATCH_17,
        {"fetched": _one_mask},
        "PROPERTIES X7",
    ),
    _fault(
        "offset-of-the-longest",
        "all requests have the offset of the longest",
        spec.BATCH_18,
        {"offsets_of": _longest_of_all},
        f"{MLX_LM}/commit/1e71de53",
    ),
    _fault(
        "offset-of-columns",
        "idle slots have the offset of the batch too",
        spec.BATCH_18,
        {"offsets_of": _columns},
        "PROPERTIES BK2",
    ),
    _fault(
        "offset-of-the-left",
        "a slot that is left keeps its offset",
        spec.BATCH_18,
        {"leave": _remembers_left, "offsets_of": _of_the_left},
        "PROPERTIES BK3",
    ),
    _fault(
        "offsets-packed",
        "offsets are of the requests one after the other, not of the slots",
        spec.BATCH_18,
        {"offsets_of": _packed_offsets},
        "PROPERTIES CB4",
    ),
    _fault(
        "offset-of-last-token",
        "an offset is the position of the last token",
        spec.BATCH_18,
        {"offsets_of": _last_token_positions},
        f"{TINY_LLM}/4cddec2",
    ),
    _fault(
        "mask-length-ignored",
        "the mask has a row for each new token",
        spec.BATCH_19,
        {"fetched": _queries_of_step},
        "DESIGN.md, section 3",
    ),
    _fault(
        "first-queries",
        "fewer queries are taken for the first of a step",
        spec.BATCH_19,
        {"fetched": _first_queries},
        "DESIGN.md, section 3",
    ),
    _fault(
        "whole-buffer",
        "keys and values are of all max_len columns",
        spec.BATCH_20,
        {"fetched": _whole_buffer},
        f"{MLX_LM}/commit/eb98ff72",
    ),
    _fault(
        "room-in-eights",
        "max_len is rounded down to a multiple of 8",
        spec.BATCH_21,
        {"check_room": _room_in_eights},
        "PROPERTIES SC6",
    ),
    _fault(
        "last-token-unused",
        "the last token of max_len is never used",
        spec.BATCH_21,
        {"check_room": _room_off_by_one},
        "PROPERTIES SC6",
    ),
    _fault(
        "columns-used-up",
        "max_len is compared with the steps of the batch",
        spec.BATCH_21,
        {"check_room": _steps_of_the_batch},
        f"{VLLM_METAL}/ce6bd02",
    ),
    _fault(
        "left-slots-count",
        "requests that left still use up room",
        spec.BATCH_21,
        {"leave": _remembers_left, "check_room": _room_with_idle},
        "PROPERTIES BK3",
    ),
    _fault(
        "first-tokens-dropped",
        "a request past max_len loses its first tokens",
        spec.BATCH_22,
        {"check_room": _nothing, "store": _clamped},
        "the kind of mlx-lm 358b4d2a",
    ),
    _fault(
        "room-unchecked", "a request may grow past max_len", spec.BATCH_22, {"check_room": _nothing}, "PROPERTIES X9"
    ),
    _fault(
        "room-of-the-first",
        "the first request alone is compared with max_len",
        spec.BATCH_22,
        {"check_room": _room_of_the_first},
        "PROPERTIES X9",
    ),
    _fault(
        "writes-until-full",
        "requests before the one without room have changed when an update is refused",
        spec.BATCH_23,
        {"check_room": _fills_then_refuses},
        "PROPERTIES PG5",
    ),
    _fault(
        "counts-before-checks",
        "requests have grown when a misshaped update is refused",
        spec.BATCH_23,
        {"check_update": _key_before_value},
        "PROPERTIES PG5",
    ),
    _fault(
        "prompt-unchecked",
        "a prompt may be longer than max_len",
        spec.BATCH_24,
        {"check_prompt": _nothing},
        "PROPERTIES X9",
    ),
    _fault(
        "replaces",
        "a new request replaces the one that has the slot",
        spec.BATCH_25,
        {"check_idle": _nothing},
        "tiny-llm course, week 2 day 6: add_request",
    ),
    _fault(
        "drops-silently",
        "a request for a taken slot is dropped without an error",
        spec.BATCH_25,
        {"check_idle": _nothing, "enter": _enters_if_idle},
        "PROPERTIES CB2",
    ),
    _fault(
        "removes-nothing",
        "the removal from an idle slot does nothing",
        spec.BATCH_26,
        {"check_taken": _nothing},
        "PROPERTIES X9, PG1",
    ),
    _fault(
        "slot-from-the-end",
        "a slot below 0 counts from the end",
        spec.BATCH_27,
        {"check_slot": _from_the_end},
        "PROPERTIES X9",
    ),
    _fault(
        "slot-clamped",
        "a slot that there is not is taken for the nearest",
        spec.BATCH_27,
        {
            "check_slot": _nothing,
            "check_idle": _nothing,
            "check_taken": _nothing,
            "enter": _enters_clamped,
            "leave": _leaves_clamped,
        },
        "PROPERTIES X9",
    ),
    _fault(
        "frees-then-refuses",
        "the request that has the slot is gone when the other is refused",
        spec.BATCH_28,
        {"check_idle": _frees_then_checks},
        "PROPERTIES PG5",
    ),
    _fault(
        "takes-then-refuses",
        "a slot is taken when its prompt proves too long",
        spec.BATCH_28,
        {"check_prompt": _takes_then_checks},
        "PROPERTIES PG5",
    ),
    _fault(
        "one-row-for-all",
        "a single row is for all slots",
        spec.BATCH_29,
        {"update_and_fetch": _one_row_for_all},
        "PROPERTIES X9",
    ),
    _fault(
        "rows-too-many",
        "rows past the last slot are left out",
        spec.BATCH_29,
        {"check_rows": _at_least_rows, "fetched": _rows_cut},
        "PROPERTIES X9",
    ),
    _fault(
        "broadcasts",
        "a single head or feature is for all of a request",
        spec.BATCH_29,
        {"update_and_fetch": _broadcasting},
        "PROPERTIES X9",
    ),
    _fault(
        "any-cache", "a cache of two rows gives its first", spec.BATCH_30, {"check_cache": _nothing}, "PROPERTIES X9"
    ),
    _fault(
        "casts",
        "tokens of another dtype are cast",
        spec.BATCH_31,
        {"check_dtype": _nothing, "joined": _cast},
        "PROPERTIES X4, X9",
    ),
    _fault(
        "rewound-tokens",
        "rewound tokens of a prompt's cache are taken too",
        spec.BATCH_32,
        {"enter": _with_stale},
        f"{MLX_LM}/issues/1494",
    ),
    _fault(
        "end-of-buffer",
        "the tokens of a prompt are taken from the end of its buffer",
        spec.BATCH_32,
        {"enter": _buffer_end},
        f"{MLX_LM}/commit/eb98ff72",
    ),
    _fault(
        "of-the-class",
        "the list of requests is the class's own",
        spec.BATCH_33,
        {"fresh": _of_the_class},
        "PROPERTIES X7",
    ),
    _fault("any-size", "a batch of no slots is made", spec.BATCH_34, {"guard": _nothing}, "PROPERTIES X9"),
    Fault(
        "batch-position-of-first",
        "the offset of the first request is taken for that of all",
        spec.BATCH_35,
        {"offsets_of": _one_for_all},
        "PROPERTIES BK1; FACTS: offset ignored for batches",
    ),
)


# honest ways


def _spare_columns(self: BatchingKVCache, story: Story) -> int:
    """As many columns as there can be."""
    return int(story.a.max_len)


def _rounded_width(self: BatchingKVCache, story: Story) -> int:
    return -(-BatchingKVCache.width(self, story) // 32) * 32


def _additive(hidden: float) -> Change:
    def additive(story: Story, keys: np.ndarray, values: np.ndarray, mask: np.ndarray) -> Raw:
        low = -largest(keys.dtype.name) if hidden == 0 else hidden
        return keys, values, np.where(mask, 0.0, low).astype(keys.dtype)

    return _after(additive)


def _garbage(self: BatchingKVCache, shape: tuple[int, ...], dtype: np.dtype[Any]) -> np.ndarray:
    return round_to(np.resize(np.linspace(-3, 3, 17), shape), dtype.name)


def _token_by_token(self: BatchingKVCache, story: Story, key: np.ndarray, value: np.ndarray) -> None:
    for token in range(key.shape[2]):
        BatchingKVCache.store(self, story, key[:, :, token : token + 1], value[:, :, token : token + 1])


def _tokens_outermost(story: Story, keys: np.ndarray, values: np.ndarray, mask: np.ndarray) -> Raw:
    keys, values = (np.ascontiguousarray(x.transpose(2, 0, 1, 3)).transpose(1, 2, 0, 3) for x in (keys, values))
    return keys, values, mask


def _variant(name: str, text: str, change: Change) -> Variant:
    return Variant(f"batching-{name}", text, "BatchingKVCache", change)


VARIANTS: tuple[Variant, ...] = (
    _variant("all-columns", "max_len columns, padding on the left", {"width": _spare_columns}),
    _variant("columns-in-tiles", "columns in multiples of 32", {"width": _rounded_width}),
    _variant("minus-infinity", "an additive mask of -inf", _additive(-np.inf)),
    _variant("lowest-number", "an additive mask of the dtype's lowest number", _additive(0)),
    _variant("garbage-padding", "padding of any finite numbers", {"padding": _garbage}),
    _variant("token-by-token", "tokens are written one by one", {"store": _token_by_token}),
    _variant("tokens-outermost", "tokens are the outermost axis in memory", _after(_tokens_outermost)),
)
