"""What a certificate says of each chapter of a layout's text."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Any

from inferspec.conformance.bridge.layouts import Chapter, alternatives, by_chapter, guards
from inferspec.conformance.reporting.certificate import BAD

KINDS = ("passed", "failed", "SHOULD unmet", "guards missing", "not asked", "not run", "not claimed", "waived")
"""What a requirement of a chapter can be."""


@dataclass(frozen=True)
class Standing:
    """What holds of a chapter. counts: what -> how many requirements, never 0; wrong: operation -> ids of what a MUST
    asks and is not met; unclaimed: operation -> why it is not claimed."""

    chapter: Chapter
    counts: Mapping[str, int]
    wrong: Mapping[str, list[str]]
    unclaimed: Mapping[str, str]

    @property
    def claimed(self) -> bool:
        """Whether anything of the chapter is written."""
        return any(what not in ("not asked", "not claimed") for what in self.counts)

    @property
    def text(self) -> str:
        """The counts in words, or where the chapter is judged."""
        return ", ".join(f"{count} {what}" for what, count in self.counts.items()) or self.chapter.elsewhere


def standings(layout: str, rows: Iterable[Mapping[str, Any]], edition: str = "") -> Iterator[Standing]:
    """What holds of each chapter that a certificate's rows tell of; guards that are missing are told apart from what is
    wrong."""
    rows = list(rows)
    apart, missed = guards(layout), _missed(layout, rows)
    for chapter, about in by_chapter(layout, rows, edition):
        found = [(_kind(row, apart), row) for row in about if row["name"] in missed]
        counts = {kind: sum(one == kind for one, _ in found) for kind in KINDS}
        standing = Standing(
            chapter,
            {kind: count for kind, count in counts.items() if count},
            _by_name((row["name"], row["id"]) for kind, row in found if kind == "failed"),
            {row["name"]: row["message"] for kind, row in found if kind == "not claimed"},
        )
        if not standing.claimed or set(standing.counts) - {"not asked", "not claimed", "not run"}:
            yield standing


def _missed(layout: str, rows: Sequence[Mapping[str, Any]]) -> set[str]:
    """The operations that are told of: of alternatives those that are claimed, or the newest edition's, the last, where none is."""
    names = dict.fromkeys(row["name"] for row in rows)
    claimed = {row["name"] for row in rows if row["state"] != "not_claimed"}
    spare: set[str] = set()
    for one_of in alternatives(layout):
        among = [name for name in names if name in one_of]
        spare |= set(among) - (claimed & one_of or set(among[-1:]))
    return set(names) - spare


def _kind(row: Mapping[str, Any], apart: Set[str]) -> str:
    if row["state"] in BAD:
        tests = {one["test"].rpartition("::")[2] for one in row["failures"]}
        guard = row["aspect"] == "guard" or row["id"] in apart or (tests and tests <= apart)
        return "guards missing" if guard else "failed" if row["level"] == "MUST" else "SHOULD unmet"
    return {"outside_envelope": "not asked", "unknown": "not run"}.get(row["state"], row["state"].replace("_", " "))


def _by_name(pairs: Iterable[tuple[str, str]]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for name, identity in pairs:
        found.setdefault(name, []).append(identity)
    return found
