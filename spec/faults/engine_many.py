"""Many requests in a step; many pages, ids or guesses of one: what buffers and loops of eight or sixteen have no room for."""

from __future__ import annotations

from inferspec.spec import engine as spec
from inferspec.spec.changes import engine_many as changes
from inferspec.spec.contract import Fault
from inferspec.spec.faults.defining import named
from inferspec.spec.faults.sources import TIRED

_fault = named("engine")

FAULTS: tuple[Fault, ...] = (
    _fault(
        "guesses-of-eight-requests",
        "guesses for requests past the eighth of a step count as right",
        spec.ENG_10,
        changes.by_place(changes.unchecked),
        TIRED,
    ),
    _fault(
        "right-guesses-of-eight-requests",
        "guesses for requests past the eighth of a step are all verified by their first logits",
        spec.ENG_11,
        changes.by_place(changes.row_of_the_first_guess),
        TIRED,
    ),
    _fault(
        "eight-ids-in-a-step",
        "where more than eight ids of a request come in a step those past the eighth are the eighth",
        spec.ENG_11,
        changes.EIGHT_GIVEN,
        TIRED,
    ),
    _fault(
        "eight-guesses-at-most",
        "no more than eight ids are guessed, however many are asked for",
        spec.ENG_41,
        {"most_guesses": changes.eight_at_most},
        TIRED,
    ),
    _fault(
        "ends-of-eight-requests",
        "ids that end requests past the eighth of a step are not looked at",
        spec.ENG_14,
        changes.by_place(changes.endless),
        TIRED,
    ),
    _fault(
        "logits-of-eight-requests",
        "logits of requests past the eighth of a step are those of the eighth",
        spec.ENG_36,
        changes.by_place(changes.logits_of_the_eighth),
        TIRED,
    ),
    _fault(
        "order-of-sums-of-many",
        "the last bits are others where more than four requests run",
        spec.ENG_37,
        {"called": changes.other_sums_of_many},
        "batch-invariant inference; PROPERTIES X11",
    ),
    _fault(
        "three-preempted",
        "of more than three that are preempted in a step the others lose their output",
        spec.ENG_05,
        {"admit": changes.counts_the_preempted, "preempt": changes.three_preempted},
        TIRED,
    ),
    _fault(
        "last-row-moved-up",
        "where one of more than eight is cancelled the last takes its row, and reads its pages",
        spec.ENG_23,
        {"cancel": changes.last_moved_up, "table": changes.table_of_who_left},
        "PROPERTIES CB4",
    ),
    _fault(
        "rows-past-eight-keep-pages",
        "a request past the eighth of those that run keeps its pages when it is cancelled",
        spec.ENG_24,
        {"cancel": changes.rows_past_eight_keep_pages},
        TIRED,
    ),
    _fault(
        "failed-step-of-many",
        "a step that fails takes the last id of requests past the eighth",
        spec.ENG_25,
        {"feed": changes.last_ids_lost_past_eight},
        TIRED,
    ),
    _fault(
        "budget-of-six-prompts",
        "of the prompts that a step computes the budget counts six",
        spec.ENG_42,
        {"plan": changes.six_prompts_counted},
        TIRED,
    ),
    _fault(
        "sixteen-pages-forgotten",
        "of more than sixteen pages that a step takes the others are hit as if they held what they did",
        spec.ENG_08,
        {"step": changes.counts_the_taken, "forget": changes.sixteen_forgotten},
        TIRED,
    ),
    _fault(
        "sixteen-ids-cached",
        "pages behind the sixteenth id of an output are cached as those of sixteen ids before",
        spec.ENG_09,
        {"publish": changes.pages_of_sixteen_ids, "forget": changes.forgets_all_of_a_page},
        TIRED,
    ),
)
