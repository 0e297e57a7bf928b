"""Requests that a run serves: engines may have loops of their own for it."""

from __future__ import annotations

from inferspec.conformance.inputs.engine_script import GUESSING, PLAIN, Script, outgrow, told


@told("outputs", "ends", "pages", **PLAIN)
def runs_in_short_pools(script: Script) -> None:
    """Requests that grow until there are no pages left, some of them begun before the run."""
    outgrow(script)
    script.do("run")


@told("outputs", "ends", zero_max_tokens=[True], **PLAIN)
def runs_of_none(script: Script) -> None:
    """Requests that a run serves, one of which asks for no id: before, behind or without others."""
    pick = script.pick
    for limit in pick.one_of((0, 2), (2, 0), (0,), (0, 0, 1)):
        script.add(script.prompt(pick.size(1, 6), limit), limit)
    script.pick.count("zero_max_tokens", 0)
    script.between(2)
    script.do("run")


@told("outputs", "ends", "pages", stops=[True], **GUESSING)
def guessing_runs(script: Script) -> None:
    """Requests for which a draft guesses, begun before the run or not: an id ends them, or none does."""
    pick = script.pick
    for _ in range(pick.size(1, 3)):
        limit = pick.one_of(6, 4, 8)
        tokens = script.prompt(script.length(), limit)
        script.add(tokens, limit, eos=pick.one_of((script.way(tokens, limit)[pick.size(1, limit - 2)],), ()))
        script.between(2)
    script.do("run")


@told("outputs", "logits", logits=["told"], **PLAIN)
def begun_before_runs(script: Script) -> None:
    """Requests that have ids when a run begins."""
    script.requests(1, 3, (4, 6, 8))
    script.do("step", times=script.pick.size(2, 4))
    script.do("run")


@told("outputs", "computing", "began", metrics=["told"], **PLAIN)
def ranked_runs(script: Script) -> None:
    """Requests of different priorities that a run serves one at a time."""
    pick, script.max_requests = script.pick, 1
    for _ in range(pick.size(3, 4)):
        script.add(script.prompt(pick.size(1, 4), 2), 2, priority=script.rank(0, 2, -1))
    script.do("run")


@told("outputs", "computing", "began", metrics=["told"], chunks=[64], **PLAIN)
def crowded_runs(script: Script) -> None:
    """More requests than may run, in a run; twice before that, the same by steps: an engine that replays a step
    which it has captured uses the model unseen."""
    pick, script.max_requests = script.pick, script.pick.one_of(1, 2)
    prompts = [script.prompt(pick.size(1, 4), 3) for _ in range(pick.size(3, 4))]
    for serve in ({"times": 12}, {"times": 12}, None):
        for tokens in prompts:
            script.add(tokens, 3)
        script.do("step" if serve else "run", **(serve or {}))


@told("outputs", "identities", metrics=["told"], **PLAIN)
def timeless_runs(script: Script) -> None:
    """Requests that a run serves while the clock stands still."""
    for _ in range(script.pick.size(1, 3)):
        limit = script.pick.one_of(4, 2, 1)
        script.add(script.prompt(script.pick.size(1, 6), limit), limit)
    script.do("run")


@told("outputs", "steps", prefix_caching=[True], page_sizes=[1, 2, 3], chunks=[1, 3], **PLAIN)
def asked_again_after_a_run(script: Script) -> None:
    """A prompt of some pages that is served by steps; one as long that a run serves, and the same again by steps."""
    length = script.size * 4 + 2 + 3 * script.chunk
    first, again = script.prompt(length, 2), script.prompt(length, 2)
    for tokens in (first, again, again):
        ran = sum(step == "add" for step, _ in script.steps) == 1
        script.add(tokens, 2)
        script.do("run" if ran else "step", **({} if ran else {"times": len(tokens) + 4}))


@told("outputs", "steps", "metrics", metrics=["told"], failing_models=[True], **PLAIN)
def failing_in_runs(script: Script) -> None:
    """Requests that have ids when a run fails."""
    for _ in range(script.pick.size(1, 3)):
        limit = script.pick.one_of(4, 6, 8)
        script.add(script.prompt(script.pick.size(1, 6), limit), limit)
    script.do("step", times=script.pick.size(1, 3))
    script.do("fail", after=script.pick.one_of(0, 1, 3), run=True, at="use")


@told("outputs", "ends", "pages", failing_models=[True], **PLAIN)
def failing_runs_in_short_pools(script: Script) -> None:
    """Requests that grow until there are no pages left, a run in which the model fails, and another run."""
    pick = script.pick
    if script.lead and pick.one_of(True, True, False):
        # Large pages: both fill theirs after an id or two, and there is one more.
        for _ in range(2):
            script.add(script.prompt(script.size - pick.size(1, 2), 9), 9)
        script.shorten(1)
    else:
        outgrow(script)
    prompts = -(-script.lead * len(script.asked) // script.chunk)
    script.do("fail", after=prompts + pick.one_of(6, 10, 16, 3), run=True, at="use")
    script.do("run")
