"""How a pool of pages and its caches are used: the steps of a story, done to the subject's own objects.

Page ids are the subject's own matter: what is reported is whether they are there, whose they are, and what lies in them.
"""

from __future__ import annotations

import contextlib
import operator
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from inferspec.conformance.bridge.arrays import Arrays
from inferspec.conformance.bridge.drivers import handed, parts, spoil, step

NAMES = {
    "allocate": ("page",),
    "num_free": ("num_free",),
    "storage": ("key_pages", "value_pages", "dtype"),
    "gather": ("keys", "values"),
    "reread": ("keys", "values"),
    "read": ("keys", "values"),
    "offset": ("offset",),
    "pages": ("page_ids", "page_lens"),
    "ids": ("ids",),
    "contents": ("kept",),
    "attend": ("attended",),
    "reread_table": ("kept",),
}
"""step -> what to call the things that it returns."""


class _Story:
    """A pool, its caches by number, those that are over, a cache of another pool, and the pages that the caller took, with
    what they held."""

    def __init__(
        self,
        pools: Callable[[], Any],
        given: Mapping[str, Any],
        to: Arrays,
        make: Any = None,
        table: Any = None,
        attention: Any = None,
    ) -> None:
        self.pool = pools()
        self.pool_of: Callable[..., Any] = lambda **sizes: given["PagePool"]({**given, **sizes})
        self.foreign: Any = None
        self.to, self.make, self.tabled, self.attention = to, make, table, attention
        self.size, self.page_size, self.dtype = given["num_pages"], given["page_size"], given["dtype"]
        self.caches: dict[int, Any] = {}
        self.over: dict[int, Any] = {}
        self.number = 0
        self.taken: dict[int, Any] = {}
        self.held: dict[int, tuple[int, bytes]] = {}
        self.given: dict[int, tuple[Any, ...]] = {}
        self.seen: dict[int, tuple[Any, ...]] = {}
        self.tables: dict[int, tuple[Any, Any, list[list[int]]]] = {}

    # the pool

    def allocate(self) -> int:
        page = self.pool.allocate()
        if not 0 <= _int(page) < self.size:
            raise ValueError(
                f"allocate gives page {_int(page)}, and a pool of {self.size} has pages 0 to {self.size - 1}"
            )
        mine = _int(page) not in self._in_use()
        self.taken[self.number] = page
        self.held[self.number] = _int(page), self._held_by(_int(page))
        return int(mine)

    def free(self, step: int) -> None:
        handed(self.pool.free, page=self.taken[step])
        self.held.pop(step, None)

    def free_id(self, page: int) -> None:
        handed(self.pool.free, page=page)

    def free_foreign(self) -> None:
        handed(self.pool.free, page=min(set(range(self.size)) - set(self._in_use())))

    def num_free(self) -> int:
        return _int(_read(self.pool.num_free))

    def storage(self) -> tuple[Any, ...]:
        keys, values = self._pools()
        shapes = [list(x.shape) for x in (keys, values)]
        return *shapes, int(keys.dtype == values.dtype == self.dtype)

    # caches

    def append(self, cache: int, key: Any, value: Any) -> None:
        self.given[self.number] = key, value
        handed(self._cache(cache).append, key=key, value=value)

    def abroad(self, num_pages: int, page_size: int, key: Any, value: Any) -> None:
        self.foreign = self.foreign or self._made(self.pool_of(num_pages=num_pages, page_size=page_size))
        handed(self.foreign.append, key=key, value=value)

    def gather(self, cache: int) -> tuple[np.ndarray, ...]:
        keys, values, *_ = parts(self._cache(cache).gather(), "keys", "values")
        self.seen[self.number] = keys, values
        return self.reread(self.number)

    def reread(self, step: int) -> tuple[np.ndarray, ...]:
        return tuple(self._numpy(x) for x in self.seen[step])

    def overwrite(self, step: int) -> None:
        spoil(self.given[step])

    def read(self, cache: int) -> tuple[np.ndarray, ...]:
        return self._read_from(self._ids(self._cache(cache)), self.offset(cache))

    def offset(self, cache: int) -> int:
        return _int(_read(self._cache(cache).offset))

    def pages(self, cache: int) -> tuple[Any, ...]:
        lens = self._listed(_read(self._cache(cache).page_lens))
        return len(self._ids(self._cache(cache))), lens

    def ids(self) -> list[int]:
        numbers: dict[int, int] = {}
        return [numbers.setdefault(page, len(numbers)) if 0 <= page < self.size else -1 for page in self._in_use()]

    def contents(self) -> list[int]:
        return [int(self._held_by(page) == then) for page, then in self.held.values()]

    def rewind(self, cache: int, n: int) -> None:
        handed(self._cache(cache).rewind, n=n)

    def release(self, cache: int) -> None:
        self._cache(cache).release()
        self.over[cache] = self.caches.pop(cache)

    def release_again(self, cache: int) -> None:
        with contextlib.suppress(Exception):
            self._cache(cache).release()

    # batches

    def table(self, caches: Sequence[int]) -> dict[str, Any]:
        told = handed(self.tabled, caches=[self._cache(number) for number in caches])
        table, lens, *_ = parts(told, "block_table", "context_lens")
        rows, lengths = self._numpy(table), self._listed(lens)
        self.tables[self.number] = table, lens, self._entries(table, lens)
        seen: dict[str, Any] = {"context_lens": lengths}
        for number, (row, length) in enumerate(zip(rows, lengths, strict=True)):
            keys, values = self._read_from(self._listed(row), length)
            seen |= {f"row {number} keys": keys, f"row {number} values": values}
        return seen

    def reread_table(self, step: int) -> int:
        table, lens, then = self.tables[step]
        return int(self._entries(table, lens) == then)

    def _entries(self, table: Any, lens: Any) -> list[list[int]]:
        """Of each row its length and the pages that its tokens lie in; what stands behind them may be anything."""
        rows = zip(self._numpy(table), self._listed(lens), strict=True)
        return [[length, *self._listed(row)[: -(-length // self.page_size)]] for row, length in rows]

    def attend(self, caches: Sequence[int], query: Any) -> np.ndarray:
        table, lens = self._told_of([self._cache(number) for number in caches])
        keys, values = self._pools()
        attended = self.attention(
            query=query,
            key_pages=keys,
            value_pages=values,
            block_table=table,
            context_lens=lens,
            page_size=self.page_size,
        )
        # Now: what is written later must not show.
        return self._numpy(attended)

    def _told_of(self, rows: Sequence[Any]) -> list[Any]:
        """Block table and context_lens of a batch: the subject's own, or else with -1 behind a row's last page."""
        if self.tabled is None:
            pages = [self._ids(row) for row in rows]
            table = np.full((len(rows), max(map(len, pages)) + 1), -1, np.int32)
            for entries, own in zip(table, pages, strict=True):
                entries[: len(own)] = own
            told: Sequence[Any] = table, np.array([_int(_read(row.offset)) for row in rows], np.int32)
        else:
            told = parts(handed(self.tabled, caches=rows), "block_table", "context_lens")
        return [x if self.to.owns(x) else self.to.from_numpy(np.asarray(x, np.int32)) for x in told[:2]]

    # looking

    def _made(self, pool: Any) -> Any:
        return handed(self.make, pool=pool)

    def _cache(self, number: int) -> Any:
        if number in self.over:
            return self.over[number]
        if number not in self.caches:
            self.caches[number] = self._made(self.pool)
        return self.caches[number]

    def _in_use(self) -> list[int]:
        """The pages of all caches, then those of the caller."""
        caches = [page for number in sorted(self.caches) for page in self._ids(self.caches[number])]
        return caches + [page for page, _ in self.held.values()]

    def _ids(self, cache: Any) -> list[int]:
        return self._listed(_read(cache.page_ids))

    def _pools(self) -> tuple[Any, Any]:
        return _read(self.pool.key_pages), _read(self.pool.value_pages)

    def _held_by(self, page: int) -> bytes:
        return b"".join(self._numpy(x)[page].tobytes() for x in self._pools())

    def _read_from(self, pages: Sequence[int], length: int) -> tuple[np.ndarray, ...]:
        positions = np.arange(length)
        ids = np.asarray(pages, np.int64)[positions // self.page_size]
        slots = positions % self.page_size
        return tuple(self._numpy(x)[ids, :, slots].swapaxes(0, 1)[None] for x in self._pools())

    def _numpy(self, x: Any) -> np.ndarray:
        return np.asarray(x) if not self.to.owns(x) else self.to.to_numpy(self.to.ready(x))

    def _listed(self, numbers: Any) -> list[int]:
        """Integers, whether they came as a list or as an array."""
        return [int(n) for n in (self._numpy(numbers) if self.to.owns(numbers) else numbers)]


def _read(attribute: Any) -> Any:
    """What an attribute holds, or what a method of its name returns."""
    return attribute() if callable(attribute) else attribute


def _int(value: Any) -> int:
    return operator.index(value)


def _followed(story: _Story, steps: Sequence[tuple[str, Mapping[str, Any]]]) -> dict[str, Any]:
    seen: dict[str, Any] = {}
    for story.number, (method, arguments) in enumerate(steps, 1):
        if method == "table":
            told = step(story.number, partial(story.table, **arguments), ("rows",))
            rows = told.pop(f"{story.number} rows", {})
            seen |= {**told, **{f"{story.number} {name}": x for name, x in rows.items()}}
        else:
            seen |= step(story.number, partial(getattr(story, method), **arguments), NAMES.get(method, ()))
    return seen


def pool(built: Any, given: Mapping[str, Any], to: Arrays) -> dict[str, Any]:
    """built: the subject's pool."""
    return _followed(_Story(lambda: built, given, to), given["steps"])


def caches(make: Callable[[Any], Any], given: Mapping[str, Any], to: Arrays) -> dict[str, Any]:
    """make: the subject's class of caches, or a function that makes one of a pool."""
    return _followed(_Story(partial(given["PagePool"], given), given, to, make), given["steps"])


def tables(function: Callable[..., Any], given: Mapping[str, Any], to: Arrays) -> dict[str, Any]:
    """function: makes block table and context lengths of caches."""
    make = given["PagedKVCache"](given)
    return _followed(_Story(partial(given["PagePool"], given), given, to, make, function), given["steps"])


def attention(make: Callable[[Any], Any], given: Mapping[str, Any], to: Arrays) -> dict[str, Any]:
    """make: the subject's class of caches, whose tokens its paged attention reads."""
    table = given["block_table"](given) if "block_table" in given else None
    story = _Story(partial(given["PagePool"], given), given, to, make, table, given["paged_attention"])
    return _followed(story, given["steps"])


DRIVERS = {"PagePool": pool, "PagedKVCache": caches, "block_table": tables, "PagedKVCache.attention": attention}
