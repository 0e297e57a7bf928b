"""What configurations of real checkpoints say, and what of it is not computed here: refused, by its name."""

from __future__ import annotations

import re
from typing import Any

import mlx.core as mx
import numpy as np
import pytest

from inferspec.impl.llama import Llama
from inferspec.impl.model_config import ModelConfig
from inferspec.impl.qwen3 import Qwen3
from inferspec.spec.numerics import library, operations, unit_roundoff, within

UNIT = unit_roundoff("float32")

LLAMA_2_7B: dict[str, Any] = {
    "architectures": ["LlamaForCausalLM"],
    "hidden_act": "silu",
    "hidden_size": 4096,
    "intermediate_size": 11008,
    "max_position_embeddings": 4096,
    "model_type": "llama",
    "num_attention_heads": 32,
    "num_hidden_layers": 32,
    "num_key_value_heads": 32,
    "pretraining_tp": 1,
    "rms_norm_eps": 1e-05,
    "rope_scaling": None,
    "tie_word_embeddings": False,
    "torch_dtype": "float16",
    "vocab_size": 32000,
}
TINY_LLAMA = {
    "attention_bias": False,
    "hidden_act": "silu",
    "hidden_size": 2048,
    "intermediate_size": 5632,
    "max_position_embeddings": 2048,
    "model_type": "llama",
    "num_attention_heads": 32,
    "num_hidden_layers": 22,
    "num_key_value_heads": 4,
    "pretraining_tp": 1,
    "rms_norm_eps": 1e-05,
    "rope_scaling": None,
    "rope_theta": 10000.0,
    "tie_word_embeddings": False,
    "torch_dtype": "bfloat16",
    "vocab_size": 32000,
}
SMOLLM2_135M = {
    "attention_bias": False,
    "hidden_act": "silu",
    "hidden_size": 576,
    "intermediate_size": 1536,
    "is_llama_config": True,
    "max_position_embeddings": 8192,
    "mlp_bias": False,
    "model_type": "llama",
    "num_attention_heads": 9,
    "num_hidden_layers": 30,
    "num_key_value_heads": 3,
    "pretraining_tp": 1,
    "rms_norm_eps": 1e-05,
    "rope_interleaved": False,
    "rope_scaling": None,
    "rope_theta": 100000,
    "tie_word_embeddings": True,
    "torch_dtype": "bfloat16",
    "vocab_size": 49152,
}
QWEN2_0_5B = {
    "attention_dropout": 0.0,
    "hidden_act": "silu",
    "hidden_size": 896,
    "intermediate_size": 4864,
    "max_position_embeddings": 32768,
    "max_window_layers": 21,
    "model_type": "qwen2",
    "num_attention_heads": 14,
    "num_hidden_layers": 24,
    "num_key_value_heads": 2,
    "rms_norm_eps": 1e-06,
    "rope_theta": 1000000.0,
    "sliding_window": 32768,
    "tie_word_embeddings": True,
    "use_sliding_window": False,
    "vocab_size": 151936,
}
QWEN3_0_6B = {
    "attention_bias": False,
    "head_dim": 128,
    "hidden_act": "silu",
    "hidden_size": 1024,
    "intermediate_size": 3072,
    "max_position_embeddings": 40960,
    "max_window_layers": 28,
    "model_type": "qwen3",
    "num_attention_heads": 16,
    "num_hidden_layers": 28,
    "num_key_value_heads": 8,
    "rms_norm_eps": 1e-06,
    "rope_scaling": None,
    "rope_theta": 1000000,
    "sliding_window": None,
    "tie_word_embeddings": True,
    "use_sliding_window": False,
    "vocab_size": 151936,
}
QWEN3_OF_TRANSFORMERS_5 = {
    **{name: x for name, x in QWEN3_0_6B.items() if name not in ("rope_scaling", "rope_theta")},
    "dtype": "bfloat16",
    "layer_types": ["full_attention"] * 28,
    "rope_parameters": {"rope_theta": 1000000, "rope_type": "default"},
}
LLAMA_3_2_1B: dict[str, Any] = {
    "attention_bias": False,
    "head_dim": 64,
    "hidden_act": "silu",
    "hidden_size": 2048,
    "intermediate_size": 8192,
    "max_position_embeddings": 131072,
    "mlp_bias": False,
    "model_type": "llama",
    "num_attention_heads": 32,
    "num_hidden_layers": 16,
    "num_key_value_heads": 8,
    "rms_norm_eps": 1e-05,
    "rope_scaling": {
        "factor": 32.0,
        "high_freq_factor": 4.0,
        "low_freq_factor": 1.0,
        "original_max_position_embeddings": 8192,
        "rope_type": "llama3",
    },
    "rope_theta": 500000.0,
    "tie_word_embeddings": True,
    "torch_dtype": "bfloat16",
    "vocab_size": 128256,
}
LLAMA_3_2_1B_OF_TRANSFORMERS_5 = {
    **{name: x for name, x in LLAMA_3_2_1B.items() if name not in ("rope_scaling", "rope_theta")},
    "rope_parameters": {**LLAMA_3_2_1B["rope_scaling"], "rope_theta": 500000.0},
}
QWEN3_AND_YARN: dict[str, Any] = {
    **QWEN3_0_6B,
    "rope_scaling": {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 32768},
}
"""As the card of Qwen3 has it for long texts."""

REAL = {
    "Llama-2-7b": LLAMA_2_7B,
    "TinyLlama-1.1B": TINY_LLAMA,
    "SmolLM2-135M": SMOLLM2_135M,
    "Qwen2-0.5B": QWEN2_0_5B,
    "Qwen3-0.6B": QWEN3_0_6B,
    "Qwen3-0.6B as transformers 5 writes it": QWEN3_OF_TRANSFORMERS_5,
    "Llama-3.2-1B": LLAMA_3_2_1B,
    "Llama-3.2-1B as transformers 5 writes it": LLAMA_3_2_1B_OF_TRANSFORMERS_5,
    "Qwen3-0.6B for long texts": QWEN3_AND_YARN,
}


@pytest.mark.parametrize("config", REAL.values(), ids=REAL.keys())
def test_the_configuration_of_a_published_checkpoint_is_read(config):
    about = ModelConfig.read(config)
    assert (about.num_layers, about.num_kv_heads) == (config["num_hidden_layers"], config["num_key_value_heads"])
    assert about.tied is config["tie_word_embeddings"]


def test_the_base_of_rope_is_found_where_either_transformers_writes_it():
    assert ModelConfig.read(QWEN3_0_6B).rope_theta == ModelConfig.read(QWEN3_OF_TRANSFORMERS_5).rope_theta == 1e6


def test_the_scaling_of_rope_is_found_where_either_transformers_writes_it():
    old, new = (ModelConfig.read(config).rope_scaling for config in (LLAMA_3_2_1B, LLAMA_3_2_1B_OF_TRANSFORMERS_5))
    assert old == new
    assert old.kind == "llama3"


@pytest.mark.parametrize(
    "config", [LLAMA_3_2_1B, QWEN3_AND_YARN, {**QWEN3_0_6B, "rope_scaling": {"type": "linear", "factor": 3}}]
)
def test_frequencies_and_attention_factor_are_those_of_transformers(config):
    torch, transformers = pytest.importorskip("torch"), pytest.importorskip("transformers")
    from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS

    about = ModelConfig.read(config)
    kind = transformers.LlamaConfig if config["model_type"] == "llama" else transformers.Qwen3Config
    theirs, factor = ROPE_INIT_FUNCTIONS[about.rope_scaling.kind](kind.from_dict(config), torch.device("cpu"))
    ours = about.rope_scaling.frequencies(about.head_dim, about.rope_theta)
    # A power, its inverse, and the steps from there to a share of it.
    budget = (library(UNIT, 5) + operations(UNIT, 8)) * np.array(ours)
    assert within(np.abs(theirs.double().numpy() - ours), budget).all()
    assert about.rope_scaling.attention_factor() == factor


def test_a_scaled_rope_has_the_positions_that_it_is_scaled_for():
    linear = {**TINY_LLAMA, "rope_scaling": {"type": "linear", "factor": 4}}
    longest = {"llama3": LLAMA_3_2_1B, "yarn": QWEN3_AND_YARN, "linear": linear}
    found = {kind: ModelConfig.read(config).max_positions for kind, config in longest.items()}
    assert found == {"llama3": 131072, "yarn": 131072, "linear": 8192}


UNSUPPORTED: list[tuple[dict[str, Any], str]] = [
    ({"hidden_act": "gelu"}, "hidden_act is 'gelu'; it takes 'silu'"),
    ({"use_sliding_window": True}, "use_sliding_window is True; it takes False"),
    ({"partial_rotary_factor": 0.5}, "partial_rotary_factor is 0.5; it takes 1"),
    ({"rope_interleaved": True}, "rope_interleaved is True; it takes False"),
    ({"rope_traditional": True}, "rope_traditional is True; it takes False"),
    (
        {"rope_scaling": {"rope_type": "longrope", "factor": 8.0}},
        "rope_scaling.rope_type is 'longrope'; it takes 'default', 'linear', 'llama3', 'yarn'",
    ),
    (
        {"rope_scaling": {"type": "dynamic", "factor": 4.0}},
        "rope_scaling.type is 'dynamic'; it takes 'default', 'linear', 'llama3', 'yarn'",
    ),
    ({"rope_scaling": {"factor": 4.0}}, "rope_scaling.factor is 4.0; without a rope_type it takes 1"),
    ({"rope_parameters": {"rope_type": "yarn"}}, "config has no rope_parameters.factor"),
    (
        {"rope_scaling": {"rope_type": "yarn", "factor": 4.0}},
        "config has no rope_scaling.original_max_position_embeddings",
    ),
    (
        {"rope_scaling": {"rope_type": "llama3", "factor": 8.0, "original_max_position_embeddings": 8192}},
        "config has no rope_scaling.low_freq_factor",
    ),
    ({"rope_scaling": {"type": "linear", "factor": 0}}, "rope_scaling.factor is 0; it takes a positive number"),
    (
        {"rope_scaling": {**LLAMA_3_2_1B["rope_scaling"], "high_freq_factor": 1.0}},
        "rope_scaling.high_freq_factor is 1.0; it takes a number above low_freq_factor, 1.0",
    ),
    (
        {"rope_scaling": {"type": "linear", "rope_type": "yarn"}},
        "rope_scaling gives two types of RoPE: rope_type = 'yarn', type = 'linear'",
    ),
    (
        {
            "rope_scaling": {"type": "linear", "factor": 4.0},
            "rope_parameters": {"rope_type": "linear", "factor": 8.0},
        },
        "config scales RoPE in two ways: rope_scaling and rope_parameters do not say the same",
    ),
    ({"rope_parameters": {"partial_rotary_factor": 0.25}}, "rope_parameters.partial_rotary_factor is 0.25; it takes 1"),
    (
        {"layer_types": ["full_attention", "sliding_attention"]},
        "layer_types has 'sliding_attention' for layer 1; it takes 'full_attention' for every one",
    ),
    ({"quantization": {"mode": "mxfp4", "bits": 4}}, "quantization.mode is 'mxfp4'; it takes 'affine'"),
    ({"rope_theta": 0}, "rope_theta is 0.0; it takes a positive number"),
]


@pytest.mark.parametrize(("asked", "message"), UNSUPPORTED, ids=[message for _, message in UNSUPPORTED])
def test_what_is_not_computed_is_refused_by_its_name_with_what_is(asked, message):
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        ModelConfig.read({**TINY_LLAMA, **asked})


@pytest.mark.parametrize("name", ["attention_bias", "mlp_bias"])
def test_biases_are_refused_of_a_qwen3(name):
    with pytest.raises(ValueError, match=f"{name} is True; Qwen3 takes none"):
        Qwen3({**QWEN3_0_6B, name: True}, {})


MISTYPED: list[tuple[dict[str, Any], str]] = [
    ({"tie_word_embeddings": "false"}, "tie_word_embeddings is 'false'; it takes true or false"),
    ({"attention_bias": 1}, "attention_bias is 1; it takes true or false"),
    ({"rope_scaling": "linear"}, "rope_scaling is 'linear'; it takes an object"),
    ({"rope_scaling": {"type": "linear", "factor": "4"}}, "rope_scaling.factor is '4'; it takes a number"),
    (
        {"rope_scaling": {**QWEN3_AND_YARN["rope_scaling"], "truncate": 0}},
        "rope_scaling.truncate is 0; it takes true or false",
    ),
    ({"quantization": 4}, "quantization is 4; it takes an object"),
    ({"num_hidden_layers": 22.0}, "num_hidden_layers is 22.0; it takes an integer"),
]


@pytest.mark.parametrize(("asked", "message"), MISTYPED, ids=[message for _, message in MISTYPED])
def test_a_value_of_another_type_is_refused_by_its_name(asked, message):
    with pytest.raises(TypeError, match=f"^{re.escape(message)}$"):
        ModelConfig.read({**TINY_LLAMA, **asked})


@pytest.mark.parametrize("name", ["tie_word_embeddings", "attention_bias", "mlp_bias", "rope_theta"])
def test_what_a_configuration_does_not_say_is_what_transformers_takes(name):
    """Of both models."""
    transformers = pytest.importorskip("transformers")
    for config, kind in ((TINY_LLAMA, transformers.LlamaConfig), (QWEN3_0_6B, transformers.Qwen3Config)):
        own = ModelConfig.read({key: x for key, x in config.items() if key != name})
        theirs = kind()
        default = theirs.rope_parameters["rope_theta"] if name == "rope_theta" else getattr(theirs, name, False)
        assert getattr(own, "tied" if name == "tie_word_embeddings" else name) == default


@pytest.mark.parametrize("model", [Llama, Qwen3])
def test_arguments_in_another_order_are_told_what_they_take(model):
    with pytest.raises(TypeError, match=r"config is array; it takes the dict of a config\.json"):
        model(mx.zeros((2, 2)), mx.float32)
    with pytest.raises(TypeError, match="weights are Dtype; they take a dict of arrays by their names"):
        model(TINY_LLAMA, mx.float32)
