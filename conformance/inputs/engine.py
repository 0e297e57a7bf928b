"""Stories of engines for the suites: requests of all lengths, few and many, in pools that are large or short."""

from __future__ import annotations

from inferspec.conformance.calls import Call
from inferspec.conformance.envelope import Envelope, narrow
from inferspec.conformance.inputs.engine_models import (
    TRAINED,
    counting,
    high,
    is_clear,
    is_close,
    lengthy,
    model,
    of_positions,
    paired,
    repeating,
    trained,
    twin,
)
from inferspec.conformance.inputs.engine_script import (
    COMMON_CHUNKS,
    COMMON_PAGES,
    PLAIN,
    WHOLE,
    Script,
    calls,
    outgrow,
    told,
)
from inferspec.conformance.strategies import Pick
from inferspec.spec.engine_model import pages_of


@told()
def crowds(script: Script) -> None:
    """Requests of different lengths, together or one after the other. The longest may come to the model's last position."""
    script.requests()
    if script.pick.one_of(False, True):
        positions = max(len(tokens) + limit for tokens, limit in script.asked.values())
        script.guesses = 5
        same = script.draft is script.model
        script.model = of_positions(script.model, positions)
        script.draft = script.model if same else script.draft


@calls
def of_twins(pick: Pick) -> tuple[Call, Call]:
    """The same requests of two models that have the same config."""
    script = Script(pick)
    one, other = script.model, twin(script.kind, script.which)
    for _ in range(pick.size(1, 2)):
        limit = pick.one_of(3, 5)
        tokens = script.prompt(pick.size(3, 12), limit)
        while not is_clear(other, tokens, limit):
            tokens = script.prompt(len(tokens), limit)
        script.add(tokens, limit)
    calls = []
    for script.model in (one, other):
        calls.append(script.call())
    return calls[0], calls[1]


@told()
def full_houses(script: Script) -> None:
    """As many requests as may run, all at once: more rows in a step than four."""
    script.max_requests = script.pick.one_of(8, 6, 7)
    for _ in range(script.max_requests):
        limit = int(script.random.integers(3, 6))
        script.add(script.prompt(int(script.random.integers(1, 5)), limit), limit)


@told(chunks=[64])
def large_houses(script: Script) -> None:
    """Many requests that run at once, of few kinds: more rows in a step than 64."""
    asked = [(script.prompt(int(script.random.integers(1, 4)), limit), limit) for limit in (4, 5, 6, 5) * 4]
    script.max_requests = script.pick.one_of(70, 66, 67)
    for _ in range(script.max_requests):
        script.add(*asked[script.random.integers(len(asked))])


@told(page_sizes=[1], chunks=[2048], **PLAIN)
def masses(script: Script) -> None:
    """Hundreds of requests that run at once, of few kinds, and begin as one does that came before them."""
    pick = script.pick
    script.model = lengthy(script.kind, script.which)
    start = script.ids(2 * script.size if script.caching else 2)
    asked = [
        (script.prompt(len(start) + script.lead + own, limit, start), limit)
        for own, limit in ((1, 2), (2, 4), (1, 3), (3, 2))
    ]
    script.add(*asked[0])
    script.do("step")
    script.max_requests = pick.one_of(262, 70, 134)
    for _ in range(script.max_requests - 1):
        script.add(*asked[script.random.integers(len(asked))])
    if script.caching:
        # Enough for all prompts and an id of each: then those who go on need the pages of those who have ended.
        own = [len(tokens) - len(start) for tokens, _ in script.asked.values()]
        script.pages = pages_of(len(start), script.size) + sum(pages_of(n + 1, script.size) for n in own)
        script.pages += 4 if script.lead else 20


@told(page_sizes=COMMON_PAGES, chunks=COMMON_CHUNKS, **PLAIN)
def of_servers(script: Script) -> None:
    """Chunks and pages of servers, a prompt of hundreds of tokens or a thousand, and one that begins as it does."""
    _of_servers(script, script.pick.one_of(1150, 512, 600))


@told(page_sizes=[64, 256], chunks=COMMON_CHUNKS, **PLAIN)
def large_pages(script: Script) -> None:
    """Pages of servers, a prompt that fills one and more, and one that begins as it does."""
    _of_servers(script, script.size + script.pick.one_of(40, 0, 7))


def _of_servers(script: Script, length: int) -> None:
    script.model = lengthy(script.kind, script.which)
    tokens = script.prompt(length, 5)
    script.add(tokens, 5)
    script.between(3)
    common = tokens[: length // 2]
    script.add(script.prompt(len(common) + 3, 4, common), 4)


@told(**PLAIN)
def as_trained(script: Script) -> None:
    """Requests of a model that has as many layers, and heads as many and as large, as trained ones."""
    narrow(script.pick.envelope, {"head_dims": ["free"]})
    script.model = trained(script.kind, script.pick.one_of(*range(len(TRAINED))))
    script.requests(2, 3)


@told(**PLAIN)
def high_ids(script: Script) -> None:
    """A request that gives ids past 16 bits."""
    script.model = high(script.kind)
    script.add(script.prompt(script.pick.size(1, 5), 5), 5)


@told(**PLAIN)
def close_pairs(script: Script) -> None:
    """Requests whose ids are told from others by so little that 16 bits do not hold it."""
    same = script.draft is script.model
    script.model = paired(script.kind, script.which)
    script.draft = script.model if same else script.draft
    for _ in range(script.pick.size(1, 3)):
        limit = script.pick.one_of(4, 3, 5)
        script.add(script.prompt(script.pick.size(1, 9), limit, way=is_close), limit)


@told()
def lone(script: Script) -> None:
    """One request."""
    limit = script.pick.one_of(4, 3, 2, 6, 9)
    script.add(script.prompt(script.length(), limit), limit)


@told()
def long_requests(script: Script) -> None:
    """A request of more tokens, and pages, than tables and buffers may have been made for; perhaps others beside it."""
    pick = script.pick
    length, limit = pick.one_of((150, 4), (12, 40), (270, 3), (100, 36))
    script.add(script.prompt(length, limit), limit)
    for _ in range(pick.size(0, 2)):
        script.between()
        script.add(script.prompt(pick.size(1, 9), 4), 4)


@told(page_sizes=[3, 16, 8], **PLAIN)
def hundreds_of_ids(script: Script) -> None:
    """A request that gives hundreds of ids."""
    pick = script.pick
    script.model = counting(script.kind, script.which)
    limit = pick.one_of(270, 70, 135)
    script.add(script.prompt(pick.size(2, 9), limit), limit)


@told(page_sizes=[3, 16, 8], **PLAIN)
def the_same_id_again(script: Script) -> None:
    """A request that gives one id over and over."""
    pick = script.pick
    script.model = repeating(script.kind, script.which)
    limit = pick.one_of(40, 70)
    script.add(script.prompt(pick.size(2, 9), limit), limit)


@told(page_sizes=[1], chunks=[64, 7], **PLAIN)
def many_pages(script: Script) -> None:
    """A request of more pages than a byte can number; perhaps another beside it."""
    pick = script.pick
    script.model = lengthy(script.kind, script.which)
    length, limit = pick.one_of((530, 8), (300, 12), (350, 6))
    script.add(script.prompt(2 * length if script.lead else length, limit), limit)
    if pick.one_of(False, True):
        script.add(script.prompt(pick.size(1, 9), 4), 4)


@told()
def short_pools(script: Script) -> None:
    """Requests that grow until there are no pages left."""
    outgrow(script)


@told(page_sizes=[1], chunks=[64], priorities=[True], **PLAIN)
def preempted_again_and_again(script: Script) -> None:
    """A request that has to give way a dozen times: to ones of a larger priority that come one by one and need all pages."""
    pick = script.pick
    script.model = lengthy(script.kind, script.which)
    # A large page for it, and one for the others' prompts; or small ones, of which it has two more each time.
    script.max_requests, script.pages, most = (2, 2, script.size) if script.lead else (2, 28, 24)
    script.add(script.prompt(1, most), most)
    for number in range(12):
        length = most - 2 * number + pick.one_of(0, 1, -1)
        if script.lead:
            length = script.size
        limit = script.pages * script.size - max(length, 1) + 1
        script.add(script.prompt(length, limit), limit, priority=1)
        script.do("step", times=limit if script.lead else limit + 1)


@told()
def crowded_out(script: Script) -> None:
    """A request that holds most pages; behind it short ones, for which there is room, and long ones, that must wait."""
    pick = script.pick
    script.max_requests = pick.one_of(8, 4, 3)
    limit = pick.one_of(6, 8, 5)
    length = min(script.size, 8) * pick.size(3, 5)
    script.add(script.prompt(length, limit), limit)
    script.do("step", times=-(-length // script.chunk) + pick.size(0, 2))
    short = pick.one_of(True, True, False)
    for _ in range(pick.size(2, 4)):
        limit = pick.one_of(3, 2, 5)
        script.add(script.prompt(1 if short else length, limit), limit)
        short = not short
    script.shorten(pick.size(0, 1))


@told()
def recycled(script: Script) -> None:
    """A prompt, served or cancelled once it is computed, others that take its pages, and the prompt again."""
    pick = script.pick
    limit = pick.one_of(2, 3)
    length = script.page(6) * pick.size(1, 3) + pick.one_of(1, 0)
    first = script.prompt(length, limit)
    number = script.add(first, limit)
    if pick.one_of(False, True):
        script.do("step", times=-(-len(first) // script.chunk))
        script.cancel(number)
    else:
        script.do("step", times=40)
    for _ in range(pick.size(1, 3)):
        common = script.pick.one_of(0, 0, min(script.size, length - 1))
        script.add(script.prompt(length + pick.size(0, 2), limit, first[:common]), limit)
        script.between(40)
    script.add(first, limit)
    script.shorten(pick.size(0, 2))


@told("outputs", "ends", "pages", pages=["told"])
def tight(script: Script) -> None:
    """A request that takes all pages to the last slot, perhaps after or beside another."""
    pick = script.pick
    limit = pick.one_of(4, 1, 2, 6)
    script.pages = max(pick.size(1, 3), pages_of(limit, script.size))
    length = max(script.pages * script.size - limit + script.slotless, 1)
    if pick.one_of(False, True):
        script.add(script.prompt(pick.size(1, min(length, 4)), 1), 1)
        script.between(3)
    script.add(script.prompt(length, limit), limit)
    if pick.one_of(False, True):
        script.add(script.prompt(pick.size(1, min(length, 4)), limit), limit)


@told("outputs", "metrics", metrics=["told"])
def timed(script: Script) -> None:
    """Requests that come and go while the clock stands still in every step."""
    pick = script.pick
    for _ in range(pick.size(2, 4)):
        limit = pick.one_of(3, 1, 5, 2, 4)
        tokens = script.prompt(script.length(), limit)
        stop = script.way(tokens, limit)[limit // 2]
        eos = pick.one_of((), (), (stop,)) if True in pick.envelope["stops"] else ()
        script.add(tokens, limit, eos=eos)
        script.between(3)
    if pick.one_of(False, False, True):
        script.shorten(pick.size(0, 2))


@told("outputs", "metrics", metrics=["told"])
def timed_in_short_pools(script: Script) -> None:
    """Requests that are preempted while they generate, by a clock that stands still in every step."""
    outgrow(script)


@told("outputs", "computing", metrics=["told"], **PLAIN)
def timed_runs(script: Script) -> None:
    """Requests that are served by a run, under a clock that goes on when the model is used; twice before that, as many of the
    same lengths are served by steps: an engine that replays a step which it has captured uses the model unseen."""
    pick = script.pick
    asked = [(pick.size(1, 6), pick.one_of(5, 4, 7)) for _ in range(pick.size(1, 3))]
    for serve in ({"times": 40}, {"times": 40}, None):
        for length, limit in asked:
            script.add(script.prompt(length, limit), limit)
        script.do("step" if serve else "run", **(serve or {}))


@told("outputs", "identities", metrics=["told"])
def ticking(script: Script) -> None:
    """Requests under a clock that goes on with every look at it."""
    script.ticking = True
    script.requests(1, 4, (4, 1, 2, 6))
    if script.pick.one_of(False, True):
        script.do("run")


@told("outputs", "ends", **PLAIN)
def long_runs(script: Script) -> None:
    """Hundreds of requests that one run serves, one at a time."""
    script.max_requests = 1
    tokens = script.prompt(1, 1)
    for _ in range(script.pick.one_of(270, 70, 140)):
        script.add(tokens, 1)
    script.do("run")
    script.pages = 16


@told("outputs", "ends")
def running(script: Script) -> None:
    """Requests that are run to their end, some of them begun or finished before, and more after that; perhaps there is a
    step, or a run, before there is anything to do."""
    pick = script.pick
    if pick.one_of(False, True):
        script.do(pick.one_of("run", "step"))
    script.requests(1, 3, (3, 1, 5))
    if True in pick.envelope["stops"] and pick.one_of(True, False):
        tokens = script.prompt(script.length(), 3)
        script.add(tokens, 3, eos=(script.way(tokens, 3)[pick.one_of(0, 1)],))
    if pick.one_of(False, True):
        number = script.add(script.prompt(pick.size(1, 9), 6), 6)
        script.cancel(number)
    script.between(12)
    script.do("run")
    script.between(2)
    if pick.one_of(False, True):
        script.add(script.prompt(script.length(), 3), 3)
        script.between(2)
        script.do("run")
    script.do("step")


@told(*WHOLE)
def overwriting(script: Script) -> None:
    """The caller changes the list of tokens that it gave."""
    pick = script.pick
    for _ in range(pick.size(1, 3)):
        number = script.add(script.prompt(pick.size(1, 12), 4), 4)
        script.between(2)
        script.do("overwrite", request=number)
        script.between(2)
    script.add(script.asked[1][0], 4)
    if pick.one_of(False, True):
        script.do("run", overwrite=True)


@told("outputs", "kept")
def keeping(script: Script) -> None:
    """What the engine gave out is kept while it goes on: by steps, in a run, and once nothing is left."""
    pick = script.pick
    script.requests(1, 3, (5, 3, 8, 1))
    script.do("step", times=pick.size(1, 4))
    for _ in range(pick.size(0, 2)):
        script.do("run")
        script.add(script.prompt(pick.size(1, 6), 3), 3)
        script.between(2)


@told(page_sizes=[1, 2], chunks=[64], **PLAIN)
def overwriting_in_short_pools(script: Script) -> None:
    """The caller changes the lists of tokens that it gave of requests that are preempted later."""
    pick = script.pick
    script.max_requests = 3
    for _ in range(pick.size(2, 3)):
        number = script.add(script.prompt(script.lead + pick.size(1, 3), 7), 7)
        script.between(1)
        script.do("overwrite", request=number)
    script.shorten(pick.size(0, 1))


@told(*WHOLE)
def side_by_side(script: Script) -> None:
    """Two engines on one model, whose requests are served in turn."""
    pick = script.pick
    start = script.ids(script.page() + 1)
    for index in range(pick.size(2, 4)):
        limit = pick.one_of(3, 2, 5)
        tokens = script.prompt(len(start) + pick.size(0, 6), limit, start)
        script.add(tokens, limit, engine=index % 2)
        if pick.one_of(False, True):
            script.do("step", times=pick.size(1, 4), engine=pick.one_of(0, 1) if index else 0)


@told(*WHOLE, cancelling=[True])
def left_side_by_side(script: Script) -> None:
    """Two engines on one model, which have the same number of requests each; some of one of them are cancelled."""
    pick = script.pick
    for index in range(2 * pick.size(1, 2)):
        script.add(script.prompt(pick.size(1, 6), 4), 4, engine=index % 2)
    for number in pick.one_of((1,), (2,), tuple(script.asked)[::2]):
        if times := pick.size(0, 2):
            script.do("step", times=times, engine=pick.one_of(0, 1))
        script.cancel(number)


@told("outputs", "stream", "ends", "metrics", metrics=["told"], **PLAIN)
def served_side_by_side(script: Script) -> None:
    """Two engines on one model, which have the same number of requests each and come on at different times. Those of one are
    ended by ids, some of which those of the other give."""
    pick, limit = script.pick, 6
    stops = pick.one_of(0, 1) if True in pick.envelope["stops"] else None
    for number in range(pick.size(1, 2)):
        pair = [script.prompt(pick.size(1, 6), limit) for _ in range(2)]
        ways = [script.way(tokens, limit) for tokens in pair]
        for engine in range(2):
            own, other = ways[engine], ways[1 - engine]
            ends = (own[pick.one_of(4, 3)], *(token for token in other[3:5] if token not in own))
            script.add(pair[engine], limit, eos=ends if engine == stops else (), engine=engine)
            script.do("step", times=pick.size(1, 2), engine=pick.one_of(0, 1) if engine or number else 0)


@told(*WHOLE, **PLAIN)
def sized_side_by_side(script: Script) -> None:
    """Two engines on one model, the second of other pages and chunks; it is made while two requests of the first generate."""
    pick, limit, script.max_requests = script.pick, 7, 3
    size, chunk = (
        pick.one_of(*[one for one in pick.envelope[key] if one != own] or [own])
        for key, own in (("page_sizes", script.size), ("chunks", script.chunk))
    )
    for _ in range(2):
        number = script.add(script.prompt(min(script.size, 8) + pick.size(1, 5), limit), limit)
        script.do("step", times=-(-len(script.asked[number][0]) // script.chunk))
    for engine in (1, 0)[: pick.size(1, 2)]:
        sizes = {"sizes": {"page_size": size, "max_prefill_tokens": chunk}} if engine else {}
        script.add(script.prompt(script.length(), limit), limit, engine=engine, **sizes)
        script.do("step", times=pick.size(1, 2), engine=pick.one_of(0, 1))
    # Room for all of them in the smaller pages.
    slots = [len(tokens) + limit for tokens, limit in script.asked.values()]
    script.pages = sum(pages_of(n, min(size, script.size)) for n in slots) + 3


@told("outputs", "steps", priorities=[True], **PLAIN)
def ranked_side_by_side(script: Script) -> None:
    """Requests of different priorities that are served one at a time, and as many of another engine, whose priorities are in
    another order."""
    script.max_requests = 1
    ranks = [int(rank) for rank in script.random.permutation(script.pick.size(2, 4))]
    for engine, order in ((0, ranks), (1, ranks[::-1])):
        for rank in order:
            script.add(script.prompt(script.pick.size(1, 4), 2), 2, priority=rank, engine=engine)


@told("outputs", "steps", prefix_caching=[False], chunks=[1, 3, 7, 20, 64], **PLAIN)
def budgets(script: Script) -> None:
    """Requests that all come at once and have nothing in common; where a step may compute much, a prompt of more."""
    script.max_requests = script.pick.one_of(8, 3, 2)
    if script.chunk > 7:
        script.add(script.prompt(script.chunk + script.pick.size(1, 6), 2), 2)
    for _ in range(script.pick.size(1, 4)):
        script.add(script.prompt(script.length(), 2), 2)


@told("outputs", "steps")
def many(script: Script) -> None:
    """More requests than may run at a time."""
    script.max_requests = script.pick.one_of(2, 1, 3)
    for _ in range(script.max_requests + script.pick.size(1, 2)):
        script.add(script.prompt(script.pick.size(1, 6), 9), 9)


@told("outputs", "steps")
def many_beside_another(script: Script) -> None:
    """More requests than may run at a time, and one of another engine, of which more may."""
    pick = script.pick
    script.max_requests = pick.one_of(2, 1, 3)
    script.add(script.prompt(pick.size(1, 6), 3), 3, engine=1)
    for _ in range(script.max_requests + pick.size(1, 2)):
        script.add(script.prompt(pick.size(1, 6), 9), 9)


@told("outputs", "logits", logits=["told"])
def telling(script: Script) -> None:
    """Requests whose last logits are looked at."""
    script.requests(1, 4, (4, 2, 3, 1))
    if script.pick.one_of(False, False, True):
        script.shorten(script.pick.size(0, 2))


@told("outputs", "logits", logits=["told"], prefix_caching=[False], chunks=[64], **PLAIN)
def unhurried(script: Script) -> None:
    """Requests whose prompts a step has room for together, in a pool for all: none is cut in pieces, none preempted."""
    for _ in range(script.pick.size(1, 4)):
        limit = script.pick.one_of(4, 2, 3, 1)
        script.add(script.prompt(script.pick.size(1, 14), limit), limit)
        script.between()


_LLAMA = model("llama", 0)

EXAMPLES = {
    "Engine": Call(
        "Engine",
        {
            # A subject may have one of both models alone.
            "model": {**model("qwen3", 0), "instead": _LLAMA},
            "draft": None,
            "num_pages": 4,
            "page_size": 2,
            "max_requests": 2,
            "max_prefill_tokens": 8,
            "prefix_caching": True,
            "num_draft_tokens": 1,
            "steps": (("add", {"tokens": (1, 2, 3), "max_tokens": 2}), ("step", {})),
            "seen": ("outputs",),
            "ticking": False,
        },
    )
}
"""The plainest call of each operation."""


def _filling(envelope: Envelope) -> Call:
    """A request that fills the pool but for one slot, which its first id takes: its last id has none."""
    size = envelope["page_sizes"][0]
    count = 4 if size < 8 else 1
    tokens = tuple(1 + i % 7 for i in range(count * size - 1))
    step = {"tokens": tokens, "max_tokens": 2}
    return EXAMPLES["Engine"].having(num_pages=count, page_size=size, steps=(("add", step),))


def _of_no_ids(envelope: Envelope) -> Call:
    """A request that asks for no id."""
    size = envelope["page_sizes"][0]
    return EXAMPLES["Engine"].having(page_size=size, steps=(("add", {"tokens": (1, 2, 3), "max_tokens": 0}),))


OPTIONAL = {"Engine": {"last_id_takes_slot": {False: _filling}, "zero_max_tokens": {True: _of_no_ids}}}
"""Choices that may be refused, by their key, each with what makes a call of an envelope that asks for it and for nothing else
that is rare."""

ORDINARY = {"Engine": crowds}
"""The widest calls of each operation."""
