"""Stories of engines for the suites: who waits for whom, by priority and by arrival."""

from __future__ import annotations

from inferspec.conformance.inputs.engine_models import lengthy
from inferspec.conformance.inputs.engine_script import PLAIN, Script, told
from inferspec.spec.engine_model import pages_of


@told("order", "outputs", priorities=[True], **PLAIN)
def late_queues(script: Script) -> None:
    """A request that runs alone, and others of smaller and different priorities that come one by one meanwhile."""
    pick = script.pick
    script.max_requests = 1
    script.add(script.prompt(pick.size(1, 4), 12), 12, priority=3)
    for _ in range(pick.size(2, 4)):
        script.do("step", times=pick.size(1, 2))
        limit = pick.one_of(2, 1)
        script.add(script.prompt(pick.size(1, 4), limit), limit, priority=pick.one_of(0, 1, 2, -1))


@told("order", "outputs", priorities=[True], **PLAIN)
def queues(script: Script) -> None:
    """Requests of different priorities, small ones or some of many digits, that are served one at a time."""
    script.max_requests = 1
    ranks = script.pick.one_of(
        (0, 1, 2, -1, 0),
        (9, 10, -30, 200, 100),
        (2**24, 2**24 + 1, -300, 2**24 + 1, 2**24),
        (2**40, 2**33, -(2**33), 2**40, -(2**40)),
    )
    for _ in range(script.pick.size(2, 5)):
        limit = script.pick.one_of(2, 1, 3)
        script.add(script.prompt(script.pick.size(1, 5), limit), limit, priority=script.pick.one_of(*ranks))


@told("order", "outputs", priorities=[True], cancelling=[True], **PLAIN)
def queues_that_some_leave(script: Script) -> None:
    """Requests of many priorities that are served one at a time, some of which are cancelled before any is served."""
    pick = script.pick
    script.max_requests = 1
    prompts = [script.prompt(length, 1) for length in (1, 2, 3)]
    many = [
        script.add(prompts[number % 3], 1, priority=int(rank))
        for number, rank in enumerate(script.random.integers(-9, 10, pick.size(9, 16)))
    ]
    for _ in range(pick.size(2, 4)):
        script.cancel(many.pop(pick.size(0, len(many) - 1)))


@told("outputs", "steps", priorities=[True], chunks=[64], **PLAIN)
def queues_of_several(script: Script) -> None:
    """Requests of different priorities and one id each that are served two or three at a time."""
    pick = script.pick
    script.max_requests = pick.one_of(2, 3)
    for _ in range(pick.size(5, 7)):
        script.add(script.prompt(pick.size(1, 5), 1), 1, priority=pick.one_of(0, 1, 2, 3, -1))


@told("outputs", "steps", priorities=[True], pages=["told"], page_sizes=[1, 2, 3], chunks=[64], **PLAIN)
def ranked_in_short_pools(script: Script) -> int:
    """Two requests that outgrow all pages, and one of a lower priority that came before them and needs all; its number."""
    pick, limit = script.pick, 9
    script.max_requests = 2
    ranked = [script.prompt(script.lead + pick.size(1, 3), limit) for _ in range(2)]
    script.pages = max(script.need(len(tokens), limit) for tokens in ranked) + pick.size(0, 1)
    number = script.add(script.prompt(script.pages * script.size, 1), 1, priority=pick.one_of(0, -1, 1))
    for tokens in ranked:
        script.add(tokens, limit, priority=pick.one_of(5, 4, 5))
    return number


@told("outputs", "steps", priorities=[True], pages=["told"], page_sizes=[1, 2, 3], chunks=[64], **PLAIN)
def ranked_beside_each_other(script: Script) -> tuple[int, int]:
    """Two requests of unlike priority that come at once and together outgrow all pages: the number of the one that is ahead, and of
    the other."""
    pick, limit = script.pick, 9
    script.max_requests = 2
    prompts = [script.prompt(script.lead + pick.size(1, 3), limit) for _ in range(2)]
    script.pages = max(script.need(len(tokens), limit) for tokens in prompts) + pick.size(0, 1)
    high, low = pick.one_of((5, 0), (1, -1), (2, 1))
    first, second = pick.one_of((high, low), (low, high))
    numbers = script.add(prompts[0], limit, priority=first), script.add(prompts[1], limit, priority=second)
    return numbers if first == high else numbers[::-1]


@told("outputs", "steps", pages=["told"], page_sizes=[1, 2, 3], chunks=[64], **PLAIN)
def behind_preempted(script: Script) -> tuple[int, int]:
    """Two requests whose prompts fill all pages, so that the later one must give way when it has an id and wants another; a
    third that comes behind them and needs all pages. The numbers of the two that wait."""
    script.max_requests = script.pick.one_of(2, 3)
    preempted = _filling(script)
    script.between(3)
    return preempted, script.add(script.prompt(script.pages * script.size, 1), 1)


@told("outputs", "steps", pages=["told"], page_sizes=[1, 2, 3], chunks=[64], **PLAIN)
def small_behind_preempted(script: Script) -> tuple[int, int]:
    """The same with a third that needs a single page, which is free when the second gives way."""
    script.max_requests = script.pick.one_of(3, 2)
    preempted = _filling(script)
    script.between(1)
    return preempted, script.add(script.prompt(1, 1), 1)


@told("outputs", "steps", pages=["told"], page_sizes=[1, 2, 3], chunks=[64], **PLAIN)
def small_behind_large(script: Script) -> tuple[int, int]:
    """A request that runs, behind it one that needs all pages, and then one that needs a single page, which is free. The
    numbers of the two that wait."""
    pick, limit = script.pick, script.pick.one_of(6, 8)
    script.max_requests = pick.one_of(3, 4)
    first = script.prompt(pick.size(1, 3), limit)
    script.pages = script.need(len(first), limit) + 1
    script.add(first, limit)
    script.between(2)
    large = script.add(script.prompt(script.pages * script.size, 1), 1)
    script.between(1)
    return large, script.add(script.prompt(1, 1), 1)


@told("outputs", "steps", pages=["told"], page_sizes=[1, 2], chunks=[3], **PLAIN)
def behind_one_preempted_in_its_prompt(script: Script) -> tuple[int, int]:
    """A request that generates; one whose prompt takes several steps and nearly all other pages, so that it has to give way in the
    midst of it; and behind it one of a single token. The numbers of the two."""
    pick, size = script.pick, script.size
    script.max_requests, pages, length = 2, pick.one_of(9, 12, 10), 1
    script.pages = pages + 3 - size
    limit = script.pages * size - pick.size(0, 2)
    if script.lead:
        # So that it goes past its page before the other's two are computed.
        limit, pages, script.pages, length = pages, 2, 3, size - 2
    script.add(script.prompt(length, limit), limit)
    script.do("step", times=-(-length // script.chunk)) if script.lead else script.do("step")
    preempted = script.add(script.prompt(pages * size, 2), 2)
    script.do("step", times=pick.size(1, 2))
    return preempted, script.add(script.prompt(1, 1), 1)


def _filling(script: Script) -> int:
    """Two requests whose prompts fill all pages; the number of the second, which wants two ids."""
    pick, size = script.pick, script.size
    room = -(-4 // size) + pick.size(0, 1)
    limit = room * size + 1 - pick.size(0, 2)
    first = script.prompt(size * pick.size(1, 2), limit)
    second = script.prompt(size * room, 2)
    script.pages = pages_of(len(first), size) + pages_of(len(second), size)
    script.add(first, limit)
    return script.add(second, 2)


@told("outputs", "steps", priorities=[True], pages=["told"], page_sizes=[1, 2, 3], chunks=[64], **PLAIN)
def before_preempted(script: Script) -> int:
    """Two requests whose prompts fill all pages, so that one must give way when it has an id; before it does, a third of a larger
    priority comes that needs all pages: its number."""
    script.max_requests = 2
    _filling(script)
    script.do("step")
    return script.add(script.prompt(script.pages * script.size, 1), 1, priority=script.pick.one_of(1, 3))


@told("order", "outputs", **PLAIN)
def late_arrivals(script: Script) -> None:
    """Requests of one priority that are served one at a time, and come while others wait or when others have ended."""
    pick = script.pick
    script.max_requests = 1
    for _ in range(pick.size(4, 6)):
        limit = pick.one_of(2, 3, 1)
        script.add(script.prompt(pick.size(1, 3), limit), limit)
        script.between(3)


@told("order", "outputs", prefix_caching=[True], page_sizes=[1, 2, 3], **PLAIN)
def queued_hits(script: Script) -> None:
    """Requests of one priority that are served one at a time, the last of which begins with what was computed before."""
    pick = script.pick
    script.max_requests = 1
    known = script.prompt(script.size * pick.size(1, 3) + 1, 1)
    script.add(known, 1)
    script.do("step", times=20)
    for _ in range(pick.size(1, 2)):
        script.add(script.prompt(len(known), 2), 2)
    script.add(script.prompt(len(known) + pick.size(0, 2), 2, known[:-1]), 2)


@told("outputs", "ends", **PLAIN)
def many_before(script: Script) -> None:
    """Hundreds of requests that ask for one id, and two that ask for more."""
    _many_before(script, 1)


@told("outputs", "ends", zero_max_tokens=[True], **PLAIN)
def many_of_none_before(script: Script) -> None:
    """Hundreds of requests that ask for one id, some of them for none, and two that ask for more."""
    _many_before(script, script.pick.count("zero_max_tokens", 0))


def _many_before(script: Script, eighth: int) -> None:
    """eighth: how many ids every eighth of them asks for."""
    script.max_requests = script.pick.one_of(2, 8, 1)
    tokens = script.prompt(1, 1)
    for number in range(script.pick.one_of(300, 70, 140)):
        script.add(tokens, 1 if number % 8 else eighth)
    for _ in range(2):
        script.add(script.prompt(script.pick.size(1, 4), 3), 3)
    script.pages = 16


@told("order", "outputs", priorities=[True], **PLAIN)
def long_queues(script: Script) -> None:
    """More than ten requests, or more than a hundred, that are served one at a time."""
    script.max_requests = 1
    prompts = [script.prompt(length, 1) for length in (1, 2, 3, 2)]
    for _ in range(script.pick.one_of(130, 13, 11)):
        kind, rank = (int(x) for x in script.random.integers(4, size=2))
        script.add(prompts[kind], 1, priority=int(rank == 3))


@told(priorities=[True])
def ranked(script: Script) -> None:
    """Requests of different priorities, some of which come while others generate."""
    script.max_requests = script.pick.one_of(1, 2, 3, 1)
    for _ in range(script.pick.size(2, 4)):
        limit = script.pick.one_of(6, 4, 2, 9)
        script.add(script.prompt(script.length(), limit), limit, priority=script.pick.one_of(0, 1, 5, -3))
        script.between(6)
    if script.pick.one_of(False, True):
        script.shorten(script.pick.size(0, 1))


@told("outputs", "latest", logits=["told"], priorities=[True], chunks=[3, 7], **PLAIN)
def overtaken_by_a_long_prompt(script: Script) -> None:
    """Requests that generate while a prompt of several chunks and a larger priority is computed."""
    pick = script.pick
    script.max_requests = 8
    for _ in range(pick.size(1, 3)):
        script.add(script.prompt(pick.size(1, 3), 9), 9)
    script.do("step", times=pick.size(2, 3))
    script.add(script.prompt(script.chunk * pick.size(2, 3) + pick.size(1, 2), 3), 3, priority=2)


@told("outputs", "steps", prefix_caching=[False], page_sizes=[1, 2], chunks=[1, 3], pages=["told"], **PLAIN)
def resumed_prompts(script: Script) -> None:
    """A request that takes all pages to the last slot in the end; one that gives way to it, and goes on when it has ended; and a
    prompt that waits."""
    length = 4 * script.chunk
    spare, first = 2 * script.pick.one_of(5, 1, 3), script.pick.one_of(1, 2)
    _resumed(script, spare, (max(script.size - 16, 0) + first, length, length))


@told("outputs", "steps", prefix_caching=[False], page_sizes=[1, 2], chunks=[3], pages=["told"], **PLAIN)
def resumed_beside_prompts(script: Script) -> None:
    """The same, where the prompt that waits has room beside the one that goes on, which had many ids, after a prompt of any length."""
    pick, length = script.pick, 4 * script.chunk
    _resumed(script, 2 * pick.one_of(5, 4), (length + pick.one_of(8, 9), pick.one_of(length, 1, 2), length))


def _resumed(script: Script, spare: int, lengths: tuple[int, int, int]) -> None:
    """spare: how many ids the second has room for before it gives way, about twice as many as it has; lengths: tokens of the three."""
    first, second, third = lengths
    script.model = lengthy(script.kind, script.which)
    script.max_requests = 2
    limit = third + spare + 6
    script.add(script.prompt(first, limit), limit)
    script.shorten()
    limit = spare + 5 + third - second
    script.add(script.prompt(second, limit), limit)
    script.add(script.prompt(third, 2), 2)


@told("outputs", "steps", prefix_caching=[False], page_sizes=[1, 2], chunks=[1, 3], pages=["told"], **PLAIN)
def many_behind_a_preempted(script: Script) -> None:
    """A request that takes all pages in the end; one that gives way to it; and as many more as may run, which fit beside that
    when it goes on. All but the first are too long to be computed in two steps."""
    pick = script.pick
    script.model = lengthy(script.kind, script.which)
    script.max_requests, length = 2, 2 * script.chunk + 1
    others = [(length, limit) for limit in (pick.one_of(16, 18), pick.one_of(8, 9), pick.one_of(4, 5))]
    limit = length + 6
    pages = sum(script.need(*one) for one in others)
    first = (pages - 1) * script.size - 4 if script.lead else pages * script.size - limit + 1
    script.add(script.prompt(first, limit), limit)
    script.shorten()
    script.do("step", times=-(-first // script.chunk))
    for asked in others:
        script.add(script.prompt(*asked), asked[1])
