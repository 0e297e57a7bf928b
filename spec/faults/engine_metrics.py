"""Metrics of requests: when their ids come out, and what is told of that."""

from __future__ import annotations

from inferspec.spec import engine as spec
from inferspec.spec.changes import engine_metrics as changes
from inferspec.spec.contract import Fault
from inferspec.spec.faults.defining import named
from inferspec.spec.faults.serving import VLLM
from inferspec.spec.faults.sources import TIRED

_fault = named("engine")

FAULTS: tuple[Fault, ...] = (
    _fault(
        "stamps-chunks",
        "TTFT is stamped at the first chunk of the prompt",
        spec.ENG_32,
        {"settle": changes.stamps_chunks, "ttft": changes.first_chunk},
        f"{VLLM}/issues/15106",
    ),
    _fault(
        "arrives-when-it-runs",
        "a request's time begins when it leaves the queue",
        spec.ENG_32,
        {"start": changes.arrives_when_it_runs},
        "PROPERTIES ME1",
    ),
    _fault(
        "arrives-with-the-last-step",
        "the clock is read once a step: a request that comes between two has come when the first was over",
        spec.ENG_32,
        {"add": changes.arrives_with_the_last_step, "after": changes.notes_the_end},
        "PROPERTIES ME1",
    ),
    _fault(
        "gaps-of-all",
        "a gap is counted from the last id of any request",
        spec.ENG_32,
        {"stamp": changes.gaps_of_all, "itl": changes.noted_gaps},
        "https://github.com/exo-explore/exo/commit/6ee673147",
    ),
    _fault(
        "over-the-limit",
        "TPOT is over max_tokens",
        spec.ENG_32,
        {"tpot": changes.over_the_limit},
        "https://github.com/sgl-project/sglang/issues/10746",
    ),
    _fault(
        "times-lost",
        "a preempted request's times begin anew",
        spec.ENG_32,
        {"preempt": changes.times_lost},
        "PROPERTIES ME3",
    ),
    _fault(
        "stamped-at-the-start",
        "ids are stamped with the time at which their step began",
        spec.ENG_45,
        {"admit": changes.notes_the_start, "stamp": changes.stamps_the_start},
        "PROPERTIES ME1",
    ),
    _fault(
        "run-stamped-at-its-start",
        "all ids of a run are stamped with the time at which it began",
        spec.ENG_45,
        {"run": changes.run_in_no_time},
        "PROPERTIES ME1, ME3",
    ),
    _fault(
        "run-stamped-at-its-end",
        "all ids of a run are stamped with the time at which it was over",
        spec.ENG_45,
        {"run": changes.stamps_when_it_has_run},
        "PROPERTIES ME1, ME3",
    ),
    _fault(
        "same-time-counts-once",
        "an id that has the time of the one before it, of another step, has none of its own",
        spec.ENG_33,
        {"stamp": changes.times_that_differ},
        "PROPERTIES ME1",
    ),
    _fault(
        "no-time-is-none",
        "a TTFT or a TPOT of 0 is None",
        spec.ENG_33,
        {"metrics": changes.no_time_is_none},
        "PROPERTIES ME1",
    ),
    _fault(
        "gap-for-each",
        "the time to the first id is among the gaps",
        spec.ENG_33,
        {"itl": changes.a_gap_for_each},
        f"{VLLM}/issues/7242",
    ),
    _fault("over-all", "TPOT is over all ids", spec.ENG_33, {"tpot": changes.over_all}, "PROPERTIES ME1"),
    _fault(
        "from-the-arrival",
        "TPOT has the time to the first id in it",
        spec.ENG_33,
        {"tpot": changes.from_the_arrival},
        "https://github.com/lmstudio-ai/mlx-engine/commit/a385fb5",
    ),
    _fault("none-is-zero", "TPOT of one id is 0", spec.ENG_33, {"tpot": changes.none_is_zero}, "PROPERTIES ME1"),
)


TIMES: tuple[Fault, ...] = (
    _fault(
        "metrics-of-the-last-32",
        "there are no metrics of any but the last 32 requests",
        spec.ENG_32,
        {"metrics": changes.of_the_last_32},
        TIRED,
    ),
    _fault(
        "0-before-the-first-id",
        "TTFT and E2EL are 0 before the first id",
        spec.ENG_32,
        {"metrics": changes.zero_before_the_first_id},
        TIRED,
    ),
    _fault(
        "untold-before-the-second-id",
        "there are no metrics of a request that has one id",
        spec.ENG_32,
        {"metrics": changes.untold_before(2)},
        TIRED,
    ),
    _fault(
        "64-times",
        "the times of all ids but the first and the last 63 are lost",
        spec.ENG_32,
        {"stamp": changes.the_last_64_times},
        TIRED,
    ),
    _fault(
        "times-in-float32",
        "times are kept in float32",
        spec.ENG_32,
        {"stamp": changes.times_in_float32},
        TIRED,
    ),
    _fault(
        "times-in-milliseconds",
        "times are rounded to milliseconds",
        spec.ENG_32,
        {"stamp": changes.times_in_milliseconds},
        TIRED,
    ),
    _fault(
        "first-time-once-resumed",
        "the time of a preempted request's first id is that of the first one after it",
        spec.ENG_32,
        {"preempt": changes.first_time_once_resumed, "stamp": changes.stamps_the_first_again},
        f"{VLLM}/pull/13169",
    ),
    _fault(
        "end-among-guesses-has-a-time",
        "an id that ends a request among guesses has a time, although it does not come out",
        spec.ENG_32,
        {"emit": changes.stamps_an_end_among_guesses},
        TIRED,
    ),
)
