"""One mistake in both kinds of key/value cache, the growing and the preallocated one."""

from __future__ import annotations

from inferspec.spec import kv_cache as spec
from inferspec.spec.contract import Change, Fault, Requirement
from inferspec.spec.faults.sources import TIRED


def both(name: str, text: str, kills: int, change: Change, source: str = TIRED) -> tuple[Fault, Fault]:
    """The mistake in a growing cache and in a preallocated one."""
    return (
        Fault(f"kv-cache-{name}", text, _requirement(f"KV-{kills:02}"), change, source),
        Fault(f"static-kv-cache-{name}", text, _requirement(f"SKV-{kills:02}"), change, source),
    )


def _requirement(id: str) -> Requirement:
    return next(one for one in spec.CONTRACT.requirements if one.id == id)
