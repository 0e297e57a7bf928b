"""What goes wrong in a pool where two things come together: large pages and a rewind, many caches and a release, large heads and views: see
`spec/faults/paged_kv_mixtures.py`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from inferspec.spec.changes.paged_kv import blended, numbered, one_slot_more, writes_late
from inferspec.spec.changes.paged_kv_rewinds import to_page_start
from inferspec.spec.contract import Arguments, Change
from inferspec.spec.mistakes import honest, misread
from inferspec.spec.paged_kv import BlockTable, Cache, PagedKVCache, Story

SLOTS = 16
"""Slots of a page that a kernel takes at once."""


def large(story: Story) -> bool:
    return bool(story.a.page_size > SLOTS)


# views on a path


Where = Callable[[Story, Cache, np.ndarray], bool]
"""Whether a cache is on some path when it is given a key."""


def _marks_rewound(self: PagedKVCache, story: Story, cache: Cache, n: int) -> None:
    PagedKVCache.drop(self, story, cache, n)
    cache.rewound = True


def misreads(part: str, where: Where) -> Change:
    """On one path the key, or the value, is read as if it were contiguous."""

    def write(
        self: PagedKVCache, story: Story, cache: Cache, positions: np.ndarray, key: np.ndarray, value: np.ndarray
    ) -> None:
        wrong = where(story, cache, key)
        own = (misread(x) if wrong and name == part else np.array(x) for name, x in (("key", key), ("value", value)))
        PagedKVCache.write(self, story, cache, positions, *own)

    return {"argument": lambda self, x: x, "write": write, "drop": _marks_rewound}


def once_rewound(story: Story, cache: Cache, key: np.ndarray) -> bool:
    return hasattr(cache, "rewound")


def of_wide_heads(story: Story, cache: Cache, key: np.ndarray) -> bool:
    return key.shape[3] >= 64


def of_large_pages(story: Story, cache: Cache, key: np.ndarray) -> bool:
    return large(story)


def beside_others(story: Story, cache: Cache, key: np.ndarray) -> bool:
    return len(story.caches) > 1


# large pages


def where_large(step: str, wrong: Callable[..., Any]) -> Change:
    """In pages of more slots than a kernel takes at once a step is another."""

    def only(self: PagedKVCache, story: Story, *given: Any, **named: Any) -> Any:
        return (wrong if large(story) else getattr(PagedKVCache, step))(self, story, *given, **named)

    return {step: only}


def _needed_of_16(self: PagedKVCache, story: Story, length: int) -> int:
    return int(-(-length // SLOTS))


PAGES_OF_16 = where_large("needed", _needed_of_16)
"""Pages are counted as if they had 16 slots."""


def _lens_of_16(self: PagedKVCache, story: Story, cache: Cache) -> list[int]:
    return [min(one, SLOTS) for one in PagedKVCache.lens_of(self, story, cache)]


LENS_OF_16 = where_large("lens_of", _lens_of_16)


def _first_16(self: PagedKVCache, story: Story, cache: int) -> dict[str, Any]:
    seen = PagedKVCache.read(self, story, cache)
    for x in seen.values():
        x[:, :, np.arange(x.shape[2]) % story.a.page_size >= SLOTS] = 0
    return seen


FIRST_16_IN_THE_POOL = where_large("read", _first_16)
"""What is past the 16th slot of a page is in the pool somewhere else."""


def _room_of_16(self: PagedKVCache, story: Story, cache: Cache, length: int) -> None:
    needed = _needed_of_16(self, story, cache.length + length) - _needed_of_16(self, story, cache.length)
    if needed > self.count(story.pool):
        raise ValueError("too few pages")


ROOM_OF_16 = where_large("check_room", _room_of_16)

BLENDED_IN_LARGE_PAGES = where_large("write", blended)

SLOT_MORE_IN_LARGE_PAGES = where_large("write", one_slot_more)

TO_THE_START_OF_LARGE_PAGES = where_large("drop", to_page_start)


# many caches


def _drops_nothing_of_later(self: PagedKVCache, story: Story, cache: Cache, n: int) -> None:
    if cache.number > 8:
        cache.length -= n
    else:
        PagedKVCache.drop(self, story, cache, n)


PAGES_OF_LATER_KEPT: Change = {"fresh_cache": numbered, "drop": _drops_nothing_of_later}
"""Rewinds of more than eight caches give no page back."""


def _loses_one_of_later(self: PagedKVCache, story: Story, cache: Cache) -> None:
    if cache.number > 8 and cache.pages:
        cache.pages.pop()
    PagedKVCache.let_go(self, story, cache)


PAGE_OF_LATER_LOST: Change = {"fresh_cache": numbered, "let_go": _loses_one_of_later}
"""Of more than eight caches a release forgets the last page."""


def table_kept(holds: Callable[[np.ndarray], bool]) -> Change:
    """On one path a table is handed out again while it has as many rows and pages."""

    def padded(self: BlockTable, story: Story, rows: Sequence[Cache]) -> np.ndarray:
        table = BlockTable.padded(self, story, rows)
        kept: dict[tuple[int, ...], np.ndarray] = vars(story).setdefault("kept_tables", {})
        return kept.setdefault(table.shape, table) if holds(table) else table

    return {"padded": padded}


# dtypes and arguments


def in_float32(holds: Callable[[Arguments, int], bool]) -> Change:
    """On one path, told by the arguments and the number of the step, keys and values come back in float32."""

    def respond(self: PagedKVCache, a: Arguments) -> Any:
        result = honest(self, a)
        return {
            part: x.astype(np.float32) if x.ndim == 4 and holds(a, int(part.split()[0])) else x
            for part, x in result.items()
        }

    return {"respond": respond}


def after_a_rewind(a: Arguments, number: int) -> bool:
    return any(method == "rewind" for method, _ in a.steps[:number])


def _clears_wide(self: PagedKVCache, a: Arguments) -> Any:
    result = honest(self, a)
    for _, given in a.steps:
        if "key" in given and given["key"].shape[-1] >= 64:
            given["key"][...] = 0
    return result


CLEARS_WIDE_HEADS: Change = {"respond": _clears_wide}


def _late_in_large_pages(
    self: PagedKVCache, story: Story, cache: Cache, positions: np.ndarray, key: np.ndarray, value: np.ndarray
) -> None:
    PagedKVCache.write(self, story, cache, positions, key, value)
    vars(cache).pop("late", None)
    if large(story):
        cache.late = positions, key, value


LATE_IN_LARGE_PAGES: Change = {"write": _late_in_large_pages, "gathered": writes_late}
"""What is appended to large pages is written when it is asked for."""


def _remembers_rewind(self: PagedKVCache, story: Story, cache: Cache, n: int) -> None:
    PagedKVCache.drop(self, story, cache, n)
    cache.dropped = n


def _back_before_the_rewind(self: PagedKVCache, story: Story, cache: Cache, length: int) -> None:
    dropped = vars(cache).pop("dropped", 0)
    try:
        PagedKVCache.check_room(self, story, cache, length)
    except ValueError:
        cache.length = min(cache.length + dropped, len(cache.pages) * story.a.page_size)
        raise


REFUSAL_UNDOES_REWIND: Change = {"drop": _remembers_rewind, "check_room": _back_before_the_rewind}
"""What is remembered to undo a refused chunk is from before a rewind."""
