"""Where mistakes in generation are documented."""

from __future__ import annotations

TIRED = "the kind of slip that tired hands make"
COURSE_CODE = "https://github.com/skyzh/tiny-llm"
MLX_LM = "https://github.com/ml-explore/mlx-lm"
VLLM_METAL = "https://github.com/vllm-project/vllm-metal"
SEEDS = "seen in code written from the course"
