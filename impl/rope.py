"""Rotary position embedding, in MLX, by our own kernel where there is Metal.

Shapes: B batch, L tokens, H heads, D head dim. Positions, frequencies, angles and the rotation are in float32 whatever
the dtype of x; the result is rounded once.

Sources: Su et al. 2021 (RoFormer), section 3.4.2; the tiny-llm course, week 1 day 2 and week 2 day 6.
"""

from __future__ import annotations

from collections.abc import Sequence

import mlx.core as mx

from inferspec.impl.arguments import integer, whole
from inferspec.impl.kernels import metal
from inferspec.impl.kernels import rope as kernel


class RoPE:
    """Turn pairs of the first `dims` features of each head by an angle that grows with the token's position.

    Pair i of dims / 2 turns by position · base^(-2i / dims) radians. The pair is features (i, i + dims/2), or
    (2i, 2i + 1) if `traditional`. Features from dims on pass through unchanged.

    `mx.fast.rope` is not used: its CPU path rounds cosine and sine to the dtype of x, and its Metal kernel takes
    fast::cos and fast::sin where mx.cos and mx.sin are the precise ones (MLX 0.32.2); angles can be large here.
    """

    def __init__(
        self,
        dims: int,
        max_positions: int,
        base: float = 10000,
        traditional: bool = False,
        frequencies: Sequence[float] | None = None,
    ) -> None:
        """dims: how many features turn, even; max_positions: positions 0 … max_positions - 1 are taken; frequencies: radians
        per position of each of dims / 2 pairs, in the place of the base's.

        ValueError for dims that is not positive and even, max_positions below 1, base that is not positive and frequencies of another number.
        """
        self.dims = integer("dims", dims)
        self.max_positions = whole("max_positions", max_positions, 1)
        if self.dims < 2 or self.dims % 2:
            raise ValueError(f"dims is {dims}; it takes a positive even number")
        if not base > 0:
            raise ValueError(f"base is {base}; it takes a positive number")
        self.base = float(base)
        self.traditional = bool(traditional)
        # In float64, then rounded once: an error of the frequency is multiplied by the position.
        if frequencies is None:
            frequencies = [self.base ** (-i / self.dims) for i in range(0, self.dims, 2)]
        elif len(frequencies) != self.dims // 2:
            raise ValueError(f"frequencies are {len(frequencies)}; they take one for each of {self.dims // 2} pairs")
        self.frequencies = mx.array(list(frequencies), mx.float32)

    def __call__(self, x: mx.array, offset: int | slice | list[slice] | None = None) -> mx.array:
        """Return x, B×L×H×D, with its features turned, in the dtype of x.

        offset: the positions of the tokens. None is 0 … L-1; an int n is n … n+L-1; slice(n, n+L) is the same; a list
        of B slices has one for each batch row.

        ValueError for an x that is not B×L×H×D with D >= dims, a negative offset, a slice whose length is not L, a
        list whose length is not B, and any position of max_positions or more; TypeError for an x that is not
        floating-point and any other kind of offset.
        """
        self._check_x(x)
        batch, length = x.shape[:2]
        starts = self._starts(offset, batch, length)
        if metal.runs(x):
            return kernel.launch(x, starts, self.frequencies, self.traditional)
        positions = mx.array(starts, mx.int32)[:, None] + mx.arange(length, dtype=mx.int32)
        angles = positions.astype(mx.float32)[:, :, None, None] * self.frequencies
        turned = self._turn(x[..., : self.dims].astype(mx.float32), mx.cos(angles), mx.sin(angles)).astype(x.dtype)
        return turned if x.shape[-1] == self.dims else mx.concatenate([turned, x[..., self.dims :]], axis=-1)

    def _turn(self, x: mx.array, cos: mx.array, sin: mx.array) -> mx.array:
        # Split-half pairs are the columns of a 2×(dims/2) matrix, traditional ones the rows of a (dims/2)×2 one.
        half = self.dims // 2
        axis, pairs = (-1, (half, 2)) if self.traditional else (-2, (2, half))
        paired = mx.unflatten(x, -1, pairs)
        first, second = mx.split(paired, 2, axis=axis)
        cos, sin = mx.expand_dims(cos, axis), mx.expand_dims(sin, axis)
        turned = mx.concatenate([first * cos - second * sin, first * sin + second * cos], axis=axis)
        return mx.flatten(turned, -2, -1)

    def _check_x(self, x: mx.array) -> None:
        if x.ndim != 4 or x.shape[-1] < self.dims:
            raise ValueError(f"x is {x.shape}; it takes B×L×H×D with D of {self.dims} or more")
        if not mx.issubdtype(x.dtype, mx.floating):
            raise TypeError(f"x is {x.dtype}; it takes a floating-point dtype")

    def _starts(self, offset: int | slice | list[slice] | None, batch: int, length: int) -> list[int]:
        """The first position of each batch row, or of all of them."""
        if isinstance(offset, list):
            if len(offset) != batch:
                raise ValueError(f"offset has {len(offset)} slices; it takes one for each of {batch} batch rows")
            starts = [_slice_start(row, length) for row in offset]
        elif isinstance(offset, slice):
            starts = [_slice_start(offset, length)]
        else:
            starts = [0 if offset is None else integer("offset", offset)]
        for start in starts:
            check_positions(start, length, self.max_positions)
        return starts


def check_positions(start: int, length: int, max_positions: int) -> None:
    """ValueError unless all positions start … start + length - 1 are among 0 … max_positions - 1."""
    if start < 0:
        raise ValueError(f"offset is {start}; it takes positions from 0 on")
    if length and start + length > max_positions:
        raise ValueError(f"offset is {start} for {length} tokens; positions end at max_positions = {max_positions}")


def _slice_start(offset: object, length: int) -> int:
    if not isinstance(offset, slice):
        raise TypeError(f"offset has {offset!r} in its list; it takes slices")
    start, stop = integer("offset.start", offset.start), integer("offset.stop", offset.stop)
    if stop - start != length or offset.step not in (None, 1):
        raise ValueError(f"offset is {offset}; it takes a slice of length {length}, one position for each token")
    return start
