"""A kernel that walks over tiles of keys with a running softmax, in float64, and the places where it goes wrong.

Every mistake is a `Kernel` with one method or number changed; `walking` makes it the way in which an operation attends.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from inferspec.spec.contract import Change, Operation


class Kernel:
    """The FlashAttention loop: tiles of keys in order, one running maximum and one running sum for each row.

    tile: keys of a tile; rows: queries of a block. Shapes: q N..×L×D, k and v N..×S×D, bias N..×L×S.
    """

    tile = 32
    rows = 32
    start = -np.inf
    """Where the running maximum starts."""

    def tiles(self, keys: int) -> list[slice]:
        return [slice(start, min(start + self.tile, keys)) for start in range(0, keys, self.tile)]

    def logits(self, q: np.ndarray, k: np.ndarray, scale: float, bias: np.ndarray) -> np.ndarray:
        return q @ k.swapaxes(-1, -2) * scale + bias

    def top(self, old: np.ndarray, logits: np.ndarray) -> np.ndarray:
        """The running maximum after a tile."""
        return np.maximum(old, logits.max(axis=-1, keepdims=True, initial=-np.inf))

    def factor(self, old: np.ndarray, new: np.ndarray) -> np.ndarray:
        """What earlier sums are multiplied by; nothing was summed before the first finite maximum."""
        return np.where(np.isneginf(old), 0.0, np.exp(old - _finite(new)))

    def weights(self, logits: np.ndarray, top: np.ndarray) -> np.ndarray:
        return np.exp(logits - _finite(top))

    def add(
        self, total: np.ndarray, mixed: np.ndarray, factor: np.ndarray, weights: np.ndarray, v: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """The running sum of the weights, and of the weighted values, after a tile."""
        return total * factor + weights.sum(axis=-1, keepdims=True), mixed * factor + weights @ v

    def result(self, total: np.ndarray, mixed: np.ndarray) -> np.ndarray:
        return np.divide(mixed, total, out=np.zeros_like(mixed), where=total != 0)

    def run(self, q: np.ndarray, k: np.ndarray, v: np.ndarray, scale: float, bias: np.ndarray) -> np.ndarray:
        total, mixed = np.zeros((*q.shape[:-1], 1)), np.zeros((*q.shape[:-1], v.shape[-1]))
        top = np.full(total.shape, self.start)
        for part in self.tiles(k.shape[-2]):
            logits = self.logits(q, k[..., part, :], scale, bias[..., part])
            new = self.top(top, logits)
            total, mixed = self.add(total, mixed, self.factor(top, new), self.weights(logits, new), v[..., part, :])
            top = new
        return self.result(total, mixed)


def walking(tile: int = 32, **mistakes: Any) -> Change:
    """Attention by a kernel with some of its methods or numbers replaced."""
    kernel: Callable[[], Any] = type("Mistaken", (Kernel,), {"tile": tile, **mistakes})

    def attended(
        self: Operation, q: np.ndarray, k: np.ndarray, v: np.ndarray, scale: float, bias: np.ndarray, dtype: str
    ) -> np.ndarray:
        with np.errstate(all="ignore"):
            return kernel().run(q, k, v, scale, np.broadcast_to(bias, (*q.shape[:-1], k.shape[-2])))

    return {"attended": attended}


TILES = (8, 16, 32, 64, 128, 256, 512)
"""Keys of a tile, as kernels have them."""


def in_other_tiles(tile: int, **mistakes: Any) -> tuple[Change, ...]:
    """The same mistake in kernels with other tiles than this."""
    return tuple(walking(other, **mistakes) for other in TILES if other != tile)


def _finite(top: np.ndarray) -> np.ndarray:
    return np.where(np.isneginf(top), 0.0, top)


# Running sums


def sums_kept(self: Kernel, total: Any, mixed: Any, factor: Any, weights: Any, v: Any) -> tuple[Any, Any]:
    """Nothing summed before is rescaled."""
    return total + weights.sum(axis=-1, keepdims=True), mixed + weights @ v


def values_kept(self: Kernel, total: Any, mixed: Any, factor: Any, weights: Any, v: Any) -> tuple[Any, Any]:
    return total * factor + weights.sum(axis=-1, keepdims=True), mixed + weights @ v


def total_kept(self: Kernel, total: Any, mixed: Any, factor: Any, weights: Any, v: Any) -> tuple[Any, Any]:
    return total + weights.sum(axis=-1, keepdims=True), mixed * factor + weights @ v


def factor_of_first_row(self: Kernel, total: Any, mixed: Any, factor: Any, weights: Any, v: Any) -> tuple[Any, Any]:
    """Every row's values are rescaled by the factor of the first one."""
    shared = np.broadcast_to(factor[..., :1, :], factor.shape)
    return total * factor + weights.sum(axis=-1, keepdims=True), mixed * shared + weights @ v


def factor_on_first_features(
    self: Kernel, total: Any, mixed: Any, factor: Any, weights: Any, v: Any
) -> tuple[Any, Any]:
    """Each lane holds several features of the running values and rescales the first 32 alone."""
    held = np.where(np.arange(mixed.shape[-1]) < 32, factor, 1.0)
    return total * factor + weights.sum(axis=-1, keepdims=True), mixed * held + weights @ v


def factor_after_adding(self: Kernel, total: Any, mixed: Any, factor: Any, weights: Any, v: Any) -> tuple[Any, Any]:
    """The new tile's values are added before the sum is rescaled."""
    return total * factor + weights.sum(axis=-1, keepdims=True), (mixed + weights @ v) * _usable(factor)


def each_tile_normalised(self: Kernel, total: Any, mixed: Any, factor: Any, weights: Any, v: Any) -> tuple[Any, Any]:
    share = weights.sum(axis=-1, keepdims=True)
    mean = np.divide(weights @ v, share, out=np.zeros_like(mixed), where=share != 0)
    return np.maximum(total, share != 0), np.where(total > 0, (mixed + mean) / 2, mean)


def first_tile_assigned_late(
    self: Kernel, total: Any, mixed: Any, factor: Any, weights: Any, v: Any
) -> tuple[Any, Any]:
    """Values are stored, not added."""
    return total * factor + weights.sum(axis=-1, keepdims=True), weights @ v


def _usable(factor: np.ndarray) -> np.ndarray:
    return np.where(factor == 0, 1.0, factor)


# Running maxima


def top_of_first_tile(self: Kernel, old: np.ndarray, logits: np.ndarray) -> np.ndarray:
    return np.where(np.isneginf(old), Kernel.top(self, old, logits), old)


def top_of_block(self: Kernel, old: np.ndarray, logits: np.ndarray) -> np.ndarray:
    """One maximum for all rows of a block."""
    highest = logits.max(axis=-1, keepdims=True, initial=-np.inf)
    for start in range(0, logits.shape[-2], self.rows):
        block = (..., slice(start, start + self.rows), slice(None))
        highest[block] = highest[block].max(axis=-2, keepdims=True)
    return np.maximum(old, highest)


def factor_inverted(self: Kernel, old: np.ndarray, new: np.ndarray) -> np.ndarray:
    return np.where(np.isneginf(old), 0.0, np.exp(_finite(new) - old))


def factor_in_base_two(self: Kernel, old: np.ndarray, new: np.ndarray) -> np.ndarray:
    """exp2 of a difference that nobody multiplied by log2(e)."""
    return np.where(np.isneginf(old), 0.0, np.exp2(old - _finite(new)))


def factor_unguarded(self: Kernel, old: np.ndarray, new: np.ndarray) -> np.ndarray:
    """exp(-inf - -inf) where no key has been seen yet."""
    return np.exp(old - new)


def weights_unguarded(self: Kernel, logits: np.ndarray, top: np.ndarray) -> np.ndarray:
    return np.exp(logits - top)


# Hidden tiles


def hidden_keys_count(self: Kernel, logits: np.ndarray, top: np.ndarray) -> np.ndarray:
    """In a row that has seen no key yet a hidden key weighs exp(0)."""
    return np.where(np.isneginf(top), 1.0, Kernel.weights(self, logits, top))


def stops_at_hidden_tile(self: Kernel, q: Any, k: Any, v: Any, scale: float, bias: np.ndarray) -> np.ndarray:
    """A block of rows ends its walk at the first tile that it sees nothing of."""
    return Kernel.run(self, q, k, v, scale, _hidden_from_gap(self, bias, from_gap=True))


def only_tile_after_hidden_skipped(self: Kernel, q: Any, k: Any, v: Any, scale: float, bias: np.ndarray) -> np.ndarray:
    """Skipping a hidden tile advances the pointer twice."""
    return Kernel.run(self, q, k, v, scale, _hidden_from_gap(self, bias, from_gap=False))


def _hidden_from_gap(kernel: Kernel, bias: np.ndarray, from_gap: bool) -> np.ndarray:
    bias = bias.copy()
    for start in range(0, bias.shape[-2], kernel.rows):
        block = bias[..., start : start + kernel.rows, :]
        gone = np.zeros((*block.shape[:-2], 1, 1), bool)
        for part in kernel.tiles(bias.shape[-1]):
            hidden = np.isneginf(block[..., part]).all(axis=(-1, -2), keepdims=True)
            block[..., part] = np.where(gone, -np.inf, block[..., part])
            gone = gone | hidden if from_gap else hidden & ~gone
    return bias


def hidden_tile_resets(self: Kernel, old: np.ndarray, logits: np.ndarray) -> np.ndarray:
    """The running maximum falls back to -inf at a tile without visible keys, and forgets what was summed."""
    return np.where(np.isneginf(logits).all(axis=-1, keepdims=True), -np.inf, Kernel.top(self, old, logits))


def top_after_nan(self: Kernel, old: np.ndarray, logits: np.ndarray) -> np.ndarray:
    """The running maximum after a tile with NaN begins anew with the next."""
    return Kernel.top(self, np.where(np.isnan(old), -np.inf, old), logits)


def nothing_of_nan(self: Kernel, old: np.ndarray, new: np.ndarray) -> np.ndarray:
    return np.where(np.isnan(old), 0.0, Kernel.factor(self, old, new))


def after_nan(self: Kernel, total: Any, mixed: Any, factor: Any, weights: Any, v: Any) -> tuple[Any, Any]:
    """What was summed before a factor of 0 is not multiplied by it but left out."""
    return Kernel.add(self, np.where(factor == 0, 0.0, total), np.where(factor == 0, 0.0, mixed), factor, weights, v)


# Bounds of tiles


def whole_tiles(self: Kernel, keys: int) -> list[slice]:
    """S // tile of them: what is left over is never read."""
    return Kernel.tiles(self, keys // self.tile * self.tile or keys)


def one_tile_less(self: Kernel, keys: int) -> list[slice]:
    """(S - 1) // tile whole tiles and the rest, which is nothing where S is a multiple."""
    return Kernel.tiles(self, keys)[:-1] if keys % self.tile == 0 and keys > self.tile else Kernel.tiles(self, keys)


def all_but_one_past(self: Kernel, keys: int) -> list[slice]:
    """A last tile of a single key is never read."""
    tiles = Kernel.tiles(self, keys)
    return tiles[:-1] if keys % self.tile == 1 and keys > self.tile else tiles


def last_tile_moved_back(self: Kernel, keys: int) -> list[slice]:
    """The last tile is moved back so that it is whole: keys that it shares with the one before count twice."""
    tiles = Kernel.tiles(self, keys)
    return [*tiles[:-1], slice(keys - self.tile, keys)] if keys > self.tile else tiles


def tail_not_hidden(self: Kernel, q: Any, k: Any, v: Any, scale: float, bias: np.ndarray) -> np.ndarray:
    """The columns past the last key are loaded as zeros and take part: logit 0, value 0."""
    short = -k.shape[-2] % self.tile
    pad = [(0, 0)] * (k.ndim - 2) + [(0, short), (0, 0)]
    wide = np.concatenate([bias, np.zeros((*bias.shape[:-1], short))], axis=-1)
    return Kernel.run(self, q, np.pad(k, pad), np.pad(v, pad), scale, wide)


def tail_repeats_last_key(self: Kernel, q: Any, k: Any, v: Any, scale: float, bias: np.ndarray) -> np.ndarray:
    """The columns past the last key are clamped to it, and counted."""
    place = np.minimum(np.arange(-(-k.shape[-2] // self.tile) * self.tile), k.shape[-2] - 1)
    if k.shape[-2] == 0:
        return np.zeros((*q.shape[:-1], v.shape[-1]))
    return Kernel.run(self, q, k[..., place, :], v[..., place, :], scale, bias[..., place])


def sums_carried_to_next_block(self: Kernel, q: Any, k: Any, v: Any, scale: float, bias: np.ndarray) -> np.ndarray:
    """The running sum of the weights is not set to zero when a threadgroup takes its next block of rows."""
    out, stale = np.zeros((*q.shape[:-1], v.shape[-1])), np.zeros((*q.shape[:-1], 1))
    for start in range(0, q.shape[-2], self.rows):
        rows = (..., slice(start, start + self.rows), slice(None))
        kernel = _Carrying(self.tile, stale)
        out[rows] = kernel.run(q[rows], k, v, scale, bias[rows])
        stale = kernel.total
    return out


class _Carrying(Kernel):
    """Starts with the sums of the block of rows before."""

    def __init__(self, tile: int, stale: np.ndarray) -> None:
        self.tile, self.stale, self.total = tile, stale, stale

    def result(self, total: np.ndarray, mixed: np.ndarray) -> np.ndarray:
        self.total = total + (self.stale[..., : total.shape[-2], :] if self.stale.any() else 0.0)
        return Kernel.result(self, self.total, mixed)
