"""Does an implementation load models as the contract says?"""

from inferspec.conformance.inputs.loading import FOLDERS, PACKED, folder_calls, gguf_calls, in_dtype
from inferspec.conformance.judging.trial import Nonconformance
from inferspec.conformance.properties.common import bit_equal, claimed, goes_on_after_a_refused_call, returns
from inferspec.conformance.properties.decoder_calls import (
    DEFAULT_ROPE,
    FAR_PAST_FLOAT16,
    UNSCALED_GGUF,
    as_mlx_lm_writes,
    as_older_mlx_lm_writes,
    of_six_tokens,
    with_all_that_is_said,
    with_another_head,
    with_config,
    with_loud,
    with_small_projections,
    without_fields,
)
from inferspec.conformance.strategies import among
from inferspec.conformance.suite import requirement
from inferspec.spec import loading as spec
from inferspec.spec.numerics import Precision

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
    "a checkpoint below",
)
SHARDED_ANYHOW = (*BESIDE_OTHERS, "shards of any names", "one shard", "index without sizes")

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


@requirement(spec.LOAD_01, call=folder_calls(forms=FOLDERS, packing=["dense"], habits=(), layers=(1,)), share=0.03)
def test_a_gguf_file_beside_a_model_is_none_of_its_files(subject, call):
    subject.agrees(call.having(written=("a GGUF file beside",)))


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
    share=0.15,
)
def test_sizes_that_a_config_does_not_say_are_what_follows(subject, call, null):
    plain = without_fields(call, "num_key_value_heads")
    subject.agrees(with_all_that_is_said(plain) if null else plain)


@requirement(spec.LOAD_01, call=folder_calls(forms=["folder"], packing=["dense"], layers=(11, 12)), share=0.1)
def test_more_than_ten_layers_are_in_the_order_of_their_numbers(subject, call):
    subject.agrees(call)


@requirement(
    spec.LOAD_01, call=folder_calls(forms=FOLDERS, packing=["dense"], dtypes=["bfloat16", "float32"]), share=0.09
)
def test_numbers_that_float16_cannot_hold_are_loaded(subject, call):
    subject.agrees(with_loud(call, "embed_tokens", FAR_PAST_FLOAT16))


@requirement(spec.LOAD_02, call=folder_calls(forms=["sharded"], habits=SHARDED_ANYHOW), share=0.3)
def test_shards_give_the_model_of_all_their_tensors(subject, call):
    subject.agrees(call)


@requirement(spec.LOAD_02, call=folder_calls(forms=["sharded"]), share=0.2)
def test_shards_give_what_one_file_gives(subject, call):
    # To the last bit they need not be equal: where a tensor begins in a mapped file decides how a library multiplies it.
    subject.agrees(call)
    subject.agrees(call.having(form="folder"))


@requirement(
    spec.LOAD_24,
    call=folder_calls(
        forms=["sharded"],
        habits=("names not of models", "a model beside", "shards in folders", "a whole model beside"),
    ),
    share=0.1,
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


@requirement(spec.LOAD_31, call=folder_calls(forms=["folder"], packing=["4-bit", "mixed"], habits=()), share=0.05)
def test_quantised_folders_of_older_mlx_lm_are_used(subject, call):
    subject.agrees(as_older_mlx_lm_writes(call))


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


@requirement(spec.LOAD_20, call=folder_calls(forms=FOLDERS, models=["llama"], packing=["dense"], older=True), share=0.1)
def test_the_frequencies_of_older_files_are_passed_over(subject, call):
    subject.agrees(call)


@requirement(
    spec.LOAD_20,
    call=folder_calls(forms=["folder"], models=["llama"], packing=["dense"], layers=(11, 12), older=True),
    share=0.04,
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
    share=0.25,
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


@requirement(spec.LOAD_07, call=folder_calls(forms=["folder"], packing=["mixed"], layers=(11,), habits=()), share=0.03)
def test_each_of_more_than_ten_layers_may_have_an_entry_of_its_own(subject, call):
    subject.agrees(call)


# GGUF files


@requirement(spec.LOAD_08, call=gguf_calls(forms=["gguf"], habits=GGUF_FILES), share=0.2)
def test_a_gguf_file_may_have_its_keys_in_any_order(subject, call):
    subject.agrees(call)


@requirement(spec.LOAD_08, call=gguf_calls(forms=["gguf"], habits=NEVER_MISREAD), share=0.15)
def test_a_gguf_file_of_a_rare_kind_is_never_misread(subject, call):
    if not subject.observe(call).raised:
        subject.agrees(call)


@requirement(spec.LOAD_29, call=gguf_calls(forms=["gguf"], habits=RARE_GGUF_FILES), share=0.15)
def test_a_gguf_file_may_have_its_data_in_any_order_and_counts_of_64_bits(subject, call):
    subject.agrees(call)


@requirement(spec.LOAD_08, call=gguf_calls(forms=["gguf"], gguf_types=["F32", "F16"]), share=0.3)
def test_a_gguf_file_gives_the_model_of_its_metadata_and_tensors(subject, call):
    subject.agrees(call)


@requirement(
    spec.LOAD_08, call=gguf_calls(forms=["gguf"], gguf_types=["F32", "F16"], layers=(11, 12), habits=()), share=0.04
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


@requirement(spec.LOAD_09, call=gguf_calls(forms=["gguf"], models=["llama"]), share=0.35)
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


@requirement(
    spec.LOAD_21,
    call=gguf_calls(
        forms=["gguf"],
        models=["llama"],
        gguf_types=["Q4_0", "Q8_0", "Q4_1", "mixed"],
        biases=["attention", "mlp", "both"],
        biased=True,
        layers=(1,),
    ),
    share=0.08,
)
def test_biases_of_blocks_of_a_llama_in_gguf_are_loaded(subject, call):
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


# one model after another


@requirement(spec.LOAD_16, call=folder_calls(forms=["folder"], packing=["dense"]), share=0.2)
def test_a_model_loaded_before_from_the_same_path_changes_nothing(subject, call):
    other = {name: -x for name, x in call.arguments["weights"].items()}
    before = subject.agrees(call)
    subject.agrees(call.having(weights=other))
    # Loading may draw initial weights, so the random state is its own affair.
    if not bit_equal(before, subject.agrees(call)):
        raise Nonconformance("loaded again after another model, it gives other logits", call)


@requirement(spec.LOAD_16, call=folder_calls(forms=["sharded"], packing=["dense"], habits=(), layers=(1,)), share=0.04)
def test_shards_loaded_before_from_the_same_path_change_nothing(subject, call):
    subject.agrees(call)
    subject.agrees(with_other_signs(call))


@requirement(
    spec.LOAD_16,
    call=gguf_calls(forms=["gguf"], gguf_types=["F32", "F16"], habits=(), layers=(1,)),
    share=0.04,
)
def test_a_gguf_file_loaded_before_from_the_same_path_changes_nothing(subject, call):
    subject.agrees(call)
    subject.agrees(with_other_signs(call))


@requirement(
    spec.LOAD_16,
    call=gguf_calls(forms=["gguf"], gguf_types=["F32", "F16"], habits=(), layers=(1,)),
    share=0.04,
)
def test_a_gguf_file_that_is_loaded_after_a_model_changes_nothing(subject, call):
    other = with_other_signs(call).arguments
    subject.agrees(call.having(beside={name: other[name] for name in ("config", "weights")}))


@requirement(spec.LOAD_16, call=folder_calls(forms=FOLDERS, packing=["dense"], habits=(), layers=(1,)), share=0.04)
def test_a_config_read_before_from_the_same_path_changes_nothing(subject, call):
    subject.agrees(call)
    subject.agrees(with_config(call, rms_norm_eps=0.25))


@requirement(spec.LOAD_16, call=folder_calls(forms=FOLDERS, packing=["dense"], habits=(), layers=(1,)), share=0.04)
def test_files_that_are_refused_in_between_leave_nothing_behind(subject, call):
    subject.agrees(call)
    goes_on_after_a_refused_call(subject, with_other_signs(call), call.having(damage="header"))


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
    call=gguf_calls(forms=["gguf"], gguf_types=["F32", "F16"], habits=(), layers=(1,)),
    share=0.04,
)
def test_a_model_of_a_gguf_file_that_was_asked_before_answers_as_at_first(subject, call):
    tokens, vocabulary = call.arguments["tokens"], call.arguments["config"]["vocab_size"]
    subject.agrees(call.having(asked=([[(token + 1) % vocabulary for token in row] for row in tokens],)))


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


def with_other_signs(call):
    """The call with every tensor's numbers in the other sign."""
    return call.having(weights={name: -x for name, x in call.arguments["weights"].items()})


def gives_their_model(subject, call, key, said):
    """The logits are those of the files' tensors, in their dtype or in the one that the config says."""
    said = claimed(subject, "dtypes", said, ["float16", "bfloat16", "float32"])
    call = with_config(call, **{key: said})
    got = subject.value(call)
    computed = in_dtype(call, said) if got.dtype.name == said else call
    subject.compare(computed, got, subject.answer(computed, Precision.FLOAT32))
