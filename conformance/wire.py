"""Messages between a suite and the process that hosts a subject.

marshal carries them: it is fast and, unlike pickle, cannot run code, which matters for what an untrusted subject's
process sends back. Both ends are the same interpreter.
"""

from __future__ import annotations

import marshal
from collections.abc import Mapping
from typing import Any

import ml_dtypes
import numpy as np

_TAG = "@"


def encode(message: Any) -> bytes:
    """Return the bytes of nested dicts, lists, numbers, strings, slices and NumPy arrays."""
    return marshal.dumps(_plain(message))


def decode(data: bytes) -> Any:
    """Return what `encode` was given; tuples stay tuples."""
    return _rich(marshal.loads(data))


def _plain(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return {_TAG: "array", "dtype": value.dtype.name, "shape": value.shape, "data": value.tobytes()}
    if isinstance(value, slice):
        return {_TAG: "slice", "parts": (value.start, value.stop, value.step)}
    if isinstance(value, Mapping):
        return {k: _plain(v) for k, v in value.items()}
    if isinstance(value, tuple | list):
        return type(value)(_plain(v) for v in value)
    if isinstance(value, np.generic):
        return value.item()
    return value


def _rich(value: Any) -> Any:
    if isinstance(value, dict):
        if value.get(_TAG) == "array":
            dtype = np.dtype(getattr(ml_dtypes, value["dtype"], None) or value["dtype"])
            return np.frombuffer(value["data"], dtype).reshape(value["shape"]).copy()
        if value.get(_TAG) == "slice":
            return slice(*value["parts"])
        return {k: _rich(v) for k, v in value.items()}
    if isinstance(value, tuple | list):
        return type(value)(_rich(v) for v in value)
    return value
