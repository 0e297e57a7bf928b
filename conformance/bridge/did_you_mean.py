"""What someone may have meant by a name that is not there."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


def nearest(name: str, known: Iterable[str], count: int = 3, cutoff: float = 0.6) -> list[str]:
    """The known names that are most like it, however either is capitalised; the most alike first."""
    spelt: dict[str, str] = {}
    for one in known:
        spelt.setdefault(one.lower(), one)
    return [spelt[one] for one in difflib.get_close_matches(name.lower(), spelt, count, cutoff)]


def meant(name: str, known: Iterable[str]) -> str:
    """The end of a sentence that refuses a name: what is nearest to it, or nothing."""
    found = nearest(name, known, 1)
    return f"; did you mean {found[0]}?" if found else ""
