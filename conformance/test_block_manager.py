"""Does a block manager keep the contract? The history of each story is judged by what it shows, not by which block is taken."""

from inferspec.conformance.inputs.block_manager import (
    beside_another_kind,
    beside_other_sizes,
    crowds,
    growing,
    large_tables,
    nothing_appended,
    sharing,
    side_by_side,
    workloads,
    written_over,
)
from inferspec.conformance.inputs.block_manager_copies import (
    abreast,
    abreast_of_what_looks_alike,
    beyond_a_copy,
    copies_beside_hits,
    copies_given_back,
)
from inferspec.conformance.inputs.block_manager_evictions import (
    emptied,
    evicting_beside,
    taken_back,
)
from inferspec.conformance.inputs.block_manager_lines import (
    conversations,
    family,
)
from inferspec.conformance.inputs.block_manager_refusals import (
    bad_marks,
    bad_marks_before_short_ones,
    foreign_tables,
    freed_tables,
    no_pools,
)
from inferspec.conformance.inputs.block_manager_script import OTHER_BLOCKS
from inferspec.conformance.properties.block_manager import keeps, keeps_after_refusal
from inferspec.conformance.properties.common import refuses, refuses_step
from inferspec.conformance.suite import requirement
from inferspec.spec import block_manager as spec
from inferspec.spec.block_histories import MUST, Check

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
def test_a_table_has_its_blocks_or_copies_where_another_has_the_same_tokens(subject, call):
    keeps(subject, call, Check.STAYS)


@requirement(spec.BLK_02, call=abreast_of_what_looks_alike(), share=0.3)
def test_a_table_leaves_a_block_for_none_but_its_copy(subject, call):
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


@requirement(spec.BLK_05, call=abreast_of_what_looks_alike(), share=0.3)
def test_a_block_that_is_left_for_its_copy_counts_no_more(subject, call):
    keeps(subject, call, Check.FREE, Check.ADMITS, Check.REFUSES, Check.APART)


@requirement(spec.BLK_06, call=copies_given_back(), share=0.5)
def test_copies_that_are_given_back_can_be_taken_again(subject, call):
    keeps(subject, call, Check.ADMITS, Check.REFUSES, Check.COUNT, Check.APART)


@requirement(spec.BLK_06, call=emptied(), share=0.7)
def test_a_pool_that_was_emptied_can_be_taken_whole(subject, call):
    keeps(subject, call, Check.ADMITS, Check.REFUSES, Check.COUNT, Check.APART)


@requirement(spec.BLK_06, call=family(), share=0.5)
def test_a_pool_of_prompts_that_part_can_be_taken_whole(subject, call):
    keeps(subject, call, Check.ADMITS, Check.REFUSES, Check.COUNT, Check.APART)


@requirement(spec.BLK_06, call=beyond_a_copy(), share=0.3)
def test_what_was_computed_behind_a_copy_can_be_taken_again(subject, call):
    keeps(subject, call, Check.ADMITS, Check.REFUSES, Check.COUNT, Check.APART)


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


# what is not shared, and whose the tokens are


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
