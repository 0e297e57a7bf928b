"""Mistakes in schedulers, and other honest ways to schedule."""

from __future__ import annotations

from inferspec.spec import scheduler as spec
from inferspec.spec.changes import scheduler as changes
from inferspec.spec.changes import scheduler_chunks as chunks
from inferspec.spec.changes import scheduler_requests as requests
from inferspec.spec.changes import scheduler_steps as steps
from inferspec.spec.changes import scheduler_ways as ways
from inferspec.spec.contract import Change, Fault, Variant
from inferspec.spec.ends import KEEPING
from inferspec.spec.faults import (
    scheduler_chunks,
    scheduler_order,
    scheduler_preemption,
    scheduler_requests,
    scheduler_steps,
)
from inferspec.spec.faults.defining import named
from inferspec.spec.faults.serving import COURSE, METAL, MLX_LM, POST, VLLM
from inferspec.spec.faults.sources import TIRED

_fault = named("scheduler")


def _kept(name: str, text: str, change: Change) -> Fault:
    """A mistake of who keeps the id that ends a request."""
    return Fault(f"scheduler-kept-end-{name}", text, spec.SCHED_02, change, TIRED, KEEPING)


FAULTS: tuple[Fault, ...] = (
    _kept("dropped", "the id that ends a request does not come out", {"advance": changes.drops_eos}),
    _kept(
        "dropped-at-the-limit",
        "the id that ends a request does not come out as the last of max_tokens ids",
        {"advance": changes.drops_eos_at_the_limit},
    ),
    _kept(
        "dropped-as-the-first",
        "the id that ends a request does not come out as its first id",
        {"advance": changes.drops_eos_after_the_prompt},
    ),
    _kept("twice", "the id that ends a request comes out twice", {"advance": changes.emits_eos}),
    _kept("and-one-more", "one id comes out after the one that ends a request", {"ends": changes.ends_one_later}),
    _fault(
        "ids-of-decodes-first",
        "prefills get the ids of decodes in a step of both",
        spec.SCHED_01,
        {"update": changes.decodes_first},
        f"{COURSE}/05972ff",
    ),
    _fault(
        "blocks-in-a-byte",
        "block ids have 8 bits",
        spec.SCHED_01,
        {"chunk": chunks.blocks_in_a_byte},
        TIRED,
    ),
    _fault(
        "last-id-for-all",
        "every request of a step gets the id of the last one",
        spec.SCHED_01,
        {"update": changes.last_of_all},
        f"{METAL}/d20dd02; {MLX_LM}/d9846d37",
    ),
    _fault(
        "eos-emitted",
        "the id that ends a request comes out",
        spec.SCHED_02,
        {"advance": changes.emits_eos},
        "PROPERTIES CB3",
    ),
    _fault(
        "eos-of-the-resumed-emitted",
        "the id that ends a request comes out where it follows what was computed again",
        spec.SCHED_02,
        {"advance": changes.keeps_eos_of_the_resumed},
        TIRED,
    ),
    _fault(
        "late-eos-emitted",
        "the id that ends a request comes out where it follows eight others",
        spec.SCHED_02,
        {"advance": changes.keeps_a_late_eos},
        TIRED,
    ),
    _fault(
        "limit-plus-one", "max_tokens + 1 ids come out", spec.SCHED_02, {"done": changes.limit_past}, "PROPERTIES CB3"
    ),
    _fault(
        "limit-minus-one",
        "max_tokens - 1 ids come out",
        spec.SCHED_02,
        {"done": changes.limit_short},
        f"{COURSE}/05972ff",
    ),
    _fault(
        "limit-of-both",
        "max_tokens counts the prompt too",
        spec.SCHED_02,
        {"done": changes.limit_of_all},
        "PROPERTIES CB3",
    ),
    _fault(
        "first-id-unseen",
        "eos as the first id does not end a request",
        spec.SCHED_02,
        {"ends": changes.not_the_first},
        "seen in engines written from the nano-vLLM post",
    ),
    _fault(
        "ends-with-the-prompt",
        "a prompt that ends with an id of eos ends its request",
        spec.SCHED_02,
        {"ends": changes.ends_with_the_prompt},
        "PROPERTIES CB3",
    ),
    _fault(
        "stops-repeating",
        "an id that came sixteen times in a row ends a request",
        spec.SCHED_02,
        {"ends": changes.ends_with_repeats},
        "https://github.com/ollama/ollama/pull/3080 (on purpose); ollama 14117",
    ),
    _fault(
        "looped-ids-dropped",
        "an id that comes a third time in a row does not come out",
        spec.SCHED_02,
        {"generate": changes.drops_repeats},
        TIRED,
    ),
    _fault("end-of-zero", "the id 0 ends nothing", spec.SCHED_02, {"ends": changes.ends_but_for_zero}, TIRED),
    _fault(
        "one-eos", "only the first id of eos ends a request", spec.SCHED_02, {"ends": changes.one_eos}, "PROPERTIES CB3"
    ),
    _fault(
        "untold-at-eos",
        "update does not return a request that eos ends",
        spec.SCHED_03,
        {"advance": changes.untold_at_eos},
        "PROPERTIES CB2",
    ),
    _fault(
        "untold-as-another-gives-way",
        "nobody is told of who ends in a step that another one gives way for",
        spec.SCHED_03,
        {"update": changes.untold_as_another_gave_way},
        "https://github.com/jundot/omlx/issues/1622",
    ),
    _fault(
        "one-told", "update returns one request at most", spec.SCHED_03, {"update": changes.one_told}, "PROPERTIES CB2"
    ),
    *scheduler_chunks.FAULTS,
    *scheduler_steps.FAULTS,
    _fault(
        "never-fits",
        "a request that can never fit is accepted",
        spec.SCHED_26,
        {"check_fits": changes.unchecked},
        POST,
    ),
    *scheduler_chunks.STEPS_WITHOUT_UPDATES,
    _fault(
        "cancelled-told",
        "update returns a request that was cancelled meanwhile",
        spec.SCHED_32,
        {"update": changes.cancelled_told},
        "PROPERTIES CB2",
    ),
    _fault(
        "cancelled-told-while-others-wait",
        "update returns a request that was cancelled meanwhile, where others wait",
        spec.SCHED_32,
        {"update": changes.cancelled_told_while_others_wait},
        "PROPERTIES CB2",
    ),
    _fault(
        "strangers-cancelled",
        "a request that was never added is cancelled",
        spec.SCHED_34,
        {"check_known": changes.unchecked},
        "PROPERTIES X9",
    ),
    _fault(
        "empty-prompts",
        "an empty prompt is accepted",
        spec.SCHED_36,
        {"check_prompt": changes.unchecked},
        "PROPERTIES X9",
    ),
    _fault(
        "any-limit",
        "max_tokens below 1 is accepted",
        spec.SCHED_36,
        {"check_limit": changes.unchecked},
        "PROPERTIES X9",
    ),
    _fault(
        "known-by-identity",
        "a new request is refused where it has the identity of one that is gone",
        spec.SCHED_37,
        {"check_new": changes.known_by_identity},
        "https://docs.python.org/3/library/functions.html#id",
    ),
    _fault(
        "added-twice", "a request can be added again", spec.SCHED_37, {"check_new": changes.unchecked}, "PROPERTIES CB2"
    ),
    _fault(
        "any-step",
        "an update of another step is accepted",
        spec.SCHED_39,
        {"check_step": changes.unchecked},
        "PROPERTIES CB2",
    ),
    _fault(
        "same-step-without-ids",
        "a step of which no id came may be handed back again",
        spec.SCHED_39,
        {"check_step": changes.same_step_without_ids},
        "PROPERTIES CB2",
    ),
    _fault(
        "room-before-ids",
        "blocks of generated ids are known by zeros, with which room was asked for before these were known",
        spec.SCHED_07,
        {"makes_room": changes.room_before_ids},
        f"{VLLM}, placeholders of asynchronous scheduling",
    ),
    _fault(
        "first-id-again",
        "blocks of generated ids are known by the first of these again and again",
        spec.SCHED_07,
        {"makes_room": changes.first_id_again},
        "PROPERTIES PC3",
    ),
    _fault(
        "any-number",
        "entries that are missing or too many are not noticed",
        spec.SCHED_40,
        {"check_number": changes.unchecked},
        TIRED,
    ),
    _fault(
        "none-sampled",
        "None is accepted for a chunk that samples",
        spec.SCHED_41,
        {"check_sampled": changes.unchecked},
        "PROPERTIES X9",
    ),
    _fault(
        "id-unsampled",
        "an id is accepted for a chunk that does not sample",
        spec.SCHED_41,
        {"check_unsampled": changes.unchecked},
        "PROPERTIES CP3",
    ),
    _fault(
        "no-limits-at-all",
        "a scheduler that may do nothing is made",
        spec.SCHED_45,
        {"guard": changes.unchecked},
        "PROPERTIES X9",
    ),
    _fault(
        "ids-of-128-rows",
        "of more than 128 chunks in a step those behind get the ids of the first ones",
        spec.SCHED_01,
        {"update": changes.ids_of_128_rows},
        TIRED,
    ),
    _fault(
        "tables-of-64-blocks",
        "a chunk names no more than 64 blocks",
        spec.SCHED_01,
        {"chunk": chunks.tables_of_64},
        TIRED,
    ),
    _fault(
        "256-ids",
        "a request ends after 256 ids whatever its limit",
        spec.SCHED_01,
        {"done": changes.at_most_256_ids},
        TIRED,
    ),
    _fault(
        "eight-eos",
        "only the first eight ids of eos end a request",
        spec.SCHED_02,
        {"ends": changes.eight_ends},
        TIRED,
    ),
    _fault(
        "ends-in-16-bits",
        "ids of eos are compared in 16 bits",
        spec.SCHED_02,
        {"ends": changes.ends_in_16_bits},
        "PROPERTIES X8",
    ),
    _fault(
        "tokens-of-16-bits",
        "of the tokens of a chunk the high bits are lost",
        spec.SCHED_05,
        {"chunk": chunks.tokens_of_16_bits},
        TIRED,
    ),
    _fault(
        "known-by-16-bits",
        "prompts whose ids have the same low 16 bits are taken for one",
        spec.SCHED_07,
        {"allocate": chunks.known_by_16_bits},
        TIRED,
    ),
    _fault(
        "ends-of-the-last",
        "a request without eos ends at an id that ends the one before it in the step",
        spec.SCHED_02,
        {"ends": changes.ends_of_the_last},
        "PROPERTIES CB3, CB4",
    ),
    _fault(
        "tries-five-times",
        "requests of five void steps in a row are finished as they are",
        spec.SCHED_28,
        {"schedule": chunks.tries_five_times},
        TIRED,
    ),
    _fault(
        "computes-its-output-again",
        "a preempted request that is hit but for its last id computes its output again, into blocks that others read",
        spec.SCHED_08,
        {"allocate": chunks.computes_its_output_again},
        "PROPERTIES SC1, PC2",
    ),
    _fault(
        "budget-with-that-of-victims",
        "the prefills of a step that preempts have a token more for each that gives way",
        spec.SCHED_09,
        {"schedule": steps.budget_with_that_of_victims},
        "PROPERTIES SC2, SC5",
    ),
    _fault(
        "one-more-computed-again",
        "of what a preempted request computes again in chunks a token more is hit than was computed",
        spec.SCHED_29,
        {"mark": chunks.marks_one_more_again},
        "PROPERTIES PC5, SC1",
    ),
    _fault(
        "preempted-leaves-the-running",
        "a request that is cancelled when it was preempted is taken off the running ones a second time",
        spec.SCHED_10,
        {"close": steps.more_have_left, "has_place": steps.counted_as_running},
        "PROPERTIES SC5, CB2",
    ),
    _fault(
        "preempted-leaves-the-queue-twice",
        "a request that is cancelled when it was preempted is taken off the length of the queue twice",
        spec.SCHED_24,
        {"close": steps.more_have_left, "admit": steps.counted_as_waiting},
        "PROPERTIES CB2, SC4",
    ),
    *scheduler_order.FAULTS,
    *scheduler_preemption.FAULTS,
    *scheduler_requests.FAULTS,
)


def _variant(name: str, text: str, change: Change, *unmet: str) -> Variant:
    return Variant(f"scheduler-{name}", text, "Scheduler", change, unmet=unmet)


VARIANTS: tuple[Variant, ...] = (
    _variant(
        "prefill-first",
        "steps of prompts alone, then steps of decodes",
        {"schedule": ways.prefills_alone},
        "SCHED-14",
    ),
    _variant("decode-first", "no prompt while anybody generates", {"schedule": ways.decodes_alone}, "SCHED-15"),
    _variant(
        "whole-where-it-fits",
        "chunks only of prompts that are longer than a budget",
        {"count": ways.whole_where_it_fits},
        "SCHED-15",
    ),
    _variant("latest-behind", "of those behind, the latest is preempted", {"victim": ways.latest_behind}),
    _variant("next-behind", "of those behind, the first in order is preempted", {"victim": ways.next_behind}),
    _variant(
        "places-by-priority",
        "who is last leaves its place to one of a higher priority",
        {"schedule": ways.places_by_priority},
    ),
    _variant("one-a-step", "one admission a step", {"admit": ways.one_a_step}, "SCHED-15"),
    _variant("admits-after-preempting", "admission in steps that preempt too", {"may_admit": ways.always_admits}),
    _variant("reserves", "admission only where the end is sure", {"allocate": ways.reserves}, "SCHED-15"),
    _variant("decodes-count", "decodes are part of the budget", {"prefills": ways.decodes_count}, "SCHED-15"),
    _variant("shortest-prompts", "the budget goes to the shortest prompts", {"prefills": ways.shortest_prompts}),
    _variant(
        "chunk-by-chunk",
        "blocks chunk by chunk",
        {"allocate": ways.first_chunk_alone, "schedule": ways.room_for_chunks},
        "SCHED-15",
        "SCHED-48",
    ),
    _variant(
        "own-memory",
        "a free list of its own in the place of the block manager",
        {"fresh": ways.own_memory},
        "SCHED-48",
    ),
    _variant(
        "freed-after-the-step",
        "blocks of requests that were cancelled meanwhile stay until the update",
        {
            "cancel": ways.kept_while_computed,
            "update": ways.updates_then_frees,
            "schedule": ways.frees_then_schedules,
        },
    ),
    Variant(
        "scheduler-keeps-ends",
        "every id comes out, and then it is looked at",
        "Scheduler",
        {"advance": changes.looks_at_the_output},
        envelope=KEEPING,
    ),
    Variant(
        "scheduler-slot-of-the-last",
        "the last id has a slot too: a request is refused where it would have none",
        "Scheduler",
        {"slots": ways.slot_of_the_last},
        envelope={"last_id_takes_slot": (True,)},
    ),
    _variant("raises-when-idle", "no step when there is nothing to do", {"schedule": ways.raises_when_idle}),
    _variant("fills-one-step", "one step object is filled anew each time", {"schedule": ways.fills_one_step}),
    _variant("rolls-back", "what a void step admitted waits again", {"schedule": ways.rolls_back}),
    _variant(
        "skips-the-cancelled",
        "what an update says of a request that was cancelled meanwhile is not looked at",
        {"check_sampled": requests.none_of_the_cancelled, "check_unsampled": requests.any_of_the_cancelled},
    ),
)
