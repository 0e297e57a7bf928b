"""Does an implementation of attention keep the contract?"""

from inferspec.conformance.inputs.attention import (
    COMMON,
    DEPTHS,
    attention_calls,
    routed_attention,
    shifted,
    towering,
    with_nan,
    with_nan_in_sight,
    with_rows_of_zeros,
)
from inferspec.conformance.inputs.attention_lengths import (
    a_few_or_a_late_token,
    chunks_over_hundreds,
    groups_over_many,
    lengths,
    over_splits,
    ragged_tiles,
    short_prompts,
    small_blocks,
    tokens_and_prompts,
    tokens_of_large_models,
)
from inferspec.conformance.inputs.attention_masks import (
    seeing,
)
from inferspec.conformance.strategies import among, any_of
from inferspec.conformance.suite import requirement
from inferspec.spec import attention as spec


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
        leading_dims=[(), (1,)],
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
        leading_dims=[(), (1,)],
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
        leading_dims=[(), (1,)],
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
        leading_dims=[(), (1,)],
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
