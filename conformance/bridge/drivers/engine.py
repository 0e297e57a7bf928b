"""How an engine is used: on the subject's own models, with a clock of the story's."""

from __future__ import annotations

import builtins
import contextlib
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from inferspec.conformance.bridge.arrays import Arrays
from inferspec.conformance.bridge.drivers import Handed, handed, taken
from inferspec.spec.contract import Arguments, Unreadable
from inferspec.spec.engine import Engine
from inferspec.spec.engine_stories import Fuse, pairs_of, read, watch

MODELS = {"qwen3": "Qwen3", "llama": "Llama"}


class _Used:
    """Notes the uses of a model: an attribute of it that is looked up, or a call; makes it raise at one of them."""

    def __init__(self, model: Any) -> None:
        self.left: int | None = None
        self.error: type[Exception] = RuntimeError
        self.at = "use"
        self.tripped = False
        self.failed: list[str] = []
        """At what it failed, each time that it was to; "" where it did not."""
        self.listener: Callable[[], None] = lambda: None
        kind: Any = type(model)
        used = self.used

        def looked_up(it: Any, name: str) -> Any:
            value = kind.__getattribute__(it, name)
            if not name.startswith("__"):
                used("reading" if _is_data(name, value) else "use", f"its use, {name}")
            return value

        def called(it: Any, *given: Any, **named: Any) -> Any:
            used(what="its use, a call")
            used("call", "its call, before anything was computed")
            logits = kind.__call__(it, *given, **named)
            used("end", "its call, when all was computed")
            return logits

        # A model of another kind than Python's own classes goes on unnoticed, and without failing.
        with contextlib.suppress(TypeError, AttributeError):
            model.__class__ = type(kind.__name__, (kind,), {"__getattribute__": looked_up, "__call__": called})

    def burn(self, n: int | None, error: str, at: str) -> None:
        self.failed += [""] if n is not None else []
        self.left, self.tripped, self.error, self.at = n, self.tripped and n is None, getattr(builtins, error), at

    def watch(self, listener: Callable[[], None]) -> None:
        self.listener = listener

    def used(self, how: str = "use", what: str = "") -> None:
        """how: a reading counts as a use, and what is to fail at one fails at the next use that may."""
        kind = "use" if how == "reading" else how
        if kind == "use":
            self.listener()
        if self.left is None or kind != self.at:
            return
        self.left -= 1
        if self.left < 0 and how != "reading":
            self.tripped, self.failed[-1] = True, self.failed[-1] or what
            raise self.error("the model fails")


class Running(Handed):
    """An engine whose `run` gives its outputs in one of the ways in which engines do."""

    def __init__(self, own: Any) -> None:
        super().__init__(own, Engine.takes)
        self.live: list[Any] = []
        """The ids of requests that were added, and not cancelled before they were finished; in that order."""

    def add_request(self, tokens: Sequence[int], max_tokens: int, **options: Any) -> Any:
        name = self.handed("add_request")(tokens, max_tokens, **options)
        self.live.append(name)
        return name

    def cancel(self, name: Any) -> None:
        over = name in self.live and self.finished(name)
        self.handed("cancel")(name)
        self.live = [one for one in self.live if one != name or over]

    def run(self) -> Mapping[Any, Any]:
        """By id, or in the order of the requests, or (id, output) by (id, output). Where nothing comes, what the engine tells then;
        so too where ids come as steps give them, if they are those that were lacking."""
        had = {name: self._so_far(name) for name in self.live}
        given = self.handed("run")()
        if isinstance(given, Mapping):
            return given
        if isinstance(given, Iterator):
            made = defaultdict[Any, list[int]](list)
            for one in given:
                for name, token in self.gave(one, had):
                    made[name].append(int(token))
            return {name: self._ending(name, had[name], made[name]) for name in self.live}
        if given is None:
            return {name: self.output(name) for name in self.live}
        return self._by_id(list(given) if isinstance(given, Iterable) else [given], type(given).__name__)

    def _so_far(self, name: Any) -> int:
        """How many ids a request has; before the first one an engine may have nothing to tell."""
        with contextlib.suppress(Exception):
            return len(list(self.output(name)))
        return 0

    def gave(self, one: Any, had: Mapping[Any, int]) -> Iterable[tuple[Any, Any]]:
        """The ids of what a run gives next, as (id, token): such a pair, the pairs of a step, or (id, output). had: how many ids of
        each output were there before."""
        if isinstance(one, tuple) and len(one) == 2:
            name, ids = one
            if np.ndim(ids) == 0:
                return [one]
            if name in self.live:
                return [(name, token) for token in ids[had[name] :]]
        return list(pairs_of(one))

    def _ending(self, name: Any, had: int, made: list[int]) -> list[int]:
        """The output of a request that had so many ids, if a run made these ids of it; else what they make of it. What a step chose
        before it failed may come now, too."""
        told = [int(token) for token in self.output(name)]
        lacking = len(told) - had
        return told if len(made) >= lacking and told[len(told) - len(made) :] == made else told[:had] + made

    def _by_id(self, given: list[Any], kind: str) -> Mapping[Any, Any]:
        pairs = [one for one in given if isinstance(one, tuple) and len(one) == 2 and np.ndim(one[1]) == 1]
        if len(pairs) == len(given) and {name for name, _ in pairs} <= set(self.live):
            return dict(pairs)
        if len(given) == len(self.live) and all(np.ndim(ids) == 1 for ids in given):
            return dict(zip(self.live, given, strict=True))
        raise Unreadable(f"run gives a {kind} of {len(given)}, which is no {{id: output}} of {len(self.live)} requests")


class Counted(Running):
    """An engine that does not tell all of its requests: what steps and runs give of them is counted. No id ends one."""

    def __init__(self, own: Any) -> None:
        super().__init__(own)
        self.limits: dict[Any, int] = {}
        self.outputs: dict[Any, list[int]] = {}
        self.cancelled: list[Any] = []

    def add_request(self, tokens: Sequence[int], max_tokens: int, **options: Any) -> Any:
        name = super().add_request(tokens, max_tokens, **options)
        self.limits[name], self.outputs[name] = max_tokens, []
        return name

    def step(self) -> list[tuple[Any, Any]]:
        made = list(pairs_of(self.handed("step")()))
        self._count(made)
        return made

    def run(self) -> Mapping[Any, Any]:
        outputs = super().run()
        self.outputs |= {name: list(ids) for name, ids in outputs.items()}
        return outputs

    def gave(self, one: Any, had: Mapping[Any, int]) -> Iterable[tuple[Any, Any]]:
        made = super().gave(one, had)
        self._count(made, "run")
        return made

    def _count(self, made: Iterable[tuple[Any, Any]], where: str = "step") -> None:
        for name, token in made:
            if name not in self.limits:
                raise Unreadable(f"{where} tells of a request {name!r}, and add_request gave the ids {[*self.limits]}")
            self.outputs[name].append(token)

    def cancel(self, name: Any) -> None:
        super().cancel(name)
        self.cancelled.append(name)

    def output(self, name: Any) -> Any:
        return self.handed("output")(name) if self._tells("output") else list(self.outputs[name])

    def finished(self, name: Any) -> Any:
        if self._tells("finished"):
            return self.handed("finished")(name)
        return name in self.cancelled or len(self.outputs[name]) >= self.limits[name]

    @property
    def has_unfinished(self) -> Any:
        if self._tells("has_unfinished"):
            return read(self._own, "has_unfinished")
        return not all(self.finished(name) for name in self.limits if name not in self.cancelled)

    def _tells(self, method: str) -> bool:
        return hasattr(self._own, method)


def _is_data(name: str, value: Any) -> bool:
    """Whether an attribute of a model is a number, a text or its config: reading it computes nothing, so it never fails."""
    return name == "config" or value is None or isinstance(value, int | float | str)


def drive(make: Any, given: Mapping[str, Any], to: Arrays) -> dict[str, Any]:
    """make: the subject's class, or a function that makes an engine."""
    model, draft = (_built(given, given[which]) for which in ("model", "draft"))
    options = taken(make, max_requests=given["max_requests"], max_prefill_tokens=given["max_prefill_tokens"])
    # An engine without pages has memory of its own.
    options |= taken(make, num_pages=given["num_pages"], page_size=given["page_size"])
    # What an engine has but one of it need not be told.
    if not given["prefix_caching"]:
        options |= taken(make, prefix_caching=False)
    if draft is not None:
        options |= {"draft": draft, **taken(make, num_draft_tokens=given["num_draft_tokens"])}
    a = Arguments(**{"seen": ("outputs",), "ticking": False, **given})
    watched = "computing" in a.seen or any(step == "fail" for step, _ in a.steps)
    used = (_Used(model), _Used(draft)) if watched else ()
    fuse = _fuse(*used) if used else _NONE

    def engine(clock: Callable[[], float], **other: Any) -> Any:
        own = {**options, **taken(make, clock=clock, **other)}
        made = handed(partial(make, **own), model=model)
        lacking = not all(hasattr(made, name) for name in ("output", "finished", "has_unfinished"))
        return Counted(made) if lacking else Running(made)

    told = watch(engine, a, fuse)
    return {**told, **_failures(a.steps, used)}


def _failures(steps: Sequence[tuple[str, Mapping[str, Any]]], used: Sequence[_Used]) -> dict[str, str]:
    """At what a model failed, of each step in which it was to: for the reader of what came of it."""
    found: dict[str, str] = {}
    failed = [iter(one.failed) for one in used]
    for number, (step, given) in enumerate(steps, 1):
        if step == "fail":
            draft = bool(given.get("draft"))
            if what := next(failed[draft], ""):
                found[f"{number} why"] = f"the {'draft' if draft else 'model'} failed at {what}"
    return found


_NONE = Fuse(lambda n, error, draft, at: None, lambda: False, lambda listener: None)


def _fuse(*used: _Used) -> Fuse:
    def burn(n: int | None, error: str, draft: bool, at: str) -> None:
        for one, meant in zip(used, (not draft, draft), strict=True):
            one.burn(n if meant else None, error, at)

    return Fuse(burn, lambda: any(one.tripped for one in used), used[0].watch)


def _built(given: Mapping[str, Any], model: Mapping[str, Any] | None) -> Any:
    if model is None:
        return None
    model = model if MODELS[model["family"]] in given else model["instead"]
    build: Callable[[Mapping[str, Any]], Any] = given[MODELS[model["family"]]]
    return build({"config": model["config"], "weights": model["weights"]})


DRIVERS = {"Engine": drive}
