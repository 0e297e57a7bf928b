"""What is our engine's own: guessing, samplers, counts, and that a step which fails is taken back."""

import itertools
from collections.abc import Mapping
from typing import Any

import mlx.core as mx
import numpy as np
import pytest

from inferspec.impl.engine import Engine
from inferspec.impl.generation import generate
from inferspec.impl.qwen3 import Qwen3

CONFIG = {
    "model_type": "qwen3",
    "hidden_size": 24,
    "num_hidden_layers": 2,
    "intermediate_size": 40,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 16,
    "vocab_size": 37,
    "rms_norm_eps": 1e-5,
    "rope_theta": 1000.0,
    "max_position_embeddings": 96,
    "tie_word_embeddings": True,
}


def model(seed: int, **changes: int) -> Qwen3:
    config = CONFIG | changes
    return Qwen3(config, tensors(seed, config))


def tensors(seed: int, config: Mapping[str, Any]) -> dict[str, mx.array]:
    """Random weights of a tied model."""
    random = np.random.default_rng(seed)
    hidden, inner, dim = config["hidden_size"], config["intermediate_size"], config["head_dim"]
    queries, keys = config["num_attention_heads"] * dim, config["num_key_value_heads"] * dim
    shapes = {"model.embed_tokens.weight": (config["vocab_size"], hidden), "model.norm.weight": (hidden,)}
    for layer in range(config["num_hidden_layers"]):
        name = f"model.layers.{layer}"
        shapes |= {f"{name}.self_attn.{x}_norm.weight": (dim,) for x in "qk"}
        shapes |= {f"{name}.{x}_layernorm.weight": (hidden,) for x in ("input", "post_attention")}
        shapes |= {
            f"{name}.self_attn.q_proj.weight": (queries, hidden),
            f"{name}.mlp.down_proj.weight": (hidden, inner),
        }
        shapes |= {f"{name}.self_attn.{x}_proj.weight": (keys, hidden) for x in "kv"}
        shapes |= {f"{name}.mlp.{x}_proj.weight": (inner, hidden) for x in ("gate", "up")}
        shapes[f"{name}.self_attn.o_proj.weight"] = (hidden, queries)
    return {name: mx.array(random.normal(0, 0.5, shape).astype(np.float32)) for name, shape in shapes.items()}


TARGET, DRAFT = model(0), model(1)
PROMPTS = [[1, 2, 3, 4, 5, 6, 7], [1, 2, 3, 4, 9], [30], [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11]]


def alone(tokens: list[int], max_tokens: int) -> list[int]:
    return list(generate(TARGET, tokens, max_tokens=max_tokens))


SCALINGS: Mapping[str, Mapping[str, Any]] = {
    "linear": {"type": "linear", "factor": 2.5},
    "llama3": {
        "rope_type": "llama3",
        "factor": 8.0,
        "low_freq_factor": 1.0,
        "high_freq_factor": 4.0,
        "original_max_position_embeddings": 32,
    },
    "yarn": {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 40, "beta_fast": 4.0},
}


@pytest.mark.parametrize("kernels", [True, False], ids=["kernels", "no kernels"])
@pytest.mark.parametrize("kind", SCALINGS)
def test_outputs_of_a_scaled_rope_are_those_of_generate_and_of_the_whole(kind, kernels, monkeypatch):
    if not kernels:
        monkeypatch.setenv("INFERSPEC_CPU", "off")
    config = {**CONFIG, "rope_scaling": SCALINGS[kind]}
    target = Qwen3(config, tensors(0, config))
    expected = [list(generate(target, tokens, max_tokens=12)) for tokens in PROMPTS]
    engine = Engine(target, num_pages=12, page_size=4, max_prefill_tokens=5)
    ids = [engine.add_request(tokens, 12) for tokens in PROMPTS]
    outputs = engine.run()
    assert [outputs[id] for id in ids] == expected
    for tokens, output in zip(PROMPTS, expected, strict=True):
        whole = mx.argmax(target(mx.array([[*tokens, *output]])), axis=-1)[0].tolist()
        assert whole[len(tokens) - 1 : -1] == output
    assert expected != [alone(tokens, 12) for tokens in PROMPTS]


class Failing:
    """A sampler that raises at its second call."""

    def __init__(self) -> None:
        self.calls = 0

    def __call__(self, logits: mx.array) -> int:
        self.calls += 1
        if self.calls == 2:
            raise OSError("the sampler broke")
        return int(mx.argmax(logits).item())


@pytest.mark.parametrize("draft", [None, TARGET, DRAFT], ids=["no draft", "perfect draft", "another draft"])
@pytest.mark.parametrize(("page", "chunk"), [(1, 3), (3, 1), (8, 64)])
def test_outputs_are_those_of_generate_whatever_is_guessed(draft, page, chunk):
    engine = Engine(TARGET, num_pages=-(-24 // page), page_size=page, max_prefill_tokens=chunk, draft=draft)
    requests = {engine.add_request(tokens, 9, priority): tokens for priority, tokens in enumerate(PROMPTS)}
    assert engine.run() == {request: alone(tokens, 9) for request, tokens in requests.items()}
    assert engine.num_free_pages == engine.stats.num_pages
    assert page != 1 or engine.stats.preemptions


def test_a_perfect_draft_is_always_right():
    engine = Engine(TARGET, draft=TARGET)
    engine.add_request(PROMPTS[0], 11)
    engine.run()
    assert engine.stats.acceptance_rate == 1
    # One token comes of the prompt, then five a step.
    assert engine.stats.steps == 3


def test_end_and_limit_cut_a_run_of_right_guesses():
    expected = alone(PROMPTS[0], 8)
    engine = Engine(TARGET, draft=TARGET, num_draft_tokens=5)
    limited = engine.add_request(PROMPTS[0], 3)
    ended = engine.add_request(PROMPTS[0], 8, eos=[expected[3]])
    first = expected.index(expected[3])
    assert engine.run() == {limited: expected[:3], ended: expected[:first]}


def test_a_sampler_chooses_and_nothing_is_guessed_for_it():
    engine = Engine(TARGET, draft=TARGET)
    lowest = engine.add_request(PROMPTS[0], 4, sampler=mx.argmin)
    expected = list(generate(TARGET, PROMPTS[0], max_tokens=4, sampler=mx.argmin))
    assert engine.run()[lowest] == expected
    assert engine.stats.drafted == 0


def test_a_step_that_fails_is_taken_back():
    engine = Engine(TARGET, page_size=2, draft=DRAFT)
    failing = engine.add_request(PROMPTS[0], 5, sampler=Failing())
    other = engine.add_request(PROMPTS[1], 5)
    emitted = engine.step()
    with pytest.raises(OSError, match="the sampler broke"):
        engine.step()
    assert [engine.output(name) for name in (failing, other)] == [[token] for _, token in emitted]
    assert engine.run() == {failing: alone(PROMPTS[0], 5), other: alone(PROMPTS[1], 5)}
    assert engine.num_free_pages == 256


def test_hits_are_counted_once_and_never_without_shared_prompts():
    engine = Engine(TARGET, num_pages=12, page_size=2)
    for first in range(4):
        engine.add_request([first, *PROMPTS[0]], 8)
    engine.run()
    assert engine.stats.preemptions
    assert engine.stats.hit_rate == 0
    again = engine.add_request([3, *PROMPTS[0]], 2)
    engine.run()
    assert engine.cached_tokens(again) == 6
    assert engine.stats.cached_tokens == 6


def test_tokens_stream_once_and_in_order():
    engine = Engine(TARGET, max_prefill_tokens=2, draft=DRAFT)
    requests = [engine.add_request(tokens, 6) for tokens in PROMPTS]
    streamed: dict[int, list[int]] = {request: [] for request in requests}
    while engine.has_unfinished:
        for request, token in engine.step():
            streamed[request].append(token)
    assert streamed == engine.run()


def test_metrics_are_of_the_given_clock():
    ticks = itertools.count()
    engine = Engine(TARGET, clock=lambda: float(next(ticks)))
    request = engine.add_request(PROMPTS[0], 3)
    engine.run()
    assert engine.metrics(request) == (1.0, 1.0, [1.0, 1.0], 3.0)


def test_run_tells_its_counts_after_each_step():
    engine = Engine(TARGET)
    engine.add_request(PROMPTS[0], 3)
    seen: list[int] = []
    engine.run(lambda stats: seen.append(stats.generated_tokens))
    assert seen == [1, 2, 3]


@pytest.mark.parametrize(
    ("tokens", "limit", "message"),
    [
        ([], 3, "tokens is empty"),
        ([1, 37], 3, "tokens holds 37; the vocabulary has 0 … 36"),
        ([-1], 3, "tokens holds -1"),
        ([1], -1, "max_tokens is -1"),
        ([1] * 60, 40, "the model has 96 positions"),
        ([1] * 20, 14, "all pages together hold 32 tokens"),
    ],
)
def test_what_cannot_be_served_is_refused_at_once(tokens, limit, message):
    engine = Engine(TARGET, num_pages=8, page_size=4)
    with pytest.raises(ValueError, match=message):
        engine.add_request(tokens, limit)
    assert not engine.has_unfinished
    assert engine.run() == {}


def test_what_another_request_spoils_is_not_drawn_again():
    drawn = iter(range(1, 30))
    engine = Engine(TARGET)
    steady = engine.add_request(PROMPTS[0], 4, sampler=lambda logits: next(drawn))
    failing = engine.add_request(PROMPTS[1], 4, sampler=Failing())
    engine.step()
    with pytest.raises(OSError, match="the sampler broke"):
        engine.step()
    assert engine.run()[steady] == [1, 2, 3, 4]
    assert engine.finished(failing)


@pytest.mark.parametrize("token", [37, -1])
def test_a_sampler_that_leaves_the_vocabulary_is_told_and_harms_nobody(token):
    engine = Engine(TARGET)
    wrong = engine.add_request(PROMPTS[0], 4, sampler=lambda logits: token)
    other = engine.add_request(PROMPTS[1], 4)
    with pytest.raises(ValueError, match=f"sampler of request {wrong} returned {token}; the vocabulary has 0 … 36"):
        engine.step()
    engine.cancel(wrong)
    assert engine.run() == {other: alone(PROMPTS[1], 4)}


def test_a_finished_request_can_be_forgotten():
    engine = Engine(TARGET)
    request = engine.add_request(PROMPTS[0], 3)
    with pytest.raises(ValueError, match="which is not finished"):
        engine.forget(request)
    engine.run()
    assert engine.logits(request).shape == (37,)
    engine.forget(request)
    assert engine.run() == {}
    with pytest.raises(ValueError, match="it takes one that add_request returned"):
        engine.output(request)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"num_pages": 0}, "num_pages is 0; it takes 1 or more"),
        ({"page_size": -1}, "page_size is -1"),
        ({"max_requests": 0}, "max_requests is 0"),
        ({"draft": TARGET, "num_draft_tokens": -1}, "num_draft_tokens is -1; it takes 0 or more"),
        ({"num_pages": 10**20}, "GiB, and this machine has"),
    ],
)
def test_an_engine_that_cannot_be_is_refused(options, message):
    with pytest.raises(ValueError, match=message):
        Engine(TARGET, **options)


def test_a_draft_of_another_vocabulary_is_refused():
    with pytest.raises(ValueError, match="draft has a vocabulary of 41; it takes the model's, 37"):
        Engine(TARGET, draft=model(2, vocab_size=41))


def test_an_unknown_request_is_refused():
    with pytest.raises(ValueError, match="request_id is 7"):
        Engine(TARGET).output(7)
