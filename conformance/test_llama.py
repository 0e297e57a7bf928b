"""Does an implementation of Llama keep the contract?"""

from inferspec.conformance.inputs.decoder import (
    AS_MOST_ARE_PACKED,
    COARSE_TURNS,
    DENSE,
    LARGE_EPS,
    LARGE_VOCABULARIES,
    PACKED,
    QKV,
    SHARED_KEYS,
    TRAINED,
)
from inferspec.conformance.inputs.llama import (
    close_score_calls,
    forward_calls,
    low_gate_calls,
    scaled_calls,
    spare_headed_calls,
)
from inferspec.conformance.properties.common import (
    claimed,
    depends_on_arguments_alone,
    keeps_arguments,
    keeps_dicts,
    refuses,
    serves_more_and_fewer,
)
from inferspec.conformance.properties.decoder import (
    each_row_is_right_alone,
    gives_logits,
    no_token_changes_earlier_logits,
    refuses_every_additional,
    refuses_naming,
    takes_no_other_activation_for_silu,
    takes_no_scaled_rope_for_the_default,
)
from inferspec.conformance.properties.decoder_calls import (
    BESIDE_BFLOAT16,
    DEFAULT_ROPE,
    FAR_PAST_FLOAT16,
    SQUARES_PAST_FLOAT16,
    doubled,
    misshaped,
    next_ids,
    one_tensor_changes,
    unscaled,
    with_additional,
    with_all_that_is_said,
    with_another_base_and_eps,
    with_base,
    with_config,
    with_its_base_twice,
    with_loud,
    with_one_token,
    with_the_base_of,
    with_the_largest_score_last,
    without,
    without_fields,
)
from inferspec.conformance.strategies import among, fractions, in_views
from inferspec.conformance.suite import requirement
from inferspec.spec import llama as spec


@requirement(spec.LLAMA_01, call=forward_calls(), share=0.8)
def test_logits_are_those_of_the_oracle(subject, call):
    subject.agrees(call)


@requirement(spec.LLAMA_01, call=forward_calls(packing=DENSE, lengths=(5, 7)), share=0.2)
def test_what_else_a_config_says_changes_nothing(subject, call):
    subject.agrees(with_all_that_is_said(call))


@requirement(
    spec.LLAMA_01,
    call=forward_calls(packing=["dense"], heads=[(1, 1)], lengths=(320,), batches=(1,), layers=(1,), small=True),
    share=0.02,
)
def test_prompts_of_hundreds_of_tokens_are_right(subject, call):
    subject.agrees(call)


@requirement(
    spec.LLAMA_01,
    call=forward_calls(packing=["dense"], dtypes=["bfloat16", "float32"], lengths=(3, 5)),
    part=among(["embed_tokens", "up_proj"]),
    share=0.1,
)
def test_streams_that_float16_cannot_hold_are_right_in_other_dtypes(subject, call, part):
    subject.agrees(with_loud(call, part, FAR_PAST_FLOAT16))


@requirement(
    spec.LLAMA_01,
    call=forward_calls(packing=["dense"], dtypes=["float16"], tied=[False], lengths=(3, 5)),
    share=0.1,
)
def test_streams_whose_squares_float16_cannot_hold_are_right(subject, call):
    subject.agrees(with_loud(call, "embed_tokens", SQUARES_PAST_FLOAT16))


@requirement(spec.LLAMA_02, call=forward_calls(tied=[True]), share=0.4)
def test_a_tied_head_is_the_embedding(subject, call):
    subject.agrees(call)


@requirement(spec.LLAMA_02, call=forward_calls(tied=[False]), share=0.4)
def test_an_untied_head_is_its_own(subject, call):
    subject.agrees(call)


@requirement(spec.LLAMA_03, call=spare_headed_calls, share=0.2)
def test_a_spare_head_of_a_tied_model_is_not_used(subject, call):
    subject.agrees(call)


@requirement(spec.LLAMA_04, call=forward_calls(packing=DENSE, lengths=(5, 3, 7)), share=0.4)
def test_heads_of_any_number_and_dim_are_right(subject, call):
    subject.agrees(call)


@requirement(spec.LLAMA_04, call=forward_calls(head_dims=["absent"], packing=DENSE), share=0.35)
def test_a_head_dim_that_is_absent_is_hidden_size_over_heads(subject, call):
    subject.agrees(call)


@requirement(
    spec.LLAMA_04,
    call=forward_calls(heads=[(1, 1), (2, 2), (3, 3)], packing=DENSE, absent_fields=["num_key_value_heads"]),
    share=0.2,
)
def test_key_heads_that_are_absent_are_as_many_as_query_heads(subject, call):
    subject.agrees(without_fields(call, "num_key_value_heads"))
    subject.agrees(with_config(call, num_key_value_heads=None))


@requirement(
    spec.LLAMA_04,
    call=forward_calls(packing=DENSE, heads=[(2, 2), (4, 2), (6, 2)], lengths=(2,), batches=(1, 3)),
    share=0.1,
)
def test_as_many_tokens_as_key_heads_are_told_from_them(subject, call):
    subject.agrees(call)


@requirement(
    spec.LLAMA_04,
    call=forward_calls(packing=DENSE, head_dims=["free"], lengths=(33, 40), batches=(1,), layers=(1,), **TRAINED),
    share=0.2,
)
def test_heads_as_large_as_those_of_trained_models_are_right(subject, call):
    subject.agrees(call)


@requirement(
    spec.LLAMA_04,
    call=forward_calls(packing=["dense"], heads=SHARED_KEYS, lengths=(5, 3), batches=(1, 2), layers=(1,), small=True),
    share=0.3,
)
def test_key_heads_that_three_and_four_query_heads_share_are_right(subject, call):
    subject.agrees(call)


@requirement(spec.LLAMA_05, call=forward_calls(rope=["rope_theta"], packing=DENSE, lengths=(5, 7, 9)), share=0.4)
def test_the_base_of_rope_is_rope_theta(subject, call):
    subject.agrees(call)


@requirement(spec.LLAMA_05, call=forward_calls(rope=["rope_parameters"], packing=DENSE, lengths=(5, 7, 9)), share=0.45)
def test_the_base_of_rope_is_that_of_rope_parameters(subject, call):
    subject.agrees(call)


@requirement(
    spec.LLAMA_05,
    call=forward_calls(rope=["rope_theta"], packing=DENSE, lengths=(5, 7, 9), absent_fields=["rope_theta"]),
    share=0.1,
)
def test_a_base_of_rope_that_is_absent_is_ten_thousand(subject, call):
    subject.agrees(without_fields(call, "rope_theta"))


@requirement(
    spec.LLAMA_05,
    call=forward_calls(rope=["rope_theta"], packing=DENSE, lengths=(5, 7, 9)),
    said=among(DEFAULT_ROPE),
    share=0.2,
)
def test_a_base_of_rope_may_be_beside_what_says_that_it_is_not_scaled(subject, call, said):
    subject.agrees(with_config(call, **said))


@requirement(spec.LLAMA_05, call=forward_calls(thetas=["whole"], **COARSE_TURNS), share=0.02)
def test_frequencies_of_a_model_in_bfloat16_are_no_coarser_for_that(subject, call):
    subject.agrees(with_base(with_loud(call, "q_proj", 8.0), BESIDE_BFLOAT16))


@requirement(spec.LLAMA_06, call=forward_calls(packing=DENSE, eps=LARGE_EPS), share=0.3)
def test_eps_is_inside_the_root_of_every_norm(subject, call):
    subject.agrees(call)


@requirement(spec.LLAMA_07, call=forward_calls(packing=DENSE), share=0.4)
def test_the_mlp_is_gated_by_silu(subject, call):
    subject.agrees(call)


@requirement(spec.LLAMA_07, call=low_gate_calls, share=0.1)
def test_gates_far_below_zero_count(subject, call):
    subject.agrees(call)


@requirement(spec.LLAMA_07, call=forward_calls(packing=["dense"], lengths=(5, 3)), share=0.06)
def test_gates_of_hundreds_are_right(subject, call):
    subject.agrees(with_loud(call, "gate_proj", 64.0))


@requirement(spec.LLAMA_08, call=forward_calls(biases=["attention", "mlp", "both", QKV]), share=0.6)
def test_biases_are_added_where_the_config_asks_for_them(subject, call):
    subject.agrees(call)


@requirement(spec.LLAMA_09, call=forward_calls(layers=(3, 2), packing=DENSE), which=fractions, share=0.4)
def test_a_change_of_any_tensor_changes_the_logits_as_it_must(subject, call, which):
    subject.agrees(call)
    subject.agrees(one_tensor_changes(call, which))


@requirement(
    spec.LLAMA_09, call=forward_calls(layers=(11,), lengths=(3, 2), batches=(1,), small=True, packing=DENSE), share=0.08
)
def test_more_than_ten_layers_are_in_the_order_of_their_numbers(subject, call):
    subject.agrees(call)


@requirement(spec.LLAMA_10, call=close_score_calls(packing=["dense"], head_dims=["free", "multiple"]), share=0.3)
def test_close_scores_are_told_apart_in_every_dtype(subject, call):
    subject.agrees(call)


@requirement(spec.LLAMA_11, call=forward_calls(lengths=(4, 2, 3, 7, 9)), at=fractions, share=0.3)
def test_no_token_changes_the_logits_before_it(subject, call, at):
    no_token_changes_earlier_logits(subject, call, at)


@requirement(spec.LLAMA_11, call=close_score_calls(packing=["dense"], head_dims=["free", "multiple"]), share=0.05)
def test_a_later_token_of_the_largest_score_stays_hidden(subject, call):
    subject.agrees(with_the_largest_score_last(call))


@requirement(spec.LLAMA_12, call=forward_calls(batches=(2, 9, 3)), share=0.15)
def test_a_batch_is_the_stack_of_its_rows(subject, call):
    each_row_is_right_alone(subject, call)


@requirement(
    spec.LLAMA_12,
    call=forward_calls(batches=(33, 65, 40), lengths=(1, 2, 3), layers=(1, 2), small=True, packing=DENSE),
    share=0.05,
)
def test_a_batch_of_dozens_is_the_stack_of_its_rows(subject, call):
    subject.agrees(call)


@requirement(
    spec.LLAMA_12,
    call=forward_calls(
        batches=(2, 3), lengths=(130, 105), heads=[(2, 1), (4, 2)], layers=(1,), small=True, packing=["dense"]
    ),
    share=0.02,
)
def test_a_batch_of_long_prompts_is_the_stack_of_its_rows(subject, call):
    subject.agrees(call)


@requirement(spec.LLAMA_13, call=forward_calls(packing=PACKED), share=0.4)
def test_packed_layers_give_the_logits_of_their_weights(subject, call):
    subject.agrees(call)


@requirement(spec.LLAMA_13, call=forward_calls(packing=PACKED, tied=[True]), share=0.5)
def test_a_packed_embedding_is_its_own_head(subject, call):
    subject.agrees(call)


@requirement(
    spec.LLAMA_13, call=forward_calls(lengths=(33, 70), batches=(1,), layers=(1,), **AS_MOST_ARE_PACKED), share=0.08
)
def test_prompts_are_right_as_most_models_are_packed(subject, call):
    subject.agrees(call)


@requirement(
    spec.LLAMA_13,
    call=forward_calls(packing=["4-bit"], group_sizes=[32, 64], lengths=(33, 40), batches=(2, 3), layers=(1,)),
    share=0.03,
)
def test_several_prompts_of_packed_models_are_right(subject, call):
    subject.agrees(call)


@requirement(
    spec.LLAMA_13,
    call=forward_calls(packing=["mixed"], group_sizes=[32], layers=(11,), lengths=(2,), batches=(1,)),
    share=0.03,
)
def test_each_of_more_than_ten_layers_has_a_group_size_and_bits_of_its_own(subject, call):
    subject.agrees(call)


@requirement(spec.LLAMA_13, call=forward_calls(packing=["mixed"]), share=0.4)
def test_layers_have_group_sizes_and_bits_of_their_own(subject, call):
    subject.agrees(call)


@requirement(
    spec.LLAMA_14,
    call=forward_calls(packing=DENSE, lengths=(33, 31, 32, 63, 64, 65), batches=(2, 1), layers=(1, 2), small=True),
    share=0.15,
)
def test_prompts_beside_tiles_are_right(subject, call):
    subject.agrees(call)


@requirement(spec.LLAMA_14, call=forward_calls(lengths=(1,)), share=0.3)
def test_one_token_is_right(subject, call):
    subject.agrees(call)


@requirement(
    spec.LLAMA_15, call=in_views(forward_calls(batches=(2, 3), lengths=(5, 3), packing=DENSE), "tokens"), share=0.5
)
def test_strided_tokens_are_read_like_their_copy(subject, call):
    subject.agrees(call)


@requirement(
    spec.LLAMA_15,
    call=forward_calls(
        vocabularies=LARGE_VOCABULARIES, lengths=(3, 1), batches=(1,), layers=(1,), small=True, packing=["dense"]
    ),
    share=0.03,
)
def test_ids_past_255_and_65535_are_ids(subject, call):
    subject.agrees(call)


@requirement(
    spec.LLAMA_15,
    call=forward_calls(
        vocabularies=LARGE_VOCABULARIES[2:],
        lengths=(2, 1),
        batches=(2, 3),
        layers=(1,),
        small=True,
        packing=["dense"],
    ),
    share=0.1,
)
def test_ids_past_65535_of_a_batch_are_ids(subject, call):
    subject.agrees(call)


@requirement(spec.LLAMA_16, call=forward_calls(), share=0.3)
def test_logits_have_the_dtype_of_the_embedding(subject, call):
    gives_logits(subject, call, plain=call)


@requirement(spec.LLAMA_16, call=scaled_calls(), share=0.1)
def test_logits_have_the_dtype_of_the_embedding_where_rope_is_scaled(subject, call):
    gives_logits(subject, call, plain=unscaled(call))


@requirement(spec.LLAMA_16, call=forward_calls(lengths=(1,)), share=0.1)
def test_logits_of_one_token_have_the_dtype_of_the_embedding(subject, call):
    gives_logits(subject, call, plain=doubled(call))


@requirement(spec.LLAMA_17, call=forward_calls(), share=0.2)
def test_no_tensor_is_changed(subject, call):
    keeps_arguments(subject, call)


@requirement(spec.LLAMA_41, call=forward_calls(lengths=(3, 1), layers=(1, 2)), share=0.2)
def test_a_config_and_a_dict_of_weights_keep_their_entries(subject, call):
    keeps_dicts(subject, call)
    keeps_dicts(subject, with_all_that_is_said(call))


@requirement(spec.LLAMA_41, call=spare_headed_calls, share=0.1)
def test_a_spare_head_stays_in_the_dict_of_weights(subject, call):
    keeps_dicts(subject, call)


@requirement(
    spec.LLAMA_41, call=forward_calls(rope=["rope_parameters"], packing=DENSE, lengths=(3, 1), layers=(1,)), share=0.1
)
def test_a_config_that_says_the_base_of_rope_twice_keeps_its_entries(subject, call):
    keeps_dicts(subject, with_its_base_twice(call))


@requirement(spec.LLAMA_18, call=forward_calls(), share=0.2)
def test_other_tokens_in_between_change_nothing(subject, call):
    depends_on_arguments_alone(subject, call.kept(0), call.having(tokens=next_ids(call)).kept(0))


@requirement(spec.LLAMA_18, call=forward_calls(packing=DENSE, layers=(1,)), share=0.06)
def test_one_model_serves_a_token_a_prompt_and_a_token(subject, call):
    serves_more_and_fewer(subject, call, "tokens", axis=-1)


@requirement(spec.LLAMA_18, call=forward_calls(packing=DENSE, layers=(1,), lengths=(3, 1)), share=0.06)
def test_one_model_serves_a_sequence_a_batch_and_a_sequence(subject, call):
    serves_more_and_fewer(subject, call, "tokens", axis=0)


@requirement(spec.LLAMA_18, call=forward_calls(packing=DENSE), which=fractions, share=0.2)
def test_another_model_in_between_changes_nothing(subject, call, which):
    depends_on_arguments_alone(subject, call, one_tensor_changes(call, which))


@requirement(spec.LLAMA_18, call=forward_calls(packing=DENSE, lengths=(5, 7, 9)), share=0.06)
def test_a_model_of_another_base_of_rope_and_eps_in_between_changes_nothing(subject, call):
    depends_on_arguments_alone(subject, call.kept(0), with_another_base_and_eps(call).kept(1))


@requirement(
    spec.LLAMA_18, call=forward_calls(packing=DENSE), other=forward_calls(packing=DENSE, layers=(1,)), share=0.12
)
def test_a_model_of_other_sizes_in_between_changes_nothing(subject, call, other):
    depends_on_arguments_alone(subject, call.kept(0), with_the_base_of(other, call).kept(1))


@requirement(spec.LLAMA_18, call=forward_calls(thetas=["fractional"], packing=DENSE, lengths=(5, 7, 9)), share=0.06)
def test_a_model_whose_base_of_rope_differs_by_a_fraction_in_between_changes_nothing(subject, call):
    claimed(subject, "thetas", "whole", ["whole"])
    whole, half = with_base(call, 10.0), with_base(call, 10.5)
    depends_on_arguments_alone(subject, whole.kept(0), half.kept(1))


@requirement(spec.LLAMA_19, call=forward_calls(), which=fractions, share=0.3)
def test_a_missing_tensor_is_refused(subject, call, which):
    refuses(subject, without(call, which)[0])


@requirement(
    spec.LLAMA_20,
    call=forward_calls(),
    which=fractions,
    way=among(["transposed", "shorter", "longer"]),
    share=0.4,
)
def test_a_misshaped_tensor_is_refused(subject, call, which, way):
    refuses(subject, misshaped(call, which, way)[0])


@requirement(spec.LLAMA_21, call=forward_calls(packing=DENSE), share=0.2)
def test_an_additional_tensor_is_refused(subject, call):
    refuses_every_additional(subject, call, head_norms=False)


@requirement(spec.LLAMA_42, call=forward_calls(packing=DENSE), which=fractions, share=0.08)
def test_a_missing_tensor_is_named(subject, call, which):
    refuses_naming(subject, *without(call, which))


@requirement(
    spec.LLAMA_42,
    call=forward_calls(packing=DENSE),
    which=fractions,
    way=among(["transposed", "shorter", "longer"]),
    share=0.08,
)
def test_a_misshaped_tensor_is_named(subject, call, which, way):
    refuses_naming(subject, *misshaped(call, which, way))


@requirement(spec.LLAMA_42, call=forward_calls(packing=DENSE), which=fractions, share=0.08)
def test_an_additional_tensor_is_named(subject, call, which):
    refuses_naming(subject, *with_additional(call, which))


@requirement(spec.LLAMA_22, call=forward_calls(rope=["rope_parameters"], packing=DENSE, lengths=(7, 9)), share=0.05)
def test_a_rope_type_of_rope_parameters_is_not_taken_for_the_default(subject, call):
    takes_no_scaled_rope_for_the_default(subject, call, "rope_parameters", ["rope_type"])


@requirement(spec.LLAMA_22, call=forward_calls(rope=["rope_theta"], packing=DENSE, lengths=(7, 9)), share=0.05)
def test_a_rope_type_of_rope_scaling_is_not_taken_for_the_default(subject, call):
    takes_no_scaled_rope_for_the_default(subject, call, "rope_scaling", ["rope_type", "type"])


@requirement(spec.LLAMA_32, call=forward_calls(packing=DENSE), share=0.05)
def test_another_activation_is_not_taken_for_silu(subject, call):
    takes_no_other_activation_for_silu(subject, call)


@requirement(spec.LLAMA_23, call=forward_calls(token_dtypes=["int32", "int64"]), share=0.2)
def test_a_negative_token_is_refused(subject, call):
    refuses(subject, with_one_token(call, -1))


@requirement(spec.LLAMA_23, call=forward_calls(), past=among([0, 5]), share=0.2)
def test_a_token_past_the_vocabulary_is_refused(subject, call, past):
    refuses(subject, with_one_token(call, call.arguments["config"]["vocab_size"] + past))


@requirement(spec.LLAMA_49, call=forward_calls(), share=0.06)
def test_a_model_made_in_one_thread_computes_in_another(subject, call):
    subject.agrees(call.in_another_thread())
