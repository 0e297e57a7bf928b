"""Does an implementation of flash attention keep the contract?"""

import numpy as np

from inferspec.conformance.inputs.attention import (
    COMMON,
    DEPTHS,
    HIDDEN_STRETCHES,
    SPOILT,
    a_draft_over_many,
    as_heads,
    beside_odd_tiles,
    causal_as_array,
    chunks_of_whole_tiles,
    encoded,
    groups_over_many,
    hidden_from_a_head,
    in_decoding,
    louder,
    many_over_few,
    many_tiles,
    masks_in_a_row,
    of_other_values,
    one_over_many,
    one_past_a_tile,
    one_short_of_tiles,
    over_splits,
    padded,
    ragged_tiles,
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
from inferspec.conformance.inputs.flash_attention import (
    ENCODINGS,
    FLASH,
    across_tiles,
    beside_splits,
    blocks_of_queries,
    blocks_over_many_keys,
    causal_blocks,
    emptied_rows,
    flash_calls,
    full_dim_calls,
    hidden_tiles,
    large_causal_blocks,
    longer_than_keys,
    many_keys,
    more_than_a_tile,
    one_or_several,
    padded_flash,
    past_splits,
    routed_flash,
    routed_tiles,
    several_tiles,
    short_chunks,
    tiled_calls,
    walked_calls,
)
from inferspec.conformance.properties import (
    claimed,
    depends_on_arguments_alone,
    keeps_arguments,
    refuses,
    refuses_or_reads,
    returns,
)
from inferspec.conformance.strategies import HALF, MOSTLY_SLICES, among, any_of, in_views, seeds
from inferspec.conformance.suite import requirement
from inferspec.conformance.trial import Nonconformance
from inferspec.spec import flash_attention as spec
from inferspec.spec.numerics import f64

FEW_ROWS = [(), (1,), (2,)]
many_queries = tiled_calls(shapes=ragged_tiles, leading_dims=[(), (1,)], ratios=[1, 2, 3, 4])
COMMON_HEADS = {**COMMON, "most_heads": 1, "ratios": [4]}
"""What most models have, small enough for an emulated GPU."""
BATCHES_OF_PROMPTS = padded_flash(
    masks=["bool", "-inf", "lowest", "additive"],
    leading_dims=[(2,), (3,)],
    head_dims=[64, 128, 32, 80],
    ratios=[2, 4, 1, 3],
)
ONE_HEAD = {"most_heads": 1, "head_dims": [32, 40, 64], "ratios": [1, 2], "leading_dims": [(), (1,)]}
"""For dear shapes: one key head."""


@requirement(spec.FLASH_01, call=flash_calls(masks=["none"]), share=0.6)
def test_flash_attention_is_softmax_over_keys_times_value(subject, call):
    subject.agrees(call)


@requirement(spec.FLASH_01, call=tiled_calls(masks=["none"], leading_dims=FEW_ROWS), share=0.3)
def test_flash_attention_of_several_tiles_is_right(subject, call):
    subject.agrees(call)


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


@requirement(spec.FLASH_03, routed=routed_flash(masks=["none"], ratios=[24, 16, 12], shapes=one_or_several), share=0.2)
def test_many_query_heads_share_a_key_head_of_flash_attention(subject, routed):
    call, expected = routed
    subject.expects(call, expected)


@requirement(
    spec.FLASH_03, routed=routed_flash(masks=["none"], ratios=[12, 16, 24], shapes=groups_over_many), share=0.1
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
    call=flash_calls(most_heads=16, ratios=[1, 2, 3], head_dims=[32, 40, 64], leading_dims=[(), (1,), (3,)]),
    share=0.15,
)
def test_dozens_of_heads_read_their_own_keys_and_values(subject, call):
    subject.agrees(call, where=seeing(call))


@requirement(spec.FLASH_04, call=flash_calls(masks=["additive", "bool", "-inf"]), share=0.7)
def test_flash_attention_takes_masks_of_any_broadcastable_shape(subject, call):
    subject.agrees(call, where=seeing(call))


@requirement(spec.FLASH_04, call=flash_calls(masks=["additive", "bool", "-inf", "lowest"], mask_rank=0), share=0.3)
def test_a_mask_of_no_axes_acts_on_every_logit_alike_in_flash_attention(subject, call):
    subject.agrees(call)


@requirement(
    spec.FLASH_04,
    call=flash_calls(masks=["bool", "additive", "-inf"], mask_rank=4, leading_dims=[(9,)], head_dims=[32, 40, 64]),
    share=0.1,
)
def test_every_sequence_of_a_batch_has_its_own_mask_in_flash_attention(subject, call):
    subject.agrees(call, where=seeing(call))


@requirement(
    spec.FLASH_04,
    call=flash_calls(
        masks=["bool", "additive", "-inf"],
        shapes=square_prompts,
        mask_rank=4,
        amplitude=(1.0,),
        **{**COMMON_HEADS, "leading_dims": [(2,)]},
    ),
    share=0.1,
)
def test_every_prompt_of_a_batch_has_its_own_mask_in_flash_attention(subject, call):
    subject.agrees(call, where=seeing(call))


@requirement(spec.FLASH_04, call=BATCHES_OF_PROMPTS, share=0.6)
def test_every_prompt_of_a_batch_has_its_own_padding_in_flash_attention(subject, call):
    subject.agrees(call, where=seeing(call))


@requirement(spec.FLASH_04, routed=routed_flash(masks=ENCODINGS), share=0.4)
def test_a_full_mask_hides_exactly_its_own_keys_in_flash_attention(subject, routed):
    call, expected = routed
    subject.expects(call, expected)


@requirement(
    spec.FLASH_04,
    call=tiled_calls(masks=["additive", "bool", "-inf"], shapes=blocks_of_queries, leading_dims=FEW_ROWS),
    share=0.8,
)
def test_a_mask_goes_on_in_every_block_and_tile(subject, call):
    subject.agrees(call, where=seeing(call))


@requirement(
    spec.FLASH_04,
    call=flash_calls(
        masks=[*ENCODINGS, "additive"],
        ratios=[12, 16, 24],
        head_dims=[64, 32, 128],
        leading_dims=[(2,)],
        mask_rank=4,
        most_heads=2,
    ),
    share=0.4,
)
def test_many_query_heads_of_a_key_head_have_their_own_masks_in_flash_attention(subject, call):
    subject.agrees(call, where=seeing(call))


@requirement(spec.FLASH_05, routed=routed_flash(masks=["causal"]), share=0.5)
def test_causal_rows_of_flash_attention_reach_their_last_visible_key_and_no_further(subject, routed):
    call, expected = routed
    subject.expects(call, expected, where=seeing(call))


@requirement(spec.FLASH_05, routed=routed_flash(masks=["causal"], shapes=short_chunks, **COMMON_HEADS), share=0.26)
def test_chunks_of_common_heads_after_a_long_context_are_causal_in_flash_attention(subject, routed):
    call, expected = routed
    subject.expects(call, expected)


@requirement(spec.FLASH_05, routed=routed_flash(masks=["causal"], shapes=a_draft_over_many, **COMMON_HEADS), share=0.1)
def test_drafts_of_common_heads_after_a_long_context_are_causal_in_flash_attention(subject, routed):
    call, expected = routed
    subject.expects(call, expected)


@requirement(spec.FLASH_05, routed=routed_flash(masks=["causal"], shapes=square_prompts, **COMMON_HEADS), share=0.15)
def test_causal_rows_of_common_heads_of_flash_attention_see_themselves_and_no_further(subject, routed):
    call, expected = routed
    subject.expects(call, expected)


@requirement(
    spec.FLASH_05,
    routed=routed_flash(masks=["causal"], shapes=chunks_of_whole_tiles, ratios=[1, 2, 3], leading_dims=FEW_ROWS),
    share=0.2,
)
def test_causal_rows_are_aligned_where_tiles_are_whole_in_flash_attention(subject, routed):
    call, expected = routed
    subject.expects(call, expected, where=seeing(call))


@requirement(
    spec.FLASH_05, routed=routed_tiles(masks=["causal"], shapes=causal_blocks, leading_dims=FEW_ROWS), share=0.8
)
def test_the_causal_walk_takes_no_tile_too_many_and_none_too_few(subject, routed):
    call, expected = routed
    subject.expects(call, expected, where=seeing(call))


@requirement(spec.FLASH_05, call=tiled_calls(masks=["causal"], shapes=causal_blocks, leading_dims=FEW_ROWS), share=0.9)
def test_causal_flash_attention_agrees_wherever_the_diagonal_lies(subject, call):
    subject.agrees(call, where=seeing(call))


@requirement(
    spec.FLASH_05,
    routed=routed_flash(masks=["causal"], shapes=large_causal_blocks, **{**ONE_HEAD, "head_dims": [32, 40, 64, 128]}),
    share=0.3,
)
def test_the_causal_walk_takes_the_right_large_tiles(subject, routed):
    call, expected = routed
    subject.expects(call, expected, where=seeing(call))


@requirement(
    spec.FLASH_05,
    call=flash_calls(
        masks=["causal"], ratios=[12, 16, 24], head_dims=[64, 32, 128], leading_dims=[(), (2,)], most_heads=2
    ),
    share=0.2,
)
def test_many_query_heads_of_a_key_head_are_causal_in_flash_attention(subject, call):
    subject.agrees(call, where=seeing(call))


@requirement(
    spec.FLASH_06,
    call=flash_calls(masks=["causal"], amplitude=(1.0, 4.0)),
    encoding=among(ENCODINGS),
    share=0.5,
)
def test_every_encoding_of_the_causal_mask_agrees_in_flash_attention(subject, call, encoding):
    kind = claimed(subject, "masks", encoding, ENCODINGS)
    subject.agrees(causal_as_array(call, kind), where=seeing(call))


@requirement(
    spec.FLASH_06,
    call=flash_calls(masks=["causal"], shapes=large_causal_blocks, amplitude=(1.0,), **ONE_HEAD),
    encoding=among(ENCODINGS),
    share=0.08,
)
def test_the_causal_mask_of_large_blocks_may_be_an_array_in_flash_attention(subject, call, encoding):
    kind = claimed(subject, "masks", encoding, ENCODINGS)
    subject.agrees(causal_as_array(call, kind), where=seeing(call))


@requirement(spec.FLASH_06, routed=routed_flash(masks=ENCODINGS, shapes=tokens_and_prompts, **COMMON_HEADS), share=0.35)
def test_masks_hide_the_most_tempting_key_from_common_heads_in_flash_attention(subject, routed):
    call, expected = routed
    subject.expects(call, expected)


@requirement(spec.FLASH_06, routed=routed_flash(masks=["bool"]), encoding=among(ENCODINGS), share=0.4)
def test_every_encoding_hides_the_most_tempting_key_from_flash_attention(subject, routed, encoding):
    call, expected = routed
    kind = claimed(subject, "masks", encoding, ENCODINGS)
    mask = encoded(call.arguments["mask"], kind, call.features["dtypes"])
    subject.expects(call.having(mask=mask).featuring(masks=kind), expected)


@requirement(spec.FLASH_07, call=emptied_rows(masks=ENCODINGS, leading_dims=FEW_ROWS), share=0.6)
def test_rows_of_flash_attention_that_see_no_key_are_zeros(subject, call):
    subject.expects(call, np.zeros(call.arguments["query"].shape), where=~seeing(call))


@requirement(
    spec.FLASH_07,
    call=emptied_rows(masks=["lowest"], dtypes=HALF, shapes=more_than_a_tile, leading_dims=[()]),
    share=0.3,
)
def test_rows_that_see_no_key_of_several_tiles_are_zeros_in_half_precision(subject, call):
    subject.expects(call, np.zeros(call.arguments["query"].shape), where=~seeing(call))


@requirement(
    spec.FLASH_07,
    call=tiled_calls(masks=["causal"], shapes=longer_than_keys, leading_dims=FEW_ROWS, more_queries=[True]),
    share=0.3,
)
def test_causal_rows_of_flash_attention_before_the_first_key_are_zeros(subject, call):
    subject.expects(call, np.zeros(call.arguments["query"].shape), where=~seeing(call))


@requirement(
    spec.FLASH_07,
    call=tiled_calls(masks=["causal"], shapes=tiles_past_the_keys, leading_dims=[(1,), ()], more_queries=[True]),
    share=0.2,
)
def test_causal_rows_of_flash_attention_before_the_first_of_a_tile_of_keys_are_zeros(subject, call):
    subject.expects(call, np.zeros(call.arguments["query"].shape), where=~seeing(call))


@requirement(
    spec.FLASH_07, call=tiled_calls(masks=ENCODINGS, ratios=[2, 4, 1], leading_dims=FEW_ROWS), seed=seeds, share=0.2
)
def test_heads_of_flash_attention_that_see_no_key_are_zeros(subject, call, seed):
    subject.agrees(with_hidden_heads(call, seed))


@requirement(spec.FLASH_08, call=emptied_rows(masks=ENCODINGS, leading_dims=FEW_ROWS), share=0.5)
def test_rows_of_flash_attention_that_see_no_key_leave_the_others_alone(subject, call):
    subject.agrees(call, where=seeing(call))


@requirement(spec.FLASH_08, call=flash_calls(masks=ENCODINGS), share=0.5)
def test_what_lies_at_hidden_positions_changes_nothing_in_flash_attention(subject, call):
    keys = call.arguments["key"].shape[-2]
    hidden = np.arange(keys) < keys // 2
    mask = encoded(~hidden[None, :], call.features["masks"], call.features["dtypes"])
    subject.agrees(louder(call, hidden, subject.precision).having(mask=mask))


@requirement(spec.FLASH_08, call=tiled_calls(masks=["causal"], leading_dims=FEW_ROWS), share=0.3)
def test_the_future_changes_nothing_in_flash_attention(subject, call):
    length, keys = call.arguments["query"].shape[-2], call.arguments["key"].shape[-2]
    earlier = np.arange(length)[:, None] < length - 1
    subject.agrees(louder(call, np.arange(keys) == keys - 1, subject.precision), where=seeing(call) & earlier)


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


@requirement(spec.FLASH_11, call=flash_calls(masks=["none"]), axis=among(["S", "L"]), share=0.2)
def test_no_keys_give_zeros_and_no_queries_give_nothing_in_flash_attention(subject, call, axis):
    names = ("key", "value") if axis == "S" and True in subject.envelope["more_queries"] else ("query",)
    empty = call.having(**{name: call.arguments[name][..., :0, :] for name in names})
    subject.expects(empty, np.zeros(empty.arguments["query"].shape))


@requirement(spec.FLASH_11, call=flash_calls(masks=["none"], leading_dims=[(2,), (2, 3)]), share=0.2)
def test_an_empty_batch_gives_an_empty_result_of_flash_attention(subject, call):
    empty = call.having(**{name: call.arguments[name][:0] for name in ("query", "key", "value")})
    subject.expects(empty, np.zeros(empty.arguments["query"].shape))


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


@requirement(spec.FLASH_12, call=flash_calls(leading_dims=[(2,), (2, 3), (3,)]), share=0.4)
def test_a_batch_of_flash_attention_is_the_stack_of_its_rows(subject, call):
    subject.agrees(call, where=seeing(call))


@requirement(
    spec.FLASH_12,
    routed=routed_flash(masks=["none"], shapes=one_over_many, **{**COMMON_HEADS, "leading_dims": [(2,), (3,)]}),
    share=0.03,
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
    share=0.03,
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


@requirement(spec.FLASH_13, call=in_views(BATCHES_OF_PROMPTS, "mask", views=[*MOSTLY_SLICES, "room"]), share=0.2)
def test_flash_attention_reads_masks_of_batches_through_their_strides(subject, call):
    subject.agrees(call, where=seeing(call))


@requirement(spec.FLASH_13, call=in_views(flash_calls()), share=0.8)
def test_flash_attention_reads_a_strided_argument_like_its_copy(subject, call):
    subject.agrees(call, where=seeing(call))


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
    share=0.3,
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


@requirement(spec.FLASH_16, call=flash_calls(masks=["bool", "additive", "-inf"], mask_rank=2), seed=seeds, share=0.15)
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


@requirement(spec.FLASH_18, call=tiled_calls(shapes=across_tiles), share=2.1)
def test_lengths_beside_multiples_of_tiles_are_right(subject, call):
    subject.agrees(call, where=seeing(call))


@requirement(
    spec.FLASH_18,
    call=flash_calls(shapes=beside_odd_tiles, amplitude=(1.0,), masks=["none", "causal"], **ONE_HEAD),
    share=0.6,
)
def test_lengths_beside_tiles_that_are_no_powers_of_two_are_right(subject, call):
    subject.agrees(call, where=seeing(call))


@requirement(
    spec.FLASH_18,
    call=flash_calls(shapes=one_short_of_tiles, amplitude=(1.0,), masks=["none", "causal"], **ONE_HEAD),
    share=0.3,
)
def test_lengths_one_short_of_tiles_are_right(subject, call):
    subject.agrees(call, where=seeing(call))


@requirement(
    spec.FLASH_18,
    call=flash_calls(shapes=large_causal_blocks, amplitude=(1.0,), masks=["none", "causal"], **ONE_HEAD),
    share=0.1,
)
def test_several_large_blocks_and_tiles_are_right(subject, call):
    subject.agrees(call, where=seeing(call))


@requirement(spec.FLASH_18, routed=routed_flash(masks=["none"], shapes=one_over_many, **COMMON_HEADS), share=0.1)
def test_a_token_of_common_heads_after_a_long_context_finds_its_key_in_flash_attention(subject, routed):
    call, expected = routed
    subject.expects(call, expected)


@requirement(
    spec.FLASH_18,
    routed=routed_flash(
        masks=["none"], shapes=many_tiles, of_tiles=True, **{**ONE_HEAD, "ratios": [8, 4, 1], "leading_dims": [()]}
    ),
    share=0.12,
    shrinks=False,
)
def test_keys_at_the_edges_of_tiles_of_any_size_are_found_in_flash_attention(subject, routed):
    call, expected = routed
    subject.expects(call, expected)


@requirement(
    spec.FLASH_18,
    call=flash_calls(
        shapes=whole_tiles,
        masks=["none", "causal", "bool", "additive"],
        amplitude=(1.0,),
        most_heads=1,
        ratios=[1, 2],
        leading_dims=FEW_ROWS,
    ),
    share=0.6,
)
def test_lengths_of_whole_tiles_are_right_in_flash_attention(subject, call):
    subject.agrees(call, where=seeing(call))


@requirement(
    spec.FLASH_18,
    call=flash_calls(
        shapes=beside_splits,
        amplitude=(1.0, 2.0),
        masks=["none", "causal", "bool"],
        **{**ONE_HEAD, "leading_dims": FEW_ROWS},
    ),
    share=0.25,
)
def test_numbers_of_keys_from_which_kernels_split_them_are_right(subject, call):
    subject.agrees(call)


@requirement(
    spec.FLASH_18,
    call=flash_calls(
        shapes=past_splits,
        amplitude=(1.0,),
        masks=["none", "causal"],
        **{**ONE_HEAD, "leading_dims": [()], "head_dims": [128, 256]},
    ),
    share=0.05,
)
def test_many_keys_of_large_heads_are_right(subject, call):
    subject.agrees(call)


@requirement(
    spec.FLASH_18,
    call=flash_calls(
        shapes=many_over_few, amplitude=(1.0,), masks=["none", "bool", "additive"], more_queries=[True], **ONE_HEAD
    ),
    share=0.05,
)
def test_a_thousand_queries_over_a_few_keys_are_right(subject, call):
    subject.agrees(call, where=seeing(call))


@requirement(spec.FLASH_18, routed=routed_tiles(masks=["none"], shapes=across_tiles, leading_dims=FEW_ROWS), share=0.5)
def test_the_first_and_last_keys_are_found_beside_multiples_of_tiles(subject, routed):
    call, expected = routed
    subject.expects(call, expected)


@requirement(
    spec.FLASH_18,
    routed=routed_flash(
        masks=["none"], shapes=one_over_many, head_dims=[256, 96, 192, 80], ratios=[1, 2, 4, 8], leading_dims=[(), (1,)]
    ),
    share=0.3,
)
def test_a_token_of_heads_of_other_dims_after_a_long_context_finds_its_key_in_flash_attention(subject, routed):
    call, expected = routed
    subject.expects(call, expected)


@requirement(spec.FLASH_19, routed=full_dim_calls(masks=["none"]), share=0.8)
def test_every_feature_of_a_head_can_decide(subject, routed):
    call, expected = routed
    subject.expects(call, expected)


@requirement(spec.FLASH_19, call=flash_calls(masks=["none"], head_dims=[40, 72, 80, 96, 112, 192, 256]), share=0.4)
def test_every_feature_of_a_head_counts(subject, call):
    subject.agrees(call)


@requirement(spec.FLASH_20, call=walked_calls(masks=["none"], leading_dims=FEW_ROWS), share=1.4)
def test_the_largest_logit_may_come_in_any_tile(subject, call):
    subject.agrees(call)


@requirement(spec.FLASH_20, call=walked_calls(masks=["causal", "bool", "additive"], leading_dims=FEW_ROWS), share=0.3)
def test_the_largest_logit_may_come_in_any_tile_under_a_mask(subject, call):
    subject.agrees(call, where=seeing(call))


@requirement(spec.FLASH_21, call=hidden_tiles(masks=ENCODINGS, leading_dims=FEW_ROWS), share=0.6)
def test_whole_tiles_of_hidden_keys_change_nothing(subject, call):
    subject.agrees(call)


@requirement(
    spec.FLASH_21,
    call=flash_calls(masks=ENCODINGS, shapes=padded, amplitude=(1.0,), leading_dims=[(), (2,)], ratios=[1, 2]),
    hidden=among((0.5, 0.9)),
    share=0.3,
)
def test_tiles_of_hidden_keys_at_the_beginning_change_nothing(subject, call, hidden):
    subject.agrees(without_beginning(call, hidden))


@requirement(
    spec.FLASH_21,
    call=flash_calls(masks=ENCODINGS, shapes=padded, amplitude=(1.0,), leading_dims=[(), (2,)], ratios=[2, 1]),
    head=among((0, -1)),
    late=among((True, False)),
    share=0.3,
)
def test_tiles_that_one_head_does_not_see_are_seen_by_the_others(subject, call, head, late):
    call = hidden_from_a_head(call, head, late)
    subject.agrees(call, where=seeing(call))


@requirement(
    spec.FLASH_21,
    call=flash_calls(masks=ENCODINGS, shapes=over_splits, amplitude=(1.0,), leading_dims=[(), (2,)], ratios=[1, 2]),
    hidden=among(HIDDEN_STRETCHES),
    share=0.1,
)
def test_parts_of_many_keys_that_a_mask_hides_change_nothing_in_flash_attention(subject, call, hidden):
    call = without_a_stretch(call, *hidden)
    subject.agrees(call, where=seeing(call))


@requirement(
    spec.FLASH_22, call=tiled_calls(masks=["causal"], leading_dims=FEW_ROWS), drop=among(range(1, 41)), share=0.4
)
def test_the_last_queries_alone_attend_as_in_the_whole_of_flash_attention(subject, call, drop):
    length = call.arguments["query"].shape[-2]
    drop = min(drop, length - 1) if drop % 3 else length - 1
    whole = subject.agrees(call, where=seeing(call))
    part = subject.agrees(call.having(query=call.arguments["query"][..., drop:, :]), where=seeing(call)[..., drop:, :])
    budget = subject.answer(call).budget[..., drop:, :]
    apart = np.abs(f64(whole)[..., drop:, :] - f64(part)) > 2 * budget
    if (apart & seeing(call)[..., drop:, :]).any():
        raise Nonconformance("the last queries alone give other rows than the whole", call)


@requirement(spec.FLASH_23, call=tiled_calls(shapes=across_tiles, leading_dims=FEW_ROWS), share=0.5)
def test_every_row_of_every_block_is_written(subject, call):
    _is_written(subject, call)


@requirement(spec.FLASH_23, call=tiled_calls(masks=["causal"], shapes=causal_blocks, leading_dims=FEW_ROWS), share=1.1)
def test_causal_blocks_that_see_no_key_are_written(subject, call):
    _is_written(subject, call)


@requirement(
    spec.FLASH_24, routed=routed_flash(masks=["bool", "-inf"], shapes=many_keys, **ONE_HEAD), share=0.12, shrinks=False
)
def test_tens_of_thousands_of_keys_are_told_apart(subject, routed):
    call, expected = routed
    subject.expects(call, expected)


@requirement(
    spec.FLASH_24,
    routed=routed_flash(
        masks=["bool", "-inf"],
        shapes=blocks_over_many_keys,
        **{**ONE_HEAD, "ratios": [1], "head_dims": [32], "leading_dims": [()]},
    ),
    share=0.03,
    shrinks=False,
)
def test_blocks_of_queries_tell_tens_of_thousands_of_keys_apart(subject, routed):
    call, expected = routed
    subject.expects(call, expected)


@requirement(
    spec.FLASH_24, routed=routed_flash(masks=["causal"], shapes=many_keys, **ONE_HEAD), share=0.05, shrinks=False
)
def test_causal_rows_end_where_they_should_among_tens_of_thousands_of_keys(subject, routed):
    call, expected = routed
    subject.expects(call, expected)


def _is_written(subject, call):
    """Rows that see a key are right, and the others hold numbers: what the buffer held before is NaN."""
    written = np.isfinite(f64(subject.agrees(call, where=seeing(call))))
    if not written.all():
        row = tuple(int(i) for i in np.argwhere(~written)[0][:-1])
        raise Nonconformance(f"row {row} is not written: it holds no number", call)
