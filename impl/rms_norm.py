"""Root mean square norm, in MLX, by our own kernel where there is Metal.

Sources: Zhang and Sennrich 2019, section 3; Llama's reference code for the order of roundings; the tiny-llm course,
week 1 day 4.
"""

from __future__ import annotations

import mlx.core as mx

from inferspec.impl.kernels import metal
from inferspec.impl.kernels import rms_norm as kernel


class RMSNorm:
    """x / sqrt(mean(x²) + eps) · weight, over the last axis.

    Mean, root and quotient are in float32; the quotient is rounded to the dtype of x and then multiplied by the weight in
    that dtype. The kernel and `mx.fast.rms_norm` keep this order (its CPU, Metal and CUDA paths in MLX 0.32.2).
    """

    def __init__(self, dims: int, weight: mx.array, eps: float = 1e-5) -> None:
        """dims: the length of a row; weight: one factor for each channel, dims; eps: what is added inside the root.

        ValueError for a weight whose shape is not (dims,) and an eps below 0; TypeError for a weight that is not
        floating-point.
        """
        if weight.shape != (dims,):
            raise ValueError(f"weight is {weight.shape}; it takes {(dims,)}, one factor for each of dims")
        if not mx.issubdtype(weight.dtype, mx.floating):
            raise TypeError(f"weight is {weight.dtype}; it takes a floating-point dtype")
        if not eps >= 0:
            raise ValueError(f"eps is {eps}; it takes a number of 0 or more")
        self.dims = dims
        self.weight = weight
        self.eps = float(eps)

    def __call__(self, x: mx.array) -> mx.array:
        """Return x, N..×dims, with every row normalised, in the dtype of x.

        ValueError for an x whose last dim is not dims; TypeError for an x that is not floating-point.
        """
        if x.ndim == 0 or x.shape[-1] != self.dims:
            raise ValueError(f"x is {x.shape}; it takes rows of {self.dims} features")
        if not mx.issubdtype(x.dtype, mx.floating):
            raise TypeError(f"x is {x.dtype}; it takes a floating-point dtype")
        # A weight of another dtype would promote the result.
        weight = self.weight.astype(x.dtype)
        return kernel.launch(x, weight, self.eps) if metal.runs(x) else mx.fast.rms_norm(x, weight, self.eps)
