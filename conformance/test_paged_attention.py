"""Does an implementation of paged attention keep the contract? The suite builds its pools itself."""

import numpy as np

from inferspec.conformance.inputs.attention import DEPTHS, reachable, towering, with_rows_of_zeros
from inferspec.conformance.inputs.paged_attention import (
    PAGES,
    STALE,
    a_draft,
    after_a_prompt,
    any_context,
    at_page_end,
    block_of_queries,
    blocks_of_queries,
    hundreds_of_tokens,
    large_pools,
    long_context,
    misdirected,
    paged_calls,
    past_a_large_page,
    past_splits,
    poisoned,
    renamed,
    routed_pages,
    seeing,
    short_context,
    walked_pages,
    whole_blocks,
)
from inferspec.conformance.judging.trial import Nonconformance
from inferspec.conformance.properties.common import bit_equal
from inferspec.conformance.strategies import among, seeds
from inferspec.conformance.suite import requirement
from inferspec.spec import paged_attention as spec
from inferspec.spec.numerics import f64

POISONS = among(list(STALE))

PADDING = (
    "a row has ceil(context_lens / page_size) pages: entries of block_table after them are padding, of which none is read or"
    " looked at"
)
"""What may be wrong where pages that are not there are refused."""


@requirement(spec.PAGED_01, call=paged_calls(masks=["causal"]), share=0.6)
def test_paged_attention_is_attention_over_the_tokens_of_the_pages(subject, call):
    subject.agrees(call)


@requirement(spec.PAGED_01, call=paged_calls(amplitude=(1.0,)), share=0.1)
def test_tokens_whose_keys_are_zeros_count_as_others_do(subject, call):
    subject.agrees(with_rows_of_zeros(call, "key_pages"))


@requirement(spec.PAGED_02, routed=routed_pages(), share=0.8)
def test_every_token_is_found_in_its_page_and_slot(subject, routed):
    call, expected = routed
    subject.expects(call, expected)


@requirement(spec.PAGED_03, routed=routed_pages(queries=["one"], rows=(2, 4)), share=0.7)
def test_each_row_reaches_its_newest_token_and_no_slot_past_it(subject, routed):
    call, expected = routed
    subject.expects(call, expected)


@requirement(spec.PAGED_03, call=paged_calls(rows=(2, 4)), share=0.4)
def test_each_row_attends_to_all_of_its_own_context(subject, call):
    subject.agrees(call)


@requirement(
    spec.PAGED_06,
    routed=routed_pages(contexts=hundreds_of_tokens, chunk=whole_blocks, queries=["several"], rows=(1, 2), **PAGES),
    share=0.5,
)
def test_chunks_of_common_heads_see_what_is_before_them_in_pages(subject, routed):
    call, expected = routed
    subject.expects(call, expected)


@requirement(
    spec.PAGED_06,
    routed=routed_pages(
        contexts=hundreds_of_tokens, chunk=a_draft, queries=["several"], masks=["causal"], rows=(1, 2), **PAGES
    ),
    share=0.1,
)
def test_drafts_of_common_heads_are_causal_in_pages(subject, routed):
    call, expected = routed
    subject.expects(call, expected)


@requirement(spec.PAGED_05, routed=routed_pages(), share=0.8)
def test_paged_attention_matches_grouped_heads(subject, routed):
    call, expected = routed
    subject.expects(call, expected)


@requirement(
    spec.PAGED_05,
    routed=routed_pages(
        contexts=past_splits,
        queries=["one"],
        rows=(1, 2),
        key_heads=2,
        ratios=[3, 5, 4, 8],
        head_dims=[128, 64, 80],
        page_sizes=[16, 32],
    ),
    share=0.1,
)
def test_key_heads_of_long_contexts_are_told_apart_in_pages(subject, routed):
    call, expected = routed
    subject.expects(call, expected)


@requirement(
    spec.PAGED_05,
    routed=routed_pages(
        contexts=hundreds_of_tokens, ratios=[12, 16, 24], head_dims=[128, 64], page_sizes=[16, 32], rows=(1, 2)
    ),
    share=0.15,
)
def test_many_query_heads_share_a_key_head_of_hundreds_of_tokens(subject, routed):
    call, expected = routed
    subject.expects(call, expected)


@requirement(spec.PAGED_05, routed=routed_pages(ratios=[12, 16, 24], head_dims=[32, 128, 64], rows=(1, 2)), share=0.2)
def test_many_query_heads_share_a_key_head(subject, routed):
    call, expected = routed
    subject.expects(call, expected)


@requirement(
    spec.PAGED_05,
    call=paged_calls(
        rows=(1, 2), most_heads=8, ratios=[24, 16], head_dims=[32, 40], page_sizes=[8, 16], amplitude=(1.0,)
    ),
    share=0.1,
)
def test_a_hundred_heads_and_more_read_their_own_keys_and_values(subject, call):
    subject.agrees(call, where=seeing(call))


@requirement(
    spec.PAGED_05,
    call=paged_calls(rows=(1, 2), ratios=[32, 71], head_dims=[32, 64], page_sizes=[8, 16], amplitude=(1.0,)),
    share=0.1,
)
def test_dozens_of_query_heads_share_a_key_head(subject, call):
    subject.agrees(call, where=seeing(call))


@requirement(spec.PAGED_06, routed=routed_pages(masks=["causal"], queries=["several"]), share=0.1)
def test_queries_are_causal_where_nothing_is_said(subject, routed):
    call, expected = routed
    subject.expects(call.without("mask"), expected)


@requirement(
    spec.PAGED_06,
    routed=routed_pages(masks=["causal"], queries=["several"], chunk=block_of_queries, rows=(1, 3)),
    share=0.6,
)
def test_queries_of_a_chunk_reach_their_own_token_and_no_further(subject, routed):
    call, expected = routed
    subject.expects(call, expected)


@requirement(
    spec.PAGED_06,
    call=paged_calls(masks=["causal"], queries=["several"], chunk=block_of_queries, rows=(1, 3)),
    share=0.4,
)
def test_chunks_of_queries_agree(subject, call):
    subject.agrees(call)


@requirement(
    spec.PAGED_06,
    call=paged_calls(
        masks=["causal"],
        queries=["several"],
        chunk=block_of_queries,
        contexts=long_context,
        rows=(1, 2),
        ratios=[1, 2, 3],
        head_dims=[32, 64, 80],
    ),
    share=0.15,
)
def test_chunks_of_long_contexts_agree(subject, call):
    subject.agrees(call)


@requirement(
    spec.PAGED_06,
    call=paged_calls(
        masks=["causal"],
        queries=["several"],
        chunk=blocks_of_queries,
        contexts=after_a_prompt,
        amplitude=(1.0,),
        rows=(1, 2),
        ratios=[1, 2],
        head_dims=[32, 40, 64],
        page_sizes=[8, 16, 24, 32, 64],
    ),
    share=0.06,
)
def test_chunks_of_several_blocks_agree(subject, call):
    subject.agrees(call)


@requirement(spec.PAGED_07, call=paged_calls(masks=["none"], queries=["several"]), share=0.4)
def test_without_a_mask_the_whole_context_is_seen(subject, call):
    subject.agrees(call)


@requirement(spec.PAGED_08, call=paged_calls(scales=["default"], amplitude=(1.0,)), share=0.4)
def test_the_default_scale_of_paged_attention_is_one_over_the_root_of_the_head_dim(subject, call):
    subject.agrees(call)


@requirement(spec.PAGED_08, call=paged_calls(scales=["given"]), share=1.0)
def test_a_scale_given_to_paged_attention_is_used_as_it_is(subject, call):
    subject.agrees(call)


@requirement(spec.PAGED_08, call=paged_calls(scales=["given"], amplitude=(0.3,)), share=0.1)
def test_a_scale_of_one_given_to_paged_attention_is_no_default(subject, call):
    subject.agrees(call.having(scale=1.0))


@requirement(spec.PAGED_08, call=paged_calls(scales=["given"], amplitude=(0.3,)), scale=among([2, 1]), share=0.05)
def test_a_whole_number_is_a_scale_of_paged_attention(subject, call, scale):
    subject.agrees(call.having(scale=scale))


@requirement(spec.PAGED_09, call=paged_calls(), stale=POISONS, share=0.6)
def test_slots_without_a_token_may_hold_anything(subject, call, stale):
    subject.agrees(poisoned(call, stale))


@requirement(spec.PAGED_09, routed=routed_pages(), stale=POISONS, share=0.5)
def test_slots_without_a_token_tempt_nobody(subject, routed, stale):
    call, expected = routed
    subject.expects(poisoned(call, stale), expected)


@requirement(spec.PAGED_09, call=paged_calls(), stale=POISONS, of_keys=among([False, True]), share=0.3)
def test_slots_without_a_key_or_without_a_value_may_hold_anything(subject, call, stale, of_keys):
    subject.agrees(poisoned(call, stale, ["key_pages" if of_keys else "value_pages"]))


@requirement(spec.PAGED_10, call=paged_calls(rows=(2, 4)), entry=among([-1, 2**31 - 1, 10**6, -(2**31)]), share=0.6)
def test_entries_of_the_table_past_the_last_page_may_be_anything(subject, call, entry):
    subject.advice = PADDING
    subject.agrees(misdirected(call, entry))


@requirement(spec.PAGED_10, call=paged_calls(contexts=at_page_end), share=0.4)
def test_a_page_that_is_not_there_may_follow_a_full_one(subject, call):
    subject.advice = PADDING
    subject.agrees(misdirected(poisoned(call, "nan"), call.arguments["key_pages"].shape[0]))


@requirement(
    spec.PAGED_11,
    call=paged_calls(contexts=long_context, shared=True, rows=(2, 3), page_sizes=[1, 2, 3, 8, 16, 24, 32, 64]),
    share=0.3,
)
def test_rows_may_share_their_first_pages(subject, call):
    subject.agrees(poisoned(call, "nan"))


@requirement(spec.PAGED_12, call=paged_calls(amplitude=(1.0,)), seed=seeds, more=among(range(6)), share=0.6)
def test_pages_may_lie_anywhere(subject, call, seed, more):
    before = subject.agrees(call)
    elsewhere = renamed(call, np.random.default_rng(seed), more)
    if not bit_equal(before, subject.value(elsewhere)):
        raise Nonconformance("with its pages elsewhere in the pool the result is another", elsewhere)


@requirement(spec.PAGED_14, call=paged_calls(contexts=short_context), share=0.6)
def test_queries_of_paged_attention_that_see_no_token_are_zeros(subject, call):
    subject.expects(poisoned(call, "nan"), np.zeros(call.arguments["query"].shape), where=~seeing(call))


@requirement(spec.PAGED_14, call=paged_calls(contexts=short_context, rows=(2, 4)), share=0.6)
def test_rows_without_context_leave_the_others_alone(subject, call):
    subject.advice = PADDING
    subject.agrees(misdirected(poisoned(call, "nan"), -1), where=seeing(call))


@requirement(spec.PAGED_14, call=paged_calls(rows=(3, 6)), share=0.1)
def test_a_batch_may_be_filled_up_with_rows_without_context(subject, call):
    subject.advice = PADDING
    lens = call.arguments["context_lens"].copy()
    lens[[0, -1]] = 0
    filled = call.having(context_lens=lens)
    subject.agrees(misdirected(poisoned(filled, "nan"), -1), where=seeing(filled))


@requirement(spec.PAGED_15, call=paged_calls(dtypes=["float16", "bfloat16"], amplitude=(2.0, 3.0)), share=0.5)
def test_paged_attention_computes_logits_and_softmax_in_float32(subject, call):
    subject.agrees(call)


@requirement(
    spec.PAGED_15,
    call=paged_calls(contexts=long_context, amplitude=(0.3, 1.0), rows=(1, 2), queries=["one"]),
    share=0.4,
)
def test_paged_attention_keeps_running_sums_of_many_tokens_in_float32(subject, call):
    subject.agrees(call)


@requirement(
    spec.PAGED_16,
    call=paged_calls(scales=["default"], contexts=any_context),
    far=among([30.0, 1e3, 1e5, -30.0, -1e3, -1e5, -5e5]),
    share=0.6,
)
def test_adding_a_constant_to_a_row_of_logits_changes_nothing_in_paged_attention(subject, call, far):
    subject.agrees(_shifted(call, far, subject.precision))


@requirement(spec.PAGED_16, routed=routed_pages(), far=among([-5e5, -6e4, 6e4, 5e5]), share=0.4)
def test_a_query_whose_logits_are_far_from_zero_still_finds_its_token(subject, routed, far):
    call, expected = routed
    subject.expects(poisoned(_shifted(call, far, subject.precision), "nan"), expected)


@requirement(
    spec.PAGED_16,
    routed=routed_pages(dtypes=["float32", "bfloat16"]),
    far=among([-5e5, -6e4]),
    power=among(DEPTHS),
    share=0.3,
)
def test_logits_may_lie_below_any_number_that_a_maximum_starts_at_in_paged_attention(subject, routed, far, power):
    call, expected = routed
    subject.expects(poisoned(towering(_shifted(call, far, subject.precision), power), "nan"), expected)


@requirement(
    spec.PAGED_16,
    routed=routed_pages(dtypes=["float16"], head_dims=[128, 64], ratios=[4, 8, 1], rows=(1, 2)),
    far=among([-5e5, 5e5]),
    share=0.08,
)
def test_products_of_common_heads_that_float16_cannot_hold_are_scaled_first_in_pages(subject, routed, far):
    call, expected = routed
    subject.expects(poisoned(_shifted(call, far, subject.precision), "nan"), expected)


@requirement(spec.PAGED_17, call=walked_pages(), share=0.4)
def test_the_largest_logit_may_come_in_any_page(subject, call):
    subject.agrees(call)


@requirement(
    spec.PAGED_18, call=large_pools(page_sizes=[1], head_dims=[32, 40], ratios=[1, 2, 3], pages=2**16 + 50), share=0.06
)
def test_page_ids_past_16_bits_behave_as_small_ones(subject, call):
    subject.agrees(call)


@requirement(
    spec.PAGED_18,
    routed=routed_pages(
        contexts=past_a_large_page,
        rows=(1, 2),
        key_heads=3,
        page_sizes=[256],
        head_dims=[128, 256],
        ratios=[1, 2, 4],
    ),
    share=0.05,
)
def test_heads_past_16_bits_of_a_page_are_told_apart(subject, routed):
    call, expected = routed
    subject.expects(call, expected)


@requirement(spec.PAGED_19, call=paged_calls(head_dims=[40, 72, 80, 96, 112, 192, 256]), share=0.4)
def test_every_feature_of_a_token_counts(subject, call):
    subject.agrees(call)


@requirement(
    spec.PAGED_20,
    call=paged_calls(masks=["causal"], queries=["several"], chunk=block_of_queries, rows=(1, 3)),
    at=seeds,
    share=0.3,
)
def test_chunks_are_seamless(subject, call, at):
    query = call.arguments["query"]
    length = query.shape[2]
    cut = 1 + at % (length - 1) if at % 3 else length - 1
    if "one" not in subject.envelope["queries"]:
        if length < 4:
            return
        cut = min(max(cut, 2), length - 2)
    lens = call.arguments["context_lens"]
    earlier = np.maximum(lens.astype(np.int64) - (length - cut), 0).astype(lens.dtype)
    whole, answer = subject.agrees(call), subject.answer(call)
    first = subject.agrees(call.having(query=query[:, :, :cut], context_lens=earlier))
    second = subject.agrees(call.having(query=query[:, :, cut:]))
    seamless = np.abs(f64(whole) - np.concatenate([f64(first), f64(second)], axis=2)) <= 2 * answer.budget
    if not seamless.all():
        raise Nonconformance(f"cut before query {cut}, the chunks give another result than the whole", call)


def _shifted(call, far, precision):
    """The last feature, which is the same in every key, moves all logits of a query by the same."""
    query, pool = call.arguments["query"].copy(), call.arguments["key_pages"].copy()
    step = 2.0 ** np.round(np.log2(np.sqrt(reachable(abs(far), call, precision) * np.sqrt(query.shape[-1]))))
    rows = np.where(np.arange(query.shape[-2]) % 2, -1.0, 1.0)
    query[..., -1], pool[..., -1] = np.sign(far) * rows * step, step
    return call.having(query=query, key_pages=pool)
