"""Goldens of Llama, and the decoder of PyTorch's own functions in float64 that Qwen3's are made with too."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from typing import Any
from unittest import mock

import torch
from torch.nn import functional as F

from inferspec.spec import llama as spec
from inferspec.tools.recipes import Case, Draw

Config = Mapping[str, Any]
Weights = Mapping[str, torch.Tensor]


def logits(config: Config, weights: Weights, tokens: torch.Tensor) -> torch.Tensor:
    """A whole sequence at once: B×L×V."""
    dim = config.get("head_dim", config["hidden_size"] // config["num_attention_heads"])
    eps, width = config["rms_norm_eps"], (config["hidden_size"],)

    def layer(x: torch.Tensor, name: str) -> torch.Tensor:
        return F.linear(x, unpacked(config, weights, name), weights.get(f"{name}.bias"))

    def heads(x: torch.Tensor, name: str, place: str) -> torch.Tensor:
        x = layer(x, f"{name}.{place}_proj").unflatten(-1, (-1, dim)).transpose(1, 2)
        norm = weights.get(f"{name}.{place}_norm.weight")
        return x if norm is None else F.rms_norm(x, (dim,), norm, eps)

    x = F.embedding(tokens, unpacked(config, weights, "model.embed_tokens"))
    for number in range(config["num_hidden_layers"]):
        name = f"model.layers.{number}"
        normed = F.rms_norm(x, width, weights[f"{name}.input_layernorm.weight"], eps)
        query, key, value = (heads(normed, f"{name}.self_attn", place) for place in "qkv")
        attended = F.scaled_dot_product_attention(
            turned(query, config), turned(key, config), value, is_causal=True, enable_gqa=True
        )
        x = x + layer(attended.transpose(1, 2).flatten(-2), f"{name}.self_attn.o_proj")
        normed = F.rms_norm(x, width, weights[f"{name}.post_attention_layernorm.weight"], eps)
        gated = F.silu(layer(normed, f"{name}.mlp.gate_proj")) * layer(normed, f"{name}.mlp.up_proj")
        x = x + layer(gated, f"{name}.mlp.down_proj")
    x = F.rms_norm(x, width, weights["model.norm.weight"], eps)
    return layer(x, "model.embed_tokens" if config["tie_word_embeddings"] else "lm_head")


def turned(x: torch.Tensor, config: Config) -> torch.Tensor:
    """RoPE of B×H×L×D: each pair of features is a complex number, which is multiplied by one of size 1."""
    length, dim = x.shape[-2:]
    theta = config["rope_theta"] if "rope_theta" in config else config["rope_parameters"]["rope_theta"]
    said = config.get("rope_scaling") or config.get("rope_parameters") or {"rope_type": "default"}
    if said["rope_type"] == "default":
        frequencies, factor = theta ** (-torch.arange(0, dim, 2, dtype=torch.float64) / dim), 1.0
    else:
        frequencies, factor = of_transformers(config, said["rope_type"])
    angles = torch.outer(torch.arange(length, dtype=torch.float64), frequencies)
    pairs = torch.complex(*x.chunk(2, dim=-1)) * torch.polar(torch.full_like(angles, factor), angles)
    return torch.cat([pairs.real, pairs.imag], dim=-1)


def of_transformers(config: Config, rope_type: str) -> tuple[torch.Tensor, float]:
    """The frequencies of a scaled RoPE and its attention factor, by the function of transformers: in float64, where that asks
    for float32."""
    from transformers import LlamaConfig, Qwen3Config
    from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS

    kind: Any = {"llama": LlamaConfig, "qwen3": Qwen3Config}[config["model_type"]]
    about = kind.from_dict(copy.deepcopy(dict(config)))
    with mock.patch.multiple(torch, float=torch.float64, float32=torch.float64):
        frequencies, factor = ROPE_INIT_FUNCTIONS[rope_type](about, torch.device("cpu"))
    assert frequencies.dtype == torch.float64
    return frequencies, factor


def unpacked(config: Config, weights: Weights, name: str) -> torch.Tensor:
    """The weight of a layer: as it is, or code · scale + bias, code after code from the lowest bits of each word."""
    weight, scales = weights[f"{name}.weight"], weights.get(f"{name}.scales")
    if scales is None:
        return weight
    entry = {**config["quantization"], **(config["quantization"].get(name) or {})}
    codes = torch.stack([weight >> shift & 2 ** entry["bits"] - 1 for shift in range(0, 32, entry["bits"])], dim=-1)
    grouped = codes.flatten(-2).unflatten(-1, (-1, entry["group_size"])).double()
    return (grouped * scales[..., None] + weights[f"{name}.biases"][..., None]).flatten(-2)


def logits_of_chunks(
    config: Config, weights: Weights, chunks: Sequence[torch.Tensor], requests: Sequence[int] | None
) -> torch.Tensor:
    """Each request's whole sequence at once; its logits go where its chunks stood."""
    owners = list(requests or [0] * len(chunks))
    rows = {}
    for owner in set(owners):
        whole = torch.cat([chunk for chunk, own in zip(chunks, owners, strict=True) if own == owner], dim=1)
        rows[owner] = list(logits(config, weights, whole).split(1, dim=1))
    taken = [rows[owner].pop(0) for chunk, owner in zip(chunks, owners, strict=True) for _ in range(chunk.shape[1])]
    return torch.cat(taken, dim=1)


SCALINGS: Mapping[str, Mapping[str, Any]] = {
    "default": {},
    "linear": {"factor": 2.5},
    "llama3": {
        "factor": 8.0,
        "low_freq_factor": 1.0,
        "high_freq_factor": 4.0,
        "original_max_position_embeddings": 80,
    },
    "yarn": {"factor": 4.0, "original_max_position_embeddings": 300},
}
"""Kind of RoPE -> its fields: of heads of 16 features some pairs are kept, some divided, and some between."""


def config_of(
    model_type: str, features: Mapping[str, Any], sizes: tuple[int, int, int, int], eps: float, more: Mapping[str, Any]
) -> Config:
    """sizes: hidden, inner, head dim, vocabulary; two layers, or one where RoPE is scaled. more: other fields of its scaling."""
    hidden, inner, dim, vocabulary = sizes
    queries, keys = features["heads"]
    theta = 700.0
    scaling = {"rope_type": features["rope_types"], **SCALINGS[features["rope_types"]], **more}
    rope = theta if features["rope"] == "rope_theta" else {**scaling, "rope_theta": theta}
    config: dict[str, Any] = {
        "model_type": model_type,
        "hidden_size": hidden,
        "intermediate_size": inner,
        "num_attention_heads": queries,
        "num_key_value_heads": keys,
        "vocab_size": vocabulary,
        "num_hidden_layers": 2 if scaling["rope_type"] == "default" else 1,
        "rms_norm_eps": eps,
        "max_position_embeddings": round(
            scaling.get("original_max_position_embeddings", 16) * scaling.get("factor", 4)
        ),
        "tie_word_embeddings": features["tied"],
        "hidden_act": "silu",
        features["rope"]: rope,
    }
    if features["rope"] == "rope_theta" and scaling["rope_type"] != "default":
        config["rope_scaling"] = scaling
    if features.get("head_dims") != "absent":
        config["head_dim"] = dim
    if "biases" in features:
        config["attention_bias"] = features["biases"] in ("attention", "both")
        config["mlp_bias"] = features["biases"] in ("mlp", "both")
    if features["packing"] != "dense":
        config["quantization"] = {"group_size": 32, "bits": 4, "model.embed_tokens": {"group_size": 32, "bits": 8}}
    return config


def weights_of(config: Config, draw: Draw, head_norms: bool) -> dict[str, Any]:
    """Seeded weights by name; with a quantization every layer that a group size divides is packed."""
    hidden, inner = config["hidden_size"], config["intermediate_size"]
    dim = config.get("head_dim", hidden // config["num_attention_heads"])
    queries, keys = config["num_attention_heads"] * dim, config["num_key_value_heads"] * dim
    weights = {"model.norm.weight": draw.values(hidden)}
    layers = {"model.embed_tokens": (config["vocab_size"], hidden, "")}
    if not config["tie_word_embeddings"]:
        layers["lm_head"] = (config["vocab_size"], hidden, "")
    for name in (f"model.layers.{number}" for number in range(config["num_hidden_layers"])):
        for place, shape in {
            "q": (queries, hidden),
            "k": (keys, hidden),
            "v": (keys, hidden),
            "o": (hidden, queries),
        }.items():
            layers[f"{name}.self_attn.{place}_proj"] = (*shape, "attention_bias")
        for place, shape in {"gate": (inner, hidden), "up": (inner, hidden), "down": (hidden, inner)}.items():
            layers[f"{name}.mlp.{place}_proj"] = (*shape, "mlp_bias")
        for place in ("input_layernorm", "post_attention_layernorm"):
            weights[f"{name}.{place}.weight"] = draw.values(hidden)
        for place in "qk" if head_norms else "":
            weights[f"{name}.self_attn.{place}_norm.weight"] = draw.values(dim)
    for name, (outputs, inputs, bias) in layers.items():
        if config.get(bias):
            weights[f"{name}.bias"] = draw.values(outputs)
        entry = {**config.get("quantization", {}), **config.get("quantization", {}).get(name, {})}
        if not entry or inputs % entry["group_size"]:
            weights[f"{name}.weight"] = draw.values(outputs, inputs, size=2 * inputs**-0.5)
            continue
        words, groups = inputs * entry["bits"] // 32, inputs // entry["group_size"]
        weights[f"{name}.weight"] = draw.ids(outputs, words, below=2**32, dtype="uint32")
        weights[f"{name}.scales"] = draw.values(outputs, groups, size=4 * inputs**-0.5 / 2 ** entry["bits"])
        weights[f"{name}.biases"] = draw.values(outputs, groups, size=2 * inputs**-0.5)
    return weights


def case(
    contract: Any,
    model_type: str,
    name: str,
    requirement: Any,
    seed: int,
    shape: tuple[int, ...],
    sizes: tuple[int, int, int, int],
    eps: float = 1e-5,
    cuts: Sequence[tuple[int, int]] = (),
    scaling: Mapping[str, Any] | None = None,
    **features: Any,
) -> Case:
    """shape: of the tokens. cuts: (request, length) of each chunk, for a golden of a cache. scaling: what else is said of a
    scaled RoPE."""
    usual = {"dtypes": "float32", "token_dtypes": "int32", "packing": "dense", "rope": "rope_theta", "tied": False}
    features = {**usual, **features}
    libraries = ("transformers",) if "rope_types" in features else ()

    def inputs(draw: Draw) -> dict[str, Any]:
        config = config_of(model_type, {"rope_types": "default", **features}, sizes, eps, scaling or {})
        given = {"config": config, "weights": weights_of(config, draw, head_norms=model_type == "qwen3")}
        below, dtype = config["vocab_size"], features["token_dtypes"]
        if not cuts:
            return {**given, "tokens": draw.ids(*shape, below=below, dtype=dtype)}
        chunks = [draw.ids(shape[0], length, below=below, dtype=dtype) for _, length in cuts]
        return {**given, "chunks": chunks, "requests": [owner for owner, _ in cuts]}

    compute = logits_of_chunks if cuts else logits
    return Case(name, requirement, seed, features, inputs, compute, libraries=libraries)


def _llama(name: str, requirement: Any, seed: int, **how: Any) -> Case:
    return case(spec, "llama", name, requirement, seed, **{"head_dims": "free", "biases": "none", **how})


SMALL = (20, 28, 8, 23)
"""Hidden, inner, head dim, vocabulary."""

SCALED: Mapping[str, Any] = {"sizes": (8, 12, 16, 11), "heads": (2, 1)}
CHUNKS = ((0, 9), (0, 1), (0, 5), (0, 1))
"""Of models whose RoPE is scaled: eight pairs, and positions enough to turn."""

CASES = (
    _llama("llama", spec.LLAMA_01, 701, shape=(2, 7), sizes=SMALL, heads=(4, 2)),
    _llama("llama-bfloat16", spec.LLAMA_01, 702, shape=(1, 6), sizes=SMALL, heads=(6, 2), dtypes="bfloat16"),
    _llama("llama-float16", spec.LLAMA_01, 703, shape=(1, 5), sizes=SMALL, heads=(3, 1), dtypes="float16"),
    _llama("llama-tied", spec.LLAMA_02, 704, shape=(1, 5), sizes=SMALL, heads=(3, 3), tied=True),
    _llama(
        "llama-head-dim-absent",
        spec.LLAMA_04,
        705,
        shape=(1, 6),
        sizes=(24, 28, 6, 17),
        heads=(4, 2),
        head_dims="absent",
    ),
    _llama(
        "llama-rope-parameters", spec.LLAMA_05, 706, shape=(1, 9), sizes=SMALL, heads=(2, 1), rope="rope_parameters"
    ),
    _llama("llama-large-eps", spec.LLAMA_06, 707, shape=(1, 4), sizes=SMALL, heads=(2, 2), eps=0.01),
    _llama("llama-biases", spec.LLAMA_08, 708, shape=(2, 5), sizes=SMALL, heads=(4, 2), biases="both"),
    _llama(
        "llama-packed",
        spec.LLAMA_13,
        709,
        shape=(1, 6),
        sizes=(64, 96, 16, 23),
        heads=(6, 2),
        packing="mixed",
        group_sizes=32,
        tied=True,
    ),
    _llama(
        "llama-chunks", spec.LLAMA_24, 711, shape=(2,), sizes=SMALL, heads=(4, 2), cuts=((0, 3), (0, 1), (0, 1), (0, 2))
    ),
    _llama(
        "llama-requests",
        spec.LLAMA_28,
        712,
        shape=(1,),
        sizes=SMALL,
        heads=(3, 1),
        cuts=((0, 2), (1, 3), (0, 1), (1, 1), (0, 2)),
    ),
    _llama("llama-linear", spec.LLAMA_33, 721, shape=(2, 13), **SCALED, rope_types="linear"),
    _llama("llama-llama3", spec.LLAMA_34, 722, shape=(1, 24), **SCALED, rope_types="llama3"),
    _llama("llama-yarn", spec.LLAMA_35, 723, shape=(1, 20), **SCALED, rope_types="yarn"),
    _llama(
        "llama-yarn-attention-factor",
        spec.LLAMA_36,
        724,
        shape=(1, 11),
        **SCALED,
        rope_types="yarn",
        scaling={"attention_factor": 0.8},
    ),
    _llama(
        "llama-yarn-mscale",
        spec.LLAMA_36,
        725,
        shape=(1, 10),
        **SCALED,
        rope_types="yarn",
        scaling={"mscale": 2.0, "mscale_all_dim": 0.5},
    ),
    _llama(
        "llama-yarn-ends",
        spec.LLAMA_36,
        726,
        shape=(1, 15),
        **SCALED,
        rope_types="yarn",
        scaling={"truncate": False, "beta_fast": 8.0},
    ),
    _llama(
        "llama-llama3-parameters",
        spec.LLAMA_37,
        727,
        shape=(1, 16),
        **SCALED,
        rope_types="llama3",
        rope="rope_parameters",
    ),
    _llama("llama-llama3-chunks", spec.LLAMA_40, 728, shape=(2,), **SCALED, rope_types="llama3", cuts=CHUNKS),
)
