"""A toy decoder on a batch: exact, without weights. Keys and values are codes of tokens at the positions that it was told,
and the id that a query favours is a hash of all that the query sees of them, in order.

Any token that is lost, doubled, foreign, or at another place than it has alone changes all that comes after it. The
model of a batch and the driver of real subjects share it; it judges nothing.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from inferspec.spec.numerics import f64, numpy_dtype
from inferspec.spec.toy import mixed

VOCABULARY = 50
_PRIME, _STEP = 127, 0x9E3779B97F4A7C15

Like = tuple[int, int, int, str]
"""What keys and values look like: heads, head dim of keys and of values, dtype."""


def codes(tokens: np.ndarray, positions: Sequence[int], like: Like) -> tuple[np.ndarray, np.ndarray]:
    """Keys B×H×L×D_k and values B×H×L×D_v of tokens B×L, the first of each row at its position: whole numbers below 64,
    exact in every dtype. Rows of tokens below 0 are NaN: nobody's."""
    heads, key_dim, value_dim, dtype = like
    at = np.asarray(positions)[:, None] + np.arange(tokens.shape[1])
    head, token, place = np.arange(heads)[:, None, None], tokens[:, None, :, None], at[:, None, :, None]

    def coded(dim: int, salt: int) -> np.ndarray:
        feature = np.arange(dim) + salt
        numbers = (token * (2 * feature + 3) + place * (feature * feature + 1) + head * 7) % _PRIME - _PRIME // 2
        return np.where(token < 0, np.nan, numbers).astype(numpy_dtype(dtype))

    return coded(key_dim, 0), coded(value_dim, 5)


def favoured(keys: np.ndarray, values: np.ndarray, mask: np.ndarray) -> np.ndarray:
    """The id that each query favours, B×M, of keys B×H×S×D_k, values B×H×S×D_v and mask B×1×M×S, bool or what is added to
    logits; -1 for one that sees nothing."""
    visible = mask if mask.dtype == bool else f64(mask) == 0
    batch, _, queries, columns = visible.shape
    told = np.concatenate([_numbers(x, batch, columns) for x in (keys, values)], axis=2)
    with np.errstate(over="ignore"):
        weights = np.uint64(_STEP) * np.arange(1, 2 * told.shape[2] + 1, 2, dtype=np.uint64)
        words = (told.astype(np.uint64) * weights).sum(axis=2, dtype=np.uint64)
    return np.array([[_hash(words[row][visible[row, 0, i]]) for i in range(queries)] for row in range(batch)])


def _numbers(x: np.ndarray, batch: int, columns: int) -> np.ndarray:
    """All numbers of a column, B×S×(H·D)."""
    flat = np.nan_to_num(f64(x), posinf=1e6, neginf=-1e6).swapaxes(1, 2)
    return np.rint(flat * 16).astype(np.int64).reshape(batch, columns, x.shape[1] * x.shape[3])


def _hash(words: np.ndarray) -> int:
    state = 1
    for word in words.tolist():
        state = mixed(state ^ int(word), _STEP)
    return mixed(state, _STEP) % VOCABULARY if words.size else -1
