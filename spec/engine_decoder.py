"""The decoders that an engine serves: what comes of a model's weights is made ready once, and what a model said is recalled."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

import numpy as np

from inferspec.spec.contract import Arguments
from inferspec.spec.llama import Llama
from inferspec.spec.qwen3 import Qwen3
from inferspec.spec.stochastic import Exact, Matrix
from inferspec.spec.transformer import Decoder, Memory

FAMILIES: dict[str, type[Decoder]] = {"qwen3": Qwen3, "llama": Llama}

PREPARED = 8
"""Decoders that are kept."""

RECALLED, SMALL = 16384, 2**14
"""Results of models that are kept, and bytes of one up to which it is."""

_RECALLED: dict[bytes, tuple[np.ndarray, dict[int, tuple[np.ndarray, np.ndarray]]]] = {}


class _Prepared(Decoder):
    """A decoder of one model: what comes of its weights and of positions alone is computed once."""

    def __init__(self, model: Any) -> None:
        self.known_by = _sum_of(model)
        self._matrices: dict[str, Matrix] = {}
        self._rotations: dict[tuple[bytes, int], tuple[np.ndarray, np.ndarray]] = {}

    def matrix(self, name: str, a: Arguments) -> Matrix:
        if name not in self._matrices:
            self._matrices[name] = super().matrix(name, a)
        return self._matrices[name]

    def rotation(self, positions: np.ndarray, dim: int, a: Arguments, m: Exact) -> tuple[np.ndarray, np.ndarray]:
        key = positions.tobytes(), dim
        if key not in self._rotations:
            self._rotations[key] = super().rotation(positions, dim, a, m)
        return self._rotations[key]


_DECODERS: dict[tuple[int, int], tuple[_Prepared, Any, Any]] = {}

_PREPARED: dict[str, type[_Prepared]] = {
    family: type(kind.__name__, (_Prepared, kind), {}) for family, kind in FAMILIES.items()
}


def prepared(model: Any) -> _Prepared:
    """The decoder of a model, which is not to be changed."""
    config, weights = model["config"], model["weights"]
    key = id(config), id(weights)
    if key not in _DECODERS:
        # With the objects whose ids are the key, which then are not given to others.
        _DECODERS[key] = _PREPARED[model["family"]](model), config, weights
        if len(_DECODERS) > PREPARED:
            del _DECODERS[next(iter(_DECODERS))]
    return _DECODERS[key][0]


def _sum_of(model: Any) -> bytes:
    """What tells a model from others."""
    found = hashlib.blake2b(repr((model["family"], model["config"])).encode())
    for name, x in sorted(model["weights"].items()):
        found.update(f"{name} {x.dtype}".encode())
        found.update(x.tobytes())
    return found.digest()


def forward(model: Any, tokens: Sequence[int], memory: Memory) -> np.ndarray:
    """L×V logits of tokens that follow those in memory, in float64. model: family, config, weights, not to be changed."""
    ids = np.array([tokens], np.int64)
    with np.errstate(all="ignore"):
        a = Arguments(config=model["config"], weights=model["weights"], tokens=ids)
        return np.asarray(prepared(model).forward(ids, a, Exact(), memory)[0, 0])


def recalled(model: Any, tokens: Sequence[int], memory: Memory) -> np.ndarray:
    """What `forward` gives, and memory as it leaves it. The last small results are kept: the faults and variants of an engine
    mostly feed what others fed."""
    decoder = prepared(model)
    key = _sum_of_call(decoder, tokens, memory)
    if key in _RECALLED:
        logits, new = _RECALLED[key]
        for layer, pair in new.items():
            decoder.extended(memory, layer, *pair)
        decoder.advance(memory, len(tokens))
        return logits.copy()
    logits = forward(model, tokens, memory)
    new = {
        layer: tuple(x[..., x.shape[3] - len(tokens) :, :].copy() for x in pair)
        for layer, pair in memory.items()
        if layer != "offset"
    }
    if logits.nbytes + sum(x.nbytes for pair in new.values() for x in pair) <= SMALL:
        _RECALLED[key] = logits.copy(), new
    if len(_RECALLED) > RECALLED:
        del _RECALLED[next(iter(_RECALLED))]
    return logits


def _sum_of_call(decoder: _Prepared, tokens: Sequence[int], memory: Memory) -> bytes:
    found = hashlib.blake2b(decoder.known_by)
    found.update(repr((tokens, memory.get("offset", 0))).encode())
    for layer, pair in memory.items():
        if layer != "offset":
            for x in pair:
                found.update(x.tobytes())
    return found.digest()
