"""Messages between a suite and the process that hosts a subject.

marshal carries them: it is fast and, unlike pickle, cannot run code, which matters for what an untrusted subject's
process sends back. Both ends are the same interpreter. Large arrays go through memory that both share (`arena`).
"""

from __future__ import annotations

import marshal
from collections.abc import Mapping
from typing import Any

import ml_dtypes
import numpy as np

from inferspec.conformance.arena import Arena

_TAG = "@"


def encode(message: Any, arena: Arena | None = None) -> bytes:
    """Return the bytes of nested dicts, lists, numbers, strings, slices and NumPy arrays. arena: where large ones are put."""
    if arena:
        arena.clear()
    return marshal.dumps(_plain(message, arena))


def decode(data: bytes, arena: Arena | None = None) -> Any:
    """Return what `encode` was given; tuples stay tuples. arena: where large arrays were put."""
    return _rich(marshal.loads(data), arena)


def _plain(value: Any, arena: Arena | None) -> Any:
    if isinstance(value, np.ndarray):
        data = arena.put(value) if arena else None
        return {
            _TAG: "array",
            "dtype": value.dtype.name,
            "shape": value.shape,
            "data": value.tobytes() if data is None else data,
        }
    if isinstance(value, slice):
        return {_TAG: "slice", "parts": (value.start, value.stop, value.step)}
    if isinstance(value, Mapping):
        return {k: _plain(v, arena) for k, v in value.items()}
    if isinstance(value, tuple | list):
        return type(value)([_plain(v, arena) for v in value])
    if isinstance(value, np.generic):
        return value.item()
    return value


def _rich(value: Any, arena: Arena | None) -> Any:
    if isinstance(value, dict):
        if value.get(_TAG) == "array":
            data, dtype = value["data"], np.dtype(getattr(ml_dtypes, value["dtype"], None) or value["dtype"])
            if isinstance(data, int):
                assert arena is not None
                return arena.take(data, value["shape"], dtype)
            return np.frombuffer(data, dtype).reshape(value["shape"]).copy()
        if value.get(_TAG) == "slice":
            return slice(*value["parts"])
        return {k: _rich(v, arena) for k, v in value.items()}
    if isinstance(value, tuple | list):
        return type(value)([_rich(v, arena) for v in value])
    return value
