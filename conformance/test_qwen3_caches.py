"""Does an implementation of Qwen3 keep the contract with a cache?"""

from inferspec.conformance.inputs.decoder import (
    AS_MOST_ARE_PACKED,
    DENSE,
    LARGE_VOCABULARIES,
    PACKED,
    SHARED_KEYS,
    TRAINED,
    as_served,
    as_tiles,
    hundreds_after_a_few,
    past_256,
    past_1024,
    prompt_then_singles,
    several_at_once,
)
from inferspec.conformance.inputs.qwen3 import incremental_calls, rewinding_calls, scaled_incremental_calls
from inferspec.conformance.properties.decoder import gives_logits, is_right_if_its_first_chunk_is_taken
from inferspec.conformance.properties.decoder_calls import (
    first_chunk,
    with_a_token_without_a_cache,
    with_config,
    with_window,
)
from inferspec.conformance.strategies import among
from inferspec.conformance.suite import requirement
from inferspec.spec import qwen3 as spec


@requirement(spec.QWEN3_24, call=incremental_calls(packing=DENSE), share=0.6)
def test_chunks_give_the_logits_of_the_whole_however_they_are_cut(subject, call):
    subject.agrees(call)


@requirement(spec.QWEN3_25, call=incremental_calls(cut=prompt_then_singles, packing=DENSE), share=0.4)
def test_token_by_token_after_a_prompt_is_the_whole(subject, call):
    subject.agrees(call)


@requirement(
    spec.QWEN3_25,
    call=incremental_calls(cut=as_served, lengths=(48, 70), batches=(1,), layers=(1,), packing=DENSE, **TRAINED),
    share=0.15,
)
def test_heads_as_large_as_those_of_trained_models_are_right_in_a_cache(subject, call):
    subject.agrees(call)


@requirement(
    spec.QWEN3_25,
    call=incremental_calls(
        cut=prompt_then_singles, lengths=(3,), batches=(1,), layers=(12,), small=True, packing=DENSE
    ),
    share=0.05,
)
def test_more_than_ten_layers_have_caches_of_their_own(subject, call):
    subject.agrees(call)


@requirement(
    spec.QWEN3_25,
    call=incremental_calls(
        cut=prompt_then_singles, packing=["dense"], heads=SHARED_KEYS, lengths=(4,), layers=(1,), small=True
    ),
    share=0.12,
)
def test_tokens_of_key_heads_that_three_and_four_query_heads_share_are_right(subject, call):
    subject.agrees(call)


@requirement(
    spec.QWEN3_25,
    call=incremental_calls(
        cut=prompt_then_singles,
        vocabularies=LARGE_VOCABULARIES[2:],
        lengths=(3,),
        layers=(1,),
        small=True,
        packing=["dense"],
    ),
    share=0.03,
)
def test_ids_past_65535_after_a_prompt_are_ids(subject, call):
    subject.agrees(call)


@requirement(spec.QWEN3_26, call=incremental_calls(cut=several_at_once, packing=DENSE), share=0.4)
def test_several_tokens_after_others_are_the_whole(subject, call):
    subject.agrees(call)


@requirement(
    spec.QWEN3_26,
    call=incremental_calls(cut=as_tiles, packing=["dense"], lengths=(70, 67), layers=(1,), small=True),
    share=0.06,
)
def test_chunks_as_long_as_tiles_after_others_are_the_whole(subject, call):
    subject.agrees(call)


@requirement(spec.QWEN3_27, call=incremental_calls(batches=(2, 3, 7), packing=DENSE), share=0.3)
def test_a_batch_in_a_cache_is_the_whole(subject, call):
    subject.agrees(call)


@requirement(
    spec.QWEN3_27,
    call=incremental_calls(
        cut=prompt_then_singles, batches=(9, 33, 17), lengths=(3, 4), layers=(1, 2), small=True, packing=DENSE
    ),
    share=0.04,
)
def test_a_large_batch_in_a_cache_is_the_whole(subject, call):
    subject.agrees(call)


@requirement(spec.QWEN3_28, call=incremental_calls(requests=2, packing=DENSE, lengths=(4, 2, 3, 6)), share=0.4)
def test_requests_that_take_turns_do_not_see_each_other(subject, call):
    subject.agrees(call)


@requirement(
    spec.QWEN3_28, call=incremental_calls(requests=3, packing=DENSE, lengths=(4, 2, 3, 6), layers=(1, 2)), share=0.1
)
def test_three_requests_that_take_turns_do_not_see_each_other(subject, call):
    subject.agrees(call)


@requirement(spec.QWEN3_28, call=incremental_calls(packing=DENSE, lengths=(4, 2, 3, 6), layers=(1, 2)), share=0.1)
def test_a_call_without_a_cache_does_not_see_the_cache_of_another(subject, call):
    subject.agrees(with_a_token_without_a_cache(call))


@requirement(
    spec.QWEN3_29,
    call=incremental_calls(
        cut=past_256,
        lengths=(320, 270),
        layers=(1,),
        batches=(2, 1),
        heads=[(2, 1), (3, 3), (4, 2)],
        small=True,
        packing=DENSE,
        length=270,
    ),
    share=0.03,
)
def test_a_cache_past_256_tokens_is_the_whole(subject, call):
    subject.agrees(call)


@requirement(
    spec.QWEN3_29,
    call=incremental_calls(
        cut=past_256,
        lengths=(262,),
        layers=(2,),
        batches=(1,),
        dims=(8,),
        dtypes=["float32"],
        heads=[(1, 1)],
        small=True,
        packing=["dense"],
        length=262,
    ),
    share=0.01,
)
def test_the_caches_of_all_layers_grow_past_256_tokens(subject, call):
    subject.agrees(call)


@requirement(
    spec.QWEN3_29,
    call=incremental_calls(
        cut=hundreds_after_a_few,
        lengths=(600, 570),
        layers=(1,),
        batches=(1, 2),
        heads=[(1, 1), (2, 1)],
        small=True,
        packing=["dense"],
        length=600,
    ),
    share=0.02,
)
def test_a_chunk_of_hundreds_after_a_few_is_the_whole(subject, call):
    subject.agrees(with_config(call, max_position_embeddings=1024))


@requirement(
    spec.QWEN3_29,
    call=incremental_calls(
        cut=past_1024,
        lengths=(1030,),
        layers=(1,),
        batches=(1,),
        heads=[(1, 1)],
        small=True,
        packing=["dense"],
        length=1030,
    ),
    share=0.01,
)
def test_a_cache_past_1024_tokens_is_the_whole(subject, call):
    subject.agrees(with_config(call, max_position_embeddings=2048))


@requirement(
    spec.QWEN3_30,
    call=incremental_calls(cut=as_served, lengths=(48, 70), batches=(1,), layers=(1,), **AS_MOST_ARE_PACKED),
    share=0.2,
)
def test_prompts_and_tokens_are_right_as_most_models_are_packed(subject, call):
    subject.agrees(call)


@requirement(
    spec.QWEN3_30,
    call=incremental_calls(
        cut=as_served, lengths=(48,), batches=(2, 4), layers=(1,), packing=["4-bit"], group_sizes=[32, 64]
    ),
    share=0.03,
)
def test_several_prompts_and_their_tokens_are_right_of_packed_models(subject, call):
    subject.agrees(call)


@requirement(spec.QWEN3_30, call=incremental_calls(packing=PACKED), share=0.3)
def test_packed_models_in_a_cache_are_the_whole(subject, call):
    subject.agrees(call)


@requirement(spec.QWEN3_31, call=incremental_calls(), share=0.2)
def test_logits_of_chunks_have_the_dtype_of_the_embedding(subject, call):
    gives_logits(subject, call, plain=first_chunk(call))


@requirement(spec.QWEN3_40, call=scaled_incremental_calls(), share=0.15)
def test_scaled_rope_in_a_cache_is_the_whole(subject, call):
    subject.agrees(call)


@requirement(
    spec.QWEN3_40,
    call=scaled_incremental_calls(rope_types=["yarn"], cut=prompt_then_singles, lengths=(17, 9)),
    share=0.05,
)
def test_yarn_multiplies_queries_and_keys_of_tokens_after_a_prompt(subject, call):
    subject.agrees(call)


@requirement(spec.QWEN3_43, call=rewinding_calls(packing=DENSE), share=0.1)
def test_what_is_fed_to_a_cache_that_was_rewound_follows_what_is_left(subject, call):
    subject.agrees(call)


@requirement(spec.QWEN3_43, call=rewinding_calls(requests=2, packing=DENSE), share=0.1)
def test_requests_that_take_turns_and_are_rewound_do_not_see_each_other(subject, call):
    subject.agrees(call)


@requirement(
    spec.QWEN3_45,
    call=incremental_calls(packing=DENSE, lengths=(8, 6), layers=(2, 3)),
    window=among([2, 3, 1]),
    first=among([1, 0]),
    share=0.15,
)
def test_a_sliding_window_is_kept_to_behind_a_cache_or_refused(subject, call, window, first):
    is_right_if_its_first_chunk_is_taken(subject, with_window(call, window, first, typed=False))


@requirement(spec.QWEN3_48, call=incremental_calls(cut=prompt_then_singles, packing=DENSE), share=0.04)
def test_a_model_made_in_one_thread_fills_caches_in_another(subject, call):
    subject.agrees(call.in_another_thread())
