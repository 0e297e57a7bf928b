"""Does speculative decoding keep its caches as the contract says?"""

from inferspec.conformance.inputs.drafting import (
    APART,
    SAMPLED,
    generate_calls,
    of_several_rounds,
    of_unlike_depths,
    sampled_calls,
)
from inferspec.conformance.inputs.generation import CHUNKS, ENOUGH, LARGE, ODD_CHUNKS
from inferspec.conformance.judging.trial import Nonconformance
from inferspec.conformance.properties.common import listed
from inferspec.conformance.properties.speculative import (
    gives_the_ids_and_sees_the_text,
    holds_the_text,
    sees_the_text_and_its_drafts,
)
from inferspec.conformance.suite import requirement
from inferspec.spec import speculative_sentences as spec


@requirement(spec.SPEC_28, call=of_several_rounds(drafters=APART, seen=("ids", "strays")))
def test_the_target_holds_what_came_out_and_nothing_else(subject, call):
    holds_the_text(subject, call)


@requirement(spec.SPEC_28, call=of_unlike_depths(drafters=APART, stops=[0], seen=("strays",)), share=0.15)
def test_a_target_deeper_than_its_draft_holds_what_came_out_and_nothing_else(subject, call):
    holds_the_text(subject, call)


@requirement(spec.SPEC_29, call=of_unlike_depths(drafters=APART, stops=[0], seen=("strays",)), share=0.15)
def test_a_draft_deeper_than_its_target_sees_what_came_out_and_its_own_drafts(subject, call):
    sees_the_text_and_its_drafts(subject, call)


@requirement(spec.SPEC_29, call=of_several_rounds(drafters=APART, seen=("ids", "strays")))
def test_the_draft_sees_what_came_out_and_its_own_drafts(subject, call):
    sees_the_text_and_its_drafts(subject, call)


@requirement(
    spec.SPEC_29,
    call=generate_calls(drafters=APART, lengths=CHUNKS, limits=(6, 3), vocabularies=ENOUGH, seen=("ids", "strays")),
    share=0.3,
)
def test_the_draft_sees_long_prompts_whole(subject, call):
    sees_the_text_and_its_drafts(subject, call)


@requirement(
    spec.SPEC_29,
    call=sampled_calls(drafters=APART, vocabularies=(97,), limits=(9, 12), free=True, **SAMPLED, seen=("strays",)),
    share=0.5,
)
def test_models_see_what_was_drawn_and_nothing_else(subject, call):
    strays = subject.parts(call)["strays"]
    if strays.any():
        raise Nonconformance(f"calls that see other tokens than those drawn and drafted: {listed(strays)}", call)


@requirement(
    spec.SPEC_54, call=of_several_rounds(drafters=["near", "far"], drafts=(4, 3, 5, 7), seen=("again",)), share=0.3
)
def test_right_drafts_before_a_wrong_one_are_not_verified_again(subject, call):
    takes_no_right_drafts_back(subject, call)


@requirement(
    spec.SPEC_54,
    call=sampled_calls(
        drafters=["near", "far"], limits=(9, 5), drafts=(4, 3, 6), free=True, **SAMPLED, seen=("again",)
    ),
    share=0.2,
)
def test_right_drafts_that_are_drawn_are_not_verified_again(subject, call):
    takes_no_right_drafts_back(subject, call)


@requirement(spec.SPEC_30, call=of_several_rounds(drafters=["same", "itself"], seen=("rejected", "ids")))
def test_a_perfect_draft_is_never_rejected(subject, call):
    subject.agrees(call)


@requirement(
    spec.SPEC_30,
    call=of_several_rounds(rival=0.0, drafters=["same", "itself"], seen=("rejected",)),
    share=0.2,
)
def test_a_perfect_draft_is_not_rejected_where_logits_are_equal(subject, call):
    subject.agrees(call)


@requirement(
    spec.SPEC_30,
    call=of_several_rounds(rival="near", drafters=["same", "itself"], seen=("rejected",)),
    share=0.2,
)
def test_a_perfect_draft_is_not_rejected_where_the_last_bits_of_logits_decide(subject, call):
    subject.agrees(call)


@requirement(spec.SPEC_31, call=generate_calls(rival=0.0, drafts=(3, 1, 4)))
def test_of_equal_logits_the_lowest_id_is_taken(subject, call):
    subject.agrees(call)


@requirement(spec.SPEC_31, call=generate_calls(rival=0.0, drafts=(3, 1, 4), drafters=["other"]), share=0.08)
def test_of_equal_logits_the_lowest_id_is_taken_where_another_is_drafted(subject, call):
    # The draft is one that has the other of the two before it.
    subject.agrees(call.having(draft={**call.arguments["target"], "rival": -1.0}))


@requirement(spec.SPEC_31, call=generate_calls(rival="near", drafts=(3, 1, 4)))
def test_the_last_bits_of_logits_decide(subject, call):
    subject.agrees(call)


@requirement(
    spec.SPEC_31,
    call=generate_calls(rival=0.0, vocabularies=LARGE[1:], lengths=(3, 1), limits=(4, 3), drafts=(2, 3)),
    share=0.1,
)
def test_of_equal_logits_of_a_large_vocabulary_the_lowest_id_is_taken(subject, call):
    subject.agrees(call)


@requirement(
    spec.SPEC_31,
    call=generate_calls(rival="near", vocabularies=LARGE[1:], lengths=(3, 1), limits=(4, 3), drafts=(2, 3)),
    share=0.1,
)
def test_the_last_bits_of_logits_of_a_large_vocabulary_decide(subject, call):
    subject.agrees(call)


@requirement(spec.SPEC_32, call=generate_calls(lengths=CHUNKS, limits=(5, 3), vocabularies=ENOUGH), share=0.4)
def test_prompts_beside_the_sizes_of_pieces_are_right(subject, call):
    subject.agrees(call)


@requirement(
    spec.SPEC_32,
    call=generate_calls(drafters=APART, lengths=ODD_CHUNKS, limits=(5, 3), vocabularies=ENOUGH, seen=("ids", "strays")),
    share=0.6,
)
def test_prompts_beside_pieces_that_are_no_powers_of_two_are_seen_whole(subject, call):
    gives_the_ids_and_sees_the_text(subject, call)


@requirement(
    spec.SPEC_32,
    # Who drafts for itself, and otherwise than it draws, has its drafts among what the target sees.
    call=sampled_calls(
        drafters=APART, lengths=CHUNKS, limits=(5, 3), vocabularies=(97,), free=True, **SAMPLED, seen=("strays",)
    ),
    share=0.3,
)
def test_long_prompts_are_seen_whole_above_temperature_0(subject, call):
    strays = subject.parts(call)["strays"]
    if strays.any():
        raise Nonconformance(
            f"{int(strays.sum())} calls of the models see other tokens than the prompt and what came", call
        )


@requirement(
    spec.SPEC_32,
    call=generate_calls(
        drafters=["wrong", "far"],
        lengths=(2048, 2047),
        limits=(4, 3),
        drafts=(2,),
        vocabularies=(97,),
        seen=("ids", "strays"),
    ),
    share=0.03,
)
def test_wrong_drafts_behind_thousands_of_tokens_are_taken_back(subject, call):
    gives_the_ids_and_sees_the_text(subject, call)


@requirement(spec.SPEC_32, call=generate_calls(lengths=(1, 2)), share=0.5)
def test_the_shortest_prompts_are_right(subject, call):
    subject.agrees(call)


@requirement(
    spec.SPEC_33, call=generate_calls(vocabularies=LARGE, lengths=(3, 1), limits=(4, 3), drafts=(2, 3)), share=0.25
)
def test_large_ids_come_out_as_they_are(subject, call):
    subject.agrees(call)


def takes_no_right_drafts_back(subject, call):
    """No call of the target lacks what its cache had right before."""
    again = int(subject.parts(call)["again"][0])
    # The last of them may be fed anew, for the logits after it.
    if again > 1:
        raise Nonconformance(f"{again} right tokens are fed to the target again at once", call)
