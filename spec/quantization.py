"""Affine group-wise quantisation as MLX stores it, and products with what is stored.

A row of I weights is cut into groups of `group_size` neighbours. Each group has a scale and a bias, each weight a code of
`bits` bits: weight = code · scale + bias. Codes lie in uint32 words, the first in the lowest bits: weight j of a row is in
word j·bits // 32.

Shapes: w O×I, packed O×(I·bits/32) uint32, scales and biases O×(I/group_size), x N..×I. All floating arrays of a
call share one dtype, which is that of the result.

Which codes and which scale a quantiser takes is left open (`mx.quantize` has negative scales, and moves a grid so that 0
lies on it): the contract bounds the grid by the range of its group, and each weight by the grid.

Sources: MLX (`mlx/ops.h`: quantize, dequantize, quantized_matmul); the tiny-llm course, week 2 day 2.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

from inferspec.spec.contract import (
    Answer,
    Answers,
    Arguments,
    Aspect,
    Contract,
    Level,
    Operation,
    Requirement,
    Signature,
)
from inferspec.spec.linear import known_places, product_budget, product_roundings
from inferspec.spec.numerics import (
    FINEST_STEP,
    Precision,
    f64,
    is_float,
    operations,
    round_to,
    rounding,
    unit_roundoff,
)

GROUP_SIZES = (32, 64, 128)
BITS = (4, 2, 8)

GRID_NARROWS: Mapping[str, tuple[str, tuple[Any, ...]]] = {
    "group_size": ("group_sizes", (128,)),
    "bits": ("bits", (4,)),
}


def unpacked(packed: np.ndarray, bits: int) -> np.ndarray:
    """Return the codes N..×I of words N..×(I·bits/32)."""
    shifts = np.arange(0, 32, bits, dtype=np.uint32)
    codes = (packed.astype(np.uint32)[..., None] >> shifts) & np.uint32(2**bits - 1)
    return codes.reshape(*packed.shape[:-1], packed.shape[-1] * (32 // bits)).astype(np.int64)


def packed_words(codes: np.ndarray, bits: int) -> np.ndarray:
    """Return the words N..×(I·bits/32) of codes N..×I."""
    each = 32 // bits
    words = codes.astype(np.uint32).reshape(*codes.shape[:-1], codes.shape[-1] // each, each)
    return np.bitwise_or.reduce(words << np.arange(0, 32, bits, dtype=np.uint32), axis=-1)


def restored(parts: Mapping[str, np.ndarray], group_size: int, bits: int) -> np.ndarray:
    """Return the weights that packed, scales and biases stand for, in float64."""
    scales, biases = (np.repeat(f64(parts[part]), group_size, axis=-1) for part in ("scales", "biases"))
    return unpacked(parts["packed"], bits) * scales + biases


def _guard_grid(a: Arguments) -> None:
    if a.group_size not in GROUP_SIZES:
        raise ValueError(f"group_size is {a.group_size}, not one of {GROUP_SIZES}")
    if a.bits not in BITS:
        raise ValueError(f"bits is {a.bits}, not one of {BITS}")


class Quantize(Operation):
    """Codes, scales and biases whose weights are those given, as closely as the codes allow.

    The oracle's own grid runs from the smallest weight of a group to its largest. Only what a grid may be is contracted:
    see `nearest`, `steps` and `farthest`.
    """

    signature = Signature.parse("quantize(w, group_size=128, bits=4)")
    parts = ("packed", "scales", "biases")
    narrows = GRID_NARROWS

    def guard(self, a: Arguments) -> None:
        self.guard_grid(a)
        self.guard_weights(a)

    def guard_grid(self, a: Arguments) -> None:
        _guard_grid(a)

    def guard_weights(self, a: Arguments) -> None:
        if not is_float(a.w.dtype):
            raise TypeError(f"w is {a.w.dtype.name}, not floating-point")
        if a.w.ndim < 2 or a.w.shape[-1] % a.group_size:
            raise ValueError(f"w is {a.w.shape}, not O×(a multiple of {a.group_size})")

    # The steps of the oracle, on groups N..×G×group_size.

    def groups(self, w: np.ndarray, group_size: int) -> np.ndarray:
        return w.reshape(*w.shape[:-1], w.shape[-1] // group_size, group_size)

    def ends(self, groups: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The weights between which the grid of each group runs."""
        return groups.min(axis=-1), groups.max(axis=-1)

    def grid(self, low: np.ndarray, high: np.ndarray, levels: int, dtype: str) -> tuple[np.ndarray, np.ndarray]:
        """Scale and bias of each group, as they are stored."""
        return f64(round_to((high - low) / levels, dtype)), f64(round_to(low, dtype))

    def codes(self, groups: np.ndarray, scale: np.ndarray, bias: np.ndarray, levels: int) -> np.ndarray:
        step = np.where(scale == 0, 1.0, scale)[..., None]
        return np.clip(np.rint((groups - bias[..., None]) / step), 0, levels)

    def pack(self, codes: np.ndarray, bits: int) -> np.ndarray:
        return packed_words(np.nan_to_num(codes), bits)

    def quantised(self, a: Arguments) -> dict[str, np.ndarray]:
        """The oracle's own parts, scales and biases in float64."""
        levels = 2**a.bits - 1
        groups = self.groups(f64(a.w), a.group_size)
        with np.errstate(all="ignore"):
            scale, bias = self.grid(*self.ends(groups), levels, a.w.dtype.name)
            codes = self.codes(groups, scale, bias, levels)
        return {"packed": self.pack(codes.reshape(a.w.shape), a.bits), "scales": scale, "biases": bias}

    def evaluate(self, a: Arguments, precision: Precision) -> Answers:
        """The oracle's own parts. Others are as right: no budget bounds them, `nearest`, `steps` and `farthest` do."""
        return {part: Answer(f64(x), np.full(x.shape, np.inf)) for part, x in self.quantised(a).items()}

    def steps(self, a: Arguments, precision: Precision) -> Answer:
        """How large |scale| may be in each group; no scale need be finer than FINEST_STEP.

        With n = 2^bits - 1 codes above 0 and range R, the step is s = R/n. MLX moves the end of larger magnitude, e,
        onto a multiple of the scale, so that 0 lies on the grid: scale = e / m, m = rint(e/s). A group of both signs has
        |e| >= R/2, so |e/s| >= n/2: |m| >= (n+1)/2, or (n-1)/2 where e/s is n/2 exactly. Elsewhere |m| is larger. Hence
            s(1 - 1/(2m)) <= |scale| <= s(1 + 1/(2m)) for |m| >= (n+1)/2, and s·n/(n-1) at most.
        """
        low, high = self._range(a)
        step = np.maximum((high - low) / (2**a.bits - 2), FINEST_STEP)
        return Answer(np.zeros(step.shape), step + roundings_of(step, precision, a.w.dtype.name))

    def nearest(self, a: Arguments, parts: Mapping[str, np.ndarray], precision: Precision, reaching: bool) -> Answer:
        """The weights, and how far what the parts stand for may be from them: half a step of the parts' own grid.

        Neither the step nor the way to a weight outside the grid excuses more than an honest grid needs (`steps`,
        `farthest`). reaching: the grid must reach every weight, so that none lies outside.
        The code was chosen before scale and bias were rounded to the dtype: code·u|scale| + u|bias|; computing it took
        four roundings: 4a·code·|scale|, 2a|w|.
        """
        a32, levels, dtype = unit_roundoff("float32"), 2**a.bits - 1, a.w.dtype.name
        w = f64(a.w)
        scale, bias = (np.repeat(f64(parts[part]), a.group_size, axis=-1) for part in ("scales", "biases"))
        size = np.abs(scale)
        computed = operations(a32, 4) * levels * size + operations(a32, 2) * np.abs(w)
        stored = levels * roundings_of(size, precision, dtype) + roundings_of(np.abs(bias), precision, dtype)
        half = np.minimum(size, np.repeat(self.steps(a, precision).budget, a.group_size, axis=-1)) / 2
        beyond = 0.0 if reaching else np.minimum(self.beyond(a, parts), self.farthest(a, precision).budget)
        budget = half + beyond + computed + stored
        # A scale that is not a number excuses nothing.
        return Answer(w, np.where(np.isfinite(budget), budget, 0.0))

    def beyond(self, a: Arguments, parts: Mapping[str, np.ndarray]) -> np.ndarray:
        """How far each weight lies outside the grid of the parts."""
        scale, bias = (np.repeat(f64(parts[part]), a.group_size, axis=-1) for part in ("scales", "biases"))
        end = bias + (2**a.bits - 1) * scale
        w = f64(a.w)
        return np.maximum(np.maximum(np.minimum(bias, end) - w, w - np.maximum(bias, end)), 0.0)

    def farthest(self, a: Arguments, precision: Precision) -> Answer:
        """How far weights may lie outside their grid. By the inequality of `steps` a grid from its exact end is
        n·s/(2m) <= s·n/(n+1) too short; the rounding of scale and bias moves its ends."""
        levels, dtype, (low, high) = 2**a.bits - 1, a.w.dtype.name, self._range(a)
        step = np.maximum((high - low) / levels, FINEST_STEP)
        ends = roundings_of(np.maximum(np.abs(low), np.abs(high)), precision, dtype)
        limit = step * levels / (levels + 1) + levels * roundings_of(step, precision, dtype) + ends
        limit = np.repeat(limit, a.group_size, axis=-1)
        return Answer(np.zeros(limit.shape), limit)

    def _range(self, a: Arguments) -> tuple[np.ndarray, np.ndarray]:
        """The smallest and the largest weight of each group, for budgets: no step of it is replaced."""
        groups = f64(a.w).reshape(*a.w.shape[:-1], a.w.shape[-1] // a.group_size, a.group_size)
        return groups.min(axis=-1), groups.max(axis=-1)

    def part_dtype(self, part: str, a: Arguments) -> str:
        return "uint32" if part == "packed" else a.w.dtype.name


def roundings_of(value: np.ndarray, precision: Precision, dtype: str) -> np.ndarray:
    """Bound on storing a number in the dtype, and on two more roundings on its way in class `native`."""
    return (3 if precision is Precision.NATIVE else 1) * rounding(value, dtype)


class _Quantised(Operation):
    """An operation on packed weights."""

    narrows = GRID_NARROWS

    def guard(self, a: Arguments) -> None:
        self.guard_grid(a)
        self.guard_words(a)
        self.guard_parts(a)
        self.guard_rest(a)

    def guard_grid(self, a: Arguments) -> None:
        _guard_grid(a)

    def guard_words(self, a: Arguments) -> None:
        if a.packed.dtype != np.uint32:
            raise TypeError(f"packed is {a.packed.dtype.name}, not uint32")

    def guard_parts(self, a: Arguments) -> None:
        features = a.packed.shape[-1] * 32 // a.bits if a.packed.ndim > 1 else -1
        shape = (*a.packed.shape[:-1], features // a.group_size)
        if features < 0 or features % a.group_size or a.scales.shape != shape or a.biases.shape != shape:
            raise ValueError(
                f"packed {a.packed.shape}, scales {a.scales.shape} and biases {a.biases.shape} do not belong together"
            )

    def guard_rest(self, a: Arguments) -> None:
        """What else the operation refuses."""

    def codes(self, packed: np.ndarray, bits: int) -> np.ndarray:
        return unpacked(packed, bits)

    def of_group(self, part: np.ndarray, a: Arguments) -> np.ndarray:
        """Scales or biases N..×G, one for each weight."""
        return np.repeat(part, a.group_size, axis=-1)

    def affine(self, codes: np.ndarray, scale: np.ndarray, bias: np.ndarray, dtype: str) -> np.ndarray:
        return codes * scale + bias

    def weights(self, a: Arguments) -> np.ndarray:
        scale, bias = (self.of_group(f64(part), a) for part in (a.scales, a.biases))
        return self.affine(self.codes(a.packed, a.bits), scale, bias, a.scales.dtype.name)

    def sizes(self, a: Arguments) -> tuple[np.ndarray, np.ndarray]:
        """code · scale and bias of each weight, for budgets: no step of them is replaced."""
        scale, bias = (np.repeat(f64(part), a.group_size, axis=-1) for part in (a.scales, a.biases))
        return unpacked(a.packed, a.bits) * scale, bias

    def restoring(self, a: Arguments, precision: Precision) -> np.ndarray:
        """Error of a weight before its one rounding to the dtype: that of the product and of the sum in float32; in
        class `native` both are rounded to the dtype besides."""
        product, bias = self.sizes(a)
        error = operations(unit_roundoff("float32"), 2) * (np.abs(product) + np.abs(bias))
        if precision is Precision.NATIVE:
            dtype = a.scales.dtype.name
            error = error + rounding(product, dtype) + rounding(product + bias, dtype)
        return error


class Dequantize(_Quantised):
    """code · scale + bias in float32, rounded once."""

    signature = Signature.parse("dequantize(packed, scales, biases, group_size=128, bits=4)")

    def evaluate(self, a: Arguments, precision: Precision) -> Answer:
        """Budget: `restoring`, and one rounding of the result."""
        with np.errstate(all="ignore"):
            value = self.weights(a)
            error = self.restoring(a, precision)
            budget = known_places(value, error + rounding(np.abs(value) + error, self.result_dtype(a)))
        return Answer(value, budget)

    def result_dtype(self, a: Arguments) -> str:
        return a.scales.dtype.name


class _Product(_Quantised):
    """x times the weights, transposed or not, and perhaps a bias."""

    def transposed(self, a: Arguments) -> bool:
        return True

    def guard_rest(self, a: Arguments) -> None:
        rows, features = a.packed.shape[-2], a.packed.shape[-1] * 32 // a.bits
        summed = features if self.transposed(a) else rows
        if a.x.ndim < 1 or a.x.shape[-1] != summed:
            raise ValueError(f"x is {a.x.shape}, its last axis is not {summed}")

    def product(self, x: np.ndarray, weights: np.ndarray, dtype: str) -> np.ndarray:
        """x · weightsᵀ."""
        return x @ weights.swapaxes(-1, -2)

    def add(self, product: np.ndarray, bias: np.ndarray) -> np.ndarray:
        return product + bias

    def evaluate(self, a: Arguments, precision: Precision) -> Answer:
        """Budget: `product_budget` on |x| · (|code·scale| + |bias|), which also bounds sums that are taken apart, as
        scale·Σ(x·code) + bias·Σx; four terms more for restoring the weights. Class `native` may round the weights to
        the dtype first, as MLX's matrix kernels do: `restoring`, carried through the product.
        """
        x, dtype, bias = f64(a.x), self.result_dtype(a), getattr(a, "bias", None)
        turned = self.transposed(a)

        def through(weights: np.ndarray) -> np.ndarray:
            return np.abs(x) @ (weights.swapaxes(-1, -2) if turned else weights)

        with np.errstate(all="ignore"):
            weights = self.weights(a)
            product = value = self.product(x, weights if turned else weights.swapaxes(-1, -2), dtype)
            magnitude = through(sum(np.abs(part) for part in self.sizes(a)))
            native = precision is Precision.NATIVE
            carried: Any = through(self.restoring(a, precision)) if native else 0.0
            if bias is not None:
                value, magnitude = self.add(product, f64(bias)), magnitude + np.abs(f64(bias))
            roundings = product_roundings(precision, bias is not None)
            terms = x.shape[-1] + 4 + (bias is not None)
            budget = product_budget(magnitude, product, value, terms, roundings, dtype, carried)
        return Answer(value, budget)

    def result_dtype(self, a: Arguments) -> str:
        return a.x.dtype.name


class QuantizedMatmul(_Product):
    """x · wᵀ: N..×I -> N..×O; x · w: N..×O -> N..×I when not transposed. Leading dims of the parts are broadcast."""

    signature = Signature.parse("quantized_matmul(x, packed, scales, biases, group_size=128, bits=4, transpose=True)")

    narrows: ClassVar = {**GRID_NARROWS, "transpose": ("transpose", (True,))}

    def transposed(self, a: Arguments) -> bool:
        return bool(a.transpose)


class QuantizedLinear(_Product):
    """A linear layer of a quantised weight: x · wᵀ + bias."""

    signature = Signature.parse("QuantizedLinear(packed, scales, biases, group_size=128, bits=4, bias=None)(x)")
    plain = "quantized_linear"
    narrows: ClassVar = {**GRID_NARROWS, "bias": ("bias", (False,))}

    def guard_rest(self, a: Arguments) -> None:
        super().guard_rest(a)
        self.guard_bias(a)

    def guard_bias(self, a: Arguments) -> None:
        if a.bias is not None and a.bias.shape != a.packed.shape[:1]:
            raise ValueError(f"bias is {a.bias.shape}, not {a.packed.shape[:1]}")


class QuantizedEmbedding(_Quantised):
    """The restored rows of the tokens."""

    signature = Signature.parse("QuantizedEmbedding(packed, scales, biases, group_size=128, bits=4)(tokens)")

    def guard_rest(self, a: Arguments) -> None:
        ids, vocabulary = a.tokens.astype(np.int64), a.packed.shape[0]
        if ids.size and not 0 <= ids.min() <= ids.max() < vocabulary:
            raise ValueError(f"tokens range from {ids.min()} to {ids.max()}, not within 0 … {vocabulary - 1}")

    def rows(self, tokens: np.ndarray, a: Arguments) -> np.ndarray:
        """Which row of the table each token reads."""
        return tokens

    def read(self, a: Arguments, rows: np.ndarray) -> Arguments:
        """The parts of those rows."""
        rest = {"group_size": a.group_size, "bits": a.bits}
        return Arguments(packed=a.packed[rows], scales=a.scales[rows], biases=a.biases[rows], **rest)

    def evaluate(self, a: Arguments, precision: Precision) -> Answer:
        """Budget: that of `Dequantize`, for the rows that are read."""
        tokens = a.tokens.astype(np.int64)
        with np.errstate(all="ignore"):
            value = self.weights(self.read(a, self.rows(tokens, a)))
            error = self.restoring(self.read(a, tokens), precision)
            budget = known_places(value, error + rounding(np.abs(value) + error, self.result_dtype(a)))
        return Answer(value, budget)

    def result_dtype(self, a: Arguments) -> str:
        return a.scales.dtype.name


class QuantizedEmbeddingAsLinear(_Product):
    """x · tableᵀ: the logits of a model whose head is its quantised embedding."""

    signature = Signature.parse("QuantizedEmbedding(packed, scales, biases, group_size=128, bits=4).as_linear(x)")


def _about(name: str) -> Any:
    def sentence(
        id: str, text: str, source: str, level: Level = Level.MUST, aspect: Aspect = Aspect.VALUE
    ) -> Requirement:
        return Requirement(id, text, name, level, aspect, source)

    return sentence


_quantize = _about("quantize")
QUANT_01 = _quantize(
    "QUANT-01",
    "each weight comes back within half a step of its group's grid, but for the rounding of scale and bias; one that lies outside the grid comes back as the grid's end; codes lie in uint32 words, the first in the lowest bits",
    "PROPERTIES QZ1, QZ2; tiny-llm course, week 2 day 2",
)
QUANT_02 = _quantize(
    "QUANT-02",
    "the grid fits its group: no step is larger than an affine grid of the group's range needs when it puts 0 on a multiple of it, and no weight lies farther outside than that rounding of its zero point costs",
    "PROPERTIES QZ1; mlx affine_quantize",
)
QUANT_03 = _quantize(
    "QUANT-03",
    "the grid reaches every weight of its group, so that none is more than half a step off",
    "PROPERTIES QZ1; tiny-llm course, week 2 day 2",
    Level.SHOULD,
)
QUANT_04 = _quantize(
    "QUANT-04",
    "a group of one value comes back exactly, zeros too, and weights near the ends of the dtype come back finite",
    "mlx ec8578d41; PROPERTIES QZ1",
)
QUANT_05 = _quantize(
    "QUANT-05", "each group is quantised for itself: other groups and more rows change nothing of it", "PROPERTIES QZ7"
)
QUANT_06 = _quantize("QUANT-06", "w may be a strided view: the result is that of its copy", "PROPERTIES X1")
QUANT_07 = _quantize(
    "QUANT-07",
    "packed is O×(I·bits/32) uint32; scales and biases are O×(I/group_size) in the dtype of w",
    "PROPERTIES X4, QZ2",
    aspect=Aspect.DTYPE,
)
QUANT_08 = _quantize("QUANT-08", "w is not changed", "PROPERTIES X6")
QUANT_09 = _quantize(
    "QUANT-09",
    "a call depends on its arguments alone: repeated, it is the same bit for bit, whatever ran in between",
    "PROPERTIES X7, X11",
)
QUANT_10 = _quantize(
    "QUANT-10",
    "a number of bits above 0 that is not offered, and rows that are not whole groups, are refused",
    "PROPERTIES X9",
    aspect=Aspect.GUARD,
)
QUANT_11 = _quantize(
    "QUANT-11", "every number of rows and groups is right, past 32768 rows too", "PROPERTIES X2, X8, X10"
)
QUANT_12 = _quantize(
    "QUANT-12", "w may have leading dims, as the stacked weights of experts have", "mlx quantize", Level.SHOULD
)
QUANT_13 = _quantize("QUANT-13", "no rows give no rows", "PROPERTIES X3", Level.SHOULD)
QUANT_14 = _quantize(
    "QUANT-14", "a group size or number of bits of 0 and below is refused", "PROPERTIES X9", Level.SHOULD, Aspect.GUARD
)
QUANT_15 = _quantize(
    "QUANT-15",
    "a group size above 0 that is not offered is refused, even where rows would be whole groups of it (groups of 48 or 96 may be right)",
    "PROPERTIES X9",
    Level.SHOULD,
    Aspect.GUARD,
)

_dequantize = _about("dequantize")
DEQ_01 = _dequantize(
    "DEQ-01",
    "every pattern of codes means itself: 2, 4 or 8 bits without sign, the first in the lowest bits of its word",
    "PROPERTIES QZ2",
)
DEQ_02 = _dequantize(
    "DEQ-02", "each group of neighbours in a row has its own scale and bias: code · scale + bias", "PROPERTIES QZ2"
)
DEQ_03 = _dequantize("DEQ-03", "a weight is evaluated in float32 and rounded once", "mlx 56e026d8a; PROPERTIES QZ4")
DEQ_04 = _dequantize(
    "DEQ-04", "the parts may have leading dims, as the stacked weights of experts have", "mlx dequantize", Level.SHOULD
)
DEQ_05 = _dequantize(
    "DEQ-05",
    "packed, scales and biases may each be a strided view: the result is that of their copies",
    "PROPERTIES X1",
)
DEQ_06 = _dequantize(
    "DEQ-06", "the result is O×I in the dtype of the scales", "mlx-lm c592f76f; PROPERTIES X4", aspect=Aspect.DTYPE
)
DEQ_07 = _dequantize("DEQ-07", "no argument is changed", "PROPERTIES X6")
DEQ_08 = _dequantize(
    "DEQ-08",
    "a call depends on its arguments alone: repeated, it is the same bit for bit, whatever ran in between",
    "PROPERTIES X7, X11",
)
DEQ_09 = _dequantize(
    "DEQ-09",
    "parts whose shapes do not belong together, a packed that is not uint32 (signed or wider words of the same bits may be read), and a group size or number of bits above 0 that is not offered, are refused",
    "PROPERTIES X9",
    aspect=Aspect.GUARD,
)
DEQ_10 = _dequantize(
    "DEQ-10", "every number of rows and groups is right, past 32768 rows too", "PROPERTIES X2, X8, X10"
)
DEQ_11 = _dequantize("DEQ-11", "no rows give no rows", "PROPERTIES X3", Level.SHOULD)
DEQ_12 = _dequantize(
    "DEQ-12", "a group size or number of bits of 0 and below is refused", "PROPERTIES X9", Level.SHOULD, Aspect.GUARD
)

_matmul = _about("quantized_matmul")
QMM_01 = _matmul("QMM-01", "the result is x · wᵀ for the weights w that the parts stand for", "PROPERTIES QZ3")
QMM_02 = _matmul("QMM-02", "it is x · w when transpose is false", "PROPERTIES QZ3")
QMM_03 = _matmul(
    "QMM-03",
    "weights are restored and sums accumulated in float32 in every dtype, also over thousands of features",
    "PROPERTIES QZ4, X5",
)
QMM_04 = _matmul("QMM-04", "each feature of each output is read by its own code, scale and bias", "PROPERTIES QZ3, QZ2")
QMM_05 = _matmul(
    "QMM-05", "a batch is the stack of its rows, for any leading dims, none too", "mlx c7b0300af; PROPERTIES X3"
)
QMM_06 = _matmul(
    "QMM-06",
    "every number of rows, outputs and groups is right both ways, also just beside tile sizes, and every output is written",
    "mlx#665, mlx 5f9ba3019, mlx aca758463, mlx#4250, mlx 90e38f7b9, mlx 6c0ea7fb0; PROPERTIES X2, X10",
)
QMM_07 = _matmul("QMM-07", "so are more than 32768 outputs or rows", "mlx c9e8ee6b6; PROPERTIES X8, QZ6")
QMM_08 = _matmul(
    "QMM-08",
    "an output depends on its own row of weights (its own group when not transposed) and of x alone: a NaN elsewhere does not reach it, and fewer outputs are the first of more",
    "PROPERTIES QZ7, X3",
)
QMM_09 = _matmul(
    "QMM-09", "every array may be a strided view: the result is that of their copies", "mlx#3480; PROPERTIES X1"
)
QMM_10 = _matmul(
    "QMM-10",
    "the result is N..×O (N..×I when not transposed) in the dtype of x",
    "PROPERTIES X4",
    aspect=Aspect.DTYPE,
)
QMM_11 = _matmul("QMM-11", "no argument is changed", "PROPERTIES X6")
QMM_12 = _matmul(
    "QMM-12",
    "a call depends on its arguments alone: repeated, it is the same bit for bit, whatever ran in between",
    "PROPERTIES X7, X11",
)
QMM_13 = _matmul(
    "QMM-13",
    "parts whose shapes do not belong together, an x of another size, a packed that is not uint32 (signed or wider words of the same bits may be read), and a group size or number of bits above 0 that is not offered, are refused",
    "PROPERTIES X9",
    aspect=Aspect.GUARD,
)
QMM_14 = _matmul(
    "QMM-14",
    "parts with leading dims are broadcast with those of x, as grouped heads of a quantised cache need",
    "mlx#3480; PROPERTIES QZ5",
    Level.SHOULD,
)
QMM_15 = _matmul("QMM-15", "no rows give no outputs", "PROPERTIES X3")
QMM_16 = _matmul(
    "QMM-16",
    "scales and biases in float32 beside an x in half precision are refused, or read for their numbers",
    "PROPERTIES X9",
    Level.SHOULD,
    Aspect.GUARD,
)
QMM_17 = _matmul(
    "QMM-17", "a group size or number of bits of 0 and below is refused", "PROPERTIES X9", Level.SHOULD, Aspect.GUARD
)

_layer = _about("QuantizedLinear")
QLIN_01 = _layer("QLIN-01", "the layer is x · wᵀ + bias for the weights that its parts stand for", "PROPERTIES QZ3")
QLIN_02 = _layer("QLIN-02", "the bias is added exactly once to every row, and None adds nothing", "PROPERTIES X13")
QLIN_03 = _layer(
    "QLIN-03",
    "weights are restored and sums accumulated in float32 in every dtype, also over thousands of features",
    "PROPERTIES QZ4, X5",
)
QLIN_04 = _layer("QLIN-04", "a batch is the stack of its rows, for any leading dims, none too", "PROPERTIES X3")
QLIN_05 = _layer("QLIN-05", "every array may be a strided view: the result is that of their copies", "PROPERTIES X1")
QLIN_06 = _layer("QLIN-06", "the result is N..×O in the dtype of x", "PROPERTIES X4", aspect=Aspect.DTYPE)
QLIN_07 = _layer("QLIN-07", "no argument is changed", "PROPERTIES X6")
QLIN_08 = _layer(
    "QLIN-08",
    "a call depends on its arguments alone: repeated, it is the same bit for bit, whatever ran in between",
    "PROPERTIES X7, X11",
)
QLIN_09 = _layer(
    "QLIN-09",
    "parts whose shapes do not belong together, a packed that is not uint32 (signed or wider words of the same bits may be read), a group size or number of bits above 0 that is not offered, an x of another size and a bias of another length than O are refused; one of length 1, which broadcasts, is left open",
    "PROPERTIES X9",
    aspect=Aspect.GUARD,
)
QLIN_10 = _layer("QLIN-10", "no rows give no rows", "PROPERTIES X3")
QLIN_11 = _layer(
    "QLIN-11", "an output depends on its own row of weights: a NaN in another does not reach it", "PROPERTIES QZ7"
)
QLIN_12 = _layer(
    "QLIN-12",
    "scales and biases, and a bias, in float32 beside an x in half precision are refused, or read for their numbers",
    "PROPERTIES X9",
    Level.SHOULD,
    Aspect.GUARD,
)
QLIN_13 = _layer(
    "QLIN-13", "a group size or number of bits of 0 and below is refused", "PROPERTIES X9", Level.SHOULD, Aspect.GUARD
)

_lookup = _about("QuantizedEmbedding")
QEMB_01 = _lookup("QEMB-01", "each token gives its restored row, rounded once", "PROPERTIES EM2, QZ4")
QEMB_02 = _lookup(
    "QEMB-02",
    "every id reads its own row, past 255, 32767 and 65535 too, whatever integers tokens are",
    "PROPERTIES X8",
)
QEMB_03 = _lookup("QEMB-03", "tokens of any shape are right, a scalar too, each in its place", "PROPERTIES X3")
QEMB_04 = _lookup(
    "QEMB-04", "tokens and parts may each be a strided view: the result is that of their copies", "PROPERTIES X1"
)
QEMB_05 = _lookup("QEMB-05", "the result is T..×E in the dtype of the scales", "PROPERTIES X4", aspect=Aspect.DTYPE)
QEMB_06 = _lookup("QEMB-06", "no argument is changed", "PROPERTIES X6")
QEMB_07 = _lookup(
    "QEMB-07",
    "a call depends on its arguments alone: repeated, it is the same bit for bit, whatever ran in between",
    "PROPERTIES X7, X11",
)
QEMB_08 = _lookup("QEMB-08", "ids outside 0 … V - 1 are refused", "PROPERTIES X9", Level.SHOULD, Aspect.GUARD)

QEMB_17 = _lookup("QEMB-17", "no tokens give no rows", "PROPERTIES EM2")

_head = _about("QuantizedEmbedding.as_linear")
QEMB_09 = _head(
    "QEMB-09",
    "as_linear is x · tableᵀ for the very table that tokens are looked up in, with no hidden scale",
    "mlx-lm c27c94a0; PROPERTIES EM1, EM3",
)
QEMB_10 = _head(
    "QEMB-10", "as_linear restores the table and accumulates in float32 in every dtype", "PROPERTIES QZ4, X5"
)
QEMB_11 = _head(
    "QEMB-11", "as_linear takes any leading dims, and writes every logit, past 32768 too", "PROPERTIES X3, X8, QZ6"
)
QEMB_12 = _head("QEMB-12", "every array of as_linear may be a strided view", "PROPERTIES X1")
QEMB_13 = _head("QEMB-13", "the result of as_linear is N..×V in the dtype of x", "PROPERTIES X4", aspect=Aspect.DTYPE)
QEMB_14 = _head("QEMB-14", "as_linear changes no argument", "PROPERTIES X6")
QEMB_15 = _head(
    "QEMB-15",
    "as_linear depends on its arguments alone: repeated, it is the same bit for bit, whatever ran in between",
    "PROPERTIES X7, X11",
)
QEMB_16 = _head(
    "QEMB-16",
    "as_linear refuses an x of another size, parts whose shapes do not belong together, a packed that is not uint32 (signed or wider words of the same bits may be read), and a group size or number of bits above 0 that is not offered",
    "PROPERTIES X9",
    aspect=Aspect.GUARD,
)
QEMB_18 = _head("QEMB-18", "no rows of as_linear give no rows", "PROPERTIES X3")
QEMB_19 = _head(
    "QEMB-19", "a logit of as_linear depends on its own row: a NaN in another does not reach it", "PROPERTIES QZ7"
)
QEMB_20 = _head(
    "QEMB-20",
    "scales and biases in float32 beside an x of as_linear in half precision are refused, or read for their numbers",
    "PROPERTIES X9",
    Level.SHOULD,
    Aspect.GUARD,
)

QEMB_21 = _head(
    "QEMB-21",
    "as_linear refuses a group size or number of bits of 0 and below",
    "PROPERTIES X9",
    Level.SHOULD,
    Aspect.GUARD,
)


CONTRACT = Contract(
    component="quantization",
    title="group-wise quantisation and products with quantised weights",
    version=1,
    operations=(
        Quantize,
        Dequantize,
        QuantizedMatmul,
        QuantizedLinear,
        QuantizedEmbedding,
        QuantizedEmbeddingAsLinear,
    ),
    envelope={
        "dtypes": ("float32", "float16", "bfloat16"),
        "bits": BITS,
        "group_sizes": GROUP_SIZES,
        "transpose": (True, False),
        "bias": (False, True),
        "stacked": (False, True),
        "token_dtypes": ("int32", "int64", "uint32"),
        "leading_dims": ((), (1,), (2,), (2, 3), (2, 1, 3), (9, 2)),
        "features": 2**15,
        "vocabulary": 131072,
    },
    requirements=tuple(value for value in list(globals().values()) if isinstance(value, Requirement)),
)
