"""Stories of key/value caches with an append that does not fit: (story, number of the step that must be refused)."""

from __future__ import annotations

import numpy as np

from inferspec.conformance.calls import Call
from inferspec.conformance.inputs.kv_cache_script import Chunks, Script, going_on, needing, small
from inferspec.conformance.inputs.steps import Tried
from inferspec.conformance.strategies import Pick, calls
from inferspec.spec.numerics import numpy_dtype


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
    return going_on(script).call(static, room=(8, 300)), bad


@calls
def bad_shapes(
    pick: Pick, static: bool = False, chunks: Chunks = small, begun: int = 0, then: int = 2, nothing: bool = False
) -> tuple[Call, int]:
    """(story, number of the step that must be refused): a chunk that does not fit those before it. begun: how many of them come
    right before it; then: how many tokens right after it; nothing: an empty chunk comes right before it."""
    script = Script(pick, chunks)
    script.append(max(chunks(pick), 1))
    script.past()
    for _ in range(begun):
        script.append(max(chunks(pick), 1))
    if nothing:
        script.append(0)
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
    return going_on(script, then).call(static, room=(8, 300)), bad


@calls
def exchanged_dims(pick: Pick, static: bool = False) -> tuple[Call, int]:
    """(story, number of the step that must be refused): a chunk whose keys have the head dim of the values before it, and whose
    values that of the keys: as many features in all."""
    script = Script(pick)
    script.append(small(pick))
    script.past()
    given = script.arrays(pick.one_of(1, 2, 3))
    bad = script.do("update_and_fetch", key=given["value"], value=given["key"])
    return going_on(script).call(static, room=(8, 300)), bad


@calls
def bad_dtypes(pick: Pick, static: bool = False, again: bool = False) -> tuple[Call, Tried]:
    """(story, number of the step that must be refused): a chunk in another dtype than those before it."""
    script = Script(pick)
    script.append(pick.one_of(1, 2, 4))
    script.past()
    others = [numpy_dtype(name) for name in ("float32", "float16", "bfloat16") if name != script.dtype]
    given, dtype = script.arrays(pick.one_of(1, 2)), pick.one_of(*others)
    names = pick.one_of(("key", "value"), ("value",), ("key",))
    with np.errstate(over="ignore"):
        given |= {name: given[name].astype(np.float32).astype(dtype) for name in names}
    script.do("update_and_fetch", **given)
    bad = script.tried(again)
    return going_on(script).call(static, room=(8, 300)), bad


CHUNK_LAST, CHUNK_FIRST = ("wider", "rewind", "heads"), ("heads", "wider", "rewind")
REWIND_LAST, ROOM_LAST = ("room", "rewind"), ("rewind", "room")
"""What is refused in turn. Whether a chunk of another shape that is refused changes nothing is no MUST, as the others are."""


@calls
def refused_in_turns(pick: Pick, kinds: tuple[str, ...], static: bool = False) -> tuple[Call, tuple[int, ...]]:
    """(story, numbers of the steps that must be refused): a rewind that goes too far, chunks of other shapes, one that has no room, of
    `kinds`, the last of them at the end and the others in any order; then the cache is saved, or not, and goes on."""
    script = Script(pick)
    script.append(pick.one_of(3, 2, 5))
    script.append(pick.one_of(1, 4))
    pick("rewinding")
    room, bad = script.length + pick.one_of(4, 3), []
    for kind in (*pick.random.permutation(kinds[:-1]).tolist(), kinds[-1]):
        bad.append(_refused(script, kind, room))
    if pick("restoring"):
        script.save()
    going_on(script, then=1)
    script.longest = room
    return script.call(static, room=(0,)), tuple(bad)


@needing("restoring")
def restored_once_refused(pick: Pick, kind: str, static: bool = False) -> tuple[Call, int]:
    """(story, number of the step that must be refused): a cache is saved and goes on, a step of that kind is refused, and it restores
    its state, as who gives up what was begun does."""
    pick("restoring"), pick("rewinding")
    script = Script(pick)
    script.append(pick.size(2, 5))
    script.save()
    script.append(pick.one_of(1, 3))
    room = script.longest = script.length + 2
    bad = _refused(script, kind, room)
    script.restore()
    script.do("offset")
    for _ in range(2):
        script.append(1)
    script.do("offset")
    return script.call(static, room=(0,)), bad


def _refused(script: Script, kind: str, room: int) -> int:
    """A step that is to be refused, in a cache of so much room; its number."""
    given = script.arrays(room - script.length + 1 if kind == "room" else 1)
    match kind:
        case "rewind":
            return script.do("rewind", n=script.length + 1)
        case "heads":
            given = {name: np.concatenate([x, x[:, :1]], axis=1) for name, x in given.items()}
        case "wider":
            given = {name: np.concatenate([x, x[..., :1]], axis=3) for name, x in given.items()}
    return script.do("update_and_fetch", **given)
