"""Whether `verify` loses nothing, by enumeration: the exact distribution of what comes out, in fractions.

A pair of models of a small vocabulary is a table: history -> probabilities. For each run of drafts the uniform numbers are
cut where the answer may change: at the acceptance of each draft and at the edges of every cdf that the last id may be drawn
by. The middle of each cell stands for all of it, and its volume is exact.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

History = tuple[int, ...]
Row = tuple[Fraction, ...]
Distribution = dict[History, Fraction]


@dataclass(frozen=True)
class Pair:
    """Two models of `size` ids. drafts: how many ids are drafted; draft, target: their rows after each history, of up to
    drafts - 1 and of up to `drafts` ids."""

    size: int
    drafts: int
    draft: Mapping[History, Row]
    target: Mapping[History, Row]


@dataclass(frozen=True)
class Cell:
    """One call of `verify` that stands for a set of them, and how likely that set is."""

    draft_tokens: History
    draft_probs: np.ndarray
    target_probs: np.ndarray
    uniform: np.ndarray
    chance: Fraction


def cells(pair: Pair) -> Iterator[Cell]:
    """All calls that the pair can lead to."""
    for tokens in itertools.product(range(pair.size), repeat=pair.drafts):
        q = [pair.draft[tokens[:i]] for i in range(pair.drafts)]
        p = [pair.target[tokens[:i]] for i in range(pair.drafts + 1)]
        chance = product(row[token] for row, token in zip(q, tokens, strict=True))
        if not chance:
            continue
        cuts = [_cut([p[i][token] / q[i][token]]) for i, token in enumerate(tokens)]
        last = [edge for one, two in zip(q, p[:-1], strict=True) for edge in edges(rest(one, two))]
        cuts.append(_cut([*last, *edges(p[-1])]))
        for pieces in itertools.product(*cuts):
            uniform = np.array([float(middle) for middle, _ in pieces], np.float32)
            yield Cell(
                tokens,
                np.array(q, np.float64).reshape(pair.drafts, pair.size),
                np.array(p, np.float64),
                uniform,
                chance * product(width for _, width in pieces),
            )


def rest(q: Row, p: Row) -> Row:
    """What the target has more than the draft, if it has more of anything."""
    return tuple(max(two - one, Fraction(0)) for one, two in zip(q, p, strict=True))


def edges(row: Row) -> list[Fraction]:
    """The edges of a row's cdf."""
    total = sum(row)
    return [edge / total for edge in itertools.accumulate(row)] if total else []


def _cut(thresholds: Sequence[Fraction]) -> list[tuple[Fraction, Fraction]]:
    """[0, 1) in pieces, each with its middle and width."""
    ends = sorted({Fraction(0), Fraction(1), *(one for one in thresholds if 0 < one < 1)})
    return [((low + high) / 2, high - low) for low, high in itertools.pairwise(ends)]


def joint(pair: Pair) -> Distribution:
    """The target's own distribution of the first drafts + 1 ids."""
    return gone_on(pair, {(): Fraction(1)})


def gone_on(pair: Pair, outputs: Mapping[History, Fraction]) -> Distribution:
    """The distribution of the first drafts + 1 ids when the target goes on after each output."""
    found: Distribution = {}
    for output, chance in outputs.items():
        for more in itertools.product(range(pair.size), repeat=pair.drafts + 1 - len(output)):
            text = output + more
            steps = (pair.target[text[:i]][text[i]] for i in range(len(output), len(text)))
            found[text] = found.get(text, Fraction(0)) + chance * product(steps)
    return found


def product(numbers: Iterator[Fraction]) -> Fraction:
    """The product of fractions, 1 of none."""
    found = Fraction(1)
    for number in numbers:
        found *= number
    return found
