"""Does an implementation of attention take its arrays as it should: none, batches, views, dtypes, what is refused?"""

import numpy as np

from inferspec.conformance.inputs.attention import (
    BATCHES_OF_PROMPTS,
    COMMON,
    PROJECTED,
    SPOILT,
    TOO_MANY,
    as_heads,
    attention_calls,
    many_rows,
    of_other_values,
    routed_attention,
    rows_past_16_bits,
    spoilt,
    with_a_value_less,
    with_larger_mask,
    with_mask_of_key_heads,
)
from inferspec.conformance.inputs.attention_lengths import (
    a_late_token,
    beside_tiles,
    drafts_over_splits,
    few_over_many,
    in_decoding,
    of_models,
    one_over_many,
    one_past_a_tile,
    over_splits,
    prompts_of_batches,
    ragged_tiles,
    small_blocks,
    whole_prompts,
)
from inferspec.conformance.inputs.attention_masks import ARRAYS, masks_in_a_row, seeing
from inferspec.conformance.properties.common import (
    depends_on_arguments_alone,
    keeps_arguments,
    refuses,
    refuses_or_reads,
    returns,
)
from inferspec.conformance.strategies import HALF, MOSTLY_SLICES, among, bottom_up, in_views, one_batch_repeated, seeds
from inferspec.conformance.suite import requirement
from inferspec.spec import attention as spec

many_queries = attention_calls(
    shapes=ragged_tiles, amplitude=(1.0,), leading_dims=[(), (1,)], most_heads=2, ratios=[1, 2, 3, 4]
)


@requirement(spec.ATTN_11, call=attention_calls(masks=["none"]), axis=among(["S", "L"]), share=0.5)
def test_no_keys_give_zeros_and_no_queries_give_nothing(subject, call, axis):
    names = ("key", "value") if axis == "S" and True in subject.envelope["more_queries"] else ("query",)
    empty = call.having(**{name: call.arguments[name][..., :0, :] for name in names}, mask=None)
    subject.expects(empty, np.zeros(empty.arguments["query"].shape))


@requirement(spec.ATTN_11, call=attention_calls(masks=["none"], leading_dims=[(2,), (2, 3)]), share=0.5)
def test_an_empty_batch_gives_an_empty_result(subject, call):
    empty = call.having(**{name: call.arguments[name][:0] for name in ("query", "key", "value")})
    subject.expects(empty, np.zeros(empty.arguments["query"].shape))


@requirement(spec.ATTN_12, call=attention_calls(leading_dims=[(2,), (2, 3)]))
def test_a_batch_is_the_stack_of_its_rows(subject, call):
    subject.agrees(call, where=seeing(call))


@requirement(
    spec.ATTN_12,
    call=attention_calls(
        batches=(17, 33, 65, 129), leading_dims=[(9,)], head_dims=[2, 4, 8, 64], masks=["none", "causal"], longest=4
    ),
    share=0.1,
)
def test_each_of_many_sequences_is_attended(subject, call):
    subject.agrees(call, where=seeing(call))


@requirement(
    spec.ATTN_12,
    call=attention_calls(
        batches=(17, 33),
        shapes=a_late_token,
        leading_dims=[(9,)],
        head_dims=[64, 8],
        ratios=[1, 4],
        amplitude=(1.0,),
        most_heads=2,
    ),
    share=0.05,
)
def test_a_token_of_each_of_many_sequences_is_attended_after_its_context(subject, call):
    subject.agrees(call, where=seeing(call))


@requirement(
    spec.ATTN_12,
    call=attention_calls(
        shapes=prompts_of_batches,
        leading_dims=[(2,), (5,)],
        head_dims=[4, 64, 8],
        ratios=[1, 2],
        amplitude=(1.0,),
        most_heads=1,
    ),
    share=0.05,
)
def test_long_prompts_of_a_batch_are_attended_each_for_itself(subject, call):
    subject.agrees(call, where=seeing(call))


@requirement(
    spec.ATTN_12,
    call=attention_calls(
        shapes=whole_prompts,
        leading_dims=[(2,)],
        head_dims=[32, 64],
        ratios=[4, 1],
        masks=["causal"],
        amplitude=(1.0,),
        most_heads=1,
    ),
    share=0.03,
)
def test_whole_prompts_of_a_batch_are_attended_each_for_itself(subject, call):
    subject.agrees(call, where=seeing(call))


@requirement(
    spec.ATTN_12,
    routed=routed_attention(masks=["none"], shapes=one_over_many, **{**COMMON, "leading_dims": [(2,), (5,)]}),
    share=0.05,
)
def test_tokens_of_common_heads_after_long_contexts_find_their_keys_in_a_batch(subject, routed):
    call, expected = routed
    subject.expects(call, expected)


@requirement(
    spec.ATTN_12,
    routed=routed_attention(
        masks=["causal"],
        shapes=over_splits,
        most_heads=2,
        leading_dims=[(2,), (5,)],
        head_dims=[64, 128],
        ratios=[4, 2, 8],
    ),
    share=0.1,
)
def test_drafts_of_a_batch_after_long_contexts_find_their_keys(subject, routed):
    call, expected = routed
    subject.expects(call, expected)


@requirement(spec.ATTN_12, call=attention_calls(masks=["none", "causal"]))
def test_leading_dims_may_be_none_or_many(subject, call):
    subject.agrees(call, where=seeing(call))


@requirement(
    spec.ATTN_12,
    call=attention_calls(
        batches=(17, 33, 65),
        shapes=small_blocks,
        leading_dims=[(9,)],
        head_dims=[4, 2, 8],
        masks=["none", "causal"],
        amplitude=(1.0,),
        most_heads=2,
        ratios=[1, 2],
    ),
    share=0.1,
)
def test_prompts_of_many_sequences_are_attended_each_for_itself(subject, call):
    subject.agrees(call, where=seeing(call))


@requirement(
    spec.ATTN_12,
    call=many_rows(
        length=9, masks=["none"], leading_dims=[(2,), (5,)], head_dims=[1, 2], ratios=[4, 2, 7], more_queries=[True]
    ),
    share=0.02,
    shrinks=False,
)
def test_more_heads_of_prompts_than_16_bits_count_are_right(subject, call):
    subject.agrees(call)


@requirement(
    spec.ATTN_12,
    call=many_rows(masks=["none"], leading_dims=[(2,), (5,)], head_dims=[2, 1, 3, 4], ratios=[4, 2, 7]),
    share=0.04,
)
def test_more_heads_than_16_bits_count_are_right(subject, call):
    subject.agrees(call)


@requirement(
    spec.ATTN_12,
    routed=rows_past_16_bits(masks=["none"], leading_dims=[(5,), (9,), (2,)], head_dims=[4, 8], ratios=[1]),
    of_heads=among([False, True]),
    share=0.08,
    shrinks=False,
)
def test_more_batch_rows_or_heads_of_one_than_16_bits_count_are_right(subject, routed, of_heads):
    call, expected = as_heads(*routed) if of_heads else routed
    subject.expects(call, expected)


@requirement(spec.ATTN_13, call=attention_calls(leading_dims=[(2,)]), share=0.1)
def test_queries_that_are_half_of_all_heads_are_read_like_their_copies(subject, call):
    subject.agrees(call.viewing("query", "half"), where=seeing(call))


@requirement(
    spec.ATTN_13,
    call=in_views(
        attention_calls(
            shapes=in_decoding,
            amplitude=(1.0,),
            most_heads=3,
            leading_dims=[(2,), (5,), ()],
            head_dims=[64, 128, 8, 80],
            ratios=[1, 2, 4],
        ),
        "key",
        "value",
        views=["room", "room", "heads"],
    ),
    share=0.5,
)
def test_keys_and_values_are_read_from_caches_with_room_for_more(subject, call):
    subject.agrees(call, where=seeing(call))


@requirement(
    spec.ATTN_13,
    call=attention_calls(
        shapes=drafts_over_splits,
        masks=["none", "causal"],
        head_counts=(2,),
        head_dims=[64, 128, 8],
        ratios=[1, 4],
        leading_dims=[(), (1,)],
        amplitude=(1.0,),
    ),
    share=0.05,
)
def test_heads_of_drafts_that_lie_beside_each_other_are_read_like_their_copies(subject, call):
    subject.agrees(call.viewing("query", "heads"))


@requirement(spec.ATTN_13, call=in_views(BATCHES_OF_PROMPTS, "mask", views=[*MOSTLY_SLICES, "room"]), share=0.2)
def test_masks_of_batches_are_read_through_their_strides(subject, call):
    subject.agrees(call, where=seeing(call))


@requirement(
    spec.ATTN_13,
    call=in_views(
        attention_calls(masks=ARRAYS, mask_rank=5, leading_dims=[(2, 3)], amplitude=(1.0,)),
        "mask",
        views=MOSTLY_SLICES,
    ),
    share=0.1,
)
def test_a_strided_mask_of_five_axes_is_read_like_its_copy(subject, call):
    subject.agrees(call, where=seeing(call))


@requirement(spec.ATTN_13, call=in_views(attention_calls()), share=1.5)
def test_a_strided_argument_is_read_like_its_copy(subject, call):
    subject.agrees(call, where=seeing(call))


@requirement(spec.ATTN_13, call=attention_calls(amplitude=(1.0,)), share=0.05)
def test_keys_and_values_may_lie_beside_each_other_in_one_array(subject, call):
    subject.agrees(call.joining("key", "value"), where=seeing(call))


@requirement(
    spec.ATTN_13,
    call=in_views(attention_calls(shapes=beside_tiles, amplitude=(1.0,), leading_dims=[(), (1,)])),
    share=0.5,
)
def test_a_long_strided_argument_is_read_like_its_copy(subject, call):
    subject.agrees(call, where=seeing(call))


@requirement(spec.ATTN_13, call=attention_calls(), share=0.1)
def test_tokens_that_lie_backwards_are_read_like_their_copies(subject, call):
    subject.agrees(bottom_up(call, "query", "key", "value"), where=seeing(call))


@requirement(spec.ATTN_13, call=attention_calls(leading_dims=[(2,), (5,), (2, 3)], masks=["none", "causal"]), share=0.1)
def test_queries_of_a_batch_may_be_repeated_without_a_copy(subject, call):
    subject.agrees(one_batch_repeated(call, "query"), where=seeing(call))


@requirement(
    spec.ATTN_13,
    call=in_views(many_queries(shapes=one_past_a_tile, masks=ARRAYS), "key", "value", views=["broadcast"]),
    share=0.5,
)
def test_keys_and_values_may_be_repeated_without_a_copy(subject, call):
    subject.agrees(call, where=seeing(call))


@requirement(
    spec.ATTN_13,
    call=in_views(
        many_queries,
        "query",
        "key",
        "value",
        views=MOSTLY_SLICES,
    ),
    share=0.8,
)
def test_many_queries_are_read_through_their_strides(subject, call):
    subject.agrees(call, where=seeing(call))


@requirement(
    spec.ATTN_13,
    call=in_views(
        attention_calls(
            shapes=ragged_tiles, amplitude=(1.0,), leading_dims=[(), (1,), (2,)], most_heads=2, masks=ARRAYS
        ),
        "mask",
    ),
    share=0.3,
)
def test_masks_of_many_queries_are_read_through_their_strides(subject, call):
    subject.agrees(call, where=seeing(call))


@requirement(
    spec.ATTN_13,
    call=in_views(
        attention_calls(
            masks=ARRAYS, mask_rank=4, leading_dims=[(2,), (5,)], head_dims=[4, 64, 8, 128], amplitude=(1.0,)
        ),
        "mask",
        views=["broadcast"],
    ),
    share=0.6,
)
def test_an_expanded_mask_acts_like_its_copy(subject, call):
    subject.agrees(call, where=seeing(call))


@requirement(
    spec.ATTN_13,
    call=in_views(
        attention_calls(
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
    share=0.35,
)
def test_queries_of_common_heads_that_lie_among_others_are_read_like_their_copies(subject, call):
    subject.agrees(call, where=seeing(call))


@requirement(
    spec.ATTN_13,
    call=in_views(
        attention_calls(
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
    share=0.6,
)
def test_prompts_and_tokens_of_models_are_read_through_their_strides(subject, call):
    subject.agrees(call, where=seeing(call))


@requirement(spec.ATTN_14, call=attention_calls())
def test_the_result_has_the_shape_and_dtype_of_the_query(subject, call):
    returns(subject, call, call.arguments["query"].shape, call.features["dtypes"])


@requirement(
    spec.ATTN_14,
    call=attention_calls(masks=["none"], leading_dims=[(1,), (2,)]),
    axis=among([-2, 0]),
    share=0.3,
)
def test_an_empty_result_has_the_dtype_of_the_query(subject, call, axis):
    names = ("query",) if axis == -2 else ("query", "key", "value")
    empty = call.having(**{name: call.arguments[name].take([], axis) for name in names})
    if not subject.observe(empty).raised:
        returns(subject, empty, empty.arguments["query"].shape, call.features["dtypes"])


@requirement(spec.ATTN_14, call=attention_calls(shapes=beside_tiles, leading_dims=[(), (1,)]), share=0.2)
def test_a_long_result_has_the_shape_and_dtype_of_the_query(subject, call):
    returns(subject, call, call.arguments["query"].shape, call.features["dtypes"])


@requirement(spec.ATTN_15, call=attention_calls())
def test_attention_changes_no_argument(subject, call):
    keeps_arguments(subject, call)


@requirement(spec.ATTN_15, call=many_queries, share=0.2)
def test_attention_of_many_queries_changes_no_argument(subject, call):
    keeps_arguments(subject, call)


@requirement(spec.ATTN_16, call=attention_calls(masks=["none"], scales=["given"], amplitude=(1.0,)))
def test_another_scale_in_between_changes_nothing(subject, call):
    scale = call.arguments["scale"]
    depends_on_arguments_alone(
        subject, call, call.having(scale=scale + 1.3 * call.arguments["query"].shape[-1] ** -0.5)
    )


@requirement(spec.ATTN_16, call=attention_calls(masks=["none"], amplitude=(1.0,)))
def test_other_data_in_between_changes_nothing(subject, call):
    depends_on_arguments_alone(
        subject, call, call.having(query=-call.arguments["query"], value=-call.arguments["value"])
    )


@requirement(spec.ATTN_16, call=attention_calls(amplitude=(1.0,)), share=0.8)
def test_other_keys_and_values_in_between_change_nothing(subject, call):
    """Under every kind of mask."""
    other = call.having(**{name: -call.arguments[name] for name in ("key", "value")})
    depends_on_arguments_alone(subject, call, other, where=seeing(call))


@requirement(spec.ATTN_16, call=attention_calls(masks=["bool"]))
def test_another_mask_in_between_changes_nothing(subject, call):
    depends_on_arguments_alone(subject, call, call.having(mask=np.ones_like(call.arguments["mask"])))


@requirement(spec.ATTN_16, call=attention_calls(masks=["bool", "additive", "-inf"], mask_rank=2), seed=seeds, share=0.3)
def test_masks_of_one_shape_in_a_row_are_read_each_for_itself(subject, call, seed):
    for mask in masks_in_a_row(call, seed):
        subject.agrees(call.having(mask=mask))


@requirement(
    spec.ATTN_16,
    call=attention_calls(masks=["none", "bool"], shapes=beside_tiles, amplitude=(1.0,), leading_dims=[(), (1,)]),
    share=0.2,
)
def test_long_calls_are_repeatable(subject, call):
    depends_on_arguments_alone(subject, call, call.having(query=-call.arguments["query"]), where=seeing(call))


@requirement(spec.ATTN_16, call=many_queries, name=among(["key", "query", "value"]), share=0.3)
def test_other_calls_of_many_queries_in_between_change_nothing(subject, call, name):
    depends_on_arguments_alone(subject, call, call.having(**{name: -call.arguments[name]}), where=seeing(call))


@requirement(spec.ATTN_17, call=attention_calls(masks=["none"]), bad=among(SPOILT))
def test_bad_arguments_are_refused(subject, call, bad):
    if subject.envelope["masks"] == ("none",) and bad in ("name", "mask"):
        bad = "heads"
    refuses(subject, spoilt(call, bad))


@requirement(spec.ATTN_17, call=attention_calls(masks=["none"]), share=0.06)
def test_fewer_values_than_keys_are_refused(subject, call):
    refuses(subject, with_a_value_less(call))


@requirement(spec.ATTN_17, call=attention_calls(masks=ARRAYS), axis=among(TOO_MANY), share=0.2)
def test_a_mask_of_more_than_there_is_is_refused(subject, call, axis):
    refuses(subject, with_larger_mask(call, axis))


@requirement(spec.ATTN_17, call=attention_calls(masks=ARRAYS), share=0.06)
def test_a_mask_of_as_many_heads_as_the_keys_have_is_refused(subject, call):
    refuses(subject, with_mask_of_key_heads(call))


@requirement(spec.ATTN_21, call=attention_calls(masks=["additive", "-inf"], dtypes=HALF, amplitude=(1.0,)), share=0.2)
def test_a_mask_in_float32_is_refused_or_read_for_its_numbers(subject, call):
    refuses_or_reads(subject, call, "mask", where=seeing(call))


@requirement(spec.ATTN_17, call=attention_calls(), more=among([1, -1, 3, 64]), share=0.2)
def test_values_of_another_head_dim_are_refused_or_right(subject, call, more):
    other = of_other_values(call, more)
    if not subject.observe(other).raised:
        subject.agrees(other, where=seeing(other))


@requirement(
    spec.ATTN_17,
    call=attention_calls(
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
def test_values_of_another_head_dim_over_several_tiles_are_refused_or_right(subject, call, more):
    other = of_other_values(call, more)
    if not subject.observe(other).raised:
        subject.agrees(other, where=seeing(other))


@requirement(
    spec.ATTN_17,
    call=attention_calls(
        masks=["causal", "none", "bool"],
        shapes=few_over_many,
        head_dims=[64, 8, 128],
        ratios=[1, 2, 3],
        leading_dims=[(), (2,)],
        amplitude=(1.0,),
        most_heads=1,
    ),
    more=among([-32, 64, -1, 1]),
    share=0.1,
)
def test_values_of_another_head_dim_over_many_keys_are_refused_or_right(subject, call, more):
    other = of_other_values(call, more)
    if not subject.observe(other).raised:
        subject.agrees(other, where=seeing(other))
