"""``inferspec generate --narrate``: what happens on the way from a text to the next one, as it happens.

A `Narrator` is told of events and tells them: a prompt in tokens, a pass of the model, a choice. It gets to know of them
through the model and the sampler that it stands before, so that generation itself knows nothing of it, and costs nothing
where nobody asks.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any, TextIO

import mlx.core as mx
import numpy as np

from inferspec.impl.sampling import filter_logits
from inferspec.tools.arguments import Sampling

CANDIDATES = 5
"""How many of the likeliest ids are told."""

SHOWN = 48
"""How many tokens of a prompt are told one by one; of a longer one the ends."""


def probabilities(how: Sampling, logits: mx.array) -> np.ndarray:
    """V probabilities of the draw: after the temperature and both filters; at temperature 0 those of the model."""
    x = logits.astype(mx.float32)
    if how.temperature > 0:
        x = filter_logits(x / how.temperature, how.top_k, how.top_p)
    return np.array(mx.softmax(x, axis=-1))


def _told(how: Sampling) -> str:
    if how.temperature == 0:
        return "the likeliest id is taken (temperature 0)"
    parts = [f"temperature {how.temperature:g}"]
    parts += [f"top-k {how.top_k}"] if how.top_k else []
    parts += [f"top-p {how.top_p:g}"] if how.top_p < 1 else []
    return f"an id is drawn, after {', '.join(parts)}"


class Narrator:
    """Tells of one request. tokenizer: for the text of ids; how: ids are chosen; out: where to; clock: gives seconds."""

    def __init__(
        self,
        tokenizer: Any,
        how: Sampling,
        out: TextIO,
        eos: Sequence[int] = (),
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        self._tokenizer, self._sampling, self._out, self._eos, self._clock = tokenizer, how, out, set(eos), clock
        self._prompt: list[int] = []
        self._fed = self._passes = self._chosen = 0
        self._last = ""

    # Events.

    def tokenised(self, text: str, ids: Sequence[int], templated: bool) -> None:
        """The prompt was made tokens. text: what was tokenised; templated: whether a chat template made it."""
        self._prompt = list(ids)
        self._head("tokenisation")
        how = "the chat template puts the message between its marks" if templated else "the text is taken as it is"
        self._say(f"{how}: {_quoted(text)}")
        self._say(f"{len(ids)} tokens, each a piece of text and its id:")
        half = SHOWN // 2
        cut = [*ids[:half], None, *ids[-half:]] if len(ids) > SHOWN else list(ids)
        pieces = ["…" if token is None else f"{self.piece(token)} {token}" for token in cut]
        for start in range(0, len(pieces), 8):
            self._say("  " + "   ".join(pieces[start : start + 8]))

    def passed(self, tokens: Sequence[int], before: int, after: int | None, seconds: float) -> None:
        """The model read tokens. before, after: how many its cache held; after is None where there is none."""
        self._fed, self._passes = self._fed + len(tokens), self._passes + 1
        if self._passes == 1:
            self._head("prefill")
        held = "no cache" if after is None else f"cache {before} → {after} tokens"
        rate = f", {len(tokens) / seconds:.0f} tokens/s" if seconds > 0 and len(tokens) > 1 else ""
        self._last = f"{held}, {seconds * 1000:.1f} ms"
        if self._fed < len(self._prompt):
            self._say(f"{len(tokens)} tokens in one pass: {held}, {seconds * 1000:.1f} ms{rate}")
            self._say("  their keys and values are kept; what the model would say after each is not computed")
        elif not self._chosen:
            what = f"the last token {self.piece(tokens[-1])}" if len(tokens) == 1 else f"{len(tokens)} tokens"
            self._say(f"{what}: {self._last}{rate}; its logits say what comes next")

    def chose(self, logits: mx.array, token: int) -> None:
        """An id was chosen from logits V."""
        shares = probabilities(self._sampling, logits)
        top = np.argsort(-shares, kind="stable")[:CANDIDATES]
        listed = [int(one) for one in top if shares[one] > 0]
        self._chosen += 1
        if self._chosen == 1:
            self._head("sampling")
            self._say(f"of {len(shares)} ids {_told(self._sampling)}:")
            for one in listed if token in listed else [*listed, token]:
                mark = "  ← taken" if one == token else ""
                self._say(f"  {shares[one]:7.2%}  {one:>7}  {self.piece(one)}{mark}")
            self._head("decode: each token is fed, and the next one chosen")
            return
        near = [one for one in listed if one != token and round(1000 * shares[one])]
        others = "  ".join(f"{self.piece(one)} {shares[one]:.1%}" for one in near)
        self._say(
            f"{self._chosen:4}  {self.piece(token)} {token}, {shares[token]:.1%}  ({self._last})"
            + (f"  rather than {others}" if others else "")
        )
        if token in self._eos:
            self._say(f"      {self.piece(token)} ends the text")

    def answered(self, text: str) -> None:
        """All is said. text: the whole answer."""
        self._head("the answer")
        self._out.write(f"{text}\n")

    # What it stands before.

    def before_model(self, model: Any) -> _Watched:
        """The model, with each of its passes told."""
        return _Watched(model, self, self._clock)

    def before_sampler(self, sampler: Callable[[mx.array], Any] | None) -> Callable[[mx.array], int]:
        """The sampler, with each of its choices told."""

        def choose(logits: mx.array) -> int:
            token = int(np.array(sampler(logits) if sampler else mx.argmax(logits)))
            self.chose(logits, token)
            return token

        return choose

    def is_prefill(self, count: int) -> bool:
        """Whether a pass of so many tokens ends before the prompt does."""
        return self._fed + count < len(self._prompt)

    # Words.

    def piece(self, token: int) -> str:
        """An id's text in quotes, or the name of its mark."""
        pieces = self._tokenizer.pieces
        known = pieces[token] if token < len(pieces) else b""
        return _quoted(known.decode("utf-8", "replace")) if known else self._mark(token)

    def _mark(self, token: int) -> str:
        return f"[{self._tokenizer.vocabulary.id_to_token(token) or 'no word'}]"

    def _head(self, text: str) -> None:
        self._out.write(f"── {text}\n")

    def _say(self, text: str) -> None:
        self._out.write(f"   {text}\n")
        self._out.flush()


class _Watched:
    """A model that a narrator stands before."""

    def __init__(self, model: Any, narrator: Narrator, clock: Callable[[], float]) -> None:
        self._model, self._narrator, self._clock = model, narrator, clock

    def make_cache(self) -> Any:
        return self._model.make_cache()

    def __call__(self, tokens: mx.array, cache: Any = None) -> mx.array:
        before, started = _held(cache), self._clock()
        logits = self._model(tokens, cache)
        # As generation does: of a part of the prompt only what the cache keeps.
        mx.eval(
            [layer.state for layer in cache] if cache is not None and self._narrator.is_prefill(tokens.size) else logits
        )
        seconds = self._clock() - started
        ids = [int(token) for token in np.array(tokens[0])]
        self._narrator.passed(ids, before, _held(cache) if cache is not None else None, seconds)
        return logits


def _held(cache: Any) -> int:
    return 0 if cache is None else int(cache[0].offset)


def _quoted(text: str) -> str:
    shown = text.replace("\\", "\\\\").replace("\n", "\\n").replace("\t", "\\t")
    return f"“{shown}”"
