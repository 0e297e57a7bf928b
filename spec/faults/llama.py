"""Mistakes in Llama, and other honest ways to compute it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from inferspec.spec import llama as spec
from inferspec.spec.contract import Arguments, Change, Fault, Variant
from inferspec.spec.faults.decoder import TIRED, passes_over, shared, variants
from inferspec.spec.llama import LLAMA_08
from inferspec.spec.stochastic import Matrix
from inferspec.spec.transformer import Decoder


def _without_bias(*endings: str) -> Change:
    def matrix(self: Decoder, name: str, a: Arguments) -> Matrix:
        right = Decoder.matrix(self, name, a)
        return replace(right, bias=None) if name.endswith(endings) else right

    return {"matrix": matrix}


def _one_flag(self: Decoder, name: str, config: Any) -> bool:
    return bool(config.get("attention_bias"))


def _one_key_head(self: Decoder, config: Any) -> tuple[int, int]:
    return config["num_attention_heads"], config.get("num_key_value_heads") or 1


def _no_null_key_heads(self: Decoder, config: Any) -> None:
    Decoder.guard_config(self, config)
    if config.get("num_key_value_heads", 0) is None:
        raise ValueError("num_key_value_heads is None")


def _base_of_qwen3(self: Decoder, config: Any) -> float:
    return Decoder.theta(self, config) if {"rope_theta", "rope_parameters"} & set(config) else 1e6


def _own(name: str, text: str, change: Change, source: str = TIRED) -> Fault:
    return Fault(f"llama-{name}", text, LLAMA_08, change, source)


FAULTS: tuple[Fault, ...] = shared(
    spec,
    "llama",
    [
        _own(
            "attention-bias-ignored",
            "projections of attention have no bias",
            _without_bias("q_proj", "k_proj", "v_proj", "o_proj"),
        ),
        _own("output-bias-ignored", "the output projection has no bias, as in Qwen2", _without_bias("o_proj")),
        _own(
            "mlp-bias-ignored",
            "projections of the MLP have no bias",
            _without_bias("gate_proj", "up_proj", "down_proj"),
        ),
        _own("one-bias-flag", "attention_bias stands for the MLP too", {"biased": _one_flag}),
        Fault(
            "llama-one-key-head",
            "without num_key_value_heads all query heads share one key head",
            spec.LLAMA_04,
            {"heads": _one_key_head},
            TIRED,
        ),
        Fault(
            "llama-null-key-heads",
            "a num_key_value_heads of null is refused",
            spec.LLAMA_04,
            {"guard_config": _no_null_key_heads},
            TIRED,
        ),
        Fault(
            "llama-base-of-qwen3",
            "the base of RoPE is 1e6 where the config names none",
            spec.LLAMA_05,
            {"theta": _base_of_qwen3},
            TIRED,
        ),
        Fault(
            "llama-head-norms-ignored",
            "the q_norm and k_norm of a Qwen3 are ignored",
            spec.LLAMA_21,
            passes_over(lambda name, config: name.endswith(("q_norm.weight", "k_norm.weight"))),
            "a Qwen3 loaded as a Llama",
        ),
    ],
)

VARIANTS: tuple[Variant, ...] = variants("Llama", "llama")
