"""Does a key/value cache keep the contract? Every sentence of both kinds is asked of the growing and of the preallocated."""

from inferspec.conformance.inputs.kv_cache import (
    appends,
    crossing,
    decoding,
    kept_results,
    kept_through_rewinds,
    layers,
    overwritten,
    overwritten_anew,
    overwritten_later,
    side_by_side,
    with_offsets,
)
from inferspec.conformance.inputs.kv_cache_refusals import bad_dtypes, bad_pairs, bad_shapes
from inferspec.conformance.inputs.kv_cache_rewinds import bad_rewinds, guessing, rewinds, rewinds_to_the_ends
from inferspec.conformance.inputs.kv_cache_room import beside_other_sizes, filled, overfull, too_long_states
from inferspec.conformance.inputs.kv_cache_script import (
    COMMON_HEADS,
    MANY_HEADS,
    MANY_ROWS,
    WIDE_HEADS,
    beside_buffers,
    prompts,
    tens_of_thousands,
    thousands,
    with_tokens_of_zeros,
)
from inferspec.conformance.inputs.kv_cache_states import (
    of_another_dtype_once_empty,
    of_another_kind,
    restored,
    rolled_back,
    saved_again,
    saved_when_full,
    shared,
    states_of_their_time,
)
from inferspec.conformance.properties import (
    depends_on_arguments_alone,
    goes_on_after_refusal,
    keeps_arguments,
    refuses_step,
)
from inferspec.conformance.strategies import HALF
from inferspec.conformance.suite import requirement
from inferspec.conformance.trial import Nonconformance
from inferspec.spec import kv_cache as spec

# appends


@requirement(spec.KV_01, call=appends(), share=0.7)
def test_an_append_returns_all_tokens_in_order(subject, call):
    subject.agrees(call)


@requirement(spec.SKV_01, call=appends(static=True), share=0.5)
def test_an_append_to_a_preallocated_cache_returns_all_tokens_in_order(subject, call):
    subject.agrees(call)


@requirement(spec.KV_01, call=appends(shapes=WIDE_HEADS), share=0.15)
def test_every_feature_of_wide_heads_is_cached(subject, call):
    subject.agrees(call)


@requirement(spec.SKV_01, call=appends(static=True, shapes=WIDE_HEADS), share=0.15)
def test_every_feature_of_wide_heads_is_cached_in_a_preallocated_cache(subject, call):
    subject.agrees(call)


COMMON = {"dtypes": HALF, "batches": [1, 2], "chunks": prompts, "shapes": COMMON_HEADS, "most": 3}


@requirement(spec.KV_01, call=appends(**COMMON), share=0.1)
def test_tokens_of_common_heads_are_cached(subject, call):
    subject.agrees(call)


@requirement(spec.SKV_01, call=appends(static=True, **COMMON), share=0.1)
def test_tokens_of_common_heads_are_cached_in_a_preallocated_cache(subject, call):
    subject.agrees(call)


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


@requirement(spec.SKV_01, call=appends(static=True), share=0.1)
def test_tokens_of_zeros_are_cached_in_a_preallocated_cache(subject, call):
    subject.agrees(with_tokens_of_zeros(call))


@requirement(spec.KV_05, call=with_offsets(chunks=beside_buffers), share=0.3)
def test_offset_counts_tokens_beside_buffer_sizes(subject, call):
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


@requirement(spec.SKV_14, story=bad_rewinds(static=True), share=0.4)
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


# appends that do not fit


@requirement(spec.KV_16, story=bad_pairs(), share=0.7)
def test_a_key_and_a_value_that_are_no_pair_are_refused(subject, story):
    refuses_step(subject, story)


@requirement(spec.SKV_16, story=bad_pairs(static=True), share=0.5)
def test_a_key_and_a_value_that_are_no_pair_are_refused_by_a_preallocated_cache(subject, story):
    refuses_step(subject, story)


@requirement(spec.KV_17, story=bad_shapes(), share=0.7)
def test_a_chunk_of_another_shape_is_refused(subject, story):
    refuses_step(subject, story)


@requirement(spec.KV_17, story=bad_shapes(chunks=beside_buffers), share=0.3)
def test_a_chunk_of_another_shape_is_refused_where_the_cache_must_grow(subject, story):
    refuses_step(subject, story)


@requirement(spec.SKV_17, story=bad_shapes(static=True), share=1.0)
def test_a_chunk_of_another_shape_is_refused_by_a_preallocated_cache(subject, story):
    refuses_step(subject, story)


@requirement(spec.KV_17, story=bad_shapes(restoring=[True]), share=0.7)
def test_a_chunk_of_another_shape_is_refused_by_a_restored_cache(subject, story):
    refuses_step(subject, story)


@requirement(spec.KV_17, story=bad_shapes(rewinding=[True]), share=0.3)
def test_a_chunk_of_another_shape_is_refused_by_a_cache_that_was_rewound(subject, story):
    refuses_step(subject, story)


@requirement(spec.SKV_17, story=bad_shapes(static=True, restoring=[True]), share=0.5)
def test_a_chunk_of_another_shape_is_refused_by_a_restored_preallocated_cache(subject, story):
    refuses_step(subject, story)


@requirement(spec.KV_18, story=bad_dtypes(), share=0.5)
def test_a_chunk_of_another_dtype_is_refused(subject, story):
    refuses_step(subject, story)


@requirement(spec.SKV_18, story=bad_dtypes(static=True), share=0.3)
def test_a_chunk_of_another_dtype_is_refused_by_a_preallocated_cache(subject, story):
    refuses_step(subject, story)


@requirement(spec.KV_18, story=bad_dtypes(restoring=[True]), share=0.5)
def test_a_chunk_of_another_dtype_is_refused_by_a_restored_cache(subject, story):
    refuses_step(subject, story)


@requirement(spec.SKV_18, story=bad_dtypes(static=True, restoring=[True]), share=0.3)
def test_a_chunk_of_another_dtype_is_refused_by_a_restored_preallocated_cache(subject, story):
    refuses_step(subject, story)


@requirement(spec.KV_19, story=bad_pairs(), share=0.5)
def test_a_pair_that_is_refused_changes_nothing(subject, story):
    goes_on_after_refusal(subject, story)


@requirement(spec.KV_19, story=bad_shapes(), share=0.7)
def test_a_chunk_that_is_refused_changes_nothing(subject, story):
    goes_on_after_refusal(subject, story)


@requirement(spec.KV_19, story=bad_shapes(begun=3), share=0.3)
def test_a_chunk_that_is_refused_after_several_others_changes_nothing(subject, story):
    goes_on_after_refusal(subject, story)


@requirement(spec.SKV_19, story=bad_shapes(static=True, begun=3), share=0.2)
def test_a_chunk_that_is_refused_after_several_others_changes_nothing_in_a_preallocated_cache(subject, story):
    goes_on_after_refusal(subject, story)


@requirement(spec.KV_19, story=bad_shapes(chunks=beside_buffers), share=0.4)
def test_a_chunk_that_is_refused_does_not_let_the_cache_grow(subject, story):
    goes_on_after_refusal(subject, story)


@requirement(spec.KV_19, story=bad_dtypes(), share=0.3)
def test_a_dtype_that_is_refused_changes_nothing(subject, story):
    goes_on_after_refusal(subject, story)


@requirement(spec.SKV_19, story=bad_pairs(static=True), share=0.3)
def test_a_pair_that_is_refused_changes_nothing_in_a_preallocated_cache(subject, story):
    goes_on_after_refusal(subject, story)


@requirement(spec.SKV_19, story=bad_shapes(static=True), share=0.4)
def test_a_chunk_that_is_refused_changes_nothing_in_a_preallocated_cache(subject, story):
    goes_on_after_refusal(subject, story)


@requirement(spec.SKV_19, story=bad_dtypes(static=True), share=0.2)
def test_a_dtype_that_is_refused_changes_nothing_in_a_preallocated_cache(subject, story):
    goes_on_after_refusal(subject, story)


# states


@requirement(spec.KV_20, call=restored(), share=0.7)
def test_a_restored_cache_goes_on_as_the_first(subject, call):
    subject.agrees(call)


@requirement(spec.KV_20, call=restored(chunks=beside_buffers), share=0.4)
def test_a_long_restored_cache_goes_on_as_the_first(subject, call):
    subject.agrees(call)


@requirement(spec.SKV_20, call=restored(static=True), share=0.5)
def test_a_restored_preallocated_cache_goes_on_as_the_first(subject, call):
    subject.agrees(call)


@requirement(spec.KV_21, call=shared(), share=0.7)
def test_a_restored_cache_shares_nothing_with_the_first(subject, call):
    subject.agrees(call)


@requirement(spec.KV_21, call=shared(chunks=beside_buffers), share=0.4)
def test_a_long_restored_cache_shares_nothing_with_the_first(subject, call):
    subject.agrees(call)


@requirement(spec.SKV_21, call=shared(static=True), share=0.5)
def test_a_restored_preallocated_cache_shares_nothing_with_the_first(subject, call):
    subject.agrees(call)


@requirement(spec.KV_21, call=saved_when_full(rewinding=[True]), share=0.3)
def test_a_state_of_a_full_buffer_stays_what_it_was(subject, call):
    subject.agrees(call)


@requirement(spec.SKV_21, call=saved_when_full(static=True, rewinding=[True]), share=0.3)
def test_a_state_of_a_full_preallocated_cache_stays_what_it_was(subject, call):
    subject.agrees(call)


@requirement(spec.KV_21, call=states_of_their_time(), share=0.3)
def test_a_state_stays_what_it_was_when_others_are_taken(subject, call):
    subject.agrees(call)


@requirement(spec.SKV_21, call=states_of_their_time(static=True), share=0.3)
def test_a_state_of_a_preallocated_cache_stays_what_it_was_when_others_are_taken(subject, call):
    subject.agrees(call)


@requirement(spec.KV_21, call=saved_again(rewinding=[True]), share=0.2)
def test_a_state_of_a_restored_cache_is_that_of_its_time(subject, call):
    subject.agrees(call)


@requirement(spec.SKV_21, call=saved_again(static=True, rewinding=[True]), share=0.2)
def test_a_state_of_a_restored_preallocated_cache_is_that_of_its_time(subject, call):
    subject.agrees(call)


@requirement(spec.KV_22, call=rolled_back(), share=0.7)
def test_a_cache_in_use_becomes_what_it_restores(subject, call):
    subject.agrees(call)


@requirement(spec.SKV_22, call=rolled_back(static=True), share=0.5)
def test_a_preallocated_cache_in_use_becomes_what_it_restores(subject, call):
    subject.agrees(call)


@requirement(spec.KV_22, call=of_another_kind(kinds=("dtype",)), share=0.3)
def test_a_cache_in_use_restores_tokens_of_another_dtype_or_refuses_them(subject, call):
    takes_or_refuses(subject, call)


@requirement(spec.SKV_22, call=of_another_kind(static=True, kinds=("dtype",)), share=0.3)
def test_a_preallocated_cache_in_use_restores_tokens_of_another_dtype_or_refuses_them(subject, call):
    takes_or_refuses(subject, call)


@requirement(spec.KV_22, call=of_another_kind(kinds=("rows", "shape")), share=0.8)
def test_a_cache_in_use_restores_tokens_of_another_shape_or_refuses_them(subject, call):
    takes_or_refuses(subject, call)


@requirement(spec.SKV_22, call=of_another_kind(static=True, kinds=("rows", "shape")), share=0.8)
def test_a_preallocated_cache_in_use_restores_tokens_of_another_shape_or_refuses_them(subject, call):
    takes_or_refuses(subject, call)


@requirement(spec.KV_30, story=of_another_dtype_once_empty(), share=0.3)
def test_a_cache_without_tokens_takes_those_of_another_dtype_as_they_are_or_refuses_them(subject, story):
    as_they_are_or_not(subject, story)


@requirement(spec.SKV_30, story=of_another_dtype_once_empty(static=True), share=0.3)
def test_a_preallocated_cache_without_tokens_takes_those_of_another_dtype_as_they_are_or_refuses_them(subject, story):
    as_they_are_or_not(subject, story)


@requirement(spec.KV_23, call=side_by_side(), share=0.7)
def test_two_caches_keep_apart(subject, call):
    subject.agrees(call)


@requirement(spec.KV_23, call=layers(), share=0.2)
def test_what_a_cache_returned_stays_when_another_returns_as_much(subject, call):
    subject.agrees(call)


@requirement(spec.SKV_23, call=layers(static=True), share=0.2)
def test_what_a_preallocated_cache_returned_stays_when_another_returns_as_much(subject, call):
    subject.agrees(call)


@requirement(spec.KV_23, first=appends(), second=appends(), share=0.5)
def test_other_caches_in_between_change_nothing(subject, first, second):
    depends_on_arguments_alone(subject, first, second)


@requirement(spec.SKV_23, call=side_by_side(static=True), share=0.5)
def test_two_preallocated_caches_keep_apart(subject, call):
    subject.agrees(call)


@requirement(spec.SKV_23, call=beside_other_sizes(), share=0.2)
def test_preallocated_caches_of_other_sizes_keep_apart(subject, call):
    subject.agrees(call)


@requirement(spec.SKV_23, first=appends(static=True), second=appends(static=True), share=0.3)
def test_other_preallocated_caches_in_between_change_nothing(subject, first, second):
    depends_on_arguments_alone(subject, first, second)


# capacity


@requirement(spec.SKV_24, call=rewinds(static=True, room=(0,)), share=0.4)
def test_room_to_spare_does_not_show(subject, call):
    enough = call.arguments["max_len"]
    for room in (0, 1, 255, 1000):
        subject.agrees(call.having(max_len=min(enough + room, max(enough, subject.envelope["tokens"]))))


@requirement(spec.SKV_25, call=filled(), share=0.5)
def test_a_preallocated_cache_can_be_filled_to_the_last_slot(subject, call):
    subject.agrees(call)


@requirement(spec.SKV_25, call=filled(chunks=beside_buffers), share=0.2)
def test_a_long_preallocated_cache_can_be_filled_to_the_last_slot(subject, call):
    subject.agrees(call)


@requirement(spec.SKV_26, story=overfull(), share=0.5)
def test_more_than_max_len_tokens_are_refused(subject, story):
    refuses_step(subject, story)


@requirement(spec.SKV_26, story=overfull(chunks=beside_buffers), share=0.3)
def test_more_than_max_len_tokens_are_refused_where_those_are_hundreds(subject, story):
    refuses_step(subject, story)


@requirement(spec.SKV_27, story=overfull(), share=0.5)
def test_a_chunk_that_does_not_fit_changes_nothing(subject, story):
    goes_on_after_refusal(subject, story)


@requirement(spec.SKV_28, story=too_long_states(), share=0.1)
def test_a_state_of_more_than_max_len_tokens_is_refused(subject, story):
    refuses_step(subject, story)


@requirement(spec.SKV_29, story=too_long_states(), share=0.2)
def test_a_state_that_is_refused_changes_nothing(subject, story):
    goes_on_after_refusal(subject, story)


def takes_or_refuses(subject, call):
    """The story is right, unless it is refused to restore the state, or anything where that has no tokens and so no kind."""
    steps = [step for step, _ in call.arguments["steps"]]
    refused = [part for part in subject.answered(call).results if part.endswith(" refused")]
    of_no_tokens = steps[steps.index("another") + 1] == "save"
    if f"{steps.index('restore') + 1} refused" not in refused and not (refused and of_no_tokens):
        subject.agrees(call)


def as_they_are_or_not(subject, story):
    """What a step brings is refused, or comes back with the values and in the dtype in which it came, and so does what follows."""
    call, number = story
    if f"{number} refused" in subject.answered(call).results:
        return
    results, (_, given) = subject.agrees(call), call.arguments["steps"][number - 1]
    for part, name in ((f"{number} keys", "key"), (f"{number} values", "value")):
        if results[part].dtype != given[name].dtype:
            raise Nonconformance(
                f"step {part}: they are {results[part].dtype.name}, not {given[name].dtype.name}", call
            )


def keeps_dtype(subject, call):
    """Keys and values of every append are in the dtype of the story."""
    for part, x in subject.parts(call).items():
        if part.endswith(("keys", "values")) and x.dtype.name != call.features["dtypes"]:
            raise Nonconformance(f"step {part}: they are {x.dtype.name}, not {call.features['dtypes']}", call)
