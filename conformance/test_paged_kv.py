"""Do a pool of pages, the caches that share it and their block tables keep the contract?"""

from inferspec.conformance.inputs.kv_cache_script import with_infinities, with_tokens_of_zeros
from inferspec.conformance.inputs.paged_batches import (
    changing,
    chunked,
    crowded,
    decoding,
    layered,
    long_beside_short,
    uneven,
    unwritten,
)
from inferspec.conformance.inputs.paged_kv import (
    allocations,
    appends,
    beside_others,
    beside_the_caller,
    counted,
    counted_past_16_bits,
    crowds,
    decoding_long,
    drained,
    emptied,
    filled,
    grown_again,
    guessing,
    in_pages_given_back,
    kept_results,
    large_tables,
    long_requests,
    many_pages,
    overwritten,
    read_by_pages,
    recycled,
    released,
    rewinds,
    rewinds_to_the_ends,
    rounds,
    side_by_side,
    storages,
    tables,
    tables_in_other_pages,
    tables_of_many_pages,
    taken_back,
    used_hundreds_of_times,
    whole_pages_within_pages,
    worn,
)
from inferspec.conformance.inputs.paged_kv_refusals import (
    bad_arrays,
    bad_dtypes,
    bad_rewinds,
    exhausted,
    freed_foreign,
    freed_missing,
    freed_of_many,
    freed_twice,
    no_pools,
    overfull,
    refused_in_turns,
    refused_when_full,
)
from inferspec.conformance.inputs.pages import COMMON, LARGE, LARGEST, OTHER_PAGES
from inferspec.conformance.properties.caches import agrees_in, keeps_dtype
from inferspec.conformance.properties.common import (
    depends_on_arguments_alone,
    goes_on_after_refusal,
    keeps_arguments,
    refuses,
    refuses_step,
)
from inferspec.conformance.strategies import HALF
from inferspec.conformance.suite import requirement
from inferspec.spec import paged_kv_sentences as spec

# the pool


@requirement(spec.POOL_01, call=allocations(look=False), share=0.7)
def test_allocate_hands_out_pages_that_nobody_uses(subject, call):
    subject.agrees(call)


@requirement(spec.POOL_02, call=allocations(), share=0.7)
def test_num_free_counts_the_pages_that_nobody_uses(subject, call):
    subject.agrees(call)


@requirement(spec.POOL_02, call=counted_past_16_bits(page_sizes=[1], pool_pages=66_000, bounded=[True]), share=0.03)
def test_num_free_counts_past_16_bits(subject, call):
    subject.agrees(call)


@requirement(spec.POOL_03, call=rounds(), share=0.7)
def test_all_pages_can_be_used_again_and_again(subject, call):
    subject.agrees(call)


@requirement(spec.POOL_03, call=rounds(pages=(70, 300)), share=0.05)
def test_all_pages_of_a_large_pool_can_be_used_again(subject, call):
    subject.agrees(call)


@requirement(spec.POOL_03, call=used_hundreds_of_times(), share=0.03)
def test_a_page_can_be_used_hundreds_of_times(subject, call):
    subject.agrees(call)


@requirement(spec.POOL_04, story=exhausted(), share=0.5)
def test_a_pool_without_a_free_page_refuses(subject, story):
    refuses_step(subject, story)


@requirement(spec.POOL_05, story=exhausted(), share=0.5)
def test_a_refused_allocation_changes_nothing(subject, story):
    goes_on_after_refusal(subject, story)


@requirement(spec.POOL_05, story=exhausted(again=True), share=0.1)
def test_an_allocation_that_is_tried_again_and_again_changes_nothing(subject, story):
    goes_on_after_refusal(subject, story)


@requirement(spec.POOL_06, story=freed_twice(), share=0.5)
def test_a_page_is_not_freed_twice(subject, story):
    refuses_step(subject, story)


@requirement(spec.POOL_06, story=freed_of_many(), share=0.2)
def test_a_page_of_many_is_not_freed_twice(subject, story):
    refuses_step(subject, story)


@requirement(spec.POOL_07, story=freed_foreign(), share=0.5)
def test_a_page_that_nobody_took_is_not_freed(subject, story):
    refuses_step(subject, story)


@requirement(spec.POOL_08, story=freed_missing(), share=0.5)
def test_a_page_that_is_not_there_is_not_freed(subject, story):
    refuses_step(subject, story)


@requirement(spec.POOL_09, story=freed_twice(), share=0.5)
def test_freeing_twice_changes_nothing(subject, story):
    goes_on_after_refusal(subject, story)


@requirement(spec.POOL_09, story=freed_foreign(), share=0.4)
def test_freeing_what_nobody_took_changes_nothing(subject, story):
    goes_on_after_refusal(subject, story)


@requirement(spec.POOL_09, story=freed_missing(), share=0.4)
def test_freeing_what_is_not_there_changes_nothing(subject, story):
    goes_on_after_refusal(subject, story)


@requirement(spec.POOL_10, call=storages(page_sizes=OTHER_PAGES), share=0.2)
def test_the_arrays_of_a_pool_of_other_page_sizes_have_their_shape(subject, call):
    subject.agrees(call)


@requirement(spec.POOL_10, call=storages(), share=0.4)
def test_the_arrays_of_a_pool_have_the_shape_that_attention_takes(subject, call):
    subject.agrees(call)


@requirement(spec.POOL_11, first=allocations(), second=allocations(), share=0.4)
def test_pools_have_nothing_in_common(subject, first, second):
    depends_on_arguments_alone(subject, first, second)


@requirement(spec.POOL_12, call=no_pools(), share=0.3)
def test_a_pool_of_nothing_is_refused(subject, call):
    refuses(subject, call)


# tokens in pages


@requirement(spec.PKV_01, call=appends(), share=0.7)
def test_gather_returns_all_tokens_in_order(subject, call):
    subject.agrees(call)


@requirement(spec.PKV_01, call=appends(shapes=LARGE), share=0.15)
def test_many_heads_and_wide_ones_are_cached(subject, call):
    subject.agrees(call)


@requirement(spec.PKV_01, call=appends(shapes=COMMON, dtypes=HALF, page_sizes=[16, 32]), share=0.1)
def test_tokens_of_common_heads_are_cached(subject, call):
    subject.agrees(call)


@requirement(spec.PKV_01, call=appends(), share=0.05)
def test_infinities_are_cached_in_pages(subject, call):
    subject.agrees(with_infinities(call))


@requirement(spec.PKV_01, call=appends(shapes=LARGEST), share=0.1)
def test_every_head_and_feature_of_the_largest_is_cached_in_pages(subject, call):
    subject.agrees(call)


@requirement(spec.PKV_02, call=appends(page_sizes=OTHER_PAGES), share=0.15)
def test_chunks_beside_other_page_sizes_are_cached(subject, call):
    subject.agrees(call)


@requirement(spec.PKV_02, call=whole_pages_within_pages(page_sizes=[4, 2, 3, 16]), share=0.1)
def test_whole_pages_of_tokens_that_begin_inside_a_page_are_cached(subject, call):
    subject.agrees(call)


@requirement(spec.PKV_02, call=long_requests(page_sizes=[16, 8, 32]), share=0.1)
def test_a_request_of_dozens_of_pages_is_cached(subject, call):
    subject.agrees(call)


@requirement(spec.PKV_02, call=decoding_long(), share=0.1)
def test_dozens_of_tokens_one_after_the_other_are_cached(subject, call):
    subject.agrees(call)


@requirement(spec.PKV_02, call=appends(page_sizes=[3, 4, 8, 16]), share=0.7)
def test_chunks_beside_page_sizes_are_cached(subject, call):
    subject.agrees(call)


@requirement(spec.PKV_02, call=appends(page_sizes=[1, 2]), share=0.3)
def test_chunks_over_many_small_pages_are_cached(subject, call):
    subject.agrees(call)


@requirement(spec.PKV_03, call=read_by_pages(), share=0.7)
def test_tokens_lie_where_page_ids_say(subject, call):
    subject.agrees(call)


@requirement(spec.PKV_03, call=in_pages_given_back(), share=0.1)
def test_tokens_lie_in_pages_that_were_given_back_in_any_order(subject, call):
    subject.agrees(call)


@requirement(spec.PKV_04, call=counted(), share=0.7)
def test_offset_counts_the_tokens(subject, call):
    subject.agrees(call)


@requirement(spec.PKV_04, call=counted(), share=0.1)
def test_offset_counts_tokens_of_zeros(subject, call):
    subject.agrees(with_tokens_of_zeros(call))


@requirement(spec.PKV_05, call=counted(look=("pages",)), share=0.7)
def test_a_cache_uses_no_page_too_many(subject, call):
    agrees_in(subject, call, "page_ids", "num_free")


@requirement(spec.PKV_06, call=counted(look=("pages",)), share=0.5)
def test_page_lens_count_the_tokens_of_each_page(subject, call):
    subject.agrees(call)


@requirement(spec.PKV_07, call=side_by_side(look=()), share=0.7)
def test_no_page_has_two_owners(subject, call):
    subject.agrees(call)


@requirement(spec.PKV_07, call=drained(), share=0.3)
def test_the_caller_gets_no_page_of_a_cache(subject, call):
    subject.agrees(call)


@requirement(spec.PKV_08, call=side_by_side(), share=1)
def test_caches_keep_apart(subject, call):
    subject.agrees(call)


@requirement(spec.PKV_08, call=crowds(), share=0.06)
def test_dozens_of_caches_keep_apart(subject, call):
    subject.agrees(call)


@requirement(spec.PKV_09, call=beside_the_caller(), share=0.7)
def test_pages_of_the_caller_are_left_alone(subject, call):
    subject.agrees(call)


@requirement(spec.PKV_10, call=recycled(), share=0.7)
def test_recycled_pages_do_not_show_what_they_held(subject, call):
    subject.agrees(call)


@requirement(spec.PKV_10, call=appends(former=True), share=0.4)
def test_appends_to_recycled_pages_are_cached(subject, call):
    subject.agrees(call)


@requirement(spec.PKV_11, call=appends(), share=0.4)
def test_tokens_keep_the_dtype_of_the_pool(subject, call):
    keeps_dtype(subject, call)


# rewinds and releases


@requirement(spec.PKV_12, call=rewinds(), share=0.7)
def test_rewound_tokens_never_show_again(subject, call):
    subject.agrees(call)


@requirement(spec.PKV_12, call=guessing(), share=0.1)
def test_tokens_that_were_guessed_and_rewound_never_show_again(subject, call):
    subject.agrees(call)


@requirement(spec.PKV_12, call=taken_back(), share=0.08)
def test_tokens_of_many_pages_that_nobody_has_looked_at_never_show(subject, call):
    subject.agrees(call)


@requirement(spec.PKV_12, call=grown_again(), share=0.08)
def test_a_cache_that_grows_again_in_other_pages_has_their_tokens(subject, call):
    subject.agrees(call)


@requirement(spec.PKV_13, call=rewinds(look=("offset", "pages", "read")), share=0.7)
def test_a_rewind_gives_back_the_pages_that_became_empty(subject, call):
    subject.agrees(call)


@requirement(spec.PKV_13, call=long_requests(rewinding=[True], page_sizes=[16, 8, 4]), share=0.06)
def test_a_rewind_gives_back_dozens_of_pages(subject, call):
    subject.agrees(call)


@requirement(spec.PKV_14, call=rewinds_to_the_ends(), share=0.5)
def test_a_rewind_by_nothing_or_by_everything(subject, call):
    subject.agrees(call)


@requirement(spec.PKV_15, story=bad_rewinds(), share=0.7)
def test_a_rewind_too_far_or_backwards_is_refused(subject, story):
    refuses_step(subject, story)


@requirement(spec.PKV_16, story=bad_rewinds(), share=0.7)
def test_a_refused_rewind_changes_nothing(subject, story):
    goes_on_after_refusal(subject, story)


@requirement(spec.PKV_16, story=bad_rewinds(again=True), share=0.25)
def test_a_rewind_that_is_tried_again_and_again_changes_nothing(subject, story):
    goes_on_after_refusal(subject, story)


@requirement(spec.PKV_17, call=released(), share=0.7)
def test_a_release_gives_all_pages_back(subject, call):
    subject.agrees(call)


@requirement(spec.PKV_17, call=long_requests(rewinding=[False], page_sizes=[8, 16]), share=0.06)
def test_a_release_gives_dozens_of_pages_back(subject, call):
    agrees_in(subject, call, "num_free")


@requirement(spec.PKV_18, call=released(again=True), share=0.7)
def test_a_second_release_changes_nothing(subject, call):
    subject.agrees(call)


@requirement(spec.PKV_19, call=emptied(), share=0.3)
def test_a_released_cache_is_empty(subject, call):
    subject.agrees(call)


@requirement(spec.PKV_30, call=worn(), share=0.7)
def test_no_page_is_lost(subject, call):
    subject.agrees(call)


# what does not fit


@requirement(spec.PKV_20, story=overfull(), share=0.5)
def test_more_tokens_than_pages_hold_are_refused(subject, story):
    refuses_step(subject, story)


@requirement(spec.PKV_21, story=overfull(), share=0.7)
def test_a_chunk_without_room_changes_nothing(subject, story):
    goes_on_after_refusal(subject, story)


@requirement(spec.PKV_21, story=overfull(again=True), share=0.1)
def test_a_chunk_that_is_tried_again_and_again_changes_nothing(subject, story):
    goes_on_after_refusal(subject, story)


@requirement(spec.PKV_21, story=refused_in_turns(last="room"), share=0.06)
def test_a_chunk_without_room_behind_another_refusal_changes_nothing(subject, story):
    goes_on_after_refusal(subject, story)


@requirement(spec.PKV_21, story=refused_when_full(page_sizes=[4, 2, 8]), share=0.06)
def test_a_chunk_without_room_leaves_the_last_page_to_others(subject, story):
    goes_on_after_refusal(subject, story)


@requirement(spec.PKV_22, call=filled(), share=0.5)
def test_a_pool_can_be_filled_to_its_last_slot(subject, call):
    subject.agrees(call)


@requirement(spec.PKV_23, story=bad_arrays(), share=0.85)
def test_arrays_that_do_not_fit_the_pool_are_refused(subject, story):
    refuses_step(subject, story)


@requirement(spec.PKV_24, story=bad_dtypes(), share=0.5)
def test_another_dtype_than_the_pools_is_refused(subject, story):
    refuses_step(subject, story)


@requirement(spec.PKV_25, story=bad_arrays(), share=0.7)
def test_arrays_that_are_refused_change_nothing(subject, story):
    goes_on_after_refusal(subject, story)


@requirement(spec.PKV_25, story=refused_in_turns(last="heads"), share=0.06)
def test_arrays_that_are_refused_behind_another_refusal_change_nothing(subject, story):
    goes_on_after_refusal(subject, story)


@requirement(spec.PKV_25, story=bad_dtypes(), share=0.4)
def test_a_dtype_that_is_refused_changes_nothing(subject, story):
    goes_on_after_refusal(subject, story)


# arguments and results


@requirement(spec.PKV_26, call=appends(views=True), share=1)
def test_strided_chunks_are_cached_like_their_copies(subject, call):
    subject.agrees(call)


@requirement(spec.PKV_27, call=appends(), share=0.4)
def test_an_append_changes_no_argument(subject, call):
    keeps_arguments(subject, call)


@requirement(spec.PKV_28, call=overwritten(), share=0.4)
def test_the_caller_may_use_its_arrays_again(subject, call):
    subject.agrees(call)


@requirement(spec.PKV_29, call=kept_results(), share=0.5)
def test_what_was_gathered_stays_what_it_was(subject, call):
    subject.agrees(call)


@requirement(spec.PKV_31, first=side_by_side(), second=side_by_side(), share=0.4)
def test_other_pools_in_between_change_nothing(subject, first, second):
    depends_on_arguments_alone(subject, first, second)


@requirement(spec.PKV_31, call=beside_others(), share=0.3)
def test_a_pool_beside_changes_nothing(subject, call):
    subject.agrees(call)


@requirement(spec.PKV_32, call=many_pages(page_sizes=[1], pool_pages=66_000), share=0.03)
def test_page_ids_past_16_bits_are_as_small_ones(subject, call):
    subject.agrees(call)


# block tables


@requirement(spec.TABLE_01, call=tables(), share=0.7)
def test_a_block_table_leads_to_the_tokens(subject, call):
    subject.agrees(call)


@requirement(spec.TABLE_01, call=large_tables(), share=0.1)
def test_a_block_table_has_dozens_of_rows_or_pages(subject, call):
    subject.agrees(call)


@requirement(spec.TABLE_01, call=tables_of_many_pages(page_sizes=[1], pool_pages=66_000), share=0.03)
def test_a_block_table_has_page_ids_past_16_bits(subject, call):
    subject.agrees(call)


@requirement(spec.TABLE_01, call=tables(page_sizes=OTHER_PAGES), share=0.1)
def test_a_block_table_of_other_page_sizes_leads_to_the_tokens(subject, call):
    subject.agrees(call)


@requirement(spec.TABLE_02, call=tables(empty=True), share=0.5)
def test_context_lens_are_the_lengths_of_the_rows(subject, call):
    agrees_in(subject, call, "context_lens")


@requirement(spec.TABLE_02, call=large_tables(rows=(2,)), share=0.06)
def test_context_lens_count_hundreds_of_tokens(subject, call):
    agrees_in(subject, call, "context_lens")


@requirement(spec.TABLE_02, call=tables(empty=True), share=0.3)
def test_rows_without_tokens_are_rows(subject, call):
    subject.agrees(call)


@requirement(spec.TABLE_03, call=tables(often=True), share=1.4)
def test_each_table_is_of_its_time(subject, call):
    subject.agrees(call)


@requirement(spec.TABLE_03, call=tables_in_other_pages(), share=0.1)
def test_a_table_of_caches_in_other_pages_than_before_is_of_these(subject, call):
    subject.agrees(call)


# attention over the pages of a batch


@requirement(spec.PKVA_01, call=decoding(), share=0.4)
def test_a_new_token_sees_the_tokens_of_its_own_cache(subject, call):
    subject.agrees(call)


@requirement(spec.PKVA_01, call=decoding(page_sizes=OTHER_PAGES), share=0.1)
def test_a_new_token_sees_those_in_pages_of_other_sizes(subject, call):
    subject.agrees(call)


@requirement(spec.PKVA_01, call=long_beside_short(), share=0.06)
def test_a_new_token_sees_hundreds_of_its_own_cache(subject, call):
    subject.agrees(call)


@requirement(spec.PKVA_02, call=chunked(), share=0.4)
def test_tokens_of_a_chunk_see_those_up_to_their_own(subject, call):
    subject.agrees(call)


@requirement(spec.PKVA_03, call=uneven(), share=0.4)
def test_rows_of_different_lengths_stand_beside_each_other(subject, call):
    subject.agrees(call)


@requirement(spec.PKVA_03, call=crowded(), share=0.1)
def test_many_rows_stand_beside_each_other(subject, call):
    subject.agrees(call)


@requirement(spec.PKVA_04, call=changing(), share=0.7)
def test_attention_is_of_its_time(subject, call):
    subject.agrees(call)


@requirement(spec.PKVA_05, call=layered(), share=0.4)
def test_layers_that_share_a_pool_keep_apart(subject, call):
    subject.agrees(call)


@requirement(spec.PKVA_06, call=unwritten(), share=0.4)
def test_slots_without_a_token_do_not_show(subject, call):
    subject.agrees(call)
