"""What a rewind or a release gives back, and what is left after it: see `spec/faults/paged_kv_rewinds.py`."""

from __future__ import annotations

from typing import Any

import numpy as np

from inferspec.spec.paged_kv import Cache, PagedKVCache, Story, fetched

# rewinds


def in_whole_pages(self: PagedKVCache, story: Story, cache: Cache, n: int) -> None:
    PagedKVCache.drop(self, story, cache, n // story.a.page_size * story.a.page_size)


def first_pages(self: PagedKVCache, story: Story, cache: Cache, n: int) -> None:
    cache.length -= n
    while len(cache.pages) > self.needed(story, cache.length):
        self.give_back(story.pool, cache.pages.pop(0))


def to_page_start(self: PagedKVCache, story: Story, cache: Cache, n: int) -> None:
    """Tokens of the last page that are not rewound are forgotten where a page was given back."""
    before = len(cache.pages)
    PagedKVCache.drop(self, story, cache, n)
    if len(cache.pages) < before:
        PagedKVCache.drop(self, story, cache, cache.length % story.a.page_size)


def pages_kept(self: PagedKVCache, story: Story, cache: Cache, n: int) -> None:
    cache.length -= n


def one_page(self: PagedKVCache, story: Story, cache: Cache, n: int) -> None:
    cache.length -= n
    if len(cache.pages) > self.needed(story, cache.length):
        self.give_back(story.pool, cache.pages.pop())


def whole_pages_of_n(self: PagedKVCache, story: Story, cache: Cache, n: int) -> None:
    """As many pages as n tokens fill: one too few where the rewind crosses into another page."""
    cache.length -= n
    for _ in range(n // story.a.page_size):
        self.give_back(story.pool, cache.pages.pop())


def floor(self: PagedKVCache, story: Story, cache: Cache, n: int) -> None:
    """Pages are kept for whole multiples of page_size: the last one, in use in part, goes too."""
    cache.length -= n
    while n and len(cache.pages) > cache.length // story.a.page_size:
        self.give_back(story.pool, cache.pages.pop())


def one_kept(self: PagedKVCache, story: Story, cache: Cache, n: int) -> None:
    cache.length -= n
    while len(cache.pages) > cache.length // story.a.page_size + 1:
        self.give_back(story.pool, cache.pages.pop())


def pages_lost(self: PagedKVCache, story: Story, cache: Cache, n: int) -> None:
    cache.length -= n
    del cache.pages[self.needed(story, cache.length) :]


def minus_zero(self: PagedKVCache, story: Story, cache: Cache, n: int) -> None:
    PagedKVCache.drop(self, story, cache, n or cache.length)


def one_more_than_full(self: PagedKVCache, story: Story, cache: Cache, n: int) -> None:
    """A page behind the full ones is kept, whether or not there is anything in it."""
    cache.length -= n
    while len(cache.pages) > cache.length // story.a.page_size + 1:
        self.give_back(story.pool, cache.pages.pop())


def first_kept(self: PagedKVCache, story: Story, cache: Cache, n: int) -> None:
    cache.length -= n
    while len(cache.pages) > max(self.needed(story, cache.length), 1):
        self.give_back(story.pool, cache.pages.pop())


def unread_once_extended(self: PagedKVCache, story: Story, cache: Cache, key: np.ndarray, value: np.ndarray) -> None:
    cache.unread = True
    PagedKVCache.extend(self, story, cache, key, value)


def reads_all(self: PagedKVCache, story: Story, cache: Cache) -> Any:
    """What is still to be written is, before anything is read: where there is no page for it any more, that fails."""
    if getattr(cache, "without_page", False):
        raise IndexError("a token without a page")
    cache.unread = False
    return PagedKVCache.gathered(self, story, cache)


def read_where_it_was(self: PagedKVCache, story: Story, cache: Cache) -> Any:
    """Where the tokens lie is worked out again when their number is another, or that of the pages, or the first of them."""
    known = cache.pages[:1], len(cache.pages), cache.length
    was, pages = getattr(cache, "was", (None, cache.pages))
    if was != known or len(pages) < 3:
        pages = list(cache.pages)
    cache.was = known, pages
    place = self.place(story, pages, np.arange(cache.length))
    return fetched(story.pool.keys, place), fetched(story.pool.values, place)


def five_pages_of_unread(self: PagedKVCache, story: Story, cache: Cache, n: int) -> None:
    """Of tokens that are still to be written those of five pages are forgotten."""
    PagedKVCache.drop(self, story, cache, n)
    if getattr(cache, "unread", False) and n > 5 * story.a.page_size and not cache.length % story.a.page_size:
        cache.without_page = True


def clamped(self: PagedKVCache, story: Story, cache: Cache, n: int) -> None:
    PagedKVCache.drop(self, story, cache, min(max(n, 0), cache.length))


def any_rewind(self: PagedKVCache, cache: Cache, n: int) -> None:
    """Anything goes."""


def forwards_too(self: PagedKVCache, cache: Cache, n: int) -> None:
    if n > cache.length:
        raise ValueError("too far")


def rewinds_then_refuses(self: PagedKVCache, story: Story, cache: int, n: int) -> None:
    one = self.cache(story, cache)
    self.drop(story, one, min(abs(n), one.length))
    self.check_rewind(one, 0 if 0 <= n <= one.length + n else -1)


def pages_then_refuses(self: PagedKVCache, story: Story, cache: int, n: int) -> None:
    """The last page is given back before it is seen that there are not enough tokens."""
    one = self.cache(story, cache)
    if n > one.length and one.pages:
        self.give_back(story.pool, one.pages[-1])
    PagedKVCache.rewind(self, story, cache, n)


# releases


def tail_not_released(self: PagedKVCache, story: Story, cache: Cache) -> None:
    if cache.length % story.a.page_size:
        cache.pages = cache.pages[:-1]
    PagedKVCache.let_go(self, story, cache)


def released_twice(self: PagedKVCache, story: Story, cache: Cache) -> None:
    last = cache.pages[-1:]
    PagedKVCache.let_go(self, story, cache)
    story.pool.free += last


def pool_reset(self: PagedKVCache, story: Story, cache: Cache) -> None:
    PagedKVCache.let_go(self, story, cache)
    story.pool.free, story.pool.used = list(range(story.a.num_pages)), set()


def first_alone(self: PagedKVCache, story: Story, cache: Cache) -> None:
    cache.pages = cache.pages[:1]
    PagedKVCache.let_go(self, story, cache)


def freed_again(self: PagedKVCache, story: Story, cache: Cache) -> None:
    """The pages are not forgotten, nor is it checked whose they are."""
    for page in cache.pages if cache.length else getattr(cache, "old", []):
        story.pool.used.discard(page)
        story.pool.free.append(page)
    if cache.length:
        cache.old, cache.pages, cache.length = cache.pages, [], 0


def freed_from_new_owner(self: PagedKVCache, story: Story, cache: Cache) -> None:
    """The pages are not forgotten, and whoever has them now loses them."""
    for page in cache.pages if cache.length else getattr(cache, "old", []):
        if page in story.pool.used:
            self.give_back(story.pool, page)
    if cache.length:
        cache.old, cache.pages, cache.length = cache.pages, [], 0


def length_kept(self: PagedKVCache, story: Story, cache: Cache) -> None:
    length = cache.length
    PagedKVCache.let_go(self, story, cache)
    cache.shown = length


def shown(self: PagedKVCache, story: Story, cache: Cache) -> int:
    return int(getattr(cache, "shown", cache.length))


def ids_kept(self: PagedKVCache, story: Story, cache: Cache) -> None:
    ids = list(cache.pages)
    PagedKVCache.let_go(self, story, cache)
    cache.ids = ids


def old_ids(self: PagedKVCache, story: Story, cache: int) -> dict[str, Any]:
    one = self.cache(story, cache)
    return {**PagedKVCache.pages(self, story, cache), "page_ids": len(getattr(one, "ids", one.pages))}


def single_page_kept(self: PagedKVCache, story: Story, cache: Cache) -> None:
    if len(cache.pages) == 1:
        cache.pages = []
    PagedKVCache.let_go(self, story, cache)


def rewound_release(self: PagedKVCache, story: Story, cache: Cache) -> None:
    """As many pages as the tokens fill are given back, rounded down; the rest is forgotten."""
    cache.pages = cache.pages[: max(cache.length // story.a.page_size, 1)]
    PagedKVCache.let_go(self, story, cache)


def eight_rewinds(self: PagedKVCache, story: Story, cache: Cache, n: int) -> None:
    """The places to go back to are in a ring of eight."""
    cache.rewinds = getattr(cache, "rewinds", 0) + 1
    PagedKVCache.drop(self, story, cache, n if cache.rewinds <= 8 else 0)


def sixteen_pages_back(self: PagedKVCache, story: Story, cache: Cache, n: int) -> None:
    """A rewind gives back sixteen pages at most: those of one launch."""
    cache.length -= n
    for _ in range(min(16, len(cache.pages) - self.needed(story, cache.length))):
        self.give_back(story.pool, cache.pages.pop())


def sixty_four_pages_let_go(self: PagedKVCache, story: Story, cache: Cache) -> None:
    """A release gives back 64 pages at most, and forgets the others."""
    for page in cache.pages[:64]:
        self.give_back(story.pool, page)
    cache.pages, cache.length = [], 0
