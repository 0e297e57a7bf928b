"""The steps that faults and honest variants have in the place of the oracle's: see `spec/faults/quantization*.py`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from inferspec.spec.changes.linear import partial_sums_in_dtype, rounded, running_product, whole_blocks
from inferspec.spec.contract import Arguments, Change, Operation
from inferspec.spec.mistakes import (
    honest,
    leaves_unwritten,
    of_whole_steps,
)
from inferspec.spec.numerics import FINEST_STEP, f64, round_to
from inferspec.spec.quantization import (
    Quantize,
    QuantizedEmbedding,
    _Quantised,
    packed_words,
    unpacked,
)


def having(a: Arguments, **changed: Any) -> Arguments:
    return Arguments(**{**vars(a), **changed})


def responding(**changed: Callable[[Any, Arguments], Any]) -> Change:
    """The operation sees other arguments than those it was given."""

    def respond(self: Operation, a: Arguments) -> Any:
        return Operation.respond(self, having(a, **{name: make(self, a) for name, make in changed.items()}))

    return {"respond": respond}


# quantize


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


def any_group(self: Any, a: Arguments) -> Any:
    return Operation.respond(self, a if a.group_size > 0 else having(a, group_size=32))


def _of_nothing(a: Arguments) -> bool:
    return bool(a.bits <= 0 or a.group_size <= 0)


def quantizes_by_nothing(self: Any, a: Arguments) -> Any:
    bits, group_size = a.bits if a.bits > 0 else 4, a.group_size if a.group_size > 0 else 32
    return Operation.respond(self, having(a, bits=bits, group_size=group_size))


QUANTIZED_BY_NOTHING: Change = {
    "guard": lambda self, a: None if _of_nothing(a) else Quantize.guard(self, a),
    "respond": quantizes_by_nothing,
}


def eight_of_a_stack(self: Operation, a: Arguments) -> Any:
    """The matrices of a stack are counted modulo 8."""
    result = Operation.respond(self, a)

    def wrapped(stack: np.ndarray) -> np.ndarray:
        return stack[np.arange(len(stack)) % 8] if stack.ndim > 2 else stack

    return {part: wrapped(x) for part, x in result.items()} if isinstance(result, dict) else wrapped(result)


def products_past_float16(self: Any, codes: np.ndarray, scale: np.ndarray, bias: np.ndarray, dtype: str) -> np.ndarray:
    """In float16 what code times scale passes of its range is infinite, whatever the bias."""
    product = codes * scale
    if dtype != "float16":
        return product + bias
    return np.where(np.abs(product) < 65520, product, np.copysign(np.inf, product)) + bias


def of_prompts(a: Arguments) -> bool:
    """Whether a product is of many rows and of many features."""
    return a.x[..., 0].size >= 32 and a.x.shape[-1] >= 256 and len(a.packed) >= 64


def of_long_prompts(a: Arguments) -> bool:
    """Whether a product that is transposed is large each way."""
    rows, features = a.x[..., 0].size, a.x.shape[-1]
    return getattr(a, "transpose", True) and min(rows, len(a.packed)) >= 128 and features >= 512


def nan_in_every_row(x: np.ndarray, weights: np.ndarray, dtype: str) -> np.ndarray:
    return plain(x, weights) + 0.0 * x.sum()


def rows_alone(self: Quantize, a: Arguments) -> Any:
    """Only the first matrix of a stack is quantised."""
    parts = Operation.respond(self, a)
    return {part: np.broadcast_to(x[:1], x.shape).copy() if x.ndim > 2 else x for part, x in parts.items()}


# codes, scales and biases: what dequantisation and products share


def reversed_places(self: Any, packed: np.ndarray, bits: int) -> np.ndarray:
    codes = unpacked(packed, bits)
    return codes.reshape(*codes.shape[:-1], -1, 32 // bits)[..., ::-1].reshape(codes.shape)


def high_nibbles_first(self: Any, packed: np.ndarray, bits: int) -> np.ndarray:
    """Of each byte the first code is in the highest bits."""
    codes = unpacked(packed, bits)
    return codes.reshape(*codes.shape[:-1], -1, max(8 // bits, 1))[..., ::-1].reshape(codes.shape)


def packs_high_nibbles_first(codes: np.ndarray, bits: int) -> np.ndarray:
    return packed_words(codes.reshape(*codes.shape[:-1], -1, max(8 // bits, 1))[..., ::-1].reshape(codes.shape), bits)


def split_places(self: Any, packed: np.ndarray, bits: int) -> np.ndarray:
    """Low halves of a word's bytes first, then the high ones, as GGUF's Q4_0 lies."""
    codes = unpacked(packed, bits)
    words = codes.reshape(*codes.shape[:-1], -1, 32 // bits)
    return np.concatenate([words[..., ::2], words[..., 1::2]], axis=-1).reshape(codes.shape)


def swapped_bytes(self: Any, packed: np.ndarray, bits: int) -> np.ndarray:
    return unpacked(packed.astype(np.uint32).byteswap(), bits)


def signed(self: Any, packed: np.ndarray, bits: int) -> np.ndarray:
    codes = unpacked(packed, bits)
    return np.where(codes >= 2 ** (bits - 1), codes - 2**bits, codes)


def last_place_signed(self: Any, packed: np.ndarray, bits: int) -> np.ndarray:
    """The words are int32, and the shift fills the last code up with its sign."""
    codes = unpacked(packed, bits).reshape(*packed.shape, 32 // bits)
    last = codes[..., -1]
    codes[..., -1] = np.where(last >= 2 ** (bits - 1), last - 2**bits, last)
    return codes.reshape(*packed.shape[:-1], -1)


def nibbles_always(self: Any, packed: np.ndarray, bits: int) -> np.ndarray:
    """The mask of 4 bits, whatever the bits: codes of 8 bits lose their upper half."""
    return unpacked(packed, bits) & 15


def top_code_lost(self: Any, packed: np.ndarray, bits: int) -> np.ndarray:
    return np.minimum(unpacked(packed, bits), 2**bits - 2)


def zero_wraps(self: Any, packed: np.ndarray, bits: int) -> np.ndarray:
    """An offset of one that other formats have, taken modulo 2^bits."""
    return (unpacked(packed, bits) - 1) % 2**bits + 1


def words_transposed(self: Any, packed: np.ndarray, bits: int) -> np.ndarray:
    """A weight lies at the same place of neighbouring words, not in neighbouring places of one."""
    codes = unpacked(packed, bits).reshape(*packed.shape, 32 // bits)
    return codes.swapaxes(-1, -2).reshape(*packed.shape[:-1], -1)


def of_group(index: Callable[[np.ndarray, int, Arguments], np.ndarray]) -> Change:
    """Scales and biases are taken from other groups: index(weight, groups, arguments) -> group."""

    def of_group(self: Any, part: np.ndarray, a: Arguments) -> np.ndarray:
        groups = part.shape[-1]
        return part[..., index(np.arange(groups * a.group_size), groups, a)]

    return {"of_group": of_group}


def strided_groups(weight: np.ndarray, groups: int, a: Arguments) -> np.ndarray:
    return weight % groups


def of_4096_columns(weight: np.ndarray, groups: int, a: Arguments) -> np.ndarray:
    """What lies past the 4096th column has its group's scale and bias."""
    return np.minimum(weight, 4095) // a.group_size


def of_64_groups(weight: np.ndarray, groups: int, a: Arguments) -> np.ndarray:
    return np.minimum(weight // a.group_size, 63)


def next_group(weight: np.ndarray, groups: int, a: Arguments) -> np.ndarray:
    return np.minimum(weight // a.group_size + 1, groups - 1)


def first_group(weight: np.ndarray, groups: int, a: Arguments) -> np.ndarray:
    return np.zeros_like(weight)


def groups_of_64(weight: np.ndarray, groups: int, a: Arguments) -> np.ndarray:
    return np.minimum(weight // 64, groups - 1)


def groups_of_64_not_transposed(weight: np.ndarray, groups: int, a: Arguments) -> np.ndarray:
    return groups_of_64(weight, groups, a) if many_each_way_not_transposed(a) else weight // a.group_size


def late_by_a_word(weight: np.ndarray, groups: int, a: Arguments) -> np.ndarray:
    return np.maximum(weight - 32 // a.bits, 0) // a.group_size


def groups_down_the_columns(self: Any, part: np.ndarray, a: Arguments) -> np.ndarray:
    """Scales are read as if they lay group after group, not row after row."""
    turned = part.reshape(*part.shape[:-2], part.shape[-1], part.shape[-2]).swapaxes(-1, -2)
    return np.repeat(turned, a.group_size, axis=-1)


def first_row(self: Any, part: np.ndarray, a: Arguments) -> np.ndarray:
    first = np.broadcast_to(part[..., :1, :], part.shape)
    return np.repeat(first, a.group_size, axis=-1)


def bias_subtracted(self: Any, codes: np.ndarray, scale: np.ndarray, bias: np.ndarray, dtype: str) -> np.ndarray:
    return codes * scale - bias


def zero_point(self: Any, codes: np.ndarray, scale: np.ndarray, bias: np.ndarray, dtype: str) -> np.ndarray:
    return (codes + bias) * scale


def whole_zero_point(self: Any, codes: np.ndarray, scale: np.ndarray, bias: np.ndarray, dtype: str) -> np.ndarray:
    return (codes + np.rint(bias / np.where(scale == 0, 1.0, scale))) * scale


def through_zero_point(self: Any, codes: np.ndarray, scale: np.ndarray, bias: np.ndarray, dtype: str) -> np.ndarray:
    return (codes + bias / scale) * scale


def size_of_scale(self: Any, codes: np.ndarray, scale: np.ndarray, bias: np.ndarray, dtype: str) -> np.ndarray:
    return codes * np.abs(scale) + bias


def without_bias(self: Any, codes: np.ndarray, scale: np.ndarray, bias: np.ndarray, dtype: str) -> np.ndarray:
    return codes * scale


def rounded_twice(self: Any, codes: np.ndarray, scale: np.ndarray, bias: np.ndarray, dtype: str) -> np.ndarray:
    return rounded(codes * scale, dtype) + bias


def in_bfloat16(self: Any, codes: np.ndarray, scale: np.ndarray, bias: np.ndarray, dtype: str) -> np.ndarray:
    return rounded(codes * scale + bias, "bfloat16")


def in_float16(self: Any, codes: np.ndarray, scale: np.ndarray, bias: np.ndarray, dtype: str) -> np.ndarray:
    return codes * rounded(scale, "float16") + rounded(bias, "float16")


def bfloat16_in_float16(self: Any, codes: np.ndarray, scale: np.ndarray, bias: np.ndarray, dtype: str) -> np.ndarray:
    if dtype != "bfloat16":
        return codes * scale + bias
    with np.errstate(over="ignore"):
        return in_float16(self, codes, scale, bias, dtype)


def shapes_taken_on_trust(self: Any, a: Arguments) -> Any:
    """Whatever belongs together no more is read on or cut short."""
    bits = a.bits if a.bits in (2, 4, 8) else 4
    size = a.group_size if a.group_size in (32, 64, 128) else 32
    words = a.packed if a.packed.dtype == np.uint32 else a.packed.astype(np.float64).astype(np.int64).astype(np.uint32)
    features = max(words.shape[-1] * 32 // bits // size, 1) * size
    words = np.resize(words, (*words.shape[:-1], features * bits // 32))
    grid = (*words.shape[:-1], features // size)
    parts = {part: np.resize(getattr(a, part), grid) for part in ("scales", "biases")}
    changed = having(a, packed=words, bits=bits, group_size=size, **parts)
    if hasattr(a, "x"):
        summed = features if self.transposed(changed) else words.shape[-2]
        changed.x = np.resize(a.x, (*a.x.shape[:-1], summed))
    return Operation.respond(self, changed)


READ_BY_NOTHING: Change = {
    "guard": lambda self, a: None if _of_nothing(a) else _Quantised.guard(self, a),
    "respond": lambda self, a: shapes_taken_on_trust(self, a) if _of_nothing(a) else Operation.respond(self, a),
}


def _one_bias_for_all(a: Arguments) -> Arguments:
    """Biases of one group are broadcast."""
    groups = a.scales.shape[-1] if a.scales.ndim else 1
    return having(a, biases=np.repeat(a.biases, groups, axis=-1)) if a.biases.shape[-1:] == (1,) else a


BIASES_BROADCAST: Change = {
    "guard_parts": lambda self, a: _Quantised.guard_parts(self, _one_bias_for_all(a)),
    "respond": lambda self, a: Operation.respond(self, _one_bias_for_all(a)),
}


def guarded(*checks: str) -> Change:
    """All is refused but what these checks are for."""
    return {check: lambda self, a: None for check in checks}


ALL_CHECKS = ("guard_grid", "guard_words", "guard_parts", "guard_rest")


def flattened(self: Any, a: Arguments) -> Any:
    """A stack of matrices is read as its first one, over and over."""
    result = Operation.respond(self, a)
    return np.broadcast_to(result[:1], result.shape).copy() if result.ndim > 2 else result


def rows_of_result_in_16_bits(out: np.ndarray) -> np.ndarray:
    return out[: 2**15]


def columns_in_16_bits(out: np.ndarray) -> np.ndarray:
    return out[..., : 2**15]


def whole_rows_of_8(out: np.ndarray) -> np.ndarray:
    return out[: len(out) // 8 * 8] if len(out) > 8 else out


# products; `weights` are rows to be summed along, whichever way the call asks


def with_product(product: Callable[[np.ndarray, np.ndarray, str], np.ndarray]) -> Change:
    return {"product": lambda self, x, weights, dtype: product(x, weights, dtype)}


def plain(x: np.ndarray, weights: np.ndarray) -> np.ndarray:
    return x @ weights.swapaxes(-1, -2)


def in_dtype(x: np.ndarray, weights: np.ndarray, dtype: str) -> np.ndarray:
    if weights.ndim > 2:
        return plain(x, weights)
    return running_product(x, weights, dtype)


def half_a_step_unread(step: int) -> Change:
    """Where features are whole steps and half a one more, that half is not read."""

    def product(x: np.ndarray, weights: np.ndarray, dtype: str) -> np.ndarray:
        read = of_whole_steps(x.shape[-1], step)
        return plain(x[..., :read], weights[..., :read])

    return with_product(product)


def partial_sums(x: np.ndarray, weights: np.ndarray, dtype: str) -> np.ndarray:
    return plain(x, weights) if weights.ndim > 2 else partial_sums_in_dtype(x, weights, dtype)


def first_rows(count: int) -> Change:
    """Rows past that many are not written."""
    return leaves_unwritten(lambda out: out.reshape(-1, out.shape[-1])[:count])


def weights_in_bfloat16(x: np.ndarray, weights: np.ndarray, dtype: str) -> np.ndarray:
    return plain(x, rounded(weights, "bfloat16"))


def activations_in_8_bits(x: np.ndarray, weights: np.ndarray, dtype: str) -> np.ndarray:
    """Blocks of 32 activations as 8-bit integers with a scale, as llama.cpp computes its products."""
    features = x.shape[-1] // 32 * 32
    if not features:
        return plain(x, weights)
    blocks = x[..., :features].reshape(*x.shape[:-1], features // 32, 32)
    scale = np.abs(blocks).max(axis=-1, keepdims=True) / 127
    scale = np.where(scale == 0, 1.0, scale)
    whole = (np.rint(blocks / scale) * scale).reshape(*x.shape[:-1], features)
    return plain(np.concatenate([whole, x[..., features:]], axis=-1), weights)


def neighbours_in_fixed_point(x: np.ndarray, weights: np.ndarray, dtype: str) -> np.ndarray:
    """Eight activations as integers of 23 bits that share an exponent: enough beside each other, not beside nothing."""
    features = x.shape[-1] // 8 * 8
    eights = x[..., :features].reshape(*x.shape[:-1], features // 8, 8)
    largest = np.abs(eights).max(axis=-1, keepdims=True)
    unit = 2.0 ** (np.floor(np.log2(np.where(largest > 0, largest, 1.0))) - 21)
    whole = (np.rint(eights / unit) * unit).reshape(*x.shape[:-1], features)
    return plain(np.concatenate([whole, x[..., features:]], axis=-1), weights)


def features_past_512(x: np.ndarray, weights: np.ndarray, dtype: str) -> np.ndarray:
    """Past the last whole block of 512 features a kernel reads its last 32 again."""
    result = plain(x, weights)
    features = x.shape[-1]
    if features <= 512 or features % 512 == 0:
        return result
    return result + plain(x[..., -32:], weights[..., -32:])


def last_group_dropped(x: np.ndarray, weights: np.ndarray, dtype: str) -> np.ndarray:
    """Blocks of 256 features, rounded down, where there is more than one."""
    features = x.shape[-1] // 256 * 256 or x.shape[-1]
    return plain(x[..., :features], weights[..., :features])


def splits_overlap(x: np.ndarray, weights: np.ndarray, dtype: str) -> np.ndarray:
    """From 1024 features on the sum is split in 8; each split reads whole tiles of 256."""
    features = x.shape[-1]
    if features < 1024 or features % 8:
        return plain(x, weights)
    part, total = features // 8, np.zeros(())
    for start in range(0, features, part):
        stop = start + -(-part // 256) * 256
        total = total + plain(x[..., start:stop], weights[..., start:stop])
    return total


def rows_of_a_part(self: Operation, a: Arguments) -> Any:
    """Of 2 to 4 rows whose sum is split in 8, each begins a part, and not a row, after the one before it."""
    rows, features = (1, *a.x.shape)[-2:]
    if a.transpose or not 2 <= rows <= 4 or features < 1024 or features % 8:
        return honest(self, a)
    starts = np.arange(rows)[:, None] * (features // 8)
    x = a.x.reshape(*a.x.shape[:-2], -1)[..., starts + np.arange(features)]
    return honest(self, Arguments(**{**vars(a), "x": x}))


def one_tile_of_a_split(x: np.ndarray, weights: np.ndarray, dtype: str) -> np.ndarray:
    """From 4096 features on the sum is split, and only the first 32 outputs are put together."""
    product = plain(x, weights)
    if x.shape[-1] >= 4096:
        product[..., 32:] = 0.0
    return product


def whole_tiles_turned(x: np.ndarray, weights: np.ndarray, dtype: str) -> np.ndarray:
    """Where rows and outputs fill tiles of 32, the outputs of each tile are in reverse order."""
    product = plain(x, weights)
    if product.ndim < 2 or product.shape[-2] % 32 or product.shape[-1] % 32:
        return product
    tiles = product.shape[-1] // 32
    return product.reshape(*product.shape[:-1], tiles, 32)[..., ::-1].reshape(product.shape)


def as_most_models_are_packed(rows: range, outputs: int, features: int) -> Callable[[Arguments], bool]:
    """Whether a product has so many rows, and at least so many outputs and features, in 4 bits and groups of 64."""

    def holds(a: Arguments) -> bool:
        packed = a.bits == 4 and a.group_size == 64 and getattr(a, "transpose", True) and a.packed.ndim == 2
        large = packed and a.packed.shape[0] >= outputs and a.x.shape[-1] >= features
        return large and a.x.size // a.x.shape[-1] in rows

    return holds


def of_layers(rows: range, outputs: int, features: int) -> Callable[[Arguments], bool]:
    """Whether a product has so many rows, and its weights are a matrix of at least so many outputs and features."""

    def holds(a: Arguments) -> bool:
        large = a.packed.ndim == 2 and len(a.packed) >= outputs and a.scales.shape[-1] * a.group_size >= features
        return large and a.x[..., 0].size in rows

    return holds


def table_as_most_are_packed(a: Arguments) -> bool:
    """Whether a matrix of many rows and of 8 groups of 64 and more is packed in 4 bits."""
    grid = a.scales.shape
    return a.bits == 4 and a.group_size == 64 and len(grid) == 2 and grid[0] >= 64 <= 8 * grid[1]


def last_group_unwritten(self: Operation, a: Arguments) -> Any:
    """The last scale and bias of each row are zeros, where a matrix of models is packed as most are."""
    found = Operation.respond(self, a)
    if (
        a.bits == 4
        and a.group_size == 64
        and a.w.dtype.itemsize == 2
        and a.w.ndim == 2
        and min(a.w.shape) >= 64
        and a.w.shape[-1] >= 512
    ):
        for part in ("scales", "biases"):
            found[part] = np.array(found[part])
            found[part][..., -1] = 0
    return found


def single_row_split_not_transposed(a: Arguments) -> bool:
    """Whether a product that is not transposed has one row of x, of 1024 features and more."""
    return not a.transpose and a.x.size == a.x.shape[-1] >= 1024


def many_each_way_not_transposed(a: Arguments) -> bool:
    """Whether a product that is not transposed has 8 rows and more, and 128 outputs and features and more."""
    rows = a.x.shape[-2] if a.x.ndim > 1 else 1
    return not a.transpose and rows >= 8 and min(a.packed.shape[-2], a.scales.shape[-1] * a.group_size) >= 128


def stacked_in_one_tile(x: np.ndarray, weights: np.ndarray, dtype: str) -> np.ndarray:
    """Of stacked parts each product has one tile of 32 rows and 32 outputs."""
    product = plain(x, weights)
    if weights.ndim > 2:
        product[..., 32:, :] = product[..., 32:] = 0.0
    return product


def first_of_many(x: np.ndarray, weights: np.ndarray, dtype: str) -> np.ndarray:
    """Parts with a leading dim of 1 are taken for those of one x."""
    alone = weights.ndim == 3 and len(weights) == 1 and x.ndim == 3
    return plain(np.broadcast_to(x[:1], x.shape) if alone else x, weights)


def matrix_path_of_64(self: Any, part: np.ndarray, a: Arguments) -> np.ndarray:
    """The kernel for 32 rows and more takes groups for 64 wide."""
    rows = a.x.shape[-2] if a.x.ndim > 1 else 1
    if rows < 32:
        return np.repeat(part, a.group_size, axis=-1)
    groups = part.shape[-1]
    return part[..., np.minimum(np.arange(groups * a.group_size) // 64, groups - 1)]


def vector_path_without_bias(self: Any, a: Arguments) -> Any:
    """The kernel for a single row leaves out the biases past the first group."""
    rows = a.x.shape[-2] if a.x.ndim > 1 else 1
    if rows > 1:
        return Operation.respond(self, a)
    biases = a.biases.copy()
    biases[..., 1:] = 0
    return Operation.respond(self, having(a, biases=biases))


def batch_stride_without_rows(self: Any, a: Arguments) -> Any:
    result = Operation.respond(self, a)
    if result.ndim < 3 or not result.size:
        return result
    batches = result.reshape(-1, *result.shape[-2:])
    written = np.zeros((batches.shape[0] * batches.shape[1], batches.shape[2]), result.dtype)
    for start, batch in enumerate(batches):
        written[start : start + len(batch)] = batch
    return written.reshape(result.shape)


def leading_dims_swapped(x: np.ndarray, weights: np.ndarray, dtype: str) -> np.ndarray:
    product = plain(x, weights)
    return product.swapaxes(0, 1).reshape(product.shape) if product.ndim > 2 else product


def rows_bounded_by_outputs(out: np.ndarray) -> np.ndarray:
    return out[..., : out.shape[-1], :] if out.ndim > 1 else out


def whole_blocks_of_many(block: int) -> Callable[[np.ndarray], np.ndarray]:
    """Outputs of whole blocks, where there is one."""
    return lambda out: whole_blocks(block)(out) if out.shape[-1] > block else out


def prefix_of_rows_lost(self: Any, a: Arguments) -> Any:
    """Of more than 32768 rows the first ones, as many as there are more, are garbage."""
    result = Operation.respond(self, a)
    flat = result.reshape(-1, result.shape[-1]) if result.ndim > 1 else result[None]
    flat[: max(len(flat) - 2**15, 0)] = 0
    return result


def first_1024(self: QuantizedEmbedding, a: Arguments) -> np.ndarray:
    """One thread for each feature, of the 1024 that a threadgroup has."""
    weights = QuantizedEmbedding.weights(self, a)
    weights[..., 1024:] = 0.0
    return weights


def reads_all_rows(x: np.ndarray, weights: np.ndarray, dtype: str) -> np.ndarray:
    """Rows past the last whole tile of 8 are masked by multiplying with 0."""
    product = plain(x, weights)
    if weights.ndim > 2:
        return product
    return product + 0.0 * np.roll(product, 1, axis=-1)


def rows_of_x_mixed(x: np.ndarray, weights: np.ndarray, dtype: str) -> np.ndarray:
    product = plain(x, weights)
    rows = product.reshape(-1, product.shape[-1])
    return (rows + 0.0 * np.roll(rows, 1, axis=0)).reshape(product.shape)


def scaled_by_outputs(self: Any, part: np.ndarray, a: Arguments) -> np.ndarray:
    """The scales of a tile of 64 rows are shared: that of its largest serves them."""
    spread = np.repeat(part, a.group_size, axis=-1)
    return np.where(np.arange(len(part))[:, None] % 64 == 5, spread[:1], spread) if part.ndim == 2 else spread


def vector_becomes_matrix(self: Any, a: Arguments) -> Any:
    result = Operation.respond(self, a)
    return result[None] if result.ndim == 1 else result


def first_heads(self: Any, a: Arguments) -> Any:
    """Stacked parts are found by the batch index of x: a broadcast axis is stepped through as if it were there."""
    if a.packed.ndim < 3:
        return Operation.respond(self, a)
    right = Operation.respond(self, a)
    lead = right.shape[:-2]
    count = int(np.prod(a.packed.shape[:-2]))
    index = np.arange(int(np.prod(lead))).reshape(lead) // 2 % count
    parts = {
        part: (v := getattr(a, part)).reshape(count, *v.shape[-2:])[index] for part in ("packed", "scales", "biases")
    }
    return Operation.respond(self, having(a, **parts))


def one_row_of_nothing(self: Any, a: Arguments) -> Any:
    result = Operation.respond(self, a)
    return np.zeros((*result.shape[:-2], 1, result.shape[-1]), result.dtype) if not a.x.size else result


def untransposed_square(self: Any, a: Arguments) -> bool:
    """Whether to transpose is guessed from the shapes."""
    features = a.packed.shape[-1] * 32 // a.bits
    return a.x.shape[-1] == features or bool(a.transpose)


def read_as_columns(x: np.ndarray, weights: np.ndarray, dtype: str) -> np.ndarray:
    return x @ weights.reshape(*weights.shape[:-2], weights.shape[-1], weights.shape[-2])


# layers and embeddings


def added_to_first_row(self: Any, product: np.ndarray, bias: np.ndarray) -> np.ndarray:
    rows = product.reshape(-1, product.shape[-1]).copy()
    rows[:1] += bias
    return rows.reshape(product.shape)


def fitted(a: Arguments) -> np.ndarray:
    return np.resize(a.x, (*a.x.shape[:-1], a.packed.shape[-1] * 32 // a.bits))


def bias_fitted(a: Arguments) -> Any:
    return None if a.bias is None else np.resize(a.bias, a.packed.shape[0])


# honest variants


def sums_apart(self: Any, a: Arguments) -> Any:
    """scale · Σ(x·code) + bias · Σx of each group, in float32: the codes are never restored."""
    if not self.transposed(a) or a.packed.ndim > 2:
        return Operation.respond(self, a)
    groups = (a.scales.shape[-1], a.group_size)
    x = f64(a.x).reshape(*a.x.shape[:-1], *groups)
    codes = unpacked(a.packed, a.bits).reshape(len(a.packed), *groups)
    sums = rounded(np.einsum("...gi,ogi->...og", x, codes.astype(np.float64)), "float32")
    plain = rounded(x.sum(axis=-1), "float32")[..., None, :]
    terms = rounded(rounded(f64(a.scales) * sums, "float32") + rounded(f64(a.biases) * plain, "float32"), "float32")
    total = np.zeros(terms.shape[:-1])
    for group in range(terms.shape[-1]):
        total = rounded(total + terms[..., group], "float32")
    bias = getattr(a, "bias", None)
    return self.finish(total if bias is None else total + f64(bias), a)
