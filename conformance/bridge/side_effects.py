"""What a call has to leave as it was: its arguments, and what the call before it returned."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from inferspec.conformance.bridge.arrays import Arrays
from inferspec.conformance.bridge.results import told

PLAIN = frozenset({int, float, bool, str, bytes, type(None)})
"""What is as it is in any argument, and there by the hundred in stories, by the hundred thousand in tables of pieces."""


class Arguments:
    """Arguments as they were before a call. given: name -> what the subject gets; to: the kind of its arrays."""

    def __init__(self, given: Mapping[str, Any], to: Arrays) -> None:
        self._to = to
        self._arrays = [
            (path, array, to.bits(array)) for name, value in given.items() for path, array in _owned(value, name, to)
        ]
        self._lists = [
            (path, items, list(items)) for name, value in given.items() for path, items in _lists(value, name)
        ]
        self._dicts = [(name, value, _entries(value)) for name, value in given.items() if isinstance(value, Mapping)]
        self.of_arrays = bool(self._arrays)

    def changed(self) -> tuple[str, ...]:
        """The paths of arrays and lists, and the names of dicts, that are not what they were."""
        return (
            *(path for path, array, data in self._arrays if _bits(self._to, array) != data),
            *(path for path, items, copy in self._lists if not _kept(items, copy)),
            *(name for name, value, copy in self._dicts if _entries(value) != copy),
        )


class Earlier:
    """The results of the last call, that the next must not write into."""

    def __init__(self) -> None:
        self._results: list[tuple[Arrays, Any, bytes]] = []
        self._of_arrays = False

    def spoilt(self, to: Arrays, own: Mapping[str, Any], seen: Mapping[str, np.ndarray], of_arrays: bool) -> bool:
        """Whether the last results are not what they were, as those in a buffer that is used again; these take their place.

        own: part -> the result as it came back; seen: the same in NumPy. What was made of no array (of_arrays) is the caller's
        alone, who then writes into it.
        """
        last, self._results = self._results, [(to, kept, seen[part].tobytes()) for part, kept in own.items()]
        spoilt = any(_bits(kind, kept) != data for kind, kept, data in last)
        for kind, kept, _ in last if not self._of_arrays else ():
            if kind.owns(kept):
                kind.overwrite(kept)
        self._of_arrays = of_arrays
        return spoilt


def _owned(value: Any, path: str, to: Arrays) -> Iterator[tuple[str, Any]]:
    """The arrays of an argument as the subject got it, each with its path."""
    if to.owns(value):
        yield path, value
    elif isinstance(value, Mapping | list | tuple):
        for key, item in value.items() if isinstance(value, Mapping) else enumerate(value):
            if type(item) not in PLAIN:
                yield from _owned(item, f"{path}.{key}", to)


def _lists(value: Any, path: str) -> Iterator[tuple[str, list[Any]]]:
    """The lists of numbers, and of lists, of an argument, each with its path."""
    if isinstance(value, list):
        if all(isinstance(item, int | float | list) for item in value):
            yield path, value
        for key, item in enumerate(value):
            if type(item) not in PLAIN:
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


def _bits(to: Arrays, value: Any) -> bytes | None:
    """An array or a list as it is now; None where nobody can read it any more, as a list with what is no number in it, or an
    array whose memory a call took for its result, as JAX's ``donate_argnums`` does."""
    try:
        return told(value, to).tobytes() if isinstance(value, list) else to.bits(value)
    except Exception:
        # Where the whole device is gone this raises, and the process ends.
        to.wait()
        return None
