"""Token ids that callers give: integers of a vocabulary."""

from __future__ import annotations

import mlx.core as mx
import numpy as np


def ids_of(tokens: mx.array, vocabulary: int) -> np.ndarray:
    """Return ids of any shape as NumPy's, which evaluates and waits for them: MLX reads out of bounds without a word.

    Raises TypeError when tokens are not integers, ValueError when an id is outside 0 … vocabulary - 1.
    """
    if not mx.issubdtype(tokens.dtype, mx.integer):
        raise TypeError(f"tokens are {tokens.dtype}; they take an integer array")
    ids = np.asarray(tokens)
    if ids.size:
        low, high = int(ids.min()), int(ids.max())
        if low < 0 or high >= vocabulary:
            raise ValueError(f"tokens range from {low} to {high}; they take 0 … {vocabulary - 1}")
    return ids
