"""What goes wrong in paged attention, and the honest ways to compute it.

Most mistakes are about where a token lies (`place`), how many there are (`length`), or what is read beside them; those of
the attention itself are flash attention's, with pages for tiles.
"""

from __future__ import annotations

import numpy as np

from inferspec.spec import paged_attention as spec
from inferspec.spec.changes import paged_attention as changes
from inferspec.spec.changes import tiles
from inferspec.spec.changes.attention import (
    in_common_heads,
    of_drafts,
    one_partial_result_for_a_group,
    rereads,
    reshapes,
    unwritten_past,
)
from inferspec.spec.changes.attention_variants import (
    NATIVE_STEPS,
    base_two,
    online,
    query_scaled_first,
    split_and_merged,
)
from inferspec.spec.changes.attention_weights import (
    empty_rows,
    half_products_saturate,
    hidden_in_maximum,
    logits_summed_in_dtype,
    starts_at,
    total_summed_in_dtype,
    values_summed_in_dtype,
    weights_by,
)
from inferspec.spec.changes.flash_attention import (
    features_from,
    group_shifted_down,
    groups_of_eight,
    lazily_rescaled,
    rounded_weights,
    splits_by_stride,
    tiles_reversed,
    two_pass,
    unnormalised,
    walk_in_dtype,
)
from inferspec.spec.changes.tiles import walking
from inferspec.spec.contract import Arguments, Fault, Variant
from inferspec.spec.faults import paged_attention_arrays
from inferspec.spec.faults.attention_sources import ENGINEER, FLASHINFER, MLX, TINY_LLM
from inferspec.spec.mistakes import (
    defaults_to,
    first_row_for_all,
    lacks_a_feature,
    leaves_unwritten,
    only_where,
    paths_lack_a_feature,
    paths_misread,
)
from inferspec.spec.numerics import Precision

VLLM = "https://github.com/vllm-project/vllm/"


def of_batches_of_drafts(a: Arguments) -> bool:
    """Whether each of several rows, of no more than a threadgroup takes, has several queries of heads that share keys."""
    rows, heads, length, _ = a.query.shape
    return 4 < rows <= 64 and length > 1 and heads >= 4 * a.key_pages.shape[1]


FAULTS = (
    Fault(
        "paged-not-normalised",
        "the values are not divided by the running sum at the end",
        spec.PAGED_01,
        changes.attending({"weights": unnormalised}),
        ENGINEER,
    ),
    Fault(
        "paged-values-from-key-pages",
        "values are read from the pages of keys",
        spec.PAGED_01,
        rereads(value_pages="key_pages"),
        ENGINEER,
    ),
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
    Fault(
        "paged-heads-tiled",
        "query head h reads head h % H",
        spec.PAGED_05,
        {"key_heads": changes.heads_tiled},
        ENGINEER,
    ),
    Fault(
        "paged-value-heads-tiled",
        "query head h reads value head h % H and the right key head",
        spec.PAGED_05,
        {"value_heads": changes.heads_tiled},
        ENGINEER,
    ),
    Fault(
        "paged-group-shifted-down",
        "a group has as many query heads as the power of two below its ratio",
        spec.PAGED_05,
        {"key_heads": group_shifted_down},
        ENGINEER,
    ),
    Fault(
        "paged-groups-of-eight",
        "a tile of eight query heads shares one key head, whatever the ratio",
        spec.PAGED_05,
        {"key_heads": groups_of_eight},
        ENGINEER,
    ),
    Fault(
        "paged-causal-top-left",
        "the causal mask is aligned with the start of the context",
        spec.PAGED_06,
        changes.causal(lambda a, row, i, p, length: p <= i),
        TINY_LLM + "commit/0c1ae4b",
    ),
    Fault(
        "paged-second-block-one-future",
        "queries past the first block of 64 see one token after their own",
        spec.PAGED_06,
        changes.causal(lambda a, row, i, p, length: p <= i + length - i.size + (i >= 64)),
        ENGINEER,
    ),
    *paths_lack_a_feature(
        "paged-common-batches",
        "of grouped heads of 128 dims, of three rows and more that decode,",
        spec.PAGED_13,
        in_common_heads(lambda a: a.query.shape[-2] == 1 and len(a.query) >= 3, key="key_pages"),
        ENGINEER,
        argument="query",
    ),
    *paths_lack_a_feature(
        "paged-common-chunks",
        "in chunks of grouped heads of 128 dims after a long context",
        spec.PAGED_06,
        in_common_heads(changes.chunk_after_context, key="key_pages"),
        ENGINEER,
        argument="query",
    ),
    *paths_lack_a_feature(
        "paged-batches-of-drafts",
        "of grouped heads, of five rows and more with several queries each,",
        spec.PAGED_13,
        of_batches_of_drafts,
        ENGINEER,
        argument="query",
    ),
    Fault(
        "paged-4096-tokens-of-later-rows",
        "of rows past the first the tokens past the 4096th are not read",
        spec.PAGED_13,
        changes.lengths(lambda a, row, length: min(length, 4096) if row else length),
        ENGINEER,
    ),
    Fault(
        "paged-eight-rows",
        "rows past the 8th are not written",
        spec.PAGED_13,
        leaves_unwritten(lambda out: out[:8]),
        ENGINEER,
    ),
    Fault(
        "paged-causal-if-said",
        "the mask is causal only where that is said",
        spec.PAGED_06,
        defaults_to(mask=None),
        ENGINEER,
    ),
    Fault(
        "paged-drafts-unmasked",
        "of two to eight queries of heads in groups of four and more, after 256 tokens and more, each sees the whole context",
        spec.PAGED_06,
        changes.causal(
            lambda a, row, i, p, length: (
                (p <= i + length - i.size) | (of_drafts(a.query, a.key_pages.shape[1], length) & (p >= 0))
            )
        ),
        ENGINEER,
    ),
    *(
        fault
        for told, queries in (("drafts", range(2, 9)), ("chunks", range(16, 2**16)))
        for fault in paths_misread(
            f"paged-{told}-of-common-heads",
            f"of {told} of heads of 64 and 128 dims over 256 tokens and more",
            spec.PAGED_21,
            changes.of_common_heads(queries),
            dict.fromkeys(("query", "key_pages")),
        )
    ),
    *paths_misread(
        "paged-splits",
        "of single queries over 256 tokens and more",
        spec.PAGED_21,
        lambda a: a.query.shape[2] == 1 and a.context_lens.max(initial=0) >= 256,
        dict.fromkeys(("query", "key_pages", "value_pages", "block_table", "context_lens")),
    ),
    Fault(
        "paged-fifth-block-one-future",
        "queries past the first 256 see one token after their own",
        spec.PAGED_06,
        changes.causal(lambda a, row, i, p, length: p <= i + length - i.size + (i >= 256)),
        ENGINEER,
    ),
    Fault(
        "paged-values-of-one-page",
        "where none of more than eight rows has more than a page, all read the values of the first row's",
        spec.PAGED_13,
        changes.value_places(changes.first_page_where_one_is_enough),
        ENGINEER,
    ),
    Fault(
        "paged-64-rows",
        "rows past the 64th are not written",
        spec.PAGED_13,
        leaves_unwritten(lambda out: out[:64]),
        ENGINEER,
    ),
    Fault(
        "paged-32-heads",
        "heads past the 32nd are not written",
        spec.PAGED_13,
        leaves_unwritten(lambda out: out[:, :32]),
        ENGINEER,
    ),
    Fault(
        "paged-groups-to-8",
        "query heads past the 8th of a group read the next key head",
        spec.PAGED_05,
        {"key_heads": changes.groups_to_eight},
        ENGINEER,
    ),
    Fault(
        "paged-groups-to-16",
        "query heads past the 16th of a group are never written",
        spec.PAGED_05,
        unwritten_past(16, "key_pages"),
        "https://github.com/vllm-project/vllm/pull/23424",
    ),
    Fault(
        "paged-contexts-of-4096",
        "tokens past the first 4096 are never read",
        spec.PAGED_04,
        changes.lengths(lambda a, row, length: min(length, 4096)),
        ENGINEER,
    ),
    Fault(
        "paged-one-partial-result-for-a-group",
        "over a long context the query heads of a group, one token of a common head, all get what one of them summed",
        spec.PAGED_04,
        one_partial_result_for_a_group("key_pages", lambda a: int(np.max(a.context_lens, initial=0))),
        "https://github.com/ml-explore/mlx/issues/4022",
    ),
    Fault(
        "paged-full-table-refused",
        "a context that fills its table is refused",
        spec.PAGED_04,
        {"guard_lengths": changes.full_tables_refused},
        ENGINEER,
    ),
    Fault(
        "paged-spare-page-needed",
        "a pool of which every page is in use is refused: padding has no page",
        spec.PAGED_02,
        {"guard_pages": changes.spare_page_needed},
        ENGINEER,
    ),
    Fault(
        "paged-causal-one-future",
        "each query sees one token after its own",
        spec.PAGED_06,
        changes.causal(lambda a, row, i, p, length: p <= i + length - i.size + 1),
        ENGINEER,
    ),
    Fault(
        "paged-causal-ignored",
        "every query sees the whole context",
        spec.PAGED_06,
        changes.causal(lambda a, row, i, p, length: p >= 0),
        "https://github.com/ml-explore/mlx-lm/commit/a9e1e82c",
    ),
    Fault(
        "paged-causal-by-capacity",
        "the causal mask is aligned with the end of the last page",
        spec.PAGED_06,
        changes.causal(lambda a, row, i, p, length: p <= i + changes.capacity(a, length) - i.size),
        "https://github.com/ml-explore/mlx-lm/commit/eb98ff72",
    ),
    Fault(
        "paged-causal-by-longest",
        "the causal mask is aligned with the end of the batch's longest context",
        spec.PAGED_06,
        changes.causal(lambda a, row, i, p, length: p <= i + int(a.context_lens.max()) - i.size),
        ENGINEER,
    ),
    Fault(
        "paged-none-is-causal",
        "without a mask queries see what a causal mask shows",
        spec.PAGED_07,
        reshapes(lambda a: {"mask": "causal"}),
        ENGINEER,
    ),
    Fault(
        "paged-scale-ignored",
        "a scale that is given is ignored",
        spec.PAGED_08,
        {"scale": lambda self, a: a.query.shape[-1] ** -0.5},
        ENGINEER,
    ),
    Fault(
        "paged-scale-zero-is-default",
        "scale 0 is taken for none (`scale or default`)",
        spec.PAGED_08,
        {"scale": lambda self, a: float(a.scale or a.query.shape[-1] ** -0.5)},
        "real code written from the seeds",
    ),
    Fault(
        "paged-scale-twice",
        "the scale is applied to the query and to the logits",
        spec.PAGED_08,
        {"scale": lambda self, a: changes.CORE.scale(a) ** 2},
        ENGINEER,
    ),
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
    Fault(
        "paged-values-summed-in-dtype",
        "the running values are in the input's dtype",
        spec.PAGED_15,
        changes.attending({"combine": values_summed_in_dtype}),
        ENGINEER,
    ),
    Fault(
        "paged-values-rounded-between-pages",
        "the running values are stored in the input's dtype between tiles",
        spec.PAGED_15,
        changes.attending({"attended": walk_in_dtype}),
        ENGINEER,
    ),
    Fault(
        "paged-total-summed-in-dtype",
        "the running sum of the weights is in the input's dtype",
        spec.PAGED_15,
        changes.attending({"weights": total_summed_in_dtype}),
        ENGINEER,
    ),
    Fault(
        "paged-logits-summed-in-dtype",
        "the logits are accumulated in the input's dtype",
        spec.PAGED_15,
        changes.attending({"logits": logits_summed_in_dtype}),
        ENGINEER,
    ),
    Fault(
        "paged-maximum-from-sentinel",
        "the running maximum starts at -5e4: rows below it are zeros",
        spec.PAGED_16,
        changes.attending(starts_at(-5e4)),
        FLASHINFER + "commit/d7f2c6464",
    ),
    Fault(
        "paged-maximum-from-minus-1e9",
        "the running maximum starts at -1e9: rows below it are zeros",
        spec.PAGED_16,
        changes.attending(starts_at(-1e9)),
        ENGINEER,
    ),
    Fault(
        "paged-maximum-from-minus-1e30",
        "the running maximum starts at -1e30: rows below it are zeros",
        spec.PAGED_16,
        changes.attending(starts_at(-1e30)),
        ENGINEER,
    ),
    Fault(
        "paged-products-saturate",
        "of float16 heads of 64 and 128 features products of queries and keys end at 65504 before they are scaled",
        spec.PAGED_16,
        changes.attending({"logits": half_products_saturate}),
        ENGINEER,
    ),
    Fault(
        "paged-maximum-from-zero",
        "the running maximum starts at 0: rows far below it are zeros",
        spec.PAGED_16,
        changes.attending(starts_at(0.0)),
        ENGINEER,
    ),
    Fault(
        "paged-never-rescaled",
        "earlier tokens are not rescaled when the maximum grows",
        spec.PAGED_17,
        changes.attending(walking(16, add=tiles.sums_kept)),
        ENGINEER,
        forms=tuple(changes.attending(form) for form in tiles.in_other_tiles(16, add=tiles.sums_kept)),
    ),
    Fault(
        "paged-values-not-rescaled",
        "the running sum of the weights is rescaled, the running values are not",
        spec.PAGED_17,
        changes.attending(walking(32, add=tiles.values_kept)),
        ENGINEER,
        forms=tuple(changes.attending(form) for form in tiles.in_other_tiles(32, add=tiles.values_kept)),
    ),
    Fault(
        "paged-total-not-rescaled",
        "the running values are rescaled, the running sum of the weights is not",
        spec.PAGED_17,
        changes.attending(walking(32, add=tiles.total_kept)),
        ENGINEER,
        forms=tuple(changes.attending(form) for form in tiles.in_other_tiles(32, add=tiles.total_kept)),
    ),
    Fault(
        "paged-token-past-tiles-of-96",
        "a token that is one more than tiles of 96 is never read",
        spec.PAGED_04,
        changes.attending(walking(96, tiles=tiles.all_but_one_past)),
        ENGINEER,
    ),
    Fault(
        "paged-partitions-averaged",
        "partitions of 64 tokens are normalised by themselves and averaged",
        spec.PAGED_17,
        changes.attending(walking(64, add=tiles.each_tile_normalised)),
        ENGINEER,
    ),
    Fault(
        "paged-page-ids-in-int16",
        "page ids are kept in int16",
        spec.PAGED_18,
        changes.places(changes.ids_as(np.int16)),
        ENGINEER,
    ),
    Fault(
        "paged-page-ids-in-uint16",
        "page ids are kept in uint16",
        spec.PAGED_18,
        changes.places(changes.ids_as(np.uint16)),
        "https://github.com/ROCm/ATOM/issues/702",
    ),
    Fault(
        "paged-offset-in-16-bits",
        "page · stride is kept in 16 bits",
        spec.PAGED_18,
        changes.places(changes.offset_wraps(16)),
        FLASHINFER + "commit/d885b71f3",
    ),
    Fault(
        "paged-offset-overflows",
        "page · stride overflows (here from 2^20 on, in int32 from 2^31)",
        spec.PAGED_18,
        changes.places(changes.offset_wraps(20)),
        FLASHINFER + "commit/d885b71f3",
    ),
    Fault(
        "paged-query-dims-dropped",
        "features past a multiple of 32 do not enter the logits",
        spec.PAGED_19,
        features_from(lambda dim: dim // 32 * 32, "query"),
        ENGINEER,
    ),
    Fault(
        "paged-value-dims-past-128",
        "features of the result past 128 are zeros",
        spec.PAGED_19,
        features_from(lambda dim: min(dim, 128), "value_pages"),
        ENGINEER,
    ),
    Fault(
        "paged-latter-features-of-page-before",
        "features of a value past 64 come from the page before",
        spec.PAGED_19,
        {"gathered": changes.latter_features_of_page_before},
        FLASHINFER + "commit/103fcf862",
    ),
    Fault(
        "paged-causal-whole-pages-before",
        "the tokens before a chunk are counted in whole pages",
        spec.PAGED_20,
        changes.causal(lambda a, row, i, p, length: p <= i + (length - i.size) // a.page_size * a.page_size),
        ENGINEER,
    ),
    Fault(
        "paged-decode-misses-itself",
        "a single query does not see its own token",
        spec.PAGED_20,
        changes.causal(lambda a, row, i, p, length: p <= i + length - i.size - (i.size == 1)),
        ENGINEER,
    ),
    *paged_attention_arrays.FAULTS,
    Fault(
        "paged-rows-after-an-empty-one",
        "beside contexts that are shared out, rows after one without context read the next one's",
        spec.PAGED_13,
        changes.rows_by(changes.after_an_empty_row, changes.of_empty_rows),
        "https://github.com/Dao-AILab/flash-attention/issues/2842",
    ),
    Fault(
        "paged-drafts-of-first-row",
        "the drafts of all rows, over contexts that are shared out, read the context of the first",
        spec.PAGED_13,
        changes.rows_by(lambda a: np.zeros(len(a.context_lens), int), changes.of_drafts_over_splits),
        ENGINEER,
    ),
    Fault(
        "paged-split-odd-groups",
        "a token's heads in groups of three or five, over contexts that are shared out, read the heads in the other order",
        spec.PAGED_05,
        only_where(changes.of_odd_groups, reshapes(changes.heads_exchanged)),
        "https://github.com/ml-explore/mlx/issues/4022",
    ),
    Fault(
        "paged-split-rare-dims",
        "of heads of 72, 112 and 192 dims, over contexts that are shared out, the last feature is not written",
        spec.PAGED_13,
        lacks_a_feature(changes.of_rare_dims),
        ENGINEER,
    ),
    Fault(
        "paged-many-tokens-modulo-eight",
        "tokens of common heads past the eighth row of a batch read the context of a row before",
        spec.PAGED_13,
        changes.rows_by(lambda a: np.arange(len(a.context_lens)) % 8, changes.of_many_tokens),
        ENGINEER,
    ),
    Fault(
        "paged-eight-of-a-group",
        "over more than 64 tokens heads past the eighth of a group read the next head",
        spec.PAGED_05,
        {"key_heads": changes.groups_of_eight},
        ENGINEER,
    ),
)


PAGED = "paged_attention"


VARIANTS = (
    Variant("paged-gathered-dense", "gathered, then attention in float32", PAGED, changes.dense(query_scaled_first)),
    Variant(
        "paged-whole-pages-zeroed",
        "whole pages gathered, the tail zeroed and hidden",
        PAGED,
        {
            "gathered": changes.gathered_with_tail_zeroed,
            "bias": changes.hides_past_context,
            **changes.dense(query_scaled_first),
        },
    ),
    Variant(
        "paged-page-by-page", "online softmax with a page for a tile", PAGED, {"attended": changes.walked_by_pages}
    ),
    *(
        Variant(
            f"paged-online-{tile}", f"online softmax in tiles of {tile} tokens", PAGED, changes.attending(online(tile))
        )
        for tile in (1, 8, 32)
    ),
    Variant(
        "paged-tiles-reversed", "from the newest token to the oldest, in base 2", PAGED, changes.dense(tiles_reversed)
    ),
    Variant(
        "paged-pages-reversed",
        "from the last page to the first, token by token",
        PAGED,
        changes.by_order(changes.order_of_pages_reversed, changes.one_after_the_other),
    ),
    Variant(
        "paged-slot-by-slot",
        "slot 0 of every page, then slot 1, token by token",
        PAGED,
        changes.by_order(changes.order_of_slots, changes.one_after_the_other),
    ),
    Variant(
        "paged-splits-merged", "three partitions, merged by their log-sum-exp", PAGED, changes.dense(split_and_merged)
    ),
    Variant("paged-splits-by-stride", "eight groups take every eighth token", PAGED, changes.dense(splits_by_stride)),
    Variant("paged-two-pass", "one pass for the sum, another for the values", PAGED, changes.dense(two_pass)),
    Variant("paged-base-two", "exp2, with log2(e) folded into the scale", PAGED, changes.dense(base_two)),
    Variant(
        "paged-lazily-rescaled", "rescaled only when the maximum rises by 8", PAGED, changes.dense(lazily_rescaled)
    ),
    Variant(
        "paged-weights-rounded",
        "float32, with the weights rounded to the dtype before they meet the values",
        PAGED,
        changes.attending({"attended": rounded_weights}),
        Precision.NATIVE,
    ),
    Variant(
        "paged-native-steps",
        "every intermediate in the dtype",
        PAGED,
        changes.attending(NATIVE_STEPS),
        Precision.NATIVE,
    ),
)
