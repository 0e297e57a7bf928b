"""Llama: the plain decoder, with biases where the config asks for them.

Shapes and conventions: `transformer`. A Qwen2 is a Llama whose output projections have a bias of zeros: `biases: ["qkv"]`.

Sources: Touvron et al. 2023; the `LlamaForCausalLM` of transformers for names and config; the tiny-llm course, week 1
day 5.
"""

from __future__ import annotations

from dataclasses import replace

from inferspec.spec import decoder_sentences as every
from inferspec.spec.contract import Contract, Requirement, Signature
from inferspec.spec.decoder_sentences import Sentence
from inferspec.spec.transformer import Decoder, Incremental


class Llama(Decoder):
    """Tokens to logits, in one call."""

    signature = Signature.parse("Llama(config, weights)(tokens)")


class LlamaIncremental(Incremental):
    """Tokens to logits, chunk by chunk."""

    signature = Signature.parse("Llama(config, weights).incremental(chunks, requests=None, rewinds=None)")


BIASES = Sentence(
    "attention_bias adds a bias to the query, key, value and output projections, mlp_bias to those of the MLP",
    "transformers, LlamaConfig; PROPERTIES X13",
)

# What a config need not say is as in LlamaConfig of transformers; other models have other defaults there.
HEADS = replace(
    every.HEADS,
    text=f"{every.HEADS.text}; without num_key_value_heads, or where that is null, every query head has its own",
)
ROPE = replace(every.ROPE, text=f"{every.ROPE.text}, or 10,000 where neither is there")

LLAMA_01 = every.LOGITS.of("LLAMA-01", "Llama")
LLAMA_02 = every.HEAD.of("LLAMA-02", "Llama")
LLAMA_03 = every.SPARE_HEAD.of("LLAMA-03", "Llama")
LLAMA_04 = HEADS.of("LLAMA-04", "Llama")
LLAMA_05 = ROPE.of("LLAMA-05", "Llama")
LLAMA_06 = every.EPS.of("LLAMA-06", "Llama")
LLAMA_07 = every.MLP.of("LLAMA-07", "Llama")
LLAMA_08 = BIASES.of("LLAMA-08", "Llama")
LLAMA_09 = every.LAYERS.of("LLAMA-09", "Llama")
LLAMA_10 = every.FLOAT32.of("LLAMA-10", "Llama")
LLAMA_11 = every.CAUSAL.of("LLAMA-11", "Llama")
LLAMA_12 = every.BATCH.of("LLAMA-12", "Llama")
LLAMA_13 = every.QUANTISED.of("LLAMA-13", "Llama")
LLAMA_14 = every.LENGTHS.of("LLAMA-14", "Llama")
LLAMA_15 = every.TOKENS.of("LLAMA-15", "Llama")
LLAMA_16 = every.DTYPE.of("LLAMA-16", "Llama")
LLAMA_17 = every.KEEPS.of("LLAMA-17", "Llama")
LLAMA_18 = every.ALONE.of("LLAMA-18", "Llama")
LLAMA_19 = every.MISSING.of("LLAMA-19", "Llama")
LLAMA_20 = every.MISSHAPED.of("LLAMA-20", "Llama")
LLAMA_21 = every.ADDITIONAL.of("LLAMA-21", "Llama")
LLAMA_22 = every.UNKNOWN_ROPE.of("LLAMA-22", "Llama")
LLAMA_23 = every.VOCABULARY.of("LLAMA-23", "Llama")
LLAMA_24 = every.SPLITS.of("LLAMA-24", "Llama")
LLAMA_25 = every.DECODE.of("LLAMA-25", "Llama")
LLAMA_26 = every.CHUNKS.of("LLAMA-26", "Llama")
LLAMA_27 = every.CACHE_BATCH.of("LLAMA-27", "Llama")
LLAMA_28 = every.REQUESTS.of("LLAMA-28", "Llama")
LLAMA_29 = every.LONG_CACHE.of("LLAMA-29", "Llama")
LLAMA_30 = every.CACHE_QUANTISED.of("LLAMA-30", "Llama")
LLAMA_31 = every.CACHE_DTYPE.of("LLAMA-31", "Llama")
LLAMA_32 = every.UNKNOWN_ACTIVATION.of("LLAMA-32", "Llama")
LLAMA_33 = every.ROPE_LINEAR.of("LLAMA-33", "Llama")
LLAMA_34 = every.ROPE_LLAMA3.of("LLAMA-34", "Llama")
LLAMA_35 = every.ROPE_YARN.of("LLAMA-35", "Llama")
LLAMA_36 = every.YARN_FIELDS.of("LLAMA-36", "Llama")
LLAMA_37 = every.SCALED_PLACES.of("LLAMA-37", "Llama")
LLAMA_38 = every.SCALED_MISSING.of("LLAMA-38", "Llama")
LLAMA_39 = every.SCALED_NUMBERS.of("LLAMA-39", "Llama")
LLAMA_40 = every.SCALED_CACHE.of("LLAMA-40", "Llama")
LLAMA_41 = every.KEEPS_DICTS.of("LLAMA-41", "Llama")
LLAMA_42 = every.NAMED.of("LLAMA-42", "Llama")
LLAMA_43 = every.CACHE_REWOUND.of("LLAMA-43", "Llama")
LLAMA_48 = every.CACHED_THREADS.of("LLAMA-48", "Llama")
LLAMA_49 = every.THREADS.of("LLAMA-49", "Llama")


ABSENT_FIELDS = "num_key_value_heads", "rope_theta"
"""What configs of the first Llamas do not say."""

CONTRACT = Contract(
    component="llama",
    title="Llama, a whole model",
    version=1,
    operations=(Llama, LlamaIncremental),
    envelope={
        "dtypes": ("float32", "float16", "bfloat16"),
        "token_dtypes": ("int32", "int64", "uint32"),
        "heads": (
            *((1, 1), (2, 2), (3, 3), (2, 1), (4, 2), (6, 2), (3, 1), (8, 1), (10, 2), (16, 8)),
            *((8, 2), (9, 3), (16, 4), (32, 8)),
        ),
        "head_dims": ("free", "multiple", "absent"),
        "biases": ("none", "attention", "mlp", "both", "qkv"),
        "absent_fields": ("none", *ABSENT_FIELDS),
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
