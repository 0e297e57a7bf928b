// Products of many rows of x by tiles: each weight is restored once for all rows, in float32.

#include "blocked.h"
#include "codes.h"
#include "parallel.h"
#include "quantized_forms.h"

namespace inferspec {

namespace {

struct ScalesOfBlock;
struct BiasesOfBlock;

// Outputs restored together: whole tiles, and whole chunks where the outputs are inputs of the weights.
constexpr size_t BLOCK = 4 * 12;
constexpr size_t PLAIN_BLOCK = 8 * 12;
static_assert(BLOCK % TILE == 0 && PLAIN_BLOCK % TILE == 0 && PLAIN_BLOCK % CHUNK == 0);

template <int bits>
void product(const void* x, Dtype x_dtype, size_t rows, size_t x_stride, const QuantizedMatrix& w, void* y,
             Dtype y_dtype, size_t y_stride, int threads) {
    const float* packed = pack_rows(x, x_dtype, rows, x_stride, w.inputs, as_unpacked<bits>, threads);
    const auto restore_rows = [&](size_t first, size_t count, size_t k, size_t depth, float* weights) {
        float* scales = scratch<ScalesOfBlock, float>(BLOCK * w.groups());
        float* biases = scratch<BiasesOfBlock, float>(BLOCK * w.groups());
        if (k == 0) {  // kept for the terms that follow
            widen_scales(w, first, count, scales);
            widen_biases(w, first, count, biases);
        }
        for (size_t row = 0; row < count; ++row) {
            restore<bits>(w.packed + (first + row) * w.words(), scales + row * w.groups(), biases + row * w.groups(),
                          w.group_size, k, depth, weights + row * DEPTH);
        }
    };
    const BlockedShape shape{rows, w.inputs, w.outputs, BLOCK, DEPTH, 1};
    blocked_product(packed, shape, restore_rows, as_it_is, nullptr, y, y_dtype, y_stride, threads);
}

template <int bits>
void plain_product(const void* x, Dtype x_dtype, size_t rows, size_t x_stride, const QuantizedMatrix& w, void* y,
                   Dtype y_dtype, size_t y_stride, int threads) {
    const float* packed = pack_rows(x, x_dtype, rows, x_stride, w.outputs, as_it_is, threads);
    const auto restore_columns = [&](size_t first, size_t count, size_t row, size_t rows, float* weights) {
        float* scales = scratch<ScalesOfBlock, float>(w.groups());
        float* biases = scratch<BiasesOfBlock, float>(w.groups());
        for (size_t k = 0; k < rows; ++k) {
            widen_scales(w, row + k, 1, scales);
            widen_biases(w, row + k, 1, biases);
            restore<bits>(w.packed + (row + k) * w.words(), scales, biases, w.group_size, first, count,
                          weights + k * PLAIN_BLOCK);
        }
    };
    const BlockedShape shape{rows, w.outputs, w.inputs, PLAIN_BLOCK, 1, PLAIN_BLOCK};
    blocked_product(packed, shape, restore_columns, as_unpacked<bits>, nullptr, y, y_dtype, y_stride, threads);
}

}  // namespace

void quantized_product_of_many(const void* x, Dtype x_dtype, size_t rows, size_t x_stride, const QuantizedMatrix& w,
                               void* y, Dtype y_dtype, size_t y_stride, int threads) {
    with_bits(w.bits, [&](auto bits) {
        product<bits>(x, x_dtype, rows, x_stride, w, y, y_dtype, y_stride, threads);
    });
}

void quantized_product_plain_of_many(const void* x, Dtype x_dtype, size_t rows, size_t x_stride,
                                     const QuantizedMatrix& w, void* y, Dtype y_dtype, size_t y_stride, int threads) {
    with_bits(w.bits, [&](auto bits) {
        plain_product<bits>(x, x_dtype, rows, x_stride, w, y, y_dtype, y_stride, threads);
    });
}

}  // namespace inferspec
