"""Where the ids end: see `spec/faults/generation_ends.py`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from inferspec.spec.contract import Change
from inferspec.spec.ends import DROPPED, KEPT
from inferspec.spec.generation import Generate
from inferspec.spec.toy import Toy
from inferspec.spec.watch import Request


def emits_the_end(self: Generate, toy: Toy, request: Request) -> Iterator[Any]:
    for token in Generate.ids(self, toy, Request(**{**vars(request), "eos": ()})):
        yield token
        if token in request.eos:
            return


def drops_the_end(self: Generate, toy: Toy, request: Request) -> Iterator[Any]:
    return Generate.ids(self, toy, replace(request, ends=DROPPED))


def drops_an_end_at_the_limit(self: Generate, toy: Toy, request: Request) -> Iterator[Any]:
    """The limit is looked at before the end comes out."""
    ids = list(Generate.ids(self, toy, request))
    return iter(ids[:-1] if len(ids) == request.max_tokens and ids[-1] in request.eos else ids)


def drops_a_first_end(self: Generate, toy: Toy, request: Request) -> Iterator[Any]:
    for number, token in enumerate(Generate.ids(self, toy, request)):
        if number == 0 and token in request.eos:
            return
        yield token


def keeps_the_end_of_the_second(self: Generate, toy: Toy, request: Request) -> Iterator[Any]:
    """What is known of a request is the model's, and the second comes upon it."""
    known = getattr(toy, "known", 0)
    toy.known = known + 1  # type: ignore[attr-defined]
    return Generate.ids(self, toy, replace(request, ends=KEPT if known else request.ends))


def keeps_the_end_twice(self: Generate, toy: Toy, request: Request) -> Iterator[Any]:
    """The loop gives the end, and what comes after the loop gives it again."""
    token = None
    for token in Generate.ids(self, toy, request):
        yield token
    if token in request.eos:
        yield token


def gives_the_first_end(self: Generate, toy: Toy, request: Request) -> Iterator[Any]:
    """Whatever ended the ids, the first of the list comes out: what texts are ended with."""
    for token in Generate.ids(self, toy, request):
        yield request.eos[0] if token in request.eos else token


def keeps_the_end_past_the_limit(self: Generate, toy: Toy, request: Request) -> Iterator[Any]:
    """The end is not counted: a step more is made for it when the limit is reached."""
    for number, token in enumerate(Generate.ids(self, toy, replace(request, max_tokens=request.max_tokens + 1))):
        if number == request.max_tokens and token not in request.eos:
            return
        yield token


def goes_on_for_one(self: Generate, toy: Toy, request: Request) -> Iterator[Any]:
    """Whether it was the end is looked at when the next id has come."""
    over = False
    for token in Generate.ids(self, toy, replace(request, eos=())):
        yield token
        if over:
            return
        over = token in request.eos


def end_counts_from_the_second(self: Generate, token: int, request: Request, number: int) -> bool:
    return number > 0 and token in request.eos


def limit_hides_the_end(self: Generate, token: int, request: Request, number: int) -> bool:
    return number < request.max_tokens - 1 and token in request.eos


def first_end_alone(self: Generate, token: int, request: Request, number: int) -> bool:
    return token in request.eos[:1]


def ends_in_16_bits(self: Generate, token: int, request: Request, number: int) -> bool:
    return token in [id & 0xFFFF for id in request.eos]


def four_ends_alone(self: Generate, token: int, request: Request, number: int) -> bool:
    return token in request.eos[:4]


def zero_is_none(self: Generate, token: int, request: Request, number: int) -> bool:
    """if token and …: an id of 0 is taken for none."""
    return bool(token) and Generate.stops(self, token, request, number)


def ends_modulo_2_to_16(self: Generate, token: int, request: Request, number: int) -> bool:
    return token % 2**16 in [id % 2**16 for id in request.eos]


def first_ends_alone(room: int) -> Any:
    """What is past a buffer of so many is cut off."""

    def stops(self: Generate, token: int, request: Request, number: int) -> bool:
        return token in request.eos[:room]

    return stops


def last_end_alone(self: Generate, token: int, request: Request, number: int) -> bool:
    return token in request.eos[-1:]


def all_ends_needed(self: Generate, token: int, request: Request, number: int) -> bool:
    return len(request.eos) == 1 and token in request.eos


def end_of_the_prompt(self: Generate, toy: Toy, request: Request) -> Iterator[Any]:
    """Stops are looked for in everything so far."""
    sequence = self.prompt(request)
    for token in Generate.ids(self, toy, request):
        if set(sequence) & set(request.eos):
            return
        yield token


def ends_of_the_first_64(self: Generate, token: int, request: Request, number: int) -> bool:
    """Ids are looked at as long as they are in a buffer of 64."""
    return number < 64 and token in request.eos


def no_first_after_a_long_prompt(self: Generate, token: int, request: Request, number: int) -> bool:
    """The id that comes of a prompt of several pieces is not looked at."""
    return token in request.eos and not (number == 0 and len(request.tokens) > 512)


def no_first_after_whole_pieces(size: int) -> Change:
    """Where the last piece of a prompt is a whole one, its id is given out before the loop that looks for ends."""

    def stops(self: Generate, token: int, request: Request, number: int) -> bool:
        return token in request.eos and not (number == 0 and len(request.tokens) % size == 0)

    return {"stops": stops}


def prompt_cut_at_the_end(self: Generate, request: Request) -> list[int]:
    prompt = Generate.prompt(self, request)
    cuts = [place for place, token in enumerate(prompt) if token in request.eos]
    return prompt[: cuts[0] + 1] if cuts else prompt


def one_for_none(self: Generate, request: Request) -> int:
    return max(request.max_tokens, 1)


def at_most_256(self: Generate, request: Request) -> int:
    return min(request.max_tokens, 256)


def stops_repeating(self: Generate, toy: Toy, request: Request) -> Iterator[Any]:
    came: list[Any] = []
    for token in Generate.ids(self, toy, request):
        came = [*came, token] if token in came else [token]
        if len(came) > 30:
            return
        yield token


def counts_the_prompt(self: Generate, request: Request) -> int:
    return max(request.max_tokens - len(request.tokens), 0)


def no_limit_below_zero(self: Generate, request: Request) -> int:
    return request.max_tokens if request.max_tokens >= 0 else 2**31


class GoesOn:
    """An iterator of its own that forgets that it has come to its end."""

    def __init__(self, loop: Generate, toy: Toy, request: Request) -> None:
        self.request = request
        endless = Request(**{**vars(request), "eos": ()})
        self.ids = Generate.ids(loop, toy, endless)

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        token = next(self.ids)
        if token in self.request.eos:
            raise StopIteration
        return token


def not_every_eighth(self: Generate, token: int, request: Request, number: int) -> bool:
    """Of the ids that one call makes, eight at a time, the last is not looked at."""
    return number % 8 != 7 and Generate.stops(self, token, request, number)
