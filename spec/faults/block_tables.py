"""Mistakes in the block table of a batch."""

from __future__ import annotations

from inferspec.spec import paged_kv_sentences as spec
from inferspec.spec.changes import block_tables as tables
from inferspec.spec.contract import Fault
from inferspec.spec.faults.paged_kv_sources import INVARIANTS
from inferspec.spec.faults.sources import TIRED

FAULTS: tuple[Fault, ...] = (
    Fault(
        "table-sorted",
        "entries are in the order of the ids",
        spec.TABLE_01,
        {"padded": tables.table_sorted},
        f"{INVARIANTS} 2",
    ),
    Fault(
        "table-by-length",
        "rows are in the order of their lengths",
        spec.TABLE_01,
        {"padded": tables.by_length},
        "PROPERTIES CB4",
    ),
    Fault(
        "table-padded-in-front",
        "padding stands before a row's pages, as batches of dense caches have it",
        spec.TABLE_01,
        {"padded": tables.aligned_at_end},
        TIRED,
    ),
    Fault(
        "table-as-wide-as-first",
        "the table is as wide as its first row",
        spec.TABLE_01,
        {"padded": tables.as_wide_as_first},
        TIRED,
    ),
    Fault(
        "table-full-pages",
        "a last page that is filled in part is not in the table",
        spec.TABLE_01,
        {"padded": tables.full_pages_alone},
        "PROPERTIES PG3",
    ),
    Fault(
        "table-lens-of-slots",
        "context_lens counts the slots of all pages",
        spec.TABLE_02,
        {"context_lens": tables.slots_of_rows},
        f"{INVARIANTS} 1",
    ),
    Fault(
        "table-lens-in-pages",
        "context_lens counts pages",
        spec.TABLE_02,
        {"context_lens": tables.pages_of_rows},
        TIRED,
    ),
    Fault(
        "table-lens-of-longest",
        "every row has the longest length",
        spec.TABLE_02,
        {"context_lens": tables.longest_of_all},
        "PROPERTIES PA5",
    ),
    Fault(
        "table-empty-rows-left-out",
        "rows without tokens are left out",
        spec.TABLE_02,
        {"table": tables.busy_rows},
        "PROPERTIES BK4",
    ),
    Fault(
        "table-lens-of-before",
        "context_lens are made anew only when pages change",
        spec.TABLE_03,
        {"context_lens": tables.remembered},
        "PROPERTIES PC10",
    ),
    Fault(
        "table-of-before",
        "the table is made anew only when its shape changes",
        spec.TABLE_03,
        {"padded": tables.only_once},
        "PROPERTIES PC10",
    ),
)
