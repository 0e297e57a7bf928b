"""In MLX's place: code that calls `mx.fast.metal_kernel` runs unchanged on a machine without Metal.

What is replaced, and why:
* `mx.fast.metal_kernel`, by one that simulates.
* `mx.metal.is_available()` and `mx.is_available(mx.gpu)` say True, since code asks them before it makes a kernel.
* `mx.compile` is turned off (and on again): a kernel runs when it is called, and under compile its inputs have no values.

The default device stays the CPU, since nothing else would run on a GPU that is not there: code that asks whether the
default device is the GPU takes its other path.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from .metal_kernel import MetalKernel, metal_kernel

# What install() replaced, newest last: the object, the attribute, what was there.
_replaced: list[tuple[Any, str, Any]] = []
_undo: list[Callable[[], None]] = []


def install() -> None:
    """Stand in for ``mx.fast.metal_kernel`` until ``uninstall()``. Does nothing where it is installed.

    Kernels made before keep what they were made with. Raises ``ImportError`` without MLX.
    """
    if _replaced:
        return
    import mlx.core as mx

    natively = mx.is_available

    def is_available(device: Any) -> bool:
        """Whether a device is available; the GPU is simulated for Metal kernels, by metalsim."""
        return bool(natively(device)) or getattr(device, "type", device) == mx.gpu

    def metal_is_available() -> bool:
        """Whether Metal kernels run: metalsim runs them."""
        return True

    _replace(mx.fast, "metal_kernel", _standing_in)
    _replace(mx.metal, "is_available", metal_is_available)
    _replace(mx, "is_available", is_available)
    if _compiles(mx):
        mx.disable_compile()
        _undo.append(mx.enable_compile)


def uninstall() -> None:
    """Put back what ``install()`` replaced. Kernels made meanwhile still run simulated."""
    while _replaced:
        owner, name, original = _replaced.pop()
        setattr(owner, name, original)
    while _undo:
        _undo.pop()()


@contextmanager
def installed() -> Iterator[None]:
    """Installed inside the ``with``; afterwards as before."""
    before = bool(_replaced)
    install()
    try:
        yield
    finally:
        if not before:
            uninstall()


def _replace(owner: Any, name: str, new: Any) -> None:
    _replaced.append((owner, name, getattr(owner, name)))
    setattr(owner, name, new)


def _standing_in(
    name: str,
    input_names: Sequence[str],
    output_names: Sequence[str],
    source: str,
    header: str = "",
    ensure_row_contiguous: bool = True,
    atomic_outputs: bool = False,
    compile_options: Mapping[str, str] | None = None,
) -> MetalKernel:
    """``mx.fast.metal_kernel``, simulated by metalsim: outputs are always ``mx.array``."""
    kernel = metal_kernel(
        name, input_names, output_names, source, header, ensure_row_contiguous, atomic_outputs, compile_options
    )
    kernel.always_mlx = True
    return kernel


_standing_in.simulated = True  # type: ignore[attr-defined]
_standing_in.__name__ = _standing_in.__qualname__ = "metal_kernel"


def _compiles(mx: Any) -> bool:
    """Whether ``mx.compile`` is on; MLX does not say. A compiled function is traced once for two calls."""
    traced = []

    def count(x: Any) -> Any:
        traced.append(1)
        return x

    function = mx.compile(count)
    function(mx.array(0))
    function(mx.array(0))
    return len(traced) == 1
