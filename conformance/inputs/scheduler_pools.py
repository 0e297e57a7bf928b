"""Stories of schedulers whose pool has not room for all: requests that grow, are preempted and resumed."""

from __future__ import annotations

from inferspec.conformance.calls import Call
from inferspec.conformance.inputs.scheduler_script import (
    Script,
    caching,
    calls,
    equal,
    equal_caching,
    several,
    with_voids,
)
from inferspec.conformance.strategies import Pick
from inferspec.spec.block_manager import blocks_of
from inferspec.spec.serving import alone


@equal
def leaving_together(pick: Pick) -> Call:
    """Two requests that end in one step, and one that waits for the blocks of both, beside one that goes on."""
    script = Script(pick, budgets=(64,))
    script.most = pick.one_of(8, 4)
    length, limit = 2 * min(script.size, 8) + 4, pick.size(2, 4)
    script.add(script.tokens(1), limit + 3)
    both = [script.add(script.tokens(length), limit) for _ in range(2)]
    script.blocks = script.pool() - 1
    room = sum(blocks_of(script.slots[number], script.size) for number in both) * script.size
    script.add(script.tokens(room - pick.size(0, script.size - 1)), 1)
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


@several
def giving_way_beside_a_long_prompt(pick: Pick) -> Call:
    """Two requests grow until one gives way to the other, while a prompt of a larger priority is computed in chunks."""
    script = Script(pick, budgets=(2, 1, 3, 5))
    script.most, size = 8, script.size
    for priority in (2, 1):
        script.add(script.tokens(1), 2 * size + 6, priority=priority)
    for _ in range(3):
        script.do("step")
    # So long that both have filled a block more before it is computed.
    long = script.add(script.tokens(script.budget * (size + pick.size(3, 5))), 2, priority=3)
    script.blocks = blocks_of(script.slots[long], size) + 2 * blocks_of(4, size) + pick.size(0, 1)
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


@equal
def preempted_when_half_computed_again(pick: Pick) -> Call:
    """A request gives way to two others; when the first of these has ended it computes again in small chunks, and meanwhile the
    second needs a block more: it gives way again. Behind it waits one that has room beside the second, and not beside both."""
    script = Script(pick, budgets=(2, 3))
    size, budget = script.size, script.budget
    script.most, script.blocks = 3, 18
    prompt = 6 * size
    # The step that gives the first id of the third, and that in which there is no block for it.
    first = step = 1 - (2 - budget - prompt) // budget
    while 2 * blocks_of(step, size) + blocks_of(prompt + step - first, size) <= script.blocks:
        step += 1
    # Just room for it when the first has ended, and the second has one block more.
    left = script.blocks - 1 - blocks_of(prompt + step - first, size) - pick.size(0, 1)
    script.add(script.tokens(1), left * size)
    script.add(script.tokens(1), (left + 4) * size)
    script.add(script.tokens(prompt), 8 * size)
    script.add(script.tokens(3 * size), 1)
    return script.end()


@calls
def left_when_half_computed_again(pick: Pick) -> Call:
    """A request gives way to two others; when the first of these has ended it computes again in small chunks, and meanwhile the
    second ends or is cancelled."""
    script = Script(pick, budgets=(2, 1, 3))
    size, apart = script.size, pick.size(1, 3)
    script.most = pick.one_of(3, 4)
    limit = size + pick.size(6, 9)
    first = script.add(script.tokens(1), limit)
    second = script.add(script.tokens(1), limit + apart)
    third = script.add(script.tokens(2), limit + size)
    blocks = [blocks_of(script.slots[number], size) for number in (first, second, third)]
    script.blocks = max(blocks[0] + blocks[1], blocks[2])
    if pick.one_of(False, False, True):
        for _ in range(limit + apart):
            script.do("step")
        script.cancel(second)
    return script.end()


def preempted_pair(pick: Pick) -> tuple[Script, int]:
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


@several
def itself_in_the_midst(pick: Pick) -> Call:
    """A request of small priority gives up its own blocks, for one more that it needs; others were admitted before it and behind it."""
    script = Script(pick, budgets=(64, 32))
    size = script.size
    script.most, script.blocks = pick.one_of(3, 8), 3
    script.add(script.tokens(1), pick.size(4, 6), priority=2)
    script.add(script.tokens(size - 2), 5, priority=-1)
    script.do("step")
    script.add(script.tokens(1), pick.size(3, 4), priority=1)
    return script.end()


@equal_caching
def resumed_in_what_is_left(pick: Pick) -> Call:
    """A request gives way to two others when its tokens fill its blocks; once one of these ends there is room for it, and no
    more."""
    script = Script(pick, budgets=(64, 32))
    size = script.size
    script.most, script.blocks = pick.one_of(3, 8), 4
    script.add(script.tokens(1), 2 * size + pick.size(1, 2))
    script.add(script.tokens(1), size + 1)
    script.add(script.tokens(size), size + pick.size(2, 4))
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
def behind_one_that_gives_way(pick: Pick) -> Call:
    """A request that gives way several times, to others of larger priority; one of its own priority, which needs all blocks, waits
    behind it."""
    script = Script(pick, budgets=(64,))
    script.most, script.blocks, most = 2, 28, 24
    script.add(script.tokens(1), most, priority=-1)
    script.add(script.tokens(script.blocks * script.size), 1, priority=-1)
    for number in range(pick.size(4, 6)):
        length = most - 2 * number + pick.one_of(0, 1, -1)
        limit = script.blocks - length + 1
        script.add(script.tokens(length), limit, priority=1)
        for _ in range(limit + 1):
            script.do("step")
    return script.end()


@equal
def ending_as_another_gives_way(pick: Pick) -> Call:
    """Requests that grow side by side, all but one of which need a block in the step in which one of them ends: another one gives
    way."""
    script = Script(pick, budgets=(64,))
    size, mates = script.size, pick.size(4, 5)
    script.most, blocks = 8, pick.size(1, 2)
    length = pick.size(1, blocks * size)
    limit = blocks * size + 2 - length
    ends = pick.size(0, mates - 3)
    for number in range(mates):
        script.add(script.tokens(length), limit + (0 if number == ends else 2 * size))
    script.blocks = mates * blocks + mates - 2
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
def voided_growing(pick: Pick) -> Call:
    """Requests that are preempted for steps of which nothing comes."""
    script = _growing(pick)
    for _ in range(script.size + pick.size(1, 6)):
        if pick.random.random() < 0.6:
            script.void()
        script.do("step")
    return script.end()


@with_voids
def voided_and_waiting(pick: Pick) -> Call:
    """Two requests of one priority grow until the later one gives way, for a step of which nothing comes; a shorter one waits
    behind it."""
    script = Script(pick, budgets=(64, 8, 16))
    size = script.size
    script.most, rank = pick.one_of(2, 8), script.grades
    for _ in range(2):
        script.add(script.tokens(1), 3 * size + 2, priority=rank)
    script.blocks = blocks_of(3 * size + 2, size) + pick.size(0, 1)
    script.do("step")
    script.add(script.tokens(1), pick.size(1, 2), priority=rank)
    # Of large blocks there are more such steps than choices.
    for _ in range(2 * size + 2):
        script.do("schedule")
        if script.random.random() < 0.5:
            script.do("fail")
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


@equal
def evicted_by_many(pick: Pick) -> Call:
    """As many requests as may run, half a dozen and more, generate side by side until there is no block for one of them; others wait
    by then, and need less room than it."""
    script = Script(pick, budgets=(64, 32))
    size = script.size
    script.most = pick.size(6, 9)
    for number in range(script.most):
        script.add(script.tokens(1), size + 2 + (number % 3) * size)
    script.do("step")
    for _ in range(pick.size(1, 3)):
        script.add(script.tokens(1), pick.size(1, 2))
    script.blocks = 2 * script.most - pick.size(1, 2)
    return script.end()
