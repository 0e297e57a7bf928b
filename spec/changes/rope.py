"""The steps that faults and honest variants have in the place of the oracle's: see `spec/faults/rope.py`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from inferspec.spec import rope as contract
from inferspec.spec.contract import Arguments, Change
from inferspec.spec.mistakes import first_of
from inferspec.spec.numerics import f64, round_to

Pair = tuple[np.ndarray, np.ndarray]
RoPE = contract.RoPE


def of_models(features: int, long: Callable[[int], bool]) -> Callable[[Arguments], bool]:
    """Whether a call is of several heads of so many features, and of a number of tokens of which `long` is
    true."""
    return lambda a: a.x.shape[-1] == features and a.x.shape[2] >= 4 and long(a.x.shape[1])


def of_heads_of_models(long: Callable[[int], bool]) -> Callable[[Arguments], bool]:
    """The same of the numbers of features that most models have."""
    return lambda a: a.x.shape[-1] in (64, 128) and a.x.shape[2] >= 4 and long(a.x.shape[1])


OF_MODELS = (
    (
        "tokens",
        "of single tokens of several heads of 64 and 128 features",
        of_heads_of_models(lambda length: length == 1),
    ),
    ("prompts", "of prompts of several heads of 64 and 128 features", of_heads_of_models(lambda length: length >= 32)),
)
"""Paths that kernels have for models: a name, words, and whether a call is on it."""

PATHS: Mapping[str, Callable[[Arguments], bool]] = {
    "single-tokens": lambda a: a.x.shape[1] == 1,
    "prompts": lambda a: a.x.shape[1] >= 32,
}
"""Paths by the number of tokens, each with tables of its own."""


def always(traditional: bool) -> dict[str, Callable[..., Any]]:
    """Whatever form is asked for, this one is taken."""

    def features(self: RoPE, dims: int, a: Arguments) -> Pair:
        return RoPE.features(self, dims, Arguments(**{**vars(a), "traditional": traditional}))

    return {"features": features}


def angle(wrong: Callable[[np.ndarray, np.ndarray, Arguments], np.ndarray]) -> dict[str, Callable[..., Any]]:
    """Angles from positions (B×L×1×1), frequencies and the arguments."""
    return {"angles": lambda self, positions, frequencies, a: wrong(positions[:, :, None, None], frequencies, a)}


def position(wrong: Callable[[np.ndarray, Arguments], np.ndarray]) -> dict[str, Callable[..., Any]]:
    """Positions from the right ones and the arguments."""
    return {"positions": lambda self, a: wrong(RoPE.positions(self, a), a)}


def start(wrong: Callable[[Any, int, int], int]) -> dict[str, Callable[..., Any]]:
    """The first position, from the offset, the length and the right answer."""
    return {"start": lambda self, offset, length: wrong(offset, length, RoPE.start(self, offset, length))}


def starts(wrong: Callable[[np.ndarray, Arguments], np.ndarray]) -> dict[str, Callable[..., Any]]:
    """The rows' first positions, from the right ones and the arguments."""
    return {"starts": lambda self, a: wrong(RoPE.starts(self, a), a)}


def narrow(x: np.ndarray, dtype: str) -> np.ndarray:
    with np.errstate(over="ignore"):
        return f64(round_to(x, dtype))


def significant(x: np.ndarray, bits: int) -> np.ndarray:
    """Round to so many significant bits, with the range of float32."""
    mantissa, exponent = np.frexp(x)
    return np.ldexp(np.round(mantissa * 2.0**bits) / 2.0**bits, exponent)


def overwritten_turn(
    self: RoPE, first: np.ndarray, second: np.ndarray, cos: np.ndarray, sin: np.ndarray, a: Arguments
) -> Pair:
    first = first * cos - second * sin
    return first, first * sin + second * cos


def tiled_turn(
    self: RoPE, first: np.ndarray, second: np.ndarray, cos: np.ndarray, sin: np.ndarray, a: Arguments
) -> Pair:
    if not a.traditional:
        return RoPE.turn(self, first, second, cos, sin, a)
    cos, sin = np.concatenate([cos, cos], axis=-1), np.concatenate([sin, sin], axis=-1)
    return first * cos[..., ::2] - second * sin[..., ::2], first * sin[..., 1::2] + second * cos[..., 1::2]


def at_most_256_of_large_heads(positions: np.ndarray, a: Arguments) -> np.ndarray:
    return np.minimum(positions, positions[:, :1] + 255) if a.x.shape[3] >= 64 else positions


def by_sum(offset: Any) -> Any:
    """A key of less than the rows' positions: how many there are, and what they come to."""
    return (len(offset), sum(row.start for row in offset)) if isinstance(offset, list) else repr(offset)


def table_in_bfloat16(*which: str) -> Change:
    """Cosines, sines or both are kept in bfloat16, whatever the dtype of x."""

    def coefficients(self: RoPE, angles: np.ndarray, a: Arguments) -> Pair:
        cos, sin = RoPE.coefficients(self, angles, a)
        return narrow(cos, "bfloat16") if "cosine" in which else cos, narrow(
            sin, "bfloat16"
        ) if "sine" in which else sin

    return {"coefficients": coefficients}


def tables_of_first_dtype(self: RoPE, angles: np.ndarray, a: Arguments) -> Pair:
    """A table belongs to a size, a base and a form, and is kept in the dtype of the x that was the first to need it."""
    dtype = a.x.dtype.name
    first = first_of(self, (a.dims, a.max_positions, a.base, a.traditional), dtype)
    cos, sin = RoPE.coefficients(self, angles, a)
    return (cos, sin) if first == dtype else (narrow(cos, first), narrow(sin, first))


def grown_from_zero(self: RoPE, a: Arguments) -> np.ndarray:
    """The table of an object has room for the first call, in steps of 256, and what it grows by begins at position 0 again."""
    positions = RoPE.positions(self, a)
    room = vars(self).setdefault("room", (int(positions.max(initial=0)) // 256 + 1) * 256)
    return np.where(positions < room, positions, positions - room)


def marked_before_it_is_refused() -> Change:
    """The table of an object grows with the positions that are asked for, and its length is set before they are looked at."""

    def guard_offset(self: RoPE, a: Arguments) -> None:
        RoPE.guard_offset(self, a)
        end, kept = int(self.positions(a).max(initial=-1)) + 1, vars(self)
        if end > kept.get("length", 0):
            kept["length"] = end
            if end > a.max_positions:
                raise ValueError(f"position {end - 1} is past the table")
            kept["rows"] = end

    def angles(self: RoPE, positions: np.ndarray, frequencies: np.ndarray, a: Arguments) -> np.ndarray:
        there = positions < vars(self).get("rows", 0)
        return RoPE.angles(self, np.where(there, positions, 0), frequencies, a)

    return {"goes_on": True, "guard_offset": guard_offset, "angles": angles}


def guards_all_but_slices_before_zero(self: RoPE, offset: Any) -> None:
    if not (isinstance(offset, slice) and offset.stop < 0):
        RoPE.guard_sign(self, offset)


def previous_for_zero(starts: np.ndarray, a: Arguments) -> np.ndarray:
    if not isinstance(a.offset, list):
        return starts
    rows = starts.copy()
    for row in range(1, len(rows)):
        rows[row] = rows[row] or rows[row - 1]
    return rows


def rows(wrong: Callable[[np.ndarray], np.ndarray]) -> dict[str, Callable[..., Any]]:
    """The rows' first positions go wrong where they are given as a list."""
    return starts(lambda starts, a: wrong(starts) if isinstance(a.offset, list) and len(starts) else starts)


def modulo_8_where_tokens_decode(starts: np.ndarray, a: Arguments) -> np.ndarray:
    decodes = a.x.shape[1] == 1 and a.x.shape[3] >= 64
    return starts[np.arange(len(starts)) % 8] if decodes else starts


def modulo_4_where_prompts_are_long(starts: np.ndarray, a: Arguments) -> np.ndarray:
    return starts[np.arange(len(starts)) % 4] if a.x.shape[1] > 32 else starts


def single_token_first_row(positions: np.ndarray, a: Arguments) -> np.ndarray:
    rows = np.arange(len(positions))[:, None]
    return np.where((rows > 0) & (a.x.shape[1] == 1), 0.0, positions)


def flat_tokens(positions: np.ndarray, a: Arguments) -> np.ndarray:
    return positions + np.arange(a.x.shape[0])[:, None] * a.x.shape[1]


def by_head(positions: np.ndarray, frequencies: np.ndarray, a: Arguments) -> np.ndarray:
    return (positions[:, :1] + np.arange(a.x.shape[2])[:, None]) * frequencies


def poor_pi(self: RoPE, angles: np.ndarray, a: Arguments) -> Pair:
    reduced = angles - np.round(angles / 6.28318) * 6.28318
    return np.cos(reduced), np.sin(reduced)


def grown_base(self: RoPE, a: Arguments) -> float:
    return float(a.base) * max(a.x.shape[1], 1)


def partners_half_a_head_away(self: RoPE, dims: int, a: Arguments) -> Pair:
    half = a.x.shape[-1] // 2
    if a.traditional:
        return RoPE.features(self, dims, a)
    return np.arange(dims // 2), np.arange(half, half + dims // 2)


def last_features(self: RoPE, dims: int, a: Arguments) -> Pair:
    first, second = RoPE.features(self, dims, a)
    tail = a.x.shape[-1] - dims
    return first + tail, second + tail


def zero_tail(self: RoPE, x: np.ndarray, dims: int) -> np.ndarray:
    return np.zeros_like(x)


def tail_turned_by_zero(self: RoPE, x: np.ndarray, dims: int) -> np.ndarray:
    """Frequencies of 0 fill the table up to the whole head: a feature past dims has the one beside it for its partner."""
    kept = x.copy()
    rest = x[..., dims:]
    with np.errstate(invalid="ignore"):
        kept[..., dims:] = rest - 0.0 * np.roll(rest, 1, axis=-1)
    return kept


def flushed_tail(self: RoPE, x: np.ndarray, dims: int) -> np.ndarray:
    """What is smaller than the smallest normal float32 comes out as 0."""
    return np.where(np.abs(x) < 2.0**-126, 0.0, x)


def even_within(self: RoPE, a: Arguments) -> int:
    return min(a.dims, a.x.shape[-1]) // 2 * 2


def any_step(self: RoPE, offset: Any, length: int) -> None:
    if isinstance(offset, slice) and offset.stop - offset.start != length:
        raise ValueError(f"offset is {offset}, not {length} positions")


def one_for_all_rows(self: RoPE, a: Arguments) -> None:
    if not isinstance(a.offset, list) or len(a.offset) != 1:
        RoPE.guard_rows(self, a)


def cycled_starts(self: RoPE, a: Arguments) -> np.ndarray:
    if not isinstance(a.offset, list):
        return RoPE.starts(self, a)
    return np.resize([self.start(offset, a.x.shape[1]) for offset in a.offset or [0]], a.x.shape[0])


def whole(axis: int, group: int) -> Callable[[np.ndarray], np.ndarray]:
    """The elements in whole groups along an axis, or all where there is none."""

    def keep(result: np.ndarray) -> np.ndarray:
        size = result.shape[axis]
        kept = size // group * group or size
        return result[(slice(None),) * axis + (slice(kept),)]

    return keep


def _f32(x: np.ndarray) -> np.ndarray:
    return np.asarray(x, np.float32)


def pow_frequencies(self: RoPE, dims: int, a: Arguments) -> np.ndarray:
    return 1 / np.power(np.float32(a.base), _f32(np.arange(0, dims, 2)) / np.float32(dims))


def _exp2_frequencies(self: RoPE, dims: int, a: Arguments) -> np.ndarray:
    return np.exp2(-(_f32(np.arange(dims // 2)) / np.float32(dims // 2)) * np.log2(np.float32(a.base)))


def exp_frequencies(self: RoPE, dims: int, a: Arguments) -> np.ndarray:
    return np.exp(_f32(np.arange(dims // 2)) * np.float32(-np.log(a.base) / (dims // 2)))


def _float32_angles(self: RoPE, positions: np.ndarray, frequencies: np.ndarray, a: Arguments) -> np.ndarray:
    return _f32(positions)[:, :, None, None] * _f32(frequencies)


def table(dtype: type[np.floating[Any]]) -> Callable[[RoPE, np.ndarray, np.ndarray, Arguments], np.ndarray]:
    """Angles of a table that is made for every position first; the rows are taken from it."""

    def angles(self: RoPE, positions: np.ndarray, frequencies: np.ndarray, a: Arguments) -> np.ndarray:
        rows = max(a.max_positions, int(positions.max(initial=0)) + 1)
        used, index = np.unique(positions.astype(np.int64), return_inverse=True)
        table = np.outer(np.arange(rows, dtype=dtype)[used], frequencies.astype(dtype))
        return table[index.reshape(positions.shape)][:, :, None, :]

    return angles


def _float32_coefficients(self: RoPE, angles: np.ndarray, a: Arguments) -> Pair:
    return np.cos(_f32(angles)), np.sin(_f32(angles))


def float64_coefficients(self: RoPE, angles: np.ndarray, a: Arguments) -> Pair:
    return _f32(np.cos(angles)), _f32(np.sin(angles))


def float32_turn(
    self: RoPE, first: np.ndarray, second: np.ndarray, cos: np.ndarray, sin: np.ndarray, a: Arguments
) -> Pair:
    return RoPE.turn(self, _f32(first), _f32(second), _f32(cos), _f32(sin), a)


def complex_turn(
    self: RoPE, first: np.ndarray, second: np.ndarray, cos: np.ndarray, sin: np.ndarray, a: Arguments
) -> Pair:
    turned = (_f32(first) + 1j * _f32(second)).astype(np.complex64) * (_f32(cos) + 1j * _f32(sin)).astype(np.complex64)
    return turned.real, turned.imag


def rotate_half_turn(
    self: RoPE, first: np.ndarray, second: np.ndarray, cos: np.ndarray, sin: np.ndarray, a: Arguments
) -> Pair:
    x = _f32(np.concatenate([first, second], axis=-1))
    half = _f32(np.concatenate([-second, first], axis=-1))
    y = x * _f32(np.concatenate([cos, cos], axis=-1)) + half * _f32(np.concatenate([sin, sin], axis=-1))
    return y[..., : first.shape[-1]], y[..., first.shape[-1] :]


def _native_coefficients(self: RoPE, angles: np.ndarray, a: Arguments) -> Pair:
    cos, sin = _float32_coefficients(self, angles, a)
    return narrow(cos, a.x.dtype.name), narrow(sin, a.x.dtype.name)


def _native_turn(
    self: RoPE, first: np.ndarray, second: np.ndarray, cos: np.ndarray, sin: np.ndarray, a: Arguments
) -> Pair:
    def product(x: np.ndarray, y: np.ndarray) -> np.ndarray:
        return narrow(x * y, a.x.dtype.name)

    return product(first, cos) - product(second, sin), product(first, sin) + product(second, cos)


FLOAT32: dict[str, Callable[..., Any]] = {
    "frequencies": _exp2_frequencies,
    "angles": _float32_angles,
    "coefficients": _float32_coefficients,
    "turn": float32_turn,
}
NATIVE: dict[str, Any] = {**FLOAT32, "coefficients": _native_coefficients, "turn": _native_turn}


def starts_of_32_rows(self: RoPE, a: Arguments) -> np.ndarray:
    """Of single tokens, rows past the 32nd begin where the first one does."""
    starts = RoPE.starts(self, a)
    return np.where(np.arange(len(starts)) < 32, starts, starts[:1]) if a.x.shape[1] == 1 and len(starts) else starts
