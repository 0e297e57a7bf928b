"""Does a serving engine keep the contract in a run, for which it may have a loop of its own?"""

import itertools
from collections import Counter

from inferspec.conformance.inputs.engine_runs import (
    asked_again_after_a_run,
    begun_before_runs,
    crowded_runs,
    failing_in_runs,
    failing_runs_in_short_pools,
    guessing_runs,
    ranked_runs,
    runs_in_short_pools,
    runs_of_none,
    timeless_runs,
)
from inferspec.conformance.judging.trial import Nonconformance
from inferspec.conformance.properties.engine import adds, steps_to_the_first_id, tells_its_logits
from inferspec.conformance.suite import requirement
from inferspec.spec import engine as spec


@requirement(spec.ENG_19, call=runs_in_short_pools(), share=0.06)
def test_a_run_serves_requests_that_are_preempted(subject, call):
    subject.agrees(call)


@requirement(spec.ENG_19, call=runs_of_none(), share=0.03)
def test_a_run_returns_the_outputs_of_requests_that_ask_for_none(subject, call):
    subject.agrees(call)


@requirement(spec.ENG_19, call=guessing_runs(), share=0.06)
def test_a_run_serves_requests_that_a_draft_guesses_for(subject, call):
    subject.agrees(call)


@requirement(spec.ENG_36, call=begun_before_runs(), share=0.04)
def test_logits_are_those_of_the_last_id_after_a_run(subject, call):
    tells_its_logits(subject, call)


@requirement(spec.ENG_16, call=ranked_runs(), share=0.05)
def test_a_run_serves_by_priority_and_then_in_order(subject, call):
    seen, asked = subject.parts(call), {number: call.arguments["steps"][number - 1][1] for number in adds(call)}
    order = sorted(asked, key=lambda number: (-asked[number].get("priority", 0), number))
    for one, later in itertools.pairwise(order):
        if seen[f"{later} began"] < seen[f"{one} began"]:
            raise Nonconformance(f"request {later} gives its id before request {one}, which goes first", call)


@requirement(spec.ENG_43, call=crowded_runs(request_limits=[True]), share=0.04)
def test_no_more_requests_run_than_may_in_a_run(subject, call):
    seen, most = subject.parts(call), call.arguments["max_requests"]
    together = Counter(float(seen[f"{number} began"]) for number in adds(call) if int(seen[f"{number} paced"]))
    if max(together.values(), default=0) > most:
        raise Nonconformance(
            f"{max(together.values())} requests have their first of several ids at one time, and at most {most} may run",
            call,
        )


@requirement(spec.ENG_33, call=timeless_runs(), share=0.05)
def test_metrics_fit_together_where_no_time_passes(subject, call):
    subject.agrees(call)


@requirement(spec.ENG_38, call=asked_again_after_a_run(chunk_limits=[True]), share=0.05)
def test_a_prompt_that_a_run_computed_is_not_computed_again(subject, call):
    first, _, again = steps_to_the_first_id(subject, call)
    if not again < first:
        raise Nonconformance(
            f"the first id came after {first} steps, and of a prompt as long that a run had computed after {again}",
            call,
        )


@requirement(spec.ENG_25, call=failing_in_runs(), share=0.04)
def test_a_request_has_its_first_time_when_a_run_fails_behind_it(subject, call):
    seen, (*_, before, _) = subject.parts(call), call.arguments["steps"]
    for number in adds(call):
        # An id of the failed run may be one of the next step.
        if 0 < int(seen[f"{number} first"]) <= before[1]["times"] and (off := float(seen[f"{number} ttft"])):
            raise Nonconformance(
                f"after a run that failed the first id of request {number} came {off} seconds later", call
            )


@requirement(spec.ENG_25, call=failing_runs_in_short_pools(), share=0.06)
def test_after_a_failed_run_nothing_is_lost_of_who_was_preempted(subject, call):
    subject.agrees(call)
