"""Does a block manager keep the contract? The history of each story is judged by what it shows, not by which block is taken."""

from inferspec.conformance.inputs.block_manager import (
    beside_another_kind,
    beside_other_sizes,
    crowds,
    filled_up,
    full_hits,
    given_back_unfinished,
    growing,
    grown_by_blocks,
    half_computed,
    large_tables,
    many_prefixes,
    nothing_appended,
    passers_by,
    sharing,
    side_by_side,
    workloads,
    written_over,
)
from inferspec.conformance.inputs.block_manager_copies import (
    abreast,
    abreast_in_pieces,
    beyond_a_copy,
    computed_again,
    copied,
    copied_and_computed_again,
    copies_beside_hits,
    copies_given_back,
    copies_taken_beside_hits,
)
from inferspec.conformance.inputs.block_manager_evictions import (
    all_that_is_cached_taken,
    asked_again,
    emptied,
    evicting,
    evicting_beside,
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
    taken_back,
    tight,
    well_known,
)
from inferspec.conformance.inputs.block_manager_lines import (
    adopted,
    conversations,
    deep_lookalikes,
    family,
    far_beginnings,
    long_after_hits,
    long_prompts,
    lookalikes,
    marked_to_and_fro,
    other_prefixes,
    revisits,
    token_by_token,
)
from inferspec.conformance.inputs.block_manager_refusals import (
    bad_marks,
    bad_marks_before_short_ones,
    foreign_tables,
    freed_tables,
    no_pools,
    too_long_among_the_cached,
    too_long_appends,
    too_long_in_turns,
    too_long_prompts,
)
from inferspec.conformance.inputs.block_manager_script import OTHER_BLOCKS
from inferspec.conformance.properties.common import all_refused, refuses, refuses_step
from inferspec.conformance.suite import requirement
from inferspec.spec import block_manager as spec
from inferspec.spec.block_histories import MUST, Check, complaints

# tables


@requirement(spec.BLK_01, call=workloads(), share=0.5)
def test_a_table_has_the_blocks_that_its_tokens_fill(subject, call):
    keeps(subject, call, Check.COUNT)


@requirement(spec.BLK_01, call=growing(), share=0.5)
def test_lengths_beside_the_multiples_of_a_block_have_the_blocks_that_they_fill(subject, call):
    keeps(subject, call, Check.COUNT)


@requirement(spec.BLK_01, call=large_tables(), share=0.05)
def test_tables_of_hundreds_of_blocks_have_no_block_twice(subject, call):
    keeps(subject, call, Check.COUNT)


@requirement(spec.BLK_02, call=growing(), share=0.7)
def test_an_append_fills_the_last_block_first(subject, call):
    keeps(subject, call, Check.COUNT, Check.STAYS)


@requirement(spec.BLK_02, call=growing(block_sizes=OTHER_BLOCKS), share=0.05)
def test_an_append_fills_the_last_block_of_other_sizes_first(subject, call):
    keeps(subject, call, Check.COUNT, Check.STAYS)


@requirement(spec.BLK_02, call=workloads(), share=0.5)
def test_tables_stay_where_they_are(subject, call):
    keeps(subject, call, Check.STAYS)


@requirement(spec.BLK_02, call=nothing_appended(), share=0.3)
def test_an_append_of_nothing_takes_no_block(subject, call):
    keeps(subject, call, Check.COUNT, Check.STAYS, Check.FREE)


@requirement(spec.BLK_02, call=abreast(), share=0.3)
def test_a_table_keeps_its_blocks_where_another_has_the_same_tokens(subject, call):
    keeps(subject, call, Check.STAYS)


@requirement(spec.BLK_03, call=growing(), share=0.4)
def test_a_table_tells_its_tokens(subject, call):
    keeps(subject, call, Check.TOLD, Check.STAYS)


@requirement(spec.BLK_03, call=conversations(), share=0.4)
def test_a_table_that_grows_tells_what_was_cached_at_first(subject, call):
    keeps(subject, call, Check.TOLD, Check.STAYS)


@requirement(spec.BLK_04, call=workloads(), share=0.7)
def test_nothing_but_equal_prefixes_is_in_two_tables(subject, call):
    keeps(subject, call, Check.APART, Check.SOUND)


@requirement(spec.BLK_04, call=sharing(), share=0.5)
def test_what_is_beyond_a_shared_prefix_is_in_one_table(subject, call):
    keeps(subject, call, Check.APART, Check.SOUND)


@requirement(spec.BLK_04, call=taken_back(), share=0.3)
def test_a_full_pool_gives_no_block_to_another_table(subject, call):
    keeps(subject, call, Check.APART)


@requirement(spec.BLK_05, call=workloads(), share=0.7)
def test_num_free_counts_the_blocks_in_no_table(subject, call):
    keeps(subject, call, Check.FREE)


@requirement(spec.BLK_05, call=sharing(), share=0.5)
def test_a_shared_block_counts_once(subject, call):
    keeps(subject, call, Check.FREE)


@requirement(spec.BLK_05, call=crowds(), share=0.03, shrinks=False)
def test_a_block_that_hundreds_share_counts_once(subject, call):
    keeps(subject, call, Check.FREE, Check.ADMITS, Check.APART)


@requirement(spec.BLK_05, call=copies_beside_hits(), share=0.2)
def test_a_shared_block_is_in_use_though_another_table_computed_the_same(subject, call):
    keeps(subject, call, Check.FREE, Check.ADMITS, Check.APART)


@requirement(spec.BLK_05, call=copies_given_back(), share=0.5)
def test_copies_of_a_block_count_each(subject, call):
    keeps(subject, call, Check.FREE)


@requirement(spec.BLK_06, call=copies_given_back(), share=0.5)
def test_copies_that_are_given_back_can_be_taken_again(subject, call):
    keeps(subject, call, Check.FREE, Check.ADMITS, Check.REFUSES, Check.COUNT, Check.APART)


@requirement(spec.BLK_06, call=emptied(), share=0.7)
def test_a_pool_that_was_emptied_can_be_taken_whole(subject, call):
    keeps(subject, call, Check.FREE, Check.ADMITS, Check.REFUSES, Check.COUNT, Check.APART)


@requirement(spec.BLK_06, call=family(), share=0.5)
def test_a_pool_of_prompts_that_part_can_be_taken_whole(subject, call):
    keeps(subject, call, Check.FREE, Check.ADMITS, Check.REFUSES, Check.COUNT, Check.APART)


@requirement(spec.BLK_06, call=beyond_a_copy(), share=0.3)
def test_what_was_computed_behind_a_copy_can_be_taken_again(subject, call):
    keeps(subject, call, Check.FREE, Check.ADMITS, Check.REFUSES, Check.COUNT, Check.APART)


# hits


@requirement(spec.BLK_07, call=sharing(), share=0.7)
def test_a_prompt_hits_all_that_is_cached_of_it(subject, call):
    keeps(subject, call, Check.COMPLETE, Check.ADMITS)


@requirement(spec.BLK_07, call=half_computed(), share=0.5)
def test_what_was_computed_in_chunks_is_hit(subject, call):
    keeps(subject, call, Check.COMPLETE)


@requirement(spec.BLK_07, call=full_hits(), share=0.5)
def test_the_third_prompt_hits_as_much_as_the_second(subject, call):
    keeps(subject, call, Check.COMPLETE)


@requirement(spec.BLK_07, call=long_prompts(), share=0.15)
def test_a_prompt_of_many_blocks_hits_all_of_them(subject, call):
    keeps(subject, call, Check.COMPLETE)


@requirement(spec.BLK_07, call=long_prompts(lengths=(540, 70, 300)), share=0.2)
def test_a_prompt_of_hundreds_of_blocks_hits_all_of_them(subject, call):
    keeps(subject, call, Check.COMPLETE, Check.ADMITS)


@requirement(spec.BLK_07, call=long_after_hits(), share=0.06)
def test_many_blocks_that_were_computed_after_a_hit_are_hit(subject, call):
    keeps(subject, call, Check.COMPLETE)


@requirement(spec.BLK_07, call=sharing(block_sizes=OTHER_BLOCKS), share=0.06)
def test_a_prompt_hits_all_blocks_of_other_sizes(subject, call):
    keeps(subject, call, Check.COMPLETE, Check.ADMITS)


@requirement(spec.BLK_07, call=overtaken(), share=0.55)
def test_what_was_computed_in_the_blocks_of_others_is_hit(subject, call):
    keeps(subject, call, Check.COMPLETE)


@requirement(spec.BLK_07, call=abreast(), share=0.3)
def test_what_follows_what_was_computed_twice_is_hit(subject, call):
    keeps(subject, call, Check.COMPLETE)


@requirement(spec.BLK_07, call=family(), share=0.5)
def test_prompts_that_part_anywhere_hit_what_they_have_in_common(subject, call):
    keeps(subject, call, Check.COMPLETE)


@requirement(spec.BLK_07, call=asked_again(taken=False), share=0.1)
def test_a_prompt_that_was_refused_hits_what_was_cached_since(subject, call):
    keeps(subject, call, Check.COMPLETE)


@requirement(spec.BLK_08, call=full_hits(), share=0.7)
def test_a_token_is_left_to_compute(subject, call):
    keeps(subject, call, Check.PARTIAL)


@requirement(spec.BLK_08, call=sharing(), share=0.5)
def test_hits_are_of_whole_blocks(subject, call):
    keeps(subject, call, Check.PARTIAL)


@requirement(spec.BLK_09, call=half_computed(), share=1.0)
def test_what_is_not_computed_is_not_hit(subject, call):
    keeps(subject, call, Check.SOUND, Check.APART)


@requirement(spec.BLK_09, call=grown_by_blocks(), share=0.5)
def test_what_was_appended_and_not_computed_is_not_hit(subject, call):
    keeps(subject, call, Check.SOUND, Check.APART)


@requirement(spec.BLK_09, call=filled_up(), share=0.5)
def test_what_just_fills_a_block_and_is_not_computed_is_not_hit(subject, call):
    keeps(subject, call, Check.SOUND, Check.APART)


@requirement(spec.BLK_09, call=given_back_unfinished(), share=0.15)
def test_what_was_not_computed_when_its_table_was_freed_is_not_hit(subject, call):
    keeps(subject, call, Check.SOUND)


@requirement(spec.BLK_09, call=marked_to_and_fro(), share=0.5)
def test_what_was_computed_is_hit_as_what_it_is_however_often_it_was_said(subject, call):
    keeps(subject, call, Check.SOUND, Check.APART)


@requirement(spec.BLK_09, call=workloads(prefix_caching=[True]), share=0.5)
def test_what_is_never_computed_is_not_hit(subject, call):
    keeps(subject, call, Check.SOUND, Check.APART)


@requirement(spec.BLK_10, call=other_prefixes(), share=0.7)
def test_equal_blocks_after_other_tokens_are_not_hit(subject, call):
    keeps(subject, call, Check.SOUND)


@requirement(spec.BLK_10, call=far_beginnings(), share=0.1)
def test_long_lines_of_other_beginnings_are_not_hit(subject, call):
    keeps(subject, call, Check.SOUND)


@requirement(spec.BLK_10, call=many_prefixes(), share=0.05)
def test_hundreds_of_prefixes_are_told_apart(subject, call):
    keeps(subject, call, Check.SOUND)


@requirement(spec.BLK_10, call=abreast_in_pieces(), share=0.5)
def test_what_was_computed_beside_another_copy_is_not_hit_without_what_is_before_it(subject, call):
    keeps(subject, call, Check.SOUND)


@requirement(spec.BLK_10, call=beyond_a_copy(), share=0.5)
def test_what_was_computed_behind_a_copy_is_not_hit_without_it(subject, call):
    keeps(subject, call, Check.SOUND)


@requirement(spec.BLK_10, call=sharing(), share=0.5)
def test_lines_that_part_do_not_meet_again(subject, call):
    keeps(subject, call, Check.SOUND)


@requirement(spec.BLK_10, call=adopted(), share=0.5)
def test_what_followed_a_block_is_not_hit_behind_its_next_tokens(subject, call):
    keeps(subject, call, Check.SOUND)


@requirement(spec.BLK_11, call=lookalikes(hashes=["one for all"]), share=0.7)
def test_tokens_of_one_hash_are_not_confused(subject, call):
    keeps(subject, call, Check.SOUND)


@requirement(spec.BLK_11, call=lookalikes(token_ids=["large"]), share=1.0)
def test_tokens_with_equal_low_bits_are_not_confused(subject, call):
    keeps(subject, call, Check.SOUND)


@requirement(spec.BLK_11, call=lookalikes(), share=0.7)
def test_tokens_that_are_nearly_the_same_are_not_confused(subject, call):
    keeps(subject, call, Check.SOUND)


@requirement(spec.BLK_11, call=lookalikes(texts=True), share=0.5)
def test_tokens_of_one_text_are_not_confused(subject, call):
    keeps(subject, call, Check.SOUND)


@requirement(spec.BLK_11, call=lookalikes(block_sizes=OTHER_BLOCKS), share=0.2)
def test_blocks_of_other_sizes_that_are_nearly_the_same_are_not_confused(subject, call):
    keeps(subject, call, Check.SOUND)


@requirement(spec.BLK_11, call=deep_lookalikes(), share=0.4)
def test_tokens_far_from_the_beginning_are_not_confused(subject, call):
    keeps(subject, call, Check.SOUND)


@requirement(spec.BLK_12, call=conversations(), share=0.7)
def test_what_was_appended_is_hit_like_a_prompt(subject, call):
    keeps(subject, call, Check.COMPLETE, Check.SOUND)


@requirement(spec.BLK_12, call=token_by_token(), share=0.1)
def test_dozens_of_tokens_that_came_one_after_the_other_are_hit(subject, call):
    keeps(subject, call, Check.COMPLETE, Check.COUNT, Check.TOLD, Check.STAYS)


@requirement(spec.BLK_13, call=revisits(), share=0.7)
def test_what_was_freed_is_hit_again_and_again(subject, call):
    keeps(subject, call, Check.COMPLETE)


@requirement(spec.BLK_13, call=evicting(), share=0.4)
def test_what_was_not_taken_is_hit_after_others_were(subject, call):
    keeps(subject, call, Check.COMPLETE)


@requirement(spec.BLK_13, call=copied_and_computed_again(), share=0.3)
def test_what_was_computed_again_where_what_follows_it_stayed_is_hit(subject, call):
    keeps(subject, call, Check.COMPLETE)


@requirement(spec.BLK_13, call=copies_taken_beside_hits(), share=0.2)
def test_what_is_hit_stays_known_when_a_copy_of_it_is_taken(subject, call):
    keeps(subject, call, Check.COMPLETE)


@requirement(spec.BLK_13, call=passers_by(), share=0.3)
def test_what_was_computed_in_a_table_that_is_gone_is_hit(subject, call):
    keeps(subject, call, Check.COMPLETE)


@requirement(spec.BLK_13, call=computed_again(), share=0.4)
def test_what_was_computed_again_is_hit_where_it_is_now(subject, call):
    keeps(subject, call, Check.COMPLETE)


@requirement(spec.BLK_14, call=taken_back(), share=0.7)
def test_a_block_that_was_taken_back_is_in_use(subject, call):
    keeps(subject, call, Check.APART, Check.FREE, Check.REFUSES, Check.STAYS, Check.COUNT)


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
    keeps(subject, call, *MUST)


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


# misuse


@requirement(spec.BLK_24, story=freed_tables(), share=0.7)
def test_a_table_that_was_freed_is_refused(subject, story):
    refuses_step(subject, story)


@requirement(spec.BLK_25, story=foreign_tables(), share=0.7)
def test_a_table_of_another_manager_is_refused(subject, story):
    refuses_step(subject, story)


@requirement(spec.BLK_26, story=freed_tables(), share=0.7)
def test_a_freed_table_that_is_refused_changes_nothing(subject, story):
    keeps_after_refusal(subject, story)


@requirement(spec.BLK_26, story=foreign_tables(), share=0.7)
def test_a_foreign_table_that_is_refused_changes_nothing(subject, story):
    keeps_after_refusal(subject, story)


@requirement(spec.BLK_27, story=bad_marks(), share=0.5)
def test_a_mark_outside_the_table_is_refused(subject, story):
    refuses_step(subject, story)


@requirement(spec.BLK_28, story=bad_marks(), share=0.7)
def test_a_refused_mark_changes_nothing(subject, story):
    keeps_after_refusal(subject, story)


@requirement(spec.BLK_28, story=bad_marks_before_short_ones(), share=0.1)
def test_a_refused_mark_is_not_made_up_for_by_the_next(subject, story):
    keeps_after_refusal(subject, story)


@requirement(spec.BLK_29, call=workloads(prefix_caching=[False]), share=0.5)
def test_without_prefix_caching_nothing_is_shared(subject, call):
    keeps(subject, call, *MUST)


@requirement(spec.BLK_30, call=written_over(), share=0.5)
def test_the_list_of_tokens_is_the_caller_s(subject, call):
    keeps(subject, call, Check.CALLER, Check.SOUND, Check.COMPLETE)


@requirement(spec.BLK_30, call=growing(), share=0.2)
def test_the_list_of_tokens_is_not_changed(subject, call):
    keeps(subject, call, Check.CALLER)


@requirement(spec.BLK_31, call=side_by_side(), share=0.5)
def test_two_managers_keep_apart(subject, call):
    keeps(subject, call, *MUST)


@requirement(spec.BLK_31, call=evicting_beside(), share=0.1)
def test_managers_that_evict_keep_apart(subject, call):
    keeps(subject, call, *MUST)


@requirement(spec.BLK_31, call=beside_other_sizes(), share=0.2)
def test_managers_of_other_sizes_keep_apart(subject, call):
    keeps(subject, call, *MUST)


@requirement(spec.BLK_31, call=beside_another_kind(), share=0.1)
def test_managers_with_and_without_a_prefix_cache_keep_apart(subject, call):
    keeps(subject, call, *MUST)


@requirement(spec.BLK_32, call=no_pools(), share=0.1)
def test_a_pool_that_can_hold_nothing_is_refused(subject, call):
    refuses(subject, call)


def keeps(subject, call, *checks):
    """The story's history has nothing against these checks, the order of eviction left out where none is claimed."""
    seen = subject.answered(call)
    unasked = () if call.features["eviction"] == "oldest first" else (Check.ORDER,)
    for complaint in complaints(subject.promised(call), seen.results):
        if complaint.check in checks and complaint.check not in unasked:
            refusal = complaint.check is Check.ADMITS
            raise subject.objection(call, seen, complaint.step, complaint.text, refusal)


def keeps_after_refusal(subject, story):
    """The story is right to its end. Whether the step, or all of several, is refused at all is another requirement's matter."""
    if all_refused(subject, story):
        keeps(subject, story[0], *MUST)
