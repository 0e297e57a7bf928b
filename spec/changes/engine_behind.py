"""An engine whose ids come out with the step after theirs: it computes the next one while the caller has what the last gave."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from inferspec.spec.contract import Arguments
from inferspec.spec.engine import Engine
from inferspec.spec.engine_model import Served


def a_step_behind(self: Engine, a: Arguments, clock: Callable[[], float]) -> Served:
    return _Behind(self, a, clock)


class _Behind(Served):
    """What callers see of each request is what came out: its ids, their times and the logits of the last."""

    def __init__(self, operation: Engine, a: Arguments, clock: Callable[[], float]) -> None:
        super().__init__(operation, a, clock)
        self.made: list[tuple[int, int, Any]] = []
        self.out: dict[int, list[int]] = {}
        self.times: dict[int, list[float]] = {}
        self.last: dict[int, Any] = {}

    def add_request(self, tokens: list[int], max_tokens: int, priority: int = 0, eos: Sequence[int] = ()) -> int:
        name = super().add_request(tokens, max_tokens, priority, eos)
        self.out[name], self.times[name] = [], []
        return name

    def step(self) -> list[tuple[int, int]]:
        new = super().step()
        ready, self.made = self.made, [(name, token, super(_Behind, self).logits(name)) for name, token in new]
        for name, token, row in ready:
            self.out[name].append(token)
            self.times[name].append(self.m.clock())
            self.last[name] = row
        return [(name, token) for name, token, _ in ready]

    def run(self) -> dict[int, list[int]]:
        while self.has_unfinished:
            self.step()
        return {name: list(ids) for name, ids in self.out.items() if not self.m.requests[name].cancelled}

    def cancel(self, name: int) -> None:
        if not self.finished(name):
            super().cancel(name)
            self.m.requests[name].cancelled = True
            self.made = [one for one in self.made if one[0] != name]

    def output(self, name: int) -> list[int]:
        return list(self.out[name])

    def finished(self, name: int) -> bool:
        return super().finished(name) and all(name != made for made, *_ in self.made)

    def metrics(self, name: int) -> Any:
        request = Arguments(**{**vars(self.it.known(self.m, name)), "times": self.times[name]})
        return self.it.metrics(self.m, request)

    def logits(self, name: int) -> Any:
        return self.last[name]

    @property
    def has_unfinished(self) -> bool:
        return bool(super().has_unfinished or self.made)
