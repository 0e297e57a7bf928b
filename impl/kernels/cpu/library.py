"""The CPU kernels as a library: which instruction set it is built for, the building, and how many threads it may use.

`INFERSPEC_CPU` names the path (amx, avx512, avx2, neon or portable; off for none) in place of the best that the processor has,
`INFERSPEC_THREADS` the number of threads in place of the number of cores.
"""

from __future__ import annotations

import ctypes
import os
import platform
import subprocess
import warnings
from collections.abc import Mapping
from functools import cache
from pathlib import Path

import mlx.core as mx

from inferspec import compiler
from inferspec.impl.arguments import whole

SOURCE = Path(__file__).resolve().parent / "source"
ABI = 2
"""Of source/exports.cpp."""

FLAGS = ("-std=c++17", "-O3", "-fno-math-errno", "-pthread")
MACHINES: Mapping[str, str] = {"x86_64": "x86", "amd64": "x86", "aarch64": "arm", "arm64": "arm"}
_AVX2 = ("avx2", "fma", "f16c", "bmi2", "movbe")
_AVX512 = (*_AVX2, "avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl")
PATHS: Mapping[str, tuple[str, tuple[str, ...], tuple[str, ...]]] = {
    "amx": ("x86", (*_AVX512, "amx_tile", "amx_bf16"), ("-march=x86-64-v4", "-mamx-tile", "-mamx-bf16")),
    "avx512": ("x86", _AVX512, ("-march=x86-64-v4",)),
    "avx2": ("x86", _AVX2, ("-march=x86-64-v3",)),
    "neon": ("arm", (), ("-march=armv8-a",)),
    "portable": ("", (), ("-DINFERSPEC_PORTABLE",)),
}
"""Name -> the kind of processor ("": any), what it must have, and the compiler's flags; the best first."""
VNNI = {"amx", "avx512"}
"""The paths that use AVX-512's sums of products of bytes, where the processor has them (avx512_vnni)."""
OFF = "off"


class Unavailable(RuntimeError):
    """There are no CPU kernels here; the message says why, and what helps."""


def available() -> bool:
    """Whether the kernels run here: MLX's default device is the CPU, and the library is there or could be built.

    Where it cannot be built, a warning says so once. Raises ValueError for an INFERSPEC_CPU that names no path of this
    processor.
    """
    return mx.default_device() == mx.Device(mx.cpu) and _found(os.environ.get("INFERSPEC_CPU", "")) is not None


def why_not() -> str:
    """Why there are no kernels here, in one line; empty where there are."""
    if mx.default_device() != mx.Device(mx.cpu):
        return "the CPU kernels take MLX's default device to be the CPU"
    try:
        load()
    except (Unavailable, ValueError) as error:
        return str(error)
    return ""


def used() -> str:
    """`cpu` and the path, for certificates, where the library was loaded to launch a kernel; else empty."""
    return f"cpu {path()}" if _loaded.cache_info().currsize else ""


def load() -> ctypes.CDLL:
    """The library of the path taken, built if it is not there yet.

    Raises Unavailable without a compiler, or where INFERSPEC_CPU is off; ValueError for an INFERSPEC_CPU that names no
    path of this processor.
    """
    return _loaded(path())


def path() -> str:
    """The path taken: that of INFERSPEC_CPU, else the best of this processor. Raises as `load`, but builds nothing."""
    return _path(os.environ.get("INFERSPEC_CPU", ""))


def paths() -> tuple[str, ...]:
    """The paths that this processor can take, the best first."""
    has = features()
    kind = MACHINES.get(platform.machine().lower(), "")
    return tuple(name for name, (machine, needs, _) in PATHS.items() if machine in ("", kind) and has.issuperset(needs))


def threads(asked: int | None = None) -> int:
    """How many threads a kernel may use: as asked, else INFERSPEC_THREADS, else the number of cores, 1 under pytest-xdist.

    Raises ValueError for less than 1, TypeError for what is no integer.
    """
    if asked is not None:
        return whole("threads", asked, 1)
    return _threads(os.environ.get("INFERSPEC_THREADS", ""), "PYTEST_XDIST_WORKER" in os.environ)


def check(status: int) -> None:
    """Raise MemoryError when a kernel says that it got no memory."""
    if status:
        raise MemoryError("a CPU kernel got no memory to work in")


def flags(name: str) -> tuple[str, ...]:
    """The compiler's flags for a path."""
    vnni = ("-mavx512vnni",) if name in VNNI and "avx512_vnni" in features() else ()
    return (*FLAGS, *PATHS[name][2], *vnni)


def units() -> dict[str, str]:
    """The translation units by file name; their headers lie in SOURCE."""
    return {file.name: file.read_text(encoding="utf-8") for file in sorted(SOURCE.glob("*.cpp"))}


@cache
def features() -> frozenset[str]:
    """What an x86 processor has, as Linux names it; nothing for other processors, whose paths need nothing special."""
    if MACHINES.get(platform.machine().lower()) != "x86":
        return frozenset()
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:  # macOS
        asked = ["sysctl", "-n", "machdep.cpu.features", "machdep.cpu.leaf7_features"]
        told = subprocess.run(asked, capture_output=True, text=True).stdout.lower()
        return frozenset(told.split())
    return frozenset(next((line.split(":")[1] for line in lines if line.startswith("flags")), "").split())


@cache
def _path(named: str) -> str:
    if named == OFF:
        raise Unavailable("INFERSPEC_CPU is off")
    here = paths()
    if not named:
        return here[0]
    if named not in PATHS:
        raise ValueError(f"INFERSPEC_CPU is {named!r}; it takes {', '.join(PATHS)} or {OFF}")
    if named not in here:
        raise ValueError(f"INFERSPEC_CPU is {named!r}, which this processor does not have; it has {', '.join(here)}")
    return named


@cache
def _loaded(name: str) -> ctypes.CDLL:
    try:
        built = compiler.shared_library(
            units(), flags(name), includes=[SOURCE], label=f"inferspec_cpu_{name}", link_flags=["-pthread"]
        )
    except (compiler.NoCompiler, compiler.CompileError, OSError) as error:
        raise Unavailable(str(error)) from error
    library = ctypes.CDLL(str(built))
    if library.inferspec_abi() != ABI:
        raise Unavailable(f"{built} is of another version: delete it")
    return library


@cache
def _found(named: str) -> ctypes.CDLL | None:
    """The library, or None after one warning; without one where it was turned off."""
    if named == OFF:
        return None
    try:
        return _loaded(_path(named))
    except Unavailable as error:
        warnings.warn(f"MLX's own, slower CPU operations stand in for Inferspec's kernels: {error}", stacklevel=3)
        return None


@cache
def _threads(named: str, shared: bool) -> int:
    if named:
        try:
            return whole("INFERSPEC_THREADS", int(named), 1)
        except ValueError:
            raise ValueError(f"INFERSPEC_THREADS is {named!r}; it takes an integer of 1 or more") from None
    if shared:
        return 1
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
