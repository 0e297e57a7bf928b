"""Llama, in MLX (Touvron et al. 2023)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import mlx.core as mx

from inferspec.impl.model_config import ModelConfig
from inferspec.impl.transformer import Decoder


class Llama(Decoder):
    """A Llama of any size: `Llama(config, weights)(tokens)` -> logits. See `Decoder`.

    config: the dict of a `config.json`. Raises what `ModelConfig.read` and `Decoder` raise.
    """

    def __init__(self, config: Mapping[str, Any], weights: Mapping[str, mx.array]) -> None:
        super().__init__(ModelConfig.read(config), weights, qk_norm=False)
