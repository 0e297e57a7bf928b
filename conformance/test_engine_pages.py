"""Does a serving engine keep the contract in where the tokens of requests lie: in pages, and prefixes that
requests share?"""

from inferspec.conformance.inputs.engine import (
    crowds,
    lone,
    masses,
    recycled,
    short_pools,
    tight,
)
from inferspec.conformance.inputs.engine_prefixes import (
    alike_in_print,
    asked_again_and_again,
    asked_twice,
    asked_twice_beside_another,
    asked_twice_in_taken_pages,
    asked_twice_meanwhile,
    computed_again_in_chunks,
    conversation,
    conversations,
    conversations_past_ends,
    copies_taken,
    far_beginnings,
    going_on,
    guessed_outputs,
    half_computed,
    interrupted,
    lookalikes,
    other_beginnings,
    other_orders,
    same_again,
    sharing,
    twins_in_short_pools,
    wide_vocabularies,
)
from inferspec.conformance.inputs.engine_script import GUESSING, PAGES, PLAIN
from inferspec.conformance.judging.trial import Nonconformance
from inferspec.conformance.properties.common import claimed
from inferspec.conformance.properties.engine import (
    computes_what_is_new,
    is_computed_again,
    is_computed_once,
    steps_to_the_first_id,
)
from inferspec.conformance.suite import requirement
from inferspec.spec import engine as spec

# prefixes


@requirement(spec.ENG_06, call=sharing(prefix_caching=[True], **PLAIN), share=0.25)
def test_prompts_that_begin_alike_come_out_as_alone(subject, call):
    subject.agrees(call)


@requirement(spec.ENG_06, call=lookalikes(page_sizes=[1, 2, 3, 8], **PLAIN), share=1.0)
def test_pages_behind_other_tokens_are_not_taken_for_the_same(subject, call):
    subject.agrees(call)


@requirement(spec.ENG_06, call=other_beginnings(), share=0.2)
def test_pages_far_behind_other_tokens_are_not_taken_for_the_same(subject, call):
    subject.agrees(call)


@requirement(spec.ENG_06, call=other_beginnings(page_sizes=[32]), share=0.15)
def test_large_pages_far_behind_other_tokens_are_not_taken_for_the_same(subject, call):
    subject.agrees(call)


@requirement(spec.ENG_06, call=other_orders(), share=0.04)
def test_pages_behind_others_in_another_order_are_not_taken_for_the_same(subject, call):
    subject.agrees(call)


@requirement(spec.ENG_06, call=far_beginnings(), share=0.04)
def test_dozens_of_pages_behind_other_tokens_are_not_taken_for_the_same(subject, call):
    subject.agrees(call)


@requirement(spec.ENG_06, call=wide_vocabularies(), share=0.04)
def test_ids_that_are_alike_in_their_low_bits_are_not_taken_for_the_same(subject, call):
    subject.agrees(call)


@requirement(spec.ENG_06, call=alike_in_print(), share=0.2)
def test_ids_that_are_alike_in_print_are_not_taken_for_the_same(subject, call):
    subject.agrees(call)


@requirement(spec.ENG_06, call=half_computed(**PLAIN), share=0.25)
def test_what_is_not_computed_yet_is_not_hit(subject, call):
    subject.agrees(call)


@requirement(spec.ENG_06, call=computed_again_in_chunks(), share=0.05)
def test_what_is_yet_to_be_computed_again_is_not_hit(subject, call):
    subject.agrees(call)


@requirement(spec.ENG_07, call=same_again(prefix_caching=[True]), share=0.5)
def test_the_same_prompt_comes_out_as_before(subject, call):
    subject.agrees(call)


@requirement(spec.ENG_07, call=twins_in_short_pools(), share=0.1)
def test_a_preempted_request_may_find_all_that_it_had(subject, call):
    subject.agrees(call)


@requirement(spec.ENG_08, call=recycled(prefix_caching=[True], **PLAIN), share=0.2)
def test_a_prompt_whose_pages_were_taken_comes_out_as_before(subject, call):
    subject.agrees(call)


@requirement(spec.ENG_08, call=short_pools(prefix_caching=[True], page_sizes=[1, 2, 3], **PLAIN), share=0.2)
def test_hits_in_a_short_pool_are_right(subject, call):
    subject.agrees(call)


@requirement(spec.ENG_08, call=copies_taken(), share=0.1)
def test_what_two_computed_is_hit_rightly_when_the_pages_of_one_were_taken(subject, call):
    subject.agrees(call)


@requirement(spec.ENG_09, call=conversations(prefix_caching=[True]), share=0.2)
def test_a_prompt_may_go_on_from_an_output(subject, call):
    subject.agrees(call)


@requirement(spec.ENG_09, call=guessed_outputs(), share=0.12)
def test_a_prompt_may_go_on_otherwise_than_an_output(subject, call):
    subject.agrees(call)


@requirement(spec.ENG_09, call=interrupted(), share=0.15)
def test_a_prompt_may_go_on_from_an_output_that_was_cancelled(subject, call):
    subject.agrees(call)


@requirement(spec.ENG_09, call=conversations_past_ends(), share=0.06)
def test_a_prompt_may_go_on_from_the_id_that_ended_an_output(subject, call):
    subject.agrees(call)


# pages


@requirement(spec.ENG_21, call=crowds(**PAGES), share=0.2)
def test_all_pages_come_back(subject, call):
    subject.agrees(call)


@requirement(spec.ENG_21, call=masses(prefix_caching=[True], **PAGES), share=0.01)
def test_pages_that_hundreds_share_come_back(subject, call):
    subject.agrees(call)


@requirement(spec.ENG_21, call=sharing(**PAGES), share=0.2)
def test_shared_pages_come_back(subject, call):
    subject.agrees(call)


@requirement(spec.ENG_21, call=asked_again_and_again(), share=0.08)
def test_pages_that_are_hit_again_and_again_come_back(subject, call):
    subject.agrees(call)


@requirement(spec.ENG_21, call=short_pools(**PAGES), share=0.3)
def test_pages_of_a_short_pool_come_back(subject, call):
    subject.agrees(call)


@requirement(spec.ENG_46, call=lone(seen=("outputs", "filled"), pages=["told"], **PLAIN), share=0.05)
def test_pages_that_a_request_fills_are_not_free(subject, call):
    subject.agrees(call)


@requirement(spec.ENG_31, call=tight(), share=0.2)
def test_a_request_may_fill_all_pages(subject, call):
    subject.agrees(call)


# what is computed again


@requirement(spec.ENG_38, call=asked_twice(chunk_limits=[True]), share=0.08)
def test_a_prompt_that_was_computed_is_not_computed_again(subject, call):
    is_computed_once(subject, call)


@requirement(spec.ENG_38, call=asked_twice_meanwhile(chunk_limits=[True]), share=0.05)
def test_a_prompt_that_was_computed_is_not_computed_again_while_it_is_served(subject, call):
    is_computed_once(subject, call)


@requirement(spec.ENG_38, call=asked_twice_in_taken_pages(chunk_limits=[True]), share=0.05)
def test_a_prompt_that_was_computed_in_pages_of_others_is_not_computed_again(subject, call):
    is_computed_once(subject, call)


@requirement(spec.ENG_53, call=going_on(chunk_limits=[True]), share=0.15)
def test_what_the_last_step_computed_is_not_computed_again(subject, call):
    goes_on_sooner(subject, call)


@requirement(spec.ENG_53, call=going_on(**GUESSING, chunk_limits=[True]), share=0.2)
def test_what_was_computed_beside_guesses_is_not_computed_again(subject, call):
    goes_on_sooner(subject, call)


@requirement(spec.ENG_55, call=conversation(chunk_limits=[True]), share=0.1)
def test_of_a_conversation_only_what_is_new_is_computed(subject, call):
    computes_what_is_new(subject, call)


@requirement(spec.ENG_55, call=conversation(drafts=["perfect"], page_sizes=[1, 2], chunk_limits=[True]), share=0.06)
def test_of_what_was_guessed_rightly_only_what_is_new_is_computed(subject, call):
    computes_what_is_new(subject, call)


@requirement(spec.ENG_47, call=asked_twice(prefix_caching=[False]), share=0.05)
def test_without_prefix_caching_a_prompt_is_computed_again(subject, call):
    is_computed_again(subject, call)


@requirement(spec.ENG_35, call=asked_twice_beside_another(), share=0.05)
def test_a_prompt_is_computed_again_though_another_engine_caches_prefixes(subject, call):
    claimed(subject, "prefix_caching", True, [True])
    is_computed_again(subject, call)


def goes_on_sooner(subject, call):
    alone, _, again = steps_to_the_first_id(subject, call)
    if not again < alone:
        raise Nonconformance(
            f"the first id of a prompt came after {alone} steps, and of one that goes on from what was computed after {again}",
            call,
        )
