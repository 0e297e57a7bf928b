"""The steps that `spec/faults/attention_paths.py` puts in the place of the oracle's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from inferspec.spec.attention import ScaledDotProductAttention
from inferspec.spec.changes.attention import CORE
from inferspec.spec.changes.attention_masks import remasks
from inferspec.spec.changes.attention_weights import empty_rows, weights_by
from inferspec.spec.contract import Arguments, Change, Operation
from inferspec.spec.mistakes import honest


def heads_of(a: Arguments) -> tuple[int, int]:
    """How many query heads and key heads there are."""
    return (a.query.shape[-3], a.key.shape[-3]) if min(a.query.ndim, a.key.ndim) > 2 else (1, 1)


# Masks of batches


def shared_by_heads(bias: np.ndarray, a: Arguments) -> bool:
    """Whether each of several sequences has a mask of its own, for all of its heads."""
    return bias.ndim == 4 and bias.shape[0] > 1 == bias.shape[1] and a.query.ndim == 4


def masks_where(holds: Callable[[Arguments], bool], change: Callable[[np.ndarray, Arguments], np.ndarray]) -> Change:
    """The masks of a batch are `change` of what they should be on one path."""
    return remasks(lambda bias, a: change(bias, a) if shared_by_heads(bias, a) and holds(a) else bias)


def of_first(bias: np.ndarray, a: Arguments) -> np.ndarray:
    return bias[:1]


def in_key_heads(bias: np.ndarray, a: Arguments) -> np.ndarray:
    """Where there are as many sequences as key heads, the axis of one lies along the other."""
    query_heads, heads = heads_of(a)
    if bias.shape[0] != heads or query_heads == heads:
        return bias
    return np.repeat(bias.swapaxes(0, 1), query_heads // heads, axis=1)


def twice_as_far(bias: np.ndarray, a: Arguments) -> np.ndarray:
    """The way to a sequence's mask is gone twice."""
    return bias[2 * np.arange(bias.shape[0]) % bias.shape[0]]


def by_query_heads(bias: np.ndarray, a: Arguments) -> np.ndarray:
    """The mask is walked with a step for each query head, which one for all heads does not have."""
    return bias[(np.arange(bias.shape[0])[:, None] * a.query.shape[1] + np.arange(a.query.shape[1])) % bias.shape[0], 0]


def scaled_where(holds: Callable[[Arguments], bool]) -> Change:
    """On one path what a mask adds is scaled as the logits are."""
    return remasks(lambda bias, a: bias * abs(CORE.scale(a)) if holds(a) and CORE.scale(a) else bias)


def columns_in_16_bits(bias: np.ndarray, a: Arguments) -> np.ndarray:
    """Blocks of queries count the mask's columns in 16 bits with a sign, and begin again."""
    keys = bias.shape[-1] if bias.ndim else 0
    return bias if keys <= 2**15 or a.query.shape[-2] < 9 else bias[..., np.arange(keys) % 2**15]


# Keys and heads


def with_keys(change: Callable[[Arguments], dict[str, Any]], holds: Callable[[Arguments], bool]) -> Change:
    """On one path some arguments are replaced by what `change` makes of them all."""

    def respond(self: Operation, a: Arguments) -> Any:
        return honest(self, Arguments(**{**vars(a), **change(a)}) if holds(a) else a)

    return {"respond": respond}


def heads_exchanged(a: Arguments) -> dict[str, Any]:
    return {"key": a.key[..., ::-1, :, :], "value": a.value[..., ::-1, :, :]}


def keys_of_first_row(a: Arguments) -> dict[str, Any]:
    return {name: np.broadcast_to(x[:1], x.shape) for name, x in (("key", a.key), ("value", a.value))}


def eight_of_a_group(self: ScaledDotProductAttention, x: np.ndarray, query_heads: int) -> np.ndarray:
    """Over more keys than a tile has, heads past the eighth of a group read the next key head, the last one's the first."""
    heads = x.shape[-3]
    ratio = query_heads // heads
    head = np.arange(query_heads)
    past = (head % ratio >= 8) & (x.shape[-2] > 64)
    return np.take(x, (head // ratio + past) % heads, axis=-3)


def heads_by_32_of_a_group(self: ScaledDotProductAttention, x: np.ndarray, query_heads: int) -> np.ndarray:
    """Heads past the 31st of a group read the next key head, the last one's the first."""
    heads = x.shape[-3]
    ratio = query_heads // heads
    head = np.arange(query_heads)
    return np.take(x, (head // ratio + (head % ratio >= 31)) % heads, axis=-3)


def first_heads(most: int) -> Callable[[np.ndarray], np.ndarray]:
    """What is written of a result whose heads are counted up to so many."""
    return lambda out: out[..., :most, :, :] if out.ndim > 2 else out


def masks_of_64_heads(bias: np.ndarray, a: Arguments) -> np.ndarray:
    """Heads past the 64th have the masks of the first ones."""
    return bias[..., np.arange(bias.shape[-3]) % 64, :, :] if bias.ndim > 2 else bias


def token_of_many_heads(a: Arguments) -> bool:
    """Whether it is a token of 64 heads and more, after a context of more than one part."""
    return a.query.shape[-2] == 1 and a.key.shape[-2] >= 256 and heads_of(a)[0] >= 64


def few_of_large_heads(a: Arguments) -> bool:
    """Whether it is a token or a few of heads of 64 features and more, after a context of more than one part."""
    return a.query.shape[-2] < 9 and a.key.shape[-2] >= 256 and a.query.shape[-1] >= 64


def few_of_many_large_heads(a: Arguments) -> bool:
    """The same, of 64 query heads and more."""
    return few_of_large_heads(a) and heads_of(a)[0] >= 64


def keys_of_four_heads(a: Arguments) -> dict[str, Any]:
    """Key heads are counted modulo 4."""
    return {name: x[..., np.arange(x.shape[-3]) % 4, :, :] for name, x in (("key", a.key), ("value", a.value))}


def chunks_of_groups(a: Arguments) -> bool:
    """Whether there are 64 queries and more over 256 keys and more, of four heads and more for each key head."""
    query_heads, heads = heads_of(a)
    return a.query.shape[-2] >= 64 and a.key.shape[-2] >= 256 and query_heads >= 4 * heads


def keys_of_first_head(a: Arguments) -> dict[str, Any]:
    return {name: np.broadcast_to(x[..., :1, :, :], x.shape) for name, x in (("key", a.key), ("value", a.value))}


def whole_prompts_of_a_batch(a: Arguments) -> bool:
    """Whether there are several sequences of 256 queries and more."""
    return long_prompts_of_a_batch(a) and a.query.shape[-2] >= 256


def tokens_of_large_heads_of_sequences(a: Arguments) -> bool:
    """Whether it is a token of each of four sequences and more, of heads of 64 features and more, after 256 keys and more."""
    return a.query.ndim == 4 and len(a.query) >= 4 and a.query.shape[-2] == 1 and few_of_large_heads(a)


def drafts_beside_heads(a: Arguments) -> bool:
    """Whether there are a few queries over keys that are shared out, the heads of each of which lie beside each other."""
    q = a.query
    return (
        q.ndim > 2
        and q.shape[-3] > 1
        and 2 <= q.shape[-2] < 9
        and a.key.shape[-2] >= 512
        and q.strides[-3] < q.strides[-2]
    )


def tokens_of_many_sequences(a: Arguments) -> bool:
    """Whether it is a token of each of 16 sequences and more, after dozens of others."""
    return a.query.ndim == 4 and len(a.query) >= 16 and a.query.shape[-2] == 1 and a.key.shape[-2] >= 64


def keys_of_16_rows(a: Arguments) -> dict[str, Any]:
    return {name: x[np.arange(len(x)) % 16] for name, x in (("key", a.key), ("value", a.value))}


def prompts_of_many_sequences(a: Arguments) -> bool:
    """Whether there are 9 queries and more of each of more than 16 sequences."""
    return a.query.ndim == 4 and len(a.query) > 16 and a.query.shape[-2] >= 9


def prompt_of_many_heads(a: Arguments) -> bool:
    """Whether there are 9 queries and more of more than 64 heads."""
    return a.query.shape[-2] >= 9 and heads_of(a)[0] > 64


def prompt_of_large_heads(a: Arguments) -> bool:
    """Whether there are 9 queries and more, of heads of 64 features and more."""
    return a.query.shape[-2] >= 9 and a.query.shape[-1] >= 64


def prompt_of_large_groups(a: Arguments) -> bool:
    """Whether there are 9 queries and more, of more than eight heads for each key head."""
    return a.query.shape[-2] >= 9 and in_large_groups(a)


def large_chunk_over_many_keys(a: Arguments) -> bool:
    """Whether there are more than 64 queries, over more than 1024 keys."""
    return a.query.shape[-2] > 64 and a.key.shape[-2] > 1024


def long_masks_of_first(bias: np.ndarray, a: Arguments) -> np.ndarray:
    """Of more than 256 queries all sequences have the masks of the first."""
    return bias[:1] if bias.ndim == 4 and a.query.shape[-2] > 256 else bias


def hides_below_60000(self: ScaledDotProductAttention, mask: np.ndarray) -> np.ndarray:
    """Whatever float16 has nearly no number below hides a key, in every dtype."""
    bias = ScaledDotProductAttention.additive_mask(self, mask)
    return np.where(bias <= -6e4, -np.inf, bias)


def few_over_dozens(a: Arguments) -> bool:
    """Whether it is a token or a few, after dozens of others."""
    return a.query.shape[-2] < 9 and a.key.shape[-2] > 64


def keys_of_eight_heads(a: Arguments) -> dict[str, Any]:
    """Key heads are counted modulo 8."""
    return {name: x[..., np.arange(x.shape[-3]) % 8, :, :] for name, x in (("key", a.key), ("value", a.value))}


def few_over_thousands(a: Arguments) -> bool:
    """Whether it is a token or a few over 1024 keys and more, which are shared out."""
    return a.query.shape[-2] < 9 and a.key.shape[-2] >= 1024


def full_mask_of_first(bias: np.ndarray, a: Arguments) -> np.ndarray:
    """Of keys that are shared out, the heads of all sequences have the masks of the first one's."""
    full = bias.ndim == 4 and min(bias.shape[:2]) > 1
    return bias[:1] if full and few_over_thousands(a) else bias


def other_values_of_split_keys(a: Arguments) -> bool:
    """Whether values have another number of features than keys, where these are shared out."""
    return of_other_values(a) and few_over_thousands(a)


def long_prompts_of_a_batch(a: Arguments) -> bool:
    """Whether there are several sequences of 128 queries and more."""
    return a.query.ndim == 4 and len(a.query) > 1 and a.query.shape[-2] >= 128


def masked_chunk_over_many_keys(a: Arguments) -> bool:
    """Whether there are 32 queries and more, over 1024 keys and more, under a mask."""
    return a.mask is not None and a.query.shape[-2] >= 32 and a.key.shape[-2] >= 1024


def thousands_of_keys_of_each(a: Arguments) -> bool:
    """Whether several sequences have more than 4096 keys each."""
    return a.query.ndim == 4 and len(a.query) > 1 and a.key.shape[-2] > 4096


# Tiles that are filled


def last_key_of_large_heads_lost(
    self: ScaledDotProductAttention, q: np.ndarray, k: np.ndarray, scale: float, bias: np.ndarray, dtype: str
) -> np.ndarray:
    """Over more keys than a part of them holds, the last one of heads that are larger than 128 is not counted."""
    lost = q.shape[-1] > 128 and k.shape[-2] > 1024
    return last_key_lost(lambda length, keys: lost)["logits"](self, q, k, scale, bias, dtype)


def last_key_lost(holds: Callable[[int, int], bool]) -> Change:
    """The last key is not counted, for numbers of queries and keys of which `holds` is true."""

    def logits(
        self: ScaledDotProductAttention, q: np.ndarray, k: np.ndarray, scale: float, bias: np.ndarray, dtype: str
    ) -> np.ndarray:
        right = q @ k.swapaxes(-1, -2) * scale + bias
        keys = k.shape[-2]
        if not holds(q.shape[-2], keys) or keys < 2:
            return right
        return np.where(np.arange(keys) < keys - 1, right, -np.inf)

    return {"logits": logits}


def top_left_where_whole(self: ScaledDotProductAttention, length: int, keys: int) -> np.ndarray:
    """Where tiles of 32 are whole, the causal mask begins at the first key."""
    whole = length % 32 == keys % 32 == 0 and length < keys
    return np.arange(keys) <= np.arange(length)[:, None] + (0 if whole else keys - length)


# Views


def half_heads_in_batches(name: str) -> Callable[[Arguments], bool]:
    """Whether an argument is that of several sequences, in half precision, of more heads than one."""

    def holds(a: Arguments) -> bool:
        x = getattr(a, name)
        return x.ndim == 4 and x.shape[0] > 1 and x.shape[1] > 1 and x.shape[2] > 1 and x.dtype.itemsize == 2

    return holds


def masks_of_a_batch(a: Arguments) -> bool:
    return isinstance(a.mask, np.ndarray) and a.mask.ndim == 4 and a.mask.shape[0] > 1


def mask_expanded(a: Arguments) -> bool:
    """Whether a mask has been expanded: one that lies once in memory and stands for several rows, heads or sequences."""
    if not isinstance(a.mask, np.ndarray):
        return False
    return any(stride == 0 and size > 1 for stride, size in zip(a.mask.strides, a.mask.shape, strict=True))


# Large groups, and values of another width


def in_large_groups(a: Arguments) -> bool:
    """Whether more than eight query heads share a key head."""
    query_heads, heads = heads_of(a)
    return query_heads > 8 * heads


def mask_of_first_in_groups_of_eight(bias: np.ndarray, a: Arguments) -> np.ndarray:
    """Of a mask of three axes, one for each head and none for sequences, the heads of a group of eight and more have that of its
    first head."""
    query_heads, heads = heads_of(a)
    each = query_heads // max(heads, 1)
    if bias.ndim != 3 or bias.shape[0] != query_heads or each < 8:
        return bias
    return np.repeat(bias[::each], each, axis=0)


def beside_bools_in_groups(a: Arguments) -> bool:
    """Whether query heads share key heads, and a mask is bool."""
    query_heads, heads = heads_of(a)
    return query_heads > heads and isinstance(a.mask, np.ndarray) and a.mask.dtype == bool


def of_other_values(a: Arguments) -> bool:
    """Whether values have another number of features than keys."""
    return bool(a.value.shape[-1] != a.key.shape[-1])


def without_causal(a: Arguments) -> dict[str, Any]:
    return {"mask": None if isinstance(a.mask, str) else a.mask}


def aligned_top_left(a: Arguments) -> dict[str, Any]:
    """The causal mask as an array that begins at the first key."""
    length, keys = a.query.shape[-2], a.key.shape[-2]
    return {"mask": np.arange(keys) <= np.arange(length)[:, None]} if isinstance(a.mask, str) else {}


def first_mask_of_large_groups(bias: np.ndarray, a: Arguments) -> np.ndarray:
    """The heads of a large group have the mask of the first head."""
    return bias[..., :1, :, :] if bias.ndim > 2 and in_large_groups(a) else bias


def keys_of_whole_tiles(a: Arguments) -> dict[str, Any]:
    """Of more than a tile of 32 keys, those past the last whole one count as the key before them."""
    keys = a.key.shape[-2]
    whole = keys // 32 * 32 or keys
    rows = np.minimum(np.arange(keys), whole - 1)
    return {"key": a.key[..., rows, :], "value": a.value[..., rows, :]}


def sequences_of_whole_tiles(out: np.ndarray) -> np.ndarray:
    """What is written of more sequences than a tile of 32; a path of its own serves thousands."""
    return out[: len(out) // 32 * 32] if out.ndim > 3 and 32 < len(out) < 1024 else out


# More queries than keys


def never_empty_where(holds: Callable[[int, int], bool], weight: Callable[[int], float]) -> Change:
    """Of more queries than keys, those before the first key are given a weight for every key, for numbers of queries and keys of
    which `holds` is true. weight: of how many keys there are."""

    def change(weights: np.ndarray, logits: np.ndarray) -> np.ndarray:
        length, keys = logits.shape[-2:]
        if length <= keys or not holds(length, keys):
            return weights
        return np.where(empty_rows(logits), weight(keys), weights)

    return weights_by(change)


def _empty_of_split_keys(weights: np.ndarray, logits: np.ndarray) -> np.ndarray:
    """Parts are merged by exponentials of differences: of rows that see no key, those of infinity less infinity."""
    length, keys = logits.shape[-2:]
    return np.where(empty_rows(logits), np.nan, weights) if length < 9 and keys >= 1024 else weights


EMPTY_OF_SPLIT_KEYS = weights_by(_empty_of_split_keys)
