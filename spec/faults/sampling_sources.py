"""Where mistakes in samplers are documented."""

from __future__ import annotations

MLX_LM = "https://github.com/ml-explore/mlx-lm"
VLLM = "https://github.com/vllm-project/vllm"
VLLM_METAL = "https://github.com/vllm-project/vllm-metal"
COURSE_REPO = "https://github.com/skyzh/tiny-llm"
SEEN = "what goes wrong in code written from the course's texts"
