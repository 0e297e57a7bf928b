"""Where mistakes in key/value caches are documented."""

from __future__ import annotations

MLX_LM = "https://github.com/ml-explore/mlx-lm"
LOGICAL_OFFSET = f"{MLX_LM}/commit/eb98ff72"
