"""What ids are drawn from above temperature 0, and by which uniform numbers: see `spec/faults/speculative_chances.py`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from inferspec.spec.changes.sampling import shares_in, top_p_by, up_to_p
from inferspec.spec.changes.speculative import first_alone
from inferspec.spec.contract import Change
from inferspec.spec.duet import Request
from inferspec.spec.numerics import f64, round_to
from inferspec.spec.sampling import Sampler
from inferspec.spec.speculative import Run, SpeculativeGenerate, Verify, chances, sampler_arguments

Loop = SpeculativeGenerate
Rows = np.ndarray


def greedy_when_cold(self: Loop, run: Run) -> Iterator[Any]:
    if run.request.temperature < 1e-5:
        run.request.temperature = 0.0
    return Loop.ids(self, run)


def draws_where_it_can(self: Loop, run: Run) -> Iterator[Any]:
    """Whether ids are drawn is known by the uniform numbers; a temperature of 0 is taken for none."""
    if run.request.uniforms is not None:
        run.request.temperature = run.request.temperature or 1.0
    return Loop.ids(self, run)


def verifies(**steps: Any) -> Change:
    """Verification with a step replaced."""
    wrong = type("Wrong", (Verify,), steps)

    def verify(self: Loop, drafted: list[int], q: Rows, p: Rows, u: Rows) -> list[int]:
        return wrong().verified(drafted, q, p, u)

    return {"verify": verify}


def kept_with(other: Callable[[int], int]) -> Change:
    """The draft at place i of a round, from 0, is kept or not by the uniform number of the one at other(i)."""

    def verify(self: Loop, drafted: list[int], q: Rows, p: Rows, u: Rows) -> list[int]:
        mine = [u[other(i)] for i in range(len(drafted))]
        return Loop.verify(self, drafted, q, p, np.array([*mine, u[-1]]))

    return {"verify": verify}


def _softmax(rows: Rows, axis: int | None = -1) -> Rows:
    weights = np.exp(rows - rows.max())
    return weights / weights.sum(axis=axis, keepdims=True)


def over_all_rows(self: Loop, run: Run, rows: Rows) -> Rows:
    weights = chances(rows, run.request)
    return weights / weights.sum()


def unprocessed(self: Loop, run: Run, rows: Rows) -> Rows:
    return _softmax(rows)


def without(**settings: Any) -> Any:
    def target_chances(self: Loop, run: Run, rows: Rows) -> Rows:
        return chances(rows, Request(**{**vars(run.request), **settings}))

    return target_chances


def tempered_in(dtype: str) -> Any:
    """Logits are divided by the temperature in that dtype."""

    def target_chances(self: Loop, run: Run, rows: Rows) -> Rows:
        tempered = f64(round_to(rows / run.request.temperature, dtype))
        return chances(tempered, Request(**{**vars(run.request), "temperature": 1.0}))

    return target_chances


def logits_in(dtype: str) -> Change:
    """The logits of both models are kept in that dtype, whatever they are of."""

    def rounded(self: Loop, run: Run, rows: Rows) -> Rows:
        return chances(f64(round_to(rows, dtype)), run.request)

    return {"target_chances": rounded, "draft_chances": rounded}


def below_the_largest_of_all(self: Sampler, x: Rows, kept: Rows) -> Rows:
    """One logit is taken off all rows: in float32 nothing is left of those that lie far below it."""
    return np.where(kept, f64(np.exp((x - x.max()).astype(np.float32))), 0)


def chances_in(dtype: str) -> Change:
    """Probabilities of both models are kept in that dtype; their sums are exact."""

    def rounded(self: Loop, run: Run, rows: Rows) -> Rows:
        p = f64(round_to(chances(rows, run.request), dtype))
        return p / p.sum(axis=-1, keepdims=True)

    return {"target_chances": rounded, "draft_chances": rounded}


def parts_behind_the_kth(self: Loop, run: Run, rows: Rows) -> Rows:
    """Logits are parted behind the k-th, where one has to be."""
    if run.request.top_k == rows.shape[-1]:
        raise IndexError(f"kth {run.request.top_k} is out of range")
    return chances(rows, run.request)


def by_sampler(change: Change) -> Change:
    """The probabilities of both models are those of a sampler with a step replaced."""
    sampler = type("Wrong", (Sampler,), dict(change))

    def wrong(self: Loop, run: Run, rows: Rows) -> Rows:
        return sampler().probabilities(sampler_arguments(run.request, rows))

    return {"target_chances": wrong, "draft_chances": wrong}


def top_p_in(dtype: str) -> Change:
    """Top-p sums probabilities in that dtype; ids are drawn from those in float32."""
    return by_sampler(shares_in(dtype))


def one_more_than_top_p() -> Change:
    """Where top_p is reached exactly."""
    return by_sampler(top_p_by(up_to_p))


def filters_first() -> Change:
    """Top-p sees the probabilities before the temperature."""
    return by_sampler({"survivors": lambda self, z, x, a: Sampler.survivors(self, z, z, a)})


def last_row(**settings: Any) -> Any:
    """What is drawn when all drafts are kept comes of other settings than what drafts are compared with."""

    def target_chances(self: Loop, run: Run, rows: Rows) -> Rows:
        p = chances(rows, run.request)
        p[-1:] = without(**settings)(self, run, rows[-1:])
        return p

    return target_chances


def rest(**settings: Any) -> Any:
    """What comes in the place of a rejected draft is drawn by other settings than those by which it was rejected."""

    def verified(self: Loop, run: Run, rows: Rows) -> list[int]:
        if run.request.temperature == 0:
            return Loop.verified(self, run, rows)
        p = self.target_chances(run, rows)
        q, u = np.array(run.rows).reshape(-1, p.shape[-1]), np.array([self.number(run) for _ in range(len(p))])
        count = Verify().kept(run.drafted, q, p, u)
        if count < len(run.drafted):
            p = without(**settings)(self, run, rows)
        weights = Verify().weights(run.drafted, q, p, count)
        return [*run.drafted[:count], Verify().draw(weights, float(u[-1]))]

    return verified


def first_round(**settings: Any) -> Change:
    """The first id is drawn from the prompt's logits by another way, and alone; drafts come after it."""

    def target_chances(self: Loop, run: Run, rows: Rows) -> Rows:
        return chances(rows, run.request) if run.out else without(**settings)(self, run, rows)

    return {"target_chances": target_chances, "count": first_alone}


def no_filter_of_one(self: Loop, run: Run, rows: Rows) -> Rows:
    """A top_k of 1 is taken for none."""
    top_k = None if run.request.top_k == 1 else run.request.top_k
    return chances(rows, Request(**{**vars(run.request), "top_k": top_k}))


def tells_raw_chances(self: Loop, run: Run, row: Rows) -> tuple[int, Rows]:
    """The draft is drawn from what was tempered and filtered; verification is told what was not."""
    if run.request.temperature == 0:
        return Loop.propose(self, run, row)
    return Loop.propose(self, run, row)[0], _softmax(row)


def tells_untempered_chances(self: Loop, run: Run, row: Rows) -> tuple[int, Rows]:
    """Verification is told what the draft was drawn from but for the temperature."""
    if run.request.temperature == 0:
        return Loop.propose(self, run, row)
    return Loop.propose(self, run, row)[0], chances(row[None], Request(**{**vars(run.request), "temperature": 1.0}))[0]


def greedy_drafts_told_otherwise(self: Loop, run: Run, row: Rows) -> tuple[int, Rows]:
    """The likeliest id is drafted; verification is told that it was drawn."""
    if run.request.temperature == 0:
        return Loop.propose(self, run, row)
    told = self.draft_chances(run, row[None])[0]
    return int(np.argmax(told)), told


def greedy_all_the_same(self: Loop, run: Run, rows: Rows) -> list[int]:
    """Above temperature 0 too a draft is kept where it is the target's likeliest, and nowhere else."""
    if run.request.temperature == 0:
        return Loop.verified(self, run, rows)
    p = self.target_chances(run, rows)
    count = [*(token == int(np.argmax(row)) for token, row in zip(run.drafted, p, strict=False)), False].index(False)
    return [*run.drafted[:count], Verify().draw(p[count], self.number(run))]


def numbers_of_verify_first(self: Loop, run: Run, count: int) -> None:
    """All numbers of a round are taken before its drafts, those of verification first."""
    if run.request.temperature and run.request.uniforms is not None:
        mine, rest = [self.number(run) for _ in range(2 * count + 1)], run.request.uniforms
        run.request.uniforms = _chained([*mine[count + 1 :], *mine[: count + 1]], rest)
    Loop.draft(self, run, count)


def _chained(first: list[float], rest: Iterator[float]) -> Iterator[float]:
    yield from first
    yield from rest


def number_in_bfloat16(self: Loop, run: Run) -> float:
    return float(round_to(np.array(Loop.number(self, run)), "bfloat16"))


def numbers_of_eight(self: Loop, run: Run, row: Rows) -> tuple[int, Rows]:
    """There is room for the numbers of eight drafts: those past them are drawn by the first of these again."""
    if run.request.temperature == 0:
        return Loop.propose(self, run, row)
    told, place = self.draft_chances(run, row[None])[0], len(run.drafted)
    numbers = [*run.__dict__.get("numbers", [])[:place], self.number(run)]
    run.numbers = numbers  # type: ignore[attr-defined]
    return Verify().draw(told, numbers[place % 8]), told


def chances_of_256(self: Loop, run: Run, rows: Rows) -> Rows:
    """A block has room for the probabilities of 256 ids; the others have none."""
    told = chances(rows, run.request)
    kept = np.where(np.arange(told.shape[-1]) < 256, told, 0)
    total = kept.sum(axis=-1, keepdims=True)
    return np.where(total > 0, kept / np.where(total > 0, total, 1), told)


def one_number_more(self: Loop, run: Run, count: int) -> None:
    if run.request.temperature:
        self.number(run)
    Loop.draft(self, run, count)


def sure_drafts(self: Loop, run: Run, row: Rows) -> tuple[int, Rows]:
    """The draft's likeliest id is drafted, and verified as the only one that could have been."""
    if run.request.temperature == 0:
        return Loop.propose(self, run, row)
    told = self.draft_chances(run, row[None])[0]
    return int(np.argmax(told)), np.eye(len(told))[int(np.argmax(told))]


def draft_unfiltered(self: Loop, run: Run, rows: Rows) -> Rows:
    return _softmax(rows)
