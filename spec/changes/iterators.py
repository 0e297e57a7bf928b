"""Iterators of ids that are objects, and no generators: see `spec/faults/generation_callers.py` and `spec/faults/speculative.py`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any


class Holding:
    """An iterator that keeps what it works on for as long as anyone has it."""

    def __init__(self, ids: Iterator[Any], kept: Any) -> None:
        self.ids, self.kept = ids, kept

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        return next(self.ids)
