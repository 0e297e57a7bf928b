"""How stories of engines for the suites are written: step by step, with prompts on whose way no id is nearly another."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from inferspec.conformance.calls import Call
from inferspec.conformance.envelope import Envelope, meet, narrow
from inferspec.conformance.inputs.engine_models import Model, is_clear, model, near, of_heads, other
from inferspec.conformance.inputs.steps import Steps
from inferspec.conformance.strategies import Calls, Pick
from inferspec.spec.ends import DROPPED
from inferspec.spec.engine import alone
from inferspec.spec.engine_model import pages_of

TRIES, OF_ONE_LENGTH = 2000, 400
"""Prompts that are drawn until one is clear, and how many of them before longer ones are drawn."""

SMALL = {"page_sizes": [1, 2, 3, 8, 16], "chunks": [64, 1, 3, 7]}
"""Pages and chunks at which a few tokens make several; those of stories that ask for no others, where a subject has such."""

USUAL_PAGES = [8, 16, 32]
"""What pages are asked of who has none of those that a story asks for: its prompts grow with them."""

COMMON_PAGES, COMMON_CHUNKS = [16, 32, 64, 256], [512, 2048]
"""Those of servers."""

Ids = tuple[int, ...]
Way = Callable[[Model, Sequence[int], int], bool]
"""Whether a request's way is as it should be: of the model, the prompt and how many ids come out."""


class Script(Steps):
    """A story being written. spare: pages beyond what all requests together need; short: those beyond what the largest
    request needs, and no more."""

    def __init__(self, pick: Pick, seen: Sequence[str] = ("outputs",), requests: Sequence[int] = (3, 2, 8, 4)) -> None:
        super().__init__(pick)
        # An engine without pages of its own is asked for none.
        self.seen = tuple(name for name in seen if name != "pages" or "told" in pick.envelope["pages"])
        family, self.which = pick("models"), pick.one_of(0, 1, 2)
        self.kind, which = of_heads(family, pick.envelope["head_dims"]), self.which
        self.model = model(self.kind, which)
        self.draft = {
            "none": None,
            "perfect": self.model,
            "near": near(self.kind, which),
            "other": other(self.kind, which),
        }[pick("drafts")]
        self.size, self.chunk, self.caching = pick("page_sizes"), pick("chunks"), pick("prefix_caching")
        self.max_requests = pick.one_of(*requests)
        self.guesses = pick.one_of(3, 1, 2, 5)
        smallest = min(pick.envelope["page_sizes"])
        # By so much prompts are longer where no pages are small, so that a few ids go past a page as well.
        self.lead = self.size - 4 if smallest > 4 and self.size in USUAL_PAGES else 0
        self._scaled = smallest > 8 and self.size in USUAL_PAGES
        self.pages, self.ticking = 0, False
        self.slotless = int(False in pick.envelope["last_id_takes_slot"])
        """How many ids at the end of a request take no slot."""
        self.random = np.random.default_rng(pick.seed)
        self.asked: dict[int, tuple[Ids, int]] = {}

    @property
    def vocabulary(self) -> int:
        return int(self.model["config"]["vocab_size"])

    def call(self) -> Call:
        asked = [given for step, given in self.steps if step == "add"]
        for key, argument in (("stops", "eos"), ("priorities", "priority")):
            self.pick.features[key] = any(given.get(argument) for given in asked)
        self.pick.features["cancelling"] = any(step == "cancel" for step, _ in self.steps)
        needs = [self.need(len(tokens), limit) for tokens, limit in self.asked.values()]
        plenty = sum(needs) + 3
        pages = self.pages or plenty
        if True not in self.pick.envelope["short_pools"]:
            pages = max(pages, plenty)
        return self.pick.call(
            "Engine",
            model=self.model,
            draft=self.draft,
            num_pages=pages if self.slotless else max(pages, *needs, 1),
            page_size=self.size,
            max_requests=self.max_requests,
            max_prefill_tokens=self.chunk,
            prefix_caching=self.caching,
            num_draft_tokens=self.guesses,
            steps=tuple(self.steps),
            seen=self.seen,
            ticking=self.ticking,
            **self.pick.declared("ends", DROPPED),
        )

    def page(self, most: int = 8) -> int:
        """As many tokens as a page has, or as many as `most` of a large one where small ones are asked too."""
        return self.size if self._scaled else min(self.size, most)

    def need(self, prompt: int, limit: int) -> int:
        """Pages of a request at its end."""
        return pages_of(max(prompt + limit - self.slotless, 1), self.size)

    def shorten(self, spare: int = 0) -> None:
        """A pool for the largest request alone, and so many pages more."""
        self.pages = max(self.need(len(tokens), limit) for tokens, limit in self.asked.values()) + spare

    # tokens

    def ids(self, n: int) -> Ids:
        return tuple(int(x) for x in self.random.integers(0, self.vocabulary, n))

    def prompt(self, length: int, limit: int, start: Ids = (), way: Way = is_clear) -> Ids:
        """A prompt that begins with `start`, and on whose way no id is nearly another, or which has another `way` asked for."""
        for number in range(1, TRIES + 1):
            tokens = (*start, *self.ids(length - len(start)))[: max(length, 1)]
            if way(self.model, tokens, limit):
                return tokens
            # There are not many short prompts: perhaps none of them is clear for so long.
            if len(tokens) <= len(start) or number % OF_ONE_LENGTH == 0:
                length += 1
        raise AssertionError(f"no prompt of {length} tokens is clear for {limit} ids")

    def way(self, tokens: Ids, limit: int) -> list[int]:
        """What the request decodes to."""
        return alone(self.model, tokens, limit)[0]

    # steps

    def cancel(self, request: int) -> None:
        """A request leaves, where requests can; else it stays."""
        if True in self.pick.envelope["cancelling"]:
            self.do("cancel", request=request)

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
            return max(1, self.page() * self.pick.size(1, 3) + self.pick.one_of(0, 1, -1))
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


class Stories(Calls):
    """Calls of who has none of the page sizes that are asked for are of usual ones, if it has those."""

    def narrowed(self, envelope: Envelope) -> dict[str, Any]:
        asked = self.asked.get("page_sizes")
        if asked and not meet(envelope["page_sizes"], asked):
            envelope = narrow(envelope, {"page_sizes": USUAL_PAGES})
        return super().narrowed(envelope)


def told(*seen: str, **asked: Any) -> Callable[[Callable[[Script], Any]], Calls]:
    """The inputs that a function writes into a script; `seen` is what stories tell, unless a test says otherwise."""

    def decorate(write: Callable[[Script], Any]) -> Calls:
        def build(pick: Pick, seen: Sequence[str] = seen or ("outputs",)) -> Any:
            script = Script(pick, seen)
            number = write(script)
            return script.call() if number is None else (script.call(), number)

        build.__doc__ = write.__doc__
        return Stories(build, asked, preferred=SMALL, yielding=["page_sizes"])

    return decorate


def calls(build: Callable[..., Any]) -> Calls:
    """Make a function of a `Pick` the inputs of tests, with small pages and chunks."""
    return Calls(build, preferred=SMALL)


PLAIN = {"drafts": ["none"]}
GUESSING = {"drafts": ["near", "perfect", "other"]}
ENDS, PAGES = {"seen": ("outputs", "ends")}, {"seen": ("outputs", "pages"), "pages": ["told"]}


def outgrow(script: Script, stops: bool = False) -> None:
    """stops: an id ends some of them."""
    pick = script.pick
    script.max_requests = pick.one_of(3, 4, 8)
    start = script.ids(script.size * 2) if pick.one_of(False, False, True) else ()
    for _ in range(pick.size(2, 4)):
        limit = pick.one_of(6, 4, 9)
        length = len(start) + script.lead + pick.size(1, 3) + min(script.size, 4) * pick.size(0, 1)
        tokens = script.prompt(length, limit, start)
        eos = (script.way(tokens, limit)[limit - pick.size(1, 2)],) if stops else ()
        script.add(tokens, limit, priority=script.rank(0, 0, 1), eos=eos)
        if pick.one_of(False, True):
            script.between()
    script.shorten(pick.size(0, 2))


WHOLE = ("outputs", "stream", "pages", "ends")
