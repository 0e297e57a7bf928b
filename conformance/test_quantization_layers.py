"""Do layers of packed weights keep the contract?"""

import numpy as np

from inferspec.conformance.inputs.linear import beside_others, resized
from inferspec.conformance.inputs.quantization import (
    BATCHES,
    FEW_OR_MANY,
    LAYER,
    LINEAR,
    NOTHING,
    READ,
    TOKEN,
    a_few_tokens,
    a_long_prompt,
    a_prompt,
    a_token,
    beside_tiles,
    long_sums,
    many_outputs,
    many_tiles_each_way,
    of_models,
    of_thousands,
    one_row_of_weights,
    past_a_tile,
    product_calls,
    reading_products,
    several_groups,
    small_or_moderate,
    squares,
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
from inferspec.spec.numerics import f64

layers = product_calls(operation=LINEAR)


@requirement(spec.QLIN_01, call=layers())
def test_a_layer_is_x_times_its_weights_plus_bias(subject, call):
    subject.agrees(call)


@requirement(spec.QLIN_01, reading=reading_products(operation=LINEAR, bias=[False]))
def test_a_layer_reads_each_feature_by_its_own_code_scale_and_bias(subject, reading):
    subject.expects(*reading)


@requirement(spec.QLIN_02, reading=reading_products(operation=LINEAR, bias=[True]))
def test_the_bias_of_a_layer_is_added_once(subject, reading):
    subject.expects(*reading)


@requirement(spec.QLIN_03, call=layers(dtypes=["bfloat16", "float32"]), power=among([-20, 20]), share=0.1)
def test_scales_of_a_layer_that_float16_cannot_hold_are_right_in_other_dtypes(subject, call, power):
    subject.agrees(scaled(call, 2.0**power))


@requirement(spec.QLIN_02, call=layers(bias=[True], sizes=one_row_of_weights), share=0.06)
def test_a_bias_of_one_number_is_the_result_of_a_layer_of_one_output_where_x_is_zero(subject, call):
    x, bias = call.arguments["x"], call.arguments["bias"]
    subject.expects(call.having(x=np.zeros_like(x)), np.broadcast_to(f64(bias), (*x.shape[:-1], 1)))


@requirement(spec.QLIN_02, call=layers(bias=[True]), share=0.1)
def test_where_x_is_zero_the_result_of_a_layer_is_its_bias(subject, call):
    x, bias = call.arguments["x"], call.arguments["bias"]
    subject.expects(call.having(x=np.zeros_like(x)), np.broadcast_to(f64(bias), (*x.shape[:-1], bias.size)))


@requirement(spec.QLIN_03, call=layers(sizes=long_sums, positive=True), share=0.4)
def test_a_layer_of_thousands_of_features_sums_in_float32(subject, call):
    subject.agrees(call)


@requirement(spec.QLIN_03, call=tall_products(operation=LINEAR, dtypes=["float16"]), share=0.1)
def test_codes_times_scales_of_a_layer_may_pass_the_range_of_float16(subject, call):
    subject.agrees(within_class(subject, call))


@requirement(spec.QLIN_04, reading=reading_products(operation=LINEAR, leading_dims=BATCHES))
def test_a_layer_takes_a_batch_row_by_row(subject, reading):
    subject.expects(*reading)


@requirement(spec.QLIN_04, call=layers(leading_dims=[(2, 1, 3)]), batches=among([3, 4]), axes=among([4, 5]), share=0.1)
def test_batches_of_batches_of_a_layer_are_in_their_places(subject, call, batches, axes):
    subject.agrees(beside_others(call, batches, axes))


@requirement(spec.QLIN_04, call=layers(sizes=small_or_moderate, leading_dims=BATCHES), share=0.2)
def test_a_nan_stays_in_its_row_of_a_layer(subject, call):
    subject.agrees(with_nan_in_x(call))


@requirement(spec.QLIN_04, call=layers(sizes=a_token, amplitude=(1.0,), **TOKEN), share=0.4)
def test_a_token_is_right_in_a_layer_as_most_are_packed(subject, call):
    subject.agrees(call)


@requirement(spec.QLIN_04, call=layers(sizes=a_few_tokens, amplitude=(1.0,), **LAYER), share=0.45)
def test_a_few_tokens_are_right_in_a_layer_as_most_are_packed(subject, call):
    subject.agrees(call)


@requirement(spec.QLIN_04, call=layers(sizes=tokens_of_sequences, amplitude=(1.0,), leading_dims=[(1,)]), share=0.04)
def test_a_token_of_each_of_some_sequences_is_right_in_a_wide_layer(subject, call):
    subject.agrees(one_token_each(call))


@requirement(spec.QLIN_04, call=layers(sizes=a_prompt, amplitude=(1.0,), **LAYER), share=0.5)
def test_a_prompt_is_right_in_a_layer_as_most_are_packed(subject, call):
    subject.agrees(call)


@requirement(spec.QLIN_04, call=layers(sizes=a_long_prompt, amplitude=(1.0,), **LAYER), share=0.08)
def test_a_long_prompt_is_right_in_a_wide_layer(subject, call):
    subject.agrees(call)


@requirement(spec.QLIN_04, call=layers(sizes=wide_both_ways, amplitude=(1.0,), leading_dims=[(1,)]), share=0.1)
def test_layers_that_are_wide_both_ways_are_right(subject, call):
    subject.agrees(call)


@requirement(spec.QLIN_04, call=layers(sizes=many_tiles_each_way, amplitude=(1.0,), **LAYER), share=0.03)
def test_prompts_of_many_tiles_each_way_are_right_in_a_layer(subject, call):
    subject.agrees(call)


@requirement(spec.QLIN_04, call=layers(sizes=squares, amplitude=(1.0,), **LAYER), share=0.03)
def test_a_few_rows_through_square_layers_are_right(subject, call):
    subject.agrees(call)


@requirement(spec.QLIN_04, call=layers(sizes=beside_tiles, leading_dims=BATCHES), share=0.3)
def test_layers_of_any_size_take_any_number_of_rows(subject, call):
    subject.agrees(call)


@requirement(spec.QLIN_04, call=layers(sizes=many_outputs, leading_dims=[(1,), (2,)]), share=0.03)
def test_layers_have_more_outputs_than_16_bits_count(subject, call):
    subject.agrees(call)


@requirement(spec.QLIN_04, call=layers(sizes=past_a_tile, leading_dims=[(2, 3)]), share=0.1)
def test_layers_take_a_token_of_each_of_many_sequences(subject, call):
    subject.agrees(one_token_each(call))


@requirement(spec.QLIN_05, call=in_views(layers(sizes=past_a_tile, leading_dims=[(2,)])), share=0.5)
def test_a_layer_reads_strided_arguments_for_many_rows_like_their_copies(subject, call):
    subject.agrees(call)


@requirement(spec.QLIN_05, call=in_views(layers(leading_dims=[(2, 1, 3)]), "x"), batches=among([3, 4]), share=0.1)
def test_a_layer_reads_strided_x_of_five_axes_like_its_copy(subject, call, batches):
    subject.agrees(beside_others(call, batches, axes=5))


@requirement(
    spec.QLIN_05, call=in_views(layers(), "packed", "scales", "biases", views=["beginning", "shifted"]), share=0.3
)
def test_a_layer_reads_arguments_in_longer_buffers_like_their_copies(subject, call):
    subject.agrees(call)


@requirement(spec.QLIN_05, call=in_views_of_each(layers(), "x", "packed", "scales", "biases"), share=0.1)
def test_a_layer_reads_each_argument_through_its_own_strides(subject, call):
    subject.agrees(call)


@requirement(
    spec.QLIN_05,
    call=in_views(layers(sizes=FEW_OR_MANY, amplitude=(1.0,), leading_dims=[(2,)]), "x", views=["far"]),
    share=0.1,
)
def test_a_layer_reads_rows_that_lie_far_apart_like_their_copies(subject, call):
    subject.agrees(call)


@requirement(spec.QLIN_05, call=layers(leading_dims=[(2,), (2, 3)]), share=0.1)
def test_a_layer_reads_rows_that_lie_backwards_like_their_copies(subject, call):
    subject.agrees(bottom_up(call, "x", "packed", "scales", "biases"))


@requirement(spec.QLIN_05, call=in_views(layers()), share=1.5)
def test_a_layer_reads_strided_arguments_like_their_copies(subject, call):
    subject.agrees(call)


@requirement(
    spec.QLIN_05,
    call=in_views(layers(sizes=of_models, amplitude=(1.0,), leading_dims=[(1,)]), *READ, views=WIDE_VIEWS),
    share=0.6,
)
def test_a_layer_reads_tokens_and_prompts_of_models_through_strides(subject, call):
    subject.agrees(call)


@requirement(
    spec.QLIN_05,
    call=in_views(layers(sizes=of_thousands, amplitude=(1.0,), leading_dims=[(1,), (2,)]), views=WIDE_VIEWS),
    share=0.3,
)
def test_a_layer_reads_strided_arguments_of_many_groups_or_hundreds_of_outputs(subject, call):
    subject.agrees(call)


@requirement(spec.QLIN_06, call=layers(sizes=FEW_OR_MANY), share=0.5)
def test_a_layer_keeps_the_dtype_of_x(subject, call):
    returns(subject, call, (*call.arguments["x"].shape[:-1], kept(call)), call.features["dtypes"])


@requirement(spec.QLIN_06, call=layers(dtypes=HALF, leading_dims=BATCHES), share=0.06)
def test_a_layer_keeps_the_dtype_of_no_rows(subject, call):
    none = call.arguments["x"][:0]
    returns(subject, call.having(x=none), (*none.shape[:-1], kept(call)), call.features["dtypes"])


@requirement(spec.QLIN_07, call=layers(sizes=FEW_OR_MANY), share=0.5)
def test_a_layer_changes_no_argument(subject, call):
    keeps_arguments(subject, call)


@requirement(spec.QLIN_08, call=layers(sizes=FEW_OR_MANY), share=0.5)
def test_other_rows_in_between_change_nothing_of_a_layer(subject, call):
    depends_on_arguments_alone(subject, call.kept(0), call.having(x=-call.arguments["x"]).kept(0))


@requirement(spec.QLIN_08, call=layers(leading_dims=[(2,), (2, 3)]), share=0.1)
def test_one_layer_serves_a_token_a_prompt_and_a_token(subject, call):
    serves_more_and_fewer(subject, call, "x")


@requirement(spec.QLIN_08, call=layers(leading_dims=[(2, 3)]), share=0.1)
def test_one_layer_serves_a_sequence_a_batch_and_a_sequence(subject, call):
    serves_more_and_fewer(subject, call, "x", axis=0)


@requirement(spec.QLIN_08, call=layers(), share=0.1)
def test_two_layers_keep_to_their_own_weights(subject, call):
    depends_on_arguments_alone(subject, call.kept(0), of_other_weights(call).kept(1))


@requirement(spec.QLIN_08, call=layers(sizes=FEW_OR_MANY), part=among(["packed", "scales", "biases"]), share=0.55)
def test_another_layer_in_between_changes_nothing(subject, call, part):
    value = call.arguments[part]
    depends_on_arguments_alone(subject, call, call.having(**{part: ~value if part == "packed" else -value}))


@requirement(spec.QLIN_08, call=layers(bias=[True]), share=0.3)
def test_another_bias_of_a_layer_in_between_changes_nothing(subject, call):
    depends_on_arguments_alone(subject, call, call.having(bias=-call.arguments["bias"]))


@requirement(spec.QLIN_09, call=layers(), more=among([1, -1, 32, 64]), share=0.5)
def test_a_layer_refuses_an_x_of_another_size(subject, call, more):
    x = call.arguments["x"]
    refuses(subject, call.having(x=resized(x, -1, x.shape[-1] + more)))


@requirement(spec.QLIN_09, call=layers(bias=[True]), more=among([1, 2]), share=0.5)
def test_a_layer_refuses_a_bias_of_another_length(subject, call, more):
    bias = call.arguments["bias"]
    refuses(subject, call.having(bias=resized(bias, 0, len(bias) + more)))


@requirement(spec.QLIN_09, call=layers(), bad=among(UNMATCHED), share=0.5)
def test_a_layer_refuses_parts_that_do_not_belong_together(subject, call, bad):
    refuses_parts(subject, call, bad)


@requirement(spec.QLIN_09, call=layers(), bad=among(NOT_OFFERED), share=0.5)
def test_a_layer_refuses_a_grid_that_is_not_offered(subject, call, bad):
    refuses(subject, broken(call, *bad))


@requirement(spec.QLIN_13, call=layers(), bad=NOTHING, share=0.1)
def test_a_layer_refuses_a_grid_of_nothing(subject, call, bad):
    refuses(subject, call.having(**bad))


@requirement(spec.QLIN_14, call=layers.strict()(group_sizes=[128], bits=[4]), share=0.1)
def test_a_layer_has_4_bits_and_groups_of_128_where_nothing_is_said(subject, call):
    subject.agrees(call.without("group_size", "bits"))


@requirement(spec.QLIN_09, call=layers(sizes=several_groups), part=among(["biases", "scales"]), share=0.2)
def test_one_group_of_a_layer_does_not_stand_for_all(subject, call, part):
    refuses(subject, broadcast(call, part))


@requirement(spec.QLIN_09, call=layers(sizes=several_groups), share=0.06)
def test_the_groups_of_one_row_of_a_layer_do_not_stand_for_all(subject, call):
    refuses(subject, of_one_row(call, "biases"))
    refuses(subject, of_one_row(call, "scales"))


@requirement(spec.QLIN_11, call=layers(), part=among(["scales", "biases"]), share=0.1)
def test_a_nan_in_one_group_of_a_layer_stays_in_its_output(subject, call, part):
    subject.agrees(with_nan(call, part))


@requirement(spec.QLIN_12, call=layers(dtypes=HALF), share=0.1)
def test_scales_and_biases_of_a_layer_in_float32_are_refused_or_read_for_their_numbers(subject, call):
    refuses_or_reads(subject, call, "scales", "biases")


@requirement(spec.QLIN_12, call=layers(dtypes=HALF, bias=[True]), share=0.1)
def test_a_bias_of_a_quantised_layer_in_float32_is_refused_or_read_for_its_numbers(subject, call):
    refuses_or_reads(subject, call, "bias")


@requirement(spec.QLIN_10, call=layers(leading_dims=BATCHES), axis=among([0, -2]), share=0.3)
def test_no_rows_give_no_rows_of_a_layer(subject, call, axis):
    none = resized(call.arguments["x"], axis, 0)
    subject.expects(call.having(x=none), np.zeros((*none.shape[:-1], kept(call))))
