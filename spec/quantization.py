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
    Contract,
    Operation,
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
from inferspec.spec.quantization_sentences import SENTENCES

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
            magnitude = through(sum((np.abs(part) for part in self.sizes(a)), np.zeros(())))
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
    requirements=SENTENCES,
)
