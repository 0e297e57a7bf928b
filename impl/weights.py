"""The tensors of a model by their Hugging Face names: each handed out once, with its shape checked."""

from __future__ import annotations

from collections.abc import Mapping

import mlx.core as mx

from inferspec.impl.embedding import Embedding
from inferspec.impl.linear import linear
from inferspec.impl.model_config import ModelConfig
from inferspec.impl.quantization import QuantizedEmbedding, QuantizedLinear

SHOWN = 5
"""Names that an error lists before it counts the others."""


class Linear:
    """A dense layer; weight: O×I, bias: O or None."""

    def __init__(self, weight: mx.array, bias: mx.array | None = None) -> None:
        self.weight, self.bias = weight, bias

    def __call__(self, x: mx.array) -> mx.array:
        """Return x · weightᵀ + bias, in the dtype of x."""
        return linear(x, self.weight, self.bias)


class Weights:
    """Builds layers of a checkpoint's tensors; a tensor that is missing, misshaped or left over is named."""

    def __init__(self, tensors: Mapping[str, mx.array], config: ModelConfig) -> None:
        if not isinstance(tensors, Mapping):
            raise TypeError(f"weights are {type(tensors).__name__}; they take a dict of arrays by their names")
        self._tensors, self._config = tensors, config
        self._left = set(tensors)

    def vector(self, name: str, size: int) -> mx.array:
        """Return a tensor of `size` numbers."""
        return self._take(name, (size,))

    def linear(self, name: str, outputs: int, inputs: int, bias: bool = False) -> Linear | QuantizedLinear:
        """Return the layer `name`, dense or quantised."""
        addend = self._take(f"{name}.bias", (outputs,)) if bias else None
        if self._quantised(name):
            return QuantizedLinear(*self._packed(name, outputs, inputs), *self._config.packing(name), addend)
        return Linear(self._take(f"{name}.weight", (outputs, inputs)), addend)

    def embedding(self, name: str, rows: int, dims: int) -> Embedding | QuantizedEmbedding:
        """Return the table `name`, dense or quantised."""
        if self._quantised(name):
            return QuantizedEmbedding(*self._packed(name, rows, dims), *self._config.packing(name))
        return Embedding(rows, dims, self._take(f"{name}.weight", (rows, dims)))

    def ignore(self, layer: str) -> None:
        """Let a layer be there that is not used."""
        self._left -= {name for name in self._left if name.startswith(f"{layer}.")}

    def finish(self) -> None:
        """ValueError when tensors are left over."""
        if self._left:
            raise ValueError(f"weights have {_listed(self._left)}, which the config has no place for")

    def _quantised(self, name: str) -> bool:
        """Whether a layer is packed: MLX leaves layers dense whose inputs are no multiple of the group size."""
        return f"{name}.scales" in self._tensors

    def _packed(self, name: str, outputs: int, inputs: int) -> tuple[mx.array, mx.array, mx.array]:
        group_size, bits = self._config.packing(name)
        if inputs % group_size:
            raise ValueError(f"{name} has {inputs} inputs; group_size={group_size} takes a multiple of it")
        grid = (outputs, inputs // group_size)
        return (
            self._take(f"{name}.weight", (outputs, inputs * bits // 32), mx.uint32),
            self._take(f"{name}.scales", grid),
            self._take(f"{name}.biases", grid),
        )

    def _take(self, name: str, shape: tuple[int, ...], dtype: mx.Dtype | mx.DtypeCategory = mx.floating) -> mx.array:
        if name not in self._tensors:
            raise ValueError(f"weights have no {name}; the config asks for it with shape {shape}")
        tensor = self._tensors[name]
        if tensor.shape != shape:
            raise ValueError(f"{name} is {tensor.shape}; by the config it takes {shape}")
        if not mx.issubdtype(tensor.dtype, dtype):
            raise TypeError(f"{name} is {tensor.dtype}; it takes {dtype}")
        self._left.discard(name)
        return tensor


def _listed(names: set[str]) -> str:
    shown = sorted(names)[:SHOWN]
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return ", ".join(shown) + more
