"""Does an implementation of latency and throughput metrics keep the contract?"""

import math

from hypothesis import strategies as st

from inferspec.conformance.inputs.metrics import any_number, some, timelines, workloads
from inferspec.conformance.properties import depends_on_arguments_alone, refuses
from inferspec.conformance.suite import requirement
from inferspec.conformance.trial import Nonconformance
from inferspec.spec import metrics as spec
from inferspec.spec.contract import Answer
from inferspec.spec.numerics import within

NOT_FINITE = st.sampled_from([math.nan, math.inf, -math.inf])

# one request


@requirement(spec.METR_01, call=timelines(), share=0.5)
def test_ttft_is_the_wait_for_the_first_token(subject, call):
    has(subject, call, "ttft")


@requirement(spec.METR_02, call=timelines(), share=0.5)
def test_e2el_is_the_wait_for_the_last_token(subject, call):
    has(subject, call, "e2el")


@requirement(spec.METR_03, call=timelines())
def test_itl_are_the_gaps_between_tokens(subject, call):
    has(subject, call, "itl")


@requirement(spec.METR_04, call=timelines(), share=0.5)
def test_tpot_is_the_mean_gap(subject, call):
    has(subject, call, "tpot")


@requirement(spec.METR_04, call=timelines(count=any_number), share=0.5)
def test_tpot_of_many_tokens_is_the_mean_gap(subject, call):
    has(subject, call, "tpot")


@requirement(spec.METR_05, call=timelines(grouped=True), share=0.5)
def test_tokens_that_come_together_each_count(subject, call):
    subject.agrees(call)


@requirement(spec.METR_05, call=timelines(), times=st.integers(1, 3), share=0.5)
def test_tokens_that_all_come_at_once_have_gaps_of_0(subject, call, times):
    first = call.arguments["token_times"][0]
    subject.agrees(call.having(token_times=[first] * (times + 1)))


@requirement(spec.METR_06, call=timelines(), share=0.5)
def test_one_token_has_no_gap(subject, call):
    subject.agrees(call.having(token_times=call.arguments["token_times"][:1]))


@requirement(spec.METR_06, call=timelines(), share=0.2)
def test_one_token_on_arrival_took_no_time(subject, call):
    subject.agrees(call.having(token_times=[call.arguments["arrival"]]))


@requirement(spec.METR_07, call=timelines(), share=0.2)
def test_no_token_has_no_metric(subject, call):
    subject.agrees(call.having(token_times=[]))


@requirement(spec.METR_08, call=timelines(clocks=["epoch"]), share=0.5)
def test_large_times_lose_nothing(subject, call):
    subject.agrees(call)


@requirement(spec.METR_09, call=timelines(count=any_number, grouped=True), share=0.5)
def test_the_parts_add_up_to_e2el(subject, call):
    got, answers = subject.parts(call), subject.answer(call)
    n = len(call.arguments["token_times"])
    if not n:
        return
    slack = sum(float(answers[part].budget.sum()) for part in ("ttft", "itl", "e2el"))
    gaps = [("sum(ITL)", math.fsum(got["itl"].tolist()), slack)]
    if n > 1:
        slack += (n - 1) * float(answers["tpot"].budget)
        gaps.append(("(n - 1) · TPOT", (n - 1) * float(got["tpot"]), slack))
    for name, decode, budget in gaps:
        apart = abs(float(got["ttft"]) + decode - float(got["e2el"]))
        if not within(apart, budget):
            raise Nonconformance(f"TTFT + {name} is {apart:.3g} s off E2EL, {n} tokens", call)


@requirement(spec.METR_10, first=timelines(), second=timelines(), share=0.5)
def test_other_requests_in_between_change_nothing(subject, first, second):
    depends_on_arguments_alone(subject, first, second)


@requirement(spec.METR_11, call=timelines(), at=st.integers(0, 100), share=0.5)
def test_times_that_decrease_are_refused(subject, call, at):
    times = list(call.arguments["token_times"])
    at = at % (len(times) - 1)
    times[at], times[at + 1] = times[at + 1], times[at]
    refuses(subject, call.having(token_times=times))


@requirement(spec.METR_12, call=timelines(count=lambda pick: pick.one_of(1, 2, 5)), share=0.5)
def test_a_token_before_the_arrival_is_refused(subject, call):
    first = call.arguments["token_times"][0]
    refuses(subject, call.having(arrival=first + 0.001))


@requirement(spec.METR_13, call=timelines(), bad=NOT_FINITE, at=st.integers(0, 100), share=0.5)
def test_a_token_time_that_is_not_finite_is_refused(subject, call, bad, at):
    times = list(call.arguments["token_times"])
    times[at % len(times)] = bad
    refuses(subject, call.having(token_times=times))


@requirement(spec.METR_13, call=timelines(), bad=NOT_FINITE, share=0.3)
def test_an_arrival_that_is_not_finite_is_refused(subject, call, bad):
    refuses(subject, call.having(arrival=bad))


# many requests


@requirement(spec.METR_21, call=workloads(), share=0.5)
def test_mean_ttft_and_e2el_weigh_requests_alike(subject, call):
    has(subject, call, "ttft", "e2el")


@requirement(spec.METR_22, call=workloads(), share=0.5)
def test_mean_tpot_weighs_requests_alike(subject, call):
    has(subject, call, "tpot")


@requirement(spec.METR_23, call=workloads(), share=0.5)
def test_mean_itl_weighs_gaps_alike(subject, call):
    has(subject, call, "itl")


@requirement(spec.METR_24, call=workloads(), share=0.5)
def test_the_output_rate_counts_emitted_tokens(subject, call):
    has(subject, call, "output_rate")


@requirement(spec.METR_25, call=workloads(), share=0.5)
def test_the_prefill_rate_counts_computed_tokens(subject, call):
    has(subject, call, "prefill_rate")


@requirement(spec.METR_25, call=workloads(reuse=False), share=0.3)
def test_the_prefill_rate_of_prompts_that_share_nothing(subject, call):
    has(subject, call, "prefill_rate")


@requirement(spec.METR_26, call=workloads(count=some, requests=(2, 3, 5)), which=st.sets(st.integers(0, 4)), share=0.5)
def test_requests_without_a_token_count_nowhere(subject, call, which):
    times = [[] if i in which else line for i, line in enumerate(call.arguments["token_times"])]
    subject.agrees(call.having(token_times=times))


@requirement(spec.METR_27, call=workloads(requests=(1, 2, 3)), share=0.3)
def test_no_time_gives_no_rate(subject, call):
    now = call.arguments["arrivals"][0]
    times = [[now] * len(line) for line in call.arguments["token_times"]]
    subject.agrees(call.having(arrivals=[now] * len(times), token_times=times))


@requirement(
    spec.METR_28,
    call=workloads(count=some, requests=(2, 3, 5)),
    bad=st.sampled_from(
        ["arrivals", "token_times", "prompt_tokens", "cached_tokens", "order", "early", "cached", "minus"]
    ),
)
def test_bad_workloads_are_refused(subject, call, bad):
    refuses(subject, call.having(**_spoilt(call, bad)))


def has(subject, call, *parts):
    """These parts of the result are right; the others are other requirements' matter."""
    got, answers = subject.parts(call), subject.answer(call)
    for part in parts:
        if part not in got:
            raise Nonconformance(f"{part} is missing; it came with {', '.join(got)}", call)
        answer: Answer = answers[part]
        subject.compare(call, got[part], answer, part=part)


def _spoilt(call, bad):
    """One argument of a workload, spoilt: a list that is one short, times out of order, counts that cannot be."""
    arguments = call.arguments
    match bad:
        case "order":
            first, *rest = arguments["token_times"]
            return {"token_times": [[first[-1] + 1.0, *first], *rest]}
        case "early":
            return {"arrivals": [arguments["token_times"][0][0] + 1.0, *arguments["arrivals"][1:]]}
        case "cached":
            return {"cached_tokens": [arguments["prompt_tokens"][0] + 1, *arguments["cached_tokens"][1:]]}
        case "minus":
            return {"cached_tokens": [-1, *arguments["cached_tokens"][1:]]}
    return {bad: arguments[bad][:-1]}
