"""What callers give, and what goes wrong: see `spec/faults/generation_callers.py`."""

from __future__ import annotations

from collections.abc import Iterator
from copy import copy
from typing import Any

import numpy as np

from inferspec.spec.changes.iterators import Holding
from inferspec.spec.contract import Arguments, Change, Operation
from inferspec.spec.generation import Generate
from inferspec.spec.toy import Toy, ToyCache
from inferspec.spec.watch import Request

Rows = np.ndarray


def _memory(operation: Operation) -> dict[Any, Any]:
    """A store that outlives calls, as a module's or a default argument does."""
    return type(operation).__dict__.get("store") or _stored(type(operation))


def _stored(operation: type[Operation]) -> dict[Any, Any]:
    operation.store = {"fresh": True}  # type: ignore[attr-defined]
    return operation.store  # type: ignore[attr-defined]


# arguments


def list_grows(self: Generate, toy: Toy, request: Request) -> Iterator[Any]:
    for token in Generate.ids(self, toy, request):
        yield token
        if isinstance(request.tokens, list):
            request.tokens.append(token)


def overwrites() -> Change:
    def respond(self: Operation, a: Arguments) -> Any:
        result = Operation.respond(self, a)
        if isinstance(a.tokens, np.ndarray) and a.tokens.flags.writeable:
            a.tokens[...] = 0
        return result

    return {"respond": respond}


def remembers_the_prompt(self: Generate, request: Request) -> list[int]:
    """Prompts are kept by their length."""
    prompt = Generate.prompt(self, request)
    return list(_memory(self).setdefault(len(prompt), prompt))


def counts_on(self: Generate, request: Request) -> int:
    """What the last request left of its limit is taken off the next."""
    used = _memory(self).get("used", 0)
    _memory(self)["used"] = used + 1
    return request.max_tokens - (1 if used and request.max_tokens > 1 else 0)


def nothing_from_nothing(self: Generate, toy: Toy, request: Request) -> Iterator[Any]:
    return iter(()) if not len(request.tokens) else Generate.ids(self, toy, request)


def begins_with_zero(self: Generate, request: Request) -> list[int]:
    return Generate.prompt(self, request) or [0]


def late(self: Generate, request: Request) -> None:
    """Nothing is checked at the start."""


def checks_after_prefill(check: str) -> Change:
    def ids(self: Generate, toy: Toy, request: Request) -> Iterator[Any]:
        toy(self.prompt(request) or [0], self.cache(toy, request))
        getattr(Generate, check)(self, request)
        yield from Generate.ids(self, toy, request)

    return {check: late, "ids": ids}


def first_row(self: Generate, request: Request) -> list[int]:
    return [int(token) for token in np.asarray(request.tokens).reshape(-1, np.shape(request.tokens)[-1])[0]]


# what goes wrong, and the caller


def an_error_at_a_long_prompt_ends(tokens: int) -> Change:
    """What the model raises before the first id of a prompt of more than so many tokens is taken for the end."""

    def ids(self: Generate, toy: Toy, request: Request) -> Iterator[Any]:
        stream = Generate.ids(self, toy, request)
        try:
            first = next(stream, None)
        except RuntimeError:
            if len(request.tokens) <= tokens:
                raise
            return
        if first is not None:
            yield first
            yield from stream

    return {"ids": ids}


def an_error_ends(who: str, error: type[Exception] = Exception) -> Change:
    """What the model (or the sampler) raises is taken for the end."""

    def ids(self: Generate, toy: Toy, request: Request) -> Iterator[Any]:
        stream = Generate.ids(self, toy, request)
        fuse = toy.fuse if who == "model" else getattr(request.sampler, "fuse", None)
        while True:
            try:
                token = next(stream)
            except StopIteration:
                return
            except error:
                if fuse is None or fuse.left != -1:
                    raise
                return
            yield token

    return {"ids": ids}


def its_end_ends(self: Generate, toy: Toy, request: Request) -> Iterator[Any]:
    """The ids are those of an object with a `__next__`: a StopIteration that comes out of it is the end."""
    try:
        yield from Generate.ids(self, toy, request)
    except RuntimeError as error:
        # A generator makes this of it.
        if not isinstance(error.__cause__, StopIteration):
            raise


def greedy_instead(self: Generate, row: Rows, request: Request) -> int:
    """A sampler that fails gives way to the largest logit."""
    try:
        return Generate.pick(self, row, request)
    except Exception:
        return self.greedy(row)


def tried_again(self: Generate, toy: Toy, sequence: list[int], fed: int, cache: ToyCache | None) -> Rows:
    """A model that fails is asked once more."""
    try:
        return Generate.forward(self, toy, sequence, fed, cache)
    except RuntimeError:
        return Generate.forward(self, toy, sequence, fed, cache)


def held(self: Generate, toy: Toy, request: Request) -> ToyCache | None:
    """A table holds the cache of every request."""
    cache = Generate.cache(self, toy, request)
    _memory(self).setdefault("held", []).append(cache)
    return cache


def held_by_the_iterator(self: Generate, toy: Toy, request: Request) -> Iterator[Any]:
    """An object gives the ids, and keeps their cache."""
    one, cache = copy(self), Generate.cache(self, toy, request)
    vars(one)["cache"] = lambda *_: cache
    return Holding(Generate.ids(one, toy, request), cache)


def held_when_stopped_early(self: Generate, toy: Toy, request: Request) -> Iterator[Any]:
    """A table of running requests forgets those that came to their end."""
    running = _memory(self).setdefault("running", [])
    kept = Request(**{**vars(request), "cache": False})
    cache = self.cache(toy, request)
    running.append(cache)
    sequence, fed = self.prompt(kept), 0
    for number in range(self.limit(request)):
        rows = self.forward(toy, sequence, fed, cache)
        fed = len(sequence)
        token = self.choose(rows, request)
        if self.stops(token, request, number):
            break
        yield self.out(token)
        sequence.append(self.back(token))
    running.remove(cache)


def callers_ends(self: Generate, request: Request) -> Request:
    """Each id is looked for in the caller's own list."""
    return request


def reads_the_callers(self: Generate, toy: Toy, request: Request) -> Iterator[Any]:
    """What came out is kept, and what it goes on from is read where the caller has it."""
    made: list[int] = []
    cache, fed = self.cache(toy, request), 0
    for number in range(self.limit(request)):
        sequence = self.prompt(request) + made
        rows = self.forward(toy, sequence, fed, cache)
        fed = len(sequence)
        token = self.choose(rows, request)
        if self.stops(token, request, number):
            return
        yield self.out(token)
        made.append(token)


def given_up_once_failed(self: Generate, toy: Toy, request: Request) -> Iterator[Any]:
    """A model that failed, or whose sampler did, is taken for one that is lost."""
    if vars(toy).get("lost"):
        raise RuntimeError("the model has failed")
    try:
        yield from Generate.ids(self, toy, request)
    except Exception:
        vars(toy)["lost"] = True
        raise


def held_while_running(self: Generate, toy: Toy, request: Request) -> ToyCache | None:
    cache = Generate.cache(self, toy, request)
    vars(toy).setdefault("running", []).append(cache)
    return cache


def held_when_it_fails(self: Generate, toy: Toy, request: Request) -> Iterator[Any]:
    """A table of running requests forgets those that came to their end, or were closed."""
    failed = False
    try:
        yield from Generate.ids(self, toy, request)
    except Exception:
        failed = True
        raise
    finally:
        if not failed:
            vars(toy).pop("running", None)


def left_by_the_failed(self: Generate, toy: Toy, request: Request) -> ToyCache | None:
    """A request that may use a cache takes what one that failed has left."""
    left = [cache for cache in vars(toy).pop("running", []) if cache is not None]
    vars(toy)["running"] = [left[0] if left and request.cache else Generate.cache(self, toy, request)]
    running: list[ToyCache | None] = vars(toy)["running"]
    return running[0]
