"""A run whose loop is not that of steps, and lacks something of it."""

from __future__ import annotations

from inferspec.spec import engine as spec
from inferspec.spec.changes import engine_runs as changes
from inferspec.spec.contract import Change, Fault, Requirement
from inferspec.spec.faults.defining import named
from inferspec.spec.faults.sources import TIRED

_fault = named("engine")


def _in_a_run(name: str, mistake: str, kills: Requirement, change: Change) -> Fault:
    return _fault(name, mistake, kills, {"run": changes.notes_a_run, **change}, TIRED)


FAULTS: tuple[Fault, ...] = (
    _fault(
        "run-without-who-asks-for-none",
        "run leaves out a request that asks for no id",
        spec.ENG_19,
        {"run": changes.without_who_asks_for_none},
        TIRED,
    ),
    _in_a_run(
        "run-loses-the-output-of-the-preempted",
        "who is preempted in a run goes on from the prompt alone",
        spec.ENG_19,
        {"preempt": changes.output_lost_in_a_run},
    ),
    _in_a_run(
        "run-takes-guesses-unchecked",
        "all guesses count as right in a run",
        spec.ENG_19,
        {"settle": changes.unchecked_in_a_run},
    ),
    _in_a_run(
        "run-sees-no-end-among-guesses",
        "in a run an id that comes with guesses ends nothing",
        spec.ENG_19,
        {"settle": changes.endless_in_a_run},
    ),
    _in_a_run(
        "run-keeps-no-logits",
        "the logits of an id that a run gives are not kept",
        spec.ENG_36,
        {"emit": changes.keeps_no_logits_in_a_run},
    ),
    _in_a_run(
        "run-by-arrival",
        "a run serves who waits in the order of arrival",
        spec.ENG_16,
        {"admit": changes.by_arrival_in_a_run},
    ),
    _in_a_run(
        "run-lets-all-run",
        "in a run as many requests run as there are pages for",
        spec.ENG_43,
        {"admit": changes.all_in_a_run},
    ),
    _in_a_run(
        "run-teaches-nothing",
        "what a run computes is not hit",
        spec.ENG_38,
        {"publish": changes.publishes_in_steps_alone},
    ),
    _fault(
        "run-that-fails-starts-over",
        "when a run fails, all that is unfinished begins anew",
        spec.ENG_25,
        {"run": changes.starts_over},
        TIRED,
    ),
    _fault(
        "run-that-fails-cancels-the-preempted",
        "when a run fails, those who wait with ids are cancelled",
        spec.ENG_25,
        {"run": changes.cancels_the_preempted},
        TIRED,
    ),
)
