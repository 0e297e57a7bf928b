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


class Scheduling(Handed):
    """A scheduler whose steps and chunks may be dicts, and steps tuples."""

    def schedule(self) -> Any:
        step = self.handed("schedule")()
        if all(hasattr(step, name) for name in STEP):
            return step
        if not isinstance(step, Mapping | tuple):
            return step
        named = step if isinstance(step, Mapping) else dict(zip(STEP, step, strict=False))
        return SimpleNamespace(own=step, **{name: _shown(named[name]) for name in STEP if name in named})

    def update(self, step: Any, tokens: Sequence[int | None]) -> Any:
        return self.handed("update")(getattr(step, "own", step), tokens)


def _shown(chunks: Any) -> list[Any]:
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
