"""The worst error that a test tells of, as a share of budgets of one class of precision."""

from __future__ import annotations

import numpy as np
import pytest

from inferspec.conformance.calls import Call
from inferspec.conformance.judging.trial import Nonconformance, Trial
from inferspec.conformance.subject import LocalSubject
from inferspec.spec import attention
from inferspec.spec.attention import ScaledDotProductAttention
from inferspec.spec.numerics import Precision

SHARES = {Precision.FLOAT32: 0.75, Precision.NATIVE: 0.25}


def off_by_a_share(trial, budgets):
    """A result that is off by a share of its budget of one class."""
    random = np.random.default_rng(0)
    query, key, value = (random.normal(size=(1, 2, 5, 8)).astype(np.float16) for _ in range(3))
    call = Call("scaled_dot_product_attention", {"query": query, "key": key, "value": value})
    answer = trial.answer(call, budgets)
    return call, answer.value + SHARES[budgets] * answer.budget, trial.answer(call, Precision.FLOAT32)


def worst_of(declared, *classes):
    about = {"attention": declared}
    subject = LocalSubject({ScaledDotProductAttention.signature.operation: ScaledDotProductAttention}, about)
    trial = Trial(subject, attention.ATTN_01)
    for budgets in classes:
        trial.compare(*off_by_a_share(trial, budgets))
    return round(trial.outcome.worst, 6)


@pytest.mark.parametrize("declared", ["float32", "native"])
def test_what_keeps_the_budgets_of_float32_is_a_share_of_them(declared):
    assert worst_of(declared, Precision.FLOAT32) == 0.75


@pytest.mark.parametrize("first", Precision)
def test_where_a_result_needs_a_native_budget_no_share_of_others_counts(first):
    second = next(one for one in Precision if one is not first)
    assert worst_of("native", first, second) == 0.25


def test_what_only_a_native_budget_allows_is_to_be_declared():
    with pytest.raises(Nonconformance, match=r'declare PRECISION = {"attention": "native"}'):
        worst_of("float32", Precision.NATIVE)
