"""Does an implementation of the linear layer keep the contract?"""

import numpy as np

from inferspec.conformance.envelope import narrow
from inferspec.conformance.inputs.linear import (
    BATCHES,
    a_few_tokens,
    a_token,
    beside_odd_tiles,
    beside_others,
    beside_tiles,
    linear_calls,
    long_sums,
    many_rows,
    many_tiles_each_way,
    moderate,
    of_model_widths,
    of_models,
    of_prompts,
    of_thousands,
    one_row,
    ragged_features,
    ragged_tiles,
    resized,
    rows_of_prompts,
    small,
    small_or_moderate,
    some_rows,
    sparse_linear,
    square,
    squares,
    towering_linear,
    whole_linear,
    whole_tiles,
    wide,
    wide_both_ways,
    with_few,
    with_zeros,
)
from inferspec.conformance.properties.common import (
    depends_on_arguments_alone,
    keeps_arguments,
    reads_what_was_written,
    refuses,
    refuses_or_reads,
    returns,
)
from inferspec.conformance.strategies import (
    HALF,
    MOSTLY_SLICES,
    WIDE_VIEWS,
    among,
    any_of,
    bottom_up,
    in_views,
    one_batch_repeated,
    one_token_each,
)
from inferspec.conformance.suite import requirement
from inferspec.spec import linear as spec
from inferspec.spec.numerics import f64

FEW_OR_MANY = any_of(small_or_moderate, ragged_tiles)
BEYOND_FLOAT16 = (1.0, 3e6)
"""Amplitudes: an ordinary one, and one that bfloat16 and float32 hold and float16 does not."""


@requirement(spec.LIN_01, call=linear_calls())
def test_linear_is_x_times_the_transposed_weight_plus_bias(subject, call):
    subject.agrees(call)


@requirement(spec.LIN_01, whole=whole_linear())
def test_whole_numbers_come_out_exactly(subject, whole):
    call, expected = whole
    subject.expects(call, expected)


@requirement(spec.LIN_01, whole=whole_linear(sizes=square), share=0.5)
def test_a_square_weight_is_transposed_too(subject, whole):
    call, expected = whole
    subject.expects(call, expected)


@requirement(spec.LIN_02, call=linear_calls(bias=[True]))
def test_where_x_is_zero_the_result_is_the_bias(subject, call):
    x, bias = call.arguments["x"], call.arguments["bias"]
    subject.expects(call.having(x=np.zeros_like(x)), np.broadcast_to(f64(bias), (*x.shape[:-1], bias.size)))


@requirement(spec.LIN_02, whole=whole_linear(bias=[True]))
def test_the_bias_is_added_once_to_every_row(subject, whole):
    call, expected = whole
    subject.expects(call, expected)


@requirement(spec.LIN_02, call=linear_calls(bias=[True], leading_dims=[(2, 3), (2, 1, 3)]), share=0.2)
def test_the_bias_is_added_to_every_row_of_a_batch_of_one(subject, call):
    # Who claims batches of several alone is asked for no other.
    narrow(subject.envelope, {"leading_dims": [(1,)]})
    subject.agrees(call.having(x=call.arguments["x"][:1]))


@requirement(
    spec.LIN_02,
    call=linear_calls(sizes=any_of(small_or_moderate, a_few_tokens, whole_tiles), amplitude=(1.0,), bias=[True]),
    bad=among([np.nan, np.inf, -np.inf]),
    share=0.2,
)
def test_a_nan_or_infinity_in_a_bias_shows_in_its_output_alone(subject, call, bad):
    subject.agrees(call.having(bias=with_few(call.arguments["bias"], bad, call.seed)))


@requirement(spec.LIN_02, whole=whole_linear(bias=[False]), share=0.5)
def test_no_bias_adds_nothing(subject, whole):
    call, expected = whole
    subject.expects(call, expected)


@requirement(spec.LIN_03, call=linear_calls(sizes=long_sums, positive=True, amplitude=(1.0,)), share=0.6)
def test_thousands_of_products_are_summed_in_float32(subject, call):
    subject.agrees(call)


@requirement(spec.LIN_03, call=linear_calls(bias=[False]))
def test_products_keep_the_precision_of_their_dtype(subject, call):
    subject.agrees(call)


@requirement(spec.LIN_03, towering=towering_linear(), share=0.5)
def test_partial_sums_may_pass_the_range_of_float16(subject, towering):
    call, expected = towering
    subject.expects(call, expected)


@requirement(spec.LIN_04, whole=whole_linear(leading_dims=BATCHES))
def test_a_batch_is_the_stack_of_its_rows(subject, whole):
    call, expected = whole
    subject.expects(call, expected)


@requirement(spec.LIN_04, call=linear_calls())
def test_leading_dims_may_be_none_or_many(subject, call):
    subject.agrees(call)


@requirement(
    spec.LIN_04, call=linear_calls(leading_dims=[(2, 1, 3)]), batches=among([3, 4]), axes=among([4, 5]), share=0.1
)
def test_batches_of_batches_are_in_their_places(subject, call, batches, axes):
    subject.agrees(beside_others(call, batches, axes))


@requirement(spec.LIN_04, call=linear_calls(leading_dims=BATCHES), axis=among([0, -2]), share=0.5)
def test_no_rows_give_no_rows(subject, call, axis):
    none = call.having(x=resized(call.arguments["x"], axis, 0))
    subject.expects(none, np.zeros((*none.arguments["x"].shape[:-1], len(call.arguments["weight"]))))


@requirement(
    spec.LIN_04, call=linear_calls(sizes=many_rows, amplitude=(1.0,), leading_dims=[(9, 2), (2, 3)]), share=0.04
)
def test_more_batches_of_one_row_than_16_bits_count_are_right(subject, call):
    subject.agrees(call.having(x=call.arguments["x"][0][:, None]))


@requirement(spec.LIN_04, call=linear_calls(sizes=beside_tiles, amplitude=(1.0,), leading_dims=[(2, 3)]), share=0.15)
def test_a_token_of_each_of_many_sequences_is_right(subject, call):
    subject.agrees(one_token_each(call))


@requirement(spec.LIN_05, call=in_views(linear_calls(), "x", "weight"))
def test_strided_x_and_weight_are_read_like_their_copies(subject, call):
    subject.agrees(call)


@requirement(spec.LIN_05, call=in_views(linear_calls(leading_dims=[(2, 1, 3)]), "x"), batches=among([3, 1]), share=0.1)
def test_strided_batches_of_batches_are_read_like_their_copies(subject, call, batches):
    subject.agrees(beside_others(call, batches))


@requirement(spec.LIN_05, call=in_views(linear_calls(leading_dims=[(2, 1, 3)]), "x"), batches=among([3, 4]), share=0.1)
def test_strided_x_of_five_axes_is_read_like_its_copy(subject, call, batches):
    subject.agrees(beside_others(call, batches, axes=5))


@requirement(spec.LIN_05, call=in_views(linear_calls(), "x", "weight", views=["beginning"]), share=0.15)
def test_the_rows_in_use_of_a_longer_buffer_are_read_like_their_copies(subject, call):
    subject.agrees(call)


@requirement(spec.LIN_05, call=linear_calls(sizes=FEW_OR_MANY, leading_dims=[(9, 2), (2, 3)]), share=0.1)
def test_rows_whose_axis_was_inserted_are_read_like_their_copies(subject, call):
    subject.agrees(call.having(x=call.arguments["x"][:, :1]).viewing("x", "inserted"))


@requirement(spec.LIN_05, call=linear_calls(sizes=FEW_OR_MANY, leading_dims=[(9, 2), (2, 3)]), share=0.1)
def test_a_batch_that_is_repeated_without_a_copy_is_read_like_its_copies(subject, call):
    subject.agrees(one_batch_repeated(call))


@requirement(
    spec.LIN_05,
    call=in_views(
        linear_calls(sizes=any_of(moderate, a_few_tokens), amplitude=(1.0,), leading_dims=[(2, 3), (9, 2)]),
        "x",
        views=["room"],
    ),
    share=0.2,
)
def test_the_beginnings_of_longer_sequences_are_read_like_their_copies(subject, call):
    subject.agrees(call)


@requirement(
    spec.LIN_05,
    call=in_views(
        linear_calls(sizes=any_of(a_token, moderate), amplitude=(1.0,), leading_dims=[(1,)]),
        "weight",
        views=["transpose"],
    ),
    share=0.2,
)
def test_a_token_meets_a_weight_that_is_stored_the_other_way_round(subject, call):
    subject.agrees(call)


@requirement(
    spec.LIN_05,
    call=in_views(
        linear_calls(sizes=any_of(moderate, whole_tiles), amplitude=(1.0,), leading_dims=[(2,)], bias=[True]), "bias"
    ),
    share=0.2,
)
def test_a_strided_bias_of_many_outputs_is_read_like_its_copy(subject, call):
    subject.agrees(call)


@requirement(
    spec.LIN_05, call=in_views(linear_calls(sizes=some_rows, leading_dims=[(2,)]), "x", views=["far"]), share=0.1
)
def test_rows_that_lie_far_apart_are_read_like_their_copies(subject, call):
    subject.agrees(call)


@requirement(spec.LIN_05, call=in_views(linear_calls(sizes=small), "weight", views=["far"]), share=0.1)
def test_a_weight_whose_rows_lie_far_apart_is_read_like_its_copy(subject, call):
    subject.agrees(call)


@requirement(spec.LIN_05, call=linear_calls(leading_dims=BATCHES), share=0.1)
def test_rows_that_lie_backwards_are_read_like_their_copies(subject, call):
    subject.agrees(bottom_up(call, "x", "weight"))


@requirement(spec.LIN_05, call=in_views(linear_calls(bias=[True]), "bias"), share=0.5)
def test_a_strided_bias_is_read_like_its_copy(subject, call):
    subject.agrees(call)


@requirement(spec.LIN_05, call=in_views(linear_calls(sizes=beside_tiles, amplitude=(1.0,)), "x", "weight"))
def test_large_strided_arguments_are_read_like_their_copies(subject, call):
    subject.agrees(call)


@requirement(
    spec.LIN_05,
    call=in_views(
        linear_calls(sizes=of_models, amplitude=(1.0,), leading_dims=[(1,)]), "x", "weight", views=WIDE_VIEWS
    ),
    share=0.6,
)
def test_wide_weights_are_read_through_their_strides_by_tokens_and_prompts(subject, call):
    subject.agrees(call)


@requirement(
    spec.LIN_05,
    call=in_views(
        linear_calls(sizes=of_thousands, amplitude=(1.0,), leading_dims=[(1,), (2,)]), "x", "weight", views=WIDE_VIEWS
    ),
    share=0.3,
)
def test_strided_arguments_of_thousands_of_features_or_outputs_are_read_like_their_copies(subject, call):
    subject.agrees(call)


@requirement(
    spec.LIN_05,
    call=in_views(
        linear_calls(sizes=of_thousands, amplitude=(1.0,), leading_dims=[(1,), (2,)], bias=[True]),
        "bias",
        views=["slice", "stride"],
    ),
    share=0.2,
)
def test_a_strided_bias_of_thousands_of_outputs_is_read_like_its_copy(subject, call):
    subject.agrees(call)


@requirement(
    spec.LIN_05,
    call=in_views(
        linear_calls(sizes=ragged_tiles, amplitude=(1.0,), leading_dims=[(2,)]), "x", "weight", views=MOSTLY_SLICES
    ),
)
def test_many_rows_are_read_through_their_strides(subject, call):
    subject.agrees(call)


@requirement(spec.LIN_06, call=linear_calls(sizes=beside_tiles, amplitude=(1.0,)), share=2.0)
def test_sizes_beside_tiles_are_right(subject, call):
    subject.agrees(call)


@requirement(spec.LIN_06, call=linear_calls(sizes=ragged_features, amplitude=(1.0,), leading_dims=[(2,)]), share=0.3)
def test_features_that_fill_no_tile_between_whole_ones_are_right(subject, call):
    subject.agrees(call)


@requirement(spec.LIN_06, call=linear_calls(sizes=beside_odd_tiles, amplitude=(1.0,), leading_dims=[(1,)]), share=0.6)
def test_sizes_beside_tiles_that_are_no_powers_of_two_are_right(subject, call):
    subject.agrees(call)


@requirement(spec.LIN_06, call=linear_calls(sizes=a_token, amplitude=BEYOND_FLOAT16, leading_dims=[(1,)]), share=0.3)
def test_a_token_of_a_model_is_right(subject, call):
    subject.agrees(call)


@requirement(
    spec.LIN_06, call=linear_calls(sizes=a_few_tokens, amplitude=BEYOND_FLOAT16, leading_dims=[(1,)]), share=0.5
)
def test_a_few_tokens_of_a_model_are_right(subject, call):
    subject.agrees(call)


@requirement(
    spec.LIN_06,
    call=linear_calls(sizes=whole_tiles, amplitude=BEYOND_FLOAT16, leading_dims=[(1,), (2,), (2, 3)]),
    share=0.3,
)
def test_sizes_of_whole_tiles_are_right(subject, call):
    subject.agrees(call)


@requirement(spec.LIN_06, call=linear_calls(sizes=of_model_widths, amplitude=(1.0,), leading_dims=[(1,)]), share=0.5)
def test_widths_of_models_that_are_no_powers_of_two_are_right(subject, call):
    subject.agrees(call)


@requirement(spec.LIN_06, call=linear_calls(sizes=rows_of_prompts, amplitude=(1.0,), leading_dims=[(2, 3)]), share=0.1)
def test_prompts_of_whole_tiles_and_of_more_than_a_thousand_tokens_are_right_in_a_batch_of_one(subject, call):
    # Who claims batches of several alone is asked for no other.
    narrow(subject.envelope, {"leading_dims": [(1,)]})
    subject.agrees(call.having(x=call.arguments["x"][:1]))


@requirement(spec.LIN_06, call=linear_calls(sizes=wide_both_ways, amplitude=(1.0,), leading_dims=[(1,)]), share=0.1)
def test_tokens_of_layers_that_are_wide_both_ways_are_right(subject, call):
    subject.agrees(call)


@requirement(spec.LIN_06, call=linear_calls(sizes=of_prompts, amplitude=(1.0,), leading_dims=[(1,)]), share=0.08)
def test_prompts_of_models_are_right(subject, call):
    subject.agrees(call)


@requirement(
    spec.LIN_06, call=linear_calls(sizes=many_tiles_each_way, amplitude=(1.0,), leading_dims=[(1,)]), share=0.03
)
def test_prompts_of_many_tiles_each_way_are_right(subject, call):
    subject.agrees(call)


@requirement(spec.LIN_06, call=linear_calls(sizes=squares, amplitude=(1.0,), leading_dims=[(1,)]), share=0.03)
def test_a_few_rows_through_squares_are_right(subject, call):
    subject.agrees(call)


@requirement(spec.LIN_06, call=linear_calls(sizes=wide, amplitude=(1.0,)), share=0.7)
def test_thousands_of_outputs_are_right(subject, call):
    subject.agrees(call)


@requirement(spec.LIN_06, call=linear_calls(sizes=many_rows, amplitude=(1.0,), leading_dims=[(1,), (2,)]), share=0.04)
def test_more_rows_than_16_bits_count_are_right(subject, call):
    subject.agrees(call)


@requirement(spec.LIN_06, sparse=sparse_linear(leading_dims=[(1,), (2,)]), share=0.04)
def test_more_features_than_15_bits_count_are_summed(subject, sparse):
    call, expected = sparse
    subject.expects(call, expected)


@requirement(spec.LIN_07, call=linear_calls(sizes=FEW_OR_MANY))
def test_linear_keeps_leading_dims_and_dtype(subject, call):
    x, weight = call.arguments["x"], call.arguments["weight"]
    returns(subject, call, (*x.shape[:-1], len(weight)), call.features["dtypes"])


@requirement(spec.LIN_07, call=linear_calls(sizes=beside_tiles), share=0.3)
def test_large_products_have_the_dtype_of_x(subject, call):
    shape = (*call.arguments["x"].shape[:-1], len(call.arguments["weight"]))
    returns(subject, call, shape, call.features["dtypes"])


@requirement(spec.LIN_07, call=linear_calls(leading_dims=BATCHES), share=0.3)
def test_no_rows_have_the_dtype_of_x(subject, call):
    none = call.having(x=call.arguments["x"][:0])
    shape = (*none.arguments["x"].shape[:-1], len(call.arguments["weight"]))
    returns(subject, none, shape, call.features["dtypes"])


@requirement(spec.LIN_08, call=linear_calls(sizes=FEW_OR_MANY))
def test_linear_changes_no_argument(subject, call):
    keeps_arguments(subject, call)


@requirement(spec.LIN_09, call=linear_calls(sizes=FEW_OR_MANY), other=among(["weight", "x"]))
def test_another_weight_or_x_in_between_changes_nothing(subject, call, other):
    depends_on_arguments_alone(subject, call, call.having(**{other: -call.arguments[other]}))


@requirement(spec.LIN_05, call=in_views(linear_calls(sizes=one_row, leading_dims=[(), (1,)]), "x"), share=0.5)
def test_a_single_row_is_read_through_its_strides(subject, call):
    subject.agrees(call)


@requirement(
    spec.LIN_09,
    call=linear_calls(sizes=one_row, leading_dims=[(), (1,)]),
    other=among(["weight", "x"]),
    share=0.3,
)
def test_another_single_row_or_its_weight_in_between_changes_nothing(subject, call, other):
    depends_on_arguments_alone(subject, call, call.having(**{other: -call.arguments[other]}))


@requirement(spec.LIN_09, call=linear_calls(sizes=FEW_OR_MANY), share=0.2)
def test_a_weight_that_is_written_into_is_read(subject, call):
    reads_what_was_written(subject, call, call.having(weight=-call.arguments["weight"]), "weight")


@requirement(spec.LIN_09, call=linear_calls(bias=[True]), share=0.5)
def test_another_bias_in_between_changes_nothing(subject, call):
    depends_on_arguments_alone(subject, call, call.having(bias=-call.arguments["bias"]))


@requirement(spec.LIN_10, call=linear_calls(), bad=among(["longer", "shorter", "twice", "transposed"]))
def test_a_weight_of_another_shape_is_refused(subject, call, bad):
    weight = call.arguments["weight"]
    features = _other_size(bad, weight.shape[1])
    refuses(subject, call.having(weight=weight.T.copy() if bad == "transposed" else resized(weight, 1, features)))


@requirement(spec.LIN_10, call=linear_calls(bias=[True]), bad=among(["longer", "shorter", "twice"]))
def test_a_bias_of_another_length_is_refused(subject, call, bad):
    bias = call.arguments["bias"]
    refuses(subject, call.having(bias=resized(bias, 0, _other_size(bad, bias.size))))


@requirement(
    spec.LIN_11,
    call=linear_calls(sizes=small_or_moderate, leading_dims=BATCHES),
    bad=among([np.nan, np.inf, -np.inf]),
)
def test_a_nan_or_infinity_stays_in_its_row(subject, call, bad):
    subject.agrees(call.having(x=with_few(call.arguments["x"], bad, call.seed)))


@requirement(
    spec.LIN_11,
    call=linear_calls(sizes=a_few_tokens, amplitude=(1.0,), leading_dims=BATCHES),
    bad=among([np.nan, np.inf, -np.inf]),
    share=0.1,
)
def test_a_nan_or_infinity_stays_in_its_wide_row(subject, call, bad):
    subject.agrees(call.having(x=with_few(call.arguments["x"], bad, call.seed)))


@requirement(
    spec.LIN_11,
    call=linear_calls(sizes=of_thousands, amplitude=(1.0,), leading_dims=[(1,), (2,)]),
    bad=among([np.nan, np.inf, -np.inf]),
    share=0.05,
)
def test_a_nan_or_infinity_stays_in_its_row_of_thousands_of_features_or_outputs(subject, call, bad):
    subject.agrees(call.having(x=with_few(call.arguments["x"], bad, call.seed)))


@requirement(
    spec.LIN_12,
    call=linear_calls(sizes=small_or_moderate, leading_dims=BATCHES, amplitude=(1.0,)),
    bad=among([np.nan, np.inf]),
    share=0.1,
)
def test_a_nan_or_infinity_in_a_weight_shows_where_x_is_zero_too(subject, call, bad):
    subject.agrees(with_zeros(call).having(weight=with_few(call.arguments["weight"], bad, call.seed)))


@requirement(
    spec.LIN_12,
    call=linear_calls(sizes=any_of(small_or_moderate, a_few_tokens, whole_tiles), amplitude=(1.0,)),
    bad=among([np.nan, np.inf, -np.inf]),
    share=0.4,
)
def test_a_nan_or_infinity_in_a_weight_shows_in_its_output_alone(subject, call, bad):
    subject.agrees(call.having(weight=with_few(call.arguments["weight"], bad, call.seed)))


@requirement(
    spec.LIN_12,
    call=linear_calls(sizes=of_thousands, amplitude=(1.0,), leading_dims=[(1,), (2,)]),
    bad=among([np.nan, np.inf, -np.inf]),
    share=0.25,
)
def test_a_nan_or_infinity_in_a_weight_of_thousands_shows_in_its_output_alone(subject, call, bad):
    subject.agrees(call.having(weight=with_few(call.arguments["weight"], bad, call.seed)))


@requirement(spec.LIN_13, call=linear_calls(dtypes=HALF, amplitude=(1.0,)), share=0.2)
def test_a_weight_in_float32_is_refused_or_read_for_its_numbers(subject, call):
    refuses_or_reads(subject, call, "weight")


@requirement(spec.LIN_13, call=linear_calls(dtypes=HALF, amplitude=(1.0,), bias=[True]), share=0.2)
def test_a_bias_in_float32_is_refused_or_read_for_its_numbers(subject, call):
    refuses_or_reads(subject, call, "bias")


def _other_size(how, size):
    """A size of 2 and more that does not fit; "shorter" than 3 is longer."""
    return {"shorter": size - 1 if size > 2 else size + 1, "twice": 2 * size}.get(how, size + 1)
