"""Where mistakes in batches are documented."""

from __future__ import annotations

TINY_LLM = "https://github.com/skyzh/tiny-llm/commit"
MLX_LM = "https://github.com/ml-explore/mlx-lm"
VLLM_METAL = "https://github.com/vllm-project/vllm-metal/commit"
TIRED = "what a tired author writes"
