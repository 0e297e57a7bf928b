"""Appends without room, arrays that do not fit, and what they change before they are refused: see `spec/faults/paged_kv_refusals.py`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from inferspec.spec.contract import Change
from inferspec.spec.numerics import numpy_dtype
from inferspec.spec.paged_kv import BlockTable, Cache, PagedKVCache, Story

# room


def any_room(self: PagedKVCache, story: Story, cache: Cache, length: int) -> None:
    """There always is."""


def own_first_page(self: PagedKVCache, story: Story, cache: Cache) -> None:
    while len(cache.pages) < self.needed(story, cache.length):
        cache.pages.append(self.take(story.pool) if story.pool.free else (cache.pages or [0])[0])


def cut_short(self: PagedKVCache, story: Story, cache: Cache, key: np.ndarray, value: np.ndarray) -> None:
    room = (len(cache.pages) + self.count(story.pool)) * story.a.page_size - cache.length
    PagedKVCache.extend(self, story, cache, key[:, :, :room], value[:, :, :room])


def length_last(self: PagedKVCache, story: Story, cache: Cache, key: np.ndarray, value: np.ndarray) -> None:
    """Pages are taken one by one; those taken before the pool is empty stay, the tokens do not."""
    before = cache.length
    try:
        PagedKVCache.extend(self, story, cache, key, value)
    except ValueError:
        cache.length = before
        raise


def pages_forgotten(self: PagedKVCache, story: Story, cache: Cache) -> None:
    before = list(cache.pages)
    try:
        PagedKVCache.grow(self, story, cache)
    except ValueError:
        cache.pages = before
        raise


def fills_then_refuses(self: PagedKVCache, story: Story, cache: Cache, key: np.ndarray, value: np.ndarray) -> None:
    room = (len(cache.pages) + self.count(story.pool)) * story.a.page_size - cache.length
    PagedKVCache.extend(self, story, cache, key[:, :, :room], value[:, :, :room])
    if key.shape[2] > room:
        raise ValueError("the rest does not fit")


def releases_when_full(self: PagedKVCache, story: Story, cache: Cache, length: int) -> None:
    try:
        PagedKVCache.check_room(self, story, cache, length)
    except ValueError:
        self.let_go(story, cache)
        raise


def reserve(self: PagedKVCache, story: Story, cache: Cache, length: int) -> None:
    needed = self.needed(story, cache.length + length) - len(cache.pages)
    if needed and needed >= self.count(story.pool):
        raise ValueError("one page is kept free")


def tail_not_counted(self: PagedKVCache, story: Story, cache: Cache, length: int) -> None:
    if self.needed(story, length) > self.count(story.pool):
        raise ValueError("too few pages")


# arrays that do not fit


def fits_but(**free: bool) -> Change:
    """Some axes are not compared. free: batch, length, heads, dims, rank, or more of them."""

    def check_shapes(self: PagedKVCache, story: Story, key: np.ndarray, value: np.ndarray) -> None:
        if free.get("rank") and key.ndim == value.ndim == 3:
            key, value = key[None], value[None]
        if free.get("more"):
            key, value = _of_four_axes(key), _of_four_axes(value)
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
        key, value = _of_four_axes(key), _of_four_axes(value)
        length = max(key.shape[2], value.shape[2])
        shape = (1, story.a.num_kv_heads, length, story.a.head_dim)
        PagedKVCache.extend(self, story, cache, *(np.broadcast_to(x[:1], shape) for x in (key, value)))

    return {"check_shapes": check_shapes, "extend": extend, "check_append": _checks_longer}


def checks_filled(self: PagedKVCache, story: Story, cache: Cache, key: np.ndarray, value: np.ndarray) -> None:
    """Tokens of fewer features are written into the slots that there are."""
    PagedKVCache.check_append(self, story, cache, *_of_all_features(story, key, value))


def extends_filled(self: PagedKVCache, story: Story, cache: Cache, key: np.ndarray, value: np.ndarray) -> None:
    PagedKVCache.extend(self, story, cache, *_of_all_features(story, key, value))


def _of_all_features(story: Story, *arrays: np.ndarray) -> list[np.ndarray]:
    """Arrays with zeros for the features that they lack."""
    return [
        np.concatenate([x, np.zeros((*x.shape[:-1], max(story.a.head_dim - x.shape[-1], 0)), x.dtype)], axis=-1)
        for x in arrays
    ]


def _of_four_axes(x: np.ndarray) -> np.ndarray:
    """An array without the axes of one number behind its fourth."""
    return x[..., 0] if x.ndim == 5 and x.shape[4] == 1 else x


def _checks_longer(self: PagedKVCache, story: Story, cache: Cache, key: np.ndarray, value: np.ndarray) -> None:
    self.check_shapes(story, key, value)
    self.check_dtype(story, key, value)
    self.check_room(story, cache, max(_of_four_axes(x).shape[-2] for x in (key, value)))


def any_dtype(self: PagedKVCache, story: Story, key: np.ndarray, value: np.ndarray) -> None:
    """All are cast."""


def key_dtype_alone(self: PagedKVCache, story: Story, key: np.ndarray, value: np.ndarray) -> None:
    if key.dtype != numpy_dtype(story.a.dtype):
        raise ValueError("another dtype")


def pages_before_checks(self: PagedKVCache, story: Story, cache: Cache, key: np.ndarray, value: np.ndarray) -> None:
    if key.ndim == 4 and self.needed(story, cache.length + key.shape[2]) - len(cache.pages) <= self.count(story.pool):
        while len(cache.pages) < self.needed(story, cache.length + key.shape[2]):
            cache.pages.append(self.take(story.pool))
    PagedKVCache.check_append(self, story, cache, key, value)


def offset_before_checks(self: PagedKVCache, story: Story, cache: Cache, key: np.ndarray, value: np.ndarray) -> None:
    try:
        PagedKVCache.check_append(self, story, cache, key, value)
    except ValueError:
        if key.ndim == 4 and cache.length % story.a.page_size:
            cache.length += 1
        raise


def marks_short(self: PagedKVCache, story: Story, cache: Cache, length: int) -> None:
    try:
        PagedKVCache.check_room(self, story, cache, length)
    except ValueError:
        story.short = True
        raise


def page_lost_once_short(self: PagedKVCache, story: Story, cache: Cache) -> None:
    """After a chunk for which there was no room one page is held back at the next release."""
    if cache.pages and getattr(story, "short", False):
        story.pool.used.discard(cache.pages.pop())
        story.short = False
    PagedKVCache.let_go(self, story, cache)


# what a refusal leaves behind


def _marks(check: Callable[..., None]) -> Callable[..., None]:
    """A check that what it is asked of, a story or a cache, remembers where it refuses."""

    def checked(self: PagedKVCache, *given: Any) -> None:
        try:
            check(self, *given)
        except ValueError:
            vars(given[0])["refused"] = True
            raise

    return checked


def _loses_a_page(self: PagedKVCache, story: Story, cache: Cache, n: int) -> None:
    before = len(cache.pages)
    PagedKVCache.drop(self, story, cache, n)
    if len(cache.pages) < before and (vars(cache).get("refused") or vars(story).get("refused")):
        story.pool.free.pop()


def _keeps_a_page(self: PagedKVCache, story: Story, cache: Cache) -> None:
    if cache.pages and (vars(cache).get("refused") or vars(story).get("refused")):
        cache.pages = cache.pages[1:]
    PagedKVCache.let_go(self, story, cache)


def pages_lost_behind(name: str, check: Callable[..., None]) -> Change:
    """Once a check has refused something, a rewind and a release lose a page."""
    return {name: _marks(check), "drop": _loses_a_page, "let_go": _keeps_a_page}


def marks_without_room(self: PagedKVCache, story: Story, cache: Cache, length: int) -> None:
    try:
        PagedKVCache.check_room(self, story, cache, length)
    except ValueError:
        vars(story)["begun"] = cache
        cache.begun = True
        raise


def goes_on_with_the_refused(
    self: PagedKVCache, story: Story, cache: Cache, positions: np.ndarray, key: np.ndarray, value: np.ndarray
) -> None:
    """What was laid out for a chunk without room is written into the next cache in its place."""
    begun = vars(story).pop("begun", cache)
    if begun is not cache:
        key, value = np.zeros_like(key), np.zeros_like(value)
    PagedKVCache.write(self, story, cache, positions, key, value)


def lens_with_the_refused(self: BlockTable, story: Story, rows: Sequence[Cache]) -> list[int]:
    """A row whose chunk had no room counts it until it takes another."""
    return [max(row.length - vars(row).get("begun", False), 0) for row in rows]
