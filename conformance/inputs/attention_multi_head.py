"""Calls of multi-head attention."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from inferspec.conformance.calls import Call
from inferspec.conformance.inputs.attention_lengths import a_late_token, lengths, taken
from inferspec.conformance.inputs.attention_masks import array_mask, encoded
from inferspec.conformance.strategies import Pick, calls, in_reach
from inferspec.spec.numerics import UNDERFLOW_GAP, f64, numpy_dtype


@calls
def multi_head_calls(
    pick: Pick,
    relation: str = "any",
    longest: int = 12,
    shapes: Any = None,
    heads: tuple[int, ...] = (1, 2, 3, 4, 5, 8),
    dims: tuple[int, ...] = (2, 4, 3, 8, 16, 33),
    batches: tuple[int, ...] = (),
    hidden: tuple[int, ...] = (),
) -> Call:
    """Multi-head attention with weights that keep activations near 1; L and S differ and head dims are free where claimed,
    and with them how many features there are, of which each head need not have a whole part.

    shapes: makes L and S of a `Pick`, in place of `relation` and `longest`. heads, dims: how many heads of which dims.
    batches: batch rows, in place of the leading dims that the envelope has. hidden: how many features, where head dims are free.
    """
    dtype, count, lead = pick("dtypes"), pick.one_of(*heads), tuple(pick("leading_dims"))
    lead = (pick.one_of(*batches),) if batches else lead
    dim = pick.one_of(*dims)
    features = count * dim
    if pick("free_head_dim"):
        step = 1 if True in pick.envelope["odd_hidden_size"] else count
        others = hidden or tuple(n for n in range(2, min(2 * features, 40) + 2) if n != features and n % step == 0)
        features = pick.one_of(*others)
    pick.features["odd_hidden_size"] = features % count > 0
    free = True in pick.envelope["other_lengths"]
    length, keys = shapes(pick) if shapes else lengths(pick, relation if free else "L=S", longest)
    length, keys = taken(pick, (length, keys if free else length))
    pick.features["other_lengths"] = length != keys
    rows = count * dim
    weights = {
        name: pick.normal(*shape, dtype=dtype, amplitude=1.2 / math.sqrt(shape[1]))
        for name, shape in {
            "wq": (rows, features),
            "wk": (rows, features),
            "wv": (rows, features),
            "wo": (features, rows),
        }.items()
    }
    inputs = {
        "query": pick.normal(*lead, length, features, dtype=dtype),
        "key": pick.normal(*lead, keys, features, dtype=dtype),
        # Past the range of float16 where the dtype reaches.
        "value": pick.normal(
            *lead, keys, features, dtype=dtype, amplitude=in_reach(pick.one_of(1.0, 1.0, 3e8), dtype, 100.0)
        ),
    }
    kind = pick("masks")
    mask: Any = {"none": None, "causal": "causal"}.get(kind, "")
    if mask == "":
        mask = array_mask(pick, kind, (*lead, count, length, keys), dtype)
    return pick.call("MultiHeadAttention", hidden_size=features, num_heads=count, **weights, **inputs, mask=mask)


@calls
def heads_on_other_paths(pick: Pick) -> Call:
    """Multi-head attention of heads of many features, of many heads, or of a token after many others; of each also where the size of
    heads is free."""
    # First: choices that have a byte of their own in every tape are spread evenly.
    heads, dims, shapes = pick.one_of(((1, 2), (64, 80), None), ((16, 9), (2, 4), None), ((2, 4), (4, 8), a_late_token))
    return multi_head_calls.build(pick, heads=heads, dims=dims, shapes=shapes, longest=9)


@calls
def routed_heads(pick: Pick) -> tuple[Call, np.ndarray]:
    """The exact lane of multi-head attention: (call, the exact result).

    Every weight is a permutation, the query asks for one key in each head by its one-hot code, so the result is a
    known rearrangement of whole numbers.
    """
    dtype, heads, random = pick("dtypes"), pick.size(1, 4), pick.random
    dim = pick.one_of(4, 8)
    keys, length, hidden = pick.size(2, dim), pick.size(1, 4), heads * dim
    length, keys = taken(pick, (length if True in pick.envelope["other_lengths"] else keys, keys))
    pick.features |= {"masks": "none", "free_head_dim": False, "odd_hidden_size": False}
    shuffles = {name: random.permutation(hidden) for name in ("wq", "wk", "wv", "wo")}
    weights = {
        name: np.eye(hidden)[shuffle].astype(np.float32).astype(numpy_dtype(dtype))
        for name, shuffle in shuffles.items()
    }
    codes = np.array([random.permutation(dim)[:keys] for _ in range(heads)])
    wanted = random.integers(0, keys, (heads, length))
    level = 2.0 ** math.ceil(math.log2(UNDERFLOW_GAP * math.sqrt(dim)))
    split_key = (np.arange(dim) == codes[..., None]).swapaxes(0, 1).reshape(keys, hidden)
    asked = np.take_along_axis(codes, wanted, axis=1)
    split_query = level * (np.arange(dim) == asked[..., None]).swapaxes(0, 1).reshape(length, hidden)
    value = pick.integers(-120, 120, (keys, hidden), "float32").astype(np.float64)
    per_head = value[:, shuffles["wv"]].reshape(keys, heads, dim).swapaxes(0, 1)
    attended = np.take_along_axis(per_head, wanted[..., None], axis=1).swapaxes(0, 1).reshape(length, hidden)

    def before(x: np.ndarray, shuffle: np.ndarray) -> np.ndarray:
        unshuffled = np.empty_like(x, dtype=np.float64)
        unshuffled[..., shuffle] = x
        return unshuffled.astype(np.float32).astype(numpy_dtype(dtype))[None]

    call = pick.call(
        "MultiHeadAttention",
        hidden_size=hidden,
        num_heads=heads,
        **weights,
        query=before(split_query, shuffles["wq"]),
        key=before(split_key, shuffles["wk"]),
        value=value[None].astype(np.float32).astype(numpy_dtype(dtype)),
    )
    return call, attended[:, shuffles["wo"]][None]


def with_loud_padding(call: Call) -> Call:
    """The call whose mask hides the last third of the keys from every query, where they and their values are so loud that
    adding -1e4 does not hide them, in float16 -100."""
    keys = call.arguments["key"].shape[-2]
    mask = encoded(np.arange(keys) < max(keys * 2 // 3, 1), call.features["masks"], call.features["dtypes"])
    return _louder(call, -(-keys // 3) if keys > 1 else 0).having(mask=mask)


def with_loud_last_token(call: Call) -> Call:
    """The causal call whose last key and value, which the last query alone sees, are as loud as that padding."""
    return _louder(call, 1)


def _louder(call: Call, tokens: int) -> Call:
    """The last tokens' keys and values are louder by far; -1e9, which many add to hide a key, still hides them."""
    size = in_reach(1e5, call.features["dtypes"], 30.0)

    def loud(x: np.ndarray) -> np.ndarray:
        last = np.arange(x.shape[-2])[:, None] >= x.shape[-2] - tokens
        return np.where(last, f64(x) * size, f64(x)).astype(np.float32).astype(x.dtype)

    return call.having(key=loud(call.arguments["key"]), value=loud(call.arguments["value"]))
