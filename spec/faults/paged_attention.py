"""What goes wrong in paged attention, and the honest ways to compute it.

Most mistakes are about where a token lies (`place`), how many there are (`length`), or what is read beside them; those of
the attention itself are flash attention's, with pages for tiles.
"""

from __future__ import annotations

import numpy as np

from inferspec.spec import paged_attention as spec
from inferspec.spec.changes import paged_attention as changes
from inferspec.spec.changes.attention import (
    in_common_heads,
    of_drafts,
    one_partial_result_for_a_group,
    rereads,
    reshapes,
    unwritten_past,
)
from inferspec.spec.changes.attention_paths import first_heads, heads_by_32_of_a_group
from inferspec.spec.changes.attention_variants import (
    NATIVE_STEPS,
    base_two,
    online,
    query_scaled_first,
    split_and_merged,
)
from inferspec.spec.changes.attention_weights import keys_of_nothing_hidden, one_is_the_default, whole_is_the_default
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
)
from inferspec.spec.contract import Arguments, Fault, Variant
from inferspec.spec.faults import (
    paged_attention_arrays,
    paged_attention_numbers,
    paged_attention_places,
    paged_attention_rows,
)
from inferspec.spec.faults.attention_sources import ENGINEER, FLASHINFER, TINY_LLM
from inferspec.spec.mistakes import (
    defaults_to,
    lacks_a_feature,
    leaves_unwritten,
    only_where,
    paths_lack_a_feature,
    paths_misread,
)
from inferspec.spec.numerics import Precision


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
        "paged-keys-of-zeros-are-padding",
        "tokens whose keys sum up to 0 are taken for slots that nothing was written to, and hidden",
        spec.PAGED_01,
        changes.attending({"logits": keys_of_nothing_hidden}),
        "https://github.com/Kyubyong/transformer/issues/33",
    ),
    Fault(
        "paged-scale-of-one-is-default",
        "a scale of 1 stands for none given",
        spec.PAGED_08,
        {"scale": one_is_the_default},
        ENGINEER,
    ),
    Fault(
        "paged-values-from-key-pages",
        "values are read from the pages of keys",
        spec.PAGED_01,
        rereads(value_pages="key_pages"),
        ENGINEER,
    ),
    *paged_attention_places.FAULTS,
    Fault(
        "paged-heads-past-the-64th",
        "heads past the 64th are not written",
        spec.PAGED_05,
        leaves_unwritten(first_heads(64)),
        ENGINEER,
    ),
    Fault(
        "paged-past-31-of-a-group",
        "heads past the 31st of a group read the next key head",
        spec.PAGED_05,
        {"key_heads": heads_by_32_of_a_group},
        ENGINEER,
    ),
    Fault(
        "paged-tokens-of-16-rows",
        "after 256 tokens and more, rows past the 16th follow the tables of the first ones",
        spec.PAGED_13,
        changes.tables_modulo(16, changes.decodes_after_hundreds),
        ENGINEER,
    ),
    Fault(
        "paged-chunks-of-16-rows",
        "of 9 queries and more, rows past the 16th follow the tables of the first ones",
        spec.PAGED_13,
        changes.tables_modulo(16, changes.of_chunks),
        ENGINEER,
    ),
    Fault(
        "paged-four-large-key-heads",
        "in tables of 256 tokens and more a token, or a few, of heads of 128 features count key heads modulo 4",
        spec.PAGED_05,
        changes.key_heads_modulo(4, changes.of_large_heads_of_hundreds),
        "https://github.com/tenstorrent/tt-metal/issues/33440",
    ),
    Fault(
        "paged-chunks-of-four-key-heads",
        "of 9 queries and more key heads are counted modulo 4",
        spec.PAGED_05,
        changes.key_heads_modulo(4, changes.of_chunks),
        ENGINEER,
    ),
    Fault(
        "paged-eight-key-heads-of-128",
        "of heads of 128 features key heads are counted modulo 8",
        spec.PAGED_05,
        changes.key_heads_modulo(8, lambda a: a.query.shape[-1] == 128),
        ENGINEER,
    ),
    Fault(
        "paged-two-very-large-key-heads",
        "of heads of more than 128 features key heads are counted modulo 2",
        spec.PAGED_05,
        changes.key_heads_modulo(2, changes.of_very_large_heads),
        ENGINEER,
    ),
    Fault(
        "paged-four-rows-of-very-large-heads",
        "of heads of more than 128 features rows past the fourth follow the tables of the first ones",
        spec.PAGED_13,
        changes.tables_modulo(4, changes.of_very_large_heads),
        ENGINEER,
    ),
    Fault(
        "paged-drafts-past-1024",
        "of 2 to 8 queries after more than 1024 tokens the last feature is not written",
        spec.PAGED_04,
        lacks_a_feature(changes.of_several_past_1024(range(2, 9))),
        ENGINEER,
    ),
    Fault(
        "paged-chunks-past-1024",
        "of 9 queries and more after more than 1024 tokens the last feature is not written",
        spec.PAGED_04,
        lacks_a_feature(changes.of_several_past_1024(range(9, 2**16))),
        ENGINEER,
    ),
    Fault(
        "paged-long-contexts-of-eight-heads",
        "over more than 64 tokens key heads are counted modulo 8",
        spec.PAGED_05,
        changes.heads_of_long_contexts_by_eight(),
        ENGINEER,
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
        "paged-large-pages-of-four-rows",
        "where pages have 64 slots and more rows past the fourth have the tables of the first ones",
        spec.PAGED_13,
        reshapes(changes.tables_of_four_rows),
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
        "paged-whole-scale-is-default",
        "a scale that is a whole number, and no float, is taken for none",
        spec.PAGED_08,
        {"scale": whole_is_the_default},
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
    *(
        Fault(
            f"paged-lengths-in-{kind.__name__}",
            f"how long contexts are is kept in {kind.__name__}",
            spec.PAGED_29,
            changes.lengths_as(kind),
            "https://github.com/ml-explore/mlx/issues/3360",
        )
        for kind in (np.int16, np.uint16)
    ),
    *paged_attention_rows.FAULTS,
    *paged_attention_numbers.FAULTS,
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
        "paged-offset-within-a-page-in-16-bits",
        "head · stride + slot · stride, within a page, is kept in 16 bits",
        spec.PAGED_18,
        {"read": changes.offsets_in_16_bits},
        ENGINEER,
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
        "paged-no-page-twice",
        "a row that names a page twice is refused",
        PAGED,
        {"guard_pages": changes.pages_twice_refused},
    ),
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
