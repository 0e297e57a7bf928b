"""Recipes of goldens: one module per component, which computes in float64 PyTorch, independently of the spec's oracle.

A recipe draws seeded inputs with NumPy and computes the answer with PyTorch's own functions. It reads the contract for
ids and dtypes, never for formulas.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from inferspec.spec.contract import Requirement
from inferspec.spec.numerics import numpy_dtype


class Draw:
    """Seeded values in a dtype, the same on every machine: whole numbers over a power of two, then one rounding."""

    def __init__(self, seed: int, dtype: str) -> None:
        self._random, self._dtype = np.random.default_rng(seed), numpy_dtype(dtype)

    def values(self, *shape: int, size: float = 2.0) -> np.ndarray:
        """Uniform in (-size, size), and never 0."""
        steps = self._random.integers(1, 2**20, shape) * self._random.choice([-1, 1], shape)
        return self.exactly(steps * (size / 2**20))

    def exactly(self, values: Any) -> np.ndarray:
        """The values given, rounded to the dtype."""
        return np.asarray(values, np.float32).astype(self._dtype)

    def ids(self, *shape: int, below: int, dtype: str) -> np.ndarray:
        """Token ids."""
        return np.asarray(self._random.integers(0, below, shape), dtype)

    def flags(self, *shape: int) -> np.ndarray:
        """Bools, the first of every row true."""
        flags = self._random.integers(0, 2, shape).astype(bool)
        flags[..., 0] = True
        return flags


@dataclass(frozen=True)
class Case:
    """How one golden is made.

    requirement: the sentence that it is an example of. features: as envelopes name them, with "dtypes" where arrays
    are floats. inputs: draws the contract's flattened arguments of one call. compute: takes the same arguments, by
    name, with arrays as float64 tensors, nested ones too (bool and int64 ones stay what they are), and returns the
    answer, or a dict of its parts. condition: see `inferspec.golden.Golden`. libraries: packages that it computes with
    beside PyTorch.
    """

    name: str
    requirement: Requirement
    seed: int
    features: Mapping[str, Any]
    inputs: Callable[[Draw], dict[str, Any]]
    compute: Callable[..., Any]
    condition: float = 1.0
    libraries: tuple[str, ...] = ()

    def arguments(self) -> dict[str, Any]:
        return self.inputs(Draw(self.seed, self.features.get("dtypes", "float32")))
