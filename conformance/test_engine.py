"""Does a serving engine keep the contract? Every request must come out as it would alone, whatever happens around it."""

import itertools

import numpy as np

from inferspec.conformance.inputs.engine import (
    as_trained,
    budgets,
    close_pairs,
    crowded_out,
    crowds,
    full_houses,
    high_ids,
    hundreds_of_ids,
    keeping,
    large_houses,
    large_pages,
    left_side_by_side,
    lone,
    long_requests,
    long_runs,
    many,
    many_beside_another,
    many_pages,
    masses,
    of_servers,
    of_twins,
    overwriting,
    overwriting_in_short_pools,
    preempted_again_and_again,
    recycled,
    running,
    short_pools,
    side_by_side,
    telling,
    the_same_id_again,
    ticking,
    tight,
    timed,
    timed_in_short_pools,
    timed_runs,
    unhurried,
)
from inferspec.conformance.inputs.engine_drafts import (
    dozens_of_guesses,
    guessed_again,
    guessed_beside,
    guessed_in_part,
    guessed_right,
    guesses_asked_for,
    guessing_beside_long_prompts,
    rounds,
    short_drafts,
)
from inferspec.conformance.inputs.engine_ends import (
    high_ends,
    limits,
    overwriting_ends,
    stopping,
    stopping_at_no_id,
    stopping_at_once,
    stopping_at_one_of_many,
    stopping_beside_none,
    stopping_differently,
    stopping_in_short_pools,
    stopping_past_the_limit,
    stopping_past_the_limit_of_guesses,
)
from inferspec.conformance.inputs.engine_leavers import (
    cancelling,
    cancelling_again,
    cancelling_dozens,
    cancelling_in_short_pools,
    cancelling_sharers,
    cancelling_the_finished,
    failing,
    failing_calls,
    failing_differently,
    failing_runs,
    failing_when_others_come,
)
from inferspec.conformance.inputs.engine_prefixes import (
    alike_in_print,
    asked_twice,
    computed_again_in_chunks,
    conversations,
    conversations_past_ends,
    copies_taken,
    failed_ends_of_prompts,
    failed_ids_that_fill_pages,
    failed_prompts,
    far_beginnings,
    going_on,
    half_computed,
    interrupted,
    lookalikes,
    other_beginnings,
    same_again,
    sharing,
    twins_in_short_pools,
    wide_vocabularies,
)
from inferspec.conformance.inputs.engine_queues import (
    behind_preempted,
    late_arrivals,
    late_queues,
    long_queues,
    many_before,
    many_of_none_before,
    queued_hits,
    queues,
    queues_of_several,
    queues_that_some_leave,
    ranked,
    ranked_in_short_pools,
)
from inferspec.conformance.inputs.engine_refusals import (
    empty_prompts,
    negative_limits,
    other_vocabularies,
    strange_ids,
    strangers,
    too_large,
)
from inferspec.conformance.inputs.generation import ends_of
from inferspec.conformance.properties import goes_on_after_refusal, refuses, refuses_step
from inferspec.conformance.suite import requirement
from inferspec.conformance.trial import Nonconformance
from inferspec.spec import engine as spec
from inferspec.spec.ends import DROPPED, KEPT, ended

PLAIN, GUESSING = {"drafts": ["none"]}, {"drafts": ["near", "perfect", "other"]}
ENDS, PAGES = {"seen": ("outputs", "ends")}, {"seen": ("outputs", "pages"), "pages": ["told"]}

# alone and together


@requirement(spec.ENG_01, call=crowds(**PLAIN), share=0.2)
def test_requests_beside_each_other_come_out_as_alone(subject, call):
    subject.agrees(call)


@requirement(spec.ENG_01, call=full_houses(**PLAIN), share=0.03)
def test_as_many_as_may_run_come_out_as_alone(subject, call):
    subject.agrees(call)


@requirement(spec.ENG_01, call=masses(prefix_caching=[False]), share=0.01)
def test_very_many_that_run_come_out_as_alone(subject, call):
    subject.agrees(call)


@requirement(spec.ENG_01, call=of_servers(), share=0.06)
def test_pages_chunks_and_prompts_of_servers_do_not_show(subject, call):
    subject.agrees(call)


@requirement(spec.ENG_01, call=as_trained(), share=0.01)
def test_layers_and_heads_of_trained_models_do_not_show(subject, call):
    subject.agrees(call)


@requirement(spec.ENG_01, call=high_ids(), share=0.01)
def test_ids_past_16_bits_come_out_as_alone(subject, call):
    subject.agrees(call)


@requirement(spec.ENG_01, call=long_requests(**PLAIN), share=0.03)
def test_long_requests_come_out_as_alone(subject, call):
    subject.agrees(call)


@requirement(spec.ENG_01, call=lone(**PLAIN), share=0.1)
def test_one_request_comes_out_as_from_generate(subject, call):
    subject.agrees(call)


@requirement(spec.ENG_01, pair=of_twins(**PLAIN), share=0.05)
def test_a_model_of_the_same_config_does_not_show(subject, pair):
    for call in pair:
        subject.agrees(call)


@requirement(spec.ENG_02, call=crowds(**PLAIN), share=0.15)
def test_requests_may_come_at_any_time(subject, call):
    subject.agrees(call)


@requirement(spec.ENG_02, call=crowds(**PLAIN), share=0.08)
def test_the_order_of_arrival_does_not_show(subject, call):
    subject.agrees(reversed_adds(call))


@requirement(spec.ENG_03, call=crowds(chunks=[1, 3, 7], **PLAIN), share=0.15)
def test_prompts_may_be_computed_in_chunks(subject, call):
    subject.agrees(call)


@requirement(spec.ENG_03, call=sharing(chunks=[1, 3, 7], **PLAIN), share=0.1)
def test_chunks_may_begin_after_a_hit(subject, call):
    subject.agrees(call)


@requirement(spec.ENG_04, call=crowds(page_sizes=[1, 2, 3, 8], **PLAIN), share=0.2)
def test_pages_may_have_any_size(subject, call):
    subject.agrees(call)


@requirement(spec.ENG_04, call=lone(page_sizes=[1, 2, 3, 8], **PLAIN), share=0.3)
def test_a_request_may_grow_over_pages_of_any_size(subject, call):
    subject.agrees(call)


@requirement(spec.ENG_04, call=large_pages(), share=0.01)
def test_pages_may_be_as_large_as_those_of_servers(subject, call):
    subject.agrees(call)


@requirement(spec.ENG_04, call=masses(page_sizes=[256], prefix_caching=[False]), share=0.01)
def test_hundreds_of_large_pages_may_be_held(subject, call):
    subject.agrees(call)


@requirement(spec.ENG_04, call=many_pages(), share=0.03)
def test_a_request_may_have_many_pages(subject, call):
    subject.agrees(call)


@requirement(spec.ENG_05, call=short_pools(prefix_caching=[False], **PLAIN), share=0.2)
def test_preempted_requests_come_out_as_others(subject, call):
    subject.agrees(call)


@requirement(spec.ENG_05, call=short_pools(**PLAIN), share=0.2)
def test_preempted_requests_may_find_what_they_had(subject, call):
    subject.agrees(call)


@requirement(spec.ENG_05, call=preempted_again_and_again(), share=0.01)
def test_a_request_may_be_preempted_many_times(subject, call):
    subject.agrees(call)


# prefixes


@requirement(spec.ENG_06, call=sharing(prefix_caching=[True], **PLAIN), share=0.25)
def test_prompts_that_begin_alike_come_out_as_alone(subject, call):
    subject.agrees(call)


@requirement(spec.ENG_06, call=lookalikes(page_sizes=[1, 2, 3, 8], **PLAIN), share=1.0)
def test_pages_behind_other_tokens_are_not_taken_for_the_same(subject, call):
    subject.agrees(call)


@requirement(spec.ENG_06, call=other_beginnings(), share=0.1)
def test_pages_far_behind_other_tokens_are_not_taken_for_the_same(subject, call):
    subject.agrees(call)


@requirement(spec.ENG_06, call=other_beginnings(page_sizes=[32]), share=0.08)
def test_large_pages_far_behind_other_tokens_are_not_taken_for_the_same(subject, call):
    subject.agrees(call)


@requirement(spec.ENG_06, call=far_beginnings(), share=0.01)
def test_dozens_of_pages_behind_other_tokens_are_not_taken_for_the_same(subject, call):
    subject.agrees(call)


@requirement(spec.ENG_06, call=wide_vocabularies(), share=0.03)
def test_ids_that_are_alike_in_their_low_bits_are_not_taken_for_the_same(subject, call):
    subject.agrees(call)


@requirement(spec.ENG_06, call=alike_in_print(), share=0.1)
def test_ids_that_are_alike_in_print_are_not_taken_for_the_same(subject, call):
    subject.agrees(call)


@requirement(spec.ENG_06, call=half_computed(**PLAIN), share=0.25)
def test_what_is_not_computed_yet_is_not_hit(subject, call):
    subject.agrees(call)


@requirement(spec.ENG_06, call=computed_again_in_chunks(), share=0.05)
def test_what_is_yet_to_be_computed_again_is_not_hit(subject, call):
    subject.agrees(call)


@requirement(spec.ENG_07, call=same_again(prefix_caching=[True]), share=0.5)
def test_the_same_prompt_comes_out_as_before(subject, call):
    subject.agrees(call)


@requirement(spec.ENG_07, call=twins_in_short_pools(), share=0.1)
def test_a_preempted_request_may_find_all_that_it_had(subject, call):
    subject.agrees(call)


@requirement(spec.ENG_08, call=recycled(prefix_caching=[True], **PLAIN), share=0.2)
def test_a_prompt_whose_pages_were_taken_comes_out_as_before(subject, call):
    subject.agrees(call)


@requirement(spec.ENG_08, call=short_pools(prefix_caching=[True], page_sizes=[1, 2, 3], **PLAIN), share=0.2)
def test_hits_in_a_short_pool_are_right(subject, call):
    subject.agrees(call)


@requirement(spec.ENG_08, call=copies_taken(), share=0.1)
def test_what_two_computed_is_hit_rightly_when_the_pages_of_one_were_taken(subject, call):
    subject.agrees(call)


@requirement(spec.ENG_09, call=conversations(prefix_caching=[True]), share=0.15)
def test_a_prompt_may_go_on_from_an_output(subject, call):
    subject.agrees(call)


# guesses


@requirement(spec.ENG_09, call=interrupted(), share=0.15)
def test_a_prompt_may_go_on_from_an_output_that_was_cancelled(subject, call):
    subject.agrees(call)


@requirement(spec.ENG_09, call=conversations_past_ends(), share=0.06)
def test_a_prompt_may_go_on_from_the_id_that_ended_an_output(subject, call):
    subject.agrees(call)


@requirement(spec.ENG_10, call=guesses_asked_for(), share=0.1)
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


@requirement(spec.ENG_10, call=guessing_beside_long_prompts(), share=0.03)
def test_guesses_beside_long_prompts_do_not_show(subject, call):
    subject.agrees(call)


@requirement(spec.ENG_11, call=crowds(drafts=["perfect"]), share=0.15)
def test_right_guesses_do_not_show(subject, call):
    subject.agrees(call)


@requirement(spec.ENG_12, call=ranked(), share=0.4)
def test_priorities_do_not_show_in_outputs(subject, call):
    subject.agrees(call)


# how many, and in which order


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


@requirement(spec.ENG_13, call=the_same_id_again(), share=0.01)
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


@requirement(spec.ENG_14, call=stopping_at_one_of_many(), share=0.06)
def test_any_of_many_ids_ends_a_request(subject, call):
    subject.agrees(call)


@requirement(spec.ENG_14, call=high_ends(), share=0.01)
def test_an_id_past_16_bits_ends_a_request(subject, call):
    subject.agrees(call)


@requirement(spec.ENG_14, call=stopping_beside_none(), share=0.08)
def test_what_ends_a_request_ends_none_that_comes_after_it(subject, call):
    subject.agrees(call)


@requirement(spec.ENG_14, call=stopping_differently(), share=0.08)
def test_what_ends_one_request_ends_no_other_of_the_same_prompt(subject, call):
    subject.agrees(call)


@requirement(spec.ENG_14, call=stopping_in_short_pools(), share=0.1)
def test_an_end_of_sequence_id_ends_a_preempted_request(subject, call):
    subject.agrees(call)


@requirement(spec.ENG_15, call=stopping_at_once(), share=0.15)
def test_an_end_of_sequence_id_may_be_the_first(subject, call):
    subject.agrees(call)


@requirement(spec.ENG_16, call=queues(), share=0.2)
def test_requests_are_served_by_priority_and_then_in_order(subject, call):
    subject.agrees(call)


@requirement(spec.ENG_16, call=long_queues(), share=0.03)
def test_more_than_ten_requests_are_served_in_order(subject, call):
    subject.agrees(call)


@requirement(spec.ENG_16, call=queues_that_some_leave(), share=0.3)
def test_requests_are_served_by_priority_when_some_have_left(subject, call):
    subject.agrees(call)


@requirement(spec.ENG_16, call=late_queues(), share=0.1)
def test_requests_that_come_late_are_served_by_priority_too(subject, call):
    subject.agrees(call)


@requirement(spec.ENG_16, call=late_arrivals(), share=0.08)
def test_requests_that_come_late_are_served_in_order(subject, call):
    subject.agrees(call)


@requirement(spec.ENG_16, call=queued_hits(), share=0.06)
def test_what_is_cached_of_a_prompt_does_not_move_it_ahead(subject, call):
    subject.agrees(call)


@requirement(spec.ENG_16, call=queues_of_several(), share=0.08)
def test_requests_that_are_served_several_at_a_time_go_by_priority_and_then_in_order(subject, call):
    seen, asked = subject.parts(call), {number: call.arguments["steps"][number - 1][1] for number in adds(call)}
    order = sorted(asked, key=lambda number: (-asked[number]["priority"], number))
    for one, later in itertools.pairwise(order):
        if not 0 < int(seen[f"{one} first"]) <= int(seen[f"{later} first"]):
            raise Nonconformance(f"request {later} gives its id before request {one}, which goes first", call)


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
    call, (preempted, later) = story
    seen = subject.parts(call)
    if not 0 < int(seen[f"{preempted} last"]) <= int(seen[f"{later} first"]):
        raise Nonconformance(f"request {later} has all pages before request {preempted} ends, which came first", call)


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


@requirement(spec.ENG_17, call=running(), share=0.15)
def test_steps_give_nothing_that_a_run_has_returned(subject, call):
    subject.agrees(call)


@requirement(spec.ENG_18, call=crowds(seen=("stream", "pace"), **PLAIN), share=0.1)
def test_ids_come_as_they_are_made(subject, call):
    subject.agrees(call)


@requirement(spec.ENG_18, call=short_pools(seen=("stream", "pace"), **PLAIN), share=0.1)
def test_ids_come_as_they_are_made_after_preemption(subject, call):
    subject.agrees(call)


@requirement(spec.ENG_19, call=running(), share=0.15)
def test_run_returns_all_outputs(subject, call):
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


@requirement(spec.ENG_20, call=stopping_at_once(**ENDS), share=0.1)
def test_every_request_is_finished_where_ids_end_it(subject, call):
    subject.agrees(call)


@requirement(spec.ENG_42, call=budgets(), share=0.15)
def test_a_step_computes_no_more_of_prompts_than_it_may(subject, call):
    seen = subject.parts(call)
    steps = max(int(seen[f"{number} steps to the first id"]) for number in adds(call))
    tokens, most = (
        sum(len(given["tokens"]) for _, given in call.arguments["steps"]),
        call.arguments["max_prefill_tokens"],
    )
    if steps * most < tokens:
        raise Nonconformance(f"prompts of {tokens} tokens are computed in {steps} steps of at most {most}", call)


@requirement(spec.ENG_43, call=many(), share=0.1)
def test_no_more_requests_run_than_may(subject, call):
    runs_no_more_than_may(subject, call)


# pages


@requirement(spec.ENG_21, call=crowds(**PAGES), share=0.2)
def test_all_pages_come_back(subject, call):
    subject.agrees(call)


@requirement(spec.ENG_21, call=masses(prefix_caching=[True], **PAGES), share=0.01)
def test_pages_that_hundreds_share_come_back(subject, call):
    subject.agrees(call)


@requirement(spec.ENG_21, call=sharing(**PAGES), share=0.15)
def test_shared_pages_come_back(subject, call):
    subject.agrees(call)


@requirement(spec.ENG_21, call=short_pools(**PAGES), share=0.3)
def test_pages_of_a_short_pool_come_back(subject, call):
    subject.agrees(call)


@requirement(spec.ENG_46, call=lone(seen=("outputs", "filled"), pages=["told"], **PLAIN), share=0.05)
def test_pages_that_a_request_fills_are_not_free(subject, call):
    subject.agrees(call)


@requirement(spec.ENG_31, call=tight(), share=0.2)
def test_a_request_may_fill_all_pages(subject, call):
    subject.agrees(call)


# cancelling and failing


@requirement(spec.ENG_22, call=cancelling(), share=0.2)
def test_what_a_cancelled_request_gave_is_the_beginning_of_its_output(subject, call):
    begins_its_output(subject, call)


@requirement(spec.ENG_23, call=cancelling(seen=("outputs", "ends")), share=0.2)
def test_cancelling_does_not_show_elsewhere(subject, call):
    subject.agrees(call)


@requirement(spec.ENG_22, call=cancelling_in_short_pools(), share=0.1)
def test_nothing_comes_of_a_preempted_request_that_is_cancelled(subject, call):
    begins_its_output(subject, call)


@requirement(spec.ENG_23, call=cancelling_again(), share=0.25)
def test_cancelling_what_is_over_does_not_show_elsewhere(subject, call):
    subject.agrees(call)


@requirement(spec.ENG_50, call=cancelling_the_finished(), share=0.1)
def test_a_finished_request_that_is_cancelled_keeps_its_output(subject, call):
    subject.agrees(call)


@requirement(spec.ENG_23, call=cancelling_sharers(page_sizes=[1, 2, 3, 8], **PLAIN), share=0.4)
def test_cancelling_leaves_shared_pages_alone(subject, call):
    subject.agrees(call)


@requirement(spec.ENG_24, call=cancelling_in_short_pools(seen=("pages", "ends")), share=0.1)
def test_a_preempted_request_that_is_cancelled_has_no_pages(subject, call):
    subject.agrees(call)


@requirement(spec.ENG_24, call=cancelling_dozens(seen=("pages", "ends")), share=0.01)
def test_dozens_of_cancelled_requests_give_their_pages_back(subject, call):
    subject.agrees(call)


@requirement(spec.ENG_24, call=cancelling(seen=("pages", "ends")), share=0.2)
def test_a_cancelled_request_gives_its_pages_back(subject, call):
    subject.agrees(call)


@requirement(spec.ENG_25, call=failing(), share=0.4)
def test_after_a_failed_step_nothing_is_lost(subject, call):
    subject.agrees(call)


@requirement(spec.ENG_25, call=failing_calls(), share=0.15)
def test_after_a_call_that_failed_nothing_is_lost(subject, call):
    subject.agrees(call)


@requirement(spec.ENG_25, call=failing_runs(), share=0.3)
def test_after_a_failed_run_nothing_is_lost(subject, call):
    subject.agrees(call)


@requirement(spec.ENG_25, call=failing_differently(), share=0.1)
def test_errors_of_any_kind_pass_and_nothing_is_lost(subject, call):
    subject.agrees(call)


@requirement(spec.ENG_25, call=failing(seen=("outputs", "metrics"), metrics=["told"], **PLAIN), share=0.1)
def test_metrics_know_nothing_of_a_failed_step(subject, call):
    subject.agrees(call)


@requirement(spec.ENG_25, call=failed_ends_of_prompts(), share=0.06)
def test_the_end_of_a_prompt_that_failed_is_not_hit(subject, call):
    subject.agrees(call)


@requirement(spec.ENG_25, call=failed_ids_that_fill_pages(), share=0.1)
def test_an_id_that_failed_to_fill_a_page_is_not_hit(subject, call):
    subject.agrees(call)


@requirement(spec.ENG_25, call=failed_prompts(**PLAIN), share=0.15)
def test_what_failed_is_not_hit(subject, call):
    subject.agrees(call)


# what is refused


@requirement(spec.ENG_26, story=empty_prompts(), share=0.05)
def test_an_empty_prompt_is_refused(subject, story):
    refuses_step(subject, story)


@requirement(spec.ENG_27, story=negative_limits(), share=0.05)
def test_a_negative_limit_is_refused(subject, story):
    refuses_step(subject, story)


@requirement(spec.ENG_28, story=strange_ids(), share=0.2)
def test_ids_outside_the_vocabulary_are_refused(subject, story):
    refuses_step(subject, story)


@requirement(spec.ENG_29, story=too_large(), share=0.3)
def test_what_can_never_fit_is_refused(subject, story):
    refuses_step(subject, story)


@requirement(spec.ENG_30, story=too_large(), share=0.1)
def test_a_request_that_never_fits_changes_nothing(subject, story):
    goes_on_after_refusal(subject, story)


@requirement(spec.ENG_30, story=strange_ids(), share=0.1)
def test_a_request_with_strange_ids_changes_nothing(subject, story):
    goes_on_after_refusal(subject, story)


@requirement(spec.ENG_30, story=empty_prompts(), share=0.05)
def test_a_request_without_tokens_changes_nothing(subject, story):
    goes_on_after_refusal(subject, story)


@requirement(spec.ENG_30, story=negative_limits(), share=0.05)
def test_a_request_with_a_negative_limit_changes_nothing(subject, story):
    goes_on_after_refusal(subject, story)


@requirement(spec.ENG_30, story=strangers(), share=0.1)
def test_asking_for_nobody_changes_nothing(subject, story):
    goes_on_after_refusal(subject, story)


@requirement(spec.ENG_39, story=strangers(), share=0.1)
def test_an_id_of_nobody_is_refused(subject, story):
    refuses_step(subject, story)


@requirement(spec.ENG_40, call=other_vocabularies(), share=0.05)
def test_a_draft_of_another_vocabulary_is_refused(subject, call):
    refuses(subject, call)


# metrics


@requirement(spec.ENG_32, call=timed(), share=0.2)
def test_metrics_are_those_of_the_request(subject, call):
    subject.agrees(call)


@requirement(spec.ENG_32, call=timed_in_short_pools(), share=0.3)
def test_metrics_of_preempted_requests_are_theirs(subject, call):
    subject.agrees(call)


@requirement(spec.ENG_32, call=hundreds_of_ids(seen=("outputs", "metrics"), metrics=["told"]), share=0.01)
def test_metrics_of_hundreds_of_ids_are_those_of_the_request(subject, call):
    subject.agrees(call)


@requirement(spec.ENG_32, call=large_houses(seen=("outputs", "metrics"), metrics=["told"], **PLAIN), share=0.01)
def test_metrics_of_very_many_requests_are_theirs(subject, call):
    subject.agrees(call)


@requirement(spec.ENG_45, call=timed(seen=("outputs", "computing"), drafts=["none"]), share=0.15)
def test_no_id_is_stamped_before_it_is_computed(subject, call):
    subject.agrees(call)


@requirement(spec.ENG_45, call=timed_runs(), share=0.05)
def test_ids_of_a_run_are_stamped_as_they_come(subject, call):
    subject.agrees(call)


@requirement(spec.ENG_33, call=ticking(), share=0.15)
def test_metrics_fit_together(subject, call):
    subject.agrees(call)


# what is the caller's, and what is not shared


@requirement(spec.ENG_34, call=overwriting_in_short_pools(), share=0.08)
def test_the_list_of_tokens_is_the_caller_s_when_its_request_is_preempted(subject, call):
    subject.agrees(call)


@requirement(spec.ENG_34, call=overwriting(), share=0.15)
def test_the_list_of_tokens_is_the_caller_s(subject, call):
    subject.agrees(call)


@requirement(spec.ENG_49, call=overwriting_ends(), share=0.08)
def test_the_list_of_ends_is_the_caller_s(subject, call):
    subject.agrees(call)


@requirement(spec.ENG_52, call=close_pairs(), share=0.1)
def test_ids_are_chosen_by_logits_that_are_not_rounded_to_16_bits(subject, call):
    subject.agrees(call)


@requirement(spec.ENG_51, call=keeping(), share=0.1)
def test_what_was_given_keeps_its_values(subject, call):
    subject.agrees(call)


@requirement(spec.ENG_51, call=keeping(seen=("outputs", "kept", "gaps"), metrics=["told"]), share=0.05)
def test_gaps_that_were_given_keep_their_values(subject, call):
    subject.agrees(call)


@requirement(spec.ENG_35, call=side_by_side(), share=0.15)
def test_two_engines_on_one_model_keep_apart(subject, call):
    subject.agrees(call)


@requirement(spec.ENG_35, call=left_side_by_side(), share=0.1)
def test_who_is_cancelled_of_one_engine_is_not_cancelled_of_another(subject, call):
    subject.agrees(call)


@requirement(spec.ENG_35, call=many_beside_another(), share=0.06)
def test_an_engine_of_larger_limits_lets_no_more_requests_of_another_run(subject, call):
    runs_no_more_than_may(subject, call)


# logits


@requirement(spec.ENG_36, call=telling(), share=0.15)
def test_logits_are_those_of_the_model(subject, call):
    tells_its_logits(subject, call)


@requirement(spec.ENG_36, call=crowds(seen=("outputs", "latest"), logits=["told"]), share=0.05)
def test_logits_are_those_of_the_last_id_at_any_moment(subject, call):
    subject.agrees(call)


@requirement(spec.ENG_36, call=failing_when_others_come(), share=0.2)
def test_logits_are_those_of_the_last_id_after_a_failed_step(subject, call):
    subject.agrees(call)


@requirement(spec.ENG_36, call=stopping(seen=("outputs", "logits"), logits=["told"], **PLAIN), share=0.1)
def test_logits_are_those_of_the_model_where_an_id_ends_the_output(subject, call):
    tells_its_logits(subject, call)


@requirement(spec.ENG_36, call=stopping(seen=("outputs", "logits"), logits=["told"], **GUESSING), share=0.15)
def test_logits_are_those_of_the_model_where_an_id_ends_a_run_of_guesses(subject, call):
    tells_its_logits(subject, call)


@requirement(spec.ENG_37, call=unhurried(), share=0.2)
def test_logits_are_those_of_the_request_alone_to_the_last_bit(subject, call):
    is_batch_invariant(subject, call)


@requirement(spec.ENG_38, call=asked_twice(), share=0.08)
def test_a_prompt_that_was_computed_is_not_computed_again(subject, call):
    first, again = steps_to_the_first_id(subject, call)
    if not again < first:
        raise Nonconformance(f"the first id came after {first} steps, and of the same prompt after {again}", call)


@requirement(spec.ENG_53, call=going_on(), share=0.1)
def test_what_the_last_step_computed_is_not_computed_again(subject, call):
    alone, _, again = steps_to_the_first_id(subject, call)
    if not again < alone:
        raise Nonconformance(
            f"the first id of a prompt came after {alone} steps, and of one that goes on from what was computed after {again}",
            call,
        )


@requirement(spec.ENG_47, call=asked_twice(prefix_caching=[False]), share=0.05)
def test_without_prefix_caching_a_prompt_is_computed_again(subject, call):
    first, again = steps_to_the_first_id(subject, call)
    if again < first:
        raise Nonconformance(f"the first id came after {first} steps, and of the same prompt after {again}", call)


@requirement(spec.ENG_48, story=short_drafts(), share=0.1)
def test_a_draft_of_fewer_positions_does_not_show(subject, story):
    subject.agrees(without_what_is_refused(subject, *story))


@requirement(spec.ENG_54, story=stopping_at_no_id(), share=0.05)
def test_an_end_that_is_no_id_ends_nothing(subject, story):
    subject.agrees(without_what_is_refused(subject, *story))


@requirement(spec.ENG_41, call=guessed_right(), share=0.12)
def test_right_guesses_come_out_together(subject, call):
    gives_right_guesses_together(subject, call)


@requirement(spec.ENG_41, call=guessed_beside(), share=0.12)
def test_right_guesses_come_out_together_beside_others(subject, call):
    gives_right_guesses_together(subject, call)


@requirement(spec.ENG_41, call=guessed_again(), share=0.05)
def test_right_guesses_come_out_together_after_a_hit(subject, call):
    gives_right_guesses_together(subject, call)


@requirement(spec.ENG_44, call=guessed_in_part(), share=0.12)
def test_right_guesses_before_a_wrong_one_come_out(subject, call):
    a, given = call.arguments, call.arguments["steps"][0][1]
    steps = int(subject.parts(call)["1 steps with ids"])
    enough = rounds(a["model"], a["draft"], given["tokens"], given["max_tokens"], a["num_draft_tokens"])
    if steps > enough:
        raise Nonconformance(
            f"{given['max_tokens']} ids come in {steps} steps; right guesses make {enough} enough", call
        )


def without_what_is_refused(subject, call, step):
    """The story without that step, where it is refused."""
    if f"{step} refused" not in subject.answered(call).results:
        return call
    return call.having(steps=tuple(one for number, one in enumerate(call.arguments["steps"], 1) if number != step))


def adds(call):
    """The steps that add a request."""
    return [number for number, (step, _) in enumerate(call.arguments["steps"], 1) if step == "add"]


def runs_no_more_than_may(subject, call):
    """No step gives ids of more requests than may run, of those who are not finished by it."""
    at_once, most = int(subject.parts(call)["most at once"]), call.arguments["max_requests"]
    if at_once > most:
        raise Nonconformance(
            f"{at_once} requests generate in one step and are not finished, and at most {most} may run", call
        )


def reversed_adds(call):
    """The same requests, in the reverse order."""
    steps = list(call.arguments["steps"])
    requests = [given for step, given in steps if step == "add"]
    return call.having(steps=tuple((step, requests.pop() if step == "add" else given) for step, given in steps))


def gives_right_guesses_together(subject, call):
    """Ids of each request come in no more steps than right guesses take, behind the first id, which may come alone."""
    seen, guesses = subject.parts(call), call.arguments["num_draft_tokens"]
    for number in adds(call):
        steps, limit = int(seen[f"{number} steps with ids"]), call.arguments["steps"][number - 1][1]["max_tokens"]
        if steps > (most := 1 + -(-(limit - 1) // (guesses + 1))):
            raise Nonconformance(
                f"{limit} ids of request {number} come in {steps} steps; with {guesses} right guesses {most} are enough",
                call,
            )


def begins_its_output(subject, call):
    """Nothing of a cancelled request is anything but the beginning of what it would have given."""
    seen, steps = subject.parts(call), call.arguments["steps"]
    for number in {given["request"] for step, given in steps if step == "cancel"}:
        given = steps[number - 1][1]
        ids = spec.alone(call.arguments["model"], given["tokens"], given["max_tokens"])[0]
        told = [int(token) for token in seen.get(f"{number} until cancelled", ())]
        if told != ids[: len(told)]:
            raise Nonconformance(f"request {number} gave {told} until it was cancelled; alone it gives {ids}", call)
        if late := int(seen.get(f"{number} after it", 0)):
            raise Nonconformance(f"request {number} gave {late} ids after it was cancelled", call)


def tells_its_logits(subject, call):
    """The logits are those of the whole sequence before the last id, within the budget of the model."""
    seen = subject.parts(call)
    model = call.arguments["model"]
    for number in adds(call):
        given = call.arguments["steps"][number - 1][1]
        ids = spec.alone(model, given["tokens"], given["max_tokens"])[0]
        outputs = {ends: ended(ids, given.get("eos", ()), ends) for ends in (DROPPED, KEPT)}
        # Whether the end is one of them is another sentence's matter.
        told = [int(token) for token in seen.get(f"{number} output", ())]
        length = len(told if told in outputs.values() else outputs[ends_of(call)])
        if not length:
            continue
        answer = spec.last_logits(model, given["tokens"], length)
        subject.compare(
            call, np.asarray(seen.get(f"{number} logits", np.zeros(0))), answer, name="exact", part=f"{number} logits"
        )


def steps_to_the_first_id(subject, call):
    """How many steps each request took to its first id."""
    seen = subject.parts(call)
    return (int(seen[f"{number} steps to the first id"]) for number in adds(call))


def is_batch_invariant(subject, call):
    """Each request's logits in the story are those of a story of its own, bit for bit."""
    together = subject.parts(call)
    for number in adds(call):
        own = call.having(steps=(call.arguments["steps"][number - 1],))
        alone, beside = subject.parts(own)["1 logits"], together[f"{number} logits"]
        if alone.tobytes() != beside.tobytes():
            off = int((alone != beside).sum()) if alone.shape == beside.shape else beside.size
            raise Nonconformance(f"{off} of {beside.size} logits of request {number} are not those of it alone", call)
