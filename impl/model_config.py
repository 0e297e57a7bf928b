"""What a `config.json` of Hugging Face says about a Llama or Qwen3 model."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from inferspec.impl.rope_scaling import RopeScaling

DEFAULT_ROPE_THETA = 10000.0
"""What Hugging Face takes where a config names no base."""

UNLIMITED = 2**31 - 1

_TAKEN: Mapping[str, Any] = {
    "hidden_act": "silu",
    "partial_rotary_factor": 1,
    "rope_interleaved": False,
    "rope_traditional": False,
    "use_sliding_window": False,
}
"""What is computed of what a config can ask for; null says the same. A `sliding_window` that is not used may be there."""


@dataclass(frozen=True)
class ModelConfig:
    """The sizes of a decoder, checked. head_dim is free: heads · head_dim need not be hidden_size.

    quantization: MLX's entry, with `group_size`, `bits` and overrides by layer name; None for dense weights.
    """

    hidden_size: int
    num_layers: int
    intermediate_size: int
    num_heads: int
    num_kv_heads: int
    head_dim: int
    vocab_size: int
    eps: float
    rope_theta: float
    rope_scaling: RopeScaling
    max_positions: int
    tied: bool
    attention_bias: bool
    mlp_bias: bool
    quantization: Mapping[str, Any] | None

    @classmethod
    def read(cls, config: Mapping[str, Any]) -> ModelConfig:
        """Check a config and name its fields.

        ValueError or TypeError, naming the field, for one that is missing or impossible and for features that would
        change the model and are not implemented (partial RoPE and other ways to scale it, sliding windows, other activations).
        """
        if not isinstance(config, Mapping):
            raise TypeError(f"config is {type(config).__name__}; it takes the dict of a config.json")
        _refuse_unknown_features(config)
        hidden, heads = _size(config, "hidden_size"), _size(config, "num_attention_heads")
        kv_heads = _size(config, "num_key_value_heads", heads)
        if heads % kv_heads:
            raise ValueError(f"num_attention_heads is {heads}; it takes a multiple of num_key_value_heads, {kv_heads}")
        if config.get("head_dim") is None and hidden % heads:
            raise ValueError(f"hidden_size is {hidden}; without a head_dim it takes a multiple of {heads} heads")
        head_dim = _size(config, "head_dim", hidden // heads)
        if head_dim % 2:
            raise ValueError(f"head_dim is {head_dim}; RoPE takes an even one")
        scaling = _rope_scaling(config)
        eps = _number(config, "rms_norm_eps")
        if eps < 0:
            raise ValueError(f"rms_norm_eps is {eps}; it takes 0 or more")
        return cls(
            hidden_size=hidden,
            num_layers=_size(config, "num_hidden_layers"),
            intermediate_size=_size(config, "intermediate_size"),
            num_heads=heads,
            num_kv_heads=kv_heads,
            head_dim=head_dim,
            vocab_size=_size(config, "vocab_size"),
            eps=eps,
            rope_theta=_rope_theta(config),
            rope_scaling=scaling,
            max_positions=scaling.longest(_size(config, "max_position_embeddings", UNLIMITED)),
            tied=_flag(config, "tie_word_embeddings"),
            attention_bias=_flag(config, "attention_bias"),
            mlp_bias=_flag(config, "mlp_bias"),
            quantization=_entry(config, "quantization") or None,
        )

    @property
    def attention_scale(self) -> float:
        """What the products of queries and keys are multiplied by; YaRN's factor, which both have, is in it as well."""
        factor = self.rope_scaling.attention_factor()
        return self.head_dim**-0.5 * factor * factor

    def packing(self, layer: str) -> tuple[int, int]:
        """Return (group_size, bits) of a quantised layer: its own entry, or the model's."""
        if self.quantization is None:
            raise ValueError(f"weights have {layer}.scales, but config has no quantization with group_size and bits")
        own = self.quantization.get(layer)
        entry = {**self.quantization, **own} if isinstance(own, Mapping) else self.quantization
        return _size(entry, "group_size"), _size(entry, "bits")


def _size(config: Mapping[str, Any], name: str, default: int | None = None) -> int:
    value = config.get(name)
    if value is None:
        if default is None:
            raise ValueError(f"config has no {name}")
        return default
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(f"{name} is {value!r}; it takes an integer")
    if value < 1:
        raise ValueError(f"{name} is {value}; it takes 1 or more")
    return value


def _number(config: Mapping[str, Any], name: str) -> float:
    value = config.get(name)
    if value is None:
        raise ValueError(f"config has no {name}")
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError(f"{name} is {value!r}; it takes a number")
    return float(value)


def _flag(config: Mapping[str, Any], name: str) -> bool:
    """False where it is absent, as in transformers' configurations of both models."""
    value = config.get(name)
    if value is not None and not isinstance(value, bool):
        raise TypeError(f"{name} is {value!r}; it takes true or false")
    return bool(value)


def _entry(config: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """An object within the config; empty where it is absent."""
    value = config.get(name)
    if value is not None and not isinstance(value, Mapping):
        raise TypeError(f"{name} is {value!r}; it takes an object")
    return value or {}


def _rope_theta(config: Mapping[str, Any]) -> float:
    """The base of RoPE, from the top level or from `rope_parameters`, where transformers 5 writes it."""
    places = {"rope_theta": config, "rope_parameters.rope_theta": _entry(config, "rope_parameters")}
    given = {
        name: _number(place, "rope_theta") for name, place in places.items() if place.get("rope_theta") is not None
    }
    if len(set(given.values())) > 1:
        raise ValueError(f"config gives two bases of RoPE: {', '.join(f'{n} = {v:g}' for n, v in given.items())}")
    theta = next(iter(given.values()), DEFAULT_ROPE_THETA)
    if theta <= 0:
        raise ValueError(f"rope_theta is {theta}; it takes a positive number")
    return theta


def _rope_scaling(config: Mapping[str, Any]) -> RopeScaling:
    """How RoPE is scaled, from `rope_scaling` or from `rope_parameters`, where transformers 5 writes it."""
    given = {
        place: scaling
        for place in ("rope_scaling", "rope_parameters")
        if (scaling := RopeScaling.read(_entry(config, place), place)) != RopeScaling()
    }
    first, *more = given.values() or [RopeScaling()]
    if more and more[0] != first:
        raise ValueError("config scales RoPE in two ways: rope_scaling and rope_parameters do not say the same")
    # No field of Hugging Face's: a GGUF file has them.
    return replace(first, divisors=tuple(config.get("rope_divisors") or ()))


def _refuse_unknown_features(config: Mapping[str, Any]) -> None:
    """Raise where the config asks for something that would silently give other logits."""
    for name, taken in _TAKEN.items():
        _refuse_all_but(taken, config, name)
    for place in ("rope_scaling", "rope_parameters"):
        entry = _entry(config, place)
        _refuse_all_but(1, entry, "partial_rotary_factor", place)
    _refuse_all_but("affine", _entry(config, "quantization"), "mode", "quantization")
    for layer, kind in enumerate(config.get("layer_types") or ()):
        if kind != "full_attention":
            raise ValueError(f"layer_types has {kind!r} for layer {layer}; it takes 'full_attention' for every one")


def _refuse_all_but(taken: Any, entry: Mapping[str, Any], name: str, place: str | None = None) -> None:
    """ValueError where an entry has a value of that name other than the one that is taken, and not null."""
    value = entry.get(name)
    if value is not None and value != taken:
        raise ValueError(f"{f'{place}.' if place else ''}{name} is {value!r}; it takes {taken!r}")
