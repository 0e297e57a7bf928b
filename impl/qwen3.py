"""Qwen3, in MLX (Yang et al. 2025): a Llama whose queries and keys are normalised head by head, without biases."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import mlx.core as mx

from inferspec.impl.model_config import ModelConfig
from inferspec.impl.transformer import Decoder


class Qwen3(Decoder):
    """A dense Qwen3 of any size: `Qwen3(config, weights)(tokens)` -> logits. See `Decoder`.

    config: the dict of a `config.json`. Raises what `ModelConfig.read` and `Decoder` raise, and ValueError for a config
    that asks for biases, which no Qwen3 has.
    """

    def __init__(self, config: Mapping[str, Any], weights: Mapping[str, mx.array]) -> None:
        about = ModelConfig.read(config)
        for name in ("attention_bias", "mlp_bias"):
            if getattr(about, name):
                raise ValueError(f"{name} is True; Qwen3 takes none")
        super().__init__(about, weights, qk_norm=True)
