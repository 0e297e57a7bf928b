"""Contenders in turns: every round measures each of them once, in an order drawn for that round."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

LEAST = 3
"""Rounds that a slow contender takes part in, whatever they cost."""

Sample = Mapping[str, float]
"""Seconds by phase: of a call, or of a token."""


@dataclass(frozen=True)
class Entry:
    """A contender of a case. sample: measures it once; cost: about how many seconds that takes."""

    name: str
    sample: Callable[[], Sample]
    cost: float


@dataclass
class Measured:
    """What was measured of a contender: phase -> round -> seconds. broke: why it dropped out, if it did."""

    times: dict[str, dict[int, float]] = field(default_factory=dict)
    broke: str = ""


def rounds_of(cost: float, rounds: int, seconds: float, least: int = LEAST) -> list[int]:
    """The rounds in which a contender takes part: all, or as many as fit into so many seconds, evenly spread."""
    count = min(rounds, max(least, int(seconds / cost) if cost > 0 else rounds))
    return sorted({round(k) for k in np.linspace(0, rounds - 1, count).tolist()})


def measure(
    entries: Sequence[Entry],
    rounds: int,
    seconds: float,
    seed: int,
    told: Callable[[str], None] = lambda name: None,
    least: int = LEAST,
) -> dict[str, Measured]:
    """Measure all entries in so many rounds; a slow one in fewer, about `seconds` in all.

    told: is given the name of each entry after its turn. An entry that raises drops out, with what it had before.
    """
    random = np.random.default_rng(seed)
    places = {entry.name: set(rounds_of(entry.cost, rounds, seconds, least)) for entry in entries}
    found = {entry.name: Measured() for entry in entries}
    for number in range(rounds):
        for index in random.permutation(len(entries)).tolist():
            entry = entries[index]
            mine = found[entry.name]
            if number not in places[entry.name] or mine.broke:
                continue
            try:
                sample = entry.sample()
            except Exception as error:
                mine.broke = " ".join(f"{type(error).__name__}: {error}".split())
                continue
            for phase, taken in sample.items():
                mine.times.setdefault(phase, {})[number] = taken
            told(entry.name)
    return found
