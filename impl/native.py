"""A decoder out of MLX's lazy graph: where the CPU kernels run, a whole pass is one call of C++.

Keys and values stay where they were: in the buffers of `KVCache`, and in the pages of a `PagePool`. A dense cache is a
pool with one page for each batch row.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import mlx.core as mx
import numpy as np

from inferspec.impl.embedding import Embedding
from inferspec.impl.kernels.cpu import tracers
from inferspec.impl.kernels.cpu.buffers import DTYPES
from inferspec.impl.kernels.cpu.decoder import Batch, Layer, Matrix, Program
from inferspec.impl.kernels.cpu.stored import Stored
from inferspec.impl.kv_cache import KVCache, StaticKVCache
from inferspec.impl.paged_batch import Span
from inferspec.impl.paged_kv import PagePool
from inferspec.impl.quantization import QuantizedEmbedding, QuantizedLinear
from inferspec.impl.rms_norm import RMSNorm
from inferspec.impl.rope import check_positions
from inferspec.impl.tokens import ids_of
from inferspec.impl.weights import Linear

if TYPE_CHECKING:
    from inferspec.impl.transformer import Block, Decoder

CACHES = (KVCache, StaticKVCache)
"""Whose buffers a pass writes into; another's, or a subclass's, `update_and_fetch` may be anything."""


class NativeDecoder:
    """The passes of one model. Its weights are those that the model had when this was made."""

    def __init__(self, model: Decoder, program: Program) -> None:
        self._config, self._layers, self._dtype, self._program = model.config, len(model.layers), model.dtype, program

    @classmethod
    def of(cls, model: Decoder) -> NativeDecoder | None:
        """Make one; None for weights of other dtypes or bits than the kernels take, and for such as MLX only traces."""
        layers = [_layer(block, model.dtype) for block in model.layers]
        embedding, head = _matrix(model.embed_tokens), _matrix(model.head)
        matrices = [embedding, head, *(matrix for layer in layers for matrix in layer.matrices)]
        if model.dtype not in DTYPES or not all(matrix.is_taken for matrix in matrices):
            return None
        norm = model.norm.weight.astype(model.dtype)
        arrays = [*(x for matrix in matrices for x in matrix.arrays), *(x for one in layers for x in one.norms), norm]
        if tracers.traced(arrays):
            return None
        config = model.config
        frequencies = model.layers[0].self_attn.rope.frequencies
        heads = config.num_heads, config.num_kv_heads
        numbers = config.eps, config.attention_scale
        return cls(model, Program(layers, embedding, head, norm, frequencies, *heads, *numbers, model.dtype))

    def takes(self, tokens: mx.array, cache: Sequence[Any] | None) -> bool:
        """Whether it computes such a call: some tokens, and a cache of our kinds whose layers are equally long."""
        if not tokens.size or cache is None:
            return bool(tokens.size)
        offset = cache[0].offset
        return all(type(layer) in CACHES and layer.offset == offset for layer in cache)

    def logits(self, tokens: mx.array, cache: Sequence[Any] | None) -> mx.array:
        """Return the logits B×L×V of ids B×L that follow those in the cache, which then holds them too."""
        rows = np.arange(tokens.size)
        return self._dense(tokens, cache, rows).reshape(*tokens.shape, self._program.vocabulary)

    def prefill(self, tokens: mx.array, cache: Sequence[Any]) -> None:
        """Put ids B×L into the cache."""
        self._dense(tokens, cache, np.arange(0))

    def paged(self, spans: Sequence[Span], pools: Sequence[PagePool], rows: Sequence[int]) -> mx.array:
        """Return the logits R×V of some of the tokens of all spans, and put keys and values into the layers' pools."""
        width = max(len(span.page_ids) for span in spans)
        tables = np.zeros((len(spans), width), np.int64)
        for table, span in zip(tables, spans, strict=True):
            table[: len(span.page_ids)] = span.page_ids
        tokens = np.concatenate([np.asarray(span.tokens) for span in spans])
        firsts = np.cumsum([0, *(len(span.tokens) for span in spans)])
        starts = np.array([span.start for span in spans])
        batch = Batch(tokens, firsts, starts, tables, pools[0].page_size, np.array(rows, np.int64))
        return self._program.run(batch, [pool.stored() for pool in pools])

    def _dense(self, tokens: mx.array, cache: Sequence[Any] | None, rows: np.ndarray) -> mx.array:
        ids = ids_of(tokens, self._config.vocab_size)
        batch, length = ids.shape
        start = 0 if cache is None else cache[0].offset
        check_positions(start, length, self._config.max_positions)
        shape = (batch, self._config.num_kv_heads, length, self._config.head_dim)
        if cache is None:
            scratch = [mx.zeros(shape, self._dtype) for _ in range(2)]
            # Without a cache no layer needs what another one stored.
            stored = [Stored(*scratch)] * self._layers
        else:
            stored = [layer.reserve(shape, shape, self._dtype) for layer in cache]
        passed = Batch(
            ids.reshape(-1),
            np.arange(0, batch * length + 1, length),
            np.full(batch, start),
            np.arange(batch)[:, None],
            stored[0].keys.shape[2],
            rows,
        )
        logits = self._program.run(passed, stored)
        for layer in cache or ():
            layer.commit(length)
        return logits


def _layer(block: Block, dtype: mx.Dtype) -> Layer:
    attention, mlp = block.self_attn, block.mlp

    def norm(one: RMSNorm | None) -> mx.array | None:
        return None if one is None else one.weight.astype(dtype)

    return Layer(
        query=_matrix(attention.q_proj),
        key=_matrix(attention.k_proj),
        value=_matrix(attention.v_proj),
        output=_matrix(attention.o_proj),
        gate=_matrix(mlp.gate_proj),
        up=_matrix(mlp.up_proj),
        down=_matrix(mlp.down_proj),
        input_norm=block.input_layernorm.weight.astype(dtype),
        post_attention_norm=block.post_attention_layernorm.weight.astype(dtype),
        query_norm=norm(attention.q_norm),
        key_norm=norm(attention.k_norm),
    )


def _matrix(layer: Linear | QuantizedLinear | Embedding | QuantizedEmbedding) -> Matrix:
    addend = layer.bias if isinstance(layer, Linear | QuantizedLinear) else None
    if isinstance(layer, Linear | Embedding):
        return Matrix(layer.weight, addend=addend)
    return Matrix(layer.packed, layer.scales, layer.biases, layer.group_size, layer.bits, addend)
