"""Makes calls on a loaded adapter and reports what was seen; runs beside the subject, never beside the oracle."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from inferspec.conformance.bridge import random_states
from inferspec.conformance.bridge.arrays import Arrays
from inferspec.conformance.bridge.results import kind_of, named, told
from inferspec.conformance.bridge.side_effects import PLAIN, Arguments, Earlier
from inferspec.conformance.bridge.views import lay, lay_beside
from inferspec.conformance.calls import BESIDE, SAME, Observation
from inferspec.spec.contract import STORY

LONGEST = 2000
"""Characters of an error's text that are told."""


class Executor:
    """Calls the targets of an adapter. Objects that calls share live until `reset`."""

    def __init__(self, targets: Mapping[str, Any]) -> None:
        self._targets = targets
        self._earlier = Earlier()
        self._left: list[bytes] = []
        """The random states that the last call left which was watched."""
        self._kept: dict[tuple[int, int], Any] = {}
        self._thread: ThreadPoolExecutor | None = None
        self._refilled: dict[str, Any] = {}
        """Arguments of the last call, which the next may be given again with other values in them."""

    def reset(self) -> None:
        """Forget the shared objects: a new example begins."""
        self._kept.clear()
        self._refilled = {}
        self._earlier = Earlier()

    def call(
        self,
        operation: str,
        arguments: Mapping[str, Any],
        views: Mapping[str, str],
        keep: int | None,
        results: Sequence[tuple[tuple[int, ...], str]],
        watch: bool,
        elsewhere: bool = False,
        refilled: Sequence[str] = (),
    ) -> Observation:
        """Make one call. results: shapes and dtypes to poison buffers with; watch: look at the random state too; elsewhere: in
        another thread than the one in which its object is built; refilled: arguments for which the last call's arrays are
        taken."""
        target = self._targets[operation]
        to: Arrays = target.kind
        turned = target.operation.turned if target.layout else ()
        # Not in the try: what the library cannot make ends the process, and passes for no refusal of the subject's.
        arguments = {name: _turned(value) if name in turned else value for name, value in arguments.items()}
        given = {name: _laid(value, name, views, to) for name, value in arguments.items()}
        for name, view in views.items():
            if view.startswith(BESIDE):
                other = view.removeprefix(BESIDE)
                given[other], given[name] = lay_beside(arguments[other], arguments[name], to)
        given |= {name: given[view.removeprefix(SAME)] for name, view in views.items() if view.startswith(SAME)}
        given |= {name: to.refill(self._refilled[name], given[name]) for name in refilled if name in self._refilled}
        # Of others nothing is kept: what goes by the identity of an array shows where another lies in its place.
        self._refilled = {name: given[name] for name in refilled}
        before = Arguments(given, to)
        state: list[bytes] | None = None
        try:
            for shape, dtype in results:
                to.poison(shape, dtype)
            built = self._built(target, given, keep)
            # What building does to them, as by drawing initial weights, is not looked at.
            state = random_states.stirred() if watch else None
            answer = partial(_answered, target, built, given)
            outcome = self._another(to, answer) if elsewhere else answer()
        except Exception as error:
            _survive(to)
            outcome = _Outcome(type(error).__name__, f"{_said(error)}{_frame(error)}")
        changed = before.changed()
        if state is not None:
            changed += self._random_states(state)
        seen = outcome.seen
        own = {part: outcome.parts[part] for part in seen if _of_the_subject(outcome.parts[part], target)}
        if self._earlier.spoilt(to, own, seen, of_arrays=before.of_arrays or bool(target.driver)):
            changed += ("earlier result",)
        if turned and "" in seen:
            seen[""] = _turned(seen[""])
        return Observation(seen.pop("", None), outcome.raised, outcome.message, changed, seen, outcome.unwritten)

    def _another(self, to: Arrays, answer: Callable[[], _Outcome]) -> _Outcome:
        """What comes back in another thread, which is the same one each time and has the settings of this one."""
        self._thread = self._thread or ThreadPoolExecutor(1)
        self._thread.submit(to.settings()).result()
        return self._thread.submit(answer).result()

    def _random_states(self, before: list[bytes]) -> tuple[str, ...]:
        """What a watched call did to the random states: a draw moves them on from where they were, a seed to where it left
        them the last time."""
        after, last = random_states.current(), self._left
        if after == before:
            return ()
        self._left = after
        seeded = any(one == other for one, other in zip(after, last, strict=False))
        return ("random state", "random seed") if seeded else ("random state",)

    def _built(self, target: Any, given: Mapping[str, Any], keep: int | None) -> Callable[..., Any]:
        if keep is None:
            return target.build(given)
        # Of the class, and not of the operation: a table of embeddings is looked up in, and serves as an output head.
        key = (id(target.function), keep)
        if key not in self._kept:
            self._kept[key] = target.made(given)
        called: Callable[..., Any] = target.called(self._kept[key])
        return called


@dataclass(frozen=True)
class _Outcome:
    """What a call came to: what was raised, or the parts that came back, as the subject has them and in NumPy.

    message: the text of the error, why steps of a story were refused, or what came back that is none of the parts;
    unwritten: the steps that are not implemented.
    """

    raised: str = ""
    message: str = ""
    parts: Mapping[str, Any] = field(default_factory=dict)
    seen: dict[str, np.ndarray] = field(default_factory=dict)
    unwritten: tuple[str, ...] = ()


class DeviceLost(Exception):
    """Every further call of this process would fail, whatever it asks for: the process is to end with the call that did it."""


def _survive(to: Arrays) -> None:
    """DeviceLost where an error took the device with it, as an assertion or a wild pointer of a kernel on a GPU does."""
    try:
        to.wait()
    except Exception as error:
        raise DeviceLost(_said(error).partition("\n")[0]) from None


def _answered(target: Any, built: Callable[..., Any], given: Mapping[str, Any]) -> _Outcome:
    """What a call comes to. It is read in the thread that made it: arrays that are not computed yet may be of no use in another."""
    return _returned(target.invoke(built, given), target)


def _returned(answer: Any, target: Any) -> _Outcome:
    parts = named(answer, target, target.kind)
    why = _words(parts)
    message = _cut("; ".join(f"step {step}: {text}" for step, text in why.items()))
    unwritten = tuple(step for step, text in why.items() if text.startswith("NotImplementedError:"))
    seen = {part: told(value, target.kind) for part, value in parts.items()}
    if not seen and not _empty_story(answer, target):
        message = "None" if answer is None else kind_of(answer)
    return _Outcome("", message, parts, seen, unwritten)


def _turned(value: Any) -> Any:
    """An array with its second and third axis from the end in each other's place, contiguous as a model would give it."""
    if not isinstance(value, np.ndarray) or value.ndim < 3:
        return value
    return np.ascontiguousarray(value.swapaxes(-2, -3))


def _laid(value: Any, path: str, views: Mapping[str, str], to: Arrays) -> Any:
    """An argument as the subject gets it: arrays of its own kind, nested ones too."""
    if isinstance(value, np.ndarray):
        return lay(value, views.get(path, ""), to)
    if isinstance(value, list | tuple):
        return type(value)(
            item if type(item) in PLAIN else _laid(item, f"{path}.{key}", views, to) for key, item in enumerate(value)
        )
    if isinstance(value, Mapping):
        return {key: _laid(item, f"{path}.{key}", views, to) for key, item in value.items()}
    return to.dtype(value) if path == "dtype" else value


def _of_the_subject(result: Any, target: Any) -> bool:
    """Whether it is the subject's to write into later: an array, or a list that no driver made."""
    return bool(target.kind.owns(result)) or (not target.driver and isinstance(result, list))


def _empty_story(answer: Any, target: Any) -> bool:
    return target.operation.parts == STORY and isinstance(answer, Mapping) and not answer


def _words(returned: dict[str, Any]) -> dict[str, str]:
    """Takes the words out of the parts: step -> why it was refused, for the reader of a failure."""
    steps = [part for part, value in returned.items() if isinstance(value, str)]
    return {part.split()[0]: returned.pop(part) for part in steps}


def _said(error: BaseException) -> str:
    """The text of an error; some errors of subjects raise another when they are asked for it."""
    try:
        return _cut(str(error))
    except Exception as another:
        return f"(no message: its text raises {type(another).__name__})"


def _cut(text: str) -> str:
    """Compilers, and arrays that are shown, have much to say."""
    return text if len(text) <= LONGEST else f"{text[:LONGEST]} … ({len(text) - LONGEST} characters more)"


def _frame(error: BaseException) -> str:
    """Where the subject raised, for the reader of a failure: not in the kit, and not where Python hands on what another thread
    raised, or torch every call of who chose a default device."""
    passed_on = ("inferspec/conformance", "inferspec/spec", "torch/utils/_device.py", "concurrent/futures/")
    frames = [f for f in traceback.extract_tb(error.__traceback__) if not any(name in f.filename for name in passed_on)]
    return f" (at {frames[-1].filename}:{frames[-1].lineno})" if frames else ""
