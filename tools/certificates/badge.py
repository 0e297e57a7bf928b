"""A certificate as a badge: the JSON that shields.io takes from an endpoint (https://shields.io/badges/endpoint-badge)."""

from __future__ import annotations

from typing import Any

from inferspec.conformance.certificate import verdict_text
from inferspec.tools.certificates.reading import Certificate

COLOURS = {"conformant": "brightgreen", "nonconformant": "red", "incomplete": "lightgrey"}


def badge(certificate: Certificate, label: str = "inferspec") -> dict[str, Any]:
    """Return the badge: the verdict, and how many requirements passed of those that were claimed."""
    rows = certificate["requirements"]
    claimed = [row for row in rows if row["state"] not in ("not_claimed", "outside_envelope")]
    passed = sum(row["state"] == "passed" for row in claimed)
    return {
        "schemaVersion": 1,
        "label": label,
        "message": f"{verdict_text(certificate)}, {passed} of {len(claimed)} requirements",
        "color": COLOURS[certificate["verdict"]],
        "isError": certificate["verdict"] == "nonconformant",
    }
