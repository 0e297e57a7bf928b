"""Binds the operations of a contract to what a subject offers: how each is built and called, and what cannot be asked of it."""

from __future__ import annotations

import dis
import inspect
import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import wraps
from types import MethodType
from typing import Any

from inferspec.conformance.bridge.arrays import Arrays, moved
from inferspec.conformance.bridge.assigned_weights import keep, places_of, refuse_sizes
from inferspec.conformance.bridge.drivers import Driver, by_name, takes
from inferspec.conformance.bridge.signatures import AdapterError, matched, parameters_of, spelt, strange, unread
from inferspec.conformance.envelope import meet
from inferspec.spec.contract import REQUIRED, Operation

Narrowing = tuple[str, tuple[Any, ...]]
"""An envelope key, and what is left of it."""


@dataclass
class Target:
    """One offered operation: what to call, and which of the contract's parameters it takes.

    init_names, call_names: contract parameter -> the subject's own name for it, or "" where it is passed by position.
    filled: contract parameter -> its default, where the contract has one and the subject insists on it. narrowed:
    envelope key -> what is left of it, since the subject takes no such parameter. driver: how to use it, where that is
    more than a call; layout: what the adapter's LAYOUT says of the component; beside: how the other operations that the
    driver uses are built; unasked: what a layout's text does not ask (`layouts.Offer`). loaded: contract parameter -> where
    the object that is built may keep it, which its constructor does not take. strange: contract parameter that is not taken
    -> what is taken and is nothing of the contract, which may be the same. unseen: what it makes has yet to show which methods it
    has; lacking: those of the contract that it has not, and needs.
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
    strange: Mapping[str, Sequence[str]] = field(default_factory=dict)
    unseen: bool = False
    lacking: tuple[str, ...] = ()

    def build(self, arguments: Mapping[str, Any]) -> Callable[..., Any]:
        """Make what is called, from the flattened arguments."""
        return self.called(self.made(arguments))

    def made(self, arguments: Mapping[str, Any]) -> Any:
        """Make the object, from the flattened arguments; the function itself where there is none to be made."""
        if self.plain or self.operation.signature.init is None:
            return self.function
        made = self.function(*self._placed(self.init_names, arguments), **self._named(self.init_names, arguments))
        for name, places in self.loaded.items():
            keep(made, places, arguments[name])
        self._look_at(made)
        return made

    def called(self, made: Any) -> Callable[..., Any]:
        """Return what of an object is called: itself, or the operation's method."""
        signature = self.operation.signature
        own = self.plain or signature.init is None or self.operation.methods
        called: Callable[..., Any] = made if own or not signature.method else getattr(made, signature.method)
        return called

    def invoke(self, built: Callable[..., Any], arguments: Mapping[str, Any]) -> Any:
        """Call it with the flattened arguments, or have the driver use it."""
        if self.driver:
            built = self._looking(built) if self.unseen else built
            return self.driver(built, {**arguments, "layout": self.layout, **self.beside}, self.kind)
        names = {**self.init_names, **self.call_names} if self.plain else self.call_names
        return built(*self._placed(names, arguments), **self._named(names, arguments))

    def _looking(self, make: Callable[..., Any]) -> Callable[..., Any]:
        """The same, which looks at what it makes."""

        @wraps(make, updated=())
        def look(*given: Any, **named: Any) -> Any:
            thing = make(*given, **named)
            self._look_at(thing)
            return thing

        return look

    def _look_at(self, thing: Any) -> None:
        """What the first object lacks of the optional methods is not asked for."""
        if self.unseen:
            self.unseen, needed = False, self.operation.methods or (self.operation.signature.method,)
            self.narrowed = _all_met(self.narrowed.items(), _lacking(self.operation, thing))
            self.lacking = tuple(name for name in needed if not _has(thing, name))

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
    _refuse_asynchronous(operation, function)
    if operation.methods:
        return _bind_methods(operation, function, kind)
    if plain:
        order = {**signature.call, **(signature.init or {})}
        names, filled = matched(function, order, operation, by_name_alone=operation.implied)
        narrowed = _all_met(_narrowed(operation, names, order), _bound_to(operation, names, function))
        others = _strange(operation, names, order, function)
        return Target(operation, function, kind, True, {}, names, filled, narrowed, strange=others)
    if signature.init is None:
        names, filled = matched(function, signature.call, operation)
        narrowed = _all_met(_narrowed(operation, names, signature.call), _bound_to(operation, names, function))
        others = _strange(operation, names, signature.call, function)
        return Target(operation, function, kind, False, {}, names, filled, narrowed, strange=others)
    loaded = places_of(function, operation)
    taken = {name: default for name, default in signature.init.items() if name not in loaded}
    init_names, filled = matched(function, taken, operation)
    refuse_sizes(function, init_names, operation)
    if loaded:
        # A layer's own defaults are those of the models that it is for.
        filled |= {name: default for name, default in taken.items() if default is not REQUIRED and name in init_names}
    method, bound = _method(function, operation), 1
    if method is None and (not inspect.isclass(function) or _makes_others(function, operation)):
        method, bound = _made(function, filled, signature.init), 0
    insisted: Iterable[Narrowing] = ()
    if method is None:
        call_names = unread(signature.call)
    else:
        call_names, more = matched(method, signature.call, operation, skip=bound)
        filled |= more
        insisted = _bound_to(operation, call_names, method)
    left_out = (_narrowed(operation, init_names, signature.init), _narrowed(operation, call_names, signature.call))
    narrowed = _all_met(*left_out, insisted)
    others = {
        **_strange(operation, init_names, signature.init, function),
        **(_strange(operation, call_names, signature.call, method, bound) if method else {}),
    }
    unseen = bool(signature.method) and not inspect.isclass(function)
    return Target(
        operation,
        function,
        kind,
        False,
        init_names,
        call_names,
        filled,
        narrowed,
        loaded=loaded,
        strange=others,
        unseen=unseen,
    )


def _refuse_asynchronous(operation: type[Operation], function: Any) -> None:
    """What has to be awaited gives no result to who calls it."""
    called = {operation.signature.operation: function}
    if inspect.isclass(function):
        names = operation.methods or (operation.signature.method or "__call__",)
        called = {f"{function.__name__}.{name}": inspect.getattr_static(function, name, None) for name in names}
    for name, one in called.items():
        if inspect.iscoroutinefunction(one) or inspect.isasyncgenfunction(one):
            raise AdapterError(f"{name} is asynchronous, and nothing awaits it; put a function around it that does")


def _bind_methods(operation: type[Operation], function: Callable[..., Any], kind: Arrays) -> Target:
    """How to use what a driver uses: its constructor's parameters are matched, its methods need only be there."""
    init = operation.signature.init
    is_class = inspect.isclass(function)
    if is_class and (missing := [name for name in operation.methods if not _may_have(function, name)]):
        raise AdapterError(
            f"{operation.signature.operation}: {function.__name__} has no {', '.join(missing)}; what each is for is in"
            " what inferspec init writes"
        )
    for name, parameters in operation.takes.items() if is_class else ():
        _refuse_other_parameters(function, name, parameters, operation)
    init_names, filled = matched(function, init, operation) if init is not None else ({}, {})
    shown = is_class and all(
        _has(function, name) or not _may_have(function, name)
        for name in (*operation.methods, *operation.optional_methods)
    )
    narrowed = _all_met(_lacking(operation, function) if shown else (), _narrowed(operation, init_names, init or {}))
    others = _strange(operation, init_names, init or {}, function)
    return Target(
        operation,
        function,
        kind,
        False,
        init_names,
        {},
        filled,
        narrowed,
        strange=others,
        # Of a function that is only called, what it gives is no object of the contract.
        unseen=not shown and operation.methods != ("__call__",),
    )


def _refuse_other_parameters(cls: Any, name: str, parameters: Sequence[str], operation: type[Operation]) -> None:
    """A method that cannot be called as the contract does would raise at every call, and seem to refuse what is right."""
    method = inspect.getattr_static(cls, name, None)
    if not inspect.isfunction(method):
        return
    # What wraps another takes what it takes itself, and may give the other more than that.
    own = inspect.signature(method, follow_wrapped=False)
    named = by_name(MethodType(method, cls), parameters)
    try:
        own.bind(None, *(name for name in parameters if name not in named), **dict.fromkeys(named.values()))
    except TypeError as error:
        raise AdapterError(
            f"{operation.signature.operation}: {cls.__name__}.{name}{own} cannot be called with what the contract gives it,"
            f" {name}({', '.join(parameters)}): {error}"
        ) from None


def _lacking(operation: type[Operation], thing: Any) -> Iterator[Narrowing]:
    """What is left of an envelope where a class or an object lacks methods, or parameters of methods."""
    for name, left in operation.optional_methods.items():
        if not (_has(thing, name) if name in operation.only_read else _offers(thing, name)):
            yield left
    for (name, parameter), left in operation.optional_parameters.items():
        if _offers(thing, name) and not takes(getattr(thing, name), parameter):
            yield left


def _offers(thing: Any, method: str) -> bool:
    """Whether a class shows a method, or what an object has of this name can be called."""
    return _has(thing, method) and (inspect.isclass(thing) or callable(getattr(thing, method, None)))


def _has(thing: Any, name: str) -> bool:
    """Whether a class shows a method or property, or an object has it."""
    if name == "__call__":
        return defines(thing, name) if inspect.isclass(thing) else callable(thing)
    if inspect.isclass(thing):
        return hasattr(thing, name)
    if hasattr(type(thing), name):
        return True
    try:
        getattr(thing, name)
    except Exception:  # What hands on to another may raise anything where that lacks it.
        return False
    return True


_LIBRARIES = ("builtins", "flax", "jax", "mlx", "torch")
"""Where classes of a subject have bases whose `__getattr__` finds the parts of a model, or an object's own, and no more."""


_HANDING_ON = ("__getattr__", "__getattribute__")
"""The methods of a class by which its objects may have what it does not show."""

_SETTING_ANY = frozenset({"setattr", "__setattr__", "__dict__", "vars"})
"""What a function uses to set attributes whose names it does not spell."""


def _may_have(cls: Any, method: str) -> bool:
    """Whether objects of a class can have a method: it shows it, or sets it, or hands on what it lacks."""
    own = [base for base in cls.__mro__ if base.__module__.partition(".")[0] not in _LIBRARIES]
    hands_on = method != "__call__" and any(name in vars(base) for base in own for name in _HANDING_ON)
    sets = set().union(*map(_set_by, own))
    return _has(cls, method) or hands_on or method in sets or not sets.isdisjoint(_SETTING_ANY)


def _set_by(cls: Any) -> set[str]:
    """The attributes that the functions of a class set, its `__init__` or what that calls, or a dataclass has as fields; of
    what sets attributes of any name, that it does."""
    own = list(itertools.chain.from_iterable(map(_wrapped, vars(cls).values())))
    done = itertools.chain.from_iterable(map(dis.get_instructions, own))
    used = itertools.chain.from_iterable(function.__code__.co_names for function in own)
    return {
        *vars(cls).get("__dataclass_fields__", ()),
        *(one.argval for one in done if one.opname == "STORE_ATTR"),
        *_SETTING_ANY.intersection(used),
    }


def _wrapped(function: Any) -> list[Any]:
    """A function of Python's, and those that it wraps."""
    found: list[Any] = []
    while inspect.isfunction(function) and function not in found:
        found.append(function)
        function = getattr(function, "__wrapped__", None)
    return found


def offers_methods(thing: Any, operation: type[Operation]) -> bool:
    """Whether an object or class has all that the operation uses: its method, or those that its driver uses, which what
    is no class shows only when it is used."""
    if operation.methods:
        return not inspect.isclass(thing) or all(_may_have(thing, name) for name in operation.methods)
    return not operation.signature.method or hasattr(thing, operation.signature.method)


def _method(cls: Any, operation: type[Operation]) -> Callable[..., Any] | None:
    """The method of a class that the contract calls, or None where it cannot be read."""
    if not inspect.isclass(cls):
        return None
    name = operation.signature.method or "__call__"
    if _makes_others(cls, operation):
        return None
    if not defines(cls, name):
        raise AdapterError(f"objects of {cls.__name__} cannot be called; the contract is {spelt(operation)}")
    method = getattr(cls, name)
    if not inspect.isfunction(method):
        return None
    # torch's modules take anything and hand it on to `forward`.
    kinds = {p.kind for p in list(inspect.signature(method).parameters.values())[1:]}
    forward = getattr(cls, "forward", None)
    return forward if kinds == {inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD} and forward else method


def _makes_others(cls: type, operation: type[Operation]) -> bool:
    """Whether a class is a factory: its own `__new__` may make what the contract calls, which its own objects are not."""
    return cls.__new__ is not object.__new__ and not defines(cls, operation.signature.method or "__call__")


def _made(
    function: Callable[..., Any], filled: Mapping[str, Any], init: Mapping[str, Any]
) -> Callable[..., Any] | None:
    """What a function makes where it needs nothing for it: that alone shows how it is called. None where it cannot be read."""
    if REQUIRED in init.values():
        return None
    try:
        made = function(**{name: init[name] for name in filled})
        return made if callable(made) and parameters_of(made) is not None else None
    except Exception:
        return None


def defines(thing: Any, method: str) -> bool:
    """Whether it is a class whose objects have the method (every class itself has a __call__)."""
    return inspect.isclass(thing) and any(method in vars(base) for base in thing.__mro__)


def _narrowed(operation: type[Operation], names: Mapping[str, str], asked: Mapping[str, Any]) -> list[Narrowing]:
    """What a signature that leaves out parameters cannot be asked for."""
    return [left for name, left in operation.narrows.items() if name in asked and name not in names]


def _strange(
    operation: type[Operation],
    names: Mapping[str, str],
    asked: Mapping[str, Any],
    function: Callable[..., Any],
    skip: int = 0,
) -> dict[str, list[str]]:
    """The contract's parameters without which less is asked, where the function does not take them -> what else it may be given by
    a name, but for its first `skip`."""
    others = strange(function, names, skip)
    return {name: others for name in operation.narrows if others and name in asked and name not in names}


def _all_met(*narrowings: Iterable[Narrowing]) -> dict[str, tuple[Any, ...]]:
    """What several leave of an envelope: of a key that more than one narrows, what they have in common."""
    found: dict[str, tuple[Any, ...]] = {}
    for key, left in itertools.chain(*narrowings):
        found[key] = meet(found.get(key, left), left)
    return found


def _bound_to(operation: type[Operation], names: Mapping[str, str], function: Callable[..., Any]) -> list[Narrowing]:
    """What a signature that insists on a parameter cannot be asked for."""
    own = {p.name: p for p in parameters_of(function) or ()}
    insisted = [
        name for name in operation.required_narrows if (p := own.get(names.get(name, ""))) and p.default is p.empty
    ]
    return [operation.required_narrows[name] for name in insisted]
