"""Does an implementation load models as the contract says, and are trained ones what transformers and mlx-lm say?"""

from functools import partial

import numpy as np

from inferspec.conformance.decoders import (
    DEFAULT_ROPE,
    UNSCALED_GGUF,
    as_mlx_lm_writes,
    is_not_taken_for,
    misshaped,
    of_six_tokens,
    refuses_naming,
    with_additional,
    with_all_that_is_said,
    with_another_head,
    with_config,
    with_loud_stream,
    with_rope_factors,
    with_scaled_rope,
    with_scaled_rope_parameters,
    with_small_projections,
    without,
    without_a_layer,
    without_fields,
)
from inferspec.conformance.envelope import OutsideEnvelope, narrow
from inferspec.conformance.inputs.loading import (
    damaged_calls,
    folder_calls,
    gguf_calls,
    in_dtype,
    packaged,
    trained,
)
from inferspec.conformance.properties import bit_equal, claimed, refuses, returns
from inferspec.conformance.strategies import among, fractions
from inferspec.conformance.suite import requirement
from inferspec.conformance.trial import Nonconformance
from inferspec.golden import models
from inferspec.spec import loading as spec
from inferspec.spec.contract import Answer
from inferspec.spec.numerics import MODEL_LOGITS, Precision, f64

SCALED_HEADS = [(4, 2), (3, 1), (2, 2)]
SHARES = fractions
"""Which of some things, as a share of the way through them."""

FOLDERS = ["folder", "sharded"]
PAST_THE_MODEL = tuple(f"{name}.weight" for name in ("input_layernorm", "up_proj", "q_norm", "k_norm"))
"""Tensors of a layer too many, or of a relative's."""
BESIDE_OTHERS = (
    "another file",
    "out of order",
    "no metadata",
    "empty metadata",
    "unpadded header",
    "long header",
    "not in ASCII",
    "links",
    "any letters in the path",
)
SHARDED_ANYHOW = (*BESIDE_OTHERS, "shards of any names", "one shard")
PACKED = ["4-bit", "8-bit", "2-bit"]
PLACED = tuple(f"{name}.weight" for name in ("v_proj", "o_proj", "gate_proj", "up_proj", "down_proj", "norm"))
"""Tensors whose rows nothing else decides: those of the embedding are the vocabulary, queries and keys have an order."""
GGUF_FILES = (
    *("aligned to 128", "aligned to 16", "unpadded end", "keys out of order", "few keys"),
    *("keys of other types", "not in ASCII", "links", "many words", "empty texts"),
    *("whole header", "any letters in the path"),
)
RARE_GGUF_FILES = ("data out of order", "numbers of 64 bits")
"""What the format allows, no writer does and llama.cpp refuses."""
NEVER_MISREAD = (*RARE_GGUF_FILES, "aligned to 24")

# folders


@requirement(spec.LOAD_01, call=folder_calls(forms=["folder"], habits=BESIDE_OTHERS), share=0.3)
def test_a_folder_gives_the_model_of_its_files(subject, call):
    subject.agrees(call)


@requirement(spec.LOAD_01, call=folder_calls(forms=["folder"], packing=["dense"]), share=0.2)
def test_what_else_a_config_says_changes_nothing_in_a_folder(subject, call):
    subject.agrees(with_all_that_is_said(call))


@requirement(
    spec.LOAD_01,
    call=folder_calls(forms=FOLDERS, models=["llama"], biases=["attention", "mlp", "both"], biased=True),
    share=0.1,
)
def test_biases_are_loaded(subject, call):
    subject.agrees(call)


@requirement(
    spec.LOAD_01,
    call=folder_calls(forms=["folder"], models=["llama"], packing=["dense"], heads=[(2, 2)], absent=True),
    null=among([False, True]),
    share=0.1,
)
def test_sizes_that_a_config_does_not_say_are_what_follows(subject, call, null):
    plain = without_fields(call, "num_key_value_heads")
    subject.agrees(with_all_that_is_said(plain) if null else plain)


@requirement(spec.LOAD_01, call=folder_calls(forms=["folder"], packing=["dense"], layers=(11, 12)), share=0.1)
def test_more_than_ten_layers_are_in_the_order_of_their_numbers(subject, call):
    subject.agrees(call)


@requirement(
    spec.LOAD_01, call=folder_calls(forms=FOLDERS, packing=["dense"], dtypes=["bfloat16", "float32"]), share=0.06
)
def test_numbers_that_float16_cannot_hold_are_loaded(subject, call):
    subject.agrees(with_loud_stream(call, "embed_tokens"))


@requirement(spec.LOAD_02, call=folder_calls(forms=["sharded"], habits=SHARDED_ANYHOW), share=0.3)
def test_shards_give_the_model_of_all_their_tensors(subject, call):
    subject.agrees(call)


@requirement(spec.LOAD_02, call=folder_calls(forms=["sharded"]), share=0.2)
def test_shards_give_what_one_file_gives(subject, call):
    # To the last bit they need not be equal: where a tensor begins in a mapped file decides how a library multiplies it.
    subject.agrees(call)
    subject.agrees(call.having(form="folder"))


@requirement(
    spec.LOAD_24, call=folder_calls(forms=["sharded"], habits=("names not of models", "a model beside")), share=0.1
)
def test_the_files_that_an_index_names_are_read_and_no_others(subject, call):
    subject.agrees(call)


@requirement(spec.LOAD_24, call=folder_calls(forms=["sharded"], habits=(), layers=(1,)), share=0.06)
def test_the_files_that_an_index_names_are_read_wherever_their_folder_is(subject, call):
    subject.agrees(call.having(written=("brackets in the path",)))


@requirement(spec.LOAD_25, call=folder_calls(forms=["sharded"], habits=()), share=0.1)
def test_a_copy_of_a_tensor_in_another_file_than_the_index_says_is_never_used(subject, call):
    call = call.having(written=("copies elsewhere",))
    if not subject.observe(call).raised:
        subject.agrees(call)


@requirement(spec.LOAD_03, call=folder_calls(forms=FOLDERS), share=0.25)
def test_a_model_computes_in_the_dtype_of_its_files(subject, call):
    tokens, config = call.arguments["tokens"], call.arguments["config"]
    returns(subject, call, (len(tokens), len(tokens[0]), config["vocab_size"]), call.features["dtypes"])


@requirement(
    spec.LOAD_30,
    call=folder_calls(forms=FOLDERS),
    key=among(["torch_dtype", "dtype"]),
    said=among(["float16", "bfloat16", "float32"]),
    share=0.15,
)
def test_another_dtype_in_the_config_than_in_the_files_gives_their_model(subject, call, key, said):
    gives_their_model(subject, call, key, said)


@requirement(
    spec.LOAD_30,
    call=folder_calls(forms=FOLDERS, dtypes=["float16", "bfloat16"]),
    key=among(["torch_dtype", "dtype"]),
    share=0.1,
)
def test_another_dtype_of_as_many_bits_in_the_config_gives_the_model_of_the_files(subject, call, key):
    gives_their_model(subject, call, key, "bfloat16" if call.features["dtypes"] == "float16" else "float16")


@requirement(spec.LOAD_04, call=folder_calls(forms=FOLDERS, tied=[True]), share=0.3)
def test_a_tied_model_has_no_head_of_its_own(subject, call):
    subject.agrees(call)


@requirement(spec.LOAD_04, call=folder_calls(forms=FOLDERS, tied=[True], packing=["dense"], spare=True), share=0.1)
def test_the_files_of_a_tied_model_may_have_its_head_twice(subject, call):
    subject.agrees(call)


@requirement(
    spec.LOAD_04, call=folder_calls(forms=FOLDERS, tied=[True], packing=["dense"], spare=True, layers=(1,)), share=0.06
)
def test_a_head_that_a_tied_model_has_besides_is_not_used(subject, call):
    contradictory = with_another_head(call)
    # Files that are at odds with their config may be refused.
    if not subject.observe(contradictory).raised:
        subject.agrees(contradictory)


@requirement(spec.LOAD_04, call=folder_calls(forms=FOLDERS, tied=[False]), share=0.3)
def test_an_untied_model_uses_its_head(subject, call):
    subject.agrees(call)


@requirement(spec.LOAD_04, call=gguf_calls(forms=["gguf"]), share=0.3)
def test_a_gguf_file_without_a_head_is_tied_and_with_one_is_not(subject, call):
    subject.agrees(call)


@requirement(spec.LOAD_19, call=folder_calls(forms=FOLDERS, tied=[False]), share=0.1)
def test_a_model_that_does_not_say_so_is_not_tied(subject, call):
    subject.agrees(without_fields(call, "tie_word_embeddings"))


@requirement(
    spec.LOAD_20, call=folder_calls(forms=FOLDERS, models=["llama"], packing=["dense"], older=True), share=0.06
)
def test_the_frequencies_of_older_files_are_passed_over(subject, call):
    subject.agrees(call)


@requirement(
    spec.LOAD_20,
    call=folder_calls(forms=["folder"], models=["llama"], packing=["dense"], layers=(11, 12), older=True),
    share=0.02,
)
def test_the_frequencies_of_more_than_ten_layers_are_passed_over(subject, call):
    subject.agrees(call)


@requirement(spec.LOAD_05, call=folder_calls(forms=["folder"], rope=["rope_theta"], packing=["dense"]), share=0.3)
def test_the_base_of_rope_is_rope_theta(subject, call):
    subject.agrees(call)


@requirement(spec.LOAD_05, call=folder_calls(forms=["folder"], rope=["rope_parameters"], packing=["dense"]), share=0.3)
def test_the_base_of_rope_is_that_of_rope_parameters(subject, call):
    subject.agrees(call)


@requirement(
    spec.LOAD_05,
    call=folder_calls(forms=["folder"], models=["llama"], rope=["rope_theta"], packing=["dense"]),
    share=0.1,
)
def test_a_base_of_rope_that_is_absent_is_ten_thousand(subject, call):
    subject.agrees(without_fields(call, "rope_theta"))


@requirement(
    spec.LOAD_05,
    call=folder_calls(forms=["folder"], rope=["rope_theta"], packing=["dense"]),
    said=among(DEFAULT_ROPE),
    share=0.2,
)
def test_a_base_of_rope_may_be_beside_what_says_that_it_is_not_scaled(subject, call, said):
    subject.agrees(with_config(call, **said))


@requirement(spec.LOAD_06, call=folder_calls(forms=FOLDERS, packing=[*PACKED, "mixed"]), share=0.1)
def test_quantised_folders_of_mlx_lm_are_used(subject, call):
    subject.agrees(as_mlx_lm_writes(call))


@requirement(spec.LOAD_06, call=folder_calls(forms=FOLDERS, packing=PACKED), share=0.3)
def test_quantised_folders_are_used_as_they_are_packed(subject, call):
    subject.agrees(call)


@requirement(spec.LOAD_07, call=folder_calls(forms=FOLDERS, packing=["mixed"]), share=0.3)
def test_layers_with_an_entry_of_their_own_are_packed_by_it(subject, call):
    subject.agrees(call)


# GGUF files


@requirement(spec.LOAD_08, call=gguf_calls(forms=["gguf"], habits=GGUF_FILES), share=0.2)
def test_a_gguf_file_may_have_its_keys_in_any_order(subject, call):
    subject.agrees(call)


@requirement(spec.LOAD_08, call=gguf_calls(forms=["gguf"], habits=NEVER_MISREAD), share=0.1)
def test_a_gguf_file_of_a_rare_kind_is_never_misread(subject, call):
    if not subject.observe(call).raised:
        subject.agrees(call)


@requirement(spec.LOAD_29, call=gguf_calls(forms=["gguf"], habits=RARE_GGUF_FILES), share=0.1)
def test_a_gguf_file_may_have_its_data_in_any_order_and_counts_of_64_bits(subject, call):
    subject.agrees(call)


@requirement(spec.LOAD_08, call=gguf_calls(forms=["gguf"], gguf_types=["F32", "F16"]), share=0.3)
def test_a_gguf_file_gives_the_model_of_its_metadata_and_tensors(subject, call):
    subject.agrees(call)


@requirement(
    spec.LOAD_08, call=gguf_calls(forms=["gguf"], gguf_types=["F32", "F16"], layers=(11, 12), habits=()), share=0.03
)
def test_more_than_ten_layers_of_a_gguf_file_are_in_the_order_of_their_numbers(subject, call):
    subject.agrees(call)


@requirement(
    spec.LOAD_08,
    call=gguf_calls(forms=["gguf"], gguf_types=["F32", "F16"], layers=(1,)),
    said=among(UNSCALED_GGUF),
    share=0.06,
)
def test_a_gguf_file_may_say_that_its_rope_is_not_scaled(subject, call, said):
    subject.agrees(with_config(of_six_tokens(call), **said))


@requirement(spec.LOAD_09, call=gguf_calls(forms=["gguf"], models=["llama"]), share=0.3)
def test_a_llama_in_gguf_has_its_query_and_key_rows_put_back(subject, call):
    subject.agrees(call)


@requirement(spec.LOAD_09, call=gguf_calls(forms=["gguf"], models=["qwen3"]), share=0.3)
def test_a_qwen3_in_gguf_keeps_its_rows(subject, call):
    subject.agrees(call)


@requirement(
    spec.LOAD_21,
    call=gguf_calls(
        forms=["gguf"], models=["llama"], gguf_types=["F32", "F16"], biases=["attention", "mlp", "both"], biased=True
    ),
    share=0.2,
)
def test_biases_of_a_llama_in_gguf_are_loaded(subject, call):
    subject.agrees(call)


@requirement(spec.LOAD_10, call=gguf_calls(forms=["gguf"], gguf_types=["Q4_0"]), share=0.3)
def test_blocks_of_four_bits_with_a_scale_are_read(subject, call):
    subject.agrees(call)


@requirement(spec.LOAD_10, call=gguf_calls(forms=["gguf"], gguf_types=["Q4_1", "mixed"]), share=0.25)
def test_blocks_of_four_bits_with_scale_and_minimum_are_read(subject, call):
    subject.agrees(call)


@requirement(spec.LOAD_10, call=gguf_calls(forms=["gguf"], gguf_types=["Q8_0"]), share=0.3)
def test_blocks_of_eight_bits_are_read(subject, call):
    subject.agrees(call)


@requirement(spec.LOAD_10, call=gguf_calls(forms=["gguf"], gguf_types=["Q4_0", "Q4_1", "Q8_0"]), share=0.06)
def test_blocks_of_small_scales_are_read(subject, call):
    subject.agrees(with_small_projections(call))


@requirement(spec.LOAD_08, call=gguf_calls(forms=["gguf"], gguf_types=["F16"]), share=0.06)
def test_small_float16_numbers_of_a_gguf_file_are_read(subject, call):
    subject.agrees(with_small_projections(call))


# what is refused


@requirement(spec.LOAD_11, call=folder_calls(forms=FOLDERS), which=SHARES, share=0.3)
def test_a_missing_tensor_is_refused(subject, call, which):
    refuses(subject, without(call, which)[0])


@requirement(
    spec.LOAD_11,
    call=folder_calls(forms=FOLDERS, packing=["dense"], tied=[False]),
    which=SHARES,
    share=0.06,
)
def test_a_missing_head_is_refused(subject, call, which):
    refuses(subject, without(call, which, "lm_head.weight")[0])


@requirement(
    spec.LOAD_11,
    call=folder_calls(forms=FOLDERS, models=["llama"], biases=["attention", "mlp", "both"], biased=True),
    which=SHARES,
    share=0.06,
)
def test_a_missing_bias_is_refused(subject, call, which):
    refuses(subject, without(call, which, ".bias")[0])


@requirement(spec.LOAD_11, call=folder_calls(forms=["sharded"], habits=(), layers=(1,)), share=0.05)
def test_a_tensor_that_its_shard_lacks_is_refused(subject, call):
    refuses(subject, call.having(damage="no tensor"))


@requirement(spec.LOAD_11, call=folder_calls(forms=FOLDERS, layers=(2, 3)), which=SHARES, share=0.06)
def test_a_missing_layer_is_refused(subject, call, which):
    refuses(subject, without_a_layer(call, which))


@requirement(
    spec.LOAD_11,
    call=gguf_calls(forms=["gguf"], gguf_types=["F32", "F16"]),
    which=SHARES,
    share=0.1,
)
def test_a_tensor_that_a_gguf_file_lacks_is_refused(subject, call, which):
    # Without output.weight the embedding is the head.
    refuses(subject, without(call, which, ("_proj.weight", "norm.weight", "embed_tokens.weight"))[0])


@requirement(spec.LOAD_11, call=gguf_calls(forms=["gguf"], layers=(2, 3)), which=SHARES, share=0.06)
def test_a_layer_that_a_gguf_file_lacks_is_refused(subject, call, which):
    refuses(subject, without_a_layer(call, which))


@requirement(spec.LOAD_12, call=folder_calls(forms=FOLDERS), which=SHARES, share=0.3)
def test_a_tensor_without_a_place_is_refused(subject, call, which):
    refuses(subject, with_additional(call, which)[0])


@requirement(spec.LOAD_28, call=folder_calls(forms=FOLDERS), which=SHARES, share=0.06)
def test_a_missing_tensor_is_named(subject, call, which):
    refuses_naming(subject, *without(call, which))


@requirement(spec.LOAD_28, call=folder_calls(forms=FOLDERS), which=SHARES, share=0.06)
def test_a_tensor_without_a_place_is_named(subject, call, which):
    refuses_naming(subject, *with_additional(call, which))


@requirement(
    spec.LOAD_28,
    call=folder_calls(forms=FOLDERS, packing=["dense"]),
    which=SHARES,
    way=among(["longer", "shorter", "transposed"]),
    share=0.06,
)
def test_a_misshaped_tensor_is_named(subject, call, which, way):
    refuses_naming(subject, *misshaped(call, which, way))


@requirement(spec.LOAD_12, call=gguf_calls(forms=["gguf"], gguf_types=["F32", "F16"]), which=SHARES, share=0.1)
def test_a_tensor_without_a_place_in_a_gguf_file_is_refused(subject, call, which):
    refuses(subject, with_additional(call, which, PAST_THE_MODEL)[0])


@requirement(
    spec.LOAD_13,
    call=folder_calls(forms=FOLDERS, packing=["dense"]),
    which=SHARES,
    way=among(["longer", "shorter", "transposed"]),
    share=0.3,
)
def test_a_misshaped_tensor_is_refused(subject, call, which, way):
    refuses(subject, misshaped(call, which, way)[0])


@requirement(
    spec.LOAD_13,
    call=folder_calls(forms=FOLDERS, packing=["dense"], layers=(1,)),
    which=SHARES,
    way=among(["single", "wider"]),
    share=0.06,
)
def test_a_tensor_that_only_fits_when_it_is_repeated_or_cut_is_refused(subject, call, which, way):
    refuses(subject, misshaped(call, which, way)[0])


@requirement(
    spec.LOAD_13,
    call=folder_calls(forms=FOLDERS, models=["llama"], biases=["attention", "mlp", "both"], biased=True),
    which=SHARES,
    way=among(["longer", "shorter"]),
    share=0.06,
)
def test_a_misshaped_bias_is_refused(subject, call, which, way):
    refuses(subject, misshaped(call, which, way, ".bias")[0])


@requirement(
    spec.LOAD_13,
    call=folder_calls(forms=FOLDERS, packing=PACKED),
    which=SHARES,
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
    which=SHARES,
    way=among(["longer", "shorter", "transposed"]),
    share=0.1,
)
def test_a_misshaped_tensor_of_a_gguf_file_is_refused(subject, call, which, way):
    refuses(subject, misshaped(call, which, way, PLACED)[0])


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
    share=0.06,
)
def test_an_unknown_architecture_of_a_gguf_file_is_refused(subject, call, kind):
    refuses(subject, with_config(call, model_type=kind))


@requirement(
    spec.LOAD_22,
    call=folder_calls(forms=["folder"], rope=["rope_theta"], packing=["dense"]),
    key=among(["rope_type", "type"]),
    kind=among(["linear", "yarn", "llama3", "unheard-of"]),
    share=0.06,
)
def test_scaled_rope_of_a_config_is_not_taken_for_the_default(subject, call, key, kind):
    plain = of_six_tokens(call)
    is_not_taken_for(subject, plain, with_scaled_rope(plain, key, kind), f"{key} {kind!r} is taken for the default")


@requirement(
    spec.LOAD_22,
    call=folder_calls(forms=["folder"], rope=["rope_parameters"], packing=["dense"]),
    kind=among(["linear", "yarn", "llama3", "unheard-of"]),
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
    share=0.03,
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
    share=0.06,
)
def test_a_factor_without_a_kind_in_a_gguf_file_is_not_passed_over(subject, call, said):
    plain = of_six_tokens(call)
    is_not_taken_for(subject, plain, with_config(plain, **said), f"{said} is passed over")


@requirement(
    spec.LOAD_26,
    call=folder_calls(forms=["folder"], packing=["dense"], heads=SCALED_HEADS, layers=(1,), scaled=True),
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
    call=gguf_calls(forms=["gguf"], gguf_types=["F32", "F16"], models=["llama"], layers=(1,), scaled=("factors",)),
    share=0.12,
)
def test_frequencies_that_a_gguf_file_divides_are_right_or_refused(subject, call):
    is_right_or_refused(subject, call, "gguf_rope")


@requirement(spec.LOAD_15, call=damaged_calls(forms=FOLDERS), share=0.5)
def test_folders_that_are_not_whole_are_refused(subject, call):
    refuses(subject, call)


@requirement(spec.LOAD_15, call=damaged_calls(forms=["gguf"]), share=0.3)
def test_gguf_files_that_are_not_whole_are_refused(subject, call):
    refuses(subject, call)


@requirement(spec.LOAD_16, call=folder_calls(forms=["folder"], packing=["dense"]), share=0.2)
def test_a_model_loaded_before_from_the_same_path_changes_nothing(subject, call):
    other = {name: -x for name, x in call.arguments["weights"].items()}
    before = subject.agrees(call)
    subject.agrees(call.having(weights=other))
    # Loading may draw initial weights, so the random state is its own affair.
    if not bit_equal(before, subject.agrees(call)):
        raise Nonconformance("loaded again after another model, it gives other logits", call)


@requirement(
    spec.LOAD_16,
    call=folder_calls(forms=FOLDERS, packing=["dense"], layers=(1, 2)),
    other=folder_calls(forms=["folder"], packing=["dense"], layers=(1,)),
    share=0.06,
)
def test_a_model_that_is_loaded_after_it_changes_nothing(subject, call, other):
    config, weights = call.arguments["config"], call.arguments["weights"]
    subject.agrees(call.having(beside={"config": config, "weights": {name: -x for name, x in weights.items()}}))
    # One of another shape perhaps, whose vocabulary has the same ids.
    if other.arguments["config"]["vocab_size"] >= config["vocab_size"]:
        subject.agrees(call.having(beside={name: other.arguments[name] for name in ("config", "weights")}))


@requirement(
    spec.LOAD_23,
    call=folder_calls(forms=FOLDERS, packing=["dense"], layers=(1, 2)),
    other=folder_calls(forms=["folder"], packing=["dense"], layers=(1,)),
    share=0.06,
)
def test_a_model_that_was_asked_before_answers_as_at_first(subject, call, other):
    tokens, vocabulary = call.arguments["tokens"], call.arguments["config"]["vocab_size"]
    before = [[token % vocabulary for token in row] for row in other.arguments["tokens"]]
    # Others, of another shape perhaps, and as many of the same shape.
    subject.agrees(call.having(asked=(before, [row[::-1] for row in tokens])))


# trained models


@requirement(spec.LOAD_17)
def test_trained_models_give_the_logits_of_transformers(subject):
    for name, call in _claimed(subject, "trained", partial(trained, dtype="float32")):
        _gives_the_goldens(subject, name, call)


@requirement(spec.LOAD_17)
def test_trained_models_say_the_same_in_the_dtype_of_their_files(subject):
    for name, call in _claimed(subject, "trained", trained):
        _says_the_same(subject, name, call)


@requirement(spec.LOAD_18)
def test_smollm2_gives_the_logits_of_transformers(subject):
    narrow(subject.envelope, {"forms": ["gguf"]})
    for name, call in _claimed(subject, "packaged", packaged):
        # One prompt: a pass of 135 million parameters takes seconds. `inferspec golden check` asks all of them.
        _gives_the_goldens(subject, name, call, prompts=1)


def gives_their_model(subject, call, key, said):
    """The logits are those of the files' tensors, in their dtype or in the one that the config says."""
    said = claimed(subject, "dtypes", said, ["float16", "bfloat16", "float32"])
    call = with_config(call, **{key: said})
    got = subject.value(call)
    computed = in_dtype(call, said) if got.dtype.name == said else call
    subject.compare(computed, got, subject.answer(computed, Precision.FLOAT32))


def is_right_or_refused(subject, call, key):
    """Who claims what the call has of this key of the envelope does not refuse it."""
    if call.features[key] in subject.envelope[key] or not subject.observe(call).raised:
        subject.agrees(call)


def _claimed(subject, key, made):
    """The trained models that the subject claims, by name, with the call that loads each; none that has anything else that it
    does not claim."""
    if not subject.envelope[key]:
        raise OutsideEnvelope(f"{key} {list(subject.contract.envelope[key])} has nothing that is claimed")
    calls = {name: made(name) for name in subject.envelope[key]}
    beyond = {name: _beyond(subject, call) for name, call in calls.items()}
    if all(beyond.values()):
        raise OutsideEnvelope("; ".join(f"{name} has {', '.join(found)}" for name, found in beyond.items()))
    return [(name, call) for name, call in calls.items() if not beyond[name]]


def _beyond(subject, call):
    """What a call has that the subject does not claim."""
    return [f"{key} {value!r}" for key, value in call.features.items() if value not in subject.envelope[key]]


def _gives_the_goldens(subject, name, call, prompts=None):
    """Logits of the prompts within `MODEL_LOGITS` of the largest one, and the greedy text."""
    golden = models.read(name)
    for prompt in golden.prompts[:prompts]:
        asked = call.having(tokens=(prompt.read,))
        logits = subject.value(asked)
        vocabulary = call.arguments["config"]["vocab_size"]
        if logits.shape != (1, len(prompt.read), vocabulary):
            raise Nonconformance(f"the logits are {list(logits.shape)}", asked)
        budget = MODEL_LOGITS * np.abs(prompt.last).max()
        for got, stored in (
            (logits[0, len(prompt.ids) - 1], prompt.last),
            (logits[0][:, golden.columns], prompt.columns),
        ):
            subject.compare(asked, got, Answer(f64(stored), np.full(stored.shape, budget)), name="golden")
        _greedy(asked, logits, prompt)


def _says_the_same(subject, name, call):
    for prompt in models.read(name).prompts:
        asked = call.having(tokens=(prompt.read,))
        _greedy(asked, subject.value(asked), prompt)


def _greedy(call, logits, prompt):
    """Every token of the greedy text is the most likely one after the text before it."""
    said = logits[0, len(prompt.ids) - 1 :].astype(np.float32).argmax(axis=-1)
    if (wrong := np.flatnonzero(said != np.array(prompt.greedy))).size:
        place = int(wrong[0])
        raise Nonconformance(
            f"prompt {prompt.name}: token {place} of the greedy text is {said[place]}, not {prompt.greedy[place]}", call
        )
