"""How stories of batches for the suites are written."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from inferspec.conformance.calls import VIEWS, Call
from inferspec.conformance.inputs.steps import Steps
from inferspec.conformance.strategies import Calls, Pick, constant_along
from inferspec.spec.batch_decoder import VOCABULARY

Sizes = Callable[[Pick], int]

SMALL = ((2, 4), (4, 6), (6, 4), (4, 8))
LARGE = ((2, 256), (70, 6), (2, 80), (9, 72))
"""Heads and head dims of keys: more than a tile of a kernel that copies tokens has."""

LARGEST = ((1, 576),)
"""Those of latent attention."""

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
        self.pick.features["offsets"] = any(step == "offsets" for step, _ in self.steps)
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

    def add_again(self, step: int, slot: int) -> None:
        """The cache of a request that was refused goes where there is room."""
        self.do("add_again", step=step, slot=slot)
        self.lengths[slot] = length = self.steps[step - 1][1]["key"].shape[2]
        self.longest = max(self.longest, length)

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
        elif method in ("add", "add_alike", "add_again", "begin"):
            taken.add(given["slot"])
        elif method == "remove":
            taken.discard(given["slot"])
        elif method in ("update_and_fetch", "decode") and not taken:
            return True
    return False


def needing(**asked: Any) -> Callable[[Callable[..., Any]], Calls]:
    """Like `calls`, for a part of the envelope."""
    return lambda build: Calls(build, asked)
