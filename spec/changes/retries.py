"""Refusals that come in a row, of one kind or of two: the first leaves all as it was, and the second does not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from inferspec.spec.batching import BatchingKVCache
from inferspec.spec.batching import Story as BatchStory
from inferspec.spec.block_manager import BlockManager, Manager, Table
from inferspec.spec.changes.batching import rows_of
from inferspec.spec.kv_cache import Cache
from inferspec.spec.paged_kv import Cache as PagedCache
from inferspec.spec.paged_kv import Pool
from inferspec.spec.paged_kv import Story as PagedStory
from inferspec.spec.scheduler import Scheduler, Serving

Check = Callable[..., Any]


def harmful(check: Check, harm: Check) -> Check:
    """What refuses as `check` does, with some harm the second time in a row. Both take the operation, and first what is asked:
    there it is counted."""

    def checked(self: Any, asked: Any, *given: Any) -> Any:
        try:
            result = check(self, asked, *given)
        except ValueError:
            asked.refusals = getattr(asked, "refusals", 0) + 1
            if asked.refusals == 2:
                harm(self, asked, *given)
            raise
        asked.refusals = 0
        return result

    return checked


def empties(self: Any, cache: Cache, *given: Any) -> None:
    cache.keys = cache.values = None


def loses_the_last(self: Any, cache: Cache, *given: Any) -> None:
    if self.length(cache):
        self.drop(cache, 1)


def loses_a_page(self: Any, story: PagedStory, *given: Any) -> None:
    if story.pool.free:
        story.pool.free.pop()


def counts_as_empty(self: Any, cache: PagedCache, *given: Any) -> None:
    cache.length = 0


def gives_one_back(self: Any, pool: Pool) -> None:
    """A page in use is handed out to the next."""
    if pool.used:
        pool.free.append(pool.used.pop())


def shortens_all(self: Any, story: BatchStory, *given: Any) -> None:
    for slot, row in rows_of(story):
        story.batch.rows[slot] = tuple(np.array(x[:, :-1]) for x in row)


def takes_a_slot(self: Any, story: BatchStory, key: np.ndarray) -> None:
    """An idle slot has a request without tokens."""
    rows = story.batch.rows
    if None in rows:
        rows[rows.index(None)] = key[0, :, :0], key[0, :, :0]


def ends_who_has_it(self: Any, story: BatchStory, slot: int) -> None:
    story.batch.rows[slot] = None


def forgets_one(self: BlockManager, m: Manager, *given: Any) -> None:
    """What was free the longest is cached no more."""
    if m.free:
        self.forget(m, m.free[0])


def ends_another(self: Scheduler, s: Serving, *given: Any) -> None:
    """Who came last is over."""
    if s.entries:
        self.close(s, s.entries[-1])


def computes_anew(self: Scheduler, s: Serving, *given: Any) -> None:
    """The step is void."""
    s.step = None


def makes_up_for_marks(self: BlockManager, m: Manager, table: Table, n: int) -> None:
    """A mark of more tokens than there are is made with the next one."""
    wanted = max(n, getattr(table, "wanted", 0))
    table.wanted = min(wanted, len(table.tokens))
    BlockManager.mark_computed(self, m, table, n if n < 0 or n > len(table.tokens) else table.wanted)


def marked(check: Check) -> Check:
    """What refuses as `check` does, and leaves a mark at what is asked."""

    def checked(self: Any, asked: Any, *given: Any) -> Any:
        try:
            return check(self, asked, *given)
        except ValueError:
            asked.marked = True
            raise

    return checked


def harmful_once_marked(check: Check, harm: Check) -> Check:
    """What refuses as `check` does, with some harm where something else was refused before it."""

    def checked(self: Any, asked: Any, *given: Any) -> Any:
        try:
            return check(self, asked, *given)
        except ValueError:
            if getattr(asked, "marked", False):
                harm(self, asked, *given)
            raise

    return checked


def lost_once_marked(self: Any, cache: Cache) -> Any:
    """A state that is taken once something was refused costs the last token, unless there is no other."""
    state = cache.keys, cache.values
    if getattr(cache, "marked", False) and self.length(cache) > 1:
        self.drop(cache, 1)
    return state


def asks_for_a_page(self: Any, story: PagedStory, cache: PagedCache, length: int) -> None:
    """A cache for which there was no room takes nothing until a page is free."""
    needed = self.needed(story, cache.length + length) - len(cache.pages)
    if needed > len(story.pool.free) or (length and not story.pool.free and hasattr(cache, "waits")):
        cache.waits = True
        raise ValueError("no page is free")


def joins_late(self: BatchingKVCache, story: BatchStory, slot: int, key: Any, value: Any, stale: int) -> None:
    BatchingKVCache.enter(self, story, slot, key, value, stale)
    if getattr(story, "marked", False):
        story.batch.rows[slot] = tuple(x[:, :-1] for x in story.batch.rows[slot])
