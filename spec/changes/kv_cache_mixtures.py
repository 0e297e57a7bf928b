"""What goes wrong in a cache where two things come together: a size and a rewind, a view and growth, many appends and a state:
see `spec/faults/kv_cache_mixtures.py`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from inferspec.spec.changes.kv_cache import (
    STEP,
    features_past_64,
    heads_past_8,
    hold,
    in_workspace,
    promoting,
    rows_past_whole_tiles,
)
from inferspec.spec.contract import Arguments, Change
from inferspec.spec.kv_cache import Cache, KVCache, Story
from inferspec.spec.mistakes import honest, misread

Holds = Callable[[KVCache, Cache, np.ndarray], bool]
"""Whether a cache is on some path when it is given a key."""

Lost = Callable[[np.ndarray, np.ndarray], None]
"""Sets some of keys and values to 0."""

LOST: Mapping[str, tuple[str, Lost]] = {
    "rows-past-tiles": ("of more than 32 rows those past whole tiles of 32", rows_past_whole_tiles),
    "features-past-64": ("features of a head past 64", features_past_64),
    "heads-past-8": ("heads past the 8th", heads_past_8),
}

PROMPT = 32
"""Tokens from which a chunk is taken for a prompt."""


# views on a path


def rewound(self: KVCache, cache: Cache, key: np.ndarray) -> bool:
    return hasattr(cache, "rewound")


def restored(self: KVCache, cache: Cache, key: np.ndarray) -> bool:
    return hasattr(cache, "taken_over")


def of_wide_heads(self: KVCache, cache: Cache, key: np.ndarray) -> bool:
    return key.shape[3] >= 64


def grows(self: KVCache, cache: Cache, key: np.ndarray) -> bool:
    """Whether a chunk that is not the first goes past the end of a buffer."""
    before = self.length(cache)
    return before > 0 and before // STEP != (before + key.shape[2]) // STEP


def past_half_a_buffer(self: KVCache, cache: Cache, key: np.ndarray) -> bool:
    return self.length(cache) > STEP // 2


def marks_rewound(self: KVCache, cache: Cache, n: int) -> None:
    KVCache.drop(self, cache, n)
    cache.rewound = True


def marks_restored(self: KVCache, cache: Cache, state: Any) -> None:
    KVCache.become(self, cache, state)
    cache.taken_over = True


def misreads(part: str, holds: Holds) -> Change:
    """On one path the key, or the value, is read as if it were contiguous."""

    def store(self: KVCache, cache: Cache, key: np.ndarray, value: np.ndarray) -> None:
        wrong = holds(self, cache, key)
        own = (misread(x) if wrong and name == part else np.array(x) for name, x in (("key", key), ("value", value)))
        KVCache.store(self, cache, *own)

    return {"taken": lambda self, x: x, "store": store, "drop": marks_rewound, "become": marks_restored}


# what is copied on a path


def _copied(cache: Cache, lost: Lost) -> None:
    """Keys and values are copied, but for some of them."""
    if cache.keys is not None:
        copies = cache.keys.copy(), cache.values.copy()
        lost(*copies)
        hold(cache, copies)


def growing_loses(lost: Lost) -> Change:
    """A buffer that grows is copied, but for some of it."""

    def store(self: KVCache, cache: Cache, key: np.ndarray, value: np.ndarray) -> None:
        if grows(self, cache, key):
            _copied(cache, lost)
        KVCache.store(self, cache, key, value)

    return {"store": store}


def rewinding_loses(lost: Lost) -> Change:
    """What a rewind leaves is copied, but for some of it."""

    def drop(self: KVCache, cache: Cache, n: int) -> None:
        KVCache.drop(self, cache, n)
        if n:
            _copied(cache, lost)

    return {"drop": drop}


def state_loses(lost: Lost) -> Change:
    """A state is a copy, but for some of it."""

    def state_of(self: KVCache, cache: Cache) -> Any:
        own = Cache(keys=cache.keys, values=cache.values)
        _copied(own, lost)
        return own.keys, own.values

    return {"state_of": state_of}


def restoring_loses(lost: Lost) -> Change:
    """A cache in use that restores a state takes it over, but for some of it."""

    def become(self: KVCache, cache: Cache, state: Any) -> None:
        in_use = self.length(cache) > 0
        KVCache.become(self, cache, state)
        if in_use:
            _copied(cache, lost)

    return {"become": become}


def _not_just_rewound(self: KVCache, cache: Cache, key: np.ndarray, value: np.ndarray) -> None:
    KVCache.store(self, cache, key, value)
    cache.just_rewound = False


def _just_rewound(self: KVCache, cache: Cache, n: int) -> None:
    KVCache.drop(self, cache, n)
    cache.just_rewound = n > 0


def _one_too_many(self: KVCache, cache: Cache) -> Any:
    if not getattr(cache, "just_rewound", False) or self.length(cache) <= STEP:
        return KVCache.state_of(self, cache)
    return tuple(np.concatenate([x, x[:, :, -1:]], axis=2) for x in (cache.keys, cache.values))


def _reads_behind_a_rewind(self: KVCache, cache: Cache) -> Any:
    cache.moved = getattr(cache, "just_rewound", False) and self.length(cache) > STEP
    return KVCache.state_of(self, cache)


def _one_further(self: KVCache, cache: Cache, key: np.ndarray, value: np.ndarray) -> None:
    if vars(cache).get("moved", False):
        hold(cache, [np.concatenate([x, x[:, :, -1:] * 0], axis=2) for x in (cache.keys, cache.values)])
    cache.moved = False
    _not_just_rewound(self, cache, key, value)


MOVED_BY_A_STATE: Change = {"store": _one_further, "drop": _just_rewound, "state_of": _reads_behind_a_rewind}
"""What is appended to a cache of more than a buffer that was rewound and then saved lies a token too far on."""


STATE_OF_ONE_TOO_MANY: Change = {"store": _not_just_rewound, "drop": _just_rewound, "state_of": _one_too_many}
"""The state of a cache of more than a buffer that was just rewound has a token more."""


# many appends


def _queued(self: KVCache, cache: Cache, key: np.ndarray, value: np.ndarray) -> None:
    """From the ninth append on chunks wait in a queue to be written."""
    KVCache.store(self, cache, key, value)
    cache.appends = getattr(cache, "appends", 0) + 1
    if cache.appends > 8:
        cache.queued = getattr(cache, "queued", 0) + key.shape[2]


def _drops_of_queue(self: KVCache, cache: Cache, n: int) -> None:
    KVCache.drop(self, cache, n)
    cache.queued = max(getattr(cache, "queued", 0) - n, 0)


def _without_queue(self: KVCache, cache: Cache) -> Any:
    queued = getattr(cache, "queued", 0)
    return tuple(x if x is None else x[:, :, : x.shape[2] - queued] for x in (cache.keys, cache.values))


STATE_WITHOUT_QUEUE: Change = {"store": _queued, "drop": _drops_of_queue, "state_of": _without_queue}
"""A state has none of the chunks that wait."""


def _journalled(self: KVCache, cache: Cache, key: np.ndarray, value: np.ndarray) -> None:
    KVCache.store(self, cache, key, value)
    cache.journal = [*getattr(cache, "journal", []), key.shape[2]]


def _back_by_journal(self: KVCache, cache: Cache, n: int) -> None:
    journal = getattr(cache, "journal", [])
    back = n if len(journal) <= 16 else min(n, sum(journal[-16:]))
    KVCache.drop(self, cache, back)
    while journal and back >= journal[-1]:
        back -= journal.pop()
    if journal:
        journal[-1] -= back


SIXTEEN_APPENDS_BACK: Change = {"store": _journalled, "drop": _back_by_journal}
"""A rewind undoes sixteen appends at most: those of a journal."""


def _restored_apart(self: KVCache, cache: Cache, state: Any) -> None:
    """What is restored is kept apart from what is appended later."""
    KVCache.become(self, cache, state)
    cache.base = self.length(cache)


def _drops_of_own_buffer(self: KVCache, cache: Cache, n: int) -> None:
    own = self.length(cache) - getattr(cache, "base", 0)
    KVCache.drop(self, cache, min(n, own) if own > STEP else n)
    cache.base = min(getattr(cache, "base", 0), self.length(cache))


RESTORED_APART: Change = {"become": _restored_apart, "drop": _drops_of_own_buffer}
"""A rewind of a buffer that has grown stays within it: nothing of what was restored is dropped."""


# empty chunks, and those that come after a refused one


def _last_for_empty(self: KVCache, story: Story, key: np.ndarray, value: np.ndarray) -> dict[str, Any]:
    """A chunk of no tokens returns what was returned last."""
    last = getattr(story.cache, "returned", None)
    if key.shape[2] or last is None:
        seen = KVCache.update_and_fetch(self, story, key, value)
        story.cache.returned = story.seen[story.number]
        return seen
    self.check_append(story.cache, key, value)
    story.given[story.number], story.seen[story.number] = (key, value), last
    return dict(zip(("keys", "values"), last, strict=True))


def _forgets_returned(self: KVCache, cache: Cache, state: Any) -> None:
    KVCache.become(self, cache, state)
    cache.returned = None


LAST_FOR_EMPTY: Change = {"update_and_fetch": _last_for_empty, "become": _forgets_returned}


def _marks_position(self: KVCache, story: Story, key: np.ndarray, value: np.ndarray) -> dict[str, Any]:
    try:
        return KVCache.update_and_fetch(self, story, key, value)
    except ValueError:
        story.cache.moved_on = True
        raise


def _past_the_refused(self: KVCache, cache: Cache, key: np.ndarray, value: np.ndarray) -> None:
    """A token alone is written where the position is, which moved on with a chunk that was refused, and is not read there."""
    if getattr(cache, "moved_on", False) and key.shape[2] == 1:
        key, value = (np.zeros_like(x) for x in (key, value))
    cache.moved_on = False
    KVCache.store(self, cache, key, value)


MOVED_ON_WHEN_REFUSED: Change = {"update_and_fetch": _marks_position, "store": _past_the_refused}


# arguments and results of large sizes


def _prompt_by_reference(self: KVCache, cache: Cache, key: np.ndarray, value: np.ndarray) -> None:
    if cache.keys is None and key.shape[2] >= PROMPT:
        hold(cache, (key, value))
    else:
        KVCache.store(self, cache, key, value)


PROMPT_BY_REFERENCE: Change = {"store": _prompt_by_reference}
"""A first chunk that is long enough for a buffer becomes the buffer."""


def _whole_steps_by_reference(self: KVCache, cache: Cache, key: np.ndarray, value: np.ndarray) -> None:
    if cache.keys is None and key.shape[2] and not key.shape[2] % STEP:
        hold(cache, (key, value))
    else:
        KVCache.store(self, cache, key, value)


WHOLE_STEPS_BY_REFERENCE: Change = {"store": _whole_steps_by_reference}
"""A first chunk that is as long as the buffer would be becomes the buffer."""


def _clears_prompts(self: KVCache, a: Arguments) -> Any:
    result = honest(self, a)
    for _, given in a.steps:
        if "key" in given and given["key"].shape[-2] >= PROMPT:
            given["key"][...] = 0
    return result


CLEARS_PROMPTS: Change = {"respond": _clears_prompts}
"""The memory of a long chunk is taken over, and is used for something else."""

PROMOTES_WIDE_HEADS = promoting(lambda number, x, a: x.shape[3] >= 64)

PROMOTES_MANY_ROWS = promoting(lambda number, x, a: x.shape[0] > 32)


def _long_in_workspace(self: KVCache, cache: Cache) -> Any:
    return in_workspace(self, cache) if self.length(cache) >= PROMPT else KVCache.fetched(self, cache)


LONG_IN_WORKSPACE: Change = {"fetched": _long_in_workspace}
"""Results of so many tokens lie in a workspace that all caches have in common."""


def _hands_on(self: KVCache, story: Story, key: np.ndarray, value: np.ndarray) -> dict[str, Any]:
    cache, begins = story.cache, story.cache.keys is None
    outgrown = grows(self, cache, key)
    seen = KVCache.update_and_fetch(self, story, key, value)
    if outgrown:
        story.outgrown, cache.returned = getattr(cache, "returned", []), []
    cache.returned = [*getattr(cache, "returned", []), story.seen[story.number]]
    for result in vars(story).pop("outgrown", []) if begins else []:
        for x, new in zip(result, (key, value), strict=True):
            x[...] = np.resize(new[:, :, : x.shape[2]], x.shape)
    return seen


OUTGROWN_HANDED_ON: Change = {"update_and_fetch": _hands_on}
"""A buffer that was outgrown is the next cache's, though what was returned of it is still in use."""
