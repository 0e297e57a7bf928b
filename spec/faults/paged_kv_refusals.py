"""Mistakes of paged caches with appends for which there is no room, and with arrays that do not fit."""

from __future__ import annotations

from inferspec.spec import paged_kv_sentences as spec
from inferspec.spec.changes import paged_kv_refusals as changes
from inferspec.spec.changes import retries
from inferspec.spec.contract import Fault
from inferspec.spec.faults.paged_kv_sources import VLLM, VLLM_METAL
from inferspec.spec.faults.sources import TIRED
from inferspec.spec.paged_kv import PagedKVCache

FAULTS: tuple[Fault, ...] = (
    Fault(
        "paged-full-own-first-page",
        "where no page is free a cache uses its first one again",
        spec.PKV_20,
        {"check_room": changes.any_room, "grow": changes.own_first_page},
        "the kind of mlx-lm 358b4d2a",
    ),
    Fault(
        "paged-full-cuts",
        "what the pool has no room for is left out",
        spec.PKV_20,
        {"check_room": changes.any_room, "extend": changes.cut_short},
        TIRED,
    ),
    Fault(
        "paged-full-takes-then-refuses",
        "offset and pages have moved on when the pool turns out to be empty",
        spec.PKV_21,
        {"check_room": changes.any_room},
        f"{VLLM}/11565",
    ),
    Fault(
        "paged-full-keeps-pages",
        "pages taken before the pool is empty stay with the cache",
        spec.PKV_21,
        {"check_room": changes.any_room, "extend": changes.length_last},
        f"{VLLM}/11565",
    ),
    Fault(
        "paged-full-loses-pages",
        "pages taken before the pool is empty are nobody's",
        spec.PKV_21,
        {"check_room": changes.any_room, "grow": changes.pages_forgotten, "extend": changes.length_last},
        "PROPERTIES PG4, PG5",
    ),
    Fault(
        "paged-full-fills-then-refuses",
        "what fits of a chunk is in the cache when it is refused",
        spec.PKV_21,
        {"check_room": changes.any_room, "extend": changes.fills_then_refuses},
        "PROPERTIES PG5",
    ),
    Fault(
        "paged-full-releases",
        "a cache that finds no page gives back those that it has",
        spec.PKV_21,
        {"check_room": changes.releases_when_full},
        "https://github.com/neuralmagic/vllm/pull/92",
    ),
    Fault(
        "paged-keeps-a-page",
        "the last free page is never used",
        spec.PKV_22,
        {"check_room": changes.reserve},
        "vLLM's watermark",
    ),
    Fault(
        "paged-tail-not-counted",
        "a chunk is refused though the last page has room for it",
        spec.PKV_22,
        {"check_room": changes.tail_not_counted},
        "PROPERTIES SC6, PG3",
    ),
    Fault(
        "paged-first-row",
        "of more rows than one the first is cached",
        spec.PKV_23,
        changes.fits_but(batch=True),
        TIRED,
    ),
    Fault(
        "paged-one-token-for-all",
        "one value serves for all keys of a chunk",
        spec.PKV_23,
        changes.fits_but(length=True),
        TIRED,
    ),
    Fault(
        "paged-one-head-for-all",
        "one head serves for all of the pool's",
        spec.PKV_23,
        changes.fits_but(heads=True),
        TIRED,
    ),
    Fault(
        "paged-one-dim-for-all",
        "a head dim of 1 is spread over the pool's",
        spec.PKV_23,
        changes.fits_but(dims=True),
        TIRED,
    ),
    Fault(
        "paged-fewer-features",
        "tokens of fewer features are filled up with zeros",
        spec.PKV_23,
        {"check_append": changes.checks_filled, "extend": changes.extends_filled},
        "PROPERTIES X9",
    ),
    Fault(
        "paged-takes-more-axes",
        "an axis of one number behind the head dim is taken",
        spec.PKV_23,
        changes.fits_but(more=True),
        "PROPERTIES X9",
    ),
    Fault("paged-takes-flat", "H×L×D is taken for 1×H×L×D", spec.PKV_23, changes.fits_but(rank=True), TIRED),
    Fault(
        "paged-casts",
        "other dtypes are cast to the pool's",
        spec.PKV_24,
        {"check_dtype": changes.any_dtype},
        f"{VLLM_METAL}/59b9be4",
    ),
    Fault(
        "paged-casts-values",
        "values of another dtype are cast to the pool's",
        spec.PKV_24,
        {"check_dtype": changes.key_dtype_alone},
        f"{VLLM_METAL}/59b9be4",
    ),
    Fault(
        "paged-pages-before-checks",
        "pages are taken before the arrays are looked at",
        spec.PKV_25,
        {"check_append": changes.pages_before_checks},
        f"{VLLM}/11565",
    ),
    Fault(
        "paged-offset-before-checks",
        "the offset has moved on when a chunk is refused",
        spec.PKV_25,
        {"check_append": changes.offset_before_checks},
        "PROPERTIES PG5",
    ),
    Fault(
        "paged-page-lost-once-short-twice",
        "the second chunk in a row for which there is no room costs a page",
        spec.PKV_21,
        {"check_room": retries.harmful(PagedKVCache.check_room, retries.loses_a_page)},
        "PROPERTIES PG4, PG5",
    ),
    Fault(
        "paged-empty-once-rewound-wrongly-twice",
        "after the second rewind in a row that is refused the cache counts as empty",
        spec.PKV_16,
        {"check_rewind": retries.harmful(PagedKVCache.check_rewind, retries.counts_as_empty)},
        "PROPERTIES X9",
    ),
    Fault(
        "paged-page-lost-once-refused-in-turns",
        "a chunk for which there is no room costs a page, once one of other arrays was refused",
        spec.PKV_21,
        {
            "check_shapes": retries.marked(PagedKVCache.check_shapes),
            "check_room": retries.harmful_once_marked(PagedKVCache.check_room, retries.loses_a_page),
        },
        "PROPERTIES PG4, PG5",
    ),
    Fault(
        "paged-waits-for-a-page",
        "a cache for which there was no room takes nothing until a page is free, though its last one has room",
        spec.PKV_21,
        {"check_room": retries.asks_for_a_page},
        "PROPERTIES PG5, SC6",
    ),
    Fault(
        "paged-other-arrays-once-short-lose-a-page",
        "a chunk of other arrays costs a page, once there was no room for one",
        spec.PKV_25,
        {
            "check_room": retries.marked(PagedKVCache.check_room),
            "check_shapes": retries.harmful_once_marked(PagedKVCache.check_shapes, retries.loses_a_page),
        },
        "PROPERTIES PG4, PG5",
    ),
    Fault(
        "paged-pages-lost-behind-a-refused-rewind",
        "once a rewind was refused, rewinds and releases lose a page",
        spec.PKV_16,
        changes.pages_lost_behind("check_rewind", PagedKVCache.check_rewind),
        "PROPERTIES PG4, PG5",
    ),
    Fault(
        "paged-pages-lost-behind-refused-arrays",
        "once a chunk of other arrays was refused, rewinds and releases lose a page",
        spec.PKV_25,
        changes.pages_lost_behind("check_shapes", PagedKVCache.check_shapes),
        "PROPERTIES PG4, PG5",
    ),
    Fault(
        "paged-goes-on-with-the-refused",
        "what was laid out for a chunk without room is written in the place of another cache's next one",
        spec.PKV_21,
        {"check_room": changes.marks_without_room, "write": changes.goes_on_with_the_refused},
        "PROPERTIES PG5",
    ),
    Fault(
        "table-lens-with-the-refused",
        "the row of a chunk that had no room is a token short in context_lens",
        spec.TABLE_03,
        {"check_room": changes.marks_without_room, "context_lens": changes.lens_with_the_refused},
        "PROPERTIES PG5",
    ),
)
