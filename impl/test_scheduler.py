"""What the contract of the scheduler cannot see: room for speculation, what it tells of itself, what its errors say."""

from __future__ import annotations

import random
import time

import pytest

from inferspec.impl.block_manager import BlockManager
from inferspec.impl.scheduler import Request, Scheduler, State


def scheduler(num_blocks: int = 8, block_size: int = 4, max_requests: int = 4, budget: int = 64, lookahead: int = 0):
    return Scheduler(BlockManager(num_blocks, block_size), max_requests, budget, lookahead=lookahead)


def advance(it: Scheduler, *ids: int | list[int]) -> list[Request]:
    """A step in which everybody gets the ids that are given, in order, or 7."""
    step = it.schedule()
    given = iter(ids)
    return it.update(step, [next(given, 7) if chunk.samples else None for chunk in step.chunks])


# room for speculation


def test_a_decode_has_room_for_the_lookahead():
    it = scheduler(lookahead=3)
    it.add(Request([1, 2], max_tokens=10))
    advance(it)
    (chunk,) = it.schedule().decodes
    assert (chunk.start, len(chunk.tokens), chunk.lookahead) == (2, 1, 3)
    assert len(chunk.block_ids) * 4 >= chunk.start + 1 + chunk.lookahead


def test_a_prompt_has_no_lookahead():
    it = scheduler(lookahead=3)
    it.add(Request([1, 2], max_tokens=10))
    assert it.schedule().prefills[0].lookahead == 0


def test_the_lookahead_ends_with_the_request():
    it = scheduler(lookahead=3)
    it.add(Request([1, 2], max_tokens=3))
    advance(it)
    assert it.schedule().decodes[0].lookahead == 1


def test_there_is_no_lookahead_where_no_block_is_left_and_nobody_is_preempted_for_it():
    it = scheduler(num_blocks=2, block_size=2, lookahead=3)
    it.add(Request([1], max_tokens=3))
    it.add(Request([2], max_tokens=3))
    advance(it)
    step = it.schedule()
    assert [chunk.lookahead for chunk in step.decodes] == [0, 0]
    assert step.preempted == ()


@pytest.mark.parametrize("ids", [[5], [5, 6], [5, 6, 8, 9]])
def test_several_ids_are_taken_and_the_next_decode_follows_the_last(ids):
    it = scheduler(lookahead=3)
    request = Request([1, 2], max_tokens=10)
    it.add(request)
    advance(it, 4)
    advance(it, ids)
    assert request.output == [4, *ids]
    (chunk,) = it.schedule().decodes
    assert (chunk.start, chunk.tokens) == (2 + len(ids), (ids[-1],))


@pytest.mark.parametrize(("ids", "output"), [([5, 6, 8], [4, 5, 6]), ([5, 99, 8], [4, 5]), ([99], [4])])
def test_several_ids_end_at_the_limit_or_at_eos(ids, output):
    it = scheduler(lookahead=2)
    request = Request([1, 2], max_tokens=3 if 99 not in ids else 9, eos=(99,))
    it.add(request)
    advance(it, 4)
    step = it.schedule()
    taken = ids[: 1 + step.decodes[0].lookahead]
    assert it.update(step, [taken]) == ([request] if 99 in taken or len(taken) == 2 else [])
    assert request.output == output


def test_what_was_speculated_is_hit_like_anything_else():
    it = scheduler(block_size=2, num_blocks=16, lookahead=3)
    it.add(Request([1, 2], max_tokens=9))
    advance(it, 3)
    advance(it, [4, 5, 6])
    it.add(Request([1, 2, 3, 4, 5, 6, 7], max_tokens=1))
    # The id 6 is not computed yet.
    assert it.schedule().prefills[0].start == 4


@pytest.mark.parametrize("ids", [[], [1, 2]])
def test_more_ids_than_there_is_room_for_are_refused(ids):
    it = scheduler()
    it.add(Request([1, 2], max_tokens=9))
    step = it.schedule()
    with pytest.raises(ValueError, match=f"tokens has {len(ids)} ids for a chunk; it takes 1 to 1"):
        it.update(step, [ids])
    assert it.update(step, [5]) == []


# what it tells of itself


def test_it_counts_who_runs_and_who_waits():
    it = scheduler(max_requests=1)
    assert (it.num_running, it.num_waiting, it.has_unfinished) == (0, 0, False)
    first, second = Request([1], max_tokens=1), Request([2], max_tokens=1)
    it.add(first)
    it.add(second)
    assert (it.num_running, it.num_waiting, it.has_unfinished) == (0, 2, True)
    assert advance(it) == [first]
    assert (it.num_running, it.num_waiting, it.has_unfinished) == (0, 1, True)
    it.cancel(second)
    assert (it.num_running, it.num_waiting, it.has_unfinished) == (0, 0, False)


def test_states_are_those_of_the_enumeration():
    it = scheduler()
    request = Request([1, 2], max_tokens=1)
    it.add(request)
    assert request.state is State.WAITING
    step = it.schedule()
    assert request.state is State.RUNNING
    it.update(step, [3])
    assert request.state is State.FINISHED


def test_cancelled_requests_in_the_queue_cost_nothing_later():
    """A queue of thousands that are cancelled is gone through once."""
    it = scheduler(max_requests=1)
    requests = [Request([1], max_tokens=1) for _ in range(20_000)]
    started = time.process_time()
    for request in requests:
        it.add(request)
    for request in requests[:-1]:
        it.cancel(request)
    assert advance(it) == [requests[-1]]
    assert time.process_time() - started < 10


# errors


@pytest.mark.parametrize(
    ("tokens", "max_tokens", "message"),
    [
        ([], 1, "request.tokens is empty; it takes one id or more"),
        ([1], 0, "request.max_tokens is 0; it takes 1 or more"),
        ([1] * 30, 4, "request has a prompt of 30 ids and max_tokens 4; all blocks together hold 32 tokens"),
    ],
)
def test_requests_that_cannot_be_are_refused(tokens, max_tokens, message):
    it = scheduler()
    with pytest.raises(ValueError, match=message):
        it.add(Request(tokens, max_tokens))
    assert not it.has_unfinished


@pytest.mark.parametrize(
    ("limits", "message"),
    [
        ({"max_requests": 0}, "max_requests is 0; it takes 1 or more"),
        ({"budget": 0}, "max_prefill_tokens is 0; it takes 1 or more"),
        ({"lookahead": -1}, "lookahead is -1; it takes 0 or more"),
    ],
)
def test_limits_are_checked(limits, message):
    with pytest.raises(ValueError, match=message):
        scheduler(**limits)


def test_updates_that_do_not_fit_say_why():
    it = scheduler(budget=2)
    it.add(Request([1, 2, 3], max_tokens=2))
    step = it.schedule()
    with pytest.raises(ValueError, match="tokens has 0 entries; the step has 1 chunks"):
        it.update(step, [])
    with pytest.raises(ValueError, match="tokens has 5 for a chunk that does not sample; it takes None"):
        it.update(step, [5])
    it.update(step, [None])
    with pytest.raises(ValueError, match="step is not the last one scheduled, or was updated before"):
        it.update(step, [None])
    with pytest.raises(ValueError, match="tokens has None for a chunk that samples; it takes an id"):
        it.update(it.schedule(), [None])


def test_requests_that_were_cancelled_while_they_waited_do_not_pile_up():
    it = scheduler(max_requests=1)
    it.add(Request([1], max_tokens=8))
    advance(it)
    for _ in range(500):
        waiting = Request([1], max_tokens=8)
        it.add(waiting)
        it.cancel(waiting)
    assert it.num_waiting == 0
    assert len(it._waiting) < 100


def test_those_who_wait_keep_their_order_when_many_others_are_cancelled():
    it, order = scheduler(max_requests=1), random.Random(1)
    requests = [Request([1], max_tokens=1, priority=order.randrange(50)) for _ in range(300)]
    for request in requests:
        it.add(request)
    kept = order.sample(requests, 40)
    for request in requests:
        if request not in kept:
            it.cancel(request)
    assert len(it._waiting) < len(requests)
    served = [advance(it)[0] for _ in kept]
    assert served == sorted(kept, key=lambda request: (-request.priority, requests.index(request)))


def test_a_preempted_request_is_not_lost_when_many_others_are_cancelled():
    it = scheduler(num_blocks=2, block_size=2)
    old, new = (Request([1, 2], max_tokens=3) for _ in range(2))
    it.add(old)
    it.add(new)
    while new.state is not State.PREEMPTED:
        advance(it)
    for _ in range(500):
        waiting = Request([1], max_tokens=1)
        it.add(waiting)
        it.cancel(waiting)
    for _ in range(10):
        advance(it)
    assert new.state is State.FINISHED
    assert len(new.output) == 3


def test_block_ids_are_read_anew_where_a_block_was_computed():
    """The manager may have given the table the copy that another has computed."""

    class Joining(BlockManager):
        def mark_computed(self, table, n):
            super().mark_computed(table, n)
            if n == self.block_size:
                table._blocks[0] = self._empty.pop()

    scheduler = Scheduler(Joining(8, 4), max_requests=2, max_prefill_tokens=4)
    scheduler.add(Request(list(range(8)), max_tokens=1))
    first = scheduler.schedule()
    scheduler.update(first, [None])
    (chunk,) = scheduler.schedule().prefills
    (table,) = (entry.table for entry in scheduler._running)
    assert chunk.block_ids == tuple(table.block_ids) != first.prefills[0].block_ids
