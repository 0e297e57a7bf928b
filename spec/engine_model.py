"""The plainest engine that serves many requests: pages, prefix cache, chunks, preemption and guesses, in NumPy.

It computes with the oracle's own decoder in float64 and keeps every key and value in pages, so that a mistake in who reads
or writes which page, at which position, changes the logits as it would in a real engine. Its steps are small methods:
faults and honest variants replace a few of them.
"""

from __future__ import annotations

import builtins
from bisect import insort
from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np

from inferspec.spec.contract import Arguments, Operation
from inferspec.spec.ends import DROPPED
from inferspec.spec.engine_decoder import FAMILIES, recalled
from inferspec.spec.transformer import Memory

PATIENCE = 1000
"""Steps of one run, many more than any story takes: so that a mistaken engine comes to an end."""

State = SimpleNamespace
"""`a`, `clock`, `requests` (all, by id), `waiting` and `running` (in order), `free` (pages, the first to be taken
first), `owners` (how many tables have a page), `cached` (the page, by the tokens up to its end) and `content` (the
reverse), `keys` and `values` (by layer, slots×H×D), `emitted` (of this step), `fuse` (calls until one raises, or None),
`fails` (with which error, whether calls of the draft are meant, and when they fail), `tripped` (whether one has) and
`heard` (called at each of the model, or None)."""

Request = SimpleNamespace
"""`id`, `prompt` and `tokens` (with what was generated), `out`, `limit`, `priority`, `eos`, `arrival`, `times`, `table`,
`computed` (tokens whose keys and values are in pages), `finished`, `logits`, `draft` (the draft's memory and its tokens)."""


def pages_of(tokens: int, size: int) -> int:
    """How many pages so many tokens fill, the last one perhaps in part."""
    return -(-tokens // size)


class PlainEngine(Operation):
    """What an engine does, method by method."""

    def fresh(self, a: Arguments, clock: Callable[[], float]) -> State:
        config = a.model["config"]
        decoder = FAMILIES[a.model["family"]]()
        shape = (a.num_pages * a.page_size, decoder.heads(config)[1], decoder.head_dim(config))
        layers = range(config["num_hidden_layers"])
        return State(
            a=a, clock=clock, requests={}, waiting=[], running=[], emitted=[], fuse=None, tripped=False, heard=None,
            fails=("RuntimeError", False, "use"),
            free=list(range(a.num_pages)), owners=[0] * a.num_pages, cached={}, content={},
            keys=[np.full(shape, np.nan) for _ in layers], values=[np.full(shape, np.nan) for _ in layers],
        )  # fmt: skip

    # requests

    def add(self, m: State, tokens: list[int], max_tokens: int, priority: int, eos: Sequence[int]) -> int:
        self.check(m.a, tokens, max_tokens)
        arrival = m.clock()
        r = Request(
            id=len(m.requests), prompt=self.kept(tokens), tokens=self.kept(tokens), out=[], limit=max_tokens,
            priority=priority, eos=tuple(eos), arrival=arrival, times=[], table=[], computed=0, finished=False,
            logits=None, draft=({}, []), cancelled=False,
        )  # fmt: skip
        m.requests[r.id] = r
        if self.at_once(r):
            r.finished = True
        else:
            self.queue(m, r)
        return int(r.id)

    def check(self, a: Arguments, tokens: Sequence[int], max_tokens: int) -> None:
        self.check_prompt(tokens)
        self.check_limit(max_tokens)
        self.check_ids(a, tokens)
        self.check_room(a, len(tokens), max_tokens)

    def check_prompt(self, tokens: Sequence[int]) -> None:
        if not tokens:
            raise ValueError("the prompt is empty")

    def check_limit(self, max_tokens: int) -> None:
        if max_tokens < 0:
            raise ValueError(f"max_tokens is {max_tokens}")

    def check_ids(self, a: Arguments, tokens: Sequence[int]) -> None:
        if not 0 <= min(tokens, default=0) <= max(tokens, default=0) < a.model["config"]["vocab_size"]:
            raise ValueError(f"tokens range from {min(tokens)} to {max(tokens)}")

    def check_room(self, a: Arguments, prompt: int, max_tokens: int) -> None:
        # The last token that comes out is never computed.
        if prompt + max_tokens - 1 > a.num_pages * a.page_size:
            raise ValueError(f"{prompt} tokens and {max_tokens} more never fit in {a.num_pages} pages")

    def kept(self, tokens: list[int]) -> list[int]:
        """The engine's own copy of the caller's list."""
        return list(tokens)

    def at_once(self, r: Request) -> bool:
        """Whether a request is finished before it began."""
        return bool(r.limit == 0)

    def queue(self, m: State, r: Request) -> None:
        insort(m.waiting, r, key=self.order)

    def order(self, r: Request) -> Any:
        """The larger priority first, then who came first."""
        return -r.priority, r.id

    def cancel(self, m: State, name: int) -> None:
        r = self.known(m, name)
        if r.finished:
            return
        r.cancelled = r.finished = True
        for place in (m.waiting, m.running):
            if r in place:
                place.remove(r)
        self.release(m, r)

    def output(self, m: State, name: int) -> list[int]:
        return list(self.known(m, name).out)

    def known(self, m: State, name: int) -> Request:
        if name not in m.requests:
            raise ValueError(f"no request has the id {name}")
        return m.requests[name]

    def unfinished(self, m: State) -> bool:
        return bool(m.waiting or m.running)

    def run(self, m: State) -> dict[int, list[int]]:
        for _ in range(PATIENCE):
            if not self.unfinished(m):
                break
            self.step(m)
        return {r.id: list(r.out) for r in m.requests.values() if not r.cancelled}

    # a step: nothing but pages changes before every row is computed

    def step(self, m: State) -> list[tuple[int, int]]:
        m.emitted = []
        self.admit(m)
        rows = [(r, n, self.feed(m, r, n, guesses), guesses) for r, n, guesses in self.plan(m)]
        for r, n, logits, guesses in rows:
            self.settle(m, r, n, logits, guesses)
        self.after(m)
        return list(m.emitted)

    def after(self, m: State) -> None:
        """What is done at the end of a step."""

    def admit(self, m: State) -> None:
        while m.waiting and len(m.running) < m.a.max_requests:
            r = m.waiting[0]
            hits = self.hits(m, r)
            taken = len([page for page in hits if page in m.free])
            if pages_of(len(r.tokens), m.a.page_size) - len(hits) + taken > len(m.free):
                return
            m.waiting.pop(0)
            self.start(m, r, hits)
            insort(m.running, r, key=self.order)

    def start(self, m: State, r: Request, hits: list[int]) -> None:
        for page in hits:
            self.share(m, page)
        r.table, r.computed = list(hits), self.cached_tokens(m, r, hits)

    def cached_tokens(self, m: State, r: Request, hits: list[int]) -> int:
        """How many tokens need no computing, since their pages are hit."""
        return len(hits) * m.a.page_size

    def plan(self, m: State) -> list[tuple[Request, int, list[int]]]:
        """What to compute: (request, how many of its tokens, guesses after them)."""
        left, rows = m.a.max_prefill_tokens, []
        for r in list(m.running):
            if r not in m.running:
                continue
            n = self.share_of(m, r, left)
            left -= 0 if self.decodes(r) else n
            guessed = self.most_guesses(m, r, n)
            if n and self.make_room(m, r, r.computed + n + guessed):
                rows.append((r, n, self.guesses(m, r, guessed)))
        return [row for row in rows if row[0] in m.running]

    def decodes(self, r: Request) -> bool:
        return bool(r.out) and len(r.tokens) - r.computed == 1

    def share_of(self, m: State, r: Request, left: int) -> int:
        """How many tokens of a request are computed, of so many that prompts may have."""
        return 1 if self.decodes(r) else int(min(len(r.tokens) - r.computed, left))

    def make_room(self, m: State, r: Request, tokens: int) -> bool:
        """Pages for so many tokens, of others' if need be; False when the request itself had to go."""
        while pages_of(tokens, m.a.page_size) - len(r.table) > len(m.free):
            victim = self.victim(m, r)
            self.preempt(m, victim)
            if victim is r:
                return False
        while len(r.table) < pages_of(tokens, m.a.page_size):
            r.table.append(self.take(m))
        return True

    def victim(self, m: State, r: Request) -> Request:
        """Who gives its pages back: the last in order."""
        return m.running[-1]

    def preempt(self, m: State, r: Request) -> None:
        """Back to the queue, to compute the prompt and what was generated again."""
        m.running.remove(r)
        self.release(m, r)
        self.queue(m, r)

    def settle(self, m: State, r: Request, n: int, logits: np.ndarray, guesses: list[int]) -> None:
        """Take what a row gave: nothing from a prompt's middle, else the next id, and more where guesses were right."""
        ends = r.computed + n == len(r.tokens)
        if not ends:
            r.computed += n
            self.publish(m, r)
            return
        rows = logits[self.sampled_from(n) :]
        chosen = [self.choose(row) for row in rows]
        right = self.agreeing(chosen, guesses)
        r.computed = self.committed(r, right)
        for token, row in zip(chosen[: right + 1], rows, strict=False):
            self.emit(m, r, token, row)
            if r.finished:
                return
        self.publish(m, r)
        self.trim(m, r)

    def sampled_from(self, n: int) -> int:
        """The first row of logits that an id is chosen by."""
        return n - 1

    def choose(self, row: np.ndarray) -> int:
        return int(row.argmax())

    def agreeing(self, chosen: list[int], guesses: list[int]) -> int:
        """How many guesses are right, up to the first that is not."""
        wrong = [i for i, guess in enumerate(guesses) if guess != chosen[i]]
        return wrong[0] if wrong else len(guesses)

    def committed(self, r: Request, right: int) -> int:
        """How many tokens have their keys and values in pages, after so many right guesses."""
        return len(r.tokens) + right

    def trim(self, m: State, r: Request) -> None:
        """Give back pages that only wrong guesses needed."""
        while len(r.table) > pages_of(r.computed, m.a.page_size):
            self.leave(m, r.table.pop())

    def emit(self, m: State, r: Request, token: int, row: np.ndarray) -> None:
        ends = self.stops(r, token)
        if ends and m.a.ends == DROPPED:
            self.end(m, r)
            return
        r.tokens.append(token)
        r.out.append(token)
        r.logits = row
        self.stamp(m, r)
        m.emitted.append((self.name_of(m, r), token))
        if ends or len(r.out) >= self.most(r):
            self.end(m, r)

    def stops(self, r: Request, token: int) -> bool:
        return token in r.eos

    def most(self, r: Request) -> int:
        return int(r.limit)

    def name_of(self, m: State, r: Request) -> int:
        """Whose a token is said to be."""
        return int(r.id)

    def end(self, m: State, r: Request) -> None:
        r.finished = True
        m.running.remove(r)
        self.leave_behind(m, r)
        self.release(m, r)

    def leave_behind(self, m: State, r: Request) -> None:
        """What the last step computed can be hit as well; of guesses behind the end nobody knows."""
        r.computed = min(r.computed, len(r.tokens))
        self.publish(m, r)

    # pages

    def take(self, m: State) -> int:
        """A free page, the one that was freed first; what it held is forgotten."""
        page = m.free.pop(0)
        self.forget(m, page)
        m.owners[page] = 1
        return int(page)

    def forget(self, m: State, page: int) -> None:
        if page in m.content:
            del m.cached[m.content.pop(page)]

    def share(self, m: State, page: int) -> None:
        if page in m.free:
            m.free.remove(page)
        m.owners[page] += 1

    def leave(self, m: State, page: int) -> None:
        m.owners[page] -= 1
        if m.owners[page] == 0:
            m.free.append(page)

    def release(self, m: State, r: Request) -> None:
        """A request gives all back that it has."""
        for page in r.table[::-1]:
            self.leave(m, page)
        r.table, r.computed, r.draft = [], 0, ({}, [])

    def hits(self, m: State, r: Request) -> list[int]:
        """Pages that hold the beginning of what a request has to compute; a token is left over."""
        found: list[int] = []
        for index in range(self.most_hits(m, r)):
            page = m.cached.get(self.key(m, r.tokens, index))
            if page is None or not m.a.prefix_caching:
                break
            found.append(page)
        return found

    def most_hits(self, m: State, r: Request) -> int:
        return int((len(r.tokens) - 1) // m.a.page_size)

    def key(self, m: State, tokens: list[int], index: int) -> Any:
        """What a page is known by: all tokens up to its end."""
        return tuple(tokens[: (index + 1) * m.a.page_size])

    def publish(self, m: State, r: Request) -> None:
        for index in range(self.written(m, r)):
            key, page = self.key(m, r.tokens, index), r.table[index]
            if key not in m.cached and page not in m.content:
                m.cached[key], m.content[page] = page, key

    def written(self, m: State, r: Request) -> int:
        """How many of a request's pages are full and computed."""
        return int(r.computed // m.a.page_size)

    # the model

    def feed(self, m: State, r: Request, n: int, guesses: list[int]) -> np.ndarray:
        """Compute n tokens of a request, and guesses after them: (n + guesses)×V logits."""
        tokens = [*self.fed(m, r, n), *guesses]
        memory = self.read(m, r)
        seen = memory[0][0].shape[3] if memory else 0
        memory["offset"] = self.position(m, r)
        logits = self.called(m, m.a.model, tokens, memory)
        self.write(m, r, memory, seen, len(tokens))
        return logits

    def fed(self, m: State, r: Request, n: int) -> list[int]:
        return list(r.tokens[r.computed : r.computed + n])

    def position(self, m: State, r: Request) -> int:
        """Where RoPE puts the first of the tokens."""
        return int(r.computed)

    def context(self, m: State, r: Request) -> int:
        """How many tokens are read from pages."""
        return int(r.computed)

    def table(self, m: State, r: Request) -> list[int]:
        """The pages that are read."""
        return list(r.table)

    def read(self, m: State, r: Request) -> Memory:
        slots = self.slots(m, self.table(m, r), 0, self.context(m, r))
        if not len(slots):
            return {}
        return {
            layer: tuple(x[slots].swapaxes(0, 1)[None, None] for x in (keys, values))
            for layer, (keys, values) in enumerate(zip(m.keys, m.values, strict=True))
        }

    def write(self, m: State, r: Request, memory: Memory, seen: int, length: int) -> None:
        """Put the new tokens' keys and values into the request's pages."""
        slots = self.slots(m, r.table, self.start_of(m, r), length)
        for layer in range(len(m.keys)):
            for pages, new in zip((m.keys[layer], m.values[layer]), memory[layer], strict=True):
                pages[slots] = new[0, 0, :, seen : seen + len(slots)].swapaxes(0, 1)

    def start_of(self, m: State, r: Request) -> int:
        """The position that the first new token is written to."""
        return int(r.computed)

    def slots(self, m: State, table: list[int], start: int, length: int) -> np.ndarray:
        """Where so many tokens from a position on lie."""
        size = m.a.page_size
        places = [table[p // size] * size + p % size for p in range(start, start + length) if p // size < len(table)]
        return np.array(places, np.int64)

    def called(self, m: State, model: Any, tokens: Sequence[int], memory: Memory, guessing: bool = False) -> np.ndarray:
        """A call of a model, which fails when its fuse has burnt down."""
        if m.heard and not guessing:
            m.heard()
        error, draft, at = m.fails
        if m.fuse is not None and guessing == draft:
            m.fuse -= 1
            if m.fuse < 0:
                m.tripped = True
                if at == "end":
                    recalled(model, tokens, memory)
                raise getattr(builtins, error)("the model fails")
        return recalled(model, tokens, memory)

    # guesses

    def most_guesses(self, m: State, r: Request, n: int) -> int:
        """How many ids are guessed after a row: as many as may still come out, less the one that the model gives."""
        if m.a.draft is None or not n or r.computed + n < len(r.tokens):
            return 0
        return int(max(min(m.a.num_draft_tokens, r.limit - len(r.out) - 1), 0))

    def guesses(self, m: State, r: Request, count: int) -> list[int]:
        """What the draft makes of a request. Its memory is dense, and of the request alone."""
        found: list[int] = []
        if not count:
            return found
        memory, known = self.rewound(m, r)
        for _ in range(count):
            new = [*r.tokens, *found][len(known) :]
            row = self.called(m, m.a.draft, new, memory, guessing=True)[-1]
            known += new
            found.append(self.choose(row))
        r.draft = memory, known
        return found

    def rewound(self, m: State, r: Request) -> tuple[Memory, list[int]]:
        """The draft's memory up to where it is of the request's tokens, the last of which is fed again."""
        memory, known = r.draft
        same = next((i for i, pair in enumerate(zip(known, r.tokens, strict=False)) if pair[0] != pair[1]), len(known))
        same = min(same, len(r.tokens) - 1)
        cut: Memory = {
            layer: tuple(x[..., :same, :] for x in pair) for layer, pair in memory.items() if layer != "offset"
        }
        return ({**cut, "offset": same}, known[:same]) if same else ({}, [])

    # what is told

    def free_pages(self, m: State) -> int:
        return len(m.free)

    # metrics

    def stamp(self, m: State, r: Request) -> None:
        r.times.append(m.clock())

    def metrics(self, m: State, r: Request) -> tuple[float | None, float | None, list[float], float | None]:
        """TTFT, TPOT, ITL and E2EL."""
        if not r.times:
            return None, None, [], None
        ttft, e2el = self.ttft(r), r.times[-1] - r.arrival
        return ttft, self.tpot(r), self.itl(r), e2el

    def ttft(self, r: Request) -> float:
        return float(r.times[0] - r.arrival)

    def itl(self, r: Request) -> list[float]:
        return [float(x) for x in np.diff(r.times)]

    def tpot(self, r: Request) -> float | None:
        return float(r.times[-1] - r.times[0]) / (len(r.times) - 1) if len(r.times) > 1 else None


class Served:
    """A plain engine as its callers see it."""

    def __init__(self, operation: PlainEngine, a: Arguments, clock: Callable[[], float]) -> None:
        self.it, self.m = operation, operation.fresh(a, clock)

    def add_request(self, tokens: list[int], max_tokens: int, priority: int = 0, eos: Sequence[int] = ()) -> int:
        return self.it.add(self.m, tokens, max_tokens, priority, eos)

    def step(self) -> list[tuple[int, int]]:
        return self.it.step(self.m)

    def run(self) -> dict[int, list[int]]:
        return self.it.run(self.m)

    def cancel(self, name: int) -> None:
        self.it.cancel(self.m, name)

    def output(self, name: int) -> list[int]:
        return self.it.output(self.m, name)

    def finished(self, name: int) -> bool:
        return bool(self.it.known(self.m, name).finished)

    def metrics(self, name: int) -> Any:
        return self.it.metrics(self.m, self.it.known(self.m, name))

    def logits(self, name: int) -> Any:
        # As the models have them: how NumPy sums in float64 depends on the shape.
        row = self.it.known(self.m, name).logits
        return None if row is None else row.astype(np.float32)

    @property
    def num_free_pages(self) -> int:
        return self.it.free_pages(self.m)

    @property
    def has_unfinished(self) -> bool:
        return self.it.unfinished(self.m)
