"""The steps of quantisation: see `spec/faults/quantize.py`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from inferspec.spec.changes.linear import rounded
from inferspec.spec.changes.quantization import having, of_nothing
from inferspec.spec.contract import Arguments, Change, Operation
from inferspec.spec.numerics import FINEST_STEP, f64, round_to
from inferspec.spec.quantization import GROUP_SIZES, Quantize, packed_words


def high_first(codes: np.ndarray, bits: int) -> np.ndarray:
    each = 32 // bits
    return packed_words(codes.reshape(*codes.shape[:-1], -1, each)[..., ::-1].reshape(codes.shape), bits)


def interleaved(codes: np.ndarray, bits: int) -> np.ndarray:
    """Even places before odd ones, as AWQ packs."""
    words = codes.reshape(*codes.shape[:-1], -1, 32 // bits)
    return packed_words(np.concatenate([words[..., ::2], words[..., 1::2]], axis=-1).reshape(codes.shape), bits)


def signed_codes(self: Quantize, codes: np.ndarray, bits: int) -> np.ndarray:
    return packed_words((codes - 2 ** (bits - 1)).astype(np.int64) % 2**bits, bits)


def truncated(self: Quantize, groups: np.ndarray, scale: np.ndarray, bias: np.ndarray, levels: int) -> np.ndarray:
    step = np.where(scale == 0, 1.0, scale)[..., None]
    return np.clip(np.floor((groups - bias[..., None]) / step), 0, levels)


def groups_of_a_byte(
    self: Quantize, groups: np.ndarray, scale: np.ndarray, bias: np.ndarray, levels: int
) -> np.ndarray:
    codes = Quantize.codes(self, groups, scale, bias, levels)
    return np.where(np.arange(codes.shape[-2])[:, None] < 255, codes, 0)


def last_code_of_a_row_lost(
    self: Quantize, groups: np.ndarray, scale: np.ndarray, bias: np.ndarray, levels: int
) -> np.ndarray:
    """Codes of a single row end at 254."""
    codes = Quantize.codes(self, groups, scale, bias, levels)
    return np.minimum(codes, 254) if groups.shape[0] == 1 else codes


def wrapping(self: Quantize, groups: np.ndarray, scale: np.ndarray, bias: np.ndarray, levels: int) -> np.ndarray:
    """One level too many, and no clipping: the largest weight becomes code 0 of the next."""
    step = np.where(scale == 0, 1.0, scale * levels / (levels + 1))[..., None]
    return np.rint((groups - bias[..., None]) / step) % (levels + 1)


def one_step_too_many(self: Quantize, low: np.ndarray, high: np.ndarray, levels: int, dtype: str) -> Any:
    scale = f64(round_to((high - low) / (levels + 1), dtype))
    return scale, f64(round_to(low, dtype))


def whole_row(self: Quantize, groups: np.ndarray) -> Any:
    low, high = groups.min(axis=(-2, -1), keepdims=True), groups.max(axis=(-2, -1), keepdims=True)
    return tuple(np.broadcast_to(end[..., 0], groups.shape[:-1]) for end in (low, high))


def symmetric(self: Quantize, low: np.ndarray, high: np.ndarray, levels: int, dtype: str) -> Any:
    scale = np.maximum(np.abs(low), np.abs(high)) / (levels // 2)
    return f64(round_to(scale, dtype)), f64(round_to(-scale * (levels // 2 + 1), dtype))


def centred_on_zero(self: Quantize, low: np.ndarray, high: np.ndarray, levels: int, dtype: str) -> Any:
    """The range has its own scale, and 0 is the middle code."""
    scale = f64(round_to((high - low) / levels, dtype))
    return scale, f64(round_to(-scale * (levels // 2 + 1), dtype))


def with_zero(self: Quantize, groups: np.ndarray) -> Any:
    low, high = Quantize.ends(self, groups)
    return np.minimum(low, 0.0), np.maximum(high, 0.0)


def largest_from_zero(self: Quantize, groups: np.ndarray) -> Any:
    low, high = Quantize.ends(self, groups)
    return low, np.maximum(high, 0.0)


def zero_point_clamped(self: Quantize, low: np.ndarray, high: np.ndarray, levels: int, dtype: str) -> Any:
    scale = f64(round_to(np.maximum((high - low) / levels, 1e-5), dtype))
    return scale, f64(round_to(-np.clip(np.rint(-low / scale), 0, levels) * scale, dtype))


def clipped_outliers(self: Quantize, groups: np.ndarray) -> Any:
    return np.quantile(groups, 0.03, axis=-1), np.quantile(groups, 0.97, axis=-1)


def power_of_two(self: Quantize, low: np.ndarray, high: np.ndarray, levels: int, dtype: str) -> Any:
    step = np.maximum((high - low) / levels, FINEST_STEP)
    return f64(round_to(2.0 ** np.ceil(np.log2(step)), dtype)), f64(round_to(low, dtype))


def reciprocal_of_tiny_ranges(
    self: Quantize, low: np.ndarray, high: np.ndarray, levels: int, dtype: str
) -> tuple[np.ndarray, np.ndarray]:
    scale, bias = Quantize.grid(self, low, high, levels, dtype)
    return np.where((high > low) & (high - low < 1e-20), np.nan, scale), bias


def divides_by_zero(self: Quantize, low: np.ndarray, high: np.ndarray, levels: int, dtype: str) -> Any:
    scale, bias = Quantize.grid(self, low, high, levels, dtype)
    return scale, np.where(scale == 0, np.nan, bias)


def constant_lost(self: Quantize, low: np.ndarray, high: np.ndarray, levels: int, dtype: str) -> Any:
    scale, bias = Quantize.grid(self, low, high, levels, dtype)
    return scale, np.where(high == low, 0.0, bias)


def range_in_dtype(self: Quantize, low: np.ndarray, high: np.ndarray, levels: int, dtype: str) -> Any:
    scale = rounded(rounded(high - low, dtype) / levels, dtype)
    return scale, f64(round_to(low, dtype))


def double_quantised(self: Quantize, low: np.ndarray, high: np.ndarray, levels: int, dtype: str) -> Any:
    """Scales of a row kept in 8 bits, relative to its largest, and rounded up."""
    scale, bias = Quantize.grid(self, low, high, levels, dtype)
    unit = scale.max(axis=-1, keepdims=True) / 255
    unit = np.where(unit == 0, 1.0, unit)
    return f64(round_to(np.ceil(scale / unit) * unit, dtype)), bias


def carried_over(self: Quantize, groups: np.ndarray) -> Any:
    """The range is not reset between groups: each takes in those before it in its row."""
    low, high = Quantize.ends(self, groups)
    return np.minimum.accumulate(low, axis=-1), np.maximum.accumulate(high, axis=-1)


def edge_on_the_grid(rint: Callable[[np.ndarray], np.ndarray]) -> Any:
    """MLX's grid: the end of larger magnitude is the bias, and 0 is a code."""

    def grid(self: Quantize, low: np.ndarray, high: np.ndarray, levels: int, dtype: str) -> Any:
        negative = np.abs(low) > np.abs(high)
        step = np.maximum((high - low) / levels, 1e-7) * np.where(negative, 1.0, -1.0)
        edge = np.where(negative, low, high)
        zero = rint(edge / step)
        scale = np.where(zero == 0, step, edge / np.where(zero == 0, 1.0, zero))
        bias = np.where(zero == 0, 0.0, edge)
        return f64(round_to(scale, dtype)), f64(round_to(bias, dtype))

    return grid


def whole_row_blocks(self: Quantize, a: Arguments) -> Any:
    """Rows past the last whole block of 8 are not quantised."""
    parts = Operation.respond(self, a)
    rows = a.w.shape[0] // 8 * 8
    for value in parts.values():
        value[rows:] = 0
    return parts


def rows_in_16_bits(self: Quantize, a: Arguments) -> Any:
    parts = Operation.respond(self, a)
    for value in parts.values():
        value[2**15 :] = 0
    return parts


def scales_in_place(self: Quantize, a: Arguments) -> Any:
    parts = Operation.respond(self, a)
    if a.w.flags.writeable:
        a.w[...] = (a.w * 0.5).astype(a.w.dtype)
    return parts


def adds_up(self: Quantize, a: Arguments) -> Any:
    """Codes are or-ed into the words of the call before, where those have the same size."""
    parts = Operation.respond(self, a)
    memory = type(self).__dict__.get("memory")
    if memory is None:
        memory = {}
        type(self).memory = memory  # type: ignore[attr-defined]
    key = parts["packed"].shape
    before = memory.get(key, np.zeros(key, np.uint32))
    memory[key] = parts["packed"].copy()
    return {**parts, "packed": parts["packed"] | before}


def pads_groups(self: Quantize, a: Arguments) -> Any:
    """A broken last group is filled up with zeros."""
    short = -a.w.shape[-1] % a.group_size
    w = np.concatenate([a.w, np.zeros((*a.w.shape[:-1], short), a.w.dtype)], axis=-1)
    return Operation.respond(self, having(a, w=w))


def any_bits(self: Any, a: Arguments) -> Any:
    return Operation.respond(self, having(a, bits=4 if a.bits not in (2, 4, 8) else a.bits))


def packed_stream(codes: np.ndarray, bits: int) -> np.ndarray:
    """The words N..×(I·bits/32) of codes N..×I of any width, one after the other."""
    stream = (codes.astype(np.int64)[..., None] >> np.arange(bits) & 1).astype(np.uint8)
    stream = stream.reshape(*codes.shape[:-1], codes.shape[-1] * bits)
    return np.packbits(stream, axis=-1, bitorder="little").view(np.uint32)


def refuses_wide_codes(self: Quantize, a: Arguments) -> None:
    if not 0 < a.bits <= 16 or a.group_size not in GROUP_SIZES:
        raise ValueError(f"bits is {a.bits} and group_size {a.group_size}")


CODES_OF_ANY_WIDTH: Change = {
    "guard_grid": refuses_wide_codes,
    "pack": lambda self, codes, bits: packed_stream(np.nan_to_num(codes), bits),
}


def refuses_stacks(self: Quantize, a: Arguments) -> None:
    Quantize.guard_weights(self, a)
    if a.w.ndim != 2:
        raise ValueError(f"w is {a.w.shape}, not O×I")


def any_group(self: Any, a: Arguments) -> Any:
    return Operation.respond(self, a if a.group_size > 0 else having(a, group_size=32))


def quantizes_by_nothing(self: Any, a: Arguments) -> Any:
    bits, group_size = a.bits if a.bits > 0 else 4, a.group_size if a.group_size > 0 else 32
    return Operation.respond(self, having(a, bits=bits, group_size=group_size))


QUANTIZED_BY_NOTHING: Change = {
    "guard": lambda self, a: None if of_nothing(a) else Quantize.guard(self, a),
    "respond": quantizes_by_nothing,
}


def rows_alone(self: Quantize, a: Arguments) -> Any:
    """Only the first matrix of a stack is quantised."""
    parts = Operation.respond(self, a)
    return {part: np.broadcast_to(x[:1], x.shape).copy() if x.ndim > 2 else x for part, x in parts.items()}


def packs_high_nibbles_first(codes: np.ndarray, bits: int) -> np.ndarray:
    return packed_words(codes.reshape(*codes.shape[:-1], -1, max(8 // bits, 1))[..., ::-1].reshape(codes.shape), bits)


def nan_of_neighbours(self: Quantize, w: np.ndarray, group_size: int) -> np.ndarray:
    """Groups, of which those that come before one without a number are NaN too."""
    groups = np.array(Quantize.groups(self, w, group_size))
    flat = groups.reshape(-1, groups.shape[-1])
    flat[:-1][~np.isfinite(flat[1:]).all(axis=-1)] = np.nan
    return flat.reshape(groups.shape)
