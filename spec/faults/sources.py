"""Where mistakes of many components come from."""

from __future__ import annotations

TIRED = "tired engineer"
COURSE_GAP = "what the course's tests never look at"
MLX = "https://github.com/ml-explore/mlx"
MLX_LM = "https://github.com/ml-explore/mlx-lm"
FLASHINFER = "https://github.com/flashinfer-ai/flashinfer"
COLUMN_CONTIGUOUS = f"{MLX}/commit/b925592fb"
FAR_ROWS = "https://github.com/ggml-org/llama.cpp/pull/27064"
"""A kernel with a field of 16 bits for how far rows lie apart."""
BACKWARD_ROWS = f"{MLX}/commit/a1e0e0b56"
"""Reductions and sorts whose rows are found in unsigned arithmetic: a1e0e0b56 and 052d42818."""
SILU_BUG = "https://github.com/skyzh/tiny-llm/commit/db71f15"
HALF_ACCUMULATORS = "https://github.com/pytorch/pytorch/pull/144441"
"""A switch of matrix products on a GPU."""
