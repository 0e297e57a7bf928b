// Products with dense weights: few rows read each weight once, many are blocked as with quantised weights.

#include "dense.h"

#include <algorithm>
#include <type_traits>

#include "arrays.h"
#include "blocked.h"
#include "parallel.h"

namespace inferspec {

namespace {

// Fewer weights than this are no work to wake a thread for.
constexpr size_t WORTH_A_THREAD = 1 << 16;
constexpr size_t MANY_ROWS = Vector::width / 2 + 1;
constexpr size_t BLOCK = 4 * 12;

struct WideRows;
struct WideBias;
struct Sums;

// sums[row] = x[row] · weights, for some rows of x that are read together.
template <size_t rows, typename T>
void dots(const T* weights, const float* x, size_t depth, float* sums) {
    constexpr size_t width = Vector::width, ahead = 2;
    Vector total[rows][ahead];
    for (auto& of_row : total) std::fill(of_row, of_row + ahead, fill(0));
    size_t k = 0;
    for (; k + ahead * width <= depth; k += ahead * width) {
        for (size_t a = 0; a < ahead; ++a) {
            const Vector weight = load(weights + k + a * width);
            for (size_t r = 0; r < rows; ++r) {
                total[r][a] = fma(weight, load(x + r * depth + k + a * width), total[r][a]);
            }
        }
    }
    for (; k < depth; k += width) {
        const size_t count = std::min(width, depth - k);
        const Vector weight = load_up_to(weights + k, count);
        for (size_t r = 0; r < rows; ++r) {
            total[r][0] = fma(weight, load_up_to(x + r * depth + k, count), total[r][0]);
        }
    }
    for (size_t r = 0; r < rows; ++r) sums[r] = sum(total[r][0] + total[r][1]);
}

template <typename T>
void product_of_few(const float* x, size_t rows, const DenseMatrix& w, const float* bias, void* y, Dtype y_dtype,
                    size_t y_stride, int threads) {
    const auto* weights = static_cast<const T*>(w.weights);
    const size_t parts = std::max<size_t>(1, std::min<size_t>(threads, w.outputs * w.inputs / WORTH_A_THREAD));
    parallel_for(threads, parts, [&](size_t part) {
        const auto [first, last] = share(w.outputs, parts, part);
        const size_t count = last - first;
        float* sums = scratch<Sums, float>(rows * count + 4);
        float* some = sums + rows * count;
        for (size_t o = first; o < last; ++o) {
            size_t row = 0;
            const auto keep = [&](size_t together) {
                for (size_t r = 0; r < together; ++r, ++row) sums[row * count + o - first] = some[r] + bias[o];
            };
            while (row + 4 <= rows) {
                dots<4>(weights + o * w.stride, x + row * w.inputs, w.inputs, some);
                keep(4);
            }
            while (row < rows) {
                dots<1>(weights + o * w.stride, x + row * w.inputs, w.inputs, some);
                keep(1);
            }
        }
        for (size_t row = 0; row < rows; ++row) narrow(sums + row * count, count, y, y_dtype, row * y_stride + first);
    });
}

}  // namespace

void dense_product(const void* x, Dtype x_dtype, size_t rows, size_t x_stride, const DenseMatrix& w, const void* bias,
                   Dtype bias_dtype, void* y, Dtype y_dtype, size_t y_stride, int threads) {
    float* added = scratch<WideBias, float>(w.outputs);
    if (bias) {
        widen(bias, bias_dtype, 0, w.outputs, added);
    } else {
        std::fill(added, added + w.outputs, 0.0f);
    }
    if (rows < MANY_ROWS) {
        float* wide = scratch<WideRows, float>(rows * w.inputs);
        for (size_t row = 0; row < rows; ++row) widen(x, x_dtype, row * x_stride, w.inputs, wide + row * w.inputs);
        with_type(w.dtype, [&](auto* null) {
            using T = std::remove_pointer_t<decltype(null)>;
            product_of_few<T>(wide, rows, w, added, y, y_dtype, y_stride, threads);
        });
        return;
    }
    const float* packed = pack_rows(x, x_dtype, rows, x_stride, w.inputs, as_it_is, threads);
    const auto widen_rows = [&](size_t first, size_t count, size_t k, size_t depth, float* weights) {
        for (size_t o = 0; o < count; ++o) {
            widen(w.weights, w.dtype, (first + o) * w.stride + k, depth, weights + o * DEPTH);
        }
    };
    const BlockedShape shape{rows, w.inputs, w.outputs, BLOCK, DEPTH, 1};
    blocked_product(packed, shape, widen_rows, as_it_is, added, y, y_dtype, y_stride, threads);
}

}  // namespace inferspec
