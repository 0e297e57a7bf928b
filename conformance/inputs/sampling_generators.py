"""Calls of samplers that draw by a generator of their own."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator

import numpy as np

from inferspec.conformance.calls import Call
from inferspec.conformance.inputs.sampling import SAMPLER, at_one, filters, temperature, tiled
from inferspec.conformance.inputs.sampling_logits import apart
from inferspec.conformance.judging.trial import Trial
from inferspec.conformance.strategies import Calls, Pick, calls
from inferspec.conformance.tapes import LENGTH
from inferspec.spec.numerics import round_to

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


@calls
def unlikely_last(pick: Pick) -> Call:
    """Ids in falling order, the last of them of a probability that so many draws are sure to give once."""
    dtype = pick("dtypes")
    pick.features["generators"], heat = "own", at_one(pick)
    row = np.array([0.0, -0.25, -0.5, -0.75, -7.5])
    return pick.call(SAMPLER, temperature=heat, logits=tiled(round_to(row, dtype), (RARE_DRAWS,)))


def fixed(subject: Trial, source: Calls, count: int) -> Iterator[Call]:
    """The same few calls in every run and profile, each an example of its own: statistical checks are numbered."""
    envelope = source.narrowed(subject.envelope)
    for number in range(count):
        if number:
            subject.begin()
        yield source.build(Pick(random.Random(number).randbytes(LENGTH), envelope))
