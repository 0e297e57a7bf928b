"""Goldens of SwiGLU."""

from __future__ import annotations

from typing import Any

import torch
from torch.nn import functional as F

from inferspec.spec import mlp as spec
from inferspec.tools.recipes import Case, Draw


def swiglu(
    dims: int, hidden_dims: int, w_gate: torch.Tensor, w_up: torch.Tensor, w_down: torch.Tensor, x: torch.Tensor
) -> torch.Tensor:
    return F.linear(F.silu(F.linear(x, w_gate)) * F.linear(x, w_up), w_down)


def _case(
    name: str, requirement: Any, seed: int, dtype: str, lead: tuple[int, ...], sizes: tuple[int, int], gate: float = 1.0
) -> Case:
    dims, hidden = sizes

    def inputs(draw: Draw) -> dict[str, Any]:
        return {
            "dims": dims,
            "hidden_dims": hidden,
            "w_gate": draw.values(hidden, dims, size=gate),
            "w_up": draw.values(hidden, dims),
            "w_down": draw.values(dims, hidden),
            "x": draw.values(*lead, dims),
        }

    features = {"dtypes": dtype, "leading_dims": lead, "features": max(sizes)}
    return Case(name, requirement, seed, features, inputs, swiglu)


CASES = (
    _case("swiglu", spec.MLP_01, 401, "float32", (2,), (6, 10)),
    _case("swiglu-bfloat16", spec.MLP_01, 402, "bfloat16", (2,), (8, 12)),
    _case("swiglu-float16", spec.MLP_01, 403, "float16", (1,), (7, 5)),
    _case("swiglu-gate-and-up", spec.MLP_02, 404, "float32", (2,), (5, 5), gate=4.0),
    _case("swiglu-strong-gate", spec.MLP_05, 405, "bfloat16", (2,), (4, 9), gate=6.0),
    _case("swiglu-batch", spec.MLP_06, 406, "float32", (2, 3), (3, 7)),
    _case("swiglu-one-row", spec.MLP_06, 407, "float32", (), (9, 4)),
)
