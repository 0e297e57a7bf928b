"""Stories of key/value caches for the suites: appends, rewinds, saves and restores, each with a model of its own.

No two tokens are alike, no two of B, H, D_k and D_v either (unless the head dims are the same), and what a story
rewinds over can hold NaN: a token that is lost, doubled, misplaced or kept too long shows.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from inferspec.conformance.calls import Call
from inferspec.conformance.inputs.kv_cache_script import SMALL, Chunks, Script, needing, small, tens_of_thousands
from inferspec.conformance.strategies import Pick, calls


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


@calls
def far_offsets(pick: Pick, static: bool = False) -> Call:
    """The offset after a prompt of tens of thousands of tokens, and after the token behind it."""
    script = Script(pick, tens_of_thousands, ((1, 4),))
    # More than 16 bits count, or than 15.
    for length in (pick.one_of(66_000, 33_000), 1):
        script.append(length)
        script.do("offset")
    return script.call(static)


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


_pair = {"key": np.ones((1, 2, 1, 4), np.float32), "value": np.ones((1, 2, 1, 4), np.float32)}
_steps = (("update_and_fetch", _pair),)

EXAMPLES = {
    "KVCache": Call("KVCache", {"steps": _steps}),
    "StaticKVCache": Call("StaticKVCache", {"max_len": 4, "steps": _steps}),
}
"""The plainest call of each operation."""

_wider = {"key": np.ones((1, 2, 1, 4), np.float32), "value": np.ones((1, 2, 1, 5), np.float32)}

_nothing = {name: array[:, :, :0] for name, array in _pair.items()}
_with_nothing = tuple(("update_and_fetch", pair) for pair in (_pair, _nothing))

OPTIONAL = {
    name: {
        "head_dims": {"different": call.having(steps=(("update_and_fetch", _wider),))},
        "empty_chunks": {True: call.having(steps=_with_nothing)},
    }
    for name, call in EXAMPLES.items()
}
"""Choices that may be refused, by their key, with a call that asks for them and for nothing else that is rare."""

ORDINARY = {"KVCache": with_offsets, "StaticKVCache": with_offsets(static=True)}
"""The widest calls of each operation."""
