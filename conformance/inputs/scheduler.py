"""Stories of schedulers for the suites: requests that share prompts, in pools with room for all of them or hardly for one.

Requests come while others are at work, some are cancelled, and in some steps the model raises. Prompts end at the edges of
blocks and of budgets and beside them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from inferspec.conformance.calls import Call
from inferspec.conformance.inputs.steps import Steps
from inferspec.conformance.strategies import Calls, Pick
from inferspec.spec.block_manager import blocks_of
from inferspec.spec.ends import DROPPED
from inferspec.spec.serving import REPEATED, alone

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
        if self.blocks is not None:
            return self.blocks
        needed = [blocks_of(slots, self.size) for slots in self.slots.values()] or [1]
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
        self.slots[number] = len(tokens) + max_tokens - 1
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
    """Stories of small blocks, if not said otherwise."""
    return Calls(build, {"block_sizes": SMALL_BLOCKS})


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


@calls
def workloads(pick: Pick, scarce: bool | None = None) -> Call:
    """Requests come while others are at work, some are cancelled, and the model fails now and then."""
    script = Script(pick, scarce=pick.one_of(False, True) if scarce is None else scarce)
    for _ in range(pick.size(1, 4)):
        script.request()
        match pick.one_of("nothing", "work", "work", "fail", "cancel"):
            case "work":
                script.work(2)
            case "fail":
                script.void()
            case "cancel":
                script.cancel(script.any_request())
    return script.end()


@calls
def single(pick: Pick) -> Call:
    """One request, its prompt longer than a step's budget or not."""
    script = Script(pick)
    script.request(longest=4)
    return script.end()


@calls
def chunked(pick: Pick) -> Call:
    """Prompts of several chunks, to multiples of blocks and budgets and beside them, while others generate."""
    script = Script(pick, budgets=(4, 1, 2, 3, 5, 8, 16))
    if pick.one_of(False, True):
        script.add(script.tokens(2), 6)
        script.work(2)
    for _ in range(pick.size(1, 3)):
        unit = pick.one_of(script.size, script.budget)
        count = max(1, unit * pick.size(1, 3) + pick.one_of(0, 1, -1))
        script.add(script.tokens(count), pick.size(1, 4))
        script.work(1)
    return script.end()


@several
def overtaken(pick: Pick) -> Call:
    """A prompt of two chunks, behind which a longer one of larger priority comes when the first is computed."""
    script = Script(pick, budgets=(4, 2, 3, 5, 8))
    script.most = max(script.most, 2)
    script.add(script.tokens(script.budget + pick.size(1, script.budget - 1)), pick.size(1, 3), priority=-1)
    script.do("step")
    script.add(script.tokens(script.budget + pick.size(0, script.budget)), pick.size(1, 3), priority=2)
    return script.end()


@calls
def very_long(pick: Pick) -> Call:
    """A prompt, or an output, of more tokens than tables may have been made for; another request beside it."""
    script = Script(pick, budgets=(64, 300, 16))
    prompt, limit = pick.one_of((150, 2), (280, 1), (9, 70))
    script.add(script.tokens(prompt), limit)
    script.work(2)
    script.add(script.tokens(pick.size(1, 4)), 2)
    return script.end()


@calls
def together(pick: Pick) -> Call:
    """Requests that come at once, more than may run perhaps, then one by one."""
    script = Script(pick, budgets=(64, 1, 4, 2, 8, 3))
    for _ in range(pick.size(2, 6)):
        script.add(script.tokens(pick.size(1, 8)), pick.size(1, 4))
    for _ in range(pick.size(0, 2)):
        script.work(2)
        script.add(script.tokens(pick.size(1, 4)), pick.size(1, 2))
    return script.end()


@calls
def crowds(pick: Pick) -> Call:
    """More requests at once than batches, and of more blocks than tables, may have been made for."""
    script = Script(pick, budgets=(300, 64, 16))
    script.most = pick.one_of(33, 20, 40)
    for _ in range(script.most + pick.size(0, 3)):
        script.add(script.tokens(int(script.random.integers(1, 13))), int(script.random.integers(2, 5)))
    return script.end()


@calls
def masses(pick: Pick) -> Call:
    """Hundreds of requests at once, of a few tokens each; more than may run perhaps."""
    script = Script(pick, budgets=(2048, 300))
    script.most = pick.one_of(130, 260, 70)
    for _ in range(script.most + pick.one_of(0, 3)):
        count, limit, priority = (int(number) for number in script.random.integers((1, 2, 1), (4, 4, 3)))
        script.add(script.tokens(count), limit, priority=priority if script.ranks else 0)
    return script.end()


@calls
def of_servers(pick: Pick) -> Call:
    """Blocks and budgets as servers have them, prompts of thousands of tokens, outputs of hundreds; another request beside."""
    script = Script(pick, budgets=(512, 2048, 300))
    prompt, limit = pick.one_of((1030, 3), (20, 270), (2050, 2), (512, 17))
    begin = script.add(script.tokens(prompt), limit)
    script.work(2)
    # One that begins as the first does.
    tokens = script.steps[begin - 1][1]["tokens"]
    script.add((*tokens[: max(1, len(tokens) // 2)], *script.tokens(3)), pick.one_of(2, 18))
    return script.end()


@caching
def large_ids(pick: Pick) -> Call:
    """Prompts of ids past 16 bits; the second one differs from the first in their high bits alone, or begins as it does."""
    script = Script(pick, budgets=(64, 8, 300))
    tokens = [int(token) for token in script.random.integers(0, 20_000, 3 * script.size + 1)]
    high = pick.one_of(65_536, 131_072, 2**31)
    script.add(tuple(token + high for token in tokens), 2)
    if pick.one_of(True, False):
        script.do("finish")
    script.add(tuple(tokens), pick.size(1, 3))
    script.add((*(token + high for token in tokens[: 2 * script.size]), *script.tokens(2)), 2)
    return script.end()


@calls
def repeating(pick: Pick) -> Call:
    """A request whose ids are one and the same, dozens of times, perhaps with others beside it."""
    script = Script(pick)
    for _ in range(pick.size(0, 2)):
        script.request()
    script.add((*script.prompt(1), REPEATED), pick.one_of(40, 24, 33))
    if pick.one_of(False, True):
        script.request()
    return script.end()


@calls
def many_ends(pick: Pick) -> Call:
    """A request that many ids end, of which one of the last ones comes."""
    script = Script(pick)
    for _ in range(pick.size(1, 2)):
        tokens, limit = script.prompt(1), pick.size(2, 6)
        count = pick.one_of(9, 5, 17, 33)
        end = alone(tokens, limit)[pick.size(0, limit - 1)]
        others = tuple(2000 + k for k in range(count - 1))
        script.add(tokens, limit, pick.one_of((*others, end), (*others[:-1], end, others[-1])))
    return script.end()


@calls
def trickling(pick: Pick, late: tuple[int, ...] = ()) -> Call:
    """Requests that come one by one while others generate, as many as a step may compute tokens of prompts, or more.
    late: tokens of a prompt that comes when more of them do, if any."""
    script = Script(pick, budgets=(1, 2, 3))
    script.most = 8
    for _ in range(script.budget + pick.size(1, 2)):
        count = pick.size(1, 3)
        script.add(script.tokens(count), pick.size(10, 12), priority=1)
        for _ in range(-(-count // script.budget)):
            script.do("step")
    if late:
        script.add(script.tokens(pick.one_of(*late)), pick.size(1, 2))
    return script.end()


@calls
def abandoned(pick: Pick) -> Call:
    """Requests that are left as they are, waiting and running."""
    script = Script(pick)
    for _ in range(pick.size(1, 3)):
        script.request()
        script.work(1)
    return script.call()


@calls
def side_by_side(pick: Pick) -> Call:
    """Another scheduler is given the same requests while they are at work, between steps and while the model computes one,
    and has them still when all is finished."""
    script = Script(pick, scarce=pick.one_of(False, True))
    for _ in range(pick.size(1, 3)):
        number = script.request()
        script.work(1)
        between = pick.one_of(False, True)
        for step in ("schedule", "meanwhile", "update") if between else ("meanwhile",):
            script.do(step, **(script.steps[number - 1][1] if step == "meanwhile" else {}))
        script.work(2)
    return script.end()


def _growing(
    pick: Pick, most: int = 4, kind: type[Script] = Script, budgets: tuple[int, ...] = (64, 4, 8, 16)
) -> Script:
    """Requests with short prompts that generate more than there is room for."""
    script = kind(pick, budgets=budgets, scarce=True)
    script.most = max(script.most, 2)
    for _ in range(pick.size(2, most)):
        script.add(script.tokens(pick.size(1, script.size + 1)), pick.size(script.size, 2 * script.size + 2))
        if pick.one_of(False, False, True):
            script.do("step")
    return script


@calls
def growing(pick: Pick, budgets: tuple[int, ...] = (64, 4, 8, 16)) -> Call:
    """Requests that generate more than there is room for: some are preempted, once or again and again."""
    script = _growing(pick, budgets=budgets)
    if pick.one_of(False, True):
        script.work(4)
        script.add(script.tokens(pick.size(1, script.size)), pick.size(1, 4))
    return script.end()


@calls
def ends_in_short_pools(pick: Pick) -> Call:
    """The same, and any id of each may end it: the one that follows what is computed again, or a late one."""
    script = _growing(pick, most=10)
    script.most = 8
    for number, (step, given) in enumerate(script.steps):
        if step == "add":
            ids = alone(given["tokens"], given["max_tokens"])
            script.steps[number] = (step, {**given, "eos": (ids[pick.size(0, len(ids) - 1)],)})
    return script.end()


@calls
def beside_a_long_prompt(pick: Pick) -> Call:
    """A request grows while a prompt is computed that takes several steps, and there are too few blocks for both."""
    script = Script(pick, budgets=(2, 4, 8, 16))
    script.most = 8
    script.add(script.tokens(pick.size(1, script.size)), pick.size(3, script.size + 3))
    script.add(script.tokens(script.budget + pick.size(1, script.size)), pick.size(1, 2))
    script.spare = pick.one_of(1, 0, 2)
    return script.end()


@caching
def growing_alike(pick: Pick) -> Call:
    """Requests that begin alike and generate more than there is room for; one ends soon, and who was preempted runs again."""
    script = Script(pick, budgets=(64, 8, 16), scarce=True)
    size = script.size
    script.most = 8
    common = script.line[: pick.size(1, 2) * size]
    for limit in (3 * size + 2, size + pick.size(1, 2), 3 * size + 2):
        script.add((*common, *script.tokens(1)), limit)
        script.do("step")
    script.blocks = blocks_of(len(common) + 3 * size + 2, size) + pick.size(1, 4)
    return script.end()


@equal_caching
def growing_as_one(pick: Pick) -> Call:
    """Requests of one prompt that generate more than there is room for: who is preempted finds all that it had computed in the
    blocks of one that goes on."""
    script = Script(pick, budgets=(64, 8, 16))
    size = script.size
    script.most = 8
    tokens, limit = script.tokens(pick.size(1, 2 * size)), 3 * size + pick.size(1, 3)
    for _ in range(pick.one_of(2, 2, 3)):
        script.add(tokens, limit)
    most = blocks_of(len(tokens) + limit - 1, size)
    script.blocks = most + pick.size(0, most - 2)
    return script.end()


@equal
def long_and_growing(pick: Pick) -> Call:
    """Requests with prompts of many blocks that generate, all of them, when the last free block is gone: one gives way."""
    script = Script(pick, budgets=(64, 32))
    size = script.size
    script.most = 8
    count = pick.size(3, 5)
    for _ in range(count):
        script.add(script.tokens(pick.size(6, 8) * size + pick.size(1, size)), size + pick.size(2, 4))
    held = sum(blocks_of(len(given["tokens"]), size) for _, given in script.steps)
    script.blocks = held + pick.size(0, count - 2)
    return script.end()


@equal_caching
def computed_again_in_chunks(pick: Pick) -> Call:
    """A request is preempted for one that takes all blocks, and later computes prompt and output again in chunks; a prompt
    that goes on from its output waits behind it."""
    script = Script(pick, budgets=(3, 2, 5, 8))
    size = script.size
    script.most = 2
    tokens, side_by_side = script.tokens(pick.size(1, size)), pick.size(2, 2 * size)
    limit = side_by_side + script.budget + size + pick.size(1, 3)
    following = (*tokens, *alone(tokens, limit))
    script.blocks = 2 * blocks_of(len(following) + 1, size) + pick.size(0, 1)
    room = script.blocks * size
    ahead = room - len(tokens) - 2 * side_by_side
    script.add(script.tokens(ahead), room + 1 - ahead)
    script.add(tokens, limit)
    script.add((*following, *script.tokens(1)), 1)
    return script.end()


@calls
def resumed(pick: Pick) -> Call:
    """Requests that are preempted, and cancelled or overtaken at any time; all blocks come back."""
    script = _growing(pick, most=3)
    script.work(8)
    match pick.one_of("cancel", "fail", "both"):
        case "cancel":
            script.cancel(script.any_request())
        case "fail":
            script.void()
        case _:
            script.do("schedule")
            script.cancel(script.any_request())
            script.do("update")
    script.work(2)
    for request in script.slots if pick.one_of(False, True) else ():
        script.cancel(request)
    return script.end()


def _preempted(pick: Pick) -> tuple[Script, int]:
    """Two requests that run until there are no blocks left, and the number of the second: until the first one ends it waits
    again, for there is no room for both."""
    script = Script(pick, budgets=(64, 16))
    size = script.size
    script.most = pick.one_of(2, 3)
    first = script.add(script.tokens(1), 4 * size + 2)
    second = script.add(script.tokens(size + 1), 3 * size + 2)
    script.blocks = blocks_of(script.slots[first], size) + pick.size(0, 1)
    for _ in range(2 * size + 1):
        script.do("step")
    return script, second


@equal_cancelling
def left_when_preempted(pick: Pick) -> Call:
    """A request is cancelled when it was preempted; as many as may run and more come before that or after it."""
    script, request = _preempted(pick)
    late = pick.one_of(False, True)
    if late:
        script.cancel(request)
    for _ in range(script.most + pick.size(1, 2)):
        script.add(script.tokens(1), pick.size(2, 3))
    if not late:
        script.cancel(request)
    return script.end()


@equal_caching
def hits_lost_when_preempted(pick: Pick) -> Call:
    """A request whose prompt is cached when it is admitted first, and is no more when it is admitted again: the one for
    which it was preempted took all blocks."""
    script = Script(pick, budgets=(64, 8, 16))
    size = script.size
    script.most = pick.one_of(8, 2)
    known = script.line[: pick.size(1, 2) * size]
    script.blocks = len(known) // size + 3 + pick.size(0, 1)
    script.add((*known, *script.tokens(1)), 1)
    script.do("finish")
    script.add(script.tokens(1), script.blocks * size)
    script.add((*known, *script.tokens(1)), 2 * size + 2)
    return script.end()


@several
def preempted_again_and_again(pick: Pick) -> Call:
    """A request that gives way a dozen times, to others of larger priority that come one by one and need all blocks."""
    script = Script(pick, budgets=(64,))
    script.most, script.blocks, most = 2, 28, 24
    script.add(script.tokens(1), most, priority=-1)
    for number in range(12):
        length = most - 2 * number + pick.one_of(0, 1, -1)
        limit = script.blocks - max(length, 1) + 1
        script.add(script.tokens(max(length, 1)), limit, priority=1)
        for _ in range(limit + 1):
            script.do("step")
    return script.end()


@several
def long_prompts_ahead(pick: Pick) -> Call:
    """A request that generates until there are no blocks left, while a long prompt of a larger priority is computed."""
    script = Script(pick, budgets=(2, 1, 3))
    script.most = 8
    script.add(script.tokens(pick.size(1, 2)), 3 * script.size + 2, priority=1)
    for _ in range(pick.size(2, 3)):
        script.do("step")
    script.add(script.tokens(script.budget * (2 * script.size + pick.size(2, 3))), pick.size(1, 3), priority=2)
    script.blocks = max(blocks_of(slots, script.size) for slots in script.slots.values()) + pick.size(1, 2)
    return script.end()


@several
def ranked(pick: Pick) -> Call:
    """Requests of several priorities, some of which come while others run."""
    script = Script(pick, budgets=(64, 3, 8), scarce=pick.one_of(False, True))
    script.most = pick.one_of(1, 2, 3)
    for _ in range(pick.size(2, 5)):
        script.add(script.tokens(pick.size(1, 6)), pick.size(1, 5))
        script.work(1)
    return script.end()


@several_cancelling
def ranked_and_left(pick: Pick) -> Call:
    """A queue of many priorities behind a request that runs; some of it are cancelled as they wait, from any place."""
    script = Script(pick, budgets=(64, 8))
    script.most = 1
    script.add(script.tokens(1), pick.size(3, 5), priority=100)
    script.do("step")
    many = [
        script.add(script.tokens(1), 1, priority=int(script.random.integers(-9, 10)) * script.grades)
        for _ in range(pick.size(7, 14))
    ]
    for _ in range(pick.size(1, 4)):
        script.cancel(many.pop(pick.size(0, len(many) - 1)))
    return script.end()


@cancelling
def left_by_twins(pick: Pick) -> Call:
    """Of requests that ask for the same one is cancelled, while others wait or run."""
    script = Script(pick, budgets=(64, 3))
    script.most = pick.one_of(8, 1, 2)
    tokens, limit = script.prompt(2), pick.size(3, 6)
    twins = [script.add(tokens, limit, priority=script.grades) for _ in range(pick.size(2, 3))]
    script.work(2)
    script.do("cancel", request=pick.one_of(*twins[::-1]))
    script.work(1)
    return script.end()


@several_cancelling
def outranked_when_preempted(pick: Pick) -> Call:
    """A request is preempted, and others of larger priority come, as many as may run; the one that it made room for is
    cancelled, so that there are blocks for all of them."""
    script = Script(pick, budgets=(64, 16))
    size = script.size
    script.most = pick.one_of(2, 3)
    first = script.add(script.tokens(1), 4 * size + 2, priority=5 * script.grades)
    script.add(script.tokens(size + 1), 3 * size + 2, priority=script.grades)
    script.blocks = blocks_of(script.slots[first], size) + pick.size(0, 1)
    for _ in range(2 * size + 1):
        script.do("step")
    for _ in range(script.most):
        script.add(script.tokens(1), pick.size(3, 5), priority=9 * script.grades)
        script.work(1)
    script.do("cancel", request=first)
    return script.end()


RANKS = ((0, 2**33), (2**40, 1), (-(2**40), 1), (2**53, 1), (0, 2**17), (-(2**62), 1))
"""Beginnings and steps of priorities that neither 16 or 32 bits nor a float tell apart."""


@several
def far_ranked(pick: Pick) -> Call:
    """A queue of priorities as large as the time in nanoseconds, behind a request that runs."""
    script = Script(pick, budgets=(64, 8))
    script.most = 1
    script.add(script.tokens(1), pick.size(2, 4), priority=2**50)
    script.do("step")
    first, step = pick.one_of(*RANKS)
    for rank in script.random.permutation(pick.size(4, 6)):
        script.add(script.tokens(1), 1, priority=first + (int(rank) + 1) * step)
    return script.end()


@equal_caching
def hits_lost_in_the_queue(pick: Pick) -> Call:
    """A request whose prompt was computed when it came, and is no more when it is its turn: another one took the blocks."""
    script = Script(pick, budgets=(3, 5, 8, 2))
    script.most = 1
    known = script.line[: pick.size(2, 4) * script.size]
    script.add((*known, *script.tokens(1)), 1)
    script.do("finish")
    script.add(script.tokens(1), len(known) + script.size + pick.size(1, 3))
    script.do("step")
    script.add((*known, *script.tokens(1)), pick.size(1, 3))
    script.blocks = max(blocks_of(slots, script.size) for slots in script.slots.values())
    return script.end()


@equal
def queued(pick: Pick) -> Call:
    """Requests of one priority, long and short, in a queue."""
    script = Script(pick, budgets=(64, 3, 8), scarce=pick.one_of(False, True))
    script.most = pick.one_of(1, 2, 3, 8)
    for _ in range(pick.size(2, 5)):
        script.add(script.tokens(pick.one_of(1, 9, 4, 2)), pick.size(1, 5))
        script.work(1)
    return script.end()


@equal
def queued_in_turns(pick: Pick) -> Call:
    """Requests of one priority come one after the other as those before them end, and more of them wait than run."""
    script = Script(pick, budgets=(64,))
    script.most = pick.one_of(1, 2)
    for _ in range(3 * script.most + pick.size(1, 2)):
        script.add(script.tokens(1), pick.one_of(1, 1, 2))
    for _ in range(pick.size(2, 4)):
        script.do("step")
        script.do("step")
        script.add(script.tokens(1), pick.size(1, 2))
    return script.end()


@equal_caching
def queued_hits(pick: Pick) -> Call:
    """Requests of one priority in a queue, of which those behind begin with what was computed and the first does not."""
    script = Script(pick, budgets=(64, 3, 8))
    script.most = pick.one_of(1, 2)
    known = script.line[: pick.size(1, 3) * script.size]
    script.add((*known, *script.tokens(1)), pick.size(1, 3))
    script.do("finish")
    for _ in range(script.most):
        script.add(script.tokens(1), pick.size(2, 4))
    script.do("step")
    for _ in range(pick.size(1, 2)):
        script.add(script.tokens(len(known) + 1), pick.size(1, 3))
    script.add((*known, *script.tokens(1)), pick.size(1, 3))
    return script.end()


@calls
def evicted(pick: Pick) -> Call:
    """Requests that generate side by side until there is no block left; others wait meanwhile."""
    script = _growing(pick, most=4)
    script.work(5)
    script.add(script.tokens(1), pick.size(1, 3))
    script.work(5)
    return script.end()


@with_voids
def voided(pick: Pick) -> Call:
    """Steps of which nothing comes, in the middle of prompts and of outputs, once or several times."""
    script = Script(pick, scarce=pick.one_of(False, True))
    for _ in range(pick.size(1, 3)):
        script.request()
        script.work(2)
        for _ in range(pick.size(1, 2)):
            script.void()
    return script.end()


@with_voids
def voided_again(pick: Pick) -> Call:
    """Many steps in a row of which nothing comes, in the middle of a prompt or of an output."""
    script = Script(pick, budgets=(64, 3, 8))
    for _ in range(pick.size(1, 2)):
        script.request(longest=2)
    script.work(2)
    for _ in range(pick.one_of(6, 9, 12)):
        script.do("schedule")
        if script.random.random() < 0.5:
            script.do("fail")
    return script.end()


@with_voids
def voided_growing(pick: Pick) -> Call:
    """Requests that are preempted for steps of which nothing comes."""
    script = _growing(pick)
    for _ in range(script.size + pick.size(1, 6)):
        if pick.random.random() < 0.6:
            script.void()
        script.do("step")
    return script.end()


@equal
def preempted_in_turn(pick: Pick) -> Call:
    """Two requests that grow beside one of a long prompt: that one is preempted first, and a shorter one while it waits."""
    script = Script(pick, budgets=(64, 32))
    size = script.size
    script.most = 8
    script.add(script.tokens(pick.size(1, size)), 6 * size)
    script.add(script.tokens(pick.size(1, size)), 5 * size)
    script.add(script.tokens(4 * size + pick.size(1, size)), size + 1)
    script.blocks = 8
    return script.end()


@equal
def evicted_again(pick: Pick) -> Call:
    """Four requests that run in a pool for three of them and a little; the first ends soon, so that who was preempted runs
    and is preempted anew, and the last waits."""
    script = Script(pick, budgets=(64, 8, 16), scarce=True)
    size = script.size
    script.most = pick.one_of(3, 8)
    for limit in (size + pick.size(1, 2), 3 * size + 2, 3 * size + 2):
        script.add(script.tokens(1), limit)
    script.do("step")
    script.add(script.tokens(pick.size(1, 2)), pick.size(1, 3))
    script.blocks = blocks_of(3 * size + 2, size) + pick.size(0, 1)
    return script.end()


@caching
def conversations(pick: Pick) -> Call:
    """Prompts that go on from what a request generates, while it does or afterwards; the model fails now and then."""
    script = Script(pick, budgets=(64, 8, 3))
    size = script.size
    tokens, limit = script.tokens(pick.size(1, size)), pick.size(size, 2 * size + 2)
    script.add(tokens, limit)
    following = (*tokens, *alone(tokens, limit))
    for _ in range(pick.size(1, 3)):
        script.work(3)
        match pick.one_of("step", "fail", "steps"):
            case "fail":
                script.void()
            case "steps":
                for _ in range(limit):
                    script.do("step")
        script.add((*following[: max(1, pick.size(1, 3) * size)], *script.tokens(1)), pick.size(1, 3))
    return script.end()


@caching
def going_on(pick: Pick) -> Call:
    """A request alone, whose last step may be its first, and a prompt that goes on from all that was computed of it."""
    script = Script(pick, budgets=(64, 8, 3, 1))
    size = script.size
    # The last token that is computed fills a block, or stands behind one that the first step fills and passes by.
    beside = pick.one_of(0, 1) if size > 1 else 0
    limit = 1 if beside else pick.one_of(1, 2, 3, size + 1)
    tokens = script.tokens(pick.size(1, 3) * size + (beside or (1 - limit) % size))
    ids = alone(tokens, limit)
    ends = ids[-1:] if pick.one_of(False, True) and ids[-1] not in ids[:-1] else []
    script.add(tokens, limit, tuple(ends))
    for _ in range(blocks_of(len(tokens), script.budget) + limit - 1):
        script.do("step")
    script.add((*tokens, *ids[:-1], *script.tokens(pick.size(1, size))), pick.size(1, 3))
    return script.end()


@caching_cancelling
def interrupted(pick: Pick) -> Call:
    """A request that is cancelled when its last id, which was not computed, fills a block; a prompt goes on from it."""
    script = Script(pick, budgets=(64, 8))
    size = script.size
    tokens = script.tokens(pick.size(1, 2 * size))
    # So many ids that prompt and output end with a block.
    ids = -len(tokens) % size or size
    request = script.add(tokens, ids + pick.size(1, 3))
    for _ in range(-(-len(tokens) // script.budget) + ids - 1):
        script.do("step")
    script.cancel(request)
    script.add((*tokens, *alone(tokens, ids), *script.tokens(pick.size(1, 2))), pick.size(1, 3))
    return script.end()


@caching
def hits(pick: Pick) -> Call:
    """Prompts that begin alike, one after the other or at once, computed, half computed or spoilt."""
    script = Script(pick, scarce=pick.one_of(False, False, True))
    for _ in range(pick.size(2, 4)):
        n = pick.size(1, 3) * script.size + pick.one_of(0, 1, script.size - 1)
        script.add((*script.line[:n], *script.tokens(pick.one_of(0, 1)))[: max(n, 1)], pick.size(1, 3))
        match pick.one_of("nothing", "work", "work", "finish", "fail", "cancel"):
            case "work":
                script.work(2)
            case "finish":
                script.do("finish")
            case "fail":
                script.void()
            case "cancel":
                script.do("schedule")
                script.cancel(script.any_request())
                script.update("")
    return script.end()


@equal_caching
def hits_at_once(pick: Pick) -> Call:
    """Requests that come at once and begin with what was computed: there is budget for what is left of each, and none for
    two whole prompts."""
    script = Script(pick)
    script.most, left = pick.one_of(8, 3, 4), pick.size(1, 2)
    known = script.line[: pick.size(2, 4) * script.size]
    script.budget = len(known) + left
    script.add((*known, *script.tokens(1)), 1)
    script.do("finish")
    for _ in range(pick.size(2, 3)):
        script.add((*known, *script.tokens(left)), pick.size(1, 3))
    return script.end()


@equal_caching
def ended_together(pick: Pick) -> Call:
    """Requests whose last step is the same one, and prompts that go on from all that was computed of each."""
    script = Script(pick, budgets=(512,))
    script.most = 8
    size, limit, beside = script.size, pick.size(1, 3), []
    for _ in range(pick.size(2, 4)):
        # The last token that is computed fills a block.
        tokens = script.tokens(pick.size(1, 3) * size + (1 - limit) % size)
        ids = alone(tokens, limit)
        ends = ids[-1:] if pick.one_of(False, True) and ids[-1] not in ids[:-1] else []
        script.add(tokens, limit, tuple(ends))
        beside.append((*tokens, *ids[:-1]))
    for tokens in beside[:: pick.one_of(-1, 1)]:
        script.do("finish")
        script.add((*tokens, *script.tokens(pick.size(1, size))), pick.size(1, 3))
    return script.end()


@equal_caching
def ended_when_resumed(pick: Pick) -> Call:
    """A request is preempted when it lacks an id, which is that of the step that computes it again; a prompt goes on from it.

    The other ends with the block that it takes, which is this one's last and not full.
    """
    script = Script(pick, budgets=(64,))
    size = script.size
    script.most = 2
    # The step in which the first takes a block that the second has.
    short, step = pick.size(1, 2), pick.size(3, 5)
    first = script.tokens(short * size + 1 + (1 - step) % size)
    second = script.tokens(pick.size(1, 2) * size + (1 - step) % size)
    held = blocks_of(len(first) + step - 2, size) + blocks_of(len(second) + step - 2, size)
    script.add(first, step)
    script.add(second, step)
    script.blocks = held
    script.do("finish")
    script.add((*second, *alone(second, step)[:-1], *script.tokens(1)), 1)
    return script.end()


@equal_caching
def hits_beside_one_that_generates(pick: Pick) -> Call:
    """Requests come at once and begin with what was computed of one that still generates: there is budget for what is left of each."""
    script = Script(pick)
    script.most, left = 8, pick.size(1, 2)
    known = script.line[: pick.size(2, 4) * script.size]
    script.budget = len(known) + left
    script.add((*known, *script.tokens(1)), pick.size(6, 8))
    script.do("step")
    script.do("step")
    for _ in range(pick.size(2, 3)):
        script.add((*known, *script.tokens(left)), pick.size(1, 3))
    return script.end()


@equal
def joining_a_crowd(pick: Pick) -> Call:
    """More requests come while a dozen or two generate; there is room for all of them."""
    script = Script(pick, budgets=(64,))
    script.most = 40
    for _ in range(pick.one_of(17, 33, 9, 24)):
        script.add(script.tokens(1), pick.size(4, 6))
    script.do("step")
    script.do("step")
    for _ in range(pick.size(1, 2)):
        script.add(script.tokens(pick.size(1, 3)), pick.size(1, 2))
    return script.end()


@cancelling
def cancelled(pick: Pick) -> Call:
    """Requests that are cancelled: as they wait, in the middle of their prompts, as they generate, when they are finished."""
    script = Script(pick, budgets=(3, 64, 1, 8), scarce=pick.one_of(False, True))
    for _ in range(pick.size(1, 3)):
        script.request(longest=2)
    for _ in range(pick.size(1, 3)):
        script.work(3)
        script.cancel(script.any_request())
    if pick.one_of(False, True):
        for request in script.slots:
            script.cancel(request)
    return script.end()


MANY = (100, 140)
"""How many leave a queue: so many that a scheduler may think it worth while to tidy up."""


@equal_cancelling
def deserted(pick: Pick) -> Call:
    """Of two requests for which there is no room together one is preempted; behind it are many, nearly all of whom are
    cancelled as they wait."""
    script = Script(pick, budgets=(64, 4, 8))
    script.most, script.spare = pick.one_of(2, 3), 0
    for _ in range(2):
        script.add(script.tokens(1), 2 * script.size + 2)
    many = [script.add(script.tokens(1), 1) for _ in range(pick.one_of(*MANY))]
    for _ in range(script.size + 1 + pick.size(0, script.size)):
        script.do("step")
    stay = {many[pick.size(0, len(many) - 1)] for _ in range(4)}
    for request in many:
        if request not in stay:
            script.cancel(request)
    return script.end()


@several_cancelling
def ranked_and_deserted(pick: Pick) -> Call:
    """A queue of many priorities behind a request that runs; nearly all of it are cancelled as they wait."""
    script = Script(pick, budgets=(64, 8))
    script.most = 1
    script.add(script.tokens(1), 2, priority=100 * script.grades)
    script.do("step")
    many = [
        script.add(script.tokens(1), 1, priority=int(script.random.integers(-99, 100)) * script.grades or 1)
        for _ in range(pick.one_of(*MANY))
    ]
    stay = set(script.random.permutation(many)[: pick.size(12, 16)].tolist())
    for request in many:
        if request not in stay:
            script.cancel(request)
    return script.end()


@cancelling
def in_flight(pick: Pick) -> Call:
    """Requests that come and are cancelled while the model computes."""
    script = Script(pick, budgets=(64, 3, 1, 8), scarce=pick.one_of(False, True))
    script.request(longest=2)
    if pick.one_of(True, False):
        script.request(longest=1)
    for _ in range(pick.size(1, 3)):
        script.work(2)
        script.do("schedule")
        for what in pick.one_of(("cancel",), ("add",), ("add", "cancel"), ("cancel", "add")):
            if what == "cancel":
                script.cancel(script.any_request())
            else:
                script.add(script.tokens(pick.size(1, 6)), pick.size(1, 3))
        script.update("update", "fail")
    return script.end()


@cancelling
def left_in_flight(pick: Pick) -> Call:
    """Of several requests that run two, or all of them, are cancelled while the model computes one step."""
    script = Script(pick, budgets=(64, 16, 8))
    script.most = 8
    requests = [script.add(script.tokens(pick.size(1, script.size)), pick.size(3, 6)) for _ in range(pick.size(3, 4))]
    script.work(3)
    script.do("schedule")
    count = pick.one_of(2, len(requests), 3)
    for index in script.random.permutation(len(requests))[:count]:
        script.cancel(requests[index])
    script.update("fail")
    if pick.one_of(True, False):
        script.add(script.tokens(pick.size(1, 4)), 2)
    return script.end()


@calls
def limits(pick: Pick, first: bool = False) -> Call:
    """Requests that end at their limit, at the first id of eos or at another. first: all end with their first id."""
    script = Script(pick, scarce=pick.one_of(False, True))
    for _ in range(pick.size(1, 3)):
        tokens, limit = script.prompt(1), pick.size(1, 5)
        ids = alone(tokens, limit + 1)
        at = 0 if first else pick.one_of(limit, limit - 1, 0, limit // 2)
        script.add(tokens, limit, pick.one_of((ids[at],), (777, ids[at]), (ids[at], ids[-1])))
    return script.end()


@calls
def ends_of_others(pick: Pick) -> Call:
    """Requests of which none has ids that end it, or others than those that come of it, beside one that just these end."""
    script = Script(pick)
    tokens, limit = script.prompt(1), pick.size(3, 6)
    ends = tuple(alone(tokens, limit)[1:])
    other = script.prompt(1)
    first, own = (other, pick.size(3, 6), ends), (tokens, limit, pick.one_of((), (777,)))
    for asked in (first, own) if pick.one_of(True, False) else (own, first):
        script.add(*asked)
        script.work(2)
    return script.end()


@calls
def ends_in_prompts(pick: Pick) -> Call:
    """Requests whose prompts hold the ids that end them, the last one mostly, as a conversation's do."""
    script = Script(pick, scarce=pick.one_of(False, True))
    for _ in range(pick.size(1, 2)):
        tokens, limit = script.prompt(1), pick.size(2, 5)
        ids = alone(tokens, limit)
        at = pick.one_of(-1, -1, 0)
        ends = tuple(token for token in (tokens[at], ids[-1]) if token not in ids[:-1])
        script.add(tokens, limit, ends[: pick.one_of(1, 2)])
    return script.end()


@calls
def ends_of_zero(pick: Pick) -> Call:
    """Requests that the id 0 ends, which is an id like any other."""
    script = Script(pick)
    for _ in range(pick.size(1, 2)):
        limit, count = pick.size(2, 5), pick.size(3, 5)
        tokens = script.tokens(count)
        while 0 not in alone(tokens, limit):
            tokens = script.tokens(count)
        script.add(tokens, limit, pick.one_of((0,), (777, 0)))
    return script.end()


@cancelling
def passers_by(pick: Pick) -> Call:
    """Requests of which nothing is left before the next one comes: an identity is used again then."""
    script = Script(pick)
    for _ in range(pick.size(2, 4)):
        script.do("pass_by", times=pick.size(2, 4))
        if pick.one_of(True, False):
            script.add(script.tokens(1), 1)
        # A scheduler may keep who was cancelled until it looks at its queue again.
        script.do("step")
    return script.end()


@calls
def exact(pick: Pick) -> Call:
    """A request that takes every slot of the pool, by itself, after others, or while others run."""
    script = Script(pick)
    script.blocks = pick.size(1, 4)
    room = script.blocks * script.size
    for _ in range(pick.size(0, 2)):
        script.add(script.tokens(1), pick.size(1, min(room, 4)))
    script.work(1)
    limit = pick.one_of(1, 2, room, room - 1)
    limit = min(max(limit, 1), room)
    script.add(script.tokens(room + 1 - limit), limit)
    if pick.one_of(False, True):
        script.add(script.tokens(1), min(room, 2))
    return script.end()


def _refused(script: Script, step: str, **arguments: Any) -> tuple[Call, int]:
    """The story goes on after a step that is to be refused: that of the number."""
    bad = script.do(step, **arguments)
    if script.pick.one_of(True, False):
        script.slots[script.do("add", tokens=script.tokens(2), max_tokens=2, priority=0, eos=())] = 3
    return script.end(), bad


def _before(pick: Pick) -> Script:
    """A script with requests at work, or none."""
    script = Script(pick)
    for _ in range(pick.size(0, 2)):
        script.request(longest=1)
        script.work(2)
    return script


@calls
def too_long(pick: Pick) -> tuple[Call, int]:
    """A request that needs one slot more than there are, or many."""
    script = _before(pick)
    script.blocks = max(script.pool(), pick.size(1, 4))
    limit, more = pick.one_of(1, 2, 5), pick.one_of(1, 1, script.size, 100)
    tokens = script.tokens(max(1, script.blocks * script.size + 1 - limit + more))
    return _refused(script, "add", tokens=tokens, max_tokens=limit, priority=pick.one_of(0, 2), eos=())


@calls
def senseless(pick: Pick) -> tuple[Call, int]:
    """A request without a prompt, or for no tokens."""
    script = _before(pick)
    tokens, limit = pick.one_of(((), 2), ((1, 2), 0), ((1, 2, 3), -1), ((), 1))
    return _refused(script, "add", tokens=tokens, max_tokens=limit, priority=0, eos=())


@calls
def added_again(pick: Pick) -> tuple[Call, int]:
    """A request that waits, runs, is finished or was cancelled, is added again."""
    script = _before(pick)
    request = script.add(script.tokens(pick.size(1, 4)), pick.size(1, 3))
    match pick.one_of("waits", "runs", "finished", "cancelled"):
        case "runs":
            script.work(2)
        case "finished":
            script.do("finish")
        case "cancelled":
            script.cancel(request)
    return _refused(script, "add_again", request=request)


@calls
def written_over(pick: Pick) -> Call:
    """The caller puts other tokens into the lists of requests that wait, run or are preempted."""
    script = Script(pick, budgets=(3, 64, 2), scarce=pick.one_of(False, True))
    script.most = pick.one_of(8, 1, 2)
    for _ in range(pick.size(2, 4)):
        number = script.add(script.prompt(2), pick.size(1, 6))
        script.work(2)
        script.do("overwrite", request=number)
        script.work(1)
    return script.end()


@equal
def preempted_again(pick: Pick) -> tuple[Call, int]:
    """A request is added again when it was preempted, before others that come later."""
    script, request = _preempted(pick)
    script.add(script.tokens(pick.size(1, 3)), pick.size(1, 3))
    return _refused(script, "add_again", request=request)


@cancelling
def strangers(pick: Pick) -> tuple[Call, int]:
    """A request that was never added is cancelled."""
    return _refused(_before(pick), "cancel_stranger")


@calls
def wrong_updates(pick: Pick, ways: tuple[str, ...] = ("another step", "too few", "too many", "an id", "no id")) -> Any:
    """A step is handed back in a way that does not fit; then as it should be."""
    script = Script(pick, budgets=(3, 2, 64))
    how = pick.one_of(*ways)
    for _ in range(pick.size(1, 2)):
        script.add(script.tokens(pick.size(1, 8)), pick.size(1, 4))
    script.work(2)
    if how == "another step" and script.may_void and pick.one_of(True, False):
        script.do("schedule")
    elif how == "another step":
        script.do("step")
    if how != "another step" or pick.one_of(True, False):
        script.do("schedule")
    bad = script.do("update_wrongly", how=how)
    if script.steps[bad - 2][0] == "schedule":
        script.do("update")
    return script.end(), bad


@cancelling
def wrong_updates_of_the_cancelled(pick: Pick, ways: tuple[str, ...] = ("too few", "no id", "an id")) -> Any:
    """A request is cancelled while the model computes, and the step is handed back as if it had no chunk, or in a way that
    does not fit its chunk; then as it should be."""
    script = Script(pick, budgets=(3, 2, 8))
    how = pick.one_of(*ways)
    # Whose prompt takes several steps has a chunk that does not sample.
    long = script.budget + pick.size(1, script.budget) if how == "an id" else pick.size(1, script.budget)
    request = script.add(script.tokens(long), pick.size(3, 4))
    if pick.one_of(True, False):
        script.add(script.tokens(pick.size(1, 4)), pick.size(2, 4))
    script.work(2 if how == "too few" else 0)
    script.do("schedule")
    script.cancel(request)
    bad = script.do("update_wrongly", how=how, request=request)
    script.do("update")
    return script.end(), bad


@calls
def no_limits(pick: Pick) -> Call:
    """A scheduler that may do nothing."""
    script = Script(pick)
    script.most, script.budget = pick.one_of((0, 4), (4, 0), (-1, 4), (4, -1))
    script.request(longest=1)
    return script.end()


_steps: tuple[Any, ...] = (
    ("add", {"tokens": (1, 2, 3), "max_tokens": 2, "priority": 0, "eos": ()}),
    ("step", {}),
    ("step", {}),
)

EXAMPLES = {
    "Scheduler": Call(
        "Scheduler",
        {
            "num_blocks": 4,
            "block_size": 2,
            "prefix_caching": True,
            "max_requests": 2,
            "max_prefill_tokens": 8,
            "steps": _steps,
        },
    )
}
"""The plainest call of each operation."""

ORDINARY = {"Scheduler": workloads}
"""The widest calls of each operation."""
