"""Reads what an adapter declares, and refuses what it cannot: an `AdapterError` names the declaration, what it is and what it takes."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import PurePath
from types import ModuleType
from typing import Any

from inferspec.conformance.bridge.binding import Target
from inferspec.conformance.bridge.did_you_mean import meant
from inferspec.conformance.bridge.signatures import AdapterError
from inferspec.conformance.envelope import floor
from inferspec.spec import COMPONENTS, contracts
from inferspec.spec.contract import Contract


class Declaring:
    """What an adapter's declarations are read of: the object itself, and the module that it is in for those that it lacks."""

    def __init__(self, thing: Any, module: ModuleType) -> None:
        self._places = thing, module

    def __getattr__(self, name: str) -> Any:
        for place in self._places:
            if hasattr(place, name):
                return getattr(place, name)
        raise AttributeError(name)


def text_of(thing: Any, name: str, takes: str) -> str:
    """A text, or a path, that an adapter may declare, "" where it does not. takes: what it is, for the error of one who declares
    something else."""
    value = getattr(thing, name, "")
    if value is not None and not isinstance(value, str | PurePath):
        raise AdapterError(f"{name} is {value!r}; it takes {takes}")
    return str(value or "")


def mapping_of(thing: Any, name: str) -> dict[str, Any]:
    """What an adapter may declare of its components, by their names; {} where it does not."""
    value = getattr(thing, name, {})
    if not isinstance(value, Mapping):
        raise AdapterError(f"{name} is {value!r}; it takes a dict with components as keys")
    return dict(value)


def check(
    envelope: Mapping[str, Any],
    layout: Mapping[str, str],
    precision: Mapping[str, Any],
    targets: Mapping[str, Target],
) -> None:
    """AdapterError where ENVELOPE, LAYOUT or PRECISION, by component, say what no adapter can. targets: what the adapter offers."""
    by_name = {contract.component: contract for contract in contracts()}
    for component, declared in envelope.items():
        if component not in by_name:
            raise AdapterError(f"ENVELOPE names {component!r}; {_components(component)}")
        _check_envelope(by_name[component], declared, targets)
    for component, order in layout.items():
        _check_layout(component, order, {name: contract.layouts for name, contract in by_name.items()})
    for component, declared in precision.items():
        if component not in by_name:
            raise AdapterError(f"PRECISION names {component!r}; {_components(component)}")
        if declared not in ("float32", "native"):
            raise AdapterError(f"PRECISION[{component!r}] is {declared!r}; it takes 'float32' or 'native'")


def _check_envelope(contract: Contract, declared: Any, targets: Mapping[str, Target]) -> None:
    where, full = f"ENVELOPE[{contract.component!r}]", contract.envelope
    if not isinstance(declared, Mapping):
        raise AdapterError(f"{where} is {declared!r}; it takes a dict with any of {', '.join(full)}")
    for key, values in declared.items():
        if key not in full:
            raise AdapterError(f"{where} has {key!r}; it takes {', '.join(full)}")
        alone = any(key in operation.either for operation in contract.operations)
        _check_envelope_value(f"{where}[{key!r}]", key, values, full[key], alone)
        if isinstance(full[key], tuple):
            _refuse_unheld(f"{where}[{key!r}]", contract, values, targets)


def _refuse_unheld(where: str, contract: Contract, values: Collection[Any], targets: Mapping[str, Target]) -> None:
    """What would arrive in another dtype, and could wrap on its way, is no claim."""
    offered = (targets.get(operation.signature.operation) for operation in contract.operations)
    for kind in (target.kind for target in offered if target):
        if unheld := sorted(kind.unheld.intersection(map(str, values))):
            raise AdapterError(
                f"{where} has {unheld[0]!r}, of which {kind.name} has no arrays as it is"
                f" configured: leave it out, or set {kind.name}_enable_x64 where the adapter is imported"
            )


def _components(name: object) -> str:
    return f"the components are {', '.join(COMPONENTS)}{meant(str(name), COMPONENTS)}"


def _check_layout(component: str, layout: Any, layouts: Mapping[str, tuple[str, ...]]) -> None:
    known = layouts.get(component, ())
    if layout in known:
        return
    if len(known) < 2:
        several = ", ".join(name for name, orders in layouts.items() if len(orders) > 1)
        raise AdapterError(
            f"LAYOUT names {component!r}; it takes a component with more than one order of axes: {several}"
        )
    raise AdapterError(f"LAYOUT[{component!r}] is {layout!r}; it takes {' or '.join(map(repr, known[1:]))}")


def _check_envelope_value(where: str, key: str, values: Any, full: tuple[Any, ...] | int, alone: bool) -> None:
    """full: what the contract has there; alone: a subject does one thing or another, and not all of them."""
    if isinstance(full, int):
        if not isinstance(values, int) or values < floor(key):
            raise AdapterError(f"{where} is {values!r}; it takes the largest value, an int of {floor(key)} or more")
    elif not isinstance(values, list | tuple | set) or not values:
        raise AdapterError(f"{where} is {values!r}; it takes a list of any of {list(full)}")
    elif unknown := [v for v in values if (tuple(v) if isinstance(v, list) else v) not in full]:
        raise AdapterError(f"{where} has {unknown[0]!r}; it takes any of {list(full)}")
    elif alone and len(values) > 1:
        raise AdapterError(f"{where} is {values!r}; it takes a list of one of {list(full)}, the one thing that it does")
