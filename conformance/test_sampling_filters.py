"""Do the filters of an implementation keep the contract?"""

import math
from dataclasses import replace

import numpy as np

from inferspec.conformance.inputs.sampling import (
    BAD_TOP_P,
    BATCHES,
    BOTH,
    DOZENS,
    FAR_BELOW,
    FEW,
    HUNDREDS,
    LARGE,
    LOWEST,
    MANY,
    MANY_ROWS,
    MANY_WIDE,
    ONE_AXIS,
    REAL,
    SEVERAL,
    THOUSANDS,
    VERY_MANY,
    WIDE,
    WIDE_ROWS,
    beside_sums,
    exact_filters,
    filter_calls,
    hardly_any_top_p,
    limited_beside_sums,
    nearly_all_top_p,
    summed_filters,
    tiny_top_p,
)
from inferspec.conformance.inputs.sampling_logits import (
    LIMITS,
    MORE_THAN_1024,
    behind_hundreds,
    close_far_out,
    crowded,
    extreme,
    faint,
    far_out,
    fine,
    nearly_alike,
    ordinary,
    partly_hidden,
    past_float16,
    ranked,
    scattered,
    some_broken,
    tied,
    tied_beside_broken,
    tiers,
    tiers_anywhere,
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
    leaves,
    leaves_enough,
    leaves_the_likeliest,
    leaves_the_lowest,
    survivors,
)
from inferspec.conformance.strategies import ODD_TILES, among, bottom_up, in_views
from inferspec.conformance.suite import requirement
from inferspec.spec import sampling_sentences as spec
from inferspec.spec.numerics import (
    f64,
)

NO_LIMIT = among([None, 0, "V", "V + 1", 10**6, 2**30])


@requirement(spec.SAMP_01, call=filter_calls(top_k=[True], top_p=[False]))
def test_exactly_the_k_largest_logits_survive(subject, call):
    subject.agrees(call)


@requirement(
    spec.SAMP_01,
    call=filter_calls(top_k=[True], top_p=[False], values=scattered, sizes=REAL, leading_dims=FEW, rows=(2, 1)),
    share=0.15,
)
def test_the_k_largest_of_a_large_vocabulary_survive(subject, call):
    subject.agrees(call)


@requirement(
    spec.SAMP_01,
    call=filter_calls(top_k=[True], top_p=[False], values=tiers, sizes=ODD_TILES, limits=LIMITS),
    share=0.6,
)
def test_vocabularies_beside_tiles_that_are_no_powers_of_two_are_filtered_right(subject, call):
    subject.agrees(call)


@requirement(
    spec.SAMP_01,
    call=filter_calls(top_k=[True], top_p=[False], values=tiers_anywhere, sizes=WIDE, limits=LIMITS),
    share=0.3,
)
def test_the_dozens_and_hundreds_of_largest_logits_survive(subject, call):
    subject.agrees(call)


@requirement(
    spec.SAMP_01,
    call=filter_calls(
        top_k=[True], top_p=[False], values=tiers, sizes=THOUSANDS, limits=MORE_THAN_1024, leading_dims=FEW, rows=(2, 1)
    ),
    share=0.15,
)
def test_more_than_a_thousand_logits_survive(subject, call):
    subject.agrees(call)


@requirement(
    spec.SAMP_01,
    call=filter_calls(
        top_k=[True],
        top_p=[False],
        values=tiers,
        sizes=REAL[::2],
        limits=MORE_THAN_1024,
        leading_dims=FEW,
        rows=(1, 2),
    ),
    share=0.03,
)
def test_more_than_a_thousand_logits_of_the_vocabularies_of_models_survive(subject, call):
    subject.agrees(call)


@requirement(
    spec.SAMP_01,
    call=filter_calls(
        dtypes=["float32"],
        top_k=[True],
        top_p=[False],
        values=nearly_alike,
        sizes=(8191, 50257),
        limits=LIMITS,
        leading_dims=FEW,
        rows=(2, 1),
    ),
    share=0.05,
)
def test_the_largest_of_thousands_that_are_nearly_alike_survive(subject, call):
    subject.agrees(call)


@requirement(spec.SAMP_02, call=filter_calls(top_k=[True], top_p=[False], values=tied, ties=LOWEST))
def test_of_equal_logits_those_of_the_lowest_ids_survive(subject, call):
    leaves_the_lowest(subject, call)


@requirement(
    spec.SAMP_02,
    call=filter_calls(
        top_k=[True], top_p=[False], values=tied, sizes=(*LARGE, *WIDE), limits=(5, 1, 23, *LIMITS), ties=LOWEST
    ),
    share=0.15,
)
def test_of_thousands_of_equal_logits_those_of_the_lowest_ids_survive(subject, call):
    leaves_the_lowest(subject, call)


@requirement(
    spec.SAMP_02,
    call=filter_calls(
        top_k=[True], top_p=[False], values=behind_hundreds, sizes=(2049, 1100, 3000), limits=(1023,), ties=LOWEST
    ),
    share=0.05,
)
def test_of_equal_logits_behind_hundreds_of_larger_ones_those_of_the_lowest_ids_survive(subject, call):
    leaves_the_lowest(subject, call)


@requirement(spec.SAMP_49, call=filter_calls(top_k=[True], top_p=[False], values=tied))
def test_enough_survive_whichever_of_equal_logits_they_are(subject, call):
    leaves_enough(subject, call)


@requirement(spec.SAMP_49, call=filter_calls(top_k=[False], top_p=[True], values=tied))
def test_enough_survive_whichever_of_equally_likely_ids_they_are(subject, call):
    leaves_enough(subject, call)


@requirement(spec.SAMP_03, call=filter_calls(top_k=[True], values=ordinary), top_k=NO_LIMIT)
def test_no_limit_filters_nothing(subject, call, top_k):
    size = call.arguments["logits"].shape[-1]
    unlimited = call.having(top_k={"V": size, "V + 1": size + 1}.get(top_k, top_k), top_p=1.0)
    subject.expects(unlimited, f64(call.arguments["logits"]))


@requirement(spec.SAMP_03, call=filter_calls(values=partly_hidden, sizes=(5, 1, 2, 9, 24, 300)), share=0.5)
def test_the_filters_are_off_unless_asked_for(subject, call):
    given = {name: x for name, x in call.arguments.items() if name == "logits"}
    subject.expects(_with(call, given), f64(call.arguments["logits"]))


@requirement(spec.SAMP_04, call=filter_calls(top_k=[True], values=ordinary), share=0.3)
def test_a_limit_of_minus_one_filters_nothing(subject, call):
    subject.expects(call.having(top_k=-1, top_p=1.0), f64(call.arguments["logits"]))


@requirement(spec.SAMP_04, call=filter_calls(**BOTH), share=0.08)
def test_a_limit_of_minus_one_leaves_top_p_its_say(subject, call):
    gives_a_right_set(subject, call.having(top_k=-1))


@requirement(spec.SAMP_05, call=filter_calls(top_k=[False], top_p=[True]))
def test_the_fewest_ids_that_reach_top_p_survive(subject, call):
    gives_a_right_set(subject, call)


@requirement(spec.SAMP_05, call=filter_calls(top_k=[False], top_p=[True], sizes=LARGE), share=0.2)
def test_the_fewest_ids_of_a_large_vocabulary_that_reach_top_p_survive(subject, call):
    gives_a_right_set(subject, call)


@requirement(
    spec.SAMP_05,
    call=filter_calls(
        top_k=[False],
        top_p=[True],
        values=crowded,
        sizes=(8191, 4097, 16385),
        leading_dims=FEW,
        rows=(2, 1),
        vocabulary=4097,
    ),
    share=0.1,
)
def test_thousands_of_ids_may_reach_top_p_together(subject, call):
    gives_a_right_set(subject, call)


@requirement(spec.SAMP_05, call=hardly_any_top_p(top_p=[True], dtypes=["float32"], vocabulary=2049), share=0.1)
def test_a_top_p_below_a_thousandth_is_as_good_as_any(subject, call):
    leaves(subject, call, math.ceil(call.arguments["top_p"] * call.arguments["logits"].shape[-1]))


@requirement(spec.SAMP_05, call=nearly_all_top_p(top_p=[True], dtypes=["float32"], vocabulary=5000), share=0.05)
def test_a_top_p_that_rounded_sums_do_not_reach_leaves_all(subject, call):
    leaves(subject, call, call.arguments["logits"].shape[-1])


@requirement(spec.SAMP_47, call=exact_filters(top_p=[True], dtypes=["float32"]), share=0.2)
def test_none_survives_after_those_that_reach_top_p_exactly(subject, call):
    leaves(subject, call, call.arguments["top_p"] * call.arguments["logits"].shape[-1])


@requirement(spec.SAMP_06, call=tiny_top_p(top_p=[True]))
def test_the_most_likely_id_survives_the_smallest_top_p(subject, call):
    leaves_the_likeliest(subject, call)


@requirement(
    spec.SAMP_06, call=tiny_top_p(top_p=[True], sizes=(50257, 9000), leading_dims=FEW, rows=(2, 1)), share=0.05
)
def test_the_most_likely_id_of_a_large_vocabulary_survives_the_smallest_top_p(subject, call):
    leaves_the_likeliest(subject, call)


@requirement(spec.SAMP_07, call=filter_calls(top_k=[False], top_p=[True], values=tied, ties=LOWEST))
def test_of_equally_likely_ids_the_lowest_survive(subject, call):
    leaves_the_lowest(subject, call)


@requirement(spec.SAMP_08, call=filter_calls(top_k=[True], top_p=[True], both_filters=[True]))
def test_top_p_shares_out_what_top_k_left(subject, call):
    gives_a_right_set(subject, call)


@requirement(spec.SAMP_08, call=filter_calls(**BOTH), top_k=among(["V", "V + 1", 2**30]), share=0.2)
def test_a_top_k_of_the_whole_vocabulary_leaves_top_p_its_say(subject, call, top_k):
    size = call.arguments["logits"].shape[-1]
    gives_a_right_set(subject, call.having(top_k={"V": size, "V + 1": size + 1}.get(top_k, top_k)))


@requirement(spec.SAMP_08, call=filter_calls(**BOTH), share=0.08)
def test_a_top_k_of_0_leaves_top_p_its_say(subject, call):
    gives_a_right_set(subject, call.having(top_k=0))


@requirement(spec.SAMP_08, call=filter_calls(**BOTH, values=tied, sizes=SEVERAL, ties=LOWEST), share=0.2)
def test_top_p_shares_out_what_top_k_left_of_equal_logits(subject, call):
    gives_a_right_set(subject, call)


@requirement(
    spec.SAMP_07,
    call=filter_calls(**BOTH, values=tied, sizes=SEVERAL, ties=LOWEST),
    top_k=among(["V", "V + 1"]),
    share=0.1,
)
def test_of_equally_likely_ids_the_lowest_survive_a_top_k_of_the_whole_vocabulary_too(subject, call, top_k):
    size = call.arguments["logits"].shape[-1]
    leaves_the_lowest(subject, call.having(top_k=size + (top_k != "V")))


@requirement(spec.SAMP_08, call=filter_calls(**BOTH, values=tiers, sizes=WIDE, limits=LIMITS, ties=LOWEST), share=0.2)
def test_top_p_shares_out_the_dozens_and_hundreds_that_top_k_left(subject, call):
    gives_a_right_set(subject, call)


@requirement(
    spec.SAMP_08,
    call=filter_calls(
        **BOTH, values=tiers, sizes=(33000, 9000), limits=LIMITS, ties=LOWEST, leading_dims=FEW, rows=(2, 1)
    ),
    share=0.06,
)
def test_top_p_shares_out_the_dozens_and_hundreds_that_top_k_left_of_a_large_vocabulary(subject, call):
    gives_a_right_set(subject, call)


@requirement(
    spec.SAMP_08,
    call=filter_calls(
        top_k=[True], top_p=[True], both_filters=[True], values=scattered, sizes=REAL, leading_dims=FEW, rows=(2, 1)
    ),
    share=0.15,
)
def test_top_p_shares_out_what_top_k_left_of_a_large_vocabulary(subject, call):
    gives_a_right_set(subject, call)


@requirement(spec.SAMP_07, call=summed_filters(top_p=[True], ties=LOWEST), share=0.15)
def test_of_thousands_of_equally_likely_ids_the_lowest_survive(subject, call):
    leaves_the_lowest(subject, call)


@requirement(spec.SAMP_09, call=summed_filters(top_p=[True]), share=0.3)
def test_thousands_of_probabilities_are_summed_in_float32(subject, call):
    """Nearly all are equally likely: how many survive tells the sum, whichever they are."""
    counts, answer = survivors(subject.value(call)), subject.answer(call)
    undecided = np.isinf(answer.budget)
    fewest = survivors(np.where(undecided, -np.inf, answer.value))
    most = fewest + undecided.sum(axis=-1)
    if (wrong := (counts < fewest) | (counts > most)).any():
        row = np.unravel_index(int(np.argmax(wrong)), wrong.shape)
        raise Nonconformance(f"{counts[row]} ids survive, and {fewest[row]} to {most[row]} reach top_p", call)


@requirement(spec.SAMP_09, call=filter_calls(top_k=[False], top_p=[True]))
def test_sums_keep_the_precision_of_float32_in_every_dtype(subject, call):
    gives_a_right_set(subject, call)


@requirement(spec.SAMP_09, call=beside_sums(top_p=[True]), share=0.5)
def test_a_top_p_beside_a_sum_of_probabilities_gives_the_right_set(subject, call):
    gives_a_right_set(subject, call)


@requirement(spec.SAMP_09, call=limited_beside_sums(**BOTH), share=0.15)
def test_a_top_p_beside_a_sum_of_what_top_k_left_gives_the_right_set(subject, call):
    gives_a_right_set(subject, call)


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


def _with(call, arguments):
    """The same call with these arguments alone."""
    return replace(call, arguments=arguments)
