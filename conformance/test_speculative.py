"""Does an implementation of speculative decoding keep the contract? The generator is asked for ids of pairs of toys."""

import numpy as np

from inferspec.conformance.inputs.drafting import (
    APART,
    COUNTED,
    ENDINGS,
    SAMPLED,
    TEMPERED,
    UNTEMPERED,
    generate_calls,
    halves_calls,
    high_calls,
    kept_calls,
    kept_in_a_row,
    many_rounds,
    nearly_ended,
    paired_ends,
    quarters_calls,
    reached_calls,
    sampled_calls,
    several_ends,
    with_all_left,
)
from inferspec.conformance.inputs.generation import ENOUGH, ends_of
from inferspec.conformance.inputs.sampling_generators import fixed
from inferspec.conformance.judging.trial import Nonconformance
from inferspec.conformance.strategies import among
from inferspec.conformance.suite import requirement
from inferspec.spec import speculative_sentences as spec
from inferspec.spec.ends import ended, left_of
from inferspec.spec.numerics import FALSE_ALARM, STATISTICAL_CHECKS, relative_entropy_limit
from inferspec.spec.speculative import players_of, row_chances

ALARM = FALSE_ALARM / STATISTICAL_CHECKS


# greedy


@requirement(spec.SPEC_23, call=generate_calls(drafts=(4, 1, 2, 3, 5, 7)))
def test_ids_are_those_of_the_target_alone(subject, call):
    subject.agrees(call)


@requirement(spec.SPEC_23, call=generate_calls(limits=(40, 70), vocabularies=ENOUGH, stops=[0]), share=0.3)
def test_many_ids_are_those_of_the_target_alone(subject, call):
    subject.agrees(call)


@requirement(spec.SPEC_23, call=generate_calls(barred=True), share=0.1)
def test_ids_that_must_not_come_have_logits_of_minus_infinity_in_the_target(subject, call):
    subject.agrees(call)


@requirement(spec.SPEC_23, call=sampled_calls(limits=(6, 9), drafters=APART, free=True, **SAMPLED), share=0.1)
def test_filters_and_uniform_numbers_do_not_matter_at_temperature_0(subject, call):
    subject.agrees(call.having(temperature=0.0))


@requirement(spec.SPEC_24, call=generate_calls(drafts=(1, 2, 3, 4, 8, 16, 64), limits=(1, 2, 3, 5, 9, 20)), share=0.8)
def test_any_number_of_drafts_gives_the_same_ids(subject, call):
    subject.agrees(call)


@requirement(
    spec.SPEC_24, call=generate_calls(drafts=(16, 64, 8, 9), limits=(40, 20), drafters=["near", "same"]), share=0.3
)
def test_dozens_of_drafts_are_all_verified(subject, call):
    subject.agrees(call)


@requirement(
    spec.SPEC_25,
    call=generate_calls(drafts=(0,), zero_num_draft_tokens=[True], drafters=["same", "wrong", "other"]),
    share=0.5,
)
def test_without_drafts_the_target_decodes_alone(subject, call):
    reach = subject.parts(call.having(seen=("ids", "reach")))["reach"]
    subject.agrees(call)
    if reach[1] > 0:
        raise Nonconformance(f"the draft is fed {int(reach[1])} ids for num_draft_tokens=0", call)


@requirement(
    spec.SPEC_25,
    call=sampled_calls(drafts=(0,), near=(True, False), zero_num_draft_tokens=[True], **UNTEMPERED),
    share=0.3,
)
def test_without_drafts_a_uniform_number_draws_each_id(subject, call):
    subject.agrees(call)


@requirement(
    spec.SPEC_25, call=sampled_calls(drafts=(0,), near=(True,), zero_num_draft_tokens=[True], **UNTEMPERED), share=0.3
)
def test_without_drafts_a_top_p_beside_a_sum_of_probabilities_leaves_the_right_ids(subject, call):
    subject.agrees(call)


@requirement(spec.SPEC_25, call=sampled_calls(drafts=(0,), zero_num_draft_tokens=[True], **TEMPERED), share=0.3)
def test_without_drafts_a_uniform_number_draws_each_id_at_any_temperature(subject, call):
    subject.agrees(call)


@requirement(
    spec.SPEC_26,
    call=generate_calls(
        stops=[1, 2, 3, 9], stop_at=ENDINGS, limits=(12,), drafters=["same", "near"], vocabularies=ENOUGH
    ),
)
def test_an_end_of_sequence_id_in_a_run_of_drafts_ends_the_ids(subject, call):
    subject.agrees(call)


@requirement(spec.SPEC_26, call=generate_calls(stops=[1, 2, 3, 9], stop_at=ENDINGS, limits=(12, 5)))
def test_an_end_of_sequence_id_ends_the_ids_whatever_the_draft(subject, call):
    subject.agrees(call)


@requirement(spec.SPEC_26, call=nearly_ended(stops=[1, 2, 3]), share=0.04)
def test_an_id_that_is_like_an_end_in_its_low_bits_ends_nothing(subject, call):
    subject.agrees(call)


@requirement(
    spec.SPEC_26,
    call=generate_calls(stops=[9], stop_at=ENDINGS, more_stops=(60, 30), limits=(12, 5), vocabularies=ENOUGH),
    share=0.2,
)
def test_any_of_dozens_of_end_of_sequence_ids_ends_the_ids(subject, call):
    subject.agrees(call)


@requirement(
    spec.SPEC_26,
    call=generate_calls(stops=[9], stop_at=(1, 0, 2), more_stops=(1500, 400), limits=(5,), vocabularies=(3000, 2000)),
    share=0.15,
)
def test_any_of_hundreds_of_end_of_sequence_ids_ends_the_ids(subject, call):
    subject.agrees(call)


@requirement(
    spec.SPEC_26,
    call=generate_calls(
        stops=[1], stop_at=(7, 6, 12), limits=(20,), drafts=(7, 12), drafters=["same"], vocabularies=ENOUGH
    ),
    share=0.15,
)
def test_an_end_of_sequence_id_may_be_the_last_of_many_drafts(subject, call):
    subject.agrees(call)


@requirement(spec.SPEC_26, call=generate_calls(stops=[1], stop_at=(0,)), share=0.3)
def test_an_end_of_sequence_id_may_be_the_first(subject, call):
    subject.expects(call, lambda meant: {"ids": left_of(*meant.arguments["eos"], ends_of(meant))})


@requirement(
    spec.SPEC_26, call=sampled_calls(limits=(5, 3, 9), free=True, **SAMPLED, stops=[1]), at=among(range(3)), share=0.3
)
def test_an_end_of_sequence_id_ends_ids_that_are_drawn(subject, call, at):
    ids = subject.parts(call)["ids"].astype(int).tolist()
    end = ids[min(at, len(ids) - 1)] if ids else 0
    subject.expects(call.having(eos=(end,)), lambda meant: {"ids": ended(ids, (end,), ends_of(meant))})


@requirement(
    spec.SPEC_26,
    call=generate_calls(
        stops=[1, 2], stop_at=(1, 0, 2), zero_num_draft_tokens=[True], drafts=(0,), vocabularies=ENOUGH
    ),
    share=0.2,
)
def test_an_end_of_sequence_id_ends_ids_of_rounds_without_a_draft(subject, call):
    subject.agrees(call)


@requirement(
    spec.SPEC_26,
    call=generate_calls(stops=[1, 2], stop_at=(70, 20, 13), limits=(80,), vocabularies=(700,)),
    share=0.2,
)
def test_an_end_of_sequence_id_ends_the_ids_after_dozens(subject, call):
    subject.agrees(call)


@requirement(spec.SPEC_26, call=several_ends(stops=[2], drafters=["same"]), share=0.1)
def test_of_several_ends_in_a_round_the_first_that_comes_ends_the_ids(subject, call):
    subject.agrees(call)


@requirement(spec.SPEC_26, call=paired_ends(stops=[1]), share=0.3)
def test_an_id_that_ends_two_requests_ends_both(subject, call):
    # Its ends are those of the first.
    beside = {name: value for name, value in call.arguments["beside"].items() if name != "eos"}
    subject.agrees(call.having(beside=beside))


@requirement(
    spec.SPEC_26,
    call=generate_calls(stops=[1, 2], stop_at=(12,), limits=(7, 5, 12), drafters=["same"], vocabularies=ENOUGH),
    share=0.3,
)
def test_an_end_of_sequence_id_past_the_limit_does_not_come(subject, call):
    subject.agrees(call.having(max_tokens=call.arguments["max_tokens"] - 1))


@requirement(spec.SPEC_27, call=generate_calls(limits=(0, 1, 2, 3, 4, 6, 7, 11), drafters=["same"], stops=[0]))
def test_the_limit_cuts_a_run_of_drafts(subject, call):
    subject.agrees(call)


@requirement(spec.SPEC_27, call=generate_calls(limits=(0, 1, 2, 3, 5, 8, 13)))
def test_so_many_ids_come_out_as_were_asked_for(subject, call):
    subject.agrees(call)


@requirement(spec.SPEC_27, call=generate_calls(limits=(130, 40), vocabularies=(1,), stops=[0]), share=0.04)
def test_the_same_id_may_come_over_and_over(subject, call):
    subject.agrees(call)


@requirement(spec.SPEC_27, call=sampled_calls(limits=(0, 1, 2, 3, 7), free=True, **SAMPLED), share=0.5)
def test_so_many_ids_are_drawn_as_were_asked_for(subject, call):
    drawn = len(subject.parts(call)["ids"])
    if drawn != call.arguments["max_tokens"]:
        raise Nonconformance(f"{drawn} ids come out, not {call.arguments['max_tokens']}", call)


# sampled


@requirement(spec.SPEC_34, call=sampled_calls(free=True, temperatures=["one", "other"], filters=["top_k"]), share=0.1)
def test_a_top_k_of_one_leaves_nothing_to_chance(subject, call):
    subject.agrees(call.having(top_k=1))


@requirement(
    spec.SPEC_34, call=halves_calls(shapes=((1, 2),), size=2, temperatures=["one"], filters=["top_k"]), share=0.05
)
def test_a_top_k_of_the_whole_vocabulary_leaves_all(subject, call):
    subject.agrees(with_all_left(call))


@requirement(spec.SPEC_34, call=halves_calls(**UNTEMPERED), share=0.35)
def test_short_outputs_have_the_joint_distribution_of_the_target(subject, call):
    subject.agrees(call)


@requirement(spec.SPEC_34, call=halves_calls(**TEMPERED), share=0.3)
def test_short_outputs_have_the_joint_distribution_of_the_tempered_target(subject, call):
    subject.agrees(call)


@requirement(spec.SPEC_34, call=kept_in_a_row(temperatures=["one", "other"]), share=0.05)
def test_each_draft_of_a_round_is_kept_by_a_chance_of_its_own(subject, call):
    subject.agrees(call)


@requirement(spec.SPEC_34, call=kept_calls(temperatures=["other"], filters=["none"]), share=0.1)
def test_what_comes_first_and_last_of_a_round_is_tempered(subject, call):
    subject.agrees(call)


@requirement(spec.SPEC_34, call=high_calls(temperatures=["other"], filters=["none"]), share=0.06)
def test_logits_far_from_zero_are_tempered_by_their_differences(subject, call):
    subject.agrees(call)


@requirement(spec.SPEC_35)
def test_every_id_is_as_likely_as_the_target_says(subject):
    for call in fixed(subject, many_rounds(temperatures=["one"], filters=["none"], dtypes=["float32"]), 2):
        _as_likely_as_said(subject, call)


@requirement(spec.SPEC_35)
def test_every_id_is_as_likely_as_the_tempered_and_filtered_target_says(subject):
    for call in fixed(subject, many_rounds(temperatures=["other"], filters=["top_k"], dtypes=["float32"]), 2):
        _as_likely_as_said(subject, call)


def _as_likely_as_said(subject, call):
    ids = subject.parts(call)["ids"].astype(int).tolist()
    a, text = subject.promised(call), [*call.arguments["tokens"], *ids]
    table = players_of(a)[0].toy
    places = [table.place(state) for state in table.states(text[:-1])][len(a.tokens) - 1 :]
    for place, chances in enumerate(row_chances(a)):
        # So many of each row are independent draws from it; how many more there are depends on what was drawn.
        drawn = [token for token, after in zip(ids, places, strict=True) if after == place][:COUNTED]
        as_likely(call, drawn, chances)


def as_likely(call, drawn, chances):
    """The frequencies keep the bound that an honest implementation passes but for a chance of ALARM."""
    if len(drawn) < COUNTED or not all(0 <= token < len(chances) for token in drawn):
        raise Nonconformance(f"{len(drawn)} ids came after one kind of history, not {COUNTED} of the vocabulary", call)
    observed = np.bincount(drawn, minlength=len(chances)) / len(drawn)
    with np.errstate(divide="ignore", invalid="ignore"):
        entropy = float(np.where(observed > 0, observed * np.log(observed / chances), 0.0).sum())
    limit = relative_entropy_limit(len(drawn), int((chances > 0).sum()), ALARM)
    if not entropy <= limit:
        off = float(np.abs(observed - chances).sum() / 2)
        raise Nonconformance(
            f"the ids are not drawn by the target's probabilities: in {len(drawn)} draws the frequencies are {off:.3g} off in "
            f"total variation, their relative entropy {entropy:.3g} passes the limit of {limit:.3g}",
            call,
        )


@requirement(spec.SPEC_59, call=halves_calls(temperatures=["other"], filters=["top_p", "both"]), share=0.2)
def test_top_p_sees_tempered_probabilities(subject, call):
    subject.agrees(call)


@requirement(spec.SPEC_62, call=reached_calls(temperatures=["one"], filters=["top_p"]), share=0.1)
def test_none_comes_out_after_those_that_reach_top_p_exactly(subject, call):
    size = len(call.arguments["target"]["rows"][0])
    left = round(call.arguments["top_p"] * size)
    outputs = subject.parts(call)["distribution"][:-1].reshape(size, size) > 0
    # Which of them are left is nobody's promise.
    for place, drawn in (("first", outputs.any(axis=1)), ("second", outputs.any(axis=0))):
        if drawn.sum() != left:
            raise Nonconformance(f"{drawn.sum()} different ids come out as the {place}; {left} reach top_p", call)


@requirement(spec.SPEC_36, call=sampled_calls(near=(False, True), **SAMPLED, seen=("ids", "drawn")))
def test_uniform_numbers_are_taken_in_order(subject, call):
    subject.agrees(call)


@requirement(
    spec.SPEC_36,
    call=sampled_calls(
        drafts=(33, 17, 12), limits=(70, 40), drafters=["same", "near"], **SAMPLED, seen=("ids", "drawn")
    ),
    share=0.1,
)
def test_uniform_numbers_of_a_dozen_drafts_are_taken_in_order(subject, call):
    subject.agrees(call)


@requirement(
    spec.SPEC_36, call=sampled_calls(vocabularies=(3000, 300, 1100), **SAMPLED, seen=("ids", "drawn")), share=0.06
)
def test_uniform_numbers_draw_among_thousands_of_ids(subject, call):
    subject.agrees(call)


@requirement(spec.SPEC_36, call=sampled_calls(near=(True,), **UNTEMPERED, seen=("ids", "drawn")), share=0.3)
def test_a_top_p_beside_a_sum_of_probabilities_leaves_drafts_the_right_ids(subject, call):
    subject.agrees(call)


@requirement(spec.SPEC_36, call=quarters_calls(**SAMPLED, filters=["none"]), share=0.05)
def test_all_outputs_of_a_round_come_as_verify_draws_them(subject, call):
    subject.agrees(call)


@requirement(spec.SPEC_36, call=halves_calls(shapes=((2, 3),), **SAMPLED), share=0.03)
def test_all_outputs_of_three_ids_come_as_verify_draws_them(subject, call):
    subject.agrees(call)
