"""The loop of those who have another one above temperature 0: see `spec/faults/speculative_drawn.py`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from inferspec.spec.contract import Change
from inferspec.spec.duet import Player, Request
from inferspec.spec.speculative import Run, SpeculativeGenerate


def when_drawn(change: Change) -> Change:
    """Above temperature 0 it is this loop, or this check, that is used; at 0 the one that it should be."""

    def either(name: str) -> Callable[..., Any]:
        def method(self: SpeculativeGenerate, *given: Any) -> Any:
            # Of a run, of who begins one, or of a check.
            request = given[-1] if name == "begin" else getattr(given[0], "request", given[0])
            own = change[name] if request.temperature > 0 else getattr(SpeculativeGenerate, name)
            return own(self, *given)

        return method

    return {name: either(name) for name in change}


def begins_unchecked(self: SpeculativeGenerate, players: tuple[Player, Player], request: Request) -> Iterator[Any]:
    """Nobody asks whether the caches can be rewound."""
    target, draft = players
    caches = target.make_cache(), draft.make_cache()
    return self.ids(Run(target, draft, self.taken(request), *caches, self.prompt(request)))
