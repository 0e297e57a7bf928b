// The forms of products with quantised weights, of which quantized.cpp chooses one by the number of rows.
#pragma once

#include "amx.h"
#include "quantized.h"

namespace inferspec {

// Fewer weights than this are no work to wake a thread for.
constexpr size_t WORTH_A_THREAD = 1 << 17;

// y = x · wᵀ, each weight unpacked once and multiplied with every row: few rows.
void quantized_product_of_few(const void* x, Dtype x_dtype, size_t rows, size_t x_stride, const QuantizedMatrix& w,
                              void* y, Dtype y_dtype, size_t y_stride, int threads);

// y = x · wᵀ by tiles of restored weights: many rows.
void quantized_product_of_many(const void* x, Dtype x_dtype, size_t rows, size_t x_stride, const QuantizedMatrix& w,
                               void* y, Dtype y_dtype, size_t y_stride, int threads);

// y = x · wᵀ by the matrix instructions of some processors: many rows, where has_tiles().
void quantized_product_by_tiles(const void* x, Dtype x_dtype, size_t rows, size_t x_stride, const QuantizedMatrix& w,
                                void* y, Dtype y_dtype, size_t y_stride, int threads);

// y = x · w, likewise.
void quantized_product_plain_of_few(const void* x, Dtype x_dtype, size_t rows, size_t x_stride,
                                    const QuantizedMatrix& w, void* y, Dtype y_dtype, size_t y_stride, int threads);
void quantized_product_plain_of_many(const void* x, Dtype x_dtype, size_t rows, size_t x_stride,
                                     const QuantizedMatrix& w, void* y, Dtype y_dtype, size_t y_stride, int threads);

}  // namespace inferspec
