"""Literals of MSL's own types: `1.0h` is a half, `1.0bf` a bfloat. C++ leaves such suffixes to nobody that all compilers heed."""

from __future__ import annotations

import re

from inferspec.tools.metalsim.source import Edits, Source

# A point or an exponent makes a number a floating one: 0xbf is an integer.
_LITERAL = re.compile(
    r"""( (?: \d[\d']*\.[\d']* | \.\d[\d']* ) (?:[eE][+-]?\d+)? | \d[\d']*[eE][+-]?\d+ | 0[xX][\da-fA-F.']+[pP][+-]?\d+ )
        (h|H|bf|BF)""",
    re.VERBOSE,
)
_TYPES = {"h": "half", "bf": "bfloat"}


def spelled(number: str) -> str:
    """A number as C++ knows it: ``half(1.0f)`` for ``1.0h``, the others as they are."""
    match = _LITERAL.fullmatch(number)
    return f"{_TYPES[match.group(2).lower()]}({match.group(1)}f)" if match else number


def rewrite(source: Source, edits: Edits) -> None:
    """Spell every literal of half and bfloat so."""
    for index, token in enumerate(source.tokens):
        if token.kind == "number" and spelled(token.text) != token.text:
            edits.replace(index, index + 1, spelled(token.text))


def words(source: Source, start: int, end: int) -> str:
    """Tokens as ``Source.words`` gives them, with their literals spelled."""
    return " ".join(spelled(token.text) if token.kind == "number" else token.text for token in source.tokens[start:end])
