"""Are the tiles of an implementation of flash attention right: at their ends, and in what goes from one to the next?"""

import numpy as np

from inferspec.conformance.inputs.attention import ONE_HEAD
from inferspec.conformance.inputs.attention_lengths import (
    beside_odd_tiles,
    blocks_over_contexts,
    large_chunks_over_many,
    many_keys,
    many_over_few,
    many_tiles,
    one_over_many,
    one_short_of_tiles,
    over_splits,
    padded,
    queries_past_16_bits,
    thousands_of_keys,
    whole_tiles,
)
from inferspec.conformance.inputs.attention_masks import (
    ENCODINGS,
    HIDDEN_STRETCHES,
    hidden_from_a_head,
    seeing,
    without_a_stretch,
    without_beginning,
)
from inferspec.conformance.inputs.flash_attention import (
    COMMON_HEADS,
    FEW_ROWS,
    across_tiles,
    beside_splits,
    blocks_over_many_keys,
    causal_blocks,
    flash_calls,
    full_dim_calls,
    hidden_tiles,
    large_causal_blocks,
    past_splits,
    routed_flash,
    routed_tiles,
    tiled_calls,
    walked_calls,
)
from inferspec.conformance.judging.trial import Nonconformance
from inferspec.conformance.strategies import among
from inferspec.conformance.suite import requirement
from inferspec.spec import flash_attention as spec
from inferspec.spec.numerics import f64


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


@requirement(
    spec.FLASH_18,
    call=flash_calls(
        shapes=blocks_over_contexts,
        masks=["causal", "bool", "none", "additive"],
        amplitude=(1.0,),
        **{**ONE_HEAD, "head_dims": [32], "ratios": [1]},
    ),
    share=0.15,
)
def test_chunks_and_drafts_after_long_contexts_are_right(subject, call):
    subject.agrees(call, where=seeing(call))


@requirement(
    spec.FLASH_18,
    call=flash_calls(
        shapes=large_chunks_over_many,
        masks=["causal", "none"],
        leading_dims=[(), (1,)],
        head_dims=[32],
        ratios=[1],
        amplitude=(1.0,),
        most_heads=1,
    ),
    share=0.05,
)
def test_large_chunks_after_long_contexts_are_right(subject, call):
    subject.agrees(call, where=seeing(call))


@requirement(
    spec.FLASH_18,
    call=flash_calls.strict()(
        shapes=queries_past_16_bits,
        masks=["none"],
        leading_dims=[(), (1,)],
        head_dims=[32],
        ratios=[1],
        more_queries=[True],
        most_heads=1,
        amplitude=(1.0,),
    ),
    share=0.02,
    shrinks=False,
)
def test_more_queries_than_16_bits_count_are_right_in_flash_attention(subject, call):
    subject.agrees(call)


@requirement(
    spec.FLASH_18,
    call=flash_calls(
        shapes=thousands_of_keys, amplitude=(1.0,), **{**ONE_HEAD, "head_dims": [32], "leading_dims": [(2,)]}
    ),
    share=0.05,
)
def test_thousands_of_keys_of_each_head_and_sequence_are_right(subject, call):
    subject.agrees(call, where=seeing(call))


@requirement(spec.FLASH_18, routed=routed_flash(masks=["none"], shapes=one_over_many, **COMMON_HEADS), share=0.2)
def test_a_token_of_common_heads_after_a_long_context_finds_its_key_in_flash_attention(subject, routed):
    call, expected = routed
    subject.expects(call, expected)


@requirement(
    spec.FLASH_18,
    routed=routed_flash(
        masks=["none"],
        shapes=many_tiles,
        of_tiles=True,
        **{**ONE_HEAD, "ratios": [8, 4, 1], "leading_dims": [(), (1,)]},
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
    share=0.35,
)
def test_numbers_of_keys_from_which_kernels_split_them_are_right(subject, call):
    subject.agrees(call)


@requirement(
    spec.FLASH_18,
    call=flash_calls(
        shapes=past_splits,
        amplitude=(1.0,),
        masks=["none", "causal"],
        **{**ONE_HEAD, "leading_dims": [(), (1,)], "head_dims": [128, 256]},
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
    call=flash_calls(masks=ENCODINGS, shapes=padded, amplitude=(1.0,), leading_dims=[(), (1,)], head_counts=(3,)),
    head=among((-1, 0)),
    late=among((True, False)),
    share=0.1,
)
def test_tiles_that_one_head_alone_sees_are_seen_by_it(subject, call, head, late):
    call = hidden_from_a_head(call, head, late, seen=True)
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


@requirement(spec.FLASH_23, call=tiled_calls(shapes=across_tiles, leading_dims=FEW_ROWS), share=0.75)
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
        **{**ONE_HEAD, "ratios": [1], "head_dims": [32], "leading_dims": [(), (1,)]},
    ),
    share=0.04,
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
