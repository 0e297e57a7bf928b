"""The small calls that an X-ray looks into; other operations are shown on their plainest call."""

from __future__ import annotations

from typing import Any

import numpy as np

from inferspec.conformance.calls import Call
from inferspec.spec.contract import Arguments
from inferspec.spec.llama import Llama
from inferspec.spec.qwen3 import Qwen3
from inferspec.spec.transformer import Decoder


def _array(*rows: object) -> np.ndarray:
    return np.array(rows, np.float32)


def _counted(*shape: int, step: float = 1.0) -> np.ndarray:
    """0, step, 2 · step … in a shape, so that every number tells its place."""
    return (np.arange(np.prod(shape)) * step).astype(np.float32).reshape(shape)


_x = _array([1.0, 2.0, -1.0], [0.5, -2.0, 3.0])
_query = _array([[1.0, 0.0], [0.0, 1.0]], [[2.0, 0.0], [1.0, 1.0]])[None]
_key = _array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])[None]
_value = _array([[10.0, 0.0], [0.0, 10.0], [5.0, 5.0]])[None]
_attention = {"query": _query, "key": _key, "value": _value, "mask": "causal"}
"""Two query heads on one key/value head, two queries at the end of three keys."""

_turned = np.roll(np.eye(4, dtype=np.float32), 1, axis=1)
_table = _counted(5, 3, step=0.5)
_steps: tuple[tuple[str, dict[str, Any]], ...] = (
    ("update_and_fetch", {"key": _counted(1, 1, 2, 2), "value": -_counted(1, 1, 2, 2)}),
    ("update_and_fetch", {"key": _counted(1, 1, 1, 2) + 7, "value": -_counted(1, 1, 1, 2) - 7}),
    ("rewind", {"n": 2}),
    ("offset", {}),
)
_pages = _counted(3, 1, 2, 2)
_config = {
    "hidden_size": 4,
    "num_hidden_layers": 1,
    "intermediate_size": 3,
    "num_attention_heads": 2,
    "num_key_value_heads": 1,
    "head_dim": 2,
    "rms_norm_eps": 1e-5,
    "vocab_size": 5,
    "tie_word_embeddings": True,
    "rope_theta": 10000.0,
    "max_position_embeddings": 16,
}


def _model(kind: str, decoder: Decoder) -> dict[str, Any]:
    """A model that is small enough to be read: one layer, two query heads on one key/value head, five words."""
    config = {**_config, "model_type": kind}
    random = np.random.default_rng(0)
    shapes = decoder.shapes(Arguments(config=config, weights={}))
    return {
        "config": config,
        "weights": {name: random.normal(size=shape).astype(np.float32) for name, shape in shapes.items()},
    }


_llama, _qwen3 = _model("llama", Llama()), _model("qwen3", Qwen3())
_tokens = np.array([[3, 0, 4]], np.int32)
_chunks = (_tokens[:, :2], _tokens[:, 2:])

_CALLS = (
    Call("linear", {"x": _x, "weight": _counted(2, 3), "bias": _array(100.0, 200.0)}),
    Call("silu", {"x": _array(-20.0, -1.0, 0.0, 1.0, 20.0)}),
    Call("softmax", {"x": _array([1.0, 2.0, 3.0], [1000.0, 1000.0, -np.inf])}),
    Call("scaled_dot_product_attention", _attention),
    Call("flash_attention", _attention),
    Call("causal_mask", {"L": 2, "S": 4, "dtype": "float32"}),
    Call(
        "MultiHeadAttention",
        {"hidden_size": 4, "num_heads": 2}
        | {"wq": np.eye(4, dtype=np.float32), "wk": np.eye(4, dtype=np.float32), "wv": _turned}
        | {"wo": np.eye(4, dtype=np.float32)}
        | dict.fromkeys(("query", "key", "value"), _counted(1, 3, 4, step=0.1)),
    ),
    Call("RoPE", {"dims": 4, "max_positions": 16, "x": _counted(1, 2, 1, 4) + 1, "offset": 3}),
    Call("RMSNorm", {"dims": 3, "weight": _array(1.0, 10.0, 100.0), "x": _x}),
    Call(
        "SwiGLU",
        {"dims": 3, "hidden_dims": 2, "w_gate": _counted(2, 3), "w_up": _counted(2, 3, step=-0.5)}
        | {"w_down": _counted(3, 2), "x": _x},
    ),
    Call("Embedding", {"vocab_size": 5, "dims": 3, "weight": _table, "tokens": np.array([4, 0, 2], np.int32)}),
    Call("Embedding.as_linear", {"vocab_size": 5, "dims": 3, "weight": _table, "x": _x}),
    Call(
        "paged_attention",
        {"query": _query[:, :, 1:], "key_pages": _pages, "value_pages": 10 * _pages, "page_size": 2}
        | {"block_table": np.array([[2, 0]], np.int32), "context_lens": np.array([3], np.int32)},
    ),
    Call("Llama", {**_llama, "tokens": _tokens}),
    Call("Llama.incremental", {**_llama, "chunks": _chunks}),
    Call("Qwen3", {**_qwen3, "tokens": _tokens}),
    Call("Qwen3.incremental", {**_qwen3, "chunks": _chunks}),
    Call("load", {**_llama, "form": "folder", "tokens": ((3, 0, 4),)}),
    Call("KVCache", {"steps": _steps}),
    Call("StaticKVCache", {"max_len": 4, "steps": _steps}),
    Call("filter_logits", {"logits": _array([2.0, 1.0, 2.0, -1.0, 0.0]), "top_k": 3, "top_p": 0.8}),
    Call(
        "Sampler",
        {"temperature": 0.5, "top_k": 3, "logits": _array([2.0, 1.0, 2.0, -1.0, 0.0]), "uniform": _array(0.6)},
    ),
)
EXAMPLES = {call.operation: call for call in _CALLS}
"""Operation -> the call."""
