"""Does an implementation of flash attention take its arrays as it should: none, batches, views, dtypes, and
what is refused?"""

import numpy as np

from inferspec.conformance.inputs.attention import (
    COMMON,
    PROJECTED,
    SPOILT,
    TOO_MANY,
    as_heads,
    of_other_values,
    rows_past_16_bits,
    spoilt,
    with_a_value_less,
    with_larger_mask,
    with_mask_of_key_heads,
)
from inferspec.conformance.inputs.attention_lengths import (
    a_late_token,
    drafts_over_splits,
    few_over_many,
    in_decoding,
    of_models,
    one_over_many,
    one_past_a_tile,
    over_splits,
    ragged_tiles,
    small_blocks,
    square_prompts,
    tokens_of_large_models,
    whole_prompts,
)
from inferspec.conformance.inputs.attention_masks import ARRAYS, ENCODINGS, masks_in_a_row, seeing
from inferspec.conformance.inputs.flash_attention import (
    BATCHES_OF_PROMPTS,
    COMMON_HEADS,
    FEW_ROWS,
    FLASH,
    across_tiles,
    flash_calls,
    routed_flash,
    several_tiles,
    tiled_calls,
)
from inferspec.conformance.properties.common import (
    depends_on_arguments_alone,
    keeps_arguments,
    refuses,
    refuses_or_reads,
    returns,
)
from inferspec.conformance.strategies import HALF, MOSTLY_SLICES, among, any_of, bottom_up, in_views, seeds
from inferspec.conformance.suite import requirement
from inferspec.spec import flash_attention as spec

many_queries = tiled_calls(shapes=ragged_tiles, leading_dims=[(), (1,)], ratios=[1, 2, 3, 4])


@requirement(spec.FLASH_11, call=flash_calls(masks=["none"]), axis=among(["S", "L"]), share=0.2)
def test_no_keys_give_zeros_and_no_queries_give_nothing_in_flash_attention(subject, call, axis):
    names = ("key", "value") if axis == "S" and True in subject.envelope["more_queries"] else ("query",)
    empty = call.having(**{name: call.arguments[name][..., :0, :] for name in names})
    subject.expects(empty, np.zeros(empty.arguments["query"].shape))


@requirement(spec.FLASH_11, call=flash_calls(masks=["none"], leading_dims=[(2,), (2, 3)]), share=0.2)
def test_an_empty_batch_gives_an_empty_result_of_flash_attention(subject, call):
    empty = call.having(**{name: call.arguments[name][:0] for name in ("query", "key", "value")})
    subject.expects(empty, np.zeros(empty.arguments["query"].shape))


@requirement(spec.FLASH_12, call=flash_calls(leading_dims=[(2,), (2, 3), (3,)]), share=0.4)
def test_a_batch_of_flash_attention_is_the_stack_of_its_rows(subject, call):
    subject.agrees(call, where=seeing(call))


@requirement(
    spec.FLASH_12,
    call=flash_calls(
        batches=(17, 33, 65, 129), leading_dims=[(9,)], head_dims=[32, 40, 64], masks=["none", "causal"], longest=4
    ),
    share=0.1,
)
def test_each_of_many_sequences_is_attended_by_flash_attention(subject, call):
    subject.agrees(call, where=seeing(call))


@requirement(
    spec.FLASH_12,
    call=flash_calls(
        batches=(17, 33),
        shapes=small_blocks,
        leading_dims=[(9,)],
        head_dims=[32],
        masks=["none", "causal"],
        amplitude=(1.0,),
        most_heads=2,
        ratios=[1, 2],
    ),
    share=0.07,
)
def test_prompts_of_many_sequences_are_attended_each_for_itself_by_flash_attention(subject, call):
    subject.agrees(call, where=seeing(call))


@requirement(
    spec.FLASH_12,
    call=flash_calls(
        batches=(17, 33),
        shapes=a_late_token,
        leading_dims=[(9,)],
        ratios=[1, 4],
        amplitude=(1.0,),
        head_dims=[32, 64],
        most_heads=1,
    ),
    share=0.05,
)
def test_a_token_of_each_of_many_sequences_is_attended_after_its_context_by_flash_attention(subject, call):
    subject.agrees(call, where=seeing(call))


@requirement(
    spec.FLASH_12,
    call=flash_calls(
        shapes=whole_prompts,
        leading_dims=[(2,)],
        head_dims=[32],
        ratios=[1],
        masks=["causal"],
        amplitude=(1.0,),
        most_heads=1,
    ),
    share=0.03,
)
def test_whole_prompts_of_a_batch_are_attended_each_for_itself_by_flash_attention(subject, call):
    subject.agrees(call, where=seeing(call))


@requirement(
    spec.FLASH_12,
    routed=routed_flash(
        masks=["none"],
        shapes=tokens_of_large_models,
        leading_dims=[(9,)],
        head_dims=[64],
        ratios=[1, 4, 12],
        most_heads=1,
    ),
    share=0.05,
)
def test_tokens_of_large_heads_of_some_sequences_find_their_keys_in_flash_attention(subject, routed):
    call, expected = routed
    subject.expects(call, expected)


@requirement(
    spec.FLASH_12,
    routed=routed_flash(masks=["none"], shapes=one_over_many, **{**COMMON_HEADS, "leading_dims": [(2,), (3,)]}),
    share=0.04,
)
def test_tokens_of_common_heads_after_long_contexts_find_their_keys_in_a_batch_of_flash_attention(subject, routed):
    call, expected = routed
    subject.expects(call, expected)


@requirement(
    spec.FLASH_12,
    routed=routed_flash(
        masks=["causal"], shapes=over_splits, leading_dims=[(2,), (3,)], head_dims=[64, 128], ratios=[4, 2, 8]
    ),
    share=0.1,
)
def test_drafts_of_a_batch_after_long_contexts_find_their_keys_in_flash_attention(subject, routed):
    call, expected = routed
    subject.expects(call, expected)


@requirement(spec.FLASH_12, call=flash_calls(masks=["none", "causal"]), share=0.2)
def test_leading_dims_of_flash_attention_may_be_none_or_many(subject, call):
    subject.agrees(call, where=seeing(call))


@requirement(
    spec.FLASH_12,
    routed=rows_past_16_bits(
        operation=FLASH, masks=["none"], leading_dims=[(3,), (9,), (2,)], head_dims=[32, 40], ratios=[1]
    ),
    of_heads=among([False, True]),
    share=0.07,
    shrinks=False,
)
def test_more_batch_rows_or_heads_of_one_than_16_bits_count_are_right_in_flash_attention(subject, routed, of_heads):
    call, expected = as_heads(*routed) if of_heads else routed
    subject.expects(call, expected)


@requirement(
    spec.FLASH_13,
    call=in_views(
        flash_calls(
            shapes=in_decoding,
            amplitude=(1.0,),
            most_heads=3,
            leading_dims=[(2,), (3,), ()],
            head_dims=[64, 128, 32, 80],
            ratios=[1, 2, 4],
        ),
        "key",
        "value",
        views=["room", "room", "heads"],
    ),
    share=0.5,
)
def test_flash_attention_reads_keys_and_values_from_caches_with_room_for_more(subject, call):
    subject.agrees(call, where=seeing(call))


@requirement(
    spec.FLASH_13,
    call=flash_calls(
        shapes=drafts_over_splits,
        masks=["none", "causal"],
        head_counts=(2,),
        head_dims=[32],
        ratios=[1, 4, 12],
        leading_dims=[(), (1,)],
        amplitude=(1.0,),
    ),
    share=0.05,
)
def test_heads_of_drafts_that_lie_beside_each_other_are_read_like_their_copies_by_flash_attention(subject, call):
    subject.agrees(call.viewing("query", "heads"))


@requirement(spec.FLASH_13, call=in_views(BATCHES_OF_PROMPTS, "mask", views=[*MOSTLY_SLICES, "room"]), share=0.2)
def test_flash_attention_reads_masks_of_batches_through_their_strides(subject, call):
    subject.agrees(call, where=seeing(call))


@requirement(spec.FLASH_13, call=in_views(flash_calls()), share=0.8)
def test_flash_attention_reads_a_strided_argument_like_its_copy(subject, call):
    subject.agrees(call, where=seeing(call))


@requirement(spec.FLASH_13, call=flash_calls(), share=0.05)
def test_flash_attention_reads_keys_and_values_that_lie_beside_each_other_in_one_array(subject, call):
    subject.agrees(call.joining("key", "value"), where=seeing(call))


@requirement(spec.FLASH_13, call=flash_calls(), share=0.1)
def test_flash_attention_reads_tokens_that_lie_backwards_like_their_copies(subject, call):
    subject.agrees(bottom_up(call, "query", "key", "value"), where=seeing(call))


@requirement(spec.FLASH_13, call=in_views(tiled_calls(leading_dims=FEW_ROWS)), share=0.3)
def test_flash_attention_reads_long_strided_arguments_like_their_copies(subject, call):
    subject.agrees(call, where=seeing(call))


@requirement(
    spec.FLASH_13,
    call=in_views(tiled_calls(shapes=several_tiles, leading_dims=FEW_ROWS), "query", "key", "value", views=["heads"]),
    share=0.4,
)
def test_flash_attention_reads_what_a_projection_gives(subject, call):
    subject.agrees(call, where=seeing(call))


@requirement(
    spec.FLASH_13,
    call=in_views(
        many_queries(shapes=one_past_a_tile, masks=[*ENCODINGS, "additive"]), "key", "value", views=["broadcast"]
    ),
    share=0.4,
)
def test_flash_attention_reads_what_is_repeated_without_a_copy(subject, call):
    subject.agrees(call, where=seeing(call))


@requirement(
    spec.FLASH_13,
    call=in_views(many_queries, "query", "key", "value", views=MOSTLY_SLICES),
    share=0.8,
)
def test_flash_attention_reads_many_queries_through_their_strides(subject, call):
    subject.agrees(call, where=seeing(call))


@requirement(
    spec.FLASH_13,
    call=in_views(many_queries(masks=[*ENCODINGS, "additive"]), "mask"),
    share=0.3,
)
def test_flash_attention_reads_masks_of_many_queries_through_their_strides(subject, call):
    subject.agrees(call, where=seeing(call))


@requirement(
    spec.FLASH_13,
    call=in_views(
        flash_calls(
            shapes=over_splits,
            masks=["none", "-inf", "additive", "causal"],
            amplitude=(1.0,),
            most_heads=2,
            ratios=[1, 4],
            leading_dims=FEW_ROWS,
        ),
        "key",
        "value",
        "mask",
        views=MOSTLY_SLICES,
    ),
    share=0.3,
)
def test_flash_attention_reads_many_keys_through_their_strides(subject, call):
    subject.agrees(call, where=seeing(call))


@requirement(
    spec.FLASH_13,
    call=in_views(
        flash_calls(masks=[*ENCODINGS, "additive"], shapes=square_prompts, amplitude=(1.0,), **COMMON_HEADS), "mask"
    ),
    share=0.1,
)
def test_flash_attention_reads_masks_of_prompts_through_their_strides(subject, call):
    subject.agrees(call, where=seeing(call))


@requirement(
    spec.FLASH_13,
    call=in_views(
        flash_calls(
            masks=[*ENCODINGS, "additive"],
            mask_rank=4,
            leading_dims=[(2,), (5,)],
            head_dims=[64, 32, 128],
            amplitude=(1.0,),
        ),
        "mask",
        views=["broadcast"],
    ),
    share=0.6,
)
def test_an_expanded_mask_acts_like_its_copy_in_flash_attention(subject, call):
    subject.agrees(call, where=seeing(call))


@requirement(
    spec.FLASH_13,
    call=in_views(
        flash_calls(
            shapes=in_decoding,
            amplitude=(1.0,),
            most_heads=3,
            leading_dims=[(2,), (1,), (3,), (5,)],
            head_dims=[128, 64],
            ratios=[1, 2, 4],
        ),
        "query",
        views=["slice", "half"],
    ),
    share=0.25,
)
def test_flash_attention_reads_queries_of_common_heads_that_lie_among_others(subject, call):
    subject.agrees(call, where=seeing(call))


@requirement(
    spec.FLASH_13,
    call=in_views(
        flash_calls(
            shapes=of_models,
            masks=["none", "causal", "bool"],
            amplitude=(1.0,),
            most_heads=2,
            **{**COMMON, "leading_dims": [(1,), (2,)]},
        ),
        "query",
        "key",
        "value",
        views=PROJECTED,
    ),
    share=0.5,
)
def test_flash_attention_reads_prompts_and_tokens_of_models_through_their_strides(subject, call):
    subject.agrees(call, where=seeing(call))


@requirement(spec.FLASH_14, call=flash_calls(), share=0.6)
def test_the_result_of_flash_attention_has_the_shape_and_dtype_of_the_query(subject, call):
    returns(subject, call, call.arguments["query"].shape, call.features["dtypes"])


@requirement(spec.FLASH_14, call=many_queries, share=0.2)
def test_many_queries_come_back_in_their_dtype(subject, call):
    returns(subject, call, call.arguments["query"].shape, call.features["dtypes"])


@requirement(spec.FLASH_15, call=many_queries, share=0.2)
def test_flash_attention_of_many_queries_changes_no_argument(subject, call):
    keeps_arguments(subject, call)


@requirement(spec.FLASH_15, call=flash_calls(), share=0.6)
def test_flash_attention_changes_no_argument(subject, call):
    keeps_arguments(subject, call)


@requirement(spec.FLASH_16, call=flash_calls(masks=["none"], scales=["given"], amplitude=(1.0,)), share=0.3)
def test_another_scale_in_between_changes_nothing_in_flash_attention(subject, call):
    scale = call.arguments["scale"]
    other = call.having(scale=scale + 1.3 * call.arguments["query"].shape[-1] ** -0.5)
    depends_on_arguments_alone(subject, call, other)


@requirement(spec.FLASH_16, call=flash_calls(masks=["bool"]), share=0.3)
def test_another_mask_in_between_changes_nothing_in_flash_attention(subject, call):
    depends_on_arguments_alone(subject, call, call.having(mask=np.ones_like(call.arguments["mask"])))


@requirement(spec.FLASH_16, call=flash_calls(masks=["bool", "additive", "-inf"], mask_rank=2), seed=seeds, share=0.3)
def test_masks_of_one_shape_in_a_row_are_read_each_for_itself_in_flash_attention(subject, call, seed):
    for mask in masks_in_a_row(call, seed):
        subject.agrees(call.having(mask=mask))


@requirement(spec.FLASH_16, call=flash_calls(amplitude=(1.0,)), share=0.5)
def test_other_keys_and_values_in_between_change_nothing_in_flash_attention(subject, call):
    """Under every kind of mask."""
    other = call.having(**{name: -call.arguments[name] for name in ("key", "value")})
    depends_on_arguments_alone(subject, call, other, where=seeing(call))


@requirement(
    spec.FLASH_16,
    call=tiled_calls(shapes=any_of(across_tiles, ragged_tiles), masks=["none", "causal"], leading_dims=FEW_ROWS),
    name=among(["query", "key", "value"]),
    share=0.4,
)
def test_calls_of_several_tiles_are_repeatable(subject, call, name):
    depends_on_arguments_alone(subject, call, call.having(**{name: -call.arguments[name]}), where=seeing(call))


@requirement(spec.FLASH_17, call=flash_calls(masks=["none"]), bad=among(SPOILT), share=0.5)
def test_flash_attention_refuses_bad_arguments(subject, call, bad):
    if subject.envelope["masks"] == ("none",) and bad in ("name", "mask"):
        bad = "heads"
    refuses(subject, spoilt(call, bad))


@requirement(spec.FLASH_17, call=flash_calls(masks=["none"]), share=0.06)
def test_flash_attention_refuses_fewer_values_than_keys(subject, call):
    refuses(subject, with_a_value_less(call))


@requirement(spec.FLASH_17, call=flash_calls(masks=ARRAYS), axis=among(TOO_MANY), share=0.2)
def test_flash_attention_refuses_a_mask_of_more_than_there_is(subject, call, axis):
    refuses(subject, with_larger_mask(call, axis))


@requirement(spec.FLASH_17, call=flash_calls(masks=ARRAYS), share=0.06)
def test_flash_attention_refuses_a_mask_of_as_many_heads_as_the_keys_have(subject, call):
    refuses(subject, with_mask_of_key_heads(call))


@requirement(spec.FLASH_26, call=flash_calls(masks=["additive", "-inf"], dtypes=HALF, amplitude=(1.0,)), share=0.2)
def test_a_mask_in_float32_is_refused_or_read_for_its_numbers_in_flash_attention(subject, call):
    refuses_or_reads(subject, call, "mask", where=seeing(call))


@requirement(spec.FLASH_17, call=flash_calls(), more=among([1, -1, 3, 64]), share=0.2)
def test_values_of_another_head_dim_are_refused_or_right_in_flash_attention(subject, call, more):
    other = of_other_values(call, more)
    if not subject.observe(other).raised:
        subject.agrees(other, where=seeing(other))


@requirement(
    spec.FLASH_17,
    call=flash_calls(
        masks=["causal", "none", "bool"],
        shapes=ragged_tiles,
        head_dims=[64, 128, 192],
        ratios=[1, 2, 3],
        leading_dims=[(), (1,)],
        amplitude=(1.0,),
        most_heads=2,
    ),
    more=among([-32, 64, -1, 1]),
    share=0.3,
)
def test_values_of_another_head_dim_over_several_tiles_are_refused_or_right_in_flash_attention(subject, call, more):
    other = of_other_values(call, more)
    if not subject.observe(other).raised:
        subject.agrees(other, where=seeing(other))


@requirement(
    spec.FLASH_17,
    call=flash_calls(
        masks=["causal", "none", "bool"],
        shapes=few_over_many,
        head_dims=[64, 32, 128],
        leading_dims=[(), (1,)],
        amplitude=(1.0,),
        most_heads=1,
    ),
    more=among([-31, 64, -1, 1]),
    share=0.1,
)
def test_values_of_another_head_dim_over_many_keys_are_refused_or_right_in_flash_attention(subject, call, more):
    other = of_other_values(call, more)
    if not subject.observe(other).raised:
        subject.agrees(other, where=seeing(other))
