"""Stories of engines for the suites: more requests in a step than eight or sixteen, and more pages or guesses of one, whatever else
happens to them. There are few kinds of requests, so that little has to be computed to know what comes out."""

from __future__ import annotations

from inferspec.conformance.inputs.engine_script import COMMON_CHUNKS, PLAIN, Ids, Script, told

ROOMY = {"chunks": [64, *COMMON_CHUNKS]}
"""Steps that have room for the prompts of all, or nearly all."""

MANY = (36, 12, 20)
"""How many requests run at once."""


def _kinds(script: Script, limits: tuple[int, ...] = (4, 5, 3)) -> list[tuple[Ids, int]]:
    """Prompts, and how many ids are asked for."""
    return [(script.prompt(length, limit), limit) for length, limit in zip((2, 1, 3), limits, strict=True)]


def _house(script: Script, most: int, limits: tuple[int, ...] = (4, 5, 3)) -> None:
    """So many requests at once, of any kinds."""
    kinds = _kinds(script, limits)
    script.max_requests = most
    for _ in range(most):
        script.add(*kinds[script.random.integers(len(kinds))])


@told(**ROOMY)
def houses(script: Script) -> None:
    """As many requests as may run, all at once: a dozen or some."""
    _house(script, script.pick.one_of(*MANY))


@told(**ROOMY)
def guessing_houses(script: Script) -> None:
    """As many requests as may run, all at once, each of which asks for more ids than are guessed at a time."""
    script.guesses = script.pick.one_of(2, 3, 1)
    _house(script, script.pick.one_of(*MANY), (6, 7, 5))


@told("outputs", "logits", logits=["told"], prefix_caching=[False], **ROOMY, **PLAIN)
def unhurried_houses(script: Script) -> None:
    """As many requests as may run, whose prompts a step has room for together, in a pool for all."""
    _house(script, script.pick.one_of(12, 20, 9), (3, 2, 3))


@told("outputs", "stream", stops=[True], **ROOMY, **PLAIN)
def stopping_houses(script: Script) -> None:
    """As many requests as may run, all at once, each of which an id of its own ends, or none."""
    pick = script.pick
    script.max_requests = pick.one_of(*MANY)
    kinds = []
    for tokens, limit in _kinds(script, (6, 5, 4)):
        ids = script.way(tokens, limit)
        kinds += [(tokens, limit, eos) for eos in ((ids[limit // 2],), (ids[limit - 1],), ())]
    for _ in range(script.max_requests):
        tokens, limit, eos = kinds[script.random.integers(len(kinds))]
        script.add(tokens, limit, eos=eos)


@told(page_sizes=[1, 2], **ROOMY, **PLAIN)
def houses_in_short_pools(script: Script) -> None:
    """As many requests as may run, whose prompts fill nearly all pages: for the next ids of all a third or a half of them has to
    give way in one step."""
    pick = script.pick
    limit = pick.one_of(4, 5)
    length = max(script.size, 2)
    kinds = [script.prompt(length, limit) for _ in range(2)]
    script.max_requests = pick.one_of(20, 15, 30)
    for _ in range(script.max_requests):
        script.add(kinds[script.random.integers(len(kinds))], limit)
    # The last prompts find no pages, and no one has any for its second id.
    script.pages = script.max_requests * length // script.size + pick.size(0, 2)


@told("outputs", "pages", "ends", cancelling=[True], **ROOMY, **PLAIN)
def leaving_houses(script: Script) -> None:
    """As many requests as may run, two of which are cancelled while all of them generate: the last, and one before it."""
    pick = script.pick
    _house(script, pick.one_of(12, 20), (9, 8, 7))
    left = list(script.asked)
    for place in (-1, pick.one_of(0, 5, 9)):
        script.do("step", times=pick.size(1, 2))
        script.cancel(left.pop(place))
    script.between(2)


@told("outputs", "stream", "ends", failing_models=[True], **ROOMY, **PLAIN)
def failing_houses(script: Script) -> None:
    """As many requests as may run, and steps in which the model fails: for the first of them, or one behind the eighth."""
    pick = script.pick
    _house(script, pick.one_of(12, 20), (6, 5, 7))
    for _ in range(pick.size(1, 2)):
        script.do("step", times=pick.size(1, 2))
        script.do("fail", after=pick.one_of(10, 0, 9), at=pick.one_of("call", "use", "end"))


@told("outputs", "steps", prefix_caching=[False], chunks=[20, 64], **PLAIN)
def budgets_of_many(script: Script) -> None:
    """Dozens of short prompts, all at once: more than a step may compute, which may compute more than eight of them."""
    script.max_requests = script.pick.one_of(30, 20) * (3 if script.chunk == 64 else 1)
    kinds = _kinds(script, (1, 2, 1))
    for _ in range(script.max_requests):
        script.add(*kinds[script.random.integers(len(kinds))])


@told(prefix_caching=[True], page_sizes=[1, 2], **ROOMY, **PLAIN)
def many_pages_recycled(script: Script) -> None:
    """A prompt of dozens of pages, another that takes all of them but the first few in one step, or all, and the first again."""
    pick, limit = script.pick, 3
    pages = pick.one_of(40, 20, 30) if script.size == 1 else min(pick.one_of(30, 24), 480 // script.size)
    first = script.prompt(script.size * pages, limit)
    other = script.prompt(script.size * (pages - pick.one_of(4, 6, 0)), 1)
    for tokens, most in ((first, limit), (other, 1), (first, limit)):
        script.add(tokens, most)
        script.do("step", times=20)
    script.shorten(pick.size(0, 2))


@told(prefix_caching=[True], page_sizes=[1, 2, 3], **PLAIN)
def long_conversations(script: Script) -> None:
    """A request of dozens of ids, and one that goes on from them, or from most of them."""
    pick = script.pick
    limit = pick.one_of(36, 24, 30)
    tokens = script.prompt(pick.size(3, 8), limit)
    script.add(tokens, limit)
    script.do("step", times=limit + len(tokens) + 2)
    said = (*tokens, *script.way(tokens, limit))[: len(tokens) + limit - pick.size(0, 3)]
    script.add(script.prompt(len(said) + pick.size(1, 3), 4, said), 4)


@told("outputs", "steps", drafts=["perfect"])
def guessed_far(script: Script) -> None:
    """One request, whose draft is the model and guesses more than sixteen ids at a time. All come in three steps, the first of
    which may give one alone: where it gives guesses too, some fewer in each are as fast."""
    script.guesses = script.pick.one_of(33, 17, 20)
    limit = 1 + 2 * (script.guesses + 1)
    script.add(script.prompt(script.pick.size(1, 12), limit), limit)
