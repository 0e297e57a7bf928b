"""Stories of key/value caches for the suites: appends, rewinds, saves and restores, each with a model of its own.

No two tokens are alike, no two of B, H, D_k and D_v either (unless the head dims are the same), and what a story
rewinds over can hold NaN: a token that is lost, doubled, misplaced or kept too long shows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from inferspec.conformance.calls import Call
from inferspec.conformance.inputs.steps import Steps
from inferspec.conformance.strategies import Calls, Pick, calls
from inferspec.spec.numerics import numpy_dtype

BUFFER = 256
"""Tokens by which real caches grow; their paths change beside its multiples."""

SMALL = ((1, 4), (4, 6), (2, 5), (5, 7), (1, 8))
MANY_HEADS = ((40, 3), (9, 4), (17, 5))
WIDE_HEADS = ((2, 128), (1, 72), (3, 27), (2, 256), (1, 80))
"""Heads and head dims of keys: more than a tile of a kernel that copies tokens, and parts of one."""

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


def needing(key: str) -> Callable[[Callable[..., Any]], Calls]:
    """Like `calls`, for a subject that can rewind, or restore."""
    return lambda build: Calls(build, {key: [True]})


@calls
def appends(
    pick: Pick,
    static: bool = False,
    chunks: Chunks = small,
    views: bool = False,
    room: tuple[int, ...] = (0, 1, 7, 300),
    shapes: Sequence[tuple[int, int]] = SMALL,
    most: int = 6,
    rows: Sequence[int] = (),
) -> Call:
    """Appends alone. shapes: heads and head dims of keys; most: of how many appends; rows: batch rows, in place of those that
    the envelope has."""
    script = Script(pick, chunks, shapes)
    script.batch = pick.one_of(*rows) if rows else script.batch
    for _ in range(pick.size(1, most)):
        script.append(view=views)
    return script.call(static, room)


@calls
def decoding(pick: Pick, static: bool = False) -> Call:
    """A prompt, and dozens of tokens one after the other."""
    script = Script(pick)
    script.append()
    for _ in range(pick.size(20, 70)):
        script.append(1)
    return script.call(static)


@calls
def crossing(pick: Pick, static: bool = False, rewound: bool = False) -> Call:
    """Token by token over the sizes that buffers grow to, by steps or by doubling. rewound: the tokens that were there first."""
    script = Script(pick, shapes=((2, 4), (1, 8)))
    size = pick.one_of(1024, 512, 256, 2048, 4096, 768)
    script.limit = min(pick.envelope["tokens"], 4200)
    script.append(size - pick.one_of(1, 0, 2))
    if rewound:
        pick("rewinding")
        script.append(pick.one_of(3, 300))
        script.rewind(max(script.length - size, 0))
    for _ in range(3):
        script.append(1)
    return script.call(static)


@calls
def with_offsets(pick: Pick, static: bool = False, chunks: Chunks = small) -> Call:
    """Every kind of event, with the offset before and after."""
    script = Script(pick, chunks)
    rewinding, restoring = pick("rewinding"), pick("restoring")
    script.do("offset")
    for _ in range(pick.size(1, 4)):
        script.event(rewinding)
        script.do("offset")
    if restoring:
        script.save()
        script.another()
        script.restore()
        script.do("offset")
        script.event(rewinding)
        script.do("offset")
    for number in [n for n, (method, _) in enumerate(script.steps, 1) if method == "offset"]:
        script.do("reread_offset", step=number)
    return script.call(static)


@needing("rewinding")
def rewinds(pick: Pick, static: bool = False, chunks: Chunks = small, room: tuple[int, ...] = (0, 1, 7, 300)) -> Call:
    """Appends and rewinds, the last of them followed by an append."""
    pick("rewinding")
    script = Script(pick, chunks)
    script.append()
    for _ in range(pick.size(0, 3)):
        script.event(rewinding=True)
    if pick.one_of(False, True) or not script.length:
        script.mistake()
    else:
        script.rewind()
    script.append(max(chunks(pick), 1))
    return script.call(static, room)


@needing("rewinding")
def guessing(pick: Pick, static: bool = False) -> Call:
    """Round after round a few tokens are guessed, and most of them rewound, as speculation does."""
    pick("rewinding")
    script = Script(pick)
    script.append()
    for _ in range(pick.size(12, 40)):
        guessed = int(pick.random.integers(1, 6))
        script.append(guessed)
        script.rewind(int(pick.random.integers(0, guessed + 1)))
    script.append(1)
    script.do("offset")
    return script.call(static)


@needing("rewinding")
def rewinds_to_the_ends(pick: Pick, static: bool = False, chunks: Chunks = small) -> Call:
    """Rewinds by nothing and by everything, at any time."""
    pick("rewinding")
    script = Script(pick, chunks)
    if pick.one_of(False, True):
        script.do("rewind", n=0)
    for _ in range(pick.size(1, 3)):
        script.append()
        script.rewind(pick.one_of(0, script.length))
        if pick.one_of(False, True):
            script.do("offset")
    script.append()
    script.do("offset")
    return script.call(static)


@needing("rewinding")
def bad_rewinds(pick: Pick, static: bool = False, chunks: Chunks = small) -> tuple[Call, int]:
    """(story, number of the step that must be refused): a rewind too far or backwards, and what comes after it."""
    pick("rewinding")
    script = Script(pick, chunks)
    if pick.one_of(True, True, True, False):
        script.append()
    if pick.one_of(False, True):
        script.event(rewinding=True)
    script.past()
    # The longest that the cache has been is too far too, unless it still is so long.
    once = max(script.longest, script.length + 1)
    n = pick.one_of(script.length + 1, once, script.length + 5, -1, -2, 2**31, -script.length - 1, 2**32)
    bad = script.do("rewind", n=n)
    return _going_on(script).call(static), bad


@calls
def bad_pairs(pick: Pick, static: bool = False) -> tuple[Call, int]:
    """(story, number of the step that must be refused): a key and a value that are no pair, first or later."""
    script = Script(pick)
    if pick.one_of(False, True):
        script.append()
        script.past()
    given = script.arrays(pick.one_of(2, 3, 5))
    name, other = pick.one_of(("key", "value"), ("value", "key"))
    match pick.one_of("longer", "one", "wider", "more rows", "flat", "five axes"):
        case "longer":
            given[name] = np.concatenate([given[name], given[name][:, :, :1]], axis=2)
        case "one":
            # One token for all, as broadcasting would have it.
            given[name] = given[name][:, :, :1]
        case "wider":
            given[name] = np.concatenate([given[name], given[name][:, :1]], axis=1)
        case "more rows":
            given[name] = np.concatenate([given[name], given[name][:1]], axis=0)
        case "flat":
            given = {name: given[name][0], other: given[other][0]}
        case _:
            given = {name: given[name][None], other: given[other][None]}
    bad = script.do("update_and_fetch", key=given["key"], value=given["value"])
    return _going_on(script).call(static, room=(8, 300)), bad


@calls
def bad_shapes(
    pick: Pick, static: bool = False, chunks: Chunks = small, begun: int = 0, then: int = 2
) -> tuple[Call, int]:
    """(story, number of the step that must be refused): a chunk that does not fit those before it. begun: how many of them come
    right before it; then: how many tokens right after it."""
    script = Script(pick, chunks)
    script.append(max(chunks(pick), 1))
    script.past()
    for _ in range(begun):
        script.append(max(chunks(pick), 1))
    given = script.arrays(pick.one_of(1, 2, 3))
    match pick.one_of(
        "rows",
        "one row",
        "heads",
        "one head",
        "key dim",
        "value dim",
        "one feature",
        "one of values",
        "narrower",
        "exchanged",
    ):
        case "exchanged" if script.batch != script.heads:
            # As many numbers as before.
            given = {name: x.swapaxes(0, 1).copy() for name, x in given.items()}
        case "rows":
            given = {name: np.concatenate([x, x[:1]], axis=0) for name, x in given.items()}
        case "one row" if script.batch > 1:
            # One row for all, as broadcasting would have it.
            given = {name: x[:1] for name, x in given.items()}
        case "heads":
            given = {name: np.concatenate([x, x[:, :1]], axis=1) for name, x in given.items()}
        case "one head" if script.heads > 1:
            given = {name: x[:, :1] for name, x in given.items()}
        case "key dim":
            given["key"] = np.concatenate([given["key"], given["key"][..., :1]], axis=-1)
        case "one feature":
            given["value"] = given["value"][..., :1]
            given["key"] = given["key"][..., :1]
        case "one of values" if script.value_dim > 1:
            given["value"] = given["value"][..., :1]
        case "narrower":
            name = pick.one_of("value", "key")
            given[name] = given[name][..., :-1]
        case _:
            given["value"] = np.concatenate([given["value"], given["value"][..., :1]], axis=-1)
    bad = script.do("update_and_fetch", **given)
    return _going_on(script, then).call(static, room=(8, 300)), bad


@calls
def bad_dtypes(pick: Pick, static: bool = False) -> tuple[Call, int]:
    """(story, number of the step that must be refused): a chunk in another dtype than those before it."""
    script = Script(pick)
    script.append(pick.one_of(1, 2, 4))
    script.past()
    others = [numpy_dtype(name) for name in ("float32", "float16", "bfloat16") if name != script.dtype]
    given, dtype = script.arrays(pick.one_of(1, 2)), pick.one_of(*others)
    names = pick.one_of(("key", "value"), ("value",), ("key",))
    with np.errstate(over="ignore"):
        given |= {name: given[name].astype(np.float32).astype(dtype) for name in names}
    bad = script.do("update_and_fetch", **given)
    return _going_on(script).call(static, room=(8, 300)), bad


@needing("restoring")
def restored(pick: Pick, static: bool = False, chunks: Chunks = small) -> Call:
    """A fresh cache takes over from one in any condition."""
    pick("restoring")
    rewinding = pick("rewinding")
    script = Script(pick, chunks)
    for _ in range(pick.one_of(1, 2, 3, 0)):
        script.event(rewinding)
    script.save()
    script.another()
    script.restore()
    script.do("offset")
    for _ in range(pick.size(1, 3)):
        script.event(rewinding)
    script.append()
    script.do("offset")
    return script.call(static)


@needing("restoring")
def shared(pick: Pick, static: bool = False, chunks: Chunks = small) -> Call:
    """A cache and the one that its state was restored to go on in turns, from the same token on; or two that restored it."""
    pick("restoring")
    rewinding = pick("rewinding")
    script = Script(pick, chunks)
    if pick.one_of(False, True):
        # An earlier state, that nobody restores.
        script.append()
        script.save()
    script.append(max(chunks(pick), 1))
    script.save()
    if pick.one_of(False, True):
        # The state must not follow the cache.
        script.event(rewinding)
    script.another()
    script.restore()
    if pick.one_of(False, True):
        script.another()
        script.restore()
    for _ in range(pick.size(1, 3)):
        if rewinding and pick.one_of(False, True):
            script.rewind(pick.size(0, max(script.length - 1, 0)))
        script.append(max(chunks(pick), 1))
        script.switch()
    for _ in range(2):
        script.append()
        script.switch()
    # The state is what it was.
    script.restore()
    script.append()
    return script.call(static)


@needing("restoring")
def states_of_their_time(pick: Pick, static: bool = False) -> Call:
    """States are kept one after the other, of one cache or of two, and restored in any order."""
    pick("restoring")
    rewinding = pick("rewinding")
    script = Script(pick)
    states = []
    for _ in range(pick.size(2, 3)):
        if rewinding and script.length and pick.one_of(True, False):
            # As many tokens as before, some of them others.
            n = pick.size(1, script.length)
            script.rewind(n)
            script.append(n)
        else:
            script.event(rewinding)
        states.append((script.save(), script.length))
        if pick.one_of(False, True):
            script.another()
    script.event(rewinding)
    for step, length in states if pick.one_of(True, False) else states[::-1]:
        script.restore_earlier(step, length)
        script.do("offset")
        script.append()
    return script.call(static)


@needing("restoring")
def saved_again(pick: Pick, static: bool = False) -> Call:
    """A cache that restored a state is rewound and given as many other tokens, and is saved once more, for another one."""
    pick("restoring")
    script = Script(pick)
    script.append(pick.size(2, 6))
    script.save()
    if pick.one_of(True, False):
        script.another()
    script.restore()
    n = pick.size(1, script.length)
    script.rewind(n)
    script.append(n)
    script.save()
    script.another()
    script.restore()
    script.do("offset")
    script.append()
    return script.call(static)


FULL = (256, 64, 512, 16, 128, 32)
"""Tokens that fill a buffer that grows in steps."""


@needing("restoring")
def saved_when_full(pick: Pick, static: bool = False) -> Call:
    """A cache whose buffer is just full is saved, rewound and filled with other tokens; another, or the same, restores it."""
    pick("restoring")
    script = Script(pick)
    # A preallocated cache is full at any length: it is made as long as its tokens.
    length = max(min(pick.one_of(*((16, 128, 32) if static else FULL)), script.limit), 2)
    first = pick.one_of(length, length - 1, length // 2)
    script.append(first)
    script.append(length - first)
    script.save()
    n = min(pick.size(2, 4), length)
    script.rewind(n)
    script.append(n)
    if pick.one_of(True, False):
        script.another()
    script.restore()
    script.rewind(1)
    script.append(1)
    # Nor does what is written into the one that restored it show in the state.
    script.rewind(n)
    script.append(n)
    script.restore()
    script.rewind(1)
    script.append(1)
    return script.call(static, room=(0,))


@needing("restoring")
def rolled_back(pick: Pick, static: bool = False, chunks: Chunks = small) -> Call:
    """A cache that has other tokens restores a state: its own of earlier, or another cache's."""
    pick("restoring")
    rewinding = pick("rewinding")
    script = Script(pick, chunks)
    for _ in range(pick.one_of(1, 2, 0)):
        script.event(rewinding)
    script.save()
    if pick.one_of(False, True):
        script.another()
    for _ in range(pick.size(1, 3)):
        script.event(rewinding)
    script.restore()
    script.do("offset")
    script.append(max(chunks(pick), 1))
    if script.kept and pick.one_of(False, True):
        script.restore()
        script.append()
    return script.call(static)


@needing("restoring")
def of_another_kind(pick: Pick, static: bool = False, kinds: tuple[str, ...] = ("dtype", "shape", "rows")) -> Call:
    """A cache in use restores the state of one whose tokens have other heads, dims or rows, or another dtype; or that has none yet."""
    pick("restoring")
    script = Script(pick)
    script.append(max(small(pick), 1))
    if pick("rewinding") and pick.one_of(False, True):
        script.rewind()
    match pick.one_of(*kinds):
        case "dtype":
            others = [name for name in pick.envelope["dtypes"] if name != script.dtype]
            script.dtype = pick.one_of(*(others or [script.dtype]))
            if script.dtype == "float16":
                # What the cache in use holds may be past its largest number.
                script.amplitude = 1.0
        case "shape":
            script.shape([shape for shape in SMALL if shape[0] != script.heads])
        case _:
            # One row is what an assignment into buffers of several would have stand for all.
            more = sorted(rows for rows in pick.envelope["batches"] if rows != script.batch)
            script.batch = pick.one_of(*more[:1], *more[:1], *more, script.batch)
    script.another()
    if pick.one_of(True, True, False):
        script.append(max(small(pick), 1))
    script.save()
    script.switch()
    script.restore()
    script.do("offset")
    script.append(max(small(pick), 1))
    script.append(1)
    return script.call(static)


@needing("rewinding")
def of_another_dtype_once_empty(pick: Pick, static: bool = False) -> tuple[Call, int]:
    """(story, number of the step with another dtype): a cache whose tokens are all gone, or had none, is given others."""
    pick("rewinding")
    script = Script(pick)
    if True in pick.envelope["empty_chunks"] and pick.one_of(False, False, True):
        script.append(0)
    else:
        script.append(max(small(pick), 1))
        script.rewind(script.length)
    others = [name for name in ("float32", "float16", "bfloat16") if name != script.dtype]
    script.dtype = pick.one_of(*([name for name in others if name in pick.envelope["dtypes"]] or [script.dtype]))
    script.amplitude = 1.0
    number = script.append(pick.size(1, 4))
    script.append(pick.size(1, 2))
    script.do("offset")
    return script.call(static), number


@calls
def kept_results(pick: Pick, static: bool = False, chunks: Chunks = small) -> Call:
    """Earlier results are read again at the end."""
    return _kept_results(pick, static, chunks, rewind=False)


@needing("rewinding")
def kept_through_rewinds(pick: Pick, static: bool = False, chunks: Chunks = small) -> Call:
    """Results of before a rewind are read again after other tokens took the place of theirs."""
    pick("rewinding")
    return _kept_results(pick, static, chunks, rewind=True)


def _kept_results(pick: Pick, static: bool, chunks: Chunks, rewind: bool) -> Call:
    script = Script(pick, chunks)
    for _ in range(pick.size(1, 4)):
        script.append(max(chunks(pick), 1))
    if rewind:
        script.rewind()
    for _ in range(pick.size(1, 2)):
        script.append(max(small(pick), 1))
    for number in script.appended[:-1]:
        script.do("reread", step=number)
    return script.call(static)


@calls
def overwritten(pick: Pick, static: bool = False, chunks: Chunks = small) -> Call:
    """The caller uses its arrays again after each append."""
    script = Script(pick, chunks)
    for _ in range(pick.size(1, 4)):
        number = script.append(max(chunks(pick), 1))
        if pick.one_of(True, True, False):
            script.do("overwrite", step=number)
    script.append()
    return script.call(static)


@calls
def overwritten_later(pick: Pick, static: bool = False) -> Call:
    """The caller uses the arrays of a dozen tokens and more again, each after its append, or after some more of them."""
    script = Script(pick)
    script.append()
    since = 0
    for _ in range(pick.size(8, 20)):
        script.append(1)
        since += 1
        if pick.one_of(True, True, False):
            for number in script.appended[-since:]:
                script.do("overwrite", step=number)
            since = 0
    script.append(1)
    return script.call(static)


@needing("rewinding")
def overwritten_anew(pick: Pick, static: bool = False) -> Call:
    """All tokens are rewound, and the caller uses the arrays of those that come then again."""
    pick("rewinding")
    script = Script(pick)
    script.append(max(script.chunks(pick), 1))
    script.rewind(script.length)
    for _ in range(pick.size(1, 2)):
        script.do("overwrite", step=script.append(max(script.chunks(pick), 1)))
    script.append(1)
    return script.call(static)


@calls
def side_by_side(pick: Pick, static: bool = False, chunks: Chunks = small) -> Call:
    """Two caches with tokens of their own, in turns."""
    rewinding = pick("rewinding")
    script = Script(pick, chunks)
    script.event(rewinding)
    script.another()
    script.do("offset")
    for _ in range(pick.size(1, 4)):
        script.event(rewinding)
        script.switch()
    script.append()
    script.do("offset")
    return script.call(static)


@calls
def layers(pick: Pick, static: bool = False, chunks: Chunks = small) -> Call:
    """Two caches are given as many tokens in turn, as those of layers are; what the one returned is read again when the
    other has returned as much."""
    script = Script(pick)
    script.another()
    for _ in range(pick.size(1, 3)):
        length = max(chunks(pick), 1)
        first = script.append(length)
        script.switch()
        script.append(length)
        script.switch()
        script.do("reread", step=first)
    return script.call(static)


@calls
def filled(pick: Pick, chunks: Chunks = small) -> Call:
    """A preallocated cache is filled to its last slot, and once more after a rewind."""
    rewinding = pick("rewinding")
    script = Script(pick, chunks)
    for _ in range(pick.size(1, 4)):
        script.append(max(chunks(pick), 1))
    if rewinding:
        gone = pick.size(1, script.length)
        script.rewind(gone)
        script.append(gone)
    script.do("offset")
    return script.call(static=True, room=(0,))


@calls
def beside_other_sizes(pick: Pick) -> Call:
    """Preallocated caches of other sizes are made, shorter ones and longer ones, while one is filled to its last slot."""
    script = Script(pick)
    script.append(max(small(pick), 1))
    for _ in range(pick.size(1, 2)):
        script.do("made", max_len=pick.upto("tokens", 1, 1000))
        script.append(max(small(pick), 1))
    script.do("offset")
    return script.call(static=True, room=(0,))


@calls
def overfull(pick: Pick, chunks: Chunks = small) -> tuple[Call, int]:
    """(story, number of the step that must be refused): more tokens than a preallocated cache takes, then some that fit.

    Before, the cache may have been rewound or have restored a state: what it held then does not count, and what it holds
    now does.
    """
    script = Script(pick, chunks)
    rewinding = pick("rewinding")
    for _ in range(pick.size(0, 2)):
        script.event(rewinding)
    if script.length and pick.one_of(False, True):
        script.past()
    room = max(script.longest, 1) + pick.one_of(0, 1, 2, 5)
    if script.length < room and pick.one_of(False, True):
        # Full to the last slot.
        script.append(room - script.length)
    left = room - script.length
    bad = script.do("update_and_fetch", **script.arrays(left + pick.one_of(1, 2, 7)))
    script.longest = room
    if left:
        script.append(left)
    elif script.empty:
        script.append(0)
    script.do("offset")
    if rewinding and pick.one_of(False, True):
        gone = pick.size(1, script.length)
        script.rewind(gone)
        script.append(gone)
    return script.call(static=True, room=(0,)), bad


@needing("restoring")
def too_long_states(pick: Pick) -> tuple[Call, int]:
    """(story, number of the step that must be refused): a preallocated cache restores the state of a larger one, of more tokens
    than it takes; and what comes after it."""
    rewinding, _ = pick("rewinding"), pick("restoring")
    script = Script(pick)
    script.append(max(small(pick), 1))
    if pick.one_of(False, True):
        script.event(rewinding)
    script.longest = max(script.longest, script.length + 2)
    more = pick.one_of(1, 2, 7, 300)
    length = script.longest + more
    max_len, begun = length + pick.one_of(0, 3), pick.one_of(0, length - 1)
    bad = script.do("restore_larger", max_len=max_len, **script.arrays(length), begun=begun)
    return _going_on(script).call(static=True, room=(0,)), bad


def _going_on(script: Script, then: int = 2) -> Script:
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


_pair = {"key": np.ones((1, 2, 1, 4), np.float32), "value": np.ones((1, 2, 1, 4), np.float32)}
_steps = (("update_and_fetch", _pair),)

EXAMPLES = {
    "KVCache": Call("KVCache", {"steps": _steps}),
    "StaticKVCache": Call("StaticKVCache", {"max_len": 4, "steps": _steps}),
}
"""The plainest call of each operation."""

ORDINARY = {"KVCache": with_offsets, "StaticKVCache": with_offsets(static=True)}
"""The widest calls of each operation."""
