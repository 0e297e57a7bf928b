"""What is forgotten in the loop of its own that serves where there is a draft."""

from __future__ import annotations

from inferspec.spec import engine as spec
from inferspec.spec.changes import engine_drafts as changes
from inferspec.spec.changes import engine_leavers as leavers
from inferspec.spec.changes import engine_order as order
from inferspec.spec.changes import engine_pages as pages
from inferspec.spec.changes import engine_requests as requests
from inferspec.spec.contract import Fault
from inferspec.spec.faults.defining import named

_fault = named("engine")

OWN_LOOP = "https://github.com/jundot/omlx/pull/91 (a step of its own)"
UNBUDGETED = "https://github.com/vllm-project/vllm-metal/pull/447 (what it leaves out where there is a draft)"

FAULTS: tuple[Fault, ...] = (
    _fault(
        "prompts-at-once-with-a-draft",
        "where there is a draft prompts are computed at once",
        spec.ENG_42,
        changes.with_a_draft({"share_of": pages.prompts_at_once}),
        UNBUDGETED,
    ),
    _fault(
        "budget-for-each-with-a-draft",
        "where there is a draft every prompt has max_prefill_tokens of its own in a step",
        spec.ENG_42,
        changes.with_a_draft({"share_of": pages.budget_for_each}),
        UNBUDGETED,
    ),
    _fault(
        "computed-again-at-once-with-a-draft",
        "where there is a draft what a preempted request had is computed again in one step",
        spec.ENG_42,
        changes.with_a_draft({"share_of": pages.computed_again_at_once}),
        UNBUDGETED,
    ),
    _fault(
        "no-priorities-with-a-draft",
        "where there is a draft priorities are ignored",
        spec.ENG_16,
        changes.with_a_draft({"add": changes.ranks_dropped}),
        OWN_LOOP,
    ),
    _fault(
        "latest-first-with-a-draft",
        "where there is a draft the latest of those that wait goes first",
        spec.ENG_16,
        changes.with_a_draft({"queue": changes.to_the_front}),
        OWN_LOOP,
    ),
    _fault(
        "small-ones-overtake-with-a-draft",
        "where there is a draft a request for which there are no pages is passed over by one for which there are",
        spec.ENG_16,
        changes.with_a_draft({"admit": order.small_ones_overtake}),
        OWN_LOOP,
    ),
    _fault(
        "small-ones-overtake-the-preempted-with-a-draft",
        "where there is a draft a preempted request for which there are no pages is passed over by one for which there are",
        spec.ENG_16,
        changes.with_a_draft({"preempt": order.notes_who_gives_way, "admit": order.small_ones_overtake_who_gave_way}),
        OWN_LOOP,
    ),
    _fault(
        "preempted-first-with-a-draft",
        "where there is a draft a preempted request goes before all that wait, of a larger priority too",
        spec.ENG_16,
        {**changes.with_a_draft({"preempt": leavers.noted_as_preempted}), "order": leavers.the_preempted_first},
        OWN_LOOP,
    ),
    _fault(
        "cancelled-when-preempted-comes-back-with-a-draft",
        "where there is a draft a preempted request that is cancelled goes on all the same",
        spec.ENG_22,
        changes.with_a_draft({"cancel": requests.waiting_alone}),
        OWN_LOOP,
    ),
    _fault(
        "one-more-for-each-cancelled-with-a-draft",
        "where there is a draft a request that runs and is cancelled is counted out twice",
        spec.ENG_43,
        changes.with_a_draft({"cancel": leavers.counted_out_twice, "admit": leavers.admits_by_a_count}),
        OWN_LOOP,
    ),
    _fault(
        "caches-anyway-with-a-draft",
        "where there is a draft pages are hit without prefix_caching too",
        spec.ENG_47,
        changes.with_a_draft({"hits": pages.hits_anyway}),
        OWN_LOOP,
    ),
    _fault(
        "no-hits-with-a-draft",
        "where there is a draft what was computed is computed again",
        spec.ENG_38,
        changes.with_a_draft({"hits": pages.no_hits}),
        "https://github.com/vllm-project/vllm-metal/pull/630",
    ),
    _fault(
        "logits-lost-when-preempted-with-a-draft",
        "where there is a draft a preempted request has no logits until it runs again",
        spec.ENG_36,
        changes.with_a_draft({"preempt": leavers.logits_left_with_the_pages}),
        OWN_LOOP,
    ),
    _fault(
        "guesses-verified-in-bfloat16",
        "what guesses are compared with is chosen by logits that are rounded to bfloat16",
        spec.ENG_52,
        {"settle": changes.guesses_verified_in_bfloat16},
        "https://github.com/vllm-project/vllm-metal/commit/12ee169",
    ),
)
