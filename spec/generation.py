"""Generation: the loop from a prompt to a stream of ids, and from a stream of ids to text.

`generate(model, tokens, *, max_tokens, eos=(), sampler=None, cache=True)` is an iterator of ids: greedy, or what
`sampler(logits: V) -> id` says; logits may be 1×V, and the id then an array of 1. A model is `model(tokens: B×L, cache=None) -> logits B×L×V` with `model.make_cache()`.
Here it is the toy model (`spec/toy.py`), so that a contract of the loop needs no weights. Where no limit of 0 is taken,
`zero_max_tokens: [False]` in the envelope says so; where room for all ids is made beforehand, `max_tokens: 4096` does; where a sampler is taken
without a cache alone, `sampled_caches: [False]`; where it has to return an array, `samplers: ["none", "array"]`; where the
id that ends the ids is the last of them, as Hugging Face's generate has it, `ends: ["kept"]`; where `eos` is one id, which is
seen, `eos_as: ["id"]` (`spec/ends.py`).

`eos` is a tuple or a list of ids, or one id of who takes no others, and logits are finite, or -inf for what must not come. Left open: other kinds of `eos`, logits of NaN
or +inf, and what becomes of the cache where the caller's program is interrupted within the model.

`StreamingDetokenizer(pieces)` turns ids into text as they come: `add(id) -> str`, at the end `finish() -> str`.

Source: the tiny-llm course, week 1 day 6 and week 2 day 1; mlx-lm's `generate_step` and detokenizers.
"""

from __future__ import annotations

import codecs
import contextlib
import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np

from inferspec.spec.contract import (
    STORY,
    Answer,
    Answers,
    Arguments,
    Aspect,
    Beside,
    Contract,
    Level,
    Operation,
    Requirement,
    Signature,
)
from inferspec.spec.ends import ENDS, EOS_AS, ONE_ID, left_of
from inferspec.spec.numerics import Precision
from inferspec.spec.toy import Toy, ToyCache
from inferspec.spec.watch import Ranks, Request, watch

COURSE = "tiny-llm course, week 1 day 6"
CACHED = "tiny-llm course, week 2 day 1"
DETOKENIZERS = "mlx-lm, StreamingDetokenizer; Unicode 16, section 3.9"


def requests_of(a: Arguments, is_array: Callable[[Any], bool] = lambda x: isinstance(x, np.ndarray)) -> list[Request]:
    """The requests of a call: the first, and that of `beside`, each with a sampler of its own."""
    ranks = a.sampler["ranks"] if a.sampler else None
    tokens = a.tokens if is_array(a.tokens) else list(a.tokens)
    if a.overwrite and isinstance(tokens, np.ndarray):
        # The call's own is not to change.
        tokens = tokens.copy()
    ends = list(a.eos) if a.overwrite == "ends" else tuple(a.eos)
    first = Request(tokens, a.max_tokens, ends, Ranks(ranks) if ranks else None, a.cache, ends=a.ends)
    if not a.beside:
        return [first]
    own = {name: a.beside[name] for name in ("max_tokens", "eos") if name in a.beside}
    other = a.beside["tokens"]
    more = replace(first, tokens=other if is_array(other) else list(other), **own, name="beside")
    return [first, replace(more, sampler=Ranks(ranks) if ranks else None)]


class Generate(Operation):
    """The loop. Besides the contract's own arguments a call says how the kit consumes the iterator.

    model: vocab_size, salt, rival and dtype of a toy model, and whether it is barred (see `Toy`); sampler: None, or ranks (see
    `Ranks`) and the form of what the sampler returns ("int", "array"); until: how many ids the consumer takes before it closes the iterator, None:
    all; beside: tokens and max_tokens of a second request to the same model, and its eos where that is another; order:
    "turns", one id of each in turn, or "after"; seen: what is looked at (see `watch`); fails: who ("model", "sampler")
    raises which error when it was used how often (`toy.Fuse`); overwrite: once the first id is out, the caller changes
    its tokens, or with "ends" its list of end-of-sequence ids; ends: what becomes of the one that comes;
    eos_as: how they are given (`spec/ends.py`).
    """

    signature = Signature.parse(
        "generate(model, tokens, max_tokens, eos=(), sampler=None, cache=True,"
        " until=None, beside=None, order='turns', seen=('ids',), fails=None, overwrite=False, ends='dropped', eos_as='ids')"
    )
    parts = STORY
    either: ClassVar = {"ends": ("GEN-06", "GEN-07")}
    narrows: ClassVar = {
        "eos": ("stops", (0,)),
        "sampler": ("samplers", ("none",)),
        "cache": ("caches", (True,)),
    }

    def evaluate(self, a: Arguments, precision: Precision) -> Answers:
        """Budget: none, ids are ids."""
        toy = Toy.of(a.model)
        seen = watch(lambda request: self.stream(toy, request), toy, requests_of(a), a)
        return {name: exactly(value) for name, value in seen.items()}

    def part_dtype(self, part: str, a: Arguments) -> str:
        return "int64"

    def stream(self, toy: Toy, request: Request) -> Iterator[Any]:
        """The iterator that the caller gets."""
        self.check(request)
        return self.ids(toy, self.taken(request))

    def taken(self, request: Request) -> Request:
        """The request as it was made: the caller's list of ends stays out of it."""
        return replace(request, eos=tuple(request.eos))

    def check(self, request: Request) -> None:
        self.check_prompt(request)
        self.check_rank(request)
        self.check_limit(request)

    def check_prompt(self, request: Request) -> None:
        if not len(request.tokens):
            raise ValueError("the prompt is empty")

    def check_rank(self, request: Request) -> None:
        if np.ndim(request.tokens) != 1:
            raise ValueError(f"tokens have {np.ndim(request.tokens)} axes, not 1")

    def check_limit(self, request: Request) -> None:
        if request.max_tokens < 0:
            raise ValueError(f"max_tokens is {request.max_tokens}")

    def ids(self, toy: Toy, request: Request) -> Iterator[Any]:
        sequence = self.prompt(request)
        cache, fed = self.cache(toy, request), 0
        for number in range(self.limit(request)):
            rows = self.forward(toy, sequence, fed, cache)
            fed = len(sequence)
            token = self.choose(rows, request)
            if self.stops(token, request, number):
                yield from map(self.out, left_of(token, request.ends))
                return
            yield self.out(token)
            sequence.append(self.back(token))

    def prompt(self, request: Request) -> list[int]:
        """The tokens to go on from."""
        return [int(token) for token in np.ravel(request.tokens)]

    def cache(self, toy: Toy, request: Request) -> ToyCache | None:
        return toy.make_cache() if request.cache else None

    def limit(self, request: Request) -> int:
        return request.max_tokens

    def forward(self, toy: Toy, sequence: list[int], fed: int, cache: ToyCache | None) -> np.ndarray:
        """Feed the model what it has not seen, or everything where there is no cache."""
        return toy(sequence if cache is None else sequence[fed:], cache)

    def choose(self, rows: np.ndarray, request: Request) -> int:
        return self.pick(self.last(rows), request)

    def last(self, rows: np.ndarray) -> np.ndarray:
        """The logits that decide."""
        return rows[-1]

    def pick(self, row: np.ndarray, request: Request) -> int:
        return request.sampler(row) if request.sampler else self.greedy(row)

    def greedy(self, row: np.ndarray) -> int:
        return int(np.argmax(row))

    def stops(self, token: int, request: Request, number: int) -> bool:
        """Whether the id that was just chosen, the number-th, ends the stream."""
        return token in request.eos

    def out(self, token: int) -> Any:
        """The id as the caller gets it."""
        return token

    def back(self, token: int) -> int:
        """The id as the model gets it."""
        return token


def exactly(value: Any) -> Answer:
    """An answer of whole numbers."""
    value = np.asarray(value, np.float64)
    return Answer(value, np.zeros(value.shape))


class StreamingDetokenizer(Operation):
    """Ids to text, as they come. pieces: the bytes of each id; beside: further ids, for a second stream in turn with
    the first; stray: before which of the ids, from 0, one comes that is not in the table, whose refusal the caller takes; tries:
    how often it comes; seen: "text", the code points of everything, "shown", how many of them were out after each id, or
    "beside", the code points of the second stream."""

    signature = Signature.parse("StreamingDetokenizer(pieces)(tokens, beside=(), stray=None, tries=1, seen=('text',))")
    parts = STORY
    texts = frozenset({"text", "beside"})
    methods = ("add", "finish")
    takes: ClassVar = {"add": ("token",), "finish": ()}
    beside = (Beside("StreamingDetokenizer"),)

    def guard(self, a: Arguments) -> None:
        for token in (*a.tokens, *a.beside):
            if not 0 <= token < len(a.pieces):
                raise ValueError(f"{token} is not one of {len(a.pieces)} ids")

    def evaluate(self, a: Arguments, precision: Precision) -> Answers:
        return {name: exactly(value) for name, value in listen(self.open(a.pieces), self.open(a.pieces), a).items()}

    def part_dtype(self, part: str, a: Arguments) -> str:
        return "int64"

    def open(self, pieces: Sequence[bytes]) -> Detokenizer:
        """A new stream."""
        return Detokenizer(pieces)


class Detokenizer:
    """The oracle: bytes that are no UTF-8 become U+FFFD as Unicode recommends, one for each maximal part."""

    def __init__(self, pieces: Sequence[bytes]) -> None:
        self.pieces = pieces
        self.decoder = codecs.getincrementaldecoder("utf-8")("replace")

    def add(self, token: int) -> str:
        return self.decoder.decode(self.pieces[token])

    def finish(self) -> str:
        return self.decoder.decode(b"", final=True)


def listen(first: Any, second: Any, a: Arguments) -> dict[str, list[int]]:
    """Add the ids to a detokenizer, and those of `beside` in turn to another; return what `a.seen` names."""
    texts: list[str] = []
    others: list[str] = []
    for number, (token, other) in enumerate(itertools.zip_longest(a.tokens, a.beside)):
        if number == a.stray:
            for _ in range(a.tries):
                with contextlib.suppress(Exception):  # whether it is refused is the matter of TEXT-08
                    first.add(len(a.pieces))
        if token is not None:
            texts.append(first.add(token))
        if other is not None:
            others.append(second.add(other))
    shown = np.cumsum([len(text) for text in texts], dtype=int).tolist()
    texts.append(first.finish())
    others.append(second.finish())
    seen = {
        "text": [ord(character) for character in "".join(texts)],
        "shown": shown,
        "beside": [ord(character) for character in "".join(others)],
    }
    return {name: seen[name] for name in a.seen}


def _loop(
    id: str, text: str, level: Level = Level.MUST, aspect: Aspect = Aspect.VALUE, source: str = ""
) -> Requirement:
    return Requirement(id, text, "generate", level, aspect, source or COURSE)


def _text(
    id: str, text: str, level: Level = Level.MUST, aspect: Aspect = Aspect.VALUE, source: str = ""
) -> Requirement:
    return Requirement(id, text, "StreamingDetokenizer", level, aspect, source or DETOKENIZERS)


GEN_01 = _loop("GEN-01", "each id is the one that the model favours after all before it, prompt and ids alike")
GEN_02 = _loop("GEN-02", "without a cache the ids are the same, and the model is never given one")
GEN_03 = _loop(
    "GEN-03", "with a cache every token is fed exactly once, in order: the prompt, then each id", source=CACHED
)
GEN_04 = _loop(
    "GEN-04",
    "prompts of any length are right, of one token and beside the sizes in which prompts are fed, fed in pieces or whole",
    source="mlx-lm 5d10d9f2; PROPERTIES CP1",
)
GEN_05 = _loop(
    "GEN-05", "exactly max_tokens ids come out where nothing ends them sooner, none for 0", source="PROPERTIES CB3"
)
GEN_06 = _loop(
    "GEN-06",
    "an end-of-sequence id ends the ids, be it the first or at the limit: it is none of them, or the last of them where ends are"
    " declared to be kept",
    source="PROPERTIES CB3",
)
GEN_07 = _loop("GEN-07", "any of several end-of-sequence ids ends the ids", source="PROPERTIES CB3")
GEN_08 = _loop("GEN-08", "an end-of-sequence id in the prompt ends nothing", source="PROPERTIES CB3")
GEN_09 = _loop("GEN-09", "of equal logits the lowest id is taken", source="PROPERTIES, decisions")
GEN_10 = _loop(
    "GEN-10", "logits of the last position alone decide, in float32, float16 and bfloat16", source="vllm-metal d20dd02"
)
GEN_11 = _loop(
    "GEN-11", "the sampler is given the V logits of the last position, as V or as a batch of one, and nothing else"
)
GEN_12 = _loop(
    "GEN-12", "the sampler is asked once for each id, in order; its id, a number or an array, comes out and is fed back"
)
GEN_13 = _loop("GEN-13", "ids past 255, 32767 and 65535 come out as they are", source="PROPERTIES X8")
GEN_14 = _loop(
    "GEN-14", "ids stream: when one comes out, the model is at most one step past it", source="PROPERTIES ME3"
)
GEN_15 = _loop("GEN-15", "an id comes out before the step after it begins", Level.SHOULD, source="PROPERTIES ME1")
GEN_16 = _loop(
    "GEN-16",
    "no step is executed that no id needs: none after the last, none for max_tokens=0",
    Level.SHOULD,
    source="PROPERTIES CB5",
)
GEN_17 = _loop(
    "GEN-17",
    "two requests to one model, an id of each in turn, give what each gives alone",
    source="PROPERTIES CB1, CB4",
)
GEN_18 = _loop(
    "GEN-18",
    "a request after another to the same model, finished, failed or closed early, starts afresh",
    source="PROPERTIES CB4",
)
GEN_19 = _loop(
    "GEN-19", "tokens may be a list or an array of int32, int64 or uint32, a strided view too", source="PROPERTIES X1"
)
GEN_20 = _loop("GEN-20", "the caller's tokens are not changed", source="PROPERTIES X6")
GEN_21 = _loop(
    "GEN-21",
    "ids depend on the arguments alone: repeated, they are the same, whatever ran in between",
    source="PROPERTIES X7, X11",
)
GEN_22 = _loop(
    "GEN-22", "an empty prompt is refused before the model is called", aspect=Aspect.GUARD, source="PROPERTIES X9"
)
GEN_23 = _loop(
    "GEN-23",
    "a negative max_tokens is refused before the model is called",
    Level.SHOULD,
    Aspect.GUARD,
    source="PROPERTIES X9",
)
GEN_24 = _loop("GEN-24", "ids are Python integers", aspect=Aspect.DTYPE, source="PROPERTIES X4")
GEN_25 = _loop("GEN-25", "tokens of more than one axis are refused", Level.SHOULD, Aspect.GUARD, source="PROPERTIES X9")
GEN_26 = _loop(
    "GEN-26",
    "what the model or the sampler raises passes to the caller: it is no end of the ids",
    source="PROPERTIES CB2",
)
GEN_27 = _loop(
    "GEN-27",
    "the cache is let go when the ids end, also by an error, and when the caller stops early",
    source="PROPERTIES PG7",
)
GEN_28 = _loop(
    "GEN-28",
    "what the caller does to its tokens once the first id is out does not show",
    source="PROPERTIES X6",
)
GEN_29 = _loop(
    "GEN-29",
    "what the caller does to its list of end-of-sequence ids once the first id is out does not show",
    Level.SHOULD,
    source="PROPERTIES X6",
)
GEN_30 = _loop(
    "GEN-30",
    "nor is a StopIteration of the model or the sampler an end of the ids: it passes to the caller, as another error where it must",
    Level.SHOULD,
    source="PEP 479; PROPERTIES CB2",
)
GEN_31 = _loop(
    "GEN-31",
    "ids are the same in another thread than the one that loaded the generator",
    Level.SHOULD,
    source="https://github.com/ml-explore/mlx-lm/pull/1090; PROPERTIES X7",
)
TEXT_01 = _text(
    "TEXT-01", "the texts of all ids and of the end, joined, are the decoded bytes of all ids, control characters too"
)
TEXT_02 = _text("TEXT-02", "a character whose bytes are split over ids comes out whole, never as U+FFFD")
TEXT_03 = _text(
    "TEXT-03",
    "bytes that are no UTF-8 give U+FFFD, one for each maximal part, and lose nothing beside them; a real U+FFFD stays",
)
TEXT_04 = _text("TEXT-04", "the end gives what was held back, a cut-off character as U+FFFD")
TEXT_05 = _text("TEXT-05", "every character comes out with the id that completes it", Level.SHOULD)
TEXT_06 = _text(
    "TEXT-06",
    "spaces and line breaks stay where they are, at the start and before punctuation too; empty ids give nothing",
)
TEXT_07 = _text("TEXT-07", "two streams in turn do not mix", source="PROPERTIES CB4")
TEXT_08 = _text("TEXT-08", "an id outside the table is refused", Level.SHOULD, Aspect.GUARD, source="PROPERTIES X9")
TEXT_09 = _text(
    "TEXT-09",
    "an id that is refused changes nothing: what comes after it is as without it",
    Level.SHOULD,
    source="PROPERTIES X9, PG5",
)


CONTRACT = Contract(
    component="generation",
    title="generation: ids from a model, text from ids",
    version=1,
    operations=(Generate, StreamingDetokenizer),
    envelope={
        "dtypes": ("float32", "float16", "bfloat16"),
        "token_dtypes": ("int32", "int64", "uint32"),
        "prompts": ("list", "array"),
        "caches": (True, False),
        "samplers": ("none", "int", "array"),
        "sampled_caches": (True, False),
        "stops": (0, 1, 2, 3, 9),
        "ends": ENDS,
        "eos_as": EOS_AS,
        "zero_max_tokens": (True, False),
        "max_tokens": 2**40,
        "leading_spaces": (False, True),
        "control_characters": (False, True),
        "prompt": 2**14,
        "vocabulary": 262144,
    },
    requirements=tuple(value for value in list(globals().values()) if isinstance(value, Requirement)),
    alone=ONE_ID,
)
