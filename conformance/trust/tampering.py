"""Whether what judges stays what it was, from test to test.

`integrity.altered` compares with the files, once, at the end of a run. What a fixture patches for the time of a test, and what
a plugin puts back before the end, is as in its file again by then.
"""

from __future__ import annotations

import builtins
import inspect
import operator
import re
import sys
import types
from collections.abc import Iterable, Iterator, Mapping, ValuesView
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

SUITE = re.compile(r"inferspec\.conformance\.test_\w+")

LATER = frozenset({"__annotations__", "__annotations_cache__", "__warningregistry__", "__doc__"})
"""Names that Python itself binds when it likes."""


class Watch:
    """Knows every name of what judges, from when it first saw its module on."""

    def __init__(self) -> None:
        self._seen: dict[str, Mapping[str, Any]] = {}
        """module, or class in one -> its names"""
        self._then: dict[str, dict[str, Any]] = {}
        """The same as they were."""
        self._rooms: dict[str, tuple[list[ValuesView[Any]], list[list[Any]]]] = {}
        """suite, or "" for what all suites use -> what its names are bound to, and were"""
        self._modules = 0
        self._look()

    def moved(self, suite: str | None = None) -> list[str]:
        """The names that are bound to something else than they were; each is told once.

        suite: the module of the test that ran. Those of other suites are then not asked for: they count when their tests run.
        """
        rooms = self._rooms.keys() if suite is None else self._rooms.keys() & {"", suite}
        found: list[str] = []
        if not all(_equal(map(list, now), then) for now, then in map(self._rooms.__getitem__, rooms)):
            moved = [owner for owner in self._then if not _equal([self._seen[owner]], [self._then[owner]])]
            found = [f"{owner}.{name}" for owner in moved for name in self._told(owner)]
            self._listed()
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
        self._listed()

    def _listed(self) -> None:
        """Lists of what all names are bound to: of many, they are compared sooner than the names are looked up."""
        self._rooms = {}
        for owner, names in self._seen.items():
            now, then = self._rooms.setdefault(_suite(owner), ([], []))
            now.append(names.values())
            then.append(list(self._then[owner].values()))

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


def _suite(owner: str) -> str:
    """The suite that a module is, or that a class is in; "" for others."""
    found = SUITE.match(owner)
    return found[0] if found else ""


def _equal(now: Iterable[Any], then: Iterable[Any]) -> bool:
    """Whether all are the same; asked after each test, of ten thousand names."""
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
