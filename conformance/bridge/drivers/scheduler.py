"""How a scheduler is used: the steps of a story, with the subject's own block manager where it has one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from types import SimpleNamespace
from typing import Any

from inferspec.conformance.bridge.arrays import Arrays
from inferspec.conformance.bridge.drivers import Handed, handed, made, taken
from inferspec.spec.contract import Arguments
from inferspec.spec.scheduler import Scheduler
from inferspec.spec.serving import ModelManager, Story

STEP = ("prefills", "decodes", "preempted")


class _Shown:
    """A step whose parts are attributes. own: as the scheduler gave it."""

    def __init__(self, own: Any) -> None:
        self.own = own


class Scheduling(Handed):
    """A scheduler whose steps and chunks may be dicts, and steps tuples."""

    def __init__(self, own: Any, takes: Mapping[str, Sequence[str]]) -> None:
        super().__init__(own, takes)
        self.shown: _Shown | None = None

    def schedule(self) -> Any:
        step = self.handed("schedule")()
        named = self._named(step)
        if named is None:
            return step
        # A step that is filled anew is the same one.
        if self.shown is None or self.shown.own is not step:
            self.shown = _Shown(step)
        self.shown.__dict__ = {"own": step, **{name: _chunks(chunks) for name, chunks in named.items()}}
        return self.shown

    def update(self, step: Any, tokens: Sequence[int | None]) -> Any:
        return self.handed("update")(step.own if isinstance(step, _Shown) else step, tokens)

    def _named(self, step: Any) -> Mapping[str, Any] | None:
        """The parts of a step by their names; None where it can be read as it is, or not at all. Who has dicts for chunks has none
        of them in some steps."""
        if all(hasattr(step, name) for name in STEP):
            plain = any(isinstance(chunk, Mapping) for chunk in (*step.prefills, *step.decodes))
            return {name: getattr(step, name) for name in STEP} if plain or self.shown else None
        if isinstance(step, Mapping):
            return {name: step[name] for name in STEP if name in step}
        return dict(zip(STEP, step, strict=True)) if isinstance(step, tuple) and len(step) == len(STEP) else None


def _chunks(chunks: Any) -> list[Any]:
    return [SimpleNamespace(**chunk) if isinstance(chunk, Mapping) else chunk for chunk in chunks]


def drive(make: Any, given: Mapping[str, Any], to: Arrays) -> dict[str, Any]:
    """make: the subject's class, or a function that makes a scheduler of a block manager and two limits."""
    managers = given["BlockManager"](given) if "BlockManager" in given else ModelManager
    # Caching is the default: a manager that can only do one of both need not have the parameter.
    options = {} if given["prefix_caching"] else taken(managers, prefix_caching=False)
    sizes = {name: given[name] for name in ("num_blocks", "block_size")}
    blocks = partial(made, managers, options, **sizes)

    def scheduler(block_manager: Any, max_requests: int, max_prefill_tokens: int) -> Any:
        limits = {"max_requests": max_requests, "max_prefill_tokens": max_prefill_tokens}
        return Scheduling(handed(make, block_manager=block_manager, **limits), Scheduler.takes)

    return Story(scheduler, blocks, Arguments(**{"together": False, **given})).told(given["steps"])


DRIVERS = {"Scheduler": drive}
