"""Does a scheduler keep the contract in its chunks: what they have, what they build on, and what is not computed again?"""

from inferspec.conformance.inputs.scheduler import chunked, overtaken, single, voided, voided_again, workloads
from inferspec.conformance.inputs.scheduler_pools import (
    computed_again_in_chunks,
    giving_way_beside_a_long_prompt,
    growing,
    growing_alike,
    growing_as_one,
    left_when_half_computed_again,
    voided_growing,
)
from inferspec.conformance.inputs.scheduler_prefixes import (
    beside_one_that_goes_on,
    computed_again_where_it_was_taken,
    conversations,
    ended_together,
    ended_when_resumed,
    going_on,
    guessed_outputs,
    hits,
    interrupted,
    large_ids,
)
from inferspec.conformance.properties.scheduler import keeps
from inferspec.conformance.suite import requirement
from inferspec.spec import scheduler as spec
from inferspec.spec.scheduling_histories import Check

# chunks


@requirement(spec.SCHED_04, call=chunked(), share=0.8)
def test_chunks_follow_each_other(subject, call):
    keeps(subject, call, Check.COVER)


@requirement(spec.SCHED_04, call=overtaken(), share=0.2)
def test_chunks_of_prompts_that_are_overtaken_follow_each_other(subject, call):
    keeps(subject, call, Check.COVER)


@requirement(spec.SCHED_04, call=left_when_half_computed_again(), share=0.15)
def test_chunks_of_who_is_resumed_follow_each_other_when_others_leave(subject, call):
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


@requirement(spec.SCHED_08, call=giving_way_beside_a_long_prompt(), share=0.05)
def test_chunks_have_room_beside_one_that_gives_way(subject, call):
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


@requirement(spec.SCHED_07, call=guessed_outputs(), share=0.1)
def test_hits_are_of_the_ids_that_were_generated(subject, call):
    keeps(subject, call, Check.GHOST)


@requirement(spec.SCHED_07, call=guessed_outputs(again=True), share=0.03)
def test_an_id_that_was_generated_once_is_not_hit_again_and_again(subject, call):
    keeps(subject, call, Check.GHOST)


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


# what was computed


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


@requirement(spec.SCHED_48, call=beside_one_that_goes_on(), share=0.2)
def test_what_was_computed_is_not_computed_again_while_who_computed_it_goes_on(subject, call):
    keeps(subject, call, Check.HITS)


@requirement(spec.SCHED_48, call=ended_together(), share=0.2)
def test_what_was_computed_is_not_computed_again_whoever_ended_with_it(subject, call):
    keeps(subject, call, Check.HITS)


@requirement(spec.SCHED_48, call=ended_when_resumed(block_sizes=[2, 3, 4, 8]), share=0.2)
def test_what_a_preempted_request_computed_again_is_not_computed_a_third_time(subject, call):
    keeps(subject, call, Check.HITS)


@requirement(spec.SCHED_48, call=computed_again_where_it_was_taken(block_sizes=[2, 3, 4, 8]), share=0.1)
def test_what_was_computed_again_where_others_took_its_blocks_is_not_computed_a_third_time(subject, call):
    keeps(subject, call, Check.HITS)
