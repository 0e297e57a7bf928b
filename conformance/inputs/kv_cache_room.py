"""Stories of preallocated caches that are filled, or given more than they have room for."""

from __future__ import annotations

from inferspec.conformance.calls import Call
from inferspec.conformance.inputs.kv_cache_script import Chunks, Script, going_on, needing, small
from inferspec.conformance.inputs.steps import Tried
from inferspec.conformance.strategies import Pick, calls


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
def overfull(pick: Pick, chunks: Chunks = small, again: bool = False) -> tuple[Call, Tried]:
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
    script.do("update_and_fetch", **script.arrays(left + pick.one_of(1, 2, 7)))
    bad = script.tried(again)
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
def overfull_once_restored(pick: Pick) -> tuple[Call, int]:
    """(story, number of the step that must be refused): a preallocated cache restores the state of a larger one, of fewer tokens
    than it takes, and is given more than it takes."""
    pick("restoring")
    script = Script(pick)
    length, left = pick.size(1, 6), pick.one_of(2, 0, 5)
    script.do("restore_larger", max_len=length + left + pick.one_of(9, 300), **script.arrays(length), begun=0)
    bad = script.do("update_and_fetch", **script.arrays(left + pick.one_of(1, 2)))
    script.length = script.longest = length
    if left:
        script.append(left)
    script.do("offset")
    return script.call(static=True, room=(0,)), bad


@needing("restoring")
def too_long_states(pick: Pick, again: bool = False) -> tuple[Call, Tried]:
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
    script.do("restore_larger", max_len=max_len, **script.arrays(length), begun=begun)
    bad = script.tried(again)
    return going_on(script).call(static=True, room=(0,)), bad
