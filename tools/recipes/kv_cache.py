"""Goldens of the key/value caches: stories told by lists of tensors, joined when they are asked for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from inferspec.spec import kv_cache as spec
from inferspec.tools.recipes import Case, Draw

Steps = Sequence[tuple[str, dict[str, Any]]]


def joined_chunks(steps: Steps, max_len: int = 0) -> dict[str, torch.Tensor]:
    """Each cache is a list of tokens, each token a pair; `max_len` is never reached here."""
    tokens: list[tuple[torch.Tensor, torch.Tensor]] = []
    aside: list[tuple[torch.Tensor, torch.Tensor]] = []
    kept: list[tuple[torch.Tensor, torch.Tensor]] = []
    parts: dict[str, torch.Tensor] = {}
    for number, (method, given) in enumerate(steps, 1):
        match method:
            case "update_and_fetch":
                tokens += zip(given["key"].unbind(2), given["value"].unbind(2), strict=True)
                parts[f"{number} keys"] = torch.stack([key for key, _ in tokens], dim=2)
                parts[f"{number} values"] = torch.stack([value for _, value in tokens], dim=2)
            case "offset":
                parts[f"{number} offset"] = torch.tensor(len(tokens))
            case "rewind":
                tokens = tokens[: len(tokens) - given["n"]]
            case "save":
                kept = list(tokens)
            case "another":
                tokens, aside = [], tokens
            case "switch":
                tokens, aside = aside, tokens
            case "restore":
                tokens = list(kept)
    return parts


def _case(
    name: str,
    requirement: Any,
    seed: int,
    dtype: str,
    shape: tuple[int, int, int, int],
    told: Sequence[int | str],
    max_len: int = 0,
    **features: Any,
) -> Case:
    """told: a number appends that many tokens, ``-3`` rewinds by 3, a word is a step by that name."""
    batch, heads, key_dim, value_dim = shape

    def step(what: int | str, draw: Draw) -> tuple[str, dict[str, Any]]:
        if isinstance(what, str):
            return (what, {}) if what[0] != "-" else ("rewind", {"n": int(what[1:])})
        dims = {"key": key_dim, "value": value_dim}
        return "update_and_fetch", {part: draw.values(batch, heads, what, dim) for part, dim in dims.items()}

    def inputs(draw: Draw) -> dict[str, Any]:
        steps = tuple(step(what, draw) for what in told)
        return {"max_len": max_len, "steps": steps} if max_len else {"steps": steps}

    dims = "same" if key_dim == value_dim else "different"
    known = {"dtypes": dtype, "batches": batch, "head_dims": dims, "empty_chunks": 0 in told, **features}
    return Case(name, requirement, seed, known, inputs, joined_chunks)


CASES = (
    _case("appends", spec.KV_01, 701, "float32", (1, 2, 4, 4), (3, 1, 1)),
    _case("appends-batch-bfloat16", spec.KV_01, 702, "bfloat16", (2, 3, 4, 5), (2, 1, 3)),
    _case("chunks", spec.KV_02, 703, "float16", (1, 2, 3, 5), (1, 0, 2, 5, 1)),
    _case("chunks-past-256", spec.KV_02, 704, "float32", (1, 1, 1, 2), (255, 1, 1), tokens=257),
    _case(
        "offsets",
        spec.KV_05,
        705,
        "float32",
        (2, 1, 3, 3),
        ("offset", 4, "offset", "-2", "offset", 1, "offset"),
        rewinding=True,
    ),
    _case("rewinds", spec.KV_12, 706, "float32", (1, 2, 3, 4), (5, "-2", 1, "-4", 3), rewinding=True),
    _case("rewinds-bfloat16", spec.KV_12, 707, "bfloat16", (3, 1, 5, 5), (2, 3, "-4", 2), rewinding=True),
    _case(
        "restored",
        spec.KV_20,
        708,
        "float16",
        (2, 2, 3, 4),
        (3, "-1", 2, "save", "another", "restore", "offset", 2, "switch", 1),
        rewinding=True,
        restoring=True,
    ),
    _case("static-appends", spec.SKV_01, 751, "float32", (1, 2, 4, 6), (3, 1, 1), 7),
    _case("static-appends-full", spec.SKV_01, 752, "bfloat16", (2, 3, 4, 4), (2, 1, 3), 6),
    _case("static-rewinds", spec.SKV_12, 753, "float16", (1, 2, 3, 4), (5, "-2", 1, "-4", 3), 5, rewinding=True),
    _case(
        "static-restored",
        spec.SKV_20,
        754,
        "float32",
        (1, 3, 4, 5),
        (3, "save", "another", "restore", "offset", 2, "switch", 1),
        8,
        restoring=True,
    ),
)
