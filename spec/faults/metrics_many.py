"""Mistakes in metrics that show in what is refused, in requests that are alike, and in times of which some are integers."""

from __future__ import annotations

from inferspec.spec.changes import metrics as changes
from inferspec.spec.contract import Fault
from inferspec.spec.faults.sources import TIRED
from inferspec.spec.metrics import METR_10, METR_15, METR_24, METR_28, METR_29, METR_30, METR_31

FAULTS: tuple[Fault, ...] = (
    Fault(
        "metrics-gaps-before-the-end-of-time",
        "the gaps of a request of which a time is not finite are among the next one's",
        METR_10,
        {"guard": changes.keeps_gaps_before_the_end_of_time, "respond": changes.with_kept_gaps},
        "PROPERTIES ME5",
    ),
    Fault(
        "metrics-arrival-in-the-list-while-checked",
        "the arrival stays in front of the times of a request that was refused",
        METR_15,
        {"guard": changes.arrival_in_the_list_while_checked},
        "PROPERTIES X6",
    ),
    Fault(
        "metrics-alike-once",
        "of requests that are alike one counts",
        METR_24,
        {"emitted": changes.alike_once},
        TIRED,
    ),
    Fault(
        "metrics-ends-of-many-finite",
        "of many requests a NaN between the first time and the last is taken",
        METR_28,
        {"guard": changes.each_checked_by(changes.ends_finite)},
        "PROPERTIES X9",
    ),
    Fault(
        "metrics-jitter-of-many-allowed",
        "times of many requests that decrease by less than a millisecond are taken",
        METR_28,
        {"guard": changes.each_checked_by(changes.jitter_allowed)},
        TIRED,
    ),
    Fault(
        "metrics-arrival-jitter-of-many",
        "of many requests a token less than a millisecond before the arrival is taken",
        METR_28,
        {"guard": changes.each_checked_by(changes.arrival_jitter)},
        TIRED,
    ),
    Fault(
        "metrics-unchecked-where-none-is-served",
        "where no request has a token nothing is looked at",
        METR_28,
        {"guard": changes.unchecked_without("token_times")},
        "PROPERTIES X9",
    ),
    Fault(
        "metrics-unchecked-without-arrivals",
        "where there is no arrival no other list is looked at",
        METR_28,
        {"guard": changes.unchecked_without("arrivals"), "served": changes.none_without_arrivals},
        "PROPERTIES X9",
    ),
    Fault(
        "metrics-arrivals-taken-while-checked",
        "the arrivals of a workload that was refused are gone",
        METR_29,
        {"guard": changes.arrivals_taken_while_checked},
        "PROPERTIES X6",
    ),
    Fault(
        "metrics-tokens-before-counts",
        "tokens of a workload whose counts were refused are counted with the next",
        METR_30,
        {"guard": changes.counts_tokens_before_prompts, "respond": changes.with_kept_requests},
        "PROPERTIES ME5",
    ),
    Fault(
        "metrics-ends-like-arrivals",
        "last times are kept in the type of the arrivals",
        METR_31,
        {"span": changes.ends_like_arrivals},
        "numpy.empty_like",
    ),
)
