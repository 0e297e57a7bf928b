"""The steps that faults and honest variants have in the place of the oracle's: see `spec/faults/linear.py`."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from inferspec.spec.contract import Arguments, Change, Operation
from inferspec.spec.linear import Linear, Silu, Softmax
from inferspec.spec.mistakes import honest, of_whole_steps
from inferspec.spec.numerics import f64, round_to


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


def half_accumulators(x: np.ndarray, weight: np.ndarray, dtype: str) -> np.ndarray:
    """x · weightᵀ by matrix units that add in float16, as kernels choose them for short sums: 16 features at a time, exactly."""
    if dtype != "float16" or x.shape[-1] > 256:
        return x @ weight.T
    total = np.zeros((*x.shape[:-1], weight.shape[0]))
    for start in range(0, x.shape[-1], 16):
        total = rounded(total + x[..., start : start + 16] @ weight[:, start : start + 16].T, dtype)
    return total


def partial_sums_in_dtype(x: np.ndarray, weight: np.ndarray, dtype: str) -> np.ndarray:
    """x · weightᵀ; of 32 rows and more the sums of every 256 features are stored in the dtype and added there."""
    if x[..., 0].size < 32:
        return x @ weight.T
    total = np.zeros((*x.shape[:-1], weight.shape[0]))
    for start in range(0, x.shape[-1], 256):
        total = rounded(total + x[..., start : start + 256] @ weight[:, start : start + 256].T, dtype)
    return total


def of_layers(rows: range, outputs: int, features: int) -> Callable[[Arguments], bool]:
    """Whether x has so many rows, and the weight at least so many outputs and features."""

    def holds(a: Arguments) -> bool:
        return a.x.shape[-1] >= features and len(a.weight) >= outputs and math.prod(a.x.shape[:-1]) in rows

    return holds


def whole_blocks(block: int) -> Any:
    """What a kernel writes whose grid has only whole blocks along the last axis."""

    def keep(out: np.ndarray) -> np.ndarray:
        return out[..., : out.shape[-1] // block * block] if out.ndim else out

    return keep


# linear


def feature_past_tiles_of_96(self: Linear, x: np.ndarray, weight: np.ndarray, dtype: str) -> np.ndarray:
    """A feature that is one more than whole tiles of 96 is not read."""
    read = x.shape[-1] - (x.shape[-1] > 96 and x.shape[-1] % 96 == 1)
    return Linear.product(self, x[..., :read], weight[:, :read], dtype)


def three_tiles_in_five_steps(tile: int) -> Change:
    """Of whole blocks of rows and outputs, features that are three tiles are taken in as many steps as five, the last two again."""

    def product(self: Linear, x: np.ndarray, weight: np.ndarray, dtype: str) -> np.ndarray:
        right = x @ weight.T
        if x.shape[-1] != 3 * tile or min(math.prod(x.shape[:-1]), len(weight)) < 16:
            return right
        return right + x[..., tile:] @ weight[:, tile:].T

    return {"product": product}


def half_a_step_unread(step: int) -> Change:
    """Where features are whole steps and half a one more, that half is not read."""

    def product(self: Linear, x: np.ndarray, weight: np.ndarray, dtype: str) -> np.ndarray:
        read = of_whole_steps(x.shape[-1], step)
        return Linear.product(self, x[..., :read], weight[:, :read], dtype)

    return {"product": product}


def through_bfloat16(self: Linear, x: np.ndarray, weight: np.ndarray, dtype: str) -> np.ndarray:
    return rounded(x, "bfloat16") @ weight.T


def read_as_columns(self: Linear, x: np.ndarray, weight: np.ndarray, dtype: str) -> np.ndarray:
    return x @ weight.reshape(weight.shape[::-1])


def added_per_split(self: Linear, product: np.ndarray, bias: np.ndarray, dtype: str) -> np.ndarray:
    return product + 2 * bias


def added_to_first_row(self: Linear, product: np.ndarray, bias: np.ndarray, dtype: str) -> np.ndarray:
    rows = product.reshape(-1, product.shape[-1]).copy()
    rows[:1] += bias
    return rows.reshape(product.shape)


def whole_vectors(self: Linear, x: np.ndarray, weight: np.ndarray, dtype: str) -> np.ndarray:
    features = x.shape[-1] // 8 * 8
    return x[..., :features] @ weight[:, :features].T


def whole_tiles_in_tf32(self: Linear, x: np.ndarray, weight: np.ndarray, dtype: str) -> np.ndarray:
    if x[..., 0].size % 16 or x.shape[-1] % 16 or len(weight) % 16:
        return x @ weight.T
    return _to_tf32(x) @ _to_tf32(weight).T


def _to_tf32(x: np.ndarray) -> np.ndarray:
    """11 significant bits, with the range of float32."""
    mantissa, exponent = np.frexp(x)
    return np.ldexp(np.round(mantissa * 2.0**11) / 2.0**11, exponent)


def one_tile_of_a_split(self: Linear, x: np.ndarray, weight: np.ndarray, dtype: str) -> np.ndarray:
    product = x @ weight.T
    if x.shape[-1] >= 1024:
        product[..., 32:] = 0.0
    return product


def reads_past_the_row(self: Linear, x: np.ndarray, weight: np.ndarray, dtype: str) -> np.ndarray:
    features = x.shape[-1]
    padded = -(-features // 32) * 32

    def tiles(matrix: np.ndarray) -> np.ndarray:
        start = np.arange(matrix.size // max(features, 1))[:, None] * features
        flat = matrix.ravel()
        return flat[(start + np.arange(padded)) % max(flat.size, 1)]

    return (tiles(x) @ tiles(weight).T).reshape(*x.shape[:-1], weight.shape[0])


def batch_stride_without_rows(self: Linear, a: Arguments) -> Any:
    result = Operation.respond(self, a)
    if a.x.ndim < 3 or not result.size:
        return result
    batches = result.reshape(-1, *result.shape[-2:])
    written = np.zeros((batches.shape[0] * batches.shape[1], batches.shape[2]), result.dtype)
    for start, batch in enumerate(batches):
        written[start : start + len(batch)] = batch
    return written.reshape(result.shape)


def leading_dims_swapped(self: Linear, x: np.ndarray, weight: np.ndarray, dtype: str) -> np.ndarray:
    product = x @ weight.T
    if x.ndim < 3:
        return product
    return product.swapaxes(0, 1).reshape(product.shape)


def bound_of_the_other_axis(out: np.ndarray) -> np.ndarray:
    return out[..., : out.shape[-1], :] if out.ndim > 1 else out


def vector_becomes_matrix(self: Linear, a: Arguments) -> Any:
    result = Operation.respond(self, a)
    return result[None] if result.ndim == 1 else result


def fits_anything(self: Linear, a: Arguments) -> Any:
    outputs, features = a.weight.shape[0], a.x.shape[-1]
    weight = np.resize(a.weight, (outputs, features))
    bias = None if a.bias is None else np.resize(a.bias, outputs)
    return Operation.respond(self, Arguments(x=a.x, weight=weight, bias=bias))


def broadcasts_bias(self: Linear, a: Arguments) -> Any:
    bias = None if a.bias is None else np.resize(a.bias, a.weight.shape[0])
    return Operation.respond(self, Arguments(x=a.x, weight=a.weight, bias=bias))


def guards_weight_only(self: Linear, a: Arguments) -> None:
    Linear.guard(self, Arguments(x=a.x, weight=a.weight, bias=None))


def masked_by_multiplying(self: Operation, x: np.ndarray, weight: np.ndarray, dtype: str) -> np.ndarray:
    product = x @ weight.T
    rows = product.reshape(-1, weight.shape[0])
    return (rows + 0.0 * np.roll(rows, 1, axis=0)).reshape(product.shape)


def wide_masked_by_multiplying(self: Operation, x: np.ndarray, weight: np.ndarray, dtype: str) -> np.ndarray:
    return masked_by_multiplying(self, x, weight, dtype) if x.shape[-1] >= 64 else x @ weight.T


def nan_of_wide_rows_in_all(self: Operation, x: np.ndarray, weight: np.ndarray, dtype: str) -> np.ndarray:
    product = x @ weight.T
    return product + 0.0 * x.sum() if x.shape[-1] >= 256 else product


def second_bad_row_lost(self: Operation, x: np.ndarray, weight: np.ndarray, dtype: str) -> np.ndarray:
    """One row with what is not finite is put right afterwards: the second is taken for one of padding."""
    product = x @ weight.T
    rows = product.reshape(-1, weight.shape[0])
    rows[np.flatnonzero(~np.isfinite(x).all(axis=-1))[1:2]] = 0.0
    return rows.reshape(product.shape)


def second_bad_output_lost(self: Operation, x: np.ndarray, weight: np.ndarray, dtype: str) -> np.ndarray:
    product = x @ weight.T
    product[..., np.flatnonzero(~np.isfinite(weight).all(axis=-1))[1:2]] = 0.0
    return product


def weight_nan_in_neighbours(self: Operation, x: np.ndarray, weight: np.ndarray, dtype: str) -> np.ndarray:
    """Outputs outside the tile are multiplied by 0 instead of being left out."""
    product = x @ weight.T
    return product + 0.0 * np.roll(product, 1, axis=-1)


def weight_nan_in_tiles(self: Operation, x: np.ndarray, weight: np.ndarray, dtype: str) -> np.ndarray:
    """The same, where whole tiles of 32 rows and outputs are added up."""
    rows = x[..., 0].size
    whole = rows % 32 == len(weight) % 32 == 0 and rows > 0
    return weight_nan_in_neighbours(self, x, weight, dtype) if whole else x @ weight.T


def bias_nan_hidden(self: Operation, product: np.ndarray, bias: np.ndarray, dtype: str) -> np.ndarray:
    """What is no number in a bias is 0."""
    return product + np.nan_to_num(bias, nan=0.0, posinf=0.0, neginf=0.0)


def weight_nan_hidden(self: Operation, x: np.ndarray, weight: np.ndarray, dtype: str) -> np.ndarray:
    """What is no number in a weight is 0."""
    return x @ np.nan_to_num(weight, nan=0.0, posinf=0.0, neginf=0.0).T


def last_feature_between_whole_tiles(self: Operation, x: np.ndarray, weight: np.ndarray, dtype: str) -> np.ndarray:
    """Between whole tiles of 32 rows and outputs the last of features that fill none is not counted."""
    features, rows = x.shape[-1], x[..., 0].size
    if rows and rows % 32 == len(weight) % 32 == 0 and features % 16:
        return x[..., :-1] @ weight[:, :-1].T
    return x @ weight.T


def of_a_weight_turned_round(a: Arguments) -> bool:
    """Whether a single row of half precision meets a weight whose outputs lie side by side."""
    turned = a.weight.ndim == 2 and a.weight.strides[0] == a.weight.itemsize < a.weight.strides[1]
    return bool(turned and a.x.size == a.x.shape[-1] >= 64 and a.x.dtype.itemsize == 2)


def rows_in_pairs(self: Linear, x: np.ndarray, weight: np.ndarray, dtype: str) -> np.ndarray:
    product = x @ weight.T
    if x.ndim > 2 and x.shape[-2] % 2 and x.shape[-2] > 1:
        product[..., -1, :] = product[..., -2, :]
    return product


def at_most_four_axes(self: Operation, a: Arguments) -> None:
    honest(self, a, step="guard")
    if a.x.ndim > 4:
        raise ValueError(f"x has {a.x.ndim} axes; it takes 4")


def batches_swapped(self: Operation, product: np.ndarray) -> np.ndarray:
    """Of four axes and more the first two are exchanged when rows are folded back."""
    return product.swapaxes(0, 1).reshape(product.shape) if product.ndim > 3 else product


def inserted_axis_walked(self: Linear, a: Arguments) -> Any:
    """Rows are walked with the stride of their own axis, which is 0 where it was inserted: the first one serves all."""
    x = a.x
    if x.ndim > 2 and x.shape[-2] == 1 and x.strides[-2] == 0 and x.size:
        a = Arguments(**{**vars(a), "x": np.broadcast_to(x[..., :1, :, :], x.shape)})
    return Operation.respond(self, a)


def tiles_of_long_sums_read_on(self: Linear, x: np.ndarray, weight: np.ndarray, dtype: str) -> np.ndarray:
    """From 32767 features on, tiles of 16 rows and outputs add what lies past the operands."""
    product = x @ weight.T
    if x.shape[-1] < 32767 or min(x[..., 0].size, len(weight)) < 16:
        return product
    return product + 0.3 * np.abs(product).max()


# silu


def of_a_batch_of_one(a: Arguments) -> bool:
    """Whether x is a batch of a single sequence."""
    return a.x.ndim > 2 and a.x.shape[0] == 1 < a.x.shape[-2]


def without_bias(self: Operation, a: Arguments) -> Any:
    return honest(self, Arguments(**{**vars(a), "bias": None}))


# softmax


def flat(self: Softmax, a: Arguments) -> Any:
    x = f64(a.x)
    value = Softmax.distribution(self, x.reshape(1, -1), self.result_dtype(a))
    return self.finish(value.reshape(x.shape), a)


def in_float32(self: Softmax, x: np.ndarray, top: np.ndarray, dtype: str) -> np.ndarray:
    return rounded(np.exp(rounded(x - top, "float32")), "float32")


def backwards(self: Linear, x: np.ndarray, weight: np.ndarray, dtype: str) -> np.ndarray:
    return running_product(x, weight, "float32", range(x.shape[-1] - 1, -1, -1))


def rounds_twice(self: Linear, product: np.ndarray, bias: np.ndarray, dtype: str) -> np.ndarray:
    return rounded(product, dtype) + bias


def exp2_in_float32(x: np.ndarray) -> np.ndarray:
    return rounded(np.exp2(rounded(x * float(np.float32(math.log2(math.e))), "float32")), "float32")


def sigmoid_exp2(self: Silu, x: np.ndarray, dtype: str) -> np.ndarray:
    return rounded(1 / rounded(1 + exp2_in_float32(-x), "float32"), "float32")


def sigmoid_float32(self: Silu, x: np.ndarray, dtype: str) -> np.ndarray:
    return rounded(1 / rounded(1 + rounded(np.exp(-x), "float32"), "float32"), "float32")


def online(self: Softmax, x: np.ndarray, dtype: str) -> np.ndarray:
    tops = np.maximum.accumulate(x, axis=-1)
    shifts = np.where(np.isneginf(tops), 0.0, tops)
    before = np.concatenate([np.full_like(tops[..., :1], -np.inf), tops[..., :-1]], axis=-1)
    rescales = np.exp(rounded(before - shifts, "float32")).astype(np.float32)
    weights = np.exp(rounded(x - shifts, "float32")).astype(np.float32)
    total = np.zeros(x.shape[:-1], np.float32)
    for j in range(x.shape[-1]):
        total = total * rescales[..., j] + weights[..., j]
    return rounded(in_float32(self, x, tops[..., -1:], dtype) / f64(total)[..., None], "float32")


def stored_weights(self: Softmax, x: np.ndarray, top: np.ndarray, dtype: str) -> np.ndarray:
    return rounded(np.exp(rounded(x - top, dtype)), dtype)


def total_in_range(self: Softmax, weights: np.ndarray, dtype: str) -> np.ndarray:
    """The sum is rounded to the dtype, unless that cannot hold it."""
    total = Softmax.total(self, weights, dtype)
    held = rounded(total, dtype)
    return np.where(np.isinf(held), total, held)


def zeros_skipped(self: Operation, x: np.ndarray, weight: np.ndarray, dtype: str) -> np.ndarray:
    """Nothing is multiplied where x is 0, whatever the weight is."""
    bad = ~np.isfinite(weight)
    if not bad.any() or (x != 0).all():
        return x @ weight.T
    return np.where(x[..., None, :] == 0, 0.0, x[..., None, :] * weight).sum(axis=-1)
