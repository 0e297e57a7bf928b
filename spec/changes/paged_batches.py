"""The steps that faults and honest variants have in the place of the oracle's: see `spec/faults/paged_batches.py`."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from inferspec.spec.contract import Answer, Arguments, Change
from inferspec.spec.numerics import f64
from inferspec.spec.paged_attention import PagedAttention
from inferspec.spec.paged_kv import Cache, PagedBatch, PagedKVCache, PagePool, Pool, Story

LAYER = 100
"""Caches of a request in the next layer have numbers that are higher by so much."""

Rows = Sequence[Cache]


def lens(count: Callable[[Story, Cache], int]) -> Change:
    """context_lens counted in another way, in a table that has room for it."""

    def context_lens(self: PagedBatch, story: Story, rows: Rows) -> list[int]:
        return [count(story, row) for row in rows]

    def padded(self: PagedBatch, story: Story, rows: Rows) -> np.ndarray:
        table = PagedBatch.padded(self, story, rows)
        room = PagedBatch.needed(self, story, max(context_lens(self, story, rows)))
        return np.pad(table, ((0, 0), (0, max(room - table.shape[1], 0))))

    return {"context_lens": context_lens, "padded": padded}


def biased(visible: Callable[[Arguments, int, int], np.ndarray]) -> Change:
    """Another mask. visible: of the arguments, a row and its length, L×S."""

    class Masked(PagedAttention):
        def bias(self, a: Arguments, row: int, keys: int) -> np.ndarray:
            return np.where(visible(a, row, keys), 0.0, -np.inf)

    return {"core": Masked()}


def _steps(a: Arguments, keys: int) -> tuple[np.ndarray, np.ndarray]:
    """Numbers of the queries L×1, and of the tokens."""
    return np.arange(a.query.shape[2])[:, None], np.arange(keys)


# one new token


def remembers_length(self: PagedBatch, story: Story, cache: Cache, key: np.ndarray, value: np.ndarray) -> None:
    cache.before = cache.length
    PagedKVCache.extend(self, story, cache, key, value)


def before_append(story: Story, cache: Cache) -> int:
    return min(int(getattr(cache, "before", 0)), cache.length)


def copies_arrays(self: PagedBatch, story: Story, cache: Cache, key: np.ndarray, value: np.ndarray) -> None:
    story.before = story.pool.keys.copy(), story.pool.values.copy()
    PagedKVCache.extend(self, story, cache, key, value)


def arrays_before(self: PagedBatch, story: Story) -> tuple[np.ndarray, np.ndarray]:
    return getattr(story, "before", (story.pool.keys, story.pool.values))


def arrays_of_first_call(self: PagedBatch, story: Story) -> tuple[np.ndarray, np.ndarray]:
    if not hasattr(story, "first"):
        story.first = story.pool.keys.copy(), story.pool.values.copy()
    return story.first[0], story.first[1]


def rows_reversed(self: PagedBatch, story: Story, rows: Rows) -> np.ndarray:
    return PagedBatch.padded(self, story, rows[::-1])


def by_number(self: PagedBatch, story: Story, caches: Sequence[int], query: np.ndarray) -> Answer:
    return PagedBatch.attended(self, story, sorted(caches), query)


def table_before(self: PagedBatch, story: Story, rows: Rows) -> np.ndarray:
    """The page that the last append took is not in the table yet."""
    needed = [self.needed(story, before_append(story, row)) for row in rows]
    known = [Cache(pages=[*row.pages[:n], *[0] * (len(row.pages) - n)]) for n, row in zip(needed, rows, strict=True)]
    return PagedBatch.padded(self, story, known)


# chunks


def whole(a: Arguments, row: int, keys: int) -> np.ndarray:
    return np.ones((a.query.shape[2], keys), bool)


def top_left(a: Arguments, row: int, keys: int) -> np.ndarray:
    query, token = _steps(a, keys)
    return token <= query


def chunk_alone(a: Arguments, row: int, keys: int) -> np.ndarray:
    query, token = _steps(a, keys)
    length = a.query.shape[2]
    return (token <= query + keys - length) & ((token >= keys - length) | (length == 1))


def as_the_longest(a: Arguments, row: int, keys: int) -> np.ndarray:
    query, token = _steps(a, keys)
    return token <= query + int(a.context_lens.max()) - a.query.shape[2]


def one_late(a: Arguments, row: int, keys: int) -> np.ndarray:
    query, token = _steps(a, keys)
    return token < query + keys - a.query.shape[2] + (a.query.shape[2] == 1)


# rows of a batch


def never_empty(story: Story, cache: Cache) -> int:
    return max(cache.length, 1)


def longest(self: PagedBatch, story: Story, rows: Rows) -> list[int]:
    return [max(row.length for row in rows)] * len(rows)


def packed(self: PagedBatch, story: Story, caches: Sequence[int], query: np.ndarray) -> Answer:
    """Rows without tokens are left out of the table, and the others answer the first queries."""
    busy = [number for number in caches if self.cache(story, number).length]
    idle = [number for number in caches if number not in busy]
    return PagedBatch.attended(self, story, busy + idle, query)


def idle_keep_query(self: PagedBatch, story: Story, caches: Sequence[int], query: np.ndarray) -> Answer:
    answer = PagedBatch.attended(self, story, caches, query)
    idle = [not self.cache(story, number).length for number in caches]
    answer.value[idle] = f64(query[idle])
    return answer


def in_a_byte(story: Story, cache: Cache) -> int:
    return int(cache.length) % 256


def of_eight_rows(self: PagedBatch, story: Story, rows: Rows) -> np.ndarray:
    """Rows past the 8th have the pages of the first ones."""
    table = PagedBatch.padded(self, story, rows)
    return table[np.arange(len(rows)) % 8]


# what changes in between


def table_extended(self: PagedBatch, story: Story, rows: Rows) -> np.ndarray:
    """Entries are added to the table and never renewed."""
    for row in rows:
        known = row.__dict__.setdefault("known", [])
        known.extend(row.pages[len(known) :])
    return PagedBatch.padded(self, story, [Cache(pages=row.known[: len(row.pages)]) for row in rows])


def slot_extended(self: PagedBatch, story: Story, caches: Sequence[int], query: np.ndarray) -> Answer:
    """The same, by the request's place in the batch: who comes next has the entries of who was there before."""
    tables: dict[int, list[int]] = story.__dict__.setdefault("tables", {})
    for number in caches:
        pages = self.cache(story, number).pages
        known = tables.setdefault(number % 10, [])
        known.extend(pages[len(known) :])
        self.cache(story, number).known = known[: len(pages)]
    return PagedBatch.attended(self, story, caches, query)


def known_alone(self: PagedBatch, story: Story, rows: Rows) -> np.ndarray:
    return PagedBatch.padded(self, story, [Cache(pages=row.known) for row in rows])


def remembers_most(self: PagedBatch, story: Story, cache: Cache, key: np.ndarray, value: np.ndarray) -> None:
    PagedKVCache.extend(self, story, cache, key, value)
    cache.most = max(getattr(cache, "most", 0), cache.length)


def most(story: Story, cache: Cache) -> int:
    return int(getattr(cache, "most", 0))


# layers


def first_layer(self: PagedBatch, story: Story, caches: Sequence[int], query: np.ndarray) -> Answer:
    return PagedBatch.attended(self, story, [number % LAYER for number in caches], query)


def lens_of_last_layer(self: PagedBatch, story: Story, caches: Sequence[int], query: np.ndarray) -> Answer:
    """The last layer has not taken the new tokens yet."""
    for number in caches:
        layers = [one for one in story.caches if one % LAYER == number % LAYER]
        self.cache(story, number).told = self.cache(story, max(layers, default=number)).length
    return PagedBatch.attended(self, story, caches, query)


def told(story: Story, cache: Cache) -> int:
    return min(int(cache.told), cache.length)


def layer_of(self: PagedBatch, story: Story, number: int) -> Cache:
    # The cache of the request that used the pool before has no layer of its own.
    story.pool.layer = number // LAYER
    return PagedKVCache.cache(self, story, number)


def _lists(pool: Pool) -> list[int]:
    """The free pages, of all that there are, in the layer's own list."""
    lists: dict[int, list[int]] = pool.__dict__.setdefault("lists", {})
    return lists.setdefault(getattr(pool, "layer", 0), list(range(pool.size)))


def takes_of_layer(self: PagedBatch, pool: Pool) -> int:
    if not _lists(pool):
        raise ValueError("no page is free")
    return _lists(pool).pop()


def gives_to_layer(self: PagedBatch, pool: Pool, page: int) -> None:
    _lists(pool).append(page)


def counts_layer(self: PagePool, pool: Pool) -> int:
    return len(_lists(pool))


# slots without a token


def slots_of(story: Story, cache: Cache) -> int:
    return len(cache.pages) * int(story.a.page_size)


def one_more(story: Story, cache: Cache) -> int:
    return int(cache.length) + 1 if cache.length else 0


def times_zero(self: PagedBatch, story: Story, caches: Sequence[int], query: np.ndarray) -> Answer:
    """Slots past the end of a context have a weight of 0, and 0 · NaN is NaN."""
    answer = PagedBatch.attended(self, story, caches, query)
    for number, cache in enumerate(self.cache(story, number) for number in caches):
        tail = np.arange(cache.length, slots_of(story, cache))
        if tail.size:
            pages, slots = self.place(story, cache.pages, tail)
            lost = (f64(story.pool.values[pages, :, slots]) * 0).sum(axis=0)
            answer.value[number] += np.repeat(lost, query.shape[1] // len(lost), axis=0)[:, None]
    return answer


# honest ways


def lowest(self: PagedBatch, pool: Pool) -> int:
    pool.free.sort(reverse=True)
    return PagePool.take(self, pool)


def garbage_behind(self: PagedBatch, story: Story, rows: Rows) -> np.ndarray:
    """A table that is wider than it need be, padded with pages that are not there."""
    table = np.full((len(rows), max(len(row.pages) for row in rows) + 2), story.a.num_pages + 7, np.int64)
    for entries, row in zip(table, rows, strict=True):
        entries[: len(row.pages)] = row.pages
    return table


def dense(self: PagedBatch, story: Story, caches: Sequence[int], query: np.ndarray) -> Answer:
    """Each row by itself, of tokens that are gathered first, in pages of their own."""
    rows = []
    for number, own in zip(caches, query, strict=True):
        keys, values = (x[0][None] for x in self.gathered(story, self.cache(story, number)))
        length = keys.shape[2]
        empty = np.zeros((1, keys.shape[1], 1, keys.shape[3]), keys.dtype)
        given = {
            "query": own[None],
            "key_pages": keys if length else empty,
            "value_pages": values if length else empty,
            "block_table": np.zeros((1, 1), np.int64),
            "context_lens": np.array([length]),
            "page_size": max(length, 1),
        }
        rows.append(self.core.evaluate(self.core.bind(given), story.precision))
    return Answer(np.concatenate([row.value for row in rows]), np.concatenate([row.budget for row in rows]))


def rewinds_all_layers(self: PagedBatch, story: Story, cache: Cache, n: int) -> None:
    """A request has one length for all its layers: where it is rewound in one, it is in all."""
    number = next(number for number, one in story.caches.items() if one is cache)
    for other, one in story.caches.items():
        if other % LAYER == number % LAYER:
            PagedKVCache.drop(self, story, one, min(n, one.length))
