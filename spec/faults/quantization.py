"""Mistakes in quantisers and in products with quantised weights, and other honest ways to compute them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from inferspec.spec.contract import Arguments, Change, Fault, Operation, Requirement, Variant
from inferspec.spec.faults.linear import (
    MLX,
    TIRED,
    blocked_product,
    partial_sums_in_dtype,
    rounded,
    running_product,
    whole_blocks,
)
from inferspec.spec.mistakes import (
    bfloat16_through_float16,
    drifts,
    first_row_for_all,
    ignores_strides,
    leaves_unwritten,
    mutates,
    of_one_half_row,
    only_where,
    promotes,
    remembers,
    wraps_batches,
)
from inferspec.spec.numerics import FINEST_STEP, Precision, f64, round_to
from inferspec.spec.quantization import (
    DEQ_01,
    DEQ_02,
    DEQ_03,
    DEQ_04,
    DEQ_05,
    DEQ_06,
    DEQ_07,
    DEQ_08,
    DEQ_09,
    DEQ_10,
    QEMB_01,
    QEMB_02,
    QEMB_03,
    QEMB_04,
    QEMB_05,
    QEMB_06,
    QEMB_07,
    QEMB_08,
    QEMB_09,
    QEMB_10,
    QEMB_11,
    QEMB_12,
    QEMB_13,
    QEMB_14,
    QEMB_15,
    QEMB_16,
    QEMB_17,
    QEMB_18,
    QEMB_19,
    QLIN_01,
    QLIN_02,
    QLIN_03,
    QLIN_04,
    QLIN_05,
    QLIN_06,
    QLIN_07,
    QLIN_08,
    QLIN_09,
    QLIN_10,
    QLIN_11,
    QMM_01,
    QMM_02,
    QMM_03,
    QMM_04,
    QMM_05,
    QMM_06,
    QMM_07,
    QMM_08,
    QMM_09,
    QMM_10,
    QMM_11,
    QMM_12,
    QMM_13,
    QMM_14,
    QMM_15,
    QUANT_01,
    QUANT_02,
    QUANT_03,
    QUANT_04,
    QUANT_05,
    QUANT_06,
    QUANT_07,
    QUANT_08,
    QUANT_09,
    QUANT_10,
    QUANT_11,
    QUANT_12,
    Quantize,
    QuantizedEmbedding,
    _Quantised,
    packed_words,
    unpacked,
)

MLX_LM = "https://github.com/ml-explore/mlx-lm"
SPLIT_NIBBLES = "https://github.com/kekzl/imp/pull/722"
PREFIX_LOST = "https://github.com/mflux-community/mflux/pull/489"
COURSE = "tiny-llm course, week 2 day 2"


def _with(a: Arguments, **changed: Any) -> Arguments:
    return Arguments(**{**vars(a), **changed})


def _responding(**changed: Callable[[Any, Arguments], Any]) -> Change:
    """The operation sees other arguments than those it was given."""

    def respond(self: Operation, a: Arguments) -> Any:
        return Operation.respond(self, _with(a, **{name: make(self, a) for name, make in changed.items()}))

    return {"respond": respond}


# quantize


def _high_first(codes: np.ndarray, bits: int) -> np.ndarray:
    each = 32 // bits
    return packed_words(codes.reshape(*codes.shape[:-1], -1, each)[..., ::-1].reshape(codes.shape), bits)


def _interleaved(codes: np.ndarray, bits: int) -> np.ndarray:
    """Even places before odd ones, as AWQ packs."""
    words = codes.reshape(*codes.shape[:-1], -1, 32 // bits)
    return packed_words(np.concatenate([words[..., ::2], words[..., 1::2]], axis=-1).reshape(codes.shape), bits)


def _signed_codes(self: Quantize, codes: np.ndarray, bits: int) -> np.ndarray:
    return packed_words((codes - 2 ** (bits - 1)).astype(np.int64) % 2**bits, bits)


def _truncated(self: Quantize, groups: np.ndarray, scale: np.ndarray, bias: np.ndarray, levels: int) -> np.ndarray:
    step = np.where(scale == 0, 1.0, scale)[..., None]
    return np.clip(np.floor((groups - bias[..., None]) / step), 0, levels)


def _wrapping(self: Quantize, groups: np.ndarray, scale: np.ndarray, bias: np.ndarray, levels: int) -> np.ndarray:
    """One level too many, and no clipping: the largest weight becomes code 0 of the next."""
    step = np.where(scale == 0, 1.0, scale * levels / (levels + 1))[..., None]
    return np.rint((groups - bias[..., None]) / step) % (levels + 1)


def _one_step_too_many(self: Quantize, low: np.ndarray, high: np.ndarray, levels: int, dtype: str) -> Any:
    scale = f64(round_to((high - low) / (levels + 1), dtype))
    return scale, f64(round_to(low, dtype))


def _whole_row(self: Quantize, groups: np.ndarray) -> Any:
    low, high = groups.min(axis=(-2, -1), keepdims=True), groups.max(axis=(-2, -1), keepdims=True)
    return tuple(np.broadcast_to(end[..., 0], groups.shape[:-1]) for end in (low, high))


def _symmetric(self: Quantize, low: np.ndarray, high: np.ndarray, levels: int, dtype: str) -> Any:
    scale = np.maximum(np.abs(low), np.abs(high)) / (levels // 2)
    return f64(round_to(scale, dtype)), f64(round_to(-scale * (levels // 2 + 1), dtype))


def _with_zero(self: Quantize, groups: np.ndarray) -> Any:
    low, high = Quantize.ends(self, groups)
    return np.minimum(low, 0.0), np.maximum(high, 0.0)


def _zero_point_clamped(self: Quantize, low: np.ndarray, high: np.ndarray, levels: int, dtype: str) -> Any:
    scale = f64(round_to(np.maximum((high - low) / levels, 1e-5), dtype))
    return scale, f64(round_to(-np.clip(np.rint(-low / scale), 0, levels) * scale, dtype))


def _clipped_outliers(self: Quantize, groups: np.ndarray) -> Any:
    return np.quantile(groups, 0.03, axis=-1), np.quantile(groups, 0.97, axis=-1)


def _power_of_two(self: Quantize, low: np.ndarray, high: np.ndarray, levels: int, dtype: str) -> Any:
    step = np.maximum((high - low) / levels, FINEST_STEP)
    return f64(round_to(2.0 ** np.ceil(np.log2(step)), dtype)), f64(round_to(low, dtype))


def _divides_by_zero(self: Quantize, low: np.ndarray, high: np.ndarray, levels: int, dtype: str) -> Any:
    scale, bias = Quantize.grid(self, low, high, levels, dtype)
    return scale, np.where(scale == 0, np.nan, bias)


def _constant_lost(self: Quantize, low: np.ndarray, high: np.ndarray, levels: int, dtype: str) -> Any:
    scale, bias = Quantize.grid(self, low, high, levels, dtype)
    return scale, np.where(high == low, 0.0, bias)


def _range_in_dtype(self: Quantize, low: np.ndarray, high: np.ndarray, levels: int, dtype: str) -> Any:
    scale = rounded(rounded(high - low, dtype) / levels, dtype)
    return scale, f64(round_to(low, dtype))


def _double_quantised(self: Quantize, low: np.ndarray, high: np.ndarray, levels: int, dtype: str) -> Any:
    """Scales of a row kept in 8 bits, relative to its largest, and rounded up."""
    scale, bias = Quantize.grid(self, low, high, levels, dtype)
    unit = scale.max(axis=-1, keepdims=True) / 255
    unit = np.where(unit == 0, 1.0, unit)
    return f64(round_to(np.ceil(scale / unit) * unit, dtype)), bias


def _carried_over(self: Quantize, groups: np.ndarray) -> Any:
    """The range is not reset between groups: each takes in those before it in its row."""
    low, high = Quantize.ends(self, groups)
    return np.minimum.accumulate(low, axis=-1), np.maximum.accumulate(high, axis=-1)


def _edge_on_the_grid(rint: Callable[[np.ndarray], np.ndarray]) -> Any:
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


def _whole_row_blocks(self: Quantize, a: Arguments) -> Any:
    """Rows past the last whole block of 8 are not quantised."""
    parts = Operation.respond(self, a)
    rows = a.w.shape[0] // 8 * 8
    for value in parts.values():
        value[rows:] = 0
    return parts


def _rows_in_16_bits(self: Quantize, a: Arguments) -> Any:
    parts = Operation.respond(self, a)
    for value in parts.values():
        value[2**15 :] = 0
    return parts


def _scales_in_place(self: Quantize, a: Arguments) -> Any:
    parts = Operation.respond(self, a)
    if a.w.flags.writeable:
        a.w[...] = (a.w * 0.5).astype(a.w.dtype)
    return parts


def _adds_up(self: Quantize, a: Arguments) -> Any:
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


def _pads_groups(self: Quantize, a: Arguments) -> Any:
    """A broken last group is filled up with zeros."""
    short = -a.w.shape[-1] % a.group_size
    w = np.concatenate([a.w, np.zeros((*a.w.shape[:-1], short), a.w.dtype)], axis=-1)
    return Operation.respond(self, _with(a, w=w))


def _any_bits(self: Any, a: Arguments) -> Any:
    return Operation.respond(self, _with(a, bits=4 if a.bits not in (2, 4, 8) else a.bits))


def _any_group(self: Any, a: Arguments) -> Any:
    return Operation.respond(self, a if a.group_size > 0 else _with(a, group_size=32))


def _rows_alone(self: Quantize, a: Arguments) -> Any:
    """Only the first matrix of a stack is quantised."""
    parts = Operation.respond(self, a)
    return {part: np.broadcast_to(x[:1], x.shape).copy() if x.ndim > 2 else x for part, x in parts.items()}


_QUANTIZE = (
    Fault(
        "quantize-high-bits-first",
        "the first code of a word lies in its highest bits",
        QUANT_01,
        {"pack": lambda self, codes, bits: _high_first(codes, bits)},
        TIRED,
    ),
    Fault(
        "quantize-interleaved",
        "codes are packed in AWQ's order: even places of a word before odd ones",
        QUANT_01,
        {"pack": lambda self, codes, bits: _interleaved(codes, bits)},
        "https://github.com/ModelCloud/GPTQModel/issues/2350",
    ),
    Fault("quantize-signed-codes", "codes are stored as signed numbers", QUANT_01, {"pack": _signed_codes}, TIRED),
    Fault("quantize-truncates", "codes are cut off instead of rounded", QUANT_01, {"codes": _truncated}, TIRED),
    Fault(
        "quantize-wraps",
        "the largest weight gets code 2^bits, which wraps to 0",
        QUANT_01,
        {"codes": _wrapping},
        "https://github.com/pytorch/pytorch/pull/113861",
    ),
    Fault("quantize-range-of-the-row", "one scale serves the whole row", QUANT_02, {"ends": _whole_row}, COURSE),
    Fault("quantize-symmetric", "the grid is even about 0, whatever the range", QUANT_02, {"grid": _symmetric}, TIRED),
    Fault("quantize-range-with-zero", "the range is stretched to hold 0", QUANT_02, {"ends": _with_zero}, TIRED),
    Fault(
        "quantize-zero-point-clamped",
        "the zero point is clamped to the codes: groups on one side of 0 are cut off",
        QUANT_02,
        {"grid": _zero_point_clamped},
        "https://github.com/mit-han-lab/llm-awq/issues/193",
    ),
    Fault("quantize-outliers-clipped", "the largest weights are cut off", QUANT_02, {"ends": _clipped_outliers}, TIRED),
    Fault("quantize-power-of-two-scales", "scales are powers of two", QUANT_02, {"grid": _power_of_two}, TIRED),
    Fault(
        "quantize-range-carried-over",
        "the range is not reset between groups",
        QUANT_02,
        {"ends": _carried_over},
        TIRED,
    ),
    Fault(
        "quantize-one-step-too-many",
        "the range is divided by 2^bits: the largest weight is cut off",
        QUANT_03,
        {"grid": _one_step_too_many},
        "https://github.com/mlc-ai/mlc-llm/pull/1321",
    ),
    Fault(
        "quantize-divides-by-zero",
        "a group of one value gives NaN",
        QUANT_04,
        {"grid": _divides_by_zero},
        f"{MLX}/commit/ec8578d41",
    ),
    Fault("quantize-constant-lost", "a group of one value gives 0", QUANT_04, {"grid": _constant_lost}, TIRED),
    Fault(
        "quantize-range-in-dtype",
        "the range is computed in the input's dtype and overflows",
        QUANT_04,
        {"grid": _range_in_dtype},
        "PROPERTIES QZ4",
    ),
    Fault(
        "quantize-scales-quantised",
        "the scales of a row are quantised to 8 bits in their turn",
        QUANT_05,
        {"grid": _double_quantised},
        TIRED,
    ),
    Fault("quantize-strides", "w is read as if it were contiguous", QUANT_06, ignores_strides("w"), "PROPERTIES X1"),
    Fault(
        "quantize-scales-in-float32",
        "scales and biases come back in float32",
        QUANT_07,
        {"part_dtype": lambda self, part, a: "uint32" if part == "packed" else "float32"},
        "https://github.com/ml-explore/mlx-swift/issues/420",
    ),
    Fault(
        "quantize-words-signed",
        "packed comes back as int32",
        QUANT_07,
        {
            "respond": lambda self, a: {
                part: x.view(np.int32) if part == "packed" else x for part, x in Operation.respond(self, a).items()
            }
        },
        TIRED,
    ),
    Fault(
        "quantize-single-row-strides",
        "the path of a single row reads w as if it were contiguous",
        QUANT_06,
        only_where(of_one_half_row("w"), ignores_strides("w")),
        TIRED,
    ),
    Fault(
        "quantize-single-row-in-float32",
        "scales and biases of a single row come back in float32",
        QUANT_07,
        {
            "part_dtype": lambda self, part, a: (
                "uint32" if part == "packed" else "float32" if len(a.w) == 1 else a.w.dtype.name
            )
        },
        TIRED,
    ),
    Fault(
        "quantize-changes-single-row",
        "a single row is scaled in place",
        QUANT_08,
        only_where(of_one_half_row("w"), {"respond": _scales_in_place}),
        TIRED,
    ),
    Fault(
        "quantize-remembers-single-row",
        "parts of a single row cached by shape serve other rows",
        QUANT_09,
        only_where(of_one_half_row("w"), remembers("w")),
        TIRED,
    ),
    Fault("quantize-changes-w", "the weights are scaled in place", QUANT_08, {"respond": _scales_in_place}, TIRED),
    Fault("quantize-remembers", "parts cached by shape serve other weights", QUANT_09, remembers("w"), "PROPERTIES X7"),
    Fault(
        "quantize-adds-up",
        "codes are added to those of an earlier call",
        QUANT_09,
        {"respond": _adds_up},
        "PROPERTIES X11",
    ),
    Fault(
        "quantize-pads-groups",
        "a broken last group is filled up",
        QUANT_10,
        {"guard_weights": lambda self, a: None, "respond": _pads_groups},
        "PROPERTIES X9",
    ),
    Fault(
        "quantize-any-bits",
        "an unknown number of bits means 4",
        QUANT_10,
        {"guard_grid": lambda self, a: None, "respond": _any_bits},
        TIRED,
    ),
    Fault(
        "quantize-any-group-size",
        "a group size that is not offered is taken",
        QUANT_10,
        {"guard_grid": lambda self, a: None, "respond": _any_group},
        "PROPERTIES X9",
    ),
    Fault(
        "quantize-whole-blocks-of-rows",
        "rows past the last whole block of 8 are not written",
        QUANT_11,
        {"respond": _whole_row_blocks},
        "PROPERTIES X10",
    ),
    Fault(
        "quantize-rows-in-16-bits",
        "rows past 32768 are not written",
        QUANT_11,
        {"respond": _rows_in_16_bits},
        f"{MLX}/commit/c9e8ee6b6",
    ),
    Fault(
        "quantize-first-of-the-stack",
        "the first matrix of a stack serves all",
        QUANT_12,
        {"respond": _rows_alone},
        TIRED,
    ),
)


# codes, scales and biases: what dequantisation and products share


def _reversed_places(self: Any, packed: np.ndarray, bits: int) -> np.ndarray:
    codes = unpacked(packed, bits)
    return codes.reshape(*codes.shape[:-1], -1, 32 // bits)[..., ::-1].reshape(codes.shape)


def _split_places(self: Any, packed: np.ndarray, bits: int) -> np.ndarray:
    """Low halves of a word's bytes first, then the high ones, as GGUF's Q4_0 lies."""
    codes = unpacked(packed, bits)
    words = codes.reshape(*codes.shape[:-1], -1, 32 // bits)
    return np.concatenate([words[..., ::2], words[..., 1::2]], axis=-1).reshape(codes.shape)


def _swapped_bytes(self: Any, packed: np.ndarray, bits: int) -> np.ndarray:
    return unpacked(packed.astype(np.uint32).byteswap(), bits)


def _signed(self: Any, packed: np.ndarray, bits: int) -> np.ndarray:
    codes = unpacked(packed, bits)
    return np.where(codes >= 2 ** (bits - 1), codes - 2**bits, codes)


def _last_place_signed(self: Any, packed: np.ndarray, bits: int) -> np.ndarray:
    """The words are int32, and the shift fills the last code up with its sign."""
    codes = unpacked(packed, bits).reshape(*packed.shape, 32 // bits)
    last = codes[..., -1]
    codes[..., -1] = np.where(last >= 2 ** (bits - 1), last - 2**bits, last)
    return codes.reshape(*packed.shape[:-1], -1)


def _nibbles_always(self: Any, packed: np.ndarray, bits: int) -> np.ndarray:
    """The mask of 4 bits, whatever the bits: codes of 8 bits lose their upper half."""
    return unpacked(packed, bits) & 15


def _top_code_lost(self: Any, packed: np.ndarray, bits: int) -> np.ndarray:
    return np.minimum(unpacked(packed, bits), 2**bits - 2)


def _zero_wraps(self: Any, packed: np.ndarray, bits: int) -> np.ndarray:
    """An offset of one that other formats have, taken modulo 2^bits."""
    return (unpacked(packed, bits) - 1) % 2**bits + 1


def _words_transposed(self: Any, packed: np.ndarray, bits: int) -> np.ndarray:
    """A weight lies at the same place of neighbouring words, not in neighbouring places of one."""
    codes = unpacked(packed, bits).reshape(*packed.shape, 32 // bits)
    return codes.swapaxes(-1, -2).reshape(*packed.shape[:-1], -1)


def _of_group(index: Callable[[np.ndarray, int, Arguments], np.ndarray]) -> Change:
    """Scales and biases are taken from other groups: index(weight, groups, arguments) -> group."""

    def of_group(self: Any, part: np.ndarray, a: Arguments) -> np.ndarray:
        groups = part.shape[-1]
        return part[..., index(np.arange(groups * a.group_size), groups, a)]

    return {"of_group": of_group}


def _strided_groups(weight: np.ndarray, groups: int, a: Arguments) -> np.ndarray:
    return weight % groups


def _next_group(weight: np.ndarray, groups: int, a: Arguments) -> np.ndarray:
    return np.minimum(weight // a.group_size + 1, groups - 1)


def _first_group(weight: np.ndarray, groups: int, a: Arguments) -> np.ndarray:
    return np.zeros_like(weight)


def _groups_of_64(weight: np.ndarray, groups: int, a: Arguments) -> np.ndarray:
    return np.minimum(weight // 64, groups - 1)


def _late_by_a_word(weight: np.ndarray, groups: int, a: Arguments) -> np.ndarray:
    return np.maximum(weight - 32 // a.bits, 0) // a.group_size


def _groups_down_the_columns(self: Any, part: np.ndarray, a: Arguments) -> np.ndarray:
    """Scales are read as if they lay group after group, not row after row."""
    turned = part.reshape(*part.shape[:-2], part.shape[-1], part.shape[-2]).swapaxes(-1, -2)
    return np.repeat(turned, a.group_size, axis=-1)


def _first_row(self: Any, part: np.ndarray, a: Arguments) -> np.ndarray:
    first = np.broadcast_to(part[..., :1, :], part.shape)
    return np.repeat(first, a.group_size, axis=-1)


def _bias_subtracted(self: Any, codes: np.ndarray, scale: np.ndarray, bias: np.ndarray, dtype: str) -> np.ndarray:
    return codes * scale - bias


def _zero_point(self: Any, codes: np.ndarray, scale: np.ndarray, bias: np.ndarray, dtype: str) -> np.ndarray:
    return (codes + bias) * scale


def _whole_zero_point(self: Any, codes: np.ndarray, scale: np.ndarray, bias: np.ndarray, dtype: str) -> np.ndarray:
    return (codes + np.rint(bias / np.where(scale == 0, 1.0, scale))) * scale


def _through_zero_point(self: Any, codes: np.ndarray, scale: np.ndarray, bias: np.ndarray, dtype: str) -> np.ndarray:
    return (codes + bias / scale) * scale


def _size_of_scale(self: Any, codes: np.ndarray, scale: np.ndarray, bias: np.ndarray, dtype: str) -> np.ndarray:
    return codes * np.abs(scale) + bias


def _without_bias(self: Any, codes: np.ndarray, scale: np.ndarray, bias: np.ndarray, dtype: str) -> np.ndarray:
    return codes * scale


def _rounded_twice(self: Any, codes: np.ndarray, scale: np.ndarray, bias: np.ndarray, dtype: str) -> np.ndarray:
    return rounded(codes * scale, dtype) + bias


def _in_bfloat16(self: Any, codes: np.ndarray, scale: np.ndarray, bias: np.ndarray, dtype: str) -> np.ndarray:
    return rounded(codes * scale + bias, "bfloat16")


def _in_float16(self: Any, codes: np.ndarray, scale: np.ndarray, bias: np.ndarray, dtype: str) -> np.ndarray:
    return codes * rounded(scale, "float16") + rounded(bias, "float16")


def _bfloat16_in_float16(self: Any, codes: np.ndarray, scale: np.ndarray, bias: np.ndarray, dtype: str) -> np.ndarray:
    if dtype != "bfloat16":
        return codes * scale + bias
    with np.errstate(over="ignore"):
        return _in_float16(self, codes, scale, bias, dtype)


def _shapes_taken_on_trust(self: Any, a: Arguments) -> Any:
    """Whatever belongs together no more is read on or cut short."""
    bits = a.bits if a.bits in (2, 4, 8) else 4
    size = a.group_size if a.group_size in (32, 64, 128) else 32
    words = a.packed if a.packed.dtype == np.uint32 else a.packed.astype(np.float64).astype(np.int64).astype(np.uint32)
    features = max(words.shape[-1] * 32 // bits // size, 1) * size
    words = np.resize(words, (*words.shape[:-1], features * bits // 32))
    grid = (*words.shape[:-1], features // size)
    parts = {part: np.resize(getattr(a, part), grid) for part in ("scales", "biases")}
    changed = _with(a, packed=words, bits=bits, group_size=size, **parts)
    if hasattr(a, "x"):
        summed = features if self.transposed(changed) else words.shape[-2]
        changed.x = np.resize(a.x, (*a.x.shape[:-1], summed))
    return Operation.respond(self, changed)


def _one_bias_for_all(a: Arguments) -> Arguments:
    """Biases of one group are broadcast."""
    groups = a.scales.shape[-1] if a.scales.ndim else 1
    return _with(a, biases=np.repeat(a.biases, groups, axis=-1)) if a.biases.shape[-1:] == (1,) else a


_BIASES_BROADCAST: Change = {
    "guard_parts": lambda self, a: _Quantised.guard_parts(self, _one_bias_for_all(a)),
    "respond": lambda self, a: Operation.respond(self, _one_bias_for_all(a)),
}


def _guarded(*checks: str) -> Change:
    """All is refused but what these checks are for."""
    return {check: lambda self, a: None for check in checks}


_ALL_CHECKS = ("guard_grid", "guard_words", "guard_parts", "guard_rest")


def _flattened(self: Any, a: Arguments) -> Any:
    """A stack of matrices is read as its first one, over and over."""
    result = Operation.respond(self, a)
    return np.broadcast_to(result[:1], result.shape).copy() if result.ndim > 2 else result


def _rows_of_result_in_16_bits(out: np.ndarray) -> np.ndarray:
    return out[: 2**15]


def _columns_in_16_bits(out: np.ndarray) -> np.ndarray:
    return out[..., : 2**15]


def _whole_rows_of_8(out: np.ndarray) -> np.ndarray:
    return out[: len(out) // 8 * 8] if len(out) > 8 else out


_DEQUANTIZE = (
    Fault(
        "dequantize-high-bits-first",
        "the first code of a word is read from its highest bits",
        DEQ_01,
        {"codes": _reversed_places},
        TIRED,
    ),
    Fault(
        "dequantize-split-nibbles",
        "every other place of a word is read first",
        DEQ_01,
        {"codes": _split_places},
        SPLIT_NIBBLES,
    ),
    Fault(
        "dequantize-bytes-swapped", "words are read in the other byte order", DEQ_01, {"codes": _swapped_bytes}, TIRED
    ),
    Fault("dequantize-signed", "codes are read as signed numbers", DEQ_01, {"codes": _signed}, TIRED),
    Fault(
        "dequantize-last-code-signed",
        "the last code of a word takes the sign of an int32",
        DEQ_01,
        {"codes": _last_place_signed},
        TIRED,
    ),
    Fault(
        "dequantize-nibbles-always",
        "codes of 8 bits lose their upper half to a mask of 4 bits",
        DEQ_01,
        {"codes": _nibbles_always},
        TIRED,
    ),
    Fault(
        "dequantize-top-code-lost", "the largest code reads as the one below", DEQ_01, {"codes": _top_code_lost}, TIRED
    ),
    Fault(
        "dequantize-zero-wraps",
        "code 0 wraps to the largest and one more",
        DEQ_01,
        {"codes": _zero_wraps},
        "https://github.com/ModelCloud/GPTQModel/issues/2350",
    ),
    Fault(
        "dequantize-words-transposed",
        "neighbouring weights are read from neighbouring words",
        DEQ_01,
        {"codes": _words_transposed},
        TIRED,
    ),
    Fault(
        "dequantize-groups-strided",
        "weights take the groups in turn, not in runs",
        DEQ_02,
        _of_group(_strided_groups),
        TIRED,
    ),
    Fault("dequantize-next-group", "each group takes the scale of the next", DEQ_02, _of_group(_next_group), TIRED),
    Fault("dequantize-first-group", "the first group's scale serves the row", DEQ_02, _of_group(_first_group), COURSE),
    Fault(
        "dequantize-groups-of-64",
        "groups are taken for 64 wide",
        DEQ_02,
        _of_group(_groups_of_64),
        "https://github.com/ml-explore/mlx-swift-examples/issues/178",
    ),
    Fault("dequantize-group-late", "the scale changes one word too late", DEQ_02, _of_group(_late_by_a_word), TIRED),
    Fault(
        "dequantize-groups-down-the-columns",
        "scales are read as if transposed",
        DEQ_02,
        {"of_group": _groups_down_the_columns},
        TIRED,
    ),
    Fault("dequantize-first-row", "the first row's scales serve all", DEQ_02, {"of_group": _first_row}, TIRED),
    Fault("dequantize-bias-subtracted", "the bias is subtracted", DEQ_02, {"affine": _bias_subtracted}, TIRED),
    Fault("dequantize-zero-point", "the bias is taken for a zero point", DEQ_02, {"affine": _zero_point}, TIRED),
    Fault(
        "dequantize-whole-zero-point",
        "the bias is turned into a zero point, a whole number",
        DEQ_02,
        {"affine": _whole_zero_point},
        TIRED,
    ),
    Fault(
        "dequantize-divides-by-scale",
        "the bias is divided by the scale and multiplied again: a scale of 0 gives NaN",
        DEQ_02,
        {"affine": _through_zero_point},
        f"{MLX}/commit/ec8578d41",
    ),
    Fault(
        "dequantize-size-of-scale", "negative scales are taken for positive", DEQ_02, {"affine": _size_of_scale}, TIRED
    ),
    Fault(
        "dequantize-rounds-twice",
        "code times scale is rounded before the bias is added",
        DEQ_03,
        {"affine": _rounded_twice},
        f"{MLX}/commit/56e026d8a",
    ),
    Fault(
        "dequantize-bfloat16-through-float16",
        "scales and biases that are bfloat16 pass through float16",
        DEQ_03,
        {"affine": _bfloat16_in_float16},
        TIRED,
    ),
    Fault("dequantize-through-bfloat16", "weights pass through bfloat16", DEQ_03, {"affine": _in_bfloat16}, TIRED),
    Fault(
        "dequantize-float16-scales", "scales and biases pass through float16", DEQ_03, {"affine": _in_float16}, TIRED
    ),
    Fault(
        "dequantize-first-of-the-stack",
        "the first matrix of a stack serves all",
        DEQ_04,
        {"respond": _flattened},
        TIRED,
    ),
    *(
        Fault(
            f"dequantize-{part}-strides",
            f"{part} is read as if it were contiguous",
            DEQ_05,
            ignores_strides(part),
            "PROPERTIES X1",
        )
        for part in ("packed", "scales", "biases")
    ),
    *(
        Fault(
            f"dequantize-single-row-{part}-strides",
            f"the path of a single row reads {part} as if they were contiguous",
            DEQ_05,
            only_where(of_one_half_row("scales"), ignores_strides(part)),
            TIRED,
        )
        for part in ("packed", "scales")
    ),
    Fault(
        "dequantize-single-row-promotes",
        "a single row comes back in float32",
        DEQ_06,
        only_where(lambda a: len(a.packed) == 1, promotes()),
        TIRED,
    ),
    Fault(
        "dequantize-changes-scales-of-single-row",
        "the scales of a single row are scaled in place",
        DEQ_07,
        only_where(lambda a: len(a.packed) == 1, mutates("scales")),
        TIRED,
    ),
    Fault(
        "dequantize-remembers-scales-of-single-row",
        "the scales of a single row, cached by shape, serve other rows",
        DEQ_08,
        only_where(lambda a: len(a.packed) == 1, remembers("scales")),
        TIRED,
    ),
    Fault("dequantize-promotes", "the result comes back in float32", DEQ_06, promotes(), "PROPERTIES X4"),
    Fault(
        "dequantize-flattens",
        "the result is a list of groups",
        DEQ_06,
        {"respond": lambda self, a: Operation.respond(self, a).reshape(-1, a.group_size)},
        f"{MLX_LM}/commit/c592f76f",
    ),
    Fault("dequantize-changes-scales", "the scales are scaled in place", DEQ_07, mutates("scales"), "PROPERTIES X6"),
    Fault(
        "dequantize-remembers-codes",
        "codes cached by shape serve other words",
        DEQ_08,
        remembers("packed"),
        "PROPERTIES X7",
    ),
    Fault("dequantize-drifts", "the output buffer of an earlier call is added to", DEQ_08, drifts(), "PROPERTIES X11"),
    Fault(
        "dequantize-any-parts",
        "parts that do not belong together are read on or cut short",
        DEQ_09,
        {**_guarded(*_ALL_CHECKS), "respond": _shapes_taken_on_trust},
        "PROPERTIES X9",
    ),
    Fault(
        "dequantize-any-words",
        "a packed of another dtype is converted",
        DEQ_09,
        {**_guarded("guard_words"), "respond": _shapes_taken_on_trust},
        TIRED,
    ),
    Fault(
        "dequantize-broadcast-biases",
        "biases of one group stand for all groups",
        DEQ_09,
        _BIASES_BROADCAST,
        "PROPERTIES X9",
    ),
    Fault(
        "dequantize-rows-in-16-bits",
        "rows past 32768 are not written",
        DEQ_10,
        leaves_unwritten(_rows_of_result_in_16_bits),
        f"{MLX}/commit/c9e8ee6b6",
    ),
    Fault(
        "dequantize-whole-blocks-of-rows",
        "rows past the last whole block of 8 are not written",
        DEQ_10,
        leaves_unwritten(_whole_rows_of_8),
        "PROPERTIES X10",
    ),
)


# products; `weights` are rows to be summed along, whichever way the call asks


def _with_product(product: Callable[[np.ndarray, np.ndarray, str], np.ndarray]) -> Change:
    return {"product": lambda self, x, weights, dtype: product(x, weights, dtype)}


def _plain(x: np.ndarray, weights: np.ndarray) -> np.ndarray:
    return x @ weights.swapaxes(-1, -2)


def _in_dtype(x: np.ndarray, weights: np.ndarray, dtype: str) -> np.ndarray:
    if weights.ndim > 2:
        return _plain(x, weights)
    return running_product(x, weights, dtype)


def _partial_sums(x: np.ndarray, weights: np.ndarray, dtype: str) -> np.ndarray:
    return _plain(x, weights) if weights.ndim > 2 else partial_sums_in_dtype(x, weights, dtype)


def _first_rows(count: int) -> Change:
    """Rows past that many are not written."""
    return leaves_unwritten(lambda out: out.reshape(-1, out.shape[-1])[:count])


def _weights_in_bfloat16(x: np.ndarray, weights: np.ndarray, dtype: str) -> np.ndarray:
    return _plain(x, rounded(weights, "bfloat16"))


def _activations_in_8_bits(x: np.ndarray, weights: np.ndarray, dtype: str) -> np.ndarray:
    """Blocks of 32 activations as 8-bit integers with a scale, as llama.cpp computes its products."""
    features = x.shape[-1] // 32 * 32
    if not features:
        return _plain(x, weights)
    blocks = x[..., :features].reshape(*x.shape[:-1], -1, 32)
    scale = np.abs(blocks).max(axis=-1, keepdims=True) / 127
    scale = np.where(scale == 0, 1.0, scale)
    whole = (np.rint(blocks / scale) * scale).reshape(*x.shape[:-1], features)
    return _plain(np.concatenate([whole, x[..., features:]], axis=-1), weights)


def _neighbours_in_fixed_point(x: np.ndarray, weights: np.ndarray, dtype: str) -> np.ndarray:
    """Eight activations as integers of 23 bits that share an exponent: enough beside each other, not beside nothing."""
    features = x.shape[-1] // 8 * 8
    eights = x[..., :features].reshape(*x.shape[:-1], -1, 8)
    largest = np.abs(eights).max(axis=-1, keepdims=True)
    unit = 2.0 ** (np.floor(np.log2(np.where(largest > 0, largest, 1.0))) - 21)
    whole = (np.rint(eights / unit) * unit).reshape(*x.shape[:-1], features)
    return _plain(np.concatenate([whole, x[..., features:]], axis=-1), weights)


def _features_past_512(x: np.ndarray, weights: np.ndarray, dtype: str) -> np.ndarray:
    """Past the last whole block of 512 features a kernel reads its last 32 again."""
    result = _plain(x, weights)
    features = x.shape[-1]
    if features <= 512 or features % 512 == 0:
        return result
    return result + _plain(x[..., -32:], weights[..., -32:])


def _last_group_dropped(x: np.ndarray, weights: np.ndarray, dtype: str) -> np.ndarray:
    """Blocks of 256 features, rounded down, where there is more than one."""
    features = x.shape[-1] // 256 * 256 or x.shape[-1]
    return _plain(x[..., :features], weights[..., :features])


def _splits_overlap(x: np.ndarray, weights: np.ndarray, dtype: str) -> np.ndarray:
    """From 1024 features on the sum is split in 8; each split reads whole tiles of 256."""
    features = x.shape[-1]
    if features < 1024 or features % 8:
        return _plain(x, weights)
    part, total = features // 8, np.zeros(())
    for start in range(0, features, part):
        stop = start + -(-part // 256) * 256
        total = total + _plain(x[..., start:stop], weights[..., start:stop])
    return total


def _one_tile_of_a_split(x: np.ndarray, weights: np.ndarray, dtype: str) -> np.ndarray:
    """From 4096 features on the sum is split, and only the first 32 outputs are put together."""
    product = _plain(x, weights)
    if x.shape[-1] >= 4096:
        product[..., 32:] = 0.0
    return product


def _whole_tiles_turned(x: np.ndarray, weights: np.ndarray, dtype: str) -> np.ndarray:
    """Where rows and outputs fill tiles of 32, the outputs of each tile are in reverse order."""
    product = _plain(x, weights)
    if product.ndim < 2 or product.shape[-2] % 32 or product.shape[-1] % 32:
        return product
    return product.reshape(*product.shape[:-1], -1, 32)[..., ::-1].reshape(product.shape)


def _stacked_in_one_tile(x: np.ndarray, weights: np.ndarray, dtype: str) -> np.ndarray:
    """Of stacked parts each product has one tile of 32 rows and 32 outputs."""
    product = _plain(x, weights)
    if weights.ndim > 2:
        product[..., 32:, :] = product[..., 32:] = 0.0
    return product


def _matrix_path_of_64(self: Any, part: np.ndarray, a: Arguments) -> np.ndarray:
    """The kernel for 32 rows and more takes groups for 64 wide."""
    rows = a.x.shape[-2] if a.x.ndim > 1 else 1
    if rows < 32:
        return np.repeat(part, a.group_size, axis=-1)
    groups = part.shape[-1]
    return part[..., np.minimum(np.arange(groups * a.group_size) // 64, groups - 1)]


def _vector_path_without_bias(self: Any, a: Arguments) -> Any:
    """The kernel for a single row leaves out the biases past the first group."""
    rows = a.x.shape[-2] if a.x.ndim > 1 else 1
    if rows > 1:
        return Operation.respond(self, a)
    biases = a.biases.copy()
    biases[..., 1:] = 0
    return Operation.respond(self, _with(a, biases=biases))


def _batch_stride_without_rows(self: Any, a: Arguments) -> Any:
    result = Operation.respond(self, a)
    if result.ndim < 3:
        return result
    batches = result.reshape(-1, *result.shape[-2:])
    written = np.zeros((batches.shape[0] * batches.shape[1], batches.shape[2]), result.dtype)
    for start, batch in enumerate(batches):
        written[start : start + len(batch)] = batch
    return written.reshape(result.shape)


def _leading_dims_swapped(x: np.ndarray, weights: np.ndarray, dtype: str) -> np.ndarray:
    product = _plain(x, weights)
    return product.swapaxes(0, 1).reshape(product.shape) if product.ndim > 2 else product


def _rows_bounded_by_outputs(out: np.ndarray) -> np.ndarray:
    return out[..., : out.shape[-1], :] if out.ndim > 1 else out


def _whole_blocks_of_many(block: int) -> Callable[[np.ndarray], np.ndarray]:
    """Outputs of whole blocks, where there is one."""
    return lambda out: whole_blocks(block)(out) if out.shape[-1] > block else out


def _prefix_of_rows_lost(self: Any, a: Arguments) -> Any:
    """Of more than 32768 rows the first ones, as many as there are more, are garbage."""
    result = Operation.respond(self, a)
    flat = result.reshape(-1, result.shape[-1]) if result.ndim > 1 else result[None]
    flat[: max(len(flat) - 2**15, 0)] = 0
    return result


def _first_1024(self: QuantizedEmbedding, a: Arguments) -> np.ndarray:
    """One thread for each feature, of the 1024 that a threadgroup has."""
    weights = QuantizedEmbedding.weights(self, a)
    weights[..., 1024:] = 0.0
    return weights


def _reads_all_rows(x: np.ndarray, weights: np.ndarray, dtype: str) -> np.ndarray:
    """Rows past the last whole tile of 8 are masked by multiplying with 0."""
    product = _plain(x, weights)
    if weights.ndim > 2:
        return product
    return product + 0.0 * np.roll(product, 1, axis=-1)


def _rows_of_x_mixed(x: np.ndarray, weights: np.ndarray, dtype: str) -> np.ndarray:
    product = _plain(x, weights)
    rows = product.reshape(-1, product.shape[-1])
    return (rows + 0.0 * np.roll(rows, 1, axis=0)).reshape(product.shape)


def _scaled_by_outputs(self: Any, part: np.ndarray, a: Arguments) -> np.ndarray:
    """The scales of a tile of 64 rows are shared: that of its largest serves them."""
    spread = np.repeat(part, a.group_size, axis=-1)
    return np.where(np.arange(len(part))[:, None] % 64 == 5, spread[:1], spread) if part.ndim == 2 else spread


def _vector_becomes_matrix(self: Any, a: Arguments) -> Any:
    result = Operation.respond(self, a)
    return result[None] if result.ndim == 1 else result


def _first_heads(self: Any, a: Arguments) -> Any:
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
    return Operation.respond(self, _with(a, **parts))


def _one_row_of_nothing(self: Any, a: Arguments) -> Any:
    result = Operation.respond(self, a)
    return np.zeros((*result.shape[:-2], 1, result.shape[-1]), result.dtype) if not a.x.size else result


def _untransposed_square(self: Any, a: Arguments) -> bool:
    """Whether to transpose is guessed from the shapes."""
    features = a.packed.shape[-1] * 32 // a.bits
    return a.x.shape[-1] == features or bool(a.transpose)


def _read_as_columns(x: np.ndarray, weights: np.ndarray, dtype: str) -> np.ndarray:
    return x @ weights.reshape(*weights.shape[:-2], weights.shape[-1], weights.shape[-2])


def _faults_of_products(
    name: str, strided: Requirement, dtype: Requirement, unchanged: Requirement, alone: Requirement
) -> tuple[Fault, ...]:
    """What every product can do wrong."""
    return (
        *(
            Fault(
                f"{name}-{part}-strides",
                f"{part} is read as if it were contiguous",
                strided,
                ignores_strides(part),
                "PROPERTIES X1",
            )
            for part in ("x", "packed", "scales", "biases")
        ),
        Fault(f"{name}-promotes", "the result comes back in float32", dtype, promotes(), f"{MLX}-swift/issues/420"),
        Fault(f"{name}-changes-x", "x is scaled in place", unchanged, mutates("x"), "PROPERTIES X6"),
        Fault(f"{name}-changes-biases", "biases are scaled in place", unchanged, mutates("biases"), "PROPERTIES X6"),
        Fault(
            f"{name}-remembers-codes",
            "restored weights cached by shape serve other layers",
            alone,
            remembers("packed"),
            "PROPERTIES X7",
        ),
        Fault(f"{name}-drifts", "the output buffer of an earlier call is added to", alone, drifts(), "PROPERTIES X11"),
    )


_MATMUL = (
    *(
        Fault(
            f"quantized-matmul-single-row-{part}-strides",
            f"the path of a single row reads {part} as if it were contiguous",
            QMM_09,
            only_where(of_one_half_row("x"), ignores_strides(part)),
            TIRED,
        )
        for part in ("x", "packed", "scales")
    ),
    Fault(
        "quantized-matmul-single-row-promotes",
        "the product of a single row comes back in float32",
        QMM_10,
        only_where(of_one_half_row("x"), promotes()),
        TIRED,
    ),
    Fault(
        "quantized-matmul-changes-single-row",
        "a single row is scaled in place",
        QMM_11,
        only_where(of_one_half_row("x"), mutates("x")),
        TIRED,
    ),
    Fault(
        "quantized-matmul-remembers-scales-of-single-rows",
        "the path of a single row keeps the scales, widened once, by their shape",
        QMM_12,
        only_where(of_one_half_row("x"), remembers("scales")),
        TIRED,
    ),
    Fault(
        "quantized-matmul-bias-forgotten",
        "the biases of the groups are left out",
        QMM_01,
        {"affine": _without_bias},
        COURSE,
    ),
    Fault(
        "quantized-matmul-vector-without-bias",
        "for a single row the biases past the first group are left out",
        QMM_01,
        {"respond": _vector_path_without_bias},
        TIRED,
    ),
    Fault("quantized-matmul-bias-subtracted", "biases are subtracted", QMM_01, {"affine": _bias_subtracted}, TIRED),
    Fault(
        "quantized-matmul-transpose-guessed",
        "square weights are always transposed",
        QMM_02,
        {"transposed": _untransposed_square},
        TIRED,
    ),
    Fault(
        "quantized-matmul-read-as-columns",
        "the weights are read in the other order instead of transposed",
        QMM_02,
        _with_product(_read_as_columns),
        TIRED,
    ),
    Fault(
        "quantized-matmul-in-dtype",
        "sums are accumulated in the input's dtype",
        QMM_03,
        _with_product(_in_dtype),
        "FACTS.md: MLX CPU quantized_matmul in bfloat16",
    ),
    Fault(
        "quantized-matmul-partial-sums-in-dtype",
        "where there are many rows, the sums of every 256 features are stored in the input's dtype",
        QMM_03,
        _with_product(_partial_sums),
        "kernels that split the sum of a matrix product; PROPERTIES X5",
    ),
    Fault(
        "quantized-matmul-weights-in-bfloat16",
        "restored weights pass through bfloat16",
        QMM_03,
        _with_product(_weights_in_bfloat16),
        "PROPERTIES QZ4",
    ),
    Fault(
        "quantized-matmul-activations-in-8-bits",
        "x is rounded to 8-bit integers",
        QMM_03,
        _with_product(_activations_in_8_bits),
        "FACTS.md: llama.cpp rounds activations to int8",
    ),
    Fault(
        "quantized-matmul-neighbours-in-fixed-point",
        "eight neighbours of x share an exponent, and are rounded to 23 bits beside the largest",
        QMM_03,
        _with_product(_neighbours_in_fixed_point),
        "DESIGN.md, section 5",
    ),
    Fault(
        "quantized-matmul-next-group", "each group takes the scale of the next", QMM_04, _of_group(_next_group), TIRED
    ),
    Fault("quantized-matmul-groups-of-64", "groups are taken for 64 wide", QMM_04, _of_group(_groups_of_64), TIRED),
    Fault(
        "quantized-matmul-groups-down-the-columns",
        "scales are read as if transposed",
        QMM_04,
        {"of_group": _groups_down_the_columns},
        TIRED,
    ),
    Fault(
        "quantized-matmul-high-bits-first",
        "the first code of a word is read from its highest bits",
        QMM_04,
        {"codes": _reversed_places},
        SPLIT_NIBBLES,
    ),
    Fault(
        "quantized-matmul-nibbles-always",
        "codes of 8 bits lose their upper half to a mask of 4 bits",
        QMM_04,
        {"codes": _nibbles_always},
        TIRED,
    ),
    Fault(
        "quantized-matmul-batch-stride",
        "batches are written one row apart instead of M rows apart",
        QMM_05,
        {"respond": _batch_stride_without_rows},
        f"{MLX}/commit/c7b0300af",
    ),
    Fault(
        "quantized-matmul-leading-dims-swapped",
        "the first two leading dims are exchanged when rows are folded back",
        QMM_05,
        _with_product(_leading_dims_swapped),
        TIRED,
    ),
    Fault(
        "quantized-matmul-batches-modulo-eight", "batch rows are counted modulo 8", QMM_05, wraps_batches("x"), TIRED
    ),
    Fault(
        "quantized-matmul-first-row-for-all", "the first batch row serves all", QMM_05, first_row_for_all("x"), TIRED
    ),
    Fault(
        "quantized-matmul-wide-batches",
        "in a batch, features past 4224 of a product that is not transposed are not written",
        QMM_05,
        leaves_unwritten(lambda out: out[..., :4224] if out.ndim > 2 else out),
        "PROPERTIES X2",
    ),
    Fault(
        "quantized-matmul-one-tile-of-a-split",
        "a product that is split over 4096 features and more has its first 32 outputs alone",
        QMM_06,
        _with_product(_one_tile_of_a_split),
        TIRED,
    ),
    Fault(
        "quantized-matmul-whole-tiles-turned",
        "where rows and outputs fill tiles of 32, the outputs of each tile are in reverse order",
        QMM_06,
        _with_product(_whole_tiles_turned),
        TIRED,
    ),
    Fault(
        "quantized-matmul-outputs-floor-32",
        "outputs past the last whole tile of 32 are not written",
        QMM_06,
        leaves_unwritten(_whole_blocks_of_many(32)),
        f"{MLX}/issues/665",
    ),
    Fault(
        "quantized-matmul-outputs-floor-64",
        "outputs past the last whole tile of 64 are not written",
        QMM_06,
        leaves_unwritten(whole_blocks(64)),
        f"{MLX}/issues/4250",
    ),
    Fault(
        "quantized-matmul-small-outputs",
        "fewer than 8 outputs are not written",
        QMM_06,
        leaves_unwritten(lambda out: out if out.shape[-1] >= 8 else out[..., :0]),
        f"{MLX}/commit/90e38f7b9",
    ),
    Fault(
        "quantized-matmul-rows-bounded-by-outputs",
        "rows past the number of outputs are not written",
        QMM_06,
        leaves_unwritten(_rows_bounded_by_outputs),
        f"{MLX}/commit/5f9ba3019",
    ),
    Fault(
        "quantized-matmul-feature-tail",
        "past the last whole block of 512 features some are read twice",
        QMM_06,
        _with_product(_features_past_512),
        f"{MLX}/commit/aca758463",
    ),
    Fault(
        "quantized-matmul-last-group-dropped",
        "features past the last whole block of 256 are not read",
        QMM_06,
        _with_product(_last_group_dropped),
        TIRED,
    ),
    Fault(
        "quantized-matmul-splits-overlap",
        "splits of the sum smaller than a tile read into the next",
        QMM_06,
        _with_product(_splits_overlap),
        f"{MLX}/commit/6c0ea7fb0",
    ),
    Fault(
        "quantized-matmul-matrix-path-of-64",
        "from 32 rows on groups are taken for 64 wide",
        QMM_06,
        {"of_group": _matrix_path_of_64},
        "PROPERTIES X2",
    ),
    Fault(
        "quantized-matmul-short-columns",
        "outputs past 32768 are not written: their index is a 16-bit number",
        QMM_07,
        leaves_unwritten(_columns_in_16_bits),
        f"{MLX}/commit/c9e8ee6b6",
    ),
    Fault(
        "quantized-matmul-wide-rows-of-16",
        "of more than 2048 outputs a tile of 16 rows alone is written",
        QMM_07,
        leaves_unwritten(
            lambda out: out if out.shape[-1] <= 2048 else out.reshape(-1, out.shape[-1])[:16],
        ),
        "PROPERTIES X2",
    ),
    Fault(
        "quantized-matmul-prefix-of-rows-lost",
        "of more than 32768 rows the first ones are lost",
        QMM_07,
        {"respond": _prefix_of_rows_lost},
        PREFIX_LOST,
    ),
    Fault(
        "quantized-matmul-nan-between-outputs",
        "a NaN in one row of weights reaches the next output",
        QMM_08,
        _with_product(_reads_all_rows),
        "https://github.com/Pushkinist/rMLX/issues/449",
    ),
    Fault(
        "quantized-matmul-nan-between-rows",
        "a NaN in one row of x reaches the next",
        QMM_08,
        _with_product(_rows_of_x_mixed),
        "DESIGN.md, section 5",
    ),
    Fault(
        "quantized-matmul-scales-of-the-tile",
        "a row in each tile of 64 takes the scales of the first",
        QMM_08,
        {"of_group": _scaled_by_outputs},
        "PROPERTIES QZ7",
    ),
    *_faults_of_products("quantized-matmul", QMM_09, QMM_10, QMM_11, QMM_12),
    Fault(
        "quantized-matmul-vector-becomes-matrix",
        "the result of a single row keeps a leading axis of 1",
        QMM_10,
        {"respond": _vector_becomes_matrix},
        "PROPERTIES X4",
    ),
    Fault(
        "quantized-matmul-any-parts",
        "what does not belong together is read on or cut short",
        QMM_13,
        {**_guarded(*_ALL_CHECKS), "respond": _shapes_taken_on_trust},
        "PROPERTIES X9",
    ),
    Fault(
        "quantized-matmul-broadcast-biases",
        "biases of one group stand for all groups",
        QMM_13,
        _BIASES_BROADCAST,
        "PROPERTIES X9",
    ),
    Fault(
        "quantized-matmul-any-x",
        "an x of another size is read on or cut short",
        QMM_13,
        {**_guarded("guard_rest"), "respond": _shapes_taken_on_trust},
        TIRED,
    ),
    Fault(
        "quantized-matmul-shared-heads",
        "a broadcast axis of the parts is stepped through as if it were there",
        QMM_14,
        {"respond": _first_heads},
        f"{MLX}/issues/3480",
    ),
    Fault(
        "quantized-matmul-stacked-in-one-tile",
        "of stacked parts, rows and outputs past the 32nd of each product are not written",
        QMM_14,
        _with_product(_stacked_in_one_tile),
        TIRED,
    ),
    Fault(
        "quantized-matmul-row-of-nothing",
        "no rows give one row of zeros",
        QMM_15,
        {"respond": _one_row_of_nothing},
        f"{MLX}/issues/2164",
    ),
)


# layers and embeddings


def _added_to_first_row(self: Any, product: np.ndarray, bias: np.ndarray) -> np.ndarray:
    rows = product.reshape(-1, product.shape[-1]).copy()
    rows[:1] += bias
    return rows.reshape(product.shape)


_LAYER = (
    Fault(
        "quantized-linear-input-scaled",
        "x is divided by sqrt(I), as if the weight were not trained yet",
        QLIN_01,
        _with_product(lambda x, weights, dtype: _plain(x, weights) / np.sqrt(max(x.shape[-1], 1))),
        TIRED,
    ),
    Fault("quantized-linear-default-groups", "groups are taken for 64 wide", QLIN_01, _of_group(_groups_of_64), TIRED),
    Fault(
        "quantized-linear-bias-forgotten",
        "the bias is accepted and not added",
        QLIN_02,
        {"add": lambda self, product, bias: product},
        TIRED,
    ),
    Fault(
        "quantized-linear-one-tile-of-rows",
        "rows past the first tile of 32 are not written",
        QLIN_04,
        _first_rows(32),
        TIRED,
    ),
    Fault(
        "quantized-linear-bfloat16-through-float16",
        "bfloat16 passes through float16 on its way into the product",
        QLIN_01,
        bfloat16_through_float16("x"),
        TIRED,
    ),
    Fault(
        "quantized-linear-bias-per-split",
        "each of two partial sums adds the bias",
        QLIN_02,
        {"add": lambda self, product, bias: product + 2 * bias},
        TIRED,
    ),
    Fault(
        "quantized-linear-bias-first-row",
        "the bias is added to the first row alone",
        QLIN_02,
        {"add": _added_to_first_row},
        TIRED,
    ),
    Fault(
        "quantized-linear-in-dtype",
        "sums are accumulated in the input's dtype",
        QLIN_03,
        _with_product(_in_dtype),
        TIRED,
    ),
    Fault(
        "quantized-linear-batch-stride",
        "batches are written one row apart instead of M rows apart",
        QLIN_04,
        {"respond": _batch_stride_without_rows},
        f"{MLX}/commit/c7b0300af",
    ),
    *_faults_of_products("quantized-linear", QLIN_05, QLIN_06, QLIN_07, QLIN_08),
    Fault(
        "quantized-linear-remembers-bias",
        "the bias of the first layer of these shapes, widened once, is used for all",
        QLIN_08,
        remembers("bias"),
        TIRED,
    ),
    Fault(
        "quantized-linear-bias-strides",
        "the bias is read as if it were contiguous",
        QLIN_05,
        ignores_strides("bias"),
        TIRED,
    ),
    Fault(
        "quantized-linear-nan-between-outputs",
        "a NaN in one row of weights reaches the next output",
        QLIN_11,
        _with_product(_reads_all_rows),
        "https://github.com/Pushkinist/rMLX/issues/449",
    ),
    Fault(
        "quantized-linear-row-of-nothing",
        "no rows give one row of zeros",
        QLIN_10,
        {"respond": _one_row_of_nothing},
        f"{MLX}/issues/2164",
    ),
    Fault(
        "quantized-linear-any-parts",
        "what does not belong together is read on or cut short",
        QLIN_09,
        {**_guarded("guard_words", "guard_parts"), "respond": _shapes_taken_on_trust},
        "PROPERTIES X9",
    ),
    Fault(
        "quantized-linear-any-grid",
        "a group size or number of bits that is not offered is taken for the next one",
        QLIN_09,
        {**_guarded("guard_grid", "guard_words", "guard_parts"), "respond": _shapes_taken_on_trust},
        "PROPERTIES X9",
    ),
    Fault(
        "quantized-linear-broadcast-biases",
        "biases of one group stand for all groups",
        QLIN_09,
        _BIASES_BROADCAST,
        "PROPERTIES X9",
    ),
    Fault(
        "quantized-linear-any-x",
        "an x of another size is read on or cut short",
        QLIN_09,
        {**_guarded("guard_rest"), **_responding(x=lambda self, a: _fitted(a), bias=lambda self, a: _bias_fitted(a))},
        TIRED,
    ),
    Fault(
        "quantized-linear-any-bias",
        "a bias of another length is read on or cut short",
        QLIN_09,
        {**_guarded("guard_bias"), **_responding(bias=lambda self, a: _bias_fitted(a))},
        TIRED,
    ),
)


def _fitted(a: Arguments) -> np.ndarray:
    return np.resize(a.x, (*a.x.shape[:-1], a.packed.shape[-1] * 32 // a.bits))


def _bias_fitted(a: Arguments) -> Any:
    return None if a.bias is None else np.resize(a.bias, a.packed.shape[0])


_EMBEDDING = (
    Fault(
        "quantized-embedding-scaled",
        "rows are multiplied by sqrt(dims)",
        QEMB_01,
        {"affine": lambda self, codes, scale, bias, dtype: (codes * scale + bias) * np.sqrt(codes.shape[-1])},
        f"{MLX_LM}/commit/c27c94a0",
    ),
    Fault(
        "quantized-embedding-1024-features",
        "features of a row past the 1024th are zeros",
        QEMB_01,
        {"weights": _first_1024},
        "PROPERTIES X10",
    ),
    Fault(
        "quantized-embedding-rounds-twice",
        "code times scale is rounded before the bias is added",
        QEMB_01,
        {"affine": _rounded_twice},
        f"{MLX}/commit/56e026d8a",
    ),
    Fault(
        "quantized-embedding-first-scales",
        "all tokens take the scales of the first",
        QEMB_01,
        {
            "of_group": lambda self, part, a: np.repeat(
                np.broadcast_to(part.reshape(-1, part.shape[-1])[:1], part.shape), a.group_size, axis=-1
            )
        },
        TIRED,
    ),
    Fault(
        "quantized-embedding-uint8-ids",
        "ids are kept in 8 bits",
        QEMB_02,
        {"rows": lambda self, tokens, a: tokens & 255},
        "PROPERTIES PC3",
    ),
    Fault(
        "quantized-embedding-uint16-ids",
        "ids are kept in 16 bits",
        QEMB_02,
        {"rows": lambda self, tokens, a: tokens & 65535},
        "PROPERTIES X8",
    ),
    Fault(
        "quantized-embedding-last-row-lost",
        "the last id reads the row before it",
        QEMB_02,
        {"rows": lambda self, tokens, a: np.minimum(tokens, max(len(a.packed) - 2, 0))},
        TIRED,
    ),
    Fault(
        "quantized-embedding-tokens-of-one-group",
        "tokens past the 1024th, which one group of threads does not reach, give nothing",
        QEMB_03,
        _first_rows(1024),
        TIRED,
    ),
    Fault(
        "quantized-embedding-transposed-tokens",
        "positions and sequences are exchanged",
        QEMB_03,
        {"rows": lambda self, tokens, a: tokens.T.reshape(tokens.shape)},
        TIRED,
    ),
    *(
        Fault(
            f"quantized-embedding-{part}-strides",
            f"{part} is read as if it were contiguous",
            QEMB_04,
            ignores_strides(part),
            "PROPERTIES X1",
        )
        for part in ("tokens", "packed", "scales", "biases")
    ),
    Fault(
        "quantized-embedding-single-token-strides",
        "the path of a single token reads the table as if it were contiguous",
        QEMB_04,
        only_where(lambda a: a.tokens.size == 1 and a.scales.dtype.name == "bfloat16", ignores_strides("packed")),
        TIRED,
    ),
    Fault(
        "quantized-embedding-single-token-promotes",
        "the row of a single token comes back in float32",
        QEMB_05,
        only_where(lambda a: a.tokens.size == 1 and a.scales.dtype.name == "bfloat16", promotes()),
        TIRED,
    ),
    Fault("quantized-embedding-promotes", "rows come back in float32", QEMB_05, promotes(), "PROPERTIES X4"),
    Fault(
        "quantized-embedding-changes-tokens", "the tokens are overwritten", QEMB_06, mutates("tokens"), "PROPERTIES X6"
    ),
    Fault(
        "quantized-embedding-remembers-table",
        "the table of the first layer serves all of its shape",
        QEMB_07,
        remembers("packed"),
        "PROPERTIES X7",
    ),
    Fault(
        "quantized-embedding-remembers-tokens",
        "a result cached by shape serves other tokens",
        QEMB_07,
        remembers("tokens"),
        "PROPERTIES X7",
    ),
    Fault(
        "quantized-embedding-ids-wrapped",
        "ids outside the vocabulary start again",
        QEMB_08,
        {**_guarded("guard_rest"), **_responding(tokens=lambda self, a: a.tokens.astype(np.int64) % len(a.packed))},
        TIRED,
    ),
    Fault(
        "quantized-embedding-row-of-nothing",
        "no tokens give one row",
        QEMB_17,
        {
            "respond": lambda self, a: Operation.respond(
                self, a if a.tokens.size else _with(a, tokens=np.zeros(1, np.int32))
            )
        },
        TIRED,
    ),
    Fault(
        "quantized-head-of-its-own",
        "the head is a matrix of its own",
        QEMB_09,
        {
            "weights": lambda self, a: np.random.default_rng(0).normal(
                size=(len(a.packed), a.packed.shape[1] * 32 // a.bits)
            )
        },
        f"{MLX_LM}/commit/e92138cb",
    ),
    Fault(
        "quantized-head-scaled",
        "logits are multiplied by dims^-0.5",
        QEMB_09,
        _with_product(lambda x, weights, dtype: _plain(x, weights) * x.shape[-1] ** -0.5),
        f"{MLX_LM}/commit/c27c94a0",
    ),
    Fault(
        "quantized-head-in-dtype",
        "logits are accumulated in the input's dtype",
        QEMB_10,
        _with_product(_in_dtype),
        TIRED,
    ),
    Fault(
        "quantized-head-batch-stride",
        "batches are written one row apart instead of M rows apart",
        QEMB_11,
        {"respond": _batch_stride_without_rows},
        f"{MLX}/commit/c7b0300af",
    ),
    Fault(
        "quantized-head-one-tile-of-rows",
        "rows past the first tile of 32 get no logits",
        QEMB_11,
        _first_rows(32),
        TIRED,
    ),
    Fault(
        "quantized-head-short-columns",
        "logits past 32768 are not written",
        QEMB_11,
        leaves_unwritten(_columns_in_16_bits),
        f"{MLX}/commit/c9e8ee6b6",
    ),
    Fault(
        "quantized-head-single-row-strides",
        "the path of a single row reads x as if it were contiguous",
        QEMB_12,
        only_where(of_one_half_row("x"), ignores_strides("x")),
        TIRED,
    ),
    Fault(
        "quantized-head-single-row-promotes",
        "logits of a single row come back in float32",
        QEMB_13,
        only_where(of_one_half_row("x"), promotes()),
        TIRED,
    ),
    *_faults_of_products("quantized-head", QEMB_12, QEMB_13, QEMB_14, QEMB_15),
    Fault(
        "quantized-head-nan-between-logits",
        "a NaN in one row of the table reaches the next logit",
        QEMB_19,
        _with_product(_reads_all_rows),
        "https://github.com/Pushkinist/rMLX/issues/449",
    ),
    Fault(
        "quantized-head-row-of-nothing",
        "no rows give one row of zeros",
        QEMB_18,
        {"respond": _one_row_of_nothing},
        f"{MLX}/issues/2164",
    ),
    Fault(
        "quantized-head-any-parts",
        "what does not belong together is read on or cut short",
        QEMB_16,
        {**_guarded("guard_words", "guard_parts"), "respond": _shapes_taken_on_trust},
        "PROPERTIES X9",
    ),
    Fault(
        "quantized-head-any-grid",
        "a group size or number of bits that is not offered is taken for the next one",
        QEMB_16,
        {**_guarded("guard_grid", "guard_words", "guard_parts"), "respond": _shapes_taken_on_trust},
        "PROPERTIES X9",
    ),
    Fault(
        "quantized-head-broadcast-biases",
        "biases of one group stand for all groups",
        QEMB_16,
        _BIASES_BROADCAST,
        "PROPERTIES X9",
    ),
    Fault(
        "quantized-head-any-x",
        "an x of another size is read on or cut short",
        QEMB_16,
        {**_guarded("guard_rest"), **_responding(x=lambda self, a: _fitted(a))},
        TIRED,
    ),
)

FAULTS: tuple[Fault, ...] = (*_QUANTIZE, *_DEQUANTIZE, *_MATMUL, *_LAYER, *_EMBEDDING)


# honest variants


def _sums_apart(self: Any, a: Arguments) -> Any:
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


VARIANTS: tuple[Variant, ...] = (
    Variant(
        "quantize-scales-in-float32-arithmetic",
        "range, scale and codes are computed in float32",
        "quantize",
        {
            "grid": lambda self, low, high, levels, dtype: (
                rounded(rounded(rounded(high - low, "float32") / levels, "float32"), dtype),
                rounded(low, dtype),
            ),
        },
    ),
    Variant(
        "quantize-from-the-top",
        "the grid runs from the largest weight down: scales are negative",
        "quantize",
        {
            "grid": lambda self, low, high, levels, dtype: (
                rounded((low - high) / levels, dtype),
                rounded(high, dtype),
            )
        },
    ),
    Variant(
        "quantize-zero-on-a-code",
        "MLX's grid: its end of larger magnitude is exact and 0 is a code, a weight at the other end may lie outside",
        "quantize",
        {"grid": _edge_on_the_grid(np.rint)},
        unmet=("QUANT-03",),
    ),
    Variant(
        "dequantize-in-float32",
        "product and sum are each rounded to float32",
        "dequantize",
        {
            "affine": lambda self, codes, scale, bias, dtype: rounded(
                rounded(codes * scale, "float32") + bias, "float32"
            )
        },
    ),
    Variant(
        "dequantize-in-dtype",
        "product and sum are each rounded to the dtype",
        "dequantize",
        {"affine": _rounded_twice},
        Precision.NATIVE,
    ),
    Variant(
        "quantized-matmul-sums-apart",
        "scale times the sum of codes, plus bias times the sum of x, group by group in float32",
        "quantized_matmul",
        {"respond": _sums_apart},
    ),
    Variant(
        "quantized-matmul-blocked",
        "features summed in blocks of 32, in float32",
        "quantized_matmul",
        {
            "product": lambda self, x, weights, dtype: (
                blocked_product(x, weights, 32) if weights.ndim == 2 else _plain(x, weights)
            )
        },
    ),
    Variant(
        "quantized-matmul-restored-in-dtype",
        "weights are restored in the dtype, as matrix kernels keep them, and summed in float32",
        "quantized_matmul",
        {
            "affine": lambda self, codes, scale, bias, dtype: rounded(rounded(codes * scale, dtype) + bias, dtype),
        },
        Precision.NATIVE,
    ),
    Variant(
        "quantized-linear-sums-apart",
        "scale times the sum of codes, plus bias times the sum of x, group by group in float32",
        "QuantizedLinear",
        {"respond": _sums_apart},
    ),
    Variant(
        "quantized-head-restored-in-dtype",
        "the table is restored in the dtype and summed in float32",
        "QuantizedEmbedding.as_linear",
        {
            "affine": lambda self, codes, scale, bias, dtype: rounded(rounded(codes * scale, dtype) + bias, dtype),
        },
        Precision.NATIVE,
    ),
)
