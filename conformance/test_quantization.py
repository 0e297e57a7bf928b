"""Does an implementation of group-wise quantisation, and of products with quantised weights, keep the contract?"""

import numpy as np

from inferspec.conformance.inputs.embedding import of_one_token
from inferspec.conformance.inputs.linear import beside_others, resized, with_few
from inferspec.conformance.inputs.quantization import (
    HEAD,
    LINEAR,
    PACKED,
    a_few_rows_of_thousands,
    a_few_tokens,
    a_long_prompt,
    a_prompt,
    a_table,
    a_token,
    beside_odd_tiles,
    beside_tiles,
    constant,
    dequantize_calls,
    even,
    every_code,
    extreme,
    large_table,
    long_sums,
    lookup_calls,
    many_outputs,
    many_rows,
    many_tokens,
    of_model_widths,
    of_two_grids,
    on_two_grids,
    one_row,
    one_row_of_thousands,
    one_row_of_weights,
    past_a_tile,
    product_calls,
    quantize_calls,
    reading_products,
    several_groups,
    several_tiles,
    shaded_products,
    shared_heads,
    small_or_moderate,
    spread,
    square,
    stacked_products,
    tall_lookups,
    tall_parts,
    tall_products,
    thousands_of_columns,
    trained,
    whole_dequantize,
    whole_tiles,
    wide_batches,
    wide_layers,
)
from inferspec.conformance.properties import (
    bit_equal,
    depends_on_arguments_alone,
    keeps_arguments,
    refuses,
    refuses_or_reads,
    returns,
)
from inferspec.conformance.strategies import HALF, among, any_of, in_views
from inferspec.conformance.suite import requirement
from inferspec.conformance.trial import Nonconformance
from inferspec.spec import quantization as spec
from inferspec.spec.numerics import Precision, f64, round_to
from inferspec.spec.quantization import Quantize, restored

BATCHES = [(2,), (2, 3), (2, 1, 3), (9, 2)]
PLAIN = {"stacked": [False]}

FEW_OR_MANY = any_of(small_or_moderate, past_a_tile)

weights = quantize_calls(**PLAIN)
matrices = dequantize_calls(**PLAIN)
layers = product_calls(operation=LINEAR)
heads = product_calls(operation=HEAD)
LAYER = {key: choices for key, choices in PACKED.items() if key != "transpose"}
"""As most are packed: what a layer, a head or a table has of it, and what a matrix has."""
PARTS = {key: choices for key, choices in LAYER.items() if key != "leading_dims"}

READ = ("x", "packed", "scales")
"""What a product reads element by element."""

SINGLE = {"dtypes": ["bfloat16"], "leading_dims": [(), (1,)]}
"""A single row or token, as in decoding."""
one_row_weights = weights(sizes=one_row_of_weights, dtypes=["bfloat16"])
one_row_matrices = matrices(sizes=one_row_of_weights, dtypes=["bfloat16"])
one_row_products = product_calls(sizes=one_row, **SINGLE)

NOTHING = among([{"bits": 0}, {"group_size": 0}, {"bits": -4}, {"group_size": -32}])
"""Grids that divide by 0 or are counted backwards, where nothing looks at them."""

# quantize


@requirement(spec.QUANT_01, call=weights(values=(spread, trained)), share=0.8)
def test_weights_come_back_as_the_nearest_of_their_grid(subject, call):
    round_trips(subject, call)


@requirement(spec.QUANT_01, call=weights(values=(even,)), share=0.5)
def test_weights_that_fill_their_range_come_back(subject, call):
    round_trips(subject, call)


@requirement(spec.QUANT_02, call=weights(), share=0.8)
def test_the_grid_of_each_group_fits_its_range(subject, call):
    fits(subject, call)


@requirement(spec.QUANT_02, call=weights(values=(extreme,)), share=0.5)
def test_the_grid_of_large_and_tiny_groups_fits_their_range(subject, call):
    fits(subject, call)


@requirement(spec.QUANT_03, call=weights(), share=0.5)
def test_the_grid_reaches_every_weight(subject, call):
    round_trips(subject, call, reaching=True)


@requirement(spec.QUANT_04, call=weights(values=(constant,)))
def test_groups_of_one_value_come_back_exactly(subject, call):
    parts = subject.agrees(call)
    w = call.arguments["w"].astype(np.float64)
    exact = spec.Answer(w, np.zeros(w.shape))
    subject.compare(call, restored(parts, *grid_of(call)), exact, name="the weight")


@requirement(spec.QUANT_04, call=weights(values=(extreme,)), share=0.5)
def test_weights_near_the_ends_of_the_dtype_come_back(subject, call):
    round_trips(subject, call)


@requirement(spec.QUANT_05, call=weights(), share=0.5)
def test_more_rows_change_nothing_of_the_first(subject, call):
    w = call.arguments["w"]
    more = np.concatenate([w, -3 * w, w[::-1]])
    same_parts(subject, call, call.having(w=more.astype(w.dtype)), slice(0, len(w)))


@requirement(spec.QUANT_05, call=weights(), share=0.5)
def test_other_groups_change_nothing_of_a_group(subject, call):
    w, size = call.arguments["w"], call.arguments["group_size"]
    more = np.concatenate([w, (-3 * w[:, :size]).astype(w.dtype)], axis=1)
    same_parts(subject, call, call.having(w=more), slice(None))


@requirement(spec.QUANT_06, call=in_views(weights(sizes=past_a_tile)), share=0.2)
def test_many_strided_rows_of_weights_are_quantised_like_their_copies(subject, call):
    round_trips(subject, call)


@requirement(spec.QUANT_06, call=in_views(weights(sizes=small_or_moderate)))
def test_strided_weights_are_quantised_like_their_copy(subject, call):
    round_trips(subject, call)


@requirement(spec.QUANT_07, call=weights(sizes=small_or_moderate), share=0.5)
def test_parts_have_the_promised_shapes_and_dtypes(subject, call):
    has_promised_parts(subject, call)


@requirement(spec.QUANT_08, call=weights(sizes=FEW_OR_MANY), share=0.3)
def test_quantising_changes_no_weight(subject, call):
    keeps_arguments(subject, call)


@requirement(spec.QUANT_09, grids=on_two_grids(**PLAIN), share=0.2)
def test_another_grid_before_does_not_serve_this_one(subject, grids):
    call, other = grids
    subject.parts(other)
    round_trips(subject, call)


@requirement(spec.QUANT_09, call=weights(sizes=FEW_OR_MANY), share=0.5)
def test_other_weights_in_between_change_nothing(subject, call):
    w = call.arguments["w"]
    depends_on_arguments_alone(subject, call, call.having(w=(-2 * w).astype(w.dtype)))


@requirement(spec.QUANT_09, call=weights(sizes=FEW_OR_MANY), share=0.5)
def test_other_weights_before_do_not_serve_these(subject, call):
    w = call.arguments["w"]
    subject.parts(call.having(w=(-2 * w).astype(w.dtype)))
    round_trips(subject, call)


@requirement(spec.QUANT_06, call=in_views(one_row_weights), share=0.2)
def test_a_strided_row_of_weights_is_quantised_like_its_copy(subject, call):
    round_trips(subject, call)


@requirement(spec.QUANT_07, call=one_row_weights, share=0.1)
def test_parts_of_a_single_row_have_its_dtype(subject, call):
    has_promised_parts(subject, call)


@requirement(spec.QUANT_08, call=one_row_weights, share=0.1)
def test_quantising_a_single_row_does_not_change_it(subject, call):
    keeps_arguments(subject, call)


@requirement(spec.QUANT_09, call=one_row_weights, share=0.1)
def test_another_row_of_weights_before_does_not_serve_this_one(subject, call):
    w = call.arguments["w"]
    subject.parts(call.having(w=(-2 * w).astype(w.dtype)))
    round_trips(subject, call)


WIDER = (48, 96)
"""Group sizes that are not offered, and that a subject may offer besides: what it then does with them must be right."""


@requirement(spec.QUANT_10, call=weights(), bad=among([7, 9, 12, 16, 33]), share=0.5)
def test_bits_that_are_not_offered_are_refused(subject, call, bad):
    refuses(subject, call.having(bits=bad))


@requirement(spec.QUANT_15, call=weights(), bad=among([48, 1, 16, 96, 100]), share=0.5)
def test_group_sizes_that_are_not_offered_are_refused(subject, call, bad):
    # Rows that such a group would divide.
    other = call.having(w=resized(call.arguments["w"], -1, 4800), group_size=bad)
    if bad in WIDER and not subject.observe(other).raised:
        round_trips(subject, other)
    else:
        refuses(subject, other)


@requirement(spec.QUANT_14, call=weights(), bad=NOTHING, share=0.1)
def test_a_grid_of_nothing_is_refused(subject, call, bad):
    refuses(subject, call.having(**bad))


@requirement(spec.QUANT_10, call=weights(), more=among([1, -1, 8, 16, -16]), share=0.5)
def test_rows_of_broken_groups_are_refused(subject, call, more):
    w = call.arguments["w"]
    refuses(subject, call.having(w=resized(w, -1, w.shape[-1] + more)))


@requirement(spec.QUANT_11, call=weights(sizes=a_prompt, values=(trained,), **PARTS), share=1.0)
def test_matrices_of_models_are_quantised_as_most_are(subject, call):
    round_trips(subject, call)


@requirement(spec.QUANT_11, call=weights(sizes=beside_tiles, values=(trained,)), share=0.6)
def test_any_number_of_rows_and_groups_comes_back(subject, call):
    round_trips(subject, call)


@requirement(spec.QUANT_11, call=weights(sizes=many_outputs, values=(trained,)), share=0.03)
def test_more_rows_than_16_bits_count_come_back(subject, call):
    round_trips(subject, call)


@requirement(spec.QUANT_12, call=quantize_calls(stacked=[True]), share=0.3)
def test_stacked_weights_come_back(subject, call):
    round_trips(subject, call)


# dequantize


@requirement(spec.DEQ_01, restoring=every_code())
def test_every_code_at_every_place_of_a_word_is_itself(subject, restoring):
    subject.expects(*restoring)


@requirement(spec.DEQ_02, restoring=whole_dequantize(**PLAIN))
def test_each_group_has_its_own_scale_and_bias(subject, restoring):
    subject.expects(*restoring)


@requirement(spec.DEQ_02, call=matrices())
def test_weights_are_codes_times_scale_plus_bias(subject, call):
    subject.agrees(call)


@requirement(spec.DEQ_03, call=matrices())
def test_weights_keep_the_precision_of_their_dtype(subject, call):
    subject.agrees(call)


@requirement(spec.DEQ_03, call=matrices(dtypes=["float16", "bfloat16"], bits=[8]), share=0.5)
def test_weights_of_8_bits_are_rounded_once(subject, call):
    subject.agrees(call)


@requirement(
    spec.DEQ_03,
    call=matrices(sizes=small_or_moderate, dtypes=["bfloat16", "float32"]),
    power=among([-20, 20]),
    share=0.2,
)
def test_scales_that_float16_cannot_hold_are_right_in_other_dtypes(subject, call, power):
    subject.agrees(_scaled(call, 2.0**power))


@requirement(spec.DEQ_03, call=tall_parts(dtypes=["float16"], **PLAIN), share=0.1)
def test_codes_times_scales_may_pass_the_range_of_float16(subject, call):
    subject.agrees(within_class(subject, call))


@requirement(spec.DEQ_04, restoring=whole_dequantize(stacked=[True]), share=0.5)
def test_stacked_parts_are_restored_each_in_its_place(subject, restoring):
    subject.expects(*restoring)


@requirement(spec.DEQ_05, call=in_views(matrices(sizes=past_a_tile)), share=0.5)
def test_strided_parts_of_many_rows_are_restored_like_their_copies(subject, call):
    subject.agrees(call)


@requirement(spec.DEQ_05, call=in_views(matrices(sizes=small_or_moderate)), share=1.5)
def test_strided_parts_are_restored_like_their_copies(subject, call):
    subject.agrees(call)


@requirement(spec.DEQ_06, call=matrices(sizes=FEW_OR_MANY), share=0.5)
def test_weights_have_the_shape_and_dtype_promised(subject, call):
    rows, words = call.arguments["packed"].shape
    returns(subject, call, (rows, words * 32 // call.arguments["bits"]), call.features["dtypes"])


@requirement(spec.DEQ_07, call=matrices(sizes=FEW_OR_MANY), share=0.3)
def test_restoring_changes_no_argument(subject, call):
    keeps_arguments(subject, call)


@requirement(spec.DEQ_08, grids=of_two_grids(), share=0.2)
def test_the_same_parts_of_another_grid_in_between_change_nothing(subject, grids):
    subject.agrees(grids[0])
    depends_on_arguments_alone(subject, *grids)
    subject.agrees(grids[1])


@requirement(spec.DEQ_08, call=matrices(sizes=FEW_OR_MANY), share=0.5)
def test_other_codes_in_between_change_nothing(subject, call):
    depends_on_arguments_alone(subject, call, call.having(packed=~call.arguments["packed"]))


@requirement(spec.DEQ_08, call=matrices(sizes=FEW_OR_MANY), part=among(["scales", "biases"]), share=0.5)
def test_other_scales_in_between_change_nothing(subject, call, part):
    depends_on_arguments_alone(subject, call, call.having(**{part: -call.arguments[part]}))


@requirement(spec.DEQ_05, call=in_views(one_row_matrices), share=0.4)
def test_strided_parts_of_a_single_row_are_restored_like_their_copies(subject, call):
    subject.agrees(call)


@requirement(spec.DEQ_06, call=one_row_matrices, share=0.1)
def test_a_single_row_has_the_shape_and_dtype_promised(subject, call):
    words = call.arguments["packed"].shape[1]
    returns(subject, call, (1, words * 32 // call.arguments["bits"]), call.features["dtypes"])


@requirement(spec.DEQ_07, call=one_row_matrices, share=0.1)
def test_restoring_a_single_row_changes_no_argument(subject, call):
    keeps_arguments(subject, call)


@requirement(spec.DEQ_08, call=one_row_matrices, part=among(["packed", "scales", "biases"]), share=0.2)
def test_other_parts_of_a_single_row_in_between_change_nothing(subject, call, part):
    value = call.arguments[part]
    depends_on_arguments_alone(subject, call, call.having(**{part: ~value if part == "packed" else -value}))


WAYS = {
    "bits": 4,
    "group size": 4,
    "other bits": 2,
    "other group size": 2,
    "scales": 4,
    "biases": 4,
    "rows": 4,
    "dtype": 4,
}
"""How parts may fail to belong together, and in how many ways each."""
BROKEN = tuple((bad, number) for bad, ways in WAYS.items() for number in range(ways))
SAME_BITS = (("dtype", 0), ("dtype", 3))
GRIDS = ("bits", "group size")
NOT_OFFERED = tuple(way for way in BROKEN if way[0] in GRIDS)
UNMATCHED = tuple(way for way in BROKEN if way[0] not in GRIDS)


@requirement(spec.DEQ_09, call=matrices(), bad=among(BROKEN))
def test_parts_that_do_not_belong_together_are_refused(subject, call, bad):
    refuses_parts(subject, call, bad)


@requirement(spec.DEQ_12, call=matrices(), bad=NOTHING, share=0.1)
def test_parts_on_a_grid_of_nothing_are_refused(subject, call, bad):
    refuses(subject, call.having(**bad))


@requirement(spec.DEQ_09, call=matrices(sizes=several_groups), part=among(["biases", "scales"]), share=0.2)
def test_one_group_does_not_stand_for_all(subject, call, part):
    refuses(subject, broadcast(call, part))


@requirement(spec.DEQ_10, call=matrices(sizes=a_prompt, **PARTS), share=1.0)
def test_matrices_of_models_are_restored_as_most_are_packed(subject, call):
    subject.agrees(call)


@requirement(spec.DEQ_10, call=matrices(sizes=beside_tiles), share=0.6)
def test_any_number_of_rows_and_groups_is_restored(subject, call):
    subject.agrees(call)


@requirement(spec.DEQ_10, call=matrices(sizes=thousands_of_columns), share=0.1)
def test_thousands_of_columns_are_restored(subject, call):
    subject.agrees(call)


@requirement(spec.DEQ_10, call=matrices(sizes=many_outputs), share=0.03)
def test_more_rows_than_16_bits_count_are_restored(subject, call):
    subject.agrees(call)


# quantized_matmul


@requirement(spec.QMM_01, call=product_calls(transpose=[True]))
def test_products_are_x_times_the_transposed_weights(subject, call):
    subject.agrees(call)


@requirement(spec.QMM_02, call=product_calls(transpose=[False]))
def test_products_are_x_times_the_weights_when_not_transposed(subject, call):
    subject.agrees(call)


@requirement(spec.QMM_02, reading=reading_products(transpose=[False], sizes=square), share=0.5)
def test_square_weights_are_not_transposed(subject, reading):
    subject.expects(*reading)


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
    subject.agrees(_scaled(call, 2.0**power))


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


@requirement(spec.QMM_05, call=product_calls(leading_dims=[(2, 1, 3)]), batches=among([3, 4]), share=0.1)
def test_batches_of_batches_of_products_are_in_their_places(subject, call, batches):
    subject.agrees(beside_others(call, batches))


@requirement(spec.QMM_06, call=product_calls(sizes=beside_tiles, transpose=[True]))
def test_sizes_beside_tiles_are_right(subject, call):
    subject.agrees(call)


@requirement(spec.QMM_06, call=product_calls(sizes=beside_tiles, transpose=[False]))
def test_sizes_beside_tiles_are_right_when_not_transposed(subject, call):
    subject.agrees(call)


@requirement(spec.QMM_06, call=product_calls(sizes=beside_odd_tiles, amplitude=(1.0,), leading_dims=[(1,)]), share=0.6)
def test_sizes_beside_tiles_that_are_no_powers_of_two_are_right(subject, call):
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


@requirement(spec.QMM_06, call=product_calls(sizes=a_long_prompt, amplitude=(1.0,), **PACKED), share=0.05)
def test_a_long_prompt_of_a_wide_layer_is_right(subject, call):
    subject.agrees(call)


@requirement(spec.QMM_06, call=product_calls(sizes=of_model_widths, amplitude=(1.0,), leading_dims=[(1,)]), share=0.2)
def test_widths_of_models_that_are_no_powers_of_two_are_right(subject, call):
    subject.agrees(call)


@requirement(
    spec.QMM_06, call=product_calls(sizes=one_row_of_thousands, amplitude=(1.0,), leading_dims=[(1,)]), share=0.3
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


@requirement(spec.QMM_07, call=product_calls(sizes=many_outputs, leading_dims=[(1,), (2,)]), share=0.06)
def test_more_outputs_than_16_bits_count_are_right(subject, call):
    subject.agrees(call)


@requirement(spec.QMM_07, call=product_calls(sizes=many_rows, leading_dims=[(1,), (2,)]), share=0.05)
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
    both = spec.Answer(few.astype(np.float64), 2 * answer.budget)
    subject.compare(call, many[..., : few.shape[-1]], both, name="with fewer outputs")


@requirement(spec.QUANT_13, call=weights(), share=0.1)
def test_no_weights_are_no_codes(subject, call):
    answers = subject.answer(call)
    none = call.having(w=call.arguments["w"][:0])
    subject.expects(none, {part: answers[part].value[:0] for part in answers})


@requirement(spec.DEQ_11, call=matrices(), share=0.1)
def test_no_codes_are_no_weights(subject, call):
    none = call.having(**{part: call.arguments[part][:0] for part in ("packed", "scales", "biases")})
    subject.expects(none, subject.answer(call).value[:0])


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


@requirement(spec.QMM_09, call=in_views(product_calls(sizes=beside_tiles)), share=0.5)
def test_large_strided_arguments_are_read_like_their_copies(subject, call):
    subject.agrees(call)


@requirement(spec.QMM_09, call=in_views(product_calls(leading_dims=[(2, 1, 3)]), "x"), batches=among([3, 1]), share=0.1)
def test_strided_batches_of_batches_are_read_like_their_copies(subject, call, batches):
    subject.agrees(beside_others(call, batches))


@requirement(spec.QMM_09, call=in_views(product_calls(sizes=a_prompt, amplitude=(1.0,), **PACKED), *READ), share=0.3)
def test_prompts_are_multiplied_through_strides(subject, call):
    subject.agrees(call)


@requirement(spec.QMM_10, call=product_calls(sizes=FEW_OR_MANY), share=0.5)
def test_products_have_the_shape_and_dtype_promised(subject, call):
    returns(subject, call, (*call.arguments["x"].shape[:-1], kept(call)), call.features["dtypes"])


@requirement(spec.QMM_11, call=product_calls(sizes=FEW_OR_MANY), share=0.5)
def test_products_change_no_argument(subject, call):
    keeps_arguments(subject, call)


@requirement(spec.QMM_12, call=product_calls(sizes=FEW_OR_MANY), share=0.5)
def test_other_rows_in_between_change_nothing(subject, call):
    depends_on_arguments_alone(subject, call, call.having(x=-call.arguments["x"]))


@requirement(spec.QMM_12, call=product_calls(sizes=FEW_OR_MANY), part=among(["packed", "scales", "biases"]), share=0.6)
def test_other_weights_in_between_change_no_product(subject, call, part):
    value = call.arguments[part]
    depends_on_arguments_alone(subject, call, call.having(**{part: ~value if part == "packed" else -value}))


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


@requirement(spec.QMM_12, call=one_row_products, other=among(["packed", "x", "scales", "biases"]), share=0.3)
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


@requirement(spec.QMM_13, call=product_calls(), more=among([1, -1, 32, 64]), share=0.5)
def test_an_x_of_another_size_is_refused(subject, call, more):
    x = call.arguments["x"]
    refuses(subject, call.having(x=resized(x, -1, x.shape[-1] + more)))


@requirement(
    spec.QMM_14, call=in_views(stacked_products(stacked=[True], alike=True), "packed", "scales", "biases"), share=0.3
)
def test_stacked_parts_may_be_strided_views(subject, call):
    subject.agrees(call)


@requirement(spec.QMM_14, call=stacked_products(stacked=[True]), share=0.6)
def test_stacked_parts_are_broadcast_with_x(subject, call):
    subject.agrees(call)


@requirement(spec.QMM_14, call=in_views(shared_heads(stacked=[True]), "packed", "scales", "biases"), share=0.6)
def test_parts_shared_by_groups_of_heads_are_read_like_their_copies(subject, call):
    for part in ("packed", "scales", "biases"):
        call = call.viewing(part, "broadcast")
    subject.agrees(call)


@requirement(spec.QMM_16, call=product_calls(dtypes=HALF), share=0.2)
def test_scales_and_biases_in_float32_are_refused_or_read_for_their_numbers(subject, call):
    refuses_or_reads(subject, call, "scales", "biases")


@requirement(spec.QMM_15, call=product_calls(leading_dims=BATCHES), axis=among([0, -2]), share=0.3)
def test_no_rows_give_no_outputs(subject, call, axis):
    none = resized(call.arguments["x"], axis, 0)
    subject.expects(call.having(x=none), np.zeros((*none.shape[:-1], kept(call))))


# QuantizedLinear


@requirement(spec.QLIN_01, call=layers())
def test_a_layer_is_x_times_its_weights_plus_bias(subject, call):
    subject.agrees(call)


@requirement(spec.QLIN_01, reading=reading_products(operation=LINEAR, bias=[False]))
def test_a_layer_reads_each_feature_by_its_own_code_scale_and_bias(subject, reading):
    subject.expects(*reading)


@requirement(spec.QLIN_02, reading=reading_products(operation=LINEAR, bias=[True]))
def test_the_bias_of_a_layer_is_added_once(subject, reading):
    subject.expects(*reading)


@requirement(spec.QLIN_03, call=layers(sizes=long_sums, positive=True), share=0.4)
def test_a_layer_of_thousands_of_features_sums_in_float32(subject, call):
    subject.agrees(call)


@requirement(spec.QLIN_03, call=tall_products(operation=LINEAR, dtypes=["float16"]), share=0.1)
def test_codes_times_scales_of_a_layer_may_pass_the_range_of_float16(subject, call):
    subject.agrees(within_class(subject, call))


@requirement(spec.QLIN_04, reading=reading_products(operation=LINEAR, leading_dims=BATCHES))
def test_a_layer_takes_a_batch_row_by_row(subject, reading):
    subject.expects(*reading)


@requirement(spec.QLIN_04, call=layers(leading_dims=[(2, 1, 3)]), batches=among([3, 4]), share=0.1)
def test_batches_of_batches_of_a_layer_are_in_their_places(subject, call, batches):
    subject.agrees(beside_others(call, batches))


@requirement(spec.QLIN_04, call=layers(sizes=small_or_moderate, leading_dims=BATCHES), share=0.2)
def test_a_nan_stays_in_its_row_of_a_layer(subject, call):
    subject.agrees(with_nan_in_x(call))


@requirement(spec.QLIN_04, call=layers(sizes=a_token, amplitude=(1.0,), **LAYER), share=0.4)
def test_a_token_is_right_in_a_layer_as_most_are_packed(subject, call):
    subject.agrees(call)


@requirement(spec.QLIN_04, call=layers(sizes=a_few_tokens, amplitude=(1.0,), **LAYER), share=0.4)
def test_a_few_tokens_are_right_in_a_layer_as_most_are_packed(subject, call):
    subject.agrees(call)


@requirement(spec.QLIN_04, call=layers(sizes=a_prompt, amplitude=(1.0,), **LAYER), share=0.5)
def test_a_prompt_is_right_in_a_layer_as_most_are_packed(subject, call):
    subject.agrees(call)


@requirement(spec.QLIN_04, call=layers(sizes=a_long_prompt, amplitude=(1.0,), **LAYER), share=0.05)
def test_a_long_prompt_is_right_in_a_wide_layer(subject, call):
    subject.agrees(call)


@requirement(spec.QLIN_04, call=layers(sizes=beside_tiles, leading_dims=BATCHES), share=0.3)
def test_layers_of_any_size_take_any_number_of_rows(subject, call):
    subject.agrees(call)


@requirement(spec.QLIN_05, call=in_views(layers(sizes=past_a_tile, leading_dims=[(2,)])), share=0.5)
def test_a_layer_reads_strided_arguments_for_many_rows_like_their_copies(subject, call):
    subject.agrees(call)


@requirement(spec.QLIN_05, call=in_views(layers()), share=1.5)
def test_a_layer_reads_strided_arguments_like_their_copies(subject, call):
    subject.agrees(call)


@requirement(spec.QLIN_05, call=in_views(layers(sizes=a_prompt, amplitude=(1.0,), **LAYER), *READ), share=0.3)
def test_a_layer_reads_prompts_through_strides(subject, call):
    subject.agrees(call)


@requirement(spec.QLIN_06, call=layers(sizes=FEW_OR_MANY), share=0.5)
def test_a_layer_keeps_the_dtype_of_x(subject, call):
    returns(subject, call, (*call.arguments["x"].shape[:-1], kept(call)), call.features["dtypes"])


@requirement(spec.QLIN_07, call=layers(sizes=FEW_OR_MANY), share=0.5)
def test_a_layer_changes_no_argument(subject, call):
    keeps_arguments(subject, call)


@requirement(spec.QLIN_08, call=layers(sizes=FEW_OR_MANY), share=0.5)
def test_other_rows_in_between_change_nothing_of_a_layer(subject, call):
    depends_on_arguments_alone(subject, call.kept(0), call.having(x=-call.arguments["x"]).kept(0))


@requirement(spec.QLIN_08, call=layers(sizes=FEW_OR_MANY), part=among(["packed", "scales", "biases"]), share=0.5)
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


@requirement(spec.QLIN_09, call=layers(sizes=several_groups), part=among(["biases", "scales"]), share=0.2)
def test_one_group_of_a_layer_does_not_stand_for_all(subject, call, part):
    refuses(subject, broadcast(call, part))


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


# QuantizedEmbedding


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


@requirement(spec.QEMB_03, call=lookup_calls(leading_dims=[(), *BATCHES]), share=0.6)
def test_tokens_of_any_shape_give_rows_in_their_places(subject, call):
    subject.agrees(call)


@requirement(spec.QEMB_03, call=lookup_calls(leading_dims=[(2, 1, 3)]), batches=among([3, 4]), share=0.1)
def test_tokens_of_three_axes_give_rows_in_their_places(subject, call, batches):
    tokens, vocabulary = call.arguments["tokens"].astype(np.int64), len(call.arguments["packed"])
    later = np.concatenate([(tokens + i) % vocabulary for i in range(batches)], axis=1)
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


@requirement(spec.QEMB_04, call=in_views(lookup_calls()), share=1.5)
def test_strided_tokens_and_tables_are_read_like_their_copies(subject, call):
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


@requirement(spec.QEMB_10, call=heads(sizes=long_sums, positive=True), share=0.4)
def test_logits_of_thousands_of_features_are_summed_in_float32(subject, call):
    subject.agrees(call)


@requirement(spec.QEMB_10, call=tall_products(operation=HEAD, dtypes=["float16"]), share=0.1)
def test_codes_times_scales_of_the_head_may_pass_the_range_of_float16(subject, call):
    subject.agrees(within_class(subject, call))


@requirement(spec.QEMB_11, reading=reading_products(operation=HEAD, leading_dims=[(), *BATCHES]), share=0.6)
def test_logits_of_a_batch_are_those_of_its_rows(subject, reading):
    subject.expects(*reading)


@requirement(spec.QEMB_11, call=heads(leading_dims=[(2, 1, 3)]), batches=among([3, 4]), share=0.1)
def test_logits_of_batches_of_batches_are_in_their_places(subject, call, batches):
    subject.agrees(beside_others(call, batches))


@requirement(spec.QEMB_11, call=heads(sizes=small_or_moderate, leading_dims=BATCHES), share=0.2)
def test_a_nan_stays_in_the_logits_of_its_row(subject, call):
    subject.agrees(with_nan_in_x(call))


@requirement(spec.QEMB_11, call=heads(sizes=a_token, amplitude=(1.0,), **LAYER), share=0.4)
def test_the_logits_of_a_token_are_right_as_most_heads_are_packed(subject, call):
    subject.agrees(call)


@requirement(spec.QEMB_11, call=heads(sizes=a_few_tokens, amplitude=(1.0,), **LAYER), share=0.4)
def test_the_logits_of_a_few_tokens_are_right_as_most_heads_are_packed(subject, call):
    subject.agrees(call)


@requirement(spec.QEMB_11, call=heads(sizes=a_prompt, amplitude=(1.0,), **LAYER), share=0.5)
def test_the_logits_of_a_prompt_are_right_as_most_heads_are_packed(subject, call):
    subject.agrees(call)


@requirement(spec.QEMB_11, call=heads(sizes=a_long_prompt, amplitude=(1.0,), **LAYER), share=0.05)
def test_the_logits_of_a_long_prompt_are_right(subject, call):
    subject.agrees(call)


@requirement(spec.QEMB_11, call=heads(sizes=beside_tiles, leading_dims=BATCHES), share=0.3)
def test_logits_of_any_number_of_rows_and_ids_are_right(subject, call):
    subject.agrees(call)


@requirement(spec.QEMB_11, call=heads(sizes=many_outputs), share=0.03)
def test_every_logit_of_a_large_vocabulary_is_written(subject, call):
    subject.agrees(call)


@requirement(spec.QEMB_12, call=in_views(heads(sizes=past_a_tile, leading_dims=[(2,)])), share=0.5)
def test_the_head_reads_strided_arguments_for_many_rows_like_their_copies(subject, call):
    subject.agrees(call)


@requirement(spec.QEMB_12, call=in_views(heads()), share=1.5)
def test_the_head_reads_strided_arguments_like_their_copies(subject, call):
    subject.agrees(call)


@requirement(spec.QEMB_12, call=in_views(heads(sizes=a_prompt, amplitude=(1.0,), **LAYER), *READ), share=0.3)
def test_the_head_reads_prompts_through_strides(subject, call):
    subject.agrees(call)


@requirement(spec.QEMB_13, call=heads(sizes=FEW_OR_MANY), share=0.5)
def test_logits_have_the_dtype_of_x(subject, call):
    returns(subject, call, (*call.arguments["x"].shape[:-1], kept(call)), call.features["dtypes"])


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


def grid_of(call):
    """Group size and bits."""
    return call.arguments["group_size"], call.arguments["bits"]


def kept(call):
    """The size of the last axis of a product."""
    if call.arguments.get("transpose", True):
        return len(call.arguments["packed"])
    return call.arguments["packed"].shape[-1] * 32 // call.arguments["bits"]


def has_promised_parts(subject, call):
    """Packed, scales and biases have their shapes and dtypes."""
    size, bits = grid_of(call)
    rows, features = call.arguments["w"].shape
    expected = {"packed": (rows, features * bits // 32), "scales": (rows, features // size)}
    expected["biases"] = expected["scales"]
    parts = subject.parts(call)
    for part, shape in expected.items():
        dtype = "uint32" if part == "packed" else call.features["dtypes"]
        if parts[part].shape != shape or parts[part].dtype.name != dtype:
            got = f"{parts[part].dtype.name} {list(parts[part].shape)}"
            raise Nonconformance(f"{part} are {got}, not {dtype} {list(shape)}", call)


def round_trips(subject, call, reaching=False):
    """What the parts stand for is the weights, as closely as their grid allows; parts that are not numbers are not."""
    parts = subject.agrees(call)
    arguments = subject.promised(call)
    answer = Quantize().nearest(arguments, parts, subject.precision, reaching)
    subject.compare(call, restored(parts, *grid_of(call)), answer, name="the weight")


def fits(subject, call):
    """No step is larger than the range of its group needs, and weights outside the grid are near its ends."""
    parts = subject.agrees(call)
    arguments, oracle = subject.promised(call), Quantize()
    sizes = np.abs(parts["scales"].astype(np.float64))
    subject.compare(call, sizes, oracle.steps(arguments, subject.precision), name="no step", part="scales")
    beyond = oracle.beyond(arguments, parts)
    subject.compare(call, beyond, oracle.farthest(arguments, subject.precision), name="the end of its grid")


def same_parts(subject, call, wider, rows):
    """The parts of the call are the first of those of a wider one, bit for bit."""
    few, many = subject.parts(call), subject.parts(wider)
    for part, value in few.items():
        for asked, x in ((call, value), (wider, many[part])):
            if x.ndim != call.arguments["w"].ndim:
                raise Nonconformance(f"{part}: the result has shape {list(x.shape)}, which is no matrix", asked)
        first = many[part][rows, : value.shape[-1]]
        if not bit_equal(value, np.ascontiguousarray(first)):
            different = int((value != first).sum()) if value.shape == first.shape else value.size
            raise Nonconformance(f"{part} differ in {different} of {value.size} elements beside other weights", wider)


def broken(call, bad, number):
    """The call with parts that do not belong together."""
    packed, (size, bits) = call.arguments["packed"], grid_of(call)
    if bad == "bits":
        return call.having(bits=(7, 3, 5, 16)[number])
    if bad == "group size":
        return call.having(group_size=(96, 16, 48, 256)[number])
    if bad == "other bits":
        return call.having(bits=[other for other in (2, 4, 8) if other != bits][number])
    if bad == "other group size":
        return call.having(group_size=[other for other in (32, 64, 128) if other != size][number])
    if bad == "rows":
        part = ("scales", "biases")[number % 2]
        return call.having(**{part: resized(call.arguments[part], 0, len(packed) + (1 if number < 2 else -1))})
    if bad == "dtype":
        return call.having(packed=packed.astype(("int32", "uint8", "float32", "int64")[number]))
    values = call.arguments[bad]
    groups = values.shape[-1]
    return call.having(**{bad: resized(values, -1, (groups + 2, groups + 1, groups - 1, 2 * groups)[number])})


def refuses_parts(subject, call, bad):
    """Parts that do not belong together are refused; words that have the same bits in another dtype may be read as they are."""
    other = broken(call, *bad)
    if bad in SAME_BITS and not (seen := subject.observe(other)).raised and seen.value is not None:
        subject.compare(other, seen.value, subject.answer(call))
    else:
        refuses(subject, other)


def broadcast(call, part):
    """The call with a part that NumPy would broadcast: of one group where there are several, and the other way round."""
    value = call.arguments[part]
    return call.having(**{part: resized(value, -1, 1 if value.shape[-1] > 1 else 2)})


def within_class(subject, call):
    """The call; of half the size for class native, which rounds code times scale to the dtype: it must keep its range."""
    return _scaled(call, 0.5) if subject.precision is Precision.NATIVE else call


def _scaled(call, factor):
    """The call with scales and biases, and so all weights, times a power of two."""
    return call.having(
        **{part: round_to(f64(call.arguments[part]) * factor, call.features["dtypes"]) for part in ("scales", "biases")}
    )


def with_nan_in_x(call):
    """The call with a NaN in one row of x, or in two."""
    return call.having(x=with_few(call.arguments["x"], np.nan, call.seed))


def with_nan(call, part):
    """The call with a NaN in one scale or bias, or in those of two rows."""
    values = call.arguments[part].copy()
    rows = [call.seed, call.seed // 3][: 1 + call.seed % 2]
    values[[row % len(values) for row in rows], 0] = np.nan
    return call.having(**{part: values})
