"""What moved between two certificates: of two versions of an implementation, two libraries, two machines."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from inferspec.conformance.reporting.certificate import STATES
from inferspec.tools.certificates.reading import Certificate

FACTOR = 2
"""An error is said to have moved when it is so many times as large or as small, as a share of its budget."""


@dataclass(frozen=True)
class Change:
    """One thing that is not as it was. weight: 1 better, -1 worse, 0 neither."""

    what: str
    before: str
    after: str
    weight: int = 0


def changes(before: Certificate, after: Certificate) -> list[Change]:
    """Return what differs: the circumstances first, then requirement by requirement, then errors that moved."""
    return [*_circumstances(before, after), *_requirements(before, after), *_errors(before, after)]


def _circumstances(before: Certificate, after: Certificate) -> Iterator[Change]:
    pairs = {
        "verdict": lambda c: c["verdict"],
        "kit": lambda c: c["kit"]["version"],
        "requirement list": lambda c: c["kit"]["requirements"][:12],
        "subject": lambda c: c["subject"]["name"],
        "version": lambda c: c["subject"]["version"],
        "library": lambda c: c["subject"]["library"],
        "device": lambda c: c["subject"]["device"],
        "kernel path": lambda c: c["subject"]["kernel_path"],
        "machine": lambda c: c["environment"]["machine"],
        "system": lambda c: c["environment"]["system"],
        "Python": lambda c: c["environment"]["python"],
        "matmul": lambda c: c["precision"]["matmul"],
        "profile": lambda c: c["profile"],
        "seed": lambda c: c["seed"],
    }
    for name, of in pairs.items():
        yield from _differing(name, of(before), of(after))
    yield from _entries("", before["environment"]["libraries"], after["environment"]["libraries"])
    yield from _entries("precision of ", before["precision"]["measured"], after["precision"]["measured"])
    yield from _entries("declared precision of ", before["precision"]["declared"], after["precision"]["declared"])
    yield from _entries("envelope of ", before["subject"]["envelope"], after["subject"]["envelope"])


def _entries(prefix: str, before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[Change]:
    for name in {**before, **after}:
        yield from _differing(f"{prefix}{name}", before.get(name, "-"), after.get(name, "-"))


def _differing(name: str, before: Any, after: Any) -> Iterator[Change]:
    if before != after:
        yield Change(name, str(before), str(after))


def _requirements(before: Certificate, after: Certificate) -> Iterator[Change]:
    old = {row["id"]: row for row in before["requirements"]}
    new = {row["id"]: row for row in after["requirements"]}
    for identity in {**old, **new}:
        one, other = (rows[identity]["state"] if identity in rows else "absent" for rows in (old, new))
        if one != other:
            text = (new.get(identity) or old[identity])["text"]
            yield Change(f"{identity} {text}", one, other, _weight(one, other))


def _weight(before: str, after: str) -> int:
    if "absent" in (before, after):
        return 0
    return (STATES.index(after) < STATES.index(before)) - (STATES.index(after) > STATES.index(before))


def _errors(before: Certificate, after: Certificate) -> Iterator[Change]:
    old = {row["id"]: row for row in before["requirements"]}
    for row in after["requirements"]:
        one, other = old.get(row["id"], {}).get("worst", 0.0), row["worst"]
        if one > 0 and other > 0 and not one / FACTOR <= other <= one * FACTOR:
            yield Change(
                f"{row['id']} worst error, share of its budget", f"{one:.3g}", f"{other:.3g}", -1 if other > one else 1
            )
