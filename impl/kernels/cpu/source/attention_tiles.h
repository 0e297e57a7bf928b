// Attention of many rows of queries: tiles of keys and values are turned into floats once for a block of rows, and matrix
// products go over panels of rows whose vectors hold one element of each row. Running maximum, sum and factor of a row
// then need no horizontal step (Milakov and Gimelshein 2018; Dao 2023).
#pragma once

#include "attention_head.h"
#include "parallel.h"

namespace inferspec {

constexpr int64_t WIDTH = Vector::width;
constexpr int64_t PANEL_VECTORS = 2;
constexpr int64_t PANEL_ROWS = PANEL_VECTORS * WIDTH;
constexpr int64_t BLOCK_ROWS = 256;
constexpr int64_t TILE_KEYS = 64;
// Rows of a micro-kernel: with two vectors of each, enough sums to keep two units busy, and few enough for registers.
#if defined(INFERSPEC_AVX512) || defined(INFERSPEC_NEON)
constexpr int64_t MICRO_ROWS = 8;
#else
constexpr int64_t MICRO_ROWS = 4;
#endif
static_assert(BLOCK_ROWS % PANEL_ROWS == 0 && PANEL_ROWS % MICRO_ROWS == 0 && TILE_KEYS % MICRO_ROWS == 0);

// What has been summed up for a row: sums / total is its result so far, of logits less `top`.
struct Running {
    float* tops;
    float* totals;
    float* sums;
    int64_t stride;  // of the rows of sums
};

inline int64_t padded_features(int64_t features) {
    const int64_t whole = (features + WIDTH - 1) / WIDTH * WIDTH;
    return whole + 16;  // an odd number of cache lines for the usual head dims: rows do not fall on the same sets
}

// logits[key][row] of MICRO_ROWS keys and VECTORS vectors of rows; queries[feature][row].
template <int VECTORS>
inline void micro_logits(const float* queries, const float* keys, int64_t stride, int64_t features, float* logits) {
    Vector sums[MICRO_ROWS][VECTORS];
    for (auto& row : sums) {
        for (auto& sum : row) sum = fill(0.0f);
    }
    for (int64_t feature = 0; feature < features; ++feature) {
        Vector query[VECTORS];
        for (int v = 0; v < VECTORS; ++v) query[v] = load(queries + feature * PANEL_ROWS + v * WIDTH);
        for (int key = 0; key < MICRO_ROWS; ++key) {
            const Vector element = fill(keys[key * stride + feature]);
            for (int v = 0; v < VECTORS; ++v) sums[key][v] = fma(element, query[v], sums[key][v]);
        }
    }
    for (int key = 0; key < MICRO_ROWS; ++key) {
        for (int v = 0; v < VECTORS; ++v) store(logits + key * PANEL_ROWS + v * WIDTH, sums[key][v]);
    }
}

// sums[row][feature] = sums · factor[row] + weights[key][row] · values[key][feature], for MICRO_ROWS rows and VECTORS
// vectors of features.
template <int VECTORS>
inline void micro_sums(
    const float* weights, const float* values, int64_t stride, int64_t keys, const float* factors, float* sums) {
    Vector parts[MICRO_ROWS][VECTORS];
    for (int row = 0; row < MICRO_ROWS; ++row) {
        const Vector factor = fill(factors[row]);
        for (int v = 0; v < VECTORS; ++v) {
            parts[row][v] = load(sums + row * stride + v * WIDTH) * factor;
        }
    }
    for (int64_t key = 0; key < keys; ++key) {
        Vector value[VECTORS];
        for (int v = 0; v < VECTORS; ++v) value[v] = load(values + key * stride + v * WIDTH);
        for (int row = 0; row < MICRO_ROWS; ++row) {
            const Vector weight = fill(weights[key * PANEL_ROWS + row]);
            for (int v = 0; v < VECTORS; ++v) parts[row][v] = fma(weight, value[v], parts[row][v]);
        }
    }
    for (int row = 0; row < MICRO_ROWS; ++row) {
        for (int v = 0; v < VECTORS; ++v) store(sums + row * stride + v * WIDTH, parts[row][v]);
    }
}

// What the walk below multiplies, with any path's vectors. Another kind of products (attention_amx.h) has the same members.
class VectorProducts {
   public:
    VectorProducts(const AttentionHead& head, int64_t first_row, int64_t rows, Running running)
        : head_(head), running_(running) {
        const int64_t panels = (rows + PANEL_ROWS - 1) / PANEL_ROWS;
        queries_ = scratch<struct OfQueries, float>(panels * head.features * PANEL_ROWS);
        keys_ = scratch<struct OfKeys, float>(TILE_KEYS * running.stride);
        values_ = scratch<struct OfValues, float>(TILE_KEYS * running.stride);
        // Padding is multiplied as well: it must be numbers.
        std::fill_n(keys_, TILE_KEYS * running.stride, 0.0f);
        std::fill_n(values_, TILE_KEYS * running.stride, 0.0f);
        float* query = scratch<struct OfOneQuery, float>(head.features);
        for (int64_t row = 0; row < panels * PANEL_ROWS; ++row) {
            if (row < rows) {
                head.copy_query(first_row + row, head.scale, query);
            } else {
                std::fill_n(query, head.features, 0.0f);
            }
            float* panel = queries_ + row / PANEL_ROWS * PANEL_ROWS * head.features + row % PANEL_ROWS;
            for (int64_t feature = 0; feature < head.features; ++feature) panel[feature * PANEL_ROWS] = query[feature];
        }
    }

    // What the logits still have to be multiplied by.
    float scale() const { return 1.0f; }

    // The keys [first, first + count) and their values come next. Whether these products can take them.
    bool take(int64_t first, int64_t count) {
        head_.keys.copy(first, first + count, head_.features, keys_, running_.stride);
        head_.values.copy(first, first + count, head_.features, values_, running_.stride);
        return true;
    }

    // logits[key][row] of a panel that begins at `row` and has as many rows.
    void multiply(int64_t row, int64_t rows, int64_t count, float* logits) const {
        const auto multiply = rows <= WIDTH ? micro_logits<1> : micro_logits<PANEL_VECTORS>;
        for (int64_t key = 0; key < count; key += MICRO_ROWS) {
            multiply(queries_ + row * head_.features, keys_ + key * running_.stride, running_.stride, head_.features,
                     logits + key * PANEL_ROWS);
        }
    }

    // Scales the sums of a panel by its factors, and adds weights[key][row] times the values.
    void add(int64_t row, int64_t rows, int64_t count, const float* weights, const float* factors) const {
        for (int64_t feature = 0; feature < head_.features;) {
            const bool wide = feature + WIDTH < head_.features;
            for (int64_t part = 0; part < rows; part += MICRO_ROWS) {
                float* sums = running_.sums + (row + part) * running_.stride + feature;
                (wide ? micro_sums<2> : micro_sums<1>)(
                    weights + part, values_ + feature, running_.stride, count, factors + part, sums);
            }
            feature += (wide ? 2 : 1) * WIDTH;
        }
    }

    // Brings the sums to where the rows are written from.
    void finish() const {}

   private:
    const AttentionHead& head_;
    const Running running_;
    float *queries_, *keys_, *values_;
};

// Attention of a block of rows over part of the keys.
template <typename Products>
class TileWalk {
   public:
    TileWalk(const AttentionHead& head, int64_t first_row, int64_t rows, Running running)
        : head_(head), first_row_(first_row), rows_(rows), running_(running), products_(head, first_row, rows, running) {}

    // Whether the products could take all keys and values; nothing is summed up where they could not.
    bool walk(int64_t first_key, int64_t last_key) {
        last_key = std::min(last_key, head_.limit(first_row_ + rows_ - 1));
        for (int64_t key = first_key; key < last_key; key += TILE_KEYS) {
            const int64_t count = std::min<int64_t>(TILE_KEYS, last_key - key);
            if (!products_.take(key, count)) return false;
            for (int64_t row = 0; row < rows_; row += PANEL_ROWS) {
                attend(row, std::min<int64_t>(PANEL_ROWS, rows_ - row), key, count);
            }
        }
        products_.finish();
        return true;
    }

   private:
    // One panel of rows and one tile of keys.
    void attend(int64_t row, int64_t rows, int64_t first_key, int64_t count) {
        count = std::min(count, head_.limit(first_row_ + row + rows - 1) - first_key);
        if (count <= 0) return;
        if (head_.has_array_mask() && !copy_bias(row, rows, first_key, count)) return;
        const bool cut = head_.limit(first_row_ + row) - first_key < count;
        if (cut) copy_limits(row, first_key);
        products_.multiply(row, rows, count, weights_);
        for (int64_t lane = 0; lane < (rows <= WIDTH ? WIDTH : PANEL_ROWS); lane += WIDTH) soften(row, lane, count, cut);
        products_.add(row, rows, count, weights_, factors_);
    }

    // The array mask of a panel and a tile. Whether a row sees a key in it.
    bool copy_bias(int64_t row, int64_t rows, int64_t first_key, int64_t count) {
        bool seen = false;
        for (int64_t i = 0; i < rows; ++i) {
            seen |= head_.copy_bias(first_row_ + row + i, first_key, count, bias_ + i, PANEL_ROWS);
        }
        return seen;
    }

    // How many keys of a tile each row of a panel sees.
    void copy_limits(int64_t row, int64_t first_key) {
        for (int64_t i = 0; i < PANEL_ROWS; ++i) {
            const int64_t limit = head_.limit(first_row_ + row + i) - first_key;
            limits_[i] = static_cast<float>(std::clamp<int64_t>(limit, 0, TILE_KEYS));
        }
    }

    // Logits become weights: exp(logit - top), for the rows of one vector.
    void soften(int64_t row, int64_t lane, int64_t count, bool cut) {
        const Vector hidden = fill(-INFINITE), limit = load(limits_ + lane), scale = fill(products_.scale());
        const Vector before = load(running_.tops + row + lane);
        Vector top = before;
        for (int64_t key = 0; key < count; ++key) {
            float* at = weights_ + key * PANEL_ROWS + lane;
            Vector logit = load(at) * scale;
            if (head_.has_array_mask()) {
                const Vector bias = load(bias_ + key * PANEL_ROWS + lane);
                // Not added where it hides: the logit may be infinite, or no number.
                logit = less(hidden, bias, logit + bias, hidden);
            } else if (cut) {
                logit = less(fill(static_cast<float>(key)), limit, logit, hidden);
            }
            store(at, logit);
            top = max(top, logit);
        }
        // Of a row that has seen no key yet, any number: the difference stays -inf, and its weight 0.
        const Vector reference = max(fill(std::numeric_limits<float>::lowest()), top);
        Vector total = fill(0.0f);
        for (int64_t key = 0; key < count; ++key) {
            float* at = weights_ + key * PANEL_ROWS + lane;
            const Vector weight = exp(load(at) - reference);
            store(at, weight);
            total = total + weight;
        }
        const Vector factor = exp(before - reference);
        store(factors_ + lane, factor);
        store(running_.tops + row + lane, top);
        store(running_.totals + row + lane, fma(load(running_.totals + row + lane), factor, total));
    }

    const AttentionHead& head_;
    const int64_t first_row_, rows_;
    const Running running_;
    Products products_;
    alignas(64) float weights_[TILE_KEYS * PANEL_ROWS], bias_[TILE_KEYS * PANEL_ROWS] = {};
    alignas(64) float limits_[PANEL_ROWS] = {}, factors_[PANEL_ROWS];
};

}  // namespace inferspec
