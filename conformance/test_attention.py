"""Does an implementation of attention, and of the causal mask, keep the contract?"""

import numpy as np

from inferspec.conformance.inputs.attention import (
    BATCHES_OF_PROMPTS,
    COMMON,
    DEPTHS,
    attention_calls,
    full_masks,
    louder,
    mask_calls,
    routed_attention,
    shifted,
    towering,
    with_nan,
    with_nan_in_sight,
    with_rows_of_zeros,
)
from inferspec.conformance.inputs.attention_lengths import (
    a_draft_over_many,
    a_few_or_a_late_token,
    chunks_of_whole_tiles,
    chunks_over_contexts,
    chunks_over_hundreds,
    few_over_many,
    groups_over_many,
    lengths,
    long_prompts,
    over_splits,
    padded,
    part_blocks_over_tiles,
    prompts,
    ragged_tiles,
    short_prompts,
    small_blocks,
    square_prompts,
    tiles_past_the_keys,
    tokens_and_prompts,
    tokens_of_large_models,
    whole_prompts,
)
from inferspec.conformance.inputs.attention_masks import (
    ARRAYS,
    HIDDEN_STRETCHES,
    HIDING,
    causal_as_array,
    encoded,
    seeing,
    with_hidden_heads,
    without_a_stretch,
    without_beginning,
)
from inferspec.conformance.judging.trial import Nonconformance
from inferspec.conformance.properties.common import (
    claimed,
    refuses,
    returns,
)
from inferspec.conformance.strategies import among, any_of, seeds
from inferspec.conformance.suite import requirement
from inferspec.spec import attention as spec
from inferspec.spec.numerics import f64, largest

ENCODINGS = list(HIDING)


@requirement(spec.ATTN_01, call=attention_calls(masks=["none"]))
def test_attention_is_softmax_over_keys_times_value(subject, call):
    subject.agrees(call)


@requirement(spec.ATTN_01, call=attention_calls(masks=["none"], amplitude=(1.0,)), share=0.1)
def test_keys_and_queries_of_zeros_count_as_others_do(subject, call):
    subject.agrees(with_rows_of_zeros(call, "query", "key"))


@requirement(spec.ATTN_01, call=attention_calls(masks=["none"], amplitude=(1.0,)), share=0.1)
def test_one_array_may_be_key_and_value(subject, call):
    subject.agrees(call.sharing("key", "value"))


@requirement(spec.ATTN_02, call=attention_calls(masks=["none"], scales=["default"], amplitude=(1.0,)))
def test_the_default_scale_is_one_over_the_root_of_the_head_dim(subject, call):
    subject.agrees(call)


@requirement(spec.ATTN_02, call=attention_calls(masks=["none"], scales=["given"]))
def test_a_given_scale_is_used_as_it_is(subject, call):
    subject.agrees(call)


@requirement(
    spec.ATTN_02,
    call=attention_calls(masks=["none"], scales=["given"], amplitude=(0.3,)),
    scale=among([2, 1]),
    share=0.05,
)
def test_a_scale_may_be_a_whole_number(subject, call, scale):
    subject.agrees(call.having(scale=scale))


@requirement(spec.ATTN_03, routed=routed_attention(masks=["none"]))
def test_grouped_heads_read_their_own_keys_and_values(subject, routed):
    call, expected = routed
    subject.expects(call, expected)


@requirement(spec.ATTN_03, routed=routed_attention(masks=["none"], ratios=[12, 16, 24]), share=0.2)
def test_many_query_heads_share_a_key_head_of_attention(subject, routed):
    call, expected = routed
    subject.expects(call, expected)


@requirement(
    spec.ATTN_03,
    routed=routed_attention(masks=["none"], shapes=over_splits, head_dims=[64, 128, 8], ratios=[4, 3, 2, 8, 5]),
    share=0.35,
)
def test_key_heads_of_long_contexts_are_told_apart(subject, routed):
    call, expected = routed
    subject.expects(call, expected)


@requirement(
    spec.ATTN_03, routed=routed_attention(masks=["none"], ratios=[12, 16, 24], shapes=groups_over_many), share=0.15
)
def test_many_query_heads_share_a_key_head_of_many_keys(subject, routed):
    call, expected = routed
    subject.expects(call, expected)


@requirement(
    spec.ATTN_03,
    routed=routed_attention(
        masks=["none"],
        shapes=groups_over_many,
        head_counts=(17, 9, 33),
        head_dims=[8, 4, 64],
        ratios=[1, 2],
        leading_dims=[(), (2,)],
    ),
    share=0.1,
)
def test_dozens_of_key_heads_of_long_contexts_are_told_apart(subject, routed):
    call, expected = routed
    subject.expects(call, expected)


@requirement(
    spec.ATTN_03,
    routed=routed_attention(
        masks=["none"],
        shapes=tokens_of_large_models,
        head_counts=(8,),
        head_dims=[128, 64],
        ratios=[4, 8],
        leading_dims=[()],
    ),
    share=0.1,
)
def test_dozens_of_large_heads_are_told_apart_after_hundreds_of_keys(subject, routed):
    call, expected = routed
    subject.expects(call, expected)


@requirement(
    spec.ATTN_03,
    routed=routed_attention(
        masks=["none"],
        shapes=chunks_over_hundreds,
        head_counts=(2,),
        head_dims=[64, 128],
        ratios=[4],
        leading_dims=[()],
    ),
    share=0.05,
)
def test_key_heads_of_chunks_over_hundreds_of_keys_are_told_apart(subject, routed):
    call, expected = routed
    subject.expects(call, expected)


@requirement(
    spec.ATTN_03,
    call=attention_calls(
        shapes=small_blocks,
        masks=["none", "causal"],
        head_counts=(65, 33, 130),
        ratios=[1, 2],
        head_dims=[4, 8, 2],
        leading_dims=[()],
        amplitude=(1.0,),
    ),
    share=0.1,
)
def test_prompts_of_dozens_of_heads_are_attended(subject, call):
    subject.agrees(call, where=seeing(call))


@requirement(
    spec.ATTN_03,
    call=attention_calls(
        most_heads=33, ratios=[1, 2, 3], head_dims=[2, 4, 8], leading_dims=[(), (2,)], amplitude=(1.0,)
    ),
    share=0.15,
)
def test_dozens_of_heads_read_their_own_keys_and_values(subject, call):
    subject.agrees(call, where=seeing(call))


@requirement(
    spec.ATTN_03,
    call=attention_calls(
        shapes=a_few_or_a_late_token,
        masks=["none", "causal", "bool", "additive"],
        head_counts=(65, 33, 130),
        mask_rank=3,
        ratios=[1, 2],
        head_dims=[4, 2, 8],
        leading_dims=[()],
        amplitude=(1.0,),
    ),
    share=0.2,
)
def test_a_hundred_heads_and_more_read_their_own_keys_and_values(subject, call):
    subject.agrees(call, where=seeing(call))


@requirement(
    spec.ATTN_03,
    call=attention_calls(
        shapes=any_of(lengths, groups_over_many),
        ratios=[32, 71],
        head_dims=[4, 64, 8],
        leading_dims=[(), (2,)],
        amplitude=(1.0,),
        most_heads=2,
    ),
    share=0.1,
)
def test_dozens_of_query_heads_share_a_key_head(subject, call):
    subject.agrees(call, where=seeing(call))


@requirement(spec.ATTN_04, call=attention_calls(masks=["additive", "bool", "-inf"]))
def test_a_mask_of_any_broadcastable_shape_acts_where_it_should(subject, call):
    subject.agrees(call, where=seeing(call))


@requirement(
    spec.ATTN_04,
    call=attention_calls(masks=["additive", "bool", "-inf", "lowest"], leading_dims=[(2, 3)], mask_rank=5),
    share=0.2,
)
def test_a_mask_of_every_leading_dim_acts_on_its_own_rows(subject, call):
    subject.agrees(call, where=seeing(call))


@requirement(
    spec.ATTN_04,
    call=attention_calls(
        masks=["bool", "additive", "-inf"],
        shapes=square_prompts,
        mask_rank=4,
        most_heads=1,
        amplitude=(1.0,),
        **{**COMMON, "leading_dims": [(2,)]},
    ),
    share=0.25,
)
def test_every_prompt_of_a_batch_has_its_own_mask(subject, call):
    subject.agrees(call, where=seeing(call))


@requirement(spec.ATTN_04, call=BATCHES_OF_PROMPTS, share=0.5)
def test_every_prompt_of_a_batch_has_its_own_padding(subject, call):
    subject.agrees(call, where=seeing(call))


@requirement(spec.ATTN_04, call=attention_calls(masks=["additive", "bool"], relation="L=S", mask_rank=1), share=0.5)
def test_a_vector_mask_lies_along_the_keys(subject, call):
    subject.agrees(call, where=seeing(call))


@requirement(spec.ATTN_04, call=attention_calls(masks=["additive", "bool", "-inf", "lowest"], mask_rank=0), share=0.3)
def test_a_mask_of_no_axes_acts_on_every_logit_alike(subject, call):
    subject.agrees(call)


@requirement(spec.ATTN_04, call=attention_calls(masks=["additive", "bool"], relation="L=S", mask_rank=2), share=0.5)
def test_a_square_mask_is_not_transposed(subject, call):
    subject.agrees(call, where=seeing(call))


@requirement(
    spec.ATTN_04,
    call=attention_calls(masks=["additive"], dtypes=["float32"], leading_dims=[(), (2,)], amplitude=(1.0,)),
    share=0.05,
)
def test_a_number_that_is_not_the_lowest_hides_nothing(subject, call):
    # The lowest of float16 is one like any other.
    lowered = (call.arguments["mask"] - 65504).astype(np.float32)
    subject.agrees(call.having(mask=lowered))


@requirement(spec.ATTN_04, routed=routed_attention(masks=ENCODINGS))
def test_a_full_mask_hides_exactly_its_own_keys(subject, routed):
    call, expected = routed
    subject.expects(call, expected)


@requirement(
    spec.ATTN_04,
    call=attention_calls(
        masks=ARRAYS, ratios=[12, 16, 24], head_dims=[4, 64, 8, 128], leading_dims=[(2,)], mask_rank=4, most_heads=2
    ),
    share=0.4,
)
def test_many_query_heads_of_a_key_head_have_their_own_masks(subject, call):
    subject.agrees(call, where=seeing(call))


@requirement(
    spec.ATTN_04,
    call=attention_calls(
        masks=ARRAYS, ratios=[8, 12, 16], head_dims=[4, 8, 64], leading_dims=[(2,), ()], mask_rank=3, most_heads=2
    ),
    share=0.3,
)
def test_many_query_heads_of_a_key_head_have_masks_of_fewer_axes(subject, call):
    subject.agrees(call, where=seeing(call))


@requirement(
    spec.ATTN_04,
    call=full_masks(
        masks=["bool", "-inf", "lowest"], leading_dims=[(2,), (3,)], head_dims=[8, 4, 64], ratios=[1, 2, 4]
    ),
    share=0.1,
)
def test_every_head_of_every_sequence_has_its_own_mask_over_a_long_context(subject, call):
    subject.agrees(call)


@requirement(
    spec.ATTN_03,
    call=attention_calls(
        shapes=short_prompts,
        masks=["none", "causal"],
        head_counts=(12, 16, 32),
        ratios=[1, 2],
        head_dims=[64, 128],
        leading_dims=[(), (2,)],
        amplitude=(1.0,),
    ),
    share=0.05,
)
def test_prompts_of_a_dozen_large_heads_are_attended(subject, call):
    subject.agrees(call, where=seeing(call))


@requirement(
    spec.ATTN_03,
    call=attention_calls(
        shapes=short_prompts,
        masks=["none", "causal"],
        ratios=[16, 12, 71],
        head_dims=[4, 64, 8],
        leading_dims=[(), (2,)],
        amplitude=(1.0,),
        most_heads=2,
    ),
    share=0.05,
)
def test_prompts_of_many_query_heads_that_share_a_key_head_are_attended(subject, call):
    subject.agrees(call, where=seeing(call))


@requirement(
    spec.ATTN_04,
    call=attention_calls(
        shapes=whole_prompts,
        masks=ARRAYS,
        mask_rank=4,
        leading_dims=[(2,)],
        ratios=[1, 2],
        head_dims=[8, 4, 80],
        amplitude=(1.0,),
        most_heads=1,
    ),
    share=0.05,
)
def test_every_long_prompt_of_a_batch_has_its_own_mask(subject, call):
    subject.agrees(call, where=seeing(call))


@requirement(spec.ATTN_05, routed=routed_attention(masks=["causal"]), share=1.5)
def test_causal_rows_reach_their_last_visible_key_and_no_further(subject, routed):
    call, expected = routed
    subject.expects(call, expected, where=seeing(call))


@requirement(spec.ATTN_05, routed=routed_attention(masks=["causal"], shapes=chunks_over_contexts, **COMMON), share=0.55)
def test_chunks_of_common_heads_after_a_long_context_are_causal(subject, routed):
    call, expected = routed
    subject.expects(call, expected)


@requirement(spec.ATTN_05, routed=routed_attention(masks=["causal"], shapes=a_draft_over_many, **COMMON), share=0.1)
def test_drafts_of_common_heads_after_a_long_context_are_causal(subject, routed):
    call, expected = routed
    subject.expects(call, expected)


@requirement(spec.ATTN_05, routed=routed_attention(masks=["causal"], shapes=square_prompts, **COMMON), share=0.3)
def test_causal_rows_of_common_heads_see_themselves_and_no_further(subject, routed):
    call, expected = routed
    subject.expects(call, expected)


@requirement(
    spec.ATTN_05,
    routed=routed_attention(masks=["causal"], shapes=chunks_of_whole_tiles, leading_dims=[(), (1,), (2,)]),
    share=0.2,
)
def test_causal_rows_are_aligned_where_tiles_are_whole(subject, routed):
    call, expected = routed
    subject.expects(call, expected, where=seeing(call))


@requirement(spec.ATTN_05, call=attention_calls(masks=["causal"]))
def test_causal_attention_agrees_for_every_relation_of_lengths(subject, call):
    subject.agrees(call, where=seeing(call))


@requirement(
    spec.ATTN_05,
    call=attention_calls(
        masks=["causal"],
        shapes=long_prompts,
        amplitude=(1.0,),
        leading_dims=[(), (1,)],
        ratios=[1, 2],
        head_dims=[4, 2, 8, 16, 128],
        most_heads=1,
    ),
    share=0.08,
)
def test_causal_attention_of_whole_prompts_agrees(subject, call):
    subject.agrees(call)


@requirement(
    spec.ATTN_05,
    call=attention_calls(
        masks=["causal"], ratios=[12, 16, 24], head_dims=[4, 64, 8, 128], leading_dims=[(), (2,)], most_heads=2
    ),
    share=0.3,
)
def test_many_query_heads_of_a_key_head_are_causal(subject, call):
    subject.agrees(call, where=seeing(call))


@requirement(spec.ATTN_06, call=attention_calls(masks=["causal"], amplitude=(1.0, 4.0)), encoding=among(ENCODINGS))
def test_every_encoding_of_the_causal_mask_agrees(subject, call, encoding):
    kind = claimed(subject, "masks", encoding, ENCODINGS)
    subject.agrees(causal_as_array(call, kind), where=seeing(call))


@requirement(
    spec.ATTN_06,
    call=attention_calls(
        masks=["causal"],
        shapes=prompts,
        amplitude=(1.0,),
        leading_dims=[(), (1,)],
        ratios=[1, 2],
        head_dims=[4, 2, 8, 16, 128],
        most_heads=1,
    ),
    encoding=among(ENCODINGS),
    share=0.05,
)
def test_the_causal_mask_of_whole_prompts_may_be_an_array(subject, call, encoding):
    kind = claimed(subject, "masks", encoding, ENCODINGS)
    subject.agrees(causal_as_array(call, kind), where=seeing(call))


@requirement(
    spec.ATTN_06,
    call=attention_calls(
        masks=["causal"],
        shapes=part_blocks_over_tiles,
        amplitude=(1.0,),
        leading_dims=[(), (1,), (2,)],
        ratios=[1, 2],
        head_dims=[4, 2, 8, 16, 128],
        most_heads=2,
    ),
    encoding=among(ENCODINGS),
    share=0.05,
)
def test_the_causal_mask_of_the_last_few_queries_of_a_chunk_may_be_an_array(subject, call, encoding):
    kind = claimed(subject, "masks", encoding, ENCODINGS)
    subject.agrees(causal_as_array(call, kind), where=seeing(call))


@requirement(spec.ATTN_06, routed=routed_attention(masks=ENCODINGS, shapes=tokens_and_prompts, **COMMON), share=0.9)
def test_masks_hide_the_most_tempting_key_from_common_heads(subject, routed):
    call, expected = routed
    subject.expects(call, expected)


@requirement(spec.ATTN_06, routed=routed_attention(masks=["bool"]), encoding=among(ENCODINGS))
def test_every_encoding_hides_the_most_tempting_key(subject, routed, encoding):
    call, expected = routed
    kind = claimed(subject, "masks", encoding, ENCODINGS)
    mask = encoded(call.arguments["mask"], kind, call.features["dtypes"])
    subject.expects(call.having(mask=mask).featuring(masks=kind), expected)


@requirement(spec.ATTN_07, call=attention_calls(masks=ENCODINGS))
def test_a_row_that_sees_no_key_is_zeros(subject, call):
    emptied = _with_empty_rows(call)
    subject.expects(emptied, np.zeros(call.arguments["query"].shape), where=~seeing(emptied))


@requirement(
    spec.ATTN_07,
    call=attention_calls(
        masks=ENCODINGS,
        shapes=few_over_many,
        amplitude=(1.0,),
        leading_dims=[(), (2,)],
        most_heads=2,
        head_dims=[8, 4, 64],
        ratios=[1, 2],
    ),
    share=0.1,
)
def test_a_row_that_sees_no_key_of_a_long_context_is_zeros(subject, call):
    emptied = _with_empty_rows(call)
    subject.expects(emptied, np.zeros(call.arguments["query"].shape), where=~seeing(emptied))


@requirement(spec.ATTN_07, call=attention_calls(masks=ENCODINGS), seed=seeds, share=0.2)
def test_heads_that_see_no_key_are_zeros(subject, call, seed):
    hidden = with_hidden_heads(call, seed)
    subject.expects(hidden, np.zeros(call.arguments["query"].shape), where=~seeing(hidden))


@requirement(spec.ATTN_07, call=attention_calls(masks=["causal"], relation="L>S", more_queries=[True]))
def test_causal_rows_before_the_first_key_are_zeros(subject, call):
    subject.expects(call, np.zeros(call.arguments["query"].shape), where=~seeing(call))


@requirement(
    spec.ATTN_07,
    call=attention_calls(
        masks=["causal"], shapes=tiles_past_the_keys, more_queries=[True], leading_dims=[(1,), ()], most_heads=2
    ),
    share=0.2,
)
def test_causal_rows_before_the_first_of_a_tile_of_keys_are_zeros(subject, call):
    subject.expects(call, np.zeros(call.arguments["query"].shape), where=~seeing(call))


@requirement(spec.ATTN_08, call=attention_calls(masks=ENCODINGS))
def test_rows_that_see_no_key_leave_the_others_alone(subject, call):
    emptied = _with_empty_rows(call)
    subject.agrees(emptied, where=seeing(emptied))


@requirement(
    spec.ATTN_08,
    call=attention_calls(masks=ENCODINGS, shapes=padded, amplitude=(1.0,), leading_dims=[(), (2,)], ratios=[1, 2]),
    hidden=among((0.5, 0.9)),
    share=0.3,
)
def test_tiles_of_hidden_keys_at_the_beginning_change_nothing(subject, call, hidden):
    subject.agrees(without_beginning(call, hidden))


@requirement(
    spec.ATTN_08,
    call=attention_calls(masks=ENCODINGS, shapes=over_splits, amplitude=(1.0,), leading_dims=[(), (2,)], ratios=[1, 2]),
    hidden=among(HIDDEN_STRETCHES),
    share=0.1,
)
def test_parts_of_many_keys_that_a_mask_hides_change_nothing(subject, call, hidden):
    call = without_a_stretch(call, *hidden)
    subject.agrees(call, where=seeing(call))


@requirement(spec.ATTN_08, call=attention_calls(masks=ENCODINGS))
def test_what_lies_at_hidden_positions_changes_nothing(subject, call):
    keys = call.arguments["key"].shape[-2]
    hidden = np.arange(keys) < keys // 2
    mask = encoded(~hidden[None, :], call.features["masks"], call.features["dtypes"])
    subject.agrees(louder(call, hidden, subject.precision).having(mask=mask))


@requirement(spec.ATTN_08, call=attention_calls(masks=["causal"], amplitude=(1.0,)))
def test_the_future_changes_nothing(subject, call):
    length, keys = call.arguments["query"].shape[-2], call.arguments["key"].shape[-2]
    earlier = np.arange(length)[:, None] < length - 1
    subject.agrees(louder(call, np.arange(keys) == keys - 1, subject.precision), where=seeing(call) & earlier)


@requirement(spec.ATTN_20, call=attention_calls(masks=["none"]), part=among(["query", "key", "value"]), share=0.2)
def test_a_nan_shows_where_it_is_seen(subject, call, part):
    subject.agrees(with_nan(call, part))


@requirement(
    spec.ATTN_20,
    call=attention_calls(
        masks=["none"],
        shapes=any_of(over_splits, ragged_tiles),
        amplitude=(1.0,),
        leading_dims=[(), (1,), (2,)],
        head_dims=[64, 8, 128],
        ratios=[1, 2, 4],
        most_heads=2,
    ),
    part=among(["key", "value", "query"]),
    share=0.4,
)
def test_a_nan_shows_among_many_queries_and_keys(subject, call, part):
    subject.agrees(with_nan(call, part))


@requirement(
    spec.ATTN_20,
    call=attention_calls(
        masks=["bool", "-inf"], ratios=[2, 4, 3, 8], head_dims=[4, 64, 8], most_heads=2, amplitude=(1.0,)
    ),
    part=among(["key", "value", "query"]),
    share=0.5,
)
def test_a_nan_shows_beside_keys_that_a_mask_hides(subject, call, part):
    subject.agrees(with_nan_in_sight(call, part))


@requirement(
    spec.ATTN_09, call=attention_calls(masks=["none"], dtypes=["float16", "bfloat16"], amplitude=(2.0, 3.0), longest=33)
)
def test_logits_and_softmax_are_computed_in_float32(subject, call):
    subject.agrees(call)


@requirement(
    spec.ATTN_10,
    call=attention_calls(masks=["none"], scales=["default"]),
    far=among([30.0, 1e3, 1e5, -30.0, -1e3, -1e5, -5e5]),
)
def test_adding_a_constant_to_the_logits_of_a_row_changes_nothing(subject, call, far):
    subject.agrees(shifted(call, far, subject.precision))


@requirement(spec.ATTN_10, routed=routed_attention(masks=["none"]), far=among([-5e5, -6e4, 6e4, 5e5]))
def test_a_row_of_logits_far_from_zero_still_finds_its_key(subject, routed, far):
    call, expected = routed
    subject.expects(shifted(call, far, subject.precision), expected)


@requirement(
    spec.ATTN_10,
    routed=routed_attention(masks=["none"], dtypes=["float16"], shapes=tokens_and_prompts, **COMMON),
    far=among([-5e5, 5e5]),
    share=0.05,
)
def test_products_of_common_heads_that_float16_cannot_hold_are_scaled_first(subject, routed, far):
    call, expected = routed
    subject.expects(shifted(call, far, subject.precision), expected)


@requirement(spec.ATTN_10, routed=routed_attention(masks=["none"], dtypes=["float32", "bfloat16"]), share=0.2)
def test_logits_too_large_for_fractions_are_safe(subject, routed):
    call, expected = routed
    subject.expects(towering(call), expected)


@requirement(
    spec.ATTN_10,
    routed=routed_attention(masks=["none"], dtypes=["float32", "bfloat16"]),
    far=among([-5e5, -6e4]),
    power=among(DEPTHS),
    share=0.4,
)
def test_logits_may_lie_below_any_number_that_a_maximum_starts_at(subject, routed, far, power):
    call, expected = routed
    subject.expects(towering(shifted(call, far, subject.precision), power), expected)


@requirement(spec.CMASK_01, call=mask_calls(chunk=True), share=0.3)
def test_the_causal_mask_of_prompts_and_chunks_is_aligned_bottom_right(subject, call):
    _aligned(subject, call)


@requirement(spec.CMASK_01, call=mask_calls())
def test_the_causal_mask_is_aligned_bottom_right(subject, call):
    _aligned(subject, call)


@requirement(spec.CMASK_01, call=mask_calls(many=True), share=0.05)
def test_the_causal_mask_of_thousands_of_keys_is_aligned_bottom_right(subject, call):
    _aligned(subject, call)


@requirement(spec.CMASK_02, call=mask_calls())
def test_hidden_entries_hide_in_every_dtype(subject, call):
    seen, dtype = f64(subject.value(call)), call.arguments["dtype"]
    good = (seen == 0) | (seen == -np.inf) | (seen == -largest(dtype))
    if not good.all():
        raise Nonconformance(f"an entry is {seen[~good][0]:g}, which does not hide a key in {dtype}", call)


@requirement(spec.CMASK_03, call=mask_calls(empty=True))
def test_the_mask_has_the_lengths_and_dtype_asked_for(subject, call):
    returns(subject, call, (call.arguments["L"], call.arguments["S"]), call.arguments["dtype"])


@requirement(spec.CMASK_04, call=mask_calls(), other=mask_calls())
def test_a_mask_of_other_lengths_in_between_changes_nothing(subject, call, other):
    test_the_causal_mask_is_aligned_bottom_right.__wrapped__(subject, call)
    test_the_causal_mask_is_aligned_bottom_right.__wrapped__(subject, other)
    test_the_causal_mask_is_aligned_bottom_right.__wrapped__(subject, call)


@requirement(spec.CMASK_05, call=mask_calls(), side=among(["L", "S"]), share=0.3)
def test_negative_lengths_are_refused(subject, call, side):
    refuses(subject, call.having(**{side: -1}))


def _with_empty_rows(call):
    """The same call; every other row of the mask hides all keys."""
    query, keys = call.arguments["query"], call.arguments["key"].shape[-2]
    visible = np.broadcast_to((np.arange(query.shape[-2]) % 2 == 1)[:, None], (query.shape[-2], keys))
    return call.having(mask=encoded(np.array(visible), call.features["masks"], call.features["dtypes"]))


def _aligned(subject, call):
    """The mask shows each query what the causal rule does."""
    visible = spec.CausalMask().visible(call.arguments["L"], call.arguments["S"])
    seen = f64(subject.value(call))
    if seen.shape != visible.shape:
        raise Nonconformance(f"the mask has shape {list(seen.shape)}, not {list(visible.shape)}", call)
    wrong = (seen == 0) != visible
    if wrong.any():
        row, column = np.argwhere(wrong)[0]
        raise Nonconformance(
            f"mask[{row}, {column}] = {seen[row, column]:g}, the key is {'visible' if visible[row, column] else 'hidden'}",
            call,
        )
