"""The steps that faults and honest variants of pools have in the place of the oracle's: see
`spec/faults/page_pools.py` and `spec/faults/paged_kv.py`."""

from __future__ import annotations

from typing import Any

import numpy as np

from inferspec.spec.contract import Arguments
from inferspec.spec.paged_kv import PagePool, Pool, Story


def from_one(self: PagePool, a: Arguments) -> Pool:
    pool = PagePool.fresh_pool(self, a)
    pool.free = [page + 1 for page in pool.free]
    return pool


def listed_twice(self: PagePool, pool: Pool, page: int) -> None:
    PagePool.give_back(self, pool, page)
    pool.free.append(page)


def unique_count(self: PagePool, pool: Pool) -> int:
    return len(set(pool.free))


def peeks(self: PagePool, pool: Pool) -> int:
    """The page stays on the list when another one was freed since: only then it is handed out twice."""
    page = PagePool.take(self, pool)
    if getattr(pool, "freed", False):
        pool.free.append(page)
        pool.freed = False
    return page


def marks_freed(self: PagePool, pool: Pool, page: int) -> None:
    PagePool.give_back(self, pool, page)
    pool.freed = True


def takes_counted(self: PagePool, pool: Pool) -> int:
    page = PagePool.take(self, pool)
    pool.taken = getattr(pool, "taken", 0) + 1
    return page


def never_returned(self: PagePool, pool: Pool) -> int:
    return int(pool.size - getattr(pool, "taken", 0))


def capacity(self: PagePool, pool: Pool) -> int:
    return int(pool.size)


def without_zero(self: PagePool, a: Arguments) -> Pool:
    pool = PagePool.fresh_pool(self, a)
    pool.free = [page for page in pool.free if page]
    return pool


def not_recycled(self: PagePool, pool: Pool, page: int) -> None:
    self.check_free(pool, page)
    pool.used.discard(page)
    pool.gone = [*getattr(pool, "gone", []), page]


def counts_gone(self: PagePool, pool: Pool) -> int:
    return len(pool.free) + len(getattr(pool, "gone", []))


def lost_when_empty(self: PagePool, pool: Pool, page: int) -> None:
    self.check_free(pool, page)
    pool.used.discard(page)
    if pool.free:
        pool.free.append(page)


def worn_out(self: PagePool, pool: Pool, page: int) -> None:
    """How often a page was used is counted in a byte, and where that is 0 again the page is not listed."""
    uses: dict[int, int] = pool.__dict__.setdefault("uses", {})
    self.check_free(pool, page)
    pool.used.discard(page)
    uses[page] = (uses.get(page, 0) + 1) % 256
    if uses[page]:
        pool.free.append(page)


def minus_one(self: PagePool, pool: Pool) -> int:
    return PagePool.take(self, pool) if pool.free else -1


def last_again(self: PagePool, pool: Pool) -> int:
    if pool.free:
        pool.last = PagePool.take(self, pool)
    return int(pool.last)


def counts_first(self: PagePool, pool: Pool) -> int:
    if not pool.free:
        pool.drift = getattr(pool, "drift", 0) + 1
    return PagePool.take(self, pool)


def drifted(self: PagePool, pool: Pool) -> int:
    return len(pool.free) - getattr(pool, "drift", 0)


def dead_once_empty(self: PagePool, pool: Pool) -> int:
    pool.dead = getattr(pool, "dead", False) or not pool.free
    if pool.dead:
        raise ValueError("exhausted")
    return PagePool.take(self, pool)


def in_range(self: PagePool, pool: Pool, page: int) -> None:
    if not 0 <= page < pool.size:
        raise ValueError("no such page")


def not_the_last(self: PagePool, pool: Pool, page: int) -> None:
    in_range(self, pool, page)
    if pool.free and pool.free[-1] == page:
        raise ValueError("freed just now")


def not_freed_before(self: PagePool, pool: Pool, page: int) -> None:
    in_range(self, pool, page)
    if page in getattr(pool, "returned", set()):
        raise ValueError("freed before")


def remembers_returned(self: PagePool, pool: Pool, page: int) -> None:
    PagePool.give_back(self, pool, page)
    pool.returned = {*getattr(pool, "returned", set()), page}


def forgets_returned(self: PagePool, pool: Pool) -> int:
    page = PagePool.take(self, pool)
    pool.returned = getattr(pool, "returned", set()) - {page}
    return page


def wraps(self: PagePool, pool: Pool, page: int) -> None:
    PagePool.give_back(self, pool, page + pool.size if -pool.size <= page < 0 else page)


def past_the_end(self: PagePool, pool: Pool, page: int) -> None:
    if page < pool.size:
        PagePool.check_free(self, pool, page)


def silent(self: PagePool, pool: Pool, page: int) -> None:
    if page in pool.used:
        PagePool.give_back(self, pool, page)


def silent_in_range(self: PagePool, pool: Pool, page: int) -> None:
    in_range(self, pool, page)
    silent(self, pool, page)


def appends_first(self: PagePool, pool: Pool, page: int) -> None:
    pool.free.append(page)
    self.check_free(pool, page)
    pool.used.discard(page)


def drops_from_list(self: PagePool, pool: Pool, page: int) -> None:
    if page not in pool.used and page in pool.free:
        pool.free.remove(page)
    PagePool.give_back(self, pool, page)


def tokens_before_heads(self: PagePool, story: Story) -> dict[str, Any]:
    pages, heads, size, dim = self.shape(story.a)
    return {
        **PagePool.storage(self, story),
        "key_pages": (pages, size, heads, dim),
        "value_pages": (pages, size, heads, dim),
    }


def one_axis_more(self: PagePool, story: Story) -> dict[str, Any]:
    seen = PagePool.storage(self, story)
    return {**seen, **{name: (1, *seen[name]) for name in ("key_pages", "value_pages")}}


def always_float32(self: PagePool, a: Arguments) -> Pool:
    return PagePool.fresh_pool(self, Arguments(**{**vars(a), "dtype": "float32"}))


def of_the_class(self: PagePool, a: Arguments) -> Pool:
    cls, pool = type(self), PagePool.fresh_pool(self, a)
    cls.shared = getattr(cls, "shared", pool.free)  # type: ignore[attr-defined]
    pool.free = cls.shared  # type: ignore[attr-defined]
    return pool


def of_the_newest(self: PagePool, a: Arguments) -> Pool:
    """The free list is the class's own, and full again when a pool is made."""
    pages, pool = PagePool.fresh_pool(self, a).free, of_the_class(self, a)
    pool.free[:] = pages
    return pool


# many, wide and long


def _bits(self: PagePool, pool: Pool, page: int) -> int:
    return int(getattr(pool, "bits", 0)) >> page % 64 & 1


def sets_bit(self: PagePool, pool: Pool) -> int:
    page = PagePool.take(self, pool)
    pool.bits = getattr(pool, "bits", 0) | 1 << page % 64
    return page


def clears_bit(self: PagePool, pool: Pool, page: int) -> None:
    in_range(self, pool, page)
    if not _bits(self, pool, page):
        raise ValueError("not in use")
    pool.bits &= ~(1 << page % 64)
    pool.used.discard(page)
    pool.free.append(page)


def first_256_checked(self: PagePool, pool: Pool, page: int) -> None:
    in_range(self, pool, page)
    if page < 256:
        PagePool.check_free(self, pool, page)


# honest ways


def queue(self: PagePool, pool: Pool) -> int:
    """The page that has been free for longest."""
    pool.free.reverse()
    try:
        return PagePool.take(self, pool)
    finally:
        pool.free.reverse()


def lowest(self: PagePool, pool: Pool) -> int:
    if vars(pool).get("in_order") != len(pool.free):  # none came back since
        pool.free.sort(reverse=True)
    page = PagePool.take(self, pool)
    pool.in_order = len(pool.free)
    return page


def garbage(self: PagePool, a: Arguments) -> Pool:
    pool = PagePool.fresh_pool(self, a)
    for x in (pool.keys, pool.values):
        x[...] = np.nan
    return pool


def dims_in_tiles(self: PagePool, a: Arguments) -> tuple[int, ...]:
    """Head dims past 64 are rounded up to multiples of 32."""
    *sizes, dim = PagePool.shape(self, a)
    return *sizes, -(-dim // 32) * 32 if dim > 64 else dim


def count_in_16_bits(self: PagePool, pool: Pool) -> int:
    """With a sign."""
    return (len(pool.free) + 2**15) % 2**16 - 2**15
