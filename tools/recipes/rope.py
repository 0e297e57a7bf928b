"""Goldens of rotary position embedding: each pair of features as a complex number, turned by multiplication."""

from __future__ import annotations

from typing import Any

import torch

from inferspec.spec import rope as spec
from inferspec.tools.recipes import Case, Draw


def complex_rotation(
    dims: int, max_positions: int, base: float, traditional: bool, x: torch.Tensor, offset: Any
) -> torch.Tensor:
    batch, length, _, _ = x.shape
    starts = torch.tensor([_start(part) for part in (offset if isinstance(offset, list) else [offset] * batch)])
    positions = (starts[:, None] + torch.arange(length)).double()
    frequencies = torch.pow(torch.tensor(float(base)).double(), -torch.arange(0, dims, 2).double() / dims)
    turns = torch.polar(torch.ones(()).double(), positions[..., None] * frequencies)[:, :, None, :]
    turning, rest = x[..., :dims], x[..., dims:]
    if traditional:
        pairs = torch.view_as_complex(turning.unflatten(-1, (-1, 2)).contiguous())
        turned = torch.view_as_real(pairs * turns).flatten(-2)
    else:
        first, second = turning.chunk(2, dim=-1)
        product = torch.complex(first, second) * turns
        turned = torch.cat([product.real, product.imag], dim=-1)
    return torch.cat([turned, rest], dim=-1)


def _start(offset: Any) -> int:
    if offset is None:
        return 0
    return offset.start if isinstance(offset, slice) else offset


def _case(
    name: str,
    requirement: Any,
    seed: int,
    dtype: str,
    shape: tuple[int, int, int, int],
    offset: Any = None,
    traditional: bool = False,
    base: int = 10000,
    dims: int = 0,
) -> Case:
    def inputs(draw: Draw) -> dict[str, Any]:
        return {
            "dims": dims or shape[-1],
            "max_positions": end,
            "base": base,
            "traditional": traditional,
            "x": draw.values(*shape),
            "offset": offset,
        }

    kind = {type(None): "none", int: "int", slice: "slice", list: "slices"}[type(offset)]
    end = max(map(_start, offset if isinstance(offset, list) else [offset])) + shape[1]
    features = {
        "dtypes": dtype,
        "head_dims": shape[-1],
        "forms": "traditional" if traditional else "split-half",
        "offsets": kind,
        "bases": base,
        "partial": bool(dims),
        "positions": end,
    }
    # A rounding of a frequency counts once for every position.
    return Case(name, requirement, seed, features, inputs, complex_rotation, condition=float(end))


CASES = (
    _case("rope", spec.ROPE_01, 201, "float32", (2, 5, 3, 8)),
    _case("rope-bfloat16", spec.ROPE_01, 202, "bfloat16", (1, 7, 2, 16)),
    _case("rope-traditional", spec.ROPE_02, 203, "float32", (2, 5, 3, 8), traditional=True),
    _case("rope-traditional-float16", spec.ROPE_02, 204, "float16", (1, 4, 2, 6), traditional=True),
    _case("rope-decode", spec.ROPE_03, 205, "float32", (2, 1, 3, 8), offset=41),
    _case("rope-chunk", spec.ROPE_03, 206, "bfloat16", (1, 4, 2, 8), offset=130, traditional=True),
    _case("rope-slice", spec.ROPE_04, 207, "float16", (2, 4, 1, 8), offset=slice(9, 13)),
    _case(
        "rope-slices", spec.ROPE_05, 208, "float32", (3, 3, 2, 8), offset=[slice(12, 15), slice(12, 15), slice(0, 3)]
    ),
    _case(
        "rope-slices-decode",
        spec.ROPE_05,
        209,
        "bfloat16",
        (2, 1, 3, 8),
        offset=[slice(57, 58), slice(4, 5)],
        traditional=True,
    ),
    _case("rope-base-1e6", spec.ROPE_06, 210, "float32", (1, 6, 2, 32), offset=25, base=1000000),
    _case("rope-base-10", spec.ROPE_06, 211, "float32", (1, 6, 2, 8), base=10, traditional=True),
    _case("rope-far", spec.ROPE_07, 212, "float32", (1, 3, 2, 64), offset=4000, base=1000000),
    _case("rope-very-far", spec.ROPE_07, 213, "bfloat16", (1, 3, 2, 64), offset=2**17 - 5, base=1000000),
    _case("rope-partial", spec.ROPE_12, 214, "float32", (2, 4, 2, 16), offset=3, dims=8),
    _case("rope-partial-traditional", spec.ROPE_12, 215, "float16", (1, 4, 2, 16), dims=6, traditional=True),
)
