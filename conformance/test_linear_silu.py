"""Does an implementation of SiLU keep the contract?"""

import numpy as np

from inferspec.conformance.envelope import narrow
from inferspec.conformance.inputs.linear import (
    BATCHES,
    MORE_THAN_16_BITS,
    SHORT_OR_LONG,
    SINGLE,
    WIDE,
    about_zero,
    in_the_tail,
    not_finite,
    of_any_size,
    past_exp,
    resized,
    silu_calls,
    tiny,
)
from inferspec.conformance.judging.trial import Nonconformance
from inferspec.conformance.properties.common import depends_on_arguments_alone, keeps_arguments, returns
from inferspec.conformance.strategies import MODEL_WIDTHS, ODD_TILES, WIDE_VIEWS, among, bottom_up, in_views
from inferspec.conformance.suite import requirement
from inferspec.spec import linear as spec
from inferspec.spec.numerics import f64, within


@requirement(spec.SILU_01, call=silu_calls())
def test_silu_is_x_times_its_sigmoid(subject, call):
    subject.agrees(call)


@requirement(spec.SILU_01, call=silu_calls(values=in_the_tail), share=1.5)
def test_silu_is_accurate_where_it_is_tiny(subject, call):
    subject.agrees(call)


@requirement(spec.SILU_01, call=silu_calls(values=about_zero), share=0.1)
def test_silu_of_zero_is_zero(subject, call):
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
    share=0.15,
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


@requirement(
    spec.SILU_06, call=in_views(silu_calls(lengths=SHORT_OR_LONG, leading_dims=BATCHES), views=["far"]), share=0.1
)
def test_silu_reads_rows_that_lie_far_apart(subject, call):
    subject.agrees(call)


@requirement(spec.SILU_06, call=in_views(silu_calls(leading_dims=[(2, 1, 3)])), batches=among([3, 4]), share=0.1)
def test_silu_reads_strided_x_of_five_axes(subject, call, batches):
    subject.agrees(_of_five_axes(call, batches))


@requirement(spec.SILU_06, call=silu_calls(leading_dims=BATCHES), share=0.1)
def test_silu_reads_rows_that_lie_backwards(subject, call):
    subject.agrees(bottom_up(call, "x"))


@requirement(spec.SILU_06, call=in_views(silu_calls(lengths=(5, 2, 9, 32), **SINGLE)), share=0.25)
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
    subject.agrees(_of_five_axes(call, batches))


@requirement(spec.SILU_09, call=silu_calls(lengths=ODD_TILES), share=0.6)
def test_silu_of_sizes_beside_tiles_that_are_no_powers_of_two_is_right(subject, call):
    subject.agrees(call)


@requirement(spec.SILU_09, call=silu_calls(lengths=MODEL_WIDTHS), share=0.2)
def test_silu_of_widths_of_models_that_are_no_powers_of_two_is_right(subject, call):
    subject.agrees(call)


@requirement(spec.SILU_09, call=silu_calls(lengths=(66, 129, 257, 1026), leading_dims=[(2,), (2, 3)]), share=0.2)
def test_silu_of_many_rows_is_right(subject, call):
    subject.agrees(call.having(x=np.ascontiguousarray(call.arguments["x"].swapaxes(-1, -2))))


@requirement(spec.SILU_09, call=silu_calls(lengths=(1024, 14336, 4096, 2048)), share=0.1)
def test_silu_of_whole_blocks_is_right(subject, call):
    subject.agrees(call)


@requirement(spec.SILU_09, call=silu_calls(lengths=MORE_THAN_16_BITS, leading_dims=[(), (1,)]), share=0.04)
def test_silu_of_more_than_16_bits_count_is_right(subject, call):
    subject.agrees(call)


def _of_five_axes(call, batches):
    """The same call with an axis more, the second: so many of x, each turned on by an element."""
    x = call.arguments["x"]
    return call.having(x=np.stack([np.roll(x, i, axis=-1) for i in range(batches)], axis=1))
