"""Does an implementation of flash attention keep the contract?"""

from inferspec.conformance.inputs.attention import (
    DEPTHS,
    shifted,
    towering,
    with_nan,
    with_nan_in_sight,
    with_rows_of_zeros,
)
from inferspec.conformance.inputs.attention_lengths import (
    a_few_or_a_late_token,
    a_late_token,
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
from inferspec.conformance.inputs.attention_masks import seeing
from inferspec.conformance.inputs.flash_attention import (
    COMMON_HEADS,
    FEW_ROWS,
    flash_calls,
    one_or_several,
    routed_flash,
    routed_tiles,
    several_tiles,
    tiled_calls,
)
from inferspec.conformance.strategies import among, any_of
from inferspec.conformance.suite import requirement
from inferspec.spec import flash_attention as spec


@requirement(spec.FLASH_01, call=flash_calls(masks=["none"]), share=0.6)
def test_flash_attention_is_softmax_over_keys_times_value(subject, call):
    subject.agrees(call)


@requirement(spec.FLASH_01, call=tiled_calls(masks=["none"], leading_dims=FEW_ROWS), share=0.3)
def test_flash_attention_of_several_tiles_is_right(subject, call):
    subject.agrees(call)


@requirement(spec.FLASH_01, call=flash_calls(masks=["none"], leading_dims=FEW_ROWS, amplitude=(1.0,)), share=0.1)
def test_keys_of_zeros_count_as_others_do(subject, call):
    subject.agrees(with_rows_of_zeros(call, "key"))


@requirement(
    spec.FLASH_02,
    call=flash_calls(masks=["none"], scales=["given"], leading_dims=FEW_ROWS, amplitude=(0.3,)),
    share=0.1,
)
def test_a_scale_of_one_given_to_flash_attention_is_no_default(subject, call):
    subject.agrees(call.having(scale=1.0))


@requirement(
    spec.FLASH_02,
    call=flash_calls(masks=["none"], scales=["given"], leading_dims=FEW_ROWS, amplitude=(0.3,)),
    scale=among([2, 1]),
    share=0.05,
)
def test_a_whole_number_is_a_scale_of_flash_attention(subject, call, scale):
    subject.agrees(call.having(scale=scale))


@requirement(spec.FLASH_02, call=flash_calls(masks=["none"], scales=["default"], amplitude=(1.0,)), share=0.5)
def test_the_default_scale_of_flash_attention_is_one_over_the_root_of_the_head_dim(subject, call):
    subject.agrees(call)


@requirement(spec.FLASH_02, call=flash_calls(masks=["none"], scales=["given"]), share=0.6)
def test_a_scale_given_to_flash_attention_is_used_as_it_is(subject, call):
    subject.agrees(call)


@requirement(spec.FLASH_03, routed=routed_flash(masks=["none"]), share=0.7)
def test_flash_attention_matches_grouped_heads(subject, routed):
    call, expected = routed
    subject.expects(call, expected)


@requirement(spec.FLASH_03, routed=routed_tiles(masks=["none"], ratios=[3, 5, 6, 7], leading_dims=FEW_ROWS), share=0.3)
def test_groups_of_odd_sizes_are_matched_in_every_block(subject, routed):
    call, expected = routed
    subject.expects(call, expected)


@requirement(spec.FLASH_03, routed=routed_flash(masks=["none"], ratios=[24, 16, 12], shapes=one_or_several), share=0.3)
def test_many_query_heads_share_a_key_head_of_flash_attention(subject, routed):
    call, expected = routed
    subject.expects(call, expected)


@requirement(
    spec.FLASH_03,
    routed=routed_flash(
        masks=["none"],
        shapes=tokens_of_large_models,
        head_counts=(8,),
        head_dims=[64],
        ratios=[4, 8],
        leading_dims=[(), (1,)],
    ),
    share=0.07,
)
def test_dozens_of_large_heads_are_told_apart_after_hundreds_of_keys_in_flash_attention(subject, routed):
    call, expected = routed
    subject.expects(call, expected)


@requirement(
    spec.FLASH_03,
    routed=routed_flash(
        masks=["none"],
        shapes=chunks_over_hundreds,
        head_counts=(2,),
        head_dims=[32],
        ratios=[4],
        leading_dims=[(), (1,)],
    ),
    share=0.02,
)
def test_key_heads_of_chunks_over_hundreds_of_keys_are_told_apart_in_flash_attention(subject, routed):
    call, expected = routed
    subject.expects(call, expected)


@requirement(
    spec.FLASH_03,
    routed=routed_flash(masks=["none"], ratios=[12, 16, 24, 8], shapes=any_of(groups_over_many, short_prompts)),
    share=0.2,
)
def test_many_query_heads_share_a_key_head_of_many_keys_in_flash_attention(subject, routed):
    call, expected = routed
    subject.expects(call, expected)


@requirement(
    spec.FLASH_03,
    routed=routed_flash(
        masks=["none"], shapes=over_splits, leading_dims=[(), (1,)], head_dims=[64, 128, 80], ratios=[4, 3, 2, 8, 5]
    ),
    share=0.15,
)
def test_key_heads_of_long_contexts_are_told_apart(subject, routed):
    call, expected = routed
    subject.expects(call, expected)


@requirement(
    spec.FLASH_03,
    routed=routed_flash(
        masks=["none"],
        shapes=groups_over_many,
        head_counts=(9, 20),
        head_dims=[32, 40],
        ratios=[1, 2],
        leading_dims=[(), (1,)],
    ),
    share=0.1,
)
def test_dozens_of_key_heads_of_long_contexts_are_told_apart(subject, routed):
    call, expected = routed
    subject.expects(call, expected)


@requirement(
    spec.FLASH_03,
    call=flash_calls(
        shapes=small_blocks,
        masks=["none", "causal"],
        head_counts=(65, 70),
        ratios=[1, 2],
        head_dims=[32],
        leading_dims=[(), (1,)],
        amplitude=(1.0,),
    ),
    share=0.1,
)
def test_prompts_of_dozens_of_heads_are_attended(subject, call):
    subject.agrees(call, where=seeing(call))


@requirement(
    spec.FLASH_03,
    call=flash_calls(
        shapes=short_prompts,
        masks=["none", "causal"],
        head_counts=(12, 16),
        ratios=[1],
        head_dims=[64, 128],
        leading_dims=[(), (2,)],
        amplitude=(1.0,),
    ),
    share=0.05,
)
def test_prompts_of_a_dozen_large_heads_are_attended(subject, call):
    subject.agrees(call, where=seeing(call))


@requirement(
    spec.FLASH_03,
    call=flash_calls(
        shapes=short_prompts,
        masks=["none", "causal"],
        ratios=[16, 12, 71],
        head_dims=[32, 40],
        leading_dims=[(), (2,)],
        amplitude=(1.0,),
        most_heads=1,
    ),
    share=0.05,
)
def test_prompts_of_many_query_heads_that_share_a_key_head_are_attended(subject, call):
    subject.agrees(call, where=seeing(call))


@requirement(
    spec.FLASH_03,
    call=flash_calls(most_heads=40, ratios=[1, 2, 3], head_dims=[32, 40, 64], leading_dims=[(), (1,), (3,)]),
    share=0.15,
)
def test_dozens_of_heads_read_their_own_keys_and_values(subject, call):
    subject.agrees(call, where=seeing(call))


@requirement(
    spec.FLASH_03,
    call=flash_calls(
        shapes=a_few_or_a_late_token,
        masks=["none", "causal", "bool", "additive"],
        head_counts=(65, 33, 130),
        mask_rank=3,
        ratios=[1, 2],
        head_dims=[32],
        leading_dims=[(), (1,)],
        amplitude=(1.0,),
    ),
    share=0.2,
)
def test_a_hundred_heads_and_more_read_their_own_keys_and_values(subject, call):
    subject.agrees(call, where=seeing(call))


@requirement(
    spec.FLASH_03,
    call=flash_calls(
        shapes=any_of(lengths, a_late_token),
        ratios=[32, 71],
        head_dims=[32, 64],
        leading_dims=[(), (2,)],
        amplitude=(1.0,),
        most_heads=2,
    ),
    share=0.1,
)
def test_dozens_of_query_heads_share_a_key_head(subject, call):
    subject.agrees(call, where=seeing(call))


@requirement(
    spec.FLASH_09,
    call=flash_calls(masks=["none"], dtypes=["float16", "bfloat16"], amplitude=(2.0, 3.0), longest=33),
    share=0.4,
)
def test_flash_attention_computes_logits_and_softmax_in_float32(subject, call):
    subject.agrees(call)


@requirement(
    spec.FLASH_09,
    call=tiled_calls(masks=["none"], shapes=several_tiles, amplitude=(0.3, 1.0), leading_dims=FEW_ROWS),
    share=0.4,
)
def test_flash_attention_keeps_running_sums_of_many_keys_in_float32(subject, call):
    subject.agrees(call)


@requirement(
    spec.FLASH_10,
    call=flash_calls(masks=["none"], scales=["default"], longest=40),
    far=among([30.0, 1e3, 1e5, -30.0, -1e3, -1e5, -5e5]),
    share=0.5,
)
def test_adding_a_constant_to_a_row_of_logits_changes_nothing_in_flash_attention(subject, call, far):
    subject.agrees(shifted(call, far, subject.precision))


@requirement(spec.FLASH_10, routed=routed_flash(masks=["none"]), far=among([-5e5, -6e4, 6e4, 5e5]), share=0.4)
def test_a_row_of_logits_far_from_zero_still_finds_its_key_in_flash_attention(subject, routed, far):
    call, expected = routed
    subject.expects(shifted(call, far, subject.precision), expected)


@requirement(
    spec.FLASH_10,
    routed=routed_flash(masks=["none"], dtypes=["float16"], shapes=tokens_and_prompts, **COMMON_HEADS),
    far=among([-5e5, 5e5]),
    share=0.05,
)
def test_products_of_common_heads_that_float16_cannot_hold_are_scaled_first_in_flash_attention(subject, routed, far):
    call, expected = routed
    subject.expects(shifted(call, far, subject.precision), expected)


@requirement(spec.FLASH_10, routed=routed_flash(masks=["none"], dtypes=["float32", "bfloat16"]), share=0.1)
def test_logits_too_large_for_fractions_are_safe_in_flash_attention(subject, routed):
    call, expected = routed
    subject.expects(towering(call), expected)


@requirement(
    spec.FLASH_10,
    routed=routed_flash(masks=["none"], dtypes=["float32", "bfloat16"]),
    far=among([-5e5, -6e4]),
    power=among(DEPTHS),
    share=0.4,
)
def test_logits_may_lie_below_any_number_that_a_maximum_starts_at_in_flash_attention(subject, routed, far, power):
    call, expected = routed
    subject.expects(towering(shifted(call, far, subject.precision), power), expected)


@requirement(
    spec.FLASH_25,
    call=flash_calls(masks=["bool", "-inf"], ratios=[2, 4, 3, 8], head_dims=[32, 64, 40], amplitude=(1.0,)),
    part=among(["key", "value", "query"]),
    share=0.5,
)
def test_a_nan_shows_beside_keys_that_a_mask_hides_in_flash_attention(subject, call, part):
    subject.agrees(with_nan_in_sight(call, part))


@requirement(spec.FLASH_25, call=flash_calls(masks=["none"]), part=among(["query", "key", "value"]), share=0.2)
def test_a_nan_shows_in_every_tile_that_sees_it(subject, call, part):
    subject.agrees(with_nan(call, part))


@requirement(
    spec.FLASH_25,
    call=tiled_calls(masks=["none"], shapes=several_tiles, leading_dims=FEW_ROWS),
    part=among(["key", "value", "query"]),
    share=0.2,
)
def test_a_nan_shows_whatever_tiles_come_after_it(subject, call, part):
    subject.agrees(with_nan(call, part))


@requirement(
    spec.FLASH_25,
    call=flash_calls(
        masks=["none"],
        shapes=any_of(over_splits, ragged_tiles),
        amplitude=(1.0,),
        leading_dims=[(), (1,), (2,)],
        head_dims=[64, 8, 128],
        ratios=[1, 2, 4],
        most_heads=2,
    ),
    part=among(["key", "value", "query"]),
    share=0.3,
)
def test_a_nan_shows_among_many_queries_and_keys_of_flash_attention(subject, call, part):
    subject.agrees(with_nan(call, part))
