"""Qwen3, in MLX (Yang et al. 2025): a Llama whose queries and keys are normalised head by head, without biases."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import mlx.core as mx

from inferspec.impl.transformer import Decoder


class Qwen3(Decoder):
    """A dense Qwen3 of any size: `Qwen3(config, weights)(tokens)` -> logits. See `Decoder`.

    ValueError for a config that asks for biases, which no Qwen3 has.
    """

    def __init__(self, config: Mapping[str, Any], weights: Mapping[str, mx.array]) -> None:
        for name in ("attention_bias", "mlp_bias"):
            if config.get(name):
                raise ValueError(f"{name} is {config[name]!r}; Qwen3 takes none")
        super().__init__(config, weights, qk_norm=True)
