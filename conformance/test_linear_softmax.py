"""Does an implementation of softmax keep the contract?"""

from inferspec.conformance.inputs.linear import (
    BATCHES,
    MORE_THAN_16_BITS,
    SHORT_OR_LONG,
    SINGLE,
    WIDE,
    a_row_or_two_nan,
    alike,
    another_axis,
    beside_others,
    extreme,
    far_below,
    far_out,
    hidden_but_for_an_end,
    hundreds_of_logits,
    many_logits,
    on_levels,
    partly_hidden,
    peaked_softmax,
    peaks_anywhere,
    resized,
    rising,
    softmax_calls,
    whole,
)
from inferspec.conformance.properties.common import depends_on_arguments_alone, keeps_arguments, refuses, returns
from inferspec.conformance.strategies import MODEL_WIDTHS, ODD_TILES, WIDE_VIEWS, among, bottom_up, in_views
from inferspec.conformance.suite import requirement
from inferspec.spec import linear as spec


@requirement(spec.SMAX_01, call=softmax_calls())
def test_softmax_is_exp_over_its_sum(subject, call):
    subject.agrees(call)


@requirement(spec.SMAX_01, call=softmax_calls(values=whole), share=0.1)
def test_a_logit_of_zero_counts_as_others_do(subject, call):
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


@requirement(spec.SMAX_03, call=softmax_calls(values=rising, lengths=(70, 1100, 300, 8400)), share=0.2)
def test_the_largest_logit_may_come_late(subject, call):
    subject.agrees(call)


@requirement(spec.SMAX_03, call=peaks_anywhere(leading_dims=[(2,)], axes=[-1, 0]), share=0.03)
def test_the_largest_logit_may_come_anywhere(subject, call):
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
    share=0.35,
)
def test_long_rows_that_lie_far_below_zero_are_safe(subject, call):
    subject.agrees(call)


@requirement(spec.SMAX_04, call=softmax_calls(values=partly_hidden, lengths=(9, 2, 5, 16, 33, 70, 2100)))
def test_entries_of_minus_infinity_get_nothing(subject, call):
    subject.agrees(call)


@requirement(
    spec.SMAX_04,
    call=softmax_calls(values=hidden_but_for_an_end, lengths=(70, 8400, 1100), leading_dims=[(), (1,), (2,)]),
    share=0.35,
)
def test_blocks_of_minus_infinity_get_nothing(subject, call):
    subject.agrees(call)


@requirement(
    spec.SMAX_05, call=softmax_calls(values=alike, lengths=(1000, 2047, 3001, 4096), leading_dims=[(), (2,)]), share=0.4
)
def test_thousands_of_entries_are_summed_in_float32(subject, call):
    subject.agrees(call)


@requirement(
    spec.SMAX_05,
    call=softmax_calls(values=alike, lengths=(151936, 200064), leading_dims=[(), (2,)], axes=[-1], dtypes=["float16"]),
    share=0.03,
)
def test_sums_that_float16_cannot_hold_are_right(subject, call):
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
    share=0.45,
)
def test_softmax_reads_strided_rows_of_whole_vectors(subject, call):
    subject.agrees(call)


@requirement(
    spec.SMAX_08,
    call=in_views(softmax_calls(leading_dims=[(2, 1, 3)], axes=[-1])),
    batches=among([3, 4]),
    share=0.1,
)
def test_softmax_reads_strided_x_of_five_axes(subject, call, batches):
    subject.agrees(beside_others(call, batches, axes=5))


@requirement(spec.SMAX_08, call=in_views(softmax_calls(), views=["beginning"]), share=0.1)
def test_softmax_reads_the_rows_in_use_of_a_longer_buffer(subject, call):
    subject.agrees(call)


@requirement(spec.SMAX_08, call=softmax_calls(leading_dims=BATCHES, axes=[-1]), share=0.1)
def test_softmax_reads_rows_that_lie_backwards(subject, call):
    subject.agrees(bottom_up(call, "x"))


@requirement(spec.SMAX_08, call=in_views(softmax_calls(lengths=(5, 2, 9, 16), axes=[-1], **SINGLE)), share=0.35)
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
    spec.SMAX_12,
    call=softmax_calls(values=alike, lengths=(151936, 200064), leading_dims=[(), (1,), (2,)], axes=[-1]),
    share=0.03,
)
def test_vocabularies_of_models_are_right(subject, call):
    subject.agrees(call)


@requirement(
    spec.SMAX_12, call=softmax_calls(values=alike, lengths=MORE_THAN_16_BITS, leading_dims=[(), (1,), (2,)]), share=0.04
)
def test_rows_of_a_whole_vocabulary_are_right(subject, call):
    subject.agrees(call)


@requirement(spec.SMAX_12, call=softmax_calls(lengths=(131072, 100003), leading_dims=[(), (1,)]), share=0.04)
def test_rows_past_the_largest_vocabularies_are_right(subject, call):
    subject.agrees(call)


@requirement(spec.SMAX_12, call=many_logits(leading_dims=[(2,)], axes=[-1, 0]), share=0.15)
def test_hundreds_of_long_rows_and_a_thousand_short_ones_are_right(subject, call):
    subject.agrees(call)


@requirement(spec.SMAX_12, call=hundreds_of_logits(leading_dims=[(2,)], axes=[-1, 0]), share=0.03)
def test_hundreds_of_rows_of_hundreds_of_logits_are_right(subject, call):
    subject.agrees(call)


@requirement(spec.SMAX_12, call=softmax_calls(lengths=(2, 3), leading_dims=[(2,)], axes=[-1, 0]), share=0.03)
def test_more_rows_than_16_bits_count_are_right_in_softmax(subject, call):
    x, axis = call.arguments["x"], call.arguments["axis"]
    subject.agrees(call.having(x=resized(x, 1 if axis == 0 else 0, MORE_THAN_16_BITS[0])))
