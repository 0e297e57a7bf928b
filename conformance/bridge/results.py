"""What a target returned, by the names of its parts and in NumPy."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from inferspec.conformance.bridge.arrays import Arrays
from inferspec.spec.contract import STORY
from inferspec.spec.numerics import is_float


def named(answer: Any, target: Any, to: Arrays) -> dict[str, Any]:
    """What came back, by the name of its part ("" for a single array); nothing where it is not what may come back."""
    parts = target.operation.parts
    if isinstance(answer, Mapping) and parts:
        whole = target.driver or parts == STORY
        return dict(answer) if whole else {part: answer[part] for part in parts if part in answer}
    if not to.owns(answer) and (held := [part for part in parts if hasattr(answer, part)]):
        # An object, or a tuple with names: what else it holds is its own matter, and so is its order.
        return {part: getattr(answer, part) for part in held}
    if isinstance(answer, tuple | list) and len(answer) == len(parts) > 0:
        return dict(zip(parts, answer, strict=True))
    plain = target.driver and isinstance(answer, bool | int | float | list | np.ndarray)
    plain = plain or (target.operation.is_id and type(answer) is int)
    return {"": answer} if not parts and (to.owns(answer) or plain) else {}


def kind_of(value: Any) -> str:
    """What came back in an array's place: its type, and what to return of an output object of Hugging Face's."""
    name = f"{type(value).__module__}.{type(value).__qualname__}"
    return f"{name} (return its .logits)" if hasattr(value, "logits") else name


def no_output_object(value: Any) -> Any:
    """What a model gives; RuntimeError for an output object of Hugging Face's."""
    if hasattr(value, "logits"):
        raise RuntimeError(f"the model gives a {kind_of(value)}, not an array")
    return value


def told(value: Any, to: Arrays) -> np.ndarray:
    """The value in NumPy, if it is of numbers that can be compared; TypeError otherwise."""
    if to.owns(value):
        value = to.to_numpy(to.ready(value))
    elif value is None:
        value = np.zeros(0)
    elif isinstance(value, bool | int | float | list | tuple | np.ndarray | np.generic):
        value = np.asarray(value)
    elif isinstance(value, Iterator | Sequence) and not isinstance(value, str | bytes):
        value = np.asarray(list(value))
    else:
        raise TypeError(f"the result is a {type(value).__qualname__}; it takes arrays and numbers")
    if value.dtype.kind not in "biuf" and not is_float(value.dtype):
        raise TypeError(f"the result is a {value.dtype.name} array; it takes floating-point numbers")
    return value
