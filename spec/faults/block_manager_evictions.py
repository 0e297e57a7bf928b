"""Mistakes of block managers: which blocks are free and cached, and which of them are taken first."""

from __future__ import annotations

from inferspec.spec import block_manager as spec
from inferspec.spec.changes import block_manager as changes
from inferspec.spec.changes import block_manager_evictions as evictions
from inferspec.spec.changes import block_manager_hits as hits
from inferspec.spec.contract import Fault
from inferspec.spec.faults.block_manager_sources import NANO, POST, SGLANG, VLLM
from inferspec.spec.faults.defining import named
from inferspec.spec.faults.sources import TIRED

_fault = named("block-manager")

FAULTS: tuple[Fault, ...] = (
    _fault(
        "copy-taken-forgets-what-is-hit",
        "a block that is taken takes its name out of the cache, where another one with the same tokens is known by it",
        spec.BLK_13,
        {"publish": evictions.names_copies, "forget": evictions.forgets_the_name, "next": evictions.copies_first},
        "https://github.com/openvinotoolkit/openvino.genai/pull/3489",
    ),
    _fault(
        "emptied-copy-known",
        "of two free blocks with the same tokens one is emptied, and known all the same: it is hit when the other is in use",
        spec.BLK_17,
        {
            "publish": changes.publishes_the_latest,
            "leave": evictions.empties_the_earlier_copy,
            "hits": evictions.hits_the_free_first,
            "forget": evictions.forgets_the_name,
        },
        "https://github.com/openvinotoolkit/openvino.genai/commit/d4571eda83570e6066d87699cbbc171e466833b3",
    ),
    _fault(
        "one-order-for-all",
        "managers share the order in which blocks were freed: what one evicts is no more to be had of another",
        spec.BLK_31,
        {
            "fresh": evictions.one_order_for_all,
            "leave": evictions.noting_when,
            "next": evictions.first_of_the_heap,
        },
        "PROPERTIES X7",
    ),
    _fault(
        "forgets-when-free",
        "a block that is freed is forgotten",
        spec.BLK_13,
        {"leave": evictions.forgets_when_free},
        "PROPERTIES PC6",
    ),
    _fault(
        "known-by-its-former-name",
        "a block that was taken is forgotten again when it is taken again, and with it the one that has its former tokens now",
        spec.BLK_13,
        {"forget": evictions.forgets_again},
        f"{VLLM}/4761",
    ),
    _fault(
        "reset-when-hit",
        "a free block is hit once and never again",
        spec.BLK_13,
        {"share": evictions.reset_when_hit},
        f"{NANO}/commit/9fa256a",
    ),
    _fault(
        "only-in-use", "blocks that are free are not hit", spec.BLK_13, {"hits": hits.only_in_use}, "PROPERTIES PC6"
    ),
    _fault(
        "hit-stays-free",
        "a free block that is hit stays in the free list",
        spec.BLK_14,
        {"share": evictions.stays_in_the_free_list},
        "PROPERTIES PC6",
    ),
    _fault(
        "last-hit-not-held",
        "the last block of a hit is not held",
        spec.BLK_14,
        {"table": evictions.last_hit_stays_free},
        "https://github.com/sgl-project/mini-sglang/pull/52",
    ),
    _fault(
        "last-in-first-out",
        "the block that was freed last is taken first",
        spec.BLK_15,
        {"next": evictions.last_in_first_out},
        f"{POST}: a free list that is a stack",
    ),
    _fault(
        "prompt-first",
        "of a table that grew the prompt's blocks are evicted before what was appended",
        spec.BLK_15,
        {"append": changes.notes_the_prompt, "leaving": changes.prompt_first},
        "PROPERTIES PC9",
    ),
    _fault(
        "head-first",
        "of one table the first block is evicted first",
        spec.BLK_15,
        {"leaving": evictions.head_first},
        "PROPERTIES PC9",
    ),
    _fault(
        "hits-leave-first",
        "blocks that a table hit are evicted before its own, which are of no use without them",
        spec.BLK_15,
        {"leaving": changes.hits_leave_first},
        "https://github.com/sgl-project/sglang/issues/33783 (hit and own blocks are given back apart)",
    ),
    _fault(
        "many-hits-leave-first",
        "three blocks and more that a table hit are evicted before its own, which are of no use without them",
        spec.BLK_15,
        {"leaving": changes.many_hits_leave_first},
        "https://github.com/sgl-project/sglang/issues/33783 (hit and own blocks are given back apart)",
    ),
    _fault(
        "head-first-if-shared",
        "of a table that shares blocks the first of its own is evicted first",
        spec.BLK_15,
        {"leaving": changes.head_first_if_shared},
        TIRED,
    ),
    _fault(
        "lowest-id-first",
        "the block of the lowest id is evicted first",
        spec.BLK_15,
        {"next": evictions.oldest_of_the_pool},
        TIRED,
    ),
    _fault(
        "first-in-first-out",
        "a hit does not save a block from its turn",
        spec.BLK_15,
        {"fresh": evictions.fresh_with_births, "publish": evictions.noting_births, "leave": evictions.by_first_use},
        "PROPERTIES PC9",
    ),
    _fault(
        "cached-first",
        "cached blocks are evicted while others are free",
        spec.BLK_16,
        {"next": evictions.cached_first},
        TIRED,
    ),
    _fault(
        "once-cached",
        "a block that was ever cached is kept as long as those that are",
        spec.BLK_16,
        {"publish": evictions.noting_the_cached, "next": evictions.never_cached_first},
        TIRED,
    ),
    _fault(
        "stale",
        "the cache still knows a block that was taken",
        spec.BLK_17,
        {"forget": evictions.stale, "publish": evictions.publishes_over},
        f"{VLLM}/4761",
    ),
)


TREES: tuple[Fault, ...] = (
    _fault(
        "parted-in-the-other-half",
        "where prompts part within what was computed at once, the last block that they have in common is never taken",
        spec.BLK_06,
        {"mark_computed": evictions.splits, "forget": evictions.parted_in_the_other_half},
        f"{SGLANG}/blob/main/python/sglang/srt/mem_cache/radix_cache.py",
    ),
    _fault(
        "lost-behind-the-taken",
        "what was computed behind a copy is not taken once the copy was",
        spec.BLK_06,
        {"forget": evictions.lost_behind_the_taken},
        f"{SGLANG}/blob/main/python/sglang/srt/mem_cache/radix_cache.py",
    ),
    _fault(
        "moves-up-behind-the-taken",
        "what was computed behind a block is known behind the one before it once that is taken",
        spec.BLK_10,
        {"forget": evictions.moves_up_behind_the_taken},
        f"{SGLANG}/blob/main/python/sglang/srt/mem_cache/radix_cache.py",
    ),
    _fault(
        "well-known-stay",
        "a block that was hit more than once is taken after all others",
        spec.BLK_15,
        {"share": evictions.counts_hits, "next": evictions.passes_well_known_by},
        SGLANG,
    ),
)
