"""The loop of those who have another one above temperature 0: see `spec/faults/speculative_drawn.py`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
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


def of_the_last(*names: str) -> Change:
    """The target has room for one of each: that of whoever came last."""

    def begin(self: SpeculativeGenerate, players: tuple[Player, Player], request: Request) -> Iterator[Any]:
        players[0].last = {name: getattr(request, name) for name in names}  # type: ignore[attr-defined]
        return SpeculativeGenerate.begin(self, players, request)

    def own(run: Run) -> Run:
        return replace(run, request=replace(run.request, **run.target.last))  # type: ignore[attr-defined]

    return {
        "begin": begin,
        "count": lambda self, run: SpeculativeGenerate.count(self, own(run)),
        "target_chances": lambda self, run, rows: SpeculativeGenerate.target_chances(self, own(run), rows),
        "draft_chances": lambda self, run, rows: SpeculativeGenerate.draft_chances(self, own(run), rows),
    }
