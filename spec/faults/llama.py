"""Mistakes in Llama, and other honest ways to compute it."""

from __future__ import annotations

from inferspec.spec import llama as spec
from inferspec.spec.changes import llama as changes
from inferspec.spec.changes.decoder import passes_over, without_bias
from inferspec.spec.contract import Change, Fault, Variant
from inferspec.spec.faults.decoder import shared, variants
from inferspec.spec.faults.defining import TIRED
from inferspec.spec.llama import LLAMA_08


def _own(name: str, text: str, change: Change, source: str = TIRED) -> Fault:
    return Fault(f"llama-{name}", text, LLAMA_08, change, source)


FAULTS: tuple[Fault, ...] = shared(
    spec,
    "llama",
    [
        _own(
            "attention-bias-ignored",
            "projections of attention have no bias",
            without_bias("q_proj", "k_proj", "v_proj", "o_proj"),
        ),
        _own("output-bias-ignored", "the output projection has no bias, as in Qwen2", without_bias("o_proj")),
        _own(
            "mlp-bias-ignored",
            "projections of the MLP have no bias",
            without_bias("gate_proj", "up_proj", "down_proj"),
        ),
        _own("one-bias-flag", "attention_bias stands for the MLP too", {"biased": changes.one_flag}),
        Fault(
            "llama-one-key-head",
            "without num_key_value_heads all query heads share one key head",
            spec.LLAMA_04,
            {"heads": changes.one_key_head},
            TIRED,
        ),
        Fault(
            "llama-null-key-heads",
            "a num_key_value_heads of null is refused",
            spec.LLAMA_04,
            {"guard_config": changes.no_null_key_heads},
            TIRED,
        ),
        Fault(
            "llama-base-of-qwen3",
            "the base of RoPE is 1e6 where the config names none",
            spec.LLAMA_05,
            {"theta": changes.base_of_qwen3},
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
