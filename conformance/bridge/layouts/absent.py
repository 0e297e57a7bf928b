"""Stand-ins for modules that cannot be loaded, so that what does not need them can be.

A stand-in has every name. What it gives can be inherited from and named in annotations; whoever calls it, or builds it,
is told by a NotImplementedError what is missing, which reads as *not claimed*.
"""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any


class _Absent(type):
    """A class of which every attribute is another such class."""

    reason: str

    def __getattr__(cls, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return absent(name, cls.reason)


def absent(name: str, reason: str) -> Any:
    """Something of that name that is not there."""

    def build(self: Any, *arguments: Any, **options: Any) -> None:
        # A class of the package that inherits from what is missing may still be whole.
        if isinstance(type(self), _Absent) and type(self).__dict__.get("__init__") is build:
            raise NotImplementedError(reason)

    made = _Absent(name, (), {"__init__": build})
    made.reason = reason
    return made


def is_absent(thing: Any) -> bool:
    """Whether it is a stand-in (and no class that inherits from one)."""
    return isinstance(thing, _Absent) and "reason" in vars(thing)


def stand_in(module: str, reason: str) -> None:
    """Put a stand-in in the place of a module, or have the one that is there give stand-ins for what it lacks."""
    there = sys.modules.get(module)
    if there is None:
        there = sys.modules[module] = ModuleType(module, reason)
        there.__path__ = []
        parent, _, name = module.rpartition(".")
        if parent in sys.modules:
            setattr(sys.modules[parent], name, there)

    def missing(name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return absent(name, reason)

    there.__dict__["__getattr__"] = missing
