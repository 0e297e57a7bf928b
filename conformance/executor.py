"""Makes calls on a loaded adapter and reports what was seen; runs beside the subject, never beside the oracle."""

from __future__ import annotations

import marshal
import random
import sys
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from inferspec.conformance.arrays import Arrays
from inferspec.conformance.calls import Observation
from inferspec.conformance.views import lay
from inferspec.spec.contract import STORY
from inferspec.spec.numerics import is_float

LONGEST = 2000
"""Characters of an error's text that are told."""

NUMBERS = frozenset({int, float, bool, type(None)})
"""What is as it is in any argument, and there by the hundred in stories."""


class Executor:
    """Calls the targets of an adapter. Objects that calls share live until `reset`."""

    def __init__(self, targets: Mapping[str, Any]) -> None:
        self._targets = targets
        self._earlier: list[tuple[Arrays, Any, bytes]] = []
        self._earlier_of_arrays = False
        self._kept: dict[tuple[str, int], Callable[..., Any]] = {}

    def reset(self) -> None:
        """Forget the shared objects: a new example begins."""
        self._kept.clear()
        self._earlier = []

    def call(
        self,
        operation: str,
        arguments: Mapping[str, Any],
        views: Mapping[str, str],
        keep: int | None,
        results: Sequence[tuple[tuple[int, ...], str]],
        watch: bool,
    ) -> Observation:
        """Make one call. results: shapes and dtypes to poison buffers with; watch: look at the random state too."""
        target = self._targets[operation]
        to: Arrays = target.kind
        turned = target.operation.turned if target.layout else ()
        given = {
            name: _laid(_turned(value) if name in turned else value, name, views, to)
            for name, value in arguments.items()
        }
        before = [
            (path, array, to.bits(array)) for name, value in given.items() for path, array in _owned(value, name, to)
        ]
        lists = [(path, items, list(items)) for name, value in given.items() for path, items in _lists(value, name)]
        dicts = [(name, value, _entries(value)) for name, value in given.items() if isinstance(value, Mapping)]
        state: list[bytes] | None = None
        raised, message = "", ""
        returned: dict[str, Any] = {}
        told: dict[str, np.ndarray] = {}
        try:
            for shape, dtype in results:
                to.poison(shape, dtype)
            built = self._built(target, operation, given, keep)
            # Building may draw initial weights; a call may not.
            state = _stirred_random_state() if watch else None
            answer = target.invoke(built, given)
            returned = _named(answer, target, to)
            # Words among the parts are for the reader of a failure: why a step of a story was refused.
            message = _cut("; ".join(f"step {part.split()[0]}: {returned.pop(part)}" for part in _words(returned)))
            told = {part: _told(value, to) for part, value in returned.items()}
            if not told and not (target.operation.parts == STORY and isinstance(answer, Mapping) and not answer):
                message = "None" if answer is None else f"{type(answer).__module__}.{type(answer).__qualname__}"
        except Exception as error:
            raised, message, told = type(error).__name__, f"{_said(error)}{_frame(error)}", {}
        changed = tuple(path for path, array, data in before if to.bits(array) != data)
        changed += tuple(path for path, items, copy in lists if not _kept(items, copy))
        changed += tuple(name for name, value, copy in dicts if _entries(value) != copy)
        if state is not None and state != _random_state():
            changed += ("random state",)
        # What a driver brings is its own.
        lists_too = not target.driver
        own = {part: x for part in told if to.owns(x := returned[part]) or (lists_too and isinstance(x, list))}
        changed += self._earlier_result(to, own, told, of_arrays=bool(before or target.driver))
        if turned and "" in told:
            told[""] = _turned(told[""])
        return Observation(told.pop("", None), raised, message, changed, told)

    def _earlier_result(
        self, to: Arrays, returned: Mapping[str, Any], told: Mapping[str, np.ndarray], of_arrays: bool
    ) -> tuple[str, ...]:
        """Whether the last call's results still are what they were: those in a buffer that is used again are not.

        What was made of no array is the caller's alone, who then writes into it.
        """
        earlier, self._earlier = self._earlier, [(to, kept, told[part].tobytes()) for part, kept in returned.items()]
        spoilt = any(_bits(kind, kept) != data for kind, kept, data in earlier)
        for kind, kept, _ in earlier if not self._earlier_of_arrays else ():
            if kind.owns(kept):
                kind.overwrite(kept)
        self._earlier_of_arrays = of_arrays
        return ("earlier result",) if spoilt else ()

    def _built(self, target: Any, operation: str, given: Mapping[str, Any], keep: int | None) -> Callable[..., Any]:
        if keep is None:
            return target.build(given)
        key = (operation, keep)
        if key not in self._kept:
            self._kept[key] = target.build(given)
        return self._kept[key]


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
            item if type(item) in NUMBERS else _laid(item, f"{path}.{key}", views, to) for key, item in enumerate(value)
        )
    if isinstance(value, Mapping):
        return {key: _laid(item, f"{path}.{key}", views, to) for key, item in value.items()}
    return to.dtype(value) if path == "dtype" else value


def _owned(value: Any, path: str, to: Arrays) -> Iterator[tuple[str, Any]]:
    """The arrays of an argument as the subject got it, each with its path."""
    if to.owns(value):
        yield path, value
    elif isinstance(value, Mapping | list | tuple):
        for key, item in value.items() if isinstance(value, Mapping) else enumerate(value):
            if type(item) not in NUMBERS:
                yield from _owned(item, f"{path}.{key}", to)


def _lists(value: Any, path: str) -> Iterator[tuple[str, list[Any]]]:
    """The lists of numbers, and of lists, of an argument, each with its path."""
    if isinstance(value, list):
        if all(isinstance(item, int | float | list) for item in value):
            yield path, value
        for key, item in enumerate(value):
            if type(item) not in NUMBERS:
                yield from _lists(item, f"{path}.{key}")


def _kept(items: list[Any], before: list[Any]) -> bool:
    """Whether a list has what it had: the same lists and equal numbers."""
    return len(items) == len(before) and all(
        item is old or (isinstance(item, int | float) and item == old) for item, old in zip(items, before, strict=True)
    )


def _entries(value: Any) -> Any:
    """What a dict has, and dicts and lists within it: plain values, and which object where there is another."""
    if isinstance(value, Mapping):
        return {key: _entries(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_entries(item) for item in value]
    return value if isinstance(value, str | int | float | None) else ("object", id(value))


def _bits(to: Arrays, result: Any) -> bytes:
    """A result as it is now; a list with what is no number in it is no result any more."""
    try:
        return _told(result, to).tobytes() if isinstance(result, list) else to.bits(result)
    except (TypeError, ValueError):
        return b"none"


def _named(answer: Any, target: Any, to: Arrays) -> dict[str, Any]:
    """What came back, by the name of its part ("" for a single array); nothing where it is not what may come back."""
    parts = target.operation.parts
    if isinstance(answer, Mapping) and parts:
        whole = target.driver or parts == STORY
        return dict(answer) if whole else {part: answer[part] for part in parts if part in answer}
    if not to.owns(answer) and (named := [part for part in parts if hasattr(answer, part)]):
        # An object, or a tuple with names: what else it holds is its own matter, and so is its order.
        return {part: getattr(answer, part) for part in named}
    if isinstance(answer, tuple | list) and len(answer) == len(parts) > 0:
        return dict(zip(parts, answer, strict=True))
    plain = target.driver and isinstance(answer, bool | int | float | list | np.ndarray)
    return {"": answer} if not parts and (to.owns(answer) or plain) else {}


def _words(returned: Mapping[str, Any]) -> list[str]:
    return [part for part, value in returned.items() if isinstance(value, str)]


def _told(value: Any, to: Arrays) -> np.ndarray:
    """The value in NumPy, if it is of numbers that can be compared; TypeError otherwise."""
    if to.owns(value):
        value = to.to_numpy(to.ready(value))
    elif value is None:
        value = np.zeros(0)
    elif isinstance(value, bool | int | float | list | tuple | np.ndarray | np.generic):
        value = np.asarray(value)
    else:
        raise TypeError(f"the result is a {type(value).__qualname__}; it takes arrays and numbers")
    if value.dtype.kind not in "biuf" and not is_float(value.dtype):
        raise TypeError(f"the result is a {value.dtype.name} array; it takes floating-point numbers")
    return value


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
    """Where the subject raised, for the reader of a failure."""
    frames = [f for f in traceback.extract_tb(error.__traceback__) if "inferspec/conformance" not in f.filename]
    return f" (at {frames[-1].filename}:{frames[-1].lineno})" if frames else ""


def _stirred_random_state() -> list[bytes]:
    """The random states after a draw from each, so that a subject shows that seeds with the same number every time."""
    random.random()
    np.random.random()
    if "mlx.core" in sys.modules:
        mx = sys.modules["mlx.core"]
        mx.eval(mx.random.uniform())
    if "torch" in sys.modules:
        sys.modules["torch"].rand(1)
    return _random_state()


def _plain(state: Any) -> Any:
    """A state of NumPy's, with its arrays as bytes."""
    if isinstance(state, Mapping):
        return {name: _plain(value) for name, value in state.items()}
    return state.tobytes() if isinstance(state, np.ndarray) else state


def _random_state() -> list[bytes]:
    """The global random states of Python, NumPy and, where they are loaded, MLX and torch."""
    # marshal and not repr: NumPy takes milliseconds to print 624 numbers.
    numpy: dict[str, Any] = dict(np.random.get_state(legacy=False))
    states = [marshal.dumps(random.getstate()), marshal.dumps(_plain(numpy))]
    if "mlx.core" in sys.modules:
        states += [np.array(state).tobytes() for state in sys.modules["mlx.core"].random.state]
    if "torch" in sys.modules:
        states.append(sys.modules["torch"].get_rng_state().numpy().tobytes())
    return states
