"""The disturbances of whole models are as large as asked for, and unlike each other."""

from __future__ import annotations

import numpy as np
import pytest

from inferspec.spec.numerics import RUNS, Precision
from inferspec.spec.stochastic import Disturbed


def disturbances(*shapes):
    arithmetic = Disturbed("float32", Precision.FLOAT32)
    return [arithmetic.off(np.zeros((1 + RUNS, *shape)), lambda _: 1.0) for shape in shapes]


@pytest.mark.parametrize("size", [1000, 300_000, 600_000])
def test_disturbances_have_the_deviation_that_is_asked_for(size):
    (noise,) = disturbances((size,))
    assert not noise[0].any()
    assert abs(noise[1:].std() - 1) < 0.02
    assert abs(noise[1:].mean()) < 0.05


@pytest.mark.parametrize("size", [1000, 300_000, 600_000])
def test_no_two_layers_are_disturbed_alike(size):
    layers = [noise[1:].ravel() for noise in disturbances(*[(size,)] * 4)]
    for number, one in enumerate(layers):
        for other in layers[:number]:
            assert abs(np.corrcoef(one, other)[0, 1]) < 0.05


def test_a_deviation_may_be_one_for_all_or_each_its_own():
    arithmetic = Disturbed("float32", Precision.FLOAT32)
    x = np.full((1 + RUNS, 5000), 3.0)
    deviation = 2.0**-30
    each = np.broadcast_to([0.0, deviation] * 2500, x.shape)
    noise = arithmetic.off(x, lambda _, each: each, each) - x
    assert not noise[:, ::2].any()
    assert 0.5 < noise[1:, 1::2].std() / deviation < 2
