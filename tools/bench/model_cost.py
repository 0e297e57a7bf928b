"""What a token of a model costs at least: weights and keys that are read, products that are made."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from inferspec.impl.model_config import ModelConfig

HEADS = ("model.embed_tokens.", "lm_head.")


def cost(
    config: ModelConfig, weights: Mapping[str, np.ndarray], prompt: int, tokens: int
) -> dict[str, tuple[float, float]]:
    """Bytes and floating-point operations of a token of the prompt, and of an id after it: phase -> (bytes, operations).

    In a prompt of P tokens the weights are read once, and the head makes the logits of the last one alone. Each id
    reads all weights, and the keys and values of what is before it. An embedding counts as a head where it is one.
    """
    stored = {name: x.nbytes for name, x in weights.items()}
    body = sum(size for name, size in stored.items() if not name.startswith(HEADS))
    heads = HEADS[0] if config.tied else HEADS[1]
    head = sum(size for name, size in stored.items() if name.startswith(heads))
    queries, keys = config.num_heads * config.head_dim, config.num_kv_heads * config.head_dim
    products = config.num_layers * (
        config.hidden_size * (2 * queries + 2 * keys) + 3 * config.hidden_size * config.intermediate_size
    )
    last = config.hidden_size * config.vocab_size
    item = next(x.dtype.itemsize for name, x in weights.items() if name == "model.norm.weight")

    def attention(seen: float) -> tuple[float, float]:
        """Of one query that sees so many keys, in all layers."""
        return 2 * seen * keys * item * config.num_layers, 4 * seen * queries * config.num_layers

    _, within = attention((prompt + 1) / 2)
    read, computed = attention(prompt + tokens / 2)
    return {
        "prefill": ((body + head) / prompt, 2 * (products + last / prompt) + within),
        "decode": (body + head + read, 2 * (products + last) + computed),
    }
