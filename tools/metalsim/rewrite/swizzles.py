"""Swizzles of swizzles: `v.zyx.xy` becomes `v.zyx.template msl_pick<0, 1>()`.

A swizzle has a vector's components by name only where it is of two: names for all swizzles of all swizzles would double the time
that a kernel takes to compile. What is picked so can be read; C++ has no way to write it, so what is assigned to stays.
"""

from __future__ import annotations

import re

from inferspec.tools.metalsim.source import Edits, Source

_SWIZZLE = re.compile("[xyzw]{2,4}|[rgba]{2,4}")
_PICKED = re.compile("[xyzw]{1,4}|[rgba]{1,4}")
_ASSIGNMENTS = {"=", "+=", "-=", "*=", "/=", "%=", "&=", "|=", "^=", "<<=", "++", "--"}


def rewrite(source: Source, edits: Edits) -> None:
    """Spell every swizzle of a swizzle that is read so."""
    tokens = source.tokens
    for index in range(len(tokens) - 4):
        swizzle, picked = tokens[index + 1].text, tokens[index + 3].text
        if tokens[index].text != "." or tokens[index + 2].text != ".":
            continue
        if not (_SWIZZLE.fullmatch(swizzle) and _PICKED.fullmatch(picked)) or len(swizzle) + len(picked) < 4:
            continue
        if source.words(index + 4, index + 5) in _ASSIGNMENTS or source.words(index + 4, index + 6) == "> >=":
            continue
        places = ", ".join(str(("xyzw" if letter in "xyzw" else "rgba").index(letter)) for letter in picked)
        edits.replace(index + 3, index + 4, f"template msl_pick<{places}>()")
