"""Does a scheduler keep the contract? The history of each story is judged by what it shows, not by which schedule it is."""

from inferspec.conformance.inputs.scheduler import (
    abandoned,
    beside_other_blocks,
    chunked,
    crowds,
    ends_in_prompts,
    ends_of_one_prompt,
    ends_of_others,
    ends_of_zero,
    ends_past_16_bits,
    exact,
    in_many_chunks,
    limits,
    many_ends,
    masses,
    of_servers,
    repeating,
    side_by_side,
    together,
    trickling,
    very_long,
    workloads,
    written_over,
)
from inferspec.conformance.inputs.scheduler_leavers import deserted, in_flight, left_when_preempted
from inferspec.conformance.inputs.scheduler_pools import (
    beside_a_long_prompt,
    ending_as_another_gives_way,
    ends_in_short_pools,
    evicted,
    growing,
    itself_in_the_midst,
    leaving_together,
    resumed_in_what_is_left,
)
from inferspec.conformance.inputs.scheduler_prefixes import (
    hits,
    hits_at_once,
    hits_beside_one_that_generates,
    hits_in_use,
    hits_lost_in_the_queue,
    of_one_prompt,
)
from inferspec.conformance.inputs.scheduler_queues import (
    joining_a_crowd,
    joining_where_little_is_left,
    long_prompt_in_the_midst,
    long_prompts_ahead,
    outranked_when_preempted,
    queued,
)
from inferspec.conformance.inputs.scheduler_refusals import no_limits, too_long
from inferspec.conformance.inputs.scheduler_script import COMMON_BLOCKS
from inferspec.conformance.properties.common import refuses, refuses_step
from inferspec.conformance.properties.scheduler import keeps, keeps_beyond
from inferspec.conformance.suite import requirement
from inferspec.spec import scheduler as spec
from inferspec.spec.scheduling_histories import MUST, Check

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


@requirement(spec.SCHED_01, call=of_servers(block_sizes=COMMON_BLOCKS), share=0.15)
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


@requirement(spec.SCHED_02, call=ends_in_short_pools(), share=0.4)
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


@requirement(spec.SCHED_02, call=ends_of_one_prompt(), share=0.1)
def test_requests_of_one_prompt_end_where_each_must(subject, call):
    keeps(subject, call, Check.STOP, Check.OUTPUT)


@requirement(spec.SCHED_02, call=ends_past_16_bits(), share=0.1)
def test_an_id_that_is_like_an_end_in_its_low_bits_ends_nothing(subject, call):
    keeps(subject, call, Check.STOP, Check.OUTPUT)


@requirement(spec.SCHED_02, call=ends_of_others(), share=0.15)
def test_what_ends_one_request_ends_no_other(subject, call):
    keeps(subject, call, Check.STOP, Check.OUTPUT)


@requirement(spec.SCHED_03, call=limits(), share=0.35)
def test_update_tells_who_is_finished(subject, call):
    keeps(subject, call, Check.TOLD, Check.OVER)


@requirement(spec.SCHED_03, call=workloads(), share=1.2)
def test_each_request_is_finished_once(subject, call):
    keeps(subject, call, Check.TOLD, Check.OVER, Check.PROGRESS)


@requirement(spec.SCHED_03, call=ending_as_another_gives_way(), share=0.1)
def test_update_tells_who_is_finished_as_another_gives_way(subject, call):
    keeps(subject, call, Check.TOLD, Check.OVER)


@requirement(spec.SCHED_01, call=crowds(), share=0.05)
def test_dozens_of_mates_do_not_show(subject, call):
    keeps(subject, call, *MUST)


@requirement(spec.SCHED_01, call=masses(), share=0.03)
def test_hundreds_of_mates_do_not_show(subject, call):
    keeps(subject, call, *MUST)


# a step


@requirement(spec.SCHED_09, call=chunked(), share=0.5)
def test_the_budget_is_that_of_a_step(subject, call):
    keeps(subject, call, Check.BUDGET)


@requirement(spec.SCHED_09, call=together(), share=0.4)
def test_the_budget_is_shared_by_requests(subject, call):
    keeps(subject, call, Check.BUDGET)


@requirement(spec.SCHED_09, call=trickling(late=(7, 5)), share=0.1)
def test_the_budget_is_the_same_beside_many_who_generate(subject, call):
    keeps(subject, call, Check.BUDGET)


@requirement(spec.SCHED_09, call=hits_lost_in_the_queue(), share=0.3)
def test_the_budget_is_that_of_what_is_cached_no_more_too(subject, call):
    keeps(subject, call, Check.BUDGET)


@requirement(spec.SCHED_09, call=growing(budgets=(3, 2, 4)), share=0.5)
def test_the_budget_is_that_of_what_is_computed_again_too(subject, call):
    keeps(subject, call, Check.BUDGET)


@requirement(spec.SCHED_09, call=long_prompts_ahead(), share=0.15)
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


@requirement(spec.SCHED_13, call=itself_in_the_midst(block_sizes=[4, 8, 16]), share=0.1)
def test_a_request_that_gives_way_for_itself_leaves_others_their_turn(subject, call):
    keeps(subject, call, Check.ALL)


@requirement(spec.SCHED_13, call=long_prompt_in_the_midst(), share=0.1)
def test_a_step_decodes_for_those_behind_a_long_prompt(subject, call):
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


@requirement(spec.SCHED_15, call=hits_at_once(), share=0.15)
def test_no_budget_is_left_idle_where_prompts_that_come_at_once_are_cached(subject, call):
    keeps(subject, call, Check.WORK)


@requirement(spec.SCHED_15, call=hits_in_use(), share=0.1)
def test_no_budget_is_left_idle_where_prompts_share_what_is_in_use(subject, call):
    keeps(subject, call, Check.WORK)


@requirement(spec.SCHED_15, call=joining_a_crowd(), share=0.1)
def test_no_budget_is_left_idle_where_many_generate(subject, call):
    keeps(subject, call, Check.WORK)


@requirement(spec.SCHED_15, call=joining_where_little_is_left(), share=0.1)
def test_no_budget_is_left_idle_where_few_of_many_blocks_are_free(subject, call):
    keeps(subject, call, Check.WORK)


@requirement(spec.SCHED_15, call=hits_beside_one_that_generates(), share=0.1)
def test_no_budget_is_left_idle_where_prompts_are_cached_and_one_generates(subject, call):
    keeps(subject, call, Check.WORK)


@requirement(spec.SCHED_15, call=crowds(), share=0.04)
def test_no_budget_is_left_idle_where_dozens_of_prompts_come_at_once(subject, call):
    keeps(subject, call, Check.WORK)


@requirement(spec.SCHED_15, call=trickling(), share=0.3)
def test_no_budget_is_left_idle_beside_those_who_generate(subject, call):
    keeps(subject, call, Check.WORK)


@requirement(spec.SCHED_15, call=growing(), share=0.5)
def test_no_budget_is_left_idle_for_those_who_were_preempted(subject, call):
    keeps(subject, call, Check.WORK)


@requirement(spec.SCHED_15, call=resumed_in_what_is_left(block_sizes=[2, 3, 4, 8, 16]), share=0.1)
def test_a_preempted_request_runs_again_where_there_is_just_room_for_it(subject, call):
    keeps(subject, call, Check.WORK)


@requirement(spec.SCHED_15, call=left_when_preempted(), share=0.1)
def test_a_preempted_request_that_is_cancelled_leaves_its_place(subject, call):
    keeps(subject, call, Check.WORK)


@requirement(spec.SCHED_15, call=outranked_when_preempted(), share=0.1)
def test_the_place_of_a_preempted_request_is_free_for_those_before_it(subject, call):
    keeps(subject, call, Check.WORK)


@requirement(spec.SCHED_15, call=leaving_together(), share=0.1)
def test_what_there_is_room_for_when_two_leave_together_is_admitted(subject, call):
    keeps(subject, call, Check.WORK)


@requirement(spec.SCHED_15, call=workloads(), share=0.4)
def test_what_there_is_room_for_is_admitted(subject, call):
    keeps(subject, call, Check.WORK)


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


@requirement(spec.SCHED_24, call=in_many_chunks(), share=0.04)
def test_a_request_finishes_however_many_chunks_its_prompt_takes(subject, call):
    keeps(subject, call, Check.PROGRESS, Check.STOP)


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


@requirement(spec.SCHED_27, call=ending_as_another_gives_way(), share=0.1)
def test_blocks_come_back_of_one_that_ends_as_another_gives_way(subject, call):
    keeps(subject, call, Check.FREE)


@requirement(spec.SCHED_27, call=of_one_prompt(), share=0.1)
def test_blocks_come_back_of_requests_that_ask_for_the_same(subject, call):
    keeps(subject, call, Check.FREE)


@requirement(spec.SCHED_27, call=growing(), share=0.4)
def test_blocks_come_back_from_a_small_pool(subject, call):
    keeps(subject, call, Check.FREE)


# states, and what is the caller's


@requirement(spec.SCHED_35, call=workloads(), share=1.8)
def test_states_are_those_of_the_last_call(subject, call):
    keeps(subject, call, Check.STATE, Check.STOP)


@requirement(spec.SCHED_35, call=growing(), share=0.4)
def test_states_tell_who_was_preempted(subject, call):
    keeps(subject, call, Check.STATE, Check.STOP)


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


@requirement(spec.SCHED_44, call=beside_other_blocks(), share=0.08)
def test_schedulers_of_blocks_of_other_sizes_keep_apart(subject, call):
    keeps(subject, call, *MUST)


@requirement(spec.SCHED_44, call=side_by_side(), share=0.4)
def test_schedulers_side_by_side_keep_apart(subject, call):
    keeps(subject, call, *MUST)


@requirement(spec.SCHED_45, call=no_limits(), share=0.1)
def test_a_scheduler_that_may_do_nothing_is_refused(subject, call):
    refuses(subject, call)
