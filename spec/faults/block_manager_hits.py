"""Mistakes of block managers: which blocks of a prompt are found cached, and under what names."""

from __future__ import annotations

from inferspec.spec import block_manager as spec
from inferspec.spec.block_manager import BlockManager
from inferspec.spec.changes import block_manager as changes
from inferspec.spec.changes import block_manager_evictions as evictions
from inferspec.spec.changes import block_manager_hits as hits
from inferspec.spec.contract import Fault
from inferspec.spec.faults.block_manager_sources import NANO, POST, VLLM
from inferspec.spec.faults.defining import named
from inferspec.spec.faults.sources import TIRED

_fault = named("block-manager")

FAULTS: tuple[Fault, ...] = (
    _fault(
        "hits-one-block",
        "only the first block is hit",
        spec.BLK_07,
        {"hits": hits.one_block_at_most},
        "PROPERTIES PC9",
    ),
    _fault(
        "hits-eight-blocks",
        "no more than eight blocks are hit",
        spec.BLK_07,
        {"hits": changes.eight_blocks},
        "PROPERTIES PC9",
    ),
    _fault(
        "hits-one-short",
        "a block more than needed is left to compute",
        spec.BLK_07,
        {"hit_limit": hits.one_short},
        f"{VLLM}/11186",
    ),
    _fault(
        "named-once",
        "a block that is taken keeps the name that the cache knew it by, and what is computed into it is never cached",
        spec.BLK_07,
        {"forget": evictions.keeps_its_name, "publish": evictions.publishes_the_nameless},
        "https://github.com/ovg-project/kvcached/pull/363",
    ),
    _fault(
        "hits-256-blocks",
        "no more than 256 blocks are hit",
        spec.BLK_07,
        {"hits": lambda self, m, tokens: BlockManager.hits(self, m, tokens)[:256]},
        "PROPERTIES PC9",
    ),
    _fault(
        "stops-at-a-copy",
        "what follows a block that is cached elsewhere is not cached",
        spec.BLK_07,
        {"mark_computed": hits.stops_at_a_copy},
        "PROPERTIES PC9",
    ),
    _fault(
        "cache-of-64",
        "the cache knows 64 blocks at most",
        spec.BLK_07,
        {"publish": hits.cache_of_64},
        "PROPERTIES PC9",
    ),
    _fault(
        "nothing-left",
        "a prompt that is cached to its end is hit to its end",
        spec.BLK_08,
        {"hit_limit": hits.nothing_left},
        f"{VLLM}/3239",
    ),
    _fault(
        "all-but-one",
        "of a prompt that is cached to its end all tokens but one are, in part of a block",
        spec.BLK_08,
        {"hit_limit": hits.nothing_left, "table": hits.all_but_one},
        f"{VLLM}/11186",
    ),
    _fault(
        "cached-at-allocation",
        "blocks are hit before they are computed",
        spec.BLK_09,
        {"allocate": hits.at_allocation},
        f"{NANO}/commit/f64d821",
    ),
    _fault(
        "cached-at-append",
        "a block that an append fills is hit before it is computed",
        spec.BLK_12,
        {"append": hits.at_append},
        f"{NANO}/commit/f64d821",
    ),
    _fault(
        "kept-from-a-refusal",
        "what a prompt hit when there was no room for it is what it hits when there is",
        spec.BLK_17,
        {"allocate": hits.kept_from_a_refusal},
        f"{VLLM}/18957",
    ),
    _fault(
        "kept-too-few-from-a-refusal",
        "what a prompt hit when there was no room for it is all that it hits when there is",
        spec.BLK_07,
        {"allocate": hits.kept_from_a_refusal},
        f"{VLLM}/18957",
    ),
    _fault(
        "told-from-a-refusal",
        "num_cached_tokens is what it was when there was no room for the prompt",
        spec.BLK_17,
        {"allocate": hits.told_from_a_refusal},
        f"{VLLM}/17305",
    ),
    _fault(
        "published-when-freed",
        "a table that is freed leaves all its whole blocks in the cache, computed or not",
        spec.BLK_09,
        {"free": hits.published_when_freed},
        "https://github.com/xLLM-AI/xllm/issues/828",
    ),
    _fault(
        "last-published-when-freed",
        "a block of which the last token alone is not computed is cached when its table is freed",
        spec.BLK_09,
        {"free": hits.last_published_when_freed},
        "https://github.com/ml-explore/mlx-lm/pull/1215",
    ),
    _fault(
        "at-append-of-several",
        "the first of several whole blocks that are appended to computed ones is hit before it is computed",
        spec.BLK_09,
        {"append": changes.publishes_at_once},
        "PROPERTIES PC5",
    ),
    _fault(
        "at-append-that-fills",
        "a block that an append of several tokens fills to its end is hit before it is computed",
        spec.BLK_09,
        {"append": changes.publishes_what_it_fills},
        "PROPERTIES PC5",
    ),
    _fault(
        "marks-anew",
        "what was computed is known by a chain, and marking less takes the count back and not the chain",
        spec.BLK_09,
        {"mark_computed": changes.marks_anew},
        "PROPERTIES PC3, PC5",
    ),
    _fault(
        "first-chunk-for-all",
        "one computed chunk makes the whole prompt visible",
        spec.BLK_09,
        {"whole_blocks": hits.all_at_the_first_mark},
        f"{NANO}/commit/f64d821",
    ),
    _fault(
        "rounded-up",
        "a block that is computed in part is hit",
        spec.BLK_09,
        {"whole_blocks": hits.rounded_up},
        "PROPERTIES PC5",
    ),
    _fault("block-alone", "a block is known by its own tokens alone", spec.BLK_10, {"key": hits.the_block_alone}, POST),
    _fault(
        "behind-a-block",
        "a block is known by its tokens and the block that has those before it",
        spec.BLK_10,
        {"key": hits.behind_a_block},
        "PROPERTIES PC3, PC4",
    ),
    _fault(
        "anew-behind-a-copy",
        "behind a block that is a copy, and so has no name, blocks are known as those of a prompt's beginning",
        spec.BLK_10,
        {"mark_computed": changes.starts_anew_behind_a_copy},
        "https://github.com/EternityTang/nano-vllm/commit/af6b448",
    ),
    _fault(
        "block-and-place",
        "a block is known by its tokens and its place",
        spec.BLK_10,
        {"key": hits.block_and_place},
        "PROPERTIES PC3",
    ),
    _fault(
        "prefix-in-a-byte",
        "prefixes are numbered as they come, and those 256 apart are taken for the same",
        spec.BLK_10,
        {"key": hits.prefix_in_a_byte},
        "PROPERTIES X8, PC3",
    ),
    _fault(
        "one-parent",
        "a block is known by its tokens and those of the block before",
        spec.BLK_10,
        {"key": hits.block_and_the_one_before},
        f"{POST}: a parent hash that is never set",
    ),
    _fault(
        "any-order",
        "the same tokens in another order are hit",
        spec.BLK_11,
        {"key": hits.any_order},
        "PROPERTIES PC3",
    ),
    _fault(
        "sums",
        "tokens are known by a checksum of few of them",
        spec.BLK_11,
        {"key": hits.first_and_last},
        "PROPERTIES PC3",
    ),
    _fault(
        "last-of-each-block",
        "a block is known by its last token, and by that of each block before it",
        spec.BLK_11,
        {"key": hits.last_of_each_block},
        TIRED,
    ),
    _fault(
        "last-of-later-blocks",
        "blocks behind the first are known by their last tokens",
        spec.BLK_11,
        {"key": hits.last_of_later_blocks},
        "PROPERTIES PC3",
    ),
    _fault(
        "hash-alone",
        "tokens with one hash are taken for the same",
        spec.BLK_11,
        {"key": hits.hash_alone},
        "PROPERTIES PC3",
    ),
    _fault(
        "hash-in-the-chain",
        "the tokens before a block are known by their hash",
        spec.BLK_11,
        {"key": hits.hash_in_the_chain},
        POST,
    ),
    _fault("digits", "tokens are known by their digits in a row", spec.BLK_11, {"key": hits.digits}, "PROPERTIES PC3"),
    _fault(
        "low-byte",
        "of a token the low byte counts",
        spec.BLK_11,
        hits.low_bits(8),
        "https://github.com/waybarrios/vllm-mlx/pull/444",
    ),
    _fault(
        "sixteen-bits",
        "of a token 16 bits count",
        spec.BLK_11,
        hits.low_bits(16),
        "https://github.com/waybarrios/vllm-mlx/pull/444",
    ),
    _fault("thirty-two-bits", "of a token 32 bits count", spec.BLK_11, hits.low_bits(32), "PROPERTIES PC3, X8"),
    _fault(
        "python-remainder",
        "tokens are known by the hash of an int",
        spec.BLK_11,
        {"key": hits.float32},
        "PROPERTIES PC3",
    ),
    _fault(
        "in-doubles",
        "tokens are compared as floats",
        spec.BLK_11,
        {"key": hits.in_floats("float64")},
        "PROPERTIES X8",
    ),
    _fault(
        "in-singles",
        "tokens are compared as float32",
        spec.BLK_11,
        {"key": hits.in_floats("float32")},
        "PROPERTIES X8",
    ),
    _fault(
        "padding-left-out",
        "an id of 0 is taken for padding",
        spec.BLK_11,
        {"key": hits.padding_left_out},
        TIRED,
    ),
    _fault(
        "prompts-alone",
        "what was appended is never cached",
        spec.BLK_12,
        {"table": hits.noting_the_prompt, "whole_blocks": hits.prompts_alone},
        f"{VLLM}/11186",
    ),
    _fault(
        "appended-in-32-bits",
        "appended tokens are kept in 32 bits",
        spec.BLK_12,
        {"append": hits.appended_in_32_bits},
        "PROPERTIES X8",
    ),
    _fault(
        "last-block-alone",
        "of blocks that were filled together only the last is cached",
        spec.BLK_12,
        {"table": hits.noting_the_prompt, "mark_computed": hits.block_by_block},
        "PROPERTIES PC9",
    ),
)


LATER_BLOCKS: tuple[Fault, ...] = (
    _fault(
        "places-from-the-fifth",
        "from the fifth on blocks are known by their place and the first four",
        spec.BLK_11,
        {"key": hits.places_from_the_fifth},
        "PROPERTIES PC3",
    ),
    _fault(
        "any-order-from-the-fourth",
        "from the fourth block on the order of a block's tokens does not count",
        spec.BLK_11,
        {"key": hits.any_order_from_the_fourth},
        "PROPERTIES PC3",
    ),
    _fault(
        "hits-in-eights",
        "of more than eight blocks that are cached so many are hit as are whole eights",
        spec.BLK_07,
        {"hits": hits.in_eights},
        "https://github.com/ollama/ollama/issues/18267",
    ),
)
