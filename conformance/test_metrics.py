"""Does an implementation of latency and throughput metrics keep the contract?"""

import math

from inferspec.conformance.inputs.metrics import (
    a_few,
    any_number,
    few,
    few_or_none,
    many,
    partly_whole,
    partly_whole_of_many,
    some,
    timelines,
    whole_seconds,
    workloads,
)
from inferspec.conformance.judging.trial import Nonconformance
from inferspec.conformance.properties.common import depends_on_arguments_alone, keeps_arguments, refuses
from inferspec.conformance.strategies import among, calls
from inferspec.conformance.suite import requirement
from inferspec.spec import metrics as spec
from inferspec.spec.contract import Answer
from inferspec.spec.numerics import within

NOT_FINITE = among([math.nan, math.inf, -math.inf])
A_LITTLE = among([1e-3, 1e-6, 1.0])
SOME = calls(lambda pick: {number for number in range(5) if pick.one_of(False, True)})

# one request


@requirement(spec.METR_01, call=timelines(), share=0.5)
def test_ttft_is_the_wait_for_the_first_token(subject, call):
    has(subject, call, "ttft")


@requirement(spec.METR_01, call=timelines(wait=0), share=0.2)
def test_ttft_of_a_long_wait_is_all_of_it(subject, call):
    has(subject, call, "ttft")


@requirement(spec.METR_02, call=timelines(), share=0.5)
def test_e2el_is_the_wait_for_the_last_token(subject, call):
    has(subject, call, "e2el")


@requirement(spec.METR_02, call=timelines(wait=-1), share=0.4)
def test_e2el_of_a_long_wait_is_all_of_it(subject, call):
    has(subject, call, "e2el")


@requirement(spec.METR_03, call=timelines())
def test_itl_are_the_gaps_between_tokens(subject, call):
    has(subject, call, "itl")


@requirement(spec.METR_03, call=timelines(count=any_number), share=0.4)
def test_itl_of_many_tokens_are_all_their_gaps(subject, call):
    has(subject, call, "itl")


@requirement(spec.METR_03, call=timelines(wait=-1), share=0.2)
def test_itl_of_a_long_wait_is_all_of_it(subject, call):
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


@requirement(spec.METR_05, call=timelines(), times=among(range(1, 4)), share=0.5)
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


@requirement(spec.METR_08, call=timelines(clocks=["zero", "ahead"]), share=0.6)
def test_times_may_be_0_and_negative(subject, call):
    subject.agrees(call)


@requirement(spec.METR_09, call=timelines(count=any_number, grouped=True), share=0.5)
def test_the_parts_add_up_to_e2el(subject, call):
    got, answers = parts(subject, call, "ttft", "tpot", "itl", "e2el"), subject.answer(call)
    n = len(call.arguments["token_times"])
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


@requirement(spec.METR_10, call=timelines(), bad=among([None, math.nan, math.inf]), share=0.3)
def test_a_request_that_was_refused_changes_nothing(subject, call, bad):
    times = call.arguments["token_times"]
    subject.observe(call.having(token_times=[*times, times[0] if bad is None else bad]))
    subject.agrees(call)


@requirement(spec.METR_11, call=timelines(), at=among(range(101)), share=0.5)
def test_times_that_decrease_are_refused(subject, call, at):
    times = list(call.arguments["token_times"])
    at = at % (len(times) - 1)
    times[at], times[at + 1] = times[at + 1], times[at]
    refuses(subject, call.having(token_times=times))


@requirement(spec.METR_11, call=timelines(count=few), at=among(range(101)), less=A_LITTLE, share=0.3)
def test_times_that_decrease_by_a_little_are_refused(subject, call, at, less):
    times = call.arguments["token_times"]
    at = at % len(times)
    refuses(subject, call.having(token_times=[*times[: at + 1], times[at] - less, *times[at + 1 :]]))


@requirement(spec.METR_12, call=timelines(count=few), less=A_LITTLE, share=0.5)
def test_a_token_before_the_arrival_is_refused(subject, call, less):
    first = call.arguments["token_times"][0]
    refuses(subject, call.having(arrival=first + less))


@requirement(spec.METR_13, call=timelines(count=few), bad=NOT_FINITE, at=among(range(101)), share=0.5)
def test_a_token_time_that_is_not_finite_is_refused(subject, call, bad, at):
    times = list(call.arguments["token_times"])
    times[at % len(times)] = bad
    refuses(subject, call.having(token_times=times))


@requirement(spec.METR_13, call=timelines(count=few_or_none), bad=NOT_FINITE, share=0.3)
def test_an_arrival_that_is_not_finite_is_refused(subject, call, bad):
    refuses(subject, call.having(arrival=bad))


@requirement(spec.METR_14, call=timelines(), share=0.5)
def test_times_may_be_integers(subject, call):
    subject.agrees(whole_seconds(call))


@requirement(spec.METR_14, call=timelines(), which=among(["arrival", "first", "last", "tokens"]), share=0.3)
def test_some_of_the_times_may_be_integers(subject, call, which):
    subject.agrees(partly_whole(call, which))


@requirement(spec.METR_15, call=timelines(count=any_number), share=0.3)
def test_the_times_are_left_as_they_were(subject, call):
    keeps_arguments(subject, call)


@requirement(spec.METR_15, call=timelines(), share=0.2)
def test_the_times_of_a_request_that_is_refused_are_left_as_they_were(subject, call):
    times = call.arguments["token_times"]
    leaves(subject, call.having(token_times=[*times, times[0]]))


# many requests


@requirement(spec.METR_21, call=workloads(), share=0.5)
def test_mean_ttft_and_e2el_weigh_requests_alike(subject, call):
    has(subject, call, "ttft", "e2el")


@requirement(spec.METR_21, call=workloads(count=a_few, requests=(6, 17, 300)), share=0.2)
def test_mean_ttft_and_e2el_of_many_requests_weigh_them_alike(subject, call):
    has(subject, call, "ttft", "e2el")


@requirement(spec.METR_21, call=workloads(count=a_few, requests=(1200,)), share=0.02)
def test_means_of_more_than_a_thousand_requests_are_those_of_all(subject, call):
    has(subject, call, "ttft", "e2el")


@requirement(spec.METR_22, call=workloads(), share=0.5)
def test_mean_tpot_weighs_requests_alike(subject, call):
    has(subject, call, "tpot")


@requirement(spec.METR_22, call=workloads(count=a_few, requests=(6, 17, 300)), share=0.2)
def test_mean_tpot_of_many_requests_weighs_them_alike(subject, call):
    has(subject, call, "tpot")


@requirement(spec.METR_23, call=workloads(), share=0.5)
def test_mean_itl_weighs_gaps_alike(subject, call):
    has(subject, call, "itl")


@requirement(spec.METR_23, call=workloads(count=a_few, requests=(6, 17, 300)), share=0.2)
def test_mean_itl_of_many_requests_weighs_their_gaps_alike(subject, call):
    has(subject, call, "itl")


@requirement(spec.METR_23, call=workloads(count=many, requests=(6, 9)), share=0.05)
def test_mean_itl_of_many_tokens_weighs_all_their_gaps_alike(subject, call):
    has(subject, call, "itl")


@requirement(spec.METR_24, call=workloads(), share=0.5)
def test_the_output_rate_counts_emitted_tokens(subject, call):
    has(subject, call, "output_rate")


@requirement(spec.METR_24, call=workloads(count=a_few, requests=(6, 17, 300)), share=0.3)
def test_the_output_rate_counts_every_request(subject, call):
    has(subject, call, "output_rate")


@requirement(spec.METR_24, call=workloads(count=some), times=among(range(1, 4)), share=0.2)
def test_the_output_rate_counts_requests_that_are_alike(subject, call, times):
    has(subject, call.having(**{name: [*x, *x[:1] * times] for name, x in call.arguments.items()}), "output_rate")


@requirement(spec.METR_25, call=workloads(), share=0.5)
def test_the_prefill_rate_counts_computed_tokens(subject, call):
    has(subject, call, "prefill_rate")


@requirement(spec.METR_25, call=workloads(count=a_few, requests=(6, 17, 300)), share=0.2)
def test_the_prefill_rate_counts_every_request(subject, call):
    has(subject, call, "prefill_rate")


@requirement(spec.METR_25, call=workloads(reuse=False), share=0.3)
def test_the_prefill_rate_of_prompts_that_share_nothing(subject, call):
    has(subject, call, "prefill_rate")


@requirement(spec.METR_25, call=workloads(count=some, requests=(1, 2, 3)), share=0.2)
def test_the_prefill_rate_of_prompts_that_are_cached_in_full_is_0(subject, call):
    has(subject, call.having(cached_tokens=call.arguments["prompt_tokens"]), "prefill_rate")


@requirement(spec.METR_26, call=workloads(count=some, requests=(2, 3, 5, 1)), which=SOME, share=0.5)
def test_requests_without_a_token_count_nowhere(subject, call, which):
    times = [[] if i in which else line for i, line in enumerate(call.arguments["token_times"])]
    subject.agrees(call.having(token_times=times))


@requirement(spec.METR_26, call=workloads(count=a_few, requests=(6, 17, 300)), every=among([2, 3, 7]), share=0.2)
def test_of_many_requests_those_without_a_token_count_nowhere(subject, call, every):
    times = [[] if i % every == 0 else line for i, line in enumerate(call.arguments["token_times"])]
    subject.agrees(call.having(token_times=times))


@requirement(spec.METR_26, call=workloads(requests=(0,)), share=0.05)
def test_no_requests_have_no_metric(subject, call):
    subject.agrees(call)


@requirement(spec.METR_27, call=workloads(requests=(1, 2, 3)), share=0.3)
def test_no_time_gives_no_rate(subject, call):
    now = call.arguments["arrivals"][0]
    times = [[now] * len(line) for line in call.arguments["token_times"]]
    subject.agrees(call.having(arrivals=[now] * len(times), token_times=times))


@requirement(
    spec.METR_27,
    call=workloads(count=some, requests=(1, 2, 3)),
    span=among([1e-3, 1e-6, 1e-9, 1e-12]),
    share=0.3,
)
def test_any_time_gives_a_rate(subject, call, span):
    times = [[span * i / (len(line) - 1) for i in range(len(line))] for line in call.arguments["token_times"]]
    subject.agrees(call.having(arrivals=[0.0] * len(times), token_times=times))


@requirement(
    spec.METR_28,
    call=workloads(count=some, requests=(2, 3, 5)),
    bad=among(
        [
            "arrivals",
            "token_times",
            "prompt_tokens",
            "cached_tokens",
            "order",
            "inside",
            "early",
            "cached",
            "minus",
            "prompt",
            "never",
            "no arrival",
        ]
    ),
    which=among(range(60)),
)
def test_bad_workloads_are_refused(subject, call, bad, which):
    refuses(subject, call.having(**_spoilt(call, bad, which)))


@requirement(
    spec.METR_28,
    call=workloads(count=some, requests=(2, 3, 5)),
    bad=among(["cached", "minus", "prompt"]),
    which=among(range(60)),
    share=0.3,
)
def test_bad_counts_of_a_request_without_a_token_are_refused(subject, call, bad, which):
    unserved = _with(call.arguments["token_times"], which % len(call.arguments["token_times"]), [])
    refuses(subject, call.having(**_spoilt(call, bad, which), token_times=unserved))


@requirement(spec.METR_28, call=workloads(count=some, requests=(2, 1, 3)), which=among(range(60)), share=0.1)
def test_more_cached_than_a_prompt_of_none_is_refused(subject, call, which):
    which = which % len(call.arguments["prompt_tokens"])
    given = {name: call.arguments[name] for name in ("prompt_tokens", "cached_tokens")}
    refuses(subject, call.having(**{name: _with(given[name], which, n) for name, n in zip(given, (0, 1), strict=True)}))


@requirement(spec.METR_28, call=workloads(count=some, requests=(2, 3, 5)), which=among(range(60)), share=0.2)
def test_an_arrival_of_a_request_without_a_token_is_looked_at(subject, call, which):
    unserved = _with(call.arguments["token_times"], which % len(call.arguments["token_times"]), [])
    refuses(subject, call.having(**_spoilt(call, "no arrival", which), token_times=unserved))


@requirement(
    spec.METR_28,
    call=workloads(count=some, requests=(2, 3, 1)),
    bad=NOT_FINITE,
    which=among(range(60)),
    at=among(range(101)),
    share=0.5,
)
def test_any_time_of_many_requests_that_is_not_finite_is_refused(subject, call, bad, which, at):
    lines = call.arguments["token_times"]
    times = list(lines[which % len(lines)])
    times[at % len(times)] = bad
    refuses(subject, call.having(token_times=_with(lines, which % len(lines), times)))


@requirement(
    spec.METR_28,
    call=workloads(count=some, requests=(2, 3, 1)),
    which=among(range(60)),
    at=among(range(101)),
    less=A_LITTLE,
    share=0.3,
)
def test_times_of_many_requests_that_decrease_by_a_little_are_refused(subject, call, which, at, less):
    arrivals, lines = call.arguments["arrivals"], call.arguments["token_times"]
    which = which % len(lines)
    times, at = lines[which], at % len(lines[which])
    if at:
        refuses(subject, call.having(token_times=_with(lines, which, [*times[:at], times[at - 1] - less, *times[at:]])))
    else:
        refuses(subject, call.having(arrivals=_with(arrivals, which, times[0] + less)))


@requirement(
    spec.METR_28,
    call=workloads(count=some, requests=(1, 2)),
    bad=among(["cached", "minus", "prompt", "no arrival"]),
    which=among(range(60)),
    share=0.3,
)
def test_bad_workloads_of_which_no_request_has_a_token_are_refused(subject, call, bad, which):
    refuses(subject, call.having(**_spoilt(call, bad, which), token_times=[[] for _ in call.arguments["token_times"]]))


@requirement(
    spec.METR_28,
    call=workloads(count=some, requests=(1, 2)),
    name=among(["arrivals", "token_times", "prompt_tokens", "cached_tokens"]),
    share=0.3,
)
def test_a_list_of_no_requests_beside_others_is_refused(subject, call, name):
    refuses(subject, call.having(**{name: []}))


@requirement(spec.METR_29, call=workloads(), share=0.45)
def test_the_lists_of_many_requests_are_left_as_they_were(subject, call):
    keeps_arguments(subject, call)


@requirement(spec.METR_29, call=workloads(count=some, requests=(2, 3, 5)), which=among(range(60)), share=0.2)
def test_the_lists_keep_a_request_without_a_token(subject, call, which):
    unserved = _with(call.arguments["token_times"], which % len(call.arguments["token_times"]), [])
    leaves(subject, call.having(token_times=unserved))


@requirement(spec.METR_29, call=workloads(count=some, requests=(2, 3, 5)), share=0.2)
def test_the_lists_of_a_workload_that_is_refused_are_left_as_they_were(subject, call):
    leaves(subject, call.having(**_spoilt(call, "cached", len(call.arguments["arrivals"]) - 1)))


@requirement(spec.METR_30, first=workloads(), second=workloads(), share=0.3)
def test_other_workloads_in_between_change_nothing(subject, first, second):
    depends_on_arguments_alone(subject, first, second)


@requirement(
    spec.METR_30,
    call=workloads(count=some, requests=(2, 3, 5)),
    bad=among(["order", "cached", "never", "minus"]),
    share=0.3,
)
def test_a_workload_that_was_refused_changes_nothing(subject, call, bad):
    last = len(call.arguments["arrivals"]) - 1
    subject.observe(call.having(**_spoilt(call, bad, last)))
    subject.agrees(call)


@requirement(spec.METR_31, call=workloads(), share=0.3)
def test_times_of_many_requests_may_be_integers(subject, call):
    subject.agrees(whole_seconds(call))


@requirement(spec.METR_31, call=workloads(), which=among(["arrivals", "tokens", "first"]), share=0.3)
def test_some_of_the_times_of_many_requests_may_be_integers(subject, call, which):
    subject.agrees(partly_whole_of_many(call, which))


def parts(subject, call, *names):
    """The parts of the result, which these are among."""
    got = subject.parts(call)
    for name in names:
        if name not in got:
            raise Nonconformance(f"{name} is missing; it came with {', '.join(got)}", call)
    return got


def has(subject, call, *names):
    """These parts of the result are right; the others are other requirements' matter."""
    got, answers = parts(subject, call, *names), subject.answer(call)
    for part in names:
        answer: Answer = answers[part]
        subject.compare(call, got[part], answer, part=part)


def leaves(subject, call):
    """No list is another one after the call: what is given of it, or whether it is refused, is another requirement's matter."""
    if changed := subject.observe(call).changed:
        raise Nonconformance(f"the call changes {', '.join(changed)}", call)


def _spoilt(call, bad, which):
    """A workload that is spoilt: a list too short or too long, or one request's times out of order, or its counts."""
    arguments = call.arguments
    at = which % len(arguments["arrivals"])
    times, prompt = arguments["token_times"][at], arguments["prompt_tokens"][at]
    match bad:
        case "order":
            return {"token_times": _with(arguments["token_times"], at, [times[-1] + 1.0, *times])}
        case "inside":
            # The first is the first still, and the last the last.
            return {"token_times": _with(arguments["token_times"], at, [times[0], times[-1] + 1.0, *times])}
        case "early":
            return {"arrivals": _with(arguments["arrivals"], at, times[0] + 1.0)}
        case "never":
            last = (math.inf, math.nan)[which % 2]
            return {"token_times": _with(arguments["token_times"], at, [*times[:-1], last])}
        case "no arrival":
            return {"arrivals": _with(arguments["arrivals"], at, (math.nan, -math.inf)[which % 2])}
        case "cached":
            return {"cached_tokens": _with(arguments["cached_tokens"], at, prompt + 1)}
        case "minus":
            return {"cached_tokens": _with(arguments["cached_tokens"], at, -1)}
        case "prompt":
            # Cached in full, as far as a comparison of both goes.
            return {name: _with(arguments[name], at, -prompt) for name in ("prompt_tokens", "cached_tokens")}
    given = arguments[bad]
    return {bad: given[:-1] if which % 2 else [*given, given[-1]]}


def _with(entries, at, entry):
    """The list with another entry there."""
    return [*entries[:at], entry, *entries[at + 1 :]]
