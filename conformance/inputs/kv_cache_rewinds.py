"""Stories of key/value caches with rewinds."""

from __future__ import annotations

from inferspec.conformance.calls import Call
from inferspec.conformance.inputs.kv_cache_script import Chunks, Script, going_on, needing, small
from inferspec.conformance.inputs.steps import Tried
from inferspec.conformance.strategies import Pick


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
def bad_rewinds(pick: Pick, static: bool = False, chunks: Chunks = small, again: bool = False) -> tuple[Call, Tried]:
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
    script.do("rewind", n=n)
    bad = script.tried(again)
    return going_on(script).call(static), bad


@needing("rewinding")
def rewound_in_a_row(pick: Pick, static: bool = False) -> Call:
    """Three rewinds or four, one right after the other, and what follows them."""
    pick("rewinding")
    script = Script(pick)
    script.append(pick.one_of(12, 9, 260))
    for n in (1, 2, 3, 2)[: pick.one_of(3, 4)]:
        script.rewind(n)
    script.do("offset")
    script.append(2)
    return script.call(static)
