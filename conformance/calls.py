"""A call of an operation, and what was seen of it. Both are plain data: they cross process boundaries."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from inferspec.spec.contract import Signature

VIEWS = ("slice", "transpose", "permute", "stride", "reverse", "broadcast", "heads")
"""How an array argument may lie in memory, apart from a fresh contiguous copy."""

RARE_VIEWS = ("row", "inserted", "half", "room", "joint", "far", "bottom-up", "beginning", "shifted")
"""The same, for arguments of a certain shape: only tests that name them draw these."""

SAME = "same as "
"""What stands before the name of another argument whose array one is, in the place of a view."""

BESIDE = "beside "
"""The same, of another argument that it lies beside row by row, in one array."""

LONG, ENDS = 40, 8
"""A list of more numbers than LONG is shown by so many at either end."""


@dataclass(frozen=True, slots=True, repr=False)
class Call:
    """One call: the operation's flattened arguments (NumPy arrays, numbers, strings, slices, None, and nested dicts,
    lists and tuples of them) by name.

    A call of a stateful object is a story: its argument `steps` is a tuple of (method, arguments).
    features: what envelopes and waivers speak of (``{"dtypes": "bfloat16", "masks": "causal"}``).
    views: array argument (``x``, or ``steps.0.1.key`` within nested ones) -> one of VIEWS or RARE_VIEWS, or SAME or BESIDE
    and another argument. keep: calls of one example with the same number share the built object. elsewhere: it is called in
    another thread than the one in which it was loaded and built. refilled: array arguments that are those of the last call
    that names them too, with these values written into them.
    """

    operation: str
    arguments: Mapping[str, Any]
    features: Mapping[str, Any] = field(default_factory=dict)
    views: Mapping[str, str] = field(default_factory=dict)
    keep: int | None = None
    seed: int | None = None
    elsewhere: bool = False
    refilled: tuple[str, ...] = ()

    def having(self, **arguments: Any) -> Call:
        """The same call with some arguments replaced."""
        return replace(self, arguments={**self.arguments, **arguments})

    def without(self, *arguments: str) -> Call:
        """The same call with some arguments left out, so that they have their defaults."""
        return replace(self, arguments={name: x for name, x in self.arguments.items() if name not in arguments})

    def featuring(self, **features: Any) -> Call:
        """The same call with some features of what it has become."""
        return replace(self, features={**self.features, **features})

    def viewing(self, argument: str, view: str) -> Call:
        """The same call with one argument laid out as a view."""
        return replace(self, views={**self.views, argument: view})

    def sharing(self, first: str, *others: str) -> Call:
        """The same call with one array for several arguments, that of the first of them."""
        arguments, views = dict.fromkeys(others, self.arguments[first]), dict.fromkeys(others, SAME + first)
        return replace(self, arguments={**self.arguments, **arguments}, views={**self.views, **views})

    def joining(self, first: str, other: str) -> Call:
        """The same call with the rows of two arguments of one shape beside each other in memory, as a joint projection gives
        them."""
        return self.viewing(other, BESIDE + first)

    def kept(self, number: int) -> Call:
        """The same call on an object that other calls of the example share."""
        return replace(self, keep=number)

    def in_another_thread(self) -> Call:
        """The same call, made in another thread than all others."""
        return replace(self, elsewhere=True)

    def refilling(self, *arguments: str) -> Call:
        """The same call with its values written into the arrays that the last call had for some arguments, where that said so
        too: as a pool of pages is written into between steps."""
        return replace(self, refilled=arguments)

    def arrays(self) -> dict[str, np.ndarray]:
        """The arguments that are arrays."""
        return {name: value for name, value in self.arguments.items() if isinstance(value, np.ndarray)}

    def leaves(self) -> dict[str, np.ndarray]:
        """The arrays of all arguments, nested ones by their path: ``weights.model.norm.weight``."""
        return dict(leaves(self.arguments))

    def __str__(self) -> str:
        shown = [f"{name}={_shown(value)}" for name, value in self.arguments.items() if name != "steps"]
        text = f"{self.operation}({', '.join(shown)})"
        for number, (method, arguments) in enumerate(self.arguments.get("steps", ()), 1):
            text += f"\n    {number}. {_told(method, arguments)}"
        if self.views:
            said = (
                f"{name} {view}" if view.startswith((SAME, BESIDE)) else f"{name} a {view} view"
                for name, view in self.views.items()
            )
            text += f" with {', '.join(said)}"
        if self.refilled:
            text += f" with {', '.join(self.refilled)} written into the last call's"
        return f"{text} in another thread" if self.elsewhere else text

    # hypothesis prints what it drew: all numbers of a model would be long.
    __repr__ = __str__

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        printer.text(str(self))

    def program(self, signature: Signature) -> str | None:
        """A line of Python that makes the call, spelt as the signature is, or None when its arrays are too large to write
        down or an argument, a model say, is one that only a driver can make."""
        if self.views or self.elsewhere or self.refilled or "steps" in self.arguments:
            return None
        if sum(a.size for a in self.leaves().values()) > 24:
            return None
        if not all(_literal_stands_for(value) for value in self.arguments.values()):
            return None
        made = self.arguments.keys() & (signature.init or {})
        method = f".{signature.method}" if signature.method else ""
        built = signature.name if signature.init is None else f"{signature.name}({self._literals(made)})"
        return f"{built}{method}({self._literals(self.arguments.keys() - made)})"

    def _literals(self, names: Set[str]) -> str:
        return ", ".join(f"{name}={_literal(value)}" for name, value in self.arguments.items() if name in names)


def leaves(value: Any, path: str = "") -> Iterator[tuple[str, np.ndarray]]:
    """The arrays in nested arguments, each with its path."""
    if isinstance(value, np.ndarray):
        yield path, value
    elif isinstance(value, Mapping | list | tuple):
        for key, item in value.items() if isinstance(value, Mapping) else enumerate(value):
            yield from leaves(item, f"{path}.{key}" if path else str(key))


def step_told(call: Call, number: int) -> str:
    """One step of a story, in words: ``rewind(n=2)``."""
    return _told(*call.arguments["steps"][number - 1])


def _told(method: str, arguments: Mapping[str, Any]) -> str:
    return f"{method}({', '.join(f'{name}={_shown(value)}' for name, value in arguments.items())})"


def _shown(value: Any) -> str:
    if isinstance(value, np.ndarray):
        return f"{value.dtype.name}{list(value.shape)}"
    if isinstance(value, Mapping) and (arrays := dict(leaves(value))):
        return f"{{{len(arrays)} arrays, {sum(x.size for x in arrays.values())} numbers}}"
    if isinstance(value, tuple | list) and any(True for _ in leaves(value)):
        return f"[{', '.join(_shown(item) for item in value)}]"
    if isinstance(value, tuple | list) and len(value) > LONG:
        ends = ", ".join(map(repr, value[:ENDS])), ", ".join(map(repr, value[-ENDS:]))
        return f"[{ends[0]}, … {ends[1]}] ({len(value)} in all)"
    return repr(value)


def _literal_stands_for(value: Any) -> bool:
    """Whether a call takes the value as it is written: mappings and bytes describe models and tables to a driver."""
    if isinstance(value, tuple | list):
        return all(_literal_stands_for(item) for item in value)
    return not isinstance(value, Mapping | bytes)


def _literal(value: Any) -> str:
    if isinstance(value, np.ndarray) and value.dtype == bool:
        # MLX does not take Python's `bool` for a dtype.
        return f"array({value.tolist()})" if value.size else f"zeros({value.shape}) > 0"
    if isinstance(value, np.ndarray) and not value.size:
        # A list of nothing says nothing of the axes behind.
        return f"zeros({value.shape}, dtype={value.dtype.name})"
    if isinstance(value, np.ndarray):
        number = value.astype(np.float64) if value.dtype.kind not in "biu" else value
        return f"array({number.tolist()}, dtype={value.dtype.name})"
    if isinstance(value, tuple | list):
        return f"[{', '.join(_literal(item) for item in value)}]"
    return repr(value)


@dataclass(frozen=True, slots=True)
class Observation:
    """What a call did: an array, several named parts, an error, or something that is none of these.

    value: the result as NumPy, None when there is none. parts: the results by name, of an operation that has several.
    raised: the error's type name; message: its text, what came back instead of an array, or why steps of a story were
    refused. changed: arguments that differ after the call, "random state" or "earlier result" if those do, and "random seed"
    if it left a random state where the watched call before it did. unwritten: the steps of a story that raised
    NotImplementedError.
    """

    value: np.ndarray | None = None
    raised: str = ""
    message: str = ""
    changed: tuple[str, ...] = ()
    parts: Mapping[str, np.ndarray] = field(default_factory=dict)
    unwritten: tuple[str, ...] = ()

    @property
    def results(self) -> dict[str, np.ndarray]:
        """All that came back, by name; a single array has the name ""."""
        return dict(self.parts) if self.value is None else {"": self.value}

    @property
    def stub(self) -> bool:
        """Whether the subject only pretends to offer the operation."""
        return self.raised == "NotImplementedError" or (not self.results and not self.raised and self.message == "None")


History = tuple[tuple[Call, Observation], ...]
"""The calls of one example, in order, with what was seen."""
