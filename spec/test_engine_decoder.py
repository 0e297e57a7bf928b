"""What is recalled of a model is what it would say again."""

from __future__ import annotations

import numpy as np
import pytest

from inferspec.conformance.inputs.engine_models import model
from inferspec.spec import engine_decoder
from inferspec.spec.engine_decoder import forward, recalled

PROMPT = [5, 7, 11]


def after(tokens, of):
    """The keys and values of these tokens."""
    memory = {}
    forward(of, tokens, memory)
    return memory


@pytest.fixture
def known(monkeypatch):
    """What is kept, nothing at first."""
    kept = {}
    monkeypatch.setattr(engine_decoder, "_RECALLED", kept)
    return kept


@pytest.mark.parametrize("before", [[], PROMPT], ids=["nothing", "a prompt"])
def test_logits_keys_and_values_are_the_same_to_the_last_bit(known, before):
    of, (right, first, again) = (
        model("qwen3", 0),
        (after(before, model("qwen3", 0)) if before else {} for _ in range(3)),
    )
    logits = forward(of, [3, 2], right)
    assert np.array_equal(recalled(of, [3, 2], first), logits)
    assert len(known) == 1
    assert np.array_equal(recalled(of, [3, 2], again), logits)
    assert len(known) == 1
    assert again["offset"] == right["offset"] == len(before) + 2
    for layer in right.keys() - {"offset"}:
        assert all(np.array_equal(x, y) for x, y in zip(again[layer], right[layer], strict=True))


def test_whoever_changes_what_came_back_changes_nothing_that_is_kept(known):
    of = model("qwen3", 0)
    right = recalled(of, PROMPT, {}).copy()
    recalled(of, PROMPT, {})[:] = 0
    assert np.array_equal(recalled(of, PROMPT, {}), right)


def _of_another_norm(of):
    weights = of["weights"]
    return {**of, "weights": {**weights, "model.norm.weight": weights["model.norm.weight"] * 2}}


def _of_other_keys(memory):
    keys, values = memory[0]
    return {**memory, 0: (keys + 1, values)}


OTHERS = {
    "another model": {"of": _of_another_norm},
    "other tokens": {"tokens": [4]},
    "another position": {"memory": lambda memory: {**memory, "offset": memory["offset"] + 1}},
    "other keys": {"memory": _of_other_keys},
}


@pytest.mark.parametrize("changed", OTHERS.values(), ids=OTHERS)
def test_what_differs_in_anything_is_computed(known, changed):
    of, tokens = model("qwen3", 0), changed.get("tokens", [3])
    recalled(of, [3], after(PROMPT, of))
    memory = changed.get("memory", dict)(after(PROMPT, of))
    other = changed.get("of", dict)(of)
    assert np.array_equal(recalled(other, tokens, dict(memory)), forward(other, tokens, memory))
    assert len(known) == 2
