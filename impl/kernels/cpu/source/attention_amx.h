// The products of attention by AMX, whose tiles multiply bfloat16 numbers and add up in float32. Nothing is lost by bfloat16:
// queries, keys and values are taken apart into as many bfloat16 numbers as make them up exactly (one, two for float16), and
// the weights into three. For float32 inputs so many products would be slower than vectors.
#pragma once

#include "amx.h"

#if defined(INFERSPEC_AMX)

#include <algorithm>

#include "attention_tiles.h"

namespace inferspec {

constexpr int64_t SIDE = 16;        // of a tile: rows, and columns of float32 or of pairs of bfloat16
constexpr int64_t DEPTH = 2 * SIDE; // products that a tile's element adds up
constexpr int64_t WEIGHT_PARTS = 3;
static_assert(PANEL_ROWS == 2 * SIDE && TILE_KEYS % DEPTH == 0);

// Rows become columns.
inline void transpose(__m512 (&rows)[SIDE]) {
    __m512 other[SIDE];
    for (int i = 0; i < SIDE; i += 2) {
        other[i] = _mm512_unpacklo_ps(rows[i], rows[i + 1]);
        other[i + 1] = _mm512_unpackhi_ps(rows[i], rows[i + 1]);
    }
    for (int i = 0; i < SIDE; i += 4) {
        rows[i] = _mm512_shuffle_ps(other[i], other[i + 2], 0x44);
        rows[i + 1] = _mm512_shuffle_ps(other[i], other[i + 2], 0xee);
        rows[i + 2] = _mm512_shuffle_ps(other[i + 1], other[i + 3], 0x44);
        rows[i + 3] = _mm512_shuffle_ps(other[i + 1], other[i + 3], 0xee);
    }
    for (int i = 0; i < 4; ++i) {
        other[i] = _mm512_shuffle_f32x4(rows[i], rows[i + 4], 0x88);
        other[i + 4] = _mm512_shuffle_f32x4(rows[i], rows[i + 4], 0xdd);
        other[i + 8] = _mm512_shuffle_f32x4(rows[i + 8], rows[i + 12], 0x88);
        other[i + 12] = _mm512_shuffle_f32x4(rows[i + 8], rows[i + 12], 0xdd);
    }
    for (int i = 0; i < 8; ++i) {
        rows[i] = _mm512_shuffle_f32x4(other[i], other[i + 8], 0x88);
        rows[i + 8] = _mm512_shuffle_f32x4(other[i], other[i + 8], 0xdd);
    }
}

// Four tiles of sums, 2 × 2, in memory whose rows are `stride` floats apart.
inline void load_sums(const float* sums, int64_t stride) {
    const int64_t bytes = stride * sizeof(float);
    _tile_loadd(0, sums, bytes);
    _tile_loadd(1, sums + SIDE, bytes);
    _tile_loadd(2, sums + SIDE * stride, bytes);
    _tile_loadd(3, sums + SIDE * stride + SIDE, bytes);
}

inline void store_sums(float* sums, int64_t stride) {
    const int64_t bytes = stride * sizeof(float);
    _tile_stored(0, sums, bytes);
    _tile_stored(1, sums + SIDE, bytes);
    _tile_stored(2, sums + SIDE * stride, bytes);
    _tile_stored(3, sums + SIDE * stride + SIDE, bytes);
}

// Adds left · right to them: left is 32 rows of bfloat16, `stride` apart; right is pairs of 32 columns, row by row of pairs.
inline void multiply_tiles(const uint16_t* left, int64_t stride, const uint32_t* right) {
    _tile_loadd(4, left, stride * sizeof(uint16_t));
    _tile_loadd(5, left + SIDE * stride, stride * sizeof(uint16_t));
    _tile_loadd(6, right, PANEL_ROWS * sizeof(uint32_t));
    _tile_loadd(7, right + SIDE, PANEL_ROWS * sizeof(uint32_t));
    _tile_dpbf16ps(0, 4, 6);
    _tile_dpbf16ps(1, 4, 7);
    _tile_dpbf16ps(2, 5, 6);
    _tile_dpbf16ps(3, 5, 7);
}

// The bfloat16 number in the high halves of what is returned; `value`, which is finite or a quiet NaN, keeps the rest.
inline __m512i part_of(__m512& value) {
    const __m512i cut = _mm512_and_si512(_mm512_castps_si512(value), _mm512_set1_epi32(-65536));
    value = _mm512_sub_ps(value, _mm512_castsi512_ps(cut));
    return cut;
}

// As VectorProducts. Where an infinity or NaN is among the inputs it takes nothing: parts of those are no parts.
class AmxProducts {
   public:
    AmxProducts(const AttentionHead& head, int64_t first_row, int64_t rows, Running running)
        : head_(head),
          running_(running),
          rows_(rows),
          features_((head.features + DEPTH - 1) / DEPTH * DEPTH),
          query_parts_(parts_of(head.query_dtype)),
          key_parts_(parts_of(head.keys.dtype)),
          value_parts_(parts_of(head.values.dtype)) {
        const int64_t panels = (rows + PANEL_ROWS - 1) / PANEL_ROWS;
        queries_ = scratch<struct OfAmxQueries, uint32_t>(panels * query_parts_ * features_ / 2 * PANEL_ROWS);
        sums_ = scratch<struct OfAmxSums, float>(panels * features_ * PANEL_ROWS);
        tile_ = scratch<struct OfAmxTile, float>(TILE_KEYS * features_);
        keys_ = scratch<struct OfAmxKeys, uint16_t>(key_parts_ * TILE_KEYS * features_);
        values_ = scratch<struct OfAmxValues, uint16_t>(value_parts_ * TILE_KEYS * features_);
        std::fill_n(sums_, panels * features_ * PANEL_ROWS, 0.0f);
        std::fill_n(tile_, TILE_KEYS * features_, 0.0f);
        for (int64_t row = 0; row < panels * PANEL_ROWS; ++row) pack_query(first_row, row);
        std::fill_n(tile_, features_, 0.0f);
        const TileConfiguration configuration;
        _tile_loadconfig(&configuration);
    }

    ~AmxProducts() { _tile_release(); }

    // Whether they are there, and worth it.
    static bool suit(const AttentionHead& head) {
        const auto takes = [](Dtype dtype) { return dtype != Dtype::FLOAT32; };
        return has_tiles() && takes(head.query_dtype) && takes(head.keys.dtype) && takes(head.values.dtype);
    }

    // Queries are multiplied as they are: scaled, those of 16 bits would have more parts.
    float scale() const { return head_.scale; }

    bool take(int64_t first, int64_t count) {
        copy(head_.keys, first, count);
        for (int64_t key = 0; key < TILE_KEYS; ++key) {
            for (int64_t feature = 0; feature < features_; feature += SIDE) {
                __m512 rest = _mm512_load_ps(tile_ + key * features_ + feature);
                see(rest);
                for (int64_t part = 0; part < key_parts_; ++part) {
                    put(keys_ + (part * TILE_KEYS + key) * features_ + feature, part_of(rest));
                }
            }
        }
        copy(head_.values, first, count);
        for (int64_t key = 0; key < TILE_KEYS; key += SIDE) {
            for (int64_t feature = 0; feature < features_; feature += SIDE) turn_values(key, feature);
        }
        return finite_;
    }

    void multiply(int64_t row, int64_t, int64_t count, float* logits) const {
        const uint32_t* queries = queries_ + row * query_parts_ * features_ / 2;
        for (int64_t key = 0; key < count; key += 2 * SIDE) {
            zero_sums();
            for (int64_t part = 0; part < query_parts_; ++part) {
                for (int64_t other = 0; other < key_parts_; ++other) {
                    for (int64_t feature = 0; feature < features_; feature += DEPTH) {
                        multiply_tiles(keys_ + (other * TILE_KEYS + key) * features_ + feature, features_,
                                       queries + (part * features_ + feature) / 2 * PANEL_ROWS);
                    }
                }
            }
            store_sums(logits + key * PANEL_ROWS, PANEL_ROWS);
        }
    }

    void add(int64_t row, int64_t, int64_t count, const float* weights, const float* factors) {
        pair_weights(weights, count);
        float* sums = sums_ + row * features_;
        scale_sums(sums, factors);
        const int64_t depth = (count + DEPTH - 1) / DEPTH * DEPTH;
        for (int64_t feature = 0; feature < features_; feature += 2 * SIDE) {
            load_sums(sums + feature * PANEL_ROWS, PANEL_ROWS);
            for (int64_t part = 0; part < WEIGHT_PARTS; ++part) {
                for (int64_t other = 0; other < value_parts_; ++other) {
                    for (int64_t key = 0; key < depth; key += DEPTH) {
                        multiply_tiles(values_ + (other * features_ + feature) * TILE_KEYS + key, TILE_KEYS,
                                       pairs_ + (part * TILE_KEYS + key) / 2 * PANEL_ROWS);
                    }
                }
            }
            store_sums(sums + feature * PANEL_ROWS, PANEL_ROWS);
        }
    }

    void finish() const {
        for (int64_t row = 0; row < rows_; row += SIDE) {
            const float* sums = sums_ + row / PANEL_ROWS * PANEL_ROWS * features_ + row % PANEL_ROWS;
            for (int64_t feature = 0; feature < head_.features; feature += SIDE) {
                __m512 square[SIDE];
                for (int i = 0; i < SIDE; ++i) square[i] = _mm512_load_ps(sums + (feature + i) * PANEL_ROWS);
                transpose(square);
                for (int i = 0; i < SIDE; ++i) {
                    _mm512_storeu_ps(running_.sums + (row + i) * running_.stride + feature, square[i]);
                }
            }
        }
    }

   private:
    static void zero_sums() {
        _tile_zero(0);
        _tile_zero(1);
        _tile_zero(2);
        _tile_zero(3);
    }

    // The high halves, where part_of leaves a bfloat16 number.
    static void put(uint16_t* to, __m512i cut) {
        _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), _mm512_cvtepi32_epi16(_mm512_srli_epi32(cut, 16)));
    }

    void see(__m512 numbers) { finite_ &= _mm512_fpclass_ps_mask(numbers, 0x99) == 0; }

    // Rows of the tile in float32; behind the last one zeros.
    void copy(const HeadRows& rows, int64_t first, int64_t count) {
        rows.copy(first, first + count, head_.features, tile_, features_);
        std::fill(tile_ + count * features_, tile_ + TILE_KEYS * features_, 0.0f);
    }

    // queries_[panel][part][pair of features][row]
    void pack_query(int64_t first_row, int64_t row) {
        if (row < rows_) {
            head_.copy_query(first_row + row, 1.0f, tile_);
        } else {
            std::fill_n(tile_, features_, 0.0f);
        }
        uint32_t* panel = queries_ + row / PANEL_ROWS * PANEL_ROWS * query_parts_ * features_ / 2 + row % PANEL_ROWS;
        for (int64_t feature = 0; feature < features_; feature += SIDE) {
            __m512 rest = _mm512_load_ps(tile_ + feature);
            see(rest);
            for (int64_t part = 0; part < query_parts_; ++part) {
                alignas(32) uint32_t pairs[SIDE / 2];
                put(reinterpret_cast<uint16_t*>(pairs), part_of(rest));
                uint32_t* to = panel + (part * features_ + feature) / 2 * PANEL_ROWS;
                for (int64_t pair = 0; pair < SIDE / 2; ++pair) to[pair * PANEL_ROWS] = pairs[pair];
            }
        }
    }

    // values_[part][feature][key] of 16 keys and features.
    void turn_values(int64_t key, int64_t feature) {
        __m512 square[SIDE];
        for (int i = 0; i < SIDE; ++i) square[i] = _mm512_load_ps(tile_ + (key + i) * features_ + feature);
        transpose(square);
        for (int i = 0; i < SIDE; ++i) {
            see(square[i]);
            for (int64_t part = 0; part < value_parts_; ++part) {
                put(values_ + (part * features_ + feature + i) * TILE_KEYS + key, part_of(square[i]));
            }
        }
    }

    // pairs_[part][pair of keys][row], zeros behind the last key.
    void pair_weights(const float* weights, int64_t count) {
        const __m512i high = _mm512_set1_epi32(-65536);
        for (int64_t key = 0; key < (count + DEPTH - 1) / DEPTH * DEPTH; key += 2) {
            for (int64_t lane = 0; lane < PANEL_ROWS; lane += SIDE) {
                const float* at = weights + key * PANEL_ROWS + lane;
                __m512 even = key < count ? _mm512_load_ps(at) : _mm512_setzero_ps();
                __m512 odd = key + 1 < count ? _mm512_load_ps(at + PANEL_ROWS) : _mm512_setzero_ps();
                for (int64_t part = 0; part < WEIGHT_PARTS; ++part) {
                    const __m512i low = _mm512_srli_epi32(part_of(even), 16);
                    const __m512i both = _mm512_or_si512(low, _mm512_and_si512(part_of(odd), high));
                    _mm512_store_si512(pairs_ + (part * TILE_KEYS + key) / 2 * PANEL_ROWS + lane, both);
                }
            }
        }
    }

    void scale_sums(float* sums, const float* factors) const {
        const __m512 low = _mm512_load_ps(factors), high = _mm512_load_ps(factors + SIDE);
        const __m512 one = _mm512_set1_ps(1.0f);
        if (_mm512_cmpneq_ps_mask(low, one) == 0 && _mm512_cmpneq_ps_mask(high, one) == 0) return;
        for (int64_t feature = 0; feature < features_; ++feature, sums += PANEL_ROWS) {
            _mm512_store_ps(sums, _mm512_mul_ps(_mm512_load_ps(sums), low));
            _mm512_store_ps(sums + SIDE, _mm512_mul_ps(_mm512_load_ps(sums + SIDE), high));
        }
    }

    const AttentionHead& head_;
    const Running running_;
    const int64_t rows_, features_, query_parts_, key_parts_, value_parts_;
    bool finite_ = true;
    uint32_t* queries_;
    float *sums_, *tile_;
    uint16_t *keys_, *values_;
    alignas(64) uint32_t pairs_[WEIGHT_PARTS * TILE_KEYS / 2 * PANEL_ROWS];
};

}  // namespace inferspec

#endif
