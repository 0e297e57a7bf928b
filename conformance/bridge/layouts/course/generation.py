"""`generate.simple_generate(model, tokenizer, prompt, sampler)` and `simple_generate_with_kv_cache`, which print what they generate.

They run to the end of the sequence in one go and hand every id to the tokenizer's detokenizer. That is where an id comes
out here: a tokenizer of our own holds them there until the next id is asked for. Whether the id that ends them is handed
over too was not said before July 2026 (`editions.py`): until then either is right.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from queue import SimpleQueue
from typing import Any

from inferspec.conformance.bridge.layouts import Offer
from inferspec.conformance.bridge.layouts.course.editions import is_of_july_2026
from inferspec.conformance.bridge.layouts.course.kv_cache import joins_axis_1, update
from inferspec.conformance.bridge.layouts.packages import Broken, NotOffered, Package, takes
from inferspec.spec.ends import KEEPING

END = 0
"""What a model of equal logits gives."""


class _Enough(BaseException):
    """No more ids are wanted; no `except Exception` of the course's code holds it up."""


class Tokenizer:
    """What the course's code uses of a tokenizer, its detokenizer included."""

    last_segment = text = eos_token = bos_token = ""
    bos_token_id = None

    def __init__(self, prompt: Sequence[int], eos: Sequence[int], out: Callable[[int], None]) -> None:
        self._prompt, self._out = prompt, out
        # Where nothing ends it: no id, and one that compares with arrays of unsigned numbers too.
        self.eos_token_id = eos[0] if eos else 2**31 - 1
        self.handed = 0
        self.eos_token_ids = self._eos_token_ids = set(eos)
        # Names of mlx-lm's wrapper that are its own, and that students and the course's batches have used.
        self.detokenizer = self._detokenizer = self._tokenizer = self

    def encode(self, prompt: str, add_special_tokens: bool = True) -> list[int]:
        return list(self._prompt)

    def reset(self) -> None:
        """A detokenizer begins anew."""

    def finalize(self) -> None:
        """A detokenizer gives what it held back."""

    def add_token(self, token: Any) -> None:
        self.handed += 1
        self._out(int(token))

    def decode(self, tokens: Any) -> str:
        return ""

    def most_uses(self) -> int:
        """Of the model, so far: one for each id of the prompt and each that came out, and some to spare."""
        return len(self._prompt) + self.handed + 16


class CourseModel:
    """A model of the contract as the course's: week 1 gives it tokens alone, week 2 an offset and a cache too."""

    num_hidden_layers = 1

    def __init__(self, own: Any, tokenizer: Tokenizer, adds_a_batch: bool = False) -> None:
        self._own, self._tokenizer, self._adds_a_batch = own, tokenizer, adds_a_batch
        self._uses = 0
        # id of a cache -> the cache itself, so that no other gets that id, and what stands for it.
        self._caches: dict[int, tuple[Any, Any]] = {}
        self._seen: dict[int, int] = {}

    def create_kv_cache(self) -> list[Any]:
        return [_Layer() for _ in range(self.num_hidden_layers)]

    def __call__(self, tokens: Any, offset: Any = None, cache: Any = None, logits_to_keep: Any = None) -> Any:
        import mlx.core as mx

        self._uses += 1
        if self._uses > self._tokenizer.most_uses():
            raise RuntimeError("the model is used on and on, and no id is handed to the detokenizer's add_token")
        ids = mx.array(tokens)
        # N..×S, as the text has it: without a batch too.
        logits = self._logits(ids.reshape(-1, ids.shape[-1]), offset, cache)
        logits = logits if logits_to_keep is None else logits[:, -logits_to_keep:]
        return logits if self._adds_a_batch else logits.reshape(*ids.shape[:-1], *logits.shape[-2:])

    def _logits(self, tokens: Any, offset: Any, cache: Any) -> Any:
        if cache is None:
            return self._own(tokens)
        if not len(cache):
            # As a student's model does that is handed no layer yet.
            cache.extend(self.create_kv_cache())
        if id(cache[0]) not in self._caches:
            self._caches[id(cache[0])] = cache[0], self._own.make_cache()
        own = self._caches[id(cache[0])][1]
        self._caught_up(own, cache)
        if int(offset) != own[0].offset:
            raise RuntimeError(f"the offset is {offset} where the cache holds {own[0].offset} tokens")
        logits = self._own(tokens, own)
        for layer in cache:
            self._follow(layer, tokens.shape[1])
        return logits

    def _caught_up(self, own: Any, cache: Any) -> None:
        """What stands for a cache is brought to where the cache is, if that can be another place."""

    def _follow(self, layer: Any, length: int) -> None:
        """A cache that the course's code made grows as it would in the course's model."""
        import mlx.core as mx

        kind: Any = type(layer)
        shape = (1, length, 1, 1) if joins_axis_1(kind) else (1, 1, length, 1)
        update(layer, mx.zeros(shape), mx.zeros(shape), self._seen.get(id(layer), 0))
        self._seen[id(layer)] = self._seen.get(id(layer), 0) + length


class _Layer:
    """A cache of a layer; its tokens are kept elsewhere."""

    offset = 0

    def update_and_fetch(self, key: Any, value: Any) -> tuple[Any, Any]:
        self.offset += key.shape[2]
        return key, value

    def rewind(self, n: int) -> None:
        self.offset -= n

    def release(self) -> None:
        """It owns nothing."""


def _generate(package: Package) -> Offer:
    plain = package.find("simple_generate", home="generate")
    asked: dict[str, Any] = {"stops": (0, 1)}
    try:
        cached = package.find("simple_generate_with_kv_cache", home="generate")
    except (NotOffered, Broken):
        cached = None
    if not takes(plain, "sampler"):
        asked["samplers"] = ("none",)
    elif cached:
        asked["sampled_caches"] = (False,)
    calls_none, adds_a_batch = _ways(plain)
    greedy = _argmax if calls_none else None
    if not is_of_july_2026(package) and _keeps_ends(plain, greedy, adds_a_batch):
        asked |= KEEPING

    def generate(
        model: Any,
        tokens: Any,
        max_tokens: int,
        eos: Sequence[int] = (),
        sampler: Any = None,
        cache: bool = True,
    ) -> Iterator[int]:
        if cache and cached:
            limit = {"max_tokens": max_tokens} if takes(cached, "max_tokens") else {}
            return ids_of(lambda own: cached(CourseModel(model, own), own, "", **limit), tokens, max_tokens, eos)
        options: dict[str, Any] = {"sampler": _rows(sampler) or greedy} if takes(plain, "sampler") else {}
        options |= {"max_tokens": max_tokens} if takes(plain, "max_tokens") else {}
        return ids_of(
            lambda own: plain(CourseModel(model, own, adds_a_batch), own, "", **options), tokens, max_tokens, eos
        )

    return Offer(generate, asked if cached else {**asked, "caches": (False,)})


def _ways(plain: Any) -> tuple[bool, bool]:
    """Whether a sampler of None is called all the same, which the course's command line never gives; and whether the
    model of a row without a batch is expected to add one, as some students' models do."""
    for adds_a_batch in (False, True):
        said = _said(plain, adds_a_batch)
        if not said or "'NoneType' object is not callable" in said:
            return bool(said), adds_a_batch
    return False, False


def _said(plain: Any, adds_a_batch: bool) -> str:
    """What a run for one id without a sampler raises; nothing where it raises nothing."""
    try:
        _ended_at_once(plain, None, adds_a_batch)
    except Exception as error:
        return str(error) or type(error).__name__
    return ""


def _keeps_ends(plain: Any, sampler: Any, adds_a_batch: bool) -> bool:
    try:
        return _ended_at_once(plain, sampler, adds_a_batch) == [END]
    except Exception:
        return False


def _ended_at_once(plain: Any, sampler: Any, adds_a_batch: bool) -> list[int]:
    """The ids of a model whose first is the end."""
    import mlx.core as mx

    uses = iter(range(2))

    def model(tokens: Any) -> Any:
        # Code that hands its ids to nobody would go on for ever, and this is asked as the package is loaded.
        if next(uses, None) is None:
            raise RuntimeError("the model is used for more than an id")
        return mx.zeros((*tokens.shape, 3))

    options = {"sampler": sampler} if takes(plain, "sampler") else {}
    return list(ids_of(lambda own: plain(CourseModel(model, own, adds_a_batch), own, "", **options), [1], 1, (END,)))


def _argmax(logprobs: Any) -> Any:
    import mlx.core as mx

    return mx.argmax(logprobs, axis=-1)


def _rows(sampler: Any) -> Any:
    """A sampler as the course calls it: with log-probabilities of one row, for an array of one id."""
    import mlx.core as mx

    return (
        None
        if sampler is None
        else lambda logprobs: mx.array([int(sampler(logprobs.reshape(-1, logprobs.shape[-1])[0]))])
    )


def ids_of(
    run: Callable[[Any], Any],
    tokens: Any,
    max_tokens: int,
    eos: Sequence[int],
    kind: type[Tokenizer] = Tokenizer,
) -> Iterator[int]:
    """The ids that a run hands to its detokenizer, each when it is asked for."""
    if max_tokens < 0:
        raise ValueError(f"max_tokens is {max_tokens}; it takes 0 or more")
    if max_tokens == 0 and len(tokens):
        return
    asked: SimpleQueue[bool] = SimpleQueue()
    given: SimpleQueue[tuple[str, Any]] = SimpleQueue()

    def out(token: int) -> None:
        given.put(("id", token))
        if not asked.get():
            raise _Enough

    def work() -> None:
        if not asked.get():
            return
        try:
            run(kind([int(token) for token in tokens], eos, out))
            given.put(("end", None))
        except _Enough:
            return
        except BaseException as error:
            given.put(("error", error))

    worker = threading.Thread(target=work, daemon=True)
    worker.start()
    try:
        # Of an empty prompt one is asked for always: whether it is refused shows in no other way.
        for number in range(max(max_tokens, 1)):
            asked.put(True)
            what, value = given.get()
            if what == "end":
                return
            if what == "error":
                raise value
            if number < max_tokens:
                yield value
    finally:
        asked.put(False)
        worker.join(1.0)


OFFERS = {"generate": _generate}
