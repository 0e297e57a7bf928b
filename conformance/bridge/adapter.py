"""Finds what an adapter offers, and how to call it.

An adapter is any module or object with some of the contract's names. It is loaded in the process that hosts the
subject; every problem with it is an `AdapterError` whose one line says what to do.
"""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from types import BuiltinFunctionType, FunctionType, ModuleType
from typing import Any

from inferspec.conformance.bridge.arrays import Arrays, arrays
from inferspec.conformance.bridge.binding import Target, bind, defines, offers_methods
from inferspec.conformance.bridge.declarations import Declaring, check, mapping_of, text_of
from inferspec.conformance.bridge.did_you_mean import meant, nearest
from inferspec.conformance.bridge.drivers import driver_of, spelling
from inferspec.conformance.bridge.layouts import lay_out
from inferspec.conformance.bridge.locate import find
from inferspec.conformance.bridge.signatures import AdapterError, parameters_of, spellings
from inferspec.conformance.envelope import declared_elsewhere, meet
from inferspec.spec import COMPONENTS, contracts
from inferspec.spec.contract import Beside, Contract, Operation

ALIKE = 0.75
"""How like a name must be to one of the contract for it to be named, by `difflib`."""


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
    layout: dict[str, str]
    """component -> the order of its arrays' axes (``{"kv_cache": "BLHD"}``), where it is not the contract's."""
    waivers: str
    kind: Arrays
    kernel_path: Callable[[], str] = str
    """What ran its kernels, as it says itself; empty where it says nothing."""
    absent: dict[str, str] = field(default_factory=dict)
    """operation -> why it is not claimed, where more is known than that there is nothing of its name."""
    edition: str = ""
    """Of its layout's text, which it was written to."""


def load(
    spec: str,
    replacements: Mapping[str, str] | None = None,
    kind_of_arrays: str = "",
    layout: str = "",
    components: Collection[str] = (),
) -> Adapter:
    """Load the adapter `spec`, with `replacements` (component or operation -> spec) put in its place.

    spec: a registered name, a dotted module, `module:object`, or a path to a file or package. kind_of_arrays: a kind
    to use in place of the one that the adapter declares or seems to speak. layout: whose names a package has that is
    no adapter (`layouts`). components: those that are asked for, all if empty; of others what cannot be bound is absent.
    """
    adapter = _laid(spec, kind_of_arrays, layout) if layout else _adapter(spec, kind_of_arrays, components)
    for part, replacement in (replacements or {}).items():
        _replace(adapter, part, replacement)
    check(adapter.envelope, adapter.layout, adapter.precision, adapter.targets)
    _narrow_to_usual(adapter)
    _set_drivers(adapter)
    if not adapter.targets and not adapter.broken:
        names = ", ".join(op.signature.operation for contract in contracts() for op in contract.operations)
        hint = "" if layout else _meant_by(spec)
        raise AdapterError(
            f"{spec} ({adapter.origin}) offers none of the contract's names; define any of: {names}{hint}"
        )
    return adapter


def _meant_by(spec: str) -> str:
    """The end of a sentence that refuses a subject without a name of the contract: what it may have meant."""
    thing, _ = find(spec)
    if callable(thing):
        return f"; a function or class alone goes in the place of another subject's: --with NAME={spec}"
    known = [op.signature.name for contract in contracts() for op in contract.operations]
    for name in (name for name in dir(thing) if not name.startswith("_")):
        if near := nearest(name, known, 1, ALIKE):
            return f"; did you mean {near[0]} by {name}?"
    return ""


def _adapter(spec: str, kind_of_arrays: str, components: Collection[str]) -> Adapter:
    thing, module = find(spec)
    declaring = Declaring(thing, module)
    if reason := text_of(declaring, "UNAVAILABLE", "why it cannot run here, in a text, or an empty one"):
        raise AdapterError(f"{spec} cannot run here: {reason}")
    origin = str(getattr(module, "__file__", "") or module.__name__)
    kind = _kind(thing, module, kind_of_arrays)
    text_of(declaring, "KERNEL_PATH", "what ran its kernels, in a few words, such as cpu avx512")
    targets, broken, absent = _offers(thing, kind, components)
    return Adapter(
        spec=spec,
        name=str(getattr(declaring, "NAME", "") or _name_of(thing, spec)),
        version=str(getattr(declaring, "VERSION", "") or getattr(declaring, "__version__", "") or "unversioned"),
        origin=origin,
        targets=targets,
        broken=broken,
        envelope=mapping_of(declaring, "ENVELOPE"),
        precision=mapping_of(declaring, "PRECISION"),
        layout=mapping_of(declaring, "LAYOUT"),
        absent=absent,
        waivers=_waiver_file(declaring, origin),
        kind=kind,
        kernel_path=lambda: str(getattr(declaring, "KERNEL_PATH", "")),
    )


def _laid(spec: str, kind_of_arrays: str, layout: str) -> Adapter:
    """A package that is written to a convention (`layouts`)."""
    path = Path(spec)
    if path.suffix == ".py" or "/" in spec:
        path = path.resolve()
        if not path.exists():
            raise AdapterError(f"{spec}: there is no file or package {path.name} in {path.parent}")
        sys.path.insert(0, str(path.parent))
    try:
        laid, kind = lay_out(path.stem if path.is_absolute() else spec, layout), arrays(kind_of_arrays or "mlx")
    except (ValueError, ImportError) as error:
        raise AdapterError(str(error)) from error
    if path.is_absolute() and Path(laid.origin).resolve() not in (path, path / "__init__.py"):
        raise AdapterError(f"{spec}: {path.stem!r} is also the name of a module of {laid.origin}; rename {path.name}")
    adapter = Adapter(
        spec=spec,
        name=f"{path.stem} (layout {layout})",
        version="unversioned",
        origin=laid.origin,
        targets={},
        broken=dict(laid.broken),
        envelope={},
        precision=dict(laid.precision),
        layout={},
        waivers="",
        kind=kind,
        absent=dict(laid.absent),
        edition=laid.edition,
    )
    for contract in contracts():
        for operation in contract.operations:
            name = operation.signature.operation
            if offer := laid.offers.get(name):
                try:
                    target = bind(operation, offer.function, kind, plain=False)
                except AdapterError as error:
                    adapter.broken[name] = str(error)
                    continue
                both = {key: meet(target.narrowed.get(key, kept), kept) for key, kept in offer.narrows.items()}
                target.narrowed = {**target.narrowed, **both}
                target.unasked = dict(offer.unasked)
                adapter.targets[name] = target
                adapter.layout |= {contract.component: offer.layout} if offer.layout else {}
    return adapter


def _name_of(thing: Any, spec: str) -> str:
    return thing.__name__ if isinstance(thing, ModuleType) else spec


def _waiver_file(thing: Any, origin: str) -> str:
    name = text_of(thing, "WAIVERS", "the name of a file beside the adapter, such as waivers.toml")
    return str(Path(origin).parent / name) if name else ""


def _kind(thing: Any, module: ModuleType, asked: str = "") -> Arrays:
    declared = asked or getattr(Declaring(thing, module), "ARRAYS", "") or _guessed_kind(thing, module)
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


def _offers(
    thing: Any, kind: Arrays, components: Collection[str] = ()
) -> tuple[dict[str, Target], dict[str, str], dict[str, str]]:
    """What can be used, what could not be imported, and what is of no component that is asked for and cannot be bound.

    All that does not fit is told at once: AdapterError.
    """
    targets: dict[str, Target] = {}
    broken: dict[str, str] = {}
    absent: dict[str, str] = {}
    unfit: list[str] = []
    for contract in contracts():
        place, error = (thing, "")
        if isinstance(thing, ModuleType) and hasattr(thing, "__path__"):
            place, error = _submodule(thing, contract.component)
        for operation in contract.operations:
            name = operation.signature.operation
            try:
                target = _target(operation, place, kind) or (
                    _target(operation, thing, kind) if place is not thing else None
                )
            except AdapterError as misfit:
                if components and contract.component not in components:
                    absent[name] = str(misfit)
                else:
                    unfit.append(str(misfit))
                continue
            if target:
                targets[name] = target
            elif error:
                broken[name] = error
    if unfit:
        raise AdapterError("; and ".join(unfit))
    return targets, broken, absent


def _if_imported(offered: Any, place: Any) -> str:
    """What can be done about what a module has of another for its own use, by a name of the contract."""
    home, name = str(getattr(offered, "__module__", "")), getattr(offered, "__name__", "")
    if not (isinstance(place, ModuleType) and home and name) or home.startswith(place.__name__):
        return ""
    return f"; if it is not meant to be offered, import it by another name: from {home} import {name} as _{name}"


def _of_python(offered: Any) -> bool:
    """Whether it is a function of the standard library, as `from json import load` has it: none of those is meant."""
    home = str(getattr(offered, "__module__", "")).partition(".")[0]
    return isinstance(offered, FunctionType | BuiltinFunctionType) and home in sys.stdlib_module_names


def _target(operation: type[Operation], place: Any, kind: Arrays) -> Target | None:
    signature = operation.signature
    offered = getattr(place, signature.name, None)
    usable = callable(offered) and not isinstance(offered, ModuleType) and not _of_python(offered)
    plain = getattr(place, operation.plain, None) if operation.plain else None
    if usable and (not signature.method or offers_methods(offered, operation)):
        return _bound(operation, offered, kind, place)
    if callable(plain) and not isinstance(plain, ModuleType):
        return bind(operation, plain, kind, plain=True)
    # What a function makes shows its methods when it is called.
    return _bound(operation, offered, kind, place) if usable and not inspect.isclass(offered) else None


def _bound(operation: type[Operation], offered: Any, kind: Arrays, place: Any) -> Target:
    try:
        return bind(operation, offered, kind, plain=False)
    except AdapterError as error:
        raise AdapterError(f"{error}{_if_imported(offered, place)}") from error


def _replace(adapter: Adapter, part: str, spec: str) -> None:
    operations = _operations_of(part)
    if not operations:
        raise AdapterError(
            f"--with {part}={spec}: {part!r} is no component or name of the contract{meant(part, _parts())}"
        )
    thing, module = find(spec)
    offered, broken = _replacements(thing, module, operations)
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
    declaring = Declaring(thing, module)
    for component in {contract.component for contract, _ in operations}:
        envelope, precision = (mapping_of(declaring, name) for name in ("ENVELOPE", "PRECISION"))
        _redeclare(adapter, component, envelope, precision, part == component)
        adapter.layout[component] = mapping_of(declaring, "LAYOUT").get(component, "")


def _replacements(
    thing: Any, module: ModuleType, operations: list[tuple[Contract, type[Operation]]]
) -> tuple[dict[str, Target], dict[str, str]]:
    """What a thing offers by the names of the contract, or else stands for itself; and what of it cannot be used, and why."""
    kind = _kind(thing, module)
    offered, broken, _ = _offers(thing, kind)
    if not isinstance(thing, ModuleType) and callable(thing) and (not offered or defines(thing, "__call__")):
        first = operations[0][1].signature.name
        offered = _standing_in(thing, [op for _, op in operations if op.signature.name == first], kind)
    return offered, broken


def _operations_of(part: str) -> list[tuple[Contract, type[Operation]]]:
    """What a component, a name or an operation stands for, with the contracts that have it."""
    return [
        (contract, op)
        for contract in contracts()
        for op in contract.operations
        if part in (contract.component, op.signature.name, op.signature.operation)
    ]


def _parts() -> list[str]:
    """What a replacement may be for: components, names and operations."""
    named = [op.signature for contract in contracts() for op in contract.operations]
    return [*COMPONENTS, *(one.name for one in named), *(one.operation for one in named)]


def _standing_in(thing: Any, operations: list[type[Operation]], kind: Arrays) -> dict[str, Target]:
    """A class or function of any name in the place of the operations of one name."""
    return {
        op.signature.operation: bind(op, thing, kind, plain=bool(op.plain) and not makes)
        for op, makes in ((op, _makes(thing, op)) for op in operations)
        # What is made shows its methods when it is.
        if not op.signature.method or offers_methods(thing, op) or (makes and not inspect.isclass(thing))
    }


def _makes(thing: Any, operation: type[Operation]) -> bool:
    """Whether a thing of any name makes what is called: a class, a partial of one, or a function that takes, by the contract's
    names, what the constructor does and nothing else."""
    made = thing
    while isinstance(made, partial):
        made = made.func
    if inspect.isclass(made):
        return True
    own, named = parameters_of(thing), spellings(operation.signature.init or {})
    return bool(own) and all(p.name in named for p in own or ())


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


def _narrow_to_usual(adapter: Adapter) -> None:
    """A plain function, what lacks an option, and anything where a contract says so, are asked for what such a thing usually
    does, unless the adapter says what it does."""
    for contract in contracts():
        declared = adapter.envelope.get(contract.component, {})
        for target in (adapter.targets.get(op.signature.operation) for op in contract.operations):
            if target:
                usual = {**_indices(contract, target.kind), **_usual(target)}
                usual = {key: kept for key, kept in usual.items() if key not in declared}
                both = usual.keys() & target.narrowed.keys()
                left = {key: tuple(x for x in target.narrowed[key] if x in usual[key]) for key in both}
                target.narrowed = {**usual, **target.narrowed, **left}
                # The only thing that it does needs no parameter that says so.
                alone = {key for key in target.operation.unsaid & declared.keys() if len(declared[key]) == 1}
                target.narrowed = {key: left for key, left in target.narrowed.items() if key not in alone}


def _indices(contract: Contract, kind: Arrays) -> dict[str, Any]:
    """The dtypes of ids that the library of the arrays indexes by, where that is not all of them."""
    choices = {key: choices for key, choices in contract.envelope.items() if isinstance(choices, tuple)}
    return {
        key: tuple(one for one in some if one not in kind.no_indices)
        for key, some in choices.items()
        if kind.no_indices.intersection(some)
    }


def _usual(target: Target) -> dict[str, Any]:
    options = target.operation.optional_options
    lacking = dict(left for option, left in options.items() if spelling(target.function, option) is None)
    plain = target.operation.plain_narrows if target.plain else {}
    # Of who can do nothing else, what is rarely there is asked all the same.
    rare = {
        key: kept
        for key, kept in target.operation.unless_declared.items()
        if not set(kept).isdisjoint(target.narrowed.get(key, kept))
    }
    return {**rare, **plain, **lacking}


def _set_drivers(adapter: Adapter) -> None:
    for contract in contracts():
        for name in (op.signature.operation for op in contract.operations):
            if target := adapter.targets.get(name):
                target.driver = driver_of(contract.component, name)
                target.layout = adapter.layout.get(contract.component, "")
                _set_beside(adapter, contract, name, target)


def _set_beside(adapter: Adapter, contract: Contract, name: str, target: Target) -> None:
    """Give a driver what else it uses; what lacks a part is not offered."""
    operation = target.operation
    lacking = [other for other in operation.beside if other.name not in adapter.targets]
    if any(other.borrowed for other in lacking):
        del adapter.targets[name]
        return
    if broken := _broken_without(operation, lacking):
        adapter.broken[name] = f"it takes {', '.join(broken)} beside it"
        del adapter.targets[name]
        return
    target.beside = {
        other.name: adapter.targets[other.name].beside_a(target.kind)
        for other in operation.beside
        if other not in lacking
    }
    target.narrowed = {
        **declared_elsewhere(adapter.envelope, contract, operation),
        **target.narrowed,
        **dict(other.narrows for other in lacking if other.narrows),
    }
    for other in operation.beside:
        if other.narrows and other not in lacking and _leaves_out(adapter, contract, other):
            key, left = other.narrows
            target.narrowed[key] = meet(target.narrowed.get(key, contract.envelope[key]), left)


def _broken_without(operation: type[Operation], lacking: Sequence[Beside]) -> list[str]:
    """What of the lacking operations this one cannot do without."""
    needed = [other.name for other in lacking if not other.modelled and not other.narrows]
    choice = [other for other in operation.beside if other.narrows]
    if choice and all(other in lacking for other in choice):
        needed.append(" or ".join(other.name for other in choice))
    return needed


def _leaves_out(adapter: Adapter, contract: Contract, other: Beside) -> bool:
    """Whether what is declared of the component of another operation has nothing that this contract asks of it."""
    (component,) = (
        one.component for one in contracts() if any(op.signature.operation == other.name for op in one.operations)
    )
    declared = adapter.envelope.get(component, {})
    return any(
        not meet(contract.envelope[key], values)
        for key, values in declared.items()
        if isinstance(contract.envelope.get(key), tuple)
    )
