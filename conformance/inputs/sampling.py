"""Calls of the filters and of the sampler.

Cuts are decisive: top_p lies in the middle between two sums of probabilities, and logits that the cut could tell apart
only by their last bit do not occur, but for the tests of ties, where they are equal.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterator
from typing import Any

import ml_dtypes
import numpy as np

from inferspec.conformance.calls import Call
from inferspec.conformance.envelope import OutsideEnvelope, narrow
from inferspec.conformance.inputs.linear import with_rows
from inferspec.conformance.strategies import Calls, Pick, among, calls
from inferspec.conformance.tapes import LENGTH
from inferspec.conformance.trial import Trial
from inferspec.spec import sampling as spec
from inferspec.spec.contract import Arguments
from inferspec.spec.numerics import f64, largest, numpy_dtype, round_to, unit_roundoff

FILTER, SAMPLER = "filter_logits", "Sampler"

_row = np.array([[1.0, 3.0, 2.0]], np.float32)
EXAMPLES = {
    FILTER: Call(FILTER, {"logits": _row, "top_k": 2}),
    SAMPLER: Call(SAMPLER, {"temperature": 1.0, "logits": _row, "uniform": np.array([0.5], np.float32)}),
}

Logits = Callable[[Pick, tuple[int, ...]], np.ndarray]
"""Makes logits of a shape in float64, rows along the last axis; they are rounded to a dtype after that."""

EDGES = (1024, 50257, 1025, 8191, 32769)
"""Vocabularies that fill the blocks of a kernel, and that do not."""

LARGE = (1023, 1024, 1025, 2049, 4097, 8191)
"""Vocabularies beside the tiles of kernels."""

HUGE = (4097, 32769, 65537, 151936)
"""Vocabularies past the ends of narrow integers, and of a real model."""

SHORT_OF_ONE = (300, 5, 1024, 24, 2049, 1000)
"""Vocabularies whose probabilities often sum up to a little less than the largest uniform number, in float32."""

DOZENS: dict[str, Any] = {"top_k": [True], "top_p": [False], "sizes": (300, 65, 100)}
"""Limits of dozens and hundreds: kernels have a path for a few of the largest, and another for more."""

WIDE, LIMITS = (300, 48, 100, 1100, 2049, 3000), (40, 64, 256, 1024, 32, 33, 50, 65, 100, 200, 257, 512, 1023)
"""Vocabularies for limits that people ask for, and those limits."""

THOUSANDS, MORE_THAN_1024 = (2049, 50257, 3000, 5000), (2000, 1100)
"""Vocabularies for limits past what a buffer of candidates holds, and those limits."""

REAL = (151936, 50257, 128256, 32769)
"""Vocabularies of models, for which engines have paths of their own."""

MANY_ROWS, WIDE_ROWS = (9, 17, 33), (4097, 8191, 16385)
"""Rows of a batch that decodes, and vocabularies of rows that a threadgroup does not hold."""

MANY, HUNDREDS = (33, 257, 65, 300), (257, 300)
"""Rows beside the sizes in which kernels work on them, and hundreds alone."""

MANY_TO_LOOK_AT = (513, 512, 1025)
"""Rows past which kernels take another path."""

VERY_MANY = (65537, 32769)
"""Rows past the ends of narrow integers, and of a grid: no more than 65535 groups along an axis."""

NUCLEI_OF_MANY = (33000, 5000, 33000)
"""Vocabularies past the ends of narrow integers and of blocks, no larger than that: calls have dozens of such rows."""

TEMPERATURES = {"greedy": (0, 0.0), "one": (1.0, 1), "power of two": (0.5, 2.0, 0.25, 0.125), "other": (0.7, 1.3, 0.3)}


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


def between_sums(logits: np.ndarray, top_k: int | None, pick: Pick) -> float:
    """A top_p in the middle between two sums of the first row's probabilities, as top_k leaves them."""
    row = f64(logits).reshape(-1, logits.shape[-1])[0]
    row = -np.sort(-row[np.isfinite(row)])[: top_k or None]
    if not row.size:
        return 0.5
    sums = np.concatenate([[0.0], np.cumsum(np.exp(row - row[0]))])
    at = int(pick.random.integers(min(len(row), 24)))
    return float((sums[at] + sums[at + 1]) / 2 / sums[-1])


def filters(pick: Pick, logits: np.ndarray, limits: tuple[int, ...] = (), both: bool = True) -> dict[str, Any]:
    """Which filters there are, and how narrow. limits: what top_k may be, any small number if empty; both: whether there
    may be two, so that their order matters: who has it wrong would fail all that the other tests ask too."""
    arguments: dict[str, Any] = {}
    top_k = None
    if pick("top_k"):
        allowed = [limit for limit in limits if limit < logits.shape[-1]]
        top_k = pick.one_of(*allowed) if allowed else pick.size(1, max(min(logits.shape[-1] - 1, 23), 1))
        arguments["top_k"] = top_k
    if top_k is not None and not (both and _beside(pick)):
        pick.features["top_p"] = False
    elif pick("top_p"):
        arguments["top_p"] = between_sums(logits, top_k, pick)
    pick.features["both_filters"] = len(arguments) == 2
    return arguments


def _beside(pick: Pick) -> bool:
    """Whether a top_k and a top_p may be asked for at once."""
    return True in pick.envelope["both_filters"]


ROWS = (2, 1, 3, 5)


def shaped(pick: Pick, values: Logits, sizes: tuple[int, ...], rows: tuple[int, ...] = ROWS) -> np.ndarray:
    """Logits of the kind asked for, with a vocabulary of any of the sizes; the last of the leading dims is the number of rows."""
    dtype, lead = pick("dtypes"), tuple(pick("leading_dims"))
    shape = (*with_rows(lead, pick.one_of(*rows)), pick.upto("vocabulary", *sizes))
    return round_to(values(pick, shape), dtype)


SMALL = (5, 1, 2, 3, 7, 8, 12, 17, 24)

SEVERAL = (5, 8, 12, 24)
"""Vocabularies in which there is more than one id to tell apart."""


@calls
def filter_calls(
    pick: Pick,
    values: Logits = apart,
    sizes: tuple[int, ...] = SMALL,
    limits: tuple[int, ...] = (),
    rows: tuple[int, ...] = ROWS,
) -> Call:
    """The filters, on logits of the kind asked for."""
    logits = shaped(pick, values, sizes, rows)
    return pick.call(FILTER, logits=logits, **filters(pick, logits, limits))


@calls
def tiny_top_p(
    pick: Pick, values: Logits = led, sizes: tuple[int, ...] = (*SMALL, 300, 4096), rows: tuple[int, ...] = ROWS
) -> Call:
    """A top_p far below any probability."""
    logits = shaped(pick, values, sizes, rows)
    pick.features["top_p"] = True
    return pick.call(FILTER, logits=logits, top_p=pick.one_of(1e-3, 1e-5, 1e-7, 1e-9, 1e-30, 1e-300))


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


@calls
def hardly_any_top_p(pick: Pick, sizes: tuple[int, ...] = (2049, 3000, 4096)) -> Call:
    """A top_p that one or a few of thousands of ids reach."""
    logits = shaped(pick, sloping, sizes, rows=(2, 1))
    pick.features["top_p"], pick.features["top_k"] = True, False
    return pick.call(FILTER, logits=logits, top_p=(pick.one_of(1, 0) + 0.5) / logits.shape[-1])


BESIDE = 2.0**-16
"""How near to a sum of probabilities a top_p lies: float32 tells the two apart, and half precision does not."""


def beside_a_sum(pick: Pick, row: np.ndarray) -> tuple[float, int]:
    """A top_p that lies a little below or above a sum of a row's likeliest probabilities, and the id that comes after them."""
    order = np.argsort(-f64(row), kind="stable")
    chances = spec.weights_of(f64(row))[order]
    sums = np.cumsum(chances) / chances.sum()
    # The sums beside it are farther away.
    after = np.flatnonzero(chances / chances.sum() > 8 * BESIDE)[1:]
    pick.features["top_p"], pick.features["top_k"] = True, False
    if not len(after):
        return 0.5, int(order[0])
    first = pick.one_of(*after)
    return float(sums[first - 1] + pick.one_of(BESIDE, -BESIDE)), int(order[first])


def two_dozen(pick: Pick, sizes: tuple[int, ...]) -> np.ndarray:
    """A row of which the two dozen that are likely are all that sums count. Their differences are none of the dtype's, where
    that leaves them apart from each other."""
    dtype, drawn = pick("dtypes"), apart(pick, (pick.upto("vocabulary", *sizes),))
    likely, rest = drawn >= -30, round_to(np.where(drawn < -30, -200.0, drawn), dtype)
    row = round_to(np.where(likely, drawn + pick.random.uniform(-1 / 32, 1 / 32, drawn.shape), -200.0), dtype)
    return row if len(np.unique(f64(row[likely]))) == likely.sum() else rest


@calls
def beside_sums(pick: Pick, sizes: tuple[int, ...] = (24, 12, 300, 7, 4097)) -> Call:
    """A top_p beside a sum of probabilities, of all rows: they differ in order alone."""
    row = two_dozen(pick, sizes)
    top_p, _ = beside_a_sum(pick, row)
    shape = with_rows(tuple(pick("leading_dims")), pick.one_of(2, 1, 3))
    logits = np.reshape([pick.random.permutation(row) for _ in range(math.prod(shape))], (*shape, len(row)))
    return pick.call(FILTER, logits=logits, top_p=top_p)


@calls
def draws_beside_sums(pick: Pick, sizes: tuple[int, ...] = (24, 12, 300, 7)) -> Call:
    """The same for the sampler, with the uniform numbers that give the id which top_p leaves or not, where it does."""
    heat = temperature(pick, "one")
    row = two_dozen(pick, sizes)
    top_p, last = beside_a_sum(pick, row)
    chances = np.where(f64(row) >= f64(row[last]), spec.weights_of(f64(row)), 0.0)
    middle = (chances[:last].sum() + chances[last] / 2) / chances.sum()
    shape = with_rows(tuple(pick("leading_dims")), pick.one_of(2, 1, 3))
    pick.features["generators"] = "given"
    numbers = below_one(np.full(shape, middle), pick("uniform_dtypes"))
    return pick.call(SAMPLER, temperature=heat, top_p=top_p, logits=tiled(row, shape), uniform=numbers)


def reached(pick: Pick, size: int) -> float:
    """A top_p that some of so many equal ids, a power of two, reach exactly."""
    pick.features["top_p"], pick.features["top_k"] = True, False
    return pick.size(1, size - 1) / size


@calls
def exact_filters(pick: Pick, sizes: tuple[int, ...] = (4, 2, 8)) -> Call:
    """A top_p that equal ids reach exactly; in float32 nothing of it is rounded."""
    logits = shaped(pick, alike, sizes)
    return pick.call(FILTER, logits=logits, top_p=reached(pick, logits.shape[-1]))


@calls
def exact_draws(pick: Pick, sizes: tuple[int, ...] = (4, 2, 8)) -> Call:
    """The same for the sampler, with uniform numbers just below 1."""
    logits = shaped(pick, alike, sizes)
    pick.features["generators"] = "given"
    uniform = round_to(np.full(logits.shape[:-1], 1.0 - 2.0**-10), "float32")
    return pick.call(
        SAMPLER,
        temperature=temperature(pick, "one"),
        top_p=reached(pick, logits.shape[-1]),
        logits=logits,
        uniform=uniform,
    )


def shares(pick: Pick, shape: tuple[int, ...]) -> np.ndarray:
    """One id with a part of the mass, many alike with the rest: sums of thousands of equal addends."""
    x = np.zeros(shape)
    for row in x.reshape(-1, shape[-1]):
        # In bfloat16 a running sum stops growing at 256 addends.
        row[pick.random.integers(shape[-1])] = round(math.log(shape[-1] * pick.one_of(0.2, 0.5, 1.0)) * 4) / 4
    return x


@calls
def summed_filters(pick: Pick, sizes: tuple[int, ...] = HUGE) -> Call:
    """top_p in the middle of a sum of thousands of probabilities."""
    dtype = pick("dtypes")
    lead = tuple(pick("leading_dims"))
    shape = (*(1 for _ in lead), pick.upto("vocabulary", *sizes))
    pick.features["top_p"], pick.features["top_k"] = True, False
    return pick.call(FILTER, logits=round_to(shares(pick, shape), dtype), top_p=pick.one_of(0.75, 0.6, 0.9))


def temperature(pick: Pick, *kinds: str) -> float:
    """A temperature of one of the kinds that the envelope has."""
    left = [kind for kind in kinds if kind in pick.envelope["temperatures"]]
    if not left:
        raise OutsideEnvelope(f"temperatures {list(pick.envelope['temperatures'])} has none of {list(kinds)}")
    kind = pick.one_of(*left)
    pick.features["temperatures"] = kind
    return pick.one_of(*TEMPERATURES[kind])


def another_temperature(subject: Trial) -> float:
    """That of a sampler beside the one in question: 2 where that is claimed."""
    beside = {"power of two": 2.0, "one": 1.0, "other": 0.7, "greedy": 0.0}
    return next(heat for kind, heat in beside.items() if kind in subject.envelope["temperatures"])


def at_one(pick: Pick) -> float:
    """Temperature 1, and no choice; OutsideEnvelope for who does not claim it."""
    narrow(pick.envelope, {"temperatures": ["one"]})
    pick.features["temperatures"] = "one"
    return 1.0


def uniforms(pick: Pick, shape: tuple[int, ...]) -> np.ndarray:
    """Ordinary uniform numbers."""
    dtype = pick("uniform_dtypes")
    return below_one(pick.random.random(shape), dtype)


def below_one(values: np.ndarray, dtype: str) -> np.ndarray:
    """Numbers in [0, 1) rounded to the dtype, and to the largest number below 1 where that gave 1."""
    return round_to(np.minimum(values, 1.0 - float(ml_dtypes.finfo(numpy_dtype(dtype)).epsneg)), dtype)


def adversarial(pick: Pick, shape: tuple[int, ...]) -> np.ndarray:
    """0, the smallest numbers above 0 and the largest below 1, which real generators give once in a while."""
    dtype = pick("uniform_dtypes")
    about = ml_dtypes.finfo(numpy_dtype(dtype))
    ends = [0.0, float(about.smallest_subnormal), float(about.smallest_normal), 1.0 - float(about.epsneg)]
    return round_to(pick.random.choice(ends, shape), dtype)


Uniforms = Callable[[Pick, tuple[int, ...]], np.ndarray]


@calls
def sampler_calls(
    pick: Pick,
    values: Logits = apart,
    sizes: tuple[int, ...] = SMALL,
    numbers: Uniforms = uniforms,
    kinds: tuple[str, ...] = ("one", "power of two", "other"),
    filtered: bool = True,
    limits: tuple[int, ...] = (),
    rows: tuple[int, ...] = ROWS,
    both: bool = True,
) -> Call:
    """The sampler with given uniform numbers. With a top_p the temperature is 1: see `tempered_nuclei`."""
    logits = shaped(pick, values, sizes, rows)
    chosen = filters(pick, logits, limits, both) if filtered else {}
    heat = temperature(pick, *(("one",) if "top_p" in chosen and "one" in kinds else kinds))
    arguments: dict[str, Any] = {"temperature": heat, **chosen, "logits": logits}
    if pick("generators") == "given":
        arguments["uniform"] = numbers(pick, logits.shape[:-1])
    return pick.call(SAMPLER, **arguments)


@calls
def greedy_calls(
    pick: Pick, values: Logits = ordinary, sizes: tuple[int, ...] = SMALL, rows: tuple[int, ...] = ROWS
) -> Call:
    """The sampler at temperature 0, with and without uniform numbers, by name and by default."""
    logits = shaped(pick, values, sizes, rows)
    arguments: dict[str, Any] = {**filters(pick, logits), "logits": logits}
    if pick.one_of(True, False):
        arguments["temperature"] = temperature(pick, "greedy")
    if pick("generators") == "given":
        arguments["uniform"] = pick.one_of(uniforms, adversarial)(pick, logits.shape[:-1])
    return pick.call(SAMPLER, **arguments)


@calls
def summed_draws(pick: Pick, sizes: tuple[int, ...] = HUGE, nuclei: bool = False) -> Call:
    """A draw from thousands of equal probabilities. nuclei: from those that top_p leaves."""
    dtype, lead = pick("dtypes"), tuple(pick("leading_dims"))
    shape = (*(1 for _ in lead), pick.upto("vocabulary", *sizes))
    pick.features["generators"] = "given"
    logits = round_to(shares(pick, shape), dtype)
    chosen = {"top_p": pick.one_of(0.75, 0.6, 0.9)} if nuclei and pick("top_p") else {}
    heat = at_one(pick)
    return pick.call(SAMPLER, temperature=heat, **chosen, logits=logits, uniform=uniforms(pick, shape[:-1]))


@calls
def tempered_nuclei(
    pick: Pick,
    sizes: tuple[int, ...] = (1, 300, 1100),
    draws: int = 64,
    likely: tuple[int, ...] = (12, 8, 16),
    limits: tuple[int, ...] = (),
) -> Call:
    """A temperature and a top_p for which it matters which goes first: many draws from one row of logits. likely: how many of
    these are; limits: what a top_k beside the top_p may be, all of them but two if empty.

    The uniform numbers go through [0, 1) in equal steps, so that nearly every id that can be drawn is drawn.
    """
    dtype = pick("dtypes")
    size, heat = pick.one_of(*likely), temperature(pick, "power of two", "other")
    pick.features["top_p"] = True
    others = np.full(max(pick.upto("vocabulary", *sizes) - size, 0), -200.0)
    row = pick.random.permutation(np.concatenate([np.arange(size) * min(0.25, 4 / size), others]))
    top_k = _beside_top_p(pick, pick.one_of(*(limits or (size - 2,))))
    arguments: dict[str, Any] = {} if top_k is None else {"top_k": top_k}
    arguments |= {"top_p": _parting(row, heat, top_k), "logits": round_to(np.tile(row, (draws, 1)), dtype)}
    if pick("generators") == "given":
        arguments["uniform"] = round_to((np.arange(draws) + 0.5) / draws, pick("uniform_dtypes"))
    return pick.call(SAMPLER, temperature=heat, **arguments)


@calls
def tempered_rows(pick: Pick, rows: tuple[int, ...] = ROWS) -> Call:
    """A temperature and a top_p for which it matters which goes first, of rows that have the same logits in orders of their own."""
    dtype, lead, size = pick("dtypes"), tuple(pick("leading_dims")), pick.upto("vocabulary", 12, 8, 16)
    heat = temperature(pick, "power of two", "other")
    pick.features["top_p"] = True
    likely = np.arange(size) * 0.25
    shape = with_rows(lead, pick.one_of(*rows))
    logits = pick.random.permuted(np.broadcast_to(likely, (*shape, size)), axis=-1)
    top_k = _beside_top_p(pick, max(size - 2, 1))
    arguments: dict[str, Any] = {} if top_k is None else {"top_k": top_k}
    arguments |= {"top_p": _parting(likely, heat, top_k), "logits": round_to(logits, dtype)}
    if pick("generators") == "given":
        arguments["uniform"] = uniforms(pick, shape)
    return pick.call(SAMPLER, temperature=heat, **arguments)


def _beside_top_p(pick: Pick, limit: int) -> int | None:
    """A top_k beside a top_p, or none."""
    pick.features["both_filters"] = pick.features["top_k"] = pick("top_k") and _beside(pick)
    return limit if pick.features["top_k"] else None


def _parting(row: np.ndarray, heat: float, top_k: int | None) -> float:
    """A top_p that leaves another number of ids before the temperature, or its inverse, than after it, always decisive."""
    first = -np.sort(-row)[: top_k or None]
    sums = [np.cumsum(np.exp((first - first[0]) / t)) for t in (1.0, heat, 1 / heat)]
    shares = [s / s[-1] for s in sums]
    candidates = np.linspace(0.3, 0.9, 61)[:, None]
    distance = np.min([np.abs(s - candidates).min(axis=1) for s in shares], axis=0)
    plain, *tempered = [(s < candidates).sum(axis=1) for s in shares]
    return float(candidates[np.argmax(np.where((plain != tempered[0]) & (plain != tempered[1]), distance, -1.0)), 0])


@calls
def beside_borders(pick: Pick, sizes: tuple[int, ...] = (50257, 24, 300, 4097)) -> Call:
    """Draws by numbers that lie a little below or above the border between two ids, many from one row of logits."""
    dtype, size = pick("dtypes"), pick.upto("vocabulary", *sizes)
    heat = temperature(pick, "one", "power of two")
    row = apart(pick, (1, size))
    # What sums count is the two dozen that are likely.
    row = round_to(np.where(row < -30, -200.0, row), dtype)
    chances = spec.Sampler().probabilities(Arguments(logits=row, temperature=heat, top_k=None, top_p=1.0))[0]
    borders = np.cumsum(chances[f64(row[0]) > -100])[:-1]
    pick.features["generators"] = "given"
    numbers = np.concatenate([borders + 2.0**-16, borders - 2.0**-16]) if len(borders) else np.array([0.5])
    numbers = pick.random.permutation(below_one(np.maximum(numbers, 0.0), pick("uniform_dtypes")))[:32]
    logits = tiled(row[0], (len(numbers),))
    return pick.call(SAMPLER, temperature=heat, logits=logits, uniform=numbers)


# draws by a generator of the subject's own

DRAWS = 20_000
"""Rows of a call whose ids are counted. `spec/test_sampling.py` tells what such a count detects."""

FEW_DRAWS = 5000
"""Rows that are counted of a subject that takes no more."""

RARE_DRAWS = 100_000
"""Rows of a call in which rare ids are looked for."""


@calls
def many_rows(pick: Pick, sizes: tuple[int, ...] = (12, 8, 20), rows: tuple[int, ...] = (), shares: int = 1) -> Call:
    """Many rows of one distribution for a generator of the subject's own. rows: as many as are counted, in so many shares,
    unless others are asked for."""
    dtype, size = pick("dtypes"), pick.upto("vocabulary", *sizes)
    pick.features["generators"] = "own"
    row = round_to(apart(pick, (size,)) / 2, dtype)
    chosen = filters(pick, row, both=False)
    heat = temperature(pick, *(("one",) if "top_p" in chosen else ("other", "one", "power of two")))
    counted = min(DRAWS, pick.envelope["draws"])
    rows = rows or ((counted,) if shares == 1 else (shares, counted // shares))
    return pick.call(SAMPLER, temperature=heat, **chosen, logits=tiled(row, rows))


@calls
def one_and_many(pick: Pick) -> Call:
    """One id with about half of the probability, thousands alike with the rest: the largest noise of many decides."""
    dtype, size = pick("dtypes"), pick.upto("vocabulary", 4097, 2049)
    pick.features["generators"], heat = "own", at_one(pick)
    row = np.zeros(size)
    # In steps that every dtype holds.
    row[pick.random.integers(size)] = round(math.log(max(size - 1, 1)) * 8) / 8
    return pick.call(SAMPLER, temperature=heat, logits=tiled(round_to(row, dtype), (2000,)))


@calls
def rare_ids(pick: Pick) -> Call:
    """Two likely ids among ids of probability 1e-7 and less, filtered ones and hidden ones."""
    dtype = pick("dtypes")
    pick.features["generators"], heat = "own", at_one(pick)
    row = pick.random.permutation([0.0, 0.0, -16.0, -16.0, -37.0, -37.0, -np.inf, -np.inf, -60.0])
    chosen = {"top_k": pick.one_of(4, 2)} if pick("top_k") else {}
    return pick.call(SAMPLER, temperature=heat, **chosen, logits=tiled(round_to(row, dtype), (RARE_DRAWS,)))


def tiled(row: np.ndarray, rows: tuple[int, ...]) -> np.ndarray:
    """The row again and again."""
    return np.array(np.broadcast_to(row, (*rows, len(row))))


def fixed(subject: Trial, source: Calls, count: int) -> Iterator[Call]:
    """The same few calls in every run and profile, each an example of its own: statistical checks are numbered."""
    envelope = source.narrowed(subject.envelope)
    for number in range(count):
        if number:
            subject.begin()
        yield source.build(Pick(random.Random(number).randbytes(LENGTH), envelope))


BATCHES = [(2,), (2, 3), (2, 1, 3), (9, 2)]
FEW = [(), (1,), (2,)]
ONE_AXIS = [(2,)]
"""What calls of many rows ask for: one who draws for single rows is not given them."""
BOTH: dict[str, Any] = {"top_k": [True], "top_p": [True], "both_filters": [True]}
LOWEST = ["lowest ids"]
BAD_TOP_P = among([0, 0.0, -0.1, 1.0001, 2, float("nan"), float("inf")])

ORDINARY = {FILTER: filter_calls, SAMPLER: sampler_calls(generators=["given"])}
"""The widest calls of each operation whose answer one comparison can judge."""
