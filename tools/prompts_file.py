"""The file of ``inferspec serve-batch``: a prompt a line, as a JSON object; what is wrong is named by its line."""

from __future__ import annotations

import json
from dataclasses import MISSING, dataclass, fields
from pathlib import Path
from typing import Any

from inferspec.tools.told import shortened, told_of_file


@dataclass(frozen=True)
class Prompt:
    """One line. id: by default the line's number; max_tokens: None for the command's own; raw: no chat template."""

    prompt: str
    id: str | int
    priority: int = 0
    max_tokens: int | None = None
    system: str | None = None
    raw: bool = False


KINDS = {"prompt": (str,), "id": (str, int), "priority": (int,), "max_tokens": (int,), "system": (str,), "raw": (bool,)}


def read(path: Path) -> list[Prompt]:
    """Return the prompts of a file; empty lines are passed over. ValueError, with the line, for anything else."""
    found: dict[str | int, int] = {}
    prompts = []
    try:
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise ValueError(f"{path} is not UTF-8: {error}") from error
    except OSError as error:
        raise ValueError(told_of_file(error)) from error
    # Not splitlines: JSON may hold other marks of a line's end inside a string.
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        try:
            prompt = _parsed(line, number)
        except ValueError as error:
            raise ValueError(f"{path}, line {number}: {error}") from error
        if prompt.id in found:
            raise ValueError(f"{path}, line {number}: id is {prompt.id!r}, which line {found[prompt.id]} has too")
        found[prompt.id] = number
        prompts.append(prompt)
    if not prompts:
        raise ValueError(f"{path} has no prompt")
    return prompts


def _parsed(line: str, number: int) -> Prompt:
    try:
        given = json.loads(line)
    except (json.JSONDecodeError, RecursionError) as error:
        raise ValueError(f"it is not JSON: {error}") from error
    if not isinstance(given, dict):
        raise ValueError(f'it is {shortened(repr(given))}; it takes an object like {{"prompt": "…", "priority": 1}}')
    unknown = given.keys() - KINDS.keys()
    if unknown:
        raise ValueError(f"it has {', '.join(sorted(unknown))}; it takes {', '.join(KINDS)}")
    for name, value in given.items():
        _check(name, value)
    needed = [field.name for field in fields(Prompt) if field.default is MISSING and field.name != "id"]
    missing = [name for name in needed if name not in given]
    if missing:
        raise ValueError(f"it has no {missing[0]}")
    return Prompt(**{"id": number, **given})


def _check(name: str, value: Any) -> None:
    kinds = KINDS[name]
    # JSON's true is no number, though Python's is.
    if not isinstance(value, kinds) or (isinstance(value, bool) and bool not in kinds):
        raise ValueError(f"{name} is {shortened(repr(value))}; it takes {' or '.join(kind.__name__ for kind in kinds)}")
    if isinstance(value, str) and any("\ud800" <= character <= "\udfff" for character in value):
        raise ValueError(f"{name} is {value!r}, which holds half a character; it takes whole ones")
    if name == "max_tokens" and isinstance(value, int) and value < 0:
        raise ValueError(f"max_tokens is {value}; it takes 0 or more")
