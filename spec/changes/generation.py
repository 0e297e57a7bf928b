"""The steps that faults and honest variants have in the place of the oracle's: see `spec/faults/generation.py`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import ml_dtypes
import numpy as np

from inferspec.spec.contract import Arguments, Change, Operation
from inferspec.spec.ends import DROPPED, KEPT
from inferspec.spec.generation import (
    Generate,
)
from inferspec.spec.numerics import round_to
from inferspec.spec.toy import Toy, ToyCache
from inferspec.spec.watch import Request

Rows = np.ndarray


def _memory(operation: Operation) -> dict[Any, Any]:
    """A store that outlives calls, as a module's or a default argument does."""
    return type(operation).__dict__.get("store") or _stored(type(operation))


def _stored(operation: type[Operation]) -> dict[Any, Any]:
    operation.store = {"fresh": True}  # type: ignore[attr-defined]
    return operation.store  # type: ignore[attr-defined]


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


def kept_for_later(self: Generate, toy: Toy, request: Request) -> ToyCache | None:
    """The last request's cache serves a prompt that begins alike, with all that it holds."""
    if not request.cache:
        return None
    kept = getattr(toy, "kept", None)
    tokens = [int(token) for token in request.tokens]
    if kept is None or kept[0][:1] != tokens[:1]:
        kept = (tokens, toy.make_cache())
        toy.kept = kept  # type: ignore[attr-defined]
    return kept[1]


# which id


def first_position(self: Generate, rows: Rows) -> Rows:
    return rows[0]


def position_before(self: Generate, rows: Rows) -> Rows:
    return rows[-2] if len(rows) > 1 else rows[-1]


def flat(self: Generate, rows: Rows, request: Request) -> int:
    if request.sampler:
        return Generate.choose(self, rows, request)
    return int(np.argmax(rows)) % rows.shape[1]


def mean_position(self: Generate, rows: Rows) -> Rows:
    return rows.mean(axis=0)


def highest_of_equals(self: Generate, row: Rows) -> int:
    return int(len(row) - 1 - np.argmax(row[::-1]))


def lowest_logit(self: Generate, row: Rows) -> int:
    return int(np.argmin(row))


def in_eight_bits(self: Generate, row: Rows) -> int:
    return int(np.argmax(row.astype(ml_dtypes.float8_e4m3fn).astype(np.float64)))


def in_bfloat16(self: Generate, row: Rows) -> int:
    return int(np.argmax(round_to(row, "bfloat16").astype(np.float64)))


def sampler_sees_all(self: Generate, rows: Rows, request: Request) -> int:
    return request.sampler(rows) if request.sampler else self.greedy(self.last(rows))


def sampler_sees_batch(self: Generate, rows: Rows, request: Request) -> int:
    return request.sampler(self.last(rows)[None]) if request.sampler else self.greedy(self.last(rows))


def sampler_sees_probabilities(self: Generate, row: Rows, request: Request) -> int:
    if request.sampler is None:
        return self.greedy(row)
    weights = np.exp(row - row.max())
    return request.sampler(weights / weights.sum())


def sampler_sees_temperature(self: Generate, row: Rows, request: Request) -> int:
    return request.sampler(row / 0.7) if request.sampler else self.greedy(row)


def sampler_sees_less(self: Generate, row: Rows, request: Request) -> int:
    return request.sampler(row[:-1]) if request.sampler else self.greedy(row)


def sampled_at_every_position(self: Generate, rows: Rows, request: Request) -> int:
    if request.sampler is None:
        return self.greedy(self.last(rows))
    return [request.sampler(row) for row in rows][-1]


def sampled_twice(self: Generate, row: Rows, request: Request) -> int:
    if request.sampler is None:
        return self.greedy(row)
    request.sampler(row)
    return request.sampler(row)


def sampler_forgotten(self: Generate, row: Rows, request: Request) -> int:
    return self.greedy(row)


def of_whole_tiles(tile: int) -> Callable[[Generate, np.ndarray], int]:
    """The largest logit of whole tiles, or of all where there is none."""
    return lambda self, row: Generate.greedy(self, row[: len(row) // tile * tile or len(row)])


def first_id_greedy(self: Generate, rows: Rows, request: Request) -> int:
    return self.greedy(self.last(rows)) if len(rows) > 1 else Generate.choose(self, rows, request)


def feeds_greedy_back(self: Generate, toy: Toy, request: Request) -> Iterator[Any]:
    sequence, cache, fed = self.prompt(request), self.cache(toy, request), 0
    for number in range(self.limit(request)):
        rows = self.forward(toy, sequence, fed, cache)
        fed = len(sequence)
        token = self.choose(rows, request)
        if self.stops(token, request, number):
            return
        yield token
        sequence.append(self.greedy(self.last(rows)))


# when it ends


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


def large(wrong: Callable[[Generate, np.ndarray], int]) -> Change:
    """A path for large vocabularies alone has the mistake."""
    return {"greedy": lambda self, row: wrong(self, row) if len(row) > 8192 else Generate.greedy(self, row)}


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


def no_limit_below_zero(self: Generate, request: Request) -> int:
    return request.max_tokens if request.max_tokens >= 0 else 2**31


def late(self: Generate, request: Request) -> None:
    """Nothing is checked at the start."""


def checks_after_prefill(check: str) -> Change:
    def ids(self: Generate, toy: Toy, request: Request) -> Iterator[Any]:
        toy(self.prompt(request) or [0], self.cache(toy, request))
        getattr(Generate, check)(self, request)
        yield from Generate.ids(self, toy, request)

    return {check: late, "ids": ids}


def in_bits(bits: int) -> Any:
    return lambda self, token: token & (2**bits - 1)


def signed_16(self: Generate, token: int) -> int:
    return (token + 2**15) % 2**16 - 2**15


def prompt_in_bits(self: Generate, request: Request) -> list[int]:
    return [token & 0xFF for token in Generate.prompt(self, request)]


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
