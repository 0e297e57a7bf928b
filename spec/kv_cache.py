"""Key/value caches of one attention layer: one that grows, and one that is preallocated for `max_len` tokens.

Shapes: B batch, H key/value heads, L new tokens, S cached tokens; keys B×H×S×D_k, values B×H×S×D_v.

A call is a story: `steps` of one cache, with a second one beside it. A step is (method, arguments), and gives parts:

    update_and_fetch(key, value)  append L tokens, 0 too, and return keys and values of all S cached ones
    offset()                      how many tokens are cached
    rewind(n)                     drop the last n tokens
    save()                        keep the cache's `state`
    another()                     go on with a fresh cache of the same kind; the one before is set aside
    switch()                      go on with the cache that is set aside
    made(max_len)                 a preallocated cache of another size is made, and kept
    restore()                     have the cache `restore` the state that was kept last
    restore_earlier(step)         the same for the state that an earlier step kept
    restore_larger(max_len, key, value, begun)  the same for the state of another preallocated cache, which holds these
                                  tokens, the first `begun` of them appended before the others
    reread(step)                  the keys and values that an earlier step returned, as they are now
    reread_offset(step)           the offset that an earlier step read, as it is now
    overwrite(step)               the caller writes NaN over the key and value that it gave to an earlier step

A step that raises gives the part `refused`, has changed nothing, and the story goes on. Left open: whether a cache
that was rewound to 0 takes other shapes than before, whether one in use restores tokens of another kind than its own, and what
`state` is made of.

Memory is no part of the contract: what a cache holds cannot be told from outside in a way that all kinds of arrays
share. `impl/test_kv_cache.py` measures that of the kit's own.

Source: the tiny-llm course, week 2 day 1; the JAX post, part 2; PROPERTIES KV1 to KV4.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any, ClassVar

import numpy as np

from inferspec.spec.contract import (
    STORY,
    Answer,
    Answers,
    Arguments,
    Aspect,
    Contract,
    Level,
    Operation,
    Requirement,
    Signature,
)
from inferspec.spec.numerics import Precision, f64

COURSE = "tiny-llm course, week 2 day 1"

Cache = SimpleNamespace
"""The model of a cache: `keys` and `values`, B×H×S×D arrays, or None before the first append, and `room` if preallocated."""

Story = SimpleNamespace
"""What a story knows on its way: the arguments `a`, the `cache` in use and the one set `aside`, the `kept` state, and
by number of the step the arrays `given`, the results `seen` and the `states` that were kept."""


class KVCache(Operation):
    """A list of tokens: append to its end, drop from its end. Nothing is computed, so every budget is 0."""

    signature = Signature.parse("KVCache(steps)")
    parts = STORY
    methods = ("update_and_fetch",)
    optional_methods: ClassVar = {
        "rewind": ("rewinding", (False,)),
        "state": ("restoring", (False,)),
        "restore": ("restoring", (False,)),
    }
    only_read = frozenset({"state"})

    def evaluate(self, a: Arguments, precision: Precision) -> Answers:
        return {part: Answer(value, np.zeros(value.shape)) for part, value in self.told(a).items()}

    def part_dtype(self, part: str, a: Arguments) -> str:
        number, _, kind = part.partition(" ")
        name = {"keys": "key", "values": "value"}.get(kind)
        if name is None:
            return "int64"
        _, given = a.steps[int(number) - 1]
        dtype: str = given[name].dtype.name if name in given else self.part_dtype(f"{given['step']} {kind}", a)
        return dtype

    def told(self, a: Arguments) -> dict[str, np.ndarray]:
        """What every step gives, in float64."""
        story = Story(a=a, cache=self.fresh(a), aside=self.fresh(a), kept=None, given={}, seen={}, states={})
        parts: dict[str, np.ndarray] = {}
        for number, (method, given) in enumerate(a.steps, 1):
            story.number = number
            own = {name: self.taken(x) if isinstance(x, np.ndarray) else x for name, x in given.items()}
            try:
                seen: Mapping[str, Any] = getattr(self, method)(story, **own) or {}
            except (ValueError, IndexError):  # a fault without its guard may stumble later
                seen = {"refused": 1}
            parts |= {f"{number} {name}": f64(value) for name, value in seen.items()}
        return parts

    # the steps of a story

    def update_and_fetch(self, story: Story, key: np.ndarray, value: np.ndarray) -> dict[str, Any]:
        self.check_append(story.cache, key, value)
        self.store(story.cache, key, value)
        story.given[story.number] = key, value
        story.seen[story.number] = self.fetched(story.cache)
        return dict(zip(("keys", "values"), story.seen[story.number], strict=True))

    def offset(self, story: Story) -> dict[str, Any]:
        story.seen[story.number] = self.offset_of(story)
        return {"offset": story.seen[story.number]}

    def reread_offset(self, story: Story, step: int) -> dict[str, Any]:
        return {"offset": story.seen[step]}

    def rewind(self, story: Story, n: int) -> None:
        self.check_rewind(story.cache, n)
        self.drop(story.cache, n)

    def save(self, story: Story) -> None:
        story.kept = story.states[story.number] = self.state_of(story.cache)

    def another(self, story: Story) -> None:
        story.cache, story.aside = self.fresh(story.a), story.cache

    def switch(self, story: Story) -> None:
        story.cache, story.aside = story.aside, story.cache

    def restore(self, story: Story) -> None:
        self.become(story.cache, story.kept)

    def restore_earlier(self, story: Story, step: int) -> None:
        self.become(story.cache, story.states[step])

    def reread(self, story: Story, step: int) -> dict[str, Any]:
        return dict(zip(("keys", "values"), story.seen[step], strict=True))

    def overwrite(self, story: Story, step: int) -> None:
        for x in story.given[step]:
            x[...] = np.nan

    # what a cache does

    def fresh(self, a: Arguments) -> Cache:
        return Cache(keys=None, values=None)

    def taken(self, x: np.ndarray) -> np.ndarray:
        """An argument as the story uses it: the caller's own array stays out of it."""
        return np.array(x)

    def check_append(self, cache: Cache, key: np.ndarray, value: np.ndarray) -> None:
        self.check_pair(key, value)
        self.check_fit(cache, key, value)
        self.check_dtype(cache, key, value)

    def check_pair(self, key: np.ndarray, value: np.ndarray) -> None:
        if key.ndim != 4 or value.ndim != 4 or key.shape[:3] != value.shape[:3]:
            raise ValueError(f"key is {key.shape} and value {value.shape}, not B×H×L×D with the same B×H×L")

    def check_fit(self, cache: Cache, key: np.ndarray, value: np.ndarray) -> None:
        for x, cached in ((key, cache.keys), (value, cache.values)):
            if cached is not None and (x.shape[:2], x.shape[3]) != (cached.shape[:2], cached.shape[3]):
                raise ValueError(f"{x.shape} after {cached.shape}")

    def check_dtype(self, cache: Cache, key: np.ndarray, value: np.ndarray) -> None:
        for x, cached in ((key, cache.keys), (value, cache.values)):
            if cached is not None and cached.shape[2] and x.dtype != cached.dtype:
                raise ValueError(f"{x.dtype.name} after {cached.dtype.name}")

    def check_rewind(self, cache: Cache, n: int) -> None:
        if not 0 <= n <= self.length(cache):
            raise ValueError(f"n is {n} with {self.length(cache)} tokens cached")

    def store(self, cache: Cache, key: np.ndarray, value: np.ndarray) -> None:
        # Tokens that are all gone are none to follow.
        first = cache.keys is None or not cache.keys.shape[2]
        cache.keys = key.copy() if first else np.concatenate([cache.keys, key], axis=2)
        cache.values = value.copy() if first else np.concatenate([cache.values, value], axis=2)

    def fetched(self, cache: Cache) -> tuple[np.ndarray, np.ndarray]:
        return cache.keys.copy(), cache.values.copy()

    def offset_of(self, story: Story) -> int:
        return self.length(story.cache)

    def length(self, cache: Cache) -> int:
        return 0 if cache.keys is None else int(cache.keys.shape[2])

    def drop(self, cache: Cache, n: int) -> None:
        if cache.keys is not None:
            left = self.length(cache) - n
            cache.keys, cache.values = cache.keys[:, :, :left], cache.values[:, :, :left]

    def state_of(self, cache: Cache) -> Any:
        return cache.keys, cache.values

    def become(self, cache: Cache, state: Any) -> None:
        cache.keys, cache.values = state


class StaticKVCache(KVCache):
    """The same list with room for `max_len` tokens."""

    signature = Signature.parse("StaticKVCache(max_len, steps)")

    def fresh(self, a: Arguments) -> Cache:
        return Cache(keys=None, values=None, room=a.max_len)

    def made(self, story: Story, max_len: int) -> None:
        vars(story).setdefault("others", []).append(self.fresh(Arguments(max_len=max_len)))

    def check_append(self, cache: Cache, key: np.ndarray, value: np.ndarray) -> None:
        super().check_append(cache, key, value)
        self.check_room(cache, key)

    def restore_larger(self, story: Story, max_len: int, key: np.ndarray, value: np.ndarray, begun: int) -> None:
        larger = self.fresh(Arguments(max_len=max_len))
        for chunk in (slice(begun), slice(begun, None)) if begun else (slice(None),):
            self.store(larger, key[:, :, chunk], value[:, :, chunk])
        self.check_state(story.cache, larger)
        self.become(story.cache, self.state_of(larger))

    def check_state(self, cache: Cache, larger: Cache) -> None:
        if self.length(larger) > cache.room:
            raise ValueError(f"a state of {self.length(larger)} tokens and room for {cache.room}")

    def check_room(self, cache: Cache, key: np.ndarray) -> None:
        if self.length(cache) + key.shape[2] > cache.room:
            raise ValueError(f"{key.shape[2]} tokens after {self.length(cache)} of {cache.room}")


def _both(
    number: int, text: str, level: Level = Level.MUST, aspect: Aspect = Aspect.VALUE, source: str = ""
) -> tuple[Requirement, Requirement]:
    """The same sentence about the growing and about the preallocated cache."""
    return (
        Requirement(f"KV-{number:02}", text, "KVCache", level, aspect, source or COURSE),
        Requirement(f"SKV-{number:02}", text, "StaticKVCache", level, aspect, source or COURSE),
    )


def _static(
    number: int, text: str, aspect: Aspect = Aspect.VALUE, source: str = "", level: Level = Level.MUST
) -> Requirement:
    return Requirement(f"SKV-{number:02}", text, "StaticKVCache", level, aspect, source)


KV_01, SKV_01 = _both(
    1, "every append returns the keys and values of all tokens so far, in order, bit for bit", source="PROPERTIES KV1"
)
KV_02, SKV_02 = _both(
    2,
    "chunks may be of any size, 0, 1 and past 256 and 512 too: how tokens are chunked does not show",
    source="PROPERTIES KV2, CP1",
)
KV_03, SKV_03 = _both(3, "every batch row and every head has its own tokens", source="PROPERTIES X3")
KV_04, SKV_04 = _both(4, "keys and values may have different head dims", source="PROPERTIES PA7")
KV_05, SKV_05 = _both(
    5,
    "offset is the number of cached tokens, before the first append, and after every append, rewind and restore; one that "
    "was read keeps its value",
    source="tiny-llm 4cddec2; mlx-lm eb98ff72; https://github.com/ml-explore/mlx-lm/issues/1806; PROPERTIES KV3",
)
KV_06, SKV_06 = _both(
    6, "keys and values come back in the dtype that they came in", aspect=Aspect.DTYPE, source="PROPERTIES X4, KV1"
)
KV_07, SKV_07 = _both(
    7, "keys and values may each be a strided view: what is cached is that of their copies", source="PROPERTIES X1"
)
KV_08, SKV_08 = _both(8, "an append changes neither its key nor its value", source="PROPERTIES X6")
KV_09, SKV_09 = _both(
    9,
    "what the caller does to its arrays after an append does not show in the cache",
    Level.SHOULD,
    source="PROPERTIES X6",
)
KV_10, SKV_10 = _both(10, "what an append returned keeps its values when more is appended", source="PROPERTIES X7")
KV_11, SKV_11 = _both(
    11,
    "what an append returned keeps its values when the cache is rewound and appended to",
    Level.SHOULD,
    source="PROPERTIES X7",
)
KV_12, SKV_12 = _both(
    12,
    "rewind(n) drops the last n tokens: what is appended next takes their place, and they never show again, NaN neither",
    source="PROPERTIES KV1, SP4",
)
KV_13, SKV_13 = _both(
    13,
    "rewinding by 0 changes nothing, and a cache that is rewound by all its tokens begins anew at offset 0",
    source="PROPERTIES KV1",
)
KV_14, SKV_14 = _both(
    14,
    "a rewind by more tokens than are cached, or by less than none, is refused",
    aspect=Aspect.GUARD,
    source="PROPERTIES X9",
)
KV_15, SKV_15 = _both(15, "a refused rewind changes nothing", source="PROPERTIES X9, PG5")
KV_16, SKV_16 = _both(
    16,
    "keys and values that are not B×H×L×D with the same B, H and L are refused",
    Level.SHOULD,
    Aspect.GUARD,
    source="PROPERTIES X9",
)
KV_17, SKV_17 = _both(
    17,
    "an append whose B, H or head dims are not those of the tokens before it is refused",
    aspect=Aspect.GUARD,
    source="PROPERTIES X9",
)
KV_18, SKV_18 = _both(
    18, "an append of another dtype than before is refused", Level.SHOULD, Aspect.GUARD, source="PROPERTIES X9"
)
KV_19, SKV_19 = _both(19, "a refused append changes nothing", Level.SHOULD, source="PROPERTIES X9, PG5")
KV_20, SKV_20 = _both(
    20,
    "a fresh cache that restores a state goes on as the one that it was taken from, in results and offset",
    source="mlx-lm beceb5c1; vllm-metal 9081de3; PROPERTIES KV4, PC8",
)
KV_21, SKV_21 = _both(
    21,
    "a state is that of its time, that of a restored cache too, and a restored cache shares nothing with the one that it"
    " was taken from: appends and rewinds of either do not show in the other, nor in the state",
    source="PROPERTIES KV4, CB4",
)
KV_22, SKV_22 = _both(
    22,
    "a cache in use that restores a state drops all that it had; a state of other heads, dims, rows or another dtype is taken "
    "as it is, or refused",
    source="PROPERTIES KV4, BK3",
)
KV_23, SKV_23 = _both(
    23,
    "caches have nothing in common: a story is the same whatever others do meanwhile, of whatever sizes",
    source="PROPERTIES X7, X11",
)
KV_30, SKV_30 = _both(
    30,
    "a cache without tokens, rewound by all or given an empty chunk, takes those of another dtype as they are, or refuses them",
    Level.SHOULD,
    source="PROPERTIES X4, KV1",
)
SKV_24 = _static(
    24,
    "any max_len that is enough gives the same results and offsets",
    source="mlx-lm eb98ff72, e03e45ed; PROPERTIES KV2",
)
SKV_25 = _static(
    25,
    "max_len tokens fit: the cache can be filled to the last slot, rewound and filled again",
    source="PROPERTIES SC6",
)
SKV_26 = _static(26, "an append past max_len is refused", Aspect.GUARD, source="PROPERTIES X9, PG5")
SKV_27 = _static(
    27,
    "an append past max_len changes nothing: what fits is still taken",
    source="PROPERTIES X9, PG5",
)
SKV_28 = _static(
    28,
    "a state of more than max_len tokens, that of a larger cache, is refused",
    Aspect.GUARD,
    source="PROPERTIES X9, KV4",
    level=Level.SHOULD,
)
SKV_29 = _static(29, "a refused restore changes nothing", source="PROPERTIES PG5, KV4")


CONTRACT = Contract(
    component="kv_cache",
    title="key/value caches of one layer",
    version=1,
    operations=(KVCache, StaticKVCache),
    envelope={
        "dtypes": ("float32", "float16", "bfloat16"),
        "batches": (1, 2, 3, 9),
        "head_dims": ("same", "different"),
        "empty_chunks": (True, False),
        "rewinding": (True, False),
        "restoring": (True, False),
        "tokens": 70_000,
    },
    requirements=tuple(value for value in list(globals().values()) if isinstance(value, Requirement)),
    layouts=("", "BLHD"),
)
