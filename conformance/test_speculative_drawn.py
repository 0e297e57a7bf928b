"""Does speculative decoding keep above temperature 0 what it keeps at 0? There may be another loop that draws."""

import numpy as np

from inferspec.conformance.inputs.drafting import APART, SAMPLED, sampled_calls
from inferspec.conformance.inputs.generation import ends_of, given_as
from inferspec.conformance.judging.trial import Nonconformance
from inferspec.conformance.properties.common import listed
from inferspec.conformance.properties.speculative import (
    failing,
    is_fed_no_further,
    is_refused_at_once,
    lets_go,
    refuses_what_cannot_be_rewound,
)
from inferspec.conformance.strategies import among
from inferspec.conformance.suite import requirement
from inferspec.spec import speculative_sentences as spec
from inferspec.spec.ends import ended

drawn_calls = sampled_calls(free=True, drafters=APART, **SAMPLED)
"""Requests whose ids are drawn by any uniform numbers."""

LONG = {"drafts": (2, 1), "limits": (6, 9)}
"""So many ids that the target is called twice."""


@requirement(spec.SPEC_38, call=drawn_calls(seen=("reach",), limits=(4, 1, 2, 3, 6, 9)), share=0.1)
def test_no_model_is_fed_past_the_limit_where_ids_are_drawn(subject, call):
    is_fed_no_further(subject, call)


@requirement(spec.SPEC_40, call=drawn_calls(seen=("alive",)), until=among([None, 1, 0, 2]), share=0.08)
def test_caches_are_let_go_at_the_end_where_ids_are_drawn(subject, call, until):
    lets_go(subject, call if until is None else call.having(until=until))


@requirement(spec.SPEC_40, call=drawn_calls(seen=("alive",), **LONG), left=among([1, 0]), share=0.05)
def test_caches_are_let_go_when_drawn_ids_end_by_an_error(subject, call, left):
    subject.expects(failing(call, left), {"alive": np.zeros(2)})


@requirement(spec.SPEC_41, call=drawn_calls(limits=(5, 9)), share=0.08)
def test_two_requests_in_turn_draw_as_each_does_alone(subject, call):
    draws_as_alone(subject, call, "turns")


@requirement(spec.SPEC_41, call=drawn_calls(limits=(9, 7), temperatures=["other"], filters=["top_k"]), share=0.08)
def test_two_requests_in_turn_keep_their_own_filters_and_numbers_of_drafts(subject, call):
    a = call.arguments
    own = {"temperature": 4.0, "top_k": 1, "num_draft_tokens": a["num_draft_tokens"] % 4 + 1}
    draws_as_alone(subject, call, "turns", **own)


@requirement(spec.SPEC_42, call=drawn_calls(limits=(5, 9)), share=0.08)
def test_a_second_request_draws_as_it_does_alone(subject, call):
    draws_as_alone(subject, call, "after")


@requirement(spec.SPEC_44, call=drawn_calls(prompts=["list"], seen=("prompt",)), share=0.05)
def test_the_list_of_tokens_is_not_changed_where_ids_are_drawn(subject, call):
    subject.agrees(call)


@requirement(spec.SPEC_47, call=drawn_calls(limits=(4, 2, 9)), which=among(["target", "draft"]), share=0.08)
def test_caches_that_cannot_be_rewound_are_refused_where_ids_are_drawn(subject, call, which):
    refuses_what_cannot_be_rewound(subject, call, which)


@requirement(spec.SPEC_51, call=drawn_calls(limits=(3, 1)), share=0.05)
def test_an_empty_prompt_is_refused_where_ids_are_drawn(subject, call):
    is_refused_at_once(subject, call, "an empty prompt", tokens=call.arguments["tokens"][:0])


@requirement(
    spec.SPEC_52, call=drawn_calls(), which=among(["max_tokens", "num_draft_tokens"]), limit=among([-1, -5]), share=0.08
)
def test_negative_limits_are_refused_where_ids_are_drawn(subject, call, which, limit):
    is_refused_at_once(subject, call, **{which: limit})


@requirement(spec.SPEC_56, call=drawn_calls(seen=("raised",), **LONG), left=among([0, 1]), share=0.05)
def test_what_the_target_raises_passes_to_the_caller_where_ids_are_drawn(subject, call, left):
    subject.expects(failing(call, left, "ValueError"), {"raised": np.ones(1)})


@requirement(spec.SPEC_57, call=drawn_calls(limits=(9, 5, 12), lengths=(3, 2, 5)), share=0.08)
def test_the_caller_may_change_its_tokens_once_an_id_is_drawn(subject, call):
    ids, own = subject.parts(call)["ids"], subject.parts(call.having(overwrite="tokens"))["ids"]
    if ids.tolist() != own.tolist():
        raise Nonconformance(
            f"{listed(own)} come out where the caller changes its tokens, and else {listed(ids)}", call
        )


@requirement(
    spec.SPEC_58, call=sampled_calls(limits=(9, 5), free=True, **SAMPLED, stops=[1]), at=among([2, 1, 3]), share=0.08
)
def test_the_caller_may_change_its_ends_once_an_id_is_drawn(subject, call, at):
    ids = subject.parts(call)["ids"].astype(int).tolist()
    end = ids[min(at, len(ids) - 1)] if ids else 0
    changed = call.having(eos=(end,), overwrite="ends")
    subject.expects(changed, lambda meant: {"ids": ended(ids, (end,), ends_of(meant))})


def draws_as_alone(subject, call, order, **more):
    """A request and another to the same models draw what they draw alone, by the same uniform numbers. more: what is another of
    the second."""
    tokens = call.arguments["tokens"]
    other = given_as(call, (1, *(int(token) for token in tokens[::-1])))
    more |= {"max_tokens": 4}
    seen = subject.parts(call.having(beside={"tokens": other, **more}, order=order, seen=("ids", "beside")))
    own = call.having(tokens=other, **more)
    for part, one in (("ids", call), ("beside", own)):
        alone = subject.parts(one)["ids"]
        if seen[part].tolist() != alone.tolist():
            raise Nonconformance(
                f"{listed(seen[part])} come out beside another request, and {listed(alone)} alone", call
            )
