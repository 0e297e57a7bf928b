"""Closes the oracle to a subject: what of the kit computes right answers.

A subject runs in a process of its own and never meets the oracle there. What knows the right answers is closed to it, by import and
by call, and but for what drivers need it is not even there. None of this stops a determined forger; it stops what one slips into.
"""

from __future__ import annotations

import builtins
import functools
import importlib
import importlib.util
import inspect
import os
import sys
import types
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

ANSWERS = ("inferspec.spec", "inferspec.golden", "inferspec.conformance", "inferspec.tools")
"""What knows the right answers, or how they are judged."""

STAND_INS = ("BlockManager",)
"""Operations that a driver plays for subjects that do not offer them: what a scheduler works on."""

PLAYED = ("scaled_dot_product_attention", *STAND_INS)
"""Operations that a driver computes itself: stand-ins, and what a decoder above a batch's caches attends to."""

TAKEN = ("bind",)
"""What drivers take of every other operation."""

CLOSED = "INFERSPEC_CLOSED"
"""Set in the environment of a subject's process: those that it starts are closed too."""

OPEN = ("inferspec.conformance.subjects", "inferspec.tools.metalsim")
"""What others may build on."""

HERE = str(Path(__file__).parents[2])
"""Where the kit lies."""


class AsksTheKit(ImportError):
    """A subject wanted what only the judge may have."""


def closed() -> None:
    """Close the oracle in this process, that of a subject: from here on nobody else's module can import the kit's answers."""
    from inferspec.spec import contracts

    importing, import_module = builtins.__import__, importlib.import_module

    def guarded(name: str, given: Any = None, *rest: Any, **more: Any) -> Any:
        asker = sys._getframe(1)
        level = more.get("level", rest[2] if len(rest) > 2 else 0)
        asked = _absolute(name, level, given or asker.f_globals) if level else name
        if asked.startswith("inferspec"):
            parts = more.get("fromlist") or (rest[1] if len(rest) > 1 else None) or ()
            _check(asker, [f"{asked}.{part}" for part in parts] or [asked])
        return importing(name, given, *rest, **more)

    def guarded_module(name: str, package: str | None = None) -> Any:
        asked = importlib.util.resolve_name(name, package) if name.startswith(".") and package else name
        _check(sys._getframe(1), [asked])
        return import_module(name, package)

    vars(builtins)["__import__"], vars(importlib)["import_module"] = guarded, guarded_module
    vars(importlib)["__import__"] = guarded
    for package in ("inferspec", "inferspec.conformance", "inferspec.tools"):
        importing(package)
        sys.modules[package].__class__ = _Package
    _without_answers([operation for contract in contracts() for operation in contract.operations])
    os.environ[CLOSED] = "1"


def _without_answers(operations: Sequence[type]) -> None:
    """Take from the operations what computes answers; what a driver needs of them stays, for the kit's own modules."""
    played = {base for operation in operations if _named(operation) in PLAYED for base in operation.__mro__}
    for owner in {base for operation in operations for base in operation.__mro__} - played:
        for name in vars(owner).keys() - {*TAKEN}:
            if method := _step(owner, name):
                setattr(owner, name, _gone(method))
    for operation in operations:
        for name in dir(operation):
            if method := _step(operation, name):
                setattr(operation, name, _guarded(method))


def without_stand_ins(offered: Collection[str]) -> None:
    """Take the answers of the stand-ins too that nobody needs, since the subject offers what they stand in for."""
    from inferspec.spec import contracts

    for operation in (operation for contract in contracts() for operation in contract.operations):
        if _named(operation) in {*STAND_INS} & {*offered}:
            for name in set(dir(operation)) - {*TAKEN}:
                if method := _step(operation, name):
                    setattr(operation, name, _gone(method))


def _named(operation: Any) -> str:
    return str(operation.signature.operation)


def _step(owner: type, name: str) -> types.FunctionType | None:
    """A function of a class by its name, but for those that Python itself calls."""
    found = inspect.getattr_static(owner, name)
    is_step = isinstance(found, types.FunctionType) and (name == "__call__" or not name.startswith("__"))
    return found if is_step else None


class _Package(types.ModuleType):
    """A package whose closed modules are for the kit's own modules also when they are loaded already."""

    def __getattribute__(self, name: str) -> Any:
        value = super().__getattribute__(name)
        if isinstance(value, types.ModuleType) and not any(part.startswith(f"{value.__name__}.") for part in OPEN):
            _check(sys._getframe(1), [value.__name__])
        return value


def _absolute(name: str, level: int, who: Mapping[str, Any]) -> str:
    """What a relative import asks for."""
    own = str(who.get("__name__", ""))
    package = who.get("__package__") or (own if "__path__" in who else own.rpartition(".")[0])
    parts = package.split(".")
    return ".".join([*parts[: len(parts) - level + 1], name]).rstrip(".")


def _check(asker: types.FrameType, asked: list[str]) -> None:
    """AsksTheKit where code asks for what is closed and is none of ours."""
    known = [name for name in asked if is_closed(name)]
    if known and not _ours(asker):
        name = asker.f_globals.get("__name__", "someone")
        raise AsksTheKit(f"{name} asks {known[0]}: a subject that asks the kit for the answer certifies nothing")


def is_closed(name: str) -> bool:
    """Whether a module is of what only the judge may have."""
    return within(name, ANSWERS) and not within(name, OPEN)


def _ours(asker: types.FrameType) -> bool:
    """Whether code is that of a module of the kit, or what loads it.

    Not of one that only calls itself so, nor what somebody runs among the names of one of ours.
    """
    file, name = asker.f_code.co_filename, str(asker.f_globals.get("__name__", ""))
    if file.startswith("<frozen importlib"):
        return True
    module = sys.modules.get(name)
    mine = module is not None and vars(module) is asker.f_globals
    return mine and (file in _files(name) or (name == "__main__" and file.startswith(HERE)))


@functools.cache
def _files(name: str) -> tuple[str, ...]:
    """Where a module of the kit's lies, by its name; nowhere, for a name that is not within the kit."""
    if not within(name, ("inferspec",)):
        return ()
    place = Path(HERE, *name.split(".")[1:])
    return (f"{place}.py", str(place / "__init__.py"))


def within(name: str, packages: tuple[str, ...]) -> bool:
    """Whether a module is one of the packages or inside one."""
    return any(name == package or name.startswith(package + ".") for package in packages)


def _guarded(method: Callable[..., Any]) -> Callable[..., Any]:
    """The method, for the kit's own modules: a driver may play a part of what it drives."""

    @functools.wraps(method)
    def asked(*given: Any, **more: Any) -> Any:
        _check(sys._getframe(1), [f"{method.__module__}.{method.__qualname__}"])
        return method(*given, **more)

    del asked.__dict__["__wrapped__"]
    return asked


def _gone(method: Callable[..., Any]) -> Callable[..., Any]:
    """In the place of a method that nobody needs here: nothing leads from it to what it was."""
    name = f"{method.__module__}.{method.__qualname__}"

    def asked(*given: Any, **more: Any) -> Any:
        raise AsksTheKit(f"someone asks {name}: a subject that asks the kit for the answer certifies nothing")

    return asked
