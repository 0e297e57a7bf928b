"""Toys behind the interface that the contract asks of models: ids 1×L in, logits 1×L×V out, a cache of layers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from inferspec.conformance.bridge.arrays import Arrays
from inferspec.spec.numerics import numpy_dtype
from inferspec.spec.toy import FixedCache, ToyCache


class Layer:
    """A layer of a toy's cache, with what generators read of one: offset and state."""

    def __init__(self, cache: FixedCache, to: Arrays) -> None:
        self.cache, self._to = cache, to

    @property
    def offset(self) -> int:
        return self.cache.offset

    @property
    def state(self) -> Any:
        return self._to.from_numpy(np.array(self.cache.tokens, np.int32))


class RewindableLayer(Layer):
    """A layer of which the last tokens can be taken back."""

    cache: ToyCache

    def rewind(self, n: int) -> None:
        self.cache.rewind(n)


class Layers(list[Layer]):
    """The layers of a cache, with what is read of it by who takes them for one thing."""

    @property
    def offset(self) -> int:
        return self[0].offset


class RewindableLayers(Layers):
    """Those of which the last tokens can be taken back, one layer after the other or in one go."""

    def rewind(self, n: int) -> None:
        for layer in self:
            layer.rewind(n)  # type: ignore[attr-defined]


class Model:
    """A toy as a model of one sequence, its logits in a dtype.

    call: takes the ids and the layers of a cache, or None, and returns logits L×V; make: returns the layers of a cache.
    """

    def __init__(
        self,
        call: Callable[[list[int], Sequence[FixedCache] | None], np.ndarray],
        make: Callable[[], Sequence[FixedCache]],
        dtype: str,
        to: Arrays,
    ) -> None:
        self._call, self._make, self._dtype, self._to = call, make, dtype, to

    def make_cache(self) -> Layers:
        made = [
            RewindableLayer(layer, self._to) if isinstance(layer, ToyCache) else Layer(layer, self._to)
            for layer in self._make()
        ]
        return RewindableLayers(made) if all(isinstance(layer, RewindableLayer) for layer in made) else Layers(made)

    def __call__(self, tokens: Any, cache: Sequence[Layer] | None = None) -> Any:
        if not self._to.owns(tokens):
            raise TypeError(f"the model is given a {type(tokens).__name__}; it takes an array of ids, 1×L")
        ids = self._to.to_numpy(tokens)
        if ids.ndim != 2 or len(ids) != 1 or ids.dtype.kind not in "iu":
            raise ValueError(f"the model is given {ids.dtype.name}{list(ids.shape)}; it takes ids, 1×L")
        rows = self._call(ids[0].tolist(), None if cache is None else [layer.cache for layer in cache])
        return self._to.from_numpy(rows.astype(np.float32).astype(numpy_dtype(self._dtype))[None])
