"""Does an implementation of attention keep the contract whatever the numbers of queries and keys?"""

from typing import Any

import numpy as np

from inferspec.conformance.inputs.attention import COMMON, ONE_HEAD, attention_calls, routed_attention
from inferspec.conformance.inputs.attention_lengths import (
    beside_odd_tiles,
    beside_tiles,
    blocks_over_contexts,
    few_over_many,
    large_chunks_over_many,
    many_keys,
    many_over_few,
    many_tiles,
    one_over_many,
    one_short_of_tiles,
    queries_past_16_bits,
    thousands_of_keys,
    whole_tiles,
)
from inferspec.conformance.inputs.attention_masks import seeing
from inferspec.conformance.judging.trial import Nonconformance
from inferspec.conformance.strategies import among
from inferspec.conformance.suite import requirement
from inferspec.spec import attention as spec
from inferspec.spec.numerics import f64

OF_ONE_KEY_HEAD: dict[str, Any] = {
    "masks": ["none", "causal"],
    "leading_dims": [(), (1,)],
    "ratios": [1, 2, 3],
    "head_dims": [4, 2, 8, 64],
    "amplitude": (1.0,),
    "most_heads": 1,
}


@requirement(
    spec.ATTN_18,
    call=attention_calls.strict()(
        shapes=queries_past_16_bits,
        masks=["none"],
        leading_dims=[(), (1,)],
        head_dims=[4, 2, 8],
        ratios=[1],
        more_queries=[True],
        most_heads=1,
        amplitude=(1.0,),
    ),
    share=0.05,
    shrinks=False,
)
def test_more_queries_than_16_bits_count_are_right(subject, call):
    subject.agrees(call)


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
        shapes=blocks_over_contexts,
        masks=["causal", "bool", "none", "additive"],
        leading_dims=[(), (1,)],
        head_dims=[64, 4, 8],
        ratios=[1, 2],
        amplitude=(1.0,),
        most_heads=1,
    ),
    share=0.15,
)
def test_chunks_and_drafts_after_long_contexts_are_right(subject, call):
    subject.agrees(call, where=seeing(call))


@requirement(
    spec.ATTN_18,
    call=attention_calls(
        shapes=large_chunks_over_many,
        masks=["causal", "none"],
        leading_dims=[(), (1,)],
        head_dims=[64, 4, 8],
        ratios=[1, 2],
        amplitude=(1.0,),
        most_heads=1,
    ),
    share=0.05,
)
def test_large_chunks_after_long_contexts_are_right(subject, call):
    subject.agrees(call, where=seeing(call))


@requirement(
    spec.ATTN_18,
    call=attention_calls(
        shapes=thousands_of_keys,
        leading_dims=[(2,)],
        head_dims=[8, 4, 64],
        ratios=[1, 2],
        amplitude=(1.0,),
        most_heads=2,
    ),
    share=0.05,
)
def test_thousands_of_keys_of_each_head_and_sequence_are_right(subject, call):
    subject.agrees(call, where=seeing(call))


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
    share=0.25,
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
        leading_dims=[(), (1,)],
    ),
    share=0.35,
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


@requirement(
    spec.ATTN_22,
    routed=routed_attention(masks=["bool", "-inf", "lowest"], shapes=many_keys, **ONE_HEAD),
    share=0.06,
    shrinks=False,
)
def test_tens_of_thousands_of_keys_are_told_apart(subject, routed):
    call, expected = routed
    subject.expects(call, expected)


@requirement(
    spec.ATTN_22, routed=routed_attention(masks=["causal"], shapes=many_keys, **ONE_HEAD), share=0.04, shrinks=False
)
def test_causal_rows_end_where_they_should_among_tens_of_thousands_of_keys(subject, routed):
    call, expected = routed
    subject.expects(call, expected)
