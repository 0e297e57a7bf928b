"""Mistakes of pools of pages."""

from __future__ import annotations

from inferspec.spec import paged_kv_sentences as spec
from inferspec.spec.changes import page_pools as pools
from inferspec.spec.changes import retries
from inferspec.spec.contract import Fault
from inferspec.spec.faults.paged_kv_sources import MINIVLLM, TENSORRT, VLLM_METAL
from inferspec.spec.faults.sources import TIRED
from inferspec.spec.paged_kv import PagePool

FAULTS: tuple[Fault, ...] = (
    Fault("pool-ids-from-one", "page ids begin at 1", spec.POOL_01, {"fresh_pool": pools.from_one}, TIRED),
    Fault(
        "pool-listed-twice",
        "a freed page is on the free list twice, and gets two owners",
        spec.POOL_01,
        {"give_back": pools.listed_twice, "count": pools.unique_count},
        f"{TENSORRT}/14937",
    ),
    Fault(
        "pool-peeks",
        "the first page handed out after a free stays on the free list",
        spec.POOL_01,
        {"take": pools.peeks, "give_back": pools.marks_freed, "count": pools.unique_count},
        "PROPERTIES PG1",
    ),
    Fault(
        "pool-counts-allocations",
        "num_free goes down with every allocation and never up",
        spec.POOL_02,
        {"take": pools.takes_counted, "count": pools.never_returned},
        f"{TENSORRT}/12834",
    ),
    Fault(
        "pool-count-in-16-bits",
        "num_free is counted in 16 bits",
        spec.POOL_02,
        {"count": pools.count_in_16_bits},
        "PROPERTIES X8",
    ),
    Fault("pool-counts-capacity", "num_free is num_pages", spec.POOL_02, {"count": pools.capacity}, "PROPERTIES PG8"),
    Fault(
        "pool-page-zero-reserved",
        "page 0 is kept for padding, and is not among the num_pages",
        spec.POOL_03,
        {"fresh_pool": pools.without_zero},
        "vLLM's null block",
    ),
    Fault(
        "pool-never-recycles",
        "a freed page is counted and never handed out again",
        spec.POOL_03,
        {"give_back": pools.not_recycled, "count": pools.counts_gone},
        MINIVLLM,
    ),
    Fault(
        "pool-lost-when-empty",
        "a page that is freed when no other is free is lost",
        spec.POOL_03,
        {"give_back": pools.lost_when_empty},
        "PROPERTIES PG4",
    ),
    Fault(
        "pool-page-lost-after-256-uses",
        "a page that was used 256 times is lost",
        spec.POOL_03,
        {"give_back": pools.worn_out},
        "PROPERTIES PG4, X8",
    ),
    Fault(
        "pool-minus-one",
        "an allocation without a free page returns -1",
        spec.POOL_04,
        {"take": pools.minus_one},
        "PROPERTIES PG5",
    ),
    Fault(
        "pool-last-again",
        "an allocation without a free page returns the page of the one before",
        spec.POOL_04,
        {"take": pools.last_again},
        TIRED,
    ),
    Fault(
        "pool-counts-refused",
        "a refused allocation is counted",
        spec.POOL_05,
        {"take": pools.counts_first, "count": pools.drifted},
        f"{TENSORRT}/12834",
    ),
    Fault(
        "pool-dead-once-empty",
        "after a refused allocation nothing is handed out any more",
        spec.POOL_05,
        {"take": pools.dead_once_empty},
        "PROPERTIES PG5",
    ),
    Fault(
        "pool-double-free",
        "a page that was freed already is taken back again",
        spec.POOL_06,
        {"check_free": pools.in_range},
        f"{TENSORRT}/14937",
    ),
    Fault(
        "pool-double-free-of-earlier",
        "only the page that was freed last is known as free",
        spec.POOL_06,
        {"check_free": pools.not_the_last},
        "PROPERTIES PG2",
    ),
    Fault(
        "pool-double-free-silent",
        "a page that was freed already is let through without an effect",
        spec.POOL_06,
        {"give_back": pools.silent_in_range},
        "PROPERTIES, decisions",
    ),
    Fault(
        "pool-foreign-free",
        "a page that was never handed out is taken back",
        spec.POOL_07,
        {
            "check_free": pools.not_freed_before,
            "give_back": pools.remembers_returned,
            "take": pools.forgets_returned,
        },
        "PROPERTIES PG2",
    ),
    Fault(
        "pool-negative-id",
        "a negative id counts from the end",
        spec.POOL_08,
        {"give_back": pools.wraps},
        "Python's negative indices",
    ),
    Fault(
        "pool-id-past-end",
        "ids past the last page are put on the free list",
        spec.POOL_08,
        {"check_free": pools.past_the_end},
        "PROPERTIES PG1",
    ),
    Fault(
        "pool-missing-silent",
        "unknown ids are let through without an effect",
        spec.POOL_08,
        {"give_back": pools.silent},
        TIRED,
    ),
    Fault(
        "pool-frees-then-refuses",
        "a page that is refused is on the free list nevertheless",
        spec.POOL_09,
        {"give_back": pools.appends_first},
        "PROPERTIES PG5",
    ),
    Fault(
        "pool-refused-page-lost",
        "a free page that is freed again is refused, and lost",
        spec.POOL_09,
        {"give_back": pools.drops_from_list},
        "PROPERTIES PG2, PG4",
    ),
    Fault(
        "pool-tokens-before-heads",
        "the arrays are P×page_size×H×D",
        spec.POOL_10,
        {"storage": pools.tokens_before_heads},
        "FlashInfer's layout NHD",
    ),
    Fault(
        "pool-batch-axis",
        "the arrays have an axis of 1 in front, as the pages of the course's first part do",
        spec.POOL_10,
        {"storage": pools.one_axis_more},
        "tiny-llm course, week 3 day 2",
    ),
    Fault(
        "pool-float32",
        "the arrays are float32 whatever dtype is asked for",
        spec.POOL_10,
        {"fresh_pool": pools.always_float32},
        f"{VLLM_METAL}/59b9be4",
    ),
    Fault(
        "pool-of-the-class", "all pools share one free list", spec.POOL_11, {"fresh_pool": pools.of_the_class}, TIRED
    ),
    Fault(
        "pool-of-nothing",
        "a pool of no pages, or pages of no slots, is made",
        spec.POOL_12,
        {"guard": lambda self, a: None},
        f"{VLLM_METAL}/0f6f76b",
    ),
    Fault(
        "pool-gives-used-once-refused-twice",
        "the second allocation in a row that is refused frees a page that is in use",
        spec.POOL_05,
        {"take": retries.harmful(PagePool.take, retries.gives_one_back)},
        "PROPERTIES PG5",
    ),
)
