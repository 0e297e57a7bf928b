"""Paged key/value storage: a pool of fixed-size pages with one allocator, and caches that keep their tokens in it.

Shapes: P pages, H key/value heads, page_size slots a page, head dim D: the pool's arrays are P×H×page_size×D. A cache is
one request's tokens in one layer: keys and values 1×H×L×D come in, 1×H×S×D come back. Token p of a cache lies in page
page_ids[p // page_size], slot p % page_size, so that `paged_attention` can read it there.

A call is a story of one pool with any number of caches, named by numbers and made at their first mention. Its steps:

    allocate()                 the caller takes a page for itself: 1 if the pool has it and nobody else uses it
    free(step)                 the caller gives back the page that it got in an earlier step, perhaps once more
    free_id(page)              the caller gives back a page of that id, which the pool does not have
    free_foreign()             the caller gives back a page that the pool has and nobody uses
    num_free()                 how many pages are free
    storage()                  the shapes of key_pages and value_pages, and whether both are of the pool's dtype
    append(cache, key, value)  append L tokens, 0 too
    gather(cache)              keys and values of all tokens, as one array each
    read(cache)                the same, read from key_pages and value_pages by page_ids and offset
    offset(cache)              how many tokens the cache holds
    pages(cache)               how many page_ids it has, and its page_lens
    ids()                      page_ids of all caches and pages of the caller, numbered in the order of first sight
    contents()                 for each page of the caller: 1 if it holds what it held when it was allocated
    rewind(cache, n)           drop the last n tokens
    release(cache)             give back all pages; the request is over
    release_again(cache)       the same for a cache that was released, an error or not
    reread(step)               what an earlier `gather` returned, as it is now
    abroad(…, key, value)      a cache of another pool, of num_pages and page_size, which is made with the first of these, is
                               given L tokens
    overwrite(step)            the caller writes NaN over the key and value that it gave to an earlier step
    table(caches)              context_lens of a batch, and the tokens of each row read by the block table
    reread_table(step)         1 if table and context_lens of an earlier step are what they were
    attend(caches, query)      paged attention, causal, of the L queries of each row over the cache that it names, by
                               the block table and context_lens of the batch: B×H_q×L×D

A step that raises gives the part `refused`, has changed nothing, and the story goes on. Left open: which page is handed
out, what pages that nobody uses hold, what becomes of tokens of another dtype that are taken, whether a released cache can
be used again, and whether the pool notices that a caller frees a page of a cache.

Sources: the tiny-llm course, week 3 days 1 and 2 ("Correctness Invariants"); Kwon et al. 2023 (PagedAttention),
section 4; PROPERTIES PG1 to PG7.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import SimpleNamespace
from typing import Any, ClassVar

import numpy as np

from inferspec.spec.contract import (
    STORY,
    Answer,
    Answers,
    Arguments,
    Beside,
    Contract,
    Operation,
    Signature,
)
from inferspec.spec.numerics import Precision, f64, numpy_dtype
from inferspec.spec.paged_attention import PagedAttention
from inferspec.spec.paged_kv_sentences import SENTENCES

Pool = SimpleNamespace
"""The model of a pool: `free`, ids in the order in which they are handed out; `used`, the others; `keys` and `values`."""

Cache = SimpleNamespace
"""The model of a cache: its `pages` and its `length` in tokens."""

Story = SimpleNamespace
"""What a story knows on its way: the arguments `a`, the class of `precision`, the `pool`, the `caches` by number and those
that are `over`, the story `abroad`, of another pool, the caller's pages `held` with what they held, and by number of the
step the pages `taken`, the arrays `given` and the results `seen`."""


class PagePool(Operation):
    """An allocator of page ids, and the two arrays that they index."""

    signature = Signature.parse("PagePool(num_pages, page_size, num_kv_heads, head_dim, dtype)(steps)")
    parts = STORY
    methods: ClassVar[tuple[str, ...]] = ("allocate", "free")

    def guard(self, a: Arguments) -> None:
        for name in ("num_pages", "page_size", "num_kv_heads", "head_dim"):
            if getattr(a, name) < 1:
                raise ValueError(f"{name} is {getattr(a, name)}")

    def evaluate(self, a: Arguments, precision: Precision) -> Answers:
        return self.told(a, precision)

    def part_dtype(self, part: str, a: Arguments) -> str:
        return str(a.dtype) if part.endswith(("keys", "values", "attended")) else "int64"

    def told(self, a: Arguments, precision: Precision) -> dict[str, Answer]:
        """What every step gives, in float64."""
        story = self.fresh_story(a, precision)
        parts: dict[str, Answer] = {}
        for story.number, (method, given) in enumerate(a.steps, 1):
            own = {name: self.argument(x) if isinstance(x, np.ndarray) else x for name, x in given.items()}
            try:
                seen: Mapping[str, Any] = getattr(self, method)(story, **own) or {}
            except (ValueError, IndexError, KeyError):  # a fault without its guard may stumble later
                seen = {"refused": 1}
            parts |= {f"{story.number} {name}": _answer(value) for name, value in seen.items()}
        return parts

    def fresh_story(self, a: Arguments, precision: Precision) -> Story:
        story = Story(a=a, precision=precision, pool=self.fresh_pool(a), caches={}, over={}, held={}, number=0)
        story.taken, story.given, story.seen, story.abroad = {}, {}, {}, None
        return story

    def argument(self, x: np.ndarray) -> np.ndarray:
        """An argument as the story uses it: the caller's own array stays out of it."""
        return np.array(x)

    # the steps of a story

    def allocate(self, story: Story) -> dict[str, Any]:
        page = self.take(story.pool)
        mine = 0 <= page < story.a.num_pages and page not in self.in_use(story)
        story.taken[story.number] = page
        story.held[story.number] = page, self.held_by(story.pool, page)
        return {"page": int(mine)}

    def free(self, story: Story, step: int) -> None:
        self.give_back(story.pool, story.taken[step])
        story.held.pop(step, None)

    def free_id(self, story: Story, page: int) -> None:
        self.give_back(story.pool, page)

    def free_foreign(self, story: Story) -> None:
        self.give_back(story.pool, min(set(range(story.a.num_pages)) - set(self.in_use(story))))

    def num_free(self, story: Story) -> dict[str, Any]:
        return {"num_free": self.count(story.pool)}

    def storage(self, story: Story) -> dict[str, Any]:
        keys, values = story.pool.keys, story.pool.values
        same = keys.dtype == values.dtype == numpy_dtype(story.a.dtype)
        return {"key_pages": keys.shape, "value_pages": values.shape, "dtype": int(same)}

    # what a pool does

    def fresh_pool(self, a: Arguments) -> Pool:
        shape = self.shape(a)
        keys, values = (np.zeros(shape, numpy_dtype(a.dtype)) for _ in range(2))
        # In an order that nobody should rely on.
        free = sorted(range(a.num_pages), key=lambda page: page * 0.618 % 1)
        return Pool(free=free, used=set(), size=a.num_pages, keys=keys, values=values)

    def shape(self, a: Arguments) -> tuple[int, ...]:
        return a.num_pages, a.num_kv_heads, a.page_size, a.head_dim

    def take(self, pool: Pool) -> int:
        if not pool.free:
            raise ValueError("no page is free")
        page = int(pool.free.pop())
        pool.used.add(page)
        return page

    def give_back(self, pool: Pool, page: int) -> None:
        self.check_free(pool, page)
        pool.used.discard(page)
        pool.free.append(page)

    def check_free(self, pool: Pool, page: int) -> None:
        if page not in pool.used:
            raise ValueError(f"page {page} is not in use")

    def count(self, pool: Pool) -> int:
        return len(pool.free)

    # what is looked at from outside

    def in_use(self, story: Story) -> list[int]:
        """The pages of all caches, then those of the caller."""
        caches = [page for number in sorted(story.caches) for page in story.caches[number].pages]
        return caches + [page for page, _ in story.held.values()]

    def held_by(self, pool: Pool, page: int) -> bytes:
        """What a page holds."""
        return bytes(pool.keys[page].tobytes() + pool.values[page].tobytes())


class PagedKVCache(PagePool):
    """A list of tokens in pages of a shared pool. Nothing is computed, so every budget is 0."""

    signature = Signature.parse("PagedKVCache(num_pages, page_size, num_kv_heads, head_dim, dtype, steps)")
    methods: ClassVar[tuple[str, ...]] = ("append", "gather", "release")
    optional_methods: ClassVar = {"rewind": ("rewinding", (False,))}
    beside: ClassVar[tuple[Beside, ...]] = (Beside("PagePool"),)

    # the steps of a story

    def append(self, story: Story, cache: int, key: np.ndarray, value: np.ndarray) -> None:
        self.check_append(story, self.cache(story, cache), key, value)
        story.given[story.number] = key, value
        self.extend(story, self.cache(story, cache), key, value)

    def abroad(self, story: Story, num_pages: int, page_size: int, key: np.ndarray, value: np.ndarray) -> None:
        if story.abroad is None:
            a = Arguments(**{**vars(story.a), "num_pages": num_pages, "page_size": page_size})
            story.abroad = self.fresh_story(a, story.precision)
        self.append(story.abroad, 0, key, value)

    def gather(self, story: Story, cache: int) -> dict[str, Any]:
        story.seen[story.number] = self.gathered(story, self.cache(story, cache))
        return self.reread(story, story.number)

    def reread(self, story: Story, step: int) -> dict[str, Any]:
        return dict(zip(("keys", "values"), story.seen[step], strict=True))

    def overwrite(self, story: Story, step: int) -> None:
        for x in story.given[step]:
            x[...] = np.nan

    def read(self, story: Story, cache: int) -> dict[str, Any]:
        one = self.cache(story, cache)
        return self.read_from(story, one.pages, self.offset_of(story, one))

    def offset(self, story: Story, cache: int) -> dict[str, Any]:
        return {"offset": self.offset_of(story, self.cache(story, cache))}

    def pages(self, story: Story, cache: int) -> dict[str, Any]:
        one = self.cache(story, cache)
        return {"page_ids": len(one.pages), "page_lens": self.lens_of(story, one)}

    def ids(self, story: Story) -> dict[str, Any]:
        return {"ids": first_seen(self.in_use(story), story.a.num_pages)}

    def contents(self, story: Story) -> dict[str, Any]:
        return {"kept": [int(self.held_by(story.pool, page) == then) for page, then in story.held.values()]}

    def rewind(self, story: Story, cache: int, n: int) -> None:
        one = self.cache(story, cache)
        self.check_rewind(one, n)
        self.drop(story, one, n)

    def release(self, story: Story, cache: int) -> None:
        self.let_go(story, self.cache(story, cache))
        story.over[cache] = story.caches.pop(cache)

    def release_again(self, story: Story, cache: int) -> None:
        try:
            self.let_go(story, self.cache(story, cache))
        except (ValueError, KeyError):
            return

    # what a cache does

    def cache(self, story: Story, number: int) -> Cache:
        if number in story.over:
            return story.over[number]
        if number not in story.caches:
            story.caches[number] = self.fresh_cache(story)
        return story.caches[number]

    def fresh_cache(self, story: Story) -> Cache:
        return Cache(pages=[], length=0)

    def check_append(self, story: Story, cache: Cache, key: np.ndarray, value: np.ndarray) -> None:
        self.check_shapes(story, key, value)
        self.check_dtype(story, key, value)
        self.check_room(story, cache, key.shape[2])

    def check_shapes(self, story: Story, key: np.ndarray, value: np.ndarray) -> None:
        if key.shape != value.shape:
            raise ValueError(f"key is {key.shape}, value is {value.shape}")
        if key.ndim != 4 or (key.shape[0], key.shape[1], key.shape[3]) != (1, story.a.num_kv_heads, story.a.head_dim):
            raise ValueError(f"{key.shape} in a pool of {self.shape(story.a)}")

    def check_dtype(self, story: Story, key: np.ndarray, value: np.ndarray) -> None:
        for x in (key, value):
            if x.dtype != numpy_dtype(story.a.dtype):
                raise ValueError(f"{x.dtype.name} in a pool of {story.a.dtype}")

    def check_room(self, story: Story, cache: Cache, length: int) -> None:
        needed = self.needed(story, cache.length + length) - len(cache.pages)
        if needed > self.count(story.pool):
            raise ValueError(f"{needed} pages needed, {self.count(story.pool)} are free")

    def needed(self, story: Story, length: int) -> int:
        """How many pages so many tokens take."""
        return int(-(-length // story.a.page_size))

    def extend(self, story: Story, cache: Cache, key: np.ndarray, value: np.ndarray) -> None:
        start, cache.length = cache.length, cache.length + key.shape[2]
        self.grow(story, cache)
        self.write(story, cache, np.arange(start, cache.length), key, value)

    def grow(self, story: Story, cache: Cache) -> None:
        while len(cache.pages) < self.needed(story, cache.length):
            cache.pages.append(self.take(story.pool))

    def write(self, story: Story, cache: Cache, positions: np.ndarray, key: np.ndarray, value: np.ndarray) -> None:
        pages, slots = self.place(story, cache.pages, positions)
        story.pool.keys[pages, :, slots] = key[0].swapaxes(0, 1)
        story.pool.values[pages, :, slots] = value[0].swapaxes(0, 1)

    def place(self, story: Story, pages: Sequence[int], positions: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Page and slot of each token."""
        size = story.a.page_size
        return np.asarray(pages, np.int64)[positions // size], positions % size

    def gathered(self, story: Story, cache: Cache) -> tuple[np.ndarray, np.ndarray]:
        place = self.place(story, cache.pages, np.arange(cache.length))
        return fetched(story.pool.keys, place), fetched(story.pool.values, place)

    def read_from(self, story: Story, pages: Sequence[int], length: int) -> dict[str, Any]:
        """What the pool's arrays hold where the contract says that the tokens lie."""
        positions = np.arange(length)
        place = np.asarray(pages, np.int64)[positions // story.a.page_size], positions % story.a.page_size
        return {"keys": fetched(story.pool.keys, place), "values": fetched(story.pool.values, place)}

    def offset_of(self, story: Story, cache: Cache) -> int:
        return int(cache.length)

    def lens_of(self, story: Story, cache: Cache) -> list[int]:
        size = story.a.page_size
        return [min(size, cache.length - first) for first in range(0, cache.length, size)]

    def check_rewind(self, cache: Cache, n: int) -> None:
        if not 0 <= n <= cache.length:
            raise ValueError(f"n is {n} with {cache.length} tokens cached")

    def drop(self, story: Story, cache: Cache, n: int) -> None:
        cache.length -= n
        while len(cache.pages) > self.needed(story, cache.length):
            self.give_back(story.pool, cache.pages.pop())

    def let_go(self, story: Story, cache: Cache) -> None:
        while cache.pages:
            self.give_back(story.pool, cache.pages.pop())
        cache.length = 0


class BlockTable(PagedKVCache):
    """What paged attention is told of a batch: which pages hold each row's tokens, and how many those are."""

    signature = Signature.parse("block_table(num_pages, page_size, num_kv_heads, head_dim, dtype, steps)")
    methods: ClassVar[tuple[str, ...]] = ("__call__",)
    optional_methods: ClassVar = {}
    beside: ClassVar[tuple[Beside, ...]] = (Beside("PagePool"), Beside("PagedKVCache"))

    def table(self, story: Story, caches: Sequence[int]) -> dict[str, Any]:
        rows = [self.cache(story, number) for number in caches]
        lens = self.context_lens(story, rows)
        table = self.padded(story, rows)
        parts: dict[str, Any] = {"context_lens": lens}
        for number, (pages, length) in enumerate(zip(table, lens, strict=True)):
            parts |= {f"row {number} {name}": x for name, x in self.read_from(story, pages, length).items()}
        return parts

    def reread_table(self, story: Story, step: int) -> dict[str, Any]:
        return {"kept": 1}

    def context_lens(self, story: Story, rows: Sequence[Cache]) -> list[int]:
        return [row.length for row in rows]

    def padded(self, story: Story, rows: Sequence[Cache]) -> np.ndarray:
        """B×M page ids; what stands behind a row's last page is of no account."""
        table = np.zeros((len(rows), max(len(row.pages) for row in rows)), np.int64)
        for entries, row in zip(table, rows, strict=True):
            entries[: len(row.pages)] = row.pages
        return table


class PagedBatch(BlockTable):
    """What pool, caches, block table and paged attention of one subject make together: attention of the queries of each
    row over the tokens that its cache was given.

    Budget: that of paged attention. Nothing else computes.
    """

    signature = Signature.parse("PagedKVCache.attention(num_pages, page_size, num_kv_heads, head_dim, dtype, steps)")
    methods: ClassVar[tuple[str, ...]] = PagedKVCache.methods
    optional_methods: ClassVar = PagedKVCache.optional_methods
    beside: ClassVar[tuple[Beside, ...]] = (
        Beside("PagePool"),
        Beside("paged_attention", borrowed=True),
        Beside("block_table", modelled=True),
    )
    core = PagedAttention()

    def attend(self, story: Story, caches: Sequence[int], query: np.ndarray) -> dict[str, Any]:
        return {"attended": self.attended(story, caches, query)}

    def attended(self, story: Story, caches: Sequence[int], query: np.ndarray) -> Answer:
        rows = [self.cache(story, number) for number in caches]
        keys, values = self.arrays(story)
        a = self.core.bind(
            {
                "query": query,
                "key_pages": keys,
                "value_pages": values,
                "block_table": self.padded(story, rows),
                "context_lens": np.array(self.context_lens(story, rows), np.int64),
                "page_size": story.a.page_size,
            }
        )
        self.core.guard(a)
        return self.core.evaluate(a, story.precision)

    def arrays(self, story: Story) -> tuple[np.ndarray, np.ndarray]:
        """What attention is given of the pool."""
        return story.pool.keys, story.pool.values


def _answer(value: Any) -> Answer:
    return value if isinstance(value, Answer) else Answer(f64(np.asarray(value)), np.zeros(np.shape(value)))


def fetched(pool: np.ndarray, place: tuple[np.ndarray, np.ndarray]) -> np.ndarray:
    """1×H×S×D: what a pool holds at the places of S tokens."""
    pages, slots = place
    return np.array(pool[pages, :, slots].swapaxes(0, 1)[None])


def first_seen(pages: Sequence[int], num_pages: int) -> list[int]:
    """Page ids numbered in the order of first sight; -1 for those that the pool does not have."""
    numbers: dict[int, int] = {}
    return [numbers.setdefault(page, len(numbers)) if 0 <= page < num_pages else -1 for page in pages]


CONTRACT = Contract(
    component="paged_kv",
    title="paged key/value storage",
    version=1,
    operations=(PagePool, PagedKVCache, BlockTable, PagedBatch),
    envelope={
        "dtypes": ("float32", "float16", "bfloat16"),
        "page_sizes": (1, 2, 3, 4, 5, 8, 16, 24, 32, 64, 128),
        "rewinding": (True, False),
        "head_dims": (32, 40, 64, 72, 80, 96, 112, 128, 192, 256),
        "ratios": (1, 2, 3, 4, 5, 6, 7, 8),
        "bounded": (True, False),
        "empty_chunks": (True, False),
        "pool_pages": 70_000,
    },
    requirements=SENTENCES,
)
