"""Goldens of linear, silu and softmax."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch.nn import functional as F

from inferspec.spec import linear as spec
from inferspec.tools.recipes import Case, Draw


def linear(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None) -> torch.Tensor:
    return F.linear(x, weight, bias)


def silu(x: torch.Tensor) -> torch.Tensor:
    return F.silu(x)


def softmax(x: torch.Tensor, axis: int) -> torch.Tensor:
    return F.softmax(x, dim=axis)


def _layer(
    name: str,
    requirement: Any,
    seed: int,
    dtype: str,
    lead: tuple[int, ...],
    sizes: tuple[int, int],
    bias: bool = False,
) -> Case:
    width, outputs = sizes

    def inputs(draw: Draw) -> dict[str, Any]:
        x, weight = draw.values(*lead, width), draw.values(outputs, width)
        return {"x": x, "weight": weight, "bias": draw.values(outputs, size=8.0) if bias else None}

    features = {"dtypes": dtype, "bias": bias, "leading_dims": lead, "features": width}
    return Case(name, requirement, seed, features, inputs, linear)


def _silu(name: str, requirement: Any, seed: int, dtype: str, size: float) -> Case:
    features = {"dtypes": dtype, "leading_dims": (2,)}
    return Case(name, requirement, seed, features, lambda draw: {"x": draw.values(5, 13, size=size)}, silu)


def _softmax(
    name: str, requirement: Any, seed: int, dtype: str, axis: int, size: float = 4.0, hidden: bool = False
) -> Case:
    def inputs(draw: Draw) -> dict[str, Any]:
        x = draw.values(3, 5, 7, size=size)
        if hidden:
            x[..., 1::3] = -np.inf
        return {"x": x, "axis": axis}

    features = {"dtypes": dtype, "axes": axis, "leading_dims": (2, 3)}
    return Case(name, requirement, seed, features, inputs, softmax)


CASES = (
    _layer("linear", spec.LIN_01, 101, "float32", (2, 3), (7, 5)),
    _layer("linear-one-row", spec.LIN_01, 102, "bfloat16", (), (19, 11)),
    _layer("linear-float16", spec.LIN_01, 103, "float16", (2,), (6, 9)),
    _layer("linear-bias", spec.LIN_02, 104, "float32", (2,), (5, 8), bias=True),
    _layer("linear-bias-bfloat16", spec.LIN_02, 105, "bfloat16", (2, 3), (3, 4), bias=True),
    _layer("linear-many-features", spec.LIN_03, 106, "bfloat16", (2,), (600, 3)),
    _silu("silu", spec.SILU_01, 111, "float32", 20.0),
    _silu("silu-float16", spec.SILU_01, 112, "float16", 9.0),
    _silu("silu-bfloat16", spec.SILU_01, 113, "bfloat16", 20.0),
    _silu("silu-large", spec.SILU_02, 114, "float16", 60000.0),
    _softmax("softmax", spec.SMAX_01, 121, "float32", -1),
    _softmax("softmax-bfloat16", spec.SMAX_01, 122, "bfloat16", -1),
    _softmax("softmax-first-axis", spec.SMAX_02, 123, "float32", 0),
    _softmax("softmax-middle-axis", spec.SMAX_02, 124, "float16", 1),
    _softmax("softmax-axis-from-the-back", spec.SMAX_02, 125, "float32", -2),
    _softmax("softmax-large-logits", spec.SMAX_03, 126, "float32", -1, size=5000.0),
    _softmax("softmax-minus-infinity", spec.SMAX_04, 127, "float32", -1, hidden=True),
)
