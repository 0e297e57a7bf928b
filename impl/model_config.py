"""What a `config.json` of Hugging Face says about a Llama or Qwen3 model."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

DEFAULT_ROPE_THETA = 10000.0
"""What Hugging Face takes where a config names no base."""

UNLIMITED = 2**31 - 1


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
    max_positions: int
    tied: bool
    attention_bias: bool
    mlp_bias: bool
    quantization: Mapping[str, Any] | None

    @classmethod
    def read(cls, config: Mapping[str, Any]) -> ModelConfig:
        """Check a config and name its fields.

        ValueError or TypeError, naming the field, for one that is missing or impossible and for features that would
        change the model and are not implemented (scaled RoPE, sliding windows, other activations).
        """
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
            max_positions=_size(config, "max_position_embeddings", UNLIMITED),
            tied=bool(config.get("tie_word_embeddings", False)),
            attention_bias=bool(config.get("attention_bias", False)),
            mlp_bias=bool(config.get("mlp_bias", False)),
            quantization=config.get("quantization"),
        )

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


def _rope_theta(config: Mapping[str, Any]) -> float:
    """The base of RoPE, from the top level or from `rope_parameters`, where transformers 5 writes it."""
    places = {"rope_theta": config, "rope_parameters.rope_theta": config.get("rope_parameters") or {}}
    given = {name: _number(place, "rope_theta") for name, place in places.items() if place.get("rope_theta")}
    if len(set(given.values())) > 1:
        raise ValueError(f"config gives two bases of RoPE: {', '.join(f'{n} = {v:g}' for n, v in given.items())}")
    theta = next(iter(given.values()), DEFAULT_ROPE_THETA)
    if theta <= 0:
        raise ValueError(f"rope_theta is {theta}; it takes a positive number")
    return theta


def _refuse_unknown_features(config: Mapping[str, Any]) -> None:
    """Raise where the config asks for something that would silently give other logits."""
    for name in ("rope_scaling", "rope_parameters"):
        entry = config.get(name) or {}
        for key in ("rope_type", "type"):  # of today, and of before
            kind = entry.get(key) or "default"
            if kind != "default":
                raise ValueError(f"{name} asks for {key} {kind!r}; it takes 'default', unscaled RoPE")
        if entry.get("partial_rotary_factor", 1) != 1:
            raise ValueError(f"{name} has a partial_rotary_factor of {entry['partial_rotary_factor']}; it takes 1")
    if config.get("hidden_act", "silu") != "silu":
        raise ValueError(f"hidden_act is {config['hidden_act']!r}; it takes 'silu'")
    if config.get("use_sliding_window") or set(config.get("layer_types") or ()) - {"full_attention"}:
        raise ValueError("config asks for sliding-window attention; it takes full attention in every layer")
