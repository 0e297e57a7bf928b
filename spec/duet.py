"""How the kit consumes speculative generators on a pair of toys, and what it looks at meanwhile.

The oracle and the driver of real subjects share it; it judges nothing.
"""

from __future__ import annotations

import gc
import itertools
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from inferspec.spec.consumption import Stream, consumed
from inferspec.spec.contract import Arguments
from inferspec.spec.ends import DROPPED
from inferspec.spec.toy import FixedCache, Fuse, Table, Toy, ToyCache

MOST_RUNS = 4**6
"""How many runs an enumeration makes at most, those of two whole rounds of a draft in quarters; one that draws more numbers than
it needs would take for ever."""

_CLOCK = itertools.count()
"""The calls of all models, in order."""

LAYERS = 3
"""Layers of a toy's cache, each of which has to be rewound, where a call says no other number."""


@dataclass(frozen=True)
class Note:
    """One call of a model: what its cache held, what it was fed, for whom, after how many calls of any model, and whether it
    had a cache."""

    before: tuple[int, ...]
    fed: tuple[int, ...]
    turn: str
    time: int
    cached: bool = True


class Player:
    """A toy whose cache has several layers, and that notes how it is called.

    fixed: one layer cannot be rewound; fuse: has it raise; layers: how many the cache has. What comes of a cache whose layers
    hold different tokens, no history gives; the longest of them is noted.
    """

    def __init__(self, toy: Toy, fixed: bool = False, fuse: Fuse | None = None, layers: int = LAYERS) -> None:
        self.toy, self.fixed, self.fuse, self.layers = toy, fixed, fuse or Fuse(), layers
        self.notes: list[Note] = []
        self.turn = ""
        self._caches: list[weakref.ref[FixedCache]] = []

    @classmethod
    def of(cls, model: Mapping[str, Any]) -> Player:
        """The player of a call's description of it."""
        if "rows" in model:
            toy: Toy = Table(model["salt"], model["rows"], model["heat"], model["junk"], model.get("height"))
        else:
            toy = Toy.of(model)
        return cls(toy, model.get("fixed", False), Fuse(**model.get("fails", {})), model.get("layers", LAYERS))

    def make_cache(self) -> list[FixedCache]:
        cache: list[FixedCache] = [ToyCache() for _ in range(self.layers)]
        if self.fixed:
            cache[1] = FixedCache()
        self._caches += [weakref.ref(layer) for layer in cache]
        return cache

    def __call__(self, tokens: Sequence[int], cache: Sequence[FixedCache] | None = None) -> np.ndarray:
        """The logits L×V after each of the tokens."""
        self.fuse.use()
        if not cache:
            self.notes.append(Note((), tuple(tokens), self.turn, next(_CLOCK), cached=False))
            return self.toy.extend(tokens)
        longest = max(cache, key=lambda layer: layer.offset).tokens
        self.notes.append(Note(tuple(longest), tuple(tokens), self.turn, next(_CLOCK)))
        held = [layer.tokens for layer in cache]
        decides: FixedCache = cache[0]
        if any(one != held[0] for one in held):
            decides = ToyCache()
            self.toy.shown([*itertools.chain(*held)], decides)
        for layer in cache:
            if layer is not decides:
                self.toy.shown(tokens, layer)
        return self.toy.extend(tokens, decides)

    def alive(self) -> int:
        """How many layers of caches someone still holds."""
        gc.collect()
        return sum(reference() is not None for reference in self._caches)

    def made(self) -> int:
        """How many layers of caches it has made."""
        return len(self._caches)


@dataclass
class Request:
    """What is asked of one generator. tokens: as the caller has them; uniforms: numbers in [0, 1), or None."""

    tokens: Any
    max_tokens: int
    num_draft_tokens: int = 4
    eos: Sequence[int] = ()
    temperature: float = 0.0
    top_k: int | None = None
    top_p: float = 1.0
    uniforms: Iterator[float] | None = None
    name: str = "first"
    ends: str = DROPPED
    """What becomes of the id that ends it (`spec/ends.py`); a subject is not told."""


@dataclass
class _Stream(Stream):
    """One generator at work: its ids, and how far the target was when each came out."""

    players: tuple[Player, Player]
    ahead: list[int] = field(default_factory=list)
    fed: dict[int, tuple[int, int]] = field(default_factory=dict)
    """player (its id) -> how many of its notes were counted, and how many positions it was fed at most in them"""

    def turn(self) -> None:
        for player in self.players:
            player.turn = self.request.name

    def arrived(self) -> None:
        self.ahead.append(self.reach(self.players[0]) - len(self.ids) + 1)

    def close(self) -> None:
        super().close()
        self.let_go()

    def notes(self, player: Player) -> list[Note]:
        return [note for note in player.notes if note.turn == self.request.name]

    def reach(self, player: Player) -> int:
        """How many positions past the prompt a model was fed at most."""
        counted, furthest = self.fed.get(id(player), (0, 0))
        # Of thousands of ids each asks anew.
        new = [len(n.before) + len(n.fed) for n in player.notes[counted:] if n.turn == self.request.name]
        furthest = max([furthest, *new])
        self.fed[id(player)] = len(player.notes), furthest
        return furthest - len(self.request.tokens)

    def widths(self) -> list[int]:
        """How many tokens past the prompt each call fed to the target; without a cache, past what was right of the call before."""
        text, found, right = _prompt(self.request) + [int(token) for token in self.ids], [], 0
        for note in self.notes(self.players[0]):
            known = max(len(self.request.tokens), len(note.before) if note.cached else right)
            found.append(len(note.before) + len(note.fed) - known)
            right = _in_common(note.before + note.fed, text)
        return [width for width in found if width > 0]


def play(
    start: Callable[[Request], Iterable[Any]], players: tuple[Player, Player], requests: Sequence[Request], a: Arguments
) -> dict[str, Any]:
    """Consume generators as `a.until` and `a.order` say and return what `a.seen` names.

    ids: what came out; beside: what came out of the second request; strays: of target and draft, how many calls met a
    history that is not the one it should be (`strays`); rejected: how many calls of the target were fed a draft that did
    not come out; again: how many right tokens were taken back from the target's cache at once, at most; ahead: for each
    id, how many positions the target was past it; reach: of target and draft, the furthest position past the prompt that
    was fed; widths: how many tokens past the prompt each call of the target was fed; made: of target and draft, how many
    layers of caches they were asked for;
    calls: of target and draft; drawn: how many uniform numbers were taken; alive: how many layers of caches of target
    and draft are held by anyone when the ids have ended, or the generators are closed; whole: whether ids are Python's
    integers; prompt: the
    caller's tokens afterwards; refused, raised: whether it raised; where neither is looked at, what a model that is to fail raises
    is the end of the first, and the other goes on.
    """
    first, *others = streams = [_Stream(request, players) for request in requests]
    counted = _Counted(first.request)
    failing = any(player.fuse.left is not None for player in players)
    first.may_fail = failing and not {"refused", "raised"} & set(a.seen)
    try:
        for together in consumed(streams, start, a):
            for stream in together:
                stream.close()
    except Exception:
        if not {"refused", "raised"} & set(a.seen):
            raise
        return _seen(first, others, counted, a, refused=True)
    return _seen(first, others, counted, a, refused=False)


def _seen(first: _Stream, others: Sequence[_Stream], counted: _Counted, a: Arguments, refused: bool) -> dict[str, Any]:
    ids, players = [int(token) for token in first.ids], first.players
    look: dict[str, Callable[[], Any]] = {
        "ids": lambda: ids,
        "beside": lambda: [int(token) for other in others for token in other.ids],
        "strays": lambda: strays(
            first.notes(players[0]),
            first.notes(players[1]),
            _prompt(first.request) + ids,
            partial(would_draft, players[1].toy, first.request),
        ),
        "rejected": lambda: [rejected(first.notes(players[0]), _prompt(first.request) + ids)],
        "again": lambda: [again(first.notes(players[0]), _prompt(first.request) + ids)],
        "ahead": lambda: first.ahead,
        "reach": lambda: [first.reach(player) for player in players],
        "widths": first.widths,
        "calls": lambda: [len(first.notes(player)) for player in players],
        "drawn": lambda: [counted.taken],
        "alive": lambda: [player.alive() for player in players],
        "made": lambda: [player.made() for player in players],
        "whole": lambda: [int(all(type(token) is int for token in first.ids))],
        "prompt": lambda: _prompt(first.request),
        "refused": lambda: [int(refused)],
        "raised": lambda: [int(refused)],
    }
    return {name: look[name]() for name in a.seen}


class _Counted:
    """Counts the uniform numbers that a request takes."""

    def __init__(self, request: Request) -> None:
        self.taken = 0
        if request.uniforms is not None:
            request.uniforms = self._numbers(request.uniforms)

    def _numbers(self, uniforms: Iterator[float]) -> Iterator[float]:
        for number in uniforms:
            self.taken += 1
            yield number


def _prompt(request: Request) -> list[int]:
    return [int(token) for token in request.tokens]


def strays(
    target: Sequence[Note], draft: Sequence[Note], text: Sequence[int], own: Callable[[Sequence[int], int], bool]
) -> list[int]:
    """Of target and draft, how many calls met a history that is not the one it should be.

    The target's cache holds nothing but the text: the prompt and ids that came out. What the draft has seen after a call is
    the text and its own drafts: what the target is fed next, or the beginning of it, or that and drafts that the target is
    not asked about. own: whether a history, from a position on, is what the draft would draft.
    """
    foreign = sum(not _agree(note.before, text) for note in target)
    fed = [note.before + note.fed for note in target]
    lost = 0
    for note in draft:
        seen = note.before + note.fed
        # The text grows from round to round: the verification of these drafts is the first that is as long as they are.
        later = [one for one in fed if len(one) >= len(seen)]
        if any(_agree(seen, one) for one in (*later, *([text] if len(text) >= len(seen) else []))):
            continue
        asked = next((one.before + one.fed for one in target if one.time > note.time), seen)
        lost += not (len(asked) < len(seen) and _agree(seen, asked) and own(seen, len(asked)))
    return [foreign, lost]


def would_draft(toy: Toy, request: Request, seen: Sequence[int], start: int) -> bool:
    """Whether the tokens from a position on can be drafts of one round: so many, and, at temperature 0, each the favourite."""
    favourites = toy.extend(seen).argmax(axis=-1)[start - 1 : -1]
    drawn = request.temperature > 0
    return len(favourites) <= request.num_draft_tokens and (drawn or favourites.tolist() == list(seen[start:]))


def rejected(target: Sequence[Note], text: Sequence[int]) -> int:
    """How many calls fed the target a draft that did not come out."""
    return sum(not _agree(note.before + note.fed, text) for note in target)


def again(target: Sequence[Note], text: Sequence[int]) -> int:
    """How many tokens of the text the target's cache held after one call and lacks before the next, at most."""
    most = 0
    for note, after in itertools.pairwise(target):
        most = max(most, _in_common(note.before + note.fed, text) - len(after.before))
    return most


def _in_common(first: Sequence[int], second: Sequence[int]) -> int:
    """How many tokens two begin with alike."""
    unlike = (i for i, (one, two) in enumerate(zip(first, second, strict=False)) if one != two)
    return next(unlike, min(len(first), len(second)))


def _agree(first: Sequence[int], second: Sequence[int]) -> bool:
    """Whether one is the beginning of the other."""
    return all(a == b for a, b in zip(first, second, strict=False))


def distribution(run: Callable[[Iterator[float]], Sequence[int]], size: int, length: int, cells: int) -> np.ndarray:
    """The probability of every output of `length` ids below `size`, and last that of any other output.

    run: maps uniform numbers to ids. Its thresholds are multiples of 1/cells, so that a number in the middle of each of
    the cells stands for all; every combination of them is run, as many numbers long as the run takes.
    """
    found = np.zeros(size**length + 1)
    path: list[int] = []
    for _ in range(MOST_RUNS):
        taken = 0

        def numbers(path: list[int] = path) -> Iterator[float]:
            nonlocal taken
            for taken in itertools.count(1):
                if taken > len(path):
                    path.append(0)
                yield (path[taken - 1] + 0.5) / cells

        ids = [int(token) for token in run(numbers())]
        inside = len(ids) == length and all(0 <= token < size for token in ids)
        place = sum(token * size**power for power, token in enumerate(reversed(ids))) if inside else size**length
        found[place] += float(cells) ** -taken
        del path[taken:]
        while path and path[-1] == cells - 1:
            path.pop()
        if not path:
            return found
        path[-1] += 1
    raise ValueError(f"more than {MOST_RUNS} runs: it takes more numbers than a round needs")
