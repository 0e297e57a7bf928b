"""How a subject is used where one call is not enough: a story of a stateful object, a model fed chunk by chunk.

A driver runs beside the subject, on the subject's own arrays, and reports what it saw; it judges nothing. One module
per component, with `DRIVERS`: operation -> driver.
"""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import inspect
import types
import weakref
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any

from inferspec.conformance.bridge.arrays import Arrays
from inferspec.conformance.bridge.signatures import SYNONYMS, signature_of
from inferspec.spec.contract import Unreadable

Driver = Callable[[Any, Mapping[str, Any], Arrays], Any]
"""Takes the built object (or what the subject offers, where the contract builds nothing), the arguments in the subject's
own arrays (and `layout`, the adapter's LAYOUT of the component or ""), and the kind of arrays."""


def driver_of(component: str, operation: str) -> Driver | None:
    """The driver of an operation, if it has one."""
    name = f"{__name__}.{component}"
    if importlib.util.find_spec(name) is None:
        return None
    return importlib.import_module(name).DRIVERS.get(operation)


Parameters = Mapping[str, inspect.Parameter] | None

_PARAMETERS: weakref.WeakKeyDictionary[Any, dict[tuple[str, ...], Parameters]] = weakref.WeakKeyDictionary()
"""function or class -> what it takes once arguments of these names are given"""


def _parameters(function: Callable[..., Any]) -> Parameters:
    """What can be given, None where that cannot be read. Of functions, methods and classes it is read once: generators are
    begun, and steps taken, by the thousand."""
    plain, given = function, tuple[str, ...]()
    if isinstance(function, partial) and not function.args:
        plain, given = function.func, tuple(function.keywords)
    if isinstance(plain, types.MethodType):
        # No argument has an empty name.
        plain, given = plain.__func__, ("", *given)
    if not isinstance(plain, types.FunctionType) and type(plain) is not type:
        return _read(function)
    known = _PARAMETERS.setdefault(plain, {})
    if given not in known:
        known[given] = _read(function)
    return known[given]


def _read(function: Callable[..., Any]) -> Parameters:
    try:
        return signature_of(function).parameters
    except (ValueError, TypeError):
        return None


def takes(make: Callable[..., Any], option: str) -> bool:
    """Whether what makes an object can be given an option by name; what cannot be read may."""
    own = _parameters(make)
    return own is None or option in own or any(p.kind is p.VAR_KEYWORD for p in own.values())


def spelling(make: Callable[..., Any], option: str) -> str | None:
    """The name by which what makes an object can be given an option: the contract's, or another of the field's; None for none."""
    own = _parameters(make) or {}
    spelt = next((name for name in (option, *SYNONYMS.get(option, ())) if name in own), option)
    return spelt if takes(make, spelt) else None


def taken(make: Callable[..., Any], **options: Any) -> dict[str, Any]:
    """Those of the options that what makes an object can be given, by its own names of them."""
    own = {name: spelling(make, name) for name in options}
    return {spelt: options[name] for name, spelt in own.items() if spelt is not None}


def insisted(function: Callable[..., Any], **defaults: Any) -> dict[str, Any]:
    """The contract's defaults of options on which a function insists."""
    own = _parameters(function) or {}
    return {
        name: value for name, value in defaults.items() if name in own and own[name].default is inspect.Parameter.empty
    }


def spelt(function: Callable[..., Any], **options: Any) -> dict[str, Any]:
    """The options by the function's own names of them, which may be others of the field's."""
    return {spelling(function, name) or name: value for name, value in options.items()}


def by_name(function: Callable[..., Any], names: Sequence[str]) -> dict[str, str]:
    """Those of the contract's parameters, in its order, that go by name -> the function's own name of each: what it takes by name
    alone, and all where it has them in another order; none of what cannot be read."""
    own = _parameters(function) or {}
    if {p.kind for p in own.values()} == {inspect.Parameter.VAR_KEYWORD}:
        return {name: name for name in names}
    spelt_as = {name: spelling(function, name) or name for name in names}
    alone = {
        name: one for name, one in spelt_as.items() if one in own and own[one].kind is inspect.Parameter.KEYWORD_ONLY
    }
    reordered = _reordered([one for name, one in spelt_as.items() if name not in alone], own)
    return {name: reordered[one] for name, one in spelt_as.items() if one in reordered} | alone


def _reordered(names: Sequence[str], own: Mapping[str, inspect.Parameter]) -> dict[str, str]:
    """Where a function has one of the names in another place than the contract: all of them, those that it has by its own names;
    the others take the places that are left, in order. None where it would lack what it insists on: the name means something else."""
    places = [p.name for p in own.values() if p.kind is p.POSITIONAL_OR_KEYWORD]
    if any(p.kind in (p.POSITIONAL_ONLY, p.VAR_POSITIONAL) for p in own.values()) or len(places) < len(names):
        return {}
    if all(name not in places or places.index(name) == place for place, name in enumerate(names)):
        return {}
    left = iter([place for place in places if place not in names])
    found = {name: name if name in places else next(left) for name in names}
    insisted_on = {place for place in places if own[place].default is inspect.Parameter.empty}
    return found if insisted_on <= set(found.values()) else {}


def handed(function: Callable[..., Any], /, **arguments: Any) -> Any:
    """Call it with the contract's arguments in their order: by position, and by name what goes by name."""
    named = by_name(function, tuple(arguments))
    by_position = [value for name, value in arguments.items() if name not in named]
    return function(*by_position, **{own: arguments[name] for name, own in named.items()})


def made(make: Callable[..., Any], options: Mapping[str, Any], /, **arguments: Any) -> Any:
    """Call it with the contract's arguments, and options by name; those that have no name there stand behind the others."""
    placed = {name: value for name, value in options.items() if _without_name(make, name)}
    named = {name: value for name, value in options.items() if name not in placed}
    return handed(partial(make, **named) if named else make, **arguments, **placed)


def _without_name(function: Callable[..., Any], name: str) -> bool:
    own = _parameters(function) or {}
    return name in own and own[name].kind is inspect.Parameter.POSITIONAL_ONLY


def handing(function: Callable[..., Any], *names: str) -> Callable[..., Any]:
    """What calls it with the contract's arguments, in their order, and options by name: the function itself where all but those
    go by position."""
    if not by_name(function, names):
        return function
    return lambda *given, **options: handed(partial(function, **options), **dict(zip(names, given, strict=True)))


class Handed:
    """An object whose methods are called as the contract spells them. takes: method -> its parameters."""

    def __init__(self, own: Any, takes: Mapping[str, Sequence[str]]) -> None:
        self._own, self._takes = own, takes
        self._last: dict[str, tuple[Any, Callable[..., Any]]] = {}

    def __getattr__(self, name: str) -> Any:
        return self.handed(name)

    def handed(self, name: str) -> Any:
        """What the object has of that name; a method of the contract's as the contract calls it."""
        method = getattr(self._own, name)
        if name not in self._takes or not callable(method):
            return method
        # An object may put another method in the place of one.
        if name not in self._last or self._last[name][0] != method:
            self._last[name] = method, handing(method, *self._takes[name])
        return self._last[name][1]


Names = Mapping[str, Sequence[str]]
"""method -> what to call the things that it returns, in order."""


def follow(thing: Any, steps: Sequence[tuple[str, Mapping[str, Any]]], names: Names) -> dict[str, Any]:
    """Do one step after the other to an object; return what came back, by step and name: ``3 keys``, ``4 refused``."""
    seen: dict[str, Any] = {}
    for number, (method, arguments) in enumerate(steps, 1):
        seen |= step(number, partial(_done, thing, method, arguments), names[method])
    return seen


def parts(returned: Any, *names: str) -> Sequence[Any]:
    """Several things that came back together: those of a dict or of an object by their names, others in their order. Unreadable where
    there are not so many."""
    if isinstance(returned, Mapping):
        return [returned[name] for name in names]
    if all(hasattr(returned, name) for name in names):
        return [getattr(returned, name) for name in names]
    found = [] if returned is None else list(returned)
    if len(found) < len(names):
        raise Unreadable(f"a {type(returned).__name__} came back, which is not {', '.join(names)}")
    return found


def spoil(arrays: Iterable[Any]) -> None:
    """The caller has another use for arrays that it gave."""
    for x in arrays:
        with contextlib.suppress(TypeError):  # arrays that cannot be changed are safe from their caller
            x[...] = float("nan")


def step(number: int, do: Callable[[], Any], names: Sequence[str]) -> dict[str, Any]:
    """Do one step of a story; an error is a refusal (and says why), after which the story goes on."""
    try:
        returned = do()
    except Exception as error:
        return {f"{number} refused": 1, f"{number} why": f"{type(error).__name__}: {error}"}
    values = returned if len(names) > 1 else (returned,)
    return {f"{number} {name}": value for name, value in zip(names, values, strict=False)}


def _done(thing: Any, method: str, arguments: Mapping[str, Any]) -> Any:
    attribute = getattr(thing, method)
    return attribute(*arguments.values()) if callable(attribute) else attribute
