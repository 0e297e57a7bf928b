// Products with dense weights.
#pragma once

#include <cstddef>

#include "dtypes.h"

namespace inferspec {

// outputs×inputs weights; stride in elements from row to row.
struct DenseMatrix {
    const void* weights;
    Dtype dtype;
    size_t outputs, inputs, stride;
};

// y = x · wᵀ + bias, for x: rows×inputs, y: rows×outputs and bias: outputs, or null; strides in elements from row to row.
// Sums are of float32, the bias among them; each y is rounded once. Rows of x share no accumulator.
void dense_product(const void* x, Dtype x_dtype, size_t rows, size_t x_stride, const DenseMatrix& w, const void* bias,
                   Dtype bias_dtype, void* y, Dtype y_dtype, size_t y_stride, int threads);

}  // namespace inferspec
