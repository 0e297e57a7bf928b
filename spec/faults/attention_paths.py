"""What goes wrong on paths that attention and flash attention both have: batches of prompts under masks of their own, tokens
after long contexts, tiles that are filled, caches with room for more."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from inferspec.spec.changes import attention_paths as changes
from inferspec.spec.changes.attention import of_split_keys, reshapes
from inferspec.spec.changes.attention import read_with_strides_of as read_with
from inferspec.spec.changes.attention_masks import remasks
from inferspec.spec.changes.attention_weights import starts_at
from inferspec.spec.contract import Arguments, Fault, Requirement
from inferspec.spec.mistakes import (
    beside_room,
    counts_axis_in_16_bits,
    hides_nan,
    ignores_strides,
    lacks_a_feature,
    leaves_unwritten,
    only_where,
)

GITHUB = "https://github.com/"
TT_METAL = GITHUB + "tenstorrent/tt-metal/issues/"
TIRED = "tired engineer"


def of_a_token(a: Arguments) -> bool:
    return bool(a.query.shape[-2] == 1 and a.key.shape[-2] >= 64)


def of_a_token_in_half(a: Arguments) -> bool:
    """A token after a context from which kernels go over the keys in two passes, in half precision, of several key heads."""
    query_heads, heads = changes.heads_of(a)
    return bool(
        a.query.shape[-2] == 1 and a.key.shape[-2] >= 512 and a.query.dtype.itemsize == 2 and query_heads > heads
    )


def of_a_draft(a: Arguments) -> bool:
    return of_split_keys(a) and a.query.shape[-2] > 1 and a.query.ndim > 3


def anywhere(a: Arguments) -> bool:
    return True


def of_paths(name: str, about: Mapping[str, Requirement]) -> tuple[Fault, ...]:
    """The faults of an operation. about: which of its requirements is about heads, masks, the causal one, batches, strides,
    sizes, values of another width, the range of logits, rows that see no key, and NaN."""
    heads, mask, causal, batch, strides, sizes, values, logits, empty, nan = (
        about[key]
        for key in ("heads", "mask", "causal", "batch", "strides", "sizes", "values", "range", "empty", "nan")
    )
    return (
        Fault(f"{name}-sequences-past-whole-tiles", "of 33 to 1,023 sequences those past whole tiles of 32 are not written", batch, leaves_unwritten(changes.sequences_of_whole_tiles), TT_METAL + "52671"),
        Fault(f"{name}-split-mask-of-first-sequence", "over keys that are shared out all sequences get the mask of the first", mask, changes.masks_where(lambda a: a.key.shape[-2] >= 256, changes.of_first), TT_METAL + "39910"),
        Fault(f"{name}-token-mask-of-first-sequence", "the tokens of all sequences get the mask of the first", mask, changes.masks_where(of_a_token, changes.of_first), TT_METAL + "39910"),
        Fault(f"{name}-chunk-mask-of-first-sequence", "the chunks of all sequences get the mask of the first", mask, changes.masks_where(lambda a: a.query.shape[-2] >= 9, changes.of_first), GITHUB + "tenstorrent/tt-metal/pull/42846"),
        Fault(f"{name}-mask-batch-in-key-heads", "where there are as many sequences as key heads their masks are taken for those of the heads", mask, changes.masks_where(anywhere, changes.in_key_heads), GITHUB + "ml-explore/mlx-lm/pull/1467"),
        Fault(f"{name}-mask-batch-twice", "the way to a sequence's mask is gone twice", mask, changes.masks_where(anywhere, changes.twice_as_far), GITHUB + "invergent-ai/surogate/issues/110"),
        Fault(f"{name}-mask-by-query-heads", "a mask for all heads of a sequence is walked head by head", mask, changes.masks_where(anywhere, changes.by_query_heads), TT_METAL + "39946"),
        Fault(f"{name}-token-mask-scaled", "of a single token what the mask adds is scaled as the logits are", mask, changes.scaled_where(of_a_token), TT_METAL + "55337"),
        Fault(f"{name}-long-contexts-heads-exchanged", "a token after 512 keys and more, in half precision and grouped heads, reads the key heads in the other order", heads, changes.with_keys(changes.heads_exchanged, of_a_token_in_half), GITHUB + "ml-explore/mlx/issues/4022"),
        Fault(f"{name}-eight-of-a-group", "over more than 64 keys heads past the eighth of a group read the next key head", heads, {"key_heads": changes.eight_of_a_group}, TIRED),
        Fault(f"{name}-heads-past-the-128th", "heads past the 128th are not written", heads, leaves_unwritten(changes.first_heads(128)), TIRED),
        Fault(f"{name}-token-heads-past-the-64th", "of a token after 256 keys and more the heads past the 64th are not written", heads, only_where(changes.token_of_many_heads, leaves_unwritten(changes.first_heads(64))), TIRED),
        Fault(f"{name}-large-heads-past-the-32nd", "of a token, or a few, of 64 heads of 64 features and more, after 256 keys and more, the heads past the 32nd are not written", heads, only_where(changes.few_of_many_large_heads, leaves_unwritten(changes.first_heads(32))), TT_METAL + "33440"),
        Fault(f"{name}-four-large-key-heads", "after 256 keys and more a token, or a few, of heads of 64 features and more count key heads modulo 4", heads, changes.with_keys(changes.keys_of_four_heads, changes.few_of_large_heads), TT_METAL + "33440"),
        Fault(f"{name}-chunks-of-groups-of-the-first-key-head", "of 64 queries and more over 256 keys and more, where four query heads and more share a key head, all read the first", heads, changes.with_keys(changes.keys_of_first_head, changes.chunks_of_groups), GITHUB + "Dao-AILab/flash-attention/pull/2098"),
        Fault(f"{name}-masks-of-64-heads", "heads past the 64th have the masks of the first ones", heads, remasks(changes.masks_of_64_heads), TIRED),
        Fault(f"{name}-past-31-of-a-group", "heads past the 31st of a group read the next key head", heads, {"key_heads": changes.heads_by_32_of_a_group}, TIRED),
        Fault(f"{name}-tokens-of-16-sequences", "after dozens of keys, sequences past the 16th read the keys of the first ones", batch, changes.with_keys(changes.keys_of_16_rows, changes.tokens_of_many_sequences), TIRED),
        Fault(f"{name}-prompts-of-16-sequences", "of 9 queries and more, sequences past the 16th read the keys of the first ones", batch, changes.with_keys(changes.keys_of_16_rows, changes.prompts_of_many_sequences), TIRED),
        Fault(f"{name}-prompt-heads-past-the-64th", "of 9 queries and more the heads past the 64th are not written", heads, only_where(changes.prompt_of_many_heads, leaves_unwritten(changes.first_heads(64))), TIRED),
        Fault(f"{name}-prompts-of-eight-large-heads", "of 9 queries and more of heads of 64 features and more, key heads are counted modulo 8", heads, changes.with_keys(changes.keys_of_eight_heads, changes.prompt_of_large_heads), TIRED),
        Fault(f"{name}-prompts-of-large-groups", "of 9 queries and more, where more than eight heads share a key head, the last feature is not written", heads, lacks_a_feature(changes.prompt_of_large_groups), TIRED),
        Fault(f"{name}-large-chunks-over-many-keys", "of more than 64 queries over more than 1024 keys the last feature is not written", sizes, lacks_a_feature(changes.large_chunk_over_many_keys), TIRED),
        Fault(f"{name}-long-prompt-masks-of-first-sequence", "of more than 256 queries all sequences get the masks of the first", mask, remasks(changes.long_masks_of_first), TT_METAL + "39910"),
        Fault(f"{name}-hides-below-60000", "what an additive mask lowers by 60,000 and more is hidden, in float32 too", mask, {"additive_mask": changes.hides_below_60000}, TIRED),
        Fault(f"{name}-long-contexts-of-eight-heads", "over more than 64 keys a token, or a few, count key heads modulo 8", heads, changes.with_keys(changes.keys_of_eight_heads, changes.few_over_dozens), TIRED),
        Fault(f"{name}-split-full-mask-of-first-sequence", "over 1024 keys and more a mask of every sequence and head is that of the first sequence", mask, remasks(changes.full_mask_of_first), TT_METAL + "39910"),
        Fault(f"{name}-other-values-of-split-keys", "over 1024 keys and more, values of another width than keys lack their last feature", values, lacks_a_feature(changes.other_values_of_split_keys), TIRED),
        Fault(f"{name}-empty-of-split-keys", "of a token or a few over 1024 keys and more, rows that see no key are NaN", empty, changes.EMPTY_OF_SPLIT_KEYS, TIRED),
        Fault(f"{name}-queries-in-16-bits", "queries past the 65535th are not written", sizes, counts_axis_in_16_bits(-2), "https://github.com/pytorch/pytorch/issues/142228"),
        Fault(f"{name}-thousands-of-keys-of-first-sequence", "over more than 4096 keys all sequences read those of the first", sizes, changes.with_keys(changes.keys_of_first_row, changes.thousands_of_keys_of_each), TIRED),
        Fault(f"{name}-masked-chunks-over-many-keys", "of 32 queries and more under a mask, over 1024 keys and more, the last feature is not written", sizes, lacks_a_feature(changes.masked_chunk_over_many_keys), TIRED),
        Fault(f"{name}-sixteen-queries", "of 16 queries over 256 keys and more the last key is not counted", sizes, changes.last_key_lost(lambda length, keys: length == 16 and keys >= 256), TIRED),
        Fault(f"{name}-prompts-of-first-sequence", "the prompts of all sequences, of 256 queries and more, read the keys of the first", batch, changes.with_keys(changes.keys_of_first_row, changes.whole_prompts_of_a_batch), TIRED),
        Fault(f"{name}-tokens-of-large-heads-of-first-sequence", "after 256 keys and more the tokens of four sequences and more, of heads of 64 features and more, read the keys of the first", batch, changes.with_keys(changes.keys_of_first_row, changes.tokens_of_large_heads_of_sequences), GITHUB + "microsoft/onnxruntime/pull/20521"),
        Fault(f"{name}-drafts-of-first-sequence", "the drafts of all sequences, over keys that are shared out, read the keys of the first", batch, changes.with_keys(changes.keys_of_first_row, of_a_draft), TIRED),
        Fault(f"{name}-token-whole-tiles", "of a single token and whole tiles of 128 keys the last key is not counted", sizes, changes.last_key_lost(lambda length, keys: length == 1 and keys % 128 == 0), TIRED),
        Fault(f"{name}-whole-blocks", "of whole blocks of 32 queries over more keys, in whole tiles, the last key is not counted", sizes, changes.last_key_lost(lambda length, keys: length % 32 == keys % 32 == 0 and length < keys), TIRED),
        Fault(f"{name}-whole-tiles-alone", "of whole tiles of 64 keys and a block of queries that is not full the last key is not counted", sizes, changes.last_key_lost(lambda length, keys: length > 32 and length % 32 != 0 and keys % 64 == 0), TIRED),
        Fault(f"{name}-whole-blocks-alone", "of whole blocks of 64 queries and a tile of keys that is not full the last key is not counted", sizes, changes.last_key_lost(lambda length, keys: length % 64 == 0 and keys > 32 and keys % 32 != 0), TIRED),
        Fault(f"{name}-whole-tiles-top-left", "where tiles of 32 are whole the causal mask is aligned top-left", causal, {"visible": changes.top_left_where_whole}, TIRED),
        *(
            Fault(f"{name}-{part}-beside-room", f"the heads of a {part} are read as if they lay side by side, as those of a cache with room for more do not", strides, only_where(beside_room(part), ignores_strides(part)), GITHUB + "ml-explore/mlx/commit/62f297b51")
            for part in ("key", "value")
        ),
        Fault(f"{name}-value-beside-room-of-key", "a value beside room, or one that has none, is read with the strides of the key", strides, only_where(lambda a: beside_room("key")(a) != beside_room("value")(a), reshapes(lambda a: {"value": read_with(a.value, a.key)})), GITHUB + "pytorch/pytorch/issues/163597"),
        *(
            Fault(f"{name}-{part}-of-batches-contiguous", f"a {part} of several sequences and heads, in half precision, is read as if it were contiguous", strides, only_where(changes.half_heads_in_batches(part), ignores_strides(part)), GITHUB + "pytorch/pytorch/issues/181133")
            for part in ("query", "key", "value")
        ),
        Fault(f"{name}-rows-of-drafts-by-the-strides-of-heads", "over 512 keys and more, which are shared out, the rows of several queries whose heads lie beside each other in memory are put together by the strides of others: those past the first are not written", strides, only_where(changes.drafts_beside_heads, leaves_unwritten(lambda out: out[..., :1, :])), GITHUB + "flagos-ai/FlagGems/issues/5235"),
        Fault(f"{name}-masks-of-batches-contiguous", "masks of several sequences are read as if they were contiguous", strides, only_where(changes.masks_of_a_batch, ignores_strides("mask")), GITHUB + "ml-explore/mlx/commit/005e7efa6"),
        Fault(f"{name}-expanded-mask-contiguous", "a mask that was expanded over rows, heads or sequences is read as if it were contiguous", strides, only_where(changes.mask_expanded, ignores_strides("mask")), GITHUB + "ml-explore/mlx/commit/005e7efa6"),
        Fault(f"{name}-large-groups-unmasked", "where more than eight query heads share a key head, the causal mask is ignored", causal, only_where(changes.in_large_groups, reshapes(changes.without_causal)), TIRED),
        Fault(f"{name}-large-groups-mask-of-first-head", "where more than eight query heads share a key head, all have the mask of the first head", mask, remasks(changes.first_mask_of_large_groups), TIRED),
        Fault(f"{name}-groups-of-eight-mask-of-first-head", "where eight query heads and more share a key head, a mask of three axes is that of the first of them for all", mask, remasks(changes.mask_of_first_in_groups_of_eight), TIRED),
        *(
            Fault(f"{name}-beside-bools-nan-hidden-in-{part}", f"of grouped heads under a bool mask what is no number in {part} is taken for 0", nan, hides_nan(part, changes.beside_bools_in_groups), "IEEE 754, section 6.2")
            for part in ("query", "key", "value")
        ),
        Fault(f"{name}-many-keys-of-large-heads", "over more than 1024 keys the last one of heads larger than 128 is not counted", sizes, {"logits": changes.last_key_of_large_heads_lost}, TIRED),
        Fault(f"{name}-other-values-top-left", "where values have another width than keys, the causal mask is aligned top-left", values, only_where(changes.of_other_values, reshapes(changes.aligned_top_left)), TIRED),
        Fault(f"{name}-other-values-of-whole-tiles", "where values have another width than keys, the keys past the last whole tile of 32 are not read", values, only_where(changes.of_other_values, reshapes(changes.keys_of_whole_tiles)), TIRED),
        Fault(f"{name}-empty-past-whole-tiles-of-queries", "of causal queries that fill tiles of 32, those before the first key are NaN", empty, changes.never_empty_where(lambda length, keys: length % 32 == 0, lambda keys: np.nan), TIRED),
        Fault(f"{name}-empty-past-whole-tiles-of-keys", "of causal queries over keys that fill tiles of 32, those before the first key are NaN", empty, changes.never_empty_where(lambda length, keys: keys % 32 == 0, lambda keys: np.nan), TIRED),
        Fault(f"{name}-empty-past-a-tile-is-the-mean", "of causal queries over more than 32 keys, those before the first key are the mean of the values", empty, changes.never_empty_where(lambda length, keys: keys > 32, lambda keys: 1 / keys), TIRED),
        *(
            Fault(f"{name}-maximum-from-{told}", f"the running maximum starts at {number:g}", logits, starts_at(number), TIRED)
            for told, number in (("minus-1e9", -1e9), ("minus-1e30", -1e30))
        ),
    )  # fmt: skip
