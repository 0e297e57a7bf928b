"""The steps that faults and honest variants have in the place of the oracle's: see `spec/faults/generation.py`."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from inferspec.spec.contract import Change
from inferspec.spec.generation import Generate
from inferspec.spec.toy import Toy, ToyCache
from inferspec.spec.watch import Request

Rows = np.ndarray


# what is fed


def in_pieces(size: int, first: int = 0) -> Any:
    """Feed a prompt piece by piece; first: the size of the first piece, if it is another."""

    def forward(self: Generate, toy: Toy, sequence: list[int], fed: int, cache: ToyCache | None) -> Rows:
        if cache is None:
            return toy(sequence, None)
        rows, start = np.zeros((0, toy.vocab_size)), fed
        while start < len(sequence):
            end = start + (first if first and start == 0 else size)
            rows = toy(sequence[start:end], cache)
            start = end
        return rows

    return forward


def all_but_one_first(self: Generate, toy: Toy, sequence: list[int], fed: int, cache: ToyCache | None) -> Rows:
    if cache is not None and len(sequence) - fed > 1:
        toy(sequence[fed:-1], cache)
        fed = len(sequence) - 1
    return Generate.forward(self, toy, sequence, fed, cache)


def feeds(piece: Any) -> Change:
    """With a cache the model is fed `piece(sequence, fed)`."""

    def forward(self: Generate, toy: Toy, sequence: list[int], fed: int, cache: ToyCache | None) -> Rows:
        return toy(sequence if cache is None else piece(sequence, fed), cache)

    return {"forward": forward}


def last_twice(sequence: list[int], fed: int) -> list[int]:
    return sequence[fed:] + (sequence[-1:] if fed == 0 else [])


def prefill_then_last_again(self: Generate, toy: Toy, sequence: list[int], fed: int, cache: ToyCache | None) -> Rows:
    if cache is not None and fed == 0:
        toy(sequence, cache)
        return toy(sequence[-1:], cache)
    return Generate.forward(self, toy, sequence, fed, cache)


def each_id_twice(sequence: list[int], fed: int) -> list[int]:
    return sequence[fed:] * (2 if fed else 1)


def first_id_lost(self: Generate, toy: Toy, sequence: list[int], fed: int, cache: ToyCache | None) -> Rows:
    """The id that prefill gave comes out, but the second step is fed the last token of the prompt again."""
    if cache is not None and fed and len(cache.tokens) == fed and not hasattr(cache, "decoded"):
        cache.decoded = True  # type: ignore[attr-defined]
        return toy([sequence[fed - 1]], cache)
    return Generate.forward(self, toy, sequence, fed, cache)


def stale_cache(self: Generate, toy: Toy, sequence: list[int], fed: int, cache: ToyCache | None) -> Rows:
    """Pieces past the first go to a cache that no later step reads."""
    if cache is None or len(sequence) - fed <= 64:
        return Generate.forward(self, toy, sequence, fed, cache)
    toy(sequence[fed : fed + 64], cache)
    return toy(sequence[fed + 64 :], toy.make_cache())


def remainder_lost(self: Generate, toy: Toy, sequence: list[int], fed: int, cache: ToyCache | None) -> Rows:
    whole = (len(sequence) - fed) // 32 * 32
    piece = sequence[fed : fed + whole] if cache is not None and whole else sequence[fed:]
    return toy(sequence if cache is None else piece, cache)


def lone_token_lost(size: int) -> Any:
    """Of a prompt fed in pieces a last one of a single token is never fed."""

    def forward(self: Generate, toy: Toy, sequence: list[int], fed: int, cache: ToyCache | None) -> Rows:
        new = len(sequence) - fed
        lost = cache is not None and new > size and new % size == 1
        return Generate.forward(self, toy, sequence[:-1] if lost else sequence, fed, cache)

    return forward


def window(size: int) -> Any:
    def prompt(self: Generate, request: Request) -> list[int]:
        return Generate.prompt(self, request)[-size:]

    return prompt


def beginning(size: int) -> Any:
    def prompt(self: Generate, request: Request) -> list[int]:
        return Generate.prompt(self, request)[:size]

    return prompt


def last_token_alone(self: Generate, toy: Toy, sequence: list[int], fed: int, cache: ToyCache | None) -> Rows:
    return toy(sequence[fed:], cache)


def prompt_alone(self: Generate, toy: Toy, sequence: list[int], fed: int, cache: ToyCache | None) -> Rows:
    """Without a cache only the prompt and the last id are seen."""
    if cache is None and fed:
        prompt = getattr(self, "first_length", fed)
        self.first_length = prompt  # type: ignore[attr-defined]
        return toy(sequence[:prompt] + sequence[-1:], None)
    return Generate.forward(self, toy, sequence, fed, cache)


def without(self: Generate, toy: Toy, request: Request) -> ToyCache | None:
    return None


def always(self: Generate, toy: Toy, request: Request) -> ToyCache | None:
    return toy.make_cache()


def ends_of_the_model(self: Generate, toy: Toy, request: Request) -> Iterator[Any]:
    """What ends a request is added to what the model is known to end with."""
    toy.ends = ends = (*getattr(toy, "ends", ()), *request.eos)  # type: ignore[attr-defined]
    return Generate.ids(self, toy, replace(request, eos=ends))


def ends_of_the_last(self: Generate, toy: Toy, request: Request) -> Iterator[Any]:
    """The model has room for one list of ends: that of whoever came last."""
    ends: Any = getattr(toy, "ends", [])
    toy.ends = ends  # type: ignore[attr-defined]
    ends[:] = request.eos
    return Generate.ids(self, toy, replace(request, eos=ends))


def shared_by_model(self: Generate, toy: Toy, request: Request) -> ToyCache | None:
    """The cache hangs on the model, for all its requests."""
    if not request.cache:
        return None
    if not hasattr(toy, "kept"):
        toy.kept = toy.make_cache()  # type: ignore[attr-defined]
    return toy.kept  # type: ignore[attr-defined]


def kept_for_later(length: int) -> Change:
    """The last request's cache serves a prompt that begins with so many tokens alike, with all that it holds."""

    def cache(self: Generate, toy: Toy, request: Request) -> ToyCache | None:
        tokens = [int(token) for token in request.tokens]
        if not request.cache or len(tokens) < length:
            return Generate.cache(self, toy, request)
        kept = getattr(toy, "kept", None)
        if kept is None or kept[0] != tokens[:length]:
            kept = (tokens[:length], toy.make_cache())
            toy.kept = kept  # type: ignore[attr-defined]
        return kept[1]

    return {"cache": cache}


def found_while_in_use(length: int) -> Change:
    """Caches in use are found by the first tokens of their prompts, so many of them."""

    def cache(self: Generate, toy: Toy, request: Request) -> ToyCache | None:
        known: Any = toy.__dict__.setdefault("known", weakref.WeakValueDictionary())
        tokens = tuple(int(token) for token in request.tokens)
        if not request.cache or len(tokens) < length:
            return Generate.cache(self, toy, request)
        found = known.get(tokens[:length]) or toy.make_cache()
        known[tokens[:length]] = found
        return found

    return {"cache": cache}


# when it works


def all_at_once(self: Generate, toy: Toy, request: Request) -> Iterator[Any]:
    return iter(list(Generate.ids(self, toy, request)))


def ahead_by(steps: int, wasteful: bool = False) -> Any:
    """The ids come out so many steps late; wasteful: also past the last id that is needed."""

    def ids(self: Generate, toy: Toy, request: Request) -> Iterator[Any]:
        more = Request(**{**vars(request), "max_tokens": request.max_tokens + (steps if wasteful else 0)})
        held: list[Any] = []
        out = 0
        for token in Generate.ids(self, toy, more):
            held.append(token)
            if len(held) > steps and out < request.max_tokens:
                out += 1
                yield held.pop(0)
        yield from held[: request.max_tokens - out]

    return ids


def one_more_step(self: Generate, toy: Toy, request: Request) -> Iterator[Any]:
    """Every id is fed, the last one too, before the loop looks whether it is done."""
    sequence, cache, fed = self.prompt(request), self.cache(toy, request), 0
    rows = self.forward(toy, sequence, fed, cache)
    for number in range(self.limit(request)):
        fed = len(sequence)
        token = self.choose(rows, request)
        if self.stops(token, request, number):
            return
        yield token
        sequence.append(token)
        rows = self.forward(toy, sequence, fed, cache)


def step_after_the_end(self: Generate, toy: Toy, request: Request) -> Iterator[Any]:
    """An end-of-sequence id is noticed only once it was fed."""
    sequence, cache, fed = self.prompt(request), self.cache(toy, request), 0
    for number in range(self.limit(request)):
        rows = self.forward(toy, sequence, fed, cache)
        fed = len(sequence)
        token = self.choose(rows, request)
        sequence.append(token)
        if self.stops(token, request, number):
            self.forward(toy, sequence, fed, cache)
            return
        yield token


def prefills_for_nothing(self: Generate, toy: Toy, request: Request) -> Iterator[Any]:
    if request.max_tokens == 0:
        self.forward(toy, self.prompt(request), 0, self.cache(toy, request))
    return Generate.ids(self, toy, request)


# in what bits ids are held


def in_bits(bits: int) -> Any:
    return lambda self, token: token & (2**bits - 1)


def signed_16(self: Generate, token: int) -> int:
    return (token + 2**15) % 2**16 - 2**15


def prompt_in_bits(bits: int, holds: Callable[[Any], bool] = lambda tokens: True) -> Change:
    """The prompt is cut to so many bits, where `holds` is true of it as the caller has it."""

    def prompt(self: Generate, request: Request) -> list[int]:
        ids = Generate.prompt(self, request)
        return [token % 2**bits for token in ids] if holds(request.tokens) else ids

    return {"prompt": prompt}
