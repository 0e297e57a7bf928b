"""Runs Metal kernels on a CPU and checks them: any kernel written for `mx.fast.metal_kernel`, and whole `.metal` files.

    import numpy as np
    from inferspec.tools import metalsim

    double = metalsim.metal_kernel("double", ["x"], ["out"], "out[thread_position_in_grid.x] = 2 * x[thread_position_in_grid.x];")
    x = np.arange(10, dtype=np.float32)
    with metalsim.settings(mode="check"):  # races, bounds, barriers …: `KernelError` names file and line
        (out,) = double(
            inputs=[x], grid=(10, 1, 1), threadgroup=(32, 1, 1), output_shapes=[x.shape], output_dtypes=[x.dtype]
        )

`install()` puts it in the place of `mx.fast.metal_kernel`, so that code which calls that runs unchanged. What is shown is
what the source says, on an exact model of threads, SIMD-groups and barriers; not speed, nor a device's last digits.

Check mode rather misses a mistake than accuses a right kernel. It does not see:

* what the launch does not reach: it follows the inputs given, in the schedule given.
* of private memory: structures that nobody has set and arrays inside of them; a vector read as a whole of which a part was
  set; variables declared directly in a `switch` or in a `constexpr` function; how far an overrun goes beyond 64 bytes.
* a `simdgroup_matrix` that nobody has set, while it is only read through `thread_elements()`: products and stores tell.
* signed sums, differences and negations that overflow, as hashes and counters do on purpose; products are told.
* some races past atomic fences: lanes that meet at a barrier share what each of them released and observed, and a
  compare-and-exchange that fails counts as one that wrote.
"""

from inferspec.compiler import CompileError, NoCompiler

from .errors import KernelError, Refused, describe
from .install import install, installed, uninstall
from .library import Kernel, Library
from .metal_kernel import MetalKernel, metal_kernel
from .preprocess import mlx_headers
from .reports import Access, Finding, Report, Site
from .runtime import Mode, Schedule
from .settings import Settings, configure, observe, settings

__all__ = [
    "Access",
    "CompileError",
    "Finding",
    "Kernel",
    "KernelError",
    "Library",
    "MetalKernel",
    "Mode",
    "NoCompiler",
    "Refused",
    "Report",
    "Schedule",
    "Settings",
    "Site",
    "configure",
    "describe",
    "install",
    "installed",
    "metal_kernel",
    "mlx_headers",
    "observe",
    "settings",
    "uninstall",
]
