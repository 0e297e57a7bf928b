"""What the contract of speculative decoding leaves to us."""

import math

import mlx.core as mx

from inferspec.impl.speculative import verify


def test_a_number_just_below_1_draws_the_last_token():
    rows = mx.array([[0.25, 0.75]])
    assert list(verify([], mx.zeros((0, 2)), rows, [math.nextafter(1, 0)])) == [1]
