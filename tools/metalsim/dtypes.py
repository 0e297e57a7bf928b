"""Numbers as MSL's types have them, and the names that MLX's kernels give those types."""

from __future__ import annotations

import ml_dtypes
import numpy as np

BFLOAT16 = np.dtype(ml_dtypes.bfloat16)

_TYPES = {
    "bool": np.bool_,
    "char": np.int8,
    "int8_t": np.int8,
    "uchar": np.uint8,
    "uint8_t": np.uint8,
    "unsigned char": np.uint8,
    "short": np.int16,
    "int16_t": np.int16,
    "ushort": np.uint16,
    "uint16_t": np.uint16,
    "unsigned short": np.uint16,
    "int": np.int32,
    "int32_t": np.int32,
    "uint": np.uint32,
    "uint32_t": np.uint32,
    "unsigned int": np.uint32,
    "unsigned": np.uint32,
    "long": np.int64,
    "int64_t": np.int64,
    "ptrdiff_t": np.int64,
    "ulong": np.uint64,
    "uint64_t": np.uint64,
    "unsigned long": np.uint64,
    "size_t": np.uint64,
    "half": np.float16,
    "float16_t": np.float16,
    "bfloat": BFLOAT16,
    "bfloat16_t": BFLOAT16,
    "float": np.float32,
}

# What MLX writes for an array's dtype in the signatures that it generates.
MLX_NAMES = {
    np.dtype(np.bool_): "bool",
    np.dtype(np.int8): "int8_t",
    np.dtype(np.int16): "int16_t",
    np.dtype(np.int32): "int32_t",
    np.dtype(np.int64): "int64_t",
    np.dtype(np.uint8): "uint8_t",
    np.dtype(np.uint16): "uint16_t",
    np.dtype(np.uint32): "uint32_t",
    np.dtype(np.uint64): "uint64_t",
    np.dtype(np.float16): "float16_t",
    BFLOAT16: "bfloat16_t",
    np.dtype(np.float32): "float",
    np.dtype(np.complex64): "complex64_t",
}


def number(value: bool | int | float, type_name: str, what: str) -> np.generic:
    """A Python number as MSL's type has it.

    Raises ``TypeError`` for a type that is no number's, ``ValueError`` for a value that the type cannot hold.
    """
    dtype = _TYPES.get(type_name)
    if dtype is None:
        raise TypeError(f"{what} is a {type_name}; give it as bytes or a NumPy value, not as a Python number")
    dtype = np.dtype(dtype)
    if dtype.kind in "iu":
        limits = np.iinfo(dtype)
        if value != int(value) or not limits.min <= value <= limits.max:
            raise ValueError(f"{what} is {value!r}; {type_name} takes whole numbers from {limits.min} to {limits.max}")
    return dtype.type(value)


def bytes_of(value: bool | int | float | np.generic, type_name: str, what: str) -> bytes:
    """The bytes of a number as MSL's type has it; NumPy values are taken as they are."""
    return (value if isinstance(value, np.generic) else number(value, type_name, what)).tobytes()
