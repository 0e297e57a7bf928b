"""What a decoder takes and gives back, and what it keeps of it: see `spec/faults/decoder_inputs.py`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from inferspec.spec.contract import Arguments, Change, Operation
from inferspec.spec.mistakes import first_of
from inferspec.spec.numerics import f64, is_float
from inferspec.spec.stochastic import Exact
from inferspec.spec.transformer import Decoder


def base_kept_by(key: Callable[[float, int], Any]) -> Change:
    """Tables of RoPE are kept for all models by less than their base and head dim."""

    def theta(self: Decoder, config: Mapping[str, Any]) -> float:
        base = Decoder.theta(self, config)
        return float(first_of(self, key(base, self.head_dim(config)), base))

    return {"theta": theta}


def pairs_of_the_first(
    self: Decoder, positions: np.ndarray, dim: int, a: Arguments, m: Exact
) -> tuple[np.ndarray, np.ndarray]:
    """Tables of RoPE have the pairs of the first model's heads: others of the same base get the first of them, or too few."""
    tables = Decoder.rotation(self, positions, first_of(self, self.theta(a.config), dim), a, m)
    cos, sin = (np.resize(x, (*x.shape[:-1], dim // 2)) for x in tables)
    return cos, sin


def eps_of_the_first(self: Decoder, name: str, config: Mapping[str, Any]) -> float:
    return float(first_of(self, "eps", Decoder.eps(self, name, config)))


def base_moved_within_the_config(self: Decoder, a: Arguments) -> Any:
    result, said = Decoder.respond(self, a), a.config.get("rope_parameters")
    if said:
        a.config["rope_theta"] = said.setdefault("rope_theta", self.theta(a.config))
    return result


def base_taken_out_of_the_config(self: Decoder, a: Arguments) -> Any:
    result = Decoder.respond(self, a)
    if "rope_theta" in a.config and a.config.get("rope_parameters"):
        del a.config["rope_theta"]
    return result


def defaults_filled_in(self: Decoder, a: Arguments) -> Any:
    result = Decoder.respond(self, a)
    a.config.setdefault("rope_scaling", None)
    return result


def spare_head_taken_out(self: Decoder, a: Arguments) -> Any:
    result = Decoder.respond(self, a)
    if self.tied(a.config):
        a.weights.pop("lm_head.weight", None)
    return result


def tensor_replaced(self: Decoder, a: Arguments) -> Any:
    result, name = Decoder.respond(self, a), "model.norm.weight"
    a.weights[name] = a.weights[name] * 1
    return result


def scales_weights(self: Decoder, a: Arguments) -> Any:
    result = Decoder.respond(self, a)
    name = "model.layers.0.self_attn.q_proj.weight"
    if is_float(a.weights[name].dtype):
        a.weights[name][...] = (f64(a.weights[name]) * self.scale(a.config)).astype(a.weights[name].dtype)
    else:
        a.weights["model.norm.weight"][...] = 1
    return result


def filled(self: Decoder, name: str, a: Arguments) -> np.ndarray:
    return a.weights[name] if name in a.weights else np.ones(self.shapes(a)[name])


def shapes_of_those_there(self: Decoder, a: Arguments, shapes: Mapping[str, tuple[int, ...]]) -> None:
    Decoder.guard_shapes(self, a, {name: shape for name, shape in shapes.items() if name in a.weights})


def rope_type_of(read: Callable[[str, str, str], str]) -> Change:
    """What is read of the kind of RoPE that the config names in a place under a key."""

    def rope_type(self: Decoder, config: Mapping[str, Any], place: str, key: str) -> str:
        return read(place, key, Decoder.rope_type(self, config, place, key))

    return {"rope_type": rope_type}


def known_activations_alone(self: Decoder, config: Mapping[str, Any]) -> None:
    if "gelu" not in str(config.get("hidden_act")):
        Decoder.guard_activation(self, config)


def resized(self: Decoder, name: str, a: Arguments) -> np.ndarray:
    return np.resize(a.weights[name], self.shapes(a)[name])


def ids_read(read: str) -> Change:
    """Ids outside the vocabulary are taken for others."""

    def embed(self: Decoder, ids: np.ndarray, a: Arguments, m: Exact) -> np.ndarray:
        size = a.config["vocab_size"]
        return Decoder.embed(self, np.clip(ids, 0, size - 1) if read == "clamped" else ids % size, a, m)

    return {"guard_tokens": lambda self, a: None, "embed": embed}


def last_id_lost(self: Decoder, ids: np.ndarray, a: Arguments, m: Exact) -> np.ndarray:
    return Decoder.embed(self, np.minimum(ids, a.config["vocab_size"] - 2), a, m)


def ids_of_16_bits(self: Decoder, ids: np.ndarray, a: Arguments, m: Exact) -> np.ndarray:
    return Decoder.embed(self, ids & 0xFFFF, a, m)


def ids_of_16_bits_in_batches(self: Decoder, ids: np.ndarray, a: Arguments, m: Exact) -> np.ndarray:
    return Decoder.embed(self, ids & 0xFFFF if ids.shape[1] > 1 else ids, a, m)


def uint32_ids_of_16_bits_in_batches(self: Decoder, ids: np.ndarray, a: Arguments, m: Exact) -> np.ndarray:
    wrong = len(a.tokens) > 1 and a.tokens.dtype == np.uint32
    return Decoder.embed(self, ids & 0xFFFF if wrong else ids, a, m)


def ids_of_17_bits(self: Decoder, ids: np.ndarray, a: Arguments, m: Exact) -> np.ndarray:
    return Decoder.embed(self, ids % 2**17, a, m)


def of_scaled_rope(a: Arguments) -> bool:
    """Whether a config scales RoPE."""
    return bool(Decoder().scaling(a.config))


def of_one_token(a: Arguments) -> bool:
    return bool(a.tokens.shape[-1] == 1)


def last_position(self: Decoder, a: Arguments) -> Any:
    return Operation.finish(self, self.forward(a.tokens, a, Exact())[0][:, -1:], a)
