// What a decoder does to its activations between products: each step one row at a time, rounded where it ends.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "dtypes.h"
#include "vector.h"

namespace inferspec {

// Calls step(i, n) for the vectors of a row: n = Vector::width, and less for what is left at the end.
template <typename Step>
void vectors(size_t count, const Step& step) {
    size_t i = 0;
    for (; i + Vector::width <= count; i += Vector::width) step(i, Vector::width);
    if (i < count) step(i, count - i);
}

template <typename T>
Vector read(const T* p, size_t count) {
    return count == Vector::width ? load(p) : load(p, count);
}

template <typename T>
void write(T* p, Vector v, size_t count) {
    count == Vector::width ? store(p, v) : store(p, v, count);
}

// v as the dtype T holds it.
template <typename T>
Vector rounded(Vector v) {
    if constexpr (std::is_same_v<T, float>) return v;
    T stored[Vector::width];
    store(stored, v);
    return load(stored);
}

// to = x / sqrt(mean(x²) + eps) · weight: the quotient is rounded, and then the product. `to` may be x.
template <typename T>
void rms_norm(const T* x, const T* weight, size_t count, float eps, T* to) {
    Vector squares = fill(0.0f);
    vectors(count, [&](size_t i, size_t n) {
        const Vector v = read(x + i, n);
        squares = fma(v, v, squares);
    });
    const Vector root = fill(1.0f / std::sqrt(sum(squares) / static_cast<float>(count) + eps));
    vectors(count, [&](size_t i, size_t n) {
        write(to + i, rounded<T>(read(x + i, n) * root) * read(weight + i, n), n);
    });
}

// x += y.
template <typename T>
void add(T* x, const T* y, size_t count) {
    vectors(count, [&](size_t i, size_t n) { write(x + i, read(x + i, n) + read(y + i, n), n); });
}

// gate = silu(gate) · up, where SiLU is rounded too. e^-|x| never overflows, and its quotient loses nothing for negative
// x, where 1 - sigmoid(-x) would cancel.
template <typename T>
void silu_times(T* gate, const T* up, size_t count) {
    const Vector one = fill(1.0f), zero = fill(0.0f);
    vectors(count, [&](size_t i, size_t n) {
        const Vector v = read(gate + i, n);
        const Vector small = exp(min(v, zero - v));
        // e^-|v| / (1 + e^-|v|) for negative v, 1 / (1 + e^-|v|) for the others.
        const Vector sigmoid = exp(min(v, zero)) / (one + small);
        write(gate + i, rounded<T>(v * sigmoid) * read(up + i, n), n);
    });
}

// How RoPE turns the heads of some tokens: pair i of features i and i + D/2 by position · frequencies[i].
class Turns {
   public:
    Turns(const float* frequencies, size_t head_dim, const std::vector<int64_t>& positions)
        : half_(head_dim / 2), cos_(positions.size() * half_), sin_(positions.size() * half_) {
        for (size_t t = 0; t < positions.size(); ++t) {
            for (size_t i = 0; i < half_; ++i) {
                const float angle = static_cast<float>(positions[t]) * frequencies[i];
                cos_[t * half_ + i] = std::cos(angle);
                sin_[t * half_ + i] = std::sin(angle);
            }
        }
    }

    // Turns one head of token t, D features, in place.
    template <typename T>
    void turn(T* head, size_t t) const {
        const float *cos = &cos_[t * half_], *sin = &sin_[t * half_];
        vectors(half_, [&](size_t i, size_t n) {
            const Vector first = read(head + i, n), second = read(head + half_ + i, n);
            const Vector c = read(cos + i, n), s = read(sin + i, n);
            write(head + i, first * c - second * s, n);
            write(head + half_ + i, first * s + second * c, n);
        });
    }

   private:
    size_t half_;
    std::vector<float> cos_, sin_;
};

}  // namespace inferspec
