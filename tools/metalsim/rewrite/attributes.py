"""Attributes and function qualifiers: `[[…]]` and `kernel` have been read by now and are taken out."""

from __future__ import annotations

from collections.abc import Iterable

from inferspec.tools.metalsim.declarations import Declaration
from inferspec.tools.metalsim.source import Edits, Source


def erase(source: Source, declared: Iterable[Declaration], edits: Edits) -> None:
    """Take out every attribute and the word ``kernel`` before functions."""
    for start, end in source.attributes(0, len(source.tokens)):
        edits.replace(start, end)
    for declaration in declared:
        if declaration.kind == "function" and declaration.parameters:
            for index in range(declaration.start, declaration.parameters[0]):
                if source.tokens[index].text == "kernel":
                    edits.replace(index, index + 1)
