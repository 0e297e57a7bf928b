"""Does an implementation of attention, of the causal mask and of multi-head attention keep the contract?"""

from typing import Any

import numpy as np

from inferspec.conformance.inputs.attention import (
    COMMON,
    DEPTHS,
    HIDDEN_STRETCHES,
    HIDING,
    SPOILT,
    a_draft_over_many,
    as_heads,
    attention_calls,
    beside_odd_tiles,
    beside_tiles,
    causal_as_array,
    chunks_of_whole_tiles,
    chunks_over_contexts,
    encoded,
    few_over_many,
    groups_over_many,
    in_decoding,
    louder,
    many_over_few,
    many_rows,
    many_tiles,
    mask_calls,
    masks_in_a_row,
    multi_head_calls,
    of_other_values,
    one_over_many,
    one_past_a_tile,
    one_short_of_tiles,
    over_splits,
    padded,
    padded_batches,
    prompts,
    ragged_tiles,
    routed_attention,
    routed_heads,
    rows_past_16_bits,
    seeing,
    shifted,
    spoilt,
    square_prompts,
    tiles_past_the_keys,
    tokens_and_prompts,
    towering,
    whole_tiles,
    with_hidden_heads,
    with_nan,
    without_a_stretch,
    without_beginning,
)
from inferspec.conformance.properties import (
    claimed,
    depends_on_arguments_alone,
    keeps_arguments,
    refuses,
    refuses_or_reads,
    returns,
)
from inferspec.conformance.strategies import HALF, MOSTLY_SLICES, among, in_views, seeds
from inferspec.conformance.suite import requirement
from inferspec.conformance.trial import Nonconformance
from inferspec.spec import attention as spec
from inferspec.spec.numerics import f64, largest

ENCODINGS = list(HIDING)
ARRAYS = [*HIDING, "additive"]
OF_ONE_KEY_HEAD: dict[str, Any] = {
    "masks": ["none", "causal"],
    "leading_dims": [(), (1,)],
    "ratios": [1, 2, 3],
    "head_dims": [4, 2, 8, 64],
    "amplitude": (1.0,),
    "most_heads": 1,
}

many_queries = attention_calls(
    shapes=ragged_tiles, amplitude=(1.0,), leading_dims=[(), (1,)], most_heads=2, ratios=[1, 2, 3, 4]
)
BATCHES_OF_PROMPTS = padded_batches(
    masks=["bool", "-inf", "lowest", "additive"],
    leading_dims=[(2,), (5,)],
    head_dims=[64, 128, 8, 2],
    ratios=[2, 4, 1, 3],
)
many_rows_of_heads = multi_head_calls(shapes=ragged_tiles, free_head_dim=[False], heads=(1, 3), dims=(5, 3, 33))


@requirement(spec.ATTN_01, call=attention_calls(masks=["none"]))
def test_attention_is_softmax_over_keys_times_value(subject, call):
    subject.agrees(call)


@requirement(spec.ATTN_02, call=attention_calls(masks=["none"], scales=["default"], amplitude=(1.0,)))
def test_the_default_scale_is_one_over_the_root_of_the_head_dim(subject, call):
    subject.agrees(call)


@requirement(spec.ATTN_02, call=attention_calls(masks=["none"], scales=["given"]))
def test_a_given_scale_is_used_as_it_is(subject, call):
    subject.agrees(call)


@requirement(spec.ATTN_03, routed=routed_attention(masks=["none"]))
def test_grouped_heads_read_their_own_keys_and_values(subject, routed):
    call, expected = routed
    subject.expects(call, expected)


@requirement(spec.ATTN_03, routed=routed_attention(masks=["none"], ratios=[12, 16, 24]), share=0.1)
def test_many_query_heads_share_a_key_head_of_attention(subject, routed):
    call, expected = routed
    subject.expects(call, expected)


@requirement(
    spec.ATTN_03,
    routed=routed_attention(masks=["none"], shapes=over_splits, head_dims=[64, 128, 8], ratios=[4, 3, 2, 8, 5]),
    share=0.3,
)
def test_key_heads_of_long_contexts_are_told_apart(subject, routed):
    call, expected = routed
    subject.expects(call, expected)


@requirement(
    spec.ATTN_03, routed=routed_attention(masks=["none"], ratios=[12, 16, 24], shapes=groups_over_many), share=0.1
)
def test_many_query_heads_share_a_key_head_of_many_keys(subject, routed):
    call, expected = routed
    subject.expects(call, expected)


@requirement(
    spec.ATTN_03,
    call=attention_calls(
        most_heads=33, ratios=[1, 2, 3], head_dims=[2, 4, 8], leading_dims=[(), (2,)], amplitude=(1.0,)
    ),
    share=0.1,
)
def test_dozens_of_heads_read_their_own_keys_and_values(subject, call):
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
    share=0.2,
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


@requirement(spec.ATTN_05, routed=routed_attention(masks=["causal"]), share=1.5)
def test_causal_rows_reach_their_last_visible_key_and_no_further(subject, routed):
    call, expected = routed
    subject.expects(call, expected, where=seeing(call))


@requirement(spec.ATTN_05, routed=routed_attention(masks=["causal"], shapes=chunks_over_contexts, **COMMON), share=0.45)
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
        shapes=prompts,
        amplitude=(1.0,),
        leading_dims=[(), (1,)],
        ratios=[1, 2],
        head_dims=[4, 2, 8, 16, 128],
        most_heads=1,
    ),
    share=0.05,
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


@requirement(spec.ATTN_06, routed=routed_attention(masks=ENCODINGS, shapes=tokens_and_prompts, **COMMON), share=0.8)
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
    routed=routed_attention(masks=["none"], shapes=one_over_many, **{**COMMON, "leading_dims": [(2,), (5,)]}),
    share=0.03,
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
    call=many_rows(masks=["none"], leading_dims=[(2,), (5,)], head_dims=[2, 1, 3, 4], ratios=[4, 2, 7]),
    share=0.03,
)
def test_more_heads_than_16_bits_count_are_right(subject, call):
    subject.agrees(call)


@requirement(
    spec.ATTN_12,
    routed=rows_past_16_bits(masks=["none"], leading_dims=[(5,), (9,), (2,)], head_dims=[4, 8], ratios=[1]),
    of_heads=among([False, True]),
    share=0.03,
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


@requirement(spec.ATTN_13, call=in_views(BATCHES_OF_PROMPTS, "mask", views=[*MOSTLY_SLICES, "room"]), share=0.2)
def test_masks_of_batches_are_read_through_their_strides(subject, call):
    subject.agrees(call, where=seeing(call))


@requirement(spec.ATTN_13, call=in_views(attention_calls()), share=1.5)
def test_a_strided_argument_is_read_like_its_copy(subject, call):
    subject.agrees(call, where=seeing(call))


@requirement(
    spec.ATTN_13,
    call=in_views(attention_calls(shapes=beside_tiles, amplitude=(1.0,), leading_dims=[(), (1,)])),
    share=0.5,
)
def test_a_long_strided_argument_is_read_like_its_copy(subject, call):
    subject.agrees(call, where=seeing(call))


@requirement(
    spec.ATTN_13,
    call=in_views(many_queries(shapes=one_past_a_tile, masks=ARRAYS), "key", "value", views=["broadcast"]),
    share=0.3,
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


@requirement(spec.ATTN_16, call=attention_calls(masks=["bool", "additive", "-inf"], mask_rank=2), seed=seeds, share=0.2)
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
    spec.ATTN_18,
    call=attention_calls(shapes=beside_tiles, leading_dims=[(), (1,)], amplitude=(1.0,)),
    share=0.7,
)
def test_lengths_beside_tiles_are_right(subject, call):
    subject.agrees(call, where=seeing(call))


@requirement(
    spec.ATTN_18,
    call=attention_calls(
        shapes=whole_tiles,
        masks=["none", "causal", "bool", "additive"],
        amplitude=(1.0,),
        most_heads=2,
        ratios=[1, 2, 3, 4],
    ),
    share=0.6,
)
def test_lengths_of_whole_tiles_are_right(subject, call):
    subject.agrees(call, where=seeing(call))


@requirement(spec.ATTN_18, call=attention_calls(shapes=beside_odd_tiles, **OF_ONE_KEY_HEAD), share=0.3)
def test_lengths_beside_tiles_that_are_no_powers_of_two_are_right(subject, call):
    subject.agrees(call, where=seeing(call))


@requirement(spec.ATTN_18, call=attention_calls(shapes=one_short_of_tiles, **OF_ONE_KEY_HEAD), share=0.3)
def test_lengths_one_short_of_tiles_are_right(subject, call):
    subject.agrees(call, where=seeing(call))


@requirement(spec.ATTN_18, routed=routed_attention(masks=["none"], shapes=one_over_many, **COMMON), share=0.1)
def test_a_token_of_common_heads_after_a_long_context_finds_its_key(subject, routed):
    call, expected = routed
    subject.expects(call, expected)


@requirement(
    spec.ATTN_18,
    call=attention_calls(
        shapes=few_over_many,
        masks=["causal", "bool", "additive"],
        leading_dims=[(2,), ()],
        ratios=[1, 2, 3],
        amplitude=(1.0,),
        most_heads=1,
    ),
    share=0.2,
)
def test_a_few_queries_over_many_keys_are_right(subject, call):
    subject.agrees(call, where=seeing(call))


@requirement(
    spec.ATTN_18,
    routed=routed_attention(
        masks=["none"],
        shapes=many_tiles,
        of_tiles=True,
        most_heads=1,
        head_dims=[64, 32, 128],
        ratios=[8, 4, 1],
        leading_dims=[()],
    ),
    share=0.25,
    shrinks=False,
)
def test_keys_at_the_edges_of_tiles_of_any_size_are_found(subject, routed):
    call, expected = routed
    subject.expects(call, expected)


@requirement(
    spec.ATTN_18,
    call=attention_calls(
        shapes=many_over_few,
        more_queries=[True],
        masks=["none", "bool", "additive"],
        leading_dims=[(), (1,)],
        ratios=[1, 2, 3],
        head_dims=[4, 2, 8, 64],
        amplitude=(1.0,),
        most_heads=1,
    ),
    share=0.05,
)
def test_a_thousand_queries_over_a_few_keys_are_right(subject, call):
    subject.agrees(call, where=seeing(call))


@requirement(
    spec.ATTN_18,
    routed=routed_attention(
        masks=["none"], shapes=one_over_many, head_dims=[256, 96, 192, 80], ratios=[1, 2, 4, 8], leading_dims=[(), (1,)]
    ),
    share=0.3,
)
def test_a_token_of_heads_of_other_dims_after_a_long_context_finds_its_key(subject, routed):
    call, expected = routed
    subject.expects(call, expected)


@requirement(spec.ATTN_19, call=attention_calls(masks=["causal"], relation="L=S"), drop=among(range(1, 9)))
def test_the_last_queries_alone_attend_as_in_the_whole(subject, call, drop):
    drop = min(drop, call.arguments["query"].shape[-2] - 1)
    whole, part = subject.agrees(call), subject.agrees(call.having(query=call.arguments["query"][..., drop:, :]))
    budget = subject.answer(call).budget[..., drop:, :]
    if (np.abs(f64(whole)[..., drop:, :] - f64(part)) > 2 * budget).any():
        raise Nonconformance("the last queries alone give other rows than the whole", call)


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


@requirement(spec.MHA_01, call=multi_head_calls(masks=["none"], free_head_dim=[False]))
def test_multi_head_attention_projects_attends_and_projects_back(subject, call):
    subject.agrees(call)


@requirement(spec.MHA_02, routed=routed_heads(masks=["none"], free_head_dim=[False]))
def test_heads_are_consecutive_features(subject, routed):
    call, expected = routed
    subject.expects(call, expected)


@requirement(
    spec.MHA_02,
    call=multi_head_calls(heads=(16, 9, 12, 32), dims=(2, 3, 4), free_head_dim=[False]),
    share=0.1,
)
def test_dozens_of_heads_are_split_and_merged_in_order(subject, call):
    subject.agrees(call, where=_seeing_rows(call))


@requirement(spec.MHA_03, call=multi_head_calls(masks=["none"], free_head_dim=[True]))
def test_the_head_dim_comes_from_the_weights(subject, call):
    subject.agrees(call)


@requirement(spec.MHA_03, call=multi_head_calls(masks=["causal", "bool"], free_head_dim=[True]), share=0.3)
def test_the_head_dim_comes_from_the_weights_under_a_mask_too(subject, call):
    subject.agrees(call, where=_seeing_rows(call))


@requirement(
    spec.MHA_01,
    call=multi_head_calls(masks=["none"], heads=(2, 4), dims=(64, 128), leading_dims=[(1,)], free_head_dim=[False]),
    share=0.2,
)
def test_heads_of_models_are_right(subject, call):
    subject.agrees(call)


@requirement(spec.MHA_01, call=multi_head_calls(masks=["none"], free_head_dim=[False], longest=70), share=0.5)
def test_long_sequences_of_multi_head_attention_are_right(subject, call):
    subject.agrees(call)


@requirement(spec.MHA_04, call=multi_head_calls(free_head_dim=[False], longest=70), share=1.3)
def test_long_masks_act_on_every_head(subject, call):
    subject.agrees(call, where=_seeing_rows(call))


@requirement(
    spec.MHA_04,
    call=multi_head_calls(
        masks=["causal"],
        shapes=prompts,
        heads=(2, 3),
        dims=(2, 4),
        leading_dims=[(1,), (2,)],
        free_head_dim=[False],
    ),
    share=0.05,
)
def test_prompts_of_hundreds_of_tokens_are_right(subject, call):
    subject.agrees(call, where=_seeing_rows(call))


@requirement(
    spec.MHA_04, call=multi_head_calls(masks=["causal", "bool", "-inf", "lowest", "additive"], free_head_dim=[False])
)
def test_masks_act_on_every_head(subject, call):
    subject.agrees(call, where=_seeing_rows(call))


@requirement(spec.MHA_05, call=multi_head_calls(leading_dims=[(2,), (2, 3)], free_head_dim=[False]))
def test_multi_head_rows_of_a_batch_are_independent(subject, call):
    subject.agrees(call, where=_seeing_rows(call))


@requirement(
    spec.MHA_05,
    call=multi_head_calls(masks=["none"], leading_dims=[(2,), (2, 3)], free_head_dim=[False]),
    name=among(["query", "key", "value"]),
    share=0.2,
)
def test_a_nan_stays_in_its_row_of_the_batch(subject, call, name):
    x = call.arguments[name].copy()
    x[-1] = np.nan
    others = np.arange(len(x)).reshape(-1, *(1,) * (x.ndim - 1)) < len(x) - 1
    subject.agrees(call.having(**{name: x}), where=others)


@requirement(spec.MHA_06, call=in_views(multi_head_calls(free_head_dim=[False])))
def test_multi_head_reads_strided_arguments(subject, call):
    subject.agrees(call, where=_seeing_rows(call))


@requirement(spec.MHA_06, call=in_views(many_rows_of_heads, "query", "key", "value", views=MOSTLY_SLICES), share=0.8)
def test_multi_head_reads_many_rows_through_their_strides(subject, call):
    subject.agrees(call, where=_seeing_rows(call))


@requirement(spec.MHA_06, call=in_views(many_rows_of_heads, "wq", "wk", "wv", "wo", views=MOSTLY_SLICES), share=0.8)
def test_multi_head_reads_weights_of_many_rows_through_their_strides(subject, call):
    subject.agrees(call, where=_seeing_rows(call))


@requirement(spec.MHA_06, call=in_views(multi_head_calls(free_head_dim=[False]), "query", "key", "value"))
def test_multi_head_reads_strided_inputs(subject, call):
    subject.agrees(call, where=_seeing_rows(call))


@requirement(spec.MHA_06, call=in_views(multi_head_calls(masks=["causal"], free_head_dim=[False])), share=0.3)
def test_causal_multi_head_reads_strided_arguments(subject, call):
    subject.agrees(call, where=_seeing_rows(call))


@requirement(spec.MHA_07, call=multi_head_calls(free_head_dim=[False], longest=40))
def test_multi_head_keeps_shape_and_dtype(subject, call):
    returns(subject, call, call.arguments["query"].shape, call.features["dtypes"])


@requirement(spec.MHA_08, call=multi_head_calls(free_head_dim=[False], longest=40))
def test_multi_head_changes_no_argument(subject, call):
    keeps_arguments(subject, call)


@requirement(spec.MHA_08, call=multi_head_calls(masks=["causal"], free_head_dim=[False]), share=0.3)
def test_causal_multi_head_changes_no_argument(subject, call):
    keeps_arguments(subject, call)


@requirement(spec.MHA_09, call=multi_head_calls(masks=["none"], free_head_dim=[False]))
def test_multi_head_depends_on_its_arguments_alone(subject, call):
    other = call.having(**{name: -call.arguments[name] for name in ("query", "key", "value")})
    depends_on_arguments_alone(subject, call.kept(0), other.kept(0))


@requirement(
    spec.MHA_09, call=multi_head_calls(masks=["none"], heads=(4, 2, 8), free_head_dim=[False], longest=5), share=0.2
)
def test_another_number_of_heads_in_between_changes_nothing(subject, call):
    depends_on_arguments_alone(subject, call, call.having(num_heads=call.arguments["num_heads"] // 2))


@requirement(spec.MHA_09, call=multi_head_calls(masks=["causal", "bool"], free_head_dim=[False]), share=0.5)
def test_other_inputs_under_a_mask_in_between_change_nothing(subject, call):
    other = call.having(**{name: -call.arguments[name] for name in ("query", "key", "value")})
    depends_on_arguments_alone(subject, call.kept(0), other.kept(0), where=_seeing_rows(call))


@requirement(
    spec.MHA_09,
    call=multi_head_calls(free_head_dim=[False]),
    name=among(["wq", "wk", "wv", "wo"]),
    share=0.6,
)
def test_other_weights_in_between_change_nothing(subject, call, name):
    other = call.having(**{name: -call.arguments[name]})
    depends_on_arguments_alone(subject, call, other, where=_seeing_rows(call))


@requirement(spec.MHA_09, call=many_rows_of_heads, name=among(["query", "key", "value"]), share=0.5)
def test_other_inputs_of_many_rows_in_between_change_nothing(subject, call, name):
    other = call.having(**{name: -call.arguments[name]})
    depends_on_arguments_alone(subject, call, other, where=_seeing_rows(call))


@requirement(spec.MHA_09, call=many_rows_of_heads, name=among(["wq", "wk", "wv", "wo"]), share=0.5)
def test_other_weights_of_many_rows_in_between_change_nothing(subject, call, name):
    other = call.having(**{name: -call.arguments[name]})
    depends_on_arguments_alone(subject, call, other, where=_seeing_rows(call))


@requirement(spec.MHA_09, call=multi_head_calls(masks=["bool"], free_head_dim=[False]))
def test_another_mask_of_multi_head_attention_in_between_changes_nothing(subject, call):
    other = call.having(mask=np.ones_like(call.arguments["mask"]))
    depends_on_arguments_alone(subject, call.kept(0), other.kept(0))


@requirement(
    spec.MHA_09,
    call=multi_head_calls(masks=["bool", "additive", "-inf"], free_head_dim=[False]),
    seed=seeds,
    share=0.3,
)
def test_masks_of_multi_head_attention_in_a_row_are_read_each_for_itself(subject, call, seed):
    for mask in masks_in_a_row(call, seed):
        subject.agrees(call.having(mask=mask))


@requirement(
    spec.MHA_11, call=multi_head_calls(masks=["none"], leading_dims=[(2,), (2, 3)]), axis=among([0, -2]), share=0.2
)
def test_no_queries_or_an_empty_batch_give_nothing(subject, call, axis):
    names = ("query", "key", "value") if axis == 0 or True not in subject.envelope["other_lengths"] else ("query",)
    empty = call.having(**{name: call.arguments[name].take([], axis) for name in names})
    subject.expects(empty, np.zeros(empty.arguments["query"].shape))


@requirement(
    spec.MHA_10,
    call=multi_head_calls(masks=["none"], free_head_dim=[False]),
    bad=among(["wq", "wk", "wv", "wo", "heads"]),
)
def test_weights_of_other_shapes_are_refused(subject, call, bad):
    if bad == "heads":
        rows = call.arguments["wq"].shape[0]
        refuses(subject, call.having(num_heads=next(n for n in range(2, rows + 2) if rows % n)))
        return
    weight = call.arguments[bad]
    refuses(subject, call.having(**{bad: np.concatenate([weight, weight[:, :1]], axis=1)}))


def _with_empty_rows(call):
    """The same call; every other row of the mask hides all keys."""
    query, keys = call.arguments["query"], call.arguments["key"].shape[-2]
    visible = np.broadcast_to((np.arange(query.shape[-2]) % 2 == 1)[:, None], (query.shape[-2], keys))
    return call.having(mask=encoded(np.array(visible), call.features["masks"], call.features["dtypes"]))


def _seeing_rows(call):
    """N..×L×1: rows of multi-head attention in which every head sees a key."""
    operation = spec.MultiHeadAttention()
    bias = operation.core.bias(operation.bind(call.arguments))
    query, keys = call.arguments["query"], call.arguments["key"].shape[-2]
    shape = (*query.shape[:-2], call.arguments["num_heads"], query.shape[-2], keys)
    return np.isfinite(np.broadcast_to(bias, shape)).any(-1).all(-2)[..., None]


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
