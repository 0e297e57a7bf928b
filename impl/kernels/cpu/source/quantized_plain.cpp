// Products with weights that are not transposed, of few rows: each row of weights, times its element of x, is added to y.

#include <algorithm>

#include "blocked.h"
#include "codes.h"
#include "parallel.h"
#include "quantized_forms.h"

namespace inferspec {

namespace {

struct Columns;
struct Totals;
struct RowScales;
struct RowBiases;

// totals[row][i - first] += Σ x[row][output + o] · weight(output + o, i) for i in [first, last), in Codes' order.
template <int bits, size_t outputs>
void add_rows(const QuantizedMatrix& w, size_t output, const float* x, size_t rows, size_t first, size_t last,
              const float* scales, const float* biases, float* totals) {
    const size_t words = w.words(), groups = w.groups();
    for (size_t i = first; i < last; i += CHUNK) {
        Codes<bits> codes[outputs];
        for (size_t o = 0; o < outputs; ++o) {
            codes[o] = Codes<bits>::unpack(w.packed + (output + o) * words + i * bits / 32);
        }
        const size_t group = i / w.group_size;
        for (size_t row = 0; row < rows; ++row) {
            float* total = totals + row * (last - first) + (i - first);
            Vector factor[outputs], constant = fill(0);
            for (size_t o = 0; o < outputs; ++o) {
                const Vector value = fill(x[row * w.outputs + output + o]);
                factor[o] = value * fill(scales[o * groups + group]);
                constant = fma(value, fill(biases[o * groups + group]), constant);
            }
            for (size_t v = 0; v < VECTORS; ++v) {
                Vector sum = load(total + v * Vector::width) + constant;
                for (size_t o = 0; o < outputs; ++o) sum = fma(codes[o].vectors[v], factor[o], sum);
                store(total + v * Vector::width, sum);
            }
        }
    }
}

template <int bits>
void product(const void* x, Dtype x_dtype, size_t rows, size_t x_stride, const QuantizedMatrix& w, void* y,
             Dtype y_dtype, size_t y_stride, int threads) {
    constexpr size_t together = 4;
    float* wide = scratch<Columns, float>(rows * w.outputs);
    for (size_t row = 0; row < rows; ++row) widen(x, x_dtype, row * x_stride, w.outputs, wide + row * w.outputs);
    const size_t parts = std::max<size_t>(1, std::min<size_t>(threads, w.outputs * w.inputs / WORTH_A_THREAD));
    parallel_for(threads, parts, [&](size_t part) {
        const auto [first, last] = share(w.inputs, parts, part, CHUNK);
        const size_t width = last - first;
        if (!width) return;
        float* totals = scratch<Totals, float>(rows * width + width);
        float* line = totals + rows * width;
        float* scales = scratch<RowScales, float>(together * w.groups());
        float* biases = scratch<RowBiases, float>(together * w.groups());
        std::fill(totals, line, 0.0f);
        size_t o = 0;
        for (; o + together <= w.outputs; o += together) {
            widen_scales(w, o, together, scales);
            widen_biases(w, o, together, biases);
            add_rows<bits, together>(w, o, wide, rows, first, last, scales, biases, totals);
        }
        for (; o < w.outputs; ++o) {
            widen_scales(w, o, 1, scales);
            widen_biases(w, o, 1, biases);
            add_rows<bits, 1>(w, o, wide, rows, first, last, scales, biases, totals);
        }
        for (size_t row = 0; row < rows; ++row) {
            for (size_t i = 0; i < width; ++i) line[as_unpacked<bits>(i)] = totals[row * width + i];
            narrow(line, width, y, y_dtype, row * y_stride + first);
        }
    });
}

}  // namespace

void quantized_product_plain_of_few(const void* x, Dtype x_dtype, size_t rows, size_t x_stride,
                                    const QuantizedMatrix& w, void* y, Dtype y_dtype, size_t y_stride, int threads) {
    with_bits(w.bits, [&](auto bits) {
        product<bits>(x, x_dtype, rows, x_stride, w, y, y_dtype, y_stride, threads);
    });
}

}  // namespace inferspec
