"""The steps that faults and honest variants have in the place of the oracle's: see `spec/faults/batching.py`."""

from __future__ import annotations

from typing import Any

import numpy as np

from inferspec.spec.batching import Batch, BatchingKVCache, Raw, Story
from inferspec.spec.contract import Arguments, Change, Operation
from inferspec.spec.numerics import f64, largest, round_to

Row = tuple[np.ndarray, np.ndarray]


def nothing(*_: Any) -> None:
    """A check that is missing."""


def after(change: Any) -> Change:
    """`fetched`, with something done to keys, values and mask."""

    def fetched(self: BatchingKVCache, story: Story, key: np.ndarray, value: np.ndarray, mask_length: int) -> Raw:
        keys, values, mask = BatchingKVCache.fetched(self, story, key, value, mask_length)
        result: Raw = change(story, keys, values, mask) or (keys, values, mask)
        return result

    return {"fetched": fetched}


def rows_of(story: Story) -> list[tuple[int, Row]]:
    return [(slot, row) for slot, row in enumerate(story.batch.rows) if row is not None]


# what an update returns


def first_token_lost(self: BatchingKVCache, story: Story, slot: int, key: Any, value: Any, stale: int) -> None:
    BatchingKVCache.enter(self, story, slot, key[:, :, 1:], value[:, :, 1:], stale)


def zeros_for_padding(self: BatchingKVCache, story: Story, slot: int, key: Any, value: Any, stale: int) -> None:
    """Tokens that a cache begins with and whose keys are zeros are left out; one token stays."""
    empty = (f64(key) == 0).all(axis=(0, 1, 3))
    first = int(np.argmin(np.append(empty[:-1], False)))
    BatchingKVCache.enter(self, story, slot, key[:, :, first:], value[:, :, first:], stale)


def new_first(self: BatchingKVCache, old: np.ndarray, new: np.ndarray) -> np.ndarray:
    return np.concatenate([new, old], axis=1)


def one_of_many(self: BatchingKVCache, old: np.ndarray, new: np.ndarray) -> np.ndarray:
    return np.concatenate([old, np.repeat(new[:, -1:], new.shape[1], axis=1)], axis=1)


def first_row_for_all(self: BatchingKVCache, story: Story, key: np.ndarray, value: np.ndarray) -> None:
    active = rows_of(story)
    key, value = (np.repeat(x[active[0][0] :][:1], len(x), axis=0) if active else x for x in (key, value))
    BatchingKVCache.store(self, story, key, value)


def in_order_of_slots(self: BatchingKVCache, story: Story, key: np.ndarray, value: np.ndarray) -> None:
    """The i-th request takes the i-th row, as if the rows of idle slots were left out."""
    order = [slot for slot, _ in rows_of(story)]
    packed = [np.array(x) for x in (key, value)]
    for x, own in zip((key, value), packed, strict=True):
        for row, slot in enumerate(order):
            own[slot] = x[row]
    BatchingKVCache.store(self, story, *packed)


def in_order_of_arrival(self: BatchingKVCache, story: Story, key: np.ndarray, value: np.ndarray) -> None:
    order = [slot for slot in story.arrivals if story.batch.rows[slot] is not None]
    packed = [np.array(x) for x in (key, value)]
    for x, own in zip((key, value), packed, strict=True):
        for slot, row in zip(order, sorted(order), strict=True):
            own[slot] = x[row]
    BatchingKVCache.store(self, story, *packed)


def last_chunk_alone(
    self: BatchingKVCache, story: Story, key: np.ndarray, value: np.ndarray, begun: int
) -> tuple[np.ndarray, np.ndarray]:
    return key[:, :, begun:], value[:, :, begun:]


def known_by_first_chunk(
    self: BatchingKVCache, story: Story, key: np.ndarray, value: np.ndarray, begun: int
) -> tuple[np.ndarray, np.ndarray]:
    known: dict[bytes, tuple[np.ndarray, np.ndarray]] = story.__dict__.setdefault("beginnings", {})
    return known.setdefault(key[:, :, : begun or None].tobytes(), (key, value)) if key.size else (key, value)


def remembers_arrival(self: BatchingKVCache, story: Story, slot: int, key: Any, value: Any, stale: int) -> None:
    story.arrivals = [other for other in getattr(story, "arrivals", []) if other != slot] + [slot]
    BatchingKVCache.enter(self, story, slot, key, value, stale)


def left(self: BatchingKVCache, length: int, width: int) -> slice:
    return slice(0, length)


def remembers_left(self: BatchingKVCache, story: Story, slot: int) -> None:
    story.left = {**getattr(story, "left", {}), slot: story.batch.rows[slot]}
    BatchingKVCache.leave(self, story, slot)


def stale(where: str) -> Change:
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

    return {"leave": remembers_left, **after(under)}


# slots that change hands


def joins_former(self: BatchingKVCache, story: Story, slot: int, key: Any, value: Any, stale: int) -> None:
    BatchingKVCache.enter(self, story, slot, key, value, stale)
    if (former := getattr(story, "left", {}).get(slot)) is not None:
        own = story.batch.rows[slot]
        story.batch.rows[slot] = tuple(np.concatenate(pair, axis=1) for pair in zip(former, own, strict=True))


def keeps_former_length(self: BatchingKVCache, story: Story, slot: int, key: Any, value: Any, stale: int) -> None:
    """The tokens of a shorter request are written over the first ones of the longer one before."""
    BatchingKVCache.enter(self, story, slot, key, value, stale)
    former = getattr(story, "left", {}).get(slot)
    length = key.shape[2]
    if former is not None and former[0].shape[1] > length:
        own = story.batch.rows[slot]
        story.batch.rows[slot] = tuple(
            np.concatenate([new, old[:, length:]], axis=1) for new, old in zip(own, former, strict=True)
        )


def values_of_former(self: BatchingKVCache, story: Story, slot: int, key: Any, value: Any, stale: int) -> None:
    former = getattr(story, "left", {}).get(slot)
    value = np.array(value)
    if former is not None:
        length = min(former[1].shape[1], value.shape[2])
        value[0, :, :length] = former[1][:, :length]
    BatchingKVCache.enter(self, story, slot, key, value, stale)


def compacts(self: BatchingKVCache, story: Story, slot: int) -> None:
    """The last request moves into the slot that is left."""
    rows = story.batch.rows
    last = max(other for other, row in enumerate(rows) if row is not None)
    rows[slot], rows[last] = (rows[last] if last != slot else None), None


def empties_all(self: BatchingKVCache, story: Story, slot: int) -> None:
    rows = story.batch.rows
    story.batch.rows = [
        None if row is None or other == slot else tuple(x[:, :0] for x in row) for other, row in enumerate(rows)
    ]


def padding_becomes_tokens(self: BatchingKVCache, story: Story, slot: int, key: Any, value: Any, stale: int) -> None:
    """A shorter request is filled up with zeros to the length of the longest, and counts them."""
    short = max(self.width(story) - key.shape[2], 0)
    key, value = (np.pad(x, ((0, 0), (0, 0), (short, 0), (0, 0))) for x in (key, value))
    BatchingKVCache.enter(self, story, slot, key, value, stale)


def cut_to_the_others(self: BatchingKVCache, story: Story, slot: int, key: Any, value: Any, stale: int) -> None:
    """A prompt longer than the batch loses its first tokens."""
    width = self.width(story) or key.shape[2]
    short = max(key.shape[2] - width, 0)
    BatchingKVCache.enter(self, story, slot, key[:, :, short:], value[:, :, short:], stale)


def longer_only_from_now(self: BatchingKVCache, story: Story, slot: int, key: Any, value: Any, stale: int) -> None:
    """A longer prompt makes the others lose the tokens that they had."""
    if key.shape[2] > self.width(story):
        story.batch.rows = [None if row is None else tuple(x * 0 for x in row) for row in story.batch.rows]
    BatchingKVCache.enter(self, story, slot, key, value, stale)


# dtypes


def other_dtype(*names: str, dtype: str = "float32") -> Change:
    def respond(self: BatchingKVCache, a: Arguments) -> Any:
        result = Operation.respond(self, a)
        return {part: round_to(f64(x), dtype) if part.endswith(names) else x for part, x in result.items()}

    return {"respond": respond}


def stored_in(dtype: str) -> Change:
    def joined(self: BatchingKVCache, old: np.ndarray, new: np.ndarray) -> np.ndarray:
        narrow = round_to(f64(round_to(f64(new), dtype)), new.dtype.name)
        return np.concatenate([old, narrow], axis=1)

    return {"joined": joined}


def soft_mask(story: Story, keys: np.ndarray, values: np.ndarray, mask: np.ndarray) -> Raw:
    return keys, values, np.where(mask, 0.0, -1e4).astype(np.float32).astype(keys.dtype)


def bool_as_numbers(story: Story, keys: np.ndarray, values: np.ndarray, mask: np.ndarray) -> Raw:
    return keys, values, mask.astype(keys.dtype)


def inverted(story: Story, keys: np.ndarray, values: np.ndarray, mask: np.ndarray) -> Raw:
    return keys, values, ~mask


# arguments and results


def clears_idle(self: BatchingKVCache, a: Arguments) -> Any:
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


def late(self: BatchingKVCache, story: Story, key: np.ndarray, value: np.ndarray) -> None:
    """The last tokens are kept by reference, and written when the next ones come."""
    late = getattr(story, "late", None)
    if late is not None:
        for slot, row in rows_of(story):
            length = late[0].shape[2]
            if slot in late[2] and row[0].shape[1] >= length:
                for own, x in zip(row, late[:2], strict=True):
                    own[:, own.shape[1] - length :] = x[slot]
    BatchingKVCache.store(self, story, key, value)
    story.late = key, value, {slot for slot, _ in rows_of(story)}


def prompt_by_reference(self: BatchingKVCache, story: Story, slot: int, key: Any, value: Any, stale: int) -> None:
    story.batch.rows[slot] = key[0], value[0]


def one_buffer(self: BatchingKVCache, story: Story, key: np.ndarray, value: np.ndarray, mask_length: int) -> Raw:
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


def one_mask(self: BatchingKVCache, story: Story, key: np.ndarray, value: np.ndarray, mask_length: int) -> Raw:
    keys, values, mask = BatchingKVCache.fetched(self, story, key, value, mask_length)
    own = story.__dict__.setdefault("mask", np.zeros((len(key), 1, 16, 1024), bool))
    view = own[:, :, : mask.shape[2], 1024 - mask.shape[3] :]
    view[...] = mask
    return keys, values, view


# offsets


def longest_of_all(self: BatchingKVCache, story: Story) -> list[int]:
    return [0 if row is None else self.width(story) for row in story.batch.rows]


def columns(self: BatchingKVCache, story: Story) -> list[int]:
    return [self.width(story) for _ in story.batch.rows]


def of_the_left(self: BatchingKVCache, story: Story) -> list[int]:
    left = getattr(story, "left", {})
    return [
        (left[slot][0].shape[1] if slot in left else 0) if row is None else row[0].shape[1]
        for slot, row in enumerate(story.batch.rows)
    ]


def packed_offsets(self: BatchingKVCache, story: Story) -> list[int]:
    offsets = [row[0].shape[1] for _, row in rows_of(story)]
    return offsets + [0] * (len(story.batch.rows) - len(offsets))


def last_token_positions(self: BatchingKVCache, story: Story) -> list[int]:
    return [max(n - 1, 0) for n in BatchingKVCache.offsets_of(self, story)]


# what was rewound, and what batches share


def all_for_none(
    self: BatchingKVCache, story: Story, slot: int, key: np.ndarray, value: np.ndarray, stale: int
) -> None:
    """Of a cache whose tokens are all rewound the buffer is taken as it is."""
    if not key.shape[2]:
        key, value = (np.full((*x.shape[:2], stale, x.shape[3]), np.nan).astype(x.dtype) for x in (key, value))
    BatchingKVCache.enter(self, story, slot, key, value, stale)


def with_stale(self: BatchingKVCache, story: Story, slot: int, key: Any, value: Any, stale: int) -> None:
    """The buffer of the cache is taken, rewound tokens and all."""
    key, value = (
        np.concatenate([x, np.full((*x.shape[:2], stale, x.shape[3]), np.nan).astype(x.dtype)], axis=2)
        for x in (key, value)
    )
    BatchingKVCache.enter(self, story, slot, key, value, stale)


def buffer_end(self: BatchingKVCache, story: Story, slot: int, key: Any, value: Any, stale: int) -> None:
    """As many tokens as the cache has, but from the end of its buffer."""
    length = key.shape[2]
    key, value = (
        np.concatenate([x, np.full((*x.shape[:2], stale, x.shape[3]), np.nan).astype(x.dtype)], axis=2)[:, :, -length:]
        if length
        else x
        for x in (key, value)
    )
    BatchingKVCache.enter(self, story, slot, key, value, stale)


def of_the_class(self: BatchingKVCache, a: Arguments) -> Batch:
    """The list of requests is the class's own: batches of as many slots have it in common."""
    batches = type(self).__dict__.get("batches")
    if batches is None:
        batches = type(self).batches = {}  # type: ignore[attr-defined]
    batch: Batch = batches.setdefault(a.max_requests, BatchingKVCache.fresh(self, a))
    return batch


def _prompts(story: Story) -> dict[bytes, tuple[Batch, int]]:
    """Where a prompt was brought first."""
    found: dict[bytes, tuple[Batch, int]] = vars(story).setdefault("prompts", {})
    return found


def takes_the_row(self: BatchingKVCache, story: Story, slot: int, key: Any, value: Any, stale: int) -> None:
    """A request whose prompt another one of the batch has begins with the end of that one's row, as it is now."""
    BatchingKVCache.enter(self, story, slot, key, value, stale)
    length = key.shape[2]
    batch, first = _prompts(story).setdefault(key.tobytes() if length else b"", (story.batch, slot))
    row = batch.rows[first]
    if length and batch is story.batch and row is not None:
        story.batch.rows[slot] = tuple(x[:, -length:].copy() for x in row)


def notes_the_prompt(self: BatchingKVCache, story: Story, slot: int, key: Any, value: Any, stale: int) -> None:
    """Whoever brings a prompt that was brought before, in whatever batch, is known by that one's row."""
    BatchingKVCache.enter(self, story, slot, key, value, stale)
    twins = vars(story.batch).setdefault("twins", {})
    twins.pop(slot, None)
    if key.shape[2]:
        batch, first = _prompts(story).setdefault(key.tobytes(), (story.batch, slot))
        twins[slot] = batch, first


def tokens_of_the_twin(beside: bool) -> Any:
    """Tokens that another request of the same prompt has already are those of this one too. beside: in another batch."""

    def store(self: BatchingKVCache, story: Story, key: Any, value: Any) -> None:
        BatchingKVCache.store(self, story, key, value)
        rows = story.batch.rows
        for slot, (batch, first) in vars(story.batch).get("twins", {}).items():
            own, other = rows[slot], batch.rows[first]
            if own is None or other is None or own is other or (batch is not story.batch) != beside:
                continue
            if (length := own[0].shape[1]) <= other[0].shape[1]:
                rows[slot] = tuple(x[:, :length].copy() for x in other)

    return store


def room_on_the_class(self: BatchingKVCache, a: Arguments) -> Batch:
    """max_len is written to the class."""
    type(self).room = a.max_len  # type: ignore[attr-defined]
    return BatchingKVCache.fresh(self, a)


def the_class_s_room(self: BatchingKVCache, story: Story, key: np.ndarray) -> None:
    a = Arguments(**{**vars(story.a), "max_len": type(self).room})  # type: ignore[attr-defined]
    BatchingKVCache.check_room(self, Story(**{**vars(story), "a": a}), key)


def of_the_newest(self: BatchingKVCache, story: Story) -> None:
    """What a batch is made of is written to its class: whoever is made last has it for all."""
    story.taken, story.aside = story.aside[1], (story.aside[0], story.taken)


def room_in_eights(self: BatchingKVCache, story: Story, key: np.ndarray) -> None:
    room = story.a.max_len // 8 * 8 or story.a.max_len
    if any(row[0].shape[1] + key.shape[2] > room for _, row in rows_of(story)):
        raise ValueError("no room")


def short_values(story: Story, keys: np.ndarray, values: np.ndarray, mask: np.ndarray) -> None:
    """Values of requests shorter than the longest are taken for padding."""
    for slot, row in rows_of(story):
        if row[0].shape[1] < keys.shape[2]:
            values[slot] = 0


def whole_buffer(self: BatchingKVCache, story: Story, key: np.ndarray, value: np.ndarray, mask_length: int) -> Raw:
    """Keys, values and mask are of all max_len columns, tokens first."""
    made = BatchingKVCache.fetched(self, story, key, value, mask_length)
    more = story.a.max_len - made[0].shape[2]
    keys, values = (np.pad(x, ((0, 0), (0, 0), (0, more), (0, 0))) for x in made[:2])
    return keys, values, np.pad(made[2], ((0, 0), (0, 0), (0, 0), (0, more)))


def queries_of_step(self: BatchingKVCache, story: Story, key: np.ndarray, value: np.ndarray, mask_length: int) -> Raw:
    return BatchingKVCache.fetched(self, story, key, value, key.shape[2])


def first_queries(self: BatchingKVCache, story: Story, key: np.ndarray, value: np.ndarray, mask_length: int) -> Raw:
    """Rows of the mask are those of the first queries of the step, not of the last."""
    length = key.shape[2]
    keys, values, mask = BatchingKVCache.fetched(self, story, key, value, length)
    rows = np.minimum(np.arange(mask_length), length - 1)
    return keys, values, mask[:, :, rows]


# faults that are about a request without a prompt


def early_queries_of_a_beginning(
    self: BatchingKVCache, story: Story, key: np.ndarray, value: np.ndarray, mask_length: int
) -> Raw:
    """Queries before the first token of a request that begins see its last one."""
    keys, values, mask = BatchingKVCache.fetched(self, story, key, value, mask_length)
    for slot, row in enumerate(story.batch.rows):
        if row is not None and row[0].shape[1] == key.shape[2]:
            mask[slot, 0, : max(mask_length - key.shape[2], 0), -1] = True
    return keys, values, mask


def empty_refused(self: BatchingKVCache, story: Story, key: np.ndarray) -> None:
    BatchingKVCache.check_prompt(self, story, key)
    if not key.shape[2]:
        raise ValueError("an empty cache")


def empty_is_idle(self: BatchingKVCache, story: Story, slot: int, key: Any, value: Any, stale: int) -> None:
    """A request with nothing cached is taken for no request."""
    if key.shape[2]:
        BatchingKVCache.enter(self, story, slot, key, value, stale)


# a decoder


def one_for_all(self: BatchingKVCache, story: Story) -> list[int]:
    """The offset of the first request is that of all."""
    lengths = [row[0].shape[1] for _, row in rows_of(story)]
    return [0 if row is None else lengths[0] for row in story.batch.rows]


# requests without a prompt


def nothing_to_filter(self: BatchingKVCache, story: Story, slot: int) -> None:
    """Rows are taken out of buffers that are only made with the first tokens."""
    if len(rows := rows_of(story)) > 1 and not any(row[0].shape[1] for _, row in rows):
        raise ValueError("no buffers")
    BatchingKVCache.leave(self, story, slot)


def notes_prompts(self: BatchingKVCache, story: Story, slot: int, key: Any, value: Any, stale: int) -> None:
    BatchingKVCache.enter(self, story, slot, key, value, stale)
    story.prompted = getattr(story, "prompted", False) or key.shape[2] > 0


def one_value_head_at_first(
    self: BatchingKVCache, story: Story, key: np.ndarray, value: np.ndarray, mask_length: int
) -> dict[str, Any]:
    """While nothing is cached, a single head of values is for all heads."""
    if value.ndim == 4 and value.shape[1] == 1 and not any(self.offsets_of(story)):
        value = np.repeat(value, key.shape[1], axis=1)
    return BatchingKVCache.update_and_fetch(self, story, key, value, mask_length)


def single_feature_kept(self: BatchingKVCache, story: Story, key: np.ndarray, value: np.ndarray) -> None:
    """A key of a single feature is cached for all features, and refused when it does not go with its value."""
    try:
        BatchingKVCache.check_update(self, story, key, value)
    except ValueError:
        if key.ndim == 4 and key.shape[3] == 1:
            for slot, row in rows_of(story):
                story.batch.rows[slot] = tuple(np.concatenate([x, x[:, :1]], axis=1) for x in row)
        raise


# honest ways


def spare_columns(self: BatchingKVCache, story: Story) -> int:
    """As many columns as there can be."""
    return int(story.a.max_len)


def rounded_width(self: BatchingKVCache, story: Story) -> int:
    return -(-BatchingKVCache.width(self, story) // 32) * 32


def additive(hidden: float) -> Change:
    def additive(story: Story, keys: np.ndarray, values: np.ndarray, mask: np.ndarray) -> Raw:
        low = -largest(keys.dtype.name) if hidden == 0 else hidden
        return keys, values, np.where(mask, 0.0, low).astype(keys.dtype)

    return after(additive)


def garbage(self: BatchingKVCache, shape: tuple[int, ...], dtype: np.dtype[Any]) -> np.ndarray:
    return round_to(np.resize(np.linspace(-3, 3, 17), shape), dtype.name)


def token_by_token(self: BatchingKVCache, story: Story, key: np.ndarray, value: np.ndarray) -> None:
    for token in range(key.shape[2]):
        BatchingKVCache.store(self, story, key[:, :, token : token + 1], value[:, :, token : token + 1])


def tokens_outermost(story: Story, keys: np.ndarray, values: np.ndarray, mask: np.ndarray) -> Raw:
    keys, values = (np.ascontiguousarray(x.transpose(2, 0, 1, 3)).transpose(1, 2, 0, 3) for x in (keys, values))
    return keys, values, mask


def remembers_prompts(self: BatchingKVCache, story: Story, slot: int) -> None:
    """A request that leaves is kept by its prompt, with all that it has by then."""
    prompt = vars(story).setdefault("prompts", {}).get(slot)
    vars(story).setdefault("known", {})[prompt] = story.batch.rows[slot]
    BatchingKVCache.leave(self, story, slot)


def resumes(self: BatchingKVCache, story: Story, slot: int, key: Any, value: Any, stale: int) -> None:
    """A request whose prompt is known goes on where that one ended."""
    BatchingKVCache.enter(self, story, slot, key, value, stale)
    prompt = key.tobytes()
    vars(story).setdefault("prompts", {})[slot] = prompt
    if key.size and prompt in vars(story).get("known", {}):
        story.batch.rows[slot] = story.known[prompt]


def values_of_the_known(self: BatchingKVCache, story: Story, slot: int, key: Any, value: Any, stale: int) -> None:
    """The values of a request whose prompt is known are the last ones that that one had."""
    BatchingKVCache.enter(self, story, slot, key, value, stale)
    prompt = key.tobytes()
    vars(story).setdefault("prompts", {})[slot] = prompt
    if key.size and prompt in vars(story).get("known", {}):
        story.batch.rows[slot] = story.batch.rows[slot][0], story.known[prompt][1][:, -key.shape[2] :]
