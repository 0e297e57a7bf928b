"""Sampling in MLX: top-k and top-p filters, and the draw of ids by inverse CDF from uniforms that the caller makes."""

from __future__ import annotations

import math
from operator import index

import mlx.core as mx

_NORMAL = (2.0**-126, 2.0**127)
"""What a temperature is held within: float32 can divide by these, and beyond them the answer no longer changes."""


def filter_logits(logits: mx.array, top_k: int | None = None, top_p: float = 1.0) -> mx.array:
    """Return the logits with every entry that does not survive at -inf, the others unchanged: N..×V in their dtype.

    top_k: exactly so many entries of each row survive, equal ones by lowest index; None, 0, -1 and V or more keep all.
    top_p: of those, the fewest that hold at least this share of their probability, in the same order; at least one
    survives, and 1 keeps all. Masses are summed in float32. A row without a distribution (a NaN, or nothing above
    -inf) comes back as it is. Raises ValueError for logits without a vocabulary axis, top_k below -1 and top_p outside
    (0, 1], TypeError for logits that are not floating-point and a top_k that is not an integer.
    """
    _check_logits(logits)
    top_k, top_p = _limit(top_k), _share(top_p)
    kept, top = _top_k(logits, top_k), _highest(logits)
    kept = _top_p(logits.astype(mx.float32) - top, kept, top_k, top_p)
    return mx.where(kept | ~_distributed(top), logits, mx.array(-mx.inf, logits.dtype))


class Sampler:
    """Draws one id from each row of logits.

    temperature: 0 takes the largest logit, the lowest id among equal ones; above 0 the logits are divided by it, then
    top_k and top_p filter them as `filter_logits` does. Raises ValueError for a temperature that is negative or not
    finite, and for what `filter_logits` refuses.
    """

    def __init__(self, temperature: float = 0, top_k: int | None = None, top_p: float = 1.0) -> None:
        if not (temperature >= 0 and math.isfinite(temperature)):
            raise ValueError(f"temperature is {temperature}; it takes a finite number from 0 on")
        self.temperature = temperature
        self.top_k = _limit(top_k)
        self.top_p = _share(top_p)

    def __call__(self, logits: mx.array, uniform: mx.array) -> mx.array:
        """Return ids: N.. uint32 for logits: N..×V and one uniform number in [0, 1) for each row.

        With cdf(i) the sum of the surviving probabilities of the ids up to i, in ascending order of ids, the id of a
        row is the first whose cdf exceeds its uniform number. An id that was filtered out or has no probability is
        never drawn. A row without a distribution (a NaN, or nothing above -inf) gives id 0. Raises ValueError when
        `uniform` is not of the shape N.. or has a number outside [0, 1), which waits for its values.
        """
        _check_logits(logits)
        _check_uniform(uniform, logits.shape[:-1])
        if not logits.size:
            return mx.zeros(logits.shape[:-1], mx.uint32)
        top = _highest(logits)
        if self.temperature == 0:
            return mx.where(_distributed(top)[..., 0], mx.argmax(logits, axis=-1), 0)
        weights = weigh(logits, self.temperature, self.top_k, self.top_p)
        ids = draw(weights, uniform)
        return mx.where(_distributed(top)[..., 0], ids, 0).astype(mx.uint32)


def weigh(logits: mx.array, temperature: float, top_k: int | None = None, top_p: float = 1.0) -> mx.array:
    """Return the probabilities that ids are drawn with, up to a factor for each row: N..×V float32, 0 where filtered out.

    temperature: above 0. A row without a distribution has no weight anywhere.
    """
    # The largest logit goes first: then neither a small temperature nor large logits lose or overflow anything.
    lowest, highest = _NORMAL
    top = _highest(logits)
    tempered = (logits.astype(mx.float32) - top) / min(max(temperature, lowest), highest)
    top_k = _limit(top_k)
    kept = _top_p(tempered, _top_k(logits, top_k), top_k, top_p)
    return mx.where(kept & _distributed(top), mx.exp(tempered), 0)


def draw(weights: mx.array, uniform: mx.array) -> mx.array:
    """Return ids: N.. by inverse CDF. weights: N..×V float32, probabilities up to a factor; uniform: N.. in [0, 1).

    The id of a row is the first whose sum of weights, in ascending order of ids, exceeds that share of the row's total;
    none without a weight is drawn.
    """
    cdf = mx.cumsum(weights, axis=-1)
    past = (cdf > uniform.astype(mx.float32)[..., None] * cdf[..., -1:]) & (weights > 0)
    # Rounding may leave nothing past the largest uniforms: they belong to the last id with any probability.
    last = weights.shape[-1] - 1 - mx.argmax((weights > 0)[..., ::-1], axis=-1)
    return mx.where(past.any(axis=-1), mx.argmax(past, axis=-1), last)


def _highest(logits: mx.array) -> mx.array:
    """The largest logit of each row in float32: N..×1, NaN where the row has one."""
    top = logits.max(axis=-1, keepdims=True).astype(mx.float32)
    return mx.where(mx.isnan(logits).any(axis=-1, keepdims=True), mx.nan, top)


def _distributed(top: mx.array) -> mx.array:
    """Whether each row has a distribution."""
    return top > -mx.inf


def _top_k(logits: mx.array, top_k: int) -> mx.array:
    """Which entries are among the `top_k` largest of their row; 0 for all."""
    if not 0 < top_k < logits.shape[-1]:
        return mx.ones(logits.shape, mx.bool_)
    return _first(logits, mx.topk(logits, top_k, axis=-1).min(axis=-1, keepdims=True), top_k)


def _top_p(shifted: mx.array, kept: mx.array, top_k: int, top_p: float) -> mx.array:
    """Which of the kept entries hold `top_p` of their mass. shifted: float32 logits, none above 0; kept: `top_k` of them."""
    if top_p == 1:
        return kept
    shifted = mx.where(kept, shifted, -mx.inf)
    # To sort a vocabulary takes ten times as long as to find its largest.
    likely = mx.topk(shifted, top_k, axis=-1) if 0 < top_k < shifted.shape[-1] else shifted
    in_order = mx.sort(likely, axis=-1)[..., ::-1]
    weights = mx.exp(in_order)
    before = mx.cumsum(weights, axis=-1, inclusive=False)
    total = before[..., -1:] + weights[..., -1:]
    count = mx.maximum((before < top_p * total).sum(axis=-1, keepdims=True), 1)
    return kept & _first(shifted, mx.take_along_axis(in_order, count - 1, axis=-1), count)


def _first(values: mx.array, last: mx.array, count: mx.array | int) -> mx.array:
    """Which entries are the first `count` of their row, the largest first and equal ones by index. last: N..×1, the
    value of the last of them.

    A count of equal ones does not depend on a sort's stability, which differs by device.
    """
    above, equal = values > last, values == last
    left = count - above.sum(axis=-1, keepdims=True)
    return above | (equal & (mx.cumsum(equal.astype(mx.int32), axis=-1) <= left))


def _check_logits(logits: mx.array) -> None:
    if not mx.issubdtype(logits.dtype, mx.floating):
        raise TypeError(f"logits are {logits.dtype}; they take a floating-point array")
    if logits.ndim < 1 or logits.shape[-1] < 1:
        raise ValueError(f"logits are {logits.shape}; they take N..×V with at least one id")


def _check_uniform(uniform: mx.array, shape: tuple[int, ...]) -> None:
    if uniform.shape != shape:
        raise ValueError(f"uniform is {uniform.shape}; it takes one number for each row, {shape}")
    if uniform.size and not bool(((uniform >= 0) & (uniform < 1)).all()):
        raise ValueError("uniform has numbers outside [0, 1); it takes numbers from 0 to below 1")


def _limit(top_k: int | None) -> int:
    """top_k as a number, 0 for no limit."""
    top_k = 0 if top_k is None else index(top_k)
    if top_k < -1:
        raise ValueError(f"top_k is {top_k}; it takes a positive integer, or None, 0 or -1 for no limit")
    return max(top_k, 0)


def _share(top_p: float) -> float:
    if not 0 < top_p <= 1:
        raise ValueError(f"top_p is {top_p}; it takes a number above 0 and up to 1")
    return top_p
