"""Which request goes first: ranks, and arrivals where they are equal."""

from __future__ import annotations

from inferspec.spec import engine as spec
from inferspec.spec.changes import engine_order as changes
from inferspec.spec.contract import Fault
from inferspec.spec.faults.defining import named
from inferspec.spec.faults.serving import VLLM
from inferspec.spec.faults.sources import TIRED

_fault = named("engine")

FAULTS: tuple[Fault, ...] = (
    _fault("by-arrival", "priorities are ignored", spec.ENG_16, {"order": changes.by_arrival}, "PROPERTIES SC3"),
    _fault(
        "preempts-the-first",
        "of those that run the one of the largest priority gives way",
        spec.ENG_57,
        {"victim": changes.highest_victim},
        "PROPERTIES SC3",
    ),
    _fault(
        "preempts-the-latest",
        "of those that run the one that came last gives way, whatever its priority",
        spec.ENG_57,
        {"victim": changes.latest_victim_of_all},
        "https://github.com/GeeeekExplorer/nano-vllm",
    ),
    _fault(
        "small-ones-overtake",
        "a request for which there are no pages is passed over by one for which there are",
        spec.ENG_16,
        {"admit": changes.small_ones_overtake},
        "PROPERTIES SC3",
    ),
    _fault(
        "small-ones-overtake-the-preempted",
        "a preempted request for which there are no pages is passed over by one for which there are",
        spec.ENG_16,
        {"admit": changes.small_ones_overtake_the_preempted},
        f"{VLLM}/issues/41951; PROPERTIES SC3",
    ),
    _fault(
        "smaller-first",
        "the smaller priority goes first",
        spec.ENG_16,
        {"order": changes.smaller_first},
        "PROPERTIES SC3",
    ),
    _fault(
        "latest-first",
        "among equal priorities the latest goes first",
        spec.ENG_16,
        {"order": changes.latest_first},
        f"{VLLM}/issues/41951",
    ),
    _fault(
        "by-text",
        "among equal priorities requests go in the order of their names, 10 before 2",
        spec.ENG_16,
        {"order": changes.by_text},
        "PROPERTIES SC3",
    ),
    _fault(
        "heap-as-it-lies",
        "of several requests that begin at once only the first is the one that goes first",
        spec.ENG_16,
        {"admit": changes.heap_as_it_lies},
        "a heap that is read as if it were sorted",
    ),
    _fault(
        "counts-arrivals-anew",
        "who comes when a request has just ended goes before those that wait",
        spec.ENG_16,
        {"queue": changes.counts_arrivals, "order": changes.by_count, "end": changes.counts_anew},
        "PROPERTIES SC3",
    ),
    _fault(
        "priority-lost",
        "a preempted request loses its priority",
        spec.ENG_16,
        {"preempt": changes.priority_lost},
        "PROPERTIES SC1, SC3",
    ),
    _fault(
        "preempted-come-again",
        "a preempted request waits behind those that came before it was preempted",
        spec.ENG_16,
        {"queue": changes.counts_arrivals, "order": changes.by_count, "preempt": changes.arrives_again},
        f"{VLLM}/issues/41951; PROPERTIES SC3",
    ),
    _fault(
        "preempted-in-their-prompt-come-again",
        "a request that is preempted before it has an id waits behind those that came before that",
        spec.ENG_16,
        {"queue": changes.counts_arrivals, "order": changes.by_count, "preempt": changes.arrives_again_in_its_prompt},
        f"{VLLM}/issues/41951; PROPERTIES SC3",
    ),
    _fault(
        "new-ones-first",
        "requests that have given nothing yet go before a preempted one that came first",
        spec.ENG_16,
        {"order": changes.new_ones_first},
        "PROPERTIES SC3",
    ),
    _fault(
        "sorted-once",
        "requests that come after the first step wait in the order in which they came",
        spec.ENG_16,
        {"admit": changes.begins, "queue": changes.sorted_once},
        "PROPERTIES SC3",
    ),
)


RANKS: tuple[Fault, ...] = (
    _fault(
        "rank-in-a-byte",
        "priorities have 8 bits",
        spec.ENG_16,
        {"order": changes.rank_in_a_byte},
        TIRED,
    ),
    _fault(
        "rank-in-float32",
        "priorities are compared in float32",
        spec.ENG_16,
        {"order": changes.rank_in_float32},
        TIRED,
    ),
    _fault(
        "rank-within-32-bits",
        "priorities past 32 bits are all the same",
        spec.ENG_16,
        {"order": changes.rank_within_32_bits},
        TIRED,
    ),
    _fault(
        "four-ranks",
        "there are four priorities, from 0 to 3",
        spec.ENG_16,
        {"order": changes.ranks_from_0_to_3},
        TIRED,
    ),
    _fault(
        "rank-and-arrival-in-one",
        "a hundred requests that came before weigh as much as a priority",
        spec.ENG_16,
        {"order": changes.rank_and_arrival_in_one},
        TIRED,
    ),
)
