"""Does an implementation of the gated MLP keep the contract?"""

import numpy as np

from inferspec.conformance.envelope import narrow
from inferspec.conformance.inputs.linear import of_axes, of_model_widths, resized, with_few
from inferspec.conformance.inputs.mlp import (
    WEIGHTS,
    beside_odd_tiles,
    beside_tiles,
    few_of_many,
    long_sums,
    many_rows,
    many_tiles_each_way,
    of_many_hidden,
    of_models,
    of_thousands_of_dims,
    of_thousands_of_hidden,
    one_row,
    one_short_of_tiles,
    ragged_tiles,
    rows_of_whole_tiles,
    small_or_moderate,
    square,
    squares,
    swiglu_calls,
    tail_calls,
    towering_sums,
    very_many_rows,
    wide_both_ways,
    wide_layers,
)
from inferspec.conformance.properties.common import (
    depends_on_arguments_alone,
    keeps_arguments,
    refuses,
    refuses_or_reads,
    returns,
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
    one_batch_repeated,
    one_token_each,
)
from inferspec.conformance.suite import requirement
from inferspec.spec import mlp as spec
from inferspec.spec.numerics import f64

BATCHES = [(2,), (2, 3), (9, 2)]
FEW_OR_MANY = any_of(small_or_moderate, ragged_tiles)


@requirement(spec.MLP_01, call=swiglu_calls())
def test_the_gated_mlp_is_down_of_silu_of_gate_times_up(subject, call):
    subject.agrees(call)


@requirement(spec.MLP_01, call=swiglu_calls(sizes=small_or_moderate), name=among(["x", *WEIGHTS]), share=0.3)
def test_a_nan_in_x_or_a_weight_shows_wherever_it_counts(subject, call, name):
    subject.agrees(call.having(**{name: with_few(call.arguments[name], np.nan, call.seed or 0)}))


@requirement(spec.MLP_02, call=swiglu_calls())
def test_exchanging_gate_and_up_changes_the_result(subject, call):
    subject.agrees(call)
    subject.agrees(call.having(w_gate=call.arguments["w_up"], w_up=call.arguments["w_gate"]))


@requirement(spec.MLP_03, call=swiglu_calls())
def test_a_gate_of_zero_gives_zero(subject, call):
    closed = call.having(w_gate=np.zeros_like(call.arguments["w_gate"]))
    subject.expects(closed, np.zeros(call.arguments["x"].shape))


@requirement(spec.MLP_03, call=swiglu_calls())
def test_an_x_of_zero_gives_zero(subject, call):
    x = np.zeros_like(call.arguments["x"])
    subject.expects(call.having(x=x), x)


@requirement(spec.MLP_04, call=swiglu_calls(), name=among(WEIGHTS))
def test_another_weight_gives_another_result(subject, call, name):
    subject.agrees(call.having(**{name: -call.arguments[name][::-1]}))


@requirement(spec.MLP_04, call=swiglu_calls(sizes=square))
def test_square_weights_are_used_in_their_places(subject, call):
    subject.agrees(call)


@requirement(spec.MLP_05, call=tail_calls())
def test_gates_far_below_zero_keep_their_accuracy(subject, call):
    subject.agrees(call)


@requirement(
    spec.MLP_05,
    call=swiglu_calls(sizes=few_of_many, dtypes=["bfloat16", "float32"], amplitude=(300.0, 1e4, 1e6)),
    share=0.4,
)
def test_intermediates_that_float16_cannot_hold_are_right_in_other_dtypes(subject, call):
    subject.agrees(call)


@requirement(spec.MLP_05, call=long_sums(), share=0.5)
def test_thousands_of_hidden_features_are_summed_in_float32(subject, call):
    subject.agrees(call)


@requirement(spec.MLP_05, call=towering_sums(), share=0.5)
def test_partial_sums_may_pass_the_range_of_float16(subject, call):
    subject.agrees(call)


@requirement(spec.MLP_06, call=swiglu_calls(leading_dims=BATCHES))
def test_a_batch_is_the_stack_of_its_rows(subject, call):
    subject.agrees(call)


@requirement(
    spec.MLP_06,
    call=swiglu_calls(sizes=small_or_moderate, leading_dims=BATCHES),
    bad=among([np.nan, np.inf]),
    share=0.3,
)
def test_what_is_not_finite_stays_in_its_row(subject, call, bad):
    x = call.arguments["x"].copy()
    x[-1, ..., :1] = bad
    subject.agrees(call.having(x=x), where=np.isfinite(f64(x)).all(axis=-1, keepdims=True))


@requirement(
    spec.MLP_06,
    call=swiglu_calls(sizes=of_models, amplitude=(1.0,), leading_dims=[(2,), (2, 3)]),
    bad=among([np.nan, np.inf]),
    share=0.1,
)
def test_what_is_not_finite_stays_in_its_row_of_many_hidden_features(subject, call, bad):
    x = call.arguments["x"].copy()
    x[-1, ..., :1] = bad
    subject.agrees(call.having(x=x), where=np.isfinite(f64(x)).all(axis=-1, keepdims=True))


@requirement(
    spec.MLP_06, call=swiglu_calls(leading_dims=[(2, 1, 3)]), batches=among([3, 4]), axes=among([4, 5]), share=0.1
)
def test_batches_of_batches_are_in_their_places(subject, call, batches, axes):
    subject.agrees(_of_more_batches(call, batches, axes))


@requirement(spec.MLP_06, call=swiglu_calls(sizes=many_rows))
def test_any_number_of_rows_is_right(subject, call):
    subject.agrees(call)


@requirement(spec.MLP_06, call=swiglu_calls(sizes=rows_of_whole_tiles, leading_dims=[(2, 3)]), share=0.1)
def test_prompts_of_whole_tiles_and_of_more_than_a_thousand_tokens_are_right_in_a_batch_of_one(subject, call):
    # Who claims batches of several alone is asked for no other.
    narrow(subject.envelope, {"leading_dims": [(1,)]})
    subject.agrees(call.having(x=call.arguments["x"][:1]))


@requirement(spec.MLP_06, call=swiglu_calls(sizes=one_short_of_tiles, leading_dims=[(1,), (2,)]), share=0.3)
def test_rows_one_short_of_tiles_are_right(subject, call):
    subject.agrees(call)


# In float16 some of so many gates are as low as SILU-01 is about.
@requirement(
    spec.MLP_06,
    call=swiglu_calls(sizes=very_many_rows, leading_dims=[(1,), (2,)], dtypes=["float32", "bfloat16"]),
    share=0.02,
)
def test_more_rows_than_16_bits_count_are_right(subject, call):
    subject.agrees(call)


@requirement(spec.MLP_06, call=swiglu_calls(leading_dims=BATCHES), axis=among([0, -2]), share=0.5)
def test_no_rows_give_no_rows(subject, call, axis):
    none = resized(call.arguments["x"], axis, 0)
    subject.expects(call.having(x=none), none)


@requirement(spec.MLP_06, call=swiglu_calls(sizes=many_rows, leading_dims=[(2, 3)]), share=0.15)
def test_a_token_of_each_of_many_sequences_is_right(subject, call):
    subject.agrees(one_token_each(call))


@requirement(spec.MLP_07, call=in_views(swiglu_calls()), share=1.5)
def test_strided_arguments_are_read_like_their_copies(subject, call):
    subject.agrees(call)


@requirement(spec.MLP_07, call=swiglu_calls(leading_dims=[(9, 2), (2, 3)]), share=0.1)
def test_a_batch_that_is_repeated_without_a_copy_is_read_like_its_copies(subject, call):
    subject.agrees(one_batch_repeated(call))


@requirement(
    spec.MLP_07,
    call=in_views(swiglu_calls(leading_dims=[(9, 2), (2, 3)]), "x", *WEIGHTS, views=["far"]),
    share=0.3,
)
def test_rows_that_lie_far_apart_are_read_like_their_copies(subject, call):
    subject.agrees(call)


@requirement(spec.MLP_07, call=in_views(swiglu_calls(leading_dims=[(2, 1, 3)]), "x"), batches=among([3, 4]), share=0.1)
def test_strided_x_of_five_axes_is_read_like_its_copy(subject, call, batches):
    subject.agrees(_of_more_batches(call, batches, axes=5))


@requirement(spec.MLP_07, call=in_views(swiglu_calls(), "x", *WEIGHTS, views=["beginning"]), share=0.2)
def test_the_rows_in_use_of_longer_buffers_are_read_like_their_copies(subject, call):
    subject.agrees(call)


@requirement(spec.MLP_07, call=swiglu_calls(leading_dims=BATCHES), share=0.1)
def test_rows_that_lie_backwards_are_read_like_their_copies(subject, call):
    subject.agrees(bottom_up(call, "x"))


@requirement(spec.MLP_07, call=in_views(swiglu_calls(sizes=beside_tiles, amplitude=(1.0,))), share=0.5)
def test_large_strided_arguments_are_read_like_their_copies(subject, call):
    subject.agrees(call)


@requirement(
    spec.MLP_07,
    call=in_views(
        swiglu_calls(sizes=ragged_tiles, amplitude=(1.0,), leading_dims=[(2,)]), "x", *WEIGHTS, views=MOSTLY_SLICES
    ),
)
def test_many_rows_are_read_through_their_strides(subject, call):
    subject.agrees(call)


@requirement(
    spec.MLP_07,
    call=in_views(
        swiglu_calls(sizes=of_many_hidden, amplitude=(1.0,), leading_dims=[(1,), (2,)]), "x", *WEIGHTS, views=WIDE_VIEWS
    ),
    share=0.4,
)
def test_strided_arguments_of_many_hidden_dims_are_read_like_their_copies(subject, call):
    subject.agrees(call)


@requirement(
    spec.MLP_07,
    call=in_views(
        swiglu_calls(sizes=of_models, amplitude=(1.0,), leading_dims=[(1,)]), "x", *WEIGHTS, views=WIDE_VIEWS
    ),
    share=0.6,
)
def test_layers_as_wide_as_those_of_models_are_read_through_their_strides(subject, call):
    subject.agrees(call)


@requirement(spec.MLP_08, call=swiglu_calls(sizes=FEW_OR_MANY))
def test_the_result_has_the_shape_and_dtype_of_x(subject, call):
    returns(subject, call, call.arguments["x"].shape, call.features["dtypes"])


@requirement(spec.MLP_08, call=swiglu_calls(leading_dims=BATCHES), share=0.1)
def test_no_rows_have_the_dtype_of_x(subject, call):
    none = call.having(x=call.arguments["x"][:0])
    returns(subject, none, none.arguments["x"].shape, call.features["dtypes"])


@requirement(spec.MLP_09, call=swiglu_calls(sizes=FEW_OR_MANY))
def test_no_argument_is_changed(subject, call):
    keeps_arguments(subject, call)


@requirement(spec.MLP_09, call=swiglu_calls(sizes=square), share=0.1)
def test_no_argument_is_changed_where_there_are_as_many_features_inside(subject, call):
    keeps_arguments(subject, call)


@requirement(spec.MLP_10, call=swiglu_calls(amplitude=(0.3, 0.1), sizes=FEW_OR_MANY))
def test_other_data_in_between_changes_nothing(subject, call):
    other = call.having(x=-call.arguments["x"])
    depends_on_arguments_alone(subject, call.kept(0), other.kept(0))


@requirement(spec.MLP_10, call=swiglu_calls(leading_dims=[(2,), (2, 3)]), share=0.1)
def test_one_object_serves_a_token_a_prompt_and_a_token(subject, call):
    serves_more_and_fewer(subject, call, "x")


@requirement(spec.MLP_10, call=swiglu_calls(leading_dims=[(2, 3)]), share=0.1)
def test_one_object_serves_a_sequence_a_batch_and_a_sequence(subject, call):
    serves_more_and_fewer(subject, call, "x", axis=0)


@requirement(spec.MLP_10, call=swiglu_calls(), share=0.1)
def test_two_layers_keep_to_their_own_weights(subject, call):
    other = call.having(**{name: -call.arguments[name] for name in WEIGHTS})
    depends_on_arguments_alone(subject, call.kept(0), other.kept(1))


@requirement(spec.MLP_07, call=in_views(swiglu_calls(sizes=one_row, leading_dims=[(), (1,)]), "x"), share=0.5)
def test_a_single_row_is_read_through_its_strides(subject, call):
    subject.agrees(call)


@requirement(
    spec.MLP_10,
    call=swiglu_calls(amplitude=(0.3, 0.1), sizes=one_row, leading_dims=[(), (1,)]),
    name=among(WEIGHTS),
    share=0.4,
)
def test_other_weights_of_a_single_row_in_between_change_nothing(subject, call, name):
    depends_on_arguments_alone(subject, call, call.having(**{name: -call.arguments[name]}))


@requirement(spec.MLP_10, call=swiglu_calls(amplitude=(0.3, 0.1), sizes=FEW_OR_MANY), name=among(WEIGHTS))
def test_a_layer_of_other_weights_in_between_changes_nothing(subject, call, name):
    depends_on_arguments_alone(subject, call, call.having(**{name: -call.arguments[name]}))


@requirement(spec.MLP_11, call=swiglu_calls(), name=among([*WEIGHTS, "x"]), bad=among(["longer", "shorter"]))
def test_features_that_do_not_match_are_refused(subject, call, name, bad):
    array = call.arguments[name]
    size = array.shape[-1] + (1 if bad == "longer" or array.shape[-1] < 3 else -1)
    refuses(subject, call.having(**{name: resized(array, -1, size)}))


@requirement(spec.MLP_11, call=swiglu_calls(), times=among([2, 3]), share=0.2)
def test_features_of_several_rows_in_one_are_refused(subject, call, times):
    x = call.arguments["x"]
    refuses(subject, call.having(x=resized(x, -1, times * x.shape[-1])))


@requirement(spec.MLP_11, call=swiglu_calls(), name=among(WEIGHTS), share=0.2)
def test_a_weight_that_lies_the_other_way_round_is_refused(subject, call, name):
    refuses(subject, call.having(**{name: call.arguments[name].T.copy()}))


@requirement(spec.MLP_11, call=swiglu_calls(), name=among(WEIGHTS), rows=among(["one more", "one"]))
def test_outputs_that_do_not_match_are_refused(subject, call, name, rows):
    array = call.arguments[name]
    refuses(subject, call.having(**{name: resized(array, 0, 1 if rows == "one" else len(array) + 1)}))


@requirement(spec.MLP_12, call=swiglu_calls(sizes=of_models, amplitude=(1.0,), leading_dims=[(1,)]), share=0.45)
def test_tokens_and_prompts_of_models_are_right(subject, call):
    subject.agrees(call)


@requirement(spec.MLP_12, call=swiglu_calls(sizes=wide_layers, amplitude=(1.0,), leading_dims=[(1,)]), share=0.06)
def test_layers_as_wide_as_those_of_models_are_right(subject, call):
    subject.agrees(call)


@requirement(spec.MLP_12, call=swiglu_calls(sizes=wide_both_ways, amplitude=(1.0,), leading_dims=[(1,)]), share=0.1)
def test_tokens_and_prompts_of_wide_layers_are_right(subject, call):
    subject.agrees(call)


@requirement(
    spec.MLP_12, call=swiglu_calls(sizes=many_tiles_each_way, amplitude=(1.0,), leading_dims=[(1,)]), share=0.03
)
def test_prompts_of_many_tiles_each_way_are_right(subject, call):
    subject.agrees(call)


@requirement(spec.MLP_12, call=swiglu_calls(sizes=squares, amplitude=(1.0,), leading_dims=[(1,)]), share=0.03)
def test_a_few_rows_of_a_small_model_are_right(subject, call):
    subject.agrees(call)


@requirement(spec.MLP_12, call=swiglu_calls(sizes=of_model_widths, amplitude=(1.0,), leading_dims=[(1,)]), share=0.5)
def test_widths_of_models_that_are_no_powers_of_two_are_right(subject, call):
    subject.agrees(call)


@requirement(
    spec.MLP_12, call=swiglu_calls(sizes=of_thousands_of_dims, amplitude=(1.0,), leading_dims=[(1,)]), share=0.06
)
def test_as_many_dims_as_large_models_have_are_right(subject, call):
    subject.agrees(call)


@requirement(
    spec.MLP_12, call=swiglu_calls(sizes=of_thousands_of_hidden, amplitude=(1.0,), leading_dims=[(1,)]), share=0.06
)
def test_as_many_hidden_dims_as_large_models_have_are_right(subject, call):
    subject.agrees(call)


@requirement(spec.MLP_12, call=swiglu_calls(sizes=beside_tiles, amplitude=(1.0,)), share=1.5)
def test_dims_beside_tiles_are_right(subject, call):
    subject.agrees(call)


@requirement(spec.MLP_12, call=swiglu_calls(sizes=beside_odd_tiles, amplitude=(1.0,), leading_dims=[(1,)]), share=0.6)
def test_dims_beside_tiles_that_are_no_powers_of_two_are_right(subject, call):
    subject.agrees(call)


@requirement(spec.MLP_13, call=swiglu_calls(dtypes=HALF, amplitude=(1.0,)), share=0.1)
def test_weights_in_float32_are_refused_or_read_for_their_numbers(subject, call):
    refuses_or_reads(subject, call, *WEIGHTS)


@requirement(spec.MLP_13, call=swiglu_calls(dtypes=HALF, amplitude=(1.0,)), name=among(WEIGHTS), share=0.2)
def test_one_weight_in_float32_is_refused_or_read_for_its_numbers(subject, call, name):
    refuses_or_reads(subject, call, name)


def _of_more_batches(call, batches, axes):
    """The same call with so many of what lies along the second axis, each smaller than the one before, and of so many axes."""
    x = call.arguments["x"]
    later = np.concatenate([x / (1 + i) for i in range(batches)], axis=1).astype(x.dtype)
    return call.having(x=of_axes(later, axes))
