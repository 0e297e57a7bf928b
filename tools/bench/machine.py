"""What this machine is, and the two limits of its roofline: how fast it reads memory and how fast it multiplies.

Source: Williams et al. 2009 (Roofline), section 3.
"""

from __future__ import annotations

import os
import platform
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

CACHES = 4
"""Times the last-level cache: the size of what is streamed."""

LEAST_STREAM = 256 * 2**20
REPEATS = 7
SIDE = 1024
"""Of the square matrices whose product is timed."""

_UNKNOWN_CACHE = 32 * 2**20


@dataclass(frozen=True)
class Limits:
    """bandwidth: bytes a second that are read from memory; peak: floating-point operations a second by dtype, a product
    and a sum counted as two. threads: with how many."""

    bandwidth: float
    peak: dict[str, float]
    threads: int

    def bound(self, traffic: float, work: float, dtype: str) -> tuple[str, float]:
        """What bounds an operation of so many bytes and operations, and the fewest seconds it can take."""
        reading, computing = traffic / self.bandwidth, work / self.peak.get(dtype, self.peak["float32"])
        return ("bandwidth", reading) if reading >= computing else ("arithmetic", computing)

    def as_json(self) -> dict[str, Any]:
        """For a result."""
        return asdict(self)


def described() -> dict[str, Any]:
    """The machine in words and sizes."""
    import mlx.core as mx

    return {
        "system": f"{platform.system()} {platform.machine()}",
        "processor": _processor(),
        "cores": os.cpu_count() or 1,
        "memory_bytes": os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"),
        "cache_bytes": cache_bytes(),
        "python": platform.python_version(),
        "device": str(mx.default_device()),
    }


def _processor() -> str:
    if sys.platform == "darwin":
        return _sysctl("machdep.cpu.brand_string") or platform.processor()
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor()
    pairs = (line.split(":", 1) for line in lines if ":" in line)
    named = {name.strip(): value.strip() for name, value in pairs}
    family = ", ".join(f"{key} {named[key]}" for key in ("cpu family", "model", "stepping") if key in named)
    return f"{named.get('model name', platform.processor())} ({family})" if family else platform.processor()


def cache_bytes() -> int:
    """The last-level cache of a core; a guess where the system does not say."""
    sizes = [_bytes(path) for path in Path("/sys/devices/system/cpu/cpu0/cache").glob("index*/size")]
    if sys.platform == "darwin":
        sizes = [int(_sysctl(name) or 0) for name in ("hw.l3cachesize", "hw.perflevel0.l2cachesize", "hw.l2cachesize")]
    return max(sizes, default=0) or _UNKNOWN_CACHE


def _bytes(path: Path) -> int:
    text = path.read_text(encoding="utf-8").strip()
    return int(text.rstrip("KM")) * {"K": 2**10, "M": 2**20}.get(text[-1:], 1)


def _sysctl(name: str) -> str:
    done = subprocess.run(["sysctl", "-n", name], capture_output=True, text=True, check=False)
    return done.stdout.strip()


def limits(threads: int, cache: int, dtypes: Sequence[str]) -> Limits:
    """Measure both; run it in a process that has that many threads.

    Every limit is the best of several runs and ways: what one of them cannot reach says nothing about the machine.
    """
    peak = {"float32": max(_numpy_peak(), _torch_peak("float32", threads))}
    for dtype in sorted(set(dtypes) - {"float32"}):
        # Whatever the dtype, it can be computed in float32.
        peak[dtype] = max(peak["float32"], _torch_peak(dtype, threads))
    return Limits(bandwidth(threads, max(LEAST_STREAM, CACHES * cache)), peak, threads)


def bandwidth(threads: int, size: int) -> float:
    """Bytes a second that so many threads read from a buffer of that size, each its own part of it."""
    parts = np.array_split(np.ones(size // 4, np.float32), threads)
    ways: Sequence[Callable[[np.ndarray], Any]] = (
        lambda part: np.dot(part, part),
        lambda part: part.view(np.int32).max(),
    )
    with ThreadPoolExecutor(threads) as pool:
        fastest = min(_best(lambda way=way: list(pool.map(way, parts))) for way in ways)  # type: ignore[misc]
    return size / fastest


def _numpy_peak() -> float:
    x = np.random.default_rng(0).random((SIDE, SIDE), np.float32)
    return _rate(lambda: x @ x)


def _torch_peak(dtype: str, threads: int) -> float:
    try:
        import torch
    except ImportError:
        return 0.0
    torch.set_num_threads(threads)
    x = torch.rand(SIDE, SIDE).to(getattr(torch, dtype))
    return _rate(lambda: x @ x)


def _rate(multiply: Callable[[], Any]) -> float:
    return 2 * SIDE**3 / _best(multiply)


def _best(do: Callable[[], Any]) -> float:
    """Seconds of the fastest of several runs, after one that does not count."""
    taken = []
    for _ in range(REPEATS + 1):
        begun = time.perf_counter()
        do()
        taken.append(time.perf_counter() - begun)
    return min(taken[1:])
