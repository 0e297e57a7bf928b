"""Matches the contract's parameters with a subject's own: by name, by a name that is nearly it, the rest in order."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from inferspec.conformance.arrays import Arrays, moved
from inferspec.conformance.drivers import Driver, takes
from inferspec.spec.contract import REQUIRED, Operation


class AdapterError(Exception):
    """The adapter cannot be used as it is; the message is one line that says why and how to mend it."""


SYNONYMS = {
    "eps": ("epsilon", "variance_epsilon", "norm_eps"),
    "mask": ("attn_mask", "attention_mask"),
    "scale": ("scaling", "sm_scale", "softmax_scale"),
    "base": ("theta", "rope_theta"),
    "axis": ("dim",),
    "dims": ("dim", "hidden_size", "normalized_shape"),
    "uniform": ("uniforms", "u"),
}
"""Other names of parameters that position cannot tell, since they or others may be left out: the field's own."""


COUNTS = re.compile(
    r"(dims?|dimensions?|sizes?|shape|features|width|channels|units)(_in|_out|\d)?$|^(num|n|dims?)(_|$)|^(d_model|vocab)$"
)
"""The names of a constructor's parameters that tell how large something is: `vocab_size` does, `vocab_table` does not."""
ARRAYS = re.compile(r"[Aa]rray|Tensor")
"""What is in the annotation of what is no size, whatever it is called."""
FILLED = frozenset({"weight", "wq", "wk", "wv", "wo", "w_gate", "w_up", "w_down", "packed", "scales", "biases"})
"""What is no size."""


@dataclass
class Target:
    """One offered operation: what to call, and which of the contract's parameters it takes.

    init_names, call_names: contract parameter -> the subject's own name for it, or "" where it is passed by position.
    filled: contract parameter -> its default, where the contract has one and the subject insists on it. narrowed:
    envelope key -> what is left of it, since the subject takes no such parameter. driver: how to use it, where that is
    more than a call; layout: what the adapter's LAYOUT says of the component; beside: how the other operations that the
    driver uses are built; unasked: what a layout's text does not ask (`layouts.Offer`). loaded: contract parameter -> where
    the object that is built may keep it, which its constructor does not take.
    """

    operation: type[Operation]
    function: Callable[..., Any]
    kind: Arrays
    plain: bool
    init_names: Mapping[str, str] = field(default_factory=dict)
    call_names: Mapping[str, str] = field(default_factory=dict)
    filled: Mapping[str, Any] = field(default_factory=dict)
    narrowed: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)
    driver: Driver | None = None
    layout: str = ""
    beside: Mapping[str, Callable[..., Any]] = field(default_factory=dict)
    unasked: Mapping[str, str] = field(default_factory=dict)
    loaded: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def build(self, arguments: Mapping[str, Any]) -> Callable[..., Any]:
        """Make the object that is called, from the flattened arguments."""
        signature = self.operation.signature
        if self.plain or signature.init is None:
            return self.function
        built = self.function(*self._placed(self.init_names, arguments), **self._named(self.init_names, arguments))
        for name, places in self.loaded.items():
            _keep(built, places, arguments[name])
        return getattr(built, signature.method) if signature.method and not self.operation.methods else built

    def invoke(self, built: Callable[..., Any], arguments: Mapping[str, Any]) -> Any:
        """Call it with the flattened arguments, or have the driver use it."""
        if self.driver:
            return self.driver(built, {**arguments, "layout": self.layout, **self.beside}, self.kind)
        names = {**self.init_names, **self.call_names} if self.plain else self.call_names
        return built(*self._placed(names, arguments), **self._named(names, arguments))

    def beside_a(self, kind: Arrays) -> Callable[..., Any]:
        """What a driver of another operation is given, whose arrays are of `kind`: how the object is built, or how the
        function is called by the contract's names."""
        if self.operation.methods or self.operation.signature.init is not None:
            return self.build

        def call(**arguments: Any) -> Any:
            given = {name: moved(value, kind, self.kind) for name, value in arguments.items()}
            return moved(self.invoke(self.function, given), self.kind, kind)

        return call

    def _placed(self, names: Mapping[str, str], arguments: Mapping[str, Any]) -> list[Any]:
        """What is passed by position, up to the last that is given; what is not given before it has its default."""
        places = [name for name, own in names.items() if own == ""]
        given = [place for place, name in enumerate(places, 1) if name in arguments or name in self.filled]
        defaults = self.operation.signature.parameters
        return [arguments.get(name, defaults[name]) for name in places[: max(given, default=0)]]

    def _named(self, names: Mapping[str, str], arguments: Mapping[str, Any]) -> dict[str, Any]:
        defaults, given = self.operation.signature.parameters, {**self.filled, **arguments}
        return {
            own: given[name]
            for name, own in names.items()
            if own and name in given and (name in self.filled or not (given[name] is None and defaults[name] is None))
        }


def bind(operation: type[Operation], function: Callable[..., Any], kind: Arrays, plain: bool) -> Target:
    """Return how to call what a subject offers for an operation; AdapterError when its parameters do not fit."""
    signature = operation.signature
    if operation.methods:
        return _bind_methods(operation, function, kind)
    if plain:
        order = {**signature.call, **(signature.init or {})}
        names, filled = _matched(function, order, operation, by_name_alone=operation.implied)
        narrowed = {**_narrowed(operation, names, order), **_bound_to(operation, names, function)}
        return Target(operation, function, kind, True, {}, names, filled, narrowed)
    if signature.init is None:
        names, filled = _matched(function, signature.call, operation)
        narrowed = {**_narrowed(operation, names, signature.call), **_bound_to(operation, names, function)}
        return Target(operation, function, kind, False, {}, names, filled, narrowed)
    loaded = _loaded(function, operation)
    taken = {name: default for name, default in signature.init.items() if name not in loaded}
    init_names, filled = _matched(function, taken, operation)
    _refuse_sizes(function, init_names, operation)
    if loaded:
        # A layer's own defaults are those of the models that it is for.
        filled |= {name: default for name, default in taken.items() if default is not REQUIRED and name in init_names}
    narrowed = dict(_narrowed(operation, init_names, signature.init))
    method = _method(function, operation)
    if method is None:
        call_names = _unread(signature.call)
    else:
        call_names, more = _matched(method, signature.call, operation, skip=1)
        filled |= more
        narrowed |= _bound_to(operation, call_names, method)
    narrowed |= _narrowed(operation, call_names, signature.call)
    return Target(operation, function, kind, False, init_names, call_names, filled, narrowed, loaded=loaded)


def _loaded(function: Callable[..., Any], operation: type[Operation]) -> dict[str, tuple[str, ...]]:
    """What the constructor of a class does not take, since its objects are filled later: what it insists on are sizes."""
    if not inspect.isclass(function) or not operation.loaded:
        return {}
    try:
        own = list(inspect.signature(function).parameters.values())
    except (ValueError, TypeError):
        return {}
    if any(p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD) for p in own):
        return {}
    init = operation.signature.init or {}
    named = {own: name for name in init for own in (name, *SYNONYMS.get(name, ()))}
    # Without its options: as many sizes as the contract has, or one of them is an array after all.
    insisted = [p for p in own if p.default is p.empty and init.get(named.get(p.name, ""), REQUIRED) is REQUIRED]
    sizes = all(p.name in named or _counts(p) for p in insisted)
    needed = sum(default is REQUIRED for name, default in init.items() if name not in operation.loaded)
    return {
        name: places
        for name, places in operation.loaded.items()
        if len(insisted) == needed and sizes and not any(_alike(p, name) or p.name in (*places, "w") for p in own)
    }


def _counts(own: inspect.Parameter) -> bool:
    """Whether a parameter of a constructor tells a size or makes a choice."""
    if ARRAYS.search(str(own.annotation)):
        return False
    return own.annotation in (int, "int") or bool(COUNTS.search(own.name)) or isinstance(own.default, int | float | str)


def _refuse_sizes(function: Callable[..., Any], names: Mapping[str, str], operation: type[Operation]) -> None:
    """Refuse to give weights for sizes; a layer that is filled once it is made would take them by position."""
    try:
        own = inspect.signature(function).parameters
    except (ValueError, TypeError):
        return
    wrong = [name for name, p in names.items() if name in FILLED and p in own and _counts(own[p])]
    if any(not _alike(own[names[name]], name) for name in wrong):
        raise AdapterError(
            f"{operation.signature.operation}{inspect.signature(function)} does not take {', '.join(wrong)}; the contract is"
            f" {_spelt(operation)}: a class whose objects are filled once they are made needs one around it that does so"
        )


def _keep(built: Any, places: tuple[str, ...], value: Any) -> None:
    """Put an array where an object has one; torch has parameters there, of which no gradient is wanted here."""
    there = [place for place in places if hasattr(built, place)]
    there.sort(key=lambda place: getattr(built, place) is None)
    if not there:
        raise TypeError(f"{type(built).__name__} neither takes {places[0]} nor has {' or '.join(places)} to put it in")
    place, old = there[0], getattr(built, there[0])
    if old is None:
        setattr(built, place, value)
        return
    if not hasattr(old, "shape") and hasattr(old, places[0]):
        # A layer of the library's own.
        _keep(old, places[:1], value)
        return
    if tuple(old.shape) != tuple(value.shape):
        raise ValueError(f"{place} is {tuple(old.shape)}, and what is to be put there {tuple(value.shape)}")
    setattr(built, place, type(old)(value, requires_grad=False) if hasattr(old, "requires_grad") else value)


def _bind_methods(operation: type[Operation], function: Callable[..., Any], kind: Arrays) -> Target:
    """How to use what a driver uses: its constructor's parameters are matched, its methods need only be there."""
    init = operation.signature.init
    is_class = inspect.isclass(function)
    if is_class and (missing := [name for name in operation.methods if not _has(function, name)]):
        raise AdapterError(f"{operation.signature.operation}: {function.__name__} has no {', '.join(missing)}")
    init_names, filled = _matched(function, init, operation) if init is not None else ({}, {})
    narrowed = {
        **(dict(_lacking(operation, function)) if is_class else {}),
        **_narrowed(operation, init_names, init or {}),
    }
    return Target(operation, function, kind, False, init_names, {}, filled, narrowed)


def _lacking(operation: type[Operation], cls: Any) -> Iterator[tuple[str, tuple[Any, ...]]]:
    """What is left of an envelope where methods, or parameters of methods, are missing."""
    for name, left in operation.optional_methods.items():
        if not _has(cls, name):
            yield left
    for (name, parameter), left in operation.optional_parameters.items():
        if not takes(getattr(cls, name), parameter):
            yield left


def _has(cls: Any, method: str) -> bool:
    return defines(cls, method) if method == "__call__" else hasattr(cls, method)


def offers_methods(thing: Any, operation: type[Operation]) -> bool:
    """Whether an object or class has all that the operation uses: its method, or those that its driver uses, which what
    is no class shows only when it is used."""
    if operation.methods:
        return not inspect.isclass(thing) or all(_has(thing, name) for name in operation.methods)
    return not operation.signature.method or hasattr(thing, operation.signature.method)


def _method(cls: Any, operation: type[Operation]) -> Callable[..., Any] | None:
    """The method of a class that the contract calls, or None where it cannot be read."""
    if not inspect.isclass(cls):
        return None
    name = operation.signature.method or "__call__"
    if not defines(cls, name):
        raise AdapterError(f"objects of {cls.__name__} cannot be called; the contract is {_spelt(operation)}")
    method = getattr(cls, name)
    if not inspect.isfunction(method):
        return None
    # torch's modules take anything and hand it on to `forward`.
    kinds = {p.kind for p in list(inspect.signature(method).parameters.values())[1:]}
    forward = getattr(cls, "forward", None)
    return forward if kinds == {inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD} and forward else method


def defines(thing: Any, method: str) -> bool:
    """Whether it is a class whose objects have the method (every class itself has a __call__)."""
    return inspect.isclass(thing) and any(method in vars(base) for base in thing.__mro__)


def _unread(parameters: Mapping[str, Any]) -> dict[str, str]:
    """How to call what has no readable signature: required parameters by position, the others by name."""
    return {name: ("" if default is REQUIRED else name) for name, default in parameters.items()}


def _matched(
    function: Callable[..., Any],
    parameters: Mapping[str, Any],
    operation: type[Operation],
    by_name_alone: frozenset[str] = frozenset(),
    skip: int = 0,
) -> tuple[dict[str, str], dict[str, Any]]:
    """Match the contract's parameters with the function's own: by name or nearly so, the rest of the required ones in order.

    Parameters that other arguments imply are left out where the function does not take them; those of
    `by_name_alone` also where it takes something of another name. Returns contract name -> own name ("" for by
    position), in the function's own order, and the defaults of those on which the function insists and the contract
    does not.
    """
    try:
        own = list(inspect.signature(function).parameters.values())[skip:]
    except (ValueError, TypeError):
        return _unread({name: d for name, d in parameters.items() if name not in by_name_alone}), {}
    takes = {p.kind for p in own}
    own = [p for p in own if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]
    found = {name: p for p in own for name in parameters if p.name in (name, *SYNONYMS.get(name, ()))}
    free = [p for p in own if p not in found.values() and p.kind is not p.KEYWORD_ONLY]
    lacking = [name for name, default in parameters.items() if default is REQUIRED and name not in found]
    for name in lacking:
        if alike := [p for p in free if _alike(p, name)]:
            found[name] = alike[0]
            free.remove(alike[0])
    lacking = [name for name in lacking if name not in found]
    required = [name for name in lacking if name not in operation.implied]
    spare = sum(p.default is p.empty for p in free) - len(required)
    for name in lacking:
        if free and name in required:
            found[name] = free.pop(0)
        elif free and name not in by_name_alone and spare > 0:
            found[name], spare = free.pop(0), spare - 1
    # What stands behind a positional-only parameter that stays empty cannot be reached.
    reached = {p.name for p in own}
    for p in (p for p in own if p.kind is p.POSITIONAL_ONLY):
        if p not in found.values():
            reached -= {later.name for later in own[own.index(p) :] if later.kind is p.POSITIONAL_ONLY}
    found = {name: p for name, p in sorted(found.items(), key=lambda pair: own.index(pair[1])) if p.name in reached}
    names = {name: "" if p.kind is p.POSITIONAL_ONLY else p.name for name, p in found.items()}
    left = [name for name in parameters if name not in names and name not in by_name_alone]
    if inspect.Parameter.VAR_KEYWORD in takes:
        names |= {name: name for name in left}
    elif inspect.Parameter.VAR_POSITIONAL in takes and any(name in required for name in left):
        names = {name: "" if p.kind is not p.KEYWORD_ONLY else p.name for name, p in found.items()}
        names |= {name: "" for name in left if name in required}
    missing = [name for name in required if name not in names]
    unfilled = [p.name for p in own if p.default is p.empty and p not in found.values()]
    if missing or unfilled:
        problem = (
            f"does not take {', '.join(missing)}"
            if missing
            else f"needs {', '.join(unfilled)}, which no contract gives"
        )
        where = operation.signature.operation
        raise AdapterError(f"{where}{inspect.signature(function)} {problem}; the contract is {_spelt(operation)}")
    insisted = {name for name, p in found.items() if p.default is p.empty and name not in operation.required_narrows}
    defaults = {**parameters, **operation.insisted}
    return names, {name: defaults[name] for name in insisted if parameters[name] is not REQUIRED}


def _alike(own: inspect.Parameter, name: str) -> bool:
    """Whether a parameter has the contract's name in another number, or with more behind it: `weight` for `weights`,
    `key_states` for `key`. Its place says less than that: who takes values before keys says so. What may be left out is
    something else about it, as `weight_offset=0` is."""
    longer = len(name) > 1 and own.name.startswith(f"{name}_") and own.default is own.empty
    return _stem(own.name) == _stem(name) or longer


def _stem(name: str) -> str:
    return re.sub(r"(?<=\w{2})s$", "", re.sub(r"ies$", "y", name))


def _spelt(operation: type[Operation]) -> str:
    signature = operation.signature

    def spell(parameters: Mapping[str, Any]) -> str:
        return ", ".join(n if d is REQUIRED else f"{n}={d!r}" for n, d in parameters.items())

    init = f"({spell(signature.init)})" if signature.init is not None else ""
    method = f".{signature.method}" if signature.method else ""
    return f"{signature.name}{init}{method}({spell(signature.call)})"


def _narrowed(
    operation: type[Operation], names: Mapping[str, str], asked: Mapping[str, Any]
) -> dict[str, tuple[Any, ...]]:
    """What a signature that leaves out a parameter cannot be asked for."""
    return {key: left for name, (key, left) in operation.narrows.items() if name in asked and name not in names}


def _bound_to(
    operation: type[Operation], names: Mapping[str, str], function: Callable[..., Any]
) -> dict[str, tuple[Any, ...]]:
    """What a signature that insists on a parameter cannot be asked for."""
    try:
        own = inspect.signature(function).parameters
    except (ValueError, TypeError):
        return {}
    insisted = [
        name for name in operation.required_narrows if (p := own.get(names.get(name, ""))) and p.default is p.empty
    ]
    return dict(operation.required_narrows[name] for name in insisted)
