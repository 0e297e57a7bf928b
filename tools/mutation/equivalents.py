"""Mutants that no test can tell from the oracle, each with the reason in one line (`equivalent.toml`)."""

from __future__ import annotations

import functools
import tomllib
from collections.abc import Mapping
from pathlib import Path

from inferspec.tools.mutation import mutants, scope

FILE = Path(__file__).with_name("equivalent.toml")


@functools.cache
def reasons() -> Mapping[str, str]:
    """The key of each equivalent mutant -> why it is one."""
    table: dict[str, dict[str, str]] = tomllib.loads(FILE.read_text(encoding="utf-8"))
    return {f"{module}.{key}": reason for module, rows in table.items() for key, reason in rows.items()}


def stale() -> list[str]:
    """Keys that are no mutant's: the source has changed since."""
    known = {one.key for module in scope.modules() for one in mutants.population(module).mutants}
    return [key for key in reasons() if key not in known]
