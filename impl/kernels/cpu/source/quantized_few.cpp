// Products of few rows of x: the time goes into reading the weights, each of which is read and unpacked once.

#include "quantized_forms.h"

#include <algorithm>

#include "codes.h"
#include "parallel.h"

namespace inferspec {

namespace {

constexpr size_t CACHE_LINE = 64;

struct ArrangedRows;
struct GroupSums;
struct Scales;
struct Biases;
struct Sums;

// x in float32, in the order of Codes' vectors, and the sums of its groups, which the biases are multiplied with.
struct Arranged {
    const float* x;     // [rows][inputs]
    const float* sums;  // [rows][groups]
};

template <int bits>
void arrange(const float* natural, size_t count, float* arranged) {
    for (size_t i = 0; i < count; i += CHUNK) {
        for (size_t v = 0; v < VECTORS; ++v) {
            for (size_t lane = 0; lane < Vector::width; ++lane) {
                arranged[i + v * Vector::width + lane] = natural[i + Codes<bits>::place(v, lane)];
            }
        }
    }
}

float dot(const float* a, const float* b, size_t count) {
    Vector total = fill(0);
    size_t i = 0;
    for (; i + Vector::width <= count; i += Vector::width) total = fma(load(a + i), load(b + i), total);
    if (i < count) total = fma(load(a + i, count - i), load(b + i, count - i), total);
    return sum(total);
}

template <int bits>
Arranged arrange_rows(const void* x, Dtype dtype, size_t rows, size_t stride, const QuantizedMatrix& w) {
    const size_t groups = w.groups();
    float* arranged = scratch<ArrangedRows, float>(rows * w.inputs + w.inputs);
    float* natural = arranged + rows * w.inputs;
    float* sums = scratch<GroupSums, float>(rows * groups);
    for (size_t row = 0; row < rows; ++row) {
        widen(x, dtype, row * stride, w.inputs, natural);
        arrange<bits>(natural, w.inputs, arranged + row * w.inputs);
        for (size_t group = 0; group < groups; ++group) {
            Vector total = fill(0);
            for (size_t i = group * w.group_size; i < (group + 1) * w.group_size; i += Vector::width) {
                total = total + load(natural + i);
            }
            sums[row * groups + group] = sum(total);
        }
    }
    return {arranged, sums};
}

// sums[o][row] for `outputs` rows of weights from `first` and `rows` rows of x from `row`: in each group the codes are
// multiplied with x, and their sum with the scale.
template <int bits, size_t outputs, size_t rows>
void multiply(const QuantizedMatrix& w, size_t first, const float* scales, const float* x, float* sums, size_t stride) {
    // An fma waits for the one before it in its chain: a lone row has registers for two chains an output.
    constexpr size_t chains = rows == 1 ? 2 : 1;
    const size_t words = w.words(), groups = w.groups();
    const uint32_t* next[outputs];
    for (size_t o = 0; o < outputs; ++o) next[o] = w.packed + (first + o) * words;
    Vector total[outputs][rows];
    for (auto& of_output : total) std::fill(of_output, of_output + rows, fill(0));
    for (size_t group = 0, i = 0; group < groups; ++group) {
        Vector partial[outputs][rows][chains];
        for (auto& of_output : partial) {
            for (auto& of_row : of_output) std::fill(of_row, of_row + chains, fill(0));
        }
        for (const size_t end = i + w.group_size; i < end; i += CHUNK) {
            if (i * bits / 8 % CACHE_LINE == 0) {
#pragma GCC unroll 4
                for (size_t o = 0; o < outputs; ++o) __builtin_prefetch(next[o] + outputs * words);
            }
#pragma GCC unroll 4
            for (size_t o = 0; o < outputs; ++o) {
                const auto codes = Codes<bits>::unpack(next[o]);
                next[o] += words_of_chunk<bits>();
#pragma GCC unroll 4
                for (size_t row = 0; row < rows; ++row) {
#pragma GCC unroll 8
                    for (size_t v = 0; v < VECTORS; ++v) {
                        const Vector values = load(x + row * w.inputs + i + v * Vector::width);
                        Vector& sum_so_far = partial[o][row][v % chains];
                        sum_so_far = fma(codes.vectors[v], values, sum_so_far);
                    }
                }
            }
        }
        for (size_t o = 0; o < outputs; ++o) {
            const Vector scale = fill(scales[o * groups + group]);
            for (size_t row = 0; row < rows; ++row) {
                Vector sum_of_group = partial[o][row][0];
                for (size_t chain = 1; chain < chains; ++chain) sum_of_group = sum_of_group + partial[o][row][chain];
                total[o][row] = fma(sum_of_group, scale, total[o][row]);
            }
        }
    }
    for (size_t o = 0; o < outputs; ++o) {
        for (size_t row = 0; row < rows; ++row) sums[o * stride + row] = sum(total[o][row]);
    }
}

template <int bits, size_t outputs>
void multiply_rows(const QuantizedMatrix& w, size_t first, const float* scales, const Arranged& x, size_t rows,
                   float* sums) {
    size_t row = 0;
    for (; outputs <= 2 && row + 4 <= rows; row += 4) {
        multiply<bits, outputs, outputs <= 2 ? 4 : 1>(w, first, scales, x.x + row * w.inputs, sums + row, rows);
    }
    for (; row < rows; ++row) multiply<bits, outputs, 1>(w, first, scales, x.x + row * w.inputs, sums + row, rows);
}

// Some outputs of every row of y.
template <int bits, size_t outputs>
void some_outputs(const QuantizedMatrix& w, size_t first, const Arranged& x, size_t rows, void* y, Dtype y_dtype,
                  size_t y_stride) {
    const size_t groups = w.groups();
    float* scales = scratch<Scales, float>(outputs * groups);
    float* biases = scratch<Biases, float>(outputs * groups);
    float* sums = scratch<Sums, float>(outputs * rows + outputs);
    float* line = sums + outputs * rows;
    widen_scales(w, first, outputs, scales);
    widen_biases(w, first, outputs, biases);
    multiply_rows<bits, outputs>(w, first, scales, x, rows, sums);
    for (size_t row = 0; row < rows; ++row) {
        for (size_t o = 0; o < outputs; ++o) {
            line[o] = sums[o * rows + row] + dot(biases + o * groups, x.sums + row * groups, groups);
        }
        narrow(line, outputs, y, y_dtype, row * y_stride + first);
    }
}

template <int bits>
void product(const void* x, Dtype x_dtype, size_t rows, size_t x_stride, const QuantizedMatrix& w, void* y,
             Dtype y_dtype, size_t y_stride, int threads) {
    const Arranged arranged = arrange_rows<bits>(x, x_dtype, rows, x_stride, w);
    const size_t parts = std::max<size_t>(1, std::min<size_t>(threads, w.outputs * w.inputs / WORTH_A_THREAD));
    parallel_for(threads, parts, [&](size_t part) {
        auto [output, end] = share(w.outputs, parts, part, 4);
        if (rows == 1) {
            for (; output + 4 <= end; output += 4) some_outputs<bits, 4>(w, output, arranged, 1, y, y_dtype, y_stride);
        } else {
            for (; output + 2 <= end; output += 2) {
                some_outputs<bits, 2>(w, output, arranged, rows, y, y_dtype, y_stride);
            }
        }
        for (; output < end; ++output) some_outputs<bits, 1>(w, output, arranged, rows, y, y_dtype, y_stride);
    });
}

}  // namespace

void quantized_product_of_few(const void* x, Dtype x_dtype, size_t rows, size_t x_stride, const QuantizedMatrix& w,
                              void* y, Dtype y_dtype, size_t y_stride, int threads) {
    with_bits(w.bits, [&](auto bits) {
        product<bits>(x, x_dtype, rows, x_stride, w, y, y_dtype, y_stride, threads);
    });
}

}  // namespace inferspec
