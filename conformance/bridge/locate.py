"""Finds the module or object that a subject is named by, and never another of that name."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from importlib.machinery import all_suffixes
from importlib.metadata import entry_points
from operator import attrgetter
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

from inferspec.conformance.bridge.did_you_mean import meant
from inferspec.conformance.bridge.signatures import AdapterError
from inferspec.conformance.trust.isolation import is_closed

ENTRY_POINTS = "inferspec.subjects"


def registered() -> dict[str, str]:
    """The registered subjects: name -> module (entry-point group `inferspec.subjects`)."""
    return {point.name: point.value for point in sorted(entry_points(group=ENTRY_POINTS), key=lambda p: p.name)}


def find(spec: str) -> tuple[Any, ModuleType]:
    """The adapter and the module that holds it."""
    module_name, _, attribute = spec.partition(":")
    known = registered()
    if spec in known:
        _refuse_shadow(spec, known[spec])
        module_name, _, attribute = known[spec].partition(":")
    module = _import(module_name, spec)
    try:
        adapter = attrgetter(attribute)(module) if attribute else getattr(module, "ADAPTER", module)
    except AttributeError as error:
        raise AdapterError(f"{spec}: module {module_name} has no {attribute!r}") from error
    return SimpleNamespace(**adapter) if isinstance(adapter, dict) and not _is_layer(adapter) else adapter, module


def _is_layer(thing: dict[str, Any]) -> bool:
    """Whether it is a module of mlx.nn: those are dicts too, of what they are made of."""
    return any(base.__module__.partition(".")[0] == "mlx" for base in type(thing).__mro__)


def _import(name: str, spec: str) -> ModuleType:
    path = Path(name)
    if is_closed(name):
        raise AdapterError(f"{spec}: {name} is a part of what judges; it certifies nothing")
    try:
        if path.suffix == ".py" or "/" in name or name.startswith("."):
            return _import_path(path.resolve(), spec)
        return importlib.import_module(name)
    except AdapterError:
        raise
    except BaseException as error:
        if isinstance(error, ModuleNotFoundError) and error.name == name.split(".")[0]:
            known = ", ".join(registered())
            raise AdapterError(
                f"{spec}: no module {name!r} can be imported from here; give a dotted module, a path such as"
                f" ./kernels.py, or one of: {known}{meant(name, registered())}"
            ) from error
        if isinstance(error, ImportError) and "attempted relative import" in str(error):
            raise AdapterError(f"{spec}: {error}; {_as_module(path.resolve())}") from error
        failed = f"{spec}: importing it failed with {type(error).__name__}: {error}"
        if path.suffix == ".py" and _missed(error) == path.stem:
            failed += f"; it is found itself where it imports {path.stem!r}: rename {path.name}"
        raise AdapterError(failed) from error


def _missed(error: BaseException) -> str:
    """The library in which an import, or an attribute of it, is missing."""
    name = error.name if isinstance(error, ImportError) else getattr(getattr(error, "obj", None), "__name__", "")
    return (name or "").partition(".")[0]


def _in_package(path: Path) -> tuple[Path, str]:
    """The folder that a file's package lies in, and the file's dotted name there."""
    package = path.parent
    while (package.parent / "__init__.py").exists():
        package = package.parent
    return package.parent, ".".join(path.with_suffix("").relative_to(package.parent).parts)


def _as_module(path: Path) -> str:
    """How to name a file that imports relatively, which needs its package."""
    folder, name = _in_package(path)
    return (
        f"a file by itself has no package: name it as a module, --impl {name} in the folder {folder},"
        f" or have it import `from {path.parent.name}.x` or, from beside it, `from x`"
    )


def _import_path(path: Path, spec: str) -> ModuleType:
    if not path.exists():
        raise AdapterError(f"{spec}: there is no file or package {path.name} in {path.parent}")
    if path.is_file() and not path.name.endswith(tuple(all_suffixes())):
        raise AdapterError(f"{spec}: {path.name} is no Python file; it takes one, or the folder of a package")
    sys.path.insert(0, str(path.parent))
    try:
        module = importlib.import_module(path.stem)
    except ImportError as error:
        if "attempted relative import" not in str(error) or not (path.parent / "__init__.py").exists():
            raise
        folder, name = _in_package(path)
        sys.path.insert(0, str(folder))
        module = importlib.import_module(name)
    found = getattr(module, "__file__", None) or next(iter(getattr(module, "__path__", ())), None)
    if found is None or Path(found).resolve() not in (path, path / "__init__.py"):
        # A module of that name was loaded before (random, queue …): never certify the wrong code.
        raise AdapterError(
            f"{spec}: {path.stem!r} is also the name of a module of {found or 'Python itself'}; rename {path.name}"
        )
    return module


def _refuse_shadow(name: str, registered_module: str) -> None:
    """A folder or file of the same name here could be meant: never certify the wrong code."""
    spec = importlib.util.find_spec(registered_module.partition(":")[0])
    theirs = Path(spec.origin).resolve() if spec and spec.origin else Path()
    for local in (Path(f"{name}.py"), Path(name)):
        is_code = local.is_file() or any(local.glob("*.py"))
        if is_code and local.resolve() not in (theirs, theirs.parent):
            raise AdapterError(
                f"{name} is a registered subject and also {local} here; say ./{local} or {registered_module}"
            )
