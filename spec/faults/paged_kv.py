"""Mistakes in pools, paged caches and block tables, and other honest ways to keep tokens in pages."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from inferspec.spec import paged_kv as spec
from inferspec.spec.contract import Arguments, Change, Fault, Operation, Variant
from inferspec.spec.faults.linear import TIRED
from inferspec.spec.faults.paged_batches import BATCH_FAULTS, BATCH_VARIANTS
from inferspec.spec.mistakes import misread
from inferspec.spec.numerics import f64, numpy_dtype, round_to
from inferspec.spec.paged_kv import Cache, PagedKVCache, PagePool, Pool, Story, fetched

TENSORRT = "https://github.com/NVIDIA/TensorRT-LLM/pull"
VLLM = "https://github.com/vllm-project/vllm/pull"
VLLM_METAL = "https://github.com/vllm-project/vllm-metal/commit"
MINIVLLM = "https://github.com/Wenyueh/MinivLLM/pull/84"
INVARIANTS = "tiny-llm course, week 3 day 2, Correctness Invariants"

Place = tuple[np.ndarray, np.ndarray]


# the pool


def _from_one(self: PagePool, a: Arguments) -> Pool:
    pool = PagePool.fresh_pool(self, a)
    pool.free = [page + 1 for page in pool.free]
    return pool


def _listed_twice(self: PagePool, pool: Pool, page: int) -> None:
    PagePool.give_back(self, pool, page)
    pool.free.append(page)


def _unique_count(self: PagePool, pool: Pool) -> int:
    return len(set(pool.free))


def _peeks(self: PagePool, pool: Pool) -> int:
    """The page stays on the list when another one was freed since: only then it is handed out twice."""
    page = PagePool.take(self, pool)
    if getattr(pool, "freed", False):
        pool.free.append(page)
        pool.freed = False
    return page


def _marks_freed(self: PagePool, pool: Pool, page: int) -> None:
    PagePool.give_back(self, pool, page)
    pool.freed = True


def _takes_counted(self: PagePool, pool: Pool) -> int:
    page = PagePool.take(self, pool)
    pool.taken = getattr(pool, "taken", 0) + 1
    return page


def _never_returned(self: PagePool, pool: Pool) -> int:
    return int(pool.size - getattr(pool, "taken", 0))


def _capacity(self: PagePool, pool: Pool) -> int:
    return int(pool.size)


def _without_zero(self: PagePool, a: Arguments) -> Pool:
    pool = PagePool.fresh_pool(self, a)
    pool.free = [page for page in pool.free if page]
    return pool


def _not_recycled(self: PagePool, pool: Pool, page: int) -> None:
    self.check_free(pool, page)
    pool.used.discard(page)
    pool.gone = [*getattr(pool, "gone", []), page]


def _counts_gone(self: PagePool, pool: Pool) -> int:
    return len(pool.free) + len(getattr(pool, "gone", []))


def _lost_when_empty(self: PagePool, pool: Pool, page: int) -> None:
    self.check_free(pool, page)
    pool.used.discard(page)
    if pool.free:
        pool.free.append(page)


def _minus_one(self: PagePool, pool: Pool) -> int:
    return PagePool.take(self, pool) if pool.free else -1


def _last_again(self: PagePool, pool: Pool) -> int:
    if pool.free:
        pool.last = PagePool.take(self, pool)
    return int(pool.last)


def _counts_first(self: PagePool, pool: Pool) -> int:
    if not pool.free:
        pool.drift = getattr(pool, "drift", 0) + 1
    return PagePool.take(self, pool)


def _drifted(self: PagePool, pool: Pool) -> int:
    return len(pool.free) - getattr(pool, "drift", 0)


def _dead_once_empty(self: PagePool, pool: Pool) -> int:
    pool.dead = getattr(pool, "dead", False) or not pool.free
    if pool.dead:
        raise ValueError("exhausted")
    return PagePool.take(self, pool)


def _in_range(self: PagePool, pool: Pool, page: int) -> None:
    if not 0 <= page < pool.size:
        raise ValueError("no such page")


def _not_the_last(self: PagePool, pool: Pool, page: int) -> None:
    _in_range(self, pool, page)
    if pool.free and pool.free[-1] == page:
        raise ValueError("freed just now")


def _not_freed_before(self: PagePool, pool: Pool, page: int) -> None:
    _in_range(self, pool, page)
    if page in getattr(pool, "returned", set()):
        raise ValueError("freed before")


def _remembers_returned(self: PagePool, pool: Pool, page: int) -> None:
    PagePool.give_back(self, pool, page)
    pool.returned = {*getattr(pool, "returned", set()), page}


def _forgets_returned(self: PagePool, pool: Pool) -> int:
    page = PagePool.take(self, pool)
    pool.returned = getattr(pool, "returned", set()) - {page}
    return page


def _wraps(self: PagePool, pool: Pool, page: int) -> None:
    PagePool.give_back(self, pool, page + pool.size if -pool.size <= page < 0 else page)


def _past_the_end(self: PagePool, pool: Pool, page: int) -> None:
    if page < pool.size:
        PagePool.check_free(self, pool, page)


def _silent(self: PagePool, pool: Pool, page: int) -> None:
    if page in pool.used:
        PagePool.give_back(self, pool, page)


def _silent_in_range(self: PagePool, pool: Pool, page: int) -> None:
    _in_range(self, pool, page)
    _silent(self, pool, page)


def _appends_first(self: PagePool, pool: Pool, page: int) -> None:
    pool.free.append(page)
    self.check_free(pool, page)
    pool.used.discard(page)


def _drops_from_list(self: PagePool, pool: Pool, page: int) -> None:
    if page not in pool.used and page in pool.free:
        pool.free.remove(page)
    PagePool.give_back(self, pool, page)


def _tokens_before_heads(self: PagePool, story: Story) -> dict[str, Any]:
    pages, heads, size, dim = self.shape(story.a)
    return {
        **PagePool.storage(self, story),
        "key_pages": (pages, size, heads, dim),
        "value_pages": (pages, size, heads, dim),
    }


def _one_axis_more(self: PagePool, story: Story) -> dict[str, Any]:
    seen = PagePool.storage(self, story)
    return {**seen, **{name: (1, *seen[name]) for name in ("key_pages", "value_pages")}}


def _always_float32(self: PagePool, a: Arguments) -> Pool:
    return PagePool.fresh_pool(self, Arguments(**{**vars(a), "dtype": "float32"}))


def _of_the_class(self: PagePool, a: Arguments) -> Pool:
    cls, pool = type(self), PagePool.fresh_pool(self, a)
    cls.shared = getattr(cls, "shared", pool.free)  # type: ignore[attr-defined]
    pool.free = cls.shared  # type: ignore[attr-defined]
    return pool


# where tokens lie


def _sorted_pages(self: PagedKVCache, story: Story, cache: Cache) -> Any:
    return PagedKVCache.gathered(self, story, Cache(pages=sorted(cache.pages), length=cache.length))


def _not_transposed(self: PagedKVCache, story: Story, cache: Cache) -> Any:
    _, heads, _, dim = self.shape(story.a)
    return tuple(
        x[cache.pages].reshape(1, heads, -1, dim)[:, :, : cache.length] for x in (story.pool.keys, story.pool.values)
    )


def _whole_pages(self: PagedKVCache, story: Story, cache: Cache) -> Any:
    slots = len(cache.pages) * story.a.page_size
    return PagedKVCache.gathered(self, story, Cache(pages=cache.pages, length=slots))


def _no_batch_axis(self: PagedKVCache, story: Story, cache: Cache) -> Any:
    return tuple(x[0] for x in PagedKVCache.gathered(self, story, cache))


def _values_of_keys(self: PagedKVCache, story: Story, cache: Cache) -> Any:
    """Values are read at the places of the tokens one page on."""
    keys, _ = PagedKVCache.gathered(self, story, cache)
    pages = cache.pages[1:] + cache.pages[:1]
    return keys, PagedKVCache.gathered(self, story, Cache(pages=pages, length=cache.length))[1]


def _stored_in(dtype: str) -> Change:
    def write(
        self: PagedKVCache, story: Story, cache: Cache, positions: np.ndarray, key: np.ndarray, value: np.ndarray
    ) -> None:
        narrow = (round_to(f64(round_to(f64(x), dtype)), x.dtype.name) for x in (key, value))
        PagedKVCache.write(self, story, cache, positions, *narrow)

    return {"write": write}


def _writing(which: Callable[[int, np.ndarray], np.ndarray]) -> Change:
    """Only some of the tokens of a chunk are written. which: of page size and positions, a mask."""

    def write(
        self: PagedKVCache, story: Story, cache: Cache, positions: np.ndarray, key: np.ndarray, value: np.ndarray
    ) -> None:
        kept = which(story.a.page_size, positions)
        PagedKVCache.write(self, story, cache, positions[kept], key[:, :, kept], value[:, :, kept])

    return {"write": write}


def _two_pages(size: int, positions: np.ndarray) -> np.ndarray:
    return positions // size - positions[:1] // size < 2


def _whole_chunk_pages(size: int, positions: np.ndarray) -> np.ndarray:
    """What does not fill a page is written only if the chunk begins at a page's start or within one page."""
    first = positions[:1] // size
    return (positions[:1] % size == 0) | (positions // size < first + 1) | (positions // size < positions[-1:] // size)


def _last_page_of_before(
    self: PagedKVCache, story: Story, cache: Cache, positions: np.ndarray, key: np.ndarray, value: np.ndarray
) -> None:
    """A chunk that begins at a page's start writes its first token into the page before."""
    PagedKVCache.write(self, story, cache, positions, key, value)
    size = story.a.page_size
    if len(positions) and positions[0] and positions[0] % size == 0:
        new, old = cache.pages[positions[0] // size], cache.pages[positions[0] // size - 1]
        for pool in (story.pool.keys, story.pool.values):
            pool[old, :, 0] = pool[new, :, 0]
            pool[new, :, 0] = 0


def _no_empty_chunk(self: PagedKVCache, story: Story, key: np.ndarray, value: np.ndarray) -> None:
    PagedKVCache.check_shapes(self, story, key, value)
    if not key.shape[2]:
        raise ValueError("nothing to append")


def _ids_sorted(self: PagedKVCache, story: Story, cache: int) -> dict[str, Any]:
    one = self.cache(story, cache)
    return self.read_from(story, sorted(one.pages), one.length)


def _tail_elsewhere(self: PagedKVCache, story: Story, cache: int) -> dict[str, Any]:
    seen = PagedKVCache.read(self, story, cache)
    full = self.cache(story, cache).length // story.a.page_size * story.a.page_size
    for x in seen.values():
        x[:, :, full:] = 0
    return seen


def _ids_newest_first(self: PagedKVCache, story: Story, cache: int) -> dict[str, Any]:
    one = self.cache(story, cache)
    return self.read_from(story, one.pages[::-1], one.length)


# what is counted


def _slots_counted(self: PagedKVCache, story: Story, cache: Cache) -> int:
    return len(cache.pages) * int(story.a.page_size)


def _appends_counted(self: PagedKVCache, story: Story, cache: Cache, key: np.ndarray, value: np.ndarray) -> None:
    cache.ever = getattr(cache, "ever", 0) + key.shape[2]
    PagedKVCache.extend(self, story, cache, key, value)


def _ever_appended(self: PagedKVCache, story: Story, cache: Cache) -> int:
    return int(getattr(cache, "ever", 0))


def _decode_counted(self: PagedKVCache, story: Story, cache: Cache) -> int:
    """Rewound tokens of a page that stays are counted still."""
    return int(getattr(cache, "shown", cache.length))


def _drops_pages_alone(self: PagedKVCache, story: Story, cache: Cache, n: int) -> None:
    before = cache.length
    PagedKVCache.drop(self, story, cache, n)
    cache.shown = min(before, len(cache.pages) * story.a.page_size)


def _shown_no_more(self: PagedKVCache, story: Story, cache: Cache, key: np.ndarray, value: np.ndarray) -> None:
    PagedKVCache.extend(self, story, cache, key, value)
    cache.__dict__.pop("shown", None)


def _one_ahead(self: PagedKVCache, story: Story, length: int) -> int:
    return int(length // story.a.page_size + 1) if length else 0


def _lost_at_page_end(self: PagedKVCache, story: Story, cache: Cache) -> None:
    before = len(cache.pages)
    PagedKVCache.grow(self, story, cache)
    if len(cache.pages) > before and cache.length % story.a.page_size == 0 and story.pool.free:
        self.take(story.pool)


def _page_per_chunk(self: PagedKVCache, story: Story, cache: Cache) -> None:
    """Pages are counted per chunk: one that starts within a page takes those of its own length, and loses some."""
    before = len(cache.pages)
    PagedKVCache.grow(self, story, cache)
    written = cache.length - getattr(cache, "reached", 0)
    cache.reached = cache.length
    for _ in range(min(self.needed(story, max(written, 0)) - (len(cache.pages) - before), len(story.pool.free))):
        self.take(story.pool)


def _full_lens(self: PagedKVCache, story: Story, cache: Cache) -> list[int]:
    return [int(story.a.page_size)] * len(cache.pages)


def _remainder(self: PagedKVCache, story: Story, cache: Cache) -> list[int]:
    lens = PagedKVCache.lens_of(self, story, cache)
    return [*lens[:-1], cache.length % story.a.page_size] if lens else []


def _tail_alone(self: PagedKVCache, story: Story, cache: Cache) -> list[int]:
    return PagedKVCache.lens_of(self, story, cache)[-1:]


# more than one owner


def _own_allocator(self: PagedKVCache, story: Story) -> Cache:
    return Cache(pages=[], length=0, own=list(range(story.a.num_pages)))


def _takes_own(self: PagedKVCache, story: Story, cache: Cache) -> None:
    while len(cache.pages) < self.needed(story, cache.length):
        if not cache.own:
            raise ValueError("no page is free")
        cache.pages.append(cache.own.pop(0))


def _drops_own(self: PagedKVCache, story: Story, cache: Cache, n: int) -> None:
    cache.length -= n
    while len(cache.pages) > self.needed(story, cache.length):
        cache.own.append(cache.pages.pop())


def _lets_own_go(self: PagedKVCache, story: Story, cache: Cache) -> None:
    cache.own += cache.pages
    cache.pages, cache.length = [], 0


def _freed_but_kept(self: PagedKVCache, story: Story, cache: Cache) -> None:
    """A full page counts as done: the pool may hand it out, though the tokens in it are read still."""
    PagedKVCache.grow(self, story, cache)
    done: set[int] = getattr(cache, "done", set())
    for page in cache.pages[: max(len(cache.pages) - 3, 0)]:
        if page not in done and page in story.pool.used:
            self.give_back(story.pool, page)
            done = {*done, page}
    cache.done = done


def _one_slot_more(
    self: PagedKVCache, story: Story, cache: Cache, positions: np.ndarray, key: np.ndarray, value: np.ndarray
) -> None:
    """The chunk is followed by a token of zeros, in the next slot of the arrays as they lie in memory."""
    PagedKVCache.write(self, story, cache, positions, key, value)
    if len(positions):
        pages, slots = self.place(story, cache.pages, positions[-1:])
        page, slot = divmod(int(pages[0]) * story.a.page_size + int(slots[0]) + 1, story.a.page_size)
        if page < story.a.num_pages:
            story.pool.keys[page, :, slot] = story.pool.values[page, :, slot] = 0


def _clears_by_position(self: PagedKVCache, story: Story, cache: Cache) -> None:
    count = len(cache.pages)
    PagedKVCache.let_go(self, story, cache)
    story.pool.keys[:count] = story.pool.values[:count] = 0


def _clears_what_no_cache_has(self: PagedKVCache, story: Story, cache: Cache) -> None:
    PagedKVCache.grow(self, story, cache)
    theirs = {page for one in story.caches.values() for page in one.pages}
    others = [page for page in range(story.a.num_pages) if page not in theirs]
    story.pool.keys[others] = story.pool.values[others] = 0


def _all_pages_of_padding(
    self: PagedKVCache, story: Story, cache: Cache, positions: np.ndarray, key: np.ndarray, value: np.ndarray
) -> None:
    """Padding tokens of a chunk go to slot -1: the last one of the pool."""
    PagedKVCache.write(self, story, cache, positions, key, value)
    story_last = story.a.num_pages - 1
    if len(positions) % 2 and story_last not in cache.pages:
        story.pool.keys[story_last, :, -1] = key[0, :, -1]


# recycled pages


def _blended(
    self: PagedKVCache, story: Story, cache: Cache, positions: np.ndarray, key: np.ndarray, value: np.ndarray
) -> None:
    """old · (1 - mask) + new · mask: 0 · NaN is NaN."""
    place = self.place(story, cache.pages, positions)
    mixed = [
        np.where(np.isnan(f64(old)), old, new)
        for old, new in ((fetched(story.pool.keys, place), key), (fetched(story.pool.values, place), value))
    ]
    PagedKVCache.write(self, story, cache, positions, *mixed)


def _added(
    self: PagedKVCache, story: Story, cache: Cache, positions: np.ndarray, key: np.ndarray, value: np.ndarray
) -> None:
    """A scatter that adds is right on pages of zeros alone."""
    place = self.place(story, cache.pages, positions)
    summed = [
        (f64(old) + f64(new)).astype(new.dtype)
        for old, new in ((fetched(story.pool.keys, place), key), (fetched(story.pool.values, place), value))
    ]
    PagedKVCache.write(self, story, cache, positions, *summed)


def _promoting(self: PagedKVCache, a: Arguments) -> Any:
    return {part: x.astype(np.float32) if x.ndim == 4 else x for part, x in Operation.respond(self, a).items()}


# rewinds


def _in_whole_pages(self: PagedKVCache, story: Story, cache: Cache, n: int) -> None:
    PagedKVCache.drop(self, story, cache, n // story.a.page_size * story.a.page_size)


def _first_pages(self: PagedKVCache, story: Story, cache: Cache, n: int) -> None:
    cache.length -= n
    while len(cache.pages) > self.needed(story, cache.length):
        self.give_back(story.pool, cache.pages.pop(0))


def _to_page_start(self: PagedKVCache, story: Story, cache: Cache, n: int) -> None:
    """Tokens of the last page that are not rewound are forgotten where a page was given back."""
    before = len(cache.pages)
    PagedKVCache.drop(self, story, cache, n)
    if len(cache.pages) < before:
        PagedKVCache.drop(self, story, cache, cache.length % story.a.page_size)


def _pages_kept(self: PagedKVCache, story: Story, cache: Cache, n: int) -> None:
    cache.length -= n


def _one_page(self: PagedKVCache, story: Story, cache: Cache, n: int) -> None:
    cache.length -= n
    if len(cache.pages) > self.needed(story, cache.length):
        self.give_back(story.pool, cache.pages.pop())


def _whole_pages_of_n(self: PagedKVCache, story: Story, cache: Cache, n: int) -> None:
    """As many pages as n tokens fill: one too few where the rewind crosses into another page."""
    cache.length -= n
    for _ in range(n // story.a.page_size):
        self.give_back(story.pool, cache.pages.pop())


def _floor(self: PagedKVCache, story: Story, cache: Cache, n: int) -> None:
    """Pages are kept for whole multiples of page_size: the last one, in use in part, goes too."""
    cache.length -= n
    while n and len(cache.pages) > cache.length // story.a.page_size:
        self.give_back(story.pool, cache.pages.pop())


def _one_kept(self: PagedKVCache, story: Story, cache: Cache, n: int) -> None:
    cache.length -= n
    while len(cache.pages) > cache.length // story.a.page_size + 1:
        self.give_back(story.pool, cache.pages.pop())


def _pages_lost(self: PagedKVCache, story: Story, cache: Cache, n: int) -> None:
    cache.length -= n
    del cache.pages[self.needed(story, cache.length) :]


def _minus_zero(self: PagedKVCache, story: Story, cache: Cache, n: int) -> None:
    PagedKVCache.drop(self, story, cache, n or cache.length)


def _first_kept(self: PagedKVCache, story: Story, cache: Cache, n: int) -> None:
    cache.length -= n
    while len(cache.pages) > max(self.needed(story, cache.length), 1):
        self.give_back(story.pool, cache.pages.pop())


def _clamped(self: PagedKVCache, story: Story, cache: Cache, n: int) -> None:
    PagedKVCache.drop(self, story, cache, min(max(n, 0), cache.length))


def _any_rewind(self: PagedKVCache, cache: Cache, n: int) -> None:
    """Anything goes."""


def _forwards_too(self: PagedKVCache, cache: Cache, n: int) -> None:
    if n > cache.length:
        raise ValueError("too far")


def _rewinds_then_refuses(self: PagedKVCache, story: Story, cache: int, n: int) -> None:
    one = self.cache(story, cache)
    self.drop(story, one, min(abs(n), one.length))
    self.check_rewind(one, 0 if 0 <= n <= one.length + n else -1)


def _pages_then_refuses(self: PagedKVCache, story: Story, cache: int, n: int) -> None:
    """The last page is given back before it is seen that there are not enough tokens."""
    one = self.cache(story, cache)
    if n > one.length and one.pages:
        self.give_back(story.pool, one.pages[-1])
    PagedKVCache.rewind(self, story, cache, n)


# releases


def _tail_not_released(self: PagedKVCache, story: Story, cache: Cache) -> None:
    if cache.length % story.a.page_size:
        cache.pages = cache.pages[:-1]
    PagedKVCache.let_go(self, story, cache)


def _released_twice(self: PagedKVCache, story: Story, cache: Cache) -> None:
    last = cache.pages[-1:]
    PagedKVCache.let_go(self, story, cache)
    story.pool.free += last


def _pool_reset(self: PagedKVCache, story: Story, cache: Cache) -> None:
    PagedKVCache.let_go(self, story, cache)
    story.pool.free, story.pool.used = list(range(story.a.num_pages)), set()


def _first_alone(self: PagedKVCache, story: Story, cache: Cache) -> None:
    cache.pages = cache.pages[:1]
    PagedKVCache.let_go(self, story, cache)


def _freed_again(self: PagedKVCache, story: Story, cache: Cache) -> None:
    """The pages are not forgotten, nor is it checked whose they are."""
    for page in cache.pages if cache.length else getattr(cache, "old", []):
        story.pool.used.discard(page)
        story.pool.free.append(page)
    if cache.length:
        cache.old, cache.pages, cache.length = cache.pages, [], 0


def _freed_from_new_owner(self: PagedKVCache, story: Story, cache: Cache) -> None:
    """The pages are not forgotten, and whoever has them now loses them."""
    for page in cache.pages if cache.length else getattr(cache, "old", []):
        if page in story.pool.used:
            self.give_back(story.pool, page)
    if cache.length:
        cache.old, cache.pages, cache.length = cache.pages, [], 0


def _length_kept(self: PagedKVCache, story: Story, cache: Cache) -> None:
    length = cache.length
    PagedKVCache.let_go(self, story, cache)
    cache.shown = length


def _shown(self: PagedKVCache, story: Story, cache: Cache) -> int:
    return int(getattr(cache, "shown", cache.length))


def _ids_kept(self: PagedKVCache, story: Story, cache: Cache) -> None:
    ids = list(cache.pages)
    PagedKVCache.let_go(self, story, cache)
    cache.ids = ids


def _old_ids(self: PagedKVCache, story: Story, cache: int) -> dict[str, Any]:
    one = self.cache(story, cache)
    return {**PagedKVCache.pages(self, story, cache), "page_ids": len(getattr(one, "ids", one.pages))}


def _single_page_kept(self: PagedKVCache, story: Story, cache: Cache) -> None:
    if len(cache.pages) == 1:
        cache.pages = []
    PagedKVCache.let_go(self, story, cache)


def _rewound_release(self: PagedKVCache, story: Story, cache: Cache) -> None:
    """As many pages as the tokens fill are given back, rounded down; the rest is forgotten."""
    cache.pages = cache.pages[: max(cache.length // story.a.page_size, 1)]
    PagedKVCache.let_go(self, story, cache)


# room


def _any_room(self: PagedKVCache, story: Story, cache: Cache, length: int) -> None:
    """There always is."""


def _own_first_page(self: PagedKVCache, story: Story, cache: Cache) -> None:
    while len(cache.pages) < self.needed(story, cache.length):
        cache.pages.append(self.take(story.pool) if story.pool.free else (cache.pages or [0])[0])


def _cut_short(self: PagedKVCache, story: Story, cache: Cache, key: np.ndarray, value: np.ndarray) -> None:
    room = (len(cache.pages) + self.count(story.pool)) * story.a.page_size - cache.length
    PagedKVCache.extend(self, story, cache, key[:, :, :room], value[:, :, :room])


def _off_by_one_page(self: PagedKVCache, story: Story, cache: Cache, length: int) -> None:
    needed = self.needed(story, cache.length + length) - len(cache.pages)
    if needed > self.count(story.pool) + 1:
        raise ValueError("too few pages")


def _length_last(self: PagedKVCache, story: Story, cache: Cache, key: np.ndarray, value: np.ndarray) -> None:
    """Pages are taken one by one; those taken before the pool is empty stay, the tokens do not."""
    before = cache.length
    try:
        PagedKVCache.extend(self, story, cache, key, value)
    except ValueError:
        cache.length = before
        raise


def _pages_forgotten(self: PagedKVCache, story: Story, cache: Cache) -> None:
    before = list(cache.pages)
    try:
        PagedKVCache.grow(self, story, cache)
    except ValueError:
        cache.pages = before
        raise


def _fills_then_refuses(self: PagedKVCache, story: Story, cache: Cache, key: np.ndarray, value: np.ndarray) -> None:
    room = (len(cache.pages) + self.count(story.pool)) * story.a.page_size - cache.length
    PagedKVCache.extend(self, story, cache, key[:, :, :room], value[:, :, :room])
    if key.shape[2] > room:
        raise ValueError("the rest does not fit")


def _releases_when_full(self: PagedKVCache, story: Story, cache: Cache, length: int) -> None:
    try:
        PagedKVCache.check_room(self, story, cache, length)
    except ValueError:
        self.let_go(story, cache)
        raise


def _reserve(self: PagedKVCache, story: Story, cache: Cache, length: int) -> None:
    needed = self.needed(story, cache.length + length) - len(cache.pages)
    if needed and needed >= self.count(story.pool):
        raise ValueError("one page is kept free")


def _tail_not_counted(self: PagedKVCache, story: Story, cache: Cache, length: int) -> None:
    if self.needed(story, length) > self.count(story.pool):
        raise ValueError("too few pages")


# arrays that do not fit


def _fits_but(**free: bool) -> Change:
    """Some axes are not compared. free: batch, length, heads, dims or rank."""

    def check_shapes(self: PagedKVCache, story: Story, key: np.ndarray, value: np.ndarray) -> None:
        if free.get("rank") and key.ndim == value.ndim == 3:
            key, value = key[None], value[None]
        if key.ndim != 4 or value.ndim != 4:
            raise ValueError("not four axes")
        if not free.get("batch") and (len(key), len(value)) != (1, 1):
            raise ValueError("more than one row")
        if key.shape[2] != value.shape[2] and not (free.get("length") and 1 in (key.shape[2], value.shape[2])):
            raise ValueError("lengths differ")
        for x in (key, value):
            if x.shape[1] != story.a.num_kv_heads and not (free.get("heads") and x.shape[1] == 1):
                raise ValueError("other heads")
            if x.shape[3] != story.a.head_dim and not (free.get("dims") and x.shape[3] == 1):
                raise ValueError("other dims")

    def extend(self: PagedKVCache, story: Story, cache: Cache, key: np.ndarray, value: np.ndarray) -> None:
        if key.ndim == 3:
            key, value = key[None], value[None]
        length = max(key.shape[2], value.shape[2])
        shape = (1, story.a.num_kv_heads, length, story.a.head_dim)
        PagedKVCache.extend(self, story, cache, *(np.broadcast_to(x[:1], shape) for x in (key, value)))

    return {"check_shapes": check_shapes, "extend": extend, "check_append": _checks_longer}


def _checks_longer(self: PagedKVCache, story: Story, cache: Cache, key: np.ndarray, value: np.ndarray) -> None:
    self.check_shapes(story, key, value)
    self.check_dtype(story, key, value)
    self.check_room(story, cache, max(x.shape[-2] for x in (key, value)))


def _any_dtype(self: PagedKVCache, story: Story, key: np.ndarray, value: np.ndarray) -> None:
    """All are cast."""


def _key_dtype_alone(self: PagedKVCache, story: Story, key: np.ndarray, value: np.ndarray) -> None:
    if key.dtype != numpy_dtype(story.a.dtype):
        raise ValueError("another dtype")


def _pages_before_checks(self: PagedKVCache, story: Story, cache: Cache, key: np.ndarray, value: np.ndarray) -> None:
    if key.ndim == 4 and self.needed(story, cache.length + key.shape[2]) - len(cache.pages) <= self.count(story.pool):
        while len(cache.pages) < self.needed(story, cache.length + key.shape[2]):
            cache.pages.append(self.take(story.pool))
    PagedKVCache.check_append(self, story, cache, key, value)


def _offset_before_checks(self: PagedKVCache, story: Story, cache: Cache, key: np.ndarray, value: np.ndarray) -> None:
    try:
        PagedKVCache.check_append(self, story, cache, key, value)
    except ValueError:
        if key.ndim == 4 and cache.length % story.a.page_size:
            cache.length += 1
        raise


# arguments and results


def _strides_of(name: str) -> Change:
    def respond(self: PagedKVCache, a: Arguments) -> Any:
        steps = tuple(
            (method, {k: misread(x) if k == name else x for k, x in given.items()}) for method, given in a.steps
        )
        return Operation.respond(self, Arguments(**{**vars(a), "steps": steps}))

    return {"respond": respond}


def _changes(name: str) -> Change:
    def respond(self: PagedKVCache, a: Arguments) -> Any:
        result = Operation.respond(self, a)
        for _, given in a.steps:
            if name in given:
                given[name][...] = 0
        return result

    return {"respond": respond}


def _by_reference(
    self: PagedKVCache, story: Story, cache: Cache, positions: np.ndarray, key: np.ndarray, value: np.ndarray
) -> None:
    PagedKVCache.write(self, story, cache, positions, key, value)
    cache.late = positions, key, value


def _writes_late(self: PagedKVCache, story: Story, cache: Cache) -> Any:
    if hasattr(cache, "late"):
        PagedKVCache.write(self, story, cache, *cache.late)
    return PagedKVCache.gathered(self, story, cache)


def _view_of_one_page(self: PagedKVCache, story: Story, cache: Cache) -> Any:
    if len(cache.pages) != 1:
        return PagedKVCache.gathered(self, story, cache)
    return tuple(pool[cache.pages[0]][None, :, : cache.length] for pool in (story.pool.keys, story.pool.values))


def _same_buffer(self: PagedKVCache, story: Story, cache: Cache) -> Any:
    """One buffer of the pool serves every gather."""
    if not hasattr(story, "buffers"):
        _, heads, size, dim = self.shape(story.a)
        shape = (1, heads, size * story.a.num_pages, dim)
        story.buffers = [np.zeros(shape, numpy_dtype(story.a.dtype)) for _ in range(2)]
    views = [buffer[:, :, : cache.length] for buffer in story.buffers]
    for view, x in zip(views, PagedKVCache.gathered(self, story, cache), strict=True):
        view[...] = x
    return tuple(views)


def _ids_of(dtype: type[Any]) -> Change:
    def place(self: PagedKVCache, story: Story, pages: Sequence[int], positions: np.ndarray) -> Place:
        ids, slots = PagedKVCache.place(self, story, pages, positions)
        return ids.astype(dtype).astype(np.int64), slots

    return {"place": place}


# block tables


def _table_sorted(self: spec.BlockTable, story: Story, rows: Sequence[Cache]) -> np.ndarray:
    return spec.BlockTable.padded(self, story, [Cache(pages=sorted(row.pages)) for row in rows])


def _by_length(self: spec.BlockTable, story: Story, rows: Sequence[Cache]) -> np.ndarray:
    return spec.BlockTable.padded(self, story, sorted(rows, key=lambda row: -len(row.pages)))


def _aligned_at_end(self: spec.BlockTable, story: Story, rows: Sequence[Cache]) -> np.ndarray:
    width = max(len(row.pages) for row in rows)
    return spec.BlockTable.padded(self, story, [Cache(pages=[0] * (width - len(r.pages)) + r.pages) for r in rows])


def _as_wide_as_first(self: spec.BlockTable, story: Story, rows: Sequence[Cache]) -> np.ndarray:
    return spec.BlockTable.padded(self, story, rows)[:, : len(rows[0].pages)]


def _full_pages_alone(self: spec.BlockTable, story: Story, rows: Sequence[Cache]) -> np.ndarray:
    size = story.a.page_size
    return spec.BlockTable.padded(self, story, [Cache(pages=row.pages[: row.length // size]) for row in rows])


def _slots_of_rows(self: spec.BlockTable, story: Story, rows: Sequence[Cache]) -> list[int]:
    return [len(row.pages) * story.a.page_size for row in rows]


def _pages_of_rows(self: spec.BlockTable, story: Story, rows: Sequence[Cache]) -> list[int]:
    return [len(row.pages) for row in rows]


def _longest_of_all(self: spec.BlockTable, story: Story, rows: Sequence[Cache]) -> list[int]:
    return [max(row.length for row in rows)] * len(rows)


def _busy_rows(self: spec.BlockTable, story: Story, caches: Sequence[int]) -> dict[str, Any]:
    busy = [number for number in caches if self.cache(story, number).length]
    return spec.BlockTable.table(self, story, busy or caches)


def _remembered(self: spec.BlockTable, story: Story, rows: Sequence[Cache]) -> list[int]:
    """Lengths are kept for as long as the pages of the batch are the same."""
    story.memory = getattr(story, "memory", {})
    return list(story.memory.setdefault(tuple(tuple(row.pages) for row in rows), [row.length for row in rows]))


def _only_once(self: spec.BlockTable, story: Story, rows: Sequence[Cache]) -> np.ndarray:
    """The table is made anew only when it must be wider or has more rows."""
    table = spec.BlockTable.padded(self, story, rows)
    old = getattr(story, "old_table", None)
    if old is None or old.shape != table.shape:
        story.old_table = table
    return np.array(story.old_table)


# many, wide and long


def _bits(self: PagePool, pool: Pool, page: int) -> int:
    return int(getattr(pool, "bits", 0)) >> page % 64 & 1


def _sets_bit(self: PagePool, pool: Pool) -> int:
    page = PagePool.take(self, pool)
    pool.bits = getattr(pool, "bits", 0) | 1 << page % 64
    return page


def _clears_bit(self: PagePool, pool: Pool, page: int) -> None:
    _in_range(self, pool, page)
    if not _bits(self, pool, page):
        raise ValueError("not in use")
    pool.bits &= ~(1 << page % 64)
    pool.used.discard(page)
    pool.free.append(page)


def _first_256_checked(self: PagePool, pool: Pool, page: int) -> None:
    _in_range(self, pool, page)
    if page < 256:
        PagePool.check_free(self, pool, page)


def _lost(lost: Callable[[np.ndarray, np.ndarray, int], None]) -> Change:
    """`gather`, with some of keys and values gone."""

    def gathered(self: PagedKVCache, story: Story, cache: Cache) -> Any:
        keys, values = PagedKVCache.gathered(self, story, cache)
        lost(keys, values, story.a.page_size)
        return keys, values

    return {"gathered": gathered}


def _features_past_64(keys: np.ndarray, values: np.ndarray, size: int) -> None:
    keys[..., 64:] = values[..., 64:] = 0


def _heads_past_8(keys: np.ndarray, values: np.ndarray, size: int) -> None:
    keys[:, 8:] = values[:, 8:] = 0


def _slots_past_16(keys: np.ndarray, values: np.ndarray, size: int) -> None:
    slots = np.arange(keys.shape[2]) % size >= 16
    keys[:, :, slots] = values[:, :, slots] = 0


def _seventeenth(self: PagedKVCache, story: Story, cache: Cache, key: np.ndarray, value: np.ndarray) -> None:
    """The 17th append of a cache finds a queue of 16 writes full, and is not written."""
    cache.writes = getattr(cache, "writes", 0) + 1
    PagedKVCache.extend(
        self, story, cache, *(x * np.zeros((), x.dtype) if cache.writes == 17 else x for x in (key, value))
    )


def _takes_from_caches(self: PagedKVCache, story: Story) -> dict[str, Any]:
    """Where no page is free the caller gets one of a cache."""
    if self.count(story.pool):
        return PagedKVCache.allocate(self, story)
    page = self.in_use(story)[0]
    story.taken[story.number] = page
    story.held[story.number] = page, self.held_by(story.pool, page)
    return {"page": 0}


def _eight_rows(self: spec.BlockTable, story: Story, rows: Sequence[Cache]) -> np.ndarray:
    table = spec.BlockTable.padded(self, story, rows)
    table[8:] = 0
    return table


def _sixteen_pages(self: spec.BlockTable, story: Story, rows: Sequence[Cache]) -> np.ndarray:
    table = spec.BlockTable.padded(self, story, rows)
    table[:, 16:] = 0
    return table


def _one_table(self: spec.BlockTable, story: Story, step: int) -> dict[str, Any]:
    """All tables of a shape are the same array: those before are as the last one."""
    return {"kept": int(story.steps[step] == story.steps[max(story.steps)])}


def _remembers_table(self: spec.BlockTable, story: Story, caches: Sequence[int]) -> dict[str, Any]:
    told = spec.BlockTable.table(self, story, caches)
    rows = [self.cache(story, number) for number in caches]
    story.steps = {**getattr(story, "steps", {}), story.number: [(row.length, *row.pages) for row in rows]}
    return told


FAULTS: tuple[Fault, ...] = (
    Fault(
        "pool-bits-of-64",
        "pages in use are marked in 64 bits: a page far behind counts as free with another one",
        spec.POOL_03,
        {"take": _sets_bit, "give_back": _clears_bit},
        "PROPERTIES X8",
    ),
    Fault(
        "pool-double-free-past-256",
        "a page past the 256th that was freed already is taken back again",
        spec.POOL_06,
        {"check_free": _first_256_checked},
        "PROPERTIES PG2, X8",
    ),
    Fault(
        "paged-features-past-64",
        "features of a head past 64 are not copied",
        spec.PKV_01,
        _lost(_features_past_64),
        TIRED,
    ),
    Fault("paged-eight-heads", "heads past the 8th are not copied", spec.PKV_01, _lost(_heads_past_8), TIRED),
    Fault("paged-slots-to-16", "slots of a page past the 16th are not read", spec.PKV_02, _lost(_slots_past_16), TIRED),
    Fault("paged-seventeenth-append", "the 17th append is not written", spec.PKV_02, {"extend": _seventeenth}, TIRED),
    Fault(
        "paged-caller-gets-page-of-cache",
        "where no page is free the caller gets one of a cache",
        spec.PKV_07,
        {"allocate": _takes_from_caches},
        "PROPERTIES PG1, PG5",
    ),
    Fault(
        "table-of-eight-rows", "rows of a table past the 8th are zeros", spec.TABLE_01, {"padded": _eight_rows}, TIRED
    ),
    Fault(
        "table-of-sixteen-pages", "entries past the 16th are zeros", spec.TABLE_01, {"padded": _sixteen_pages}, TIRED
    ),
    Fault(
        "table-in-buffer",
        "every table is written into the arrays of the one before",
        spec.TABLE_03,
        {"table": _remembers_table, "reread_table": _one_table},
        "PROPERTIES X7",
    ),
    Fault("pool-ids-from-one", "page ids begin at 1", spec.POOL_01, {"fresh_pool": _from_one}, TIRED),
    Fault(
        "pool-listed-twice",
        "a freed page is on the free list twice, and gets two owners",
        spec.POOL_01,
        {"give_back": _listed_twice, "count": _unique_count},
        f"{TENSORRT}/14937",
    ),
    Fault(
        "pool-peeks",
        "the first page handed out after a free stays on the free list",
        spec.POOL_01,
        {"take": _peeks, "give_back": _marks_freed, "count": _unique_count},
        "PROPERTIES PG1",
    ),
    Fault(
        "pool-counts-allocations",
        "num_free goes down with every allocation and never up",
        spec.POOL_02,
        {"take": _takes_counted, "count": _never_returned},
        f"{TENSORRT}/12834",
    ),
    Fault("pool-counts-capacity", "num_free is num_pages", spec.POOL_02, {"count": _capacity}, "PROPERTIES PG8"),
    Fault(
        "pool-page-zero-reserved",
        "page 0 is kept for padding, and is not among the num_pages",
        spec.POOL_03,
        {"fresh_pool": _without_zero},
        "vLLM's null block",
    ),
    Fault(
        "pool-never-recycles",
        "a freed page is counted and never handed out again",
        spec.POOL_03,
        {"give_back": _not_recycled, "count": _counts_gone},
        MINIVLLM,
    ),
    Fault(
        "pool-lost-when-empty",
        "a page that is freed when no other is free is lost",
        spec.POOL_03,
        {"give_back": _lost_when_empty},
        "PROPERTIES PG4",
    ),
    Fault(
        "pool-minus-one",
        "an allocation without a free page returns -1",
        spec.POOL_04,
        {"take": _minus_one},
        "PROPERTIES PG5",
    ),
    Fault(
        "pool-last-again",
        "an allocation without a free page returns the page of the one before",
        spec.POOL_04,
        {"take": _last_again},
        TIRED,
    ),
    Fault(
        "pool-counts-refused",
        "a refused allocation is counted",
        spec.POOL_05,
        {"take": _counts_first, "count": _drifted},
        f"{TENSORRT}/12834",
    ),
    Fault(
        "pool-dead-once-empty",
        "after a refused allocation nothing is handed out any more",
        spec.POOL_05,
        {"take": _dead_once_empty},
        "PROPERTIES PG5",
    ),
    Fault(
        "pool-double-free",
        "a page that was freed already is taken back again",
        spec.POOL_06,
        {"check_free": _in_range},
        f"{TENSORRT}/14937",
    ),
    Fault(
        "pool-double-free-of-earlier",
        "only the page that was freed last is known as free",
        spec.POOL_06,
        {"check_free": _not_the_last},
        "PROPERTIES PG2",
    ),
    Fault(
        "pool-double-free-silent",
        "a page that was freed already is let through without an effect",
        spec.POOL_06,
        {"give_back": _silent_in_range},
        "DESIGN.md, section 10",
    ),
    Fault(
        "pool-foreign-free",
        "a page that was never handed out is taken back",
        spec.POOL_07,
        {"check_free": _not_freed_before, "give_back": _remembers_returned, "take": _forgets_returned},
        "PROPERTIES PG2",
    ),
    Fault(
        "pool-negative-id",
        "a negative id counts from the end",
        spec.POOL_08,
        {"give_back": _wraps},
        "Python's negative indices",
    ),
    Fault(
        "pool-id-past-end",
        "ids past the last page are put on the free list",
        spec.POOL_08,
        {"check_free": _past_the_end},
        "PROPERTIES PG1",
    ),
    Fault(
        "pool-missing-silent",
        "unknown ids are let through without an effect",
        spec.POOL_08,
        {"give_back": _silent},
        TIRED,
    ),
    Fault(
        "pool-frees-then-refuses",
        "a page that is refused is on the free list nevertheless",
        spec.POOL_09,
        {"give_back": _appends_first},
        "PROPERTIES PG5",
    ),
    Fault(
        "pool-refused-page-lost",
        "a free page that is freed again is refused, and lost",
        spec.POOL_09,
        {"give_back": _drops_from_list},
        "PROPERTIES PG2, PG4",
    ),
    Fault(
        "pool-tokens-before-heads",
        "the arrays are P×page_size×H×D",
        spec.POOL_10,
        {"storage": _tokens_before_heads},
        "FlashInfer's layout NHD",
    ),
    Fault(
        "pool-batch-axis",
        "the arrays have an axis of 1 in front, as the pages of the course's first part do",
        spec.POOL_10,
        {"storage": _one_axis_more},
        "tiny-llm course, week 3 day 2",
    ),
    Fault(
        "pool-float32",
        "the arrays are float32 whatever dtype is asked for",
        spec.POOL_10,
        {"fresh_pool": _always_float32},
        f"{VLLM_METAL}/59b9be4",
    ),
    Fault("pool-of-the-class", "all pools share one free list", spec.POOL_11, {"fresh_pool": _of_the_class}, TIRED),
    Fault(
        "pool-of-nothing",
        "a pool of no pages, or pages of no slots, is made",
        spec.POOL_12,
        {"guard": lambda self, a: None},
        f"{VLLM_METAL}/0f6f76b",
    ),
    Fault(
        "paged-gather-sorted",
        "gather walks the pages in the order of their ids",
        spec.PKV_01,
        {"gathered": _sorted_pages},
        f"{INVARIANTS} 2",
    ),
    Fault(
        "paged-gather-not-transposed",
        "gather reshapes P×H×page_size×D without moving the heads to the front",
        spec.PKV_01,
        {"gathered": _not_transposed},
        TIRED,
    ),
    Fault(
        "paged-gather-whole-pages",
        "gather returns all slots of the pages, unwritten ones too",
        spec.PKV_01,
        {"gathered": _whole_pages},
        "PROPERTIES KV2",
    ),
    Fault("paged-gather-no-batch-axis", "gather returns H×S×D", spec.PKV_01, {"gathered": _no_batch_axis}, TIRED),
    Fault(
        "paged-gather-values-shifted",
        "gather reads values one page further than keys",
        spec.PKV_01,
        {"gathered": _values_of_keys},
        "PROPERTIES PG6",
    ),
    Fault(
        "paged-stored-in-float16",
        "pages hold float16 whatever the model's dtype",
        spec.PKV_01,
        _stored_in("float16"),
        f"{VLLM_METAL}/59b9be4",
    ),
    Fault(
        "paged-stored-in-bfloat16",
        "pages hold bfloat16 whatever the model's dtype",
        spec.PKV_01,
        _stored_in("bfloat16"),
        f"{VLLM_METAL}/59b9be4",
    ),
    Fault(
        "paged-chunk-of-two-pages",
        "a chunk is written to the page it begins in and the next one, and no further",
        spec.PKV_02,
        _writing(_two_pages),
        "tiny-llm course, week 3 day 2, Prefill Metadata",
    ),
    Fault(
        "paged-chunk-tail-lost",
        "of a chunk that begins within a page the part behind its last full page is not written",
        spec.PKV_02,
        _writing(_whole_chunk_pages),
        "PROPERTIES PG3",
    ),
    Fault(
        "paged-boundary-token",
        "a chunk that begins at a page's start writes its first token into the page before",
        spec.PKV_02,
        {"write": _last_page_of_before},
        f"{VLLM}/7380",
    ),
    Fault(
        "paged-no-empty-chunk", "a chunk of no tokens is refused", spec.PKV_02, {"check_shapes": _no_empty_chunk}, TIRED
    ),
    Fault(
        "paged-ids-sorted",
        "page_ids are in the order of the ids",
        spec.PKV_03,
        {"read": _ids_sorted},
        f"{INVARIANTS} 2",
    ),
    Fault(
        "paged-ids-newest-first", "page_ids begin with the newest page", spec.PKV_03, {"read": _ids_newest_first}, TIRED
    ),
    Fault(
        "paged-tail-elsewhere",
        "tokens are written to the pool only when they fill a page",
        spec.PKV_03,
        {"read": _tail_elsewhere},
        f"{INVARIANTS} 1",
    ),
    Fault(
        "paged-offset-of-slots",
        "offset counts the slots of all pages",
        spec.PKV_04,
        {"offset_of": _slots_counted},
        f"{INVARIANTS} 1",
    ),
    Fault(
        "paged-offset-ever",
        "offset counts every token that was ever appended",
        spec.PKV_04,
        {"extend": _appends_counted, "offset_of": _ever_appended},
        "PROPERTIES KV3",
    ),
    Fault(
        "paged-offset-rewound-by-pages",
        "offset follows a rewind only as far as pages are given back",
        spec.PKV_04,
        {"drop": _drops_pages_alone, "extend": _shown_no_more, "offset_of": _decode_counted},
        "PROPERTIES KV3",
    ),
    Fault(
        "paged-one-page-ahead",
        "a page is taken as soon as the last one is full",
        spec.PKV_05,
        {"needed": _one_ahead},
        f"{INVARIANTS} 5",
    ),
    Fault(
        "paged-lost-at-page-end",
        "a chunk that ends with a page takes one page more, which nobody has",
        spec.PKV_05,
        {"grow": _lost_at_page_end},
        f"{VLLM}/7380",
    ),
    Fault(
        "paged-pages-of-chunk",
        "a chunk takes the pages of its own length, whatever is left in the last one",
        spec.PKV_05,
        {"grow": _page_per_chunk},
        "PROPERTIES PG3",
    ),
    Fault(
        "paged-lens-full", "page_lens says page_size for the last page too", spec.PKV_06, {"lens_of": _full_lens}, TIRED
    ),
    Fault(
        "paged-lens-remainder",
        "page_lens says 0 for a last page that is full",
        spec.PKV_06,
        {"lens_of": _remainder},
        "PROPERTIES PG3",
    ),
    Fault(
        "paged-lens-of-tail", "page_lens is that of the last page alone", spec.PKV_06, {"lens_of": _tail_alone}, TIRED
    ),
    Fault(
        "paged-allocator-of-its-own",
        "every cache has an allocator of its own over the pages of the pool",
        spec.PKV_07,
        {"fresh_cache": _own_allocator, "grow": _takes_own, "drop": _drops_own, "let_go": _lets_own_go},
        f"{VLLM_METAL}/1a036e8",
    ),
    Fault(
        "paged-freed-but-kept",
        "pages that left the window of the last three are given back and read still",
        spec.PKV_07,
        {"grow": _freed_but_kept},
        f"{VLLM}/3347",
    ),
    Fault(
        "paged-one-slot-more",
        "a chunk is followed by a slot of zeros, which may be another cache's",
        spec.PKV_08,
        {"write": _one_slot_more},
        "PROPERTIES PG6, BK5",
    ),
    Fault(
        "paged-clears-by-position",
        "a release clears as many pages as the cache had, from page 0 on",
        spec.PKV_08,
        {"let_go": _clears_by_position},
        "PROPERTIES CB4",
    ),
    Fault(
        "paged-clears-the-callers",
        "a cache that takes a page clears all pages that no cache has, those of the caller too",
        spec.PKV_09,
        {"grow": _clears_what_no_cache_has},
        "PROPERTIES PG1",
    ),
    Fault(
        "paged-padding-in-last-slot",
        "padding of a chunk is written to slot -1, the last one of the pool",
        spec.PKV_09,
        {"write": _all_pages_of_padding},
        "vLLM's slot mapping of padding, -1",
    ),
    Fault(
        "paged-blended",
        "a slot's NaN survives being written, as old · (1 - mask) + new · mask has it",
        spec.PKV_10,
        {"write": _blended},
        "PROPERTIES PA2",
    ),
    Fault("paged-added", "tokens are added to what their slots held", spec.PKV_10, {"write": _added}, "PROPERTIES BK3"),
    Fault("paged-float32", "gather returns float32", spec.PKV_11, {"respond": _promoting}, "PROPERTIES X4"),
    Fault(
        "paged-rewinds-whole-pages",
        "a rewind drops as many whole pages as n tokens make, and no part of one",
        spec.PKV_12,
        {"drop": _in_whole_pages},
        TIRED,
    ),
    Fault(
        "paged-rewinds-first-pages",
        "a rewind gives back the first pages in place of the last",
        spec.PKV_12,
        {"drop": _first_pages},
        TIRED,
    ),
    Fault(
        "paged-rewinds-to-page-start",
        "a rewind that gives back a page drops the tokens of the one before that do not fill it",
        spec.PKV_12,
        {"drop": _to_page_start},
        "PROPERTIES PG3",
    ),
    Fault(
        "paged-rewind-keeps-pages",
        "a rewind gives back no page",
        spec.PKV_13,
        {"drop": _pages_kept},
        f"{VLLM_METAL}/bb14a36",
    ),
    Fault(
        "paged-rewind-one-page",
        "a rewind gives back one page at most",
        spec.PKV_13,
        {"drop": _one_page},
        "PROPERTIES PG4",
    ),
    Fault(
        "paged-rewind-pages-of-n",
        "a rewind gives back the pages that n tokens fill, not those that became empty",
        spec.PKV_13,
        {"drop": _whole_pages_of_n},
        "PROPERTIES PG3",
    ),
    Fault(
        "paged-rewind-page-in-use",
        "a rewind gives back the last page while it holds tokens",
        spec.PKV_13,
        {"drop": _floor},
        "PROPERTIES PG3",
    ),
    Fault(
        "paged-rewind-keeps-empty-page",
        "a rewind to a page's end keeps the empty page behind it",
        spec.PKV_13,
        {"drop": _one_kept},
        "PROPERTIES PG3",
    ),
    Fault(
        "paged-rewind-loses-pages",
        "a rewind forgets the pages that became empty without giving them back",
        spec.PKV_13,
        {"drop": _pages_lost},
        MINIVLLM,
    ),
    Fault(
        "paged-rewind-minus-zero",
        "a rewind by 0 drops all tokens",
        spec.PKV_14,
        {"drop": _minus_zero},
        "Python's [:-0]",
    ),
    Fault(
        "paged-rewind-first-page-kept",
        "a cache that is rewound by all its tokens keeps its first page",
        spec.PKV_14,
        {"drop": _first_kept},
        "PROPERTIES PG4",
    ),
    Fault(
        "paged-rewind-clamped",
        "a rewind too far drops all tokens",
        spec.PKV_15,
        {"check_rewind": _any_rewind, "drop": _clamped},
        TIRED,
    ),
    Fault(
        "paged-rewind-forwards",
        "a rewind by less than none has no effect and is not refused",
        spec.PKV_15,
        {"check_rewind": _forwards_too, "drop": _clamped},
        TIRED,
    ),
    Fault(
        "paged-rewinds-then-refuses",
        "a refused rewind has dropped tokens",
        spec.PKV_16,
        {"rewind": _rewinds_then_refuses},
        "PROPERTIES PG5",
    ),
    Fault(
        "paged-rewind-frees-then-refuses",
        "a refused rewind has given back a page",
        spec.PKV_16,
        {"rewind": _pages_then_refuses},
        "PROPERTIES PG5",
    ),
    Fault(
        "paged-release-keeps-tail",
        "a last page that is filled in part is not given back",
        spec.PKV_17,
        {"let_go": _tail_not_released},
        MINIVLLM,
    ),
    Fault(
        "paged-release-first-page",
        "only the first page is given back",
        spec.PKV_17,
        {"let_go": _first_alone},
        "tiny-llm course, week 3 day 2; FACTS: one layer's slot freed",
    ),
    Fault(
        "paged-release-last-page-twice",
        "the last page is given back twice",
        spec.PKV_17,
        {"let_go": _released_twice},
        f"{VLLM}/3347",
    ),
    Fault(
        "paged-release-resets-pool",
        "a release frees every page of the pool",
        spec.PKV_17,
        {"let_go": _pool_reset},
        TIRED,
    ),
    Fault(
        "paged-released-twice",
        "a second release puts the pages on the free list again",
        spec.PKV_18,
        {"let_go": _freed_again},
        f"{TENSORRT}/14937",
    ),
    Fault(
        "paged-released-from-new-owner",
        "a second release frees the pages of whoever has them now",
        spec.PKV_18,
        {"let_go": _freed_from_new_owner},
        "PROPERTIES PG2",
    ),
    Fault(
        "paged-released-offset",
        "a released cache keeps its offset",
        spec.PKV_19,
        {"let_go": _length_kept, "offset_of": _shown},
        f"{INVARIANTS} 1",
    ),
    Fault(
        "paged-released-ids",
        "a released cache keeps its page_ids",
        spec.PKV_19,
        {"let_go": _ids_kept, "pages": _old_ids},
        f"{VLLM_METAL}/bb14a36",
    ),
    Fault(
        "paged-full-own-first-page",
        "where no page is free a cache uses its first one again",
        spec.PKV_20,
        {"check_room": _any_room, "grow": _own_first_page},
        "the kind of mlx-lm 358b4d2a",
    ),
    Fault(
        "paged-full-cuts",
        "what the pool has no room for is left out",
        spec.PKV_20,
        {"check_room": _any_room, "extend": _cut_short},
        TIRED,
    ),
    Fault(
        "paged-full-takes-then-refuses",
        "offset and pages have moved on when the pool turns out to be empty",
        spec.PKV_21,
        {"check_room": _any_room},
        f"{VLLM}/11565",
    ),
    Fault(
        "paged-full-keeps-pages",
        "pages taken before the pool is empty stay with the cache",
        spec.PKV_21,
        {"check_room": _any_room, "extend": _length_last},
        f"{VLLM}/11565",
    ),
    Fault(
        "paged-full-loses-pages",
        "pages taken before the pool is empty are nobody's",
        spec.PKV_21,
        {"check_room": _any_room, "grow": _pages_forgotten, "extend": _length_last},
        "PROPERTIES PG4, PG5",
    ),
    Fault(
        "paged-full-fills-then-refuses",
        "what fits of a chunk is in the cache when it is refused",
        spec.PKV_21,
        {"check_room": _any_room, "extend": _fills_then_refuses},
        "PROPERTIES PG5",
    ),
    Fault(
        "paged-full-releases",
        "a cache that finds no page gives back those that it has",
        spec.PKV_21,
        {"check_room": _releases_when_full},
        "https://github.com/neuralmagic/vllm/pull/92",
    ),
    Fault(
        "paged-keeps-a-page",
        "the last free page is never used",
        spec.PKV_22,
        {"check_room": _reserve},
        "vLLM's watermark",
    ),
    Fault(
        "paged-tail-not-counted",
        "a chunk is refused though the last page has room for it",
        spec.PKV_22,
        {"check_room": _tail_not_counted},
        "PROPERTIES SC6, PG3",
    ),
    Fault("paged-first-row", "of more rows than one the first is cached", spec.PKV_23, _fits_but(batch=True), TIRED),
    Fault(
        "paged-one-token-for-all",
        "one value serves for all keys of a chunk",
        spec.PKV_23,
        _fits_but(length=True),
        TIRED,
    ),
    Fault("paged-one-head-for-all", "one head serves for all of the pool's", spec.PKV_23, _fits_but(heads=True), TIRED),
    Fault(
        "paged-one-dim-for-all", "a head dim of 1 is spread over the pool's", spec.PKV_23, _fits_but(dims=True), TIRED
    ),
    Fault("paged-takes-flat", "H×L×D is taken for 1×H×L×D", spec.PKV_23, _fits_but(rank=True), TIRED),
    Fault(
        "paged-casts",
        "other dtypes are cast to the pool's",
        spec.PKV_24,
        {"check_dtype": _any_dtype},
        f"{VLLM_METAL}/59b9be4",
    ),
    Fault(
        "paged-casts-values",
        "values of another dtype are cast to the pool's",
        spec.PKV_24,
        {"check_dtype": _key_dtype_alone},
        f"{VLLM_METAL}/59b9be4",
    ),
    Fault(
        "paged-pages-before-checks",
        "pages are taken before the arrays are looked at",
        spec.PKV_25,
        {"check_append": _pages_before_checks},
        f"{VLLM}/11565",
    ),
    Fault(
        "paged-offset-before-checks",
        "the offset has moved on when a chunk is refused",
        spec.PKV_25,
        {"check_append": _offset_before_checks},
        "PROPERTIES PG5",
    ),
    Fault(
        "paged-key-strides", "strides of the key are not looked at", spec.PKV_26, _strides_of("key"), "PROPERTIES X1"
    ),
    Fault(
        "paged-value-strides",
        "strides of the value are not looked at",
        spec.PKV_26,
        _strides_of("value"),
        "PROPERTIES X1",
    ),
    Fault("paged-changes-key", "an append clears the key", spec.PKV_27, _changes("key"), "PROPERTIES X6"),
    Fault("paged-changes-value", "an append clears the value", spec.PKV_27, _changes("value"), "PROPERTIES X6"),
    Fault(
        "paged-by-reference",
        "a chunk is read again from the caller's arrays when it is gathered",
        spec.PKV_28,
        {"write": _by_reference, "gathered": _writes_late},
        "PROPERTIES X6",
    ),
    Fault(
        "paged-gather-view",
        "what gather returns of a single page is the page itself",
        spec.PKV_29,
        {"gathered": _view_of_one_page},
        "PROPERTIES X7",
    ),
    Fault(
        "paged-gather-buffer",
        "every gather returns the same buffer",
        spec.PKV_29,
        {"gathered": _same_buffer},
        "PROPERTIES X7",
    ),
    Fault(
        "paged-single-page-lost",
        "a request of one page does not give it back",
        spec.PKV_30,
        {"let_go": _single_page_kept},
        MINIVLLM,
    ),
    Fault(
        "paged-full-pages-returned",
        "a request gives back the pages that its tokens fill, at least one",
        spec.PKV_30,
        {"let_go": _rewound_release},
        "PROPERTIES PG4",
    ),
    Fault(
        "paged-pool-of-the-class", "all pools share one free list", spec.PKV_31, {"fresh_pool": _of_the_class}, TIRED
    ),
    Fault("paged-ids-of-16-bits", "page ids are held in 16 bits", spec.PKV_32, _ids_of(np.uint16), "PROPERTIES X8"),
    Fault(
        "paged-ids-of-16-bits-signed",
        "page ids are held in 16 bits with a sign",
        spec.PKV_32,
        _ids_of(np.int16),
        "PROPERTIES X8",
    ),
    Fault(
        "table-sorted",
        "entries are in the order of the ids",
        spec.TABLE_01,
        {"padded": _table_sorted},
        f"{INVARIANTS} 2",
    ),
    Fault(
        "table-by-length",
        "rows are in the order of their lengths",
        spec.TABLE_01,
        {"padded": _by_length},
        "PROPERTIES CB4",
    ),
    Fault(
        "table-padded-in-front",
        "padding stands before a row's pages, as batches of dense caches have it",
        spec.TABLE_01,
        {"padded": _aligned_at_end},
        TIRED,
    ),
    Fault(
        "table-as-wide-as-first",
        "the table is as wide as its first row",
        spec.TABLE_01,
        {"padded": _as_wide_as_first},
        TIRED,
    ),
    Fault(
        "table-full-pages",
        "a last page that is filled in part is not in the table",
        spec.TABLE_01,
        {"padded": _full_pages_alone},
        "PROPERTIES PG3",
    ),
    Fault(
        "table-lens-of-slots",
        "context_lens counts the slots of all pages",
        spec.TABLE_02,
        {"context_lens": _slots_of_rows},
        f"{INVARIANTS} 1",
    ),
    Fault("table-lens-in-pages", "context_lens counts pages", spec.TABLE_02, {"context_lens": _pages_of_rows}, TIRED),
    Fault(
        "table-lens-of-longest",
        "every row has the longest length",
        spec.TABLE_02,
        {"context_lens": _longest_of_all},
        "PROPERTIES PA5",
    ),
    Fault(
        "table-empty-rows-left-out",
        "rows without tokens are left out",
        spec.TABLE_02,
        {"table": _busy_rows},
        "PROPERTIES BK4",
    ),
    Fault(
        "table-lens-of-before",
        "context_lens are made anew only when pages change",
        spec.TABLE_03,
        {"context_lens": _remembered},
        "PROPERTIES PC10",
    ),
    Fault(
        "table-of-before",
        "the table is made anew only when its shape changes",
        spec.TABLE_03,
        {"padded": _only_once},
        "PROPERTIES PC10",
    ),
    *BATCH_FAULTS,
)


# honest ways


def _queue(self: PagePool, pool: Pool) -> int:
    """The page that has been free for longest."""
    pool.free.reverse()
    try:
        return PagePool.take(self, pool)
    finally:
        pool.free.reverse()


def _lowest(self: PagePool, pool: Pool) -> int:
    if vars(pool).get("in_order") != len(pool.free):  # none came back since
        pool.free.sort(reverse=True)
    page = PagePool.take(self, pool)
    pool.in_order = len(pool.free)
    return page


def _garbage(self: PagePool, a: Arguments) -> Pool:
    pool = PagePool.fresh_pool(self, a)
    for x in (pool.keys, pool.values):
        x[...] = np.nan
    return pool


def _wipes(self: PagedKVCache, story: Story, cache: Cache) -> None:
    pages = list(cache.pages)
    PagedKVCache.let_go(self, story, cache)
    story.pool.keys[pages] = story.pool.values[pages] = 0


def _filled_up(
    self: PagedKVCache, story: Story, cache: Cache, positions: np.ndarray, key: np.ndarray, value: np.ndarray
) -> None:
    """The last page is filled up with zeros."""
    PagedKVCache.write(self, story, cache, positions, key, value)
    if positions.size:
        page, slot = divmod(int(positions[-1]), story.a.page_size)
        for written in (story.pool.keys, story.pool.values):
            written[cache.pages[page], :, slot + 1 :] = 0


def _first_page_first(self: PagedKVCache, story: Story, cache: Cache) -> None:
    cache.pages.reverse()
    PagedKVCache.let_go(self, story, cache)


def _closes(self: PagedKVCache, story: Story, cache: Cache) -> None:
    """A second release is an error."""
    if getattr(cache, "closed", False):
        raise ValueError("released already")
    PagedKVCache.let_go(self, story, cache)
    cache.closed = True


def _minus_one_behind(self: spec.BlockTable, story: Story, rows: Sequence[Cache]) -> np.ndarray:
    """Padding of -1, and a table that is wider than it need be."""
    table = np.full((len(rows), max(len(row.pages) for row in rows) + 3), -1, np.int64)
    for entries, row in zip(table, rows, strict=True):
        entries[: len(row.pages)] = row.pages
    return table


VARIANTS: tuple[Variant, ...] = (
    Variant("pool-queue", "the page that was free for longest", "PagePool", {"take": _queue}),
    Variant("pool-lowest", "the lowest page that is free", "PagePool", {"take": _lowest}),
    Variant("paged-queue", "the page that was free for longest", "PagedKVCache", {"take": _queue}),
    Variant("paged-lowest", "the lowest page that is free", "PagedKVCache", {"take": _lowest}),
    Variant("paged-garbage", "pages begin with garbage", "PagedKVCache", {"fresh_pool": _garbage}),
    Variant("paged-wipes", "released pages are cleared", "PagedKVCache", {"let_go": _wipes}),
    Variant("paged-filled-up", "pages are filled up with zeros", "PagedKVCache", {"write": _filled_up}),
    Variant("paged-first-page-first", "pages are given back in order", "PagedKVCache", {"let_go": _first_page_first}),
    Variant("paged-closes", "a second release is an error", "PagedKVCache", {"let_go": _closes}),
    Variant("table-minus-one", "a wide table with -1 for padding", "block_table", {"padded": _minus_one_behind}),
    *BATCH_VARIANTS,
)
