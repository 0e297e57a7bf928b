"""What the scripts of all stories have in common: their steps, and how the arrays in these lie in memory."""

from __future__ import annotations

from typing import Any

from inferspec.conformance.calls import VIEWS, Call
from inferspec.conformance.strategies import Pick, constant_along

Tried = int | tuple[int, ...]
"""The number of a step that is to be refused, or of all of several in a row."""


class Steps:
    """A story being written."""

    def __init__(self, pick: Pick) -> None:
        self.pick = pick
        self.steps: list[tuple[str, dict[str, Any]]] = []
        self.views: dict[str, str] = {}

    def do(self, step: str, /, **arguments: Any) -> int:
        """Add a step; returns its number."""
        self.steps.append((step, arguments))
        return len(self.steps)

    def tried(self, again: bool) -> Tried:
        """The number of the last step, which is to be refused; again: it comes two to four times, as from who tries until it
        goes, and the numbers are those of all."""
        first = len(self.steps)
        if not again:
            return first
        self.steps += self.steps[-1:] * self.pick.one_of(1, 2, 3)
        return tuple(range(first, len(self.steps) + 1))

    def laid(self, *names: str) -> None:
        """Have arrays of the last step lie in memory as views; a broadcast one is made constant along an axis first."""
        arguments = self.steps[-1][1]
        for name in names:
            view = self.pick.one_of(*VIEWS)
            self.views[f"steps.{len(self.steps) - 1}.1.{name}"] = view
            if view == "broadcast":
                arguments[name] = constant_along(arguments[name], self.pick)

    def viewed(self, call: Call) -> Call:
        """The call with its arrays as they are to lie."""
        for path, view in self.views.items():
            call = call.viewing(path, view)
        return call
