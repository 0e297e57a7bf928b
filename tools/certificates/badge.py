"""A certificate as a badge: the JSON that shields.io takes from an endpoint (https://shields.io/badges/endpoint-badge)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from inferspec.conformance.reporting.certificate import verdict_text
from inferspec.spec import contract
from inferspec.tools.certificates.reading import Certificate

COLOURS = {"conformant": "brightgreen", "nonconformant": "red", "incomplete": "lightgrey"}


def badge(certificate: Certificate, label: str = "inferspec") -> dict[str, Any]:
    """Return the badge: the verdict, and how many requirements passed of those that were claimed."""
    rows = certificate["requirements"]
    claimed = [row for row in rows if row["state"] not in ("not_claimed", "outside_envelope")]
    passed = sum(row["state"] == "passed" for row in claimed)
    within = ", narrowed envelope" if _is_narrowed(certificate["subject"]) else ""
    return {
        "schemaVersion": 1,
        "label": label,
        "message": f"{verdict_text(certificate)}, {passed} of {len(claimed)} requirements{within}",
        "color": COLOURS[certificate["verdict"]],
        "isError": certificate["verdict"] == "nonconformant",
    }


def _is_narrowed(subject: Mapping[str, Any]) -> bool:
    """Whether an adapter leaves out something of what is asked of everybody."""
    return any(
        _is_left_out(component, key, declared)
        for component, keys in subject["envelope"].items()
        for key, declared in keys.items()
    )


def _is_left_out(component: str, key: str, declared: Any) -> bool:
    own = contract(component)
    # Which of several right ways a subject goes, or what few have, is asked of nobody who does not declare it.
    if any(key in {**operation.either, **operation.unless_declared} for operation in own.operations):
        return False
    asked = own.envelope.get(key)
    return not set(asked) <= set(declared) if isinstance(asked, tuple) else asked is not None and declared < asked
