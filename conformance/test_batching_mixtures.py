"""Does the cache of a batch keep the contract where many slots or large heads, idle slots, slots that change hands, long requests,
chunks and views come together?"""

from inferspec.conformance.inputs.batching_mixtures import served
from inferspec.conformance.properties.caches import keeps_dtype
from inferspec.conformance.properties.common import keeps_arguments
from inferspec.conformance.suite import requirement
from inferspec.spec import batching as spec


@requirement(spec.BATCH_04, call=served(), share=0.2)
def test_idle_slots_of_any_batch_see_nothing(subject, call):
    subject.agrees(call)


@requirement(spec.BATCH_05, call=served(poisoned=True), share=0.3)
def test_padding_of_any_batch_is_finite(subject, call):
    subject.agrees(call)


@requirement(spec.BATCH_06, call=served(), share=0.2)
def test_a_slot_of_any_batch_used_again_shows_nothing_of_the_request_before(subject, call):
    subject.agrees(call)


@requirement(spec.BATCH_12, call=served(), share=0.25)
def test_keys_and_values_of_any_batch_keep_their_dtype(subject, call):
    keeps_dtype(subject, call, "keys", "values")


@requirement(spec.BATCH_13, call=served(queries=True), share=0.25)
def test_the_mask_of_any_batch_is_one_that_attention_takes(subject, call):
    keeps_dtype(subject, call, "mask")


@requirement(spec.BATCH_14, call=served(views=True), share=0.3)
def test_strided_tokens_of_any_batch_are_cached_like_their_copies(subject, call):
    subject.agrees(call)


@requirement(spec.BATCH_15, call=served(), share=0.15)
def test_an_update_of_any_batch_changes_no_argument(subject, call):
    keeps_arguments(subject, call)


@requirement(spec.BATCH_16, call=served(overwriting=True), share=0.1)
def test_the_caller_of_any_batch_may_use_its_arrays_again(subject, call):
    subject.agrees(call)


@requirement(spec.BATCH_19, call=served(queries=True), share=0.2)
def test_there_may_be_fewer_queries_than_new_tokens_or_more_in_any_batch(subject, call):
    subject.agrees(call)


@requirement(spec.BATCH_32, call=served(stale=True), share=0.2)
def test_rewound_tokens_of_requests_that_join_any_batch_never_show(subject, call):
    subject.agrees(call)
