"""Does an implementation of rotary position embedding keep the contract?"""

import numpy as np

from inferspec.conformance.inputs.embedding import with_subnormals
from inferspec.conformance.inputs.rope import (
    NEAR,
    any_length,
    at,
    bases_alike,
    batches_of_prompts,
    beside_odd_tiles,
    beside_tiles,
    both_forms,
    decode,
    first_in_the_table,
    in_chunks,
    in_dtypes_in_turn,
    in_turn,
    last_in_the_table,
    long,
    long_prompts_of_models,
    long_prompts_of_rows,
    many_heads,
    misplaced,
    moved,
    no_rows,
    no_tokens,
    other_places,
    other_tables,
    outside_the_table,
    past_a_table,
    places_exchanged,
    prefill,
    prompts_of_dozens_of_heads,
    prompts_of_many_heads_or_rows,
    prompts_of_models,
    queries_and_keys,
    rope_calls,
    several_rows,
    some_heads_of_rows,
    starts_of,
    tokens_and_prompts,
    tokens_of_many_rows,
    tokens_of_models,
    two_turns,
    very_long,
)
from inferspec.conformance.properties.common import (
    depends_on_arguments_alone,
    goes_on_after_a_refused_call,
    keeps_arguments,
    refuses,
    returns,
    serves_more_and_fewer,
)
from inferspec.conformance.strategies import among, any_of, bottom_up, in_views
from inferspec.conformance.suite import requirement
from inferspec.spec import rope as spec
from inferspec.spec.contract import Answer
from inferspec.spec.numerics import Precision, f64

PLACED = ["int", "slice", "slices"]
OF_MODELS = {"head_dims": [64, 128], "partial": [False], "amplitude": (1.0,)}


@requirement(spec.ROPE_01, call=rope_calls(forms=["split-half"], offsets=["none"], partial=[False], sizes=prefill))
def test_split_half_pairs_turn_by_their_position(subject, call):
    subject.agrees(call)


@requirement(spec.ROPE_02, call=rope_calls(forms=["traditional"], offsets=["none"], partial=[False], sizes=prefill))
def test_traditional_pairs_are_neighbours_and_stay_where_they_are(subject, call):
    subject.agrees(call)


@requirement(spec.ROPE_03, call=rope_calls(offsets=["int"], sizes=prefill))
def test_several_tokens_count_on_from_an_int_offset(subject, call):
    subject.agrees(call)


@requirement(spec.ROPE_03, call=rope_calls(offsets=["int"], sizes=decode))
def test_a_single_token_sits_at_its_int_offset(subject, call):
    subject.agrees(call)


@requirement(spec.ROPE_03, call=rope_calls(offsets=["int", "none"], starts=(0,)))
def test_no_offset_is_offset_zero(subject, call):
    subject.agrees(call)


@requirement(spec.ROPE_04, call=rope_calls(offsets=["slice"]))
def test_a_slice_offset_means_its_start(subject, call):
    subject.agrees(call)


@requirement(spec.ROPE_05, call=rope_calls(offsets=["slices"], sizes=several_rows))
def test_each_row_has_the_positions_of_its_own_slice(subject, call):
    subject.agrees(call)


@requirement(spec.ROPE_05, call=rope_calls(offsets=["slices"], sizes=decode, starts=NEAR))
def test_rows_that_decode_sit_at_their_own_positions(subject, call):
    subject.agrees(call)


@requirement(spec.ROPE_06, call=rope_calls(sizes=prefill))
def test_the_base_is_the_one_given(subject, call):
    subject.agrees(call)


@requirement(spec.ROPE_07, call=rope_calls(offsets=PLACED), share=1.5)
def test_far_positions_are_right_in_every_dtype(subject, call):
    subject.agrees(call)


@requirement(spec.ROPE_07, call=rope_calls(sizes=long, head_dims=[2, 4, 6, 8, 16, 32]), share=0.3)
def test_no_position_of_a_long_sequence_is_wrong(subject, call):
    subject.agrees(call)


@requirement(spec.ROPE_07, call=rope_calls(sizes=long, head_dims=[128, 64, 256]), share=0.04)
def test_no_position_of_a_long_sequence_of_large_heads_is_wrong(subject, call):
    subject.agrees(call)


@requirement(spec.ROPE_08, call=rope_calls(starts=(0,)))
def test_position_zero_changes_nothing(subject, call):
    subject.expects(call, f64(call.arguments["x"]), where=_positions(call) == 0)


@requirement(spec.ROPE_08, call=rope_calls(offsets=["slices"], sizes=several_rows, starts=NEAR))
def test_a_row_at_position_zero_is_unchanged_among_others(subject, call):
    subject.expects(call, f64(call.arguments["x"]), where=_positions(call) == 0)


@requirement(spec.ROPE_09, turns=two_turns(offsets=PLACED))
def test_two_turns_are_one_turn_by_the_sum(subject, turns):
    first, second, both = turns
    once = subject.value(first)
    second = second.having(x=once)
    twice, whole = subject.value(second), subject.value(both)
    # The second turn carries the error of the first one along: at most the sum of what both features of a pair have.
    carried = _over_pairs(first, subject.answer(first).budget, np.add)
    budget = subject.answer(second).budget + subject.answer(both).budget + carried
    subject.compare(both, whole, Answer(f64(twice), budget), name="one turn after the other")


@requirement(spec.ROPE_09, call=rope_calls())
def test_the_norm_of_every_pair_is_kept(subject, call):
    before, after = f64(call.arguments["x"]), f64(subject.value(call))
    budget = _over_pairs(call, subject.answer(call).budget, np.hypot)
    kept = Answer(_over_pairs(call, before, np.hypot), budget)
    subject.compare(call, _over_pairs(call, after, np.hypot), kept, name="norm before")


@requirement(spec.ROPE_09, placed=queries_and_keys(offsets=PLACED))
def test_scores_depend_on_distances_alone(subject, placed):
    query, key, step = placed
    near, near_budget = _scores(subject, query, key)
    far, far_budget = _scores(subject, moved(query, step), moved(key, step))
    # The scores themselves are sums in float64, whose error is far below the budget of any of their terms.
    subject.compare(query, far, Answer(near, near_budget + far_budget), name=f"{step} positions earlier")


@requirement(spec.ROPE_10, forms=both_forms())
def test_the_two_forms_differ_by_the_order_of_features(subject, forms):
    traditional, split_half, order = forms
    first, second = subject.value(traditional), subject.value(split_half)
    budget = subject.answer(traditional).budget[..., order] + subject.answer(split_half).budget
    subject.compare(traditional, f64(first)[..., order], Answer(f64(second), budget), name="split-half form")


@requirement(spec.ROPE_11, call=rope_calls(sizes=several_rows))
def test_heads_and_rows_of_a_batch_are_independent(subject, call):
    subject.agrees(call)


@requirement(spec.ROPE_11, call=rope_calls(sizes=decode))
def test_every_row_of_a_decoding_batch_turns(subject, call):
    subject.agrees(call)


@requirement(spec.ROPE_11, call=rope_calls(), axis=among(["row", "head"]))
def test_nan_stays_in_its_row_and_head(subject, call, axis):
    x = call.arguments["x"].copy()
    bad = np.s_[-1:] if axis == "row" else np.s_[:, :, -1:]
    x[bad] = np.nan
    subject.agrees(call.having(x=x), where=~np.isnan(f64(x)))


@requirement(spec.ROPE_11, call=rope_calls(sizes=batches_of_prompts, head_dims=[4, 2, 8, 64]), share=0.2)
def test_every_prompt_of_a_batch_turns(subject, call):
    subject.agrees(call)


@requirement(spec.ROPE_11, call=rope_calls(sizes=several_rows, starts=NEAR))
def test_rows_in_another_order_give_their_results_in_that_order(subject, call):
    x, starts = call.arguments["x"], starts_of(call)
    backwards = at(call.having(x=x[::-1]), starts[::-1])
    first, second = subject.value(call), subject.value(backwards)
    budget = 2 * subject.answer(call).budget
    subject.compare(backwards, f64(second)[::-1], Answer(f64(first), budget), name="in order")


@requirement(spec.ROPE_12, call=rope_calls(partial=[True], sizes=prefill))
def test_the_first_dims_turn_with_their_own_frequencies(subject, call):
    subject.agrees(call)


@requirement(spec.ROPE_12, call=rope_calls(partial=[True]))
def test_features_past_dims_are_unchanged(subject, call):
    x, dims = call.arguments["x"], call.arguments["dims"]
    subject.expects(call, f64(x), where=np.arange(x.shape[-1]) >= dims)


@requirement(
    spec.ROPE_12,
    call=rope_calls(sizes=prompts_of_models, **{**OF_MODELS, "partial": [True]}),
    share=0.05,
)
def test_prompts_of_models_turn_their_first_dims_alone(subject, call):
    subject.agrees(call)


@requirement(spec.ROPE_12, call=rope_calls(partial=[True]), share=0.2)
def test_subnormal_features_past_dims_are_unchanged(subject, call):
    x, dims = call.arguments["x"], call.arguments["dims"]
    rest = np.arange(x.shape[-1]) >= dims
    tiny = np.where(rest, with_subnormals(x, call.seed), x)
    subject.expects(call.having(x=tiny), f64(tiny), where=rest)


@requirement(spec.ROPE_12, call=rope_calls(partial=[True]), bad=among([np.nan, np.inf]), share=0.2)
def test_a_nan_or_infinity_past_dims_stays_in_its_place(subject, call, bad):
    x = call.arguments["x"].copy()
    x[..., -1] = bad
    subject.agrees(call.having(x=x))


@requirement(spec.ROPE_13, call=outside_the_table())
def test_positions_outside_the_table_are_refused_or_right(subject, call):
    if not subject.observe(call).raised:
        subject.agrees(call)


@requirement(spec.ROPE_13, call=rope_calls(starts=NEAR))
def test_the_last_position_before_the_end_is_right(subject, call):
    reach = max(starts_of(call)) + call.arguments["x"].shape[1]
    subject.agrees(call.having(max_positions=reach))


@requirement(spec.ROPE_14, cut=in_chunks(offsets=PLACED))
def test_the_chunks_of_a_sequence_make_up_the_whole(subject, cut):
    whole, chunks = cut
    joined = np.concatenate([subject.agrees(chunk) for chunk in chunks], axis=1)
    subject.agrees(whole)
    subject.compare(whole, joined, subject.answer(whole, Precision.FLOAT32))


@requirement(spec.ROPE_15, call=in_views(rope_calls(), "x"))
def test_a_strided_x_is_read_like_its_copy(subject, call):
    subject.agrees(call)


@requirement(spec.ROPE_15, call=in_views(rope_calls(), "x", views=["far"]), share=0.15)
def test_heads_that_lie_far_apart_are_read_like_their_copies(subject, call):
    subject.agrees(call)


@requirement(spec.ROPE_15, call=rope_calls(), share=0.1)
def test_heads_that_lie_backwards_are_read_like_their_copies(subject, call):
    subject.agrees(bottom_up(call, "x"))


@requirement(spec.ROPE_15, call=in_views(rope_calls(sizes=beside_tiles, amplitude=(1.0,)), "x"), share=0.5)
def test_a_large_strided_x_is_read_like_its_copy(subject, call):
    subject.agrees(call)


@requirement(
    spec.ROPE_15,
    call=in_views(rope_calls(sizes=some_heads_of_rows, amplitude=(1.0,)), "x", views=["room", "heads", "slice"]),
    share=0.4,
)
def test_some_of_the_heads_of_each_row_are_read_like_their_copy(subject, call):
    subject.agrees(call)


@requirement(
    spec.ROPE_15,
    call=in_views(
        rope_calls(sizes=any_of(tokens_of_models, prompts_of_models), **{**OF_MODELS, "partial": [False, True]}),
        "x",
        views=["heads", "room", "slice", "transpose", "stride"],
    ),
    share=0.6,
)
def test_tokens_and_prompts_of_models_are_read_through_their_strides(subject, call):
    subject.agrees(call)


@requirement(spec.ROPE_16, call=rope_calls())
def test_the_result_has_the_shape_and_dtype_of_x(subject, call):
    returns(subject, call, call.arguments["x"].shape, call.features["dtypes"])


@requirement(spec.ROPE_16, call=rope_calls(sizes=beside_tiles), share=0.3)
def test_large_results_have_the_dtype_of_x(subject, call):
    returns(subject, call, call.arguments["x"].shape, call.features["dtypes"])


@requirement(
    spec.ROPE_16, call=rope_calls(sizes=no_rows, starts=NEAR, offsets=["none", "int"], empty=[True]), share=0.2
)
def test_results_of_no_rows_have_the_dtype_of_x(subject, call):
    returns(subject, call, call.arguments["x"].shape, call.features["dtypes"])


@requirement(spec.ROPE_16, call=rope_calls(sizes=no_tokens, starts=NEAR, empty=[True]), share=0.2)
def test_results_of_no_tokens_have_the_dtype_of_x(subject, call):
    returns(subject, call, call.arguments["x"].shape, call.features["dtypes"])


@requirement(spec.ROPE_15, call=in_views(rope_calls(sizes=decode), "x"), share=0.3)
def test_single_tokens_are_read_through_their_strides(subject, call):
    subject.agrees(call)


@requirement(spec.ROPE_17, call=rope_calls(sizes=decode, offsets=PLACED), share=0.3)
def test_single_tokens_are_not_turned_in_place(subject, call):
    keeps_arguments(subject, call)


@requirement(spec.ROPE_18, call=rope_calls(sizes=decode, offsets=PLACED), share=0.3)
def test_other_single_tokens_in_between_change_nothing(subject, call):
    other = call.having(x=-2 * call.arguments["x"][..., ::-1])
    depends_on_arguments_alone(subject, call.kept(0), other.kept(0))


@requirement(spec.ROPE_17, call=rope_calls(sizes=any_length))
def test_rope_changes_no_argument(subject, call):
    keeps_arguments(subject, call)


@requirement(spec.ROPE_18, pair=other_tables(), share=1.5)
def test_another_base_form_or_width_in_between_changes_nothing(subject, pair):
    depends_on_arguments_alone(subject, *pair)


@requirement(spec.ROPE_18, pair=other_tables(sizes=decode, offsets=PLACED), share=0.3)
def test_another_table_of_single_tokens_in_between_changes_nothing(subject, pair):
    first, second = pair
    # Two objects that are there at once.
    depends_on_arguments_alone(subject, first.kept(0), second.kept(1))


@requirement(spec.ROPE_18, pair=bases_alike(), share=0.3)
def test_a_base_that_differs_by_a_fraction_in_between_changes_nothing(subject, pair):
    depends_on_arguments_alone(subject, *pair)


@requirement(spec.ROPE_18, pair=other_places(offsets=PLACED))
def test_another_offset_in_between_changes_nothing(subject, pair):
    depends_on_arguments_alone(subject, *pair)


@requirement(spec.ROPE_18, pair=places_exchanged(offsets=["slices"]), share=0.3)
def test_rows_that_exchange_their_places_in_between_change_nothing(subject, pair):
    depends_on_arguments_alone(subject, *pair)


@requirement(spec.ROPE_18, call=rope_calls(sizes=any_length))
def test_other_data_at_the_same_place_in_between_changes_nothing(subject, call):
    other = call.having(x=-2 * call.arguments["x"][..., ::-1])
    depends_on_arguments_alone(subject, call.kept(0), other.kept(0))


@requirement(spec.ROPE_18, turns=in_turn())
def test_one_object_takes_every_kind_of_offset_in_turn(subject, turns):
    for call in turns:
        subject.agrees(call)


@requirement(spec.ROPE_18, call=outside_the_table(offsets=["int", "slice"]), share=0.3)
def test_positions_that_were_refused_leave_the_table_as_it_was(subject, call):
    subject.agrees(first_in_the_table(call).kept(0))
    goes_on_after_a_refused_call(subject, last_in_the_table(call).kept(0), call.kept(0))


@requirement(spec.ROPE_18, turns=past_a_table(offsets=PLACED), share=0.05)
def test_one_object_goes_past_the_sizes_of_tables(subject, turns):
    for call in turns:
        subject.agrees(call)


@requirement(spec.ROPE_18, turns=in_dtypes_in_turn(offsets=PLACED), share=0.3)
def test_one_object_takes_every_dtype_in_turn(subject, turns):
    for call in turns:
        subject.agrees(call)


@requirement(spec.ROPE_18, call=rope_calls(offsets=["none", "int"]), share=0.1)
def test_one_object_turns_few_heads_many_and_few(subject, call):
    serves_more_and_fewer(subject, call, "x")


@requirement(spec.ROPE_18, call=rope_calls(offsets=["none", "int"]), share=0.1)
def test_one_object_turns_a_sequence_a_batch_and_a_sequence(subject, call):
    serves_more_and_fewer(subject, call, "x", axis=0)


@requirement(spec.ROPE_19, call=rope_calls(partial=[False]), share=0.5)
def test_an_odd_number_of_features_is_refused(subject, call):
    x = call.arguments["x"][..., :-1]
    refuses(subject, call.having(x=x, dims=x.shape[-1]))


@requirement(spec.ROPE_19, call=rope_calls(partial=[True]), extra=among([1, 2, 3, 4, 100]))
def test_dims_that_are_odd_or_more_than_there_are_features_are_refused(subject, call, extra):
    x, dims = call.arguments["x"], call.arguments["dims"]
    refuses(subject, call.having(dims=x.shape[-1] + extra))
    refuses(subject, call.having(dims=dims - 1))


@requirement(spec.ROPE_20, call=misplaced(offsets=["slice", "slices"]))
def test_offsets_that_do_not_fit_are_refused(subject, call):
    refuses(subject, call)


@requirement(spec.ROPE_20, call=rope_calls(offsets=["slices"], sizes=several_rows, starts=NEAR), share=0.2)
def test_one_slice_for_several_rows_is_refused(subject, call):
    refuses(subject, call.having(offset=call.arguments["offset"][:1]))


@requirement(spec.ROPE_21, call=rope_calls(sizes=beside_tiles, amplitude=(1.0,)))
def test_sizes_beside_tiles_are_right(subject, call):
    subject.agrees(call)


@requirement(spec.ROPE_21, call=rope_calls(sizes=beside_odd_tiles, amplitude=(1.0,)), share=0.5)
def test_lengths_beside_tiles_that_are_no_powers_of_two_are_right(subject, call):
    subject.agrees(call)


@requirement(spec.ROPE_21, call=rope_calls(sizes=tokens_of_models, starts=(5, 1000, 4096), **OF_MODELS), share=0.5)
def test_tokens_of_models_are_right_at_any_position(subject, call):
    subject.agrees(call)


@requirement(spec.ROPE_21, call=rope_calls(sizes=prompts_of_models, **OF_MODELS), share=0.3)
def test_prompts_of_models_are_right(subject, call):
    subject.agrees(call)


@requirement(spec.ROPE_21, call=rope_calls(sizes=prompts_of_dozens_of_heads, **OF_MODELS), share=0.05)
def test_prompts_of_dozens_of_heads_are_right(subject, call):
    subject.agrees(call)


@requirement(spec.ROPE_21, call=rope_calls(sizes=long_prompts_of_models, **OF_MODELS), share=0.03)
def test_prompts_of_a_thousand_tokens_of_models_are_right(subject, call):
    subject.agrees(call)


@requirement(
    spec.ROPE_21,
    call=rope_calls(sizes=tokens_and_prompts, head_dims=[256, 80, 96], partial=[False], amplitude=(1.0,)),
    share=0.4,
)
def test_tokens_and_prompts_of_models_of_other_heads_are_right(subject, call):
    subject.agrees(call)


@requirement(
    spec.ROPE_21,
    call=rope_calls(sizes=tokens_of_many_rows, starts=NEAR, offsets=["slices", "int"], head_dims=[4, 64, 8]),
    share=0.2,
)
def test_tokens_of_dozens_of_rows_and_heads_are_right(subject, call):
    subject.agrees(call)


@requirement(spec.ROPE_21, call=rope_calls(sizes=long_prompts_of_rows, starts=NEAR, head_dims=[4, 64, 8]), share=0.05)
def test_long_prompts_of_several_rows_and_heads_are_right(subject, call):
    subject.agrees(call)


@requirement(
    spec.ROPE_21,
    call=rope_calls(sizes=prompts_of_many_heads_or_rows, starts=NEAR, head_dims=[8, 64, 4], amplitude=(1.0,)),
    share=0.1,
)
def test_prompts_of_many_heads_or_rows_are_right(subject, call):
    subject.agrees(call)


@requirement(spec.ROPE_21, call=rope_calls.strict()(sizes=many_heads, starts=NEAR, head_dims=[4, 2]), share=0.06)
def test_more_heads_than_16_bits_count_are_right(subject, call):
    subject.agrees(call)


@requirement(spec.ROPE_21, call=rope_calls.strict()(sizes=very_long, starts=NEAR, head_dims=[4, 2]), share=0.04)
def test_more_tokens_than_16_bits_count_are_right(subject, call):
    subject.agrees(call)


@requirement(
    spec.ROPE_21, call=rope_calls(sizes=no_rows, starts=NEAR, offsets=["none", "int"], empty=[True]), share=0.3
)
def test_no_rows_give_an_empty_result(subject, call):
    subject.expects(call, f64(call.arguments["x"]))


@requirement(spec.ROPE_21, call=rope_calls(sizes=no_tokens, starts=NEAR, empty=[True]), share=0.3)
def test_no_tokens_give_an_empty_result(subject, call):
    subject.expects(call, f64(call.arguments["x"]))


@requirement(spec.ROPE_22, call=rope_calls(sizes=any_length), share=0.1)
def test_an_object_made_in_one_thread_turns_in_another(subject, call):
    subject.agrees(call.in_another_thread())


def _positions(call):
    """B×L×1×1."""
    operation = spec.RoPE()
    return operation.positions(operation.bind(call.arguments))[:, :, None, None]


def _over_pairs(call, x, combine):
    """For each feature what `combine` makes of its pair; a feature that does not turn stands for itself."""
    operation = spec.RoPE()
    a = operation.bind(call.arguments)
    first, second = operation.features(a.dims, a)
    combined = np.abs(f64(x))
    combined[..., first] = combined[..., second] = combine(combined[..., first], combined[..., second])
    return combined


def _scores(subject, query, key):
    """Products of queries and keys, B×L×H, and the budget of those."""
    (q, q_budget), (k, k_budget) = ((f64(subject.value(call)), subject.answer(call).budget) for call in (query, key))
    budget = np.abs(q) * k_budget + np.abs(k) * q_budget + q_budget * k_budget
    return (q * k).sum(axis=-1), budget.sum(axis=-1)
