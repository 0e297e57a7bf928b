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
    thing, module = _find(spec)
    origin = str(getattr(module, "__file__", "") or module.__name__)
    kind = _kind(thing, module, kind_of_arrays)
    targets, broken = _offers(thing, kind)
    adapter = Adapter(
        spec=spec,
        name=str(getattr(thing, "NAME", "") or _name_of(thing, spec)),
        version=str(getattr(thing, "VERSION", "") or getattr(thing, "__version__", "") or "unversioned"),
        origin=origin,
        targets=targets,
        broken=broken,
        envelope=_declared(thing, "ENVELOPE"),
        precision=_declared(thing, "PRECISION"),
        waivers=_waiver_file(thing, origin),
        kind=kind,
    )
    for part, replacement in (replacements or {}).items():
        _replace(adapter, part, replacement)
    _check_declarations(adapter)
    _narrow_plain(adapter)
    if not adapter.targets and not adapter.broken:
        names = ", ".join(op.signature.operation for contract in contracts() for op in contract.operations)
        raise AdapterError(f"{spec} ({origin}) offers none of the contract's names; define any of: {names}")
    return adapter


def _declared(thing: Any, name: str) -> dict[str, Any]:
    value = getattr(thing, name, {})
    if not isinstance(value, Mapping):
        raise AdapterError(f"{name} is {value!r}; it takes a dict with components as keys")
    return dict(value)


def _find(spec: str) -> tuple[Any, ModuleType]:
    """The adapter and the module that holds it."""
    module_name, _, attribute = spec.partition(":")
    known = registered()
    if spec in known:
        _refuse_shadow(spec, known[spec])
        module_name, _, attribute = known[spec].partition(":")
    module = _import(module_name, spec)
    if not attribute:
        return getattr(module, "ADAPTER", module), module
    if not hasattr(module, attribute):
        raise AdapterError(f"{spec}: module {module_name} has no {attribute!r}")
    return getattr(module, attribute), module


def _import(name: str, spec: str) -> ModuleType:
    path = Path(name)
    try:
        if path.suffix == ".py" or "/" in name:
            return _import_path(path.resolve(), spec)
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


def _import_path(path: Path, spec: str) -> ModuleType:
    if not path.exists():
        raise AdapterError(f"{spec}: there is no file or package {path.name} in {path.parent}")
    sys.path.insert(0, str(path.parent))
    module = importlib.import_module(path.stem)
    found = getattr(module, "__file__", None) or next(iter(getattr(module, "__path__", ())), None)
    if found is None or Path(found).resolve() not in (path, path / "__init__.py"):
        # A module of that name was loaded before (random, queue …): never certify the wrong code.
        raise AdapterError(
            f"{spec}: {path.stem!r} is also the name of a module of {found or 'Python itself'}; rename {path.name}"
        )
    return module


def _refuse_shadow(name: str, registered_module: str) -> None:
    """A folder or file of the same name here could be meant: never certify the wrong code."""
    spec = importlib.util.find_spec(registered_module.partition(":")[0])
    theirs = Path(spec.origin).resolve() if spec and spec.origin else Path()
    for local in (Path(f"{name}.py"), Path(name)):
        is_code = local.is_file() or any(local.glob("*.py"))
        if is_code and local.resolve() not in (theirs, theirs.parent):
            raise AdapterError(
                f"{name} is a registered subject and also {local} here; say ./{local} or {registered_module}"
            )


def _name_of(thing: Any, spec: str) -> str:
    return thing.__name__ if isinstance(thing, ModuleType) else spec


def _waiver_file(thing: Any, origin: str) -> str:
    name = getattr(thing, "WAIVERS", "")
    return str(Path(origin).parent / name) if name else ""


def _kind(thing: Any, module: ModuleType, asked: str = "") -> Arrays:
    declared = asked or getattr(thing, "ARRAYS", "") or _guessed_kind(thing, module)
    try:
        return arrays(declared)
    except (ValueError, TypeError, ImportError) as error:
        raise AdapterError(f"arrays of kind {declared!r}: {error}") from error


def _guessed_kind(thing: Any, module: ModuleType) -> str:
    """The kind of the libraries that the adapter's modules import; NumPy only where there is no other."""
    modules = [module, sys.modules.get(str(getattr(thing, "__module__", "")), module)]
    if isinstance(thing, ModuleType):
        modules = [thing]
        if hasattr(thing, "__path__"):
            modules += [_submodule(thing, component)[0] for component in COMPONENTS]
    imported = {
        value.__name__ if isinstance(value, ModuleType) else str(getattr(value, "__module__", ""))
        for one in modules
        for value in vars(one).values()
    }
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
            target = _target(operation, place, kind) or (
                _target(operation, thing, kind) if place is not thing else None
            )
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
    if plain:
        order = {**signature.call, **(signature.init or {})}
        names = _matched(function, order, operation, by_name_alone=operation.implied)
        return Target(operation, function, kind, True, {}, names, _narrowed(operation, names, order))
    if signature.init is None:
        names = _matched(function, signature.call, operation)
        return Target(operation, function, kind, False, {}, names, _narrowed(operation, names, signature.call))
    init_names = _matched(function, signature.init, operation)
    method = _method(function, operation)
    call_names = _unread(signature.call) if method is None else _matched(method, signature.call, operation, skip=1)
    narrowed = {**_narrowed(operation, init_names, signature.init), **_narrowed(operation, call_names, signature.call)}
    return Target(operation, function, kind, False, init_names, call_names, narrowed)


def _method(cls: Any, operation: type[Operation]) -> Callable[..., Any] | None:
    """The method of a class that the contract calls, or None where it cannot be read."""
    if not inspect.isclass(cls):
        return None
    name = operation.signature.method or "__call__"
    if not _defines(cls, name):
        raise AdapterError(f"objects of {cls.__name__} cannot be called; the contract is {_spelt(operation)}")
    method = getattr(cls, name)
    if not inspect.isfunction(method):
        return None
    # torch's modules take anything and hand it on to `forward`.
    kinds = {p.kind for p in list(inspect.signature(method).parameters.values())[1:]}
    forward = getattr(cls, "forward", None)
    return forward if kinds == {inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD} and forward else method


def _defines(thing: Any, method: str) -> bool:
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
) -> dict[str, str]:
    """Match the contract's parameters with the function's own: by name, the rest of the required ones in order.

    Parameters that other arguments imply are left out where the function does not take them; those of
    `by_name_alone` also where it takes something of another name. Returns contract name -> own name ("" for by
    position), in the function's own order.
    """
    try:
        own = list(inspect.signature(function).parameters.values())[skip:]
    except (ValueError, TypeError):
        return _unread(parameters)
    takes = {p.kind for p in own}
    own = [p for p in own if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]
    found = {p.name: p for p in own if p.name in parameters}
    free = [p for p in own if p.name not in found and p.kind is not p.KEYWORD_ONLY]
    lacking = [name for name, default in parameters.items() if default is REQUIRED and name not in found]
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
    return names


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


def _replace(adapter: Adapter, part: str, spec: str) -> None:
    operations = [
        (contract, op)
        for contract in contracts()
        for op in contract.operations
        if part in (contract.component, op.signature.name, op.signature.operation)
    ]
    if not operations:
        raise AdapterError(f"--with {part}={spec}: {part!r} is no component or name of the contract")
    thing, module = _find(spec)
    kind = _kind(thing, module)
    offered, broken = _offers(thing, kind)
    if not isinstance(thing, ModuleType) and callable(thing) and (not offered or _defines(thing, "__call__")):
        offered = _standing_in(
            thing, [op for _, op in operations if op.signature.name == operations[0][1].signature.name], kind
        )
    names = [operation.signature.operation for _, operation in operations]
    if not any(name in offered for name in names):
        why = next((f": {broken[name]}" for name in names if name in broken), "")
        raise AdapterError(f"--with {part}={spec}: it offers none of {', '.join(names)}{why}")
    for name in names:
        adapter.targets.pop(name, None)
        adapter.broken.pop(name, None)
        if name in offered:
            adapter.targets[name] = offered[name]
        elif name in broken:
            adapter.broken[name] = broken[name]
    adapter.name += f" with {part}={spec}"
    for component in {contract.component for contract, _ in operations}:
        _redeclare(adapter, component, _declared(thing, "ENVELOPE"), _declared(thing, "PRECISION"), part == component)


def _standing_in(thing: Any, operations: list[type[Operation]], kind: Arrays) -> dict[str, Target]:
    """A class or function of any name in the place of the operations of one name."""
    is_class = inspect.isclass(thing)
    return {
        op.signature.operation: _bound(op, thing, kind, plain=bool(op.plain) and not is_class)
        for op in operations
        if not op.signature.method or hasattr(thing, op.signature.method)
    }


def _redeclare(
    adapter: Adapter, component: str, envelope: Mapping[str, Any], precision: Mapping[str, str], whole: bool
) -> None:
    """What a replacement declares goes in the place of the old; a part of a component keeps what it does not mention."""
    if whole:
        adapter.envelope.pop(component, None)
        adapter.precision.pop(component, None)
    if component in envelope:
        adapter.envelope[component] = {**adapter.envelope.get(component, {}), **envelope[component]}
    if component in precision:
        adapter.precision[component] = precision[component]


def _narrow_plain(adapter: Adapter) -> None:
    """A plain function is asked for what such a function usually does, unless the adapter says that it does more."""
    for contract in contracts():
        declared = adapter.envelope.get(contract.component, {})
        for target in (adapter.targets.get(op.signature.operation) for op in contract.operations):
            if target and target.plain:
                usual = {key: kept for key, kept in target.operation.plain_narrows.items() if key not in declared}
                target.narrowed = {**usual, **target.narrowed}


def _check_declarations(adapter: Adapter) -> None:
    by_name: dict[str, Contract] = {contract.component: contract for contract in contracts()}
    for component, declared in adapter.envelope.items():
        if component not in by_name:
            raise AdapterError(f"ENVELOPE names {component!r}; the components are {', '.join(by_name)}")
        if not isinstance(declared, Mapping):
            raise AdapterError(
                f"ENVELOPE[{component!r}] is {declared!r}; it takes a dict with any of {', '.join(by_name[component].envelope)}"
            )
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
