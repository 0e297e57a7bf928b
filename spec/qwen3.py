"""Qwen3, dense: a Llama whose queries and keys are normalised head by head, with a free head_dim and no biases.

Shapes and conventions: `transformer`.

Sources: Yang et al. 2025, section 2; the `Qwen3ForCausalLM` of transformers for names and config; the tiny-llm course,
week 1 days 3 and 5.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from inferspec.spec import decoder_sentences as every
from inferspec.spec.contract import Contract, Level, Requirement, Signature
from inferspec.spec.decoder_sentences import Sentence
from inferspec.spec.transformer import Decoder, Incremental


class Qwen3(Decoder):
    """Tokens to logits, in one call."""

    signature = Signature.parse("Qwen3(config, weights)(tokens)")
    head_norms = True

    def window(self, layer: int, config: Mapping[str, Any]) -> int | None:
        return config["sliding_window"] if config.get("use_sliding_window") and self.slides(layer, config) else None

    def slides(self, layer: int, config: Mapping[str, Any]) -> bool:
        """Whether a layer is one of those whose queries see a window."""
        if kinds := config.get("layer_types"):
            return kinds[layer] == "sliding_attention"
        return layer >= config["max_window_layers"]


class Qwen3Incremental(Qwen3, Incremental):
    """Tokens to logits, chunk by chunk."""

    signature = Signature.parse("Qwen3(config, weights).incremental(chunks, requests=None, rewinds=None)")


HEAD_NORMS = Sentence(
    "each head of the queries is normalised over head_dim with q_norm and each of the keys with k_norm, before RoPE",
    "Yang et al. 2025, section 2; tiny-llm course, week 1 day 3",
)

WINDOW = Sentence(
    "with use_sliding_window a query of the layers that layer_types calls sliding_attention, or without layer_types of those "
    "from max_window_layers on, sees the last sliding_window keys alone, its own among them; or the config is refused",
    "transformers, Qwen3Config; https://github.com/vllm-project/vllm/issues/39514; PROPERTIES CM5, X13",
    level=Level.SHOULD,
)
CACHED_WINDOW = Sentence(
    "with use_sliding_window so does a query of theirs behind a cache, of a token or a chunk; a model that took the first chunk "
    "takes all",
    "mlx-lm 25a4c836; PROPERTIES CM5",
    level=Level.SHOULD,
    cached=True,
)
BIASES = Sentence(
    "attention_bias adds a bias to the query, key, value and output projections, or the config is refused",
    "transformers, Qwen3Config; PROPERTIES X13",
    level=Level.SHOULD,
)

QWEN3_01 = every.LOGITS.of("QWEN3-01", "Qwen3")
QWEN3_02 = every.HEAD.of("QWEN3-02", "Qwen3")
QWEN3_03 = every.SPARE_HEAD.of("QWEN3-03", "Qwen3")
QWEN3_04 = every.HEADS.of("QWEN3-04", "Qwen3")
QWEN3_05 = every.ROPE.of("QWEN3-05", "Qwen3")
QWEN3_06 = every.EPS.of("QWEN3-06", "Qwen3")
QWEN3_07 = every.MLP.of("QWEN3-07", "Qwen3")
QWEN3_08 = HEAD_NORMS.of("QWEN3-08", "Qwen3")
QWEN3_09 = every.LAYERS.of("QWEN3-09", "Qwen3")
QWEN3_10 = every.FLOAT32.of("QWEN3-10", "Qwen3")
QWEN3_11 = every.CAUSAL.of("QWEN3-11", "Qwen3")
QWEN3_12 = every.BATCH.of("QWEN3-12", "Qwen3")
QWEN3_13 = every.QUANTISED.of("QWEN3-13", "Qwen3")
QWEN3_14 = every.LENGTHS.of("QWEN3-14", "Qwen3")
QWEN3_15 = every.TOKENS.of("QWEN3-15", "Qwen3")
QWEN3_16 = every.DTYPE.of("QWEN3-16", "Qwen3")
QWEN3_17 = every.KEEPS.of("QWEN3-17", "Qwen3")
QWEN3_18 = every.ALONE.of("QWEN3-18", "Qwen3")
QWEN3_19 = every.MISSING.of("QWEN3-19", "Qwen3")
QWEN3_20 = every.MISSHAPED.of("QWEN3-20", "Qwen3")
QWEN3_21 = every.ADDITIONAL.of("QWEN3-21", "Qwen3")
QWEN3_22 = every.UNKNOWN_ROPE.of("QWEN3-22", "Qwen3")
QWEN3_23 = every.VOCABULARY.of("QWEN3-23", "Qwen3")
QWEN3_24 = every.SPLITS.of("QWEN3-24", "Qwen3")
QWEN3_25 = every.DECODE.of("QWEN3-25", "Qwen3")
QWEN3_26 = every.CHUNKS.of("QWEN3-26", "Qwen3")
QWEN3_27 = every.CACHE_BATCH.of("QWEN3-27", "Qwen3")
QWEN3_28 = every.REQUESTS.of("QWEN3-28", "Qwen3")
QWEN3_29 = every.LONG_CACHE.of("QWEN3-29", "Qwen3")
QWEN3_30 = every.CACHE_QUANTISED.of("QWEN3-30", "Qwen3")
QWEN3_31 = every.CACHE_DTYPE.of("QWEN3-31", "Qwen3")
QWEN3_32 = every.UNKNOWN_ACTIVATION.of("QWEN3-32", "Qwen3")
QWEN3_33 = every.ROPE_LINEAR.of("QWEN3-33", "Qwen3")
QWEN3_34 = every.ROPE_LLAMA3.of("QWEN3-34", "Qwen3")
QWEN3_35 = every.ROPE_YARN.of("QWEN3-35", "Qwen3")
QWEN3_36 = every.YARN_FIELDS.of("QWEN3-36", "Qwen3")
QWEN3_37 = every.SCALED_PLACES.of("QWEN3-37", "Qwen3")
QWEN3_38 = every.SCALED_MISSING.of("QWEN3-38", "Qwen3")
QWEN3_39 = every.SCALED_NUMBERS.of("QWEN3-39", "Qwen3")
QWEN3_40 = every.SCALED_CACHE.of("QWEN3-40", "Qwen3")
QWEN3_41 = every.KEEPS_DICTS.of("QWEN3-41", "Qwen3")
QWEN3_42 = every.NAMED.of("QWEN3-42", "Qwen3")
QWEN3_43 = every.CACHE_REWOUND.of("QWEN3-43", "Qwen3")
QWEN3_44 = WINDOW.of("QWEN3-44", "Qwen3")
QWEN3_45 = CACHED_WINDOW.of("QWEN3-45", "Qwen3")
QWEN3_46 = BIASES.of("QWEN3-46", "Qwen3")
QWEN3_48 = every.CACHED_THREADS.of("QWEN3-48", "Qwen3")
QWEN3_49 = every.THREADS.of("QWEN3-49", "Qwen3")


CONTRACT = Contract(
    component="qwen3",
    title="Qwen3, a whole model",
    version=1,
    operations=(Qwen3, Qwen3Incremental),
    envelope={
        "dtypes": ("float32", "float16", "bfloat16"),
        "token_dtypes": ("int32", "int64", "uint32"),
        "heads": (
            *((1, 1), (2, 2), (3, 3), (2, 1), (4, 2), (6, 2), (3, 1), (8, 1), (10, 2), (16, 8)),
            *((8, 2), (9, 3), (16, 4), (32, 8)),
        ),
        "head_dims": ("free", "multiple"),
        "rope": ("rope_theta", "rope_parameters"),
        "rope_types": ("default", "linear", "llama3", "yarn"),
        "thetas": ("fractional", "whole"),
        "tied": (True, False),
        "packing": ("dense", "4-bit", "8-bit", "2-bit", "mixed", "4-bit throughout"),
        "group_sizes": (32, 64, 128),
        "length": 1030,
    },
    requirements=tuple(value for value in list(globals().values()) if isinstance(value, Requirement)),
)
