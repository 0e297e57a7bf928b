"""The kit's own implementation, in MLX: one module per component, the same names as the contracts."""

import importlib

from inferspec import __version__ as VERSION

NAME = "inferspec.impl"
_SCALED = {"rope_types": ["default", "linear", "llama3", "yarn"]}
_IN_FILES = {**_SCALED, "gguf_rope": ["default", "linear", "yarn", "factors"]}
ENVELOPE = {"llama": _SCALED, "qwen3": _SCALED, "loading": _IN_FILES}

__all__ = ["ENVELOPE", "NAME", "VERSION"]


def __getattr__(name: str) -> str:
    """What ran its kernels so far, where those for CPUs did; and that nothing is in its way."""
    if name in ("KERNEL_PATH", "UNAVAILABLE"):
        cpu = importlib.import_module("inferspec.impl.kernels.cpu")
        if name == "UNAVAILABLE":
            # Whoever asks is about to load a subject: kernels are built now, and no call has to wait for it.
            cpu.available()
            return ""
        used: str = cpu.used()
        return used
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
