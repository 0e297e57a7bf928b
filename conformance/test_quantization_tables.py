"""Do embeddings of packed weights, as tables and as heads, keep the contract?"""

import numpy as np

from inferspec.conformance.inputs.embedding import of_one_token
from inferspec.conformance.inputs.linear import beside_others, resized
from inferspec.conformance.inputs.quantization import (
    BATCHES,
    FEW_OR_MANY,
    HEAD,
    LAYER,
    NOTHING,
    READ,
    SINGLE,
    TOKEN,
    a_few_tokens,
    a_long_prompt,
    a_prompt,
    a_table,
    a_token,
    beside_tiles,
    large_table,
    long_sums,
    looked_up,
    lookup_calls,
    many_outputs,
    many_tiles_each_way,
    many_tokens,
    of_models,
    of_thousands,
    one_row,
    past_16_bits,
    past_a_tile,
    product_calls,
    reading_products,
    several_groups,
    small_or_moderate,
    square,
    squares,
    tall_lookups,
    tall_products,
    tokens_of_sequences,
    wide_both_ways,
)
from inferspec.conformance.properties.common import (
    depends_on_arguments_alone,
    keeps_arguments,
    refuses,
    refuses_or_reads,
    returns,
    serves_both,
    serves_more_and_fewer,
)
from inferspec.conformance.properties.quantization import (
    NOT_OFFERED,
    UNMATCHED,
    broadcast,
    broken,
    kept,
    of_one_row,
    of_other_weights,
    refuses_parts,
    scaled,
    with_nan,
    with_nan_in_x,
    within_class,
)
from inferspec.conformance.strategies import (
    HALF,
    WIDE_VIEWS,
    among,
    bottom_up,
    in_views,
    in_views_of_each,
    one_token_each,
)
from inferspec.conformance.suite import requirement
from inferspec.spec import quantization_sentences as spec

heads = product_calls(operation=HEAD)


@requirement(spec.QEMB_01, call=lookup_calls(dtypes=["bfloat16", "float32"]), power=among([-20, 20]), share=0.1)
def test_scales_of_a_table_that_float16_cannot_hold_are_right_in_other_dtypes(subject, call, power):
    subject.agrees(scaled(call, 2.0**power))


@requirement(spec.QEMB_01, call=lookup_calls(), part=among(["scales", "biases"]), share=0.1)
def test_a_nan_shows_in_its_group_of_the_table_alone(subject, call, part):
    tokens, values = call.arguments["tokens"], call.arguments[part].copy()
    values[tokens.flat[0], 0] = np.nan
    subject.agrees(call.having(**{part: values}))


@requirement(spec.QEMB_01, call=lookup_calls())
def test_each_token_gives_its_restored_row(subject, call):
    subject.agrees(call)


@requirement(spec.QEMB_01, call=lookup_calls(sizes=long_sums, leading_dims=[(), (1,)]), share=0.05)
def test_each_token_gives_all_features_of_its_row(subject, call):
    subject.agrees(call)


@requirement(spec.QEMB_01, call=tall_lookups(dtypes=["float16"]), share=0.1)
def test_codes_times_scales_of_a_table_may_pass_the_range_of_float16(subject, call):
    subject.agrees(within_class(subject, call))


@requirement(spec.QEMB_02, call=lookup_calls(borders=True), share=0.5)
def test_the_first_and_the_last_id_read_their_own_rows(subject, call):
    subject.agrees(call)


@requirement(spec.QEMB_02, call=lookup_calls(borders=True, sizes=large_table), share=0.2)
def test_ids_past_255_and_32767_and_65535_read_their_own_rows(subject, call):
    subject.agrees(call)


@requirement(
    spec.QEMB_02,
    call=lookup_calls(sizes=past_16_bits, leading_dims=[(2,)], bits=[2, 4], group_sizes=[32, 64]),
    share=0.03,
)
def test_ids_past_65535_of_every_dtype_read_their_own_rows_by_themselves_and_in_batches(subject, call):
    last = len(call.arguments["packed"]) - 1
    for dtype in subject.envelope["token_dtypes"]:
        for some in (np.full((2, 3), last), np.array(last)):
            subject.agrees(call.having(tokens=some.astype(dtype)))


@requirement(spec.QEMB_03, call=lookup_calls(leading_dims=[(), *BATCHES]), share=0.6)
def test_tokens_of_any_shape_give_rows_in_their_places(subject, call):
    subject.agrees(call)


@requirement(
    spec.QEMB_03, call=lookup_calls(leading_dims=[(2, 1, 3)]), batches=among([3, 4]), axes=among([3, 4]), share=0.1
)
def test_tokens_of_three_and_four_axes_give_rows_in_their_places(subject, call, batches, axes):
    tokens, vocabulary = call.arguments["tokens"].astype(np.int64), len(call.arguments["packed"])
    later = np.concatenate([(tokens + i) % vocabulary for i in range(batches)], axis=1)
    if axes > 3:
        later = np.stack([later, (later + batches) % vocabulary], axis=2)
    subject.agrees(call.having(tokens=later.astype(call.arguments["tokens"].dtype)))


@requirement(spec.QEMB_03, call=lookup_calls(sizes=a_table, **LAYER), share=1.0)
def test_tokens_are_looked_up_as_most_tables_are_packed(subject, call):
    subject.agrees(call)


@requirement(spec.QEMB_03, call=lookup_calls(sizes=many_tokens, leading_dims=[(1,), (2,)]), share=0.1)
def test_thousands_of_tokens_give_rows_in_their_places(subject, call):
    subject.agrees(call)


@requirement(spec.QEMB_17, call=lookup_calls(leading_dims=BATCHES), axis=among([0, -1]), share=0.3)
def test_no_tokens_give_no_rows(subject, call, axis):
    none = resized(call.arguments["tokens"], axis, 0)
    features = call.arguments["packed"].shape[1] * 32 // call.arguments["bits"]
    subject.expects(call.having(tokens=none), np.zeros((*none.shape, features)))


@requirement(spec.QEMB_22, call=lookup_calls.strict()(group_sizes=[128], bits=[4]), share=0.1)
def test_a_table_has_4_bits_and_groups_of_128_where_nothing_is_said(subject, call):
    subject.agrees(call.without("group_size", "bits"))


@requirement(spec.QEMB_04, call=in_views(lookup_calls()), share=1.5)
def test_strided_tokens_and_tables_are_read_like_their_copies(subject, call):
    subject.agrees(call)


@requirement(spec.QEMB_04, call=lookup_calls(), share=0.1)
def test_tables_whose_rows_lie_backwards_are_read_like_their_copies(subject, call):
    subject.agrees(bottom_up(call, "packed", "scales", "biases"))


@requirement(
    spec.QEMB_04, call=in_views(lookup_calls(), "packed", "scales", "biases", views=["beginning", "shifted"]), share=0.3
)
def test_tables_in_longer_buffers_are_read_like_their_copies(subject, call):
    subject.agrees(call)


@requirement(
    spec.QEMB_04,
    call=in_views(lookup_calls(sizes=of_thousands), "packed", "scales", "biases", views=WIDE_VIEWS),
    share=0.3,
)
def test_strided_tables_of_many_groups_or_hundreds_of_rows_are_read_like_their_copies(subject, call):
    subject.agrees(call)


@requirement(spec.QEMB_05, call=lookup_calls(), share=0.5)
def test_rows_have_the_dtype_of_the_scales(subject, call):
    features = call.arguments["packed"].shape[1] * 32 // call.arguments["bits"]
    returns(subject, call, (*call.arguments["tokens"].shape, features), call.features["dtypes"])


@requirement(
    spec.QEMB_04, call=in_views(lookup_calls(sizes=one_row, **SINGLE), "packed", "scales", "biases"), share=0.4
)
def test_the_row_of_a_single_token_is_read_through_the_strides_of_the_table(subject, call):
    subject.agrees(of_one_token(call))


@requirement(spec.QEMB_05, call=lookup_calls(dtypes=HALF, leading_dims=BATCHES), share=0.06)
def test_rows_of_no_tokens_have_the_dtype_of_the_scales(subject, call):
    none = call.arguments["tokens"][:0]
    features = call.arguments["packed"].shape[1] * 32 // call.arguments["bits"]
    returns(subject, call.having(tokens=none), (*none.shape, features), call.features["dtypes"])


@requirement(spec.QEMB_05, call=lookup_calls(sizes=one_row, **SINGLE), share=0.1)
def test_the_row_of_a_single_token_has_the_dtype_of_the_scales(subject, call):
    one = of_one_token(call)
    features = call.arguments["packed"].shape[1] * 32 // call.arguments["bits"]
    returns(subject, one, (*one.arguments["tokens"].shape, features), call.features["dtypes"])


@requirement(spec.QEMB_06, call=lookup_calls(), share=0.5)
def test_the_lookup_changes_no_argument(subject, call):
    keeps_arguments(subject, call)


@requirement(spec.QEMB_07, call=lookup_calls(), share=0.5)
def test_other_tokens_in_between_change_nothing(subject, call):
    tokens = call.arguments["tokens"]
    others = ((tokens.astype(np.int64) + 1) % len(call.arguments["packed"])).astype(tokens.dtype)
    depends_on_arguments_alone(subject, call.kept(0), call.having(tokens=np.asarray(others)).kept(0))


@requirement(spec.QEMB_07, call=lookup_calls(leading_dims=[(2,), (2, 3)]), share=0.1)
def test_one_table_serves_a_token_a_prompt_and_a_token(subject, call):
    serves_more_and_fewer(subject, call, "tokens", axis=-1)


@requirement(spec.QEMB_07, call=lookup_calls(leading_dims=[(2, 3)]), share=0.1)
def test_one_table_serves_a_sequence_a_batch_and_a_sequence(subject, call):
    serves_more_and_fewer(subject, call, "tokens", axis=0)


@requirement(spec.QEMB_07, call=lookup_calls(), share=0.1)
def test_two_tables_are_kept_apart(subject, call):
    depends_on_arguments_alone(subject, call.kept(0), of_other_weights(call).kept(1))


@requirement(spec.QEMB_07, call=lookup_calls(), share=0.5)
def test_another_table_in_between_changes_nothing(subject, call):
    depends_on_arguments_alone(subject, call, call.having(packed=~call.arguments["packed"]))


@requirement(spec.QEMB_08, call=lookup_calls(), past=among([0, 5, -1]), share=0.5)
def test_an_id_outside_the_vocabulary_is_refused(subject, call, past):
    tokens = call.arguments["tokens"].astype(np.int32)
    tokens.flat[call.seed % tokens.size] = -1 if past < 0 else len(call.arguments["packed"]) + past
    refuses(subject, call.having(tokens=tokens))


@requirement(
    spec.QEMB_08, call=lookup_calls(token_dtypes=["int64"]), past=among([2**32, 2**32 + 1, 1 - 2**32]), share=0.1
)
def test_an_id_that_32_bits_would_wrap_into_the_vocabulary_is_refused(subject, call, past):
    tokens = call.arguments["tokens"].copy()
    tokens.flat[call.seed % tokens.size] = past
    refuses(subject, call.having(tokens=tokens))


@requirement(spec.QEMB_09, call=heads())
def test_logits_are_x_times_the_transposed_table(subject, call):
    subject.agrees(call)


@requirement(spec.QEMB_09, reading=reading_products(operation=HEAD, sizes=square), share=0.5)
def test_the_head_reads_the_features_of_each_id_from_the_table(subject, reading):
    subject.expects(*reading)


@requirement(spec.QEMB_09, call=heads(), share=0.1)
def test_one_packed_table_is_looked_up_in_and_serves_as_the_head_in_turn(subject, call):
    serves_both(subject, call, looked_up(call, subject.envelope["token_dtypes"][0]))


@requirement(spec.QEMB_10, call=heads(dtypes=["bfloat16", "float32"]), power=among([-20, 20]), share=0.1)
def test_scales_of_a_head_that_float16_cannot_hold_are_right_in_other_dtypes(subject, call, power):
    subject.agrees(scaled(call, 2.0**power))


@requirement(spec.QEMB_10, call=heads(sizes=long_sums, positive=True), share=0.4)
def test_logits_of_thousands_of_features_are_summed_in_float32(subject, call):
    subject.agrees(call)


@requirement(spec.QEMB_10, call=tall_products(operation=HEAD, dtypes=["float16"]), share=0.1)
def test_codes_times_scales_of_the_head_may_pass_the_range_of_float16(subject, call):
    subject.agrees(within_class(subject, call))


@requirement(spec.QEMB_11, reading=reading_products(operation=HEAD, leading_dims=[(), *BATCHES]), share=0.6)
def test_logits_of_a_batch_are_those_of_its_rows(subject, reading):
    subject.expects(*reading)


@requirement(spec.QEMB_11, call=heads(leading_dims=[(2, 1, 3)]), batches=among([3, 4]), axes=among([4, 5]), share=0.1)
def test_logits_of_batches_of_batches_are_in_their_places(subject, call, batches, axes):
    subject.agrees(beside_others(call, batches, axes))


@requirement(spec.QEMB_11, call=heads(sizes=small_or_moderate, leading_dims=BATCHES), share=0.2)
def test_a_nan_stays_in_the_logits_of_its_row(subject, call):
    subject.agrees(with_nan_in_x(call))


@requirement(spec.QEMB_11, call=heads(sizes=a_token, amplitude=(1.0,), **TOKEN), share=0.4)
def test_the_logits_of_a_token_are_right_as_most_heads_are_packed(subject, call):
    subject.agrees(call)


@requirement(spec.QEMB_11, call=heads(sizes=tokens_of_sequences, amplitude=(1.0,), leading_dims=[(1,)]), share=0.04)
def test_logits_of_a_token_of_each_of_some_sequences_are_right_of_a_wide_table(subject, call):
    subject.agrees(one_token_each(call))


@requirement(spec.QEMB_11, call=heads(sizes=a_few_tokens, amplitude=(1.0,), **LAYER), share=0.4)
def test_the_logits_of_a_few_tokens_are_right_as_most_heads_are_packed(subject, call):
    subject.agrees(call)


@requirement(spec.QEMB_11, call=heads(sizes=a_prompt, amplitude=(1.0,), **LAYER), share=0.5)
def test_the_logits_of_a_prompt_are_right_as_most_heads_are_packed(subject, call):
    subject.agrees(call)


@requirement(spec.QEMB_11, call=heads(sizes=a_long_prompt, amplitude=(1.0,), **LAYER), share=0.1)
def test_the_logits_of_a_long_prompt_are_right(subject, call):
    subject.agrees(call)


@requirement(spec.QEMB_11, call=heads(sizes=wide_both_ways, amplitude=(1.0,), leading_dims=[(1,)]), share=0.1)
def test_logits_of_wide_rows_and_many_ids_are_right(subject, call):
    subject.agrees(call)


@requirement(spec.QEMB_11, call=heads(sizes=many_tiles_each_way, amplitude=(1.0,), **LAYER), share=0.03)
def test_logits_of_many_tiles_each_way_are_right(subject, call):
    subject.agrees(call)


@requirement(spec.QEMB_11, call=heads(sizes=squares, amplitude=(1.0,), **LAYER), share=0.03)
def test_logits_of_a_few_rows_of_a_small_model_are_right(subject, call):
    subject.agrees(call)


@requirement(spec.QEMB_11, call=heads(sizes=beside_tiles, leading_dims=BATCHES), share=0.3)
def test_logits_of_any_number_of_rows_and_ids_are_right(subject, call):
    subject.agrees(call)


@requirement(spec.QEMB_11, call=heads(sizes=many_outputs), share=0.03)
def test_every_logit_of_a_large_vocabulary_is_written(subject, call):
    subject.agrees(call)


@requirement(spec.QEMB_11, call=heads(sizes=past_a_tile, leading_dims=[(2, 3)]), share=0.1)
def test_logits_of_a_token_of_each_of_many_sequences_are_right(subject, call):
    subject.agrees(one_token_each(call))


@requirement(spec.QEMB_12, call=in_views(heads(sizes=past_a_tile, leading_dims=[(2,)])), share=0.5)
def test_the_head_reads_strided_arguments_for_many_rows_like_their_copies(subject, call):
    subject.agrees(call)


@requirement(spec.QEMB_12, call=in_views_of_each(heads(), "x", "packed", "scales", "biases"), share=0.1)
def test_the_head_reads_each_argument_through_its_own_strides(subject, call):
    subject.agrees(call)


@requirement(
    spec.QEMB_12, call=in_views(heads(), "packed", "scales", "biases", views=["beginning", "shifted"]), share=0.3
)
def test_the_head_reads_tables_in_longer_buffers_like_their_copies(subject, call):
    subject.agrees(call)


@requirement(spec.QEMB_12, call=in_views(heads()), share=1.5)
def test_the_head_reads_strided_arguments_like_their_copies(subject, call):
    subject.agrees(call)


@requirement(
    spec.QEMB_12,
    call=in_views(heads(sizes=of_models, amplitude=(1.0,), leading_dims=[(1,)]), *READ, views=WIDE_VIEWS),
    share=0.65,
)
def test_the_head_reads_tokens_and_prompts_of_models_through_strides(subject, call):
    subject.agrees(call)


@requirement(
    spec.QEMB_12,
    call=in_views(heads(sizes=of_thousands, amplitude=(1.0,), leading_dims=[(1,), (2,)]), views=WIDE_VIEWS),
    share=0.35,
)
def test_the_head_reads_strided_arguments_of_many_groups_or_hundreds_of_ids(subject, call):
    subject.agrees(call)


@requirement(spec.QEMB_13, call=heads(sizes=FEW_OR_MANY), share=0.5)
def test_logits_have_the_dtype_of_x(subject, call):
    returns(subject, call, (*call.arguments["x"].shape[:-1], kept(call)), call.features["dtypes"])


@requirement(spec.QEMB_13, call=heads(dtypes=HALF, leading_dims=BATCHES), share=0.06)
def test_logits_of_no_rows_have_the_dtype_of_x(subject, call):
    none = call.arguments["x"][:0]
    returns(subject, call.having(x=none), (*none.shape[:-1], kept(call)), call.features["dtypes"])


@requirement(spec.QEMB_12, call=in_views(heads(sizes=one_row, **SINGLE)), share=0.4)
def test_the_head_reads_strided_arguments_of_a_single_row_like_their_copies(subject, call):
    subject.agrees(call)


@requirement(spec.QEMB_13, call=heads(sizes=one_row, **SINGLE), share=0.1)
def test_logits_of_a_single_row_have_its_dtype(subject, call):
    returns(subject, call, (*call.arguments["x"].shape[:-1], kept(call)), call.features["dtypes"])


@requirement(spec.QEMB_14, call=heads(sizes=FEW_OR_MANY), share=0.5)
def test_the_head_changes_no_argument(subject, call):
    keeps_arguments(subject, call)


@requirement(spec.QEMB_15, call=heads(sizes=FEW_OR_MANY), share=0.5)
def test_other_rows_in_between_change_no_logits(subject, call):
    depends_on_arguments_alone(subject, call.kept(0), call.having(x=-call.arguments["x"]).kept(0))


@requirement(spec.QEMB_15, call=heads(leading_dims=[(2,), (2, 3)]), share=0.1)
def test_one_head_serves_a_token_a_prompt_and_a_token(subject, call):
    serves_more_and_fewer(subject, call, "x")


@requirement(spec.QEMB_15, call=heads(leading_dims=[(2, 3)]), share=0.1)
def test_one_head_serves_a_sequence_a_batch_and_a_sequence(subject, call):
    serves_more_and_fewer(subject, call, "x", axis=0)


@requirement(spec.QEMB_15, call=heads(), share=0.1)
def test_the_heads_of_two_tables_are_kept_apart(subject, call):
    depends_on_arguments_alone(subject, call.kept(0), of_other_weights(call).kept(1))


@requirement(spec.QEMB_15, call=heads(sizes=FEW_OR_MANY), part=among(["packed", "scales", "biases"]), share=0.6)
def test_the_head_of_another_table_in_between_changes_nothing(subject, call, part):
    value = call.arguments[part]
    depends_on_arguments_alone(subject, call, call.having(**{part: ~value if part == "packed" else -value}))


@requirement(spec.QEMB_16, call=heads(), more=among([1, -1, 32, 64]), share=0.5)
def test_the_head_refuses_an_x_of_another_size(subject, call, more):
    x = call.arguments["x"]
    refuses(subject, call.having(x=resized(x, -1, x.shape[-1] + more)))


@requirement(spec.QEMB_16, call=heads(), bad=among(UNMATCHED), share=0.5)
def test_the_head_refuses_parts_that_do_not_belong_together(subject, call, bad):
    refuses_parts(subject, call, bad)


@requirement(spec.QEMB_16, call=heads(), bad=among(NOT_OFFERED), share=0.5)
def test_the_head_refuses_a_grid_that_is_not_offered(subject, call, bad):
    refuses(subject, broken(call, *bad))


@requirement(spec.QEMB_21, call=heads(), bad=NOTHING, share=0.1)
def test_the_head_refuses_a_grid_of_nothing(subject, call, bad):
    refuses(subject, call.having(**bad))


@requirement(spec.QEMB_16, call=heads(sizes=several_groups), part=among(["biases", "scales"]), share=0.2)
def test_one_group_of_the_head_does_not_stand_for_all(subject, call, part):
    refuses(subject, broadcast(call, part))


@requirement(spec.QEMB_16, call=heads(sizes=several_groups), share=0.06)
def test_the_groups_of_one_row_of_the_head_do_not_stand_for_all(subject, call):
    refuses(subject, of_one_row(call, "biases"))
    refuses(subject, of_one_row(call, "scales"))


@requirement(spec.QEMB_19, call=heads(), part=among(["scales", "biases"]), share=0.1)
def test_a_nan_in_one_group_of_the_table_stays_in_its_logit(subject, call, part):
    subject.agrees(with_nan(call, part))


@requirement(spec.QEMB_20, call=heads(dtypes=HALF), share=0.1)
def test_scales_and_biases_of_a_head_in_float32_are_refused_or_read_for_their_numbers(subject, call):
    refuses_or_reads(subject, call, "scales", "biases")


@requirement(spec.QEMB_18, call=heads(leading_dims=BATCHES), axis=among([0, -2]), share=0.3)
def test_no_rows_give_no_logits(subject, call, axis):
    none = resized(call.arguments["x"], axis, 0)
    subject.expects(call.having(x=none), np.zeros((*none.shape[:-1], kept(call))))
