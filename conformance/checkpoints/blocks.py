"""Matrices in the blocks of GGUF: packed as MLX has them, and as the file has them."""

from __future__ import annotations

import numpy as np

from inferspec.conformance.checkpoints import Weights
from inferspec.spec.numerics import f64

GROUP = 32
"""The numbers of a block."""

_BITS = {"Q4_0": 4, "Q4_1": 4, "Q8_0": 8}


def packed(values: np.ndarray, kind: str) -> dict[str, np.ndarray]:
    """A matrix rounded to a GGUF type, as MLX packs it: ``weight`` and, where quantised, ``scales`` and ``biases``."""
    if kind not in _BITS:
        return {"weight": values.astype({"F32": np.float32, "F16": np.float16}[kind])}
    bits = _BITS[kind]
    groups = f64(values).reshape(len(values), -1, GROUP)
    low, high = groups.min(axis=-1), groups.max(axis=-1)
    if kind == "Q4_1":
        scales = ((high - low) / 15).astype(np.float16)
        biases = low.astype(np.float16)
    else:
        # Of either sign, as llama.cpp's are: the number furthest from 0 has the code at the end of the range.
        furthest = np.where(np.abs(low) > np.abs(high), low, high)
        zero = 2.0 ** (bits - 1)
        scales = (furthest / -zero).astype(np.float16)
        biases = (-zero * f64(scales)).astype(np.float16)
    steps = np.where(scales == 0, 1.0, f64(scales))[..., None]
    codes = np.clip(np.round((groups - f64(biases)[..., None]) / steps), 0, 2**bits - 1).astype(np.uint32)
    return {"weight": _words(codes.reshape(len(values), -1), bits), "scales": scales, "biases": biases}


def dequantised(weight: np.ndarray, scales: np.ndarray, biases: np.ndarray, bits: int) -> np.ndarray:
    """The values of a packed matrix in float64."""
    codes = f64(_codes(weight, bits))
    group = codes.shape[-1] // scales.shape[-1]
    return codes * np.repeat(f64(scales), group, axis=-1) + np.repeat(f64(biases), group, axis=-1)


def block_type(name: str, weights: Weights) -> str:
    """The GGUF type of a matrix."""
    module, x = name.removesuffix(".weight"), weights[name]
    if f"{module}.scales" not in weights:
        return {"float32": "F32", "float16": "F16"}[x.dtype.name]
    scales, biases = f64(weights[f"{module}.scales"]), f64(weights[f"{module}.biases"])
    if 32 * x.shape[-1] // (GROUP * scales.shape[-1]) == 8:
        return "Q8_0"
    return "Q4_0" if np.array_equal(biases, -8 * scales) else "Q4_1"


def blocks(name: str, weights: Weights) -> bytes:
    """The bytes of a matrix in a file."""
    kind, x = block_type(name, weights), weights[name]
    if kind not in _BITS:
        return x.tobytes()
    module = name.removesuffix(".weight")
    scales, biases = (weights[f"{module}.{part}"].astype(np.float16)[..., None] for part in ("scales", "biases"))
    codes = _codes(x, _BITS[kind]).reshape(len(x), -1, GROUP)
    if kind == "Q8_0":
        signed = (codes.astype(np.int16) - 128).astype(np.int8)
        return np.concatenate([scales.view(np.uint8), signed.view(np.uint8)], axis=-1).tobytes()
    # The first sixteen codes of a block are the low nibbles.
    nibbles = (codes[..., :16] | codes[..., 16:] << 4).astype(np.uint8)
    head = [scales.view(np.uint8)] if kind == "Q4_0" else [scales.view(np.uint8), biases.view(np.uint8)]
    return np.concatenate([*head, nibbles], axis=-1).tobytes()


def _codes(words: np.ndarray, bits: int) -> np.ndarray:
    shifts = np.arange(0, 32, bits, dtype=np.uint32)
    return (words[..., None] >> shifts & np.uint32(2**bits - 1)).reshape(len(words), -1)


def _words(codes: np.ndarray, bits: int) -> np.ndarray:
    shifts = np.arange(0, 32, bits, dtype=np.uint32)
    return np.bitwise_or.reduce(codes.reshape(len(codes), -1, 32 // bits) << shifts, axis=-1).astype(np.uint32)
