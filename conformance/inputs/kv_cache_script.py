"""How stories of key/value caches for the suites are written."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from inferspec.conformance.calls import Call
from inferspec.conformance.inputs.steps import Steps
from inferspec.conformance.strategies import Calls, Pick

BUFFER = 256
"""Tokens by which real caches grow; their paths change beside its multiples."""

SMALL = ((1, 4), (4, 6), (2, 5), (5, 7), (1, 8))
MANY_HEADS = ((40, 3), (9, 4), (17, 5))
WIDE_HEADS = ((2, 128), (1, 72), (3, 27), (2, 256), (1, 80))
"""Heads and head dims of keys: more than a tile of a kernel that copies tokens, and parts of one."""

LARGEST_HEADS = ((1, 576), (70, 3))
"""Those of latent attention, and more heads than any model has."""

COMMON_HEADS = ((8, 128), (8, 64), (4, 128))
"""What most models have."""

MANY_ROWS = (33, 65, 40, 130)
"""Batch rows past whole tiles of a kernel that copies tokens."""

Chunks = Callable[[Pick], int]


def small(pick: Pick) -> int:
    """One token, as in decoding, or a few."""
    return pick.one_of(1, 1, 2, 3, 4, 6)


def beside_buffers(pick: Pick) -> int:
    """A prompt or a token beside the multiples of BUFFER."""
    return pick.one_of(1, 2, BUFFER, BUFFER - 1, BUFFER + 1, 100, 2 * BUFFER, 300)


def whole_buffers(pick: Pick) -> int:
    """A prompt that just fills a buffer that grows in steps."""
    return pick.one_of(BUFFER, 2 * BUFFER, BUFFER // 2)


def thousands(pick: Pick) -> int:
    """A prompt beside the multiples of 1024, or a token."""
    return pick.one_of(1025, 1, 1023, 1024, 2, 700)


def tens_of_thousands(pick: Pick) -> int:
    """A prompt past 4096, 8192, or what 15 and 16 bits count, or a token."""
    return pick.one_of(33_000, 4100, 66_000, 8200, 1)


def prompts(pick: Pick) -> int:
    """A prompt of some blocks, or a token."""
    return pick.one_of(33, 1, 16, 1, 64)


class Script(Steps):
    """A story being written. length: tokens that the cache in use holds then; `aside` and `kept` likewise."""

    def __init__(self, pick: Pick, chunks: Chunks = small, shapes: Sequence[tuple[int, int]] = SMALL) -> None:
        super().__init__(pick)
        self.chunks = chunks
        self.dtype, self.batch = pick("dtypes"), pick("batches")
        self.shape(shapes)
        self.empty = pick("empty_chunks")
        # Past the range of float16 where the dtype reaches, and below what float16 tells from 0.
        self.amplitude = 1.0 if self.dtype == "float16" else pick.one_of(1.0, 1e6, 1e-9)
        most: dict[Chunks, int] = {thousands: 2400, tens_of_thousands: 70_000}
        self.limit = min(pick.envelope["tokens"], most.get(chunks, 600))
        self.length = self.aside = self.kept = self.longest = 0
        self.appended: list[int] = []

    def call(self, static: bool, room: tuple[int, ...] = (0, 1, 7, 300)) -> Call:
        """The story of a cache of either kind. room: how much longer than needed a preallocated cache may be."""
        name = "StaticKVCache" if static else "KVCache"
        sized = {}
        if static:
            enough = max(self.longest, 1)
            sized["max_len"] = min(enough + self.pick.one_of(*room), max(enough, self.pick.envelope["tokens"]))
        return self.viewed(self.pick.call(name, **sized, steps=tuple(self.steps)))

    def shape(self, shapes: Sequence[tuple[int, int]]) -> None:
        """Choose heads and head dims for the tokens to come."""
        same = self.pick("head_dims") == "same"
        self.heads, self.key_dim = self.pick.one_of(*shapes)
        self.value_dim = self.key_dim if same else self.key_dim + self.pick.one_of(1, 2, 9, -1)

    # steps

    def append(self, length: int | None = None, nan: bool = False, view: bool = False) -> int:
        """Append a chunk (of `chunks`, or of that many tokens) that still is within the envelope."""
        if length is None:
            length = self.chunks(self.pick)
            if self.empty and self.pick.one_of(False, False, False, False, True):
                length = 0
        length = max(min(length, self.limit - self.length), 0)
        if not length and self.appended and True not in self.pick.envelope["empty_chunks"]:
            return self.appended[-1]
        number = self.do("update_and_fetch", **self.arrays(length, nan))
        if view:
            self.laid("key", "value")
        self.length += length
        self.longest = max(self.longest, self.length)
        self.appended.append(number)
        return number

    def rewind(self, n: int | None = None) -> None:
        """Rewind by n, or by 1 … all of the tokens."""
        n = self.pick.size(1, self.length) if n is None else n
        self.do("rewind", n=n)
        self.length -= n

    def mistake(self) -> None:
        """Tokens of NaN, rewound with some of those before them."""
        length = self.pick.one_of(1, 2, 5)
        self.append(length, nan=True)
        self.rewind(min(self.pick.one_of(length, length + 1, length + 3), self.length))

    def save(self) -> int:
        self.kept = self.length
        return self.do("save")

    def restore(self) -> None:
        self.do("restore")
        self.length = self.kept

    def restore_earlier(self, step: int, length: int) -> None:
        """Restore the state of so many tokens that an earlier step kept."""
        self.do("restore_earlier", step=step)
        self.length = length

    def another(self) -> None:
        self.do("another")
        self.length, self.aside = 0, self.length

    def switch(self) -> None:
        self.do("switch")
        self.length, self.aside = self.aside, self.length

    def past(self) -> None:
        """What a cache may have been through before it is given something bad: rewinds, and states that it restored.

        A token is left if there was one, since a cache that is rewound to 0 may take other shapes.
        """
        rewinding, restoring = self.pick("rewinding"), self.pick("restoring")
        if rewinding and self.pick.one_of(False, True):
            self.rewind(self.pick.size(0, max(self.length - 1, 0)))
        if restoring:
            self.save()
            if self.pick.one_of(True, False):
                self.another()
            else:
                self.append(self.pick.one_of(1, 2))
            self.restore()
        if rewinding and self.pick.one_of(False, False, True):
            self.rewind(self.pick.size(0, max(self.length - 1, 0)))

    def event(self, rewinding: bool = False) -> None:
        """An append, or one of the ways to rewind; what a rewind of no token does is a matter of its own."""
        match self.pick.one_of("append", "append", "rewind", "mistake") if rewinding else "append":
            case "rewind" if self.length:
                self.rewind()
            case "mistake":
                self.mistake()
            case _:
                self.append()

    def arrays(self, length: int, nan: bool = False) -> dict[str, np.ndarray]:
        """Keys and values of that many tokens."""
        keys, values = (
            self.pick.normal(self.batch, self.heads, length, dim, dtype=self.dtype, amplitude=self.amplitude)
            for dim in (self.key_dim, self.value_dim)
        )
        if nan:
            keys, values = (np.full(x.shape, np.nan).astype(x.dtype) for x in (keys, values))
        return {"key": keys, "value": values}


def with_tokens_of_zeros(call: Call) -> Call:
    """The story of any cache with every other chunk's last token all zeros: a token like others."""
    steps = []
    for number, (method, given) in enumerate(call.arguments["steps"]):
        zeroed = {name: given[name].copy() for name in ("key", "value") if number % 2 and name in given}
        for x in zeroed.values():
            x[:, :, -1:] = 0
        steps.append((method, {**given, **zeroed}))
    return call.having(steps=tuple(steps))


def with_infinities(call: Call) -> Call:
    """The story of any cache with infinities and NaN in its tokens: numbers like others."""
    steps = []
    for method, given in call.arguments["steps"]:
        changed = {name: given[name].copy() for name in ("key", "value") if name in given}
        for x in changed.values():
            if x.size:
                x[:, :, -1, 0], x[:, :, 0, -1], x[:, 0, 0, -1] = np.inf, -np.inf, np.nan
        steps.append((method, {**given, **changed}))
    return call.having(steps=tuple(steps))


def beginning_with_zeros(call: Call) -> Call:
    """The story of a batch whose requests begin with a token of zeros, which is one like others."""
    steps = []
    for method, given in call.arguments["steps"]:
        zeroed = {name: given[name].copy() for name in ("key", "value") if method == "add" and name in given}
        for x in zeroed.values():
            x[:, :, :1] = 0
        steps.append((method, {**given, **zeroed}))
    return call.having(steps=tuple(steps))


def needing(key: str) -> Callable[[Callable[..., Any]], Calls]:
    """Like `calls`, for a subject that can rewind, or restore."""
    return lambda build: Calls(build, {key: [True]})


def going_on(script: Script, then: int = 2) -> Script:
    """What shows that a refused step changed nothing, in the cache or in its state, nor what a rewind does. then: tokens that
    come first."""
    script.do("offset")
    if script.pick.features.get("rewinding") and script.length > 1 and script.pick.one_of(False, True):
        script.rewind(1)
    if script.pick("restoring") and script.pick.one_of(False, True):
        script.save()
        script.another()
        script.restore()
    script.append(then)
    script.do("offset")
    return script
