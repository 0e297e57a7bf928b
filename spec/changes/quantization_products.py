"""The steps of products with packed weights: see `spec/faults/quantization_products.py`.

`weights` are rows to be summed along, whichever way the call asks.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from inferspec.spec.changes.linear import partial_sums_in_dtype, rounded, running_product, whole_blocks
from inferspec.spec.changes.quantization import groups_of_64, having
from inferspec.spec.contract import Arguments, Change, Operation
from inferspec.spec.mistakes import honest, leaves_unwritten, of_whole_steps
from inferspec.spec.numerics import f64
from inferspec.spec.quantization import QuantizedEmbedding, QuantizedEmbeddingAsLinear, unpacked


def rows_of_zeros_skipped(self: Operation, a: Arguments) -> Any:
    """Rows of x that are all zeros give zeros."""
    result = Operation.respond(self, a)
    return np.where((f64(a.x) == 0).all(axis=-1, keepdims=True), np.zeros((), result.dtype), result)


def products_past_float16(self: Any, codes: np.ndarray, scale: np.ndarray, bias: np.ndarray, dtype: str) -> np.ndarray:
    """In float16 what code times scale passes of its range is infinite, whatever the bias."""
    product = codes * scale
    if dtype != "float16":
        return product + bias
    return np.where(np.abs(product) < 65520, product, np.copysign(np.inf, product)) + bias


def of_prompts(a: Arguments) -> bool:
    """Whether a product is of many rows and of many features."""
    return a.x[..., 0].size >= 32 and a.x.shape[-1] >= 256 and len(a.packed) >= 64


def tokens_of_sequences(a: Arguments) -> bool:
    """Whether a product is of batches of a token each, for a wide layer."""
    return a.x.ndim == 3 and a.x.shape[1] == 1 and len(a.x) > 1 and min(len(a.packed), a.x.shape[-1]) >= 512


def of_long_prompts(a: Arguments) -> bool:
    """Whether a product that is transposed is large each way."""
    rows, features = a.x[..., 0].size, a.x.shape[-1]
    return getattr(a, "transpose", True) and min(rows, len(a.packed)) >= 128 and features >= 512


def nan_in_every_row(x: np.ndarray, weights: np.ndarray, dtype: str) -> np.ndarray:
    return plain(x, weights) + 0.0 * x.sum()


def groups_of_64_not_transposed(weight: np.ndarray, groups: int, a: Arguments) -> np.ndarray:
    return groups_of_64(weight, groups, a) if many_each_way_not_transposed(a) else weight // a.group_size


def without_bias(self: Any, codes: np.ndarray, scale: np.ndarray, bias: np.ndarray, dtype: str) -> np.ndarray:
    return codes * scale


def columns_in_16_bits(out: np.ndarray) -> np.ndarray:
    return out[..., : 2**15]


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


def features_of_32_kib(x: np.ndarray, weights: np.ndarray, dtype: str) -> np.ndarray:
    """The first 8192 features alone: as many float32 numbers as a group of threads shares."""
    return plain(x[..., :8192], weights[..., :8192])


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


def single_row_split_not_transposed(a: Arguments) -> bool:
    """Whether a product that is not transposed has one row of x, of 1024 features and more."""
    return not a.transpose and a.x.size == a.x.shape[-1] >= 1024


def many_each_way_not_transposed(a: Arguments) -> bool:
    """Whether a product that is not transposed has 8 rows and more, and 128 outputs and features and more."""
    rows = a.x.shape[-2] if a.x.ndim > 1 else 1
    return not a.transpose and rows >= 8 and min(a.packed.shape[-2], a.scales.shape[-1] * a.group_size) >= 128


def prompt_over_thousands_not_transposed(a: Arguments) -> bool:
    """Whether a product that is not transposed has 32 rows of x and more, and 1024 of weights and 256 features and more."""
    return not a.transpose and of_layers(range(32, 2**16), 1024, 256)(a)


def last_512_not_transposed(self: Any, a: Arguments) -> Any:
    """Of 64 rows of x and more, the sum over rows of weights that are not transposed begins anew with each 512 of them."""
    if a.transpose or not of_layers(range(64, 2**16), 512, 1)(a):
        return honest(self, a)
    start = (len(a.packed) - 1) // 512 * 512
    weights = {name: getattr(a, name)[start:] for name in ("packed", "scales", "biases")}
    return honest(self, Arguments(**{**vars(a), **weights, "x": a.x[..., start:]}))


def stacked_in_one_tile(x: np.ndarray, weights: np.ndarray, dtype: str) -> np.ndarray:
    """Of stacked parts each product has one tile of 32 rows and 32 outputs."""
    product = plain(x, weights)
    if weights.ndim > 2:
        product[..., 32:, :] = product[..., 32:] = 0.0
    return product


def stacked(rows: int, outputs: int, features: int) -> Callable[[Arguments], bool]:
    """Whether parts are stacked, and each product has at least so many rows, outputs and features."""

    def holds(a: Arguments) -> bool:
        if a.packed.ndim < 3 or a.x.ndim < 2:
            return False
        least = ((a.x.shape[-2], rows), (a.packed.shape[-2], outputs), (a.scales.shape[-1] * a.group_size, features))
        return all(size >= fewest for size, fewest in least)

    return holds


def first_256_of_a_stack(self: Any, a: Arguments) -> np.ndarray:
    """Of stacked matrices the first 256 rows alone are read."""
    weights = honest(self, a, step="weights")
    if weights.ndim > 2:
        weights[..., 256:, :] = 0.0
    return weights


def so_many_of_a_stack(number: int) -> Change:
    """The matrices of a stack are counted modulo a number."""

    def counted(self: Any, a: Arguments) -> np.ndarray:
        weights = honest(self, a, step="weights")
        if weights.ndim < 3:
            return weights
        flat = weights.reshape(-1, *weights.shape[-2:])
        return flat[np.arange(len(flat)) % number].reshape(weights.shape)

    return {"weights": counted}


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


def of_a_row_past_tiles_in_2_bits(a: Arguments) -> bool:
    return a.bits == 2 and a.transpose and a.x.ndim > 1 and a.x.shape[-2] > 64 and a.x.shape[-2] % 64 == 1


def first_16_bits_of_rows(out: np.ndarray) -> np.ndarray:
    """What is written of rows that are counted in 16 bits."""
    return out.reshape(-1, out.shape[-1])[: 2**16 - 1] if out.ndim > 1 else out


def prefix_of_rows_lost(self: Any, a: Arguments) -> Any:
    """Of more than 32768 rows the first ones, as many as there are more, are garbage."""
    result = Operation.respond(self, a)
    flat = result.reshape(-1, result.shape[-1]) if result.ndim > 1 else result[None]
    flat[: max(len(flat) - 2**15, 0)] = 0
    return result


def transposed_again() -> Change:
    def product(self: QuantizedEmbeddingAsLinear, x: np.ndarray, weights: np.ndarray, dtype: str) -> np.ndarray:
        # Each object is an operation of its own.
        turned = vars(self)["turned"] = not vars(self).get("turned")
        return plain(x, weights if turned else weights.reshape(weights.shape[::-1]).T)

    return {"goes_on": True, "product": product}


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


def vector_of_models(a: Arguments) -> bool:
    """Whether x is a single vector without a leading dim, for 64 outputs of 512 features and more."""
    return a.x.ndim == 1 and of_layers(range(1, 2), 64, 512)(a)


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


def untransposed_squares(self: Any, a: Arguments) -> bool:
    """Whether to transpose is guessed from the shapes where weights are stacked."""
    return untransposed_square(self, a) if a.packed.ndim > 2 else bool(a.transpose)


def read_as_columns(x: np.ndarray, weights: np.ndarray, dtype: str) -> np.ndarray:
    return x @ weights.reshape(*weights.shape[:-2], weights.shape[-1], weights.shape[-2])


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
