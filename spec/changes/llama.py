"""The steps that faults and honest variants have in the place of the oracle's: see `spec/faults/llama.py`."""

from __future__ import annotations

from typing import Any

from inferspec.spec.transformer import Decoder


def one_flag(self: Decoder, name: str, config: Any) -> bool:
    return bool(config.get("attention_bias"))


def one_key_head(self: Decoder, config: Any) -> tuple[int, int]:
    return config["num_attention_heads"], config.get("num_key_value_heads") or 1


def no_null_key_heads(self: Decoder, config: Any) -> None:
    Decoder.guard_config(self, config)
    if config.get("num_key_value_heads", 0) is None:
        raise ValueError("num_key_value_heads is None")


def base_of_qwen3(self: Decoder, config: Any) -> float:
    return Decoder.theta(self, config) if {"rope_theta", "rope_parameters"} & set(config) else 1e6
