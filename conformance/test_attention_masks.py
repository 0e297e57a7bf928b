"""Does an implementation of attention hide what a mask says, and nothing else? And what the causal mask is."""

import numpy as np

from inferspec.conformance.inputs.attention import (
    BATCHES_OF_PROMPTS,
    COMMON,
    attention_calls,
    full_masks,
    louder,
    mask_calls,
    routed_attention,
)
from inferspec.conformance.inputs.attention_lengths import (
    a_draft_over_many,
    chunks_of_whole_tiles,
    chunks_over_contexts,
    few_over_many,
    long_prompts,
    over_splits,
    padded,
    part_blocks_over_tiles,
    prompts,
    square_prompts,
    tiles_past_the_keys,
    tokens_and_prompts,
    whole_prompts,
)
from inferspec.conformance.inputs.attention_masks import (
    ARRAYS,
    ENCODINGS,
    HIDDEN_STRETCHES,
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
from inferspec.conformance.strategies import among, seeds
from inferspec.conformance.suite import requirement
from inferspec.spec import attention as spec
from inferspec.spec.numerics import f64, largest


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


@requirement(spec.ATTN_07, call=attention_calls(masks=ENCODINGS, mask_rank=0), share=0.1)
def test_all_rows_are_zeros_under_a_mask_of_no_axes_that_hides_every_key(subject, call):
    hidden = encoded(np.zeros((), bool), call.features["masks"], call.features["dtypes"])
    subject.expects(call.having(mask=hidden), np.zeros(call.arguments["query"].shape))


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
