"""The gated MLP of Llama and Qwen3 in MLX."""

from __future__ import annotations

import mlx.core as mx

from inferspec.impl.linear import linear, silu


class SwiGLU:
    """w_down · (silu(w_gate · x) ∘ (w_up · x)) (Shazeer 2020).

    dims: E; hidden_dims: I; w_gate, w_up: I×E; w_down: E×I. Raises ValueError for weights of another shape.
    """

    def __init__(self, dims: int, hidden_dims: int, w_gate: mx.array, w_up: mx.array, w_down: mx.array) -> None:
        wide, back = (hidden_dims, dims), (dims, hidden_dims)
        for name, weight, shape in (("w_gate", w_gate, wide), ("w_up", w_up, wide), ("w_down", w_down, back)):
            if weight.shape != shape:
                raise ValueError(f"{name} is {weight.shape}; dims={dims}, hidden_dims={hidden_dims} take {shape}")
        self.dims = dims
        self.hidden_dims = hidden_dims
        self.w_gate = w_gate
        self.w_up = w_up
        self.w_down = w_down

    def __call__(self, x: mx.array) -> mx.array:
        """Return the layer's output for x: N..×E, in the shape and dtype of x.

        Raises ValueError when the last axis of x is not dims, TypeError when an array is not floating-point.
        """
        if x.ndim < 1 or x.shape[-1] != self.dims:
            raise ValueError(f"x is {x.shape}; it takes N..×{self.dims}")
        return linear(silu(linear(x, self.w_gate)) * linear(x, self.w_up), self.w_down)
