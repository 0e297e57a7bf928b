"""Do the states of key/value caches keep the contract, and do caches keep apart?"""

from inferspec.conformance.inputs.kv_cache import appends, layers, side_by_side
from inferspec.conformance.inputs.kv_cache_room import beside_other_sizes
from inferspec.conformance.inputs.kv_cache_script import beside_buffers
from inferspec.conformance.inputs.kv_cache_states import (
    filled_once_emptied,
    handed_on,
    of_another_dtype_once_empty,
    of_another_kind,
    of_other_sizes,
    restored,
    rolled_back,
    saved_after_dozens,
    saved_again,
    saved_between_rewinds,
    saved_once_restored,
    saved_when_full,
    shared,
    states_of_their_time,
)
from inferspec.conformance.judging.trial import Nonconformance
from inferspec.conformance.properties.common import depends_on_arguments_alone
from inferspec.conformance.suite import requirement
from inferspec.spec import kv_cache as spec


@requirement(spec.KV_20, call=restored(), share=0.7)
def test_a_restored_cache_goes_on_as_the_first(subject, call):
    subject.agrees(call)


@requirement(spec.KV_20, call=restored(chunks=beside_buffers), share=0.4)
def test_a_long_restored_cache_goes_on_as_the_first(subject, call):
    subject.agrees(call)


@requirement(spec.SKV_20, call=restored(static=True), share=0.5)
def test_a_restored_preallocated_cache_goes_on_as_the_first(subject, call):
    subject.agrees(call)


@requirement(spec.KV_20, call=handed_on(), share=0.05)
def test_a_state_that_is_handed_on_from_cache_to_cache_is_whole(subject, call):
    subject.agrees(call)


@requirement(spec.SKV_20, call=of_other_sizes(), share=0.1)
def test_the_state_of_a_cache_of_another_size_is_restored(subject, call):
    subject.agrees(call)


@requirement(spec.SKV_20, call=handed_on(static=True), share=0.05)
def test_a_state_that_is_handed_on_from_preallocated_cache_to_cache_is_whole(subject, call):
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


@requirement(spec.KV_21, call=saved_after_dozens(), share=0.05)
def test_a_state_of_dozens_of_appends_stays_what_it_was(subject, call):
    subject.agrees(call)


@requirement(spec.SKV_21, call=saved_after_dozens(static=True), share=0.05)
def test_a_state_of_dozens_of_appends_to_a_preallocated_cache_stays_what_it_was(subject, call):
    subject.agrees(call)


@requirement(spec.KV_21, call=saved_again(rewinding=[True]), share=0.2)
def test_a_state_of_a_restored_cache_is_that_of_its_time(subject, call):
    subject.agrees(call)


@requirement(spec.SKV_21, call=saved_again(static=True, rewinding=[True]), share=0.2)
def test_a_state_of_a_restored_preallocated_cache_is_that_of_its_time(subject, call):
    subject.agrees(call)


@requirement(spec.KV_21, call=saved_between_rewinds(rewinding=[True]), share=0.05)
def test_a_state_of_as_many_other_tokens_is_that_of_its_time(subject, call):
    subject.agrees(call)


@requirement(spec.SKV_21, call=saved_between_rewinds(static=True, rewinding=[True]), share=0.05)
def test_a_state_of_as_many_other_tokens_of_a_preallocated_cache_is_that_of_its_time(subject, call):
    subject.agrees(call)


@requirement(spec.KV_22, call=rolled_back(), share=0.7)
def test_a_cache_in_use_becomes_what_it_restores(subject, call):
    subject.agrees(call)


@requirement(spec.SKV_22, call=rolled_back(static=True), share=0.5)
def test_a_preallocated_cache_in_use_becomes_what_it_restores(subject, call):
    subject.agrees(call)


@requirement(spec.KV_22, call=saved_once_restored(), share=0.05)
def test_a_cache_that_restored_another_s_state_is_saved_as_that(subject, call):
    subject.agrees(call)


@requirement(spec.SKV_22, call=saved_once_restored(static=True), share=0.05)
def test_a_preallocated_cache_that_restored_another_s_state_is_saved_as_that(subject, call):
    subject.agrees(call)


@requirement(spec.SKV_22, call=filled_once_emptied(rewinding=[True], restoring=[True]), share=0.1)
def test_a_preallocated_cache_that_was_emptied_is_filled_by_a_state(subject, call):
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
