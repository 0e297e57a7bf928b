"""Which ids a sampler may give, as sentences about one subject and one call; its suites share them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from inferspec.conformance.calls import Call
from inferspec.conformance.judging.trial import Nonconformance, Trial
from inferspec.spec import sampling as spec
from inferspec.spec.numerics import Precision, f64


def chooses(subject: Trial, call: Call) -> np.ndarray:
    """Each row's id is one that an honest implementation may give; return the ids."""
    return fitting(subject, call, spec.ORDERS[:1])[0]


def fitting(subject: Trial, call: Call, orders: Sequence[str]) -> tuple[np.ndarray, tuple[str, ...]]:
    """Return the ids, and those of the orders in which an honest implementation may give all of them; one is needed."""
    got = subject.value(call)
    a, sampler = subject.promised(call), _sampler(subject)
    rows = a.logits.shape[:-1]
    if got.shape != rows:
        raise Nonconformance(f"the ids have shape {list(got.shape)}, not {list(rows)}", call)
    ids, size = f64(got), a.logits.shape[-1]
    if (strange := ~((ids >= 0) & (ids < size) & (ids == np.floor(ids)))).any():
        raise Nonconformance(f"{ids[strange].flat[0]:g} is no id of a vocabulary of {size}", call)

    def wrong(precision: Precision, order: str) -> tuple[np.ndarray, np.ndarray]:
        allowed = sampler.allowed(a, precision, order)
        return ~np.take_along_axis(allowed, ids.astype(np.int64)[..., None], -1)[..., 0], allowed

    for precision in Precision:
        found = [wrong(precision, order) for order in orders]
        if fit := tuple(order for order, (bad, _) in zip(orders, found, strict=True) if not bad.any()):
            if precision is Precision.NATIVE:
                subject.outcome.precision = "native"
            return got, fit
        if subject.precision is Precision.FLOAT32:
            break
    bad, allowed = found[0]
    where = tuple(int(i) for i in np.argwhere(bad)[0])
    may = ", ".join(str(i) for i in np.flatnonzero(allowed[where])[:6])
    uniform = "" if a.uniform is None else f" by the uniform number {float(f64(a.uniform)[where]):.9g}"
    raise Nonconformance(
        f"row {where} gives id {int(ids[where])}{uniform}, where {may or 'none'} may come; {int(bad.sum())} of "
        f"{bad.size} rows wrong" + (f" with top_p {orders[0]}" if a.top_p < 1 and a.temperature not in (0, 1) else ""),
        call,
    )


def _sampler(subject: Trial) -> Any:
    return subject.oracle("Sampler")


def gives_integers(subject: Trial, call: Call) -> None:
    """The ids are of an integer dtype, one for each row."""
    got, rows = subject.value(call), call.arguments["logits"].shape[:-1]
    if got.shape != rows:
        raise Nonconformance(f"the ids have shape {list(got.shape)}, not {list(rows)}", call)
    if got.dtype.kind not in "iu":
        raise Nonconformance(f"the ids are {got.dtype.name}; they take an integer dtype", call)


def distributed(logits: np.ndarray) -> np.ndarray:
    """Rows that have a distribution: no NaN, and one logit at least that is not hidden."""
    return ~np.isnan(logits).any(axis=-1) & (logits > -np.inf).any(axis=-1)
