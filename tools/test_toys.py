"""The toys behind a model's interface are what generators of any style can use."""

from __future__ import annotations

import numpy as np
import pytest

from inferspec.conformance.bridge.arrays import arrays
from inferspec.conformance.bridge.drivers.toys import Model
from inferspec.spec.duet import Player
from inferspec.spec.toy import Toy


def model(fixed: bool) -> Model:
    player = Player(Toy(40), fixed)
    return Model(player, player.make_cache, "float32", arrays("numpy"))


def test_tokens_are_taken_back_from_one_layer_after_the_other_or_from_all_in_one_go():
    toy = model(fixed=False)
    whole, apart = toy.make_cache(), toy.make_cache()
    for cache in (whole, apart):
        toy(np.array([[3, 1, 4, 1, 5]]), cache)
    whole.rewind(2)
    for layer in apart:
        layer.rewind(2)
    assert whole.offset == 3
    assert [layer.offset for layer in whole] == [layer.offset for layer in apart]
    assert (toy(np.array([[9, 2]]), whole) == toy(np.array([[9, 2]]), apart)).all()


def test_of_a_cache_with_a_layer_that_cannot_go_back_nothing_is_taken_back_in_one_go():
    cache = model(fixed=True).make_cache()
    with pytest.raises(AttributeError):
        cache.rewind(0)
