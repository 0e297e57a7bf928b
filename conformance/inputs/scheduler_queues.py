"""Stories of schedulers in which it matters who comes first: priorities, queues and crowds."""

from __future__ import annotations

from inferspec.conformance.calls import Call
from inferspec.conformance.inputs.scheduler_script import Script, equal, several, several_cancelling
from inferspec.conformance.strategies import Pick
from inferspec.spec.block_manager import blocks_of


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
def long_prompt_in_the_midst(pick: Pick) -> Call:
    """Two requests generate, one of a larger priority and one of a smaller than a long prompt that comes then."""
    script = Script(pick, budgets=(2, 3, 5))
    script.most = 8
    for rank in pick.one_of((3, 1), (1, 3)):
        script.add(script.tokens(pick.size(1, 2)), pick.size(6, 8), priority=rank * script.grades)
    script.do("step")
    script.do("step")
    script.add(script.tokens(script.budget * pick.size(3, 4)), 2, priority=2 * script.grades)
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


@several
def outranked_in_vain(pick: Pick, full: bool = False) -> Call:
    """A request of a larger priority waits for more blocks than those of smaller priority that run could give up, all together:
    it needs the whole pool, part of which is held by one that is before it. full: as many run as may."""
    script = Script(pick, budgets=(64,))
    script.most = 8
    size, rank = script.size, script.grades
    first = script.add(script.tokens(pick.size(1, 2 * size)), 2 * size + 5, priority=9 * rank)
    held = [
        script.add(script.tokens(pick.size(1, size)), 2 * size + 4, priority=rank * number)
        for number in range(1, pick.size(2, 4))
    ]
    script.most = 1 + len(held) if full else script.most
    # One more for each that runs, so that none of them is short of one.
    script.blocks = sum(blocks_of(script.slots[number], size) + 1 for number in (first, *held))
    for _ in range(pick.size(2, 3)):
        script.do("step")
    script.add(script.tokens(script.blocks * size - 1), pick.size(1, 2), priority=5 * rank)
    script.do("step")
    script.do("step")
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


OF_64_BITS = (-(2**63), 2**63 - 1, 0, -(2**63) + 1, 1, -1)
"""The smallest and the largest priorities of 64 bits, and those in the middle."""


@several
def ranked_to_the_ends(pick: Pick) -> Call:
    """A queue of the smallest and the largest priorities, behind a request that runs."""
    script = Script(pick, budgets=(64, 8))
    script.most = 1
    script.add(script.tokens(1), pick.size(2, 4), priority=1)
    script.do("step")
    for place in script.random.permutation(pick.size(3, len(OF_64_BITS))):
        script.do("add", tokens=script.tokens(1), max_tokens=1, priority=OF_64_BITS[place], eos=())
    script.blocks = len(OF_64_BITS) + 4
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


@several
def outranked_late(pick: Pick) -> Call:
    """Requests of a small priority have waited for dozens of steps, behind one that runs alone, when one of a larger priority
    comes."""
    script = Script(pick, budgets=(64,))
    script.most, limit = 1, pick.one_of(70, 40, 135)
    script.add(script.tokens(1), limit, priority=9 * script.grades)
    script.do("step")
    for _ in range(pick.size(1, 2)):
        script.add(script.tokens(1), 1, priority=script.grades)
    for _ in range(limit - pick.size(2, 4)):
        script.do("step")
    script.add(script.tokens(1), 1, priority=2 * script.grades)
    return script.end()


@equal
def kept_waiting(pick: Pick) -> Call:
    """A prompt waits for dozens of steps, for it needs all blocks and one that generates has some; behind it is a short one, for
    which there is room, and which may begin as that does."""
    script = Script(pick, budgets=(64, 300))
    script.most, size = 8, script.size
    known = script.tokens(size + pick.size(0, 1))
    first = script.add(known, pick.one_of(20, 40, 70))
    script.do("step")
    script.blocks = blocks_of(script.slots[first], size) + pick.size(2, 3)
    script.add(script.tokens(script.blocks * size - pick.size(0, 1)), 1)
    script.add(pick.one_of((*known[:size], *script.tokens(1)), script.tokens(1)), pick.size(1, 2))
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


@equal
def joining_where_little_is_left(pick: Pick) -> Call:
    """A request of a block comes while a long one runs that has nearly all blocks of a pool; there is room for it."""
    script = Script(pick, budgets=(2048,))
    script.most = pick.one_of(8, 2, 3)
    size = script.size
    held = script.add(script.tokens(pick.one_of(30, 130, 60) * size + pick.size(1, size)), pick.size(2, 4))
    script.do("step")
    script.blocks = blocks_of(script.slots[held], size) + pick.size(1, 2)
    script.add(script.tokens(pick.size(1, size)), 1)
    return script.end()
