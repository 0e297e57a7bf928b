"""Are blocks evicted in their order, and is there room where there should be?"""

from inferspec.conformance.inputs.block_manager import (
    large_tables,
    workloads,
)
from inferspec.conformance.inputs.block_manager_copies import (
    copied,
    copies_taken_beside_hits,
)
from inferspec.conformance.inputs.block_manager_evictions import (
    all_that_is_cached_taken,
    asked_again,
    evicting,
    evicting_sharers,
    grown_into_all,
    grown_to_the_last_slot,
    hits_among_the_free,
    hits_partly_in_use,
    long_evicted,
    overtaken,
    overwritten,
    room_among_the_cached,
    seasoned,
    tight,
    well_known,
)
from inferspec.conformance.inputs.block_manager_refusals import (
    too_long_among_the_cached,
    too_long_appends,
    too_long_in_turns,
    too_long_prompts,
)
from inferspec.conformance.properties.block_manager import keeps, keeps_after_refusal
from inferspec.conformance.properties.common import refuses_step
from inferspec.conformance.suite import requirement
from inferspec.spec import block_manager as spec
from inferspec.spec.block_histories import Check

# eviction


@requirement(spec.BLK_15, call=evicting(eviction=["oldest first"]), share=1.0)
def test_blocks_are_evicted_in_the_order_in_which_they_were_freed(subject, call):
    keeps(subject, call, Check.ORDER)


@requirement(spec.BLK_15, call=evicting_sharers(), share=0.3)
def test_blocks_of_tables_that_share_some_are_evicted_last_block_first(subject, call):
    keeps(subject, call, Check.ORDER)


@requirement(spec.BLK_15, call=evicting_sharers(shared=(3, 4, 9, 17)), share=0.2)
def test_blocks_of_tables_that_share_many_are_evicted_last_block_first(subject, call):
    keeps(subject, call, Check.ORDER)


@requirement(spec.BLK_15, call=long_evicted(), share=0.1)
def test_of_a_prompt_of_many_blocks_the_last_is_evicted_first(subject, call):
    keeps(subject, call, Check.ORDER)


@requirement(spec.BLK_15, call=seasoned(), share=0.05)
def test_blocks_are_evicted_in_order_after_hundreds_of_prompts(subject, call):
    keeps(subject, call, Check.ORDER, Check.FREE)


@requirement(spec.BLK_15, call=well_known(), share=0.1)
def test_blocks_that_were_hit_time_after_time_are_evicted_in_order(subject, call):
    keeps(subject, call, Check.ORDER)


@requirement(spec.BLK_16, call=evicting(uncached=True), share=0.7)
def test_blocks_that_are_not_cached_are_taken_first(subject, call):
    keeps(subject, call, Check.SPARE)


@requirement(spec.BLK_16, call=overwritten(), share=0.3)
def test_blocks_that_are_not_cached_any_more_are_taken_first(subject, call):
    keeps(subject, call, Check.SPARE)


@requirement(spec.BLK_17, call=overtaken(), share=0.7)
def test_what_was_taken_for_other_tokens_is_not_hit(subject, call):
    keeps(subject, call, Check.SOUND, Check.APART)


@requirement(spec.BLK_17, call=asked_again(taken=True), share=0.1)
def test_what_was_taken_since_a_prompt_was_refused_is_not_hit(subject, call):
    keeps(subject, call, Check.SOUND)


@requirement(spec.BLK_17, call=copied(), share=0.5)
def test_one_of_two_copies_that_was_taken_is_not_hit(subject, call):
    keeps(subject, call, Check.SOUND, Check.APART, Check.COMPLETE)


@requirement(spec.BLK_17, call=copies_taken_beside_hits(spare=1), share=0.15)
def test_a_copy_that_was_taken_is_not_hit_beside_the_other(subject, call):
    keeps(subject, call, Check.SOUND, Check.APART)


@requirement(spec.BLK_17, call=evicting(), share=0.5)
def test_what_was_evicted_is_not_hit(subject, call):
    keeps(subject, call, Check.SOUND, Check.APART)


@requirement(spec.BLK_18, call=hits_among_the_free(), share=0.7)
def test_free_blocks_that_are_hit_count_once(subject, call):
    keeps(subject, call, Check.COUNT, Check.SOUND, Check.ADMITS, Check.REFUSES, Check.FREE, Check.COMPLETE)


# room


@requirement(spec.BLK_19, story=too_long_prompts(), share=0.7)
def test_a_prompt_of_more_blocks_than_are_free_is_refused(subject, story):
    refuses_step(subject, story)


@requirement(spec.BLK_20, call=hits_partly_in_use(), share=0.2)
def test_blocks_that_are_hit_in_use_and_free_ones_are_counted_each_as_it_is(subject, call):
    keeps(subject, call, Check.ADMITS, Check.REFUSES, Check.FREE)


@requirement(spec.BLK_20, call=all_that_is_cached_taken(), share=0.03)
def test_a_large_pool_of_what_is_cached_can_be_taken_at_once(subject, call):
    keeps(subject, call, Check.ADMITS)


@requirement(spec.BLK_20, call=tight(), share=0.7)
def test_the_pool_can_be_used_to_its_last_block(subject, call):
    keeps(subject, call, Check.ADMITS)


@requirement(spec.BLK_20, call=room_among_the_cached(), share=0.3)
def test_a_table_may_grow_into_what_is_cached(subject, call):
    keeps(subject, call, Check.ADMITS)


@requirement(spec.BLK_20, call=grown_into_all(), share=0.3)
def test_a_table_may_grow_into_all_that_is_free_at_once(subject, call):
    keeps(subject, call, Check.ADMITS, Check.COUNT)


@requirement(spec.BLK_20, call=hits_partly_in_use(tables=2), share=0.1)
def test_blocks_that_several_have_in_use_need_none(subject, call):
    keeps(subject, call, Check.ADMITS)


@requirement(spec.BLK_20, call=grown_to_the_last_slot(), share=0.1)
def test_a_table_may_grow_to_the_last_slot_of_the_pool_at_once(subject, call):
    keeps(subject, call, Check.ADMITS)


@requirement(spec.BLK_20, call=large_tables(), share=0.05)
def test_a_large_pool_can_be_used_to_its_last_block(subject, call):
    keeps(subject, call, Check.ADMITS)


@requirement(spec.BLK_20, call=workloads(), share=0.4)
def test_what_there_is_room_for_is_admitted(subject, call):
    keeps(subject, call, Check.ADMITS, Check.REFUSES)


@requirement(spec.BLK_21, story=too_long_appends(), share=0.7)
def test_an_append_of_more_blocks_than_are_free_is_refused(subject, story):
    refuses_step(subject, story)


@requirement(spec.BLK_22, story=too_long_prompts(), share=0.7)
def test_a_refused_prompt_changes_nothing(subject, story):
    keeps_after_refusal(subject, story)


@requirement(spec.BLK_22, story=too_long_prompts(freed=True), share=0.5)
def test_a_refused_prompt_uses_nothing_that_is_cached(subject, story):
    keeps_after_refusal(subject, story)


@requirement(spec.BLK_22, story=too_long_among_the_cached(method="allocate", again=True), share=0.15)
def test_a_prompt_that_is_tried_again_and_again_leaves_what_is_cached(subject, story):
    keeps_after_refusal(subject, story)


@requirement(spec.BLK_22, story=too_long_among_the_cached(method="allocate"), share=0.3)
def test_a_refused_prompt_leaves_what_is_cached_and_its_turn(subject, story):
    keeps_after_refusal(subject, story)


@requirement(spec.BLK_22, story=too_long_in_turns(methods=("append", "allocate")), share=0.1)
def test_a_prompt_that_is_refused_right_after_an_append_leaves_what_is_cached(subject, story):
    keeps_after_refusal(subject, story)


@requirement(spec.BLK_23, story=too_long_in_turns(methods=("allocate", "append")), share=0.1)
def test_an_append_that_is_refused_right_after_a_prompt_leaves_what_is_cached(subject, story):
    keeps_after_refusal(subject, story)


@requirement(spec.BLK_23, story=too_long_appends(), share=0.7)
def test_a_refused_append_changes_nothing(subject, story):
    keeps_after_refusal(subject, story)


@requirement(spec.BLK_23, story=too_long_among_the_cached(method="append", again=True), share=0.28)
def test_an_append_that_is_tried_again_and_again_leaves_what_is_cached(subject, story):
    keeps_after_refusal(subject, story)


@requirement(spec.BLK_23, story=too_long_among_the_cached(method="append"), share=0.3)
def test_a_refused_append_leaves_what_is_cached_and_its_turn(subject, story):
    keeps_after_refusal(subject, story)
