"""Does a key/value cache keep the contract where sizes, growth, rewinds, states, views and many appends come together? Every
sentence is asked of both kinds."""

from typing import Any

from inferspec.conformance.inputs.kv_cache import layers, overwritten
from inferspec.conformance.inputs.kv_cache_mixtures import (
    LARGE,
    long_lived,
    mixtures,
    rewound_below_a_state,
    successors,
)
from inferspec.conformance.inputs.kv_cache_refusals import bad_shapes
from inferspec.conformance.inputs.kv_cache_script import prompts, whole_buffers
from inferspec.conformance.properties.caches import keeps_dtype
from inferspec.conformance.properties.common import goes_on_after_refusal, keeps_arguments
from inferspec.conformance.suite import requirement
from inferspec.spec import kv_cache as spec

LONG: dict[str, Any] = {"rewinding": [True], "restoring": [False]}
BOTH: dict[str, Any] = {"rewinding": [True], "restoring": [True]}
JUST_REWOUND: dict[str, Any] = {"rewound": True, **BOTH}


@requirement(spec.KV_02, call=mixtures(sizes=LARGE), share=0.5)
def test_prompts_and_tokens_of_any_size_are_cached(subject, call):
    subject.agrees(call)


@requirement(spec.SKV_02, call=mixtures(static=True, sizes=LARGE), share=0.3)
def test_prompts_and_tokens_of_any_size_are_cached_in_a_preallocated_cache(subject, call):
    subject.agrees(call)


@requirement(spec.KV_06, call=mixtures(sizes=LARGE), share=0.3)
def test_tokens_of_any_size_keep_their_dtype(subject, call):
    keeps_dtype(subject, call)


@requirement(spec.SKV_06, call=mixtures(static=True, sizes=LARGE), share=0.3)
def test_tokens_of_any_size_keep_their_dtype_in_a_preallocated_cache(subject, call):
    keeps_dtype(subject, call)


@requirement(spec.KV_07, call=mixtures(views=True), share=0.5)
def test_strided_chunks_are_cached_like_their_copies_after_any_past(subject, call):
    subject.agrees(call)


@requirement(spec.SKV_07, call=mixtures(static=True, views=True), share=0.5)
def test_strided_chunks_are_cached_like_their_copies_after_any_past_in_a_preallocated_cache(subject, call):
    subject.agrees(call)


@requirement(spec.KV_08, call=mixtures(), share=0.1)
def test_an_append_of_any_size_changes_no_argument(subject, call):
    keeps_arguments(subject, call)


@requirement(spec.SKV_08, call=mixtures(static=True), share=0.1)
def test_an_append_of_any_size_changes_no_argument_in_a_preallocated_cache(subject, call):
    keeps_arguments(subject, call)


@requirement(spec.KV_09, call=mixtures(overwriting=True), share=0.1)
def test_the_caller_may_use_the_arrays_of_any_size_again(subject, call):
    subject.agrees(call)


@requirement(spec.SKV_09, call=mixtures(static=True, overwriting=True), share=0.1)
def test_the_caller_may_use_the_arrays_of_any_size_again_in_a_preallocated_cache(subject, call):
    subject.agrees(call)


@requirement(spec.KV_09, call=overwritten(chunks=whole_buffers), share=0.1)
def test_the_caller_may_use_the_arrays_of_a_prompt_that_fills_a_buffer_again(subject, call):
    subject.agrees(call)


@requirement(spec.SKV_09, call=overwritten(static=True, chunks=whole_buffers), share=0.1)
def test_the_caller_may_use_the_arrays_of_a_prompt_that_fills_a_buffer_again_in_a_preallocated_cache(subject, call):
    subject.agrees(call)


@requirement(spec.KV_12, call=mixtures(sizes=LARGE, rewinding=[True]), share=0.3)
def test_rewound_tokens_of_any_size_never_show_again(subject, call):
    subject.agrees(call)


@requirement(spec.SKV_12, call=mixtures(static=True, sizes=LARGE, rewinding=[True]), share=0.3)
def test_rewound_tokens_of_any_size_never_show_again_in_a_preallocated_cache(subject, call):
    subject.agrees(call)


@requirement(spec.KV_12, call=long_lived(**LONG), share=0.1)
def test_a_rewind_drops_dozens_of_appends(subject, call):
    subject.agrees(call)


@requirement(spec.SKV_12, call=long_lived(static=True, **LONG), share=0.1)
def test_a_rewind_drops_dozens_of_appends_in_a_preallocated_cache(subject, call):
    subject.agrees(call)


@requirement(spec.KV_12, call=mixtures(in_use=True, **JUST_REWOUND), share=0.1)
def test_a_cache_that_is_saved_right_after_a_rewind_goes_on(subject, call):
    subject.agrees(call)


@requirement(spec.SKV_12, call=mixtures(static=True, in_use=True, **JUST_REWOUND), share=0.1)
def test_a_preallocated_cache_that_is_saved_right_after_a_rewind_goes_on(subject, call):
    subject.agrees(call)


@requirement(spec.KV_12, call=rewound_below_a_state(**BOTH), share=0.1)
def test_a_rewind_goes_below_what_was_restored(subject, call):
    subject.agrees(call)


@requirement(spec.SKV_12, call=rewound_below_a_state(static=True, **BOTH), share=0.1)
def test_a_rewind_goes_below_what_was_restored_in_a_preallocated_cache(subject, call):
    subject.agrees(call)


@requirement(spec.KV_13, call=long_lived(whole=True, **LONG), share=0.1)
def test_a_rewind_drops_all_of_dozens_of_appends(subject, call):
    subject.agrees(call)


@requirement(spec.SKV_13, call=long_lived(static=True, whole=True, **LONG), share=0.1)
def test_a_rewind_drops_all_of_dozens_of_appends_in_a_preallocated_cache(subject, call):
    subject.agrees(call)


@requirement(spec.KV_19, story=bad_shapes(then=1), share=0.1)
def test_a_token_that_comes_after_a_refused_chunk_takes_its_place(subject, story):
    goes_on_after_refusal(subject, story)


@requirement(spec.SKV_19, story=bad_shapes(static=True, then=1), share=0.1)
def test_a_token_that_comes_after_a_refused_chunk_takes_its_place_in_a_preallocated_cache(subject, story):
    goes_on_after_refusal(subject, story)


@requirement(spec.KV_20, call=mixtures(sizes=LARGE, restoring=[True]), share=0.3)
def test_what_a_state_of_any_size_holds_goes_on(subject, call):
    subject.agrees(call)


@requirement(spec.SKV_20, call=mixtures(static=True, sizes=LARGE, restoring=[True]), share=0.3)
def test_what_a_state_of_any_size_holds_goes_on_in_a_preallocated_cache(subject, call):
    subject.agrees(call)


@requirement(spec.KV_20, call=long_lived(restoring=[True]), share=0.1)
def test_a_state_of_dozens_of_appends_is_restored(subject, call):
    subject.agrees(call)


@requirement(spec.SKV_20, call=long_lived(static=True, restoring=[True]), share=0.1)
def test_a_state_of_dozens_of_appends_is_restored_in_a_preallocated_cache(subject, call):
    subject.agrees(call)


@requirement(spec.KV_20, call=mixtures(**JUST_REWOUND), share=0.2)
def test_a_state_that_is_taken_right_after_a_rewind_is_restored(subject, call):
    subject.agrees(call)


@requirement(spec.SKV_20, call=mixtures(static=True, **JUST_REWOUND), share=0.2)
def test_a_state_that_is_taken_right_after_a_rewind_is_restored_in_a_preallocated_cache(subject, call):
    subject.agrees(call)


@requirement(spec.KV_22, call=mixtures(sizes=LARGE, in_use=True, restoring=[True]), share=0.3)
def test_a_cache_in_use_of_any_size_becomes_what_it_restores(subject, call):
    subject.agrees(call)


@requirement(spec.SKV_22, call=mixtures(static=True, sizes=LARGE, in_use=True, restoring=[True]), share=0.3)
def test_a_preallocated_cache_in_use_of_any_size_becomes_what_it_restores(subject, call):
    subject.agrees(call)


@requirement(spec.KV_23, call=layers(chunks=prompts), share=0.1)
def test_what_a_cache_returned_of_prompts_stays_when_another_returns_as_much(subject, call):
    subject.agrees(call)


@requirement(spec.SKV_23, call=layers(static=True, chunks=prompts), share=0.1)
def test_what_a_cache_returned_of_prompts_stays_when_another_returns_as_much_in_a_preallocated_cache(subject, call):
    subject.agrees(call)


@requirement(spec.KV_23, call=successors(), share=0.2)
def test_what_a_cache_returned_before_it_grew_stays_when_another_begins(subject, call):
    subject.agrees(call)
