"""The layers of transformers' Llama, with the attention that its models take by default."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import SimpleNamespace
from typing import Any

import torch
from transformers import LlamaConfig
from transformers.integrations.sdpa_attention import sdpa_attention_forward
from transformers.models.llama import modeling_llama as llama

from inferspec.tools.bench.ops.torch import use

__all__ = ["ARRAYS", "CONTENDERS", "NOTES", "use"]

ARRAYS = "torch"
NOTES: Mapping[str, str] = {}

Put = Callable[[Any], Any]
Call = Callable[[], Any]


def _rms_norm(a: SimpleNamespace, put: Put) -> Call:
    x, weight, layer = put(a.x), put(a.weight), llama.LlamaRMSNorm(a.dims, a.eps)
    layer.to(weight.dtype).load_state_dict({"weight": weight})
    return lambda: layer(x)


def _swiglu(a: SimpleNamespace, put: Put) -> Call:
    sizes = {"hidden_size": a.dims, "intermediate_size": a.hidden_dims}
    x, layer = put(a.x), llama.LlamaMLP(LlamaConfig(**sizes, num_attention_heads=1, head_dim=2))
    weights = {"gate_proj.weight": put(a.w_gate), "up_proj.weight": put(a.w_up), "down_proj.weight": put(a.w_down)}
    layer.to(x.dtype).load_state_dict(weights)
    return lambda: layer(x)


def _rope(a: SimpleNamespace, put: Put) -> Call:
    rope = {"rope_type": "default", "rope_theta": float(a.base)}
    config = LlamaConfig(head_dim=a.dims, max_position_embeddings=a.max_positions, rope_parameters=rope)
    x, embedding = put(a.x), llama.LlamaRotaryEmbedding(config)
    positions = torch.arange(a.offset, a.offset + x.shape[1])[None]

    def call() -> torch.Tensor:
        cos, sin = embedding(x, positions)
        return llama.apply_rotary_pos_emb(x, x[:, :, :0], cos, sin, unsqueeze_dim=2)[0]

    return call


def _attention(a: SimpleNamespace, put: Put) -> Call:
    query, key, value = put(a.query), put(a.key), put(a.value)
    module: Any = SimpleNamespace(num_key_value_groups=query.shape[1] // key.shape[1], is_causal=True, training=False)
    scaling = query.shape[-1] ** -0.5

    def call() -> torch.Tensor:
        output, _ = sdpa_attention_forward(module, query, key, value, None, scaling=scaling)
        return output.transpose(1, 2)

    return call


CONTENDERS: Mapping[str, Callable[[SimpleNamespace, Put], Call]] = {
    "swiglu": _swiglu,
    "rms_norm": _rms_norm,
    "rope": _rope,
    "flash_attention": _attention,
    "decode_attention": _attention,
}
