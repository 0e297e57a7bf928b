"""The kernel-backed part of the implementation, as a subject of its own: ``--impl impl.kernels``.

It offers what of `inferspec.impl` runs on a Metal kernel, and nothing else; without Metal or a simulator for it, it says
so. Each kernel is a `.metal` file and a module that launches it; the checks of arguments are those of
`inferspec.impl`, whose functions these are.
"""

from __future__ import annotations

import importlib
from typing import Any

from inferspec import __version__ as VERSION
from inferspec.impl.kernels.metal import Availability, available, dtypes
from inferspec.impl.kernels.quantized import BITS

NAME = "inferspec.impl.kernels"
ARRAYS = "mlx"

__all__ = ["ARRAYS", "NAME", "VERSION", "Availability", "available"]

_OFFERED = {
    "RMSNorm": "rms_norm",
    "RoPE": "rope",
    "quantized_matmul": "quantization",
    "flash_attention": "flash_attention",
    "paged_attention": "paged_attention",
}
"""Name -> the module of `inferspec.impl` that has it."""

NEEDS = (
    "the kernels need a Mac with Metal and the GPU as MLX's default device, or the simulator: --metal sim, which takes a"
    " C++ compiler"
)


def __getattr__(name: str) -> Any:
    """What the subject offers and declares, late: those modules import the launchers here, and Metal may come later."""
    if name in _OFFERED:
        return getattr(importlib.import_module(f"inferspec.impl.{_OFFERED[name]}"), name)
    if name == "ENVELOPE":
        names = [str(dtype).removeprefix("mlx.core.") for dtype in dtypes()]
        envelope: dict[str, dict[str, Any]] = {component: {"dtypes": names} for component in _OFFERED.values()}
        envelope["quantization"]["bits"] = [BITS]
        return envelope
    if name == "UNAVAILABLE":
        return "" if available() is not Availability.NONE else NEEDS
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
