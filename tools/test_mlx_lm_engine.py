"""The adapter of mlx-lm's batch generation: what it serves together is what mlx-lm generates alone."""

from __future__ import annotations

import pytest

from inferspec import golden

pytest.importorskip("mlx_lm")

from inferspec.conformance.subjects import mlx_lm

FOLDER = golden.ROOT / "models" / "tiny-qwen3"
PROMPTS = ([17, 250, 3], list(range(40, 75)), [9], [200, 201, 17, 250, 3], [300 + i % 7 for i in range(20)])
LENGTHS = (12, 5, 20, 1, 8)


@pytest.fixture(scope="module")
def model():
    return mlx_lm.load(str(FOLDER))


def alone(model, tokens, max_tokens):
    return [int(token) for token in mlx_lm.generate(model, tokens, max_tokens=max_tokens)]


@pytest.mark.parametrize("max_requests", [1, 2, 8])
@pytest.mark.parametrize("max_prefill_tokens", [7, 512])
def test_requests_served_together_are_those_generated_alone(model, max_requests, max_prefill_tokens):
    engine = mlx_lm.Engine(model, max_requests=max_requests, max_prefill_tokens=max_prefill_tokens)
    asked = [engine.add_request(p, n) for p, n in zip(PROMPTS[:3], LENGTHS[:3], strict=True)]
    streamed = [*engine.step(), *engine.step(), *engine.step()]
    asked += [engine.add_request(p, n) for p, n in zip(PROMPTS[3:], LENGTHS[3:], strict=True)]
    while engine.has_unfinished:
        streamed += engine.step()
    expected = {k: alone(model, p, n) for k, p, n in zip(asked, PROMPTS, LENGTHS, strict=True)}
    assert engine.run() == expected
    assert {k: [token for request, token in streamed if request == k] for k in asked} == expected


def test_an_end_of_sequence_is_the_last_id_of_its_request(model):
    ids = alone(model, PROMPTS[1], 20)
    stop = ids[6]
    engine = mlx_lm.Engine(model)
    ended, other = engine.add_request(PROMPTS[1], 20, eos=[stop]), engine.add_request(PROMPTS[2], 9)
    assert engine.run() == {ended: ids[: ids.index(stop) + 1], other: alone(model, PROMPTS[2], 9)}


def test_a_cancelled_request_leaves_the_others_as_they_are(model):
    engine = mlx_lm.Engine(model, max_requests=2)
    first, second, third = (engine.add_request(p, 10) for p in PROMPTS[:3])
    engine.step()
    engine.step()
    engine.cancel(first)
    assert engine.finished(first)
    assert engine.run() == {second: alone(model, PROMPTS[1], 10), third: alone(model, PROMPTS[2], 10)}
