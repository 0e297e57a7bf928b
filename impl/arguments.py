"""Numbers that callers give: integers, by an error that names the argument where they are not."""

from __future__ import annotations

import operator


def integer(name: str, value: object) -> int:
    """Return the value as Python's integer; TypeError, naming the argument, for anything else."""
    try:
        return operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        raise TypeError(f"{name} is {value!r}; it takes an integer") from None


def whole(name: str, value: object, least: int) -> int:
    """Return the value as an integer of at least so much; ValueError below, TypeError as `integer`."""
    number = integer(name, value)
    if number < least:
        raise ValueError(f"{name} is {number}; it takes {least} or more")
    return number
