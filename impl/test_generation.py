"""What the suite on the toy model cannot see of generation: the whole loop on a real model, and its errors' words."""

import mlx.core as mx
import pytest

from inferspec.golden import models
from inferspec.impl import generation
from inferspec.impl.generation import generate
from inferspec.impl.loading import load


@pytest.fixture(scope="module")
def model():
    return load(models.weights_of("tiny-qwen3"))


@pytest.fixture(scope="module")
def prompt():
    return models.read("tiny-qwen3").prompts[0]


@pytest.mark.parametrize("cache", [True, False])
def test_the_tiny_model_says_what_transformers_says(model, prompt, cache):
    assert list(generate(model, prompt.ids, max_tokens=12, cache=cache)) == list(prompt.greedy[:12])


def test_pieces_of_a_prompt_change_nothing(model, prompt, monkeypatch):
    monkeypatch.setattr(generation, "PREFILL", 3)
    assert list(generate(model, mx.array(prompt.ids), max_tokens=12)) == list(prompt.greedy[:12])


@pytest.mark.parametrize("path", [None, "off"], ids=["kernels where there are any", "MLX"])
def test_prefill_computes_one_row_of_logits(model, prompt, monkeypatch, path):
    """The output head of a prompt is the dearest part of the work that no one asks for."""
    if path:
        monkeypatch.setenv("INFERSPEC_CPU", path)
    whole, alone = [], []
    call, prefill = type(model).__call__, type(model).prefill
    monkeypatch.setattr(type(model), "__call__", lambda self, x, cache: whole.append(x.size) or call(self, x, cache))
    monkeypatch.setattr(type(model), "prefill", lambda self, x, cache: alone.append(x.size) or prefill(self, x, cache))
    next(generate(model, prompt.ids, max_tokens=1))
    assert sum(alone) == len(prompt.ids) - 1
    assert whole == [1]


@pytest.mark.parametrize(
    ("tokens", "options", "error", "message"),
    [
        ([], {}, ValueError, "tokens are empty"),
        ([[1, 2]], {}, TypeError, "integer"),
        (mx.zeros((1, 2), mx.int32), {}, ValueError, r"tokens are \(1, 2\); they take one axis"),
        (mx.zeros(2), {}, TypeError, "they take integers"),
        ([1], {"max_tokens": -1}, ValueError, "max_tokens is -1; it takes 0 or more"),
        ([1], {"max_tokens": 1.5}, TypeError, "integer"),
        ([1], {"eos": ["</s>"]}, TypeError, "integer"),
    ],
)
def test_bad_arguments_are_refused_at_the_call(model, tokens, options, error, message):
    with pytest.raises(error, match=message):
        generate(model, tokens, **{"max_tokens": 2, **options})
