"""What the implementation's own tests share."""

from __future__ import annotations

import mlx.core as mx
import pytest


@pytest.fixture(autouse=True)
def _same_numbers_every_time() -> None:
    """MLX's generator begins with the time of day; what a test draws must not depend on it."""
    mx.random.seed(0)
