"""How faults are defined whose component has them in several rooms."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from inferspec.spec.contract import Change, Fault, Requirement

TINY_LLM = "https://github.com/skyzh/tiny-llm"
TIRED = "a tired engineer"


class Define(Protocol):
    """Adds a fault of a model: the number of its requirement, its name without the model's, a text, what is changed, where it
    was seen, and other forms of it."""

    def __call__(
        self, number: int, name: str, text: str, change: Change, source: str = TIRED, forms: tuple[Change, ...] = ()
    ) -> None: ...


def named(component: str) -> Callable[[str, str, Requirement, Change, str], Fault]:
    """How the faults of a component are made, whose name it begins with."""

    def fault(name: str, text: str, kills: Requirement, change: Change, source: str) -> Fault:
        return Fault(f"{component}-{name}", text, kills, change, source)

    return fault
