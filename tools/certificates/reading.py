"""Certificates from files, refused unless they are sound."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from inferspec.conformance.bridge.wire import readable
from inferspec.conformance.reporting.certificate import STATES, digest, problems
from inferspec.tools.told import told

Certificate = dict[str, Any]

TESTED = ("--impl", "--layout", "--with", "--metal", "--call-limit")
"""Options of a run that say what was tested."""

COMPARED: dict[str, tuple[str, ...]] = {
    "kit": ("version", "requirements"),
    "subject": ("name", "version", "library", "device", "kernel_path", "envelope"),
    "environment": ("machine", "system", "python", "libraries"),
    "precision": ("matmul", "declared", "measured"),
    "verdict": (),
    "profile": (),
    "seed": (),
    "requirements": (),
}
"""What of a certificate is compared with another's: keys, and the names below them."""

TABLES = ("libraries", "measured", "envelope", "declared")
"""Those of these names that stand for tables; the others stand for texts."""

ROW = ("id", "text", "state", "worst")
"""What a certificate of any version of the kit has, and each of its rows."""


class Refused(Exception):
    """A certificate cannot be used; the message says which and why."""


def read(path: Path) -> Certificate:
    """Return the certificate of a file. Refused when it cannot be read, or is not a sound one of this kit."""
    found = parsed(path)
    wrong = problems(found)
    if wrong:
        raise Refused(f"{path} is refused: {'; '.join(wrong)}")
    return found


def read_any(path: Path) -> Certificate:
    """Return the certificate of a file, also one that another version of the kit made. Refused when it was changed."""
    found = parsed(path)
    try:
        sound = isinstance(found, dict) and found.get("digest") == digest(found)
    except RecursionError as error:
        raise Refused(f"{path} cannot be read: {error}") from error
    if not sound:
        raise Refused(f"{path} is refused: it is no certificate, or was changed after it was written")
    if lacking := _lacking(found):
        raise Refused(f"{path} is refused: it has no {lacking}")
    return found


def _lacking(found: Certificate) -> str:
    """The first thing that a certificate lacks for a comparison, "" when it has all."""
    for key, names in COMPARED.items():
        part = found.get(key)
        if part is None:
            return key
        for name in names:
            if not isinstance(part, dict) or name not in part:
                return f"{key}/{name}"
            if name not in TABLES and not isinstance(part[name], str):
                return f"text for {key}/{name}"
    for name, part in [(name, found[key]) for key, names in COMPARED.items() for name in names if name in TABLES]:
        if not isinstance(part[name], dict):
            return f"table of {name}"
    return _lacking_in(found["requirements"])


def _lacking_in(rows: Any) -> str:
    """The first thing that a list of requirements lacks for a comparison, "" when it has all."""
    if not isinstance(rows, list) or not all(isinstance(row, dict) and set(ROW) <= set(row) for row in rows):
        return f"list of requirements with {', '.join(ROW)}"
    if not all(isinstance(row[name], str) for row in rows for name in ("id", "text", "state")):
        return f"list of requirements with texts for {', '.join(ROW[:3])}"
    if not all(row["state"] in STATES and isinstance(row["worst"], int | float) for row in rows):
        return "list of requirements with states and errors that this kit knows"
    return ""


def parsed(path: Path) -> Any:
    """Return what a file of JSON holds, whether a certificate or not."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise Refused(f"{path} cannot be read: {told(error)}") from error


def title(certificate: Certificate) -> str:
    """The subject's name and version, in one line."""
    text = f"{certificate['subject']['name']} {certificate['subject']['version']}"
    return readable(" ".join(text.split()))


def tested(arguments: Sequence[str]) -> list[tuple[str, str]]:
    """The options of a run that say what was tested, with their values, however they were spelt."""
    found = []
    for place, argument in enumerate(arguments):
        name, equals, value = argument.partition("=")
        if name in TESTED:
            found.append((name, value if equals else "".join(arguments[place + 1 : place + 2])))
    return found
