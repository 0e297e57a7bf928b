"""Mistakes of batches in how much room requests have, and with what should be refused."""

from __future__ import annotations

from inferspec.spec import batching as spec
from inferspec.spec.changes import batching as batches
from inferspec.spec.changes import batching_refusals as changes
from inferspec.spec.changes import batching_sizes as sizes
from inferspec.spec.changes import retries
from inferspec.spec.contract import Fault
from inferspec.spec.faults.batching_sources import VLLM_METAL
from inferspec.spec.faults.defining import named

_fault = named("batching")

FAULTS: tuple[Fault, ...] = (
    _fault(
        "room-in-eights",
        "max_len is rounded down to a multiple of 8",
        spec.BATCH_21,
        {"check_room": batches.room_in_eights},
        "PROPERTIES SC6",
    ),
    _fault(
        "last-token-unused",
        "the last token of max_len is never used",
        spec.BATCH_21,
        {"check_room": changes.room_off_by_one},
        "PROPERTIES SC6",
    ),
    _fault(
        "columns-used-up",
        "max_len is compared with the steps of the batch",
        spec.BATCH_21,
        {"check_room": sizes.steps_of_the_batch},
        f"{VLLM_METAL}/ce6bd02",
    ),
    _fault(
        "left-slots-count",
        "requests that left still use up room",
        spec.BATCH_21,
        {"leave": batches.remembers_left, "check_room": changes.room_with_idle},
        "PROPERTIES BK3",
    ),
    _fault(
        "first-tokens-dropped",
        "a request past max_len loses its first tokens",
        spec.BATCH_22,
        {"check_room": batches.nothing, "store": changes.clamped},
        "the kind of mlx-lm 358b4d2a",
    ),
    _fault(
        "room-unchecked",
        "a request may grow past max_len",
        spec.BATCH_22,
        {"check_room": batches.nothing},
        "PROPERTIES X9",
    ),
    _fault(
        "room-of-the-first",
        "the first request alone is compared with max_len",
        spec.BATCH_22,
        {"check_room": changes.room_of_the_first},
        "PROPERTIES X9",
    ),
    _fault(
        "writes-until-full",
        "requests before the one without room have changed when an update is refused",
        spec.BATCH_23,
        {"check_room": changes.fills_then_refuses},
        "PROPERTIES PG5",
    ),
    _fault(
        "counts-before-checks",
        "requests have grown when a misshaped update is refused",
        spec.BATCH_23,
        {"check_update": changes.key_before_value},
        "PROPERTIES PG5",
    ),
    _fault(
        "prompt-unchecked",
        "a prompt may be longer than max_len",
        spec.BATCH_24,
        {"check_prompt": batches.nothing},
        "PROPERTIES X9",
    ),
    _fault(
        "replaces",
        "a new request replaces the one that has the slot",
        spec.BATCH_25,
        {"check_idle": batches.nothing},
        "tiny-llm course, week 2 day 6: add_request",
    ),
    _fault(
        "drops-silently",
        "a request for a taken slot is dropped without an error",
        spec.BATCH_25,
        {"check_idle": batches.nothing, "enter": changes.enters_if_idle},
        "PROPERTIES CB2",
    ),
    _fault(
        "removes-nothing",
        "the removal from an idle slot does nothing",
        spec.BATCH_26,
        {"check_taken": batches.nothing},
        "PROPERTIES X9, PG1",
    ),
    _fault(
        "slot-from-the-end",
        "a slot below 0 counts from the end",
        spec.BATCH_27,
        {"check_slot": changes.from_the_end},
        "PROPERTIES X9",
    ),
    _fault(
        "slot-clamped",
        "a slot that there is not is taken for the nearest",
        spec.BATCH_27,
        {
            "check_slot": batches.nothing,
            "check_idle": batches.nothing,
            "check_taken": batches.nothing,
            "enter": changes.enters_clamped,
            "leave": changes.leaves_clamped,
        },
        "PROPERTIES X9",
    ),
    _fault(
        "frees-then-refuses",
        "the request that has the slot is gone when the other is refused",
        spec.BATCH_28,
        {"check_idle": changes.frees_then_checks},
        "PROPERTIES PG5",
    ),
    _fault(
        "cache-taken-then-refused",
        "a cache that was refused counts as one that another slot has, and is refused for good",
        spec.BATCH_28,
        {"add_again": changes.taken_at_first_sight},
        "PROPERTIES PG5",
    ),
    _fault(
        "cache-emptied-then-refused",
        "a cache that is refused has lost its tokens",
        spec.BATCH_28,
        {"add_again": changes.handed_over_at_first_sight},
        "PROPERTIES PG5",
    ),
    _fault(
        "takes-then-refuses",
        "a slot is taken when its prompt proves too long",
        spec.BATCH_28,
        {"check_prompt": changes.takes_then_checks},
        "PROPERTIES PG5",
    ),
    _fault(
        "one-row-for-all",
        "a single row is for all slots",
        spec.BATCH_29,
        {"update_and_fetch": changes.one_row_for_all},
        "PROPERTIES X9",
    ),
    _fault(
        "rows-too-many",
        "rows past the last slot are left out",
        spec.BATCH_29,
        {"check_rows": changes.at_least_rows, "fetched": changes.rows_cut},
        "PROPERTIES X9",
    ),
    _fault(
        "broadcasts",
        "a single head or feature is for all of a request",
        spec.BATCH_29,
        {"update_and_fetch": changes.broadcasting},
        "PROPERTIES X9",
    ),
    _fault(
        "features-in-all",
        "keys and values lie beside each other in one buffer, and their head dims are compared in all",
        spec.BATCH_29,
        {"update_and_fetch": changes.keys_beside_values},
        "PROPERTIES X9",
    ),
    _fault(
        "fewer-features",
        "tokens of fewer features are filled up with zeros",
        spec.BATCH_29,
        {"update_and_fetch": changes.filled_up},
        "PROPERTIES X9",
    ),
    _fault(
        "any-cache",
        "a cache of two rows gives its first",
        spec.BATCH_30,
        {"check_cache": batches.nothing},
        "PROPERTIES X9",
    ),
    _fault(
        "casts",
        "tokens of another dtype are cast",
        spec.BATCH_31,
        {"check_dtype": batches.nothing, "joined": changes.cast},
        "PROPERTIES X4, X9",
    ),
    _fault(
        "short-once-full-twice",
        "the second update in a row that does not fit costs every request its last token",
        spec.BATCH_23,
        {"check_room": retries.harmful(spec.BatchingKVCache.check_room, retries.shortens_all)},
        "PROPERTIES PG5",
    ),
    _fault(
        "too-long-twice-takes-a-slot",
        "the second prompt in a row that is too long has a slot, without tokens",
        spec.BATCH_28,
        {"check_prompt": retries.harmful(spec.BatchingKVCache.check_prompt, retries.takes_a_slot)},
        "PROPERTIES PG5",
    ),
    _fault(
        "taken-slot-asked-for-twice",
        "the second request in a row for a taken slot ends the one that has it",
        spec.BATCH_28,
        {"check_idle": retries.harmful(spec.BatchingKVCache.check_idle, retries.ends_who_has_it)},
        "PROPERTIES PG5",
    ),
    _fault(
        "removed-in-vain-twice",
        "the second removal in a row from an idle slot costs every request its last token",
        spec.BATCH_28,
        {"check_taken": retries.harmful(spec.BatchingKVCache.check_taken, retries.shortens_all)},
        "PROPERTIES PG5",
    ),
    _fault(
        "joins-late-once-refused",
        "a request that joins once an update was refused lacks its last token",
        spec.BATCH_23,
        {"check_room": retries.marked(spec.BatchingKVCache.check_room), "enter": retries.joins_late},
        "PROPERTIES PG5",
    ),
    _fault(
        "counts-before-prompt-is-checked",
        "the tokens of a prompt that is too long have been counted when it is refused",
        spec.BATCH_28,
        {"add": changes.counts_then_checks, "offsets_of": changes.as_counted},
        "PROPERTIES PG5",
    ),
    _fault(
        "frees-behind-a-refused-update",
        "once an update was refused, a request for a taken slot ends the one that has it",
        spec.BATCH_28,
        {"check_update": changes.marks_refused_updates, "check_idle": changes.frees_behind_a_refused_update},
        "PROPERTIES PG5",
    ),
    _fault(
        "shortens-behind-a-refused-request",
        "once a request was refused, an update that has no room costs every request its last token",
        spec.BATCH_23,
        {"check_idle": changes.marks_refused_requests, "check_room": changes.shortens_behind_a_refused_request},
        "PROPERTIES PG5",
    ),
    _fault(
        "compared-with-the-first",
        "an update is compared with the first request, and one without a prompt has taken it when the next does not fit",
        spec.BATCH_23,
        {"check_fit": changes.fit_of_the_first},
        "PROPERTIES PG5",
    ),
)
