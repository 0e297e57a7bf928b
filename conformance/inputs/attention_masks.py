"""Masks that are arrays, and calls of attention with one of them."""

from __future__ import annotations

import numpy as np

from inferspec.conformance.calls import Call
from inferspec.conformance.strategies import Pick
from inferspec.spec.attention import ScaledDotProductAttention
from inferspec.spec.numerics import f64, largest, numpy_dtype

ENCODINGS = ["bool", "-inf", "lowest"]
"""Those of an array mask that hides keys."""


def without_beginning(call: Call, part: float) -> Call:
    """The call with a mask, in the encoding that it has, that hides the first keys: that part of them."""
    keys = call.arguments["key"].shape[-2]
    visible = np.arange(keys) >= int(part * keys)
    return call.having(mask=encoded(visible[None, :], call.features["masks"], call.features["dtypes"]))


def hidden_from_a_head(call: Call, head: int, late: bool, seen: bool = False) -> Call:
    """The call with a mask, in the encoding that it has, that hides the first half of the keys, or the last, from one head alone;
    seen: from all others."""
    heads, keys = call.arguments["query"].shape[-3], call.arguments["key"].shape[-2]
    visible = np.ones((heads, 1, keys), bool)
    hidden = (np.arange(heads) == head % heads) != seen
    visible[hidden, :, slice(keys // 2, None) if late else slice(keys // 2)] = False
    return call.having(mask=encoded(visible, call.features["masks"], call.features["dtypes"]))


def without_a_stretch(call: Call, first: int, keys: int) -> Call:
    """The call with a mask, in the encoding that it has, that hides so many keys from the first one on, counted from the end
    where that is below 0, and every other one of the rest from every other row."""
    query, places = call.arguments["query"], np.arange(call.arguments["key"].shape[-2])
    begin = first % len(places)
    hidden = (places >= begin) & (places < begin + keys)
    odd = (np.arange(query.shape[-2])[:, None] % 2 == 1) & (places % 2 == 1)
    return call.having(mask=encoded(~(hidden | odd), call.features["masks"], call.features["dtypes"]))


def array_mask(pick: Pick, encoding: str, full: tuple[int, ...], dtype: str, rank: int | None = None) -> np.ndarray:
    """A mask of any shape (or of any with `rank` dims) that broadcasts to `full`, in one of the encodings.

    Every row sees a key. Few have a mask of no axes: it is drawn where `rank` asks for it alone.
    """
    rank = pick.one_of(*range(len(full), 0, -1)) if rank is None else rank
    shape = tuple(n if pick.one_of(True, True, False) else 1 for n in full[len(full) - rank :])
    if encoding == "additive":
        finite = pick.normal(*shape, dtype=dtype, amplitude=1.5)
        # A finite number hides nothing, however low: softmax is the same with it under every key.
        return np.asarray(f64(finite) - 2.0**14 * pick.one_of(0.0, 0.0, 1.0)).astype(finite.dtype)
    visible = pick.random.random(shape) < 0.6
    if shape:
        chosen = pick.random.integers(0, shape[-1], shape[:-1])
        visible = visible | (np.arange(shape[-1]) == chosen[..., None])
    mask = encoded(np.asarray(visible | (not shape)), encoding, dtype)
    if encoding == "bool" or pick.one_of(True, False):
        return mask
    # Biases beside hidden keys, as ALiBi with a causal mask has them.
    return np.where(f64(mask) == 0, pick.normal(*shape, dtype=dtype), mask)


def masks_in_a_row(call: Call, seed: int, count: int = 6) -> list[np.ndarray]:
    """Masks of one shape for a call, in the encoding that it has, each with other keys hidden; every row sees a key."""
    random, dtype, encoding = np.random.default_rng(seed), call.features["dtypes"], call.features["masks"]
    shape = (call.arguments["query"].shape[-2], call.arguments["key"].shape[-2])
    if encoding == "additive":
        return [random.normal(size=shape).astype(np.float32).astype(numpy_dtype(dtype)) for _ in range(count)]
    chosen = random.integers(0, shape[-1], (count, shape[0], 1))
    visible = (random.random((count, *shape)) < 0.4) | (np.arange(shape[-1]) == chosen)
    return [encoded(of_one, encoding, dtype) for of_one in visible]


def encoded(visible: np.ndarray, encoding: str, dtype: str) -> np.ndarray:
    """A mask that hides what is not visible, in one of the encodings."""
    if encoding == "bool":
        return visible
    hidden = -np.inf if encoding == "-inf" else -largest(dtype)
    return np.where(visible, 0.0, hidden).astype(numpy_dtype(dtype))


def seeing(call: Call) -> np.ndarray:
    """N..×H_q×L×1: which rows see a key at all."""
    operation = ScaledDotProductAttention()
    bias = operation.bias(operation.bind(call.arguments))
    shape = (*call.arguments["query"].shape[:-1], call.arguments["key"].shape[-2])
    return np.isfinite(np.broadcast_to(bias, shape)).any(axis=-1, keepdims=True)


def causal_as_array(call: Call, encoding: str) -> Call:
    """The same call with its causal mask as an array, L×S."""
    length, keys = call.arguments["query"].shape[-2], call.arguments["key"].shape[-2]
    visible = ScaledDotProductAttention().visible(length, keys)
    mask = encoded(visible, encoding, call.features["dtypes"])
    return call.having(mask=mask).featuring(masks=encoding)


HIDDEN_STRETCHES = ((64, 200), (-100, 100), (300, 64), (0, 400))
"""The first hidden key of hundreds and how many there are: whole parts that kernels share out see nothing, wherever they lie."""


def with_hidden_heads(call: Call, seed: int) -> Call:
    """The call under a mask that hides every key from some of the heads, from two and more where there are so many, and from
    no row of the others."""
    *_, heads, length, _ = call.arguments["query"].shape
    keys, draw = call.arguments["key"].shape[-2], np.random.default_rng(seed)
    hidden = np.isin(np.arange(heads), draw.permutation(heads)[: max(heads // 2, 1)])
    visible = np.broadcast_to(~hidden[:, None, None], (heads, length, keys))
    return call.having(mask=encoded(visible, call.features["masks"], call.features["dtypes"]))


ARRAYS = [*ENCODINGS, "additive"]
"""Masks that are arrays."""
