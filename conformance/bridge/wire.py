"""Messages between a suite and the process that hosts a subject.

Pickle carries them, in both directions no more than data: numbers, texts, containers and arrays are all that is written, and
all that is read. An untrusted subject's process may send what it likes: a name of code in it is refused. Both ends are the
same interpreter. Large arrays go through memory that both share (`arena`).
"""

from __future__ import annotations

import functools
import io
import pickle
from collections.abc import Mapping
from typing import Any

import ml_dtypes
import numpy as np

from inferspec.conformance.bridge.arena import Arena
from inferspec.spec.numerics import is_float


def encode(message: Any, arena: Arena | None = None) -> bytes:
    """Return the bytes of nested dicts, lists, numbers, strings, slices and NumPy arrays; ValueError for anything else.

    arena: where large arrays are put.
    """
    if arena:
        arena.clear()
    file = io.BytesIO()
    _Writer(file, arena).dump(message)
    return file.getvalue()


def decode(data: bytes, arena: Arena | None = None) -> Any:
    """Return what `encode` was given: tuples stay tuples, numbers of NumPy are Python's, other mappings are dicts.

    arena: where large arrays were put. ValueError for what `encode` does not write.
    """
    try:
        return _Reader(io.BytesIO(data), arena).load()
    except ValueError:
        raise
    except Exception as error:
        raise ValueError(f"{len(data)} bytes are no message: {type(error).__name__}: {error}") from error


def readable(text: str) -> str:
    """A text without what no terminal and no page should be given: control characters, and halves of characters."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() or c in "\n\t" else "\N{REPLACEMENT CHARACTER}" for c in text)


class _Writer(pickle.Pickler):
    def __init__(self, file: io.BytesIO, arena: Arena | None) -> None:
        super().__init__(file, pickle.HIGHEST_PROTOCOL)
        self._arena = arena

    def reducer_override(self, value: Any) -> Any:
        """Of what is not a plain value or a container of such: what it is made of again."""
        if isinstance(value, np.ndarray):
            place = self._arena.put(value) if self._arena else None
            return _array, (value.tobytes() if place is None else place, _name(value.dtype), value.shape)
        if isinstance(value, np.generic):
            return _number, (value.item(),)
        if isinstance(value, Mapping):
            return dict, (dict(value),)
        if isinstance(value, slice) or any(value is maker for maker in _MAKERS.values()):
            return NotImplemented
        raise ValueError(f"a message has a {type(value).__qualname__}; it takes numbers, texts, containers and arrays")


class _Reader(pickle.Unpickler):
    def __init__(self, file: io.BytesIO, arena: Arena | None) -> None:
        super().__init__(file)
        self._arena = arena

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) not in _MAKERS:
            raise ValueError(f"a message names {module}.{name}; it takes numbers, texts, containers and arrays")
        return self._array if name == "_array" else _MAKERS[module, name]

    def _array(self, data: bytes | int, name: str, shape: tuple[int, ...]) -> np.ndarray:
        if isinstance(data, bytes):
            return _array(data, name, shape)
        if self._arena is None:
            raise ValueError("a message has a place of an array, and no arena")
        return self._arena.take(data, shape, _dtype(name))


def _array(data: bytes, name: str, shape: tuple[int, ...]) -> np.ndarray:
    return np.ndarray(shape, _dtype(name), data).copy()


def _number(value: Any) -> Any:
    return value


_MAKERS: Mapping[tuple[str, str], Any] = {
    (maker.__module__, maker.__qualname__): maker for maker in (_array, _number, dict, slice)
}
"""All that a message may name, by the names that pickle writes."""


@functools.cache
def _name(dtype: np.dtype) -> str:
    return dtype.name


@functools.cache
def _dtype(name: str) -> np.dtype:
    """ValueError for what is no number: an array of objects would read the sender's bytes as addresses."""
    dtype = np.dtype(getattr(ml_dtypes, name, None) or name)
    if dtype.kind not in "biufc" and not is_float(dtype):
        raise ValueError(f"a message has an array of {name}; it takes numbers")
    return dtype
