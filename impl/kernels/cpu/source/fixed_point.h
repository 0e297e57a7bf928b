// Products of one row of float32 with quantised weights in integer arithmetic, several times as fast as in float32.
//
// Eight neighbours of x (four, for codes of 8 bits) become whole numbers of 23 bits, sign and all, times one power of two,
// and each number three digits of 8 bits. Sums of digits times codes are exact; the largest of eight is off by at most
// 2^-23 of itself, and so by no more than it would be off in a float32 sum with its neighbours.
#pragma once

#include <cstddef>
#include <cstdint>

#include "quantized.h"

namespace inferspec {

// A row of x, ready for products with weights of so many bits and groups of one size. It lies in the calling thread's
// memory until that prepares another one.
struct FixedPointRow {
    const int8_t* digits;
    const float* units;  // what the numbers are multiples of, for each lane of a vector of codes
    const float* sums;   // of x, for each group
    size_t inputs;
};

// Whether this path has the instructions; then `prepare` gives false for an x that integers do not hold: one with NaN,
// infinities, or all eight neighbours below 2^-90 but not 0.
bool has_fixed_point();
bool prepare(const float* x, const QuantizedMatrix& weights, FixedPointRow& row);

// y = x · wᵀ for weights of the bits, group size and inputs that the row was prepared for.
void fixed_point_product(const FixedPointRow& x, const QuantizedMatrix& weights, float* y, int threads);

}  // namespace inferspec
