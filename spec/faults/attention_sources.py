"""Where mistakes in attention are documented."""

from __future__ import annotations

MLX = "https://github.com/ml-explore/mlx/"
MLX_LM = "https://github.com/ml-explore/mlx-lm/"
TINY_LLM = "https://github.com/skyzh/tiny-llm/"
FLASHINFER = "https://github.com/flashinfer-ai/flashinfer/"
FLASH_ATTENTION = "https://github.com/Dao-AILab/flash-attention/"
ENGINEER = "tired engineer"
