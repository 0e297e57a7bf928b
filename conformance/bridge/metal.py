"""On what the Metal kernels of a subject run: the machine's GPU, a simulator in the subject's process, or nothing.

Called in the process that hosts the subject, before it is imported, so that `mx.fast.metal_kernel` is what was asked for
wherever the subject takes it from.
"""

from __future__ import annotations

import functools
import importlib
import re
from collections.abc import Callable
from typing import Any

from inferspec.conformance.bridge.signatures import AdapterError

MODES = ("auto", "native", "sim", "off")
"""auto: Metal where there is any; native: Metal, or an error; sim: the simulator; off: no Metal, on the CPU."""
DECLARABLE = re.compile(r"(?!(metal|metalsim|mlx|none)\b)[\w+./ -]{0,60}", re.IGNORECASE)
"""What a subject may say of what ran its kernels, in a few words: what is seen, as of Metal and the simulator, is not said."""
SIMULATOR = "inferspec.tools.metalsim"

_launches = 0


def prepare(mode: str) -> None:
    """Make kernels run as asked; AdapterError where they cannot."""
    if mode == "auto":
        return
    try:
        import mlx.core as mx
    except ImportError as error:
        raise AdapterError(f"--metal {mode} is about MLX's kernels, and MLX cannot be imported: {error}") from error
    if mode == "native" and not (mx.metal.is_available() and mx.default_device() == mx.Device(mx.gpu)):
        raise AdapterError("--metal native takes a Mac with Metal and the GPU as MLX's default device; see --metal sim")
    if mode == "off":
        mx.set_default_device(mx.cpu)
    if mode == "sim":
        try:
            # Built now: without a compiler that is one line and no failure of the subject, and no call waits for it.
            importlib.import_module(f"{SIMULATOR}.runtime").runtime_library()
            importlib.import_module(SIMULATOR).install()
        except Exception as error:
            raise AdapterError(f"--metal sim: the simulator cannot be used: {error}") from error
        mx.fast.metal_kernel = _counted(mx.fast.metal_kernel)


def kernel_path(kind: str, declared: str = "") -> str:
    """What ran the subject's kernels so far, for its kind of arrays.

    `metalsim` where it launched any in the simulator; what it declares (`cpu avx512`); `metal` where its device is an Apple
    GPU; else `mlx` for MLX's own operations and `none` for other libraries.
    """
    if _launches:
        return "metalsim"
    if declared:
        return declared
    if kind != "mlx":
        return "none"
    import mlx.core as mx

    native = not getattr(mx.fast.metal_kernel, "simulated", False) and mx.metal.is_available()
    return "metal" if native and mx.default_device() == mx.Device(mx.gpu) else "mlx"


def _counted(metal_kernel: Callable[..., Any]) -> Callable[..., Any]:
    """The same, and its launches are counted: a subject that has no kernel is not certified on the simulator."""

    @functools.wraps(metal_kernel)
    def build(*arguments: Any, **options: Any) -> Callable[..., Any]:
        kernel = metal_kernel(*arguments, **options)

        def launch(*arguments: Any, **options: Any) -> Any:
            global _launches
            _launches += 1
            return kernel(*arguments, **options)

        return launch

    return build
