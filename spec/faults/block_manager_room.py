"""Mistakes of block managers: whether there is room, and what is changed before it is known."""

from __future__ import annotations

from inferspec.spec import block_manager as spec
from inferspec.spec.changes import block_manager as changes
from inferspec.spec.changes import block_manager_room as room
from inferspec.spec.changes import retries
from inferspec.spec.contract import Fault
from inferspec.spec.faults.block_manager_sources import NANO, POST, VLLM
from inferspec.spec.faults.defining import named
from inferspec.spec.faults.sources import TIRED

_fault = named("block-manager")

FAULTS: tuple[Fault, ...] = (
    _fault(
        "takes-its-hits",
        "an allocation takes blocks that it hits",
        spec.BLK_18,
        {"allocate": room.takes_its_hits},
        f"{VLLM}/11565",
    ),
    _fault(
        "free-hits-not-counted",
        "free blocks that are hit count as none",
        spec.BLK_18,
        {"needed": room.free_hits_not_counted},
        f"{VLLM}/11565",
    ),
    _fault(
        "free-hits-counted-twice",
        "free blocks that are hit count twice",
        spec.BLK_18,
        {"needed": room.free_hits_counted_twice},
        f"{VLLM}/11565",
    ),
    _fault(
        "hits-of-several-counted",
        "a block that is hit and in several tables is counted as one to take",
        spec.BLK_20,
        {"needed": room.hits_of_several_counted},
        TIRED,
    ),
    _fault(
        "as-far-as-it-goes",
        "a prompt that does not fit gets what there is",
        spec.BLK_19,
        {"allocate": room.as_far_as_it_goes},
        "PROPERTIES PG5",
    ),
    _fault(
        "in-use-again",
        "an empty pool hands out a block that is in use",
        spec.BLK_19,
        {"check_room": changes.unchecked, "take": room.last_taken_again},
        POST,
    ),
    _fault(
        "hits-counted",
        "blocks that are hit in use count as needed",
        spec.BLK_20,
        {"needed": room.hits_counted},
        f"{VLLM}/11565",
    ),
    _fault(
        "hits-counted-as-the-first",
        "all blocks that are hit count as in use where the first is",
        spec.BLK_20,
        {"needed": room.counted_as_the_first},
        f"{VLLM}/11565",
    ),
    _fault(
        "hits-counted-as-the-last",
        "blocks that are hit in use count as needed where the last hit is free",
        spec.BLK_20,
        {"needed": room.counted_as_the_last},
        f"{VLLM}/11565",
    ),
    _fault(
        "evicts-64",
        "no more than 64 cached blocks are given up at once",
        spec.BLK_20,
        {"check_room": room.evicts_at_most_64},
        TIRED,
    ),
    _fault(
        "one-kept-back",
        "one block of the pool is never used",
        spec.BLK_20,
        {"check_room": changes.reserves_one},
        "https://github.com/vllm-project/vllm-metal/commit/9b27db0",
    ),
    _fault(
        "append-passes-the-cached-by",
        "an append asks for blocks that are not cached",
        spec.BLK_20,
        {"check_more": room.uncached_alone},
        TIRED,
    ),
    _fault(
        "forgets-once-refused-twice",
        "the second prompt in a row that is refused costs what was cached first",
        spec.BLK_22,
        {"check_room": retries.harmful(spec.BlockManager.check_room, retries.forgets_one)},
        "PROPERTIES PC7, PG5",
    ),
    _fault(
        "forgets-once-short-twice",
        "the second append in a row that is refused costs what was cached first",
        spec.BLK_23,
        {"check_more": retries.harmful(spec.BlockManager.check_more, retries.forgets_one)},
        "PROPERTIES PC7, PG5",
    ),
    _fault(
        "forgets-once-short-and-refused",
        "a prompt that is refused once an append was costs what was cached first",
        spec.BLK_22,
        {
            "check_more": retries.marked(spec.BlockManager.check_room),
            "check_room": retries.harmful_once_marked(spec.BlockManager.check_room, retries.forgets_one),
        },
        "PROPERTIES PC7, PG5",
    ),
    _fault(
        "forgets-once-refused-and-short",
        "an append that is refused once a prompt was costs what was cached first",
        spec.BLK_23,
        {
            "check_room": retries.marked(spec.BlockManager.check_room),
            "check_more": retries.harmful_once_marked(spec.BlockManager.check_room, retries.forgets_one),
        },
        "PROPERTIES PC7, PG5",
    ),
    _fault(
        "makes-up-for-marks",
        "a mark that was refused is made with the next one",
        spec.BLK_28,
        {"mark_computed": retries.makes_up_for_marks},
        "PROPERTIES X9",
    ),
)


REFUSALS: tuple[Fault, ...] = (
    _fault(
        "several-pass-the-cached-by",
        "an append of several blocks, all that are free, asks for ones that are not cached",
        spec.BLK_20,
        {"check_more": room.several_not_cached},
        "PROPERTIES SC6",
    ),
    _fault(
        "watermark",
        "a hundredth of the pool is never used",
        spec.BLK_20,
        {"check_room": room.watermark},
        "vLLM's first block manager, whose watermark is 0.01",
    ),
    _fault(
        "append-as-far-as-it-goes",
        "an append that does not fit gets what there is",
        spec.BLK_21,
        {"append": room.append_as_far_as_it_goes},
        "PROPERTIES PG5",
    ),
    _fault(
        "append-in-use-again",
        "an append to a full pool gets a block that is in use",
        spec.BLK_21,
        {"check_more": changes.unchecked, "take": room.last_taken_again},
        f"{POST}: admission per request",
    ),
    _fault(
        "hits-held-before-checks",
        "a prompt that is refused keeps what it hit",
        spec.BLK_22,
        {"allocate": room.hits_before_checks},
        f"{VLLM}/11565",
    ),
    _fault(
        "takes-until-refused",
        "a prompt that is refused keeps what it got",
        spec.BLK_22,
        {"allocate": room.takes_until_refused},
        POST,
    ),
    _fault(
        "refusal-touches",
        "what a refused prompt would have hit is evicted later for it",
        spec.BLK_22,
        {"allocate": changes.touches},
        "PROPERTIES PC7",
    ),
    _fault(
        "refusal-forgets",
        "a prompt that is refused empties the cache",
        spec.BLK_22,
        {"allocate": room.rolls_back_forgetting},
        "PROPERTIES PC7, PG5",
    ),
    _fault(
        "refusal-rotates",
        "a prompt that is refused sends the block that was next to the end",
        spec.BLK_22,
        {"check_room": room.rotates},
        "PROPERTIES PG5",
    ),
    _fault(
        "appends-until-refused",
        "an append that is refused keeps what it got",
        spec.BLK_23,
        {"append": room.appends_until_refused},
        POST,
    ),
    _fault(
        "refused-append-orphans",
        "a table whose append was refused does not give back the blocks that it had before",
        spec.BLK_23,
        room.orphans(),
        "https://github.com/inference-sim/inference-sim/issues/1061",
    ),
    _fault(
        "takes-and-gives-back",
        "an append that is refused took all free blocks and gave them back, and the cache has forgotten them",
        spec.BLK_23,
        {"append": room.takes_and_gives_back},
        "PROPERTIES PG5",
    ),
    _fault(
        "append-refusal-evicts",
        "an append that is refused has evicted a block",
        spec.BLK_23,
        {"check_more": room.evicts_one},
        "PROPERTIES PG5",
    ),
    _fault(
        "append-one-asked",
        "an append asks for one block and fails at the second",
        spec.BLK_23,
        {"check_more": room.no_copy_of_the_count, "append": room.appends_until_refused},
        f"{NANO}/blob/main/nanovllm/engine/block_manager.py",
    ),
    _fault(
        "tokens-before-checks",
        "an append that is refused has counted its tokens",
        spec.BLK_23,
        {"append": room.tokens_before_checks},
        "PROPERTIES PG5",
    ),
    _fault(
        "holds-what-lies-behind",
        "a hit holds the block that is cached behind it as well",
        spec.BLK_05,
        {"table": room.holds_what_lies_behind},
        "https://github.com/bytedance-iaas/sglang/pull/508",
    ),
    _fault(
        "room-for-the-new-alone",
        "an append is refused where the blocks that its tokens would fill by themselves are not free",
        spec.BLK_20,
        {"append": room.room_for_the_new_alone},
        "https://github.com/inference-sim/inference-sim/issues/492",
    ),
)
