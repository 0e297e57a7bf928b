"""Does the sampler of an implementation take its arrays as it should: rows, those without a distribution, views,
and what is refused?"""

import math

import numpy as np

from inferspec.conformance.inputs.sampling import (
    BAD_TOP_P,
    BATCHES,
    DOZENS,
    FAR_BELOW,
    FEW,
    HUNDREDS,
    MANY,
    MANY_ROWS,
    MANY_TO_LOOK_AT,
    MANY_WIDE,
    ONE_AXIS,
    SEVERAL,
    VERY_MANY,
    WIDE_ROWS,
    another_temperature,
    greedy_calls,
    sampler_calls,
    tempered_rows,
)
from inferspec.conformance.inputs.sampling_logits import (
    LIMITS,
    far_out,
    fine,
    ordinary,
    ranked,
    some_broken,
    tied_beside_broken,
    tiers,
)
from inferspec.conformance.judging.trial import Nonconformance
from inferspec.conformance.properties.common import (
    claimed,
    depends_on_arguments_alone,
    goes_on_after_a_refused_call,
    keeps_arguments,
    refuses,
)
from inferspec.conformance.properties.sampling import chooses, distributed, fitting, gives_integers
from inferspec.conformance.strategies import among, bottom_up, in_views
from inferspec.conformance.suite import requirement
from inferspec.spec import sampling_sentences as spec
from inferspec.spec.numerics import f64, round_to
from inferspec.spec.sampling import ORDERS


@requirement(spec.SAMP_27, call=sampler_calls(leading_dims=BATCHES))
def test_each_row_is_drawn_by_itself(subject, call):
    chooses(subject, call)


@requirement(
    spec.SAMP_27,
    call=sampler_calls(generators=["given"], kinds=("one",), filtered=False, **FAR_BELOW),
    share=0.05,
)
def test_a_row_far_below_others_is_drawn_by_its_own_differences(subject, call):
    chooses(subject, call)


@requirement(spec.SAMP_27, call=tempered_rows(top_p=[True], leading_dims=BATCHES), share=0.5)
def test_each_row_has_a_nucleus_of_its_own_at_any_temperature(subject, call):
    fitting(subject, call, ORDERS)


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


@requirement(
    spec.SAMP_27,
    call=tempered_rows(top_p=[True], generators=["given"], leading_dims=[(1,), (2,)], rows=HUNDREDS),
    share=0.1,
)
def test_each_of_many_rows_has_a_nucleus_of_its_own(subject, call):
    fitting(subject, call, ORDERS)


@requirement(
    spec.SAMP_27,
    call=sampler_calls(
        **DOZENS, generators=["given"], values=tiers, limits=LIMITS, leading_dims=[(1,), (2,)], rows=HUNDREDS
    ),
    share=0.05,
)
def test_each_of_many_rows_is_drawn_from_its_dozens(subject, call):
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


@requirement(spec.SAMP_27, call=sampler_calls(top_p=[False], **MANY_WIDE), share=0.04)
def test_each_of_many_rows_of_more_than_a_thousand_ids_is_drawn(subject, call):
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
    call=greedy_calls(
        values=tied_beside_broken,
        sizes=SEVERAL,
        leading_dims=BATCHES[:2],
        temperatures=["greedy"],
        without_distribution=[True],
    ),
    share=0.1,
)
def test_a_row_without_a_distribution_leaves_others_the_lowest_of_equal_ids(subject, call):
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
    subject.agrees(call, ~distributed(f64(call.arguments["logits"])))


@requirement(spec.SAMP_32, call=in_views(sampler_calls(generators=["given"], sizes=(5, 3, 12, 24, 65))), share=1.5)
def test_strided_arguments_give_the_ids_of_their_copies(subject, call):
    chooses(subject, call)


@requirement(spec.SAMP_32, call=sampler_calls(generators=["given"], leading_dims=BATCHES), share=0.1)
def test_ids_of_rows_of_logits_that_lie_backwards_are_those_of_their_copies(subject, call):
    chooses(subject, bottom_up(call, "logits"))


@requirement(spec.SAMP_32, call=in_views(greedy_calls(temperatures=["greedy"]), "logits"), share=0.1)
def test_the_largest_of_strided_logits_is_that_of_their_copy(subject, call):
    subject.agrees(call)


@requirement(
    spec.SAMP_32, call=in_views(sampler_calls(generators=["given"], sizes=(4097, 300), leading_dims=FEW)), share=0.1
)
def test_strided_logits_of_a_large_vocabulary_give_the_ids_of_their_copies(subject, call):
    chooses(subject, call)


@requirement(
    spec.SAMP_32,
    call=in_views(sampler_calls(**DOZENS, generators=["given"], values=tiers, limits=LIMITS), "logits"),
    share=0.1,
)
def test_ids_drawn_from_the_dozens_of_strided_logits_are_those_of_their_copy(subject, call):
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


@requirement(spec.SAMP_34, call=sampler_calls(**DOZENS, values=tiers, limits=LIMITS), share=0.05)
def test_the_sampler_changes_no_argument_where_it_draws_from_dozens(subject, call):
    keeps_arguments(subject, call)


@requirement(spec.SAMP_34, call=greedy_calls(temperatures=["greedy"]), share=0.1)
def test_the_sampler_changes_no_argument_at_temperature_0(subject, call):
    keeps_arguments(subject, call)


@requirement(spec.SAMP_35, call=sampler_calls(generators=["given"], values=ordinary))
def test_other_draws_in_between_change_nothing(subject, call):
    other = call.having(logits=-call.arguments["logits"], uniform=np.asarray(call.arguments["uniform"] / 2))
    depends_on_arguments_alone(subject, call.kept(0), other.kept(0), draws=False)


@requirement(spec.SAMP_35, call=sampler_calls(generators=["given"], values=ordinary), share=0.5)
def test_another_sampler_in_between_changes_nothing(subject, call):
    other = call.having(temperature=another_temperature(subject), top_p=1.0)
    depends_on_arguments_alone(subject, call.kept(0), other.kept(1), draws=False)


@requirement(
    spec.SAMP_35,
    call=sampler_calls(generators=["given"], values=ordinary, top_k=[True], top_p=[False], temperatures=["one"]),
    share=0.2,
)
def test_a_sampler_without_top_k_in_between_changes_nothing(subject, call):
    # Hidden by the largest ids' share, if the number is small.
    call = call.having(uniform=np.full_like(call.arguments["uniform"], 0.99))
    depends_on_arguments_alone(subject, call.kept(0), call.having(top_k=None).kept(1), draws=False)


@requirement(spec.SAMP_35, call=sampler_calls(generators=["given"], values=fine, sizes=(24, 300, 12)), share=0.2)
def test_a_sampler_goes_on_to_another_vocabulary_and_other_rows(subject, call):
    logits, uniform = call.arguments["logits"], call.arguments["uniform"]
    few = call.having(logits=logits[..., :5].copy())
    first = call.having(logits=logits[:1].copy(), uniform=uniform[:1].copy()) if logits.ndim > 1 else few
    for one in (few, call, first, call):
        subject.agrees(one.kept(0))


@requirement(
    spec.SAMP_35,
    call=sampler_calls(generators=["given"], dtypes=["float32"], values=far_out, sizes=(24, 12), filtered=False),
    share=0.1,
)
def test_a_sampler_goes_on_to_another_dtype(subject, call):
    coarse = round_to(f64(call.arguments["logits"]), claimed(subject, "dtypes", "bfloat16", ["bfloat16"]))
    for one in (call.having(logits=coarse), call):
        subject.agrees(one.kept(0))


@requirement(
    spec.SAMP_35, call=sampler_calls(generators=["given"], leading_dims=[(2,), (2, 3)], filtered=False), share=0.1
)
def test_a_call_that_is_refused_in_between_changes_no_ids(subject, call):
    column = call.having(uniform=call.arguments["uniform"][..., None] / 2)
    goes_on_after_a_refused_call(subject, call.kept(0), column.kept(0))


@requirement(spec.SAMP_36, call=sampler_calls(), heat=among([-1.0, -0.1, -1e-6, -math.inf]), share=0.3)
def test_a_temperature_below_0_is_refused(subject, call, heat):
    refuses(subject, call, temperature=heat)


@requirement(spec.SAMP_46, call=sampler_calls(), share=0.1)
def test_a_temperature_of_nan_is_refused(subject, call):
    refuses(subject, call, temperature=float("nan"))


@requirement(spec.SAMP_37, call=sampler_calls(top_p=[True]), top_p=BAD_TOP_P, share=0.3)
def test_a_sampler_with_a_top_p_that_is_no_share_is_refused(subject, call, top_p):
    refuses(subject, call, top_p=top_p)


@requirement(spec.SAMP_37, call=greedy_calls(temperatures=["greedy"], top_p=[True]), top_p=BAD_TOP_P, share=0.1)
def test_a_top_p_that_is_no_share_is_refused_at_temperature_0(subject, call, top_p):
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
