"""Launches the kernels of products with 4-bit weights."""

from __future__ import annotations

import mlx.core as mx

from inferspec.impl.kernels.metal import Kernel, has_matrices, threads

BITS = 4
"""What the kernels unpack."""
FEW_ROWS = 8
"""Fewer rows of x than this are cheaper one by one: a tile would be mostly zeros."""
OUTPUTS = 4
"""Outputs of a SIMD-group of quantized_vector."""
WORDS = 32
"""Words of a threadgroup of quantized_vector_plain."""
TILE = 32
"""Rows and columns of a tile of quantized_matrix."""
SIMDGROUPS = 4
"""SIMD-groups of a threadgroup of quantized_vector_plain and of quantized_matrix, as these count on."""

_INPUTS = ["x", "packed", "scales", "biases", "group_size"]
_vector = Kernel("quantized_vector", _INPUTS)
_vector_plain = Kernel("quantized_vector_plain", _INPUTS)
_matrix = Kernel("quantized_matrix", _INPUTS)


def launch(
    x: mx.array,
    packed: mx.array,
    scales: mx.array,
    biases: mx.array,
    group_size: int,
    transpose: bool,
    dtype: mx.Dtype,
) -> mx.array:
    """Return x · wᵀ, or x · w, in `dtype`; the arguments are checked already.

    x: N..×K, N.. with at least a row dim where the parts are stacked and the leading dims of x and parts the same;
    packed: ..O×(I/8) uint32; scales, biases: ..O×(I/group_size). Result: N..×O, or N..×I.
    """
    words, rows = packed.shape[-1], packed.shape[-2]
    columns = rows if transpose else words * 8
    shape = (*x.shape[:-1], columns)
    if not x.size or not packed.size:
        return mx.zeros(shape, dtype)
    batch = packed.size // (rows * words)
    count = x.size // (x.shape[-1] * batch)
    inputs = [x.reshape(batch, count, -1), *(part.reshape(batch, rows, -1) for part in (packed, scales, biases))]
    template: list[tuple[str, mx.Dtype | bool]] = [("T", dtype)]
    if count >= FEW_ROWS and has_matrices():
        kernel, template = _matrix, [*template, ("TRANSPOSE", transpose)]
        group, tiles = threads(SIMDGROUPS), (-(-columns // TILE), -(-count // TILE))
    elif transpose:
        kernel, group, tiles = _vector, threads(1), (-(-columns // OUTPUTS), count)
    else:
        kernel, group, tiles = _vector_plain, threads(SIMDGROUPS), (-(-words // WORDS), count)
    product = kernel(
        [*inputs, group_size],
        template=template,
        grid=(tiles[0] * group, tiles[1], batch),
        threadgroup=(group, 1, 1),
        shape=(batch, count, columns),
        dtype=dtype,
    )
    return product.reshape(shape)
