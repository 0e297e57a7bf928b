"""Where mistakes in speculative decoding are documented."""

from __future__ import annotations

TIRED = "the kind of slip that tired hands make"
MLX_LM = "https://github.com/ml-explore/mlx-lm"
TRANSFORMERS = "https://github.com/huggingface/transformers"
OPENVINO = "https://github.com/openvinotoolkit/openvino.genai/issues/4190"
COUNTING = f"{OPENVINO} (a counter off by one)"
WINDOW = "https://github.com/ml-explore/mlx-swift-lm/issues/424"
