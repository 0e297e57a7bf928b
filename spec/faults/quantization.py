"""Mistakes in quantisers and in products with quantised weights, and other honest ways to compute them."""

from __future__ import annotations

import numpy as np

from inferspec.spec.changes import quantization as changes
from inferspec.spec.changes import quantization_products as products
from inferspec.spec.changes.linear import blocked_product, rounded
from inferspec.spec.changes.quantize import CODES_OF_ANY_WIDTH, edge_on_the_grid, refuses_stacks
from inferspec.spec.contract import Fault, Variant
from inferspec.spec.faults import (
    dequantize,
    quantization_products,
    quantize,
    quantized_embedding,
    quantized_head,
    quantized_linear,
)
from inferspec.spec.numerics import Precision

FAULTS: tuple[Fault, ...] = (
    *quantize.FAULTS,
    *dequantize.FAULTS,
    *quantization_products.FAULTS,
    *quantized_linear.FAULTS,
    *quantized_embedding.FAULTS,
    *quantized_head.FAULTS,
)


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
        {"grid": edge_on_the_grid(np.rint)},
        unmet=("QUANT-03",),
    ),
    Variant("quantize-matrices", "w is a matrix", "quantize", {"guard_weights": refuses_stacks}, unmet=("QUANT-12",)),
    Variant(
        "quantize-codes-of-any-width",
        "codes of 1 to 16 bits are offered, one after the other in a stream of bits",
        "quantize",
        CODES_OF_ANY_WIDTH,
    ),
    Variant(
        "dequantize-matrices",
        "packed, scales and biases are matrices",
        "dequantize",
        {"guard_rest": changes.refuses_stacks},
        unmet=("DEQ-04",),
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
        {"affine": changes.rounded_twice},
        Precision.NATIVE,
    ),
    Variant(
        "quantized-matmul-sums-apart",
        "scale times the sum of codes, plus bias times the sum of x, group by group in float32",
        "quantized_matmul",
        {"respond": products.sums_apart},
    ),
    Variant(
        "quantized-matmul-blocked",
        "features summed in blocks of 32, in float32",
        "quantized_matmul",
        {
            "product": lambda self, x, weights, dtype: (
                blocked_product(x, weights, 32) if weights.ndim == 2 else products.plain(x, weights)
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
        {"respond": products.sums_apart},
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
