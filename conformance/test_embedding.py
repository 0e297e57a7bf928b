"""Does an implementation of the token embedding and of the tied output head keep the contract?"""

import numpy as np

from inferspec.conformance.envelope import narrow
from inferspec.conformance.inputs.embedding import (
    a_long_prompt,
    a_prompt_of_a_model,
    a_token,
    beside_odd_tiles,
    beside_tiles,
    head_calls,
    large,
    long_sums,
    looked_up,
    lookup_calls,
    many_rows_wide,
    many_tiles_each_way,
    many_tokens,
    of_model_widths,
    of_models,
    of_one_token,
    of_the_last_id,
    of_thousands,
    one_row,
    past_16_bits,
    ragged_tiles,
    reading_heads,
    rows_of_prompts,
    small_or_moderate,
    square,
    squares,
    towering_heads,
    wide_both_ways,
    wide_rows,
    with_subnormals,
)
from inferspec.conformance.inputs.linear import beside_others, resized, with_few, with_zeros
from inferspec.conformance.properties.common import (
    depends_on_arguments_alone,
    keeps_arguments,
    refuses,
    refuses_or_reads,
    returns,
    serves_both,
    serves_more_and_fewer,
)
from inferspec.conformance.strategies import (
    HALF,
    MOSTLY_SLICES,
    WIDE_VIEWS,
    among,
    any_of,
    bottom_up,
    in_views,
    one_token_each,
)
from inferspec.conformance.suite import requirement
from inferspec.spec import embedding as spec

BATCHES = [(2,), (2, 3), (9, 2)]
FEW_OR_MANY = any_of(small_or_moderate, ragged_tiles)
SINGLE = {"sizes": one_row, "dtypes": ["bfloat16"], "leading_dims": [(), (1,)]}
"""A single row or token, as in decoding."""

# the lookup


@requirement(spec.EMB_01, call=lookup_calls())
def test_each_token_gives_its_row_bit_for_bit(subject, call):
    subject.agrees(call)


@requirement(spec.EMB_01, call=lookup_calls(sizes=small_or_moderate), share=0.2)
def test_subnormal_numbers_come_back_as_they_are(subject, call):
    subject.agrees(call.having(weight=with_subnormals(call.arguments["weight"], call.seed)))


@requirement(spec.EMB_01, call=lookup_calls(sizes=small_or_moderate), bad=among([np.nan, np.inf, -np.inf]), share=0.2)
def test_a_nan_or_infinity_in_a_row_comes_out_as_it_is(subject, call, bad):
    weight, tokens = call.arguments["weight"].copy(), call.arguments["tokens"]
    place = call.seed % weight.size
    weight.flat[place] = bad
    # Of that row alone: whether other rows are multiplied by 0 on the way is left open.
    subject.agrees(call.having(weight=weight, tokens=np.full_like(tokens, place // weight.shape[1])))


@requirement(spec.EMB_02, call=lookup_calls(borders=True))
def test_the_first_and_the_last_id_read_their_own_rows(subject, call):
    subject.agrees(call)


@requirement(spec.EMB_02, call=lookup_calls(borders=True, sizes=large), share=0.5)
def test_ids_past_255_and_32767_and_65535_read_their_own_rows(subject, call):
    subject.agrees(call)


@requirement(spec.EMB_02, call=lookup_calls(sizes=large, leading_dims=[(), (1,)]), share=0.3)
def test_the_last_id_of_a_large_vocabulary_may_come_alone(subject, call):
    subject.agrees(of_the_last_id(call))


@requirement(spec.EMB_02, call=lookup_calls(sizes=small_or_moderate), share=0.2)
def test_the_first_id_may_come_alone(subject, call):
    tokens = call.arguments["tokens"]
    subject.agrees(call.having(tokens=np.zeros((1,) * tokens.ndim, tokens.dtype)))


@requirement(
    spec.EMB_03, call=lookup_calls(leading_dims=[(2, 1, 3)]), batches=among([3, 4]), axes=among([3, 4]), share=0.1
)
def test_tokens_of_three_and_four_axes_give_rows_in_their_places(subject, call, batches, axes):
    tokens, vocabulary = call.arguments["tokens"].astype(np.int64), call.arguments["vocab_size"]
    later = np.concatenate([(tokens + i) % vocabulary for i in range(batches)], axis=1)
    if axes > 3:
        later = np.stack([later, (later + batches) % vocabulary], axis=2)
    subject.agrees(call.having(tokens=later.astype(call.arguments["tokens"].dtype)))


@requirement(spec.EMB_03, call=lookup_calls())
def test_tokens_of_any_shape_give_rows_in_their_places(subject, call):
    subject.agrees(call)


@requirement(spec.EMB_03, call=lookup_calls(leading_dims=BATCHES), axis=among([0, -1]), share=0.5)
def test_no_tokens_give_no_rows(subject, call, axis):
    none = resized(call.arguments["tokens"], axis, 0)
    subject.expects(call.having(tokens=none), np.zeros((*none.shape, call.arguments["dims"])))


@requirement(spec.EMB_03, call=lookup_calls(sizes=beside_tiles))
def test_many_tokens_and_wide_rows_are_right(subject, call):
    subject.agrees(call)


@requirement(spec.EMB_03, call=lookup_calls(sizes=wide_rows), share=0.3)
def test_rows_of_thousands_of_features_are_right(subject, call):
    subject.agrees(call)


@requirement(spec.EMB_03, call=lookup_calls(sizes=of_model_widths, leading_dims=[(1,)]), share=0.25)
def test_rows_of_widths_that_are_no_powers_of_two_are_whole(subject, call):
    subject.agrees(call)


@requirement(spec.EMB_03, call=lookup_calls(sizes=rows_of_prompts, leading_dims=[(2, 3)]), share=0.1)
def test_prompts_of_whole_tiles_and_of_more_than_a_thousand_tokens_are_right_in_a_batch_of_one(subject, call):
    # Who claims batches of several alone is asked for no other.
    narrow(subject.envelope, {"leading_dims": [(1,)]})
    subject.agrees(call.having(tokens=call.arguments["tokens"][:1]))


@requirement(spec.EMB_03, call=lookup_calls(sizes=a_prompt_of_a_model, leading_dims=[(1,), (2,)]), share=0.03)
def test_prompts_of_a_model_are_right(subject, call):
    subject.agrees(call)


@requirement(spec.EMB_03, call=lookup_calls(sizes=many_tokens, leading_dims=[(1,), (2,)]), share=0.1)
def test_thousands_of_tokens_are_right(subject, call):
    subject.agrees(call)


@requirement(spec.EMB_03, call=lookup_calls(sizes=a_long_prompt, leading_dims=[(1,), (2,)]), share=0.01, shrinks=False)
def test_thousands_of_tokens_of_wide_rows_are_right(subject, call):
    subject.agrees(call)


@requirement(spec.EMB_03, call=lookup_calls(sizes=past_16_bits, leading_dims=[(9, 2), (2, 3)]), share=0.04)
def test_more_sequences_of_one_token_than_16_bits_count_are_right(subject, call):
    subject.agrees(call.having(tokens=call.arguments["tokens"][0][:, None]))


@requirement(spec.EMB_04, call=in_views(lookup_calls(sizes=beside_tiles)))
def test_large_strided_tables_and_tokens_are_read_like_their_copies(subject, call):
    subject.agrees(call)


@requirement(spec.EMB_04, call=in_views(lookup_calls(), "weight"))
def test_a_strided_weight_is_looked_up_like_its_copy(subject, call):
    subject.agrees(call)


@requirement(spec.EMB_04, call=in_views(lookup_calls(), "weight", views=["far"]), share=0.1)
def test_a_weight_whose_rows_lie_far_apart_is_looked_up_like_its_copy(subject, call):
    subject.agrees(call)


@requirement(spec.EMB_04, call=in_views(lookup_calls(), "weight", "tokens", views=["beginning"]), share=0.15)
def test_the_beginnings_of_longer_tables_and_lists_of_tokens_are_read_like_their_copies(subject, call):
    subject.agrees(call)


@requirement(spec.EMB_04, call=lookup_calls(), share=0.1)
def test_a_weight_whose_rows_lie_backwards_is_looked_up_like_its_copy(subject, call):
    subject.agrees(bottom_up(call, "weight"))


@requirement(spec.EMB_04, call=in_views(lookup_calls(sizes=a_token), "weight"), share=0.1)
def test_a_strided_table_of_a_thousand_rows_is_looked_up_like_its_copy(subject, call):
    subject.agrees(call)


@requirement(spec.EMB_04, call=in_views(lookup_calls(sizes=of_models), "tokens", "weight", views=WIDE_VIEWS), share=0.4)
def test_prompts_of_models_are_looked_up_through_strides(subject, call):
    subject.agrees(call)


@requirement(spec.EMB_04, call=in_views(lookup_calls(leading_dims=BATCHES), "tokens"))
def test_strided_tokens_are_read_like_their_copy(subject, call):
    subject.agrees(call)


@requirement(spec.EMB_04, call=lookup_calls(sizes=ragged_tiles, leading_dims=[(1,), (2,)]), share=0.05)
def test_tokens_that_are_the_first_row_of_a_table_are_all_read(subject, call):
    subject.agrees(call.viewing("tokens", "row"))


@requirement(spec.EMB_05, call=lookup_calls(sizes=small_or_moderate))
def test_rows_have_the_dtype_of_the_weight(subject, call):
    shape = (*call.arguments["tokens"].shape, call.arguments["dims"])
    returns(subject, call, shape, call.features["dtypes"])


@requirement(spec.EMB_05, call=lookup_calls(leading_dims=BATCHES), share=0.3)
def test_no_rows_have_the_dtype_of_the_weight(subject, call):
    none = call.having(tokens=call.arguments["tokens"][:0])
    shape = (*none.arguments["tokens"].shape, call.arguments["dims"])
    returns(subject, none, shape, call.features["dtypes"])


@requirement(spec.EMB_04, call=in_views(lookup_calls(**SINGLE), "weight"), share=0.2)
def test_a_single_token_is_looked_up_through_the_strides_of_the_weight(subject, call):
    subject.agrees(of_one_token(call))


@requirement(spec.EMB_05, call=lookup_calls(**SINGLE), share=0.1)
def test_the_row_of_a_single_token_has_the_dtype_of_the_weight(subject, call):
    one = of_one_token(call)
    returns(subject, one, (*one.arguments["tokens"].shape, call.arguments["dims"]), call.features["dtypes"])


@requirement(spec.EMB_06, call=lookup_calls(sizes=FEW_OR_MANY))
def test_the_lookup_changes_no_argument(subject, call):
    keeps_arguments(subject, call)


@requirement(spec.EMB_07, call=lookup_calls(sizes=FEW_OR_MANY))
def test_other_tokens_in_between_change_nothing(subject, call):
    other = call.having(tokens=_next_ids(call))
    depends_on_arguments_alone(subject, call.kept(0), other.kept(0))


@requirement(spec.EMB_07, call=lookup_calls(leading_dims=[(2,), (2, 3)]), share=0.1)
def test_one_table_serves_a_token_a_prompt_and_a_token(subject, call):
    serves_more_and_fewer(subject, call, "tokens", axis=-1)


@requirement(spec.EMB_07, call=lookup_calls(leading_dims=[(2, 3)]), share=0.1)
def test_one_table_serves_a_sequence_a_batch_and_a_sequence(subject, call):
    serves_more_and_fewer(subject, call, "tokens", axis=0)


@requirement(spec.EMB_07, call=lookup_calls(), share=0.1)
def test_two_tables_are_kept_apart(subject, call):
    depends_on_arguments_alone(subject, call.kept(0), call.having(weight=-call.arguments["weight"]).kept(1))


@requirement(spec.EMB_07, call=lookup_calls(sizes=FEW_OR_MANY))
def test_another_table_in_between_changes_nothing(subject, call):
    depends_on_arguments_alone(subject, call, call.having(weight=-call.arguments["weight"]))


@requirement(spec.EMB_08, call=lookup_calls(sized=[True]), axis=among([0, 1]), more=among([False, True]))
def test_a_table_of_another_size_is_refused(subject, call, axis, more):
    weight = call.arguments["weight"]
    refuses(subject, call.having(weight=resized(weight, axis, weight.shape[axis] + (1 if more else -1))))


@requirement(spec.EMB_08, call=lookup_calls(sized=[True]), share=0.1)
def test_a_table_that_lies_the_other_way_round_is_refused(subject, call):
    refuses(subject, call.having(weight=np.ascontiguousarray(call.arguments["weight"].T)))


@requirement(spec.EMB_09, call=lookup_calls(token_dtypes=["int32", "int64"]), share=0.5)
def test_a_negative_id_is_refused(subject, call):
    refuses(subject, _with_one(call, -1))


@requirement(spec.EMB_09, call=lookup_calls(), past=among([0, 5]), share=0.5)
def test_an_id_past_the_vocabulary_is_refused(subject, call, past):
    refuses(subject, _with_one(call, call.arguments["vocab_size"] + past))


@requirement(spec.EMB_09, call=lookup_calls(), share=0.1)
def test_the_largest_id_of_a_dtype_is_refused(subject, call):
    refuses(subject, _with_one(call, np.iinfo(call.arguments["tokens"].dtype).max))


@requirement(
    spec.EMB_09, call=lookup_calls(token_dtypes=["int64"]), past=among([2**32, 2**32 + 1, 1 - 2**32]), share=0.1
)
def test_an_id_that_32_bits_would_wrap_into_the_vocabulary_is_refused(subject, call, past):
    refuses(subject, _with_one(call, past))


# the output head


@requirement(spec.EMB_10, call=head_calls())
def test_logits_are_x_times_the_transposed_weight(subject, call):
    subject.agrees(call)


@requirement(spec.EMB_11, reading=reading_heads())
def test_the_head_reads_the_features_of_each_id_from_the_table(subject, reading):
    call, expected = reading
    subject.expects(call, expected)


@requirement(spec.EMB_11, reading=reading_heads(sizes=square))
def test_a_square_table_is_transposed_too(subject, reading):
    call, expected = reading
    subject.expects(call, expected)


@requirement(spec.EMB_11, call=head_calls(), share=0.1)
def test_one_table_is_looked_up_in_and_serves_as_the_head_in_turn(subject, call):
    serves_both(subject, call, looked_up(call, subject.envelope["token_dtypes"][0]))


@requirement(spec.EMB_12, call=head_calls(sizes=long_sums, positive=True, amplitude=(1.0,)), share=0.6)
def test_thousands_of_features_are_summed_in_float32(subject, call):
    subject.agrees(call)


@requirement(spec.EMB_12, towering=towering_heads(), share=0.5)
def test_partial_sums_may_pass_the_range_of_float16(subject, towering):
    call, expected = towering
    subject.expects(call, expected)


@requirement(spec.EMB_12, call=head_calls())
def test_logits_keep_the_precision_of_their_dtype(subject, call):
    subject.agrees(call)


@requirement(spec.EMB_13, reading=reading_heads(leading_dims=BATCHES))
def test_a_batch_of_logits_is_the_stack_of_its_rows(subject, reading):
    call, expected = reading
    subject.expects(call, expected)


@requirement(
    spec.EMB_13,
    call=head_calls(sizes=small_or_moderate, leading_dims=BATCHES),
    bad=among([np.nan, np.inf, -np.inf]),
    share=0.3,
)
def test_a_nan_or_infinity_stays_in_the_logits_of_its_row(subject, call, bad):
    subject.agrees(call.having(x=with_few(call.arguments["x"], bad, call.seed)))


@requirement(
    spec.EMB_20,
    call=head_calls(sizes=small_or_moderate, leading_dims=BATCHES, amplitude=(1.0,)),
    bad=among([np.nan, np.inf]),
    share=0.1,
)
def test_a_nan_or_infinity_in_the_table_shows_where_x_is_zero_too(subject, call, bad):
    subject.agrees(with_zeros(call).having(weight=with_few(call.arguments["weight"], bad, call.seed)))


@requirement(
    spec.EMB_20,
    call=head_calls(sizes=small_or_moderate),
    bad=among([np.nan, np.inf, -np.inf]),
    share=0.3,
)
def test_a_nan_or_infinity_in_the_table_shows_in_its_logit_alone(subject, call, bad):
    subject.agrees(call.having(weight=with_few(call.arguments["weight"], bad, call.seed)))


@requirement(
    spec.EMB_13, call=head_calls(leading_dims=[(2, 1, 3)]), batches=among([3, 4]), axes=among([4, 5]), share=0.1
)
def test_batches_of_batches_have_their_logits_in_their_places(subject, call, batches, axes):
    subject.agrees(beside_others(call, batches, axes))


@requirement(spec.EMB_13, call=head_calls())
def test_leading_dims_of_logits_may_be_none_or_many(subject, call):
    subject.agrees(call)


@requirement(spec.EMB_13, call=head_calls(leading_dims=BATCHES), axis=among([0, -2]), share=0.5)
def test_no_rows_give_no_logits(subject, call, axis):
    none = resized(call.arguments["x"], axis, 0)
    subject.expects(call.having(x=none), np.zeros((*none.shape[:-1], call.arguments["vocab_size"])))


@requirement(spec.EMB_13, call=head_calls(sizes=beside_tiles, amplitude=(1.0,), leading_dims=[(2, 3)]), share=0.15)
def test_logits_of_a_token_of_each_of_many_sequences_are_right(subject, call):
    subject.agrees(one_token_each(call))


@requirement(spec.EMB_14, call=in_views(head_calls(sizes=small_or_moderate)), share=1.5)
def test_the_head_reads_strided_arguments_like_their_copies(subject, call):
    subject.agrees(call)


@requirement(
    spec.EMB_14, call=in_views(head_calls(sizes=ragged_tiles, leading_dims=[(2,)]), views=MOSTLY_SLICES), share=0.8
)
def test_the_head_reads_many_rows_through_their_strides(subject, call):
    subject.agrees(call)


@requirement(
    spec.EMB_14,
    call=in_views(head_calls(sizes=of_thousands, leading_dims=[(1,), (2,)]), views=WIDE_VIEWS),
    share=0.5,
)
def test_the_head_reads_strided_arguments_of_thousands_of_ids_or_dims_like_their_copies(subject, call):
    subject.agrees(call)


@requirement(
    spec.EMB_14,
    call=in_views(head_calls(sizes=of_models, amplitude=(1.0,), leading_dims=[(1,)]), "x", "weight", views=WIDE_VIEWS),
    share=0.5,
)
def test_the_head_reads_tokens_and_prompts_of_models_through_strides(subject, call):
    subject.agrees(call)


@requirement(spec.EMB_15, call=head_calls(sizes=FEW_OR_MANY))
def test_logits_have_the_dtype_of_x(subject, call):
    shape = (*call.arguments["x"].shape[:-1], call.arguments["vocab_size"])
    returns(subject, call, shape, call.features["dtypes"])


@requirement(spec.EMB_14, call=in_views(head_calls(leading_dims=BATCHES), "x", "weight", views=["far"]), share=0.2)
def test_rows_that_lie_far_apart_are_multiplied_like_their_copies(subject, call):
    subject.agrees(call)


@requirement(spec.EMB_14, call=head_calls(leading_dims=BATCHES), share=0.15)
def test_rows_that_lie_backwards_are_multiplied_like_their_copies(subject, call):
    subject.agrees(bottom_up(call, "x", "weight"))


@requirement(spec.EMB_14, call=in_views(head_calls(**SINGLE)), share=0.35)
def test_the_head_reads_a_strided_single_row_like_its_copy(subject, call):
    subject.agrees(call)


@requirement(spec.EMB_15, call=head_calls(**SINGLE), share=0.1)
def test_logits_of_a_single_row_have_its_dtype(subject, call):
    shape = (*call.arguments["x"].shape[:-1], call.arguments["vocab_size"])
    returns(subject, call, shape, call.features["dtypes"])


@requirement(spec.EMB_15, call=head_calls(leading_dims=BATCHES), share=0.1)
def test_logits_of_no_rows_have_the_dtype_of_x(subject, call):
    none = call.having(x=call.arguments["x"][:0])
    returns(subject, none, (*none.arguments["x"].shape[:-1], call.arguments["vocab_size"]), call.features["dtypes"])


@requirement(spec.EMB_16, call=head_calls(sizes=FEW_OR_MANY))
def test_the_head_changes_no_argument(subject, call):
    keeps_arguments(subject, call)


@requirement(spec.EMB_17, call=head_calls(sizes=FEW_OR_MANY))
def test_other_rows_in_between_change_no_logits(subject, call):
    other = call.having(x=-call.arguments["x"])
    depends_on_arguments_alone(subject, call.kept(0), other.kept(0))


@requirement(spec.EMB_17, call=head_calls(leading_dims=[(2,), (2, 3)]), share=0.1)
def test_one_head_serves_a_token_a_prompt_and_a_token(subject, call):
    serves_more_and_fewer(subject, call, "x")


@requirement(spec.EMB_17, call=head_calls(leading_dims=[(2, 3)]), share=0.1)
def test_one_head_serves_a_sequence_a_batch_and_a_sequence(subject, call):
    serves_more_and_fewer(subject, call, "x", axis=0)


@requirement(spec.EMB_17, call=head_calls(), share=0.1)
def test_the_heads_of_two_tables_are_kept_apart(subject, call):
    depends_on_arguments_alone(subject, call.kept(0), call.having(weight=-call.arguments["weight"]).kept(1))


@requirement(spec.EMB_17, call=head_calls(sizes=FEW_OR_MANY))
def test_the_head_of_another_table_in_between_changes_nothing(subject, call):
    depends_on_arguments_alone(subject, call, call.having(weight=-call.arguments["weight"]))


@requirement(spec.EMB_18, call=head_calls(), bad=among(["longer", "shorter", "twice"]))
def test_an_x_of_other_dims_is_refused(subject, call, bad):
    dims = call.arguments["dims"]
    size = {"longer": dims + 1, "shorter": dims - 1, "twice": 2 * dims}[bad]
    refuses(subject, call.having(x=resized(call.arguments["x"], -1, size)))


@requirement(spec.EMB_19, call=head_calls(sizes=rows_of_prompts, amplitude=(1.0,), leading_dims=[(2, 3)]), share=0.1)
def test_logits_of_prompts_of_whole_tiles_and_of_more_than_a_thousand_tokens_are_right_in_a_batch_of_one(subject, call):
    # Who claims batches of several alone is asked for no other.
    narrow(subject.envelope, {"leading_dims": [(1,)]})
    subject.agrees(call.having(x=call.arguments["x"][:1]))


@requirement(spec.EMB_19, call=head_calls(sizes=wide_both_ways, amplitude=(1.0,), leading_dims=[(1,)]), share=0.1)
def test_logits_of_wide_rows_and_many_ids_are_right(subject, call):
    subject.agrees(call)


@requirement(spec.EMB_19, call=head_calls(sizes=a_token, amplitude=(1.0, 3e6), leading_dims=[(1,)]), share=0.4)
def test_the_logits_of_a_token_are_right(subject, call):
    subject.agrees(call)


@requirement(spec.EMB_19, call=head_calls(sizes=of_model_widths, amplitude=(1.0,), leading_dims=[(1,)]), share=0.2)
def test_widths_of_models_that_are_no_powers_of_two_are_right(subject, call):
    subject.agrees(call)


@requirement(spec.EMB_19, call=head_calls(sizes=beside_tiles, amplitude=(1.0,)), share=1.5)
def test_vocabularies_beside_tiles_are_right(subject, call):
    subject.agrees(call)


@requirement(spec.EMB_19, call=head_calls(sizes=beside_odd_tiles, amplitude=(1.0,), leading_dims=[(1,)]), share=0.3)
def test_vocabularies_beside_tiles_that_are_no_powers_of_two_are_right(subject, call):
    subject.agrees(call)


@requirement(spec.EMB_19, call=head_calls(sizes=many_rows_wide, amplitude=(1.0,), leading_dims=[(1,), (2,)]), share=0.1)
def test_every_logit_of_a_prompt_is_written(subject, call):
    subject.agrees(call)


@requirement(spec.EMB_19, call=head_calls(sizes=many_tiles_each_way, amplitude=(1.0,), leading_dims=[(1,)]), share=0.03)
def test_logits_of_many_tiles_each_way_are_right(subject, call):
    subject.agrees(call)


@requirement(spec.EMB_19, call=head_calls(sizes=squares, amplitude=(1.0,), leading_dims=[(1,)]), share=0.03)
def test_logits_of_a_few_rows_of_a_small_model_are_right(subject, call):
    subject.agrees(call)


@requirement(spec.EMB_19, call=head_calls(sizes=large, amplitude=(1.0,)), share=0.5)
def test_every_logit_of_a_large_vocabulary_is_written(subject, call):
    subject.agrees(call)


@requirement(spec.EMB_21, call=head_calls(dtypes=HALF, amplitude=(1.0,)), share=0.2)
def test_a_table_in_float32_is_refused_or_read_for_its_numbers(subject, call):
    refuses_or_reads(subject, call, "weight")


def _next_ids(call):
    """The tokens with every id replaced by the one after it."""
    tokens = call.arguments["tokens"]
    return np.asarray((tokens.astype(np.int64) + 1) % call.arguments["vocab_size"]).astype(tokens.dtype)


def _with_one(call, bad):
    """The same call with one of its tokens replaced."""
    tokens = call.arguments["tokens"].copy()
    tokens.flat[call.seed % tokens.size] = bad
    return call.having(tokens=tokens)
