"""Does a speculative generator serve one request after the other, let go of what it holds, and read its arguments as
they come?"""

import numpy as np

from inferspec.conformance.inputs.drafting import (
    APART,
    ENDINGS,
    SAMPLED,
    generate_calls,
    of_several_rounds,
    paired_calls,
    paired_conversations,
    paired_ends,
    rounds,
    sampled_calls,
)
from inferspec.conformance.inputs.generation import ENOUGH
from inferspec.conformance.judging.trial import Nonconformance
from inferspec.conformance.properties.common import (
    depends_on_arguments_alone,
    keeps_arguments,
    listed,
    refuses,
)
from inferspec.conformance.properties.speculative import (
    failing,
    is_fed_no_further,
    is_refused_at_once,
    lets_go,
    refuses_what_cannot_be_rewound,
)
from inferspec.conformance.strategies import among, in_views
from inferspec.conformance.suite import requirement
from inferspec.spec import speculative_sentences as spec

BAD = [
    {"temperature": -1.0},
    {"temperature": 1.0, "top_p": 0.0},
    {"temperature": 1.0, "top_p": 1.5},
    {"temperature": 1.0, "top_p": float("nan")},
]


# one after the other


@requirement(spec.SPEC_37, call=of_several_rounds(seen=("ahead",), untils=(None, 1, 3), drafters=APART))
def test_ids_come_out_while_the_models_go_on(subject, call):
    ahead, room = subject.parts(call)["ahead"], 2 * call.arguments["num_draft_tokens"] + 1
    if (ahead > room).any():
        late = int(np.argmax(ahead > room))
        raise Nonconformance(f"when id {late} comes out the target is {int(ahead[late])} positions past it", call)


@requirement(
    spec.SPEC_38, call=generate_calls(seen=("reach",), stops=[0], limits=(4, 0, 1, 2, 3, 6, 9), drafters=APART)
)
def test_no_model_is_fed_past_the_limit(subject, call):
    is_fed_no_further(subject, call)


@requirement(
    spec.SPEC_38, call=generate_calls(seen=("reach", "ids"), stops=[1], stop_at=ENDINGS, drafters=["wrong"]), share=0.5
)
def test_no_call_follows_the_end_of_sequence(subject, call):
    seen = subject.parts(call)
    room = len(seen["ids"]) + call.arguments["num_draft_tokens"]
    if (seen["reach"] > room).any():
        raise Nonconformance(f"after {len(seen['ids'])} ids models are {listed(seen['reach'])} past the prompt", call)


@requirement(
    spec.SPEC_39, call=of_several_rounds(drafters=["same"], drafts=(4, 1, 2, 3, 5, 12), seen=("widths",)), share=0.5
)
def test_so_many_ids_are_drafted_as_were_asked_for(subject, call):
    drafts_what_it_may(subject, call)


@requirement(
    spec.SPEC_39,
    call=of_several_rounds(drafters=["far", "near"], drafts=(4, 3, 5, 12), limits=(40, 60), seen=("widths",)),
    share=0.06,
)
def test_so_many_ids_are_drafted_behind_a_wrong_one_too(subject, call):
    drafts_what_it_may(subject, call)


@requirement(spec.SPEC_39, call=of_several_rounds(drafters=["same"], drafts=(4,), seen=("widths",)), share=0.04)
def test_four_ids_are_drafted_where_no_number_is_said(subject, call):
    drafts_what_it_may(subject, call, "num_draft_tokens")


@requirement(
    spec.SPEC_39,
    call=of_several_rounds(drafters=["same"], drafts=(40, 24), limits=(60, 90), seen=("widths",)),
    share=0.05,
)
def test_dozens_of_ids_are_drafted_where_they_were_asked_for(subject, call):
    drafts_what_it_may(subject, call)


@requirement(
    spec.SPEC_39,
    call=generate_calls(
        drafters=["same"],
        lengths=(2048, 2047),
        limits=(9,),
        drafts=(3, 4),
        vocabularies=(97,),
        stops=[0],
        seen=("widths",),
    ),
    share=0.04,
)
def test_so_many_ids_are_drafted_behind_thousands_of_tokens(subject, call):
    drafts_what_it_may(subject, call)


@requirement(spec.SPEC_40, call=generate_calls(seen=("alive",), untils=(None, 0, 1, 2, 3), drafters=APART), share=0.2)
def test_caches_are_let_go_at_the_end(subject, call):
    lets_go(subject, call)


@requirement(
    spec.SPEC_40,
    call=generate_calls(seen=("alive",), drafters=APART, drafts=(2, 1), limits=(6, 9), stops=[0]),
    left=among([1, 0]),
    share=0.1,
)
def test_caches_are_let_go_when_the_ids_end_by_an_error(subject, call, left):
    subject.expects(failing(call, left), {"alive": np.zeros(2)})


@requirement(
    spec.SPEC_56,
    call=generate_calls(seen=("raised",), drafters=APART, drafts=(2, 1), limits=(6, 9), stops=[0]),
    left=among([0, 1]),
    error=among(["RuntimeError", "ValueError"]),
    share=0.2,
)
def test_what_the_target_raises_passes_to_the_caller(subject, call, left, error):
    subject.expects(failing(call, left, error), {"raised": np.ones(1)})


@requirement(
    spec.SPEC_61,
    call=generate_calls(seen=("raised",), drafters=APART, drafts=(2, 1), limits=(6, 9), stops=[0]),
    left=among([0, 1]),
    share=0.05,
)
def test_a_stop_iteration_of_the_target_is_no_end(subject, call, left):
    subject.expects(failing(call, left, "StopIteration"), {"raised": np.ones(1)})


@requirement(spec.SPEC_41, call=paired_calls(orders=("turns",)))
def test_two_requests_in_turn_do_not_mix(subject, call):
    subject.agrees(call)


@requirement(spec.SPEC_41, call=paired_conversations(orders=("turns",)), share=0.15)
def test_two_requests_of_long_prompts_in_turn_do_not_mix(subject, call):
    subject.agrees(call)


@requirement(spec.SPEC_41, call=paired_ends(orders=("turns",), stops=[1]), share=0.5)
def test_what_ends_one_request_does_not_end_another(subject, call):
    subject.agrees(call)


@requirement(spec.SPEC_42, call=paired_conversations(orders=("after",)), share=0.15)
def test_a_second_request_of_a_long_prompt_starts_afresh(subject, call):
    subject.agrees(call)


@requirement(spec.SPEC_42, call=paired_ends(orders=("after",), stops=[1]), share=0.5)
def test_what_ended_a_request_does_not_end_the_next(subject, call):
    subject.agrees(call)


@requirement(spec.SPEC_42, call=paired_calls(orders=("after",), untils=(None, 0, 1, 2, 3)))
def test_a_second_request_starts_afresh(subject, call):
    subject.agrees(call)


@requirement(
    spec.SPEC_42,
    call=paired_calls(orders=("after",), drafters=APART, drafts=(2, 1), limits=(6, 9)),
    left=among([1, 0]),
    share=0.15,
)
def test_a_second_request_starts_afresh_after_one_that_failed(subject, call, left):
    subject.agrees(failing(call.having(eos=(), seen=("beside",)), left))


# arguments


@requirement(spec.SPEC_43, call=generate_calls(lengths=(3, 1, 5, 16, 33), limits=(3, 1, 6)))
def test_tokens_may_be_a_list_or_an_array(subject, call):
    subject.agrees(call)


@requirement(spec.SPEC_43, call=in_views(generate_calls(prompts=["array"], lengths=(3, 1, 5, 16, 33)), "tokens"))
def test_tokens_may_be_a_strided_view(subject, call):
    subject.agrees(call)


@requirement(spec.SPEC_44, call=generate_calls(prompts=["array"]), share=0.3)
def test_the_array_of_tokens_is_not_changed(subject, call):
    keeps_arguments(subject, call)


@requirement(spec.SPEC_44, call=generate_calls(prompts=["list"], seen=("prompt",)), share=0.3)
def test_the_list_of_tokens_is_not_changed(subject, call):
    subject.agrees(call)


@requirement(spec.SPEC_57, call=generate_calls(limits=(9, 5, 12)), share=0.2)
def test_the_caller_may_change_its_tokens_once_an_id_is_out(subject, call):
    subject.agrees(call.having(overwrite="tokens"))


@requirement(
    spec.SPEC_58, call=generate_calls(stops=[1, 2, 3], stop_at=ENDINGS, limits=(12,), vocabularies=ENOUGH), share=0.2
)
def test_the_caller_may_change_its_ends_once_an_id_is_out(subject, call):
    subject.agrees(call.having(overwrite="ends"))


@requirement(spec.SPEC_45, call=generate_calls(), other=generate_calls(), share=0.5)
def test_another_request_in_between_changes_nothing(subject, call, other):
    depends_on_arguments_alone(subject, call, other)


@requirement(spec.SPEC_46, call=generate_calls(limits=(3, 2, 5), seen=("whole",)), share=0.5)
def test_generated_ids_are_python_integers(subject, call):
    subject.agrees(call)


@requirement(spec.SPEC_46, call=sampled_calls(seen=("whole",), free=True, **SAMPLED), share=0.3)
def test_drawn_ids_are_python_integers(subject, call):
    subject.agrees(call)


@requirement(
    spec.SPEC_47,
    call=generate_calls(drafters=APART, drafts=(4, 1, 2), limits=(4, 2, 9)),
    which=among(["target", "draft"]),
)
def test_caches_that_cannot_be_rewound_are_refused(subject, call, which):
    refuses_what_cannot_be_rewound(subject, call, which)


@requirement(
    spec.SPEC_48,
    call=generate_calls(
        drafters=["same", "other"], drafts=(4, 1, 2), limits=(4, 3, 9), vocabularies=(40, 97), stops=[0]
    ),
    more=among([1, -1, 20]),
)
def test_different_vocabularies_are_refused(subject, call, more):
    draft = {**call.arguments["draft"], "vocab_size": call.arguments["draft"]["vocab_size"] + more}
    seen = subject.parts(call.having(draft=draft, seen=("refused", "ids")))
    # The first id may be the target's alone, before the draft is asked.
    if not seen["refused"].all() or len(seen["ids"]) > 1:
        raise Nonconformance(
            f"a draft of {more} ids more goes on to give {listed(seen['ids'])}", call.having(draft=draft)
        )


@requirement(spec.SPEC_49, call=sampled_calls(limits=(3, 1), **SAMPLED), share=0.3)
def test_sampling_without_uniform_numbers_is_refused(subject, call):
    is_refused_at_once(subject, call, uniforms=None)


@requirement(spec.SPEC_50, call=sampled_calls(limits=(5, 3, 9), **SAMPLED), left=among(range(3)), share=0.5)
def test_uniform_numbers_that_run_out_are_an_error(subject, call, left):
    refuses(subject, call.having(uniforms=call.arguments["uniforms"][:left]))


@requirement(
    spec.SPEC_50,
    call=sampled_calls(limits=(5, 3), **SAMPLED),
    bad=among([1.0, -0.25, 3.0, float("nan")]),
    share=0.5,
)
def test_uniform_numbers_of_the_iterator_outside_their_range_are_an_error(subject, call, bad):
    refuses(subject, call.having(uniforms=(bad, *call.arguments["uniforms"][1:])))


@requirement(spec.SPEC_36, call=sampled_calls(limits=(3, 5), drafters=["same"], **SAMPLED), share=0.3)
def test_the_largest_uniform_numbers_of_float64_are_taken(subject, call):
    numbers = (1 - 2.0**-53,) * 60
    ids = subject.parts(call.having(uniforms=numbers))["ids"]
    size = call.arguments["target"]["vocab_size"]
    if len(ids) != call.arguments["max_tokens"] or not ((ids >= 0) & (ids < size)).all():
        raise Nonconformance(f"uniform numbers of 1 - 2^-53 give {listed(ids)}", call.having(uniforms=numbers))


@requirement(spec.SPEC_27, call=sampled_calls(limits=(3, 5), free=True, **SAMPLED), share=0.3)
def test_uniform_numbers_of_0_are_taken(subject, call):
    numbers = (0.0,) * 200
    ids = subject.parts(call.having(uniforms=numbers))["ids"]
    if len(ids) != call.arguments["max_tokens"]:
        raise Nonconformance(f"uniform numbers of 0 give {listed(ids)}", call.having(uniforms=numbers))


@requirement(spec.SPEC_51, call=generate_calls(limits=(3, 1)), share=0.3)
def test_an_empty_prompt_is_refused(subject, call):
    is_refused_at_once(subject, call, "an empty prompt", tokens=call.arguments["tokens"][:0])


@requirement(
    spec.SPEC_52,
    call=generate_calls(),
    which=among(["max_tokens", "num_draft_tokens"]),
    limit=among([-1, -5]),
)
def test_negative_limits_are_refused(subject, call, which, limit):
    is_refused_at_once(subject, call, **{which: limit})


@requirement(
    spec.SPEC_53,
    call=sampled_calls(temperatures=["one"], filters=["none", "top_p", "both"]),
    bad=among(BAD),
    share=0.5,
)
def test_bad_temperatures_and_shares_are_refused(subject, call, bad):
    is_refused_at_once(subject, call, **bad)


@requirement(spec.SPEC_60, call=sampled_calls(temperatures=["one"], filters=["none", "top_p", "both"]), share=0.1)
def test_a_temperature_of_nan_is_refused(subject, call):
    is_refused_at_once(subject, call, temperature=float("nan"))


def drafts_what_it_may(subject, call, *unsaid):
    """Rounds are of num_draft_tokens ids and one more, and there are no more of them than right drafts leave, and one: the last id
    of a round may be given behind the next one. unsaid: arguments that the subject is not told."""
    widths, a = subject.parts(call.without(*unsaid))["widths"], call.arguments
    most = a["num_draft_tokens"] + 1
    if widths.max(initial=0) > most:
        raise Nonconformance(f"{int(widths.max())} ids are fed at once for num_draft_tokens={most - 1}", call)
    if len(widths) > (enough := rounds(call) + 1):
        raise Nonconformance(
            f"the target is called {len(widths)} times for {a['max_tokens']} ids; {most - 1} drafts a round, of which those that"
            f" are right come out, take {enough}",
            call,
        )
