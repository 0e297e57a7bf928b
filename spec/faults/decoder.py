"""Mistakes that any decoder can have, with a cache and without, and other honest ways to compute one.

`shared` makes the fault dictionary of a model of them; Llama and Qwen3 add their own.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from types import ModuleType
from typing import Any

import numpy as np

from inferspec.spec.contract import Arguments, Change, Fault, Operation, Variant
from inferspec.spec.mistakes import (
    drifts,
    first_row_for_all,
    ignores_strides,
    leaves_unwritten,
    mutates,
    promotes,
    remembers,
)
from inferspec.spec.numerics import Precision, f64, is_float, round_to
from inferspec.spec.stochastic import Exact, Matrix
from inferspec.spec.transformer import Decoder, Incremental, Memory

MLX, MLX_LM = "https://github.com/ml-explore/mlx", "https://github.com/ml-explore/mlx-lm"
TINY_LLM = "https://github.com/skyzh/tiny-llm"
TIRED = "a tired engineer"

# the sequence of operations


def _norm_dropped(ending: str) -> Change:
    def norm(self: Decoder, x: np.ndarray, name: str, a: Arguments, m: Exact) -> np.ndarray:
        return x if name.endswith(ending) else Decoder.norm(self, x, name, a, m)

    return {"norm": norm}


def _norm_weights(replaced: Mapping[str, str]) -> Change:
    """Norms of one place use the weight of another."""

    def norm(self: Decoder, x: np.ndarray, name: str, a: Arguments, m: Exact) -> np.ndarray:
        place = name.rsplit(".", 1)[-1]
        return Decoder.norm(self, x, name.replace(place, replaced.get(place, place)), a, m)

    return {"norm": norm}


def _parallel(
    self: Decoder, x: np.ndarray, layer: int, positions: np.ndarray, memory: Memory, a: Arguments, m: Exact
) -> np.ndarray:
    name = f"model.layers.{layer}"
    attended = self.attention(self.norm(x, f"{name}.input_layernorm", a, m), layer, positions, memory, a, m)
    return x + attended + self.mlp(self.norm(x, f"{name}.post_attention_layernorm", a, m), name, a, m)


def _in_float16(
    self: Decoder, x: np.ndarray, layer: int, positions: np.ndarray, memory: Memory, a: Arguments, m: Exact
) -> np.ndarray:
    x = Decoder.block(self, x, layer, positions, memory, a, m)
    with np.errstate(over="ignore"):
        return f64(round_to(x, "float16")) if self.result_dtype(a) == "bfloat16" else x


def _scaled_embedding(self: Decoder, ids: np.ndarray, a: Arguments, m: Exact) -> np.ndarray:
    return Decoder.embed(self, ids, a, m) * math.sqrt(a.config["hidden_size"])


def _own_head(self: Decoder, a: Arguments) -> Matrix:
    matrix = Decoder.head(self, a)
    if not self.tied(a.config):
        return matrix
    value = np.random.default_rng(0).normal(scale=matrix.value.std(), size=matrix.value.shape)
    return Matrix(value, value)


def _spare_head(self: Decoder, a: Arguments) -> Matrix:
    return self.matrix("lm_head", a) if "lm_head.weight" in a.weights else Decoder.head(self, a)


def _no_spare_head(self: Decoder, a: Arguments, shapes: Mapping[str, tuple[int, ...]]) -> None:
    if unknown := sorted(set(a.weights) - set(shapes)):
        raise ValueError(f"no place for {unknown[0]}")


# heads


def _features_before_heads(self: Decoder, x: np.ndarray, heads: int) -> np.ndarray:
    return np.moveaxis(x.reshape(*x.shape[:-1], -1, heads), -1, 2)


def _merged_in_place(self: Decoder, x: np.ndarray) -> np.ndarray:
    return x.reshape(*x.shape[:2], x.shape[3], -1)


def _keys_permuted_like_queries(
    self: Decoder, x: np.ndarray, name: str, heads: int, a: Arguments, m: Exact
) -> np.ndarray:
    projected = m.stored(m.linear(x, self.matrix(name, a)))
    queries, features = self.heads(a.config)[0], projected.shape[-1]
    if name.endswith("k_proj") and features % (2 * queries) == 0:
        there = np.arange(features).reshape(queries, 2, -1).swapaxes(1, 2).ravel()
        back = np.argsort(np.arange(features).reshape(heads, 2, -1).swapaxes(1, 2).ravel())
        projected = projected[..., there[back]]
    return self.split(projected, heads)


def _head_dim_of_hidden(self: Decoder, config: Mapping[str, Any]) -> int:
    return config["hidden_size"] // config["num_attention_heads"]


# positions


def _theta_of(style: str) -> Change:
    """Only one style of the config is read; without it the base is the default."""

    def theta(self: Decoder, config: Mapping[str, Any]) -> float:
        place = config if style == "rope_theta" else config.get("rope_parameters") or {}
        return place.get("rope_theta") or 10000.0

    return {"theta": theta}


def _queries_unturned(self: Decoder, x: np.ndarray, norm: str, positions: np.ndarray, a: Arguments, m: Exact) -> Any:
    return Decoder.placed(self, x, norm, positions * 0 if norm.endswith("q_norm") else positions, a, m)


def _first_row_turned(single: bool) -> Change:
    """Only the first sequence of a batch is turned by its position: always, or where there is one token."""

    def turn(self: Decoder, x: np.ndarray, positions: np.ndarray, a: Arguments, m: Exact) -> np.ndarray:
        turned = Decoder.turn(self, x, positions, a, m)
        if not single or x.shape[3] == 1:
            turned[:, 1:] = x[:, 1:]
        return turned

    return {"turn": turn}


def _pairs_of_hidden(self: Decoder, x: np.ndarray, positions: np.ndarray, a: Arguments, m: Exact) -> np.ndarray:
    """The frequencies of a head dim of hidden_size / heads."""
    stretch = x.shape[-1] / (a.config["hidden_size"] / a.config["num_attention_heads"])
    theta = self.theta(a.config) ** stretch
    same = type("Same", (type(self),), {"theta": lambda self, config: theta})
    return Decoder.turn(same(), x, positions, a, m)


# activations and layers


def _gelu(self: Decoder, gate: np.ndarray, m: Exact) -> np.ndarray:
    return gate * 0.5 * (1 + np.tanh(math.sqrt(2 / math.pi) * (gate + 0.044715 * gate**3)))


def _gate_and_up_swapped(self: Decoder, name: str, a: Arguments) -> Matrix:
    names = {"gate_proj": "up_proj", "up_proj": "gate_proj"}
    last = name.rsplit(".", 1)[-1]
    return Decoder.matrix(self, name.replace(last, names.get(last, last)), a)


def _tensors_of_layer(chosen: int) -> Change:
    """Every block has the tensors of one layer (shapes are those of all)."""

    def array(self: Decoder, name: str, a: Arguments) -> np.ndarray:
        parts = name.split(".")
        if parts[1] == "layers":
            other = ".".join([*parts[:2], str(chosen), *parts[3:]])
            mine, theirs = a.weights[name], a.weights.get(other)
            if theirs is not None and theirs.shape == mine.shape and theirs.dtype == mine.dtype:
                return theirs
        return a.weights[name]

    return {"array": array}


def _scored_in_dtype(self: Decoder, scores: np.ndarray, a: Arguments) -> np.ndarray:
    return f64(round_to(Decoder.scored(self, scores, a), self.result_dtype(a)))


def _window(size: int) -> Change:
    def visible(self: Decoder, length: int, keys: int) -> np.ndarray:
        place = np.arange(length)[:, None] + (keys - length)
        return Decoder.visible(self, length, keys) & (np.arange(keys) > place - size)

    return {"visible": visible}


def _sees_the_next(self: Decoder, length: int, keys: int) -> np.ndarray:
    return np.arange(keys) <= np.arange(length)[:, None] + (keys - length) + 1


# packed weights


def _packed(change: str) -> Change:
    """One part of the dequantisation is wrong."""

    def matrix(self: Decoder, name: str, a: Arguments) -> Matrix:
        right = Decoder.matrix(self, name, a)
        if not right.quantised:
            return right
        group, bits = self.packing(name, a.config)
        scales, biases = (np.repeat(f64(a.weights[f"{name}.{part}"]), group, -1) for part in ("scales", "biases"))
        codes = self.codes(a.weights[f"{name}.weight"], bits)
        value = codes * {"scale sign": np.abs(scales)}.get(change, scales) + {"biases": 0.0}.get(change, biases)
        return replace(right, value=value)

    return {"matrix": matrix}


def _highest_bits_first(self: Decoder, packed: np.ndarray, bits: int) -> np.ndarray:
    shifts = np.arange(32 - bits, -1, -bits, dtype=np.uint32)
    return f64(packed[..., None] >> shifts & np.uint32(2**bits - 1)).reshape(len(packed), -1)


def _one_packing(self: Decoder, name: str, config: Mapping[str, Any]) -> tuple[int, int]:
    return config["quantization"]["group_size"], config["quantization"]["bits"]


def _embedding_packed_like_all(self: Decoder, name: str, config: Mapping[str, Any]) -> tuple[int, int]:
    if name == "model.embed_tokens":
        return _one_packing(self, name, config)
    return Decoder.packing(self, name, config)


def _head_of_codes(self: Decoder, a: Arguments) -> Matrix:
    """The tied head reads a packed embedding without its biases."""
    if not self.tied(a.config):
        return Decoder.head(self, a)
    return _packed("biases")["matrix"](self, "model.embed_tokens", a)


# arguments


def _scales_weights(self: Decoder, a: Arguments) -> Any:
    result = Decoder.respond(self, a)
    name = "model.layers.0.self_attn.q_proj.weight"
    if is_float(a.weights[name].dtype):
        a.weights[name][...] = (f64(a.weights[name]) * self.scale(a.config)).astype(a.weights[name].dtype)
    else:
        a.weights["model.norm.weight"][...] = 1
    return result


def _filled(self: Decoder, name: str, a: Arguments) -> np.ndarray:
    return a.weights[name] if name in a.weights else np.ones(self.shapes(a)[name])


def _shapes_of_those_there(self: Decoder, a: Arguments, shapes: Mapping[str, tuple[int, ...]]) -> None:
    Decoder.guard_shapes(self, a, {name: shape for name, shape in shapes.items() if name in a.weights})


def passes_over(stray: Callable[[str, Mapping[str, Any]], bool]) -> Change:
    """Some tensors that have no place are ignored."""

    def guard(self: Decoder, a: Arguments, shapes: Mapping[str, tuple[int, ...]]) -> None:
        kept = {name: x for name, x in a.weights.items() if name in shapes or not stray(name, a.config)}
        Decoder.guard_additional(self, Arguments(**{**vars(a), "weights": kept}), shapes)

    return {"guard_additional": guard}


def _rope_type_of(read: Callable[[str, str, str], str]) -> Change:
    """What is read of the kind of RoPE that the config names in a place under a key."""

    def rope_type(self: Decoder, config: Mapping[str, Any], place: str, key: str) -> str:
        return read(place, key, Decoder.rope_type(self, config, place, key))

    return {"rope_type": rope_type}


def _known_activations_alone(self: Decoder, config: Mapping[str, Any]) -> None:
    if "gelu" not in str(config.get("hidden_act")):
        Decoder.guard_activation(self, config)


def _resized(self: Decoder, name: str, a: Arguments) -> np.ndarray:
    return np.resize(a.weights[name], self.shapes(a)[name])


def _unnamed(check: str) -> Change:
    """The refusal does not say which tensor it is about."""

    def guard(self: Decoder, a: Arguments, shapes: Mapping[str, tuple[int, ...]]) -> None:
        try:
            getattr(Decoder, check)(self, a, shapes)
        except ValueError as error:
            raise ValueError("the weights do not fit the model") from error

    return {check: guard}


def _ids_read(read: str) -> Change:
    """Ids outside the vocabulary are taken for others."""

    def embed(self: Decoder, ids: np.ndarray, a: Arguments, m: Exact) -> np.ndarray:
        size = a.config["vocab_size"]
        return Decoder.embed(self, np.clip(ids, 0, size - 1) if read == "clamped" else ids % size, a, m)

    return {"guard_tokens": lambda self, a: None, "embed": embed}


def _last_id_lost(self: Decoder, ids: np.ndarray, a: Arguments, m: Exact) -> np.ndarray:
    return Decoder.embed(self, np.minimum(ids, a.config["vocab_size"] - 2), a, m)


def _ids_of_16_bits(self: Decoder, ids: np.ndarray, a: Arguments, m: Exact) -> np.ndarray:
    return Decoder.embed(self, ids & 0xFFFF, a, m)


def _no_null(self: Decoder, config: Mapping[str, Any]) -> None:
    Decoder.guard_config(self, config)
    if nulls := [name for name in ("rope_scaling", "sliding_window") if config.get(name, 0) is None]:
        raise ValueError(f"{nulls[0]} is None")


KNOWN_FIELDS = frozenset(
    [
        "model_type",
        "hidden_size",
        "num_hidden_layers",
        "intermediate_size",
        "num_attention_heads",
        "num_key_value_heads",
        "head_dim",
        "rms_norm_eps",
        "vocab_size",
        "max_position_embeddings",
        "tie_word_embeddings",
        "hidden_act",
        "rope_theta",
        "rope_parameters",
        "rope_scaling",
        "quantization",
        "attention_bias",
        "mlp_bias",
    ]
)


def _known_fields_alone(self: Decoder, config: Mapping[str, Any]) -> None:
    Decoder.guard_config(self, config)
    if unknown := sorted(set(config) - KNOWN_FIELDS):
        raise ValueError(f"unexpected {unknown[0]}")


def _last_position(self: Decoder, a: Arguments) -> Any:
    return Operation.finish(self, self.forward(a.tokens, a, Exact())[0][:, -1:], a)


# caches


def _growth_of_the_first_row(
    self: Incremental, memory: Memory, layer: int, key: np.ndarray, value: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """What a cache holds is copied to a larger buffer, of one row."""
    before = memory[layer][0].shape[3] if layer in memory else 0
    whole = Decoder.extended(self, memory, layer, key, value)
    if before <= 256 < whole[0].shape[3]:
        memory[layer] = tuple(np.where(np.arange(x.shape[3])[:, None] < before, x[:, :1], x) for x in whole)
    return memory[layer]


def _long_rows_of_the_first(
    self: Decoder, query: np.ndarray, key: np.ndarray, value: np.ndarray, a: Arguments, m: Exact
) -> np.ndarray:
    attended = Decoder.attend(self, query, key, value, a, m)
    attended[:, :, :, 32:] = attended[:, :1, :, 32:]
    return attended


def _sixty_four_features(
    self: Decoder, query: np.ndarray, key: np.ndarray, value: np.ndarray, a: Arguments, m: Exact
) -> np.ndarray:
    """A kernel made for heads of 64 features."""
    return Decoder.attend(self, query[..., :64], key[..., :64], value, a, m)


def _extended_by(change: str) -> Change:
    """What a layer's cache holds after new tokens is wrong."""

    def extended(self: Incremental, memory: Memory, layer: int, key: np.ndarray, value: np.ndarray) -> Any:
        if change == "one for all layers":
            return Decoder.extended(self, memory, 0, key, value)
        if change == "one for all rows":
            key, value = Decoder.extended(self, memory, layer, key, value)
            return tuple(np.broadcast_to(x[:, :1], x.shape) for x in (key, value))
        whole = Decoder.extended(self, memory, layer, key, value)
        if change == "last chunk":
            memory[layer] = key, value
        elif change == "first 256":
            memory[layer] = tuple(x[:, :, :, :256] for x in whole)
        elif change == "last 256":
            memory[layer] = tuple(x[:, :, :, -256:] for x in whole)
        elif change == "none":
            del memory[layer]
            return key, value
        return whole

    return {"extended": extended}


def _allocated_positions(self: Incremental, memory: Memory, length: int) -> np.ndarray:
    """The offset is the length of a buffer that grows in steps of 256."""
    offset = memory.get("offset", 0)
    return f64((offset if offset <= 256 else -(-offset // 256) * 256) + np.arange(length))


def _one_more(self: Incremental, memory: Memory, length: int) -> np.ndarray:
    offset = memory.get("offset", 0)
    return f64(offset + bool(offset) + np.arange(length))


def _counts_calls(self: Incremental, memory: Memory, length: int) -> None:
    memory["offset"] = memory["offset"] + 1 if "offset" in memory else length


def _top_left(self: Incremental, length: int, keys: int) -> np.ndarray:
    visible = np.arange(keys) <= np.arange(length)[:, None]
    return visible if length > 1 else np.ones_like(visible)


def _unmasked_after_others(self: Incremental, length: int, keys: int) -> np.ndarray:
    return Decoder.visible(self, length, keys) | (length < keys)


def _offset_of_the_model(self: Incremental, a: Arguments) -> Any:
    """Every request has its own keys, and all count their positions together."""
    memories: dict[Any, Memory] = {}
    count, logits = 0, []
    for chunk, owner in zip(a.chunks, self.owners(a), strict=True):
        memory = memories.setdefault(owner, {})
        memory["offset"] = count
        logits.append(self.forward(chunk, a, Exact(), memory)[0])
        count += chunk.shape[1]
    return self.finish(np.concatenate(logits, axis=1), a)


def _single_token_without_biases(
    self: Incremental, tokens: np.ndarray, a: Arguments, m: Exact, memory: Memory | None = None
) -> np.ndarray:
    """The kernel for one row leaves out the biases of groups."""
    single = type("Single", (type(self),), {**_packed("biases"), "forward": Decoder.forward})
    return Decoder.forward(single() if tokens.shape[1] == 1 else self, tokens, a, m, memory)


def shared(spec: ModuleType, prefix: str, own: Sequence[Fault]) -> tuple[Fault, ...]:
    """The faults of a model: those that any decoder can have, and its own in their place (requirement 8)."""
    found: list[Fault] = []

    def fault(number: int, name: str, text: str, change: Change, source: str = TIRED) -> None:
        requirement = getattr(spec, f"{prefix.upper()}_{number:02d}")
        found.append(Fault(f"{prefix}-{name}", text, requirement, change, source))

    fault(1, "final-norm-dropped", "the last norm is left out", _norm_dropped("model.norm"))
    fault(1, "nulls-refused", "a config with rope_scaling: null is refused", {"guard_config": _no_null})
    fault(
        1,
        "other-fields-refused",
        "a config that says more than the sizes is refused",
        {"guard_config": _known_fields_alone},
    )
    fault(1, "window-of-256", "a token sees the last 256 alone", _window(256), "PROPERTIES CM5")
    fault(1, "input-norm-dropped", "attention reads the stream without its norm", _norm_dropped(".input_layernorm"))
    fault(
        1, "mlp-norm-dropped", "the MLP reads the stream without its norm", _norm_dropped(".post_attention_layernorm")
    )
    fault(
        1,
        "norms-swapped",
        "the norms of attention and MLP are exchanged",
        _norm_weights({"input_layernorm": "post_attention_layernorm", "post_attention_layernorm": "input_layernorm"}),
    )
    fault(
        1,
        "residual-of-normed",
        "branches are added to the normed stream",
        {"added": lambda self, x, branch, normed: normed + branch},
    )
    fault(
        1,
        "stream-in-float16",
        "of bfloat16 models the residual stream is kept in float16",
        {"block": _in_float16},
    )
    fault(
        1,
        "stream-clipped",
        "the residual stream is clipped to ±65504, which is meant for float16 models alone",
        {"added": lambda self, x, branch, normed: np.clip(x + branch, -65504, 65504)},
    )
    fault(1, "parallel-blocks", "attention and MLP read the same stream, as in GPT-J", {"block": _parallel})
    fault(
        1,
        "embedding-scaled",
        "embeddings are multiplied by sqrt(hidden_size), as in Gemma",
        {"embed": _scaled_embedding},
        "the kind of mlx-lm c27c94a0",
    )
    fault(2, "tied-own-head", "a tied model has a head of its own", {"head": _own_head}, f"{MLX_LM}/commit/e92138cb")
    fault(
        2,
        "untied-head-ignored",
        "an untied model uses its embedding as head",
        {"head": lambda self, a: self.matrix("model.embed_tokens", a)},
        "https://github.com/pegainfer-project/pegainfer/pull/544",
    )
    fault(3, "spare-head-used", "a tied model uses an lm_head where the weights have one", {"head": _spare_head})
    fault(3, "spare-head-refused", "a tied model refuses weights with an lm_head", {"guard_additional": _no_spare_head})
    fault(
        4,
        "scale-of-hidden",
        "scores are multiplied by (hidden_size / heads)^-0.5",
        {"scale": lambda self, config: _head_dim_of_hidden(self, config) ** -0.5},
        "the kind of vllm-metal bbacf63",
    )
    fault(4, "scale-twice", "scores are scaled twice", {"scale": lambda self, config: 1 / self.head_dim(config)})
    fault(4, "scale-missing", "scores are not scaled", {"scale": lambda self, config: 1.0})
    fault(
        4,
        "head-dim-ignored",
        "head_dim is hidden_size / heads, whatever the config says",
        {"head_dim": _head_dim_of_hidden},
        "https://github.com/vllm-project/vllm-metal/commit/bbacf63",
    )
    fault(
        4,
        "kv-heads-modulo-four",
        "key heads are counted modulo 4",
        {"read_heads": lambda self, queries, keys: np.arange(queries) // (queries // keys) % 4},
    )
    fault(
        4, "sixty-four-features", "features of a head past 64 do not enter its scores", {"attend": _sixty_four_features}
    )
    fault(
        4,
        "kv-heads-in-turn",
        "query head h reads key head h mod H",
        {"read_heads": lambda self, queries, keys: np.arange(queries) % keys},
    )
    fault(4, "features-before-heads", "projections are split as D×heads", {"split": _features_before_heads})
    fault(4, "heads-not-moved-back", "heads are merged without moving them back", {"merged": _merged_in_place})
    fault(
        4,
        "keys-permuted-like-queries",
        "the change of RoPE layout permutes keys by the number of query heads",
        {"project": _keys_permuted_like_queries},
        "https://github.com/ggml-org/llama.cpp/issues/3018",
    )
    fault(
        5,
        "rope-parameters-ignored",
        "a base in rope_parameters is not read: it is 10,000",
        _theta_of("rope_theta"),
        "https://github.com/InternLM/lmdeploy/pull/4304",
    )
    fault(
        5,
        "rope-theta-whole",
        "rope_theta is read as a whole number",
        {"theta": lambda self, config: float(int(Decoder.theta(self, config)))},
    )
    fault(
        5,
        "rope-theta-ignored",
        "a top-level rope_theta is not read: it is 10,000",
        _theta_of("rope_parameters"),
        "https://github.com/lyogavin/airllm/pull/369",
    )
    fault(
        5,
        "rope-traditional",
        "neighbouring features are the pairs of RoPE",
        {"pairs": lambda self, dim: (np.arange(0, dim, 2), np.arange(1, dim, 2))},
        f"{TINY_LLM}/commit/1fc0752",
    )
    fault(5, "queries-unturned", "only keys are turned by position", {"placed": _queries_unturned})
    fault(
        5,
        "rope-dims-of-hidden",
        "frequencies are those of a head dim of hidden_size / heads",
        {"turn": _pairs_of_hidden},
    )
    fault(
        6,
        "eps-times-ten",
        "eps is ten times that of the config",
        {"eps": lambda self, n, config: 10 * config["rms_norm_eps"]},
    )
    fault(
        6,
        "eps-outside-root",
        "eps is added outside the root",
        {"inverse_root": lambda self, mean, eps: 1 / (np.sqrt(mean) + eps)},
    )
    fault(6, "eps-fixed", "eps is 1e-6, whatever the config says", {"eps": lambda self, name, config: 1e-6})
    fault(
        6,
        "eps-of-final-norm",
        "the last norm has an eps of 1e-6",
        {"eps": lambda self, name, config: 1e-6 if name == "model.norm" else config["rms_norm_eps"]},
    )
    fault(7, "gate-and-up-swapped", "gate and up projection are exchanged", {"matrix": _gate_and_up_swapped})
    fault(7, "gelu", "the gate goes through GELU", {"activated": _gelu})
    fault(
        7,
        "sigmoid-for-silu",
        "the gate goes through the sigmoid alone",
        {"activated": lambda self, gate, m: 1 / (1 + np.exp(-gate))},
    )
    found += own
    fault(
        9,
        "last-layer-skipped",
        "the last layer is left out",
        {"layers": lambda self, config: range(config["num_hidden_layers"] - 1)},
    )
    fault(
        9,
        "layers-reversed",
        "layers are applied from last to first",
        {"layers": lambda self, config: range(config["num_hidden_layers"])[::-1]},
    )
    fault(9, "first-layer-for-all", "every layer has the tensors of the first", _tensors_of_layer(0))
    fault(
        9,
        "layers-as-text",
        "layers are in the order of their names, 10 before 2",
        {"layers": lambda self, config: sorted(range(config["num_hidden_layers"]), key=str)},
    )
    fault(
        9,
        "one-norm-twice",
        "the MLP's norm is attention's again",
        _norm_weights({"post_attention_layernorm": "input_layernorm"}),
        f"{MLX}/commit/aa8687681",
    )
    fault(
        10,
        "scores-in-dtype",
        "scores are rounded to the dtype of the model",
        {"scored": _scored_in_dtype},
        "PROPERTIES X5",
    )
    fault(
        11,
        "no-mask",
        "every token sees all others",
        {"visible": lambda self, length, keys: np.ones((length, keys), bool)},
        f"{TINY_LLM}/commit/0e439ac",
    )
    fault(11, "sees-the-next", "every token sees the next one too", {"visible": _sees_the_next})
    fault(12, "first-row-for-all", "the first sequence serves the whole batch", first_row_for_all("tokens"))
    fault(
        12,
        "eight-sequences",
        "sequences past the eighth have no logits",
        leaves_unwritten(lambda logits: logits[:8]),
        "PROPERTIES X2",
    )
    fault(
        12,
        "first-row-turned",
        "only the first sequence of a batch is turned by position",
        _first_row_turned(single=False),
        f"the kind of {MLX}/commit/76a977ca4",
    )
    fault(13, "packed-biases-lost", "the biases of groups are left out", _packed("biases"))
    fault(
        13,
        "packed-scale-sign-lost",
        "scales are taken for positive",
        _packed("scale sign"),
        "FACTS: mlx scales can be negative",
    )
    fault(13, "packed-highest-first", "the first code is in the highest bits", {"codes": _highest_bits_first})
    fault(13, "packed-overrides-ignored", "layers' own group sizes and bits are not read", {"packing": _one_packing})
    fault(
        13,
        "packed-embedding-override-ignored",
        "the embedding's own group size and bits are not read",
        {"packing": _embedding_packed_like_all},
    )
    fault(
        13,
        "packed-head-of-codes",
        "the tied head of a packed embedding is another matrix",
        {"head": _head_of_codes},
        "https://github.com/vllm-project/vllm/issues/45543",
    )
    fault(14, "window-of-32", "a token sees the last 32 alone", _window(32), "PROPERTIES CM5")
    fault(
        14,
        "long-rows-of-the-first",
        "past 32 tokens the first row of a batch serves all",
        {"attend": _long_rows_of_the_first},
        "PROPERTIES X3",
    )
    fault(15, "token-strides", "tokens are read as if they were contiguous", ignores_strides("tokens"), "PROPERTIES X1")
    fault(15, "ids-of-16-bits", "ids are kept in 16 bits", {"embed": _ids_of_16_bits}, "PROPERTIES X8")
    fault(15, "last-id-lost", "the last id reads the row before it", {"embed": _last_id_lost})
    fault(16, "promotes", "logits come back in float32", promotes(), "PROPERTIES X4")
    fault(16, "last-position", "only the last position gets logits", {"respond": _last_position})
    fault(17, "changes-tokens", "the tokens are overwritten", mutates("tokens"), "PROPERTIES X6")
    fault(
        17,
        "changes-weights",
        "a factor is folded into the caller's own weights",
        {"respond": _scales_weights},
        "PROPERTIES X6",
    )
    fault(18, "remembers-tokens", "a result cached by shape serves other tokens", remembers("tokens"))
    fault(
        18,
        "remembers-weights",
        "tensors of the first model serve all of its shapes",
        remembers("weights"),
        "the kind of mlx 874b739f3",
    )
    fault(18, "drifts", "a buffer of an earlier call is added to", drifts())
    fault(
        19,
        "missing-filled",
        "a tensor that is missing stays what it was initialised to",
        {"guard_missing": lambda self, a, shapes: None, "guard_shapes": _shapes_of_those_there, "array": _filled},
        "PROPERTIES EM4",
    )
    fault(19, "missing-unnamed", "the error does not say which tensor is missing", _unnamed("guard_missing"))
    fault(
        20,
        "any-shape",
        "a tensor of another shape is read on or cut short",
        {"guard_shapes": lambda self, a, shapes: None, "array": _resized},
        "PROPERTIES EM4",
    )
    fault(20, "misshaped-unnamed", "the error does not say which tensor is misshaped", _unnamed("guard_shapes"))
    fault(
        21,
        "additional-ignored",
        "tensors that have no place are ignored",
        {"guard_additional": lambda self, a, shapes: None},
        "PROPERTIES EM4",
    )
    fault(
        21,
        "stray-biases-ignored",
        "biases that the config does not ask for are ignored",
        passes_over(lambda name, config: name.endswith(".bias")),
        "a Qwen2 loaded as a Llama",
    )
    fault(
        21,
        "layers-past-the-last-ignored",
        "layers past num_hidden_layers are ignored",
        passes_over(lambda name, config: name.startswith(f"model.layers.{config['num_hidden_layers']}.")),
    )
    fault(
        21,
        "stray-scales-ignored",
        "scales of a layer are ignored where the config has no quantization",
        passes_over(lambda name, config: name.endswith((".scales", ".biases"))),
    )
    fault(21, "additional-unnamed", "the error does not say which tensor is too many", _unnamed("guard_additional"))
    fault(
        22,
        "unknown-rope-ignored",
        "an unknown rope_type is taken for the default",
        {"guard_config": lambda self, config: self.guard_activation(config)},
        "the kind of mlx-lm cff94b7f",
    )
    fault(
        22,
        "rope-scaling-ignored",
        "rope_scaling, where transformers 4 writes the kind of RoPE, is not read",
        _rope_type_of(lambda place, key, kind: kind if place == "rope_parameters" else "default"),
        "the kind of mlx-lm cff94b7f",
    )
    fault(
        22,
        "legacy-rope-type-ignored",
        "the kind of RoPE is read from rope_type alone, and not from type",
        _rope_type_of(lambda place, key, kind: kind if key == "rope_type" else "default"),
        "the rope_scaling of configs before rope_type",
    )
    fault(
        22,
        "known-rope-ignored",
        "kinds of RoPE that have a name are taken for the default, others are refused",
        _rope_type_of(lambda place, key, kind: "default" if kind in ("linear", "dynamic", "llama3", "yarn") else kind),
    )
    fault(
        32,
        "activation-ignored",
        "every hidden_act is silu",
        {"guard_activation": lambda self, config: None},
        "mlx-lm's llama.py",
    )
    fault(
        32,
        "known-activations-ignored",
        "an activation that has a name is taken for silu, others are refused",
        {"guard_activation": _known_activations_alone},
    )
    fault(23, "ids-clamped", "ids outside the vocabulary are clamped to its ends", _ids_read("clamped"))
    fault(23, "ids-wrapped", "negative ids count from the end, large ones start again", _ids_read("wrapped"))
    fault(
        24,
        "offset-ignored",
        "every chunk starts at position 0",
        {"positions": lambda self, memory, length: f64(np.arange(length))},
        "the kind of mlx-lm db368f25",
    )
    fault(24, "cache-ignored", "a chunk sees nothing but itself", _extended_by("none"))
    fault(24, "cache-of-the-last-chunk", "a chunk takes the place of those before it", _extended_by("last chunk"))
    fault(24, "cache-of-all-layers", "all layers write into one cache", _extended_by("one for all layers"))
    fault(
        25,
        "offset-one-more",
        "the first token after the prompt is one position too far",
        {"positions": _one_more},
        "https://github.com/GeeeekExplorer/nano-vllm/commit/f5b4840",
    )
    fault(
        26,
        "offset-counts-calls",
        "the offset grows by one with every call after the first",
        {"advance": _counts_calls},
        f"the kind of {TINY_LLM}/commit/4cddec2",
    )
    fault(
        26,
        "chunk-mask-top-left",
        "the mask of a chunk is aligned with the first key",
        {"visible": _top_left},
        "PROPERTIES CM1",
    )
    fault(26, "chunk-unmasked", "a chunk after others has no mask", {"visible": _unmasked_after_others})
    fault(
        27,
        "cache-first-row-for-all",
        "the first sequence's keys serve the whole batch",
        _extended_by("one for all rows"),
    )
    fault(
        27,
        "single-token-first-row-turned",
        "of single tokens only the first sequence's is turned",
        _first_row_turned(single=True),
        f"{MLX}/commit/76a977ca4",
    )
    fault(
        28,
        "one-cache-for-all",
        "all requests of a model share a cache",
        {"owners": lambda self, a: [0] * len(a.chunks)},
    )
    fault(
        28,
        "two-caches-for-all",
        "requests of a model take its two caches in turn",
        {"owners": lambda self, a: [owner % 2 for owner in Incremental.owners(self, a)]},
    )
    fault(28, "one-offset-for-all", "requests count their positions together", {"respond": _offset_of_the_model})
    fault(
        29, "cache-full-at-256", "what comes after 256 tokens is not kept", _extended_by("first 256"), "PROPERTIES KV2"
    )
    fault(
        29,
        "growth-of-the-first-row",
        "a cache that grows keeps the first row of its batch",
        {"extended": _growth_of_the_first_row},
        "PROPERTIES X3",
    )
    fault(29, "cache-ring-of-256", "only the last 256 tokens are kept", _extended_by("last 256"), "PROPERTIES KV2")
    fault(
        29,
        "offset-of-the-buffer",
        "past 256 tokens the offset is the length of the buffer",
        {"positions": _allocated_positions},
        f"{MLX_LM}/commit/eb98ff72",
    )
    fault(
        30,
        "packed-single-token",
        "packed layers leave out the biases of groups where there is one token",
        {"forward": _single_token_without_biases},
    )
    fault(31, "chunk-promotes", "logits of chunks come back in float32", promotes(), "PROPERTIES X4")
    return tuple(found)


class _Nearest(Exact):
    """Real rounding: activations to the dtype of the model; between them to float32, or to the dtype as well."""

    def __init__(self, dtype: str, native: bool) -> None:
        self.dtype, self.between = dtype, dtype if native else "float32"

    def stored(self, x: np.ndarray) -> np.ndarray:
        return f64(round_to(x, self.dtype))

    def passing(self, x: np.ndarray) -> np.ndarray:
        return f64(round_to(x, self.between))

    def computed(self, x: np.ndarray) -> np.ndarray:
        return f64(x.astype(np.float32))

    def product(self, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        return f64(x.astype(np.float32) @ y.astype(np.float32))

    def linear(self, x: np.ndarray, matrix: Matrix) -> np.ndarray:
        value = self.product(x, matrix.value.T)
        return value if matrix.bias is None else value + matrix.bias

    def turns(self, angles: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        angles = angles.astype(np.float32)
        return self.passing(f64(np.cos(angles))), self.passing(f64(np.sin(angles)))


def _rounding(native: bool, cached: bool) -> Change:
    """Every operation rounds its result, as an implementation in that arithmetic does."""

    def forward(self: Any, tokens: np.ndarray, a: Arguments, m: Exact, memory: Memory | None = None) -> np.ndarray:
        rounding = _Nearest(self.result_dtype(a), native) if type(m) is Exact else m
        return Decoder.forward(self, tokens, a, rounding, memory)

    return {"forward": forward}


def variants(name: str, prefix: str) -> tuple[Variant, ...]:
    """Other honest ways to compute a model."""
    found = []
    for operation, suffix in ((name, ""), (f"{name}.incremental", "-incremental")):
        for precision, where in ((Precision.FLOAT32, "float32"), (Precision.NATIVE, "the dtype of the model")):
            found.append(
                Variant(
                    f"{prefix}-rounds-in-{precision}{suffix}",
                    f"every activation is rounded to the dtype, everything between them to {where}",
                    operation,
                    _rounding(precision is Precision.NATIVE, bool(suffix)),
                    precision,
                )
            )
    return tuple(found)
