// Which form of a product is taken, and restored rows.

#include "quantized.h"

#include <algorithm>

#include "blocked.h"
#include "codes.h"
#include "parallel.h"
#include "quantized_forms.h"

namespace inferspec {

namespace {

// From so many rows on a panel of them is full enough for tiles to be faster.
constexpr size_t MANY_ROWS = Vector::width / 2 + 1;

// The same for the matrix instructions.
constexpr size_t ROWS_FOR_TILES = 6;

struct Line;
struct LineScales;
struct LineBiases;

// Whether no number of x is infinite or NaN.
bool all_finite(const void* x, Dtype dtype, size_t rows, size_t stride, size_t length) {
    Vector total = fill(0);
    with_type(dtype, [&](auto* null) {
        for (size_t row = 0; row < rows; ++row) {
            const auto* numbers = static_cast<decltype(null)>(const_cast<void*>(x)) + row * stride;
            for (size_t i = 0; i < length; i += Vector::width) {
                total = fma(load_up_to(numbers + i, length - i), fill(0), total);
            }
        }
    });
    return sum(total) == 0;
}

}  // namespace

void quantized_product(const void* x, Dtype x_dtype, size_t rows, size_t x_stride, const QuantizedMatrix& w, void* y,
                       Dtype y_dtype, size_t y_stride, int threads) {
    auto form = quantized_product_of_many;
    // The others multiply x with codes before they scale: infinity times a code of 0 would be NaN, whatever the bias.
    if (all_finite(x, x_dtype, rows, x_stride, w.inputs)) {
        if (rows >= ROWS_FOR_TILES && has_tiles()) {
            form = quantized_product_by_tiles;
        } else if (rows < MANY_ROWS) {
            form = quantized_product_of_few;
        }
    }
    form(x, x_dtype, rows, x_stride, w, y, y_dtype, y_stride, threads);
}

void quantized_product_plain(const void* x, Dtype x_dtype, size_t rows, size_t x_stride, const QuantizedMatrix& w,
                             void* y, Dtype y_dtype, size_t y_stride, int threads) {
    const bool few = rows < MANY_ROWS && all_finite(x, x_dtype, rows, x_stride, w.outputs);
    const auto form = few ? quantized_product_plain_of_few : quantized_product_plain_of_many;
    form(x, x_dtype, rows, x_stride, w, y, y_dtype, y_stride, threads);
}

void quantized_rows(const int64_t* tokens, size_t count, const QuantizedMatrix& w, void* y, Dtype y_dtype,
                    int threads) {
    const size_t parts = std::max<size_t>(1, std::min<size_t>(threads, count * w.inputs / WORTH_A_THREAD));
    parallel_for(threads, parts, [&](size_t part) {
        float* line = scratch<Line, float>(2 * w.inputs);
        float* scales = scratch<LineScales, float>(w.groups());
        float* biases = scratch<LineBiases, float>(w.groups());
        const auto [first, last] = share(count, parts, part);
        for (size_t i = first; i < last; ++i) {
            const size_t row = tokens ? static_cast<size_t>(tokens[i]) : i;
            widen_scales(w, row, 1, scales);
            widen_biases(w, row, 1, biases);
            with_bits(w.bits, [&](auto bits) {
                float* natural = line + w.inputs;
                restore<bits>(w.packed + row * w.words(), scales, biases, w.group_size, 0, w.inputs, line);
                for (size_t k = 0; k < w.inputs; ++k) natural[as_unpacked<bits>(k)] = line[k];
                narrow(natural, w.inputs, y, y_dtype, i * w.inputs);
            });
        }
    });
}

}  // namespace inferspec
