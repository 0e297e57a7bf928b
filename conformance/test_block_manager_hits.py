"""Is what was computed hit, and nothing else?"""

from inferspec.conformance.inputs.block_manager import (
    filled_up,
    full_hits,
    given_back_unfinished,
    grown_by_blocks,
    half_computed,
    many_prefixes,
    passers_by,
    sharing,
    workloads,
)
from inferspec.conformance.inputs.block_manager_copies import (
    abreast,
    abreast_in_pieces,
    beyond_a_copy,
    computed_again,
    copied_and_computed_again,
    copies_taken_beside_hits,
)
from inferspec.conformance.inputs.block_manager_evictions import (
    asked_again,
    evicting,
    overtaken,
    taken_back,
)
from inferspec.conformance.inputs.block_manager_lines import (
    adopted,
    conversations,
    deep_lookalikes,
    family,
    far_beginnings,
    long_after_hits,
    long_prompts,
    lookalikes,
    marked_to_and_fro,
    other_prefixes,
    revisits,
    token_by_token,
)
from inferspec.conformance.inputs.block_manager_script import OTHER_BLOCKS
from inferspec.conformance.properties.block_manager import keeps
from inferspec.conformance.suite import requirement
from inferspec.spec import block_manager as spec
from inferspec.spec.block_histories import Check


@requirement(spec.BLK_07, call=sharing(), share=0.7)
def test_a_prompt_hits_all_that_is_cached_of_it(subject, call):
    keeps(subject, call, Check.COMPLETE, Check.ADMITS)


@requirement(spec.BLK_07, call=half_computed(), share=0.5)
def test_what_was_computed_in_chunks_is_hit(subject, call):
    keeps(subject, call, Check.COMPLETE)


@requirement(spec.BLK_07, call=full_hits(), share=0.5)
def test_the_third_prompt_hits_as_much_as_the_second(subject, call):
    keeps(subject, call, Check.COMPLETE)


@requirement(spec.BLK_07, call=long_prompts(), share=0.15)
def test_a_prompt_of_many_blocks_hits_all_of_them(subject, call):
    keeps(subject, call, Check.COMPLETE)


@requirement(spec.BLK_07, call=long_prompts(lengths=(540, 70, 300)), share=0.2)
def test_a_prompt_of_hundreds_of_blocks_hits_all_of_them(subject, call):
    keeps(subject, call, Check.COMPLETE, Check.ADMITS)


@requirement(spec.BLK_07, call=long_after_hits(), share=0.06)
def test_many_blocks_that_were_computed_after_a_hit_are_hit(subject, call):
    keeps(subject, call, Check.COMPLETE)


@requirement(spec.BLK_07, call=sharing(block_sizes=OTHER_BLOCKS), share=0.06)
def test_a_prompt_hits_all_blocks_of_other_sizes(subject, call):
    keeps(subject, call, Check.COMPLETE, Check.ADMITS)


@requirement(spec.BLK_07, call=overtaken(), share=0.55)
def test_what_was_computed_in_the_blocks_of_others_is_hit(subject, call):
    keeps(subject, call, Check.COMPLETE)


@requirement(spec.BLK_07, call=abreast(), share=0.3)
def test_what_follows_what_was_computed_twice_is_hit(subject, call):
    keeps(subject, call, Check.COMPLETE)


@requirement(spec.BLK_07, call=family(), share=0.5)
def test_prompts_that_part_anywhere_hit_what_they_have_in_common(subject, call):
    keeps(subject, call, Check.COMPLETE)


@requirement(spec.BLK_07, call=asked_again(taken=False), share=0.1)
def test_a_prompt_that_was_refused_hits_what_was_cached_since(subject, call):
    keeps(subject, call, Check.COMPLETE)


@requirement(spec.BLK_08, call=full_hits(), share=0.7)
def test_a_token_is_left_to_compute(subject, call):
    keeps(subject, call, Check.PARTIAL)


@requirement(spec.BLK_08, call=sharing(), share=0.5)
def test_hits_are_of_whole_blocks(subject, call):
    keeps(subject, call, Check.PARTIAL)


@requirement(spec.BLK_09, call=half_computed(), share=1.0)
def test_what_is_not_computed_is_not_hit(subject, call):
    keeps(subject, call, Check.SOUND, Check.APART)


@requirement(spec.BLK_09, call=grown_by_blocks(), share=0.5)
def test_what_was_appended_and_not_computed_is_not_hit(subject, call):
    keeps(subject, call, Check.SOUND, Check.APART)


@requirement(spec.BLK_09, call=filled_up(), share=0.5)
def test_what_just_fills_a_block_and_is_not_computed_is_not_hit(subject, call):
    keeps(subject, call, Check.SOUND, Check.APART)


@requirement(spec.BLK_09, call=given_back_unfinished(), share=0.15)
def test_what_was_not_computed_when_its_table_was_freed_is_not_hit(subject, call):
    keeps(subject, call, Check.SOUND)


@requirement(spec.BLK_09, call=marked_to_and_fro(), share=0.5)
def test_what_was_computed_is_hit_as_what_it_is_however_often_it_was_said(subject, call):
    keeps(subject, call, Check.SOUND, Check.APART)


@requirement(spec.BLK_09, call=workloads(prefix_caching=[True]), share=0.5)
def test_what_is_never_computed_is_not_hit(subject, call):
    keeps(subject, call, Check.SOUND, Check.APART)


@requirement(spec.BLK_10, call=other_prefixes(), share=0.7)
def test_equal_blocks_after_other_tokens_are_not_hit(subject, call):
    keeps(subject, call, Check.SOUND)


@requirement(spec.BLK_10, call=far_beginnings(), share=0.1)
def test_long_lines_of_other_beginnings_are_not_hit(subject, call):
    keeps(subject, call, Check.SOUND)


@requirement(spec.BLK_10, call=many_prefixes(), share=0.05)
def test_hundreds_of_prefixes_are_told_apart(subject, call):
    keeps(subject, call, Check.SOUND)


@requirement(spec.BLK_10, call=abreast_in_pieces(), share=0.5)
def test_what_was_computed_beside_another_copy_is_not_hit_without_what_is_before_it(subject, call):
    keeps(subject, call, Check.SOUND)


@requirement(spec.BLK_10, call=beyond_a_copy(), share=0.5)
def test_what_was_computed_behind_a_copy_is_not_hit_without_it(subject, call):
    keeps(subject, call, Check.SOUND)


@requirement(spec.BLK_10, call=sharing(), share=0.5)
def test_lines_that_part_do_not_meet_again(subject, call):
    keeps(subject, call, Check.SOUND)


@requirement(spec.BLK_10, call=adopted(), share=0.5)
def test_what_followed_a_block_is_not_hit_behind_its_next_tokens(subject, call):
    keeps(subject, call, Check.SOUND)


@requirement(spec.BLK_11, call=lookalikes(hashes=["one for all"]), share=0.7)
def test_tokens_of_one_hash_are_not_confused(subject, call):
    keeps(subject, call, Check.SOUND)


@requirement(spec.BLK_11, call=lookalikes(token_ids=["large"]), share=1.0)
def test_tokens_with_equal_low_bits_are_not_confused(subject, call):
    keeps(subject, call, Check.SOUND)


@requirement(spec.BLK_11, call=lookalikes(), share=0.7)
def test_tokens_that_are_nearly_the_same_are_not_confused(subject, call):
    keeps(subject, call, Check.SOUND)


@requirement(spec.BLK_11, call=lookalikes(texts=True), share=0.5)
def test_tokens_of_one_text_are_not_confused(subject, call):
    keeps(subject, call, Check.SOUND)


@requirement(spec.BLK_11, call=lookalikes(sums=True), share=0.3)
def test_tokens_of_one_sum_of_products_are_not_confused(subject, call):
    keeps(subject, call, Check.SOUND)


@requirement(spec.BLK_11, call=lookalikes(block_sizes=OTHER_BLOCKS), share=0.2)
def test_blocks_of_other_sizes_that_are_nearly_the_same_are_not_confused(subject, call):
    keeps(subject, call, Check.SOUND)


@requirement(spec.BLK_11, call=deep_lookalikes(), share=0.4)
def test_tokens_far_from_the_beginning_are_not_confused(subject, call):
    keeps(subject, call, Check.SOUND)


@requirement(spec.BLK_12, call=conversations(), share=0.7)
def test_what_was_appended_is_hit_like_a_prompt(subject, call):
    keeps(subject, call, Check.COMPLETE, Check.SOUND)


@requirement(spec.BLK_12, call=token_by_token(), share=0.1)
def test_dozens_of_tokens_that_came_one_after_the_other_are_hit(subject, call):
    keeps(subject, call, Check.COMPLETE, Check.COUNT, Check.TOLD, Check.STAYS)


@requirement(spec.BLK_13, call=revisits(), share=0.7)
def test_what_was_freed_is_hit_again_and_again(subject, call):
    keeps(subject, call, Check.COMPLETE)


@requirement(spec.BLK_13, call=evicting(), share=0.4)
def test_what_was_not_taken_is_hit_after_others_were(subject, call):
    keeps(subject, call, Check.COMPLETE)


@requirement(spec.BLK_13, call=copied_and_computed_again(), share=0.3)
def test_what_was_computed_again_where_what_follows_it_stayed_is_hit(subject, call):
    keeps(subject, call, Check.COMPLETE)


@requirement(spec.BLK_13, call=copies_taken_beside_hits(), share=0.2)
def test_what_is_hit_stays_known_when_a_copy_of_it_is_taken(subject, call):
    keeps(subject, call, Check.COMPLETE)


@requirement(spec.BLK_13, call=passers_by(), share=0.3)
def test_what_was_computed_in_a_table_that_is_gone_is_hit(subject, call):
    keeps(subject, call, Check.COMPLETE)


@requirement(spec.BLK_13, call=computed_again(), share=0.4)
def test_what_was_computed_again_is_hit_where_it_is_now(subject, call):
    keeps(subject, call, Check.COMPLETE)


@requirement(spec.BLK_14, call=taken_back(), share=0.7)
def test_a_block_that_was_taken_back_is_in_use(subject, call):
    keeps(subject, call, Check.APART, Check.FREE, Check.REFUSES, Check.STAYS, Check.COUNT)
