"""What failures have in common: one mistake may show in many requirements."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from inferspec.conformance.judging.refusals import words
from inferspec.conformance.judging.repeated_failures import RAISED, REFUSED
from inferspec.conformance.reporting.certificate import BAD

FEWEST = 3
"""Requirements that have to fail alike before it is worth a line."""

LONGEST = 160
"""Characters of an error that are shown."""

_NATIVE = re.compile(r"it meets class native: declare PRECISION = \{\"(?P<component>\w+)\": \"native\"\}")

_DECLARED = re.compile(r"if it does not support (?P<what>.+?), say so: (?P<line>ENVELOPE = .+)$")
"""How a failure says what an adapter declares that does not mean to support what it refused."""

NATIVE = "native"
"""By what results of the looser class of precision are known, whichever components they are of."""

IDS = 12
"""Requirements of a cause that are named in its line."""


@dataclass(frozen=True)
class Cause:
    """What some requirements fail alike by. text: in words; ids: of the requirements, in their order."""

    text: str
    ids: tuple[str, ...]

    def __str__(self) -> str:
        more = f" and {len(self.ids) - IDS} more" if len(self.ids) > IDS else ""
        return f"{len(self.ids)} requirements fail alike, {self.text}: {', '.join(self.ids[:IDS])}{more}"


def causes(rows: Sequence[Mapping[str, Any]]) -> list[Cause]:
    """The causes that most of the unmet requirements of a certificate share, the widest first; each requirement has one
    at most. An error counts by its type and the line that raises it, or in a story by its words, a mistake by the fault
    that a diagnosis names, and results that meet the looser class of precision as one, whatever they are of."""
    shared: dict[str, dict[str, str]] = {}
    for row in rows:
        if row["state"] in BAD:
            for key, text in _told(row["failures"]):
                shared.setdefault(key, {}).setdefault(row["id"], text)
    if NATIVE in shared:
        components = sorted(set(shared[NATIVE].values()))
        shared[NATIVE] = dict.fromkeys(shared[NATIVE], _native(components))
    found: list[Cause] = []
    while shared and len(widest := max(shared.values(), key=len)) >= FEWEST:
        of_them = [row for row in rows if row["id"] in widest]
        found.append(Cause(next(iter(widest.values())) + _left_out(of_them), tuple(widest)))
        shared = {key: {one: text for one, text in group.items() if one not in widest} for key, group in shared.items()}
    return found


def native_components(row: Mapping[str, Any]) -> set[str]:
    """The components that would have to be declared native for a requirement to be met; none where that would not do."""
    found = [_NATIVE.search(failure["message"]) for failure in row["failures"]]
    return {one["component"] for one in found if one} if all(found) else set()


def declaration(components: Iterable[str]) -> str:
    """What an adapter says of components that compute in the input's dtype."""
    said = ", ".join(f'"{one}": "native"' for one in sorted(components))
    return f"PRECISION = {{{said}}}"


def _left_out(rows: Sequence[Mapping[str, Any]]) -> str:
    """What most of the requirements that fail alike say is to be declared, if they say so of the same."""
    lines = [_DECLARED.search(failure["message"]) for row in rows for failure in row["failures"]]
    said = Counter((line["what"], line["line"]) for line in lines if line)
    if not said:
        return ""
    (what, line), times = said.most_common(1)[0]
    return f"; if {what} are not to be supported: {line}" if 2 * times > len(lines) else ""


def _native(components: Sequence[str]) -> str:
    return (
        "by steps that are rounded to the input's dtype, where the default is float32: declare"
        f" {declaration(components)} to be certified as native"
    )


def _told(failures: Sequence[Mapping[str, Any]]) -> Iterator[tuple[str, str]]:
    """What a requirement's failures may have in common with others: by what it is known, and in words."""
    for failure in failures:
        if raised := RAISED.search(failure["message"]):
            yield f"{raised['kind']} {raised['place']}", f"by {_shown(raised['error'])} (at {raised['place']})"
        elif refused := REFUSED.search(failure["message"]):
            yield f"{refused['kind']} {words(refused['error'])}", f"by {_shown(refused['error'])}"
        for fault in failure["diagnosis"]:
            yield fault, f"as {fault} would"
    # One test that shows something else is enough for a declaration to mend nothing.
    yield from ((NATIVE, component) for component in sorted(native_components({"failures": failures}))[:1])


def _shown(error: str) -> str:
    """An error in one line that is not too long."""
    line = " ".join(error.split()).removesuffix(":")
    return line if len(line) <= LONGEST else f"{line[:LONGEST]} …"
