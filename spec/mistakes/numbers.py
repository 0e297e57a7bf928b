"""Mistakes in the numbers of an argument: it passes through fewer bits than it has."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from inferspec.spec.contract import Arguments, Change, Operation
from inferspec.spec.mistakes.steps import replacing
from inferspec.spec.numerics import f64, round_to


def cut_to_32_bits(argument: str) -> Change:
    """An argument of 64 bits is cut to 32 before it is looked at."""

    def bind(self: Operation, arguments: Mapping[str, Any]) -> Arguments:
        ids = arguments[argument]
        return Operation.bind(self, {**arguments, argument: ids.astype(np.int32) if ids.dtype == np.int64 else ids})

    return {"bind": bind}


def rounds(argument: str, dtype: str = "bfloat16") -> Change:
    """One argument passes through a narrower dtype on its way in, and is of its own dtype again."""
    return replacing(argument, lambda self, a, value: round_to(f64(round_to(f64(value), dtype)), value.dtype.name))


def bfloat16_through_float16(argument: str) -> Change:
    """One argument passes through float16 where it is bfloat16, as on a GPU that has no bfloat16."""

    def replaced(self: Operation, a: Arguments, value: np.ndarray) -> np.ndarray:
        if value.dtype.name != "bfloat16":
            return value
        with np.errstate(over="ignore"):
            return round_to(f64(round_to(f64(value), "float16")), "bfloat16")

    return replacing(argument, replaced)
