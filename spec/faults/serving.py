"""Where mistakes of engines and of schedulers were seen."""

VLLM = "https://github.com/vllm-project/vllm"
METAL = "https://github.com/vllm-project/vllm-metal/commit"
MLX_LM = "https://github.com/ml-explore/mlx-lm/commit"
NANO = "https://github.com/GeeeekExplorer/nano-vllm"
COURSE = "https://github.com/skyzh/tiny-llm/commit"
POST = "nano-vLLM post, parts 2, 3 and 5"
