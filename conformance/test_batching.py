"""Does the cache of a batch keep the contract? Told by what its keys, values and mask show of every request."""

from inferspec.conformance.inputs.batching import (
    alike,
    attending,
    batches,
    beginning,
    begun_with_other_queries,
    beside_other_sizes,
    chunks,
    come_again,
    counted,
    crowds,
    decoding,
    emptied,
    filled,
    generations,
    histories,
    idling,
    in_two,
    layers,
    mixtures,
    once_full,
    other_queries,
    past_buffers,
    reused,
    rewound,
    side_by_side,
    thousands,
    turnover,
)
from inferspec.conformance.inputs.batching_arrays import in_all_views, kept_masks, kept_results, kept_whole, overwritten
from inferspec.conformance.inputs.batching_refusals import (
    all_bad_pairs,
    bad_caches,
    bad_dtypes,
    bad_pairs,
    bad_pairs_beside_an_empty_cache,
    bad_pairs_without_a_prompt,
    counted_once_refused,
    elsewhere_once_refused,
    idle_slots,
    joined_once_refused,
    overfull,
    overlong,
    refused_in_turns,
    slots_outside,
    taken_slots,
    without_room,
)
from inferspec.conformance.inputs.batching_script import COMMON, LARGE, LARGEST, beside_tiles, past_a_tile
from inferspec.conformance.inputs.kv_cache_script import beginning_with_zeros, with_infinities, with_tokens_of_zeros
from inferspec.conformance.properties.caches import keeps_dtype
from inferspec.conformance.properties.common import (
    depends_on_arguments_alone,
    goes_on_after_refusal,
    keeps_arguments,
    refuses,
    refuses_step,
    refuses_steps,
)
from inferspec.conformance.strategies import HALF
from inferspec.conformance.suite import requirement
from inferspec.spec import batching as spec

# what an update returns


@requirement(spec.BATCH_01, call=batches(), share=0.05)
def test_infinities_are_tokens_of_a_request(subject, call):
    subject.agrees(with_infinities(call))


@requirement(spec.BATCH_01, call=batches(shapes=LARGEST), share=0.05)
def test_every_feature_of_the_largest_heads_is_returned(subject, call):
    subject.agrees(call)


@requirement(spec.BATCH_01, call=batches(), share=0.5)
def test_an_update_returns_the_tokens_of_every_request(subject, call):
    subject.agrees(call)


@requirement(spec.BATCH_01, call=batches(), share=0.1)
def test_requests_may_begin_with_tokens_of_zeros(subject, call):
    subject.agrees(beginning_with_zeros(call))


@requirement(spec.BATCH_01, call=batches(shapes=LARGE), share=0.2)
def test_many_heads_and_wide_ones_are_returned(subject, call):
    subject.agrees(call)


@requirement(spec.BATCH_01, call=mixtures(slots=[5], dtypes=HALF, shapes=COMMON), share=0.1)
def test_tokens_of_common_heads_are_returned(subject, call):
    subject.agrees(call)


@requirement(spec.BATCH_01, call=decoding(), share=0.1)
def test_dozens_of_tokens_one_after_the_other_are_returned(subject, call):
    subject.agrees(call)


@requirement(spec.BATCH_01, call=in_two(), share=0.1)
def test_prompts_that_were_cached_in_two_chunks_are_returned(subject, call):
    subject.agrees(call)


@requirement(spec.BATCH_02, call=mixtures(), share=0.5)
def test_no_query_sees_padding(subject, call):
    subject.agrees(call)


@requirement(spec.BATCH_02, call=mixtures(prompts=beside_tiles), share=0.2)
def test_no_query_sees_long_padding(subject, call):
    subject.agrees(call)


@requirement(spec.BATCH_03, call=chunks(), share=0.5)
def test_several_queries_are_causal_within_their_own_request(subject, call):
    subject.agrees(call)


@requirement(spec.BATCH_04, call=idling(), share=0.7)
def test_idle_slots_see_nothing(subject, call):
    subject.agrees(call)


@requirement(spec.BATCH_05, call=reused(poisoned=True), share=0.7)
def test_padding_is_finite_after_requests_of_nan(subject, call):
    subject.agrees(call)


@requirement(spec.BATCH_05, call=idling(), share=0.5)
def test_padding_is_finite_whatever_idle_slots_are_given(subject, call):
    subject.agrees(call)


@requirement(spec.BATCH_05, call=once_full(), share=0.08)
def test_padding_is_finite_whatever_an_idle_slot_is_given_once_all_were_taken(subject, call):
    subject.agrees(call)


@requirement(spec.BATCH_05, call=idling(lengths=(12, 33, 70, 1)), share=0.1)
def test_padding_is_finite_whatever_idle_slots_are_given_in_chunks(subject, call):
    subject.agrees(call)


@requirement(spec.BATCH_06, call=reused(), share=0.7)
def test_a_slot_used_again_shows_nothing_of_the_request_before(subject, call):
    subject.agrees(call)


@requirement(spec.BATCH_06, call=reused(prompts=beside_tiles), share=0.2)
def test_a_slot_used_again_shows_nothing_of_a_long_request_before(subject, call):
    subject.agrees(call)


@requirement(spec.BATCH_07, call=attending(), share=0.7)
def test_attention_over_a_batch_is_that_of_each_request_alone(subject, call):
    subject.agrees(call)


@requirement(spec.BATCH_07, call=attending(prompts=beside_tiles, events=3), share=0.2)
def test_attention_over_a_batch_of_long_requests_is_that_of_each_alone(subject, call):
    subject.agrees(call)


@requirement(spec.BATCH_08, call=histories(), share=1)
def test_requests_come_and_go(subject, call):
    subject.agrees(call)


@requirement(spec.BATCH_08, call=crowds(), share=0.2)
def test_dozens_of_requests_are_served_together(subject, call):
    subject.agrees(call)


@requirement(spec.BATCH_08, call=histories(prompts=beside_tiles, events=5), share=0.5)
def test_long_requests_come_and_go(subject, call):
    subject.agrees(call)


@requirement(spec.BATCH_08, call=alike(), share=0.3)
def test_requests_of_the_same_prompt_have_each_their_own_tokens(subject, call):
    subject.agrees(call)


@requirement(spec.BATCH_08, call=come_again(), share=0.1)
def test_a_request_of_the_prompt_of_one_that_left_begins_anew(subject, call):
    subject.agrees(call)


@requirement(spec.BATCH_08, call=in_two(alike=True), share=0.15)
def test_prompts_that_begin_alike_have_each_their_own_tokens(subject, call):
    subject.agrees(call)


@requirement(spec.BATCH_09, call=beginning(), share=0.5)
def test_a_request_without_a_prompt_begins_with_its_first_update(subject, call):
    subject.agrees(call)


@requirement(spec.BATCH_10, call=batches(prompts=beside_tiles), share=0.4)
def test_prompts_beside_the_sizes_of_tiles_and_buffers(subject, call):
    subject.agrees(call)


@requirement(spec.BATCH_10, call=chunks(lengths=beside_tiles), share=0.15)
def test_steps_beside_the_sizes_of_tiles_and_buffers(subject, call):
    subject.agrees(call)


@requirement(spec.BATCH_10, call=turnover(), share=0.4)
def test_a_batch_outlives_its_requests_by_many_steps(subject, call):
    subject.agrees(call)


@requirement(spec.BATCH_10, call=past_buffers(), share=0.15)
def test_tokens_one_after_the_other_go_past_the_sizes_of_buffers(subject, call):
    subject.agrees(call)


@requirement(spec.BATCH_10, call=thousands(), share=0.04)
def test_thousands_of_tokens_are_counted(subject, call):
    subject.agrees(call)


@requirement(spec.BATCH_11, call=batches(head_dims=["different"]), share=0.3)
def test_keys_and_values_may_differ_in_size(subject, call):
    subject.agrees(call)


@requirement(spec.BATCH_12, call=histories(events=5), share=0.4)
def test_keys_and_values_keep_their_dtype(subject, call):
    keeps_dtype(subject, call, "keys", "values")


@requirement(spec.BATCH_12, call=batches(prompts=beside_tiles), share=0.2)
def test_keys_and_values_of_long_requests_keep_their_dtype(subject, call):
    keeps_dtype(subject, call, "keys", "values")


@requirement(spec.BATCH_13, call=histories(events=5), share=0.4)
def test_the_mask_is_one_that_attention_takes(subject, call):
    keeps_dtype(subject, call, "mask")


@requirement(spec.BATCH_14, call=in_all_views(), share=0.7)
def test_strided_tokens_are_cached_like_their_copies(subject, call):
    subject.agrees(call)


@requirement(spec.BATCH_14, call=in_all_views(prompts=past_a_tile), share=0.3)
def test_strided_prompts_are_cached_like_their_copies(subject, call):
    subject.agrees(call)


@requirement(spec.BATCH_15, call=histories(events=4), share=0.3)
def test_an_update_changes_no_argument(subject, call):
    keeps_arguments(subject, call)


@requirement(spec.BATCH_16, call=overwritten(), share=0.4)
def test_the_caller_may_use_its_arrays_again(subject, call):
    subject.agrees(call)


@requirement(spec.BATCH_17, call=kept_results(), share=0.4)
def test_results_stay_what_they_were(subject, call):
    subject.agrees(call)


@requirement(spec.BATCH_17, call=kept_results(prompts=beside_tiles), share=0.15)
def test_long_results_stay_what_they_were(subject, call):
    subject.agrees(call)


@requirement(spec.BATCH_17, call=kept_whole(), share=0.2)
def test_results_without_padding_stay_what_they_were(subject, call):
    subject.agrees(call)


@requirement(spec.BATCH_17, call=kept_masks(), share=0.1)
def test_results_stay_when_others_of_their_shape_come(subject, call):
    subject.agrees(call)


@requirement(spec.BATCH_18, call=counted(), share=0.5)
def test_offsets_count_the_tokens_of_every_slot(subject, call):
    subject.agrees(call)


@requirement(spec.BATCH_18, call=counted(), share=0.1)
def test_offsets_count_tokens_of_zeros(subject, call):
    subject.agrees(with_tokens_of_zeros(call))


@requirement(spec.BATCH_18, call=counted(slots=[33, 9]), share=0.1)
def test_offsets_count_the_tokens_of_dozens_of_slots(subject, call):
    subject.agrees(call)


@requirement(spec.BATCH_19, call=other_queries(), share=0.4)
def test_there_may_be_fewer_queries_than_new_tokens_or_more(subject, call):
    subject.agrees(call)


@requirement(spec.BATCH_19, call=begun_with_other_queries(), share=0.1)
def test_requests_without_a_prompt_may_begin_with_fewer_queries_than_tokens_or_more(subject, call):
    subject.agrees(call)


@requirement(spec.BATCH_32, call=rewound(), share=0.4)
def test_rewound_tokens_of_a_prompt_never_show(subject, call):
    subject.agrees(call)


@requirement(spec.BATCH_32, call=emptied(), share=0.1)
def test_what_was_rewound_of_a_prompt_to_its_first_token_never_shows(subject, call):
    subject.agrees(call)


@requirement(spec.BATCH_33, first=histories(events=4), second=histories(events=4), share=0.4)
def test_other_batches_in_between_change_nothing(subject, first, second):
    depends_on_arguments_alone(subject, first, second)


@requirement(spec.BATCH_33, call=side_by_side(), share=0.3)
def test_two_batches_in_turns_keep_apart(subject, call):
    subject.agrees(call)


@requirement(spec.BATCH_33, call=beside_other_sizes(), share=0.2)
def test_batches_of_other_sizes_keep_apart(subject, call):
    subject.agrees(call)


@requirement(spec.BATCH_33, call=layers(), share=0.3)
def test_the_batches_of_two_layers_keep_apart(subject, call):
    subject.agrees(call)


@requirement(spec.BATCH_33, call=alike(beside=True), share=0.3)
def test_batches_with_requests_of_the_same_prompt_keep_apart(subject, call):
    subject.agrees(call)


@requirement(spec.BATCH_35, call=generations(), share=0.5)
def test_a_decoder_gives_every_request_what_it_gives_it_alone(subject, call):
    subject.agrees(call)


@requirement(spec.BATCH_35, call=generations(prompts=beside_tiles, events=4), share=0.1)
def test_a_decoder_gives_long_requests_what_it_gives_them_alone(subject, call):
    subject.agrees(call)


# room


@requirement(spec.BATCH_20, call=histories(events=4), share=0.2)
def test_room_to_spare_does_not_show(subject, call):
    enough = call.arguments["max_len"]
    for room in (1, 255, 1000):
        subject.agrees(call.having(max_len=min(enough + room, max(enough, subject.envelope["tokens"]))))


@requirement(spec.BATCH_21, call=filled(), share=0.5)
def test_every_request_can_be_filled_to_its_last_token(subject, call):
    subject.agrees(call)


@requirement(spec.BATCH_21, call=turnover(), share=0.2)
def test_room_is_that_of_a_request_and_not_of_the_batch(subject, call):
    subject.agrees(call)


@requirement(spec.BATCH_22, story=overfull(), share=0.4)
def test_more_than_max_len_tokens_are_refused(subject, story):
    refuses_step(subject, story)


@requirement(spec.BATCH_22, story=overfull(slots=[33, 9]), share=0.35)
def test_more_than_max_len_tokens_are_refused_in_any_of_dozens_of_slots(subject, story):
    refuses_step(subject, story)


@requirement(spec.BATCH_23, story=overfull(), share=0.45)
def test_an_update_that_does_not_fit_changes_nothing(subject, story):
    goes_on_after_refusal(subject, story)


@requirement(spec.BATCH_23, story=overfull(again=True), share=0.15)
def test_an_update_that_is_tried_again_and_again_changes_nothing(subject, story):
    goes_on_after_refusal(subject, story)


@requirement(spec.BATCH_23, story=joined_once_refused(), share=0.1)
def test_a_request_that_joins_once_an_update_was_refused_has_all_its_tokens(subject, story):
    goes_on_after_refusal(subject, story)


@requirement(spec.BATCH_23, story=bad_pairs(), share=0.5)
def test_a_misshaped_update_changes_nothing(subject, story):
    goes_on_after_refusal(subject, story)


@requirement(spec.BATCH_23, story=all_bad_pairs(), share=0.08)
def test_misshaped_updates_one_after_the_other_change_nothing(subject, story):
    goes_on_after_refusal(subject, story)


@requirement(spec.BATCH_23, story=bad_pairs_without_a_prompt(), share=0.06)
def test_misshaped_updates_of_a_request_without_a_prompt_change_nothing(subject, story):
    goes_on_after_refusal(subject, story)


@requirement(spec.BATCH_23, story=bad_dtypes(), share=0.3)
def test_an_update_of_another_dtype_changes_nothing(subject, story):
    goes_on_after_refusal(subject, story)


@requirement(spec.BATCH_24, story=overlong(), share=0.3)
def test_a_prompt_longer_than_max_len_is_refused(subject, story):
    refuses_step(subject, story)


# slots


@requirement(spec.BATCH_25, story=taken_slots(), share=0.3)
def test_a_taken_slot_is_not_given_away(subject, story):
    refuses_step(subject, story)


@requirement(spec.BATCH_26, story=idle_slots(), share=0.3)
def test_nothing_can_be_removed_from_an_idle_slot(subject, story):
    refuses_step(subject, story)


@requirement(spec.BATCH_27, story=slots_outside(), share=0.5)
def test_a_slot_that_there_is_not_is_refused(subject, story):
    refuses_step(subject, story)


@requirement(spec.BATCH_28, story=taken_slots(), share=0.3)
def test_a_refused_request_changes_nothing(subject, story):
    goes_on_after_refusal(subject, story)


@requirement(spec.BATCH_28, story=slots_outside(), share=0.3)
def test_a_refused_slot_changes_nothing(subject, story):
    goes_on_after_refusal(subject, story)


@requirement(spec.BATCH_28, story=elsewhere_once_refused(), share=0.05)
def test_a_request_that_was_refused_takes_another_slot_with_all_its_tokens(subject, story):
    goes_on_after_refusal(subject, story)


@requirement(spec.BATCH_28, story=overlong(), share=0.3)
def test_a_prompt_that_is_too_long_changes_nothing(subject, story):
    goes_on_after_refusal(subject, story)


@requirement(spec.BATCH_28, story=bad_caches(), share=0.3)
def test_a_cache_that_does_not_fit_changes_nothing(subject, story):
    goes_on_after_refusal(subject, story)


@requirement(spec.BATCH_28, story=overlong(again=True), share=0.1)
def test_a_prompt_that_is_too_long_again_and_again_changes_nothing(subject, story):
    goes_on_after_refusal(subject, story)


@requirement(spec.BATCH_28, story=taken_slots(again=True), share=0.1)
def test_a_taken_slot_that_is_asked_for_again_and_again_stays_as_it_is(subject, story):
    goes_on_after_refusal(subject, story)


@requirement(spec.BATCH_28, story=idle_slots(again=True), share=0.1)
def test_a_removal_that_is_tried_again_and_again_changes_nothing(subject, story):
    goes_on_after_refusal(subject, story)


@requirement(spec.BATCH_28, story=idle_slots(), share=0.2)
def test_a_refused_removal_changes_nothing(subject, story):
    goes_on_after_refusal(subject, story)


@requirement(spec.BATCH_28, story=counted_once_refused(), share=0.05)
def test_a_prompt_that_is_too_long_is_not_counted(subject, story):
    goes_on_after_refusal(subject, story)


@requirement(spec.BATCH_28, story=refused_in_turns(last="taken"), share=0.05)
def test_a_request_that_is_refused_behind_other_refusals_changes_nothing(subject, story):
    goes_on_after_refusal(subject, story)


@requirement(spec.BATCH_23, story=refused_in_turns(last="room"), share=0.05)
def test_an_update_that_is_refused_behind_other_refusals_changes_nothing(subject, story):
    goes_on_after_refusal(subject, story)


@requirement(spec.BATCH_23, story=bad_pairs_beside_an_empty_cache(), share=0.05)
def test_an_update_that_does_not_fit_beside_an_empty_cache_changes_nothing(subject, story):
    goes_on_after_refusal(subject, story)


# arrays that do not fit


@requirement(spec.BATCH_29, story=bad_pairs(), share=1.4)
def test_a_misshaped_update_is_refused(subject, story):
    refuses_step(subject, story)


@requirement(spec.BATCH_29, story=all_bad_pairs(), share=0.1)
def test_updates_that_are_misshaped_in_any_way_are_refused(subject, story):
    refuses_steps(subject, story)


@requirement(spec.BATCH_29, story=bad_pairs_without_a_prompt(), share=0.06)
def test_misshaped_updates_of_a_request_without_a_prompt_are_refused(subject, story):
    refuses_steps(subject, story)


@requirement(spec.BATCH_30, story=bad_caches(), share=0.5)
def test_a_cache_that_does_not_fit_is_refused(subject, story):
    refuses_step(subject, story)


@requirement(spec.BATCH_31, story=bad_dtypes(), share=0.4)
def test_another_dtype_is_refused(subject, story):
    refuses_step(subject, story)


@requirement(spec.BATCH_34, call=without_room(), share=0.1)
def test_a_batch_of_no_size_is_refused(subject, call):
    refuses(subject, call)
