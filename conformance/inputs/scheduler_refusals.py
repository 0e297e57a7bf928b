"""Stories of schedulers with a step that is to be refused, or tried again and again: (story, number of the step, or of all)."""

from __future__ import annotations

from typing import Any

from inferspec.conformance.calls import Call
from inferspec.conformance.inputs.scheduler_pools import preempted_pair
from inferspec.conformance.inputs.scheduler_script import Script, calls, cancelling, equal
from inferspec.conformance.inputs.steps import Tried
from inferspec.conformance.strategies import Pick


def _refused(script: Script, step: str, again: bool = False, **arguments: Any) -> tuple[Call, Tried]:
    """The story goes on after a step that is to be refused."""
    script.do(step, **arguments)
    bad = script.tried(again)
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
def too_long(pick: Pick, again: bool = False) -> tuple[Call, Tried]:
    """A request that needs one slot more than there are, or many."""
    script = _before(pick)
    script.blocks = max(script.pool(), pick.size(1, 4))
    limit, more = pick.one_of(1, 2, 5), pick.one_of(1, 1, script.size, 100)
    tokens = script.tokens(max(1, script.blocks * script.size + 1 - limit + more))
    return _refused(script, "add", again, tokens=tokens, max_tokens=limit, priority=pick.one_of(0, 2), eos=())


@calls
def senseless(pick: Pick) -> tuple[Call, Tried]:
    """A request without a prompt, or for no tokens."""
    script = _before(pick)
    tokens, limit = pick.one_of(((), 2), ((1, 2), 0), ((1, 2, 3), -1), ((), 1))
    return _refused(script, "add", tokens=tokens, max_tokens=limit, priority=0, eos=())


@calls
def mended(pick: Pick) -> tuple[Call, Tried]:
    """A request without a prompt, for no tokens or for more than there are slots; then it asks for what can be done."""
    script = _before(pick)
    tokens, limit = script.tokens(pick.size(1, 4)), pick.size(1, 3)
    wrong = pick.one_of((tokens, 0), ((), limit), (tokens, 100_000), (tokens, -1))
    bad = script.do("add", tokens=wrong[0], max_tokens=wrong[1], priority=0, eos=())
    number = script.do("add_mended", request=bad, tokens=tokens, max_tokens=limit)
    script.slots[number] = len(tokens) + limit - script.slotless
    return script.end(), bad


@calls
def added_again(pick: Pick, again: bool = False) -> tuple[Call, Tried]:
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
    return _refused(script, "add_again", again, request=request)


@equal
def preempted_again(pick: Pick) -> tuple[Call, Tried]:
    """A request is added again when it was preempted, before others that come later."""
    script, request = preempted_pair(pick)
    script.add(script.tokens(pick.size(1, 3)), pick.size(1, 3))
    return _refused(script, "add_again", request=request)


@cancelling
def strangers(pick: Pick, again: bool = False) -> tuple[Call, Tried]:
    """A request that was never added is cancelled."""
    return _refused(_before(pick), "cancel_stranger", again)


WAYS = ("another step", "too few", "too many", "an id", "no id")
"""How an update does not fit its step."""


@calls
def wrong_updates(pick: Pick, ways: tuple[str, ...] = WAYS, again: bool = False) -> tuple[Call, Tried]:
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
    scheduled = script.steps[-1][0] == "schedule"
    script.do("update_wrongly", how=how)
    bad = script.tried(again)
    if scheduled:
        script.do("update")
    return script.end(), bad


@calls
def steps_of_half_prompts(pick: Pick) -> tuple[Call, int]:
    """A step that computes a part of a prompt, and chooses no id, is handed back twice."""
    script = Script(pick, budgets=(3, 2, 8))
    script.add(script.tokens(script.budget * pick.size(2, 4) + pick.size(0, 1)), pick.size(1, 3))
    for _ in range(pick.size(1, 3)):
        script.do("step")
    bad = script.do("update_wrongly", how="another step")
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
