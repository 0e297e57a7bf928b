"""Mistakes in scaled RoPE that any decoder can have, and other honest ways to compute one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from inferspec.spec.changes import rope_scaling as changes
from inferspec.spec.contract import Change, Variant
from inferspec.spec.faults.defining import TIRED, Define
from inferspec.spec.mistakes import unguarded
from inferspec.spec.rope_scaling import LENGTH

BANDS = ("low_freq_factor", "high_freq_factor")
TRANSFORMERS = "https://github.com/huggingface/transformers"


def every(fault: Define) -> None:
    """All of them, in order."""
    linear(fault)
    llama3(fault)
    yarn(fault)
    fields_of_yarn(fault)
    first_layers(fault)
    places(fault)
    refusals(fault)
    cached(fault)


def linear(fault: Define) -> None:
    fault(33, "linear-ignored", "linear scaling is read, and not computed", changes.left_as_they_are("linear"))
    fault(33, "linear-multiplies", "frequencies are multiplied by the factor", {"divided": changes.multiplied})
    fault(
        33,
        "linear-of-the-base",
        "the base is multiplied by the factor, in the place of dividing frequencies",
        {"linear": changes.of_a_larger_base},
    )
    fault(
        33,
        "linear-positions-whole",
        "positions are divided by the factor and lose what is behind the point",
        {"rotation": changes.whole_positions},
    )
    fault(
        33,
        "linear-factor-whole",
        "the factor loses what is behind the point",
        changes.field_as(lambda name, value: value and int(value), "factor"),
    )
    fault(
        33,
        "linear-factor-of-one-refused",
        "a factor of 1 is refused, which is not above 1",
        changes.guarded_too(lambda config, scaling: "factor is not above 1" if scaling.get("factor") == 1 else ""),
        f"{TRANSFORMERS}/pull/24653",
    )
    fault(
        33,
        "linear-positions-of-the-model",
        "positions past max_position_embeddings turn as the last of them does, however they are divided",
        changes.ends_with_the_model("linear"),
        "a table of as many rows",
    )
    fault(
        33, "scaled-keys-alone", "keys are turned by scaled frequencies, queries are not", changes.one_alone("k_norm")
    )
    fault(
        18,
        "frequencies-kept-by-base",
        "frequencies are kept for all models of a head dim and base, however they are scaled",
        changes.kept_by_base(),
        "the kind of vllm pull 1867",
    )
    fault(
        18,
        "frequencies-kept-by-kind",
        "frequencies are kept for all models of a head dim, a base and a kind of scaling, by whatever numbers",
        changes.kept_by_kind(),
        "the kind of vllm pull 1867",
    )


def llama3(fault: Define) -> None:
    def it(name: str, text: str, change: Change, source: str = TIRED) -> None:
        fault(34, f"llama3-{name}", text, change, source)

    it(
        "ignored",
        "llama3 scaling is read, and not computed",
        changes.left_as_they_are("llama3"),
        "https://github.com/lablup/mlxcel/issues/1355",
    )
    it("divides-all", "every frequency is divided, as in linear scaling", changes.all_divided("llama3"))
    it(
        "bands-exchanged",
        "high frequencies are divided and low ones kept: wavelengths are compared as if they were frequencies",
        {"llama3": changes.bands_exchanged},
    )
    it(
        "mixes-all",
        "frequencies past the bands are mixed like those between them",
        {"llama3": changes.clipped_nowhere},
    )
    it(
        "complement",
        "of what is kept and what is divided each has the share of the other",
        changes.kept_as(lambda x: 1 - x),
    )
    it(
        "kept-by-wavelength",
        "the share that is kept falls with the wavelength, in the place of rising with the frequency",
        {"kept": changes.kept_by_wavelength},
        "the kind of https://github.com/ml-explore/mlx-examples/pull/907",
    )
    it("between-kept", "frequencies between the bands are kept", changes.kept_as(np.ones_like))
    it("between-divided", "frequencies between the bands are divided", changes.kept_as(np.zeros_like))
    it("mixes-divided", "what is mixed is divided already", {"mixed": changes.mixed_of_divided})
    it("bands-swapped", "low_freq_factor and high_freq_factor are exchanged", changes.swapped("bands"))
    it(
        "factor-of-eight",
        "the factor is 8, whatever the config says",
        changes.field_as(lambda name, value: value and 8.0, "factor"),
        "https://github.com/meta-llama/llama-models/issues/241",
    )
    it(
        "bands-of-llama",
        "low_freq_factor is 1 and high_freq_factor 4, whatever the config says",
        changes.field_as(lambda name, value: value and (1.0 if name == BANDS[0] else 4.0), *BANDS),
    )
    it(
        "length-of-llama",
        "the positions of training are 8192, whatever the config says",
        changes.field_as(lambda name, value: value and 8192, LENGTH),
    )
    it(
        "length-of-the-model",
        "the positions of training are max_position_embeddings",
        {"original": changes.length_of_the_model},
        "https://github.com/NVIDIA/Megatron-LM/issues/1418",
    )
    it(
        "wavelength-without-2-pi",
        "the wavelength is one over the frequency",
        {"wavelengths": lambda self, frequencies, m: 1 / frequencies},
    )
    it(
        "positions-of-training",
        "positions past those of training turn as the last of them does",
        {"rotation": changes.ends_with_training},
        "PROPERTIES RO9; a gather that clamps",
    )
    it(
        "past-training-alone",
        "positions that training had are turned as without a scaling",
        changes.unscaled_where(lambda positions, scaling: positions < scaling.get(LENGTH, 0)),
        "the name of original_max_position_embeddings",
    )
    it("queries-alone", "queries are turned by scaled frequencies, keys are not", changes.one_alone("q_norm"))


def yarn(fault: Define) -> None:
    def it(name: str, text: str, change: Change, source: str = TIRED) -> None:
        fault(35, f"yarn-{name}", text, change, source)

    it("ignored", "yarn divides no frequency", changes.left_as_they_are("yarn"))
    it("divides-all", "every frequency is divided, as in linear scaling", changes.all_divided("yarn"))
    it(
        "ramp-complement",
        "high frequencies are divided and low ones kept",
        {"ramp": lambda self, *a: 1 - changes.ScaledRope.ramp(self, *a)},
        "https://github.com/Lightning-AI/litgpt/pull/2202",
    )
    it("betas-swapped", "beta_fast and beta_slow are exchanged", changes.swapped("betas"))
    it(
        "betas-ignored",
        "beta_fast is 32 and beta_slow 1, whatever the config says",
        changes.fields_ignored("beta_fast", "beta_slow"),
    )
    it(
        "betas-in-twos",
        "beta_fast and beta_slow are read where a config says both",
        {"betas": changes.both_betas},
        "one condition for two fields",
    )
    it(
        "positions-of-the-model",
        "positions past max_position_embeddings turn as the last of them does",
        changes.ends_with_the_model("yarn"),
        "a table of as many rows",
    )
    it("ends-unrounded", "the ends of the ramp are not rounded to pairs", {"rounds": lambda self, scaling: False})
    it("ramp-of-features", "the ramp counts features, where it should count pairs", {"ramp": changes.ramp_of_features})
    it(
        "ramp-within-pairs",
        "a ramp that ends past the last pair ends there",
        {"ramp": changes.ramp_within_pairs},
        "https://github.com/Lightning-AI/litgpt/pull/2202",
    )
    it(
        "ramp-from-before",
        "a ramp that begins before the first pair has risen there",
        {"ramp": changes.ramp_from_before},
    )
    it(
        "ramp-of-the-default-base",
        "the ends of the ramp are those of a base of 10,000",
        {"turning": changes.of_the_default_base},
        "the default of a parameter",
    )
    it(
        "keeps-those-of-a-larger-base",
        "what is kept of frequencies is of the larger base of NTK-aware scaling",
        {"yarn": changes.of_a_larger_base_in_parts},
        "https://github.com/paiml/aprender/pull/2161",
    )
    it(
        "length-of-the-model",
        "the positions of training are max_position_embeddings",
        {"original": changes.length_of_the_model},
        "https://github.com/NVIDIA/Megatron-LM/issues/1418",
    )
    it(
        "factor-of-lengths",
        "the factor is max_position_embeddings over original_max_position_embeddings, whatever the config says",
        {"scaling": changes.factor_of_lengths},
        f"{TRANSFORMERS}/issues/38224",
    )
    it(
        "positions-of-training",
        "positions past those of training turn as the last of them does",
        {"rotation": changes.ends_with_training},
        "PROPERTIES RO9; a gather that clamps",
    )
    it(
        "past-training-alone",
        "positions that training had are turned as without a scaling",
        changes.unscaled_where(lambda positions, scaling: positions < scaling.get(LENGTH, 0)),
    )
    it(
        "queries-and-keys-as-they-are",
        "queries and keys are not multiplied by the attention factor",
        {"attention_factor": lambda self, config: 1.0},
    )
    it(
        "queries-multiplied",
        "queries are multiplied by the attention factor, keys are not",
        {"placed": changes.queries_multiplied},
    )
    it(
        "multiplied-twice",
        "the attention factor multiplies queries and keys, and their products as well",
        {"attention_factor": lambda self, config: changes.ScaledRope.attention_factor(self, config) ** 2},
        "the kind of https://github.com/guoqingbao/xinfer/pull/329",
    )
    it(
        "divides-by-a-power",
        "the factor multiplies the base, so that each pair is divided by another power of it",
        {"mixed": changes.divided_by_a_power},
        "https://github.com/apache/tvm/pull/18576",
    )
    it("decimal-logarithm", "the attention factor has the logarithm to base 10", {"of_factor": changes.decimal})


def fields_of_yarn(fault: Define) -> None:
    def it(name: str, text: str, change: Change, source: str = TIRED) -> None:
        fault(36, f"yarn-{name}", text, change, source)

    it(
        "attention-factor-ignored",
        "an attention_factor of the config is not read",
        changes.fields_ignored("attention_factor"),
        "https://github.com/ml-explore/mlx-lm/pull/1507; https://github.com/vllm-project/vllm/pull/46280",
    )
    it(
        "attention-factor-besides",
        "an attention_factor multiplies what would be computed without it",
        {"attention_factor": changes.attention_factor_besides},
        "https://github.com/sgl-project/sglang/pull/33558; the attn_factor of vllm",
    )
    it(
        "attention-factor-as-mscale",
        "an attention_factor is taken for an mscale: 0.1 times it times the logarithm of the factor, and 1",
        {"attention_factor": changes.attention_factor_as_mscale},
        "https://github.com/NVIDIA/TensorRT-LLM/pull/16379",
    )
    it(
        "mscales-ignored",
        "mscale and mscale_all_dim are not read",
        changes.fields_ignored("mscale", "mscale_all_dim"),
        "https://github.com/sgl-project/sglang/pull/22711",
    )
    it(
        "mscale-alone",
        "the attention factor is that of mscale, not over that of mscale_all_dim",
        changes.temperature_of(lambda self, factor, over, under: self.of_factor(factor, over or 1)),
        "https://github.com/turboderp-org/exllamav3/issues/259",
    )
    it(
        "mscale-all-dim-alone",
        "the attention factor is that of mscale_all_dim, which is for what the scale of attention is multiplied by",
        changes.temperature_of(lambda self, factor, over, under: self.of_factor(factor, under or 1)),
        "https://github.com/kekzl/imp/pull/880",
    )
    it(
        "mscales-divided",
        "the attention factor is that of mscale over mscale_all_dim",
        changes.temperature_of(_of_quotient),
    )
    it(
        "truncate-ignored",
        "the ends of the ramp are rounded, whatever the config says",
        changes.fields_ignored("truncate"),
    )


def _of_quotient(self: Any, factor: float, over: Any, under: Any) -> float:
    return self.of_factor(factor, over / under if over and under else 1)


def first_layers(fault: Define) -> None:
    for number, kind in ((33, "linear"), (34, "llama3"), (35, "yarn")):
        fault(
            number,
            f"{kind}-of-the-first-layer",
            f"the first layer takes the kind {kind} out of the config, and those after it find none",
            changes.of_the_first_layer(_is_of(kind)),
            "a pop",
        )


def _is_of(kind: str) -> Callable[[Mapping[str, Any]], bool]:
    return lambda scaling: scaling.get("rope_type") == kind


def places(fault: Define) -> None:
    fault(
        37,
        "scaling-of-rope-parameters-ignored",
        "rope_parameters is not read for a scaling",
        changes.scaling_of("rope_scaling"),
        "mlx-lm's llama.py",
    )
    fault(
        37,
        "scaling-beside-rope-theta-ignored",
        "rope_scaling is not read for a scaling",
        changes.scaling_of("rope_parameters"),
    )
    fault(
        37,
        "scaling-under-type-ignored",
        "the kind of a rope_scaling is read under rope_type alone",
        changes.scaling_of("rope_parameters", "rope_scaling", keys=("rope_type",)),
    )
    fault(
        37,
        "scaling-under-rope-type-ignored",
        "the kind of a rope_scaling is read under type alone",
        changes.scaling_of("rope_parameters", "rope_scaling", keys=("type",)),
        "https://github.com/lablup/mlxcel/issues/1355",
    )
    fault(
        37,
        "scaled-in-every-place",
        "a scaling in rope_parameters and in rope_scaling counts twice",
        {"rescaled": changes.of_every_place},
    )
    fault(
        37,
        "null-beside-scaling",
        "rope_scaling is read wherever it is there, null too, and rope_parameters where it is not",
        {"scaling": changes.of_the_first_place},
        "a get with a default",
    )
    fault(
        37,
        "other-fields-of-scaling-refused",
        "a rope_scaling with a field that is not known is refused",
        changes.guarded_too(lambda config, scaling: "finetuned is not known" if "finetuned" in scaling else ""),
        "https://github.com/ShmuelRonen/ComfyUI_ChatterBox_Voice/issues/1",
    )
    fault(
        37,
        "two-places-refused",
        "a config with rope_parameters and rope_scaling is refused",
        changes.guarded_too(
            lambda config, scaling: (
                "there are two scalings" if scaling and config.keys() >= {"rope_scaling", "rope_parameters"} else ""
            )
        ),
    )
    fault(
        37,
        "base-of-scaled-ignored",
        "the base of a scaled RoPE is not read: it is 10,000",
        {"theta": changes.base_of_unscaled},
    )
    fault(
        37,
        "whole-numbers-refused",
        "a factor of 8 is refused, which is no 8.0",
        changes.guarded_too(
            lambda config, scaling: "factor is no float" if isinstance(scaling.get("factor"), int) else ""
        ),
        "a parser that knows types",
    )
    fault(
        37,
        "length-with-a-point-refused",
        "an original_max_position_embeddings of 8192.0 is refused, which is no 8192",
        changes.guarded_too(
            lambda config, scaling: f"{LENGTH} is no int" if isinstance(scaling.get(LENGTH), float) else ""
        ),
        "https://github.com/turboderp-org/exllamav3/issues/259",
    )
    fault(
        37,
        "length-with-a-point-unscaled",
        "where original_max_position_embeddings is 8192.0 and not 8192, RoPE is not scaled",
        {"scaling": changes.unscaled_with_a_point},
        "the kind of https://github.com/ml-explore/mlx-swift-lm/issues/110",
    )


def refusals(fault: Define) -> None:
    fault(
        38,
        "factor-assumed",
        "a factor that is missing is 1",
        changes.assumed({"factor": 1.0}),
        "a default of a field",
    )
    fault(38, "factor-unnamed", "the error does not say that a factor is missing", changes.unnamed("guard_needed"))
    fault(39, "numbers-unchecked", "numbers of a scaling may be 0 and below", unguarded("guard_numbers"))
    fault(39, "bands-unchecked", "bands may be in any order", unguarded("guard_bands"))
    fault(
        39,
        "bands-assumed",
        "a low_freq_factor that is missing is 1, a high_freq_factor 4",
        changes.assumed(dict(zip(BANDS, (1.0, 4.0), strict=True))),
        "mlx-lm's rope_utils.py",
    )
    fault(39, "numbers-unnamed", "the error does not say which number is bad", changes.unnamed("guard_numbers"))


def cached(fault: Define) -> None:
    fault(
        40,
        "prompts-unscaled",
        "chunks of several tokens are turned as without a scaling, single tokens are scaled",
        changes.unscaled_where(lambda positions, scaling: len(positions) > 1),
        "https://github.com/Xilinx/mlir-air/pull/1948",
    )
    fault(
        40,
        "tokens-unscaled",
        "single tokens are turned as without a scaling",
        changes.unscaled_where(lambda positions, scaling: len(positions) == 1),
    )
    fault(
        40,
        "yarn-tokens-as-they-are",
        "single tokens are turned as yarn says, and not multiplied by its attention factor",
        {"rotation": changes.tokens_as_they_are},
    )


def variants(name: str, prefix: str) -> tuple[Variant, ...]:
    """Other honest ways to scale RoPE."""
    return tuple(
        Variant(f"{prefix}-{way}{suffix}", text, operation, change)
        for operation, suffix in ((name, ""), (f"{name}.incremental", "-incremental"))
        for way, text, change in (
            (
                "scales-periods-in-float32",
                "scaled frequencies are made of their inverses, in float32",
                {"rescaled": changes.scaled_in_float32},
            ),
            ("ramp-without-an-end", "yarn's ramp may end past the last feature", {"ramp": changes.ramp_without_an_end}),
            ("factor-in-the-scale", "yarn's factor is in the scale of attention, squared", changes.in_the_scale()),
        )
    )
