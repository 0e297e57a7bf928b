"""``inferspec bench model``: what is timed, who is judged how, and the whole command on a tiny model."""

from __future__ import annotations

import json

import jsonschema
import numpy as np
import pytest

from inferspec.conformance.bridge.arrays import MlxArrays
from inferspec.impl import loading
from inferspec.impl.kernels import cpu
from inferspec.impl.model_config import ModelConfig
from inferspec.tools import cli
from inferspec.tools.bench import models, peers, random_model
from inferspec.tools.bench.model_cost import cost
from inferspec.tools.bench.model_judge import ModelJudge
from inferspec.tools.bench.models.ours import Ours
from inferspec.tools.bench.peers import AGAIN, MLX, OURS
from inferspec.tools.bench.result import OTHER, REFUSED, TIMED, schema
from inferspec.tools.bench.shapes import SHAPES

TOKENS = [3, 1, 4, 1, 5, 9]


class Clock:
    now = 0.0

    def __call__(self):
        return self.now


class Slow:
    """Takes so many seconds for a token of the prompt, and for each id after the first. They are powers of two: exact."""

    def __init__(self, clock, prefill, decode):
        self.clock, self.prefill, self.decode = clock, prefill, decode

    def ids(self, prompt, count):
        self.clock.now += self.prefill * len(prompt)
        for number in range(count):
            yield number
            self.clock.now += self.decode


def test_times_are_of_their_own_tokens():
    clock = Clock()
    run = models.timed(Slow(clock, 1 / 64, 0.5), list(range(50)), 9, clock)
    assert run == models.Run(1 / 64, 0.5, tuple(range(9)))


class Short:
    def ids(self, prompt, count):
        return iter([7, 8])


def test_a_model_that_ends_early_is_not_timed():
    with pytest.raises(ValueError, match="it gave 2 ids in place of 4"):
        models.timed(Short(), [1], 4, Clock())


@pytest.fixture(scope="module")
def tiny(tmp_path_factory):
    """A random model: config and weights, MLX arrays."""
    folder = random_model.write(SHAPES["tiny"], tmp_path_factory.mktemp("tiny"), 0)
    return loading.read(folder)


def in_float32(weights):
    import mlx.core as mx

    return {name: x if x.dtype == mx.uint32 else x.astype(mx.float32) for name, x in weights.items()}


def judge_of(config, weights):
    return ModelJudge(config, {name: MlxArrays().to_numpy(x) for name, x in weights.items()}, TOKENS)


def logits_of(config, weights, columns, split=3):
    return Ours(loading.MODELS[config["model_type"]](config, weights)).logits(TOKENS, split)[:, columns]


def test_our_logits_are_the_oracles(tiny):
    config, weights = tiny
    judge = judge_of(config, weights)
    for split in (1, 3, 6):
        assert judge.verdict(logits_of(config, weights, judge.columns, split)).state == TIMED


@pytest.mark.parametrize("change", [{"rope_theta": 100.0}, {"rms_norm_eps": 1e-2}])
def test_a_model_of_another_configuration_is_refused(tiny, change):
    config, weights = tiny[0], in_float32(tiny[1])
    judge = judge_of(config, weights)
    wrong = logits_of({**config, **change}, weights, judge.columns)
    verdict = judge.verdict(wrong)
    assert (verdict.state, verdict.precision) == (REFUSED, "")
    assert "of the largest" in verdict.reason


def test_what_says_that_it_is_coarser_is_shown_as_such_and_what_is_nonsense_is_refused(tiny):
    config, weights = tiny[0], in_float32(tiny[1])
    judge = judge_of(config, weights)
    right = logits_of(config, weights, judge.columns)
    coarse = right + np.float32(0.02) * np.abs(right).max()
    assert judge.verdict(coarse).state == REFUSED
    verdict = judge.verdict(coarse, "activations in int8")
    assert (verdict.state, verdict.precision) == (OTHER, "activations in int8")
    assert 0.019 < verdict.difference < 0.021
    assert judge.verdict(-right, "activations in int8").state == REFUSED
    assert judge.verdict(np.full_like(right, np.nan), "activations in int8").state == REFUSED


def test_a_random_model_is_as_large_as_its_shape_says(tiny):
    config, weights = tiny
    sizes, shape = ModelConfig.read(config), SHAPES["tiny"]
    assert (sizes.hidden_size, sizes.num_layers, sizes.vocab_size) == (shape.hidden, shape.layers, shape.vocabulary)
    logits = logits_of(config, weights, np.arange(512))
    assert 0.1 < float(logits.std()) < 10


def test_a_token_of_a_prompt_shares_the_weights_and_an_id_reads_them_all(tiny):
    config, weights = tiny
    arrays = {name: MlxArrays().to_numpy(x) for name, x in weights.items()}
    found = cost(ModelConfig.read(config), arrays, 100, 10)
    stored = sum(x.nbytes for x in arrays.values())
    keys = 4 * 2 * (100 + 5) * 2 * 64 * 2
    assert found["decode"][0] == stored + keys
    assert found["prefill"][0] == stored / 100
    assert found["prefill"][1] < found["decode"][1]


def bench(*arguments):
    return cli.main(["bench", "model", *arguments])


SIZES = ["--prompt-tokens", "12", "--tokens", "6", "--rounds", "2"]


def test_the_command_measures_ours_and_mlx_lm_with_the_same_weights(known_limits, capsys, tmp_path):
    pytest.importorskip("mlx_lm")
    file = tmp_path / "bench.json"
    assert bench("--model", "tiny-qwen3-4bit", "--peers", "mlx-lm", *SIZES, "--json", str(file)) == 0
    assert "logits off by" in " ".join(capsys.readouterr().out.split())
    body = json.loads(file.read_text())
    jsonschema.validate(body, schema())
    prefill, decode = body["cases"]
    assert (prefill["group"], decode["group"]) == ("prefill", "decode")
    for case in (prefill, decode):
        slow = [f"{OURS}, {MLX}"] * cpu.available()
        assert [one["name"] for one in case["contenders"]] == [OURS, AGAIN, *slow, "mlx-lm"]
        assert all(one["state"] == "timed" and len(one["times"]) == 2 for one in case["contenders"])
    assert body["libraries"].keys() >= {"mlx", "mlx-lm"}


def test_ours_without_a_cache_contends_on_request(known_limits, tmp_path, monkeypatch):
    monkeypatch.setattr(peers, "find_spec", lambda name: None)
    monkeypatch.setattr(peers.Peer, "installed", property(lambda peer: peer.place == "ours"))
    file = tmp_path / "bench.json"
    assert bench("--shape", "tiny", "--no-cache", *SIZES, "--json", str(file)) == 0
    body = json.loads(file.read_text())
    assert [one["name"] for one in body["cases"][1]["contenders"]] == [OURS, AGAIN, f"{OURS}, no cache"]
    assert body["missing"].keys() == {"mlx-lm", "transformers", "llama.cpp"}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--rounds", "0"], "--rounds is 0; it takes 1 or more"),
        (["--tokens", "1"], "--tokens is 1; it takes 2 or more"),
        (["--prompt-tokens", "0"], "--prompt-tokens is 0; it takes 1 or more"),
        (["--prompt-tokens", "1020"], "1052 tokens are more than the 1024 positions of the model"),
        (["--model", "nowhere"], "nowhere is neither a folder"),
        (
            ["--peers", "torch"],
            "--peers names 'torch'; it takes mlx-lm, transformers, transformers bfloat16, llama.cpp",
        ),
    ],
)
def test_what_cannot_be_used_is_told_in_one_line(capsys, arguments, message):
    assert bench("--model", "tiny-qwen3", *arguments) == 2
    out = capsys.readouterr().out
    assert message in out
    assert out.count("\n") == 1


def test_an_unknown_shape_is_told_in_one_line(capsys):
    assert bench("--shape", "gpt-2") == 2
    assert "--shape is 'gpt-2'; it takes tiny, smollm2-135m, qwen3-0.6b" in capsys.readouterr().out


@pytest.mark.parametrize("arguments", [[], ["--model", "tiny-qwen3", "--shape", "tiny"]])
def test_a_model_or_a_shape_is_needed(arguments):
    with pytest.raises(SystemExit) as caught:
        bench(*arguments)
    assert caught.value.code == 2
