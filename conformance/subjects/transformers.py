"""Hugging Face transformers: the norm, rotary embedding, MLP and attention functions of its Llama."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import torch
import transformers
from transformers import LlamaConfig
from transformers.activations import ACT2FN
from transformers.models.llama import modeling_llama as llama

NAME = "transformers"
VERSION = transformers.__version__
ARRAYS = "torch"
WAIVERS = "transformers.toml"
PRECISION = {"attention": "native", "rope": "native", "mlp": "native"}
ENVELOPE = {
    "attention": {"leading_dims": [(1,), (2,)], "masks": ["none", "-inf", "lowest", "additive"]},
    "rope": {"forms": ["split-half"], "partial": [False]},
}


def silu(x: torch.Tensor) -> torch.Tensor:
    return ACT2FN["silu"](x)


def scaled_dot_product_attention(
    query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, *, scale: float | None = None, mask: Any = None
) -> torch.Tensor:
    if isinstance(mask, str):
        raise ValueError(f"mask is {mask!r}; it takes None or an additive mask")
    module: Any = SimpleNamespace(num_key_value_groups=query.shape[-3] // key.shape[-3], training=False)
    scaling = query.shape[-1] ** -0.5 if scale is None else scale
    output, _ = llama.eager_attention_forward(module, query, key, value, mask, scaling)
    return output.transpose(1, 2)


def _positions(offset: Any, length: int) -> torch.Tensor:
    """The position ids of one row, as a model makes them."""
    if isinstance(offset, slice):
        if offset.stop - offset.start != length:
            raise ValueError(f"offset is {offset} for {length} tokens")
        return torch.arange(offset.start, offset.stop)
    return torch.arange(length) + (offset or 0)


class RoPE:
    def __init__(self, dims: int, max_positions: int, base: float = 10000, traditional: bool = False) -> None:
        config = LlamaConfig(
            head_dim=dims,
            max_position_embeddings=max_positions,
            rope_parameters={"rope_type": "default", "rope_theta": float(base)},
        )
        self.embedding = llama.LlamaRotaryEmbedding(config)

    def __call__(self, x: torch.Tensor, offset: Any = None) -> torch.Tensor:
        rows = offset if isinstance(offset, list) else [offset] * len(x)
        if len(rows) != len(x):
            raise ValueError(f"offset has {len(rows)} slices for {len(x)} rows")
        positions = torch.stack([_positions(row, x.shape[1]) for row in rows]) if rows else torch.zeros(0, x.shape[1])
        cos, sin = self.embedding(x, positions)
        return llama.apply_rotary_pos_emb(x, x, cos, sin, unsqueeze_dim=2)[0]


class RMSNorm:
    def __init__(self, dims: int, weight: torch.Tensor, eps: float = 1e-5) -> None:
        self.layer = llama.LlamaRMSNorm(dims, eps)
        self.layer.to(weight.dtype).load_state_dict({"weight": weight})

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        return self.layer(x)


class SwiGLU:
    def __init__(
        self, dims: int, hidden_dims: int, w_gate: torch.Tensor, w_up: torch.Tensor, w_down: torch.Tensor
    ) -> None:
        self.layer = llama.LlamaMLP(
            LlamaConfig(hidden_size=dims, intermediate_size=hidden_dims, num_attention_heads=1, head_dim=2)
        )
        weights = {"gate_proj.weight": w_gate, "up_proj.weight": w_up, "down_proj.weight": w_down}
        self.layer.to(w_gate.dtype).load_state_dict(weights)

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        return self.layer(x)
