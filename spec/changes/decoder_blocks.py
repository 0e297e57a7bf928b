"""The sequence of a decoder's operations, and what of its config they go by: see `spec/faults/decoder_blocks.py`."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from inferspec.spec.contract import Arguments, Change
from inferspec.spec.numerics import f64, round_to
from inferspec.spec.stochastic import Exact, Matrix
from inferspec.spec.transformer import Decoder, Memory

# the sequence of operations


def norm_dropped(ending: str) -> Change:
    def norm(self: Decoder, x: np.ndarray, name: str, a: Arguments, m: Exact) -> np.ndarray:
        return x if name.endswith(ending) else Decoder.norm(self, x, name, a, m)

    return {"norm": norm}


def parallel(
    self: Decoder, x: np.ndarray, layer: int, positions: np.ndarray, memory: Memory, a: Arguments, m: Exact
) -> np.ndarray:
    name = f"model.layers.{layer}"
    attended = self.attention(self.norm(x, f"{name}.input_layernorm", a, m), layer, positions, memory, a, m)
    return x + attended + self.mlp(self.norm(x, f"{name}.post_attention_layernorm", a, m), name, a, m)


def in_float16(
    self: Decoder, x: np.ndarray, layer: int, positions: np.ndarray, memory: Memory, a: Arguments, m: Exact
) -> np.ndarray:
    x = Decoder.block(self, x, layer, positions, memory, a, m)
    with np.errstate(over="ignore"):
        return f64(round_to(x, "float16")) if self.result_dtype(a) == "bfloat16" else x


def squares_in_float16(self: Decoder, x: np.ndarray, name: str, a: Arguments, m: Exact) -> np.ndarray:
    normed = Decoder.norm(self, x, name, a, m)
    if self.result_dtype(a) != "float16":
        return normed
    with np.errstate(over="ignore"):
        overflown = np.isinf(round_to(x * x, "float16")).any(axis=-1, keepdims=True)
    return np.where(overflown, 0.0, normed)


def scaled_embedding(self: Decoder, ids: np.ndarray, a: Arguments, m: Exact) -> np.ndarray:
    return Decoder.embed(self, ids, a, m) * math.sqrt(a.config["hidden_size"])


def own_head(self: Decoder, a: Arguments) -> Matrix:
    matrix = Decoder.head(self, a)
    if not self.tied(a.config):
        return matrix
    value = np.random.default_rng(0).normal(scale=matrix.value.std(), size=matrix.value.shape)
    return Matrix(value, value)


def spare_head(self: Decoder, a: Arguments) -> Matrix:
    return self.matrix("lm_head", a) if "lm_head.weight" in a.weights else Decoder.head(self, a)


def no_spare_head(self: Decoder, a: Arguments, shapes: Mapping[str, tuple[int, ...]]) -> None:
    if unknown := sorted(set(a.weights) - set(shapes)):
        raise ValueError(f"no place for {unknown[0]}")


def no_packed_spare_head(self: Decoder, a: Arguments, shapes: Mapping[str, tuple[int, ...]]) -> None:
    spare = {"lm_head.weight"} if self.tied(a.config) else set()
    if unknown := sorted(set(a.weights) - set(shapes) - spare):
        raise ValueError(f"no place for {unknown[0]}")


# heads


def in_turn_where(holds: Callable[[int, int], bool]) -> Callable[..., np.ndarray]:
    """For some numbers of query and key heads, query head h reads key head h mod H."""

    def read_heads(self: Decoder, queries: int, keys: int) -> np.ndarray:
        return np.arange(queries) % keys if holds(queries, keys) else Decoder.read_heads(self, queries, keys)

    return read_heads


def features_before_heads(self: Decoder, x: np.ndarray, heads: int) -> np.ndarray:
    return np.moveaxis(x.reshape(*x.shape[:-1], -1, heads), -1, 2)


def axes_by_their_sizes(
    self: Decoder, memory: Any, layer: int, key: np.ndarray, value: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Where there are as many tokens as heads, either axis is taken for the other one."""
    key, value = Decoder.extended(self, memory, layer, key, value)
    return (key.swapaxes(2, 3), value.swapaxes(2, 3)) if key.shape[2] == key.shape[3] else (key, value)


def merged_in_place(self: Decoder, x: np.ndarray) -> np.ndarray:
    return x.reshape(*x.shape[:2], x.shape[3], -1)


def keys_permuted_like_queries(
    self: Decoder, x: np.ndarray, name: str, heads: int, a: Arguments, m: Exact
) -> np.ndarray:
    projected = m.stored(m.linear(x, self.matrix(name, a)))
    queries, features = self.heads(a.config)[0], projected.shape[-1]
    if name.endswith("k_proj") and features % (2 * queries) == 0:
        there = np.arange(features).reshape(queries, 2, -1).swapaxes(1, 2).ravel()
        back = np.argsort(np.arange(features).reshape(heads, 2, -1).swapaxes(1, 2).ravel())
        projected = projected[..., there[back]]
    return self.split(projected, heads)


def head_dim_of_hidden(self: Decoder, config: Mapping[str, Any]) -> int:
    return config["hidden_size"] // config["num_attention_heads"]


# positions


def theta_of(style: str) -> Change:
    """Only one style of the config is read; without it the base is the default."""

    def theta(self: Decoder, config: Mapping[str, Any]) -> float:
        place = config if style == "rope_theta" else config.get("rope_parameters") or {}
        return place.get("rope_theta") or 10000.0

    return {"theta": theta}


def table_in_bfloat16(*which: str) -> Change:
    """Cosines, sines or both are rounded to bfloat16, whatever the dtype of the model."""

    def rotation(self: Decoder, positions: np.ndarray, dim: int, a: Arguments, m: Exact) -> Any:
        both = zip(("cosine", "sine"), Decoder.rotation(self, positions, dim, a, m), strict=True)
        return tuple(f64(round_to(x, "bfloat16")) if name in which else x for name, x in both)

    return {"rotation": rotation}


def frequencies_in_the_dtype(self: Decoder, positions: np.ndarray, dim: int, a: Arguments, m: Exact) -> Any:
    frequencies = self.rescaled(m.frequencies(self.theta(a.config) ** (-np.arange(0, dim, 2) / dim)), a.config, m)
    return m.turns(positions[:, None] * f64(round_to(frequencies, self.result_dtype(a)))[:, None, None, None])


def queries_unturned(self: Decoder, x: np.ndarray, norm: str, positions: np.ndarray, a: Arguments, m: Exact) -> Any:
    return Decoder.placed(self, x, norm, positions * 0 if norm.endswith("q_norm") else positions, a, m)


def pairs_of_hidden(self: Decoder, x: np.ndarray, positions: np.ndarray, a: Arguments, m: Exact) -> np.ndarray:
    """The frequencies of a head dim of hidden_size / heads."""
    stretch = x.shape[-1] / (a.config["hidden_size"] / a.config["num_attention_heads"])
    theta = self.theta(a.config) ** stretch
    same = type("Same", (type(self),), {"theta": lambda self, config: theta})
    return Decoder.turn(same(), x, positions, a, m)


# activations and layers


def no_low_gates(self: Decoder, gate: np.ndarray, m: Exact) -> np.ndarray:
    """SiLU is taken for 0 where the gate is below -10."""
    return np.where(gate < -10, 0.0, Decoder.activated(self, gate, m))


def overflowing(self: Decoder, gate: np.ndarray, m: Exact) -> np.ndarray:
    """x · eˣ / (1 + eˣ), in float32."""
    return np.where(gate > np.log(np.finfo(np.float32).max), np.nan, Decoder.activated(self, gate, m))


def gelu(self: Decoder, gate: np.ndarray, m: Exact) -> np.ndarray:
    return gate * 0.5 * (1 + np.tanh(math.sqrt(2 / math.pi) * (gate + 0.044715 * gate**3)))


def gate_and_up_swapped(self: Decoder, name: str, a: Arguments) -> Matrix:
    names = {"gate_proj": "up_proj", "up_proj": "gate_proj"}
    last = name.rsplit(".", 1)[-1]
    return Decoder.matrix(self, name.replace(last, names.get(last, last)), a)


# what a config says


def no_scaling_but_null(self: Decoder, config: Mapping[str, Any]) -> None:
    if config.get("rope_scaling"):
        raise ValueError("rope_scaling has no factor")
    Decoder.guard_config(self, config)


def one_name_of_the_kind(self: Decoder, config: Mapping[str, Any]) -> None:
    if {"type", "rope_type"} <= set(config.get("rope_scaling") or {}):
        raise ValueError("rope_scaling has a duplicate field rope_type")
    Decoder.guard_config(self, config)


def base_beside_parameters(self: Decoder, config: Mapping[str, Any]) -> float:
    """Where there are rope_parameters the base is looked for there alone."""
    place = config.get("rope_parameters", config)
    return place.get("rope_theta") or 10000.0


def no_null(self: Decoder, config: Mapping[str, Any]) -> None:
    Decoder.guard_config(self, config)
    if nulls := [name for name in ("rope_scaling", "sliding_window") if config.get(name, 0) is None]:
        raise ValueError(f"{nulls[0]} is None")


def no_null_quantization(self: Decoder, config: Mapping[str, Any]) -> None:
    Decoder.guard_config(self, config)
    if config.get("quantization_config", 0) is None:
        raise ValueError("quantization_config is None")


def activation_needed(self: Decoder, config: Mapping[str, Any]) -> None:
    Decoder.guard_config(self, config)
    if "hidden_act" not in config:
        raise ValueError("config has no hidden_act")


def no_whole_base(self: Decoder, config: Mapping[str, Any]) -> None:
    if isinstance(self.theta(config), int):
        raise TypeError("rope_theta is an int; it takes a float")
    Decoder.guard_config(self, config)


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


def known_fields_alone(self: Decoder, config: Mapping[str, Any]) -> None:
    Decoder.guard_config(self, config)
    if unknown := sorted(set(config) - KNOWN_FIELDS):
        raise ValueError(f"unexpected {unknown[0]}")


def sixty_four_features(
    self: Decoder, query: np.ndarray, key: np.ndarray, value: np.ndarray, a: Arguments, m: Exact, *window: Any
) -> np.ndarray:
    """A kernel made for heads of 64 features."""
    return Decoder.attend(self, query[..., :64], key[..., :64], value, a, m, *window)
