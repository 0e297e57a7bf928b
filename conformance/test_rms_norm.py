"""Does an implementation of root mean square norm keep the contract?"""

import numpy as np

from inferspec.conformance.envelope import narrow
from inferspec.conformance.inputs.linear import of_axes, resized, with_few
from inferspec.conformance.inputs.rms_norm import (
    beside_brackets,
    beside_odd_tiles,
    beside_tiles,
    long_prompts,
    longest,
    many_rows,
    middle,
    misfits,
    of_heads,
    of_models,
    of_other_models,
    of_the_largest,
    past_vectors,
    prompts,
    prompts_of_heads,
    rms_calls,
    small_or_large,
    small_or_of_heads,
    thousands_of_rows,
    uneven_rows,
    wide,
)
from inferspec.conformance.properties.common import (
    depends_on_arguments_alone,
    is_right_if_taken,
    keeps_arguments,
    refuses,
    refuses_or_reads,
    returns,
    serves_more_and_fewer,
)
from inferspec.conformance.strategies import (
    HALF,
    ODD_TILES,
    ONE_SHORT,
    WIDE_VIEWS,
    among,
    bottom_up,
    in_views,
    one_batch_repeated,
    one_token_each,
)
from inferspec.conformance.suite import requirement
from inferspec.spec import rms_norm as spec
from inferspec.spec.contract import Answer
from inferspec.spec.numerics import f64

BATCHES = [(2,), (2, 3), (33,), (2, 1, 3), (9, 2)]


@requirement(spec.RMS_01, call=rms_calls())
def test_rows_are_divided_by_their_root_mean_square(subject, call):
    subject.agrees(call)


@requirement(spec.RMS_02, call=rms_calls(beside_eps=True))
def test_eps_is_added_inside_the_root(subject, call):
    subject.agrees(call)


@requirement(spec.RMS_02, call=rms_calls(amplitude=(0.01,)))
def test_eps_is_the_one_given_for_quiet_rows(subject, call):
    subject.agrees(call)


@requirement(spec.RMS_02, call=rms_calls(eps=[1e-6, 1e-12, 1e-3, 0.5], amplitude=(0.01,)), share=0.1)
def test_an_eps_of_zero_is_refused_or_added_as_it_is(subject, call):
    is_right_if_taken(subject, call.having(eps=0.0))


@requirement(spec.RMS_03, call=rms_calls(), zeros=among([0.3, 0.0, 1.0]))
def test_each_channel_has_its_own_weight_and_zero_gives_zero(subject, call, zeros):
    call = _with_weight(call, lambda weight, random: np.where(random < zeros, 0.0, weight))
    subject.agrees(call)
    subject.expects(call, np.zeros(call.arguments["x"].shape), where=f64(call.arguments["weight"]) == 0)


@requirement(spec.RMS_03, call=rms_calls(sizes=small_or_of_heads), bad=among([np.nan, np.inf, -np.inf]), share=0.3)
def test_a_nan_or_infinity_in_the_weight_shows_in_its_channel_alone(subject, call, bad):
    subject.agrees(call.having(weight=with_few(call.arguments["weight"], bad, call.seed or 0)))


@requirement(spec.RMS_03, call=rms_calls(eps=[1e-12, 1e-6, 1e-5]))
def test_weights_of_one_give_unit_mean_square(subject, call):
    call = _with_weight(call, lambda weight, random: np.ones_like(weight))
    answer = subject.answer(call)
    got, size = f64(subject.value(call)), np.abs(answer.value)
    budget = (2 * size * answer.budget + answer.budget**2).mean(axis=-1)
    subject.compare(call, (got**2).mean(axis=-1), Answer((size**2).mean(axis=-1), budget), name="mean square")


@requirement(spec.RMS_04, call=rms_calls(dtypes=HALF, sizes=wide, amplitude=(1.0, 1e-4, 300.0, 5e3, 2e4)))
def test_statistics_of_long_half_precision_rows_are_in_float32(subject, call):
    subject.agrees(call)


@requirement(spec.RMS_04, call=rms_calls(dtypes=HALF, amplitude=(1e-4, 2e-4, 300.0, 2e4)))
def test_loud_and_quiet_half_precision_rows_are_right(subject, call):
    subject.agrees(call)


@requirement(
    spec.RMS_04,
    call=rms_calls(sizes=small_or_large, dtypes=["bfloat16", "float32"], eps=[1e-12, 1e-6], amplitude=(1e6, 3e-9, 1e9)),
    share=0.4,
)
def test_values_that_float16_cannot_hold_are_right_in_other_dtypes(subject, call):
    subject.agrees(call)


@requirement(
    spec.RMS_05, call=rms_calls(eps=[1e-12], amplitude=(1.0, 20.0)), power=among(sorted(range(-10, 11), key=abs))
)
def test_scaling_a_row_changes_nothing(subject, call, power):
    subject.agrees(call)
    x = call.arguments["x"]
    subject.agrees(call.having(x=(f64(x) * 2.0**power).astype(np.float32).astype(x.dtype)))


@requirement(spec.RMS_06, call=rms_calls(dtypes=HALF, sizes=middle, amplitude=(1.0, 30.0)), share=1.5)
def test_the_quotient_is_rounded_before_the_weight_multiplies(subject, call):
    values, decided, _ = spec.RMSNorm().exact_rounding(subject.promised(call))
    subject.expects(call, f64(values), where=decided)


@requirement(spec.RMS_06, call=rms_calls(dtypes=HALF, sizes=longest, amplitude=(1.0, 30.0)), share=0.2)
def test_the_quotient_of_the_longest_rows_is_rounded_before_the_weight_multiplies(subject, call):
    values, decided, _ = spec.RMSNorm().exact_rounding(subject.promised(call))
    subject.expects(call, f64(values), where=decided)


@requirement(spec.RMS_07, call=rms_calls(), part=among([1.0, 0.5]))
def test_a_row_of_zeros_gives_zeros(subject, call, part):
    x = call.arguments["x"].copy()
    silent = np.arange(x[..., 0].size).reshape(*x.shape[:-1], 1) % 2 < 2 * part - 0.5
    x = np.where(silent, np.zeros_like(x), x)
    subject.expects(call.having(x=x), np.zeros(x.shape), where=silent)


@requirement(spec.RMS_08, call=uneven_rows(leading_dims=BATCHES))
def test_every_row_has_its_own_mean_square(subject, call):
    subject.agrees(call)


@requirement(
    spec.RMS_08, call=uneven_rows(leading_dims=[(2, 1, 3)]), batches=among([3, 4]), axes=among([4, 5]), share=0.1
)
def test_batches_of_batches_are_in_their_places(subject, call, batches, axes):
    subject.agrees(_of_more_tokens(call, batches, axes))


@requirement(
    spec.RMS_08, call=uneven_rows(leading_dims=BATCHES, sizes=small_or_of_heads), value=among([np.nan, np.inf])
)
def test_what_is_not_finite_stays_in_its_row(subject, call, value):
    x = call.arguments["x"].copy()
    x[-1, ..., :1] = value
    subject.agrees(call.having(x=x), where=np.isfinite(f64(x)).all(axis=-1, keepdims=True))


@requirement(spec.RMS_08, call=uneven_rows(leading_dims=BATCHES, sizes=past_vectors), share=0.1)
def test_what_is_not_a_number_stays_in_its_long_row(subject, call):
    x = call.arguments["x"].copy()
    x[-1, ..., :1] = np.nan
    subject.agrees(call.having(x=x), where=np.isfinite(f64(x)).all(axis=-1, keepdims=True))


@requirement(spec.RMS_08, call=uneven_rows(leading_dims=[(33,), (130,)]), share=0.1)
def test_a_token_of_each_of_many_sequences_is_right(subject, call):
    narrow(subject.envelope, {"leading_dims": [(2, 3)]})
    subject.agrees(one_token_each(call))


@requirement(spec.RMS_16, call=uneven_rows(sizes=small_or_of_heads), share=0.2)
def test_a_nan_shows_in_its_whole_row(subject, call):
    subject.agrees(call.having(x=with_few(call.arguments["x"], np.nan, call.seed or 0)))


@requirement(spec.RMS_16, call=uneven_rows(sizes=past_vectors), share=0.1)
def test_a_nan_shows_in_its_whole_long_row(subject, call):
    subject.agrees(call.having(x=with_few(call.arguments["x"], np.nan, call.seed or 0)))


@requirement(spec.RMS_16, call=uneven_rows(sizes=beside_brackets), share=0.1)
def test_a_nan_shows_in_its_whole_row_of_hundreds(subject, call):
    subject.agrees(call.having(x=with_few(call.arguments["x"], np.nan, call.seed or 0)))


@requirement(spec.RMS_09, call=uneven_rows(sizes=beside_tiles))
def test_sizes_beside_tiles_are_right(subject, call):
    subject.agrees(call)


@requirement(spec.RMS_09, call=uneven_rows(sizes=beside_odd_tiles), share=0.3)
def test_sizes_beside_tiles_that_are_no_powers_of_two_are_right(subject, call):
    subject.agrees(call)


@requirement(spec.RMS_09, call=uneven_rows(leading_dims=[(33,), (9, 2)]), rows=among(ODD_TILES), share=0.6)
def test_rows_beside_tiles_that_are_no_powers_of_two_are_right(subject, call, rows):
    subject.agrees(call.having(x=resized(call.arguments["x"], -2, rows)))


@requirement(spec.RMS_09, call=uneven_rows(leading_dims=[(33,), (9, 2)]), rows=among(ONE_SHORT), share=0.3)
def test_rows_one_short_of_tiles_are_right(subject, call, rows):
    subject.agrees(call.having(x=resized(call.arguments["x"], -2, rows)))


@requirement(spec.RMS_09, call=uneven_rows(leading_dims=[(2, 3)]), rows=among([512, 128, 1030, 64, 256]), share=0.1)
def test_prompts_of_whole_tiles_and_of_more_than_a_thousand_tokens_are_right_in_a_batch_of_one(subject, call, rows):
    # Who claims batches of several alone is asked for no other.
    narrow(subject.envelope, {"leading_dims": [(1,)]})
    subject.agrees(call.having(x=resized(call.arguments["x"][:1], -2, rows)))


@requirement(
    spec.RMS_09,
    call=uneven_rows(sizes=of_heads, leading_dims=[(33,), (130,), (2, 3), (9, 2)]),
    share=0.65,
)
def test_heads_of_models_are_right(subject, call):
    subject.agrees(call)


@requirement(spec.RMS_09, call=uneven_rows(sizes=of_models, leading_dims=[(1,), (33,), (2, 3)]), share=0.55)
def test_tokens_and_prompts_of_models_are_right(subject, call):
    subject.agrees(call)


@requirement(spec.RMS_09, call=uneven_rows(sizes=beside_brackets, leading_dims=BATCHES))
def test_rows_of_a_batch_beside_brackets_are_right(subject, call):
    subject.agrees(call)


@requirement(spec.RMS_09, call=rms_calls(sizes=of_other_models, leading_dims=[(1,), (2, 3)]), share=0.3)
def test_rows_of_other_models_are_right(subject, call):
    subject.agrees(call)


@requirement(spec.RMS_09, call=many_rows(leading_dims=[(33,), (9, 2)]), share=0.06)
def test_more_rows_than_16_bits_count_are_right(subject, call):
    subject.agrees(call)


@requirement(spec.RMS_09, call=long_prompts(leading_dims=[(33,), (130,)], dtypes=HALF), share=0.01, shrinks=False)
def test_long_prompts_of_the_widest_models_are_right(subject, call):
    subject.agrees(call)


@requirement(spec.RMS_09, call=thousands_of_rows(leading_dims=[(33,), (130,)]), share=0.03)
def test_prompts_of_more_than_a_thousand_tokens_are_right(subject, call):
    subject.agrees(call)


@requirement(spec.RMS_09, call=prompts(leading_dims=[(33,), (130,)]), share=0.1)
def test_prompts_of_hundreds_of_rows_and_of_a_thousand_heads_are_right(subject, call):
    subject.agrees(call)


@requirement(spec.RMS_09, call=prompts_of_heads(leading_dims=[(33,), (130,)]), share=0.05)
def test_the_heads_of_a_prompt_are_right(subject, call):
    subject.agrees(call)


@requirement(spec.RMS_09, call=rms_calls(sizes=of_the_largest, leading_dims=[(1,), (2, 3)]), share=0.05)
def test_rows_of_the_largest_models_are_right(subject, call):
    subject.agrees(call)


@requirement(spec.RMS_09, call=rms_calls(leading_dims=BATCHES), axis=among([0, -2]), share=0.5)
def test_no_rows_give_an_empty_result(subject, call, axis):
    x = resized(call.arguments["x"], axis, 0)
    subject.expects(call.having(x=x), np.zeros(x.shape))


@requirement(spec.RMS_10, call=in_views(rms_calls()), share=1.5)
def test_a_strided_argument_is_read_like_its_copy(subject, call):
    subject.agrees(call)


@requirement(spec.RMS_10, call=in_views(rms_calls(leading_dims=BATCHES), "x", views=["far"]), share=0.1)
def test_rows_that_lie_far_apart_are_read_like_their_copies(subject, call):
    subject.agrees(call)


@requirement(spec.RMS_10, call=in_views(rms_calls(leading_dims=[(2, 1, 3)]), "x"), tokens=among([3, 4]), share=0.1)
def test_strided_x_of_five_axes_is_read_like_its_copy(subject, call, tokens):
    subject.agrees(_of_more_tokens(call, tokens, axes=5))


@requirement(spec.RMS_10, call=in_views(rms_calls(), views=["beginning"]), share=0.15)
def test_the_beginning_of_a_longer_array_is_read_like_its_copy(subject, call):
    subject.agrees(call)


@requirement(spec.RMS_10, call=rms_calls(leading_dims=BATCHES), share=0.1)
def test_rows_that_lie_backwards_are_read_like_their_copies(subject, call):
    subject.agrees(bottom_up(call, "x"))


@requirement(spec.RMS_10, call=in_views(rms_calls(sizes=beside_tiles)))
def test_a_long_strided_argument_is_read_like_its_copy(subject, call):
    subject.agrees(call)


@requirement(spec.RMS_10, call=rms_calls(leading_dims=[(9, 2), (2, 3)]), share=0.1)
def test_a_batch_that_is_repeated_without_a_copy_is_read_like_its_copies(subject, call):
    subject.agrees(one_batch_repeated(call))


@requirement(
    spec.RMS_10,
    call=in_views(rms_calls(sizes=of_heads, leading_dims=[(33,), (9, 2), (2, 3)]), "x"),
    share=0.2,
)
def test_heads_that_lie_among_others_are_read_through_their_strides(subject, call):
    subject.agrees(call)


@requirement(
    spec.RMS_10,
    call=in_views(
        rms_calls(sizes=small_or_large, leading_dims=[(9, 2), (2, 3), (2, 1, 3)], amplitude=(1.0,)), "x", views=["room"]
    ),
    share=0.2,
)
def test_some_of_the_heads_of_each_token_are_read_like_their_copy(subject, call):
    subject.agrees(call)


@requirement(
    spec.RMS_10,
    call=in_views(
        rms_calls(sizes=of_heads, leading_dims=[(2, 1, 3)]), "x", views=["heads", "slice", "room", "transpose"]
    ),
    tokens=among([4, 9]),
    share=0.3,
)
def test_heads_of_several_tokens_are_read_through_their_strides(subject, call, tokens):
    subject.agrees(_of_more_tokens(call, tokens))


@requirement(
    spec.RMS_10, call=in_views(prompts(leading_dims=[(2,), (2, 3), (9, 2)]), "x", views=WIDE_VIEWS), share=0.45
)
def test_strided_rows_of_a_prompt_are_read_like_their_copies(subject, call):
    subject.agrees(call)


@requirement(spec.RMS_11, call=rms_calls())
def test_the_result_has_the_shape_and_dtype_of_x(subject, call):
    returns(subject, call, call.arguments["x"].shape, call.features["dtypes"])


@requirement(spec.RMS_11, call=rms_calls(sizes=beside_tiles), share=0.3)
def test_long_rows_have_the_dtype_of_x(subject, call):
    returns(subject, call, call.arguments["x"].shape, call.features["dtypes"])


@requirement(spec.RMS_11, call=rms_calls(leading_dims=[(2, 3), (2,), (1,), (2, 1, 3)]), axis=among([0, -2]), share=0.3)
def test_no_rows_have_the_dtype_of_x(subject, call, axis):
    none = call.having(x=resized(call.arguments["x"], axis, 0))
    returns(subject, none, none.arguments["x"].shape, call.features["dtypes"])


@requirement(spec.RMS_12, call=rms_calls(sizes=small_or_large))
def test_rms_norm_changes_no_argument(subject, call):
    keeps_arguments(subject, call)


@requirement(spec.RMS_13, call=rms_calls(amplitude=(0.05,)), other=rms_calls())
def test_another_eps_in_between_changes_nothing(subject, call, other):
    changed = {name: other.arguments[name] for name in ("eps",) if name in other.arguments}
    depends_on_arguments_alone(subject, call, call.having(**changed))


@requirement(spec.RMS_13, call=rms_calls(sizes=small_or_large))
def test_another_weight_in_between_changes_nothing(subject, call):
    depends_on_arguments_alone(subject, call, call.having(weight=-call.arguments["weight"][::-1]))


@requirement(spec.RMS_13, call=rms_calls())
def test_one_object_normalises_other_rows_in_between(subject, call):
    x = call.arguments["x"]
    depends_on_arguments_alone(subject, call.kept(0), call.having(x=-2 * x[..., ::-1]).kept(0))


@requirement(spec.RMS_13, call=rms_calls(leading_dims=[(2,), (2, 3)]), share=0.1)
def test_one_object_normalises_a_token_a_prompt_and_a_token(subject, call):
    serves_more_and_fewer(subject, call, "x")


@requirement(spec.RMS_13, call=rms_calls(leading_dims=[(2, 3)]), share=0.1)
def test_one_object_normalises_a_sequence_a_batch_and_a_sequence(subject, call):
    serves_more_and_fewer(subject, call, "x", axis=0)


@requirement(spec.RMS_13, call=rms_calls(amplitude=(0.05,)), other=rms_calls(), share=0.1)
def test_two_objects_keep_to_their_own_weight_and_eps(subject, call, other):
    changed = {name: other.arguments[name] for name in ("eps",) if name in other.arguments}
    other = call.having(weight=-call.arguments["weight"][::-1], **changed)
    depends_on_arguments_alone(subject, call.kept(0), other.kept(1))


@requirement(spec.RMS_14, call=misfits())
def test_another_number_of_features_is_refused(subject, call):
    refuses(subject, call)


@requirement(spec.RMS_15, call=rms_calls(dtypes=HALF, amplitude=(1.0,)), share=0.2)
def test_a_weight_in_float32_is_refused_or_read_for_its_numbers(subject, call):
    refuses_or_reads(subject, call, "weight")


def _of_more_tokens(call, tokens, axes=0):
    """The same call with so many of what lies along the second axis, each turned on by a channel, and of so many axes."""
    x = call.arguments["x"]
    return call.having(x=of_axes(np.concatenate([np.roll(x, i, axis=-1) for i in range(tokens)], axis=1), axes))


def _with_weight(call, make):
    """The same call with another weight, made of the old one and a random number for each channel."""
    weight = call.arguments["weight"]
    random = np.random.default_rng(call.seed).random(weight.shape)
    return call.having(weight=np.asarray(make(f64(weight), random), np.float32).astype(weight.dtype))
