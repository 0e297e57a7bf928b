// The innermost loop of all blocked products: a tile of sums, a few weights wide and two vectors of rows long.
#pragma once

#include <cstddef>

#include "vector.h"

namespace inferspec {

// Rows of x lie along the lanes, PANEL of them together; as many weights as the registers hold are taken at a time.
constexpr size_t PANEL = 2 * Vector::width;
#if defined(INFERSPEC_AVX512)
constexpr size_t TILE = 12;
#elif defined(INFERSPEC_NEON)
constexpr size_t TILE = 12;
#else
constexpr size_t TILE = 6;
#endif

// sums[t][lane] += weight(t, k) · x[k][lane] over k < depth, for t < count and PANEL lanes.
// weight(t, k) = weights[t · across + k · along].
template <size_t count>
void add_products(const float* weights, size_t across, size_t along, const float* x, size_t depth, float* sums) {
    Vector low[count], high[count];
    for (size_t t = 0; t < count; ++t) {
        low[t] = load(sums + t * PANEL);
        high[t] = load(sums + t * PANEL + Vector::width);
    }
    for (size_t k = 0; k < depth; ++k) {
        const Vector first = load(x + k * PANEL), second = load(x + k * PANEL + Vector::width);
#pragma GCC unroll 12
        for (size_t t = 0; t < count; ++t) {
            const Vector weight = fill(weights[t * across + k * along]);
            low[t] = fma(weight, first, low[t]);
            high[t] = fma(weight, second, high[t]);
        }
    }
    for (size_t t = 0; t < count; ++t) {
        store(sums + t * PANEL, low[t]);
        store(sums + t * PANEL + Vector::width, high[t]);
    }
}

// The same for any number of weights.
inline void add_products(size_t count, const float* weights, size_t across, size_t along, const float* x, size_t depth,
                         float* sums) {
    for (; count >= TILE; count -= TILE, weights += TILE * across, sums += TILE * PANEL) {
        add_products<TILE>(weights, across, along, x, depth, sums);
    }
    for (; count >= 4; count -= 4, weights += 4 * across, sums += 4 * PANEL) {
        add_products<4>(weights, across, along, x, depth, sums);
    }
    for (; count; --count, weights += across, sums += PANEL) {
        add_products<1>(weights, across, along, x, depth, sums);
    }
}

}  // namespace inferspec
