"""Does an implementation of generation keep the contract? On a toy model, without weights."""

import numpy as np

from inferspec.conformance.inputs.generation import (
    CHUNKS,
    ENOUGH,
    LARGE,
    LONG,
    ODD_CHUNKS,
    RAGGED,
    ends_of,
    generate_calls,
    nearly_ended,
    paired_ends,
)
from inferspec.conformance.judging.trial import Nonconformance
from inferspec.conformance.properties.common import listed
from inferspec.conformance.strategies import among
from inferspec.conformance.suite import requirement
from inferspec.spec import generation as spec
from inferspec.spec.ends import left_of

# ids


@requirement(spec.GEN_01, call=generate_calls(caches=[True], samplers=["none"]))
def test_ids_are_those_that_the_model_favours(subject, call):
    subject.agrees(call)


@requirement(
    spec.GEN_01, call=generate_calls(caches=[True], stops=[0], limits=(40, 70), vocabularies=ENOUGH), share=0.3
)
def test_many_ids_are_those_that_the_model_favours(subject, call):
    subject.agrees(call)


@requirement(
    spec.GEN_01,
    call=generate_calls(stops=[0], samplers=["none"], vocabularies=RAGGED, lengths=(3, 1), limits=(4, 3)),
    share=0.2,
)
def test_the_favoured_id_may_be_past_whole_tiles_of_the_vocabulary(subject, call):
    subject.agrees(call)


@requirement(spec.GEN_01, call=generate_calls(samplers=["none"], barred=True), share=0.15)
def test_ids_that_must_not_come_have_logits_of_minus_infinity(subject, call):
    subject.agrees(call)


@requirement(spec.GEN_02, call=generate_calls(caches=[False], seen=("ids", "caches")))
def test_without_a_cache_the_ids_are_right_and_none_is_used(subject, call):
    subject.agrees(call)


@requirement(spec.GEN_02, call=generate_calls(caches=[False], lengths=CHUNKS, vocabularies=ENOUGH), share=0.3)
def test_without_a_cache_long_prompts_are_right(subject, call):
    subject.agrees(call)


@requirement(spec.GEN_02, call=generate_calls(caches=[False]), share=0.5)
def test_with_and_without_a_cache_the_ids_are_equal(subject, call):
    if True not in subject.envelope["sampled_caches"]:
        call = call.having(sampler=None)
    without = subject.parts(call)["ids"]
    cached = subject.parts(call.having(cache=True))["ids"]
    if not np.array_equal(without, cached):
        raise Nonconformance(f"without a cache {listed(without)}, with one {listed(cached)}", call)


@requirement(spec.GEN_03, call=generate_calls(caches=[True], seen=("fed", "caches")))
def test_with_a_cache_every_token_is_fed_once(subject, call):
    subject.agrees(call)


@requirement(spec.GEN_03, call=generate_calls(caches=[True], lengths=CHUNKS, seen=("fed", "caches")), share=0.3)
def test_with_a_cache_every_token_of_a_long_prompt_is_fed_once(subject, call):
    subject.agrees(call)


@requirement(spec.GEN_04, call=generate_calls(lengths=(1, 2)))
def test_the_shortest_prompts_are_right(subject, call):
    subject.agrees(call)


@requirement(spec.GEN_04, call=generate_calls(lengths=CHUNKS, limits=(3, 2, 5)), share=0.4)
def test_prompts_beside_the_sizes_of_pieces_are_right(subject, call):
    subject.agrees(call)


@requirement(
    spec.GEN_04, call=generate_calls(caches=[True], lengths=ODD_CHUNKS, limits=(3, 2), vocabularies=ENOUGH), share=0.4
)
def test_prompts_beside_pieces_that_are_no_powers_of_two_are_right(subject, call):
    subject.agrees(call)


@requirement(spec.GEN_04, call=generate_calls(lengths=LONG, limits=(3, 2), vocabularies=(97,)), share=0.2)
def test_prompts_of_thousands_of_tokens_are_right(subject, call):
    subject.agrees(call)


@requirement(spec.GEN_05, call=generate_calls(limits=(0, 1, 2, 3, 7)))
def test_so_many_ids_come_out_as_were_asked_for(subject, call):
    subject.agrees(call)


@requirement(
    spec.GEN_05,
    call=generate_calls(caches=[True], stops=[0], limits=(257, 1100, 520), vocabularies=ENOUGH, samplers=["none"]),
    share=0.06,
)
def test_hundreds_come_out_where_hundreds_were_asked_for(subject, call):
    subject.agrees(call)


@requirement(
    spec.GEN_05,
    call=generate_calls(stops=[0], limits=(130, 40), lengths=(3, 1), vocabularies=(1,), samplers=["none"]),
    share=0.04,
)
def test_the_same_id_may_come_over_and_over(subject, call):
    subject.agrees(call)


@requirement(spec.GEN_05, call=generate_calls(limits=(0,), zero_max_tokens=[True]), share=0.3)
def test_none_come_out_when_none_are_asked_for(subject, call):
    subject.expects(call, {"ids": np.zeros(0)})


@requirement(spec.GEN_06, call=generate_calls(stops=[1, 2, 3], stop_at=(0, 1, 2, 3, 5, 10), limits=(11,)))
def test_an_end_of_sequence_id_ends_the_ids_and_is_not_one_of_them(subject, call):
    subject.agrees(call)


@requirement(
    spec.GEN_06,
    call=generate_calls(stops=[1, 2], stop_at=(1, 2, 0), vocabularies=LARGE[5:], lengths=(3, 1, 2), limits=(4, 3)),
    share=0.15,
)
def test_an_end_of_sequence_id_may_be_large(subject, call):
    subject.agrees(call)


@requirement(spec.GEN_06, call=nearly_ended(stops=[1, 2, 3]), share=0.04)
def test_an_id_that_is_like_an_end_in_its_low_bits_ends_nothing(subject, call):
    subject.agrees(call)


@requirement(spec.GEN_06, call=generate_calls(stops=[1], stop_at=(0,)), share=0.5)
def test_an_end_of_sequence_id_may_be_the_first(subject, call):
    subject.expects(call, lambda meant: {"ids": left_of(*meant.arguments["eos"], ends_of(meant))})


@requirement(
    spec.GEN_06, call=generate_calls(stops=[1, 2], stop_at=(4, 3), limits=(5, 4), vocabularies=ENOUGH), share=2.0
)
def test_an_end_of_sequence_id_at_the_limit_is_not_one_of_them(subject, call):
    subject.agrees(call)


@requirement(
    spec.GEN_06,
    call=generate_calls(stops=[1, 2], stop_at=(4,), limits=(5, 2, 4), vocabularies=ENOUGH, max_tokens=5),
    share=0.3,
)
def test_an_end_of_sequence_id_past_the_limit_does_not_come(subject, call):
    subject.agrees(call.having(max_tokens=call.arguments["max_tokens"] - 1))


@requirement(
    spec.GEN_06,
    call=generate_calls(stops=[1, 2], stop_at=(71, 20, 130), limits=(140,), vocabularies=(700,)),
    share=0.06,
)
def test_an_end_of_sequence_id_ends_the_ids_after_dozens(subject, call):
    subject.agrees(call)


@requirement(
    spec.GEN_06,
    call=generate_calls(
        stops=[1, 2], stop_at=(0, 1), lengths=(513, 1025, 2049), limits=(4,), vocabularies=(97, 300), caches=[True]
    ),
    share=0.1,
)
def test_an_end_of_sequence_id_ends_the_ids_after_a_long_prompt(subject, call):
    subject.agrees(call)


@requirement(
    spec.GEN_06,
    call=generate_calls(
        stops=[1, 2], stop_at=(0,), lengths=(512, 2048, 64, 256), limits=(4,), vocabularies=ENOUGH, caches=[True]
    ),
    share=0.1,
)
def test_an_end_of_sequence_id_may_be_the_first_after_a_prompt_of_whole_pieces(subject, call):
    subject.agrees(call)


@requirement(
    spec.GEN_06,
    call=generate_calls(stops=[1, 2], stop_at=(2, 0, 1, 3), limits=(5,), max_tokens=2**40),
    limit=among([2**40, 2**31, 2**32 + 1]),
    share=0.2,
)
def test_an_end_of_sequence_id_ends_the_ids_however_many_may_come(subject, call, limit):
    # Whoever goes on for ever is stopped.
    subject.agrees(call.having(max_tokens=limit, until=12))


@requirement(spec.GEN_07, call=generate_calls(stops=[2, 3], stop_at=(1, 2, 3), vocabularies=ENOUGH))
def test_any_of_several_ids_ends_the_ids(subject, call):
    subject.agrees(call)


@requirement(
    spec.GEN_07,
    call=generate_calls(stops=[9], stop_at=(1, 2, 3), more_stops=(0, 60, 30), limits=(5,), vocabularies=ENOUGH),
    share=0.5,
)
def test_any_of_many_ids_ends_the_ids(subject, call):
    subject.agrees(call)


@requirement(
    spec.GEN_07,
    call=generate_calls(stops=[9], stop_at=(1, 0, 2), more_stops=(1500, 400), limits=(4,), vocabularies=(3000, 2000)),
    share=0.15,
)
def test_any_of_hundreds_of_ids_ends_the_ids(subject, call):
    subject.agrees(call)


@requirement(spec.GEN_07, call=paired_ends(stops=[1]), share=0.3)
def test_an_id_that_ends_two_requests_ends_both(subject, call):
    # Its ends are those of the first.
    beside = {name: value for name, value in call.arguments["beside"].items() if name != "eos"}
    subject.agrees(call.having(beside=beside))


@requirement(spec.GEN_08, call=generate_calls(stops=[1, 2, 3], prompt_stops=True, vocabularies=ENOUGH))
def test_an_end_of_sequence_id_in_the_prompt_ends_nothing(subject, call):
    subject.agrees(call)


@requirement(spec.GEN_09, call=generate_calls(samplers=["none"], rival=0.0))
def test_of_equal_logits_the_lowest_id_is_taken(subject, call):
    subject.agrees(call)


@requirement(
    spec.GEN_09,
    call=generate_calls(samplers=["none"], rival=0.0, vocabularies=LARGE[1:], lengths=(3, 1), limits=(3, 2)),
    share=0.15,
)
def test_of_equal_logits_of_a_large_vocabulary_the_lowest_id_is_taken(subject, call):
    subject.agrees(call)


@requirement(
    spec.GEN_10,
    call=generate_calls(samplers=["none"], rival="near", vocabularies=LARGE[1:], lengths=(3, 1), limits=(3, 2)),
    share=0.15,
)
def test_the_last_bits_of_logits_of_a_large_vocabulary_decide(subject, call):
    subject.agrees(call)


@requirement(spec.GEN_10, call=generate_calls(samplers=["none"], lengths=(5, 4, 9, 16), limits=(1, 2, 3)))
def test_the_last_position_decides(subject, call):
    subject.agrees(call)


@requirement(spec.GEN_10, call=generate_calls(samplers=["none"], rival="near"))
def test_the_last_bits_of_logits_decide(subject, call):
    subject.agrees(call)


# the sampler


@requirement(spec.GEN_11, call=generate_calls(samplers=["int", "array"], seen=("rows",)))
def test_the_sampler_sees_the_logits_of_the_last_position(subject, call):
    subject.agrees(call)


@requirement(
    spec.GEN_11,
    call=generate_calls(
        samplers=["int", "array"], vocabularies=LARGE[1:], lengths=(3, 1), limits=(2, 1), seen=("rows",)
    ),
    share=0.05,
)
def test_the_sampler_sees_all_logits_of_a_large_vocabulary(subject, call):
    subject.agrees(call)


@requirement(spec.GEN_12, call=generate_calls(samplers=["int", "array"], numbers=True, seen=("ids",)))
def test_what_the_sampler_says_comes_out_and_is_fed_back(subject, call):
    subject.agrees(call)


@requirement(
    spec.GEN_12,
    call=generate_calls(samplers=["int", "array"], numbers=True, caches=[True], seen=("ids", "fed")),
    share=0.5,
)
def test_what_the_sampler_says_is_what_is_fed(subject, call):
    subject.agrees(call)


@requirement(
    spec.GEN_12,
    call=generate_calls(samplers=["int", "array"], numbers=True, stops=[1, 2], stop_at=(0, 1, 2, 3)),
    share=0.5,
)
def test_what_the_sampler_says_can_end_the_ids(subject, call):
    subject.agrees(call)


@requirement(spec.GEN_13, call=generate_calls(vocabularies=LARGE, lengths=(3, 1, 2), limits=(4, 3, 2)), share=0.4)
def test_large_ids_come_out_as_they_are(subject, call):
    subject.agrees(call)
