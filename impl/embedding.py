"""Token embedding and tied output head in MLX."""

from __future__ import annotations

import mlx.core as mx

from inferspec.impl.linear import linear
from inferspec.impl.tokens import ids_of


class Embedding:
    """A table of one row per token, which is also the output head of tied models.

    vocab_size: V; dims: E; weight: V×E. Raises ValueError for a weight of another shape.
    """

    def __init__(self, vocab_size: int, dims: int, weight: mx.array) -> None:
        if weight.shape != (vocab_size, dims):
            raise ValueError(
                f"weight is {weight.shape}; vocab_size={vocab_size}, dims={dims} take {(vocab_size, dims)}"
            )
        self.vocab_size = vocab_size
        self.dims = dims
        self.weight = weight

    @property
    def dtype(self) -> mx.Dtype:
        """Of the rows."""
        return self.weight.dtype

    def __call__(self, tokens: mx.array) -> mx.array:
        """Return weight[tokens]: T..×E in the dtype of the weight, for integer ids of any shape T...

        Raises TypeError when tokens are not integers, ValueError when an id is outside 0 … vocab_size - 1. MLX reads
        out of bounds without a word, so the range is checked here: the check evaluates `tokens` and waits for it (one
        reduction over the ids), which is cheap for ids from a tokenizer and ends the laziness of ids from a sampler.
        """
        ids_of(tokens, self.vocab_size)
        return self.weight[tokens]

    def as_linear(self, x: mx.array) -> mx.array:
        """Return the logits x · weightᵀ: N..×V in the dtype of x, for x: N..×E.

        Raises ValueError when the last axis of x is not dims, TypeError when an array is not floating-point.
        """
        if x.ndim < 1 or x.shape[-1] != self.dims:
            raise ValueError(f"x is {x.shape}; it takes N..×{self.dims}")
        return linear(x, self.weight)
