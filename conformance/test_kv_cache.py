"""Does a key/value cache keep the contract? Every sentence of both kinds is asked of the growing and of the preallocated."""

from inferspec.conformance.inputs.kv_cache import (
    appends,
    crossing,
    decoding,
    far_offsets,
    kept_results,
    kept_through_rewinds,
    overwritten,
    overwritten_anew,
    overwritten_later,
    with_offsets,
)
from inferspec.conformance.inputs.kv_cache_rewinds import (
    bad_rewinds,
    guessing,
    rewinds,
    rewinds_to_the_ends,
    rewound_in_a_row,
)
from inferspec.conformance.inputs.kv_cache_script import (
    COMMON_HEADS,
    LARGEST_HEADS,
    MANY_HEADS,
    MANY_ROWS,
    WIDE_HEADS,
    beside_buffers,
    prompts,
    tens_of_thousands,
    thousands,
    with_infinities,
    with_tokens_of_zeros,
)
from inferspec.conformance.inputs.kv_cache_states import restored
from inferspec.conformance.properties.caches import keeps_dtype
from inferspec.conformance.properties.common import goes_on_after_refusal, keeps_arguments, refuses_step
from inferspec.conformance.strategies import HALF
from inferspec.conformance.suite import requirement
from inferspec.spec import kv_cache as spec

# appends


@requirement(spec.KV_01, call=appends(), share=0.7)
def test_an_append_returns_all_tokens_in_order(subject, call):
    subject.agrees(call)


@requirement(spec.SKV_01, call=appends(static=True), share=0.5)
def test_an_append_to_a_preallocated_cache_returns_all_tokens_in_order(subject, call):
    subject.agrees(call)


@requirement(spec.KV_01, call=appends(shapes=WIDE_HEADS), share=0.25)
def test_every_feature_of_wide_heads_is_cached(subject, call):
    subject.agrees(call)


@requirement(spec.SKV_01, call=appends(static=True, shapes=WIDE_HEADS), share=0.2)
def test_every_feature_of_wide_heads_is_cached_in_a_preallocated_cache(subject, call):
    subject.agrees(call)


COMMON = {"dtypes": HALF, "batches": [1, 2], "chunks": prompts, "shapes": COMMON_HEADS, "most": 3}


@requirement(spec.KV_01, call=appends(**COMMON), share=0.1)
def test_tokens_of_common_heads_are_cached(subject, call):
    subject.agrees(call)


@requirement(spec.SKV_01, call=appends(static=True, **COMMON), share=0.1)
def test_tokens_of_common_heads_are_cached_in_a_preallocated_cache(subject, call):
    subject.agrees(call)


@requirement(spec.KV_01, call=appends(shapes=LARGEST_HEADS, most=3), share=0.1)
def test_every_head_and_feature_of_the_largest_is_cached(subject, call):
    subject.agrees(call)


@requirement(spec.SKV_01, call=appends(static=True, shapes=LARGEST_HEADS, most=3), share=0.1)
def test_every_head_and_feature_of_the_largest_is_cached_in_a_preallocated_cache(subject, call):
    subject.agrees(call)


@requirement(spec.KV_01, call=appends(), share=0.05)
def test_infinities_are_cached(subject, call):
    subject.agrees(with_infinities(call))


@requirement(spec.SKV_01, call=appends(static=True), share=0.05)
def test_infinities_are_cached_in_a_preallocated_cache(subject, call):
    subject.agrees(with_infinities(call))


@requirement(spec.KV_02, call=appends(chunks=beside_buffers), share=0.7)
def test_prompts_and_tokens_beside_buffer_sizes_are_cached(subject, call):
    subject.agrees(call)


@requirement(spec.KV_02, call=appends(chunks=thousands), share=0.1)
def test_thousands_of_tokens_are_cached(subject, call):
    subject.agrees(call)


@requirement(spec.KV_02, call=appends(chunks=tens_of_thousands, shapes=((1, 4),), batches=[1], most=3), share=0.04)
def test_tens_of_thousands_of_tokens_are_cached(subject, call):
    subject.agrees(call)


@requirement(
    spec.SKV_02, call=appends(static=True, chunks=tens_of_thousands, shapes=((1, 4),), batches=[1], most=3), share=0.04
)
def test_tens_of_thousands_of_tokens_are_cached_in_a_preallocated_cache(subject, call):
    subject.agrees(call)


@requirement(spec.KV_02, call=crossing(), share=0.3)
def test_tokens_one_after_the_other_cross_the_sizes_of_buffers(subject, call):
    subject.agrees(call)


@requirement(spec.SKV_02, call=crossing(static=True), share=0.3)
def test_tokens_one_after_the_other_cross_the_sizes_of_buffers_in_a_preallocated_cache(subject, call):
    subject.agrees(call)


@requirement(spec.KV_02, call=decoding(), share=0.1)
def test_dozens_of_tokens_one_after_the_other_are_cached(subject, call):
    subject.agrees(call)


@requirement(spec.SKV_02, call=decoding(static=True), share=0.1)
def test_dozens_of_tokens_one_after_the_other_are_cached_in_a_preallocated_cache(subject, call):
    subject.agrees(call)


@requirement(spec.KV_02, call=appends(empty_chunks=[True]), share=0.5)
def test_empty_chunks_change_nothing(subject, call):
    subject.agrees(call)


@requirement(spec.SKV_02, call=appends(static=True, chunks=beside_buffers), share=0.4)
def test_prompts_and_tokens_beside_buffer_sizes_are_cached_in_a_preallocated_cache(subject, call):
    subject.agrees(call)


@requirement(spec.SKV_02, call=appends(static=True, chunks=thousands), share=0.1)
def test_thousands_of_tokens_are_cached_in_a_preallocated_cache(subject, call):
    subject.agrees(call)


@requirement(spec.SKV_02, call=appends(static=True, empty_chunks=[True]), share=0.3)
def test_empty_chunks_change_nothing_in_a_preallocated_cache(subject, call):
    subject.agrees(call)


@requirement(spec.KV_03, call=appends(batches=[2, 3, 9]), share=0.5)
def test_rows_and_heads_keep_apart(subject, call):
    subject.agrees(call)


@requirement(spec.SKV_03, call=appends(static=True, batches=[2, 3, 9]), share=0.3)
def test_rows_and_heads_of_a_preallocated_cache_keep_apart(subject, call):
    subject.agrees(call)


@requirement(spec.KV_03, call=appends(batches=[9], rows=MANY_ROWS, most=3), share=0.1)
def test_many_rows_keep_apart(subject, call):
    subject.agrees(call)


@requirement(spec.SKV_03, call=appends(static=True, batches=[9], rows=MANY_ROWS, most=3), share=0.1)
def test_many_rows_of_a_preallocated_cache_keep_apart(subject, call):
    subject.agrees(call)


@requirement(spec.KV_03, call=appends(shapes=MANY_HEADS), share=0.1)
def test_many_heads_keep_apart(subject, call):
    subject.agrees(call)


@requirement(spec.SKV_03, call=appends(static=True, shapes=MANY_HEADS), share=0.1)
def test_many_heads_of_a_preallocated_cache_keep_apart(subject, call):
    subject.agrees(call)


@requirement(spec.KV_04, call=appends(head_dims=["different"]), share=0.5)
def test_keys_and_values_may_differ_in_size(subject, call):
    subject.agrees(call)


@requirement(spec.SKV_04, call=appends(static=True, head_dims=["different"]), share=0.3)
def test_keys_and_values_of_a_preallocated_cache_may_differ_in_size(subject, call):
    subject.agrees(call)


@requirement(spec.KV_05, call=with_offsets(), share=0.7)
def test_offset_counts_the_tokens(subject, call):
    subject.agrees(call)


@requirement(spec.KV_05, call=with_offsets(), share=0.1)
def test_offset_counts_tokens_of_zeros(subject, call):
    subject.agrees(with_tokens_of_zeros(call))


@requirement(spec.SKV_05, call=with_offsets(static=True), share=0.1)
def test_offset_of_a_preallocated_cache_counts_tokens_of_zeros(subject, call):
    subject.agrees(with_tokens_of_zeros(call))


@requirement(spec.KV_01, call=appends(), share=0.1)
def test_tokens_of_zeros_are_cached(subject, call):
    subject.agrees(with_tokens_of_zeros(call))


@requirement(spec.SKV_01, call=appends(static=True), share=0.15)
def test_tokens_of_zeros_are_cached_in_a_preallocated_cache(subject, call):
    subject.agrees(with_tokens_of_zeros(call))


@requirement(spec.KV_05, call=with_offsets(chunks=beside_buffers), share=0.3)
def test_offset_counts_tokens_beside_buffer_sizes(subject, call):
    subject.agrees(call)


@requirement(spec.KV_05, call=far_offsets(batches=[1]), share=0.03)
def test_offset_counts_tens_of_thousands_of_tokens(subject, call):
    subject.agrees(call)


@requirement(spec.SKV_05, call=far_offsets(static=True, batches=[1]), share=0.03)
def test_offset_of_a_preallocated_cache_counts_tens_of_thousands_of_tokens(subject, call):
    subject.agrees(call)


@requirement(spec.SKV_05, call=with_offsets(static=True), share=0.5)
def test_offset_of_a_preallocated_cache_counts_the_tokens(subject, call):
    subject.agrees(call)


@requirement(spec.KV_06, call=appends(), share=0.7)
def test_keys_and_values_keep_their_dtype(subject, call):
    keeps_dtype(subject, call)


@requirement(spec.SKV_06, call=appends(static=True), share=0.5)
def test_keys_and_values_of_a_preallocated_cache_keep_their_dtype(subject, call):
    keeps_dtype(subject, call)


@requirement(spec.KV_06, call=appends(chunks=beside_buffers), share=0.3)
def test_keys_and_values_keep_their_dtype_when_the_cache_grows(subject, call):
    keeps_dtype(subject, call)


@requirement(spec.KV_06, call=restored(), share=0.3)
def test_restored_keys_and_values_keep_their_dtype(subject, call):
    keeps_dtype(subject, call)


@requirement(spec.SKV_06, call=restored(static=True), share=0.3)
def test_restored_keys_and_values_of_a_preallocated_cache_keep_their_dtype(subject, call):
    keeps_dtype(subject, call)


@requirement(spec.KV_07, call=appends(views=True), share=1)
def test_strided_chunks_are_cached_like_their_copies(subject, call):
    subject.agrees(call)


@requirement(spec.SKV_07, call=appends(static=True, views=True), share=1)
def test_strided_chunks_are_cached_like_their_copies_in_a_preallocated_cache(subject, call):
    subject.agrees(call)


@requirement(spec.KV_07, call=appends(views=True, chunks=prompts, most=3), share=0.3)
def test_strided_prompts_are_cached_like_their_copies(subject, call):
    subject.agrees(call)


@requirement(spec.SKV_07, call=appends(static=True, views=True, chunks=prompts, most=3), share=0.3)
def test_strided_prompts_are_cached_like_their_copies_in_a_preallocated_cache(subject, call):
    subject.agrees(call)


@requirement(spec.KV_08, call=appends(), share=0.5)
def test_an_append_changes_no_argument(subject, call):
    keeps_arguments(subject, call)


@requirement(spec.SKV_08, call=appends(static=True), share=0.3)
def test_an_append_to_a_preallocated_cache_changes_no_argument(subject, call):
    keeps_arguments(subject, call)


@requirement(spec.KV_09, call=overwritten(), share=0.5)
def test_the_caller_may_use_its_arrays_again(subject, call):
    subject.agrees(call)


@requirement(spec.SKV_09, call=overwritten(static=True), share=0.3)
def test_the_caller_of_a_preallocated_cache_may_use_its_arrays_again(subject, call):
    subject.agrees(call)


@requirement(spec.KV_09, call=overwritten_later(), share=0.1)
def test_the_caller_may_use_the_arrays_of_later_tokens_again(subject, call):
    subject.agrees(call)


@requirement(spec.SKV_09, call=overwritten_later(static=True), share=0.1)
def test_the_caller_of_a_preallocated_cache_may_use_the_arrays_of_later_tokens_again(subject, call):
    subject.agrees(call)


@requirement(spec.KV_09, call=overwritten_anew(), share=0.1)
def test_the_caller_may_use_its_arrays_again_when_all_tokens_were_rewound(subject, call):
    subject.agrees(call)


@requirement(spec.SKV_09, call=overwritten_anew(static=True), share=0.1)
def test_the_caller_of_a_preallocated_cache_may_use_its_arrays_again_when_all_tokens_were_rewound(subject, call):
    subject.agrees(call)


@requirement(spec.KV_10, call=kept_results(), share=0.5)
def test_results_stay_what_they_were(subject, call):
    subject.agrees(call)


@requirement(spec.KV_10, call=kept_results(chunks=beside_buffers), share=0.3)
def test_long_results_stay_what_they_were(subject, call):
    subject.agrees(call)


@requirement(spec.SKV_10, call=kept_results(static=True), share=0.3)
def test_results_of_a_preallocated_cache_stay_what_they_were(subject, call):
    subject.agrees(call)


@requirement(spec.KV_11, call=kept_through_rewinds(), share=0.5)
def test_results_stay_what_they_were_after_a_rewind(subject, call):
    subject.agrees(call)


@requirement(spec.KV_11, call=kept_through_rewinds(chunks=beside_buffers), share=0.7)
def test_long_results_stay_what_they_were_after_a_rewind(subject, call):
    subject.agrees(call)


@requirement(spec.SKV_11, call=kept_through_rewinds(static=True), share=0.4)
def test_results_of_a_preallocated_cache_stay_what_they_were_after_a_rewind(subject, call):
    subject.agrees(call)


# rewinds


@requirement(spec.KV_12, call=rewinds(), share=0.7)
def test_rewound_tokens_never_show_again(subject, call):
    subject.agrees(call)


@requirement(spec.KV_12, call=rewinds(chunks=beside_buffers), share=0.7)
def test_rewound_tokens_beside_buffer_sizes_never_show_again(subject, call):
    subject.agrees(call)


@requirement(spec.SKV_12, call=rewinds(static=True), share=0.5)
def test_rewound_tokens_of_a_preallocated_cache_never_show_again(subject, call):
    subject.agrees(call)


@requirement(spec.KV_12, call=crossing(rewound=True, rewinding=[True]), share=0.2)
def test_tokens_take_the_place_of_rewound_ones_at_the_sizes_of_buffers(subject, call):
    subject.agrees(call)


@requirement(spec.SKV_12, call=crossing(static=True, rewound=True, rewinding=[True]), share=0.2)
def test_tokens_take_the_place_of_rewound_ones_at_the_sizes_of_buffers_in_a_preallocated_cache(subject, call):
    subject.agrees(call)


@requirement(spec.KV_12, call=guessing(), share=0.1)
def test_tokens_that_were_guessed_and_rewound_never_show_again(subject, call):
    subject.agrees(call)


@requirement(spec.SKV_12, call=guessing(static=True), share=0.1)
def test_tokens_that_were_guessed_and_rewound_in_a_preallocated_cache_never_show_again(subject, call):
    subject.agrees(call)


@requirement(spec.KV_12, call=rewound_in_a_row(), share=0.05)
def test_tokens_that_were_rewound_bit_by_bit_never_show_again(subject, call):
    subject.agrees(call)


@requirement(spec.SKV_12, call=rewound_in_a_row(static=True), share=0.05)
def test_tokens_that_were_rewound_bit_by_bit_in_a_preallocated_cache_never_show_again(subject, call):
    subject.agrees(call)


@requirement(spec.KV_13, call=rewinds_to_the_ends(), share=0.7)
def test_a_rewind_by_nothing_or_by_everything(subject, call):
    subject.agrees(call)


@requirement(spec.KV_13, call=rewinds_to_the_ends(chunks=thousands), share=0.1)
def test_a_rewind_by_thousands(subject, call):
    subject.agrees(call)


@requirement(spec.SKV_13, call=rewinds_to_the_ends(static=True), share=0.4)
def test_a_rewind_of_a_preallocated_cache_by_nothing_or_by_everything(subject, call):
    subject.agrees(call)


@requirement(spec.KV_14, story=bad_rewinds(), share=0.7)
def test_a_rewind_too_far_or_backwards_is_refused(subject, story):
    refuses_step(subject, story)


@requirement(spec.SKV_14, story=bad_rewinds(static=True), share=0.5)
def test_a_rewind_of_a_preallocated_cache_too_far_or_backwards_is_refused(subject, story):
    refuses_step(subject, story)


@requirement(spec.KV_14, story=bad_rewinds(restoring=[True]), share=0.5)
def test_a_rewind_of_a_restored_cache_too_far_or_backwards_is_refused(subject, story):
    refuses_step(subject, story)


@requirement(spec.SKV_14, story=bad_rewinds(static=True, restoring=[True]), share=0.3)
def test_a_rewind_of_a_restored_preallocated_cache_too_far_or_backwards_is_refused(subject, story):
    refuses_step(subject, story)


@requirement(spec.KV_15, story=bad_rewinds(), share=0.7)
def test_a_refused_rewind_changes_nothing(subject, story):
    goes_on_after_refusal(subject, story)


@requirement(spec.SKV_15, story=bad_rewinds(static=True), share=0.4)
def test_a_refused_rewind_of_a_preallocated_cache_changes_nothing(subject, story):
    goes_on_after_refusal(subject, story)


@requirement(spec.KV_15, story=bad_rewinds(again=True), share=0.1)
def test_a_rewind_that_is_tried_again_and_again_changes_nothing(subject, story):
    goes_on_after_refusal(subject, story)


@requirement(spec.SKV_15, story=bad_rewinds(static=True, again=True), share=0.06)
def test_a_rewind_of_a_preallocated_cache_that_is_tried_again_and_again_changes_nothing(subject, story):
    goes_on_after_refusal(subject, story)
