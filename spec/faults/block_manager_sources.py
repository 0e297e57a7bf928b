"""Where mistakes in block managers are documented."""

from __future__ import annotations

VLLM = "https://github.com/vllm-project/vllm/pull"
NANO = "https://github.com/GeeeekExplorer/nano-vllm"
SGLANG = "https://github.com/sgl-project/sglang"
POST = "nano-vLLM post, parts 1 and 4"
