"""How stories of pools and of their caches are written, for the suites.

No two tokens are alike and no two of P, H, page_size and D. A story may begin with a pool whose every slot held NaN for
another request: what is lost, doubled, misplaced, shared or left from before shows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from inferspec.conformance.calls import Call
from inferspec.conformance.inputs.steps import Steps
from inferspec.conformance.strategies import Calls, Pick
from inferspec.spec.numerics import numpy_dtype

SMALL_PAGES = (1, 2, 3, 4, 8, 16)
"""Page sizes at which a few tokens make several pages."""

OTHER_PAGES = (5, 24, 32, 64, 128)
"""Those of servers, and one that is odd."""

SHAPES = ((2, 5), (5, 2), (1, 6), (3, 10), (6, 1))
LARGE = ((2, 256), (40, 3), (1, 72), (9, 80))
"""Heads and head dims: more than a tile of a kernel that copies tokens has."""

LARGEST = ((1, 576), (70, 2))
"""Those of latent attention, and more heads than any model has."""

COMMON = ((8, 128), (8, 64), (4, 128))
"""What most models have."""

FORMER = 99
"""The number of the cache that used the pool before the story begins."""


class Script(Steps):
    """A story being written. lengths: tokens of each live cache; mine: steps whose page
    the caller has; over: how many caches of a request were released."""

    def __init__(
        self,
        pick: Pick,
        pages: tuple[int, ...] = (9, 7, 11, 5, 13),
        page_size: int | None = None,
        shapes: Sequence[tuple[int, int]] = SHAPES,
    ) -> None:
        super().__init__(pick)
        self.dtype, self.page_size = pick("dtypes"), page_size or pick("page_sizes")
        self.pages = pick.one_of(*pages)
        self.heads, self.dim = pick.one_of(*shapes)
        # Past the range of float16 where the dtype reaches, and below what float16 tells from 0.
        self.amplitude = 1.0 if self.dtype == "float16" else pick.one_of(1.0, 1e6, 1e-9)
        self.empty = True in pick.envelope["empty_chunks"]
        self.lengths: dict[int, int] = {}
        self.mine: list[int] = []
        self.over: dict[int, int] = {}

    @property
    def arguments(self) -> dict[str, Any]:
        """What makes the pool."""
        names = ("num_pages", "page_size", "num_kv_heads", "head_dim", "dtype")
        return dict(zip(names, (self.pages, self.page_size, self.heads, self.dim, self.dtype), strict=True))

    def call(self, operation: str = "PagedKVCache") -> Call:
        return self.viewed(self.pick.call(operation, **self.arguments, steps=tuple(self.steps)))

    @property
    def free(self) -> int:
        """How many pages are free."""
        return self.pages - len(self.mine) - sum(self.pages_of(length) for length in self.lengths.values())

    def pages_of(self, length: int) -> int:
        return -(-length // self.page_size)

    def room(self, cache: int) -> int:
        """How many tokens a cache can take: in its last page, and in all that are free."""
        return -self.lengths.get(cache, 0) % self.page_size + self.free * self.page_size

    # steps

    def size(self) -> int:
        """Tokens of a chunk: one, a few, or beside the multiples of the page size."""
        page = self.page_size
        return max(self.pick.one_of(1, page, page - 1, page + 1, 2, 3, 2 * page, 2 * page + 1, 3 * page - 1, 0), 0)

    def append(self, cache: int = 0, length: int | None = None, nan: bool = False, view: bool = False) -> int:
        """Append a chunk, as far as the pool has room for it; none of no token, where a subject does not take that."""
        length = self.size() if length is None else length
        length = min(length if self.empty else max(length, 1), self.room(cache))
        if not (length or self.empty):
            return len(self.steps)
        number = self.do("append", cache=cache, **self.arrays(length, nan))
        if view:
            self.laid("key", "value")
        self.lengths[cache] = self.lengths.get(cache, 0) + length
        return number

    def rewind(self, cache: int = 0, n: int | None = None) -> None:
        """Rewind by n, or by some of the tokens: to a page's end, past it, or anywhere."""
        length, page = self.lengths.get(cache, 0), self.page_size
        if n is None:
            back = length % page
            n = self.pick.one_of(1, back, back + 1, page, page + 1, 2 * page, length - 1, length)
        n = max(min(n, length), 0)
        self.do("rewind", cache=cache, n=n)
        self.lengths[cache] = length - n

    def release(self, cache: int = 0) -> None:
        self.do("release", cache=cache)
        self.lengths.pop(cache, None)

    def take(self) -> None:
        """The caller takes a page, if one is free."""
        if self.free:
            self.mine.append(self.do("allocate"))

    def give(self, which: int = 0) -> int:
        """The caller gives back one of its pages; returns the step that had got it."""
        step = self.mine.pop(which)
        self.do("free", step=step)
        return step

    def former(self, always: bool = False) -> None:
        """Before the story begins every slot held NaN, or tokens, for another request."""
        match "nan" if always else self.pick.one_of("nothing", "nan", "tokens"):
            case "nan":
                self.append(FORMER, self.pages * self.page_size, nan=True)
                self.release(FORMER)
            case "tokens":
                self.append(FORMER, self.pages * self.page_size)
                self.release(FORMER)

    def cache(self, request: int) -> int:
        """The number of the cache of a request; one that is over is followed by another."""
        return request + 10 * self.over.get(request, 0)

    def event(self, requests: int = 2, rewinding: bool = False, releasing: bool = True) -> None:
        """Something happens to the cache of one of the requests."""
        request = self.pick.one_of(*range(requests))
        cache = self.cache(request)
        kinds = ["append", "append", *(["rewind", "mistake"] if rewinding else []), *(["release"] if releasing else [])]
        match self.pick.one_of(*kinds):
            case "rewind" if cache in self.lengths:
                self.rewind(cache)
            case "mistake":
                self.mistake(cache)
            case "release" if cache in self.lengths:
                self.release(cache)
                self.over[request] = self.over.get(request, 0) + 1
            case _:
                self.append(cache)

    def mistake(self, cache: int = 0) -> None:
        """Tokens of NaN, rewound with some of those before them."""
        before = self.lengths.get(cache, 0)
        self.append(cache, self.pick.one_of(1, 2, self.page_size + 1), nan=True)
        # Where there is no room nothing was appended.
        if cache in self.lengths:
            self.rewind(cache, self.lengths[cache] - before + self.pick.one_of(0, 1, self.page_size))

    def look(self, *methods: str) -> None:
        """Do the steps to each live cache."""
        for cache in self.lengths:
            for method in methods:
                self.do(method, cache=cache)

    def whole(self) -> None:
        """All that can be told from outside."""
        self.look("offset", "pages", "gather", "read")
        self.do("ids")
        self.do("num_free")

    def arrays(self, length: int, nan: bool = False) -> dict[str, np.ndarray]:
        """Keys and values of that many tokens."""
        shape = (1, self.heads, length, self.dim)
        if nan:
            return {name: np.full(shape, np.nan).astype(numpy_dtype(self.dtype)) for name in ("key", "value")}
        return {name: self.pick.normal(*shape, dtype=self.dtype, amplitude=self.amplitude) for name in ("key", "value")}


def calls(build: Callable[..., Any]) -> Calls:
    """Stories of small pages, if not said otherwise, or of those that a test asks for, where a subject has such."""
    return Calls(build, preferred={"page_sizes": SMALL_PAGES}, yielding=["page_sizes"])


def of_small_pages(build: Callable[..., Any]) -> Calls:
    """Stories of so many pages that larger ones than are asked for would be too large."""
    return calls(build).strict()


def needing(build: Callable[..., Any]) -> Calls:
    """Like `calls`, for a subject that can rewind."""
    return calls(build)(rewinding=[True])


def bounded(build: Callable[..., Any]) -> Calls:
    """Like `calls`, for a pool that has so many pages and no more."""
    return calls(build)(bounded=[True])
