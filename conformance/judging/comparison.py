"""How far a result is from the oracle's, and how a failure says so."""

from __future__ import annotations

from collections.abc import Callable
from types import EllipsisType

import numpy as np

from inferspec.spec.contract import Answer
from inferspec.spec.numerics import f64, round_to, within

Where = np.ndarray | EllipsisType
"""Which elements are compared: a mask, or all."""


def deviation(got: np.ndarray, value: np.ndarray, dtype: Callable[[], str]) -> np.ndarray:
    """Return |got - value| elementwise; 0 where both are NaN or the same infinity, inf where only one is.

    A finite answer past the range of the dtype, which is asked for where not all is finite, is an infinity in it.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        error = np.abs(got - value)
    if np.isfinite(error).all() or (np.isfinite(got).all() and np.isfinite(value).all()):
        return error
    beyond = np.isinf(f64(round_to(value, dtype()))) & np.isfinite(value)
    value = np.where(beyond & np.isinf(got), np.copysign(np.inf, value), value)
    with np.errstate(invalid="ignore"):
        error = np.abs(got - value)
    same = (np.isnan(got) & np.isnan(value)) | (got == value)
    return np.where(same, 0.0, np.where(np.isfinite(error), error, np.inf))


def described(got: np.ndarray, answer: Answer, error: np.ndarray, where: Where, name: str) -> str:
    """The worst element of a result that breaks its budget, and how many rows do: ``out[0, 3] = 1, oracle 2: …``.

    got, error (of `deviation`): of the answer's shape. where: what was compared. name: who says what is right.
    """
    bad = np.zeros(error.shape, bool)
    bad[where] = ~within(error, answer.budget)[where]
    with np.errstate(all="ignore"):
        share = np.where(bad, error / np.maximum(answer.budget, np.finfo(np.float64).tiny), 0.0)
    worst = np.unravel_index(int(np.argmax(share)), share.shape) if share.ndim else ()
    place = f"out[{', '.join(str(int(i)) for i in worst)}]" if worst else "out"
    value, expected, budget = f64(got)[worst], answer.value[worst], answer.budget[worst]
    text = f"{place} = {value:.6g}, {name} {expected:.6g}"
    if budget > 0 and np.isfinite(share[worst]):
        text += f": {share[worst]:.3g} times the budget of {budget:.2g}"
    rows = bad.any(axis=-1) if bad.ndim else bad
    count, total = int(rows.sum()), int(rows.size)
    first = np.argwhere(np.atleast_1d(rows))[0]
    return text + f"; {count} of {total} rows wrong, first {tuple(int(i) for i in first)}"
