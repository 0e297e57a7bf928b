"""The global random states of a process, which no call may move."""

from __future__ import annotations

import marshal
import random
import sys
from collections.abc import Mapping
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
        for device in ("cpu", "cuda") if torch.cuda.is_initialized() else ("cpu",):
            torch.rand(1, device=device)
    return current()


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
        torch = sys.modules["torch"]
        states.append(torch.get_rng_state().numpy().tobytes())
        if torch.cuda.is_initialized():
            states.append(torch.cuda.get_rng_state().numpy().tobytes())
    return states
