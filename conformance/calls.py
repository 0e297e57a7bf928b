"""A call of an operation, and what was seen of it. Both are plain data: they cross process boundaries."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

VIEWS = ("slice", "transpose", "permute", "stride", "reverse", "broadcast")
"""How an array argument may lie in memory, apart from a fresh contiguous copy."""


@dataclass(frozen=True, slots=True)
class Call:
    """One call: the operation's flattened arguments (NumPy arrays, numbers, strings, slices, None) by name.

    features: what envelopes and waivers speak of (``{"dtypes": "bfloat16", "masks": "causal"}``).
    views: array argument -> one of VIEWS. keep: calls of one example with the same number share the built object.
    """

    operation: str
    arguments: Mapping[str, Any]
    features: Mapping[str, Any] = field(default_factory=dict)
    views: Mapping[str, str] = field(default_factory=dict)
    keep: int | None = None
    seed: int | None = None

    def having(self, **arguments: Any) -> Call:
        """The same call with some arguments replaced."""
        return replace(self, arguments={**self.arguments, **arguments})

    def viewing(self, argument: str, view: str) -> Call:
        """The same call with one argument laid out as a view."""
        return replace(self, views={**self.views, argument: view})

    def kept(self, number: int) -> Call:
        """The same call on an object that other calls of the example share."""
        return replace(self, keep=number)

    def arrays(self) -> dict[str, np.ndarray]:
        """The arguments that are arrays."""
        return {name: value for name, value in self.arguments.items() if isinstance(value, np.ndarray)}

    def __str__(self) -> str:
        shown = [f"{name}={_shown(value)}" for name, value in self.arguments.items()]
        text = f"{self.operation}({', '.join(shown)})"
        if self.views:
            text += " with " + ", ".join(f"{name} a {view} view" for name, view in self.views.items())
        return text

    def program(self) -> str | None:
        """A line of Python that makes the call, or None when its arrays are too large to write down."""
        if self.views or sum(a.size for a in self.arrays().values()) > 24:
            return None
        return f"{self.operation}({', '.join(f'{k}={_literal(v)}' for k, v in self.arguments.items())})"


def _shown(value: Any) -> str:
    if isinstance(value, np.ndarray):
        return f"{value.dtype.name}{list(value.shape)}"
    return repr(value)


def _literal(value: Any) -> str:
    if isinstance(value, np.ndarray):
        number = value.astype(np.float64) if value.dtype.kind not in "biu" else value
        return f"array({number.tolist()}, {value.dtype.name})"
    return repr(value)


@dataclass(frozen=True, slots=True)
class Observation:
    """What a call did: an array, an error, or something that is neither.

    value: the result as NumPy, None when there is none. raised: the error's type name, message: its text, or what
    came back instead of an array. changed: array arguments that differ after the call, "random state" or
    "earlier result" if those do.
    """

    value: np.ndarray | None = None
    raised: str = ""
    message: str = ""
    changed: tuple[str, ...] = ()

    @property
    def stub(self) -> bool:
        """Whether the subject only pretends to offer the operation."""
        return self.raised == "NotImplementedError" or (
            self.value is None and not self.raised and self.message == "None"
        )


History = tuple[tuple[Call, Observation], ...]
"""The calls of one example, in order, with what was seen."""
