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
    Aspect,
    Beside,
    Contract,
    Level,
    Operation,
    Requirement,
    Signature,
)
from inferspec.spec.numerics import Precision, f64, numpy_dtype
from inferspec.spec.paged_attention import PagedAttention

COURSE = "tiny-llm course, week 3 day 1"
INVARIANTS = "tiny-llm course, week 3 day 2, Correctness Invariants"

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


def _pool(
    number: int, text: str, level: Level = Level.MUST, aspect: Aspect = Aspect.VALUE, source: str = ""
) -> Requirement:
    return Requirement(f"POOL-{number:02}", text, "PagePool", level, aspect, source or COURSE)


def _cache(
    number: int, text: str, level: Level = Level.MUST, aspect: Aspect = Aspect.VALUE, source: str = ""
) -> Requirement:
    return Requirement(f"PKV-{number:02}", text, "PagedKVCache", level, aspect, source or COURSE)


def _table(number: int, text: str, source: str) -> Requirement:
    return Requirement(f"TABLE-{number:02}", text, "block_table", Level.MUST, Aspect.VALUE, source)


def _batch(number: int, text: str, source: str) -> Requirement:
    return Requirement(f"PKVA-{number:02}", text, "PagedKVCache.attention", Level.MUST, Aspect.VALUE, source)


POOL_01 = _pool(
    1,
    "allocate hands out pages that the pool has, and none that is in use",
    source="PROPERTIES PG1; TensorRT-LLM 14937",
)
POOL_02 = _pool(
    2, "num_free is the number of pages that are not in use, at any time", source="PROPERTIES PG1; TensorRT-LLM 12834"
)
POOL_03 = _pool(
    3,
    "all num_pages pages can be in use at once, and a freed page can be handed out again, however often",
    source="PROPERTIES PG4; MinivLLM 84",
)
POOL_04 = _pool(4, "a pool without a free page refuses to allocate", aspect=Aspect.GUARD, source="PROPERTIES PG5")
POOL_05 = _pool(5, "a refused allocation changes nothing", source="PROPERTIES PG5, decisions")
POOL_06 = _pool(
    6,
    "a page that was freed already is refused",
    aspect=Aspect.GUARD,
    source="PROPERTIES PG2, decisions",
)
POOL_07 = _pool(
    7,
    "a page that was never handed out is refused",
    aspect=Aspect.GUARD,
    source="PROPERTIES PG2, decisions",
)
POOL_08 = _pool(
    8,
    "an id that the pool does not have is refused: -1, num_pages and beyond",
    aspect=Aspect.GUARD,
    source="PROPERTIES PG2, X9",
)
POOL_09 = _pool(9, "a refused free changes nothing", source="PROPERTIES PG2, PG5")
POOL_10 = _pool(
    10,
    "key_pages and value_pages are num_pages×num_kv_heads×page_size×head_dim, in the dtype of the pool",
    source="tiny-llm course, week 3 day 2; PROPERTIES PG8",
)
POOL_11 = _pool(
    11, "pools have nothing in common: a story is the same whatever others do meanwhile", source="PROPERTIES X7, X11"
)
POOL_12 = _pool(
    12,
    "a pool of less than one page, slot, head or head dim is refused",
    Level.SHOULD,
    Aspect.GUARD,
    "PROPERTIES X9; vllm-metal 0f6f76b",
)

PKV_01 = _cache(
    1,
    "gather returns the keys and values of all tokens in order, 1×H×S×D each, as a dense cache would, bit for bit",
    source="PROPERTIES PG6",
)
PKV_02 = _cache(
    2,
    "chunks may be of any size, 0, 1 and beside the multiples of page_size too: how tokens are chunked does not show",
    source="PROPERTIES PG3, CP1; https://github.com/vllm-project/vllm/pull/7380",
)
PKV_03 = _cache(
    3,
    "token p lies in page page_ids[p // page_size] of key_pages and value_pages, slot p % page_size",
    source=f"{INVARIANTS} 2; PROPERTIES PG6",
)
PKV_04 = _cache(
    4, "offset is the number of tokens, before the first append and after every event", source=f"{INVARIANTS} 1"
)
PKV_05 = _cache(
    5,
    "a cache of n tokens uses exactly ceil(n / page_size) pages: it takes a new one only when its last one is full",
    source=f"{INVARIANTS} 5; PROPERTIES PG3",
)
PKV_06 = _cache(
    6, "page_lens says how many tokens each page holds: page_size, and what is left in the last one", source=COURSE
)
PKV_07 = _cache(
    7,
    "no page is in two live caches, nor in a cache and in the caller's use",
    source=f"{INVARIANTS} 3; PROPERTIES PG1; https://github.com/vllm-project/vllm/pull/3347",
)
PKV_08 = _cache(
    8, "what becomes of a cache does not show in the tokens of others on the same pool", source="PROPERTIES CB4, PG1"
)
PKV_09 = _cache(
    9,
    "a page in the caller's use holds what it held, whatever caches do",
    source="PROPERTIES PG1, judging",
)
PKV_10 = _cache(10, "what a recycled page held before never shows, NaN neither", source="PROPERTIES PA2, BK3, judging")
PKV_11 = _cache(
    11,
    "gather returns keys and values in the dtype of the pool",
    aspect=Aspect.DTYPE,
    source="PROPERTIES PG6; vllm-metal 59b9be4",
)
PKV_12 = _cache(
    12,
    "rewind(n) drops the last n tokens: what is appended next takes their place, and they never show again",
    source="PROPERTIES KV1, SP8",
)
PKV_13 = _cache(
    13,
    "rewind gives back the pages that became empty, and no other, and they are free for any cache",
    source="PROPERTIES PG3, PG4",
)
PKV_14 = _cache(
    14,
    "rewinding by 0 changes nothing, and a cache that is rewound by all its tokens begins anew, without pages",
    source="PROPERTIES KV1, PG4",
)
PKV_15 = _cache(
    15,
    "a rewind by more tokens than are cached, or by less than none, is refused",
    aspect=Aspect.GUARD,
    source="PROPERTIES X9",
)
PKV_16 = _cache(16, "a refused rewind changes nothing", source="PROPERTIES X9, PG5")
PKV_17 = _cache(
    17,
    "release gives all pages of the cache back, each once, and those of no other cache",
    source=f"{INVARIANTS} 4; PROPERTIES PG4, PG7",
)
PKV_18 = _cache(
    18, "releasing a cache again changes nothing, an error or not", source="PROPERTIES PG2; TensorRT-LLM 14937"
)
PKV_19 = _cache(
    19,
    "a released cache has no pages and offset 0",
    Level.SHOULD,
    source=f"{INVARIANTS} 1; vllm-metal bb14a36",
)
PKV_20 = _cache(
    20, "an append for which too few pages are free is refused", aspect=Aspect.GUARD, source="PROPERTIES PG5"
)
PKV_21 = _cache(
    21,
    "an append for which too few pages are free changes nothing: neither tokens nor pages, and what fits is still taken",
    source="PROPERTIES PG5; https://github.com/vllm-project/vllm/pull/11565",
)
PKV_22 = _cache(22, "num_pages·page_size tokens fit: a pool can be filled to its last slot", source="PROPERTIES SC6")
PKV_23 = _cache(
    23,
    "keys and values that are not 1×H×L×D, both of the same L and of the pool's H and D, are refused",
    aspect=Aspect.GUARD,
    source="PROPERTIES X9",
)
PKV_24 = _cache(
    24,
    "keys or values of another dtype than the pool's are refused",
    Level.SHOULD,
    Aspect.GUARD,
    source="PROPERTIES X9; vllm-metal 59b9be4",
)
PKV_25 = _cache(
    25, "an append whose arrays are refused changes nothing: neither tokens nor pages", source="PROPERTIES PG5, X9"
)
PKV_26 = _cache(
    26, "keys and values may each be a strided view: what is cached is that of their copies", source="PROPERTIES X1"
)
PKV_27 = _cache(27, "an append changes neither its key nor its value", source="PROPERTIES X6")
PKV_28 = _cache(
    28,
    "what the caller does to its arrays after an append does not show in the cache",
    Level.SHOULD,
    source="PROPERTIES X6",
)
PKV_29 = _cache(29, "what gather returned keeps its values, whatever the pool's caches do", source="PROPERTIES X7")
PKV_30 = _cache(
    30,
    "no page is lost: after all requests are over every page is free, however many there were",
    source="PROPERTIES PG4; MinivLLM 84",
)
PKV_31 = _cache(
    31,
    "pools and their caches have nothing in common with others: a story depends on itself alone",
    source="PROPERTIES X7",
)
PKV_32 = _cache(32, "page ids past 2^15 and 2^16 are as small ones", source="PROPERTIES X8, PA4")

TABLE_01 = _table(
    1,
    "token p of row b lies in page table[b, p // page_size], slot p % page_size, in the order of the caches given",
    f"{INVARIANTS} 2; PROPERTIES PG6",
)
TABLE_02 = _table(
    2,
    "context_lens is the offset of each row's cache, rows that are shorter than others and empty ones too",
    f"{INVARIANTS} 1; PROPERTIES PA5",
)
TABLE_03 = _table(
    3,
    "each table is of its time: appends, rewinds and other caches show in the next one, and not in those before",
    f"{COURSE}; PROPERTIES X7",
)

PKVA_01 = _batch(
    1,
    "attention of one new token a row, by the block table and context_lens of the batch, is that over the tokens of each "
    "row's cache, the new one too, as dense keys and values would have it",
    f"{INVARIANTS} 1 and 2; PROPERTIES PA1",
)
PKVA_02 = _batch(
    2,
    "the queries of a chunk are the last L tokens of their row: each sees the tokens up to its own, those of earlier "
    "chunks too, and none where there is none",
    "tiny-llm course, week 3 day 2; PROPERTIES CP1",
)
PKVA_03 = _batch(
    3,
    "rows of any lengths stand beside each other, those without tokens too, which are zeros: padding of the table is "
    "not read",
    "tiny-llm course, week 3 day 2; PROPERTIES PA2, PA5",
)
PKVA_04 = _batch(
    4,
    "attention is of its time: rewinds across pages, releases and pages that change hands show in the next one",
    f"{INVARIANTS} 3 and 4; PROPERTIES KV1, PG4",
)
PKVA_05 = _batch(
    5,
    "caches of several layers share a pool and its allocator: attention in a layer is over the layer's own tokens",
    "tiny-llm course, week 3 day 2; PROPERTIES PG1",
)
PKVA_06 = _batch(
    6,
    "slots that no token was written to do not show, NaN of former requests neither",
    f"{INVARIANTS} 1; PROPERTIES PA2; vllm#47305",
)


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
    requirements=tuple(value for value in list(globals().values()) if isinstance(value, Requirement)),
)
