// A layer of a checkpoint, dense or quantised, with or without a bias.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "dense.h"
#include "dtypes.h"
#include "fixed_point.h"
#include "parallel.h"
#include "quantized.h"

namespace inferspec {

// As Python fills it in. bits is 0 where the weight is dense: outputs×inputs of `dtype`. Otherwise it is packed, and
// scales are of `dtype` and biases of biases_dtype. addend: outputs numbers of addend_dtype, or null.
struct Linear {
    const void* weight;
    const void* scales;
    const void* biases;
    const void* addend;
    int64_t outputs, inputs, group_size, bits;
    int32_t dtype, biases_dtype, addend_dtype, unused;
};

namespace linear {

struct Sums;

inline QuantizedMatrix packed(const Linear& layer) {
    return {static_cast<const uint32_t*>(layer.weight),
            layer.scales,
            layer.biases,
            static_cast<Dtype>(layer.dtype),
            static_cast<Dtype>(layer.biases_dtype),
            static_cast<size_t>(layer.outputs),
            static_cast<size_t>(layer.inputs),
            static_cast<size_t>(layer.group_size),
            static_cast<size_t>(layer.bits)};
}

// Whether a row that is prepared for one of these layers is so for the other.
inline bool alike(const Linear& a, const Linear& b) {
    return a.bits == b.bits && a.group_size == b.group_size && a.inputs == b.inputs;
}

// sums += addend, in the dtype of y.
inline void add(const float* sums, size_t rows, const Linear& layer, void* y, Dtype dtype) {
    const size_t outputs = layer.outputs;
    with_type(dtype, [&](auto* result) {
        using Y = std::remove_pointer_t<decltype(result)>;
        with_type(static_cast<Dtype>(layer.addend_dtype), [&](auto* added) {
            using A = std::remove_pointer_t<decltype(added)>;
            const A* addend = static_cast<const A*>(layer.addend);
            for (size_t r = 0; r < rows; ++r) {
                Y* to = static_cast<Y*>(y) + r * outputs;
                for (size_t o = 0; o < outputs; ++o) to[o] = from_float<Y>(sums[r * outputs + o] + to_float(addend[o]));
            }
        });
    });
}

}  // namespace linear

// y = x · weightᵀ + addend, for x: rows×inputs and y: rows×outputs of one dtype; computed in float32 and rounded once.
inline void linear_product(const void* x, Dtype dtype, size_t rows, const Linear& layer, void* y, int threads) {
    const size_t inputs = layer.inputs, outputs = layer.outputs;
    if (!layer.bits) {
        const DenseMatrix matrix{layer.weight, static_cast<Dtype>(layer.dtype), outputs, inputs, inputs};
        const Dtype addend_dtype = static_cast<Dtype>(layer.addend_dtype);
        dense_product(x, dtype, rows, inputs, matrix, layer.addend, addend_dtype, y, dtype, outputs, threads);
    } else if (!layer.addend) {
        quantized_product(x, dtype, rows, inputs, linear::packed(layer), y, dtype, outputs, threads);
    } else {
        float* sums = scratch<linear::Sums, float>(rows * outputs);
        quantized_product(x, dtype, rows, inputs, linear::packed(layer), sums, Dtype::FLOAT32, outputs, threads);
        linear::add(sums, rows, layer, y, dtype);
    }
}

// The products of one x with several layers. One row of float32 is read once for those that are packed alike.
template <size_t count>
void linear_products(const void* x, Dtype dtype, size_t rows, const Linear* const (&layers)[count],
                     void* const (&ys)[count], int threads) {
    FixedPointRow row{};
    const Linear* prepared = nullptr;
    const bool fixed = has_fixed_point() && rows == 1 && dtype == Dtype::FLOAT32;
    for (size_t i = 0; i < count; ++i) {
        const Linear& layer = *layers[i];
        if (fixed && layer.bits && !(prepared && linear::alike(*prepared, layer))) {
            prepared = prepare(static_cast<const float*>(x), linear::packed(layer), row) ? &layer : nullptr;
        }
        if (prepared && layer.bits) {
            float* y = static_cast<float*>(ys[i]);
            fixed_point_product(row, linear::packed(layer), y, threads);
            if (layer.addend) linear::add(y, 1, layer, y, dtype);
        } else {
            linear_product(x, dtype, rows, layer, ys[i], threads);
        }
    }
}

// y[i] = row tokens[i] of the weight, in that dtype; a dense one is of that dtype.
inline void linear_rows(const int64_t* tokens, size_t count, const Linear& layer, void* y, Dtype dtype, int threads) {
    if (layer.bits) return quantized_rows(tokens, count, linear::packed(layer), y, dtype, threads);
    const size_t bytes = layer.inputs * size_of(dtype);
    for (size_t i = 0; i < count; ++i) {
        std::memcpy(static_cast<char*>(y) + i * bytes, static_cast<const char*>(layer.weight) + tokens[i] * bytes, bytes);
    }
}

}  // namespace inferspec
