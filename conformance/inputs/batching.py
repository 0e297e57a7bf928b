"""Stories of batches for the suites: requests come, take steps together, and go.

No two tokens are alike, no two of B, H, D_k and D_v either (unless the head dims are the same or B is 1), what idle
slots are given holds NaN and infinities, and so can requests that go: a token that is lost, doubled, misplaced, foreign
or kept too long shows.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from inferspec.conformance.calls import Call
from inferspec.conformance.inputs.batching_script import (
    FEW,
    SEVERAL,
    SMALL,
    Script,
    Sizes,
    beside_tiles,
    few_tokens,
    needing,
    small,
)
from inferspec.conformance.strategies import Pick


@needing(slots=FEW)
def batches(
    pick: Pick,
    prompts: Sizes = small,
    room: tuple[int, ...] = (0, 1, 7, 300),
    shapes: Sequence[tuple[int, int]] = SMALL,
) -> Call:
    """Requests that stay, and steps of one token or a few. shapes: heads and head dims of keys."""
    script = Script(pick, prompts, shapes)
    script.fill()
    for _ in range(pick.size(1, 4)):
        script.step()
    return script.call(room)


@needing(slots=SEVERAL)
def mixtures(pick: Pick, prompts: Sizes = small, shapes: Sequence[tuple[int, int]] = SMALL) -> Call:
    """All slots taken, by requests of different lengths. shapes: heads and head dims of keys."""
    script = Script(pick, prompts, shapes)
    length = prompts(pick)
    for slot in range(script.slots):
        script.add(length + pick.one_of(0, 1, 2, 3, 7) * slot, slot)
    for _ in range(pick.size(1, 3)):
        script.step()
    return script.call()


@needing(slots=FEW)
def chunks(pick: Pick, prompts: Sizes = small, lengths: Sizes = few_tokens) -> Call:
    """Steps of several tokens: long ones beside short requests too. lengths: of the steps."""
    script = Script(pick, prompts)
    script.fill()
    for _ in range(pick.size(1, 3)):
        script.step(lengths(pick))
    return script.call()


@needing(slots=SEVERAL)
def decoding(pick: Pick) -> Call:
    """Dozens of steps of one token; requests come and go between some of them."""
    script = Script(pick)
    script.fill()
    for _ in range(pick.size(2, 4)):
        for _ in range(pick.one_of(16, 7, 20)):
            script.token()
        script.event()
    script.step()
    return script.call()


@needing(slots=[9, 70, 33])
def crowds(pick: Pick) -> Call:
    """As many requests as a server takes together, of any lengths, and one that makes way for another. The longest is
    the last one, or any."""
    script = Script(pick)
    lengths = pick.random.integers(1, 12, script.slots)
    lengths[-1] += pick.one_of(12, 0)
    for slot, length in enumerate(lengths.tolist()):
        script.add(length, slot)
    script.step()
    script.add(slot=script.remove())
    script.step()
    return script.call()


@needing(slots=SEVERAL)
def idling(pick: Pick, lengths: Sequence[int | None] = (None,)) -> Call:
    """Some slots, or all, are idle: from the beginning, or since a request left. lengths: of the steps."""
    script = Script(pick)
    if pick.one_of(True, True, False):
        script.fill()
        script.step(pick.one_of(*lengths))
        stay = 0 if script.may_idle else 1
        for _ in range(pick.size(min(1, len(script.active) - stay), len(script.active) - stay)):
            script.remove()
    else:
        script.step(pick.one_of(*lengths))
        script.add()
    script.step(pick.one_of(*lengths))
    script.step(pick.one_of(*lengths))
    return script.call()


@needing(slots=[4, 5, 8])
def once_full(pick: Pick) -> Call:
    """Every slot of four and more is taken, and then one is left, or two."""
    script = Script(pick)
    while script.idle:
        script.add()
    script.step()
    for _ in range(pick.size(1, 2)):
        script.remove()
        script.step()
    return script.call()


@needing(slots=FEW)
def reused(pick: Pick, prompts: Sizes = small, poisoned: bool = False) -> Call:
    """A slot changes hands, perhaps several times; the requests before were longer, shorter, or of NaN."""
    script = Script(pick, prompts)
    if script.slots > 1 and pick.one_of(True, False):
        script.add()
    if script.slots > 1 and pick.one_of(True, False) and script.idle[1:]:
        script.add()
    for _ in range(pick.size(1, 2)):
        if poisoned or pick.one_of(False, True):
            slot = script.poisoned()
        else:
            slot = script.add()
            script.step()
            script.remove(slot)
        if pick.one_of(False, True):
            script.step()
        if pick.one_of(True, False):
            script.add(slot=slot)
            script.step()
            script.remove(slot)
    script.add(slot=slot)
    script.step()
    script.step()
    return script.call()


@needing(slots=SEVERAL)
def histories(pick: Pick, prompts: Sizes = small, events: int = 8) -> Call:
    """Requests come and go at any time, and a step at the end."""
    script = Script(pick, prompts)
    script.add()
    for _ in range(pick.size(1, events)):
        script.event()
    script.step()
    return script.call()


@needing(slots=SEVERAL)
def turnover(pick: Pick) -> Call:
    """Many short requests one after the other beside one that stays, or none: no request is long, but all together are."""
    script = Script(pick, beside_tiles)
    if pick.one_of(True, False):
        script.add(pick.one_of(1, 2, 5))
    for _ in range(pick.size(2, 4)):
        slot = script.add(pick.one_of(1, 3, 0) if script.empty else pick.one_of(1, 3))
        script.step(pick.one_of(1, 90, 140))
        script.remove(slot)
    script.add()
    script.step()
    return script.call(room=(0, 1))


@needing(slots=[2, 3, 1])
def past_buffers(pick: Pick) -> Call:
    """Token by token past the sizes that buffers have, counted from the first token or from the longest prompt there ever
    was, which may have left."""
    script = Script(pick, shapes=((2, 4),))
    # Four tokens follow the step up to there.
    script.limit = min(pick.envelope["tokens"] - 4, 1100)
    script.add(pick.one_of(1, 2, 5))
    if script.idle and pick.one_of(True, False):
        left = script.add(9)
        if pick.one_of(True, False):
            script.remove(left)
    size = pick.one_of(256, 1024, 512) + pick.one_of(0, script.longest)
    script.step(size - max(n for n in script.lengths if n is not None) - 2)
    for _ in range(4):
        script.token()
    return script.call()


@needing(slots=[2, 3], tokens=33000)
def thousands(pick: Pick) -> Call:
    """A prompt that grows past what half precision or 16 bits can count, beside a short one."""
    script = Script(pick, shapes=((1, 4),))
    script.limit = 33000
    script.add(pick.one_of(32766, 2047))
    script.add(3)
    for _ in range(2):
        script.step(2)
    script.offsets()
    return script.call()


@needing(head_dims=["same"], slots=SEVERAL)
def attending(pick: Pick, prompts: Sizes = small, events: int = 6) -> Call:
    """Queries after every few steps, whatever came and went before."""
    script = Script(pick, prompts)
    script.fill()
    for _ in range(pick.size(0, events)):
        script.event()
    if script.idle and pick.one_of(False, True):
        slot = script.poisoned()
        if pick.one_of(True, False):
            script.add(slot=slot)
    script.attend(script.step())
    script.attend(script.step())
    return script.call()


@needing(slots=SEVERAL)
def generations(pick: Pick, prompts: Sizes = small, events: int = 8) -> Call:
    """A toy decoder serves requests that come and go; some steps are chunks of several tokens."""
    script = Script(pick, prompts)
    script.begin()
    for _ in range(pick.size(1, events)):
        match pick.one_of("decode", "begin", "decode", "remove", "begin", "chunk"):
            case "begin" if script.idle:
                script.begin()
            case "remove" if len(script.active) > 1:
                script.remove()
            case "chunk":
                script.decode(pick.one_of(2, 3, 5))
            case _:
                script.decode()
    script.decode()
    script.decode()
    return script.call()


@needing(slots=FEW, empty_caches=[True])
def beginning(pick: Pick) -> Call:
    """Requests without a prompt, alone, beside others, or beside one like it, which may go as it came."""
    script = Script(pick)
    script.empty = False
    beside = pick.one_of("another", "none", "one that goes", "one like it") if script.slots > 1 else "none"
    if beside == "another":
        script.add()
        if pick.one_of(False, True):
            script.step()
    slot = script.add(0)
    if beside.startswith("one"):
        other = script.add(0)
        if beside == "one that goes":
            script.remove(other)
    script.offsets()
    script.step()
    script.step()
    if pick.one_of(False, True):
        script.remove(slot)
        script.add(0, slot)
        script.step()
    return script.call()


@needing(slots=FEW)
def side_by_side(pick: Pick) -> Call:
    """Two batches in turns, each with requests of its own."""
    script = Script(pick)
    script.fill()
    script.step()
    script.another()
    script.fill()
    for _ in range(pick.size(1, 4)):
        script.event()
        script.switch()
        script.offsets()
    script.step()
    return script.call()


@needing(slots=SEVERAL)
def beside_other_sizes(pick: Pick) -> Call:
    """Batches of other sizes are made, of fewer slots or tokens and of more, while requests go on to their last token."""
    script = Script(pick)
    script.fill()
    sizes = [slots for slots in pick.envelope["slots"] if slots != script.slots] or [script.slots]
    for _ in range(pick.size(1, 2)):
        script.do("made", max_requests=pick.one_of(*sizes), max_len=pick.upto("tokens", 1, 1000))
        if script.idle:
            script.add(slot=script.idle[-1])
        script.step()
    longest = max(n or 0 for n in script.lengths)
    script.longest = max(script.longest, longest)
    return script.call(room=(0,))


@needing(slots=FEW)
def layers(pick: Pick) -> Call:
    """Two batches whose requests come, take steps and go alike, as those of a model's layers do; what the one returned is
    read again when the other has returned as much."""
    script = Script(pick)
    script.another()
    for _ in range(pick.size(1, 3)):
        slot, length = pick.one_of(*script.idle or [0]), small(pick)
        for _ in range(2):
            if script.lengths[slot] is not None:
                script.remove(slot)
            script.add(length, slot)
            script.switch()
        first = script.step(1)
        script.switch()
        script.step(1)
        script.switch()
        script.do("reread", step=first)
    return script.call()


@needing(slots=SEVERAL)
def alike(pick: Pick, beside: bool = False) -> Call:
    """Two requests of the same prompt, at once or one after the other. beside: the second one is of another batch."""
    script = Script(pick)
    script.add(max(small(pick), 1))
    first = len(script.steps)
    if pick.one_of(False, True):
        script.step()
    if beside:
        script.another()
    script.add_alike(first, pick.one_of(*script.idle))
    for _ in range(pick.size(1, 3)):
        script.step()
        if beside:
            script.switch()
    if pick.one_of(False, True) and len(script.active) > 1:
        script.remove()
    script.step()
    return script.call()


@needing(slots=FEW)
def come_again(pick: Pick) -> Call:
    """A request takes some steps and leaves; one of the same prompt comes, into its slot or another."""
    script = Script(pick)
    script.add(pick.one_of(5, 1, 17))
    first, beside = len(script.steps), script.slots > 1 and pick.one_of(False, True)
    if beside:
        script.add()
    script.step()
    script.remove(script.steps[first - 1][1]["slot"])
    if beside and pick.one_of(True, False):
        script.step()
    script.add_alike(first, pick.one_of(*script.idle))
    script.step()
    script.offsets()
    return script.call()


@needing(slots=SEVERAL)
def in_two(pick: Pick, alike: bool = False) -> Call:
    """Requests whose caches were filled in two updates, as a prompt in two chunks is. alike: the first chunk is the same."""
    script = Script(pick)
    begun = pick.one_of(2, 1, 5, 33)
    first = script.add_in_two(begun + pick.size(1, 4), begun)
    if pick.one_of(False, True):
        script.step()
    script.add_in_two(begun + pick.size(1, 4), begun, first if alike else 0)
    for _ in range(pick.size(1, 3)):
        script.step()
    return script.call()


@needing(slots=FEW, offsets=[True])
def counted(pick: Pick) -> Call:
    """Offsets before and after every step."""
    script = Script(pick)
    script.offsets()
    script.add()
    script.offsets()
    for _ in range(pick.size(1, 6)):
        script.event()
        script.offsets()
    script.remove()
    script.offsets()
    for number in [n for n, (method, _) in enumerate(script.steps, 1) if method == "offsets"]:
        script.do("reread_offsets", step=number)
    return script.call()


@needing(slots=SEVERAL)
def other_queries(pick: Pick) -> Call:
    """Fewer queries than new tokens, or more: than there are tokens, too."""
    script = Script(pick)
    script.fill()
    script.step()
    for _ in range(pick.size(1, 3)):
        length = pick.one_of(1, 2, 4, 6)
        script.step(length, mask_length=pick.one_of(1, 2, length + 1, length + 9))
    return script.call()


@needing(slots=FEW, empty_caches=[True])
def begun_with_other_queries(pick: Pick) -> Call:
    """More queries than the first tokens of a request whose cache is empty, or fewer; alone, or beside another."""
    script = Script(pick)
    script.add(0)
    if pick.one_of(False, True) and script.idle:
        script.add()
    length = pick.one_of(2, 1, 5)
    script.step(length, mask_length=pick.one_of(length + 1, length + 9, 1))
    script.step()
    return script.call()


@needing(slots=FEW)
def rewound(pick: Pick, prompts: Sizes = small) -> Call:
    """The caches of requests had tokens of NaN that were rewound."""
    script = Script(pick, prompts)
    for _ in range(pick.size(1, min(script.slots, 2))):
        script.add(max(prompts(pick), 1), stale=pick.one_of(1, 2, 9))
    script.step()
    script.step()
    return script.call()


@needing(slots=FEW, empty_caches=[True])
def emptied(pick: Pick) -> Call:
    """The cache of a request had tokens of NaN, all of which were rewound; alone, or beside another, and once more in its slot."""
    script = Script(pick)
    if script.slots > 1 and pick.one_of(True, False):
        script.add(max(small(pick), 1))
    slot = script.add(0, stale=pick.one_of(2, 1, 9))
    script.step()
    script.step()
    script.remove(slot)
    script.add(0, slot, stale=pick.one_of(1, 3))
    script.step()
    return script.call()


@needing(slots=SEVERAL)
def filled(pick: Pick) -> Call:
    """Requests reach max_len, one after the other, in a batch that goes on."""
    script = Script(pick)
    room = script.longest = pick.one_of(4, 7, 9)
    script.add(pick.one_of(1, 2, room - 1))
    for _ in range(pick.size(1, 4)):
        left = room - max(n for n in script.lengths if n is not None)
        script.step(pick.one_of(1, left))
        if pick.one_of(True, False) and script.idle:
            script.add(pick.one_of(1, 2, room - 1))
        for slot in script.active:
            if script.lengths[slot] == room:
                script.remove(slot)
        if not script.active:
            script.add(pick.one_of(1, 2, room - 1))
    script.step(room - max(n for n in script.lengths if n is not None))
    return script.call(room=(0,))


_one = {"key": np.ones((1, 2, 1, 4), np.float32), "value": np.ones((1, 2, 1, 4), np.float32)}

EXAMPLES = {
    "BatchingKVCache": Call(
        "BatchingKVCache",
        {
            "max_requests": 1,
            "max_len": 4,
            "steps": (
                ("add", {**_one, "slot": 0, "stale": 0}),
                ("update_and_fetch", {**_one, "mask_length": 1}),
            ),
        },
    )
}
"""The plainest call of the operation."""

_wider = {**_one, "value": np.ones((1, 2, 1, 5), np.float32)}
_wider_steps = ("add", {**_wider, "slot": 0, "stale": 0}), ("update_and_fetch", {**_wider, "mask_length": 1})

_none = {name: array[:, :, :0] for name, array in _one.items()}
_steps_from_none = (("add", {**_none, "slot": 0, "stale": 0}),)

OPTIONAL = {
    "BatchingKVCache": {
        "head_dims": {"different": EXAMPLES["BatchingKVCache"].having(steps=_wider_steps)},
        "empty_caches": {True: EXAMPLES["BatchingKVCache"].having(steps=_steps_from_none)},
    },
}
"""Choices that may be refused, by their key, with a call that asks for them and for nothing else that is rare."""

ORDINARY = {"BatchingKVCache": histories}
"""The widest calls of the operation."""
