"""Does a serving engine lose nothing when requests are cancelled, steps fail, and requests are refused?"""

from inferspec.conformance.inputs.engine_ends import (
    stopping_at_no_id,
)
from inferspec.conformance.inputs.engine_leavers import (
    cancelling,
    cancelling_again,
    cancelling_before_failures,
    cancelling_dozens,
    cancelling_in_short_pools,
    cancelling_of_a_dozen,
    cancelling_sharers,
    cancelling_the_finished,
    failing,
    failing_again_and_again,
    failing_calls,
    failing_differently,
    failing_in_short_pools,
    failing_runs,
    failing_sharers,
    failing_when_pages_change_hands,
    many_and_failures,
    queues_and_failures,
    stopping_after_failures,
)
from inferspec.conformance.inputs.engine_prefixes import (
    failed_ends_of_prompts,
    failed_ids_that_fill_pages,
    failed_prompts,
)
from inferspec.conformance.inputs.engine_refusals import (
    empty_prompts,
    negative_limits,
    other_vocabularies,
    refused_again,
    refused_before_a_run,
    strange_ids,
    strangers,
    too_large,
    too_large_again,
)
from inferspec.conformance.inputs.engine_script import PLAIN
from inferspec.conformance.properties.common import goes_on_after_refusal, refuses, refuses_step, refuses_steps
from inferspec.conformance.properties.engine import (
    begins_its_output,
    runs_no_more_than_may,
    without_what_is_refused,
)
from inferspec.conformance.suite import requirement
from inferspec.spec import engine as spec

# cancelling and failing


@requirement(spec.ENG_22, call=cancelling(), share=0.2)
def test_what_a_cancelled_request_gave_is_the_beginning_of_its_output(subject, call):
    begins_its_output(subject, call)


@requirement(spec.ENG_23, call=cancelling(seen=("outputs", "ends")), share=0.2)
def test_cancelling_does_not_show_elsewhere(subject, call):
    subject.agrees(call)


@requirement(spec.ENG_23, call=cancelling_of_a_dozen(), share=0.04)
def test_cancelling_one_of_a_dozen_leaves_those_of_similar_ids_alone(subject, call):
    subject.agrees(call)


@requirement(spec.ENG_22, call=cancelling_before_failures(), share=0.08)
def test_nothing_comes_of_a_cancelled_request_when_a_step_fails(subject, call):
    begins_its_output(subject, call)


@requirement(spec.ENG_22, call=cancelling_in_short_pools(), share=0.1)
def test_nothing_comes_of_a_preempted_request_that_is_cancelled(subject, call):
    begins_its_output(subject, call)


@requirement(spec.ENG_23, call=cancelling_again(), share=0.3)
def test_cancelling_what_is_over_does_not_show_elsewhere(subject, call):
    subject.agrees(call)


@requirement(spec.ENG_50, call=cancelling_the_finished(), share=0.1)
def test_a_finished_request_that_is_cancelled_keeps_its_output(subject, call):
    subject.agrees(call)


@requirement(spec.ENG_23, call=cancelling_sharers(page_sizes=[1, 2, 3, 8], **PLAIN), share=0.4)
def test_cancelling_leaves_shared_pages_alone(subject, call):
    subject.agrees(call)


@requirement(spec.ENG_24, call=cancelling_in_short_pools(seen=("pages", "ends")), share=0.15)
def test_a_preempted_request_that_is_cancelled_has_no_pages(subject, call):
    subject.agrees(call)


@requirement(spec.ENG_24, call=cancelling_dozens(seen=("pages", "ends")), share=0.06)
def test_dozens_of_cancelled_requests_give_their_pages_back(subject, call):
    subject.agrees(call)


@requirement(spec.ENG_24, call=failed_prompts(seen=("pages", "ends"), pages=["told"], **PLAIN), share=0.04)
def test_a_request_that_is_cancelled_after_a_failed_step_gives_its_pages_back(subject, call):
    subject.agrees(call)


@requirement(spec.ENG_24, call=cancelling(seen=("pages", "ends")), share=0.2)
def test_a_cancelled_request_gives_its_pages_back(subject, call):
    subject.agrees(call)


@requirement(spec.ENG_25, call=failing(), share=0.4)
def test_after_a_failed_step_nothing_is_lost(subject, call):
    subject.agrees(call)


@requirement(spec.ENG_25, call=failing_again_and_again(), share=0.04)
def test_after_many_failed_steps_nothing_is_lost(subject, call):
    subject.agrees(call)


@requirement(spec.ENG_25, call=failing_calls(), share=0.15)
def test_after_a_call_that_failed_nothing_is_lost(subject, call):
    subject.agrees(call)


@requirement(spec.ENG_25, call=failing_sharers(), share=0.06)
def test_what_requests_share_outlives_a_failed_step(subject, call):
    subject.agrees(call)


@requirement(spec.ENG_25, call=failing_in_short_pools(), share=0.1)
def test_who_gives_way_in_a_failed_step_loses_nothing(subject, call):
    subject.agrees(call)


@requirement(spec.ENG_25, call=failing_when_pages_change_hands(), share=0.05)
def test_what_a_failed_step_took_pages_of_is_not_hit(subject, call):
    subject.agrees(call)


@requirement(spec.ENG_25, call=stopping_after_failures(), share=0.05)
def test_an_end_of_sequence_id_ends_a_request_after_a_failed_step(subject, call):
    subject.agrees(call)


@requirement(spec.ENG_25, call=queues_and_failures(), share=0.06)
def test_requests_keep_their_place_when_a_step_fails(subject, call):
    subject.agrees(call)


@requirement(spec.ENG_25, call=many_and_failures(request_limits=[True]), share=0.04)
def test_no_more_requests_run_than_may_after_a_failed_step(subject, call):
    runs_no_more_than_may(subject, call)


@requirement(spec.ENG_25, call=failing_runs(), share=0.4)
def test_after_a_failed_run_nothing_is_lost(subject, call):
    subject.agrees(call)


@requirement(spec.ENG_25, call=failing_differently(), share=0.15)
def test_errors_of_any_kind_pass_and_nothing_is_lost(subject, call):
    subject.agrees(call)


@requirement(spec.ENG_25, call=failing(seen=("outputs", "metrics"), metrics=["told"], **PLAIN), share=0.1)
def test_metrics_know_nothing_of_a_failed_step(subject, call):
    subject.agrees(call)


@requirement(spec.ENG_25, call=failed_ends_of_prompts(), share=0.06)
def test_the_end_of_a_prompt_that_failed_is_not_hit(subject, call):
    subject.agrees(call)


@requirement(spec.ENG_25, call=failed_ids_that_fill_pages(), share=0.1)
def test_an_id_that_failed_to_fill_a_page_is_not_hit(subject, call):
    subject.agrees(call)


@requirement(spec.ENG_25, call=failed_prompts(**PLAIN), share=0.15)
def test_what_failed_is_not_hit(subject, call):
    subject.agrees(call)


# what is refused


@requirement(spec.ENG_26, story=empty_prompts(), share=0.05)
def test_an_empty_prompt_is_refused(subject, story):
    refuses_step(subject, story)


@requirement(spec.ENG_27, story=negative_limits(), share=0.05)
def test_a_negative_limit_is_refused(subject, story):
    refuses_step(subject, story)


@requirement(spec.ENG_28, story=strange_ids(), share=0.2)
def test_ids_outside_the_vocabulary_are_refused(subject, story):
    refuses_step(subject, story)


@requirement(spec.ENG_29, story=too_large(), share=0.3)
def test_what_can_never_fit_is_refused(subject, story):
    refuses_step(subject, story)


@requirement(spec.ENG_29, story=too_large_again(), share=0.05)
def test_what_can_never_fit_is_refused_however_often_it_is_tried(subject, story):
    refuses_steps(subject, story)


@requirement(spec.ENG_30, story=too_large_again(), share=0.05)
def test_a_request_that_never_fits_changes_nothing_when_it_is_tried_again_and_again(subject, story):
    goes_on_after_refusal(subject, story)


@requirement(spec.ENG_30, story=refused_again(), share=0.05)
def test_a_request_that_is_tried_again_and_again_changes_nothing(subject, story):
    goes_on_after_refusal(subject, story)


@requirement(spec.ENG_30, story=too_large(), share=0.1)
def test_a_request_that_never_fits_changes_nothing(subject, story):
    goes_on_after_refusal(subject, story)


@requirement(spec.ENG_30, story=strange_ids(), share=0.1)
def test_a_request_with_strange_ids_changes_nothing(subject, story):
    goes_on_after_refusal(subject, story)


@requirement(spec.ENG_30, story=empty_prompts(), share=0.05)
def test_a_request_without_tokens_changes_nothing(subject, story):
    goes_on_after_refusal(subject, story)


@requirement(spec.ENG_30, story=negative_limits(), share=0.05)
def test_a_request_with_a_negative_limit_changes_nothing(subject, story):
    goes_on_after_refusal(subject, story)


@requirement(spec.ENG_30, story=refused_before_a_run(), share=0.05)
def test_a_refused_request_is_none_of_those_that_a_run_tells_of(subject, story):
    goes_on_after_refusal(subject, story)


@requirement(spec.ENG_30, story=strangers(), share=0.1)
def test_asking_for_nobody_changes_nothing(subject, story):
    goes_on_after_refusal(subject, story)


@requirement(spec.ENG_39, story=strangers(), share=0.1)
def test_an_id_of_nobody_is_refused(subject, story):
    refuses_step(subject, story)


@requirement(spec.ENG_40, call=other_vocabularies(), share=0.05)
def test_a_draft_of_another_vocabulary_is_refused(subject, call):
    refuses(subject, call)


@requirement(spec.ENG_54, story=stopping_at_no_id(), share=0.05)
def test_an_end_that_is_no_id_ends_nothing(subject, story):
    subject.agrees(without_what_is_refused(subject, *story))
