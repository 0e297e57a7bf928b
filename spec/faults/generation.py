"""Mistakes in the loop of generation and in streaming detokenisation, and other honest ways to do both."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import ml_dtypes
import numpy as np

from inferspec.spec.contract import Arguments, Change, Fault, Operation, Variant
from inferspec.spec.faults.detokenizer import TEXT_FAULTS, TEXT_VARIANTS
from inferspec.spec.generation import (
    GEN_01,
    GEN_02,
    GEN_03,
    GEN_04,
    GEN_05,
    GEN_06,
    GEN_07,
    GEN_08,
    GEN_09,
    GEN_10,
    GEN_11,
    GEN_12,
    GEN_13,
    GEN_14,
    GEN_15,
    GEN_16,
    GEN_17,
    GEN_18,
    GEN_19,
    GEN_20,
    GEN_21,
    GEN_22,
    GEN_23,
    GEN_24,
    GEN_25,
    GEN_26,
    GEN_27,
    GEN_28,
    Generate,
)
from inferspec.spec.mistakes import ignores_strides
from inferspec.spec.numerics import round_to
from inferspec.spec.toy import Toy, ToyCache
from inferspec.spec.watch import Request

TIRED = "the kind of slip that tired hands make"
COURSE_CODE = "https://github.com/skyzh/tiny-llm"
MLX_LM = "https://github.com/ml-explore/mlx-lm"
VLLM_METAL = "https://github.com/vllm-project/vllm-metal"
SEEDS = "FACTS.md: seen in code written from the course"

Rows = np.ndarray


def _memory(operation: Operation) -> dict[Any, Any]:
    """A store that outlives calls, as a module's or a default argument does."""
    return type(operation).__dict__.get("store") or _stored(type(operation))


def _stored(operation: type[Operation]) -> dict[Any, Any]:
    operation.store = {"fresh": True}  # type: ignore[attr-defined]
    return operation.store  # type: ignore[attr-defined]


# what is fed


def _in_pieces(size: int, first: int = 0) -> Any:
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


def _all_but_one_first(self: Generate, toy: Toy, sequence: list[int], fed: int, cache: ToyCache | None) -> Rows:
    if cache is not None and len(sequence) - fed > 1:
        toy(sequence[fed:-1], cache)
        fed = len(sequence) - 1
    return Generate.forward(self, toy, sequence, fed, cache)


def _feeds(piece: Any) -> Change:
    """With a cache the model is fed `piece(sequence, fed)`."""

    def forward(self: Generate, toy: Toy, sequence: list[int], fed: int, cache: ToyCache | None) -> Rows:
        return toy(sequence if cache is None else piece(sequence, fed), cache)

    return {"forward": forward}


def _last_twice(sequence: list[int], fed: int) -> list[int]:
    return sequence[fed:] + (sequence[-1:] if fed == 0 else [])


def _prefill_then_last_again(self: Generate, toy: Toy, sequence: list[int], fed: int, cache: ToyCache | None) -> Rows:
    if cache is not None and fed == 0:
        toy(sequence, cache)
        return toy(sequence[-1:], cache)
    return Generate.forward(self, toy, sequence, fed, cache)


def _each_id_twice(sequence: list[int], fed: int) -> list[int]:
    return sequence[fed:] * (2 if fed else 1)


def _first_id_lost(self: Generate, toy: Toy, sequence: list[int], fed: int, cache: ToyCache | None) -> Rows:
    """The id that prefill gave comes out, but the second step is fed the last token of the prompt again."""
    if cache is not None and fed and len(cache.tokens) == fed and not hasattr(cache, "decoded"):
        cache.decoded = True  # type: ignore[attr-defined]
        return toy([sequence[fed - 1]], cache)
    return Generate.forward(self, toy, sequence, fed, cache)


def _stale_cache(self: Generate, toy: Toy, sequence: list[int], fed: int, cache: ToyCache | None) -> Rows:
    """Pieces past the first go to a cache that no later step reads."""
    if cache is None or len(sequence) - fed <= 64:
        return Generate.forward(self, toy, sequence, fed, cache)
    toy(sequence[fed : fed + 64], cache)
    return toy(sequence[fed + 64 :], toy.make_cache())


def _remainder_lost(self: Generate, toy: Toy, sequence: list[int], fed: int, cache: ToyCache | None) -> Rows:
    whole = (len(sequence) - fed) // 32 * 32
    piece = sequence[fed : fed + whole] if cache is not None and whole else sequence[fed:]
    return toy(sequence if cache is None else piece, cache)


def _window(size: int) -> Any:
    def prompt(self: Generate, request: Request) -> list[int]:
        return Generate.prompt(self, request)[-size:]

    return prompt


def _last_token_alone(self: Generate, toy: Toy, sequence: list[int], fed: int, cache: ToyCache | None) -> Rows:
    return toy(sequence[fed:], cache)


def _prompt_alone(self: Generate, toy: Toy, sequence: list[int], fed: int, cache: ToyCache | None) -> Rows:
    """Without a cache only the prompt and the last id are seen."""
    if cache is None and fed:
        prompt = getattr(self, "first_length", fed)
        self.first_length = prompt  # type: ignore[attr-defined]
        return toy(sequence[:prompt] + sequence[-1:], None)
    return Generate.forward(self, toy, sequence, fed, cache)


def _without(self: Generate, toy: Toy, request: Request) -> ToyCache | None:
    return None


def _always(self: Generate, toy: Toy, request: Request) -> ToyCache | None:
    return toy.make_cache()


def _shared_by_model(self: Generate, toy: Toy, request: Request) -> ToyCache | None:
    """The cache hangs on the model, for all its requests."""
    if not request.cache:
        return None
    if not hasattr(toy, "kept"):
        toy.kept = toy.make_cache()  # type: ignore[attr-defined]
    return toy.kept  # type: ignore[attr-defined]


def _kept_for_later(self: Generate, toy: Toy, request: Request) -> ToyCache | None:
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


def _first_position(self: Generate, rows: Rows) -> Rows:
    return rows[0]


def _position_before(self: Generate, rows: Rows) -> Rows:
    return rows[-2] if len(rows) > 1 else rows[-1]


def _flat(self: Generate, rows: Rows, request: Request) -> int:
    if request.sampler:
        return Generate.choose(self, rows, request)
    return int(np.argmax(rows)) % rows.shape[1]


def _mean_position(self: Generate, rows: Rows) -> Rows:
    return rows.mean(axis=0)


def _highest_of_equals(self: Generate, row: Rows) -> int:
    return int(len(row) - 1 - np.argmax(row[::-1]))


def _lowest_logit(self: Generate, row: Rows) -> int:
    return int(np.argmin(row))


def _in_eight_bits(self: Generate, row: Rows) -> int:
    return int(np.argmax(row.astype(ml_dtypes.float8_e4m3fn).astype(np.float64)))


def _in_bfloat16(self: Generate, row: Rows) -> int:
    return int(np.argmax(round_to(row, "bfloat16").astype(np.float64)))


def _sampler_sees_all(self: Generate, rows: Rows, request: Request) -> int:
    return request.sampler(rows) if request.sampler else self.greedy(self.last(rows))


def _sampler_sees_batch(self: Generate, rows: Rows, request: Request) -> int:
    return request.sampler(self.last(rows)[None]) if request.sampler else self.greedy(self.last(rows))


def _sampler_sees_probabilities(self: Generate, row: Rows, request: Request) -> int:
    if request.sampler is None:
        return self.greedy(row)
    weights = np.exp(row - row.max())
    return request.sampler(weights / weights.sum())


def _sampler_sees_temperature(self: Generate, row: Rows, request: Request) -> int:
    return request.sampler(row / 0.7) if request.sampler else self.greedy(row)


def _sampler_sees_less(self: Generate, row: Rows, request: Request) -> int:
    return request.sampler(row[:-1]) if request.sampler else self.greedy(row)


def _sampled_at_every_position(self: Generate, rows: Rows, request: Request) -> int:
    if request.sampler is None:
        return self.greedy(self.last(rows))
    return [request.sampler(row) for row in rows][-1]


def _sampled_twice(self: Generate, row: Rows, request: Request) -> int:
    if request.sampler is None:
        return self.greedy(row)
    request.sampler(row)
    return request.sampler(row)


def _sampler_forgotten(self: Generate, row: Rows, request: Request) -> int:
    return self.greedy(row)


def _first_id_greedy(self: Generate, rows: Rows, request: Request) -> int:
    return self.greedy(self.last(rows)) if len(rows) > 1 else Generate.choose(self, rows, request)


def _feeds_greedy_back(self: Generate, toy: Toy, request: Request) -> Iterator[Any]:
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


def _emits_the_end(self: Generate, toy: Toy, request: Request) -> Iterator[Any]:
    for token in Generate.ids(self, toy, Request(**{**vars(request), "eos": ()})):
        yield token
        if token in request.eos:
            return


def _end_counts_from_the_second(self: Generate, token: int, request: Request, number: int) -> bool:
    return number > 0 and token in request.eos


def _limit_hides_the_end(self: Generate, token: int, request: Request, number: int) -> bool:
    return number < request.max_tokens - 1 and token in request.eos


def _first_end_alone(self: Generate, token: int, request: Request, number: int) -> bool:
    return token in request.eos[:1]


def _ends_in_16_bits(self: Generate, token: int, request: Request, number: int) -> bool:
    return token in [id & 0xFFFF for id in request.eos]


def _four_ends_alone(self: Generate, token: int, request: Request, number: int) -> bool:
    return token in request.eos[:4]


def _last_end_alone(self: Generate, token: int, request: Request, number: int) -> bool:
    return token in request.eos[-1:]


def _all_ends_needed(self: Generate, token: int, request: Request, number: int) -> bool:
    return len(request.eos) == 1 and token in request.eos


def _end_of_the_prompt(self: Generate, toy: Toy, request: Request) -> Iterator[Any]:
    """Stops are looked for in everything so far."""
    sequence = self.prompt(request)
    for token in Generate.ids(self, toy, request):
        if set(sequence) & set(request.eos):
            return
        yield token


def _prompt_cut_at_the_end(self: Generate, request: Request) -> list[int]:
    prompt = Generate.prompt(self, request)
    cuts = [place for place, token in enumerate(prompt) if token in request.eos]
    return prompt[: cuts[0] + 1] if cuts else prompt


def _one_for_none(self: Generate, request: Request) -> int:
    return max(request.max_tokens, 1)


def _at_most_256(self: Generate, request: Request) -> int:
    return min(request.max_tokens, 256)


def _counts_the_prompt(self: Generate, request: Request) -> int:
    return max(request.max_tokens - len(request.tokens), 0)


# when it works


def _all_at_once(self: Generate, toy: Toy, request: Request) -> Iterator[Any]:
    return iter(list(Generate.ids(self, toy, request)))


def _ahead_by(steps: int, wasteful: bool = False) -> Any:
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


def _one_more_step(self: Generate, toy: Toy, request: Request) -> Iterator[Any]:
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


def _step_after_the_end(self: Generate, toy: Toy, request: Request) -> Iterator[Any]:
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


def _prefills_for_nothing(self: Generate, toy: Toy, request: Request) -> Iterator[Any]:
    if request.max_tokens == 0:
        self.forward(toy, self.prompt(request), 0, self.cache(toy, request))
    return Generate.ids(self, toy, request)


# arguments


def _list_grows(self: Generate, toy: Toy, request: Request) -> Iterator[Any]:
    for token in Generate.ids(self, toy, request):
        yield token
        if isinstance(request.tokens, list):
            request.tokens.append(token)


def _overwrites() -> Change:
    def respond(self: Operation, a: Arguments) -> Any:
        result = Operation.respond(self, a)
        if isinstance(a.tokens, np.ndarray) and a.tokens.flags.writeable:
            a.tokens[...] = 0
        return result

    return {"respond": respond}


def _remembers_the_prompt(self: Generate, request: Request) -> list[int]:
    """Prompts are kept by their length."""
    prompt = Generate.prompt(self, request)
    return list(_memory(self).setdefault(len(prompt), prompt))


def _counts_on(self: Generate, request: Request) -> int:
    """What the last request left of its limit is taken off the next."""
    used = _memory(self).get("used", 0)
    _memory(self)["used"] = used + 1
    return request.max_tokens - (1 if used and request.max_tokens > 1 else 0)


def _nothing_from_nothing(self: Generate, toy: Toy, request: Request) -> Iterator[Any]:
    return iter(()) if not len(request.tokens) else Generate.ids(self, toy, request)


def _begins_with_zero(self: Generate, request: Request) -> list[int]:
    return Generate.prompt(self, request) or [0]


def _no_limit_below_zero(self: Generate, request: Request) -> int:
    return request.max_tokens if request.max_tokens >= 0 else 2**31


def _late(self: Generate, request: Request) -> None:
    """Nothing is checked at the start."""


def _checks_after_prefill(check: str) -> Change:
    def ids(self: Generate, toy: Toy, request: Request) -> Iterator[Any]:
        toy(self.prompt(request) or [0], self.cache(toy, request))
        getattr(Generate, check)(self, request)
        yield from Generate.ids(self, toy, request)

    return {check: _late, "ids": ids}


def _in_bits(bits: int) -> Any:
    return lambda self, token: token & (2**bits - 1)


def _signed_16(self: Generate, token: int) -> int:
    return (token + 2**15) % 2**16 - 2**15


def _prompt_in_bits(self: Generate, request: Request) -> list[int]:
    return [token & 0xFF for token in Generate.prompt(self, request)]


def _first_row(self: Generate, request: Request) -> list[int]:
    return [int(token) for token in np.asarray(request.tokens).reshape(-1, np.shape(request.tokens)[-1])[0]]


# what goes wrong, and the caller


def _an_error_ends(who: str, error: type[Exception] = Exception) -> Change:
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


def _greedy_instead(self: Generate, row: Rows, request: Request) -> int:
    """A sampler that fails gives way to the largest logit."""
    try:
        return Generate.pick(self, row, request)
    except Exception:
        return self.greedy(row)


def _tried_again(self: Generate, toy: Toy, sequence: list[int], fed: int, cache: ToyCache | None) -> Rows:
    """A model that fails is asked once more."""
    try:
        return Generate.forward(self, toy, sequence, fed, cache)
    except RuntimeError:
        return Generate.forward(self, toy, sequence, fed, cache)


def _held(self: Generate, toy: Toy, request: Request) -> ToyCache | None:
    """A table holds the cache of every request."""
    cache = Generate.cache(self, toy, request)
    _memory(self).setdefault("held", []).append(cache)
    return cache


def _held_when_stopped_early(self: Generate, toy: Toy, request: Request) -> Iterator[Any]:
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


class _GoesOn:
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


def _reads_the_callers(self: Generate, toy: Toy, request: Request) -> Iterator[Any]:
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


FAULTS: tuple[Fault, ...] = (
    Fault("generation-least-likely", "the least likely id is taken", GEN_01, {"greedy": _lowest_logit}, TIRED),
    Fault(
        "generation-prompt-forgotten",
        "with a cache, only the prompt's last token is fed",
        GEN_01,
        _feeds(lambda sequence, fed: sequence[-1:]),
        SEEDS,
    ),
    Fault(
        "generation-no-cache-last-token",
        "without a cache each step sees the newest token alone",
        GEN_02,
        {"forward": _last_token_alone},
        COURSE_CODE,
    ),
    Fault(
        "generation-cache-always",
        "cache=False is ignored: a cache is used all the same",
        GEN_02,
        {"cache": _always},
        "PROPERTIES X13",
    ),
    Fault(
        "generation-no-cache-gap",
        "without a cache each step sees the prompt and the newest id, not those between",
        GEN_02,
        {"forward": _prompt_alone},
        TIRED,
    ),
    Fault(
        "generation-refeeds-prompt",
        "the whole sequence is fed again each step, into the cache that holds it already",
        GEN_03,
        _feeds(lambda sequence, fed: sequence),
        SEEDS,
    ),
    Fault(
        "generation-last-prompt-token-twice",
        "prefill feeds the whole prompt, and the first step its last token again",
        GEN_03,
        {"forward": _prefill_then_last_again},
        "https://github.com/skyzh/tiny-llm/commit/1fc0752 (the offset past the prompt)",
    ),
    Fault(
        "generation-last-token-doubled",
        "the last token of the prompt is fed twice in one call",
        GEN_03,
        _feeds(_last_twice),
        TIRED,
    ),
    Fault("generation-ids-twice", "each new id is fed twice", GEN_03, _feeds(_each_id_twice), TIRED),
    Fault(
        "generation-first-id-lost",
        "the first id comes out but never reaches the cache: the prompt's last token goes in its place",
        GEN_03,
        {"forward": _first_id_lost},
        "https://github.com/skyzh/tiny-llm/commit/05972ff (a token of a request lost)",
    ),
    Fault(
        "generation-cache-ignored",
        "the cache is made and never used",
        GEN_03,
        {"cache": _without},
        SEEDS,
    ),
    Fault(
        "generation-stale-cache",
        "pieces of a prompt past the first go into another cache",
        GEN_04,
        {"forward": _stale_cache},
        f"{MLX_LM}/commit/5d10d9f2",
    ),
    Fault(
        "generation-remainder-lost",
        "the last piece of a prompt is dropped when it is not a whole one",
        GEN_04,
        {"forward": _remainder_lost},
        f"{MLX_LM}/commit/cd367819",
    ),
    Fault(
        "generation-prompt-cut",
        "only the last 512 tokens of a prompt are fed",
        GEN_04,
        {"prompt": _window(512)},
        f"{VLLM_METAL}/commit/dc602da (prompts past the budget)",
    ),
    Fault(
        "generation-prompt-cut-at-2048",
        "only the last 2048 tokens of a prompt are fed",
        GEN_04,
        {"prompt": _window(2048)},
        f"{MLX_LM}/commit/5d10d9f2 (its default piece)",
    ),
    Fault(
        "generation-one-too-few",
        "the last id is lost",
        GEN_05,
        {"limit": lambda self, request: max(request.max_tokens - 1, 0)},
        "https://github.com/skyzh/tiny-llm/commit/05972ff",
    ),
    Fault(
        "generation-one-too-many",
        "the limit is exclusive: one more id comes out",
        GEN_05,
        {"limit": lambda self, request: request.max_tokens + 1},
        "PROPERTIES CB3",
    ),
    Fault(
        "generation-at-most-256",
        "no more than 256 ids come out, the size of a buffer",
        GEN_05,
        {"limit": _at_most_256},
        TIRED,
    ),
    Fault(
        "generation-one-for-none",
        "the first id comes out although none was asked for",
        GEN_05,
        {"limit": _one_for_none},
        SEEDS,
    ),
    Fault(
        "generation-limit-with-prompt",
        "max_tokens counts the prompt too",
        GEN_05,
        {"limit": _counts_the_prompt},
        "https://github.com/mirage-project/mirage/issues/382 (the same confusion)",
    ),
    Fault(
        "generation-emits-eos", "the end-of-sequence id comes out", GEN_06, {"ids": _emits_the_end}, "PROPERTIES CB3"
    ),
    Fault(
        "generation-eos-never-first",
        "the first id is not looked at: an end of sequence there goes on",
        GEN_06,
        {"stops": _end_counts_from_the_second},
        "FACTS.md: the course's loop at an end of sequence as the first token",
    ),
    Fault(
        "generation-eos-at-the-limit",
        "the last id is not looked at: an end of sequence there comes out",
        GEN_06,
        {"stops": _limit_hides_the_end},
        TIRED,
    ),
    Fault(
        "generation-eos-ignored",
        "nothing ends the ids but the limit",
        GEN_06,
        {"stops": lambda self, token, request, number: False},
        TIRED,
    ),
    Fault(
        "generation-four-eos-alone",
        "of many end-of-sequence ids only the first four count",
        GEN_07,
        {"stops": _four_ends_alone},
        TIRED,
    ),
    Fault(
        "generation-eos-in-16-bits",
        "end-of-sequence ids are kept in 16 bits",
        GEN_06,
        {"stops": _ends_in_16_bits},
        "PROPERTIES X8",
    ),
    Fault(
        "generation-first-eos-alone",
        "of several end-of-sequence ids only the first counts",
        GEN_07,
        {"stops": _first_end_alone},
        "config.json of Llama 3 and Qwen3 has lists",
    ),
    Fault(
        "generation-last-eos-alone",
        "of several end-of-sequence ids only the last counts",
        GEN_07,
        {"stops": _last_end_alone},
        TIRED,
    ),
    Fault(
        "generation-list-of-eos-ignored",
        "an id is compared with the list of end-of-sequence ids, which it never equals",
        GEN_07,
        {"stops": _all_ends_needed},
        TIRED,
    ),
    Fault(
        "generation-eos-of-the-prompt",
        "stops are looked for in the prompt too",
        GEN_08,
        {"ids": _end_of_the_prompt},
        "PROPERTIES CB3",
    ),
    Fault(
        "generation-prompt-ends-at-eos",
        "the prompt is cut after its first end-of-sequence id",
        GEN_08,
        {"prompt": _prompt_cut_at_the_end},
        TIRED,
    ),
    Fault(
        "generation-highest-of-equals",
        "of equal logits the highest id is taken",
        GEN_09,
        {"greedy": _highest_of_equals},
        "https://github.com/vllm-project/vllm/pull/50979 (ties by path)",
    ),
    Fault(
        "generation-first-position",
        "the logits of the first position decide",
        GEN_10,
        {"last": _first_position},
        f"{VLLM_METAL}/commit/d20dd02",
    ),
    Fault(
        "generation-position-before",
        "the logits of the position before the last decide",
        GEN_10,
        {"last": _position_before},
        TIRED,
    ),
    Fault(
        "generation-argmax-of-all",
        "the largest logit of all positions decides",
        GEN_10,
        {"choose": _flat},
        "https://github.com/skyzh/tiny-llm/commit/05972ff (a reduction without axis)",
    ),
    Fault("generation-mean-position", "the mean over positions decides", GEN_10, {"last": _mean_position}, TIRED),
    Fault(
        "generation-logits-in-bfloat16",
        "logits are rounded to bfloat16 first",
        GEN_10,
        {"greedy": _in_bfloat16},
        "https://github.com/ml-explore/mlx-lm/pull/1912 (filters in bfloat16)",
    ),
    Fault(
        "generation-logits-in-eight-bits",
        "logits are rounded to 8 bits first",
        GEN_10,
        {"greedy": _in_eight_bits},
        "PROPERTIES X5",
    ),
    Fault(
        "generation-sampler-sees-all",
        "the sampler is given the logits of all positions",
        GEN_11,
        {"choose": _sampler_sees_all},
        SEEDS,
    ),
    Fault(
        "generation-sampler-sees-batch",
        "the sampler is given a batch axis",
        GEN_11,
        {"choose": _sampler_sees_batch},
        f"{MLX_LM}/commit/2922cb4f (samplers of one row)",
    ),
    Fault(
        "generation-sampler-sees-probabilities",
        "the sampler is given probabilities",
        GEN_11,
        {"pick": _sampler_sees_probabilities},
        "https://github.com/skyzh/tiny-llm/commit/13295fc (probabilities and their logarithms)",
    ),
    Fault(
        "generation-sampler-sees-temperature",
        "the sampler is given logits that were scaled already",
        GEN_11,
        {"pick": _sampler_sees_temperature},
        TIRED,
    ),
    Fault(
        "generation-sampler-sees-less",
        "the sampler is not given the last id's logit",
        GEN_11,
        {"pick": _sampler_sees_less},
        TIRED,
    ),
    Fault(
        "generation-samples-the-prompt",
        "the sampler is asked at every position of the prompt",
        GEN_12,
        {"choose": _sampled_at_every_position},
        "PROPERTIES SA9",
    ),
    Fault(
        "generation-samples-twice",
        "the sampler is asked twice for each id",
        GEN_12,
        {"pick": _sampled_twice},
        "PROPERTIES SA9",
    ),
    Fault(
        "generation-sampler-forgotten",
        "the sampler is not asked",
        GEN_12,
        {"pick": _sampler_forgotten},
        "PROPERTIES X13",
    ),
    Fault(
        "generation-first-id-greedy",
        "the id that prefill gives is greedy, whatever the sampler",
        GEN_12,
        {"choose": _first_id_greedy},
        TIRED,
    ),
    Fault(
        "generation-feeds-greedy-back",
        "what is fed back is the most likely id, not the one that came out",
        GEN_12,
        {"ids": _feeds_greedy_back},
        TIRED,
    ),
    Fault("generation-uint8-ids", "ids come out in 8 bits", GEN_13, {"out": _in_bits(8)}, "PROPERTIES PC3"),
    Fault("generation-uint16-ids", "ids come out in 16 bits", GEN_13, {"out": _in_bits(16)}, "PROPERTIES X8"),
    Fault("generation-int16-ids", "ids past 32767 come out negative", GEN_13, {"out": _signed_16}, "PROPERTIES X8"),
    Fault("generation-uint16-fed", "ids are fed back in 16 bits", GEN_13, {"back": _in_bits(16)}, "PROPERTIES X8"),
    Fault(
        "generation-uint8-prompt", "the prompt is read in 8 bits", GEN_13, {"prompt": _prompt_in_bits}, "PROPERTIES PC3"
    ),
    Fault(
        "generation-not-lazy",
        "all ids are made before the first comes out",
        GEN_14,
        {"ids": _all_at_once},
        "PROPERTIES ME3",
    ),
    Fault("generation-three-late", "ids come out three steps late", GEN_14, {"ids": _ahead_by(3)}, "PROPERTIES ME3"),
    Fault(
        "generation-one-late",
        "each id comes out after the step that follows it",
        GEN_15,
        {"ids": _ahead_by(1)},
        f"{MLX_LM}, generate_step (on purpose, to keep a GPU busy)",
    ),
    Fault(
        "generation-step-after-the-limit",
        "a step is executed whose id no one asked for",
        GEN_16,
        {"ids": _one_more_step},
        f"{MLX_LM}/issues/226",
    ),
    Fault(
        "generation-step-after-eos",
        "the end-of-sequence id is fed before it is noticed",
        GEN_16,
        {"ids": _step_after_the_end},
        "PROPERTIES CB5",
    ),
    Fault(
        "generation-prefills-for-nothing",
        "the prompt is fed although no id is asked for",
        GEN_16,
        {"ids": _prefills_for_nothing},
        "PROPERTIES CB5",
    ),
    Fault(
        "generation-cache-of-the-model",
        "one cache hangs on the model and serves all requests",
        GEN_17,
        {"cache": _shared_by_model},
        f"{MLX_LM}/commit/23af8570",
    ),
    Fault(
        "generation-cache-kept",
        "a prompt that begins like the last one goes on in its cache, whatever else that holds",
        GEN_18,
        {"cache": _kept_for_later},
        f"{VLLM_METAL}/commit/b213b8b",
    ),
    Fault(
        "generation-token-strides",
        "tokens are read as if they were contiguous",
        GEN_19,
        ignores_strides("tokens"),
        "PROPERTIES X1",
    ),
    Fault("generation-list-grows", "ids are appended to the caller's list", GEN_20, {"ids": _list_grows}, SEEDS),
    Fault("generation-changes-tokens", "the caller's array is overwritten", GEN_20, _overwrites(), "PROPERTIES X6"),
    Fault(
        "generation-remembers-prompt",
        "a prompt kept by its length serves others",
        GEN_21,
        {"prompt": _remembers_the_prompt},
        "https://github.com/flashinfer-ai/flashinfer/commit/82784bb11",
    ),
    Fault("generation-counts-on", "a counter outlives the request", GEN_21, {"limit": _counts_on}, "PROPERTIES X7"),
    Fault(
        "generation-nothing-from-nothing",
        "an empty prompt gives no ids and no error",
        GEN_22,
        {"check_prompt": _late, "ids": _nothing_from_nothing},
        "PROPERTIES X9",
    ),
    Fault(
        "generation-empty-is-zero",
        "an empty prompt is taken for id 0",
        GEN_22,
        {"check_prompt": _late, "prompt": _begins_with_zero},
        "PROPERTIES X9",
    ),
    Fault(
        "generation-empty-refused-late",
        "an empty prompt is refused when the model was called already",
        GEN_22,
        _checks_after_prefill("check_prompt"),
        "PROPERTIES X9",
    ),
    Fault(
        "generation-unlimited",
        "a negative max_tokens is no limit",
        GEN_23,
        {"check_limit": _late, "limit": _no_limit_below_zero},
        f"{MLX_LM}, generate_step (documented there)",
    ),
    Fault(
        "generation-none-below-zero",
        "a negative max_tokens gives no ids and no error",
        GEN_23,
        {"check_limit": _late},
        "PROPERTIES X9",
    ),
    Fault(
        "generation-limit-refused-late",
        "a negative max_tokens is refused when the model was called already",
        GEN_23,
        _checks_after_prefill("check_limit"),
        "PROPERTIES X9",
    ),
    Fault(
        "generation-array-ids",
        "ids come out as arrays of no axes",
        GEN_24,
        {"out": lambda self, token: np.array(token)},
        COURSE_CODE,
    ),
    Fault("generation-float-ids", "ids come out as floats", GEN_24, {"out": lambda self, token: float(token)}, TIRED),
    Fault(
        "generation-flattens-batch", "a batch of prompts is read as one", GEN_25, {"check_rank": _late}, "PROPERTIES X9"
    ),
    Fault(
        "generation-first-of-batch",
        "of a batch of prompts the first is served",
        GEN_25,
        {"check_rank": _late, "prompt": _first_row},
        "PROPERTIES X3",
    ),
    Fault(
        "generation-model-error-ends",
        "an error of the model ends the ids",
        GEN_26,
        _an_error_ends("model"),
        "PROPERTIES CB2",
    ),
    Fault(
        "generation-sampler-error-ends",
        "a ValueError of the sampler ends the ids",
        GEN_26,
        _an_error_ends("sampler", ValueError),
        TIRED,
    ),
    Fault(
        "generation-greedy-without-sampler",
        "a sampler that raises gives way to the largest logit",
        GEN_26,
        {"pick": _greedy_instead},
        TIRED,
    ),
    Fault("generation-tries-again", "a model that fails is asked again", GEN_26, {"forward": _tried_again}, TIRED),
    Fault("generation-holds-caches", "a table holds every cache", GEN_27, {"cache": _held}, "PROPERTIES PG7"),
    Fault(
        "generation-holds-what-is-closed",
        "a table holds the caches of requests that were closed before their end",
        GEN_27,
        {"ids": _held_when_stopped_early},
        "PROPERTIES PG7",
    ),
    Fault(
        "generation-goes-on-past-the-end",
        "an iterator that came to its end gives an id when it is asked again",
        GEN_06,
        {"ids": lambda self, toy, request: _GoesOn(self, toy, request)},
        TIRED,
    ),
    Fault(
        "generation-limit-of-32-bits",
        "max_tokens is held in 32 bits",
        GEN_06,
        {"limit": lambda self, request: (request.max_tokens + 2**31) % 2**32 - 2**31},
        TIRED,
    ),
    Fault(
        "generation-reads-the-callers-tokens",
        "the prompt is read again for each id, as the caller has it by then",
        GEN_28,
        {"ids": _reads_the_callers},
        TIRED,
    ),
    *TEXT_FAULTS,
)

VARIANTS: tuple[Variant, ...] = (
    Variant(
        "generation-in-pieces-of-7", "the prompt is fed 7 tokens at a time", "generate", {"forward": _in_pieces(7)}
    ),
    Variant("generation-in-pieces-of-1", "every token is fed alone", "generate", {"forward": _in_pieces(1)}),
    Variant(
        "generation-in-pieces-of-512",
        "long prompts are fed 512 tokens at a time",
        "generate",
        {"forward": _in_pieces(512)},
    ),
    Variant(
        "generation-odd-first-piece",
        "a prompt's first piece is its smallest",
        "generate",
        {"forward": _in_pieces(64, 3)},
    ),
    Variant(
        "generation-all-but-one",
        "the prompt is fed but for its last token, which is the first step",
        "generate",
        {"forward": _all_but_one_first},
    ),
    *TEXT_VARIANTS,
)
