"""Stories of engines for the suites: drafts whose guesses are right, now and then, or never."""

from __future__ import annotations

from typing import Any

from inferspec.conformance.inputs.drafting import rounds_of
from inferspec.conformance.inputs.engine_models import POSITIONS, lengthy, near, of_positions, stands_out
from inferspec.conformance.inputs.engine_script import COMMON_CHUNKS, COMMON_PAGES, OF_ONE_LENGTH, Ids, Script, told
from inferspec.spec.engine import alone
from inferspec.spec.engine_decoder import forward


@told(page_sizes=COMMON_PAGES, chunks=COMMON_CHUNKS, drafts=["perfect", "near"])
def guessing_beside_long_prompts(script: Script) -> None:
    """A request that a draft guesses for, and a prompt of hundreds of tokens that is computed in one step with it."""
    pick = script.pick
    perfect = script.draft is script.model
    script.model = lengthy(script.kind, script.which)
    script.draft = script.model if perfect else of_positions(near(script.kind, script.which), POSITIONS)
    script.chunk = 2048
    script.add(script.prompt(pick.size(1, 5), 9), 9)
    script.do("step", times=pick.size(1, 2))
    script.add(script.prompt(pick.one_of(560, 530, 1100), 2), 2)


@told(prefix_caching=[True], page_sizes=[2, 3, 1], drafts=["other", "near"])
def guesses_asked_for(script: Script) -> None:
    """A request that a draft guesses for, mostly wrongly, and one whose prompt goes on as the draft guessed."""
    pick, limit = script.pick, script.pick.one_of(6, 8)
    tokens = script.prompt(max(script.lead - 4, 0) + pick.size(2, 8), limit)
    script.add(tokens, limit)
    script.do("step", times=40)
    assert script.draft is not None
    tokens = (*tokens, *alone(script.draft, tokens, script.guesses)[0])
    script.add(script.prompt(len(tokens) + pick.size(1, 3), 3, tokens), 3)


@told(drafts=["near", "other"])
def dozens_of_guesses(script: Script) -> None:
    """A request that a draft makes more than a dozen guesses at a time for, and one whose prompt is beside it."""
    pick = script.pick
    script.guesses = pick.one_of(17, 9, 33)
    limit = script.guesses + 5
    script.add(script.prompt(pick.size(1, 8), limit), limit)
    script.between(3)
    script.add(script.prompt(pick.size(8, 20), 4), 4)


@told("outputs", "ends", drafts=["perfect", "near", "other"])
def short_drafts(script: Script) -> int:
    """A request that goes past the positions of its draft, perhaps with its prompt, and one that does not; the number of
    the first."""
    pick = script.pick
    positions, limit = pick.one_of(16, 12, 9), pick.one_of(8, 5)
    script.draft = of_positions(script.draft or script.model, positions)
    number = script.add(script.prompt(positions - limit + 2 + pick.size(0, 8), limit), limit)
    script.between(2)
    script.add(script.prompt(pick.size(1, 3), 4), 4)
    return number


@told("outputs", "steps", drafts=["perfect"])
def guessed_right(script: Script) -> None:
    """One request, perhaps of a long prompt, whose draft is the model."""
    limit = script.pick.one_of(12, 8, 16)
    length = script.pick.size(1, 12)
    script.add(script.prompt(script.pick.one_of(length, 100), limit), limit)


@told("outputs", "steps", drafts=["perfect"])
def guessed_beside(script: Script) -> None:
    """Requests of which each comes while the one before it generates, and whose draft is the model."""
    pick = script.pick
    script.max_requests = pick.one_of(4, 3)
    for _ in range(pick.size(2, 3)):
        limit = pick.one_of(16, 20)
        length = pick.size(1, 12)
        script.add(script.prompt(length, limit), limit)
        script.do("step", times=-(-length // script.chunk) + 1)


@told("outputs", "steps", drafts=["perfect"])
def guessed_side_by_side(script: Script) -> None:
    """A request of each of two engines on one model and one draft, which is the model; they are served in turn. The second may
    guess less at a time."""
    guesses = script.pick.one_of(1, script.guesses)
    for engine, sizes in enumerate(({}, {"sizes": {"num_draft_tokens": guesses}})):
        limit = script.pick.one_of(16, 12)
        script.add(script.prompt(script.pick.size(1, 12), limit), limit, engine=engine, **sizes)


@told("outputs", "steps", drafts=["perfect"], prefix_caching=[True], page_sizes=[1, 2, 3])
def guessed_again(script: Script) -> None:
    """The same prompt of some pages twice, one after the other, whose draft is the model; at first perhaps for one id alone,
    where there is nothing to guess."""
    limit = script.pick.one_of(12, 16)
    tokens = script.prompt(script.size * 4 + script.pick.size(1, 3), limit)
    for asked in (script.pick.one_of(limit, 1), limit):
        script.add(tokens, asked)
        script.do("step", times=len(tokens) + asked)


@told("outputs", "steps", drafts=["perfect"], page_sizes=[1, 2, 3], chunks=[64])
def guessed_when_resumed(script: Script) -> None:
    """Two requests whose draft is the model, in a pool that is full before the first ends; the second has most of its ids yet to
    come when there is room for it again."""
    pick = script.pick
    script.max_requests, script.guesses = 2, pick.one_of(5, 3)
    for length, limit in ((pick.size(24, 28), 12), (script.lead + pick.size(1, 3), 26)):
        script.add(script.prompt(length, limit), limit)
    script.shorten(1 if script.lead else pick.size(1, 2))


@told("outputs", "steps", drafts=["perfect"], chunks=[64], failing_models=[True])
def guessed_after_failures(script: Script) -> None:
    """One request whose draft is the model, and steps in which the draft fails, before it reads and when it has, or the model;
    most ids are yet to come."""
    pick = script.pick
    limit, script.guesses = pick.one_of(36, 40), pick.one_of(5, 3)
    script.add(script.prompt(pick.size(3, 12), limit), limit)
    script.do("step")
    for at in pick.one_of(("call", "end"), ("end", "call")):
        script.do("fail", after=0, draft=True, at=at)
    if pick.one_of(False, True):
        script.do("fail", after=0, at="call")


@told("outputs", "steps", drafts=["near"])
def guessed_in_part(script: Script) -> None:
    """One request, whose draft is right now and then: a run of its guesses begins with right ones and has a wrong one."""
    limit, script.guesses = script.pick.one_of(16, 20), script.pick.one_of(3, 5, 4)
    for _ in range(OF_ONE_LENGTH):
        tokens = script.prompt(script.pick.size(1, 12), limit)
        if rounds(script.model, script.draft, tokens, limit, script.guesses) < limit // 2:
            break
    script.add(tokens, limit)


def rounds(of: Any, draft: Any, tokens: Ids, limit: int, guesses: int) -> int:
    """How many steps give all ids, the first of them alone: each gives the guesses that are clearly right, and one id more."""
    ids = alone(of, tokens, limit)[0]
    rows = forward(draft, [*tokens, *ids], {})[len(tokens) - 1 :]
    right = [int(row.argmax()) == token and stands_out(row) for row, token in zip(rows, ids, strict=False)]
    return 1 + rounds_of(right[:limit], guesses, 1)
