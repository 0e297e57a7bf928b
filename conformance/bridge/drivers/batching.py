"""How a batch of requests is used: the steps of a story, done to the subject's own batch."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np

from inferspec.conformance.bridge.arrays import Arrays
from inferspec.conformance.bridge.drivers import handed, parts, spoil, step
from inferspec.spec.batch_decoder import Like, codes, favoured
from inferspec.spec.batching import attended, followed, shown, taken, without_idle


class HandedCache:
    """What a request brings where the subject makes no caches of its own: the tokens of its prompt. empty: its state while
    it has none."""

    def __init__(self, to: Arrays, empty: tuple[Any, ...] = ()) -> None:
        self._to, self._empty = to, empty
        self.keys: Any = None
        self.values: Any = None

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(
            f"the cache that a request brings has no {name}; a batch that takes caches of its own kind has make_cache(), or"
            " KVCache beside it"
        )

    @property
    def offset(self) -> int:
        return 0 if self.keys is None else int(self.keys.shape[2])

    @property
    def state(self) -> tuple[Any, ...]:
        return (self.keys, self.values) if self.offset else self._empty

    def update_and_fetch(self, key: Any, value: Any, **options: Any) -> tuple[Any, Any]:
        self.keys, self.values = self._joined(self.keys, key), self._joined(self.values, value)
        return self.keys, self.values

    def rewind(self, n: int) -> None:
        if self.keys is not None:
            left = self.offset - n
            self.keys, self.values = self.keys[:, :, :left], self.values[:, :, :left]

    def _joined(self, old: Any, new: Any) -> Any:
        """A copy always: what the caller does to its arrays is not the subject's matter here."""
        chunks = [self._to.to_numpy(x) for x in (old, new) if x is not None]
        return self._to.ready(self._to.from_numpy(np.concatenate(chunks, axis=2)))


class _Story:
    """The batch in use and the one set aside. Results are read at once: later ones may not be what they were."""

    def __init__(
        self, make: Callable[..., Any], sizes: Mapping[str, int], to: Arrays, own: Callable[[], Any] | None = None
    ) -> None:
        self.sized, self.make, self.to, self.own = make, partial(make, **sizes), to, own
        self.bring: Callable[[], Any] | None = None
        slots = sizes["max_requests"]
        self.slots, self.number = slots, 0
        self.batch, self.taken = self.make(), set[int]()
        self.others: list[Any] = []
        self.aside: tuple[Any, set[int]] = None, set()
        self.idle: dict[int, list[int]] = {}
        """By the number of the step."""
        self.given: dict[int, tuple[Any, Any]] = {}
        self.brought: dict[int, Any] = {}
        self.seen: dict[int, tuple[Any, Any, Any]] = {}
        self.told: dict[int, Any] = {}
        self.favourites: dict[int, int] = {}
        self.lengths: dict[int, int] = {}

    def add(self, key: Any, value: Any, slot: int, stale: int, begun: int = 0) -> None:
        self.given[self.number] = key, value
        cache = self._brought(key, value)
        rest = key, value
        if begun:
            handed(cache.update_and_fetch, key=key[:, :, :begun], value=value[:, :, :begun])
            rest = key[:, :, begun:], value[:, :, begun:]
        if key.shape[2]:
            handed(cache.update_and_fetch, key=rest[0], value=rest[1])
        if stale:
            handed(cache.update_and_fetch, key=self._stale(key, stale), value=self._stale(value, stale))
            handed(cache.rewind, n=stale)
        self.brought[self.number] = cache
        self._enter(cache, slot)

    def _enter(self, cache: Any, slot: int) -> None:
        handed(self.batch.add, cache=cache, slot=slot)
        self.taken.add(slot)

    def _brought(self, key: Any, value: Any) -> Any:
        """An empty cache: the batch's own, or one of the kit's, or the subject's where it cannot do with those."""
        if hasattr(self.batch, "make_cache"):
            return self.batch.make_cache()
        if self.bring is None:
            self.bring = self._kind_of_cache(self._stale(key, 1), self._stale(value, 1))
        return self.bring()

    def _kind_of_cache(self, *token: Any) -> Callable[[], Any]:
        handed_over = partial(HandedCache, self.to)
        own = [] if self.own is None else [self.own]
        kinds: list[Callable[[], Any]] = [handed_over, *own, partial(handed_over, (None, None))]
        taken_full = [kind for kind in kinds if self._takes(kind, token, 1)]
        # A batch that takes no cache without tokens is asked for none.
        taken = (kind for kind in taken_full if self._takes(kind, token, 0))
        return next(taken, (taken_full or kinds)[0])

    def _takes(self, bring: Callable[[], Any], token: tuple[Any, ...], tokens: int) -> bool:
        """Whether a batch of the subject's takes such a cache, with nothing in it or with a token."""
        batch, cache = self.make(), bring()
        new = (self._repeated(x, self.slots) for x in token)
        try:
            if tokens:
                handed(cache.update_and_fetch, **dict(zip(("key", "value"), token, strict=True)))
            handed(batch.add, cache=cache, slot=0)
            if not tokens:
                handed(batch.update_and_fetch, **dict(zip(("key", "value"), new, strict=True)), mask_length=1)
        except Exception:
            return False
        return True

    def _repeated(self, x: Any, rows: int) -> Any:
        return self.to.ready(self.to.from_numpy(np.repeat(self.to.to_numpy(x)[:1], rows, axis=0)))

    def add_alike(self, step: int, slot: int) -> None:
        self.add(*self.given[step], slot, stale=0)

    def add_again(self, step: int, slot: int) -> None:
        self._enter(self.brought[step], slot)

    def remove(self, slot: int) -> None:
        handed(self.batch.remove, slot=slot)
        self.taken.discard(slot)
        self.lengths.pop(slot, None)

    def update_and_fetch(self, key: Any, value: Any, mask_length: int) -> dict[str, Any]:
        self.given[self.number] = key, value
        returned = handed(self.batch.update_and_fetch, key=key, value=value, mask_length=mask_length)
        keys, values, *_, mask = parts(returned, "keys", "values", "mask")
        self.seen[self.number] = keys, values, mask
        self.idle[self.number] = [slot for slot in range(self.slots) if slot not in self.taken]
        return self.reread(self.number)

    def begin(self, tokens: list[int], slot: int, like: Like) -> None:
        self.add(*self._coded(np.array([tokens[:-1]], np.int64), [0], like), slot, stale=0)
        self.favourites[slot], self.lengths[slot] = tokens[-1], len(tokens) - 1

    def decode(self, tokens: list[list[int]], like: Like) -> dict[str, Any]:
        own = taken(tokens, self.favourites, [slot in self.lengths for slot in range(len(tokens))])
        # Where offsets are not offered a decoder has to count.
        counted = [self.lengths.get(slot, 0) for slot in range(len(own))]
        at = self.offsets()["offsets"].tolist() if hasattr(self.batch, "offsets") else counted
        self.update_and_fetch(*self._coded(own, at, like), own.shape[1])
        self.lengths = {slot: length + own.shape[1] for slot, length in self.lengths.items()}
        return {"favoured": followed(self.favourites, favoured(*self._requests(self.number)))}

    def another(self) -> None:
        self.aside = self.batch, self.taken
        self.batch, self.taken = self.make(), set()

    def made(self, max_requests: int, max_len: int) -> None:
        self.others.append(self.sized(max_requests=max_requests, max_len=max_len))

    def switch(self) -> None:
        (self.batch, self.taken), self.aside = self.aside, (self.batch, self.taken)

    def reread(self, step: int) -> dict[str, Any]:
        # A bool mask is right also where the keys come back in a dtype that is not theirs.
        dtype = self.to.to_numpy(self.given[step][0]).dtype
        return shown(*self._read(step), self.idle[step], dtype=dtype)

    def attend(self, query: Any, step: int) -> dict[str, Any]:
        return {"attended": attended(self.to.to_numpy(self.to.ready(query)), *self._requests(step)).value}

    def offsets(self) -> dict[str, Any]:
        offsets = self.batch.offsets
        self.told[self.number] = offsets() if callable(offsets) else offsets
        return self.reread_offsets(self.number)

    def reread_offsets(self, step: int) -> dict[str, Any]:
        offsets = self.told[step]
        numbers = self.to.to_numpy(self.to.ready(offsets)) if self.to.owns(offsets) else np.asarray(list(offsets))
        return {"offsets": numbers}

    def overwrite(self, step: int) -> None:
        spoil(self.given[step])

    def _coded(self, tokens: np.ndarray, positions: list[int], like: Like) -> tuple[Any, Any]:
        key, value = (self.to.ready(self.to.from_numpy(x)) for x in codes(tokens, positions, like))
        return key, value

    def _read(self, number: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        keys, values, mask = (self.to.to_numpy(x) for x in self.to.all_ready(self.seen[number]))
        return keys, values, mask

    def _requests(self, number: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The same, as far as it is of requests."""
        keys, values, mask = self._read(number)
        return keys, values, without_idle(mask, self.idle[number])

    def _stale(self, x: Any, tokens: int) -> Any:
        like = self.to.to_numpy(x)
        nan = np.full((*like.shape[:2], tokens, like.shape[3]), np.nan).astype(like.dtype)
        return self.to.ready(self.to.from_numpy(nan))


def drive(make: Callable[..., Any], given: Mapping[str, Any], to: Arrays) -> dict[str, Any]:
    """make: the subject's class, or a function that makes a batch."""
    sizes = {name: given[name] for name in ("max_requests", "max_len")}
    # What a cache is made of is nothing: what is built is what makes one.
    own = given["KVCache"]({}) if "KVCache" in given else None
    story = _Story(partial(handed, make), sizes, to, own)
    seen: dict[str, Any] = {}
    for story.number, (method, arguments) in enumerate(given["steps"], 1):
        # Every step tells its results by name.
        told = step(story.number, partial(getattr(story, method), **arguments), ("told",))
        results = told.pop(f"{story.number} told", None) or {}
        seen |= told | {f"{story.number} {name}": value for name, value in results.items()}
    return seen


DRIVERS = {"BatchingKVCache": drive}
