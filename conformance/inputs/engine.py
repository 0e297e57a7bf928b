"""Stories of engines for the suites: requests of all lengths, that share beginnings or not, in pools that are large or short."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from inferspec.conformance.calls import Call
from inferspec.conformance.inputs.engine_models import (
    NARROW,
    POSITIONS,
    TRAINED,
    WIDE,
    counting,
    high,
    is_clear,
    lengthy,
    model,
    near,
    of_positions,
    other,
    stands_out,
    trained,
    twin,
    wide,
)
from inferspec.conformance.strategies import Calls, Pick
from inferspec.spec.engine import alone
from inferspec.spec.engine_model import forward, pages_of

TRIES, OF_ONE_LENGTH = 2000, 400
"""Prompts that are drawn until one is clear, and how many of them before longer ones are drawn."""

SMALL = {"page_sizes": [1, 2, 3, 8, 16], "chunks": [64, 1, 3, 7]}
"""Pages and chunks at which a few tokens make several; those of stories that ask for no others."""

COMMON_PAGES, COMMON_CHUNKS = [16, 32, 64, 256], [512, 2048]
"""Those of servers."""

Ids = tuple[int, ...]


class Stories(Calls):
    """Calls of small pages and chunks, where neither other ones are asked for nor the subject claims none of these."""

    def within(self, envelope: Mapping[str, Any]) -> Callable[[bytes], Any]:
        small = {key: choices for key, choices in SMALL.items() if set(choices) & set(envelope[key])}
        return Calls(self._build, {**small, **self._asked}, self._options).within(envelope)


class Script:
    """A story being written. spare: pages beyond what all requests together need; short: those beyond what the largest
    request needs, and no more."""

    def __init__(self, pick: Pick, seen: Sequence[str] = ("outputs",), requests: Sequence[int] = (3, 2, 8, 4)) -> None:
        # An engine without pages of its own is asked for none.
        self.seen = tuple(name for name in seen if name != "pages" or "told" in pick.envelope["pages"])
        self.pick = pick
        family, self.which = pick("models"), pick.one_of(0, 1, 2)
        which = self.which
        self.model = model(family, which)
        self.draft = {
            "none": None,
            "perfect": self.model,
            "near": near(family, which),
            "other": other(family, which),
        }[pick("drafts")]
        self.size, self.chunk, self.caching = pick("page_sizes"), pick("chunks"), pick("prefix_caching")
        self.max_requests = pick.one_of(*requests)
        self.guesses = pick.one_of(3, 1, 2, 5)
        self.steps: list[tuple[str, dict[str, Any]]] = []
        self.pages, self.ticking = 0, False
        self.random = np.random.default_rng(pick.seed)
        self.asked: dict[int, tuple[Ids, int]] = {}

    @property
    def vocabulary(self) -> int:
        return int(self.model["config"]["vocab_size"])

    def call(self) -> Call:
        asked = [given for step, given in self.steps if step == "add"]
        for key, argument in (("stops", "eos"), ("priorities", "priority")):
            self.pick.features[key] = any(given.get(argument) for given in asked)
        needs = [self.need(len(tokens), limit) for tokens, limit in self.asked.values()]
        return self.pick.call(
            "Engine",
            model=self.model,
            draft=self.draft,
            num_pages=self.pages or sum(needs) + 3,
            page_size=self.size,
            max_requests=self.max_requests,
            max_prefill_tokens=self.chunk,
            prefix_caching=self.caching,
            num_draft_tokens=self.guesses,
            steps=tuple(self.steps),
            seen=self.seen,
            ticking=self.ticking,
        )

    def need(self, prompt: int, limit: int) -> int:
        """Pages of a request at its end."""
        return pages_of(max(prompt + limit - 1, 1), self.size)

    def shorten(self, spare: int = 0) -> None:
        """A pool for the largest request alone, and so many pages more."""
        self.pages = max(self.need(len(tokens), limit) for tokens, limit in self.asked.values()) + spare

    # tokens

    def ids(self, n: int) -> Ids:
        return tuple(int(x) for x in self.random.integers(0, self.vocabulary, n))

    def prompt(self, length: int, limit: int, start: Ids = ()) -> Ids:
        """A prompt that begins with `start`, and on whose way no id is nearly another."""
        for number in range(1, TRIES + 1):
            tokens = (*start, *self.ids(length - len(start)))[: max(length, 1)]
            if is_clear(self.model, tokens, limit):
                return tokens
            # There are not many short prompts: perhaps none of them is clear for so long.
            if len(tokens) <= len(start) or number % OF_ONE_LENGTH == 0:
                length += 1
        raise AssertionError(f"no prompt of {length} tokens is clear for {limit} ids")

    def way(self, tokens: Ids, limit: int) -> list[int]:
        """What the request decodes to."""
        return alone(self.model, tokens, limit)[0]

    # steps

    def do(self, step: str, /, **arguments: Any) -> int:
        """Add a step; returns its number."""
        self.steps.append((step, arguments))
        return len(self.steps)

    def add(self, tokens: Ids, limit: int, **more: Any) -> int:
        number = self.do("add", tokens=tokens, max_tokens=limit, **more)
        self.asked[number] = tokens, limit
        return number

    def rank(self, *priorities: int) -> int:
        """One of the priorities; 0 where an engine knows none."""
        return self.pick.one_of(*priorities) if True in self.pick.envelope["priorities"] else 0

    def between(self, most: int = 4) -> None:
        """Perhaps some steps before what comes next."""
        if times := self.pick.size(0, most):
            self.do("step", times=times)

    def length(self) -> int:
        """A length: short, or beside a multiple of a page or of a chunk."""
        kind = self.pick.one_of("short", "page", "long", "chunk")
        if kind == "page":
            return max(1, min(self.size, 8) * self.pick.size(1, 3) + self.pick.one_of(0, 1, -1))
        if kind == "chunk":
            return max(1, min(self.chunk, 16) * self.pick.size(1, 2) + self.pick.one_of(0, 1, -1))
        return self.pick.size(1, 6) if kind == "short" else self.pick.size(12, 26)

    def requests(self, low: int = 2, high: int = 4, limits: Sequence[int] = (4, 6, 2, 3, 1, 8), **more: Any) -> None:
        """Some requests, at once or one after the other."""
        together = self.pick.one_of(True, False)
        for _ in range(self.pick.size(low, high)):
            limit = self.pick.count("zero_max_tokens", *limits)
            self.add(self.prompt(self.length(), limit), limit, **more)
            if not together:
                self.between()


def told(*seen: str, **asked: Any) -> Callable[[Callable[[Script], Any]], Calls]:
    """The inputs that a function writes into a script; `seen` is what stories tell, unless a test says otherwise."""

    def decorate(write: Callable[[Script], Any]) -> Calls:
        def build(pick: Pick, seen: Sequence[str] = seen or ("outputs",)) -> Any:
            script = Script(pick, seen)
            number = write(script)
            return script.call() if number is None else (script.call(), number)

        build.__doc__ = write.__doc__
        return Stories(build, asked)

    return decorate


def calls(build: Callable[..., Any]) -> Calls:
    """Make a function of a `Pick` the inputs of tests, with small pages and chunks."""
    return Stories(build)


PLAIN = {"drafts": ["none"]}


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
    one, other = script.model, twin(script.model, script.which)
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
    script.model = lengthy(script.model["family"], script.which)
    start = script.ids(2)
    asked = [(script.prompt(length, limit, start), limit) for length, limit in ((3, 2), (4, 4), (3, 3), (5, 2))]
    script.add(*asked[0])
    script.do("step")
    script.max_requests = pick.one_of(262, 70, 134)
    for _ in range(script.max_requests - 1):
        script.add(*asked[script.random.integers(len(asked))])
    if script.caching:
        # Enough for all prompts and an id of each: then those who go on need the pages of those who have ended.
        prompts = [len(tokens) for tokens, _ in script.asked.values()]
        script.pages = sum(prompts) - len(start) * (len(prompts) - 1) + len(prompts) + 20


@told(page_sizes=COMMON_PAGES, chunks=COMMON_CHUNKS, **PLAIN)
def of_servers(script: Script) -> None:
    """Chunks and pages of servers, a prompt of hundreds of tokens or a thousand, and one that begins as it does."""
    _of_servers(script, script.pick.one_of(1150, 512, 600))


@told(page_sizes=[64, 256], chunks=COMMON_CHUNKS, **PLAIN)
def large_pages(script: Script) -> None:
    """Pages of servers, a prompt that fills one and more, and one that begins as it does."""
    _of_servers(script, script.size + script.pick.one_of(40, 0, 7))


def _of_servers(script: Script, length: int) -> None:
    script.model = lengthy(script.model["family"], script.which)
    tokens = script.prompt(length, 5)
    script.add(tokens, 5)
    script.between(3)
    common = tokens[: length // 2]
    script.add(script.prompt(len(common) + 3, 4, common), 4)


@told(page_sizes=COMMON_PAGES, chunks=COMMON_CHUNKS, drafts=["perfect", "near"])
def guessing_beside_long_prompts(script: Script) -> None:
    """A request that a draft guesses for, and a prompt of hundreds of tokens that is computed in one step with it."""
    pick = script.pick
    perfect = script.draft is script.model
    script.model = lengthy(script.model["family"], script.which)
    script.draft = script.model if perfect else of_positions(near(script.model["family"], script.which), POSITIONS)
    script.chunk = 2048
    script.add(script.prompt(pick.size(1, 5), 9), 9)
    script.do("step", times=pick.size(1, 2))
    script.add(script.prompt(pick.one_of(560, 530, 1100), 2), 2)


@told(**PLAIN)
def as_trained(script: Script) -> None:
    """Requests of a model that has as many layers, and heads as many and as large, as trained ones."""
    script.model = trained(script.model["family"], script.pick.one_of(*range(len(TRAINED))))
    script.requests(2, 3)


@told(**PLAIN)
def high_ids(script: Script) -> None:
    """A request that gives ids past 16 bits."""
    script.model = high(script.model["family"])
    script.add(script.prompt(script.pick.size(1, 5), 5), 5)


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
    script.model = counting(script.model["family"], script.which)
    limit = pick.one_of(270, 70, 135)
    script.add(script.prompt(pick.size(2, 9), limit), limit)


@told(page_sizes=[1], chunks=[64, 7], **PLAIN)
def many_pages(script: Script) -> None:
    """A request of more pages than a byte can number; perhaps another beside it."""
    pick = script.pick
    script.model = lengthy(script.model["family"], script.which)
    length, limit = pick.one_of((530, 8), (300, 12), (350, 6))
    script.add(script.prompt(length, limit), limit)
    if pick.one_of(False, True):
        script.add(script.prompt(pick.size(1, 9), 4), 4)


@told()
def short_pools(script: Script) -> None:
    """Requests that grow until there are no pages left."""
    _outgrow(script)


def _outgrow(script: Script, stops: bool = False) -> None:
    """stops: an id ends some of them."""
    pick = script.pick
    script.max_requests = pick.one_of(3, 4, 8)
    start = script.ids(script.size * 2) if pick.one_of(False, False, True) else ()
    for _ in range(pick.size(2, 4)):
        limit = pick.one_of(6, 4, 9)
        length = len(start) + pick.size(1, 3) + min(script.size, 4) * pick.size(0, 1)
        tokens = script.prompt(length, limit, start)
        eos = (script.way(tokens, limit)[limit - pick.size(1, 2)],) if stops else ()
        script.add(tokens, limit, priority=script.rank(0, 0, 1), eos=eos)
        if pick.one_of(False, True):
            script.between()
    script.shorten(pick.size(0, 2))


@told(page_sizes=[1], chunks=[64], priorities=[True], **PLAIN)
def preempted_again_and_again(script: Script) -> None:
    """A request that has to give way a dozen times: to ones of a larger priority that come one by one and need all pages."""
    pick = script.pick
    script.model = lengthy(script.model["family"], script.which)
    script.pages, script.max_requests, most = 28, 2, 24
    script.add(script.prompt(1, most), most)
    for number in range(12):
        length = most - 2 * number + pick.one_of(0, 1, -1)
        limit = script.pages - max(length, 1) + 1
        script.add(script.prompt(length, limit), limit, priority=1)
        script.do("step", times=limit + 1)


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
def sharing(script: Script) -> None:
    """Prompts that begin alike, at once or while another is served."""
    pick = script.pick
    start = script.ids(min(script.size, 8) * pick.size(1, 3) + pick.one_of(0, 1, -1) + 1)
    for _ in range(pick.size(2, 4)):
        common = pick.size(1, len(start))
        limit = pick.one_of(3, 4, 2)
        script.add(script.prompt(common + pick.size(0, 5), limit, start[:common]), limit)
        script.between(6)


@told(prefix_caching=[True], chunks=[1, 3, 7])
def half_computed(script: Script) -> None:
    """A prompt that is computed in chunks, and perhaps cancelled; meanwhile others ask for the same."""
    _half_computed(script)


@told(prefix_caching=[True], chunks=[1, 3, 7], failing_models=[True])
def failed_prompts(script: Script) -> None:
    """A prompt that is cancelled when one of its chunks has failed; others ask for the same."""
    _half_computed(script, fails=True)


def _half_computed(script: Script, fails: bool = False) -> None:
    pick = script.pick
    limit = pick.one_of(3, 4)
    length = script.chunk * pick.size(1, 3) + min(script.size, 8) * 2 + 1
    first = script.add(script.prompt(length, limit), limit)
    script.do("step", times=pick.size(1, 3))
    if fails:
        script.do("fail", after=pick.one_of(0, 1, 2))
    if fails or pick.one_of(False, True):
        script.do("cancel", request=first)
    for _ in range(pick.size(1, 2)):
        tokens = script.asked[first][0]
        if pick.one_of(False, True):
            tokens = script.prompt(length + pick.size(1, 3), limit, tokens)
        script.add(tokens, limit, priority=script.rank(0, 2))
        script.between(2)


@told(prefix_caching=[True])
def lookalikes(script: Script) -> None:
    """Prompts with whole pages in common, behind other beginnings or in another order."""
    pick, size = script.pick, min(script.size, 8)
    pages = [script.ids(size) for _ in range(2)]
    pages.append(pages[0][::-1])
    for _ in range(pick.size(2, 4)):
        limit = pick.one_of(3, 2, 4)
        tokens = sum((pages[pick.one_of(0, 1, 2)] for _ in range(pick.size(1, 3))), ())
        script.add(script.prompt(len(tokens) + pick.size(1, 3), limit, tokens), limit)
        script.between(40)


@told(prefix_caching=[True], page_sizes=[1, 2, 3, 8], **PLAIN)
def other_beginnings(script: Script) -> None:
    """The same pages behind one first page, then all of them but the last behind another, then all of them behind that."""
    pick = script.pick
    one, other = script.ids(script.size), script.ids(script.size)
    # Or in one place alone, where a key of a page's ends, or of its beginning or its end, does not look.
    alike = pick.one_of("nothing", "all but the middle", "all but the first", "all but the last")
    if script.size > 1 and alike == "all but the first":
        other = ((one[0] + 1) % script.vocabulary, *one[1:])
    elif script.size > 1 and alike == "all but the last":
        other = (*one[:-1], (one[-1] + 1) % script.vocabulary)
    elif script.size > 2 and alike == "all but the middle":
        other = (one[0], *other[1:-1], one[-1])
    same = script.ids(script.size * pick.size(2, 4))
    for start in ((*one, *same), (*other, *same[: -script.size]), (*other, *same)):
        script.add(script.prompt(len(start) + 1, 5, start), 5)
        script.do("step", times=50)


@told(prefix_caching=[True], page_sizes=[1, 2], **PLAIN)
def far_beginnings(script: Script) -> None:
    """Dozens of the same pages before one page and behind it; then most of them, and then all, around another."""
    pick, size = script.pick, script.size
    one, other = script.ids(size), script.ids(size)
    head, tail = (script.ids(size * pages) for pages in (pick.one_of(40, 0, 66), pick.one_of(40, 66, 20)))
    for start in ((*head, *one, *tail), (*head, *other, *tail[: -size * 16]), (*head, *other, *tail)):
        script.add(script.prompt(len(start) + 1, 5, start), 5)
        script.do("step", times=20)


@told(prefix_caching=[True], page_sizes=[1, 2, 3], **PLAIN)
def wide_vocabularies(script: Script) -> None:
    """Prompts whose ids are alike in their low bits, in a vocabulary past what 16 bits hold."""
    pick = script.pick
    script.model = wide(script.model["family"])
    start, place = list(script.ids(script.size * 2)), pick.size(0, script.size * 2 - 1)
    start[place] %= WIDE - NARROW
    for more in (0, pick.one_of(NARROW, 2**8, 2**15)):
        start[place] += more
        script.add(script.prompt(len(start) + 1, 3, tuple(start)), 3)
        script.do("step", times=40)


@told(prefix_caching=[True], page_sizes=[2, 3, 8], **PLAIN)
def alike_in_print(script: Script) -> None:
    """Prompts of which a page has the same digits as another's, or the same value as a number to a small base."""
    pick = script.pick
    start = list(script.ids(script.size))
    place = pick.size(0, script.size - 2)
    if base := pick.one_of(0, 31, 33, 37):
        high, low = pick.size(0, 40), pick.size(base, 46)
        pairs = (high, low), (high + 1, low - base)
    else:
        tens, middle, ones = pick.size(1, 4), pick.size(1, 3), pick.size(0, 6)
        pairs = (tens, 10 * middle + ones), (10 * tens + middle, ones)
    for pair in pairs:
        start[place : place + 2] = pair
        script.add(script.prompt(len(start) + 1, 3, tuple(start)), 3)
        script.do("step", times=40)


@told(prefix_caching=[True], page_sizes=[1, 2, 3], chunks=[64], **PLAIN)
def copies_taken(script: Script) -> None:
    """A prompt twice at once, so that each computes it; when one is served another prompt takes its pages, while the other
    goes on; then what begins like it is asked for."""
    pick, size = script.pick, script.size
    tokens, limit = script.ids(size * 2 + pick.one_of(0, min(1, size - 1))), 6 + 4 * size
    while not is_clear(script.model, tokens, limit):
        tokens = script.ids(len(tokens))
    way = (*tokens, *script.way(tokens, limit))
    script.add(tokens, 2)
    script.add(tokens, limit)
    script.do("step", times=size + 2)
    length = len(tokens) + pick.one_of(0, 1)
    script.add(script.prompt(length, 1), 1)
    script.do("step", times=2)
    common = way[: pick.one_of(size * 3, len(tokens), size * 3)]
    script.add(script.prompt(len(common) + 1, 2, common), 2)
    # The newcomer needs all pages that are free.
    script.pages = script.need(len(tokens), size + 3) + script.need(length, 1) + pick.one_of(0, 0, 1)
    script.pages = max(script.pages, script.need(len(tokens), limit))


@told()
def same_again(script: Script) -> None:
    """The same prompt several times, of whole pages or a token more or less, at once or one after the other, for fewer ids
    or more."""
    pick = script.pick
    length = max(1, min(script.size, 8) * pick.size(1, 3) + pick.one_of(0, 0, 1, -1))
    tokens = script.prompt(length, 4)
    pause = pick.one_of(0, 1, 40, 3)
    for _ in range(pick.size(2, 4)):
        script.add(tokens, pick.one_of(3, 2, 4))
        if pause:
            script.do("step", times=pause)


@told(prefix_caching=[True], page_sizes=[1, 2, 3], **PLAIN)
def twins_in_short_pools(script: Script) -> None:
    """The same prompt several times, until there are no pages left: who is preempted then finds all that it had."""
    pick = script.pick
    limit = pick.one_of(8, 9, 6)
    tokens = script.prompt(pick.size(1, 4), limit)
    script.max_requests = pick.one_of(3, 8)
    for _ in range(pick.size(2, 3)):
        script.add(tokens, limit)
    script.shorten(pick.size(0, 1))


@told()
def recycled(script: Script) -> None:
    """A prompt, served or cancelled once it is computed, others that take its pages, and the prompt again."""
    pick = script.pick
    limit = pick.one_of(2, 3)
    length = min(script.size, 6) * pick.size(1, 3) + pick.one_of(1, 0)
    first = script.prompt(length, limit)
    number = script.add(first, limit)
    if pick.one_of(False, True):
        script.do("step", times=-(-len(first) // script.chunk))
        script.do("cancel", request=number)
    else:
        script.do("step", times=40)
    for _ in range(pick.size(1, 3)):
        common = script.pick.one_of(0, 0, min(script.size, length - 1))
        script.add(script.prompt(length + pick.size(0, 2), limit, first[:common]), limit)
        script.between(40)
    script.add(first, limit)
    script.shorten(pick.size(0, 2))


@told()
def conversations(script: Script) -> None:
    """A request, and one that goes on from what came of it; perhaps a third."""
    pick = script.pick
    tokens: Ids = ()
    for _ in range(pick.size(2, 3)):
        limit = pick.one_of(4, 3, 6)
        tokens = script.prompt(len(tokens) + pick.size(1, 5), limit, tokens)
        script.add(tokens, limit)
        script.do("step", times=40)
        tokens = (*tokens, *script.way(tokens, limit))


@told(prefix_caching=[True], page_sizes=[2, 3], stops=[True])
def conversations_past_ends(script: Script) -> None:
    """A request that an id ends which would be the last of a page, and one that goes on with that id and more."""
    pick, limit = script.pick, 6
    tokens = script.prompt(pick.size(2, 8), limit)
    way = script.way(tokens, limit)
    last_of_a_page = [i for i in range(limit) if not (len(tokens) + i + 1) % script.size and way[i] not in way[:i]]
    at = pick.one_of(*last_of_a_page or [0])
    script.add(tokens, limit, eos=(way[at],))
    script.do("step", times=40)
    tokens = (*tokens, *way[: at + 1])
    limit = pick.one_of(3, 2, 4)
    script.add(script.prompt(len(tokens) + pick.size(1, 4), limit, tokens), limit)


@told(prefix_caching=[True], page_sizes=[2, 3, 1, 4], chunks=[64, 7], **PLAIN)
def interrupted(script: Script) -> None:
    """A request that is cancelled when its last id, which was not computed, fills a page; a prompt goes on from it."""
    pick = script.pick
    length = pick.size(1, 8)
    limit = 2 * script.size + 2
    tokens = script.prompt(length, limit)
    # So many ids that prompt and output end with a page.
    ids = -len(tokens) % script.size or script.size
    request = script.add(tokens, limit)
    script.do("step", times=-(-len(tokens) // script.chunk) + ids - 1)
    script.do("cancel", request=request)
    said = (*tokens, *script.way(tokens, limit)[:ids])
    script.add(script.prompt(len(said) + pick.size(1, 3), 4, said), 4)


@told(prefix_caching=[True], page_sizes=[2, 3, 1], drafts=["other", "near"])
def guesses_asked_for(script: Script) -> None:
    """A request that a draft guesses for, mostly wrongly, and one whose prompt goes on as the draft guessed."""
    pick, limit = script.pick, script.pick.one_of(6, 8)
    tokens = script.prompt(pick.size(2, 8), limit)
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


@told("outputs", "stream")
def limits(script: Script) -> None:
    """Requests that ask for few ids, or none."""
    script.requests(1, 4, (0, 1, 2, 3))


@told("outputs", "stream", "ends", "pages", stops=[True])
def stopping(script: Script) -> None:
    """Requests that an id ends: the first that comes, one in the middle, one that comes at the limit, or none."""
    _stopping(script)


@told("outputs", "stream", "ends", "pages", stops=[True])
def stopping_at_once(script: Script) -> None:
    """Requests whose first id ends them."""
    _stopping(script, first=True)


def _stopping(script: Script, first: bool = False) -> None:
    pick = script.pick
    for _ in range(pick.size(1, 3)):
        limit = pick.one_of(4, 6, 2)
        tokens = script.prompt(script.length(), limit)
        ids = script.way(tokens, limit)
        stop = ids[0 if first else pick.one_of(0, 1, limit - 1, limit // 2)]
        unused = [x for x in range(script.vocabulary) if x not in ids and x != tokens[-1]]
        spare = (unused[0], tokens[0] if tokens[0] not in ids else unused[1])
        eos = pick.one_of((stop,), (spare[0], stop), *([] if first else [spare]))
        script.add(tokens, limit, eos=eos)
        script.between(2)


@told("outputs", "ends", stops=[True])
def stopping_differently(script: Script) -> None:
    """The same prompt several times, which other ids end, or none."""
    pick = script.pick
    tokens = script.prompt(script.length(), 6)
    ids = script.way(tokens, 6)
    last: Ids | None = None
    pause = pick.one_of(0, 40, 2)
    for _ in range(pick.size(2, 4)):
        last = pick.one_of(*(eos for eos in ((ids[3],), (), (ids[1],), (ids[5],)) if eos != last))
        script.add(tokens, 6, eos=last)
        if pause:
            script.do("step", times=pause)


@told(stops=[True], **PLAIN)
def stopping_beside_none(script: Script) -> None:
    """Requests of which some have ids that end them and some have none, which come and leave one by one."""
    pick = script.pick
    script.max_requests = pick.one_of(2, 3)
    last = script.prompt(pick.size(1, 4), 8)
    ways = script.way(last, 8)
    script.add(script.prompt(pick.size(1, 4), 2), 2)
    for _ in range(script.max_requests - 1):
        tokens = script.prompt(pick.size(1, 4), 12)
        # What would end the last request, which has no such id.
        ends = [token for token in ways[1:] if token not in script.way(tokens, 12)]
        script.add(tokens, 12, eos=tuple(ends[:2]) or (ways[1],))
    script.do("step", times=pick.size(3, 4))
    script.add(last, 8)


@told("outputs", "stream", "ends", "pages", stops=[True])
def stopping_in_short_pools(script: Script) -> None:
    """Requests that an id ends, some of which are preempted before it comes."""
    _outgrow(script, stops=True)


@told("outputs", "stream", "ends", "pages", stops=[True])
def stopping_at_one_of_many(script: Script) -> None:
    """A request that any of dozens of ids would end; the one that comes is the first or the last of them, and may be 0."""
    pick = script.pick
    limit, length, zero = pick.one_of(4, 6), pick.size(2, 12), pick.one_of(True, False)
    for _ in range(OF_ONE_LENGTH):
        tokens = script.prompt(length, limit)
        ids = script.way(tokens, limit)
        if not zero or 0 in ids:
            break
    stop = 0 if zero else ids[pick.size(0, limit - 1)]
    unused = tuple(x for x in range(1, script.vocabulary) if x not in ids)[: pick.one_of(40, 0, 17, 3)]
    script.add(tokens, limit, eos=pick.one_of((*unused, stop), (stop, *unused)))


@told("outputs", "ends", stops=[True], **PLAIN)
def high_ends(script: Script) -> None:
    """A request that an id past 16 bits ends, and not one that is alike in its low bits to another that comes before."""
    limit, length = 5, script.pick.size(1, 5)
    script.model = high(script.model["family"])
    for _ in range(OF_ONE_LENGTH):
        tokens = script.prompt(length, limit)
        ids = script.way(tokens, limit)
        past = [i for i in range(limit) if ids[i] >= NARROW and ids[i] not in ids[:i]]
        if len(past) > 1:
            break
    alike = {x - less for x in ids if x >= NARROW for less in (NARROW, 2**8)} - set(ids)
    script.add(tokens, limit, eos=(*sorted(alike), ids[past[-1]]))


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
    ranks = script.pick.one_of((0, 1, 2, -1, 0), (9, 10, -30, 200, 100), (2**24, 2**24 + 1, -300, 2**24 + 1, 2**24))
    for _ in range(script.pick.size(2, 5)):
        limit = script.pick.one_of(2, 1, 3)
        script.add(script.prompt(script.pick.size(1, 5), limit), limit, priority=script.pick.one_of(*ranks))


@told("order", "outputs", priorities=[True], **PLAIN)
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
        script.do("cancel", request=many.pop(pick.size(0, len(many) - 1)))


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
    ranked = [script.prompt(pick.size(1, 3), limit) for _ in range(2)]
    script.pages = max(script.need(len(tokens), limit) for tokens in ranked) + pick.size(0, 1)
    number = script.add(script.prompt(script.pages * script.size, 1), 1, priority=pick.one_of(0, -1, 1))
    for tokens in ranked:
        script.add(tokens, limit, priority=pick.one_of(5, 4, 5))
    return number


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
    """Hundreds of requests that ask for one id, some of them for none, and two that ask for more."""
    script.max_requests = script.pick.one_of(2, 8, 1)
    tokens, none = script.prompt(1, 1), script.pick.count("zero_max_tokens", 0)
    for number in range(script.pick.one_of(300, 70, 140)):
        script.add(tokens, 1 if number % 8 else none)
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


@told("outputs", "cancelled", "pages", "ends")
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
        script.do("cancel", request=left.pop(pick.size(0, len(left) - 1)))
    if pick.one_of(False, True):
        script.shorten(pick.size(0, 2))
    if pick.one_of(False, True):
        script.between(2)
        script.add(script.prompt(script.pick.size(1, 6), 3), 3)


@told("outputs", "cancelled", "pages", "ends", page_sizes=[1, 2, 3], **PLAIN)
def cancelling_in_short_pools(script: Script) -> None:
    """Requests that grow until there are no pages left, of which some are cancelled: as they run, or when they were
    preempted."""
    pick = script.pick
    script.max_requests = pick.one_of(3, 8)
    for _ in range(3):
        script.add(script.prompt(pick.size(1, 3), 9), 9)
    script.do("step", times=pick.size(5, 9))
    script.do("cancel", request=len(script.asked) - pick.one_of(0, 0, 1))
    script.between(1)
    script.add(script.prompt(pick.size(1, 3), 4), 4)
    script.shorten(pick.one_of(0, 0, 1))


@told("outputs", "cancelled", "pages", "ends", **PLAIN)
def cancelling_dozens(script: Script) -> None:
    """Dozens of requests that are cancelled when they have begun, and one that is not."""
    pick, limit = script.pick, 4
    prompts = [script.prompt(length, limit) for length in (5, 1, 9)]
    for _ in range(pick.one_of(20, 40)):
        number = script.add(prompts[script.random.integers(len(prompts))], limit)
        script.do("step")
        script.do("cancel", request=number)
    script.add(prompts[0], limit)


@told("outputs", "pages", "ends", **PLAIN)
def cancelling_again(script: Script) -> None:
    """A request that is cancelled, or finished, and is cancelled again while others have the pages that it had."""
    pick = script.pick
    limit = pick.one_of(5, 5, 2)
    first = script.add(script.prompt(min(script.size, 8) * 2, limit), limit)
    script.do("step", times=-(-min(script.size, 8) * 2 // script.chunk) + pick.size(1, 3))
    script.do("cancel", request=first)
    for _ in range(pick.size(1, 2)):
        script.add(script.prompt(min(script.size, 8) + pick.size(0, 2), 6), 6)
        script.do("step", times=pick.size(1, 3))
        script.do("cancel", request=first)
    for _ in range(pick.size(1, 2)):
        script.add(script.prompt(min(script.size, 8) + pick.size(0, 2), 3), 3)
        script.between(2)
    script.shorten(pick.size(0, 2))


@told("outputs", "ends", prefix_caching=[True])
def cancelling_sharers(script: Script) -> None:
    """Of requests that have pages in common one is cancelled, and another takes what it left."""
    pick = script.pick
    start = script.ids(min(script.size, 8) * pick.size(1, 2) + 1)
    for _ in range(2):
        script.add(script.prompt(len(start) + pick.size(0, 2), 9, start), 9)
        script.do("step", times=-(-len(start) // script.chunk) + pick.size(1, 2))
    script.do("cancel", request=pick.one_of(1, *script.asked))
    # Few enough pages that the newcomers need all that are free.
    for _ in range(2):
        script.add(script.prompt(min(script.size, 8) * 2 + 1, 3), 3)
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
    """Runs in which the model fails, at one of its uses; and another run."""
    pick = script.pick
    for _ in range(pick.size(1, 3)):
        script.add(script.prompt(pick.size(1, 6), 6), 6)
    for _ in range(pick.size(1, 2)):
        script.between(2)
        script.do("fail", after=pick.one_of(1, 0, 2, 5, 8), run=True)
    script.do("run")


def _bad(script: Script, bad: Callable[[Script], dict[str, Any]]) -> int:
    """Requests, one that is to be refused among them; its number."""
    script.requests(0, 2, (3, 2))
    script.pages = sum(script.need(len(tokens), limit) for tokens, limit in script.asked.values()) + 4
    number = script.do("add", **bad(script))
    script.requests(1, 1, (3, 2))
    script.pages += sum(script.need(len(tokens), limit) for tokens, limit in script.asked.values())
    if callable(script.steps[number - 1][1]["tokens"]):
        script.steps[number - 1][1]["tokens"] = script.steps[number - 1][1]["tokens"]()
    return number


WHOLE = ("outputs", "stream", "pages", "ends")


@told(*WHOLE)
def empty_prompts(script: Script) -> int:
    """A story in which a request without tokens is added, and the number of that step."""
    return _bad(script, lambda s: {"tokens": (), "max_tokens": s.pick.one_of(3, 0, 1)})


@told(*WHOLE)
def negative_limits(script: Script) -> int:
    """A story in which fewer than no ids are asked for."""
    return _bad(script, lambda s: {"tokens": s.ids(3), "max_tokens": s.pick.one_of(-1, -5)})


@told(*WHOLE)
def strange_ids(script: Script) -> int:
    """A story in which a prompt has an id outside the vocabulary."""

    def bad(s: Script) -> dict[str, Any]:
        token = s.pick.one_of(s.vocabulary, -1, s.vocabulary + 7, -s.vocabulary)
        place = s.pick.size(0, 3)
        return {"tokens": (*s.ids(place), token, *s.ids(3 - place)), "max_tokens": s.pick.one_of(3, 3, 0)}

    return _bad(script, bad)


@told(*WHOLE, pages=["told"])
def too_large(script: Script) -> int:
    """A story in which a request asks for a token more than all pages together could hold, or for many more."""

    def bad(s: Script) -> dict[str, Any]:
        limit = s.pick.one_of(1, 3, 6)
        more = s.pick.one_of(2, 2, 30)
        return {"tokens": lambda: s.ids(max(s.pages * s.size - limit + more, 1)), "max_tokens": limit}

    return _bad(script, bad)


@told("outputs", "ends", "pages", pages=["told"])
def tight(script: Script) -> None:
    """A request that takes all pages to the last slot, perhaps after or beside another."""
    pick = script.pick
    limit = pick.one_of(4, 1, 2, 6)
    script.pages = max(pick.size(1, 3), pages_of(limit, script.size))
    length = script.pages * script.size - limit + 1
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
    _outgrow(script)


@told("outputs", "identities", metrics=["told"])
def ticking(script: Script) -> None:
    """Requests under a clock that goes on with every look at it."""
    script.ticking = True
    script.requests(1, 4, (4, 0, 1, 2, 6))
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
    script.requests(1, 3, (3, 0, 5))
    if True in pick.envelope["stops"] and pick.one_of(True, False):
        tokens = script.prompt(script.length(), 3)
        script.add(tokens, 3, eos=(script.way(tokens, 3)[pick.one_of(0, 1)],))
    if pick.one_of(False, True):
        number = script.add(script.prompt(pick.size(1, 9), 6), 6)
        script.do("cancel", request=number)
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


@told(page_sizes=[1, 2], chunks=[64], **PLAIN)
def overwriting_in_short_pools(script: Script) -> None:
    """The caller changes the lists of tokens that it gave of requests that are preempted later."""
    pick = script.pick
    script.max_requests = 3
    for _ in range(pick.size(2, 3)):
        number = script.add(script.prompt(pick.size(1, 3), 7), 7)
        script.between(1)
        script.do("overwrite", request=number)
    script.shorten(pick.size(0, 1))


@told("outputs", "ends", stops=[True])
def overwriting_ends(script: Script) -> None:
    """The caller changes the list of ids that end a request."""
    pick = script.pick
    for _ in range(pick.size(1, 2)):
        tokens = script.prompt(pick.size(1, 9), 8)
        ids = script.way(tokens, 8)
        number = script.add(tokens, 8, eos=(ids[6],), listed=True)
        script.between(2)
        script.do("overwrite", request=number, ends=pick.one_of((ids[4],), (), (ids[5], ids[6])))


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


@told(*WHOLE)
def side_by_side(script: Script) -> None:
    """Two engines on one model, whose requests are served in turn."""
    pick = script.pick
    start = script.ids(min(script.size, 8) + 1)
    for index in range(pick.size(2, 4)):
        limit = pick.one_of(3, 2, 5)
        tokens = script.prompt(len(start) + pick.size(0, 6), limit, start)
        script.add(tokens, limit, engine=index % 2)
        if pick.one_of(False, True):
            script.do("step", times=pick.size(1, 4), engine=pick.one_of(0, 1) if index else 0)


@told("outputs")
def strangers(script: Script) -> int:
    """A story in which the engine is asked about an id that no request has, while one waits."""
    script.requests(0, 2, (2, 3))
    script.add(script.prompt(script.pick.size(1, 6), 3), 3)
    method = script.pick.one_of("cancel", "output", "finished", "metrics")
    # As an index from the end it would be the last request's.
    return script.do("strange", method=method, name=script.pick.one_of(10**6, -1))


@told("outputs", "steps", prefix_caching=[True], page_sizes=[1, 2, 3], chunks=[1, 3], **PLAIN)
def asked_twice(script: Script) -> None:
    """A prompt of some pages, alone, and the same again after it is served."""
    tokens = script.prompt(script.size * 4 + 2 + 3 * script.chunk, 2)
    for _ in range(2):
        script.add(tokens, 2)
        script.do("step", times=len(tokens) + 4)


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


@told("outputs", "steps", drafts=["perfect"], prefix_caching=[True], page_sizes=[1, 2, 3])
def guessed_again(script: Script) -> None:
    """The same prompt of some pages twice, one after the other, whose draft is the model."""
    limit = script.pick.one_of(12, 16)
    tokens = script.prompt(script.size * 4 + script.pick.size(1, 3), limit)
    for _ in range(2):
        script.add(tokens, limit)
        script.do("step", times=len(tokens) + limit)


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
    count, known = 1, 1
    while known < limit:
        run = right[known : min(known + guesses, limit - 1)]
        known += [*run, False].index(False) + 1
        count += 1
    return count


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


@calls
def other_vocabularies(pick: Pick) -> Call:
    """A draft that knows other ids."""
    script = Script(pick)
    script.add(script.prompt(3, 2), 2)
    family = script.model["family"]
    other = next(
        m for m in (model(family, i, 1, 1) for i in range(3)) if m["config"]["vocab_size"] != script.vocabulary
    )
    script.draft = other
    return script.call()


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

ORDINARY = {"Engine": crowds}
"""The widest calls of each operation."""
