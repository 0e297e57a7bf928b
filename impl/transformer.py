"""The decoder that Llama and Qwen3 share, in MLX: one class for each job. Where the CPU kernels run, they compute whole
passes in its place (`native`).

Shapes: B batch, L tokens, E hidden size, H_q query heads, H key/value heads, D head dim, V vocabulary. Activations are
in the dtype of the embedding; attention, norms' statistics and rotary angles are computed in float32.

Sources: Touvron et al. 2023 (Llama), section 2.2; the tiny-llm course, week 1 days 3 to 5, week 2 day 1.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property, partial
from typing import Any, Protocol

import mlx.core as mx

from inferspec.impl.attention import scaled_dot_product_attention
from inferspec.impl.kernels import cpu, metal
from inferspec.impl.kv_cache import KVCache
from inferspec.impl.linear import silu
from inferspec.impl.model_config import ModelConfig
from inferspec.impl.native import NativeDecoder
from inferspec.impl.paged_batch import PagedBatch, PagedLayer, Span
from inferspec.impl.paged_kv import PagePool
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
        frequencies = config.rope_scaling.frequencies(self.head_dim, config.rope_theta)
        self.rope = RoPE(self.head_dim, config.max_positions, frequencies=frequencies)
        self.scale = config.attention_scale

    def __call__(self, x: mx.array, cache: LayerCache | PagedLayer | None) -> mx.array:
        """Return B×L×E for x: B×L×E; with a cache, x follows the tokens that the cache holds."""
        query = self._heads(self.q_proj(x), self.q_norm)
        key = self._heads(self.k_proj(x), self.k_norm)
        value = self._heads(self.v_proj(x), None)
        attend = cache.attend if isinstance(cache, PagedLayer) else partial(_attend, cache)
        return self.o_proj(attend(query, key, value, self.rope, self.scale).flatten(-2))

    def _heads(self, x: mx.array, norm: RMSNorm | None) -> mx.array:
        """B×L×(H·D) -> B×L×H×D, normalised."""
        heads = mx.unflatten(x, -1, (-1, self.head_dim))
        return heads if norm is None else norm(heads)


def _attend(
    cache: LayerCache | None, query: mx.array, key: mx.array, value: mx.array, rope: RoPE, scale: float
) -> mx.array:
    """B×L×H_q×D, for queries of that shape and keys and values B×L×H×D, after those in the cache."""
    offset = cache.offset if cache is not None else 0
    query, key, value = (x.swapaxes(1, 2) for x in (rope(query, offset), rope(key, offset), value))
    if cache is not None:
        key, value = cache.update_and_fetch(key, value)
    # A single token sees everything before it: no mask.
    mask = "causal" if query.shape[2] > 1 else None
    return scaled_dot_product_attention(query, key, value, scale=scale, mask=mask).swapaxes(1, 2)


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

    def __call__(self, x: mx.array, cache: LayerCache | PagedLayer | None) -> mx.array:
        """Return B×L×E for x: B×L×E."""
        x = x + self.self_attn(self.input_layernorm(x), cache)
        return x + self.mlp(self.post_attention_layernorm(x))


class Decoder:
    """Embedding, blocks, norm and head: tokens in, logits out.

    weights: tensor name -> array, by Hugging Face's names, dense or packed by MLX (`X.weight`, `X.scales`, `X.biases`,
    with `quantization` in the config). A tied model may carry an `lm_head` of its own, as some checkpoints do: it is
    not used. qk_norm: whether queries and keys are normalised head by head.

    ValueError or TypeError, naming the tensor, for one that is missing, misshaped or has no place.
    """

    def __init__(self, config: ModelConfig, weights: Mapping[str, mx.array], *, qk_norm: bool) -> None:
        self.config = config
        vocabulary, dim = self.config.vocab_size, self.config.hidden_size
        source = Weights(weights, self.config)
        self.embed_tokens = source.embedding("model.embed_tokens", vocabulary, dim)
        names = [f"model.layers.{layer}" for layer in range(self.config.num_layers)]
        self.layers = [Block(name, self.config, source, qk_norm) for name in names]
        self.norm = _norm("model.norm", dim, self.config, source)
        if self.config.tied:
            source.ignore("lm_head")
        self.head = self.embed_tokens if self.config.tied else source.linear("lm_head", vocabulary, dim)
        source.finish()

    @property
    def dtype(self) -> mx.Dtype:
        """Of the activations, and so of keys and values."""
        return self.embed_tokens.dtype

    def __call__(self, tokens: mx.array, cache: Sequence[LayerCache] | None = None) -> mx.array:
        """Return the logits of every token: B×L×V in the dtype of the embedding, for ids B×L.

        cache: what `make_cache` returned; the tokens follow those that it holds, and it then holds them too. Without
        one the tokens are a whole sequence. ValueError for ids outside the vocabulary, tokens that are not B×L and a
        cache of another number of layers; TypeError for ids that are not integers.
        """
        self._check(tokens, cache)
        native = self._native_for(tokens, cache)
        return self.logits(self.hidden(tokens, cache)) if native is None else native.logits(tokens, cache)

    def prefill(self, tokens: mx.array, cache: Sequence[LayerCache]) -> None:
        """Put tokens into the cache: a call whose logits nobody wants, and which computes none. Raises as a call does."""
        self._check(tokens, cache)
        native = self._native_for(tokens, cache)
        if native is None:
            self.hidden(tokens, cache)
        else:
            native.prefill(tokens, cache)

    def paged(self, spans: Sequence[Span], pools: Sequence[PagePool], rows: Sequence[int]) -> mx.array:
        """Return the logits R×V of some rows of the tokens of all spans, after putting those into the pages.

        spans: one or more, each of one token or more, whose ids, positions and pages are right; pools: one for each
        layer; rows: which of the tokens, counted through all spans. Keys and values are stored when this returns.
        """
        if self._kernels_run and self._native is not None:
            return self._native.paged(spans, pools, rows)
        batch = PagedBatch(spans, pools[0].page_size)
        hidden = self.hidden(batch.tokens, [PagedLayer(pool, batch) for pool in pools])
        if not rows:
            mx.eval([pool.key_pages for pool in pools], [pool.value_pages for pool in pools])
            return mx.zeros((0, self.config.vocab_size), self.dtype)
        logits = self.logits(hidden[:, mx.array(list(rows))])[0]
        mx.eval(logits)
        return logits

    def hidden(self, tokens: mx.array, cache: Sequence[LayerCache | PagedLayer] | None = None) -> mx.array:
        """Return what the last layer makes of ids B×L, not normalised: B×L×E."""
        x = self.embed_tokens(tokens)
        for layer, held in zip(self.layers, cache if cache is not None else [None] * len(self.layers), strict=True):
            x = layer(x, held)
        return x

    def logits(self, hidden: mx.array) -> mx.array:
        """Return the logits B×L×V of what `hidden` returned, or of some rows of it."""
        normed = self.norm(hidden)
        return self.head.as_linear(normed) if self.head is self.embed_tokens else self.head(normed)

    def make_cache(self) -> list[KVCache]:
        """Return an empty cache for one sequence, or for a batch of sequences of one length: one entry per layer."""
        return [KVCache() for _ in self.layers]

    @cached_property
    def _native(self) -> NativeDecoder | None:
        return NativeDecoder.of(self)

    @property
    def _kernels_run(self) -> bool:
        """Whether the CPU kernels do: there may be Metal, or a simulator for it."""
        return metal.available() is metal.Availability.NONE and cpu.available()

    def _native_for(self, tokens: mx.array, cache: Sequence[Any] | None) -> NativeDecoder | None:
        """What computes such a call, where it can."""
        native = self._native if self._kernels_run else None
        return native if native is not None and native.takes(tokens, cache) else None

    def _check(self, tokens: mx.array, cache: Sequence[LayerCache] | None) -> None:
        if tokens.ndim != 2:
            raise ValueError(f"tokens are {tokens.shape}; they take B×L")
        if cache is not None and len(cache) != len(self.layers):
            raise ValueError(f"cache has {len(cache)} layers; the model has {len(self.layers)}")


def _norm(name: str, dims: int, config: ModelConfig, weights: Weights) -> RMSNorm:
    return RMSNorm(dims, weights.vector(f"{name}.weight", dims), config.eps)
