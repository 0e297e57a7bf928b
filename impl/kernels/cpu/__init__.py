"""Kernels for CPUs in plain C++, called on the memory of MLX's arrays: where there is no Metal, these are fast.

`source/` is built once by the machine's C++ compiler, for the best instruction set that the processor has (`library`),
into the cache that metalsim has too. Each launcher here takes arguments that `inferspec.impl` has checked.
"""

from inferspec.impl.kernels.cpu.library import Unavailable, available, load, path, paths, threads, used, why_not

__all__ = ["Unavailable", "available", "load", "path", "paths", "threads", "used", "why_not"]
