"""Does a serving engine keep the contract of requests: of their limits and ends, and their order?"""

from inferspec.conformance.inputs.engine import (
    budgets,
    crowded_out,
    crowds,
    hundreds_of_ids,
    long_requests,
    long_runs,
    many,
    masses,
    running,
    short_pools,
    the_same_id_again,
)
from inferspec.conformance.inputs.engine_ends import (
    high_ends,
    late_ends,
    limits,
    stopping,
    stopping_at_once,
    stopping_at_one_of_many,
    stopping_at_the_first_of_several,
    stopping_beside_none,
    stopping_differently,
    stopping_in_short_pools,
    stopping_past_the_limit,
    stopping_past_the_limit_of_guesses,
)
from inferspec.conformance.inputs.engine_leavers import (
    cancelling_before_runs,
    cancelling_in_short_pools,
    many_and_a_refusal,
    many_that_some_leave,
    stopping_when_others_leave,
)
from inferspec.conformance.inputs.engine_prefixes import (
    budgets_behind_hits,
)
from inferspec.conformance.inputs.engine_queues import (
    before_preempted,
    behind_one_preempted_in_its_prompt,
    behind_preempted,
    late_arrivals,
    late_queues,
    long_queues,
    many_before,
    many_behind_a_preempted,
    many_of_none_before,
    queued_hits,
    queues,
    queues_of_several,
    queues_that_some_leave,
    ranked,
    ranked_beside_each_other,
    ranked_in_short_pools,
    resumed_beside_prompts,
    resumed_prompts,
    small_behind_large,
    small_behind_preempted,
)
from inferspec.conformance.inputs.engine_script import ENDS, GUESSING, PLAIN
from inferspec.conformance.judging.trial import Nonconformance
from inferspec.conformance.properties.engine import (
    adds,
    goes_before_who_gave_way,
    goes_by_priority,
    goes_first,
    is_not_overtaken_once_preempted,
    is_not_overtaken_while_the_first_runs,
    keeps_its_budget,
    keeps_its_budget_behind_hits,
    keeps_its_budget_once_resumed,
    runs_no_more_than_may,
    runs_no_more_than_may_between_steps,
)
from inferspec.conformance.suite import requirement
from inferspec.spec import engine as spec


@requirement(spec.ENG_12, call=ranked(), share=0.4)
def test_priorities_do_not_show_in_outputs(subject, call):
    subject.agrees(call)


@requirement(spec.ENG_13, call=limits(), share=0.4)
def test_so_many_ids_come_out_as_were_asked_for(subject, call):
    subject.agrees(call)


@requirement(spec.ENG_13, call=stopping_past_the_limit(), share=0.06)
def test_an_end_past_the_limit_takes_no_id(subject, call):
    subject.agrees(call)


@requirement(spec.ENG_13, call=stopping_past_the_limit_of_guesses(), share=0.06)
def test_an_end_past_the_limit_brings_no_guess(subject, call):
    subject.agrees(call)


@requirement(spec.ENG_13, call=long_requests(**PLAIN), share=0.08)
def test_as_many_ids_come_out_where_many_are_asked_for(subject, call):
    subject.agrees(call)


@requirement(spec.ENG_13, call=many_of_none_before(), share=0.01)
def test_hundreds_of_requests_may_have_some_among_them_that_ask_for_no_id(subject, call):
    subject.agrees(call)


@requirement(spec.ENG_13, call=the_same_id_again(), share=0.04)
def test_the_same_id_may_come_over_and_over(subject, call):
    subject.agrees(call)


@requirement(spec.ENG_13, call=hundreds_of_ids(), share=0.01)
def test_hundreds_of_ids_come_out_where_they_are_asked_for(subject, call):
    subject.agrees(call)


@requirement(spec.ENG_14, call=stopping(), share=0.2)
def test_an_end_of_sequence_id_ends_a_request(subject, call):
    subject.agrees(call)


@requirement(spec.ENG_14, call=stopping(**GUESSING), share=0.15)
def test_an_end_of_sequence_id_ends_a_request_among_guesses(subject, call):
    subject.agrees(call)


@requirement(spec.ENG_14, call=late_ends(), share=0.03)
def test_an_end_of_sequence_id_ends_a_request_after_dozens(subject, call):
    subject.agrees(call)


@requirement(spec.ENG_14, call=stopping_at_one_of_many(), share=0.06)
def test_any_of_many_ids_ends_a_request(subject, call):
    subject.agrees(call)


@requirement(spec.ENG_14, call=stopping_at_the_first_of_several(), share=0.07)
def test_the_first_that_comes_of_several_ids_ends_a_request(subject, call):
    subject.agrees(call)


@requirement(spec.ENG_14, call=high_ends(), share=0.04)
def test_an_id_past_16_bits_ends_a_request(subject, call):
    subject.agrees(call)


@requirement(spec.ENG_14, call=stopping_beside_none(), share=0.08)
def test_what_ends_a_request_ends_none_that_comes_after_it(subject, call):
    subject.agrees(call)


@requirement(spec.ENG_14, call=stopping_differently(), share=0.15)
def test_what_ends_one_request_ends_no_other_of_the_same_prompt(subject, call):
    subject.agrees(call)


@requirement(spec.ENG_14, call=stopping_in_short_pools(), share=0.1)
def test_an_end_of_sequence_id_ends_a_preempted_request(subject, call):
    subject.agrees(call)


@requirement(spec.ENG_14, call=stopping_when_others_leave(), share=0.05)
def test_an_end_of_sequence_id_ends_a_request_when_another_is_cancelled(subject, call):
    subject.agrees(call)


@requirement(spec.ENG_15, call=stopping_at_once(), share=0.15)
def test_an_end_of_sequence_id_may_be_the_first(subject, call):
    subject.agrees(call)


@requirement(spec.ENG_16, call=queues(), share=0.3)
def test_requests_are_served_by_priority_and_then_in_order(subject, call):
    subject.agrees(call)


@requirement(spec.ENG_16, call=long_queues(), share=0.03)
def test_more_than_ten_requests_are_served_in_order(subject, call):
    subject.agrees(call)


@requirement(spec.ENG_16, call=queues_that_some_leave(), share=0.3)
def test_requests_are_served_by_priority_when_some_have_left(subject, call):
    subject.agrees(call)


@requirement(spec.ENG_16, call=late_queues(request_limits=[True]), share=0.1)
def test_requests_that_come_late_are_served_by_priority_too(subject, call):
    subject.agrees(call)


@requirement(spec.ENG_16, call=late_arrivals(), share=0.09)
def test_requests_that_come_late_are_served_in_order(subject, call):
    subject.agrees(call)


@requirement(spec.ENG_16, call=queued_hits(), share=0.09)
def test_what_is_cached_of_a_prompt_does_not_move_it_ahead(subject, call):
    subject.agrees(call)


@requirement(spec.ENG_16, call=queues_of_several(), share=0.15)
def test_requests_that_are_served_several_at_a_time_go_by_priority_and_then_in_order(subject, call):
    goes_by_priority(subject, call)


@requirement(spec.ENG_16, story=ranked_in_short_pools(), share=0.08)
def test_preempted_requests_keep_their_priority(subject, story):
    call, low = story
    seen = subject.parts(call)
    for number in adds(call):
        if number != low and not 0 < int(seen[f"{number} last"]) <= int(seen[f"{low} first"]):
            raise Nonconformance(
                f"request {low} has all pages before request {number} ends, which has a larger priority", call
            )


@requirement(spec.ENG_16, story=behind_preempted(), share=0.08)
def test_preempted_requests_go_before_those_that_came_later(subject, story):
    goes_first(subject, story)


@requirement(spec.ENG_16, story=behind_one_preempted_in_its_prompt(), share=0.05)
def test_no_request_overtakes_one_that_was_preempted_in_its_prompt(subject, story):
    is_not_overtaken_while_the_first_runs(subject, story)


@requirement(spec.ENG_16, story=small_behind_preempted(), share=0.08)
def test_no_small_request_overtakes_one_that_was_preempted(subject, story):
    is_not_overtaken_once_preempted(subject, story)


@requirement(spec.ENG_16, story=small_behind_large(), share=0.08)
def test_no_small_request_overtakes_one_that_waits_for_pages(subject, story):
    goes_first(subject, story)


@requirement(spec.ENG_16, story=before_preempted(), share=0.05)
def test_a_preempted_request_goes_behind_one_of_a_larger_priority(subject, story):
    goes_before_who_gave_way(subject, story)


@requirement(spec.ENG_57, story=ranked_beside_each_other(), share=0.06)
def test_a_request_of_a_larger_priority_gives_no_page_to_one_of_a_smaller(subject, story):
    call, (high, low) = story
    seen = subject.parts(call)
    if not 0 < int(seen[f"{high} last"]) <= int(seen[f"{low} last"]):
        raise Nonconformance(f"request {low} ends before request {high}, which has a larger priority", call)


@requirement(spec.ENG_17, call=crowds(seen=("outputs", "stream")), share=0.15)
def test_steps_give_every_id_once(subject, call):
    subject.agrees(call)


@requirement(spec.ENG_17, call=short_pools(seen=("outputs", "stream")), share=0.2)
def test_steps_give_every_id_once_after_preemption(subject, call):
    subject.agrees(call)


@requirement(spec.ENG_17, call=masses(seen=("outputs", "stream")), share=0.01)
def test_steps_give_every_id_of_very_many_that_run(subject, call):
    subject.agrees(call)


@requirement(spec.ENG_17, call=many_before(), share=0.01)
def test_hundreds_of_requests_are_told_apart(subject, call):
    subject.agrees(call)


@requirement(spec.ENG_17, call=running(), share=0.2)
def test_steps_give_nothing_that_a_run_has_returned(subject, call):
    subject.agrees(call)


@requirement(spec.ENG_18, call=crowds(seen=("stream", "pace"), **PLAIN), share=0.1)
def test_ids_come_as_they_are_made(subject, call):
    subject.agrees(call)


@requirement(spec.ENG_18, call=short_pools(seen=("stream", "pace"), **PLAIN), share=0.1)
def test_ids_come_as_they_are_made_after_preemption(subject, call):
    subject.agrees(call)


@requirement(spec.ENG_19, call=running(), share=0.25)
def test_run_returns_all_outputs(subject, call):
    subject.agrees(call)


@requirement(spec.ENG_19, call=cancelling_before_runs(), share=0.04)
def test_run_returns_nothing_of_who_was_cancelled(subject, call):
    subject.agrees(call)


@requirement(spec.ENG_19, call=long_runs(), share=0.01)
def test_a_run_serves_hundreds_of_requests(subject, call):
    subject.agrees(call)


@requirement(spec.ENG_20, call=many_before(), share=0.01)
def test_every_request_is_finished_where_hundreds_wait(subject, call):
    subject.agrees(call)


@requirement(spec.ENG_20, call=crowds(**ENDS), share=0.15)
def test_every_request_is_finished_in_the_end(subject, call):
    subject.agrees(call)


@requirement(spec.ENG_20, call=short_pools(**ENDS), share=0.4)
def test_every_request_is_finished_in_a_short_pool(subject, call):
    subject.agrees(call)


@requirement(spec.ENG_20, call=crowded_out(**ENDS), share=0.3)
def test_every_request_is_finished_where_others_hold_the_pages(subject, call):
    subject.agrees(call)


@requirement(spec.ENG_20, call=cancelling_in_short_pools(seen=("ends",), drafts=["other"]), share=0.1)
def test_every_request_is_finished_where_one_that_a_draft_guesses_for_gave_way_and_left(subject, call):
    subject.agrees(call)


@requirement(spec.ENG_20, call=stopping_at_once(**ENDS), share=0.1)
def test_every_request_is_finished_where_ids_end_it(subject, call):
    subject.agrees(call)


@requirement(spec.ENG_42, call=budgets(chunk_limits=[True]), share=0.4)
def test_a_step_computes_no_more_of_prompts_than_it_may(subject, call):
    keeps_its_budget(subject, call)


@requirement(spec.ENG_42, call=budgets_behind_hits(chunk_limits=[True]), share=0.08)
def test_a_step_computes_no_more_of_prompts_that_begin_with_what_is_cached(subject, call):
    keeps_its_budget_behind_hits(subject, call)


@requirement(spec.ENG_42, call=resumed_prompts(chunk_limits=[True]), share=0.05)
def test_a_step_computes_no_more_again_than_it_may(subject, call):
    keeps_its_budget_once_resumed(subject, call)


@requirement(spec.ENG_42, call=resumed_beside_prompts(chunk_limits=[True]), share=0.04)
def test_a_step_computes_no_more_again_beside_a_prompt_than_it_may(subject, call):
    keeps_its_budget_once_resumed(subject, call)


@requirement(spec.ENG_43, call=many(request_limits=[True]), share=0.1)
def test_no_more_requests_run_than_may(subject, call):
    runs_no_more_than_may(subject, call)


@requirement(spec.ENG_43, call=many_that_some_leave(request_limits=[True]), share=0.05)
def test_no_more_requests_run_than_may_when_some_are_cancelled(subject, call):
    runs_no_more_than_may(subject, call)


@requirement(spec.ENG_43, call=many_and_a_refusal(request_limits=[True]), share=0.03)
def test_no_more_requests_run_than_may_when_one_was_refused(subject, call):
    runs_no_more_than_may(subject, call)


@requirement(spec.ENG_43, call=many_behind_a_preempted(request_limits=[True]), share=0.03)
def test_no_more_requests_run_than_may_once_one_was_preempted(subject, call):
    runs_no_more_than_may_between_steps(subject, call)
