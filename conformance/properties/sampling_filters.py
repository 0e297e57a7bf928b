"""What filters leave, as sentences about one subject and one call."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from inferspec.conformance.calls import Call
from inferspec.conformance.judging.trial import Nonconformance, Trial
from inferspec.spec.numerics import f64


def gives_a_right_set(subject: Trial, call: Call) -> Any:
    """The oracle's survivors, and where rounding decides, a beginning of the order all the same."""
    got = subject.agrees(call)
    logits = f64(call.arguments["logits"])
    kept = (f64(got) != -np.inf) & (logits != -np.inf)
    if (kept & (f64(got) != logits)).any():
        raise Nonconformance("a survivor has another logit than before", call)
    in_order = np.take_along_axis(kept, np.argsort(-logits, axis=-1, kind="stable"), -1)
    if (in_order[..., 1:] & ~in_order[..., :-1]).any():
        raise Nonconformance("an id survives before one that is more likely", call)
    return got


def leaves_the_lowest(subject: Trial, call: Call) -> None:
    """A right set, of equal ids the lowest; who leaves others of them is told how to say so."""
    try:
        gives_a_right_set(subject, call)
    except Nonconformance as failure:
        try:
            leaves_enough(subject, call)
        except Nonconformance:
            raise failure from None
        hint = f"; if any of equal ids may survive, declare {subject.declaring('ties', ['any'])}"
        raise Nonconformance(f"{failure}{hint}", failure.call, failure.state) from None


def leaves_the_likeliest(subject: Trial, call: Call) -> None:
    """A right set, in which the most likely id of each row is."""
    logits = f64(call.arguments["logits"])
    got = gives_a_right_set(subject, call)
    if (lost := (got == -np.inf).all(axis=-1)).any():
        raise Nonconformance(f"{int(lost.sum())} of {lost.size} rows have no survivor", call)
    if (f64(got).max(axis=-1) != logits.max(axis=-1)).any():
        raise Nonconformance("the most likely id does not survive", call)


def leaves_enough(subject: Trial, call: Call) -> None:
    """A right set but for which of equal ids are in it, and how many of them there are beyond those that must be."""
    got, answer, logits = f64(subject.value(call)), subject.answer(call), f64(call.arguments["logits"])
    if got.shape != logits.shape:
        raise Nonconformance(f"the result has shape {list(got.shape)}, not {list(logits.shape)}", call)
    kept, undecided = (got != -np.inf) & (logits != -np.inf), np.isinf(answer.budget)
    if (kept & (got != logits)).any():
        raise Nonconformance("a survivor has another logit than before", call)
    fewest = ((answer.value != -np.inf) & ~undecided).sum(axis=-1)
    if (few := kept.sum(axis=-1) < fewest).any():
        raise Nonconformance(f"{kept.sum(axis=-1)[few].flat[0]} ids survive, fewer than {fewest[few].flat[0]}", call)
    left = np.where(kept, logits, np.inf).min(axis=-1, keepdims=True)
    if ((logits > left) & ~kept).any():
        raise Nonconformance("an id survives, and one that is more likely does not", call)
    last = np.where((answer.value != -np.inf) | undecided, logits, np.inf).min(axis=-1, keepdims=True)
    if (kept & (logits < last)).any():
        raise Nonconformance("an id survives that is less likely than all that may", call)


def leaves(subject: Trial, call: Call, count: float) -> None:
    """So many ids of each row survive, whichever they are."""
    counts = survivors(subject.value(call))
    if (wrong := counts != count).any():
        raise Nonconformance(f"{counts[wrong].flat[0]} ids survive, and {count:g} reach top_p", call)


def gives_the_set_of_the_copy(subject: Trial, call: Call) -> None:
    """A right set; of rows that a broadcast makes all alike the copy's own, for which of them survive is asked elsewhere."""
    logits = f64(call.arguments["logits"])
    if (logits == logits[..., :1]).all():
        subject.expects(call, subject.value(replace(call, views={})))
    else:
        gives_a_right_set(subject, call)


def survivors(logits: Any) -> np.ndarray:
    """How many ids of each row a filter has left."""
    return np.count_nonzero(f64(logits) > -np.inf, axis=-1)
