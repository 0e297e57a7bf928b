"""Goldens of dequantisation and of products with quantised weights; what a quantiser gives is not prescribed.

Codes are taken out of their words by division, where the spec shifts and masks.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch.nn import functional as F

from inferspec.spec import quantization_sentences as spec
from inferspec.tools.recipes import Case, Draw


def dequantize(
    packed: torch.Tensor, scales: torch.Tensor, biases: torch.Tensor, group_size: int, bits: int
) -> torch.Tensor:
    levels = 2**bits
    places = [packed // levels**place % levels for place in range(32 // bits)]
    codes = torch.stack(places, dim=-1).flatten(-2).double()
    groups = codes.unflatten(-1, (-1, group_size))
    return torch.addcmul(biases[..., None], groups, scales[..., None]).flatten(-2)


def quantized_matmul(
    x: torch.Tensor,
    packed: torch.Tensor,
    scales: torch.Tensor,
    biases: torch.Tensor,
    group_size: int,
    bits: int,
    transpose: bool,
) -> torch.Tensor:
    weights = dequantize(packed, scales, biases, group_size, bits)
    return F.linear(x, weights if transpose else weights.T)


def quantized_linear(
    packed: torch.Tensor,
    scales: torch.Tensor,
    biases: torch.Tensor,
    group_size: int,
    bits: int,
    bias: torch.Tensor | None,
    x: torch.Tensor,
) -> torch.Tensor:
    return F.linear(x, dequantize(packed, scales, biases, group_size, bits), bias)


def quantized_embedding(
    packed: torch.Tensor, scales: torch.Tensor, biases: torch.Tensor, group_size: int, bits: int, tokens: torch.Tensor
) -> torch.Tensor:
    return F.embedding(tokens, dequantize(packed, scales, biases, group_size, bits))


def quantized_as_linear(
    packed: torch.Tensor, scales: torch.Tensor, biases: torch.Tensor, group_size: int, bits: int, x: torch.Tensor
) -> torch.Tensor:
    return torch.einsum("vi,...i->...v", dequantize(packed, scales, biases, group_size, bits), x)


def _parts(draw: Draw, rows: int, features: int, grid: tuple[int, int]) -> dict[str, Any]:
    """Any words, made of two halves, with scales and biases of both signs."""
    size, bits = grid
    shape = (rows, features * bits // 32)
    high, low = (draw.ids(*shape, below=2**16, dtype="int64") for _ in range(2))
    groups = (rows, features // size)
    return {
        "packed": (high * 2**16 + low).astype(np.uint32),
        "scales": draw.values(*groups, size=2.0 / (2**bits - 1)),
        "biases": draw.values(*groups, size=1.0),
        "group_size": size,
        "bits": bits,
    }


def _features(dtype: str, grid: tuple[int, int], **more: Any) -> dict[str, Any]:
    return {"dtypes": dtype, "group_sizes": grid[0], "bits": grid[1], **more}


def _dequantize(
    name: str, requirement: Any, seed: int, dtype: str, grid: tuple[int, int], sizes: tuple[int, int]
) -> Case:
    features = _features(dtype, grid, stacked=False, features=sizes[1])
    return Case(name, requirement, seed, features, lambda draw: _parts(draw, *sizes, grid), dequantize)


def _product(
    name: str,
    requirement: Any,
    seed: int,
    dtype: str,
    grid: tuple[int, int],
    sizes: tuple[int, int],
    lead: tuple[int, ...],
    transpose: bool = True,
) -> Case:
    rows, width = sizes

    def inputs(draw: Draw) -> dict[str, Any]:
        x = draw.values(*lead, width if transpose else rows)
        return {"x": x, **_parts(draw, rows, width, grid), "transpose": transpose}

    features = _features(dtype, grid, stacked=False, transpose=transpose, leading_dims=lead, features=width)
    return Case(name, requirement, seed, features, inputs, quantized_matmul)


def _layer(
    name: str, requirement: Any, seed: int, dtype: str, grid: tuple[int, int], sizes: tuple[int, int], bias: bool
) -> Case:
    rows, width = sizes

    def inputs(draw: Draw) -> dict[str, Any]:
        given = draw.values(rows) if bias else None
        return {**_parts(draw, rows, width, grid), "bias": given, "x": draw.values(2, 3, width)}

    features = _features(dtype, grid, bias=bias, leading_dims=(2, 3), features=width)
    return Case(name, requirement, seed, features, inputs, quantized_linear)


def _lookup(name: str, requirement: Any, seed: int, dtype: str, grid: tuple[int, int], sizes: tuple[int, int]) -> Case:
    rows, width = sizes

    def inputs(draw: Draw) -> dict[str, Any]:
        return {**_parts(draw, rows, width, grid), "tokens": draw.ids(2, 3, below=rows, dtype="int32")}

    features = _features(dtype, grid, token_dtypes="int32", leading_dims=(2, 3), vocabulary=rows, features=width)
    return Case(name, requirement, seed, features, inputs, quantized_embedding)


def _head(name: str, requirement: Any, seed: int, dtype: str, grid: tuple[int, int], sizes: tuple[int, int]) -> Case:
    rows, width = sizes

    def inputs(draw: Draw) -> dict[str, Any]:
        return {**_parts(draw, rows, width, grid), "x": draw.values(2, width)}

    features = _features(dtype, grid, leading_dims=(2,), vocabulary=rows, features=width)
    return Case(name, requirement, seed, features, inputs, quantized_as_linear)


CASES = (
    _dequantize("codes-of-2-bits", spec.DEQ_01, 601, "float32", (32, 2), (3, 64)),
    _dequantize("codes-of-4-bits", spec.DEQ_01, 602, "float32", (64, 4), (2, 128)),
    _dequantize("codes-of-8-bits", spec.DEQ_01, 603, "float32", (32, 8), (3, 32)),
    _dequantize("groups-of-128", spec.DEQ_02, 604, "float32", (128, 4), (2, 384)),
    _dequantize("groups-float16", spec.DEQ_02, 605, "float16", (32, 4), (3, 96)),
    _dequantize("rounded-once-bfloat16", spec.DEQ_03, 606, "bfloat16", (64, 8), (2, 128)),
    _product("product", spec.QMM_01, 611, "float32", (64, 4), (5, 128), (2,)),
    _product("product-2-bits", spec.QMM_01, 612, "float32", (32, 2), (7, 96), (1,)),
    _product("product-8-bits", spec.QMM_01, 613, "float32", (128, 8), (3, 128), ()),
    _product("product-bfloat16", spec.QMM_01, 614, "bfloat16", (32, 4), (6, 96), (2,)),
    _product("product-not-transposed", spec.QMM_02, 615, "float32", (32, 4), (6, 64), (2,), transpose=False),
    _product("product-not-transposed-float16", spec.QMM_02, 616, "float16", (64, 8), (5, 64), (1,), transpose=False),
    _product("product-many-features", spec.QMM_03, 617, "bfloat16", (128, 2), (2, 2048), (2,)),
    _product("product-batch", spec.QMM_05, 618, "float32", (32, 4), (4, 64), (2, 3)),
    _layer("layer", spec.QLIN_01, 621, "float32", (64, 4), (5, 128), False),
    _layer("layer-bias", spec.QLIN_02, 622, "float32", (32, 4), (7, 64), True),
    _layer("layer-bias-bfloat16", spec.QLIN_02, 623, "bfloat16", (32, 8), (4, 32), True),
    _lookup("rows", spec.QEMB_01, 631, "float32", (32, 4), (11, 64)),
    _lookup("rows-float16", spec.QEMB_01, 632, "float16", (64, 8), (9, 64)),
    _head("logits", spec.QEMB_09, 633, "float32", (32, 4), (11, 96)),
)
