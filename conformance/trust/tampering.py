"""Whether what judges stays what it was, from test to test.

`integrity.altered` compares with the files, once, at the end of a run. What a fixture patches for the time of a test, and what
a plugin puts back before the end, is as in its file again by then.
"""

from __future__ import annotations

import builtins
import inspect
import operator
import sys
import types
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from inferspec.conformance.trust.integrity import JUDGES, LIBRARY, judging
from inferspec.conformance.trust.isolation import within

BENEATH = (
    "copy",
    "dataclasses",
    "functools",
    "itertools",
    "json",
    "math",
    "ml_dtypes",
    "numpy",
    "numpy.linalg",
    "numpy.random",
)
"""What the numbers and the outcomes of a test go through, beside the kit."""

BESIDE = ("inferspec.spec.faults", "inferspec.spec.changes")
"""What only tells what a failure looks like: it decides nothing, and is half of all names."""

LATER = frozenset({"__annotations__", "__annotations_cache__", "__warningregistry__", "__doc__"})
"""Names that Python itself binds when it likes."""


class Watch:
    """Knows every name of what judges, from when it first saw its module on."""

    def __init__(self) -> None:
        self._seen: dict[str, Mapping[str, Any]] = {}
        """module, or class in one -> its names"""
        self._then: dict[str, dict[str, Any]] = {}
        """The same as they were."""
        self._modules = 0
        self._look()

    def moved(self) -> list[str]:
        """The names that are bound to something else than they were; each is told once."""
        found = []
        if not _equal(self._seen.values(), self._then.values()):
            moved = [owner for owner in self._then if not _equal([self._seen[owner]], [self._then[owner]])]
            found = [f"{owner}.{name}" for owner in moved for name in self._told(owner)]
        self._look()
        return found

    def _look(self) -> None:
        """Take in what was loaded since."""
        if len(sys.modules) == self._modules:
            return
        self._modules = len(sys.modules)
        judges = {name for name in judging(JUDGES) if not within(name, BESIDE)}
        for name in judges | sys.modules.keys() & set(BENEATH):
            module = sys.modules[name]
            self._take(name, vars(module))
            if name not in BENEATH:
                for one in list(vars(module).values()):
                    if inspect.isclass(one) and within(one.__module__, JUDGES):
                        self._take(f"{one.__module__}.{one.__qualname__}", vars(one))

    def _take(self, owner: str, names: Mapping[str, Any]) -> None:
        if owner not in self._seen:
            self._seen[owner], self._then[owner] = names, dict(names)

    def _told(self, owner: str) -> Iterator[str]:
        now, then = dict(self._seen[owner]), self._then[owner]
        moved = [name for name in then.keys() | now.keys() if now.get(name, then) is not then.get(name, now)]
        yield from (name for name in moved if name not in LATER and self._counts(owner, name, now.get(name)))
        self._then[owner] = now

    def _counts(self, owner: str, name: str, value: Any) -> bool:
        then = self._then[owner]
        if owner in BENEATH:
            return name[0] != "_" and callable(then.get(name))
        # Modules get names later, those of what is loaded of their package, and classes what they remember.
        is_module = owner in sys.modules and vars(sys.modules[owner]) is self._seen[owner]
        return name in then or (name in vars(builtins) if is_module else callable(value))


def _equal(now: Iterable[Mapping[str, Any]], then: Iterable[Mapping[str, Any]]) -> bool:
    """Whether all have the same names for the same things; asked after each test, of fifteen thousand names."""
    try:
        return all(map(operator.eq, now, then))
    except Exception:
        # What is there now cannot be compared with what was.
        return False


def foreign() -> list[str]:
    """Functions of what lies beneath that are of somebody else."""
    return [
        f"{owner}.{name}"
        for owner in BENEATH
        if owner in sys.modules
        for name, value in list(vars(sys.modules[owner]).items())
        if name[0] != "_" and isinstance(value, types.FunctionType) and not _at_home(value, owner)
    ]


def _at_home(function: types.FunctionType, owner: str) -> bool:
    """Whether a function is Python's own, or of the package that has it."""
    file, package = function.__code__.co_filename, sys.modules[owner.partition(".")[0]]
    if "__path__" in vars(package) and file.startswith(tuple(package.__path__)):
        return True
    return file.startswith(("<frozen", LIBRARY)) and "-packages" not in file.removeprefix(LIBRARY)
