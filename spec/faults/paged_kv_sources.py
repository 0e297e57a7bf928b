"""Where mistakes in paged caches are documented."""

from __future__ import annotations

TENSORRT = "https://github.com/NVIDIA/TensorRT-LLM/pull"
VLLM = "https://github.com/vllm-project/vllm/pull"
VLLM_METAL = "https://github.com/vllm-project/vllm-metal/commit"
MINIVLLM = "https://github.com/Wenyueh/MinivLLM/pull/84"
INVARIANTS = "tiny-llm course, week 3 day 2, Correctness Invariants"
