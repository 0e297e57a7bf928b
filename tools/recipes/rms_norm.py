"""Goldens of RMSNorm."""

from __future__ import annotations

from typing import Any

import torch
from torch.nn import functional as F

from inferspec.spec import rms_norm as spec
from inferspec.tools.recipes import Case, Draw


def rms_norm(dims: int, weight: torch.Tensor, eps: float, x: torch.Tensor) -> torch.Tensor:
    return F.rms_norm(x, (dims,), weight, eps)


def _case(
    name: str,
    requirement: Any,
    seed: int,
    dtype: str,
    lead: tuple[int, ...],
    dims: int,
    eps: float = 1e-5,
    size: float = 2.0,
) -> Case:
    def inputs(draw: Draw) -> dict[str, Any]:
        weight = draw.values(dims)
        weight[1] = 0
        return {"dims": dims, "weight": weight, "eps": eps, "x": draw.values(*lead, dims, size=size)}

    features = {"dtypes": dtype, "leading_dims": lead, "eps": eps, "features": dims}
    return Case(name, requirement, seed, features, inputs, rms_norm)


CASES = (
    _case("rms-norm", spec.RMS_01, 301, "float32", (2, 3), 17),
    _case("rms-norm-one-row", spec.RMS_01, 302, "bfloat16", (), 24),
    _case("rms-norm-large-eps", spec.RMS_02, 303, "float32", (2,), 9, eps=0.5, size=0.3),
    _case("rms-norm-small-eps", spec.RMS_02, 304, "float32", (2,), 9, eps=1e-6, size=0.002),
    _case("rms-norm-eps-float16", spec.RMS_02, 305, "float16", (2,), 11, eps=1e-3, size=0.02),
    _case("rms-norm-weights", spec.RMS_03, 306, "bfloat16", (2, 3), 10),
    _case("rms-norm-large-float16", spec.RMS_04, 307, "float16", (2,), 33, size=60000.0),
    _case("rms-norm-tiny-float16", spec.RMS_04, 308, "float16", (2,), 32, eps=1e-6, size=0.0005),
    _case("rms-norm-beside-256", spec.RMS_09, 309, "float32", (1,), 257),
)
