"""Does the sampler of an implementation keep the contract?"""

from typing import Any

import numpy as np

from inferspec.conformance.inputs.sampling import (
    BOTH,
    EDGES,
    EQUALS_BY_ID,
    FEW,
    HUGE,
    LARGE,
    LARGEST,
    LOWEST,
    NUCLEI_OF_MANY,
    ONE_AXIS,
    REAL,
    SEVERAL,
    SHORT_OF_ONE,
    THOUSANDS,
    WIDE,
    adversarial,
    beside_borders,
    border_draws,
    draws_beside_sums,
    exact_draws,
    greedy_calls,
    late_draws,
    limited_draws_beside_sums,
    sampler_calls,
    summed_draws,
    tempered_nuclei,
    tempered_rows,
)
from inferspec.conformance.inputs.sampling_logits import (
    LIMITS,
    MORE_THAN_1024,
    all_but_one_hidden,
    close_far_out,
    extreme,
    far_out,
    few_likely,
    lone,
    masked_at_the_end,
    near,
    neighbours,
    ordinary,
    partly_hidden,
    past_float16,
    scattered,
    tied,
    tiers,
    tiers_anywhere,
    zeros,
)
from inferspec.conformance.judging.trial import Nonconformance
from inferspec.conformance.properties.sampling import chooses, fitting, gives_integers
from inferspec.conformance.strategies import HALF, among
from inferspec.conformance.suite import requirement
from inferspec.spec import sampling_sentences as spec
from inferspec.spec.numerics import (
    f64,
)
from inferspec.spec.sampling import ORDERS

NEAR: dict[str, Any] = {
    "values": near,
    "dtypes": ["float32"],
    "temperatures": ["other"],
    "kinds": ("other",),
    "generators": ["given"],
}
"""Samplers for which it matters how small the temperature is."""


@requirement(spec.SAMP_21, call=greedy_calls(temperatures=["greedy"]), share=3.4)
def test_temperature_0_gives_the_largest_logit(subject, call):
    gives_integers(subject, call)
    chooses(subject, call)


@requirement(spec.SAMP_21, call=greedy_calls(temperatures=["greedy"], values=near, dtypes=["float32"]), share=0.3)
def test_temperature_0_gives_the_largest_of_near_logits(subject, call):
    subject.agrees(call)


@requirement(
    spec.SAMP_21,
    call=greedy_calls(temperatures=["greedy"], values=neighbours, sizes=(24, 12, 300), dtypes=HALF),
    share=0.15,
)
def test_temperature_0_gives_the_largest_logit_by_its_last_bit(subject, call):
    subject.agrees(call)


@requirement(spec.SAMP_21, call=greedy_calls(temperatures=["greedy"], values=tied))
def test_temperature_0_gives_the_lowest_of_equal_ids(subject, call):
    chooses(subject, call)


@requirement(
    spec.SAMP_21, call=greedy_calls(temperatures=["greedy"], values=all_but_one_hidden, sizes=SEVERAL), share=0.1
)
def test_temperature_0_gives_the_only_id_that_is_not_hidden(subject, call):
    subject.agrees(call)


@requirement(
    spec.SAMP_21,
    call=greedy_calls(temperatures=["greedy"], values=past_float16, sizes=SEVERAL, dtypes=["bfloat16", "float32"]),
    share=0.1,
)
def test_temperature_0_gives_the_largest_of_logits_that_float16_does_not_hold(subject, call):
    subject.agrees(call)


@requirement(
    spec.SAMP_21, call=greedy_calls(temperatures=["greedy"], values=zeros, sizes=SEVERAL, dtypes=HALF), share=0.3
)
def test_temperature_0_gives_the_lowest_of_zeros_of_either_sign(subject, call):
    chooses(subject, call)


@requirement(
    spec.SAMP_21,
    call=greedy_calls(temperatures=["greedy"], values=scattered, sizes=(*REAL, LARGEST), leading_dims=FEW),
    share=0.25,
)
def test_temperature_0_gives_the_largest_logit_of_a_large_vocabulary(subject, call):
    subject.agrees(call)


@requirement(spec.SAMP_21, call=greedy_calls(temperatures=["greedy"], values=tied, sizes=(*LARGE, 50257)), share=0.15)
def test_temperature_0_gives_the_lowest_of_thousands_of_equal_ids(subject, call):
    chooses(subject, call)


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
    spec.SAMP_50,
    call=border_draws(**EQUALS_BY_ID, generators=["given"], dtypes=["float32"], uniform_dtypes=["float32"]),
    share=0.1,
)
def test_a_number_at_the_border_of_two_ids_gives_the_second(subject, call):
    ids, right = subject.value(call), call.arguments["uniform"] * call.arguments["logits"].shape[-1]
    if (ids != right).any():
        raise Nonconformance(
            f"at the upper border of id {int(right[ids != right][0]) - 1} another than the next comes", call
        )


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


@requirement(spec.SAMP_24, call=sampler_calls(**BOTH), more=among([0, 1, 2**30]), share=0.2)
def test_ids_are_drawn_from_what_top_p_leaves_beside_a_top_k_of_the_whole_vocabulary(subject, call, more):
    chooses(subject, call.having(top_k=call.arguments["logits"].shape[-1] + more))


@requirement(spec.SAMP_24, call=sampler_calls(**BOTH), share=0.08)
def test_ids_are_drawn_from_what_top_p_leaves_beside_a_top_k_of_0(subject, call):
    chooses(subject, call.having(top_k=0))


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
        values=tiers_anywhere,
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
    call=sampler_calls(
        generators=["given"],
        top_k=[True],
        top_p=[False],
        values=tiers,
        sizes=REAL[::2],
        limits=MORE_THAN_1024,
        leading_dims=FEW[1:],
        rows=(4, 3),
        temperatures=["one"],
    ),
    share=0.03,
)
def test_ids_are_drawn_from_the_thousands_that_top_k_leaves_of_the_vocabularies_of_models(subject, call):
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
    call=sampler_calls(
        **BOTH, values=tied, sizes=SEVERAL, generators=["given"], temperatures=["one"], kinds=("one",), ties=LOWEST
    ),
    share=0.4,
)
def test_ids_are_drawn_from_what_both_filters_leave_of_equal_logits(subject, call):
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
    fitting(subject, call, ORDERS)


@requirement(spec.SAMP_24, call=tempered_rows(top_p=[True]), share=0.5)
def test_ids_are_drawn_from_what_top_p_leaves_at_any_temperature(subject, call):
    fitting(subject, call, ORDERS)


@requirement(
    spec.SAMP_24,
    call=tempered_nuclei(
        generators=["given"],
        **BOTH,
        leading_dims=ONE_AXIS,
        likely=(96, 128),
        limits=(40, 64, 50, 20),
        sizes=(300, 9000),
        draws=32,
    ),
    share=0.1,
)
def test_ids_are_drawn_from_what_top_p_leaves_of_dozens_at_any_temperature(subject, call):
    fitting(subject, call, ORDERS)


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
    orders = ORDERS
    for asked in (call, call.having(temperature=1 / call.arguments["temperature"]), other):
        _, orders = fitting(subject, asked, orders)


@requirement(
    spec.SAMP_25,
    call=tempered_nuclei(generators=["given"], top_p=[True], leading_dims=ONE_AXIS),
    alone=tempered_rows(generators=["given"], top_p=[True], leading_dims=[(1,), ()]),
)
def test_top_p_goes_where_it_goes_for_a_lone_row_too(subject, call, alone):
    orders = ORDERS
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
    orders = ORDERS
    for asked in (call, other):
        _, orders = fitting(subject, asked, orders)


@requirement(spec.SAMP_26, call=tempered_nuclei(generators=["given"], top_p=[True], leading_dims=ONE_AXIS), share=0.5)
def test_top_p_goes_after_the_temperature(subject, call):
    chooses(subject, call)


@requirement(spec.SAMP_26, call=NUCLEI, share=0.08)
def test_top_p_goes_after_the_temperature_in_a_large_vocabulary(subject, call):
    chooses(subject, call)


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
    fitting(subject, call.having(temperature=heat), ORDERS)


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
    call=sampler_calls(generators=["given"], values=few_likely, sizes=(LARGEST,), leading_dims=FEW),
    share=0.05,
)
def test_draws_from_the_largest_vocabulary_reach_every_id(subject, call):
    chooses(subject, call)


@requirement(spec.SAMP_29, call=late_draws(generators=["given"], top_p=[True], leading_dims=FEW), share=0.05)
def test_ids_of_less_than_a_millionth_that_top_p_leaves_are_drawn_too(subject, call):
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
    spec.SAMP_29, call=limited_draws_beside_sums(**BOTH, temperatures=["one"], generators=["given"]), share=0.15
)
def test_a_top_p_beside_a_sum_of_what_top_k_left_leaves_the_right_ids_to_draw_from(subject, call):
    chooses(subject, call)


@requirement(spec.SAMP_52, call=sampler_calls(generators=["given"]), share=0.1)
def test_a_sampler_made_in_one_thread_chooses_alike_in_another(subject, call):
    chooses(subject, call.in_another_thread())
