"""Does a scheduler keep the contract? The history of each story is judged by what it shows, not by which schedule it is."""

from inferspec.conformance.inputs.scheduler import (
    abandoned,
    chunked,
    crowds,
    ends_in_prompts,
    ends_of_others,
    ends_of_zero,
    exact,
    limits,
    many_ends,
    masses,
    of_servers,
    overtaken,
    repeating,
    side_by_side,
    single,
    together,
    trickling,
    very_long,
    voided,
    voided_again,
    workloads,
    written_over,
)
from inferspec.conformance.inputs.scheduler_leavers import (
    cancelled,
    deserted,
    in_flight,
    left_by_twins,
    left_in_flight,
    left_when_preempted,
    passers_by,
    ranked_and_deserted,
    ranked_and_left,
)
from inferspec.conformance.inputs.scheduler_pools import (
    beside_a_long_prompt,
    computed_again_in_chunks,
    ends_in_short_pools,
    evicted,
    evicted_again,
    growing,
    growing_alike,
    growing_as_one,
    hits_lost_when_preempted,
    long_and_growing,
    preempted_again_and_again,
    preempted_in_turn,
    resumed,
    voided_growing,
)
from inferspec.conformance.inputs.scheduler_prefixes import (
    conversations,
    ended_together,
    ended_when_resumed,
    going_on,
    hits,
    hits_at_once,
    hits_beside_one_that_generates,
    hits_lost_in_the_queue,
    interrupted,
    large_ids,
    queued_hits,
)
from inferspec.conformance.inputs.scheduler_queues import (
    far_ranked,
    joining_a_crowd,
    long_prompts_ahead,
    outranked_in_vain,
    outranked_when_preempted,
    queued,
    queued_in_turns,
    ranked,
)
from inferspec.conformance.inputs.scheduler_refusals import (
    added_again,
    no_limits,
    preempted_again,
    senseless,
    strangers,
    too_long,
    wrong_updates,
    wrong_updates_of_the_cancelled,
)
from inferspec.conformance.inputs.scheduler_script import COMMON_BLOCKS
from inferspec.conformance.properties import refuses, refuses_step
from inferspec.conformance.suite import requirement
from inferspec.conformance.trial import Nonconformance
from inferspec.spec import scheduler as spec
from inferspec.spec.scheduling_histories import MUST, Check, complaints

# what comes out


@requirement(spec.SCHED_01, call=workloads(), share=0.7)
def test_outputs_are_those_of_each_request_alone(subject, call):
    keeps(subject, call, Check.OUTPUT)


@requirement(spec.SCHED_01, call=together(), share=0.4)
def test_mates_do_not_show(subject, call):
    keeps(subject, call, Check.OUTPUT)


@requirement(spec.SCHED_01, call=very_long(), share=0.03)
def test_outputs_of_very_long_requests_are_those_of_each_alone(subject, call):
    keeps(subject, call, *MUST)


@requirement(spec.SCHED_01, call=of_servers(block_sizes=COMMON_BLOCKS), share=0.12)
def test_outputs_of_blocks_and_prompts_of_servers_are_those_of_each_alone(subject, call):
    keeps(subject, call, *MUST)


@requirement(spec.SCHED_02, call=many_ends(), share=0.15)
def test_one_of_many_ids_may_be_the_end(subject, call):
    keeps(subject, call, Check.STOP, Check.OUTPUT)


@requirement(spec.SCHED_02, call=repeating(), share=0.1)
def test_an_id_that_comes_again_and_again_ends_nothing(subject, call):
    keeps(subject, call, Check.STOP, Check.OUTPUT)


@requirement(spec.SCHED_02, call=limits(), share=0.7)
def test_requests_end_where_they_must(subject, call):
    keeps(subject, call, Check.STOP, Check.OUTPUT)


@requirement(spec.SCHED_02, call=ends_in_short_pools(), share=0.3)
def test_preempted_requests_end_where_they_must(subject, call):
    keeps(subject, call, Check.STOP, Check.OUTPUT)


@requirement(spec.SCHED_02, call=limits(first=True), share=0.4)
def test_the_first_id_may_be_the_end(subject, call):
    keeps(subject, call, Check.STOP, Check.OUTPUT)


@requirement(spec.SCHED_02, call=ends_of_zero(), share=0.15)
def test_the_id_0_may_be_the_end(subject, call):
    keeps(subject, call, Check.STOP, Check.OUTPUT)


@requirement(spec.SCHED_02, call=ends_in_prompts(), share=0.15)
def test_an_id_of_the_prompt_ends_nothing(subject, call):
    keeps(subject, call, Check.STOP, Check.OUTPUT)


@requirement(spec.SCHED_02, call=ends_of_others(), share=0.15)
def test_what_ends_one_request_ends_no_other(subject, call):
    keeps(subject, call, Check.STOP, Check.OUTPUT)


@requirement(spec.SCHED_03, call=limits(), share=0.3)
def test_update_tells_who_is_finished(subject, call):
    keeps(subject, call, Check.TOLD, Check.OVER)


@requirement(spec.SCHED_03, call=workloads(), share=1.2)
def test_each_request_is_finished_once(subject, call):
    keeps(subject, call, Check.TOLD, Check.OVER, Check.PROGRESS)


# chunks


@requirement(spec.SCHED_04, call=chunked(), share=0.8)
def test_chunks_follow_each_other(subject, call):
    keeps(subject, call, Check.COVER)


@requirement(spec.SCHED_04, call=overtaken(), share=0.2)
def test_chunks_of_prompts_that_are_overtaken_follow_each_other(subject, call):
    keeps(subject, call, Check.COVER)


@requirement(spec.SCHED_04, call=hits(), share=0.4)
def test_chunks_follow_what_is_cached(subject, call):
    keeps(subject, call, Check.COVER)


@requirement(spec.SCHED_05, call=chunked(), share=0.4)
def test_chunks_have_the_prompt_s_tokens(subject, call):
    keeps(subject, call, Check.TOKENS)


@requirement(spec.SCHED_05, call=growing(), share=0.4)
def test_chunks_have_the_output_s_tokens(subject, call):
    keeps(subject, call, Check.TOKENS)


@requirement(spec.SCHED_05, call=large_ids(), share=0.15)
def test_chunks_have_ids_past_16_bits(subject, call):
    keeps(subject, call, Check.TOKENS, Check.OUTPUT, Check.GHOST, Check.COVER)


@requirement(spec.SCHED_06, call=chunked(), share=0.7)
def test_the_last_chunk_of_a_prompt_samples(subject, call):
    keeps(subject, call, Check.SAMPLES)


@requirement(spec.SCHED_06, call=single(), share=0.7)
def test_no_other_chunk_samples(subject, call):
    keeps(subject, call, Check.SAMPLES)


@requirement(spec.SCHED_07, call=workloads(), share=1.5)
def test_chunks_build_on_what_is_in_their_blocks(subject, call):
    keeps(subject, call, Check.GHOST)


@requirement(spec.SCHED_07, call=hits(), share=0.5)
def test_hits_are_of_what_is_in_the_blocks(subject, call):
    keeps(subject, call, Check.GHOST)


@requirement(spec.SCHED_08, call=workloads(), share=1.3)
def test_chunks_have_blocks_of_their_own(subject, call):
    keeps(subject, call, Check.BLOCKS, Check.APART)


@requirement(spec.SCHED_08, call=chunked(), share=0.4)
def test_chunks_have_room_at_the_edges_of_blocks(subject, call):
    keeps(subject, call, Check.BLOCKS, Check.APART)


@requirement(spec.SCHED_08, call=growing_alike(), share=0.3)
def test_what_is_shared_is_not_written_by_who_was_preempted(subject, call):
    keeps(subject, call, Check.BLOCKS, Check.APART)


@requirement(spec.SCHED_08, call=growing_as_one(), share=0.2)
def test_what_others_computed_of_the_same_output_is_not_written_again(subject, call):
    keeps(subject, call, Check.BLOCKS, Check.APART)


@requirement(spec.SCHED_08, call=hits(), share=0.4)
def test_what_is_shared_is_not_written(subject, call):
    keeps(subject, call, Check.BLOCKS, Check.APART)


@requirement(spec.SCHED_07, call=large_ids(), share=0.15)
def test_ids_past_16_bits_are_told_apart(subject, call):
    keeps(subject, call, Check.GHOST)


# a step


@requirement(spec.SCHED_09, call=chunked(), share=0.5)
def test_the_budget_is_that_of_a_step(subject, call):
    keeps(subject, call, Check.BUDGET)


@requirement(spec.SCHED_01, call=crowds(), share=0.05)
def test_dozens_of_mates_do_not_show(subject, call):
    keeps(subject, call, *MUST)


@requirement(spec.SCHED_01, call=masses(), share=0.03)
def test_hundreds_of_mates_do_not_show(subject, call):
    keeps(subject, call, *MUST)


@requirement(spec.SCHED_09, call=together(), share=0.4)
def test_the_budget_is_shared_by_requests(subject, call):
    keeps(subject, call, Check.BUDGET)


@requirement(spec.SCHED_09, call=trickling(late=(7, 5)), share=0.1)
def test_the_budget_is_the_same_beside_many_who_generate(subject, call):
    keeps(subject, call, Check.BUDGET)


@requirement(spec.SCHED_09, call=hits_lost_in_the_queue(), share=0.3)
def test_the_budget_is_that_of_what_is_cached_no_more_too(subject, call):
    keeps(subject, call, Check.BUDGET)


@requirement(spec.SCHED_09, call=growing(budgets=(3, 2, 4)), share=0.4)
def test_the_budget_is_that_of_what_is_computed_again_too(subject, call):
    keeps(subject, call, Check.BUDGET)


@requirement(spec.SCHED_09, call=long_prompts_ahead(), share=0.1)
def test_the_budget_is_that_of_a_step_that_preempts_too(subject, call):
    keeps(subject, call, Check.BUDGET)


@requirement(spec.SCHED_10, call=together(), share=0.5)
def test_no_more_than_max_requests_run(subject, call):
    keeps(subject, call, Check.MOST)


@requirement(spec.SCHED_10, call=workloads(), share=0.6)
def test_max_requests_holds_whatever_happens(subject, call):
    keeps(subject, call, Check.MOST)


@requirement(spec.SCHED_10, call=left_when_preempted(), share=0.2)
def test_max_requests_holds_when_a_preempted_request_is_cancelled(subject, call):
    keeps(subject, call, Check.MOST)


@requirement(spec.SCHED_30, call=left_by_twins(), share=0.2)
def test_of_requests_that_ask_for_the_same_the_one_meant_is_cancelled(subject, call):
    keeps(subject, call, *MUST)


@requirement(spec.SCHED_10, call=outranked_when_preempted(), share=0.2)
def test_a_preempted_request_waits_for_its_place(subject, call):
    keeps(subject, call, Check.MOST)


@requirement(spec.SCHED_11, call=workloads(), share=0.4)
def test_a_request_has_one_chunk_in_a_step(subject, call):
    keeps(subject, call, Check.ONCE)


@requirement(spec.SCHED_12, call=chunked(), share=0.4)
def test_decodes_and_prefills_are_told_apart(subject, call):
    keeps(subject, call, Check.KIND)


@requirement(spec.SCHED_12, call=growing(), share=0.3)
def test_what_is_computed_again_is_prefill(subject, call):
    keeps(subject, call, Check.KIND)


@requirement(spec.SCHED_13, call=crowds(), share=0.05)
def test_a_step_decodes_for_dozens(subject, call):
    keeps(subject, call, Check.ALL)


@requirement(spec.SCHED_13, call=together(), share=3.0)
def test_a_step_decodes_for_all(subject, call):
    keeps(subject, call, Check.ALL)


@requirement(spec.SCHED_13, call=evicted(), share=0.5)
def test_a_step_that_preempts_decodes_for_all_others(subject, call):
    keeps(subject, call, Check.ALL)


@requirement(spec.SCHED_14, call=chunked(), share=0.4)
def test_prompts_do_not_hold_up_others(subject, call):
    keeps(subject, call, Check.STALL)


@requirement(spec.SCHED_15, call=together(), share=0.4)
def test_no_budget_is_left_idle(subject, call):
    keeps(subject, call, Check.WORK)


@requirement(spec.SCHED_15, call=hits(), share=1.1)
def test_no_budget_is_left_idle_where_prompts_are_cached(subject, call):
    keeps(subject, call, Check.WORK)


@requirement(spec.SCHED_15, call=hits_at_once(), share=0.1)
def test_no_budget_is_left_idle_where_prompts_that_come_at_once_are_cached(subject, call):
    keeps(subject, call, Check.WORK)


@requirement(spec.SCHED_15, call=joining_a_crowd(), share=0.1)
def test_no_budget_is_left_idle_where_many_generate(subject, call):
    keeps(subject, call, Check.WORK)


@requirement(spec.SCHED_15, call=hits_beside_one_that_generates(), share=0.1)
def test_no_budget_is_left_idle_where_prompts_are_cached_and_one_generates(subject, call):
    keeps(subject, call, Check.WORK)


@requirement(spec.SCHED_15, call=crowds(), share=0.03)
def test_no_budget_is_left_idle_where_dozens_of_prompts_come_at_once(subject, call):
    keeps(subject, call, Check.WORK)


@requirement(spec.SCHED_15, call=trickling(), share=0.3)
def test_no_budget_is_left_idle_beside_those_who_generate(subject, call):
    keeps(subject, call, Check.WORK)


@requirement(spec.SCHED_15, call=growing(), share=0.4)
def test_no_budget_is_left_idle_for_those_who_were_preempted(subject, call):
    keeps(subject, call, Check.WORK)


@requirement(spec.SCHED_15, call=left_when_preempted(), share=0.1)
def test_a_preempted_request_that_is_cancelled_leaves_its_place(subject, call):
    keeps(subject, call, Check.WORK)


@requirement(spec.SCHED_15, call=workloads(), share=0.4)
def test_what_there_is_room_for_is_admitted(subject, call):
    keeps(subject, call, Check.WORK)


# order


@requirement(spec.SCHED_16, call=ranked(), share=1.8)
def test_larger_priorities_are_admitted_first(subject, call):
    keeps(subject, call, Check.ORDER)


@requirement(spec.SCHED_16, call=ranked_and_left(), share=0.3)
def test_larger_priorities_are_admitted_first_when_some_have_left(subject, call):
    keeps(subject, call, Check.ORDER)


@requirement(spec.SCHED_16, call=ranked_and_deserted(), share=0.06)
def test_larger_priorities_are_admitted_first_when_many_have_left(subject, call):
    keeps(subject, call, Check.ORDER)


@requirement(spec.SCHED_16, call=far_ranked(), share=0.2)
def test_priorities_past_53_bits_are_told_apart(subject, call):
    keeps(subject, call, Check.ORDER)


@requirement(spec.SCHED_17, call=queued(), share=1.5)
def test_nobody_overtakes(subject, call):
    keeps(subject, call, Check.ORDER)


@requirement(spec.SCHED_17, call=queued_in_turns(), share=0.2)
def test_nobody_overtakes_who_came_as_others_ended(subject, call):
    keeps(subject, call, Check.ORDER)


@requirement(spec.SCHED_17, call=queued_hits(), share=0.2)
def test_what_is_cached_of_a_prompt_does_not_move_it_ahead(subject, call):
    keeps(subject, call, Check.ORDER)


@requirement(spec.SCHED_17, call=deserted(), share=0.1)
def test_nobody_overtakes_when_many_have_left(subject, call):
    keeps(subject, call, Check.ORDER)


@requirement(spec.SCHED_18, call=evicted(), share=1.0)
def test_a_preempted_request_keeps_its_place(subject, call):
    keeps(subject, call, Check.ORDER)


@requirement(spec.SCHED_18, call=evicted_again(), share=0.5)
def test_a_request_keeps_its_place_when_it_is_preempted_again(subject, call):
    keeps(subject, call, Check.ORDER)


@requirement(spec.SCHED_19, call=growing(), share=0.7)
def test_nobody_gives_way_to_one_behind(subject, call):
    keeps(subject, call, Check.VICTIM)


@requirement(spec.SCHED_19, call=growing(priorities=["different"]), share=0.5)
def test_no_larger_priority_gives_way(subject, call):
    keeps(subject, call, Check.VICTIM)


@requirement(spec.SCHED_19, call=long_prompts_ahead(), share=0.1)
def test_no_prompt_of_a_larger_priority_gives_way(subject, call):
    keeps(subject, call, Check.VICTIM)


@requirement(spec.SCHED_20, call=growing(), share=0.9)
def test_nobody_is_preempted_without_need(subject, call):
    keeps(subject, call, Check.NEEDLESS)


@requirement(spec.SCHED_20, call=long_and_growing(), share=0.15)
def test_nobody_is_preempted_whose_blocks_stay_free(subject, call):
    keeps(subject, call, Check.NEEDLESS)


@requirement(spec.SCHED_20, call=ranked(), share=0.4)
def test_a_larger_priority_takes_no_blocks_from_those_who_run(subject, call):
    keeps(subject, call, Check.NEEDLESS)


@requirement(spec.SCHED_20, call=outranked_in_vain(), share=0.2)
def test_nobody_makes_room_for_one_that_would_not_fit_even_then(subject, call):
    keeps(subject, call, Check.NEEDLESS)


@requirement(spec.SCHED_20, call=voided_growing(), share=0.3)
def test_nobody_is_preempted_for_a_void_step_that_is_done_again(subject, call):
    keeps(subject, call, Check.NEEDLESS)


# preemption


@requirement(spec.SCHED_21, call=growing(), share=1.0)
def test_preemption_does_not_show(subject, call):
    keeps(subject, call, Check.OUTPUT, Check.STOP, Check.TOKENS, Check.COVER, Check.GHOST)


@requirement(spec.SCHED_21, call=evicted(), share=0.5)
def test_preemption_does_not_show_beside_those_who_wait(subject, call):
    keeps(subject, call, Check.OUTPUT, Check.STOP, Check.TOKENS, Check.COVER, Check.GHOST)


@requirement(spec.SCHED_21, call=preempted_again_and_again(block_sizes=[1]), share=0.03)
def test_a_request_may_be_preempted_many_times(subject, call):
    keeps(subject, call, Check.OUTPUT, Check.STOP, Check.TOKENS, Check.COVER, Check.GHOST)


@requirement(spec.SCHED_21, call=hits_lost_when_preempted(), share=0.2)
def test_what_was_cached_of_a_preempted_request_may_be_gone(subject, call):
    keeps(subject, call, Check.OUTPUT, Check.STOP, Check.TOKENS, Check.COVER, Check.GHOST)


@requirement(spec.SCHED_22, call=resumed(), share=0.7)
def test_a_preempted_request_has_no_block(subject, call):
    keeps(subject, call, Check.FREE, Check.APART, Check.OVER)


@requirement(spec.SCHED_49, call=growing(), share=0.4)
def test_steps_tell_who_was_preempted_for_them(subject, call):
    keeps(subject, call, Check.NAMED)


@requirement(spec.SCHED_49, call=preempted_in_turn(), share=0.2)
def test_steps_do_not_tell_who_was_preempted_before(subject, call):
    keeps(subject, call, Check.NAMED)


# progress


@requirement(spec.SCHED_23, call=workloads(), share=0.5)
def test_no_step_is_empty_while_there_is_work(subject, call):
    keeps(subject, call, Check.IDLE)


@requirement(spec.SCHED_23, call=in_flight(), share=0.4)
def test_no_step_is_empty_after_others_come_and_go(subject, call):
    keeps(subject, call, Check.IDLE)


@requirement(spec.SCHED_24, call=growing(), share=0.7)
def test_every_request_finishes_in_a_small_pool(subject, call):
    keeps(subject, call, Check.PROGRESS)


@requirement(spec.SCHED_24, call=beside_a_long_prompt(), share=0.3)
def test_a_request_that_grows_and_a_half_computed_prompt_do_not_wait_for_each_other(subject, call):
    keeps(subject, call, Check.PROGRESS)


@requirement(spec.SCHED_24, call=queued(), share=0.9)
def test_every_request_finishes_in_a_queue(subject, call):
    keeps(subject, call, Check.PROGRESS)


@requirement(spec.SCHED_24, call=deserted(), share=0.15)
def test_every_request_finishes_when_many_have_left(subject, call):
    keeps(subject, call, Check.PROGRESS)


@requirement(spec.SCHED_24, call=left_when_preempted(), share=0.2)
def test_every_request_finishes_when_a_preempted_one_is_cancelled(subject, call):
    keeps(subject, call, Check.PROGRESS)


@requirement(spec.SCHED_25, call=exact(), share=0.5)
def test_every_slot_can_be_used(subject, call):
    completes = (Check.OUTPUT, Check.STOP, Check.BLOCKS, Check.GHOST, Check.IDLE, Check.PROGRESS)
    keeps_beyond(subject, call, call.having(num_blocks=call.arguments["num_blocks"] + 1), *completes)


@requirement(spec.SCHED_26, story=too_long(), share=0.4)
def test_what_can_never_fit_is_refused(subject, story):
    refuses_step(subject, story)


@requirement(spec.SCHED_27, call=workloads(), share=0.5)
def test_blocks_come_back(subject, call):
    keeps(subject, call, Check.FREE)


@requirement(spec.SCHED_27, call=growing(), share=0.4)
def test_blocks_come_back_from_a_small_pool(subject, call):
    keeps(subject, call, Check.FREE)


# steps that nothing comes of


@requirement(spec.SCHED_28, call=voided(), share=1.0)
def test_a_void_step_is_handed_out_again(subject, call):
    keeps(subject, call, Check.OUTPUT, Check.STOP, Check.COVER, Check.TOKENS, Check.SAMPLES, Check.IDLE, Check.PROGRESS)


@requirement(spec.SCHED_28, call=voided_again(), share=0.15)
def test_a_step_may_be_void_many_times(subject, call):
    keeps(subject, call, Check.OUTPUT, Check.STOP, Check.COVER, Check.TOKENS, Check.SAMPLES, Check.IDLE, Check.PROGRESS)


@requirement(spec.SCHED_28, call=voided_growing(), share=0.5)
def test_nobody_is_lost_who_was_preempted_for_a_void_step(subject, call):
    keeps(subject, call, Check.OUTPUT, Check.STOP, Check.COVER, Check.TOKENS, Check.SAMPLES, Check.IDLE, Check.PROGRESS)


@requirement(spec.SCHED_29, call=conversations(), share=1.4)
def test_what_was_generated_is_hit_when_it_was_computed(subject, call):
    keeps(subject, call, Check.GHOST)


@requirement(spec.SCHED_29, call=interrupted(), share=0.3)
def test_the_last_id_of_who_was_cancelled_is_not_hit(subject, call):
    keeps(subject, call, Check.GHOST)


@requirement(spec.SCHED_29, call=hits(), share=1.0)
def test_what_was_not_computed_is_not_hit(subject, call):
    keeps(subject, call, Check.GHOST)


@requirement(spec.SCHED_29, call=computed_again_in_chunks(), share=0.2)
def test_what_is_yet_to_be_computed_again_is_not_hit(subject, call):
    keeps(subject, call, Check.GHOST)


@requirement(spec.SCHED_48, call=going_on(), share=0.8)
def test_what_was_computed_is_not_computed_again(subject, call):
    keeps(subject, call, Check.HITS)


@requirement(spec.SCHED_48, call=ended_together(), share=0.2)
def test_what_was_computed_is_not_computed_again_whoever_ended_with_it(subject, call):
    keeps(subject, call, Check.HITS)


@requirement(spec.SCHED_48, call=ended_when_resumed(block_sizes=[2, 3, 4, 8]), share=0.2)
def test_what_a_preempted_request_computed_again_is_not_computed_a_third_time(subject, call):
    keeps(subject, call, Check.HITS)


# cancelling


@requirement(spec.SCHED_30, call=cancelled(), share=0.7)
def test_requests_can_be_cancelled_in_any_state(subject, call):
    keeps(subject, call, Check.STOP, Check.OVER, Check.OUTPUT, Check.TOLD, Check.PROGRESS)


@requirement(spec.SCHED_47, call=cancelled(), share=0.4)
def test_who_is_finished_can_be_cancelled(subject, call):
    keeps(subject, call, Check.GONE)


@requirement(spec.SCHED_31, call=cancelled(), share=0.4)
def test_a_cancelled_request_gives_its_blocks_back(subject, call):
    keeps(subject, call, Check.FREE)


@requirement(spec.SCHED_31, call=resumed(), share=0.4)
def test_blocks_come_back_however_requests_end(subject, call):
    keeps(subject, call, Check.FREE)


@requirement(spec.SCHED_32, call=in_flight(), share=0.7)
def test_what_is_cancelled_in_flight_stays_cancelled(subject, call):
    keeps(subject, call, Check.STOP, Check.OVER, Check.OUTPUT, Check.TOLD, Check.FREE, Check.PROGRESS)


@requirement(spec.SCHED_32, call=left_in_flight(), share=0.2)
def test_several_that_are_cancelled_in_one_step_stay_cancelled(subject, call):
    keeps(subject, call, Check.STOP, Check.OVER, Check.OUTPUT, Check.TOLD, Check.FREE, Check.PROGRESS)


@requirement(spec.SCHED_33, call=in_flight(), share=0.7)
def test_what_is_added_in_flight_waits(subject, call):
    keeps(subject, call, Check.STATE, Check.TOLD, Check.OUTPUT, Check.ORDER, Check.PROGRESS)


@requirement(spec.SCHED_34, story=strangers(), share=0.15)
def test_a_stranger_is_not_cancelled(subject, story):
    refuses_step(subject, story)


# states and misuse


@requirement(spec.SCHED_35, call=workloads(), share=1.8)
def test_states_are_those_of_the_last_call(subject, call):
    keeps(subject, call, Check.STATE, Check.STOP)


@requirement(spec.SCHED_35, call=growing(), share=0.4)
def test_states_tell_who_was_preempted(subject, call):
    keeps(subject, call, Check.STATE, Check.STOP)


@requirement(spec.SCHED_36, story=senseless(), share=0.2)
def test_senseless_requests_are_refused(subject, story):
    refuses_step(subject, story)


@requirement(spec.SCHED_37, story=added_again(), share=0.4)
def test_a_request_is_added_once(subject, story):
    refuses_step(subject, story)


@requirement(spec.SCHED_37, story=preempted_again(), share=0.2)
def test_a_preempted_request_is_not_added_again(subject, story):
    refuses_step(subject, story)


@requirement(spec.SCHED_37, call=passers_by(), share=0.15)
def test_a_new_request_is_not_taken_for_one_that_is_gone(subject, call):
    keeps(subject, call, Check.RAISED)


@requirement(spec.SCHED_38, story=too_long(), share=0.3)
def test_a_refused_request_changes_nothing(subject, story):
    goes_on_after_refusal(subject, story)


@requirement(spec.SCHED_38, story=senseless(), share=0.3)
def test_a_senseless_request_changes_nothing(subject, story):
    goes_on_after_refusal(subject, story)


@requirement(spec.SCHED_38, story=added_again(), share=0.5)
def test_a_second_add_changes_nothing(subject, story):
    goes_on_after_refusal(subject, story)


@requirement(spec.SCHED_38, story=preempted_again(), share=0.2)
def test_a_second_add_of_who_was_preempted_changes_nothing(subject, story):
    goes_on_after_refusal(subject, story)


@requirement(spec.SCHED_38, story=strangers(), share=0.15)
def test_a_refused_cancel_changes_nothing(subject, story):
    goes_on_after_refusal(subject, story)


@requirement(spec.SCHED_39, story=wrong_updates(ways=("another step",)), share=0.4)
def test_another_step_is_refused(subject, story):
    refuses_where_it_can_be_done(subject, story)


@requirement(spec.SCHED_40, story=wrong_updates(ways=("too few", "too many")), share=0.4)
def test_another_number_of_entries_is_refused(subject, story):
    refuses_where_it_can_be_done(subject, story)


@requirement(spec.SCHED_40, story=wrong_updates_of_the_cancelled(ways=("too few",)), share=0.2)
def test_an_update_without_the_entry_of_who_was_cancelled_is_refused(subject, story):
    refuses_where_it_can_be_done(subject, story)


@requirement(spec.SCHED_41, story=wrong_updates(ways=("an id", "no id")), share=0.6)
def test_ids_where_none_belong_are_refused(subject, story):
    refuses_where_it_can_be_done(subject, story)


@requirement(spec.SCHED_42, story=wrong_updates(), share=1.0)
def test_a_refused_update_changes_nothing(subject, story):
    goes_on_after_refusal(subject, story)


@requirement(spec.SCHED_42, story=wrong_updates_of_the_cancelled(), share=0.2)
def test_a_refused_update_of_who_was_cancelled_changes_nothing(subject, story):
    goes_on_after_refusal(subject, story)


@requirement(spec.SCHED_43, call=growing(), share=0.2)
def test_the_caller_s_tokens_are_not_changed(subject, call):
    keeps(subject, call, Check.CALLER)


@requirement(spec.SCHED_46, call=written_over(), share=0.2)
def test_the_list_of_tokens_is_the_caller_s(subject, call):
    keeps(subject, call, *MUST)


@requirement(spec.SCHED_44, first=abandoned(), second=workloads(), share=0.4)
def test_schedulers_keep_apart(subject, first, second):
    subject.observe(first)
    keeps(subject, second, *MUST)


@requirement(spec.SCHED_44, call=side_by_side(), share=0.4)
def test_schedulers_side_by_side_keep_apart(subject, call):
    keeps(subject, call, *MUST)


@requirement(spec.SCHED_45, call=no_limits(), share=0.1)
def test_a_scheduler_that_may_do_nothing_is_refused(subject, call):
    refuses(subject, call)


def keeps(subject, call, *checks):
    """The story's history has nothing against these checks, and nothing raises."""
    seen = subject.answered(call)

    def judge(meant):
        for complaint in complaints(subject.promised(meant), seen.results):
            if complaint.check in (*checks, Check.RAISED):
                refusal = complaint.check is Check.RAISED
                raise subject.objection(call, seen, complaint.step, complaint.text, refusal)

    subject.judged(call, judge)


def refuses_where_it_can_be_done(subject, story):
    """The step is refused, unless the scheduler left nothing to do it with."""
    call, bad = story
    short = call.having(steps=call.arguments["steps"][:bad])
    if f"{bad} absent" not in subject.answered(short).results:
        refuses_step(subject, story)


def goes_on_after_refusal(subject, story):
    """The step changes nothing of the story. Whether it is refused at all is another requirement's matter."""
    call, bad = story
    if f"{bad} refused" in subject.answered(call).results:
        steps = call.arguments["steps"]
        nothing = ("pass_by", {"times": 0})
        keeps_beyond(subject, call, call.having(steps=(*steps[: bad - 1], nothing, *steps[bad:])), *MUST)


def keeps_beyond(subject, call, easier, *checks):
    """The story has nothing against these checks that an easier one does not have too."""
    try:
        keeps(subject, call, *checks)
    except Nonconformance:
        wrong = {one.check for one in complaints(subject.promised(easier), subject.answered(easier).results)}
        if Check.RAISED not in wrong:
            keeps(subject, call, *(check for check in checks if check not in wrong))
