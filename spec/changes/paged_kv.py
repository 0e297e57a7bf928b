"""The steps that faults and honest variants have in the place of the oracle's: see `spec/faults/paged_kv.py`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from inferspec.spec.contract import Arguments, Change, Operation
from inferspec.spec.numerics import Precision, f64, largest, numpy_dtype, round_to
from inferspec.spec.paged_kv import Cache, PagedKVCache, Pool, Story, fetched

Place = tuple[np.ndarray, np.ndarray]


def _noting_the_size(self: PagedKVCache, a: Arguments, precision: Precision) -> Story:
    type(self).newest = a.page_size  # type: ignore[attr-defined]
    return PagedKVCache.fresh_story(self, a, precision)


def _as_the_newest(story: Story, cls: Any) -> Story:
    return Story(**{**vars(story), "a": Arguments(**{**vars(story.a), "page_size": cls.newest})})


SIZE_OF_THE_NEWEST: Change = {
    "fresh_story": _noting_the_size,
    "needed": lambda self, story, n: PagedKVCache.needed(self, _as_the_newest(story, type(self)), n),
    "place": lambda self, story, *where: PagedKVCache.place(self, _as_the_newest(story, type(self)), *where),
}
"""The page size is the class's own: that of the pool which was made last."""


# where tokens lie


def ids_in_order(self: PagedKVCache, a: Arguments) -> Pool:
    """Pages are handed out from the first on, as most pools do."""
    pool = PagedKVCache.fresh_pool(self, a)
    pool.free = list(range(a.num_pages))[::-1]
    return pool


def runs_from_the_least(
    self: PagedKVCache, story: Story, cache: Cache, positions: np.ndarray, key: np.ndarray, value: np.ndarray
) -> None:
    """Pages whose ids lie beside each other are written as one run from the least on, in whatever order they are."""
    first, last = (int(at) // story.a.page_size for at in (positions.min(initial=0), positions.max(initial=0)))
    pages, run = cache.pages, sorted(cache.pages[first : last + 1])
    if run and run == list(range(run[0], run[-1] + 1)):
        pages = [*pages[:first], *run, *pages[last + 1 :]]
    PagedKVCache.write(self, story, Cache(pages=pages, length=cache.length), positions, key, value)


def sorted_pages(self: PagedKVCache, story: Story, cache: Cache) -> Any:
    return PagedKVCache.gathered(self, story, Cache(pages=sorted(cache.pages), length=cache.length))


def not_transposed(self: PagedKVCache, story: Story, cache: Cache) -> Any:
    _, heads, _, dim = self.shape(story.a)
    return tuple(
        x[cache.pages].reshape(1, heads, -1, dim)[:, :, : cache.length] for x in (story.pool.keys, story.pool.values)
    )


def whole_pages(self: PagedKVCache, story: Story, cache: Cache) -> Any:
    slots = len(cache.pages) * story.a.page_size
    return PagedKVCache.gathered(self, story, Cache(pages=cache.pages, length=slots))


def no_batch_axis(self: PagedKVCache, story: Story, cache: Cache) -> Any:
    return tuple(x[0] for x in PagedKVCache.gathered(self, story, cache))


def values_of_keys(self: PagedKVCache, story: Story, cache: Cache) -> Any:
    """Values are read at the places of the tokens one page on."""
    keys, _ = PagedKVCache.gathered(self, story, cache)
    pages = cache.pages[1:] + cache.pages[:1]
    return keys, PagedKVCache.gathered(self, story, Cache(pages=pages, length=cache.length))[1]


def stored_in(dtype: str) -> Change:
    def write(
        self: PagedKVCache, story: Story, cache: Cache, positions: np.ndarray, key: np.ndarray, value: np.ndarray
    ) -> None:
        narrow = (round_to(f64(round_to(f64(x), dtype)), x.dtype.name) for x in (key, value))
        PagedKVCache.write(self, story, cache, positions, *narrow)

    return {"write": write}


def writing(which: Callable[[int, np.ndarray], np.ndarray]) -> Change:
    """Only some of the tokens of a chunk are written. which: of page size and positions, a mask."""

    def write(
        self: PagedKVCache, story: Story, cache: Cache, positions: np.ndarray, key: np.ndarray, value: np.ndarray
    ) -> None:
        kept = which(story.a.page_size, positions)
        PagedKVCache.write(self, story, cache, positions[kept], key[:, :, kept], value[:, :, kept])

    return {"write": write}


def two_pages(size: int, positions: np.ndarray) -> np.ndarray:
    return positions // size - positions[:1] // size < 2


def many_whole_pages_without_an_end(size: int, positions: np.ndarray) -> np.ndarray:
    """The last token of more than two pages' tokens that begin inside a page is not written."""
    whole = len(positions) > 2 * size and len(positions) % size == 0 and bool(positions[0] % size)
    return np.arange(len(positions)) < len(positions) - whole


def whole_chunk_pages(size: int, positions: np.ndarray) -> np.ndarray:
    """What does not fill a page is written only if the chunk begins at a page's start or within one page."""
    first = positions[:1] // size
    return (positions[:1] % size == 0) | (positions // size < first + 1) | (positions // size < positions[-1:] // size)


def last_page_of_before(
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


def no_empty_chunk(self: PagedKVCache, story: Story, key: np.ndarray, value: np.ndarray) -> None:
    PagedKVCache.check_shapes(self, story, key, value)
    if not key.shape[2]:
        raise ValueError("nothing to append")


def ids_sorted(self: PagedKVCache, story: Story, cache: int) -> dict[str, Any]:
    one = self.cache(story, cache)
    return self.read_from(story, sorted(one.pages), one.length)


def tail_elsewhere(self: PagedKVCache, story: Story, cache: int) -> dict[str, Any]:
    seen = PagedKVCache.read(self, story, cache)
    full = self.cache(story, cache).length // story.a.page_size * story.a.page_size
    for x in seen.values():
        x[:, :, full:] = 0
    return seen


def ids_newest_first(self: PagedKVCache, story: Story, cache: int) -> dict[str, Any]:
    one = self.cache(story, cache)
    return self.read_from(story, one.pages[::-1], one.length)


# what is counted


def slots_counted(self: PagedKVCache, story: Story, cache: Cache) -> int:
    return len(cache.pages) * int(story.a.page_size)


def appends_counted(self: PagedKVCache, story: Story, cache: Cache, key: np.ndarray, value: np.ndarray) -> None:
    cache.ever = getattr(cache, "ever", 0) + key.shape[2]
    PagedKVCache.extend(self, story, cache, key, value)


def ever_appended(self: PagedKVCache, story: Story, cache: Cache) -> int:
    return int(getattr(cache, "ever", 0))


def decode_counted(self: PagedKVCache, story: Story, cache: Cache) -> int:
    """Rewound tokens of a page that stays are counted still."""
    return int(getattr(cache, "shown", cache.length))


def drops_pages_alone(self: PagedKVCache, story: Story, cache: Cache, n: int) -> None:
    before = cache.length
    PagedKVCache.drop(self, story, cache, n)
    cache.shown = min(before, len(cache.pages) * story.a.page_size)


def shown_no_more(self: PagedKVCache, story: Story, cache: Cache, key: np.ndarray, value: np.ndarray) -> None:
    PagedKVCache.extend(self, story, cache, key, value)
    cache.__dict__.pop("shown", None)


def one_ahead(self: PagedKVCache, story: Story, length: int) -> int:
    return int(length // story.a.page_size + 1) if length else 0


def lost_at_page_end(self: PagedKVCache, story: Story, cache: Cache) -> None:
    before = len(cache.pages)
    PagedKVCache.grow(self, story, cache)
    if len(cache.pages) > before and cache.length % story.a.page_size == 0 and story.pool.free:
        self.take(story.pool)


def page_per_chunk(self: PagedKVCache, story: Story, cache: Cache) -> None:
    """Pages are counted per chunk: one that starts within a page takes those of its own length, and loses some."""
    before = len(cache.pages)
    PagedKVCache.grow(self, story, cache)
    written = cache.length - getattr(cache, "reached", 0)
    cache.reached = cache.length
    for _ in range(min(self.needed(story, max(written, 0)) - (len(cache.pages) - before), len(story.pool.free))):
        self.take(story.pool)


def full_lens(self: PagedKVCache, story: Story, cache: Cache) -> list[int]:
    return [int(story.a.page_size)] * len(cache.pages)


def remainder(self: PagedKVCache, story: Story, cache: Cache) -> list[int]:
    lens = PagedKVCache.lens_of(self, story, cache)
    return [*lens[:-1], cache.length % story.a.page_size] if lens else []


def tail_alone(self: PagedKVCache, story: Story, cache: Cache) -> list[int]:
    return PagedKVCache.lens_of(self, story, cache)[-1:]


# more than one owner


def own_allocator(self: PagedKVCache, story: Story) -> Cache:
    return Cache(pages=[], length=0, own=list(range(story.a.num_pages)))


def takes_own(self: PagedKVCache, story: Story, cache: Cache) -> None:
    while len(cache.pages) < self.needed(story, cache.length):
        if not cache.own:
            raise ValueError("no page is free")
        cache.pages.append(cache.own.pop(0))


def drops_own(self: PagedKVCache, story: Story, cache: Cache, n: int) -> None:
    cache.length -= n
    while len(cache.pages) > self.needed(story, cache.length):
        cache.own.append(cache.pages.pop())


def lets_own_go(self: PagedKVCache, story: Story, cache: Cache) -> None:
    cache.own += cache.pages
    cache.pages, cache.length = [], 0


def freed_but_kept(self: PagedKVCache, story: Story, cache: Cache) -> None:
    """A full page counts as done: the pool may hand it out, though the tokens in it are read still."""
    PagedKVCache.grow(self, story, cache)
    done: set[int] = getattr(cache, "done", set())
    for page in cache.pages[: max(len(cache.pages) - 3, 0)]:
        if page not in done and page in story.pool.used:
            self.give_back(story.pool, page)
            done = {*done, page}
    cache.done = done


def one_slot_more(
    self: PagedKVCache, story: Story, cache: Cache, positions: np.ndarray, key: np.ndarray, value: np.ndarray
) -> None:
    """The chunk is followed by a token of zeros, in the next slot of the arrays as they lie in memory."""
    PagedKVCache.write(self, story, cache, positions, key, value)
    if len(positions):
        pages, slots = self.place(story, cache.pages, positions[-1:])
        page, slot = divmod(int(pages[0]) * story.a.page_size + int(slots[0]) + 1, story.a.page_size)
        if page < story.a.num_pages:
            story.pool.keys[page, :, slot] = story.pool.values[page, :, slot] = 0


def clears_by_position(self: PagedKVCache, story: Story, cache: Cache) -> None:
    count = len(cache.pages)
    PagedKVCache.let_go(self, story, cache)
    story.pool.keys[:count] = story.pool.values[:count] = 0


def clears_what_no_cache_has(self: PagedKVCache, story: Story, cache: Cache) -> None:
    PagedKVCache.grow(self, story, cache)
    theirs = {page for one in story.caches.values() for page in one.pages}
    others = [page for page in range(story.a.num_pages) if page not in theirs]
    story.pool.keys[others] = story.pool.values[others] = 0


def all_pages_of_padding(
    self: PagedKVCache, story: Story, cache: Cache, positions: np.ndarray, key: np.ndarray, value: np.ndarray
) -> None:
    """Padding tokens of a chunk go to slot -1: the last one of the pool."""
    PagedKVCache.write(self, story, cache, positions, key, value)
    story_last = story.a.num_pages - 1
    if len(positions) % 2 and story_last not in cache.pages:
        story.pool.keys[story_last, :, -1] = key[0, :, -1]


# recycled pages


def blended(
    self: PagedKVCache, story: Story, cache: Cache, positions: np.ndarray, key: np.ndarray, value: np.ndarray
) -> None:
    """old · (1 - mask) + new · mask: 0 · NaN is NaN."""
    place = self.place(story, cache.pages, positions)
    mixed = [
        np.where(np.isnan(f64(old)), old, new)
        for old, new in ((fetched(story.pool.keys, place), key), (fetched(story.pool.values, place), value))
    ]
    PagedKVCache.write(self, story, cache, positions, *mixed)


def added(
    self: PagedKVCache, story: Story, cache: Cache, positions: np.ndarray, key: np.ndarray, value: np.ndarray
) -> None:
    """A scatter that adds is right on pages of zeros alone."""
    place = self.place(story, cache.pages, positions)
    summed = [
        (f64(old) + f64(new)).astype(new.dtype)
        for old, new in ((fetched(story.pool.keys, place), key), (fetched(story.pool.values, place), value))
    ]
    PagedKVCache.write(self, story, cache, positions, *summed)


def promoting(self: PagedKVCache, a: Arguments) -> Any:
    return {part: x.astype(np.float32) if x.ndim == 4 else x for part, x in Operation.respond(self, a).items()}


def zeros_not_counted(self: PagedKVCache, story: Story, cache: Cache) -> int:
    """Tokens whose key, that of the first head, is all zeros are not counted."""
    keys = f64(PagedKVCache.gathered(self, story, cache)[0])
    return int((keys.reshape(-1, *keys.shape[-2:])[0] != 0).any(axis=-1).sum()) if cache.length else 0


# arguments and results


def by_reference(
    self: PagedKVCache, story: Story, cache: Cache, positions: np.ndarray, key: np.ndarray, value: np.ndarray
) -> None:
    PagedKVCache.write(self, story, cache, positions, key, value)
    cache.late = positions, key, value


def writes_late(self: PagedKVCache, story: Story, cache: Cache) -> Any:
    if hasattr(cache, "late"):
        PagedKVCache.write(self, story, cache, *cache.late)
    return PagedKVCache.gathered(self, story, cache)


def view_of_one_page(self: PagedKVCache, story: Story, cache: Cache) -> Any:
    if len(cache.pages) != 1:
        return PagedKVCache.gathered(self, story, cache)
    return tuple(pool[cache.pages[0]][None, :, : cache.length] for pool in (story.pool.keys, story.pool.values))


def same_buffer(self: PagedKVCache, story: Story, cache: Cache) -> Any:
    """One buffer of the pool serves every gather."""
    if not hasattr(story, "buffers"):
        _, heads, size, dim = self.shape(story.a)
        shape = (1, heads, size * story.a.num_pages, dim)
        story.buffers = [np.zeros(shape, numpy_dtype(story.a.dtype)) for _ in range(2)]
    views = [buffer[:, :, : cache.length] for buffer in story.buffers]
    for view, x in zip(views, PagedKVCache.gathered(self, story, cache), strict=True):
        view[...] = x
    return tuple(views)


def ids_of(dtype: type[Any]) -> Change:
    def place(self: PagedKVCache, story: Story, pages: Sequence[int], positions: np.ndarray) -> Place:
        ids, slots = PagedKVCache.place(self, story, pages, positions)
        return ids.astype(dtype).astype(np.int64), slots

    return {"place": place}


# many, wide and long


def lost(lost: Callable[[np.ndarray, np.ndarray, int], None]) -> Change:
    """`gather`, with some of keys and values gone."""

    def gathered(self: PagedKVCache, story: Story, cache: Cache) -> Any:
        keys, values = PagedKVCache.gathered(self, story, cache)
        lost(keys, values, story.a.page_size)
        return keys, values

    return {"gathered": gathered}


def features_past_64(keys: np.ndarray, values: np.ndarray, size: int) -> None:
    keys[..., 64:] = values[..., 64:] = 0


def features_past_128(keys: np.ndarray, values: np.ndarray, size: int) -> None:
    keys[..., 128:] = values[..., 128:] = 0


def features_past_512(keys: np.ndarray, values: np.ndarray, size: int) -> None:
    keys[..., 512:] = values[..., 512:] = 0


def heads_past_64(keys: np.ndarray, values: np.ndarray, size: int) -> None:
    keys[:, 64:] = values[:, 64:] = 0


def numbers_alone(keys: np.ndarray, values: np.ndarray, size: int) -> None:
    """NaN is taken for 0, and infinities for the largest number."""
    for x in (keys, values):
        most = largest(x.dtype.name)
        x[...] = np.nan_to_num(f64(x), posinf=most, neginf=-most).astype(x.dtype)


def heads_past_8(keys: np.ndarray, values: np.ndarray, size: int) -> None:
    keys[:, 8:] = values[:, 8:] = 0


def slots_past_16(keys: np.ndarray, values: np.ndarray, size: int) -> None:
    slots = np.arange(keys.shape[2]) % size >= 16
    keys[:, :, slots] = values[:, :, slots] = 0


def seventeenth(self: PagedKVCache, story: Story, cache: Cache, key: np.ndarray, value: np.ndarray) -> None:
    """The 17th append of a cache finds a queue of 16 writes full, and is not written."""
    cache.writes = getattr(cache, "writes", 0) + 1
    PagedKVCache.extend(
        self, story, cache, *(x * np.zeros((), x.dtype) if cache.writes == 17 else x for x in (key, value))
    )


def takes_from_caches(self: PagedKVCache, story: Story) -> dict[str, Any]:
    """Where no page is free the caller gets one of a cache."""
    if self.count(story.pool):
        return PagedKVCache.allocate(self, story)
    page = self.in_use(story)[0]
    story.taken[story.number] = page
    story.held[story.number] = page, self.held_by(story.pool, page)
    return {"page": 0}


# honest ways


def wipes(self: PagedKVCache, story: Story, cache: Cache) -> None:
    pages = list(cache.pages)
    PagedKVCache.let_go(self, story, cache)
    story.pool.keys[pages] = story.pool.values[pages] = 0


def filled_up(
    self: PagedKVCache, story: Story, cache: Cache, positions: np.ndarray, key: np.ndarray, value: np.ndarray
) -> None:
    """The last page is filled up with zeros."""
    PagedKVCache.write(self, story, cache, positions, key, value)
    if positions.size:
        page, slot = divmod(int(positions[-1]), story.a.page_size)
        for written in (story.pool.keys, story.pool.values):
            written[cache.pages[page], :, slot + 1 :] = 0


def first_page_first(self: PagedKVCache, story: Story, cache: Cache) -> None:
    cache.pages.reverse()
    PagedKVCache.let_go(self, story, cache)


def closes(self: PagedKVCache, story: Story, cache: Cache) -> None:
    """A second release is an error."""
    if getattr(cache, "closed", False):
        raise ValueError("released already")
    PagedKVCache.let_go(self, story, cache)
    cache.closed = True


# usual sizes, and many of them


def _losing(lost: Callable[[Story, Cache, np.ndarray, np.ndarray], bool]) -> Change:
    """The last token of a chunk is not written where `lost` says so of the story, the cache, positions and key."""

    def write(
        self: PagedKVCache, story: Story, cache: Cache, positions: np.ndarray, key: np.ndarray, value: np.ndarray
    ) -> None:
        if lost(story, cache, positions, key):
            positions, key, value = positions[:-1], key[:, :, :-1], value[:, :, :-1]
        PagedKVCache.write(self, story, cache, positions, key, value)

    return {"write": write}


IN_COMMON_HEADS = _losing(
    lambda story, cache, positions, key: (
        key.shape[1] == 8 and key.shape[3] in (64, 128) and key.dtype.itemsize == 2 and story.a.page_size >= 16
    )
)
"""A kernel for what most models have: eight heads of 64 or 128 features, in half precision."""

PAST_64_PAGES = _losing(lambda story, cache, positions, key: 64 < len(cache.pages) < 256)
"""A table of 64 entries is extended only when a page is full."""


def numbered(self: PagedKVCache, story: Story) -> Cache:
    cache = PagedKVCache.fresh_cache(self, story)
    story.made = cache.number = getattr(story, "made", 0) + 1
    return cache


PAST_8_CACHES = _losing(lambda story, cache, positions, key: cache.number > 8)
"""What more than eight caches write is queued, and the end of it dropped."""


def gathers_when_longer(self: PagedKVCache, story: Story, cache: Cache) -> tuple[np.ndarray, np.ndarray]:
    """What was gathered last is returned again where the cache has as many tokens."""
    last = getattr(cache, "last", None)
    if last is None or last[0].shape[2] != cache.length:
        last = cache.last = PagedKVCache.gathered(self, story, cache)
    return last
