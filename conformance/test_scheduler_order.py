"""Does a scheduler keep the contract in who goes first and who gives way?"""

from inferspec.conformance.inputs.scheduler_leavers import (
    deserted,
    far_apart,
    ranked_and_deserted,
    ranked_and_left,
)
from inferspec.conformance.inputs.scheduler_pools import (
    behind_one_that_gives_way,
    beside_a_long_prompt,
    evicted,
    evicted_again,
    evicted_by_many,
    growing,
    hits_lost_when_preempted,
    long_and_growing,
    preempted_again_and_again,
    preempted_in_turn,
    preempted_when_half_computed_again,
    resumed,
    voided_and_waiting,
    voided_growing,
)
from inferspec.conformance.inputs.scheduler_prefixes import queued_hits
from inferspec.conformance.inputs.scheduler_queues import (
    far_ranked,
    kept_waiting,
    long_prompts_ahead,
    outranked_in_vain,
    outranked_late,
    queued,
    queued_in_turns,
    ranked,
    ranked_to_the_ends,
)
from inferspec.conformance.properties.scheduler import keeps
from inferspec.conformance.suite import requirement
from inferspec.spec import scheduler as spec
from inferspec.spec.scheduling_histories import Check

# order


@requirement(spec.SCHED_16, call=ranked(), share=1.8)
def test_larger_priorities_are_admitted_first(subject, call):
    keeps(subject, call, Check.ORDER)


@requirement(spec.SCHED_16, call=ranked_and_left(), share=0.4)
def test_larger_priorities_are_admitted_first_when_some_have_left(subject, call):
    keeps(subject, call, Check.ORDER)


@requirement(spec.SCHED_16, call=ranked_and_deserted(), share=0.09)
def test_larger_priorities_are_admitted_first_when_many_have_left(subject, call):
    keeps(subject, call, Check.ORDER)


@requirement(spec.SCHED_16, call=far_apart(), share=0.06)
def test_larger_priorities_are_admitted_first_however_many_came_before(subject, call):
    keeps(subject, call, Check.ORDER)


@requirement(spec.SCHED_16, call=far_ranked(), share=0.2)
def test_priorities_past_53_bits_are_told_apart(subject, call):
    keeps(subject, call, Check.ORDER)


@requirement(spec.SCHED_16, call=ranked_to_the_ends(), share=0.1)
def test_the_smallest_and_the_largest_priorities_are_told_apart(subject, call):
    keeps(subject, call, Check.ORDER)


@requirement(spec.SCHED_16, call=outranked_late(), share=0.06)
def test_larger_priorities_are_admitted_first_however_long_others_have_waited(subject, call):
    keeps(subject, call, Check.ORDER)


@requirement(spec.SCHED_17, call=queued(), share=1.5)
def test_nobody_overtakes(subject, call):
    keeps(subject, call, Check.ORDER)


@requirement(spec.SCHED_17, call=kept_waiting(), share=0.1)
def test_nobody_overtakes_who_has_waited_long_for_blocks(subject, call):
    keeps(subject, call, Check.ORDER)


@requirement(spec.SCHED_17, call=queued_in_turns(), share=0.2)
def test_nobody_overtakes_who_came_as_others_ended(subject, call):
    keeps(subject, call, Check.ORDER)


@requirement(spec.SCHED_17, call=queued_hits(), share=0.2)
def test_what_is_cached_of_a_prompt_does_not_move_it_ahead(subject, call):
    keeps(subject, call, Check.ORDER)


@requirement(spec.SCHED_17, call=far_apart(), share=0.06)
def test_nobody_overtakes_however_many_came_between(subject, call):
    keeps(subject, call, Check.ORDER)


@requirement(spec.SCHED_17, call=deserted(), share=0.1)
def test_nobody_overtakes_when_many_have_left(subject, call):
    keeps(subject, call, Check.ORDER)


@requirement(spec.SCHED_18, call=evicted(), share=1.0)
def test_a_preempted_request_keeps_its_place(subject, call):
    keeps(subject, call, Check.ORDER)


@requirement(spec.SCHED_18, call=evicted_by_many(), share=0.15)
def test_a_request_that_many_go_on_without_keeps_its_place(subject, call):
    keeps(subject, call, Check.ORDER)


@requirement(spec.SCHED_18, call=evicted_again(), share=0.5)
def test_a_request_keeps_its_place_when_it_is_preempted_again(subject, call):
    keeps(subject, call, Check.ORDER)


@requirement(spec.SCHED_18, call=behind_one_that_gives_way(block_sizes=[1]), share=0.04)
def test_a_request_keeps_its_place_however_often_it_gives_way(subject, call):
    keeps(subject, call, Check.ORDER)


@requirement(spec.SCHED_18, call=preempted_when_half_computed_again(block_sizes=[1, 2, 3]), share=0.05)
def test_a_request_that_is_preempted_when_half_computed_again_keeps_its_place(subject, call):
    keeps(subject, call, Check.ORDER)


@requirement(spec.SCHED_18, call=voided_and_waiting(), share=0.1)
def test_a_request_that_is_preempted_for_a_void_step_keeps_its_place(subject, call):
    keeps(subject, call, Check.ORDER)


# who gives way


@requirement(spec.SCHED_19, call=growing(), share=0.7)
def test_nobody_gives_way_to_one_behind(subject, call):
    keeps(subject, call, Check.VICTIM)


@requirement(spec.SCHED_19, call=growing(priorities=["different"]), share=0.5)
def test_no_larger_priority_gives_way(subject, call):
    keeps(subject, call, Check.VICTIM)


@requirement(spec.SCHED_19, call=beside_a_long_prompt(), share=0.15)
def test_nobody_gives_way_to_a_half_computed_prompt_behind(subject, call):
    keeps(subject, call, Check.VICTIM)


@requirement(spec.SCHED_19, call=evicted_again(), share=0.2)
def test_nobody_gives_way_to_one_that_gave_way_before(subject, call):
    keeps(subject, call, Check.VICTIM)


@requirement(spec.SCHED_19, call=long_prompts_ahead(), share=0.15)
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


@requirement(spec.SCHED_20, call=outranked_in_vain(full=True), share=0.1)
def test_nobody_leaves_its_place_to_one_that_finds_no_room(subject, call):
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


@requirement(
    spec.SCHED_21, call=preempted_when_half_computed_again(block_sizes=[1, 2, 3], prefix_caching=[False]), share=0.05
)
def test_a_request_may_be_preempted_when_it_is_half_computed_again(subject, call):
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
