"""Mistakes between a pool, its caches, their block table and the attention that reads them, and other honest ways."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from inferspec.spec import paged_kv as spec
from inferspec.spec.contract import Answer, Arguments, Change, Fault, Requirement, Variant
from inferspec.spec.faults.linear import TIRED
from inferspec.spec.numerics import f64
from inferspec.spec.paged_attention import PagedAttention
from inferspec.spec.paged_kv import Cache, PagedBatch, PagedKVCache, PagePool, Pool, Story

COURSE = "tiny-llm course, week 3 day 2"
INVARIANTS = f"{COURSE}, Correctness Invariants"
VLLM = "https://github.com/vllm-project/vllm/pull"
VLLM_METAL = "https://github.com/vllm-project/vllm-metal/commit"
LAYER = 100
"""Caches of a request in the next layer have numbers that are higher by so much."""

Rows = Sequence[Cache]


def _lens(count: Callable[[Story, Cache], int]) -> Change:
    """context_lens counted in another way, in a table that has room for it."""

    def context_lens(self: PagedBatch, story: Story, rows: Rows) -> list[int]:
        return [count(story, row) for row in rows]

    def padded(self: PagedBatch, story: Story, rows: Rows) -> np.ndarray:
        table = PagedBatch.padded(self, story, rows)
        room = PagedBatch.needed(self, story, max(context_lens(self, story, rows)))
        return np.pad(table, ((0, 0), (0, max(room - table.shape[1], 0))))

    return {"context_lens": context_lens, "padded": padded}


def _biased(visible: Callable[[Arguments, int, int], np.ndarray]) -> Change:
    """Another mask. visible: of the arguments, a row and its length, L×S."""

    class Masked(PagedAttention):
        def bias(self, a: Arguments, row: int, keys: int) -> np.ndarray:
            return np.where(visible(a, row, keys), 0.0, -np.inf)

    return {"core": Masked()}


def _steps(a: Arguments, keys: int) -> tuple[np.ndarray, np.ndarray]:
    """Numbers of the queries L×1, and of the tokens."""
    return np.arange(a.query.shape[2])[:, None], np.arange(keys)


# one new token


def _remembers_length(self: PagedBatch, story: Story, cache: Cache, key: np.ndarray, value: np.ndarray) -> None:
    cache.before = cache.length
    PagedKVCache.extend(self, story, cache, key, value)


def _before_append(story: Story, cache: Cache) -> int:
    return min(int(getattr(cache, "before", 0)), cache.length)


def _copies_arrays(self: PagedBatch, story: Story, cache: Cache, key: np.ndarray, value: np.ndarray) -> None:
    story.before = story.pool.keys.copy(), story.pool.values.copy()
    PagedKVCache.extend(self, story, cache, key, value)


def _arrays_before(self: PagedBatch, story: Story) -> tuple[np.ndarray, np.ndarray]:
    return getattr(story, "before", (story.pool.keys, story.pool.values))


def _arrays_of_first_call(self: PagedBatch, story: Story) -> tuple[np.ndarray, np.ndarray]:
    if not hasattr(story, "first"):
        story.first = story.pool.keys.copy(), story.pool.values.copy()
    return story.first[0], story.first[1]


def _rows_reversed(self: PagedBatch, story: Story, rows: Rows) -> np.ndarray:
    return PagedBatch.padded(self, story, rows[::-1])


def _by_number(self: PagedBatch, story: Story, caches: Sequence[int], query: np.ndarray) -> Answer:
    return PagedBatch.attended(self, story, sorted(caches), query)


def _table_before(self: PagedBatch, story: Story, rows: Rows) -> np.ndarray:
    """The page that the last append took is not in the table yet."""
    needed = [self.needed(story, _before_append(story, row)) for row in rows]
    known = [Cache(pages=[*row.pages[:n], *[0] * (len(row.pages) - n)]) for n, row in zip(needed, rows, strict=True)]
    return PagedBatch.padded(self, story, known)


# chunks


def _whole(a: Arguments, row: int, keys: int) -> np.ndarray:
    return np.ones((a.query.shape[2], keys), bool)


def _top_left(a: Arguments, row: int, keys: int) -> np.ndarray:
    query, token = _steps(a, keys)
    return token <= query


def _chunk_alone(a: Arguments, row: int, keys: int) -> np.ndarray:
    query, token = _steps(a, keys)
    length = a.query.shape[2]
    return (token <= query + keys - length) & ((token >= keys - length) | (length == 1))


def _as_the_longest(a: Arguments, row: int, keys: int) -> np.ndarray:
    query, token = _steps(a, keys)
    return token <= query + int(a.context_lens.max()) - a.query.shape[2]


def _one_late(a: Arguments, row: int, keys: int) -> np.ndarray:
    query, token = _steps(a, keys)
    return token < query + keys - a.query.shape[2] + (a.query.shape[2] == 1)


# rows of a batch


def _never_empty(story: Story, cache: Cache) -> int:
    return max(cache.length, 1)


def _longest(self: PagedBatch, story: Story, rows: Rows) -> list[int]:
    return [max(row.length for row in rows)] * len(rows)


def _packed(self: PagedBatch, story: Story, caches: Sequence[int], query: np.ndarray) -> Answer:
    """Rows without tokens are left out of the table, and the others answer the first queries."""
    busy = [number for number in caches if self.cache(story, number).length]
    idle = [number for number in caches if number not in busy]
    return PagedBatch.attended(self, story, busy + idle, query)


def _idle_keep_query(self: PagedBatch, story: Story, caches: Sequence[int], query: np.ndarray) -> Answer:
    answer = PagedBatch.attended(self, story, caches, query)
    idle = [not self.cache(story, number).length for number in caches]
    answer.value[idle] = f64(query[idle])
    return answer


# what changes in between


def _table_extended(self: PagedBatch, story: Story, rows: Rows) -> np.ndarray:
    """Entries are added to the table and never renewed."""
    for row in rows:
        known = row.__dict__.setdefault("known", [])
        known.extend(row.pages[len(known) :])
    return PagedBatch.padded(self, story, [Cache(pages=row.known[: len(row.pages)]) for row in rows])


def _slot_extended(self: PagedBatch, story: Story, caches: Sequence[int], query: np.ndarray) -> Answer:
    """The same, by the request's place in the batch: who comes next has the entries of who was there before."""
    tables: dict[int, list[int]] = story.__dict__.setdefault("tables", {})
    for number in caches:
        pages = self.cache(story, number).pages
        known = tables.setdefault(number % 10, [])
        known.extend(pages[len(known) :])
        self.cache(story, number).known = known[: len(pages)]
    return PagedBatch.attended(self, story, caches, query)


def _known_alone(self: PagedBatch, story: Story, rows: Rows) -> np.ndarray:
    return PagedBatch.padded(self, story, [Cache(pages=row.known) for row in rows])


def _remembers_most(self: PagedBatch, story: Story, cache: Cache, key: np.ndarray, value: np.ndarray) -> None:
    PagedKVCache.extend(self, story, cache, key, value)
    cache.most = max(getattr(cache, "most", 0), cache.length)


def _most(story: Story, cache: Cache) -> int:
    return int(getattr(cache, "most", 0))


# layers


def _first_layer(self: PagedBatch, story: Story, caches: Sequence[int], query: np.ndarray) -> Answer:
    return PagedBatch.attended(self, story, [number % LAYER for number in caches], query)


def _lens_of_last_layer(self: PagedBatch, story: Story, caches: Sequence[int], query: np.ndarray) -> Answer:
    """The last layer has not taken the new tokens yet."""
    for number in caches:
        layers = [one for one in story.caches if one % LAYER == number % LAYER]
        self.cache(story, number).told = self.cache(story, max(layers, default=number)).length
    return PagedBatch.attended(self, story, caches, query)


def _told(story: Story, cache: Cache) -> int:
    return min(int(cache.told), cache.length)


def _layer_of(self: PagedBatch, story: Story, number: int) -> Cache:
    # The cache of the request that used the pool before has no layer of its own.
    story.pool.layer = number // LAYER
    return PagedKVCache.cache(self, story, number)


def _lists(pool: Pool) -> list[int]:
    """The free pages, of all that there are, in the layer's own list."""
    lists: dict[int, list[int]] = pool.__dict__.setdefault("lists", {})
    return lists.setdefault(getattr(pool, "layer", 0), list(range(pool.size)))


def _takes_of_layer(self: PagedBatch, pool: Pool) -> int:
    if not _lists(pool):
        raise ValueError("no page is free")
    return _lists(pool).pop()


def _gives_to_layer(self: PagedBatch, pool: Pool, page: int) -> None:
    _lists(pool).append(page)


def _counts_layer(self: PagePool, pool: Pool) -> int:
    return len(_lists(pool))


# slots without a token


def _slots(story: Story, cache: Cache) -> int:
    return len(cache.pages) * int(story.a.page_size)


def _one_more(story: Story, cache: Cache) -> int:
    return int(cache.length) + 1 if cache.length else 0


def _times_zero(self: PagedBatch, story: Story, caches: Sequence[int], query: np.ndarray) -> Answer:
    """Slots past the end of a context have a weight of 0, and 0 · NaN is NaN."""
    answer = PagedBatch.attended(self, story, caches, query)
    for number, cache in enumerate(self.cache(story, number) for number in caches):
        tail = np.arange(cache.length, _slots(story, cache))
        if tail.size:
            pages, slots = self.place(story, cache.pages, tail)
            lost = (f64(story.pool.values[pages, :, slots]) * 0).sum(axis=0)
            answer.value[number] += np.repeat(lost, query.shape[1] // len(lost), axis=0)[:, None]
    return answer


def _fault(name: str, text: str, kills: Requirement, change: Change, source: str) -> Fault:
    return Fault(f"paged-attention-{name}", text, kills, change, source)


BATCH_FAULTS: tuple[Fault, ...] = (
    _fault(
        "lens-before-append",
        "context_lens are those from before the last append",
        spec.PKVA_01,
        {"extend": _remembers_length, **_lens(_before_append)},
        f"{INVARIANTS} 1",
    ),
    _fault(
        "arrays-before-append",
        "attention is given the pool's arrays from before the last append",
        spec.PKVA_01,
        {"extend": _copies_arrays, "arrays": _arrays_before},
        COURSE,
    ),
    _fault(
        "table-before-append",
        "the block table is from before the last append: a page that it took is missing",
        spec.PKVA_01,
        {"extend": _remembers_length, "padded": _table_before},
        f"{COURSE}: the block table after the write is done",
    ),
    _fault(
        "rows-reversed", "rows of the table are the wrong way round", spec.PKVA_01, {"padded": _rows_reversed}, TIRED
    ),
    _fault(
        "rows-by-number",
        "table and context_lens are in the order in which requests came, and queries are not",
        spec.PKVA_01,
        {"attended": _by_number},
        "PROPERTIES CB4",
    ),
    _fault("chunk-sees-all", "every query of a chunk sees the whole context", spec.PKVA_02, _biased(_whole), COURSE),
    _fault(
        "chunk-from-start",
        "queries of a chunk are taken for the first tokens of the context",
        spec.PKVA_02,
        _biased(_top_left),
        "PROPERTIES CM2",
    ),
    _fault(
        "chunk-alone", "queries of a chunk see the chunk alone", spec.PKVA_02, _biased(_chunk_alone), "PROPERTIES CP1"
    ),
    _fault(
        "chunk-of-longest",
        "the causal mask of all rows is that of the longest",
        spec.PKVA_02,
        _biased(_as_the_longest),
        "PROPERTIES PA5",
    ),
    _fault(
        "chunk-not-itself", "queries of a chunk do not see their own token", spec.PKVA_02, _biased(_one_late), TIRED
    ),
    _fault(
        "longest-for-all",
        "every row has as many tokens as the longest: entries that pad the table are read",
        spec.PKVA_03,
        {"context_lens": _longest},
        "PROPERTIES PA5",
    ),
    _fault(
        "empty-row-sees-one",
        "a row without tokens sees one, of the page that pads the table",
        spec.PKVA_03,
        _lens(_never_empty),
        "PROPERTIES BK2",
    ),
    _fault(
        "empty-rows-left-out",
        "rows without tokens are left out of the table, and those behind them move up",
        spec.PKVA_03,
        {"attended": _packed},
        "PROPERTIES BK4",
    ),
    _fault(
        "empty-rows-unwritten",
        "a row without tokens is not written: what was there comes back",
        spec.PKVA_03,
        {"attended": _idle_keep_query},
        "PROPERTIES X11",
    ),
    _fault(
        "table-extended",
        "entries of the table stay after a rewind, though the pages are others",
        spec.PKVA_04,
        {"padded": _table_extended},
        "PROPERTIES KV1, PC10",
    ),
    _fault(
        "table-of-former",
        "a request begins with entries of the one that was in its place before",
        spec.PKVA_04,
        {"attended": _slot_extended, "padded": _known_alone},
        f"{COURSE}, slot reuse; PROPERTIES BK3",
    ),
    _fault(
        "lens-not-rewound",
        "context_lens never become smaller",
        spec.PKVA_04,
        {"extend": _remembers_most, **_lens(_most)},
        "PROPERTIES KV1",
    ),
    _fault(
        "arrays-of-first-call",
        "attention holds on to the arrays of its first call",
        spec.PKVA_04,
        {"arrays": _arrays_of_first_call},
        "PROPERTIES X7",
    ),
    _fault(
        "table-of-first-layer",
        "every layer reads by the table of the first one",
        spec.PKVA_05,
        {"attended": _first_layer},
        f"{COURSE}: per-layer page tables",
    ),
    _fault(
        "lens-of-last-layer",
        "context_lens are those of the last layer, which has not taken the new tokens",
        spec.PKVA_05,
        {"attended": _lens_of_last_layer, **_lens(_told)},
        COURSE,
    ),
    _fault(
        "allocator-of-each-layer",
        "every layer hands out all pages of the one pool",
        spec.PKVA_05,
        {"cache": _layer_of, "take": _takes_of_layer, "give_back": _gives_to_layer, "count": _counts_layer},
        f"{VLLM_METAL}/1a036e8",
    ),
    _fault(
        "tail-capacity",
        "all slots of the last page count",
        spec.PKVA_06,
        _lens(_slots),
        f"{COURSE}: context_lens[b] to ignore unused tail capacity",
    ),
    _fault("lens-one-more", "context_lens count one token more", spec.PKVA_06, _lens(_one_more), f"{VLLM}/47305"),
    _fault(
        "tail-times-zero",
        "slots past the end of a context are multiplied by 0",
        spec.PKVA_06,
        {"attended": _times_zero},
        f"{VLLM}/936",
    ),
)


# honest ways


def _lowest(self: PagedBatch, pool: Pool) -> int:
    pool.free.sort(reverse=True)
    return PagePool.take(self, pool)


def _garbage_behind(self: PagedBatch, story: Story, rows: Rows) -> np.ndarray:
    """A table that is wider than it need be, padded with pages that are not there."""
    table = np.full((len(rows), max(len(row.pages) for row in rows) + 2), story.a.num_pages + 7, np.int64)
    for entries, row in zip(table, rows, strict=True):
        entries[: len(row.pages)] = row.pages
    return table


def _dense(self: PagedBatch, story: Story, caches: Sequence[int], query: np.ndarray) -> Answer:
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


_NAME = "PagedKVCache.attention"

BATCH_VARIANTS: tuple[Variant, ...] = (
    Variant("paged-attention-lowest-page", "the lowest page that is free", _NAME, {"take": _lowest}),
    Variant("paged-attention-wide-table", "a wide table with garbage for padding", _NAME, {"padded": _garbage_behind}),
    Variant("paged-attention-gathered", "tokens are gathered, row by row", _NAME, {"attended": _dense}),
)
