"""Launches attention on the CPU: of dense keys and values, and of those in the pages of a pool."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from typing import Any

import mlx.core as mx
import numpy as np

from inferspec.impl.kernels.cpu import library
from inferspec.impl.kernels.cpu.buffers import DTYPES, Result, View
from inferspec.impl.kernels.cpu.transforms import transformable

NO_MASK, CAUSAL, BOOLEAN, ADDITIVE = range(4)
"""MaskKind of source/attention.h."""

Mask = mx.array | str | None


class _Tensor(ctypes.Structure):
    _fields_ = (("data", ctypes.c_void_p), ("strides", ctypes.POINTER(ctypes.c_int64)), ("dtype", ctypes.c_int))


class _Dense(ctypes.Structure):
    """DenseAttention of source/attention.h."""

    _fields_ = (
        ("query", _Tensor),
        ("key", _Tensor),
        ("value", _Tensor),
        ("mask", _Tensor),
        ("result", ctypes.c_void_p),
        ("leading", ctypes.POINTER(ctypes.c_int64)),
        ("leading_dims", ctypes.c_int64),
        ("query_heads", ctypes.c_int64),
        ("heads", ctypes.c_int64),
        ("queries", ctypes.c_int64),
        ("keys", ctypes.c_int64),
        ("features", ctypes.c_int64),
        ("scale", ctypes.c_float),
        ("mask_kind", ctypes.c_int),
    )


class _Paged(ctypes.Structure):
    """PagedAttention of source/attention.h."""

    _fields_ = (
        ("query", _Tensor),
        ("key_pages", _Tensor),
        ("value_pages", _Tensor),
        ("block_table", ctypes.c_void_p),
        ("context_lens", ctypes.c_void_p),
        ("result", ctypes.c_void_p),
        ("batch", ctypes.c_int64),
        ("query_heads", ctypes.c_int64),
        ("heads", ctypes.c_int64),
        ("queries", ctypes.c_int64),
        ("features", ctypes.c_int64),
        ("page_size", ctypes.c_int64),
        ("max_pages", ctypes.c_int64),
        ("scale", ctypes.c_float),
        ("mask_kind", ctypes.c_int),
    )


def takes(*arrays: mx.array) -> bool:
    """Whether the kernels run here, on floating-point arrays of these dtypes."""
    return all(array.dtype in DTYPES for array in arrays) and library.available()


def dense(
    query: mx.array,
    key: mx.array,
    value: mx.array,
    scale: float,
    mask: Mask,
    plain: Callable[..., mx.array],
    threads: int | None = None,
) -> mx.array:
    """Return softmax(query · keyᵀ · scale + mask) · value; the arguments are checked already, and no array is empty.

    query: N..×H_q×L×D; key and value: N..×H×S×D, each of any strides and dtype that `takes`; mask: None, "causal", or an
    array that broadcasts to N..×H_q×L×S, bool or of such a dtype. plain: the same of (query, key, value, mask) in MLX's
    operations, for its function transformations. The result does not depend on the number of threads.
    """
    if isinstance(mask, mx.array) and mask.dtype != mx.bool_:
        launch = transformable(lambda q, k, v, m: _dense(q, k, v, scale, m, threads), plain)
        return launch(query, key, value, mask)
    launch = transformable(
        lambda q, k, v: _dense(q, k, v, scale, mask, threads),
        lambda q, k, v: plain(q, k, v, mask),
        constants=[mask] if isinstance(mask, mx.array) else [],
    )
    return launch(query, key, value)


def paged(
    query: mx.array,
    key_pages: mx.array,
    value_pages: mx.array,
    block_table: np.ndarray,
    context_lens: np.ndarray,
    scale: float,
    causal: bool,
    plain: Callable[..., mx.array],
    threads: int | None = None,
) -> mx.array:
    """Return attention of each row's queries over the tokens in its pages; the arguments are checked already.

    query: B×H_q×L×D; key_pages and value_pages: P×H×page_size×D, each of any strides and dtype that `takes`; block_table:
    B×max_pages and context_lens: B, int64 without gaps. Nothing of pool and table past a context is read, and nothing is gathered.
    plain: the same of (query, key_pages, value_pages) in MLX's operations.
    """
    return transformable(lambda q, k, v: _paged(q, k, v, block_table, context_lens, scale, causal, threads), plain)(
        query, key_pages, value_pages
    )


def _dense(q: mx.array, k: mx.array, v: mx.array, scale: float, mask: Mask, threads: int | None) -> mx.array:
    *leading, query_heads, queries, features = q.shape
    heads, keys = k.shape[-3:-1]
    views = [View(x) for x in (q, k, v)]
    tensors = [_tensor(view, view.strides) for view in views]
    if isinstance(mask, mx.array):
        view = View(mask)
        views.append(view)
        kind = BOOLEAN if mask.dtype == mx.bool_ else ADDITIVE
        tensors.append(_tensor(view, _broadcast(view, q.ndim)))
    else:
        kind = CAUSAL if mask else NO_MASK
        tensors.append(_Tensor())
    result = Result(q.shape, q.dtype)
    call = _Dense(
        *tensors,
        result.pointer,
        _integers(leading),
        len(leading),
        query_heads,
        heads,
        queries,
        keys,
        features,
        scale,
        kind,
    )
    _run(library.load().inferspec_attend_dense, call, threads)
    return result.array()


def _paged(
    q: mx.array,
    k: mx.array,
    v: mx.array,
    table: np.ndarray,
    lens: np.ndarray,
    scale: float,
    causal: bool,
    threads: int | None,
) -> mx.array:
    batch, query_heads, queries, features = q.shape
    views = [View(x) for x in (q, k, v)]
    result = Result(q.shape, q.dtype)
    call = _Paged(
        *(_tensor(view, view.strides) for view in views),
        table.ctypes.data,
        lens.ctypes.data,
        result.pointer,
        batch,
        query_heads,
        k.shape[1],
        queries,
        features,
        k.shape[2],
        table.shape[1],
        scale,
        CAUSAL if causal else NO_MASK,
    )
    _run(library.load().inferspec_attend_paged, call, threads)
    return result.array()


def _run(function: Any, call: ctypes.Structure, threads: int | None) -> None:
    library.check(function(ctypes.byref(call), library.threads(threads)))


def _tensor(view: View, strides: Sequence[int]) -> _Tensor:
    return _Tensor(view.pointer, _integers(strides), max(view.dtype, 0))


def _broadcast(view: View, dims: int) -> list[int]:
    """Strides as of an array of so many dims: 0 along those that the view does not have, or has 1 of."""
    own = [0 if size == 1 else stride for size, stride in zip(view.shape, view.strides, strict=True)]
    return [0] * (dims - len(own)) + own


def _integers(values: Sequence[int]) -> Any:
    return (ctypes.c_int64 * len(values))(*values)
