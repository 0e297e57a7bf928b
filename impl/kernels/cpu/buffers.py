"""Arrays of MLX as pointers for the kernels, without copies, and the kernels' results as arrays of MLX."""

from __future__ import annotations

import ctypes
import math
from typing import Any

import ml_dtypes
import mlx.core as mx
import numpy as np

DTYPES: dict[mx.Dtype, int] = {mx.float32: 0, mx.float16: 1, mx.bfloat16: 2}
"""Dtypes that the kernels take -> their numbers in source/dtypes.h."""

_NUMPY: dict[mx.Dtype, Any] = {mx.float32: np.float32, mx.float16: np.float16, mx.bfloat16: ml_dtypes.bfloat16}
_STRIDES = 0x18  # PyBUF_STRIDES


class _Buffer(ctypes.Structure):
    """Py_buffer, of Python's stable ABI."""

    _fields_ = (
        ("pointer", ctypes.c_void_p),
        ("object", ctypes.py_object),
        ("bytes", ctypes.c_ssize_t),
        ("item", ctypes.c_ssize_t),
        ("readonly", ctypes.c_int),
        ("ndim", ctypes.c_int),
        ("format", ctypes.c_char_p),
        ("shape", ctypes.POINTER(ctypes.c_ssize_t)),
        ("strides", ctypes.POINTER(ctypes.c_ssize_t)),
        ("suboffsets", ctypes.c_void_p),
        ("internal", ctypes.c_void_p),
    )


_get = ctypes.pythonapi.PyObject_GetBuffer
_get.argtypes = [ctypes.py_object, ctypes.POINTER(_Buffer), ctypes.c_int]
_release = ctypes.pythonapi.PyBuffer_Release
_release.argtypes = [ctypes.POINTER(_Buffer)]
_release.restype = None


class View:
    """The memory of an array, evaluated: as long as the view lives, so does the memory.

    pointer: of the first element; shape; strides: in elements; item: bytes of one; dtype: as source/dtypes.h counts them, -1 for another.
    Raises what MLX raises where the array cannot be evaluated (under `mx.compile` and `mx.vmap`).
    """

    __slots__ = ("array", "dtype", "item", "pointer", "shape", "strides")

    def __init__(self, array: mx.array) -> None:
        buffer = _Buffer()
        _get(array, ctypes.byref(buffer), _STRIDES)
        self.array, self.shape, self.dtype = array, array.shape, DTYPES.get(array.dtype, -1)
        self.pointer, self.item = buffer.pointer, buffer.item
        self.strides = tuple(stride // buffer.item for stride in buffer.strides[: buffer.ndim])
        _release(ctypes.byref(buffer))

    @property
    def is_contiguous(self) -> bool:
        """Whether the elements follow each other in the order of the axes."""
        expected = 1
        for size, stride in zip(reversed(self.shape), reversed(self.strides), strict=True):
            if size != 1 and stride != expected:
                return False
            expected *= size
        return True


def contiguous(array: mx.array) -> View:
    """The view of the array, or of a copy whose elements follow each other."""
    view = View(array)
    return view if view.is_contiguous else View(mx.contiguous(array))


def rows_of(x: mx.array, leading: int = 0) -> tuple[View, tuple[int, int]]:
    """x as matrices of evenly spaced rows behind the leading dims; how many rows these have, and how far apart."""
    view = View(x)
    *rows, columns = view.shape[leading:]
    *strides, step = view.strides[leading:]
    spaced = columns == 1 or step == 1
    count, stride = 1, columns
    for size, apart in zip(reversed(rows), reversed(strides), strict=True):
        if size == 1:
            continue
        if count == 1:
            stride = apart
        spaced, count = spaced and apart == count * stride and apart >= columns, count * size
    if not spaced:
        view = View(mx.contiguous(x))
        stride = columns
    return view, (math.prod(rows), stride)


class Result:
    """Memory for a kernel to write an array into.

    pointer: of the first element; `array()`: what was written, as an evaluated array of MLX (a copy).
    """

    __slots__ = ("_memory", "dtype", "pointer")

    def __init__(self, shape: tuple[int, ...], dtype: mx.Dtype) -> None:
        self._memory = np.empty(shape, _NUMPY[dtype])
        self.dtype, self.pointer = DTYPES[dtype], self._memory.ctypes.data

    def array(self) -> mx.array:
        """The array."""
        return mx.array(self._memory)
