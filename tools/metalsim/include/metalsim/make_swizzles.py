"""Writes swizzles.h: ``python make_swizzles.py > swizzles.h``."""

from __future__ import annotations

from itertools import product

HEAD = """\
// Every swizzle of a vector of 2, 3 and 4 components, as members of the union that holds its elements.
// Generated: python make_swizzles.py > swizzles.h
#pragma once
"""


def swizzles(components: int) -> str:
    """``#define MSL_SWIZZLES_n(T)``: the members of a vector of n components, by both of MSL's sets of names."""
    lines = []
    for names in ("xyzw", "rgba"):
        for length in (2, 3, 4):
            for choice in product(range(components), repeat=length):
                member = "".join(names[i] for i in choice)
                lines.append(f"  msl::swizzle<T, {components}, {', '.join(map(str, choice))}> {member};")
    return f"#define MSL_SWIZZLES_{components}(T) \\\n" + " \\\n".join(lines) + "\n"


if __name__ == "__main__":
    print(HEAD)
    print("\n".join(swizzles(n) for n in (2, 3, 4)), end="")
