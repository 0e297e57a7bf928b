"""Mistakes in pools and paged caches that show where two things come together, large pages and a rewind, many caches and a release, large
heads and views."""

from __future__ import annotations

from inferspec.spec import paged_kv_sentences as spec
from inferspec.spec.changes import paged_kv_mixtures as changes
from inferspec.spec.contract import Change, Fault, Requirement
from inferspec.spec.faults.sources import TIRED


def _fault(name: str, text: str, kills: Requirement, change: Change, source: str = TIRED) -> Fault:
    return Fault(f"paged-kv-{name}", text, kills, change, source)


PATHS = (
    ("once-rewound", "once a cache was rewound", changes.once_rewound),
    ("of-wide-heads", "of heads of 64 features and more", changes.of_wide_heads),
    ("of-large-pages", "of pages of more than 16 slots", changes.of_large_pages),
    ("beside-others", "where other caches are on the pool", changes.beside_others),
)

FAULTS: tuple[Fault, ...] = (
    *(
        _fault(
            f"{part}-strides-{path}",
            f"{where} the {part} is read as if it were contiguous",
            spec.PKV_26,
            changes.misreads(part, holds),
            "PROPERTIES X1",
        )
        for path, where, holds in PATHS
        for part in ("key", "value")
    ),
    _fault(
        "refusal-undoes-rewind",
        "a chunk without room that comes right after a rewind brings back what was rewound",
        spec.PKV_21,
        changes.REFUSAL_UNDOES_REWIND,
        "PROPERTIES PG5",
    ),
    _fault(
        "first-16-in-the-pool",
        "what is past the 16th slot of a page does not lie there",
        spec.PKV_03,
        changes.FIRST_16_IN_THE_POOL,
    ),
    _fault("pages-of-16", "larger pages are counted as if they had 16 slots", spec.PKV_05, changes.PAGES_OF_16),
    _fault("lens-of-16", "page_lens of larger pages end at 16", spec.PKV_06, changes.LENS_OF_16),
    _fault(
        "room-of-16", "the room of larger pages is counted as if they had 16 slots", spec.PKV_22, changes.ROOM_OF_16
    ),
    _fault(
        "slot-more-in-large-pages",
        "in pages of more than 16 slots a chunk is followed by a token of zeros, in the next slot in memory",
        spec.PKV_08,
        changes.SLOT_MORE_IN_LARGE_PAGES,
    ),
    _fault(
        "blended-in-large-pages",
        "in pages of more than 16 slots new tokens are added to a slot that is multiplied by 0",
        spec.PKV_10,
        changes.BLENDED_IN_LARGE_PAGES,
        "PROPERTIES PA2",
    ),
    _fault(
        "to-the-start-of-large-pages",
        "in pages of more than 16 slots a rewind that gives a page back forgets what is left in the last one",
        spec.PKV_12,
        changes.TO_THE_START_OF_LARGE_PAGES,
    ),
    _fault(
        "pages-of-later-kept",
        "of more than eight caches a rewind gives no page back",
        spec.PKV_13,
        changes.PAGES_OF_LATER_KEPT,
    ),
    _fault(
        "page-of-later-lost",
        "of more than eight caches a release loses the last page",
        spec.PKV_17,
        changes.PAGE_OF_LATER_LOST,
    ),
    _fault(
        "float32-once-rewound",
        "after a rewind keys and values come back in float32",
        spec.PKV_11,
        changes.in_float32(changes.after_a_rewind),
    ),
    _fault(
        "float32-of-wide-heads",
        "heads of 64 features and more come back in float32",
        spec.PKV_11,
        changes.in_float32(lambda a, number: a.head_dim >= 64),
    ),
    _fault(
        "clears-wide-heads",
        "the key of heads of 64 features and more is cleared once it is cached",
        spec.PKV_27,
        changes.CLEARS_WIDE_HEADS,
    ),
    _fault(
        "late-in-large-pages",
        "tokens are written into pages of more than 16 slots when they are asked for",
        spec.PKV_28,
        changes.LATE_IN_LARGE_PAGES,
    ),
    Fault(
        "block-table-of-many-pages-kept",
        "a table of more than 64 pages a row is handed out again while it has as many rows and pages",
        spec.TABLE_03,
        changes.table_kept(lambda table: table.shape[1] > 64),
        TIRED,
    ),
    Fault(
        "block-table-of-many-rows-kept",
        "a table of more than four rows is handed out again while it has as many rows and pages",
        spec.TABLE_03,
        changes.table_kept(lambda table: len(table) > 4),
        TIRED,
    ),
)
