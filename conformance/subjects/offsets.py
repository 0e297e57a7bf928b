"""The offsets of a contract's RoPE, for libraries that count from a start."""

from __future__ import annotations

from typing import Any


def start_of(offset: Any, length: int) -> Any:
    """The first position that an offset of one row says: 0 for None, an int as it is. ValueError for a slice of another
    length, or of positions that do not follow each other (ROPE-20)."""
    if not isinstance(offset, slice):
        return 0 if offset is None else offset
    if offset.stop - offset.start != length or offset.step not in (None, 1):
        raise ValueError(f"offset is {offset} for {length} tokens; it takes a slice of as many, one after another")
    return offset.start
