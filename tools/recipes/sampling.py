"""Goldens of the filters and of the sampler."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from inferspec.spec import sampling_sentences as spec
from inferspec.tools.recipes import Case, Draw


def filter_logits(logits: torch.Tensor, top_k: int | None, top_p: float) -> torch.Tensor:
    """By a stable sort, largest first, and what is left of it in its places."""
    ordered, ids = torch.sort(logits, dim=-1, descending=True, stable=True)
    if top_k is not None:
        ordered[..., top_k:] = -torch.inf
    shares = torch.softmax(ordered, dim=-1)
    if top_p < 1:
        ordered[shares.cumsum(dim=-1) - shares >= top_p] = -torch.inf
    return torch.full_like(logits, -torch.inf).scatter(-1, ids, ordered)


def sampler(
    temperature: float, top_k: int | None, top_p: float, logits: torch.Tensor, uniform: torch.Tensor
) -> torch.Tensor:
    """The place of the uniform number among the sums of the filtered probabilities."""
    if temperature == 0:
        return filter_logits(logits, top_k, top_p).max(dim=-1).indices
    shares = torch.softmax(filter_logits(logits / temperature, top_k, top_p), dim=-1)
    return torch.searchsorted(shares.cumsum(dim=-1), uniform[..., None], right=True)[..., 0]


def _filter(
    name: str, requirement: Any, seed: int, dtype: str, lead: tuple[int, ...], size: int, steps: int = 0, **limits: Any
) -> Case:
    def inputs(draw: Draw) -> dict[str, Any]:
        return {"logits": _logits(draw, lead, size, steps), "top_k": None, "top_p": 1.0, **limits}

    return Case(name, requirement, seed, _features(dtype, lead, size, limits), inputs, filter_logits)


def _sample(
    name: str, requirement: Any, seed: int, dtype: str, lead: tuple[int, ...], size: int, heat: float, **limits: Any
) -> Case:
    def inputs(draw: Draw) -> dict[str, Any]:
        logits = _logits(draw, lead, size, 0)
        uniform = np.abs(draw.values(*lead, size=1.0)).astype(np.float32)
        return {"temperature": heat, "top_k": None, "top_p": 1.0, **limits, "logits": logits, "uniform": uniform}

    kind = {0.0: "greedy", 1.0: "one"}.get(heat, "power of two" if heat in (0.5, 2.0) else "other")
    features = {"generators": "given", "uniform_dtypes": "float32", "temperatures": kind}
    return Case(name, requirement, seed, features | _features(dtype, lead, size, limits), inputs, sampler)


def _features(dtype: str, lead: tuple[int, ...], size: int, limits: dict[str, Any]) -> dict[str, Any]:
    here = {"top_k": "top_k" in limits, "top_p": "top_p" in limits, "both_filters": len(limits) == 2}
    return {"dtypes": dtype, "leading_dims": lead, "vocabulary": size, **here}


def _logits(draw: Draw, lead: tuple[int, ...], size: int, steps: int) -> np.ndarray:
    """Any logits, or of a few levels only, so that many are equal."""
    values = draw.values(*lead, size, size=5.0)
    return draw.exactly(np.round(np.asarray(values, np.float32) * steps / 5) / 2) if steps else values


CASES = (
    _filter("top-k", spec.SAMP_01, 701, "float32", (2,), 23, top_k=5),
    _filter("top-k-bfloat16", spec.SAMP_01, 702, "bfloat16", (2, 3), 17, top_k=3),
    _filter("top-k-equal", spec.SAMP_02, 703, "float16", (2,), 19, steps=3, top_k=6),
    _filter("top-p", spec.SAMP_05, 704, "float32", (2, 3), 21, top_p=0.8),
    _filter("top-p-narrow", spec.SAMP_05, 705, "float16", (2,), 300, top_p=0.3),
    _filter("top-p-equal", spec.SAMP_07, 706, "float32", (2,), 16, steps=2, top_p=0.6),
    _filter("top-k-top-p", spec.SAMP_08, 707, "float32", (2,), 40, top_k=8, top_p=0.7),
    _sample("greedy", spec.SAMP_21, 711, "bfloat16", (2, 3), 29, 0, top_k=4),
    _sample("draw", spec.SAMP_22, 712, "float32", (2, 3), 24, 1.0),
    _sample("draw-hot", spec.SAMP_22, 713, "float16", (2,), 60, 1.3),
    _sample("draw-cold", spec.SAMP_22, 714, "bfloat16", (2, 3), 31, 0.5),
    _sample("draw-top-k", spec.SAMP_24, 715, "float32", (2, 3), 50, 2.0, top_k=7),
    _sample("draw-top-p", spec.SAMP_24, 716, "float32", (2, 3), 50, 1.0, top_p=0.9),
    _sample("draw-both", spec.SAMP_24, 717, "float16", (2, 3), 50, 1.0, top_k=9, top_p=0.75),
    _sample("draw-tempered-top-p", spec.SAMP_26, 718, "float32", (2, 3), 32, 2.0, top_p=0.6),
)
