"""Barrier deletion: what happens to a kernel without each of its barriers.

A barrier that can go without check mode noticing is redundant, or guards what the launch does not reach; one whose deletion
is told of is needed. Sources are taken as text, so it works on any kernel's.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from .reports import Report

_CALL = re.compile(r"(?:\bmetal\s*::\s*)?\b(?:threadgroup|simdgroup)_barrier\s*\(")
# What looks like a call and is none: in comments and strings.
_NO_CODE = re.compile(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"', re.DOTALL)


@dataclass(frozen=True)
class Barrier:
    """A barrier in a text. start, end: of the call. line: its first line, counted from 1."""

    start: int
    end: int
    line: int
    text: str


@dataclass(frozen=True)
class Deletion:
    """What was found without a barrier. reports: none where nobody notices; harmless ones do not count."""

    barrier: Barrier
    reports: tuple[Report, ...]

    @property
    def noticed(self) -> bool:
        """Whether the barrier is shown to be needed."""
        return any(not report.finding.harmless for report in self.reports)


def barriers(text: str) -> list[Barrier]:
    """The calls of threadgroup_barrier and simdgroup_barrier, in order."""
    code = _NO_CODE.sub(lambda match: re.sub(r"[^\n]", " ", match[0]), text)
    found = []
    for match in _CALL.finditer(code):
        end = _closing(code, match.end() - 1) + 1
        found.append(Barrier(match.start(), end, text.count("\n", 0, match.start()) + 1, text[match.start() : end]))
    return found


def without(text: str, barrier: Barrier) -> str:
    """The text without a barrier; lines keep their numbers."""
    return text[: barrier.start] + "(void)0" + "\n" * barrier.text.count("\n") + text[barrier.end :]


def deletions(
    text: str, run: Callable[[str], Iterable[Report]], only: Callable[[Barrier], bool] = lambda barrier: True
) -> list[Deletion]:
    """Delete the barriers one at a time.

    run: launches the kernels of a text in check mode, in as many schedules as it likes, and returns what was found (as
    `metalsim.settings(on_report=…)` collects it). only: which barriers; others are not deleted.
    """
    return [Deletion(barrier, tuple(run(without(text, barrier)))) for barrier in barriers(text) if only(barrier)]


def _closing(code: str, opening: int) -> int:
    depth = 0
    for index in range(opening, len(code)):
        depth += (code[index] == "(") - (code[index] == ")")
        if depth == 0:
            return index
    raise ValueError(f"the bracket of the barrier in line {code.count(chr(10), 0, opening) + 1} is not closed")
