"""Mistakes in linear layers, SiLU and softmax, and other honest ways to compute them."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from inferspec.spec.contract import Arguments, Fault, Operation, Variant
from inferspec.spec.linear import (
    LIN_01,
    LIN_02,
    LIN_03,
    LIN_04,
    LIN_05,
    LIN_06,
    LIN_07,
    LIN_08,
    LIN_09,
    LIN_10,
    LIN_11,
    SILU_01,
    SILU_02,
    SILU_03,
    SILU_04,
    SILU_05,
    SILU_06,
    SILU_07,
    SILU_08,
    SILU_09,
    SMAX_01,
    SMAX_02,
    SMAX_03,
    SMAX_04,
    SMAX_05,
    SMAX_06,
    SMAX_07,
    SMAX_08,
    SMAX_09,
    SMAX_10,
    SMAX_11,
    SMAX_12,
    Linear,
    Silu,
    Softmax,
)
from inferspec.spec.mistakes import (
    bfloat16_through_float16,
    counts_rows_in_16_bits,
    drifts,
    first_row_for_all,
    ignores_strides,
    leaves_unwritten,
    mutates,
    of_one_half_row,
    of_one_row,
    only_where,
    promotes,
    remembers,
    reuses_its_buffer,
    wraps_batches,
)
from inferspec.spec.numerics import Precision, f64, round_to

TIRED = "tired engineer"
COURSE_GAP = "FACTS.md: what the course's tests never look at"
MLX = "https://github.com/ml-explore/mlx"
FLASHINFER = "https://github.com/flashinfer-ai/flashinfer"
SILU_BUG = "https://github.com/skyzh/tiny-llm/commit/db71f15"


def rounded(value: np.ndarray, dtype: str) -> np.ndarray:
    """Return the value after a stay in the dtype, in float64 again."""
    return f64(round_to(value, dtype))


def running_product(x: np.ndarray, weight: np.ndarray, dtype: str, order: Any = None) -> np.ndarray:
    """x · weightᵀ summed one feature after the other in an accumulator of the dtype."""
    total = np.zeros((*x.shape[:-1], weight.shape[0]))
    for i in range(x.shape[-1]) if order is None else order:
        total = rounded(total + x[..., i, None] * weight[:, i], dtype)
    return total


def blocked_product(x: np.ndarray, weight: np.ndarray, block: int) -> np.ndarray:
    """x · weightᵀ, block after block of features, in float32."""
    total = np.zeros((*x.shape[:-1], weight.shape[0]))
    for start in range(0, x.shape[-1], block):
        part = x[..., start : start + block] @ weight[:, start : start + block].T
        total = rounded(total + rounded(part, "float32"), "float32")
    return total


def partial_sums_in_dtype(x: np.ndarray, weight: np.ndarray, dtype: str) -> np.ndarray:
    """x · weightᵀ; of 32 rows and more the sums of every 256 features are stored in the dtype and added there."""
    if x[..., 0].size < 32:
        return x @ weight.T
    total = np.zeros((*x.shape[:-1], weight.shape[0]))
    for start in range(0, x.shape[-1], 256):
        total = rounded(total + x[..., start : start + 256] @ weight[:, start : start + 256].T, dtype)
    return total


def running_total(weights: np.ndarray, dtype: str) -> np.ndarray:
    """The sum over the last axis, one entry after the other, in an accumulator of the dtype."""
    total = np.zeros(weights.shape[:-1])
    for j in range(weights.shape[-1]):
        total = rounded(total + weights[..., j], dtype)
    return total[..., None]


def whole_blocks(block: int) -> Any:
    """What a kernel writes whose grid has only whole blocks along the last axis."""

    def keep(out: np.ndarray) -> np.ndarray:
        return out[..., : out.shape[-1] // block * block] if out.ndim else out

    return keep


# linear


def _through_bfloat16(self: Linear, x: np.ndarray, weight: np.ndarray, dtype: str) -> np.ndarray:
    return rounded(x, "bfloat16") @ weight.T


def _read_as_columns(self: Linear, x: np.ndarray, weight: np.ndarray, dtype: str) -> np.ndarray:
    return x @ weight.reshape(weight.shape[::-1])


def _added_per_split(self: Linear, product: np.ndarray, bias: np.ndarray, dtype: str) -> np.ndarray:
    return product + 2 * bias


def _added_to_first_row(self: Linear, product: np.ndarray, bias: np.ndarray, dtype: str) -> np.ndarray:
    rows = product.reshape(-1, product.shape[-1]).copy()
    rows[:1] += bias
    return rows.reshape(product.shape)


def _whole_vectors(self: Linear, x: np.ndarray, weight: np.ndarray, dtype: str) -> np.ndarray:
    features = x.shape[-1] // 8 * 8
    return x[..., :features] @ weight[:, :features].T


def _whole_tiles_in_tf32(self: Linear, x: np.ndarray, weight: np.ndarray, dtype: str) -> np.ndarray:
    if x[..., 0].size % 16 or x.shape[-1] % 16 or len(weight) % 16:
        return x @ weight.T
    return _to_tf32(x) @ _to_tf32(weight).T


def _to_tf32(x: np.ndarray) -> np.ndarray:
    """11 significant bits, with the range of float32."""
    mantissa, exponent = np.frexp(x)
    return np.ldexp(np.round(mantissa * 2.0**11) / 2.0**11, exponent)


def _one_tile_of_a_split(self: Linear, x: np.ndarray, weight: np.ndarray, dtype: str) -> np.ndarray:
    product = x @ weight.T
    if x.shape[-1] >= 1024:
        product[..., 32:] = 0.0
    return product


def _reads_past_the_row(self: Linear, x: np.ndarray, weight: np.ndarray, dtype: str) -> np.ndarray:
    features = x.shape[-1]
    padded = -(-features // 32) * 32

    def tiles(matrix: np.ndarray) -> np.ndarray:
        start = np.arange(matrix.size // max(features, 1))[:, None] * features
        flat = matrix.ravel()
        return flat[(start + np.arange(padded)) % max(flat.size, 1)]

    return (tiles(x) @ tiles(weight).T).reshape(*x.shape[:-1], weight.shape[0])


def _batch_stride_without_rows(self: Linear, a: Arguments) -> Any:
    result = Operation.respond(self, a)
    if a.x.ndim < 3:
        return result
    batches = result.reshape(-1, *result.shape[-2:])
    written = np.zeros((batches.shape[0] * batches.shape[1], batches.shape[2]), result.dtype)
    for start, batch in enumerate(batches):
        written[start : start + len(batch)] = batch
    return written.reshape(result.shape)


def _leading_dims_swapped(self: Linear, x: np.ndarray, weight: np.ndarray, dtype: str) -> np.ndarray:
    product = x @ weight.T
    if x.ndim < 3:
        return product
    return product.swapaxes(0, 1).reshape(product.shape)


def _bound_of_the_other_axis(out: np.ndarray) -> np.ndarray:
    return out[..., : out.shape[-1], :] if out.ndim > 1 else out


def _vector_becomes_matrix(self: Linear, a: Arguments) -> Any:
    result = Operation.respond(self, a)
    return result[None] if result.ndim == 1 else result


def _fits_anything(self: Linear, a: Arguments) -> Any:
    outputs, features = a.weight.shape[0], a.x.shape[-1]
    weight = np.resize(a.weight, (outputs, features))
    bias = None if a.bias is None else np.resize(a.bias, outputs)
    return Operation.respond(self, Arguments(x=a.x, weight=weight, bias=bias))


def _broadcasts_bias(self: Linear, a: Arguments) -> Any:
    bias = None if a.bias is None else np.resize(a.bias, a.weight.shape[0])
    return Operation.respond(self, Arguments(x=a.x, weight=a.weight, bias=bias))


def _guards_weight_only(self: Linear, a: Arguments) -> None:
    Linear.guard(self, Arguments(x=a.x, weight=a.weight, bias=None))


def _masked_by_multiplying(self: Linear, x: np.ndarray, weight: np.ndarray, dtype: str) -> np.ndarray:
    product = x @ weight.T
    rows = product.reshape(-1, weight.shape[0])
    return (rows + 0.0 * np.roll(rows, 1, axis=0)).reshape(product.shape)


_LINEAR = (
    Fault(
        "linear-weight-read-as-columns",
        "the weight is read as I×O instead of transposed",
        LIN_01,
        {"product": _read_as_columns},
        TIRED,
    ),
    Fault(
        "linear-initial-scale-left-in",
        "products are divided by sqrt(I), as if the weight were not trained yet",
        LIN_01,
        {"product": lambda self, x, weight, dtype: x @ weight.T / math.sqrt(max(x.shape[-1], 1))},
        TIRED,
    ),
    Fault(
        "linear-bias-forgotten",
        "the bias is accepted and not added",
        LIN_02,
        {"add": lambda self, product, bias, dtype: product},
        TIRED,
    ),
    Fault("linear-bias-per-split", "each of two partial sums adds the bias", LIN_02, {"add": _added_per_split}, TIRED),
    Fault(
        "linear-bias-first-row", "the bias is added to the first row alone", LIN_02, {"add": _added_to_first_row}, TIRED
    ),
    Fault(
        "linear-accumulates-in-dtype",
        "sums are accumulated in the input's dtype",
        LIN_03,
        {"product": lambda self, x, weight, dtype: running_product(x, weight, dtype)},
        COURSE_GAP,
    ),
    Fault(
        "linear-partial-sums-in-dtype",
        "where there are many rows, the sums of every 256 features are stored in the input's dtype",
        LIN_03,
        {"product": lambda self, x, weight, dtype: partial_sums_in_dtype(x, weight, dtype)},
        "kernels that split the sum of a matrix product; PROPERTIES X5",
    ),
    Fault(
        "linear-bfloat16-through-float16",
        "bfloat16 passes through float16 on its way into the product",
        LIN_01,
        bfloat16_through_float16("x"),
        TIRED,
    ),
    Fault(
        "linear-through-bfloat16",
        "x passes through bfloat16 on its way into the product",
        LIN_03,
        {"product": _through_bfloat16},
        TIRED,
    ),
    Fault("linear-batches-modulo-eight", "batch rows are counted modulo 8", LIN_04, wraps_batches("x"), TIRED),
    Fault("linear-first-row-for-all", "the first batch row serves all", LIN_04, first_row_for_all("x"), TIRED),
    Fault(
        "linear-batch-stride",
        "batches are written one row apart instead of M rows apart",
        LIN_04,
        {"respond": _batch_stride_without_rows},
        f"{MLX}/commit/c7b0300af",
    ),
    Fault(
        "linear-leading-dims-swapped",
        "the first two leading dims are exchanged when rows are folded back",
        LIN_04,
        {"product": _leading_dims_swapped},
        TIRED,
    ),
    Fault(
        "linear-x-strides",
        "x is read as if it were contiguous",
        LIN_05,
        ignores_strides("x"),
        "PROPERTIES X1",
    ),
    Fault(
        "linear-weight-strides",
        "weight is read as if it were contiguous",
        LIN_05,
        ignores_strides("weight"),
        "PROPERTIES X1",
    ),
    Fault("linear-bias-strides", "bias is read as if it were contiguous", LIN_05, ignores_strides("bias"), TIRED),
    Fault(
        "linear-feature-tail-dropped",
        "features past the last whole vector of 8 are not read",
        LIN_06,
        {"product": _whole_vectors},
        TIRED,
    ),
    Fault(
        "linear-feature-tail-unmasked",
        "the last tile of features reads on into the next row",
        LIN_06,
        {"product": _reads_past_the_row},
        f"{MLX}/commit/aca758463",
    ),
    Fault(
        "linear-outputs-floor",
        "outputs past the last whole tile of 64 are not written",
        LIN_06,
        leaves_unwritten(whole_blocks(64)),
        f"{MLX}/issues/4250",
    ),
    Fault(
        "linear-rows-in-16-bits",
        "rows past the 65535th are not written",
        LIN_06,
        counts_rows_in_16_bits(),
        "PROPERTIES X8",
    ),
    Fault(
        "linear-outputs-in-16-bits",
        "outputs past the 65535th are not written",
        LIN_06,
        leaves_unwritten(lambda result: result[..., : 2**16 - 1]),
        "PROPERTIES X8",
    ),
    Fault(
        "linear-whole-tiles-in-tf32",
        "where rows, features and outputs all are multiples of 16, float32 is multiplied in TF32 (11 significant bits)",
        LIN_06,
        {"product": _whole_tiles_in_tf32},
        "MLX_ENABLE_TF32",
    ),
    Fault(
        "linear-one-tile-of-a-split",
        "a product that is split over 1024 features and more has its first 32 outputs alone",
        LIN_06,
        {"product": _one_tile_of_a_split},
        TIRED,
    ),
    Fault(
        "linear-small-outputs",
        "outputs past the last whole block of 8 are not written",
        LIN_06,
        leaves_unwritten(whole_blocks(8)),
        f"{MLX}/issues/665",
    ),
    Fault(
        "linear-rows-bounded-by-outputs",
        "rows past the number of outputs are not written",
        LIN_06,
        leaves_unwritten(_bound_of_the_other_axis),
        f"{MLX}/commit/5f9ba3019",
    ),
    Fault("linear-promotes", "the result comes back in float32", LIN_07, promotes(), COURSE_GAP),
    Fault(
        "linear-vector-becomes-matrix",
        "the result of a single row keeps a leading axis of 1",
        LIN_07,
        {"respond": _vector_becomes_matrix},
        "PROPERTIES X4",
    ),
    Fault("linear-changes-x", "x is scaled in place", LIN_08, mutates("x"), "PROPERTIES X6"),
    Fault("linear-changes-weight", "the weight is scaled in place", LIN_08, mutates("weight"), "PROPERTIES X6"),
    Fault(
        "linear-remembers-weight-of-single-rows",
        "the path of a single row keeps its weight, turned over, by its shape",
        LIN_09,
        only_where(of_one_row("x"), remembers("weight")),
        TIRED,
    ),
    Fault(
        "linear-single-row-strides",
        "the path of a single row reads x as if it were contiguous",
        LIN_05,
        only_where(of_one_row("x"), ignores_strides("x")),
        TIRED,
    ),
    Fault(
        "linear-remembers-weight",
        "a transposed weight cached by shape serves later calls",
        LIN_09,
        remembers("weight"),
        f"{FLASHINFER}/commit/82784bb11",
    ),
    Fault("linear-drifts", "the output buffer of an earlier call is added to", LIN_09, drifts(), TIRED),
    Fault(
        "linear-fits-anything",
        "a weight or bias of the wrong shape is read on or cut short",
        LIN_10,
        {"guard": lambda self, a: None, "respond": _fits_anything},
        "PROPERTIES X9",
    ),
    Fault(
        "linear-broadcasts-bias",
        "a bias of the wrong length is repeated",
        LIN_10,
        {"guard": _guards_weight_only, "respond": _broadcasts_bias},
        TIRED,
    ),
    Fault(
        "linear-nan-leaks",
        "rows outside the tile are multiplied by 0 instead of being left out: a NaN reaches its neighbour",
        LIN_11,
        {"product": _masked_by_multiplying},
        "DESIGN.md, section 5",
    ),
)

# silu


def _one_minus(self: Silu, x: np.ndarray, dtype: str) -> np.ndarray:
    positive = rounded(Silu.sigmoid(self, np.abs(x), dtype), dtype)
    return np.where(x < 0, 1 - positive, positive)


def _through_tanh(self: Silu, x: np.ndarray, dtype: str) -> np.ndarray:
    return 0.5 * (1 + rounded(np.tanh(x / 2), "float32"))


def _through_float16(self: Silu, x: np.ndarray, dtype: str) -> np.ndarray:
    return Silu.activate(self, rounded(x, "float16"), dtype)


def _overflowing(self: Silu, x: np.ndarray, dtype: str) -> np.ndarray:
    power = rounded(np.exp(x), "float32")
    return power / (1 + power)


def _exponential_in_dtype(self: Silu, x: np.ndarray, dtype: str) -> np.ndarray:
    return 1 / (1 + rounded(np.exp(-x), dtype))


def _clipped_exponent(self: Silu, x: np.ndarray, dtype: str) -> np.ndarray:
    return Silu.sigmoid(self, np.clip(x, -16, 16), dtype)


def _tanh_gelu(self: Silu, x: np.ndarray, dtype: str) -> np.ndarray:
    return 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))


def _complement(self: Silu, x: np.ndarray, dtype: str) -> np.ndarray:
    return x - x * Silu.sigmoid(self, -x, dtype)


def _loses_nan(self: Silu, x: np.ndarray, dtype: str) -> np.ndarray:
    return np.where(np.isnan(x), 0.0, Silu.activate(self, x, dtype))


def _spreads(self: Silu, x: np.ndarray, dtype: str) -> np.ndarray:
    return Silu.activate(self, x, dtype) + 0.0 * x.sum()


_SILU = (
    Fault(
        "silu-one-minus-sigmoid",
        "the sigmoid of a negative x is 1 - sigmoid(|x|), which cancels",
        SILU_01,
        {"sigmoid": _one_minus},
        SILU_BUG,
    ),
    Fault(
        "silu-exponential-in-dtype",
        "1 / (1 + exp(-x)) in the dtype of x: in float16 exp overflows, and all below -11 is 0",
        SILU_01,
        {"sigmoid": _exponential_in_dtype},
        "https://github.com/ml-explore/mlx/pull/2659",
    ),
    Fault(
        "silu-through-tanh",
        "the sigmoid is (1 + tanh(x/2)) / 2 in float32, which cancels for negative x",
        SILU_01,
        {"sigmoid": _through_tanh},
        "the kind of skyzh/tiny-llm db71f15",
    ),
    Fault(
        "silu-is-gelu",
        "GELU in the place of SiLU",
        SILU_01,
        {"activate": _tanh_gelu},
        "FACTS.md: GELU for SiLU survives greedy text",
    ),
    Fault(
        "silu-quick-gelu",
        "x · sigmoid(1.702 x)",
        SILU_01,
        {"activate": lambda self, x, dtype: x * Silu.sigmoid(self, 1.702 * x, dtype)},
        TIRED,
    ),
    Fault(
        "silu-is-sigmoid",
        "the sigmoid alone, without the factor x",
        SILU_01,
        {"activate": lambda self, x, dtype: self.sigmoid(x, dtype)},
        TIRED,
    ),
    Fault(
        "silu-hard",
        "the piecewise approximation x · clip(x/6 + 1/2, 0, 1)",
        SILU_01,
        {"sigmoid": lambda self, x, dtype: np.clip(x / 6 + 0.5, 0, 1)},
        TIRED,
    ),
    Fault(
        "silu-overflows",
        "x · eˣ / (1 + eˣ): inf over inf for large x",
        SILU_02,
        {"sigmoid": _overflowing},
        "PROPERTIES ML2",
    ),
    Fault(
        "silu-clips-exponent",
        "the exponent is clipped to ±16, so that large negative x leaks through",
        SILU_02,
        {"sigmoid": _clipped_exponent},
        TIRED,
    ),
    Fault(
        "silu-through-float16",
        "x passes through float16, where large values overflow",
        SILU_02,
        {"activate": _through_float16},
        TIRED,
    ),
    Fault(
        "silu-of-magnitude",
        "x · sigmoid(|x|)",
        SILU_03,
        {"activate": lambda self, x, dtype: x * self.sigmoid(np.abs(x), dtype)},
        TIRED,
    ),
    Fault("silu-loses-nan", "a maximum with 0 on the way turns NaN into 0", SILU_04, {"activate": _loses_nan}, TIRED),
    Fault("silu-inf-minus-inf", "x - x · sigmoid(-x): NaN for +inf", SILU_04, {"activate": _complement}, TIRED),
    Fault("silu-nan-spreads", "one NaN spoils every element", SILU_04, {"activate": _spreads}, "DESIGN.md, section 5"),
    Fault("silu-promotes", "the result comes back in float32", SILU_05, promotes(), COURSE_GAP),
    Fault(
        "silu-scalar-becomes-vector",
        "a scalar comes back with an axis of 1",
        SILU_05,
        {"respond": lambda self, a: np.atleast_1d(Operation.respond(self, a))},
        "PROPERTIES X4",
    ),
    Fault(
        "silu-flattens",
        "the result is flat",
        SILU_05,
        {"respond": lambda self, a: Operation.respond(self, a).reshape(-1)},
        "PROPERTIES X4",
    ),
    Fault("silu-strides", "x is read as if it were contiguous", SILU_06, ignores_strides("x"), "PROPERTIES X1"),
    Fault("silu-changes-x", "x is overwritten", SILU_07, mutates("x"), "PROPERTIES X6"),
    Fault(
        "silu-single-row-strides",
        "the path of a single row reads x as if it were contiguous",
        SILU_06,
        only_where(of_one_half_row("x"), ignores_strides("x")),
        TIRED,
    ),
    Fault(
        "silu-remembers-single-row",
        "the result of a single row, kept by its shape, serves other rows",
        SILU_08,
        only_where(of_one_half_row("x"), remembers("x")),
        TIRED,
    ),
    Fault(
        "silu-buffer-of-single-rows",
        "single rows of a shape share one output buffer, which the next call overwrites",
        SILU_08,
        only_where(of_one_half_row("x"), reuses_its_buffer()),
        TIRED,
    ),
    Fault("silu-drifts", "the output buffer of an earlier call is added to", SILU_08, drifts(), TIRED),
    Fault(
        "silu-vector-tail",
        "elements past the last whole vector of 4 are not written",
        SILU_09,
        leaves_unwritten(whole_blocks(4)),
        "PROPERTIES X10",
    ),
    Fault(
        "silu-counts-in-16-bits",
        "elements past the 65535th are not written",
        SILU_09,
        leaves_unwritten(lambda out: out.reshape(-1)[: 2**16 - 1]),
        "PROPERTIES X8",
    ),
)

# softmax


def _legacy_axis(self: Softmax, a: Arguments) -> int:
    if a.axis != -1:
        return a.axis
    return 0 if a.x.ndim in (0, 1, 3) else 1


def _flat(self: Softmax, a: Arguments) -> Any:
    x = f64(a.x)
    value = Softmax.distribution(self, x.reshape(1, -1), self.result_dtype(a))
    return self.finish(value.reshape(x.shape), a)


def _logits_in_bfloat16(self: Softmax, x: np.ndarray, dtype: str) -> np.ndarray:
    return Softmax.distribution(self, rounded(x, "bfloat16"), dtype)


def _in_float32(self: Softmax, x: np.ndarray, top: np.ndarray, dtype: str) -> np.ndarray:
    return rounded(np.exp(rounded(x - top, "float32")), "float32")


def _rounded_logsumexp(self: Softmax, x: np.ndarray, dtype: str) -> np.ndarray:
    top = Softmax.top(self, x)
    logsumexp = rounded(top + np.log(np.exp(x - top).sum(axis=-1, keepdims=True)), "float32")
    return np.exp(x - logsumexp)


def _vanished(self: Softmax, weights: np.ndarray, total: np.ndarray, dtype: str) -> np.ndarray:
    return np.divide(weights, total, out=np.zeros_like(weights), where=total != 0)


def _finite_sentinel(self: Softmax, x: np.ndarray, dtype: str) -> np.ndarray:
    return Softmax.distribution(self, np.where(np.isneginf(x), -1e4, x), dtype)


def _empty_slice(self: Softmax, x: np.ndarray, dtype: str) -> np.ndarray:
    value = Softmax.distribution(self, x, dtype)
    for start in range(0, x.shape[-1], 4):
        empty = np.isneginf(x[..., start : start + 4]).all(axis=-1, keepdims=True)
        value = np.where(empty, np.nan, value)
    return value


def _empty_block(self: Softmax, x: np.ndarray, dtype: str) -> np.ndarray:
    value = Softmax.distribution(self, x, dtype)
    empty = np.isneginf(x[..., :1024]).all(axis=-1, keepdims=True)
    return np.where(empty, np.nan, value) if x.shape[-1] > 1024 else value


def _floored(self: Softmax, weights: np.ndarray, total: np.ndarray, dtype: str) -> np.ndarray:
    return np.maximum(weights / total, 1e-7)


def _first_row(rows: np.ndarray) -> np.ndarray:
    return np.broadcast_to(rows.reshape(-1, 1)[:1], rows.shape) if rows.size else rows


def _foreign_total(self: Softmax, weights: np.ndarray, dtype: str) -> np.ndarray:
    return _first_row(Softmax.total(self, weights, dtype))


def _total_with_neighbours(self: Softmax, weights: np.ndarray, dtype: str) -> np.ndarray:
    total = Softmax.total(self, weights, dtype)
    return total + 0.0 * total.sum()


def _wrapped_axis(self: Softmax, a: Arguments) -> int:
    return a.axis % max(a.x.ndim, 1)


def _long_rows_in_pairs(self: Softmax, weights: np.ndarray, total: np.ndarray, dtype: str) -> np.ndarray:
    value = weights / total
    return (
        value
        if value.shape[-1] <= 1024
        else _unwritten(value.reshape(-1, value.shape[-1]), np.s_[2:]).reshape(value.shape)
    )


def _unwritten(weights: np.ndarray, lost: Any) -> np.ndarray:
    weights[lost] = 0.0
    return weights


_SOFTMAX = (
    Fault(
        "softmax-base-two",
        "2ˣ in the place of eˣ: exp2 without the factor log2(e)",
        SMAX_01,
        {"weights": lambda self, x, top, dtype: np.exp2(x - top)},
        TIRED,
    ),
    Fault(
        "softmax-plus-one",
        "1 is added to the sum",
        SMAX_01,
        {"total": lambda self, weights, dtype: 1 + Softmax.total(self, weights, dtype)},
        TIRED,
    ),
    Fault(
        "softmax-unnormalised",
        "the exponentials are not divided by their sum",
        SMAX_01,
        {"normalise": lambda self, weights, total, dtype: weights},
        TIRED,
    ),
    Fault(
        "softmax-scaled-logits",
        "the logits are divided by sqrt(n) first, as in attention",
        SMAX_01,
        {"weights": lambda self, x, top, dtype: np.exp((x - top) / math.sqrt(max(x.shape[-1], 1)))},
        TIRED,
    ),
    Fault("softmax-axis-ignored", "always over the last axis", SMAX_02, {"axis": lambda self, a: -1}, TIRED),
    Fault(
        "softmax-axis-magnitude",
        "a negative axis loses its sign",
        SMAX_02,
        {"axis": lambda self, a: abs(a.axis) % a.x.ndim},
        TIRED,
    ),
    Fault(
        "softmax-legacy-axis",
        "the default axis is chosen by the number of axes (0 for 1 and 3, 1 otherwise)",
        SMAX_02,
        {"axis": _legacy_axis},
        "torch.nn.functional.softmax with dim=None",
    ),
    Fault("softmax-over-everything", "the whole array is one row", SMAX_02, {"respond": _flat}, TIRED),
    Fault(
        "softmax-unshifted",
        "exp overflows: no maximum is subtracted",
        SMAX_03,
        {"top": lambda self, x: np.zeros((*x.shape[:-1], 1)), "weights": _in_float32},
        TIRED,
    ),
    Fault(
        "softmax-rounded-logsumexp",
        "exp(x - logsumexp(x)): the normaliser is lost beside large logits",
        SMAX_03,
        {"distribution": _rounded_logsumexp},
        f"{MLX}/commit/d935276de",
    ),
    Fault(
        "softmax-finite-start",
        "the running maximum starts at -1e4: rows below it vanish",
        SMAX_03,
        {"top": lambda self, x: np.maximum(Softmax.top(self, x), -1e4), "normalise": _vanished},
        f"{FLASHINFER}/commit/d7f2c6464",
    ),
    Fault(
        "softmax-maximum-of-first-block",
        "the maximum of the first 32 entries is subtracted: exp overflows further on",
        SMAX_03,
        {"top": lambda self, x: x[..., :32].max(axis=-1, keepdims=True, initial=-np.inf), "weights": _in_float32},
        TIRED,
    ),
    Fault(
        "softmax-clipped-logits",
        "logits are clipped to ±80 in the place of a shift",
        SMAX_03,
        {"weights": lambda self, x, top, dtype: np.exp(np.clip(x, -80, 80))},
        TIRED,
    ),
    Fault(
        "softmax-finite-sentinel",
        "-inf is replaced by -1e4, which lower logits take for the largest",
        SMAX_04,
        {"distribution": _finite_sentinel},
        f"{FLASHINFER}/commit/d7f2c6464",
    ),
    Fault(
        "softmax-empty-slice",
        "a slice of 4 that holds nothing but -inf makes NaN of its row",
        SMAX_04,
        {"distribution": _empty_slice},
        f"{FLASHINFER}/commit/1b9ba2541",
    ),
    Fault(
        "softmax-empty-block",
        "a first block of 1024 that holds nothing but -inf makes NaN of its row",
        SMAX_04,
        {"distribution": _empty_block},
        f"{FLASHINFER}/commit/1b9ba2541",
    ),
    Fault("softmax-floored", "no probability is smaller than 1e-7", SMAX_04, {"normalise": _floored}, TIRED),
    Fault(
        "softmax-total-in-dtype",
        "the sum is accumulated in the input's dtype",
        SMAX_05,
        {"total": lambda self, weights, dtype: running_total(weights, dtype)},
        COURSE_GAP,
    ),
    Fault(
        "softmax-through-bfloat16",
        "logits pass through bfloat16",
        SMAX_05,
        {"distribution": _logits_in_bfloat16},
        TIRED,
    ),
    Fault(
        "softmax-first-rows-maximum",
        "the maximum of the first row is subtracted from every row",
        SMAX_06,
        {"top": lambda self, x: _first_row(Softmax.top(self, x)), "weights": _in_float32},
        TIRED,
    ),
    Fault(
        "softmax-first-rows-sum",
        "the sum of the first row divides every row",
        SMAX_06,
        {"total": _foreign_total},
        TIRED,
    ),
    Fault(
        "softmax-global-maximum",
        "the largest of all rows is subtracted: rows far below vanish",
        SMAX_06,
        {"top": lambda self, x: np.full((*x.shape[:-1], 1), x.max(initial=-np.inf)), "weights": _in_float32},
        TIRED,
    ),
    Fault(
        "softmax-nan-spreads",
        "a NaN in one row spoils the others",
        SMAX_06,
        {"total": _total_with_neighbours},
        "PROPERTIES SA8",
    ),
    Fault("softmax-promotes", "the result comes back in float32", SMAX_07, promotes(), COURSE_GAP),
    Fault(
        "softmax-squeezes",
        "axes of length 1 are dropped",
        SMAX_07,
        {"respond": lambda self, a: np.squeeze(Operation.respond(self, a))},
        "PROPERTIES X4",
    ),
    Fault("softmax-strides", "x is read as if it were contiguous", SMAX_08, ignores_strides("x"), "PROPERTIES X1"),
    Fault(
        "softmax-changes-x",
        "the logits are overwritten",
        SMAX_09,
        mutates("x"),
        "FACTS.md: caller's arrays mutated by samplers",
    ),
    Fault(
        "softmax-remembers-axis",
        "a kernel cached by shape keeps the first axis",
        SMAX_10,
        remembers("axis"),
        f"{FLASHINFER}/commit/82784bb11",
    ),
    Fault(
        "softmax-single-row-strides",
        "the path of a single row reads x as if it were contiguous",
        SMAX_08,
        only_where(of_one_half_row("x"), ignores_strides("x")),
        TIRED,
    ),
    Fault(
        "softmax-remembers-single-row",
        "the result of a single row, kept by its shape, serves other rows",
        SMAX_10,
        only_where(of_one_half_row("x"), remembers("x")),
        TIRED,
    ),
    Fault(
        "softmax-buffer-of-single-rows",
        "single rows of a shape share one output buffer, which the next call overwrites",
        SMAX_10,
        only_where(of_one_half_row("x"), reuses_its_buffer()),
        TIRED,
    ),
    Fault("softmax-drifts", "the output buffer of an earlier call is added to", SMAX_10, drifts(), TIRED),
    Fault(
        "softmax-wraps-axis",
        "an axis that does not exist is wrapped around",
        SMAX_11,
        {"guard": lambda self, a: None, "axis": _wrapped_axis},
        TIRED,
    ),
    Fault(
        "softmax-sum-stops-at-1024",
        "entries past the first 1024 are not in the sum",
        SMAX_12,
        {"total": lambda self, weights, dtype: weights[..., :1024].sum(axis=-1, keepdims=True)},
        "PROPERTIES X2",
    ),
    Fault(
        "softmax-vector-tail",
        "entries past the last whole vector of 4 are not written",
        SMAX_12,
        leaves_unwritten(whole_blocks(4)),
        "PROPERTIES X10",
    ),
    Fault(
        "softmax-long-rows-in-pairs",
        "of rows of more than 1024 entries those past the second are not written",
        SMAX_12,
        {"normalise": _long_rows_in_pairs},
        TIRED,
    ),
    Fault(
        "softmax-entries-in-16-bits",
        "entries past the 65535th of a row are not written",
        SMAX_12,
        {"normalise": lambda self, weights, total, dtype: _unwritten(weights / total, np.s_[..., 2**16 - 1 :])},
        "PROPERTIES X8",
    ),
    Fault(
        "softmax-rows-in-16-bits",
        "rows past the 65535th are not written",
        SMAX_12,
        {"normalise": lambda self, weights, total, dtype: _unwritten(weights / total, np.s_[2**16 - 1 :])},
        "PROPERTIES X8",
    ),
)

FAULTS: tuple[Fault, ...] = _LINEAR + _SILU + _SOFTMAX


def _backwards(self: Linear, x: np.ndarray, weight: np.ndarray, dtype: str) -> np.ndarray:
    return running_product(x, weight, "float32", range(x.shape[-1] - 1, -1, -1))


def _rounds_twice(self: Linear, product: np.ndarray, bias: np.ndarray, dtype: str) -> np.ndarray:
    return rounded(product, dtype) + bias


def _exp2_in_float32(x: np.ndarray) -> np.ndarray:
    return rounded(np.exp2(rounded(x * float(np.float32(math.log2(math.e))), "float32")), "float32")


def _sigmoid_exp2(self: Silu, x: np.ndarray, dtype: str) -> np.ndarray:
    return rounded(1 / rounded(1 + _exp2_in_float32(-x), "float32"), "float32")


def _sigmoid_float32(self: Silu, x: np.ndarray, dtype: str) -> np.ndarray:
    return rounded(1 / rounded(1 + rounded(np.exp(-x), "float32"), "float32"), "float32")


def _online(self: Softmax, x: np.ndarray, dtype: str) -> np.ndarray:
    top, total = np.full(x.shape[:-1], -np.inf), np.zeros(x.shape[:-1])
    for j in range(x.shape[-1]):
        larger = np.maximum(top, x[..., j])
        shift = np.where(np.isneginf(larger), 0.0, larger)
        rescale = rounded(np.exp(rounded(top - shift, "float32")), "float32")
        weight = rounded(np.exp(rounded(x[..., j] - shift, "float32")), "float32")
        total, top = rounded(rounded(total * rescale, "float32") + weight, "float32"), larger
    return rounded(_in_float32(self, x, top[..., None], dtype) / total[..., None], "float32")


def _stored_weights(self: Softmax, x: np.ndarray, top: np.ndarray, dtype: str) -> np.ndarray:
    return rounded(np.exp(rounded(x - top, dtype)), dtype)


VARIANTS: tuple[Variant, ...] = (
    Variant(
        "linear-backwards", "features summed from the last to the first, in float32", "linear", {"product": _backwards}
    ),
    Variant(
        "linear-blocked",
        "features summed in blocks of 32, in float32",
        "linear",
        {"product": lambda self, x, weight, dtype: blocked_product(x, weight, 32)},
    ),
    Variant(
        "linear-rounds-before-bias",
        "the product is rounded to the dtype before the bias is added",
        "linear",
        {"add": _rounds_twice},
    ),
    Variant("silu-exp2", "the sigmoid through exp2, in float32", "silu", {"sigmoid": _sigmoid_exp2}),
    Variant(
        "silu-plain-float32",
        "x / (1 + exp(-x)) in float32, where exp may overflow to infinity",
        "silu",
        {"sigmoid": _sigmoid_float32},
    ),
    Variant(
        "silu-rounded-sigmoid",
        "the sigmoid is rounded to the dtype before it multiplies x",
        "silu",
        {"sigmoid": lambda self, x, dtype: rounded(Silu.sigmoid(self, x, dtype), dtype)},
        Precision.NATIVE,
    ),
    Variant("softmax-online", "one pass with a running maximum, in float32", "softmax", {"distribution": _online}),
    Variant(
        "softmax-exp2",
        "the exponentials through exp2, in float32",
        "softmax",
        {"weights": lambda self, x, top, dtype: _exp2_in_float32(rounded(x - top, "float32"))},
    ),
    Variant(
        "softmax-rounds-each-step",
        "distance, exponential and sum are rounded to the dtype; the sum is taken in float32",
        "softmax",
        {
            "weights": _stored_weights,
            "total": lambda self, weights, dtype: rounded(Softmax.total(self, weights, dtype), dtype),
        },
        Precision.NATIVE,
    ),
)
