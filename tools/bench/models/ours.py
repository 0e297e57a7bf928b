"""The kit's own models and generation, on the path that the process's environment makes them take."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import mlx.core as mx
import numpy as np

from inferspec.impl import loading
from inferspec.impl.generation import generate
from inferspec.tools.bench.models import NO_CACHE


class Ours:
    """A model of the kit's interface. cached: whether ids are generated with a key/value cache."""

    def __init__(self, model: Any, cached: bool = True) -> None:
        self.model, self.cached = model, cached

    def ids(self, prompt: Sequence[int], count: int) -> Iterable[int]:
        """Our loop."""
        return generate(self.model, prompt, max_tokens=count, cache=self.cached)

    def logits(self, tokens: Sequence[int], split: int) -> np.ndarray:
        """See the package."""
        cache = self.model.make_cache()
        pieces = [tokens[:split], *([token] for token in tokens[split:])]
        rows = [self.model(mx.array([list(piece)]), cache)[0].astype(mx.float32) for piece in pieces]
        return np.array(mx.concatenate(rows))


def load(source: Path, variant: str, threads: int, positions: int) -> Ours:
    """Load a folder or a GGUF file."""
    return Ours(loading.load(source), variant != NO_CACHE)
