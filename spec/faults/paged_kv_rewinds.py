"""Mistakes of paged caches in what a rewind or a release gives back, and in what is left after it."""

from __future__ import annotations

from inferspec.spec import paged_kv_sentences as spec
from inferspec.spec.changes import paged_kv_rewinds as changes
from inferspec.spec.contract import Fault
from inferspec.spec.faults.paged_kv_sources import INVARIANTS, MINIVLLM, TENSORRT, VLLM, VLLM_METAL
from inferspec.spec.faults.sources import TIRED

FAULTS: tuple[Fault, ...] = (
    Fault(
        "paged-rewinds-whole-pages",
        "a rewind drops as many whole pages as n tokens make, and no part of one",
        spec.PKV_12,
        {"drop": changes.in_whole_pages},
        TIRED,
    ),
    Fault(
        "paged-rewinds-first-pages",
        "a rewind gives back the first pages in place of the last",
        spec.PKV_12,
        {"drop": changes.first_pages},
        TIRED,
    ),
    Fault(
        "paged-rewinds-to-page-start",
        "a rewind that gives back a page drops the tokens of the one before that do not fill it",
        spec.PKV_12,
        {"drop": changes.to_page_start},
        "PROPERTIES PG3",
    ),
    Fault(
        "paged-pages-of-before-by-their-number",
        "a cache of more than two pages is read from those that it was read from before, as long as it begins in the same page and "
        "has as many, and as many tokens",
        spec.PKV_12,
        {"gathered": changes.read_where_it_was},
        TIRED,
    ),
    Fault(
        "paged-rewind-forgets-five-pages",
        "tokens of more than five pages that are rewound before they are in the pool are still written to it",
        spec.PKV_12,
        {
            "extend": changes.unread_once_extended,
            "gathered": changes.reads_all,
            "drop": changes.five_pages_of_unread,
        },
        TIRED,
    ),
    Fault(
        "paged-rewind-keeps-pages",
        "a rewind gives back no page",
        spec.PKV_13,
        {"drop": changes.pages_kept},
        f"{VLLM_METAL}/bb14a36",
    ),
    Fault(
        "paged-rewind-one-page",
        "a rewind gives back one page at most",
        spec.PKV_13,
        {"drop": changes.one_page},
        "PROPERTIES PG4",
    ),
    Fault(
        "paged-rewind-pages-of-n",
        "a rewind gives back the pages that n tokens fill, not those that became empty",
        spec.PKV_13,
        {"drop": changes.whole_pages_of_n},
        "PROPERTIES PG3",
    ),
    Fault(
        "paged-rewind-page-in-use",
        "a rewind gives back the last page while it holds tokens",
        spec.PKV_13,
        {"drop": changes.floor},
        "PROPERTIES PG3",
    ),
    Fault(
        "paged-rewind-keeps-empty-page",
        "a rewind to a page's end keeps the empty page behind it",
        spec.PKV_13,
        {"drop": changes.one_kept},
        "PROPERTIES PG3",
        forms=({"drop": changes.one_more_than_full},),
    ),
    Fault(
        "paged-rewind-loses-pages",
        "a rewind forgets the pages that became empty without giving them back",
        spec.PKV_13,
        {"drop": changes.pages_lost},
        MINIVLLM,
    ),
    Fault(
        "paged-rewind-minus-zero",
        "a rewind by 0 drops all tokens",
        spec.PKV_14,
        {"drop": changes.minus_zero},
        "Python's [:-0]",
    ),
    Fault(
        "paged-rewind-first-page-kept",
        "a cache that is rewound by all its tokens keeps its first page",
        spec.PKV_14,
        {"drop": changes.first_kept},
        "PROPERTIES PG4",
    ),
    Fault(
        "paged-rewind-clamped",
        "a rewind too far drops all tokens",
        spec.PKV_15,
        {"check_rewind": changes.any_rewind, "drop": changes.clamped},
        TIRED,
    ),
    Fault(
        "paged-rewind-forwards",
        "a rewind by less than none has no effect and is not refused",
        spec.PKV_15,
        {"check_rewind": changes.forwards_too, "drop": changes.clamped},
        TIRED,
    ),
    Fault(
        "paged-rewinds-then-refuses",
        "a refused rewind has dropped tokens",
        spec.PKV_16,
        {"rewind": changes.rewinds_then_refuses},
        "PROPERTIES PG5",
    ),
    Fault(
        "paged-rewind-frees-then-refuses",
        "a refused rewind has given back a page",
        spec.PKV_16,
        {"rewind": changes.pages_then_refuses},
        "PROPERTIES PG5",
    ),
    Fault(
        "paged-release-keeps-tail",
        "a last page that is filled in part is not given back",
        spec.PKV_17,
        {"let_go": changes.tail_not_released},
        MINIVLLM,
    ),
    Fault(
        "paged-release-first-page",
        "only the first page is given back",
        spec.PKV_17,
        {"let_go": changes.first_alone},
        "tiny-llm course, week 3 day 2; one layer's slot freed",
    ),
    Fault(
        "paged-release-last-page-twice",
        "the last page is given back twice",
        spec.PKV_17,
        {"let_go": changes.released_twice},
        f"{VLLM}/3347",
    ),
    Fault(
        "paged-release-resets-pool",
        "a release frees every page of the pool",
        spec.PKV_17,
        {"let_go": changes.pool_reset},
        TIRED,
    ),
    Fault(
        "paged-released-twice",
        "a second release puts the pages on the free list again",
        spec.PKV_18,
        {"let_go": changes.freed_again},
        f"{TENSORRT}/14937",
    ),
    Fault(
        "paged-released-from-new-owner",
        "a second release frees the pages of whoever has them now",
        spec.PKV_18,
        {"let_go": changes.freed_from_new_owner},
        "PROPERTIES PG2",
    ),
    Fault(
        "paged-released-offset",
        "a released cache keeps its offset",
        spec.PKV_19,
        {"let_go": changes.length_kept, "offset_of": changes.shown},
        f"{INVARIANTS} 1",
    ),
    Fault(
        "paged-released-ids",
        "a released cache keeps its page_ids",
        spec.PKV_19,
        {"let_go": changes.ids_kept, "pages": changes.old_ids},
        f"{VLLM_METAL}/bb14a36",
    ),
)
