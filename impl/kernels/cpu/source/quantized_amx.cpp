// Products of many rows on Intel's AMX: tiles of 16 rows of x times 16 outputs, 32 terms at a time, in bfloat16 with sums of
// float32. Nothing is lost by bfloat16: codes are whole numbers below 256, and x is taken apart into as many bfloat16
// numbers as make it up exactly (one, two for float16, three for float32). Scales and biases are float32.

#include "quantized_forms.h"

#if defined(INFERSPEC_AMX)

#include <algorithm>

#include "codes.h"
#include "parallel.h"

namespace inferspec {

namespace {

constexpr size_t SIDE = 16;           // rows of a tile, and its columns of 32 bits
constexpr size_t OUTPUTS = 2 * SIDE;  // taken together: two tiles side by side
constexpr size_t ROWS = 2 * SIDE;     // taken together: two tiles below each other
constexpr size_t BLOCK = 4;           // times as many outputs: what is read of x serves them all

struct Parts;
struct Line;
struct GroupSums;
struct TilesOfCodes;
struct Factors;
struct Totals;
struct Product;

// x as bfloat16 numbers that add up to it: [chunk][part][row][CHUNK], rows padded with zeros to whole tiles.
struct Split {
    const uint16_t* parts;
    const float* sums;  // of each group: [row][groups]
    size_t count;       // of parts
    size_t rows;        // with padding

    const uint16_t* tile(size_t chunk, size_t part, size_t row) const {
        return parts + ((chunk * count + part) * rows + row) * CHUNK;
    }
};

// A row of numbers in so many parts each, the largest first; infinities and NaN are wholly in the first.
// Number k of part p goes to parts[k / CHUNK · chunk + p · part + k % CHUNK].
void split(const float* line, size_t length, size_t count, uint16_t* parts, size_t chunk, size_t part) {
    for (size_t k = 0; k < length; k += SIDE) {
        uint16_t* to = parts + k / CHUNK * chunk + k % CHUNK;
        __m512 value = _mm512_loadu_ps(line + k);
        for (size_t p = 0; p < count; ++p) {
            const __m512i cut = cut_off(value);
            const __m256i half = _mm512_cvtepi32_epi16(_mm512_srli_epi32(cut, 16));
            _mm256_storeu_si256(reinterpret_cast<__m256i*>(to + p * part), half);
        }
    }
}

Split split_rows(const void* x, Dtype dtype, size_t rows, size_t stride, const QuantizedMatrix& w, int threads) {
    const size_t count = parts_of(dtype), padded = (rows + SIDE - 1) / SIDE * SIDE, groups = w.groups();
    uint16_t* parts = scratch<Parts, uint16_t>(count * padded * w.inputs);
    float* sums = scratch<GroupSums, float>(padded * groups);
    parallel_for(threads, padded, [&](size_t row) {
        float* line = scratch<Line, float>(w.inputs);
        if (row < rows) {
            widen(x, dtype, row * stride, w.inputs, line);
        } else {
            std::fill(line, line + w.inputs, 0.0f);
        }
        split(line, w.inputs, count, parts + row * CHUNK, count * padded * CHUNK, padded * CHUNK);
        for (size_t group = 0; group < groups; ++group) {
            Vector total = fill(0);
            for (size_t i = 0; i < w.group_size; i += Vector::width) {
                total = total + load(line + group * w.group_size + i);
            }
            sums[row * groups + group] = sum(total);
        }
    });
    return {parts, sums, count, padded};
}

// Four words of each of 16 rows of weights, turned: out[q] holds word q of all rows. Rows past `rows` give zeros.
void turn(const uint32_t* words, size_t stride, size_t rows, __m512i (&out)[4]) {
    __m512i lines[4];
    for (size_t i = 0; i < 4; ++i) {
        lines[i] = _mm512_setzero_si512();
        for (size_t part = 0; part < 4; ++part) {
            const size_t row = 4 * part + i;
            if (row < rows) {
                const __m128i four = _mm_loadu_si128(reinterpret_cast<const __m128i*>(words + row * stride));
                lines[i] = _mm512_mask_broadcast_i32x4(lines[i], static_cast<__mmask16>(15 << 4 * part), four);
            }
        }
    }
    const __m512i low = _mm512_unpacklo_epi32(lines[0], lines[1]), high = _mm512_unpackhi_epi32(lines[0], lines[1]);
    const __m512i low2 = _mm512_unpacklo_epi32(lines[2], lines[3]), high2 = _mm512_unpackhi_epi32(lines[2], lines[3]);
    out[0] = _mm512_unpacklo_epi64(low, low2);
    out[1] = _mm512_unpackhi_epi64(low, low2);
    out[2] = _mm512_unpacklo_epi64(high, high2);
    out[3] = _mm512_unpackhi_epi64(high, high2);
}

// The codes of a word of each of 16 rows as bfloat16: out[j] holds codes 2j and 2j + 1 of all rows, side by side.
template <int bits>
void pairs(__m512i words, uint32_t* out);

template <>
void pairs<4>(__m512i words, uint32_t* out) {
    alignas(64) static const struct Table {
        uint16_t numbers[32];
        Table() {
            for (int i = 0; i < 32; ++i) numbers[i] = from_float<Bfloat16>(static_cast<float>(i % 16)).bits;
        }
    } table;
    const __m512i numbers = _mm512_load_si512(table.numbers);
    for (int pair = 0; pair < 4; ++pair) {
        // Entry i of the table is i % 16, and only the five lowest bits of each half choose one.
        const __m512i first = _mm512_srli_epi32(words, 8 * pair), second = _mm512_slli_epi32(first, 12);
        const __m512i both = _mm512_mask_blend_epi16(0xaaaaaaaa, first, second);
        _mm512_store_si512(out + pair * SIDE, _mm512_permutexvar_epi16(both, numbers));
    }
}

template <>
void pairs<8>(__m512i words, uint32_t* out) {
    const __m512i byte = _mm512_set1_epi32(255);
    for (int pair = 0; pair < 2; ++pair) {
        const __m512i first = _mm512_and_si512(_mm512_srli_epi32(words, 16 * pair), byte);
        const __m512i second = _mm512_and_si512(_mm512_srli_epi32(words, 16 * pair + 8), byte);
        const __m512i low = _mm512_srli_epi32(_mm512_castps_si512(_mm512_cvtepi32_ps(first)), 16);
        const __m512i high = _mm512_castps_si512(_mm512_cvtepi32_ps(second));
        _mm512_store_si512(out + pair * SIDE, _mm512_or_si512(low, high));
    }
}

// The tile of a chunk of 16 rows of weights.
template <int bits>
void unpack_tile(const uint32_t* words, size_t stride, size_t rows, uint32_t* tile) {
    for (size_t word = 0; word < words_of_chunk<bits>(); word += 4) {
        __m512i turned[4];
        turn(words + word, stride, rows, turned);
        for (size_t q = 0; q < 4; ++q) pairs<bits>(turned[q], tile + (word + q) * (16 / bits) * SIDE);
    }
}

// product[row][output] = Σ over the chunks of a group of x · codes, for 32 rows, or 16, and 32 outputs.
template <bool two>
void multiply_group(const Split& x, size_t row, size_t chunk, size_t chunks, const uint32_t* codes, float* product) {
    constexpr size_t stride = OUTPUTS * sizeof(float);
    _tile_zero(0);
    _tile_zero(1);
    if constexpr (two) {
        _tile_zero(2);
        _tile_zero(3);
    }
    for (size_t c = 0; c < chunks; ++c) {
        _tile_loadd(6, codes + 2 * c * SIDE * SIDE, 64);
        _tile_loadd(7, codes + (2 * c + 1) * SIDE * SIDE, 64);
        for (size_t part = 0; part < x.count; ++part) {
            _tile_loadd(4, x.tile(chunk + c, part, row), 64);
            _tile_dpbf16ps(0, 4, 6);
            _tile_dpbf16ps(1, 4, 7);
            if constexpr (two) {
                _tile_loadd(5, x.tile(chunk + c, part, row + SIDE), 64);
                _tile_dpbf16ps(2, 5, 6);
                _tile_dpbf16ps(3, 5, 7);
            }
        }
    }
    _tile_stored(0, product, stride);
    _tile_stored(1, product + SIDE, stride);
    if constexpr (two) {
        _tile_stored(2, product + SIDE * OUTPUTS, stride);
        _tile_stored(3, product + SIDE * OUTPUTS + SIDE, stride);
    }
}

// Scales or biases of some outputs, turned: of_group(g) holds those of group g, one after another, and zeros behind them.
class Turned {
   public:
    Turned(float* memory, size_t outputs, size_t groups) : memory_(memory), width_(outputs), groups_(groups) {}

    void set(const float* lines, size_t count) {
        std::fill(memory_, memory_ + width_ * groups_, 0.0f);
        for (size_t o = 0; o < count; ++o) {
            for (size_t group = 0; group < groups_; ++group) memory_[group * width_ + o] = lines[o * groups_ + group];
        }
    }

    const float* of_group(size_t group) const { return memory_ + group * width_; }

   private:
    float* memory_;
    size_t width_, groups_;
};

// totals[row][output] += product · scale + sum of x · bias, for the rows of a product and 32 outputs.
void add_group(const float* product, size_t rows, const float* sums, size_t groups, const float* scales,
               const float* biases, float* totals, size_t stride) {
    const Vector scale[2] = {load(scales), load(scales + SIDE)}, bias[2] = {load(biases), load(biases + SIDE)};
    for (size_t row = 0; row < rows; ++row) {
        const Vector of_x = fill(sums[row * groups]);
        for (size_t half = 0; half < 2; ++half) {
            float* total = totals + row * stride + half * SIDE;
            const Vector sum = fma(of_x, bias[half], load(total));
            store(total, fma(load(product + row * OUTPUTS + half * SIDE), scale[half], sum));
        }
    }
}

// `count` outputs of all rows, from `first`; at most BLOCK times OUTPUTS.
template <int bits>
void some_outputs(const Split& x, size_t rows, const QuantizedMatrix& w, size_t first, size_t count, void* y,
                  Dtype y_dtype, size_t y_stride) {
    const size_t groups = w.groups(), chunks = w.group_size / CHUNK;
    const size_t blocks = (count + OUTPUTS - 1) / OUTPUTS, width = blocks * OUTPUTS, tile = SIDE * SIDE;
    uint32_t* codes = scratch<TilesOfCodes, uint32_t>(2 * blocks * chunks * tile);
    float* product = scratch<Product, float>(ROWS * OUTPUTS);
    float* totals = scratch<Totals, float>(x.rows * width);
    float* factors = scratch<Factors, float>(3 * width * groups);
    float* lines = factors + 2 * width * groups;
    Turned scales(factors, width, groups), biases(factors + width * groups, width, groups);
    widen_scales(w, first, count, lines);
    scales.set(lines, count);
    widen_biases(w, first, count, lines);
    biases.set(lines, count);
    std::fill(totals, totals + x.rows * width, 0.0f);
    for (size_t group = 0; group < groups; ++group) {
        for (size_t o = 0; o < width; o += SIDE) {
            for (size_t c = 0; c < chunks; ++c) {
                const size_t word = (group * chunks + c) * words_of_chunk<bits>();
                // Tiles of a chunk lie side by side by twos, as they are multiplied.
                uint32_t* to = codes + ((o / OUTPUTS * chunks + c) * 2 + o / SIDE % 2) * tile;
                unpack_tile<bits>(w.packed + (first + std::min(o, count)) * w.words() + word, w.words(),
                                  count > o ? count - o : 0, to);
            }
        }
        for (size_t row = 0; row < x.rows; row += ROWS) {
            const bool two = row + SIDE < x.rows;
            const auto multiply = two ? multiply_group<true> : multiply_group<false>;
            for (size_t block = 0; block < blocks; ++block) {
                multiply(x, row, group * chunks, chunks, codes + block * chunks * 2 * tile, product);
                add_group(product, two ? ROWS : SIDE, x.sums + row * groups + group, groups,
                          scales.of_group(group) + block * OUTPUTS, biases.of_group(group) + block * OUTPUTS,
                          totals + row * width + block * OUTPUTS, width);
            }
        }
    }
    for (size_t row = 0; row < rows; ++row) narrow(totals + row * width, count, y, y_dtype, row * y_stride + first);
}

}  // namespace

void quantized_product_by_tiles(const void* x, Dtype x_dtype, size_t rows, size_t x_stride, const QuantizedMatrix& w,
                                void* y, Dtype y_dtype, size_t y_stride, int threads) {
    const Split split = split_rows(x, x_dtype, rows, x_stride, w, threads);
    const size_t pairs = (w.outputs + OUTPUTS - 1) / OUTPUTS;
    const size_t together = std::max<size_t>(1, std::min(BLOCK, pairs / threads)) * OUTPUTS;
    parallel_for(threads, (w.outputs + together - 1) / together, [&](size_t part) {
        const TileConfiguration configuration;
        _tile_loadconfig(&configuration);
        const size_t first = part * together, count = std::min(together, w.outputs - first);
        with_bits(w.bits, [&](auto bits) {
            some_outputs<bits>(split, rows, w, first, count, y, y_dtype, y_stride);
        });
        _tile_release();
    });
}

}  // namespace inferspec

#else

namespace inferspec {

void quantized_product_by_tiles(const void* x, Dtype x_dtype, size_t rows, size_t x_stride, const QuantizedMatrix& w,
                                void* y, Dtype y_dtype, size_t y_stride, int threads) {
    quantized_product_of_many(x, x_dtype, rows, x_stride, w, y, y_dtype, y_stride, threads);
}

}  // namespace inferspec

#endif
