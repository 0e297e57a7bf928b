"""Stories of batches for the suites: requests come, take steps together, and go.

No two tokens are alike, no two of B, H, D_k and D_v either (unless the head dims are the same or B is 1), what idle
slots are given holds NaN and infinities, and so can requests that go: a token that is lost, doubled, misplaced, foreign
or kept too long shows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from inferspec.conformance.calls import VIEWS, Call
from inferspec.conformance.inputs.steps import Steps
from inferspec.conformance.strategies import Calls, Pick, constant_along
from inferspec.spec.batch_decoder import VOCABULARY
from inferspec.spec.numerics import numpy_dtype

Sizes = Callable[[Pick], int]

SMALL = ((2, 4), (4, 6), (6, 4), (4, 8))
LARGE = ((2, 256), (70, 6), (2, 80), (9, 72))
"""Heads and head dims of keys: more than a tile of a kernel that copies tokens has."""

COMMON = ((8, 128), (8, 64))
"""What most models have."""

FEW = (1, 2, 3, 5)
SEVERAL = (2, 3, 5)
"""Slots of a batch in which requests have others beside them."""


def small(pick: Pick) -> int:
    """A few tokens."""
    return pick.one_of(1, 2, 3, 4, 6, 9)


def past_a_tile(pick: Pick) -> int:
    """A prompt of more tokens than a tile has."""
    return pick.one_of(17, 33, 40)


def beside_tiles(pick: Pick) -> int:
    """A prompt beside the sizes of tiles and buffers, or a short one."""
    return pick.one_of(1, 2, 31, 32, 33, 40, 65, 255, 256, 257, 300, 512)


def few_tokens(pick: Pick) -> int:
    """Of a step."""
    return pick.one_of(2, 3, 4, 7, 12)


class Script(Steps):
    """A story being written. lengths: the tokens of every slot, None for an idle one; longest: that of any request ever."""

    def __init__(self, pick: Pick, prompts: Sizes = small, shapes: Sequence[tuple[int, int]] = SMALL) -> None:
        super().__init__(pick)
        self.prompts = prompts
        self.dtype = pick("dtypes")
        self.slots = pick("slots")
        same = pick("head_dims") == "same"
        self.heads, self.key_dim = pick.one_of(*shapes)
        self.value_dim = self.key_dim if same else self.key_dim + pick.one_of(1, 3, -1, 5)
        self.empty = pick("empty_caches")
        self.with_offsets = pick("offsets")
        self.limit = min(pick.envelope["tokens"], 600)
        self.may_idle = True in pick.envelope["idle_updates"]
        self.lengths: list[int | None] = [None] * self.slots
        self.aside: list[int | None] = []
        self.longest = 0
        self.updates: list[int] = []

    @property
    def idle(self) -> list[int]:
        return [slot for slot, length in enumerate(self.lengths) if length is None]

    @property
    def active(self) -> list[int]:
        return [slot for slot, length in enumerate(self.lengths) if length is not None]

    def call(self, room: tuple[int, ...] = (0, 1, 7, 300)) -> Call:
        """The story. room: how much longer than needed max_len may be."""
        self.pick.features["idle_updates"] = has_idle_updates(self.steps)
        # No longer than what is claimed either, where the requests are not.
        enough = max(self.longest, 1)
        max_len = min(enough + self.pick.one_of(*room), max(enough, self.pick.envelope["tokens"]))
        sized = {"max_requests": self.slots, "max_len": max_len}
        return self.viewed(self.pick.call("BatchingKVCache", **sized, steps=tuple(self.steps)))

    # steps

    def add(self, length: int | None = None, slot: int | None = None, nan: bool = False, stale: int = 0) -> int:
        """A request of so many tokens (of `prompts`) takes an idle slot."""
        slot = self.pick.one_of(*self.idle) if slot is None else slot
        if length is None:
            length = self.prompts(self.pick)
            if self.empty and self.pick.one_of(False, False, False, False, True):
                length = 0
        length = min(length, self.limit - 20)
        self.do("add", **self.arrays(1, length, nan), slot=slot, stale=stale)
        self.lengths[slot] = length
        self.longest = max(self.longest, length)
        return slot

    def add_in_two(self, length: int, begun: int, step: int = 0) -> int:
        """A request of so many tokens, of which so many were cached first, those of the request that a step added, if any;
        returns the number of the step."""
        new, slot = self.arrays(1, length), self.pick.one_of(*self.idle)
        for name in new if step else ():
            new[name][:, :, :begun] = self.steps[step - 1][1][name][:, :, :begun]
        self.lengths[slot] = length
        self.longest = max(self.longest, length)
        return self.do("add", **new, slot=slot, stale=0, begun=begun)

    def add_alike(self, step: int, slot: int) -> None:
        """A request with the prompt of one that an earlier step added."""
        self.do("add_alike", step=step, slot=slot)
        self.lengths[slot] = self.steps[step - 1][1]["key"].shape[2]

    def remove(self, slot: int | None = None) -> int:
        slot = self.pick.one_of(*self.active) if slot is None else slot
        self.do("remove", slot=slot)
        self.lengths[slot] = None
        return slot

    def step(self, length: int | None = None, mask_length: int | None = None, nan: tuple[int, ...] = ()) -> int:
        """Every request takes so many tokens, one if not said otherwise; rows of idle slots hold poison, and those of
        the slots in `nan` too."""
        length = self.pick.one_of(1, 1, 1, 2, 3, 5) if length is None else length
        length = max(min(length, self.limit - max((n or 0 for n in self.lengths), default=0)), 1)
        return self._taken(
            length, length if mask_length is None else mask_length, self.pick.one_of(np.nan, np.inf, 1.0), nan
        )

    def token(self) -> int:
        """Every request takes one token."""
        return self._taken(1, 1, np.nan)

    def _taken(self, length: int, mask_length: int, poison: float, nan: tuple[int, ...] = ()) -> int:
        full = max((n or 0 for n in self.lengths), default=0) + length > self.pick.envelope["tokens"]
        if full or (not self.active and not self.may_idle):
            return len(self.steps)
        given = self.arrays(self.slots, length)
        for x in given.values():
            for slot in self.idle:
                # Nothing is left of a 0 either.
                with np.errstate(invalid="ignore"):
                    x[slot] *= np.asarray(poison, x.dtype)
            for slot in nan:
                x[slot] = np.nan
        number = self.do("update_and_fetch", **given, mask_length=mask_length)
        self.lengths = [None if n is None else n + length for n in self.lengths]
        self.longest = max([self.longest, *(n for n in self.lengths if n is not None)])
        self.updates.append(number)
        return number

    def attend(self, step: int) -> None:
        """Queries for what a step returned, twice as many heads as keys have."""
        queries = self.steps[step - 1][1]["mask_length"]
        query = self.pick.normal(self.slots, 2 * self.heads, queries, self.key_dim, dtype=self.dtype)
        self.do("attend", query=query, step=step)

    def begin(self) -> None:
        """A request of the toy decoder takes an idle slot, with all of its prompt but the last token."""
        slot, length = self.pick.one_of(*self.idle), min(self.prompts(self.pick), self.limit - 20) + (not self.empty)
        self.do("begin", tokens=self._tokens(length), slot=slot, like=self._like)
        self.lengths[slot] = length - 1
        self.longest = max(self.longest, length - 1)

    def decode(self, length: int = 1) -> None:
        """Every request takes the token that it favours, and a few given ones where a chunk is longer."""
        length = max(min(length, self.limit - max((n or 0 for n in self.lengths), default=0)), 1)
        self.do("decode", tokens=[self._tokens(length) for _ in range(self.slots)], like=self._like)
        self.lengths = [None if n is None else n + length for n in self.lengths]
        self.longest = max([self.longest, *(n for n in self.lengths if n is not None)])

    @property
    def _like(self) -> tuple[int, int, int, str]:
        return self.heads, self.key_dim, self.value_dim, self.dtype

    def _tokens(self, length: int) -> list[int]:
        return [int(token) for token in self.pick.random.integers(0, VOCABULARY, length)]

    def offsets(self) -> None:
        if self.with_offsets:
            self.do("offsets")

    def poisoned(self) -> int:
        """A request of NaN comes, takes a step perhaps, and goes; returns its slot."""
        slot = self.add(nan=True)
        if self.pick.one_of(True, False):
            self.step(nan=(slot,))
        return self.remove(slot)

    def event(self) -> None:
        """A step, a request that comes, or one that goes, as far as there are slots."""
        match self.pick.one_of("step", "add", "step", "remove", "add"):
            case "add" if self.idle:
                self.add()
            case "remove" if len(self.active) > 1:
                self.remove()
            case _:
                self.step()

    def another(self) -> None:
        """A batch beside this one, without requests, goes on."""
        self.do("another")
        self.aside, self.lengths = self.lengths, [None] * self.slots

    def switch(self) -> None:
        self.do("switch")
        self.aside, self.lengths = self.lengths, self.aside

    def fill(self) -> None:
        """One request at least, and as many more as come."""
        for _ in range(self.pick.size(1, min(self.slots, 3))):
            self.add()

    def arrays(self, rows: int, length: int, nan: bool = False) -> dict[str, np.ndarray]:
        """Keys and values of that many tokens."""
        keys, values = (
            self.pick.normal(rows, self.heads, length, dim, dtype=self.dtype) for dim in (self.key_dim, self.value_dim)
        )
        if nan:
            keys, values = (np.full(x.shape, np.nan).astype(x.dtype) for x in (keys, values))
        return {"key": keys, "value": values}

    def all_laid(self) -> None:
        """Have every array of the last step lie in memory as a view; a broadcast one is made constant along an axis."""
        arguments = self.steps[-1][1]
        for name, x in arguments.items():
            if isinstance(x, np.ndarray):
                view = self.pick.one_of(*VIEWS)
                self.views[f"steps.{len(self.steps) - 1}.1.{name}"] = view
                if view == "broadcast" and x.size:
                    arguments[name] = constant_along(x, self.pick)


def has_idle_updates(steps: Sequence[tuple[str, dict[str, Any]]]) -> bool:
    """Whether there is an update, in a story, while every slot is idle."""
    taken, aside = set[int](), set[int]()
    for method, given in steps:
        if method == "another":
            taken, aside = set(), taken
        elif method == "switch":
            taken, aside = aside, taken
        elif method in ("add", "add_alike", "begin"):
            taken.add(given["slot"])
        elif method == "remove":
            taken.discard(given["slot"])
        elif method in ("update_and_fetch", "decode") and not taken:
            return True
    return False


def needing(**asked: Any) -> Callable[[Callable[..., Any]], Calls]:
    """Like `calls`, for a part of the envelope."""
    return lambda build: Calls(build, asked)


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
def in_all_views(pick: Pick, prompts: Sizes = small) -> Call:
    """Prompts, tokens and queries are views."""
    script = Script(pick, prompts)
    for _ in range(pick.size(1, min(script.slots, 2))):
        script.add()
        script.all_laid()
    for _ in range(pick.size(1, 2)):
        number = script.step()
        script.all_laid()
    if script.key_dim == script.value_dim:
        script.attend(number)
        script.all_laid()
    return script.call()


@needing(slots=FEW)
def overwritten(pick: Pick, prompts: Sizes = small) -> Call:
    """The caller uses its arrays again after each step."""
    script = Script(pick, prompts)
    script.fill()
    for number in range(1, len(script.steps) + 1):
        if pick.one_of(True, False):
            script.do("overwrite", step=number)
    for _ in range(pick.size(1, 3)):
        script.do("overwrite", step=script.step())
    script.step()
    return script.call()


@needing(slots=SEVERAL)
def kept_results(pick: Pick, prompts: Sizes = small) -> Call:
    """Earlier results are read again at the end."""
    script = Script(pick, prompts)
    script.add()
    for _ in range(pick.size(1, 3)):
        script.step()
        script.event()
    if script.active:
        script.add(slot=script.remove())
    script.step()
    for number in script.updates[:-1]:
        script.do("reread", step=number)
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


@needing(slots=FEW)
def kept_whole(pick: Pick) -> Call:
    """All slots are taken by requests of one length, so that there is nothing to pad; what an update returned is read
    again when others have taken their places."""
    script = Script(pick)
    length = small(pick)
    for slot in range(script.slots):
        script.add(length, slot)
    for _ in range(pick.size(1, 2)):
        script.step()
    for slot in script.active[: pick.one_of(script.slots, 1)]:
        script.remove(slot)
        script.add(length, slot)
    script.step()
    for number in script.updates[:-1]:
        script.do("reread", step=number)
    return script.call()


@needing(slots=SEVERAL)
def kept_masks(pick: Pick) -> Call:
    """What an update returned is read again when other requests have had one as large, with the same lengths in other slots."""
    script = Script(pick)
    lengths, new = [small(pick) + slot for slot in range(script.slots)], pick.one_of(1, 2, 3)
    for turn in (lengths, lengths[::-1]):
        for slot, length in enumerate(turn):
            if slot in script.active:
                script.remove(slot)
            script.add(length, slot)
        script.step(new)
    script.do("reread", step=script.updates[0])
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


# what must be refused: (story, number of the step)


@needing(slots=SEVERAL, limited=[True])
def overfull(pick: Pick) -> tuple[Call, int]:
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
    bad = _update(script, left + pick.one_of(1, 2, 7))
    if left:
        script.step(left)
    script.longest = room
    script.remove(top)
    if all(n is None or n < script.longest for n in script.lengths):
        script.step(1)
    return script.call(room=(0,)), bad


@needing(slots=FEW, limited=[True])
def overlong(pick: Pick) -> tuple[Call, int]:
    """A prompt longer than max_len."""
    script = Script(pick)
    room = pick.one_of(3, 5, 8)
    if pick.one_of(False, True) and script.slots > 1:
        script.add(1)
        script.step(1)
    script.longest = room
    slot = pick.one_of(*script.idle)
    bad = script.do("add", **script.arrays(1, room + pick.one_of(1, 2, 9)), slot=slot, stale=0)
    script.add(pick.one_of(1, room - 1), slot)
    script.step(1)
    return script.call(room=(0,)), bad


@needing(slots=FEW)
def taken_slots(pick: Pick) -> tuple[Call, int]:
    """A request for a slot that another one has."""
    script = Script(pick)
    script.fill()
    if pick.one_of(True, False):
        script.step()
    slot = pick.one_of(*script.active)
    bad = script.do("add", **script.arrays(1, small(pick)), slot=slot, stale=0)
    return _going_on(script, slot), bad


@needing(slots=FEW)
def idle_slots(pick: Pick) -> tuple[Call, int]:
    """A removal from a slot that never had a request, or has it no more."""
    script = Script(pick)
    if script.slots > 1 and pick.one_of(True, False):
        script.add()
    slot = pick.one_of(*script.idle)
    if pick.one_of(True, False):
        script.add(slot=slot)
        script.step()
        script.remove(slot)
    bad = script.do("remove", slot=slot)
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

ORDINARY = {"BatchingKVCache": histories}
"""The widest calls of the operation."""
