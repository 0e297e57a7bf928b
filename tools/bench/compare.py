"""Two runs of one benchmark: what became slower, told by ratios within each run.

A machine that is slower today slows all contenders; so a contender's time is taken by that of a reference of the same run,
a library that did not change. A change counts when its whole interval lies beyond the noise of both runs.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rich.console import Console
from rich.table import Table
from rich.text import Text

from inferspec.tools.bench.peers import AGAIN, OTHERS, OURS
from inferspec.tools.bench.result import CaseResult, Result
from inferspec.tools.bench.show import number
from inferspec.tools.bench.statistics import Ratio, change
from inferspec.tools.generate import Unusable

REFERENCES = tuple(peer.name for peer in OTHERS)


@dataclass(frozen=True)
class Change:
    """How a contender's time changed, by its reference's. noise: the factor by which both runs together err."""

    case: str
    contender: str
    reference: str
    ratio: Ratio
    noise: float

    @property
    def slower(self) -> bool:
        """Whether it is a regression."""
        return self.ratio.low is not None and self.ratio.low > self.noise

    @property
    def faster(self) -> bool:
        """Whether it is a gain."""
        return self.ratio.high is not None and self.ratio.high < 1 / self.noise


@dataclass(frozen=True)
class Comparison:
    """changes: of every contender that both runs have; left_out: cases that cannot be compared -> why."""

    changes: list[Change]
    left_out: dict[str, str]

    @property
    def regressions(self) -> list[Change]:
        """What became slower."""
        return [one for one in self.changes if one.slower]


def compared(before: Result, after: Result, reference: str | None = None) -> Comparison:
    """Compare the cases that both runs have; Unusable for runs of another kind, and when nothing can be compared."""
    if before.kind != after.kind:
        raise Unusable(f"--compare: one is a run of `bench {before.kind}`, the other of `bench {after.kind}`")
    if before.settings["threads"] != after.settings["threads"]:
        counts = f"{before.settings['threads']} and {after.settings['threads']}"
        raise Unusable(f"--compare: the runs had {counts} threads; ratios of those say nothing")
    known = {case.name: case for case in before.cases}
    changes: list[Change] = []
    left_out = dict.fromkeys(known.keys() - {case.name for case in after.cases}, "the new run does not have it")
    for case in after.cases:
        if case.name not in known:
            left_out[case.name] = "the old run does not have it"
            continue
        try:
            base = _reference(known[case.name], case, reference)
        except LookupError as error:
            left_out[case.name] = str(error)
            continue
        changes += _changes(known[case.name], case, base)
    if not changes:
        why = next(iter(left_out.items()), ("", "there are no cases"))
        raise Unusable(f"--compare: nothing can be compared: {' '.join(why)}")
    return Comparison(changes, left_out)


def _reference(before: CaseResult, after: CaseResult, wanted: str | None) -> str:
    """The first library that was timed in both runs, or the one asked for; LookupError, saying so, where there is none."""
    for name in [wanted] if wanted else REFERENCES:
        if before.of(name) and after.of(name):
            return name
    raise LookupError(f"no time of {wanted or 'another library'} in both runs to hold ours against")


def _changes(before: CaseResult, after: CaseResult, reference: str) -> Iterator[Change]:
    noise = (before.noise or 1.0) * (after.noise or 1.0)
    base = before.of(reference), after.of(reference)
    assert base[0] is not None
    assert base[1] is not None
    for contender in after.contenders:
        old = before.of(contender.name)
        if contender.name in (reference, AGAIN) or old is None or not contender.timed:
            continue
        ratio = change((old.times, base[0].times), (contender.times, base[1].times))
        if ratio is not None:
            yield Change(after.name, contender.name, reference, ratio, noise)


def told(before: Result, after: Result, reference: str | None, console: Console) -> int:
    """Print a comparison; 1 with regressions, else 0."""
    found = compared(before, after, reference)
    console.print(_table(found.changes))
    for line in _notes(before, after, found):
        console.print(line, style="yellow", markup=False, soft_wrap=True)
    slower = [f"{one.contender}: {one.case}" for one in found.regressions]
    if slower:
        console.print(
            f"{len(slower)} slower than before, beyond the noise: {'; '.join(slower)}", style="red", markup=False
        )
        return 1
    console.print(f"nothing is slower beyond the noise, in {len(found.changes)} comparisons", style="green")
    return 0


def _notes(before: Result, after: Result, found: Comparison) -> list[str]:
    notes = [f"not compared: {name}: {why}" for name, why in sorted(found.left_out.items())]
    for key in ("processor", "system"):
        if before.machine[key] != after.machine[key]:
            notes.append(f"another machine: {before.machine[key]}, then {after.machine[key]}")
    for name in sorted({one.reference for one in found.changes} & set(before.libraries) & set(after.libraries)):
        if before.libraries[name] != after.libraries[name]:
            notes.append(f"the reference changed: {name} {before.libraries[name]}, then {after.libraries[name]}")
    silent = sum(not one.ratio.settled for one in found.changes)
    return [*notes, f"{silent} without an interval: fewer than two rounds"] if silent else notes


def _table(changes: Sequence[Change]) -> Table:
    table = Table(title="time after / before, by the reference of each run")
    for column in ("case", "contender", "by", "change", "noise", ""):
        table.add_column(column, justify="right" if column in ("change", "noise") else "left")
    for one in sorted(changes, key=lambda one: (not one.slower, not one.faster, one.contender != OURS)):
        ends = f" [{number(one.ratio.low)}, {number(one.ratio.high)}]" if one.ratio.low and one.ratio.high else ""
        word = Text("slower", style="red") if one.slower else Text("faster" if one.faster else "", style="green")
        table.add_row(
            one.case, one.contender, one.reference, f"{number(one.ratio.value)}{ends}", f"× {one.noise:.3g}", word
        )
    return table
