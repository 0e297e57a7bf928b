"""Finds what an adapter offers, and how to call it.

An adapter is any module or object with some of the contract's names. It is loaded in the process that hosts the
subject; every problem with it is an `AdapterError` whose one line says what to do.
"""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib.metadata import entry_points
from pathlib import Path
from types import ModuleType
from typing import Any

from inferspec.conformance.arrays import Arrays, arrays
from inferspec.spec import COMPONENTS, contracts
from inferspec.spec.contract import REQUIRED, Contract, Operation

ENTRY_POINTS = "inferspec.subjects"


class AdapterError(Exception):
    """The adapter cannot be used as it is; the message is one line that says why and how to mend it."""


def registered() -> dict[str, str]:
    """The registered subjects: name -> module (entry-point group `inferspec.subjects`)."""
    return {point.name: point.value for point in sorted(entry_points(group=ENTRY_POINTS), key=lambda p: p.name)}


@dataclass
class Target:
    """One offered operation: what to call, and which of the contract's parameters it takes.

    names: contract parameter -> the subject's own name for it, or None where it is passed by position.
    """

    operation: type[Operation]
    function: Callable[..., Any]
    kind: Arrays
    plain: bool
    init_names: Mapping[str, str] = field(default_factory=dict)
    call_names: Mapping[str, str] = field(default_factory=dict)
    narrowed: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)

    def build(self, arguments: Mapping[str, Any]) -> Callable[..., Any]:
        """Make the object that is called, from the flattened arguments."""
        signature = self.operation.signature
        if self.plain or signature.init is None:
            return self.function
        built = self.function(**self._named(self.init_names, arguments))
        return getattr(built, signature.method) if signature.method else built

    def invoke(self, built: Callable[..., Any], arguments: Mapping[str, Any]) -> Any:
        """Call it with the flattened arguments."""
        names = {**self.init_names, **self.call_names} if self.plain else self.call_names
        return built(*self._leading(built, names, arguments), **self._named(names, arguments, leading=False))

    # A target whose parameters could not be read (a builtin) takes required arguments by position.

    def _leading(self, built: Any, names: Mapping[str, str], arguments: Mapping[str, Any]) -> list[Any]:
        return [arguments[name] for name, own in names.items() if own == "" and name in arguments]

    def _named(self, names: Mapping[str, str], arguments: Mapping[str, Any], leading: bool = True) -> dict[str, Any]:
        defaults = self.operation.signature.parameters
        return {
            own: arguments[name]
            for name, own in names.items()
            if own and name in arguments and not (arguments[name] is None and defaults[name] is None)
        }


@dataclass
class Adapter:
    """A loaded adapter: its name, its kinds of arrays, what it offers and what it declares."""

    spec: str
    name: str
    version: str
    origin: str
    targets: dict[str, Target]
    broken: dict[str, str]
    """operation -> why it could not be looked at: its module did not import."""
    envelope: dict[str, dict[str, Any]]
    precision: dict[str, str]
    waivers: str
    kind: Arrays


def load(spec: str, replacements: Mapping[str, str] | None = None, kind_of_arrays: str = "") -> Adapter:
    """Load the adapter `spec`, with `replacements` (component or operation -> spec) put in its place.

    spec: a registered name, a dotted module, `module:object`, or a path to a file or package. kind_of_arrays: a kind
    to use in place of the one that the adapter declares or seems to speak.
    """
    thing, origin = _find(spec)
    kind = _kind(thing, kind_of_arrays)
    targets, broken = _offers(thing, kind)
    adapter = Adapter(
        spec=spec,
        name=str(getattr(thing, "NAME", "") or _name_of(thing, spec)),
        version=str(getattr(thing, "VERSION", "") or getattr(thing, "__version__", "") or "unversioned"),
        origin=origin,
        targets=targets,
        broken=broken,
        envelope=dict(getattr(thing, "ENVELOPE", {})),
        precision=dict(getattr(thing, "PRECISION", {})),
        waivers=_waiver_file(thing, origin),
        kind=kind,
    )
    for part, replacement in (replacements or {}).items():
        _replace(adapter, part, replacement)
    _check_declarations(adapter)
    if not adapter.targets and not adapter.broken:
        names = ", ".join(op.signature.operation for contract in contracts() for op in contract.operations)
        raise AdapterError(f"{spec} ({origin}) offers none of the contract's names; define any of: {names}")
    return adapter


def _find(spec: str) -> tuple[Any, str]:
    module_name, _, attribute = spec.partition(":")
    known = registered()
    if spec in known:
        _refuse_shadow(spec, known[spec])
        module_name, _, attribute = known[spec].partition(":")
    module = _import(module_name, spec)
    origin = str(getattr(module, "__file__", "") or module_name)
    if not attribute:
        return getattr(module, "ADAPTER", module), origin
    if not hasattr(module, attribute):
        raise AdapterError(f"{spec}: module {module_name} has no {attribute!r}")
    return getattr(module, attribute), origin


def _import(name: str, spec: str) -> ModuleType:
    path = Path(name)
    try:
        if path.suffix == ".py" or "/" in name:
            path = path.resolve()
            if not path.exists():
                raise AdapterError(f"{spec}: there is no file or package {path.name} in {path.parent}")
            sys.path.insert(0, str(path.parent))
            return importlib.import_module(path.stem)
        return importlib.import_module(name)
    except AdapterError:
        raise
    except BaseException as error:
        if isinstance(error, ModuleNotFoundError) and error.name == name.split(".")[0]:
            known = ", ".join(registered())
            raise AdapterError(
                f"{spec}: no module {name!r} can be imported from here; give a dotted module, a path such as"
                f" ./kernels.py, or one of: {known}"
            ) from error
        raise AdapterError(f"{spec}: importing it failed with {type(error).__name__}: {error}") from error


def _refuse_shadow(name: str, registered_module: str) -> None:
    """A folder or file of the same name here could be meant: never certify the wrong code."""
    spec = importlib.util.find_spec(registered_module.partition(":")[0])
    theirs = Path(spec.origin).resolve() if spec and spec.origin else None
    for local in (Path(f"{name}.py"), Path(name) / "__init__.py"):
        if local.exists() and local.resolve() != theirs:
            raise AdapterError(
                f"{name} is a registered subject and also {local} here; say ./{local.parent if local.name == '__init__.py' else local}"
                f" or {registered_module}"
            )


def _name_of(thing: Any, spec: str) -> str:
    return thing.__name__ if isinstance(thing, ModuleType) else spec


def _waiver_file(thing: Any, origin: str) -> str:
    name = getattr(thing, "WAIVERS", "")
    return str(Path(origin).parent / name) if name else ""


def _kind(thing: Any, asked: str = "") -> Arrays:
    declared = asked or getattr(thing, "ARRAYS", "") or _guessed_kind(thing)
    try:
        return arrays(declared)
    except (ValueError, ImportError) as error:
        raise AdapterError(f"arrays of kind {declared!r}: {error}") from error


def _guessed_kind(thing: Any) -> str:
    """The kind of the libraries that the module imports; NumPy only where there is no other."""
    module = thing if isinstance(thing, ModuleType) else sys.modules.get(getattr(thing, "__module__", ""), thing)
    modules = [module]
    if hasattr(module, "__path__"):
        modules += [_submodule(module, component)[0] for component in COMPONENTS]
    imported = {
        str(getattr(value, "__module__", "") or "") if not isinstance(value, ModuleType) else value.__name__
        for one in modules
        for value in vars(one).values()
    } if all(hasattr(one, "__dict__") for one in modules) else set()
    roots = {name.partition(".")[0] for name in imported}
    return next((kind for kind in ("mlx", "torch", "jax", "numpy") if kind in roots), "numpy")


def _submodule(package: ModuleType, component: str) -> tuple[Any, str]:
    """The package's module of the component's name, loaded by itself: (module or empty, error)."""
    name = f"{package.__name__}.{component}"
    try:
        if importlib.util.find_spec(name) is None:
            return ModuleType(name), ""
        return importlib.import_module(name), ""
    except BaseException as error:
        return ModuleType(name), f"{name} did not import: {type(error).__name__}: {error}"


def _offers(thing: Any, kind: Arrays) -> tuple[dict[str, Target], dict[str, str]]:
    targets: dict[str, Target] = {}
    broken: dict[str, str] = {}
    for contract in contracts():
        place, error = (thing, "")
        if isinstance(thing, ModuleType) and hasattr(thing, "__path__"):
            place, error = _submodule(thing, contract.component)
        for operation in contract.operations:
            name = operation.signature.operation
            target = _target(operation, place, kind) or (_target(operation, thing, kind) if place is not thing else None)
            if target:
                targets[name] = target
            elif error:
                broken[name] = error
    return targets, broken


def _target(operation: type[Operation], place: Any, kind: Arrays) -> Target | None:
    signature = operation.signature
    offered = getattr(place, signature.name, None)
    if callable(offered) and not isinstance(offered, ModuleType):
        if not signature.method:
            return _bound(operation, offered, kind, plain=False)
        if hasattr(offered, signature.method):
            return _bound(operation, offered, kind, plain=False)
    plain = getattr(place, operation.plain, None) if operation.plain else None
    if callable(plain) and not isinstance(plain, ModuleType):
        return _bound(operation, plain, kind, plain=True)
    return None


def _bound(operation: type[Operation], function: Callable[..., Any], kind: Arrays, plain: bool) -> Target:
    signature = operation.signature
    where = f"{signature.operation}"
    if plain:
        order = {**signature.call, **(signature.init or {})}
        required = [n for n, default in order.items() if default is REQUIRED and n not in operation.implied]
        names = _matched(function, order, operation, where, required)
        return Target(operation, function, kind, True, {}, names, _narrowed(operation, names, order))
    if signature.init is None:
        required = [n for n, default in signature.call.items() if default is REQUIRED]
        names = _matched(function, signature.call, operation, where, required)
        return Target(operation, function, kind, False, {}, names, _narrowed(operation, names, signature.call))
    required = [n for n, default in signature.init.items() if default is REQUIRED and n not in operation.implied]
    init_names = _matched(function, signature.init, operation, where, required)
    method = getattr(function, signature.method or "__call__", None) if inspect.isclass(function) else None
    required = [n for n, default in signature.call.items() if default is REQUIRED]
    call_names = (
        _matched(method, signature.call, operation, where, required, skip=1)
        if method is not None and inspect.isfunction(method)
        else {name: ("" if default is REQUIRED else name) for name, default in signature.call.items()}
    )
    narrowed = {**_narrowed(operation, init_names, signature.init), **_narrowed(operation, call_names, signature.call)}
    return Target(operation, function, kind, False, init_names, call_names, narrowed)


def _matched(
    function: Callable[..., Any],
    parameters: Mapping[str, Any],
    operation: type[Operation],
    where: str,
    required: list[str],
    skip: int = 0,
) -> dict[str, str]:
    """Match the contract's parameters with the function's own: by name, the rest of the required ones in order.

    Returns contract name -> own name ("" for by position, where the signature cannot be read).
    """
    try:
        own = list(inspect.signature(function).parameters.values())[skip:]
    except (ValueError, TypeError):
        return {name: ("" if default is REQUIRED else name) for name, default in parameters.items()}
    named = {p.name for p in own if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)}
    anything = any(p.kind is p.VAR_KEYWORD for p in own)
    positional = any(p.kind is p.VAR_POSITIONAL for p in own)
    names = {name: name for name in parameters if name in named or anything}
    rest = [p for p in own if p.name not in names and p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    for name in (n for n in parameters if n not in names and parameters[n] is REQUIRED):
        if rest and (name in required or rest[0].default is rest[0].empty):
            parameter = rest.pop(0)
            names[name] = "" if parameter.kind is parameter.POSITIONAL_ONLY else parameter.name
        elif positional and name in required:
            names[name] = ""
    missing = [name for name in required if name not in names]
    unfilled = [p.name for p in rest if p.default is p.empty]
    if missing or unfilled:
        problem = f"does not take {', '.join(missing)}" if missing else f"needs {', '.join(unfilled)}, which no contract gives"
        raise AdapterError(f"{where}{inspect.signature(function)} {problem}; the contract is {_spelt(operation)}")
    return {name: names[name] for name in parameters if name in names}


def _spelt(operation: type[Operation]) -> str:
    signature = operation.signature

    def spell(parameters: Mapping[str, Any]) -> str:
        return ", ".join(n if d is REQUIRED else f"{n}={d!r}" for n, d in parameters.items())

    init = f"({spell(signature.init)})" if signature.init is not None else ""
    method = f".{signature.method}" if signature.method else ""
    return f"{signature.name}{init}{method}({spell(signature.call)})"


def _narrowed(operation: type[Operation], names: Mapping[str, str], asked: Mapping[str, Any]) -> dict[str, tuple[Any, ...]]:
    """What a signature that leaves out a parameter cannot be asked for."""
    return {key: left for name, (key, left) in operation.narrows.items() if name in asked and name not in names}


def _replace(adapter: Adapter, part: str, spec: str) -> None:
    operations = [
        (contract, op) for contract in contracts() for op in contract.operations
        if part in (contract.component, op.signature.operation)
    ]
    if not operations:
        raise AdapterError(f"--with {part}={spec}: {part!r} is no component or name of the contract")
    thing, _ = _find(spec)
    kind = _kind(thing)
    found: dict[str, Target] = {}
    if not isinstance(thing, ModuleType) and callable(thing) and not _offers(thing, kind)[0]:
        operation = operations[0][1]
        found[operation.signature.operation] = _bound(operation, thing, kind, plain=False)
    else:
        for contract, operation in operations:
            offered, error = _offers(thing, kind)
            name = operation.signature.operation
            if name in offered:
                found[name] = offered[name]
    if not found:
        raise AdapterError(f"--with {part}={spec}: it offers none of {', '.join(op.signature.operation for _, op in operations)}")
    for contract, operation in operations:
        name = operation.signature.operation
        adapter.targets.pop(name, None)
        adapter.broken.pop(name, None)
        if name in found:
            adapter.targets[name] = found[name]
    adapter.name += f" with {part}={spec}"
    declared = getattr(thing, "ENVELOPE", {})
    for contract in {id(c): c for c, _ in operations}.values():
        adapter.envelope.pop(contract.component, None)
        adapter.envelope.update({k: v for k, v in declared.items() if k == contract.component})


def _check_declarations(adapter: Adapter) -> None:
    by_name: dict[str, Contract] = {contract.component: contract for contract in contracts()}
    for component, declared in adapter.envelope.items():
        if component not in by_name:
            raise AdapterError(f"ENVELOPE names {component!r}; the components are {', '.join(by_name)}")
        for key, values in declared.items():
            full = by_name[component].envelope
            if key not in full:
                raise AdapterError(f"ENVELOPE[{component!r}] has {key!r}; it takes {', '.join(full)}")
            _check_envelope_value(component, key, values, full[key])
    for component, precision in adapter.precision.items():
        if component not in by_name:
            raise AdapterError(f"PRECISION names {component!r}; the components are {', '.join(by_name)}")
        if precision not in ("float32", "native"):
            raise AdapterError(f"PRECISION[{component!r}] is {precision!r}; it takes 'float32' or 'native'")


def _check_envelope_value(component: str, key: str, values: Any, full: tuple[Any, ...] | int) -> None:
    where = f"ENVELOPE[{component!r}][{key!r}]"
    if isinstance(full, int):
        if not isinstance(values, int) or values < 1:
            raise AdapterError(f"{where} is {values!r}; it takes the largest value, a positive int")
    elif not isinstance(values, list | tuple | set) or not values:
        raise AdapterError(f"{where} is {values!r}; it takes a list of any of {list(full)}")
    elif unknown := [v for v in values if (tuple(v) if isinstance(v, list) else v) not in full]:
        raise AdapterError(f"{where} has {unknown[0]!r}; it takes any of {list(full)}")
