"""What goes wrong in paged attention with where tokens lie, and with how many there are."""

from __future__ import annotations

from inferspec.spec import paged_attention as spec
from inferspec.spec.changes import paged_attention as changes
from inferspec.spec.contract import Fault
from inferspec.spec.faults.attention_sources import ENGINEER, FLASHINFER
from inferspec.spec.faults.paged_attention_sources import VLLM

FAULTS: tuple[Fault, ...] = (
    Fault(
        "paged-modulo-for-division",
        "the page is p % page_size and the slot p // page_size",
        spec.PAGED_02,
        changes.places(changes.by_modulo),
        ENGINEER,
    ),
    Fault(
        "paged-slots-backwards",
        "slots are counted from the end",
        spec.PAGED_02,
        changes.places(changes.slots_backwards),
        ENGINEER,
    ),
    Fault(
        "paged-table-ignored",
        "the pages of a row are taken to lie one after the other",
        spec.PAGED_02,
        changes.places(changes.table_ignored),
        ENGINEER,
    ),
    Fault(
        "paged-table-transposed",
        "the table is read column by column",
        spec.PAGED_02,
        changes.places(changes.table_transposed),
        ENGINEER,
    ),
    Fault(
        "paged-table-row-stride",
        "rows of the table are taken to be as wide as the longest context needs",
        spec.PAGED_02,
        changes.places(changes.row_stride_of_used),
        ENGINEER,
    ),
    Fault(
        "paged-stale-page",
        "the first token of a page is read from the page before",
        spec.PAGED_02,
        changes.places(changes.page_before_at_start),
        ENGINEER,
    ),
    Fault(
        "paged-stale-page-of-values",
        "the first value of a page is read from the page before, the key is not",
        spec.PAGED_02,
        changes.value_places(changes.page_before_at_start),
        FLASHINFER + "commit/103fcf862",
    ),
    Fault(
        "paged-length-of-first-row",
        "the context of row 0 is taken for every row's",
        spec.PAGED_03,
        changes.lengths(lambda a, row, length: int(a.context_lens[0])),
        ENGINEER,
    ),
    Fault(
        "paged-length-of-longest-row",
        "the longest context is taken for every row's",
        spec.PAGED_03,
        changes.lengths(lambda a, row, length: int(a.context_lens.max())),
        VLLM + "pull/47305",
    ),
    Fault(
        "paged-last-token-missed",
        "the newest token is not read",
        spec.PAGED_03,
        changes.lengths(lambda a, row, length: length - 1),
        ENGINEER,
    ),
    Fault(
        "paged-one-token-more",
        "one slot past the context is read",
        spec.PAGED_03,
        changes.lengths(lambda a, row, length: length + 1),
        ENGINEER,
    ),
    Fault(
        "paged-tail-capacity-read",
        "the last page is read to its end",
        spec.PAGED_03,
        changes.lengths(lambda a, row, length: changes.capacity(a, length)),
        ENGINEER,
    ),
    Fault(
        "paged-whole-pages-only",
        "the last page is not read unless it is full",
        spec.PAGED_04,
        changes.lengths(lambda a, row, length: length // a.page_size * a.page_size or length),
        ENGINEER,
    ),
    Fault(
        "paged-page-after-full-one",
        "a context that ends with a page reads a slot of the next",
        spec.PAGED_04,
        changes.lengths(lambda a, row, length: length + (length % a.page_size == 0 and length > 0)),
        ENGINEER,
    ),
    Fault(
        "paged-full-last-page-dropped",
        "the last page is dropped where the context ends with it",
        spec.PAGED_04,
        changes.lengths(
            lambda a, row, length: length - a.page_size * (length % a.page_size == 0 and length > a.page_size)
        ),
        ENGINEER,
    ),
    Fault(
        "paged-page-size-by-shift",
        "the page size is taken for a power of two",
        spec.PAGED_04,
        changes.places(changes.shifted_page),
        "vllm-metal 0f6f76b",
    ),
    Fault(
        "paged-page-of-tile-of-32",
        "the table is looked up once for 32 tokens",
        spec.PAGED_04,
        changes.places(changes.page_of_tile(32)),
        ENGINEER,
    ),
    Fault(
        "paged-value-page-of-tile-of-64",
        "the table is looked up once for 64 values",
        spec.PAGED_04,
        changes.value_places(changes.page_of_tile(64)),
        FLASHINFER + "commit/103fcf862",
    ),
    Fault(
        "paged-tiles-past-a-large-page",
        "with pages of 256 and heads of 128 features, a tile of 160 that crosses the end of a page reads on in the pool",
        spec.PAGED_04,
        changes.places(changes.tiles_past_a_large_page(160)),
        "https://github.com/ai-bond/flash-attention-v100/issues/41",
    ),
    Fault(
        "paged-slots-to-128",
        "of a page only 128 slots are told apart",
        spec.PAGED_04,
        changes.places(changes.slots_to_128),
        FLASHINFER + "issues/4347",
    ),
    Fault(
        "paged-contexts-of-one-partition",
        "tokens past the first partition of 512 are never read",
        spec.PAGED_04,
        changes.lengths(lambda a, row, length: min(length, 512)),
        ENGINEER,
    ),
    Fault(
        "paged-one-partition-of-large-heads",
        "with heads of 128 features and more, tokens past the first partition of 512 are never read",
        spec.PAGED_04,
        changes.lengths(lambda a, row, length: min(length, 512) if a.query.shape[3] >= 128 else length),
        "PROPERTIES X2",
    ),
)
