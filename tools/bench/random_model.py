"""A model of a given shape with random 4-bit weights: as fast as a trained one, and at hand without a hub."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import mlx.core as mx
import numpy as np

from inferspec.conformance.bridge.arrays import MlxArrays
from inferspec.spec.transformer import BLOCK_LINEARS, BLOCK_NORMS, HEAD_NORMS
from inferspec.tools.bench.cases import Draw
from inferspec.tools.bench.shapes import Shape

BITS = 4
DTYPE = "bfloat16"


def write(shape: Shape, folder: Path, seed: int) -> Path:
    """Write config.json and model.safetensors as MLX has them, embedding and head packed too; return the folder."""
    draw, weights = Draw(DTYPE, seed), dict[str, np.ndarray]()

    def packed(name: str, outputs: int, inputs: int) -> None:
        parts = draw.packed(outputs, inputs, shape.group, BITS)
        weights.update({f"{name}.{part}": parts["packed" if part == "weight" else part] for part in PARTS})

    packed("model.embed_tokens", shape.vocabulary, shape.hidden)
    queries, keys = shape.heads * shape.head_dim, shape.kv_heads * shape.head_dim
    outputs = (queries, keys, keys, shape.hidden, shape.inner, shape.inner, shape.hidden)
    inputs = (shape.hidden, shape.hidden, shape.hidden, queries, shape.hidden, shape.hidden, shape.inner)
    for layer in (f"model.layers.{number}" for number in range(shape.layers)):
        for name, rows, columns in zip(BLOCK_LINEARS, outputs, inputs, strict=True):
            packed(f"{layer}.{name}", rows, columns)
        norms = dict.fromkeys(BLOCK_NORMS, shape.hidden)
        norms |= dict.fromkeys(HEAD_NORMS if shape.family == "qwen3" else (), shape.head_dim)
        weights |= {f"{layer}.{name}.weight": np.ones(size, draw.dtype) for name, size in norms.items()}
    weights["model.norm.weight"] = np.ones(shape.hidden, draw.dtype)
    kind = MlxArrays()
    arrays: dict[str, Any] = {name: kind.from_numpy(x) for name, x in weights.items()}
    mx.save_safetensors(str(folder / "model.safetensors"), arrays, {"format": "mlx"})
    (folder / "config.json").write_text(json.dumps(shape.config(BITS), indent=1) + "\n", encoding="utf-8")
    return folder


PARTS = ("weight", "scales", "biases")
