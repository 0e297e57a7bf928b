"""Stories of schedulers whose requests are cancelled: as they wait, run, are preempted or in flight."""

from __future__ import annotations

from inferspec.conformance.calls import Call
from inferspec.conformance.inputs.scheduler_pools import preempted_pair
from inferspec.conformance.inputs.scheduler_script import Script, cancelling, equal_cancelling, several_cancelling
from inferspec.conformance.strategies import Pick


@equal_cancelling
def left_when_preempted(pick: Pick) -> Call:
    """A request is cancelled when it was preempted; as many as may run and more come before that or after it."""
    script, request = preempted_pair(pick)
    late = pick.one_of(False, True)
    if late:
        script.cancel(request)
    for _ in range(script.most + pick.size(1, 2)):
        script.add(script.tokens(1), pick.size(2, 3))
    if not late:
        script.cancel(request)
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


@several_cancelling
def far_apart(pick: Pick) -> Call:
    """Two requests of one priority wait, between which a thousand came and left; a request of a larger priority comes last."""
    script = Script(pick, budgets=(64,))
    script.most, rank = 1, pick.one_of(1, 2)
    script.add(script.tokens(1), pick.size(2, 3), priority=9)
    script.do("step")
    script.add(script.tokens(1), 1, priority=rank)
    script.do("pass_by", times=1022)
    for more in (0, 1):
        script.add(script.tokens(1), 1, priority=rank + more)
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
    """Of several requests that run two, or all of them, are cancelled while the model computes one step; others may have come
    meanwhile."""
    script = Script(pick, budgets=(64, 16, 8))
    script.most = 8
    requests = [script.add(script.tokens(pick.size(1, script.size)), pick.size(3, 6)) for _ in range(pick.size(3, 4))]
    script.work(3)
    script.do("schedule")
    for _ in range(pick.one_of(0, 2)):
        script.add(script.tokens(pick.size(1, 4)), 2)
    count = pick.one_of(2, len(requests), 3)
    for index in script.random.permutation(len(requests))[:count]:
        script.cancel(requests[index])
    script.update("fail")
    if pick.one_of(True, False):
        script.add(script.tokens(pick.size(1, 4)), 2)
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
