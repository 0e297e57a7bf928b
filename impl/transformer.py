"""The decoder that Llama and Qwen3 share, in MLX: one class for each job.

Shapes: B batch, L tokens, E hidden size, H_q query heads, H key/value heads, D head dim, V vocabulary. Activations are
in the dtype of the embedding; attention, norms' statistics and rotary angles are computed in float32.

Sources: Touvron et al. 2023 (Llama), section 2.2; the tiny-llm course, week 1 days 3 to 5, week 2 day 1.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import mlx.core as mx

from inferspec.impl.attention import scaled_dot_product_attention
from inferspec.impl.kv_cache import KVCache
from inferspec.impl.linear import silu
from inferspec.impl.model_config import ModelConfig
from inferspec.impl.rms_norm import RMSNorm
from inferspec.impl.rope import RoPE
from inferspec.impl.weights import Weights


class LayerCache(Protocol):
    """What a layer needs of its cache: keys and values B×H×S×D of the tokens before."""

    @property
    def offset(self) -> int: ...

    def update_and_fetch(self, key: mx.array, value: mx.array) -> tuple[mx.array, mx.array]: ...


class Attention:
    """Grouped-query attention with RoPE; Qwen3 also normalises each head's query and key."""

    def __init__(self, name: str, config: ModelConfig, weights: Weights, qk_norm: bool) -> None:
        dim, queries, keys = config.hidden_size, config.num_heads, config.num_kv_heads
        self.head_dim, bias = config.head_dim, config.attention_bias
        self.q_proj = weights.linear(f"{name}.q_proj", queries * self.head_dim, dim, bias)
        self.k_proj = weights.linear(f"{name}.k_proj", keys * self.head_dim, dim, bias)
        self.v_proj = weights.linear(f"{name}.v_proj", keys * self.head_dim, dim, bias)
        self.o_proj = weights.linear(f"{name}.o_proj", dim, queries * self.head_dim, bias)
        self.q_norm = _norm(f"{name}.q_norm", self.head_dim, config, weights) if qk_norm else None
        self.k_norm = _norm(f"{name}.k_norm", self.head_dim, config, weights) if qk_norm else None
        self.rope = RoPE(self.head_dim, config.max_positions, config.rope_theta)

    def __call__(self, x: mx.array, cache: LayerCache | None) -> mx.array:
        """Return B×L×E for x: B×L×E; with a cache, x follows the tokens that the cache holds."""
        offset = cache.offset if cache is not None else 0
        query = self._placed(self._heads(self.q_proj(x)), self.q_norm, offset)
        key = self._placed(self._heads(self.k_proj(x)), self.k_norm, offset)
        value = self._heads(self.v_proj(x)).swapaxes(1, 2)
        if cache is not None:
            key, value = cache.update_and_fetch(key, value)
        # A single token sees everything before it: no mask.
        mask = "causal" if x.shape[1] > 1 else None
        attended = scaled_dot_product_attention(query, key, value, mask=mask)
        return self.o_proj(attended.swapaxes(1, 2).flatten(-2))

    def _heads(self, x: mx.array) -> mx.array:
        """B×L×(H·D) -> B×L×H×D."""
        return mx.unflatten(x, -1, (-1, self.head_dim))

    def _placed(self, x: mx.array, norm: RMSNorm | None, offset: int) -> mx.array:
        """Normalise and turn by position: B×L×H×D -> B×H×L×D."""
        return self.rope(x if norm is None else norm(x), offset).swapaxes(1, 2)


class MLP:
    """down(silu(gate(x)) ∘ up(x))."""

    def __init__(self, name: str, config: ModelConfig, weights: Weights) -> None:
        dim, hidden, bias = config.hidden_size, config.intermediate_size, config.mlp_bias
        self.gate_proj = weights.linear(f"{name}.gate_proj", hidden, dim, bias)
        self.up_proj = weights.linear(f"{name}.up_proj", hidden, dim, bias)
        self.down_proj = weights.linear(f"{name}.down_proj", dim, hidden, bias)

    def __call__(self, x: mx.array) -> mx.array:
        """Return B×L×E for x: B×L×E."""
        return self.down_proj(silu(self.gate_proj(x)) * self.up_proj(x))


class Block:
    """Attention and MLP, each behind its norm and added to what came in."""

    def __init__(self, name: str, config: ModelConfig, weights: Weights, qk_norm: bool) -> None:
        self.input_layernorm = _norm(f"{name}.input_layernorm", config.hidden_size, config, weights)
        self.self_attn = Attention(f"{name}.self_attn", config, weights, qk_norm)
        post_attention = f"{name}.post_attention_layernorm"
        self.post_attention_layernorm = _norm(post_attention, config.hidden_size, config, weights)
        self.mlp = MLP(f"{name}.mlp", config, weights)

    def __call__(self, x: mx.array, cache: LayerCache | None) -> mx.array:
        """Return B×L×E for x: B×L×E."""
        x = x + self.self_attn(self.input_layernorm(x), cache)
        return x + self.mlp(self.post_attention_layernorm(x))


class Decoder:
    """Embedding, blocks, norm and head: tokens in, logits out.

    config: the dict of a `config.json`; weights: tensor name -> array, by Hugging Face's names, dense or packed by
    MLX (`X.weight`, `X.scales`, `X.biases`, with `config["quantization"]`). A tied model may carry an `lm_head` of
    its own, as some checkpoints do: it is not used.

    ValueError or TypeError, naming the field or tensor, for a config that asks for what is not implemented and for a
    tensor that is missing, misshaped or has no place.
    """

    def __init__(self, config: Mapping[str, Any], weights: Mapping[str, mx.array], *, qk_norm: bool) -> None:
        self.config = ModelConfig.read(config)
        vocabulary, dim = self.config.vocab_size, self.config.hidden_size
        source = Weights(weights, self.config)
        self.embed_tokens = source.embedding("model.embed_tokens", vocabulary, dim)
        names = [f"model.layers.{layer}" for layer in range(self.config.num_layers)]
        self.layers = [Block(name, self.config, source, qk_norm) for name in names]
        self.norm = _norm("model.norm", dim, self.config, source)
        if self.config.tied:
            source.ignore("lm_head")
            self._head = self.embed_tokens.as_linear
        else:
            self._head = source.linear("lm_head", vocabulary, dim)
        source.finish()

    def __call__(self, tokens: mx.array, cache: Sequence[LayerCache] | None = None) -> mx.array:
        """Return the logits of every token: B×L×V in the dtype of the embedding, for ids B×L.

        cache: what `make_cache` returned; the tokens follow those that it holds, and it then holds them too. Without
        one the tokens are a whole sequence. ValueError for ids outside the vocabulary, tokens that are not B×L and a
        cache of another number of layers; TypeError for ids that are not integers.
        """
        if tokens.ndim != 2:
            raise ValueError(f"tokens are {tokens.shape}; they take B×L")
        if cache is not None and len(cache) != len(self.layers):
            raise ValueError(f"cache has {len(cache)} layers; the model has {len(self.layers)}")
        x = self.embed_tokens(tokens)
        for layer, held in zip(self.layers, cache if cache is not None else [None] * len(self.layers), strict=True):
            x = layer(x, held)
        return self._head(self.norm(x))

    def make_cache(self) -> list[KVCache]:
        """Return an empty cache for one sequence, or for a batch of sequences of one length: one entry per layer."""
        return [KVCache() for _ in self.layers]


def _norm(name: str, dims: int, config: ModelConfig, weights: Weights) -> RMSNorm:
    return RMSNorm(dims, weights.vector(f"{name}.weight", dims), config.eps)
