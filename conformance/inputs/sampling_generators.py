"""Calls of samplers that draw by a generator of their own."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator

import numpy as np

from inferspec.conformance.calls import Call
from inferspec.conformance.inputs.sampling import ROWS, SAMPLER, at_one, filters, shaped, temperature, tiled
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


CERTAIN = 250.0
"""How far an id lies above all others that comes whatever the numbers are: at a temperature of 2, by e^-125."""


@calls
def certain_rows(pick: Pick, sizes: tuple[int, ...] = (12, 5, 24, 300), rows: tuple[int, ...] = ROWS) -> Call:
    """Rows of which one id each is as good as certain: what is routed shows in a single draw."""
    logits = shaped(pick, apart, sizes, rows)
    pick.features["generators"] = "own"
    flat = logits.reshape(-1, logits.shape[-1])
    for row in flat:
        row[pick.random.integers(len(row))] += CERTAIN
    heat = temperature(pick, "one", "power of two", "other")
    return pick.call(SAMPLER, temperature=heat, logits=flat.reshape(logits.shape))


@calls
def thousands_left(pick: Pick, rows: int = 48) -> Call:
    """Thousands of ids about as likely as each other, all of which a filter leaves."""
    dtype, size = pick("dtypes"), pick.upto("vocabulary", 5000, 9000)
    pick.features["generators"], heat = "own", at_one(pick)
    row = pick.random.permutation(np.linspace(0.0, -0.5, size))
    chosen = {"top_k": size - 1} if pick("top_k") else {"top_p": 0.99} if pick("top_p") else {}
    return pick.call(SAMPLER, temperature=heat, **chosen, logits=tiled(round_to(row, dtype), (rows,)))


@calls
def cold_rows(pick: Pick) -> Call:
    """Logits near each other at a temperature so low that the lower ones hardly ever come."""
    dtype = pick("dtypes")
    pick.features["generators"] = "own"
    pick.features["temperatures"] = "other"
    row = pick.random.permutation([0.0, -1 / 32, -1 / 32, -1.0])
    return pick.call(SAMPLER, temperature=0.001, logits=tiled(round_to(row, dtype), (2000,)))


def fixed(subject: Trial, source: Calls, count: int) -> Iterator[Call]:
    """The same few calls in every run and profile, each an example of its own: statistical checks are numbered."""
    envelope = source.narrowed(subject.envelope)
    for number in range(count):
        if number:
            subject.begin()
        yield source.build(Pick(random.Random(number).randbytes(LENGTH), envelope))
