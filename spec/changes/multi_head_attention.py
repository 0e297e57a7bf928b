"""What is projected, split and merged otherwise: see `spec/faults/multi_head_attention.py`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from inferspec.spec.attention import ScaledDotProductAttention
from inferspec.spec.changes.attention import CORE, MHA, fitted
from inferspec.spec.contract import Arguments, Change, Operation, changed
from inferspec.spec.mistakes import first_of, honest
from inferspec.spec.numerics import f64

# Which path a call takes.


def of_free_heads(a: Arguments) -> bool:
    """Whether the heads have another size than the hidden features over their number."""
    return bool(a.wq.shape[0] != a.hidden_size)


def of_wide_heads(a: Arguments) -> bool:
    return bool(len(a.wq) >= 64 * a.num_heads)


def of_many_heads(a: Arguments) -> bool:
    return bool(a.num_heads > 8)


def of_a_late_token(a: Arguments) -> bool:
    return bool(a.query.shape[-2] == 1 and a.key.shape[-2] > 64)


def of_prompts(a: Arguments) -> bool:
    """Whether there are more than 16 queries."""
    return bool(a.query.shape[-2] > 16)


def of_array_masks_over_hundreds(a: Arguments) -> bool:
    """Whether the mask is an array, over more than 256 keys."""
    return isinstance(a.mask, np.ndarray) and bool(a.key.shape[-2] > 256)


def of_prompts_past_eight_sequences(a: Arguments) -> bool:
    """Whether there are more than 64 queries of more than eight sequences."""
    return bool(a.query.ndim == 3 and len(a.query) > 8 and a.query.shape[-2] > 64)


def of_one_array(a: Arguments) -> bool:
    """Whether query, key and value are one array, whose projections can be joined."""
    return a.query is a.key and a.key is a.value


def of_one_memory(a: Arguments) -> bool:
    """Whether key and value, and not the query, are one array: a decoder attends to an encoder."""
    return a.key is a.value and a.query is not a.key


def of_dims(dims: int) -> Callable[[Arguments], bool]:
    """Whether heads have so many features."""
    return lambda a: bool(len(a.wq) == dims * a.num_heads)


def masked_where(holds: Callable[[Arguments], bool]) -> Callable[[Arguments], bool]:
    """Whether there is a mask, on a path."""
    return lambda a: holds(a) and a.mask is not None


# What is done otherwise.


def masked_as_at_first(self: Operation, a: Arguments) -> Arguments:
    """The causal mask lets see as many keys more than there are queries as when it was first made."""
    if not isinstance(a.mask, str):
        return a
    length, keys = a.query.shape[-2], a.key.shape[-2]
    more = first_of(self, "more keys", keys - length)
    return Arguments(**{**vars(a), "mask": np.arange(keys) <= np.arange(length)[:, None] + more})


def _value_of_the_query(self: Operation, a: Arguments) -> Any:
    return honest(self, Arguments(**{**vars(a), "value": a.query}))


value_of_the_query: Change = {"respond": _value_of_the_query}
"""One array is taken to be all three."""


def keys_up_to(most: Callable[[int], int]) -> Change:
    """Where the mask is no array, only the first keys and values are looked at, as many as `most` says."""

    def respond(self: Operation, a: Arguments) -> Any:
        if isinstance(a.mask, np.ndarray):
            return honest(self, a)
        length, keys = a.query.shape[-2], a.key.shape[-2]
        seen = slice(most(keys))
        mask = None if a.mask is None else CORE.visible(length, keys)[:, seen]
        given = {"key": a.key[..., seen, :], "value": a.value[..., seen, :], "mask": mask}
        return honest(self, Arguments(**{**vars(a), **given}))

    return {"respond": respond}


def top_left(self: Operation, a: Arguments) -> Arguments:
    """The causal mask lets query i see the keys up to i."""
    if not isinstance(a.mask, str):
        return a
    rows, keys = (np.arange(x.shape[-2]) for x in (a.query, a.key))
    return Arguments(**{**vars(a), "mask": keys <= rows[:, None]})


def masked_by_sequences(self: Operation, a: Arguments) -> Arguments:
    """A mask of three axes, the first as long as the batch, is that of all heads of each sequence."""
    batch = isinstance(a.mask, np.ndarray) and a.mask.ndim == 3 == a.query.ndim and len(a.mask) == len(a.query)
    return Arguments(**{**vars(a), "mask": a.mask[:, None]}) if batch else a


def masked_as_before(self: Operation, a: Arguments) -> Arguments:
    """Where there is no mask, that of the call before, if it was of as many heads and the same lengths."""
    sizes, held = (a.num_heads, a.query.shape[:-1], a.key.shape[:-1]), first_of(self, "masks", {})
    if a.mask is not None:
        held[sizes] = a.mask
    return Arguments(**{**vars(a), "mask": held.get(sizes)})


def split_interleaved(self: Operation, x: np.ndarray, heads: int) -> np.ndarray:
    return np.moveaxis(x.reshape(*x.shape[:-1], x.shape[-1] // heads, heads), -1, -3)


def split_without_swap(self: Operation, x: np.ndarray, heads: int) -> np.ndarray:
    *leading, length, features = x.shape
    return x.reshape(*leading, heads, length, features // heads)


def merged_without_swap(self: Operation, x: np.ndarray) -> np.ndarray:
    *leading, heads, length, dim = x.shape
    return x.reshape(*leading, length, heads * dim)


def merged_interleaved(self: Operation, x: np.ndarray) -> np.ndarray:
    *leading, heads, length, dim = x.shape
    return np.moveaxis(x, -3, -1).reshape(*leading, length, dim * heads)


def merged_up_to_eight(self: Operation, x: np.ndarray) -> np.ndarray:
    return MHA.merge(np.where(np.arange(x.shape[-3])[:, None, None] < 8, x, 0.0))


def merged_up_to_row_16(self: Operation, x: np.ndarray) -> np.ndarray:
    merged = MHA.merge(x)
    if x.ndim > 3:
        merged[16:] = 0
    return merged


def masked_scale_of_hidden_head_dim(self: Operation, a: Arguments) -> float:
    return MHA.scale(a) if a.mask is None else (a.hidden_size / a.num_heads) ** -0.5


def masked_by_multiplying(self: Operation, x: np.ndarray, a: Arguments) -> np.ndarray:
    value = MHA.output(x, a)
    return value + 0.0 * np.roll(value, 1, axis=0)


def output_not_applied(self: Operation, x: np.ndarray, a: Arguments) -> np.ndarray:
    return fitted(x, (*x.shape[:-1], a.hidden_size))


def output_not_transposed(self: Operation, x: np.ndarray, a: Arguments) -> np.ndarray:
    return x @ f64(a.wo) if a.wo.shape[0] == a.wo.shape[1] else MHA.output(x, a)


def weights_fitted(a: Arguments, rows: int) -> dict[str, Any]:
    """Every weight cropped or filled up to so many rows of heads."""
    into = {name: fitted(getattr(a, name), (rows, a.hidden_size)) for name in ("wq", "wk", "wv")}
    return {**into, "wo": fitted(a.wo, (a.hidden_size, rows))}


def rows_of_hidden_size(a: Arguments) -> dict[str, Any]:
    """No more heads' features are read than the hidden size has."""
    return weights_fitted(a, min(a.wq.shape[0], max(a.hidden_size // a.num_heads, 1) * a.num_heads))


def features_fitted(a: Arguments) -> dict[str, Any]:
    inputs = {name: getattr(a, name) for name in ("query", "key", "value")}
    inputs = {name: fitted(x, (*x.shape[:-1], a.hidden_size)) for name, x in inputs.items()}
    return {**inputs, **weights_fitted(a, a.wq.shape[0])}


def whole_heads_only(a: Arguments) -> dict[str, Any]:
    heads = max(a.num_heads, 1)
    return {"num_heads": heads, **weights_fitted(a, a.wq.shape[0] // heads * heads)}


def guards_heads_only(self: Operation, a: Arguments) -> None:
    if a.num_heads < 1 or a.wq.shape[0] % a.num_heads:
        raise ValueError(f"wq has {a.wq.shape[0]} rows for {a.num_heads} heads")


def guards_all_but_heads(self: Operation, a: Arguments) -> None:
    if a.num_heads > 0 and a.wq.shape[0] % a.num_heads == 0:
        MHA.guard(a)


def guards_names_only(self: Operation, a: Arguments) -> None:
    if isinstance(a.mask, str):
        CORE.guard_mask(a)


def guards_arrays_only(self: Operation, a: Arguments) -> None:
    if not isinstance(a.mask, str):
        CORE.guard_mask(a)


def next_row(a: Arguments) -> dict[str, Any]:
    return {"key": np.roll(a.key, 1, axis=0)} if a.key.ndim > 2 else {}


def remasked_heads(change: Callable[[Arguments], Any]) -> Change:
    """Multi-head attention sees another mask."""
    return {"masked": lambda self, a: Arguments(**{**vars(a), "mask": change(a)})}


def mask_of_first_head(a: Arguments) -> Any:
    return a.mask[..., :1, :, :] if isinstance(a.mask, np.ndarray) and a.mask.ndim > 2 else a.mask


def mask_of_zeros(a: Arguments) -> Any:
    """A mask that is added is taken for one that hides: what it leaves at 0 is visible."""
    return a.mask == 0 if isinstance(a.mask, np.ndarray) and a.mask.dtype != bool else a.mask


def mask_up_to_a_hidden_part(a: Arguments) -> Any:
    """A part of 64 keys that no query sees is taken for the end of all: what comes after it is hidden too."""
    if not isinstance(a.mask, np.ndarray):
        return a.mask
    visible, keys = np.asarray(np.isfinite(CORE.bias(a))), a.key.shape[-2]
    seen: np.ndarray = np.broadcast_to(visible, (*visible.shape[:-1], keys)).reshape(-1, keys).max(axis=0)
    ends = (start for start in range(0, keys, 64) if not seen[start : start + 64].any())
    return visible & (np.arange(keys) < next(ends, keys))


def attending(change: Change) -> Change:
    """Multi-head attention whose inner attention is changed."""
    return {"core": changed(ScaledDotProductAttention, "core", change)()}
