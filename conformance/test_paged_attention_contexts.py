"""Are contexts of every length right in paged attention, alone and beside each other in a batch?"""

from typing import Any

import numpy as np

from inferspec.conformance.inputs.paged_attention import (
    PAGES,
    SPLIT,
    a_draft,
    a_draft_or_chunk,
    around_splits,
    at_page_end,
    beside_odd_tiles,
    hundreds_of_tokens,
    long_context,
    mixed_contexts,
    narrowed,
    paged_calls,
    past_a_large_page,
    past_splits,
    ragged_chunk,
    routed_pages,
    seeing,
    short_beside_long,
    tens_of_thousands,
    thousands_of_tokens,
    very_long_context,
    within_a_page,
)
from inferspec.conformance.judging.trial import Nonconformance
from inferspec.conformance.suite import requirement
from inferspec.spec import paged_attention as spec
from inferspec.spec.numerics import f64


@requirement(spec.PAGED_04, call=paged_calls(contexts=at_page_end), share=1.2)
def test_contexts_that_end_beside_the_end_of_a_page_are_right(subject, call):
    subject.agrees(call)


@requirement(spec.PAGED_04, routed=routed_pages(contexts=at_page_end), share=0.7)
def test_tokens_beside_the_end_of_a_page_are_found(subject, routed):
    call, expected = routed
    subject.expects(call, expected)


@requirement(
    spec.PAGED_04,
    routed=routed_pages(
        contexts=past_a_large_page,
        rows=(1, 1),
        orders=("reversed",),
        page_sizes=[128, 256],
        head_dims=[64, 128],
        ratios=[1, 4],
    ),
    share=0.5,
)
def test_tokens_of_large_pages_of_common_heads_are_found(subject, routed):
    call, expected = routed
    subject.expects(call, expected)


@requirement(spec.PAGED_04, call=paged_calls(contexts=long_context, rows=(1, 2)), share=0.3)
def test_contexts_of_many_pages_are_right(subject, call):
    subject.agrees(call)


@requirement(
    spec.PAGED_04,
    call=paged_calls(
        **{**SPLIT, "contexts": past_splits, "rows": (1, 1), "head_dims": [128, 256], "page_sizes": [16, 32, 64, 128]}
    ),
    share=0.05,
)
def test_long_contexts_of_large_heads_are_right(subject, call):
    subject.agrees(call)


@requirement(
    spec.PAGED_04, routed=routed_pages(contexts=thousands_of_tokens, queries=["one"], rows=(1, 2), **PAGES), share=0.15
)
def test_a_token_of_common_heads_after_a_long_context_finds_its_key_in_pages(subject, routed):
    call, expected = routed
    subject.expects(call, expected)


BESIDE_EACH_OTHER = {
    "contexts": around_splits,
    "chunk": a_draft,
    "rows": (2, 3),
    "head_dims": [128, 64, 72, 80, 112, 192, 256],
    "page_sizes": [16, 256, 64, 32, 100],
}
"""Rows without context, with little or with much, for a token or for a draft, of any head dim."""


@requirement(spec.PAGED_13, routed=routed_pages(**BESIDE_EACH_OTHER, ratios=[4, 3, 8, 1, 5]), share=0.3)
def test_tokens_and_drafts_of_any_context_find_their_keys_beside_each_other(subject, routed):
    call, expected = routed
    subject.expects(call, expected, where=seeing(call))


@requirement(
    spec.PAGED_13,
    routed=routed_pages(
        contexts=at_page_end,
        queries=["one"],
        rows=(8, 17),
        key_heads=2,
        **{**PAGES, "head_dims": [128], "ratios": [4, 8], "page_sizes": [16, 32]},
    ),
    share=0.08,
)
def test_many_tokens_of_common_heads_find_their_keys_in_a_batch(subject, routed):
    call, expected = routed
    subject.expects(call, expected)


@requirement(
    spec.PAGED_13, routed=routed_pages(contexts=hundreds_of_tokens, queries=["one"], rows=(3, 6), **PAGES), share=0.5
)
def test_tokens_of_common_heads_find_their_keys_in_a_batch(subject, routed):
    call, expected = routed
    subject.expects(call, expected)


@requirement(
    spec.PAGED_13,
    routed=routed_pages(
        contexts=at_page_end,
        queries=["one"],
        rows=(8, 9),
        key_heads=8,
        **{**PAGES, "ratios": [1, 4], "page_sizes": [16]},
    ),
    share=0.15,
)
def test_tokens_of_eight_common_heads_find_their_keys_in_a_batch(subject, routed):
    call, expected = routed
    subject.expects(call, expected)


@requirement(
    spec.PAGED_13,
    call=paged_calls(
        contexts=mixed_contexts,
        queries=["several"],
        chunk=ragged_chunk,
        rows=(17, 24),
        most_heads=1,
        ratios=[1, 2],
        head_dims=[32, 64],
        page_sizes=[8, 16, 3],
        amplitude=(1.0,),
    ),
    share=0.05,
)
def test_chunks_of_many_rows_are_attended_each_for_itself(subject, call):
    subject.agrees(call)


@requirement(
    spec.PAGED_05,
    routed=routed_pages(
        contexts=long_context,
        queries=["one"],
        rows=(1, 2),
        key_heads=9,
        **{**PAGES, "head_dims": [32, 64], "ratios": [1, 2], "page_sizes": [16, 8, 32]},
    ),
    share=0.1,
)
def test_nine_key_heads_of_long_contexts_are_told_apart(subject, routed):
    call, expected = routed
    subject.expects(call, expected)


@requirement(
    spec.PAGED_05,
    routed=routed_pages(
        contexts=hundreds_of_tokens,
        queries=["one"],
        rows=(1, 2),
        key_heads=8,
        **{**PAGES, "head_dims": [128], "ratios": [4, 8], "page_sizes": [16, 32]},
    ),
    share=0.05,
)
def test_eight_large_key_heads_of_hundreds_of_tokens_are_told_apart(subject, routed):
    call, expected = routed
    subject.expects(call, expected)


@requirement(
    spec.PAGED_05,
    routed=routed_pages(
        contexts=long_context,
        queries=["several"],
        chunk=ragged_chunk,
        rows=(1, 1),
        key_heads=8,
        **{**PAGES, "head_dims": [64, 32], "ratios": [4, 1], "page_sizes": [16, 32]},
    ),
    share=0.05,
)
def test_eight_key_heads_of_a_chunk_are_told_apart(subject, routed):
    call, expected = routed
    subject.expects(call, expected)


@requirement(
    spec.PAGED_05,
    routed=routed_pages(
        contexts=at_page_end,
        rows=(1, 2),
        key_heads=12,
        **{**PAGES, "head_dims": [128], "ratios": [1, 3]},
    ),
    share=0.05,
)
def test_a_dozen_key_heads_of_128_features_are_told_apart(subject, routed):
    call, expected = routed
    subject.expects(call, expected, where=seeing(call))


VERY_LARGE: dict[str, Any] = {
    "contexts": at_page_end,
    "queries": ["one"],
    "key_heads": 4,
    "head_dims": [256, 192],
    "ratios": [1, 2],
    "page_sizes": [16, 8],
}
"""Tokens of several key heads larger than 128."""


@requirement(spec.PAGED_05, routed=routed_pages(**VERY_LARGE, rows=(1, 2)), share=0.05)
def test_several_very_large_key_heads_are_told_apart(subject, routed):
    call, expected = routed
    subject.expects(call, expected)


@requirement(spec.PAGED_13, routed=routed_pages(**VERY_LARGE, rows=(5, 9)), share=0.05)
def test_tokens_of_very_large_heads_find_their_keys_in_a_batch(subject, routed):
    call, expected = routed
    subject.expects(call, expected)


@requirement(
    spec.PAGED_04,
    call=paged_calls(
        contexts=past_splits,
        queries=["several"],
        chunk=a_draft_or_chunk,
        rows=(1, 2),
        most_heads=1,
        amplitude=(1.0,),
        **{**PAGES, "head_dims": [64, 128], "ratios": [1, 4]},
    ),
    share=0.1,
)
def test_drafts_and_chunks_after_more_than_a_thousand_tokens_are_right(subject, call):
    subject.agrees(call)


@requirement(
    spec.PAGED_13,
    routed=routed_pages(
        contexts=past_a_large_page,
        queries=["one"],
        rows=(5, 9),
        key_heads=1,
        head_dims=[64, 32],
        ratios=[4, 1],
        page_sizes=[64, 128, 100, 256],
    ),
    share=0.05,
)
def test_rows_of_large_pages_find_their_keys_in_a_batch(subject, routed):
    call, expected = routed
    subject.expects(call, expected)


@requirement(
    spec.PAGED_13,
    call=paged_calls(
        contexts=short_beside_long,
        queries=["one"],
        rows=(2, 4),
        most_heads=1,
        ratios=[1, 4, 2],
        head_dims=[128, 64, 80, 96],
        page_sizes=[16, 32, 64],
    ),
    share=0.2,
)
def test_rows_that_have_just_begun_stand_beside_long_ones(subject, call):
    subject.agrees(call)


@requirement(spec.PAGED_04, call=paged_calls(**SPLIT), share=0.5)
def test_contexts_from_which_kernels_split_them_are_right(subject, call):
    subject.agrees(call)


@requirement(spec.PAGED_04, call=paged_calls(**{**SPLIT, "contexts": beside_odd_tiles}), share=0.3)
def test_contexts_beside_tiles_that_are_no_powers_of_two_are_right(subject, call):
    subject.agrees(call)


@requirement(spec.PAGED_04, routed=routed_pages(**SPLIT), share=0.15)
def test_tokens_of_contexts_that_kernels_split_are_found(subject, routed):
    call, expected = routed
    subject.expects(call, expected)


VERY_LONG = {
    **SPLIT,
    "contexts": very_long_context,
    "rows": (1, 1),
    "head_dims": [32, 40],
    "page_sizes": [1, 16, 32, 64],
}


@requirement(spec.PAGED_04, call=paged_calls(**VERY_LONG, most_heads=1, masks=["causal"]), share=0.05)
def test_contexts_of_thousands_of_tokens_are_right(subject, call):
    subject.agrees(call)


@requirement(
    spec.PAGED_29,
    call=paged_calls(
        **{**VERY_LONG, "contexts": tens_of_thousands, "page_sizes": [16, 32, 64, 256]}, most_heads=1, masks=["causal"]
    ),
    share=0.04,
    shrinks=False,
)
def test_contexts_of_tens_of_thousands_of_tokens_are_read_to_their_end(subject, call):
    subject.agrees(call)


@requirement(
    spec.PAGED_13,
    call=paged_calls(
        **{**VERY_LONG, "rows": (2, 2), "page_sizes": [16, 1, 32]}, pages=2**15, most_heads=1, masks=["causal"]
    ),
    share=0.05,
)
def test_rows_of_thousands_of_tokens_stand_beside_each_other(subject, call):
    subject.agrees(call)


@requirement(spec.PAGED_13, call=paged_calls(rows=(2, 4)), share=0.3)
def test_rows_of_paged_attention_are_independent(subject, call):
    whole, answer = subject.agrees(call), subject.answer(call)
    for row in range(len(call.arguments["query"])):
        alone = subject.agrees(narrowed(call, slice(row, row + 1)))
        if (np.abs(f64(whole)[row] - f64(alone)[0]) > 2 * answer.budget[row]).any():
            raise Nonconformance(f"row {row} alone gives another result than in its batch", call)


@requirement(
    spec.PAGED_13,
    call=paged_calls(
        contexts=mixed_contexts,
        rows=(9, 40),
        most_heads=9,
        ratios=[1, 2, 3],
        head_dims=[32, 40, 64],
        page_sizes=[1, 2, 3, 8, 16, 24],
    ),
    share=0.1,
)
def test_dozens_of_rows_and_many_heads_are_right(subject, call):
    subject.agrees(call)


@requirement(
    spec.PAGED_13,
    call=paged_calls(
        rows=(6, 12),
        queries=["several"],
        chunk=a_draft,
        amplitude=(1.0,),
        most_heads=2,
        ratios=[4, 8],
        head_dims=[32, 64, 128],
        page_sizes=[16, 8, 3],
    ),
    share=0.2,
)
def test_drafts_of_larger_batches_are_right(subject, call):
    subject.agrees(call, where=seeing(call))


@requirement(
    spec.PAGED_13,
    call=paged_calls(
        contexts=mixed_contexts, rows=(65, 130), most_heads=1, ratios=[1], head_dims=[32], page_sizes=[8, 16]
    ),
    share=0.05,
)
def test_a_hundred_rows_are_right(subject, call):
    subject.agrees(call)


@requirement(
    spec.PAGED_13,
    call=paged_calls(
        contexts=within_a_page, rows=(5, 20), queries=["one"], head_dims=[64, 32, 128], page_sizes=[16, 32, 8]
    ),
    share=0.1,
)
def test_many_rows_of_no_more_than_a_page_are_right(subject, call):
    subject.agrees(call)


@requirement(
    spec.PAGED_13,
    call=paged_calls(
        contexts=mixed_contexts, rows=(1, 1), most_heads=40, ratios=[1, 2], head_dims=[32, 40], page_sizes=[8, 16]
    ),
    share=0.15,
)
def test_dozens_of_heads_are_right(subject, call):
    subject.agrees(call)


@requirement(
    spec.PAGED_13,
    call=paged_calls(
        contexts=hundreds_of_tokens,
        rows=(17, 20),
        queries=["one"],
        most_heads=1,
        ratios=[1, 4],
        head_dims=[32, 64],
        page_sizes=[16, 32],
        amplitude=(1.0,),
    ),
    share=0.05,
)
def test_tokens_of_many_rows_after_hundreds_of_others_are_right(subject, call):
    subject.agrees(call)
