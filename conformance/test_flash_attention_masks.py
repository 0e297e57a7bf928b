"""Does an implementation of flash attention hide what a mask says, and nothing else?"""

import numpy as np

from inferspec.conformance.inputs.attention import (
    ONE_HEAD,
    full_masks,
    louder,
)
from inferspec.conformance.inputs.attention_lengths import (
    a_draft_over_many,
    chunks_of_whole_tiles,
    few_over_many,
    lengths,
    part_blocks_over_tiles,
    short_prompts,
    square_prompts,
    tiles_past_the_keys,
    tokens_and_prompts,
    whole_prompts,
)
from inferspec.conformance.inputs.attention_masks import (
    ARRAYS,
    ENCODINGS,
    causal_as_array,
    encoded,
    seeing,
    with_hidden_heads,
)
from inferspec.conformance.inputs.flash_attention import (
    BATCHES_OF_PROMPTS,
    COMMON_HEADS,
    FEW_ROWS,
    FLASH,
    blocks_of_queries,
    causal_blocks,
    emptied_rows,
    flash_calls,
    large_causal_blocks,
    longer_than_keys,
    more_than_a_tile,
    routed_flash,
    routed_tiles,
    short_chunks,
    tiled_calls,
)
from inferspec.conformance.properties.common import (
    claimed,
)
from inferspec.conformance.strategies import HALF, among, any_of, seeds
from inferspec.conformance.suite import requirement
from inferspec.spec import flash_attention as spec


@requirement(
    spec.FLASH_04,
    call=flash_calls(masks=["additive"], dtypes=["float32"], leading_dims=[(), (2,)], amplitude=(1.0,)),
    share=0.05,
)
def test_a_number_that_is_not_the_lowest_hides_nothing(subject, call):
    # The lowest of float16 is one like any other.
    lowered = (call.arguments["mask"] - 65504).astype(np.float32)
    subject.agrees(call.having(mask=lowered))


@requirement(
    spec.FLASH_04,
    call=flash_calls(
        shapes=whole_prompts,
        masks=ARRAYS,
        mask_rank=4,
        leading_dims=[(2,)],
        ratios=[1],
        head_dims=[32],
        amplitude=(1.0,),
        most_heads=1,
    ),
    share=0.05,
)
def test_every_long_prompt_of_a_batch_has_its_own_mask(subject, call):
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


@requirement(
    spec.FLASH_04,
    call=full_masks(
        operation=FLASH, masks=["bool", "-inf", "lowest"], leading_dims=[(2,)], head_dims=[32, 40], ratios=[1, 2]
    ),
    share=0.1,
)
def test_every_head_of_every_sequence_has_its_own_mask_over_a_long_context_in_flash_attention(subject, call):
    subject.agrees(call)


@requirement(spec.FLASH_04, call=BATCHES_OF_PROMPTS, share=0.65)
def test_every_prompt_of_a_batch_has_its_own_padding_in_flash_attention(subject, call):
    subject.agrees(call, where=seeing(call))


@requirement(spec.FLASH_04, routed=routed_flash(masks=ENCODINGS), share=0.4)
def test_a_full_mask_hides_exactly_its_own_keys_in_flash_attention(subject, routed):
    call, expected = routed
    subject.expects(call, expected)


@requirement(
    spec.FLASH_04,
    call=tiled_calls(masks=["additive", "bool", "-inf"], shapes=blocks_of_queries, leading_dims=FEW_ROWS),
    share=0.85,
)
def test_a_mask_goes_on_in_every_block_and_tile(subject, call):
    subject.agrees(call, where=seeing(call))


@requirement(
    spec.FLASH_04,
    call=flash_calls(
        masks=[*ENCODINGS, "additive"],
        shapes=any_of(lengths, short_prompts),
        ratios=[12, 16, 24, 8],
        head_dims=[64, 32, 128],
        leading_dims=[(2,)],
        mask_rank=4,
        most_heads=2,
    ),
    share=0.4,
)
def test_many_query_heads_of_a_key_head_have_their_own_masks_in_flash_attention(subject, call):
    subject.agrees(call, where=seeing(call))


@requirement(
    spec.FLASH_04,
    call=flash_calls(
        masks=[*ENCODINGS, "additive"],
        ratios=[8, 12, 16],
        head_dims=[32, 64, 40],
        leading_dims=[(2,), ()],
        mask_rank=3,
        most_heads=2,
    ),
    share=0.3,
)
def test_many_query_heads_of_a_key_head_have_masks_of_fewer_axes_in_flash_attention(subject, call):
    subject.agrees(call, where=seeing(call))


@requirement(spec.FLASH_05, routed=routed_flash(masks=["causal"]), share=0.5)
def test_causal_rows_of_flash_attention_reach_their_last_visible_key_and_no_further(subject, routed):
    call, expected = routed
    subject.expects(call, expected, where=seeing(call))


@requirement(spec.FLASH_05, routed=routed_flash(masks=["causal"], shapes=short_chunks, **COMMON_HEADS), share=0.3)
def test_chunks_of_common_heads_after_a_long_context_are_causal_in_flash_attention(subject, routed):
    call, expected = routed
    subject.expects(call, expected)


@requirement(spec.FLASH_05, routed=routed_flash(masks=["causal"], shapes=a_draft_over_many, **COMMON_HEADS), share=0.15)
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
    share=0.16,
)
def test_the_causal_walk_takes_the_right_large_tiles(subject, routed):
    call, expected = routed
    subject.expects(call, expected, where=seeing(call))


@requirement(
    spec.FLASH_05,
    call=flash_calls(
        masks=["causal"],
        shapes=any_of(lengths, short_prompts),
        ratios=[8, 12, 16, 24],
        head_dims=[64, 32, 128],
        leading_dims=[(), (2,)],
        most_heads=2,
    ),
    share=0.3,
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
    call=tiled_calls(masks=["causal"], shapes=part_blocks_over_tiles, leading_dims=FEW_ROWS),
    encoding=among(ENCODINGS),
    share=0.05,
)
def test_the_causal_mask_of_the_last_few_queries_may_be_an_array_in_flash_attention(subject, call, encoding):
    kind = claimed(subject, "masks", encoding, ENCODINGS)
    subject.agrees(causal_as_array(call, kind), where=seeing(call))


@requirement(
    spec.FLASH_06,
    call=flash_calls(masks=["causal"], shapes=large_causal_blocks, amplitude=(1.0,), **ONE_HEAD),
    encoding=among(ENCODINGS),
    share=0.15,
)
def test_the_causal_mask_of_large_blocks_may_be_an_array_in_flash_attention(subject, call, encoding):
    kind = claimed(subject, "masks", encoding, ENCODINGS)
    subject.agrees(causal_as_array(call, kind), where=seeing(call))


@requirement(spec.FLASH_06, routed=routed_flash(masks=ENCODINGS, shapes=tokens_and_prompts, **COMMON_HEADS), share=0.6)
def test_masks_hide_the_most_tempting_key_from_common_heads_in_flash_attention(subject, routed):
    call, expected = routed
    subject.expects(call, expected)


@requirement(spec.FLASH_06, routed=routed_flash(masks=["bool"]), encoding=among(ENCODINGS), share=0.4)
def test_every_encoding_hides_the_most_tempting_key_from_flash_attention(subject, routed, encoding):
    call, expected = routed
    kind = claimed(subject, "masks", encoding, ENCODINGS)
    mask = encoded(call.arguments["mask"], kind, call.features["dtypes"])
    subject.expects(call.having(mask=mask).featuring(masks=kind), expected)


@requirement(spec.FLASH_07, call=flash_calls(masks=ENCODINGS, mask_rank=0), share=0.1)
def test_all_rows_are_zeros_under_a_mask_of_no_axes_that_hides_every_key(subject, call):
    hidden = encoded(np.zeros((), bool), call.features["masks"], call.features["dtypes"])
    subject.expects(call.having(mask=hidden), np.zeros(call.arguments["query"].shape))


@requirement(spec.FLASH_07, call=emptied_rows(masks=ENCODINGS, leading_dims=FEW_ROWS), share=0.6)
def test_rows_of_flash_attention_that_see_no_key_are_zeros(subject, call):
    subject.expects(call, np.zeros(call.arguments["query"].shape), where=~seeing(call))


@requirement(
    spec.FLASH_07,
    call=emptied_rows(masks=["lowest"], dtypes=HALF, shapes=more_than_a_tile, leading_dims=[(), (1,)]),
    share=0.3,
)
def test_rows_that_see_no_key_of_several_tiles_are_zeros_in_half_precision(subject, call):
    subject.expects(call, np.zeros(call.arguments["query"].shape), where=~seeing(call))


@requirement(
    spec.FLASH_07, call=emptied_rows(masks=ENCODINGS, shapes=few_over_many, leading_dims=[(), (1,)]), share=0.1
)
def test_rows_that_see_no_key_of_a_long_context_are_zeros(subject, call):
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
