"""How a key/value cache is used: the steps of a story, done to the subject's own caches."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np

from inferspec.conformance.bridge.arrays import Arrays
from inferspec.conformance.bridge.drivers import handed, parts, spoil, step

NAMES = {
    "update_and_fetch": ("keys", "values"),
    "reread": ("keys", "values"),
    "offset": ("offset",),
    "reread_offset": ("offset",),
}
"""step -> what to call the things that it returns."""


class _Story:
    """The cache in use and the one set aside. Results are read at once: later ones may not be what they were."""

    def __init__(self, make: Callable[[], Any], layout: str, to: Arrays) -> None:
        self.make, self.layout, self.to = make, layout, to
        self.cache, self.aside = make(), None
        self.state: Any = None
        self.states: dict[int, Any] = {}
        self.number = 0
        self.given: dict[int, tuple[Any, ...]] = {}
        self.seen: dict[int, tuple[Any, ...]] = {}
        self.sized: Callable[..., Any] = make
        """Makes a cache of any size."""
        self.others: list[Any] = []

    def made(self, max_len: int) -> None:
        self.others.append(self.sized(max_len=max_len))

    def update_and_fetch(self, key: Any, value: Any) -> tuple[np.ndarray, ...]:
        self.given[self.number] = given = self._turned(key), self._turned(value)
        returned = handed(self.cache.update_and_fetch, key=given[0], value=given[1])
        keys, values, *_ = parts(returned, "keys", "values")
        self.seen[self.number] = keys, values
        return self._read(self.number)

    def reread(self, step: int) -> tuple[np.ndarray, ...]:
        return self._read(step)

    def overwrite(self, step: int) -> None:
        spoil(self.given[step])

    def offset(self) -> int:
        offset = self.cache.offset
        self.seen[self.number] = (offset() if callable(offset) else offset,)
        return self.reread_offset(self.number)

    def reread_offset(self, step: int) -> int:
        return int(self.seen[step][0])

    def rewind(self, n: int) -> None:
        handed(self.cache.rewind, n=n)

    def save(self) -> None:
        state = self.cache.state
        # A state may be anything, one that can be called too: a module of torch, for one.
        self.state = self.states[self.number] = state() if inspect.isroutine(state) else state

    def restore(self) -> None:
        handed(self.cache.restore, state=self.state)

    def restore_earlier(self, step: int) -> None:
        handed(self.cache.restore, state=self.states[step])

    def restore_larger(self, max_len: int, key: Any, value: Any, begun: int) -> None:
        larger = self.sized(max_len=max_len)
        for chunk in (slice(begun), slice(begun, None)) if begun else (slice(None),):
            given = (self._turned(x[:, :, chunk]) for x in (key, value))
            handed(larger.update_and_fetch, **dict(zip(("key", "value"), given, strict=True)))
        state = larger.state
        handed(self.cache.restore, state=state() if inspect.isroutine(state) else state)

    def another(self) -> None:
        self.cache, self.aside = self.make(), self.cache

    def switch(self) -> None:
        self.cache, self.aside = self.aside, self.cache

    def _read(self, number: int) -> tuple[np.ndarray, ...]:
        return tuple(self._swapped(self.to.to_numpy(x)) for x in self.to.all_ready(self.seen[number]))

    def _turned(self, x: Any) -> Any:
        """An argument in the subject's layout, contiguous as a model would give it."""
        if not self.layout or x.ndim != 4:
            return x
        return self.to.ready(self.to.from_numpy(np.ascontiguousarray(self._swapped(self.to.to_numpy(x)))))

    def _swapped(self, x: np.ndarray) -> np.ndarray:
        return x.swapaxes(1, 2) if self.layout and x.ndim == 4 else x


def drive(make: Callable[..., Any], given: Mapping[str, Any], to: Arrays) -> dict[str, Any]:
    """make: the subject's class, or a function that makes a cache."""
    size = {name: given[name] for name in ("max_len",) if name in given}
    story = _Story(partial(handed, make, **size), given["layout"], to)
    story.sized = partial(handed, make)
    seen: dict[str, Any] = {}
    for story.number, (method, arguments) in enumerate(given["steps"], 1):
        seen |= step(story.number, partial(getattr(story, method), **arguments), NAMES.get(method, ()))
    return seen


DRIVERS = {"KVCache": drive, "StaticKVCache": drive}
