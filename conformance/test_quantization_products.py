"""Does an implementation of products with packed weights keep the contract?"""

import numpy as np

from inferspec.conformance.inputs.linear import beside_others, resized
from inferspec.conformance.inputs.quantization import (
    BATCHES,
    FEW_OR_MANY,
    NOTHING,
    PACKED,
    READ,
    SINGLE,
    a_cache,
    a_few_rows_of_thousands,
    a_few_tokens,
    a_long_prompt,
    a_prompt,
    a_prompt_over_thousands,
    a_token,
    an_expert,
    beside_odd_tiles,
    beside_tiles,
    hundreds_of_rows,
    long_sums,
    many_outputs,
    many_rows,
    many_tiles_each_way,
    of_model_widths,
    of_models,
    of_thousands,
    one_row,
    one_row_of_thousands,
    one_row_past_tiles,
    past_a_tile,
    product_calls,
    reading_products,
    several_groups,
    several_tiles,
    shaded_products,
    shared_heads,
    square,
    squares,
    stacked_products,
    tall_products,
    tokens_of_sequences,
    whole_tiles,
    wide_batches,
    wide_both_ways,
    wide_layers,
)
from inferspec.conformance.properties.common import (
    depends_on_arguments_alone,
    is_right_if_taken,
    keeps_arguments,
    reads_what_was_written,
    refuses,
    refuses_or_reads,
    returns,
)
from inferspec.conformance.properties.quantization import (
    BROKEN,
    broadcast,
    kept,
    of_one_row,
    refuses_parts,
    scaled,
    with_nan,
    with_nan_in_x,
    within_class,
)
from inferspec.conformance.strategies import HALF, WIDE_VIEWS, among, any_of, bottom_up, in_views, one_token_each
from inferspec.conformance.suite import requirement
from inferspec.spec import quantization_sentences as spec
from inferspec.spec.contract import Answer

one_row_products = product_calls(sizes=one_row, **SINGLE)


@requirement(spec.QMM_01, call=product_calls(transpose=[True]))
def test_products_are_x_times_the_transposed_weights(subject, call):
    subject.agrees(call)


@requirement(spec.QMM_01, call=product_calls(sizes=square, transpose=[True]), share=0.1)
def test_weights_are_transposed_where_nothing_is_said(subject, call):
    subject.agrees(call.without("transpose"))


@requirement(spec.QMM_18, call=product_calls.strict()(group_sizes=[128], bits=[4]), share=0.1)
def test_products_are_with_4_bits_in_groups_of_128_where_nothing_is_said(subject, call):
    subject.agrees(call.without("group_size", "bits"))


@requirement(spec.QMM_02, call=product_calls(transpose=[False]))
def test_products_are_x_times_the_weights_when_not_transposed(subject, call):
    subject.agrees(call)


@requirement(spec.QMM_02, reading=reading_products(transpose=[False], sizes=square), share=0.5)
def test_square_weights_are_not_transposed(subject, reading):
    subject.expects(*reading)


@requirement(
    spec.QMM_02, call=stacked_products(stacked=[True], transpose=[False], alike=True, sizes=square), share=0.05
)
def test_stacked_square_weights_are_not_transposed(subject, call):
    is_right_if_taken(subject, call)


@requirement(spec.QMM_03, call=product_calls(sizes=long_sums, positive=True, transpose=[True]), share=0.5)
def test_thousands_of_features_are_summed_in_float32(subject, call):
    subject.agrees(call)


@requirement(spec.QMM_03, call=product_calls())
def test_products_keep_the_precision_of_their_dtype(subject, call):
    subject.agrees(call)


@requirement(spec.QMM_03, reading=shaded_products(bits=[4, 8]))
def test_large_numbers_that_meet_weights_of_zero_change_nothing(subject, reading):
    subject.expects(*reading)


@requirement(spec.QMM_03, reading=shaded_products(bits=[4, 8], sizes=beside_tiles), share=0.5)
def test_large_numbers_that_meet_weights_of_zero_change_nothing_at_any_size(subject, reading):
    subject.expects(*reading)


@requirement(spec.QMM_03, call=tall_products(dtypes=["float16"]), share=0.1)
def test_codes_times_scales_of_products_may_pass_the_range_of_float16(subject, call):
    subject.agrees(within_class(subject, call))


@requirement(spec.QMM_04, reading=reading_products(transpose=[True]))
def test_each_feature_is_read_by_its_own_code_scale_and_bias(subject, reading):
    subject.expects(*reading)


@requirement(spec.QMM_03, call=product_calls(dtypes=["bfloat16", "float32"]), power=among([-20, 20]), share=0.2)
def test_scales_of_products_that_float16_cannot_hold_are_right_in_other_dtypes(subject, call, power):
    subject.agrees(scaled(call, 2.0**power))


@requirement(spec.QMM_04, reading=reading_products(transpose=[True], sizes=square), share=0.5)
def test_square_weights_are_read_by_rows(subject, reading):
    subject.expects(*reading)


@requirement(spec.QMM_04, reading=reading_products(sizes=beside_tiles), share=0.6)
def test_each_feature_of_many_groups_is_read_by_its_own(subject, reading):
    subject.expects(*reading)


@requirement(spec.QMM_05, reading=reading_products(leading_dims=BATCHES))
def test_a_batch_of_products_is_the_stack_of_its_rows(subject, reading):
    subject.expects(*reading)


@requirement(spec.QMM_05, call=product_calls(sizes=wide_batches, transpose=[False], leading_dims=BATCHES), share=0.2)
def test_a_batch_of_wide_products_is_right_when_not_transposed(subject, call):
    subject.agrees(call)


@requirement(spec.QMM_05, call=product_calls(), share=0.5)
def test_leading_dims_may_be_none_or_many(subject, call):
    subject.agrees(call)


@requirement(
    spec.QMM_05, call=product_calls(leading_dims=[(2, 1, 3)]), batches=among([3, 4]), axes=among([4, 5]), share=0.1
)
def test_batches_of_batches_of_products_are_in_their_places(subject, call, batches, axes):
    subject.agrees(beside_others(call, batches, axes))


@requirement(spec.QMM_05, call=product_calls(sizes=past_a_tile, leading_dims=[(2, 3)]), share=0.1)
def test_a_token_of_each_of_many_sequences_is_right(subject, call):
    subject.agrees(one_token_each(call))


@requirement(
    spec.QMM_05,
    call=product_calls(sizes=tokens_of_sequences, amplitude=(1.0,), leading_dims=[(1,)], transpose=[True]),
    share=0.04,
)
def test_a_token_of_each_of_some_sequences_is_right_for_wide_layers(subject, call):
    subject.agrees(one_token_each(call))


@requirement(spec.QMM_06, call=product_calls(sizes=hundreds_of_rows, amplitude=(1.0,), leading_dims=[(1,)]), share=0.04)
def test_hundreds_of_rows_are_right(subject, call):
    subject.agrees(call)


@requirement(spec.QMM_06, call=product_calls(sizes=beside_tiles, transpose=[True]))
def test_sizes_beside_tiles_are_right(subject, call):
    subject.agrees(call)


@requirement(spec.QMM_06, call=product_calls(sizes=beside_tiles, transpose=[False]))
def test_sizes_beside_tiles_are_right_when_not_transposed(subject, call):
    subject.agrees(call)


@requirement(spec.QMM_06, call=product_calls(sizes=beside_odd_tiles, amplitude=(1.0,), leading_dims=[(1,)]), share=0.6)
def test_sizes_beside_tiles_that_are_no_powers_of_two_are_right(subject, call):
    subject.agrees(call)


@requirement(
    spec.QMM_06,
    call=product_calls(
        sizes=one_row_past_tiles,
        amplitude=(1.0,),
        leading_dims=[(1,)],
        bits=[2],
        group_sizes=[32, 64],
        transpose=[True],
    ),
    share=0.1,
)
def test_a_row_past_whole_tiles_is_right_in_2_bits(subject, call):
    subject.agrees(call)


@requirement(spec.QMM_06, call=product_calls(sizes=whole_tiles, amplitude=(1.0,), leading_dims=[(1,), (2,)]), share=0.2)
def test_sizes_of_whole_tiles_are_right(subject, call):
    subject.agrees(call)


@requirement(
    spec.QMM_06,
    call=product_calls(sizes=several_tiles, amplitude=(1.0,), leading_dims=[(1,), (2,)], transpose=[False]),
    share=0.1,
)
def test_several_tiles_each_way_are_right_when_not_transposed(subject, call):
    subject.agrees(call)


@requirement(spec.QMM_06, call=product_calls(sizes=a_token, amplitude=(1.0,), **PACKED), share=0.4)
def test_a_token_is_right_as_most_models_are_packed(subject, call):
    subject.agrees(call)


@requirement(spec.QMM_06, call=product_calls(sizes=a_few_tokens, amplitude=(1.0,), **PACKED), share=0.4)
def test_a_few_tokens_are_right_as_most_models_are_packed(subject, call):
    subject.agrees(call)


@requirement(spec.QMM_06, call=product_calls(sizes=a_prompt, amplitude=(1.0,), **PACKED), share=0.5)
def test_a_prompt_is_right_as_most_models_are_packed(subject, call):
    subject.agrees(call)


@requirement(spec.QMM_06, call=product_calls(sizes=a_long_prompt, amplitude=(1.0,), **PACKED), share=0.15)
def test_a_long_prompt_of_a_wide_layer_is_right(subject, call):
    subject.agrees(call)


@requirement(spec.QMM_06, call=product_calls(sizes=of_model_widths, amplitude=(1.0,), leading_dims=[(1,)]), share=0.35)
def test_widths_of_models_that_are_no_powers_of_two_are_right(subject, call):
    subject.agrees(call)


@requirement(
    spec.QMM_06, call=product_calls(sizes=one_row_of_thousands, amplitude=(1.0,), leading_dims=[(1,)]), share=0.45
)
def test_a_single_row_of_many_features_is_right(subject, call):
    subject.agrees(call)


@requirement(
    spec.QMM_06, call=product_calls(sizes=a_few_rows_of_thousands, amplitude=(1.0,), leading_dims=[(1,)]), share=0.3
)
def test_a_few_rows_of_many_features_are_right(subject, call):
    subject.agrees(call)


@requirement(
    spec.QMM_06,
    call=product_calls(sizes=wide_layers, amplitude=(1.0,), leading_dims=[(1,), (2,)], transpose=[True]),
    share=0.1,
)
def test_layers_as_wide_as_those_of_models_are_right(subject, call):
    subject.agrees(call)


@requirement(spec.QMM_06, call=product_calls(sizes=wide_both_ways, amplitude=(1.0,), leading_dims=[(1,)]), share=0.1)
def test_layers_that_are_wide_both_ways_are_right(subject, call):
    subject.agrees(call)


@requirement(spec.QMM_06, call=product_calls(sizes=many_tiles_each_way, amplitude=(1.0,), **PACKED), share=0.03)
def test_prompts_of_many_tiles_each_way_are_right(subject, call):
    subject.agrees(call)


@requirement(spec.QMM_06, call=product_calls(sizes=squares, amplitude=(1.0,), **PACKED), share=0.03)
def test_a_few_rows_through_squares_are_right(subject, call):
    subject.agrees(call)


@requirement(
    spec.QMM_06,
    call=product_calls(sizes=a_prompt_over_thousands, amplitude=(1.0,), leading_dims=[(1,)], transpose=[False]),
    share=0.05,
)
def test_prompts_over_thousands_of_rows_are_right_when_not_transposed(subject, call):
    subject.agrees(call)


@requirement(spec.QMM_07, call=product_calls(sizes=many_outputs, leading_dims=[(1,), (2,)]), share=0.06)
def test_more_outputs_than_16_bits_count_are_right(subject, call):
    subject.agrees(call)


@requirement(spec.QMM_07, call=product_calls(sizes=many_rows, group_sizes=[32, 64], leading_dims=[(1,)]), share=0.03)
def test_more_rows_than_16_bits_count_are_right(subject, call):
    subject.agrees(call)


@requirement(spec.QMM_08, call=product_calls(sizes=beside_tiles), part=among(["scales", "biases"]), share=0.5)
def test_a_nan_in_one_group_stays_in_its_outputs(subject, call, part):
    subject.agrees(with_nan(call, part))


@requirement(spec.QMM_08, call=product_calls(leading_dims=BATCHES), share=0.5)
def test_a_nan_in_one_row_of_x_stays_in_its_row(subject, call):
    subject.agrees(with_nan_in_x(call))


@requirement(spec.QMM_08, call=product_calls(transpose=[True]), share=0.5)
def test_fewer_outputs_are_the_first_of_more(subject, call):
    few = subject.agrees(call)
    more = {part: resized(call.arguments[part], 0, 64) for part in ("packed", "scales", "biases")}
    many = subject.agrees(call.having(**more))
    # Both are right; that they are the same rows is what the oracle cannot be wrong about.
    answer = subject.answer(call)
    both = Answer(few.astype(np.float64), 2 * answer.budget)
    subject.compare(call, many[..., : few.shape[-1]], both, name="with fewer outputs")


@requirement(
    spec.QMM_09,
    call=in_views(
        product_calls(sizes=FEW_OR_MANY, amplitude=(1.0,), leading_dims=[(2, 3), (9, 2)]), "x", views=["room"]
    ),
    share=0.2,
)
def test_the_beginnings_of_longer_sequences_are_read_like_their_copies(subject, call):
    subject.agrees(call)


@requirement(spec.QMM_09, call=in_views(product_calls()), share=1.5)
def test_strided_arguments_are_read_like_their_copies(subject, call):
    subject.agrees(call)


@requirement(
    spec.QMM_09,
    call=in_views(product_calls(sizes=FEW_OR_MANY, amplitude=(1.0,), leading_dims=[(2,)]), "x", views=["far"]),
    share=0.1,
)
def test_rows_that_lie_far_apart_are_read_like_their_copies(subject, call):
    subject.agrees(call)


@requirement(spec.QMM_09, call=product_calls(leading_dims=[(2,), (2, 3)]), share=0.1)
def test_rows_that_lie_backwards_are_read_like_their_copies(subject, call):
    subject.agrees(bottom_up(call, "x"))


@requirement(spec.QMM_09, call=in_views(product_calls(leading_dims=[(2, 1, 3)]), "x"), batches=among([3, 4]), share=0.1)
def test_strided_x_of_five_axes_is_read_like_its_copy(subject, call, batches):
    subject.agrees(beside_others(call, batches, axes=5))


@requirement(
    spec.QMM_09,
    call=in_views(product_calls(), "x", "packed", "scales", "biases", views=["beginning", "shifted"]),
    share=0.3,
)
def test_arguments_in_longer_buffers_are_read_like_their_copies(subject, call):
    subject.agrees(call)


@requirement(spec.QMM_09, call=in_views(product_calls(sizes=beside_tiles)), share=0.9)
def test_large_strided_arguments_are_read_like_their_copies(subject, call):
    subject.agrees(call)


@requirement(spec.QMM_09, call=in_views(product_calls(leading_dims=[(2, 1, 3)]), "x"), batches=among([3, 1]), share=0.1)
def test_strided_batches_of_batches_are_read_like_their_copies(subject, call, batches):
    subject.agrees(beside_others(call, batches))


@requirement(
    spec.QMM_09,
    call=in_views(product_calls(sizes=of_models, amplitude=(1.0,), leading_dims=[(1,)]), *READ, views=WIDE_VIEWS),
    share=0.6,
)
def test_tokens_and_prompts_of_models_are_multiplied_through_strides(subject, call):
    subject.agrees(call)


@requirement(
    spec.QMM_09,
    call=in_views(product_calls(sizes=of_thousands, amplitude=(1.0,), leading_dims=[(1,), (2,)]), views=WIDE_VIEWS),
    share=0.4,
)
def test_strided_arguments_of_many_groups_or_hundreds_of_outputs_are_read_like_their_copies(subject, call):
    subject.agrees(call)


@requirement(spec.QMM_10, call=product_calls(sizes=FEW_OR_MANY), share=0.5)
def test_products_have_the_shape_and_dtype_promised(subject, call):
    returns(subject, call, (*call.arguments["x"].shape[:-1], kept(call)), call.features["dtypes"])


@requirement(spec.QMM_10, call=product_calls(dtypes=HALF, leading_dims=BATCHES), share=0.06)
def test_products_of_no_rows_have_the_shape_and_dtype_promised(subject, call):
    none = call.arguments["x"][:0]
    returns(subject, call.having(x=none), (*none.shape[:-1], kept(call)), call.features["dtypes"])


@requirement(spec.QMM_11, call=product_calls(sizes=FEW_OR_MANY), share=0.5)
def test_products_change_no_argument(subject, call):
    keeps_arguments(subject, call)


@requirement(spec.QMM_12, call=product_calls(sizes=FEW_OR_MANY), share=0.5)
def test_other_rows_in_between_change_nothing(subject, call):
    depends_on_arguments_alone(subject, call, call.having(x=-call.arguments["x"]))


@requirement(spec.QMM_12, call=product_calls(sizes=FEW_OR_MANY), part=among(["packed", "scales", "biases"]), share=0.65)
def test_other_weights_in_between_change_no_product(subject, call, part):
    value = call.arguments[part]
    depends_on_arguments_alone(subject, call, call.having(**{part: ~value if part == "packed" else -value}))


@requirement(spec.QMM_12, call=product_calls(), part=among(["packed", "scales", "biases"]), share=0.1)
def test_weights_that_are_written_into_are_read(subject, call, part):
    value = call.arguments[part]
    reads_what_was_written(subject, call, call.having(**{part: ~value if part == "packed" else -value}), part)


@requirement(spec.QMM_09, call=in_views(one_row_products), share=0.5)
def test_strided_arguments_of_a_single_row_are_read_like_their_copies(subject, call):
    subject.agrees(call)


@requirement(spec.QMM_10, call=product_calls(dtypes=HALF), part=among(["scales", "biases"]), share=0.1)
def test_products_with_a_nan_have_their_dtype(subject, call, part):
    returns(subject, with_nan(call, part), (*call.arguments["x"].shape[:-1], kept(call)), call.features["dtypes"])


@requirement(spec.QMM_10, call=one_row_products, share=0.1)
def test_the_product_of_a_single_row_has_its_dtype(subject, call):
    returns(subject, call, (*call.arguments["x"].shape[:-1], kept(call)), call.features["dtypes"])


@requirement(spec.QMM_11, call=one_row_products, share=0.1)
def test_the_product_of_a_single_row_changes_no_argument(subject, call):
    keeps_arguments(subject, call)


@requirement(spec.QMM_12, call=one_row_products, other=among(["packed", "x", "scales", "biases"]), share=0.35)
def test_another_single_row_or_its_weights_in_between_change_nothing(subject, call, other):
    value = call.arguments[other]
    depends_on_arguments_alone(subject, call, call.having(**{other: ~value if other == "packed" else -value}))


@requirement(spec.QMM_13, call=product_calls(), bad=among(BROKEN))
def test_products_of_parts_that_do_not_belong_together_are_refused(subject, call, bad):
    refuses_parts(subject, call, bad)


@requirement(spec.QMM_17, call=product_calls(), bad=NOTHING, share=0.1)
def test_a_product_refuses_a_grid_of_nothing(subject, call, bad):
    refuses(subject, call.having(**bad))


@requirement(spec.QMM_13, call=product_calls(sizes=several_groups), part=among(["biases", "scales"]), share=0.2)
def test_one_group_of_a_product_does_not_stand_for_all(subject, call, part):
    refuses(subject, broadcast(call, part))


@requirement(spec.QMM_13, call=product_calls(sizes=several_groups), share=0.06)
def test_the_groups_of_one_row_of_a_product_do_not_stand_for_all(subject, call):
    refuses(subject, of_one_row(call, "biases"))
    refuses(subject, of_one_row(call, "scales"))


@requirement(spec.QMM_13, call=product_calls(), more=among([1, -1, 32, 64]), share=0.5)
def test_an_x_of_another_size_is_refused(subject, call, more):
    x = call.arguments["x"]
    refuses(subject, call.having(x=resized(x, -1, x.shape[-1] + more)))


@requirement(
    spec.QMM_14, call=in_views(stacked_products(stacked=[True], alike=True), "packed", "scales", "biases"), share=0.55
)
def test_stacked_parts_may_be_strided_views(subject, call):
    subject.agrees(call)


@requirement(spec.QMM_14, call=stacked_products(stacked=[True]), share=0.6)
def test_stacked_parts_are_broadcast_with_x(subject, call):
    subject.agrees(call)


@requirement(spec.QMM_14, call=stacked_products(stacked=[True], sizes=any_of(a_cache, an_expert)), share=0.2)
def test_caches_of_hundreds_of_keys_and_wide_experts_are_multiplied_each_for_itself(subject, call):
    subject.agrees(call)


@requirement(spec.QMM_14, call=stacked_products(stacked=[True], many=True), share=0.05)
def test_dozens_of_stacked_parts_are_multiplied_each_for_itself(subject, call):
    subject.agrees(call)


@requirement(
    spec.QMM_14,
    call=in_views(stacked_products(stacked=[True]), "x", views=["heads", "slice", "transpose", "room"]),
    share=0.1,
)
def test_x_may_be_a_strided_view_beside_stacked_parts(subject, call):
    subject.agrees(call)


@requirement(spec.QMM_14, call=in_views(shared_heads(stacked=[True]), "packed", "scales", "biases"), share=0.6)
def test_parts_shared_by_groups_of_heads_are_read_like_their_copies(subject, call):
    for part in ("packed", "scales", "biases"):
        call = call.viewing(part, "broadcast")
    subject.agrees(call)


@requirement(spec.QMM_19, call=stacked_products(stacked=[True], alike=True), share=0.2)
def test_parts_that_have_the_leading_dims_of_x_are_multiplied_each_for_itself_or_refused(subject, call):
    if not subject.observe(call).raised:
        subject.agrees(call)


@requirement(spec.QMM_16, call=product_calls(dtypes=HALF), share=0.2)
def test_scales_and_biases_in_float32_are_refused_or_read_for_their_numbers(subject, call):
    refuses_or_reads(subject, call, "scales", "biases")


@requirement(spec.QMM_15, call=product_calls(leading_dims=BATCHES), axis=among([0, -2]), share=0.3)
def test_no_rows_give_no_outputs(subject, call, axis):
    none = resized(call.arguments["x"], axis, 0)
    subject.expects(call.having(x=none), np.zeros((*none.shape[:-1], kept(call))))
