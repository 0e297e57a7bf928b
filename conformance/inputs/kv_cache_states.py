"""Stories of key/value caches that are saved, and restored."""

from __future__ import annotations

from inferspec.conformance.calls import Call
from inferspec.conformance.inputs.kv_cache_script import SMALL, Chunks, Script, needing, small
from inferspec.conformance.strategies import Pick, calls


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


@needing("restoring")
def saved_after_dozens(pick: Pick, static: bool = False) -> Call:
    """A cache is saved after a dozen of appends, and after dozens, and goes on; another, or the same, restores both states."""
    pick("restoring")
    script = Script(pick)
    states = []
    for appends in (pick.size(9, 15), pick.size(9, 30)):
        for _ in range(appends):
            script.append(1)
        states.append((script.save(), script.length))
        script.append()
    script.append(1)
    if pick.one_of(True, False):
        script.another()
    for state in states:
        script.restore_earlier(*state)
        script.do("offset")
        script.append(1)
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


@calls
def filled_once_emptied(pick: Pick) -> Call:
    """A preallocated cache that was used and is empty again restores a state that fills it, its own of earlier, and goes on."""
    pick("restoring"), pick("rewinding")
    script = Script(pick)
    script.append(pick.size(2, 8))
    script.save()
    script.rewind(script.length)
    if pick.one_of(True, False):
        script.append(pick.size(1, script.kept))
        script.rewind(script.length)
    script.restore()
    n = pick.size(0, script.length - 1)
    script.rewind(n)
    script.append(n)
    script.do("offset")
    return script.call(static=True, room=(0, 0, 1))


@needing("restoring")
def of_other_sizes(pick: Pick) -> Call:
    """A preallocated cache restores the state of a larger one, or of a smaller one, of fewer tokens than it takes, and is filled."""
    pick("restoring")
    script = Script(pick)
    length, left = pick.size(1, 6), pick.one_of(3, 2, 5)
    script.length = length
    other = length + pick.one_of(left + 9, 0, left - 1, 300)
    script.do("restore_larger", max_len=other, **script.arrays(length), begun=pick.one_of(0, length - 1))
    script.do("offset")
    for chunk in (1, left - 1):
        script.append(chunk)
    script.do("offset")
    return script.call(static=True, room=(0,))


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


@needing("restoring")
def saved_between_rewinds(pick: Pick, static: bool = False) -> Call:
    """A cache is saved, rewound into what was saved or to nothing, saved, and given as many other tokens, twice; a fresh one
    restores all the states."""
    pick("restoring"), pick("rewinding")
    script = Script(pick)
    script.append(pick.one_of(270, 259, 300))
    states = []
    for _ in range(2):
        n = min(pick.one_of(script.length - 1, 60, script.length), script.length)
        states.append((script.save(), script.length))
        script.rewind(n)
        states.append((script.save(), script.length))
        script.append(n)
    states.append((script.save(), script.length))
    script.another()
    for state in states:
        script.restore_earlier(*state)
        script.do("offset")
        script.append(1)
    return script.call(static, room=(1, 7))


@needing("restoring")
def saved_once_restored(pick: Pick, static: bool = False) -> Call:
    """A cache that was saved restores the state of another that has as many tokens, and is saved again, for a third one."""
    pick("restoring")
    script = Script(pick)
    length = pick.one_of(3, 1, 20)
    script.append(length)
    script.save()
    script.another()
    script.append(length)
    script.save()
    script.switch()
    script.restore()
    script.save()
    script.another()
    script.restore()
    script.do("offset")
    script.append(1)
    return script.call(static)


@needing("restoring")
def handed_on(pick: Pick, static: bool = False) -> Call:
    """Each cache restores the state of the one before it, and appends something: three of them, or four."""
    pick("restoring")
    script = Script(pick)
    for _ in range(pick.one_of(3, 4)):
        script.append(max(small(pick), 1))
        script.save()
        script.another()
        script.restore()
    script.do("offset")
    script.append(1)
    return script.call(static)
