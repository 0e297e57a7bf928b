"""Does a serving engine keep the contract where a draft guesses for it?"""

from inferspec.conformance.inputs.engine import (
    crowds,
    short_pools,
)
from inferspec.conformance.inputs.engine_drafts import (
    dozens_of_guesses,
    guessed_after_failures,
    guessed_again,
    guessed_beside,
    guessed_in_part,
    guessed_right,
    guessed_when_resumed,
    guesses_asked_for,
    guessing_beside_long_prompts,
    rounds,
    short_drafts,
)
from inferspec.conformance.inputs.engine_prefixes import (
    sharing,
)
from inferspec.conformance.inputs.engine_script import GUESSING
from inferspec.conformance.judging.trial import Nonconformance
from inferspec.conformance.properties.engine import (
    gives_right_guesses_together,
    guesses_after_failures,
    guesses_once_resumed,
    without_what_is_refused,
)
from inferspec.conformance.suite import requirement
from inferspec.spec import engine as spec

# what comes out


@requirement(spec.ENG_10, call=guesses_asked_for(), share=0.2)
def test_a_prompt_may_go_on_from_wrong_guesses(subject, call):
    subject.agrees(call)


@requirement(spec.ENG_10, call=dozens_of_guesses(), share=0.02)
def test_dozens_of_wrong_guesses_do_not_show(subject, call):
    subject.agrees(call)


@requirement(spec.ENG_10, call=crowds(drafts=["near", "other"]), share=0.2)
def test_wrong_guesses_do_not_show(subject, call):
    subject.agrees(call)


@requirement(spec.ENG_10, call=short_pools(**GUESSING), share=0.3)
def test_guesses_in_a_short_pool_do_not_show(subject, call):
    subject.agrees(call)


@requirement(spec.ENG_10, call=sharing(**GUESSING), share=0.4)
def test_guesses_after_hits_do_not_show(subject, call):
    subject.agrees(call)


@requirement(spec.ENG_10, call=guessing_beside_long_prompts(), share=0.04)
def test_guesses_beside_long_prompts_do_not_show(subject, call):
    subject.agrees(call)


@requirement(spec.ENG_11, call=crowds(drafts=["perfect"]), share=0.15)
def test_right_guesses_do_not_show(subject, call):
    subject.agrees(call)


@requirement(spec.ENG_48, story=short_drafts(), share=0.1)
def test_a_draft_of_fewer_positions_does_not_show(subject, story):
    subject.agrees(without_what_is_refused(subject, *story))


# in how few steps


@requirement(spec.ENG_41, call=guessed_right(), share=0.12)
def test_right_guesses_come_out_together(subject, call):
    gives_right_guesses_together(subject, call)


@requirement(spec.ENG_41, call=guessed_beside(), share=0.12)
def test_right_guesses_come_out_together_beside_others(subject, call):
    gives_right_guesses_together(subject, call)


@requirement(spec.ENG_41, call=guessed_again(), share=0.08)
def test_right_guesses_come_out_together_after_a_hit(subject, call):
    gives_right_guesses_together(subject, call)


@requirement(spec.ENG_41, call=guessed_when_resumed(), share=0.04)
def test_right_guesses_come_out_together_once_a_request_runs_again(subject, call):
    guesses_once_resumed(subject, call)


@requirement(spec.ENG_41, call=guessed_after_failures(), share=0.12)
def test_right_guesses_come_out_together_after_a_failed_step(subject, call):
    guesses_after_failures(subject, call)


@requirement(spec.ENG_44, call=guessed_in_part(), share=0.12)
def test_right_guesses_before_a_wrong_one_come_out(subject, call):
    a, given = call.arguments, call.arguments["steps"][0][1]
    steps = int(subject.parts(call)["1 steps with ids"])
    enough = rounds(a["model"], a["draft"], given["tokens"], given["max_tokens"], a["num_draft_tokens"])
    if steps > enough:
        raise Nonconformance(
            f"{given['max_tokens']} ids come in {steps} steps; right guesses make {enough} enough", call
        )
