"""Mistakes between a pool, its caches, their block table and the attention that reads them, and other honest ways."""

from __future__ import annotations

from inferspec.spec import paged_kv_sentences as spec
from inferspec.spec.changes import paged_batches as changes
from inferspec.spec.contract import Change, Fault, Requirement, Variant
from inferspec.spec.faults.sources import TIRED

COURSE = "tiny-llm course, week 3 day 2"
INVARIANTS = f"{COURSE}, Correctness Invariants"
VLLM = "https://github.com/vllm-project/vllm/pull"
VLLM_METAL = "https://github.com/vllm-project/vllm-metal/commit"


def _fault(name: str, text: str, kills: Requirement, change: Change, source: str) -> Fault:
    return Fault(f"paged-attention-{name}", text, kills, change, source)


BATCH_FAULTS: tuple[Fault, ...] = (
    _fault(
        "lens-before-append",
        "context_lens are those from before the last append",
        spec.PKVA_01,
        {"extend": changes.remembers_length, **changes.lens(changes.before_append)},
        f"{INVARIANTS} 1",
    ),
    _fault(
        "arrays-before-append",
        "attention is given the pool's arrays from before the last append",
        spec.PKVA_01,
        {"extend": changes.copies_arrays, "arrays": changes.arrays_before},
        COURSE,
    ),
    _fault(
        "table-before-append",
        "the block table is from before the last append: a page that it took is missing",
        spec.PKVA_01,
        {"extend": changes.remembers_length, "padded": changes.table_before},
        f"{COURSE}: the block table after the write is done",
    ),
    _fault(
        "lens-in-a-byte",
        "context_lens are kept in a byte",
        spec.PKVA_01,
        changes.lens(changes.in_a_byte),
        "PROPERTIES X8",
    ),
    _fault(
        "eight-rows",
        "rows past the 8th are given the pages of the first ones",
        spec.PKVA_03,
        {"padded": changes.of_eight_rows},
        TIRED,
    ),
    _fault(
        "rows-reversed",
        "rows of the table are the wrong way round",
        spec.PKVA_01,
        {"padded": changes.rows_reversed},
        TIRED,
    ),
    _fault(
        "rows-by-number",
        "table and context_lens are in the order in which requests came, and queries are not",
        spec.PKVA_01,
        {"attended": changes.by_number},
        "PROPERTIES CB4",
    ),
    _fault(
        "chunk-sees-all",
        "every query of a chunk sees the whole context",
        spec.PKVA_02,
        changes.biased(changes.whole),
        COURSE,
    ),
    _fault(
        "chunk-from-start",
        "queries of a chunk are taken for the first tokens of the context",
        spec.PKVA_02,
        changes.biased(changes.top_left),
        "PROPERTIES CM2",
    ),
    _fault(
        "chunk-alone",
        "queries of a chunk see the chunk alone",
        spec.PKVA_02,
        changes.biased(changes.chunk_alone),
        "PROPERTIES CP1",
    ),
    _fault(
        "chunk-of-longest",
        "the causal mask of all rows is that of the longest",
        spec.PKVA_02,
        changes.biased(changes.as_the_longest),
        "PROPERTIES PA5",
    ),
    _fault(
        "chunk-not-itself",
        "queries of a chunk do not see their own token",
        spec.PKVA_02,
        changes.biased(changes.one_late),
        TIRED,
    ),
    _fault(
        "longest-for-all",
        "every row has as many tokens as the longest: entries that pad the table are read",
        spec.PKVA_03,
        {"context_lens": changes.longest},
        "PROPERTIES PA5",
    ),
    _fault(
        "empty-row-sees-one",
        "a row without tokens sees one, of the page that pads the table",
        spec.PKVA_03,
        changes.lens(changes.never_empty),
        "PROPERTIES BK2",
    ),
    _fault(
        "empty-rows-left-out",
        "rows without tokens are left out of the table, and those behind them move up",
        spec.PKVA_03,
        {"attended": changes.packed},
        "PROPERTIES BK4",
    ),
    _fault(
        "empty-rows-unwritten",
        "a row without tokens is not written: what was there comes back",
        spec.PKVA_03,
        {"attended": changes.idle_keep_query},
        "PROPERTIES X11",
    ),
    _fault(
        "table-extended",
        "entries of the table stay after a rewind, though the pages are others",
        spec.PKVA_04,
        {"padded": changes.table_extended},
        "PROPERTIES KV1, PC10",
    ),
    _fault(
        "table-of-former",
        "a request begins with entries of the one that was in its place before",
        spec.PKVA_04,
        {"attended": changes.slot_extended, "padded": changes.known_alone},
        f"{COURSE}, slot reuse; PROPERTIES BK3",
    ),
    _fault(
        "lens-not-rewound",
        "context_lens never become smaller",
        spec.PKVA_04,
        {"extend": changes.remembers_most, **changes.lens(changes.most)},
        "PROPERTIES KV1",
    ),
    _fault(
        "arrays-of-first-call",
        "attention holds on to the arrays of its first call",
        spec.PKVA_04,
        {"arrays": changes.arrays_of_first_call},
        "PROPERTIES X7",
    ),
    _fault(
        "table-of-first-layer",
        "every layer reads by the table of the first one",
        spec.PKVA_05,
        {"attended": changes.first_layer},
        f"{COURSE}: per-layer page tables",
    ),
    _fault(
        "lens-of-last-layer",
        "context_lens are those of the last layer, which has not taken the new tokens",
        spec.PKVA_05,
        {"attended": changes.lens_of_last_layer, **changes.lens(changes.told)},
        COURSE,
    ),
    _fault(
        "rewinds-all-layers",
        "a request that is rewound in one layer is in all of them, each time",
        spec.PKVA_05,
        {"drop": changes.rewinds_all_layers},
        TIRED,
    ),
    _fault(
        "allocator-of-each-layer",
        "every layer hands out all pages of the one pool",
        spec.PKVA_05,
        {
            "cache": changes.layer_of,
            "take": changes.takes_of_layer,
            "give_back": changes.gives_to_layer,
            "count": changes.counts_layer,
        },
        f"{VLLM_METAL}/1a036e8",
    ),
    _fault(
        "tail-capacity",
        "all slots of the last page count",
        spec.PKVA_06,
        changes.lens(changes.slots_of),
        f"{COURSE}: context_lens[b] to ignore unused tail capacity",
    ),
    _fault(
        "lens-one-more",
        "context_lens count one token more",
        spec.PKVA_06,
        changes.lens(changes.one_more),
        f"{VLLM}/47305",
    ),
    _fault(
        "tail-times-zero",
        "slots past the end of a context are multiplied by 0",
        spec.PKVA_06,
        {"attended": changes.times_zero},
        f"{VLLM}/936",
    ),
)


_NAME = "PagedKVCache.attention"

BATCH_VARIANTS: tuple[Variant, ...] = (
    Variant("paged-attention-lowest-page", "the lowest page that is free", _NAME, {"take": changes.lowest}),
    Variant(
        "paged-attention-wide-table", "a wide table with garbage for padding", _NAME, {"padded": changes.garbage_behind}
    ),
    Variant("paged-attention-gathered", "tokens are gathered, row by row", _NAME, {"attended": changes.dense}),
)
