"""Goldens of the embedding and of its use as output head."""

from __future__ import annotations

from typing import Any

import torch
from torch.nn import functional as F

from inferspec.spec import embedding as spec
from inferspec.tools.recipes import Case, Draw


def lookup(vocab_size: int, dims: int, weight: torch.Tensor, tokens: torch.Tensor) -> torch.Tensor:
    return F.embedding(tokens, weight)


def as_linear(vocab_size: int, dims: int, weight: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    return torch.einsum("ve,...e->...v", weight, x)


def _lookup(
    name: str, requirement: Any, seed: int, dtype: str, lead: tuple[int, ...], sizes: tuple[int, int], tokens: str
) -> Case:
    vocabulary, dims = sizes

    def inputs(draw: Draw) -> dict[str, Any]:
        weight = draw.values(vocabulary, dims)
        ids = draw.ids(*lead, below=vocabulary, dtype=tokens)
        if ids.ndim:
            ids[..., 0] = vocabulary - 1
        return {"vocab_size": vocabulary, "dims": dims, "weight": weight, "tokens": ids}

    features = {"dtypes": dtype, "token_dtypes": tokens, "leading_dims": lead, "vocabulary": vocabulary}
    return Case(name, requirement, seed, features, inputs, lookup)


def _head(name: str, requirement: Any, seed: int, dtype: str, lead: tuple[int, ...], sizes: tuple[int, int]) -> Case:
    vocabulary, dims = sizes

    def inputs(draw: Draw) -> dict[str, Any]:
        weight, x = draw.values(vocabulary, dims), draw.values(*lead, dims)
        return {"vocab_size": vocabulary, "dims": dims, "weight": weight, "x": x}

    features = {"dtypes": dtype, "leading_dims": lead, "vocabulary": vocabulary}
    return Case(name, requirement, seed, features, inputs, as_linear)


CASES = (
    _lookup("lookup", spec.EMB_01, 501, "float32", (2, 3), (11, 6), "int32"),
    _lookup("lookup-bfloat16", spec.EMB_01, 502, "bfloat16", (2,), (9, 5), "int64"),
    _lookup("lookup-past-255", spec.EMB_02, 503, "float16", (2, 3), (300, 4), "uint32"),
    _lookup("lookup-one-token", spec.EMB_03, 504, "float32", (), (13, 7), "int32"),
    _head("head", spec.EMB_10, 511, "float32", (2,), (13, 6)),
    _head("head-bfloat16", spec.EMB_10, 512, "bfloat16", (2,), (10, 24)),
    _head("head-float16", spec.EMB_10, 513, "float16", (1,), (7, 9)),
    _head("head-batch", spec.EMB_13, 514, "float32", (2, 3), (5, 8)),
    _head("head-one-row", spec.EMB_13, 515, "float32", (), (8, 5)),
)
