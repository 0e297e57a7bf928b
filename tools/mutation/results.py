"""What a run of mutants showed: counts, score and survivors; as JSON, and back."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from inferspec.tools.mutation import equivalents, mutants
from inferspec.tools.mutation.mutants import Mutant
from inferspec.tools.mutation.running import Fate
from inferspec.tools.told import told


@dataclass
class Results:
    """fates: of the mutants that were run; left_out: changes that are no mutants, by rule; population: of all mutants."""

    fates: list[Fate]
    left_out: dict[str, int]
    population: int

    def __post_init__(self) -> None:
        order = {fate.mutant.key: fate.mutant for fate in self.fates}
        self.fates.sort(key=lambda fate: (fate.mutant.module, fate.mutant.line, fate.mutant.key))
        assert len(order) == len(self.fates)

    @property
    def killed(self) -> list[Fate]:
        return [fate for fate in self.fates if fate.killed]

    @property
    def equivalent(self) -> list[Fate]:
        known = equivalents.reasons()
        return [fate for fate in self.fates if not fate.killed and fate.mutant.key in known]

    @property
    def survivors(self) -> list[Fate]:
        """Those that no test noticed and no reason excuses."""
        known = equivalents.reasons()
        return [fate for fate in self.fates if not fate.killed and fate.mutant.key not in known]

    @property
    def score(self) -> float:
        """killed / (all that were run - equivalent)."""
        return len(self.killed) / max(len(self.fates) - len(self.equivalent), 1)

    def summary(self) -> str:
        hung = sum(fate.how == "hung" for fate in self.fates)
        return (
            f"{len(self.killed)} of {len(self.fates) - len(self.equivalent)} mutants killed ({self.score:.1%}; {hung} of them by "
            f"the clock), {len(self.equivalent)} more are equivalent, {len(self.survivors)} survive; "
            f"{len(self.fates)} of {self.population} mutants were run"
        )

    def by_module(self) -> dict[str, dict[str, Any]]:
        """Module -> its counts, and its score as text."""
        found = {}
        for module in dict.fromkeys(fate.mutant.module for fate in self.fates):
            own = Results([f for f in self.fates if f.mutant.module == module], {}, 0)
            states = Counter(fate.how for fate in own.fates)
            found[module] = {
                "all": len(mutants.population(module).mutants),
                "run": len(own.fates),
                "killed": len(own.killed),
                "hung": states["hung"],
                "equivalent": len(own.equivalent),
                "survived": len(own.survivors),
                "score": f"{own.score:.1%}",
            }
        return found

    def as_json(self) -> dict[str, Any]:
        return {
            "population": self.population,
            "left_out": self.left_out,
            "run": len(self.fates),
            "killed": len(self.killed),
            "equivalent": {fate.mutant.key: equivalents.reasons()[fate.mutant.key] for fate in self.equivalent},
            "survivors": [fate.mutant.key for fate in self.survivors],
            "score": self.score,
            "fates": [asdict(fate) for fate in self.fates],
        }


def read(path: Path) -> Results:
    """Results from their JSON; ValueError when it is none."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        fates = [Fate(**{**fate, "mutant": Mutant(**fate["mutant"])}) for fate in found["fates"]]
        return Results(fates, dict(found["left_out"]), int(found["population"]))
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(f"{path} is not what `inferspec mutate --json` writes: {told(error)}") from error


def joined(paths: Iterable[Path]) -> Results:
    """The results of several runs together; of a mutant that was run more than once the last counts.

    Mutants that are no more, because the source has changed, are dropped.
    """
    fates: dict[str, Fate] = {}
    for path in paths:
        fates |= {fate.mutant.key: fate for fate in read(path).fates}
    populations = {module: mutants.population(module) for module in {fate.mutant.module for fate in fates.values()}}
    now = {one.key: one for population in populations.values() for one in population.mutants}
    left_out = sum((Counter(population.left_out) for population in populations.values()), Counter())
    kept = [fate for key, fate in fates.items() if key in now]
    for fate in kept:
        fate.mutant = now[fate.mutant.key]
    return Results(kept, dict(left_out), len(now))
