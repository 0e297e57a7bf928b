"""Do the filters of an implementation keep the contract?"""

import math
from dataclasses import replace

import numpy as np

from inferspec.conformance.inputs.sampling import (
    BOTH,
    FEW,
    LARGE,
    LOWEST,
    MILLIONTHS,
    REAL,
    SEVERAL,
    THOUSANDS,
    WIDE,
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
    crowded,
    nearly_alike,
    ordinary,
    partly_hidden,
    scattered,
    tied,
    tiers,
    tiers_anywhere,
)
from inferspec.conformance.judging.trial import Nonconformance
from inferspec.conformance.properties.sampling_filters import (
    gives_a_right_set,
    leaves,
    leaves_enough,
    leaves_the_likeliest,
    leaves_the_lowest,
    survivors,
)
from inferspec.conformance.strategies import ODD_TILES, among
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
    as_many_survive(subject, call)


@requirement(spec.SAMP_09, call=summed_filters(top_p=[True], leading_dims=FEW, **MILLIONTHS), share=0.05)
def test_probabilities_of_less_than_a_millionth_are_summed_too(subject, call):
    as_many_survive(subject, call)


def as_many_survive(subject, call):
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


def _with(call, arguments):
    """The same call with these arguments alone."""
    return replace(call, arguments=arguments)
