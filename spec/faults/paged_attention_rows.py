"""What goes wrong in paged attention with what a row does not have: slots past its tokens, pages of others, any context."""

from __future__ import annotations

import numpy as np

from inferspec.spec import paged_attention as spec
from inferspec.spec.changes import paged_attention as changes
from inferspec.spec.changes.attention_weights import empty_rows, hidden_in_maximum, weights_by
from inferspec.spec.contract import Fault
from inferspec.spec.faults.attention_sources import ENGINEER, MLX
from inferspec.spec.faults.paged_attention_sources import VLLM
from inferspec.spec.mistakes import first_row_for_all

FAULTS: tuple[Fault, ...] = (
    Fault(
        "paged-tail-keys-read",
        "keys past the context are read, and hidden by adding -inf to what they make",
        spec.PAGED_09,
        changes.reads_whole_pages(values=np.nan_to_num),
        VLLM + "pull/47305",
    ),
    Fault(
        "paged-tail-values-read",
        "values past the context are read and multiplied by 0",
        spec.PAGED_09,
        changes.reads_whole_pages(keys=np.zeros_like),
        VLLM + "pull/936",
    ),
    Fault(
        "paged-tail-in-maximum",
        "keys past the context count in the running maximum",
        spec.PAGED_09,
        changes.reads_whole_pages(np.nan_to_num, np.nan_to_num, attended=hidden_in_maximum),
        ENGINEER,
    ),
    Fault(
        "paged-gathered-by-product",
        "tokens are gathered by a product with a one-hot matrix",
        spec.PAGED_09,
        {"read": changes.gathered_by_product},
        ENGINEER,
    ),
    Fault(
        "paged-every-entry-followed",
        "entries of the table that no token needs are followed",
        spec.PAGED_10,
        {"respond": changes.follows_all_entries},
        ENGINEER,
    ),
    Fault(
        "paged-next-entry-followed",
        "the entry after the last page in use is followed",
        spec.PAGED_10,
        {"respond": changes.follows_next_entry},
        ENGINEER,
    ),
    Fault(
        "paged-common-prefix-too-long",
        "where rows have their first pages in common, the page after these is that of the first row too",
        spec.PAGED_11,
        changes.prefix_too_long(),
        ENGINEER,
    ),
    Fault(
        "paged-shared-page-of-one-row",
        "of rows that share a page one alone sees it",
        spec.PAGED_11,
        {"bias": changes.last_owner_alone},
        ENGINEER,
    ),
    Fault(
        "paged-order-of-ids",
        "pages are walked in the order of their ids, so that sums are rounded otherwise where pages lie otherwise",
        spec.PAGED_12,
        changes.by_order(changes.order_of_ids, changes.one_after_the_other),
        ENGINEER,
    ),
    Fault(
        "paged-table-row-after",
        "each row reads the table of the next one",
        spec.PAGED_13,
        changes.places(changes.row_after),
        ENGINEER,
    ),
    Fault(
        "paged-table-of-first-row",
        "every row reads the table of row 0",
        spec.PAGED_13,
        first_row_for_all("block_table"),
        ENGINEER,
    ),
    Fault(
        "paged-no-context-nan",
        "a row without context is 0 / 0",
        spec.PAGED_14,
        changes.no_context(np.nan),
        MLX + "commit/711a64580",
    ),
    Fault(
        "paged-no-context-crash",
        "a row without context raises an exception",
        spec.PAGED_14,
        changes.no_context(None),
        "https://github.com/Dao-AILab/flash-attention/commit/03cd0651",
    ),
    Fault(
        "paged-stops-at-empty-row",
        "rows after one without context are never written",
        spec.PAGED_14,
        {"finish": changes.stops_at_empty_row},
        "https://github.com/Dao-AILab/flash-attention/commit/a3a257c7",
    ),
    Fault(
        "paged-empty-at-both-ends",
        "where the first and the last row have no context all rows are zeros",
        spec.PAGED_14,
        {"finish": changes.empty_at_both_ends},
        ENGINEER,
    ),
    Fault(
        "paged-short-rows-wrap",
        "queries before the first token see all of the context",
        spec.PAGED_14,
        changes.causal(changes.short_rows_wrap),
        ENGINEER,
    ),
    Fault(
        "paged-short-rows-mean",
        "queries that see no token are the mean of the values",
        spec.PAGED_14,
        changes.attending(
            weights_by(lambda weights, logits: np.where(empty_rows(logits), 1 / max(logits.shape[-1], 1), weights))
        ),
        MLX + "commit/e1840853c",
    ),
)
