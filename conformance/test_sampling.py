"""Do the filters and the sampler of an implementation keep the contract?"""

import math
from dataclasses import replace
from typing import Any

import numpy as np

from inferspec.conformance.inputs.sampling import (
    EDGES,
    FEW_DRAWS,
    HUGE,
    LARGE,
    LIMITS,
    MANY,
    MANY_ROWS,
    MANY_TO_LOOK_AT,
    MORE_THAN_1024,
    NUCLEI_OF_MANY,
    RARE_DRAWS,
    REAL,
    SEVERAL,
    SHORT_OF_ONE,
    THOUSANDS,
    VERY_MANY,
    WIDE,
    WIDE_ROWS,
    adversarial,
    another_temperature,
    behind_hundreds,
    beside_borders,
    beside_sums,
    close_far_out,
    crowded,
    draws_beside_sums,
    exact_draws,
    exact_filters,
    extreme,
    far_out,
    few_likely,
    filter_calls,
    fine,
    fixed,
    greedy_calls,
    hardly_any_top_p,
    lone,
    many_rows,
    masked_at_the_end,
    near,
    one_and_many,
    ordinary,
    partly_hidden,
    past_float16,
    ranked,
    rare_ids,
    sampler_calls,
    scattered,
    some_broken,
    summed_draws,
    summed_filters,
    tempered_nuclei,
    tempered_rows,
    tied,
    tiers,
    tiny_top_p,
    zeros,
)
from inferspec.conformance.properties import depends_on_arguments_alone, keeps_arguments, refuses, returns
from inferspec.conformance.strategies import HALF, ODD_TILES, among, in_views
from inferspec.conformance.suite import requirement
from inferspec.conformance.trial import Nonconformance
from inferspec.spec import sampling as spec
from inferspec.spec.numerics import (
    FALSE_ALARM,
    STATISTICAL_CHECKS,
    Precision,
    f64,
    most_draws,
    relative_entropy_limit,
    sure_to_come,
)

IN_TURN = 400
"""Calls of one or two rows, as a server makes them, that show how their ids are drawn."""

BATCHES = [(2,), (2, 3), (2, 1, 3), (9, 2)]
FEW = [(), (1,), (2,)]
ONE_AXIS = [(2,)]
"""What calls of many rows ask for: one who draws for single rows is not given them."""
OWN: dict[str, Any] = {"generators": ["own"], "sizes": (4, 3, 5)}
NUCLEUS: dict[str, Any] = {"generators": ["own"], "top_k": [False], "top_p": [True]}
BOTH: dict[str, Any] = {"top_k": [True], "top_p": [True], "both_filters": [True]}
SEEDED: dict[str, Any] = {
    "seeded": [True],
    "top_p": [False],
    "temperatures": ["other"],
    "draws": FEW_DRAWS,
    "leading_dims": ONE_AXIS,
}
NEAR: dict[str, Any] = {
    "values": near,
    "dtypes": ["float32"],
    "temperatures": ["other"],
    "kinds": ("other",),
    "generators": ["given"],
}
"""Samplers for which it matters how small the temperature is."""
LOWEST = ["lowest ids"]
NO_LIMIT = among([None, 0, "V", "V + 1", 10**6, 2**30])
BAD_TOP_P = among([0, 0.0, -0.1, 1.0001, 2, float("nan"), float("inf")])

# the filters


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
    spec.SAMP_01, call=filter_calls(top_k=[True], top_p=[False], values=tiers, sizes=WIDE, limits=LIMITS), share=0.3
)
def test_the_dozens_and_hundreds_of_largest_logits_survive(subject, call):
    subject.agrees(call)


@requirement(
    spec.SAMP_01,
    call=filter_calls(
        top_k=[True], top_p=[False], values=tiers, sizes=THOUSANDS, limits=MORE_THAN_1024, leading_dims=FEW, rows=(2, 1)
    ),
    share=0.05,
)
def test_more_than_a_thousand_logits_survive(subject, call):
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


@requirement(spec.SAMP_47, call=exact_filters(top_p=[True], dtypes=["float32"]), share=0.2)
def test_none_survives_after_those_that_reach_top_p_exactly(subject, call):
    leaves(subject, call, call.arguments["top_p"] * call.arguments["logits"].shape[-1])


@requirement(spec.SAMP_06, call=tiny_top_p(top_p=[True]))
def test_the_most_likely_id_survives_the_smallest_top_p(subject, call):
    logits = f64(call.arguments["logits"])
    got = gives_a_right_set(subject, call)
    if (lost := (got == -np.inf).all(axis=-1)).any():
        raise Nonconformance(f"{int(lost.sum())} of {lost.size} rows have no survivor", call)
    if (f64(got).max(axis=-1) != logits.max(axis=-1)).any():
        raise Nonconformance("the most likely id does not survive", call)


@requirement(spec.SAMP_07, call=filter_calls(top_k=[False], top_p=[True], values=tied, ties=LOWEST))
def test_of_equally_likely_ids_the_lowest_survive(subject, call):
    leaves_the_lowest(subject, call)


@requirement(spec.SAMP_08, call=filter_calls(top_k=[True], top_p=[True], both_filters=[True]))
def test_top_p_shares_out_what_top_k_left(subject, call):
    gives_a_right_set(subject, call)


@requirement(spec.SAMP_08, call=filter_calls(**BOTH, values=tiers, sizes=WIDE, limits=LIMITS, ties=LOWEST), share=0.2)
def test_top_p_shares_out_the_dozens_and_hundreds_that_top_k_left(subject, call):
    gives_a_right_set(subject, call)


@requirement(
    spec.SAMP_08,
    call=filter_calls(
        top_k=[True], top_p=[True], both_filters=[True], values=scattered, sizes=REAL, leading_dims=FEW, rows=(2, 1)
    ),
    share=0.1,
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


@requirement(spec.SAMP_10, call=filter_calls(values=fine))
def test_survivors_keep_their_logits_bit_for_bit(subject, call):
    got = subject.value(call)
    logits = call.arguments["logits"]
    if got.shape == logits.shape and ((f64(got) != f64(logits)) & (got != -np.inf)).any():
        raise Nonconformance("a survivor has another logit than before", call)
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


@requirement(spec.SAMP_12, call=filter_calls(leading_dims=BATCHES, rows=MANY), share=0.2)
def test_each_of_many_rows_is_filtered(subject, call):
    gives_a_right_set(subject, call)


@requirement(spec.SAMP_12, call=filter_calls(leading_dims=[(1,), (2,)], rows=MANY_ROWS, sizes=WIDE_ROWS), share=0.1)
def test_each_of_many_wide_rows_is_filtered(subject, call):
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
    subject.agrees(call, np.broadcast_to(_distributed(logits)[..., None], logits.shape))


@requirement(
    spec.SAMP_13,
    call=filter_calls(values=some_broken, sizes=(4097, 50257), leading_dims=[(2,)], without_distribution=[True]),
    share=0.1,
)
def test_a_wide_row_without_a_distribution_changes_no_other_row(subject, call):
    logits = f64(call.arguments["logits"])
    subject.agrees(call, np.broadcast_to(_distributed(logits)[..., None], logits.shape))


@requirement(spec.SAMP_14, call=filter_calls(values=some_broken, without_distribution=[True]), share=0.5)
def test_a_row_without_a_distribution_comes_back_as_it_is(subject, call):
    logits = f64(call.arguments["logits"])
    subject.agrees(call, np.broadcast_to(~_distributed(logits)[..., None], logits.shape))


@requirement(spec.SAMP_15, call=in_views(filter_calls(sizes=(5, 3, 12, 24, 65, 300))), share=1.5)
def test_strided_logits_are_filtered_like_their_copy(subject, call):
    gives_the_set_of_the_copy(subject, call)


@requirement(spec.SAMP_15, call=in_views(filter_calls(sizes=(4097, 32769), leading_dims=FEW)), share=0.1)
def test_strided_logits_of_a_large_vocabulary_are_filtered_like_their_copy(subject, call):
    gives_the_set_of_the_copy(subject, call)


@requirement(spec.SAMP_16, call=filter_calls())
def test_the_result_has_the_shape_and_the_dtype_of_the_logits(subject, call):
    returns(subject, call, call.arguments["logits"].shape, call.features["dtypes"])


@requirement(spec.SAMP_17, call=filter_calls())
def test_the_filters_change_no_argument(subject, call):
    keeps_arguments(subject, call)


@requirement(spec.SAMP_17, call=filter_calls(sizes=(4097, 50257), leading_dims=FEW), share=0.05)
def test_the_filters_change_no_argument_of_a_large_vocabulary(subject, call):
    keeps_arguments(subject, call)


@requirement(
    spec.SAMP_18, call=filter_calls(sizes=(4097, 50257), top_k=[True], top_p=[False], leading_dims=FEW), share=0.05
)
def test_other_logits_of_a_large_vocabulary_in_between_change_nothing(subject, call):
    logits = call.arguments["logits"]
    depends_on_arguments_alone(subject, call, call.having(logits=np.roll(logits, 1, axis=-1)))


@requirement(spec.SAMP_18, call=filter_calls())
def test_other_logits_and_limits_in_between_change_nothing(subject, call):
    other = call.having(logits=-call.arguments["logits"], **({"top_k": 1} if call.features["top_k"] else {}))
    depends_on_arguments_alone(subject, call, other)


@requirement(spec.SAMP_19, call=filter_calls(top_p=[True]), top_p=BAD_TOP_P, share=0.3)
def test_filters_with_a_top_p_that_is_no_share_are_refused(subject, call, top_p):
    refuses(subject, call, top_p=top_p)


@requirement(spec.SAMP_20, call=filter_calls(top_k=[True]), top_k=among([-2, -7]), share=0.2)
def test_filters_with_a_limit_below_minus_one_are_refused(subject, call, top_k):
    refuses(subject, call.having(top_k=top_k))


# the sampler


@requirement(spec.SAMP_21, call=greedy_calls(temperatures=["greedy"]), share=3.4)
def test_temperature_0_gives_the_largest_logit(subject, call):
    gives_integers(subject, call)
    subject.agrees(call)


@requirement(spec.SAMP_21, call=greedy_calls(temperatures=["greedy"], values=near, dtypes=["float32"]), share=0.3)
def test_temperature_0_gives_the_largest_of_near_logits(subject, call):
    subject.agrees(call)


@requirement(spec.SAMP_21, call=greedy_calls(temperatures=["greedy"], values=tied))
def test_temperature_0_gives_the_lowest_of_equal_ids(subject, call):
    subject.agrees(call)


@requirement(
    spec.SAMP_21, call=greedy_calls(temperatures=["greedy"], values=zeros, sizes=SEVERAL, dtypes=HALF), share=0.3
)
def test_temperature_0_gives_the_lowest_of_zeros_of_either_sign(subject, call):
    subject.agrees(call)


@requirement(
    spec.SAMP_21, call=greedy_calls(temperatures=["greedy"], values=scattered, sizes=REAL, leading_dims=FEW), share=0.2
)
def test_temperature_0_gives_the_largest_logit_of_a_large_vocabulary(subject, call):
    subject.agrees(call)


@requirement(spec.SAMP_21, call=greedy_calls(temperatures=["greedy"], values=tied, sizes=(*LARGE, 50257)), share=0.15)
def test_temperature_0_gives_the_lowest_of_thousands_of_equal_ids(subject, call):
    subject.agrees(call)


@requirement(spec.SAMP_22, call=sampler_calls(generators=["given"], filtered=False), share=1.5)
def test_an_id_is_drawn_by_inverse_cdf_in_ascending_order(subject, call):
    chooses(subject, call)


@requirement(
    spec.SAMP_22,
    call=sampler_calls(generators=["given"], filtered=False, values=scattered, sizes=REAL, leading_dims=FEW),
    share=0.2,
)
def test_an_id_of_a_large_vocabulary_is_drawn_by_inverse_cdf(subject, call):
    chooses(subject, call)


@requirement(spec.SAMP_22, call=sampler_calls(generators=["given"], filtered=False, values=few_likely))
def test_each_of_a_few_likely_ids_has_its_exact_share(subject, call):
    chooses(subject, call)


@requirement(
    spec.SAMP_23, call=sampler_calls(generators=["given"], numbers=adversarial, values=few_likely, sizes=(5, 3, 9, 24))
)
def test_the_ends_of_the_uniform_numbers_give_no_hidden_id(subject, call):
    chooses(subject, call)


@requirement(spec.SAMP_23, call=sampler_calls(generators=["given"], numbers=adversarial, values=ordinary), share=0.3)
def test_the_ends_of_uniform_numbers_of_any_dtype_give_no_filtered_id(subject, call):
    chooses(subject, call)


@requirement(
    spec.SAMP_23,
    call=sampler_calls(
        generators=["given"], numbers=adversarial, values=ordinary, sizes=SHORT_OF_ONE, uniform_dtypes=["float32"]
    ),
)
def test_the_ends_of_the_uniform_numbers_give_no_filtered_id(subject, call):
    chooses(subject, call)


@requirement(
    spec.SAMP_23,
    call=sampler_calls(
        generators=["given"],
        numbers=adversarial,
        values=masked_at_the_end,
        sizes=SHORT_OF_ONE,
        filtered=False,
        kinds=("one",),
        uniform_dtypes=["float32"],
    ),
    share=0.2,
)
def test_the_ends_of_the_uniform_numbers_give_no_id_that_the_logits_hide(subject, call):
    chooses(subject, call)


@requirement(
    spec.SAMP_23,
    call=sampler_calls(generators=["given"], numbers=adversarial, values=few_likely, sizes=EDGES),
    share=0.2,
)
def test_the_ends_of_the_uniform_numbers_give_no_hidden_id_of_a_large_vocabulary(subject, call):
    chooses(subject, call)


@requirement(spec.SAMP_24, call=sampler_calls(top_k=[True], top_p=[False]))
def test_ids_are_drawn_from_what_top_k_leaves(subject, call):
    chooses(subject, call)


@requirement(
    spec.SAMP_24,
    call=sampler_calls(top_k=[True], top_p=[False], values=tiers, sizes=WIDE, limits=LIMITS),
    share=1.2,
)
def test_ids_are_drawn_from_the_dozens_and_hundreds_that_top_k_leaves(subject, call):
    chooses(subject, call)


@requirement(
    spec.SAMP_24,
    call=sampler_calls(
        generators=["given"],
        top_k=[True],
        top_p=[False],
        values=tiers,
        sizes=THOUSANDS,
        limits=MORE_THAN_1024,
        leading_dims=FEW[1:],
        rows=(9, 3),
    ),
    share=0.1,
)
def test_ids_are_drawn_from_the_thousands_that_top_k_leaves(subject, call):
    chooses(subject, call)


@requirement(
    spec.SAMP_24,
    call=sampler_calls(top_k=[True], values=scattered, sizes=REAL, leading_dims=FEW, temperatures=["one"]),
    share=0.2,
)
def test_ids_are_drawn_from_what_the_filters_leave_of_a_large_vocabulary(subject, call):
    chooses(subject, call)


@requirement(spec.SAMP_24, call=summed_draws(generators=["given"], top_p=[True], nuclei=True), share=0.1)
def test_ids_are_drawn_from_the_thousands_that_top_p_leaves(subject, call):
    chooses(subject, call)


@requirement(spec.SAMP_24, call=sampler_calls(top_k=[False], top_p=[True], temperatures=["one"]))
def test_ids_are_drawn_from_what_top_p_leaves(subject, call):
    chooses(subject, call)


@requirement(spec.SAMP_24, call=sampler_calls(top_k=[True], top_p=[True], both_filters=[True], temperatures=["one"]))
def test_ids_are_drawn_from_what_both_filters_leave(subject, call):
    chooses(subject, call)


@requirement(
    spec.SAMP_24,
    call=sampler_calls(**BOTH, values=tiers, sizes=WIDE, limits=LIMITS, generators=["given"], temperatures=["one"]),
    share=0.2,
)
def test_ids_are_drawn_from_what_top_p_leaves_of_dozens_and_hundreds(subject, call):
    chooses(subject, call)


@requirement(
    spec.SAMP_24,
    call=sampler_calls(top_k=[False], top_p=[True], temperatures=["one"]),
    top_p=among([1e-5, 1e-9, 1e-30, 1e-300]),
    share=0.5,
)
def test_the_smallest_top_p_leaves_the_most_likely_id(subject, call, top_p):
    chooses(subject, call.having(top_p=top_p))


@requirement(
    spec.SAMP_48, call=exact_draws(top_p=[True], dtypes=["float32"], uniform_dtypes=["float32"], ties=LOWEST), share=0.2
)
def test_none_is_drawn_after_those_that_reach_top_p_exactly(subject, call):
    ids, count = subject.value(call), call.arguments["top_p"] * call.arguments["logits"].shape[-1]
    if (ids >= count).any():
        raise Nonconformance(f"id {int(ids.max())} is drawn, and {count:g} ids reach top_p", call)


@requirement(spec.SAMP_24, call=tempered_rows(top_p=[True], leading_dims=[(1,), ()]))
def test_a_lone_row_is_drawn_from_what_top_p_leaves_at_any_temperature(subject, call):
    fitting(subject, call, spec.ORDERS)


@requirement(spec.SAMP_24, call=tempered_rows(top_p=[True]), share=0.5)
def test_ids_are_drawn_from_what_top_p_leaves_at_any_temperature(subject, call):
    fitting(subject, call, spec.ORDERS)


@requirement(spec.SAMP_24, call=sampler_calls(top_k=[True], top_p=[False]), top_k=among([None, 0, "V"]), share=0.3)
def test_ids_are_drawn_from_all_where_there_is_no_limit(subject, call, top_k):
    size = call.arguments["logits"].shape[-1]
    chooses(subject, call.having(top_k=size if top_k == "V" else top_k))


@requirement(spec.SAMP_24, call=sampler_calls(top_k=[True], top_p=[False]), more=among([1, 10**6, 2**30]), share=0.3)
def test_ids_are_drawn_from_all_where_the_limit_is_larger_than_the_vocabulary(subject, call, more):
    chooses(subject, call.having(top_k=call.arguments["logits"].shape[-1] + more))


@requirement(
    spec.SAMP_24,
    call=sampler_calls(top_k=[True], top_p=[False], values=lone),
    top_k=among([2**30, 10**6, 2**31 - 1]),
    share=0.2,
)
def test_the_only_id_of_a_row_is_drawn_whatever_the_limit(subject, call, top_k):
    chooses(subject, call.having(top_k=top_k))


@requirement(spec.SAMP_24, call=sampler_calls(top_k=[True], top_p=[False], values=lone), share=0.1)
def test_the_only_id_of_a_row_is_drawn_at_a_limit_of_one(subject, call):
    chooses(subject, call.having(top_k=1))


@requirement(
    spec.SAMP_45,
    call=sampler_calls(temperatures=["one"], kinds=("one",), values=tied, generators=["given"], ties=LOWEST),
)
def test_of_equal_logits_only_those_of_the_lowest_ids_are_drawn(subject, call):
    chooses(subject, call)


@requirement(
    spec.SAMP_25,
    call=tempered_nuclei(generators=["given"], top_p=[True], leading_dims=ONE_AXIS),
    other=tempered_nuclei(generators=["given"], top_p=[True], leading_dims=ONE_AXIS),
    share=0.5,
)
def test_top_p_goes_after_the_temperature_always_or_before_it_always(subject, call, other):
    orders = spec.ORDERS
    for asked in (call, call.having(temperature=1 / call.arguments["temperature"]), other):
        _, orders = fitting(subject, asked, orders)


@requirement(
    spec.SAMP_25,
    call=tempered_nuclei(generators=["given"], top_p=[True], leading_dims=ONE_AXIS),
    alone=tempered_rows(generators=["given"], top_p=[True], leading_dims=[(1,), ()]),
)
def test_top_p_goes_where_it_goes_for_a_lone_row_too(subject, call, alone):
    orders = spec.ORDERS
    for asked in (call, alone):
        _, orders = fitting(subject, asked, orders)


NUCLEI = tempered_nuclei(generators=["given"], top_p=[True], leading_dims=ONE_AXIS, sizes=NUCLEI_OF_MANY, draws=32)


@requirement(
    spec.SAMP_25,
    call=NUCLEI,
    other=tempered_nuclei(generators=["given"], top_p=[True], leading_dims=ONE_AXIS),
    share=0.08,
)
def test_top_p_goes_where_it_goes_in_a_large_vocabulary_too(subject, call, other):
    orders = spec.ORDERS
    for asked in (call, other):
        _, orders = fitting(subject, asked, orders)


@requirement(spec.SAMP_26, call=tempered_nuclei(generators=["given"], top_p=[True], leading_dims=ONE_AXIS), share=0.5)
def test_top_p_goes_after_the_temperature(subject, call):
    chooses(subject, call)


@requirement(spec.SAMP_26, call=NUCLEI, share=0.08)
def test_top_p_goes_after_the_temperature_in_a_large_vocabulary(subject, call):
    chooses(subject, call)


@requirement(spec.SAMP_27, call=sampler_calls(leading_dims=BATCHES))
def test_each_row_is_drawn_by_itself(subject, call):
    chooses(subject, call)


@requirement(spec.SAMP_27, call=tempered_rows(top_p=[True], leading_dims=BATCHES), share=0.5)
def test_each_row_has_a_nucleus_of_its_own_at_any_temperature(subject, call):
    fitting(subject, call, spec.ORDERS)


@requirement(spec.SAMP_27, call=sampler_calls(leading_dims=[(2,), (2, 3)], generators=["given"]), share=0.5)
def test_rows_in_another_order_give_their_ids_in_that_order(subject, call):
    first = chooses(subject, call)
    other = {name: call.arguments[name][::-1].copy() for name in ("logits", "uniform")}
    again = subject.value(call.having(**other))
    if (f64(first)[::-1] != f64(again)).any():
        raise Nonconformance("the rows in reverse order do not give their ids in reverse order", call.having(**other))


@requirement(spec.SAMP_27, call=sampler_calls(top_p=[False], leading_dims=BATCHES, rows=MANY), share=0.2)
def test_each_of_many_rows_is_drawn(subject, call):
    chooses(subject, call)


@requirement(spec.SAMP_27, call=greedy_calls(temperatures=["greedy"], leading_dims=BATCHES, rows=MANY), share=0.2)
def test_each_of_many_rows_gives_its_greedy_id(subject, call):
    subject.agrees(call)


@requirement(
    spec.SAMP_27,
    call=sampler_calls(top_p=[False], leading_dims=[(1,), (2,)], rows=MANY_ROWS, sizes=WIDE_ROWS),
    share=0.05,
)
def test_each_of_many_wide_rows_is_drawn(subject, call):
    chooses(subject, call)


@requirement(
    spec.SAMP_27,
    call=greedy_calls(temperatures=["greedy"], leading_dims=[(1,), (2,)], rows=MANY_ROWS, sizes=WIDE_ROWS),
    share=0.05,
)
def test_each_of_many_wide_rows_gives_its_greedy_id(subject, call):
    subject.agrees(call)


@requirement(
    spec.SAMP_27,
    call=sampler_calls(top_p=[False], values=ranked, sizes=(3, 1, 5), leading_dims=ONE_AXIS, rows=VERY_MANY),
    share=0.05,
)
def test_each_of_very_many_rows_is_drawn(subject, call):
    chooses(subject, call)


@requirement(
    spec.SAMP_27,
    call=greedy_calls(temperatures=["greedy"], values=ranked, sizes=(1, 3), leading_dims=ONE_AXIS, rows=VERY_MANY),
    share=0.06,
)
def test_each_of_very_many_rows_gives_its_greedy_id(subject, call):
    subject.agrees(call)


@requirement(spec.SAMP_27, call=sampler_calls(leading_dims=[(2,), (2, 3)], empty=[True]), share=0.3)
def test_no_rows_give_no_ids(subject, call):
    rows = {name: x[:0] for name, x in call.arrays().items()}
    subject.expects(call.having(**rows), np.zeros(rows["logits"].shape[:-1]))


@requirement(spec.SAMP_28, call=sampler_calls(values=far_out, kinds=("one", "power of two"), both=False))
def test_logits_far_from_zero_give_ids_by_their_differences(subject, call):
    chooses(subject, call)


@requirement(
    spec.SAMP_28,
    call=sampler_calls(
        generators=["given"],
        values=close_far_out,
        sizes=SEVERAL,
        kinds=("one", "power of two"),
        both=False,
        dtypes=["float32"],
    ),
    share=0.3,
)
def test_logits_far_from_zero_and_close_to_each_other_give_ids_by_their_differences(subject, call):
    chooses(subject, call)


@requirement(spec.SAMP_28, call=sampler_calls(values=partly_hidden, both=False))
def test_hidden_ids_are_never_drawn(subject, call):
    chooses(subject, call)


@requirement(spec.SAMP_28, call=sampler_calls(values=extreme, kinds=("one",), both=False), share=0.5)
def test_the_lowest_logits_are_never_drawn(subject, call):
    chooses(subject, call)


@requirement(
    spec.SAMP_28,
    call=sampler_calls(filtered=False, temperatures=["other"], kinds=("other",)),
    heat=among([1e-3, 1e-5, 1e-10, 1e-30, 1e4, 1e30]),
    share=4.0,
)
def test_any_temperature_above_0_will_do(subject, call, heat):
    chooses(subject, call.having(temperature=heat))


@requirement(
    spec.SAMP_28,
    call=sampler_calls(**NEAR, top_k=[True], top_p=[False]),
    heat=among([1e-4, 1e-5, 1e-3, 1e-30]),
    share=0.5,
)
def test_any_temperature_above_0_will_do_for_what_top_k_leaves(subject, call, heat):
    chooses(subject, call.having(temperature=heat))


@requirement(
    spec.SAMP_28,
    call=sampler_calls(**NEAR, top_k=[False], top_p=[True]),
    heat=among([1e-4, 1e-5, 1e-3, 1e-30]),
    share=0.5,
)
def test_any_temperature_above_0_will_do_for_what_top_p_leaves(subject, call, heat):
    fitting(subject, call.having(temperature=heat), spec.ORDERS)


@requirement(
    spec.SAMP_28,
    call=sampler_calls(filtered=False, values=tied, temperatures=["other"], kinds=("other",), generators=["given"]),
    heat=among([1e-6, 1e-2, 1e-10, 1e-3, 1e-5]),
    share=0.5,
)
def test_equal_logits_have_equal_shares_at_the_smallest_temperatures(subject, call, heat):
    chooses(subject, call.having(temperature=heat))


@requirement(
    spec.SAMP_28,
    call=sampler_calls(filtered=False, **NEAR),
    heat=among([1e-4, 1e6, 1e-3, 1e30]),
    share=0.3,
)
def test_logits_that_lie_apart_as_far_as_a_temperature_are_told_apart_by_it(subject, call, heat):
    # At a high one those that are near each other are as good as equal, unless they are as large.
    larger = f64(call.arguments["logits"]) * max(heat, 1.0)
    chooses(subject, call.having(temperature=heat, logits=larger.astype(np.float32)))


@requirement(spec.SAMP_29, call=summed_draws(generators=["given"]), share=0.3)
def test_draws_from_thousands_of_equal_ids_keep_their_place(subject, call):
    chooses(subject, call)


@requirement(
    spec.SAMP_29, call=sampler_calls(generators=["given"], values=few_likely, sizes=HUGE, leading_dims=FEW), share=0.6
)
def test_draws_from_a_large_vocabulary_reach_every_id(subject, call):
    chooses(subject, call)


@requirement(
    spec.SAMP_29,
    call=beside_borders(generators=["given"], uniform_dtypes=["float32"], leading_dims=ONE_AXIS),
    share=0.3,
)
def test_numbers_beside_the_border_of_two_ids_give_the_right_one(subject, call):
    chooses(subject, call)


@requirement(
    spec.SAMP_29, call=sampler_calls(generators=["given"], values=ordinary, sizes=(24, 48, 96), filtered=False)
)
def test_draws_keep_the_precision_of_float32_in_every_dtype(subject, call):
    chooses(subject, call)


@requirement(spec.SAMP_29, call=draws_beside_sums(top_p=[True], generators=["given"]), share=0.5)
def test_a_top_p_beside_a_sum_of_probabilities_leaves_the_right_ids_to_draw_from(subject, call):
    chooses(subject, call)


@requirement(
    spec.SAMP_30,
    call=sampler_calls(values=some_broken, both=False, leading_dims=BATCHES[:2], without_distribution=[True]),
)
def test_a_row_without_a_distribution_changes_no_other_id(subject, call):
    chooses(subject, call)


@requirement(
    spec.SAMP_30,
    call=greedy_calls(
        values=some_broken, leading_dims=BATCHES[:2], temperatures=["greedy"], without_distribution=[True]
    ),
    share=0.5,
)
def test_a_row_without_a_distribution_changes_no_other_greedy_id(subject, call):
    chooses(subject, call)


@requirement(
    spec.SAMP_30,
    call=sampler_calls(
        values=some_broken, sizes=(300, 4097, 50257), both=False, leading_dims=[(2,)], without_distribution=[True]
    ),
    share=0.1,
)
def test_a_wide_row_without_a_distribution_changes_no_other_id(subject, call):
    chooses(subject, call)


@requirement(
    spec.SAMP_30,
    call=greedy_calls(
        values=some_broken,
        sizes=(300, 4097, 50257),
        leading_dims=[(2,)],
        temperatures=["greedy"],
        without_distribution=[True],
    ),
    share=0.1,
)
def test_a_wide_row_without_a_distribution_changes_no_other_greedy_id(subject, call):
    chooses(subject, call)


@requirement(
    spec.SAMP_30,
    call=sampler_calls(
        values=some_broken,
        both=False,
        leading_dims=ONE_AXIS,
        rows=MANY_TO_LOOK_AT,
        without_distribution=[True],
    ),
    share=0.1,
)
def test_a_row_without_a_distribution_among_hundreds_changes_no_other_id(subject, call):
    chooses(subject, call)


@requirement(spec.SAMP_31, call=sampler_calls(values=some_broken, without_distribution=[True]), share=0.5)
def test_a_row_without_a_distribution_gives_id_0(subject, call):
    subject.agrees(call, ~_distributed(f64(call.arguments["logits"])))


@requirement(spec.SAMP_32, call=in_views(sampler_calls(generators=["given"], sizes=(5, 3, 12, 24, 65))), share=1.5)
def test_strided_arguments_give_the_ids_of_their_copies(subject, call):
    chooses(subject, call)


@requirement(
    spec.SAMP_32, call=in_views(sampler_calls(generators=["given"], sizes=(4097, 300), leading_dims=FEW)), share=0.1
)
def test_strided_logits_of_a_large_vocabulary_give_the_ids_of_their_copies(subject, call):
    chooses(subject, call)


@requirement(spec.SAMP_33, call=sampler_calls())
def test_ids_are_integers_one_for_each_row(subject, call):
    gives_integers(subject, call)


@requirement(spec.SAMP_33, call=greedy_calls(temperatures=["greedy"]), share=0.5)
def test_greedy_ids_are_integers_one_for_each_row(subject, call):
    gives_integers(subject, call)


@requirement(spec.SAMP_34, call=sampler_calls())
def test_the_sampler_changes_no_argument(subject, call):
    keeps_arguments(subject, call)


@requirement(spec.SAMP_35, call=sampler_calls(generators=["given"], values=ordinary))
def test_other_draws_in_between_change_nothing(subject, call):
    other = call.having(logits=-call.arguments["logits"], uniform=np.asarray(call.arguments["uniform"] / 2))
    depends_on_arguments_alone(subject, call.kept(0), other.kept(0))


@requirement(spec.SAMP_35, call=sampler_calls(generators=["given"], values=ordinary), share=0.5)
def test_another_sampler_in_between_changes_nothing(subject, call):
    depends_on_arguments_alone(subject, call, call.having(temperature=another_temperature(subject), top_p=1.0))


@requirement(spec.SAMP_36, call=sampler_calls(), heat=among([-1.0, -0.1, -1e-6, -math.inf]), share=0.3)
def test_a_temperature_below_0_is_refused(subject, call, heat):
    refuses(subject, call, temperature=heat)


@requirement(spec.SAMP_46, call=sampler_calls(), share=0.1)
def test_a_temperature_of_nan_is_refused(subject, call):
    refuses(subject, call, temperature=float("nan"))


@requirement(spec.SAMP_37, call=sampler_calls(top_p=[True]), top_p=BAD_TOP_P, share=0.3)
def test_a_sampler_with_a_top_p_that_is_no_share_is_refused(subject, call, top_p):
    refuses(subject, call, top_p=top_p)


@requirement(
    spec.SAMP_38,
    call=sampler_calls(generators=["given"], leading_dims=[(2,), (2, 3)]),
    bad=among(["one too many", "a column"]),
    share=0.2,
)
def test_uniform_numbers_of_another_shape_are_refused(subject, call, bad):
    uniform = call.arguments["uniform"]
    wrong = np.concatenate([uniform, uniform[:1]]) if bad == "one too many" else uniform[..., None]
    refuses(subject, call.having(uniform=wrong))


@requirement(spec.SAMP_38, call=sampler_calls(generators=["given"], leading_dims=[(2, 3)]), share=0.2)
def test_fewer_uniform_numbers_than_rows_are_refused(subject, call):
    # Not one, which stands for all where it broadcasts.
    refuses(subject, call.having(uniform=call.arguments["uniform"][..., :-1]))


@requirement(
    spec.SAMP_39,
    call=sampler_calls(generators=["given"]),
    number=among([1.0, -0.25, 1.5, float("nan"), float("inf")]),
    share=0.3,
)
def test_a_number_outside_0_to_1_is_refused(subject, call, number):
    uniform = call.arguments["uniform"].copy()
    uniform.flat[call.seed % uniform.size] = number
    refuses(subject, call.having(uniform=uniform))


# generators of a subject's own: few calls of many draws, each check with its share of the false alarms

ALARM = FALSE_ALARM / STATISTICAL_CHECKS


@requirement(spec.SAMP_40)
def test_ids_come_as_often_as_their_probabilities_say(subject):
    for call in fixed(subject, many_rows(generators=["own"], draws=FEW_DRAWS, leading_dims=ONE_AXIS), 4):
        ids, chances = _drawn(subject, call)
        as_expected(call, ids, chances, "ids")


@requirement(spec.SAMP_40)
def test_ids_that_top_p_leaves_come_as_often_as_their_shares_say(subject):
    for call in fixed(subject, many_rows(**NUCLEUS, draws=FEW_DRAWS, leading_dims=ONE_AXIS), 3):
        ids, chances = _drawn(subject, call)
        as_expected(call, ids, chances, "ids")


@requirement(spec.SAMP_40)
def test_an_id_as_likely_as_a_thousand_others_together_comes_half_the_time(subject):
    drawn = one_and_many(generators=["own"], temperatures=["one"], leading_dims=ONE_AXIS, draws=2000)
    for call in fixed(subject, drawn, 2):
        ids, chances = _drawn(subject, call)
        one = int(np.argmax(chances))
        as_expected(
            call, (ids != one).astype(int), np.array([chances[one], 1 - chances[one]]), "likely id and the rest"
        )


@requirement(spec.SAMP_40)
def test_ids_of_a_seed_come_as_often_as_their_probabilities_say(subject):
    for call in fixed(subject, many_rows(generators=["own"], **SEEDED), 1):
        ids, chances = _drawn(subject, call.having(seed=7))
        as_expected(call, ids, chances, "ids")


@requirement(spec.SAMP_40)
def test_ids_of_lone_rows_come_as_often_as_their_probabilities_say(subject):
    for call in fixed(subject, many_rows(**OWN, leading_dims=[(1,)], rows=(1,)), 1):
        ids, chances = _drawn_in_turn(subject, call)
        as_expected(call, ids, chances, "ids")


@requirement(
    spec.SAMP_41,
    call=tempered_nuclei(generators=["own"], top_k=[False], top_p=[True], leading_dims=ONE_AXIS, sizes=(1,), draws=500),
    share=0.1,
)
def test_what_top_p_leaves_out_never_comes_at_any_temperature(subject, call):
    fitting(subject, call, spec.ORDERS)


@requirement(spec.SAMP_41)
def test_rare_ids_come_as_rarely_as_their_probabilities_say(subject):
    for call in fixed(
        subject, rare_ids(generators=["own"], temperatures=["one"], draws=RARE_DRAWS, leading_dims=ONE_AXIS), 4
    ):
        ids, chances = _drawn(subject, call)
        rare = chances < chances.max() / 2
        seen, most = int(rare[ids].sum()), most_draws(RARE_DRAWS, float(chances[rare].sum()), ALARM)
        if seen > most:
            raise Nonconformance(
                f"ids of probability {chances[rare].sum():.2g} come {seen} times in {RARE_DRAWS} draws, at most {most} may",
                call,
            )


@requirement(spec.SAMP_42)
def test_rows_are_drawn_independently(subject):
    for call in fixed(subject, many_rows(**OWN, draws=FEW_DRAWS, leading_dims=[(2, 3)], shares=4), 3):
        ids, chances = _drawn(subject, call)
        as_expected(call, ids[::2] * len(chances) + ids[1::2], _pairs(chances), "pairs of neighbouring rows")
        half = len(ids) // 2
        as_expected(call, ids[:half] * len(chances) + ids[half:], _pairs(chances), "pairs of rows half a batch apart")
        repeats_nothing(subject, call, ids)


@requirement(spec.SAMP_42)
def test_the_two_rows_of_a_call_are_drawn_independently(subject):
    for call in fixed(subject, many_rows(**OWN, leading_dims=ONE_AXIS, rows=(2,)), 2):
        ids, chances = _drawn_in_turn(subject, call)
        as_expected(call, ids[::2] * len(chances) + ids[1::2], _pairs(chances), "pairs of rows")


@requirement(spec.SAMP_43)
def test_the_ids_of_lone_rows_do_not_depend_on_the_last(subject):
    for call in fixed(subject, many_rows(**OWN, leading_dims=[(1,)], rows=(1,)), 2):
        ids, chances = _drawn_in_turn(subject, call)
        as_expected(call, ids[::2] * len(chances) + ids[1::2], _pairs(chances), "pairs of one id and the next")


@requirement(spec.SAMP_43)
def test_the_ids_of_the_next_call_do_not_depend_on_the_last(subject):
    for call in fixed(subject, many_rows(**OWN, draws=FEW_DRAWS, leading_dims=ONE_AXIS), 3):
        first, chances = _drawn(subject, call.kept(0))
        second, _ = _drawn(subject, call.kept(0))
        for later in (0, 1, 4):
            ids = first[later:] * len(chances) + second[: len(second) - later]
            as_expected(
                call, ids, _pairs(chances), f"pairs of a row's id and that of {later} rows before in the next call"
            )


@requirement(spec.SAMP_43)
def test_a_sampler_with_a_seed_does_not_begin_again_with_each_call(subject):
    for call in fixed(subject, many_rows(**OWN, seeded=[True], leading_dims=ONE_AXIS, draws=2000, rows=(2000,)), 2):
        asked = call.having(seed=7).kept(0)
        first, second = (f64(chooses(subject, asked)) for _ in range(2))
        if (first == second).all() and _same_by_chance(subject, call) ** len(first) < ALARM:
            raise Nonconformance("the next call gives the ids of the last", asked)


@requirement(spec.SAMP_24)
def test_each_likely_id_that_the_filters_leave_is_drawn_by_a_generator_of_its_own(subject):
    for call in fixed(subject, many_rows(**NUCLEUS, leading_dims=ONE_AXIS, draws=2000, rows=(2000,)), 3):
        ids, chances = _drawn(subject, call)
        due = sure_to_come(len(ids), chances, ALARM)
        if missing := np.setdiff1d(np.flatnonzero(due), ids).tolist():
            share = chances[missing[0]]
            raise Nonconformance(f"in {len(ids)} rows id {missing[0]}, of probability {share:.3g}, does not come", call)


OTHER_SEEDS = ((7, 8), (0, 1), (7, 7 + 2**16), (2**30, 2**30 + 1))
"""A seed and another: 0 is one like any other, and some are the same in 16 bits, or as a float32. Of more than 32 bits
there is none: PyTorch's generator takes the lowest 32."""


@requirement(spec.SAMP_44)
def test_a_seed_repeats_its_ids_and_another_gives_others(subject):
    for call in fixed(subject, many_rows(**OWN, seeded=[True], leading_dims=ONE_AXIS, draws=2000, rows=(2000,)), 3):
        for seed, another in OTHER_SEEDS:
            first, again, other = (f64(chooses(subject, call.having(seed=s))) for s in (seed, seed, another))
            if (first != again).any():
                raise Nonconformance("the same seed gives other ids", call.having(seed=seed))
            if (first == other).all() and _same_by_chance(subject, call) ** len(first) < ALARM:
                raise Nonconformance(f"the seed {seed} gives the same ids", call.having(seed=another))


@requirement(spec.SAMP_42)
def test_rows_of_a_seed_do_not_all_get_one_number(subject):
    for call in fixed(subject, many_rows(**OWN, seeded=[True], leading_dims=ONE_AXIS, draws=2000, rows=(2000,)), 3):
        for seed in (0, 2**30):
            ids = f64(chooses(subject, call.having(seed=seed)))
            if (ids == ids[0]).all() and _same_by_chance(subject, call) ** (len(ids) // 2) < ALARM:
                raise Nonconformance("all rows get the same id", call.having(seed=seed))
            repeats_nothing(subject, call.having(seed=seed), ids)


def repeats_nothing(subject, call, ids):
    """The rows of a call do not begin again after the size of a block of them."""
    for rows in (128, 256, 512, 1024, 4096, 8192):
        first, second = ids[:rows], ids[rows : 2 * rows]
        if len(second) == len(first) and (first == second).all() and _same_by_chance(subject, call) ** rows < ALARM:
            raise Nonconformance(f"{rows} rows get the ids of the {rows} before", call)


def _same_by_chance(subject, call):
    """How likely two draws of a call whose rows are all alike are equal: the sum of squared probabilities."""
    chances = subject.oracle("Sampler").probabilities(subject.promised(call))[0]
    return float((chances**2).sum())


def as_expected(call, ids, chances, what):
    """The frequencies of ids keep the limit of relative entropy."""
    observed = np.bincount(ids, minlength=len(chances)) / len(ids)
    seen = observed > 0
    with np.errstate(divide="ignore"):
        entropy = float((observed[seen] * np.log(observed[seen] / chances[seen])).sum())
    limit = relative_entropy_limit(len(ids), int((chances > 0).sum()), ALARM)
    if not entropy <= limit:
        apart = float(np.abs(observed - chances).sum() / 2)
        raise Nonconformance(
            f"the {what} are not drawn by their probabilities: in {len(ids)} draws the frequencies are {apart:.3g} off in "
            f"total variation, their relative entropy {entropy:.3g} passes the limit of {limit:.3g}",
            call,
        )


def _drawn(subject, call):
    """The ids of a call whose rows are all alike, and the probabilities of such a row."""
    ids = chooses(subject, call).astype(np.int64).ravel()
    row = call.arguments["logits"].reshape(-1, call.arguments["logits"].shape[-1])[:1]
    return ids, subject.oracle("Sampler").probabilities(subject.promised(call.having(logits=row)))[0]


def _drawn_in_turn(subject, call):
    """The ids of many calls of few rows to one sampler, one call after the other, and the probabilities of a row."""
    drawn = [_drawn(subject, call.kept(0)) for _ in range(IN_TURN)]
    return np.concatenate([ids for ids, _ in drawn]), drawn[0][1]


def _pairs(chances):
    return np.outer(chances, chances).ravel()


def chooses(subject, call):
    """Each row's id is one that an honest implementation may give; return the ids."""
    return fitting(subject, call, spec.ORDERS[:1])[0]


def fitting(subject, call, orders):
    """Return the ids, and those of the orders in which an honest implementation may give all of them; one is needed."""
    got = subject.value(call)
    a, sampler = subject.promised(call), subject.oracle("Sampler")
    rows = a.logits.shape[:-1]
    if got.shape != rows:
        raise Nonconformance(f"the ids have shape {list(got.shape)}, not {list(rows)}", call)
    ids, size = f64(got), a.logits.shape[-1]
    if (strange := ~((ids >= 0) & (ids < size) & (ids == np.floor(ids)))).any():
        raise Nonconformance(f"{ids[strange].flat[0]:g} is no id of a vocabulary of {size}", call)

    def wrong(precision, order):
        allowed = sampler.allowed(a, precision, order)
        return ~np.take_along_axis(allowed, ids.astype(np.int64)[..., None], -1)[..., 0], allowed

    for precision in Precision:
        found = [wrong(precision, order) for order in orders]
        if fit := tuple(order for order, (bad, _) in zip(orders, found, strict=True) if not bad.any()):
            if precision is Precision.NATIVE:
                subject.outcome.precision = "native"
            return got, fit
        if subject.precision is Precision.FLOAT32:
            break
    bad, allowed = found[0]
    if a.uniform is not None and by_the_other_way(subject, a, ids):
        raise Nonconformance(
            "the ids are those that come in another order of the cdf, "
            + ("the likeliest first" if sampler.draws_by() == "id" else "ids ascending")
            + f": say {subject.declaring('draws_by', [other_way(sampler)])}",
            call,
        )
    where = tuple(int(i) for i in np.argwhere(bad)[0])
    may = ", ".join(str(i) for i in np.flatnonzero(allowed[where])[:6])
    uniform = "" if a.uniform is None else f" by the uniform number {float(f64(a.uniform)[where]):.9g}"
    raise Nonconformance(
        f"row {where} gives id {int(ids[where])}{uniform}, where {may or 'none'} may come; {int(bad.sum())} of "
        f"{bad.size} rows wrong" + (f" with top_p {orders[0]}" if a.top_p < 1 and a.temperature not in (0, 1) else ""),
        call,
    )


def other_way(sampler):
    return next(way for way in spec.DRAWS_BY if way != sampler.draws_by())


def by_the_other_way(subject, a, ids):
    """Whether the ids would all be right, did the subject claim to draw the other way."""
    sampler = subject.oracle("Sampler")
    allowed = sampler.allowed(a, subject.precision, draws_by=other_way(sampler))
    return np.take_along_axis(allowed, ids.astype(np.int64)[..., None], -1).all()


def gives_integers(subject, call):
    got, rows = subject.value(call), call.arguments["logits"].shape[:-1]
    if got.shape != rows:
        raise Nonconformance(f"the ids have shape {list(got.shape)}, not {list(rows)}", call)
    if got.dtype.kind not in "iu":
        raise Nonconformance(f"the ids are {got.dtype.name}; they take an integer dtype", call)


def gives_a_right_set(subject, call):
    """The oracle's survivors, and where rounding decides, a beginning of the order all the same."""
    got = subject.agrees(call)
    logits = f64(call.arguments["logits"])
    kept = (f64(got) != -np.inf) & (logits != -np.inf)
    if (kept & (f64(got) != logits)).any():
        raise Nonconformance("a survivor has another logit than before", call)
    in_order = np.take_along_axis(kept, np.argsort(-logits, axis=-1, kind="stable"), -1)
    if (in_order[..., 1:] & ~in_order[..., :-1]).any():
        raise Nonconformance("an id survives before one that is more likely", call)
    return got


def leaves_the_lowest(subject, call):
    """A right set, of equal ids the lowest; who leaves others of them is told how to say so."""
    try:
        gives_a_right_set(subject, call)
    except Nonconformance as failure:
        try:
            leaves_enough(subject, call)
        except Nonconformance:
            raise failure from None
        hint = f"; if any of equal ids may survive, declare {subject.declaring('ties', ['any'])}"
        raise Nonconformance(f"{failure}{hint}", failure.call, failure.state) from None


def leaves_enough(subject, call):
    """A right set but for which of equal ids are in it, and how many of them there are beyond those that must be."""
    got, answer, logits = f64(subject.value(call)), subject.answer(call), f64(call.arguments["logits"])
    if got.shape != logits.shape:
        raise Nonconformance(f"the result has shape {list(got.shape)}, not {list(logits.shape)}", call)
    kept, undecided = (got != -np.inf) & (logits != -np.inf), np.isinf(answer.budget)
    if (kept & (got != logits)).any():
        raise Nonconformance("a survivor has another logit than before", call)
    fewest = ((answer.value != -np.inf) & ~undecided).sum(axis=-1)
    if (few := kept.sum(axis=-1) < fewest).any():
        raise Nonconformance(f"{kept.sum(axis=-1)[few].flat[0]} ids survive, fewer than {fewest[few].flat[0]}", call)
    left = np.where(kept, logits, np.inf).min(axis=-1, keepdims=True)
    if ((logits > left) & ~kept).any():
        raise Nonconformance("an id survives, and one that is more likely does not", call)
    last = np.where((answer.value != -np.inf) | undecided, logits, np.inf).min(axis=-1, keepdims=True)
    if (kept & (logits < last)).any():
        raise Nonconformance("an id survives that is less likely than all that may", call)


def leaves(subject, call, count):
    """So many ids of each row survive, whichever they are."""
    counts = survivors(subject.value(call))
    if (wrong := counts != count).any():
        raise Nonconformance(f"{counts[wrong].flat[0]} ids survive, and {count:g} reach top_p", call)


def gives_the_set_of_the_copy(subject, call):
    """A right set; of rows that a broadcast makes all alike the copy's own, for which of them survive is asked elsewhere."""
    logits = f64(call.arguments["logits"])
    if (logits == logits[..., :1]).all():
        subject.expects(call, subject.value(replace(call, views={})))
    else:
        gives_a_right_set(subject, call)


def survivors(logits):
    """How many ids of each row a filter has left."""
    return np.count_nonzero(f64(logits) > -np.inf, axis=-1)


def _distributed(logits):
    return ~np.isnan(logits).any(axis=-1) & (logits > -np.inf).any(axis=-1)


def _with(call, arguments):
    """The same call with these arguments alone."""
    return replace(call, arguments=arguments)
