"""Who contends: the kit's own implementation, on each of its paths, and every other library that is installed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec

from inferspec.tools.generate import Unusable

OURS = "inferspec"
AGAIN = "inferspec again"
"""Ours a second time, in another process: what the two differ by is noise."""

PATHS = ("avx512", "avx2", "neon", "portable", "mlx")
"""Ways that ours can be made to take (INFERSPEC_CPU), mlx without any CPU kernel."""

MLX = "mlx path"


@dataclass(frozen=True)
class Peer:
    """A library that contends.

    name: as it is shown; packages: whose versions count; module: what must be importable; place: the module of
    `bench.ops` and `bench.models` that runs it; host: peers with the same host share a process; environment: variables
    of that process.
    """

    name: str
    packages: tuple[str, ...]
    module: str
    install: str
    place: str
    host: str
    environment: Mapping[str, str] = field(default_factory=dict)

    @property
    def installed(self) -> bool:
        """Whether it can run here."""
        return find_spec(self.module) is not None

    @property
    def versions(self) -> dict[str, str]:
        """Of its packages, as they are installed."""
        found = {}
        for package in self.packages:
            try:
                found[package] = version(package)
            except PackageNotFoundError:
                continue
        return found


def _ours(name: str, environment: Mapping[str, str]) -> Peer:
    return Peer(name, ("inferspec", "mlx"), "mlx", "pip install inferspec", "ours", name, environment)


def forced(path: str) -> Peer:
    """Ours on one of PATHS."""
    if path not in PATHS:
        raise Unusable(f"--ours-path is {path!r}; it takes {', '.join(PATHS)}")
    return _ours(f"{OURS}, {MLX if path == 'mlx' else path}", {"INFERSPEC_CPU": "off" if path == "mlx" else path})


OTHERS = (
    Peer("mlx", ("mlx",), "mlx", "pip install mlx", "mlx", "mlx"),
    Peer("mlx-lm", ("mlx-lm", "mlx"), "mlx_lm", "pip install mlx-lm", "mlx_lm", "mlx"),
    Peer("torch", ("torch",), "torch", "pip install torch", "torch", "torch"),
    Peer(
        "transformers",
        ("transformers", "torch"),
        "transformers",
        "pip install torch transformers",
        "transformers",
        "torch",
    ),
    Peer(
        "llama.cpp",
        ("llama-cpp-python",),
        "llama_cpp",
        "pip install llama-cpp-python",
        "llama_cpp",
        "llama.cpp",
    ),
)


def has_cpu_kernels() -> bool:
    """Whether ours has kernels that `mlx path` goes without."""
    try:
        return find_spec("inferspec.impl.kernels.cpu") is not None
    except ModuleNotFoundError:
        return False


def chosen(only: Sequence[str], paths: Sequence[str], others: Sequence[Peer]) -> tuple[list[Peer], list[Peer]]:
    """Who contends, and who would if it were installed.

    only: names of peers, all of `others` when empty; ours is always there, twice. paths: further ways of ours.
    Unusable for a name that is none of them.
    """
    known = {peer.name: peer for peer in others}
    if unknown := [name for name in only if name not in known]:
        raise Unusable(f"--peers names {unknown[0]!r}; it takes {', '.join(known)}")
    wanted = [peer for peer in others if not only or peer.name in only]
    ours = [_ours(OURS, {}), _ours(AGAIN, {})]
    ours += [forced(path) for path in dict.fromkeys(paths or (("mlx",) if has_cpu_kernels() else ()))]
    return ours + [peer for peer in wanted if peer.installed], [peer for peer in wanted if not peer.installed]
