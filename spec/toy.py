"""The toy model: exact, without weights; the id that it favours is a hash of every token that it was shown, in order.

Any lost, doubled, misplaced or foreign token changes all that comes after it. Its logits are small whole numbers, so
they are exact in every dtype (a near rival's too, if it is near enough for the dtype alone), and it keeps a log of what it was fed.
"""

from __future__ import annotations

import functools
import gc
import weakref
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

_MASK = 2**64 - 1
_FEED, _PICK, _TIE, _ROW, _COLUMN, _SLIP = (
    0x9E3779B97F4A7C15,
    0xBF58476D1CE4E5B9,
    0x94D049BB133111EB,
    0xD6E8FEB86659FD93,
    0xA0761D6478BD642F,
    0xE7037ED1A0B428DB,
)
_LOWEST, _SHIFTS = 24, 5


@dataclass
class FixedCache:
    """What the toy was shown with this cache, and what it made of each token; nothing can be taken back."""

    tokens: list[int] = field(default_factory=list)
    states: list[int] = field(default_factory=list)

    @property
    def offset(self) -> int:
        """How many tokens it holds."""
        return len(self.tokens)


@dataclass
class ToyCache(FixedCache):
    """The same, of which the last tokens can be taken back."""

    def rewind(self, n: int) -> None:
        """Drop the last n tokens; ValueError where there are not so many."""
        if not 0 <= n <= self.offset:
            raise ValueError(f"n is {n}; it takes 0 … {self.offset}")
        del self.tokens[self.offset - n :], self.states[len(self.states) - n :]


ERRORS: Mapping[str, type[Exception]] = {
    error.__name__: error for error in (RuntimeError, ValueError, IndexError, KeyError, StopIteration)
}
"""What a model or a sampler can be made to raise."""


@dataclass
class Fuse:
    """Has a model or a sampler raise an error once, when it was used so often already. left: None for never."""

    who: str = ""
    left: int | None = None
    error: str = "RuntimeError"

    def use(self) -> None:
        """Note a use."""
        if self.left is None:
            return
        self.left -= 1
        # Once: whoever tries again is not stopped, and shows.
        if self.left == -1:
            raise ERRORS[self.error](f"the {self.who} fails")


@dataclass(frozen=True)
class Feeding:
    """One call of the model: the tokens, the cache or None, and who was served."""

    tokens: tuple[int, ...]
    cache: FixedCache | None
    turn: str


class Toy:
    """The model. vocab_size: V; salt: tells models apart; rival: how far below the favoured id's logit that of another
    lies, 0 for a tie; None for no rival. The two ids may coincide.

    slips: makes it an imitation of the toy with the same salt: it favours the same id but for one of so many histories,
    by chance, and its other logits are its own.

    barred: whether every other id must not come: its logit is -inf, and all others lie below 0.

    turn: whom the model is working for, set by whoever drives several requests.
    """

    def __init__(
        self,
        vocab_size: int,
        salt: int = 0,
        rival: float | None = None,
        slips: int | None = None,
        barred: bool = False,
    ) -> None:
        self.vocab_size, self.salt, self.rival, self.slips, self.barred = vocab_size, salt, rival, slips, barred
        self.log: list[Feeding] = []
        self.turn = ""
        self.fuse = Fuse()
        self._caches: list[weakref.ref[ToyCache]] = []

    @classmethod
    def of(cls, model: Mapping[str, Any]) -> Toy:
        """The toy that a call describes."""
        barred = model.get("barred", False)
        return cls(model["vocab_size"], model["salt"], model["rival"], model.get("slips"), barred)

    def make_cache(self) -> ToyCache:
        """An empty cache."""
        cache = ToyCache()
        self._caches.append(weakref.ref(cache))
        return cache

    def alive(self) -> int:
        """How many of its caches someone still holds."""
        gc.collect()
        return sum(reference() is not None for reference in self._caches)

    def __call__(self, tokens: Sequence[int], cache: FixedCache | None = None) -> np.ndarray:
        """Return the logits L×V (float64, whole numbers from -24 to 4) after each of the tokens; the cache grows by them."""
        if not len(tokens):
            self.log.append(Feeding((), cache, self.turn))
            raise ValueError("the model is given no token; it takes one or more")
        self.fuse.use()
        self.log.append(Feeding(tuple(tokens), cache, self.turn))
        return self.extend(tokens, cache)

    def extend(self, tokens: Sequence[int], cache: FixedCache | None = None) -> np.ndarray:
        """The same, without a line in the log."""
        return self._rows(self.shown(tokens, cache))

    def shown(self, tokens: Sequence[int], cache: FixedCache | None = None) -> list[int]:
        """What the toy makes of each of the tokens; the cache grows by them, and nobody wants logits."""
        states = self.states(tokens, cache.states[-1] if cache is not None and cache.states else None)
        if cache is not None:
            cache.tokens.extend(int(token) for token in tokens)
            cache.states.extend(states)
        return states

    def states(self, tokens: Sequence[int], before: int | None = None) -> list[int]:
        """What the toy makes of each token, after others or from the start."""
        state, states = mixed(self.salt + 1, _FEED) if before is None else before, []
        for token in tokens:
            state = mixed(state ^ (int(token) + 1), _FEED)
            states.append(state)
        return states

    def _rows(self, states: Sequence[int]) -> np.ndarray:
        state = np.array(states, np.uint64)[:, None]
        row = _ROW if self.slips is None else _SLIP
        with np.errstate(over="ignore"):
            noise = (state * np.uint64(row)) ^ self._columns
            noise *= np.uint64(_PICK)
        rows = -1.0 - (noise >> np.uint64(33)) % np.uint64(_LOWEST)
        every = np.arange(len(states))
        if self.rival is not None:
            rows[every, [mixed(one, _TIE) % self.vocab_size for one in states]] = -self.rival
        favoured = [self._favoured(one) for one in states]
        rows[every, favoured] = 0.0
        if self.barred:
            may = np.arange(self.vocab_size) % 2 == np.array(favoured)[:, None] % 2
            rows = np.where(may, rows - _SHIFTS, -np.inf)
        return rows + (state % np.uint64(_SHIFTS)).astype(np.float64)

    @functools.cached_property
    def _columns(self) -> np.ndarray:
        """What tells the ids apart."""
        return np.arange(self.vocab_size, dtype=np.uint64) * np.uint64(_COLUMN)

    def _favoured(self, state: int) -> int:
        slip = self.slips is not None and mixed(state, _SLIP) % self.slips == 0
        return (mixed(state, _PICK) + slip) % self.vocab_size


class Table(Toy):
    """A toy whose probabilities at temperature `heat` are exact: one of a few rows, by a hash of the whole history.

    rows: n rows of V probabilities. junk: the weights of one id more, that a filter has to take away, in rows of one id
    and in others; none where it is empty. height: the largest logit of each row; None leaves them where logarithms are.
    Tables of one salt and n have their rows at the same histories.
    """

    def __init__(
        self,
        salt: int,
        rows: Sequence[Sequence[float]],
        heat: float = 1.0,
        junk: Sequence[float] = (),
        height: Sequence[float] | None = None,
    ) -> None:
        super().__init__(len(rows[0]) + bool(junk), salt)
        self.chances, self.heat, self.junk = np.asarray(rows, np.float64), heat, junk
        self.height = height

    def row_of(self, tokens: Sequence[int]) -> int:
        """Which row follows a history."""
        return self.place(self.states(tokens)[-1])

    def place(self, state: int) -> int:
        """The same, of what the toy made of the history."""
        return mixed(state, _ROW) % len(self.chances)

    @functools.cached_property
    def logits(self) -> np.ndarray:
        """Those of every row."""
        weights = self.chances
        if self.junk:
            single = (weights > 0).sum(axis=-1, keepdims=True) == 1
            weights = np.hstack([weights, np.where(single, *self.junk)])
        with np.errstate(divide="ignore"):
            logits = self.heat * np.log(weights)
        if self.height is None:
            return logits
        return logits - logits.max(axis=-1, keepdims=True) + np.reshape(self.height, (-1, 1))

    def _rows(self, states: Sequence[int]) -> np.ndarray:
        return self.logits[[self.place(state) for state in states]]


def mixed(state: int, multiplier: int) -> int:
    """A step of a hash: the product, its upper bits folded into the lower ones."""
    state = (state * multiplier) & _MASK
    return state ^ (state >> 31)


def ranking(row: Any) -> np.ndarray:
    """Return what of a row of logits no softmax can change: whole steps below its largest."""
    row = np.asarray(row, np.float64)
    return np.rint(row - row.max(initial=-np.inf)) if row.size else row
