"""How stories of schedulers for the suites are written, and which of them are asked for what."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from inferspec.conformance.calls import Call
from inferspec.conformance.inputs.steps import Steps
from inferspec.conformance.strategies import Calls, Pick
from inferspec.spec.block_manager import blocks_of
from inferspec.spec.ends import DROPPED
from inferspec.spec.serving import alone

SMALL_BLOCKS = (1, 2, 3, 4, 8)
"""Block sizes at which a few tokens make several blocks."""

COMMON_BLOCKS = (16, 32)
"""Those of servers."""

LONG = 40
"""Tokens of a line that prompts begin with."""


CANCELLING = frozenset({"cancel", "cancel_stranger", "pass_by"})
"""Steps of schedulers that can cancel a request."""


class Script(Steps):
    """A story being written. scarce: whether the pool is to hold little more than its longest request."""

    def __init__(self, pick: Pick, budgets: tuple[int, ...] = (64, 1, 2, 3, 5, 8, 16), scarce: bool = False) -> None:
        super().__init__(pick)
        self.size = pick("block_sizes")
        self.caching = pick("prefix_caching")
        self.ranks = pick("priorities") == "different"
        self.may_void = True in pick.envelope["void_steps"]
        self.may_cancel = True in pick.envelope["cancelling"]
        self.together = {} if "apart" in pick.envelope["chunks"] else {"together": True}
        """Only for those who ask for it: whoever bears chunks apart bears them together."""
        self.most = pick.one_of(8, 8, 1, 2, 3)
        self.budget = pick.one_of(*budgets)
        self.random = np.random.default_rng(pick.seed)
        self.grades = int(np.random.default_rng([pick.seed, 1]).choice([1, 1000]))
        """How far one priority is from the next."""
        self.line = self.tokens(LONG)
        self.slotless = int(False in pick.envelope["last_id_takes_slot"])
        """How many ids at the end of a request take no slot."""
        self.slots: dict[int, int] = {}
        """What each request takes to its end, by the number of the step that adds it."""
        self.spare = pick.size(0, 2) if scarce else None
        self.blocks: int | None = None

    def call(self) -> Call:
        self.pick.features["void_steps"] = has_void_steps(self.steps)
        self.pick.features["cancelling"] = any(name in CANCELLING for name, _ in self.steps)
        return self.pick.call(
            "Scheduler",
            num_blocks=self.pool(),
            block_size=self.size,
            prefix_caching=self.caching,
            max_requests=self.most,
            max_prefill_tokens=self.budget,
            steps=tuple(self.steps),
            **self.together,
            **self.pick.declared("ends", DROPPED),
        )

    def pool(self) -> int:
        needed = [blocks_of(slots, self.size) for slots in self.slots.values()] or [1]
        if self.blocks is not None:
            return self.blocks if self.slotless else max(self.blocks, *needed)
        return sum(needed) + 1 if self.spare is None else max(needed) + self.spare

    # requests

    def tokens(self, count: int) -> tuple[int, ...]:
        return tuple(int(token) for token in self.random.integers(0, 50, count))

    def prompt(self, most: int = 3) -> tuple[int, ...]:
        """A prompt beside a multiple of the block, that may begin as another one does."""
        count = max(1, self.pick.size(0, most) * self.size + self.pick.one_of(1, 0, self.size - 1, 2))
        same = self.pick.size(0, 2) * self.size
        return (*self.line[: min(same, count - 1)], *self.tokens(count))[:count]

    def add(self, tokens: tuple[int, ...], max_tokens: int, eos: tuple[int, ...] = (), priority: int = 0) -> int:
        if self.ranks and not priority:
            priority = self.pick.size(-1, 2) * self.grades
        number = self.do("add", tokens=tokens, max_tokens=max_tokens, priority=priority, eos=eos)
        self.slots[number] = len(tokens) + max_tokens - self.slotless
        return number

    def request(self, longest: int = 3) -> int:
        """Any request. Some end before their limit."""
        tokens, limit = self.prompt(longest), self.pick.size(1, 6)
        eos = (alone(tokens, limit)[self.pick.size(0, limit - 1)],) if self.pick.one_of(False, False, True) else ()
        return self.add(tokens, limit, eos)

    def any_request(self) -> int:
        return self.pick.one_of(*self.slots)

    # steps

    def work(self, most: int = 3) -> None:
        for _ in range(self.pick.size(0, most)):
            self.do("step")

    def cancel(self, request: int) -> None:
        """A request leaves, where requests can; else it stays."""
        if self.may_cancel:
            self.do("cancel", request=request)

    def void(self) -> None:
        """A step that nothing comes of, its slots spoilt or not; a common one where steps always are updated."""
        self.do("schedule")
        if not self.may_void:
            self.do("update")
        elif self.pick.one_of(True, False):
            self.do("fail")

    def update(self, *others: str) -> None:
        """The end of a step: an update, or something else where not all steps need one; "" is nothing."""
        how = self.pick.one_of("update", *others) if self.may_void else "update"
        if how:
            self.do(how)

    def end(self) -> Call:
        """Everything is finished, and nothing is left to do."""
        self.do("finish")
        self.do("step")
        return self.call()


def has_void_steps(steps: Sequence[tuple[str, Any]]) -> bool:
    """Whether anything is scheduled, in a story, that is never updated."""
    pending = False
    for name, _ in steps:
        if name == "fail" or (pending and name in ("schedule", "step", "finish")):
            return True
        pending = name == "schedule" or (pending and name != "update")
    return False


def calls(build: Any) -> Calls:
    """Stories of small blocks, if not said otherwise and where a subject has such."""
    return Calls(build, preferred={"block_sizes": SMALL_BLOCKS})


def several(build: Any) -> Calls:
    """Like `calls`, with priorities that differ."""
    return calls(build)(priorities=["different"])


def equal(build: Any) -> Calls:
    """Like `calls`, with one priority."""
    return calls(build)(priorities=["equal"])


def equal_caching(build: Any) -> Calls:
    """Like `calls`, with one priority and the prefix cache on."""
    return calls(build)(priorities=["equal"], prefix_caching=[True])


def with_voids(build: Any) -> Calls:
    """Like `calls`, of schedulers whose steps may be void."""
    return calls(build)(void_steps=[True])


def cancelling(build: Any) -> Calls:
    """Like `calls`, of schedulers that can cancel a request."""
    return calls(build)(cancelling=[True])


def equal_cancelling(build: Any) -> Calls:
    """Like `equal`, of schedulers that can cancel a request."""
    return equal(build)(cancelling=[True])


def several_cancelling(build: Any) -> Calls:
    """Like `several`, of schedulers that can cancel a request."""
    return several(build)(cancelling=[True])


def caching_cancelling(build: Any) -> Calls:
    """Like `caching`, of schedulers that can cancel a request."""
    return calls(build)(prefix_caching=[True], cancelling=[True])


def caching(build: Any) -> Calls:
    """Like `calls`, with the prefix cache on."""
    return calls(build)(prefix_caching=[True])
