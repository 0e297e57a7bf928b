"""Does an implementation of the linear layer, of SiLU and of softmax keep the contract?"""

import numpy as np

from inferspec.conformance.envelope import narrow
from inferspec.conformance.inputs.linear import (
    MORE_THAN_16_BITS,
    WIDE,
    a_few_tokens,
    a_row_or_two_nan,
    a_token,
    alike,
    another_axis,
    beside_odd_tiles,
    beside_others,
    beside_tiles,
    extreme,
    far_below,
    far_out,
    hidden_but_for_an_end,
    in_the_tail,
    linear_calls,
    long_sums,
    many_logits,
    many_rows,
    moderate,
    not_finite,
    of_any_size,
    of_model_widths,
    of_models,
    of_prompts,
    of_thousands,
    on_levels,
    one_row,
    partly_hidden,
    past_exp,
    peaked_softmax,
    ragged_features,
    ragged_tiles,
    resized,
    rising,
    silu_calls,
    small_or_moderate,
    softmax_calls,
    sparse_linear,
    square,
    tiny,
    towering_linear,
    whole_linear,
    whole_tiles,
    wide,
    with_few,
)
from inferspec.conformance.properties import (
    depends_on_arguments_alone,
    keeps_arguments,
    refuses,
    refuses_or_reads,
    returns,
)
from inferspec.conformance.strategies import (
    HALF,
    MODEL_WIDTHS,
    MOSTLY_SLICES,
    ODD_TILES,
    WIDE_VIEWS,
    among,
    any_of,
    in_views,
    one_batch_repeated,
    one_token_each,
)
from inferspec.conformance.suite import requirement
from inferspec.conformance.trial import Nonconformance
from inferspec.spec import linear as spec
from inferspec.spec.numerics import f64, within

BATCHES = [(2,), (2, 3), (9, 2)]
FEW_OR_MANY = any_of(small_or_moderate, ragged_tiles)
SINGLE = {"dtypes": ["bfloat16"], "leading_dims": [(), (1,)]}
"""A single row, as in decoding."""
BEYOND_FLOAT16 = (1.0, 3e6)
"""Amplitudes: an ordinary one, and one that bfloat16 and float32 hold and float16 does not."""
SHORT_OR_LONG = (4, 1, 2, 9, 70, 1030)
"""Lengths of rows that a kernel takes at once, or in several steps."""

# linear


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
    spec.LIN_04, call=linear_calls(sizes=many_rows, amplitude=(1.0,), leading_dims=[(9, 2), (2, 3)]), share=0.03
)
def test_more_batches_of_one_row_than_16_bits_count_are_right(subject, call):
    subject.agrees(call.having(x=call.arguments["x"][0][:, None]))


@requirement(spec.LIN_04, call=linear_calls(sizes=beside_tiles, amplitude=(1.0,), leading_dims=[(2, 3)]), share=0.1)
def test_a_token_of_each_of_many_sequences_is_right(subject, call):
    subject.agrees(one_token_each(call))


@requirement(spec.LIN_05, call=in_views(linear_calls(), "x", "weight"))
def test_strided_x_and_weight_are_read_like_their_copies(subject, call):
    subject.agrees(call)


@requirement(spec.LIN_05, call=in_views(linear_calls(leading_dims=[(2, 1, 3)]), "x"), batches=among([3, 1]), share=0.1)
def test_strided_batches_of_batches_are_read_like_their_copies(subject, call, batches):
    subject.agrees(beside_others(call, batches))


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
    share=0.2,
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
    share=0.1,
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
    spec.LIN_06, call=linear_calls(sizes=a_few_tokens, amplitude=BEYOND_FLOAT16, leading_dims=[(1,)]), share=0.3
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


@requirement(spec.LIN_06, call=linear_calls(sizes=of_prompts, amplitude=(1.0,), leading_dims=[(1,)]), share=0.05)
def test_prompts_of_models_are_right(subject, call):
    subject.agrees(call)


@requirement(spec.LIN_06, call=linear_calls(sizes=wide, amplitude=(1.0,)), share=0.3)
def test_thousands_of_outputs_are_right(subject, call):
    subject.agrees(call)


@requirement(spec.LIN_06, call=linear_calls(sizes=many_rows, amplitude=(1.0,), leading_dims=[(1,), (2,)]), share=0.03)
def test_more_rows_than_16_bits_count_are_right(subject, call):
    subject.agrees(call)


@requirement(spec.LIN_06, sparse=sparse_linear(leading_dims=[(1,), (2,)]), share=0.03)
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
    share=0.15,
)
def test_a_nan_or_infinity_in_a_weight_of_thousands_shows_in_its_output_alone(subject, call, bad):
    subject.agrees(call.having(weight=with_few(call.arguments["weight"], bad, call.seed)))


@requirement(spec.LIN_13, call=linear_calls(dtypes=HALF, amplitude=(1.0,)), share=0.2)
def test_a_weight_in_float32_is_refused_or_read_for_its_numbers(subject, call):
    refuses_or_reads(subject, call, "weight")


@requirement(spec.LIN_13, call=linear_calls(dtypes=HALF, amplitude=(1.0,), bias=[True]), share=0.2)
def test_a_bias_in_float32_is_refused_or_read_for_its_numbers(subject, call):
    refuses_or_reads(subject, call, "bias")


# silu


@requirement(spec.SILU_01, call=silu_calls())
def test_silu_is_x_times_its_sigmoid(subject, call):
    subject.agrees(call)


@requirement(spec.SILU_01, call=silu_calls(values=in_the_tail), share=1.5)
def test_silu_is_accurate_where_it_is_tiny(subject, call):
    subject.agrees(call)


@requirement(spec.SILU_01, call=silu_calls(values=tiny), share=0.2)
def test_silu_of_tiny_numbers_is_accurate(subject, call):
    subject.agrees(call)


@requirement(spec.SILU_02, call=silu_calls(values=of_any_size))
def test_silu_of_any_finite_number_is_safe(subject, call):
    subject.agrees(call)


@requirement(spec.SILU_02, call=silu_calls(values=past_exp))
def test_silu_is_safe_where_the_exponential_overflows(subject, call):
    subject.agrees(call)


@requirement(spec.SILU_03, call=silu_calls())
def test_silu_of_x_and_of_minus_x_differ_by_x(subject, call):
    x = call.arguments["x"]
    mirrored = call.having(x=-x)
    gap = f64(subject.value(call)) - f64(subject.value(mirrored)) - f64(x)
    if not within(np.abs(gap), subject.answer(call).budget + subject.answer(mirrored).budget).all():
        raise Nonconformance(f"silu(x) - silu(-x) - x is {gap.flat[np.argmax(np.abs(gap))]:g}", call)


@requirement(spec.SILU_04, call=silu_calls(values=not_finite))
def test_nan_and_infinity_keep_to_their_places(subject, call):
    subject.agrees(call)


@requirement(
    spec.SILU_04,
    call=silu_calls(values=not_finite, lengths=(64, 1030, 4104), leading_dims=[(1,), (2,), (9, 2)]),
    rows=among([0, 40]),
    share=0.1,
)
def test_nan_and_infinity_keep_to_their_places_in_long_rows_and_in_many(subject, call, rows):
    subject.agrees(call.having(x=resized(call.arguments["x"], 0, rows)) if rows else call)


@requirement(spec.SILU_05, call=silu_calls(lengths=SHORT_OR_LONG))
def test_silu_keeps_shape_and_dtype(subject, call):
    returns(subject, call, call.arguments["x"].shape, call.features["dtypes"])


@requirement(spec.SILU_05, call=silu_calls(), shape=among([(), (0,), (1, 1), (2, 0, 3)]))
def test_silu_of_a_scalar_and_of_nothing_keeps_the_shape(subject, call, shape):
    leads = [len(lead) for lead in subject.envelope["leading_dims"]]
    if not shape or len(shape) - 1 not in leads:
        # A scalar is asked of who claims single rows.
        shape = shape if not shape and 0 in leads else (*call.arguments["x"].shape[:-1], 0)
    returns(subject, call.having(x=np.resize(call.arguments["x"], shape)), shape, call.features["dtypes"])


@requirement(spec.SILU_06, call=in_views(silu_calls(lengths=SHORT_OR_LONG)))
def test_silu_reads_strided_x(subject, call):
    subject.agrees(call)


@requirement(spec.SILU_07, call=silu_calls(lengths=SHORT_OR_LONG))
def test_silu_does_not_change_x(subject, call):
    keeps_arguments(subject, call)


@requirement(spec.SILU_08, call=silu_calls(lengths=SHORT_OR_LONG))
def test_silu_of_other_data_in_between_changes_nothing(subject, call):
    depends_on_arguments_alone(subject, call, call.having(x=-call.arguments["x"]))


@requirement(
    spec.SILU_06,
    call=in_views(silu_calls(lengths=(8, 64, 1024, 4104), leading_dims=[(2,), (9, 2), (1,)]), views=WIDE_VIEWS),
    rows=among([0, 40]),
    share=0.2,
)
def test_silu_reads_strided_rows_of_whole_vectors(subject, call, rows):
    subject.agrees(call.having(x=resized(call.arguments["x"], 0, rows)) if rows else call)


@requirement(spec.SILU_06, call=in_views(silu_calls(lengths=(5, 2, 9, 32), **SINGLE)), share=0.2)
def test_silu_reads_a_strided_single_row(subject, call):
    subject.agrees(call)


@requirement(spec.SILU_08, call=silu_calls(lengths=(5, 2, 9, 32), **SINGLE), share=0.2)
def test_silu_of_another_single_row_in_between_changes_nothing(subject, call):
    depends_on_arguments_alone(subject, call, call.having(x=-call.arguments["x"]))


@requirement(spec.SILU_09, call=silu_calls(), share=0.1)
def test_silu_of_a_scalar_is_right(subject, call):
    narrow(subject.envelope, {"leading_dims": [()]})
    subject.agrees(call.having(x=np.resize(call.arguments["x"], ())))


@requirement(spec.SILU_09, call=silu_calls(lengths=WIDE))
def test_silu_of_every_size_is_right(subject, call):
    subject.agrees(call)


@requirement(spec.SILU_09, call=silu_calls(leading_dims=[(2, 1, 3)]), batches=among([3, 4]), share=0.06)
def test_silu_of_five_axes_is_right(subject, call, batches):
    x = call.arguments["x"]
    subject.agrees(call.having(x=np.stack([np.roll(x, i, axis=-1) for i in range(batches)], axis=1)))


@requirement(spec.SILU_09, call=silu_calls(lengths=ODD_TILES), share=0.6)
def test_silu_of_sizes_beside_tiles_that_are_no_powers_of_two_is_right(subject, call):
    subject.agrees(call)


@requirement(spec.SILU_09, call=silu_calls(lengths=MODEL_WIDTHS), share=0.2)
def test_silu_of_widths_of_models_that_are_no_powers_of_two_is_right(subject, call):
    subject.agrees(call)


@requirement(spec.SILU_09, call=silu_calls(lengths=(66, 129, 257, 1026), leading_dims=[(2,), (2, 3)]), share=0.2)
def test_silu_of_many_rows_is_right(subject, call):
    subject.agrees(call.having(x=np.ascontiguousarray(call.arguments["x"].swapaxes(-1, -2))))


@requirement(spec.SILU_09, call=silu_calls(lengths=MORE_THAN_16_BITS, leading_dims=[(), (1,)]), share=0.03)
def test_silu_of_more_than_16_bits_count_is_right(subject, call):
    subject.agrees(call)


# softmax


@requirement(spec.SMAX_01, call=softmax_calls())
def test_softmax_is_exp_over_its_sum(subject, call):
    subject.agrees(call)


@requirement(spec.SMAX_02, call=softmax_calls(leading_dims=BATCHES))
def test_softmax_runs_along_the_axis_asked_for(subject, call):
    subject.agrees(call)


@requirement(spec.SMAX_02, peaked=peaked_softmax())
def test_the_peak_of_each_row_gets_everything(subject, peaked):
    call, expected = peaked
    subject.expects(call, expected)


@requirement(spec.SMAX_02, call=softmax_calls(axes=[-1], spelt=False))
def test_the_last_axis_is_the_default(subject, call):
    subject.agrees(call)


@requirement(spec.SMAX_03, call=softmax_calls(values=rising, lengths=(70, 1100, 300, 8400)), share=0.1)
def test_the_largest_logit_may_come_late(subject, call):
    subject.agrees(call)


@requirement(spec.SMAX_03, call=softmax_calls(values=far_out, lengths=(4, 1, 2, 5, 7, 9, 16, 70, 1100)))
def test_adding_a_constant_to_a_row_changes_nothing(subject, call):
    subject.agrees(call)


@requirement(spec.SMAX_03, call=softmax_calls(values=far_below), share=0.3)
def test_rows_may_lie_below_any_number_that_a_maximum_starts_at(subject, call):
    subject.agrees(call)


@requirement(spec.SMAX_03, call=softmax_calls(values=extreme))
def test_the_largest_and_lowest_logits_are_safe(subject, call):
    subject.agrees(call)


@requirement(
    spec.SMAX_03,
    call=softmax_calls(values=far_below, lengths=(300, 4104, 1030, 8192), leading_dims=[(2,), (1,), (2, 3)]),
    share=0.3,
)
def test_long_rows_that_lie_far_below_zero_are_safe(subject, call):
    subject.agrees(call)


@requirement(spec.SMAX_04, call=softmax_calls(values=partly_hidden, lengths=(9, 2, 5, 16, 33, 70, 2100)))
def test_entries_of_minus_infinity_get_nothing(subject, call):
    subject.agrees(call)


@requirement(
    spec.SMAX_04,
    call=softmax_calls(values=hidden_but_for_an_end, lengths=(70, 8400, 1100), leading_dims=[(), (1,), (2,)]),
    share=0.2,
)
def test_blocks_of_minus_infinity_get_nothing(subject, call):
    subject.agrees(call)


@requirement(
    spec.SMAX_05, call=softmax_calls(values=alike, lengths=(1000, 2047, 3001, 4096), leading_dims=[(), (2,)]), share=0.4
)
def test_thousands_of_entries_are_summed_in_float32(subject, call):
    subject.agrees(call)


@requirement(spec.SMAX_05, call=softmax_calls(lengths=(5, 9, 33)))
def test_logits_keep_the_precision_of_their_dtype(subject, call):
    subject.agrees(call)


@requirement(spec.SMAX_06, call=softmax_calls(values=on_levels, leading_dims=BATCHES))
def test_each_row_has_its_own_maximum_and_sum(subject, call):
    subject.agrees(call)


@requirement(
    spec.SMAX_06,
    call=softmax_calls(leading_dims=[(2, 1, 3)], axes=[-1]),
    batches=among([3, 4]),
    axes=among([4, 5]),
    share=0.1,
)
def test_batches_of_batches_of_logits_are_in_their_places(subject, call, batches, axes):
    subject.agrees(beside_others(call, batches, axes))


@requirement(spec.SMAX_06, call=softmax_calls(values=a_row_or_two_nan, leading_dims=BATCHES))
def test_a_nan_stays_in_its_row(subject, call):
    subject.agrees(call)


@requirement(
    spec.SMAX_06, call=softmax_calls(values=a_row_or_two_nan, lengths=(1024, 70, 4097), leading_dims=BATCHES), share=0.2
)
def test_a_nan_fills_its_long_row_and_no_other(subject, call):
    subject.agrees(call)


@requirement(
    spec.SMAX_06,
    call=softmax_calls(values=a_row_or_two_nan, lengths=(2049, 1030, 300), leading_dims=[(2,), (2, 3)]),
    share=0.1,
)
def test_a_nan_fills_its_row_of_hundreds_or_thousands_and_no_other(subject, call):
    subject.agrees(call)


@requirement(spec.SMAX_07, call=softmax_calls(lengths=SHORT_OR_LONG))
def test_softmax_keeps_shape_and_dtype(subject, call):
    returns(subject, call, call.arguments["x"].shape, call.features["dtypes"])


@requirement(spec.SMAX_07, call=softmax_calls(leading_dims=BATCHES, axes=[-1]), share=0.3)
def test_softmax_of_no_rows_has_no_rows(subject, call):
    none = call.having(x=call.arguments["x"][:0])
    returns(subject, none, none.arguments["x"].shape, call.features["dtypes"])


@requirement(spec.SMAX_08, call=in_views(softmax_calls(lengths=SHORT_OR_LONG)))
def test_softmax_reads_strided_x(subject, call):
    subject.agrees(call)


@requirement(spec.SMAX_09, call=softmax_calls(lengths=SHORT_OR_LONG))
def test_softmax_does_not_change_x(subject, call):
    keeps_arguments(subject, call)


@requirement(spec.SMAX_10, call=softmax_calls(leading_dims=BATCHES, axes=[0, 1, -2]))
def test_another_axis_in_between_changes_nothing(subject, call):
    depends_on_arguments_alone(subject, call, call.having(axis=another_axis(subject, call)))


@requirement(spec.SMAX_10, call=softmax_calls())
def test_other_logits_in_between_change_nothing(subject, call):
    depends_on_arguments_alone(subject, call, call.having(x=-call.arguments["x"]))


@requirement(
    spec.SMAX_08,
    call=in_views(
        softmax_calls(lengths=(8, 64, 512, 8192, 4104), leading_dims=[(2,), (2, 3), (1,)]),
        views=["slice", *WIDE_VIEWS],
    ),
    share=0.3,
)
def test_softmax_reads_strided_rows_of_whole_vectors(subject, call):
    subject.agrees(call)


@requirement(spec.SMAX_08, call=in_views(softmax_calls(lengths=(5, 2, 9, 16), axes=[-1], **SINGLE)), share=0.2)
def test_softmax_reads_a_strided_single_row(subject, call):
    subject.agrees(call)


@requirement(spec.SMAX_10, call=softmax_calls(lengths=(5, 2, 9, 16), axes=[-1], **SINGLE), share=0.2)
def test_another_single_row_of_logits_in_between_changes_nothing(subject, call):
    depends_on_arguments_alone(subject, call, call.having(x=-call.arguments["x"]))


@requirement(spec.SMAX_11, call=softmax_calls(axes=[0, 1, -2]), beyond=among(range(3)), negative=among([False, True]))
def test_an_axis_that_x_does_not_have_is_refused(subject, call, beyond, negative):
    axes = call.arguments["x"].ndim
    refuses(subject, call.having(axis=-axes - 1 - beyond if negative else axes + beyond))


@requirement(
    spec.SMAX_12,
    call=softmax_calls(lengths=(4097, 8192, 5000), leading_dims=[(2,), (2, 3)]),
    share=0.3,
)
def test_several_rows_of_thousands_of_logits_are_right(subject, call):
    subject.agrees(call)


@requirement(spec.SMAX_12, call=softmax_calls(lengths=WIDE, leading_dims=[(), (1,), (2,), (2, 3)]), share=2.0)
def test_rows_of_every_length_are_right(subject, call):
    subject.agrees(call)


@requirement(spec.SMAX_12, call=softmax_calls(lengths=MODEL_WIDTHS, axes=[-1]), share=0.3)
def test_rows_of_whole_steps_that_are_no_whole_blocks_are_right(subject, call):
    subject.agrees(call)


@requirement(spec.SMAX_12, call=softmax_calls(lengths=ODD_TILES, axes=[-1]), share=0.8)
def test_rows_beside_tiles_that_are_no_powers_of_two_are_right(subject, call):
    subject.agrees(call)


@requirement(
    spec.SMAX_12, call=softmax_calls(values=alike, lengths=MORE_THAN_16_BITS, leading_dims=[(), (1,), (2,)]), share=0.03
)
def test_rows_of_a_whole_vocabulary_are_right(subject, call):
    subject.agrees(call)


@requirement(spec.SMAX_12, call=softmax_calls(lengths=(131072, 100003), leading_dims=[(), (1,)]), share=0.02)
def test_rows_past_the_largest_vocabularies_are_right(subject, call):
    subject.agrees(call)


@requirement(spec.SMAX_12, call=many_logits(leading_dims=[(2,)], axes=[-1, 0]), share=0.12)
def test_hundreds_of_long_rows_and_a_thousand_short_ones_are_right(subject, call):
    subject.agrees(call)


@requirement(spec.SMAX_12, call=softmax_calls(lengths=(2, 3), leading_dims=[(2,)], axes=[-1, 0]), share=0.03)
def test_more_rows_than_16_bits_count_are_right_in_softmax(subject, call):
    x, axis = call.arguments["x"], call.arguments["axis"]
    subject.agrees(call.having(x=resized(x, 1 if axis == 0 else 0, MORE_THAN_16_BITS[0])))


def _other_size(how, size):
    """A size of 2 and more that does not fit; "shorter" than 3 is longer."""
    return {"shorter": size - 1 if size > 2 else size + 1, "twice": 2 * size}.get(how, size + 1)
