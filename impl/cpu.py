"""What of the implementation runs on kernels for CPUs, as a subject of its own: ``--impl impl.cpu``.

It offers that and nothing else; without a compiler, or with INFERSPEC_CPU=off, it says so. The checks of arguments are
those of `inferspec.impl`, whose functions these are.
"""

from __future__ import annotations

import importlib
from typing import Any

from inferspec import __version__ as VERSION
from inferspec.impl.kernels import cpu, metal
from inferspec.impl.kernels.cpu.quantized import BITS

NAME = "inferspec.impl.cpu"
ARRAYS = "mlx"
_PACKING = ["dense", "4-bit", "8-bit", "mixed", "4-bit throughout"]
ENVELOPE: dict[str, dict[str, Any]] = {
    "quantization": {"bits": list(BITS)},
    "llama": {"packing": _PACKING},
    "qwen3": {"packing": _PACKING},
}

__all__ = ["ARRAYS", "ENVELOPE", "NAME", "VERSION"]

_OFFERED = {
    "linear": "linear",
    "Embedding": "embedding",
    "dequantize": "quantization",
    "scaled_dot_product_attention": "attention",
    "flash_attention": "flash_attention",
    "paged_attention": "paged_attention",
    "quantized_matmul": "quantization",
    "QuantizedLinear": "quantization",
    "QuantizedEmbedding": "quantization",
    "Llama": "llama",
    "Qwen3": "qwen3",
}
"""Name -> the module of `inferspec.impl` that has it."""


def __getattr__(name: str) -> Any:
    """What the subject offers and declares, late: the kernels are built when they are first wanted."""
    if name in _OFFERED:
        return getattr(importlib.import_module(f"inferspec.impl.{_OFFERED[name]}"), name)
    if name == "KERNEL_PATH":
        return cpu.used()
    if name == "UNAVAILABLE":
        return _unavailable()
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def _unavailable() -> str:
    if metal.available() is not metal.Availability.NONE:
        return "the Metal kernels come first here; --metal off takes the CPU"
    return cpu.why_not()
