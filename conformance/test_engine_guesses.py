"""Does a serving engine keep the contract where a draft guesses for it?"""

from inferspec.conformance.inputs.engine import (
    budgets,
    close_pairs,
    crowds,
    short_pools,
)
from inferspec.conformance.inputs.engine_drafts import (
    dozens_of_guesses,
    guessed_after_failures,
    guessed_again,
    guessed_beside,
    guessed_in_part,
    guessed_right,
    guessed_side_by_side,
    guessed_when_resumed,
    guesses_asked_for,
    guessing_beside_long_prompts,
    rounds,
    short_drafts,
)
from inferspec.conformance.inputs.engine_ends import stopping_late_in_a_burst
from inferspec.conformance.inputs.engine_leavers import cancelling_in_short_pools, many_that_some_leave
from inferspec.conformance.inputs.engine_prefixes import (
    asked_twice,
    sharing,
)
from inferspec.conformance.inputs.engine_queues import (
    before_preempted,
    late_arrivals,
    queues,
    resumed_prompts,
    small_behind_large,
    small_behind_preempted,
)
from inferspec.conformance.inputs.engine_script import GUESSING
from inferspec.conformance.judging.trial import Nonconformance
from inferspec.conformance.properties.engine import (
    begins_its_output,
    gives_right_guesses_together,
    goes_before_who_gave_way,
    goes_first,
    guesses_after_failures,
    guesses_as_without_the_other,
    guesses_once_resumed,
    is_computed_again,
    is_computed_once,
    is_not_overtaken_once_preempted,
    keeps_its_budget,
    keeps_its_budget_once_resumed,
    runs_no_more_than_may,
    tells_its_logits,
    without_what_is_refused,
)
from inferspec.conformance.suite import requirement
from inferspec.spec import engine as spec

# what comes out


@requirement(spec.ENG_10, call=guesses_asked_for(), share=0.2)
def test_a_prompt_may_go_on_from_wrong_guesses(subject, call):
    subject.agrees(call)


@requirement(spec.ENG_10, call=dozens_of_guesses(), share=0.02)
def test_dozens_of_wrong_guesses_do_not_show(subject, call):
    subject.agrees(call)


@requirement(spec.ENG_10, call=crowds(drafts=["near", "other"]), share=0.2)
def test_wrong_guesses_do_not_show(subject, call):
    subject.agrees(call)


@requirement(spec.ENG_10, call=short_pools(**GUESSING), share=0.3)
def test_guesses_in_a_short_pool_do_not_show(subject, call):
    subject.agrees(call)


@requirement(spec.ENG_10, call=sharing(**GUESSING), share=0.4)
def test_guesses_after_hits_do_not_show(subject, call):
    subject.agrees(call)


@requirement(spec.ENG_10, call=guessing_beside_long_prompts(), share=0.04)
def test_guesses_beside_long_prompts_do_not_show(subject, call):
    subject.agrees(call)


@requirement(spec.ENG_11, call=crowds(drafts=["perfect"]), share=0.15)
def test_right_guesses_do_not_show(subject, call):
    subject.agrees(call)


@requirement(spec.ENG_48, story=short_drafts(), share=0.1)
def test_a_draft_of_fewer_positions_does_not_show(subject, story):
    subject.agrees(without_what_is_refused(subject, *story))


# in how few steps


@requirement(spec.ENG_41, call=guessed_right(), share=0.12)
def test_right_guesses_come_out_together(subject, call):
    gives_right_guesses_together(subject, call)


@requirement(spec.ENG_41, call=guessed_beside(), share=0.12)
def test_right_guesses_come_out_together_beside_others(subject, call):
    gives_right_guesses_together(subject, call)


@requirement(spec.ENG_35, call=guessed_side_by_side(), share=0.04)
def test_guesses_for_two_engines_keep_apart(subject, call):
    guesses_as_without_the_other(subject, call)


@requirement(spec.ENG_41, call=guessed_again(), share=0.08)
def test_right_guesses_come_out_together_after_a_hit(subject, call):
    gives_right_guesses_together(subject, call)


@requirement(spec.ENG_41, call=guessed_when_resumed(), share=0.04)
def test_right_guesses_come_out_together_once_a_request_runs_again(subject, call):
    guesses_once_resumed(subject, call)


@requirement(spec.ENG_41, call=guessed_after_failures(), share=0.12)
def test_right_guesses_come_out_together_after_a_failed_step(subject, call):
    guesses_after_failures(subject, call)


@requirement(spec.ENG_44, call=guessed_in_part(), share=0.12)
def test_right_guesses_before_a_wrong_one_come_out(subject, call):
    a, given = call.arguments, call.arguments["steps"][0][1]
    steps = int(subject.parts(call)["1 steps with ids"])
    enough = rounds(a["model"], a["draft"], given["tokens"], given["max_tokens"], a["num_draft_tokens"])
    if steps > enough:
        raise Nonconformance(
            f"{given['max_tokens']} ids come in {steps} steps; right guesses make {enough} enough", call
        )


# what holds where nothing is guessed


@requirement(spec.ENG_16, call=queues(**GUESSING), share=0.1)
def test_priorities_count_where_a_draft_guesses(subject, call):
    subject.agrees(call)


@requirement(spec.ENG_16, call=late_arrivals(**GUESSING), share=0.07)
def test_requests_are_served_in_order_where_a_draft_guesses(subject, call):
    subject.agrees(call)


@requirement(spec.ENG_16, story=small_behind_large(**GUESSING), share=0.07)
def test_no_small_request_overtakes_where_a_draft_guesses(subject, story):
    goes_first(subject, story)


@requirement(spec.ENG_16, story=small_behind_preempted(drafts=["other"]), share=0.05)
def test_no_small_request_overtakes_one_that_was_preempted_where_a_draft_guesses(subject, story):
    is_not_overtaken_once_preempted(subject, story)


@requirement(spec.ENG_16, story=before_preempted(drafts=["other"]), share=0.05)
def test_a_preempted_request_goes_behind_one_of_a_larger_priority_where_a_draft_guesses(subject, story):
    goes_before_who_gave_way(subject, story)


@requirement(spec.ENG_22, call=cancelling_in_short_pools(drafts=["other"]), share=0.1)
def test_nothing_comes_of_a_preempted_request_that_is_cancelled_where_a_draft_guesses(subject, call):
    begins_its_output(subject, call)


@requirement(spec.ENG_36, call=short_pools(seen=("outputs", "latest"), logits=["told"], **GUESSING), share=0.06)
def test_logits_are_those_of_the_last_id_while_one_that_a_draft_guesses_for_waits_again(subject, call):
    subject.agrees(call)


@requirement(spec.ENG_36, call=stopping_late_in_a_burst(), share=0.05)
def test_logits_are_those_of_the_model_where_an_id_ends_a_long_run_of_guesses(subject, call):
    tells_its_logits(subject, call)


@requirement(spec.ENG_38, call=asked_twice(**GUESSING, chunk_limits=[True]), share=0.05)
def test_a_prompt_that_was_computed_is_not_computed_again_where_a_draft_guesses(subject, call):
    is_computed_once(subject, call)


@requirement(spec.ENG_42, call=budgets(**GUESSING, chunk_limits=[True]), share=0.1)
def test_a_step_computes_no_more_of_prompts_than_it_may_where_a_draft_guesses(subject, call):
    keeps_its_budget(subject, call)


@requirement(spec.ENG_42, call=resumed_prompts(drafts=["other"], chunk_limits=[True]), share=0.04)
def test_a_step_computes_no_more_again_than_it_may_where_a_draft_guesses(subject, call):
    keeps_its_budget_once_resumed(subject, call)


@requirement(spec.ENG_43, call=many_that_some_leave(**GUESSING, request_limits=[True]), share=0.07)
def test_no_more_requests_run_than_may_when_some_are_cancelled_where_a_draft_guesses(subject, call):
    runs_no_more_than_may(subject, call)


@requirement(spec.ENG_47, call=asked_twice(prefix_caching=[False], **GUESSING), share=0.05)
def test_without_prefix_caching_a_prompt_is_computed_again_where_a_draft_guesses(subject, call):
    is_computed_again(subject, call)


@requirement(spec.ENG_52, call=close_pairs(drafts=["perfect"]), share=0.1)
def test_guesses_are_verified_by_logits_that_are_not_rounded_to_16_bits(subject, call):
    subject.agrees(call)
