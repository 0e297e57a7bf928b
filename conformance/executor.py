"""Makes calls on a loaded adapter and reports what was seen; runs beside the subject, never beside the oracle."""

from __future__ import annotations

import random
import sys
import traceback
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from inferspec.conformance.arrays import Arrays, lay
from inferspec.conformance.calls import Observation
from inferspec.spec.numerics import is_float


class Executor:
    """Calls the targets of an adapter. Objects that calls share live until `reset`."""

    def __init__(self, targets: Mapping[str, Any]) -> None:
        self._targets = targets
        self._earlier: tuple[Arrays, Any, bytes] | None = None
        self._kept: dict[tuple[str, int], Callable[..., Any]] = {}

    def reset(self) -> None:
        """Forget the shared objects: a new example begins."""
        self._kept.clear()
        self._earlier = None

    def call(
        self,
        operation: str,
        arguments: Mapping[str, Any],
        views: Mapping[str, str],
        keep: int | None,
        result: tuple[tuple[int, ...], str] | None,
        watch: bool,
    ) -> Observation:
        """Make one call. result: shape and dtype to poison buffers with; watch: look at the random state too."""
        target = self._targets[operation]
        to: Arrays = target.kind
        given = {name: self._laid(value, views.get(name, ""), name, to) for name, value in arguments.items()}
        before = {
            name: to.to_numpy(given[name]).tobytes()
            for name, value in arguments.items()
            if isinstance(value, np.ndarray)
        }
        state: list[bytes] | None = None
        value, raised, message, returned = None, "", "", None
        try:
            if result:
                to.poison(*result)
            built = self._built(target, operation, given, keep)
            # Building may draw initial weights; a call may not.
            state = _stirred_random_state() if watch else None
            returned = target.invoke(built, given)
            if to.owns(returned):
                value = _told(to.to_numpy(to.ready(returned)))
            else:
                message = "None" if returned is None else f"{type(returned).__module__}.{type(returned).__qualname__}"
        except Exception as error:
            raised, message = type(error).__name__, f"{error}{_frame(error)}"
        changed = tuple(name for name, data in before.items() if to.to_numpy(given[name]).tobytes() != data)
        if state is not None and state != _random_state():
            changed += ("random state",)
        changed += self._earlier_result(to, returned if value is not None else None, value)
        return Observation(value, raised, message, changed)

    def _earlier_result(self, to: Arrays, returned: Any, value: np.ndarray | None) -> tuple[str, ...]:
        """Whether the last call's result still is what it was: one in a buffer that is used again is not."""
        earlier, self._earlier = self._earlier, None if value is None else (to, returned, value.tobytes())
        if earlier is None:
            return ()
        kind, kept, data = earlier
        return () if kind.to_numpy(kept).tobytes() == data else ("earlier result",)

    def _laid(self, value: Any, view: str, name: str, to: Arrays) -> Any:
        if isinstance(value, np.ndarray):
            return lay(value, view, to)
        return to.dtype(value) if name == "dtype" else value

    def _built(self, target: Any, operation: str, given: Mapping[str, Any], keep: int | None) -> Callable[..., Any]:
        if keep is None:
            return target.build(given)
        key = (operation, keep)
        if key not in self._kept:
            self._kept[key] = target.build(given)
        return self._kept[key]


def _told(value: np.ndarray) -> np.ndarray:
    """The value, if it is of numbers that can be compared; TypeError otherwise."""
    if value.dtype.kind not in "biuf" and not is_float(value.dtype):
        raise TypeError(f"the result is a {value.dtype.name} array; it takes floating-point numbers")
    return value


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


def _random_state() -> list[bytes]:
    """The global random states of Python, NumPy and, where they are loaded, MLX and torch."""
    states = [repr(random.getstate()).encode(), repr(np.random.get_state(legacy=False)).encode()]
    if "mlx.core" in sys.modules:
        states += [np.array(state).tobytes() for state in sys.modules["mlx.core"].random.state]
    if "torch" in sys.modules:
        states.append(sys.modules["torch"].get_rng_state().numpy().tobytes())
    return states
