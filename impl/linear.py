"""Linear layer, SiLU and softmax in MLX; on CPUs the layer's product is that of our own kernel."""

from __future__ import annotations

import mlx.core as mx

from inferspec.impl.kernels.cpu import dense as cpu_kernel
from inferspec.impl.kernels.cpu.transforms import transformable


def linear(x: mx.array, weight: mx.array, bias: mx.array | None = None) -> mx.array:
    """Return x · weightᵀ + bias over the last axis, accumulated in float32.

    x: N..×I, any leading dims; weight: O×I; bias: O or None. Result: N..×O in the dtype of x.
    Raises TypeError for arrays that are not floating-point, ValueError for shapes that do not fit.
    """
    require_floating("x", x)
    require_floating("weight", weight)
    if x.ndim < 1:
        raise ValueError("x is a scalar; linear takes N..×I")
    if weight.ndim != 2 or weight.shape[1] != x.shape[-1]:
        raise ValueError(f"weight is {weight.shape}; an x of {x.shape} takes O×{x.shape[-1]}")
    if bias is not None:
        require_floating("bias", bias)
        if bias.shape != weight.shape[:1]:
            raise ValueError(f"bias is {bias.shape}; a weight of {weight.shape} takes {weight.shape[:1]}")
    added = () if bias is None else (bias,)

    def plain(x: mx.array, weight: mx.array, *added: mx.array) -> mx.array:
        return sum(added, start=x @ weight.T).astype(x.dtype)

    if not (x.size and weight.size and cpu_kernel.runs(x, weight, *added)):
        return plain(x, weight, *added)

    def fast(x: mx.array, weight: mx.array, *added: mx.array) -> mx.array:
        return cpu_kernel.launch(x, weight, added[0] if added else None, x.dtype)

    return transformable(fast, plain)(x, weight, *added)


def silu(x: mx.array) -> mx.array:
    """Return x · sigmoid(x) elementwise, accurate relative to itself also where it is tiny.

    x: any shape; the result has its shape and dtype. Raises TypeError when x is not floating-point.
    """
    require_floating("x", x)
    wide = x.astype(mx.float32)
    # exp(-|x|) never overflows, and its quotient loses nothing for negative x, where 1 - sigmoid(-x) would cancel.
    small = mx.exp(-mx.abs(wide))
    sigmoid = mx.where(wide < 0, small, 1.0) / (1.0 + small)
    return (wide * sigmoid).astype(x.dtype)


def softmax(x: mx.array, axis: int = -1) -> mx.array:
    """Return exp(x) over its sum along `axis`, computed in float32; an entry of -inf gets exactly 0.

    x: any shape with at least one axis; the result has its shape and dtype.
    Raises TypeError when x is not floating-point, ValueError for an axis that x does not have.
    """
    require_floating("x", x)
    if x.ndim < 1:
        raise ValueError("x is a scalar; softmax takes at least one axis")
    if not -x.ndim <= axis < x.ndim:
        raise ValueError(f"axis is {axis}; an x of {x.shape} takes {-x.ndim} … {x.ndim - 1}")
    return mx.softmax(x, axis=axis, precise=True)


def require_floating(name: str, array: mx.array) -> None:
    """TypeError, which names the array, unless it is floating-point."""
    if not mx.issubdtype(array.dtype, mx.floating):
        raise TypeError(f"{name} is {array.dtype}; it takes a floating-point array")
