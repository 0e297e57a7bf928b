"""Does an implementation of group-wise quantisation keep the contract?"""

from dataclasses import replace

import numpy as np

from inferspec.conformance.inputs.linear import resized
from inferspec.conformance.inputs.quantization import (
    FEW_OR_MANY,
    LAYER,
    NOTHING,
    a_prompt,
    beside_tiles,
    constant,
    dequantize_calls,
    even,
    every_code,
    extreme,
    hundreds_of_groups,
    hundreds_of_rows_and_columns,
    many_outputs,
    of_thousands,
    of_two_grids,
    on_two_grids,
    one_row_of_weights,
    past_a_tile,
    quantize_calls,
    several_groups,
    small_or_moderate,
    spread,
    tall_parts,
    thousands_of_columns,
    tiny,
    trained,
    whole_dequantize,
)
from inferspec.conformance.judging.trial import Nonconformance
from inferspec.conformance.properties.common import (
    bit_equal,
    depends_on_arguments_alone,
    keeps_arguments,
    refuses,
    returns,
)
from inferspec.conformance.properties.quantization import (
    BROKEN,
    broadcast,
    grid_of,
    of_one_row,
    refuses_parts,
    scaled,
    with_nan,
    within_class,
)
from inferspec.conformance.strategies import WIDE_VIEWS, among, bottom_up, in_views
from inferspec.conformance.suite import requirement
from inferspec.spec import quantization_sentences as spec
from inferspec.spec.contract import Answer
from inferspec.spec.numerics import f64
from inferspec.spec.quantization import Quantize, restored

PLAIN = {"stacked": [False]}
weights = quantize_calls(**PLAIN)
matrices = dequantize_calls(**PLAIN)
PARTS = {key: choices for key, choices in LAYER.items() if key != "leading_dims"}
one_row_weights = weights(sizes=one_row_of_weights, dtypes=["bfloat16"])
one_row_matrices = matrices(sizes=one_row_of_weights, dtypes=["bfloat16"])


# quantize


@requirement(spec.QUANT_01, call=weights(values=(spread, trained)), share=0.8)
def test_weights_come_back_as_the_nearest_of_their_grid(subject, call):
    round_trips(subject, call)


@requirement(spec.QUANT_01, call=weights(values=(even,)), share=0.5)
def test_weights_that_fill_their_range_come_back(subject, call):
    round_trips(subject, call)


@requirement(spec.QUANT_01, call=weights.strict()(group_sizes=[128], bits=[4]), share=0.1)
def test_weights_are_quantised_to_4_bits_in_groups_of_128_where_nothing_is_said(subject, call):
    round_trips(subject, call.without("group_size", "bits"))


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
    exact = Answer(w, np.zeros(w.shape))
    subject.compare(call, restored(parts, *grid_of(call)), exact, name="the weight")


@requirement(spec.QUANT_04, call=weights(values=(extreme,)), share=0.5)
def test_weights_near_the_ends_of_the_dtype_come_back(subject, call):
    round_trips(subject, call)


@requirement(spec.QUANT_04, call=weights(values=(tiny,)), share=0.1)
def test_groups_that_are_nearly_0_come_back(subject, call):
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


@requirement(spec.QUANT_05, call=weights(), bad=among([np.nan, np.inf]), axis=among([0, 1]), share=0.1)
def test_what_is_no_number_changes_nothing_of_other_groups(subject, call, bad, axis):
    w, size = call.arguments["w"], call.arguments["group_size"]
    other = np.full_like(w if axis == 0 else w[:, :size], bad)
    same_parts(subject, call, call.having(w=np.concatenate([w, other], axis)), slice(0, len(w)))


@requirement(spec.QUANT_06, call=in_views(weights(sizes=past_a_tile)), share=0.2)
def test_many_strided_rows_of_weights_are_quantised_like_their_copies(subject, call):
    round_trips(subject, call)


@requirement(spec.QUANT_06, call=in_views(weights(sizes=small_or_moderate)))
def test_strided_weights_are_quantised_like_their_copy(subject, call):
    round_trips(subject, call)


@requirement(spec.QUANT_06, call=weights(sizes=small_or_moderate), share=0.1)
def test_weights_whose_rows_lie_backwards_are_quantised_like_their_copy(subject, call):
    round_trips(subject, bottom_up(call, "w"))


@requirement(spec.QUANT_06, call=in_views(weights(), views=["beginning", "shifted"]), share=0.2)
def test_weights_in_a_longer_buffer_are_quantised_like_their_copy(subject, call):
    round_trips(subject, call)


@requirement(spec.QUANT_06, call=in_views(weights(sizes=of_thousands), views=WIDE_VIEWS), share=0.1)
def test_strided_weights_of_many_groups_or_hundreds_of_rows_are_quantised_like_their_copy(subject, call):
    round_trips(subject, call)


@requirement(spec.QUANT_06, call=in_views(quantize_calls(stacked=[True]), views=WIDE_VIEWS), share=0.1)
def test_strided_stacked_weights_are_quantised_like_their_copy(subject, call):
    if takes_stacks(subject, call):
        round_trips(subject, call)


@requirement(spec.QUANT_06, call=in_views(quantize_calls(stacked=[True], stacks=((2, 1, 3),))), share=0.1)
def test_strided_weights_of_five_axes_are_quantised_like_their_copy(subject, call):
    if takes_stacks(subject, call):
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
    other = call.having(bits=bad)
    if bad < 32 and has_codes(subject, other):
        # Then they are offered besides.
        round_trips_in_a_stream(subject, other)
    else:
        refuses(subject, call, bits=bad)


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


@requirement(spec.QUANT_11, call=weights(sizes=one_row_of_weights, values=(trained,), bits=[8]), share=0.15)
def test_single_rows_come_back_of_8_bits(subject, call):
    round_trips(subject, call)


@requirement(spec.QUANT_11, call=weights(sizes=hundreds_of_rows_and_columns, values=(trained,)), share=0.05)
def test_hundreds_of_rows_of_several_groups_come_back(subject, call):
    round_trips(subject, call)


@requirement(spec.QUANT_11, call=weights(sizes=hundreds_of_groups, values=(trained,), group_sizes=[32, 64]), share=0.04)
def test_rows_of_hundreds_of_groups_come_back(subject, call):
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


@requirement(spec.DEQ_13, call=matrices.strict()(group_sizes=[128], bits=[4]), share=0.1)
def test_parts_are_of_4_bits_in_groups_of_128_where_nothing_is_said(subject, call):
    subject.agrees(call.without("group_size", "bits"))


@requirement(spec.DEQ_02, call=matrices(), part=among(["scales", "biases"]), share=0.1)
def test_a_nan_shows_in_its_group_alone(subject, call, part):
    subject.agrees(with_nan(call, part))


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
    subject.agrees(scaled(call, 2.0**power))


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


@requirement(spec.DEQ_05, call=matrices(sizes=small_or_moderate), share=0.1)
def test_parts_whose_rows_lie_backwards_are_restored_like_their_copies(subject, call):
    subject.agrees(bottom_up(call, "packed", "scales", "biases"))


@requirement(spec.DEQ_05, call=in_views(matrices(sizes=of_thousands), views=WIDE_VIEWS), share=0.25)
def test_strided_parts_of_many_groups_or_hundreds_of_rows_are_restored_like_their_copies(subject, call):
    subject.agrees(call)


@requirement(spec.DEQ_05, call=in_views(dequantize_calls(stacked=[True]), views=WIDE_VIEWS), share=0.15)
def test_strided_stacked_parts_are_restored_like_their_copies(subject, call):
    if takes_stacks(subject, call):
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


@requirement(spec.DEQ_05, call=in_views(one_row_matrices), share=0.55)
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


@requirement(spec.DEQ_09, call=matrices(), bad=among(BROKEN))
def test_parts_that_do_not_belong_together_are_refused(subject, call, bad):
    refuses_parts(subject, call, bad)


@requirement(spec.DEQ_12, call=matrices(), bad=NOTHING, share=0.1)
def test_parts_on_a_grid_of_nothing_are_refused(subject, call, bad):
    refuses(subject, call.having(**bad))


@requirement(spec.DEQ_09, call=matrices(sizes=several_groups), part=among(["biases", "scales"]), share=0.2)
def test_one_group_does_not_stand_for_all(subject, call, part):
    refuses(subject, broadcast(call, part))


@requirement(spec.DEQ_09, call=matrices(sizes=several_groups), share=0.06)
def test_the_groups_of_one_row_do_not_stand_for_all(subject, call):
    refuses(subject, of_one_row(call, "biases"))
    refuses(subject, of_one_row(call, "scales"))


@requirement(spec.DEQ_10, call=matrices(sizes=a_prompt, **PARTS), share=1.0)
def test_matrices_of_models_are_restored_as_most_are_packed(subject, call):
    subject.agrees(call)


@requirement(spec.DEQ_10, call=matrices(sizes=beside_tiles), share=0.6)
def test_any_number_of_rows_and_groups_is_restored(subject, call):
    subject.agrees(call)


@requirement(spec.DEQ_10, call=matrices(sizes=hundreds_of_rows_and_columns), share=0.05)
def test_hundreds_of_rows_of_several_groups_are_restored(subject, call):
    subject.agrees(call)


@requirement(spec.DEQ_10, call=matrices(sizes=thousands_of_columns), share=0.1)
def test_thousands_of_columns_are_restored(subject, call):
    subject.agrees(call)


@requirement(spec.DEQ_10, call=matrices(sizes=hundreds_of_groups, group_sizes=[32, 64]), share=0.04)
def test_rows_of_hundreds_of_groups_are_restored(subject, call):
    subject.agrees(call)


@requirement(spec.DEQ_10, call=matrices(sizes=many_outputs), share=0.03)
def test_more_rows_than_16_bits_count_are_restored(subject, call):
    subject.agrees(call)


# nothing


@requirement(spec.QUANT_13, call=weights(), share=0.1)
def test_no_weights_are_no_codes(subject, call):
    answers = subject.answer(call)
    none = call.having(w=call.arguments["w"][:0])
    subject.expects(none, {part: answers[part].value[:0] for part in answers})


@requirement(spec.DEQ_11, call=matrices(), share=0.1)
def test_no_codes_are_no_weights(subject, call):
    none = call.having(**{part: call.arguments[part][:0] for part in ("packed", "scales", "biases")})
    subject.expects(none, subject.answer(call).value[:0])


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


def has_codes(subject, call):
    """Whether words come back that have room for codes of that width, and no more."""
    packed = subject.observe(call).results.get("packed")
    return packed is not None and packed.nbytes * 8 == call.arguments["w"].size * call.arguments["bits"]


def takes_stacks(subject, call):
    """Whether stacks are taken at all is another requirement's matter, a SHOULD: here it is only about how they lie."""
    return not subject.observe(replace(call, views={})).raised


def round_trips(subject, call, reaching=False):
    """What the parts stand for is the weights, as closely as their grid allows; parts that are not numbers are not."""
    parts = subject.agrees(call)
    arguments = subject.promised(call)
    answer = Quantize().nearest(arguments, parts, subject.precision, reaching)
    subject.compare(call, restored(parts, *grid_of(call)), answer, name="the weight")


def round_trips_in_a_stream(subject, call):
    """So it is of codes of any width, which lie in the words one after the other."""
    has_promised_parts(subject, call)
    parts, (size, bits) = subject.parts(call), grid_of(call)
    stream = np.unpackbits(parts["packed"].view(np.uint8), axis=-1, bitorder="little")
    codes = stream.reshape(*call.arguments["w"].shape, bits) @ (1 << np.arange(bits))
    scales, biases = (np.repeat(f64(parts[part]), size, axis=-1) for part in ("scales", "biases"))
    answer = Quantize().nearest(subject.promised(call), parts, subject.precision, reaching=False)
    subject.compare(call, codes * scales + biases, answer, name="the weight")


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
