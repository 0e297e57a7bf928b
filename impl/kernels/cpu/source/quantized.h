// Products with quantised weights, and rows of them restored, in MLX's layout: codes in words of 32 bits, the first code
// in the lowest bits, a scale and a bias for each group of neighbours in a row: weight = code · scale + bias.
#pragma once

#include <cstddef>
#include <cstdint>

#include "dtypes.h"

namespace inferspec {

// outputs×inputs weights of 4 or 8 bits; rows of each part are contiguous and follow each other.
// packed: outputs×(inputs·bits/32); scales, biases: outputs×(inputs/group_size).
// group_size: 32, 64 or 128, and inputs a multiple of it.
struct QuantizedMatrix {
    const uint32_t* packed;
    const void* scales;
    const void* biases;
    Dtype scales_dtype, biases_dtype;
    size_t outputs, inputs;
    size_t group_size, bits;

    size_t groups() const { return inputs / group_size; }
    size_t words() const { return inputs * bits / 32; }
};

// y = x · wᵀ, for x: rows×inputs and y: rows×outputs; strides in elements from row to row, at least the length of a row.
// Sums are of float32; each y is rounded once. Rows of x share no accumulator: a NaN stays in its row of y.
void quantized_product(const void* x, Dtype x_dtype, size_t rows, size_t x_stride, const QuantizedMatrix& weights,
                       void* y, Dtype y_dtype, size_t y_stride, int threads);

// y = x · w, for x: rows×outputs and y: rows×inputs.
void quantized_product_plain(const void* x, Dtype x_dtype, size_t rows, size_t x_stride, const QuantizedMatrix& weights,
                             void* y, Dtype y_dtype, size_t y_stride, int threads);

// y[i] = the weights of row tokens[i] (of row i without tokens), in float32 and rounded once to y_dtype; y: count×inputs.
// tokens are within 0 … outputs - 1.
void quantized_rows(const int64_t* tokens, size_t count, const QuantizedMatrix& weights, void* y, Dtype y_dtype,
                    int threads);

}  // namespace inferspec
