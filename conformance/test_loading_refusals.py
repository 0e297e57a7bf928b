"""Does an implementation refuse to load what it cannot load rightly?"""

from inferspec.conformance.checkpoints.folders import GROWN
from inferspec.conformance.inputs.loading import FOLDERS, PACKED, damaged_calls, folder_calls, gguf_calls
from inferspec.conformance.properties.common import refuses
from inferspec.conformance.properties.decoder import is_not_taken_for, refuses_naming
from inferspec.conformance.properties.decoder_calls import (
    misshaped,
    of_six_tokens,
    with_additional,
    with_config,
    with_rope_factors,
    with_scaled_rope,
    with_scaled_rope_parameters,
    without,
    without_a_layer,
)
from inferspec.conformance.strategies import among, fractions
from inferspec.conformance.suite import requirement
from inferspec.spec import loading as spec

SCALED_HEADS = [(4, 2), (3, 1), (2, 2)]
"""Which of some things, as a share of the way through them."""

PAST_THE_MODEL = tuple(f"{name}.weight" for name in ("input_layernorm", "up_proj", "q_norm", "k_norm"))
"""Tensors of a layer too many, or of a relative's."""

PLACED = tuple(f"{name}.weight" for name in ("v_proj", "o_proj", "gate_proj", "up_proj", "down_proj", "norm"))
"""Tensors whose rows nothing else decides: those of the embedding are the vocabulary, queries and keys have an order."""


@requirement(spec.LOAD_11, call=folder_calls(forms=FOLDERS), which=fractions, share=0.3)
def test_a_missing_tensor_is_refused(subject, call, which):
    refuses(subject, without(call, which)[0])


@requirement(
    spec.LOAD_11,
    call=folder_calls(forms=FOLDERS, packing=["dense"], tied=[False]),
    which=fractions,
    share=0.06,
)
def test_a_missing_head_is_refused(subject, call, which):
    refuses(subject, without(call, which, "lm_head.weight")[0])


@requirement(
    spec.LOAD_11,
    call=folder_calls(forms=FOLDERS, models=["llama"], biases=["attention", "mlp", "both"], biased=True),
    which=fractions,
    share=0.06,
)
def test_a_missing_bias_is_refused(subject, call, which):
    refuses(subject, without(call, which, ".bias")[0])


@requirement(spec.LOAD_11, call=folder_calls(forms=["sharded"], habits=(), layers=(1,)), share=0.05)
def test_a_tensor_that_its_shard_lacks_is_refused(subject, call):
    refuses(subject, call.having(damage="no tensor"))


@requirement(spec.LOAD_11, call=folder_calls(forms=FOLDERS, layers=(2, 3)), which=fractions, share=0.06)
def test_a_missing_layer_is_refused(subject, call, which):
    refuses(subject, without_a_layer(call, which))


@requirement(
    spec.LOAD_11,
    call=gguf_calls(forms=["gguf"], gguf_types=["F32", "F16"]),
    which=fractions,
    share=0.15,
)
def test_a_tensor_that_a_gguf_file_lacks_is_refused(subject, call, which):
    # Without output.weight the embedding is the head.
    refuses(subject, without(call, which, ("_proj.weight", "norm.weight", "embed_tokens.weight"))[0])


@requirement(spec.LOAD_11, call=gguf_calls(forms=["gguf"], layers=(2, 3)), which=fractions, share=0.06)
def test_a_layer_that_a_gguf_file_lacks_is_refused(subject, call, which):
    refuses(subject, without_a_layer(call, which))


@requirement(spec.LOAD_12, call=folder_calls(forms=FOLDERS), which=fractions, share=0.3)
def test_a_tensor_without_a_place_is_refused(subject, call, which):
    refuses(subject, with_additional(call, which)[0])


@requirement(spec.LOAD_28, call=folder_calls(forms=FOLDERS), which=fractions, share=0.06)
def test_a_missing_tensor_is_named(subject, call, which):
    refuses_naming(subject, *without(call, which))


@requirement(spec.LOAD_28, call=folder_calls(forms=FOLDERS), which=fractions, share=0.06)
def test_a_tensor_without_a_place_is_named(subject, call, which):
    refuses_naming(subject, *with_additional(call, which))


@requirement(
    spec.LOAD_28,
    call=folder_calls(forms=FOLDERS, packing=["dense"]),
    which=fractions,
    way=among(["longer", "shorter", "transposed"]),
    share=0.06,
)
def test_a_misshaped_tensor_is_named(subject, call, which, way):
    refuses_naming(subject, *misshaped(call, which, way))


@requirement(spec.LOAD_12, call=gguf_calls(forms=["gguf"], gguf_types=["F32", "F16"]), which=fractions, share=0.1)
def test_a_tensor_without_a_place_in_a_gguf_file_is_refused(subject, call, which):
    refuses(subject, with_additional(call, which, PAST_THE_MODEL)[0])


@requirement(
    spec.LOAD_12,
    call=gguf_calls(forms=["gguf"], gguf_types=["Q4_0", "Q8_0", "Q4_1", "mixed"], layers=(1,)),
    which=fractions,
    share=0.04,
)
def test_a_tensor_without_a_place_beside_blocks_of_a_gguf_file_is_refused(subject, call, which):
    refuses(subject, with_additional(call, which, PAST_THE_MODEL)[0])


@requirement(
    spec.LOAD_13,
    call=folder_calls(forms=FOLDERS, packing=["dense"]),
    which=fractions,
    way=among(["longer", "shorter", "transposed"]),
    share=0.3,
)
def test_a_misshaped_tensor_is_refused(subject, call, which, way):
    refuses(subject, misshaped(call, which, way)[0])


@requirement(
    spec.LOAD_13,
    call=folder_calls(forms=FOLDERS, packing=["dense"], layers=(1,)),
    which=fractions,
    way=among(["single", "wider"]),
    share=0.15,
)
def test_a_tensor_that_only_fits_when_it_is_repeated_or_cut_is_refused(subject, call, which, way):
    refuses(subject, misshaped(call, which, way)[0])


@requirement(
    spec.LOAD_13,
    call=folder_calls(forms=FOLDERS, models=["llama"], biases=["attention", "mlp", "both"], biased=True),
    which=fractions,
    way=among(["longer", "shorter"]),
    share=0.06,
)
def test_a_misshaped_bias_is_refused(subject, call, which, way):
    refuses(subject, misshaped(call, which, way, ".bias")[0])


@requirement(
    spec.LOAD_13,
    call=folder_calls(forms=FOLDERS, packing=PACKED),
    which=fractions,
    part=among([".weight", ".scales", ".biases"]),
    way=among(["longer", "shorter"]),
    share=0.15,
)
def test_a_misshaped_tensor_of_a_quantised_model_is_refused(subject, call, which, part, way):
    refuses(subject, misshaped(call, which, way, part)[0])


@requirement(
    spec.LOAD_13,
    call=gguf_calls(forms=["gguf"], gguf_types=["F32", "F16"], models=["llama"], layers=(1,)),
    many=among(["one more", "one", "one fewer", "twice as many"]),
    share=0.06,
)
def test_factors_that_are_not_one_for_each_frequency_of_a_gguf_file_are_refused(subject, call, many):
    refuses(subject, with_rope_factors(call, many))


@requirement(
    spec.LOAD_13,
    call=gguf_calls(forms=["gguf"], gguf_types=["F32", "F16"]),
    which=fractions,
    way=among(["longer", "shorter", "transposed"]),
    share=0.1,
)
def test_a_misshaped_tensor_of_a_gguf_file_is_refused(subject, call, which, way):
    refuses(subject, misshaped(call, which, way, PLACED)[0])


@requirement(
    spec.LOAD_13,
    call=gguf_calls(forms=["gguf"], gguf_types=["F32", "F16"], tied=[False]),
    which=fractions,
    way=among(["longer", "shorter", "transposed"]),
    share=0.05,
)
def test_a_misshaped_head_of_a_gguf_file_is_refused(subject, call, which, way):
    refuses(subject, misshaped(call, which, way, "lm_head.weight")[0])


@requirement(
    spec.LOAD_14,
    call=folder_calls(forms=["folder"], packing=["dense"]),
    kind=among(["a_model_of_next_year", "llama5", "qwen3_moe", "llama4_text", "", None]),
    share=0.3,
)
def test_an_unknown_model_type_is_refused(subject, call, kind):
    refuses(subject, with_config(call, model_type=kind))


@requirement(
    spec.LOAD_14,
    call=gguf_calls(forms=["gguf"], gguf_types=["F32", "F16"]),
    kind=among(["a_model_of_next_year", "gpt2", "llama5", "qwen3moe", "llama4"]),
    share=0.15,
)
def test_an_unknown_architecture_of_a_gguf_file_is_refused(subject, call, kind):
    refuses(subject, with_config(call, model_type=kind))


@requirement(
    spec.LOAD_22,
    call=folder_calls(forms=["folder"], rope=["rope_theta"], packing=["dense"]),
    key=among(["rope_type", "type"]),
    kind=among(["linear", "yarn", "llama3", "unheard-of", "dynamic", "longrope"]),
    share=0.06,
)
def test_scaled_rope_of_a_config_is_not_taken_for_the_default(subject, call, key, kind):
    plain = of_six_tokens(call)
    is_not_taken_for(subject, plain, with_scaled_rope(plain, key, kind), f"{key} {kind!r} is taken for the default")


@requirement(
    spec.LOAD_22,
    call=folder_calls(forms=["folder"], rope=["rope_parameters"], packing=["dense"]),
    kind=among(["linear", "yarn", "llama3", "unheard-of", "dynamic", "longrope"]),
    share=0.06,
)
def test_scaled_rope_parameters_are_not_taken_for_the_default(subject, call, kind):
    plain = of_six_tokens(call)
    is_not_taken_for(subject, plain, with_scaled_rope_parameters(plain, kind), f"{kind!r} is taken for the default")


@requirement(spec.LOAD_22, call=gguf_calls(forms=["gguf"], gguf_types=["F32", "F16"], models=["llama"]), share=0.06)
def test_factors_of_the_frequencies_in_a_gguf_file_are_not_passed_over(subject, call):
    plain = of_six_tokens(call)
    is_not_taken_for(subject, plain, with_rope_factors(plain), "rope_freqs.weight is passed over")


@requirement(
    spec.LOAD_22,
    call=gguf_calls(forms=["gguf"], gguf_types=["F32", "F16"], models=["qwen3"], layers=(1,)),
    share=0.04,
)
def test_factors_of_the_frequencies_of_a_qwen3_in_a_gguf_file_are_not_passed_over(subject, call):
    # None is known to have them: to refuse them is as good as to use them.
    plain = of_six_tokens(call)
    is_not_taken_for(subject, plain, with_rope_factors(plain), "rope_freqs.weight is passed over")


@requirement(
    spec.LOAD_22,
    call=gguf_calls(forms=["gguf"], gguf_types=["F32", "F16"]),
    kind=among(["linear", "yarn", "unheard-of"]),
    share=0.06,
)
def test_scaled_rope_of_a_gguf_file_is_not_taken_for_the_default(subject, call, kind):
    scaling, plain = {"type": kind, "factor": 8.0, "original_context_length": 8}, of_six_tokens(call)
    is_not_taken_for(subject, plain, with_config(plain, rope_scaling=scaling), f"{kind!r} is taken for the default")


@requirement(
    spec.LOAD_22,
    call=gguf_calls(forms=["gguf"], gguf_types=["F32", "F16"]),
    said=among([{"rope_scaling": {"factor": 8.0}}, {"rope_scale_linear": 8.0}]),
    share=0.09,
)
def test_a_factor_without_a_kind_in_a_gguf_file_is_not_passed_over(subject, call, said):
    plain = of_six_tokens(call)
    is_not_taken_for(subject, plain, with_config(plain, **said), f"{said} is passed over")


@requirement(
    spec.LOAD_26,
    call=folder_calls(forms=["folder"], packing=["dense"], heads=SCALED_HEADS, layers=(1, 2), scaled=True),
    share=0.2,
)
def test_a_scaled_rope_of_a_config_is_right_or_refused(subject, call):
    is_right_or_refused(subject, call, "rope_types")


@requirement(
    spec.LOAD_27,
    call=gguf_calls(forms=["gguf"], gguf_types=["F32", "F16"], layers=(1,), scaled=("linear", "yarn")),
    share=0.2,
)
def test_a_scaled_rope_of_a_gguf_file_is_right_or_refused(subject, call):
    is_right_or_refused(subject, call, "gguf_rope")


@requirement(
    spec.LOAD_27,
    call=gguf_calls(forms=["gguf"], gguf_types=["F32", "F16"], models=["llama"], layers=(2, 1), scaled=("factors",)),
    share=0.12,
)
def test_frequencies_that_a_gguf_file_divides_are_right_or_refused(subject, call):
    is_right_or_refused(subject, call, "gguf_rope")


@requirement(spec.LOAD_15, call=damaged_calls(forms=FOLDERS), share=0.5)
def test_folders_that_are_not_whole_are_refused(subject, call):
    refuses(subject, call)


@requirement(spec.LOAD_15, call=folder_calls(forms=FOLDERS, habits=(), layers=(1,)), share=0.03)
def test_a_tensor_that_has_too_few_bytes_before_others_is_refused(subject, call):
    refuses(subject, call.having(damage="few data within"))


@requirement(spec.LOAD_15, call=damaged_calls(forms=["gguf"]), share=0.3)
def test_gguf_files_that_are_not_whole_are_refused(subject, call):
    refuses(subject, call)


@requirement(
    spec.LOAD_15,
    call=gguf_calls(forms=["gguf"], gguf_types=["F32", "F16"], habits=(), layers=(1,)),
    share=0.03,
)
def test_a_gguf_file_with_a_text_or_a_list_that_is_longer_than_itself_is_refused(subject, call):
    for damage in GROWN:
        refuses(subject, call.having(damage=damage))


def is_right_or_refused(subject, call, key):
    """Who claims what the call has of this key of the envelope does not refuse it."""
    if call.features[key] in subject.envelope[key] or not subject.observe(call).raised:
        subject.agrees(call)
