"""Calls of whole models with another config, other weights or other tokens; the suites of Llama and Qwen3 and of loading share them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from inferspec.conformance.calls import Call
from inferspec.conformance.inputs.decoder import head_dim, linears
from inferspec.spec.numerics import f64
from inferspec.spec.transformer import HEAD_NORMS


def one_tensor_changes(call: Call, which: float) -> Call:
    """The same model with one of its tensors, any of them, replaced: by its rows in reverse order, or its negative."""
    weights = dict(call.arguments["weights"])
    name = sorted(weights)[int(which * len(weights))]
    tensor = weights[name]
    other = tensor[::-1].copy() if tensor.ndim > 1 else -tensor
    return call.having(weights={**weights, name: other})


def without(call: Call, which: float, ending: str | tuple[str, ...] = "") -> tuple[Call, str]:
    """The call with a tensor missing, and its name, which ends so."""
    weights = dict(call.arguments["weights"])
    # A layer without scales is a dense one, whose weight then is misshaped.
    name = _one_of([name for name in weights if not name.endswith(".scales") and name.endswith(ending)], which)
    del weights[name]
    return call.having(weights=weights), name


def without_a_layer(call: Call, which: float) -> Call:
    """The call without any tensor of one of its layers: with the last one a model of fewer layers is left."""
    count = call.arguments["config"]["num_hidden_layers"]
    gone = f"model.layers.{count - 1 - int(which * count)}."
    weights = {name: x for name, x in call.arguments["weights"].items() if not name.startswith(gone)}
    return call.having(weights=weights)


def misshaped(call: Call, which: float, way: str, ending: str | tuple[str, ...] = "") -> tuple[Call, str]:
    """The call with a tensor that has a row more, a row less, one row alone, a column more, or its axes exchanged, and the
    tensor's name, which ends so."""
    weights = dict(call.arguments["weights"])
    name = _one_of([name for name in weights if name.endswith(ending)], which)
    tensor = weights[name]
    if way == "transposed" and tensor.ndim == 2 and tensor.shape[0] != tensor.shape[1]:
        other = np.ascontiguousarray(tensor.T)
    elif way == "shorter" and len(tensor) > 1:
        other = tensor[:-1].copy()
    elif way == "single" and len(tensor) > 1:
        other = tensor[:1].copy()
    elif way == "wider" and tensor.ndim == 2:
        other = np.concatenate([tensor, tensor[:, :1]], axis=1)
    else:
        other = np.concatenate([tensor, tensor[:1]])
    return call.having(weights={**weights, name: other}), name


def additional(config: Mapping[str, Any], head_norms: bool) -> dict[str, tuple[int, ...]]:
    """Tensors that the config has no place for, with the shapes that they would have: what a checkpoint of a relative
    has (biases of Qwen2, head norms of Qwen3), of more layers, packed in part or in 8 bits, and names that nobody has."""
    hidden, inner, dim = config["hidden_size"], config["intermediate_size"], head_dim(config)
    first, past = "model.layers.0", f"model.layers.{config['num_hidden_layers']}"
    found: dict[str, tuple[int, ...]] = {
        f"{past}.mlp.up_proj.weight": (inner, hidden),
        f"{past}.input_layernorm.weight": (hidden,),
        f"{first}.self_attn.o_norm.weight": (hidden,),
        f"{first}.mlp.gate_projection.weight": (inner, hidden),
        f"{first}.self_attn.k_proj.k_scale": (1,),
        f"{first}.mlp.up_proj.weight_scale": (inner, 1),
        "model.embed_positions.weight": (config.get("max_position_embeddings", 3), hidden),
    }
    for name, (outputs, _) in linears(config).items():
        biased = config.get("attention_bias" if ".self_attn." in name else "mlp_bias")
        if name.startswith(f"{first}.") and not biased:
            found[f"{name}.bias"] = (outputs,)
    if not head_norms:
        found |= {f"{first}.{name}.weight": (dim,) for name in HEAD_NORMS}
    if not config["tie_word_embeddings"] and "quantization" not in config:
        found |= {f"lm_head.{part}": (config["vocab_size"], 1) for part in ("scales", "biases")}
    return found


def with_additional(call: Call, which: float, ending: str | tuple[str, ...] = "") -> tuple[Call, str]:
    """The call with a tensor too many, and its name, which ends so."""
    weights = call.arguments["weights"]
    shapes = additional(call.arguments["config"], f"model.layers.0.{HEAD_NORMS[0]}.weight" in weights)
    name = _one_of([name for name in shapes if name.endswith(ending)], which)
    extra = np.ones(shapes[name]).astype(weights["model.norm.weight"].dtype)
    return call.having(weights={**weights, name: extra}), name


SCALED_ROPE: Mapping[str, Mapping[str, Any]] = {
    "linear": {"factor": 2.0},
    "dynamic": {"factor": 2.0},
    "llama3": {
        "factor": 64.0,
        "low_freq_factor": 1.0,
        "high_freq_factor": 4.0,
        "original_max_position_embeddings": 8,
    },
    "yarn": {"factor": 64.0, "original_max_position_embeddings": 8},
    "longrope": {"factor": 64.0, "original_max_position_embeddings": 8},
}
"""Kinds of RoPE that turn otherwise than the default from the first tokens on (dynamic: past 4 positions)."""


def scaled_otherwise(kind: str, config: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Fields of a kind of RoPE that is no default's, and what a config says of positions beside it."""
    fields = dict(SCALED_ROPE.get(kind, {"factor": 8.0}))
    if kind == "longrope":
        pairs = head_dim(config) // 2
        fields |= {"short_factor": [4.0] * pairs, "long_factor": [8.0] * pairs}
    return fields, {"max_position_embeddings": 4} if kind == "dynamic" else {}


def with_scaled_rope(call: Call, key: str, kind: str) -> Call:
    """The call with a `rope_scaling` of that kind, under one of the names that it may have."""
    fields, positions = scaled_otherwise(kind, call.arguments["config"])
    return with_config(call, rope_scaling={key: kind, **fields}, **positions)


def with_scaled_rope_parameters(call: Call, kind: str) -> Call:
    """The call with a kind of RoPE beside its base, as transformers 5 writes it."""
    said = call.arguments["config"]["rope_parameters"]
    fields, positions = scaled_otherwise(kind, call.arguments["config"])
    return with_config(call, rope_parameters={**said, "rope_type": kind, **fields}, **positions)


def with_rope_factors(call: Call, many: str = "") -> Call:
    """The call with what divides each frequency of its RoPE, as llama.cpp stores the scaling of a Llama 3.1; or with as many
    factors as are too few or too many."""
    pairs = head_dim(call.arguments["config"]) // 2
    counts = {"one more": pairs + 1, "one": 1, "one fewer": pairs - 1, "twice as many": 2 * pairs}
    factors = np.full(counts.get(many, pairs), 8.0, np.float32)
    return call.having(weights={**call.arguments["weights"], "rope_freqs.weight": factors})


def of_six_tokens(call: Call) -> Call:
    """The call with six tokens of one row: the first position is the same in any RoPE."""
    return call.having(tokens=(tuple(t % call.arguments["config"]["vocab_size"] for t in (3, 1, 4, 2, 5, 9)),))


FAR_PAST_FLOAT16, SQUARES_PAST_FLOAT16 = 2.0**20, 2.0**12
"""How many times as large numbers of size one are so: what float16 cannot hold itself, and what it cannot square."""


def with_loud(call: Call, part: str, times: float) -> Call:
    """The call on a model whose weights of that name are so many times as large: the residual stream by its embedding or by its
    up projections, the heads' queries and the gates by their own."""
    weights = call.arguments["weights"]
    loud = {name: x * x.dtype.type(times) for name, x in weights.items() if name.endswith(f"{part}.weight")}
    return call.having(weights={**weights, **loud})


def with_all_that_is_said(call: Call) -> Call:
    """The call with all that a `config.json` of the hub says besides: what is not there is null, what is off has a value
    still, what is the default may be absent, and a base that is whole has no fraction."""
    config = call.arguments["config"]
    said: dict[str, Any] = {
        "architectures": ["AnyForCausalLM"],
        "attention_dropout": 0.0,
        "bos_token_id": 1,
        "eos_token_id": 2 if (call.seed or 0) % 2 else [2, 0],
        "initializer_range": 0.02,
        "rope_scaling": None,
        "transformers_version": "4.51.0",
        "use_cache": True,
    }
    if config["model_type"] == "llama":
        said |= {"pretraining_tp": 1}
    else:
        said |= {"attention_bias": False, "max_window_layers": 0, "sliding_window": 2, "use_sliding_window": False}
        said |= {"layer_types": ["full_attention"] * config["num_hidden_layers"]} if (call.seed or 0) % 3 else {}
    if "rope_parameters" in config:
        del said["rope_scaling"]
    said |= {name: None for name in ("head_dim", "num_key_value_heads") if name not in config}
    said |= {"torch_dtype": call.features["dtypes"]}
    said |= {"quantization_config": None} if "quantization" not in config else {}
    absent = {name for name in ("attention_bias", "mlp_bias") if not config.get(name)}
    absent |= {"hidden_act"} if (call.seed or 0) % 2 else set()
    whole = with_base(call, _without_fraction(_said_of_rope(call)["rope_theta"])).arguments["config"]
    return call.having(config={**{name: x for name, x in whole.items() if name not in absent}, **said})


def with_attention_bias(call: Call) -> Call:
    """The call on a model whose projections of attention have biases."""
    weights, random = call.arguments["weights"], np.random.default_rng(call.seed)
    biases = {
        f"{name}.bias": random.normal(scale=0.5, size=outputs).astype(weights["model.norm.weight"].dtype)
        for name, (outputs, _) in linears(call.arguments["config"]).items()
        if ".self_attn." in name
    }
    return with_config(call, attention_bias=True).having(weights={**weights, **biases})


def with_window(call: Call, window: int, first: int, typed: bool) -> Call:
    """The call on a model whose layers from `first` on see a sliding window alone; typed: as layer_types says, of which the
    kinds are exchanged."""
    count = call.arguments["config"]["num_hidden_layers"]
    said = {"use_sliding_window": True, "sliding_window": window, "max_window_layers": first}
    kinds = [("sliding_attention", "full_attention")[layer >= first] for layer in range(count)]
    return with_config(call, **said, **({"layer_types": kinds} if typed else {}))


def _without_fraction(number: float) -> float:
    return int(number) if float(number).is_integer() else number


DEFAULT_ROPE: Sequence[Mapping[str, Any]] = (
    {"rope_scaling": {"rope_type": "default"}},
    {"rope_scaling": {"type": "default"}},
    {"rope_scaling": {"type": "default", "rope_type": "default"}},
    {"rope_scaling": {}},
    {"rope_parameters": {"rope_type": "default"}},
)
"""What a config with a rope_theta may say besides of an unscaled RoPE."""

BESIDE_BFLOAT16 = 7.0
"""A base whose root is halfway between two numbers of bfloat16: at position 320 that is a third of a radian."""

UNSCALED_GGUF: Sequence[Mapping[str, Any]] = (
    {"rope_scaling": {"type": "none", "factor": 8.0}},
    {"rope_scaling": {"type": "none"}},
    {"rope_scaling": {"type": "none"}, "rope_scale_linear": 8.0},
    {"rope_scaling": {"factor": 1.0}},
)
"""What a GGUF file may say of a RoPE that is not scaled; llama.cpp scales none of type "none", whatever its factor."""

READ_NORMALISED = ("q_proj", "k_proj", "v_proj", "gate_proj", "up_proj")
"""Projections of what a norm of a layer gives."""


def with_small_projections(call: Call) -> Call:
    """The call with what reads a normalised stream 2^13 times as small, and with the norms' factors as much larger: scales
    of blocks and float16 numbers are subnormal then, and the logits what they were but for their roundings."""
    weights = dict(call.arguments["weights"])
    for name, x in weights.items():
        module, _, part = name.rpartition(".")
        if name.endswith("layernorm.weight"):
            weights[name] = np.asarray(x * np.float32(2.0**13))
        elif module.endswith(READ_NORMALISED) and x.dtype != np.uint32 and part in ("weight", "scales"):
            weights[name] = np.asarray(x * x.dtype.type(2.0**-13))
            if part == "scales":
                weights[f"{module}.biases"] = _biases_of(weights[name], x, weights[f"{module}.biases"])
    return call.having(weights=weights)


def _biases_of(scales: np.ndarray, before: np.ndarray, biases: np.ndarray) -> np.ndarray:
    """Biases of scales that were others: those of types that store none follow from the scale as they did."""
    for zero in (8, 128):
        if np.array_equal(f64(biases), -zero * f64(before)):
            return np.asarray(scales * scales.dtype.type(-zero))
    return np.asarray(biases * biases.dtype.type(2.0**-13))


def with_another_head(call: Call) -> Call:
    """The call on a tied model whose weights have a dense head besides: the embedding's rows in another order."""
    weights = call.arguments["weights"]
    head = np.roll(weights["model.embed_tokens.weight"], 1, axis=0)
    return call.having(weights={**weights, "lm_head.weight": head})


def as_mlx_lm_writes(call: Call) -> Call:
    """The call with the entry of a quantised model as mlx-lm writes it: with its mode, and twice; where layers are packed in
    ways of their own, each has an entry with all of that."""
    entry = {**call.arguments["config"]["quantization"], "mode": "affine"}
    if own := {name: said for name, said in entry.items() if isinstance(said, dict)}:
        usual = {name: said for name, said in entry.items() if name not in own and said is not False}
        packed = [name.removesuffix(".scales") for name in call.arguments["weights"] if name.endswith(".scales")]
        entry |= {name: {**usual, **own.get(name, {})} for name in packed}
    return with_config(call, quantization=entry, quantization_config=entry)


def as_older_mlx_lm_writes(call: Call) -> Call:
    """The call with the entry of a quantised model as mlx-lm wrote it before 0.26.3: with one for every module, true where it
    is packed as the model is, and false where it is not packed, as norms and RoPE are not."""
    config, weights = call.arguments["config"], call.arguments["weights"]
    names = {name.removesuffix(".weight") for name in weights if name.endswith(".weight")}
    names |= {f"model.layers.{layer}.self_attn.rope" for layer in range(config["num_hidden_layers"])}
    entry = {name: f"{name}.scales" in weights for name in sorted(names)} | config["quantization"]
    return with_config(call, quantization=entry, quantization_config=entry)


def with_another_base_and_eps(call: Call) -> Call:
    """The call with a base of RoPE that is sixteen times as large, and an eps that shows in every norm."""
    return with_config(with_base(call, 16 * _said_of_rope(call)["rope_theta"]), rms_norm_eps=0.5)


def with_the_base_of(call: Call, other: Call) -> Call:
    """The call with another one's base of RoPE."""
    return with_base(call, _said_of_rope(other)["rope_theta"])


def with_base(call: Call, base: float) -> Call:
    """The call with that base of RoPE, said where it was."""
    if "rope_parameters" not in call.arguments["config"]:
        return with_config(call, rope_theta=base)
    return with_config(call, rope_parameters={**_said_of_rope(call), "rope_theta": base})


def with_its_base_twice(call: Call) -> Call:
    """The call with the base of RoPE in both places."""
    said = _said_of_rope(call)
    return with_config(call, rope_theta=said["rope_theta"], rope_parameters={"rope_type": "default", **said})


def with_the_largest_score_last(call: Call) -> Call:
    """A call of close scores in which every query has a score of 8192 with the last token, and of -8192 with all others."""
    weights, config = dict(call.arguments["weights"]), call.arguments["config"]
    name, dim = "model.layers.0.self_attn", config["head_dim"]
    keys = weights[f"{name}.k_proj.weight"].copy()
    # Feature 1 of a key is feature 1 of its token, +1 for the last id alone; of queries it is 1 for all tokens.
    keys[1::dim] = np.roll(keys[1::dim], 1, axis=-1)
    embedding = weights["model.embed_tokens.weight"].copy()
    embedding[:, 1] = -1.0
    embedding[-1, 1] = 1.0
    weights |= {f"{name}.k_proj.weight": keys, "model.embed_tokens.weight": embedding}
    gained = "norm" if f"{name}.q_norm.weight" in weights else "proj"
    for part, times in ((f"{name}.q_{gained}.weight", 4), (f"{name}.k_{gained}.weight", 2)):
        louder = weights[part].copy()
        louder[1::dim] *= louder.dtype.type(times)
        weights[part] = louder
    tokens = call.arguments["tokens"] % np.array(config["vocab_size"] - 1, call.arguments["tokens"].dtype)
    tokens[:, -1] = config["vocab_size"] - 1
    return call.having(weights=weights, tokens=tokens)


def _said_of_rope(call: Call) -> Mapping[str, Any]:
    """Where a config says the base of RoPE."""
    config: Mapping[str, Any] = call.arguments["config"]
    return {"rope_theta": config["rope_theta"]} if "rope_theta" in config else config["rope_parameters"]


def without_fields(call: Call, *names: str) -> Call:
    """The call with a config that does not say some things."""
    return call.having(config={key: x for key, x in call.arguments["config"].items() if key not in names})


def with_config(call: Call, **fields: Any) -> Call:
    """The call with some fields of its config replaced."""
    return call.having(config={**call.arguments["config"], **fields})


def unscaled(call: Call) -> Call:
    """The call whose config does not scale RoPE."""
    plain = without_fields(call, "rope_scaling")
    if said := plain.arguments["config"].get("rope_parameters"):
        kept = {key: x for key, x in said.items() if key == "rope_theta"}
        return with_config(plain, rope_parameters={**kept, "rope_type": "default"})
    return plain


def doubled(call: Call) -> Call:
    """The call with every token twice."""
    return call.having(tokens=np.repeat(call.arguments["tokens"], 2, axis=-1))


def first_chunk(call: Call) -> Call:
    """The call with its first chunk alone."""
    return call.having(chunks=call.arguments["chunks"][:1])


def with_a_token_without_a_cache(call: Call) -> Call:
    """The call with a single token behind its first chunk that is given without a cache, a sequence of its own."""
    first, *others = call.arguments["chunks"]
    return call.having(chunks=[first, first[:, :1], *others], requests=[0, None, *[0] * len(others)])


def next_ids(call: Call) -> np.ndarray:
    """The tokens with every id replaced by the one after it."""
    tokens = call.arguments["tokens"]
    return np.asarray((tokens.astype(np.int64) + 1) % call.arguments["config"]["vocab_size"]).astype(tokens.dtype)


def with_one_token(call: Call, bad: int) -> Call:
    """The call with one of its tokens replaced."""
    tokens = call.arguments["tokens"].copy()
    tokens.flat[(call.seed or 0) % tokens.size] = bad
    return call.having(tokens=tokens)


def _one_of(names: list[str], which: float) -> str:
    return sorted(names)[int(which * len(names))]
