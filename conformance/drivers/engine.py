"""How an engine is used: on the subject's own models, with a clock of the story's."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from inferspec.conformance.arrays import Arrays
from inferspec.spec.contract import Arguments
from inferspec.spec.engine_stories import Fuse, watch

MODELS = {"qwen3": "Qwen3", "llama": "Llama"}


class _Failing:
    """Makes a model raise at one of its uses: an attribute of it that is looked up, or a call."""

    def __init__(self, model: Any) -> None:
        self.left: int | None = None
        self.tripped = False
        kind: Any = type(model)
        used = self.used

        def looked_up(it: Any, name: str) -> Any:
            if not name.startswith("__"):
                used()
            return kind.__getattribute__(it, name)

        def called(it: Any, *given: Any, **named: Any) -> Any:
            used()
            return kind.__call__(it, *given, **named)

        # A model of another kind than Python's own classes goes on without failing.
        with contextlib.suppress(TypeError, AttributeError):
            model.__class__ = type(kind.__name__, (kind,), {"__getattribute__": looked_up, "__call__": called})

    def burn(self, n: int | None) -> None:
        self.left, self.tripped = n, self.tripped and n is None

    def used(self) -> None:
        if self.left is None:
            return
        self.left -= 1
        if self.left < 0:
            self.tripped = True
            raise RuntimeError("the model fails")


def drive(make: Any, given: Mapping[str, Any], to: Arrays) -> dict[str, Any]:
    """make: the subject's class, or a function that makes an engine."""
    model, draft = (_built(given, given[which]) for which in ("model", "draft"))
    names = ("num_pages", "page_size", "max_requests", "max_prefill_tokens")
    options: dict[str, Any] = {name: given[name] for name in names}
    if not given["prefix_caching"]:
        options["prefix_caching"] = False
    if draft is not None:
        options |= {"draft": draft, "num_draft_tokens": given["num_draft_tokens"]}
    failing = _Failing(model) if any(step == "fail" for step, _ in given["steps"]) else None
    fuse = Fuse(failing.burn, lambda: failing.tripped) if failing else Fuse(lambda n: None, lambda: False)
    a = Arguments(**{"seen": ("outputs",), "ticking": False, **given})
    return watch(lambda clock: partial(make, model, **options)(clock=clock), a, fuse)


def _built(given: Mapping[str, Any], model: Mapping[str, Any] | None) -> Any:
    if model is None:
        return None
    model = model if MODELS[model["family"]] in given else model["instead"]
    build: Callable[[Mapping[str, Any]], Any] = given[MODELS[model["family"]]]
    return build({"config": model["config"], "weights": model["weights"]})


DRIVERS = {"Engine": drive}
