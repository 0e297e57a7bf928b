// Products with dense weights. A sum is made in one order whatever else is computed with it, along the lanes and at its end
// over them: a row of many is to the last bit what it is alone.

#include "dense.h"

#include <algorithm>
#include <type_traits>

#include "arrays.h"
#include "parallel.h"
#include "vector.h"

namespace inferspec {

namespace {

// Fewer weights than this are no work to wake a thread for.
constexpr size_t WORTH_A_THREAD = 1 << 16;
// Fewer rows than these read the weights where they lie, once for every four.
constexpr size_t MANY_ROWS = 9;
// A tile of sums is as many as there are registers for beside the weights and a row.
constexpr size_t TILE_ROWS = 4;
#if defined(INFERSPEC_AVX512) || defined(INFERSPEC_NEON)
constexpr size_t TILE_OUTPUTS = 6;
#else
constexpr size_t TILE_OUTPUTS = 3;
#endif
// Blocks of so many rows and outputs, and so many terms of their sums, stay in the caches.
constexpr size_t BLOCK_ROWS = 64;
constexpr size_t BLOCK = 8 * TILE_OUTPUTS;
constexpr size_t DEPTH = 1024;
static_assert(DEPTH % Vector::width == 0);

struct WideRows;
struct WideBias;
struct WideWeights;
struct Sums;
struct Partial;

// Rows of floats or of weights.
template <typename T>
struct Matrix {
    const T* data;
    size_t stride;

    Matrix at(size_t row, size_t column) const { return {data + row * stride + column, stride}; }
};

// x in columns of DEPTH, one behind the other: rows as far apart as x has features would fall on the same cache lines.
struct Columns {
    const float* data;
    size_t rows, depth;

    size_t width(size_t k) const { return std::min(DEPTH, depth - k); }
    size_t place(size_t row, size_t k) const { return k * rows + row * width(k); }
    Matrix<float> at(size_t row, size_t k) const { return {data + place(row, k), width(k)}; }
};

// Sums that lack terms, each a vector.
template <size_t rows, size_t outputs>
using Tile = Vector[rows][outputs];

template <size_t rows, size_t outputs, typename T>
void add_products(Matrix<float> x, Matrix<T> weights, size_t depth, Tile<rows, outputs>& tile) {
    constexpr size_t width = Vector::width;
    const auto add = [&](size_t k, size_t count) {
        Vector weight[outputs];
        for (size_t o = 0; o < outputs; ++o) weight[o] = load_up_to(weights.data + o * weights.stride + k, count);
        for (size_t r = 0; r < rows; ++r) {
            const Vector row = load_up_to(x.data + r * x.stride + k, count);
            for (size_t o = 0; o < outputs; ++o) tile[r][o] = fma(weight[o], row, tile[r][o]);
        }
    };
    size_t k = 0;
    for (; k + width <= depth; k += width) add(k, width);
    if (k < depth) add(k, depth - k);
}

// Calls body(a tile's rows, its outputs, first row, first output) for tiles that make up rows × outputs, those of the same
// weights one after the other; the sizes are integral constants.
template <typename Body>
void for_tiles(size_t rows, size_t outputs, const Body& body) {
    const auto down = [&](auto across, size_t output) {
        size_t row = 0;
        for (; row + TILE_ROWS <= rows; row += TILE_ROWS) {
            body(std::integral_constant<size_t, TILE_ROWS>(), across, row, output);
        }
        for (; row < rows; ++row) body(std::integral_constant<size_t, 1>(), across, row, output);
    };
    size_t output = 0;
    for (; output + TILE_OUTPUTS <= outputs; output += TILE_OUTPUTS) {
        down(std::integral_constant<size_t, TILE_OUTPUTS>(), output);
    }
    for (; output < outputs; ++output) down(std::integral_constant<size_t, 1>(), output);
}

// Where sums and results go: of `count` outputs from the first.
struct Results {
    float* sums;  // rows × count
    const float* bias;
    size_t first, count;

    template <size_t rows, size_t outputs>
    void keep(const Tile<rows, outputs>& tile, size_t row, size_t output) const {
        for (size_t r = 0; r < rows; ++r) {
            for (size_t o = output; o < output + outputs; ++o) {
                sums[(row + r) * count + o] = sum(tile[r][o - output]) + bias[first + o];
            }
        }
    }

    void write(size_t rows, void* y, Dtype y_dtype, size_t y_stride) const {
        for (size_t row = 0; row < rows; ++row) narrow(sums + row * count, count, y, y_dtype, row * y_stride + first);
    }
};

template <typename T>
void product_of_few(const Columns& x, Matrix<T> weights, const Results& results) {
    for_tiles(x.rows, results.count, [&](auto rows, auto outputs, size_t row, size_t output) {
        Tile<rows, outputs> tile;
        for (auto& line : tile) std::fill(line, line + outputs, fill(0));
        for (size_t k = 0; k < x.depth; k += DEPTH) add_products(x.at(row, k), weights.at(output, k), x.width(k), tile);
        results.keep(tile, row, output);
    });
}

// Of rows [first, last), a block of weights and as many terms at a time as stay in the caches.
template <typename T>
void product_of_block(const Columns& x, size_t first, size_t last, Matrix<T> weights, const Results& results) {
    const size_t count = results.count;
    float* wide = scratch<WideWeights, float>(BLOCK * DEPTH);
    float* partial = scratch<Partial, float>(BLOCK_ROWS * BLOCK * Vector::width);
    for (size_t k = 0; k < x.depth; k += DEPTH) {
        const size_t terms = x.width(k);
        for (size_t o = 0; o < count; ++o) widen(weights.at(o, k).data, terms, wide + o * terms);
        for_tiles(last - first, count, [&](auto rows, auto outputs, size_t row, size_t output) {
            Tile<rows, outputs> tile;
            float* kept = partial + (row * count + output * rows) * Vector::width;
            for (size_t i = 0; i < rows * outputs; ++i) {
                tile[i / outputs][i % outputs] = k ? load(kept + i * Vector::width) : fill(0);
            }
            add_products(x.at(first + row, k), Matrix<float>{wide + output * terms, terms}, terms, tile);
            if (k + terms == x.depth) return results.keep(tile, first + row, output);
            for (size_t i = 0; i < rows * outputs; ++i) {
                store(kept + i * Vector::width, tile[i / outputs][i % outputs]);
            }
        });
    }
}

template <typename T>
void product_of_many(const Columns& x, Matrix<T> weights, const Results& results) {
    for (size_t row = 0; row < x.rows; row += BLOCK_ROWS) {
        product_of_block(x, row, std::min(row + BLOCK_ROWS, x.rows), weights, results);
    }
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
    float* wide = scratch<WideRows, float>(rows * w.inputs);
    const bool many = rows >= MANY_ROWS;
    const Columns columns{wide, rows, w.inputs};
    parallel_for(many ? threads : 1, rows, [&](size_t row) {
        for (size_t k = 0; k < w.inputs; k += DEPTH) {
            widen(x, x_dtype, row * x_stride + k, columns.width(k), wide + columns.place(row, k));
        }
    });
    const size_t parts = many ? (w.outputs + BLOCK - 1) / BLOCK
                              : std::max<size_t>(1, std::min<size_t>(threads, w.outputs * w.inputs / WORTH_A_THREAD));
    with_type(w.dtype, [&](auto* null) {
        using T = std::remove_pointer_t<decltype(null)>;
        parallel_for(threads, parts, [&](size_t part) {
            const auto [first, last] = share(w.outputs, parts, part, TILE_OUTPUTS);
            const size_t count = last - first;
            const Results results{scratch<Sums, float>(rows * count), added, first, count};
            const Matrix<T> weights{static_cast<const T*>(w.weights) + first * w.stride, w.stride};
            (many ? product_of_many<T> : product_of_few<T>)(columns, weights, results);
            results.write(rows, y, y_dtype, y_stride);
        });
    });
}

}  // namespace inferspec
