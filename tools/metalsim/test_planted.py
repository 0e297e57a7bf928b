"""What check mode finds: every planted bug, at its line; and nothing in right kernels.

`planted/bugs/*.metal` say in comments at the ends of lines what must be found there. `finds: data race A` on two lines: a race
between the two; on one line: between two threads there. `may find:` is what follows from the bug under some schedules. The
kernels of `planted/controls/` must get no report, not even a harmless one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from inferspec.tools import metalsim
from inferspec.tools.metalsim import Finding, Report, Schedule
from inferspec.tools.metalsim.launches import launches_in

PLANTED = Path(__file__).resolve().parent / "planted"
BUGS = sorted((PLANTED / "bugs").glob("*.metal"))
CONTROLS = sorted((PLANTED / "controls").glob("*.metal"))
SCHEDULES = [
    Schedule("forward"),
    Schedule("reverse", groups="reverse", reduction="backward"),
    Schedule("random", seed=7, groups="random", reduction="halves"),
]

# A finding and the lines that it names.
Found = tuple[Finding, frozenset[int]]

_MARK = re.compile(r"(?P<may>may find|finds): (?P<finding>[\w -]+?)(?: (?P<pair>[A-Z]))?(?:;|$)")
_TIMEOUT = re.compile(r"^// timeout: ([\d.]+)$", re.MULTILINE)


def expected(text: str) -> tuple[set[Found], set[tuple[Finding, int]]]:
    """What must be found in a file, and what may be, by line."""
    must: dict[tuple[Finding, str], set[int]] = {}
    may: set[tuple[Finding, int]] = set()
    for number, line in enumerate(text.splitlines(), 1):
        for mark in _MARK.finditer(line.partition("//")[2]):
            finding = Finding(mark["finding"])
            if mark["may"] == "may find":
                may.add((finding, number))
            else:
                must.setdefault((finding, mark["pair"] or f"line {number}"), set()).add(number)
    return {(finding, frozenset(lines)) for (finding, _), lines in must.items()}, may


def found(report: Report) -> Found:
    sites = [access.site for access in (report.access, report.other) if access and access.site]
    return report.finding, frozenset(site.line for site in sites)


def reports(path: Path, schedule: Schedule) -> Iterator[Report]:
    """What running a file's launches finds."""
    text = path.read_text()
    collected: list[Report] = []
    timeout = _TIMEOUT.search(text)
    limit = float(timeout[1]) if timeout else 30.0
    with metalsim.settings(mode="check", schedule=schedule, on_report=collected.append, timeout=limit):
        for launch in launches_in(text):
            launch.run(path)
    assert launches_in(text), f"{path.name} names no launch"
    yield from collected


@pytest.mark.parametrize("path", BUGS, ids=lambda path: path.stem)
def test_a_planted_bug_is_found_at_its_line_in_every_schedule(path: Path) -> None:
    must, may = expected(path.read_text())
    assert must, f"{path.name} says nowhere what is to be found"
    for schedule in SCHEDULES:
        told = list(reports(path, schedule))
        shown = "\n".join(map(metalsim.describe, told))
        all_found = {found(report) for report in told}
        assert must <= all_found, f"{schedule}: not found: {must - all_found}\n{shown}"
        for finding, lines in all_found - must:
            assert {(finding, line) for line in lines} <= may, f"{schedule}: {finding} at {set(lines)} is none\n{shown}"
            assert lines, f"{schedule}: {finding} without a line\n{shown}"


@pytest.mark.parametrize("path", CONTROLS, ids=lambda path: path.stem)
def test_a_right_kernel_gets_no_report(path: Path) -> None:
    for schedule in SCHEDULES:
        assert [metalsim.describe(report) for report in reports(path, schedule)] == []


def test_the_planted_bugs_cover_every_finding() -> None:
    kinds = {finding for path in BUGS for finding, _ in expected(path.read_text())[0]}
    assert kinds == set(Finding)


def test_there_are_enough_of_both() -> None:
    assert len(BUGS) >= 40
    assert len(CONTROLS) >= 20
