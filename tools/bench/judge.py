"""Whether what a contender computes is what the contract asks for: else its time is of something else."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from inferspec.spec.contract import Answer
from inferspec.spec.numerics import Precision, f64, within
from inferspec.tools.bench.cases import Case


@dataclass(frozen=True)
class Verdict:
    """precision: the tightest class whose budget the output keeps, "" for none; worst: its worst error in budgets of
    that class, of class `native` where it keeps none; reason: why it is refused."""

    precision: str
    worst: float
    reason: str = ""

    @property
    def accepted(self) -> bool:
        """Whether it may be timed."""
        return bool(self.precision)


class Judge:
    """Holds the outputs of a case against its float64 oracle."""

    def __init__(self, case: Case, seed: int) -> None:
        self._oracle, self._arguments, self._part = case.judged(case.arguments(seed))

    @cached_property
    def _answers(self) -> dict[Precision, Answer]:
        return {precision: self._oracle.evaluate(self._arguments, precision) for precision in Precision}

    def verdict(self, output: np.ndarray) -> Verdict:
        """The class of an output."""
        part = self._part(output)
        answers = self._answers
        expected = answers[Precision.FLOAT32].value
        dtype = self._oracle.result_dtype(self._arguments)
        if part.shape != expected.shape:
            return Verdict("", float("inf"), f"its shape is {part.shape}, not {expected.shape}")
        if part.dtype.name != dtype:
            return Verdict("", float("inf"), f"its dtype is {part.dtype.name}, not {dtype}")
        worst = float("inf")
        for precision, answer in answers.items():
            with np.errstate(all="ignore"):
                error = np.abs(f64(part) - answer.value)
                worst = _worst(error, answer.budget)
            if bool(np.all(within(error, answer.budget))):
                return Verdict(precision.value, worst)
        return Verdict("", worst, f"{worst:.3g} times the budget of class {Precision.NATIVE.value}")


def _worst(error: np.ndarray, budget: np.ndarray) -> float:
    """The largest error in budgets; an error without a budget is infinite, none without one is 0."""
    share = np.divide(error, budget, out=np.where(error > 0, np.inf, 0.0), where=budget > 0)
    return float(np.where(np.isnan(error), np.inf, share).max(initial=0.0))
