"""Launches the CPU kernels of products with quantised weights, and of rows of them."""

from __future__ import annotations

import ctypes
import math
from collections.abc import Sequence

import mlx.core as mx
import numpy as np

from inferspec.impl.kernels.cpu import library
from inferspec.impl.kernels.cpu.buffers import DTYPES, Result, View, contiguous, rows_of

BITS = (4, 8)
"""What the kernels unpack."""


class Matrix(ctypes.Structure):
    """QuantizedMatrix of source/quantized.h."""

    _fields_ = (
        ("packed", ctypes.c_void_p),
        ("scales", ctypes.c_void_p),
        ("biases", ctypes.c_void_p),
        ("scales_dtype", ctypes.c_int),
        ("biases_dtype", ctypes.c_int),
        ("outputs", ctypes.c_size_t),
        ("inputs", ctypes.c_size_t),
        ("group_size", ctypes.c_size_t),
        ("bits", ctypes.c_size_t),
    )


def runs(bits: int, *arrays: mx.array) -> bool:
    """Whether the kernels run here, for codes of so many bits and on arrays of these dtypes."""
    return bits in BITS and all(array.dtype in DTYPES for array in arrays) and library.available()


def launch(
    x: mx.array,
    packed: mx.array,
    scales: mx.array,
    biases: mx.array,
    group_size: int,
    bits: int,
    transpose: bool,
    dtype: mx.Dtype,
    threads: int | None = None,
) -> mx.array:
    """Return x · wᵀ, or x · w, in `dtype`; the arguments are checked already, and none is empty.

    x: N..×K, with the leading dims of the parts where these are stacked; packed: ..O×(I·bits/32) uint32; scales, biases:
    ..O×(I/group_size). Result: N..×O, or N..×I.
    """
    parts = [_stacked(part) for part in (packed, scales, biases)]
    outputs, inputs = packed.shape[-2], packed.shape[-1] * 32 // bits
    columns = outputs if transpose else inputs
    leading = packed.shape[:-2]
    view, (rows, row_stride) = rows_of(x, len(leading))
    result = Result((*x.shape[:-1], columns), dtype)
    matrix = Matrix(
        scales_dtype=parts[1].dtype,
        biases_dtype=parts[2].dtype,
        outputs=outputs,
        inputs=inputs,
        group_size=group_size,
        bits=bits,
    )
    product, allowed = library.load().inferspec_quantized_product, library.threads(threads)
    y_step = rows * columns * dtype.size
    for number, index in enumerate(np.ndindex(leading)):
        matrix.packed, matrix.scales, matrix.biases = (_pointer(part, index) for part in parts)
        status = product(
            ctypes.c_void_p(_pointer(view, index)),
            view.dtype,
            ctypes.c_size_t(rows),
            ctypes.c_size_t(row_stride),
            ctypes.byref(matrix),
            int(transpose),
            ctypes.c_void_p(result.pointer + number * y_step),
            result.dtype,
            ctypes.c_size_t(columns),
            allowed,
        )
        library.check(status)
    return result.array()


def launch_rows(
    tokens: mx.array | None,
    packed: mx.array,
    scales: mx.array,
    biases: mx.array,
    group_size: int,
    bits: int,
    dtype: mx.Dtype,
    threads: int | None = None,
) -> mx.array:
    """Return the weights of the rows that the tokens name (T..×I), or of all rows, in `dtype`; all checked already.

    tokens: T.. integers within 0 … V - 1; packed: V×(I·bits/32) uint32; scales, biases: V×(I/group_size).
    """
    parts = [contiguous(part) for part in (packed, scales, biases)]
    inputs = packed.shape[-1] * 32 // bits
    wanted = None if tokens is None else contiguous(tokens.astype(mx.int64))
    shape = packed.shape[:-1] if wanted is None else wanted.shape
    result = Result((*shape, inputs), dtype)
    matrix = Matrix(
        *(part.pointer for part in parts),
        parts[1].dtype,
        parts[2].dtype,
        math.prod(packed.shape[:-1]),
        inputs,
        group_size,
        bits,
    )
    status = library.load().inferspec_quantized_rows(
        ctypes.c_void_p(wanted.pointer if wanted else None),
        ctypes.c_size_t(math.prod(shape)),
        ctypes.byref(matrix),
        ctypes.c_void_p(result.pointer),
        result.dtype,
        library.threads(threads),
    )
    library.check(status)
    return result.array()


def _stacked(part: mx.array) -> View:
    """The part, copied if the rows of its matrices do not follow each other; leading dims may have any strides."""
    view = View(part)
    rows, columns = view.shape[-2:]
    dense = (columns == 1 or view.strides[-1] == 1) and (rows == 1 or view.strides[-2] == columns)
    return view if dense else contiguous(part)


def _pointer(view: View, index: Sequence[int]) -> int:
    """Of the matrix at the index of the leading dims."""
    offset = sum(at * stride for at, stride in zip(index, view.strides, strict=False))
    return view.pointer + offset * view.item
