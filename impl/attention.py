"""Scaled dot-product attention, its causal mask, and multi-head attention: in MLX, and on a CPU by our own kernel.

Shapes: N.. any leading dims (none too), H_q query heads, H key/value heads, L queries, S keys, D head dim, E features.
Everything between the inputs and the result is computed in float32; the result is rounded once, to the query's dtype.

Sources: Vaswani et al. 2017, section 3.2; Ainslie et al. 2023 (grouped heads); the tiny-llm course, week 1 days 1, 3.
"""

from __future__ import annotations

from functools import partial

import mlx.core as mx

from inferspec.impl.kernels.cpu import attention as kernel


def scaled_dot_product_attention(
    query: mx.array,
    key: mx.array,
    value: mx.array,
    *,
    scale: float | None = None,
    mask: mx.array | str | None = None,
) -> mx.array:
    """Return softmax(query · keyᵀ · scale + mask) · value.

    query: N..×H_q×L×D; key and value: N..×H×S×D, H_q a multiple of H: query head h reads key head h // (H_q / H).
    scale: what the logits are multiplied by, D^-0.5 by default.
    mask: None; "causal" (query i sees the keys j <= i + S - L); or an array that broadcasts to N..×H_q×L×S, either bool
    (True is visible) or floating-point and added to the scaled logits (-inf or the dtype's lowest number hides a key).

    The result is N..×H_q×L×D in the query's dtype; a row that sees no key is zeros. Keys and values are never repeated
    for their query heads. ValueError for shapes that do not fit, for an unknown mask name; TypeError for wrong dtypes.
    """
    check_inputs(query, key, value)
    check_mask(mask, (*query.shape[:-1], key.shape[-2]))
    if query.size == 0 or key.shape[-2] == 0:
        return mx.zeros(query.shape, query.dtype)

    factor = query.shape[-1] ** -0.5 if scale is None else float(scale)
    if kernel.takes(query, key, value, *([mask] if isinstance(mask, mx.array) and mask.dtype != mx.bool_ else [])):
        return kernel.dense(query, key, value, factor, mask, plain=partial(_composed, factor))
    return _composed(factor, query, key, value, mask)


def _composed(
    factor: float, query: mx.array, key: mx.array, value: mx.array, mask: mx.array | str | None = None
) -> mx.array:
    """Attention of MLX's operations."""
    *leading, query_heads, length, dim = query.shape
    heads, keys = key.shape[-3:-1]
    # The query heads of one key head are so many more rows to multiply with it: nothing is broadcast or repeated.
    grouped = (*leading, heads, query_heads // heads * length, dim)
    q, k, v = (x.astype(mx.float32) for x in (query.reshape(grouped), key, value))
    logits = (q * factor) @ k.swapaxes(-1, -2)
    weights = _softmax(logits.reshape(*query.shape[:-1], keys), mask)
    attended = weights.reshape(*grouped[:-1], keys) @ v
    return attended.reshape(query.shape).astype(query.dtype)


def causal_mask(L: int, S: int, dtype: mx.Dtype = mx.float32) -> mx.array:
    """Return the additive causal mask, L×S: 0 where query i sees key j (j <= i + S - L), -inf elsewhere.

    Where L > S the first L - S rows see nothing. ValueError for negative lengths, TypeError unless dtype is a
    floating-point one.
    """
    for name, length in (("L", L), ("S", S)):
        if length < 0:
            raise ValueError(f"{name} is {length}; it takes a length, 0 or more")
    if not mx.issubdtype(dtype, mx.floating):
        raise TypeError(f"dtype is {dtype}; it takes a floating-point dtype")
    return mx.where(_causal(L, S), 0.0, -mx.inf).astype(dtype)


class MultiHeadAttention:
    """Project query, key and value, attend head by head, project back (Vaswani et al. 2017, section 3.2.2).

    wq, wk, wv: (H·D)×E; wo: E×(H·D), with E the hidden_size and H the num_heads. The head dim D is the rows of wq
    over num_heads, which need not be hidden_size / num_heads. ValueError for weights that do not fit, TypeError for
    weights that are not floating-point.
    """

    def __init__(
        self, hidden_size: int, num_heads: int, wq: mx.array, wk: mx.array, wv: mx.array, wo: mx.array
    ) -> None:
        if num_heads < 1:
            raise ValueError(f"num_heads is {num_heads}; it takes 1 or more")
        if wq.ndim != 2 or wq.shape[0] % num_heads:
            raise ValueError(f"wq is {wq.shape}; it takes a matrix whose rows are a multiple of {num_heads} heads")
        rows = wq.shape[0]
        for name, weight in (("wq", wq), ("wk", wk), ("wv", wv), ("wo", wo)):
            fitting = (hidden_size, rows) if name == "wo" else (rows, hidden_size)
            if weight.shape != fitting:
                raise ValueError(
                    f"{name} is {weight.shape}; with hidden_size {hidden_size} and {rows} rows of wq it takes {fitting}"
                )
            _check_floating(name, weight)
        self.hidden_size, self.num_heads = hidden_size, num_heads
        self.wq, self.wk, self.wv, self.wo = wq, wk, wv, wo

    def __call__(self, query: mx.array, key: mx.array, value: mx.array, mask: mx.array | str | None = None) -> mx.array:
        """Return attention of query (N..×L×E) over key and value (N..×S×E): N..×L×E in the query's dtype.

        mask: as for `scaled_dot_product_attention`, broadcastable to N..×H×L×S. ValueError for shapes that do not fit
        and for an unknown mask name, TypeError for wrong dtypes.
        """
        for name, x in (("query", query), ("key", key), ("value", value)):
            if x.ndim < 2 or x.shape[-1] != self.hidden_size:
                raise ValueError(
                    f"{name} is {x.shape}; it takes leading dims, a length and {self.hidden_size} features"
                )
            if x.shape[:-2] != query.shape[:-2]:
                raise ValueError(f"{name} is {x.shape}; it takes the leading dims of query, {query.shape[:-2]}")
            _check_floating(name, x)
        if value.shape != key.shape:
            raise ValueError(f"value is {value.shape}; it takes the shape of key, {key.shape}")
        check_mask(mask, (*query.shape[:-2], self.num_heads, query.shape[-2], key.shape[-2]))

        attended = scaled_dot_product_attention(
            self._split(query @ self.wq.T),
            self._split(key @ self.wk.T),
            self._split(value @ self.wv.T),
            mask=mask,
        )
        merged = attended.swapaxes(-2, -3).reshape(*query.shape[:-1], self.wo.shape[1])
        return (merged @ self.wo.T).astype(query.dtype)

    def _split(self, x: mx.array) -> mx.array:
        """N..×L×(H·D) -> N..×H×L×D."""
        head_dim = self.wq.shape[0] // self.num_heads
        return x.reshape(*x.shape[:-1], self.num_heads, head_dim).swapaxes(-2, -3)


def _causal(length: int, keys: int) -> mx.array:
    """Whether query i sees key j, L×S: the last query sees the last key."""
    return mx.arange(keys) <= mx.arange(length)[:, None] + (keys - length)


def _softmax(logits: mx.array, mask: mx.array | str | None) -> mx.array:
    """Return the weights of the visible keys, in float32; a row that sees none has no weight."""
    if mask is None:
        return mx.softmax(logits, axis=-1)
    if isinstance(mask, str):
        visible = _causal(*logits.shape[-2:])
    elif mask.dtype == mx.bool_:
        visible = mask
    else:
        visible = mx.logical_not(mask <= mx.finfo(mask.dtype).min)
        logits = logits + mask.astype(mx.float32)
    # The softmax of a row of -inf is NaN, and none of its keys is visible.
    weights = mx.softmax(mx.where(visible, logits, -mx.inf), axis=-1)
    return mx.where(visible, weights, 0.0)


def check_inputs(query: mx.array, key: mx.array, value: mx.array) -> None:
    """ValueError or TypeError for what `scaled_dot_product_attention` does not take."""
    for name, x in (("query", query), ("key", key), ("value", value)):
        if x.ndim < 3:
            raise ValueError(f"{name} is {x.shape}; it takes at least 3 dims: heads, length, head dim")
        if x.shape[:-3] != query.shape[:-3]:
            raise ValueError(f"{name} is {x.shape}; it takes the leading dims of query, {query.shape[:-3]}")
        if x.shape[-1] != query.shape[-1]:
            raise ValueError(f"{name} is {x.shape}; it takes the head dim of query, {query.shape[-1]}")
        _check_floating(name, x)
    if value.shape != key.shape:
        raise ValueError(f"value is {value.shape}; it takes the shape of key, {key.shape}")
    if key.shape[-3] == 0 or query.shape[-3] % key.shape[-3]:
        raise ValueError(f"query has {query.shape[-3]} heads; it takes a multiple of the {key.shape[-3]} of key")


def check_mask(mask: mx.array | str | None, full: tuple[int, ...]) -> None:
    """ValueError or TypeError for a mask that is none of None, "causal" or an array that broadcasts to `full`."""
    if mask is None:
        return
    if isinstance(mask, str):
        if mask != "causal":
            raise ValueError(f"mask is {mask!r}; the only name that it takes is 'causal'")
        return
    if not isinstance(mask, mx.array):
        raise TypeError(f"mask is a {type(mask).__name__}; it takes None, 'causal' or an array")
    if mask.dtype != mx.bool_ and not mx.issubdtype(mask.dtype, mx.floating):
        raise TypeError(f"mask has dtype {mask.dtype}; it takes bool or a floating-point dtype")
    aligned = zip(reversed(mask.shape), reversed(full), strict=False)
    if mask.ndim > len(full) or any(size not in (1, whole) for size, whole in aligned):
        raise ValueError(f"mask is {mask.shape}; it takes a shape that broadcasts to {full}")


def _check_floating(name: str, x: mx.array) -> None:
    if not mx.issubdtype(x.dtype, mx.floating):
        raise TypeError(f"{name} has dtype {x.dtype}; it takes a floating-point dtype")
