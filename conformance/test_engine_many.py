"""Does a serving engine keep the contract when more than eight requests are in a step, or one has dozens of pages or guesses?"""

from inferspec.conformance.inputs.engine_drafts import dozens_of_guesses
from inferspec.conformance.inputs.engine_many import (
    budgets_of_many,
    failing_houses,
    guessed_far,
    guessing_houses,
    houses,
    houses_in_short_pools,
    leaving_houses,
    long_conversations,
    many_pages_recycled,
    stopping_houses,
    unhurried_houses,
)
from inferspec.conformance.inputs.engine_script import PLAIN
from inferspec.conformance.properties.engine import (
    gives_right_guesses_together,
    is_batch_invariant,
    keeps_its_budget,
)
from inferspec.conformance.suite import requirement
from inferspec.spec import engine as spec

# many requests


@requirement(spec.ENG_05, call=houses_in_short_pools(), share=0.04)
def test_many_may_be_preempted_in_one_step(subject, call):
    subject.agrees(call)


@requirement(spec.ENG_14, call=stopping_houses(), share=0.04, shrinks=False)
def test_an_end_of_sequence_id_ends_each_of_many(subject, call):
    subject.agrees(call)


@requirement(spec.ENG_23, call=leaving_houses(seen=("outputs", "ends")), share=0.04)
def test_cancelling_some_of_many_does_not_show_elsewhere(subject, call):
    subject.agrees(call)


@requirement(spec.ENG_24, call=leaving_houses(seen=("pages", "ends")), share=0.06)
def test_each_of_many_gives_its_pages_back_when_it_is_cancelled(subject, call):
    subject.agrees(call)


@requirement(spec.ENG_25, call=failing_houses(), share=0.04)
def test_after_a_failed_step_of_many_nothing_is_lost(subject, call):
    subject.agrees(call)


@requirement(spec.ENG_36, call=houses(seen=("outputs", "latest"), logits=["told"], **PLAIN), share=0.04, shrinks=False)
def test_logits_of_each_of_many_are_its_own(subject, call):
    subject.agrees(call)


@requirement(spec.ENG_37, call=unhurried_houses(), share=0.04)
def test_logits_of_each_of_many_are_those_of_it_alone_to_the_last_bit(subject, call):
    is_batch_invariant(subject, call)


@requirement(spec.ENG_42, call=budgets_of_many(chunk_limits=[True]), share=0.04, shrinks=False)
def test_a_step_computes_no_more_of_many_prompts_than_it_may(subject, call):
    keeps_its_budget(subject, call)


# many pages, and ids


@requirement(spec.ENG_08, call=many_pages_recycled(), share=0.04)
def test_dozens_of_pages_may_be_taken_in_one_step(subject, call):
    subject.agrees(call)


@requirement(spec.ENG_09, call=long_conversations(), share=0.03)
def test_a_prompt_may_go_on_from_dozens_of_ids(subject, call):
    subject.agrees(call)


# many guesses


@requirement(spec.ENG_10, call=guessing_houses(drafts=["near", "other"]), share=0.04, shrinks=False)
def test_wrong_guesses_for_many_do_not_show(subject, call):
    subject.agrees(call)


@requirement(spec.ENG_11, call=guessing_houses(drafts=["perfect"]), share=0.04, shrinks=False)
def test_right_guesses_for_many_do_not_show(subject, call):
    subject.agrees(call)


@requirement(spec.ENG_11, call=dozens_of_guesses(drafts=["perfect"]), share=0.04)
def test_dozens_of_right_guesses_do_not_show(subject, call):
    subject.agrees(call)


@requirement(spec.ENG_41, call=guessed_far(), share=0.03)
def test_dozens_of_right_guesses_come_out_together(subject, call):
    gives_right_guesses_together(subject, call)
