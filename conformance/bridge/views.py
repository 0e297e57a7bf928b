"""How an array argument may lie in memory other than as a fresh contiguous copy: the same values each time, and poison around
them where a view leaves room."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from inferspec.conformance.bridge.arrays import Arrays


def lay(x: np.ndarray, view: str, to: Arrays) -> Any:
    """Return an array of kind `to` with the values of x that lies in memory as the view says.

    view: one of `calls.VIEWS` or `calls.RARE_VIEWS`, or "" for a contiguous copy, which an array also is that has too few
    axes for the view.
    """
    axes, laid = _LAID.get(view, (0, _contiguous))
    return to.ready(laid(x, to) if x.ndim >= axes else _contiguous(x, to))


def lay_beside(first: np.ndarray, second: np.ndarray, to: Arrays) -> tuple[Any, Any]:
    """Return two arrays of one shape whose rows lie beside each other in one array."""
    both = to.from_numpy(np.stack((first, second), axis=-2))
    return to.ready(both[..., 0, :]), to.ready(both[..., 1, :])


def _contiguous(x: np.ndarray, to: Arrays) -> Any:
    return to.from_numpy(x)


def _slice(x: np.ndarray, to: Arrays) -> Any:
    """Inside a larger buffer."""
    return _within(x, tuple(n + 3 for n in x.shape), tuple(slice(2, 2 + n) for n in x.shape), to)


def _transpose(x: np.ndarray, to: Arrays) -> Any:
    """The last two axes swapped in memory."""
    return to.from_numpy(x.swapaxes(-1, -2).copy()).swapaxes(-1, -2)


def _heads(x: np.ndarray, to: Arrays) -> Any:
    """The two axes before the last one swapped in memory (of two axes, these), as the heads of a token lie side by side in
    what a projection gives."""
    axes = (-3, -2) if x.ndim > 2 else (-2, -1)
    return to.from_numpy(x.swapaxes(*axes).copy()).swapaxes(*axes)


def _permute(x: np.ndarray, to: Arrays) -> Any:
    """All axes in reverse order in memory."""
    return to.axes_reversed(to.from_numpy(x.transpose().copy()))


def _stride(x: np.ndarray, to: Arrays) -> Any:
    """Every other element of the last axis."""
    return _within(x, (*x.shape[:-1], 2 * x.shape[-1]), (..., slice(None, None, 2)), to)


def _reverse(x: np.ndarray, to: Arrays) -> Any:
    """The last axis backwards."""
    return to.reversed_view(x)


def _bottom_up(x: np.ndarray, to: Arrays) -> Any:
    """The last axis but one backwards: the last row lies first."""
    return to.reversed_view(x, axis=-2)


def _broadcast(x: np.ndarray, to: Arrays) -> Any:
    """Stride 0 along every axis whose entries are equal."""
    once = tuple(slice(0, 1) if _constant(x, axis) else slice(None) for axis in range(x.ndim))
    return to.broadcast_to(to.from_numpy(x[once].copy()), x.shape)


def _row(x: np.ndarray, to: Arrays) -> Any:
    """The first row of a table of more."""
    return _within(x, (3, *x.shape), (0,), to)


def _inserted(x: np.ndarray, to: Arrays) -> Any:
    """The last axis but one, of length 1, inserted into an array without it."""
    return to.from_numpy(x[..., 0, :].copy())[..., None, :] if x.shape[-2] == 1 else to.from_numpy(x)


def _half(x: np.ndarray, to: Arrays) -> Any:
    """The first half of twice as many heads, the third axis from the end."""
    *batch, heads, rows, columns = x.shape
    return _within(x, (*batch, 2 * heads, rows, columns), (..., slice(heads), slice(None), slice(None)), to)


def _room(x: np.ndarray, to: Arrays) -> Any:
    """The beginning of a longer last axis but one, as a cache has that keeps room for more."""
    *batch, rows, columns = x.shape
    return _within(x, (*batch, rows + 5, columns), (..., slice(rows), slice(None)), to)


def _joint(x: np.ndarray, to: Arrays) -> Any:
    """One of two that lie entry by entry of the first axis beside each other, as the keys and the values of a pool may."""
    return _within(x, (x.shape[0], 2, *x.shape[1:]), (slice(None), 0), to)


def _far(x: np.ndarray, to: Arrays) -> Any:
    """The beginnings of rows so long that 16 bits do not count from one to the next."""
    columns = x.shape[-1]
    return _within(x, (*x.shape[:-1], 2**16 + 2 * columns + 3), (..., slice(columns)), to)


def _beginning(x: np.ndarray, to: Arrays) -> Any:
    """The beginning of a longer first axis, without a gap, as the rows of a buffer are that are in use."""
    return _within(x, (len(x) + 3, *x.shape[1:]), (slice(len(x)),), to)


def _shifted(x: np.ndarray, to: Arrays) -> Any:
    """Without a gap, an element behind where a buffer begins: at no multiple of 16 bytes."""
    return _within(x.reshape(-1), (x.size + 1,), (slice(1, None),), to).reshape(x.shape)


def _within(x: np.ndarray, shape: tuple[int, ...], place: tuple[Any, ...], to: Arrays) -> Any:
    """x at a place of a poisoned buffer."""
    # Integers index tables and bools hide keys: 0 and True are wrong there without being out of range.
    poison = {"i": 0, "u": 0, "b": True}.get(x.dtype.kind, np.nan)
    buffer = np.full(shape, poison).astype(x.dtype)
    buffer[place] = x
    return to.from_numpy(buffer)[place]


def _constant(x: np.ndarray, axis: int) -> bool:
    first = np.take(x, [0], axis=axis) if x.shape[axis] else x
    return x.shape[axis] > 1 and bool((x == first).all())


_LAID: dict[str, tuple[int, Callable[[np.ndarray, Arrays], Any]]] = {
    "slice": (1, _slice),
    "transpose": (2, _transpose),
    "heads": (2, _heads),
    "permute": (2, _permute),
    "stride": (1, _stride),
    "reverse": (1, _reverse),
    "broadcast": (1, _broadcast),
    "row": (0, _row),
    "inserted": (2, _inserted),
    "half": (3, _half),
    "room": (2, _room),
    "joint": (2, _joint),
    "far": (2, _far),
    "bottom-up": (2, _bottom_up),
    "beginning": (1, _beginning),
    "shifted": (1, _shifted),
}
"""View -> the fewest axes that it takes, and how an array is laid so."""
