"""Which id comes out: see `spec/faults/generation_choices.py`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import ml_dtypes
import numpy as np

from inferspec.spec.contract import Change
from inferspec.spec.generation import Generate
from inferspec.spec.numerics import round_to
from inferspec.spec.toy import Toy
from inferspec.spec.watch import Request

Rows = np.ndarray


def first_position(self: Generate, rows: Rows) -> Rows:
    return rows[0]


def position_before(self: Generate, rows: Rows) -> Rows:
    return rows[-2] if len(rows) > 1 else rows[-1]


def flat(self: Generate, rows: Rows, request: Request) -> int:
    if request.sampler:
        return Generate.choose(self, rows, request)
    return int(np.argmax(rows)) % rows.shape[1]


def mean_position(self: Generate, rows: Rows) -> Rows:
    return rows.mean(axis=0)


def highest_of_equals(self: Generate, row: Rows) -> int:
    return int(len(row) - 1 - np.argmax(row[::-1]))


def lowest_logit(self: Generate, row: Rows) -> int:
    return int(np.argmin(row))


def in_eight_bits(self: Generate, row: Rows) -> int:
    return int(np.argmax(row.astype(ml_dtypes.float8_e4m3fn).astype(np.float64)))


def finite(self: Generate, row: Rows) -> int:
    """What is not finite is cleared away."""
    return int(np.argmax(np.nan_to_num(row, neginf=0.0)))


def in_bfloat16(self: Generate, row: Rows) -> int:
    return int(np.argmax(round_to(row, "bfloat16").astype(np.float64)))


def sampler_sees_all(self: Generate, rows: Rows, request: Request) -> int:
    return request.sampler(rows) if request.sampler else self.greedy(self.last(rows))


def sampler_sees_batch(self: Generate, rows: Rows, request: Request) -> int:
    return request.sampler(self.last(rows)[None]) if request.sampler else self.greedy(self.last(rows))


def sampler_sees_probabilities(self: Generate, row: Rows, request: Request) -> int:
    if request.sampler is None:
        return self.greedy(row)
    weights = np.exp(row - row.max())
    return request.sampler(weights / weights.sum())


def sampler_sees_temperature(self: Generate, row: Rows, request: Request) -> int:
    return request.sampler(row / 0.7) if request.sampler else self.greedy(row)


def sampler_sees_less(self: Generate, row: Rows, request: Request) -> int:
    return request.sampler(row[:-1]) if request.sampler else self.greedy(row)


def sampler_sees_the_first(count: int) -> Callable[[Generate, np.ndarray, Request], int]:
    """The sampler is given the largest logits, so many of them, and -inf for the others."""

    def pick(self: Generate, row: Rows, request: Request) -> int:
        if request.sampler is None or len(row) <= count:
            return Generate.pick(self, row, request)
        least = np.partition(row, -count)[-count]
        return request.sampler(np.where(row >= least, row, -np.inf))

    return pick


def sampled_at_every_position(self: Generate, rows: Rows, request: Request) -> int:
    if request.sampler is None:
        return self.greedy(self.last(rows))
    return [request.sampler(row) for row in rows][-1]


def sampled_twice(self: Generate, row: Rows, request: Request) -> int:
    if request.sampler is None:
        return self.greedy(row)
    request.sampler(row)
    return request.sampler(row)


def sampler_forgotten(self: Generate, row: Rows, request: Request) -> int:
    return self.greedy(row)


def of_whole_tiles(tile: int) -> Callable[[Generate, np.ndarray], int]:
    """The largest logit of whole tiles, or of all where there is none."""
    return lambda self, row: Generate.greedy(self, row[: len(row) // tile * tile or len(row)])


def first_id_greedy(self: Generate, rows: Rows, request: Request) -> int:
    return self.greedy(self.last(rows)) if len(rows) > 1 else Generate.choose(self, rows, request)


def feeds_greedy_back(self: Generate, toy: Toy, request: Request) -> Iterator[Any]:
    sequence, cache, fed = self.prompt(request), self.cache(toy, request), 0
    for number in range(self.limit(request)):
        rows = self.forward(toy, sequence, fed, cache)
        fed = len(sequence)
        token = self.choose(rows, request)
        if self.stops(token, request, number):
            return
        yield token
        sequence.append(self.greedy(self.last(rows)))


def large(wrong: Callable[[Generate, np.ndarray], int]) -> Change:
    """A path for large vocabularies alone has the mistake."""
    return {"greedy": lambda self, row: wrong(self, row) if len(row) > 8192 else Generate.greedy(self, row)}
