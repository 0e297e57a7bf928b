"""Layers that are filled once they are made: their constructor takes sizes, and each weight is an attribute that the object has.

`torch.nn.RMSNorm(dims, eps)` and `mlx.nn.Embedding(vocab_size, dims)` are such; nothing else tells them from a class that takes
its weights than the names and kinds of its constructor's parameters."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping
from typing import Any

from inferspec.conformance.bridge.signatures import CATCH_ALL, AdapterError, alike, parameters_of, spellings, spelt
from inferspec.spec.contract import REQUIRED, Operation

COUNTS = re.compile(
    r"(dims?|dimensions?|sizes?|shape|features|width|channels|units)(_in|_out|\d)?$|^(num|n|dims?)(_|$)|^(d_model|vocab)$"
)
"""The names of a constructor's parameters that tell how large something is: `vocab_size` does, `vocab_table` does not."""

ARRAYS = re.compile(r"[Aa]rray|Tensor")
"""What is in the annotation of what is no size, whatever it is called."""

FILLED = frozenset({"weight", "wq", "wk", "wv", "wo", "w_gate", "w_up", "w_down", "packed", "scales", "biases"})
"""What is no size."""


def places_of(function: Callable[..., Any], operation: type[Operation]) -> dict[str, tuple[str, ...]]:
    """What the constructor of a class does not take, since its objects are filled later: what it insists on are sizes."""
    own = parameters_of(function) if inspect.isclass(function) and operation.loaded else None
    if own is None or any(p.kind in CATCH_ALL for p in own) or not _insists_on_sizes(own, operation):
        return {}
    return {
        name: places
        for name, places in operation.loaded.items()
        if not any(alike(p, name) or p.name in (*places, "w") for p in own)
    }


def _insists_on_sizes(own: list[inspect.Parameter], operation: type[Operation]) -> bool:
    """Whether, without its options, there are as many sizes as the contract has; else one of them is an array after all."""
    init = operation.signature.init or {}
    named = spellings(init)
    insisted = [p for p in own if p.default is p.empty and init.get(named.get(p.name, ""), REQUIRED) is REQUIRED]
    needed = sum(default is REQUIRED for name, default in init.items() if name not in operation.loaded)
    return len(insisted) == needed and all(p.name in named or _counts(p) for p in insisted)


def _counts(own: inspect.Parameter) -> bool:
    """Whether a parameter of a constructor tells a size or makes a choice."""
    if ARRAYS.search(str(own.annotation)):
        return False
    return own.annotation in (int, "int") or bool(COUNTS.search(own.name)) or isinstance(own.default, int | float | str)


def refuse_sizes(function: Callable[..., Any], names: Mapping[str, str], operation: type[Operation]) -> None:
    """Refuse to give weights for sizes; a layer that is filled once it is made would take them by position."""
    own = {p.name: p for p in parameters_of(function) or ()}
    wrong = [name for name, p in names.items() if name in FILLED and p in own and _counts(own[p])]
    if any(not alike(own[names[name]], name) for name in wrong):
        raise AdapterError(
            f"{operation.signature.operation}{inspect.signature(function)} does not take {', '.join(wrong)}; the contract is"
            f" {spelt(operation)}: a class whose objects are filled once they are made needs one around it that does so"
        )


def keep(built: Any, places: tuple[str, ...], value: Any) -> None:
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
        keep(old, places[:1], value)
        return
    if tuple(old.shape) != tuple(value.shape):
        raise ValueError(f"{place} is {tuple(old.shape)}, and what is to be put there {tuple(value.shape)}")
    setattr(built, place, type(old)(value, requires_grad=False) if hasattr(old, "requires_grad") else value)
