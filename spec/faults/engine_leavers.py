"""Requests that are cancelled, refused or preempted, and steps that fail: what they, or others, lose by it."""

from __future__ import annotations

from inferspec.spec import engine as spec
from inferspec.spec.changes import engine_leavers as changes
from inferspec.spec.contract import Fault
from inferspec.spec.faults.defining import named
from inferspec.spec.faults.sources import TIRED

_fault = named("engine")

FAULTS: tuple[Fault, ...] = (
    _fault(
        "place-lost-with-a-step",
        "who is in a step that fails waits again, behind those that came later",
        spec.ENG_25,
        {**changes.after_a_failure(changes.back_in_the_queue), "order": changes.by_arrival_in_the_queue},
        "PROPERTIES SC3, PG7",
    ),
    _fault(
        "priority-lost-with-a-step",
        "who is in a step that fails has no priority any more",
        spec.ENG_25,
        changes.after_a_failure(changes.priorities_lost),
        "PROPERTIES SC3, PG7",
    ),
    _fault(
        "ends-lost-with-a-step",
        "what ends a request is forgotten when a step fails that it is in",
        spec.ENG_25,
        changes.after_a_failure(changes.ends_lost),
        "PROPERTIES CB3, PG7",
    ),
    _fault(
        "one-more-for-each-failure",
        "a step that fails counts a request out that goes on",
        spec.ENG_25,
        {**changes.after_a_failure(changes.one_fewer), "admit": changes.admits_by_a_count},
        "PROPERTIES SC5, PG7",
    ),
    _fault(
        "one-more-for-each-that-waits",
        "a request that waits and is cancelled is counted out of those that run",
        spec.ENG_43,
        {"cancel": changes.counted_out_when_it_waits, "admit": changes.admits_by_a_count},
        "PROPERTIES SC5, CB5",
    ),
    _fault(
        "one-more-for-each-cancelled",
        "a request that runs and is cancelled is counted out twice",
        spec.ENG_43,
        {"cancel": changes.counted_out_twice, "admit": changes.admits_by_a_count},
        "PROPERTIES SC5, CB5",
    ),
    _fault(
        "one-more-for-each-preempted",
        "a request that is preempted is counted out then, and when it ends",
        spec.ENG_43,
        {"preempt": changes.counted_out_when_preempted, "admit": changes.admits_by_a_count},
        "PROPERTIES SC5, SC1",
    ),
    _fault(
        "resumed-not-counted",
        "a request that was preempted and runs again is not counted among those that run",
        spec.ENG_43,
        {"start": changes.noted_as_resumed, "admit": changes.counts_without_the_resumed},
        "PROPERTIES SC5, SC1",
    ),
    _fault(
        "ends-of-the-cancelled",
        "when a request is cancelled those behind it move up, and what ends them does not",
        spec.ENG_14,
        changes.rows_stay("eos"),
        "https://github.com/vllm-project/vllm/pull/43894; PROPERTIES CB4",
    ),
    _fault(
        "times-of-the-cancelled",
        "when a request is cancelled those behind it move up, and their times do not",
        spec.ENG_32,
        changes.rows_stay("arrival", "times"),
        "PROPERTIES ME1, CB4",
    ),
    _fault(
        "logits-of-the-cancelled",
        "when a request is cancelled those behind it move up, and their logits do not",
        spec.ENG_36,
        changes.rows_stay("logits"),
        "PROPERTIES CB4",
    ),
    _fault(
        "one-more-for-each-refused",
        "a request that is refused is counted out of those that run",
        spec.ENG_43,
        {"add": changes.counts_the_refused, "admit": changes.admits_by_a_count},
        "PROPERTIES SC5, PG5",
    ),
    _fault(
        "hits-kept-by-a-failed-step",
        "who was admitted by a step that fails waits again, and what it shares is never free again",
        spec.ENG_25,
        changes.admissions_undone(changes.hits_kept),
        "PROPERTIES PG7, PC6",
    ),
    _fault(
        "taken-in-a-failed-step-still-known",
        "pages that a step takes, which then fails, can still be hit for what they held",
        spec.ENG_25,
        {"step": changes.still_known},
        TIRED,
    ),
    _fault(
        "preempted-by-a-failed-step-keep-freed-pages",
        "whom the second step that fails has preempted runs on in its pages, which are free",
        spec.ENG_25,
        {"step": changes.victims_back},
        TIRED,
    ),
    _fault(
        "cancelled-when-preempted-counted-out-twice-with-a-draft",
        "with a draft a preempted request that is cancelled counts as two that are finished",
        spec.ENG_20,
        {"cancel": changes.counts_out_the_preempted, "unfinished": changes.unfinished_by_a_count},
        TIRED,
    ),
    _fault(
        "hits-left-twice-by-a-failed-step",
        "who was admitted by a step that fails waits again, and gives what it shares back twice",
        spec.ENG_25,
        changes.admissions_undone(changes.hits_left_twice),
        "PROPERTIES PG7, PC6",
    ),
    _fault(
        "pages-of-the-spoilt",
        "a request that is cancelled after a step has failed that it was in keeps its pages",
        spec.ENG_24,
        {**changes.after_a_failure(changes.spoilt), "cancel": changes.pages_of_the_spoilt_kept},
        "PROPERTIES PG7",
    ),
    _fault(
        "logits-lost-when-preempted",
        "a preempted request has no logits until it runs again",
        spec.ENG_36,
        {"preempt": changes.logits_left_with_the_pages},
        "PROPERTIES SC1, CB4",
    ),
    _fault(
        "preempted-first",
        "who is preempted goes first, whatever the priority of those that wait",
        spec.ENG_16,
        {"preempt": changes.noted_as_preempted, "order": changes.the_preempted_first},
        "PROPERTIES SC3",
    ),
    _fault(
        "hits-arrive-when-admitted",
        "TTFT of a request that is hit is from when it was admitted",
        spec.ENG_32,
        {"start": changes.arrives_with_its_hits},
        "PROPERTIES ME1",
    ),
)
