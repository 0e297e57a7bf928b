"""The kinds of arrays that subjects speak: conversion from and to NumPy, bfloat16 included.

Libraries are imported when the kind is asked for, in the process that hosts the subject.
"""

from __future__ import annotations

import contextlib
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any

import ml_dtypes
import numpy as np

KINDS = ("mlx", "torch", "numpy", "jax")
_BFLOAT16 = np.dtype(ml_dtypes.bfloat16)
_array = np.array
"""NumPy's own, from before there is a subject: one that patches it would else not be seen to change its arguments."""


def _nothing_to_set() -> None:
    """The settings of most libraries are those of a process."""


class Arrays(ABC):
    """One kind of arrays."""

    name: str
    no_indices: frozenset[str] = frozenset()
    """Dtypes of integers that the library does not index by: of ids in them a subject is asked only where it declares them."""
    unheld: frozenset[str] = frozenset()
    """Those that there are none of, so that nobody can be asked for them."""

    @abstractmethod
    def from_numpy(self, x: np.ndarray) -> Any:
        """A fresh array with the values of x."""

    @abstractmethod
    def to_numpy(self, y: Any) -> np.ndarray:
        """The evaluated values, bfloat16 as ml_dtypes.bfloat16."""

    def bits(self, y: Any) -> bytes:
        """The bytes of the evaluated values."""
        return self.to_numpy(y).tobytes()

    @abstractmethod
    def owns(self, y: Any) -> bool:
        """Whether y is an array of this kind."""

    @abstractmethod
    def dtype(self, name: str) -> Any:
        """The library's own dtype of that name."""

    def ready(self, y: Any) -> Any:
        """The same array, computed."""
        return y

    def all_ready(self, arrays: Sequence[Any]) -> Sequence[Any]:
        """The same arrays, computed at once."""
        return [self.ready(y) for y in arrays]

    def reversed_view(self, x: np.ndarray, axis: int = -1) -> Any:
        """An array with the values of x, one axis backwards in memory where the library has negative strides."""
        backwards: tuple[Any, ...] = (..., slice(None, None, -1), *[slice(None)] * (-1 - axis))
        return self.from_numpy(x[backwards].copy())[backwards]

    def axes_reversed(self, y: Any) -> Any:
        """A view with the axes in reverse order."""
        return y.transpose()

    def broadcast_to(self, y: Any, shape: tuple[int, ...]) -> Any:
        """A stride-0 view."""
        return self._module.broadcast_to(y, shape)

    def poison(self, shape: tuple[int, ...], dtype: str) -> None:
        """Fill and release buffers of the size of a result, so that what is left unwritten shows as NaN."""
        if math.prod(shape):
            nothing = np.full(shape, np.nan, np.float32).astype(dtype)
            buffers = [self.ready(self.from_numpy(nothing)) for _ in range(2)]
            del buffers

    def overwrite(self, y: Any) -> None:
        """Write NaN into an array, as who was given it may, where it can be written to."""
        with contextlib.suppress(TypeError, ValueError, RuntimeError):
            y[...] = math.nan

    def refill(self, y: Any, x: Any) -> Any:
        """The array y, with the values of x written into it; x itself where arrays cannot be written to."""
        try:
            y[...] = x
        except (TypeError, ValueError, RuntimeError):
            return x
        return self.ready(y)

    def version(self) -> str:
        """The library and its version."""
        return f"{self._module.__name__} {self._module.__version__}"

    def device(self) -> str:
        """Where arrays are that nobody has moved: `cpu`, `gpu` or another."""
        return "cpu"

    def settings(self) -> Callable[[], None]:
        """What sets another thread as this one is, where libraries have settings of a thread."""
        return _nothing_to_set

    def wait(self) -> None:
        """Wait for what the device has still to do; an error where nothing can be computed any more, as in a process whose
        kernel has failed on a GPU."""
        self.to_numpy(self.ready(self.from_numpy(np.zeros(1, np.float32))))

    _module: Any


class NumpyArrays(Arrays):
    """NumPy's, with bfloat16 from ml_dtypes."""

    name = "numpy"
    _module = np

    def from_numpy(self, x: np.ndarray) -> Any:
        return _array(x)

    def to_numpy(self, y: Any) -> np.ndarray:
        x = _array(y)
        # What was read from a file may have its bytes the other way round.
        return x if x.dtype.isnative else x.astype(x.dtype.newbyteorder("="))

    def owns(self, y: Any) -> bool:
        return isinstance(y, np.ndarray | np.generic)

    def dtype(self, name: str) -> Any:
        return _BFLOAT16 if name == "bfloat16" else np.dtype(name)


class MlxArrays(Arrays):
    """MLX's, which are lazy: `ready` evaluates them."""

    name = "mlx"

    CACHE = 1 << 29
    """Bytes of freed buffers that MLX may keep. On a GPU it keeps nearly all that there is room for, each process for itself
    (https://github.com/ml-explore/mlx/issues/3350), and there is a process for each core, whose arrays are of all sizes."""

    def __init__(self) -> None:
        import mlx.core as mx

        self._module = mx
        before = mx.set_cache_limit(self.CACHE)
        mx.set_cache_limit(min(before, self.CACHE))

    def from_numpy(self, x: np.ndarray) -> Any:
        return self._module.array(x)

    def to_numpy(self, y: Any) -> np.ndarray:
        if y.dtype != self._module.bfloat16:
            return _array(y)
        # Its memory is read where that is possible: a view is an operation, for which another thread is woken.
        memory = memoryview(y)
        if memory.c_contiguous:
            return np.frombuffer(memory, np.uint16).view(_BFLOAT16).reshape(y.shape).copy()
        return _array(y.view(self._module.uint16)).view(_BFLOAT16)

    def bits(self, y: Any) -> bytes:
        memory = memoryview(y)
        return memory.tobytes() if memory.c_contiguous else super().bits(y)

    def owns(self, y: Any) -> bool:
        return isinstance(y, self._module.array)

    def dtype(self, name: str) -> Any:
        return getattr(self._module, name)

    def ready(self, y: Any) -> Any:
        self._module.eval(y)
        return y

    def all_ready(self, arrays: Sequence[Any]) -> Sequence[Any]:
        # Each call wakes the thread that computes, and waits for it.
        self._module.eval(*arrays)
        return arrays

    def version(self) -> str:
        from importlib.metadata import version

        return f"mlx {version('mlx')}"

    def device(self) -> str:
        return "gpu" if self._module.default_device() == self._module.Device(self._module.gpu) else "cpu"


class TorchArrays(Arrays):
    """PyTorch's tensors, on the default device, with one thread and without gradients."""

    name = "torch"
    no_indices = frozenset({"uint32"})

    def __init__(self) -> None:
        import torch

        torch.set_num_threads(1)
        torch.set_grad_enabled(False)
        self._module = torch

    def from_numpy(self, x: np.ndarray) -> Any:
        """On the device that a subject chose by ``torch.set_default_device``."""
        x = _array(x)
        if x.dtype == _BFLOAT16:
            y = self._module.from_numpy(x.view(np.int16)).view(self._module.bfloat16)
        else:
            y = self._module.from_numpy(x)
        # torch.get_default_device takes longer than all the rest.
        return y.to(self._module.empty(0).device)

    def to_numpy(self, y: Any) -> np.ndarray:
        # What is read off a conjugate lies in memory with the other sign.
        y = y.detach().cpu().resolve_neg().contiguous()
        if y.dtype == self._module.bfloat16:
            return y.view(self._module.int16).numpy().view(_BFLOAT16).copy()
        return y.numpy().copy()

    def owns(self, y: Any) -> bool:
        return isinstance(y, self._module.Tensor)

    def dtype(self, name: str) -> Any:
        return getattr(self._module, name)

    def axes_reversed(self, y: Any) -> Any:
        return y.permute(*reversed(range(y.ndim)))

    def reversed_view(self, x: np.ndarray, axis: int = -1) -> Any:
        return self.from_numpy(x)  # torch has no negative strides

    def device(self) -> str:
        kind = str(self._module.empty(0).device.type)
        return "gpu" if kind in ("cuda", "mps", "xpu") else kind

    def settings(self) -> Callable[[], None]:
        torch, device = self._module, self._module.empty(0).device
        gradients, inference = torch.is_grad_enabled(), torch.is_inference_mode_enabled()

        def set_alike() -> None:
            if inference and not torch.is_inference_mode_enabled():
                # It ends with its object.
                self._inference = torch.inference_mode()
                self._inference.__enter__()
            torch.set_grad_enabled(gradients)
            if torch.empty(0).device != device:
                torch.set_default_device(device)

        return set_alike

    def wait(self) -> None:
        # Of a subject too that moves its arrays itself.
        if self._module.cuda.is_initialized():
            self._module.cuda.synchronize()
        if self._module.empty(0).device.type == "mps":
            self._module.mps.synchronize()


class JaxArrays(Arrays):
    """JAX's, of 64 bits only where the subject enables them."""

    name = "jax"

    def __init__(self) -> None:
        import jax
        import jax.numpy as jnp

        self._jax, self._module = jax, jnp
        # Whether there are 64 bits is a subject's own choice: with them its constants of no given dtype are other ones.
        self.no_indices = self.unheld = frozenset() if jax.config.jax_enable_x64 else frozenset({"int64"})

    def from_numpy(self, x: np.ndarray) -> Any:
        return self._module.asarray(_array(x))

    def to_numpy(self, y: Any) -> np.ndarray:
        return _array(y)

    def owns(self, y: Any) -> bool:
        return isinstance(y, self._jax.Array)

    def dtype(self, name: str) -> Any:
        return getattr(self._module, name)

    def version(self) -> str:
        return f"jax {self._jax.__version__}"

    def device(self) -> str:
        # jax.default_backend does not know of jax_default_device.
        return str(next(iter(self._module.zeros(0).devices())).platform)


def arrays(kind: str) -> Arrays:
    """Return the bridge to one of KINDS; ValueError for another, ImportError where its library is missing."""
    known: dict[str, Callable[[], Arrays]] = {
        "numpy": NumpyArrays,
        "mlx": MlxArrays,
        "torch": TorchArrays,
        "jax": JaxArrays,
    }
    if kind not in known:
        raise ValueError(f"ARRAYS is {kind!r}; it takes {', '.join(KINDS)}")
    return known[kind]()


def moved(value: Any, source: Arrays, to: Arrays) -> Any:
    """What is an array of one kind as one of another; anything else as it is."""
    if source.name == to.name or not source.owns(value):
        return value
    return to.ready(to.from_numpy(source.to_numpy(source.ready(value))))
