"""Calls of the filters and of the sampler.

Cuts are decisive: top_p lies in the middle between two sums of probabilities, and logits that the cut could tell apart
only by their last bit do not occur, but for the tests of ties, where they are equal.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import ml_dtypes
import numpy as np

from inferspec.conformance.calls import Call
from inferspec.conformance.envelope import Envelope, OutsideEnvelope, narrow
from inferspec.conformance.inputs.linear import with_rows
from inferspec.conformance.inputs.sampling_logits import (
    Logits,
    alike,
    apart,
    far_above_the_first,
    led,
    ordinary,
    shares,
    sloping,
)
from inferspec.conformance.judging.instead import Answers, Told
from inferspec.conformance.judging.trial import Trial
from inferspec.conformance.strategies import Pick, among, calls
from inferspec.spec import sampling as spec
from inferspec.spec.contract import Arguments
from inferspec.spec.numerics import f64, numpy_dtype, round_to

FILTER, SAMPLER = "filter_logits", "Sampler"

_row = np.array([[1.0, 3.0, 2.0]], np.float32)
EXAMPLES = {
    FILTER: Call(FILTER, {"logits": _row, "top_k": 2}),
    SAMPLER: Call(SAMPLER, {"temperature": 1.0, "logits": _row, "uniform": np.array([0.5], np.float32)}),
}

EDGES = (1024, 50257, 1025, 8191, 32769)
"""Vocabularies that fill the blocks of a kernel, and that do not."""

LARGE = (1023, 1024, 1025, 2049, 4097, 8191)
"""Vocabularies beside the tiles of kernels."""

HUGE = (4097, 32769, 65537, 151936)
"""Vocabularies past the ends of narrow integers, and of a real model."""

LARGEST = 262144
"""The largest vocabulary of real models."""

SHORT_OF_ONE = (300, 5, 1024, 24, 2049, 1000)
"""Vocabularies whose probabilities often sum up to a little less than the largest uniform number, in float32."""

DOZENS: dict[str, Any] = {"top_k": [True], "top_p": [False], "sizes": (300, 65, 100)}
"""Limits of dozens and hundreds: kernels have a path for a few of the largest, and another for more."""

WIDE = (300, 48, 100, 1100, 2049, 3000)
"""Vocabularies for LIMITS."""

THOUSANDS = (2049, 50257, 3000, 5000)
"""Vocabularies for MORE_THAN_1024."""

REAL = (151936, 50257, 128256, 32769)
"""Vocabularies of models, for which engines have paths of their own."""

MANY_ROWS, WIDE_ROWS = (9, 17, 33), (4097, 8191, 16385)
"""Rows of a batch that decodes, and vocabularies of rows that a threadgroup does not hold."""

MANY, HUNDREDS = (33, 257, 65, 300), (257, 300)
"""Rows beside the sizes in which kernels work on them, and hundreds alone."""

MANY_WIDE: dict[str, Any] = {"leading_dims": [(1,), (2,)], "rows": (65, 129), "sizes": (1025, 2049)}
"""Rows of a large batch, of more ids than a threadgroup has threads."""

MANY_TO_LOOK_AT = (513, 512, 1025)
"""Rows past which kernels take another path."""

VERY_MANY = (65537, 32769)
"""Rows past the ends of narrow integers, and of a grid: no more than 65535 groups along an axis."""

NUCLEI_OF_MANY = (33000, 5000, 33000)
"""Vocabularies past the ends of narrow integers and of blocks, no larger than that: calls have dozens of such rows."""

TEMPERATURES = {"greedy": (0, 0.0), "one": (1.0, 1), "power of two": (0.5, 2.0, 0.25, 0.125), "other": (0.7, 1.3, 0.3)}


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
    """A top_p below the largest probability of any row of so many."""
    logits = shaped(pick, values, sizes, rows)
    pick.features["top_p"] = True
    tiny = (top_p for top_p in (1e-3, 1e-5, 1e-7, 1e-9, 1e-30, 1e-300) if top_p < 1 / logits.shape[-1])
    return pick.call(FILTER, logits=logits, top_p=pick.one_of(*tiny))


@calls
def hardly_any_top_p(pick: Pick, sizes: tuple[int, ...] = (2049, 3000, 4096)) -> Call:
    """A top_p that one or a few of thousands of ids reach."""
    logits = shaped(pick, sloping, sizes, rows=(2, 1))
    pick.features["top_p"], pick.features["top_k"] = True, False
    return pick.call(FILTER, logits=logits, top_p=(pick.one_of(1, 0) + 0.5) / logits.shape[-1])


@calls
def nearly_all_top_p(pick: Pick, sizes: tuple[int, ...] = (5000, 10007)) -> Call:
    """A top_p just below 1, which float32 sums of thousands of probabilities never reach."""
    logits = shaped(pick, sloping, sizes, rows=(2, 1))
    pick.features["top_p"], pick.features["top_k"] = True, False
    return pick.call(FILTER, logits=logits, top_p=1 - 2.0**-24)


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


LIMITS_BESIDE = (40, 33, 64, 100)
"""Limits that leave all of the two dozen that are likely, and more."""


@calls
def limited_beside_sums(pick: Pick) -> Call:
    """The calls of `beside_sums` with a top_k as well, which leaves the sums as they are."""
    return _limited(pick, beside_sums.build(pick, sizes=(300, 1025)))


@calls
def limited_draws_beside_sums(pick: Pick) -> Call:
    """The same for the sampler."""
    return _limited(pick, draws_beside_sums.build(pick, sizes=(300, 120)))


def _limited(pick: Pick, call: Call) -> Call:
    both = {"top_k": True, "both_filters": True}
    return replace(call.having(top_k=pick.one_of(*LIMITS_BESIDE)), features={**call.features, **both})


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


@calls
def border_draws(pick: Pick, sizes: tuple[int, ...] = (4, 2, 8)) -> Call:
    """Uniform numbers that are sums of the shares of equally likely ids; in float32 nothing of it is rounded."""
    logits = shaped(pick, alike, sizes)
    pick("generators")
    size = logits.shape[-1]
    uniform = round_to(pick.random.integers(1, size, logits.shape[:-1]) / size, "float32")
    return pick.call(SAMPLER, temperature=temperature(pick, "one"), logits=logits, uniform=uniform)


SUMMED = (0.75, 0.6, 0.9)
"""Where top_p cuts sums of thousands of probabilities."""

MILLIONTHS: dict[str, Any] = {"sizes": (151936, LARGEST), "ratios": (8.0, 12.0), "cuts": (0.95, 0.97)}
"""Thousands of ids that have less than a millionth each, and together a twelfth: some of them are among those that reach top_p."""


@calls
def summed_filters(
    pick: Pick,
    sizes: tuple[int, ...] = HUGE,
    ratios: tuple[float, ...] = (0.2, 0.5, 1.0),
    cuts: tuple[float, ...] = SUMMED,
) -> Call:
    """top_p in the middle of a sum of thousands of probabilities."""
    dtype = pick("dtypes")
    lead = tuple(pick("leading_dims"))
    shape = (*(1 for _ in lead), pick.upto("vocabulary", *sizes))
    pick.features["top_p"], pick.features["top_k"] = True, False
    return pick.call(FILTER, logits=round_to(shares(pick, shape, ratios), dtype), top_p=pick.one_of(*cuts))


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
    chosen = {"top_p": pick.one_of(*SUMMED)} if nuclei and pick("top_p") else {}
    heat = at_one(pick)
    return pick.call(SAMPLER, temperature=heat, **chosen, logits=logits, uniform=uniforms(pick, shape[:-1]))


@calls
def late_draws(pick: Pick) -> Call:
    """A draw from MILLIONTHS by a number near 1, which gives one of the many: the likely one is the first."""
    dtype, lead, size = pick("dtypes"), tuple(pick("leading_dims")), pick.upto("vocabulary", *MILLIONTHS["sizes"])
    pick.features |= {"generators": "given", "top_k": False, "top_p": True}
    row = np.zeros(size)
    row[0] = round(math.log(size * pick.one_of(*MILLIONTHS["ratios"])) * 4) / 4
    shape = tuple(1 for _ in lead)
    numbers = round_to(np.full(shape, 1.0 - 2.0**-7), pick("uniform_dtypes"))
    logits = tiled(round_to(row, dtype), shape)
    top_p = pick.one_of(*MILLIONTHS["cuts"])
    return pick.call(SAMPLER, temperature=at_one(pick), top_p=top_p, logits=logits, uniform=numbers)


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


def tiled(row: np.ndarray, rows: tuple[int, ...]) -> np.ndarray:
    """The row again and again."""
    return np.array(np.broadcast_to(row, (*rows, len(row))))


BATCHES = [(2,), (2, 3), (2, 1, 3), (9, 2)]
FEW = [(), (1,), (2,)]
ONE_AXIS = [(2,)]
"""What calls of many rows ask for: one who draws for single rows is not given them."""
FAR_BELOW: dict[str, Any] = {
    "values": far_above_the_first,
    "dtypes": ["float32"],
    "sizes": SEVERAL,
    "leading_dims": [(2,), (2, 3)],
    "rows": (2, 3),
}
"""A row of logits far below those of the others."""

BOTH: dict[str, Any] = {"top_k": [True], "top_p": [True], "both_filters": [True]}
LOWEST = ["lowest ids"]
EQUALS_BY_ID: dict[str, Any] = {"ties": LOWEST, "draws_by": ["id"]}
"""Who has equal ids in a cdf as they are numbered."""

BAD_TOP_P = among([0, 0.0, -0.1, 1.0001, 2, float("nan"), float("inf")])

ORDINARY = {FILTER: filter_calls, SAMPLER: sampler_calls(generators=["given"])}
"""The widest calls of each operation whose answer one comparison can judge."""

DRAWS = {"id": (2, 3), "order": (3, 0), "rising": (3, 1)}
"""The ids of probabilities 0.1, 0.4, 0.2 and 0.3 that uniform numbers of 0.52 and 0.95 draw."""

DRAWS_FILTERED = {**DRAWS, "order": (3, 2)}
"""Those where the least likely of these is filtered out."""

SORTING: tuple[dict[str, Any], ...] = ({}, {"top_k": 3}, {"top_p": 0.85})
"""Filters for which ids may be sorted."""


def drawing(envelope: Envelope) -> Answers:
    """Draws whose ids tell in which order the cdf goes through them, with each filter and without."""
    kinds = [kind for kind in envelope["temperatures"] if kind != "greedy"]
    if not kinds or "given" not in envelope["generators"]:
        return {}
    temperature, shape = TEMPERATURES[kinds[0]][0], with_rows(tuple(envelope["leading_dims"][0]), 1)
    row = round_to(np.log([0.1, 0.4, 0.2, 0.3]) * temperature, envelope["dtypes"][0])

    def draw(uniform: float, **limits: Any) -> Call:
        numbers = np.full(shape, uniform, numpy_dtype(envelope["uniform_dtypes"][0]))
        logits = np.tile(row, (*shape, 1))
        return Call(SAMPLER, {"temperature": temperature, "logits": logits, "uniform": numbers, **limits})

    filters = [limits for limits in SORTING if all(True in envelope[name] for name in limits)]
    calls = [(draw(0.52, **limits), draw(0.95, **limits)) for limits in filters]
    # Who sorts always is known by its draws without a filter, whatever else is wrong with its filters.
    asked = {way: calls[:1] if way in ("order", "rising") else calls for way in spec.DRAWS_BY}
    return {way: [answer for pair in pairs for answer in _drawn(way, pair)] for way, pairs in asked.items()}


def _drawn(way: str, calls: tuple[Call, Call]) -> list[tuple[Call, Callable[[Told], bool]]]:
    """Each of two calls, and whether its ids are those that come of a way."""
    limits = {"top_k": None, "top_p": 1.0}
    given = {**limits, **calls[0].arguments}
    draws = DRAWS_FILTERED if limits.keys() & calls[0].arguments.keys() else DRAWS
    told = draws[spec.ways_of(way, Arguments(**given))[0]]
    return [(call, partial(_all_are, id)) for call, id in zip(calls, told, strict=True)]


def _all_are(id: int, told: Told) -> bool:
    return bool((told[""] == id).all())


INSTEAD = {SAMPLER: {"draws_by": drawing}}
"""What is done in one way or in another, by its key (`judging.instead`)."""
