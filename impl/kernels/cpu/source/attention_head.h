// What one key head's attention reads: the rows of queries that share it, its keys and values, and their mask.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>

#include "attention.h"
#include "vector.h"

namespace inferspec {

constexpr float INFINITE = std::numeric_limits<float>::infinity();

inline float first_lane(Vector v) {
    float lanes[Vector::width];
    store(lanes, v);
    return lanes[0];
}

// `count` elements, `stride` apart, as floats times `factor`.
template <typename T>
inline void copy_as_floats(const T* from, int64_t stride, int64_t count, float factor, float* to) {
    constexpr int64_t width = Vector::width;
    if (stride != 1) {
        for (int64_t i = 0; i < count; ++i) to[i] = to_float(from[i * stride]) * factor;
        return;
    }
    int64_t i = 0;
    for (; i + width <= count; i += width) store(to + i, load(from + i) * fill(factor));
    if (i < count) store(to + i, load(from + i, count - i) * fill(factor), count - i);
}

// The keys, or the values, of one head: rows of features. A dense tensor is one page.
struct HeadRows {
    const char* data;
    Dtype dtype;
    int64_t page_stride, row_stride, feature_stride;
    const int64_t* pages;
    int64_t page_size;

    // Calls body(pointer to a row, how many rows follow each other from there on) for the rows [first, last), in order.
    template <typename T, typename Body>
    void for_each_run(int64_t first, int64_t last, const Body& body) const {
        while (first < last) {
            const int64_t slot = first % page_size, count = std::min(last - first, page_size - slot);
            body(reinterpret_cast<const T*>(data) + pages[first / page_size] * page_stride + slot * row_stride, count);
            first += count;
        }
    }

    // The rows [first, last) as floats, each `stride` after the one before it.
    void copy(int64_t first, int64_t last, int64_t features, float* to, int64_t stride) const {
        with_type(dtype, [&](auto* type) {
            using T = std::remove_pointer_t<decltype(type)>;
            for_each_run<T>(first, last, [&](const T* row, int64_t count) {
                for (; count > 0; --count, row += row_stride, to += stride) {
                    copy_as_floats(row, feature_stride, features, 1.0f, to);
                }
            });
        });
    }
};

// One key head of one batch entry. Its queries are numbered position by position, and within one by head: row r is
// position r / ratio of query head r % ratio, so that what rows of a block see under a causal mask differs little.
struct AttentionHead {
    const char* query;
    Dtype query_dtype;
    int64_t query_head_stride, query_position_stride, query_feature_stride;
    char* result;  // of the query's dtype: ratio × positions × features without gaps
    int64_t ratio, positions, features;
    HeadRows keys, values;
    int64_t key_count;
    float scale;

    MaskKind mask_kind;
    const char* mask;
    Dtype mask_dtype;
    int64_t mask_head_stride, mask_position_stride, mask_key_stride;

    int64_t rows() const { return ratio * positions; }

    // How many of the first keys a row may see; under an array mask all.
    int64_t limit(int64_t row) const {
        if (mask_kind != MaskKind::CAUSAL) return key_count;
        return std::clamp<int64_t>(row / ratio + 1 + key_count - positions, 0, key_count);
    }

    bool has_array_mask() const { return mask_kind == MaskKind::BOOLEAN || mask_kind == MaskKind::ADDITIVE; }

    // The query of a row, times a factor.
    void copy_query(int64_t row, float factor, float* to) const {
        with_type(query_dtype, [&](auto* type) {
            using T = std::remove_pointer_t<decltype(type)>;
            const T* from = reinterpret_cast<const T*>(query) + row % ratio * query_head_stride +
                            row / ratio * query_position_stride;
            copy_as_floats(from, query_feature_stride, features, factor, to);
        });
    }

    // What the array mask adds to the logits of a row at the keys [first, first + count), each `stride` after the one
    // before it; -inf hides a key. Whether it leaves one to be seen.
    bool copy_bias(int64_t row, int64_t first, int64_t count, float* to, int64_t stride) const {
        const int64_t start =
            row % ratio * mask_head_stride + row / ratio * mask_position_stride + first * mask_key_stride;
        bool seen = false;
        if (mask_kind == MaskKind::BOOLEAN) {
            const uint8_t* from = reinterpret_cast<const uint8_t*>(mask) + start;
            for (int64_t i = 0; i < count; ++i) {
                const bool visible = from[i * mask_key_stride] != 0;
                to[i * stride] = visible ? 0.0f : -INFINITE;
                seen |= visible;
            }
            return seen;
        }
        with_type(mask_dtype, [&](auto* type) {
            using T = std::remove_pointer_t<decltype(type)>;
            const T* from = reinterpret_cast<const T*>(mask) + start;
            const float lowest = lowest_of<T>();
            for (int64_t i = 0; i < count; ++i) {
                const float added = to_float(from[i * mask_key_stride]);
                const bool hidden = added <= lowest;
                to[i * stride] = hidden ? -INFINITE : added;
                seen |= !hidden;
            }
        });
        return seen;
    }

    // Writes a row of the result: sums / total, or zeros where no key was seen. Sums are padded to the width.
    void write(int64_t row, const float* sums, float total) const {
        with_type(query_dtype, [&](auto* type) {
            using T = std::remove_pointer_t<decltype(type)>;
            T* to = reinterpret_cast<T*>(result) + (row % ratio * positions + row / ratio) * features;
            constexpr int64_t width = Vector::width;
            const Vector factor = fill(1.0f / total), none = fill(0.0f);
            for (int64_t i = 0; i < features; i += width) {
                // Not multiplied by 0: values that no row sees may be no numbers.
                const Vector quotient = total == 0.0f ? none : load(sums + i) * factor;
                i + width <= features ? store(to + i, quotient) : store(to + i, quotient, features - i);
            }
        });
    }

   private:
    template <typename T>
    static float lowest_of() {
        if constexpr (std::is_same_v<T, float>) return std::numeric_limits<float>::lowest();
        if constexpr (std::is_same_v<T, Float16>) return to_float(Float16{0xfbff});
        return to_float(Bfloat16{0xff7f});
    }
};

}  // namespace inferspec
