"""The toy model: exact, without weights; the id that it favours is a hash of every token that it was shown, in order.

Any lost, doubled, misplaced or foreign token changes all that comes after it. Its logits are small whole numbers, so
they are exact in every dtype (a near rival's too, if it is near enough for the dtype alone), and it keeps a log of what it was fed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

_MASK = 2**64 - 1
_FEED, _PICK, _TIE, _ROW, _COLUMN = (
    0x9E3779B97F4A7C15,
    0xBF58476D1CE4E5B9,
    0x94D049BB133111EB,
    0xD6E8FEB86659FD93,
    0xA0761D6478BD642F,
)
_LOWEST, _SHIFTS = 24, 5


@dataclass
class ToyCache:
    """What the toy was shown with this cache, and what it made of each token."""

    tokens: list[int] = field(default_factory=list)
    states: list[int] = field(default_factory=list)

    def rewind(self, n: int) -> None:
        """Drop the last n tokens."""
        del self.tokens[len(self.tokens) - n :], self.states[len(self.states) - n :]


@dataclass(frozen=True)
class Feeding:
    """One call of the model: the tokens, the cache or None, and who was served."""

    tokens: tuple[int, ...]
    cache: ToyCache | None
    turn: str


class Toy:
    """The model. vocab_size: V; salt: tells models apart; rival: how far below the favoured id's logit that of another
    lies, 0 for a tie; None for no rival. The two ids may coincide.

    turn: whom the model is working for, set by whoever drives several requests.
    """

    def __init__(self, vocab_size: int, salt: int = 0, rival: float | None = None) -> None:
        self.vocab_size, self.salt, self.rival = vocab_size, salt, rival
        self.log: list[Feeding] = []
        self.turn = ""

    def make_cache(self) -> ToyCache:
        """An empty cache."""
        return ToyCache()

    def __call__(self, tokens: Sequence[int], cache: ToyCache | None = None) -> np.ndarray:
        """Return the logits L×V (float64, whole numbers from -24 to 4) after each of the tokens; the cache grows by them."""
        self.log.append(Feeding(tuple(tokens), cache, self.turn))
        state = cache.states[-1] if cache is not None and cache.states else _mixed(self.salt + 1, _FEED)
        states = []
        for token in tokens:
            state = _mixed(state ^ (int(token) + 1), _FEED)
            states.append(state)
        if cache is not None:
            cache.tokens.extend(int(token) for token in tokens)
            cache.states.extend(states)
        return self._rows(states)

    def _rows(self, states: Sequence[int]) -> np.ndarray:
        state = np.array(states, np.uint64)[:, None]
        with np.errstate(over="ignore"):
            noise = (state * np.uint64(_ROW)) ^ (np.arange(self.vocab_size, dtype=np.uint64) * np.uint64(_COLUMN))
            noise *= np.uint64(_PICK)
        rows = -1.0 - (noise >> np.uint64(33)) % np.uint64(_LOWEST)
        every = np.arange(len(states))
        if self.rival is not None:
            rows[every, [_mixed(one, _TIE) % self.vocab_size for one in states]] = -self.rival
        rows[every, [_mixed(one, _PICK) % self.vocab_size for one in states]] = 0.0
        return rows + (state % np.uint64(_SHIFTS)).astype(np.float64)


def _mixed(state: int, multiplier: int) -> int:
    state = (state * multiplier) & _MASK
    return state ^ (state >> 31)


def ranking(row: Any) -> np.ndarray:
    """Return what of a row of logits no softmax can change: whole steps below its largest."""
    row = np.asarray(row, np.float64)
    return np.rint(row - row.max(initial=-np.inf)) if row.size else row
