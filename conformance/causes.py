"""What failures have in common: one mistake may show in many requirements."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from inferspec.conformance.certificate import BAD

FEWEST = 3
"""Requirements that have to fail alike before it is worth a line."""

LONGEST = 160
"""Characters of an error that are shown."""

_RAISED = re.compile(
    r"(?:raises|refuses what its envelope includes): (?P<error>(?P<kind>\w+): .*?) \(at (?P<place>.+?:\d+)\)", re.DOTALL
)

_NATIVE = re.compile(r"it meets class native: (?P<advice>declare PRECISION = \{.*?\})")


@dataclass(frozen=True)
class Cause:
    """What some requirements fail alike by. text: in words; ids: of the requirements, in their order."""

    text: str
    ids: tuple[str, ...]

    def __str__(self) -> str:
        return f"{len(self.ids)} requirements fail alike, {self.text}: {', '.join(self.ids)}"


def causes(rows: Sequence[Mapping[str, Any]]) -> list[Cause]:
    """The causes that most of the unmet requirements of a certificate share, the widest first; each requirement has one
    at most. An error counts by its type and the line that raises it, a mistake by the fault that a diagnosis names, and
    results that meet the looser class of precision by the component that does not declare it."""
    shared: dict[str, dict[str, str]] = {}
    for row in rows:
        for failure in row["failures"] if row["state"] in BAD else ():
            for key, text in _told(failure):
                shared.setdefault(key, {}).setdefault(row["id"], text)
    found: list[Cause] = []
    while shared and len(widest := max(shared.values(), key=len)) >= FEWEST:
        found.append(Cause(next(iter(widest.values())), tuple(widest)))
        shared = {key: {one: text for one, text in group.items() if one not in widest} for key, group in shared.items()}
    return found


def _told(failure: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """What a failure may have in common with others: by what it is known, and in words."""
    if raised := _RAISED.search(failure["message"]):
        error, place = " ".join(raised["error"].split()), raised["place"]
        shown = error if len(error) <= LONGEST else f"{error[:LONGEST]} …"
        yield f"{raised['kind']} {place}", f"by {shown} (at {place})"
    if native := _NATIVE.search(failure["message"]):
        yield native["advice"], f"by results that meet class native ({native['advice']})"
    for fault in failure["diagnosis"]:
        yield fault, f"as {fault} would"
