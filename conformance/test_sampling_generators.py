"""Does a sampler that draws from a generator of its own keep the contract?

Few calls of many draws, each check with its share of the false alarms."""

from typing import Any

import numpy as np

from inferspec.conformance.calls import VIEWS
from inferspec.conformance.inputs.sampling import BATCHES, FEW, LARGEST, ONE_AXIS, tempered_nuclei
from inferspec.conformance.inputs.sampling_generators import (
    FEW_DRAWS,
    RARE_DRAWS,
    certain_rows,
    cold_rows,
    fixed,
    many_rows,
    one_and_many,
    rare_ids,
    thousands_left,
    unlikely_last,
)
from inferspec.conformance.judging.trial import Nonconformance
from inferspec.conformance.properties.sampling import chooses, fitting
from inferspec.conformance.strategies import bottom_up, in_views
from inferspec.conformance.suite import requirement
from inferspec.spec import sampling_sentences as spec
from inferspec.spec.numerics import (
    FALSE_ALARM,
    STATISTICAL_CHECKS,
    f64,
    most_draws,
    relative_entropy_limit,
    sure_to_come,
)
from inferspec.spec.sampling import ORDERS

IN_TURN = 400
"""Calls of one or two rows, as a server makes them, that show how their ids are drawn."""
OWN: dict[str, Any] = {"generators": ["own"], "sizes": (4, 3, 5)}
NUCLEUS: dict[str, Any] = {"generators": ["own"], "top_k": [False], "top_p": [True]}
SEEDED: dict[str, Any] = {
    "seeded": [True],
    "top_p": [False],
    "temperatures": ["other"],
    "draws": FEW_DRAWS,
    "leading_dims": ONE_AXIS,
}
STRIDED = [view for view in VIEWS if view != "broadcast"]
"""A row of equal logits has none that is certain."""
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


@requirement(spec.SAMP_40)
def test_the_last_and_least_likely_id_comes(subject):
    for call in fixed(
        subject, unlikely_last(generators=["own"], temperatures=["one"], draws=RARE_DRAWS, leading_dims=ONE_AXIS), 1
    ):
        ids, chances = _drawn(subject, call)
        last = len(chances) - 1
        if sure_to_come(len(ids), chances[last:], ALARM).all() and last not in ids:
            raise Nonconformance(
                f"in {len(ids)} rows id {last}, of probability {chances[last]:.3g}, does not come", call
            )


@requirement(
    spec.SAMP_41,
    call=tempered_nuclei(
        generators=["own"], top_k=[False], top_p=[True], leading_dims=ONE_AXIS, sizes=(1, 300), draws=500
    ),
    share=0.1,
)
def test_what_top_p_leaves_out_never_comes_at_any_temperature(subject, call):
    fitting(subject, call, ORDERS)


@requirement(spec.SAMP_41)
def test_what_a_sampler_leaves_out_never_comes_once_another_was_made(subject):
    for call in fixed(subject, many_rows(**NUCLEUS, leading_dims=ONE_AXIS, draws=2000, rows=(2000,)), 1):
        own, other = call.kept(0), call.having(top_p=1.0).kept(1)
        for asked in (own, other, own):
            chooses(subject, asked)


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


@requirement(
    spec.SAMP_25,
    call=tempered_nuclei(generators=["own"], top_p=[True], leading_dims=ONE_AXIS, sizes=(1,), draws=500),
    share=0.1,
)
def test_top_p_goes_after_the_temperature_always_or_before_it_always_in_draws_of_its_own(subject, call):
    orders = ORDERS
    for asked in (call, call.having(temperature=1 / call.arguments["temperature"])):
        _, orders = fitting(subject, asked, orders)


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


@requirement(spec.SAMP_24)
def test_ids_of_a_generator_of_its_own_come_from_all_thousands_that_a_filter_leaves(subject):
    for call in fixed(
        subject, thousands_left(generators=["own"], temperatures=["one"], leading_dims=ONE_AXIS, draws=48), 2
    ):
        ids, chances = _drawn(subject, call)
        late = np.argsort(-chances, kind="stable")[1024:]
        if sure_to_come(len(ids), chances[late].sum(keepdims=True), ALARM).all() and not np.isin(ids, late).any():
            raise Nonconformance(f"in {len(ids)} rows only ids of the 1024 likeliest come, of {len(chances)}", call)


@requirement(spec.SAMP_27, call=certain_rows(generators=["own"], leading_dims=BATCHES), share=0.1)
def test_each_row_is_drawn_by_a_generator_of_its_own_from_its_own_logits(subject, call):
    gives_the_certain(subject, call)


@requirement(spec.SAMP_28)
def test_ids_of_a_generator_of_its_own_are_those_of_low_temperatures_too(subject):
    for call in fixed(
        subject, cold_rows(generators=["own"], temperatures=["other"], leading_dims=ONE_AXIS, draws=2000), 1
    ):
        ids, chances = _drawn(subject, call)
        rare = np.arange(len(chances)) != np.argmax(chances)
        seen, most = int(rare[ids].sum()), most_draws(len(ids), float(chances[rare].sum()), ALARM)
        if seen > most:
            raise Nonconformance(
                f"ids of probability {chances[rare].sum():.2g} come {seen} times, at most {most} may", call
            )


@requirement(spec.SAMP_29, call=certain_rows(generators=["own"], leading_dims=FEW, sizes=(151936, LARGEST)), share=0.05)
def test_ids_of_a_large_vocabulary_are_drawn_by_a_generator_of_its_own(subject, call):
    gives_the_certain(subject, call)


@requirement(spec.SAMP_32, call=in_views(certain_rows(generators=["own"]), "logits", views=STRIDED), share=0.2)
def test_a_generator_of_its_own_draws_from_strided_logits_as_from_their_copy(subject, call):
    gives_the_certain(subject, call)


@requirement(spec.SAMP_32, call=certain_rows(generators=["own"], leading_dims=BATCHES), share=0.1)
def test_a_generator_of_its_own_draws_from_rows_that_lie_backwards(subject, call):
    gives_the_certain(subject, bottom_up(call, "logits"))


@requirement(spec.SAMP_35, call=certain_rows(generators=["own"]), share=0.1)
def test_each_draw_of_a_generator_of_its_own_is_from_the_logits_of_its_call(subject, call):
    other = call.having(logits=np.roll(call.arguments["logits"], 1, axis=-1))
    for asked in (call, other, call):
        gives_the_certain(subject, asked.kept(0))


@requirement(spec.SAMP_51)
def test_samplers_without_a_seed_do_not_begin_alike(subject):
    for call in fixed(subject, many_rows(**OWN, leading_dims=ONE_AXIS, draws=2000, rows=(2000,)), 1):
        first, second = (f64(chooses(subject, call.kept(number))) for number in (0, 1))
        if (first == second).all() and _same_by_chance(subject, call) ** len(first) < ALARM:
            raise Nonconformance("another sampler gives the same ids", call)


@requirement(spec.SAMP_52)
def test_a_sampler_made_in_one_thread_draws_on_in_another(subject):
    for call in fixed(subject, many_rows(**OWN, leading_dims=ONE_AXIS, draws=2000, rows=(2000,)), 1):
        elsewhere = call.kept(0).in_another_thread()
        first, second = (f64(chooses(subject, elsewhere)) for _ in range(2))
        alike = (first == second).all() or (first == first[0]).all()
        if alike and _same_by_chance(subject, call) ** (len(first) // 2) < ALARM:
            raise Nonconformance("all draws of another thread are the same", elsewhere)


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


@requirement(spec.SAMP_44)
def test_samplers_of_two_seeds_do_not_share_a_stream(subject):
    for call in fixed(subject, many_rows(**OWN, seeded=[True], leading_dims=ONE_AXIS, draws=2000, rows=(2000,)), 1):
        one, other = call.having(seed=7), call.having(seed=8)
        alone = [f64(chooses(subject, one.kept(0))) for _ in range(2)]
        first, _, second = (f64(chooses(subject, asked)) for asked in (one.kept(1), other.kept(2), one.kept(1)))
        if not np.array_equal(alone, [first, second]):
            raise Nonconformance("a sampler with another seed beside it changes its ids", one)


@requirement(spec.SAMP_42)
def test_rows_of_a_seed_do_not_all_get_one_number(subject):
    for call in fixed(subject, many_rows(**OWN, seeded=[True], leading_dims=ONE_AXIS, draws=2000, rows=(2000,)), 3):
        for seed in (0, 2**30):
            ids = f64(chooses(subject, call.having(seed=seed)))
            if (ids == ids[0]).all() and _same_by_chance(subject, call) ** (len(ids) // 2) < ALARM:
                raise Nonconformance("all rows get the same id", call.having(seed=seed))
            repeats_nothing(subject, call.having(seed=seed), ids)


def gives_the_certain(subject, call):
    """Each row gives the id that is as good as certain."""
    ids, right = chooses(subject, call), np.argmax(f64(call.arguments["logits"]), axis=-1)
    if (wrong := f64(ids) != right).any():
        place = tuple(int(i) for i in np.argwhere(wrong)[0])
        raise Nonconformance(
            f"row {place} gives id {int(ids[place])}, where id {int(right[place])} is certain; {int(wrong.sum())} of {wrong.size} rows wrong",
            call,
        )


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
