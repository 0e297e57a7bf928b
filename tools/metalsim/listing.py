"""A kernel's source as it was given, for showing lines of it."""

from __future__ import annotations

import re
from dataclasses import dataclass

_LINE = re.compile(r'\s*#\s*(?:line\s+)?(\d+)(?:\s+"([^"]*)")?')


@dataclass(frozen=True)
class Listing:
    """The text that a kernel was made from. name: of its file, as messages have it; ``#line`` may begin others. expanded: the
    text after preprocessing."""

    name: str
    text: str
    expanded: str

    def lines(self) -> dict[str, dict[int, str]]:
        """File -> number -> line."""
        found: dict[str, dict[int, str]] = {}
        file, number = self.name, 1
        for line in self.text.splitlines():
            if match := _LINE.match(line):
                number, file = int(match[1]), match[2] or file
                continue
            found.setdefault(file, {})[number] = line
            number += 1
        return found
