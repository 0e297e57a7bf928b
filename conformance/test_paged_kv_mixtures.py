"""Do a pool of pages, the caches that share it and their block tables keep the contract where large pages, large heads, rewinds, pages that
change hands, many caches and views come together?"""

from inferspec.conformance.inputs.paged_batches import layered_guesses
from inferspec.conformance.inputs.paged_kv import filled
from inferspec.conformance.inputs.paged_kv_mixtures import (
    LARGE_PAGES,
    changing_tables,
    crowds_that_guess,
    refused_behind_a_rewind,
    served,
)
from inferspec.conformance.inputs.paged_kv_refusals import (
    given_back_once_refused,
    others_once_refused,
    tables_once_refused,
)
from inferspec.conformance.properties.caches import agrees_in, keeps_dtype
from inferspec.conformance.properties.common import goes_on_after_refusal, keeps_arguments
from inferspec.conformance.suite import requirement
from inferspec.spec import paged_kv_sentences as spec

of_large_pages = served(page_sizes=LARGE_PAGES)


@requirement(spec.PKV_03, call=of_large_pages, share=0.3)
def test_tokens_lie_where_page_ids_say_in_large_pages(subject, call):
    subject.agrees(call)


@requirement(spec.PKV_05, call=of_large_pages, share=0.3)
def test_a_cache_uses_no_large_page_too_many(subject, call):
    agrees_in(subject, call, "page_ids", "num_free")


@requirement(spec.PKV_06, call=of_large_pages, share=0.3)
def test_page_lens_count_the_tokens_of_each_large_page(subject, call):
    agrees_in(subject, call, "page_lens")


@requirement(spec.PKV_08, call=of_large_pages, share=0.3)
def test_caches_keep_apart_in_large_pages(subject, call):
    subject.agrees(call)


@requirement(spec.PKV_10, call=of_large_pages, share=0.3)
def test_large_recycled_pages_do_not_show_what_they_held(subject, call):
    subject.agrees(call)


@requirement(spec.PKV_11, call=of_large_pages, share=0.3)
def test_tokens_of_any_size_keep_the_dtype_of_the_pool(subject, call):
    keeps_dtype(subject, call)


@requirement(spec.PKV_12, call=of_large_pages(rewinding=[True]), share=0.3)
def test_tokens_rewound_in_large_pages_never_show_again(subject, call):
    subject.agrees(call)


@requirement(spec.PKV_13, call=crowds_that_guess(), share=0.1)
def test_rewinds_of_many_caches_give_back_the_pages_that_became_empty(subject, call):
    subject.agrees(call)


@requirement(spec.PKV_17, call=crowds_that_guess(), share=0.1)
def test_the_releases_of_many_caches_give_all_pages_back(subject, call):
    agrees_in(subject, call, "num_free")


@requirement(spec.PKV_21, story=refused_behind_a_rewind(rewinding=[True]), share=0.2)
def test_a_chunk_without_room_right_after_a_rewind_changes_nothing(subject, story):
    goes_on_after_refusal(subject, story)


@requirement(spec.PKV_22, call=filled(page_sizes=LARGE_PAGES), share=0.3)
def test_a_pool_of_large_pages_can_be_filled_to_its_last_slot(subject, call):
    subject.agrees(call)


@requirement(spec.PKV_26, call=served(views=True, page_sizes=LARGE_PAGES), share=0.3)
def test_strided_chunks_of_any_size_are_cached_like_their_copies(subject, call):
    subject.agrees(call)


@requirement(spec.PKV_27, call=of_large_pages, share=0.1)
def test_an_append_of_any_size_changes_no_argument(subject, call):
    keeps_arguments(subject, call)


@requirement(spec.PKV_28, call=served(overwriting=True, page_sizes=LARGE_PAGES), share=0.3)
def test_the_caller_may_use_arrays_of_any_size_again(subject, call):
    subject.agrees(call)


@requirement(spec.TABLE_03, call=changing_tables(), share=0.3)
def test_each_table_of_many_rows_or_pages_is_of_its_time(subject, call):
    subject.agrees(call)


# what comes after a refusal


@requirement(spec.PKV_16, story=given_back_once_refused(kind="rewind", rewinding=[True]), share=0.05)
def test_pages_are_given_back_behind_a_refused_rewind(subject, story):
    goes_on_after_refusal(subject, story)


@requirement(spec.PKV_25, story=given_back_once_refused(kind="heads"), share=0.05)
def test_pages_are_given_back_behind_arrays_that_are_refused(subject, story):
    goes_on_after_refusal(subject, story)


@requirement(spec.PKV_21, story=others_once_refused(), share=0.05)
def test_a_chunk_without_room_does_not_show_in_other_caches(subject, story):
    goes_on_after_refusal(subject, story)


@requirement(spec.TABLE_03, story=tables_once_refused(), share=0.05)
def test_a_chunk_without_room_does_not_show_in_a_table(subject, story):
    goes_on_after_refusal(subject, story)


@requirement(spec.PKVA_05, call=layered_guesses(rewinding=[True]), share=0.1)
def test_layers_whose_guesses_are_rewound_keep_apart(subject, call):
    subject.agrees(call)
