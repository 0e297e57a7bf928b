"""Logits, each kind with something that filters and samplers get wrong.

A kind takes a shape, rows along the last axis, and gives float64; what is drawn is rounded to a dtype after that.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from inferspec.conformance.strategies import Pick
from inferspec.spec.numerics import largest, unit_roundoff

Logits = Callable[[Pick, tuple[int, ...]], np.ndarray]
"""Makes logits of a shape in float64, rows along the last axis; they are rounded to a dtype after that."""

LIMITS = (40, 64, 256, 1024, 32, 33, 50, 65, 100, 200, 257, 512, 1023)
"""Limits that people ask for."""

MORE_THAN_1024 = (2000, 1100)
"""Limits past what a buffer of candidates holds."""


def apart(pick: Pick, shape: tuple[int, ...]) -> np.ndarray:
    """Logits of different entries differ by an eighth at least: no dtype, temperature or shift makes two of them equal.

    Of more than 24 entries the others all lie far below these.
    """
    rows, size = math.prod(shape[:-1]), shape[-1]
    likely, spread, others = min(size, 24), pick.one_of(0.25, 0.125, 0.5), np.full(max(size - 24, 0), -40.0)
    # Each row has levels of its own: a limit of one row is wrong for another.
    levels = pick.random.integers(-8, 9, (rows, 1)) - likely + np.arange(likely)
    steps = levels + pick.random.integers(0, 3, (rows, likely)).cumsum(axis=-1)
    by_row = [pick.random.permutation(np.concatenate([row * spread, others])) for row in steps]
    return np.reshape(by_row, shape) if rows else np.zeros(shape)


def far_above_the_first(pick: Pick, shape: tuple[int, ...]) -> np.ndarray:
    """Those of `apart`, of which all rows but the first lie where float32 does not tell the logits of the first apart."""
    x = apart(pick, shape)
    rows = x.reshape(-1, shape[-1])
    rows[1:] = 2.0**24 + 256 * rows[1:]
    return x


def fine(pick: Pick, shape: tuple[int, ...]) -> np.ndarray:
    """Logits apart from each other, with every bit of the dtype in use."""
    return apart(pick, shape) + pick.random.uniform(-1 / 32, 1 / 32, shape)


def near(pick: Pick, shape: tuple[int, ...]) -> np.ndarray:
    """Logits apart from each other, but for one in each row that is less than the largest by what half precision loses."""
    x = apart(pick, shape)
    if shape[-1] > 1:
        rows = x.reshape(-1, shape[-1])
        best, each = rows.argmax(axis=-1), np.arange(len(rows))
        rows[each, (best + pick.random.integers(1, shape[-1], len(rows))) % shape[-1]] = rows[each, best] - 2.0**-13
    return x


def neighbours(pick: Pick, shape: tuple[int, ...]) -> np.ndarray:
    """Logits apart from each other, but for one in each row that is the largest number of the dtype below the largest."""
    x, top = apart(pick, shape), pick.one_of(0.75, 1.5, 3.0)
    x += top - x.max(axis=-1, keepdims=True)
    if shape[-1] > 1:
        rows = x.reshape(-1, shape[-1])
        best, each = rows.argmax(axis=-1), np.arange(len(rows))
        step = 2 * unit_roundoff(pick.features["dtypes"]) * 2.0 ** math.floor(math.log2(top))
        rows[each, (best + pick.random.integers(1, shape[-1], len(rows))) % shape[-1]] = top - step
    return x


def tiers(pick: Pick, shape: tuple[int, ...]) -> np.ndarray:
    """Equal logits in tiers that end where LIMITS do: those cuts are decisive, and no id is much likelier than another."""
    rows = math.prod(shape[:-1])
    row = np.searchsorted(sorted((*LIMITS, *MORE_THAN_1024)), np.arange(shape[-1]), side="right") * -0.25
    levels = pick.random.integers(-8, 9, (rows, 1)) * 0.25 + row
    return np.reshape([pick.random.permutation(level) for level in levels], shape)


def tiers_anywhere(pick: Pick, shape: tuple[int, ...]) -> np.ndarray:
    """Tiers about zero, or all of them far above it or below."""
    return tiers(pick, shape) + pick.one_of(0.0, 24.0, -24.0)


def scattered(pick: Pick, shape: tuple[int, ...]) -> np.ndarray:
    """Two dozen likely logits of a large vocabulary where paths of kernels part: the first id and the last ones, beside the
    edges of blocks, neighbours, and what one thread reads; far below them all others, in runs hidden altogether.

    In float32 they lie in groups that half precision does not tell apart, and far from zero perhaps.
    """
    size, single = shape[-1], pick.features["dtypes"] == "float32"
    steps = np.arange(24) * pick.one_of(0.25, 0.0625)
    if single:
        steps = np.arange(24) // 8 * 0.5 + np.arange(24) % 8 * 2.0**-12
    x = np.full((math.prod(shape[:-1]), size), -100.0)
    for row in x:
        start, thread = (int(pick.random.integers(size)) for _ in range(2))
        row[start : start + 2048] = -np.inf
        block = int(pick.random.integers(size)) // 1024 * 1024
        some = (0, size - 1, size - 2, 1023, 1024, size - 1 - size % 1024, *range(block + 1, block + 10))
        ids = np.unique((*some, *(thread + 1024 * np.arange(4)), *pick.random.integers(0, size, 24)))
        # The last id, and neighbours, wherever they may be.
        ids = pick.random.permutation([i for i in ids if i < size and i not in some])[: max(24 - len(some), 0)]
        ids = np.unique([i % size for i in (*some, *ids)])
        ids = pick.random.permutation(ids).reshape(-1, 8) if len(ids) == 24 else ids[None]
        # Who takes those of a group for equal takes the lowest id for the first.
        row[np.sort(ids).ravel()] = steps[: ids.size] + pick.random.integers(-8, 9) * 0.25
    return np.reshape(x + (pick.one_of(0.0, 200.0, -200.0) if single else 0.0), shape)


def ordinary(pick: Pick, shape: tuple[int, ...]) -> np.ndarray:
    """Logits of a row with one to many likely entries; some of them may be equal."""
    return np.round(pick.random.normal(size=shape) * pick.one_of(1.0, 3.0, 0.3) * 16) / 16


def masked_at_the_end(pick: Pick, shape: tuple[int, ...]) -> np.ndarray:
    """Logits of many likely entries, and the last ones hidden, as a mask of a grammar may have it."""
    hidden = np.arange(shape[-1]) >= max(shape[-1] - pick.one_of(1, 3), 1)
    return np.where(hidden, -np.inf, pick.random.normal(size=shape))


def crowded(pick: Pick, shape: tuple[int, ...]) -> np.ndarray:
    """Two dozen logits apart from each other, above thousands of equal ones that have half of the probability together.

    Rows differ in level and order alone: a cut among the two dozen is decisive in all of them.
    """
    rows, size = math.prod(shape[:-1]), shape[-1]
    above = round(math.log(size / 24) * 8) / 8
    row = np.concatenate([above + (np.arange(24) - 12) * 0.125, np.zeros(size - 24)])
    levels = pick.random.integers(-8, 9, (rows, 1)) * 0.25 + row
    return np.reshape([pick.random.permutation(level) for level in levels], shape)


def led(pick: Pick, shape: tuple[int, ...]) -> np.ndarray:
    """Ordinary logits, one of each row above all others."""
    x = ordinary(pick, shape)
    best = x.argmax(axis=-1)[..., None]
    return x + (np.arange(shape[-1]) == best)


def tied(pick: Pick, shape: tuple[int, ...]) -> np.ndarray:
    """Few different logits, so that most cuts fall between equal ones. Zeros have either sign, and are equal."""
    x = pick.random.integers(0, pick.one_of(2, 1, 3, 4), shape) * pick.one_of(0.5, 1.0, 2.0)
    return np.where(pick.random.random(shape) < 0.5, x, np.where(x == 0, -0.0, x))


def behind_hundreds(pick: Pick, shape: tuple[int, ...]) -> np.ndarray:
    """Hundreds of larger logits among smaller ones, each alike: more than a byte counts are above a cut of LIMITS' last."""
    rows, larger = math.prod(shape[:-1]), pick.one_of(300, 600, 900)
    row = np.where(np.arange(shape[-1]) < larger, 1.0, 0.0)
    return np.reshape([pick.random.permutation(row) for _ in range(rows)], shape)


def partly_hidden(pick: Pick, shape: tuple[int, ...]) -> np.ndarray:
    """-inf at single entries and in runs; every row keeps a finite entry."""
    x, size = apart(pick, shape), shape[-1]
    places, kept = np.arange(size), pick.random.integers(0, size, shape[:-1])[..., None]
    start, stop = (pick.random.integers(0, size + 1, (*shape[:-1], 1)) for _ in range(2))
    hidden = ((places >= start) & (places < stop)) | (pick.random.random(shape) < 0.2)
    return np.where(hidden & (places != kept), -np.inf, x)


def all_but_one_hidden(pick: Pick, shape: tuple[int, ...]) -> np.ndarray:
    """-inf but for one logit of each row, as where a grammar leaves one choice."""
    places, kept = np.arange(shape[-1]), pick.random.integers(0, shape[-1], shape[:-1])[..., None]
    return np.where(places == kept, apart(pick, shape), -np.inf)


def faint(pick: Pick, shape: tuple[int, ...]) -> np.ndarray:
    """Of each row the largest logit is so near to zero that it is no normal number of float16."""
    below = apart(pick, shape)
    below -= below.max(axis=-1, keepdims=True)
    return np.where(below == 0, pick.one_of(1.0, -1.0, 3.0) * 2.0**-19, below)


def far_out(pick: Pick, shape: tuple[int, ...]) -> np.ndarray:
    """Logits near a number of any size up to 1e8, no closer to each other than the dtype can tell there."""
    dtype = pick.features["dtypes"]
    far = pick.one_of(*(size for size in (1e2, 1e4, 3e4, 1e6, 1e8) if size <= largest(dtype) / 2))
    step = 4 * unit_roundoff(dtype) * 2.0 ** math.floor(math.log2(far))
    return (far + apart(pick, shape) * 8 * max(step, 0.125)) * pick.one_of(1, -1)


def ranked(pick: Pick, shape: tuple[int, ...]) -> np.ndarray:
    """The same logits, all different, in another order in each row: quick to make for very many of them."""
    return pick.random.permuted(np.broadcast_to(np.arange(shape[-1]) * -0.5, shape), axis=-1)


def past_float16(pick: Pick, shape: tuple[int, ...]) -> np.ndarray:
    """Logits that bfloat16 tells apart and float16 does not hold: one of each row has all of the probability."""
    return (1 - ranked(pick, shape) / 4) * pick.one_of(1e6, 1e8, 2e5) * pick.one_of(1, -1)


def close_far_out(pick: Pick, shape: tuple[int, ...]) -> np.ndarray:
    """Logits of like probability, as far from zero as float32 can tell them apart: their differences are exact, and there is no
    room for the logarithm of the sum of their exponentials.
    """
    step = pick.one_of(1.0, 0.5, 0.25)
    # The middle of what float32 holds in steps of this size.
    far = 0.75 * step / unit_roundoff("float32")
    levels = pick.random.integers(-8, 9, (*shape[:-1], 1))
    return (far + (levels + 2 * ranked(pick, shape)) * step) * pick.one_of(1, -1)


def lone(pick: Pick, shape: tuple[int, ...]) -> np.ndarray:
    """One id of each row, all others hidden."""
    ids = pick.random.integers(0, shape[-1], (*shape[:-1], 1))
    return np.where(np.arange(shape[-1]) == ids, pick.one_of(0.0, 1.5, -3.0), -np.inf)


def zeros(pick: Pick, shape: tuple[int, ...]) -> np.ndarray:
    """Zeros of either sign, which are equal, and nothing above them."""
    return np.where(pick.random.random(shape) < 0.5, -0.0, np.where(pick.random.random(shape) < 0.7, 0.0, -1.0))


def extreme(pick: Pick, shape: tuple[int, ...]) -> np.ndarray:
    """Ordinary logits among the lowest numbers of the dtype, which top-p has no use for: of 24 ids, or fewer, no two are equal."""
    x, share = apart(pick, shape), pick.one_of(0.3, 0.7)
    kept = pick.random.integers(0, shape[-1], shape[:-1])[..., None]
    lowest = (pick.random.random(shape) < share) & (np.arange(shape[-1]) != kept)
    # The first of them in each row is the lowest number itself.
    rank = np.where(lowest, pick.random.random(shape), 1.0).argsort(axis=-1).argsort(axis=-1)
    return np.where(lowest, -largest(pick.features["dtypes"]) * (1 - rank % 24 / 64), x)


def some_broken(pick: Pick, shape: tuple[int, ...]) -> np.ndarray:
    """Ordinary rows, at least one of them with a NaN or with nothing above -inf."""
    x = apart(pick, shape).reshape(-1, shape[-1])
    for row in {int(pick.random.integers(len(x))) for _ in range(2)}:
        if pick.random.random() < 0.5:
            x[row] = -np.inf
        x[row, pick.random.integers(shape[-1])] = (
            pick.random.choice([np.nan, -np.inf]) if np.isinf(x[row]).all() else np.nan
        )
    return x.reshape(shape)


def tied_beside_broken(pick: Pick, shape: tuple[int, ...]) -> np.ndarray:
    """Few different logits, and the last row with a NaN, or with nothing above -inf."""
    x = tied(pick, shape).reshape(-1, shape[-1])
    x[-1] = pick.one_of(np.nan, -np.inf)
    return x.reshape(shape)


def few_likely(pick: Pick, shape: tuple[int, ...]) -> np.ndarray:
    """Equal logits at a few ids, the others hidden: each of the likely ids holds an exact share.

    The first and the last id are hidden in one of two examples.
    """
    x, size = np.full(shape, -np.inf), shape[-1]
    likely, inner = pick.one_of(4, 2, 1, 8), pick.one_of(True, False)
    ids = np.arange(1, size - 1) if inner and size > 2 else np.arange(size)
    for row in x.reshape(-1, size):
        row[pick.random.choice(ids, min(likely, len(ids)), replace=False)] = 0.5
    return x


def alike(pick: Pick, shape: tuple[int, ...]) -> np.ndarray:
    """Equal logits, another one in each row."""
    return np.zeros(shape) + pick.random.integers(-8, 9, (*shape[:-1], 1)) * 0.5


def sloping(pick: Pick, shape: tuple[int, ...]) -> np.ndarray:
    """Thousands of logits of nearly the same probability, no two of them equal."""
    rows = np.broadcast_to(np.arange(shape[-1]) * -(2.0**-16), shape)
    return pick.random.permuted(rows, axis=-1)


def nearly_alike(pick: Pick, shape: tuple[int, ...]) -> np.ndarray:
    """The same, so far from zero that all of them have their upper bits in common."""
    return sloping(pick, shape) + pick.one_of(23.5, -23.0)


def shares(pick: Pick, shape: tuple[int, ...], ratios: tuple[float, ...] = (0.2, 0.5, 1.0)) -> np.ndarray:
    """One id with a part of the mass, many alike with the rest: sums of thousands of equal addends. ratios: of its mass to
    that of all others."""
    x = np.zeros(shape)
    for row in x.reshape(-1, shape[-1]):
        # In bfloat16 a running sum stops growing at 256 addends.
        row[pick.random.integers(shape[-1])] = round(math.log(shape[-1] * pick.one_of(*ratios)) * 4) / 4
    return x
