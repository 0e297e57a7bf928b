"""Does a key/value cache refuse what does not fit, and has a preallocated one room for all that does?"""

from inferspec.conformance.inputs.kv_cache_refusals import (
    CHUNK_FIRST,
    CHUNK_LAST,
    REWIND_LAST,
    ROOM_LAST,
    bad_dtypes,
    bad_pairs,
    bad_shapes,
    exchanged_dims,
    refused_in_turns,
    restored_once_refused,
)
from inferspec.conformance.inputs.kv_cache_rewinds import rewinds
from inferspec.conformance.inputs.kv_cache_room import filled, overfull, overfull_once_restored, too_long_states
from inferspec.conformance.inputs.kv_cache_script import beside_buffers
from inferspec.conformance.properties.common import goes_on_after_refusal, refuses_step
from inferspec.conformance.suite import requirement
from inferspec.spec import kv_cache as spec

# appends that do not fit


@requirement(spec.KV_16, story=bad_pairs(), share=1)
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


@requirement(spec.KV_17, story=bad_shapes(rewinding=[True]), share=0.55)
def test_a_chunk_of_another_shape_is_refused_by_a_cache_that_was_rewound(subject, story):
    refuses_step(subject, story)


@requirement(spec.SKV_17, story=bad_shapes(static=True, restoring=[True]), share=0.5)
def test_a_chunk_of_another_shape_is_refused_by_a_restored_preallocated_cache(subject, story):
    refuses_step(subject, story)


@requirement(spec.KV_17, story=exchanged_dims(head_dims=["different"]), share=0.05)
def test_a_chunk_with_the_head_dims_of_keys_and_values_exchanged_is_refused(subject, story):
    refuses_step(subject, story)


@requirement(spec.SKV_17, story=exchanged_dims(static=True, head_dims=["different"]), share=0.05)
def test_a_chunk_with_the_head_dims_of_keys_and_values_exchanged_is_refused_by_a_preallocated_cache(subject, story):
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


@requirement(spec.KV_19, story=bad_shapes(nothing=True, empty_chunks=[True]), share=0.05)
def test_a_chunk_that_is_refused_behind_an_empty_one_changes_nothing(subject, story):
    goes_on_after_refusal(subject, story)


@requirement(spec.SKV_19, story=bad_shapes(static=True, nothing=True, empty_chunks=[True]), share=0.05)
def test_a_chunk_that_is_refused_behind_an_empty_one_changes_nothing_in_a_preallocated_cache(subject, story):
    goes_on_after_refusal(subject, story)


@requirement(spec.KV_19, story=bad_shapes(chunks=beside_buffers), share=0.4)
def test_a_chunk_that_is_refused_does_not_let_the_cache_grow(subject, story):
    goes_on_after_refusal(subject, story)


@requirement(spec.KV_19, story=bad_dtypes(), share=0.3)
def test_a_dtype_that_is_refused_changes_nothing(subject, story):
    goes_on_after_refusal(subject, story)


@requirement(spec.KV_19, story=bad_dtypes(again=True), share=0.08)
def test_a_dtype_that_is_tried_again_and_again_changes_nothing(subject, story):
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


@requirement(spec.SKV_19, story=bad_dtypes(static=True, again=True), share=0.06)
def test_a_dtype_that_is_tried_again_and_again_changes_nothing_in_a_preallocated_cache(subject, story):
    goes_on_after_refusal(subject, story)


@requirement(spec.KV_19, story=refused_in_turns(kinds=CHUNK_LAST, rewinding=[True]), share=0.05)
def test_a_chunk_that_is_refused_behind_other_refusals_changes_nothing(subject, story):
    goes_on_after_refusal(subject, story)


@requirement(spec.SKV_19, story=refused_in_turns(kinds=CHUNK_LAST, static=True, rewinding=[True]), share=0.05)
def test_a_chunk_that_is_refused_behind_other_refusals_changes_nothing_in_a_preallocated_cache(subject, story):
    goes_on_after_refusal(subject, story)


@requirement(spec.KV_19, story=refused_in_turns(kinds=CHUNK_FIRST, rewinding=[True]), share=0.05)
def test_a_chunk_and_a_rewind_that_are_refused_after_each_other_change_nothing(subject, story):
    goes_on_after_refusal(subject, story)


@requirement(spec.SKV_15, story=refused_in_turns(kinds=REWIND_LAST, static=True, rewinding=[True]), share=0.05)
def test_a_rewind_that_is_refused_behind_a_chunk_without_room_changes_nothing(subject, story):
    goes_on_after_refusal(subject, story)


# a state that is restored behind a refusal


@requirement(spec.KV_19, story=restored_once_refused(kind="heads"), share=0.05)
def test_a_state_is_restored_behind_a_refused_chunk(subject, story):
    goes_on_after_refusal(subject, story)


@requirement(spec.SKV_19, story=restored_once_refused(kind="heads", static=True), share=0.05)
def test_a_state_is_restored_behind_a_refused_chunk_in_a_preallocated_cache(subject, story):
    goes_on_after_refusal(subject, story)


@requirement(spec.KV_15, story=restored_once_refused(kind="rewind", rewinding=[True]), share=0.05)
def test_a_state_is_restored_behind_a_refused_rewind(subject, story):
    goes_on_after_refusal(subject, story)


@requirement(spec.SKV_15, story=restored_once_refused(kind="rewind", static=True, rewinding=[True]), share=0.05)
def test_a_state_is_restored_behind_a_refused_rewind_in_a_preallocated_cache(subject, story):
    goes_on_after_refusal(subject, story)


@requirement(spec.SKV_27, story=restored_once_refused(kind="room", static=True), share=0.05)
def test_a_state_is_restored_behind_a_chunk_that_does_not_fit(subject, story):
    goes_on_after_refusal(subject, story)


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


@requirement(spec.SKV_26, story=overfull_once_restored(), share=0.05)
def test_more_than_max_len_tokens_are_refused_behind_the_state_of_a_larger_cache(subject, story):
    refuses_step(subject, story)


@requirement(spec.SKV_27, story=overfull(), share=0.5)
def test_a_chunk_that_does_not_fit_changes_nothing(subject, story):
    goes_on_after_refusal(subject, story)


@requirement(spec.SKV_27, story=overfull(again=True), share=0.25)
def test_a_chunk_that_is_tried_again_and_again_changes_nothing(subject, story):
    goes_on_after_refusal(subject, story)


@requirement(spec.SKV_27, story=refused_in_turns(kinds=ROOM_LAST, static=True, rewinding=[True]), share=0.05)
def test_a_chunk_that_does_not_fit_behind_a_rewind_that_is_refused_changes_nothing(subject, story):
    goes_on_after_refusal(subject, story)


@requirement(spec.SKV_28, story=too_long_states(), share=0.1)
def test_a_state_of_more_than_max_len_tokens_is_refused(subject, story):
    refuses_step(subject, story)


@requirement(spec.SKV_29, story=too_long_states(), share=0.2)
def test_a_state_that_is_refused_changes_nothing(subject, story):
    goes_on_after_refusal(subject, story)


@requirement(spec.SKV_29, story=too_long_states(again=True), share=0.06)
def test_a_state_that_is_tried_again_and_again_changes_nothing(subject, story):
    goes_on_after_refusal(subject, story)
