"""Does a serving engine keep the contract? Every request must come out as it would alone, whatever happens around it."""

from inferspec.conformance.inputs.engine import (
    as_trained,
    close_pairs,
    crowds,
    full_houses,
    high_ids,
    hundreds_of_ids,
    keeping,
    large_houses,
    large_pages,
    left_side_by_side,
    lone,
    long_requests,
    many_beside_another,
    many_pages,
    masses,
    of_servers,
    of_twins,
    overwriting,
    overwriting_in_short_pools,
    preempted_again_and_again,
    ranked_side_by_side,
    served_side_by_side,
    short_pools,
    side_by_side,
    sized_side_by_side,
    telling,
    ticking,
    timed,
    timed_in_short_pools,
    timed_runs,
    unhurried,
)
from inferspec.conformance.inputs.engine_ends import (
    overwriting_ends,
    stopping,
    stopping_at_the_first_of_several,
)
from inferspec.conformance.inputs.engine_leavers import (
    cancelling_at_work,
    failing_when_others_come,
)
from inferspec.conformance.inputs.engine_prefixes import (
    sharing,
)
from inferspec.conformance.inputs.engine_queues import (
    overtaken_by_a_long_prompt,
    queued_hits,
)
from inferspec.conformance.inputs.engine_script import GUESSING, PLAIN
from inferspec.conformance.properties.engine import (
    goes_by_priority,
    is_batch_invariant,
    runs_no_more_than_may,
    tells_its_logits,
)
from inferspec.conformance.suite import requirement
from inferspec.spec import engine as spec

# alone and together


@requirement(spec.ENG_01, call=crowds(**PLAIN), share=0.2)
def test_requests_beside_each_other_come_out_as_alone(subject, call):
    subject.agrees(call)


@requirement(spec.ENG_01, call=full_houses(**PLAIN), share=0.04)
def test_as_many_as_may_run_come_out_as_alone(subject, call):
    subject.agrees(call)


@requirement(spec.ENG_01, call=masses(prefix_caching=[False]), share=0.01)
def test_very_many_that_run_come_out_as_alone(subject, call):
    subject.agrees(call)


@requirement(spec.ENG_01, call=of_servers(), share=0.07)
def test_pages_chunks_and_prompts_of_servers_do_not_show(subject, call):
    subject.agrees(call)


@requirement(spec.ENG_01, call=as_trained(), share=0.01)
def test_layers_and_heads_of_trained_models_do_not_show(subject, call):
    subject.agrees(call)


@requirement(spec.ENG_01, call=high_ids(), share=0.01)
def test_ids_past_16_bits_come_out_as_alone(subject, call):
    subject.agrees(call)


@requirement(spec.ENG_01, call=long_requests(**PLAIN), share=0.03)
def test_long_requests_come_out_as_alone(subject, call):
    subject.agrees(call)


@requirement(spec.ENG_01, call=lone(**PLAIN), share=0.1)
def test_one_request_comes_out_as_from_generate(subject, call):
    subject.agrees(call)


@requirement(spec.ENG_01, pair=of_twins(**PLAIN), share=0.05)
def test_a_model_of_the_same_config_does_not_show(subject, pair):
    for call in pair:
        subject.agrees(call)


@requirement(spec.ENG_02, call=crowds(**PLAIN), share=0.15)
def test_requests_may_come_at_any_time(subject, call):
    subject.agrees(call)


@requirement(spec.ENG_02, call=crowds(**PLAIN), share=0.08)
def test_the_order_of_arrival_does_not_show(subject, call):
    subject.agrees(reversed_adds(call))


@requirement(spec.ENG_03, call=crowds(chunks=[1, 3, 7], **PLAIN), share=0.15)
def test_prompts_may_be_computed_in_chunks(subject, call):
    subject.agrees(call)


@requirement(spec.ENG_03, call=sharing(chunks=[1, 3, 7], **PLAIN), share=0.1)
def test_chunks_may_begin_after_a_hit(subject, call):
    subject.agrees(call)


@requirement(spec.ENG_04, call=crowds(page_sizes=[1, 2, 3, 8], **PLAIN), share=0.25)
def test_pages_may_have_any_size(subject, call):
    subject.agrees(call)


@requirement(spec.ENG_04, call=lone(page_sizes=[1, 2, 3, 8], **PLAIN), share=0.35)
def test_a_request_may_grow_over_pages_of_any_size(subject, call):
    subject.agrees(call)


@requirement(spec.ENG_04, call=large_pages(), share=0.06)
def test_pages_may_be_as_large_as_those_of_servers(subject, call):
    subject.agrees(call)


@requirement(spec.ENG_04, call=masses(page_sizes=[256], prefix_caching=[False]), share=0.01)
def test_hundreds_of_large_pages_may_be_held(subject, call):
    subject.agrees(call)


@requirement(spec.ENG_04, call=many_pages(), share=0.04)
def test_a_request_may_have_many_pages(subject, call):
    subject.agrees(call)


@requirement(spec.ENG_05, call=short_pools(prefix_caching=[False], **PLAIN), share=0.2)
def test_preempted_requests_come_out_as_others(subject, call):
    subject.agrees(call)


@requirement(spec.ENG_05, call=short_pools(**PLAIN), share=0.2)
def test_preempted_requests_may_find_what_they_had(subject, call):
    subject.agrees(call)


@requirement(spec.ENG_05, call=preempted_again_and_again(), share=0.01)
def test_a_request_may_be_preempted_many_times(subject, call):
    subject.agrees(call)


# metrics


@requirement(spec.ENG_32, call=timed(), share=0.2)
def test_metrics_are_those_of_the_request(subject, call):
    subject.agrees(call)


@requirement(spec.ENG_32, call=timed_in_short_pools(), share=0.3)
def test_metrics_of_preempted_requests_are_theirs(subject, call):
    subject.agrees(call)


@requirement(spec.ENG_32, call=queued_hits(seen=("outputs", "metrics"), metrics=["told"]), share=0.04)
def test_metrics_of_what_is_cached_are_from_its_arrival(subject, call):
    subject.agrees(call)


@requirement(spec.ENG_32, call=hundreds_of_ids(seen=("outputs", "metrics"), metrics=["told"]), share=0.01)
def test_metrics_of_hundreds_of_ids_are_those_of_the_request(subject, call):
    subject.agrees(call)


@requirement(spec.ENG_32, call=large_houses(seen=("outputs", "metrics"), metrics=["told"], **PLAIN), share=0.01)
def test_metrics_of_very_many_requests_are_theirs(subject, call):
    subject.agrees(call)


@requirement(spec.ENG_32, call=cancelling_at_work(seen=("outputs", "metrics"), metrics=["told"]), share=0.04)
def test_metrics_are_those_of_the_request_when_another_is_cancelled(subject, call):
    subject.agrees(call)


@requirement(
    spec.ENG_32,
    call=stopping_at_the_first_of_several(seen=("outputs", "metrics"), metrics=["told"]),
    share=0.04,
)
def test_an_end_among_guesses_has_no_time(subject, call):
    subject.agrees(call)


@requirement(spec.ENG_45, call=timed(seen=("outputs", "computing"), drafts=["none"]), share=0.15)
def test_no_id_is_stamped_before_it_is_computed(subject, call):
    subject.agrees(call)


@requirement(spec.ENG_45, call=timed_runs(), share=0.05)
def test_ids_of_a_run_are_stamped_as_they_come(subject, call):
    subject.agrees(call)


@requirement(spec.ENG_33, call=ticking(), share=0.15)
def test_metrics_fit_together(subject, call):
    subject.agrees(call)


# what is the caller's, and what is not shared


@requirement(spec.ENG_34, call=overwriting_in_short_pools(), share=0.08)
def test_the_list_of_tokens_is_the_caller_s_when_its_request_is_preempted(subject, call):
    subject.agrees(call)


@requirement(spec.ENG_34, call=overwriting(), share=0.15)
def test_the_list_of_tokens_is_the_caller_s(subject, call):
    subject.agrees(call)


@requirement(spec.ENG_49, call=overwriting_ends(), share=0.08)
def test_the_list_of_ends_is_the_caller_s(subject, call):
    subject.agrees(call)


@requirement(spec.ENG_52, call=close_pairs(), share=0.1)
def test_ids_are_chosen_by_logits_that_are_not_rounded_to_16_bits(subject, call):
    subject.agrees(call)


@requirement(spec.ENG_51, call=keeping(), share=0.15)
def test_what_was_given_keeps_its_values(subject, call):
    subject.agrees(call)


@requirement(spec.ENG_51, call=keeping(seen=("outputs", "kept", "gaps"), metrics=["told"]), share=0.05)
def test_gaps_that_were_given_keep_their_values(subject, call):
    subject.agrees(call)


@requirement(spec.ENG_35, call=side_by_side(), share=0.2)
def test_two_engines_on_one_model_keep_apart(subject, call):
    subject.agrees(call)


@requirement(spec.ENG_35, call=left_side_by_side(), share=0.1)
def test_who_is_cancelled_of_one_engine_is_not_cancelled_of_another(subject, call):
    subject.agrees(call)


@requirement(spec.ENG_35, call=many_beside_another(request_limits=[True]), share=0.06)
def test_an_engine_of_larger_limits_lets_no_more_requests_of_another_run(subject, call):
    runs_no_more_than_may(subject, call)


@requirement(spec.ENG_35, call=sized_side_by_side(), share=0.06)
def test_two_engines_have_pages_of_their_own_size(subject, call):
    subject.agrees(call)


@requirement(spec.ENG_35, call=served_side_by_side(), share=0.08)
def test_times_and_ends_of_a_request_are_not_those_of_another_engine_s(subject, call):
    subject.agrees(call)


@requirement(
    spec.ENG_35,
    call=served_side_by_side(seen=("outputs", "latest"), metrics=["told", "untold"], logits=["told"]),
    share=0.06,
)
def test_logits_of_a_request_are_not_those_of_another_engine_s(subject, call):
    subject.agrees(call)


@requirement(spec.ENG_35, call=ranked_side_by_side(), share=0.06)
def test_priorities_of_requests_are_not_those_of_another_engine_s(subject, call):
    goes_by_priority(subject, call)


# logits


@requirement(spec.ENG_36, call=telling(), share=0.15)
def test_logits_are_those_of_the_model(subject, call):
    tells_its_logits(subject, call)


@requirement(spec.ENG_36, call=crowds(seen=("outputs", "latest"), logits=["told"]), share=0.05)
def test_logits_are_those_of_the_last_id_at_any_moment(subject, call):
    subject.agrees(call)


@requirement(spec.ENG_36, call=failing_when_others_come(), share=0.2)
def test_logits_are_those_of_the_last_id_after_a_failed_step(subject, call):
    subject.agrees(call)


@requirement(spec.ENG_36, call=cancelling_at_work(seen=("outputs", "latest"), logits=["told"]), share=0.04)
def test_logits_are_those_of_the_last_id_when_another_is_cancelled(subject, call):
    subject.agrees(call)


@requirement(spec.ENG_36, call=short_pools(seen=("outputs", "latest"), logits=["told"], **PLAIN), share=0.06)
def test_logits_are_those_of_the_last_id_while_a_preempted_request_waits(subject, call):
    subject.agrees(call)


@requirement(spec.ENG_36, call=overtaken_by_a_long_prompt(), share=0.05)
def test_logits_are_those_of_the_last_id_beside_chunks_of_a_prompt_that_goes_first(subject, call):
    subject.agrees(call)


@requirement(spec.ENG_36, call=stopping(seen=("outputs", "logits"), logits=["told"], **PLAIN), share=0.1)
def test_logits_are_those_of_the_model_where_an_id_ends_the_output(subject, call):
    tells_its_logits(subject, call)


@requirement(spec.ENG_36, call=stopping(seen=("outputs", "logits"), logits=["told"], **GUESSING), share=0.15)
def test_logits_are_those_of_the_model_where_an_id_ends_a_run_of_guesses(subject, call):
    tells_its_logits(subject, call)


@requirement(spec.ENG_37, call=unhurried(), share=0.2)
def test_logits_are_those_of_the_request_alone_to_the_last_bit(subject, call):
    is_batch_invariant(subject, call)


@requirement(spec.ENG_56, call=crowds(**PLAIN), share=0.02)
def test_another_thread_than_that_of_loading_gets_the_same_ids(subject, call):
    subject.agrees(call.in_another_thread())


def reversed_adds(call):
    """The same requests, in the reverse order."""
    steps = list(call.arguments["steps"])
    requests = [given for step, given in steps if step == "add"]
    return call.having(steps=tuple((step, requests.pop() if step == "add" else given) for step, given in steps))
