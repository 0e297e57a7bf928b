"""Stories of batches with a step that is to be refused: (story, number of the step)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from inferspec.conformance.calls import Call
from inferspec.conformance.inputs.batching_script import FEW, SEVERAL, Script, needing, small
from inferspec.conformance.inputs.steps import Tried
from inferspec.conformance.strategies import Pick
from inferspec.spec.numerics import numpy_dtype


@needing(slots=SEVERAL, limited=[True])
def overfull(pick: Pick, again: bool = False) -> tuple[Call, Tried]:
    """More tokens than the longest request takes; then some that fit, and more once it is gone."""
    script = Script(pick)
    script.fill()
    if pick.one_of(True, False):
        script.step()
    if pick.one_of(False, True):
        # A slot that was used before holds no more and no less.
        script.add(slot=script.remove())
    room = max(script.longest, 1) + pick.one_of(0, 1, 2, 5)
    top = max(script.active, key=lambda slot: script.lengths[slot] or 0)
    left = room - (script.lengths[top] or 0)
    _update(script, left + pick.one_of(1, 2, 7))
    bad = script.tried(again)
    if left:
        script.step(left)
    script.longest = room
    script.remove(top)
    if all(n is None or n < script.longest for n in script.lengths):
        script.step(1)
    return script.call(room=(0,)), bad


@needing(slots=SEVERAL, limited=[True])
def joined_once_refused(pick: Pick) -> tuple[Call, int]:
    """A request leaves one or two others, more tokens come than the longest one takes, another request joins, and all go on."""
    script = Script(pick)
    script.add(pick.one_of(5, 4))
    if script.slots > 2:
        script.add(2)
    gone = script.add(pick.size(1, 3))
    if pick.one_of(True, False):
        script.step()
    script.remove(gone)
    left = pick.one_of(1, 2, 5)
    room = script.longest + left
    bad = _update(script, left + pick.one_of(1, 2, 7))
    script.offsets()
    script.add(pick.size(1, 3))
    script.step(1)
    script.offsets()
    script.longest = room
    return script.call(room=(0,)), bad


@needing(slots=FEW, limited=[True])
def overlong(pick: Pick, again: bool = False) -> tuple[Call, Tried]:
    """A prompt longer than max_len."""
    script = Script(pick)
    room = pick.one_of(3, 5, 8)
    if pick.one_of(False, True) and script.slots > 1:
        script.add(1)
        script.step(1)
    script.longest = room
    slot = pick.one_of(*script.idle)
    script.do("add", **script.arrays(1, room + pick.one_of(1, 2, 9)), slot=slot, stale=0)
    bad = script.tried(again)
    script.add(pick.one_of(1, room - 1), slot)
    script.step(1)
    return script.call(room=(0,)), bad


@needing(slots=FEW)
def taken_slots(pick: Pick, again: bool = False) -> tuple[Call, Tried]:
    """A request for a slot that another one has."""
    script = Script(pick)
    script.fill()
    if pick.one_of(True, False):
        script.step()
    slot = pick.one_of(*script.active)
    script.do("add", **script.arrays(1, small(pick)), slot=slot, stale=0)
    bad = script.tried(again)
    return _going_on(script, slot), bad


@needing(slots=SEVERAL)
def elsewhere_once_refused(pick: Pick) -> tuple[Call, int]:
    """A request for a slot that another one has, or for one that there is not; the same cache goes to an idle slot then."""
    script = Script(pick)
    taken = script.add()
    asked = pick.one_of(taken, script.slots, -1)
    bad = script.do("add", **script.arrays(1, pick.one_of(2, 3, 6)), slot=asked, stale=0)
    script.add_again(bad, pick.one_of(*script.idle))
    script.offsets()
    script.step(1)
    return script.call(room=(300, 7)), bad


@needing(slots=FEW)
def idle_slots(pick: Pick, again: bool = False) -> tuple[Call, Tried]:
    """A removal from a slot that never had a request, or has it no more."""
    script = Script(pick)
    if script.slots > 1 and pick.one_of(True, False):
        script.add()
    slot = pick.one_of(*script.idle)
    if pick.one_of(True, False):
        script.add(slot=slot)
        script.step()
        script.remove(slot)
    script.do("remove", slot=slot)
    bad = script.tried(again)
    return _going_on(script), bad


@needing(slots=FEW)
def slots_outside(pick: Pick) -> tuple[Call, int]:
    """A slot that there is not, to add or to remove."""
    script = Script(pick)
    for slot in range(script.slots):
        if pick.one_of(True, False):
            script.add(slot=slot)
    slot = pick.one_of(script.slots, -1, -script.slots, script.slots + 3, -script.slots - 1)
    if pick.one_of(True, False):
        bad = script.do("add", **script.arrays(1, small(pick)), slot=slot, stale=0)
    else:
        bad = script.do("remove", slot=slot)
    return _going_on(script), bad


MISSHAPEN = (
    "row more",
    "one row",
    "longer",
    "one token",
    "head more",
    "one head",
    "value heads",
    "wider",
    "one dim",
    "narrower",
    "flat",
)
"""How keys and values can be no pair, or of other shapes than the batch."""


def _misshapen(given: dict[str, np.ndarray], way: str, name: str) -> dict[str, np.ndarray]:
    """Keys and values that are misshapen so. name: which of them, where it is not both."""
    match way:
        case "row more":
            return {n: np.concatenate([x, x[:1]]) for n, x in given.items()}
        case "one row" if len(given[name]) > 1:
            return {n: x[:1] for n, x in given.items()}
        case "longer":
            return given | {name: np.concatenate([given[name], given[name][:, :, :1]], axis=2)}
        case "one token":
            return given | {name: given[name][:, :, :1]}
        case "head more":
            return {n: np.concatenate([x, x[:, :1]], axis=1) for n, x in given.items()}
        case "one head":
            return {n: x[:, :1] for n, x in given.items()}
        case "value heads":
            return given | {"value": given["value"][:, :1]}
        case "wider":
            return given | {name: np.concatenate([given[name], given[name][..., :1]], axis=-1)}
        case "one dim":
            return given | {name: given[name][..., :1]}
        case "narrower":
            return given | {name: given[name][..., :-1]}
    return {n: x[0] for n, x in given.items()}


def _misshapen_updates(script: Script, ways: Sequence[str]) -> list[int]:
    """Updates in all of these ways, in any order; their numbers."""
    told, length = [(way, name) for way in ways for name in ("key", "value")], script.pick.one_of(2, 3)
    return [
        script.do("update_and_fetch", **_misshapen(script.arrays(script.slots, length), *told[at]), mask_length=length)
        for at in script.pick.random.permutation(len(told))
    ]


def _at_work(script: Script) -> None:
    """A request that has tokens: those of its prompt, or of its first update alone; or what is left of a batch of two."""
    match script.pick.one_of("prompt", "prompt and step", "left", "first update"):
        case "prompt and step":
            script.add(max(small(script.pick), 1))
            script.step()
        case "left" if len(script.idle) > 1:
            script.add(max(small(script.pick), 1))
            script.remove(script.add(max(small(script.pick), 1)))
        case "first update" if script.empty:
            script.add(0)
            script.step()
        case _:
            script.add(max(small(script.pick), 1))


@needing(slots=FEW)
def bad_pairs(pick: Pick) -> tuple[Call, int]:
    """Keys and values that are no pair, or of other shapes than the batch."""
    script = Script(pick)
    _at_work(script)
    length, way, name = pick.one_of(2, 3, 5), pick.one_of(*MISSHAPEN), pick.one_of("key", "value")
    given = _misshapen(script.arrays(script.slots, length), way, name)
    bad = script.do("update_and_fetch", **given, mask_length=length)
    return _going_on(script), bad


@needing(slots=FEW)
def all_bad_pairs(pick: Pick) -> tuple[Call, tuple[int, ...]]:
    """Keys and values that are no pair, or of other shapes than the batch, in all ways one after the other."""
    script = Script(pick)
    _at_work(script)
    bad = _misshapen_updates(script, MISSHAPEN)
    if script.key_dim != script.value_dim:
        # As many features in all.
        given = script.arrays(script.slots, 2)
        bad.append(script.do("update_and_fetch", key=given["value"], value=given["key"], mask_length=2))
    return _going_on(script), tuple(bad)


@needing(slots=FEW, empty_caches=[True])
def bad_pairs_without_a_prompt(pick: Pick) -> tuple[Call, tuple[int, ...]]:
    """Keys and values that are no pair, or not of as many rows as there are slots, before the first update of a request
    without a prompt; after it also those of other shapes than that."""
    script = Script(pick)
    script.add(0)
    bad = _misshapen_updates(script, ("longer", "one token", "value heads", "row more", "flat"))
    script.step()
    bad += _misshapen_updates(script, MISSHAPEN)
    return _going_on(script), tuple(bad)


@needing(slots=SEVERAL)
def bad_caches(pick: Pick) -> tuple[Call, int]:
    """A cache of two rows, or of other heads or head dims than the request beside it."""
    script = Script(pick)
    _at_work(script)
    given = script.arrays(1, small(pick))
    match pick.one_of("rows", "heads", "one head", "key dim", "value dim", "one dim"):
        case "heads":
            given = {n: np.concatenate([x, x[:, :1]], axis=1) for n, x in given.items()}
        case "one head":
            given = {n: x[:, :1] for n, x in given.items()}
        case "key dim":
            given["key"] = np.concatenate([given["key"], given["key"][..., :1]], axis=-1)
        case "value dim":
            given["value"] = np.concatenate([given["value"], given["value"][..., :1]], axis=-1)
        case "one dim":
            given = {n: x[..., :1] for n, x in given.items()}
        case _:
            given = {n: np.concatenate([x, x]) for n, x in given.items()}
    bad = script.do("add", **given, slot=pick.one_of(*script.idle), stale=0)
    return _going_on(script), bad


@needing(slots=SEVERAL)
def bad_dtypes(pick: Pick) -> tuple[Call, int]:
    """Tokens or a cache in another dtype than the request beside it."""
    script = Script(pick)
    _at_work(script)
    length, update = small(pick), pick.one_of(True, False)
    given = script.arrays(script.slots if update else 1, length)
    dtype = pick.one_of(*(numpy_dtype(name) for name in ("float32", "float16", "bfloat16") if name != script.dtype))
    names = pick.one_of(("key", "value"), ("value",), ("key",))
    given |= {name: given[name].astype(np.float32).astype(dtype) for name in names}
    if update:
        bad = script.do("update_and_fetch", **given, mask_length=length)
    else:
        bad = script.do("add", **given, slot=pick.one_of(*script.idle), stale=0)
    return _going_on(script), bad


@needing(slots=SEVERAL, limited=[True], offsets=[True])
def counted_once_refused(pick: Pick) -> tuple[Call, int]:
    """A prompt longer than max_len is refused, and the tokens of all slots are counted."""
    script = Script(pick)
    script.add(pick.one_of(1, 2))
    room = script.longest = pick.one_of(5, 8, 4)
    bad = script.do("add", **script.arrays(1, room + pick.one_of(1, 9)), slot=pick.one_of(*script.idle), stale=0)
    script.offsets()
    script.step(1)
    script.offsets()
    return script.call(room=(0,)), bad


KINDS = ("room", "heads", "taken", "long", "idle", "outside")
"""What is refused in turn: updates, and requests that come or go."""


@needing(slots=SEVERAL, limited=[True])
def refused_in_turns(pick: Pick, last: str) -> tuple[Call, tuple[int, ...]]:
    """All of KINDS, one after the other in any order, the one that `last` says at the end; then the requests go on, and others come."""
    script = Script(pick)
    for slot in range(script.slots - 1):
        script.add(pick.one_of(2, 1, 3), slot)
    script.step(1)
    room = script.longest + pick.one_of(2, 4)
    kinds = [*pick.random.permutation([kind for kind in KINDS if kind != last]).tolist(), last]
    bad = [_refused(script, kind, room) for kind in kinds]
    script.offsets()
    script.step(1)
    script.add(2, script.slots - 1)
    script.add(2, script.remove(0))
    script.step(1)
    script.longest = room
    return script.call(room=(0,)), tuple(bad)


def _refused(script: Script, kind: str, room: int) -> int:
    """A step that is to be refused, in a batch whose last slot is idle and whose requests may have so many tokens."""
    idle = script.slots - 1
    match kind:
        case "room":
            return _update(script, room - script.longest + 1)
        case "heads":
            given = _misshapen(script.arrays(script.slots, 1), "head more", "key")
            return script.do("update_and_fetch", **given, mask_length=1)
        case "taken":
            return script.do("add", **script.arrays(1, 2), slot=0, stale=0)
        case "long":
            return script.do("add", **script.arrays(1, room + 1), slot=idle, stale=0)
        case "idle":
            return script.do("remove", slot=idle)
    return script.do("remove", slot=script.slots)


@needing(slots=SEVERAL, empty_caches=[True])
def bad_pairs_beside_an_empty_cache(pick: Pick) -> tuple[Call, int]:
    """Keys and values of other shapes than those of a request, which has one without a prompt before it."""
    script = Script(pick)
    script.add(0, 0)
    script.add(max(small(pick), 1), 1)
    way = pick.one_of("head more", "one head", "wider", "narrower", "one dim")
    given = _misshapen(script.arrays(script.slots, 1), way, pick.one_of("key", "value"))
    bad = script.do("update_and_fetch", **given, mask_length=1)
    return _going_on(script), bad


@needing(slots=FEW, limited=[True])
def without_room(pick: Pick) -> Call:
    """A batch of no slots, or of no tokens."""
    return (
        Script(pick)
        .call(room=(0,))
        .having(**pick.one_of({"max_requests": 0}, {"max_len": 0}, {"max_requests": -1}, {"max_len": -3}))
    )


def _update(script: Script, length: int) -> int:
    """An update of so many tokens that is to be refused."""
    return script.do("update_and_fetch", **script.arrays(script.slots, length), mask_length=length)


def _going_on(script: Script, refused: int | None = None) -> Call:
    """What shows that a refused step changed nothing. refused: the slot that it was about, if that has a request."""
    pick = script.pick
    script.offsets()
    script.step(2)
    if script.idle:
        script.add(3)
    if pick.one_of(False, True):
        script.add(3, script.remove(refused))
    script.step(1)
    return script.call(room=(0, 1, 300))
