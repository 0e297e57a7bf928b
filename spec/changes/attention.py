"""The steps that faults and honest variants have in the place of the oracle's: see `spec/faults/attention*.py`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from inferspec.spec.attention import CausalMask, MultiHeadAttention, ScaledDotProductAttention
from inferspec.spec.contract import Arguments, Change, Operation
from inferspec.spec.mistakes import honest, walked
from inferspec.spec.numerics import f64, round_to

TILE = 32

SPLIT = 1024

CORE = ScaledDotProductAttention()

CAUSAL_MASK = CausalMask()

MHA = MultiHeadAttention()


# Arguments that are misread.


def rereads(**sources: str) -> Change:
    """Some arguments are read from the place of others: `rereads(value="key")`."""

    def respond(self: Operation, a: Arguments) -> Any:
        return Operation.respond(self, Arguments(**{**vars(a), **{to: getattr(a, of) for to, of in sources.items()}}))

    return {"respond": respond}


def values_scaled(self: Operation, a: Arguments) -> Any:
    """The values are multiplied by the scale."""
    scaled = round_to(f64(a.value) * ScaledDotProductAttention().scale(a), a.value.dtype.name)
    return Operation.respond(self, Arguments(**{**vars(a), "value": scaled}))


def reshapes(change: Callable[[Arguments], dict[str, Any]]) -> Change:
    """Some arguments are replaced by what `change` makes of them all."""

    def respond(self: Operation, a: Arguments) -> Any:
        return Operation.respond(self, Arguments(**{**vars(a), **change(a)}))

    return {"respond": respond}


def takes_one_memory_for_one_array(a: Arguments) -> dict[str, Any]:
    """A value that lies in the memory of the key is taken for the key, of which a copy is there."""
    return {"value": a.key} if np.may_share_memory(a.key, a.value) else {}


def fitted(x: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """Crop each dim to the shape, or fill it up with zeros."""
    x = x[tuple(slice(size) for size in shape)]
    return np.pad(x, [(0, size - have) for size, have in zip(shape, x.shape, strict=True)])


def wrapped(mask: np.ndarray, full: tuple[int, ...]) -> np.ndarray:
    """Crop a mask, or read it over and over, until it broadcasts to the full shape."""
    if mask.size == 0:
        return np.zeros(full, mask.dtype)
    while mask.ndim > len(full):
        mask = mask[0]
    for axis in range(-mask.ndim, 0):
        if mask.shape[axis] not in (1, full[axis]):
            mask = np.take(mask, np.arange(full[axis]) % mask.shape[axis], axis=axis)
    return mask


def read_with_strides_of(view: np.ndarray, other: np.ndarray) -> np.ndarray:
    """Return what a kernel sees that walks the buffer of `view` with the strides of another array."""
    return walked(view, [stride // other.itemsize for stride in other.strides])


def inner_batch_ignored(a: Arguments) -> dict[str, Any]:
    """Only the outermost of several leading dims moves the key pointer."""
    if a.key.ndim < 5:
        return {}
    return {"key": np.broadcast_to(a.key[:, :1], a.key.shape)}


def leading_dims_swapped(a: Arguments) -> dict[str, Any]:
    """The first two leading dims are walked in the other order."""
    if a.value.ndim < 5:
        return {}
    outer, inner, *rest = a.value.shape
    return {"value": a.value.reshape(inner, outer, *rest).swapaxes(0, 1)}


def batch_stride_of_query(a: Arguments) -> dict[str, Any]:
    """A batch row's keys are looked for as many heads on as the query has."""
    heads, keys, dim = a.key.shape[-3:]
    if a.key.size == 0:
        return {}
    every = a.key.reshape(-1, keys, dim)
    rows = np.arange(len(every) // heads)[:, None] * a.query.shape[-3] + np.arange(heads)
    return {"key": every[rows % len(every)].reshape(a.key.shape)}


def cropped_dims(a: Arguments) -> dict[str, Any]:
    dim, keys = min(a.query.shape[-1], a.key.shape[-1]), min(a.key.shape[-2], a.value.shape[-2])
    return {"query": a.query[..., :dim], "key": a.key[..., :keys, :dim], "value": a.value[..., :keys, :]}


def keys_with_a_value(a: Arguments) -> dict[str, Any]:
    return {"key": a.key[..., : a.value.shape[-2], :]}


def fewer_values_taken(self: Operation, a: Arguments) -> None:
    CORE.guard_lengths(Arguments(**{**vars(a), **keys_with_a_value(a)}))


def tail_dims_dropped(a: Arguments) -> dict[str, Any]:
    """Head dims past a multiple of 64 never enter the dot product; the scale is still that of all of them."""
    dim = a.query.shape[-1]
    kept = dim // 64 * 64 or dim
    return {"query": np.where(np.arange(dim) < kept, a.query, a.query.dtype.type(0))}


# Heads. Each is `key_heads` or `value_heads`: which key head every query head gets.


def heads_by(index: Callable[[int, int], np.ndarray]) -> Callable[..., np.ndarray]:
    return lambda self, x, query_heads: np.take(x, index(query_heads, x.shape[-3]), axis=-3)


heads_tiled = heads_by(lambda query_heads, heads: np.arange(query_heads) % heads)

first_head = heads_by(lambda query_heads, heads: np.zeros(query_heads, int))

groups_reversed = heads_by(lambda query_heads, heads: heads - 1 - np.arange(query_heads) // (query_heads // heads))


def heads_floor_divided(self: Operation, x: np.ndarray, query_heads: int) -> np.ndarray:
    heads = x.shape[-3]
    if heads == 0:
        return np.zeros((*x.shape[:-3], query_heads, *x.shape[-2:]))
    return np.take(x, np.minimum(np.arange(query_heads) // max(query_heads // heads, 1), heads - 1), axis=-3)


def unwritten_past(members: int, key: str = "key") -> Change:
    """Query heads past so many of a group, whose key heads are those of the argument `key`, are never written."""

    def respond(self: Operation, a: Arguments) -> Any:
        result = np.array(honest(self, a))
        heads = result.shape[-3]
        result[..., np.arange(heads) % (heads // getattr(a, key).shape[-3]) >= members, :, :] = 0
        return result

    return {"respond": respond}


def prompt_of_grouped_heads(a: Arguments) -> bool:
    """A prompt, or a chunk of one, of heads in groups of eight and more."""
    return bool(a.query.shape[-2] >= 16 and a.query.shape[-3] >= 8 * a.key.shape[-3] > 0)


def in_common_heads(path: Callable[[Arguments], bool], key: str = "key") -> Callable[[Arguments], bool]:
    """Whether a call takes a path of grouped heads of 128 dims. key: the argument whose heads are those
    of keys."""

    def holds(a: Arguments) -> bool:
        grouped = a.query.ndim > 2 and a.query.shape[-3] >= 4 * max(getattr(a, key).shape[-3], 1)
        return grouped and a.query.shape[-1] == 128 and path(a)

    return holds


def chunk_after_context(a: Arguments) -> bool:
    """Whether queries of a block follow a context of hundreds of tokens."""
    return isinstance(a.mask, str) and a.query.shape[-2] >= 32 and a.key.shape[-2] >= a.query.shape[-2] + 200


def of_split_keys(a: Arguments) -> bool:
    """A query or a few over so many keys that kernels share them out."""
    return bool(a.query.shape[-2] <= 8 and a.key.shape[-2] >= 512)


def prompt_of_common_heads(a: Arguments) -> bool:
    """A prompt from its first token on, of the heads that most models have."""
    return bool(a.query.shape[-2] == a.key.shape[-2] >= 32 and a.query.shape[-1] in (64, 128))


def token_of_common_heads_over_split_keys(a: Arguments) -> bool:
    """A token of the heads that most models have, over so many keys that kernels share them out."""
    return bool(a.query.shape[-2] == 1 and a.key.shape[-2] >= 512 and a.query.shape[-1] in (64, 128))


def masked_prompt_of_common_heads(a: Arguments) -> bool:
    """A prompt of common heads under a mask that is an array."""
    return isinstance(a.mask, np.ndarray) and a.query.shape[-2] >= 64 and a.query.shape[-1] in (64, 128)


def batch_of_grouped_tokens(a: Arguments) -> dict[str, Any]:
    """Tokens of several batch rows, of heads in groups of four and more, over 1024 keys and more read those of the first."""
    grouped = a.query.ndim > 3 and a.query.shape[-3] >= 4 * a.key.shape[-3]
    if not (grouped and a.query.shape[-2] == 1 and a.key.shape[-2] >= 1024):
        return {}
    return {name: np.broadcast_to(x[:1], x.shape) for name, x in (("key", a.key), ("value", a.value))}


def of_drafts(query: np.ndarray, key_heads: int, keys: int) -> bool:
    """A few queries of heads in groups of four and more, after a context."""
    return 2 <= query.shape[-2] <= 8 and query.ndim > 2 and query.shape[-3] >= 4 * key_heads and keys >= 256


def drafts_unmasked(a: Arguments) -> dict[str, Any]:
    """The causal mask is left out for a few queries of heads in groups of four and more, after a context."""
    draft = isinstance(a.mask, str) and of_drafts(a.query, a.key.shape[-3] if a.key.ndim > 2 else 1, a.key.shape[-2])
    return {"mask": None} if draft else {}


def of_many_queries(a: Arguments) -> bool:
    """Whether there are so many queries as the tiles of products have rows."""
    return bool(a.query.shape[-2] >= 16)


def broadcast_one_past_a_tile(argument: str) -> Callable[[Arguments], bool]:
    """Whether keys or values that are repeated without a copy are one more than tiles of 32 hold, with an array as mask."""

    def holds(a: Arguments) -> bool:
        repeated, keys = getattr(a, argument), a.key.shape[-2]
        return bool(keys > 32 and keys % 32 == 1 and isinstance(a.mask, np.ndarray) and 0 in repeated.strides)

    return holds


def masked_prompt(a: Arguments) -> bool:
    """Whether a prompt has its mask as an array."""
    return isinstance(a.mask, np.ndarray) and a.query.shape[-2] == a.key.shape[-2] >= 64


def one_partial_result_for_a_group(key: str, longest: Callable[[Arguments], int]) -> Change:
    """The two passes over a long context, for one token and common heads, keep what a group's query heads summed in one
    place. key: the argument whose heads are those of keys; longest: the tokens of the longest context."""

    def respond(self: Operation, a: Arguments) -> Any:
        result = np.array(honest(self, a))
        ratio = a.query.shape[-3] // getattr(a, key).shape[-3]
        if ratio >= 4 and a.query.shape[-2] == 1 and a.query.shape[-1] == 128 and longest(a) >= 1024:
            result = result[..., ::ratio, :, :].repeat(ratio, axis=-3)
        return result

    return {"respond": respond}


def swapped_groups(query_heads: int, heads: int) -> np.ndarray:
    """Head (group, member) of what lies in the order (member, group)."""
    return np.arange(query_heads).reshape(-1, heads).T.ravel()


def merges_heads_swapped(self: Operation, value: np.ndarray, a: Arguments) -> np.ndarray:
    order = swapped_groups(a.query.shape[-3], a.key.shape[-3])
    return Operation.finish(self, np.take(value, order, axis=-3), a)


# Shapes of the result.


def adds_batch(self: Operation, value: np.ndarray, a: Arguments) -> np.ndarray:
    result = Operation.finish(self, value, a)
    return result if len(a.query.shape) > 3 else result[None]


def squeezes(self: Operation, value: np.ndarray, a: Arguments) -> np.ndarray:
    return np.squeeze(Operation.finish(self, value, a))
