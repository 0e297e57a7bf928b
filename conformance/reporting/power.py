"""The kit's own proof of power, as certificates quote it: what the last recorded kill matrix showed."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

from inferspec.spec import contracts

POWER = Path(__file__).resolve().parents[1] / "power.json"
"""Written by `inferspec faults --record`."""


def faults_digest() -> str:
    """A sha256 over the faults and variants: the identity of what a kill matrix was made of."""
    rows = [[f.name, f.kills.id] for c in contracts() for f in c.faults] + [
        [v.name] for c in contracts() for v in c.variants
    ]
    return hashlib.sha256(json.dumps(sorted(rows)).encode()).hexdigest()


def power() -> dict[str, Any] | None:
    """The recorded figures, or None when there are none for the faults as they are now."""
    try:
        figures = json.loads(POWER.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return figures if figures.get("digest") == faults_digest() else None
