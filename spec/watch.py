"""How the kit consumes generators on the toy model: lazily, one or two in turn, and what it looks at meanwhile.

The oracle and the driver of real subjects share it; it judges nothing.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from inferspec.spec.consumption import Stream, consumed
from inferspec.spec.contract import Arguments
from inferspec.spec.ends import DROPPED
from inferspec.spec.toy import Fuse, Toy, ranking


class Ranks:
    """A sampler that takes the id of a given rank, one rank after the other for one draw after the other."""

    def __init__(self, ranks: Sequence[int]) -> None:
        self._ranks = itertools.cycle(ranks)
        self.rows: list[np.ndarray] = []
        self.fuse = Fuse()

    def __call__(self, logits: Any) -> int:
        """The id whose logit has the rank, the lowest of equals first. logits: V; of more, the last V count."""
        self.fuse.use()
        row = np.asarray(logits, np.float64)
        if row.ndim and math.prod(row.shape[:-1]) == 1:
            # A batch of one row is that row.
            row = row.reshape(-1)
        self.rows.append(ranking(row))
        row = row.reshape(-1, row.shape[-1])[-1]
        return ranked(row, next(self._ranks) % len(row))


def ranked(row: np.ndarray, rank: int) -> int:
    """The id whose logit has the rank, from 0 for the largest, the lowest of equals first and NaN last. row: V."""
    value = np.partition(-row, rank)[rank]
    if np.isnan(value):
        return int(np.argsort(-row, kind="stable")[rank])
    return int(np.flatnonzero(-row == value)[rank - np.count_nonzero(-row < value)])


@dataclass
class Request:
    """What is asked of one generator. tokens: as the caller has them."""

    tokens: Any
    max_tokens: int
    eos: Sequence[int] = ()
    sampler: Callable[[Any], int] | None = None
    cache: bool = True
    name: str = "first"
    ends: str = DROPPED
    """What becomes of the id that ends it (`spec/ends.py`); a subject is not told."""


@dataclass
class _Stream(Stream):
    """One generator at work: its ids, and how far the model was when each came out."""

    toy: Toy
    reached: list[int] = field(default_factory=list)
    counted: int = 0
    """How many lines of the model's log `computed` counts already: of hundreds of ids each asks anew."""
    computed: int = 0

    def turn(self) -> None:
        self.toy.turn = self.request.name

    def arrived(self) -> None:
        self.reached.append(self.position())

    def position(self) -> int:
        """How many positions the model has computed for this request, apart from those of the prompt."""
        new = [len(feeding.tokens) for feeding in self.toy.log[self.counted :] if feeding.turn == self.request.name]
        self.counted = len(self.toy.log)
        self.computed = self.computed + sum(new) if self.request.cache else max([self.computed, *new])
        return self.computed - len(self.request.tokens)


def watch(
    start: Callable[[Request], Iterable[Any]], toy: Toy, requests: Sequence[Request], a: Arguments
) -> dict[str, Any]:
    """Consume generators as `a.until` and `a.order` say and return what `a.seen` names.

    ids: what came out; beside: what came out of the second request; fed: the tokens that the model was fed until the
    last id was known, in order; caches: how many caches it was fed with; alive: how many of them are still held at the
    end; ahead: for each id, how many positions the model was past what it took; reached: the position where the model
    stands at the end, from the end of the prompt; rows: for each id, the logits that the sampler got; drawn: how often
    it was asked; raised: whether what `a.fails` says reached the consumer (where anything else is looked at, that is the end of the
    first request, and the other goes on); whole: whether ids are Python's integers;
    prompt: the caller's tokens afterwards; refused, calls: whether it raised, and the calls of the model.
    """
    streams = [_Stream(request, toy) for request in requests]
    if a.fails:
        failing: Any = streams[0].request.sampler if a.fails["who"] == "sampler" else toy
        failing.fuse = Fuse(**a.fails)
        streams[0].may_fail = a.seen != ("raised",)
    try:
        for together in consumed(streams, start, a):
            if a.until is not None and together[0] is streams[0]:
                streams[0].close()
    except Exception:
        if a.fails and a.seen == ("raised",):
            return {"raised": [1]}
        if "refused" not in a.seen:
            raise
        return {"refused": [1], "calls": [len(toy.log)]}
    seen = _seen(streams, toy, "prompt" in a.seen)
    if "alive" in a.seen:
        seen["alive"] = [_held(toy, streams)]
    return {name: seen[name] for name in a.seen}


def _seen(streams: Sequence[_Stream], toy: Toy, prompt: bool) -> dict[str, Any]:
    """What `watch` may return of requests that were not refused, but for `alive`. prompt: the caller's tokens are asked for."""
    first, *others = streams
    ids = [int(token) for token in first.ids]
    own = [feeding for feeding in toy.log if feeding.turn == first.request.name]
    needed = len(first.request.tokens) + max(len(ids) - 1, 0)
    rows = getattr(first.request.sampler, "rows", [])
    return {
        "ids": ids,
        "beside": [int(token) for other in others for token in other.ids],
        "fed": list(itertools.chain.from_iterable(feeding.tokens for feeding in own))[:needed],
        "caches": [len({id(feeding.cache) for feeding in own if feeding.cache is not None})],
        "ahead": [position - k for k, position in enumerate(first.reached)],
        "reached": [first.position()],
        "rows": _stacked(rows[: len(ids)]),
        "drawn": [len(rows)],
        "whole": [int(all(type(token) is int for token in first.ids))],
        "prompt": [int(token) for token in first.request.tokens] if prompt else [],
        "refused": [0],
        "calls": [len(toy.log)],
        "raised": [0],
    }


def _held(toy: Toy, streams: Sequence[_Stream]) -> int:
    """How many caches of the toy are held, now that nobody wants the log."""
    toy.log.clear()
    for stream in streams:
        stream.let_go()
    return toy.alive()


def _stacked(rows: Sequence[np.ndarray]) -> np.ndarray:
    if len({row.shape for row in rows}) == 1:
        return np.stack(rows)
    return np.concatenate([row.ravel() for row in rows]) if rows else np.zeros(0)
