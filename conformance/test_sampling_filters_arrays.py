"""Do the filters of a sampler leave logits as they are, and each row to itself?"""

import numpy as np

from inferspec.conformance.inputs.sampling import (
    BAD_TOP_P,
    BATCHES,
    DOZENS,
    FAR_BELOW,
    FEW,
    HUNDREDS,
    LOWEST,
    MANY,
    MANY_ROWS,
    MANY_WIDE,
    ONE_AXIS,
    SEVERAL,
    VERY_MANY,
    WIDE_ROWS,
    filter_calls,
)
from inferspec.conformance.inputs.sampling_logits import (
    LIMITS,
    close_far_out,
    extreme,
    faint,
    far_out,
    fine,
    neighbours,
    partly_hidden,
    past_float16,
    ranked,
    scattered,
    some_broken,
    tied_beside_broken,
    tiers,
)
from inferspec.conformance.judging.trial import Nonconformance
from inferspec.conformance.properties.common import (
    depends_on_arguments_alone,
    goes_on_after_a_refused_call,
    keeps_arguments,
    refuses,
    returns,
)
from inferspec.conformance.properties.sampling import distributed
from inferspec.conformance.properties.sampling_filters import (
    gives_a_right_set,
    gives_the_set_of_the_copy,
)
from inferspec.conformance.strategies import HALF, among, bottom_up, in_views
from inferspec.conformance.suite import requirement
from inferspec.spec import sampling_sentences as spec
from inferspec.spec.numerics import (
    f64,
)


@requirement(spec.SAMP_10, call=filter_calls(values=fine))
def test_survivors_keep_their_logits_bit_for_bit(subject, call):
    got = subject.value(call)
    logits = call.arguments["logits"]
    if got.shape == logits.shape and ((f64(got) != f64(logits)) & (got != -np.inf)).any():
        raise Nonconformance("a survivor has another logit than before", call)
    subject.agrees(call)


@requirement(spec.SAMP_10, call=filter_calls(values=faint, top_k=[True], top_p=[False]), share=0.1)
def test_survivors_that_are_nearly_zero_keep_their_logits(subject, call):
    subject.agrees(call)


@requirement(spec.SAMP_11, call=filter_calls(values=far_out))
def test_logits_far_from_zero_are_filtered_by_their_differences(subject, call):
    gives_a_right_set(subject, call)


@requirement(
    spec.SAMP_11, call=filter_calls(top_p=[True], values=close_far_out, sizes=SEVERAL, dtypes=["float32"]), share=0.3
)
def test_logits_far_from_zero_and_close_to_each_other_are_filtered_by_their_differences(subject, call):
    gives_a_right_set(subject, call)


@requirement(
    spec.SAMP_11,
    call=filter_calls(top_k=[False], top_p=[True], values=past_float16, sizes=SEVERAL, dtypes=["bfloat16"]),
    share=0.1,
)
def test_logits_of_bfloat16_that_float16_does_not_hold_are_filtered_by_their_differences(subject, call):
    gives_a_right_set(subject, call.having(top_p=0.5))


@requirement(
    spec.SAMP_11,
    call=filter_calls(top_k=[True], top_p=[False], values=neighbours, sizes=(24, 12, 300), limits=(1,), dtypes=HALF),
    share=0.15,
)
def test_top_k_tells_logits_apart_by_their_last_bit(subject, call):
    subject.agrees(call)


@requirement(spec.SAMP_11, call=filter_calls(values=partly_hidden))
def test_hidden_ids_take_no_part(subject, call):
    gives_a_right_set(subject, call)


@requirement(spec.SAMP_11, call=filter_calls(values=extreme), share=0.5)
def test_the_lowest_logits_take_no_part(subject, call):
    gives_a_right_set(subject, call)


@requirement(spec.SAMP_12, call=filter_calls(leading_dims=BATCHES))
def test_a_batch_is_filtered_row_by_row(subject, call):
    gives_a_right_set(subject, call)


@requirement(spec.SAMP_12, call=filter_calls(top_k=[False], top_p=[True], **FAR_BELOW), share=0.05)
def test_a_row_far_below_others_is_filtered_by_its_own_differences(subject, call):
    gives_a_right_set(subject, call)


@requirement(spec.SAMP_12, call=filter_calls(leading_dims=BATCHES, rows=MANY), share=0.2)
def test_each_of_many_rows_is_filtered(subject, call):
    gives_a_right_set(subject, call)


@requirement(
    spec.SAMP_12,
    call=filter_calls(**DOZENS, values=tiers, limits=LIMITS, leading_dims=[(1,), (2,)], rows=HUNDREDS),
    share=0.05,
)
def test_dozens_of_logits_survive_in_each_of_many_rows(subject, call):
    gives_a_right_set(subject, call)


@requirement(
    spec.SAMP_12,
    call=filter_calls(leading_dims=[(1,), (2,)], values=scattered, rows=(9,), sizes=(50257,)),
    share=0.03,
)
def test_each_of_some_rows_of_the_vocabulary_of_a_model_is_filtered(subject, call):
    gives_a_right_set(subject, call)


@requirement(spec.SAMP_12, call=filter_calls(leading_dims=[(1,), (2,)], rows=MANY_ROWS, sizes=WIDE_ROWS), share=0.15)
def test_each_of_many_wide_rows_is_filtered(subject, call):
    gives_a_right_set(subject, call)


@requirement(spec.SAMP_12, call=filter_calls(top_k=[False], top_p=[True], **MANY_WIDE), share=0.04)
def test_each_of_many_rows_of_more_than_a_thousand_ids_is_filtered(subject, call):
    gives_a_right_set(subject, call)


@requirement(
    spec.SAMP_12, call=filter_calls(values=ranked, sizes=(3, 5), leading_dims=ONE_AXIS, rows=VERY_MANY), share=0.05
)
def test_each_of_very_many_rows_is_filtered(subject, call):
    gives_a_right_set(subject, call)


@requirement(spec.SAMP_12, call=filter_calls(), share=0.5)
def test_leading_dims_of_logits_may_be_none_or_many(subject, call):
    gives_a_right_set(subject, call)


@requirement(spec.SAMP_12, call=filter_calls(leading_dims=BATCHES, empty=[True]), share=0.3)
def test_no_rows_come_back_as_none(subject, call):
    none = call.arguments["logits"][:0]
    subject.expects(call.having(logits=none), f64(none))


@requirement(spec.SAMP_13, call=filter_calls(values=some_broken, leading_dims=BATCHES[:2], without_distribution=[True]))
def test_a_row_without_a_distribution_changes_no_other_row(subject, call):
    logits = f64(call.arguments["logits"])
    subject.agrees(call, np.broadcast_to(distributed(logits)[..., None], logits.shape))


@requirement(
    spec.SAMP_13,
    call=filter_calls(values=some_broken, sizes=(4097, 50257), leading_dims=[(2,)], without_distribution=[True]),
    share=0.25,
)
def test_a_wide_row_without_a_distribution_changes_no_other_row(subject, call):
    logits = f64(call.arguments["logits"])
    subject.agrees(call, np.broadcast_to(distributed(logits)[..., None], logits.shape))


@requirement(
    spec.SAMP_13,
    call=filter_calls(
        top_k=[True],
        values=tied_beside_broken,
        sizes=SEVERAL,
        leading_dims=BATCHES[:2],
        without_distribution=[True],
        ties=LOWEST,
    ),
    share=0.1,
)
def test_equal_logits_beside_a_row_without_a_distribution_survive_as_ever(subject, call):
    logits = f64(call.arguments["logits"])
    subject.agrees(call, np.broadcast_to(distributed(logits)[..., None], logits.shape))


@requirement(spec.SAMP_14, call=filter_calls(values=some_broken, without_distribution=[True]), share=0.5)
def test_a_row_without_a_distribution_comes_back_as_it_is(subject, call):
    logits = f64(call.arguments["logits"])
    subject.agrees(call, np.broadcast_to(~distributed(logits)[..., None], logits.shape))


@requirement(spec.SAMP_15, call=in_views(filter_calls(sizes=(5, 3, 12, 24, 65, 300))), share=1.5)
def test_strided_logits_are_filtered_like_their_copy(subject, call):
    gives_the_set_of_the_copy(subject, call)


@requirement(spec.SAMP_15, call=filter_calls(leading_dims=BATCHES), share=0.1)
def test_rows_of_logits_that_lie_backwards_are_filtered_like_their_copies(subject, call):
    gives_the_set_of_the_copy(subject, bottom_up(call, "logits"))


@requirement(
    spec.SAMP_15,
    call=in_views(filter_calls(sizes=(5, 24, 65, 300), limits=(1,), top_k=[True], top_p=[False])),
    share=0.2,
)
def test_the_largest_of_strided_logits_is_that_of_their_copy(subject, call):
    gives_the_set_of_the_copy(subject, call)


@requirement(spec.SAMP_15, call=in_views(filter_calls(**DOZENS, values=tiers, limits=LIMITS)), share=0.15)
def test_the_dozens_of_largest_of_strided_logits_are_those_of_their_copy(subject, call):
    gives_the_set_of_the_copy(subject, call)


@requirement(spec.SAMP_15, call=in_views(filter_calls(sizes=(4097, 32769), leading_dims=FEW)), share=0.15)
def test_strided_logits_of_a_large_vocabulary_are_filtered_like_their_copy(subject, call):
    gives_the_set_of_the_copy(subject, call)


@requirement(spec.SAMP_16, call=filter_calls())
def test_the_result_has_the_shape_and_the_dtype_of_the_logits(subject, call):
    returns(subject, call, call.arguments["logits"].shape, call.features["dtypes"])


@requirement(spec.SAMP_16, call=filter_calls(**DOZENS, values=tiers, limits=LIMITS), share=0.05)
def test_the_result_has_the_dtype_of_the_logits_where_dozens_survive(subject, call):
    returns(subject, call, call.arguments["logits"].shape, call.features["dtypes"])


@requirement(spec.SAMP_16, call=filter_calls(leading_dims=BATCHES, empty=[True]), share=0.1)
def test_no_rows_have_the_shape_and_the_dtype_of_the_logits(subject, call):
    none = call.arguments["logits"][:0]
    returns(subject, call.having(logits=none), none.shape, call.features["dtypes"])


@requirement(spec.SAMP_17, call=filter_calls(**DOZENS, values=tiers, limits=LIMITS), share=0.05)
def test_the_filters_change_no_argument_where_dozens_survive(subject, call):
    keeps_arguments(subject, call)


@requirement(spec.SAMP_17, call=filter_calls())
def test_the_filters_change_no_argument(subject, call):
    keeps_arguments(subject, call)


@requirement(spec.SAMP_17, call=filter_calls(sizes=(4097, 50257), leading_dims=FEW), share=0.05)
def test_the_filters_change_no_argument_of_a_large_vocabulary(subject, call):
    keeps_arguments(subject, call)


@requirement(
    spec.SAMP_18, call=filter_calls(sizes=(4097, 50257), top_k=[True], top_p=[False], leading_dims=FEW), share=0.1
)
def test_other_logits_of_a_large_vocabulary_in_between_change_nothing(subject, call):
    logits = call.arguments["logits"]
    depends_on_arguments_alone(subject, call, call.having(logits=np.roll(logits, 1, axis=-1)))


@requirement(spec.SAMP_18, call=filter_calls())
def test_other_logits_and_limits_in_between_change_nothing(subject, call):
    other = call.having(logits=-call.arguments["logits"], **({"top_k": 1} if call.features["top_k"] else {}))
    depends_on_arguments_alone(subject, call, other)


@requirement(spec.SAMP_18, call=filter_calls(top_k=[False], top_p=[True], sizes=SEVERAL), share=0.1)
def test_a_call_that_is_refused_in_between_changes_nothing(subject, call):
    goes_on_after_a_refused_call(subject, call, call.having(top_p=1.5))


@requirement(spec.SAMP_19, call=filter_calls(top_p=[True]), top_p=BAD_TOP_P, share=0.3)
def test_filters_with_a_top_p_that_is_no_share_are_refused(subject, call, top_p):
    refuses(subject, call, top_p=top_p)


@requirement(spec.SAMP_20, call=filter_calls(top_k=[True]), top_k=among([-2, -7]), share=0.2)
def test_filters_with_a_limit_below_minus_one_are_refused(subject, call, top_k):
    refuses(subject, call.having(top_k=top_k))
