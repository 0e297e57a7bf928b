// Pieces of arrays of any dtype, in float32 and back.
#pragma once

#include <cstddef>

#include "dtypes.h"
#include "vector.h"

namespace inferspec {

// The next numbers of an array that has `count` more, the other lanes 0.
template <typename T>
Vector load_up_to(const T* p, size_t count) {
    return count < Vector::width ? load(p, count) : load(p);
}

// `count` numbers in float32.
template <typename T>
void widen(const T* from, size_t count, float* to) {
    constexpr size_t width = Vector::width;
    size_t i = 0;
    for (; i + width <= count; i += width) store(to + i, load(from + i));
    if (i < count) store(to + i, load(from + i, count - i), count - i);
}

// `count` numbers from the element `first` of an array.
inline void widen(const void* source, Dtype dtype, size_t first, size_t count, float* to) {
    with_type(dtype, [&](auto* null) {
        widen(static_cast<decltype(null)>(const_cast<void*>(source)) + first, count, to);
    });
}

// `count` float32 numbers, each rounded once, into an array from its element `first`.
inline void narrow(const float* from, size_t count, void* target, Dtype dtype, size_t first) {
    with_type(dtype, [&](auto* null) {
        auto* to = static_cast<decltype(null)>(target) + first;
        constexpr size_t width = Vector::width;
        size_t i = 0;
        for (; i + width <= count; i += width) store(to + i, load(from + i));
        if (i < count) store(to + i, load(from + i, count - i), count - i);
    });
}

}  // namespace inferspec
