"""The global random states of a process, which no call may seed, and one that is given its numbers may not move."""

from __future__ import annotations

import marshal
import random
import sys
from collections.abc import Callable, Mapping
from types import ModuleType
from typing import Any

import numpy as np


def stirred() -> list[bytes]:
    """The random states after a draw from each, so that a subject shows that seeds with the same number every time."""
    random.random()
    np.random.random()
    if "mlx.core" in sys.modules:
        mx = sys.modules["mlx.core"]
        mx.eval(mx.random.uniform())
    if "torch" in sys.modules:
        torch = sys.modules["torch"]
        for device in _generators(torch):
            torch.rand(1, device=device)
    return current()


def _generators(torch: ModuleType) -> Mapping[str, Callable[[], Any]]:
    """Where torch draws, and what tells the state there: the CPU, and a GPU that is in use."""
    found = {"cpu": torch.get_rng_state}
    if torch.cuda.is_initialized():
        found["cuda"] = torch.cuda.get_rng_state
    if torch.empty(0).device.type == "mps":
        found["mps"] = torch.mps.get_rng_state
    return found


def _plain(state: Any) -> Any:
    """A state of NumPy's, with its arrays as bytes."""
    if isinstance(state, Mapping):
        return {name: _plain(value) for name, value in state.items()}
    return state.tobytes() if isinstance(state, np.ndarray) else state


def current() -> list[bytes]:
    """The global random states of Python, NumPy and, where they are loaded, MLX and torch, on a CPU and on a GPU."""
    # marshal and not repr: NumPy takes milliseconds to print 624 numbers.
    numpy: dict[str, Any] = dict(np.random.get_state(legacy=False))
    states = [marshal.dumps(random.getstate()), marshal.dumps(_plain(numpy))]
    if "mlx.core" in sys.modules:
        states += [np.array(state).tobytes() for state in sys.modules["mlx.core"].random.state]
    if "torch" in sys.modules:
        states += [state().numpy().tobytes() for state in _generators(sys.modules["torch"]).values()]
    return states
