"""Models to be loaded: tiny ones with random weights in every form, and the trained ones that have goldens."""

from __future__ import annotations

import copy
import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from inferspec.conformance.calls import Call
from inferspec.conformance.checkpoints import blocks, gguf, safetensors
from inferspec.conformance.envelope import OutsideEnvelope
from inferspec.conformance.inputs import decoder
from inferspec.conformance.inputs.rope_scaling import DEFAULT, TYPES, UNSCALED, rope_factors, scaled_in_gguf
from inferspec.conformance.properties.scaled_rope import pointed
from inferspec.conformance.strategies import Pick, calls
from inferspec.golden import models
from inferspec.golden.models import NotInstalled
from inferspec.spec.loading import ROPE_FACTORS
from inferspec.spec.numerics import f64, is_float, round_to
from inferspec.spec.rope_scaling import PLACES

LOAD = "load"
KINDS = {"llama": decoder.LLAMA, "qwen3": decoder.QWEN3}

_PLAIN = {
    "model_type": "qwen3",
    "hidden_size": 12,
    "intermediate_size": 10,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "num_key_value_heads": 1,
    "head_dim": 4,
    "vocab_size": 7,
    "rms_norm_eps": 1e-5,
    "rope_theta": 500.0,
    "max_position_embeddings": 64,
    "tie_word_embeddings": True,
    "hidden_act": "silu",
}


def _plain_weights(config: Mapping[str, Any]) -> dict[str, np.ndarray]:
    random = np.random.default_rng(0)
    shapes: dict[str, tuple[int, ...]] = {}
    shapes |= {f"{name}.weight": shape for name, shape in decoder.linears(config).items()}
    shapes |= {f"{name}.weight": (size,) for name, size in decoder.norms(config, KINDS[config["model_type"]]).items()}
    return {name: random.normal(size=shape).astype(np.float32) for name, shape in shapes.items()}


SCALED_DIMS, SCALED_LENGTHS = (16, 8, 32), (24, 17, 33)
"""Head dims and prompts of models whose RoPE is scaled: pairs enough, and positions far enough, for each branch to show."""

LOST = (1, 64, 3, 16, 700, 5000, 2**40)
"""Bytes that a file which is cut short lacks; with the last, it is empty."""

EXAMPLES = {
    LOAD: Call(LOAD, {"config": _PLAIN, "weights": _plain_weights(_PLAIN), "form": "folder", "tokens": ((1, 2, 6),)})
}


def _tokens(pick: Pick, config: Mapping[str, Any], batch: int, length: int) -> tuple[tuple[int, ...], ...]:
    return tuple(tuple(row) for row in pick.random.integers(0, config["vocab_size"], (batch, length)).tolist())


def _call(
    pick: Pick,
    config: dict[str, Any],
    weights: dict[str, np.ndarray],
    form: str,
    habits: Sequence[str],
    lengths: Sequence[int] = (5, 1, 3, 7),
) -> Call:
    tokens = _tokens(pick, config, pick.one_of(1, 2), pick.one_of(*lengths))
    written = tuple(habit for habit in habits if pick.random.random() < 0.5)
    return pick.call(LOAD, config=config, weights=weights, form=form, tokens=tokens, written=written)


@calls
def folder_calls(
    pick: Pick,
    layers: Sequence[int] = (2, 1, 3),
    habits: Sequence[str] = ("out of order", "no metadata", "format of MLX"),
    biased: bool = False,
    spare: bool = False,
    absent: bool = False,
    older: bool = False,
    scaled: bool = False,
) -> Call:
    """A folder: one file or shards, dense or quantised. habits: what its files may have otherwise; biased: it may have
    biases; spare: the embedding a second time, as the head that it is; absent: the config does not say a head's size;
    older: every layer has the frequencies of its RoPE; scaled: its RoPE is, whether that is claimed or not, by numbers that
    may all have a point."""
    form, inner = pick("forms"), copy.copy(pick)
    inner.envelope = {key: value for key, value in pick.envelope.items() if biased or key != "biases"}
    if absent:
        inner.envelope["head_dims"] = ("absent",)
    inner.envelope["rope_types"] = TYPES if scaled else UNSCALED
    dims, lengths = (SCALED_DIMS, SCALED_LENGTHS) if scaled else ((), (5, 1, 3, 7))
    config, weights = decoder.model(inner, KINDS[pick("models")], layers, small=scaled, dims=dims)
    if scaled and pick.seed % 3 == 0:
        config = _with_points(config)
    if not biased:
        pick.features["biases"] = "none"
    if absent:
        # No choice of the envelope: it is asked of every subject.
        del pick.features["head_dims"]
    if spare:
        weights["lm_head.weight"] = weights["model.embed_tokens.weight"]
    for layer in range(config["num_hidden_layers"] if older else 0):
        # Theirs would be another model.
        frequencies = pick.random.uniform(0, 1, decoder.head_dim(config) // 2).astype(np.float32)
        weights[f"model.layers.{layer}.self_attn.rotary_emb.inv_freq"] = frequencies
    return _call(pick, config, _shuffled(pick, weights), form, habits, lengths)


def _with_points(config: dict[str, Any]) -> dict[str, Any]:
    """The config whose RoPE has no number without a point."""
    return {**config, **{place: pointed(config[place]) for place in PLACES if config.get(place)}}


@calls
def gguf_calls(
    pick: Pick,
    layers: Sequence[int] = (2, 1, 3),
    habits: Sequence[str] = ("aligned to 128",),
    biased: bool = False,
    scaled: Sequence[str] = (),
) -> Call:
    """A GGUF file: every matrix of one type, or a mixture as llama.cpp makes it. biased: it may have biases; scaled: the ways
    in which its RoPE is, whether they are claimed or not."""
    form, types, kind = pick("forms"), pick("gguf_types"), pick("models")
    # Drawn in 32s, so that every row is of whole blocks.
    inner = copy.copy(pick)
    inner.envelope = {**pick.envelope, "packing": ("4-bit",), "group_sizes": (32,), "dtypes": ("float32",)}
    if not biased:
        del inner.envelope["biases"]
    if kind == "llama" and types in ("F32", "F16") and pick.one_of(False, True):
        # Without attention.key_length, which then is what the heads share out.
        inner.envelope["head_dims"] = ("absent",)
    inner.features, inner.envelope["rope_types"] = {}, UNSCALED
    config, drawn = decoder.model(inner, KINDS[kind], layers, dims=SCALED_DIMS if scaled else ())
    del config["quantization"]
    if "few keys" in habits and pick.one_of(False, True):
        config.pop("rope_parameters", None)
        config["rope_theta"] = gguf.USUAL_BASE
    for key in ("heads", "rope", "tied", *(("biases",) if biased else ())):
        pick.features[key] = inner.features[key]
    weights: dict[str, np.ndarray] = {}
    pick.features["gguf_rope"] = DEFAULT
    if scaled:
        config, weights = _scaled(pick, config, scaled)
    for name, x in drawn.items():
        if x.ndim == 1:
            weights[name] = x.astype(np.float32)
        elif name.endswith(".weight"):
            weights |= _matrix(name.removesuffix(".weight"), drawn, types)
    config |= _packing(weights)
    lengths = SCALED_LENGTHS if scaled else (5, 1, 3, 7)
    return _call(pick, config, _shuffled(pick, weights), form, habits, lengths)


def _matrix(module: str, drawn: Mapping[str, np.ndarray], types: str) -> dict[str, np.ndarray]:
    """The parts of a matrix as blocks of its GGUF type hold it."""
    x, scales, biases = (drawn.get(f"{module}.{part}") for part in ("weight", "scales", "biases"))
    assert x is not None
    values = f64(x) if scales is None or biases is None else blocks.dequantised(x, scales, biases, 4)
    matrix = blocks.packed(values, _type(types, module) if types == "F32" or values.shape[-1] % 32 == 0 else "F16")
    return {f"{module}.{part}": x for part, x in matrix.items()}


def _packing(weights: Mapping[str, np.ndarray]) -> dict[str, Any]:
    """What a config says of matrices that are packed: the fewest bits, and which have others."""
    packed = [name.removesuffix(".scales") for name in weights if name.endswith(".scales")]
    if not packed:
        return {}
    bits = {name: weights[f"{name}.weight"].shape[-1] // weights[f"{name}.scales"].shape[-1] for name in packed}
    fewest = min(bits.values())
    others = {name: {"group_size": 32, "bits": n} for name, n in bits.items() if n != fewest}
    return {"quantization": {"group_size": 32, "bits": fewest, **others}}


def _scaled(pick: Pick, config: dict[str, Any], ways: Sequence[str]) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """A config of a GGUF file whose RoPE is scaled in one of these ways, and the tensor that it has for that."""
    way, dim = pick.one_of(*ways), decoder.head_dim(config)
    pick.features["gguf_rope"] = way
    if way == "factors":
        return config, {ROPE_FACTORS: rope_factors(pick, dim)}
    theta = config.get("rope_theta") or config["rope_parameters"]["rope_theta"]
    return config | scaled_in_gguf(pick, way, theta, dim), {}


def _type(types: str, module: str) -> str:
    """The GGUF type of a matrix."""
    if types != "mixed":
        return types
    # The values of a layer more exactly than those of the others, too.
    if module in ("model.embed_tokens", "lm_head", "model.layers.0.self_attn.v_proj"):
        return "Q8_0"
    return "F16" if module.endswith("down_proj") else "Q4_1"


def _shuffled(pick: Pick, weights: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """The tensors in any order, as files have them."""
    names = list(weights)
    return {names[i]: weights[names[i]] for i in pick.random.permutation(len(names))}


@calls
def damaged_calls(pick: Pick) -> Call:
    """Files that are not whole."""
    form = pick("forms")
    call = gguf_calls.build(pick) if form == "gguf" else folder_calls.build(pick)
    form = call.arguments["form"]
    fitting = {
        "folder": ("cut short", "no config", "no weights", "header", "few data"),
        "sharded": ("cut short", "no config", "no shard", "header", "few data"),
        "gguf": ("cut short", "header", "beyond"),
    }[form]
    damage = pick.one_of(*(one for one in fitting if one in pick.envelope["damages"]))
    features = {**call.features, "damages": damage}
    lost = pick.one_of(*LOST)
    return Call(call.operation, {**call.arguments, "damage": damage, "lost": lost}, features, seed=call.seed)


def in_dtype(call: Call, dtype: str) -> Call:
    """The call with its tensors in another dtype, but for packed words."""
    weights = {key: round_to(x, dtype) if is_float(x.dtype) else x for key, x in call.arguments["weights"].items()}
    return call.having(weights=weights)


def trained(name: str, dtype: str = "") -> Call:
    """A trained model from its folder, or written anew with its numbers in another dtype; without tokens yet."""
    folder = models.weights_of(name)
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    weights = safetensors.read(folder / "model.safetensors")
    if dtype:
        config["dtype"] = dtype
        weights = {key: x.astype(dtype) if is_float(x.dtype) else x for key, x in weights.items()}
    features = {"trained": name, "dtypes": dtype or "bfloat16", "forms": "folder", **_kind(config)}
    arguments = {"config": config, "weights": weights, "form": "folder", "tokens": (), "stored": name}
    return Call(LOAD, {**arguments, "rewritten": bool(dtype)}, features)


def _kind(config: Mapping[str, Any]) -> dict[str, Any]:
    """What a config says of what envelopes speak of. A packed one has matrices of several kinds."""
    packed = config.get("quantization")
    return {
        "models": config["model_type"],
        "packing": "mixed" if packed else "dense",
        **({"group_sizes": packed["group_size"]} if packed else {}),
        "rope": "rope_parameters" if "rope_parameters" in config else "rope_theta",
        "tied": config["tie_word_embeddings"],
        "heads": (config["num_attention_heads"], config["num_key_value_heads"]),
    }


def packaged(name: str) -> Call:
    """A trained model that a package brings, as a GGUF file; OutsideEnvelope when it is not installed."""
    try:
        path = models.weights_of(name)
    except NotInstalled as missing:
        raise OutsideEnvelope(str(missing)) from missing
    config, weights = gguf.read(path)
    features = {"packaged": name, "forms": "gguf", "models": config["model_type"]}
    arguments = {"config": config, "weights": weights, "form": "gguf", "tokens": (), "stored": name}
    return Call(LOAD, arguments, features)


FOLDERS = ["folder", "sharded"]
"""Forms that are folders: with one file of tensors, or with several and an index."""

PACKED = ["4-bit", "8-bit", "2-bit"]
"""Packings of quantised models."""

ORDINARY = {LOAD: folder_calls}
"""The widest calls of each operation."""

_BIASES = "attention", "mlp", "both"
_choices = {"rope": ("rope_parameters",), "tied": (True,), "biases": _BIASES, "packing": decoder.OTHER_BITS}
OPTIONAL = {LOAD: decoder.optional(folder_calls(forms=FOLDERS, biased=True), **_choices)}
"""Choices that may be refused, by their key, each with what makes a call of an envelope that asks for it and for nothing else
that is rare."""
