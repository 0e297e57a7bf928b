"""How the faults of a model are defined: by the number of the requirement that each of them breaks."""

from __future__ import annotations

from typing import Protocol

from inferspec.spec.contract import Change

TINY_LLM = "https://github.com/skyzh/tiny-llm"
TIRED = "a tired engineer"


class Define(Protocol):
    """Adds a fault: the number of its requirement, its name without the model's, a text, what is changed, where it was seen."""

    def __call__(self, number: int, name: str, text: str, change: Change, source: str = TIRED) -> None: ...
