"""What the implementation's own tests share."""

from __future__ import annotations

from collections.abc import Iterator

import mlx.core as mx
import pytest

from inferspec.impl.kernels import cpu


@pytest.fixture(autouse=True)
def _same_numbers_every_time() -> None:
    """MLX's generator begins with the time of day; what a test draws must not depend on it."""
    mx.random.seed(0)


@pytest.fixture
def on_the_cpu() -> Iterator[None]:
    """MLX's default device is the CPU, which on a Mac it is not."""
    before = mx.default_device()
    mx.set_default_device(mx.cpu)
    yield
    mx.set_default_device(before)


@pytest.fixture
def cpu_kernels(on_the_cpu: None) -> None:
    """The CPU kernels run; skips where they cannot be built."""
    if reason := cpu.why_not():
        pytest.skip(reason)
