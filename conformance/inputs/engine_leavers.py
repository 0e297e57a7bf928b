"""Stories of engines for the suites: requests that are cancelled, and models that fail."""

from __future__ import annotations

from collections.abc import Callable

from inferspec.conformance.inputs.engine_script import PLAIN, Script, outgrow, told


@told("outputs", "cancelled", "pages", "ends", cancelling=[True])
def cancelling(script: Script) -> None:
    """Requests of which some are cancelled: before they began, in their prompt, while they generate."""
    pick = script.pick
    start = script.ids(script.size + 1) if pick.one_of(False, True) else ()
    for _ in range(pick.size(2, 4)):
        limit = pick.one_of(6, 4, 9)
        script.add(script.prompt(len(start) + pick.size(1, 12), limit, start), limit)
    left = list(script.asked)
    for _ in range(pick.size(1, 2)):
        script.between(5)
        script.cancel(left.pop(pick.size(0, len(left) - 1)))
    if pick.one_of(False, True):
        script.shorten(pick.size(0, 2))
    if pick.one_of(False, True):
        script.between(2)
        script.add(script.prompt(script.pick.size(1, 6), 3), 3)


@told("outputs", "ends", cancelling=[True], **PLAIN)
def cancelling_before_runs(script: Script) -> None:
    """Requests of which one is cancelled when it has some of its ids, and the others are run to their end, perhaps twice."""
    pick, limit = script.pick, script.pick.one_of(20, 24)
    prompts = [script.prompt(length, limit) for length in (pick.size(1, 7), pick.size(1, 7))]
    first = script.add(prompts[0], limit)
    script.do("step", times=-(-len(prompts[0]) // script.chunk))
    script.between(3)
    script.add(prompts[1], limit)
    if pick.one_of(False, True):
        script.do("step")
    script.cancel(first)
    for _ in range(pick.one_of(1, 2)):
        script.do("run")


@told("outputs", "cancelled", "pages", "ends", page_sizes=[1, 2, 3], cancelling=[True], **PLAIN)
def cancelling_in_short_pools(script: Script) -> None:
    """Requests that grow until there are no pages left, of which some are cancelled: as they run, or when they were
    preempted."""
    pick = script.pick
    script.max_requests = pick.one_of(3, 8)
    for _ in range(3):
        script.add(script.prompt(script.lead + pick.size(1, 3), 9), 9)
    script.do("step", times=-(-2 * script.lead // script.chunk) + pick.size(5, 9))
    script.cancel(len(script.asked) - pick.one_of(0, 0, 1))
    script.between(1)
    script.add(script.prompt(pick.size(1, 3), 4), 4)
    script.shorten(pick.one_of(0, 0, 1) + bool(script.lead))


@told("outputs", "cancelled", "pages", "ends", cancelling=[True], **PLAIN)
def cancelling_dozens(script: Script) -> None:
    """Dozens of requests that are cancelled when they have begun, and one that is not."""
    pick, limit = script.pick, 4
    prompts = [script.prompt(length, limit) for length in (5, 1, 9)]
    for _ in range(pick.one_of(20, 40)):
        number = script.add(prompts[script.random.integers(len(prompts))], limit)
        script.do("step")
        script.cancel(number)
    script.add(prompts[0], limit)


@told("outputs", "ends", cancelling=[True], **PLAIN)
def cancelling_of_a_dozen(script: Script) -> None:
    """More than a dozen requests, the first two of which are cancelled: in print some ids begin, or end, as theirs do."""
    pick, limit = script.pick, 3
    prompts = [script.prompt(length, limit) for length in (2, 1, 4)]
    for _ in range(pick.one_of(14, 13, 21)):
        script.add(prompts[script.random.integers(len(prompts))], limit)
    script.between(2)
    for number in list(script.asked)[:2]:
        script.cancel(number)


@told("outputs", "cancelled", "pages", "ends", cancelling=[True], failing_models=[True], chunks=[64], **PLAIN)
def cancelling_before_failures(script: Script) -> None:
    """Requests that generate together; one of them is cancelled, and the next step fails, or the next two."""
    pick = script.pick
    script.max_requests = 3
    for _ in range(pick.size(2, 3)):
        script.add(script.prompt(pick.size(1, 5), 9), 9)
    script.do("step", times=pick.size(2, 4))
    script.cancel(pick.one_of(*script.asked))
    for _ in range(pick.size(1, 2)):
        script.do("fail", after=0, at=pick.one_of("call", "use", "end"))


@told("outputs", "pages", "ends", cancelling=[True], **PLAIN)
def cancelling_again(script: Script) -> None:
    """A request that is cancelled, or finished, and is cancelled again while others have the pages that it had."""
    pick = script.pick
    limit = pick.one_of(5, 5, 2)
    first = script.add(script.prompt(min(script.size, 8) * 2, limit), limit)
    script.do("step", times=-(-min(script.size, 8) * 2 // script.chunk) + pick.size(1, 3))
    script.cancel(first)
    for _ in range(pick.size(1, 2)):
        script.add(script.prompt(min(script.size, 8) + pick.size(0, 2), 6), 6)
        script.do("step", times=pick.size(1, 3))
        script.cancel(first)
    for _ in range(pick.size(1, 2)):
        script.add(script.prompt(min(script.size, 8) + pick.size(0, 2), 3), 3)
        script.between(2)
    script.shorten(pick.size(0, 2))


@told("outputs", "ends", cancelling=[True])
def cancelling_the_finished(script: Script) -> None:
    """Requests that are finished by steps and then cancelled, before others come; a run may tell the outputs."""
    pick = script.pick
    for _ in range(pick.size(1, 3)):
        script.add(script.prompt(pick.size(1, 6), 4), pick.one_of(1, 4, 2))
    script.do("step", times=30)
    for number in list(script.asked)[:: pick.one_of(1, 2)]:
        script.do("cancel", request=number, finished=True)
    if pick.one_of(True, False):
        script.add(script.prompt(pick.size(1, 4), 3), 3)
        script.between(2)
    if pick.one_of(True, False):
        script.do("run")


@told("outputs", "ends", prefix_caching=[True], cancelling=[True])
def cancelling_sharers(script: Script) -> None:
    """Of requests that have pages in common one is cancelled, and another takes what it left."""
    pick = script.pick
    start = script.ids(script.page() * pick.size(1, 2) + 1)
    for _ in range(2):
        script.add(script.prompt(len(start) + pick.size(0, 2), 9, start), 9)
        script.do("step", times=-(-len(start) // script.chunk) + pick.size(1, 2))
    script.cancel(pick.one_of(1, *script.asked))
    # Few enough pages that the newcomers need all that are free.
    for _ in range(2):
        script.add(script.prompt(script.page() * 2 + 1, 3), 3)
    script.shorten(pick.size(0, 2))


@told("outputs", "stream", "ends", "pages", failing_models=[True])
def failing(script: Script) -> None:
    """Steps in which the model fails, at one of its uses."""
    pick = script.pick
    for _ in range(pick.size(1, 4)):
        limit = pick.one_of(6, 12, 9)
        script.add(script.prompt(pick.size(1, 6), limit), limit)
    for _ in range(pick.size(1, 4)):
        script.between(4)
        script.do("fail", after=pick.one_of(1, 0, 2, 3, 5, 8))
    if pick.one_of(False, False, True):
        script.shorten(pick.size(0, 2))


@told("outputs", "ends", "pages", prefix_caching=[True], page_sizes=[1, 2, 3, 8], failing_models=[True], **PLAIN)
def failing_sharers(script: Script) -> None:
    """A request that begins as one does that came before it, and may still be served; the step fails in which it begins."""
    pick = script.pick
    start = script.ids(script.size * pick.size(1, 2))
    length = len(start) + script.lead
    for _ in range(2):
        script.add(script.prompt(length + pick.size(1, 3), 8, start), 8)
        script.do("step", times=-(-len(script.asked[1][0]) // script.chunk) + pick.one_of(1, 9))
        script.add(script.prompt(length + pick.size(1, 3), 8, start), 8)
        script.do("fail", after=0, at=pick.one_of("use", "call"))
    if pick.one_of(True, True, False):
        script.shorten(pick.size(0, 2))


@told(
    "outputs", "ends", "pages", prefix_caching=[True], page_sizes=[1, 2, 3], chunks=[64], failing_models=[True], **PLAIN
)
def failing_when_pages_change_hands(script: Script) -> None:
    """A prompt that was served; another that needs all pages, whose first step fails; and when it is served, one that begins as
    the first did."""
    pick, size = script.pick, script.size
    tokens = script.prompt(size * pick.size(1, 3) + 1, 2)
    script.add(tokens, 2)
    script.do("step", times=4)
    script.add(script.prompt(len(tokens) + size + pick.size(1, 2), 1), 1)
    for _ in range(pick.size(1, 2)):
        script.do("fail", after=0, at=pick.one_of("call", "end", "use"))
    script.do("step", times=4)
    script.add(script.prompt(len(tokens) + pick.size(0, 2), 2, tokens[:-1]), 2)
    script.shorten()


@told("outputs", "ends", "pages", page_sizes=[1, 2, 3], chunks=[64], failing_models=[True])
def failing_in_short_pools(script: Script) -> None:
    """Requests that grow until there are no pages left, and steps in which the model fails, some of them when one has to give way."""
    outgrow(script)
    for _ in range(script.pick.size(4, 6)):
        script.do("fail", after=0, at=script.pick.one_of("call", "end", "use"))
        script.do("step")


@told("outputs", "ends", failing_models=[True], **PLAIN)
def failing_again_and_again(script: Script) -> None:
    """Many steps in a row in which the model fails, in the midst of a prompt or of an output."""
    pick = script.pick
    for _ in range(pick.size(1, 2)):
        script.add(script.prompt(pick.size(1, 6), 4), 4)
    script.between(3)
    for _ in range(pick.one_of(9, 12)):
        script.do("fail", after=0)


@told("outputs", "stream", "ends", "pages", failing_models=[True])
def failing_calls(script: Script) -> None:
    """Steps in which the model fails at one of its calls, before it or when all is computed: not the first where an engine
    makes one for each request."""
    pick = script.pick
    for _ in range(pick.size(2, 4)):
        limit = pick.one_of(6, 9)
        script.add(script.prompt(pick.size(1, 6), limit), limit)
    for _ in range(pick.size(1, 3)):
        script.between(4)
        script.do("fail", after=pick.one_of(1, 0, 2), at=pick.one_of("call", "end"))


@told("outputs", "latest", logits=["told"], failing_models=[True])
def failing_when_others_come(script: Script) -> None:
    """Steps in which the model fails while requests generate: with those beside them that were there, and with new ones,
    whose prompts are computed in the same step."""
    pick = script.pick
    for _ in range(pick.size(1, 2)):
        script.add(script.prompt(pick.size(1, 6), 9), 9)
    for _ in range(pick.size(1, 2)):
        script.do("step", times=pick.size(2, 3))
        if pick.one_of(True, False):
            script.add(script.prompt(pick.size(1, 4), 3), 3)
        script.do("fail", after=pick.one_of(0, 1, 2, 5), at=pick.one_of("use", "call"))


@told("outputs", "stream", "ends", failing_models=[True])
def failing_differently(script: Script) -> None:
    """Steps in which the model fails with an error that engines may know from lists, dicts and queues of their own, and
    steps in which the draft does."""
    pick = script.pick
    for _ in range(pick.size(1, 2)):
        script.add(script.prompt(pick.size(1, 4), 6), 6)
    for draft in (False, True, True) if script.draft else (False, False):
        error = pick.one_of("IndexError", "KeyError", "ValueError", "RuntimeError")
        script.do("fail", after=pick.one_of(1, 0, 2) if draft else 0, error=error, draft=draft)
        script.between(1)


@told("outputs", "ends", "pages", failing_models=[True])
def failing_runs(script: Script) -> None:
    """Runs in which the model fails, at one of its uses or calls, when some requests may have ended; and another run."""
    pick = script.pick
    for _ in range(pick.size(1, 3)):
        limit = pick.one_of(6, 2, 1)
        script.add(script.prompt(pick.size(1, 6), limit), limit)
    for _ in range(pick.size(1, 2)):
        script.between(2)
        script.do("fail", after=pick.one_of(1, 0, 2, 5, 8), run=True, at=pick.one_of("call", "use", "end"))
    script.do("run")


@told("order", "outputs", priorities=[True], failing_models=[True], **PLAIN)
def queues_and_failures(script: Script) -> None:
    """Requests of some priorities that are served one at a time, and steps in which the model fails, the first one or later."""
    pick = script.pick
    script.max_requests = 1
    for _ in range(pick.size(3, 5)):
        limit = pick.one_of(2, 3, 1)
        script.add(script.prompt(pick.size(1, 4), limit), limit, priority=pick.one_of(0, 0, 1, -1))
    for _ in range(pick.size(1, 2)):
        script.do("fail", after=0, at=pick.one_of("use", "call"))
        script.between(3)


@told("outputs", "steps", cancelling=[True], **PLAIN)
def many_that_some_leave(script: Script) -> None:
    """More requests than may run at a time, some of which are cancelled while they wait or as they run."""
    pick = script.pick
    left = _many(script)
    for _ in range(pick.size(1, 2)):
        script.do("step", times=pick.size(1, 2))
        script.cancel(left.pop(pick.one_of(-1, 0)))


@told("outputs", "steps", **PLAIN)
def many_and_a_refusal(script: Script) -> None:
    """More requests than may run at a time, before or behind which one without tokens is refused."""
    if early := script.pick.one_of(True, False):
        script.do("add", tokens=(), max_tokens=3)
    _many(script)
    if not early:
        script.do("add", tokens=(), max_tokens=3)


@told("outputs", "steps", failing_models=[True], **PLAIN)
def many_and_failures(script: Script) -> None:
    """More requests than may run at a time, and steps in which the model fails."""
    _many(script)
    for _ in range(script.pick.size(1, 2)):
        script.between(2)
        script.do("fail", after=0, at=script.pick.one_of("use", "call"))


def _many(script: Script) -> list[int]:
    """More requests than may run at a time, by three at least."""
    script.max_requests = script.pick.one_of(2, 1, 3)
    prompts = [script.prompt(length, 9) for length in (1, 3, 2)]
    return [script.add(prompts[number % 3], 9) for number in range(script.max_requests + 3)]


@told("outputs", "ends", stops=[True], failing_models=[True])
def stopping_after_failures(script: Script) -> None:
    """Requests that ids end, after steps in which the model failed."""
    pick = script.pick
    for _ in range(pick.size(1, 2)):
        _stopping_late(script)
    for _ in range(pick.size(1, 2)):
        script.between(2)
        script.do("fail", after=0, at=pick.one_of("use", "call", "end"))


@told("outputs", "ends", stops=[True], cancelling=[True], **PLAIN)
def stopping_when_others_leave(script: Script) -> None:
    """Requests of which each is ended by other ids, one of which is cancelled as they run."""
    _working(script, _stopping_late)


@told("outputs", "ends", cancelling=[True], **PLAIN)
def cancelling_at_work(script: Script) -> None:
    """Requests that come one by one and generate together; one of them is cancelled, and not the last."""
    _working(script, lambda script: script.add(script.prompt(script.pick.size(1, 4), 9), 9))
    script.do("step")


def _working(script: Script, add: Callable[[Script], int]) -> None:
    pick = script.pick
    script.max_requests = 8
    for _ in range(pick.size(2, 3)):
        number = add(script)
        script.do("step", times=-(-len(script.asked[number][0]) // script.chunk))
    script.cancel(pick.one_of(*list(script.asked)[:-1]))


def _stopping_late(script: Script) -> int:
    """A request that one of its last ids ends."""
    tokens = script.prompt(script.pick.size(1, 6), 9)
    ids = script.way(tokens, 9)
    return script.add(tokens, 9, eos=(ids[script.pick.one_of(6, 5, 7)],))
