// Attention of few rows of queries, as in decoding: memory is what it waits for, so keys and values are read where they lie,
// once for all the rows that share them.
#pragma once

#include "attention_head.h"
#include "attention_tiles.h"
#include "parallel.h"

namespace inferspec {

// From more rows on, panels are faster.
constexpr int64_t FEW_ROWS = 8;
constexpr int64_t FEW_TILE_KEYS = 128;
// Rows that go over the keys together.
constexpr int GROUP_ROWS = 4;

// logits[row][key] for ROWS rows of queries and `count` keys, both of `features` elements, a multiple of the width.
template <int ROWS, typename T>
inline void few_logits(const float* queries, int64_t query_stride, const T* keys, int64_t key_stride, int64_t count,
                       int64_t features, float* logits) {
    for (int64_t key = 0; key < count; ++key) {
        Vector sums[ROWS];
        for (auto& one : sums) one = fill(0.0f);
        for (int64_t feature = 0; feature < features; feature += WIDTH) {
            const Vector element = load(keys + key * key_stride + feature);
            for (int row = 0; row < ROWS; ++row) {
                sums[row] = fma(load(queries + row * query_stride + feature), element, sums[row]);
            }
        }
        for (int row = 0; row < ROWS; ++row) logits[row * FEW_TILE_KEYS + key] = sum(sums[row]);
    }
}

// sums[row][feature] += weights[row][key] · values[key][feature], for ROWS rows and all `features`, a multiple of the width:
// VECTORS vectors of them together, then half as many, down to one.
template <int ROWS, int VECTORS, typename T>
inline void few_sums(const float* weights, const T* values, int64_t value_stride, int64_t count, int64_t features,
                     float* sums, int64_t sums_stride) {
    for (; features >= VECTORS * WIDTH; features -= VECTORS * WIDTH) {
        Vector parts[ROWS][VECTORS];
        for (int row = 0; row < ROWS; ++row) {
            for (int v = 0; v < VECTORS; ++v) parts[row][v] = load(sums + row * sums_stride + v * WIDTH);
        }
        for (int64_t key = 0; key < count; ++key) {
            for (int v = 0; v < VECTORS; ++v) {
                const Vector value = load(values + key * value_stride + v * WIDTH);
                for (int row = 0; row < ROWS; ++row) {
                    parts[row][v] = fma(fill(weights[row * FEW_TILE_KEYS + key]), value, parts[row][v]);
                }
            }
        }
        for (int row = 0; row < ROWS; ++row) {
            for (int v = 0; v < VECTORS; ++v) store(sums + row * sums_stride + v * WIDTH, parts[row][v]);
        }
        values += VECTORS * WIDTH;
        sums += VECTORS * WIDTH;
    }
    if constexpr (VECTORS > 1) {
        few_sums<ROWS, VECTORS / 2>(weights, values, value_stride, count, features, sums, sums_stride);
    }
}

// Attention of few rows over part of the keys.
class FewWalk {
   public:
    FewWalk(const AttentionHead& head, int64_t first_row, int64_t rows, Running running)
        : head_(head), first_row_(first_row), rows_(rows), running_(running) {
        padded_ = (head.features + WIDTH - 1) / WIDTH * WIDTH;
        queries_ = scratch<struct OfFewQueries, float>(rows * padded_);
        copies_ = scratch<struct OfFewCopies, float>(FEW_TILE_KEYS * padded_);
        std::fill_n(queries_, rows * padded_, 0.0f);
        // The padding of a row is multiplied as well: it must be numbers.
        if (!in_place(head.keys) || !in_place(head.values)) std::fill_n(copies_, FEW_TILE_KEYS * padded_, 0.0f);
        for (int64_t row = 0; row < rows; ++row) head.copy_query(first_row + row, head.scale, queries_ + row * padded_);
    }

    void walk(int64_t first_key, int64_t last_key) {
        last_key = std::min(last_key, head_.limit(first_row_ + rows_ - 1));
        for (int64_t key = first_key; key < last_key; key += FEW_TILE_KEYS) {
            attend(key, std::min(FEW_TILE_KEYS, last_key - key));
        }
    }

   private:
    bool in_place(const HeadRows& rows) const { return rows.feature_stride == 1 && head_.features % WIDTH == 0; }

    void attend(int64_t first_key, int64_t count) {
        int64_t done = 0;
        for_each_run(head_.keys, first_key, count, [&](const auto* keys, int64_t stride, int64_t length) {
            for_each_group([&](auto rows, int64_t row) {
                few_logits<rows>(queries_ + row * padded_, padded_, keys, stride, length, padded_,
                                 weights_ + row * FEW_TILE_KEYS + done);
            });
            done += length;
        });
        for (int64_t row = 0; row < rows_; ++row) soften(row, first_key, count);
        done = 0;
        for_each_run(head_.values, first_key, count, [&](const auto* values, int64_t stride, int64_t length) {
            for_each_group([&](auto rows, int64_t row) {
                constexpr int vectors = rows == 1 ? 8 : (MICRO_ROWS == 8 ? 16 : 8) / (rows == 3 ? 4 : rows);
                few_sums<rows, vectors>(weights_ + row * FEW_TILE_KEYS + done, values, stride, length, padded_,
                                        running_.sums + row * running_.stride, running_.stride);
            });
            done += length;
        });
    }

    // Calls body(first row, stride, how many) for the rows [first, first + count) of keys or values.
    template <typename Body>
    void for_each_run(const HeadRows& rows, int64_t first, int64_t count, const Body& body) {
        if (!in_place(rows)) {
            rows.copy(first, first + count, head_.features, copies_, padded_);
            return body(static_cast<const float*>(copies_), padded_, count);
        }
        with_type(rows.dtype, [&](auto* type) {
            using T = std::remove_pointer_t<decltype(type)>;
            rows.for_each_run<T>(
                first, first + count, [&](const T* row, int64_t length) { body(row, rows.row_stride, length); });
        });
    }

    // Calls body(how many, first row) for groups of rows, the number a constant.
    template <typename Body>
    void for_each_group(const Body& body) const {
        int64_t row = 0;
        for (; row + GROUP_ROWS <= rows_; row += GROUP_ROWS) body(std::integral_constant<int, GROUP_ROWS>{}, row);
        switch (rows_ - row) {
            case 1:
                return body(std::integral_constant<int, 1>{}, row);
            case 2:
                return body(std::integral_constant<int, 2>{}, row);
            case 3:
                return body(std::integral_constant<int, 3>{}, row);
        }
    }

    // Logits become weights: exp(logit - top), and what was summed before is scaled for the new top.
    void soften(int64_t row, int64_t first_key, int64_t count) {
        float* weights = weights_ + row * FEW_TILE_KEYS;
        const int64_t whole = (count + WIDTH - 1) / WIDTH * WIDTH;
        const int64_t seen = std::clamp<int64_t>(head_.limit(first_row_ + row) - first_key, 0, count);
        std::fill(weights + seen, weights + whole, -INFINITE);
        const Vector hidden = fill(-INFINITE);
        if (head_.has_array_mask()) {
            head_.copy_bias(first_row_ + row, first_key, count, bias_, 1);
            for (int64_t key = 0; key < count; key += WIDTH) {
                const Vector bias = load(bias_ + key);
                // Not added where it hides: the logit may be infinite, or no number.
                store(weights + key, less(hidden, bias, load(weights + key) + bias, hidden));
            }
        }
        Vector tops = hidden;
        for (int64_t key = 0; key < count; key += WIDTH) tops = max(tops, load(weights + key));
        const float before = running_.tops[row], top = std::max(before, largest(tops));
        // Of a row that has seen no key yet, any number: the difference stays -inf, and its weight 0.
        const Vector reference = fill(std::max(std::numeric_limits<float>::lowest(), top));
        Vector total = fill(0.0f);
        for (int64_t key = 0; key < count; key += WIDTH) {
            const Vector weight = exp(load(weights + key) - reference);
            store(weights + key, weight);
            total = total + weight;
        }
        if (before != top) {
            const Vector factor = exp(fill(before) - reference);
            float* sums = running_.sums + row * running_.stride;
            for (int64_t i = 0; i < padded_; i += WIDTH) store(sums + i, load(sums + i) * factor);
            running_.totals[row] *= first_lane(factor);
            running_.tops[row] = top;
        }
        running_.totals[row] += sum(total);
    }

    const AttentionHead& head_;
    const int64_t first_row_, rows_;
    const Running running_;
    int64_t padded_;
    float *queries_, *copies_;
    alignas(64) float weights_[FEW_ROWS * FEW_TILE_KEYS], bias_[FEW_TILE_KEYS] = {};
};

}  // namespace inferspec
