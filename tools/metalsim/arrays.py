"""Arrays in and out: NumPy's, MLX's, and Python numbers. MLX is imported only where it is there already."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import numpy as np

from .dtypes import BFLOAT16, MLX_NAMES


def _mlx() -> Any:
    """``mlx.core`` if something has imported it: nothing can be an ``mx.array`` before."""
    return sys.modules.get("mlx.core")


def is_mlx(value: Any) -> bool:
    """Whether it is an ``mx.array``."""
    mx = _mlx()
    return mx is not None and isinstance(value, mx.array)


def is_dtype(value: Any) -> bool:
    """Whether it is a dtype of MLX or NumPy, or a NumPy scalar type."""
    mx = _mlx()
    if mx is not None and isinstance(value, mx.Dtype):
        return True
    if isinstance(value, np.dtype):
        return True
    return isinstance(value, type) and (issubclass(value, np.generic) or value is BFLOAT16.type)


def dtype(value: Any, what: str) -> np.dtype:
    """NumPy's dtype for a dtype of either. Raises ``TypeError`` for what is none, and for types that Metal has not."""
    mx = _mlx()
    if mx is not None and isinstance(value, mx.Dtype):
        name = str(value).rpartition(".")[2]
        found = BFLOAT16 if value == mx.bfloat16 else np.dtype(name.rstrip("_"))
    elif is_dtype(value):
        found = np.dtype(value)
    else:
        raise TypeError(f"[metal_kernel] {what} is {value!r}; it takes a dtype of MLX or NumPy.")
    return _known(found, what)


def _known(found: np.dtype, what: str) -> np.dtype:
    if found not in MLX_NAMES:
        raise TypeError(f"[metal_kernel] {what} is of type {found}, which Metal does not have.")
    return found


def to_numpy(value: Any, what: str) -> np.ndarray:
    """An input as a NumPy array, without a copy: views keep their strides. Numbers get the dtypes that MLX gives them.

    Raises ``TypeError`` for what is no array and no number, and for dtypes that Metal has not.
    """
    if is_mlx(value):
        return _from_mlx(value, what)
    if isinstance(value, np.ndarray | np.generic):
        array = np.asarray(value)
        _known(array.dtype, what)
        return array
    if isinstance(value, bool):
        return np.array(value, np.bool_)
    if isinstance(value, int):
        return np.array(value, np.int32 if -(2**31) <= value < 2**31 else np.int64)
    if isinstance(value, float):
        return np.array(value, np.float32)
    if isinstance(value, complex):
        return np.array(value, np.complex64)
    raise TypeError(f"[metal_kernel] {what} is {type(value).__name__}; it takes an array or a number.")


def _from_mlx(value: Any, what: str) -> np.ndarray:
    mx = _mlx()
    try:
        mx.eval(value)
    except ValueError as error:
        raise RuntimeError(
            f"[metal_kernel] {what} has no value yet: metalsim runs kernels at once, not inside mx.compile or mx.vmap "
            "(mx.disable_compile() turns the first off, and metalsim.install() does)"
        ) from error
    found = dtype(value.dtype, what)
    if found != BFLOAT16:
        return np.asarray(memoryview(value))
    # bfloat16 is no format that NumPy's reader knows.
    return np.asarray(memoryview(value.view(mx.uint16))).view(BFLOAT16)


def to_mlx(array: np.ndarray) -> Any:
    """An ``mx.array`` of the same values."""
    mx = _mlx()
    if array.dtype == BFLOAT16:
        return mx.array(array.view(np.uint16)).view(mx.bfloat16)
    return mx.array(array)


def check_stream(stream: Any) -> None:
    """Raises ``ValueError``, as MLX does, for a stream or device of the CPU."""
    mx = _mlx()
    if stream is None or mx is None:
        return
    device = getattr(stream, "device", stream)
    if getattr(device, "type", device) == mx.cpu:
        raise ValueError("[metal_kernel] Only supports the GPU.")


def memory(array: np.ndarray, *, contiguous: bool) -> tuple[np.ndarray, np.ndarray, int]:
    """The memory that a kernel gets for an input, its strides in elements (int64), and where its first element lies there.

    contiguous: copy what is not in row-major order. Otherwise the view's own strides are kept and the memory reaches from
    the lowest of its elements to the highest, the first being in between where it runs backwards; only views whose strides
    are no whole elements are copied all the same.
    """
    itemsize = array.itemsize
    plain = array.flags.c_contiguous
    if not plain and (contiguous or any(stride % itemsize for stride in array.strides)):
        array, plain = np.ascontiguousarray(array), True
    strides = np.array([stride // itemsize for stride in array.strides], np.int64)
    if plain or not array.size:
        return array, strides, 0
    steps = [(n - 1) * stride // itemsize for n, stride in zip(array.shape, array.strides, strict=True)]
    first = -sum(step for step in steps if step < 0)
    # The same view from its lowest element on.
    lowest = array[tuple(slice(None, None, -1 if step < 0 else 1) for step in steps)]
    extent = 1 + sum(abs(step) for step in steps)
    return np.lib.stride_tricks.as_strided(lowest, (extent,), (itemsize,), writeable=False), strides, first


def without_gradient(inputs: Sequence[Any], outputs: Sequence[Any], name: str) -> list[Any]:
    """The outputs of a kernel, through which no derivative passes: asked for one, it raises, as MLX's own kernels do.

    Raises ``ValueError`` then, instead of a derivative of 0. ``mx.custom_function`` around the kernel gives it one.
    """
    mx = _mlx()
    given = [value for value in inputs if is_mlx(value)]
    if not given or not outputs:
        return list(outputs)

    def refuse(*_: Any) -> Any:
        raise ValueError(f"[metal_kernel] {name} has no derivative; wrap it in mx.custom_function to give it one.")

    launched = mx.custom_function(lambda *_: list(outputs))
    launched.vjp(refuse)
    launched.jvp(refuse)
    return list(launched(*given))
