"""Launches the CPU kernel of products with dense weights."""

from __future__ import annotations

import ctypes

import mlx.core as mx

from inferspec.impl.kernels.cpu import library
from inferspec.impl.kernels.cpu.buffers import DTYPES, Result, contiguous, rows_of


class Matrix(ctypes.Structure):
    """DenseMatrix of source/dense.h."""

    _fields_ = (
        ("weights", ctypes.c_void_p),
        ("dtype", ctypes.c_int),
        ("outputs", ctypes.c_size_t),
        ("inputs", ctypes.c_size_t),
        ("stride", ctypes.c_size_t),
    )


def runs(*arrays: mx.array) -> bool:
    """Whether the kernel runs here, on arrays of these dtypes."""
    return all(array.dtype in DTYPES for array in arrays) and library.available()


def launch(
    x: mx.array, weight: mx.array, bias: mx.array | None, dtype: mx.Dtype, threads: int | None = None
) -> mx.array:
    """Return x · weightᵀ + bias in `dtype`; the arguments are checked already, and none is empty.

    x: N..×I; weight: O×I; bias: O or None. Result: N..×O.
    """
    view, (rows, row_stride) = rows_of(x)
    weights, (outputs, weight_stride) = rows_of(weight)
    added = None if bias is None else contiguous(bias)
    result = Result((*x.shape[:-1], outputs), dtype)
    matrix = Matrix(weights.pointer, weights.dtype, outputs, x.shape[-1], weight_stride)
    status = library.load().inferspec_dense_product(
        ctypes.c_void_p(view.pointer),
        view.dtype,
        ctypes.c_size_t(rows),
        ctypes.c_size_t(row_stride),
        ctypes.byref(matrix),
        ctypes.c_void_p(added.pointer if added else None),
        added.dtype if added else 0,
        ctypes.c_void_p(result.pointer),
        result.dtype,
        ctypes.c_size_t(outputs),
        library.threads(threads),
    )
    library.check(status)
    return result.array()
