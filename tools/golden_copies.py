"""Copies of the stored goldens, and what is done to them."""

from __future__ import annotations

import io
import json
import shutil
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from importlib import import_module
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from inferspec.golden import MANIFEST, ROOT, SUFFIX, read, serialised
from inferspec.tools.recipes import Case


def copied(folder: Path) -> Path:
    """A copy of the committed goldens, as if the libraries that are installed had made them."""
    copy = folder / "golden"
    shutil.copytree(ROOT, copy, ignore=shutil.ignore_patterns("*.py", "__pycache__"))
    edit_manifest(
        copy, lambda goldens: [one.update(libraries=_installed(one["libraries"])) for one in goldens.values()]
    )
    return copy


def _installed(libraries: Mapping[str, str]) -> dict[str, str]:
    """The same libraries with the versions that are installed here; the recorded ones of what is not."""
    return {name: version(name) if find_spec(name) else recorded for name, recorded in libraries.items()}


def ran(function: Callable[..., int], root: Path, *only: str) -> tuple[int, str]:
    """Exit code and text of regen or check."""
    text = io.StringIO()
    code = function(only, Console(file=text, width=200), root=root)
    return code, text.getvalue()


def contents(root: Path) -> dict[str, bytes]:
    """Each file, by its path."""
    return {str(path.relative_to(root)): path.read_bytes() for path in sorted(root.rglob("*")) if path.is_file()}


def edit_manifest(root: Path, change: Callable[[dict[str, Any]], Any]) -> None:
    """Write the manifest with what `change` makes of its goldens."""
    path = root / MANIFEST
    whole = json.loads(path.read_text())
    change(whole["goldens"])
    path.write_text(json.dumps(whole, indent=2, sort_keys=True) + "\n")


def rewrite(root: Path, id: str, **changes: Any) -> None:
    """Write one golden with other fields; the manifest stays."""
    path = root / f"{id}{SUFFIX}"
    path.write_bytes(serialised(replace(read(path), **changes)))


def with_case(monkeypatch: pytest.MonkeyPatch, id: str, change: Callable[[Case], Iterable[Case]]) -> None:
    """Replace one recipe; `change` gets the case and gives what stands in its place (any number)."""
    component, name = id.split("/")
    module = import_module(f"inferspec.tools.recipes.{component}")
    cases_now = [new for case in module.CASES for new in (change(case) if case.name == name else [case])]
    monkeypatch.setattr(module, "CASES", tuple(cases_now))
