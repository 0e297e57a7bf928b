"""How the kit plays the engine to a scheduler: requests, a model that computes what it is told to, and what can be observed.

The model is the toy's kind: exact, without weights. Whatever it computes for a position is a hash of all that it finds in
the slots before it and of the token; the id that follows is a hash of that. So a token that is lost, doubled, foreign or
misplaced changes every id after it. All chunks of a step read before any of them is written; where they are computed
`together`, layer by layer, each finds what the others write.

The oracle and the driver of real subjects share it; it judges nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from types import MappingProxyType
from typing import Any

from inferspec.spec.block_manager import BlockManager, Ranks, Table
from inferspec.spec.contract import Arguments, Unreadable
from inferspec.spec.toy import mixed

VOCAB = 1000
REPEATED = 2**20 + 13
"""What the model gives after this token, again and again; what it gives after others is no such token."""
_START, _FEED, _READ, _PICK = 0x2545F4914F6CDD1D, 0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB

STATES = ("WAITING", "RUNNING", "PREEMPTED", "FINISHED")
WAITING, RUNNING, PREEMPTED, FINISHED = range(4)


# the model


def _computed(seen: int, token: int) -> tuple[int, int]:
    """What a token after `seen` leaves in its slot, and what is seen from there on."""
    value = mixed(seen ^ (token + 1), _FEED)
    return value, mixed(seen ^ value, _READ)


def _id(seen: int, last: int) -> int:
    """The id that follows what was seen, of which one token was the last."""
    return last if last == REPEATED else mixed(seen, _PICK) % VOCAB


def values_of(tokens: Iterable[int]) -> list[int]:
    """What each of the tokens leaves in its slot when all before it are where they belong."""
    seen, values = _START, []
    for token in tokens:
        value, seen = _computed(seen, token)
        values.append(value)
    return values


def alone(tokens: Sequence[int], count: int) -> list[int]:
    """The ids that follow a prompt, by the model alone."""
    seen = _START
    for token in tokens:
        _, seen = _computed(seen, token)
    ids: list[int] = []
    while len(ids) < count:
        ids.append(_id(seen, ids[-1] if ids else tokens[-1]))
        _, seen = _computed(seen, ids[-1])
    return ids


Slots = dict[tuple[int, int], int | None]
"""What stands in which slot, by block and place; None is what a computation left that broke off."""

Work = Sequence[tuple[Sequence[int], int, Sequence[int]]]
"""Chunks to compute: blocks, start and tokens of each."""


class Memory:
    """What stands in each slot of each block."""

    def __init__(self, block_size: int) -> None:
        self.block_size = block_size
        self.slots: Slots = {}

    def place(self, blocks: Sequence[int], position: int) -> tuple[int, int]:
        """The slot of a position; a block that there is not is -1."""
        index = position // self.block_size
        return blocks[index] if index < len(blocks) else -1, position % self.block_size

    def compute(self, work: Work, together: bool = False) -> list[int]:
        """Compute chunks at once; return the id that follows each."""
        written, ids = self.written(work, together)
        self.slots |= written
        return ids

    def written(self, work: Work, together: bool = False) -> tuple[Slots, list[int]]:
        """What chunks leave in their slots, and the id that follows each. Nothing is changed."""
        written, ids = self._pass(work, self.slots)
        for _ in work if together else ():
            # What one finds of another is right once all that it builds on is: after as many passes as there are chunks.
            before = written
            written, ids = self._pass(work, self.slots | before)
            if written == before:
                break
        return written, ids

    def _pass(self, work: Work, slots: Slots) -> tuple[Slots, list[int]]:
        written: Slots = {}
        ids = []
        for blocks, start, tokens in work:
            seen = _START
            for position in range(start):
                seen = mixed(seen ^ (slots.get(self.place(blocks, position)) or 0), _READ)
            for position, token in enumerate(tokens, start):
                written[self.place(blocks, position)], seen = _computed(seen, token)
            ids.append(_id(seen, tokens[-1]))
        return written, ids

    def spoil(self, work: Work) -> None:
        """Break off a computation of chunks: their slots hold anything."""
        for blocks, start, tokens in work:
            for position in range(start, start + len(tokens)):
                self.slots[self.place(blocks, position)] = None


# the block manager of subjects that have none


class _ModelTable:
    def __init__(self, table: Table) -> None:
        self.model = table

    @property
    def block_ids(self) -> list[int]:
        return list(self.model.block_ids)

    @property
    def num_tokens(self) -> int:
        return len(self.model.tokens)

    @property
    def num_cached_tokens(self) -> int:
        return int(self.model.cached)


class ModelManager:
    """The model of the contract of block managers, spelt as the contract does."""

    def __init__(self, num_blocks: int, block_size: int, prefix_caching: bool = True) -> None:
        self.num_blocks, self.block_size = num_blocks, block_size
        self._do = BlockManager()
        self._model = self._do.fresh(
            Arguments(num_blocks=num_blocks, block_size=block_size, prefix_caching=prefix_caching)
        )

    @property
    def num_free(self) -> int:
        return self._do.num_free(self._model)

    def allocate(self, tokens: Sequence[int]) -> _ModelTable:
        return _ModelTable(self._do.allocate(self._model, list(tokens)))

    def append(self, table: _ModelTable, tokens: Sequence[int]) -> None:
        self._do.append(self._model, table.model, list(tokens))

    def mark_computed(self, table: _ModelTable, n: int) -> None:
        self._do.mark_computed(self._model, table.model, n)

    def free(self, table: _ModelTable) -> None:
        self._do.free(self._model, table.model)


# the story


class Request:
    """What is asked for. The scheduler sets `state` and `output`."""

    def __init__(self, tokens: Sequence[int], max_tokens: int, priority: int, eos: tuple[int, ...]) -> None:
        self.tokens = list(tokens)
        self.max_tokens, self.priority, self.eos = max_tokens, priority, eos
        self.state: Any = None
        self.output: list[int] = []


class Story:
    """A scheduler at work. Requests have the number of the step that added them."""

    def __init__(self, make: Callable[..., Any], managers: Callable[..., Any], a: Arguments) -> None:
        self.manager = managers()
        self.scheduler = make(self.manager, a.max_requests, a.max_prefill_tokens)
        wider = {"max_requests": a.max_requests + 1, "max_prefill_tokens": 2 * a.max_prefill_tokens}

        def another(**other: int) -> Story:
            return Story(make, partial(managers, **other), Arguments(**{**vars(a), **wider, **other}))

        self.another = another
        self.beside: Story | None = None
        self.memory, self.together = Memory(a.block_size), a.together
        self.ranks = Ranks(a.num_blocks)
        self.requests: dict[int, Request] = {}
        self.prompts: dict[int, tuple[int, ...]] = {}
        self.refused: dict[int, Request] = {}
        """Those that were not taken."""
        self.lists: dict[int, list[int]] = {}
        """The caller's own, whatever a scheduler puts in their place."""
        self.step: Any = None
        """What the model is to compute."""
        self.last: Any = None
        """The last step that was scheduled, until it is updated."""
        self.earlier: Any = None
        """A step that must not be updated any more."""
        self.outputs: dict[int, list[int]] = {}

    def told(self, steps: Sequence[tuple[str, Any]]) -> dict[str, Any]:
        """Do all steps; return what can be observed after each, and why it was refused in words."""
        seen: dict[str, Any] = {}
        for number, (method, given) in enumerate(steps, 1):
            if method == "finish":
                seen |= self._finish(number)
            else:
                adds = method in ("add", "add_mended")
                seen |= self._done(str(number), method, {"number": number, **given} if adds else given)
        return seen

    def _done(self, name: str, method: str, given: Any) -> dict[str, Any]:
        seen: dict[str, Any] = {}
        try:
            for part, value in getattr(self, f"_{method}")(**given):
                seen[f"{name} {part}"] = value
        except Exception as error:  # what a wrong scheduler stumbles over may be anything
            seen |= {f"{name} refused": 1, f"{name} why": f"{type(error).__name__}: {error}"}
        return seen | {f"{name} {part}": value for part, value in self._shown().items()}

    # steps: each yields what it observes on the way

    def _add(self, number: int, tokens: Sequence[int], max_tokens: int, priority: int, eos: tuple[int, ...]) -> Any:
        request = Request(tokens, max_tokens, priority, eos)
        self.refused[number] = request
        self._take(number, request)
        del self.refused[number]
        yield from ()

    def _add_mended(self, number: int, request: int, tokens: Sequence[int], max_tokens: int) -> Any:
        """A request that was refused asks for something else, and is added."""
        if request not in self.refused:
            yield "absent", 1
            return
        mended = self.refused[request]
        mended.tokens, mended.max_tokens = list(tokens), max_tokens
        self._take(number, mended)

    def _take(self, number: int, request: Request) -> None:
        own = request.tokens
        prompt = tuple(own)
        self.scheduler.add(request)
        self.requests[number], self.prompts[number], self.lists[number] = request, prompt, own

    def _add_again(self, request: int) -> Any:
        if request in self.requests:
            self.scheduler.add(self.requests[request])
        else:
            yield "absent", 1

    def _schedule(self) -> Any:
        self.earlier, self.last, self.step = self.last or self.earlier, None, None
        step = _readable(self.scheduler.schedule())
        chunks = [*((chunk, 0) for chunk in step.prefills), *((chunk, 1) for chunk in step.decodes)]
        told = [number for chunk, decode in chunks for number in self._told(chunk, decode)]
        self.last = self.step = step
        yield "chunks", told
        if step.preempted:
            yield "preempted", [self._number(request) for request in step.preempted]
        yield "between", self._states()

    def _update(self) -> Any:
        """The model computes the step."""
        if self.step is None:
            yield "absent", 1
            return
        step, self.step, self.last = self.step, None, None
        self.earlier = step
        chunks = [*step.prefills, *step.decodes]
        ids = self.memory.compute([_work(chunk) for chunk in chunks], self.together)
        tokens = [token if chunk.samples else None for chunk, token in zip(chunks, ids, strict=True)]
        finished = self.scheduler.update(step, tokens)
        if finished:
            yield "finished", sorted(self._number(request) for request in finished)

    def _step(self) -> Any:
        yield from self._schedule()
        yield from self._update()

    def _fail(self) -> Any:
        """The model raises in the middle of the step."""
        if self.step is None:
            yield "absent", 1
            return
        self.memory.spoil([_work(chunk) for chunk in (*self.step.prefills, *self.step.decodes)])
        self.step = None

    def _cancel(self, request: int) -> Any:
        if request in self.requests:
            self.scheduler.cancel(self.requests[request])
        else:
            yield "absent", 1

    def _cancel_stranger(self) -> Any:
        self.scheduler.cancel(Request((1,), 1, 0, ()))
        yield from ()

    def _overwrite(self, request: int) -> Any:
        """The caller uses the list of a request's tokens for something else."""
        if request not in self.requests:
            yield "absent", 1
            return
        own = self.lists[request]
        own[:] = [*(token + 1 for token in own[::-1]), 0]
        if self.requests[request].tokens is own:
            self.prompts[request] = tuple(own)

    def _pass_by(self, times: int) -> Any:
        """So many requests are added and cancelled one after the other, and nothing of them is kept."""
        for _ in range(times):
            request = Request((1,), 1, 0, ())
            self.scheduler.add(request)
            self.scheduler.cancel(request)
            del request
        yield from ()

    def _meanwhile(self, sizes: Mapping[str, int] = MappingProxyType({}), **request: Any) -> Any:
        """Another scheduler, with blocks of its own, is given a request and takes a step; it has all of these to the end. sizes: those
        of its blocks, where they are others."""
        self.beside = self.beside or self.another(**sizes)
        for _ in (*self.beside._add(number=len(self.beside.requests), **request), *self.beside._step()):
            pass
        yield from ()

    def _update_wrongly(self, how: str, request: int | None = None) -> Any:
        """Hand the step back in a way that is to be refused. request: whose entry is wrong, or missing; any by default."""
        step = self.earlier if how == "another step" else self.step
        if how == "another step" and step is self.last:
            # A scheduler may fill one step anew each time: there is no other.
            yield "absent", 1
            return
        chunks = [] if step is None else [*step.prefills, *step.decodes]
        tokens: list[int | None] = [0 if chunk.samples else None for chunk in chunks]
        theirs = [index for index, one in enumerate(chunks) if request in (None, self._number(one.request))]
        where = [index for index in theirs if (tokens[index] is None) == (how == "an id")]
        if not theirs or (how in ("an id", "no id") and not where):
            yield "absent", 1
            return
        if how == "too few":
            tokens.pop(theirs[-1])
        elif how == "too many":
            tokens.append(None)
        elif how in ("an id", "no id"):
            tokens[where[0]] = 0 if how == "an id" else None
        self.scheduler.update(step, tokens)

    def _finish(self, number: int) -> dict[str, Any]:
        """Steps until every request is finished, or until nothing has come of so many that nothing will."""
        seen: dict[str, Any] = {}
        steps, idle, best = 0, 0, self._progress()
        while any(state != FINISHED for state in self._states()) and idle <= self._patience():
            steps += 1
            told = self._done(f"{number}.{steps}", "step", {})
            seen |= told
            if f"{number}.{steps} refused" in told:
                break
            idle = 0 if self._progress() > best else idle + 1
            best = max(best, self._progress())
        return seen | {f"{number} steps": steps}

    def _progress(self) -> tuple[int, int]:
        return sum(state == FINISHED for state in self._states()), sum(
            len(request.output) for request in self.requests.values()
        )

    def _patience(self) -> int:
        """Steps in which every token that is not computed could be, one by one, and once more."""
        left = [request for request in self.requests.values() if _state(request) != FINISHED]
        return 4 + 2 * sum(len(request.tokens) + request.max_tokens for request in left)

    # what can be observed

    def _shown(self) -> dict[str, Any]:
        outputs = {number: [int(token) for token in request.output] for number, request in self.requests.items()}
        changed = {number: output for number, output in outputs.items() if output != self.outputs.get(number, [])}
        self.outputs = outputs
        seen = {"states": self._states(), "free": _read(self.manager, "num_free")}
        seen |= {f"output {number}": output for number, output in changed.items()}
        spoilt = [n for n, request in self.requests.items() if tuple(request.tokens) != self.prompts[n]]
        return seen | ({"changed": spoilt} if spoilt else {})

    def _states(self) -> list[int]:
        return [_state(request) for request in self.requests.values()]

    def _told(self, chunk: Any, decode: int) -> list[int]:
        blocks, start, tokens = _work(chunk)
        head = [self._number(chunk.request), start, int(bool(chunk.samples)), decode]
        return [*head, len(tokens), *tokens, len(blocks), *self.ranks(blocks)]

    def _number(self, request: Any) -> int:
        return next((number for number, known in self.requests.items() if known is request), -1)


def _readable(step: Any) -> Any:
    """What schedule gives; Unreadable where it is no step."""
    if missing := [name for name in ("prefills", "decodes", "preempted") if not hasattr(step, name)]:
        raise Unreadable(f"schedule gives a {type(step).__name__} without {', '.join(missing)}")
    return step


def _work(chunk: Any) -> tuple[list[int], int, list[int]]:
    return [int(i) for i in chunk.block_ids], int(chunk.start), [int(token) for token in chunk.tokens]


def _state(request: Request) -> int:
    """The number of a state that is an enumeration's member or a word; -1 for any other."""
    name = str(getattr(request.state, "name", request.state)).upper()
    return STATES.index(name) if name in STATES else -1


def _read(thing: Any, name: str) -> Any:
    attribute = getattr(thing, name)
    return attribute() if callable(attribute) else attribute
